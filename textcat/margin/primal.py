"""Train problems (a topic's labels and its rule of updates) over sparse rows, sixteen side by side in a block."""

import math
import mmap
import os
import platform
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import IO, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from textcat.base.errors import TextcatError
from textcat.margin._folds import N_FOLDS as N_FOLDS
from textcat.margin._folds import leave_out_folds as leave_out_folds
from textcat.margin._primal import N_LANES, N_WARM, Block, Rows, measure
from textcat.margin._primal import dots as dots
from textcat.margin._primal import subset as subset
from textcat.margin.problems import (
    NumberedProblem,
    Problem,
    Solution,
    SolveControl,
    judge_outcome,
    set_margins,
    solution_unit,
)

# Non-zeros presented, or arranged, between two checks of the stop flag: some 0.1 s of work, so that Ctrl-C is answered
# at once. A row itself costs as much as _ROW_COST non-zeros, above all if it makes every lane update.
_BUDGET = 20_000_000
_ROW_COST = 10
NARROW_COLUMNS = 2**16  # number of columns that 16-bit numbers can address
FEW_COLUMNS = 4 * N_WARM  # maximum number of columns whose weights nearly always stay in the cache
LEAST_DENSE = 64  # minimum number of features, each in three of four rows, for dense storage
LARGE_BYTES = 1 << 20  # minimum bytes of an array to be stored in a file, if rows are on disk

Allocator = Callable[[int | tuple[int, ...], type], np.ndarray]


class _Csr(NamedTuple):
    """The arrays of a CSR matrix with ascending columns."""

    indptr: np.ndarray  # int64
    indices: np.ndarray  # int32
    data: np.ndarray  # float32 or float64
    n_features: int
    folder: str | None  # folder of the rows, if they are on disk


def is_on_disk(X: Any) -> bool:
    """Return True if X holds rows on disk (see `textcat.open_rows`), False if X is a matrix."""
    return not sp.issparse(X) and hasattr(X, "folder")


def read_rows(X: Any) -> _Csr:
    """Return the arrays of a CSR matrix or of rows on disk.

    Raise ValueError if X is neither, is not float32 or float64, or has more than 2**31 - 1 rows or features.
    """
    on_disk = is_on_disk(X)
    if not (on_disk or (sp.issparse(X) and X.format == "csr")) or X.dtype not in (np.float32, np.float64):
        kind = f"{X.format} of {X.dtype}" if sp.issparse(X) else type(X).__name__
        raise ValueError(f"X must be a sparse CSR matrix of float32 or float64, got {kind}; convert it first")
    if max(X.shape) > np.iinfo(np.int32).max:
        raise ValueError(f"X may have at most 2**31 - 1 rows and features, got shape {X.shape}")
    if on_disk:
        indptr, indices, data = map(remap_rows, (X.indptr, X.indices, X.data))
        return _Csr(indptr, indices, data, X.shape[1], str(X.folder))
    X.check_format(full_check=True)
    if not X.has_canonical_format:  # columns sorted and distinct, for the sums and the lengths of rows
        X = X.copy()
        X.sum_duplicates()
    indptr, indices = X.indptr.astype(np.int64, copy=False), X.indices.astype(np.int32, copy=False)
    return _Csr(indptr, indices, np.ascontiguousarray(X.data), X.shape[1], None)


