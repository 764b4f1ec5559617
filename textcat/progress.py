"""Stages of a job, timed, and drawn on a terminal while they go."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, TypeVar

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

Item = TypeVar("Item")
Advance = Callable[[int], None]

# How many items go by between two calls of a progress bar: drawing must not cost more than the work.
_STEP = 256
_NARROW = 10  # columns of a bar, so that the text behind it fits on a terminal of 80 columns


class Bar:
    """A bar: call it with the number of items just done.

    It is also a progress for `textcat.corpus.catalogue.fetch`, and then counts bytes.

    Parameters
    ----------
    bars : rich.progress.Progress, optional
        Where it is drawn; None draws nothing.
    name : str
    total : int, optional
        How many items there are; None if that is not known.
    for_download : bool, default False
        It counts bytes only, and shows them also when the download is over.
    """

    def __init__(
        self, bars: Progress | None = None, name: str = "", total: int | None = None, *, for_download: bool = False
    ):
        self._bars, self._for_download = bars, for_download
        if bars is not None:
            self._task = bars.add_task(name, total=total)

    def __call__(self, n: int) -> None:
        """Advance by `n` items."""
        if self._bars is not None:
            self._bars.advance(self._task, n)

    def show(self, done: int, total: int | None, text: str) -> None:
        """Show how many items are done.

        Parameters
        ----------
        done : int
        total : int, optional
            How many there are; None if that is not known.
        text : str
            Stands beside the bar.
        """
        if self._bars is not None:
            self._bars.update(self._task, completed=done, total=total, description=text)

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
        """Set the number of items done to 0."""
        if self._bars is not None:
            self._bars.update(self._task, completed=0)

    def close(self) -> None:
        """Stop counting bytes: the download is done."""
        if not self._for_download:
            self.total = 0
            self.reset()


@contextmanager
def bar_on(
    console: Console | None,
    name: str = "",
    total: int | None = None,
    *,
    shows: Literal["items", "bytes", "text"] = "items",
) -> Iterator[Bar]:
    """Draw a bar while a block lasts, if there is a terminal.

    Parameters
    ----------
    console : rich.console.Console, optional
        Where it is drawn if that is a terminal; None draws nothing.
    name : str
        Stands before the bar.
    total : int, optional
        How many items there are; None if that is not known.
    shows : {"items", "bytes", "text"}
        What stands behind the bar: the number of items and the time, the bytes and the speed, or the text that
        `Bar.show` is given.

    Yields
    ------
    Bar
    """
    if console is None or not console.is_terminal:
        yield Bar()
        return
    from rich import progress as rich

    text = rich.TextColumn("{task.description}", markup=False)
    columns: dict[str, tuple[rich.ProgressColumn, ...]] = {
        "items": (rich.SpinnerColumn(), text, rich.BarColumn(), rich.MofNCompleteColumn(), rich.TimeElapsedColumn()),
        "bytes": (text, rich.BarColumn(), rich.DownloadColumn(), rich.TransferSpeedColumn()),
        "text": (rich.BarColumn(_NARROW), text),
    }
    with rich.Progress(*columns[shows], console=console, transient=True) as bars:
        yield Bar(bars, name, total, for_download=shows == "bytes")


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
        self._console = console

    @contextmanager
    def stage(self, name: str, total: int | None = None) -> Iterator[Bar]:
        """Time a stage, and draw its bar.

        Parameters
        ----------
        name : str
        total : int, optional
            How many items there are; None if that is not known.

        Yields
        ------
        Bar
            To be called with the number of items just done.
        """
        started = time.perf_counter()
        with bar_on(self._console, name, total) as bar:
            yield bar
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started


def counted(items: Iterable[Item], advance: Advance) -> Iterator[Item]:
    """Yield items, and advance a bar while they go by.

    Parameters
    ----------
    items : iterable
    advance : callable
        Is called with the numbers of items that have gone by since its last call.

    Yields
    ------
    The items.
    """
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
