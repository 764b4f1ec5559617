"""Problems on a kernel, one after another, each trained as the expansion of its solution over the rows."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from textcat.margin._dual import Expansion
from textcat.margin.kernels import BLOCK_ROWS, KernelRows
from textcat.margin.problems import (
    NumberedProblem,
    Problem,
    Solution,
    _Control,
    _has_free_length,
    _reason,
    _set_margins,
    _unit_of,
)

# Rows presented between two looks at the stop flag, an update counting as many: some 0.1 s of work.
_BUDGET = 30_000_000


def solve_block(
    kernel: KernelRows,
    problems: Iterable[NumberedProblem],
    *,
    order: np.ndarray | None,
    margins: bool,
    control: _Control,
) -> list[tuple[int, Solution]]:
    """Train numbered problems in their dual form, with the same updates as in the primal form.

    Parameters
    ----------
    kernel : KernelRows
        May be shared by several threads that each run this function.
    problems : iterable of (int, Problem)
    order : ndarray of int64, shape (n_rows,), or None
        The order in which rows are presented; None: as they stand.
    margins : bool
        Also measure the margins that were reached, and what is proven of them.
    control : _Control
        Where its stop flag is set, the problems solved so far are returned.

    Returns
    -------
    list of (int, Solution)
        Solutions without weights.
    """
    expansion = Expansion(kernel.diagonal, kernel.dtype, BLOCK_ROWS, order)
    solved = []
    for number, problem in problems:
        _load(expansion, problem)
        _train(expansion, kernel, control)
        if control.stop.is_set():
            break
        solution = _solution(expansion, problem)
        if _has_free_length(problem.rule):
            solution.unit = _unit_of(expansion.squared_length())
        if margins:
            _measure(expansion, problem, solution)
        solved.append((number, solution))
        control.finished()
    return solved


def _load(expansion: Expansion, problem: Problem) -> None:
    positives, left_out = np.ascontiguousarray(problem.positives), np.ascontiguousarray(problem.left_out)
    limits = problem.max_epochs, problem.mini_epochs
    expansion.load(problem.rule, problem.rho, problem.lambda_, *limits, positives, left_out)
    if problem.start is not None:
        start = problem.start
        expansion.warm(np.ascontiguousarray(start.support), start.alpha, start.n_updates)


def _train(expansion: Expansion, kernel: KernelRows, control: _Control) -> None:
    """Run the problem to its end, or until the stop flag is set, and fetch the blocks of the kernel that it needs."""
    while not expansion.finished and not control.stop.is_set():
        needed = expansion.run(_BUDGET)
        if needed >= 0:
            if expansion.n_held >= kernel.capacity:
                expansion.drop()
            expansion.hold(needed, kernel.block(needed))


def _solution(expansion: Expansion, problem: Problem) -> Solution:
    scale = expansion.dtype.type(expansion.scale)
    unscaled_bias = expansion.dtype.type(problem.rho * expansion.w_bias)
    bias = expansion.dtype.type(problem.rho * expansion.w_bias * expansion.scale)
    support = np.flatnonzero(expansion.alpha).astype(np.int32)
    alpha = scale * expansion.alpha[support]
    held_out = scale * (expansion.g[problem.left_out] + unscaled_bias)
    finite = bool(np.isfinite(bias) and np.isfinite(alpha).all() and np.isfinite(expansion.g).all())
    stopped = _reason(expansion.epochs, expansion.last_updates, expansion.dtype, finite)
    converged = expansion.last_updates == 0 and finite
    return Solution(None, bias, support, alpha, int(expansion.t), expansion.epochs, converged, stopped, held_out)


def _measure(expansion: Expansion, problem: Problem, solution: Solution) -> None:
    """Set the margins of the solution that the expansion has reached."""
    labels, w_bias = expansion.labels, expansion.scale * expansion.w_bias
    trained = labels != 0
    g, alpha = expansion.g.astype(np.float64), expansion.alpha.astype(np.float64)
    f = expansion.scale * (g + problem.lambda_ * alpha) + problem.rho * w_bias
    least = float((labels * f)[trained].min(initial=np.inf))
    _set_margins(solution, least, expansion.squared_length(), w_bias)
