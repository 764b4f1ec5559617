"""Problems over sparse rows, sixteen at a time side by side in the lanes of a block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from textcat.margin._primal import N_LANES, N_WARM, Block, Rows, survey
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
from textcat.margin.room import Room, mapped_anew, room_beside

# Non-zeros presented, or arranged, between two looks at the stop flag: some 0.1 s of work, so that Ctrl-C is answered
# at once. A row costs as much as some more of them, above all where it makes every lane update.
_BUDGET = 20_000_000
_ROW_COST = 10
_NARROW = 2**16  # columns that 16 bits can tell apart
# With fewer columns than that, their weights are as good as always in the cache.
_FEW_COLUMNS = 4 * N_WARM


class Given(NamedTuple):
    """Rows as they were given: the arrays of a CSR matrix, with ascending columns."""

    indptr: np.ndarray  # int64
    indices: np.ndarray  # int32
    data: np.ndarray  # float32 or float64
    n_features: int
    folder: str | None  # where the rows are, if they are on disk


def is_on_disk(X: Any) -> bool:
    """Tell rows on disk from a matrix."""
    return not sp.issparse(X) and hasattr(X, "folder")


def read_rows(X: Any) -> Given:
    """Return the arrays of sparse rows as they are arranged from.

    Parameters
    ----------
    X : CSR matrix, or rows on disk
        The latter have ``shape``, ``dtype``, ``indptr``, ``indices``, ``data`` and slices as a CSR matrix has them, and
        ``folder``.
    """
    on_disk = is_on_disk(X)
    if not (on_disk or (sp.issparse(X) and X.format == "csr")) or X.dtype not in (np.float32, np.float64):
        kind = f"{X.format} of {X.dtype}" if sp.issparse(X) else type(X).__name__
        raise ValueError(f"X must be a sparse CSR matrix of float32 or float64, got {kind}; convert it first")
    if max(X.shape) > np.iinfo(np.int32).max:
        raise ValueError(f"X may have at most 2**31 - 1 rows and features, got shape {X.shape}")
    if not on_disk:
        X.check_format(full_check=True)
        if not X.has_canonical_format:  # columns in order and each but once, for the sums and the lengths of rows
            X = X.copy()
            X.sum_duplicates()
    if on_disk:
        indptr, indices, data = map(mapped_anew, (X.indptr, X.indices, X.data))
        return Given(indptr, indices, data, X.shape[1], str(X.folder))
    indptr, indices = X.indptr.astype(np.int64, copy=False), X.indices.astype(np.int32, copy=False)
    return Given(indptr, indices, np.ascontiguousarray(X.data), X.shape[1], None)


def arrange(given: Given) -> Rows:
    """Arrange rows for the cache: see _lanes.h. Those of float64 stay as they are but for columns of 16 bits.

    The arrays that this takes lie in memory, or beside the rows where these are on disk.

    Raises
    ------
    ValueError
        If the columns of a row do not ascend, or are none of the features.
    """
    room = room_beside(given.folder)
    df, norm2 = _survey(given, room)
    if given.data.dtype == np.float64:
        return _in_coordinate_order(given, room, norm2)
    n_columns = int(np.sum(df > 1))
    feature = np.argsort(-df, kind="stable")[:n_columns].astype(np.int32)
    column = np.full(given.n_features, -1, np.int32)
    column[feature] = np.arange(n_columns, dtype=np.int32)
    arrays = _columns(given, room, n_columns, n_lone=int(np.sum(df == 1)))
    if n_columns > _FEW_COLUMNS:
        n_cold = int(df[feature[N_WARM:]].sum(dtype=np.int64))
        arrays |= {"cold_ptr": _pointers(given, room), "cold": room(n_cold, np.int32)}
    rows = Rows((len(norm2), given.n_features, n_columns), {**arrays, "norm2": norm2, "feature": feature})
    for start, stop in _steps(given.indptr):
        rows.fill(given.indptr, given.indices, given.data, column, N_WARM, start, stop)
    return rows


def _survey(given: Given, room: Room) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of rows of each feature, and the squared length of each row."""
    df, norm2 = np.zeros(given.n_features, np.int32), room(len(given.indptr) - 1, np.float64)
    for start, stop in _steps(given.indptr):
        wrong = survey(given.indptr, given.indices, given.data, df, norm2, start, stop)
        if wrong >= 0:
            raise ValueError(f"the columns of row {wrong} of X must ascend, from 0 to {given.n_features - 1}")
    return df, norm2


def _in_coordinate_order(given: Given, room: Room, norm2: np.ndarray) -> Rows:
    columns = {"wide": given.indices}
    if given.n_features <= _NARROW:
        columns = {"narrow": room(len(given.indices), np.uint16)}
        columns["narrow"][:] = given.indices
    arrays = {"indptr": given.indptr, "data": given.data, "norm2": norm2, **columns}
    return Rows((len(norm2), given.n_features, given.n_features), arrays)


