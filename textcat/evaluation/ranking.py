"""Scores and labels → ranking quality per topic and per band of topics, in one object.

A topic without a positive has no recall and no average precision: its row has ``None`` there, and it is left out of
every macro-average, which says how many it left out.
"""

import html
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from textcat.errors import TextcatError, did_you_mean
from textcat.evaluation import metrics

NOT_KEPT = (
    "Only the figures of this evaluation were kept, and resampling needs the scores: "
    "measure on a corpus that has test documents."
)
DEFAULT_BANDS = ("ALL", "TOP10", "LAST30")
_LARGEST_OR_SMALLEST = re.compile(r"(TOP|LAST)([1-9][0-9]*)", re.IGNORECASE)
_SIZES = re.compile(r"([0-9]+)-([0-9]*)")
_Confusion = tuple[tuple[str, str, int], ...]


@dataclass(frozen=True)
class Band:
    """Topics that are averaged together."""

    name: str
    topics: tuple[int, ...]  # places of topics, from the largest in training to the smallest, or as they are listed


def choose_bands(topics: Sequence[str], train_sizes: ArrayLike, spec: str | Iterable[str] | None = None) -> list[Band]:
    """Choose the topics of each band by their number of training positives.

    Topics are ordered from the largest to the smallest, equal sizes by name; ``TOPn`` is the head of that order and
    ``LASTn`` its tail. With fewer than n topics the band has what there is.
    """
    sizes = np.asarray(train_sizes).tolist()
    if len(sizes) != len(topics):
        raise ValueError(f"{len(topics)} topics need as many training sizes, not {len(sizes)}.")
    by_size = sorted(range(len(topics)), key=lambda place: (-sizes[place], topics[place]))
    if spec is None:
        spec = [name for name, size in zip(DEFAULT_BANDS, (0, 10, 30), strict=True) if size < len(topics)] or "ALL"
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
    raise TextcatError(
        f"No band '{text}': give ALL, TOPn or LASTn with n from 1, a range of training sizes "
        "such as 10-50 or 50-, or name=topic,topic."
    )


def _listed(text: str, topics: Sequence[str]) -> Band:
    name, _, listed = (part.strip() for part in text.partition("="))
    wanted = dict.fromkeys(topic.strip() for topic in listed.split(",") if topic.strip())
    if not (name and wanted):
        raise TextcatError(f"The band '{text}' lacks its name or its topics: write name=topic,topic.")
    places = {topic: place for place, topic in enumerate(topics)}
    for topic in wanted:
        if topic not in places:
            remedy = did_you_mean(topic, topics) or f" Known topics: {', '.join(topics)}."
            raise TextcatError(f"No topic '{topic}' for the band '{name}'.{remedy}")
    return Band(name, tuple(places[topic] for topic in wanted))


@dataclass(frozen=True)
class TopicQuality:
    """How well one topic ranks the test documents; a measure is None if no test document has the topic."""

    topic: str
    train_positives: int
    test_positives: int
    prevalence: float  # fraction of the training documents that are positive
    average_precision: float | None
    r_precision: float | None
    precision_at_10: float | None
    ndcg: float | None
    threshold: float | None
    """The precision, recall and F1 below are those of ``score > threshold``; None if infinite, or one per document."""
    precision: float | None
    recall: float | None
    f1: float | None
    facts: dict[str, Any] = field(default_factory=dict)
    """What training knows of the topic, such as ``tau_pos``, ``epochs``, ``updates``, ``support``, ``stopped``."""


@dataclass(frozen=True)
class BandQuality:
    """Averages over one band; None if none of its topics has a positive (or a support size).

    *Macro* averages are means over the topics that have a test positive. *Micro* averages are computed from the
    decisions of all topics of the band together. *Sample* averages and the last three measures are means over
    documents, for which only the band's topics count: sample averages over all documents, the last three measures over
    those that have a topic of the band.
    """

    band: str
    topics: int  # with a test positive
    left_out: int  # without one
    macro_average_precision: float | None
    average_sparsity: float | None  # mean number of support documents, over all topics of the band
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
    coverage_error: float | None  # mean rank of a document's last relevant topic: how many must be read to have all
    top_1_accuracy: float | None  # fraction of the documents whose topic of the highest score is right
    intervals: dict[str, tuple[float, float] | None] = field(default_factory=dict)
    """By the name of a measure its bounds, where they have been asked for: see `textcat.evaluation.significance`."""


