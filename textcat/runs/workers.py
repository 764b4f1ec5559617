"""Process batches in this process, in several processes or on a Dask cluster, and return the results in order.

The number of batches in progress is bounded.
"""

import gc
import logging
import math
import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from concurrent.futures.process import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
from traceback import walk_tb
from typing import Any, Literal, NamedTuple

from textcat.base.errors import TextcatError
from textcat.base.progress import cores, is_single_threaded
from textcat.lean_imports import keep_imports_lean
from textcat.reading import Batch

log = logging.getLogger(__name__)

IN_PROCESS_BYTES = 8 << 20  # bytes of input that this process handles before it starts others
PATIENCE = 5  # seconds to wait until an executor's thread notices that its workers are gone
_LOSSES = 3  # number of consecutive losses of workers after which the run ends and names the batch
_PER_JOB = 3  # batches in progress for each job: one is read, one is processed, one is written

Task = Callable[[Batch], Any]


class WorkerPool(NamedTuple):
    """The workers of a run: how many batches are processed at the same time, and by which processes."""

    start: Callable[[int], Executor]  # function that returns an executor with that number of processes
    jobs: int  # batches that are processed at the same time
    in_process_bytes: float = 0  # bytes of batches that this process handles before it starts others
    lost: tuple[type[BaseException], ...] = (BrokenExecutor, MemoryError)  # exceptions that mean that a worker was lost
    started: Executor | None = None  # processes that are already running
    check: Callable[[], object] = lambda: None  # function that raises TextcatError if no worker can be reached any more


def ordered_map(
    function: Task, batches: Iterable[Batch], workers: WorkerPool, start_over: str
) -> Generator[tuple[Batch, Any]]:
    """Call a function on batches of records, which a thread reads ahead; yield each batch with its result, in order.

    If a worker is lost, the batches that have not been yielded are processed again: the second time by all jobs, the
    third time one by one. If a worker is lost the third time, too, a TextcatError names the batch; `start_over` is the
    part of its message that says how to begin the run again. An exception that occurs while a batch is read or worked
    on is raised after all earlier batches have been yielded.
    """
    reader = _ReadAhead(batches, _PER_JOB * workers.jobs)
    # futures refer to the queue only, because a reference cycle would keep batches long after they are done
    events = reader.events
    tasks = _Tasks(function, workers, lambda _: events.put(None), start_over)
    end: BaseException | None = None
    try:
        while end is None or tasks.batches:
            try:
                event = events.get(timeout=PATIENCE)
            except Empty:
                tasks.check_workers()
                continue
            if isinstance(event, BaseException):
                end = event
            elif event is not None:
                tasks.add(event)
            while tasks.is_first_done():
                if tasks.is_first_lost():
                    tasks.restart()
                else:
                    yield tasks.pop()
                    reader.free.release()
        if not isinstance(end, StopIteration):
            raise end
    finally:
        reader.stop()
        tasks.close()


class _ReadAhead:
    """Read batches in a thread, which puts each batch into the queue `events`, and at the end an exception.

    The exception is StopIteration if reading ended without an error. The thread reads `limit` batches, and one more
    each time that `free` is released.
    """

    def __init__(self, batches: Iterable[Batch], limit: int):
        self.events: SimpleQueue[Batch | BaseException | None] = SimpleQueue()  # None: a result may be available
        self.free = threading.Semaphore(limit)
        self._stopped = False
        with _interrupts_blocked():
            threading.Thread(target=self.read, args=(batches,), daemon=True).start()

    def stop(self) -> None:
        """End the thread after the batch that it is reading."""
        self._stopped = True
        self.free.release()

    def read(self, batches: Iterable[Batch]) -> None:
        try:
            iterator = iter(batches)
            while self.free.acquire() and not self._stopped:
                self.events.put(next(iterator))
        except BaseException as error:
            self.events.put(error)


def _is_script() -> bool:
    """Return whether Python was started with the path of a script, not with ``-m``, ``-c`` or an installed command."""
    main = sys.modules["__main__"]
    return getattr(main, "__spec__", None) is None and str(getattr(main, "__file__", "")).endswith(".py")


