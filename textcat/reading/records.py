"""Define what reading returns: batches of blocks, records, and rejections; parse the records of a block."""

import codecs
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, TypeAlias

from textcat.reading.faults import FaultKind, RefusedError, UnreadableError, encoding_error
from textcat.reading.input_settings import InputSettings

log = logging.getLogger(__name__)
#: Where a batch begins or ends: a few whole numbers whose meaning only the reading side knows. A list of them, as JSON
#: gives it back, serves as well.
Checkpoint: TypeAlias = tuple[int, ...]
START_OVER = "start again with --restart"  # how `textcat tag` begins a run again, as error messages say
#: The version of records of which there is only one with each id.
NO_VERSION = (0, -1)
# What may be read later although it has not changed.
_PASSING = frozenset({FaultKind.ACCESS, FaultKind.CHANGED, FaultKind.DANGLING, FaultKind.UNLISTED})
_OF_ALL = _PASSING | {FaultKind.LINK}


class Record(NamedTuple):
    """Hold one document as it was read: its content, its source, and its position in the source."""

    #: The record's own id, which need not be unique. The id of a text file is its source; the id of any other record
    #: without an id of its own is ``source:position``.
    id: str
    #: The input's path or URL, followed by the path inside a folder or archive: ``a.zip/b/c.xml``.
    source: str
    #: The place in the source, counted from 1: the line on which the record starts, its row, or its number.
    position: int
    zones: dict[str, str]  # at least one zone; its text may be empty
    # Topics, split and labelled_for are set only if `InputSettings.labels` asks for labels.
    topics: tuple[str, ...] = ()
    date: str = ""  # in ISO 8601 if the form of the source is known
    split: str = ""
    labelled_for: tuple[str, ...] | None = None  # topics that it was judged for; None: all
    fields: dict[str, Any] | None = None  # the fields that `InputSettings.fields` asks for; None: it asks for none
    language: str = ""  # that the source names
    #: Of news, the number, and the microseconds from the year 1 to its date (-1: unknown): see `without_superseded`.
    version: tuple[int, int] = NO_VERSION
    left_out: str = ""  # why news is not read, such as that it is canceled, as a sentence; "": it is read
    due: float | None = None  # when news that is left out is to be read again, see `Rejection`


class Rejection(NamedTuple):
    """Describe a part of the input that could not be read."""

    source: str
    position: int  # as in `Record`; 0: the whole source, or the rest of it, could not be read
    reason: str  # one sentence
    #: Offset and length of the rejected bytes in the uncompressed source (converted to UTF-8 if it is in an encoding
    #: such as UTF-16); -1 if unknown.
    offset: int = -1
    length: int = -1
    kind: FaultKind = FaultKind.CONTENT
    #: When the source is to be read again, in seconds since 1970; 0: as soon as it can be; None: when it has changed.
    due: float | None = None

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
    """Return the Rejection of unreadable input; raise RefusedError if labels are wanted, as no document may be missing.

    The reason in the Rejection begins with `part`, such as "Line 3", or with `subject` if `part` is "".
    """
    if settings.labels is not None:
        raise RefusedError(source, part, fault) from None
    subject = "The folder" if fault.kind is FaultKind.UNLISTED else subject
    due = 0.0 if fault.kind in _PASSING else None
    return Rejection(source, position, f"{part or subject} {fault}.", offset, length, fault.kind, due)


class Block(NamedTuple):
    """Hold the undecoded bytes of some whole records of one source and one format."""

    source: str
    format: str
    data: bytes
    position: int = 1  # of the first line, row or document
    offset: int = 0  # of the data in the uncompressed source; -1: the data are not stored like this in the source
    header: bytes = b""  # the first row of CSV and TSV, with the names of the columns
    decoded: bool = False  # True: the source is in an encoding such as UTF-16, and the data were converted to UTF-8

    def without_mark(self, settings: InputSettings) -> tuple[bytes, int]:
        """Return the data without the byte order mark of UTF-8, and the position of these data in the source."""
        if self.offset == 0 and self.data.startswith(codecs.BOM_UTF8) and settings.in_utf8():
            return self.data[3:], 3
        return self.data, self.offset


class PipeState(NamedTuple):
    """Hold the number and the checksum of the bytes that were read from a pipe."""

    n_bytes: int
    sha256: str


