"""Tell which rates have changed, with a bound on false alarms that holds whenever one looks.

Each rate, such as the share of documents that get a topic, has an e-process: a value that stays at 1 or below on
average as long as the rate is that of the reference, so that the chance that it ever reaches 1 / level is at most the
level (Ville's inequality). It is a mean over the days at which the rate may have changed, of what universal inference
gives (Wasserman, Ramdas and Balakrishnan, "Universal inference", 2020): the likelihood of the documents before that day
under a mixture of rates, times that of those since then under multiples of the rate before, divided by the largest
likelihood of all of them under one rate. So it also holds for a reference of few documents.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.05
YEAR = 365  # days, after which all begins anew
_STEP = 7  # days between two at which a rate may have changed
_FACTORS = np.array([1.5, 2.0, 4.0, 1 / 1.5, 1 / 2.0, 1 / 4.0])  # by which the odds may have changed
_SCALES = np.array([0.5, 5.0, 50.0, 500.0])  # of Beta(1/2, scale), over which the rate before is averaged
_AT_ONCE = 200  # rates


class Alarm(NamedTuple):
    """Hold when a rate was first seen to have changed, and since when it probably has.

    Attributes
    ----------
    column : int
        Of the rate.
    told, since : int
        The rows of two days.
    before, now : float
        The rate before `since`, and from then to `told`.
    """

    column: int
    told: int
    since: int
    before: float
    now: float


def find_alarms(
    reference: NDArray[Any],
    n_reference: int,
    counts: NDArray[Any],
    n: NDArray[Any],
    level: float = LEVEL,
    year: int = YEAR,
) -> list[Alarm]:
    """Return which rates have changed, the first told first; each at most once a year.

    Parameters
    ----------
    reference : ndarray of shape (n_rates,), int
        In how many of the `n_reference` documents of the reference each thing happened.
    counts : ndarray of shape (n_days, n_rates), int
        The same of each later day.
    n : ndarray of shape (n_days,), int
        The number of documents of each day.
    level : float, default 0.05
        The chance, at most, that a year has any false alarm.
    year : int, default 365
        The number of days after which all begins anew.

    Returns
    -------
    list of Alarm
    """
    n_rates, alarms = len(reference), list[Alarm]()
    for first in range(0, len(n), year):
        of_year = n[first : first + year]
        for some in np.split(np.arange(n_rates), range(_AT_ONCE, n_rates, _AT_ONCE)):
            process = _Process(reference[some], n_reference, counts[first : first + year, some], of_year)
            for column, told, since, before, now in process.alarms(np.log(max(n_rates, 1) / level)):
                alarms.append(Alarm(int(some[column]), first + told, first + since, before, now))
    return sorted(alarms, key=lambda alarm: (alarm.told, alarm.column))


class _Process:
    """The e-processes of some rates over a year; arrays have a row for each day and a column for each rate."""

    def __init__(self, reference: NDArray[Any], n_reference: int, counts: NDArray[Any], n: NDArray[Any]) -> None:
        self._counts = reference + np.concatenate([np.zeros((1, len(reference))), counts.cumsum(axis=0)])
        self._n = n_reference + np.concatenate([[0.0], n.cumsum()])[:, None]

    def alarms(self, least: float) -> Iterator[Alarm]:
        """Yield an alarm for each rate of which the logarithm of the e-process reaches a value."""
        starts = range(0, len(self._n) - 1, _STEP)
        values = np.stack([self._since(start) for start in starts])
        told = np.logaddexp.reduce(values, axis=0) - np.log(len(starts)) >= least
        for column in np.flatnonzero(told.any(axis=0)).tolist():
            day = int(told[:, column].argmax())
            since = starts[int(values[: day // _STEP + 1, day, column].argmax())]
            yield Alarm(column, day, since, *self._rates(column, since, day))

    def _since(self, start: int) -> NDArray[np.float64]:
        """Return the logarithm of the e-process that begins at a day; it is 0 until then."""
        from scipy.special import betaln, xlogy

        before, n_before = self._counts[start], self._n[start]
        averaged = betaln(before + 0.5, n_before - before + _SCALES[:, None]) - betaln(0.5, _SCALES)[:, None]
        p = (before + 0.5) / (n_before + 1)
        q = _FACTORS[:, None, None] * p / (1 - p + _FACTORS[:, None, None] * p)
        counts, n = self._counts[start + 1 :], self._n[start + 1 :]
        changed = (counts - before) * np.log(q) + (n - n_before - counts + before) * np.log1p(-q)
        largest = xlogy(counts, counts / n) + xlogy(n - counts, 1 - counts / n)
        values = np.zeros((len(self._n) - 1, len(before)))
        values[start:] = _log_mean(averaged) + _log_mean(changed) - largest
        return values

    def _rates(self, column: int, since: int, told: int) -> tuple[float, float]:
        counts, n = self._counts[[since, told + 1], column], self._n[[since, told + 1], 0]
        return float(counts[0] / n[0]), float((counts[1] - counts[0]) / max(n[1] - n[0], 1))


def _log_mean(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return the logarithm of the mean of exp(values) over the first axis."""
    return np.asarray(np.logaddexp.reduce(values, axis=0) - np.log(len(values)))