class _Tasks:
    """Hold the batches that have been read but not yielded, in order, and submit them to workers."""

    def __init__(self, function: Task, workers: WorkerPool, wake: Callable[[object], None], start_over: str):
        self.batches: deque[Batch] = deque()
        self._futures: deque[Future[Any]] = deque()
        self._function, self._workers, self._wake, self._start_over = function, workers, wake, start_over
        self._executor = workers.started
        self._n_bytes = 0
        self._losses = 0  # consecutive losses
        self._has_result = False
        self._n_suspects = 0  # batches that were in progress when workers were lost, and are not yielded yet

    def add(self, batch: Batch) -> None:
        self.batches.append(batch)
        self._submit()

    def is_first_done(self) -> bool:
        return bool(self._futures) and self._futures[0].done()

    def is_first_lost(self) -> bool:
        """Return whether the first batch failed because its worker was lost."""
        future = self._futures[0]
        return future.cancelled() or _is_loss(future.exception(), self._workers.lost)

    def check_workers(self) -> None:
        """Restart the work if a worker process has ended without the executor noticing it.

        A TextcatError is raised if no worker can be reached any more.
        """
        self._workers.check()
        if isinstance(self._executor, _ProcessPool) and self._executor.is_stuck():
            self.restart()

    def pop(self) -> tuple[Batch, Any]:
        """Remove the first batch, and return it with its result; if the function raised an exception, raise it here."""
        result, batch = self._futures.popleft().result(), self.batches.popleft()
        self._has_result |= self._executor is not None
        self._n_suspects -= 1
        if self._losses and not self._n_suspects:
            if self._one_by_one:
                self.close()
            self._losses = 0
        self._submit()
        return batch, result

    def restart(self) -> None:
        """Give all batches that are held to new workers; raise a TextcatError at the third loss in a row."""
        self._workers.check()
        self.close()
        self._losses += 1
        if self._losses == _LOSSES:
            first = self.batches[0].blocks[0]
            if not self._has_result and _is_script():  # forked processes run it, too, up to this call
                raise TextcatError(
                    f"No worker has started reading {first.source}: in a script, put the call of textcat below "
                    "if __name__ == '__main__':, or give jobs=1."
                )
            raise TextcatError(
                f"A worker was lost {_LOSSES} times at the documents from {first.source}:{first.position} on: one of "
                "them may take more memory than there is. Free memory or use fewer --jobs, and give the same command "
                f"again; or remove the document and {self._start_over}."
            )
        if self._losses == 1:
            log.warning("A worker was lost; its batches are done again.")
        self._n_suspects = len(self._futures)
        self._futures.clear()
        self._submit()

    def close(self) -> None:
        """End all workers now, whatever they are doing."""
        if self._executor is not None:
            self._executor.shutdown(wait=False)
        self._executor = None

    @property
    def _one_by_one(self) -> bool:
        return self._losses == _LOSSES - 1

    def _submit(self) -> None:
        """Submit batches that no worker has yet; if workers were lost twice, only one batch at a time."""
        for batch in list(self.batches)[len(self._futures) : 1 if self._one_by_one else None]:
            future = self._begin(batch)
            self._futures.append(future)
            future.add_done_callback(self._wake)

    def _begin(self, batch: Batch) -> Future[Any]:
        self._n_bytes += batch.size
        future: Future[Any] = Future()
        try:
            if self._n_bytes <= self._workers.in_process_bytes:
                future.set_result(self._function(batch))
                return future
            if self._executor is None:
                self._executor = self._workers.start(1 if self._one_by_one else self._workers.jobs)
            return self._executor.submit(self._function, batch)
        except Exception as error:  # raised by the function, or because workers were lost before
            future.set_exception(error)
            return future


def _is_loss(error: BaseException | None, lost: tuple[type[BaseException], ...]) -> bool:
    """Return whether an error means that a worker was lost.

    If a worker dies right after it sent its result, distributed mistakes the result for an error, and raises a
    TypeError.
    """
    if not isinstance(error, TypeError):
        return isinstance(error, lost)
    names = [frame.f_globals.get("__name__") for frame, _ in walk_tb(error.__traceback__)]
    return names[-1:] == ["distributed.cfexecutor"]


