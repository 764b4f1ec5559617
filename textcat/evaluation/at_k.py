"""Measure the top-ranked topics of each document at k, overall and per band: for models of thousands of topics.

Rankings are given as topic numbers, some thousand documents at a time (a block), without a matrix of scores. Sums run
over documents in order, so that the results are the same to the bit for any division into blocks. These are the
measures of extreme multi-label ranking and of subject indexing. For a document, let g_r be 1 if the topic at rank r is
relevant, else 0; R the number of its relevant topics; and G_k the number of topics in the first k places of its
ranking:

* P@k = 1/k · Σ_{r≤k} g_r, whether or not the ranking has k topics; recall@k = 1/R · Σ_{r≤k} g_r;
* F1@k = 2 · Σ_{r≤k} g_r / (G_k + R), the F1 of giving the document its first k topics, as Annif measures it;
* nDCG@k = Σ_{r≤k} g_r / log₂(r + 1), divided by Σ_{r≤min(k,R)} 1 / log₂(r + 1).

All are averaged over the documents that have a relevant topic. Pair recall@k is Σ_documents Σ_{r≤k} g_r / Σ_documents
R. PSP@k, the propensity-scored precision, weighs a relevant topic l, which has N_l of N training documents, by 1/p_l:

    p_l = 1 / (1 + C · exp(-A · ln(N_l + B))),  C = (ln N - 1) · (B + 1)^A

and is the sum of the weights of the relevant topics among the first k, over all documents, divided by its largest
possible value, with the k relevant topics of largest weight in front (Jain, Prabhu & Varma, "Extreme multi-label loss
functions for recommendation, tagging, ranking & other missing label applications", KDD 2016, section 3; normalised as
in the Extreme Classification Repository).

In a band, ranks are still among all topics, but gains, relevant topics and (for F1) given topics are restricted to the
band's topics.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from textcat.evaluation.bands import Band, choose_bands
from textcat.evaluation.evaluation import BandQuality, DocumentValues, Evaluation, MeasuredOn
from textcat.evaluation.metrics import check_order_of_columns

PROPENSITY = (0.55, 1.5)  # A and B of Jain et al.
KS = (1, 3, 5, 10)
BANDS = ("ALL", "1-5", "6-20", "21-100", "101-")
RESAMPLED = ("precision@1", "precision@3", "precision@5", "ndcg@10")  # measures that get intervals and comparisons

_SUMMED = ("precision", "recall", "ndcg", "f1", "hits", "gain", "best gain")
DOCUMENTS_AT_ONCE = 4096  # number of documents measured at the same time


def evaluate_at_k(
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
    measured_on: MeasuredOn = MeasuredOn.TEST,
) -> Evaluation:
    """Measure the top-ranked topics of each document, and average over bands (sets of topics of similar size).

    The head of this module has the formulas and their sources.

    Parameters
    ----------
    top : ndarray of shape (n_documents, n_ranks), int, or iterable of such arrays for consecutive documents
        Column numbers of each document's topics, the best first, padded with -1. n_ranks is at least the largest k, or
        equals n_topics.
    relevant : array-like or sparse of shape (n_documents, n_topics)
        Positive where a document has a topic.
    topics, train_sizes, train_documents : sequence of str, array-like of shape (n_topics,), int
        Names in the order of the columns, number of training positives per topic, and of all training documents.
    ks : iterable of int, default=(1, 3, 5, 10)
        Numbers of first topics at which to measure each document.
    spec : str or iterable of str, optional
        The bands, as in `evaluate_scores`; by default ``ALL``, ``1-5``, ``6-20``, ``21-100`` and ``101-`` training
        documents, and ``0-0`` if a topic has none.
    n_unknown : array-like of shape (n_documents,), int, optional
        Number of relevant topics of each document that have no column. No ranking can find these topics; overall and in
        ``ALL`` they are included in recall, F1 and nDCG (not in PSP, which needs a weight of the topic).
    propensity : (float, float), default=(0.55, 1.5)
        A and B of PSP. Jain et al. estimate .5 and .4 for Wikipedia, .6 and 2.6 for Amazon, and take the default
        elsewhere.
    measured_on : MeasuredOn
        The kind of documents that are ranked.

    Returns
    -------
    Evaluation
        Single topics are not measured. Each band has ``precision``, ``recall``, ``pair_recall``, ``ndcg``, ``f1`` and
        ``psp`` at each k, by names such as ``ndcg@10``.

    Raises
    ------
    ValueError
        If shapes do not match, a k is below 1, or a document's ranking has an invalid column number, or the same number
        twice, or the columns of a table are the topics in another order.
    TextcatError
        If a band cannot be parsed, or names an unknown topic.
    """
    ks, sizes = tuple(sorted(set(ks))), np.asarray(train_sizes)
    if not ks or ks[0] < 1:
        raise ValueError(f"Rankings cannot be measured at {ks}: give numbers of topics from 1.")
    check_order_of_columns(relevant, topics)
    named = choose_bands(topics, sizes, default_bands(sizes) if spec is None else spec)
    labels, unknown = _checked_labels(relevant, n_unknown, len(topics))
    sets = _TopicSets.of(named, sizes, labels, unknown)
    resampled = tuple(name for name in RESAMPLED if int(name.partition("@")[2]) in ks)
    weights = inverse_propensities(sizes, train_documents, *propensity)
    sums, values = _sums(top, labels, sets, weights, ks, resampled)
    rows = [sets.row(number, ks, sums_of_set) for number, sums_of_set in enumerate(sums)]
    return Evaluation(
        train_documents=int(train_documents),
        test_documents=labels.shape[0],
        n_topics=len(topics),
        bands=tuple(replace(rows[k], band=band.name) for k, band in zip(sets.set_of_band, named, strict=True)),
        measured_on=measured_on,
        overall=rows[0],
        ks=ks,
        propensity=(float(propensity[0]), float(propensity[1])),
        without_topic=labels.shape[0] - (rows[0].documents or 0),
        unknown=int(unknown.sum()),
        values=DocumentValues(resampled, values[[0, *sets.set_of_band]]),
    )


def default_bands(train_sizes: ArrayLike) -> list[str]:
    """Return the names of the default bands, by the topics' numbers of training documents."""
    return [BANDS[0], *["0-0"] * bool((np.asarray(train_sizes) == 0).any()), *BANDS[1:]]


