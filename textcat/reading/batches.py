"""Sources → batches: what they hold, one after the other, cut between records, from any checkpoint on."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

from textcat.reading import formats
from textcat.reading.compression import unpacked
from textcat.reading.containers import Entry, tar_entries, zip_entries
from textcat.reading.formats import delimited, parquet
from textcat.reading.formats.lines import LineCutter
from textcat.reading.formats.spans import FaultError, is_like_ascii, too_long
from textcat.reading.guess import ARCHIVES, format_of
from textcat.reading.lookahead import LookAhead
from textcat.reading.records import Batch, Block, Checkpoint, InputSettings, Rejection
from textcat.reading.sources import Source
from textcat.reading.streams import Stream, UnreadableError, sought_in

_DEPTH = 3  # archives that are opened inside of each other: one that holds itself must end
_OF_ONE = 256  # bytes that a block counts for besides its data, as a batch of empty files must end, too
_TAIL = 1 << 16  # bytes at the end of a block in which the last line end is looked for
_SHORTEST = 4096  # bytes looked at before a record is taken for too long


class Mark(NamedTuple):
    """A place inside a source: what a checkpoint holds besides the source's number.

    Parameters
    ----------
    offset : int
        In the uncompressed file; in a Parquet file, the number of the group of rows.
    position : int
        Of what follows there; 0 at the beginning of a file.
    base : int
        Bytes of a folder's files that come before the file.
    path : tuple of int
        Which entry of the source, which entry of that, if it is an archive, and so on.
    """

    offset: int = 0
    position: int = 0
    base: int = 0
    path: tuple[int, ...] = ()


class Found(NamedTuple):
    """A block or what cannot be read, where to go on behind it, None at the end, and the bytes consumed till there."""

    item: Block | Rejection
    after: Mark | None
    read: int


def read_batches(
    sources: Sequence[Source], settings: InputSettings, start: Iterable[int] | None = None
) -> Iterator[Batch]:
    """Cut sources into batches.

    For what cannot be read, the batches have Rejections. Memory stays below a few blocks and the longest record,
    whatever the sources hold. What comes through a pipe is given as soon as there is a whole record.

    Parameters
    ----------
    sources : sequence of Source
    settings : InputSettings
    start : Checkpoint, optional
        The end of a batch of the same sources and settings; by default the beginning.

    Yields
    ------
    Batch

    Raises
    ------
    TextcatError
        If a library is missing that reads what is met.
    """
    begin: Checkpoint = tuple(start or (0, *Mark()[:3]))
    held: list[Block | Rejection] = []
    size, end, read = 0, begin, 0
    for step in _steps(sources, settings, begin):
        if step is not None:
            item, end, read = step
            held.append(item)
            size += _OF_ONE + (len(item.data) if isinstance(item, Block) else 0)
        if held and (step is None or size >= settings.block_bytes):
            yield Batch(tuple(held), begin, end, read)
            begin, held, size = end, [], 0
    if held:
        yield Batch(tuple(held), begin, end, read)


def _steps(
    sources: Sequence[Source], settings: InputSettings, start: Checkpoint
) -> Iterator[tuple[Block | Rejection, Checkpoint, int] | None]:
    """Yield what is found with the checkpoint and the bytes behind it; None where what has been given must not wait."""
    before = sum(source.size or 0 for source in sources[: start[0]])
    mark = Mark(start[1], start[2], start[3], start[4:])
    for number, source in enumerate(sources[start[0] :], start[0]):
        if source.kind == "pipe":
            yield None
        for item, after, read in _source(source, settings, mark):
            if after:
                yield item, (number, *after[:3], *after.path), before + read
            else:
                yield item, (number + 1, *Mark()[:3]), before + (read if source.size is None else source.size)
            if source.kind == "pipe":
                yield None
        before, mark = before + (source.size or 0), Mark()


def _source(source: Source, settings: InputSettings, mark: Mark) -> Iterator[Found]:
    if source.kind == "folder":
        return _entries(source.entries(), source.name, settings, mark, 0, lambda: 0)
    return _file(source.name, source.open, settings, mark, 0, source.format)


def _file(
    name: str, open_stored: Callable[[], Stream], settings: InputSettings, mark: Mark, depth: int, form: str = ""
) -> Iterator[Found]:
    """Yield what a file holds; its format is told by its name or content unless it is given."""
    try:
        with closing(open_stored()) as stored:
            stream = unpacked(stored, name)
            form = form or format_of(stream, name, settings)
            if form not in ARCHIVES:
                yield from _documents(stream, name, form, settings, mark)
            elif depth < _DEPTH:
                entries = zip_entries(stream) if form == "zip" else tar_entries(stream)
                yield from _entries(entries, name, settings, mark, depth + 1, stream.consumed)
            else:
                raise UnreadableError("lies in too many archives inside of each other: unpack the outer ones")
    except (FaultError, UnreadableError) as fault:
        yield Found(Rejection(name, 0, f"The file {fault}."), None, 0)


def _entries(
    entries: Iterator[Entry],
    name: str,
    settings: InputSettings,
    mark: Mark,
    depth: int,
    consumed: Callable[[], int],
) -> Iterator[Found]:
    """Yield what the files of a folder or an archive hold."""
    first, base = mark.path[0] if mark.path else 0, mark.base
    inside = Mark(mark.offset, mark.position, 0, mark.path[1:])
    while True:
        try:
            entry = next(entries, None)
        except UnreadableError as fault:
            yield Found(Rejection(name, 0, f"The archive, or the rest of it, {fault}."), None, consumed())
            return
        if entry is None:
            return
        if entry.number < first:
            continue
        path = posixpath.join("" if name == "." else name, entry.name) if entry.name else name
        if entry.fault:
            found = iter([Found(Rejection(path, 0, f"The file {entry.fault}."), None, consumed())])
        else:
            found = _file(path, entry.open, settings, inside if entry.number == first else Mark(), depth)
        for item, after, read in found:
            if after:
                yield Found(item, after._replace(base=base, path=(entry.number, *after.path)), base + read)
            else:
                behind = Mark(0, 0, base + entry.size, (entry.number + 1,))
                read = entry.read if entry.read >= 0 else consumed()
                yield Found(item, behind, behind.base or read)
        base += entry.size


def _documents(stream: Stream, name: str, form: str, settings: InputSettings, mark: Mark) -> Iterator[Found]:
    if form == "parquet":
        return _tables(stream, name, settings, mark)
    if form in formats.WHOLE:
        return _whole(stream, name, form, settings)
    if not is_like_ascii(settings.encoding):
        raise UnreadableError(f"is {form}, which is not cut in {settings.encoding}: convert it to UTF-8")
    return _cut(stream, name, form, settings, mark)


def _whole(stream: Stream, name: str, form: str, settings: InputSettings) -> Iterator[Found]:
    """Yield a file that is one document."""
    window = LookAhead(stream)
    while not window.ended and len(window.data) <= settings.max_bytes:
        window.fill(settings.max_bytes + 1)
    if window.error:
        raise window.error
    if len(window.data) > settings.max_bytes:
        raise UnreadableError(f"has more than {settings.max_bytes} bytes and is not read, as no record may have more")
    if window.data or not stream.prompt:
        yield Found(Block(name, form, window.data), None, stream.consumed())


def _tables(stream: Stream, name: str, settings: InputSettings, mark: Mark) -> Iterator[Found]:
    """Yield the rows of a Parquet file."""
    file, part = sought_in(stream)
    try:
        for batch in parquet.batches(file, name, settings, mark.offset, mark.position):
            yield Found(batch.block, Mark(batch.group, batch.row), part.at(batch.share))
    except UnreadableError as fault:
        yield Found(Rejection(name, 0, f"The file, or the rest of it, {fault}."), None, part.end)


def _cut(stream: Stream, name: str, form: str, settings: InputSettings, mark: Mark) -> Iterator[Found]:
    """Yield a file of many records."""
    window = LookAhead(stream)
    header = b""
    if form in delimited.SEPARATORS:
        header = window.head(delimited.head, settings.block_bytes, _largest_window(settings))
        if not header.strip():
            return  # an empty file has no names of columns, either
    whole = _WholeRecords(window, Block(name, form, b"", header=header), settings)
    if mark.position:
        window.move_to(mark.offset)
        whole.position = mark.position
    while (item := whole.take()) is not None:
        yield Found(item, Mark(window.offset, whole.position), stream.consumed())
    if window.error:
        fault = f"The file, from byte {window.offset} on, {window.error}."
        yield Found(Rejection(name, 0, fault, window.offset), None, stream.consumed())


def _largest_window(settings: InputSettings) -> int:
    """Give the bytes in which a record must end, with its line end."""
    return max(settings.max_bytes, _SHORTEST) + 2


class _WholeRecords:
    """Take whole records from a window, a block at a time, or as much as the next one needs."""

    def __init__(self, window: LookAhead, model: Block, settings: InputSettings) -> None:
        self.position = 1 + model.header.count(b"\n")
        self._window, self._model, self._settings = window, model, settings
        self._cutter = formats.cutter(model.format, model.header, settings)

    def take(self) -> Block | Rejection | None:
        """Give the next records, or say that the next one is too long; None at the end, or where an error stands."""
        window, largest = self._window, _largest_window(self._settings)
        size = self._settings.block_bytes
        while True:
            window.fill(self._without_rest(size))
            n = len(window.data) if window.whole else self._cutter.cut(window.data)
            if n:
                return self._chunk(n)
            if window.ended:
                return None
            if len(window.data) >= largest:
                return self._passed_over()
            size = min(2 * size, largest)

    def _without_rest(self, size: int) -> int:
        """Give where the last record of a block ends, if it can be told before reading it all, which spares a copy."""
        start = size - _TAIL
        if start < 0 or type(self._cutter) is not LineCutter:
            return size
        end = self._cutter.cut(self._window.ahead(start, _TAIL))
        return start + end if end else size

    def _chunk(self, n: int) -> Block:
        block = self._model._replace(offset=self._window.offset, position=self.position, data=self._window.drop(n))
        self.position += self._cutter.count(block.data)
        return block

    def _passed_over(self) -> Rejection:
        window, start, position = self._window, self._window.offset, self.position
        ends = False
        while not ends:
            n, ends = self._cutter.skip(window.data)
            n = len(window.data) if window.ended and not ends else n
            self.position += self._cutter.count(window.drop(n))
            if window.ended:
                break
            window.fill(len(window.data) + self._settings.block_bytes)
        length = window.offset - start
        fault = too_long(length, self._settings)
        if length <= self._settings.max_bytes:
            fault = f"has a quote that is not closed within {self._settings.max_bytes} bytes: mend it"
        return Rejection(self._model.source, position, f"The record {fault}.", start, length)
