"""Measure scores against labels: measures per band of topics and, with few topics, for each topic.

A topic without a positive document has no recall and no average precision: these are ``None``, and macro-averages are
taken over the other topics of a band; `BandQuality.left_out` is the number of topics without a positive.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from textcat.base.errors import TextcatError
from textcat.base.markup import html_table
from textcat.evaluation import metrics
from textcat.evaluation.bands import Band, choose_bands
from textcat.evaluation.promises import CheckedPromise

_Confusion = tuple[tuple[str, str, int], ...]


class MeasuredOn(str, Enum):
    """The kind of documents that an evaluation was measured on; the values are printed and stored."""

    TEST = "test documents"
    CROSS_VALIDATION = "training documents, by cross-validation"  # scored by rankers that were not trained on them
    SAMPLE = "training documents, held out as a sample"  # scored by a tagger that was not trained on them

    __str__ = str.__str__


class Title(NamedTuple):
    """How tables show a measure: its titles, its decimals, and whether it is one of the main measures."""

    line: str  # title of a row
    column: str  # title of a column
    decimals: int = 3
    is_main: bool = False  # True: always shown; False: shown only if all measures are asked for


TITLES = {
    "macro_average_precision": Title("mean average precision (MAP)", "MAP", is_main=True),
    "macro_r_precision": Title("macro R-precision", "macro R-precision"),
    "macro_precision_at_10": Title("macro P@10", "macro P@10"),
    "macro_ndcg": Title("macro nDCG", "macro nDCG"),
    "mean_support": Title("mean support (documents)", "support", decimals=0, is_main=True),
    "macro_precision": Title("macro precision", "macro precision"),
    "macro_recall": Title("macro recall", "macro recall"),
    "macro_f1": Title("macro F1", "macro F1", is_main=True),
    "micro_precision": Title("micro precision", "micro precision"),
    "micro_recall": Title("micro recall", "micro recall"),
    "micro_f1": Title("micro F1", "micro F1", is_main=True),
    "sample_precision": Title("sample precision (documents with a tag)", "sample precision"),
    "sample_recall": Title("sample recall (documents with a topic)", "sample recall"),
    "sample_f1": Title("sample F1 (documents with either)", "sample F1"),
    "label_ranking_average_precision": Title("label ranking average precision (documents with a topic)", "LRAP"),
    "coverage_error": Title("coverage error (documents with a topic)", "coverage error", decimals=2),
    "top_1_accuracy": Title("top-1 accuracy (documents with a topic)", "top-1 accuracy"),
    "precision@1": Title("P@1", "P@1", is_main=True),
    "precision@3": Title("P@3", "P@3", is_main=True),
    "precision@5": Title("P@5", "P@5", is_main=True),
    "ndcg@10": Title("nDCG@10", "nDCG@10", is_main=True),
    "recall@10": Title("recall@10", "recall@10", is_main=True),
    "pair_recall@10": Title("recall@10 of all pairs", "recall@10 of all pairs", is_main=True),
    "f1@5": Title("F1@5", "F1@5", is_main=True),
    "psp@5": Title("PSP@5", "PSP@5", is_main=True),
}
"""The measures that tables show, in their order."""
_IN_A_LINE = ("macro_average_precision", "macro_f1", "precision@1", "ndcg@10")  # measures shown in a repr


@dataclass(frozen=True)
class TopicQuality:
    """The quality of one topic's ranking of the test documents; a measure is None if no test document has the topic."""

    topic: str
    train_positives: int
    test_positives: int
    prevalence: float  # fraction of the training documents that are positive
    average_precision: float | None
    r_precision: float | None
    precision_at_10: float | None
    ndcg: float | None
    threshold: float | None
    """The fields below are measured at this threshold; None if it is infinite, or differs between documents."""
    precision: float | None
    recall: float | None
    f1: float | None
    facts: dict[str, Any] = field(default_factory=dict)
    """Facts recorded in training, such as ``tau_pos``, ``epochs``, ``updates``, ``support``, ``stopped``."""


