"""Scores and labels → ranking quality per topic and per band of topics.

A topic without a positive has no recall and no average precision: its row has ``None`` there, and it is left out of
every macro-average, which says how many it left out.
"""

import difflib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy  # its parts load at their first use
from numpy.typing import ArrayLike

from textcat.errors import TextcatError
from textcat.evaluation.metrics import (
    Decisions,
    TopicRankings,
    average_precision,
    average_precisions,
    decisions,
    document_decisions,
    document_rankings,
    macro_average,
    precision_recall_curve,
    topic_rankings,
)

__all__ = [
    "DEFAULT_BANDS",
    "Band",
    "BandError",
    "BandQuality",
    "Evaluation",
    "TopicQuality",
    "average_precision",
    "average_precisions",
    "bands",
    "decisions",
    "evaluate",
    "macro_average",
    "precision_recall_curve",
]

DEFAULT_BANDS = ("ALL", "TOP10", "LAST30")

_LARGEST_OR_SMALLEST = re.compile(r"(TOP|LAST)([1-9][0-9]*)", re.IGNORECASE)
_SIZES = re.compile(r"([0-9]+)-([0-9]*)")


class BandError(TextcatError, ValueError):
    """A band that cannot be understood, or that names a topic the corpus does not have."""


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
    r_precision: float | None
    precision_at_10: float | None
    ndcg: float | None
    threshold: float | None
    """The precision, recall and F1 below are those of ``score > threshold``; None if no document is to pass."""
    precision: float | None
    recall: float | None
    f1: float | None
    facts: dict[str, Any] = field(default_factory=dict)
    """What training knows of the topic, such as ``tau_pos``, ``epochs``, ``updates``, ``support``, ``stopped``."""


@dataclass(frozen=True)
class BandQuality:
    """Averages over one band; None if none of its topics has a positive (or a support size).

    *Macro* averages are means over the topics that have a test positive. *Micro* ones are those of all decisions of the
    band taken together. *Sample* averages, and the last three, are means over documents that know no topics but the
    band's: sample averages over all documents, the last three over those that have a topic of it.
    """

    band: str
    topics: int
    """Topics with a test positive."""
    left_out: int
    """Topics of the band without a test positive."""
    macro_average_precision: float | None
    average_sparsity: float | None
    """Mean number of support documents, over all topics of the band."""
    macro_r_precision: float | None
    macro_precision_at_10: float | None
    macro_ndcg: float | None
    macro_precision: float | None
    macro_recall: float | None
    macro_f1: float | None
    micro_precision: float | None
    micro_recall: float | None
    micro_f1: float | None
    sample_precision: float | None
    sample_recall: float | None
    sample_f1: float | None
    label_ranking_average_precision: float | None
    coverage_error: float | None
    """How far down its topics a document must go, on the average, to have all that are right."""
    top_1_accuracy: float | None
    """Fraction of the documents whose topic of the highest score is right."""
    intervals: dict[str, tuple[float, float] | None] = field(default_factory=dict)
    """By the name of a measure its bounds, where they have been asked for: see `textcat.evaluation.resampling`."""


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
    ranked, chosen = topic_rankings(Y, scores), decisions(Y, scores, threshold)
    thresholds = np.broadcast_to(np.asarray(threshold, dtype=np.float64), ranked.ndcg.shape)
    per_topic = {
        "train_positives": train_sizes,
        "test_positives": chosen.positives,
        "prevalence": np.asarray(train_sizes) / max(train_documents, 1),
        "average_precision": ranked.average_precision,
        "r_precision": ranked.r_precision,
        "precision_at_10": ranked.precision_at_k,
        "ndcg": ranked.ndcg,
        "threshold": thresholds,
        "precision": chosen.precision,
        "recall": chosen.recall,
        "f1": chosen.f1,
    }
    facts, labels, values = dict(facts or {}), scipy.sparse.csc_array(Y), np.asarray(scores)
    return Evaluation(
        train_documents=int(train_documents),
        test_documents=len(values),
        topics=tuple(
            TopicQuality(topic, **measures, facts=known)
            for topic, measures, known in zip(
                topics, _rows(per_topic, len(topics)), _rows(facts, len(topics)), strict=True
            )
        ),
        bands=tuple(
            BandQuality(
                band.name,
                **_over_topics(band, ranked, chosen, facts.get("support")),
                **_over_documents(labels[:, band.topics], values[:, band.topics], thresholds[list(band.topics)]),
            )
            for band in bands(topics, train_sizes, spec)
        ),
    )


def _over_topics(band: Band, ranked: TopicRankings, chosen: Decisions, support: ArrayLike | None) -> dict[str, Any]:
    """Average what is measured per topic over a band."""
    counted, pooled = macro_average(ranked.average_precision, band.topics), chosen.pooled(band.topics)
    macro = {
        "average_precision": ranked.average_precision,
        "r_precision": ranked.r_precision,
        "precision_at_10": ranked.precision_at_k,
        "ndcg": ranked.ndcg,
        "precision": chosen.precision,
        "recall": chosen.recall,
        "f1": chosen.f1,
    }
    micro = {"precision": pooled.precision, "recall": pooled.recall, "f1": pooled.f1}
    return {
        "topics": counted.counted,
        "left_out": counted.left_out,
        "average_sparsity": None if support is None else macro_average(support, band.topics).mean,
        **{f"macro_{name}": macro_average(values, band.topics).mean for name, values in macro.items()},
        **{f"micro_{name}": _plain(float(values[0])) for name, values in micro.items()},
    }


def _over_documents(Y: Any, scores: ArrayLike, threshold: ArrayLike) -> dict[str, Any]:
    """Average what is measured per document, over the topics of a band."""
    chosen, ranked = document_decisions(Y, scores, threshold), document_rankings(Y, scores)
    counted = Y.nnz > 0
    return {
        **{f"sample_{name}": float(values.mean()) if counted else None for name, values in chosen._asdict().items()},
        "label_ranking_average_precision": macro_average(ranked.average_precision).mean,
        "coverage_error": macro_average(ranked.coverage).mean,
        "top_1_accuracy": macro_average(ranked.first).mean,
    }


def _rows(columns: Mapping[str, ArrayLike], n_rows: int) -> list[dict[str, Any]]:
    """Turn columns into rows of plain Python values, nan and infinity into None."""
    lists = {name: np.asarray(values).tolist() for name, values in columns.items()}
    for name, values in lists.items():
        if len(values) != n_rows:
            raise ValueError(f"{n_rows} topics need as many values of '{name}', not {len(values)}.")
    return [{name: _plain(values[row]) for name, values in lists.items()} for row in range(n_rows)]


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
