"""Measure how much work an order of questions saves: loss, WSS, RRF, recall, answers needed.

R is the number of relevant documents, N the number of all documents. The parameter `curve` of the measures is an
ascending array of shape (R,), as `found_at` returns it: its i-th value is the number of answers up to and including the
one by which the i-th relevant document was found. The starting examples count as answers. A measure is ``nan`` if it
requires a relevant or an irrelevant document, and there is none.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

_EXACT = 1e-9  # tolerance, so that 0.95 · 20 is 19 in spite of rounding errors


def found_at(answers: ArrayLike) -> NDArray[np.int64]:
    """Return the number of answers after which each relevant document was found: the `curve` of other functions.

    `answers` has the answers of a run in order; True: the document is relevant.
    """
    return np.flatnonzero(np.asarray(answers, bool)) + 1


def loss(curve: ArrayLike, n_documents: int) -> float:
    """Return how far a run is from the best order: 0 if all relevant documents come first, 1 if they come last.

    The loss is ``(Σ curve - R(R + 1)/2) / (R (N - R))``: the area between the recall curves of the best order and of
    this run, divided by the area between those of the best and the worst order. In random order, it is about .5. It is
    the loss of ASReview (asreview.metrics.loss).
    """
    curve = np.asarray(curve, np.int64)
    r = len(curve)
    worst = r * (n_documents - r)
    return float(curve.sum() - r * (r + 1) / 2) / worst if worst else math.nan


def answers_to_reach(curve: ArrayLike, recall: float) -> float:
    """Return the number of answers until a recall is reached: until ⌈recall · R⌉ relevant documents are found."""
    curve = np.asarray(curve)
    return float(curve[max(math.ceil(recall * len(curve) - _EXACT), 1) - 1]) if len(curve) else math.nan


def wss(curve: ArrayLike, n_documents: int, recall: float = 0.95) -> float:
    """Return the work saved over sampling: ``recall - answers_to_reach(recall) / N`` (Cohen et al., 2006)."""
    return recall - answers_to_reach(curve, recall) / n_documents


def recall_after(curve: ArrayLike, n_answers: float) -> float:
    """Return the share of the relevant documents that are found after a number of answers."""
    curve = np.asarray(curve)
    return float(np.searchsorted(curve, n_answers, side="right")) / len(curve) if len(curve) else math.nan


def rrf(curve: ArrayLike, n_documents: int, share: float = 0.1) -> float:
    """Return the share of relevant records found (RRF): the recall after ⌊share · N⌋ answers."""
    return recall_after(curve, math.floor(share * n_documents + _EXACT))


def recall_at(curve: ArrayLike, a: float, b: float = 0) -> float:
    """Return recall@aR+b: the recall after a · R + b answers, R being the number of relevant documents (TREC)."""
    return recall_after(curve, math.floor(a * len(np.asarray(curve)) + b + _EXACT))


class Mean(NamedTuple):
    """A mean with its interval, which is (nan, nan) for a single value."""

    mean: float
    low: float
    high: float


def mean_of(values: ArrayLike) -> Mean:
    """Return the mean over seeds with Student's 95 % confidence interval; values that are nan are left out.

    The interval is ``mean ± t(n - 1, 0.975) · s / √n``, for n values with standard deviation s. It shows
    how far the mean varies with the seeds, for the same documents and topics. To compare two methods, pass the
    differences of their values for each seed.
    """
    numbers = np.asarray(values, np.float64)
    numbers = numbers[~np.isnan(numbers)]
    n, mean = len(numbers), float(numbers.mean()) if len(numbers) else math.nan
    if n < 2:
        return Mean(mean, math.nan, math.nan)
    half = float(stdtrit(n - 1, 0.975) * numbers.std(ddof=1) / math.sqrt(n))
    return Mean(mean, mean - half, mean + half)


def recall_curve(curves: Sequence[ArrayLike], n_documents: int, at: ArrayLike) -> NDArray[np.float64]:
    """Return the recall after each of the numbers of answers in `at`, averaged over runs: shape (n_at,).

    `curves` has the curve of each run, as `found_at` returns it.

    `n_documents` is the number of all documents.
    """
    counts = np.minimum(np.asarray(at, np.float64), n_documents)
    return np.mean([np.searchsorted(np.asarray(f), counts, side="right") / len(np.asarray(f)) for f in curves], axis=0)
