"""A model's card says what the model is, with the figures of its evaluation; the hub can read its head."""

import re
from dataclasses import replace

import pytest
import yaml

import textcat
from textcat.base import settings
from textcat.evaluation.evaluation import MeasuredOn
from textcat.model.card import card_html
from textcat.report.card import CardFields, card_text, measure_for_card, write_card

HOSTILE = ("</script><b onclick=x>|`*_[a](b)", "\n---\nlicense: evil\n", '"}]: &a *b', "{{x}} #")


@pytest.fixture(scope="module")
def corpus():
    return textcat.open_corpus("newswire")


@pytest.fixture(scope="module")
def tagger(newswire_tagger):
    return newswire_tagger


@pytest.fixture(scope="module")
def evaluation(tagger, corpus):
    return measure_for_card(tagger, corpus, resamples=100)


def head_of(text):
    return yaml.safe_load(re.match(r"---\n(.*?)\n---\n", text, re.DOTALL)[1])


def test_the_head_has_what_a_hub_reads(tagger, evaluation):
    fields = CardFields(licence="mit", title="News", datasets=["ann/news"])
    head = head_of(card_text(tagger, evaluation, fields))
    expected = {"language": "en", "license": "mit", "library_name": "textcat", "datasets": ["ann/news"]}
    assert {**head, **expected} == head
    assert "multi-label" in head["tags"]
    (model,) = head["model-index"]
    (result,) = model["results"]
    assert model["name"] == "News"
    assert result["dataset"] == {"name": "newswire", "type": "newswire", "split": "test"}
    values = {metric["name"]: metric["value"] for metric in result["metrics"]}
    for row in evaluation.bands:
        assert values[f"macro F1, {row.band}"] == round(row["macro_f1"], 4)


def test_the_head_has_no_index_without_measures(tagger):
    from textcat.evaluation.evaluation import evaluate_scores

    nothing = evaluate_scores([[0.0]], [[0]], ["a"], [1], 1, spec="ALL")
    assert "model-index" not in head_of(card_text(tagger, nothing))


def test_the_head_is_one_that_the_library_of_the_hub_takes(tagger, evaluation):
    hub = pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed (extra hub)")
    card = hub.ModelCard(card_text(tagger, evaluation, CardFields(licence="mit")))
    assert card.data.license == "mit"
    assert {result.metric_type for result in card.data.eval_results} >= {"macro_average_precision", "macro_f1"}


def test_a_forecast_of_training_is_told(tagger, evaluation):
    points = [[400, 0.7, 0.65, 0.75], [600, 0.75, 0.68, 0.81], [800, 0.8, 0.7, 0.88]]
    facts = replace(tagger.facts, choices={"forecast": {"forecast": points}})
    said = "With 400 more documents: top-1 accuracy 0.70 → about 0.80 (0.70 to 0.88)"
    assert said in card_text(replace(tagger, facts=facts), evaluation)
    assert "more documents" not in card_text(tagger, evaluation)


def test_the_figures_have_intervals_by_band(tagger, evaluation):
    text = card_text(tagger, evaluation)
    row = next(row for row in evaluation.bands if row.band == "TOP10")
    low, high = row.intervals["macro_f1"]
    assert f"{row['macro_f1']:.3f} ({low:.3f} to {high:.3f})" in text
    assert "| measure | ALL | TOP10 | LAST30 |" in text
    assert f"Measured on {evaluation.test_documents:,} test documents, with 95 % intervals" in text


def test_the_recipe_can_be_read_again(tagger, evaluation, tmp_path):
    block = re.search(r"```toml\n(.*?)```", card_text(tagger, evaluation), re.DOTALL)[1]
    assert settings.tomllib.loads(block)["learner"]["name"] == "paum"
    (tmp_path / "again.toml").write_text(block)
    recipe = textcat.read_recipe(str(tmp_path / "again.toml"))
    assert tagger.facts.recipe == recipe.complete()


def test_the_same_model_has_the_same_card(tagger, corpus, evaluation, tmp_path):
    texts = []
    for name in ("a", "b"):
        loaded = textcat.load(textcat.save(tagger, tmp_path / name / "model"))
        texts.append(card_text(loaded, measure_for_card(loaded, corpus, resamples=100)))
    assert texts[0] == texts[1] == card_text(tagger, evaluation)
    assert str(tmp_path) not in texts[0]


def test_the_limits_are_those_of_the_model(tagger, evaluation):
    limits = card_text(tagger, evaluation).partition("## Limits")[2]
    assert "`en`" in limits
    assert "after 1992-04-30" in limits
    few = sum(size < 10 for size in tagger.facts.train_sizes)
    assert f"{few} of 50 topics had fewer than 10 training documents" in limits


def test_without_test_documents_the_figures_are_by_cross_validation_with_intervals(tmp_path):
    source = textcat.open_corpus("newswire")
    corpus = replace(source, name="letters", train=source.train[:200], test=[])
    tagger = textcat.train(corpus, textcat.read_recipe("paum"))
    measured = measure_for_card(tagger, corpus, resamples=50)
    assert measured.measured_on is MeasuredOn.CROSS_VALIDATION
    text = card_text(tagger, measured)
    assert "training documents, by cross-validation, with 95 % intervals" in text
    assert head_of(text)["model-index"][0]["results"][0]["dataset"]["split"] == "train"
    assert "datasets" not in head_of(text)  # a name of one's own means nothing to others


def test_hostile_names_break_neither_head_nor_tables():
    records = [
        {"text": f"word{i} word{i}s rose {k}", "topics": [topic]} for i, topic in enumerate(HOSTILE) for k in range(4)
    ]
    corpus = textcat.Corpus.from_records(records, name=HOSTILE[1])
    tagger = textcat.train(corpus, textcat.read_recipe("paum"))
    text = card_text(tagger, measure_for_card(tagger, corpus, resamples=0))
    assert set(head_of(text)) == {"language", "library_name", "pipeline_tag", "tags", "model-index"}
    shown = card_html(text)
    assert "<b" not in shown.replace("<blockquote", "")
    rows = re.findall(r"<tbody>(.*?)</tbody>", shown, re.DOTALL)[-1]
    assert rows.count("<tr>") == len(HOSTILE)


def test_a_model_that_was_not_measured_says_so(tagger, tmp_path):
    text = write_card(tmp_path / "card.md", tagger, None, CardFields(about="By *Ann*.")).read_text()
    assert "Nothing was measured." in text
    assert "\nBy *Ann*.\n" in text
    assert "model-index" not in head_of(text)
