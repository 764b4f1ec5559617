"""Read comma or tab separated values (CSV, TSV); each row is a document."""

import codecs
import csv
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

from textcat.reading.annotations import prodigy_labels
from textcat.reading.columns import ANNIFS, ColumnNames, columns_among, has_usual_name, texts_among, titled_zones
from textcat.reading.dates import iso_date
from textcat.reading.faults import FaultKind, UnreadableError
from textcat.reading.formats.annif import uris_in
from textcat.reading.formats.text import LineCutter
from textcat.reading.input_settings import InputSettings
from textcat.reading.labels import Labels, labels_in, labels_of_fields
from textcat.reading.records import Block, Record, RecordFormat, RecordSpan, Rejection

SEPARATORS = {"csv": (",", ";", "\t", "|"), "tsv": ("\t",)}
_BEFORE = re.compile(r"\A\ufeff?(?:[^\S\n]*\n)*")  # of the text before the header: a byte order mark and blank lines
_BLANK = " \t\n\r\v\f"  # the same, as bytes
_LOOKED_AHEAD = 1 << 16  # bytes after a line with an unclosed quote in which rows are sought
_ROWS_THAT_FIT = 20  # number of lines that look like rows, after which an unclosed quote is taken for a slip
# The size of a cell is limited by `InputSettings.max_bytes`; the csv module's own limit would be global.
csv.field_size_limit(max(csv.field_size_limit(), 2**31 - 1))


class _Rows(RecordFormat):
    """Read the rows of CSV and TSV as records.

    If quotes are ordinary characters, the rows of most blocks are parsed together, which is faster than one by one.
    """

    def records(self, block: Block, settings: InputSettings) -> Iterator[Record | Rejection]:
        plain = _plain_records(block, settings)
        return super().records(block, settings) if plain is None else iter(plain)


def _plain_records(block: Block, settings: InputSettings) -> list[Record] | None:
    """Return the records of a block in which quotes are ordinary characters.

    Return None if quotes are not ordinary characters, or if a row may be invalid.
    """
    if not settings.plain_quotes or len(block.data) > settings.max_bytes:
        return None
    try:
        text = RecordSpan(1, 0, block.without_mark(settings)[0]).text(settings)
        separator, names, read = _row(block.header, block.format, settings)
        content, source, n = _content_of(names, read, settings), block.source, len(names)
        first = f"{names[0]}{separator}"
        if text.startswith((first, "\ufeff")) or f"\n{first}" in text or "\n\ufeff" in text:
            return None  # the header may be repeated: rows are then parsed one by one, and the repetition is logged
        records = []
        for number, line in enumerate(text.split("\n"), block.position):
            if line.strip(_BLANK):
                cells = line.rstrip("\r").split(separator)
                if len(cells) != n:
                    return None
                said = content(cells)
                records.append(Record(said.id or f"{source}:{number}", *said[1:-2], source, number))
    except UnreadableError:
        return None
    return records


class _Row(NamedTuple):
    """The separator of a file's columns, the names of all columns, and the names of the columns to read."""

    separator: str
    names: list[str]
    read: ColumnNames


@lru_cache(maxsize=64)
def _row(header: bytes, form: str, settings: InputSettings) -> _Row:
    """Return the separator and the columns of a file, given its header.

    The separator is the first one of the format that gives a header with a column of texts. UnreadableError is raised
    if no separator does.
    """
    line, faults = _BEFORE.sub("", RecordSpan(1, 0, header).text(settings)), []
    for separator in SEPARATORS[form]:
        try:
            names = [name.strip() for name in _cells(line, separator, settings)]
        except UnreadableError as error:
            field = [*settings.text_fields, "text"][0]
            fault = f"has no column {field!r} (its header {error}): name the texts' column with --text-field"
            faults.append(UnreadableError(fault))
            continue
        try:
            texts_among(names, settings)
        except UnreadableError as error:
            faults.append(_no_header(names) or error)
        else:
            return _Row(separator, names, columns_among(names, settings))
    raise faults[0]  # error for the first separator: without it, the whole line is one name


def _no_header(names: list[str]) -> UnreadableError | None:
    """Return the error for a first row that reads like a document, given its cells; None if it may be a header."""
    if len(names) > 1 and not has_usual_name(names) and any(len(name.split()) > 1 or name.isdigit() for name in names):
        row = ", ".join(names)
        return UnreadableError(
            f"has the first row {row!r:.80}, which seems to be no header: name its columns with --columns, or, if it "
            "is one, the texts' column with --text-field"
        )
    return None


def _cells(row: str, separator: str, settings: InputSettings) -> list[str]:
    if settings.plain_quotes:
        return row.rstrip("\r\n").split(separator)
    try:
        return next(csv.reader([row], delimiter=separator, strict=True), [])
    except csv.Error as error:
        if "\r" in row.rstrip("\r\n"):
            fault = "has a carriage return outside of quotes that ends no line"
            raise UnreadableError(f"{fault}: write all ends of lines as line feeds, or quote the value") from None
        raise UnreadableError(f"has wrong quotes ({error}): correct them, or add --plain-quotes") from None


