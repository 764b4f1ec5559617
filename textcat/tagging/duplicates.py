"""Find duplicates in an archive; write for each its group's first document, and its similarity to an earlier one.

Workers compute sketches of texts, which the run stores in a folder of shards. This process assigns the texts to groups,
in the order of the input. A resumed run, or a run over a grown archive, first assigns the texts of all shards again.
"""

import os
import tempfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing
from functools import partial
from itertools import compress
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import orjson

from textcat import __version__
from textcat.base import disk
from textcat.base.disk import UNFINISHED, beside, expanded
from textcat.base.errors import TextcatError
from textcat.base.progress import peak_memory
from textcat.base.surrogates import escape_undecodable
from textcat.duplicates.groups import COPY, SKETCH, SKETCH_FORMAT, Groups, sketch_texts
from textcat.reading import (
    NO_VERSION,
    START_OVER,
    Batch,
    InputSettings,
    Record,
    Rejection,
    Source,
    batch_records,
    check_pipes,
    find_sources,
    read_batches,
)
from textcat.runs.files import is_within, tagged_files
from textcat.runs.folder import Growing, open_folder
from textcat.runs.inputs import InputChange, check_output_apart, facts_of_reading, total_size
from textcat.runs.news_versions import OldRows
from textcat.runs.output import PlainFile
from textcat.runs.progress import ShowProgress
from textcat.runs.results import BatchResult, Counts, process_name
from textcat.runs.settling import RemovedRows
from textcat.runs.shard_writer import write_shards
from textcat.runs.tally import RunTally
from textcat.runs.workers import open_workers, ordered_map
from textcat.tagging.grouped_files import SUFFIX, write_grouped_files
from textcat.tagging.groups import group_at

_SIZES = np.dtype("<u4")
_DECIMALS = 2  # decimals of similarities
INPUT = InputSettings()


class Duplicates(NamedTuple):
    """Counts of documents that repeat an earlier one, exactly or nearly; and time and memory of the search."""

    counts: Counts  # of documents
    exact: int  # documents with exactly the words of an earlier one
    near: int  # documents that nearly repeat an earlier one
    groups: int  # groups of two documents or more
    seconds: float
    memory: int  # peak memory of all processes, in bytes
    changes: tuple[InputChange, ...] = ()  # inputs that changed during the run


def find_duplicates(
    inputs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    input_settings: InputSettings = INPUT,
    jobs: int = -1,
    restart: bool = False,
    progress: ShowProgress | None = None,
    **limits: int,
) -> Duplicates:
    """Find the documents of an archive that repeat an earlier one, and write a line of JSON for each to a file.

    Documents that repeat each other form a group, named by the source and the position of its first document. If the
    run is interrupted, the same call resumes it. If the archive has grown, the same call reads new and changed files
    only. Documents of unchanged files keep their groups, unless a document of the group was in a file that has changed.
    For this, sketches are kept in a folder beside the file, named like it with ``.sketches`` added.

    Parameters
    ----------
    inputs : path, or iterable of paths
        Files, folders, patterns such as ``*.jsonl``, and URLs.
    out : path
        The file to write: id, source and position of each duplicate; its group, and the source and the position of the
        group's first document; and its similarity to the most similar earlier document, 1 if all words are the same.
    input_settings : InputSettings
        How inputs are read.
    jobs : int, default -1
        Number of processes that sketch texts; -1: one per core. The result does not depend on it.
    restart : bool, default False
        Remove the sketches of an earlier run.
    progress : callable, optional
        Called with a `RunProgress` after each batch of the input.
    **limits : int
        The arguments `max_records` and `max_bytes` of `ShardWriter`.

    Returns
    -------
    Duplicates

    Raises
    ------
    TextcatError
        If an input does not exist, the sketches are damaged or come from a run with other settings, or a file cannot be
        written.
    """
    out = expanded(out)
    if out.is_dir():
        raise TextcatError(f"{out} is a folder: name a file to write.")
    sources = find_sources(inputs, input_settings)
    folder = beside(out, SUFFIX)
    check_output_apart(sources, folder)
    check_output_apart(sources, out)
    return _run(sources, input_settings, out, folder, jobs, restart, progress, limits)


