"""Find the files that a run must read next: files that are new, have changed, or could not be read before."""

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import closing
from typing import Any, NamedTuple

from textcat.base.disk import is_installed
from textcat.base.paths import paths_above
from textcat.reading import ByteStream, InputSettings, Source, UnreadableError, is_read_alike
from textcat.runs.files import KnownFile, ListedFile, RunFiles
from textcat.runs.records import Log

_AT_ONCE = 1 << 20  # size of the blocks that are hashed, in bytes


class Growth(NamedTuple):
    """Names of input files that are new, changed, renamed or missing since the last pass, or are read again."""

    new: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()  # each with its former name
    # missing files, whose documents stay in the shards: only those that were there at the last run
    gone: tuple[str, ...] = ()
    #: Files that became readable; and files with news whose embargo has ended, or that counts again.
    again: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return any(self)


class NextPass(NamedTuple):
    """What a run must read next: its files, changes since the last time, and when to look again."""

    growth: Growth
    files: Sequence[ListedFile]  # including files that are not read because only their name or time has changed
    gone: Sequence[str]  # all missing files
    #: Files and folders that could not be opened or listed before, and can be now or are gone: drop their rejections.
    unblocked: Sequence[str]
    unread: Sequence[str]  # files that are to be read again because of older news in them, and cannot be read now
    wake: float | None = None  # the earliest time to read another file again, see `Rejection`; None: never


def list_files(sources: Sequence[Source]) -> list[ListedFile] | None:
    """Return the files of all sources with their sizes and times, in the order of reading.

    None is returned if a source cannot list its files: a pipe, or a folder with very many files.
    """
    listed: list[ListedFile] = []
    for i, source in enumerate(sources):
        states = source.file_states()
        if states is None:
            return None
        is_folder = source.kind == "folder"
        listed += (ListedFile(source.name, i, n if is_folder else -1, *state) for n, state in enumerate(states))
    return listed


def restricted_sources(sources: Sequence[Source], files: Sequence[ListedFile]) -> Sequence[Source]:
    """Return the sources, restricted to those of the `files` that must be read (with a `source` of 0 or more).

    These files keep their numbers in `files`.
    """
    by_name = {source.name: source for source in sources}
    numbers = defaultdict[tuple[int, str], dict[str, int]](dict)
    for file in files:
        if file.source >= 0:
            numbers[file.source, file.of][file.name] = file.number
    parts = {number: by_name[of].restricted(named) for (number, of), named in numbers.items()}
    return [parts.get(number) or _without_files(sources[0]) for number in range(max(parts, default=-1) + 1)]


def _without_files(source: Source) -> Source:
    """Return a source without files, to take the place of one that has no file to read."""
    guess = source.guess._replace(format="folder")
    return Source("", "folder", guess, 0, None, 0, changed=lambda: None, states=())


def can_continue(listed: Mapping[str, ListedFile], run: RunFiles) -> bool:
    """Return whether the last generation (pass over the inputs) can continue where it was interrupted.

    It can if files of its list are left to read, and none of these has changed. A file has changed if it is missing
    now, or if its size, time or source is not as in that list. `listed` has the present files by name.
    """
    return bool(run.left) and all(_is_same(file, listed) for file in run.left)


def outdated(log: Log, run: RunFiles, facts: Mapping[str, Any]) -> set[str]:
    """Return the names of files that may have documents in shards written with other settings than `facts`."""
    return {name for name, item in run.known.items() if any(log.are_others(shard, facts) for shard in item.shards)}


def find_growth(
    sources: Sequence[Source],
    listed: Mapping[str, ListedFile],
    run: RunFiles,
    settings: InputSettings,
    again: Set[str] = frozenset(),
) -> NextPass:
    """Return the files that a run must read next; `listed` has the present files by name.

    The last generation (pass over the inputs) must have ended, or be unable to continue (see `can_continue`). The files
    named in `again` are read again even if they have not changed; renamed files are, if their new name decides
    otherwise how they are read by `settings`.
    """
    work = _compare(sources, listed, run, settings, _names_due(listed, run, now := time.time()), again)
    new, changed, _, gone, read_again = work.growth
    since = work.growth._replace(gone=tuple(name for name in gone if name not in run.gone))
    done = {*new, *changed, *gone, *read_again}
    # Files that are due but cannot be read are tried again at intervals.
    waiting = [
        item.due if item.due is not None and item.due > now else 0.0
        for name, item in run.known.items()
        if name not in done and (item.due is not None or item.reading in run.again)
    ]
    waiting += [item.due for name, item in run.blocked.items() if name not in work.unblocked and item.due is not None]
    return work._replace(growth=since, wake=min(waiting, default=None))