@dataclass(frozen=True, repr=False)
class Evaluation:
    """Ranking quality on the test documents: a row per topic, in the order of the columns, and a row per band.

    In an evaluation that was read from a model's folder, `scores`, `relevant`, `threshold` and `band_topics` are None.
    """

    train_documents: int
    test_documents: int
    topics: tuple[TopicQuality, ...]
    bands: tuple[BandQuality, ...]
    measured_on: str = "test documents"
    """Or "training documents, by cross-validation": each is scored by rankers that were trained on others."""
    accuracy: float | None = None
    """Fraction of the documents with a topic that got one of theirs; None unless each document gets exactly one."""
    confusion: _Confusion | None = None
    """Topic, topic that documents of it got, and how many did, the most first; None unless each gets exactly one.

    Of a document that got one of its topics, that one alone is counted, else all of them."""
    scores: np.ndarray | None = field(default=None, compare=False)
    relevant: Any = field(default=None, compare=False)
    """Sparse, of the shape of the scores, 1 where the document has the topic."""
    threshold: np.ndarray | None = field(default=None, compare=False)  # as in `evaluate`
    band_topics: tuple[Band, ...] | None = field(default=None, compare=False)  # of each row of `bands`

    def as_dict(self) -> dict[str, Any]:
        """Return the figures, without the scores they were measured on, as JSON has them."""
        figures = {name: getattr(self, name) for name in ("train_documents", "test_documents", "measured_on")}
        if self.confusion is not None:
            figures |= {"accuracy": self.accuracy, "confusion": self.confusion}
        return figures | {"topics": list(map(asdict, self.topics)), "bands": list(map(asdict, self.bands))}

    @classmethod
    def from_dict(cls, figures: Mapping[str, Any]) -> "Evaluation":
        """Return the evaluation that `as_dict` made these figures of; a KeyError, TypeError or ValueError if none."""
        topics = tuple(TopicQuality(**row) for row in figures["topics"])
        bands = tuple(BandQuality(**row) for row in figures["bands"])
        confusion = None if figures.get("confusion") is None else tuple(map(tuple, figures["confusion"]))
        return cls(**{**figures, "topics": topics, "bands": bands, "confusion": confusion})

    def to_frame(self, rows: Literal["topics", "bands", "confusion"] = "topics") -> Any:
        """Return a pandas DataFrame, indexed by name: a row per topic with its facts, or a row per band.

        For "confusion", return the matrix of confusions: documents of the row's topic that got the column's topic.
        """
        try:
            import pandas
        except ImportError as error:
            raise TextcatError("A DataFrame needs pandas: pip install pandas.") from error
        if rows == "confusion" and self.confusion is not None:
            names = [row.topic for row in self.topics]
            matrix = pandas.DataFrame(0, index=pandas.Index(names, name="topic"), columns=names)
            for topic, got, documents in self.confusion:
                matrix.loc[topic, got] = documents
            return matrix
        if rows == "topics":
            entries = [asdict(row) for row in self.topics]
            return pandas.DataFrame([entry | entry.pop("facts") for entry in entries]).set_index("topic")
        if rows == "bands":
            entries = [asdict(row) for row in self.bands]
            for entry in entries:
                for name, interval in entry.pop("intervals").items():
                    entry[f"{name}_low"], entry[f"{name}_high"] = interval or (None, None)
            return pandas.DataFrame(entries).set_index("band")
        raise TextcatError(f"This evaluation has no rows of {rows!r}: ask for 'topics' or 'bands'.")

    def __repr__(self) -> str:
        row = self.bands[0] if self.bands else None
        measured = {"MAP": row and row.macro_average_precision, "macro F1": row and row.macro_f1}
        measured["accuracy"] = self.accuracy
        figures = "".join(f", {name} {value:.3f}" for name, value in measured.items() if value is not None)
        return f"<Evaluation of {len(self.topics)} topics on {self.test_documents} {self.measured_on}{figures}>"

    def _repr_html_(self) -> str:
        lines = ["<th></th><th>MAP</th><th>macro F1</th><th>micro F1</th><th>topics</th>"]
        for row in self.bands:
            values = (row.macro_average_precision, row.macro_f1, row.micro_f1, row.topics)
            cells = "".join("<td></td>" if value is None else f"<td>{value:.4g}</td>" for value in values)
            lines.append(f"<td>{html.escape(row.band)}</td>{cells}")
        return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table><p>{html.escape(repr(self))}</p>"


