"""What became of the records of an archive → counts that add up, progress while they grow, and a summary in the end."""

from __future__ import annotations

import logging
import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from textcat.progress import bar_on

if TYPE_CHECKING:
    from rich.console import Console

    from textcat.reading.batches import PipeState
    from textcat.reading.records import Checkpoint
    from textcat.reading.sources import Source

log = logging.getLogger(__name__)

_MAX_REASONS = 100  # that are counted each by itself: what a reason quotes may be anything
_OTHER_REASONS = "other reasons"
_RATIO = 3.0  # thresholds that suit F1 let more or fewer documents pass than have the topic, but seldom so many
_P = 0.001  # of one such topic or more, if all rates were those of training
_LOG_SECONDS = 30.0  # between two lines of the log


@dataclass
class Counts:
    """How many documents there were, and what became of them.

    Parameters
    ----------
    records : int
        All that the input holds: whatever a reader yielded, document or rejection.
    tagged : int
        Documents that were written.
    rejected : int
    untagged : int
        Tagged documents that score above the threshold of no topic.
    topics : Counter of str
        Documents above the threshold of each topic, whatever else is asked to be written.
    reasons : Counter of str
        Rejections, by reason without its numbers and quotations.
    """

    records: int = 0
    tagged: int = 0
    rejected: int = 0
    untagged: int = 0
    topics: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, other: Counts) -> None:
        """Add the counts of another stretch of the input."""
        self.records += other.records
        self.tagged += other.tagged
        self.rejected += other.rejected
        self.untagged += other.untagged
        self.topics.update(other.topics)
        for reason, n in other.reasons.items():
            separate = reason in self.reasons or len(self.reasons) < _MAX_REASONS
            self.reasons[reason if separate else _OTHER_REASONS] += n

    def as_dict(self) -> dict[str, Any]:
        """Return the counts as JSON can hold them."""
        return {**vars(self), "topics": dict(self.topics), "reasons": dict(self.reasons)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Counts:
        """Return the counts that `as_dict` has returned as a dict."""
        counters = {name: Counter(values[name]) for name in ("topics", "reasons")}
        return cls(**{**values, **counters})


def kind_of_reason(reason: str) -> str:
    """Return a reason without what differs from case to case: numbers and quotations.

    >>> kind_of_reason("It is not utf-8 (byte 12).")
    'It is not utf-8 (byte …).'
    """
    return re.sub(r"(?<![\w-])\d+(?![\w-])|'[^']*'", "…", reason)


# --- topics that an archive has more or less often than training -----------------------------------------------------


class Drift(NamedTuple):
    """A topic that an archive has much more or less often than training.

    Parameters
    ----------
    topic : str
    rate : float
        Fraction of the archive's documents above the topic's threshold, in [0, 1].
    prevalence : float
        Fraction of the training documents that have it, in [0, 1].
    g : float
        How far that is from chance, see `log_likelihood_ratio`.
    """

    topic: str
    rate: float
    prevalence: float
    g: float


def find_drifts(counts: Counts, train_sizes: Mapping[str, int], train_documents: int) -> list[Drift]:
    """Return the topics whose rate is more than three times their prevalence, or less than a third, beyond chance.

    Chance is that the archive's documents and those of training are drawn from the same ones: p < .001, divided by the
    number of topics.

    Parameters
    ----------
    counts : Counts
        Of the archive.
    train_sizes : mapping of str to int
        Training documents of each topic.
    train_documents : int

    Returns
    -------
    list of Drift
        The farthest from chance first.
    """
    drifts = []
    for topic, size in train_sizes.items():
        rate, prevalence = counts.topics[topic] / max(counts.tagged, 1), size / train_documents
        g = log_likelihood_ratio(counts.topics[topic], counts.tagged, size, train_documents)
        if max(rate, prevalence) > _RATIO * min(rate, prevalence) and _p_value(g) < _P / len(train_sizes):
            drifts.append(Drift(topic, rate, prevalence, g))
    return sorted(drifts, key=lambda drift: -drift.g)


def log_likelihood_ratio(k: int, n: int, other_k: int, other_n: int) -> float:
    """Return G² = 2·Σ observed·ln(observed / expected) over the table of two samples, with and without a feature.

    Where both are drawn from the same population, it has a χ² distribution with one degree of freedom, and other than
    Pearson's statistic also where a feature is rare.

    Source: T. Dunning, Accurate methods for the statistics of surprise and coincidence, Computational Linguistics 19
    (1993).

    Parameters
    ----------
    k, other_k : int
        Documents that have the feature,
    n, other_n : int
        of so many.

    Returns
    -------
    float
        Not negative; 0 where a sample is empty.
    """
    if not n or not other_n:
        return 0.0
    share = (k + other_k) / (n + other_n)
    table = [
        (k, n * share),
        (n - k, n * (1 - share)),
        (other_k, other_n * share),
        (other_n - other_k, other_n * (1 - share)),
    ]
    return 2 * sum(observed * math.log(observed / expected) for observed, expected in table if observed)


def _p_value(g: float) -> float:
    """Return how likely a χ² of one degree of freedom is at least so large."""
    return math.erfc(math.sqrt(max(g, 0.0) / 2))


# --- the end ---------------------------------------------------------------------------------------------------------


class RunState(NamedTuple):
    """How far a run has come, as its journal says.

    Parameters
    ----------
    counts : Counts
    shards : int
        Their number; the next one gets it for its name.
    checkpoint : Checkpoint, optional
        Where the input is to be read from; None is its beginning.
    read : int
        Bytes of the inputs up to there.
    rejected_bytes : int
        Length of the file of rejections.
    finished : bool
    pipes : dict of str to PipeState
        What had been read of each pipe among the inputs.
    """

    counts: Counts
    shards: int = 0
    checkpoint: Checkpoint | None = None
    read: int = 0
    rejected_bytes: int = 0
    finished: bool = False
    pipes: Mapping[str, PipeState] = {}


class Summary(NamedTuple):
    """What a run has written, and what it took.

    Parameters
    ----------
    manifest : dict
        Of the model.
    sources : sequence of Source
        The inputs.
    topics : tuple of str
        Those that tags were asked for.
    counts : Counts
        Of all that is written, by earlier runs on the same folder, too.
    before : RunState
        What earlier runs had written.
    shards : int
    formats : list of str
        What the inputs were read as in this run.
    seconds : float
        Of this run.
    memory : int
        The most that it and its workers have held, in bytes.
    """

    manifest: dict[str, Any]
    sources: Sequence[Source]
    topics: tuple[str, ...]
    counts: Counts
    before: RunState
    shards: int
    formats: list[str]
    seconds: float
    memory: int

    def __repr__(self) -> str:
        counts = (f"{n:,} {what}" for what, n in vars(self.counts).items() if isinstance(n, int))
        return f"<Summary: {', '.join(counts)}>"

    @property
    def train_sizes(self) -> dict[str, int]:
        """Training documents of each topic that tags were asked for, in the order of the model."""
        sizes = zip(self.manifest["topics"], self.manifest["train_sizes"], strict=True)
        return {topic: size for topic, size in sizes if topic in self.topics}

    @property
    def drifts(self) -> list[Drift]:
        """The topics whose rates differ much from those of training."""
        return find_drifts(self.counts, self.train_sizes, self.manifest["train_documents"])


# --- progress --------------------------------------------------------------------------------------------------------


class RunProgress(NamedTuple):
    """How far a run has come.

    Parameters
    ----------
    counts : Counts
        Of all that is written, by earlier runs on the same folder, too.
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
    def seconds_left(self) -> float | None:
        """How long the rest takes at this rate; None if that cannot be known."""
        if self.total is None or not self.n_bytes:
            return None
        return max(self.total - self.read, 0) * max(self.seconds, 1e-9) / self.n_bytes

    @property
    def documents(self) -> str:
        """What is written and how fast, in words."""
        left = "" if self.seconds_left is None else f", {clock(self.seconds_left)} left"
        seconds = max(self.seconds, 1e-9)
        return (
            f"{self.counts.records:,} documents, {self.counts.rejected:,} rejected, "
            f"{self.records / seconds:,.0f}/s, {self.n_bytes / seconds / 1e6:.1f} MB/s{left}, "
            f"{self.memory / 2**20:,.0f} MB"
        )

    def __str__(self) -> str:
        read = (
            megabytes(self.read)
            if not self.total
            else f"{min(self.read / self.total, 1):.0%} of {megabytes(self.total)}"
        )
        return f"{self.documents} of memory, {read} read"


ShowProgress = Callable[[RunProgress], None]


@contextmanager
def progress_shown(console: Console | None = None) -> Iterator[ShowProgress]:
    """Draw the progress of a run while a block lasts, and log it every half minute.

    Parameters
    ----------
    console : rich.console.Console, optional
        A bar is drawn there if it is a terminal.

    Yields
    ------
    callable
        To be called with the progress.
    """
    last_line = time.monotonic()
    with bar_on(console, shows="text") as bar:

        def show(progress: RunProgress) -> None:
            nonlocal last_line
            bar.show(progress.read, progress.total, progress.documents)
            now = time.monotonic()
            if not 0 <= now - last_line < _LOG_SECONDS:  # a clock that was set back counts as late
                log.info("%s", progress)
                last_line = now

        yield show


def clock(seconds: float) -> str:
    """Return seconds as hours, minutes and seconds.

    >>> clock(3725)
    '1:02:05'
    """
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"


def megabytes(n_bytes: int) -> str:
    """Return a number of bytes in MB, with a digit behind the point below 10 MB."""
    return f"{n_bytes / 1e6:,.{0 if n_bytes >= 1e7 else 1}f} MB"
