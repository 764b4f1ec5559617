"""Learn which topics occur together, to raise a document's scores for topics related to its best ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from textcat.base.calibration import Calibration
from textcat.base.folds import groups_of, members_of
from textcat.evaluation.at_k import PROPENSITY, inverse_propensities
from textcat.features.rows import Rows
from textcat.margin.learners import MarginClassifier
from textcat.model.csr import csr_weights
from textcat.model.related import RelatedTopics
from textcat.training.shortlist import (
    FEWEST,
    INVERSE_PROPENSITY,
    TrainedTopics,
    are_labels,
    logistic_regression,
    rows_in_memory,
    train_shortlist,
)

# The weight of related topics is learnt by training on one document of five, at most 40,000, and ranking the topics of
# other documents: it comes out the same as with all documents. A model of few documents ranks badly, so it relies on
# related topics more than the whole model should: with one document of five, 5,980 German texts get a weight of 2.7,
# with half of them 0.3. So at least 10,000 documents, or half of all, are used.
_TRAINED, _TRAINED_ONE_OF = 40_000, 5
_TRAINED_OF_FEW, _TRAINED_OF_FEW_ONE_OF = 10_000, 2
_HELD_OUT, _HELD_OUT_ONE_OF = 4_000, 10
_PRIOR = 2.0  # added to a topic's number of documents, so that one or two documents do not give a share near 1
_MOST_SHARES = 100  # number of shares kept for each topic, the largest ones
_MOST_TOPICS = 100  # topics per document: pairs of topics are not counted in documents with more
# A sum of shares times probabilities at which the contribution is log(2) times the weight. With a hundredth of it,
# nDCG@10 on held-out titles in English and in Swedish is the same, and fewer of the topics of up to 20 documents are
# found.
_LEAST = 1e-3


def relate_topics(
    trained: TrainedTopics,
    rows: Any,
    labels: sp.csc_matrix,
    names: sp.csr_matrix,
    learner: MarginClassifier,
    *,
    best: int,
    size: int,
    groups: np.ndarray,
    n_jobs: int | None = None,
    seed: int = 0,
) -> TrainedTopics:
    """Add the evidence of related topics to trained topics, and refit their probabilities; return the result.

    The weight of the evidence is learnt by training all topics on at most 40,000 documents, and by a logistic
    regression on at most 4,000 held-out documents. If the evidence does not improve the ranking of the held-out
    documents' topics, or if their shortlists have too few of these topics, `trained` is returned unchanged.

    Parameters
    ----------
    trained : TrainedTopics
        The result of `train_shortlist` for the same rows, labels, names, learner, size and seed.
    rows, labels, names, learner, size, groups, n_jobs, seed
        As for `train_shortlist`.
    best : int
        How many of a document's best topics raise the scores of other topics.
    """
    drawn = np.random.default_rng(seed).permutation(np.unique(groups))
    n_documents, n_different = len(groups), len(drawn)
    n_held_out = min(_HELD_OUT, n_different // _HELD_OUT_ONE_OF)
    n_of_few = min(_TRAINED_OF_FEW, n_different // _TRAINED_OF_FEW_ONE_OF)
    n_trained = max(n_of_few, min(_TRAINED, n_different // _TRAINED_ONE_OF))
    held_out, part = np.sort(drawn[:n_held_out]), members_of(drawn[n_held_out : n_held_out + n_trained], groups)
    matrix, by_document = rows_in_memory(rows), labels.tocsr()
    described = np.arange(n_documents, matrix.shape[0])
    chosen = np.append(part, described)
    options: dict[str, Any] = {"size": size, "groups": groups_of(part, groups), "n_jobs": n_jobs, "seed": seed}
    first = train_shortlist(matrix[chosen], sp.csc_matrix(by_document[chosen]), names, learner, **options)
    listed, scores = first.scorer.listed(Rows.of(matrix[held_out]))
    documents, places = np.nonzero(listed >= 0)
    column = listed[documents, places]
    target = are_labels(by_document[held_out], documents, column)
    if not FEWEST <= target.sum() < len(target):
        return trained
    curves = first.calibration
    none = np.zeros(labels.shape[1], bool)  # most topics without documents in this part have documents in the whole
    related = RelatedTopics(topic_shares(by_document[part]), curves.a, curves.b, best, 1.0, _LEAST, none)
    score = scores[documents, places].astype(float)
    evidence = related.evidence(listed, scores)[documents, places].astype(float)
    sizes = np.asarray(by_document[part].sum(axis=0)).ravel()
    missing = inverse_propensities(sizes[column], len(part), *PROPENSITY)
    importance = np.where(target, missing**INVERSE_PROPENSITY, 1.0)
    of_score, of_evidence, _ = logistic_regression(np.column_stack([score, evidence]), target, importance)
    if min(of_score, of_evidence) <= 0:
        return trained
    weight = of_evidence / of_score
    odds = curves.of_topics(column)
    kinds = np.column_stack([odds.a * (score + weight * evidence) + odds.b, np.log1p(sizes[column])])
    of_odds, by_size, constant = logistic_regression(kinds, target)
    most = weight * float(related.evidence(listed, scores).max(axis=1).mean())
    odds_of = (max(of_odds, 0.0), by_size, constant)
    return _with_related(trained, by_document[:n_documents], best, weight, odds_of, most)


def _with_related(
    trained: TrainedTopics,
    labels: sp.csr_matrix,
    best: int,
    weight: float,
    odds: tuple[float, float, float],
    most: float,
) -> TrainedTopics:
    """Return trained topics with the evidence of related topics, times `weight`, and with new probability curves.

    `odds` has the coefficients of the previous log odds and of log(1 + size), and the intercept. `most` is the mean,
    over documents, of the largest contribution to any topic; the curves of topics without documents are shifted by it.
    """
    of_odds, by_size, constant = odds
    a, b, sizes = trained.calibration.a, trained.calibration.b, np.asarray(labels.sum(axis=0)).ravel()
    has_documents = sizes > 0
    related = RelatedTopics(topic_shares(labels), a, b, best, weight, _LEAST, ~has_documents)
    calibration = Calibration(
        np.where(has_documents, of_odds * a, a),
        np.where(has_documents, of_odds * b + by_size * np.log1p(sizes) + constant, b - a * most),
    )
    return trained._replace(scorer=replace(trained.scorer, related_topics=related), calibration=calibration)


def topic_shares(labels: sp.csr_matrix) -> sp.csr_array:
    """Return for each pair of topics the share of the first topic's documents that also have the second topic.

    Documents of more than 100 topics are ignored, and only the 100 largest shares of each first topic are kept. Two
    documents without the second topic are added to the documents of the first, so that a topic of one or two documents
    has no share near 1.

    Parameters
    ----------
    labels : csr_matrix of shape (n_documents, n_topics)

    Returns
    -------
    csr_array of shape (n_topics, n_topics), float32
    """
    counted = labels[np.diff(labels.indptr) <= _MOST_TOPICS].astype(np.float32)
    together = sp.csr_array(counted.T @ counted)
    sizes = together.diagonal().astype(np.float64)
    together.setdiag(0)
    together.eliminate_zeros()
    together.sort_indices()
    row = np.repeat(np.arange(len(sizes)), np.diff(together.indptr))
    order = np.lexsort((together.indices, -together.data, row))
    kept = order[np.arange(len(order)) - together.indptr[row[order]] < _MOST_SHARES]
    shares = (together.data[kept] / (sizes[row[kept]] + _PRIOR)).astype(np.float32)
    by_topic = sp.coo_array((shares, (row[kept], together.indices[kept])), shape=together.shape).tocsr()
    return csr_weights(by_topic.indptr, by_topic.indices, by_topic.data, len(sizes))
