"""A forecast continues known curves, its band holds, and what is not known is not forecast."""

from dataclasses import replace

import numpy as np
import pytest

import textcat
from textcat.corpus.documents import Corpus, Document
from textcat.recipes.recipe import FEW_DOCUMENTS, default_recipe, read_recipe
from textcat.training.examples import CountedCorpus
from textcat.training.forecast import extrapolated, forecast_growth

pytestmark = pytest.mark.usefixtures("all_splits")
SHARES, AHEAD = np.array([0.1, 0.2, 0.3, 0.4, 0.57, 0.8]), np.array([1.0, 2.0])


def made(n: int, seed: int = 0, *, is_learnable: bool = True) -> list[Document]:
    """Make documents of four topics; a quarter of each text's words are of its topic, unless nothing can be learnt."""
    random = np.random.default_rng(seed)
    documents = []
    for i in range(n):
        topic = int(random.integers(4))
        words = [*(random.integers(0, 60, 3) + 60 * topic * is_learnable), *random.integers(0, 240, 9)]
        documents.append(Document(str(i), {"body": " ".join(f"word{word}x" for word in words)}, (f"topic{topic}",)))
    return documents


def corpus_of(documents: list[Document]) -> Corpus:
    return Corpus.from_documents("made", documents, "train")


@pytest.fixture(scope="module")
def recipe():
    return read_recipe("few-documents").with_settings(
        ["topics.choose_margins=false", "topics.vectors=none", "features.chars=0"]
    )


@pytest.fixture(scope="module")
def forecast_of(recipe):
    def of(documents: list[Document], **options):
        return forecast_growth(CountedCorpus(corpus_of(documents), recipe), recipe, **options)

    return of


@pytest.mark.parametrize(
    "accuracy",
    [
        lambda n: 1 - 0.3 * n**-0.4,  # a power law of errors
        lambda n: 1 - 0.05 * n**-0.5,
        lambda n: 1 / (1 + np.exp(0.5 - 0.4 * np.log(n))),  # a line in log-odds
        lambda n: 1 - 0.1 - 0.1 * n**-0.3,  # a power law with a floor
    ],
)
def test_known_curves_are_continued_and_the_band_holds_for_nine_samples_of_ten(accuracy):
    exact = extrapolated(np.repeat(accuracy(SHARES)[:, np.newaxis], 1000, axis=1), SHARES, AHEAD)
    np.testing.assert_allclose(exact[0], accuracy(AHEAD), atol=0.035)
    random, n_held = np.random.default_rng(0), 0
    for _ in range(50):  # times 200 documents
        right = (random.random(200) < accuracy(SHARES)[:, np.newaxis]).astype(float)
        _, low, high = extrapolated(right, SHARES, AHEAD)
        n_held += low[1] <= accuracy(2.0) <= high[1]
    assert n_held >= 42


def test_a_curve_that_falls_or_is_flat_is_continued_as_a_level():
    for level in ([0.5] * 6, [0.6, 0.58, 0.56, 0.54, 0.52, 0.5], [0.0] * 6, [1.0] * 6):
        now, then = extrapolated(np.repeat(np.array(level)[:, np.newaxis], 100, axis=1), SHARES, AHEAD)[0]
        assert now == then == pytest.approx(np.mean(level), abs=0.01)


@pytest.mark.parametrize("share_wrong", [0.01, 0.02, 0.05])
def test_the_band_holds_where_hardly_any_document_is_wrong(share_wrong):
    draws = np.random.default_rng(0).random((100, 60)) >= share_wrong
    bands = (
        extrapolated(np.repeat(right[np.newaxis], len(SHARES), axis=0).astype(float), SHARES, AHEAD) for right in draws
    )
    assert np.mean([low[-1] <= 1 - share_wrong <= high[-1] for _, low, high in bands]) > 0.85


