"""A file of Reuters Corpus Volume 1's XML, which is one story → its record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from textcat.errors import TextcatError
from textcat.reading.formats.spans import Content, FaultError, Span, read
from textcat.reading.members import Member
from textcat.reading.readers import rcv1
from textcat.reading.records import Block, InputSettings, Record, Rejection


def records(block: Block, settings: InputSettings) -> Iterator[Record | Rejection]:
    """Yield the story a file is, as the reader of RCV1 does; its id is the itemid."""

    def parse(span: Span) -> Content:
        path = Path(block.source)
        member = Member(path, path.name, span.data)
        try:
            (document,) = rcv1.parse(member, encoding=settings.encoding)
        except TextcatError as error:
            raise FaultError(str(error).removeprefix(f"{member} ").rstrip(".")) from None
        return Content(document.id, {name: text for name, text in document.zones.items() if text} or {"body": ""})

    return read([Span(block.position, block.offset, block.data)], parse, block, settings, "The file")
