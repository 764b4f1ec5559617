"""JSON Lines, one document a line → records, with the fields that a corpus of JSON Lines has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from textcat.reading.formats.spans import Content, Span, is_utf8, read, text_of, without_mark
from textcat.reading.readers.jsonl import Fields
from textcat.reading.records import Block, InputSettings, Record, Rejection


def records(block: Block, settings: InputSettings) -> Iterator[Record | Rejection]:
    """Yield a document per line that is not blank.

    A line has its text in the text field, in ``title`` and ``body``, or in ``zones``; other fields are passed over, and
    so are zones without text. A NUL that JSON's escapes write is part of the text; a NUL byte is no JSON.
    """

    def parse(span: Span) -> Content:
        fields = Fields.of_line(text_of(span, settings.encoding))
        return Content(fields.identifier(settings.id_field), _texts(fields.zones(settings.text_field), settings))

    data, offset = without_mark(block, settings)
    source, limit, in_utf8 = block.source, settings.max_bytes, is_utf8(settings.encoding)
    for number, line in enumerate(data.split(b"\n"), block.position):
        content = _plain(line, settings) if in_utf8 and len(line) <= limit else None
        if content is not None:
            yield Record(content[0] or f"{source}:{number}", source, number, content[1])
        elif line.strip():
            yield from read([Span(number, offset, line)], parse, block, settings, "Line {}")
        offset += len(line) + 1


def _plain(line: bytes, settings: InputSettings) -> tuple[str, dict[str, str]] | None:
    """Give the content of a line as nearly all are; None for any that orjson takes otherwise than Python's json."""
    try:
        fields: Any = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None  # half of a surrogate pair, or no JSON
    if type(fields) is not dict or "zones" in fields:
        return None
    name, text, title = fields.get(settings.id_field), fields.get(settings.text_field), fields.get("title")
    name = "" if name is None else str(name) if type(name) is int else name
    title = "" if title is None else title
    if type(text) is not str or type(name) is not str or type(title) is not str:
        return None  # also an integer of more than 64 bits, which orjson gives as a float
    if title and settings.text_field != "title":
        return name, {"title": title, "body": text} if text else {"title": title}
    return name, {"body": text}


def _texts(zones: dict[str, str], settings: InputSettings) -> dict[str, str]:
    if settings.text_field == "title" and "body" in zones:
        zones = {"body": zones["body"]}
    return {name: text for name, text in zones.items() if text} or {"body": ""}