class BatchNumber(NamedTuple):
    """Identify a batch by the number of its stretch (see `textcat.reading.shares`) and its own within the stretch."""

    stretch: int = 0
    batch: int = 0


class Batch(NamedTuple):
    """Hold consecutive records of the inputs: a part of a file, or many small files.

    If reading starts again from `end`, it gives exactly the batches that follow this one, but no checksum of a file
    that is read only from there on.
    """

    blocks: tuple[Block | Rejection, ...]  # the Rejections stand for input that could not be cut into blocks
    start: Checkpoint
    end: Checkpoint
    read: int  # how many bytes of the inputs, as they are stored, had been read at the end of the batch
    pipes: Mapping[str, PipeState] = {}  # the state of each observed pipe at the end of the batch, by its name
    sums: Mapping[str, str] = {}  # checksum of each file that was read to its end since the batch before, by its name
    number: BatchNumber = BatchNumber()  # of a run that reads its inputs in stretches

    @property
    def source(self) -> str:
        """Return the name of the source in which the batch ends."""
        return self.blocks[-1].source

    @property
    def size(self) -> int:
        """Return the number of uncompressed bytes in the batch."""
        return sum(len(block.data) for block in self.blocks if isinstance(block, Block))


class _Cutter(Protocol):
    """Cut a file between records. Each file has its own cutter, which may remember where inside a record it is."""

    def cut(self, data: bytes) -> int:
        """Return the length of the whole records at the start of `data`."""

    def count(self, data: bytes) -> int:
        """Return the number of lines in `data`, or of records, if positions in this format are numbers of records.

        `data` holds whole records, or a part of one record.
        """

    def skip(self, data: bytes) -> tuple[int, bool]:
        """Return how many bytes of `data` belong to the record that is being skipped, and whether it ends there."""


class RecordSpan(NamedTuple):
    """Hold one record as its source stores it: its position, offset and bytes."""

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

        The error is also raised if the bytes have a NUL, as those of pictures and of UTF-16 have.
        """
        encoding = settings.encoding or "utf-8"
        text = self.decoded(encoding)
        if "\0" in text:
            first_nul = self.offset + max(self.data.find(b"\0"), 0)
            raise UnreadableError(
                f"has a NUL byte (byte {first_nul}), so it is not text in {encoding}: leave it out or convert it"
            )
        return text


class RecordContent(NamedTuple):
    """Hold the content of a record: its id ("" if it has none), its texts, and its labels."""

    id: str
    zones: dict[str, str]
    topics: tuple[str, ...] = ()
    date: str = ""
    split: str = ""
    labelled_for: tuple[str, ...] | None = None
    fields: dict[str, Any] | None = None
    language: str = ""
    version: tuple[int, int] = NO_VERSION
    left_out: str = ""  # as the end of a sentence whose subject is the record
    due: float | None = None  # when it is to be read again, if it is left out, see `Rejection`


class RecordFormat(NamedTuple):
    """Describe how the files of a format become records, by functions that cut files and parse records."""

    spans: Callable[[Block, InputSettings], Iterable[RecordSpan]]  # returns the spans of the records in a block
    parser: Callable[[Block, InputSettings], Callable[[RecordSpan], RecordContent]]  # returns a parser of such a span
    unit: str = ""  # what a span is called in messages, with {} for its position: "Line {}"; "": it is the whole file
    #: Takes the first row of CSV and TSV, the name of the format and settings; returns the cutter of a file. A cutter
    #: runs in the process that reads the inputs, and must be cheap. None: a file is one document or has groups of rows.
    cutter: Callable[[bytes, str, InputSettings], _Cutter] | None = None

    def records(self, block: Block, settings: InputSettings) -> Iterator[Record | Rejection]:
        """Yield the records of a block; for a record that cannot be read, yield a Rejection."""
        parse = self.parser(block, settings)
        return self.read(self.spans(block, settings), parse, block, settings)

    def read(
        self,
        spans: Iterable[RecordSpan],
        parse: Callable[[RecordSpan], RecordContent],
        block: Block,
        settings: InputSettings,
    ) -> Iterator[Record | Rejection]:
        """Parse spans of a block, and yield the records.

        For a span that cannot be read, a Rejection is yielded.
        """
        for span in spans:
            length = len(span.data)
            try:
                if length > settings.max_bytes:
                    raise settings.too_long(length)
                content = parse(span)
                name = content.id or f"{block.source}:{span.position}"
                record = Record(name, block.source, span.position, *content[1:])
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
