"""Pieces → what a crew made of them, in their order, while a bounded number of them is under way."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import CancelledError, Future, wait
from queue import SimpleQueue
from typing import Any, NamedTuple

from textcat.errors import TextcatError
from textcat.reading.records import Batch
from textcat.tagging.workers import Crew, Work, uninterrupted

log = logging.getLogger(__name__)

_LOSSES = 3  # of workers, until a batch is held to be what kills them
# Batches under way for each worker: while one is worked on, the next has been read and the last is being written.
_EACH = 3


def in_order(batches: Iterable[Batch], work: Work, crew: Crew) -> Generator[tuple[Batch, Any]]:
    """Let a crew work on batches, which are read in a thread, and give each with its result as soon as it is its turn.

    Where a worker was lost, the batches that were under way are done again, one at a time, so that one which kills its
    workers is found.

    Yields
    ------
    batch : Batch
    result : Any

    Raises
    ------
    TextcatError
        If a batch has lost its worker for the third time.
    Exception
        What reading or working has raised, after all batches before.
    """
    reader = _Reader(batches, _EACH * crew.size)
    tasks: deque[_Task] = deque()
    ended: _End | None = None
    try:
        while ended is None or tasks:
            news = reader.news.get()
            if isinstance(news, _End):
                ended = news
            elif news is not None:
                tasks.append(_Task(news, work, crew, reader.news))
            while tasks and tasks[0].future.done():
                if tasks[0].is_lost():
                    _do_again(tasks, crew)
                task = tasks.popleft()
                yield task.batch, task.future.result()
                reader.room.release()
        if ended.error is not None:
            raise ended.error
    finally:
        reader.stop()


class _End(NamedTuple):
    """That nothing more will be read, and why if it is an error."""

    error: BaseException | None = None


class _Reader:
    """A thread that reads as many batches ahead as there is room for.

    Attributes
    ----------
    news : SimpleQueue of Batch, _End or None
        What has been read; None: some batch has been done.
    room : Semaphore
        To be released for every batch that is done with.
    """

    def __init__(self, batches: Iterable[Batch], room: int):
        self.news: SimpleQueue[Batch | _End | None] = SimpleQueue()
        self.room = threading.Semaphore(room)
        self._stopped = False
        with uninterrupted():
            threading.Thread(target=self._read, args=(batches,), daemon=True).start()

    def stop(self) -> None:
        """Let the thread end after what it is just reading."""
        self._stopped = True
        self.room.release()

    def _read(self, batches: Iterable[Batch]) -> None:
        try:
            self.room.acquire()
            for batch in batches:
                self.news.put(batch)
                self.room.acquire()
                if self._stopped:
                    return
            self.news.put(_End())
        except BaseException as error:
            self.news.put(_End(error))


class _Task:
    """A batch, and where its result will be."""

    def __init__(self, batch: Batch, work: Work, crew: Crew, news: SimpleQueue[Any]):
        self.batch = batch
        self._work, self._crew, self._news = work, crew, news
        self._losses = 0
        self.begin()

    def begin(self) -> None:
        """Give the batch to the crew."""
        try:
            self.future = self._crew.submit(self._work, self.batch)
        except self._crew.lost as error:  # it is known already that a worker was lost
            self.future = Future()
            self.future.set_exception(error)
        news = self._news  # not the task itself: a circle would keep the batch long after it is done
        self.future.add_done_callback(lambda _: news.put(None))

    def is_lost(self) -> bool:
        """Tell whether it is not done because its worker was lost."""
        if not self.future.done():
            return False
        try:
            return isinstance(self.future.exception(), self._crew.lost)
        except CancelledError as error:
            return isinstance(error, self._crew.lost)

    def do_alone(self) -> None:
        """Do the batch again while nothing else is done that has been lost, too.

        Raises
        ------
        TextcatError
            If its worker is lost each time.
        """
        while self.is_lost():
            self._losses += 1
            if self._losses == _LOSSES:
                raise TextcatError(self._told())
            self.begin()
            wait([self.future])
            if self.is_lost():
                self._crew.renew()

    def _told(self) -> str:
        first = self.batch.blocks[0]
        return (
            f"A worker was lost {_LOSSES} times at the documents from {first.source}:{first.position} on: one of them "
            "may take more memory than there is. Move it elsewhere and start anew with --restart, or find more memory "
            "or fewer --jobs and go on with the same command."
        )


def _do_again(tasks: Iterable[_Task], crew: Crew) -> None:
    log.warning("A worker was lost; what it was doing is done again.")
    crew.renew()  # then it is known of all batches whether they are lost
    for task in tasks:
        if task.is_lost():
            task.do_alone()
