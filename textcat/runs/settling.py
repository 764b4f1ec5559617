"""Remove outdated documents from a run's output: their file was read again, or their news has a newer version.

A generation of a run is a pass over its inputs, which reads files that are new or have changed. The documents that
these replace are removed when all files have been read; not earlier, because the files may be gone when an interrupted
run is resumed. The journal first records all removals, then, for each shard (output file) and the file of rejections,
the checksum of the new content, before this is put in place.
"""

import hashlib
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import orjson

from textcat.base import disk
from textcat.base.disk import UNFINISHED
from textcat.base.surrogates import escape_undecodable
from textcat.reading import Rejection
from textcat.runs.files import RunFiles, is_within
from textcat.runs.inputs import input_of
from textcat.runs.news_versions import VERSIONS, OldRows, Superseded, find_superseded, old_rows, version_files
from textcat.runs.records import REJECTED, Log, Reading, RejectedSpan, RejectionsReplaced, Replaced, Settled, StaleFile
from textcat.runs.results import Counts, encode_rejection, kind_of_reason


class RemovedRows(NamedTuple):
    """The new content of a shard from which documents were removed.

    `counts` is the change of the run's counts.
    """

    data: bytes  # content of the whole file
    counts: Counts
    rejections: Sequence[Rejection] = ()  # rejections of removed documents that are now rejected


#: A function that returns a shard's content without the documents of the named files, and without the rows (in
#: `OldRows`) that newer versions replace; it removes the rows that it finds from this mapping.
RemoveRows = Callable[[Path, Collection[str], OldRows], RemovedRows]


class Settlement(NamedTuple):
    """What was removed from the output at the end of a generation (a pass over the inputs)."""

    counts: Counts  # change of the run's counts
    is_whole: bool  # False: files must be read again, because older versions of news in them count again


def settle(log: Log, remove: RemoveRows) -> Settlement:
    """Remove from the output the documents that the last generation replaces, after all its files were read.

    A generation is a pass over the inputs, which reads files that are new or have changed. `remove` returns the new
    content of a shard. The journal records each removal, so that an interrupted call can be repeated.
    """
    stale, unblocked = list[StaleFile](), list[Reading]()
    lost, waiting = set[Reading](), set[Reading]()
    files = RunFiles(log, is_read=True) if len(log.generations) > 1 else None
    if files is not None:
        stale, unblocked = files.stale, files.unblocked
        lost, waiting = files.lost, files.lost & files.again
    superseded = _find_superseded(log, stale, lost, waiting)
    again = [] if files is None else sorted({*files.readings(superseded.again)} - files.again)
    if not (stale or unblocked or superseded.shards or again):
        return Settlement(Counts(), True)
    versions = None
    if superseded.chunk:
        path = log.folder / VERSIONS.format(log.generation.number)
        versions = _append(path, superseded.chunk, log.generation.versions)
    log.append(Settled(stale, unblocked, superseded.shards, again, versions))
    return Settlement(remove_listed(log, remove), not again)


def remove_listed(log: Log, remove: RemoveRows) -> Counts:
    """Remove the documents and rejections that the last record `Settled` lists; return the change of counts."""
    settled, counts = log.generation.settled, Counts()
    assert settled is not None
    redone = unreplaced_file(log)
    done = log.replaced - {redone}
    if (settled.stale or settled.unblocked) and log.rejected_spans and REJECTED not in done:
        counts.add(_replace_rejections(log, settled, is_announced=redone == REJECTED))
    names = defaultdict[str, list[str]](list)
    for reading, shards in settled.stale:
        for shard in shards:
            names[shard].append(reading.name)
    superseded = {shard: n for shard, n in settled.superseded.items() if shard not in done}
    for shard, rows in old_rows(version_files(log), superseded) if superseded else ():
        counts.add(_replace_shard(log, shard, remove(log.folder / shard, names.pop(shard, ()), rows), redone))
    for shard in names:
        if shard not in done and shard not in superseded:
            counts.add(_replace_shard(log, shard, remove(log.folder / shard, names[shard], {}), redone))
    return counts


def unreplaced_file(log: Log) -> str:
    """Return the file whose new content is recorded in the journal, but not yet in place; "" if there is none."""
    match log.last:
        case Replaced(name=name):
            is_in_place = disk.sha256_of_file(log.folder / name) == log.last.sha256
        case RejectionsReplaced():
            # An existing file is truncated if no rejection is left.
            name, is_in_place = REJECTED, disk.begins_with(log.folder / REJECTED, *log.rejections)
        case _:
            return ""
    return "" if is_in_place else name


