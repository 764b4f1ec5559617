"""A resample is measured as the documents that were drawn; the same seed draws the same."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import binomtest

from textcat.evaluation import significance
from textcat.evaluation.bands import Band
from textcat.evaluation.evaluation import ScoredDocuments, evaluate_scores
from textcat.evaluation.metrics import RankingSteps
from textcat.evaluation.significance import add_intervals, centred_interval, resampled_measures

TOPICS = ["acq", "corn", "rye"]
SIZES = [9, 5, 1]


def sample(seed=0, n_documents=40, decimals=1):
    """Labels and scores of three topics, many scores being equal."""
    random = np.random.default_rng(seed)
    labels = random.random((n_documents, 3)) < [0.5, 0.2, 0.05]
    return np.round(random.normal(size=labels.shape) + labels, decimals).astype(np.float32), labels


def evaluated(scores, labels, spec, threshold=0.0):
    return evaluate_scores(scores, labels, TOPICS, SIZES, 20, spec=spec, threshold=threshold)


def naive_resamples(n_documents, n_resamples, seed):
    random = np.random.default_rng(seed)
    return [random.integers(0, n_documents, n_documents) for _ in range(n_resamples)]


def naive_average_precision(labels, scores, drawn):
    """Over the documents drawn; at a positive, its copies count once."""
    precisions = []
    for i in drawn:
        if labels[i]:
            others = [j for j in drawn if j != i and scores[j] >= scores[i]]
            precisions.append((1 + sum(labels[j] for j in others)) / (1 + len(others)))
    return sum(precisions) / len(precisions) if precisions else math.nan


@pytest.mark.parametrize("decimals", [0, 6])
def test_resamples_are_measured_as_the_documents_drawn(decimals):
    scores, labels = sample(decimals=decimals)
    chosen, threshold = [Band("ALL", (0, 1, 2)), Band("LAST1", (2,))], [0.5, 0.0, 0.2]
    measured = resampled_measures(
        evaluated(scores, sparse.csc_matrix(labels), ["ALL", "LAST1"], threshold), 20, seed=3
    ).bands
    for resample, drawn in enumerate(naive_resamples(len(labels), 20, seed=3)):
        precision = [naive_average_precision(labels[:, t], scores[:, t], drawn.tolist()) for t in range(3)]
        # What is drawn twice counts twice in F1, as in an evaluation of these documents.
        rows = evaluate_scores(
            scores[drawn], labels[drawn], TOPICS, SIZES, 20, spec=["ALL", "LAST1"], threshold=[0.5, 0, 0.2]
        )
        for place, (band, row) in enumerate(zip(chosen, rows.bands, strict=True)):
            known = [precision[t] for t in band.topics if not math.isnan(precision[t])]
            expected = [np.mean(known) if known else None, row["macro_f1"], row["micro_f1"]]
            for name, value in zip(ScoredDocuments.measures, expected, strict=True):
                assert measured[name][place, resample] == pytest.approx(
                    math.nan if value is None else value, nan_ok=True
                )


@given(st.integers(0, 100))
def test_with_every_document_drawn_once_a_resample_is_the_evaluation(seed):
    scores, labels = sample(seed)
    ones = np.ones((len(labels), 1), np.int32)
    for t in range(3):
        ranking = RankingSteps.of(scores[:, t], np.flatnonzero(labels[:, t]))
        expected = evaluate_scores(scores[:, [t]], labels[:, [t]], ["t"], [1], 1).topics[0].average_precision
        value = ranking.average_precision(ones)[0]
        assert value == pytest.approx(math.nan if expected is None else expected, nan_ok=True)


def test_resamples_do_not_depend_on_how_many_are_held_at_a_time(monkeypatch):
    scores, labels = sample()
    evaluation = evaluated(scores, labels, ["ALL", "TOP1"])
    whole = resampled_measures(evaluation, n_resamples=10).bands
    monkeypatch.setattr(significance, "NUMBERS_AT_ONCE", 3 * len(labels))
    for name, values in resampled_measures(evaluation, n_resamples=10).bands.items():
        assert values.shape == (2, 10)
        np.testing.assert_allclose(values, whole[name], rtol=1e-12)


def test_topics_are_resampled_with_the_bands_they_are_in():
    scores, labels = sample()
    measured = resampled_measures(evaluated(scores, labels, ["ALL", "LAST1"]), n_resamples=10)
    for of_topics, of_bands in (("average_precision", "macro_average_precision"), ("f1", "macro_f1")):
        assert measured.topics[of_topics].shape == (3, 10)
        np.testing.assert_array_equal(measured.topics[of_topics][2], measured.bands[of_bands][1])


def test_the_seed_draws_the_documents():
    scores, labels = sample()
    first, again, other = (
        resampled_measures(evaluated(scores, labels, "TOP2"), n_resamples=10, seed=seed).bands["micro_f1"]
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_an_interval_holds_the_middle_of_the_resamples_around_the_measured_value():
    values = np.arange(101.0)
    assert centred_interval(50, values) == pytest.approx((2.5, 97.5))
    assert centred_interval(10, values, level=0.5) == pytest.approx((-15, 35))
    assert centred_interval(50, [*values, math.nan]) == centred_interval(50, values)
    assert all(map(math.isnan, centred_interval(50, [math.nan])))


def test_an_interval_is_as_wide_as_the_measure_varies_from_sample_to_sample():
    def micro_f1(seed):
        scores, labels = sample(seed, n_documents=200, decimals=6)
        return evaluate_scores(scores, labels, TOPICS, SIZES, 20, spec="ALL").bands[0]["micro_f1"]

    scores, labels = sample(n_documents=200, decimals=6)
    low, high = centred_interval(0, resampled_measures(evaluated(scores, labels, "ALL")).bands["micro_f1"][0])
    spread = np.std([micro_f1(seed) for seed in range(300)])
    assert high - low == pytest.approx(2 * 1.96 * spread, rel=0.2)


def test_an_evaluation_gets_the_intervals_of_its_bands():
    scores, labels = sample()
    labels[:, 2] = False
    evaluation = evaluate_scores(scores, labels, TOPICS, SIZES, 20, spec=["ALL", "LAST1"])
    everything, smallest = add_intervals(evaluation, n_resamples=100).bands
    for name, (low, high) in everything.intervals.items():
        assert 0 <= low <= everything[name] <= high <= 1
    assert smallest.intervals == dict.fromkeys(ScoredDocuments.measures)


def test_mcnemar_is_the_exact_binomial_test_and_holm_steps_down():
    for first in range(9):
        for other in range(9):
            if first + other:
                expected = binomtest(first, first + other).pvalue
                assert significance.mcnemar(first, other) == pytest.approx(expected)
    assert significance.mcnemar([0], [0]).tolist() == [1]
    assert significance.holm([0.01, 0.04, 0.03]).tolist() == pytest.approx([0.03, 0.06, 0.06])