def header_length(data: bytes, at_end: bool, plain_quotes: bool) -> int:
    """Return the length of `data` up to the end of the header, the first row that is not blank; 0 if it is incomplete.

    If `at_end` is True, no more data follow. Unless `plain_quotes` is True, quotes may enclose line ends.
    """
    start = 3 if data.startswith(codecs.BOM_UTF8) else 0
    while start < len(data):
        end = _row_end(data, start, len(data), None if plain_quotes else b",;\t|", at_end)
        if not end or data[start:end].strip():
            return end
        start = end
    return len(data) if at_end else 0


def read_header(row: bytes, form: str, settings: InputSettings) -> bytes:
    """Return a header line for a file without one: the names in `settings.columns`, separated as its first row is."""
    line, encoding = (
        RecordSpan(1, 0, Block("", form, row).without_mark(settings)[0]).text(settings),
        settings.encoding,
    )
    names = settings.columns
    fitting = (separator for separator in SEPARATORS[form] if len(_cells(line, separator, settings)) == len(names))
    return next(fitting, SEPARATORS[form][0]).join(names).encode(encoding or "utf-8")


def _parser(block: Block, settings: InputSettings) -> Callable[[RecordSpan], Record]:
    separator, names, read = _row(block.header, block.format, settings)
    content, n = _content_of(names, read, settings), len(names)
    repeats_header = _repeats_header(names, settings)

    def parse(span: RecordSpan) -> Record:
        # A concatenated file begins with its own byte order mark and header.
        cells = _cells(span.text(settings).removeprefix("\ufeff"), separator, settings)
        if repeats_header(cells):
            raise UnreadableError("repeats the header", FaultKind.LEFT_OUT)
        if len(cells) != n:
            raise UnreadableError(f"has {len(cells)} values where the header has {n}: correct it")
        return content(cells)

    return parse


def _repeats_header(names: list[str], settings: InputSettings) -> Callable[[list[str]], bool]:
    """Return a function that takes the cells of a row and returns whether they repeat the header."""
    first = None if settings.columns else names[0]
    return lambda cells: bool(cells) and cells[0].strip() == first and [*map(str.strip, cells)] == names


def _content_of(names: list[str], read: ColumnNames, settings: InputSettings) -> Callable[[list[str]], Record]:
    """Return a function that takes the cells of a row, in the order of `names`, and returns the row's content.

    `read` has the names of the columns to read.
    """
    column_of = {name: i for i, name in enumerate(names)} | {"": -1}
    body = [column_of[name] for name in read.body]
    title, name, topics, split, date, labelled_for, answer = (column_of[name] for name in (read.title, *read[2:8]))
    topic_columns = {name: column_of[name] for name in read.topic_fields}
    kept = [(name, column_of[name]) for name in read.fields]
    by_annif = read.topics == ANNIFS[0] and not settings.topics_separator
    separator = settings.topics_separator

    def content(cells: list[str]) -> Record:
        cells.append("")  # the cell of a missing column
        zones = titled_zones(cells[title], [cells[column] for column in body], settings)
        fields = {name: cells[column] for name, column in kept} if kept else None
        if settings.labels is None:
            return Record(cells[name], zones, (), iso_date(cells[date]), fields=fields)
        part = settings.part_in(cells[split].strip())
        if topic_columns:
            labels = labels_of_fields({name: cells[column] for name, column in topic_columns.items()})
        elif by_annif:
            labels = Labels(uris_in(cells[topics]))
        else:
            labels = labels_in(cells[topics], read.topics, separator)
        labels = prodigy_labels(labels, cells[answer])
        if cells[labelled_for].strip():
            labels = labels._replace(labelled_for=labels_in(cells[labelled_for], "labelled_for", separator).topics)
        return Record(cells[name], zones, labels.topics, iso_date(cells[date]), part, labels.labelled_for, fields)

    return content


def _spans(block: Block, settings: InputSettings) -> Iterator[RecordSpan]:
    """Yield the `RecordSpan` of each row of a block that is not blank.

    A value may be in double quotes, which are doubled inside it, and may then contain line ends. If a quote is not
    closed, or text follows the closing one, only the line on which the row starts is rejected.
    If `settings.plain_quotes` is True, quotes are ordinary characters, and a row is a line.
    """
    separator = None if settings.plain_quotes else _row(block.header, block.format, settings).separator.encode()
    (data, offset), start, position = block.without_mark(settings), 0, block.position
    for end in row_ends(data, separator, True):
        row = data[start:end]
        if row.strip():
            yield RecordSpan(position, offset + start, row)
        start, position = end, position + row.count(b"\n")


def row_ends(data: bytes, separators: bytes | None, final: bool, most: int | None = None) -> Iterator[int]:
    """Yield the end of each complete row; if `final` is True, the end of the data is the end of a row.

    `separators` are the bytes that separate values; None: quotes are ordinary characters. A row that does not end
    within `most` bytes is taken for incomplete.
    """
    start, n = 0, len(data)
    while start < n:
        limit = n if most is None else min(start + most, n)
        end = _row_end(data, start, limit, separators, final and limit == n)
        if not end:
            return
        yield end
        start = end


