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
from textcat.reading.records import Piece
from textcat.tagging.workers import Crew, Work, uninterrupted

log = logging.getLogger(__name__)

_LOSSES = 3  # of workers, until a piece is held to be what kills them
# Pieces under way for each worker: while one is worked on, the next has been read and the last is being written.
_EACH = 3


def in_order(pieces: Iterable[Piece], work: Work, crew: Crew) -> Generator[tuple[Piece, Any]]:
    """Let a crew work on pieces, which are read in a thread, and give each with its result as soon as it is its turn.

    Where a worker was lost, the pieces that were under way are done again, one at a time, so that one which kills its
    workers is found.

    Yields
    ------
    piece : Piece
    result : Any

    Raises
    ------
    TextcatError
        If a piece has lost its worker for the third time.
    Exception
        What reading or working has raised, after all pieces before.
    """
    reader = _Reader(pieces, _EACH * crew.size)
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
                yield task.piece, task.future.result()
                reader.room.release()
        if ended.error is not None:
            raise ended.error
    finally:
        reader.stop()


class _End(NamedTuple):
    """That nothing more will be read, and why if it is an error."""

    error: BaseException | None = None


class _Reader:
    """A thread that reads as many pieces ahead as there is room for.

    Attributes
    ----------
    news : SimpleQueue of Piece, _End or None
        What has been read; None: some piece has been done.
    room : Semaphore
        To be released for every piece that is done with.
    """

    def __init__(self, pieces: Iterable[Piece], room: int):
        self.news: SimpleQueue[Piece | _End | None] = SimpleQueue()
        self.room = threading.Semaphore(room)
        self._stopped = False
        with uninterrupted():
            threading.Thread(target=self._read, args=(pieces,), daemon=True).start()

    def stop(self) -> None:
        """Let the thread end after what it is just reading."""
        self._stopped = True
        self.room.release()

    def _read(self, pieces: Iterable[Piece]) -> None:
        try:
            self.room.acquire()
            for piece in pieces:
                self.news.put(piece)
                self.room.acquire()
                if self._stopped:
                    return
            self.news.put(_End())
        except BaseException as error:
            self.news.put(_End(error))


class _Task:
    """A piece, and where its result will be."""

    def __init__(self, piece: Piece, work: Work, crew: Crew, news: SimpleQueue[Any]):
        self.piece = piece
        self._work, self._crew, self._news = work, crew, news
        self._losses = 0
        self.begin()

    def begin(self) -> None:
        """Give the piece to the crew."""
        try:
            self.future = self._crew.submit(self._work, self.piece)
        except self._crew.lost as error:  # it is known already that a worker was lost
            self.future = Future()
            self.future.set_exception(error)
        news = self._news  # not the task itself: a circle would keep the piece long after it is done
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
        """Do the piece again while nothing else is done that has been lost, too.

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
        first = self.piece.chunks[0]
        return (
            f"A worker was lost {_LOSSES} times at the documents from {first.source}:{first.position} on: one of them "
            "may take more memory than there is. Move it elsewhere and start anew with --restart, or find more memory "
            "or fewer --jobs and go on with the same command."
        )


def _do_again(tasks: Iterable[_Task], crew: Crew) -> None:
    log.warning("A worker was lost; what it was doing is done again.")
    crew.renew()  # then it is known of all pieces whether they are lost
    for task in tasks:
        if task.is_lost():
            task.do_alone()
