"""The progress of a run: its state in the journal, and the numbers shown on a terminal."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

from textcat.base.progress import download_bar
from textcat.runs.results import Counts

if TYPE_CHECKING:
    from rich.console import Console

    from textcat.reading import Checkpoint, PipeState, Source
    from textcat.runs.growth import Growth
    from textcat.runs.records import Log

log = logging.getLogger(__name__)

LOG_SECONDS = 30.0  # seconds between two lines of the log


class RunState(NamedTuple):
    """The state from which a run resumes, as its journal gives it: counts, last checkpoint and sources."""

    counts: Counts
    shards: int = 0  # number of finished shards
    checkpoint: "Checkpoint | None" = None  # the place in the inputs where reading resumes; None: the beginning
    read: int = 0  # bytes of the inputs before the checkpoint
    finished: bool = False
    pipes: Mapping[str, "PipeState"] = {}  # the state of each input that is a pipe, by name
    sources: "Sequence[Source]" = ()  # the inputs, restricted to the files that must be read
    #: Whether the run covers all present files. False if it resumes with its old list of files, since when others may
    #: have arrived or changed.
    is_last: bool = True
    growth: "Growth | None" = None  # changes of the inputs since the previous run; None: they were not compared
    #: The earliest time to read again a file that the run does not read now, see `Rejection`.
    wake: float | None = None
    is_part: bool = False  # whether the run is one part of several to be merged
    log: "Log | None" = None  # the journal; None: the run writes to no folder


class RunProgress(NamedTuple):
    """The progress of a run: its counts, the bytes read, the seconds and the memory."""

    counts: Counts  # of all documents in the folder, including those that interrupted runs wrote
    read: int  # stored bytes of the inputs that have been read
    total: int | None  # stored bytes of all inputs; None if unknown
    records: int  # documents of this run alone
    n_bytes: int  # bytes of this run alone
    seconds: float  # since this run began
    memory: int  # peak memory of this process and its workers in bytes

    @property
    def seconds_left(self) -> float | None:
        """Return the estimated seconds that the rest of the inputs takes at the present rate; None if unknown."""
        if self.total is None or not self.n_bytes:
            return None
        return max(self.total - self.read, 0) * max(self.seconds, 1e-9) / self.n_bytes

    @property
    def documents(self) -> str:
        """Return the progress as a text for people: documents, documents per second, time left and memory."""
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
    """Yield a function that shows the progress of a run: as a bar on a terminal, and in the log every half minute.

    `console` returns the terminal, or None to draw no bar.
    """
    last_line, bar = time.monotonic(), None
    with ExitStack() as drawing:

        def show(progress: RunProgress) -> None:
            nonlocal last_line, bar
            # Imported and started only now, because rich starts a thread, and workers must be forked before any thread
            # starts.
            bar = bar or drawing.enter_context(download_bar(console(), shows="text"))
            bar.show(completed=progress.read, total=progress.total, description=progress.documents)
            now = time.monotonic()
            if not 0 <= now - last_line < LOG_SECONDS:  # a clock that was set back also triggers a line
                log.info("%s", progress)
                last_line = now

        yield show


def clock(seconds: float) -> str:
    """Return a number of seconds as hours, minutes and seconds: 3725 becomes "1:02:05", 65 becomes "1:05"."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"
