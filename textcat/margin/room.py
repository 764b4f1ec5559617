"""Where large arrays lie: in memory, or beside rows that are on disk in a file without a name."""

from __future__ import annotations

import math
import mmap
import os
import platform
import re
import tempfile
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any

import numpy as np

from textcat.errors import TextcatError

Shape = int | tuple[int, ...]
Room = Callable[[Shape, type], np.ndarray]

# Smaller ones are kept in memory in any case.
_LARGE = 1 << 20


def room_beside(folder: str | None) -> Room:
    """Give a maker of arrays, to be called as `numpy.empty`.

    Parameters
    ----------
    folder : str, optional
        Make large arrays in files there, mapped into memory: the system may take their pages out of memory and read
        them again. The files have no name, and are gone with their arrays, however the process ends. Where the folder
        cannot be written to they lie in the folder for temporary files. None: make all arrays in memory.
    """
    if folder is None:
        return np.empty

    def make(shape: Shape, dtype: type) -> np.ndarray:
        size = math.prod(np.atleast_1d(shape).tolist()) * np.dtype(dtype).itemsize
        if size < _LARGE or not size:
            return np.empty(shape, dtype)
        with _nameless(folder) as file:
            _reserve(file, size, folder)
            return _in_large_pieces(np.memmap(file, dtype, "r+", shape=shape))

    return make


def mapped_anew(array: np.ndarray) -> np.ndarray:
    """Map the file of a mapped array once more, to be read in large pieces; the array itself is left as it is."""
    if not isinstance(array, np.memmap) or array.filename is None or not len(array):
        return array
    return _in_large_pieces(np.memmap(array.filename, array.dtype, "r", offset=array.offset, shape=array.shape))


def _in_large_pieces(array: np.memmap) -> np.memmap:
    """Have the system read 2 MB where something is wanted, there and nowhere else.

    Left to itself, it reads around the place, up to many megabytes. Where memory is short these drive each other out
    before they are used, and several times as much is read as is used. Linux up to 5.17 knows no such large pieces:
    there, advice against reading around would have it read page by page.
    """
    advice = getattr(mmap, "MADV_HUGEPAGE", None)
    if advice is not None and _linux() >= (5, 18):
        mapping: Any = array
        with suppress(OSError):  # the system may be built without huge pages
            mapping._mmap.madvise(advice)
            mapping._mmap.madvise(mmap.MADV_RANDOM)
    return array


def _linux() -> tuple[int, ...]:
    found = re.match(r"(\d+)\.(\d+)", platform.release())
    return tuple(map(int, found.groups())) if found else (0, 0)


def _nameless(folder: str) -> IO[bytes]:
    try:
        return tempfile.TemporaryFile(dir=folder)
    except OSError:
        return tempfile.TemporaryFile()


def _reserve(file: IO[bytes], size: int, folder: str) -> None:
    """Make a file of some size. A mapped file that finds the disk full later would kill the process."""
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            file.truncate(size)
    except OSError as error:
        raise TextcatError(
            f"Cannot make a file of {size / 1e6:.0f} MB in {folder} ({error.strerror}): training on rows that are on "
            "disk needs as much room again as they take."
        ) from error