@dataclass(frozen=True)
class BandQuality:
    """The measures of a band of topics, such as TOP10; get one by its name, as in ``row["macro_f1"]``.

    A measure is None if there is nothing to average.

    For models of few topics, *macro* averages are means over the topics that have a test positive, *micro* averages are
    computed from the decisions of all topics of the band together, and *sample* averages are means over documents:
    ``sample_precision`` over those that get a topic of the band, ``sample_recall`` over those that have one, and
    ``sample_f1`` over those that get or have one, as scikit-learn computes them with ``zero_division=nan``. Means over
    the documents that have a topic of the band are ``label_ranking_average_precision``, ``coverage_error`` (the rank of
    a document's last relevant topic) and ``top_1_accuracy`` (1 if the topic of the highest score is right); on these
    documents, the first two are those of scikit-learn. Measures of documents consider only the band's topics.
    ``mean_support`` is the mean number of support documents over all topics of the band, None if not known.

    Measures at k, such as ``ndcg@10``, are defined at the head of `textcat.evaluation.at_k`.
    """

    band: str
    topics: int  # number of topics with a test positive
    left_out: int  # number of topics without a test positive
    measures: Mapping[str, float | None]
    intervals: Mapping[str, tuple[float, float] | None] = field(default_factory=dict)
    """Bootstrap bounds by measure, if they were asked for: see `textcat.evaluation.significance`."""
    documents: int | None = None  # number of documents with a topic of the band: measures at k are means over these
    pairs: int | None = None  # number of pairs of a document and a relevant topic of the band

    def __getitem__(self, measure: str) -> float | None:
        return self.measures[measure]

    def __iter__(self) -> Iterator[str]:
        return iter(self.measures)

    def as_dict(self) -> dict[str, Any]:
        """Return counts, measures and intervals as a dict for JSON; a measure at k, such as nDCG@10, is a dict by k."""
        figures = self._counts()
        for name, value in self.measures.items():
            measure, _, k = name.partition("@")
            figures |= {measure: {**figures.get(measure, {}), k: value}} if k else {measure: value}
        return figures | {"intervals": dict(self.intervals)}

    @classmethod
    def from_dict(cls, figures: Mapping[str, Any]) -> "BandQuality":
        """Rebuild the measures of a band from the dict that `as_dict` returned."""
        figures = dict(figures)
        intervals = {name: bounds and tuple(bounds) for name, bounds in figures.pop("intervals").items()}
        counts = {name: figures.pop(name) for name in ("band", "topics", "left_out")}
        counts |= {name: figures.pop(name, None) for name in ("documents", "pairs")}
        measures: dict[str, float | None] = {}
        for name, value in figures.items():
            measures |= {f"{name}@{k}": at_k for k, at_k in value.items()} if isinstance(value, dict) else {name: value}
        return cls(**counts, measures=measures, intervals=intervals)

    def flat(self) -> dict[str, Any]:
        """Return counts, measures and bounds of intervals as one flat dict, with names such as ``ndcg@10_low``."""
        figures = self._counts() | dict(self.measures)
        for name, bounds in self.intervals.items():
            figures[f"{name}_low"], figures[f"{name}_high"] = bounds or (None, None)
        return figures

    def _counts(self) -> dict[str, Any]:
        names = ("band", "topics", "left_out", "documents", "pairs")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


