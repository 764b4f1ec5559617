"""Rows that are mapped from a disk → read shortly before their use, and no more than that of them."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

# Entries that are fetched together: with their columns some 2 MB.
_WINDOW = 1 << 18


class Ahead:
    """Has the system read rows shortly before their use.

    Left to itself, it reads around every place that is read, up to some megabytes before and after it. Where memory is
    short, these drive each other out before they are used, and several times as much is read as is used.

    Parameters
    ----------
    n_rows : int
    arrays : dict of str to ndarray
        Their elements ``pointers[i]`` to ``pointers[i + 1]`` are of row i. Those that are not mapped are passed over.
    pointers : dict of str to ndarray
        Of each array, by its name.
    """

    def __init__(self, n_rows: int, arrays: Mapping[str, np.ndarray], pointers: Mapping[str, np.ndarray]):
        self._arrays = [(array, pointers[name]) for name, array in arrays.items() if isinstance(array, np.memmap)]
        longest = max((len(array) for array, _ in self._arrays), default=0)
        self.n_rows = n_rows
        self.step = max(1, _WINDOW * n_rows // max(1, longest))
        for array, _ in self._arrays:
            _advise(array, "MADV_RANDOM")

    def follow(self, position: int) -> None:
        """Have the rows read that will be used after the next `step` rows from a position on."""
        if position == 0:
            self._advise_rows(0, "MADV_WILLNEED")
        after = position + self.step
        self._advise_rows(after if after < self.n_rows else 0, "MADV_WILLNEED")

    def windows(self) -> Iterator[tuple[int, int]]:
        """Yield the bounds of stretches of rows, from the first to the last; the next one is read meanwhile."""
        for start, stop in pairwise([*range(0, self.n_rows, self.step), self.n_rows]):
            self.follow(start)
            yield start, stop

    def _advise_rows(self, start: int, advice: str) -> None:
        start, stop = max(start, 0), min(start + self.step, self.n_rows)
        for array, pointers in self._arrays:
            _advise(array[pointers[start] : pointers[stop]], advice)


def remapped(array: np.ndarray) -> np.ndarray:
    """Map the file of an array once more, so that advice on it is no one else's matter."""
    if not isinstance(array, np.memmap) or array.filename is None or not len(array):
        return array
    return np.memmap(array.filename, array.dtype, "r", offset=array.offset, shape=array.shape)


def _advise(array: np.ndarray, advice: str) -> None:
    kind = getattr(mmap, advice, None)  # not every system has it
    if kind is None or not array.size:
        return
    start = array.ctypes.data // mmap.PAGESIZE * mmap.PAGESIZE
    length = array.ctypes.data + array.nbytes - start
    _c_library().madvise(ctypes.c_void_p(start), ctypes.c_size_t(length), ctypes.c_int(kind))


@cache
def _c_library() -> Any:
    return ctypes.CDLL(None)
