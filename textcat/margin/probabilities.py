"""Fit Platt's curves, by which learners turn scores into probabilities, to out-of-fold scores."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, logit

from textcat.margin.problems import Problem, Solution
from textcat.margin.solve import nothing, solve

if TYPE_CHECKING:
    from textcat.margin.learners import MarginClassifier

N_FOLDS = 5
_WEAK = 1e10  # inverse strength of the penalty, so large that there is next to no penalty


def assign_folds(positives: Sequence[np.ndarray], n_rows: int, n_folds: int = N_FOLDS) -> np.ndarray:
    """Return the number of each row's fold, given the row numbers of each topic's positives.

    The same labels always give the same folds.

    Rows are grouped by the rarest of their topics, and each group is dealt out to the folds in turn. So the positives
    of a topic come into as many folds as possible, and the sizes of folds differ by one at most.
    """
    group = np.full(n_rows, -1)
    for topic in sorted(range(len(positives)), key=lambda topic: -len(positives[topic])):
        group[positives[topic]] = topic  # that of the rarest topic stays
    shuffled = np.random.default_rng(0).permutation(n_rows)
    fold = np.empty(n_rows, int)
    fold[shuffled[np.argsort(group[shuffled], kind="stable")]] = np.arange(n_rows) % n_folds
    return fold


def out_of_fold_scores(learner: "MarginClassifier", X: Any, problems: Sequence[Problem], **options: Any) -> np.ndarray:
    """Score every row by rankers that were not trained on its fold; return scores of shape (n_rows, n_problems).

    A problem is the labels of one topic over the rows of X, with the rule to train it by.

    Each score is divided by the unit of the solution (see `Solution.unit`), to make folds comparable. One call of
    `solve`, with these `options`, trains all folds. The score is nan where a problem leaves a row out. Raise ValueError
    if X has fewer than two rows.
    """
    if (n_rows := X.shape[0]) < 2:
        raise ValueError(f"probability=True needs 2 rows or more, to score each without it, and X has {n_rows}")
    fold_of = assign_folds([problem.positives for problem in problems], n_rows, min(N_FOLDS, n_rows))
    folds = [np.flatnonzero(fold_of == fold).astype(np.int32) for fold in range(fold_of.max() + 1)]
    parts = [part for held_out in folds for part in _without(learner, X, problems, held_out)]
    solutions = iter(solve(X, parts, keep=nothing, **options))
    scores = np.empty((n_rows, len(problems)))
    for held_out in folds:
        for column, problem in zip(scores.T, problems, strict=True):
            solution = next(solutions)
            column[held_out] = solution.held_out[: len(held_out)] / solution.unit
            column[problem.left_out] = np.nan
    return scores


def _without(learner: "MarginClassifier", X: Any, problems: Sequence[Problem], held_out: np.ndarray) -> list[Problem]:
    """Return problems in which the rows of a fold, `held_out`, are left out of training, too.

    In the field `left_out` of a problem, the rows of the fold come first.
    """
    left_out = [np.append(held_out, np.setdiff1d(one.left_out, held_out)).astype(np.int32) for one in problems]
    positives = [np.setdiff1d(one.positives, held_out).astype(np.int32) for one in problems]
    n_trained = np.maximum(X.shape[0] - np.array(list(map(len, left_out))), 1)
    prevalence = np.array(list(map(len, positives))) / n_trained
    parts = zip(positives, left_out, learner.rules_for(prevalence), learner.settings_for(X, prevalence), strict=True)
    return [Problem(rows, rule, out, **settings) for rows, out, rule, settings in parts]


def platt_curve(scores: np.ndarray, is_positive: np.ndarray) -> tuple[float, float]:
    """Return a ≥ 0 and b of ``P(topic | score) = 1 / (1 + exp(-(a·score + b)))``.

    The curve is fitted to ``(n_pos + 1) / (n_pos + 2)`` for positive rows and ``1 / (n_neg + 2)`` for negative rows
    (Platt, "Probabilistic outputs for support vector machines", 1999). If the fitted curve falls, scores rank no better
    than chance, and a flat curve is returned: a = 0.
    """
    from sklearn.linear_model import LogisticRegression  # here, as it takes long to import

    n, n_positives = len(scores), int(np.sum(is_positive))
    target = np.where(is_positive, (n_positives + 1) / (n_positives + 2), 1 / (n - n_positives + 2))
    mean, deviation = float(np.mean(scores)), float(np.std(scores)) or 1.0
    z = np.tile((scores - mean) / deviation, 2)[:, np.newaxis]
    # A label between 0 and 1 is a row of each class, weighted.
    curve = LogisticRegression(C=_WEAK, solver="newton-cholesky", tol=1e-10).fit(
        z, np.repeat([1, 0], n), np.concatenate([target, 1 - target])
    )
    a, b = float(curve.coef_[0, 0]), float(curve.intercept_[0])
    return (a / deviation, b - a * mean / deviation) if a > 0 else (0.0, float(logit(np.mean(target))))


def platt_curves(
    learner: "MarginClassifier", X: Any, problems: Sequence[Problem], solutions: Sequence[Solution], **options: Any
) -> np.ndarray:
    """Return a and b of each problem's curve from scores to probabilities (see `platt_curve`): shape (n_problems, 2).

    The curves are fitted to out-of-fold scores of the learner, and are then scaled to turn the scores of the given
    solutions into probabilities. `options` are those of `solve`.
    """
    scores = out_of_fold_scores(learner, X, [replace(problem, start=None) for problem in problems], **options)
    curves = np.zeros((len(problems), 2))
    for k, (column, problem, solution) in enumerate(zip(scores.T, problems, solutions, strict=True)):
        is_positive = np.zeros(len(column), bool)
        is_positive[problem.positives] = True
        in_sample = ~np.isnan(column)
        if in_sample.any():
            a, b = platt_curve(column[in_sample], is_positive[in_sample])
            curves[k] = a / solution.unit, b
    return curves


def class_probabilities(scores: np.ndarray, curves: np.ndarray, *, multilabel: bool) -> np.ndarray:
    """Return the probabilities of classes, shape (n_rows, n_classes), given the scores and the curves of rankers.

    `curves` has a and b of each ranker's curve: see `platt_curve`. With two classes there is one ranker, for the
    second. With more classes, the probabilities of a row are divided by their sum; with `multilabel`, they are
    independent of each other.
    """
    probabilities = expit(scores.reshape(len(scores), -1) * curves[:, 0] + curves[:, 1])
    if multilabel:
        return probabilities
    if probabilities.shape[1] == 1:
        return np.column_stack([1 - probabilities, probabilities])
    total = probabilities.sum(axis=1, keepdims=True)
    even = np.full_like(probabilities, 1 / probabilities.shape[1])
    return np.divide(probabilities, total, out=even, where=total > 0)
