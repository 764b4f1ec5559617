"""Find which files a run has read, and which documents in its output are stale, because a file was read again.

A run makes one or more passes over its inputs, called generations. Each has a list of its files, in the order of
reading. When a generation has read a file to its end, documents that earlier generations have read from the file become
stale. If a generation was abandoned within a file, the documents that it has read from this file are stale, too.
"""

import json
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from textcat.base import disk
from textcat.base.errors import TextcatError
from textcat.base.paths import paths_above
from textcat.base.surrogates import escape_undecodable
from textcat.reading import START_OVER, Checkpoint
from textcat.runs.records import Log, Reading, ReplayedGeneration, StaleFile, read_log, write_whole

FILES = "_files-{:05}.jsonl"  # name of the list of files of a generation
_PATH = 4  # index in a checkpoint's position from which numbers of files in folders follow


class ListedFile(NamedTuple):
    """An input file in the list of a generation (a pass of a run over its inputs), with its source, size and time."""

    of: str  # the name of the source, which is the file itself or a folder
    source: int  # number of the source in the generation; -1: the file is not read, because its content was read before
    number: int  # number of the file in the source; -1: the file is the source
    name: str
    size: int
    state: int | str | None  # its time, or another value that changes with the file; None: it cannot be read
    was: str = ""  # its former name, if it was renamed since the last generation

    @property
    def is_blocked(self) -> bool:
        """Return whether the file cannot be read: see `FileState.is_blocked`."""
        return self.state is None

    @property
    def content(self) -> tuple[int, int | str | None]:
        """Return the size and the time of the file; both together change when its content changes."""
        return self.size, self.state

    def as_already_read(self, of: str, was: str = "") -> "ListedFile":
        """Return the file, marked as not to be read because an earlier pass over the inputs has read its content.

        `of` is the name of the source from which it was read; `was` is its former name, if it was renamed since.
        """
        return self._replace(of=of, source=-1, number=-1, was=was)

    def is_before(self, end: Checkpoint) -> bool:
        """Return whether the file was read to its end when reading had reached the checkpoint `end`."""
        if self.source != end[0]:
            return self.source < end[0]
        return len(end) > _PATH and 0 <= self.number < end[_PATH]

    def is_cut(self, end: Checkpoint) -> bool:
        """Return whether the checkpoint `end` lies inside the file, so that only a part of it was read."""
        if self.source != end[0]:
            return False
        if self.number < 0:
            return any(end[1:])
        return len(end) > _PATH and self.number == end[_PATH] and any(end[1:3] + end[_PATH + 1 :])


class KnownFile(NamedTuple):
    """A file that was read to its end: which pass over the inputs read it, and which shards may have its documents."""

    file: ListedFile  # with its name, size and time in the latest list
    reading: Reading
    shards: tuple[str, ...]  # shards that may have its documents
    checksum: str = ""  # "": unknown
    due: float | None = None  # when to read it again, even if it has not changed: see `Rejection`
    needs: Set[str] = frozenset()  # modules that were not installed: read it again when one of them is

    @property
    def stale(self) -> StaleFile:
        """Return the file as a `StaleFile`, which marks its documents in the output for removal."""
        return StaleFile(self.reading, self.shards)


class Blocked(NamedTuple):
    """A file or folder that could not be opened, listed or examined."""

    reading: Reading
    due: float | None  # as in `KnownFile`
    size: int  # stands for the reason, see `FileState`


