"""Who does the work: the process itself, processes beside it, or a Dask cluster; and how to tell that one was lost."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from concurrent.futures.process import BrokenProcessPool, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from importlib.metadata import version
from multiprocessing.connection import Connection
from types import ModuleType
from typing import Any

from textcat.reading.records import Batch

# Of input that is done in the process itself, before others are started for more.
SMALL = 8 << 20


Work = Callable[[Batch], Any]


class Crew:
    """Something that takes work, and can be made anew when it has lost workers.

    Attributes
    ----------
    size : int
        How many batches are worked on at the same time.
    lost : tuple of exception types
        What a batch that has not been done raises if its worker was lost.
    """

    size = 1
    lost: tuple[type[BaseException], ...] = ()

    def submit(self, work: Work, batch: Batch) -> Future[Any]:
        """Take a batch, and return where its result will be."""
        raise NotImplementedError

    def renew(self) -> None:
        """Replace lost workers; batches that have not been done must be given anew."""

    def close(self) -> None:
        """End all workers now, whatever they are doing."""


class Alone(Crew):
    """The process itself, which works while it is given work."""

    lost = (MemoryError,)

    def submit(self, work: Work, batch: Batch) -> Future[Any]:
        """Work, and return a result that is there."""
        future: Future[Any] = Future()
        try:
            future.set_result(work(batch))
        except Exception as error:
            future.set_exception(error)
        return future


class Processes(Crew):
    """Processes of this machine.

    Parameters
    ----------
    size : int
    """

    lost = (BrokenProcessPool, CancelledError, MemoryError)

    def __init__(self, size: int):
        self.size = size
        self._context = multiprocessing.get_context("spawn")
        self._begin()

    def submit(self, work: Work, batch: Batch) -> Future[Any]:
        """Give work to the next process that is free."""
        with uninterrupted():  # at the first batch, the processes are started
            return self._pool.submit(work, batch)

    def renew(self) -> None:
        """End all processes; others are started at the next batch."""
        self.close()
        self._begin()

    def close(self) -> None:
        """End all processes."""
        self._lifeline.close()
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._end.close()

    def _begin(self) -> None:
        self._end, self._lifeline = self._context.Pipe(duplex=False)
        self._pool = ProcessPoolExecutor(self.size, self._context, initializer=_live, initargs=(self._end,))


class Growing(Crew):
    """The process itself, and processes beside it when there is more work than starting them takes.

    Parameters
    ----------
    size : int
    """

    lost = Processes.lost

    def __init__(self, size: int):
        self.size = size
        self._taken = 0
        self._alone, self._others = Alone(), None if size == 1 else Processes(size)

    def submit(self, work: Work, batch: Batch) -> Future[Any]:
        """Work, or give work to another process."""
        self._taken += batch.size
        if self._others is None or self._taken <= SMALL:
            return self._alone.submit(work, batch)
        return self._others.submit(work, batch)

    def renew(self) -> None:
        """End all other processes; others are started at the next batch."""
        if self._others is not None:
            self._others.renew()

    def close(self) -> None:
        """End all other processes."""
        if self._others is not None:
            self._others.close()


class Cluster(Crew):
    """The workers of a Dask cluster, which gives a lost worker's batches to others by itself, some times.

    Parameters
    ----------
    address : str
        Of its scheduler.

    Raises
    ------
    TextcatError
        As `textcat.cluster.connect`.
    """

    def __init__(self, address: str):
        from textcat.cluster import connect

        self._client = connect(address)
        from distributed import KilledWorker  # there is one, or nothing would be connected

        self.lost = (KilledWorker, CancelledError, MemoryError)
        self.size = sum(self._client.nthreads().values())
        # Equal batches are two batches.
        self._pool = self._client.get_executor(pure=False)

    def submit(self, work: Work, batch: Batch) -> Future[Any]:
        """Give work to the cluster."""
        return self._pool.submit(work, batch)

    def close(self) -> None:
        """Forget what the cluster has not done."""
        self._pool.shutdown(wait=False)
        self._client.close()


def crew(jobs: int, n_bytes: int | None, scheduler: str = "") -> Crew:
    """Return who is to do some work.

    Parameters
    ----------
    jobs : int
        Batches worked on at the same time; -1: one a core.
    n_bytes : int, optional
        Of the inputs as they are stored, if that is known.
    scheduler : str
        The address of a Dask cluster; its size is its own.
    """
    if scheduler:
        return Cluster(scheduler)
    size = jobs if jobs > 0 else max(_cores() + 1 + jobs, 1)
    return Growing(size) if n_bytes is None or n_bytes <= SMALL or size == 1 else Processes(size)


def _cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _live(end: Connection) -> None:
    """In a worker: end with the process that has started it, even if that was killed; and stay small."""
    # scikit-learn imports pandas where it is, and that pyarrow: 60 MB that are of no use here.
    sys.modules.setdefault("pandas", None)  # type: ignore[arg-type]
    _without_command_line_of_spacy()
    without_blas_threads()

    def wait() -> None:
        with suppress(EOFError, OSError):
            end.recv_bytes()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _without_command_line_of_spacy() -> None:
    """Spare half of the time that spaCy takes to be imported: it imports its commands, but for one name only."""
    if version("spacy").startswith("3.8.") and "spacy" not in sys.modules:
        commands, info = ModuleType("spacy.cli"), ModuleType("spacy.cli.info")
        info.info = None  # type: ignore[attr-defined]
        sys.modules.update({"spacy.cli": commands, "spacy.cli.info": info})


def without_blas_threads() -> None:
    """Let numpy, if it has not been loaded yet, start no threads for what is never asked of it: they wait busily."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let processes that are started in the block never see Ctrl-C: they inherit that it is blocked."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