def _replace_shard(log: Log, name: str, content: RemovedRows, redone: str) -> Counts:
    """Replace a shard's content, and append the rejections of removed documents; return the change of counts.

    If the shard is the one named `redone`, the journal has the change already, and only the file is written.
    """
    with _replacing(log.folder / name, content.data):
        if name == redone:
            return Counts()
        rejections = None
        if content.rejections:
            lines = b"".join(map(encode_rejection, content.rejections))
            rejections = _append(log.folder / REJECTED, lines, log.rejections)
        sum_ = hashlib.sha256(content.data).hexdigest()
        content.counts.inputs = _by_input(content.counts.inputs, log.counts.inputs)
        log.append(Replaced(name, len(content.data), sum_, content.counts.as_dict(), rejections))
    return content.counts


def _by_input(files: Mapping[str, int], inputs: Collection[str]) -> Counter[str]:
    """Add up numbers of documents by input (a file itself, or a folder above it), given those by file."""
    counts = Counter[str]()
    for file, n in files.items():
        counts[input_of(file, inputs)] += n
    return counts


def _replace_rejections(log: Log, settled: Settled, *, is_announced: bool) -> Counts:
    spans = log.former if is_announced else log.rejected_spans
    assert isinstance(spans, list)
    data, kept, counts = _kept_rejections(log.folder / REJECTED, spans, settled)
    with _replacing(log.folder / REJECTED, data):
        if is_announced:
            return Counts()
        log.append(RejectionsReplaced(counts.as_dict(), kept))
    return counts


@contextmanager
def _replacing(path: Path, data: bytes) -> Iterator[None]:
    """Write a file's new content, and put it in place at the end of a ``with`` block; remove an empty `REJECTED`."""
    if path.name == REJECTED and not data:
        yield
        disk.remove(path)
        disk.sync_folder(path.parent)
        return
    with disk.replacing(path, path.with_name(path.name + UNFINISHED)) as file:
        disk.write_all(file, data)
        disk.sync(file)  # before the journal announces it
        yield


def _append(path: Path, data: bytes, before: tuple[int, int]) -> tuple[int, int]:
    """Append bytes to a file, and sync it; return its length and CRC-32, given those before."""
    with closing(disk.reopen(path)) as file:
        disk.write_all(file, data)
        disk.sync(file)
    disk.sync_folder(path.parent)
    return before[0] + len(data), zlib.crc32(data, before[1])


def _kept_rejections(
    path: Path, spans: Sequence[RejectedSpan], settled: Settled
) -> tuple[bytes, list[RejectedSpan], Counts]:
    """Return the rejections to keep: their lines, where those of each pass end, and the change of counts.

    Rejections of stale documents are dropped, and so are rejections of whole files and folders that can be opened now,
    or are gone.
    """
    stale, readable = defaultdict[int, set[str]](set), {(n, escape_undecodable(name)) for n, name in settled.unblocked}
    for reading, _ in settled.stale:
        stale[reading.generation].add(escape_undecodable(reading.name))
    kept, kept_spans, counts, begin, kept_end, crc32 = list[bytes](), list[RejectedSpan](), Counts(), 0, 0, 0
    with open(path, "rb") as file:
        for generation, end, _ in spans:
            is_stale = is_within(stale[generation])
            for line in file.read(end - begin).splitlines(keepends=True):
                rejection = orjson.loads(line)
                # At the position 0, a whole file or folder was rejected, or the rest of a file.
                is_dropped = rejection["position"] == 0 and (generation, rejection["source"]) in readable
                if is_dropped or is_stale(rejection["source"]):
                    left_out = -int("left_out" in rejection)
                    reasons = Counter({kind_of_reason(rejection["reason"]): -1})
                    counts.add(Counts(-1, rejected=-1, left_out=left_out, reasons=reasons))
                else:
                    kept.append(line)
                    kept_end, crc32 = kept_end + len(line), zlib.crc32(line, crc32)
            begin = end
            if kept_end > (kept_spans[-1].end if kept_spans else 0):
                kept_spans.append(RejectedSpan(generation, kept_end, crc32))
    return b"".join(kept), kept_spans, counts


def _find_superseded(
    log: Log, stale: Sequence[StaleFile], lost: Collection[Reading], waiting: Collection[Reading]
) -> Superseded:
    """Return the rows that newer versions of their news items replace.

    Return none if nothing has changed since the last finished pass over the inputs.
    """
    files = version_files(log, stale)
    first_new = 1 + max((generation.number for generation in log.generations if generation.is_finished), default=-1)
    has_versions = any(file.length for file in files)
    if not has_versions or not (stale or waiting or any(file.length for file in files[first_new:])):
        return Superseded(b"", {}, [])
    return find_superseded(files, first_new, lost, waiting)