class RunFiles:
    """The files that the generations (passes over the inputs) of a run have read, replayed from its journal.

    A generation lists the input files once, and reads those that are new or have changed.

    - `known`: files that were read to their ends, by their present names, deleted files included.
    - `again`: files, each as a `Reading`, to read again, because newer versions of their news items are gone.
    - `blocked`: files and folders that could not be opened, listed or examined.
    - `silent`: files in `known` that were missing later, and whose rejections as unreadable were removed.
    - `stale` and `unblocked`: the lists that the next record `Settled` in the journal will have.
    - `cut`: the name of the file that the last generation has read only in part.
    - `left`: the files that the last generation has not read to their ends.
    """

    def __init__(self, log: Log, *, is_read: bool = False):
        """Replay a run from its journal; `is_read`: its last pass over the inputs has read all its files."""
        self.known: dict[str, KnownFile] = {}
        self.blocked: dict[str, Blocked] = {}
        self.silent: set[str] = set()
        self.again: set[Reading] = set()
        self.stale: list[StaleFile] = []
        self.unblocked: list[Reading] = []
        self.cut: list[str] = []
        self.left: Sequence[ListedFile] = ()
        self.gone: Sequence[str] = ()  # missing files, as the last generation has recorded them
        self.unread: Sequence[str] = ()  # files to read again that could not be read then
        for generation in log.generations:
            assert generation.files is not None
            self._files = read_files(log.folder, generation.number, generation.files)
            self._begin(generation)
            self._replay(
                generation,
                is_read=generation.is_finished or (is_read and generation is log.generation),
                is_last=generation is log.generation,
            )

    @property
    def files(self) -> Sequence[ListedFile]:
        """The files that the last pass over the inputs has listed."""
        return self._files

    @property
    def lost(self) -> set[Reading]:
        """Files, each as a `Reading`, that were missing, or due but unreadable, when the last pass began."""
        return {self.known[name].reading for name in (*self.gone, *self.unread) if name in self.known}

    def add_sums(self, sums: Mapping[str, str]) -> None:
        """Add checksums, by name, of files that the last pass over the inputs has read."""
        for name, sum_ in sums.items():
            self.known[name] = self.known[name]._replace(checksum=sum_)

    def _begin(self, generation: ReplayedGeneration) -> None:
        """Apply the changes recorded at the beginning of a pass: renamed files, and files that are readable again."""
        self.gone, self.unread = (generation.begun.gone, generation.begun.unread) if generation.begun else ((), ())
        for name in generation.begun.unblocked if generation.begun else ():
            if name in self.blocked:
                self.unblocked.append(self.blocked.pop(name).reading)
            elif name in self.known:
                self.silent.add(name)
                self.unblocked.append(self.known[name].reading)
        kept = [(file, self.known.pop(file.was or file.name)) for file in self._files if file.source < 0]
        for file, item in kept:
            if file.name in self.known:
                self.stale.append(self.known[file.name].stale)
            self.known[file.name] = item._replace(file=file)
            self.silent.discard(file.name)

    def _replay(self, generation: ReplayedGeneration, *, is_read: bool, is_last: bool) -> None:
        read = [file for file in self._files if file.source >= 0]
        end = generation.shards[-1].checkpoint if generation.shards else (0, 0)
        n = len(read) if is_read else _n_before(read, end)
        shards, due, needs = _shards_of(generation, read), _due_times(generation), _needs(generation)
        for i, file in enumerate(read[:n]):
            reading = Reading(generation.number, file.name)
            if file.is_blocked:
                self.blocked[file.name] = Blocked(reading, due.get(file.name), file.size)
                continue
            for former in dict.fromkeys((file.name, file.was)):
                if former in self.known:
                    self.stale.append(self.known.pop(former).stale)
            sum_ = generation.sums.get(file.name, "")
            again = due.get(file.name), frozenset(needs.get(file.name, ()))
            self.known[file.name] = KnownFile(file, reading, tuple(shards[i]), sum_, *again)
            self.silent.discard(file.name)
        cut = [file for file in read[n : n + 1] if file.is_cut(end)]
        if is_last:
            self.cut, self.left = [file.name for file in cut], read[n:]
        else:
            self.stale += [StaleFile(Reading(generation.number, file.name), tuple(shards[n])) for file in cut]
        if generation.settled is not None:
            self.stale, self.unblocked = [], []
            self.again.update(generation.settled.again)

    def readings(self, sources: Iterable[Reading]) -> Iterator[Reading]:
        """Yield for each source the `Reading` of the file that equals or contains it, such as a zip.

        `sources` are named as in the output; those of no file in `known` are skipped.
        """
        readings = {
            (item.reading.generation, escape_undecodable(item.reading.name)): item.reading
            for item in (self.known.values() if sources else ())
        }
        for generation, source in sources:
            candidates = ((generation, above) for above in paths_above(source))
            yield from [readings[key] for key in candidates if key in readings][:1]


