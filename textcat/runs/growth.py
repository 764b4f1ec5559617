"""Find what is new in the inputs of a run that ended: an archive that grows is read again only where it has changed.

A run is a row of generations. The first one reads all files, each later one the files that are new or have changed
since. The files of a generation are listed in a file of their own, in the order in which they are read.
"""

import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import closing
from typing import Any, NamedTuple

from textcat.base.surrogates import escape_undecodable
from textcat.reading import ByteStream, Checkpoint, FileState, Source, UnreadableError

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
    checksum: str = ""
    was: str = ""  # its former name, if it was renamed since the last generation

    @property
    def is_blocked(self) -> bool:
        """Return whether this is no file that can be read, see `FileState`."""
        return self.state is None

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
    checksum: str  # "" if unknown
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
        read, shards, sums = self._read(), self._shards(), dict[str, str]()
        for entry in self.entries:
            sums |= entry.get("sums", {})
        for number, file in enumerate(read[: _n_before(read, self._end())]):
            yield KnownFile(file, sums.get(file.name, ""), tuple(shards[number]))
        yield from (KnownFile(file, file.checksum, file.shards) for file in self.files[len(read) :])

    def cut(self) -> list[KnownFile]:
        """Return the file of which only a part was read, in a list; [] if there is none."""
        read, shards = self._read(), self._shards()
        number = _n_before(read, self._end())
        cut = [file for file in read[number : number + 1] if file.is_cut(self._end())]
        return [KnownFile(file, "", tuple(shards[number])) for file in cut]

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

    def due(self) -> dict[str, float]:
        """Return sources that are to be read again, though they may not change, with the time: see `Rejection`."""
        due: dict[str, float] = {}
        for entry in self.entries:
            for source, when in entry.get("due", {}).items():
                due[source] = min(when, due.get(source, when))
        return due

    def _read(self) -> list[ListedFile]:
        return [file for file in self.files if file.source >= 0]  # the others stand behind them

    def _end(self) -> Checkpoint:
        """Return the checkpoint (a position in the sources) up to which results are in shards."""
        if self.is_finished:
            return 1 + max((file.source for file in self.files), default=0), 0
        return next((tuple(entry["cursor"]) for entry in reversed(self.entries) if "cursor" in entry), (0, 0))

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
    """Hold the names of input files that are new, changed, renamed or gone since a run, or are read again."""

    new: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()  # each with its former name
    gone: tuple[str, ...] = ()  # whose documents stay in the shards; of those, only the ones that are gone since
    #: That could not be read, and can be now; or with news whose embargo has ended, or that counts again.
    again: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return any(self)


class Work(NamedTuple):
    """Hold the files that a run is to read next, and those whose documents it removes from its output."""

    growth: Growth
    files: Sequence[ListedFile]
    removed: Sequence[KnownFile]  # whose documents are removed from the shards
    gone: Sequence[str]  # all files that are gone
    #: What could not be opened, listed or looked at before, and can be now, or is gone: no rejection says so any more.
    unblocked: Sequence[str]
    wake: float | None  # the earliest time at which another file is to be read again, see `Rejection`; None: never


