"""Read the bytes of a file or pipe from start to end in bounded memory, and count them."""

import errno
import io
import lzma
import os
import re
import select
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from typing import IO, Any, NamedTuple

from textcat.reading.changes import FileMark
from textcat.reading.faults import FaultKind, UnreadableError, shrunk_error

STEP = 1 << 16  # bytes requested at a time from a stream that is not seekable, so that equal reads give equal progress
_COMPARED = 1 << 12  # number of first bytes of a file, by which overwriting during reading is detected
_AT_ONCE = 1 << 20  # maximum bytes taken from a pipe at a time
_DIGITS = 32  # of a checksum: nobody can construct another file with it
LINE_END = re.compile(rb"\n")
_NEVER = re.compile(rb"(?!)")
# bytes of a file inside an archive above which, if it must be seekable, it is copied to disk
IN_MEMORY_BYTES = 64 << 20
READ_ERRORS = (
    *(OSError, EOFError, zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile),
    RuntimeError,  # an unknown compression method of a zip
    *(ValueError, OverflowError, MemoryError),  # for headers with absurd numbers
)


def unreadable(error: BaseException) -> UnreadableError:
    """Return an UnreadableError with the reason of an error that occurred while a file was read."""
    if isinstance(error, UnreadableError):
        return error
    # zipfile and tarfile raise their own types for some system errors.
    for cause in (error, error.__context__):
        # A damaged file may lead to an impossible position (EINVAL).
        if isinstance(cause, OSError) and cause.strerror and cause.errno != errno.EINVAL:
            return UnreadableError(f"cannot be read ({cause.strerror})", FaultKind.ACCESS)
    detail = str(error) or type(error).__name__
    return UnreadableError(f"is damaged or incomplete ({detail})", FaultKind.DAMAGE, detail)


class ByteStream:
    """Read bytes from start to end.

    `take(n)` returns 1 to `n` bytes, and no bytes only at the end; by default the stream is empty.
    `consumed` returns how many bytes of the stored file have been used; by default, how many bytes `take` has returned.
    If `prompt` is True, available bytes are returned at once; otherwise the stream may wait for more.
    """

    file: IO[bytes] | None = None  # the underlying file, if it is seekable

    def __init__(
        self,
        take: Callable[[int], bytes] = lambda n: b"",
        consumed: Callable[[], int] | None = None,
        prompt: bool = False,
        close: Callable[[], object] = lambda: None,
    ) -> None:
        self.prompt, self.close = prompt, close
        self._take, self._consumed, self._n_taken = take, consumed, 0
        self.kept = b""  # taken but not read yet
        # only the error's text, because the exception would keep everything alive in a reference cycle
        self._fault: tuple[Any, ...] = ()

    def consumed(self) -> int:
        """Return how many bytes of the stored (perhaps compressed) file have been used so far."""
        return self._n_taken if self._consumed is None else self._consumed()

    def read(self, n: int) -> bytes:
        """Return 1 to `n` bytes, or no bytes at the end; raise UnreadableError if the rest cannot be read."""
        if not self.kept:
            self.kept = self._more()
        data, self.kept = self.kept[:n], self.kept[n:]
        return data

    def peek(self, n: int, until: re.Pattern[bytes] = _NEVER) -> bytes:
        """Return the next `n` bytes without consuming them.

        Fewer bytes are returned at the end of the stream, or as soon as the bytes match the pattern `until`.
        """
        while len(self.kept) < n and not until.search(self.kept):
            try:
                part = self._more()
            except UnreadableError:
                break  # the error is raised again when it matters
            if not part:
                break
            self.kept += part
        return self.kept[:n]

    def check(self) -> None:
        """Raise UnreadableError if the next bytes cannot be read; `peek` returns nothing then."""
        if not self.peek(1):
            self.read(1)

    def ends_within_line(self) -> bool:
        """Return whether the stream ends within a line because data were appended to the file after it was listed."""
        return False

    def sum_up(self) -> None:
        """Start to compute the checksum of the bytes that are read, if the stream is that of a file on disk."""

    def checksum(self) -> str:
        """Return the checksum of a file on disk that was read whole; "" if it is unknown, or the file has changed."""
        return ""

    def skip(self, n: int) -> None:
        """Skip `n` bytes, or all that are left."""
        while n > 0 and (passed := len(self.read(n))):
            n -= passed

    def _more(self) -> bytes:
        if self._fault:
            raise UnreadableError(*self._fault)
        try:
            data = self._take(STEP)
        except (UnreadableError, *READ_ERRORS) as error:
            self._fault = unreadable(error).args
            raise UnreadableError(*self._fault) from None
        self._n_taken += len(data)
        return data


