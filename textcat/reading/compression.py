"""Unpack bytes compressed by gzip, bzip2, xz or Zstandard, but no bombs."""

from __future__ import annotations

import bz2
import lzma
import re
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

from textcat.errors import TextcatError, install_hint
from textcat.reading.records import UnreadableError
from textcat.reading.streams import STEP, Stream

_LARGEST_RATIO = 1000  # a file that unpacks to more times its size is a bomb
FLOOR = 16 << 20  # bytes that anything may unpack to
_LZMA_MEMORY = 256 << 20
_BITE = 1 << 10  # bytes given to Zstandard at a time, which may become 32 MiB


class _Gzip:
    """zlib in the form of bz2 and lzma."""

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
    """zstandard in the form of bz2 and lzma, but that it may give more bytes than wanted."""

    def __init__(self) -> None:
        try:
            import zstandard
        except ImportError:
            raise TextcatError(
                f"An input is compressed by Zstandard: run `{install_hint('zst')}` to read it, then start again."
            ) from None
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._error = zstandard.ZstdError
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
        except self._error as error:
            raise OSError(str(error)) from None


class _Compression(NamedTuple):
    """How a compressed file begins, the ends of names that say it is one, and what unpacks it."""

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
_MAGIC_LENGTH, _TAR_LENGTH = 10, 262
_BINARY, _TAR = re.compile(rb"[\x00-\x08\x0e-\x1f]"), re.compile(rb".{257}ustar", re.DOTALL)
_LINE = re.compile(rb"\n")  # a pipe that gives a short line may give no more for long


def _unpacked(stream: Stream, name: str) -> Stream:
    """Return what a stream unpacks to if it is compressed, else itself.

    Its first bytes tell, as servers unpack what they send and leave the name. Where they do not, but the name and
    what no text holds speak for a compressed file whose beginning is damaged, reading it will say so.
    """
    head, lower = stream._peek(_MAGIC_LENGTH, until=_LINE), name.lower()
    for compression in COMPRESSIONS:
        named = lower.endswith(compression.endings)
        if compression.magic.match(head) or (
            named and _BINARY.search(head) and not _TAR.match(stream._peek(_TAR_LENGTH))
        ):
            return Stream(_Unpacker(stream, compression.unpack).take, stream.consumed, stream.prompt)
    return stream


class _Unpacker:
    """Unpack a stream in steps that do not depend on how much is asked for, and watch the ratio over any stretch."""

    def __init__(self, source: Stream, make: Callable[[], Any]) -> None:
        self._source, self._make, self._decompressor = source, make, make()
        self._start, self._n_unpacked = 0, 0  # of the stretch

    def take(self, n: int) -> bytes:
        while True:
            data = b""
            if self._decompressor.eof:
                data = self._behind()
                if not data:
                    return b""
                self._decompressor = self._make()
            elif self._decompressor.needs_input:
                data = self._source.read(STEP)
                if not data:
                    raise EOFError("it is cut off")
            unpacked: bytes = self._decompressor.decompress(data, STEP)
            self._watch(len(unpacked))
            if unpacked:
                return unpacked

    def _behind(self) -> bytes:
        """Return what follows the end of a compressed stream, which may be another one, or zeros that fill a block."""
        data: bytes = self._decompressor.unused_data.lstrip(b"\0")
        while not data and (more := self._source.read(STEP)):
            data = more.lstrip(b"\0")
        return data

    def _watch(self, n: int) -> None:
        self._n_unpacked += n
        consumed = self._source.consumed()
        _check_ratio(self._n_unpacked, consumed - self._start)
        if consumed - self._start >= STEP:
            self._start, self._n_unpacked = consumed, 0


def _check_ratio(unpacked: int, packed: int) -> None:
    """Raise UnreadableError if more bytes are unpacked than can be meant, as of a bomb."""
    if unpacked > max(FLOOR, _LARGEST_RATIO * packed):
        fault = f"unpacks to more than {_LARGEST_RATIO} times its size, which no text does"
        raise UnreadableError(fault, "damage", f"it {fault}")
