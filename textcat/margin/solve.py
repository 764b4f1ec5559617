"""Problems in, solutions out: many problems over one X, sixteen lanes a block, blocks in parallel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue

import joblib
import numpy as np
import scipy.sparse as sp
from joblib.parallel import SequentialBackend, ThreadingBackend, get_active_backend

from textcat.margin._primal import N_LANES, Block
from textcat.margin.problems import Control, Numbered, Problem, Solution, in_words, set_margins

# Non-zeros presented between two looks at the stop flag: some 0.1 s of work, so that Ctrl-C is answered at once. A row
# costs as much as some more of them, above all where it makes every lane update.
_BUDGET = 20_000_000
_ROW_COST = 10


def solve(
    X: sp.csr_matrix | sp.csr_array,
    problems: Sequence[Problem],
    *,
    n_jobs: int | None = None,
    seed: int | None = None,
    keep_weights: bool = True,
    margins: bool = False,
    progress: Callable[[int], None] | None = None,
    lanes: int = N_LANES,
    out: np.ndarray | None = None,
) -> list[Solution]:
    """Train every problem over the rows of X.

    A problem's solution is the same to the bit whatever the other problems, `n_jobs`, the joblib backend and `lanes`.

    Parameters
    ----------
    X : sparse CSR of shape (n_rows, n_features), float32 or float64
        Training is done in its number type. float64 sums with one accumulator in coordinate order.
    problems : sequence of Problem
    n_jobs : int, optional
        Blocks of problems at work at the same time; joblib's meaning. Threads unless a joblib backend is chosen.
    seed : int, optional
        Present the rows in a random order drawn with this seed (the same in every epoch); None: as they stand.
    keep_weights : bool
        False: keep only the scores of left-out rows, for grids of thousands of problems.
    margins : bool
        Also measure the margins that were reached, and what is proven of them: a last pass over the rows. It needs
        the weights.
    progress : callable, optional
        Called with 1 whenever a problem is finished, from the thread that finished it; where processes do the work,
        once at the end with the number of problems.
    lanes : int from 1 to 16
        How many problems go side by side in a block.
    out : ndarray of shape (n_problems, n_features), optional
        Where to put the weights; C-contiguous, in X's number type.

    Returns
    -------
    list of Solution
        In the order of the problems.

    Raises
    ------
    ValueError
        If X is not a CSR matrix of float32 or float64, `lanes` or `out` are out of shape, a problem speaks of rows
        that X does not have, or margins are asked for without the weights.
    """
    rows = _read_rows(X)
    n_rows, n_features = X.shape
    for number, problem in enumerate(problems):
        _check(problem, number, X)
    if not 1 <= lanes <= N_LANES:
        raise ValueError(f"lanes must be from 1 to {N_LANES}, got {lanes}")
    if margins and not keep_weights:
        raise ValueError("margins can only be measured where the weights are kept: leave keep_weights=True")
    shape = len(problems), n_features
    if out is None:
        out = np.empty(shape, X.dtype) if keep_weights else None
    elif out.shape != shape or out.dtype != X.dtype or not out.flags.c_contiguous:
        raise ValueError(f"out must be C-contiguous {X.dtype} of shape {shape}, got {out.dtype} of shape {out.shape}")
    order = None if seed is None else np.random.default_rng(seed).permutation(n_rows).astype(np.int64, copy=False)
    backend, jobs = get_active_backend(prefer="threads")
    n_jobs = backend.effective_n_jobs(jobs if n_jobs is None else n_jobs)
    # joblib runs a single job in this process, whatever the backend
    shared = n_jobs == 1 or getattr(backend, "supports_sharedmem", False)
    control = Control(progress)
    # A problem with many positives takes more epochs; one that is started last would be waited for with empty lanes.
    longest_first = sorted(enumerate(problems), key=lambda numbered: -len(numbered[1].positives))
    lanes = min(lanes, max(1, -(-len(problems) // n_jobs)))
    solve_block = partial(_solve_block, rows, order, lanes, keep_weights, margins, out if shared else None, control)
    if shared and isinstance(backend, ThreadingBackend | SequentialBackend):
        parts = _in_threads(solve_block, longest_first, n_jobs, control)
    else:
        try:
            parts = joblib.Parallel(n_jobs=n_jobs)(
                joblib.delayed(solve_block)(block) for block in _deal(longest_first, n_jobs)
            )
        except BaseException:
            control.stop.set()  # what runs in this process would otherwise go on to the end
            raise
    solutions: dict[int, Solution] = dict(pair for part in parts for pair in part)
    if keep_weights and not shared:
        assert out is not None
        for k, solution in solutions.items():
            out[k] = solution.weights
            solution.weights = out[k]
        if progress:
            progress(len(problems))
    return [solutions[k] for k in range(len(problems))]


def _in_threads(
    solve_block: Callable[[Iterable[Numbered]], list], problems: Sequence[Numbered], n_jobs: int, control: Control
) -> list[list]:
    """Run a block in this thread and each of n_jobs - 1 others; whichever has a free lane takes the next problem.

    joblib's own threads take some 10 to 30 ms to start and to be waited for: a third of the training of Reuters-21578.
    """
    queue: SimpleQueue[Numbered] = SimpleQueue()
    for numbered in problems:
        queue.put(numbered)

    def waiting() -> Iterator[Numbered]:
        with suppress(Empty):
            while True:
                yield queue.get_nowait()

    with ThreadPoolExecutor(max(1, n_jobs - 1)) as pool:
        try:
            others = [pool.submit(solve_block, waiting()) for _ in range(min(n_jobs, len(problems)) - 1)]
            return [solve_block(waiting()), *(other.result() for other in others)]
        except BaseException:
            control.stop.set()  # the other threads would otherwise go on to the end
            raise


def _read_rows(X: sp.csr_matrix | sp.csr_array) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
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


def _check(problem: Problem, number: int, X: sp.csr_matrix | sp.csr_array) -> None:
    n_rows, n_features = X.shape
    for name in ("positives", "left_out"):
        if not _are_rows(getattr(problem, name), n_rows):
            raise ValueError(f"{name} of problem {number} must be int32 row numbers from 0 to {n_rows - 1}")
    limits_hold = problem.max_epochs >= 1 and problem.mini_epochs >= 0
    if not (0 <= problem.lambda_ < np.inf and np.isfinite(problem.rho) and limits_hold):
        raise ValueError(
            f"problem {number} has lambda_={problem.lambda_:g}, rho={problem.rho:g}, max_epochs={problem.max_epochs}, "
            f"mini_epochs={problem.mini_epochs}; lambda_ must be finite and at least 0, rho finite, "
            "max_epochs at least 1, and mini_epochs at least 0"
        )
    start = problem.start
    if start is not None and not (
        start.weights is not None
        and start.weights.shape == (n_features,)
        and start.weights.dtype == start.alpha.dtype == X.dtype
        and start.support.shape == start.alpha.shape
        and _are_rows(start.support, n_rows)
    ):
        raise ValueError(
            f"the start of problem {number} must be a solution with weights, in {X.dtype} and over {n_rows} rows and "
            f"{n_features} features, as X is"
        )


def _are_rows(rows: np.ndarray, n_rows: int) -> bool:
    return rows.dtype == np.int32 and rows.ndim == 1 and (not len(rows) or (rows.min() >= 0 and rows.max() < n_rows))


def _deal(problems: Sequence[Numbered], n_jobs: int) -> list[list[Numbered]]:
    """Deal problems, the longest first, into blocks of about equal work for processes that share no queue."""
    n_blocks = max(1, min(n_jobs, len(problems)))
    if len(problems) > 8 * N_LANES * n_blocks > 8 * N_LANES:
        n_blocks *= 4  # many problems: smaller blocks even out what the dealing got wrong
    blocks: list[list[Numbered]] = [[] for _ in range(n_blocks)]
    for turn, numbered in enumerate(problems):
        there, back = turn % n_blocks, n_blocks - 1 - turn % n_blocks
        blocks[there if turn // n_blocks % 2 == 0 else back].append(numbered)
    return blocks


def _solve_block(
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
