"""Write the folder of a run: numbered shards, rejections, and a journal from which an interrupted run resumes.

The folder is locked during the run. A shard is synced to disk and gets its final name before the journal records it as
done. The names of all other files begin with ``_`` or ``.``, so that programs which read a folder of Parquet files
ignore these files.
"""

import hashlib
import json
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager
from functools import lru_cache, partial
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import orjson

from textcat.base import disk
from textcat.base.disk import UNFINISHED
from textcat.base.errors import TextcatError
from textcat.base.journal import Journal, journal_line, read_journal
from textcat.base.surrogates import escape_undecodable
from textcat.reading import START_OVER, Batch, PipeState, Rejection, Source
from textcat.runs.growth import (
    Generation,
    Growth,
    ListedFile,
    find_growth,
    is_within,
    list_files,
    missing_sums,
    names_by_shard,
    numbered_files,
)
from textcat.runs.output import PlainFile
from textcat.runs.progress import RunState
from textcat.runs.results import BatchResult, Counts, encode_rejection, kind_of_reason
from textcat.runs.versions import OldRows, Segment, Superseded, VersionFile, find_superseded, old_rows

FORMAT = 2
JOURNAL, INPUTS, REJECTED, LOCK = "_journal.jsonl", "_inputs.jsonl", "_rejected.jsonl", ".lock"
_FILES, _VERSIONS = "_files-{:05}.jsonl", "_versions-{:05}.bin"  # of a generation
_COUNTED = "_counted-{:05}.jsonl"  # of a shard
_OWN_NAMES = re.compile(
    rf"(?:{re.escape(REJECTED)}|{re.escape(INPUTS)}|{re.escape(JOURNAL)}"
    rf"|_(?:files|counted)-\d{{5,}}\.jsonl|_versions-\d{{5,}}\.bin|part-\d{{5,}}\.(?:jsonl|csv|parquet|sketches)(?:\.zst)?)(?:{re.escape(UNFINISHED)})?"
)
_MARK = "textcat archive"
_PARTS_PER_WRITE = 10_000

Line = dict[str, Any]


class RemovedRows(NamedTuple):
    """Hold a shard or the file of rejections after some documents were removed from it.

    A shard is a numbered file of a run's output. `counts` has the numbers by which the run's counts change.
    """

    data: bytes  # of the whole file
    counts: Counts
    rejections: Sequence[Rejection] = ()  # of the documents that were removed, if they are rejected now


# Return a shard's content without the documents of the files with the given names.
RemoveRows = Callable[[Path, Collection[str]], RemovedRows]
# Return a shard's content without rows that newer versions replace; the mapping is used up.
RemoveVersions = Callable[[Path, OldRows], RemovedRows]


class WrittenRun(NamedTuple):
    """Describe what `write_shards` has written."""

    shards: int  # number of output files, including those of earlier runs
    superseded: Counts  # by which the counts change, as newer versions replace rows
    is_whole: bool = True  # False: files must be read again, since older versions in them are the newest ones now


class Growing(NamedTuple):
    """Hold what a finished run needs to go on with input files that are new or have changed since."""

    sources: Sequence[Source]
    remove_rows: RemoveRows
    trusted: bool = False  # whether this process has written the folder, so that its shards need not be verified
    remove_versions: RemoveVersions | None = None  # None: newer versions replace no rows


@contextmanager
def open_folder(
    path: Path,
    facts: Line,
    inputs: Iterable[Line],
    *,
    restart: bool = False,
    start_over: str = START_OVER,
    growing: Growing | None = None,
) -> Iterator[RunState]:
    """Lock a folder for the run in a ``with`` block, and yield the state that the run is to resume from.

    `facts` has the settings that the output depends on, under names that error messages can show. `inputs` has the
    name, size and time of each source. Unfinished files of an interrupted run are removed; with `restart`, all files of
    an earlier run are removed. A TextcatError is raised if another run holds the lock, if the folder is damaged, or if
    the folder holds files that are not a run's, or a run with other facts or, without `growing`, other inputs.
    `start_over` is the part of the error message that says how to begin again. With `growing`, a run whose inputs have
    changed resumes with the files that are new or have changed, and the documents of changed files are removed first.
    """
    with _errors_as_sentences(path):
        path.mkdir(parents=True, exist_ok=True)
        refusal = f"Another run is writing to {path}: wait until it ends, or name another folder."
        lock = disk.acquire_lock(path / LOCK, refusal)
    try:
        with _errors_as_sentences(path):
            remedy = f"{start_over}, or name another folder"
            state = _begin_or_resume(path, facts, list(inputs), restart, remedy, growing)
        yield state
    finally:
        lock.release()


