"""Read the bytes of a file or pipe from start to end in bounded memory, unpack them, and count them."""

import bz2
import codecs
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
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from itertools import chain
from typing import IO, Any, NamedTuple

import numpy as np

from textcat.base.errors import TextcatError, install_hint
from textcat.reading.changes import FileMark
from textcat.reading.records import FaultKind, UnreadableError, encoding_error, is_like_ascii, shrunk_error

STEP = 1 << 16  # bytes asked for at a time, of what cannot be sought in, so that the same reads give the same progress
_COMPARED = 1 << 12  # bytes at the start of a file by which one that is overwritten while it is read is recognised
_AT_ONCE = 1 << 20  # bytes taken from a pipe at a time, if so many are there
_DIGITS = 32  # of a checksum: nobody can make a file with the sum of another one
_LINE_END = re.compile(rb"\n")
_MARKS = (  # UTF-32's mark begins with UTF-16's
    *((codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32")),
    *((codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16")),
)
# How XML and JSON begin in UTF-16.
_UTF_16_LE, _UTF_16_BE = re.compile(rb"[<{\[]\0[ -~\r\n]\0"), re.compile(rb"\0[<{\[]\0[ -~\r\n]")
_RETURN, _LINE_FEED = b"\r\n"
_LONE_RETURN = re.compile(rb"\r(?!\n)")
_LOOKED_AT = 1 << 16  # bytes in which a line feed must occur if carriage returns are not to end lines
_NEVER = re.compile(rb"(?!)")
IN_MEMORY_BYTES = 64 << 20  # bytes of a file inside an archive; what is larger and must be sought in lies on the disk
_LARGEST_RATIO = 1000  # a file that unpacks to more times its size is a bomb
FLOOR = 16 << 20  # bytes that anything may unpack to
_LZMA_MEMORY = 256 << 20
_BITE = 1 << 10  # bytes given to Zstandard at a time, which may become 32 MiB
#: How each record of a WARC begins; and how the record begins that stands in place of a damaged member.
WARC = b"WARC/"
DAMAGED_MEMBER = b"WARC/1.1\r\nWARC-Type: damaged\r\n"
_NAMED_WARC = re.compile(r"\.(?:warc|wet)\.[a-z0-9]+$")
_LOOKED_BACK = 1 << 20  # bytes of a damaged member among which the next one may begin
_PROBED = 1 << 18  # bytes from which the start of a member is unpacked: Zstandard may need a block of 128 KiB
_MOST_TRIALS = 10_000  # places behind damage at which a member may begin, for the time that each takes
READ_ERRORS = (
    *(OSError, EOFError, zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile),
    RuntimeError,  # a zip's unknown way to compress
    *(ValueError, OverflowError, MemoryError),  # of headers with absurd numbers
)


def unreadable(error: BaseException) -> UnreadableError:
    """Return an UnreadableError with the reason of an error that occurred while a file was read."""
    if isinstance(error, UnreadableError):
        return error
    # zipfile and tarfile raise their own errors for some of the system's.
    for cause in (error, error.__context__):
        # A damaged file may ask for a place that there cannot be (EINVAL).
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

    file: IO[bytes] | None = None  # the file whose bytes these are, if it is seekable

    def __init__(
        self,
        take: Callable[[int], bytes] = lambda n: b"",
        consumed: Callable[[], int] | None = None,
        prompt: bool = False,
        close: Callable[[], object] = lambda: None,
    ) -> None:
        self.prompt, self.close = prompt, close
        self._take, self._consumed, self._n_taken = take, consumed, 0
        self._kept = b""  # taken, but not read yet
        self._fault: tuple[Any, ...] = ()  # the error itself would hold on to all that was being read, in a circle

    def consumed(self) -> int:
        """Return how many bytes of the stored (perhaps compressed) file have been used so far."""
        return self._n_taken if self._consumed is None else self._consumed()

    def read(self, n: int) -> bytes:
        """Return 1 to `n` bytes, or no bytes at the end; raise UnreadableError if the rest cannot be read."""
        if not self._kept:
            self._kept = self._more()
        data, self._kept = self._kept[:n], self._kept[n:]
        return data

    def peek(self, n: int, until: re.Pattern[bytes] = _NEVER) -> bytes:
        """Return the next `n` bytes without consuming them.

        Fewer bytes are returned at the end of the stream, or as soon as the bytes match the pattern `until`.
        """
        while len(self._kept) < n and not until.search(self._kept):
            try:
                part = self._more()
            except UnreadableError:
                break  # it is raised again where it matters
            if not part:
                break
            self._kept += part
        return self._kept[:n]

    def check(self) -> None:
        """Raise UnreadableError if the next bytes cannot be read, of which `peek` says nothing."""
        if not self.peek(1):
            self.read(1)

    def ends_within_line(self) -> bool:
        """Return whether this stream ends within a line because data were added to the file after it was found."""
        return False

    def sum_up(self) -> None:
        """Take the checksum of what is read from now on, if this is a file on disk."""

    def checksum(self) -> str:
        """Return the checksum of a whole file on disk; "" if it is not known, or the file has changed since found."""
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
        self._sum: Any = None  # of these bytes
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
        try:  # of a file that was not read from its start, or not in its order
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
        # A file that is only appended to keeps its beginning.
        if now.st_mtime_ns != before.st_mtime_ns and os.pread(descriptor, len(self._head), 0) != self._head:
            fault = "was replaced while it was read, so its parts may not belong together: start again when it is ready"
            raise UnreadableError(fault, FaultKind.CHANGED, "it was replaced while it was read", self._size)

    def peek(self, n: int, until: re.Pattern[bytes] = _NEVER) -> bytes:
        position, data = self._file.tell(), b""
        if self._status is not None:  # for small files, each call counts
            with suppress(*READ_ERRORS):
                data = os.pread(self._file.fileno(), n, position)
            return data
        try:
            while len(data) < n and (part := self._file.read(n - len(data))):
                data += part
        except READ_ERRORS:
            pass  # it is raised again where it matters
        with suppress(*READ_ERRORS):
            self._file.seek(position)
        return data

    def skip(self, n: int) -> None:
        self._file.seek(n, io.SEEK_CUR)


def of_file(file: Any, mark: FileMark | None = None) -> ByteStream:
    """Return the stream of a file that is open for reading bytes; if the file is seekable, it is the stream's `file`.

    `mark` describes a file on disk as it was when it was found. Given a mark, data that were added since then are not
    read, and the stream raises UnreadableError at its end if the file has shrunk or was overwritten.
    """
    return _FileStream(file, mark) if file.seekable() else ByteStream(file.read, close=file.close)


def pipe_stream(pipe: Any, closes: bool = False) -> ByteStream:
    """Return the stream of a pipe, such as standard input; it returns available bytes without waiting for more.

    If `closes` is True, closing the stream closes the pipe.
    """
    # Not through its buffer, as Python cannot end while a thread waits there.
    raw, ended = getattr(pipe, "raw", None), False
    read = pipe.read1 if raw is None else raw.read

    def take(n: int) -> bytes:
        nonlocal ended
        parts: list[bytes] = []
        while not ended and (not parts or (sum(map(len, parts)) < _AT_ONCE and _ready(pipe))):
            data = read(STEP)
            if data is None:  # the pipe does not wait by itself
                select.select([pipe], [], [])
                continue
            parts.append(data)
            ended = not data  # on a terminal the end comes once
        return b"".join(parts)

    return ByteStream(take, prompt=True, close=pipe.close if closes else lambda: None)


def _ready(pipe: Any) -> bool:
    try:
        return bool(select.select([pipe], [], [], 0)[0])
    except (OSError, ValueError):
        return False  # no file of the system's, or a system that can wait for sockets only


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
        """Return whether the data end within a line because data were added to the file after it was found."""
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
            return b""  # it is raised again where it matters
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


def as_utf8(stream: ByteStream, encoding: str) -> ByteStream | None:
    """Return a stream converted to UTF-8, or None if its encoding extends ASCII and needs no conversion."""
    encoding = exact_encoding(encoding, stream.peek(4, until=_LINE_END))
    if is_like_ascii(encoding):
        return None
    decoder, n_read = codecs.getincrementaldecoder(encoding)(), 0

    def take(n: int) -> bytes:
        nonlocal n_read
        while True:
            data = stream.read(n)
            try:
                text = decoder.decode(data, final=not data).encode()
            except UnicodeError as error:
                raise encoding_error(encoding, n_read + max(getattr(error, "start", 0), 0)) from None
            n_read += len(data)
            if text or not data:
                return text

    return ByteStream(take, stream.consumed, stream.prompt)


def with_line_feeds(stream: ByteStream, only_if_alone: bool) -> ByteStream:
    """Return a stream in which line feeds stand for carriage returns that end lines, as those of old Macs do.

    All bytes stay in their places. With `only_if_alone`, carriage returns end lines only in files that begin with many
    bytes without a line feed, as they may also be a part of a value.
    """
    if only_if_alone:
        head = stream.peek(_LOOKED_AT, until=_LINE_END)
        if b"\n" in head or b"\r" not in head:
            return stream
    return _WithLineFeeds(stream)


class _WithLineFeeds(ByteStream):
    def __init__(self, stream: ByteStream) -> None:
        super().__init__(self._translated, stream.consumed, stream.prompt, stream.close)
        self._stream, self.file, self.ends_within_line = stream, stream.file, stream.ends_within_line  # type: ignore[method-assign]

    def read(self, n: int) -> bytes:
        return super().read(n) if self._kept else self._translated(n)

    def skip(self, n: int) -> None:
        if self._kept:
            super().skip(n)
        else:
            self._stream.skip(n)

    def _translated(self, n: int) -> bytes:
        data = self._stream.read(n)
        # A line feed that follows is looked at, not read, so that a resumed run reads the same.
        behind = self._stream.peek(1) if data.endswith(b"\r") else b""
        if _has_lone_return(data + behind):
            data = _LONE_RETURN.sub(b"\n", data + behind)[: len(data)]
        return data


def _has_lone_return(data: bytes) -> bool:
    if b"\r" not in data:
        return False
    codes = np.frombuffer(data + b"\0", np.uint8)  # some thirty times as fast as counting both
    return bool(np.any(codes[np.flatnonzero(codes == _RETURN) + 1] != _LINE_FEED))


def exact_encoding(encoding: str, head: bytes) -> str:
    """Return the encoding of a file, given the encoding that was asked for ("": none) and the first four bytes.

    If no encoding, UTF-16 or UTF-32 was asked for, a byte order mark of UTF-16 or UTF-32 decides. Without a mark, the
    order of bytes in UTF-16 or UTF-32 is guessed from the first byte, as in "utf-16-le". If there is no mark and no
    encoding was asked for, XML and JSON in UTF-16 are known by their first two characters; for all else return "",
    which stands for UTF-8.
    """
    name = codecs.lookup(encoding).name if encoding else ""
    if name not in ("", "utf-16", "utf-32"):
        return encoding
    by_mark = next((encoding for mark, encoding in _MARKS if head.startswith(mark)), "")
    if not name and not by_mark:
        return "utf-16-le" if _UTF_16_LE.match(head) else "utf-16-be" if _UTF_16_BE.match(head) else ""
    return by_mark or (f"{name}-{'be' if head.startswith(bytes(1)) else 'le'}" if name else "")


def unmarked_encoding(encoding: str, head: bytes) -> tuple[bytes, str]:
    """Return a file's byte order mark of UTF-16 or UTF-32, b"" if it is not read, and the encoding of what follows.

    The file is given by the encoding that was asked for ("": none) and its first four bytes.
    """
    encoding = exact_encoding(encoding, head)
    mark = next((mark for mark, marked in _MARKS if marked == encoding and head.startswith(mark)), b"")
    return mark, f"{encoding}-{'le' if mark.startswith(codecs.BOM_UTF16_LE) else 'be'}" if mark else encoding


def is_cut_by_characters(encoding: str) -> bool:
    """Return whether each character has its own bytes in an encoding, whatever stands before it: "" stands for a mark.

    That is so in UTF-16, in UTF-32 and where each character has one byte, but not after escapes, as in ISO-2022.
    """
    name = codecs.lookup(encoding).name if encoding else "utf-16"
    return name.startswith(("utf-16", "utf-32")) or is_of_single_bytes(name)


def is_of_single_bytes(encoding: str) -> bool:
    """Return whether each byte is a character in an encoding, which is given by its name among Python's codecs."""
    text = bytes(range(256)).decode(encoding, "replace")
    return len(text) == 256 and text.count("\ufffd") < 128  # where escapes are, no byte has its highest bit


def text_start(head: bytes, encoding: str) -> bytes:
    """Return the start of a text, given its first bytes, as UTF-8 without a byte order mark and blank lines."""
    encoding = exact_encoding(encoding, head)
    if not is_like_ascii(encoding):
        head = head.decode(encoding, "ignore").encode()
    if b"\r" in head and b"\n" not in head:
        head = head.replace(b"\r", b"\n")
    return head.removeprefix(codecs.BOM_UTF8).lstrip()


class StoredBytes(NamedTuple):
    """Hold a range of bytes of a stored file, from which some content is read."""

    start: int
    end: int

    def at(self, share: float) -> int:
        """Return the position in the file at which a share of the range, between 0 and 1, ends."""
        return self.start + int((self.end - self.start) * share)


def sought_in(stream: ByteStream) -> tuple[IO[bytes], StoredBytes]:
    """Return a seekable file with all bytes of a stream, and the range of the stored file that holds these bytes.

    If the stream is not seekable, its bytes are copied into memory or, if they are many, to the disk.
    """
    start, file = stream.consumed(), stream.file
    if file is not None:
        return file, StoredBytes(start, file.seek(0, io.SEEK_END))
    spool = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY_BYTES)  # noqa: SIM115  # it goes when nothing refers to it
    while data := stream.read(STEP):
        spool.write(data)
    spool.seek(0)
    return spool, StoredBytes(start, stream.consumed())


# --- what is compressed by gzip, bzip2, xz or Zstandard ---------------------------------------------------------------


class _Gzip:
    """Wrap zlib with the interface of bz2 and lzma."""

    def __init__(self) -> None:
        self._inflate, self.needs_input = zlib.decompressobj(31), True

    @property
    def eof(self) -> bool:
        return self._inflate.eof

    @property
    def unused_data(self) -> bytes:
        return self._inflate.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        unpacked = self._inflate.decompress(self._inflate.unconsumed_tail + data, max_length)
        self.needs_input = not self._inflate.unconsumed_tail and len(unpacked) < max_length
        return unpacked


class _Zstandard:
    """Wrap zstandard with the interface of bz2 and lzma; it may return more bytes than wanted."""

    def __init__(self) -> None:
        try:
            import zstandard
        except ImportError:
            raise TextcatError(
                f"An input is compressed with Zstandard: run `{install_hint('zst')}` to read it, then start again."
            ) from None
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self.pipe_error = zstandard.ZstdError
        self._waiting = b""

    @property
    def eof(self) -> bool:
        return self._frame.eof

    @property
    def needs_input(self) -> bool:
        return not self._waiting

    @property
    def unused_data(self) -> bytes:
        return self._frame.unused_data + self._waiting

    def decompress(self, data: bytes, max_length: int) -> bytes:
        self._waiting += data
        bite, self._waiting = self._waiting[:_BITE], self._waiting[_BITE:]
        try:
            return self._frame.decompress(bite)
        except self.pipe_error as error:
            raise OSError(str(error)) from None


class _Compression(NamedTuple):
    """Describe a compression: the first bytes of its files, the endings of their names, and its decompressor."""

    magic: re.Pattern[bytes]
    endings: tuple[str, ...]
    unpack: Callable[[], Any]


COMPRESSIONS = (
    _Compression(re.compile(rb"\x1f\x8b\x08"), (".gz", ".tgz"), _Gzip),
    # The second: of nothing.
    _Compression(re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)"), (".bz2", ".tbz2"), bz2.BZ2Decompressor),
    _Compression(
        re.compile(rb"\xfd7zXZ\x00"), (".xz", ".txz"), lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, _LZMA_MEMORY)
    ),
    _Compression(re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"), (".zst", ".tzst"), _Zstandard),
)
_COMPRESSED = tuple(ending for compression in COMPRESSIONS for ending in compression.endings)
_MAGIC_LENGTH, _TAR_LENGTH = 10, 262
_BINARY, _TAR = re.compile(rb"[\x00-\x08\x0e-\x1f]"), re.compile(rb".{257}ustar", re.DOTALL)


def plain_name(name: str) -> str:
    """Return a name without the ending of a compression, such as ".gz"."""
    if not name.lower().endswith(_COMPRESSED):
        return name
    return name[: len(name) - next(len(ending) for ending in _COMPRESSED if name.lower().endswith(ending))]


def unpacked_stream(stream: ByteStream, name: str) -> ByteStream:
    """Return a stream of the unpacked bytes if a stream is compressed; otherwise return the stream itself.

    The first bytes decide, not the name, as servers may unpack a file but keep its name. If the name is that of a
    compressed file and the first bytes are binary, but not those of any compression, reading raises an error.
    """
    # A pipe that gives a short line may give no more for long.
    head, lower = stream.peek(_MAGIC_LENGTH, until=_LINE_END), name.lower()
    for compression in COMPRESSIONS:
        named = lower.endswith(compression.endings)
        if compression.magic.match(head) or (
            named and _BINARY.search(head) and not _TAR.match(stream.peek(_TAR_LENGTH))
        ):
            break
    else:
        return stream
    unpacked = _Unpacking(stream, compression, True if _NAMED_WARC.search(lower) else None).pieces()
    return ByteStream(lambda n: next(unpacked, b""), stream.consumed, stream.prompt)


class _Unpacking:
    """Unpack a compressed stream, which may consist of several members, one after the other.

    Of a WARC, whose records are members of their own, reading goes on behind a damaged member.
    """

    def __init__(self, source: ByteStream, compression: _Compression, is_warc: bool | None) -> None:
        self._source, self._compression = source, compression
        self._is_warc = is_warc  # None: the first bytes tell
        self._data = b""  # packed, for the next member
        self._fed: deque[bytes] = deque()  # the last packed data of the present member
        self._start = self._n_unpacked = 0  # of the stretch whose ratio is checked

    def pieces(self) -> Iterator[bytes]:
        """Yield the unpacked data, piece by piece; raise UnreadableError if there is implausibly much of it.

        EOFError is raised if the packed data are cut off.
        """
        self._data = self._source.read(STEP)
        while self._data:
            member = self._member()
            if self._is_warc is None:
                first = next(member, b"")
                self._is_warc, member = first.startswith(WARC), chain([first], member)
            yield from self._whole(member) if self._is_warc else member
            # What may follow are zeros, as padding, and another compressed stream.
            self._data = self._data.lstrip(b"\0")
            while not self._data and (piece := self._source.read(STEP)):
                self._data = piece.lstrip(b"\0")

    def _member(self) -> Iterator[bytes]:
        decompressor, data = self._compression.unpack(), self._data
        self._fed.clear()
        n_fed = 0
        while not decompressor.eof:
            if not data and decompressor.needs_input:
                data = self._source.read(STEP)
                if not data:
                    raise EOFError("it is cut off")
            if data:
                self._fed.append(data)
                n_fed += len(data)
                while n_fed - len(self._fed[0]) > _LOOKED_BACK:
                    n_fed -= len(self._fed.popleft())
            unpacked, data = decompressor.decompress(data, STEP), b""
            self._n_unpacked += len(unpacked)
            consumed = self._source.consumed()
            check_ratio(self._n_unpacked, consumed - self._start)
            if consumed - self._start >= STEP:
                self._start, self._n_unpacked = consumed, 0
            if unpacked:
                yield unpacked
        self._data = decompressor.unused_data

    def _whole(self, member: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the data of a member when it is whole; in place of a damaged one, a record of WARC that says so.

        If no member follows a damaged one, its data and then the error come. Of a member that unpacks to more than
        `FLOOR` bytes, data come before it is known to be whole.
        """
        held: list[bytes] = []
        size = 0
        try:
            for piece in member:
                held.append(piece)
                size += len(piece)
                if size > FLOOR:
                    yield from held
                    held.clear()
        except UnreadableError:
            raise
        except READ_ERRORS as error:
            if not self._go_to_next_member():
                yield from held
                raise
            detail = " ".join((str(error) or type(error).__name__).split())
            held = [b"%sFault: %s\r\nContent-Length: 0\r\n\r\n\r\n\r\n" % (DAMAGED_MEMBER, detail.encode())]
        yield from held

    def _go_to_next_member(self) -> bool:
        """Put the data from the next member that holds a record on in `_data`; return False if there is none."""
        data, start, left = b"".join(self._fed), 1, _MOST_TRIALS
        while left:
            if len(data) - start < _PROBED and (piece := self._source.read(_PROBED)):
                data, start = data[start:] + piece, 0
                continue
            match = self._compression.magic.search(data, start)
            if match and self._begins_record(data[match.start() : match.start() + _PROBED]):
                self._data = data[match.start() :]
                return True
            if not match and not (piece := self._source.read(_PROBED)):
                return False
            # A magic number may begin in what is kept.
            data, start = (data, match.start() + 1) if match else (data[-_MAGIC_LENGTH:] + piece, 0)
            left -= bool(match)
        return False

    def _begins_record(self, data: bytes) -> bool:
        """Return whether the packed data of a member begin with those of a record of WARC."""
        decompressor, unpacked = self._compression.unpack(), b""
        try:
            for start in range(0, len(data), _BITE):
                unpacked += decompressor.decompress(data[start : start + _BITE], STEP)
                if len(unpacked) >= len(WARC) or decompressor.eof:
                    break
        except READ_ERRORS:
            return False
        return unpacked.startswith(WARC)


def check_ratio(unpacked: int, packed: int) -> None:
    """Raise UnreadableError if the number of unpacked bytes is implausible for the number of packed bytes.

    That happens with a decompression bomb.
    """
    if unpacked > max(FLOOR, _LARGEST_RATIO * packed):
        fault = f"unpacks to more than {_LARGEST_RATIO} times its size, which text never does"
        raise UnreadableError(fault, FaultKind.DAMAGE, f"it {fault}")
