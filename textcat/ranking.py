"""Scores and labels → ranking quality per topic and per band of topics.

A topic ranks the documents by its scores. Three rules hold everywhere in this module:

* *Retrieved* at a threshold θ are the documents with ``score > θ``.
* Average precision takes θ just below each positive's own score, so documents with equal scores are retrieved together.
* A topic without a positive has no recall and no average precision: it gets ``nan`` in an array, ``None`` in a row, and
  is left out of every macro-average, which says how many it left out.
"""

import difflib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from textcat.errors import TextcatError

DEFAULT_BANDS = ("ALL", "TOP10", "LAST30")

_LARGEST_OR_SMALLEST = re.compile(r"(TOP|LAST)([1-9][0-9]*)", re.IGNORECASE)
_SIZES = re.compile(r"([0-9]+)-([0-9]*)")


class BandError(TextcatError, ValueError):
    """A band that cannot be understood, or that names a topic the corpus does not have."""


# --- one topic -------------------------------------------------------------------------------------------------------


def average_precision(relevant: ArrayLike, scores: ArrayLike) -> float:
    """Average the precision at each positive of one topic.

    ``AP = 1/|P| · Σ_{i∈P} |{j ∈ P: f(x_j) ≥ f(x_i)}| / |{j: f(x_j) ≥ f(x_i)}|`` with P the positives. Li et al. (2002,
    section 3.2) write the precision at f(x_i) with ``f(x_j) > θ``; read to the letter, θ = f(x_i) leaves out x_i itself
    and gives 0/0 for the document on top, so θ is taken just below f(x_i). Documents with equal scores are thus
    retrieved together, whatever their order, and the value is that of ``sklearn.metrics.average_precision_score``.

    Parameters
    ----------
    relevant : array-like of shape (n_documents,), bool or 0/1
        Positive entries are the relevant documents.
    scores : array-like of shape (n_documents,)
        Signed, unscaled; larger = more relevant. Compared in the precision they come in.

    Returns
    -------
    float
        In (0, 1]; ``nan`` without a relevant document.

    Raises
    ------
    ValueError
        If the shapes differ or a score is nan.
    """
    relevant, scores = _one_topic(relevant, scores)
    return _average_precision(scores[relevant], scores)


def precision_recall_curve(
    relevant: ArrayLike, scores: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[Any]]:
    """Trace precision against recall over all thresholds of one topic.

    Parameters
    ----------
    relevant, scores
        As in `average_precision`.

    Returns
    -------
    precision, recall : ndarray of shape (n_distinct_scores,), float64
        One point per distinct score, from the highest down; ``recall`` is ``nan`` without a relevant document.
    scores : ndarray of shape (n_distinct_scores,)
        The point retrieves the documents with at least this score, that is with θ just below it.

    Raises
    ------
    ValueError
        If the shapes differ or a score is nan.
    """
    relevant, scores = _one_topic(relevant, scores)
    distinct, place = np.unique(scores, return_inverse=True)
    retrieved = np.cumsum(np.bincount(place, minlength=len(distinct))[::-1])
    hits = np.cumsum(np.bincount(place[relevant], minlength=len(distinct))[::-1])
    return hits / retrieved, _ratio(hits, np.full(len(hits), relevant.sum())), distinct[::-1]


def _one_topic(relevant: ArrayLike, scores: ArrayLike) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    labels, values = np.asarray(relevant) > 0, np.asarray(scores)
    if labels.ndim != 1:
        raise ValueError(f"One topic's labels are one-dimensional, these have shape {labels.shape}.")
    _require_scores(values, labels.shape)
    return labels, values


def _average_precision(at_positives: NDArray[Any], scores: NDArray[Any]) -> float:
    if not at_positives.size:
        return math.nan
    at_positives, ranked = np.sort(at_positives), np.sort(scores)
    hits = len(at_positives) - np.searchsorted(at_positives, at_positives)
    retrieved = len(ranked) - np.searchsorted(ranked, at_positives)
    return float(np.mean(hits / retrieved))


# --- all topics ------------------------------------------------------------------------------------------------------


