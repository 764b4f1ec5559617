"""Read the bytes of a stored file or a pipe forwards in bounded memory, and count how many of them are used up."""

from __future__ import annotations

import codecs
import io
import lzma
import re
import select
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from typing import IO, Any, NamedTuple

from textcat.reading.records import UnreadableError, _not_in, is_like_ascii

STEP = 1 << 16  # bytes asked for at a time, of what cannot be sought in, so that the same reads give the same progress
_AT_ONCE = 1 << 20  # bytes taken from a pipe at a time, if so many are there
_LINE_END = re.compile(rb"\n")
_MARKS = (  # UTF-32's mark begins with UTF-16's
    *((codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32")),
    *((codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16")),
)
_NEVER = re.compile(rb"(?!)")
_IN_MEMORY = 64 << 20  # bytes of a file inside an archive; what is larger and must be sought in lies on the disk
READ_ERRORS = (
    *(OSError, EOFError, zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile),
    RuntimeError,  # a zip's unknown way to compress
    *(ValueError, OverflowError, MemoryError),  # of headers with absurd numbers
)


def unreadable(error: BaseException) -> UnreadableError:
    """Return an error of reading in words."""
    if isinstance(error, UnreadableError):
        return error
    if isinstance(error, OSError) and error.strerror:
        return UnreadableError(f"cannot be read ({error.strerror})", "access")
    detail = str(error) or type(error).__name__
    return UnreadableError(f"is damaged or incomplete ({detail})", "damage", detail)


class Stream:
    """Bytes that are read forwards; of a file that can be sought in, `file` is it.

    Parameters
    ----------
    take : callable
        Takes a number of bytes; returns as many or fewer, but none only at the end. By default there are none.
    consumed : callable, optional
        Returns how many bytes are used up of the stored file this comes from; by default, how many have been taken.
    prompt : bool
        Whether what is there is wanted at once, rather than more of it later.
    close : callable
        Closes what it comes from.
    """

    file: IO[bytes] | None = None

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
        self._fault: tuple[str, ...] = ()  # the error itself would hold on to all that was being read, in a circle

    def consumed(self) -> int:
        """Return how many bytes are used up of the stored file this comes from."""
        return self._n_taken if self._consumed is None else self._consumed()

    def read(self, n: int) -> bytes:
        """Return 1 to `n` bytes, none at the end; raise UnreadableError if there are more that cannot be read."""
        if not self._kept:
            self._kept = self._more()
        data, self._kept = self._kept[:n], self._kept[n:]
        return data

    def _peek(self, n: int, until: re.Pattern[bytes] = _NEVER) -> bytes:
        """Return the next bytes without using them up; fewer than `n` at the end, or once a pattern is among them."""
        while len(self._kept) < n and not until.search(self._kept):
            try:
                more = self._more()
            except UnreadableError:
                break  # it is raised again where it matters
            if not more:
                break
            self._kept += more
        return self._kept[:n]

    def skip(self, n: int) -> None:
        """Pass over `n` bytes, or all that are left."""
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


class _FileStream(Stream):
    """A file that can be sought in, read in one go however much is asked for."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file.read, file.tell, close=file.close)
        self.file = self._file = file

    def read(self, n: int) -> bytes:
        try:
            return self._file.read(n)
        except READ_ERRORS as error:
            raise unreadable(error) from None

    def _peek(self, n: int, until: re.Pattern[bytes] = _NEVER) -> bytes:
        place, data = self._file.tell(), b""
        try:
            while len(data) < n and (more := self._file.read(n - len(data))):
                data += more
            self._file.seek(place)
        except READ_ERRORS:
            pass
        return data

    def skip(self, n: int) -> None:
        self._file.seek(n, io.SEEK_CUR)


def of_file(file: Any) -> Stream:
    """Return the stream of a file that has been opened for reading bytes, sought in if it can be."""
    return _FileStream(file) if file.seekable() else Stream(file.read, close=file.close)


def _of_pipe(pipe: Any, closes: bool = False) -> Stream:
    """Return the stream of a pipe, such as standard input, which gives at once what is there."""
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

    return Stream(take, prompt=True, close=pipe.close if closes else lambda: None)


def _ready(pipe: Any) -> bool:
    try:
        return bool(select.select([pipe], [], [], 0)[0])
    except (OSError, ValueError):
        return False  # no file of the system's, or a system that can wait for sockets only


class _LookAhead:
    """A look-ahead buffer: `data` of a stream from some `offset` on, filled at the end and dropped at the start.

    Once it has `ended`, nothing can follow the data.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.data, self.offset = b"", 0
        self.ended = False
        self._fault: tuple[str, ...] = ()

    @property
    def error(self) -> UnreadableError | None:
        """Why there is no more, though there should be; each time another one, as it holds on to where it is raised."""
        return UnreadableError(*self._fault) if self._fault else None

    @property
    def whole(self) -> bool:
        """Whether the data end where the stream was meant to."""
        return self.ended and not self._fault

    def fill(self, size: int) -> None:
        """Read until there are `size` bytes, or all there are; of a pipe, what is there."""
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

    def ahead(self, start: int, size: int) -> bytes:
        """Return what stands at `start`, counted from the start of `data` but behind them, if it can be had at once."""
        file, distance = self._stream.file, start - len(self.data)
        if file is None or distance < 0 or self.ended:
            return b""
        place = file.tell()
        try:
            file.seek(place + distance)
            return file.read(size)
        except READ_ERRORS:
            return b""  # it is raised again where it matters
        finally:
            file.seek(place)

    def drop(self, n: int) -> bytes:
        """Take `n` bytes from the start."""
        dropped, self.data = self.data[:n], self.data[n:]
        self.offset += n
        return dropped

    def move_to(self, offset: int) -> None:
        """Drop what stands before an offset."""
        n = offset - self.offset
        if n > len(self.data):
            self._stream.skip(n - len(self.data))
            self.data, self.offset = b"", offset
        else:
            self.drop(n)

    def find(self, end_of: Callable[[bytes, bool], int], size: int, most: int, fit: Callable[[int], int] = int) -> int:
        """Return what `end_of` says of the data, and of whether they are all, once that is not 0.

        Else 0, at the end or where there are `most` bytes. They are filled to `size`, as `fit` has it, then to more.
        """
        while True:
            self.fill(fit(size))
            n = end_of(self.data, self.whole)
            if n or self.ended or len(self.data) >= most:
                return n
            size = min(2 * size, most)


def _as_utf8(stream: Stream, encoding: str) -> Stream | None:
    """Return what a stream becomes in UTF-8, or None if ASCII's characters can be found in it as it is."""
    encoding = _exact_encoding(encoding, stream._peek(4, until=_LINE_END))
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
                raise _not_in(encoding, n_read + max(getattr(error, "start", 0), 0)) from None
            n_read += len(data)
            if text or not data:
                return text

    return Stream(take, stream.consumed, stream.prompt)


def _exact_encoding(encoding: str, head: bytes) -> str:
    """Return the encoding of a file, "" for UTF-8, with the order of the bytes of UTF-16 and UTF-32.

    A byte order mark among the first four bytes, `head`, tells it, also where no encoding is given.
    """
    name = codecs.lookup(encoding).name if encoding else ""
    if name not in ("", "utf-16", "utf-32"):
        return encoding
    by_mark = next((known for mark, known in _MARKS if head.startswith(mark)), "")
    return by_mark or (f"{name}-{'be' if head.startswith(bytes(1)) else 'le'}" if name else "")


class _Part(NamedTuple):
    """Which bytes of the stored file something stands for."""

    start: int
    end: int

    def at(self, share: float) -> int:
        """Return where a share of it ends."""
        return self.start + int((self.end - self.start) * share)


def sought_in(stream: Stream) -> tuple[IO[bytes], _Part]:
    """Return a file with all of a stream that can be sought in, and the bytes of the stored file it stands for."""
    start, file = stream.consumed(), stream.file
    if file is not None:
        return file, _Part(start, file.seek(0, io.SEEK_END))
    spool = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115  # it goes when nothing refers to it
    while data := stream.read(STEP):
        spool.write(data)
    spool.seek(0)
    return spool, _Part(start, stream.consumed())


def shown(name: str) -> str:
    """Return a file's name as text; the system's may hold bytes that are none."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
