"""A file of JSON lines, each synced when it is written: what is done, as far as the last line that is whole."""

from __future__ import annotations

import json
import zlib
from itertools import takewhile
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from textcat.tagging import durable

_CHECK = "crc32"  # of a line's other entries

Line = dict[str, Any]


class Journal(NamedTuple):
    """What a journal says.

    Parameters
    ----------
    lines : list of dict
        Those before the first that is not whole; the header first.
    length : int
        Their bytes.
    damaged : bool
        Whether something follows that no crash leaves: more than one line that was being written.
    """

    lines: list[Line]
    length: int
    damaged: bool


def create(path: Path, header: Line) -> None:
    """Write a journal of one line; an older one is replaced in the same step."""
    durable.write_whole(path, [_written(header)])


def append(file: BinaryIO, line: Line) -> None:
    """Add a line; when this returns, it outlasts a loss of power."""
    durable.write(file, _written(line))
    durable.sync(file)


def read(path: Path) -> Journal | None:
    """Read a journal as far as it is whole; None if there is none."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    *ended, unended = content.split(b"\n")
    lines = list(takewhile(lambda line: line is not None, map(_read, ended)))
    n = len(lines)
    return Journal(
        [line for line in lines if line is not None],
        sum(len(line) + 1 for line in ended[:n]),
        damaged=len(ended) > n + 1 or (len(ended) > n and bool(unended)) or not n,
    )


def _written(line: Line) -> bytes:
    return json.dumps({**line, _CHECK: _sum(line)}).encode() + b"\n"


def _read(data: bytes) -> Line | None:
    try:
        line = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return line if isinstance(line, dict) and line.pop(_CHECK, None) == _sum(line) else None


def _sum(line: Line) -> int:
    return zlib.crc32(json.dumps(line, sort_keys=True).encode())
