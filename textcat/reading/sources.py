"""INPUT arguments → the files, folders, URLs and pipes they name, each with its format and its state."""

from __future__ import annotations

import glob
import hashlib
import logging
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from textcat.errors import TextcatError
from textcat.reading.compression import unpacked
from textcat.reading.containers import Entry, folder_entries, open_file, walk
from textcat.reading.formats import FORMATS
from textcat.reading.formats.spans import is_encoding
from textcat.reading.guess import Guess, by_content, by_name
from textcat.reading.members import hidden
from textcat.reading.records import InputSettings
from textcat.reading.remote import Remote, find_remote, is_url
from textcat.reading.streams import Stream, UnreadableError, of_pipe, shown

log = logging.getLogger(__name__)

STANDARD_INPUT = "-"
_GLOB = frozenset("*?[")


class Source(NamedTuple):
    """One input.

    Parameters
    ----------
    name : str
        Its path, its URL, or ``-``, standard input.
    kind : {"file", "folder", "pipe"}
    guess : Guess
        Its format, which is "zip" or "tar" of an archive and "folder" of a folder; and what it was told by.
    size : int or None
        Bytes, all files of a folder together; None of a pipe.
    state : int, str or None
        What changes when the source does; None of a pipe.
    files : int
        How many files it is.
    open : callable
        Gives the stream of a file or pipe.
    entries : callable
        Gives the files of a folder.
    """

    name: str
    kind: str
    guess: Guess
    size: int | None
    state: int | str | None
    files: int
    open: Callable[[], Stream] = Stream.nothing
    entries: Callable[[], Iterator[Entry]] = lambda: iter(())

    @property
    def format(self) -> str:
        """Its format, "" if it is told only when it is read."""
        return self.guess.format

    def fingerprint(self) -> dict[str, Any]:
        """Give what tells whether it is as it was: plain values, that differ if it has changed."""
        return {"name": self.name, "files": self.files, "size": self.size, "state": self.state}


def find(inputs: Iterable[str | os.PathLike[str]], settings: InputSettings) -> list[Source]:
    """Find what arguments name.

    A folder is read with all folders in it, sorted, but without hidden files; a pattern (``*``, ``?``, ``[…]``, ``**``)
    stands for the files that fit, sorted. A file that is named twice, also as part of a folder, is read once, and a
    warning is logged.

    Parameters
    ----------
    inputs : iterable of str or path-like
        Files, folders, patterns, URLs that fsspec knows, and ``-``, standard input; none is standard input, too.
    settings : InputSettings

    Returns
    -------
    list of Source

    Raises
    ------
    TextcatError
        If there is no such file, nothing tells the format of a file, or there is no such format or encoding.
    """
    _check(settings)
    texts = [os.fspath(text) for text in inputs] or [STANDARD_INPUT]
    return list(_once([source for text in texts for source in _named(text, settings)]))


def _check(settings: InputSettings) -> None:
    if settings.format and settings.format not in FORMATS:
        raise TextcatError(f"There is no format {settings.format!r}: use one of {', '.join(FORMATS)}.")
    if not is_encoding(settings.encoding or "utf-8"):
        raise TextcatError(f"There is no encoding {settings.encoding!r}: use for example 'utf-8' or 'latin-1'.")


def _named(text: str, settings: InputSettings) -> list[Source]:
    if text == STANDARD_INPUT:
        return [_pipe(text, lambda: of_pipe(sys.stdin.buffer), settings)]
    if is_url(text):
        return [_remote(found, settings) for found in find_remote(text)]
    if not os.path.exists(text) and not _GLOB.isdisjoint(text):
        paths = sorted(glob.glob(text, recursive=True))
        if not paths:
            raise TextcatError(f"No file fits {text}: check the pattern.")
        return [_local(path, settings) for path in paths]
    return [_local(text, settings)]


def _local(path: str, settings: InputSettings) -> Source:
    try:
        status = os.stat(path)
    except OSError as error:
        raise TextcatError(f"{path} cannot be read ({error.strerror}): check the path.") from None
    name, mode = shown(str(Path(path))), status.st_mode
    if stat.S_ISDIR(mode):
        return _folder(name, path)
    if stat.S_ISREG(mode):
        reading = partial(open_file, path)
        return Source(name, "file", _guess(name, reading, settings), status.st_size, status.st_mtime_ns, 1, reading)
    if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):
        return _pipe(name, lambda: of_pipe(open(path, "rb"), closes=True), settings)
    raise TextcatError(f"{path} is no file, folder or pipe: check the path.")


def _folder(name: str, path: str) -> Source:
    files, size, state = 0, 0, hashlib.sha256()
    for found in walk(path):
        if found.status:
            files, size = files + 1, size + found.status.st_size
            changes = (found.name, found.status.st_size, found.status.st_mtime_ns)
            state.update(repr(changes).encode("utf-8", "replace"))
    guess = Guess("folder", "content")
    return Source(name, "folder", guess, size, state.hexdigest(), files, entries=partial(folder_entries, path))


def _pipe(name: str, reading: Callable[[], Stream], settings: InputSettings) -> Source:
    return Source(name, "pipe", by_name(name, settings), None, None, 1, reading)


def _remote(found: Remote, settings: InputSettings) -> Source:
    if found.is_folder:
        guess, kind = Guess("folder", "content"), "folder"
    else:
        guess, kind = _guess(found.name, found.open, settings), "file"
    files = max(len(found.files), 1)
    return Source(found.name, kind, guess, found.size, found.state, files, found.open, found.entries)


def _guess(name: str, reading: Callable[[], Stream], settings: InputSettings) -> Guess:
    guess = by_name(name, settings)
    if guess.format:
        return guess
    try:
        with closing(reading()) as stored:
            guess = by_content(unpacked(stored, name), name, settings)
    except UnreadableError:
        return guess  # what it is read as does not matter
    if not guess.format:
        raise TextcatError(
            f"Neither name nor content tell the format of {name}: name it with --format, one of {', '.join(FORMATS)}."
        )
    return guess


def _once(sources: list[Source]) -> Iterator[Source]:
    """Yield sources, but none twice, nor what is read as part of a folder."""
    folders = {_key(source) for source in sources if source.kind == "folder"}
    seen = set()
    for source in sources:
        key = _key(source)
        within = [above for above in Path(key).parents if str(above) in folders]
        if key in seen:
            log.warning("%s is named twice, and read once.", source.name)
        elif any(not hidden(Path(key).relative_to(above).as_posix()) for above in within):
            log.warning("%s is named besides its folder, and read once.", source.name)
        else:
            yield source
        seen.add(key)


def _key(source: Source) -> str:
    return source.name if is_url(source.name) or source.name == STANDARD_INPUT else os.path.realpath(source.name)
