"""The unit of all training: a problem (labels, rule and limits), and its solution."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
import scipy.sparse as sp

from textcat.margin.rules import Rule

NO_ROWS = np.empty(0, np.int32)


@dataclass(frozen=True, eq=False)
class Problem:
    """One two-class problem over the rows of a shared X: labels, rule and limits.

    Parameters
    ----------
    positives : ndarray of int32
        Numbers of the rows labelled +1; all others are labelled -1.
    rule : Rule
        When to update and by how much, from `textcat.rules`: ``rules.PAUM(-0.5, 10)``, not the estimator PAUM.
    left_out : ndarray of int32
        Numbers of rows that are not trained on, whatever their label: cross-validation leaves a fold out.
    lambda_ : float >= 0
        The λ trick: each row gets a private coordinate √λ, which makes any rows separable; 0: no such coordinate.
    rho : float
        Size of the constant coordinate appended to each row; 0: no bias. The PAUM paper's ``b += ηyR²`` is ρ = R, with
        R the largest Euclidean norm of a row.
    max_epochs : int >= 1
        Largest number of passes over the rows.
    mini_epochs : int >= 0
        After each epoch, the active set (the rows that caused an update in the epoch; "red-" in the MICRA paper) is
        presented again, at most this many times, or until a pass over it has no update. 0: full epochs only.
    tol : float in [0, 1)
        Training ends after the first epoch whose updates are at most this fraction of all updates so far, and after the
        passes over its active set. 0: after the first epoch without an update.
    start : Solution, optional
        Start from this solution, over the same rows and features and in the same number type; None: from zero.
    """

    positives: np.ndarray
    rule: Rule
    left_out: np.ndarray = field(default_factory=lambda: NO_ROWS)
    lambda_: float = 0.0
    rho: float = 1.0
    max_epochs: int = 1000
    mini_epochs: int = 0
    tol: float = 0.0
    start: "Solution | None" = None

    def __post_init__(self) -> None:
        if not (isinstance(self.rule, Rule) and self.rule.is_initialized):
            kind = type(self.rule).__name__
            raise TypeError(f"rule must be a rule of textcat.margin.rules, such as rules.PAUM(-0.5, 10), got a {kind}")

    @property
    def limits(self) -> tuple[int, int, float]:
        """The parameters that end training: max_epochs, mini_epochs and tol."""
        return self.max_epochs, self.mini_epochs, self.tol

    def __repr__(self) -> str:
        limits = f"lambda_={self.lambda_:g}, rho={self.rho:g}, max_epochs={self.max_epochs}"
        return f"Problem({self.rule}, {len(self.positives)} positives, {len(self.left_out)} left out, {limits})"

    @classmethod
    def from_labels(cls, labels: np.ndarray, rule: Rule, **settings: Any) -> "Problem":
        """Return a problem from labels.

        Parameters
        ----------
        labels : array-like of shape (n_rows,)
            Above 0 for positive rows, below 0 for negative ones, and 0 for rows to leave out.
        rule, **settings
            The other parameters of a problem.

        Returns
        -------
        Problem
        """
        labels = np.asarray(labels)
        positives, left_out = (np.flatnonzero(chosen).astype(np.int32) for chosen in (labels > 0, labels == 0))
        return cls(positives, rule, left_out=left_out, **settings)


class StopReason(Enum):
    """The reasons why training ends. `Solution.stopped` is a sentence that starts with the value of the reason."""

    CONVERGED = "converged"
    LAST_EPOCH = "did not converge"
    OVERFLOW = "overflowed"


@dataclass(eq=False)
class Solution:
    """The result of training on a problem: ``f(x) = ⟨weights, x⟩ + bias``.

    Attributes
    ----------
    weights, bias : ndarray of shape (n_features,), float
        If `solve` was given a function `keep`, the weights are its result; with a kernel, they are None.
    support, alpha : ndarray of shape (n_support,), int32 and X's number type
        Numbers of the rows with a non-zero coefficient, and these coefficients: the sum of the signed steps made on
        the row, so ``weights = Σ alpha_i x_i``. The PAUM paper calls n_support sparsity.
    n_updates, n_epochs : int
        The updates include those of the solution that training started from, if any. Epochs are full passes over the
        rows, the last one included.
    reason, stopped : StopReason, str
        Why training ended, and the same in a sentence for people.
    converged : bool
        Whether the last epoch was without an update, or had as few as the problem's tol allows.
    held_out : ndarray of shape (n_left_out,)
        Scores of the rows in `Problem.left_out`, in their order.
    directional_margin : float
        ``min_i y_i f(x_i) / ‖a‖`` over the rows trained on, where ``a`` is the whole weight vector, with its augmented
        and private coordinates, and f the function that was trained, private coordinates included. Below 0 if a row is
        on the wrong side; NaN if it was not asked for, or there is no row or no weight.
    margin : float
        The geometric margin: ``min_i y_i f(x_i) / ‖w‖``, where ``w`` is ``a`` without the augmented coordinate (the
        bias).
    certificate : float
        A proven lower bound on the fraction of the largest possible directional margin γ_d that was reached. Every
        ``a`` is ``Σ alpha_i x_i`` with ``y_i alpha_i ≥ 0``, so ``γ_d ≤ ‖a‖ / Σ|alpha_i|`` whatever the rule; for rules
        with shrink 1 and grow η this is the papers' ``γ_d ≤ ‖a‖/(ηt)``.
    unit : float
        Divide scores by the unit to compare them with scores of the same rule trained on other rows. It is ``‖a‖`` if
        the rule leaves this length free, and 1 for PA, PAM and PAUM, whose margins fix the size of scores.
    """

    weights: Any
    bias: float
    support: np.ndarray
    alpha: np.ndarray
    n_updates: int
    n_epochs: int
    reason: StopReason
    stopped: str
    held_out: np.ndarray
    directional_margin: float = np.nan
    margin: float = np.nan
    certificate: float = np.nan
    unit: float = 1.0

    @property
    def converged(self) -> bool:
        """Whether training ended because the last epoch had no update, or as few as the problem's `tol` allows."""
        return self.reason is StopReason.CONVERGED

    def __repr__(self) -> str:
        return f"Solution({self.n_updates} updates, {len(self.support)} support rows; {self.stopped})"