@dataclass(frozen=True, eq=False)
class ScoredDocuments:
    """The scores, labels and thresholds that an evaluation with few topics was computed from."""

    scores: NDArray[Any]
    relevant: Any
    """Sparse (CSC), of the same shape as the scores: 1 where the document has the topic."""
    threshold: NDArray[Any]
    bands: tuple[Band, ...]
    measures: ClassVar = ("macro_average_precision", "macro_f1", "micro_f1")  # measures that are resampled

    @cached_property
    def given(self) -> NDArray[np.bool_]:
        """Whether each document gets each topic: shape (n_documents, n_topics)."""
        return np.asarray(self.scores > self.threshold)

    def resampled(
        self, draws: Iterable[NDArray[np.int32]]
    ) -> tuple[NDArray[np.float64], dict[str, NDArray[np.float64]]]:
        """Return measures on resamples of the documents: of the bands, and each topic's average precision and F1.

        The shapes are (n_bands, n_measures, n_resamples) and (n_topics, n_resamples), with nan where no topic has a
        positive. `draws` yields arrays, each for some of the resamples, of shape (n_documents, n_of_these): how often a
        document is in a resample. Topics without a positive in a resample are left out of the macro-averages of this
        resample.
        """
        from scipy import sparse

        positives, values = metrics.checked_labels(self.relevant, self.scores)
        assigned = sparse.csc_array(self.given)
        counted = [
            sparse.csr_array(entries.T, dtype=np.int32) for entries in (positives * assigned, assigned, positives)
        ]
        columns = zip(values.T, metrics.positives_by_topic(positives), strict=True)
        rankings = [metrics.RankingSteps.of(column, rows) for column, rows in columns]
        topics_of_bands = [list(band.topics) for band in self.bands]
        bands_of_blocks, precision_of_blocks, f1_of_blocks = [], [], []
        for drawn in draws:
            precision = np.array([ranking.average_precision(drawn) for ranking in rankings])
            counts = metrics.Decisions(*(entries @ drawn for entries in counted))
            f1, mean = counts.f1, metrics.mean_of_topics
            of_bands = [
                [mean(precision[topics]), mean(f1[topics]), counts.pooled(topics).f1[0]] for topics in topics_of_bands
            ]
            bands_of_blocks.append(np.array(of_bands))
            precision_of_blocks.append(precision)
            f1_of_blocks.append(f1)
        of_topics = {"average_precision": precision_of_blocks, "f1": f1_of_blocks}
        joined = {name: np.concatenate(blocks, axis=1) for name, blocks in of_topics.items()}
        return np.concatenate(bands_of_blocks, axis=2), joined


@dataclass(frozen=True, eq=False)
class DocumentValues:
    """Values of measures on single documents, for measures that are means over documents.

    Measures on resamples of the documents are means of these values.
    """

    measures: tuple[str, ...]
    values: NDArray[np.float64]
    """Shape (1 + n_bands, n_measures, n_documents), all topics first; nan if a document has no topic of the band."""

    def resampled(self, draws: Iterable[NDArray[np.int32]]) -> tuple[NDArray[np.float64], None]:
        """Return the mean of each measure on each resample of the documents; nan if no document has a value.

        The shape is (1 + n_bands, n_measures, n_resamples): all topics first, then each band of topics, such as TOP10.
        The None returned with the means stands for the quality of single topics, which is not measured. `draws` is as
        for `ScoredDocuments.resampled`.
        """
        is_known = ~np.isnan(self.values)
        values, blocks = np.where(is_known, self.values, 0.0), []
        for drawn in draws:
            times = drawn.astype(np.float64)
            n_known = is_known @ times
            blocks.append(np.divide(values @ times, n_known, out=np.full(n_known.shape, np.nan), where=n_known > 0))
        return np.concatenate(blocks, axis=2), None


