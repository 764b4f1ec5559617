"""The first topics of each document's ranking → measures at k, overall and per band: for models of thousands of topics.

A matrix of scores is never made: rankings come as topic numbers, in blocks, and what is summed is summed document after
document, so that the figures are the same to the bit however the blocks are cut. These are the measures of extreme
multi-label ranking and of subject indexing. Of a document, with g_r = 1 if the topic at rank r is relevant, else 0, R
the number of its relevant topics, and G_k how many topics the ranking has among its first k places:

* P@k = 1/k · Σ_{r≤k} g_r, whether or not the ranking has k topics; recall@k = 1/R · Σ_{r≤k} g_r;
* F1@k = 2 · Σ_{r≤k} g_r / (G_k + R), the F1 of giving the document its first k topics, as Annif measures it;
* nDCG@k = Σ_{r≤k} g_r / log₂(r + 1), divided by Σ_{r≤min(k,R)} 1 / log₂(r + 1).

All are means over the documents that have a relevant topic. Pair recall@k is Σ_documents Σ_{r≤k} g_r / Σ_documents R.
PSP@k, the propensity-scored precision, weighs a relevant topic l, which has N_l of N training documents, by 1/p_l:

    p_l = 1 / (1 + C · exp(-A · ln(N_l + B))),  C = (ln N - 1) · (B + 1)^A

and is the sum of the weights of the relevant topics among the first k, over all documents, divided by the largest that
it can be, with the k relevant topics of largest weight in front (Jain, Prabhu & Varma, "Extreme multi-label loss
functions for recommendation, tagging, ranking & other missing label applications", KDD 2016, section 3; normalised as
in the Extreme Classification Repository).

In a band, ranks are still those among all topics, but only the band's topics are gains, relevant or, for F1, given.
"""

import html
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from textcat.errors import TextcatError
from textcat.evaluation.ranking import NOT_KEPT, Band, choose_bands

if TYPE_CHECKING:
    from textcat.evaluation.significance import Comparison

MANY_TOPICS = 1000  # from so many on, taggers are measured by the first topics of each document
PROPENSITY = (0.55, 1.5)  # A and B of Jain et al.
KS = (1, 3, 5, 10)
BANDS = ("ALL", "1-5", "6-20", "21-100", "101-")
SHOWN = (
    ("P@1", "precision", 1),
    ("P@3", "precision", 3),
    ("P@5", "precision", 5),
    ("nDCG@10", "ndcg", 10),
    ("recall@10", "recall", 10),
    ("recall@10 of all pairs", "pair_recall", 10),
    ("F1@5", "f1", 5),
    ("PSP@5", "psp", 5),
)
"""What tables show: title, measure, k."""
RESAMPLED = ("precision@1", "precision@3", "precision@5", "ndcg@10")  # what intervals and comparisons are made of

_MEASURES = ("precision", "recall", "pair_recall", "ndcg", "f1", "psp")
_SUMMED = ("precision", "recall", "ndcg", "f1", "found", "gain", "best gain")
_DOCUMENTS = 4096  # measured at the same time


@dataclass(frozen=True)
class TopQuality:
    """Measures of one band by k, as the head of this module defines them; None if no test document has its topics."""

    band: str
    topics: int  # with a test positive
    left_out: int  # without one
    documents: int  # with a topic of the band: means are over these
    pairs: int  # of a document and a relevant topic of the band
    precision: dict[int, float | None]
    recall: dict[int, float | None]
    pair_recall: dict[int, float | None]
    ndcg: dict[int, float | None]
    f1: dict[int, float | None]
    psp: dict[int, float | None]
    intervals: dict[str, tuple[float, float] | None] = field(default_factory=dict)
    """Of `RESAMPLED`, such as ``ndcg@10``, the 95 % bounds, where they have been asked for."""