class _FileStream(ByteStream):
    """Read a seekable file; if data were added after it was marked, read only the marked size.

    A call of `read` may return more bytes than `STEP`.
    """

    def __init__(self, file: IO[bytes], mark: FileMark | None) -> None:
        super().__init__(file.read, file.tell, close=file.close)
        self.file = self._file = file
        self._status = os.fstat(file.fileno()) if mark else None
        self._size = max(mark.size, self._status.st_size) if mark and self._status else 0
        self._limit = mark.size if mark and mark.is_of(file) else None
        self._summed = 0  # bytes from the start of the file
        self._sum: Any = None  # checksum of these bytes
        self._head = os.pread(file.fileno(), _COMPARED, 0) if self._size > STEP else b""

    def ends_within_line(self) -> bool:
        around = b"" if self._limit is None else os.pread(self._file.fileno(), 2, max(self._limit - 1, 0))
        return len(around) == 2 and not {*around} & {*b"\r\n"}

    def read(self, n: int) -> bytes:
        try:
            data = self._file.read(n if self._limit is None else min(n, max(self._limit - self._file.tell(), 0)))
            if not data and n and self._status:
                self._check_same(self._status)
            if self._sum and self._file.tell() - len(data) == self._summed:
                self._sum.update(data)
                self._summed += len(data)
            return data
        except READ_ERRORS as error:
            raise unreadable(error) from None

    def sum_up(self) -> None:
        self._sum = sha256()

    def checksum(self) -> str:
        if not self._sum or not self._status or self._limit != self._size:
            return ""
        try:  # the file was not read from its start, or not in order
            while data := os.pread(self._file.fileno(), min(_AT_ONCE, self._size - self._summed), self._summed):
                self._sum.update(data)
                self._summed += len(data)
        except OSError:
            return ""
        return self._sum.hexdigest()[:_DIGITS] if self._summed == self._size else ""

    def _check_same(self, before: os.stat_result) -> None:
        """Raise UnreadableError if the file has shrunk or was overwritten since it was opened; call it at the end."""
        descriptor = self._file.fileno()
        now = os.fstat(descriptor)
        expected = self._size if self._limit is None else self._limit
        if now.st_size < expected:
            raise shrunk_error(expected, now.st_size)
        # A file that is only appended to keeps its first bytes.
        if now.st_mtime_ns != before.st_mtime_ns and os.pread(descriptor, len(self._head), 0) != self._head:
            fault = "was replaced while it was read, so its parts may not belong together: start again when it is ready"
            raise UnreadableError(fault, FaultKind.CHANGED, "it was replaced while it was read", self._size)

    def peek(self, n: int, until: re.Pattern[bytes] = _NEVER) -> bytes:
        position, data = self._file.tell(), b""
        if self._status is not None:  # every call matters for small files
            with suppress(*READ_ERRORS):
                data = os.pread(self._file.fileno(), n, position)
            return data
        try:
            while len(data) < n and (part := self._file.read(n - len(data))):
                data += part
        except READ_ERRORS:
            pass  # the error is raised again when it matters
        with suppress(*READ_ERRORS):
            self._file.seek(position)
        return data

    def skip(self, n: int) -> None:
        self._file.seek(n, io.SEEK_CUR)


def file_stream(file: Any, mark: FileMark | None = None) -> ByteStream:
    """Return the stream of a file that is open for reading bytes; if the file is seekable, it is the stream's `file`.

    `mark` describes a file on disk as it was when it was found. Given a mark, data that were added since then are not
    read, and the stream raises UnreadableError at its end if the file has shrunk or was overwritten.
    """
    return _FileStream(file, mark) if file.seekable() else ByteStream(file.read, close=file.close)


def pipe_stream(pipe: Any, closes: bool = False) -> ByteStream:
    """Return the stream of a pipe, such as standard input; it returns available bytes without waiting for more.

    If `closes` is True, closing the stream closes the pipe.
    """
    # Not through its buffer, because Python cannot exit while a thread waits there.
    raw, ended = getattr(pipe, "raw", None), False
    read = pipe.read1 if raw is None else raw.read

    def take(n: int) -> bytes:
        nonlocal ended
        parts: list[bytes] = []
        while not ended and (not parts or (sum(map(len, parts)) < _AT_ONCE and _ready(pipe))):
            data = read(STEP)
            if data is None:  # the pipe is non-blocking
                select.select([pipe], [], [])
                continue
            parts.append(data)
            ended = not data  # a terminal signals its end only once
        return b"".join(parts)

    return ByteStream(take, prompt=True, close=pipe.close if closes else lambda: None)


def _ready(pipe: Any) -> bool:
    try:
        return bool(select.select([pipe], [], [], 0)[0])
    except (OSError, ValueError):
        return False  # not a file of the system, or a system that can wait for sockets only


