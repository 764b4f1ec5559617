"""The results of reading: batches of blocks, records, and rejections; and parsing the records of a block."""

import codecs
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple, Protocol, TypeAlias

from textcat.reading.faults import FaultKind, RefusedError, UnreadableError, encoding_error
from textcat.reading.input_settings import InputSettings
from textcat.reading.labels import Labels

log = logging.getLogger(__name__)
#: The start or end of a batch: a few integers that only the reading side interprets. A list, as from JSON, is accepted,
#: too.
Checkpoint: TypeAlias = tuple[int, ...]
START_OVER = "start again with --restart"  # how to begin a run of `textcat tag` again, for error messages
#: The version of records without versions; no number of a version is negative.
NO_VERSION = (-1, -1)
# Kinds of faults after which the same file may be readable later.
_PASSING = frozenset({FaultKind.ACCESS, FaultKind.CHANGED, FaultKind.DANGLING, FaultKind.UNLISTED})
_OF_ALL = _PASSING | {FaultKind.LINK}


Candidates: TypeAlias = Mapping[str, Labels | UnreadableError]


class Record(NamedTuple):
    """A document as read: its content, its source, and its position in the source.

    The function that parses a record does not know the last two, and leaves the id "" if the record has none.
    """

    #: The record's own id, which need not be unique. The id of a text file is its source; a record without an id gets
    #: ``source:position``.
    id: str
    zones: dict[str, str]  # at least one zone; its text may be empty
    # Topics, split and labelled_for are set only if `InputSettings.labels` asks for labels.
    topics: tuple[str, ...] = ()
    date: str = ""  # in ISO 8601 if the form of the source is known
    split: str = ""
    labelled_for: tuple[str, ...] | None = None  # topics that it was judged for; None: all
    fields: dict[str, Any] | None = None  # the fields requested by `InputSettings.fields`; None: it requests none
    language: str = ""  # declared by the source
    #: For news: version number, and microseconds from year 1 to its date (-1: unknown); see `without_superseded`.
    version: tuple[int, int] = NO_VERSION
    #: Why a news item is not read, such as that it is canceled; "": it is read. A sentence, or as parsed, its end, with
    #: the record as subject.
    left_out: str = ""
    due: float | None = None  # when to read a left-out news item again, see `Rejection`
    #: For JSON whose field of topics was not named: the fields with a usual name, each with its labels, or the reason
    #: why they cannot be read. An entry "topics" is the field itself, whose labels are in the record. None: any other
    #: record.
    candidates: Candidates | None = None
    kind: FaultKind = FaultKind.LEFT_OUT  # of its Rejection, if it is left out
    #: The input's path or URL, followed by the path inside a folder or archive: ``a.zip/b/c.xml``.
    source: str = ""
    #: The place in the source, counted from 1: the line on which the record starts, its row, or its number.
    position: int = 0


class Rejection(NamedTuple):
    """A part of the input that gives no document: it could not be read, or was left out; `reason` says why."""

    source: str
    position: int  # as in `Record`; 0: the whole source, or the rest of it, is rejected
    reason: str  # one sentence
    #: Offset and length of the rejected bytes in the uncompressed source (converted to UTF-8 if it is in an encoding
    #: such as UTF-16); -1 if unknown.
    offset: int = -1
    length: int = -1
    kind: FaultKind = FaultKind.CONTENT
    #: When to read the source again, in seconds since 1970; 0: as soon as possible; None: when it has changed.
    due: float | None = None
    n_further: int = 0  # how many more records the rejected bytes seem to have, which cannot be told apart
    #: Name of the module that is needed to read it, and not installed: the source is read again when it is; "": none.
    needs: str = ""

    @property
    def is_fault(self) -> bool:
        """Return whether this is an error, not a part that is left out on purpose, such as news under embargo."""
        return self.kind is not FaultKind.LEFT_OUT

    @property
    def is_of_all(self) -> bool:
        """Return whether the whole source is rejected, because it could not be opened, listed or examined."""
        return self.kind in _OF_ALL and not self.position and self.offset < 0

    def __str__(self) -> str:
        return f"{self.source}{f':{self.position}' if self.position else ''}: {self.reason}"


