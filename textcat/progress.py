"""Stages of a job, timed, and drawn on a terminal while they go."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

Item = TypeVar("Item")
Advance = Callable[[int], None]

# How many items go by between two calls of a progress bar: drawing must not cost more than the work.
_STEP = 256


class Bar:
    """The bar of a running stage: call it with the number of items just done.

    It is also a progress for `textcat.corpus.catalogue.fetch`: during a download the bar counts bytes.

    Parameters
    ----------
    bars : rich.progress.Progress, optional
        Where it is drawn; None draws nothing.
    name : str
    total : int, optional
        How many items there are; None if that is not known.
    """

    def __init__(self, bars: Progress | None = None, name: str = "", total: int | None = None):
        self._bars = bars
        if bars is not None:
            self._task = bars.add_task(name, total=total)

    def __call__(self, n: int) -> None:
        """Advance by `n` items."""
        if self._bars is not None:
            self._bars.advance(self._task, n)

    def update(self, n: int) -> None:
        """Advance by `n` bytes."""
        self(n)

    @property
    def total(self) -> int:
        """How many items or bytes there are; 0 if that is not known."""
        return 0 if self._bars is None else int(self._bars.tasks[0].total or 0)

    @total.setter
    def total(self, n: int) -> None:
        if self._bars is not None:
            # rich's own update(total=None) would leave the total as it is.
            self._bars.tasks[0].total = n or None

    def reset(self) -> None:
        """Go back to 0."""
        if self._bars is not None:
            self._bars.update(self._task, completed=0)

    def close(self) -> None:
        """Stop counting bytes: the download is done."""
        self.total = 0
        self.reset()


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
    def stage(self, name: str, total: int | None = None) -> Iterator[Bar]:
        """Time a stage; yields its bar, to be called with the number of items just done."""
        started = time.perf_counter()
        with self._bar(name, total) as bar:
            yield bar
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started

    @contextmanager
    def _bar(self, name: str, total: int | None) -> Iterator[Bar]:
        if self._console is None:
            yield Bar()
            return
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, TimeElapsedColumn(), console=self._console, transient=True) as bars:
            yield Bar(bars, name, total)


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
