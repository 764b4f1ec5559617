"""Comma or tab separated values, one document a row → where to cut between rows, and their records."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from textcat.reading.formats.lines import LineCutter
from textcat.reading.formats.spans import Content, FaultError, Span, read, text_of
from textcat.reading.records import Block, InputSettings, Record, Rejection

SEPARATORS = {"csv": (",", ";", "\t", "|"), "tsv": ("\t",)}
_BEFORE = re.compile(r"\A\ufeff?(?:[^\S\n]*\n)*")  # a byte order mark and blank lines
_ROWS_THAT_FIT = 20  # so many lines that look like rows tell that a quote before them was a slip
# What a cell may have is settled by `InputSettings.max_bytes`; the module's own limit is for all who use it.
csv.field_size_limit(max(csv.field_size_limit(), 2**31 - 1))


class Columns(NamedTuple):
    """What separates a file's columns, how many there are, and which of them are read, -1 for none."""

    separator: str
    n: int
    id: int
    title: int
    body: int


@lru_cache(maxsize=64)
def columns(header: bytes, form: str, settings: InputSettings) -> Columns:
    """Read the names of columns.

    The separator is the first of the format's by which there is a column of texts.

    Raises
    ------
    FaultError
        If there is none, or a column that is read is there twice.
    """
    line, seen = _BEFORE.sub("", text_of(Span(1, 0, header), settings.encoding)), ""
    for separator in SEPARATORS[form]:
        try:
            names = [name.strip() for name in _cells(line, separator)]
        except FaultError as fault:
            seen = seen or f"its header {fault}"
            continue
        body = settings.text_field if settings.text_field in names else "body"
        title = "title" if settings.text_field != "title" else ""
        if body in names or title in names:
            places = [_place(names, name) for name in (settings.id_field, title, body)]
            return Columns(separator, len(names), *places)
        seen = seen or f"but {', '.join(names):.200}"
    raise FaultError(f"has no column {settings.text_field!r} ({seen}): name the texts' with --text-field")


def _place(names: list[str], name: str) -> int:
    if names.count(name) > 1:
        raise FaultError(f"has {names.count(name)} columns {name!r}: rename all but one")
    return names.index(name) if name in names else -1


def _cells(row: str, separator: str) -> list[str]:
    try:
        return next(csv.reader([row], delimiter=separator, strict=True), [])
    except csv.Error as error:
        raise FaultError(f"is no row of values, {error}: mend its quotes") from None


def head(data: bytes, at_end: bool) -> int:
    """Give the length of `data` up to the end of the header, the first row that is not blank; 0 if not in sight."""
    start = 3 if data.startswith(codecs.BOM_UTF8) else 0
    while start < len(data):
        end = _row_end(data, start, b",;\t|", final=at_end)
        if not end or data[start:end].strip():
            return end
        start = end
    return len(data) if at_end else 0


def records(block: Block, settings: InputSettings) -> Iterator[Record | Rejection]:
    """Yield a document per row that is not blank.

    A value may stand in double quotes, which are doubled inside of it; then it may have line ends, too. Where a quote
    is not closed, or text follows the closing one, the line that the row starts on is rejected, and only this line.
    """
    which = columns(block.header, block.format, settings)

    def parse(span: Span) -> Content:
        cells = _cells(text_of(span, settings.encoding), which.separator)
        if len(cells) != which.n:
            raise FaultError(f"has {len(cells)} values where the header has {which.n}: mend it")
        body, title = (cells[place] if place >= 0 else "" for place in (which.body, which.title))
        return Content(
            cells[which.id] if which.id >= 0 else "", {"title": title, "body": body} if title else {"body": body}
        )

    return read(_spans(block, which.separator.encode()), parse, block, settings, "The row of line {}")


def _spans(block: Block, separator: bytes) -> Iterator[Span]:
    start, position = 0, block.position
    for end in _row_ends(block.data, separator, final=True):
        row = block.data[start:end]
        if row.strip():
            yield Span(position, block.offset + start, row)
        start, position = end, position + row.count(b"\n")


def _row_ends(data: bytes, separators: bytes, final: bool) -> Iterator[int]:
    """Yield where each row ends, as far as that is in sight; what is `final` ends a row."""
    start = 0
    while start < len(data) and (end := _row_end(data, start, separators, final)):
        yield end
        start = end


def _row_end(data: bytes, start: int, separators: bytes, final: bool) -> int:
    """Give where a row ends, or the line it starts on if its quotes are unbalanced; 0 if that is not in sight."""
    place, last = start, len(data) if final else 0
    while True:
        newline = data.find(b"\n", place)
        quote = data.find(b'"', place, newline if newline >= 0 else len(data))
        if quote < 0:
            return newline + 1 or last
        place = quote + 1
        if quote == start or data[quote - 1] in separators:
            place = _behind_quotes(data, place)
            behind = data[place : place + 2]
            if not final and (place < 0 or behind in (b"", b"\r")):
                return 0
            if place < 0 or not (
                behind in (b"", b"\r") or behind[0] in separators or behind.lstrip(b"\r")[:1] == b"\n"
            ):
                return data.find(b"\n", start) + 1 or last


def _behind_quotes(data: bytes, place: int) -> int:
    """Give where quotes end that have been opened before `place`, behind the closing one; -1 if not in sight."""
    quote = data.find(b'"', place)
    while quote >= 0 and data[quote + 1 : quote + 2] == b'"':
        quote = data.find(b'"', quote + 2)
    return quote + 1 if quote >= 0 else -1


class RowCutter(LineCutter):
    """Cut behind rows, whose values may have line ends in quotes."""

    def __init__(self, header: bytes, form: str, settings: InputSettings) -> None:
        which = columns(header, form, settings)
        self._separator, self._n = which.separator.encode(), which.n
        self._at_start, self._in_quotes = True, False  # of the row that is passed over

    def cut(self, data: bytes) -> int:
        """See `LineCutter.cut`."""
        if b'"' not in data:
            return super().cut(data)
        return max(_row_ends(data, self._separator, final=False), default=0)

    def skip(self, data: bytes) -> tuple[int, bool]:
        """See `LineCutter.skip`; if the row has a quote that seems to be a slip, only its first line is passed over."""
        if self._at_start:
            line = data.find(b"\n") + 1
            if line and self._rows_follow(data, line):
                return line, True
            self._in_quotes = data.startswith(b'"')
        n, self._at_start = self._pass_over(data, int(self._at_start and self._in_quotes))
        return n, self._at_start

    def _rows_follow(self, data: bytes, start: int) -> bool:
        *lines, _ = data[start : start + (1 << 16)].split(b"\n", _ROWS_THAT_FIT)
        return self._n > 1 and bool(lines) and all(line.count(self._separator) == self._n - 1 for line in lines)

    def _pass_over(self, data: bytes, place: int) -> tuple[int, bool]:
        while True:
            if self._in_quotes:
                place = _behind_quotes(data, place)
                if place < 0 or place == len(data):
                    # The last quote may be half of two.
                    return len(data) - (place > 0), False
                self._in_quotes = False
            newline, quote = data.find(b"\n", place), data.find(b'"', place)
            if newline >= 0 and not 0 <= quote < newline:
                return newline + 1, True
            if quote < 0:
                return len(data) - 1, False  # the last may be a separator before a quote
            place = quote + 1
            self._in_quotes = quote > 0 and data[quote - 1 : quote] == self._separator