@dataclass(frozen=True, repr=False)
class TopEvaluation:
    """Quality of the first topics of each test document: overall, and a row per band.

    Attributes
    ----------
    train_documents, test_documents, n_topics : int
    without_topic : int
        Number of test documents without a relevant topic, which do not count.
    unknown : int
        Number of pairs of a document and a relevant topic that has no column.
    ks, propensity, measured_on : tuple of int, (float, float), str
        As given to `evaluate_top`.
    overall, bands : TopQuality, tuple of TopQuality
    values : ndarray of shape (1 + n_bands, n_measures, n_documents), or None
        Each document's `RESAMPLED` measures at these ks, overall first; nan if it has no topic of the band. None in an
        evaluation that was read from a model's folder.
    """

    train_documents: int
    test_documents: int
    n_topics: int
    without_topic: int
    unknown: int
    ks: tuple[int, ...]
    propensity: tuple[float, float]
    overall: TopQuality
    bands: tuple[TopQuality, ...]
    measured_on: str = "test documents"
    values: np.ndarray | None = field(default=None, compare=False)

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as JSON has them."""
        names = ("train_documents", "test_documents", "n_topics", "without_topic", "unknown", "ks", "propensity")
        rows = {"overall": _as_dict(self.overall), "bands": list(map(_as_dict, self.bands))}
        return {name: getattr(self, name) for name in (*names, "measured_on")} | rows

    @classmethod
    def from_dict(cls, figures: Mapping[str, Any]) -> "TopEvaluation":
        """Return the evaluation that `as_dict` made these figures of; a KeyError, TypeError or ValueError if none."""
        rows = {"overall": _from_dict(figures["overall"]), "bands": tuple(map(_from_dict, figures["bands"]))}
        return cls(**{**figures, **rows, **{name: tuple(figures[name]) for name in ("ks", "propensity")}})

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row per band, and a column per measure and k such as ``ndcg@10``."""
        try:
            import pandas
        except ImportError as error:
            raise TextcatError("A DataFrame needs pandas: pip install pandas.") from error
        return pandas.DataFrame(self.flat_rows()).set_index("band")

    def flat_rows(self) -> list[dict[str, Any]]:
        """Return a row per band in which each measure at each k has a name of its own, such as ``ndcg@10``."""
        rows = []
        for row in self.bands:
            counts = {name: getattr(row, name) for name in ("band", "topics", "left_out", "documents", "pairs")}
            figures = {f"{name}@{k}": getattr(row, name)[k] for name in _MEASURES for k in self.ks}
            for name, bounds in row.intervals.items():
                figures[f"{name}_low"], figures[f"{name}_high"] = bounds or (None, None)
            rows.append(counts | figures)
        return rows

    def __repr__(self) -> str:
        measured = {title: getattr(self.overall, name).get(k) for title, name, k in (SHOWN[0], SHOWN[3])}
        figures = "".join(f", {title} {value:.3f}" for title, value in measured.items() if value is not None)
        return f"<TopEvaluation of {self.n_topics} topics on {self.test_documents} {self.measured_on}{figures}>"

    def _repr_html_(self) -> str:
        shown = [(title, name, k) for title, name, k in SHOWN if k in self.ks]
        titles = ("", *(title for title, _, _ in shown), "documents", "topics")
        lines = ["".join(f"<th>{title}</th>" for title in titles)]
        for row in self.bands:
            values = (*(getattr(row, name)[k] for _, name, k in shown), row.documents, row.topics)
            cells = "".join("<td></td>" if value is None else f"<td>{value:.4g}</td>" for value in values)
            lines.append(f"<td>{html.escape(row.band)}</td>{cells}")
        return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table><p>{html.escape(repr(self))}</p>"


def _as_dict(row: TopQuality) -> dict[str, Any]:
    return asdict(row) | {name: {str(k): value for k, value in getattr(row, name).items()} for name in _MEASURES}


def _from_dict(row: Mapping[str, Any]) -> TopQuality:
    measures = {name: {int(k): value for k, value in row[name].items()} for name in _MEASURES}
    intervals = {name: bounds and tuple(bounds) for name, bounds in row["intervals"].items()}
    return TopQuality(**{**row, **measures, "intervals": intervals})


