"""The stretch of a stream that is looked at: it is filled at its end, and what is done with is dropped at its start."""

from __future__ import annotations

from collections.abc import Callable

from textcat.reading.streams import Stream, UnreadableError


class LookAhead:
    """Bytes of a stream from some offset on.

    Attributes
    ----------
    data : bytes
    offset : int
        Of `data` in the stream.
    ended : bool
        Whether nothing can follow `data`.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.data, self.offset = b"", 0
        self.ended = False
        self._fault = ""

    @property
    def error(self) -> UnreadableError | None:
        """Why there is no more, though there should be; each time another one, as it holds on to where it is raised."""
        return UnreadableError(self._fault) if self._fault else None

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
                self._fault, self.ended = str(error), True
                break
            n += len(parts[-1])
            self.ended = not parts[-1]
            if self._stream.prompt:
                break
        self.data = b"".join(parts)

    def ahead(self, start: int, size: int) -> bytes:
        """Give what stands at `start`, counted from the start of `data` but behind them, if it can be had at once."""
        distance = start - len(self.data)
        return self._stream.ahead(distance, size) if distance >= 0 and not self.ended else b""

    def drop(self, n: int) -> bytes:
        """Take `n` bytes from the start."""
        dropped, self.data = self.data[:n], self.data[n:]
        self.offset += n
        return dropped

    def move_to(self, offset: int) -> None:
        """Drop what stands before an offset.

        Raises
        ------
        UnreadableError
            If the stream cannot be read up to there.
        """
        n = offset - self.offset
        if n > len(self.data):
            self._stream.skip(n - len(self.data))
            self.data, self.offset = b"", offset
        else:
            self.drop(n)

    def head(self, end_of: Callable[[bytes, bool], int], size: int, most: int) -> bytes:
        """Take what `end_of` says the length of, of the data and whether they are all, once it is not 0.

        Raises
        ------
        UnreadableError
            If that is more than `most` bytes, or cannot be read.
        """
        while True:
            self.fill(size)
            n = end_of(self.data, self.whole)
            if n or self.ended:
                break
            if len(self.data) >= most:
                raise UnreadableError(f"has a header of more than {most} bytes, which is not read")
            size = min(2 * size, most)
        if self._fault and not n:
            raise UnreadableError(self._fault)
        return self.drop(n)
