"""Fit the calibration curves of learners to out-of-fold scores."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from textcat.base.calibration import Calibration
from textcat.base.folds import assign_folds
from textcat.margin.problems import Problem, Solution
from textcat.margin.rules import Rule
from textcat.margin.solve import nothing, solve

#: The positive rows of a problem, and the rows left out of training.
ProblemRows = tuple[np.ndarray, np.ndarray]
_N_FOLDS = 5


class Learner(Protocol):
    """A learner that returns the update rule and the settings of each topic, given the topics' shares of positives."""

    def rules_for(self, prevalence: np.ndarray) -> list[Rule]:
        """Return each topic's rule."""

    def settings_for(self, X: Any, prevalence: np.ndarray) -> list[dict[str, Any]]:
        """Return the settings of each topic's training problem, except the rule: keyword arguments of `Problem`."""


def out_of_fold_scores(
    learner: Learner, X: Any, problems: Sequence[Problem], fold_of: np.ndarray, **options: Any
) -> np.ndarray:
    """Score rows by rankers trained without their fold.

    Each score is divided by the unit of the solution (see `Solution.unit`), to make folds comparable. One call of
    `solve` trains all folds. `learner` gives the rules and the settings; it is not fitted.

    Parameters
    ----------
    learner : Learner
    X : matrix of shape (n_rows, n_features)
    problems : sequence of Problem
        The labels of each topic.
    fold_of : ndarray of shape (n_scored,), int
        The fold of each row, from 0. Rows after the first n_scored are in no fold: every ranker is trained on them.
    **options
        Options of `solve`.

    Returns
    -------
    ndarray of shape (n_scored, n_problems), float64
        nan where a row is in a problem's `left_out`.
    """
    folds = [np.flatnonzero(fold_of == fold).astype(np.int32) for fold in range(fold_of.max() + 1)]
    rows = [(problem.positives, problem.left_out) for problem in problems]
    parts = [part for held_out in folds for part in make_problems(learner, X, rows_without(rows, held_out))]
    solutions = iter(solve(X, parts, keep=nothing, **options))
    scores = np.empty((len(fold_of), len(problems)))
    for held_out in folds:
        for column, problem in zip(scores.T, problems, strict=True):
            solution = next(solutions)
            column[held_out] = solution.held_out[: len(held_out)] / solution.unit
            column[problem.left_out[problem.left_out < len(fold_of)]] = np.nan
    return scores


def rows_without(rows: Iterable[ProblemRows], held_out: np.ndarray) -> list[ProblemRows]:
    """Return the positive and the left-out rows of each problem for training without a fold.

    The fold's rows, `held_out`, are removed from the positives, and become the first ones of the left-out rows.
    """
    return [
        (
            np.setdiff1d(positives, held_out).astype(np.int32),
            np.append(held_out, np.setdiff1d(left_out, held_out)).astype(np.int32),
        )
        for positives, left_out in rows
    ]


def make_problems(learner: Learner, X: Any, rows: Sequence[ProblemRows]) -> list[Problem]:
    """Return the training problem of each topic: its rows, with the learner's rule of updates and settings.

    `rows` has for each topic the numbers of its positive rows, and of the rows that are not trained on (such as a fold
    in cross-validation), which must not be among the positives. Rule and settings may depend on the topic's fraction of
    positive rows among those trained on.
    """
    n_trained = np.maximum(X.shape[0] - np.array([len(left_out) for _, left_out in rows]), 1)
    prevalence = np.array([len(positives) for positives, _ in rows]) / n_trained
    parts = zip(rows, learner.rules_for(prevalence), learner.settings_for(X, prevalence), strict=True)
    return [Problem(positives, rule, left_out, **settings) for (positives, left_out), rule, settings in parts]


def fit_calibration(
    learner: Learner, X: Any, problems: Sequence[Problem], solutions: Sequence[Solution], **options: Any
) -> Calibration:
    """Return curves that turn the scores of solutions into probabilities, fitted to out-of-fold scores of the learner.

    `options` are those of `solve`. Raise ValueError if X has fewer than two rows.
    """
    if (n_rows := X.shape[0]) < 2:
        raise ValueError(f"probability=True needs 2 rows or more, to score each without it, and X has {n_rows}")
    labels = _labels(problems, n_rows)
    fold_of = assign_folds(labels, min(_N_FOLDS, n_rows), seed=0)
    cold = [replace(problem, start=None) for problem in problems]
    curves = Calibration.fit_scores(out_of_fold_scores(learner, X, cold, fold_of, **options), labels)
    return Calibration(curves.a / [solution.unit for solution in solutions], curves.b)


def _labels(problems: Sequence[Problem], n_rows: int) -> sp.csc_array:
    """Return the labels of problems: 1 where a row is a positive, shape (n_rows, n_problems)."""
    positives = [problem.positives for problem in problems]
    ends = np.cumsum([0, *map(len, positives)])
    return sp.csc_array((np.ones(ends[-1], np.int8), np.concatenate(positives), ends), shape=(n_rows, len(problems)))


def class_probabilities(scores: np.ndarray, calibration: Calibration, *, multilabel: bool) -> np.ndarray:
    """Return the probabilities of classes, shape (n_rows, n_classes), given the scores and the curves of rankers.

    With two classes there is one ranker, for the second. With more classes, the probabilities of a row are divided by
    their sum; with `multilabel`, they are independent of each other.
    """
    probabilities = calibration.probabilities(scores.reshape(len(scores), -1))
    if multilabel:
        return probabilities
    if probabilities.shape[1] == 1:
        return np.column_stack([1 - probabilities, probabilities])
    total = probabilities.sum(axis=1, keepdims=True)
    even = np.full_like(probabilities, 1 / probabilities.shape[1])
    return np.divide(probabilities, total, out=even, where=total > 0)