def facts_of_run(path: Path) -> Line:
    """Return the settings of the run in a folder, under names that messages can show; {} if there is no run."""
    journal = read_journal(path / JOURNAL)
    facts: Line = journal.lines[0].get("facts", {}) if journal and journal.lines else {}
    return facts


def _errors_as_sentences(folder: Path) -> AbstractContextManager[None]:
    return disk.raise_write_errors(folder, "fix that, and the same command resumes the run")


def _begin_or_resume(
    path: Path, facts: Line, inputs: Sequence[Line], restart: bool, remedy: str, growing: Growing | None
) -> RunState:
    journal = _own_journal(path)
    if journal is None:
        first = [name + part for name in (INPUTS, _FILES.format(0), JOURNAL) for part in ("", UNFINISHED)]
        own = {LOCK, *first}  # of a run that was killed at once
        if foreign := sorted({file.name for file in path.iterdir()} - own):
            raise TextcatError(f"{path} holds {foreign[0]!r}, but no journal of a run: name another folder.")
    if journal is None or restart:
        return _begin(path, facts, inputs, growing)
    header, *entries = journal.lines
    _compare_facts(path, header, facts, remedy)
    grown = growing is not None and "files" in header and (growing.trusted or _have_files(path, header, entries))
    listed = None if growing is None or not grown else list_files(growing.sources)
    if listed is None:
        documents = Counter[str]()
        for entry in entries:
            documents.update(entry.get("counts", {}).get("inputs", {}))
        _compare_inputs(path, header, inputs, documents, remedy)
    if journal.damaged:
        raise TextcatError(f"{path / JOURNAL} is damaged: {remedy}.")
    state = _last_state(path, entries, remedy, trusted=growing is not None and growing.trusted)
    _remove_unfinished(path, state, journal.length, _shards_in(entries), remedy)
    if growing is not None and _remove_superseded(path, entries, growing) is not None:
        state = _last_state(path, entries, remedy, trusted=True)
    if growing is None or listed is None:
        return state
    return _grown(path, state, inputs, header, entries, growing)


def _begin(path: Path, facts: Line, inputs: Sequence[Line], growing: Growing | None) -> RunState:
    """Remove the files of an earlier run, begin the journal of a new run, and return the state of the new run."""
    for file in _own_files(path):
        if file.name != JOURNAL:  # the journal is replaced below
            disk.remove(file)
    disk.sync_folder(path)
    _write_whole(path / INPUTS, map(_line_of_input, inputs))
    header = {_MARK: FORMAT, "facts": facts, "inputs": disk.sha256_of_file(path / INPUTS)}
    if growing is not None and (files := numbered_files(growing.sources)) is not None:
        header["files"] = _write_files(path, 0, files)
    _write_whole(path / JOURNAL, [journal_line(header)])
    disk.sync_folder(path.parent)
    return RunState(Counts())


def _write_whole(path: Path, parts: Iterable[bytes]) -> None:
    unfinished, parts = path.with_name(path.name + UNFINISHED), iter(parts)
    with disk.create(unfinished) as file:
        while data := b"".join(islice(parts, _PARTS_PER_WRITE)):
            disk.write_all(file, data)
        disk.sync(file)
    disk.rename(unfinished, path)
    disk.sync_folder(path.parent)


def _own_journal(path: Path) -> Journal | None:
    """Return the journal in a folder; None if there is none; raise TextcatError if the journal is not textcat's."""
    journal = read_journal(path / JOURNAL)
    if journal is not None and (not journal.lines or _MARK not in journal.lines[0]):
        raise TextcatError(f"{path / JOURNAL} is not a journal of textcat: name another folder.")
    return journal


def _own_files(path: Path) -> list[Path]:
    return sorted(file for file in path.iterdir() if _OWN_NAMES.fullmatch(file.name))


def _line_of_input(fields: Line) -> bytes:
    return json.dumps(fields, sort_keys=True).encode() + b"\n"


