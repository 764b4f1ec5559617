"""Measure the memory that this process uses, its peak, and the memory available to it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

_STATUS, _SYSTEM, _LIMITS = Path("/proc/self/status"), Path("/proc/meminfo"), Path("/sys/fs/cgroup")


def available_memory() -> int | None:
    """Return the bytes that this process may use in total: what it already uses, plus what is free.

    Return None if the system does not report it.
    """
    left = [_fact(_SYSTEM, "MemAvailable:")]
    with suppress(OSError, ValueError):  # "max": no limit
        limit, used = (int((_LIMITS / name).read_text()) for name in ("memory.max", "memory.current"))
        left.append(max(limit - used, 0))
    most, used_here = min((size for size in left if size is not None), default=None), used_memory()
    return None if most is None or used_here is None else most + used_here


def used_memory() -> int | None:
    """Return the memory that this process uses, in bytes; None if the system does not report it."""
    return _fact(_STATUS, "VmRSS:")


def peak_since_reset() -> int | None:
    """Return the peak memory of this process since `reset_peak`, in bytes; None if the system does not report it."""
    return _fact(_STATUS, "VmHWM:")


def reset_peak() -> bool:
    """Reset the peak memory that the system reports of this process; return whether the system has done so."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        return True
    return False


def _fact(file: Path, name: str) -> int | None:
    with suppress(OSError, ValueError, IndexError):
        for line in file.read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith(name):
                return 1024 * int(line.split()[1])
    return None