def _run(
    sources: list[Source],
    settings: InputSettings,
    out: Path,
    folder: Path,
    jobs: int,
    restart: bool,
    progress: ShowProgress | None,
    limits: dict[str, int],
) -> Duplicates:
    facts = {"command": "duplicates", "textcat": __version__, "sketch format": SKETCH_FORMAT}
    facts |= facts_of_reading(sources, settings)
    inputs, growing = [source.fingerprint() for source in sources], Growing(sources, settings, _shard_without_files)
    with (
        open_workers(jobs, total_size(sources)) as workers,
        open_folder(folder, facts, inputs, restart=restart, growing=growing) as state,
        closing(_Assignment(folder)) as assignment,
    ):
        tally, is_whole = RunTally(state, total_size(sources), progress), True
        for number in range(state.shards):
            assignment.replay(folder / f"part-{number:05}{SUFFIX}")
        if state.finished:
            check_pipes(sources, state.pipes)
        else:
            batches = read_batches(state.sources, settings, state.checkpoint, state.pipes)
            mapped = ordered_map(partial(sketch_batch, settings), batches, workers, START_OVER)
            results = tally.followed(mapped, assignment.add)
            written = write_shards(folder, state, PlainFile(SUFFIX), results, growing.remove, **limits)
            tally.counts.add(written.removed)
            tally.warn_of_changes(settings, START_OVER)
            is_whole = written.removed == Counts()
        if state.is_last and is_whole:
            assignment.write(out)
            # After the file: one without a new file's groups must not be taken for one that has them.
            write_grouped_files(out, sources, tagged_files(folder))
            return assignment.summary(tally)
    # Start over if the run was resumed with its old list of files, as other files may be new or have changed, or if
    # sketches were removed, as groups must then be found without them.
    return _run(sources, settings, out, folder, jobs, False, progress, limits)


def sketch_batch(settings: InputSettings, batch: Batch) -> BatchResult:
    """Read the records of a batch, and return their ids, sources, positions and sketches as bytes."""
    items = list(batch_records(batch, settings))
    records = [item for item in items if isinstance(item, Record)]
    rejections = [item for item in items if isinstance(item, Rejection)]
    zones = (record.zones for record in records)
    frames = [_frame(sketch_texts(zones), b"".join(map(_name, records)))] if records else []
    counts = Counts(len(items), len(records))
    counts.inputs.update(record.source for record in records)
    counts.add_rejections(rejections)
    return BatchResult(frames, rejections, counts, process_name(), peak_memory() or 0)


