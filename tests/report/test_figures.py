"""The figures of a report are those of scikit-learn and of naive twins."""

import naive_report as naive
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.calibration import calibration_curve

from textcat.report import figures


def scored(draw, n=25):
    values = draw(st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=1, max_size=n))
    return np.array([value for value, _ in values], np.float32), np.array([label for _, label in values])


rankings = st.composite(scored)()


@given(rankings, st.integers(-1, 10), st.integers(2, 20))
def test_each_threshold_has_what_passes_it(ranking, threshold, most):
    scores, labels = ranking
    cuts = figures.sample_thresholds(scores, labels, threshold + 0.5, most)
    for cut, retrieved, hits in zip(cuts.thresholds, cuts.retrieved, cuts.hits, strict=True):
        assert (retrieved, hits) == ((scores > cut).sum(), (scores[labels] > cut).sum())
    assert cuts.thresholds[cuts.chosen] == threshold + 0.5
    assert len(cuts.thresholds) <= most + 1
    assert (cuts.retrieved[0], cuts.retrieved[-1]) == (0, len(scores)) or cuts.chosen in (0, len(cuts.thresholds) - 1)
    assert (np.diff(cuts.retrieved) > 0).all()


@given(rankings)
def test_every_positive_is_reached_by_a_threshold_of_its_own(ranking):
    scores, labels = ranking
    cuts = figures.sample_thresholds(scores, labels)
    wanted = {((scores >= score).sum(), (scores[labels] >= score).sum()) for score in scores[labels]}
    assert wanted <= set(zip(cuts.retrieved.tolist(), cuts.hits.tolist(), strict=True))


@given(rankings)
def test_the_curve_of_a_band_is_the_precision_that_each_recall_can_have(ranking):
    scores, labels = ranking
    if labels.any():
        expected = [naive.interpolated_precision(scores, labels, level) for level in figures.LEVELS]
        np.testing.assert_allclose(figures.interpolated_precision(scores[labels], scores), expected)


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=2, max_size=40))
def test_reliability_is_that_of_scikit_learn(pairs):
    probabilities, labels = (np.array(column) for column in zip(*pairs, strict=True))
    if labels.any() and not labels.all():
        right, given_ = calibration_curve(labels, probabilities, n_bins=10)
        found = figures.reliability(probabilities, labels)
        np.testing.assert_allclose([row[:2] for row in found], np.column_stack([given_, right]))
        assert sum(n for *_, n in found) == len(pairs)


@given(rankings)
def test_the_histogram_counts_every_document_once(ranking):
    scores, labels = ranking
    drawn = figures.score_histogram(scores, labels)
    assert (drawn.positives.sum(), drawn.negatives.sum()) == (labels.sum(), (~labels).sum())
    assert drawn.low < drawn.high


@given(st.lists(st.tuples(*[st.booleans()] * 6), min_size=1, max_size=8))
def test_topics_are_mistaken_where_one_is_missing_and_another_is_given(rows):
    labels, got = np.array(rows)[:, :3], np.array(rows)[:, 3:]
    assert figures.confused_pairs(sparse_of(labels), got) == naive.mistaken(labels, got)


def sparse_of(labels):
    return sparse.csc_array(labels.astype(np.int8))


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.booleans(), st.booleans()), min_size=1, max_size=12))
def test_label_issues_are_those_of_confident_learning_the_surest_first(rows):
    probabilities = np.array([row[:2] for row in rows])
    labels = np.array([row[2:] for row in rows])
    found = figures.find_label_issues(probabilities, sparse_of(labels))
    assert {(one.document, one.topic, one.has_it) for one in found} == naive.label_issues(probabilities, labels)
    doubts = [one.probability if one.has_it else 1 - one.probability for one in found]
    assert doubts == sorted(doubts)
