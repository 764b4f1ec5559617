"""Find what is new in the inputs of a run that ended: an archive that grows is read again only where it has changed.

A run is a row of generations. The first one reads all files, each later one the files that are new or have changed
since. The files of a generation are listed in a file of their own, in the order in which they are read.
"""

import os
import zlib
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

from textcat.reading import Checkpoint, FileState, Source, is_url
from textcat.surrogates import escape_undecodable

_AT_ONCE = 1 << 20  # bytes
Line = dict[str, Any]


class ListedFile(NamedTuple):
    """Describe an input file of a generation: where it is read, and its size and time when it was listed.

    A generation is the set of files that a run reads when it is started or goes on.
    """

    of: str  # the name of the source, which is the file itself, or a folder
    source: int  # the number of the source in the generation
    number: int  # of the file in the source; -1: the file is the source
    name: str
    size: int
    state: int | str | None
    # Only of a file that is not read, as its documents are in shards:
    written_as: str = ""  # the name that they have there
    shards: tuple[str, ...] = ()  # the shards that may have them
    crc32: int | None = None
    was: str = ""  # its former name, if it was renamed since the last generation

    def is_before(self, end: Checkpoint) -> bool:
        """Return whether the whole file was read when reading had reached `end`, a position in the sources."""
        if self.source != end[0]:
            return self.source < end[0]
        return len(end) > _PATH and 0 <= self.number < end[_PATH]

    def is_cut(self, end: Checkpoint) -> bool:
        """Return whether only a part of the file was read when reading had reached `end`, a position in the sources."""
        if self.source != end[0]:
            return False
        if self.number < 0:
            return any(end[1:])
        return len(end) > _PATH and self.number == end[_PATH] and any(end[1:3] + end[_PATH + 1 :])


_PATH = 4  # the position in a checkpoint at which the numbers of files in folders begin


class KnownFile(NamedTuple):
    """Describe an input file whose documents are in the shards (the output files)."""

    file: ListedFile
    crc32: int | None  # None if unknown
    shards: tuple[str, ...]  # those that may have documents of it

    @property
    def written_as(self) -> str:
        """The name of the file that its documents have as their source in the shards (output files)."""
        return self.file.written_as or self.file.name


class Generation(NamedTuple):
    """Hold the files that a run reads when it is started or goes on, and the journal's lines about this reading."""

    files: Sequence[ListedFile]
    entries: Sequence[Line]

    @property
    def is_finished(self) -> bool:
        """Return whether all files were read."""
        return any("finished" in entry for entry in self.entries)

    def known(self) -> Iterator[KnownFile]:
        """Yield the files that were read to their ends, and those that need not be read."""
        read, shards, sums = self._read(), self._shards(), dict[str, int]()
        for entry in self.entries:
            sums |= entry.get("sums", {})
        for number, file in enumerate(read[: _n_before(read, self._end())]):
            yield KnownFile(file, sums.get(file.name), tuple(shards[number]))
        yield from (KnownFile(file, file.crc32, file.shards) for file in self.files[len(read) :])

    def cut(self) -> list[KnownFile]:
        """Return the file of which only a part was read, in a list; [] if there is none."""
        read, shards = self._read(), self._shards()
        number = _n_before(read, self._end())
        cut = [file for file in read[number : number + 1] if file.is_cut(self._end())]
        return [KnownFile(file, None, tuple(shards[number])) for file in cut]

    def left(self) -> list[ListedFile]:
        """Return the files that are to be read, as a whole or in part."""
        read = self._read()
        return read[_n_before(read, self._end()) :]

    def again(self, known: Mapping[str, KnownFile]) -> Iterator[str]:
        """Yield the names of known files that are to be read again, as versions of news in them have no row now.

        See `versions`. The names are those that the files have in the shards.
        """
        sources = [source for entry in self.entries for source in entry.get("again", ())]
        names = {escape_undecodable(item.written_as): item.written_as for item in known.values()} if sources else {}
        for source in sources:
            yield from [names[above] for above in _paths_above(source) if above in names][:1]

    def _read(self) -> list[ListedFile]:
        return [file for file in self.files if file.source >= 0]  # the others stand behind them

    def _end(self) -> Checkpoint:
        """Return the checkpoint (a position in the sources) up to which results are in shards."""
        cursors = [tuple(entry["cursor"]) for entry in self.entries if "cursor" in entry]
        return (len(self.files), 0) if self.is_finished else cursors[-1] if cursors else (0, 0)

    def _shards(self) -> Mapping[int, list[str]]:
        """Return the shards (output files) that may have documents of each file, by the file's position in the list."""
        shards, begin = defaultdict[int, list[str]](list), 0
        read = self._read()
        for entry in self.entries:
            if "cursor" in entry:
                end = tuple(entry["cursor"])
                n = _n_before(read, end)
                n_in = n + (n < len(read) and read[n].is_cut(end))
                for number in range(begin, n_in) if entry["shard"] else ():
                    shards[number].append(entry["shard"])
                begin = n
        return shards


