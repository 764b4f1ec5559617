"""What is promised is kept as often as was said, and nothing more is promised than the tests allow."""

import naive_promises
import numpy as np
import pytest
from cases import every
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from textcat.base.calibration import Calibration
from textcat.evaluation.promises import (
    ALL_TOPICS,
    TOGETHER,
    CheckedPromise,
    Promises,
    Status,
    Verdict,
    binomial_p_value,
    check_promises,
    clopper_pearson,
    limit_missed,
    promise_precision,
    promise_recall,
    promise_together,
)

COUNTS = st.integers(0, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
SHARES = st.floats(0.5, 0.99)


def drawn(seed, n, n_topics, steepness=2.0):
    """Scores whose probabilities are known, and labels drawn by these."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(-1.5, 1.5, (n, n_topics)).astype(np.float32)
    curves = Calibration(np.full(n_topics, steepness), np.linspace(-1, 1, n_topics))
    return scores, rng.random((n, n_topics)) < curves.probabilities(scores), curves


@given(COUNTS, SHARES)
def test_the_test_is_the_exact_binomial_one(counts, share):
    correct, documents = counts
    expected = binom.sf(correct - 1, documents, share)
    assert binomial_p_value(correct, documents, share) == pytest.approx(expected, rel=1e-9, abs=1e-300)


@given(COUNTS)
def test_intervals_are_those_of_clopper_and_pearson(counts):
    correct, documents = counts
    bounds = clopper_pearson(correct, documents)
    if documents:
        expected = binomtest(correct, documents).proportion_ci(0.95, "exact")
        assert bounds == pytest.approx([expected.low, expected.high], abs=1e-12)
    else:
        assert bounds.tolist() == [0, 1]


@given(COUNTS, SHARES, st.sampled_from([0.8, 0.9, 0.95]))
def test_a_test_succeeds_where_the_lower_bound_reaches_the_share(counts, share, confidence):
    correct, documents = counts
    if not documents:
        return
    low, _ = clopper_pearson(correct, documents, 2 * confidence - 1)
    p = binomial_p_value(correct, documents, share)
    assert (p <= 1 - confidence) == (low >= share) or abs(low - share) < 1e-9


@given(st.integers(0, 10**6), st.sampled_from([0.6, 0.8, 0.9]), st.sampled_from([0.8, 0.9]), st.booleans())
def test_a_precision_is_promised_as_the_plainest_program_does(seed, share, confidence, are_tied):
    scores, Y, curves = drawn(seed, 150, 4, steepness=3.0)
    if are_tied:
        scores = np.round(scores, 1)
    thresholds, documents, correct = promise_precision(scores, Y, share, confidence, curves)
    expected = naive_promises.precision(scores, Y, curves.probabilities(scores), share, confidence)
    assert list(zip(documents.tolist(), correct.tolist(), strict=True)) == expected
    for j, threshold in enumerate(thresholds):
        assert (scores[:, j] > threshold).sum() == documents[j]
        assert Y[scores[:, j] > threshold, j].sum() == correct[j]


@given(st.integers(0, 10**6), st.sampled_from([0.6, 0.8, 0.9]), st.sampled_from([0.8, 0.9]))
def test_a_recall_is_promised_as_the_plainest_program_does(seed, share, confidence):
    scores, Y, _ = drawn(seed, 80, 3)
    for j, threshold in enumerate(promise_recall(scores, Y, share, confidence)):
        k = naive_promises.recall(scores[:, j], Y[:, j], share, confidence)
        if k is None:
            assert threshold == -np.inf
        else:
            positives = scores[Y[:, j], j]
            assert (positives > threshold).sum() == k  # and hence with any higher threshold fewer


def test_documents_outside_a_topics_sample_do_not_count():
    scores, Y, curves = drawn(1, 400, 2)
    outside = np.random.default_rng(2).random(400) < 0.3
    with_nan, inside = scores.copy(), ~outside
    with_nan[outside, 0] = np.nan
    without = promise_precision(scores[inside], Y[inside], 0.8, 0.9, curves)
    of_topic = promise_precision(with_nan[:, :1], Y[:, :1], 0.8, 0.9, curves.of_topics(np.array([0])))
    alone = promise_precision(scores[inside, :1], Y[inside, :1], 0.8, 0.9, curves.of_topics(np.array([0])))
    assert [part[0] for part in of_topic] == [part[0] for part in alone]
    assert len(without[0]) == 2


def test_twenty_two_right_documents_are_the_fewest_for_nine_tenths():
    scores = np.arange(100, dtype=np.float32)[:, None]
    for n, is_promised in ((21, False), (22, True)):
        curves = Calibration(np.full(1, 5.0), np.full(1, -5 * (99.5 - n)))  # positives are likely, others are not
        Y = np.arange(100)[:, None] >= 100 - n
        assert np.isfinite(promise_precision(scores, Y, 0.9, 0.9, curves)[0]).all() == is_promised
        assert np.isfinite(promise_recall(scores, Y, 0.9, 0.9)).all() == is_promised


def test_topics_of_which_nothing_is_asked_get_no_promise():
    scores, Y, curves = drawn(3, 2000, 3)
    thresholds, documents, _ = promise_precision(scores, Y, [np.nan, 0.8, np.nan], 0.9, curves)
    assert np.isinf(thresholds).tolist() == [True, False, True]
    assert documents[0] == 0
    assert np.isinf(promise_recall(scores, Y, [np.nan, 0.8, np.nan], 0.9)).tolist() == [True, False, True]


@pytest.mark.parametrize("share", [0.8, 0.9])
def test_promises_of_precision_are_kept_as_often_as_said(share):
    """Also where most topics are too hard for the promise, and only luck gives them one."""
    kept = given_promises = 0
    curves = Calibration(np.linspace(0.7, 2.5, 12) / (1 - share) / 5, np.zeros(12))
    later = curves.probabilities(np.random.default_rng(60).normal(-1.5, 1.5, (50_000, 1)).repeat(12, axis=1))
    for seed in range(30):
        rng = np.random.default_rng(seed)
        scores = rng.normal(-1.5, 1.5, (600, 12)).astype(np.float32)
        p = curves.probabilities(scores)
        thresholds, documents, _ = promise_precision(scores, rng.random(p.shape) < p, share, 0.9, curves)
        for j in np.flatnonzero(documents):
            given_promises += 1
            at = curves.of_topics(np.array([j])).probabilities(np.array([[thresholds[j]]]))
            kept += later[later[:, j] > at[0, 0], j].mean() >= share
    assert given_promises > 50
    assert kept / given_promises >= 0.9


def test_promises_of_recall_are_kept_as_often_as_said():
    kept = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        Y = np.ones((50, 1), bool)
        threshold = promise_recall(rng.normal(size=(50, 1)), Y, 0.8, 0.9)[0]
        kept.append((rng.normal(size=20_000) > threshold).mean() >= 0.8)
    assert 0.9 <= np.mean(kept) <= 0.97  # the numbers of documents are whole, so that it is a little more


def test_small_topics_are_promised_together():
    scores, Y, curves = drawn(5, 60, 40, steepness=4.0)
    assert np.isinf(promise_precision(scores, Y, 0.9, 0.95, curves)[0]).all()
    thresholds, documents, correct = promise_together(scores, Y, 0.9, 0.95, curves)
    given = scores > thresholds
    assert given.sum() == documents > 0
    assert (given & Y).sum() == correct
    assert binomial_p_value(correct, documents, 0.9) <= 0.05
    at = curves.probabilities(thresholds[None])
    assert at == pytest.approx(np.full_like(at, at[0, 0]))  # the same probability for all


@given(st.integers(0, 10**6), st.sampled_from([0.1, 0.2, 0.5]), st.booleans())
def test_a_limit_of_what_is_missed_is_the_highest_that_risk_control_allows(seed, share, are_tied):
    scores, Y, curves = drawn(seed, 60, 4)
    p = np.round(curves.probabilities(scores), 1) if are_tied else curves.probabilities(scores)
    limit = limit_missed(p, Y, share)

    def is_allowed(probability):
        mean, n = naive_promises.missed(p.tolist(), Y.tolist(), probability)
        return (n * mean + 1) / (n + 1) <= share + 1e-9

    assert is_allowed(limit) or limit <= 0
    higher = [value for value in {*p[Y].tolist()} if value > limit]
    assert not any(map(is_allowed, higher))


def test_what_is_missed_of_documents_labelled_for_some_topics_is_of_these():
    """A document's share of missed topics is that of the topics it was labelled for; one without any does not count."""
    scores, Y, curves = drawn(7, 300, 6)
    p = curves.probabilities(scores)
    is_labelled = np.random.default_rng(8).random(p.shape) < 0.6
    limit = limit_missed(np.where(is_labelled, p, np.nan), Y & is_labelled, 0.2)
    mean, n = naive_promises.missed(p.tolist(), (Y & is_labelled).tolist(), limit)
    assert 0.15 < (n * mean + 1) / (n + 1) <= 0.2
    assert limit == limit_missed(p, Y & is_labelled, 0.2)


def test_documents_whose_topic_has_no_score_do_not_limit_what_is_missed():
    scores, Y, curves = drawn(9, 300, 6)
    p = curves.probabilities(scores)
    has_topic = Y[:, 0]
    p[has_topic, 0] = np.nan
    assert limit_missed(p, Y, 0.2) == limit_missed(p[~has_topic], Y[~has_topic], 0.2)


def test_too_few_documents_cannot_limit_what_is_missed():
    with pytest.raises(ValueError, match="2 documents with topics are too few"):
        limit_missed(np.array([[0.5], [0.4]]), np.array([[True], [True]]), 0.1)


def some_promises():
    """Of a topic with both promises, one with a recall, one without any, and two that are promised together."""
    nan, inf = np.nan, np.inf
    return Promises(
        precision=np.array([0.9, nan, nan, 0.8, 0.8]),
        recall=np.array([0.9, 0.9, nan, nan, nan]),
        confidence=np.full(5, 0.9),
        threshold=np.array([1.0, inf, inf, 0.5, 0.6]),
        review_threshold=np.array([0.0, -1.0, 0.0, 0.0, 0.0]),
        documents=np.array([30.0, 0, 0, 25, 25]),
        correct=np.array([29.0, 0, 0, 24, 24]),
        together=np.array([0.0, 0, 0, 1, 1]),
    )


def test_a_status_follows_from_both_thresholds():
    promises, columns = some_promises(), np.array([0, 0, 0, 1, 2, 3])
    scores = np.array([1.1, 1.0, 0.0, 5.0, -0.1, 0.55])
    expected = [Status.AUTOMATIC, Status.REVIEW, None, Status.REVIEW, None, Status.AUTOMATIC]
    assert promises.statuses(scores, columns) == expected
    assert promises.statuses(scores, columns, all_given=True)[2] is Status.REVIEW


def test_promises_survive_as_a_table_and_by_topics():
    promises = some_promises()
    assert np.array_equal(Promises.from_table(promises.as_table(), 5).as_table(), promises.as_table(), equal_nan=True)
    by_topic = promises.by_topic(["wheat", "b", "tin", "d", "e"])
    assert promises.of_topics(np.array([3, 0])).by_topic(["d", "wheat"])["wheat"] == by_topic["wheat"]
    assert by_topic["wheat"][:3] == ("wheat", 0.9, 0.9)
    assert by_topic["tin"][1:3] == (None, None)
    for table in (promises.as_table()[:-1], np.full((8, 5), np.nan)):
        with pytest.raises(ValueError, match="no promises"):
            Promises.from_table(table, 5)


@every(
    "documents, right, verdict",
    [(0, 0, "not tested"), (10, 9, "kept"), (10, 8, "below, by chance"), (100, 70, "broken")],
)
def test_a_verdict_tells_chance_from_a_broken_promise(documents, right, verdict):
    checked = CheckedPromise.of("wheat", "precision", 0.9, documents, right)
    assert checked.verdict == Verdict(verdict)
    assert CheckedPromise.from_dict({**vars(checked), "interval": list(checked.interval)}) == checked


def test_promises_are_checked_on_documents_with_known_topics():
    scores = np.array([[2.0, 0, 0, 1, 0], [0.5, -0.5, 1, 0, 1], [-1, -2, -1, 0.2, 0.1]])
    relevant = np.array([[1, 1, 0, 1, 0], [1, 1, 1, 0, 0], [1, 0, 0, 0, 0]])
    promises = some_promises()
    checked = check_promises(promises, [*"abcde"], scores, relevant, scores > promises.review_threshold)
    assert [(promise.topic, promise.measure, promise.documents, promise.right) for promise in checked] == [
        ("a", "precision", 1, 1),
        (TOGETHER, "precision", 2, 1),
        ("a", "recall", 3, 2),
        ("b", "recall", 2, 2),
    ]


@every(
    "missed, scale, verdict",
    [(0.2, 1, "kept"), (0.15, 1, "below, by chance"), (0.1, 100, "broken"), (0.15, 0, "not tested")],
)
def test_a_promise_of_missed_topics_is_checked_as_a_sample_recall(missed, scale, verdict):
    """Of three documents with topics, one misses one of its two topics; one document has no topic."""
    relevant = np.tile([[1, 1], [1, 0], [0, 1], [0, 0]], (scale, 1))
    scores = np.tile([[1.0, -1], [1, 1], [0, 1], [1, 1]], (scale, 1))
    promises = Promises(*some_promises().as_table()[:, [2, 2]])
    (checked,) = check_promises(promises, ["a", "b"], scores, relevant, scores > 0, missed)
    assert (checked.topic, checked.measure, checked.promised) == (ALL_TOPICS, "sample recall", 1 - missed)
    assert (checked.documents, checked.right) == (3 * scale, 2 * scale)
    assert checked.share == (pytest.approx(5 / 6) if scale else None)
    assert checked.interval == pytest.approx(clopper_pearson(2.5 * scale, 3 * scale))
    assert checked.verdict == Verdict(verdict)
    assert CheckedPromise.from_dict({**vars(checked), "interval": list(checked.interval)}) == checked


@every("share, of_mapie", [(0.05, 0.059), (0.1, 0.092), (0.3, 0.245)])
def test_missed_topics_are_limited_at_the_threshold_that_mapie_finds(share, of_mapie):
    """MAPIE 1.6.0, `MultiLabelClassificationController(…, risk="recall", method="crc")`, on a grid of thousandths."""
    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 2, (400, 6))
    labels = rng.random(p.shape) < p
    assert of_mapie <= limit_missed(p, labels, share) < of_mapie + 0.001
