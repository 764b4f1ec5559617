"""Divide a file into blocks of whole records, beginning at any position."""

import posixpath
from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import NamedTuple

from textcat.reading.columns import log_usual_names
from textcat.reading.containers import ContainerEntry
from textcat.reading.decoding import as_utf8, with_line_feeds
from textcat.reading.faults import FaultKind, UnreadableError
from textcat.reading.formats import BINARY, FORMATS, REFERENCES, WHOLE, delimited, parquet, xml_items
from textcat.reading.formats.delimited import RowCutter
from textcat.reading.formats.documents import LARGER
from textcat.reading.formats.jsonl import BEFORE_CLOSING, further_objects, is_unclosed
from textcat.reading.formats.text import LineCutter
from textcat.reading.formats.warc import RecordCutter
from textcat.reading.input_settings import InputSettings
from textcat.reading.recognition import holds_array
from textcat.reading.records import Block, Checkpoint, Rejection, log_left_out, reject_or_raise
from textcat.reading.scans import mets_blocks
from textcat.reading.sources import Source
from textcat.reading.streams import ByteStream, LookAhead, seekable_file, whole_bytes

_TAIL = 1 << 16  # bytes at the end of a block in which the last line end is sought
_OF_VALUES = frozenset(("csv", "jsonl", "mbox", "tsv"))  # line formats in which carriage returns may be part of text
_JSON = frozenset(("json", "json-feed", "ninjs"))
_LINE_FORMATS = REFERENCES - {"endnote"} | {"annif", "lines", *_OF_VALUES}


class Place(NamedTuple):
    """A position inside a source, from which reading can resume."""

    offset: int = 0  # offset in the uncompressed file; in a Parquet file, the number of the row group
    position: int = 0  # number of the line, row or document that follows; 0 at the beginning of a file
    base: int = 0  # bytes of a folder's files that precede the file
    path: tuple[int, ...] = ()  # number of the source's entry; if that is an archive, then of its entry, and so on

    def checkpoint(self, number: int) -> Checkpoint:
        """Return the checkpoint of this position, given the source's number."""
        return (number, *self[:3], *self.path)


class Step(NamedTuple):
    """A block of records or a Rejection, and the position in the source at which the next one begins."""

    item: Block | Rejection
    after: Place | None  # the place after the item; None at the end of the source or file
    read: int  # bytes of the source consumed so far


def file_steps(
    stream: ByteStream, template: Block, settings: InputSettings, position: Place, name: str
) -> Iterator[Step]:
    """Return an iterator that reads a file step by step: blocks of whole records, and Rejections of unreadable parts.

    `template` is an empty block: every block of the file copies its source and format.
    """
    if template.format == "parquet":
        return _table_steps(stream, template, settings, position, name)
    if template.format in BINARY & WHOLE:
        return _whole_file(stream, template, LARGER * settings.max_bytes)
    decoded = None if template.format in BINARY else as_utf8(stream, settings.encoding)
    if decoded is not None:
        stream, template, settings = decoded, template._replace(decoded=True), settings._replace(encoding="utf-8")
    if template.format in WHOLE:
        return _whole_file(stream, template, settings.max_bytes)
    if template.format in _LINE_FORMATS:
        stream = with_line_feeds(stream, only_if_alone=template.format in _OF_VALUES)
    return _record_steps(stream, template, settings, position, name)


def mets_steps(
    stream: ByteStream, template: Block, settings: InputSettings, position: Place, entry: Source | ContainerEntry
) -> Iterator[Step]:
    """Yield blocks of the documents of a METS file, each with the place after it.

    `template` is an empty block, whose source and format the blocks get; `entry` is the file.
    """
    inside = posixpath.dirname(entry.name) if isinstance(entry, ContainerEntry) else ""
    blocks = mets_blocks(stream, template, settings, entry.neighbours, inside, max(position.position, 1))
    block = next(blocks)
    for following in chain(blocks, [None]):
        after = None if following is None else Place(0, following.position)
        yield Step(block, after, stream.consumed())
        if following is not None:
            block = following


def _whole_file(stream: ByteStream, template: Block, most: int) -> Iterator[Step]:
    """Yield a file that is one document, as a single block; raise UnreadableError if it has more than `most` bytes.

    `template` is an empty block: the yielded block copies its source and format.
    """
    data = whole_bytes(stream, most)
    if data or not stream.prompt:
        yield Step(template._replace(data=data), None, stream.consumed())


