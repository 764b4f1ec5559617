"""What must be true of the reading of any input: nothing lost, nothing twice, and the same from any cursor on."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

from textcat.reading import formats
from textcat.reading.guess import by_name
from textcat.reading.pieces import read_pieces
from textcat.reading.records import Chunk, InputSettings, Piece, Record, Rejection
from textcat.reading.sources import Source
from textcat.reading.streams import of_file, of_pipe

Item = Record | Rejection
_CURSORS = 4  # from which reading is gone on with


class _Forwards(io.BytesIO):
    """What cannot be sought in."""

    def seekable(self) -> bool:
        return False


class _Dribbling(io.BytesIO):
    """A pipe that gives a few bytes at a time."""

    def read1(self, size: int | None = -1, /) -> bytes:
        return super().read1(7 if size is None or size < 0 else min(size, 7))


_STREAMS: tuple[tuple[str, Callable[[bytes], Any]], ...] = (
    ("file", lambda data: of_file(io.BytesIO(data))),
    ("file", lambda data: of_file(_Forwards(data))),
    ("pipe", lambda data: of_pipe(_Dribbling(data))),
)


def source(name: str, data: bytes, settings: InputSettings, way: int = 0) -> Source:
    """Make a source of bytes: a file (0), one that cannot be sought in (1), or a pipe (2)."""
    kind, opened = _STREAMS[way]
    size = None if kind == "pipe" else len(data)
    return Source(name, kind, by_name(name, settings), size, 0, 1, lambda: opened(data))


def check_sources(sources: Sequence[Source], settings: InputSettings) -> tuple[list[Piece], list[Item]]:
    """Read sources, check what is true of all, and give their pieces, and what these hold."""
    pieces = list(read_pieces(sources, settings))
    _check_chain(pieces, sum(source.size or 0 for source in sources))
    if all(source.kind != "pipe" for source in sources):
        _check_resuming(sources, settings, pieces)
    found = [item for piece in pieces for item in formats.records(piece, settings)]
    for item in found:
        _check_item(item)
    _check_rejections_pass(pieces, found)
    return pieces, found


def _check_chain(pieces: Sequence[Piece], size: int) -> None:
    ends = [piece.end for piece in pieces]
    assert [piece.start for piece in pieces[1:]] == ends[:-1], "a piece begins elsewhere than the one before it ends"
    assert len(set(ends)) == len(ends), "two pieces end at the same place"
    read = [piece.read for piece in pieces]
    assert read == sorted(read), f"what is read becomes less: {read}"
    assert not size or not read or read[-1] <= size, f"{read[-1]} bytes read of {size}"


def _check_resuming(sources: Sequence[Source], settings: InputSettings, pieces: Sequence[Piece]) -> None:
    step = max(len(pieces) // _CURSORS, 1)
    for i in {*range(0, len(pieces), step), len(pieces) - 1} - {-1}:
        cursor = json.loads(json.dumps(pieces[i].end))
        again = list(read_pieces(sources, settings, cursor))
        assert again == list(pieces[i + 1 :]), f"from {cursor} on come {again}, not {pieces[i + 1 :]}"


def _check_item(item: Item) -> None:
    assert isinstance(item.source, str)
    assert type(item.position) is int
    if isinstance(item, Rejection):
        assert item.reason.endswith("."), item.reason
        assert item.position >= 0
        assert item.offset >= -1
        assert item.length >= -1
        item.reason.encode("utf-8", "surrogatepass")
    else:
        assert item.position >= 1
        assert item.id
        assert item.zones
        for text in (item.id, *chain.from_iterable(item.zones.items())):
            text.encode()  # halves of surrogate pairs cannot be written


def _check_rejections_pass(pieces: Sequence[Piece], found: Sequence[Item]) -> None:
    cut = [chunk for piece in pieces for chunk in piece.chunks if isinstance(chunk, Rejection)]
    assert len(cut) == sum(any(item is rejection for rejection in cut) for item in found), "a rejection is lost"


def check_file(name: str, form: str, data: bytes, settings: InputSettings, way: int) -> list[Item]:
    """Read a plain file of a format and check what is true of such, besides what is true of all sources."""
    pieces, found = check_sources([source(name, data, settings, way)], settings)
    items = [item for piece in pieces for item in piece.chunks]
    if form not in formats.WHOLE and form != "parquet":
        _check_cover(items, data)
        _check_block_size(name, found, data, settings)
    for item in found:
        if isinstance(item, Rejection) and item.offset >= 0 and item.length >= 0:
            assert item.offset + item.length <= len(data), f"{item} lies behind the end"
    return found


def _check_cover(items: Sequence[Chunk | Rejection], data: bytes) -> None:
    """Check that every byte is in the header, a chunk or a rejection, and none in two."""
    if items and isinstance(items[0], Rejection) and items[0].offset < 0:
        assert len(items) == 1  # the file as a whole is refused
        return
    place = next((len(item.header) for item in items if isinstance(item, Chunk)), -1)
    for item in items:
        place = item.offset if place < 0 else place  # the header is in no chunk
        assert item.offset == place, f"between {place} and {item.offset} bytes are lost or given twice"
        if isinstance(item, Chunk):
            assert item.data == data[place : place + len(item.data)]
            assert item.data
            place += len(item.data)
        else:
            place += item.length
    assert place == len(data) or (not items and (not data.strip() or b"\n" not in data.strip())) or not items


def _check_block_size(name: str, found: Sequence[Item], data: bytes, settings: InputSettings) -> None:
    """Check that where pieces are cut does not change what is in them."""
    if len(data) > settings.max_bytes:
        return  # what is passed over may be told by another reason
    whole = settings._replace(block_bytes=1 << 20)
    (piece,) = list(read_pieces([source(name, data, whole)], whole)) or [None]
    if piece is not None:
        assert list(found) == list(formats.records(piece, whole)), "the size of blocks changes what is read"
    else:
        assert not found