def _columns(given: Given, room: Room, n_columns: int, n_lone: int) -> dict[str, np.ndarray]:
    """Make room for the entries of columns and, apart from them, of lone features."""
    n_rows, n_entries = len(given.indptr) - 1, len(given.data) - n_lone
    columns = {"narrow": room(n_entries, np.uint16)} if n_columns <= _NARROW else {"wide": room(n_entries, np.int32)}
    arrays = {"indptr": _pointers(given, room), **columns}
    if not n_lone:
        return {**arrays, "data": given.data}
    lone = {"lone_feature": room(n_lone, np.int32), "lone_data": room(n_lone, np.float32)}
    sums = {"lone_ptr": _pointers(given, room), "lone2": room(n_rows, np.float32)}
    return {**arrays, "data": room(n_entries, np.float32), **lone, **sums}


def _pointers(given: Given, room: Room) -> np.ndarray:
    pointers = room(len(given.indptr), np.int64)
    pointers[0] = 0
    return pointers


def _steps(indptr: np.ndarray) -> Iterator[tuple[int, int]]:
    """Divide rows into stretches of about as many entries as `_BUDGET` says."""
    n_rows = len(indptr) - 1
    ends = np.searchsorted(indptr, np.arange(_BUDGET, indptr[-1], _BUDGET))
    bounds = np.unique(np.concatenate([[0], ends, [n_rows]])).tolist()
    return pairwise(bounds)


def solve_block(
    rows: Any,
    problems: Iterable[NumberedProblem],
    *,
    order: np.ndarray | None,
    lanes: int,
    keep_weights: bool,
    margins: bool,
    out: np.ndarray | None,
    control: _Control,
) -> list[tuple[int, Solution]]:
    """Run problems through the lanes of one block; a lane that has finished takes the next problem.

    The rows are `Rows`, which blocks share, or what these are made of, as another process gets them.
    """
    if not isinstance(rows, Rows):
        rows = arrange(read_rows(rows))
    n_features, dtype = rows.n_features, rows.dtype
    block = Block(rows, order)
    budget = max(1, int(_BUDGET / (len(rows.arrays["data"]) / max(1, rows.n_rows) + _ROW_COST)))
    waiting = iter(problems)
    at_work: dict[int, NumberedProblem] = {}
    solved: list[tuple[int, Problem, Solution]] = []
    for lane in range(lanes):
        _load_next(block, lane, waiting, at_work)
    while at_work and not control.stop.is_set():
        finished = block.run(budget)
        for lane in [lane for lane in at_work if finished >> lane & 1]:
            k, problem = at_work.pop(lane)
            weights = out[k] if out is not None else np.empty(n_features, dtype)
            solved.append((k, problem, _unload(block, lane, problem, weights, keep_weights)))
            control.finished()
            _load_next(block, lane, waiting, at_work)
    if margins:
        for start in range(0, len(solved), N_LANES):
            _measure(block, solved[start : start + N_LANES])
    return [(k, solution) for k, _, solution in solved]


def _load_next(
    block: Block, lane: int, waiting: Iterator[NumberedProblem], at_work: dict[int, NumberedProblem]
) -> None:
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
    held_out = block.score(lane, np.ascontiguousarray(problem.left_out))
    bias, support, alpha, n_updates, n_epochs, last_updates = block.unload(lane, weights)
    finite = bool(np.isfinite(bias) and np.isfinite(weights).all())
    stopped = _reason(n_epochs, last_updates, weights.dtype, finite)
    converged = last_updates == 0 and finite
    kept = weights if keep_weights else None
    solution = Solution(kept, bias, support, alpha, n_updates, n_epochs, converged, stopped, held_out)
    if _has_free_length(problem.rule):
        of_bias = bias / problem.rho if problem.rho else 0.0
        squares = [float(np.square(array, dtype=np.float64).sum()) for array in (weights, alpha)]
        solution.unit = _unit_of(squares[0] + of_bias**2 + problem.lambda_ * squares[1])
    return solution


def _measure(block: Block, solved: Sequence[tuple[int, Problem, Solution]]) -> None:
    """Put solutions back into the lanes, side by side, and measure their margins in one pass."""
    for lane, (_, problem, solution) in enumerate(solved):
        _load(block, lane, problem)
        _warm(block, lane, solution)
    for (_, _, solution), least, N, w_bias in zip(solved, *block.margins(), strict=False):
        _set_margins(solution, least, N, w_bias)
    scratch = np.empty_like(solved[0][2].weights)
    for lane in range(len(solved)):
        block.unload(lane, scratch)
