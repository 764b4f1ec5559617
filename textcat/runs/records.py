"""Keep the journal of a run: one record per change of the output, from which the state of the run is replayed.

A run is a sequence of generations, which are passes over the inputs. The first one reads all files, each later one the
files that are new or have changed since. Each record is a line of JSON with a checksum, see `textcat.base.journal`.
"""

from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from textcat.base import disk
from textcat.base.errors import TextcatError
from textcat.base.journal import Journal, journal_line, read_header, read_journal, read_matching
from textcat.reading import BatchNumber, PipeState
from textcat.runs.inputs import is_other
from textcat.runs.results import Counts

FORMAT = 5
JOURNAL, REJECTED, SUMMARY, ORIGIN = "_journal.jsonl", "_rejected.jsonl", "_summary.json", "_origin.json"
_MARK = "textcat archive"


class Header(msgspec.Struct, forbid_unknown_fields=True, rename={"format": _MARK}):
    """The first record of a run's journal: format version, the run's settings, and checksums of the inputs."""

    format: int
    facts: dict[str, Any]  # the settings that the output depends on, keyed by names for messages
    inputs: str  # checksum of the list of inputs
    files: str | None = None  # checksum of the list of files; None: the inputs cannot list their files


class _Record(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, tag_field="record"):
    """A line of a journal after the header."""


class Facts(_Record, tag="facts"):
    """Record that settings change from here on; earlier output stays as it is."""

    facts: dict[str, Any]


class Generation(_Record, tag="generation"):
    """Record that a new generation (pass over the inputs) begins: the run reads files that are new or have changed.

    The generation before is abandoned if it is unfinished.
    """

    files: str  # the checksum of the list of files
    gone: list[str] = []  # missing files, whose documents stay
    #: Files and folders that could not be opened or listed before, and can be now or are gone: drop their rejections.
    unblocked: list[str] = []
    unread: list[str] = []  # files that are to be read again because of older news in them, and cannot be read now