class _Before:
    """Hold what a run knows of its files after its generations (its starts and continuations).

    `known` has the files whose documents are in the output, and `due` those of them that are to be read again, with the
    time (see `Rejection`); of those in `silent`, no rejection says so any more, as they had gone. `blocked` has what
    could not be listed or looked at, with such a time, or None. `again` has files to read again for versions of news in
    them, by the names that they have in the output.
    """

    def __init__(self, generations: Iterable[Generation]) -> None:
        self.known: dict[str, KnownFile] = {}
        self.due: dict[str, float] = {}
        self.silent: set[str] = set()
        self.blocked: dict[str, float | None] = {}
        self.again: set[str] = set()
        for generation in generations:
            self._begin(generation.entries)
            blocked = set[str]()
            for item in generation.known():
                if item.file.is_blocked:
                    self.blocked[item.file.name] = None
                    blocked.add(item.file.name)
                else:
                    self._add(item)
            for source, when in generation.due().items():
                if source in blocked:
                    self.blocked[source] = when
                elif name := next((above for above in _paths_above(source) if above in self.known), ""):
                    self.due[name] = min(when, self.due.get(name, when))
            self.again.update(generation.again(self.known))

    def _begin(self, entries: Sequence[Line]) -> None:
        """Forget what the first line of a generation says to be removed from the output."""
        first = entries[0] if entries and "grown" in entries[0] else {}
        for name in first.get("unblocked", ()):
            if name in self.blocked:
                del self.blocked[name]
            else:
                self.silent.add(name)
        removed = {*first.get("removed", ())}
        for name in [name for name, item in self.known.items() if item.written_as in removed] if removed else ():
            del self.known[name]
            self.due.pop(name, None)
        self.again -= removed

    def _add(self, item: KnownFile) -> None:
        name, was = item.file.name, item.file.was
        due = self.due.pop(was or name, None)
        self.known.pop(was, None)
        self.known[name] = item
        self.silent.discard(name)
        if item.file.source >= 0:
            self.again.discard(item.written_as)
        elif due is not None:
            self.due[name] = due


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
    before = _Before(generations)
    now = time.time()
    found = _compare(sources, listed, before, {item.file.name for item in cut}, now)
    growth = found.growth
    to_read = {*growth.new, *growth.changed, *growth.again}
    told = {name for entry in last.entries for name in entry.get("gone", ())}
    since = growth._replace(gone=tuple(name for name in growth.gone if name not in told))
    removed = [*found.removed, *(before.known[name] for name in growth.changed if name in before.known), *cut]
    removed += [before.known[name] for name in growth.again]
    is_removed = is_within({item.written_as for item in removed})
    # What has the same name in the output, documents of other files and rejections, is removed with these.
    renamed, removes = {was: name for name, was in growth.renamed}, {*removed}
    for name, item in before.known.items():
        if is_removed(item.written_as) and item not in removes and name not in growth.gone:
            removed.append(item)
            to_read.update({renamed.get(name, name)} & listed.keys())
    to_read.update(name for name, (_, state) in listed.items() if state.is_blocked and is_removed(name))
    files = [*(numbered_files(sources, to_read) or ()), *(item for item in found.kept if item.name not in to_read)]
    done = to_read | {*growth.gone}
    # What is due, but cannot be read, is tried again now and then.
    times = {name: 0.0 for name, item in before.known.items() if item.written_as in before.again} | before.due
    waiting = [when if when > now else 0.0 for name, when in times.items() if name not in done]
    waiting += [when for name, when in before.blocked.items() if name not in found.unblocked and when is not None]
    return Work(since, files, removed, growth.gone, found.unblocked, min(waiting, default=None))


def missing_sums(sources: Sequence[Source], generation: Generation) -> dict[str, str]:
    """Return the checksums of files that were read to their ends, but whose checksums are missing in the journal.

    `generation` has the files and the journal's lines. By its checksum, a file is recognised after it was renamed.
    Files that have changed since are left out.
    """
    listed = {state.name: (source, state) for source, state in list_files(sources) or ()}
    lacking = (item.file for item in generation.known() if not item.checksum and not item.file.is_blocked)
    names = {file.name for file in lacking if file.source >= 0 and _is_same(file, listed)}
    return {name: sum_ for name, sum_ in _sums_of(sources, names).items() if sum_}


def _is_same(file: ListedFile, listed: Mapping[str, tuple[Source, FileState]]) -> bool:
    found = listed.get(file.name)
    return found is not None and found[0].name == file.of and found[1][1:] == (file.size, file.state)


class _Found(NamedTuple):
    growth: Growth
    kept: list[ListedFile]  # known files that have another name or time, but the same content
    removed: list[KnownFile]  # in whose place there are renamed files, and those that were read in part and renamed
    unblocked: list[str]  # see `Work`


