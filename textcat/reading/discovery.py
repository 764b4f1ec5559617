"""Find the files, folders, URLs and pipes that INPUT arguments name."""

import glob
import hashlib
import logging
import os
import stat
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path

from textcat.base.errors import TextcatError
from textcat.base.paths import Paths, named_paths, paths_above
from textcat.base.surrogates import decode_surrogates
from textcat.reading.changes import FolderMarks, mark_file
from textcat.reading.compression import plain_name
from textcat.reading.containers import files_in, folder_entries, folder_neighbours, hidden, open_file, walk
from textcat.reading.decoding import is_encoding
from textcat.reading.faults import UnreadableError
from textcat.reading.formats import FORMATS
from textcat.reading.formats.main_text import check_extractor
from textcat.reading.formats.rcv1 import VERSIONS, span_of
from textcat.reading.formats.reuters import SPLITS
from textcat.reading.formats.text import HEADERS
from textcat.reading.input_settings import LAST, InputSettings, LabelSettings
from textcat.reading.recognition import FOLDERS, format_by_name, guess_format
from textcat.reading.scans import pages_of_mets
from textcat.reading.sources import FormatGuess, Source, is_url
from textcat.reading.streams import ByteStream, pipe_stream
from textcat.reading.urls import remote_sources

log = logging.getLogger(__name__)
STANDARD_INPUT = "-"
_GLOB = frozenset("*?[")


def find_sources(inputs: Paths, settings: InputSettings) -> list[Source]:
    """Return the sources that one or several inputs name: files, folders, patterns, URLs of fsspec.

    The input ``-``, and no input, stand for standard input.

    A folder is read with all folders in it, sorted, but without hidden files; a pattern (``*``, ``?``, ``[…]``, ``**``)
    stands for the files that match it, sorted, and for unlistable folders that it leads through. A file that is named
    twice, or together with its folder, is read once, and a warning is logged. A TextcatError is raised for an unknown
    file, format or encoding, or if neither the name nor the content of a file tells its format.
    """
    _check(settings)
    texts = [os.fspath(path) for path in named_paths(inputs)] or [STANDARD_INPUT]
    return _without_pages_of_mets(
        [*_without_repeats([source for text in texts for source in _named(text, settings)])], settings
    )


def matches(text: str) -> list[str]:
    """Return the files that match a pattern, sorted; [] if the text is not a pattern (no ``*``, ``?`` or ``[``)."""
    return sorted(glob.glob(text, recursive=True)) if not _GLOB.isdisjoint(text) else []


def _check(settings: InputSettings) -> None:
    labels = settings.labels or LabelSettings()
    for what, name, choices in (
        (f"format {settings.format!r}", "text" if settings.format in ("", FOLDERS) else settings.format, FORMATS),
        (f"Reuters split {labels.split!r}", labels.split, SPLITS),
        (f"version {labels.version!r} of RCV1", labels.version, VERSIONS),
        (f"way {labels.headers!r} to treat headers", labels.headers, HEADERS),
    ):
        if name not in choices:
            raise TextcatError(f"There is no {what}: use one of {', '.join(choices)}.")
    if settings.main_text:
        check_extractor()
    for _, values in settings.for_files:
        _check(settings._replace(for_files=(), **dict(values)))
    if not is_encoding(settings.encoding or "utf-8"):
        raise TextcatError(f"There is no encoding {settings.encoding!r}: use for example 'utf-8' or 'latin-1'.")
    for text in filter(None, (labels.train, labels.test)):
        if not LAST.fullmatch(text):
            span_of(text)


def _named(text: str, settings: InputSettings) -> list[Source]:
    if text == STANDARD_INPUT:
        return [_pipe(text, lambda: pipe_stream(sys.stdin.buffer), settings)]
    if is_url(text):
        return remote_sources(text, settings)
    is_there = os.path.exists(text)
    if is_there and {*matches(text)} - {text}:
        log.warning("%s is the name of a file, so it is not read as a pattern.", text)
    if not is_there and not _GLOB.isdisjoint(text):
        closed = _closed_folders(text)
        paths = [path for path in matches(text) if not closed or closed.isdisjoint(_folders_above(path))]
        if not paths and not closed:
            raise TextcatError(f"No file matches {text}: check the pattern.")
        # The pattern is not expanded here, so no folder needs a format.
        unmatched = sorted(closed.difference(path.rstrip("/") for path in paths))
        unread = [_local(folder, settings)._replace(guess=FormatGuess("", "")) for folder in unmatched]
        return [*unread, *(_local(path, settings) for path in paths)]
    return [_local(text, settings)]