def _table_steps(
    stream: ByteStream, template: Block, settings: InputSettings, position: Place, name: str
) -> Iterator[Step]:
    """Yield blocks of rows of a Parquet file, each with the place after it; if it is damaged, end with a Rejection.

    UnreadableError is raised if the file does not have the needed columns.
    """
    file, part = seekable_file(stream)
    try:
        for block, *after, share in parquet.row_blocks(
            file, template.source, settings, position.offset, position.position
        ):
            yield Step(block, Place(*after), part.at(share))
    except UnreadableError as fault:
        if fault.kind in (FaultKind.CONTENT, FaultKind.ENCODING):
            raise  # it is not damaged, but lacks the columns
        yield Step(reject_or_raise(settings, fault, name, subject="The file, or the rest of it,"), None, part.end)


def _record_steps(
    stream: ByteStream, template: Block, settings: InputSettings, position: Place, name: str
) -> Iterator[Step]:
    """Yield the steps of reading a file of many records: blocks that end where a record ends, and Rejections."""
    ahead, largest = LookAhead(stream), settings.most_held
    if template.format in delimited.SEPARATORS:
        end_of_header = partial(delimited.header_length, plain_quotes=settings.plain_quotes)
        n = ahead.find(end_of_header, min(settings.block_bytes, largest), largest)
        if not n and not ahead.ended:
            raise UnreadableError(f"has a header of more than {largest} bytes: check that it is a table")
        if not n and ahead.error:
            raise ahead.error
        row = ahead.data[:n] if settings.columns else ahead.drop(n)
        header = delimited.read_header(row, template.format, settings) if settings.columns and row.strip() else row
        template = template._replace(header=header)
        if not template.header.strip():
            return  # an empty file has no header, either
    if template.format in xml_items.TAGS:
        template = _with_opening(ahead, template, settings, largest)
    is_array = template.format in _JSON and holds_array(stream, settings)
    is_enclosed = template.format in _JSON or template.format in xml_items.TAGS
    whole = _WholeRecords(ahead, template, settings, largest, is_enclosed)
    if position.position:
        ahead.move_to(position.offset)
        whole.position = position.position
    while (item := whole.take()) is not None:
        yield Step(item, Place(ahead.offset, whole.position), stream.consumed())
    if ahead.error:
        fault, subject = ahead.error, f"The file, from byte {ahead.offset} on,"
        n_left = fault.n_expected - ahead.offset if fault.n_expected >= 0 and stream.file else -1
        rejection = reject_or_raise(settings, fault, name, offset=ahead.offset, length=n_left, subject=subject)
        yield Step(rejection, None, stream.consumed())
    elif is_enclosed and (end := _end_of_enclosed(ahead, template, settings, whole.position, name, is_array)):
        yield Step(end, None, stream.consumed())


def _with_opening(ahead: LookAhead, template: Block, settings: InputSettings, largest: int) -> Block:
    """Return a copy of the empty block `template` whose header is everything before the first item of an XML file.

    UnreadableError is raised if there is no item in the first `largest` bytes.
    """
    n = ahead.find(lambda data, _: xml_items.first_item(template.format, data) + 1, settings.block_bytes, largest)
    if not n and not ahead.ended:
        raise UnreadableError(f"has no item in its first {largest} bytes: check its format")
    return template._replace(header=ahead.drop(n - 1)) if n else template


def _end_of_enclosed(
    ahead: LookAhead, template: Block, settings: InputSettings, position: int, name: str, is_array: bool
) -> Block | Rejection | None:
    """Return the rest of a file after its last whole record as a block; None if there is no rest.

    If the array or element that encloses all records is not closed, or an object of JSON that seems to be followed by
    others, a Rejection is returned instead.
    """
    rest = template._replace(offset=ahead.offset, position=position, data=ahead.data)
    if template.format in _JSON:
        # The end is a step of its own, without a place after it: a run that resumes after the last object reads it
        # again.
        data = rest.without_mark(settings)[0]
        if data.strip(BEFORE_CLOSING):  # a ], or an incomplete object, which is rejected
            n_further = further_objects(data) if is_unclosed(data) else 0
            return _unread_rest(rest, settings, n_further, name) if n_further else rest
        if not is_array:
            return None
        closing, what, missing = "]", "The array", "objects"
    else:
        is_cut_off = xml_items.first_item(template.format, rest.data) >= 0
        root = "" if is_cut_off else xml_items.ends_without_root(template.header, rest.data)
        if not root:
            return rest if rest.data.strip() or (rest.data and rest.offset) else None
        closing, what, missing = f"</{root}>", "The file", "items"
    why = f"ends without {closing}, so {missing} may be missing: check whether the file is complete"
    fault = UnreadableError(why, FaultKind.DAMAGE, f"its {'array ' if is_array else 'XML '}ends without {closing}")
    return reject_or_raise(settings, fault, name, what, rest.position, rest.offset, len(rest.data))