def _compare_facts(path: Path, header: Line, facts: Line, remedy: str) -> None:
    if header[_MARK] != FORMAT:
        raise TextcatError(f"The run in {path} was begun by another version of textcat: {remedy}.")
    for name in [*facts, *header["facts"]]:
        before, now = (_in_words(name, of_run.get(name)) for of_run in (header["facts"], facts))
        if before != now:
            raise TextcatError(f"The run in {path} began with {before}, but now has {now}: {remedy}.")


def _compare_inputs(
    path: Path, header: Line, inputs: Iterable[Line], documents: Mapping[str, int], remedy: str
) -> None:
    if not (path / INPUTS).is_file() or disk.sha256_of_file(path / INPUTS) != header["inputs"]:
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


def _last_state(path: Path, entries: list[Line], remedy: str, *, trusted: bool = False) -> RunState:
    """Return the state of the run at the end of its journal; `entries` are the journal's lines without the header.

    If a shard is missing or has changed, a TextcatError is raised, whose message ends with `remedy`; the shards of a
    folder that is `trusted` are not looked at.
    """
    counts, last, shards, versions = Counts(), RunState(Counts()), 0, [(0, 0)]
    before, sums = _sums_of_shards(entries[:-1]), _sums_of_shards(entries)
    paths = [] if trusted else [path / name for name in sums]
    with ThreadPoolExecutor() as threads:  # hashlib releases the interpreter's lock
        for shard, actual in zip(paths, threads.map(_sum_if_there, paths), strict=True):
            # What the last line replaces may not have been put in place.
            if actual not in (sums[shard.name], before.get(shard.name)):
                raise _missing(shard, remedy)
    for entry in entries:
        if "cursor" in entry:
            shards += bool(entry["shard"])
            counts.add(Counts.from_dict(entry["counts"]))
            pipes = {name: PipeState(*state) for name, state in entry["pipes"].items()}
            last = RunState(counts, shards, tuple(entry["cursor"]), entry["read"], entry["rejected_bytes"], pipes=pipes)
        elif "grown" in entry:
            last = RunState(counts, shards, rejected_bytes=last.rejected_bytes)
            versions.append((0, 0))
        elif "replaced" in entry:
            counts.add(Counts.from_dict(entry["counts"]))
            last = last._replace(rejected_bytes=entry.get("rejected_bytes", last.rejected_bytes))
            if entry["replaced"] == REJECTED and (entry is not entries[-1] or _is_in_place(path, entry)):
                last = last._replace(rejected_bytes=entry["bytes"])
        if "versions" in entry:
            versions[-1] = tuple(entry["versions"])
        if entry.keys() != {"sums"}:
            last = last._replace(finished="finished" in entry)
    return last._replace(counts=counts, versions=versions)


# --- inputs that have grown -------------------------------------------------------------------------------------------


def _write_files(path: Path, generation: int, files: Iterable[ListedFile]) -> str:
    """Write the list of the input files of a generation, and return the checksum of the list.

    A generation is a part of a run: the files that were read when the run was started or went on.
    """
    listing = path / _FILES.format(generation)
    _write_whole(listing, (json.dumps(file).encode() + b"\n" for file in files))
    return disk.sha256_of_file(listing)


def _have_files(path: Path, header: Line, entries: Sequence[Line]) -> bool:
    """Return whether the lists of input files on disk have the checksums in the journal.

    There is one list per generation (a start or continuation of a run); `header` and `entries` are the journal's lines.
    """
    sums = [header["files"], *(entry["files"] for entry in entries if "grown" in entry)]
    return all(_sum_if_there(path / _FILES.format(number)) == sum_ for number, sum_ in enumerate(sums))


def _generations(path: Path, header: Line, entries: Sequence[Line]) -> list[Generation]:
    parts, sums = _by_generation(entries), [header["files"], *(entry["files"] for entry in entries if "grown" in entry)]
    listings = (_read_files(path / _FILES.format(number), sum_) for number, sum_ in enumerate(sums))
    return [Generation(files, part) for files, part in zip(listings, parts, strict=True)]


@lru_cache(maxsize=1 << 16)
def _read_files(path: Path, sha256: str) -> Sequence[ListedFile]:
    """Read a list of input files whose checksum is `sha256`; the list is kept for runs in the same process."""
    with open(path, "rb") as file:
        rows = [orjson.loads(line) for line in file]
    return [ListedFile._make([*row[:7], tuple(row[7]), *row[8:]]) for row in rows]


