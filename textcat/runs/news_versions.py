"""Store which versions of news items a run has read, and find rows that newer versions replace.

Each generation of a run (a pass over its inputs) has a file, to which each batch with versions adds a chunk. A chunk
has the length of its list of sources and the number of its entries; the sources, as JSON; and an entry of 45 bytes for
each version, in the order of the input. At the end of a generation, a chunk without sources lists the entries whose
rows a newer version replaces. The run's journal has the length and the checksum of the file.
"""

import struct
import zlib
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import orjson

from textcat.base import disk
from textcat.base.errors import TextcatError
from textcat.base.surrogates import escape_undecodable
from textcat.reading import START_OVER, VersionState
from textcat.runs.files import is_within
from textcat.runs.news_version_chunks import ENTRY, FIELDS, HEAD
from textcat.runs.records import Log, Reading, StaleFile

if TYPE_CHECKING:
    import numpy as np

VERSIONS = "_versions-{:05}.bin"  # name of a generation's file
# Generation and number of an entry whose row is replaced; whether the newest version is a cancellation or the like.
_REPLACED = [("generation", "<u4"), ("entry", "<u8"), ("is_withdrawn", "u1")]
_KEPT_BYTES = 1 << 16  # maximum size of a cached file: a run that watches inputs has thousands of files

#: By source, position and `hash_of_id` of a row: what happens to these rows, in their order.
OldRows = dict[tuple[str, int, bytes], "list[OldRow]"]


class OldRow(NamedTuple):
    """What happens to a row of output whose news item may have a newer version.

    `is_removed`: the row is removed. `is_withdrawn`: the newest version is canceled or the like.
    """

    is_removed: bool
    is_withdrawn: bool


class Segment(NamedTuple):
    """The part of a file of versions that belongs to one shard, given by the byte at which it ends."""

    shard: str  # "" if all documents were rejected
    end: int


class VersionFile(NamedTuple):
    """The file with the versions of news items that one pass over the inputs has read."""

    path: Path
    length: int  # size in bytes; 0: there is no file
    crc32: int
    segments: Sequence[Segment]
    gone: Collection[str] = ()  # names of the input files whose documents were removed since, or will be now


class Superseded(NamedTuple):
    """The rows of output that newer versions of news replace, found after all files of a pass were read."""

    chunk: bytes  # encoded list of the entries whose rows are replaced; b"" if there are none
    shards: dict[str, int]  # number of these rows by shard
    again: list[Reading]  # sources to read again, or as soon as they can be read: see `find_superseded`


def version_files(log: Log, stale: Iterable[StaleFile] = ()) -> list[VersionFile]:
    """Return the file of versions of each generation (pass over the inputs), as the journal describes it.

    The documents in `stale` are marked as removed: their versions no longer count.
    """
    settled = (generation.settled for generation in log.generations)
    removed = [*stale, *(item for end in settled if end is not None for item in end.stale)]
    gone = _names_by_generation(item.reading for item in removed)
    files = []
    for generation in log.generations:
        segments = [Segment(shard.name, shard.versions[0]) for shard in generation.shards if shard.versions]
        path = log.folder / VERSIONS.format(generation.number)
        files.append(VersionFile(path, *generation.versions, segments, gone[generation.number]))
    return files


class _Chunk(NamedTuple):
    begin: int  # number of the first entry in the file
    end: int
    at: int  # byte offset of the sources
    n_bytes: int  # length of the sources


class _Content(NamedTuple):
    entries: "np.ndarray"
    chunks: list[_Chunk]
    replaced: "np.ndarray"


def _read(file: VersionFile) -> _Content:
    read = _read_small if file.length <= _KEPT_BYTES else _read_whole
    return read(file.path, file.length, file.crc32)