@dataclass(frozen=True, repr=False)
class Evaluation:
    """Measures of ranking quality on documents: a row per band of topics and, with few topics, a row per topic.

    An evaluation that was read from a model's folder has the measures, but not what they were computed from: `scored`
    and `values` are None.
    """

    train_documents: int
    test_documents: int
    n_topics: int
    bands: tuple[BandQuality, ...]
    topics: tuple[TopicQuality, ...] = ()
    """Rows of topics in the order of the columns; empty if the evaluation is by `textcat.evaluate_at_k`."""
    measured_on: MeasuredOn = MeasuredOn.TEST
    accuracy: float | None = None
    """The share of documents with a topic that got a right topic; None unless topics are given one per document."""
    confusion: _Confusion | None = None
    """Tuples (right topic, assigned topic, number of documents), largest number first; None if `accuracy` is None.

    A document that got a right topic counts for this topic alone, any other document for all its topics.
    """
    overall: BandQuality | None = None
    """The row of all topics, also of those without a column. This and the next four fields are None with few topics."""
    ks: tuple[int, ...] | None = None
    propensity: tuple[float, float] | None = None
    without_topic: int | None = None  # test documents without a relevant topic, which are left out
    unknown: int | None = None  # pairs of a document and a relevant topic that has no column
    twins: int | None = None  # test documents that repeat a training document, or are repeated by one
    without_twins: tuple[BandQuality, ...] = ()
    """The rows of `bands` on the other test documents; () if there are no twins, or many topics."""
    promises: tuple[CheckedPromise, ...] = ()
    """Results of checking the promises on test documents; () if there are none, or other documents were used."""
    scored: ScoredDocuments | None = field(default=None, compare=False)
    values: DocumentValues | None = field(default=None, compare=False)

    @property
    def sample(self) -> ScoredDocuments | DocumentValues | None:
        """What to resample for intervals and comparisons: scores, or measures per document; None if not kept."""
        return self.scored or self.values

    @property
    def rows(self) -> tuple[BandQuality, ...]:
        """The rows of measures that get intervals from resamples: `overall`, if there is one, and the bands."""
        return self.bands if self.overall is None else (self.overall, *self.bands)

    def as_dict(self) -> dict[str, Any]:
        """Return the counts and measures as a dict for JSON, without the scores and labels they were computed from."""
        names = ("train_documents", "test_documents", "n_topics", "without_topic", "unknown", "ks", "propensity")
        figures = {
            name: value for name in (*names, "twins", "measured_on") if (value := getattr(self, name)) is not None
        }
        if self.confusion is not None:
            figures |= {"accuracy": self.accuracy, "confusion": self.confusion}
        if self.overall is not None:
            figures["overall"] = self.overall.as_dict()
        if self.topics:
            del figures["n_topics"]  # rows of bands have it
            figures["topics"] = list(map(asdict, self.topics))
        if self.promises:
            figures["promises"] = list(map(asdict, self.promises))
        if self.without_twins:
            figures["without_twins"] = [row.as_dict() for row in self.without_twins]
        return figures | {"bands": [row.as_dict() for row in self.bands]}

    @classmethod
    def from_dict(cls, figures: Mapping[str, Any]) -> "Evaluation":
        """Rebuild an evaluation from the dict that `as_dict` returned.

        Raise KeyError, TypeError or ValueError for any other dict.
        """
        topics = tuple(TopicQuality(**row) for row in figures.get("topics", ()))
        parts: dict[str, Any] = {"topics": topics, "bands": tuple(map(BandQuality.from_dict, figures["bands"]))}
        parts |= {name: tuple(figures[name]) for name in ("ks", "propensity") if name in figures}
        if "promises" in figures:
            parts["promises"] = tuple(map(CheckedPromise.from_dict, figures["promises"]))
        if "without_twins" in figures:
            parts["without_twins"] = tuple(map(BandQuality.from_dict, figures["without_twins"]))
        if figures.get("confusion") is not None:
            parts["confusion"] = tuple(map(tuple, figures["confusion"]))
        if "overall" in figures:
            parts["overall"] = BandQuality.from_dict(figures["overall"])
        parts["measured_on"] = MeasuredOn(figures.get("measured_on", MeasuredOn.TEST))
        return cls(**{"n_topics": len(topics), **figures, **parts})

    def to_frame(self, rows: Literal["topics", "bands", "confusion"] | None = None) -> Any:
        """Return a pandas DataFrame of the measures, with a row per topic or per band, indexed by its name.

        By default, there is a row per topic if topics were measured one by one, otherwise a row per band. Rows of
        topics also have the values that training recorded, such as epochs. For "confusion", the table counts for each
        topic (row) how many of its documents got which topic (column). Raise TextcatError if the evaluation does not
        have these rows.
        """
        try:
            import pandas
        except ImportError as error:
            raise TextcatError("A DataFrame needs pandas: pip install pandas.") from error
        kinds = {"topics": self.topics, "bands": self.bands, "confusion": self.confusion is not None}
        rows = rows or ("topics" if self.topics else "bands")
        if not kinds.get(rows):
            choices = " or ".join(repr(kind) for kind, is_there in kinds.items() if is_there)
            raise TextcatError(f"This evaluation has no rows of {rows!r}: ask for {choices}.")
        if rows == "confusion":
            names = [row.topic for row in self.topics]
            matrix = pandas.DataFrame(0, index=pandas.Index(names, name="topic"), columns=names)
            for topic, got, documents in self.confusion or ():
                matrix.loc[topic, got] = documents
            return matrix
        if rows == "bands":
            return pandas.DataFrame([row.flat() for row in self.bands]).set_index("band")
        entries = [asdict(row) for row in self.topics]
        return pandas.DataFrame([entry | entry.pop("facts") for entry in entries]).set_index("topic")

    def __repr__(self) -> str:
        measures = dict(next(iter(self.rows)).measures) if self.rows else {}
        shown = {TITLES[name].column: measures.get(name) for name in _IN_A_LINE} | {"accuracy": self.accuracy}
        figures = "".join(f", {title} {value:.3f}" for title, value in shown.items() if value is not None)
        return f"<Evaluation of {self.n_topics} topics on {self.test_documents} {self.measured_on}{figures}>"

    def _repr_html_(self) -> str:
        shown = [name for name in self.titles() if TITLES[name].is_main]
        counts = [name for name in ("documents", "topics") if self.bands and getattr(self.bands[0], name) is not None]
        head = ("", *(TITLES[name].column for name in shown), *counts)
        rows = (
            (row.band, *(row[name] for name in shown), *(getattr(row, name) for name in counts)) for row in self.bands
        )
        return html_table(head, rows, caption=repr(self))

    def titles(self) -> dict[str, Title]:
        """Return the titles of the measures by their names; tables of bands show these titles.

        The mean support is left out if it is unknown for all bands.
        """
        measures = set(self.bands[0].measures if self.bands else ())
        if all(row.measures.get("mean_support") is None for row in self.bands):
            measures.discard("mean_support")
        return {name: title for name, title in TITLES.items() if name in measures}