def arrange_rows(csr: _Csr, *, in_place: bool = False, single: bool = False) -> Rows:
    """Return rows arranged for the processor's cache (see _lanes.h), in memory or, if they are on disk, in files.

    Rows of float64 keep their arrays, except that column numbers are stored in 16 bits if possible. In rows of float32,
    features that three of four rows have, such as dimensions of word vectors, are dense if there are 64 or more: see
    _lanes.h. If `in_place` is True, the arrays of a matrix may be overwritten. If `single` is True, only one topic at a
    time is trained over the rows, and the rarer columns of a row are not listed a second time. Raise ValueError if the
    columns of a row do not ascend, or are out of range.
    """
    empty, n_rows, n_features = allocator(csr.folder), len(csr.indptr) - 1, csr.n_features
    in_place = in_place and csr.folder is None
    df, norm2 = np.zeros(n_features, np.int32), empty(n_rows, np.float64)
    for start, stop in _ranges(csr.indptr):
        wrong = measure(csr.indptr, csr.indices, csr.data, df, norm2, start, stop)
        if wrong >= 0:
            raise ValueError(f"the columns of row {wrong} of X must ascend, from 0 to {n_features - 1}")
    arrays: dict[str, np.ndarray] = {"norm2": norm2, "data": csr.data}
    if csr.data.dtype == np.float64:
        arrays |= {"indptr": csr.indptr, "wide": csr.indices}
        if n_features <= NARROW_COLUMNS:
            arrays["narrow"] = empty(len(arrays.pop("wide")), np.uint16)
            arrays["narrow"][:] = csr.indices
        return Rows((n_rows, n_features, n_features), arrays)
    feature, n_lone = np.flatnonzero(df > 1), int(np.sum(df == 1))
    feature = feature[np.argsort(-df[feature], kind="stable")].astype(np.int32)
    n_dense = int(np.sum(df[feature] >= 3 * n_rows / 4)) // N_LANES * N_LANES
    dense_feature, feature = np.split(feature, [n_dense if n_dense >= LEAST_DENSE else 0])
    n_columns, n_dense = len(feature), len(dense_feature)
    n_entries = len(csr.data) - n_lone - int(df[dense_feature].sum(dtype=np.int64))
    column = np.full(n_features, -1, np.int32)
    column[feature] = np.arange(n_columns, dtype=np.int32)
    arrays |= {"feature": feature, "indptr": empty(n_rows + 1, np.int64)}
    if n_dense:
        column[dense_feature] = -2 - np.arange(n_dense, dtype=np.int32)
        arrays |= {"dense_feature": dense_feature, "dense": _aligned_zeros(empty, n_rows * n_dense)}
    if n_columns <= NARROW_COLUMNS:
        arrays["narrow"] = empty(n_entries, np.uint16)
    else:
        arrays["wide"] = csr.indices[:n_entries] if in_place else empty(n_entries, np.int32)
    if n_lone or n_dense:
        arrays |= {"data": csr.data[:n_entries] if in_place else empty(n_entries, np.float32)}
    if n_lone:
        arrays["lone2"] = empty(n_rows, np.float32)
        arrays |= {"lone_feature": empty(n_lone, np.int32), "lone_data": empty(n_lone, np.float32)}
        arrays |= {"lone_ptr": empty(n_rows + 1, np.int64)}
    if n_columns > FEW_COLUMNS and not single:
        n_cold = int(df[feature[N_WARM:]].sum(dtype=np.int64))
        arrays |= {"cold_ptr": empty(n_rows + 1, np.int64), "cold": empty(n_cold, np.int32)}
    for name in {"indptr", "lone_ptr", "cold_ptr"} & set(arrays):
        arrays[name][0] = 0
    rows = Rows((n_rows, n_features, n_columns), arrays)
    for start, stop in _ranges(csr.indptr):
        rows.fill(csr.indptr, csr.indices, csr.data, column, N_WARM, start, stop)
    return rows


