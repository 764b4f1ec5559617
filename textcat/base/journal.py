"""Read and write journals: files to which lines with checksums are appended."""

import getpass
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from textcat.base import disk
from textcat.base.disk import raise_write_errors
from textcat.base.errors import TextcatError

_CHECKSUM = "crc32"  # entry for the checksum of the other entries of a line


class Journal(NamedTuple):
    """The intact lines of a journal: a file of JSON objects, one per line, each with a checksum."""

    lines: list[dict[str, Any]]  # lines before the first incomplete or damaged one; the first line is the header
    length: int  # the size of these lines in bytes
    # True if there is more after them than an unfinished line, as a crash can leave, or if `lines` is empty
    damaged: bool


def journal_line(line: Mapping[str, Any]) -> bytes:
    """Return the bytes of a line of a journal: a JSON object with the given entries and their checksum."""
    return json.dumps({**line, _CHECKSUM: _crc32(line)}).encode() + b"\n"


def read_journal(path: Path) -> Journal | None:
    """Read a journal up to its first damaged line; return None if the file does not exist."""
    try:
        with disk.open_regular(path) as file:
            content = file.read()
    except FileNotFoundError:
        return None
    *ended, _ = content.split(b"\n")
    lines: list[dict[str, Any]] = []
    for data in ended:
        if (line := _parse_line(data)) is None:
            break
        lines.append(line)
    n = len(lines)
    return Journal(lines, sum(len(data) + 1 for data in ended[:n]), len(ended) > n or not n)


def read_whole_journal(path: Path, *, repair: bool = True) -> list[dict[str, Any]]:
    """Read all lines of a journal; the list is empty if the file does not exist.

    A last line that a killed process has left unfinished is left out and, if `repair`, removed from the file. Raise
    TextcatError if another line is damaged.
    """
    if (read := read_journal(path)) is None:
        return []
    if path.read_bytes().count(b"\n") != len(read.lines):
        raise TextcatError(f"{path} is damaged in line {len(read.lines) + 1}: move it away, or restore a copy.")
    if repair and path.stat().st_size > read.length:
        disk.truncate_file(path, read.length)
    return read.lines


def append_to_journal(path: Path, lines: Iterable[Mapping[str, Any]], remedy: str) -> None:
    """Append lines to a journal, which need not exist; raise TextcatError with the remedy if that fails."""
    with raise_write_errors(path, remedy), disk.reopen(path) as file:
        disk.write_all(file, b"".join(map(journal_line, lines)))
        disk.sync(file)


def rewrite_journal(path: Path, lines: Iterable[Mapping[str, Any]], remedy: str) -> None:
    """Write a journal of these lines in place of another, atomically; raise TextcatError like `append_to_journal`."""
    with raise_write_errors(path, remedy), disk.replacing(path) as file:
        disk.write_parts(file, map(journal_line, lines))


def when_and_who() -> tuple[str, str]:
    """Return the present time and the user's name, for journals."""
    return time_now(), user_name()


def time_now() -> str:
    """Return the present time: UTC, in ISO 8601, to the second."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def user_name() -> str:
    """Return the name of this process's user; "" if there is none, as in some containers."""
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):  # ImportError: on systems other than Unix
        return ""


def read_header(path: Path) -> dict[str, Any] | None:
    """Read the first line of a journal; return None if the file does not exist, or if this line is damaged."""
    try:
        with disk.open_regular(path) as file:
            line = file.readline()
    except FileNotFoundError:
        return None
    return _parse_line(line) if line.endswith(b"\n") else None


def read_matching(path: Path, beginning: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the intact lines of a journal whose first entries are those of `beginning`, the last line first.

    Other lines are not parsed. If the file does not exist, nothing is yielded.
    """
    start = json.dumps(beginning).encode().removesuffix(b"}")
    ended = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return (line for data in reversed(ended) if data.startswith(start) and (line := _parse_line(data)))


class KeptResults(dict[str, dict[str, Any]]):
    """Store results by key, in memory and in a file of JSON lines, so that interrupted work can be resumed.

    If the path is None, there is no file. An incomplete line of the file is skipped, so its result is missing and must
    be computed again.
    """

    def __init__(self, path: Path | None):
        super().__init__()
        self._path = path
        if path is None:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise TextcatError(f"{path.parent} cannot be a folder of results: there is a file. Name another.") from None
        for data in path.read_bytes().split(b"\n") if path.exists() else []:
            line = _parse_line(data)
            if line is not None and "key" in line:
                super().__setitem__(line["key"], line)

    def __setitem__(self, key: str, result: Mapping[str, Any]) -> None:
        line = {"key": key, **result}
        super().__setitem__(key, line)
        if self._path is None:
            return
        with open(self._path, "ab+", buffering=0) as file:
            if file.seek(0, os.SEEK_END) and (file.seek(-1, os.SEEK_END), file.read(1))[1] != b"\n":
                disk.write_all(file, b"\n")  # after an unfinished line of a killed process
            disk.write_all(file, journal_line(line))
            disk.sync(file)


def _parse_line(data: bytes) -> dict[str, Any] | None:
    try:
        line = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(line, dict):
        return None
    return line if line.pop(_CHECKSUM, None) == _crc32(line) else None


def _crc32(line: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(line, sort_keys=True).encode())