def _grown(
    path: Path, state: RunState, inputs: Sequence[Line], header: Line, entries: list[Line], growing: Growing
) -> RunState:
    """Return the state from which a run resumes whose inputs may have changed since.

    If they have changed, a new generation begins: the new and changed files are listed, and documents of changed files
    are removed from the output.
    """
    if not any("grown" in entry or entry.get("due") for entry in entries) and _are_same(path / INPUTS, inputs):
        return state._replace(growth=Growth() if state.finished else None)
    if _remove_rows(path, entries, growing):
        state = _last_state(path, entries, "", trusted=True)
    generations = _generations(path, header, entries)
    if sums := missing_sums(growing.sources, generations[-1]):
        generations = [*generations[:-1], generations[-1]._replace(entries=[*generations[-1].entries, {"sums": sums}])]
        _append_to_journal(path, entries, {"sums": sums})
    work = find_growth(growing.sources, generations)
    if work is None:
        return state._replace(files=generations[-1].files)
    if not (work.files or work.growth or work.unblocked) and state.finished:
        return state._replace(growth=work.growth, wake=work.wake)
    number, names = len(generations), names_by_shard(work.removed)
    removed = sorted({item.written_as for item in work.removed})
    entry = {"grown": number, "files": _write_files(path, number, work.files), "remove": names, "removed": removed}
    entry |= {"gone": work.gone, "unblocked": work.unblocked}
    _append_to_journal(path, entries, entry)
    _remove_rows(path, entries, growing)
    return _last_state(path, entries, "", trusted=True)._replace(files=work.files, growth=work.growth, wake=work.wake)


def _are_same(path: Path, inputs: Sequence[Line]) -> bool:
    with open(path, "rb") as file:
        return all(old == new for old, new in zip_longest(file, map(_line_of_input, inputs)))


def _append_to_journal(path: Path, entries: list[Line], entry: Line) -> None:
    with closing(disk.reopen(path / JOURNAL)) as journal:
        _append(journal, entry)
    entries.append(entry)


def _append(journal: BinaryIO, entry: Line) -> None:
    disk.write_all(journal, journal_line(entry))
    disk.sync(journal)


def _remove_rows(path: Path, entries: list[Line], growing: Growing) -> bool:
    """Remove the documents of changed input files from shards (output files) and rejections, unless it is done already.

    Return whether a file was changed.
    The last generation in the journal lists these files. The checksum of a shard's new content is put into the journal
    before the content is put in place, so the last line may be about a shard that still has its old content.
    """
    begin = max((i for i, entry in enumerate(entries) if "grown" in entry), default=None)
    if begin is None or any("cursor" in entry or "superseded" in entry for entry in entries[begin:]):
        return False
    is_changed = False
    removed, unblocked = entries[begin]["removed"], entries[begin]["unblocked"]
    names = {**entries[begin]["remove"], REJECTED: removed} if removed or unblocked else {}
    done = {entry["replaced"]: entry for entry in entries[begin:] if "replaced" in entry}
    for name, files in names.items():
        target = path / name
        if not target.exists() or (name in done and _is_in_place(path, done[name])):
            continue
        remove = partial(_without_rejections, unblocked) if name == REJECTED else growing.remove_rows
        _replace(target, remove(target, files), entries, name in done)
        is_changed = True
    return is_changed


def _replace(target: Path, content: RemovedRows, entries: list[Line], is_told: bool) -> None:
    """Give a shard (output file), or the file of rejections, another content; `is_told`: the journal has its sum.

    Rejections of the documents that were removed from a shard are added to the file of rejections.
    """
    data, name = content.data, target.name
    unfinished, is_kept = target.with_name(name + UNFINISHED), name != REJECTED or data
    if is_kept:
        with closing(disk.create(unfinished)) as file:
            disk.write_all(file, data)
            disk.sync(file)
    if not is_told:
        sum_ = hashlib.sha256(data).hexdigest() if is_kept else ""
        entry = {"replaced": name, "bytes": len(data), "sha256": sum_, "counts": content.counts.as_dict()}
        if content.rejections:
            rejected = b"".join(map(encode_rejection, content.rejections))
            entry["rejected_bytes"] = _append_whole(target.with_name(REJECTED), rejected)
        _append_to_journal(target.parent, entries, entry)
    if is_kept:
        disk.rename(unfinished, target)
    else:
        disk.remove(target)
    disk.sync_folder(target.parent)


