"""The progress of a run: read from its journal, updated while it goes on, and drawn on a terminal."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

from textcat.progress import download_bar
from textcat.runs.results import Counts

if TYPE_CHECKING:
    from rich.console import Console

    from textcat.reading import Checkpoint, PipeState

log = logging.getLogger(__name__)

LOG_SECONDS = 30.0  # between two lines of the log


class RunState(NamedTuple):
    """The progress of a run by its journal."""

    counts: Counts
    shards: int = 0  # their number; the next one gets it for its name
    checkpoint: "Checkpoint | None" = None  # where the input is to be read from; None: its beginning
    read: int = 0  # bytes of the inputs up to there
    rejected_bytes: int = 0  # length of the file of rejections
    finished: bool = False
    pipes: Mapping[str, "PipeState"] = {}  # what had been read of each pipe among the inputs, by its name


class RunProgress(NamedTuple):
    """The progress of a run."""

    counts: Counts  # of all that is written, by earlier runs on the same folder, too
    read: int  # bytes of the inputs, as they are stored, up to there
    total: int | None  # all of them, if that is known
    records: int  # of this run alone
    n_bytes: int  # of this run alone
    seconds: float  # since this run began
    memory: int  # the most that this process and its workers have held, in bytes

    @property
    def seconds_left(self) -> float | None:
        """Return the seconds that the rest takes at this rate; None if unknown."""
        if self.total is None or not self.n_bytes:
            return None
        return max(self.total - self.read, 0) * max(self.seconds, 1e-9) / self.n_bytes

    @property
    def documents(self) -> str:
        """Return the number of documents and the speed, in words."""
        left = "" if self.seconds_left is None else f", {clock(self.seconds_left)} left"
        seconds = max(self.seconds, 1e-9)
        return (
            f"{self.counts.records:,} documents, {self.counts.rejected:,} rejected, "
            f"{self.records / seconds:,.0f}/s, {self.n_bytes / seconds / 1e6:.1f} MB/s{left}, "
            f"{self.memory / 2**20:,.0f} MB"
        )

    def __str__(self) -> str:
        share = f"{min(self.read / self.total, 1):.0%} of " if self.total else ""
        n_bytes = self.total or self.read
        return f"{self.documents} of memory, {share}{n_bytes / 1e6:,.{0 if n_bytes >= 1e7 else 1}f} MB read"


ShowProgress = Callable[[RunProgress], None]


@contextmanager
def progress_shown(console: "Callable[[], Console | None]" = lambda: None) -> Iterator[ShowProgress]:
    """Draw the progress of a run on a terminal during a ``with`` block, and log it every half minute."""
    last_line, bar = time.monotonic(), None
    with ExitStack() as drawing:

        def show(progress: RunProgress) -> None:
            nonlocal last_line, bar
            # Only now, when workers are busy: rich is imported, and draws by a thread, before which they are forked.
            bar = bar or drawing.enter_context(download_bar(console(), shows="text"))
            bar.show(completed=progress.read, total=progress.total, description=progress.documents)
            now = time.monotonic()
            if not 0 <= now - last_line < LOG_SECONDS:  # a clock that was set back counts as late
                log.info("%s", progress)
                last_line = now

        yield show


def clock(seconds: float) -> str:
    """Return seconds as hours, minutes and seconds: 3725 as 1:02:05."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"