def _closed_folders(pattern: str) -> set[str]:
    """Return the folders that a pattern leads through but that cannot be listed or entered: glob skips them silently.

    While it cannot be listed, each such folder is an input of its own, and rejected; later, the pattern finds its
    files.
    """
    parts = pattern.split("/")
    first = next(i for i, part in enumerate(parts) if not _GLOB.isdisjoint(part))
    closed = set[str]()
    for i in range(first, len(parts)):
        above = "/".join(parts[: i + (parts[i] == "**")])
        folders = glob.glob(f"{above}/", recursive=True) if i or above else []
        for folder in folders if i else [".", *folders]:
            try:
                if not _GLOB.isdisjoint(parts[i]):
                    os.scandir(folder).close()
                os.stat(os.path.join(folder, "."))
            except OSError:
                closed.add(folder.rstrip("/") or "/")
    return closed


def _folders_above(path: str) -> Iterator[str]:
    yield from islice(paths_above(path.rstrip("/")), 1, None)
    yield "/" if path.startswith("/") else "."


def _local(path: str, settings: InputSettings) -> Source:
    try:
        status = os.stat(path)
    except OSError as error:
        raise TextcatError(f"{path} cannot be read ({error.strerror}): check the path.") from None
    name, mode = decode_surrogates(str(Path(path))), status.st_mode
    if stat.S_ISDIR(mode):
        return _folder(name, path)
    if stat.S_ISREG(mode):
        mark = mark_file(path, status)
        reading = partial(open_file, path, mark)
        guess = guess_format(name, reading, settings)
        changed = partial(mark.change, path)
        source = Source(name, "file", guess, mark.size, mark.modified, 1, reading, changed=changed)
        return source._replace(neighbours=folder_neighbours(os.path.dirname(path)))
    if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):
        return _pipe(name, lambda: pipe_stream(open(path, "rb"), closes=True), settings)
    raise TextcatError(f"{path} is not a file, folder or pipe: check the path.")


def _pipe(name: str, reading: Callable[[], ByteStream], settings: InputSettings) -> Source:
    return Source(name, "pipe", format_by_name(name, settings.for_file(name)), None, None, 1, reading)


def _folder(name: str, path: str) -> Source:
    files, size, state, faults = 0, 0, hashlib.sha256(), dict[str, UnreadableError]()

    def met() -> Iterator[tuple[str, os.stat_result | str]]:
        nonlocal files, size
        for item in walk(path):
            if item.status is not None:
                files, size = files + 1, size + item.status.st_size
                state.update(repr((item.name, item.status.st_size, item.status.st_mtime_ns)).encode())
            elif item.fault is not None:
                state.update(repr((item.name, str(item.fault))).encode())
                faults[item.name] = item.fault
            yield item.name, item.status or str(item.fault)

    marks = FolderMarks(met())
    guess, entries = FormatGuess("folder", "content"), partial(folder_entries, path, marks, faults)
    changed = (lambda: marks.change(files_in(path))) if marks.is_whole else None
    source = Source(name, "folder", guess, size, state.hexdigest(), files, entries=entries, changed=changed)
    return source._replace(states=marks.states if marks.is_whole else None)


def _without_repeats(sources: list[Source]) -> Iterator[Source]:
    """Yield each distinct source once; leave out files that are also read as parts of a folder."""
    folders = {_key(source) for source in sources if source.kind == "folder"}
    seen = set()
    for source in sources:
        key = _key(source)
        within = [above for above in Path(key).parents if str(above) in folders]
        if key in seen:
            log.warning("%s is named twice; it is read once.", source.name)
        elif any(not hidden(Path(key).relative_to(above).as_posix()) for above in within):
            log.warning("%s is named as well as its folder; it is read once.", source.name)
        else:
            yield source
        seen.add(key)


def _without_pages_of_mets(sources: list[Source], settings: InputSettings) -> list[Source]:
    """Return the sources without the ALTO files that are read as parts of METS files among the sources."""
    pages: dict[str, str] = {}
    for source in sources if any(source.format == "alto" for source in sources) else ():
        if source.format == "mets" and not settings.for_file(source.name).skip:
            above = plain_name(_key(source)).rpartition("/")[0]
            pages |= {
                f"{above}/{name}": source.name
                for name in pages_of_mets(source.open, source.name, settings.for_file(source.name))
            }
    kept = []
    for source in sources:
        owner = pages.get(plain_name(_key(source))) if source.format == "alto" else None
        if owner is None:
            kept.append(source)
        else:
            log.warning("%s is named as well as its METS file, %s; it is read once.", source.name, owner)
    return kept


def _key(source: Source) -> str:
    return source.name if is_url(source.name) or source.name == STANDARD_INPUT else os.path.realpath(source.name)