def evaluate_scores(
    scores: ArrayLike,
    Y: Any,
    topics: Sequence[str],
    train_sizes: ArrayLike,
    train_documents: int,
    *,
    spec: str | Iterable[str] | None = None,
    threshold: ArrayLike = 0.0,
    has_terms: ArrayLike | None = None,
    facts: Mapping[str, ArrayLike] | None = None,
    measured_on: MeasuredOn = MeasuredOn.TEST,
) -> Evaluation:
    """Measure how well each topic's scores rank the documents, and average over bands of topics (ALL, TOP10, LAST30).

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
        `textcat.evaluation.evaluation.single_topic_thresholds` returns them, accuracy and confusions are counted.
    has_terms : array-like of shape (n_documents,), bool, optional
        Whether each document has a term of the model; by default, all have. Documents without get no topic.
    facts : mapping of str to array-like of shape (n_topics,), optional
        Further values for each topic, by name, such as ``epochs``: `TopicQuality.facts`. ``support``, the number of
        support documents, is also averaged per band.
    measured_on : MeasuredOn
        The kind of documents that are scored.

    Returns
    -------
    Evaluation

    Raises
    ------
    ValueError
        If shapes differ, a score is nan, or the columns of a table are the topics in another order.
    TextcatError
        If a band cannot be parsed, or names an unknown topic.
    """
    for table in (scores, Y):
        metrics.check_order_of_columns(table, topics)
    ranked = metrics.topic_rankings(Y, scores)
    labels, values = metrics.checked_labels(Y, scores)
    cut = np.asarray(threshold, dtype=np.float64)
    is_single = cut.ndim == 2
    cut = of_topics = cut if is_single else np.broadcast_to(cut, ranked.ndcg.shape)
    if has_terms is not None and not np.all(has_terms):
        cut = np.where(np.asarray(has_terms)[:, np.newaxis], cut, np.inf)
    chosen = metrics.topic_decisions(Y, scores, cut)
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
        "threshold": np.full(len(topics), np.nan) if is_single else of_topics,
    }
    facts = dict(facts or {})
    rows = zip(topics, _rows(sizes | measures, topics), _rows(facts, topics), strict=True)
    scored = ScoredDocuments(values, labels, cut, tuple(choose_bands(topics, train_sizes, spec)))
    accuracy, confusion = _confusions(labels, scored.given, topics) if is_single else (None, None)
    return Evaluation(
        train_documents=int(train_documents),
        test_documents=len(values),
        n_topics=len(topics),
        topics=tuple(TopicQuality(topic, **row, facts=facts_of_topic) for topic, row, facts_of_topic in rows),
        bands=tuple(_band_quality(band, scored, measures, chosen, facts.get("support")) for band in scored.bands),
        measured_on=measured_on,
        accuracy=accuracy,
        confusion=confusion,
        scored=scored,
    )


