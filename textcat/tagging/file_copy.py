"""Copy a file with changes at some places, packed as it was, and put the copy in place in one step."""

import bz2
import errno
import gzip
import io
import lzma
import os
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from textcat import folders
from textcat.reading import STEP, FileState, UnreadableError, open_file, unpacked_stream
from textcat.tagging.concepts import Edit


class ChangedError(Exception):
    """Report a file that is not as it was when its documents were tagged."""


def _pack_gzip(file: Any) -> Any:
    return gzip.GzipFile("", "wb", fileobj=file, mtime=0)


def _pack_zstandard(file: Any) -> Any:
    import zstandard  # which has unpacked the file

    return zstandard.ZstdCompressor(write_checksum=True).stream_writer(file, closefd=False)


# By the first bytes of packed files.
_PACKERS = {
    b"\x1f\x8b\x08": _pack_gzip,
    b"BZh": lambda file: bz2.BZ2File(file, "wb"),
    b"\xfd7zXZ\x00": lambda file: lzma.LZMAFile(file, "wb"),  # noqa: SIM115
    b"\x28\xb5\x2f\xfd": _pack_zstandard,
}


class FileCopy:
    """Copy a file to a temporary one, edit by edit; then `finish`, `sync` and `put` give it its name.

    ChangedError is raised if the file is not in the given state, and OSError if the copy cannot be written.
    """

    def __init__(self, state: FileState, temporary: Path) -> None:
        self._state, self._temporary, self._place = state, temporary, 0
        if _state_or_none(state.name) != state:
            raise ChangedError
        try:
            self._stored = open_file(state.name)
            head = self._stored.peek(8)
            self._stream = unpacked_stream(self._stored, state.name)
        except UnreadableError as error:
            raise ChangedError from error
        pack = next((pack for magic, pack in _PACKERS.items() if head.startswith(magic)), None)
        self._file: Any = io.BufferedWriter(folders.create(temporary))
        self._sink: Any = self._file if self._stream is self._stored or pack is None else pack(self._file)

    def apply(self, edits: Iterable[Edit]) -> None:
        """Copy the bytes up to each edit, and what the edit puts in place of the next bytes."""
        for edit in edits:
            self._copy(edit.start, self._sink.write)
            self._sink.write(edit.data)
            self._copy(edit.end, len)

    def _copy(self, end: int | None, take: Callable[[bytes], object]) -> None:
        while end is None or self._place < end:
            try:
                data = self._stream.read(STEP if end is None else min(STEP, end - self._place))
            except UnreadableError as error:
                raise ChangedError from error
            if not data and end is None:
                return
            if not data:
                raise ChangedError
            self._place += len(data)
            take(data)

    def finish(self) -> None:
        """Copy the rest of the file."""
        self._copy(None, self._sink.write)
        if self._sink is not self._file:
            self._sink.close()
        self._file.flush()
        self._stored.close()

    def sync(self) -> None:
        """Wait until the copy, which is finished, would survive a loss of power."""
        folders.sync(self._file)
        self._file.close()

    def put(self, target: Path) -> None:
        """Rename the copy, which is synced, to its target; the folder of that must exist."""
        if _state_or_none(self._state.name) != self._state:
            raise ChangedError
        folders.rename(self._temporary, target)

    def close(self) -> None:
        """Close the files; the temporary one stays."""
        self._stored.close()
        with suppress(OSError):  # of a full disk, which was told before
            self._file.close()


def state_of(path: str) -> FileState:
    """Return the name, size and time of a regular file; raise OSError if it is none."""
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is no regular file", path)
    return FileState(path, status.st_size, status.st_mtime_ns)


def _state_or_none(path: str) -> FileState | None:
    try:
        return state_of(path)
    except OSError:
        return None
