"""Return memory that requests no longer use to the system; the C library alone would keep much of it."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
from collections.abc import Callable
from contextlib import suppress

_SECONDS = 1.0  # seconds between checks of the process's memory
_LOOKS = 64  # number of checks after growth at which memory is given back for the last time
_GROWN = 1 << 25  # bytes by which the process must have grown


class Trimmer:
    """Returns unused memory of this process to the system, 1, 2, 4 … 64 seconds after the process grew by 32 MB.

    It does so several times, because the request that needs the memory may still be running at first.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, give_back: Callable[[], object] | None = None) -> None:
        self._loop, self._give_back = loop, give_back or give_memory_back
        self._size = own_bytes()
        self._looks, self._due = 0, 2 * _LOOKS
        self._timer = loop.call_later(_SECONDS, self._look)

    def _look(self) -> None:
        self.look(own_bytes)
        self._timer = self._loop.call_later(_SECONDS, self._look)

    def look(self, size: Callable[[], int]) -> None:
        """Check the size of the process, by `size` (in bytes), and give memory back to the system if it is time."""
        self._looks += 1
        if size() > self._size + _GROWN:
            self._looks = self._due = 1
        if self._looks >= self._due and self._due <= _LOOKS:
            self._give_back()
            self._due *= 2
            self._size = size()
        self._size = min(self._size, size())

    def stop(self) -> None:
        """Stop the timer."""
        self._timer.cancel()


def own_bytes() -> int:
    """Return the bytes of this process that are in memory, without mapped files; 0 if the system hides them."""
    with suppress(OSError, ValueError, IndexError):
        with open("/proc/self/statm", encoding="ascii") as file:
            resident, shared = file.read().split()[1:3]
        return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")
    return 0


def give_memory_back() -> None:
    """Free unused memory, and give it back to the system if the C library can do so."""
    gc.collect()
    # Python's attribute cache keeps up to 4,096 names. C code that looks up an attribute by a C string, as NumPy's
    # cumsum does, leaves a new string there each time, and one such string keeps a megabyte of small objects in memory.
    ctypes.pythonapi.PyType_ClearCache()
    with suppress(OSError, AttributeError, TypeError):  # the C library is not glibc
        ctypes.CDLL(None).malloc_trim(0)
