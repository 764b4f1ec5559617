"""Read a corpus in a separate process, while this one imports modules and counts the texts that arrive."""

import gc
import logging
import os
import pickle
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from queue import SimpleQueue
from threading import Thread
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from textcat.base.progress import cores, is_single_threaded

if TYPE_CHECKING:
    from textcat.reading.records import Record

_SENT_AT_ONCE = 256  # number of documents sent together
#: Exceptions raised by reading a `ForkedCorpus` whose process failed.
STREAM_ERRORS = (EOFError, pickle.UnpicklingError, TypeError, ValueError)


class ForkedCorpus:
    """Receive a corpus from a child process that reads it.

    Iterate over it to get the texts of documents, as dicts by zone, while the corpus is read; at the end, the attribute
    `corpus` is set. One of `STREAM_ERRORS` is raised if the child process failed or logged a warning.
    """

    corpus: Any  # the `textcat.corpus.documents.Corpus`; set at the end of the iteration

    def __init__(self, receiving: int, child: int):
        self._receiving, self._child = receiving, child
        self.show: Callable[..., object] = lambda **changes: None  # draws the progress of reading

    def __iter__(self) -> Iterator[dict[str, str]]:
        try:
            with open(self._receiving, "rb") as pipe:
                unpickler = pickle.Unpickler(pipe)  # the documents of the corpus refer to zones that were sent before
                while isinstance(received := unpickler.load(), list | dict):
                    if isinstance(received, list):
                        yield from received
                    else:
                        self.show(**received)
                self.corpus = received
        finally:
            os.waitpid(self._child, 0)


def read_forked(open_corpus: Callable[..., object]) -> ForkedCorpus | None:
    """Call `open_corpus` in a child process, and return the object that receives the corpus.

    Return None if forking this process would be unsafe, or no faster. If the child fails, the caller opens the corpus
    itself and gets the error.
    """
    if not is_single_threaded() or cores() < 2:
        return None
    try:
        receiving, sending = os.pipe()
        child = os.fork()
    except OSError:  # the limit on processes may be reached
        return None
    if child:
        os.close(sending)
        return ForkedCorpus(receiving, child)
    try:
        os.close(receiving)  # so that writing fails when there is no reader
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        warnings.simplefilter("error")
        refusing = logging.Handler(logging.WARNING)
        refusing.emit = _refuse  # type: ignore[method-assign]
        logging.getLogger("textcat").handlers = [refusing]
        gc.disable()
        with closing(_Outbox(sending)) as outbox:
            _send(open_corpus, pickle.Pickler(outbox, pickle.HIGHEST_PROTOCOL))
    finally:
        os._exit(0)  # any exception: the pipe reports it to the other process


class _Outbox(Thread):
    """Write bytes to a pipe in a thread, so that the caller never waits for the pipe's reader."""

    def __init__(self, pipe: int):
        super().__init__(daemon=True)
        self._pipe, self._parts = pipe, SimpleQueue[bytes]()
        self.start()

    def write(self, part: "bytes | memoryview") -> None:
        self._parts.put(bytes(part))

    def close(self) -> None:
        self._parts.put(b"")
        self.join()

    def run(self) -> None:
        try:
            with open(self._pipe, "wb") as file:
                while part := self._parts.get():
                    file.write(part)
        except OSError:
            os._exit(0)  # the reader no longer exists


def _send(open_corpus: Callable[..., object], pickler: pickle.Pickler) -> None:
    """Read a corpus, and send parts of it to the parent process by `pickler`.

    Sent are, while it is read, lists of the documents' texts by zone (title, body) and the progress; at the end, the
    corpus.
    """
    texts: list[dict[str, str]] = []

    def as_read(record: "Record") -> None:
        nonlocal texts
        if record.split != "unused":
            texts.append(record.zones)
        if len(texts) == _SENT_AT_ONCE:
            pickler.dump(texts)
            texts = []

    corpus = open_corpus(as_read=as_read, progress=SimpleNamespace(show=lambda **changes: pickler.dump(changes)))
    pickler.dump(texts)
    pickler.dump(corpus)


def _refuse(record: logging.LogRecord) -> None:
    raise RuntimeError(record.getMessage())
