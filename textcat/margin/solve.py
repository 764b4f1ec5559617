"""Train problems over rows or a kernel, in blocks that run in parallel.

A problem is the labels of one topic and the rule of its updates; a block is the problems that one thread or process
trains.
"""

import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from functools import partial
from typing import Any

import joblib
import numpy as np
from joblib.parallel import SequentialBackend, ThreadingBackend, get_active_backend

from textcat.margin import kernels, primal
from textcat.margin.kernels import Kernel, KernelRows, one_blas_thread
from textcat.margin.primal import N_LANES, allocator
from textcat.margin.problems import NumberedProblem, Problem, Solution, SolveControl

# number of waiting tasks per worker, so that workers continue while the oldest task takes longer than later ones
_AHEAD = 4

# A function that trains numbered problems over rows.
_SolveBlock = Callable[[Any, Iterable[NumberedProblem]], list[tuple[int, Solution]]]


def solve(
    X: Any,
    problems: Sequence[Problem],
    *,
    kernel: Kernel | None = None,
    kernel_params: dict[str, Any] | None = None,
    cache_mb: float = 1000,
    n_jobs: int | None = None,
    seed: int | None = None,
    keep: Callable[[np.ndarray], Any] | None = None,
    margins: bool = False,
    progress: Callable[[int], None] | None = None,
    lanes: int = N_LANES,
    out: np.ndarray | None = None,
    overwrite_X: bool = False,
) -> list[Solution]:
    """Train every problem over the rows of X.

    A problem's solution is the same to the bit for any other problems, `n_jobs`, joblib backend and `lanes`.

    Parameters
    ----------
    X : sparse CSR, or rows on disk, of shape (n_rows, n_features), float32 or float64
        Training uses X's number type; float64 values are added up one after the other, in the order of the features.
        With a kernel, X may also be a dense array; with ``kernel="precomputed"``, X is the kernel matrix. Rows on disk
        are what `textcat.open_rows` returns; large arrays, such as the weights, then become files in the same folder.
    problems : sequence of Problem
    kernel, kernel_params, cache_mb : str or callable, dict, float, optional
        Train in the dual form, by a kernel of scikit-learn's `pairwise_kernels` and its parameters, by "precomputed",
        or by a function of ``(X, Y)`` that returns the matrix of shape (n_X, n_Y), as for scikit-learn's `SVC`. Rows of
        the kernel matrix may take `cache_mb` megabytes. Solutions then have no weights.
    n_jobs : int, optional
        Blocks of problems solved at the same time, as for joblib: None: 1, -1: one per core. Blocks are solved in
        threads, unless a joblib backend is chosen. With the backend "dask", this argument is ignored, and n_jobs is the
        number of threads of all workers.
    seed : int >= 0, optional
        Seed of a random order of the rows, the same in every epoch; None: they are presented in the order of X.
    keep : callable, optional
        A function that gets each solution's array of weights; the solution keeps the result instead of the weights. The
        array is overwritten afterwards. None: the weights are kept. `textcat.margin.solve.nothing` keeps no weights,
        for grids of thousands of problems that need only the scores of left-out rows. If processes do the work, the
        function is sent to them.
    margins : bool
        Also measure the margins that were reached and their certificate, by a last pass over the rows. `keep` must then
        be None, or keep weights that numpy can read, such as `textcat.margin.problems.PackedWeights.of`.
    progress : callable, optional
        Called with 1 whenever a problem is finished, from the thread that finished it; if processes do the work, called
        once at the end with the number of problems; with a cluster, with the number in each block that is finished.
    lanes : int from 1 to 16
        Number of problems side by side in a block; with a kernel they are solved one after another.
    out : ndarray of shape (n_problems, n_features), optional
        Array to write the weights to; C-contiguous, in X's number type. Not with a kernel, or with `keep`.
    overwrite_X : bool
        Whether the arrays of X may be overwritten, to save memory; X cannot be used afterwards.

    Returns
    -------
    list of Solution
        In the order of the problems.

    Raises
    ------
    ValueError
        If the arguments do not fit together. KernelError, a subclass, if the kernel does not exist or does not fit X.
    """
    if not 1 <= lanes <= N_LANES:
        raise ValueError(f"lanes must be from 1 to {N_LANES}, got {lanes}")
    backend, jobs = get_active_backend(prefer="threads")
    n_jobs = backend.effective_n_jobs(jobs if n_jobs is None else n_jobs)
    control = SolveControl(progress)
    if kernel is not None:
        if out is not None:
            raise ValueError("a solution on a kernel has no weights to write to out")
        with one_blas_thread():
            rows = KernelRows(X, kernel, kernel_params, cache_mb=cache_mb, n_jobs=n_jobs)
            _check(problems, rows.n_rows, None, rows.dtype)
            block = partial(kernels.solve_dual_block, order=_order(seed, rows.n_rows), margins=margins, control=control)
            return _run(block, rows, problems, backend, n_jobs, control)
    csr = primal.read_rows(X)
    n_rows, n_features = X.shape
    _check(problems, n_rows, n_features, X.dtype)
    if margins and keep is nothing:
        raise ValueError("margins can only be measured where the weights are kept: leave keep=None")
    shape = len(problems), n_features
    if keep is not None:
        if out is not None:
            raise ValueError("what is kept of the weights cannot be written to out: give one of keep and out")
    elif out is None:
        out = allocator(csr.folder)(shape, X.dtype)
    elif out.shape != shape or out.dtype != X.dtype or not out.flags.c_contiguous:
        raise ValueError(f"out must be C-contiguous {X.dtype} of shape {shape}, got {out.dtype} of shape {out.shape}")
    lanes = min(lanes, max(1, -(-len(problems) // n_jobs)))
    here = _in_this_process(backend, n_jobs)
    into = out if here else None
    order = _order(seed, n_rows)
    block = partial(
        primal.solve_primal_block, order=order, lanes=lanes, keep=keep, margins=margins, out=into, control=control
    )
    rows = primal.arrange_rows(csr, in_place=overwrite_X, single=lanes == 1) if here else X
    solutions = _run(block, rows, problems, backend, n_jobs, control)
    if out is not None and into is None:
        for solution, row in zip(solutions, out, strict=True):
            row[:] = solution.weights
            solution.weights = row
    return solutions


def nothing(weights: np.ndarray) -> None:
    """Return None for any weights; as the argument `keep` of `solve`, this function keeps no weights."""


def _order(seed: int | None, n_rows: int) -> np.ndarray | None:
    return None if seed is None else np.random.default_rng(seed).permutation(n_rows).astype(np.int64, copy=False)


def _in_this_process(backend: Any, n_jobs: int) -> bool:
    # joblib runs a single job in this process, whatever the backend; clusters are not used through joblib
    return not hasattr(backend, "client") and (n_jobs == 1 or getattr(backend, "supports_sharedmem", False))


def _run(
    solve_block: _SolveBlock, rows: Any, problems: Sequence[Problem], backend: Any, n_jobs: int, control: SolveControl
) -> list[Solution]:
    """Train problems in blocks, in threads or by joblib's backend; return their solutions in their order."""
    # A problem with many positives takes more epochs: if it were started last, it would run on while other lanes are
    # empty.
    longest_first = sorted(enumerate(problems), key=lambda numbered: -len(numbered[1].positives))
    here = _in_this_process(backend, n_jobs)
    if here and isinstance(backend, ThreadingBackend | SequentialBackend):
        parts = _in_threads(solve_block, rows, longest_first, n_jobs, control)
    elif hasattr(backend, "client"):
        parts = _on_cluster(solve_block, rows, _divide(longest_first, n_jobs), backend.client, control)
    else:
        try:
            blocks = _divide(longest_first, n_jobs)
            parts = joblib.Parallel(n_jobs=n_jobs)(joblib.delayed(solve_block)(rows, block) for block in blocks)
        except BaseException:
            control.stop.set()  # otherwise, work in this process would continue to the end
            raise
        if not here:
            control.finished(len(problems))
    solutions: dict[int, Solution] = dict(pair for part in parts for pair in part)
    return [solutions[k] for k in range(len(problems))]


def _on_cluster(
    solve_block: _SolveBlock, rows: Any, blocks: Sequence[list[NumberedProblem]], client: Any, control: SolveControl
) -> list[list[tuple[int, Solution]]]:
    """Solve blocks of problems on a Dask cluster, and return the results; each worker gets a copy of the rows.

    joblib's Dask backend is not used, because it would wait forever if the cluster gave up a block whose workers keep
    being lost.
    """
    sent = _share(rows, client)
    futures = [client.submit(_solve_opened, solve_block, sent, block, pure=False) for block in blocks]
    try:
        parts = []
        for future in futures:  # in order: `as_completed` would wait forever if the scheduler is lost
            part = future.result()  # raises the error of a block that was given up, which `with_results` returns
            control.finished(len(part))
            parts.append(part)
    except BaseException:
        client.cancel(futures)
        raise
    return parts


def _share(rows: Any, client: Any) -> Any:
    """Return a handle of rows for tasks on a Dask cluster, which pass it to `opened` to get the rows.

    A matrix is copied to every worker. Rows on disk are opened by the tasks themselves, so that an error reaches the
    caller unchanged.
    """
    return pickle.dumps(rows) if primal.is_on_disk(rows) else client.scatter(rows, broadcast=True, hash=False)


def opened(sent: Any) -> Any:
    """Return the rows for which `Workers.share` has returned a handle; open rows on disk in this process."""
    return pickle.loads(sent) if isinstance(sent, bytes) else sent


def _solve_opened(solve_block: _SolveBlock, sent: Any, problems: list[NumberedProblem]) -> list[tuple[int, Solution]]:
    return solve_block(opened(sent), problems)


class Workers:
    """Run tasks that share objects, in threads of this process or, with joblib's Dask backend, on a cluster.

    Parameters
    ----------
    n_jobs : int, optional
        As for `solve`.
    """

    def __init__(self, n_jobs: int | None = None):
        backend, jobs = get_active_backend(prefer="threads")
        self.jobs: int = backend.effective_n_jobs(jobs if n_jobs is None else n_jobs)
        self._client = getattr(backend, "client", None)

    def share(self, thing: Any) -> Any:
        """Send rows or a matrix to the workers; return a handle, which tasks pass to `opened` to get the object.

        Each worker of a cluster gets a copy, so that nothing is lost if a worker ends.
        """
        return thing if self._client is None else _share(thing, self._client)

    def in_order(self, task: Callable[..., Any], items: Iterable[Any], *shared: Any) -> Iterator[Any]:
        """Yield the result of a task for each item, in the order of the items; some results are computed ahead.

        Parameters
        ----------
        task : callable
            It is called with an item and the shared objects. Tasks depend on nothing else, so that a cluster can repeat
            those of a lost worker.
        items : iterable
        *shared
            Objects that `share` has returned.
        """
        ahead = deque[Any]()
        with nullcontext() if self._client else ThreadPoolExecutor(self.jobs) as pool:
            submit = pool.submit if pool else partial(self._client.submit, pure=False)  # type: ignore[union-attr]
            try:
                for item in items:
                    ahead.append(submit(task, item, *shared))
                    if len(ahead) == _AHEAD * self.jobs:
                        yield ahead.popleft().result()
                while ahead:
                    yield ahead.popleft().result()
            finally:
                for future in ahead:
                    future.cancel()


def _in_threads(
    solve_block: _SolveBlock, rows: Any, problems: Sequence[NumberedProblem], n_jobs: int, control: SolveControl
) -> list[list[tuple[int, Solution]]]:
    """Solve problems in this thread and in n_jobs - 1 other threads; return the results, one list per thread.

    Each thread trains a block of several problems; when one is finished, the block takes the next.
    joblib's own threads are not used: starting them and waiting for them takes 10 to 30 ms, a third of the training on
    Reuters-21578.
    """
    queue = deque(problems)

    def waiting() -> Iterator[NumberedProblem]:
        with suppress(IndexError):  # the queue is empty
            while True:
                yield queue.popleft()

    with ThreadPoolExecutor(max(1, n_jobs - 1)) as pool:
        try:
            other_threads = [pool.submit(solve_block, rows, waiting()) for _ in range(min(n_jobs, len(problems)) - 1)]
            return [solve_block(rows, waiting()), *(other.result() for other in other_threads)]
        except BaseException:
            control.stop.set()  # otherwise, the other threads would continue to the end
            raise


def _check(problems: Sequence[Problem], n_rows: int, n_features: int | None, dtype: np.dtype) -> None:
    """Raise ValueError if a training problem does not fit the rows of X; `n_features` is None if there is a kernel."""
    for number, problem in enumerate(problems):
        for name in ("positives", "left_out"):
            if not _are_rows(getattr(problem, name), n_rows):
                raise ValueError(f"{name} of problem {number} must be int32 row numbers from 0 to {n_rows - 1}")
        limits_hold = problem.max_epochs >= 1 and problem.mini_epochs >= 0 and 0 <= problem.tol < 1
        if not (0 <= problem.lambda_ < np.inf and np.isfinite(problem.rho) and limits_hold):
            raise ValueError(
                f"problem {number} has lambda_={problem.lambda_:g}, rho={problem.rho:g}, "
                f"max_epochs={problem.max_epochs}, mini_epochs={problem.mini_epochs}, tol={problem.tol:g}; lambda_ "
                "must be finite and at least 0, rho finite, max_epochs at least 1, mini_epochs at least 0, and tol at "
                "least 0 and below 1"
            )
        if problem.start is not None and not _is_start(problem.start, n_rows, n_features, dtype):
            weights, features = ("", "") if n_features is None else (" with weights", f" and {n_features} features")
            raise ValueError(
                f"the start of problem {number} must be a solution{weights}, in {dtype} and over {n_rows} rows"
                f"{features}, as X is"
            )


def _is_start(start: Solution, n_rows: int, n_features: int | None, dtype: np.dtype) -> bool:
    fits = start.alpha.dtype == dtype and start.support.shape == start.alpha.shape and _are_rows(start.support, n_rows)
    w = start.weights
    return fits and (n_features is None or (w is not None and w.shape == (n_features,) and w.dtype == dtype))


def _are_rows(rows: np.ndarray, n_rows: int) -> bool:
    return rows.dtype == np.int32 and rows.ndim == 1 and (not len(rows) or (rows.min() >= 0 and rows.max() < n_rows))


def _divide(problems: Sequence[NumberedProblem], n_jobs: int) -> list[list[NumberedProblem]]:
    """Divide training problems into blocks of about equal work, one or more per process, as processes share no queue.

    The problems must be in the order of their expected work, the largest first.
    """
    n_blocks = max(1, min(n_jobs, len(problems)))
    if len(problems) > 8 * N_LANES * n_blocks > 8 * N_LANES:
        n_blocks *= 4  # with many problems, smaller blocks compensate for wrong estimates
    blocks: list[list[NumberedProblem]] = [[] for _ in range(n_blocks)]
    for turn, numbered in enumerate(problems):
        position = turn % n_blocks
        blocks[position if turn // n_blocks % 2 == 0 else n_blocks - 1 - position].append(numbered)
    return blocks