def _name(record: Record) -> bytes:
    """Return a document's id, source and position; and True for a version of a news item, whose id it has."""
    rest = [record.position, *([True] if record.version != NO_VERSION else [])]
    try:
        return orjson.dumps([record.id, record.source, *rest], option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:  # a file's name may not be valid UTF-8
        name = [escape_undecodable(record.id), escape_undecodable(record.source), *rest]
        return orjson.dumps(name, option=orjson.OPT_APPEND_NEWLINE)


def _frame(sketches: np.ndarray, names: bytes) -> bytes:
    return np.array([len(sketches), len(names)], _SIZES).tobytes() + sketches.tobytes() + names


def _read_frames(data: bytes) -> Iterator[tuple[np.ndarray, list[bytes]]]:
    """Yield for each batch in a shard its documents' sketches and names (ids, sources and positions)."""
    begin = 0
    while begin < len(data):
        n, length = map(int, np.frombuffer(data, _SIZES, 2, begin))
        sketches = np.frombuffer(data, SKETCH, n, begin + 2 * _SIZES.itemsize)
        begin += 2 * _SIZES.itemsize + sketches.nbytes + length
        yield sketches, data[begin - length : begin].splitlines(keepends=True)


def _shard_without_files(path: Path, files: Collection[str], rows: OldRows) -> RemovedRows:
    """Return the content of a shard without the documents of some files; `rows` is not used."""
    frames, counts = [], Counts()
    removed = is_within({escape_undecodable(name) for name in files})
    for sketches, names in _read_frames(path.read_bytes()):
        sources = [orjson.loads(name)[1] for name in names]
        kept = np.array([not removed(source) for source in sources])
        n_removed = len(kept) - int(kept.sum())
        counts.add(Counts(-n_removed, -n_removed))
        counts.inputs.subtract(filter(removed, sources))
        if kept.any():
            frames.append(_frame(sketches[kept], b"".join(compress(names, kept.tolist()))))
    return RemovedRows(b"".join(frames), counts)


class _Assignment:
    """Assign documents to groups, and write a line for each duplicate to a temporary file."""

    def __init__(self, folder: Path):
        self._groups, self._names, self._lines = Groups(), _StoredNames(folder), folder / f"_groups.jsonl{UNFINISHED}"
        disk.remove(self._lines)
        self._file = disk.create(self._lines)
        self._exact = self._near = 0
        self._has_duplicate = bytearray()  # of the documents that are kept

    def replay(self, shard: Path) -> None:
        """Assign the documents of a shard of an earlier run to groups."""
        self._add_frames(shard.read_bytes())

    def add(self, _: Batch, result: BatchResult) -> None:
        """Assign the documents of a batch to groups."""
        self._add_frames(b"".join(result.rows))

    def _add_frames(self, frames: bytes) -> None:
        for sketches, names in _read_frames(frames):
            self._add(sketches, names)

    def _add(self, sketches: np.ndarray, names: list[bytes]) -> None:
        groups, similarities, kept = self._groups.add(sketches)
        self._names.add(list(compress(names, kept.tolist())))
        self._has_duplicate.extend(bytes(self._groups.n - len(self._has_duplicate)))
        lines = []
        for i in np.flatnonzero(similarities >= 0).tolist():
            group, similarity = int(groups[i]), float(similarities[i])
            if _are_of_one_item(names[i], self._names[group]):
                continue  # only the newest version is tagged, so it must not be taken for a repeat of one that is not
            self._has_duplicate[group] = True
            self._exact += similarity == COPY and not kept[i]
            self._near += bool(kept[i])
            lines.append(_line(names[i], self._names[group], similarity))
        disk.write_all(self._file, b"".join(lines))

    def write(self, out: Path) -> None:
        """Close the file of duplicates, and move it from its temporary path to `out`."""
        with disk.raise_write_errors(out, "fix that, and the same command resumes the run"):
            disk.sync(self._file)
            self._file.close()
            disk.rename(self._lines, out)
            disk.sync_folder(out.parent)

    def summary(self, tally: RunTally) -> Duplicates:
        """Return the summary of a run, whose documents `tally` has counted."""
        groups = sum(self._has_duplicate)
        return Duplicates(tally.counts, self._exact, self._near, groups, *tally.cost(), tuple(tally.changes))

    def close(self) -> None:
        """Close all files."""
        for file in (self._file, self._groups, self._names):
            file.close()


def _are_of_one_item(name: bytes, other: bytes) -> bool:
    (id_, _, _, *is_news), (id_of_other, _, _, *is_news_too) = orjson.loads(name), orjson.loads(other)
    return bool(is_news and is_news_too) and id_ == id_of_other


def _line(name: bytes, first: bytes, similarity: float) -> bytes:
    (id_, source, position), (_, *place) = orjson.loads(name)[:3], orjson.loads(first)[:3]
    line = {"id": id_, "source": source, "position": position, "group": group_at(*place)}
    line |= {"group_source": place[0], "group_position": place[1], "similarity": round(similarity, _DECIMALS)}
    return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)


class _StoredNames:
    """A list of documents' names in temporary files, so that memory does not grow with their number."""

    def __init__(self, folder: Path):
        self._names: BinaryIO
        self._ends: BinaryIO
        self._names, self._ends = tempfile.TemporaryFile(dir=folder), tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        self._length = 0

    def add(self, names: list[bytes]) -> None:
        ends = np.cumsum([len(name) for name in names], dtype=np.int64) + self._length
        self._length = int(ends[-1]) if names else self._length
        self._names.write(b"".join(names))
        self._ends.write(ends.tobytes())
        self._names.flush()
        self._ends.flush()

    def __getitem__(self, number: int) -> bytes:
        begin, end = 0, 0
        first = max(number - 1, 0)
        ends = np.frombuffer(os.pread(self._ends.fileno(), 8 * (number - first + 1), 8 * first), np.int64).tolist()
        begin, end = (0, *ends)[-2:]
        return os.pread(self._names.fileno(), end - begin, begin)

    def close(self) -> None:
        self._names.close()
        self._ends.close()
