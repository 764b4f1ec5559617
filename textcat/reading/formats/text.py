"""A text file that is one document → its record."""

from __future__ import annotations

from collections.abc import Iterator

from textcat.reading.formats.spans import Content, Span, read, text_of, without_mark
from textcat.reading.records import Block, InputSettings, Record, Rejection


def records(block: Block, settings: InputSettings) -> Iterator[Record | Rejection]:
    """Yield the document a file is, whose id is its source; an empty file is a document without a word."""

    def parse(span: Span) -> Content:
        return Content(block.source, {"body": text_of(span, settings.encoding)})

    data, offset = without_mark(block, settings)
    return read([Span(block.position, offset, data)], parse, block, settings, "The file")