def single_topic_thresholds(scores: ArrayLike) -> NDArray[np.float64]:
    """Return thresholds, one per score, by which each document gets only its highest-scored topic."""
    values = np.asarray(scores)
    return np.where(np.arange(values.shape[1]) == values.argmax(axis=1)[:, np.newaxis], -np.inf, np.inf)


def _confusions(labels: Any, assigned: NDArray[np.bool_], topics: Sequence[str]) -> tuple[float | None, _Confusion]:
    """Return the accuracy over the documents that have a topic, and the tuples of `Evaluation.confusion`.

    `assigned` tells which document got which topic, at most one each. The accuracy is None if no document has a topic.
    """
    from scipy import sparse

    has, got = (sparse.csr_array(cells, dtype=np.int64) for cells in (labels > 0, assigned))
    hits = has * got
    is_right, is_labelled = hits.sum(axis=1) > 0, np.diff(has.indptr) > 0
    # A document with several topics that got one of them is not a confusion.
    diagonal = sparse.diags_array(hits.sum(axis=0), dtype=np.int64)
    counts = sparse.coo_array(has[~is_right].T @ got[~is_right] + diagonal)
    cells = sorted(zip(-counts.data, counts.row.tolist(), counts.col.tolist(), strict=True))
    confusion = tuple((topics[row], topics[column], int(-n)) for n, row, column in cells if n)
    return float(is_right[is_labelled].mean()) if is_labelled.any() else None, confusion


def _band_quality(
    band: Band,
    scored: ScoredDocuments,
    measures: Mapping[str, ArrayLike],
    chosen: metrics.Decisions,
    support: ArrayLike | None,
) -> BandQuality:
    """Average topics' measures over a band, and measure documents on the band's topics alone.

    `measures` has an array per measure with a value for each topic, `chosen` counts the decisions on each topic, and
    `support` has the number of support documents of each topic, if known.
    """
    counted, pooled = metrics.macro_average(measures["average_precision"], band.topics), chosen.pooled(band.topics)
    columns = list(band.topics)
    labels, scores, threshold = scored.relevant[:, columns], scored.scores[:, columns], scored.threshold[..., columns]
    decided, ranked = metrics.document_decisions(labels, scores, threshold), metrics.document_rankings(labels, scores)
    macro = {f"macro_{name}": metrics.macro_average(values, band.topics).mean for name, values in measures.items()}
    mean_support = None if support is None else metrics.macro_average(support, band.topics).mean
    micro = {"precision": pooled.precision, "recall": pooled.recall, "f1": pooled.f1}
    sample = {name: metrics.macro_average(values).mean for name, values in decided._asdict().items()}
    quality = {
        "macro_average_precision": macro.pop("macro_average_precision"),
        "mean_support": mean_support,
        **macro,
        **{f"micro_{name}": _plain(float(values[0])) for name, values in micro.items()},
        **{f"sample_{name}": value for name, value in sample.items()},
        "label_ranking_average_precision": metrics.macro_average(ranked.average_precision).mean,
        "coverage_error": metrics.macro_average(ranked.coverage).mean,
        "top_1_accuracy": metrics.macro_average(ranked.first).mean,
    }
    return BandQuality(band.name, counted.counted, counted.left_out, quality)


def _rows(columns: Mapping[str, ArrayLike], topics: Sequence[str]) -> list[dict[str, Any]]:
    """Return a row of plain Python values per topic, with None for nan and infinity."""
    lists = {name: np.asarray(values).tolist() for name, values in columns.items()}
    for name, values in lists.items():
        if len(values) != len(topics):
            raise ValueError(f"{len(topics)} topics need as many values of '{name}', not {len(values)}.")
    return [{name: _plain(values[row]) for name, values in lists.items()} for row in range(len(topics))]


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
