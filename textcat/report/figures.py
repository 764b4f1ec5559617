"""Compute the numbers that reports draw: thresholds, curves, histograms, calibration, label issues."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from textcat.evaluation.evaluation import ScoredDocuments
from textcat.evaluation.metrics import PositivePlaces, positives_by_topic

LEVELS = np.linspace(0, 1, 101)  # levels of recall at which topics' precision is averaged


class _Cuts(NamedTuple):
    """Thresholds of one topic, the highest first, with the numbers of documents and of positives above each."""

    thresholds: NDArray[np.float64]
    retrieved: NDArray[np.intp]
    hits: NDArray[np.intp]
    chosen: int | None  # the position of the model's own threshold; None if there is no such threshold


def sample_thresholds(
    scores: NDArray[Any], is_positive: NDArray[np.bool_], threshold: float | None = None, most: int = 160
) -> _Cuts:
    """Return thresholds at which to show the decisions on a topic, with the counts above each threshold.

    There is a threshold just below each positive document's score, and there are others in between, fewer at lower
    scores. Documents with ``score > threshold`` are retrieved: none at the first threshold, all at the last. If there
    are more than `most` thresholds, evenly spaced ones are kept. The model's own `threshold`, if it is given, is always
    included. `scores` are those of all documents for the topic, and `is_positive` marks the documents that have it.
    """
    values, inverse, counts = np.unique(-scores.astype(np.float64), return_inverse=True, return_counts=True)
    values = -values
    retrieved = np.r_[0, np.cumsum(counts)]
    hits = np.r_[0, np.cumsum(np.bincount(inverse[is_positive], minlength=len(values)))].astype(np.intp)
    between = values.copy()
    between[:-1] = values[1:] + (values[:-1] - values[1:]) / 2
    beyond = np.ptp(values) / 100 or 1.0  # a distance that survives rounding
    between[-1:] -= beyond
    thresholds = np.r_[values[:1] + beyond, between]
    ranks = np.unique(np.geomspace(1, max(len(scores), 1), 40).astype(int))
    wanted = np.unique(np.r_[0, inverse[is_positive] + 1, np.searchsorted(retrieved, ranks), len(values)])
    chosen = None
    if threshold is not None:
        chosen = int(np.count_nonzero(values > threshold))
        thresholds[chosen] = threshold
    if len(wanted) > most:
        wanted = wanted[np.unique(np.linspace(0, len(wanted) - 1, most).astype(int))]
    if chosen is not None:
        wanted = np.union1d(wanted, [chosen])
    position = None if chosen is None else int(np.searchsorted(wanted, chosen))
    return _Cuts(thresholds[wanted], retrieved[wanted], hits[wanted], position)


def reliability(
    probabilities: NDArray[np.float64], is_positive: NDArray[np.bool_], n_bins: int = 10
) -> list[tuple[float, float, int]]:
    """Return (mean probability, fraction of positives, number of documents) for each bin that is not empty.

    The bins divide the range from 0 to 1 into equal parts.
    """
    bins = np.searchsorted(np.linspace(0, 1, n_bins + 1)[1:-1], probabilities)
    counts = np.bincount(bins, minlength=n_bins)
    total = np.bincount(bins, weights=probabilities, minlength=n_bins)
    positives = np.bincount(bins, weights=is_positive, minlength=n_bins)
    return [(total[k] / counts[k], positives[k] / counts[k], int(counts[k])) for k in np.flatnonzero(counts).tolist()]


class _Histogram(NamedTuple):
    """The numbers of positives and negatives in bins of equal width from the score `low` to the score `high`."""

    low: float
    high: float
    positives: NDArray[np.intp]
    negatives: NDArray[np.intp]


def score_histogram(scores: NDArray[Any], is_positive: NDArray[np.bool_], n_bins: int = 30) -> _Histogram:
    """Count the documents with and without a topic in bins of scores of equal width."""
    low, high = (float(scores.min()), float(scores.max())) if len(scores) else (0.0, 1.0)
    high = high if high > low else low + 1
    counted = [np.histogram(scores[rows], n_bins, (low, high))[0] for rows in (is_positive, ~is_positive)]
    return _Histogram(low, high, *counted)


def interpolated_precision(at_positives: NDArray[Any], scores: NDArray[Any]) -> NDArray[np.float64]:
    """Return a topic's interpolated precision at each of the `LEVELS` of recall.

    This is the highest precision at this or a higher recall. `at_positives` has the scores of the positive documents,
    `scores` those of all documents.
    """
    places = PositivePlaces.of(at_positives, scores)  # from the lowest score up, so recall falls
    n = len(at_positives)
    precision = np.maximum.accumulate(places.hits / places.retrieved)
    # The last position with enough recall: there, the maximum is over all positions with at least this recall.
    enough = n - np.searchsorted(places.hits[::-1], np.ceil(LEVELS * n - 1e-9), side="left") - 1
    return np.asarray(precision[np.maximum(enough, 0)])


def band_curves(scored: ScoredDocuments) -> dict[str, NDArray[np.float64]]:
    """Return for each band (set of topics) the mean interpolated precision of its topics at the `LEVELS` of recall.

    Topics without a positive, and bands of only such topics, are left out.
    """
    of_topics = [
        interpolated_precision(column[places], column) if len(places) else np.full(len(LEVELS), np.nan)
        for column, places in zip(scored.scores.T, positives_by_topic(scored.relevant), strict=True)
    ]
    curves = {}
    for band in scored.bands:
        of_band = [of_topics[topic] for topic in band.topics if not np.isnan(of_topics[topic][0])]
        if of_band:
            curves[band.name] = np.mean(of_band, axis=0)
    return curves


def confused_pairs(labels: Any, assigned: NDArray[np.bool_]) -> list[tuple[int, int, int]]:
    """Return tuples (missed topic, wrong topic, number of documents with this mistake), the most frequent first.

    The topics are column numbers; a document with the mistake has the missed topic, but got the wrong one.
    """
    from scipy import sparse

    true, got = sparse.csr_array(labels > 0, dtype=np.int64), sparse.csr_array(assigned, dtype=np.int64)
    hits = true * got
    counts = sparse.coo_array((true - hits).T @ (got - hits))
    cells = sorted(zip((-counts.data).tolist(), counts.row.tolist(), counts.col.tolist(), strict=True))
    return [(topic, other, -n) for n, topic, other in cells if n]


class LabelIssue(NamedTuple):
    """A document and a topic for which the score confidently contradicts the label."""

    document: int  # row of the document
    topic: int  # column of the topic
    has_it: bool  # whether the document is labelled with the topic
    probability: float
    limit: float  # the probability at which the contradiction becomes confident


def find_label_issues(probabilities: NDArray[np.float64], labels: Any) -> list[LabelIssue]:
    """Return labels that are probably wrong, the surest first.

    This is confident learning (Northcutt, Jiang & Chuang, "Confident learning: estimating uncertainty in dataset
    labels", 2021, section 3.1), for each topic by itself. A document without the topic is a label issue if its
    probability is at least the mean probability of documents with the topic, and greater than 1/2. A document with the
    topic is a label issue if its probability is at most the mean probability of documents without the topic, and at
    most 1/2. (The limit of 1/2 is there because means of rare topics are low.) `probabilities` come from rankers that
    were not trained on the document. The surest label issue has the largest distance between its probability and its
    label.
    """
    issues = []
    for topic, (column, places) in enumerate(zip(probabilities.T, positives_by_topic(labels), strict=True)):
        has = np.zeros(len(column), bool)
        has[places] = True
        if not has.any() or has.all():
            continue
        high, low = max(float(column[has].mean()), 0.5), min(float(column[~has].mean()), 0.5)
        for wrong, limit in ((~has & (column >= high) & (column > 0.5), high), (has & (column <= low), low)):
            documents = np.flatnonzero(wrong).tolist()
            issues += [LabelIssue(i, topic, bool(has[i]), float(column[i]), limit) for i in documents]
    return sorted(issues, key=lambda issue: (issue.probability if issue.has_it else 1 - issue.probability, issue[:2]))


def rounded_values(values: ArrayLike, digits: int = 5) -> list[float | int | None]:
    """Return numbers rounded to `digits` significant digits, which are shorter in JSON; None for infinity and nan."""
    return [float(f"{value:.{digits}g}") if np.isfinite(value) else None for value in np.asarray(values).tolist()]


def worst_errors(
    scores: NDArray[Any], is_positive: NDArray[np.bool_], assigned: NDArray[np.bool_], n: int
) -> tuple[Sequence[int], Sequence[int]]:
    """Return the positions of the n highest-scored false positives, and of the n lowest-scored false negatives."""
    wrongly, missed = np.flatnonzero(assigned & ~is_positive), np.flatnonzero(is_positive & ~assigned)
    return (
        wrongly[np.argsort(-scores[wrongly], kind="stable")[:n]].tolist(),
        missed[np.argsort(scores[missed], kind="stable")[:n]].tolist(),
    )
