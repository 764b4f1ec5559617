"""Choose the files to read and write back: files that may hold news, and that are new or have changed."""

import os
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from textcat.base.errors import TextcatError
from textcat.reading import (
    ARCHIVES,
    ContainerEntry,
    FileState,
    InputSettings,
    Source,
    UnreadableError,
    format_by_name,
    format_of,
    is_url,
    open_file,
    path_inside,
    unpacked_stream,
)
from textcat.runs.inputs import check_output_apart
from textcat.tagging.edit_news import EDITORS
from textcat.tagging.file_copy import state_of
from textcat.tagging.news_folder import NewsFolder

# endings of names of files that may hold news
_MAY_BE_NEWS = frozenset({"", "json", "jsonl", "rcv1", *EDITORS})


def check_sources(sources: Iterable[Source], folder: Path) -> None:
    """Raise TextcatError if a source is a pipe or a URL, or overlaps with the folder to write to."""
    for source in sources:
        if source.kind == "pipe" or is_url(source.name):
            what = "Standard input" if source.name == "-" else source.name
            raise TextcatError(f"{what} cannot be written back: name files or folders on this machine.")
    check_output_apart(sources, folder)


def refuse_archives(sources: Iterable[Source], settings: InputSettings) -> None:
    """Raise TextcatError if sources, or files in them, are zips or tars."""
    archives = [name for name in _file_names(sources) if _is_archive(name, settings.for_file(name))]
    if archives:
        are = "is a zip or tar" if len(archives) == 1 else f"and {len(archives) - 1:,} other files are zips or tars"
        remedy = "unpack archives first, and name the folder of their files"
        raise TextcatError(f"{archives[0]} {are}, into which tags are not written back: {remedy}.")


def _file_names(sources: Iterable[Source]) -> Iterator[str]:
    """Yield the names of the files of all sources that can be read."""
    for source in sources:
        states = source.file_states()
        if states is not None:
            yield from (state.name for state in states if not state.is_blocked)
        else:
            above = "" if source.name == "." else source.name
            yield from (path_inside(above, entry.name) for entry in source.entries() if entry.fault is None)


def _is_archive(name: str, settings: InputSettings) -> bool:
    form = format_by_name(name, settings).format
    # archives without such an ending are recognised by their content
    if form or settings.skip or "." in os.path.basename(name):
        return form in ARCHIVES and not settings.skip
    try:
        with closing(open_file(name)) as stored:
            return format_of(unpacked_stream(stored, name), name, settings) in ARCHIVES
    except UnreadableError:
        return False  # the reason is found when it is read


class NewsFiles:
    """List the files to tag and write back, and count the other files.

    Attributes
    ----------
    states : dict of str to FileState
        The size and time of each listed file that is being read; `NewsWriter` removes the files that it has written.
    before : int
        Number of files that an earlier run wrote.
    formats : Counter of str
        Number of files that are not read because their format has no place for tags, by format.
    to_copy : deque of (FileState, str), optional
        Files that are not read but copied unchanged, each with its format; they are removed from the queue as they are
        copied. None: they are not copied, only counted in `formats`.
    """

    def __init__(
        self, sources: Sequence[Source], settings: InputSettings, written: NewsFolder, *, copies_rest: bool = False
    ) -> None:
        self._sources, self._settings, self._written = sources, settings, written
        self.states: dict[str, FileState] = {}
        self.to_copy: deque[tuple[FileState, str]] | None = deque() if copies_rest else None
        self.before, self.formats = 0, Counter[str]()

    def sources(self) -> list[Source]:
        """Return the sources to read. Of a folder, the files that are not to be read are skipped when it is listed."""
        chosen = []
        for source in self._sources:
            if source.kind == "folder":
                chosen.append(source._replace(entries=partial(self._entries, source), size=None))
            elif self._is_wanted(source.name):
                chosen.append(source)
        return chosen

    def _entries(self, source: Source) -> Iterator[ContainerEntry]:
        above = "" if source.name == "." else source.name
        for entry in source.entries():
            if entry.fault is not None or self._is_wanted(path_inside(above, entry.name)):
                yield entry

    def _is_wanted(self, name: str) -> bool:
        settings = self._settings.for_file(name)
        form = format_by_name(name, settings).format
        if self.to_copy is None and form not in _MAY_BE_NEWS:
            self.formats[form] += 1
            return False
        if self.to_copy is not None and settings.skip:
            return False
        try:
            state = state_of(name)
        except OSError:
            return True  # the reason is found when it is read
        if self._written.has(state):
            self.before += 1
            return False
        if self.to_copy is not None and (form not in _MAY_BE_NEWS or _is_archive(name, settings)):
            self.to_copy.append((state, form or "an archive"))
            return False
        self.states[name] = state
        return True