@dataclass(frozen=True, eq=False)
class PackedWeights:
    """A weight vector without its zeros, of which there are many if there are many features; numpy can read it."""

    shape: tuple[int]
    features: np.ndarray  # int32, ascending
    values: np.ndarray

    @classmethod
    def of(cls, weights: np.ndarray) -> "PackedWeights":
        """Return an array of weights in packed form."""
        # compared by bits, so that -0 is kept
        features = np.flatnonzero(weights.view(f"u{weights.itemsize}")).astype(np.int32)
        return cls((len(weights),), features, weights[features])

    @property
    def dtype(self) -> np.dtype:
        """The number type of the weights."""
        return self.values.dtype

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        weights = np.zeros(self.shape, dtype or self.dtype)
        weights[self.features] = self.values
        return weights


def side_by_side(solutions: Sequence[Solution], n_features: int) -> np.ndarray:
    """Return the packed weights of solutions as a dense array of shape (n_features, n_solutions)."""
    weights = np.zeros((n_features, len(solutions)), solutions[0].weights.dtype)
    for column, solution in zip(weights.T, solutions, strict=True):
        column[solution.weights.features] = solution.weights.values
    return weights


def in_rows(solutions: Sequence[Solution], n_features: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the weights of solutions as the arrays of a CSR matrix: indptr (int64), indices (int32) and data.

    The matrix has a row per feature and a column per solution. If more than half of the solutions use a feature, its
    row also stores the zeros, so that it is multiplied like a dense row.
    """
    counts = np.zeros(n_features, np.int64)
    for solution in solutions:
        counts[solution.weights.features] += 1
    whole = 2 * counts > len(solutions)
    counts[whole] = len(solutions)
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    indices, data = np.empty(indptr[-1], np.int32), np.zeros(indptr[-1], solutions[0].weights.dtype)
    for start in indptr[:-1][whole].tolist():
        indices[start : start + len(solutions)] = np.arange(len(solutions))
    free = indptr[:-1].copy()  # the position of the next entry; in a row stored with zeros, that of topic 0
    for j, solution in enumerate(solutions):
        features = solution.weights.features
        places = free[features] + np.where(whole[features], j, 0)
        indices[places], data[places] = j, solution.weights.values
        free[features] += ~whole[features]
    return indptr, indices, data


NumberedProblem = tuple[int, Problem]


def rows_by_column(indicator: Any) -> list[np.ndarray]:
    """Return for each column of a sparse matrix the numbers of the rows that are not zero: int32, ascending."""
    columns = sp.csc_array(indicator, copy=True)
    columns.eliminate_zeros()
    return [np.sort(rows).astype(np.int32) for rows in np.split(columns.indices, columns.indptr[1:-1])]


def judge_outcome(
    tol: float, n_updates: int, n_epochs: int, last_updates: int, dtype: np.dtype, finite: bool
) -> tuple[StopReason, str]:
    """Return why training ended, and a sentence that says so.

    `last_updates` is the number of updates in the last epoch; `finite` is False if a number of the solution overflowed.
    """
    if not finite:
        # A row whose sum is nan never triggers an update, so such a problem seems to converge.
        reason = StopReason.OVERFLOW
        details = f" {dtype} in epoch {n_epochs}: the rows, eta or the margins are too large"
    elif last_updates == 0:
        reason, details = StopReason.CONVERGED, f": no update in epoch {n_epochs}"
    elif last_updates <= tol * n_updates:
        of_all = f"at most tol={tol:g} of all {n_updates}"
        reason, details = StopReason.CONVERGED, f": {last_updates} updates in epoch {n_epochs}, {of_all}"
    else:
        reason, details = StopReason.LAST_EPOCH, f": {last_updates} updates in epoch {n_epochs}, the last one allowed"
    return reason, reason.value + details


def set_margins(solution: Solution, least: float, N: float, w_bias: float) -> None:
    """Set a solution's margins and certificate.

    They are computed from `least`, the least functional margin of a row, ``N = ‖a‖²``, and `w_bias`, the weight of the
    augmented coordinate (the constant one whose weight is the bias). Without weights or rows, they stay nan.
    """
    length = np.sqrt(N)
    if length > 0 and np.isfinite(least):
        without_bias = np.sqrt(max(N - w_bias**2, 0.0))
        solution.directional_margin = float(least / length)
        solution.margin = float(least / without_bias) if without_bias else np.nan
        total = np.abs(solution.alpha).sum(dtype=np.float64)
        solution.certificate = float(solution.directional_margin * total / length)


def solution_unit(rule: Rule, squared_length: Callable[[], float]) -> float:
    """Return the number by which a solution's scores are divided to compare them with those of other solutions.

    It is the length ``‖a‖`` of the weight vector a if the rule does not fix this length, otherwise 1. It is also 1 if
    the length is 0 or infinite.
    """
    squared = 1.0 if rule.CONSTANT else squared_length()
    return float(np.sqrt(squared)) if 0 < squared < np.inf else 1.0


class SolveControl:
    """The stop flag and the progress callback that the blocks of one call of `solve` share."""

    def __init__(self, progress: Callable[[int], None] | None):
        self.stop = threading.Event()
        self._progress = progress

    def finished(self, count: int = 1) -> None:
        """Report that `count` more problems are solved."""
        if self._progress:
            self._progress(count)

    def __reduce__(self) -> tuple:
        # The flag and the callback do not work across processes.
        return SolveControl, (None,)