def _append_whole(path: Path, data: bytes) -> int:
    """Append bytes to a file, sync it, and return its length."""
    with closing(disk.reopen(path)) as file:
        disk.write_all(file, data)
        disk.sync(file)
        length = file.tell()
    disk.sync_folder(path.parent)
    return length


def _without_rejections(unblocked: Collection[str], path: Path, names: Collection[str]) -> RemovedRows:
    """Return the file of rejections without those of documents in the files with the given names.

    It is also without those that say that what is `unblocked` could not be read.
    """
    kept, counts, removed = [], Counts(), is_within({escape_undecodable(name) for name in names})
    readable = {*map(escape_undecodable, unblocked)}
    with open(path, "rb") as file:
        for line in file:
            rejection = orjson.loads(line)
            if removed(rejection["source"]) or ("unread" in rejection and rejection["source"] in readable):
                left_out = -int("left_out" in rejection)
                reasons = Counter({kind_of_reason(rejection["reason"]): -1})
                counts.add(Counts(-1, rejected=-1, left_out=left_out, reasons=reasons))
            else:
                kept.append(line)
    return RemovedRows(b"".join(kept), counts)


# --- versions of news -------------------------------------------------------------------------------------------------


def _supersede(path: Path, growing: Growing) -> tuple[Counts, bool]:
    """Remove the rows that newer versions replace, at the end of a generation; return the change of the counts.

    Also return whether no file must be read again for older versions that are the newest ones now.
    """
    journal = read_journal(path / JOURNAL)
    assert journal is not None
    _, *entries = journal.lines
    if (begun := _last_superseded(entries)) is not None:  # the run was killed after that
        return Counts(), not entries[begun]["again"]
    parts, files = _by_generation(entries), _version_files(path, entries)
    first_new = 1 + max((i for i, part in enumerate(parts) if any("finished" in entry for entry in part)), default=-1)
    new = zip(files[first_new:], parts[first_new:], strict=True)
    if not any(file.length or (part and part[0].get("removed")) for file, part in new):
        return Counts(), True
    found = find_superseded(files, first_new)
    if not (found.shards or found.again):
        return Counts(), True
    _begin_superseding(path, entries, found)
    return _remove_superseded(path, entries, growing) or Counts(), not found.again


def _begin_superseding(path: Path, entries: list[Line], found: Superseded) -> None:
    length, crc32 = _last_state(path, entries, "", trusted=True).versions[-1]
    entry: Line = {"superseded": found.shards, "again": found.again}
    if found.chunk:
        number = sum("grown" in line for line in entries)
        length = _append_whole(path / _VERSIONS.format(number), found.chunk)
        entry["versions"] = (length, zlib.crc32(found.chunk, crc32))
    _append_to_journal(path, entries, entry)


def _remove_superseded(path: Path, entries: list[Line], growing: Growing) -> Counts | None:
    """Remove the rows that the journal's last generation says to be replaced, where it is not done already.

    Return the change of the counts; None if there is nothing to do.
    """
    begun = _last_superseded(entries)
    if begun is None or growing.remove_versions is None or any("finished" in entry for entry in entries[begun:]):
        return None
    done = {entry["replaced"]: entry for entry in entries[begun:] if "replaced" in entry}
    shards = {name: n for name, n in entries[begun]["superseded"].items() if not _is_done(path, name, done)}
    counts = Counts()
    for name, rows in old_rows(_version_files(path, entries), shards) if shards else ():
        content = growing.remove_versions(path / name, rows)
        _replace(path / name, content, entries, name in done)
        if name not in done:
            counts.add(content.counts)
    return counts


def _is_done(path: Path, name: str, done: Mapping[str, Line]) -> bool:
    return name in done and _is_in_place(path, done[name])


def _last_superseded(entries: Sequence[Line]) -> int | None:
    """Return the number of the line of the journal's last generation that says which rows are replaced; None: none."""
    for i in reversed(range(len(entries))):
        if "superseded" in entries[i]:
            return i
        if "grown" in entries[i]:
            break
    return None


def _by_generation(entries: Iterable[Line]) -> list[list[Line]]:
    """Return the lines of a journal by generation; a generation after the first one begins with the line "grown"."""
    parts: list[list[Line]] = [[]]
    for entry in entries:
        if "grown" in entry:
            parts.append([])
        parts[-1].append(entry)
    return parts