def reject_or_raise(
    settings: InputSettings,
    fault: UnreadableError,
    source: str,
    part: str = "",
    position: int = 0,
    offset: int = -1,
    length: int = -1,
    subject: str = "The file",
) -> Rejection:
    """Return the Rejection of input that cannot be read because of `fault`.

    The reason in the Rejection begins with `part`, such as "Line 3", or with `subject` if `part` is "". The other
    arguments are those of `Rejection`. If the settings ask for labels, RefusedError is raised instead.
    """
    if settings.labels is not None:
        raise RefusedError(source, part, fault) from None
    subject = "The folder" if fault.kind is FaultKind.UNLISTED else subject
    due = 0.0 if fault.kind in _PASSING else None
    return Rejection(source, position, f"{part or subject} {fault}.", offset, length, fault.kind, due, 0, fault.needs)


class Block(NamedTuple):
    """Undecoded bytes of some whole records of one source and one format."""

    source: str
    format: str
    data: bytes
    position: int = 1  # position of the first line, row or document
    # offset of the data in the uncompressed source; -1: the data are not stored like this in the source
    offset: int = 0
    header: bytes = b""  # the first row of CSV and TSV, with the names of the columns
    decoded: bool = False  # True: the data were converted to UTF-8 from an encoding such as UTF-16

    def without_mark(self, settings: InputSettings) -> tuple[bytes, int]:
        """Return the data without the byte order mark of UTF-8, and the position of these data in the source."""
        if self.offset == 0 and self.data.startswith(codecs.BOM_UTF8) and settings.in_utf8():
            return self.data[3:], 3
        return self.data, self.offset


class PipeState(NamedTuple):
    """The number and the checksum of the bytes read from a pipe."""

    n_bytes: int
    sha256: str


class BatchNumber(NamedTuple):
    """A batch's number: that of its stretch (see `textcat.reading.shares`), and its own within the stretch."""

    stretch: int = 0
    batch: int = 0


class Batch(NamedTuple):
    """Consecutive records of the inputs: a part of a file, or many small files.

    If reading resumes at `end`, it returns exactly the batches that follow this one, but no checksum of a file that is
    read only in part.
    """

    blocks: tuple[Block | Rejection, ...]  # Rejections are for input that could not be divided into blocks
    start: Checkpoint
    end: Checkpoint
    read: int  # stored bytes of the inputs read up to the batch's end
    pipes: Mapping[str, PipeState] = {}  # state of each observed pipe at the batch's end, by name
    sums: Mapping[str, str] = {}  # checksums of files that were read to their end since the previous batch, by name
    number: BatchNumber = BatchNumber()  # for a run that reads its inputs in stretches

    @property
    def source(self) -> str:
        """Return the name of the source in which the batch ends."""
        return self.blocks[-1].source

    @property
    def size(self) -> int:
        """Return the number of uncompressed bytes in the batch."""
        return sum(len(block.data) for block in self.blocks if isinstance(block, Block))


class _Cutter(Protocol):
    """Divide a file between records. Each file has its own cutter, which may keep its state inside a record."""

    def cut(self, data: bytes) -> int:
        """Return the length of the whole records at the start of `data`."""

    def count(self, data: bytes) -> int:
        """Return the number of lines in `data`, or of records, if positions in this format are numbers of records.

        `data` holds whole records, or a part of one record.
        """

    def skip(self, data: bytes) -> tuple[int, bool]:
        """Return how many bytes of `data` belong to the record that is being skipped, and whether it ends there."""


