"""Alarms are rarely false, however often one looks, and come soon when a rate has changed."""

import numpy as np
import pytest

from textcat.trends import alarms
from textcat.trends.alarms import find_alarms

N = 100  # documents a day


def mixed_likelihood(k, n, scales=(0.5, 5, 50, 500)):
    """The likelihood of k of n under Beta(1/2, scale) rates, as a sum over a grid."""
    grid = (np.arange(200_000) + 0.5) / 200_000
    densities = [grid**-0.5 * (1 - grid) ** (scale - 1) for scale in scales]
    return np.mean([(density * grid**k * (1 - grid) ** (n - k)).sum() / density.sum() for density in densities])


def naive_e_value(reference, n_reference, counts, n):
    """The e-value of one rate after the last day, by its definition, with the integrals as sums over a grid."""
    values = []
    for start in range(0, len(n), 7):
        before, n_before = reference + sum(counts[:start]), n_reference + sum(n[:start])
        since, n_since = sum(counts[start:]), sum(n[start:])
        averaged = mixed_likelihood(before, n_before)
        p = (before + 0.5) / (n_before + 1)
        changed = mixed_likelihood(since, n_since, [0.5]) / 7
        for factor in (1.5, 2, 4, 1 / 1.5, 1 / 2, 1 / 4):
            q = factor * p / (1 - p + factor * p)
            changed += q**since * (1 - q) ** (n_since - since) / 7
        k, all_n = before + since, n_before + n_since
        values.append(averaged * changed / ((k / all_n) ** k * (1 - k / all_n) ** (all_n - k)))
    return np.mean(values)


@pytest.mark.parametrize(("reference", "counts"), [(3, [1, 0, 2, 1, 0, 1, 2, 5, 6, 4]), (12, [0] * 9)])
def test_the_e_process_is_that_of_its_definition(reference, counts):
    n = [20] * len(counts)
    process = alarms.EProcess(np.array([reference]), 60, np.array(counts)[:, None], np.array(n))
    values = [process.since_day(start)[-1, 0] for start in range(0, len(n), 7)]
    assert np.exp(values).mean() == pytest.approx(naive_e_value(reference, 60, counts, n), rel=0.02)


def test_few_quiet_years_have_an_alarm_and_most_of_those_in_which_a_rate_doubles():
    chance, n = np.random.default_rng(0), np.full(365, N)
    rates = np.exp(chance.uniform(np.log(0.001), np.log(0.1), 20))
    quiet, told = 0, []
    for year in range(15):
        reference = chance.binomial(10_000, rates)
        counts = chance.binomial(N, rates, (365, 20))
        quiet += bool(find_alarms(reference, 10_000, counts, n, level=0.2))
        column, day = year % 20, 100
        if rates[column] > 0.01:
            counts[day:, column] = chance.binomial(N, 2 * rates[column], 365 - day)
            found = [alarm for alarm in find_alarms(reference, 10_000, counts, n) if alarm.column == column]
            told += [alarm.told - day for alarm in found] or [365]
            assert all(abs(alarm.since - day) < 40 for alarm in found)
            assert all(alarm.now > 1.5 * alarm.before for alarm in found)
    assert quiet <= 3  # of 15: the level is a bound
    assert 0 <= np.median(told) < 60
    assert np.mean(np.array(told) < 200) > 0.9


def test_a_rate_that_changes_for_good_is_told_once():
    counts = np.concatenate([np.full((28, 1), 2), np.full((337, 1), 12)])
    (found,) = find_alarms(np.array([200]), 10_000, counts, np.full(365, N))
    assert found.since == 28
    assert found.before == pytest.approx(0.02, abs=0.005)
    assert found.now == pytest.approx(0.12, abs=0.02)


def test_many_rates_in_blocks_are_as_together(monkeypatch):
    chance = np.random.default_rng(1)
    counts = chance.binomial(N, [0.02, 0.05, 0.2] * 3, (60, 9))
    counts[20:, [1, 7]] *= 3
    arguments = np.full(9, 300), 10_000, counts, np.full(60, N)
    together = find_alarms(*arguments)
    monkeypatch.setattr(alarms, "AT_ONCE", 2)
    assert find_alarms(*arguments) == together
    assert {1, 7} <= {alarm.column for alarm in together}


def test_days_without_documents_and_rates_of_zero_and_one_are_no_alarm():
    counts, n = np.zeros((40, 2), int), np.zeros(40, int)
    n[::2] = N
    counts[::2, 1] = N
    assert not find_alarms(np.array([0, 5000]), 5000, counts, n)
    assert not find_alarms(np.zeros(0, int), 10, np.zeros((5, 0), int), np.zeros(5, int))
