"""A stored file, or a pipe → its bytes, read forwards in bounded memory, with word of how much of it is used up."""

from __future__ import annotations

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

STEP = 1 << 16  # bytes asked for at a time, of what cannot be sought in, so that the same reads give the same progress
_AT_ONCE = 1 << 20  # bytes taken from a pipe at a time, if so many are there
_NEVER = re.compile(rb"(?!)")
_IN_MEMORY = 64 << 20  # bytes of a file inside an archive; what is larger and must be sought in lies on the disk
READ_ERRORS = (
    *(OSError, EOFError, zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile),
    RuntimeError,  # a zip's unknown way to compress
    *(ValueError, OverflowError, MemoryError),  # of headers with absurd numbers
)


class UnreadableError(Exception):
    """Why a file, or the rest of it, cannot be read, as the rest of a sentence that begins with its name."""


def unreadable(error: BaseException) -> UnreadableError:
    """Put an error of reading into words."""
    if isinstance(error, UnreadableError):
        return error
    if isinstance(error, OSError) and error.strerror:
        return UnreadableError(f"cannot be read ({error.strerror})")
    return UnreadableError(f"is damaged or incomplete ({str(error) or type(error).__name__})")


class Stream:
    """Bytes that are read forwards.

    Parameters
    ----------
    take : callable
        Takes a number of bytes; gives as many or fewer, but none only at the end.
    consumed : callable
        Gives how many bytes are used up of the stored file this comes from.
    prompt : bool
        Whether what is there is wanted at once, rather than more of it later.
    close : callable
        Lets go of what it comes from.
    """

    def __init__(
        self,
        take: Callable[[int], bytes],
        consumed: Callable[[], int],
        prompt: bool = False,
        close: Callable[[], object] = lambda: None,
    ) -> None:
        self.consumed, self.prompt, self.close = consumed, prompt, close
        self._take = take
        self._kept = b""  # taken, but not given yet
        self._fault = ""  # the error itself would hold on to all that was being read, in a circle

    @classmethod
    def nothing(cls) -> Stream:
        """Give a stream of no bytes."""
        return cls(lambda n: b"", lambda: 0)

    def read(self, n: int) -> bytes:
        """Give 1 to `n` bytes, none at the end.

        Raises
        ------
        UnreadableError
            If there are more, but they cannot be read.
        """
        if not self._kept:
            self._kept = self._more()
        given, self._kept = self._kept[:n], self._kept[n:]
        return given

    def peek(self, n: int, until: re.Pattern[bytes] = _NEVER) -> bytes:
        """Give the next bytes without using them up: `n`, or fewer at the end or when `until` is among them."""
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

    def ahead(self, distance: int, n: int) -> bytes:
        """Give up to `n` bytes that come after `distance` others, without using them up; none if that is costly."""
        return b""

    def seekable(self) -> IO[bytes] | None:
        """Give the file that can be sought in, if there is one."""
        return None

    def _more(self) -> bytes:
        if self._fault:
            raise UnreadableError(self._fault)
        try:
            return self._take(STEP)
        except (UnreadableError, *READ_ERRORS) as error:
            self._fault = str(unreadable(error))
            raise UnreadableError(self._fault) from None


class FileStream(Stream):
    """A file that can be sought in, read in one go however much is asked for."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file.read, file.tell, close=file.close)
        self._file = file

    def read(self, n: int) -> bytes:
        """See `Stream.read`."""
        try:
            return self._file.read(n)
        except READ_ERRORS as error:
            raise unreadable(error) from None

    def peek(self, n: int, until: re.Pattern[bytes] = _NEVER) -> bytes:
        """See `Stream.peek`."""
        place, found = self._file.tell(), b""
        try:
            while len(found) < n and (more := self._file.read(n - len(found))):
                found += more
            self._file.seek(place)
        except READ_ERRORS:
            pass
        return found

    def skip(self, n: int) -> None:
        """See `Stream.skip`."""
        self._file.seek(n, io.SEEK_CUR)

    def ahead(self, distance: int, n: int) -> bytes:
        """See `Stream.ahead`."""
        place = self._file.tell()
        try:
            self._file.seek(place + distance)
            return self._file.read(n)
        except READ_ERRORS:
            return b""  # it is raised again where it matters
        finally:
            self._file.seek(place)

    def seekable(self) -> IO[bytes]:
        """See `Stream.seekable`."""
        return self._file


def of_file(file: Any) -> Stream:
    """Give the stream of a file that has been opened for reading bytes, sought in if it can be."""
    if file.seekable():
        return FileStream(file)
    counted = Counted(file.read)
    return Stream(counted.take, counted.count, close=file.close)


def of_pipe(pipe: Any, closes: bool = False) -> Stream:
    """Give the stream of a pipe, such as standard input, which gives at once what is there."""
    counted = Counted(_Available(pipe).take)
    return Stream(counted.take, counted.count, prompt=True, close=pipe.close if closes else lambda: None)


class Part(NamedTuple):
    """Which bytes of the stored file something stands for."""

    start: int
    end: int

    def at(self, share: float) -> int:
        """Give where a share of it ends."""
        return self.start + int((self.end - self.start) * share)

    def between(self, first: float, last: float) -> Part:
        """Give the part between two shares of it."""
        return Part(self.at(first), self.at(last))


def sought_in(stream: Stream) -> tuple[IO[bytes], Part]:
    """Give a file with all of a stream that can be sought in, and the bytes of the stored file it stands for.

    Raises
    ------
    UnreadableError
    """
    start, file = stream.consumed(), stream.seekable()
    if file is not None:
        return file, Part(start, file.seek(0, io.SEEK_END))
    spool = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115  # it goes when nothing refers to it
    while data := stream.read(STEP):
        spool.write(data)
    spool.seek(0)
    return spool, Part(start, stream.consumed())


class Counted:
    """Count the bytes that are read."""

    def __init__(self, take: Callable[[int], bytes]) -> None:
        self._take, self._n = take, 0

    def take(self, n: int) -> bytes:
        """Read."""
        data = self._take(n)
        self._n += len(data)
        return data

    def count(self) -> int:
        """Give how many bytes were read."""
        return self._n


class _Available:
    """Read what is in a pipe now, up to some megabyte; wait only if there is nothing."""

    def __init__(self, pipe: Any) -> None:
        self._pipe, self._ended = pipe, False
        # Not through its buffer, as Python cannot end while a thread waits there.
        raw = getattr(pipe, "raw", None)
        self._read = raw.read if raw is not None else pipe.read1

    def take(self, n: int) -> bytes:
        parts: list[bytes] = []
        while not self._ended and (not parts or (sum(map(len, parts)) < _AT_ONCE and self._ready())):
            data = self._read(STEP)
            if data is None:  # the pipe does not wait by itself
                select.select([self._pipe], [], [])
                continue
            parts.append(data)
            self._ended = not data  # on a terminal the end comes once
        return b"".join(parts)

    def _ready(self) -> bool:
        try:
            return bool(select.select([self._pipe], [], [], 0)[0])
        except (OSError, ValueError):
            return False  # no file of the system's, or a system that can wait for sockets only


def shown(name: str) -> str:
    """Give a file's name as text; the system's may hold bytes that are none."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
