"""Record the state of files and folders when they are listed, and detect later changes."""

import hashlib
import os
from array import array
from bisect import bisect_left
from collections.abc import Iterable
from enum import IntEnum, auto
from typing import IO, NamedTuple
from zlib import crc32

_HEAD = 1 << 12  # number of first bytes of a file, by which overwriting is detected
MOST_FILES = 1 << 17  # maximum number of files of a folder that are remembered, so that memory stays bounded


class ChangeKind(IntEnum):
    """The ways in which an input may have changed since it was listed."""

    GREW = auto()  # bytes or files were added, and everything listed is still there
    SHRANK = auto()
    REPLACED = auto()  # replaced by another file, or overwritten
    GONE = auto()


class Change(NamedTuple):
    """A change of an input since it was listed."""

    kind: ChangeKind
    before: int | None = None  # size in bytes; None if unknown
    now: int | None = None
    files: int = 0  # number of files that are missing from a folder


class FileMark(NamedTuple):
    """Size, time, inode and first bytes of a file, by which later changes are detected."""

    size: int
    modified: int  # nanoseconds
    inode: int
    head: bytes = b""  # checksum of the first bytes; b"" if unknown

    def is_of(self, file: IO[bytes]) -> bool:
        """Return whether an open file is the marked file, unchanged or with data added at its end."""
        status = os.fstat(file.fileno())
        if status.st_ino != self.inode or status.st_size < self.size:
            return False
        return not self.head or status.st_mtime_ns == self.modified or _head_of(file, self.size) == self.head

    def change(self, path: str) -> Change | None:
        """Return how the file has changed, or None if it has not."""
        try:
            with open(path, "rb", buffering=0) as file:
                status = os.fstat(file.fileno())
                if status.st_ino == self.inode and (status.st_size, status.st_mtime_ns) == self[:2]:
                    return None
                grew = status.st_size > self.size and self.is_of(file)
        except OSError:
            return Change(ChangeKind.GONE, self.size)
        shrank = status.st_ino == self.inode and status.st_size < self.size
        kind = ChangeKind.GREW if grew else ChangeKind.SHRANK if shrank else ChangeKind.REPLACED
        return Change(kind, self.size, status.st_size)


def mark_file(path: str, status: os.stat_result) -> FileMark:
    """Return what identifies a file and its content: its size, its times, its inode and its first bytes."""
    head = b""
    try:
        with open(path, "rb", buffering=0) as file:
            head = _head_of(file, status.st_size)
    except OSError:
        pass  # the error is reported when the file is read
    return FileMark(status.st_size, status.st_mtime_ns, status.st_ino, head)


def _head_of(file: IO[bytes], size: int) -> bytes:
    return hashlib.blake2b(os.pread(file.fileno(), min(size, _HEAD), 0), digest_size=8).digest()


class FileState(NamedTuple):
    """The name and size of a file, and a value, such as its time, that changes when the file changes."""

    name: str  # including the name of its source
    size: int  # in bytes; -1: unknown; of a blocked file, a negative number that changes with the reason
    state: int | str | None  # time of the last change, or another value that changes with the file; None: it is blocked

    @property
    def is_blocked(self) -> bool:
        """Return whether the file cannot be read: a folder that cannot be listed, a dangling link, or a device.

        A file that may not be accessed is blocked, too.
        """
        return self.state is None


class FolderMarks:
    """Marks of the files of a folder (size, time and inode); none if the folder has very many files.

    `files` has the name of each file with its status, or with the reason if it is blocked. `states` has its size and
    time, in the order of the folder.
    """

    def __init__(self, files: Iterable[tuple[str, os.stat_result | str]]) -> None:
        marks: list[tuple[int, int, int, int]] = []
        self.states: list[FileState] = []
        for name, status in files:
            if len(self.states) == MOST_FILES:
                break
            if isinstance(status, str):
                self.states.append(FileState(name, -1 - crc32(status.encode("utf-8", "surrogateescape")), None))
                continue
            inode = status.st_ino & (2**63 - 1)
            marks.append((hash(name), status.st_size, status.st_mtime_ns, inode))
            self.states.append(FileState(name, status.st_size, status.st_mtime_ns))
        self.is_whole = len(self.states) < MOST_FILES
        if not self.is_whole:
            marks, self.states = [], []
        columns = zip(*sorted(marks), strict=True) if marks else ((), (), (), ())
        self._names, self._sizes, self._times, self._inodes = (array("q", column) for column in columns)

    def find(self, name: str) -> FileMark | None:
        """Return the mark of a file, or None if there was no file of this name."""
        i = bisect_left(self._names, hash(name))
        is_there = i < len(self._names) and self._names[i] == hash(name)
        return FileMark(self._sizes[i], self._times[i], self._inodes[i]) if is_there else None

    def change(self, files: Iterable[tuple[str, os.stat_result]]) -> Change | None:
        """Return how the folder has changed, given its present files with their statuses; None if it has not."""
        before, now, n_kept, kinds = sum(self._sizes), 0, 0, set()
        for name, status in files:
            now += status.st_size
            mark = self.find(name)
            n_kept += mark is not None
            if mark is None or (status.st_size > mark.size and status.st_ino & (2**63 - 1) == mark.inode):
                kinds.add(ChangeKind.GREW)
            elif status.st_ino & (2**63 - 1) != mark.inode:
                kinds.add(ChangeKind.REPLACED)
            elif status.st_size < mark.size:
                kinds.add(ChangeKind.SHRANK)
            elif status.st_mtime_ns != mark.modified:
                kinds.add(ChangeKind.REPLACED)
        gone = len(self._names) - n_kept
        kind = ChangeKind.SHRANK if gone else max(kinds - {ChangeKind.REPLACED}, default=None)
        if ChangeKind.REPLACED in kinds and kind != ChangeKind.SHRANK:
            kind = ChangeKind.REPLACED
        return None if kind is None else Change(kind, before, now, gone)