def evaluate_top(
    top: NDArray[Any] | Iterable[NDArray[Any]],
    relevant: Any,
    topics: Sequence[str],
    train_sizes: ArrayLike,
    train_documents: int,
    *,
    ks: Iterable[int] = KS,
    spec: str | Iterable[str] | None = None,
    n_unknown: ArrayLike | None = None,
    propensity: tuple[float, float] = PROPENSITY,
    resamples: int = 0,
    seed: int = 0,
    measured_on: str = "test documents",
) -> TopEvaluation:
    """Measure the first topics of each document's ranking, and average over bands.

    The head of this module has the formulas and their sources.

    Parameters
    ----------
    top : ndarray of shape (n_documents, n_ranks), int, or iterable of such blocks
        Column numbers of each document's topics, the best first, and -1 where it has fewer. n_ranks is at least the
        largest k, or else n_topics.
    relevant : array-like or sparse of shape (n_documents, n_topics)
        Positive where a document has a topic.
    topics, train_sizes, train_documents : sequence of str, array-like of shape (n_topics,), int
        Names in the order of the columns, number of training positives per topic, and of all training documents.
    ks : iterable of int, default=(1, 3, 5, 10)
        How many topics of each document are looked at.
    spec : str or iterable of str, optional
        The bands, as in `evaluate`; by default ``ALL``, ``1-5``, ``6-20``, ``21-100`` and ``101-`` training documents,
        and ``0-0`` if a topic has none.
    n_unknown : array-like of shape (n_documents,), int, optional
        How many relevant topics each document has that have no column. They are never found: overall and in ``ALL``
        they count in recall, F1 and nDCG (not in PSP, for which a topic must have a weight).
    propensity : (float, float), default=(0.55, 1.5)
        A and B of PSP. Jain et al. estimate .5 and .4 for Wikipedia, .6 and 2.6 for Amazon, and take the default
        elsewhere.
    resamples, seed : int, default=0
        Number of resamples of the documents for 95 % intervals, such as 1000; 0 for none; and the seed of their draw.
    measured_on : str
        Which documents these are, in words.

    Returns
    -------
    TopEvaluation

    Raises
    ------
    ValueError
        If shapes do not fit, or the ranking of a document has a number that is no column's, or a number twice.
    """
    from scipy import sparse  # here, so that tagging need not import it

    ks, sizes = tuple(sorted(set(ks))), np.asarray(train_sizes)
    if not ks or ks[0] < 1:
        raise ValueError(f"Rankings cannot be measured at {ks}: give numbers of topics from 1.")
    if spec is None:
        spec = [BANDS[0], *["0-0"] * bool((sizes == 0).any()), *BANDS[1:]]
    named = choose_bands(topics, sizes, spec)
    labels = sparse.csr_array((relevant if sparse.issparse(relevant) else np.asarray(relevant)) > 0)
    labels.eliminate_zeros()
    labels.sort_indices()
    unknown = np.zeros(labels.shape[0], np.int64) if n_unknown is None else np.asarray(n_unknown)
    if labels.shape[1] != len(topics) or unknown.shape != labels.shape[:1] or (unknown < 0).any():
        raise ValueError(
            f"{len(topics)} topics need as many columns of relevance, and each document a number of unknown topics "
            f"from 0, but relevance has the shape {labels.shape} and n_unknown {unknown.shape}."
        )
    bands = _Bands.of(named, sizes, labels, unknown)
    weights = inverse_propensities(sizes, train_documents, *propensity)
    sums, values = _sums(top, labels, bands, weights, ks)
    rows = [bands.row(place, ks, of_band) for place, of_band in enumerate(sums)]
    in_order = [0, *bands.places]
    evaluation = TopEvaluation(
        train_documents=int(train_documents),
        test_documents=labels.shape[0],
        n_topics=len(topics),
        without_topic=labels.shape[0] - rows[0].documents,
        unknown=int(unknown.sum()),
        ks=ks,
        propensity=(float(propensity[0]), float(propensity[1])),
        overall=rows[0],
        bands=tuple(replace(rows[place], band=band.name) for place, band in zip(bands.places, named, strict=True)),
        measured_on=measured_on,
        values=values[in_order],
    )
    return add_intervals_at_k(evaluation, n_resamples=resamples, seed=seed) if resamples else evaluation


