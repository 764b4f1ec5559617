"""A folder that a run writes to: locked, taken up where the journal ends, and never another run's."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any

from textcat.errors import TextcatError
from textcat.reading.pipes import PipeState
from textcat.tagging import durable, journal
from textcat.tagging.counts import Counts
from textcat.tagging.shards import JOURNAL, REJECTED, Done

FORMAT = 1
INPUTS = "inputs.jsonl"
LOCK = ".lock"
_OURS = re.compile(
    rf"(?:{re.escape(REJECTED)}|{re.escape(INPUTS)}|{re.escape(JOURNAL)}"
    rf"|part-\d{{5,}}\.(?:jsonl|csv|parquet)(?:\.zst)?)(?:{re.escape(durable.UNFINISHED)})?"
)
_MARK = "textcat archive"
_ANEW = "start anew with --restart, or name another folder"

Facts = dict[str, Any]
Line = dict[str, Any]


@contextmanager
def opened(path: Path, facts: Facts, inputs: Iterable[Line], *, restart: bool = False) -> Iterator[Done]:
    """Take a folder for a run, make or mend what is in it, and keep others out until the block ends.

    Parameters
    ----------
    path : Path
        Is made if it is not there.
    facts : dict of str to (str, number or None)
        What the output depends on beside the inputs, by its name for people: the model, versions, options.
    inputs : iterable of dict
        What tells each source from a changed one; with its "name".
    restart : bool
        Remove what an earlier run has written.

    Yields
    ------
    Done
        How far the run has come.

    Raises
    ------
    TextcatError
        If another run writes there, the folder holds anything else, is damaged, or was begun with other facts or
        inputs.
    """
    with durable.told(path):
        path.mkdir(parents=True, exist_ok=True)
    with _locked(path):
        with durable.told(path):
            done = _taken_up(path, facts, inputs, restart)
        yield done


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    from filelock import FileLock, Timeout

    # The system lets go of it when the process ends, however it ends.
    lock = FileLock(path / LOCK, timeout=0)
    with durable.told(path):
        try:
            lock.acquire()
        except Timeout:
            raise TextcatError(
                f"Another run is writing to {path}: wait until it ends, or name another folder."
            ) from None
    try:
        yield
    finally:
        lock.release()


def _taken_up(path: Path, facts: Facts, inputs: Iterable[Line], restart: bool) -> Done:
    kept = journal.read(path / JOURNAL)
    if kept is None:
        _refuse_others(path)
    elif not kept.lines or _MARK not in kept.lines[0]:
        raise TextcatError(f"{path / JOURNAL} is not a journal of textcat: name another folder.")
    if kept is None or restart:
        _empty(path)
        _begin(path, facts, inputs)
        return Done(Counts())
    header, *entries = kept.lines
    _compare(path, header, facts, inputs)
    if kept.damaged:
        raise TextcatError(f"{path / JOURNAL} is damaged: {_ANEW}.")
    _check_shards(path, entries)
    done = _sum_up(entries)
    _mend(path, done, kept.length, {entry.get("shard") for entry in entries})
    return done


def _refuse_others(path: Path) -> None:
    """Without a journal there may only be what a run leaves that was killed at once."""
    left = {LOCK, INPUTS, INPUTS + durable.UNFINISHED, JOURNAL + durable.UNFINISHED}
    if others := sorted({file.name for file in path.iterdir()} - left):
        raise TextcatError(f"{path} holds {others[0]!r}, and no journal of a run: name another folder.")


def _empty(path: Path) -> None:
    """Remove what a run has written, the journal last: it is replaced."""
    for file in _own(path):
        if file.name != JOURNAL:
            durable.remove(file)
    durable.sync_folder(path)


def _own(path: Path) -> list[Path]:
    return sorted(file for file in path.iterdir() if _OURS.fullmatch(file.name))


def _begin(path: Path, facts: Facts, inputs: Iterable[Line]) -> None:
    digest = hashlib.sha256()

    def lines() -> Iterator[bytes]:
        for line in map(_line, inputs):
            digest.update(line)
            yield line

    durable.write_whole(path / INPUTS, lines())
    journal.create(path / JOURNAL, {_MARK: FORMAT, "facts": facts, "inputs": digest.hexdigest()})
    durable.sync_folder(path.parent)


def _line(fields: Line) -> bytes:
    return json.dumps(fields, sort_keys=True).encode() + b"\n"


# --- is it the same run? ---------------------------------------------------------------------------------------------


def _compare(path: Path, header: Line, facts: Facts, inputs: Iterable[Line]) -> None:
    if header[_MARK] != FORMAT:
        raise TextcatError(f"{path} was begun by another version of textcat: {_ANEW}.")
    for name in [*facts, *header["facts"]]:
        before, now = (_told(name, known.get(name)) for known in (header["facts"], facts))
        if before != now:
            raise TextcatError(f"{path} was begun with {before}, and now it is {now}: {_ANEW}.")
    digest = hashlib.sha256()
    with open(path / INPUTS, "rb") as file:
        for old, new in zip_longest(file, map(_line, inputs)):
            if old != new:
                raise TextcatError(f"{_difference(old, new)} since {path} was begun: {_ANEW}.")
            digest.update(old)
    if digest.hexdigest() != header["inputs"]:
        raise TextcatError(f"{path / INPUTS} is damaged: {_ANEW}.")


def _told(name: str, value: Any) -> str:
    return f"no {name}" if value in (None, "", False) else name if value is True else f"{name} {value}"


def _difference(before: bytes | None, now: bytes | None) -> str:
    old, new = (json.loads(line)["name"] if line else "nothing" for line in (before, now))
    return f"{old} has changed" if old == new else f"The inputs have changed, from {old} to {new},"


# --- where it was ----------------------------------------------------------------------------------------------------


def _sum_up(entries: list[Line]) -> Done:
    counts, last, shards = Counts(), Done(Counts()), 0
    for entry in entries:
        if "cursor" in entry:
            counts.add(Counts.from_dict(entry["counts"]))
            shards += bool(entry["shard"])
            pipes = {name: PipeState(*heard) for name, heard in entry["pipes"].items()}
            last = Done(counts, shards, tuple(entry["cursor"]), entry["read"], entry["rejected_bytes"], pipes=pipes)
    return last._replace(finished=any(entry.get("finished") for entry in entries))


def _check_shards(path: Path, entries: list[Line]) -> None:
    for entry in entries:
        if name := entry.get("shard"):
            shard = path / name
            if not shard.is_file() or shard.stat().st_size != entry["bytes"] or _sum(shard) != entry["sha256"]:
                raise TextcatError(f"{shard} is missing or not as it was written: put it back, or {_ANEW}.")


def _sum(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while batch := file.read(1 << 20):
            digest.update(batch)
    return digest.hexdigest()


def _mend(path: Path, done: Done, journal_length: int, shards: set[str | None]) -> None:
    """Remove what was written after the journal's last line."""
    for file in _own(path):
        if file.name not in {*shards, JOURNAL, REJECTED, INPUTS}:
            durable.remove(file)
    rejected = path / REJECTED
    if done.rejected_bytes:
        if not rejected.is_file() or rejected.stat().st_size < done.rejected_bytes:
            raise TextcatError(f"{rejected} is missing or not as it was written: put it back, or {_ANEW}.")
        durable.cut(rejected, done.rejected_bytes)
    else:
        durable.remove(rejected)
    durable.cut(path / JOURNAL, journal_length)
    durable.sync_folder(path)