def test_a_band_is_around_the_forecast_within_0_and_1_and_narrower_with_more_documents():
    widths = []
    for n in (20, 200, 2000):
        right = np.random.default_rng(0).random((6, n)) < np.linspace(0.3, 0.6, 6)[:, np.newaxis]
        share, low, high = extrapolated(right.astype(float), SHARES, AHEAD)
        assert (np.diff([np.zeros(2), low, share, high, np.ones(2)], axis=0) > 0).all()
        widths.append((high - low)[1])
    assert widths == sorted(widths, reverse=True)


def test_the_band_holds_what_training_on_twice_as_many_documents_gives(forecast_of, recipe):
    documents, test = made(400), made(1000, seed=1)
    forecast = forecast_of(documents[:200])
    assert [point[0] for point in forecast.forecast] == [200, 250, 300, 350, 400]
    for n, _, low, high in (forecast.forecast[0], forecast.forecast[-1]):
        tagger = textcat.train(corpus_of(documents[:n]), recipe.with_settings("topics.forecast=false"))
        first = [tagger.topics[j] for j in tagger.scores(test).argmax(axis=1)]
        assert low <= np.mean([topic in document.topics for topic, document in zip(first, test, strict=True)]) <= high
    accuracies = [accuracy for _, accuracy in forecast.measured]
    assert accuracies == sorted(accuracies)
    assert accuracies[-1] > accuracies[0] + 0.1
    assert forecast.held_out == 600


def test_where_nothing_can_be_learnt_no_gain_is_forecast(forecast_of):
    (_, now, *_), *_, (_, then, low, high) = forecast_of(made(200, is_learnable=False)).forecast
    assert then - now < 0.05
    assert low < 0.25 < high  # of four topics


def test_topics_that_no_document_trained_on_has_are_unknown_even_if_they_have_a_name(forecast_of, monkeypatch):
    monkeypatch.setattr("textcat.training.forecast.MOST_SPLITS", 1)
    names = [f"subject{i}" for i in range(60)]
    forecast = forecast_of([Document(name, {"body": f"{name} and {name}"}, (name,)) for name in names])
    assert [accuracy for _, accuracy in forecast.measured] == [0] * 6


@pytest.mark.parametrize(
    "documents",
    [
        made(49),
        [*made(49), *(replace(document, topics=()) for document in made(30, seed=1))],
        [replace(document, topics=("one",)) for document in made(60)],
    ],
)
def test_of_too_few_documents_with_a_topic_or_one_topic_nothing_is_forecast(forecast_of, documents):
    assert forecast_of(documents) is None


def test_documents_without_a_topic_are_trained_on_but_do_not_count(forecast_of):
    others = [Document(f"other{i}", {"body": "word1x"}, ()) for i in range(20)]
    forecast = forecast_of([*made(60), *others])
    assert (forecast.documents, forecast.held_out % 12) == (80, 0)


def test_a_tagger_keeps_the_same_forecast_for_any_number_of_jobs_and_is_otherwise_as_without(
    recipe, tmp_path, monkeypatch
):
    monkeypatch.setattr("textcat.training.forecast.MOST_SPLITS", 3)
    corpus = corpus_of(made(60))
    taggers = [textcat.train(corpus, recipe, n_jobs=n_jobs) for n_jobs in (1, 2)]
    without = textcat.train(corpus, recipe.with_settings("topics.forecast=false"))
    assert taggers[0].facts.choices == taggers[1].facts.choices
    assert taggers[0].facts.choices["forecast"]["documents"] == 60
    assert not without.facts.choices
    np.testing.assert_array_equal(taggers[0].scorer.weights, without.scorer.weights)
    textcat.save(taggers[0], tmp_path / "model")
    assert textcat.load(tmp_path / "model").facts.choices == taggers[0].facts.choices


def test_recipes_for_few_documents_forecast_and_others_do_not():
    default = default_recipe()
    assert all(recipe.topics.forecasts for recipe in (default.few, default.short.few))
    assert not any(recipe.topics.forecasts for recipe in (default, default.short, default.many))
    assert not default.few.with_settings("topics.shortlist=20").topics.forecasts
    enough = corpus_of([Document(str(i), {"body": "wheat"}, ("a",)) for i in range(FEW_DOCUMENTS)])
    assert not default.for_corpus(enough)[0].topics.forecasts