def average_precisions(Y: Any, scores: ArrayLike) -> NDArray[np.float64]:
    """Compute the average precision of every topic.

    Parameters
    ----------
    Y : array-like or scipy sparse of shape (n_documents, n_topics), bool or 0/1
        Positive entries are the relevant documents.
    scores : array-like of shape (n_documents, n_topics)
        Signed, unscaled; larger = more relevant.

    Returns
    -------
    ndarray of shape (n_topics,), float64
        `average_precision` of each column; ``nan`` for a topic without a positive.

    Raises
    ------
    ValueError
        If the shapes differ or a score is nan.
    """
    positives, values = _all_topics(Y, scores)
    bounds = positives.indptr
    return np.array(
        [
            _average_precision(column[positives.indices[bounds[topic] : bounds[topic + 1]]], column)
            for topic, column in enumerate(values.T)
        ],
        dtype=np.float64,
    )


@dataclass(frozen=True, eq=False)
class Decisions:
    """What a threshold decides: counts per topic, and the measures that follow from them.

    Parameters
    ----------
    hits : ndarray of shape (n_topics,), int
        Relevant documents that are retrieved.
    retrieved : ndarray of shape (n_topics,), int
        Documents with a score above the threshold.
    positives : ndarray of shape (n_topics,), int
        Relevant documents.
    """

    hits: NDArray[np.intp]
    retrieved: NDArray[np.intp]
    positives: NDArray[np.intp]

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
        """``2·hits / (retrieved + positives)``, the harmonic mean of both; nan for a topic without a positive."""
        return np.where(self.positives > 0, _ratio(2 * self.hits, self.retrieved + self.positives), np.nan)

    def pooled(self, topics: Sequence[int] | None = None) -> "Decisions":
        """Sum the counts over all topics or those at the given places: measures of the sums are micro-averages.

        What is retrieved for a topic without a positive counts too, as wrongly retrieved.
        """
        places: Any = slice(None) if topics is None else np.asarray(topics, dtype=np.intp)
        hits, retrieved, positives = (
            np.array([counts[places].sum()]) for counts in (self.hits, self.retrieved, self.positives)
        )
        return Decisions(hits, retrieved, positives)


def decisions(Y: Any, scores: ArrayLike, threshold: ArrayLike = 0.0) -> Decisions:
    """Count per topic what is retrieved with ``score > threshold``, and how much of it is relevant.

    Parameters
    ----------
    Y, scores
        As in `average_precisions`.
    threshold : float or array-like of shape (n_topics,), default 0
        One threshold, or one per topic.

    Returns
    -------
    Decisions

    Raises
    ------
    ValueError
        If the shapes differ or a score is nan.
    """
    positives, values = _all_topics(Y, scores)
    retrieved = values > np.asarray(threshold)
    topic_of_positive = np.repeat(np.arange(values.shape[1]), np.diff(positives.indptr))
    hit = retrieved[positives.indices, topic_of_positive]
    return Decisions(
        hits=np.bincount(topic_of_positive[hit], minlength=values.shape[1]),
        retrieved=np.count_nonzero(retrieved, axis=0),
        positives=np.diff(positives.indptr).astype(np.intp),
    )


class MacroAverage(NamedTuple):
    """A mean over topics that says what it stands on."""

    mean: float | None
    """None if no topic could be counted."""
    counted: int
    """Topics with a positive."""
    left_out: int
    """Topics without one."""


def macro_average(values: ArrayLike, members: Sequence[int] | None = None) -> MacroAverage:
    """Average a measure over topics, leaving out those where it is not defined.

    Parameters
    ----------
    values : array-like of shape (n_topics,), float
        ``nan`` marks a topic without a positive.
    members : sequence of int, optional
        The places of the topics to average over, by default all.

    Returns
    -------
    MacroAverage
        ``(mean, counted, left_out)``.
    """
    values = np.asarray(values, dtype=np.float64)
    chosen = values if members is None else values[np.asarray(members, dtype=np.intp)]
    defined = chosen[~np.isnan(chosen)]
    return MacroAverage(float(defined.mean()) if defined.size else None, defined.size, chosen.size - defined.size)


def _all_topics(Y: Any, scores: ArrayLike) -> tuple[Any, NDArray[Any]]:
    """Return the positives column by column (CSC) and the scores, of one shape."""
    positives = sparse.csc_array((Y if sparse.issparse(Y) else np.asarray(Y)) > 0)
    values = np.asarray(scores)
    _require_scores(values, positives.shape)
    return positives, values