def _checked_labels(relevant: Any, n_unknown: ArrayLike | None, n_topics: int) -> tuple[Any, NDArray[np.int64]]:
    """Return the labels as a boolean CSR matrix, and each document's number of relevant topics without a column.

    Raise ValueError if shapes do not fit, or a number is negative.
    """
    from scipy import sparse  # imported here, so that tagging need not import it

    labels = sparse.csr_array((relevant if sparse.issparse(relevant) else np.asarray(relevant)) > 0)
    labels.eliminate_zeros()
    labels.sort_indices()
    unknown = np.zeros(labels.shape[0], np.int64) if n_unknown is None else np.asarray(n_unknown)
    if labels.shape[1] != n_topics or unknown.shape != labels.shape[:1] or (unknown < 0).any():
        raise ValueError(
            f"{n_topics} topics need as many columns of relevance, and each document a number of unknown topics "
            f"from 0, but relevance has the shape {labels.shape} and n_unknown {unknown.shape}."
        )
    return labels, unknown


@dataclass(frozen=True, eq=False)
class _TopicSets:
    """Sets of topics to measure (all, then each band), and each document's number of relevant topics per set."""

    names: list[str]
    members: NDArray[np.bool_]  # shape (n_sets, n_topics)
    set_of_band: list[int]  # the position of each band's set; at position 0 is the set of all topics
    relevant: NDArray[np.int64]  # numbers, shape (n_sets, n_documents); the first set includes topics without a column
    is_tested: NDArray[np.bool_]  # whether a topic has a test document

    @classmethod
    def of(cls, bands: Sequence[Band], sizes: NDArray[Any], labels: Any, unknown: NDArray[np.int64]) -> "_TopicSets":
        set_of_band, sets = [], [Band("ALL", tuple(range(len(sizes))))]
        for band in bands:
            is_all = band.name == "ALL" and len(band.topics) == len(sizes)
            set_of_band.append(0 if is_all else len(sets))
            sets += [] if is_all else [band]
        members = np.zeros((len(sets), len(sizes)), np.bool_)
        for member, band in zip(members, sets, strict=True):
            member[list(band.topics)] = True
        relevant = np.array([labels @ member.astype(np.int64) for member in members]).reshape(len(sets), -1)
        relevant[0] += unknown
        is_tested = np.bincount(labels.indices, minlength=len(sizes)) > 0
        return cls([band.name for band in sets], members, set_of_band, relevant, is_tested)

    def row(self, number: int, ks: Sequence[int], sums: NDArray[np.float64]) -> BandQuality:
        """Return the measures of the set (of topics) at position `number`.

        `sums` has, for this set, the sums over documents of the measures in `_SUMMED` at each k: (n_summed, n_ks).
        """
        n_topics, n_tested = int(self.members[number].sum()), int((self.is_tested & self.members[number]).sum())
        documents, pairs = int((self.relevant[number] > 0).sum()), int(self.relevant[number].sum())
        summed = dict(zip(_SUMMED, sums.tolist(), strict=True))
        per_document = [documents] * len(ks)
        fractions = {
            # sums of integer counts, exact without rounding
            "precision": (summed["hits"], [k * documents for k in ks]),
            "recall": (summed["recall"], per_document),
            "pair_recall": (summed["hits"], [pairs] * len(ks)),
            "ndcg": (summed["ndcg"], per_document),
            "f1": (summed["f1"], per_document),
            "psp": (summed["gain"], summed["best gain"]),
        }
        measures = {
            f"{name}@{k}": value / divisor if divisor else None
            for name, (values, divisors) in fractions.items()
            for k, value, divisor in zip(ks, values, divisors, strict=True)
        }
        return BandQuality(
            self.names[number], n_tested, n_topics - n_tested, measures, documents=documents, pairs=pairs
        )


