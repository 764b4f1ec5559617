"""A tagger is measured on documents: their topics in its columns, scored in blocks."""

import itertools
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import textcat
from textcat.base.errors import TextcatError
from textcat.corpus.fetch import warn_once
from textcat.model.measure import expected_topics, measure_test_documents, relevant_topics, score_row_blocks


def test_a_topic_the_corpus_lacks_counts_as_one_without_a_positive(corpus, tagger):
    other = textcat.Corpus("other", corpus.train, corpus.test, ("grain", "weather"))
    relevant = relevant_topics(tagger, other)
    assert relevant.shape == (len(corpus.test), len(tagger.topics))
    strangers = [textcat.Document("1", {"body": "rain"}, ("weather",))]
    with pytest.raises(TextcatError, match=r"No test document of corpus far has a topic of the model"):
        textcat.evaluate(tagger, textcat.Corpus("far", corpus.train, strangers, ("weather",)))


def test_documents_are_counted_as_they_are_scored_for_many_topics(corpus, tagger, monkeypatch):
    monkeypatch.setattr("textcat.model.measure.CELLS_AT_ONCE", 100 * len(tagger.topics))
    rows, counted = tagger.features.transform(corpus.test), []
    blocks = list(score_row_blocks(tagger, rows, counted.append))
    assert counted == [100, 100, 100, 50]
    assert np.array_equal(np.concatenate(blocks), tagger.scores(corpus.test))


def test_the_topics_are_gone_through_as_often_for_a_thousand_documents_as_for_one(corpus, tagger, monkeypatch):
    class CountedTopics(tuple):
        n_passes = 0

        def __iter__(self):
            CountedTopics.n_passes += 1
            return super().__iter__()

    def passes(n):
        tagger_ = replace(tagger, topics=CountedTopics(tagger.topics))
        monkeypatch.setattr(CountedTopics, "n_passes", 0)
        test = list(itertools.islice(itertools.cycle(corpus.test), n))
        measure_test_documents(tagger_, expected_topics(tagger_, replace(corpus, test=test)), tagger.scores(test))
        return CountedTopics.n_passes

    assert passes(1000) == passes(1)


def test_a_model_is_measured_by_its_folder_on_a_corpus_a_name_or_records(corpus, tagger, tmp_path):
    folder, expected = textcat.save(tagger, tmp_path / "model"), textcat.evaluate(tagger, corpus)
    for model in (tagger, folder, str(folder)):
        for documents in (corpus, "newswire"):
            measured = textcat.evaluate(model, documents, bands=["ALL", "TOP10"])
            assert [band["macro_f1"] for band in measured.bands] == [
                band["macro_f1"] for band in expected.bands if band.band != "LAST30"
            ]
    records = [{"text": d.zones["body"], "labels": list(d.topics)} for d in corpus.test]
    of_records = textcat.evaluate(folder, records, topics="labels")
    assert of_records.test_documents == len(corpus.test)
    path = tmp_path / "records.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert textcat.evaluate(folder, path, topics="labels").bands == of_records.bands


def test_of_rows_with_parts_only_the_test_part_is_measured(corpus, tagger):
    def records(*parts):
        rows = zip(corpus.test, itertools.cycle(parts), strict=False)
        return [{"text": d.zones["body"], "topics": list(d.topics), "split": part} for d, part in rows]

    n = len(corpus.test)
    for parts, n_measured in ((["test"], n), ([""], n), (["test", "unused"], n // 2), (["train", "test"], n // 2)):
        assert textcat.evaluate(tagger, records(*parts)).test_documents == n_measured
    for parts in (["unused"], ["train"], ["unused", "train"], ["unused", ""]):
        with pytest.raises(TextcatError, match="has no test documents to evaluate on"):
            textcat.evaluate(tagger, records(*parts))


def test_the_path_that_was_trained_on_is_opened_as_for_training(tmp_path, caplog):
    path = tmp_path / "rows.jsonl"
    rows = [{"headline": f"{term} {i}", "topics": term} for term in ("corn", "gold") for i in range(20)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = textcat.InputSettings(text_fields=("headline",))
    corpus = textcat.open_corpus(path, settings=settings, test_size=10)
    tagger = textcat.train(corpus, "paum")
    caplog.clear()
    expected = textcat.evaluate(tagger, corpus)
    assert not caplog.text
    assert textcat.evaluate(tagger, path) == textcat.evaluate(tagger, str(path), text="headline") == expected
    assert caplog.text.count("measured on the 10 test documents of") == 2
    assert "that training set aside (--test-size 10); its 30 training documents are left out" in caplog.text
    assert "too good" not in caplog.text


def test_columns_of_a_corpus_that_is_open_are_refused(corpus, tagger):
    with pytest.raises(TextcatError, match=r"has its texts and topics already: leave out .* topics='labels'"):
        textcat.evaluate(tagger, corpus, topics="labels")


AT_LENGTH = pytest.mark.where_long("one recipe is trained on Reuters, the README's first")


@pytest.mark.parametrize(
    "recipe", ["default", pytest.param("paum", marks=AT_LENGTH), pytest.param("paum-2002", marks=AT_LENGTH)]
)
def test_reuters_is_ranked_as_the_readme_says_and_as_well_as_the_paper(reuters, recipe):
    evaluation = textcat.evaluate(textcat.train(reuters, textcat.read_recipe(recipe)), reuters)
    quality = {band.band: band for band in evaluation.bands}

    def figures(name, decimals):
        return [f"{quality[band][name]:.{decimals}f}".lstrip("0") for band in ("ALL", "TOP10", "LAST30")]

    precision, support = figures("macro_average_precision", 3), figures("mean_support", 0)
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    assert f"| `{recipe}` | {' / '.join(precision)} | {' / '.join(support)} |" in readme
    if recipe == "default":  # what the quickstart prints
        printed = {
            "mean average precision (MAP)": precision,
            "mean support (documents)": support,
            "macro F1": figures("macro_f1", 3),
        }
        printed["micro F1"] = figures("micro_f1", 3)
        for title, values in printed.items():
            assert re.search(rf"^{re.escape(title)} +{' +'.join(map(re.escape, values))}$", readme, re.MULTILINE), title
    if recipe == "paum-2002":
        assert quality["TOP10"]["macro_average_precision"] >= 0.922
        published = [462, 1872, 82]
        assert [quality[band]["mean_support"] for band in quality] == pytest.approx(published, rel=0.08)


@pytest.mark.parametrize("separator", [";", " ", ","])
def test_topics_that_are_joined_in_the_documents_to_measure_on_are_told(tmp_path, separator, caplog):
    news = {"grain": "wheat corn tonnes", "gold": "gold ounces mine"}
    records = [{"text": f"{text} {i}", "topics": [topic]} for topic, text in news.items() for i in range(4)]
    tagger = textcat.train(textcat.Corpus.from_records(records), "paum")
    rows = "".join(f'"{text}","{topic}"\n' for topic, text in news.items())
    (tmp_path / "new.csv").write_text(f'text,topics\n{rows}"wheat and gold","gold{separator}grain"\n')
    warn_once.cache_clear()
    caplog.clear()
    textcat.evaluate(tagger, tmp_path / "new.csv")
    (told,) = caplog.messages
    assert f"such as 'gold{separator}grain', are several of the model's" in told
    assert f"--topics-separator {separator!r}" in told
    caplog.clear()
    assert textcat.evaluate(tagger, tmp_path / "new.csv", topics_separator=separator).test_documents == 3
    assert not caplog.messages
