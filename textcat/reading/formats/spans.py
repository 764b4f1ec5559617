"""The bytes of single records, and a way to read one → records and rejections."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from textcat.reading.readers.jsonl import FaultError
from textcat.reading.records import Block, InputSettings, Record, Rejection

__all__ = [
    "Content",
    "FaultError",
    "Span",
    "is_encoding",
    "is_like_ascii",
    "is_utf8",
    "read",
    "text_of",
    "too_long",
    "without_mark",
]


class Span(NamedTuple):
    """One record as it stands in its source: at which position and offset, and its bytes."""

    position: int
    offset: int
    data: bytes


class Content(NamedTuple):
    """What a record says: its id, "" if it has none, and its texts."""

    id: str
    zones: dict[str, str]


def read(
    spans: Iterable[Span],
    parse: Callable[[Span], Content],
    block: Block,
    settings: InputSettings,
    unit: str,
) -> Iterator[Record | Rejection]:
    """Yield each span's record, or why it is none.

    Parameters
    ----------
    spans : iterable of Span
    parse : callable
        Gives the content of a span or raises FaultError.
    block : Block
        What the spans are from.
    settings : InputSettings
    unit : str
        What a span is called in a sentence, with ``{}`` for its position.
    """
    for span in spans:
        try:
            if len(span.data) > settings.max_bytes:
                raise FaultError(too_long(len(span.data), settings))
            content = parse(span)
            name = content.id or f"{block.source}:{span.position}"
            yield Record(name, block.source, span.position, content.zones)
        except FaultError as fault:
            reason = f"{unit.format(span.position)} {fault}."
            yield Rejection(block.source, span.position, reason, span.offset, len(span.data))


def too_long(length: int, settings: InputSettings) -> str:
    """Say that a record is longer than records may be, as the rest of a sentence."""
    return f"has {length} bytes and is not read, as a record may have {settings.max_bytes} at most"


def without_mark(block: Block, settings: InputSettings) -> tuple[bytes, int]:
    """Give the data without the byte order mark that a file in UTF-8 may start with, and the data's offset."""
    if block.offset == 0 and block.data.startswith(codecs.BOM_UTF8) and is_utf8(settings.encoding):
        return block.data[3:], 3
    return block.data, block.offset


def text_of(span: Span, encoding: str) -> str:
    """Decode a span.

    Raises
    ------
    FaultError
        If it is not in that encoding, or has a NUL byte, which no text has, but a picture or UTF-16.
    """
    encoding = encoding or "utf-8"
    try:
        text = span.data.decode(encoding)
    except UnicodeError as error:
        place = span.offset + getattr(error, "start", 0)
        raise FaultError(f"is not {encoding} (byte {place}): name its encoding with --encoding") from None
    if "\0" in text:
        place = span.offset + max(span.data.find(b"\0"), 0)
        raise FaultError(f"has a NUL byte (byte {place}), so it is no text in {encoding}: leave it out, or convert it")
    return text


def is_encoding(name: str) -> bool:
    """Tell whether there is an encoding of texts with this name."""
    try:
        b"a".decode(name)
    except LookupError:
        return False
    except UnicodeError:
        pass  # it needs more than a byte
    return True


@lru_cache(maxsize=8)
def is_utf8(encoding: str) -> bool:
    """Tell whether a name, or "", means UTF-8."""
    return not encoding or codecs.lookup(encoding).name == "utf-8"


@lru_cache(maxsize=8)
def is_like_ascii(encoding: str) -> bool:
    """Tell whether ASCII's characters stand in an encoding as the bytes they are in ASCII, so that lines can be cut."""
    if encoding.lower().startswith(("hz", "iso2022", "iso-2022")):
        return False  # but after an escape they are parts of others
    ascii_bytes = bytes(range(128))
    try:
        return ascii_bytes.decode(encoding or "utf-8") == ascii_bytes.decode("ascii")
    except UnicodeError:
        return False