def inverse_propensities(sizes: NDArray[Any], train_documents: int, a: float, b: float) -> NDArray[np.float64]:
    """Return the inverse of each topic's propensity, the probability that indexers assign a topic that applies.

    `sizes` are the topics' numbers of training documents. The head of this module has the formula, in which N is
    `train_documents`, and A and B are `a` and `b`. If N < e, where its C would be negative, 1 is returned.
    """
    c = max(math.log(max(train_documents, 1)) - 1, 0.0) * (b + 1) ** a
    return np.asarray(1 + c * (sizes + float(b)) ** -float(a), np.float64)


def _sums(
    top: NDArray[Any] | Iterable[NDArray[Any]],
    labels: Any,
    sets: _TopicSets,
    weights: NDArray[Any],
    ks: Sequence[int],
    resampled: Sequence[str],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return sums over documents of the quantities in `_SUMMED`, and each document's values of `resampled` measures.

    The sums are for each set of topics and each k: shape (n_sets, n_summed, n_ks). The values have the shape (n_sets,
    n_resampled, n_documents); a value is nan if no topic of the set is relevant to the document. `resampled` has names
    of measures, such as "ndcg@10", that get intervals, computed from their values. `weights` has a weight per topic,
    its inverse propensity, for PSP.
    """
    n_documents, n_topics = labels.shape
    sums = np.zeros((len(sets.members), len(_SUMMED), len(ks)))
    values, start = np.full((len(sets.members), len(resampled), n_documents), np.nan), 0
    for block in _blocks(top, n_topics, max(ks)):
        rows = slice(start, start + len(block))
        start += len(block)
        if start > n_documents:
            raise ValueError(f"Relevance is known of {n_documents} documents, and there are rankings of more.")
        relevant = sets.relevant[:, rows]
        summands = _summands(block, labels[rows], sets.members, relevant, weights, ks)
        # Sum one document after the other, because another order would round differently.
        sums = np.add.accumulate(np.concatenate([sums[np.newaxis], summands]))[-1]
        for number, (name, _, k) in enumerate(measure.partition("@") for measure in resampled):
            of_measure = summands[:, :, _SUMMED.index(name), ks.index(int(k))]
            values[:, number, rows] = np.where(relevant > 0, of_measure.T, np.nan)
    if start < n_documents:
        raise ValueError(f"Relevance is known of {n_documents} documents, and there are rankings of {start} only.")
    return sums, values


def _blocks(top: NDArray[Any] | Iterable[NDArray[Any]], n_topics: int, n_ranks: int) -> Iterator[NDArray[np.int64]]:
    """Check rankings, and yield them in blocks of some thousand documents, each with `n_ranks` columns.

    Longer rankings are cut, and shorter ones are padded with -1. `top` is as for `evaluate_at_k`.
    """
    for block in [top] if isinstance(top, np.ndarray) else top:
        ranking = np.asarray(block)
        if ranking.ndim != 2 or ranking.dtype.kind not in "iu" or ranking.shape[1] < min(n_ranks, n_topics):
            raise ValueError(
                f"Rankings are integers of shape (n_documents, {n_ranks} or more), -1 where a document has fewer, "
                f"not {ranking.dtype} of shape {ranking.shape}."
            )
        for start in range(0, len(ranking), DOCUMENTS_AT_ONCE):
            part = ranking[start : start + DOCUMENTS_AT_ONCE, :n_ranks].astype(np.int64)
            ordered = np.sort(part, axis=1)
            if part.size and not -1 <= ordered[:, 0].min() <= ordered[:, -1].max() < n_topics:
                raise ValueError(f"Topics have the numbers 0 to {n_topics - 1}, not {part.min()} to {part.max()}.")
            if ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any():
                raise ValueError("A topic stands twice in the ranking of a document.")
            yield np.pad(part, ((0, 0), (0, n_ranks - part.shape[1])), constant_values=-1)


def _summands(
    top: NDArray[np.int64], labels: Any, members: NDArray[np.bool_], relevant: NDArray[np.int64], weights: Any, ks: Any
) -> NDArray[np.float64]:
    """Return the measures in `_SUMMED` for each document and set of topics: (n_documents, n_sets, n_summed, n_ks).

    `members` tells which topics each set has, `relevant` how many topics of each set are relevant to each document.
    """
    ks, ranks = np.asarray(ks), np.asarray(ks) - 1
    hits, discounts = _hits(top, labels), 1 / np.log2(np.arange(top.shape[1]) + 2)
    ideal = np.concatenate([[0.0], np.cumsum(discounts)])
    # The relevant topics of each document, the largest weight first.
    document = np.repeat(np.arange(len(top)), np.diff(labels.indptr))
    topic = labels.indices[np.lexsort((-weights[labels.indices], document))]
    summands = np.empty((len(top), len(members), len(_SUMMED), len(ks)))
    for number, (member, n_relevant) in enumerate(zip(members, relevant, strict=True)):
        hits_of_set, n = hits & member[top], np.maximum(n_relevant, 1)[:, np.newaxis]
        # Cumulative sums up to each rank; -1 counts as no topic, and as no hit.
        n_hits, n_given = (np.cumsum(is_it, axis=1)[:, ranks] for is_it in (hits_of_set, (top >= 0) & member[top]))
        dcg, gain = (
            np.cumsum(np.where(hits_of_set, worth, 0), axis=1)[:, ranks] for worth in (discounts, weights[top])
        )
        best = _best_gains(document[member[topic]], weights[topic[member[topic]]], len(top), ks)
        f1 = 2 * n_hits / (n_given + n)
        measured = (n_hits / ks, n_hits / n, dcg / ideal[np.minimum(n, ks)], f1, n_hits, gain, best)
        summands[:, number] = np.stack(measured, axis=1)
    return summands


def _hits(top: NDArray[np.int64], labels: Any) -> NDArray[np.bool_]:
    """Return an array in the shape of `top` that is True at ranks with a relevant topic."""
    n_documents, n_topics = labels.shape
    start = np.arange(n_documents) * n_topics
    relevant = np.repeat(start, np.diff(labels.indptr)) + labels.indices  # sorted, as the columns of each row are
    ranked = start[:, np.newaxis] + top
    positions = np.searchsorted(relevant, ranked)
    return (top >= 0) & (np.append(relevant, -1)[positions] == ranked)


def _best_gains(document: Any, weights: Any, n_documents: int, ks: Sequence[int]) -> NDArray[np.float64]:
    """Return the sum of the k largest weights of each document's relevant topics, for each k: (n_documents, n_ks).

    `weights` are listed document by document, the largest first; `document` has the number of each weight's document.
    """
    rank = np.arange(len(document)) - np.searchsorted(document, document)
    return np.stack([np.bincount(document, weights * (rank < k), minlength=n_documents) for k in ks], axis=1)
