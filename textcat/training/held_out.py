"""A fitted learner → scores of its training documents by rankers that were not trained on them, for a part of the cost.

Thresholds and probabilities are chosen from them. Training every topic again without each fold costs several times the
training itself. Two things are spared here:

* A row that never causes an update can be left out without changing a ranker. So a topic's rankers without a
  fold are trained on the rows alone that may cause one: the support of the whole ranker, the topic's positives, and the
  negatives that score highest.
* A topic of many positives is judged by as many folds as hold enough of them.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import scipy.sparse as sp

from textcat.margin.learners import MarginClassifier
from textcat.margin.problems import NO_ROWS, Problem, Solution, rows_by_column
from textcat.margin.solve import solve
from textcat.progress import Advance
from textcat.training.examples import Examples

# Chosen on training documents of Reuters-21578, 20 Newsgroups and library titles.
# Negatives beside those of the support: a part of its rows and one of the documents, but so many at least.
_OF_SUPPORT, _OF_DOCUMENTS, _LEAST = 0.5, 1 / 32, 250
_ENOUGH = 100  # held-out positives from which a topic's threshold is chosen, where it has so many

_TOPICS = 64  # whose weights lie side by side while documents are scored
_DOCUMENTS = 65_536  # that are scored together


def held_out_scores(
    examples: Examples, learner: MarginClassifier, fold_of: np.ndarray, *, progress: Advance | None = None
) -> np.ndarray:
    """Score documents by rankers that were not trained on them, as many as thresholds need.

    Parameters
    ----------
    examples : Examples
        The rows after those of documents are trained on in every fold, and not scored.
    learner : MarginClassifier
        Fitted to the examples, without a kernel.
    fold_of : ndarray of shape (n_documents,), int
        From `folds`.
    progress : callable, optional
        Called with the number of folds whenever a topic has been trained without them.

    Returns
    -------
    ndarray of shape (n_documents, n_topics), dtype of the rows
        In units of the solutions; nan in the folds by which a topic was not judged.
    """
    documents = [np.flatnonzero(fold_of == fold) for fold in range(fold_of.max() + 1)]
    n_documents, n_topics = len(fold_of), examples.labels.shape[1]
    topics = _Topics(examples, learner, fold_of)
    scores = np.full((n_documents, n_topics), np.nan, topics.rows.dtype)
    with ThreadPoolExecutor(joblib.effective_n_jobs(learner.n_jobs)) as pool:
        for start in range(0, n_topics, _TOPICS):
            chunk = np.arange(start, min(start + _TOPICS, n_topics))
            of_whole = _scored(topics.rows, np.arange(n_documents), learner.coef_[chunk].T)
            tasks = [
                pool.submit(topics.without_folds, topic, column)
                for topic, column in zip(chunk, of_whole.T, strict=True)
            ]
            rankers = []
            try:
                for task in tasks:
                    rankers.append(task.result())
                    if progress:
                        progress(len(documents))
            except BaseException:
                pool.shutdown(cancel_futures=True)  # the others would otherwise be trained before anyone hears of it
                raise
            for fold, held_out in enumerate(documents):
                judged = [k for k, (_, solutions) in enumerate(rankers) if fold < len(solutions)]
                weights = np.zeros((len(judged), topics.rows.shape[1]), scores.dtype)
                bias = np.empty(len(judged), scores.dtype)
                for row, k in enumerate(judged):
                    features, solution = rankers[k][0], rankers[k][1][fold]
                    weights[row][features] = np.asarray(solution.weights) / solution.unit
                    bias[row] = solution.bias / solution.unit
                scores[np.ix_(held_out, chunk[judged])] = _scored(topics.rows, held_out, weights.T) + bias
    return scores


class _Topics:
    """The problems of a fitted learner, each to be trained again without some folds."""

    def __init__(self, examples: Examples, learner: MarginClassifier, fold_of: np.ndarray):
        self.rows: sp.csr_matrix = examples.rows[:]  # of rows on disk, a matrix whose entries stay there
        n_rows, n_topics = examples.labels.shape
        self._fold_of = np.append(fold_of, np.full(n_rows - len(fold_of), -1))  # -1: in no fold
        self._n_folds = fold_of.max() + 1
        self._positives = rows_by_column(examples.labels)
        self._left_out = [NO_ROWS] * n_topics if examples.left_out is None else rows_by_column(examples.left_out)
        self._solutions = learner.solutions_
        self._rules = learner.rules_for(learner.prevalence_)
        self._settings = learner.lambda_, learner._rho(self.rows), learner.max_epochs, learner.mini_epochs
        self._seed = learner.random_state

    def without_folds(self, topic: int, scores: np.ndarray) -> tuple[np.ndarray, list[Solution]]:
        """Return the solutions of a topic without each of its first folds, and the features that they have weights of.

        Parameters
        ----------
        topic : int
        scores : ndarray of shape (n_documents,)
            By the whole ranker.
        """
        positives = self._positives[topic]
        kept = self._deciding(topic, scores)
        rows, features = _without_empty_columns(self.rows[kept])
        is_positive = np.zeros(self.rows.shape[0], bool)
        is_positive[positives] = True
        fold, is_positive = self._fold_of[kept], is_positive[kept]
        n_judging = int(np.clip(-(-self._n_folds * _ENOUGH // max(len(positives), 1)), 1, self._n_folds))
        problems = [
            Problem(
                np.flatnonzero(is_positive & (fold != judging)).astype(np.int32),
                self._rules[topic],
                np.flatnonzero(fold == judging).astype(np.int32),
                *self._settings,
            )
            for judging in range(n_judging)
        ]
        return features, solve(rows, problems, n_jobs=1, seed=self._seed)

    def _deciding(self, topic: int, scores: np.ndarray) -> np.ndarray:
        """Return the rows that may cause an update, ascending."""
        support, positives = self._solutions[topic].support, self._positives[topic]
        decides = np.zeros(self.rows.shape[0], bool)
        decides[support] = True
        decides[positives] = True
        rest = np.flatnonzero(~decides[: len(scores)])
        n_near = min(int(_OF_SUPPORT * len(support) + max(_OF_DOCUMENTS * len(scores), _LEAST)), len(rest))
        if n_near:
            decides[rest[np.argpartition(-scores[rest], n_near - 1)[:n_near]]] = True
        decides[self._left_out[topic]] = False
        return np.flatnonzero(decides)


def _without_empty_columns(rows: sp.csr_matrix) -> tuple[sp.csr_matrix, np.ndarray]:
    """Return rows with no columns but those that have an entry, and which these were."""
    has_entry = np.zeros(rows.shape[1], bool)
    has_entry[rows.indices] = True
    new = np.cumsum(has_entry, dtype=np.int32) - 1
    columns = np.flatnonzero(has_entry)
    return sp.csr_matrix((rows.data, new[rows.indices], rows.indptr), shape=(rows.shape[0], len(columns))), columns


def _scored(rows: sp.csr_matrix, documents: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the products of some rows with weights of shape (n_features, n_topics), so many rows at a time."""
    weights = np.ascontiguousarray(weights)
    parts = (documents[start : start + _DOCUMENTS] for start in range(0, len(documents), _DOCUMENTS))
    return np.concatenate([rows[part] @ weights for part in parts])
