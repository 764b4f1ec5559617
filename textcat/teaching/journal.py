"""A session's folder: an append-only journal, synced line by line, that one process at a time can write."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from textcat.base import disk
from textcat.base.disk import UNFINISHED
from textcat.base.errors import TextcatError
from textcat.base.journal import Journal, journal_line, read_journal
from textcat.base.records import MISFITS, entries_of, read_record
from textcat.recipes.recipe import RankerSettings
from textcat.teaching.steps import SessionStep, read_step

log = logging.getLogger(__name__)

JOURNAL, LOCK = "session.jsonl", ".lock"
_MARK, _FORMAT = "textcat session", 3


@dataclass(frozen=True)
class SessionHeader:
    """Facts about the pool of a session, and the session's settings."""

    pool: str  # the pool's folder, relative to the session's if that is on disk; "": the pool is in memory
    documents: int
    sum: int | str  # a checksum that identifies the pool
    seed: int
    overlap: float  # the share of documents that each person is asked about
    ranker: RankerSettings


class SessionJournal:
    """The lines of a session: a header, followed by the steps in order.

    Each line is a JSON object with its number and a checksum; a gap in the numbers shows that a line is missing. When
    `append` returns, the line is on disk, and survives a power failure. A killed process may leave an incomplete last
    line, for which `append` never returned; the line is cut off when the session is opened again. Without a folder, the
    lines are kept in memory only.
    """

    def __init__(self, folder: Path | None, header: SessionHeader, steps: list[SessionStep]):
        self.folder, self.header, self.steps = folder, header, steps
        self._file: Any = None
        self._lock: Any = None
        self._length = 0

    @classmethod
    def create(cls, folder: Path | None, header: SessionHeader) -> SessionJournal:
        """Start a journal in a folder, or in memory if `folder` is None; a missing folder is created.

        Raise TextcatError if the folder already has a journal.
        """
        journal = cls(folder, header, [])
        if folder is None:
            return journal
        with _errors_as_sentences(folder):
            folder.mkdir(parents=True, exist_ok=True)
            journal._lock = _locked(folder)
            path = folder / JOURNAL
            try:
                if path.exists():
                    raise TextcatError(f"{folder} holds a session already: open it, or name another folder.")
                with disk.replacing(path, folder / (JOURNAL + UNFINISHED)) as file:
                    disk.write_all(file, journal_line({_MARK: _FORMAT, **asdict(header)}))
                journal._begin_to_write(path.stat().st_size)
            except BaseException:
                journal.close()
                raise
        return journal

    @classmethod
    def open(cls, folder: Path, *, read_only: bool = False) -> SessionJournal:
        """Open the journal of a folder, for writing or (`read_only`) only for reading.

        Raise TextcatError if there is no journal, it is damaged, or (for writing) another process has it open.
        """
        if not is_session(folder):
            raise TextcatError(
                f"{folder} is no session, as it has no {JOURNAL}: `textcat teach ARCHIVE --topic NAME` starts one."
            )
        with _errors_as_sentences(folder):
            lock = None if read_only else _locked(folder)
            try:
                read = read_journal(folder / JOURNAL)
                assert read is not None
                journal = cls(folder, *_checked(folder / JOURNAL, read))
                if not read_only:
                    if read.length < (folder / JOURNAL).stat().st_size:
                        log.warning(
                            "%s ends with an incomplete line, left by a crash, which is dropped: check that the last "
                            "answer is there, and give it again if not.",
                            folder / JOURNAL,
                        )
                        disk.truncate_file(folder / JOURNAL, read.length)
                    journal._begin_to_write(read.length)
            except BaseException:
                if lock is not None:
                    lock.release()
                raise
        journal._lock = lock
        return journal

    def _begin_to_write(self, length: int) -> None:
        assert self.folder is not None
        self._file, self._length = disk.reopen(self.folder / JOURNAL), length

    def append(self, step: SessionStep) -> SessionStep:
        """Add a step as the next line; return it with its number when the line is on disk."""
        n = len(self.steps)
        step = replace(step, step=n + 1)
        if self.folder is None:
            self.steps.append(step)
        else:
            if self._file is None:
                raise TextcatError(f"The session {self.folder} is open for reading only, or closed: open it to write.")
            data = journal_line(entries_of(step))
            with _errors_as_sentences(self.folder):
                try:
                    disk.write_all(self._file, data)
                    disk.sync(self._file)
                    self.steps.append(step)
                except BaseException:  # also after Ctrl-C
                    del self.steps[n:]
                    self._cut_incomplete_line()
                    raise
            self._length += len(data)
        return step

    def _cut_incomplete_line(self) -> None:
        """Cut off an incomplete line at the end of the file, so that the next line begins on a line of its own.

        If this fails, too, close the file: later calls of `append` raise TextcatError.
        """
        file, self._file = self._file, None
        with suppress(OSError):
            os.ftruncate(file.fileno(), self._length)
            os.fsync(file.fileno())
            self._file = file
        if self._file is None:
            file.close()

    @contextmanager
    def closing_on_error(self) -> Iterator[None]:
        """Close the journal if the `with` block raises."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file and release the lock, so that other processes can write."""
        if self._file is not None:
            self._file.close()
        if self._lock is not None:
            self._lock.release()
        self._file = self._lock = None


def is_session(folder: str | os.PathLike[str]) -> bool:
    """Return whether a folder holds a session."""
    return Path(folder, JOURNAL).is_file()


def _checked(path: Path, read: Journal) -> tuple[SessionHeader, list[SessionStep]]:
    damaged = f"{path} is damaged, and what follows the damage cannot be trusted: restore the file from a backup"
    if not read.lines:
        raise TextcatError(f"{damaged}, or start a new session.")
    header, *lines = read.lines
    version = header.pop(_MARK, None)
    if type(version) is not int:
        raise TextcatError(f"{path} is not the journal of a session: name another folder.")
    if version != _FORMAT:
        raise TextcatError(
            f"{path} was made by another version of textcat, with session format {version} instead of {_FORMAT}: start "
            "a new session."
        )
    for number, line in enumerate(lines, start=1):
        if line.get("step") != number:
            raise TextcatError(f"{damaged} (line {number + 1} is not step {number}).")
    if read.damaged:
        raise TextcatError(f"{damaged} (line {len(lines) + 2}).")
    try:
        checked = read_record(SessionHeader, header, f"in the first line of {path}")
    except MISFITS as error:
        raise TextcatError(f"{path} begins with a line that no session has ({error}): start a new session.") from error
    try:
        return checked, [read_step(line) for line in lines]
    except MISFITS as error:
        raise TextcatError(f"{path} has a line that no session has ({error}): start a new session.") from error


def _locked(folder: Path) -> Any:
    refusal = f"Another process has the session {folder} open: stop it, or let several people use its page."
    return disk.acquire_lock(folder / LOCK, refusal, thread_local=False)  # a server may close it in another thread


def _errors_as_sentences(folder: Path) -> AbstractContextManager[None]:
    return disk.raise_write_errors(
        f"the session {folder}", "earlier answers are saved; check the disk, and answer again"
    )