def evaluate(
    scores: ArrayLike,
    Y: Any,
    topics: Sequence[str],
    train_sizes: ArrayLike,
    train_documents: int,
    *,
    spec: str | Iterable[str] | None = None,
    threshold: ArrayLike = 0.0,
    facts: Mapping[str, ArrayLike] | None = None,
    measured_on: str = "test documents",
) -> Evaluation:
    """Measure the ranking of every topic and average over bands.

    Parameters
    ----------
    scores : array-like of shape (n_documents, n_topics)
        Scores of the test documents: signed, unscaled, larger = more relevant.
    Y : array-like or sparse of shape (n_documents, n_topics), bool or 0/1
        Positive where a document is relevant to a topic.
    topics, train_sizes, train_documents : sequence of str, array-like of shape (n_topics,), int
        Names in the order of the columns, number of training positives per topic, and of all training documents.
    spec : str or iterable of str, optional
        The bands: each is ``ALL``; ``TOPn`` or ``LASTn``, the n largest or smallest topics; a range of training sizes,
        ends included, such as ``10-50`` or ``50-``; or ``name=topic,topic``. By default ``ALL``, ``TOP10`` and
        ``LAST30``, the last two only if there are more topics than that.
    threshold : float or array-like of shape (n_topics,) or (n_documents, n_topics), default 0
        A document gets a topic if ``score > threshold``. With a threshold for every score, as
        `textcat.evaluation.ranking.one_topic` returns them, accuracy and confusions are counted.
    facts : mapping of str to array-like of shape (n_topics,), optional
        Other facts about each topic, which are shown in its row; ``support``, its number of support documents, is also
        averaged per band.
    measured_on : str
        Which documents these are, in words.

    Returns
    -------
    Evaluation

    Raises
    ------
    ValueError
        If shapes differ, or a score is nan.
    TextcatError
        If a band cannot be understood, or names a topic that is not there.
    """
    from scipy import sparse  # here, so that tagging need not import it

    ranked, chosen = metrics.topic_rankings(Y, scores), metrics.topic_decisions(Y, scores, threshold)
    labels, values, cut = sparse.csc_array(Y), np.asarray(scores), np.asarray(threshold, dtype=np.float64)
    single = cut.ndim == 2
    cut = cut if single else np.broadcast_to(cut, ranked.ndcg.shape)
    measures = {
        "average_precision": ranked.average_precision,
        "r_precision": ranked.r_precision,
        "precision_at_10": ranked.precision_at_k,
        "ndcg": ranked.ndcg,
        "precision": chosen.precision,
        "recall": chosen.recall,
        "f1": chosen.f1,
    }
    sizes = {
        "train_positives": train_sizes,
        "test_positives": chosen.positives,
        "prevalence": np.asarray(train_sizes) / max(train_documents, 1),
        "threshold": np.full(len(topics), np.nan) if single else cut,
    }
    facts, band_topics = dict(facts or {}), choose_bands(topics, train_sizes, spec)
    accuracy, confusion = _confusions(labels, values > cut, topics) if single else (None, None)
    return Evaluation(
        train_documents=int(train_documents),
        test_documents=len(values),
        topics=tuple(
            TopicQuality(topic, **row, facts=known)
            for topic, row, known in zip(topics, _rows(sizes | measures, topics), _rows(facts, topics), strict=True)
        ),
        bands=tuple(
            BandQuality(
                band.name,
                **_over_topics(band, measures, chosen, facts.get("support")),
                **_over_documents(labels[:, band.topics], values[:, band.topics], cut[..., list(band.topics)]),
            )
            for band in band_topics
        ),
        measured_on=measured_on,
        accuracy=accuracy,
        confusion=confusion,
        scores=values,
        relevant=labels,
        threshold=cut,
        band_topics=tuple(band_topics),
    )


