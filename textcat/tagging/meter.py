"""How far a run has come → a bar on a terminal, and a line in the log now and then."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, NamedTuple

from textcat.tagging.counts import Counts

if TYPE_CHECKING:
    from rich.console import Console

log = logging.getLogger(__name__)

_SECONDS = 30.0  # between two lines of the log
_WIDTH = 10  # of the bar, so that the words beside it fit on a terminal of 80 columns


class Reached(NamedTuple):
    """How far a run has come.

    Parameters
    ----------
    counts : Counts
        Of all that is done, earlier runs on the same folder included.
    read : int
        Bytes of the inputs, as they are stored, up to there.
    total : int, optional
        All of them, if that is known.
    records, n_bytes : int
        Of this run alone.
    seconds : float
        Since this run began.
    memory : int
        The most that this process and its workers have held, in bytes.
    """

    counts: Counts
    read: int
    total: int | None
    records: int
    n_bytes: int
    seconds: float
    memory: int

    @property
    def documents_per_second(self) -> float:
        """The rate of this run."""
        return self.records / max(self.seconds, 1e-9)

    @property
    def bytes_per_second(self) -> float:
        """The rate of this run, in stored bytes."""
        return self.n_bytes / max(self.seconds, 1e-9)

    @property
    def seconds_left(self) -> float | None:
        """How long the rest takes at this rate; None if that cannot be known."""
        if self.total is None or not self.n_bytes:
            return None
        return max(self.total - self.read, 0) / max(self.bytes_per_second, 1e-9)

    @property
    def documents(self) -> str:
        """What was done and how fast, in words."""
        left = "" if self.seconds_left is None else f", {clock(self.seconds_left)} left"
        return (
            f"{self.counts.records:,} documents, {self.counts.rejected:,} rejected, "
            f"{self.documents_per_second:,.0f}/s, {self.bytes_per_second / 1e6:.1f} MB/s{left}, "
            f"{self.memory / 2**20:,.0f} MB"
        )

    def __str__(self) -> str:
        """Say it in a line of the log."""
        return f"{self.documents} of memory, {_part(self.read, self.total)} read"


class Meter:
    """Shows how far a run has come, while a block of it lasts.

    Parameters
    ----------
    console : rich.console.Console, optional
        A bar is drawn there if it is a terminal.
    """

    def __init__(self, console: Console | None = None):
        self._console = console if console is not None and console.is_terminal else None
        self._logged = time.monotonic()

    def __enter__(self) -> Meter:
        if self._console is not None:
            from rich.progress import BarColumn, Progress, TextColumn

            columns = (BarColumn(_WIDTH), TextColumn("{task.description}", markup=False))
            self._bars = Progress(*columns, console=self._console, transient=True)
            self._task = self._bars.add_task("", total=None)
            self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._console is not None:
            self._bars.stop()

    def __call__(self, reached: Reached) -> None:
        """Show it."""
        if self._console is not None:
            self._bars.update(self._task, completed=reached.read, total=reached.total, description=reached.documents)
        now = time.monotonic()
        if not 0 <= now - self._logged < _SECONDS:  # a clock that has gone back counts as late
            log.info("%s", reached)
            self._logged = now


def clock(seconds: float) -> str:
    """Write seconds as hours, minutes and seconds.

    >>> clock(3725)
    '1:02:05'
    """
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"


def _part(read: int, total: int | None) -> str:
    return _megabytes(read) if not total else f"{min(read / total, 1):.0%} of {_megabytes(total)}"


def _megabytes(n: int) -> str:
    return f"{n / 1e6:,.{0 if n >= 1e7 else 1}f} MB"