def _require_scores(scores: NDArray[Any], shape: tuple[int, ...]) -> None:
    if scores.shape != shape:
        raise ValueError(f"Scores of shape {scores.shape} cannot be compared with labels of shape {shape}.")
    if np.isnan(scores).any():
        raise ValueError(f"{np.isnan(scores).sum()} scores are nan: a document without a score cannot be ranked.")


def _ratio(numerator: NDArray[Any], denominator: NDArray[Any]) -> NDArray[np.float64]:
    """Divide elementwise; nan where the denominator is 0."""
    undefined = np.full(numerator.shape, np.nan)
    return np.divide(numerator, denominator, out=undefined, where=denominator > 0)


# --- bands of topics -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Band:
    """Topics that are averaged together.

    Parameters
    ----------
    name : str
        What the tables call it.
    topics : tuple of int
        Places in the list of topics, from the largest in training to the smallest; in the given order for a band that
        lists its topics.
    """

    name: str
    topics: tuple[int, ...]


def bands(topics: Sequence[str], train_sizes: ArrayLike, spec: str | Iterable[str] = DEFAULT_BANDS) -> list[Band]:
    """Choose the topics of each band by their number of training positives.

    Topics are ordered from the largest to the smallest, equal sizes by name; ``TOPn`` is the head of that order and
    ``LASTn`` its tail. With fewer than n topics the band has what there is.

    Parameters
    ----------
    topics : sequence of str
        Names, in the order of the columns.
    train_sizes : array-like of shape (n_topics,), int
        Training positives per topic.
    spec : str or iterable of str, default ("ALL", "TOP10", "LAST30")
        Each is ``ALL``, ``TOPn``, ``LASTn``, a range of training sizes with both ends in it such as ``10-50`` (``50-``
        has no upper end), or ``name=topic,topic``.

    Returns
    -------
    list of Band

    Raises
    ------
    BandError
        If a band is none of these or names an unknown topic.
    """
    sizes = np.asarray(train_sizes).tolist()
    if len(sizes) != len(topics):
        raise ValueError(f"{len(topics)} topics need as many training sizes, not {len(sizes)}.")
    by_size = sorted(range(len(topics)), key=lambda place: (-sizes[place], topics[place]))
    return [_band(text.strip(), topics, sizes, by_size) for text in ([spec] if isinstance(spec, str) else spec)]


def _band(text: str, topics: Sequence[str], sizes: Sequence[int], by_size: Sequence[int]) -> Band:
    if "=" in text:
        return _listed(text, topics)
    if text.upper() == "ALL":
        return Band("ALL", tuple(by_size))
    if match := _LARGEST_OR_SMALLEST.fullmatch(text):
        n = int(match[2])
        return Band(text.upper(), tuple(by_size[:n] if match[1].upper() == "TOP" else by_size[-n:]))
    if match := _SIZES.fullmatch(text):
        low, high = int(match[1]), int(match[2]) if match[2] else math.inf
        if low <= high:
            return Band(text, tuple(place for place in by_size if low <= sizes[place] <= high))
    raise BandError(
        f"No band '{text}': a band is ALL, TOPn or LASTn with n from 1, a range of training sizes "
        "such as 10-50 or 50-, or name=topic,topic."
    )


def _listed(text: str, topics: Sequence[str]) -> Band:
    name, _, listed = (part.strip() for part in text.partition("="))
    wanted = dict.fromkeys(topic.strip() for topic in listed.split(",") if topic.strip())
    if not (name and wanted):
        raise BandError(f"The band '{text}' lacks its name or its topics: write name=topic,topic.")
    places = {topic: place for place, topic in enumerate(topics)}
    for topic in wanted:
        if topic not in places:
            close = difflib.get_close_matches(topic, topics, n=1)
            remedy = f"Did you mean '{close[0]}'?" if close else f"Known topics: {', '.join(topics)}."
            raise BandError(f"No topic '{topic}' for the band '{name}'. {remedy}")
    return Band(name, tuple(places[topic] for topic in wanted))


# --- the whole evaluation --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TopicQuality:
    """How well one topic ranks the test documents; a measure is None if the topic has no positive there."""

    topic: str
    train_positives: int
    test_positives: int
    prevalence: float
    """Fraction of the training documents that are positive."""
    average_precision: float | None
    threshold: float
    """The precision, recall and F1 below are those of ``score > threshold``."""
    precision: float | None
    recall: float | None
    f1: float | None
    facts: dict[str, Any] = field(default_factory=dict)
    """What training knows of the topic, such as ``tau_pos``, ``epochs``, ``updates``, ``support``, ``stopped``."""


