"""A command → the same command in a memory control group of its own, where the system allows that."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

_V1, _V2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")


def run(command: Sequence[str | os.PathLike[str]], limit: int) -> str | None:
    """Run a command in so many bytes of memory, the pages of files that it reads included; return what it prints.

    None is returned where no control group can be made: that takes Linux, and the right to.

    Raises
    ------
    subprocess.CalledProcessError
        If it fails, as it does if more memory is wanted that cannot be taken back.
    """
    with _group(limit) as enter:
        if enter is None:
            return None
        return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, preexec_fn=enter).stdout


def forget(folder: Path) -> None:
    """Drop the system's copies of a folder's files: they would count for the process that read them before."""
    for path in folder.iterdir():
        with open(path, "rb+") as file:
            os.fsync(file.fileno())
            if hasattr(os, "posix_fadvise"):
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


@contextmanager
def _group(limit: int) -> Iterator[Callable[[], None] | None]:
    """Make a group below our own, and yield what enters it."""
    for parent, name in _parents():
        group = parent / f"textcat-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            try:
                (group / name).write_text(str(limit))
            except OSError:  # the parent does not hand the control of memory down
                continue
            yield lambda group=group: (group / "cgroup.procs").write_text("0")
            return
        finally:
            _remove(group)
    yield None


def _parents() -> Iterator[tuple[Path, str]]:
    """Yield where groups may be made, and the file that has the limit."""
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers == "memory":
                yield _V1 / path.lstrip("/"), "memory.limit_in_bytes"
            elif controllers == "" and (_V2 / "cgroup.controllers").exists():
                yield _V2 / path.lstrip("/"), "memory.max"
                yield _V2, "memory.max"


def _remove(group: Path) -> None:
    for _ in range(50):  # a process that has ended leaves its group a little later
        with suppress(OSError):
            group.rmdir()
            return
        time.sleep(0.1)
