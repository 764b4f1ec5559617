"""Choose thresholds and promises by held-out scores that are approximated faster than by cross-validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import zip_longest
from threading import local
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp

from textcat.base.calibration import topic_samples
from textcat.base.errors import TextcatError, did_you_mean
from textcat.base.progress import Advance
from textcat.evaluation.expected_recall import ExpectedRecall
from textcat.evaluation.promises import (
    Promises,
    limit_missed,
    nearest_to_a_promise,
    promise_precision,
    promise_recall,
    promise_together,
)
from textcat.evaluation.thresholds import choose_thresholds
from textcat.features.rows import Rows, release_memory
from textcat.features.tfidf import TfIdf
from textcat.margin.learners import MarginClassifier
from textcat.margin.primal import N_FOLDS, dots, leave_out_folds
from textcat.margin.problems import NO_ROWS, Problem, Solution, rows_by_column
from textcat.margin.rules import Rule
from textcat.margin.solve import solve
from textcat.model.decisions import Decisions
from textcat.model.dense import Dense
from textcat.reading.labels import label_name
from textcat.recipes.recipe import PromiseSettings, Recipe
from textcat.training.cross_validation import score_units
from textcat.training.examples import Examples
from textcat.trends.held_out import HeldOut

# Constants chosen on training documents of Reuters-21578, 20 Newsgroups and library titles. The first three give the
# number of negatives to train on besides the support: shares of the support and of the documents, and a minimum.
SHARE_OF_SUPPORT, SHARE_OF_DOCUMENTS, LEAST_NEGATIVES = 0.5, 1 / 32, 250
ENOUGH_POSITIVES = 100  # number of held-out positives that is enough to choose a topic's threshold
_NEAR_MINIMUM = 0.25, 1 / 64, 100  # the same three numbers, for a solution that is updated instead of trained again
_PASSES, _OWN = 2, 0.4
_AT_ONCE = 8  # number of topics whose rankers score all rows together


def decisions_by_scores(
    recipe: Recipe,
    topics: Sequence[str],
    scores: np.ndarray,
    labels: sp.csc_matrix,
    promised: np.ndarray | None = None,
) -> Decisions:
    """Compute the decisions that a recipe asks for from held-out scores: thresholds, calibration curves, and promises.

    Parameters
    ----------
    recipe : Recipe
    topics : sequence of str
    scores : ndarray of shape (n_documents, n_topics)
        nan where a document is not in a topic's sample.
    labels : sparse matrix of the same shape
    promised : ndarray of the same shape, optional
        Other scores to make promises by, those of `promise_scores`.

    Raises
    ------
    TextcatError
        If none of the promises that the recipe asks for can be made, or if it names an unknown topic.
    """
    tags = recipe.tags
    thresholds, curves = choose_thresholds(tags.strategy, scores, labels, tags.probability)
    held_out = HeldOut.fit(scores, labels, curves)
    decisions = Decisions(thresholds, curves, tags.strategy, held_out=held_out)
    if not recipe.promise.is_asked:
        return decisions
    by_promise = scores if promised is None else promised
    return _with_promises(decisions, recipe.promise, topics, scores, by_promise, labels)


def _with_promises(
    decisions: Decisions,
    asked: PromiseSettings,
    topics: Sequence[str],
    scores: np.ndarray,
    promised: np.ndarray,
    labels: sp.csc_matrix,
) -> Decisions:
    """Return decisions with promises and, unless each document gets a single topic, with the thresholds for review.

    Promises are made by the scores `promised`; which topics a document gets, is decided by `scores`.
    """
    precision, recall = (
        shares_by_topic(*wanted, topics)
        for wanted in ((asked.precision, asked.precision_of), (asked.recall, asked.recall_of))
    )
    curves, confidence, in_sample = decisions.curves(), asked.confidence, promised
    labelled_scores = np.where(np.isnan(scores), -np.inf, scores)  # topics a document was not labelled for come last
    if decisions.single:  # a document that gets a topic is part of that topic's sample
        in_sample = np.where(scores > decisions.cut_scores(labelled_scores), promised, np.nan)
    threshold, *counts = promise_precision(in_sample, labels, precision, confidence, curves)
    documents, correct = (of_topics.astype(np.float64) for of_topics in counts)
    together = np.zeros(len(topics))
    small = np.flatnonzero(np.isinf(threshold) & (precision == asked.precision) & (asked.small_topics == "together"))
    if len(small):
        pooled = promise_together(
            in_sample[:, small], labels[:, small], asked.precision, confidence, curves.of_topics(small)
        )
        threshold[small], documents[small], correct[small] = pooled
        together[small] = np.isfinite(threshold[small])
    precision[np.isinf(threshold)] = np.nan
    lower = promise_recall(promised, labels, recall, confidence)
    recall[np.isinf(lower)] = np.nan
    if not asked.missed and np.isnan(precision).all() and np.isnan(recall).all():
        raise TextcatError(_no_promise(asked, topics, promised, labels))
    review = np.where(np.isinf(lower), decisions.thresholds, lower)
    if asked.missed:
        limit = curves.threshold(_limit_missed(asked, curves.probabilities(promised), labels))
        review = np.where(np.isinf(lower), limit, np.minimum(lower, limit))
    review = np.minimum(review, threshold)
    promises = Promises(
        precision, recall, np.full(len(topics), confidence), threshold, review, documents, correct, together
    )
    if not decisions.single:
        decisions = replace(decisions, thresholds=review.astype(decisions.thresholds.dtype))
    given = decisions.decide(labelled_scores)
    expected = ExpectedRecall.fit(scores, curves.probabilities(scores), given, labels.toarray() > 0)
    return replace(decisions, promises=promises, expected_recall=expected)


def _limit_missed(asked: PromiseSettings, probabilities: np.ndarray, labels: sp.csc_matrix) -> float:
    try:
        return limit_missed(probabilities, labels, asked.missed)
    except ValueError as error:
        raise TextcatError(f"{error}: give a higher share, or label more documents.") from error


def shares_by_topic(share: float, share_of: Mapping[str, float], topics: Sequence[str]) -> np.ndarray:
    """Return for each topic the precision or recall to promise, in (0, 1]; nan: none."""
    known = set(topics)
    share_of = {topic if topic in known else label_name(topic): share for topic, share in share_of.items()}
    if unknown := next((topic for topic in share_of if topic not in known), None):
        raise TextcatError(
            f"Nothing can be promised of {unknown!r}, which is no topic of the corpus.{did_you_mean(unknown, topics)}"
        )
    shares = np.array([share_of.get(topic, share) for topic in topics])
    return np.where(shares > 0, shares, np.nan)


def _no_promise(asked: PromiseSettings, topics: Sequence[str], scores: np.ndarray, labels: sp.csc_matrix) -> str:
    """Return why no topic gets a promise: all topics are too small, or the rankers are not precise enough."""
    precision = shares_by_topic(asked.precision, asked.precision_of, topics)
    shares = np.append(precision, shares_by_topic(asked.recall, asked.recall_of, topics))
    sizes = np.tile([is_positive.sum() for _, is_positive in topic_samples(scores, labels)], 2)
    nearest, least = nearest_to_a_promise(shares, sizes, asked.confidence)
    topic, size = topics[nearest % len(topics)], int(sizes[nearest])
    remedy = "give a lower share or confidence, or label more documents"
    if size >= least:  # it is a precision: a recall can always be promised then
        reason = f"{topic!r} has enough documents, {size:,}, but the tags with the highest scores are wrong too often"
    else:
        reason = f"it takes at least {least:,} documents of a topic, all of them right, and {topic!r} has {size:,}"
        if not np.isnan(precision).all() and asked.small_topics != "together":
            remedy += ", or set promise.small_topics = together"
    share, confidence = shares[nearest], asked.confidence
    return f"No promise of {share:g} can be kept with a confidence of {confidence:g} ({reason}): {remedy}."


def promise_scores(
    examples: Examples,
    learner: MarginClassifier,
    fold_of: np.ndarray,
    features: TfIdf,
    *,
    groups: np.ndarray | None = None,
    progress: Advance | None = None,
) -> np.ndarray:
    """Return held-out scores that are distributed like the scores of future documents, as promises need.

    They differ from those of `held_out_scores` in two ways. What a document itself contributes to its score by its
    surplus of α (see `textcat.margin._folds`) is subtracted in full. And a document's vector is scaled to length 1
    without the terms that training without its fold would lack, as the vector of a future document is; otherwise,
    scores would be lower than those of future documents by some 5 %.
    """
    scores = held_out_scores(examples, learner, fold_of, groups=groups, own=1.0, progress=progress)
    biases = learner.intercept_ / score_units(learner.solutions_, learner.intercept_.dtype)
    lengths = _lengths_without_unknown(examples.rows, fold_of, features)
    return biases + (scores - biases) / lengths[:, None]


def _lengths_without_unknown(rows: Any, fold_of: np.ndarray, features: TfIdf) -> np.ndarray:
    """Return for each document the length of its vector without terms unknown in other folds, as a share.

    The share is of the vector's full length. A term is unknown if it is in fewer documents of the other folds than the
    minimum document frequency.
    """
    X = (rows if sp.issparse(rows) else rows[:])[: len(fold_of)]
    least = np.full(X.shape[1], -1)  # dimensions of vectors are never lacking
    names = features.listed_names()
    least[: len(names)] = [features.ngram_min_df if " " in name else features.min_df for name in names]
    n_documents = np.bincount(X.indices, minlength=X.shape[1])
    squares, lengths = sp.csr_matrix((X.data**2, X.indices, X.indptr), X.shape), np.ones(len(fold_of), X.dtype)
    for fold in range(fold_of.max() + 1):
        documents = np.flatnonzero(fold_of == fold)
        of_fold = squares[documents]
        known = n_documents - np.bincount(of_fold.indices, minlength=X.shape[1]) >= least
        whole, without_unknown = of_fold.sum(axis=1).A1, of_fold @ known.astype(X.dtype)
        has_known = without_unknown > 0
        lengths[documents[has_known]] = np.sqrt(without_unknown[has_known] / whole[has_known])
    return lengths


def held_out_scores(
    examples: Examples,
    learner: MarginClassifier,
    fold_of: np.ndarray,
    *,
    groups: np.ndarray | None = None,
    own: float = _OWN,
    progress: Advance | None = None,
) -> np.ndarray:
    """Score training documents, as many as thresholds need, as if by rankers that were trained without them.

    Training each topic once more for every fold, as `out_of_fold_scores` does, costs several times the training itself.
    Two methods cost less. Rules whose training ends near a minimum, such as PAUM with λ > 0, are not trained again: a
    few passes over the documents near the margin move the topic's fitted ranker towards the minimum that training
    without a fold would reach: see `textcat.margin._folds`.

    Rankers of other rules are trained again without a fold, but only on examples that may cause an update: the support
    of the fitted ranker, the topic's positives, and the negatives with the highest scores. A topic of many positives is
    trained only for as many folds as hold enough positives; its scores are nan in the other folds. The learner must be
    fitted, and must not have a kernel.

    `own` is for the first method: the share, from 0 to 1, of a document's own contribution to its score, by its surplus
    of α, that is subtracted: see `textcat.margin._folds`. The contributions of documents that repeat it are subtracted,
    too: `groups` are those of `assign_folds`.
    """
    topics, n_folds = TopicProblems(examples, learner, fold_of, own, groups), fold_of.max() + 1
    n_topics = examples.labels.shape[1]
    scores = np.full((len(fold_of), n_topics), np.nan, topics.rows.dtype, order="F")

    def score(topic: int, of_block: Future[np.ndarray]) -> None:
        topics.score(topic, of_block.result()[:, topic % _AT_ONCE], scores[:, topic])

    with ThreadPoolExecutor(joblib.effective_n_jobs(learner.n_jobs)) as pool:
        blocks = [range(first, min(first + _AT_ONCE, n_topics)) for first in range(0, n_topics, _AT_ONCE)]
        tasks, of_next = list[Future[None]](), pool.submit(topics.scores_of_rankers, blocks[0])
        for block, next_block in zip_longest(blocks, blocks[1:]):
            of_block = of_next
            if next_block is not None:  # submitted before the tasks of this block, so that no thread waits for it
                of_next = pool.submit(topics.scores_of_rankers, next_block)
            tasks += [pool.submit(score, topic, of_block) for topic in block]
        try:
            for task in tasks:
                task.result()
                release_memory()
                if progress:
                    progress(n_folds)
        except BaseException:
            # checked now; otherwise this error would appear only after all other topics were trained
            pool.shutdown(cancel_futures=True)
            raise
    return scores


class TopicProblems:
    """Compute the held-out scores of each topic of a fitted learner.

    A held-out score is the score of a training document by a ranker that was trained without the document's fold, or an
    approximation of this score: see `held_out_scores`.
    """

    def __init__(
        self,
        examples: Examples,
        learner: MarginClassifier,
        fold_of: np.ndarray,
        own: float = _OWN,
        groups: np.ndarray | None = None,
    ):
        rows, self._own = examples.rows, own
        self.rows: sp.csr_matrix = rows if sp.issparse(rows) else rows[:]  # for rows on disk, whose entries stay there
        self._arrays = self.rows.indptr.astype(np.int64), self.rows.indices, self.rows.data
        n_rows, n_topics = examples.labels.shape
        self._n_documents = len(fold_of)
        self._groups = np.arange(n_rows)
        if groups is not None:
            self._groups[: len(groups)] = groups
        self._fold_of = np.append(fold_of, np.full(n_rows - len(fold_of), -1))  # -1: in no fold
        self._documents = [np.flatnonzero(fold_of == fold) for fold in range(fold_of.max() + 1)]
        self._positives = rows_by_column(examples.labels)
        self._left_out = [NO_ROWS] * n_topics if examples.left_out is None else rows_by_column(examples.left_out)
        self._solutions = learner.solutions_
        self._rules = learner.rules_for(learner.prevalence_)
        self._settings = learner.settings_for(self.rows, learner.prevalence_)
        self._seed = learner.random_state
        self._work = local()

    def scores_of_rankers(self, topics: range) -> np.ndarray:
        """Return the scores of all rows by the fitted rankers of some topics: shape (n_rows, n_topics)."""
        solutions = [self._solutions[topic] for topic in topics]
        # side by side, so that each row is read once for all of them
        weights = np.stack([np.asarray(solution.weights) for solution in solutions], axis=1)
        biases = np.array([solution.bias for solution in solutions], self.rows.dtype)
        return Dense(weights, biases).scores(Rows(*self._arrays))

    def score(self, topic: int, of_whole: np.ndarray, scores: np.ndarray) -> None:
        """Write a topic's held-out scores into `scores`; a document is scored by a ranker trained without its fold.

        `of_whole` are the scores of all rows by the topic's fitted ranker.
        """
        left_out = self._left_out[topic]
        if _is_near_minimum(self._rules[topic], self._settings[topic]["lambda_"]):
            scores[:] = of_whole[: len(scores)] + self._changes(topic, of_whole)
        else:
            for without, documents in zip(self.without_folds(topic, of_whole), self._documents, strict=False):
                sums = dots(*self._arrays, documents, without.weights)
                scores[documents] = (sums + sums.dtype.type(without.bias)) / sums.dtype.type(without.unit)
        scores[left_out[left_out < len(scores)]] = np.nan  # nan: documents that were not judged are not in the sample

    def _changes(self, topic: int, scores: np.ndarray) -> np.ndarray:
        """Return by how much each document's score changes if the document's fold is left out of training.

        `scores` are the scores of all rows by the topic's fitted ranker.
        """
        kept, solution, rule = self.deciding(topic, scores, _NEAR_MINIMUM), self._solutions[topic], self._rules[topic]
        dtype, n_rows = scores.dtype, len(scores)
        alpha, label = np.zeros(n_rows, dtype), np.full(n_rows, -1, dtype)
        alpha[solution.support] = np.abs(solution.alpha)
        label[self._positives[topic]] = 1
        threshold = np.where(label[kept] > 0, rule.threshold(1), rule.threshold(-1)).astype(dtype)
        _, group = np.unique(self._groups[kept], return_inverse=True)
        order = np.random.default_rng(0).permutation(len(kept))  # random, because documents may be sorted by topic
        if not hasattr(self._work, "lanes"):
            self._work.lanes = np.zeros((self.rows.shape[1], N_FOLDS + 1), dtype)
        fold_of, changes = self._fold_of, np.zeros(self._n_documents, dtype)
        for first in range(0, len(self._documents), N_FOLDS):
            lane = fold_of - first
            lane[(lane < 0) | (lane >= N_FOLDS)] = -1  # -1: like rows in no fold
            parts = kept, lane[kept], group, label[kept], threshold, alpha[kept], scores[kept], order
            limits = self._settings[topic]["lambda_"], self._settings[topic]["rho"], _PASSES, self._own
            of_rows, of_folds = leave_out_folds(*self._arrays, *parts, *limits, self._work.lanes)
            here = np.flatnonzero(lane[: self._n_documents] >= 0)
            changes[here] = of_folds[lane[here]]
            is_here = lane[kept] >= 0
            changes[kept[is_here]] = of_rows[is_here]
        return changes

    def without_folds(self, topic: int, scores: np.ndarray) -> list[Solution]:
        """Train a topic without fold 0, without fold 1 and so on; return a solution (weights and bias) for each fold.

        Only as many folds are left out as together hold enough positives. `scores` are the scores of all rows by the
        topic's fitted ranker.
        """
        positives, kept = self._positives[topic], self.deciding(topic, scores)
        is_positive = np.zeros(self.rows.shape[0], bool)
        is_positive[positives] = True
        fold, is_positive = self._fold_of[kept], is_positive[kept]
        n_judging = int(
            np.clip(-(-len(self._documents) * ENOUGH_POSITIVES // max(len(positives), 1)), 1, len(self._documents))
        )
        problems = [
            Problem(
                np.flatnonzero(is_positive & (fold != judging)).astype(np.int32),
                self._rules[topic],
                np.flatnonzero(fold == judging).astype(np.int32),
                **self._settings[topic],
            )
            for judging in range(n_judging)
        ]
        return solve(self.rows[kept], problems, n_jobs=1, seed=self._seed, overwrite_X=True)

    def deciding(self, topic: int, scores: np.ndarray, near: tuple[float, float, int] | None = None) -> np.ndarray:
        """Return the positions of examples that may cause an update: support, positives, and high-scoring negatives.

        The positions ascend. `scores` are the scores of all rows by the topic's fitted ranker. `near` sets how many
        negatives with the highest scores are added: (a, b, c) stands for ``a · n_support + max(b · n_documents, c)``;
        None: the module's constants.
        """
        of_support, of_documents, least = near or (SHARE_OF_SUPPORT, SHARE_OF_DOCUMENTS, LEAST_NEGATIVES)
        support, positives = self._solutions[topic].support, self._positives[topic]
        decides = np.zeros(self.rows.shape[0], bool)
        decides[support] = True
        decides[positives] = True
        decides[self._left_out[topic]] = True  # temporarily: exclude them from the rest
        rest = np.flatnonzero(~decides[: self._n_documents])
        n_near = min(int(of_support * len(support) + max(of_documents * self._n_documents, least)), len(rest))
        if n_near:
            decides[rest[np.argpartition(-scores[rest], n_near - 1)[:n_near]]] = True
        decides[self._left_out[topic]] = False
        return np.flatnonzero(decides)


def _is_near_minimum(rule: Rule, lambda_: float) -> bool:
    """Return whether training with a rule ends near the minimum that `textcat.margin._folds` approximates.

    If λ is 0, training ends far from the minimum. If the rule has no margin, all weights are 0 at the minimum.
    """
    return lambda_ > 0 and rule.CONSTANT and rule.threshold(1) + rule.threshold(-1) > 0
