"""Measures are what their definitions say, and what others compute."""

import math
import runpy

import numpy as np
import optional_tools
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from textcat.teaching import measures

answers_of_a_person = st.lists(st.booleans(), min_size=2, max_size=60).filter(lambda a: 0 < sum(a) < len(a))


def naive_loss(answers):
    """Return the areas under the three recall curves, a step for each answer."""
    n, r = len(answers), sum(answers)

    def area(order):
        return sum(sum(order[: k + 1]) / r for k in range(n))

    best, worst = area([1] * r + [0] * (n - r)), area([0] * (n - r) + [1] * r)
    return (best - area(answers)) / (best - worst)


def naive_answers(answers, level):
    """Return the fewest answers with that share of the relevant ones; integers, as .95 · 20 is no float."""
    return next(k for k in range(1, len(answers) + 1) if 100 * sum(answers[:k]) >= round(100 * level) * sum(answers))


@given(answers_of_a_person)
def test_measures_are_what_their_definitions_say(answers):
    found, n, r = measures.found_at(answers), len(answers), sum(answers)
    assert measures.loss(found, n) == pytest.approx(naive_loss(answers))
    for level in (0.5, 0.8, 0.95, 1.0):
        needed = naive_answers(answers, level)
        assert measures.answers_to_reach(found, level) == needed
        assert measures.wss(found, n, level) == pytest.approx(level - needed / n)
    assert measures.rrf(found, n) == sum(answers[: n // 10]) / r
    assert measures.recall_at(found, 1) == sum(answers[:r]) / r
    assert measures.recall_at(found, 2, 3) == sum(answers[: 2 * r + 3]) / r
    curve = measures.recall_curve([found], n, range(n + 3))
    assert curve.tolist() == [sum(answers[:k]) / r for k in range(n + 3)]


def insights_loss(labels):
    """Return the loss as asreview-insights 1.6 has it."""
    Ny, Nx = sum(labels), len(labels)
    return float((Ny * (Nx - (Ny - 1) / 2) - np.cumsum(labels).sum()) / (Ny * (Nx - Ny)))


def insights_recall(labels, intercept):
    """Return the recall as asreview-insights 1.6 has it."""
    x, y = np.arange(1, len(labels) + 1) / len(labels), np.cumsum(labels) / sum(labels)
    return 0 if intercept < x[0] else y[np.searchsorted(x, intercept, side="right") - 1]


@given(answers_of_a_person)
def test_loss_and_recall_are_those_of_asreview(answers):
    labels, found, n = [int(a) for a in answers], measures.found_at(answers), len(answers)
    assert measures.loss(found, n) == pytest.approx(insights_loss(labels))
    assert measures.rrf(found, n) == pytest.approx(insights_recall(labels, 0.1))


@pytest.fixture(scope="module")
def insights():
    path = optional_tools.asreview_insights()
    if path is None:
        pytest.skip("asreview-insights is not installed")
    return runpy.run_path(str(path))


@given(answers=answers_of_a_person)
def test_measures_are_those_of_the_installed_asreview_insights(insights, answers):
    labels, found, n, r = [int(a) for a in answers], measures.found_at(answers), len(answers), sum(answers)
    assert measures.loss(found, n) == pytest.approx(insights["_loss_value"](labels))
    assert [measures.recall_after(found, k) for k in range(1, n + 1)] == insights["_recall_values"](labels)[1]
    # It rounds the line of random order to whole documents, and compares with the place where that first has as many.
    levels, saved = insights["_wss_values"](labels)
    for level, its in zip(levels, saved, strict=True):
        assert abs(measures.wss(found, n, level) - its) <= 0.5 / r + 1.5 / n


def test_a_random_order_saves_nothing_and_loses_half():
    generator = np.random.default_rng(0)
    founds = [np.sort(generator.choice(1000, 50, replace=False)) + 1 for _ in range(400)]
    assert np.mean([measures.loss(found, 1000) for found in founds]) == pytest.approx(0.5, abs=0.01)
    assert np.mean([measures.wss(found, 1000) for found in founds]) == pytest.approx(0.02, abs=0.02)


def test_without_a_relevant_document_or_with_no_other_there_is_nothing_to_measure():
    assert math.isnan(measures.loss([], 5))
    assert math.isnan(measures.loss([1, 2], 2))
    assert math.isnan(measures.wss([], 5))
    assert math.isnan(measures.rrf([], 5))


@given(st.lists(st.floats(-10, 10), min_size=2, max_size=30).filter(lambda v: np.std(v) > 1e-3))
def test_the_interval_is_student_s(values):
    mean = measures.mean_of([*values, math.nan])
    low, high = stats.t.interval(0.95, len(values) - 1, loc=np.mean(values), scale=stats.sem(values))
    assert mean == pytest.approx((np.mean(values), low, high))
    assert math.isnan(measures.mean_of(values[:1]).low)
