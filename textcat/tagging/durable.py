"""The steps by which files change on a disk: each may fail or be the last, and nothing else is written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from textcat.errors import TextcatError

# Of a file that has not got its name yet.
UNFINISHED = ".part"
_PARTS = 10_000  # that are written with one call


def create(path: Path) -> BinaryIO:
    """Open an empty file for writing, without a buffer: what `write` has written is the system's."""
    return open(path, "wb", buffering=0)


def reopen(path: Path) -> BinaryIO:
    """Open a file for writing at its end; it is made if it is not there."""
    return open(path, "ab", buffering=0)


def write(file: BinaryIO, data: bytes) -> None:
    """Write all of the data."""
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]


def sync(file: BinaryIO) -> None:
    """Wait until what has been written outlasts a loss of power."""
    os.fsync(file.fileno())


def rename(old: Path, new: Path) -> None:
    """Give a file its name; what had that name is gone in the same step."""
    os.replace(old, new)


def remove(path: Path) -> None:
    """Remove a file, if it is there."""
    path.unlink(missing_ok=True)


def cut(path: Path, length: int) -> None:
    """Shorten a file to its first bytes; it must not be shorter already."""
    with open(path, "rb+") as file:
        file.truncate(length)
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until the names of the files in a folder outlast a loss of power."""
    if os.name == "nt":  # where a folder cannot be opened, and renaming waits by itself
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_whole(path: Path, parts: Iterable[bytes]) -> None:
    """Write a file that is there whole or not at all."""
    unfinished = path.with_name(path.name + UNFINISHED)
    parts = iter(parts)
    with create(unfinished) as file:
        while data := b"".join(islice(parts, _PARTS)):
            write(file, data)
        sync(file)
    rename(unfinished, path)
    sync_folder(path.parent)


@contextmanager
def told(folder: Path) -> Iterator[None]:
    """Turn the system's errors into a sentence that says what to do.

    Raises
    ------
    TextcatError
        In place of an OSError.
    """
    try:
        yield
    except OSError as error:
        raise TextcatError(
            f"Cannot write to {folder} ({error.strerror or error}): "
            "once that is mended, the same command goes on where it was."
        ) from error
