"""Copy a file with edits, compressed as it was, and put the copy in place atomically."""

import bz2
import codecs
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

from textcat.base import disk
from textcat.reading import STEP, ByteStream, FileState, UnreadableError, open_file, unmarked_encoding, unpacked_stream
from textcat.tagging.concepts import Edit


class ChangedError(Exception):
    """Raised if a file has changed since its documents were tagged."""


def _pack_gzip(file: Any) -> Any:
    return gzip.GzipFile("", "wb", fileobj=file, mtime=0)


def _pack_zstandard(file: Any) -> Any:
    import zstandard  # used to decompress the file

    return zstandard.ZstdCompressor(write_checksum=True).stream_writer(file, closefd=False)


# keyed by the magic bytes of compressed files
_PACKERS = {
    b"\x1f\x8b\x08": _pack_gzip,
    b"BZh": lambda file: bz2.BZ2File(file, "wb"),
    b"\xfd7zXZ\x00": lambda file: lzma.LZMAFile(file, "wb"),  # noqa: SIM115
    b"\x28\xb5\x2f\xfd": _pack_zstandard,
}


class Repacked:
    """Read the decompressed bytes of a file, and write a copy of it in the same compression.

    `stream` has the decompressed bytes of the file; `write` takes the new bytes, uncompressed.
    """

    def __init__(self, stored: ByteStream, name: str, file: Any) -> None:
        head = stored.peek(8)
        self.stream = unpacked_stream(stored, name)
        pack = next((pack for magic, pack in _PACKERS.items() if head.startswith(magic)), None)
        self._file, self._sink = file, file if self.stream is stored or pack is None else pack(file)
        self.write: Callable[[bytes], object] = self._sink.write

    def close(self) -> None:
        """Write the compressed bytes that are still buffered; do not close the file itself."""
        if self._sink is not self._file:
            self._sink.close()


class EditedStream:
    """Copy a stream to a file, and apply edits on the way.

    The positions of edits are those in the stream or, if `encoding` is not None, those in the stream after its
    conversion from this encoding to UTF-8. ChangedError is raised if the stream ends too early or is not in this
    encoding.
    """

    def __init__(self, stream: ByteStream, write: Callable[[bytes], object], encoding: str | None) -> None:
        self._stream, self._write, self._place = stream, write, 0
        # the current piece, in UTF-8 if it was converted, and how much of it is processed
        self._data, self._at = b"", 0
        self._stored, self._stored_at = b"", 0  # the current piece as stored, if that differs
        self._encoding = ""
        if encoding is not None:
            mark, self._encoding = unmarked_encoding(encoding, stream.peek(4))
            write(stream.read(len(mark)))
            self._decoder = codecs.getincrementaldecoder(self._encoding)()

    def apply(self, edits: Iterable[Edit]) -> None:
        """Copy the stream up to the end of the last edit, with the new bytes of each edit in place of the old ones."""
        for edit in edits:
            self._copy(edit.start, self._write)
            self._write(edit.data.decode().encode(self._encoding) if self._encoding else edit.data)
            self._copy(edit.end, len)

    def finish(self) -> None:
        """Copy the rest of the stream."""
        self._copy(None, self._write)

    def _copy(self, end: int | None, take: Callable[[bytes], object]) -> None:
        while end is None or self._place < end:
            if self._at == len(self._data) and not self._next_piece():
                if end is None:
                    return
                raise ChangedError
            n = len(self._data) - self._at
            data = self._data[self._at : self._at + (n if end is None else min(n, end - self._place))]
            self._at, self._place = self._at + len(data), self._place + len(data)
            take(self._as_stored(data) if self._encoding else data)

    def _next_piece(self) -> bool:
        """Read the next bytes; return whether there are any."""
        try:
            data = self._stream.read(STEP)
            if self._encoding:
                before = self._decoder.getstate()[0]
                text = self._decoder.decode(data, final=not data)
                self._stored, self._stored_at = before + data, 0
                self._data, self._at = text.encode(), 0
                return bool(text) or (bool(data) and self._next_piece())
        except (UnreadableError, UnicodeError) as error:
            raise ChangedError from error
        self._data, self._at = data, 0
        return bool(data)

    def _as_stored(self, data: bytes) -> bytes:
        """Convert UTF-8 back to the file's encoding; raise ChangedError unless the file has these bytes."""
        try:
            stored = data.decode().encode(self._encoding)
        except UnicodeError as error:
            raise ChangedError from error
        start, self._stored_at = self._stored_at, self._stored_at + len(stored)
        if self._stored[start : self._stored_at] != stored:
            raise ChangedError
        return stored


class FileCopy:
    """Copy a file to a temporary file, with edits; when the copy is complete, `sync` and `put` move it to its place.

    For the encoding, see `EditedStream`. With `is_stored`, the stored bytes are copied unchanged, even those of a
    compressed file, and there are no edits. ChangedError is raised if the file is not in the given state, and OSError
    if the copy cannot be written.
    """

    def __init__(
        self, state: FileState, temporary: Path, encoding: str | None = None, *, is_stored: bool = False
    ) -> None:
        self.state, self._temporary = state, temporary
        if _state_or_none(state.name) != state:
            raise ChangedError
        try:
            self._stored = open_file(state.name)
        except UnreadableError as error:
            raise ChangedError from error
        self._file: Any = io.BufferedWriter(disk.create(temporary))
        self._repacked = None if is_stored else Repacked(self._stored, state.name, self._file)
        stream, write = (
            (self._stored, self._file.write)
            if self._repacked is None
            else (self._repacked.stream, self._repacked.write)
        )
        self._edited = EditedStream(stream, write, encoding)

    def apply(self, edits: Iterable[Edit]) -> None:
        """Copy the file up to the end of the last edit, with the new bytes of each edit in place of the old ones."""
        self._edited.apply(edits)

    def finish(self) -> None:
        """Copy the rest of the file, so that the copy is complete."""
        self._edited.finish()
        if self._repacked is not None:
            self._repacked.close()
        self._file.flush()
        self._stored.close()

    def sync(self) -> None:
        """Sync the complete copy to disk, so that it survives a power failure."""
        disk.sync(self._file)
        self._file.close()

    def put(self, target: Path) -> None:
        """Rename the synced copy to its target path, whose folder must exist."""
        if _state_or_none(self.state.name) != self.state:
            raise ChangedError
        disk.rename(self._temporary, target)

    def close(self) -> None:
        """Close the files; the temporary copy is not deleted."""
        self._stored.close()
        with suppress(OSError):  # the error of a full disk, which was reported before
            self._file.close()


def state_of(path: str) -> FileState:
    """Return the name, size and time of a regular file; raise OSError for anything else."""
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is no regular file", path)
    return FileState(path, status.st_size, status.st_mtime_ns)


def _state_or_none(path: str) -> FileState | None:
    try:
        return state_of(path)
    except OSError:
        return None