def _row_end(data: bytes, start: int, limit: int, separators: bytes | None, final: bool) -> int:
    """Return the end of the row at `start`, or of its first line if its quotes are not balanced; 0 if it is incomplete.

    Only data before `limit` are looked at. `separators` are the bytes that separate values; None: quotes are ordinary
    characters. If `final` is True, no more data follow.
    """
    position, last = start, limit if final else 0
    if separators is None:
        return data.find(b"\n", start, limit) + 1 or last
    newline = data.find(b"\n", position, limit)
    while True:
        if 0 <= newline < position:
            newline = data.find(b"\n", position, limit)
        quote = data.find(b'"', position, newline if newline >= 0 else limit)
        if quote < 0:
            return newline + 1 or last
        position = quote + 1
        if quote == start or data[quote - 1] in separators:
            position = _behind_quotes(data, position, limit)
            behind = data[position : min(position + 2, limit)]
            if not final and (position < 0 or behind in (b"", b"\r")):
                return 0
            if position < 0 or not (
                behind in (b"", b"\r") or behind[0] in separators or behind.lstrip(b"\r")[:1] == b"\n"
            ):
                return data.find(b"\n", start, limit) + 1 or last


def _behind_quotes(data: bytes, position: int, limit: int) -> int:
    """Return the position after the quote that closes a value opened before `position`; -1 if none does by `limit`."""
    quote = data.find(b'"', position, limit)
    while quote >= 0 and data[quote + 1 : min(quote + 2, limit)] == b'"':
        quote = data.find(b'"', quote + 2, limit)
    return quote + 1 if quote >= 0 else -1


class RowCutter(LineCutter):
    """Cut a file after rows; a value of a row may have line ends if it is in quotes."""

    def __init__(self, header: bytes, form: str, settings: InputSettings) -> None:
        row = _row(header, form, settings)
        self.columns = row.read
        self._separator, self._n, self._quotes = row.separator.encode(), len(row.names), not settings.plain_quotes
        self._most = settings.most_held
        # state of the row that is skipped
        self._at_start, self._in_first_line, self._in_quotes = True, True, False

    def cut(self, data: bytes, at_end: bool = False) -> int:
        """Return the length of the whole rows at the start of the data, up to the first one that is too long.

        If `at_end` is True, no more data follow.
        """
        if len(data) <= self._most and not (self._quotes and b'"' in data):
            return len(data) if at_end else super().cut(data)
        separators = self._separator if self._quotes else None
        return max(row_ends(data, separators, at_end, self._most), default=0)

    def skip(self, data: bytes) -> tuple[int, bool]:
        """Return how many bytes of the data belong to the record that is being skipped, and whether it ends there."""
        # In a row with an apparently stray quote, only the first line is skipped.
        if not self._quotes:
            return super().skip(data)
        if self._at_start:
            self._in_first_line, self._in_quotes = True, data.startswith(b'"')
        before = int(self._at_start and self._in_quotes)
        if self._in_first_line and (line := data.find(b"\n") + 1):
            if self._rows_follow(data, line):
                self._at_start = True
                return line, True
            self._in_first_line = False
        n, self._at_start = self._pass_over(data, before)
        return n, self._at_start

    def is_undecided(self, data: bytes) -> bool:
        """Return whether `skip` needs more data to tell whether the record being skipped ends with its first line."""
        line = data.find(b"\n") + 1 if self._quotes and (self._at_start or self._in_first_line) else 0
        return line > 0 and len(data) - line < _LOOKED_AHEAD and data.count(b"\n", line) < _ROWS_THAT_FIT

    def is_open(self, rest: bytes) -> bool:
        """Return whether a quote is open at the end of the file, in the record that is being skipped.

        `rest` is the end of the file that `skip` has not passed over.
        """
        return self._in_quotes and not rest  # a rest is the quote that closes the value

    def _rows_follow(self, data: bytes, start: int) -> bool:
        *lines, rest = data[start : start + _LOOKED_AHEAD].split(b"\n", _ROWS_THAT_FIT)
        return self._n > 1 and all(line.count(self._separator) == self._n - 1 for line in lines or [rest])

    def _pass_over(self, data: bytes, position: int) -> tuple[int, bool]:
        newline = data.find(b"\n", position)
        while True:
            if self._in_quotes:
                position = _behind_quotes(data, position, len(data))
                if position < 0 or position == len(data):
                    # The last quote may be the first of a doubled quote.
                    return len(data) - (position > 0), False
                self._in_quotes = False
            if 0 <= newline < position:
                newline = data.find(b"\n", position)
            quote = data.find(b'"', position, newline if newline >= 0 else len(data))
            if newline >= 0 and quote < 0:
                return newline + 1, True
            if quote < 0:
                return len(data) - 1, False  # the last character may be a separator before a quote
            position = quote + 1
            self._in_quotes = quote > 0 and data[quote - 1 : quote] == self._separator


FORMAT = _Rows(_spans, _parser, "The row of line {}", RowCutter)