class RecordSpan(NamedTuple):
    """One record as stored in its source: its position (such as its line), its offset in bytes, and its bytes."""

    position: int
    offset: int
    data: bytes

    def decoded(self, encoding: str) -> str:
        """Return the text of the record; raise UnreadableError if it is not in the given encoding."""
        try:
            return self.data.decode(encoding)
        except UnicodeError as error:
            raise encoding_error(encoding, self.offset + getattr(error, "start", 0)) from None

    def text(self, settings: InputSettings) -> str:
        """Return the text of the record; raise UnreadableError if it is not in the encoding of the settings.

        The error is also raised if the bytes have a NUL, as pictures and UTF-16 do.
        """
        encoding = settings.encoding or "utf-8"
        text = self.decoded(encoding)
        if "\0" in text:
            first_nul = self.offset + max(self.data.find(b"\0"), 0)
            form = self._likely_form()
            remedy = f"name its encoding with --encoding {form}" if form else "leave it out or convert it"
            raise UnreadableError(f"has a NUL byte (byte {first_nul}), so it is not text in {encoding}: {remedy}")
        return text

    def _likely_form(self) -> str:
        """Return the form of UTF-16 in which most of the characters are ASCII; "" if there is none."""
        nul_at = [self.data[(start + self.offset) % 2 :: 2].count(0) for start in (0, 1)]
        most = max(nul_at)
        if 4 * most < len(self.data):
            return ""
        return "utf-16-le" if most == nul_at[1] else "utf-16-be"


_Parser: TypeAlias = Callable[[RecordSpan], Record]


def by_record(
    content: Callable[[Block, InputSettings, RecordSpan], Record],
) -> Callable[[Block, InputSettings], _Parser]:
    """Return the `parser` of a format of which each record is parsed by itself, by the function `content`."""
    return lambda block, settings: partial(content, block, settings)


class RecordFormat(NamedTuple):
    """How files of a format become records: functions that divide files and parse records."""

    spans: Callable[[Block, InputSettings], Iterable[RecordSpan]]  # returns the bytes of each record in a block
    parser: Callable[[Block, InputSettings], _Parser]  # returns a parser of records
    unit: str = ""  # the name of a record in messages, with {} for its position: "Line {}"; "": the whole file
    #: A function of the header of CSV and TSV, the name of the format and the settings, which returns the cutter of a
    #: file. A cutter runs in the process that reads the inputs, and must be fast. None: a file is one document or has
    #: row groups.
    cutter: Callable[[bytes, str, InputSettings], _Cutter] | None = None

    def records(self, block: Block, settings: InputSettings) -> Iterator[Record | Rejection]:
        """Yield the records of a block, as `read` does; for a record that cannot be read, yield a Rejection."""
        parse = self.parser(block, settings)
        return self.read(self.spans(block, settings), parse, block, settings)

    def read(
        self,
        spans: Iterable[RecordSpan],
        parse: _Parser,
        block: Block,
        settings: InputSettings,
    ) -> Iterator[Record | Rejection]:
        """Parse records of a block (undecoded bytes), each given by its span: its bytes and their position.

        For a record that cannot be read, a Rejection is yielded. If the settings ask for labels, RefusedError is raised
        instead, except for a valid item that is left out, such as a canceled one: it is logged and skipped.
        """
        for span in spans:
            length = len(span.data)
            try:
                if length > settings.max_bytes:
                    raise settings.too_long(length)
                content = parse(span)
                name = content.id or f"{block.source}:{span.position}"
                record = Record(name, *content[1:-2], block.source, span.position)
                yield (
                    record
                    if not content.left_out
                    else record._replace(
                        left_out=f"{self.unit.format(span.position) or 'The file'} {content.left_out}."
                    )
                )
            except UnreadableError as fault:
                if fault.kind is FaultKind.LEFT_OUT and settings.labels is not None:
                    sentence = f"{self.unit.format(span.position) or 'The file'} {fault}"
                    log_left_out(block.source, f"{fault.detail or sentence}.")
                    continue
                part, stored = self.unit.format(span.position), length if span.offset >= 0 else -1
                yield reject_or_raise(settings, fault, block.source, part, span.position, span.offset, stored)


@lru_cache(maxsize=1024)
def log_left_out(source: str, reason: str) -> None:
    """Log the reason why a record of a source is not part of a corpus."""
    log.warning("%s: %s", source, reason)