def tagged_files(folder: Path) -> dict[str, KnownFile]:
    """Return the files that the run in a folder has read, keyed by their names in its output.

    Return {} if there is no run, or if it read inputs whose files cannot be listed.
    """
    log = read_log(folder, START_OVER)
    if log is None or log.header.files is None or not has_files(log):
        return {}
    return {escape_undecodable(item.reading.name): item for item in RunFiles(log).known.values()}


def checksum_of_source(files: Mapping[str, KnownFile], source: str) -> str:
    """Return the checksum of the file that equals or contains a source; "" if it is unknown."""
    return next((files[above].checksum for above in paths_above(source) if above in files), "")


def _n_before(files: Sequence[ListedFile], end: Checkpoint) -> int:
    """Return the number of files that were read to their ends when reading had reached the checkpoint `end`."""
    return bisect_left(files, True, key=lambda file: not file.is_before(end))


def _shards_of(generation: ReplayedGeneration, read: Sequence[ListedFile]) -> Mapping[int, list[str]]:
    """Return for each file, by its position in `read`, the shards of one pass that may have its documents."""
    shards, begin = defaultdict[int, list[str]](list), 0
    for shard in generation.shards:
        n = _n_before(read, shard.checkpoint)
        n_in = n + (n < len(read) and read[n].is_cut(shard.checkpoint))
        for number in range(begin, n_in) if shard.name else ():
            shards[number].append(shard.name)
        begin = n
    return shards


def _due_times(generation: ReplayedGeneration) -> dict[str, float]:
    """Return the times to read sources of one pass again; for a container, the earliest time of a source in it."""
    due: dict[str, float] = {}
    for shard in generation.shards:
        for source, when in shard.due.items():
            for above in paths_above(source):
                due[above] = min(when, due.get(above, when))
    return due


def _needs(generation: ReplayedGeneration) -> Mapping[str, Set[str]]:
    """Return the missing modules that sources of one pass need, and those that sources in a container need."""
    needs = defaultdict[str, set[str]](set)
    for shard in generation.shards:
        for source, modules in shard.needs.items():
            for above in paths_above(source):
                needs[above].update(modules)
    return needs


def write_files(folder: Path, generation: int, files: Iterable[ListedFile]) -> str:
    """Write the list of files of a generation (a pass over the inputs), given its number; return its checksum."""
    listing = folder / FILES.format(generation)
    write_whole(listing, (json.dumps(file).encode() + b"\n" for file in files))
    return disk.sha256_of_file(listing)


def has_files(log: Log) -> bool:
    """Return whether a run's folder has all its lists of input files, with the checksums in the journal."""
    return all(
        (path := log.folder / FILES.format(generation.number)).is_file()
        and disk.sha256_of_file(path) == generation.files
        for generation in log.generations
    )


@lru_cache(maxsize=1 << 16)
def read_files(folder: Path, generation: int, sha256: str) -> Sequence[ListedFile]:
    """Read the list of files of a generation (a pass over the inputs), given its number; cache it by its checksum.

    A TextcatError is raised if there is no list in the folder.
    """
    try:
        file = open(folder / FILES.format(generation), "rb")  # noqa: SIM115
    except FileNotFoundError:
        raise TextcatError(f"{folder / FILES.format(generation)} is missing: restore it, or {START_OVER}.") from None
    with file:
        return [ListedFile(*_parsed(line)) for line in file]


def _parsed(line: bytes) -> list[Any]:
    try:
        row: list[Any] = orjson.loads(line)
    except ValueError:  # the name may not be valid UTF-8
        row = json.loads(line)
    return row


def is_within(names: Collection[str]) -> Callable[[str], bool]:
    """Return a function that returns whether a source is one of the paths `names`, or inside one of them."""
    return lambda source: any(above in names for above in paths_above(source))