def _read_whole(path: Path, length: int, crc32: int) -> _Content:
    """Read a file of versions; raise a TextcatError if it is missing or too short, or if its CRC-32 is wrong."""
    import numpy as np  # imported here, so that a process that only distributes work stays small

    entries, replaced, chunks = bytearray(), bytearray(), list[_Chunk]()
    size, size_of_replaced = ENTRY.size, np.dtype(_REPLACED).itemsize
    try:
        with disk.open_regular(path) as file:
            at, sum_ = 0, 0
            while at < length:
                head = file.read(HEAD.size)
                n_bytes, n = HEAD.unpack(head)
                n_data = n * (size if n_bytes else size_of_replaced)
                if at + len(head) + n_bytes + n_data > length:
                    raise ValueError
                sources, data = file.read(n_bytes), file.read(n_data)
                for part in (head, sources, data):
                    sum_ = zlib.crc32(part, sum_)
                if n_bytes:
                    begin = len(entries) // size
                    chunks.append(_Chunk(begin, begin + n, at + len(head), n_bytes))
                    entries += data
                else:
                    replaced += data
                at += len(head) + n_bytes + n_data
        if sum_ != crc32:
            raise ValueError
    except (ValueError, struct.error, OSError):
        raise TextcatError(f"{path} is missing or changed: restore it, or {START_OVER}.") from None
    return _Content(np.frombuffer(entries, FIELDS), chunks, np.frombuffer(replaced, _REPLACED))


_read_small = lru_cache(maxsize=4096)(_read_whole)


class _Versions:
    """The versions of news items that the generations (passes over the inputs) of a run have read.

    Masks tell which of them count, and which have a row in the output. Versions count unless their files have changed
    since. Rows replaced at the end of generation `until` or later still exist.
    """

    def __init__(self, files: Sequence[VersionFile], until: int):
        import numpy as np

        self.files = files
        self.contents = [_read(file) if file.length else None for file in files]
        of_entries = [np.empty(0, FIELDS) if content is None else content.entries for content in self.contents]
        self.entries: list[Any] = of_entries
        self.counts: list[Any] = [~self.are_in_files(i, file.gone) for i, file in enumerate(files)]
        self.have_rows = [
            counts & (entries["state"] == VersionState.READ)
            for counts, entries in zip(self.counts, of_entries, strict=True)
        ]
        for content in self.contents[:until]:
            if content is not None and len(content.replaced):
                for i in np.unique(content.replaced["generation"]).tolist():
                    at = content.replaced["entry"][content.replaced["generation"] == i]
                    self.have_rows[i][at.astype(np.intp)] = False

    def are_in_files(self, generation: int, names: Collection[str]) -> "np.ndarray":
        """Return a mask of the versions of one pass: whether each was read from one of the named input files."""
        import numpy as np

        are_in, content = np.zeros(len(self.entries[generation]), bool), self.contents[generation]
        if content is None or not names:
            return are_in
        is_in = is_within({*map(escape_undecodable, names)})
        with open(self.files[generation].path, "rb") as file:
            for chunk in content.chunks:
                of_sources = np.array([is_in(source) for source in _sources_at(file, chunk)])
                numbers = self.entries[generation]["source"][chunk.begin : chunk.end]
                are_in[chunk.begin : chunk.end] = of_sources[numbers]
        return are_in

    def sources_of(self, generation: int, entries: "np.ndarray") -> Iterator[str]:
        """Yield the source of each of the entries, given by their numbers in ascending order."""
        import numpy as np

        content = self.contents[generation]
        assert content is not None
        with open(self.files[generation].path, "rb") as file:
            for chunk in content.chunks:
                inside = entries[np.searchsorted(entries, chunk.begin) : np.searchsorted(entries, chunk.end)]
                if len(inside):
                    sources = _sources_at(file, chunk)
                    yield from (sources[i] for i in self.entries[generation]["source"][inside].tolist())

    def shard_ranges(self, generation: int) -> Iterator[tuple[str, int, int]]:
        """Yield each shard of one pass, with the numbers of its first entry and of the entry after its last."""
        content, segments = self.contents[generation], self.files[generation].segments
        ends = [segment.end for segment in segments]
        chunks = () if content is None else content.chunks
        for shard, group in groupby(chunks, lambda chunk: segments[bisect_right(ends, chunk.at)].shard):
            of_shard = [*group]
            yield shard, of_shard[0].begin, of_shard[-1].end


def _sources_at(file: BinaryIO, chunk: _Chunk) -> list[str]:
    file.seek(chunk.at)
    sources: list[str] = orjson.loads(file.read(chunk.n_bytes))
    return sources