def _n_before(files: Sequence[ListedFile], end: Checkpoint) -> int:
    """Return the number of files that were read to their ends when reading had reached `end`, a position."""
    return bisect_left(files, True, key=lambda file: not file.is_before(end))


class Growth(NamedTuple):
    """Hold the names of input files that are new, changed, renamed or gone since a run."""

    new: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()  # each with its former name
    gone: tuple[str, ...] = ()  # whose documents stay in the shards; of those, only the ones that are gone since

    def __bool__(self) -> bool:
        return any(self)


class Work(NamedTuple):
    """Hold the files that a run is to read next, and those whose documents it removes from its output."""

    growth: Growth
    files: Sequence[ListedFile]
    removed: Sequence[KnownFile]  # whose documents are removed from the shards
    gone: Sequence[str]  # all files that are gone


def list_files(sources: Sequence[Source]) -> list[tuple[Source, FileState]] | None:
    """Return the files of all sources with their sizes and times, in the order of reading.

    None is returned if a source does not know these of its files: a pipe, or a folder with very many files.
    """
    listed = []
    for source in sources:
        states = source.file_states()
        if states is None:
            return None
        listed += [(source, state) for state in states]
    return listed


def numbered_files(sources: Sequence[Source], names: Set[str] | None = None) -> list[ListedFile] | None:
    """Return the files of the sources, with their numbers there, as a run lists them; only those in `names`, if given.

    None is returned if a source does not know the sizes and times of its files: see `list_files`.
    """
    listed: list[ListedFile] = []
    for i, source in enumerate(sources):
        states = source.file_states()
        if states is None:
            return None
        is_folder = source.kind == "folder"
        files = (ListedFile(source.name, i, n if is_folder else -1, *state) for n, state in enumerate(states))
        listed += (file for file in files if names is None or file.name in names)
    return listed


def restricted_sources(sources: Sequence[Source], files: Sequence[ListedFile] | None) -> Sequence[Source]:
    """Return sources with only the listed files that are to be read, numbered as in the list; None: with all files."""
    if files is None:
        return sources
    by_name = {source.name: source for source in sources}
    numbers = defaultdict[tuple[int, str], dict[str, int]](dict)
    for file in files:
        if file.source >= 0:
            numbers[file.source, file.of][file.name] = file.number
    parts = {number: by_name[of].restricted(named) for (number, of), named in numbers.items()}
    return [parts.get(number) or _without_files(sources[0]) for number in range(max(parts, default=-1) + 1)]


def _without_files(source: Source) -> Source:
    """Return a source that has no file and never changes, in place of one that has nothing to read."""
    guess = source.guess._replace(format="folder")
    return Source("", "folder", guess, 0, None, 0, changed=lambda: None, states=())


def find_growth(sources: Sequence[Source], generations: Sequence[Generation]) -> Work | None:
    """Return what a run is to read next, given today's sources and the generations so far.

    A generation is the set of files that the run read when it was started or went on. Return None if the last one is
    not finished, and its remaining files are unchanged.
    """
    listed = {state.name: (source, state) for source, state in list_files(sources) or ()}
    last = generations[-1]
    left, cut = last.left(), last.cut()
    if left and all(_is_same(file, listed) for file in left):
        return None
    known: dict[str, KnownFile] = {}
    again = set[str]()
    for generation in generations:
        for item in generation.known():
            known.pop(item.file.was, None)
            known[item.file.name] = item
            if item.file.source >= 0:
                again.discard(item.written_as)
        again.update(generation.again(known))
    growth, kept = _compare(listed, known, {item.file.name for item in cut})
    to_read = {*growth.new, *growth.changed}
    removed = [known[name] for name in growth.changed if name in known] + cut
    former = dict(growth.renamed)
    unchanged = {name: known.get(former.get(name, name)) for name in listed if name not in to_read} if again else {}
    more = {name: item for name, item in unchanged.items() if item is not None and item.written_as in again}
    read = numbered_files(sources, {*to_read, *more}) or ()
    files = [file._replace(was=former.get(file.name, "")) for file in read]
    files += [file for file in kept if file.name not in more]
    told = {name for entry in last.entries for name in entry.get("gone", ())}
    since = growth._replace(gone=tuple(name for name in growth.gone if name not in told))
    return Work(since, files, [*removed, *more.values()], growth.gone)


