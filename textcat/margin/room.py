"""Where large arrays lie: in memory, or beside rows that are on disk in a file without a name."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable
from typing import IO

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
            return np.memmap(file, dtype, "r+", shape=shape)

    return make


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
