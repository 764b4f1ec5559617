"""Alarms: how many quiet years have a false one, and how soon a rate that doubles is told."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness import Row, Work

from textcat.trends.alarms import LEVEL, YEAR, find_alarms

QUIET_YEARS, CHANGED_YEARS = 1000, 100
A_DAY, TOPICS = 100, 50  # documents, and rates that are looked at together
REFERENCES = (36_500, 5_000)  # documents
RATES = (0.001, 0.01, 0.1)
_DRAWN_YEARS = 20_000  # for the limit of the best rule


def measure(work: Work) -> list[Row]:
    """Simulate years in which nothing changes, and years in which one rate doubles on a random day."""
    return [row for n_reference in REFERENCES for row in _rows(n_reference, quick=work.quick)]


def _rows(n_reference: int, *, quick: bool) -> list[Row]:
    chance = np.random.default_rng(0)
    others = np.exp(chance.uniform(np.log(RATES[0]), np.log(RATES[-1]), TOPICS))
    n, n_quiet = np.full(YEAR, A_DAY), 20 if quick else QUIET_YEARS
    quiet = 0
    for _ in range(n_quiet):
        reference, counts = chance.binomial(n_reference, others), chance.binomial(A_DAY, others, (YEAR, TOPICS))
        quiet += bool(find_alarms(reference, n_reference, counts, n))
    rows = []
    for rate in RATES:
        limit = _best_limit(rate, chance)
        delays = np.array(
            [_delays(rate, others, limit, n_reference, chance) for _ in range(5 if quick else CHANGED_YEARS)]
        )
        textcat, best = delays.mean(axis=0)
        rows.append(
            {
                "documents before": f"{n_reference:,}",
                "rate": f"{rate:.1%}",
                "textcat, days": f"{textcat:.1f}",
                "best rule, days": f"{best:.1f}",
                "textcat / best": f"{textcat / best:.2f}",
                "quiet years with an alarm": f"{quiet / n_quiet:.3f}",
            }
        )
    return rows


def _delays(
    rate: float, others: np.ndarray, limit: float, n_reference: int, chance: np.random.Generator
) -> tuple[int, int]:
    """Return after how many days the doubled rate is told, and by the best rule; those left of the year if never."""
    day, n = int(chance.integers(30, 250)), np.full(YEAR, A_DAY)
    rates = np.append(others[1:], rate)
    counts = chance.binomial(A_DAY, rates, (YEAR, TOPICS))
    counts[day:, -1] = chance.binomial(A_DAY, 2 * rate, YEAR - day)
    found = find_alarms(chance.binomial(n_reference, rates), n_reference, counts, n)
    told = [alarm.told for alarm in found if alarm.column == TOPICS - 1 and alarm.told >= day]
    best = np.flatnonzero(_cusum(counts[:, -1:], rate)[day:, 0] >= limit) + day
    return tuple(int((days[0] if len(days) else YEAR) - day + 1) for days in (told, best))  # type: ignore[return-value]


def _cusum(counts: np.ndarray, rate: float) -> np.ndarray:
    """Return Page's statistic of each day, which knows the rate before and after: no rule is sooner at equal limits."""
    gains = counts * np.log(2) + (A_DAY - counts) * np.log((1 - 2 * rate) / (1 - rate))
    value, values = np.zeros(counts.shape[1]), np.empty(counts.shape)
    for day, gain in enumerate(gains):
        values[day] = value = np.maximum(0, value + gain)
    return values


def _best_limit(rate: float, chance: np.random.Generator) -> Any:
    """Return the limit that the statistic of this topic exceeds in a share of quiet years: its part of the level."""
    most = [_cusum(chance.binomial(A_DAY, rate, (YEAR, 2000)), rate).max(axis=0) for _ in range(_DRAWN_YEARS // 2000)]
    return np.quantile(np.concatenate(most), 1 - LEVEL / TOPICS)