def compare_tops(evaluations: Sequence[TopEvaluation], *, n_resamples: int = 1000, seed: int = 0) -> "Comparison":
    """Compare the first of several rankings with each of the others, on the same documents and topics.

    The measures are `RESAMPLED`; differences are paired, document by document, with bootstrap intervals and p-values as
    `textcat.evaluation.significance` defines them. No p-value is corrected for the number of comparisons.

    Parameters
    ----------
    evaluations : sequence of TopEvaluation
        Of the same documents, in the same order, and of the same bands.
    n_resamples, seed : int, default=1000 and 0
        Resamples of the documents, the same for all rankings.

    Returns
    -------
    Comparison
        Its `topics` are empty.

    Raises
    ------
    TextcatError
        If the evaluations do not fit together, or only their figures were kept.
    """
    from textcat.evaluation.significance import Comparison, MeasureComparison

    def kind(of: TopEvaluation) -> Any:
        return of.test_documents, of.n_topics, of.ks, [(row.band, row.documents, row.pairs) for row in of.bands]

    first = evaluations[0]
    if any(kind(other) != kind(first) for other in evaluations[1:]):
        raise TextcatError(
            "Rankings can only be compared on the same documents, topics, bands and ks: measure them on one corpus."
        )
    samples = [resampled_means(evaluation, n_resamples, seed) for evaluation in evaluations]
    rows = []
    for place, band in enumerate(first.bands):
        for number, name in enumerate(_resampled_at(first.ks)):
            measured = [measure_at(evaluation.bands[place], name) for evaluation in evaluations]
            resampled = [values[place + 1, number] for values in samples]
            differences = tuple(
                _difference(value, measured[0], of_other - resampled[0])
                for value, of_other in zip(measured[1:], resampled[1:], strict=True)
            )
            rows.append(MeasureComparison(band.band, name, tuple(measured), differences))
    return Comparison(first.test_documents, n_resamples, seed, tuple(rows), ())


def _difference(value: float | None, of_first: float | None, resampled: NDArray[np.float64]) -> Any:
    from textcat.evaluation.significance import Difference, centred_interval, paired_bootstrap

    if value is None or of_first is None:
        return None
    measured = value - of_first
    return Difference(measured, centred_interval(measured, resampled), paired_bootstrap(measured, resampled), None)


def add_intervals_at_k(evaluation: TopEvaluation, *, n_resamples: int = 1000, seed: int = 0) -> TopEvaluation:
    """Return an evaluation, which must have its values, with bootstrap intervals of `RESAMPLED`."""
    from textcat.evaluation.significance import interval_of_resamples

    samples, names = resampled_means(evaluation, n_resamples, seed), _resampled_at(evaluation.ks)
    overall, *bands = (
        replace(
            row, intervals={name: interval_of_resamples(measure_at(row, name), of[j]) for j, name in enumerate(names)}
        )
        for row, of in zip((evaluation.overall, *evaluation.bands), samples, strict=True)
    )
    return replace(evaluation, overall=overall, bands=tuple(bands))


def resampled_means(evaluation: TopEvaluation, n_resamples: int, seed: int) -> NDArray[np.float64]:
    """Return the means of the values in resamples of the documents, shape (1 + n_bands, n_measures, n_resamples).

    The same documents are drawn for the same seed and number of documents. A mean is nan where none has the band.
    """
    from textcat.evaluation.significance import bootstrap_draws

    if evaluation.values is None:
        raise TextcatError(NOT_KEPT)
    known = ~np.isnan(evaluation.values)
    values, blocks = np.where(known, evaluation.values, 0.0), []
    for drawn in bootstrap_draws(evaluation.test_documents, n_resamples, seed):
        times = drawn.astype(np.float64)
        n_known = known @ times
        blocks.append(np.divide(values @ times, n_known, out=np.full(n_known.shape, np.nan), where=n_known > 0))
    return np.concatenate(blocks, axis=2)


def _resampled_at(ks: Sequence[int]) -> list[str]:
    return [name for name in RESAMPLED if int(name.partition("@")[2]) in ks]


def measure_at(row: TopQuality, name: str) -> float | None:
    """Return a measure by its name and k, such as ``ndcg@10``."""
    measure, _, k = name.partition("@")
    value: float | None = getattr(row, measure)[int(k)]
    return value


