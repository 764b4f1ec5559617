"""Problems over sparse rows, sixteen at a time side by side in the lanes of a block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import scipy.sparse as sp

from textcat.margin._primal import N_LANES, Block
from textcat.margin.problems import Control, Numbered, Problem, Solution, in_words, set_margins

# Non-zeros presented between two looks at the stop flag: some 0.1 s of work, so that Ctrl-C is answered at once. A row
# costs as much as some more of them, above all where it makes every lane update.
_BUDGET = 20_000_000
_ROW_COST = 10


def read_rows(X: sp.csr_matrix | sp.csr_array) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Return ``(indptr, indices, data, n_features)`` as the block takes them: it reads by them without a look."""
    if not sp.issparse(X) or X.format != "csr" or X.dtype not in (np.float32, np.float64):
        kind = f"{X.format} of {X.dtype}" if sp.issparse(X) else type(X).__name__
        raise ValueError(f"X must be a sparse CSR matrix of float32 or float64, got {kind}; convert it first")
    if max(X.shape) > np.iinfo(np.int32).max:
        raise ValueError(f"X may have at most 2**31 - 1 rows and features, got shape {X.shape}")
    X.check_format(full_check=True)
    if not X.has_canonical_format:  # columns in order and each but once, for the sums and the lengths of rows
        X = X.copy()
        X.sum_duplicates()
    return X.indptr.astype(np.int64), X.indices.astype(np.int32, copy=False), np.ascontiguousarray(X.data), X.shape[1]


def solve_block(
    rows: tuple,
    order: np.ndarray | None,
    lanes: int,
    keep_weights: bool,
    margins: bool,
    out: np.ndarray | None,
    control: Control,
    problems: Iterable[Numbered],
) -> list[tuple[int, Solution]]:
    """Run problems through the lanes of one block; a lane that has finished takes the next problem."""
    indptr, indices, data, n_features = rows
    block = Block(indptr, indices, data, n_features, order)
    budget = max(1, int(_BUDGET / (len(data) / max(1, len(indptr) - 1) + _ROW_COST)))
    waiting = iter(problems)
    at_work: dict[int, Numbered] = {}
    solved: list[tuple[int, Problem, Solution]] = []
    for lane in range(lanes):
        _load_next(block, lane, waiting, at_work)
    while at_work and not control.stop.is_set():
        finished = block.run(budget)
        for lane in [lane for lane in at_work if finished >> lane & 1]:
            k, problem = at_work.pop(lane)
            weights = out[k] if out is not None else np.empty(n_features, data.dtype)
            solved.append((k, problem, _unload(block, lane, problem, weights, keep_weights)))
            control.finished()
            _load_next(block, lane, waiting, at_work)
    if margins:
        for start in range(0, len(solved), N_LANES):
            _measure(block, solved[start : start + N_LANES])
    return [(k, solution) for k, _, solution in solved]


def _load_next(block: Block, lane: int, waiting: Iterator[Numbered], at_work: dict[int, Numbered]) -> None:
    for k, problem in waiting:
        _load(block, lane, problem)
        if problem.start is not None:
            _warm(block, lane, problem.start)
        at_work[lane] = (k, problem)
        return


def _load(block: Block, lane: int, problem: Problem) -> None:
    positives, left_out = np.ascontiguousarray(problem.positives), np.ascontiguousarray(problem.left_out)
    limits = problem.max_epochs, problem.mini_epochs
    block.load(lane, problem.rule, problem.rho, problem.lambda_, *limits, positives, left_out)


def _warm(block: Block, lane: int, start: Solution) -> None:
    weights, support, alpha = map(np.ascontiguousarray, (start.weights, start.support, start.alpha))
    block.warm(lane, weights, start.bias, start.n_updates, support, alpha)


def _unload(block: Block, lane: int, problem: Problem, weights: np.ndarray, keep_weights: bool) -> Solution:
    held_out = block.score(lane, problem.left_out)
    bias, support, alpha, n_updates, n_epochs, last_updates = block.unload(lane, weights)
    finite = bool(np.isfinite(bias) and np.isfinite(weights).all())
    stopped = in_words(n_epochs, last_updates, weights.dtype, finite)
    converged = last_updates == 0 and finite
    kept = weights if keep_weights else None
    return Solution(kept, bias, support, alpha, n_updates, n_epochs, converged, stopped, held_out)


def _measure(block: Block, solved: Sequence[tuple[int, Problem, Solution]]) -> None:
    """Put solutions back into the lanes, side by side, and measure their margins in one pass."""
    for lane, (_, problem, solution) in enumerate(solved):
        _load(block, lane, problem)
        _warm(block, lane, solution)
    for (_, _, solution), least, N, w_bias in zip(solved, *block.margins(), strict=False):
        set_margins(solution, least, N, w_bias)
    scratch = np.empty_like(solved[0][2].weights)
    for lane in range(len(solved)):
        block.unload(lane, scratch)
