"""Problems in, solutions out: many problems over one X, sixteen lanes a block, blocks in parallel."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp
from joblib.parallel import get_active_backend

from textcat.margin._primal import N_LANES, Block
from textcat.margin.rules import Rule

NONE = np.empty(0, np.int32)

# Non-zeros presented between two looks at the stop flag: some 0.1 s of work, so that Ctrl-C is answered at once.
_BUDGET = 20_000_000


@dataclass(frozen=True, eq=False)
class Problem:
    """One two-class problem over the rows of a shared X: labels and the parameters of its learner.

    Parameters
    ----------
    positives : ndarray of int32
        Rows labelled +1; every other row is labelled -1, unless left out.
    rule : Rule
        When to update and by how much, see `textcat.margin.rules`.
    left_out : ndarray of int32
        Rows with label 0: never trained on. Cross-validation leaves a fold out.
    lambda_ : float >= 0
        The λ trick: every row gets a private coordinate √λ, which makes any rows separable.
    rho : float
        Size of the constant coordinate appended to every row; 0 for no bias. The paper's ``b += ηyR²`` is ρ = R.
    max_epochs : int
        Give up after that many passes over the rows.
    start : Solution, optional
        Go on from there instead of from zero.
    """

    positives: np.ndarray
    rule: Rule
    left_out: np.ndarray = field(default_factory=lambda: NONE)
    lambda_: float = 0.0
    rho: float = 1.0
    max_epochs: int = 1000
    start: Solution | None = None

    @classmethod
    def from_labels(cls, labels: np.ndarray, rule: Rule, **settings: Any) -> Problem:
        """Make a problem from labels in {+1, -1, 0 = leave out}, shape (n_rows,)."""
        labels = np.asarray(labels)
        positives, left_out = (np.flatnonzero(chosen).astype(np.int32) for chosen in (labels > 0, labels == 0))
        return cls(positives, rule, left_out=left_out, **settings)


@dataclass(eq=False)
class Solution:
    """What came of a problem.

    Attributes
    ----------
    weights : ndarray of shape (n_features,), or None where only held-out scores were asked for
    bias : float
        ``f(x) = ⟨weights, x⟩ + bias``.
    support : ndarray of int32
        The rows with a non-zero coefficient; their number is what the PAUM paper calls sparsity.
    alpha : ndarray
        The sum of the signed steps made on each support row; ``weights = Σ alpha_i x_i``.
    n_updates, n_epochs : int
        Updates made and passes over the rows, the last one (without an update if converged) included.
    converged : bool
    stopped : str
        Why training ended, in words.
    held_out : ndarray
        Scores of the problem's left-out rows, in their order.
    """

    weights: np.ndarray | None
    bias: float
    support: np.ndarray
    alpha: np.ndarray
    n_updates: int
    n_epochs: int
    converged: bool
    stopped: str
    held_out: np.ndarray


class _Control:
    """What the blocks of one call share with it: a wish to stop, and the count of finished problems."""

    def __init__(self, progress: Callable[[int], None] | None):
        self.stop = threading.Event()
        self._progress = progress

    def finished(self) -> None:
        if self._progress:
            self._progress(1)

    def __reduce__(self) -> tuple:
        # Another process can neither be told to stop nor report progress through this object.
        return _Control, (None,)


def solve(
    X: sp.csr_matrix | sp.csr_array,
    problems: Sequence[Problem],
    *,
    n_jobs: int | None = None,
    seed: int | None = None,
    keep_weights: bool = True,
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
    progress : callable, optional
        Called with 1 whenever a problem is finished, from the thread that finished it.
    lanes : int from 1 to 16
        How many problems go side by side in a block.
    out : ndarray of shape (n_problems, n_features), optional
        Where to put the weights.

    Returns
    -------
    list of Solution
        In the order of the problems.

    Raises
    ------
    ValueError
        If X is neither float32 nor float64, or a problem speaks of rows that X does not have.
    """
    if X.dtype not in (np.float32, np.float64):
        raise ValueError(f"X must be float32 or float64, got {X.dtype}; convert it with X.astype('float32')")
    n_rows, n_features = X.shape
    for number, problem in enumerate(problems):
        _check(problem, number, n_rows)
    rows = (X.indptr.astype(np.int64), X.indices.astype(np.int32, copy=False), np.ascontiguousarray(X.data), n_features)
    order = None if seed is None else np.random.default_rng(seed).permutation(n_rows)
    backend, jobs = get_active_backend(prefer="threads")
    shared = getattr(backend, "supports_sharedmem", False)
    n_jobs = joblib.effective_n_jobs(n_jobs) if n_jobs is not None else jobs
    if keep_weights and out is None:
        out = np.empty((len(problems), n_features), X.dtype)
    control = _Control(progress)
    blocks = _deal(problems, n_jobs)
    try:
        parts = joblib.Parallel(n_jobs=n_jobs, prefer="threads")(
            joblib.delayed(_solve_block)(
                rows, order, [(k, problems[k]) for k in block], lanes, keep_weights, out if shared else None, control
            )
            for block in blocks
        )
    except BaseException:
        control.stop.set()  # the other threads would otherwise go on to the end
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


