"""Time the stages of a job, and draw their progress on a terminal."""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

Item = TypeVar("Item")
Advance = Callable[[int], None]

# Number of items between two updates of a progress bar: drawing must not take longer than the work.
_STEP = 256


class Bar:
    """Draw a progress bar: call it with the number of items just done, or pass it to pooch in place of a tqdm bar.

    Parameters
    ----------
    bars : rich.progress.Progress, optional
        The object that draws the bar, as its only task; None: nothing is drawn.
    """

    total = 0  # bytes of a download; 0 if unknown

    def __init__(self, bars: "Progress | None" = None):
        self._bars = bars

    def __call__(self, n: int) -> None:
        """Advance by `n` items."""
        if self._bars is not None:
            self._bars.advance(self._bars.task_ids[0], n)

    def show(self, **changes: Any) -> None:
        """Change the number of items `completed`, the `total`, or the `description` next to the bar."""
        if self._bars is not None:
            self._bars.update(self._bars.task_ids[0], **changes)

    def update(self, n: int) -> None:
        """Advance by `n` bytes, and draw the current `total`."""
        if self._bars is not None:
            self._bars.tasks[0].total = self.total or None  # rich's own update(total=None) would not change it
        self(n)

    def reset(self) -> None:
        """Set the number of bytes done to 0."""
        self.show(completed=0)
        self.update(0)

    def close(self) -> None:
        """Do nothing, so that the bar of a finished download stays visible; pooch calls this."""


@contextmanager
def download_bar(
    console: "Console | None",
    name: str = "",
    total: int | None = None,
    *,
    shows: Literal["items", "bytes", "text"],
) -> Iterator[Bar]:
    """Yield a progress bar, which is drawn while the ``with`` block runs if `console` is a terminal.

    `name` is the text next to the bar, and `total` the number of items or bytes, None if unknown. `shows` says what
    else stands next to the bar: "items": the number of items and the time; "bytes": the bytes and the speed; "text":
    nothing but the text, which `Bar.show` can change.
    """
    if console is None or not console.is_terminal:
        yield Bar()
        return
    from rich import progress as rich
    from rich.text import Text

    class Count(rich.MofNCompleteColumn):
        def render(self, task: rich.Task) -> Text:
            return super().render(task) if task.total or task.completed else Text()

    text = rich.TextColumn("{task.description}", markup=False)
    columns: dict[str, tuple[rich.ProgressColumn, ...]] = {
        "items": (rich.SpinnerColumn(), text, rich.BarColumn(), Count(), rich.TimeElapsedColumn()),
        "bytes": (text, rich.BarColumn(), rich.DownloadColumn(), rich.TransferSpeedColumn()),
        "text": (rich.BarColumn(10), text),  # narrow, so that the text fits on a terminal of 80 columns
    }
    with rich.Progress(*columns[shows], console=console, transient=True) as bars:
        bars.add_task(name, total=total)
        yield Bar(bars)


class Stages:
    """Measure the time of each stage of a job, and draw a progress bar for the running stage if there is a terminal."""

    def __init__(self, console: "Console | None" = None):
        self.seconds: dict[str, float] = {}  # elapsed seconds per stage, in the order of their first run
        self._console = console

    @contextmanager
    def stage(
        self, name: str, total: int | None = None, *, shows: Literal["items", "bytes"] = "items"
    ) -> Iterator[Bar]:
        """Time the ``with`` block as a stage, and yield a progress bar with the stage's name.

        The bar counts items or bytes, as `shows` says. The times of stages with the same name are added up.
        """
        started = time.perf_counter()
        with download_bar(self._console, name, total, shows=shows) as bar:
            yield bar
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started


def advance_over(items: Iterable[Item], advance: Advance) -> Iterator[Item]:
    """Yield items; after every 256 and at the end, call `advance` with the number of items since the last call."""
    done = 0
    for done, item in enumerate(items, 1):
        yield item
        if done % _STEP == 0:
            advance(_STEP)
    advance(done % _STEP)


def cores() -> int:
    """Return the number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def is_single_threaded() -> bool:
    """Return whether this process has a single thread, so that it can be forked safely; False if not on Linux.

    If another thread held a lock during the fork, the lock would never be released in the child.
    """
    try:
        return sys.platform.startswith("linux") and len(os.listdir("/proc/self/task")) == 1
    except OSError:  # the system has no /proc
        return False


def peak_memory() -> int | None:
    """Return the peak memory of this process so far, in bytes; None if the system does not report it."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
