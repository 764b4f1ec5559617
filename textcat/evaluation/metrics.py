"""Measures of rankings and decisions: rankings of documents by topic, rankings of topics by document, and tags.

`Y` is array-like or scipy sparse, bool or 0/1, and has positive entries where a document (row) is relevant to a topic
(column). `scores` have the same shape: signed, unscaled, larger = more relevant, compared in their own precision. A
ValueError is raised if the shapes differ or a score is nan. Three rules hold everywhere in this module:

* A document is *retrieved* at a threshold θ if ``score > θ``.
* A positive is reached with θ just below its own score, so documents with equal scores are retrieved together. Measures
  that look at ranks take the mean over all orders of documents with equal scores.
* A topic without a positive has no recall and no average precision: it is ``nan`` in an array, and macro-averages leave
  it out and count it as left out. The same holds for a document without a topic.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from textcat.base.calibration import positives_of

COMPARISONS_AT_ONCE = 1 << 22  # number of pairs of scores compared at the same time while documents rank topics


class PositivePlaces(NamedTuple):
    """Counts for each positive (relevant document) of one topic, from the lowest score up.

    `above` counts documents with a higher score than the positive, `retrieved` counts documents with at least the
    positive's score, and `hits` counts the positives among the retrieved ones.
    """

    hits: NDArray[np.intp]
    above: NDArray[np.intp]
    retrieved: NDArray[np.intp]

    @classmethod
    def of(cls, at_positives: NDArray[Any], scores: NDArray[Any]) -> "PositivePlaces":
        """Return the counts, given the scores of the positives and the scores of all documents, both in any order."""
        at_positives, ranked = np.sort(at_positives), np.sort(scores)
        return cls(
            hits=len(at_positives) - np.searchsorted(at_positives, at_positives),
            above=len(ranked) - np.searchsorted(ranked, at_positives, side="right"),
            retrieved=len(ranked) - np.searchsorted(ranked, at_positives),
        )

    def hits_within(self, k: int) -> float:
        """Return the number of positives in the first k ranks, as a mean over all orders of equal scores."""
        return float(np.clip((k - self.above) / (self.retrieved - self.above), 0, 1).sum())


def average_precisions(Y: Any, scores: ArrayLike) -> NDArray[np.float64]:
    """Compute the average precision of every topic: the mean of the precision at each of its positives.

    ``AP = 1/|P| · Σ_{i∈P} |{j ∈ P: f(x_j) ≥ f(x_i)}| / |{j: f(x_j) ≥ f(x_i)}|`` with P the positives. Li et al. (2002,
    section 3.2) write the precision at f(x_i) with ``f(x_j) > θ``; read to the letter, θ = f(x_i) leaves out x_i itself
    and gives 0/0 for the document on top, so θ is taken just below f(x_i). Documents with equal scores are thus
    retrieved together, whatever their order, and the value is that of ``sklearn.metrics.average_precision_score``.
    """
    topics = [PositivePlaces.of(*topic) for topic in _each_topic(Y, scores)]
    return np.array(
        [np.mean(ranking.hits / ranking.retrieved) if ranking.hits.size else math.nan for ranking in topics], np.float64
    )


class _TopicRankings(NamedTuple):
    """Quality of each topic's ranking of the documents.

    The arrays have the shape (n_topics,), with nan for a topic without a positive.
    """

    average_precision: NDArray[np.float64]
    r_precision: NDArray[np.float64]
    """R-precision: precision (and recall) of the first R documents, where R is the number of positives."""
    precision_at_k: NDArray[np.float64]  # positives among the first k documents, divided by k
    ndcg: NDArray[np.float64]
    """nDCG: Σ 1/log₂(rank + 1) over positives, divided by that of a perfect ranking (Järvelin & Kekäläinen 2002)."""


def topic_rankings(Y: Any, scores: ArrayLike, k: int = 10) -> _TopicRankings:
    """Measure the ranking of the documents by each topic's scores.

    Measures are averaged over all orders of documents with equal scores, as in McSherry & Najork (2008).

    With fewer than k documents, the missing ones count as irrelevant in precision at k.
    """
    n_documents = np.shape(scores)[0]
    discounts = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(n_documents) + 2))])
    measured = [_topic_ranking(*topic, k, discounts) for topic in _each_topic(Y, scores)]
    return _TopicRankings(*np.array(measured, dtype=np.float64).reshape(-1, len(_TopicRankings._fields)).T)


def _topic_ranking(
    at_positives: NDArray[Any], scores: NDArray[Any], k: int, discounts: NDArray[np.float64]
) -> tuple[float, ...]:
    """Return the measures of one topic's ranking, in the order of `_TopicRankings`.

    `at_positives` has the scores of the relevant documents, `scores` those of all documents. ``discounts[r]`` is the
    sum of nDCG's discounts of the first r ranks.
    """
    n_positives = len(at_positives)
    if not n_positives:
        return (math.nan,) * len(_TopicRankings._fields)
    places = PositivePlaces.of(at_positives, scores)
    gains = (discounts[places.retrieved] - discounts[places.above]) / (places.retrieved - places.above)
    return (
        float(np.mean(places.hits / places.retrieved)),
        places.hits_within(n_positives) / n_positives,
        places.hits_within(k) / k,
        float(gains.sum() / discounts[n_positives]),
    )


@dataclass(frozen=True, eq=False)
class Decisions:
    """Counts of decisions per topic, of shape (n_topics, ...), and measures computed from them."""

    hits: NDArray[np.intp]  # relevant documents that are retrieved
    retrieved: NDArray[np.intp]  # documents with a score above the threshold
    positives: NDArray[np.intp]  # relevant documents

    @property
    def precision(self) -> NDArray[np.float64]:
        """``hits / retrieved``; 0 where nothing is retrieved, nan for a topic without a positive."""
        precision = _ratio(self.hits, np.maximum(self.retrieved, 1))
        return np.where(self.positives > 0, precision, np.nan)

    @property
    def recall(self) -> NDArray[np.float64]:
        """``hits / positives``; nan for a topic without a positive."""
        return _ratio(self.hits, self.positives)

    @property
    def f1(self) -> NDArray[np.float64]:
        """``2·hits / (retrieved + positives)``: harmonic mean of precision and recall; nan without a positive."""
        return np.where(self.positives > 0, _ratio(2 * self.hits, self.retrieved + self.positives), np.nan)

    def pooled(self, topics: Sequence[int] | None = None) -> "Decisions":
        """Sum the counts over the given topics (column numbers), by default over all.

        Measures of the sums are micro-averages. Documents retrieved for a topic without positives are included, as
        false positives.
        """
        places: Any = slice(None) if topics is None else np.asarray(topics, dtype=np.intp)
        counts = (self.hits, self.retrieved, self.positives)
        return Decisions(*(of_topic[places].sum(axis=0, keepdims=True) for of_topic in counts))


def topic_decisions(Y: Any, scores: ArrayLike, threshold: ArrayLike = 0.0) -> Decisions:
    """Count for each topic the documents that are retrieved (``score > threshold``), relevant, or both (hits)."""
    positives, values = checked_labels(Y, scores)
    retrieved = values > np.asarray(threshold)
    topic_of_positive = np.repeat(np.arange(values.shape[1]), np.diff(positives.indptr))
    hit = retrieved[positives.indices, topic_of_positive]
    return Decisions(
        hits=np.bincount(topic_of_positive[hit], minlength=values.shape[1]),
        retrieved=np.count_nonzero(retrieved, axis=0),
        positives=np.diff(positives.indptr).astype(np.intp),
    )


class _MacroAverage(NamedTuple):
    """A mean over topics, with the numbers of topics averaged and left out."""

    mean: float | None  # None if no topic could be counted
    counted: int  # topics with a positive
    left_out: int  # topics without a positive


def macro_average(values: ArrayLike, members: Sequence[int] | None = None) -> _MacroAverage:
    """Average a measure over topics; topics whose value is nan are left out.

    `members` are the column numbers of the topics; None: all topics.
    """
    values = np.asarray(values, dtype=np.float64)
    chosen = values if members is None else values[np.asarray(members, dtype=np.intp)]
    defined = chosen[~np.isnan(chosen)]
    return _MacroAverage(float(defined.mean()) if defined.size else None, defined.size, chosen.size - defined.size)


class _DocumentRankings(NamedTuple):
    """Quality of each document's ranking of the topics.

    The arrays have the shape (n_documents,), with nan for a document without a topic.
    """

    average_precision: NDArray[np.float64]
    """Defined as for a topic; the mean is called label ranking average precision (LRAP)."""
    coverage: NDArray[np.float64]
    """The rank of the last relevant topic; the mean is called coverage error."""
    first: NDArray[np.float64]
    """1 if the topic with the highest score is right, else 0; a fraction if several topics tie for it."""


def document_rankings(Y: Any, scores: ArrayLike) -> _DocumentRankings:
    """Measure how well each document's scores rank the topics."""
    positives, values = checked_labels(Y, scores)
    positives = positives.tocsr()
    comparisons = values.shape[1] * np.diff(positives.indptr).max(initial=1)
    per_block = max(COMPARISONS_AT_ONCE // max(int(comparisons), 1), 1)
    starts = range(0, max(len(values), 1), per_block)
    blocks = [_documents_ranked(positives[i : i + per_block], values[i : i + per_block]) for i in starts]
    return _DocumentRankings(*map(np.concatenate, zip(*blocks, strict=True)))


def _documents_ranked(positives: Any, scores: NDArray[Any]) -> tuple[NDArray[np.float64], ...]:
    n_documents = len(scores)
    relevant = positives.toarray() > 0
    document, topic = np.nonzero(relevant)
    at_least = scores[document] >= scores[document, topic][:, np.newaxis]
    retrieved = at_least.sum(axis=1)
    hits = (at_least & relevant[document]).sum(axis=1)
    n_relevant = relevant.sum(axis=1)
    coverage = np.zeros(n_documents)
    np.maximum.at(coverage, document, retrieved)
    top = scores == scores.max(axis=1, keepdims=True) if scores.size else relevant
    return (
        _ratio(np.bincount(document, hits / retrieved, minlength=n_documents), n_relevant),
        np.where(n_relevant > 0, coverage, np.nan),
        np.where(n_relevant > 0, _ratio((top & relevant).sum(axis=1), top.sum(axis=1)), np.nan),
    )


class _DocumentDecisions(NamedTuple):
    """Measures of the topics assigned to each document: arrays of shape (n_documents,).

    Precision is nan for a document that gets no topic, recall for one that has none, F1 for one that neither gets nor
    has a topic. Means without nan are scikit-learn's sample averages with ``zero_division=nan``.
    """

    precision: NDArray[np.float64]
    recall: NDArray[np.float64]
    f1: NDArray[np.float64]


def document_decisions(Y: Any, scores: ArrayLike, threshold: ArrayLike = 0.0) -> _DocumentDecisions:
    """Measure for each document the topics that it gets (``score > threshold``)."""
    positives, values = checked_labels(Y, scores)
    decisions = topic_decisions(positives.T, values.T, np.broadcast_to(threshold, values.shape).T)
    either = decisions.retrieved + decisions.positives
    return _DocumentDecisions(
        precision=_ratio(decisions.hits, decisions.retrieved),
        recall=_ratio(decisions.hits, decisions.positives),
        f1=_ratio(2 * decisions.hits, either),
    )


class RankingSteps(NamedTuple):
    """A topic's ranking of the documents, divided into steps after each distinct score of a positive.

    Positives with equal scores belong to the same step.
    """

    order: NDArray[np.intp]  # documents from the highest score down to the lowest positive
    starts: NDArray[np.intp]  # the start of each step in `order`
    positives: NDArray[np.intp]  # positives from the highest score down
    hit_starts: NDArray[np.intp]  # the start of each step in `positives`
    step: NDArray[np.intp]  # the step of each positive

    @classmethod
    def of(cls, scores: NDArray[Any], positives: NDArray[Any]) -> "RankingSteps":
        """Cut a ranking into steps: a step ends after the documents of each distinct score of a relevant document.

        `scores` has the scores of all documents, `positives` the row numbers of the relevant ones.
        """
        places = PositivePlaces.of(scores[positives], scores)
        ends, first, step = np.unique(places.retrieved, return_index=True, return_inverse=True)
        return cls(
            order=np.argsort(-scores, kind="stable")[: ends.max(initial=0)],
            starts=np.r_[0, ends[:-1]],
            positives=positives[np.argsort(-scores[positives], kind="stable")],
            hit_starts=np.r_[0, places.hits[first][:-1]],
            step=step[::-1],  # places count from the lowest score up
        )

    def average_precision(self, drawn: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the average precision in each resample: shape (n_resamples,).

        `drawn` says how often each document is in each resample: shape (n_documents, n_resamples). If a positive was
        drawn several times, it counts only once in the precision at that positive. Otherwise, topics of few positives
        would rank much better in resamples than in the sample.
        """
        weights = drawn[self.positives]
        total = weights.sum(axis=0)
        if not len(weights):
            return np.full(drawn.shape[1], np.nan)
        retrieved = np.cumsum(np.add.reduceat(drawn[self.order], self.starts, axis=0), axis=0)[self.step]
        hits = np.cumsum(np.add.reduceat(weights, self.hit_starts, axis=0), axis=0)[self.step]
        excess = weights - 1
        precision = (hits - excess) / np.maximum(retrieved - excess, 1)
        return np.where(total > 0, (weights * precision).sum(axis=0) / np.maximum(total, 1), np.nan)


def mean_of_topics(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean over topics for each resample, ignoring nan; nan where the values of all topics are nan.

    `values` is of shape (n_topics, n_resamples).
    """
    is_known = ~np.isnan(values)
    n_known = is_known.sum(axis=0)
    return np.where(n_known > 0, np.where(is_known, values, 0).sum(axis=0) / np.maximum(n_known, 1), np.nan)


def checked_labels(Y: Any, scores: ArrayLike) -> tuple[Any, NDArray[Any]]:
    """Return the labels as a CSC matrix of bool, and the scores as an array, both of shape (n_documents, n_topics).

    Raise ValueError if their shapes differ, or a score is nan.
    """
    values = np.asarray(scores)
    positives = positives_of(Y, values.shape)
    if np.isnan(values).any():
        raise ValueError(f"{np.isnan(values).sum()} scores are nan: a document without a score cannot be ranked.")
    return positives, values


def check_order_of_columns(table: Any, topics: Sequence[str]) -> None:
    """Raise ValueError if the columns of a table are called like the topics, but are in another order."""
    names = [*map(str, getattr(table, "columns", ()))]
    if names != [*topics] and Counter(names) == Counter(topics):
        place = next(place for place, pair in enumerate(zip(names, topics, strict=True)) if pair[0] != pair[1])
        raise ValueError(
            f"Column {place} of a table is {names[place]!r}, but topic {place} is {topics[place]!r}: give both in the "
            "same order, as by table[[*topics]]."
        )


def _each_topic(Y: Any, scores: ArrayLike) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """Return for each topic the scores of its positives, and the scores of all documents."""
    positives, values = checked_labels(Y, scores)
    return [(column[rows], column) for rows, column in zip(positives_by_topic(positives), values.T, strict=True)]


def positives_by_topic(positives: Any) -> list[NDArray[Any]]:
    """Return the row numbers of each topic's positives, given a CSC matrix."""
    return np.split(positives.indices, positives.indptr[1:-1]) if positives.shape[1] else []


def _ratio(numerator: NDArray[Any], denominator: NDArray[Any]) -> NDArray[np.float64]:
    """Divide elementwise; nan where the denominator is 0."""
    undefined = np.full(numerator.shape, np.nan)
    return np.divide(numerator, denominator, out=undefined, where=denominator > 0)