def one_topic(scores: ArrayLike) -> np.ndarray:
    """Return thresholds, of the scores' shape, by which each document gets the topic of its highest score."""
    values = np.asarray(scores)
    return np.where(np.arange(values.shape[1]) == values.argmax(axis=1)[:, np.newaxis], -np.inf, np.inf)


def _confusions(labels: Any, given: np.ndarray, topics: Sequence[str]) -> tuple[float | None, _Confusion]:
    """Return the accuracy over the documents that have a topic, and the counts of `Evaluation.confusion`."""
    from scipy import sparse

    own, got = (sparse.csr_array(cells, dtype=np.int64) for cells in (labels > 0, given))
    hits = own * got
    right, labelled = hits.sum(axis=1) > 0, np.diff(own.indptr) > 0
    # A document of several topics that got one of them has confused nothing.
    diagonal = sparse.diags_array(hits.sum(axis=0), dtype=np.int64)
    counts = sparse.coo_array(own[~right].T @ got[~right] + diagonal)
    cells = sorted(zip(-counts.data, counts.row.tolist(), counts.col.tolist(), strict=True))
    confusion = tuple((topics[row], topics[column], int(-n)) for n, row, column in cells if n)
    return float(right[labelled].mean()) if labelled.any() else None, confusion


def _over_topics(
    band: Band, measures: Mapping[str, ArrayLike], chosen: metrics.Decisions, support: ArrayLike | None
) -> dict[str, Any]:
    counted, pooled = metrics.macro_average(measures["average_precision"], band.topics), chosen.pooled(band.topics)
    micro = {"precision": pooled.precision, "recall": pooled.recall, "f1": pooled.f1}
    return {
        "topics": counted.counted,
        "left_out": counted.left_out,
        "average_sparsity": None if support is None else metrics.macro_average(support, band.topics).mean,
        **{f"macro_{name}": metrics.macro_average(values, band.topics).mean for name, values in measures.items()},
        **{f"micro_{name}": _plain(float(values[0])) for name, values in micro.items()},
    }


def _over_documents(Y: Any, scores: ArrayLike, threshold: ArrayLike) -> dict[str, Any]:
    chosen, ranked = metrics.document_decisions(Y, scores, threshold), metrics.document_rankings(Y, scores)
    counted = Y.nnz > 0
    return {
        **{f"sample_{name}": float(values.mean()) if counted else None for name, values in chosen._asdict().items()},
        "label_ranking_average_precision": metrics.macro_average(ranked.average_precision).mean,
        "coverage_error": metrics.macro_average(ranked.coverage).mean,
        "top_1_accuracy": metrics.macro_average(ranked.first).mean,
    }


def _rows(columns: Mapping[str, ArrayLike], topics: Sequence[str]) -> list[dict[str, Any]]:
    """Turn columns into a row of plain Python values per topic, nan and infinity into None."""
    lists = {name: np.asarray(values).tolist() for name, values in columns.items()}
    for name, values in lists.items():
        if len(values) != len(topics):
            raise ValueError(f"{len(topics)} topics need as many values of '{name}', not {len(values)}.")
    return [{name: _plain(values[row]) for name, values in lists.items()} for row in range(len(topics))]


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
