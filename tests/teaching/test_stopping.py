"""Rules of stopping: what they say is what their papers' formulas say, and they never contradict themselves."""

import itertools
import math

import numpy as np
import pytest
from cases import every
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from textcat.base.errors import TextcatError
from textcat.teaching import stopping
from textcat.teaching.stopping import RULES, History, Stopper


def estimate(history, *settings):
    return Stopper(*settings).estimate(history)


def may_stop(history, *settings):
    return Stopper(*settings).may_stop(history)


@st.composite
def histories(draw, most=400):
    n_documents = draw(st.integers(1, most))
    n = draw(st.integers(0, n_documents))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    answers = rng.random(n) < np.exp(-np.arange(n) / n_documents * draw(st.floats(0, 30))) * draw(st.floats(0, 1))
    at_random = rng.random(n) < draw(st.sampled_from([0.0, 0.1, 0.5]))
    return History(answers, at_random, n_documents)


def course_of(answers, n_documents):
    answers = np.asarray(answers, bool)
    return stopping.course_of_history(History(answers, np.zeros(len(answers), bool), n_documents))


@given(histories(), st.sampled_from(RULES), st.sampled_from([0.8, 0.95]), st.sampled_from([0.5, 0.9, 0.95]))
def test_an_estimate_is_a_band_around_the_recall_within_what_is_possible(history, rule, target, confidence):
    found, of = int(history.answers.sum()), estimate(history, rule, target, confidence)
    assert (of.more == 0) == may_stop(history, rule, target, confidence)
    assert of.more is None or 0 <= of.more <= history.n_documents - len(history.answers)
    assert 0 <= of.low <= of.recall <= of.high <= 1
    assert found <= of.relevant <= history.n_documents - len(history.answers) + found
    assert of.low >= found / history.n_documents
    assert len(history.answers) < history.n_documents or of.low == 1


@given(histories(), st.sampled_from(RULES))
def test_one_may_stop_where_the_lower_bound_is_at_the_target(history, rule):
    of = estimate(history, rule, 0.9, 0.95)
    if history.answers.any():
        assert (of.low >= 0.9 - 1e-12) == (of.more == 0)


@given(histories(), st.sampled_from(RULES))
def test_more_is_less_sure_of_more_documents_and_surer_with_less_confidence(history, rule):
    sure = (
        stopping.SURE[rule](stopping.course_of_history(history))
        if history.answers.any()
        else stopping.probability_of_none
    )
    values = [sure(m) for m in range(8)]
    assert all(0 <= value <= 1 for value in values)
    assert all(after >= before - 1e-9 for before, after in itertools.pairwise(values))
    lows = [estimate(history, rule, 0.95, confidence).low for confidence in (0.5, 0.8, 0.95, 0.99)]
    assert lows == sorted(lows, reverse=True)


@given(histories())
def test_after_as_many_answers_no_as_it_says_one_may_stop_and_not_one_sooner(history):
    more = estimate(history).more
    for n, expected in ((more, True), (more - 1, False)):
        if n >= 0:
            answers = np.concatenate([history.answers, np.zeros(n, bool)])
            later = History(answers, np.zeros(len(answers), bool), history.n_documents)
            assert may_stop(later) == expected


def test_the_rule_of_the_sample_is_the_binomial_bound():
    answers, at_random = np.zeros(300, bool), np.ones(300, bool)
    answers[:3] = True
    at_random[:3] = False
    sure = stopping.SURE["sample"](stopping.course_of_history(History(answers, at_random, 1003)))
    assert sure(9) == pytest.approx(1 - (1 - 10 / 1000) ** 297)


def test_the_rule_of_the_sample_covers_the_recall_whatever_the_ranker_does():
    rng, missed, n_runs = np.random.default_rng(2), 0, 400
    for _ in range(n_runs):
        open_ones, answers, at_random = list(rng.random(120) < 0.3), [], []
        relevant = sum(open_ones)
        while open_ones:
            drawn = rng.random() < 0.5
            answers.append(open_ones.pop(rng.integers(len(open_ones)) if drawn else int(np.argmax(open_ones))))
            at_random.append(drawn)
            if len(answers) == 70:
                break
        of = estimate(History(answers, at_random, 120), "sample", 0.9, 0.9)
        missed += of.low > sum(answers) / max(relevant, 1)
    assert missed <= stats.binom.ppf(0.999, n_runs, 0.1)


def test_the_learned_rule_is_its_formula():
    answers = np.zeros(200, bool)
    answers[[0, 3, 4, 9, 30, 90, 150]] = True
    a, odds = stopping.fit_missing(course_of(answers, 1000))
    t, (c, p, spread) = np.flatnonzero(answers) + 1, stopping.CONSTANTS
    recent = 1 + sum((at / 200) ** 8 for at in t)
    assert a == pytest.approx(spread * recent)
    assert odds == pytest.approx(c * (100 * recent / 200) ** p * 800.5 / 1000)
    sure = stopping.SURE["learned"](course_of(answers, 1000))
    assert sure(3) == pytest.approx(stats.nbinom.cdf(3, a, 1 / (1 + odds)))
    of = estimate(History(answers, np.zeros(200, bool), 1000))
    assert of.relevant == pytest.approx(np.clip(7 + stats.nbinom.mean(a, 1 / (1 + odds)), 7 / of.high, 7 / of.low))


@given(histories())
def test_a_no_makes_the_learned_rule_surer(history):
    course = stopping.course_of_history(history)
    if course.r > 0 and course.n < course.N:
        before, after = (stopping.sure_missing(course._replace(n=course.n + k)) for k in (0, 1))
        assert all(after(m) >= before(m) - 1e-12 for m in range(20))


def test_nothing_found_is_no_reason_to_stop():
    history = History(np.zeros(30, bool), np.zeros(30, bool), 1000)
    for rule in RULES:
        of = estimate(history, rule)
        assert of.more != 0
        assert of.low == 0


@every(
    "rule, target, confidence, said",
    [
        ("fifty in a row", 0.95, 0.95, "No stopping rule 'fifty in a row'"),
        ("learned", 1.0, 0.95, "a recall of 1.0"),
        ("learned", 0.95, 0.3, "confidence 0.3"),
    ],
)
def test_what_cannot_be_asked_for_is_said(rule, target, confidence, said):
    for ask in (estimate, may_stop):
        with pytest.raises(TextcatError, match=said):
            ask(History([True], [False], 10), rule, target, confidence)


def test_more_answers_than_documents_are_refused():
    with pytest.raises(TextcatError, match="11 answers for 10 documents"):
        estimate(History(np.ones(11, bool), np.zeros(11, bool), 10))


def test_the_learned_rule_keeps_its_word_on_urns():
    # buscarpy's urns: a relevant document is drawn some times as readily as another. 95 of 100 are promised.
    rng, kept, cost = np.random.default_rng(3), 0, []
    for _ in range(20):
        n = int(rng.integers(1000, 3000))
        labels = np.arange(n) < n * rng.uniform(0.01, 0.1)
        labels = labels[np.argsort(rng.exponential(size=n) / np.where(labels, rng.uniform(5, 50), 1))]
        k = 50
        while not may_stop(History(labels[:k], np.zeros(k, bool), n)):
            k += max(1, k // 25)
        needed = np.flatnonzero(labels)[math.ceil(0.95 * labels.sum() - 1e-9) - 1] + 1
        kept += labels[:k].sum() >= 0.95 * labels.sum() - 1e-9
        cost.append(min(k, n) / needed)
    assert kept >= 17  # fewer in one of 400 such tests
    assert np.median(cost) < 3
