"""Scores and labels → MAP and F1 on bootstrap resamples of the documents, and the intervals that follow from them."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from textcat.evaluation.metrics import Places, checked
from textcat.evaluation.ranking import Band, Evaluation

MEASURES = ("macro_average_precision", "macro_f1", "micro_f1")

LEVEL = 0.95

# How often each document was drawn, for all resamples that are held at the same time: 64 MB of int32.
_BLOCK = 1 << 24


def resampled(
    scores: ArrayLike,
    Y: Any,
    chosen: Sequence[Band],
    *,
    threshold: ArrayLike = 0.0,
    n_resamples: int = 1000,
    seed: int = 0,
) -> dict[str, NDArray[np.float64]]:
    """Measure bands of topics on bootstrap resamples of the documents: as many documents, drawn with replacement.

    The same seed and number of documents draw the same resamples, so values of two models can be subtracted. A topic
    that has lost all its positives in a resample is left out of its macro-averages there.

    Parameters
    ----------
    scores : array-like of shape (n_documents, n_topics)
    Y : array-like or scipy sparse of shape (n_documents, n_topics), bool or 0/1
    chosen : sequence of Band
    threshold : float or array-like of shape (n_topics,), default 0
    n_resamples : int, default 1000
    seed : int, default 0

    Returns
    -------
    dict of str to ndarray of shape (n_bands, n_resamples), float64
        The `MEASURES`; nan where no topic of the band has a positive.

    Raises
    ------
    ValueError
        If the shapes differ or a score is nan.
    """
    positives, values = checked(Y, scores)
    given = sparse.csc_array(values > np.asarray(threshold))
    counted = [sparse.csr_array(entries.T, dtype=np.int32) for entries in (positives * given, given, positives)]
    rankings = [_Ranking.of(column, of) for column, of in zip(values.T, _columns(positives), strict=True)]
    blocks = []
    for drawn in _draws(len(values), n_resamples, seed):
        precision = np.array([ranking.average_precision(drawn) for ranking in rankings])
        hits, retrieved, relevant = (counts @ drawn for counts in counted)
        f1 = np.where(relevant > 0, 2 * hits / np.maximum(retrieved + relevant, 1), np.nan)
        blocks.append([[_band_values(list(band.topics), precision, f1, hits, retrieved, relevant)] for band in chosen])
    measured = np.concatenate([np.concatenate(block) for block in blocks], axis=2)
    return {name: measured[:, k] for k, name in enumerate(MEASURES)}


def interval(measured: float, values: ArrayLike, level: float = LEVEL) -> tuple[float, float]:
    """Return the percentile interval of resampled values, moved so that their mean is the value that was measured.

    Topics of few positives rank better in resamples than they do, for the documents that stand before a positive may
    be absent: the percentiles alone would often not even hold the measured value.

    Parameters
    ----------
    measured : float
    values : array-like of shape (n_resamples,)
        Those that are nan are left out.
    level : float, default 0.95

    Returns
    -------
    low, high : float
        nan if all values are.
    """
    known = np.asarray(values)[~np.isnan(values)]
    if not known.size:
        return math.nan, math.nan
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2]) - known.mean() + measured
    return float(low), float(high)


def with_intervals(
    evaluation: Evaluation,
    scores: ArrayLike,
    Y: Any,
    chosen: Sequence[Band],
    *,
    threshold: ArrayLike = 0.0,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Evaluation:
    """Add to an evaluation the bootstrap intervals of its bands; parameters as in `resampled`."""
    values = resampled(scores, Y, chosen, threshold=threshold, n_resamples=n_resamples, seed=seed)
    rows = [
        replace(row, intervals={name: _bounds(getattr(row, name), values[name][place]) for name in MEASURES})
        for place, row in enumerate(evaluation.bands)
    ]
    return replace(evaluation, bands=tuple(rows))


def _bounds(measured: float | None, values: NDArray[np.float64]) -> tuple[float, float] | None:
    if measured is None:
        return None
    low, high = interval(measured, values)
    return max(low, 0.0), min(high, 1.0)


def _draws(n_documents: int, n_resamples: int, seed: int) -> Iterator[NDArray[np.int32]]:
    """Yield how often each document is in each resample, of shape (n_documents, n_in_block)."""
    random = np.random.default_rng(seed)
    per_block = max(_BLOCK // max(n_documents, 1), 1)
    for start in range(0, n_resamples, per_block):
        drawn = np.empty((n_documents, min(per_block, n_resamples - start)), np.int32)
        for resample in drawn.T:
            places = random.integers(0, max(n_documents, 1), n_documents)
            resample[:] = np.bincount(places, minlength=n_documents)
        yield drawn


def _columns(positives: Any) -> list[NDArray[Any]]:
    return np.split(positives.indices, positives.indptr[1:-1]) if positives.shape[1] else []


class _Ranking(NamedTuple):
    """A topic's ranking, cut into steps that end with the positives; positives of equal score share a step."""

    order: NDArray[np.intp]
    """Documents from the highest score down to the lowest positive."""
    starts: NDArray[np.intp]
    """Where the steps start in it."""
    positives: NDArray[np.intp]
    """Positives from the highest score down."""
    hit_starts: NDArray[np.intp]
    """Where the steps start among them."""
    step: NDArray[np.intp]
    """The step of each positive."""

    @classmethod
    def of(cls, scores: NDArray[Any], positives: NDArray[Any]) -> "_Ranking":
        places = Places.of(scores[positives], scores)
        ends, first, step = np.unique(places.retrieved, return_index=True, return_inverse=True)
        return cls(
            order=np.argsort(-scores, kind="stable")[: ends.max(initial=0)],
            starts=np.r_[0, ends[:-1]],
            positives=positives[np.argsort(-scores[positives], kind="stable")],
            hit_starts=np.r_[0, places.hits[first][:-1]],
            step=step[::-1],  # places are given from the lowest score up
        )

    def average_precision(self, drawn: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the average precision in each resample.

        A copy of a document is not another document: where a positive was drawn twice, the precision at it counts it
        once. Else a topic of few positives would rank much better in a resample than it does.
        """
        weights = drawn[self.positives]
        total = weights.sum(axis=0)
        if not len(weights):
            return np.full(drawn.shape[1], np.nan)
        retrieved = np.cumsum(np.add.reduceat(drawn[self.order], self.starts, axis=0), axis=0)[self.step]
        hits = np.cumsum(np.add.reduceat(weights, self.hit_starts, axis=0), axis=0)[self.step]
        others = weights - 1
        precision = (hits - others) / np.maximum(retrieved - others, 1)
        return np.where(total > 0, (weights * precision).sum(axis=0) / np.maximum(total, 1), np.nan)


def _band_values(topics: list[int], precision: Any, f1: Any, hits: Any, retrieved: Any, relevant: Any) -> Any:
    """Return the measures of a band, of shape (n_measures, n_resamples)."""
    hits, retrieved, relevant = (counts[topics].sum(axis=0) for counts in (hits, retrieved, relevant))
    micro = np.where(relevant > 0, 2 * hits / np.maximum(retrieved + relevant, 1), np.nan)
    return np.array([_mean(precision[topics]), _mean(f1[topics]), micro])


def _mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Average over topics, those that are nan left out; nan where all are."""
    known = ~np.isnan(values)
    n_known = known.sum(axis=0)
    return np.where(n_known > 0, np.where(known, values, 0).sum(axis=0) / np.maximum(n_known, 1), np.nan)
