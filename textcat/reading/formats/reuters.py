"""Reuters SGML, many stories a file → where to cut between stories, and their records."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from textcat.errors import TextcatError
from textcat.reading.formats.spans import Content, FaultError, Span, read
from textcat.reading.members import Member
from textcat.reading.readers import reuters
from textcat.reading.records import Block, InputSettings, Record, Rejection

_OPENING, _CLOSING = b"<REUTERS", b"</REUTERS>"
_TAG = re.compile(_OPENING + b"|" + _CLOSING)
_PROLOGUE = re.compile(rb"\s*(?:<!DOCTYPE[^>]*>\s*)?")


class StoryCutter:
    """Cut behind stories."""

    def __init__(self) -> None:
        self._inside = False  # of a story that is passed over

    def cut(self, data: bytes) -> int:
        """See `LineCutter.cut`."""
        end = data.rfind(_CLOSING)
        return end + len(_CLOSING) if end >= 0 else 0

    def count(self, data: bytes) -> int:
        """See `LineCutter.count`."""
        return data.count(_OPENING)

    def skip(self, data: bytes) -> tuple[int, bool]:
        """See `LineCutter.skip`; where the next story opens, this one ends, too."""
        start = 0 if self._inside else data.find(_OPENING) + len(_OPENING)
        closing, opening = data.find(_CLOSING, start), data.find(_OPENING, start)
        ends = [end for end in (closing + len(_CLOSING) if closing >= 0 else -1, opening) if end >= 0]
        self._inside = not ends
        return (min(ends), True) if ends else (max(len(data) - len(_CLOSING), 0), False)


def records(block: Block, settings: InputSettings) -> Iterator[Record | Rejection]:
    """Yield a document per story, as the reader of Reuters-21578 does; its id is NEWID."""
    return read(_spans(block), lambda span: _content(span, block, settings), block, settings, "Story {}")


def _spans(block: Block) -> Iterator[Span]:
    """Yield the stories, and what stands between them; a story that is cut off ends where the next one begins."""
    data, position = block.data, block.position
    ends = (match.start() if match[0] == _OPENING else match.end() for match in _TAG.finditer(data))
    for start, end in pairwise([0, *ends, len(data)]):
        span = data[start:end]
        if _PROLOGUE.fullmatch(span) is None:
            yield Span(position, block.offset + start, span)
        position += span.startswith(_OPENING)


def _content(span: Span, block: Block, settings: InputSettings) -> Content:
    if not span.data.startswith(_OPENING):
        raise FaultError("has text before it that belongs to no story: mend the file")
    path = Path(block.source)
    member = Member(path, path.name, span.data)
    try:
        (document,) = reuters.parse(member, encoding=settings.encoding or "latin-1")
    except TextcatError as error:
        fault = str(error).removeprefix(f"{member}: ").rstrip(".")
        raise FaultError(f"cannot be read ({fault})") from None
    return Content(document.id, {name: text for name, text in document.zones.items() if text} or {"body": ""})