@dataclass(frozen=True)
class BandQuality:
    """Averages over the topics of one band; None if none of them has a positive (or a support size)."""

    band: str
    topics: int
    """Topics with a test positive, over which the two macro-averages are taken."""
    left_out: int
    """Topics of the band without a test positive."""
    macro_average_precision: float | None
    average_sparsity: float | None
    """Mean number of support documents, over all topics of the band."""
    macro_f1: float | None
    micro_f1: float | None


@dataclass(frozen=True)
class Evaluation:
    """Ranking quality on the test documents: a row per topic, in the order of the columns, and a row per band."""

    train_documents: int
    test_documents: int
    topics: tuple[TopicQuality, ...]
    bands: tuple[BandQuality, ...]


def evaluate(
    scores: ArrayLike,
    Y: Any,
    topics: Sequence[str],
    train_sizes: ArrayLike,
    train_documents: int,
    *,
    spec: str | Iterable[str] = DEFAULT_BANDS,
    threshold: ArrayLike = 0.0,
    facts: Mapping[str, ArrayLike] | None = None,
) -> Evaluation:
    """Measure the ranking of every topic and average over bands.

    Parameters
    ----------
    scores : array-like of shape (n_documents, n_topics)
        Of the test documents; signed, unscaled; larger = more relevant.
    Y : array-like or scipy sparse of shape (n_documents, n_topics), bool or 0/1
        Positive entries are the relevant test documents.
    topics : sequence of str of length n_topics
        Names, in the order of the columns.
    train_sizes : array-like of shape (n_topics,), int
        Training positives per topic: they make the bands.
    train_documents : int
        Number of training documents.
    spec : str or iterable of str, default ("ALL", "TOP10", "LAST30")
        As in `bands`.
    threshold : float or array-like of shape (n_topics,), default 0
        As in `decisions`.
    facts : mapping of str to array-like of shape (n_topics,), optional
        What training knows of each topic, shown in its row as it is; ``support`` (number of support documents) is
        averaged per band.

    Returns
    -------
    Evaluation

    Raises
    ------
    BandError
        If a band cannot be understood.
    ValueError
        If shapes or lengths differ, or a score is nan.
    """
    quality, chosen = average_precisions(Y, scores), decisions(Y, scores, threshold)
    per_topic = {
        "train_positives": train_sizes,
        "test_positives": chosen.positives,
        "prevalence": np.asarray(train_sizes) / max(train_documents, 1),
        "average_precision": quality,
        "threshold": np.broadcast_to(np.asarray(threshold, dtype=np.float64), quality.shape),
        "precision": chosen.precision,
        "recall": chosen.recall,
        "f1": chosen.f1,
    }
    facts = dict(facts or {})
    wanted = bands(topics, train_sizes, spec)
    return Evaluation(
        train_documents=int(train_documents),
        test_documents=np.shape(scores)[0],
        topics=tuple(
            TopicQuality(topic, **measures, facts=known)
            for topic, measures, known in zip(
                topics, _rows(per_topic, len(topics)), _rows(facts, len(topics)), strict=True
            )
        ),
        bands=tuple(_band_quality(band, quality, chosen, facts.get("support")) for band in wanted),
    )


def _band_quality(band: Band, quality: NDArray[Any], chosen: Decisions, support: ArrayLike | None) -> BandQuality:
    precision = macro_average(quality, band.topics)
    return BandQuality(
        band=band.name,
        topics=precision.counted,
        left_out=precision.left_out,
        macro_average_precision=precision.mean,
        average_sparsity=None if support is None else macro_average(support, band.topics).mean,
        macro_f1=macro_average(chosen.f1, band.topics).mean,
        micro_f1=_plain(float(chosen.pooled(band.topics).f1[0])),
    )


def _rows(columns: Mapping[str, ArrayLike], n_rows: int) -> list[dict[str, Any]]:
    """Turn columns into rows of plain Python values, nan into None."""
    lists = {name: np.asarray(values).tolist() for name, values in columns.items()}
    for name, values in lists.items():
        if len(values) != n_rows:
            raise ValueError(f"{n_rows} topics need as many values of '{name}', not {len(values)}.")
    return [{name: _plain(values[row]) for name, values in lists.items()} for row in range(n_rows)]


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value
