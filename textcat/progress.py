"""Stages of a job, timed, and drawn on a terminal while they go."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.console import Console

Item = TypeVar("Item")
Advance = Callable[[int], None]

# How many items go by between two calls of a progress bar: drawing must not cost more than the work.
_STEP = 256


class Stages:
    """The stages of one job: how long each took, and a bar for the one that is running.

    Parameters
    ----------
    console : rich.console.Console, optional
        Bars are drawn there if it is a terminal; None draws nothing.

    Attributes
    ----------
    seconds : dict of str to float
        Wall-clock seconds per stage, in the order in which they ran.
    """

    def __init__(self, console: Console | None = None):
        self.seconds: dict[str, float] = {}
        self._console = console if console is not None and console.is_terminal else None

    @contextmanager
    def stage(self, name: str, total: int | None = None) -> Iterator[Advance]:
        """Time a stage; yields the function to call with the number of items just done."""
        started = time.perf_counter()
        with self._bar(name, total) as advance:
            yield advance
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started

    @contextmanager
    def _bar(self, name: str, total: int | None) -> Iterator[Advance]:
        if self._console is None:
            yield _ignore
            return
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, TimeElapsedColumn(), console=self._console, transient=True) as bars:
            task = bars.add_task(name, total=total)
            yield lambda n: bars.advance(task, n)


def counted(items: Iterable[Item], advance: Advance) -> Iterator[Item]:
    """Yield the items, telling `advance` how many have gone by."""
    done = 0
    for item in items:
        yield item
        done += 1
        if done % _STEP == 0:
            advance(_STEP)
    advance(done % _STEP)


def peak_memory() -> int | None:
    """Return the most memory this process has held so far, in bytes; None where the system does not tell."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _ignore(n: int) -> None:
    """Draw nothing."""