class PartBatch(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Record the output of a batch, so that the shards of several parts of a run can be merged."""

    number: BatchNumber
    start: tuple[int, ...]  # checkpoints
    end: tuple[int, ...]
    read: int  # bytes of the inputs up to the batch's end
    rows: list[int]  # sizes of the pieces in which its rows were encoded, in bytes
    counts: dict[str, Any]
    rejected: int = 0  # bytes added to the file of rejections
    counted: int = 0  # bytes added to the file of topics that the summary counts
    score_bins: int = 0  # bytes added to the file of score bins
    versions: int = 0  # bytes added to the generation's file of versions
    sums: dict[str, str] = {}  # as in `Shard`
    due: dict[str, float] = {}
    needs: dict[str, list[str]] = {}


class Shard(_Record, tag="shard"):
    """Record that the documents up to a checkpoint are written to a shard, to the file of rejections, or to both."""

    name: str  # name of the numbered file with the rows; "" if all documents were rejected
    n_bytes: int
    sha256: str
    checkpoint: tuple[int, ...]
    read: int  # bytes of the inputs up to the checkpoint
    rejections: tuple[int, int]  # length and CRC-32 of the file of rejections
    counts: dict[str, Any]
    pipes: dict[str, PipeState] = {}
    sums: dict[str, str] = {}  # checksums of files that were read to their ends
    due: dict[str, float] = {}  # sources to read again, with the time: see `Rejection`
    #: The length and the CRC-32 of the generation's file of versions; None: unchanged.
    versions: tuple[int, int] | None = None
    batches: list[PartBatch] = []  # its batches, if the run is one part of several
    needs: dict[str, list[str]] = {}  # sources to read again when one of these modules is installed


class Sums(_Record, tag="sums"):
    """Record checksums of files that the run has read to their ends."""

    sums: dict[str, str]


class Reading(NamedTuple):
    """A file that a generation (pass over the inputs) has read: the generation's number, and the file's name then."""

    generation: int
    name: str


class StaleFile(NamedTuple):
    """A file whose documents, read in one pass over the inputs, must be removed from the output.

    It was read again since, or replaced by another file, or read only in part.
    """

    reading: Reading
    shards: tuple[str, ...]  # shards that may have them


class Settled(_Record, tag="settled"):
    """Record what must be removed from the output, after all files of a pass over the inputs were read."""

    stale: list[StaleFile] = []
    unblocked: list[Reading] = []  # files and folders whose rejections as unreadable are dropped
    superseded: dict[str, int] = {}  # number of rows, by shard, that newer versions of news replace
    again: list[Reading] = []  # files to read again, because they have versions without a row that count again
    versions: tuple[int, int] | None = None  # as in `Shard`


class Replaced(_Record, tag="replaced"):
    """Record that a shard gets new content; if this is the journal's last record, it may still have the old content."""

    name: str
    n_bytes: int
    sha256: str
    counts: dict[str, Any]  # change of the run's counts
    rejections: tuple[int, int] | None = None  # as in `Shard`; None: no rejection was added


class RejectedSpan(NamedTuple):
    """The lines in the file of rejections that one pass over the inputs has added, given by where they end."""

    generation: int
    end: int  # in bytes
    crc32: int  # of the file up to there


class RejectionsReplaced(_Record, tag="rejections replaced"):
    """Record that the file of rejections gets new content; `spans` is empty if no rejection is left."""

    counts: dict[str, Any]
    spans: list[RejectedSpan]


class Finished(_Record, tag="finished"):
    """Record that one pass over the inputs is finished: all its files were read, and replaced output was removed."""


Record = Facts | Generation | Shard | Sums | Settled | Replaced | RejectionsReplaced | Finished


class ReplayedGeneration:
    """One generation of a run, as replayed from the journal: its list of files, its shards, and its changes of output.

    A generation is one pass over the inputs: it lists the input files once, and reads those that are new or have
    changed. `settled` says which older output it removes, such as that of files that have changed.
    """

    def __init__(self, number: int, files: str | None, begun: Generation | None = None):
        self.number, self.files, self.begun = number, files, begun
        self.shards: list[Shard] = []
        self.sums: dict[str, str] = {}
        self.settled: Settled | None = None
        self.versions = (0, 0)
        self.is_finished = False


class Log:
    """The replayed state of a run, and its journal, to which records are appended."""

    def __init__(self, folder: Path, header: Header):
        self.header, self.folder = header, folder
        self.length = 0  # of the journal in bytes
        self.is_damaged = False  # whether the journal has more than the records that were replayed
        self.facts = header.facts  # the settings of new output
        self.generations = [ReplayedGeneration(0, header.files)]
        self.counts = Counts()
        self.sums: dict[str, str] = {}  # checksums of the shards, by name
        self.generation_of: dict[str, int] = {}  # generations of the shards, by name
        self._facts_of: dict[str, dict[str, Any]] = {}  # settings with which each shard was written, by name
        self.rejected_spans: list[RejectedSpan] = []  # where each generation's lines end in the file of rejections
        self.replaced: set[str] = set()  # names of the files that the last generation has replaced
        self.last: Record | None = None
        #: The old state of the file that the last record replaces, if any: the checksum of a shard, or the former
        #: `rejected_spans`.
        self.former: str | list[RejectedSpan] | None = None

    @property
    def generation(self) -> ReplayedGeneration:
        """The state of the last pass over the inputs."""
        return self.generations[-1]

    @property
    def last_batch(self) -> BatchNumber | None:
        """The number of the last batch; None: the journal has none yet, or the run is not one part of several."""
        batches = self.generation.shards[-1].batches if self.generation.shards else []
        return batches[-1].number if batches else None

    @property
    def rejections(self) -> tuple[int, int]:
        """The length of the file of rejections in bytes, and its CRC-32."""
        return self.rejected_spans[-1][1:] if self.rejected_spans else (0, 0)

    def are_others(self, shard: str, facts: Mapping[str, Any]) -> bool:
        """Return whether a shard was written with other settings than `facts`."""
        return any(is_other(name, self._facts_of[shard], facts) for name in facts)

    def append(self, record: Record) -> None:
        """Write a record to the journal, sync it, and update the state."""
        line = journal_line(msgspec.to_builtins(record))
        with closing(disk.reopen(self.folder / JOURNAL)) as journal:
            disk.write_all(journal, line)
            disk.sync(journal)
        self.length += len(line)
        self.add(record)

    def is_current(self) -> bool:
        """Return whether the journal has the records of this log, and no others.

        The journal of another run, in a folder that was replaced, may have the same length, but has another header.
        """
        path = self.folder / JOURNAL
        if not path.is_file() or path.stat().st_size != self.length:
            return False
        with open(path, "rb") as file:
            return file.readline() == journal_line(msgspec.to_builtins(self.header))

    def add(self, record: Record) -> None:
        """Update the state by a record, without writing the record."""
        generation, self.former, self.last = self.generation, None, record
        match record:
            case Facts():
                self.facts = record.facts
            case Generation():
                self.generations.append(ReplayedGeneration(len(self.generations), record.files, record))
                self.replaced.clear()
            case Shard():
                generation.shards.append(record)
                generation.sums |= record.sums
                generation.versions = record.versions or generation.versions
                self.counts.add(Counts.from_dict(record.counts), by_month=True)
                self._extend_rejections(generation.number, *record.rejections)
                if record.name:
                    self.sums[record.name], self.generation_of[record.name] = record.sha256, generation.number
                    self._facts_of[record.name] = self.facts
            case Sums():
                generation.sums |= record.sums
            case Settled():
                generation.settled, generation.versions = record, record.versions or generation.versions
            case Replaced():
                self.former, self.sums[record.name] = self.sums[record.name], record.sha256
                self._replaced(record.name, record.counts)
                if record.rejections is not None:
                    self._extend_rejections(self.generation_of[record.name], *record.rejections)
            case RejectionsReplaced():
                self.former, self.rejected_spans = self.rejected_spans, [*record.spans]
                self._replaced(REJECTED, record.counts)
            case Finished():
                generation.is_finished = True

    def _replaced(self, name: str, counts: dict[str, Any]) -> None:
        self.replaced.add(name)
        self.counts.add(Counts.from_dict(counts), by_month=True)

    def _extend_rejections(self, generation: int, end: int, crc32: int) -> None:
        if end > self.rejections[0]:
            is_last = bool(self.rejected_spans) and self.rejected_spans[-1].generation == generation
            span = RejectedSpan(generation, end, crc32)
            self.rejected_spans = [*self.rejected_spans[: -1 if is_last else None], span]


def begin_log(folder: Path, facts: dict[str, Any], inputs: str, files: str | None) -> tuple[Log, bytes]:
    """Return the log of a new run, and the first line of its journal, which the caller writes."""
    log = Log(folder, Header(FORMAT, facts, inputs, files))
    line = journal_line(msgspec.to_builtins(log.header))
    log.length = len(line)
    return log, line


def all_facts(folder: Path) -> list[dict[str, Any]]:
    """Return all settings that the run in a folder has had, the latest first; [] if there is no run.

    They are keyed by names for error messages.
    """
    path = folder / JOURNAL
    lines = [*read_matching(path, {"record": "facts"}), read_header(path)]
    return [line["facts"] for line in lines if line and "facts" in line]


def facts_of_run(folder: Path) -> dict[str, Any]:
    """Return the latest settings of the run in a folder, keyed by names for error messages; {} if there is no run."""
    return next(iter(all_facts(folder)), {})


def own_journal(folder: Path) -> Journal | None:
    """Read the journal in a folder; return None if there is none; raise a TextcatError if it is not a run's journal."""
    journal = read_journal(folder / JOURNAL)
    if journal is not None and (not journal.lines or _MARK not in journal.lines[0]):
        raise TextcatError(f"{folder / JOURNAL} is not a journal of textcat: name another folder.")
    return journal


def read_log(folder: Path, remedy: str) -> Log | None:
    """Replay the journal in a folder, up to its first damaged line; return None if there is none.

    A TextcatError is raised if it is not a run's journal, or, with `remedy` at the end, if it has another format.
    """
    journal = own_journal(folder)
    if journal is None:
        return None
    first, *lines = journal.lines
    try:
        if first[_MARK] != FORMAT:
            raise ValueError
        log = Log(folder, msgspec.convert(first, Header))
    except ValueError:  # the base of msgspec.ValidationError
        raise TextcatError(f"The run in {folder} was begun by another version of textcat: {remedy}.") from None
    log.length, log.is_damaged = journal.length, journal.damaged
    try:
        for line in lines:
            log.add(msgspec.convert(line, Record))
    except msgspec.ValidationError:
        log.is_damaged = True
    return log


def write_whole(path: Path, lines: Iterable[bytes]) -> None:
    """Write a file of a run atomically; a run that goes on after a crash overwrites what an unfinished one left."""
    with disk.replacing(path, path.with_name(path.name + disk.UNFINISHED)) as file:
        disk.write_parts(file, lines)


def write_changed(path: Path, text: str) -> None:
    """Write a text file of a run as `write_whole` does, unless it has this text already; explain errors of writing."""
    with disk.raise_write_errors(path.parent, "fix that, and give the command again"):
        if not path.is_file() or path.read_bytes() != text.encode():
            write_whole(path, [text.encode()])