class LookAhead:
    """Hold the next bytes of a stream as `data`; `offset` is the position of the first of them in the stream.

    `fill` reads more data, which are added at the end; `drop` removes data from the start. If `ended` is True, no more
    data follow.
    """

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self.data, self.offset = b"", 0
        self.ended = False
        self._fault: tuple[Any, ...] = ()

    @property
    def error(self) -> UnreadableError | None:
        """Return a new exception that says why the rest of the stream cannot be read; None if it can."""
        # Each call makes one, as an exception holds on to the frames of its traceback.
        return UnreadableError(*self._fault) if self._fault else None

    @property
    def whole(self) -> bool:
        """Return whether the stream has ended without an error, so that its last byte is in the data."""
        return self.ended and not self._fault

    def fill(self, size: int) -> None:
        """Read until the data have `size` bytes, or to the end; from a pipe, read only the available bytes."""
        parts, n = [self.data] if self.data else [], len(self.data)
        while n < size and not self.ended:
            try:
                parts.append(self._stream.read(size - n))
            except UnreadableError as error:
                self._fault, self.ended = error.args, True
                break
            n += len(parts[-1])
            self.ended = not parts[-1]
            if self._stream.prompt:
                break
        self.data = b"".join(parts)

    def ends_within_line(self) -> bool:
        """Return whether the data end within a line because data were appended to the file after it was listed."""
        return self.ended and self._stream.ends_within_line()

    def ahead(self, start: int, size: int) -> bytes:
        """Return up to `size` bytes that begin `start` bytes after the start of the data; the stream does not advance.

        Return b"" if the stream is not seekable or has ended, or if `start` lies within the data.
        """
        file, distance = self._stream.file, start - len(self.data)
        if file is None or distance < 0 or self.ended:
            return b""
        position = file.tell()
        try:
            file.seek(position + distance)
            return file.read(size)
        except READ_ERRORS:
            return b""  # the error is raised again when it matters
        finally:
            file.seek(position)

    def drop(self, n: int) -> bytes:
        """Remove `n` bytes from the start of the data, and return them."""
        dropped, self.data = self.data[:n], self.data[n:]
        self.offset += n
        return dropped

    def move_to(self, offset: int) -> None:
        """Move forward to an offset of the stream: drop all data before it, and skip bytes that were not read."""
        n = offset - self.offset
        if n > len(self.data):
            self._stream.skip(n - len(self.data))
            self.data, self.offset = b"", offset
        else:
            self.drop(n)

    def find(self, end_of: Callable[[bytes, bool], int], size: int, most: int, fit: Callable[[int], int] = int) -> int:
        """Read data until ``end_of(data, is_complete)`` returns a length that is not 0, and return this length.

        `is_complete` is True if the stream has ended without an error. Return 0 if the stream ends, or the data reach
        `most` bytes, before a length is found. Before each call, the data are filled to ``fit(size)`` bytes; after it,
        `size` is doubled.
        """
        while True:
            self.fill(fit(size))
            n = end_of(self.data, self.whole)
            if n or self.ended or len(self.data) >= most:
                return n
            size = min(2 * size, most)


def whole_bytes(stream: ByteStream, most: int) -> bytes:
    """Return all bytes of a stream; raise UnreadableError if there are more than `most`."""
    parts, left = [], most + 1
    while left and (part := stream.read(left)):
        parts.append(part)
        left -= len(part)
    if not left:
        raise UnreadableError(f"has more than {most} bytes, the most that a record may have: split it or leave it out")
    return b"".join(parts)


class StoredBytes(NamedTuple):
    """The range of bytes of a stored file from which some content is read."""

    start: int
    end: int

    def at(self, share: float) -> int:
        """Return the position in the file at a share of the range, from 0 (its start) to 1 (its end)."""
        return self.start + int((self.end - self.start) * share)


def seekable_file(stream: ByteStream) -> tuple[IO[bytes], StoredBytes]:
    """Return a seekable file with all bytes of a stream, and the range of bytes of the file on disk that has them.

    The file on disk may be compressed; the returned file is not. If the stream is not seekable, its bytes are copied
    into memory or, if they are many, to the disk.
    """
    start, file = stream.consumed(), stream.file
    if file is not None:
        try:
            return file, StoredBytes(start, file.seek(0, io.SEEK_END))
        except READ_ERRORS as error:
            raise unreadable(error) from None
    spool = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY_BYTES)  # noqa: SIM115  # it goes when nothing refers to it
    while data := stream.read(STEP):
        spool.write(data)
    spool.seek(0)
    return spool, StoredBytes(start, stream.consumed())
