"""The rules that the study of stopping tried are those of their papers."""

import importlib
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture
def rules(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS / "benchmarks"))
    return importlib.import_module("stopping_rules")


def t_of(answers):
    return np.flatnonzero(answers) + 1.0


def p_of_buscarpy(answers, n_documents, target):
    """The p-value as the paper has it: over every number of last answers."""
    r, values = answers.sum(), []
    for s in range(1, len(answers) + 1):
        k = answers[len(answers) - s :].sum()
        least = math.floor(r / target + 1e-9) + 1 - (r - k)  # relevant ones in the urn if the target is missed
        urn = n_documents - (len(answers) - s)
        # More relevant documents than the urn has: the target cannot be missed.
        values.append(stats.hypergeom.cdf(k, urn, least, s) if least <= urn else 0.0)
    return min(values)


@pytest.mark.parametrize("target", [0.8, 0.95])
def test_the_hypergeometric_rule_is_the_p_value_of_the_paper(rules, target):
    rng = np.random.default_rng(0)
    for n, n_documents, fall in ((30, 40, 3), (200, 400, 15), (60, 1000, 40)):
        answers = rng.random(n) < np.exp(-np.arange(n) / n_documents * fall) / 5
        answers[0] = True
        finds = rules.Finds(t_of(answers), n, n_documents)
        m = math.floor(finds.r / target - finds.r + 1e-9)
        assert finds.r < rules.STRETCHES
        p = 1 - rules.hypergeometric(finds, m)
        assert p == pytest.approx(p_of_buscarpy(answers, n_documents, target), abs=1e-9)


def test_who_is_exactly_as_sure_as_is_asked_for_may_stop(rules):
    # One more among 666: half of the others must be seen. One among 20, and 19/20 are asked for: all but one.
    for n_documents, confidence, more in ((667, 0.5, 333), (21, 0.95, 19)):
        for n, expected in ((1 + more, True), (more, False)):
            finds = rules.Finds(np.ones(1), n, n_documents)
            assert rules.may_stop("hypergeometric", finds, 0.95, confidence) == expected


def test_of_many_finds_only_promising_stretches_are_looked_at_and_the_p_value_stays(rules):
    rng = np.random.default_rng(0)
    for fall in (3, 10, 20, 30):
        answers = rng.random(1500) < np.exp(-np.arange(1500) / 3000 * fall)
        finds = rules.Finds(t_of(answers), 1500, 3000)
        ours = 1 - rules.hypergeometric(finds, math.floor(finds.r / 0.95 - finds.r + 1e-9))
        expected = p_of_buscarpy(answers, 3000, 0.95)
        assert expected - 1e-9 <= ours <= 1.05 * expected + 1e-9


def test_the_hypergeometric_rule_is_that_of_buscarpy(rules):
    buscarpy = pytest.importorskip("buscarpy", reason="buscarpy is not installed")
    rng = np.random.default_rng(1)
    for fall in (5, 15, 25):
        answers = rng.random(200) < np.exp(-np.arange(200) / 400 * fall) / 10
        finds = rules.Finds(t_of(answers), 200, 400)
        ours = 1 - rules.hypergeometric(finds, math.floor(finds.r / 0.95 - finds.r + 1e-9))
        assert ours == pytest.approx(buscarpy.calculate_h0(answers.astype(int), 400), abs=1e-9)


def test_chaos_estimator_is_the_formula(rules):
    # 12 finds that one ranker would have made, 5 that two would have: 12 · 11 / (2 · 6) = 11 are missing.
    finds = rules.Finds(np.arange(1.0, 38.0), 77, 10_000, (12, 5))
    missing, f1, f2 = 11, 12, 5
    variance = missing + f1 * 23**2 / (4 * 36) + f1**2 * f2 * 11**2 / (4 * 6**4)
    most = missing * math.exp(stats.norm.ppf(0.95) * math.sqrt(math.log(1 + variance / missing**2)))
    assert rules.chao(finds, math.ceil(most)) >= 0.95 > rules.chao(finds, math.ceil(most) - 1)
    assert rules.chao(finds, 11) == pytest.approx(0.5)


def test_chaos_rule_does_not_stop_because_all_rankers_agree_on_the_first_finds(rules):
    assert not rules.may_stop("chao", rules.Finds(np.arange(1.0, 7.0), 20, 1000, (0, 0)), 0.95, 0.95)


@pytest.mark.parametrize("b", [0.5, 1.0, 1.5])
def test_the_poisson_rule_finds_the_law_that_finds_follow(rules, b):
    # Finds at the quantiles of a rate x^-b: as many as that are to be expected behind them.
    def integral(x0, x1):
        return math.log(x1 / x0) if b == 1 else (x1 ** (1 - b) - x0 ** (1 - b)) / (1 - b)

    area = (np.arange(400) + 0.5) / 400 * integral(0.5, 2000.5)
    t = 0.5 * np.exp(area) if b == 1 else (area * (1 - b) + 0.5 ** (1 - b)) ** (1 / (1 - b))
    expected = 400 * integral(2000.5, 10_000.5) / integral(0.5, 2000.5)
    assert rules.expected_missing(rules.Finds(t, 2000, 10_000)) == pytest.approx(expected, rel=0.02)


def test_the_knee_is_where_the_curve_lies_farthest_above_the_line(rules):
    # 20 finds in 20 answers, and one more in the next 380: 20/20 before the knee, (1 + 1)/380 behind it.
    answers = np.zeros(400, bool)
    answers[:20] = answers[200] = True
    assert rules.steepness(rules.Finds(t_of(answers), 400, 5000)) == pytest.approx(1 / (2 / 380))


def test_no_rule_stops_after_one_find_in_a_large_pool_and_all_stop_at_its_end(rules):
    for rule in rules.RULES:
        assert not rules.may_stop(rule, rules.Finds(np.ones(1), 2, 5000, (1, 0)), 0.95, 0.95)
        assert rules.may_stop(rule, rules.Finds(np.ones(1), 5000, 5000, (1, 0)), 0.95, 0.95)
