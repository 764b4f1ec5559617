"""Write the folder of a run: numbered shards, rejections, and a journal from which an interrupted run resumes.

The folder is locked during the run. A shard is synced to disk and gets its final name before the journal records it as
done. The names of all other files begin with ``_`` or ``.``, so that programs which read a folder of Parquet files
ignore these files.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, BinaryIO

from textcat import folders
from textcat.errors import TextcatError
from textcat.folders import UNFINISHED
from textcat.former_names import todays_fact
from textcat.journal import Journal, journal_line, read_journal
from textcat.reading import START_OVER, Batch, PipeState
from textcat.runs.output import PlainFile
from textcat.runs.progress import RunState
from textcat.runs.results import BatchResult, Counts, encode_rejection

FORMAT = 1
JOURNAL, INPUTS, REJECTED, LOCK = "_journal.jsonl", "_inputs.jsonl", "_rejected.jsonl", ".lock"
# The journal last: as long as it has its old name, the others may have theirs.
_FORMER_NAMES = {"inputs.jsonl": INPUTS, "rejected.jsonl": REJECTED, "journal.jsonl": JOURNAL}
_OWN_NAMES = re.compile(
    rf"(?:{re.escape(REJECTED)}|{re.escape(INPUTS)}|{re.escape(JOURNAL)}"
    rf"|part-\d{{5,}}\.(?:jsonl|csv|parquet)(?:\.zst)?)(?:{re.escape(UNFINISHED)})?"
)
_MARK = "textcat archive"
_PARTS_PER_WRITE = 10_000

Line = dict[str, Any]


@contextmanager
def open_folder(
    path: Path, facts: Line, inputs: Iterable[Line], *, restart: bool = False, start_over: str = START_OVER
) -> Iterator[RunState]:
    """Lock a folder for the run in a ``with`` block, and yield the state that the run is to resume from.

    `facts` has the settings that the output depends on, under names that error messages can show. `inputs` has the
    name, size and time of each source. Unfinished files of an interrupted run are removed; with `restart`, all files of
    an earlier run are removed. A TextcatError is raised if another run holds the lock, if the folder is damaged, or if
    the folder holds files that are not a run's, or a run with other facts or inputs. `start_over` is the part of the
    error message that says how to begin again.
    """
    with _errors_as_sentences(path):
        path.mkdir(parents=True, exist_ok=True)
        refusal = f"Another run is writing to {path}: wait until it ends, or name another folder."
        lock = folders.acquire_lock(path / LOCK, refusal)
    try:
        with _errors_as_sentences(path):
            state = _begin_or_resume(path, facts, inputs, restart, f"{start_over}, or name another folder")
        yield state
    finally:
        lock.release()


def _errors_as_sentences(folder: Path) -> AbstractContextManager[None]:
    return folders.raise_write_errors(folder, "fix that, and the same command resumes the run")


def _begin_or_resume(path: Path, facts: Line, inputs: Iterable[Line], restart: bool, remedy: str) -> RunState:
    journal = _own_journal(path)
    if journal is None:
        own = {LOCK, INPUTS, INPUTS + UNFINISHED, JOURNAL + UNFINISHED}  # of a run that was killed at once
        if foreign := sorted({file.name for file in path.iterdir()} - own):
            raise TextcatError(f"{path} holds {foreign[0]!r}, but no journal of a run: name another folder.")
    if journal is None or restart:
        for file in _own_files(path):
            if file.name != JOURNAL:  # the journal is replaced below
                folders.remove(file)
        folders.sync_folder(path)
        _write_whole(path / INPUTS, map(_line_of_input, inputs))
        header = {_MARK: FORMAT, "facts": facts, "inputs": folders.sha256_of_file(path / INPUTS)}
        _write_whole(path / JOURNAL, [journal_line(header)])
        folders.sync_folder(path.parent)
        return RunState(Counts())
    header, *entries = journal.lines
    documents = Counter[str]()
    for entry in entries:
        documents.update(entry.get("counts", {}).get("inputs", {}))
    _compare(path, header, facts, inputs, documents, remedy)
    if journal.damaged:
        raise TextcatError(f"{path / JOURNAL} is damaged: {remedy}.")
    state = _last_state(path, entries, remedy)
    _remove_unfinished(path, state, journal.length, {entry.get("shard") for entry in entries}, remedy)
    return state


def _write_whole(path: Path, parts: Iterable[bytes]) -> None:
    unfinished, parts = path.with_name(path.name + UNFINISHED), iter(parts)
    with folders.create(unfinished) as file:
        while data := b"".join(islice(parts, _PARTS_PER_WRITE)):
            folders.write_all(file, data)
        folders.sync(file)
    folders.rename(unfinished, path)
    folders.sync_folder(path.parent)


def _own_journal(path: Path) -> Journal | None:
    """Return the journal in a folder; None if there is none; raise TextcatError if the journal is not textcat's.

    If an earlier version of textcat wrote the folder, its files get today's names.
    """
    former = not (path / JOURNAL).exists()
    journal_path = path / ("journal.jsonl" if former else JOURNAL)
    journal = read_journal(journal_path)
    if journal is None:
        return None
    if not journal.lines or _MARK not in journal.lines[0]:
        raise TextcatError(f"{journal_path} is not a journal of textcat: name another folder.")
    if former:
        for old, new in _FORMER_NAMES.items():
            if (path / old).exists():
                folders.rename(path / old, path / new)
        folders.sync_folder(path)
    return journal


def _own_files(path: Path) -> list[Path]:
    return sorted(file for file in path.iterdir() if _OWN_NAMES.fullmatch(file.name))


def _line_of_input(fields: Line) -> bytes:
    return json.dumps(fields, sort_keys=True).encode() + b"\n"


def _compare(
    path: Path, header: Line, facts: Line, inputs: Iterable[Line], documents: Mapping[str, int], remedy: str
) -> None:
    if header[_MARK] != FORMAT:
        raise TextcatError(f"The run in {path} was begun by another version of textcat: {remedy}.")
    former = {name: todays_fact(fact) if name == "recipe" else fact for name, fact in header["facts"].items()}
    for name in [*facts, *former]:
        before, now = (_in_words(name, of_run.get(name)) for of_run in (former, facts))
        if before != now:
            raise TextcatError(f"The run in {path} began with {before}, but now has {now}: {remedy}.")
    if not (path / INPUTS).is_file() or folders.sha256_of_file(path / INPUTS) != header["inputs"]:
        raise TextcatError(f"{path / INPUTS} is missing or damaged: {remedy}.")
    with open(path / INPUTS, "rb") as file:
        for old, new in zip_longest(file, map(_line_of_input, inputs)):
            if old != new:
                raise TextcatError(_difference(old, new, path, documents, remedy))


def _in_words(name: str, value: Any) -> str:
    return f"no {name}" if value in (None, "", False) else name if value is True else f"{name} {value}"


def _difference(before: bytes | None, now: bytes | None, path: Path, documents: Mapping[str, int], remedy: str) -> str:
    old, new = (json.loads(line) if line else {"name": "nothing", "size": None} for line in (before, now))
    name, since = str(old["name"]), f"since the run in {path} began"
    if name != new["name"]:
        return f"The inputs have changed, from {name} to {new['name']}, {since}: {remedy}."
    sizes = old.get("size"), new.get("size")
    how = "" if None in sizes or sizes[0] == sizes[1] else f", from {sizes[0]:,} to {sizes[1]:,} bytes"
    read = f", after {documents[name]:,} documents of it were read" if documents.get(name) else ""
    return f"{name} has changed {since}{how}{read}: {remedy}."


def _last_state(path: Path, entries: list[Line], remedy: str) -> RunState:
    """Return the state of the run at the end of its journal; `entries` are the journal's lines without the header.

    If a shard is missing or has changed, a TextcatError is raised, whose message ends with `remedy`.
    """
    counts, last, shards = Counts(), RunState(Counts()), 0
    sums = {path / entry["shard"]: entry["sha256"] for entry in entries if entry.get("shard")}
    with ThreadPoolExecutor() as threads:  # hashlib releases the interpreter's lock
        for shard, actual in zip(sums, threads.map(_sum_if_there, sums), strict=True):
            if actual != sums[shard]:
                raise _missing(shard, remedy)
    for entry in entries:
        if "cursor" in entry:
            shards += bool(entry["shard"])
            counts.add(Counts.from_dict(entry["counts"]))
            pipes = {name: PipeState(*state) for name, state in entry["pipes"].items()}
            last = RunState(counts, shards, tuple(entry["cursor"]), entry["read"], entry["rejected_bytes"], pipes=pipes)
    return last._replace(finished=any(entry.get("finished") for entry in entries))


def _sum_if_there(path: Path) -> str:
    return folders.sha256_of_file(path) if path.is_file() else ""


def _missing(file: Path, remedy: str) -> TextcatError:
    return TextcatError(f"{file} is missing or changed: restore it, or {remedy}.")


def _remove_unfinished(path: Path, state: RunState, journal_length: int, shards: set[str | None], remedy: str) -> None:
    """Remove whatever was written after the last intact line of the journal: shards, rejections and incomplete lines.

    `shards` are the names of the shards in the journal; `journal_length` is the length of its intact lines in bytes.
    """
    for file in _own_files(path):
        if file.name not in {*shards, JOURNAL, REJECTED, INPUTS}:
            folders.remove(file)
    rejected = path / REJECTED
    if state.rejected_bytes:
        if not rejected.is_file() or rejected.stat().st_size < state.rejected_bytes:
            raise _missing(rejected, remedy)
        folders.truncate_file(rejected, state.rejected_bytes)
    else:
        folders.remove(rejected)
    folders.truncate_file(path / JOURNAL, journal_length)
    folders.sync_folder(path)


def write_shards(
    folder: Path, state: RunState, form: PlainFile, results: Generator[tuple[Batch, BatchResult]], **limits: int
) -> int:
    """Write the results of all batches with a `ShardWriter`, end the run, and return the number of shards.

    `limits` are the arguments `max_records` and `max_bytes` of `ShardWriter`.
    """
    with closing(ShardWriter(folder, state, form, **limits)) as shards, closing(results):
        for batch, result in results:
            shards.add(batch, result)
        shards.finish()
    return shards.number


class ShardWriter:
    """Write the shards, the rejections and the journal of a run; after an error, the writer cannot be used again.

    A shard ends after the batch with which it reaches `max_records` records, or `max_bytes` bytes before compression.
    Where shards end therefore depends only on the input, not on time. `number` is the number of finished shards.
    """

    def __init__(
        self, folder: Path, state: RunState, form: PlainFile, max_records: int = 16384, max_bytes: int = 1 << 26
    ):
        self._folder, self._format = folder, form
        self._max_records, self._max_bytes = max_records, max_bytes
        self.number = state.shards
        with _errors_as_sentences(folder):
            self.journal = folders.reopen(folder / JOURNAL)
        self._rejected = _AppendedFile(folder / REJECTED, state.rejected_bytes)
        self._begin()

    def add(self, batch: Batch, result: BatchResult) -> None:
        """Write the results of a batch; raise a TextcatError if they cannot be written."""
        with _errors_as_sentences(self._folder):
            for rows in result.rows:
                if not self._n_bytes:
                    self._shard.write(self._format.begin())
                self._shard.write(self._format.add(rows))
                self._n_bytes += len(rows)
            self._rejected.write(b"".join(map(encode_rejection, result.rejections)))
            self._counts.add(result.counts)
            self._position: Line = {"cursor": batch.end, "read": batch.read, "pipes": batch.pipes}
            if self._counts.records >= self._max_records or self._n_bytes >= self._max_bytes:
                self._end()

    def finish(self) -> None:
        """End the last shard, and write into the journal that the run is finished."""
        with _errors_as_sentences(self._folder):
            if self._position:
                self._end()
            self._log({"finished": True})

    def close(self) -> None:
        """Close all files; a shard that is not finished keeps its temporary name."""
        for file in (self.journal, self._rejected, self._shard):
            file.close()

    def _begin(self) -> None:
        self._shard = _AppendedFile(self._folder / f"part-{self.number:05}{self._format.suffix}{UNFINISHED}")
        self._counts, self._n_bytes = Counts(), 0
        self._position = {}

    def _end(self) -> None:
        """End the shard, and add its line to the journal; a shard whose records were all rejected has no file."""
        entry: Line = {"shard": ""}
        if self._n_bytes:
            self._shard.write(self._format.end())
            name = self._shard.finish()
            entry = {"shard": name, "bytes": self._shard.length, "sha256": self._shard.sha256.hexdigest()}
            self.number += 1
        self._rejected.sync()
        folders.sync_folder(self._folder)
        counts = {"rejected_bytes": self._rejected.length, "counts": self._counts.as_dict()}
        self._log(entry | self._position | counts)
        self._begin()

    def _log(self, entry: Line) -> None:
        folders.write_all(self.journal, journal_line(entry))
        folders.sync(self.journal)


class _AppendedFile:
    """Append bytes to a file.

    `length` is the number of bytes that the file has already; if it is 0, the first write creates the file.
    """

    def __init__(self, path: Path, length: int = 0):
        self.length, self.sha256 = length, hashlib.sha256()  # the sum of the bytes that are written
        self._path = path
        self._file: BinaryIO | None = None

    def write(self, data: bytes) -> None:
        if data:
            if self._file is None:
                self._file = folders.reopen(self._path) if self.length else folders.create(self._path)
            folders.write_all(self._file, data)
            self.sha256.update(data)
            self.length += len(data)

    def sync(self) -> None:
        if self._file is not None:
            folders.sync(self._file)

    def finish(self) -> str:
        """Sync and close the file, remove the ending ``.part`` from its name, and return the new name."""
        self.sync()
        self.close()
        name = self._path.name.removesuffix(UNFINISHED)
        folders.rename(self._path, self._path.with_name(name))
        return name

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