def missing_sums(
    sources: Sequence[Source], listed: Mapping[str, ListedFile], run: RunFiles, settings: InputSettings
) -> dict[str, str]:
    """Compute checksums, by name, of files that the last pass over the inputs has read, but not checksummed.

    Checksums identify files that are renamed later. Files that have changed since are left out, and files that are
    skipped. `listed` has the present files by name.
    """
    lacking = [file for file in run.files if file.source >= 0 and _lacks_sum(run.known.get(file.name), file)]
    names = {file.name for file in lacking if _is_same(file, listed) and not settings.for_file(file.name).skip}
    return {name: sum_ for name, sum_ in _checksums(sources, names) if sum_}


def _lacks_sum(item: KnownFile | None, file: ListedFile) -> bool:
    return item is not None and item.file is file and not item.checksum


def _is_same(file: ListedFile, listed: Mapping[str, ListedFile]) -> bool:
    today = listed.get(file.name)
    return today is not None and today.of == file.of and today.content == file.content


def _compare(
    sources: Sequence[Source],
    listed: Mapping[str, ListedFile],
    run: RunFiles,
    settings: InputSettings,
    waiting: Set[str],
    outdated: Set[str],
) -> NextPass:
    """Return how files have changed since they were last read, and what to read; `listed` has the files by name.

    Files named in `waiting` or `outdated` are read again even if they have not changed.
    """
    due = waiting | outdated
    new, changed, again, kept = list[str](), list[str](), list[str](), list[ListedFile]()
    renamed, was_of = list[tuple[str, str]](), dict[str, str]()  # `was_of`: of renamed files that are read again
    known, blocked = run.known, {name for name, file in listed.items() if file.is_blocked}
    unblocked = {*run.blocked} - blocked
    # Files in a folder that cannot be listed may or may not exist.
    lost = {name: item for name, item in known.items() if name not in listed or name in blocked}
    hidden = {name for name in lost if name in blocked or _is_hidden(name, blocked)} if blocked else set()
    unread = [*hidden]
    former = _FormerNames(lost, due)
    sums = dict(_checksums(sources, _names_to_checksum(listed, known, due, former.sizes)))
    for name, file in listed.items():
        item, sum_ = known.get(name), sums.get(name)
        if file.is_blocked and name in run.blocked and run.blocked[name].size != file.size:  # for another reason now
            unblocked.add(name)
            again.append(name)
            continue
        if file.is_blocked:
            is_reported = name in run.blocked or (item is not None and item.due == 0 and name not in run.silent)
            new += [] if is_reported else [name]
            continue
        is_same = item is not None and file.content == item.file.content
        # A file that still cannot be read is not tried again: its rejection stays.
        if is_same and (name not in due or (sum_ is None and name not in unblocked | run.silent)):
            unread += [name] if name in due else []
            continue
        if is_same and name not in waiting:  # it was read under this name before, so no other file was renamed to it
            again.append(name)
            continue
        if item is not None and sum_ and item.checksum == sum_ and item.file.size == file.size and name not in due:
            kept.append(file.as_already_read(item.file.of))
            continue
        was = former.take(file, sum_, by_state=not is_same)
        if was and sum_ and not former.is_read[was] and is_read_alike(name, known[was].reading.name, settings):
            kept.append(file.as_already_read(known[was].file.of, was))
            renamed.append((name, was))
            continue
        was_of |= {name: was} if was else {}
        (again if is_same else changed if item is not None or name in run.cut else new).append(name)
    gone = {*lost} - hidden - {was for _, was in renamed} - {*was_of.values()}
    are_reported = (name for name in gone - run.silent if known[name].due == 0)
    growth = Growth(tuple(new), tuple(changed), tuple(renamed), tuple(sorted(gone)), tuple(again))
    unread = sorted(name for name in unread if known[name].reading in run.again)
    to_read = {*new, *changed, *again}
    read = (file._replace(was=was_of.get(name, "")) for name, file in listed.items() if name in to_read)
    return NextPass(growth, [*read, *kept], growth.gone, sorted(unblocked.union(are_reported)), unread)