def find_superseded(
    files: Sequence[VersionFile],
    first_new: int,
    lost: Collection[Reading] = (),
    waiting: Collection[Reading] = (),
) -> Superseded:
    """Find the rows that newer versions of the same news items replace; of equal versions, the last one counts.

    Of each item, the newest version that has a row or is left out (as canceled, for example) replaces older ones. If
    the version that replaced others is gone now, the others have no rows any more: the newest of them that can be read
    is read again, and those newer than it as soon as they can be read.

    Parameters
    ----------
    files : sequence of VersionFile
        One file per pass over the inputs; the last pass has read all its files.
    first_new : int
        The number of the first pass that has not been examined yet.
    lost : collection of Reading
        Files that cannot be read now, because they are missing, for example.
    waiting : collection of Reading
        The files in `lost` that were to be read again: older versions of their news are read instead.
    """
    import numpy as np

    versions = _Versions(files, len(files))
    compared = _compare(versions, _ids_to_compare(versions, first_new, waiting))
    place, newest = np.arange(len(compared.item)), compared.last_in(compared.has_row | compared.is_left_out)
    old = compared.in_order_of_input(compared.has_row & (place < newest))
    replaced = np.empty(len(old), _REPLACED)
    replaced["generation"], replaced["entry"] = compared.generation[old], compared.entry[old]
    replaced["is_withdrawn"] = compared.is_left_out[newest[old]]
    again = _sources_to_reread(versions, compared, place > newest, lost)
    chunk = HEAD.pack(0, len(replaced)) + replaced.tobytes() if len(replaced) else b""
    return Superseded(chunk, _numbers_by_shard(versions, replaced), again)


class _Compared(NamedTuple):
    """Versions of the items to compare, as arrays with an entry for each version: an item's newest version is last."""

    item: "np.ndarray"  # number of the item, in ascending order
    generation: "np.ndarray"
    entry: "np.ndarray"  # number of its entry in the generation's file
    has_row: "np.ndarray"
    is_left_out: "np.ndarray"

    def last_in(self, mask: "np.ndarray") -> "np.ndarray":
        """Return for each version the index of the newest version of its item for which `mask` is True; -1: none."""
        import numpy as np

        last = np.full(self.item[-1] + 1 if len(self.item) else 0, -1)
        places = mask.nonzero()[0]
        last[self.item[places]] = places  # of several assignments, the last one counts
        of_versions: np.ndarray = last[self.item]
        return of_versions

    def in_order_of_input(self, mask: "np.ndarray") -> "np.ndarray":
        """Return the indices of the versions for which `mask` is True, in the order in which they were read."""
        import numpy as np

        places = mask.nonzero()[0]
        in_order: np.ndarray = places[np.lexsort((self.entry[places], self.generation[places]))]
        return in_order


def _compare(versions: _Versions, ids: "np.ndarray") -> _Compared:
    """Sort versions by item, number and date; `ids` are the items' hashes (first halves, sorted)."""
    import numpy as np

    numbers = [
        (counts & _is_in_sorted(entries["high"], ids)).nonzero()[0]
        for counts, entries in zip(versions.counts, versions.entries, strict=True)
    ]

    def of_all(columns: Iterable["np.ndarray"]) -> "np.ndarray":
        return np.concatenate([column[at] for column, at in zip(columns, numbers, strict=True)])

    def of_field(name: str) -> "np.ndarray":
        return of_all(entries[name] for entries in versions.entries)

    # The sort is stable, so equal versions keep the order of the input.
    order = np.lexsort([of_field(name) for name in ("date", "number", "low", "high")])
    is_other = np.zeros(len(order), bool)  # whether it is a version of another item than the one before
    for name in ("low", "high"):
        half = of_field(name)[order]
        is_other[1:] |= half[1:] != half[:-1]
    generation = np.repeat(np.arange(len(numbers), dtype=np.uint32), [*map(len, numbers)])
    return _Compared(
        np.cumsum(is_other),
        generation[order],
        np.concatenate(numbers)[order],
        of_all(versions.have_rows)[order],
        of_field("state")[order] == VersionState.LEFT_OUT,
    )


def _sources_to_reread(
    versions: _Versions, compared: _Compared, lacks_row: "np.ndarray", lost: Iterable[Reading]
) -> list[Reading]:
    """Return the sources to read again because they have versions that count, but have no row (mask `lacks_row`).

    These are, for each item, the newest version that can be read, and newer ones, which are in `lost` files and may be
    read later.
    """
    import numpy as np

    at = compared.in_order_of_input(lacks_row)
    readings = [
        Reading(i, source)
        for i in np.unique(compared.generation[at]).tolist()
        for source in versions.sources_of(i, compared.entry[at[compared.generation[at] == i]])
    ]
    is_lost = {i: is_within({*map(escape_undecodable, names)}) for i, names in _names_by_generation(lost).items()}
    can_be_read = np.zeros(len(lacks_row), bool)
    can_be_read[at] = [i not in is_lost or not is_lost[i](source) for i, source in readings]
    is_needed = at >= compared.last_in(can_be_read)[at]
    return sorted({reading for reading, needed in zip(readings, is_needed.tolist(), strict=True) if needed})


