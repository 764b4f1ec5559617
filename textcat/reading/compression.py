"""Decompress gzip, bzip2, xz and Zstandard in bounded memory."""

import bz2
import lzma
import re
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

from textcat.base.errors import TextcatError, install_hint
from textcat.reading.faults import FaultKind, UnreadableError
from textcat.reading.streams import LINE_END, READ_ERRORS, STEP, ByteStream

_LARGEST_RATIO = 1000  # maximum ratio of unpacked to packed size; above it, a file is a decompression bomb
FLOOR = 16 << 20  # bytes that are allowed whatever the ratio
_LZMA_MEMORY = 256 << 20
_BITE = 1 << 10  # bytes passed to Zstandard at a time, which may become 32 MiB
#: The beginning of each record of a WARC; and of the record that replaces a damaged member.
WARC = b"WARC/"
DAMAGED_MEMBER = b"WARC/1.1\r\nWARC-Type: damaged\r\n"
_NAMED_WARC = re.compile(r"\.(?:warc|wet)\.[a-z0-9]+$")
_LOOKED_BACK = 1 << 20  # bytes after damage among which the start of the next member is sought
_PROBED = 1 << 18  # bytes from which the start of a member is unpacked: Zstandard may need a block of 128 KiB
_MOST_TRIALS = 10_000  # maximum number of positions tried for the start of the next member, because each takes time


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
    """Wrap zstandard with the interface of bz2 and lzma; it may return more bytes than asked for."""

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
    """A compression: the magic bytes of its files, the endings of their names, and its decompressor."""

    magic: re.Pattern[bytes]
    endings: tuple[str, ...]
    unpack: Callable[[], Any]


COMPRESSIONS = (
    _Compression(re.compile(rb"\x1f\x8b\x08"), (".gz", ".tgz"), _Gzip),
    # the second is that of an empty file
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
    """Return a file name without the extension of a compression, such as ".gz"."""
    if not name.lower().endswith(_COMPRESSED):
        return name
    return name[: len(name) - next(len(ending) for ending in _COMPRESSED if name.lower().endswith(ending))]


def unpacked_stream(stream: ByteStream, name: str) -> ByteStream:
    """Return a stream of the unpacked bytes if a stream is compressed; otherwise return the stream itself.

    The first bytes decide, not the name, because servers may unpack a file but keep its name. If the name is that of a
    compressed file, and there are no bytes, or they are binary but not the magic bytes of any compression, reading
    raises an error.
    """
    # A pipe that sends a short line may send nothing more for a long time.
    head, lower = stream.peek(_MAGIC_LENGTH, until=LINE_END), name.lower()
    for compression in COMPRESSIONS:
        named = lower.endswith(compression.endings)
        if compression.magic.match(head) or (
            named and (not head or (_BINARY.search(head) and not _TAR.match(stream.peek(_TAR_LENGTH))))
        ):
            break
    else:
        return stream
    unpacked = _Unpacking(stream, compression, True if _NAMED_WARC.search(lower) else None).pieces()
    return ByteStream(lambda n: next(unpacked, b""), stream.consumed, stream.prompt)


class _Unpacking:
    """Unpack a compressed stream, which may consist of several members, one after the other.

    In a WARC, whose records are separate members, reading continues after a damaged member.
    """

    def __init__(self, source: ByteStream, compression: _Compression, is_warc: bool | None) -> None:
        self._source, self._compression = source, compression
        self._is_warc = is_warc  # None: determined by the first bytes
        self._data = b""  # packed bytes of the next member
        self._fed: deque[bytes] = deque()  # the last packed bytes of the present member
        self._start = self._n_unpacked = 0  # start of the stretch whose ratio is checked

    def pieces(self) -> Iterator[bytes]:
        """Yield the unpacked data, piece by piece; raise UnreadableError if there is implausibly much of it.

        EOFError is raised if the packed data are cut off, or there are none.
        """
        self._data = self._source.read(STEP)
        if not self._data:
            raise EOFError("it is empty")
        while self._data:
            member = self._member()
            if self._is_warc is None:
                first = next(member, b"")
                self._is_warc, member = first.startswith(WARC), chain([first], member)
            yield from self._when_complete(member) if self._is_warc else member
            # Zeros as padding, and another compressed stream, may follow.
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

    def _when_complete(self, member: Iterable[bytes]) -> Iterator[bytes]:
        """Yield a member's data when it is complete; in place of a damaged one, yield a WARC record that reports it.

        If no member follows a damaged one, yield its data, and then raise the error. The data of a member that unpacks
        to more than `FLOOR` bytes are yielded before it is known to be whole.
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
        """Skip to the next member that begins with a WARC record (in `_data`); return False if there is none."""
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
        """Return whether the packed data of a member unpack to the start of a WARC record."""
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
