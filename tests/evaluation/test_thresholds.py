"""A threshold is the best of all cuts there are."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from textcat.base.calibration import Calibration
from textcat.evaluation.thresholds import choose_thresholds, expected_f1_cut, p_cut, s_cut

TIED = st.sampled_from([-1.5, 0.0, 0.1, 2.0])
WIDE = st.floats(allow_nan=False, allow_infinity=False, width=32)
LABELS_AND_SCORES = st.lists(st.tuples(st.booleans(), st.one_of(TIED, WIDE)), min_size=1, max_size=15)


def columns(pairs):
    """Labels and scores of a single topic."""
    return np.array([[label] for label, _ in pairs]), np.array([[score] for _, score in pairs], dtype=np.float32)


def all_cuts(scores):
    """What each threshold there is lets pass, from everything to nothing."""
    return [scores > theta for theta in [-np.inf, *np.unique(scores)]]


def passed(scores, threshold):
    assert threshold.dtype == scores.dtype
    return scores > threshold


@given(LABELS_AND_SCORES)
def test_s_cut_has_the_largest_f1_of_all_cuts_and_the_highest_of_equals(pairs):
    labels, scores = columns(pairs)
    decision = passed(scores, s_cut(scores, labels))
    if not labels.any():
        assert not decision.any()
        return
    f1 = [f1_score(labels, cut, zero_division=0) for cut in all_cuts(scores)]
    best = [cut for cut, value in zip(all_cuts(scores), f1, strict=True) if value == pytest.approx(max(f1))]
    np.testing.assert_array_equal(decision, best[-1])


@given(LABELS_AND_SCORES)
def test_p_cut_lets_as_many_pass_as_have_the_topic_and_never_parts_equals(pairs):
    labels, scores = columns(pairs)
    k = labels.sum()
    decision = passed(scores, p_cut(scores, labels))
    ranked = np.sort(scores.ravel())[::-1]
    together = 0 < k < len(scores) and ranked[k - 1] == ranked[k]
    assert decision.sum() == (np.count_nonzero(ranked > ranked[k]) if together else k)


def test_a_threshold_lies_in_the_middle_and_between_neighbouring_numbers_on_the_lower():
    assert s_cut([[3.0], [1.0], [0.0]], [[1], [0], [0]]) == [2.0]
    above = np.nextafter(np.float32(1), np.float32(2))
    assert s_cut(np.array([[above], [1]], np.float32), [[1], [0]]) == [1.0]
    largest = np.finfo(np.float32).max
    with np.errstate(over="ignore"):
        threshold = s_cut(np.array([[largest], [-largest]], np.float32), [[1], [0]])
    assert -largest <= threshold[0] < largest


def test_a_topic_that_every_document_has_gets_a_finite_threshold_that_all_pass():
    scores = np.array([[1.0], [2.0]], np.float32)
    threshold = s_cut(scores, [[1], [1]])
    assert np.isfinite(threshold).all()
    assert (scores > threshold).all()


@pytest.mark.parametrize("cut", [s_cut, partial(s_cut, fbr=0.1)])
def test_a_topic_without_a_positive_gets_an_infinite_threshold(cut):
    assert cut([[1.0, 1.0], [2.0, 2.0]], [[0, 0], [1, 0]]).tolist() == [1.5, np.inf]


def test_s_cut_falls_back_to_the_highest_score_where_f1_is_low():
    scores = np.arange(40.0)[:, np.newaxis]
    labels = scores == 0  # the only positive comes last: F1 = 2/41
    assert s_cut(scores, labels) < 0
    assert s_cut(scores, labels, fbr=0.1).tolist() == [39.0]
    assert s_cut(scores, labels, fbr=2 / 41) == s_cut(scores, labels)


@given(st.lists(st.tuples(st.one_of(TIED, WIDE), st.floats(0, 1)), min_size=1, max_size=12))
def test_expected_f1_cut_has_the_largest_expected_f1_of_all_cuts(pairs):
    scores = np.sort(np.array([[score] for score, _ in pairs], np.float32), axis=0)
    probabilities = np.sort([[p] for _, p in pairs], axis=0)

    def expected_f1(cut):
        return 2 * probabilities[cut].sum() / (cut.sum() + probabilities.sum()) if cut.any() else 0

    decision = passed(scores, expected_f1_cut(scores, probabilities))
    assert expected_f1(decision) == pytest.approx(max(map(expected_f1, all_cuts(scores))))


def test_at_the_cut_of_largest_expected_f1_the_probability_is_half_of_it():
    scores = np.linspace(-5, 5, 10_001)[:, np.newaxis]
    p = Calibration(np.array([2.0]), np.array([-1.0]))
    threshold = expected_f1_cut(scores, p.probabilities(scores))
    above = p.probabilities(scores)[scores > threshold]
    best = 2 * above.sum() / (above.size + p.probabilities(scores).sum())
    assert p.probabilities(threshold) == pytest.approx(best / 2, abs=1e-3)


def test_with_few_documents_per_topic_a_single_topic_is_that_of_the_highest_score():
    rng = np.random.default_rng(0)
    labels = np.eye(10, dtype=int)[rng.integers(0, 10, 200)]
    scores = labels + rng.normal(0, 1, labels.shape) * np.linspace(0.3, 3, 10)
    for n, is_shared in ((99, True), (100, False)):
        curves = choose_thresholds("single", scores[:n], labels[:n])[1]
        assert (len({*curves.a}) == len({*curves.b}) == 1) == is_shared
    shared = choose_thresholds("single", scores[:99], labels[:99])[1]
    probabilities = shared.probabilities(scores)
    np.testing.assert_array_equal(probabilities.argmax(axis=1), scores.argmax(axis=1))
    assert probabilities.mean() == pytest.approx(0.1, abs=0.02)
    assert len({*choose_thresholds("scut", scores[:99], labels[:99])[1].a}) > 1  # as before