def _version_files(path: Path, entries: Sequence[Line]) -> list[VersionFile]:
    """Return the file of versions of each generation, with the documents that have been removed since."""
    parts = _by_generation(entries)
    removed = [[*map(escape_undecodable, part[0].get("removed", ()))] if part else [] for part in parts]
    removed_from: dict[str, set[str]] = defaultdict(set)
    for part in parts[1:]:
        for shard, names in part[0]["remove"].items():
            removed_from[shard].update(map(escape_undecodable, names))
    files, since = list[VersionFile](), set[str]()
    for number, part in reversed([*enumerate(parts)]):
        told = [entry for entry in part if "versions" in entry]
        segments = [
            Segment(entry["shard"], entry["versions"][0], removed_from[entry["shard"]] if entry["shard"] else {*since})
            for entry in told
            if "cursor" in entry
        ]
        length, crc32 = told[-1]["versions"] if told else (0, 0)
        files.append(VersionFile(path / _VERSIONS.format(number), length, crc32, segments))
        since.update(removed[number])
    return files[::-1]


def counted_of(shard: Path) -> Path:
    """Return the file that has the topics that are counted of each row of a shard (output file)."""
    return shard.with_name(_COUNTED.format(int(shard.name.partition("-")[2].partition(".")[0])))


def _sums_of_shards(entries: Iterable[Line]) -> dict[str, str]:
    """Return the checksum of each shard by its name, as lines of the journal have it."""
    sums: dict[str, str] = {}
    for entry in entries:
        if name := entry.get("shard") or entry.get("replaced"):
            sums[name] = entry["sha256"]
    sums.pop(REJECTED, None)
    return sums


def _is_in_place(path: Path, entry: Line) -> bool:
    """Return whether a shard or the file of rejections already has the content that a line of the journal announces.

    For the rejections, only the beginning is compared, because others may have been added since.
    """
    name = entry["replaced"]
    if not entry["sha256"]:
        return True  # no rejection is kept: a file that is there is cut to nothing, or holds what was added since
    if not (path / name).is_file():
        return False
    with disk.open_regular(path / name) as file:
        data = file.read(entry["bytes"] if name == REJECTED else -1)
    return hashlib.sha256(data).hexdigest() == entry["sha256"]


def _sum_if_there(path: Path) -> str:
    return disk.sha256_of_file(path) if path.is_file() else ""


def _missing(file: Path, remedy: str) -> TextcatError:
    return TextcatError(f"{file} is missing or changed: restore it, or {remedy}.")


def _shards_in(entries: Iterable[Line]) -> set[str | None]:
    """Return the names of shards (output files) in the lines of a journal, and of the files beside them."""
    shards = {entry.get("shard") for entry in entries}
    names = shards | {counted_of(Path(shard)).name for shard in shards if shard}
    for number, part in enumerate(_by_generation(entries)):
        names.add(_FILES.format(number))
        if any("versions" in entry for entry in part):
            names.add(_VERSIONS.format(number))
    return names


def _remove_unfinished(path: Path, state: RunState, journal_length: int, shards: set[str | None], remedy: str) -> None:
    """Remove shards, rejections and incomplete lines that were written after the last intact line of the journal.

    `shards` are the names of the shards in the journal; `journal_length` is the length of its intact lines in bytes.
    """
    for file in _own_files(path):
        if file.name not in {*shards, JOURNAL, REJECTED, INPUTS}:
            disk.remove(file)
    versions = path / _VERSIONS.format(len(state.versions) - 1)
    for file, length in ((path / REJECTED, state.rejected_bytes), (versions, state.versions[-1][0])):
        if not length:
            disk.remove(file)
        elif not file.is_file() or file.stat().st_size < length:
            raise _missing(file, remedy)
        else:
            disk.truncate_file(file, length)
    disk.truncate_file(path / JOURNAL, journal_length)
    disk.sync_folder(path)


def write_shards(
    folder: Path,
    state: RunState,
    form: PlainFile,
    results: Generator[tuple[Batch, BatchResult]],
    growing: Growing | None = None,
    **limits: int,
) -> WrittenRun:
    """Write the results of all batches with a `ShardWriter`, end the run, and describe what was written.

    With `growing`, rows of news are removed that newer versions replace. `limits` are the arguments `max_records` and
    `max_bytes` of `ShardWriter`.
    """
    counts, is_whole = Counts(), True
    with closing(ShardWriter(folder, state, form, **limits)) as shards, closing(results):
        for batch, result in results:
            shards.add(batch, result)
        shards.end()
        if growing is not None and growing.remove_versions is not None and shards.has_versions:
            with _errors_as_sentences(folder):
                counts, is_whole = _supersede(folder, growing)
        shards.finish()
    return WrittenRun(shards.number, counts, is_whole)