def _compare(
    sources: Sequence[Source],
    listed: Mapping[str, tuple[Source, FileState]],
    before: _Before,
    cut: Set[str],
    now: float,
) -> _Found:
    """Return what has changed since the generations before.

    `listed` has today's files by name, `cut` the names of files of which only a part was read, and `now` is the time.
    """
    new, changed, again, kept = list[str](), list[str](), list[str](), list[ListedFile]()
    renamed, removed = list[tuple[str, str]](), list[KnownFile]()
    known, blocked = before.known, {name for name, (_, state) in listed.items() if state.is_blocked}
    unblocked = {*before.blocked} - blocked
    # What is in a folder that cannot be listed may have gone, or not.
    lost = {name: item for name, item in known.items() if name not in listed or name in blocked}
    hidden = {name for name in lost if name in blocked or _is_hidden(name, blocked)} if blocked else set()
    due = {name for name, when in before.due.items() if when <= now and name in known}
    due.update(name for name, item in known.items() if item.written_as in before.again)
    # A file may have the name now that the documents of a renamed one have in the output.
    due.update(name for name, item in known.items() if item.written_as != name and item.written_as in listed)
    by_sum = defaultdict[tuple[int, str], list[str]](list)
    # What has been renamed is read again if it is due, or its content is not known.
    is_read = {name: name in due or not item.checksum for name, item in lost.items()}
    by_state = {item.file[_SIZE : _SIZE + 2]: name for name, item in lost.items()}
    for name, lost_file in lost.items():
        by_sum[lost_file.file.size, lost_file.checksum].append(name)
    sums = _sums_of(sources, _names_to_sum(listed, known, due, {size for size, sum_ in by_sum if sum_ and size > 0}))
    for name, (_, state) in listed.items():
        item = known.get(name)
        is_same = item is not None and state[1:] == (item.file.size, item.file.state)
        if state.is_blocked:
            is_told = name in before.blocked or (before.due.get(name) == 0 and name not in before.silent)
            new += [] if is_told else [name]
            continue
        if is_same and name not in due:
            continue
        sum_ = sums.get(name)
        if is_same and sum_ is None and name not in unblocked | before.silent:
            continue  # it still cannot be read, and a rejection says so
        if item is not None and sum_ and item.checksum == sum_ and item.file.size == state.size and name not in due:
            kept.append(_kept(item, state, ""))
            continue
        was = next(iter(by_sum.get((state.size, sum_ or ""), ())), "") if sum_ else ""
        if not was and not is_same and (was := by_state.get(state[1:], "")):
            was = was if is_read[was] or sum_ is None else ""
        if was:
            by_sum[lost[was].file.size, lost[was].checksum].remove(was)
            by_state.pop(lost[was].file[_SIZE : _SIZE + 2], None)
        if was and sum_ and not is_read[was]:
            kept.append(_kept(known[was], state, was))
            renamed.append((name, was))
            removed += [item] if item is not None else []
            continue
        removed += [known[was]] if was else []
        (again if is_same else changed if item is not None or name in cut else new).append(name)
    gone = {*lost} - hidden - {was for _, was in renamed} - {item.file.name for item in removed}
    unblocked.update(name for name in gone - before.silent if before.due.get(name) == 0)
    growth = Growth(tuple(new), tuple(changed), tuple(renamed), tuple(sorted(gone)), tuple(again))
    return _Found(growth, kept, removed, sorted(unblocked))


_SIZE = ListedFile._fields.index("size")  # the time is next to it


def _is_hidden(name: str, blocked: Set[str]) -> bool:
    """Return whether a file is in a folder that cannot be listed."""
    is_in_root = "." in blocked and not name.startswith(("/", "../"))
    return is_in_root or any(above in blocked for above in _paths_above(name))


def _names_to_sum(
    listed: Mapping[str, tuple[Source, FileState]], known: Mapping[str, KnownFile], due: Set[str], sizes: Set[int]
) -> set[str]:
    """Return the names of files whose content must be looked at to tell what has become of them.

    These are files that could not be read; those whose time has changed; and those that are new or have changed, and
    have the size of a file that is not there, given by `sizes`.
    """
    names = set[str]()
    for name, (_, state) in listed.items():
        item = known.get(name)
        if state.is_blocked:
            continue
        if item is None or state[1:] != (item.file.size, item.file.state):
            is_wanted = state.size in sizes or (item is not None and item.file.size == state.size and item.checksum)
            names.update([name] if is_wanted else [])
        elif name in due:
            names.add(name)
    return names


def _kept(item: KnownFile, state: FileState, was: str) -> ListedFile:
    """Return the entry of a file that need not be read again, under its present name and with its present time.

    `was` is its former name, "" if it was not renamed.
    """
    file = ListedFile(item.file.of, -1, -1, *state)
    return file._replace(written_as=item.written_as, shards=item.shards, checksum=item.checksum, was=was)


def _sums_of(sources: Iterable[Source], names: Set[str]) -> dict[str, str]:
    """Return the checksums of those files that can be read to their ends; "" where the checksum is not known."""
    sums: dict[str, str] = {}
    for source in sources if names else ():
        for name, opened in source.openers(names):
            try:
                with closing(opened()) as stream:
                    sums[name] = _read_through(stream)
            except UnreadableError:
                pass
    return sums


def _read_through(stream: ByteStream) -> str:
    stream.sum_up()
    while stream.read(_AT_ONCE):
        pass
    return stream.checksum()


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