def _names_due(listed: Mapping[str, ListedFile], run: RunFiles, now: float) -> set[str]:
    """Return the names of files to read again at the time `now`, whether or not they have changed."""
    installed = {module for item in run.known.values() for module in item.needs if is_installed(module)}
    return {
        name
        for name, item in run.known.items()
        if (item.due is not None and item.due <= now)
        or not installed.isdisjoint(item.needs)
        or item.reading in run.again
        # Another file may now have the name under which the output has the documents of a renamed file.
        or (item.reading.name != name and item.reading.name in listed)
    }


class _FormerNames:
    """Recognise renamed files: find the former name of a file among missing files; each is used once."""

    def __init__(self, lost: Mapping[str, KnownFile], due: Set[str]):
        self._lost, self._by_sum = lost, defaultdict[tuple[int, str], list[str]](list)
        for name, item in lost.items():
            self._by_sum[item.file.size, item.checksum].append(name)
        self._by_state = defaultdict[tuple[int, int | str | None], list[str]](list)
        for name, item in lost.items():
            self._by_state[item.file.content].append(name)
        #: Whether each is read again under its new name, because it is due, or has no checksum.
        self.is_read = {name: name in due or not item.checksum for name, item in lost.items()}

    @property
    def sizes(self) -> set[int]:
        """The sizes of those missing files whose checksums are known, except 0."""
        return {size for size, sum_ in self._by_sum if sum_ and size > 0}

    def take(self, file: ListedFile, sum_: str | None, *, by_state: bool) -> str:
        """Return the former name of a file ("": none), and forget it, so that no other file gets it.

        The file is recognised by its checksum or, if `by_state` is set, by its size and time.
        """
        name = next(iter(self._by_sum.get((file.size, sum_), ())), "") if sum_ else ""
        if not name and by_state:
            alike = self._by_state.get(file.content, ())
            name = next((former for former in alike if self.is_read[former] or sum_ is None), "")
        if name:
            item = self._lost[name]
            self._by_sum[item.file.size, item.checksum].remove(name)
            self._by_state[item.file.content].remove(name)
        return name


def _is_hidden(name: str, blocked: Set[str]) -> bool:
    """Return whether a file is in a folder that cannot be opened or listed: `blocked` has the names of such folders."""
    is_in_root = "." in blocked and not name.startswith(("/", "../"))
    return is_in_root or any(above in blocked for above in paths_above(name))


def _names_to_checksum(
    listed: Mapping[str, ListedFile], known: Mapping[str, KnownFile], due: Set[str], sizes: Set[int]
) -> set[str]:
    """Return the names of files to checksum, to tell whether they are new, changed or renamed.

    These are files in `due`, files whose time has changed but not their size, and new or changed files with the size of
    a missing file (in `sizes`).
    """
    names = set[str]()
    for name, file in listed.items():
        item = known.get(name)
        if file.is_blocked:
            continue
        if item is None or file.content != item.file.content:
            is_wanted = file.size in sizes or (item is not None and item.file.size == file.size and item.checksum)
            names.update([name] if is_wanted else [])
        elif name in due:
            names.add(name)
    return names


def _checksums(sources: Iterable[Source], names: Set[str]) -> Iterator[tuple[str, str]]:
    """Read the named files of sources; yield the name and checksum ("" if unknown) of each that is readable."""
    for source in sources if names else ():
        for name, opened in source.openers(names):
            try:
                with closing(opened()) as stream:
                    sum_ = _read_through(stream)
            except UnreadableError:
                continue
            yield name, sum_


def readable(sources: Iterable[Source], names: Set[str]) -> Iterator[str]:
    """Read the named files of sources, and yield the names of those that can be read to their ends."""
    return (name for name, _ in _checksums(sources, names))


def _read_through(stream: ByteStream) -> str:
    stream.sum_up()
    while stream.read(_AT_ONCE):
        pass
    return stream.checksum()