def _aligned_zeros(empty: Allocator, size: int) -> np.ndarray:
    """Return zeros of float32, aligned to a cache line."""
    array = empty(size + 16, np.float32)
    array = array[-array.ctypes.data % 64 // 4 :][:size]
    array[:] = 0
    return array


def _ranges(indptr: np.ndarray) -> Iterator[tuple[int, int]]:
    """Return consecutive ranges of rows, each as (start, stop), with about `_BUDGET` entries per range."""
    ends = np.searchsorted(indptr, np.arange(_BUDGET, indptr[-1], _BUDGET))
    return pairwise(sorted({0, *ends.tolist(), len(indptr) - 1}))


def allocator(folder: str | None) -> Allocator:
    """Return a function that makes arrays like `numpy.empty`, in memory or, if a folder is given, in files there.

    Only large arrays become files. The files are mapped, so that the system may drop their pages from memory and read
    them again. They have no name, and vanish with their arrays, however the process ends. If the folder cannot be
    written to, the system's folder for temporary files is used.
    """
    if folder is None:
        return np.empty

    def empty(shape: int | tuple[int, ...], dtype: type) -> np.ndarray:
        size = math.prod(np.atleast_1d(shape).tolist()) * np.dtype(dtype).itemsize
        if size < LARGE_BYTES or not size:
            return np.empty(shape, dtype)
        with _unnamed_file(folder) as file:
            _reserve(file, size, folder)
            return _with_huge_pages(np.memmap(file, dtype, "r+", shape=shape))

    return empty


def remap_rows(array: np.ndarray) -> np.ndarray:
    """Return a second mapping of a mapped array's file, to be read in huge pages; return other arrays unchanged."""
    if not isinstance(array, np.memmap) or array.filename is None or not len(array):
        return array
    return _with_huge_pages(np.memmap(array.filename, array.dtype, "r", offset=array.offset, shape=array.shape))


def _with_huge_pages(array: np.memmap) -> np.memmap:
    """Advise the system to use huge pages of 2 MB for a memory-mapped array, without read-ahead; return the array.

    By default, the system reads many megabytes around each page, and evicts them again if memory is short. Linux up to
    5.17 gets no advice: it has no huge pages for files, and without read-ahead it would read page by page.
    """
    advice = getattr(mmap, "MADV_HUGEPAGE", None)
    release = re.match(r"(\d+)\.(\d+)", platform.release())
    if advice is not None and release and tuple(map(int, release.groups())) >= (5, 18):
        mapping: Any = array
        with suppress(OSError):  # the system may be built without huge pages
            mapping._mmap.madvise(advice)
            mapping._mmap.madvise(mmap.MADV_RANDOM)
    return array


def _unnamed_file(folder: str) -> IO[bytes]:
    try:
        return tempfile.TemporaryFile(dir=folder)
    except OSError:
        return tempfile.TemporaryFile()


def _reserve(file: IO[bytes], size: int, folder: str) -> None:
    """Allocate the disk space of a file; raise TextcatError if there is too little.

    Otherwise, writing to a mapped file on a full disk would kill the process.
    """
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            file.truncate(size)
    except OSError as error:
        raise TextcatError(
            f"Cannot make a file of {size / 1e6:.0f} MB in {folder} ({error.strerror}): training on rows that are on "
            "disk needs as much free space again as they take: make room there."
        ) from error


def solve_primal_block(
    rows: Any,
    problems: Iterable[NumberedProblem],
    *,
    order: np.ndarray | None,
    lanes: int,
    keep: Callable[[np.ndarray], Any] | None,
    margins: bool,
    out: np.ndarray | None,
    control: SolveControl,
) -> list[tuple[int, Solution]]:
    """Train numbered problems in the lanes of one block; return each number with its solution.

    A problem is the labels of one topic and the rule to train it by. Problems are trained side by side over the same
    rows, each in a lane of the block; a lane that has finished takes the next problem. `rows` are a matrix, or arranged
    rows that all blocks of this process share. `order` has the row numbers, int64, in the order of presentation; None:
    the order of the rows. The weights of problem k are written to ``out[k]``, or replaced by the result of `keep`. If
    `margins` is True, margins are measured. If the stop flag of `control` is set, return the problems solved so far.
    """
    if not isinstance(rows, Rows):
        rows = arrange_rows(read_rows(rows))
    block = Block(rows, order, single=lanes == 1 and not margins)
    n_entries = len(rows.arrays["data"]) + len(rows.arrays.get("dense", ()))
    budget = max(1, int(_BUDGET / (n_entries / max(1, rows.shape[0]) + _ROW_COST)))
    # The score of such a row by its own weights is infinite, and it would seem to have any margin.
    overflows = bool((rows.arrays["norm2"] > np.finfo(rows.dtype).max).any())
    waiting, at_work = iter(problems), dict[int, NumberedProblem]()
    solved: list[tuple[int, Problem, Solution]] = []
    scratch = np.empty(rows.shape[1] if keep or margins else 0, rows.dtype)

    def load_next(lane: int) -> None:
        for k, problem in waiting:
            _load(block, lane, problem, problem.start)
            at_work[lane] = k, problem
            return

    for lane in range(lanes):
        load_next(lane)
    while at_work and not control.stop.is_set():
        finished = block.run(budget)
        for lane in [lane for lane in at_work if finished >> lane & 1]:
            k, problem = at_work.pop(lane)
            weights = scratch if keep else np.empty(rows.shape[1], rows.dtype) if out is None else out[k]
            solution = _unload(block, lane, problem, weights, overflows=overflows)
            solution.weights = keep(weights) if keep else weights
            solved.append((k, problem, solution))
            control.finished()
            load_next(lane)
    if margins:
        for start in range(0, len(solved), N_LANES):
            _measure(block, solved[start : start + N_LANES], scratch)
    return [(k, solution) for k, _, solution in solved]


def _load(block: Block, lane: int, problem: Problem, start: Solution | None) -> None:
    positives, left_out = np.ascontiguousarray(problem.positives), np.ascontiguousarray(problem.left_out)
    block.load(lane, problem.rule, problem.rho, problem.lambda_, *problem.limits, positives, left_out)
    if start is not None:
        weights, support, alpha = map(np.ascontiguousarray, (start.weights, start.support, start.alpha))
        block.warm(lane, weights, start.bias, start.n_updates, support, alpha)


def _unload(block: Block, lane: int, problem: Problem, weights: np.ndarray, *, overflows: bool) -> Solution:
    held_out = block.score(lane, np.ascontiguousarray(problem.left_out))
    bias, support, alpha, n_updates, n_epochs, last_updates = block.unload(lane, weights)
    finite = not overflows and bool(np.isfinite(bias) and np.isfinite(weights).all())
    reason, stopped = judge_outcome(problem.tol, n_updates, n_epochs, last_updates, weights.dtype, finite)
    solution = Solution(weights, bias, support, alpha, n_updates, n_epochs, reason, stopped, held_out)

    def squared_length() -> float:
        of_bias = bias / problem.rho if problem.rho else 0.0
        squares = [float(np.square(array, dtype=np.float64).sum()) for array in (weights, alpha)]
        return squares[0] + of_bias**2 + problem.lambda_ * squares[1]

    solution.unit = solution_unit(problem.rule, squared_length)
    return solution


def _measure(block: Block, solved: Sequence[tuple[int, Problem, Solution]], scratch: np.ndarray) -> None:
    """Measure the margins of solutions in one pass over the rows, and set these margins in the solutions.

    `solved` has each solution with its number and its problem. `block` has a lane (a place for one weight vector) for
    each solution, and `scratch` is working memory.
    """
    for lane, (_, problem, solution) in enumerate(solved):
        _load(block, lane, problem, solution)
    for (_, _, solution), least, N, w_bias in zip(solved, *block.margins(), strict=False):
        set_margins(solution, least, N, w_bias)
    for lane in range(len(solved)):
        block.unload(lane, scratch)
