"""Inputs: files, folders, URLs and pipes."""

import posixpath
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from textcat.base.surrogates import decode_surrogates
from textcat.reading.changes import Change, FileState
from textcat.reading.containers import ContainerEntry, Neighbours
from textcat.reading.streams import ByteStream


class FormatGuess(NamedTuple):
    """A format, and how it was recognised: by "name", "content", "option" or "default"; ("", "") if unknown."""

    format: str
    by: str


class Source(NamedTuple):
    """An input to read records from: a file, a folder, a URL or a pipe."""

    name: str  # its path, its URL, or "-" for standard input
    kind: str  # "file", "folder" or "pipe"
    guess: FormatGuess  # its format; an archive has the format "zip" or "tar", a folder has "folder"
    size: int | None  # in bytes, for a folder the sum of its files; None for a pipe
    state: int | str | None  # a value that changes when the source changes; None for a pipe
    files: int  # the number of files in a folder; otherwise 1
    open: Callable[[], ByteStream] = ByteStream  # opens a file or pipe
    entries: Callable[[], Iterator[ContainerEntry]] = lambda: iter(())  # returns the files of a folder
    changed: Callable[[], Change | None] | None = None  # returns how it has changed since it was listed; None: unknown
    # The states of a folder's files, by paths inside it; None: there are too many.
    states: Sequence[FileState] | None = None
    numbers: Sequence[int] | None = None  # numbers of these files, if they do not count from 0
    neighbours: Neighbours | None = None  # access to the files in the folder of a file; None: they cannot be looked up

    @property
    def format(self) -> str:
        """Return the source's format, or "" if it is recognised only when the source is read."""
        return self.guess.format

    def fingerprint(self) -> dict[str, Any]:
        """Return a dict of JSON values that is different after the source has changed."""
        return {"name": self.name, "files": self.files, "size": self.size, "state": self.state}

    def file_states(self) -> list[FileState] | None:
        """Return the name, size and time of each file of the source, in the order of reading.

        None is returned if these are unknown: for a pipe, and for a folder with very many files.
        """
        if self.kind == "pipe" or (self.kind == "folder" and self.states is None):
            return None
        if self.kind != "folder":
            return [FileState(self.name, -1 if self.size is None else self.size, self.state)]
        above = "" if self.name == "." else self.name
        return [state._replace(name=path_inside(above, state.name)) for state in self.states or ()]

    def openers(self, names: Collection[str]) -> Iterator[tuple[str, Callable[[], ByteStream]]]:
        """Yield the path of each named file of the source, and a function that opens the file."""
        if self.kind != "folder":
            yield from [(self.name, self.open)] if self.name in names else []
            return
        above = "" if self.name == "." else self.name
        for entry in self.entries():
            if (path := path_inside(above, entry.name)) in names:
                yield path, entry.open

    def restricted(self, numbers: Mapping[str, int]) -> "Source":
        """Return a folder with only some of its files, or a source of another kind unchanged.

        `numbers` has the paths of these files, and the new number of each.
        """
        if self.kind != "folder":
            return self
        above = "" if self.name == "." else self.name

        def entries() -> Iterator[ContainerEntry]:
            paths = ((entry, path_inside(above, entry.name)) for entry in self.entries())
            return (entry._replace(number=numbers[path]) for entry, path in paths if path in numbers)

        named = ((state, path_inside(above, state.name)) for state in self.states or ())
        pairs = [(state, numbers[path]) for state, path in named if path in numbers]
        readable = [state.size for state, _ in pairs if state.size >= 0]
        restricted = self._replace(entries=entries, size=sum(readable), files=len(readable))
        return restricted._replace(states=[state for state, _ in pairs], numbers=[number for _, number in pairs])


def path_inside(above: str, name: str) -> str:
    """Join the path of a folder or an archive and the path of a file in it; "" is the folder or archive itself."""
    return posixpath.join(above, decode_surrogates(name)) if name else above or "."


def is_url(text: str) -> bool:
    """Return True if an input is a URL, and False if it is a path."""
    return "://" in text  # as in each part of a chain, such as "zip://*.csv::https://…"