@dataclass(frozen=True, eq=False)
class _Bands:
    """The sets of topics that are measured, all topics first, and what is relevant of them."""

    names: list[str]
    members: NDArray[np.bool_]  # shape (n_sets, n_topics)
    places: list[int]  # of the bands among the sets, in their order: ALL is the first set
    unknown: NDArray[np.int64]  # relevant topics per document that no column stands for: they are of the first set
    relevant: NDArray[np.int64]  # relevant topics, shape (n_sets, n_documents)
    tested: NDArray[np.bool_]  # whether a topic has a test document

    @classmethod
    def of(cls, bands: Sequence[Band], sizes: NDArray[Any], labels: Any, unknown: NDArray[np.int64]) -> "_Bands":
        places, sets = [], [Band("ALL", tuple(range(len(sizes))))]
        for band in bands:
            is_all = band.name == "ALL" and len(band.topics) == len(sizes)
            places.append(0 if is_all else len(sets))
            sets += [] if is_all else [band]
        members = np.zeros((len(sets), len(sizes)), np.bool_)
        for member, band in zip(members, sets, strict=True):
            member[list(band.topics)] = True
        relevant = np.array([labels @ member.astype(np.int64) for member in members]).reshape(len(sets), -1)
        relevant[0] += unknown
        tested = np.bincount(labels.indices, minlength=len(sizes)) > 0
        return cls([band.name for band in sets], members, places, unknown, relevant, tested)

    def row(self, place: int, ks: Sequence[int], sums: NDArray[np.float64]) -> TopQuality:
        """Divide the sums of a set, shape (n_summed, n_ks)."""
        n_topics, n_tested = int(self.members[place].sum()), int((self.tested & self.members[place]).sum())
        documents, pairs = int((self.relevant[place] > 0).sum()), int(self.relevant[place].sum())
        of = dict(zip(_SUMMED, sums.tolist(), strict=True))

        def by_k(values: Sequence[float], divisors: Iterable[float]) -> dict[int, float | None]:
            return {k: value / by if by else None for k, value, by in zip(ks, values, divisors, strict=True)}

        measures: dict[str, Any] = {
            "precision": by_k(of["found"], [k * documents for k in ks]),  # of counts, and so without rounding
            **{name: by_k(of[name], [documents] * len(ks)) for name in ("recall", "ndcg", "f1")},
            "pair_recall": by_k(of["found"], [pairs] * len(ks)),
            "psp": by_k(of["gain"], of["best gain"]),
        }
        return TopQuality(self.names[place], n_tested, n_topics - n_tested, documents, pairs, **measures)


def inverse_propensities(sizes: NDArray[Any], train_documents: int, a: float, b: float) -> NDArray[np.float64]:
    """Return 1/p_l of each topic: see the head of this module; 1 for all where C would be negative, with N < e."""
    c = max(math.log(max(train_documents, 1)) - 1, 0.0) * (b + 1) ** a
    return np.asarray(1 + c * (sizes + float(b)) ** -float(a), np.float64)