def _check(problem: Problem, number: int, n_rows: int) -> None:
    for name in ("positives", "left_out"):
        rows = getattr(problem, name)
        if len(rows) and (rows.dtype != np.int32 or rows.min() < 0 or rows.max() >= n_rows):
            raise ValueError(f"{name} of problem {number} must be int32 row numbers from 0 to {n_rows - 1}")
    if problem.lambda_ < 0 or problem.max_epochs < 1:
        raise ValueError(
            f"problem {number} has lambda_={problem.lambda_:g} and max_epochs={problem.max_epochs}; "
            "lambda_ must be at least 0 and max_epochs at least 1"
        )


def _deal(problems: Sequence[Problem], n_jobs: int) -> list[list[int]]:
    """Deal the problems into blocks of about equal work, the longest first.

    A problem with many positives takes more epochs; one that is started last would be waited for with empty lanes.
    """
    by_size = sorted(range(len(problems)), key=lambda k: -len(problems[k].positives))
    n_blocks = max(1, min(n_jobs, len(problems)))
    if len(problems) > 8 * N_LANES * n_blocks > 8 * N_LANES:
        n_blocks *= 4  # many problems: smaller blocks even out what the dealing got wrong
    blocks: list[list[int]] = [[] for _ in range(n_blocks)]
    for turn, k in enumerate(by_size):
        there, back = turn % n_blocks, n_blocks - 1 - turn % n_blocks
        blocks[there if turn // n_blocks % 2 == 0 else back].append(k)
    return blocks


def _solve_block(
    rows: tuple,
    order: np.ndarray | None,
    numbered: list[tuple[int, Problem]],
    lanes: int,
    keep_weights: bool,
    out: np.ndarray | None,
    control: _Control,
) -> list[tuple[int, Solution]]:
    """Run problems through the lanes of one block; a lane that has finished takes the next problem."""
    indptr, indices, data, n_features = rows
    block = Block(indptr, indices, data, n_features, order)
    budget = max(1, _BUDGET * (len(indptr) - 1) // max(1, len(data)))
    waiting = iter(numbered)
    at_work: dict[int, tuple[int, Problem]] = {}
    solved = []
    for lane in range(min(lanes, len(numbered))):
        _load_next(block, lane, waiting, at_work)
    while at_work and not control.stop.is_set():
        finished = block.run(budget)
        for lane in [lane for lane in at_work if finished >> lane & 1]:
            k, problem = at_work.pop(lane)
            weights = out[k] if out is not None else np.empty(n_features, data.dtype)
            solved.append((k, _unload(block, lane, problem, weights, keep_weights)))
            control.finished()
            _load_next(block, lane, waiting, at_work)
    return solved


def _load_next(block: Block, lane: int, waiting: Iterator[tuple[int, Problem]], at_work: dict) -> None:
    for k, problem in waiting:
        block.load(
            lane, problem.rule, problem.rho, problem.lambda_, problem.max_epochs, problem.positives, problem.left_out
        )
        if problem.start is not None:
            start = problem.start
            block.warm(lane, start.weights, start.bias, start.support, start.alpha)
        at_work[lane] = (k, problem)
        return


def _unload(block: Block, lane: int, problem: Problem, weights: np.ndarray, keep_weights: bool) -> Solution:
    held_out = block.score(lane, problem.left_out)
    bias, support, alpha, n_updates, n_epochs, last_updates = block.unload(lane, weights)
    converged = last_updates == 0
    if converged:
        stopped = f"converged: no update in epoch {n_epochs}"
    else:
        stopped = f"did not converge: {last_updates} updates in epoch {n_epochs}, the last one allowed"
    kept = weights if keep_weights else None
    return Solution(kept, bias, support, alpha, n_updates, n_epochs, converged, stopped, held_out)
