"""Reuters SGML, many stories a file → where to cut between stories, and their records."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from textcat.archive.formats.spans import Content, FaultError, Span, read
from textcat.archive.records import Chunk, InputSettings, Record, Rejection
from textcat.corpus.members import Member
from textcat.corpus.readers import reuters
from textcat.errors import TextcatError

_OPENING, _CLOSING = b"<REUTERS", b"</REUTERS>"
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


def records(chunk: Chunk, settings: InputSettings) -> Iterator[Record | Rejection]:
    """Yield a document per story, as the reader of Reuters-21578 does; its id is NEWID."""
    return read(_spans(chunk), lambda span: _content(span, chunk, settings), chunk, settings, "Story {}")


def _spans(chunk: Chunk) -> Iterator[Span]:
    """Yield what begins where a story does, so that one that is cut off does not harm the next."""
    starts = [0, *(match.start() for match in re.finditer(_OPENING, chunk.data)), len(chunk.data)]
    for number, (start, end) in enumerate(pairwise(starts)):
        data = chunk.data[start:end]
        if data[_PROLOGUE.match(data).end() :]:  # type: ignore[union-attr]  # it may match nothing
            yield Span(chunk.position + max(number - 1, 0), chunk.offset + start, data)


def _content(span: Span, chunk: Chunk, settings: InputSettings) -> Content:
    story, closing, rest = span.data.partition(_CLOSING)
    if rest.strip() or not story.startswith(_OPENING):
        raise FaultError("has text outside of stories before or behind it: mend the file")
    path = Path(chunk.source)
    member = Member(path, path.name, story + closing)
    try:
        (document,) = reuters.parse(member, encoding=settings.encoding or "latin-1")
    except TextcatError as error:
        fault = str(error).removeprefix(f"{member}: ").rstrip(".")
        raise FaultError(f"cannot be read ({fault})") from None
    return Content(document.id, {name: text for name, text in document.zones.items() if text} or {"body": ""})