@contextmanager
def open_workers(
    jobs: int, n_bytes: int | None, scheduler: str = "", prepare: Callable[[], object] = lambda: None
) -> Iterator[WorkerPool]:
    """Yield the workers of a run: this process for a single job or little input, otherwise processes or a cluster.

    `jobs` batches are worked on at the same time (-1: one per core). If `scheduler` is the address of a Dask cluster,
    `jobs` is ignored, and as many batches as the cluster has threads are worked on. `n_bytes` is the size of the
    inputs, None if unknown. `prepare` is called in this process, so that forked processes need not load modules and
    data themselves.
    """
    if jobs < 1 and jobs != -1:
        raise TextcatError(f"{jobs} jobs do nothing: ask for 1 or more, or for -1, one per core.")
    if not scheduler:
        jobs = cores() if jobs == -1 else jobs
        # Compressed input, or input of unknown size, may be larger than it seems.
        little = IN_PROCESS_BYTES if n_bytes is None or n_bytes <= IN_PROCESS_BYTES else 0
        in_process = math.inf if jobs == 1 else little
        pool = None if in_process or not is_single_threaded() else _forked_pool(jobs, prepare)
        try:
            yield WorkerPool(_ProcessPool, jobs, in_process, started=pool)
        finally:
            if pool is not None:
                pool.shutdown()
        return
    from textcat.base.cluster import connected

    with connected(scheduler) as connection:
        from distributed import KilledWorker

        client = connection.client
        # Not pure: Dask must not merge two equal batches. It gives the batches of a lost worker to others.
        jobs, lost = sum(client.nthreads().values()), (KilledWorker, MemoryError)
        yield WorkerPool(lambda _: client.get_executor(pure=False), jobs, lost=lost, check=connection.check)


class _ProcessPool(ProcessPoolExecutor):
    """Run work in processes that end at once when the pool is shut down or this process ends, even if it is killed."""

    def __init__(self, jobs: int, method: Literal["fork", "spawn"] = "spawn"):
        context = multiprocessing.get_context(method)
        self._lifeline = context.Pipe(duplex=False)
        super().__init__(jobs, context, initializer=_start_worker, initargs=self._lifeline)
        # Start all processes at once: if one is killed while others are being added, the executor's thread fails.
        self._safe_to_dynamically_spawn_children = False

    def submit(self, *work: Any) -> Future[Any]:  # type: ignore[override]
        """Give work to a process; raise BrokenExecutor if no process can be started."""
        try:
            with _interrupts_blocked():  # processes and threads start with the first work
                return super().submit(*work)
        except OSError as error:
            raise BrokenExecutor(f"No process can be started: {error}") from error

    def is_stuck(self) -> bool:
        """Return whether a process has ended: the executor's thread may then wait forever for its result."""
        return any(process.exitcode is not None for process in list((self._processes or {}).values()))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = True) -> None:
        """Kill all processes and wait until they have ended."""
        if self._lifeline[1].closed:
            return
        self._lifeline[1].close()
        for process in list((self._processes or {}).values()):
            process.kill()
            process.join()
        # This process also holds the far ends of both pipes. While they are open, the executor's threads wait forever:
        # one for the rest of a result that a worker was sending, one for a reader of the next batch.
        self._result_queue._writer.close()  # type: ignore[attr-defined]
        manager: Any = self._executor_manager_thread
        if manager is not None:
            manager.join(PATIENCE)
            if manager.is_alive():  # Python before 3.12 may leave the second pipe open
                self._call_queue._reader.close()  # type: ignore[attr-defined]
        super().shutdown(wait=True, cancel_futures=True)
        self._lifeline[0].close()


def _forked_pool(jobs: int, prepare: Callable[[], object]) -> _ProcessPool | None:
    """Call `prepare`, and return a pool of processes forked from this one; None if `prepare` has started a thread."""
    prepare()
    if not is_single_threaded():
        return None
    pool = _ProcessPool(jobs, "fork")
    pool.submit(os.getpid)  # forks all processes now, before any thread starts
    return pool


def _start_worker(lifeline: Connection, other_end: Connection) -> None:
    """Prepare a new worker process, and end it when its parent ends.

    `lifeline` and `other_end` are the two ends of a pipe. Only the parent keeps `other_end` open, so the pipe ends when
    the parent ends.
    """
    other_end.close()  # this process's own copy of the end
    keep_imports_lean()
    gc.freeze()  # exempt objects inherited from the parent from garbage collection

    def wait() -> None:
        with suppress(EOFError, OSError):
            lifeline.recv_bytes()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block Ctrl-C for threads and processes that are started in a ``with`` block."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
