"""What must be true of the reading of any input: nothing lost, nothing twice, and the same from any checkpoint on."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

from textcat.reading import Batch, Block, InputSettings, Record, Rejection, Source, formats, read_batches
from textcat.reading.decoding import exact_encoding, is_like_ascii
from textcat.reading.recognition import format_by_name
from textcat.reading.streams import file_stream, pipe_stream

Item = Record | Rejection
LONE_RETURN = re.compile(rb"\r(?!\n)")
_RESUMPTIONS = 4  # places from which reading resumes


class _Forwards(io.BytesIO):
    """What cannot be sought in."""

    def seekable(self) -> bool:
        return False


class _Dribbling(io.BytesIO):
    """A pipe that returns a few bytes at a time."""

    def read1(self, size: int | None = -1, /) -> bytes:
        return super().read1(7 if size is None or size < 0 else min(size, 7))


_STREAMS: tuple[tuple[str, Callable[[bytes], Any]], ...] = (
    ("file", lambda data: file_stream(io.BytesIO(data))),
    ("file", lambda data: file_stream(_Forwards(data))),
    ("pipe", lambda data: pipe_stream(_Dribbling(data))),
)


def source(name: str, data: bytes, settings: InputSettings, way: int = 0) -> Source:
    """Make a source of bytes: a file (0), one that cannot be sought in (1), or a pipe (2)."""
    kind, opened = _STREAMS[way]
    size = None if kind == "pipe" else len(data)
    return Source(name, kind, format_by_name(name, settings), size, 0, 1, lambda: opened(data))


def check_sources(sources: Sequence[Source], settings: InputSettings) -> tuple[list[Batch], list[Item]]:
    """Read sources, check what is true of all, and return their batches, and what these hold."""
    batches = list(read_batches(sources, settings))
    _check_chain(batches, sum(source.size or 0 for source in sources))
    if all(source.kind != "pipe" for source in sources):
        _check_resuming(sources, settings, batches)
    items = [item for batch in batches for item in _items(batch, settings)]
    for item in items:
        _check_item(item)
    _check_rejections_pass(batches, items)
    return batches, items


def _items(batch: Batch, settings: InputSettings) -> list[Item]:
    """Return what the blocks of a batch hold; of news, older versions, too, which count for less in the same batch."""
    list(formats.batch_records(batch, settings))
    blocks = (
        [block] if isinstance(block, Rejection) else formats.block_records(block, settings) for block in batch.blocks
    )
    return list(chain.from_iterable(blocks))


def _check_chain(batches: Sequence[Batch], size: int) -> None:
    ends = [batch.end for batch in batches]
    assert [batch.start for batch in batches[1:]] == ends[:-1], "a batch begins elsewhere than the one before it ends"
    assert len(set(ends)) == len(ends), "two batches end at the same place"
    read = [batch.read for batch in batches]
    assert read == sorted(read), f"what is read becomes less: {read}"
    assert not size or not read or read[-1] <= size, f"{read[-1]} bytes read of {size}"


def _check_resuming(sources: Sequence[Source], settings: InputSettings, batches: Sequence[Batch]) -> None:
    step = max(len(batches) // _RESUMPTIONS, 1)
    for i in {*range(0, len(batches), step), len(batches) - 1} - {-1}:
        checkpoint = json.loads(json.dumps(batches[i].end))
        again = list(read_batches(sources, settings, checkpoint))
        assert again == list(batches[i + 1 :]), f"from {checkpoint} on come {again}, not {batches[i + 1 :]}"


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


def _check_rejections_pass(batches: Sequence[Batch], items: Sequence[Item]) -> None:
    cut = [block for batch in batches for block in batch.blocks if isinstance(block, Rejection)]
    assert len(cut) == sum(any(item is rejection for rejection in cut) for item in items), "a rejection is lost"


def check_file(name: str, form: str, data: bytes, settings: InputSettings, way: int) -> list[Item]:
    """Read a plain file of a format and check what is true of such, besides what is true of all sources."""
    batches, items = check_sources([source(name, data, settings, way)], settings)
    blocks = [block for batch in batches for block in batch.blocks]
    decoded = _decoded(data, form, settings)
    if decoded is None:
        return items
    if form not in formats.WHOLE and form != "parquet":
        _check_cover(blocks, decoded)
        _check_block_size(name, items, data, settings)
    for item in items:
        if isinstance(item, Rejection) and item.offset >= 0 and item.length >= 0:
            assert item.offset + item.length <= len(decoded), f"{item} lies behind the end"
    return items


def _decoded(data: bytes, form: str, settings: InputSettings) -> bytes | None:
    """Return the data as they are cut: in UTF-8 what is in UTF-16, None if it is damaged."""
    encoding = exact_encoding(settings.encoding, data[:4])
    if form in ("parquet", "docx", "pdf") or is_like_ascii(encoding):
        return data
    with suppress(UnicodeError):
        return data.decode(encoding).encode()
    return None


def _check_cover(items: Sequence[Block | Rejection], data: bytes) -> None:
    """Check that every byte is in the header, a block or a rejection, and none in two."""
    if items and isinstance(items[0], Rejection) and items[0].offset < 0:
        assert len(items) == 1  # the file as a whole is refused
        return
    position = next((len(item.header) for item in items if isinstance(item, Block)), -1)
    for item in items:
        position = item.offset if position < 0 else position  # the header is in no block
        assert item.offset == position, f"between {position} and {item.offset} bytes are lost or read twice"
        if isinstance(item, Block):
            stored = data[position : position + len(item.data)]
            assert item.data in (stored, LONE_RETURN.sub(b"\n", stored))
            assert item.data
            position += len(item.data)
        elif item.length < 0:
            assert item is items[-1]  # the rest of the file is refused
            return
        else:
            position += item.length
    assert position == len(data) or (not items and (not data.strip() or b"\n" not in data.strip())) or not items


def _check_block_size(name: str, items: Sequence[Item], data: bytes, settings: InputSettings) -> None:
    if len(data) > settings.max_bytes:
        return  # what is skipped may have another reason
    check_items([source(name, data, settings)], items, settings)


def check_items(sources: Sequence[Source], items: Sequence[Item], settings: InputSettings) -> None:
    """Check that where batches are cut does not change what is in them: these items."""
    whole = settings._replace(block_bytes=1 << 20)
    (batch,) = list(read_batches(sources, whole)) or [None]
    if batch is not None:
        assert list(items) == list(_items(batch, whole)), "the size of blocks changes what is read"
    else:
        assert not items
