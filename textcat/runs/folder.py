"""Open the folder of a run: begin a run, or resume the one in the folder's journal.

The folder is locked during the run. The names of all files but the shards (numbered output files) begin with ``_`` or
``.``, so that programs which read a folder of Parquet files ignore these files.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from textcat.base import disk
from textcat.base.disk import UNFINISHED
from textcat.base.errors import TextcatError
from textcat.reading import START_OVER, InputSettings, Source
from textcat.runs.files import FILES, ListedFile, RunFiles, has_files, read_files, write_files
from textcat.runs.growth import (
    Growth,
    can_continue,
    find_growth,
    list_files,
    missing_sums,
    outdated,
    restricted_sources,
)
from textcat.runs.inputs import READERS, is_other
from textcat.runs.news_versions import VERSIONS
from textcat.runs.progress import RunState
from textcat.runs.records import (
    JOURNAL,
    ORIGIN,
    REJECTED,
    SUMMARY,
    Facts,
    Finished,
    Generation,
    Log,
    Sums,
    begin_log,
    own_journal,
    read_log,
    write_whole,
)
from textcat.runs.results import Counts
from textcat.runs.settling import RemoveRows, remove_listed, unreplaced_file
from textcat.runs.shard_writer import HELD_OUT, counted_topics_path, raise_write_errors, score_bins_path

INPUTS, LOCK = "_inputs.jsonl", ".lock"
_OWN_NAMES = re.compile(
    rf"(?:{re.escape(REJECTED)}|{re.escape(INPUTS)}|{re.escape(JOURNAL)}"
    rf"|_(?:files|counted)-\d{{5,}}\.jsonl|_(?:versions|bins)-\d{{5,}}\.bin|_held-out-[0-9a-f]+\.json|{re.escape(SUMMARY)}|{re.escape(ORIGIN)}|part-\d{{5,}}\.(?:jsonl|csv|parquet|sketches)(?:\.zst)?)(?:{re.escape(UNFINISHED)})?"
)

Fields = dict[str, Any]


class Growing(NamedTuple):
    """How to continue a finished run with input files that are new or have changed."""

    sources: Sequence[Source]
    settings: InputSettings  # the settings by which they are read
    remove: RemoveRows
    #: The log of this process's last run in the folder: if nothing was added to the journal since, the journal need
    #: not be replayed, nor the shards verified.
    former: Log | None = None
    renews: bool = False  # whether to read files again if their documents were written with other settings
    #: Whether the run is one part of several to be merged: its inputs must then be the same as when it began.
    is_part: bool = False


@contextmanager
def open_folder(
    path: Path,
    facts: Fields,
    inputs: Iterable[Fields],
    *,
    restart: bool = False,
    start_over: str = START_OVER,
    growing: Growing | None = None,
    changing: Collection[str] = (),
) -> Iterator[RunState]:
    """Lock the folder of a run in a ``with`` block; yield the state from which the run starts or resumes.

    An interrupted run is resumed; its unfinished files are removed.

    Parameters
    ----------
    path : Path
        The folder; it is created if it does not exist.
    facts : dict
        The settings that the output depends on, under names that error messages can show.
    inputs : iterable of dict
        The name, size and time of each source.
    restart : bool
        Remove all files of an earlier run, and begin a new run.
    start_over : str
        The part of error messages that tells how to begin again.
    growing : Growing, optional
        Accept inputs that have changed since the earlier run: read only the files that are new or have changed.
        `write_shards` removes the documents that changed files had before. None: the inputs must be the same.
    changing : collection of str
        The names of settings that may differ from before: they apply to new output; existing output stays.

    Raises
    ------
    TextcatError
        If another run holds the lock; if the folder is damaged; if it holds files, but no run; or if its run has other
        facts or, without `growing`, other inputs.
    """
    with _locked(path):
        with raise_write_errors(path):
            remedy = f"{start_over}, or name another folder"
            state = _begin_or_resume(path, facts, list(inputs), restart, remedy, growing, changing)
        yield state._replace(is_part=growing is not None and growing.is_part)


@contextmanager
def open_merged(
    path: Path, facts: Fields, inputs: Iterable[Fields], files: Sequence[ListedFile] | None
) -> Iterator[RunState]:
    """Lock a folder in a ``with`` block, and begin a run there without reading its inputs; yield its state.

    Files of an earlier run are removed. `files` are the files of the inputs; None if the inputs cannot list them. For
    the other parameters and errors, see `open_folder`.
    """
    with _locked(path):
        with raise_write_errors(path):
            state = _begin(path, facts, [*inputs], (), files)
        yield state


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with raise_write_errors(path):
        path.mkdir(parents=True, exist_ok=True)
        refusal = f"Another run is writing to {path}: wait until it ends, or name another folder."
        lock = disk.acquire_lock(path / LOCK, refusal)
    try:
        yield
    finally:
        lock.release()


def _begin_or_resume(
    path: Path,
    facts: Fields,
    inputs: Sequence[Fields],
    restart: bool,
    remedy: str,
    growing: Growing | None,
    changing: Collection[str],
) -> RunState:
    sources, former = ((), None) if growing is None else (growing.sources, growing.former)
    trusted = former is not None and former.is_current()
    log = former if trusted and not restart else _replayed(path, restart, remedy)
    files = None if growing is None else list_files(sources)
    if log is None:
        return _begin(path, facts, inputs, sources, files if sources else None)
    facts = compare_facts(path, log.facts, facts, changing, remedy)
    grows = files is not None and log.header.files is not None and (trusted or has_files(log))
    grows = grows and not (growing is not None and growing.is_part)
    if not grows:
        _compare_inputs(path, log, inputs, remedy)
    if log.is_damaged:
        raise TextcatError(f"{path / JOURNAL} is damaged: {remedy}.")
    if not trusted:
        check_output(log, remedy)
    if not (trusted and log.generation.is_finished):
        _remove_unfinished(log, remedy)
    if growing is not None and log.generation.settled is not None and not log.generation.is_finished:
        remove_listed(log, growing.remove)  # inspects the last record
        log.append(Finished())
    if facts != log.facts:
        log.append(Facts(facts))
    if not grows or files is None or growing is None:
        return _state(log, sources)
    return _state_with_growth(log, inputs, growing, files)


def _replayed(path: Path, restart: bool, remedy: str) -> Log | None:
    """Return the log of the run in a folder; None if a new run begins."""
    log = None if restart else read_log(path, remedy)
    if log is None and own_journal(path) is None:
        first = [name + part for name in (INPUTS, FILES.format(0), JOURNAL) for part in ("", UNFINISHED)]
        own_files = {LOCK, *first}  # of a run that was killed right after it began
        if foreign := sorted({file.name for file in path.iterdir()} - own_files):
            raise TextcatError(f"{path} holds {foreign[0]!r}, but no journal of a run: name another folder.")
    return log


def _begin(
    path: Path, facts: Fields, inputs: Sequence[Fields], sources: Sequence[Source], files: Sequence[ListedFile] | None
) -> RunState:
    """Remove the files of an earlier run, begin the journal of a new run, and return the state of the new run."""
    for file in own_files(path):
        if file.name != JOURNAL:  # the journal is replaced below
            disk.remove(file)
    disk.sync_folder(path)
    write_whole(path / INPUTS, map(_line_of_input, inputs))
    sum_ = None if files is None else write_files(path, 0, files)
    log, line = begin_log(path, facts, disk.sha256_of_file(path / INPUTS), sum_)
    write_whole(path / JOURNAL, [line])
    disk.sync_folder(path.parent)
    return _state(log, sources)


def _state(log: Log, sources: Sequence[Source]) -> RunState:
    """Return the state from which to resume a run, given its replayed journal."""
    counts, shards, last = Counts(), len(log.sums), log.generation.shards[-1:]
    counts.add(log.counts)
    state = RunState(counts, shards, finished=log.generation.is_finished, sources=sources, log=log)
    return state._replace(checkpoint=last[0].checkpoint, read=last[0].read, pipes=last[0].pipes) if last else state


def own_files(path: Path) -> list[Path]:
    """Return the files of a run in its folder, except its lock."""
    return sorted(file for file in path.iterdir() if _OWN_NAMES.fullmatch(file.name))


def _line_of_input(fields: Fields) -> bytes:
    return json.dumps(fields, sort_keys=True).encode() + b"\n"


def compare_facts(
    path: Path, facts_before: Fields, facts: Fields, changing: Collection[str], remedy: str
) -> dict[str, Any]:
    """Return the settings of a run that goes on; raise TextcatError if one differs that is not among `changing`."""
    # A run reads documents such as PDF from the day on which it gets some, and not on each day.
    facts = {name: value for name, value in facts_before.items() if name in READERS} | dict(facts)
    for name in [*facts, *facts_before]:
        if name in changing or not is_other(name, facts_before, facts):
            continue
        before, now = (in_words(name, of_run.get(name)) for of_run in (facts_before, facts))
        if before != now:
            raise TextcatError(f"The run in {path} began with {before}, but now has {now}: {remedy}.")
    return facts


def _compare_inputs(path: Path, log: Log, inputs: Iterable[Fields], remedy: str) -> None:
    if not (path / INPUTS).is_file() or disk.sha256_of_file(path / INPUTS) != log.header.inputs:
        raise TextcatError(f"{path / INPUTS} is missing or damaged: {remedy}.")
    with open(path / INPUTS, "rb") as file:
        for old, new in zip_longest(file, map(_line_of_input, inputs)):
            if old != new:
                raise TextcatError(_difference(old, new, path, log.counts.inputs, remedy))


def in_words(name: str, value: Any) -> str:
    """Return a setting as text for messages: "NAME VALUE"; "NAME" if it is True; "no NAME" if it is not set."""
    value = [f"{key} {entry}" for key, entry in value.items()] if isinstance(value, dict) else value
    value = ", ".join(value) if isinstance(value, list) else value
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


def check_output(log: Log, remedy: str) -> None:
    """Raise a TextcatError, which ends with `remedy`, if a file that the run wrote is missing or has changed.

    The files are the shards, the file of rejections and the files of versions.
    """
    with ThreadPoolExecutor() as threads:  # in threads, because hashlib releases the GIL
        paths = [log.folder / name for name in log.sums]
        for path, sum_ in zip(paths, threads.map(_sum_if_there, paths), strict=True):
            # The replacement in the last record may not have been put in place.
            is_former = path.name == getattr(log.last, "name", None) and sum_ == log.former
            if sum_ != log.sums[path.name] and not is_former:
                raise _missing(path, remedy)
    versions = [(VERSIONS.format(generation.number), generation.versions) for generation in log.generations]
    for name, state in [(REJECTED, _rejections(log)), *versions]:
        if not disk.begins_with(log.folder / name, *state):
            raise _missing(log.folder / name, remedy)


def _rejections(log: Log) -> tuple[int, int]:
    """Return the length and CRC-32 of the file of rejections; those before its replacement, if that is not done yet."""
    if unreplaced_file(log) == REJECTED and isinstance(log.former, list):
        return log.former[-1][1:]
    return log.rejections


def _sum_if_there(path: Path) -> str:
    return disk.sha256_of_file(path) if path.is_file() else ""


def _missing(file: Path, remedy: str) -> TextcatError:
    return TextcatError(f"{file} is missing or changed: restore it, or {remedy}.")


def _remove_unfinished(log: Log, remedy: str) -> None:
    """Remove shards, rejections and incomplete records that were written after the last intact record of a journal."""
    names = {
        JOURNAL,
        REJECTED,
        INPUTS,
        SUMMARY,
        ORIGIN,
        *log.sums,
        *(path.name for path in log.folder.glob(HELD_OUT.format("*"))),
    }
    names |= {of_shard(Path(shard)).name for shard in log.sums for of_shard in (counted_topics_path, score_bins_path)}
    for generation in log.generations:
        names |= {FILES.format(generation.number), VERSIONS.format(generation.number)}
    for file in own_files(log.folder):
        if file.name not in names:
            disk.remove(file)
    versions = log.folder / VERSIONS.format(log.generation.number)
    for file, (length, _) in ((log.folder / REJECTED, _rejections(log)), (versions, log.generation.versions)):
        if not length:
            disk.remove(file)
        elif not file.is_file() or file.stat().st_size < length:
            raise _missing(file, remedy)
        else:
            disk.truncate_file(file, length)
    disk.truncate_file(log.folder / JOURNAL, log.length)
    disk.sync_folder(log.folder)


def _state_with_growth(log: Log, inputs: Sequence[Fields], growing: Growing, files: Sequence[ListedFile]) -> RunState:
    """Return the state from which to resume a run whose inputs may have changed; `files` are their present files.

    If they have changed, a new generation (a further pass over the inputs) begins, with the new and changed files and,
    if the run `renews`, files whose documents were written with other settings.
    """
    sources, renews = growing.sources, growing.renews
    state = _state(log, sources)
    is_first = len(log.generations) == 1 and not any(shard.due or shard.needs for shard in log.generation.shards)
    if is_first and not renews and _are_same(log.folder / INPUTS, inputs):
        return state._replace(growth=Growth() if state.finished else None)
    run, listed = RunFiles(log), {file.name: file for file in files}
    if sums := missing_sums(sources, listed, run, growing.settings):
        log.append(Sums(sums))
        run.add_sums(sums)
    if not state.finished and can_continue(listed, run):
        return state._replace(sources=restricted_sources(sources, run.files), is_last=False)
    again = outdated(log, run, log.facts) if renews else frozenset()
    work = find_growth(sources, listed, run, growing.settings, again)
    is_changed = work.files or work.growth or work.unblocked or not {*run.unread}.issuperset(work.unread)
    if not is_changed and state.finished:
        return state._replace(growth=work.growth, wake=work.wake)
    sum_ = write_files(log.folder, len(log.generations), work.files)
    log.append(Generation(sum_, [*work.gone], [*work.unblocked], [*work.unread]))
    return _state(log, restricted_sources(sources, work.files))._replace(growth=work.growth, wake=work.wake)


def record_missing_sums(log: Log, sources: Sequence[Source], settings: InputSettings) -> None:
    """Record the missing checksums of files that a finished run has read to their ends, such as some zips and tars.

    A file that is renamed later is recognised by its checksum, even if its time has changed, too.
    """
    files = (
        read_files(log.folder, log.generation.number, log.generation.files) if log.generation.files is not None else ()
    )
    if all(file.source < 0 or file.is_blocked or file.name in log.generation.sums for file in files):
        return
    listed = {file.name: file for file in list_files(sources) or ()}
    if sums := missing_sums(sources, listed, RunFiles(log), settings):
        log.append(Sums(sums))


def _are_same(path: Path, inputs: Sequence[Fields]) -> bool:
    with open(path, "rb") as file:
        return all(old == new for old, new in zip_longest(file, map(_line_of_input, inputs)))