def _sums(
    top: NDArray[Any] | Iterable[NDArray[Any]], labels: Any, bands: _Bands, weights: NDArray[Any], ks: Sequence[int]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what is `_SUMMED` of each set of topics, shape (n_sets, n_summed, n_ks), and `TopEvaluation.values`."""
    n_documents, n_topics = labels.shape
    sums = np.zeros((len(bands.members), len(_SUMMED), len(ks)))
    kept = [name.partition("@") for name in _resampled_at(ks)]
    values, done = np.full((len(bands.members), len(kept), n_documents), np.nan), 0
    for block in _blocks(top, n_topics, max(ks)):
        place = slice(done, done + len(block))
        done += len(block)
        if done > n_documents:
            raise ValueError(f"Relevance is known of {n_documents} documents, and there are rankings of more.")
        relevant = bands.relevant[:, place]
        of = _summands(block, labels[place], bands.members, relevant, weights, ks)
        # One document after the other, as another order would round to another sum.
        sums = np.add.accumulate(np.concatenate([sums[np.newaxis], of]))[-1]
        for number, (name, _, k) in enumerate(kept):
            of_measure = of[:, :, _SUMMED.index(name), ks.index(int(k))]
            values[:, number, place] = np.where(relevant > 0, of_measure.T, np.nan)
    if done < n_documents:
        raise ValueError(f"Relevance is known of {n_documents} documents, and there are rankings of {done} only.")
    return sums, values


def _blocks(top: NDArray[Any] | Iterable[NDArray[Any]], n_topics: int, n_ranks: int) -> Iterator[NDArray[np.int64]]:
    """Yield rankings of some thousand documents at a time, of exactly so many ranks, once they are checked."""
    for block in [top] if isinstance(top, np.ndarray) else top:
        given = np.asarray(block)
        if given.ndim != 2 or given.dtype.kind not in "iu" or given.shape[1] < min(n_ranks, n_topics):
            raise ValueError(
                f"Rankings are integers of shape (n_documents, {n_ranks} or more), -1 where a document has fewer, "
                f"not {given.dtype} of shape {given.shape}."
            )
        for start in range(0, len(given), _DOCUMENTS):
            part = given[start : start + _DOCUMENTS, :n_ranks].astype(np.int64)
            ordered = np.sort(part, axis=1)
            if part.size and not -1 <= ordered[:, 0].min() <= ordered[:, -1].max() < n_topics:
                raise ValueError(f"Topics have the numbers 0 to {n_topics - 1}, not {part.min()} to {part.max()}.")
            if ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any():
                raise ValueError("A topic stands twice in the ranking of a document.")
            yield np.pad(part, ((0, 0), (0, n_ranks - part.shape[1])), constant_values=-1)


def _summands(
    top: NDArray[np.int64], labels: Any, members: NDArray[np.bool_], relevant: NDArray[np.int64], weights: Any, ks: Any
) -> NDArray[np.float64]:
    """Return what is `_SUMMED` of each document and set of topics: shape (n_documents, n_sets, n_summed, n_ks)."""
    ks, ranks = np.asarray(ks), np.asarray(ks) - 1
    hits, discounts = _hits(top, labels), 1 / np.log2(np.arange(top.shape[1]) + 2)
    ideal = np.concatenate([[0.0], np.cumsum(discounts)])
    # The relevant topics of each document, those of largest weight first.
    document = np.repeat(np.arange(len(top)), np.diff(labels.indptr))
    topic = labels.indices[np.lexsort((-weights[labels.indices], document))]
    summands = np.empty((len(top), len(members), len(_SUMMED), len(ks)))
    for place, (member, n_relevant) in enumerate(zip(members, relevant, strict=True)):
        own, n = hits & member[top], np.maximum(n_relevant, 1)[:, np.newaxis]
        # What there is up to each rank; -1 is no topic, and no hit.
        found, given = (np.cumsum(of, axis=1)[:, ranks] for of in (own, (top >= 0) & member[top]))
        dcg, gain = (np.cumsum(np.where(own, of, 0), axis=1)[:, ranks] for of in (discounts, weights[top]))
        best = _best_gains(document[member[topic]], weights[topic[member[topic]]], len(top), ks)
        f1 = 2 * found / (given + n)
        measured = (found / ks, found / n, dcg / ideal[np.minimum(n, ks)], f1, found, gain, best)
        summands[:, place] = np.stack(measured, axis=1)
    return summands


def _hits(top: NDArray[np.int64], labels: Any) -> NDArray[np.bool_]:
    """Return which ranks hold a relevant topic."""
    n_documents, n_topics = labels.shape
    start = np.arange(n_documents) * n_topics
    relevant = np.repeat(start, np.diff(labels.indptr)) + labels.indices  # sorted, as the columns of each row are
    ranked = start[:, np.newaxis] + top
    places = np.searchsorted(relevant, ranked)
    return (top >= 0) & (np.append(relevant, -1)[places] == ranked)


def _best_gains(document: Any, weights: Any, n_documents: int, ks: Sequence[int]) -> NDArray[np.float64]:
    """Add up the k largest weights of each document, (n_documents, n_ks): they come by document, the largest first."""
    rank = np.arange(len(document)) - np.searchsorted(document, document)
    return np.stack([np.bincount(document, weights * (rank < k), minlength=n_documents) for k in ks], axis=1)
