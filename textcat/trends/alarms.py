"""Find rates that have changed, with a bound on false alarms that holds whenever one looks.

Each rate, such as the share of documents that get a topic, has an e-process: a value that stays at 1 or below on
average as long as the rate is that of the reference, so that the chance that it ever reaches 1 / level is at most the
level (Ville's inequality). It is a mean over the days on which the rate may have changed, every seventh one. For each
of these, universal inference (Wasserman, Ramdas and Balakrishnan, "Universal inference", 2020) gives the likelihood of
the documents before that day under a mixture of rates, times the likelihood of the later documents under rates whose
odds are multiples of the earlier odds and under all rates, divided by the largest likelihood of all documents under a
single rate. So the bound also holds for a reference of few documents.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.05
YEAR = 365  # days after which callers start again from the reference
_STEP = 7  # days between two at which a rate may have changed
_FACTORS = np.array([1.5, 2.0, 4.0, 1 / 1.5, 1 / 2.0, 1 / 4.0])  # by which the odds may have changed
_SCALES = np.array([0.5, 5.0, 50.0, 500.0])  # of Beta(1/2, scale), over which the rate before is averaged
AT_ONCE = 200  # number of rates that are computed at a time


class Alarm(NamedTuple):
    """A rate that has changed: on which day this became certain, and when it probably began.

    Attributes
    ----------
    column : int
        The column of the rate.
    told, since : int
        The day on which the change became certain, and the day on which it probably began: rows of `counts`.
    before, now : float
        The rate before `since`, the reference included; and the rate from then to the end of the year, or of the data.
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
) -> list[Alarm]:
    """Find the rates that have changed within a year, in the order of detection; each rate at most once.

    Parameters
    ----------
    reference : ndarray of shape (n_rates,), int
        For each rate, the number of events (such as documents with a topic) among the `n_reference` documents of the
        reference.
    counts : ndarray of shape (n_days, n_rates), int
        The same numbers for each later day; there are at most `YEAR` days.
    n : ndarray of shape (n_days,), int
        The number of documents of each day.
    level : float, default 0.05
        The maximum probability of any false alarm.
    """
    n_rates, alarms = len(reference), list[Alarm]()
    for some in np.split(np.arange(n_rates), range(AT_ONCE, n_rates, AT_ONCE)):
        process = EProcess(reference[some], n_reference, counts[:, some], n)
        alarms += [
            alarm._replace(column=int(some[alarm.column])) for alarm in process.alarms(np.log(max(n_rates, 1) / level))
        ]
    return sorted(alarms, key=lambda alarm: (alarm.told, alarm.column))


class EProcess:
    """The e-processes of some rates over a year; arrays have a row for each day and a column for each rate."""

    def __init__(self, reference: NDArray[Any], n_reference: int, counts: NDArray[Any], n: NDArray[Any]) -> None:
        from scipy.special import gammaln

        self._counts = reference + np.concatenate([np.zeros((1, len(reference)), np.int64), counts.cumsum(axis=0)])
        self._n = n_reference + np.concatenate([[0], n.cumsum()])[:, None]
        numbers = np.arange(int(n.sum()) + 1)
        self._gammas, self._factorials = gammaln(numbers + 0.5), gammaln(numbers + 1)

    def alarms(self, least: float) -> Iterator[Alarm]:
        """Yield an alarm for each rate whose e-process reaches exp(`least`)."""
        starts = range(0, len(self._n) - 1, _STEP)
        values = np.stack([self.since_day(start) for start in starts])
        told = np.logaddexp.reduce(values, axis=0) - np.log(len(starts)) >= least
        for column in np.flatnonzero(told.any(axis=0)).tolist():
            day = int(told[:, column].argmax())
            since = starts[int(values[: day // _STEP + 1, day, column].argmax())]
            yield Alarm(column, day, since, *self._rates(column, since))

    def since_day(self, start: int) -> NDArray[np.float64]:
        """Return the logarithms of the e-processes for a change on the day `start`; they are 0 until then."""
        from scipy.special import xlogy

        before, n_before = self._counts[start], self._n[start]
        counts, n = self._counts[start + 1 :], self._n[start + 1 :]
        since, n_since = counts - before, n - n_before
        p = (before + 0.5) / (n_before + 1)
        q = _FACTORS[:, None, None] * p / (1 - p + _FACTORS[:, None, None] * p)
        changed = since * np.log(q) + (n_since - since) * np.log1p(-q)
        # Where a rate is many times the one before, under Beta(1/2, 1/2); the beta function is one of three gammas.
        any_rate = self._gammas[since] + self._gammas[n_since - since] - self._factorials[n_since] - np.log(np.pi)
        after = _log_mean(np.concatenate([changed, any_rate[None]]))
        largest = xlogy(counts, counts / n) + xlogy(n - counts, 1 - counts / n)
        values = np.zeros((len(self._n) - 1, len(before)))
        values[start:] = _averaged(before, n_before) + after - largest
        return values

    def _rates(self, column: int, since: int) -> tuple[float, float]:
        counts, n = self._counts[[since, -1], column], self._n[[since, -1], 0]
        return float(counts[0] / n[0]), float((counts[1] - counts[0]) / max(n[1] - n[0], 1))


def _averaged(counts: NDArray[Any], n: NDArray[Any]) -> NDArray[np.float64]:
    """Return the log likelihood of numbers of events among `n` documents, averaged over a mixture of beta priors."""
    from scipy.special import betaln

    scales = _SCALES[:, None]
    return _log_mean(betaln(counts + 0.5, n - counts + scales) - betaln(0.5, scales))


def _log_mean(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return the logarithm of the mean of exp(values) over the first axis."""
    return np.asarray(np.logaddexp.reduce(values, axis=0) - np.log(len(values)))