def _names_by_generation(readings: Iterable[Reading]) -> defaultdict[int, set[str]]:
    names = defaultdict[int, set[str]](set)
    for reading in readings:
        names[reading.generation].add(reading.name)
    return names


def _ids_to_compare(versions: _Versions, first_new: int, waiting: Iterable[Reading]) -> "np.ndarray":
    """Return items whose versions must be compared, as the sorted first halves of the hashes of their ids."""
    import numpy as np

    pairs = list(zip(versions.entries, versions.counts, strict=True))
    changed = [~counts for counts in versions.counts]
    for i, names in _names_by_generation(waiting).items():
        changed[i] |= versions.are_in_files(i, names) & ~versions.have_rows[i]
    gone = np.concatenate([entries["high"][mask] for entries, mask in zip(versions.entries, changed, strict=True)])
    new = np.concatenate([gone, *(entries["high"][counts] for entries, counts in pairs[first_new:])])
    new.sort()
    before = [entries["high"][counts] for entries, counts in pairs[:first_new]]
    highs = np.concatenate([new, *(high[_is_in_sorted(high, new)] for high in before)])
    highs.sort()
    return np.union1d(highs[1:][highs[1:] == highs[:-1]], gone)


def _is_in_sorted(values: "np.ndarray", among: "np.ndarray") -> "np.ndarray":
    """Return a mask of `values`: whether each is in the sorted array `among`."""
    import numpy as np

    if not len(among):
        return np.zeros(len(values), bool)
    at = np.searchsorted(among, values)
    at[at == len(among)] = 0
    is_in: np.ndarray = among[at] == values
    return is_in


def _numbers_by_shard(versions: _Versions, replaced: "np.ndarray") -> dict[str, int]:
    import numpy as np

    counts: dict[str, int] = {}
    for generation in np.unique(replaced["generation"]).tolist():
        at = replaced["entry"][replaced["generation"] == generation]
        for shard, begin, end in versions.shard_ranges(generation):
            if n := int(np.searchsorted(at, end) - np.searchsorted(at, begin)):
                counts[shard] = n
    return counts


def old_rows(files: Sequence[VersionFile], shards: Mapping[str, int]) -> Iterator[tuple[str, OldRows]]:
    """Yield the name of each shard in `shards`, and which of its rows newer versions replace, as `OldRows`.

    `files` has a file of versions for each generation (pass over the inputs) of the run. The last file ends with the
    list of the rows, of all generations, that are replaced at the end of the last generation.
    """
    import numpy as np

    versions = _Versions(files, len(files) - 1)
    content = versions.contents[-1]
    replaced = np.empty(0, _REPLACED) if content is None else content.replaced
    for generation in range(len(files)):
        entries, of_generation = versions.entries[generation], replaced[replaced["generation"] == generation]
        for shard, begin, end in versions.shard_ranges(generation) if len(of_generation) else ():
            if shard not in shards:
                continue
            inside = of_generation[(of_generation["entry"] >= begin) & (of_generation["entry"] < end)]
            withdrawn = dict(zip(inside["entry"].tolist(), inside["is_withdrawn"].tolist(), strict=True))
            ids = np.sort(entries["high"][inside["entry"].astype(np.intp)])
            at = versions.have_rows[generation][begin:end] & _is_in_sorted(entries["high"][begin:end], ids)
            numbers = at.nonzero()[0] + begin
            hashes = np.stack([entries[half][numbers] for half in ("high", "low")], axis=1).tobytes()
            positions = entries["position"][numbers].tolist()
            rows: OldRows = defaultdict(list)
            for i, source in enumerate(versions.sources_of(generation, numbers)):
                number = int(numbers[i])
                old = OldRow(number in withdrawn, bool(withdrawn.get(number)))
                rows[source, positions[i], hashes[16 * i : 16 * i + 16]].append(old)
            yield shard, rows