class ShardWriter:
    """Write the shards (numbered output files), the rejections and the journal of a run.

    After an error, the writer cannot be used again.

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
            self.journal = disk.reopen(folder / JOURNAL)
        self._rejected = _AppendedFile(folder / REJECTED, state.rejected_bytes)
        length, self._crc32 = state.versions[-1]
        self._versions = _AppendedFile(folder / _VERSIONS.format(len(state.versions) - 1), length)
        self._had_versions = any(length for length, _ in state.versions)
        self._begin()

    @property
    def has_versions(self) -> bool:
        """Return whether the run has read news that has versions, now or before."""
        return self._had_versions or self._versions.length > 0

    def add(self, batch: Batch, result: BatchResult) -> None:
        """Write the results of a batch; raise a TextcatError if they cannot be written."""
        with _errors_as_sentences(self._folder):
            for rows in result.rows:
                if not self._n_bytes:
                    self._shard.write(self._format.begin())
                self._shard.write(self._format.add(rows))
                self._n_bytes += len(rows)
            self._counted.write(result.counted)
            self._rejected.write(b"".join(map(encode_rejection, result.rejections)))
            self._versions.write(result.versions)
            self._crc32 = zlib.crc32(result.versions, self._crc32)
            self._counts.add(result.counts)
            self._sums |= batch.sums
            for source, _, _, _, _, _, due in result.rejections:
                if due is not None:
                    self._due[source] = min(due, self._due.get(source, due))
            self._position: Line = {"cursor": batch.end, "read": batch.read, "pipes": batch.pipes}
            if self._counts.records >= self._max_records or self._n_bytes >= self._max_bytes:
                self._end()

    def end(self) -> None:
        """End the last shard."""
        with _errors_as_sentences(self._folder):
            if self._position:
                self._end()

    def finish(self) -> None:
        """End the last shard, and write into the journal that the run is finished."""
        self.end()
        with _errors_as_sentences(self._folder):
            self._log({"finished": True})

    def close(self) -> None:
        """Close all files; a shard that is not finished keeps its temporary name."""
        for file in (self.journal, self._rejected, self._versions, self._shard, self._counted):
            file.close()

    def _begin(self) -> None:
        self._shard = _AppendedFile(self._folder / f"part-{self.number:05}{self._format.suffix}{UNFINISHED}")
        self._counted = _AppendedFile(self._folder / f"{_COUNTED.format(self.number)}{UNFINISHED}")
        self._counts, self._n_bytes = Counts(), 0
        self._position, self._sums, self._due = {}, dict[str, str](), dict[str, float]()

    def _end(self) -> None:
        """Close the shard's file, and add the shard to the journal; if all records were rejected, it has no file."""
        entry: Line = {"shard": ""}
        if self._n_bytes:
            self._shard.write(self._format.end())
            name = self._shard.finish()
            if self._counted.length:
                self._counted.finish()
            entry = {"shard": name, "bytes": self._shard.length, "sha256": self._shard.sha256.hexdigest()}
            self.number += 1
        self._rejected.sync()
        self._versions.sync()
        disk.sync_folder(self._folder)
        counts = {"rejected_bytes": self._rejected.length, "counts": self._counts.as_dict()}
        sums = ({"sums": self._sums} if self._sums else {}) | ({"due": self._due} if self._due else {})
        versions = {"versions": (self._versions.length, self._crc32)} if self._versions.length else {}
        self._log(entry | self._position | counts | sums | versions)
        self._begin()

    def _log(self, entry: Line) -> None:
        _append(self.journal, entry)


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
                self._file = disk.reopen(self._path) if self.length else disk.create(self._path)
            disk.write_all(self._file, data)
            self.sha256.update(data)
            self.length += len(data)

    def sync(self) -> None:
        if self._file is not None:
            disk.sync(self._file)

    def finish(self) -> str:
        """Sync and close the file, remove the ending ``.part`` from its name, and return the new name."""
        self.sync()
        self.close()
        name = self._path.name.removesuffix(UNFINISHED)
        disk.rename(self._path, self._path.with_name(name))
        return name

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