def _unread_rest(rest: Block, settings: InputSettings, n_further: int, name: str) -> Rejection:
    """Return the Rejection of the rest of a file of JSON that seems to be an object and `n_further` more."""
    n = len(rest.data)
    why = f"is not closed, so about {n_further:,} further objects in the last {n:,} bytes of the file cannot be read"
    fault = UnreadableError(f"{why}: correct it", FaultKind.DAMAGE, why)
    rejection = reject_or_raise(settings, fault, name, "The object", rest.position, rest.offset, n)
    return rejection._replace(n_further=n_further)


class _WholeRecords:
    """Take whole records from a buffer of a file's next bytes: about `block_bytes`, or more if a record is longer."""

    def __init__(
        self, ahead: LookAhead, template: Block, settings: InputSettings, largest: int, is_enclosed: bool
    ) -> None:
        self.position = 1 + (0 if template.format in xml_items.TAGS else template.header.count(b"\n"))
        self._ahead, self._template, self._settings, self._largest = ahead, template, settings, largest
        self._is_enclosed = is_enclosed
        self._cutter = FORMATS[template.format].cutter(template.header, template.format, settings)  # type: ignore[misc]
        if isinstance(self._cutter, RowCutter):
            log_usual_names(template.source, self._cutter.columns, settings)

    def take(self) -> Block | Rejection | None:
        """Return a block of the next whole records, or a Rejection if the next record is too long.

        Return None at the end of the data, even if the data end because of an error.
        """
        ahead = self._ahead
        # One byte more than a record may have tells whether more data follow it.
        n = ahead.find(self._end, self._settings.block_bytes, self._largest + 1, self._without_rest)
        if not n:
            is_long_row = isinstance(self._cutter, RowCutter) and len(ahead.data) > self._largest
            return self._passed_over() if is_long_row or not ahead.ended else None
        block = self._template._replace(offset=ahead.offset, position=self.position, data=ahead.drop(n))
        self.position += self._cutter.count(block.data)
        return block

    def _end(self, data: bytes, whole: bool) -> int:
        # A line that was incomplete when the file was listed is omitted, together with data added after it.
        is_part = whole and isinstance(self._cutter, LineCutter) and self._ahead.ends_within_line()
        is_at_end = whole and not self._is_enclosed and not is_part
        if isinstance(self._cutter, RowCutter):
            return self._cutter.cut(data, is_at_end)
        return len(data) if is_at_end else self._cutter.cut(data)

    def _without_rest(self, size: int) -> int:
        """Return how many bytes to read: `size`, or fewer if a line ends shortly before `size`.

        Reading then stops at the end of this line, so that no partial record is left over, which would have to be
        copied.
        """
        start = size - _TAIL
        if start < 0 or type(self._cutter) is not LineCutter:
            return size
        end = self._cutter.cut(self._ahead.ahead(start, _TAIL))
        return start + end if end else size

    def _passed_over(self) -> Block | Rejection:
        ahead, settings, start, position = self._ahead, self._settings, self._ahead.offset, self.position
        ends, n_further, is_json = False, 0, self._template.format in _JSON
        rows = self._cutter if isinstance(self._cutter, RowCutter) else None
        is_open = False
        while not ends:
            data = ahead.data
            if rows is not None and not ahead.ended and rows.is_undecided(data):
                ahead.fill(len(data) + settings.block_bytes)
                continue
            n, ends = self._cutter.skip(data)
            is_last = ahead.ended and not ends and (rows is None or n in (0, len(data)))
            if is_last:
                is_open = rows is not None and rows.is_open(data[n:])
                n = len(data)
            n_further += further_objects(data[:n]) if is_json else 0
            self.position += self._cutter.count(ahead.drop(n))
            if is_last:
                break
            ahead.fill(len(ahead.data) + settings.block_bytes)
        if is_open:
            n_further = max(self.position - position - 1, 0)
        length = ahead.offset - start
        if isinstance(self._cutter, RecordCutter):
            fault = self._cutter.fault(length)
            if settings.labels is not None and fault.kind is FaultKind.LEFT_OUT:
                log_left_out(self._template.source, f"{fault.detail}.")
                return self._template._replace(position=position, offset=start)
        elif is_open and n_further:
            fault = UnreadableError(
                f"has a quote that is not closed, so about {n_further:,} further lines cannot be read: close it"
            )
        elif length <= settings.max_bytes:
            fault = UnreadableError(f"has a quote that is not closed within {settings.max_bytes} bytes: close it")
        else:
            fault = settings.too_long(length)
        rejection = reject_or_raise(settings, fault, self._template.source, "The record", position, start, length)
        return rejection._replace(n_further=0 if ends else n_further)
