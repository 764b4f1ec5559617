"""Support documents are those that weights are sums of, and what they add is the score."""

from dataclasses import replace

import numpy as np
import pytest

import textcat


# --- training documents ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("recipe", "keep"), [("default", "texts"), ("paum", "ids")])
def test_what_training_documents_add_and_the_bias_is_the_score(part, recipe, keep, tmp_path):
    settings = textcat.read_recipe(recipe)
    plain = textcat.train(part, settings, keep_support="none")
    kept = textcat.train(part, settings, keep_support=keep, rows_dir=tmp_path / "rows" if keep == "texts" else None)
    assert plain.support is None
    assert plain.explain("wheat", "wheat").documents == []
    np.testing.assert_array_equal(plain.scorer.weights, kept.scorer.weights)
    np.testing.assert_array_equal(plain.decisions.thresholds, kept.decisions.thresholds)
    loaded = textcat.load(textcat.save(kept, tmp_path / "model"))
    train = {document.id: document for document in part.train}
    for document in part.test[:5]:
        for topic in ("grain", "jobs"):
            everything = loaded.explain(document, topic, n=None)
            total = sum(each.contribution for each in everything.documents) + everything.bias
            assert total == pytest.approx(everything.score, rel=1e-3, abs=1e-2)
            assert "training document" in everything._repr_html_()
            some = kept.explain(document, topic, n=4).documents
            speaking = [each for each in everything.documents if each.contribution > 0]
            against = [each for each in everything.documents if each.contribution <= 0]
            assert everything.documents == speaking + against
            assert some == speaking[:2] + against[:2]
            for part in (speaking, against):
                assert [abs(each.contribution) for each in part] == sorted(
                    (abs(each.contribution) for each in part), reverse=True
                )
            for each in everything.documents:
                if each.id in train:
                    assert each.positive == (topic in train[each.id].topics)
                    assert each.title == " ".join(train[each.id].zones["title"].split())[:120] or len(each.title) == 120
                else:
                    assert each.id.startswith("description of ")
    texts = loaded.support.texts
    assert (texts is not None) == (keep == "texts")
    for identifier, text in zip(loaded.support.ids, texts or (), strict=False):
        assert identifier not in train or text == train[identifier].zones


def test_without_a_word_few_documents_are_kept_and_their_texts_are_not(corpus, monkeypatch, tmp_path):
    untitled = [replace(each, zones={"body": each.zones["body"]}) for each in corpus.train[:40]]
    small, recipe = textcat.Corpus.from_documents("small", untitled), textcat.read_recipe("paum")
    kept = textcat.train(small, recipe).support
    assert kept.ids
    assert kept.texts is None
    assert {title for name, title in zip(kept.ids, kept.titles, strict=True) if "description" not in name} == {""}
    assert any(textcat.train(small, recipe, keep_support="texts").support.titles)
    assert textcat.train(small, recipe, rows_dir=tmp_path / "rows").support is None
    assert textcat.train(small, textcat.read_recipe("many-topics")).support is None
    monkeypatch.setattr("textcat.training.checks.MOST_KEPT", 39)
    assert textcat.train(small, recipe).support is None
