"""Compute the kernel matrix of rows block by block, as training needs it, and train problems on it.

A problem is the labels of one topic and the rule of its updates. Problems are trained one after another, in their dual
form.
"""

import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from functools import cache, partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import ThreadpoolController

from textcat.base.errors import TextcatError
from textcat.margin._dual import Expansion
from textcat.margin.problems import (
    NumberedProblem,
    Problem,
    Solution,
    SolveControl,
    judge_outcome,
    set_margins,
    solution_unit,
)

Kernel = str | Callable[..., np.ndarray]

BLOCK_ROWS = 64
# Maximum number of kernel values between new rows and support rows in memory: 64 MB of float64.
SCORED_AT_ONCE = 2**23
# Rows presented between two checks of the stop flag: some 0.1 s of work. An update costs as much as many rows.
_BUDGET = 30_000_000


class KernelError(TextcatError, ValueError):
    """Raised if a kernel or its parameter does not exist or does not fit the rows, or if its values cannot be used."""


class KernelRows:
    """The kernel matrix k(x_i, x_j) over the rows of X, computed in blocks of rows.

    Block b holds the rows ``64 b`` to ``64 b + 63`` and is always computed as a whole, by one BLAS thread, so that its
    bits depend neither on the order in which blocks are needed nor on n_jobs. Threads that compute blocks must be
    started inside `one_blas_thread`. Kernel values are float32 if X is, and float64 otherwise; the diagonal is always
    float64.
    If the matrix fits into `cache_mb` megabytes, all threads share one copy; otherwise each of the `n_jobs` threads or
    processes holds some blocks.
    """

    def __init__(
        self,
        X: Any,
        kernel: Kernel = "linear",
        kernel_params: dict[str, Any] | None = None,
        *,
        cache_mb: float = 1000,
        n_jobs: int = 1,
    ):
        self.X = _as_numbers(X)
        self.kernel, self.kernel_params = kernel, dict(kernel_params or {})
        self.cache_mb, self.n_jobs = cache_mb, n_jobs
        self.n_rows, self.dtype = self.X.shape[0], self.X.dtype
        check_kernel(kernel, self.kernel_params)
        if kernel == "precomputed" and (sp.issparse(self.X) or self.X.shape != (self.n_rows, self.n_rows)):
            kind = "sparse" if sp.issparse(self.X) else f"of shape {self.X.shape}"
            raise KernelError(f"A precomputed kernel must be a square array over the rows, this one is {kind}.")
        self.n_blocks = -(-self.n_rows // BLOCK_ROWS)
        self.diagonal = self._diagonal()
        # shared by all threads
        affordable = int(cache_mb * 1e6 / (BLOCK_ROWS * max(1, self.n_rows) * self.dtype.itemsize))
        self.fits = kernel == "precomputed" or affordable >= self.n_blocks  # the whole matrix may be cached
        # number of blocks that a thread may cache
        self.capacity = max(1, self.n_blocks if self.fits else affordable // n_jobs)
        self._blocks: dict[int, np.ndarray] = {}
        self._locks = [threading.Lock() for _ in range(self.n_blocks if self.fits else 0)]

    def __reduce__(self) -> tuple:
        # Each process has its own cache, with its share of the memory.
        return partial(KernelRows, cache_mb=self.cache_mb / self.n_jobs), (self.X, self.kernel, self.kernel_params)

    def _diagonal(self) -> np.ndarray:
        if self.kernel == "precomputed":
            diagonal = self.X.diagonal().astype(np.float64)
        else:
            squares = (self.X[start : start + BLOCK_ROWS] for start in range(0, self.n_rows, BLOCK_ROWS))
            parts = [self._between(rows, rows).diagonal().astype(np.float64) for rows in squares]
            diagonal = np.concatenate([*parts, np.empty(0)])
        strange = np.flatnonzero(~np.isfinite(diagonal))
        # In a centred kernel, the length of a row at the mean is 0 up to rounding, which may be below 0.
        tolerance = 100 * np.finfo(self.dtype).eps * np.abs(diagonal).max(initial=0)
        negative = np.flatnonzero(diagonal < -tolerance)
        for rows, what in (strange, "a finite number"), (negative, "at least 0, as it is a squared length"):
            if len(rows):
                value = diagonal[rows[0]]
                raise KernelError(f"{self._name} of row {rows[0]} with itself is {value:g}; it must be {what}.")
        return np.maximum(diagonal, 0)

    @property
    def _name(self) -> str:
        return f"Kernel {self.kernel!r}" if isinstance(self.kernel, str) else "The kernel"

    def block(self, b: int) -> np.ndarray:
        """Return block b, an array of shape (64 or fewer, n_rows); cache it if all blocks fit into memory.

        Raise KernelError if the kernel cannot be computed, or has a value that is not finite.
        """
        if not self.fits:
            return self._compute(b)
        if not self._fill(b):
            # Another thread is computing it. Meanwhile, compute a block that will be needed next.
            any(self._fill(later) for later in range(b + 1, self.n_blocks) if later not in self._blocks)
            with self._locks[b]:
                pass
        return self._blocks[b] if b in self._blocks else self._compute(b)  # the other thread may have failed

    def _fill(self, b: int) -> bool:
        """Compute and cache block b of kernel rows, unless it is cached; return False if another thread computes it."""
        if not self._locks[b].acquire(blocking=False):
            return False
        try:
            if b not in self._blocks:
                self._blocks[b] = self._compute(b)
        finally:
            self._locks[b].release()
        return True

    def _compute(self, b: int) -> np.ndarray:
        start = BLOCK_ROWS * b
        rows = self.X[start : start + BLOCK_ROWS]
        block = rows if self.kernel == "precomputed" else self._between(rows, self.X)
        block = np.ascontiguousarray(block, self.dtype)
        if not np.isfinite(block).all():
            i, j = np.argwhere(~np.isfinite(block))[0]
            raise KernelError(
                f"{self._name} of the rows {start + i} and {j} is {block[i, j]:g}; it must be a finite number."
            )
        return block

    def _between(self, X: Any, Y: Any) -> np.ndarray:
        with one_blas_thread():
            return kernel_between(X, Y, self.kernel, self.kernel_params)


def check_kernel(kernel: Kernel, kernel_params: dict[str, Any] | None = None) -> None:
    """Raise KernelError if scikit-learn has no kernel of this name, or the kernel has no parameter of a given name."""
    if callable(kernel) or kernel == "precomputed":
        return
    from sklearn.metrics import pairwise  # imported here, because its import takes a quarter of a second

    if kernel not in pairwise.PAIRWISE_KERNEL_FUNCTIONS:
        choices = ", ".join([*sorted(pairwise.PAIRWISE_KERNEL_FUNCTIONS), "precomputed"])
        raise KernelError(f"No kernel {kernel!r}; give a function of (X, Y), or one of: {choices}.")
    for name in kernel_params or ():
        if name not in pairwise.KERNEL_PARAMS[kernel]:
            choices = ", ".join(sorted(pairwise.KERNEL_PARAMS[kernel])) or "none"
            raise KernelError(f"Kernel {kernel!r} has no parameter {name!r}; known: {choices}.")


def kernel_between(X: Any, Y: Any, kernel: Kernel, kernel_params: dict[str, Any] | None = None) -> np.ndarray:
    """Return the kernel matrix of shape (n_X, n_Y) between the rows of X and the rows of Y.

    Raise KernelError if scikit-learn cannot compute the kernel, or the result has another shape.
    """
    from sklearn import config_context
    from sklearn.metrics import pairwise

    params = kernel_params or {}
    # The rows were checked before, and the error message names the rows between which the kernel is not finite.
    with config_context(assume_finite=True), np.errstate(over="ignore", invalid="ignore"):
        if callable(kernel):
            matrix = np.asarray(kernel(X, Y, **params))
        else:
            try:
                matrix = pairwise.PAIRWISE_KERNEL_FUNCTIONS[kernel](X, Y, **params)
            except (TypeError, ValueError) as error:
                raise KernelError(
                    f"Kernel {kernel!r} cannot be computed: {str(error).rstrip('.')}. Check its parameters and rows."
                ) from error
    if matrix.shape != (shape := (X.shape[0], Y.shape[0])):
        raise KernelError(
            f"The kernel returned an array of shape {matrix.shape} for {shape[0]} and {shape[1]} rows; "
            f"it must be of shape {shape}."
        )
    return matrix


def kernel_scores(
    X: Any, support: Any, alpha: np.ndarray, bias: np.ndarray, kernel: Kernel, kernel_params: dict | None = None
) -> np.ndarray:
    """Return the scores of new rows for each problem, shape (n_new, n_problems): ``f(x) = Σ alpha_i k(x, x_i) + bias``.

    `support` has the support rows x_i, and `alpha` is of shape (n_problems, n_support). With ``kernel="precomputed"``,
    X has the kernel values between new rows and all training rows, and `support` the numbers of the support rows.
    """
    X = _as_numbers(X)
    support = support if kernel == "precomputed" else _as_numbers(support)
    n_support = alpha.shape[1]
    n_at_once = max(1, SCORED_AT_ONCE // max(1, n_support))
    sums = np.zeros((X.shape[0], alpha.shape[0]), alpha.dtype)
    for start in range(0, X.shape[0] if n_support else 0, n_at_once):
        rows = X[start : start + n_at_once]
        matrix = rows[:, support] if kernel == "precomputed" else kernel_between(rows, support, kernel, kernel_params)
        sums[start : start + n_at_once] = matrix @ alpha.T
    return sums + bias.astype(alpha.dtype, copy=False)


def _as_numbers(X: Any) -> Any:
    """Return X as a CSR matrix or a C-contiguous array of float32 or float64; other number types become float64.

    The entries of a matrix are in canonical form.
    """
    dtype = getattr(X, "dtype", None)
    dtype = dtype if dtype in (np.float32, np.float64) else np.dtype(np.float64)
    if not sp.issparse(X):
        return np.ascontiguousarray(X, dtype)
    rows = X.tocsr().astype(dtype, copy=False)
    if not rows.has_canonical_format:  # scikit-learn takes the squares of single entries for squared lengths
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


def one_blas_thread() -> AbstractContextManager:
    """Return a context in which BLAS uses one thread only, because sums by several threads differ in their last bits.

    Enter the context both where threads are started and in each thread: most builds of BLAS have one limit for the
    whole process, which only one thread may set, and others have a limit for each thread.
    """
    return _blas().limit(limits=1)


def solve_dual_block(
    kernel: KernelRows,
    problems: Iterable[NumberedProblem],
    *,
    order: np.ndarray | None,
    margins: bool,
    control: SolveControl,
) -> list[tuple[int, Solution]]:
    """Train numbered problems in their dual form, one after another; return each number with its solution.

    A problem is the labels of one topic over the rows of the kernel, and the rule of its updates.

    A rule makes the same updates as in the primal form (`solve_primal_block`). Solutions have no weights. `order` has
    the row numbers in the order of presentation; None: the order of the rows. If `margins` is True, margins are
    measured. Several threads that run this function may share the kernel. If the stop flag of `control` is set, return
    the problems solved so far.
    """
    expansion = Expansion(kernel.diagonal, kernel.dtype, BLOCK_ROWS, order)
    solved = []
    for number, problem in problems:
        _load(expansion, problem)
        while not expansion.finished and not control.stop.is_set():
            needed = expansion.run(_BUDGET)
            if needed >= 0:
                if expansion.n_held >= kernel.capacity:
                    expansion.drop()
                expansion.hold(needed, kernel.block(needed))
        if control.stop.is_set():
            break
        solution = _solution(expansion, problem)
        solution.unit = solution_unit(problem.rule, expansion.squared_length)
        if margins:
            _measure(expansion, problem, solution)
        solved.append((number, solution))
        control.finished()
    return solved


def _load(expansion: Expansion, problem: Problem) -> None:
    positives, left_out = np.ascontiguousarray(problem.positives), np.ascontiguousarray(problem.left_out)
    expansion.load(problem.rule, problem.rho, problem.lambda_, *problem.limits, positives, left_out)
    if start := problem.start:
        expansion.warm(np.ascontiguousarray(start.support), start.alpha, start.n_updates)


def _solution(expansion: Expansion, problem: Problem) -> Solution:
    of_type = expansion.dtype.type
    scale, unscaled_bias = of_type(expansion.scale), of_type(problem.rho * expansion.w_bias)
    bias = of_type(problem.rho * expansion.w_bias * expansion.scale)
    support = np.flatnonzero(expansion.alpha).astype(np.int32)
    alpha = scale * expansion.alpha[support]
    held_out = scale * (expansion.g[problem.left_out] + unscaled_bias)
    finite = bool(np.isfinite(bias) and np.isfinite(alpha).all() and np.isfinite(expansion.g).all())
    counts = int(expansion.t), expansion.epochs
    outcome = judge_outcome(problem.tol, *counts, expansion.last_updates, expansion.dtype, finite)
    return Solution(None, bias, support, alpha, *counts, *outcome, held_out)


def _measure(expansion: Expansion, problem: Problem, solution: Solution) -> None:
    """Set the margins and the certificate of a solution.

    `expansion` is the object that has just trained the solution of `problem`.
    """
    labels, w_bias = expansion.labels, expansion.scale * expansion.w_bias
    trained = labels != 0
    g, alpha = expansion.g.astype(np.float64), expansion.alpha.astype(np.float64)
    f = expansion.scale * (g + problem.lambda_ * alpha) + problem.rho * w_bias
    least = float((labels * f)[trained].min(initial=np.inf))
    set_margins(solution, least, expansion.squared_length(), w_bias)