def missing_sums(sources: Sequence[Source], generation: Generation) -> dict[str, int]:
    """Return the CRC-32 of files that were read to their ends, but whose checksums are missing in the journal.

    `generation` has the files and the journal's lines. By its checksum, a file is recognised after it was renamed.
    Files that have changed since are left out.
    """
    listed = {state.name: (source, state) for source, state in list_files(sources) or ()}
    lacking = (item.file for item in generation.known() if item.crc32 is None)
    sums = {file.name: _crc32_of(file.name) for file in lacking if file.source >= 0 and _is_same(file, listed)}
    return {name: crc32 for name, crc32 in sums.items() if crc32 is not None}


def _is_same(file: ListedFile, listed: Mapping[str, tuple[Source, FileState]]) -> bool:
    found = listed.get(file.name)
    return found is not None and found[0].name == file.of and found[1][1:] == (file.size, file.state)


def _compare(
    listed: Mapping[str, tuple[Source, FileState]], known: Mapping[str, KnownFile], cut: Set[str]
) -> tuple[Growth, list[ListedFile]]:
    """Return what has changed, and the known files that have another name or time, but the same content.

    `listed` has today's files, and `known` those whose documents are in the output, both by name; `cut` has the names
    of files of which only a part was read.
    """
    new, changed, renamed, kept = list[str](), list[str](), list[tuple[str, str]](), list[ListedFile]()
    gone = {name: item for name, item in known.items() if name not in listed}
    lost = defaultdict[tuple[int, int | None], list[str]](list)
    for name, lost_file in gone.items():
        lost[lost_file.file.size, lost_file.crc32].append(name)
    sizes = {size for size, crc32 in lost if size > 0 and crc32 is not None}
    for name, (_, state) in listed.items():
        item = known.get(name)
        if item is not None and state[1:] == (item.file.size, item.file.state):
            continue
        was = ""
        if item is not None and item.file.size == state.size and _has_sum(name, item.crc32):
            was = name
        elif item is None and state.size in sizes and (crc32 := _crc32_of(name)) is not None:
            was = next(iter(lost[state.size, crc32]), "")
        if was:
            kept.append(_kept(known[was], state, "" if was == name else was))
            if was != name:
                lost[state.size, crc32].remove(was)
                renamed.append((name, was))
        else:
            (changed if item is not None or name in cut else new).append(name)
    still_gone = {*gone} - {was for _, was in renamed}
    return Growth(tuple(new), tuple(changed), tuple(renamed), tuple(sorted(still_gone))), kept


def _kept(item: KnownFile, state: FileState, was: str) -> ListedFile:
    """Return the entry of a file that need not be read again, under its present name and with its present time.

    `was` is its former name, "" if it was not renamed.
    """
    file = ListedFile(item.file.of, -1, -1, *state)
    return file._replace(written_as=item.written_as, shards=item.shards, crc32=item.crc32, was=was)


def _has_sum(path: str, crc32: int | None) -> bool:
    return crc32 is not None and _crc32_of(path) == crc32


def _crc32_of(path: str) -> int | None:
    """Return the CRC-32 of a file on this machine; None if the file cannot be read, or is a URL."""
    if is_url(path) or not os.path.isfile(path):
        return None
    crc32 = 0
    try:
        with open(path, "rb", buffering=0) as file:
            while data := file.read(_AT_ONCE):
                crc32 = zlib.crc32(data, crc32)
    except OSError:
        return None
    return crc32


def is_within(names: Collection[str]) -> Callable[[str], bool]:
    """Return a function that tells whether a document's source is one of the named files, or is inside one."""
    return lambda source: any(above in names for above in _paths_above(source))


def _paths_above(source: str) -> Iterator[str]:
    while source:
        yield source
        source = source.rpartition("/")[0]


def names_by_shard(removed: Iterable[KnownFile]) -> dict[str, list[str]]:
    """Return, for each shard (output file), the names of the input files whose documents are to be removed from it."""
    names = defaultdict[str, list[str]](list)
    for item in removed:
        for shard in item.shards:
            names[shard].append(item.written_as)
    return dict(names)
