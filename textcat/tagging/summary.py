"""The results of an archive's records → counts that add up, progress while they grow, and a summary at the end."""

import logging
import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from textcat.progress import download_bar

if TYPE_CHECKING:
    from rich.console import Console

    from textcat.reading.records import Checkpoint, PipeState
    from textcat.reading.sources import Source

log = logging.getLogger(__name__)

_MAX_REASONS = 100  # that are counted each by itself: what a reason quotes may be anything
_RATIO = 3.0  # thresholds that suit F1 let more or fewer documents pass than have the topic, but seldom so many
_P = 0.001  # of one such topic or more, if all rates were those of training
_LOG_SECONDS = 30.0  # between two lines of the log


@dataclass
class Counts:
    """Numbers of documents: read, tagged, rejected, and with each topic."""

    records: int = 0  # all that the input holds, document or rejection
    tagged: int = 0  # documents that were written
    rejected: int = 0
    untagged: int = 0  # tagged documents that score above the threshold of no topic
    topics: Counter[str] = field(default_factory=Counter)  # documents above each threshold, whatever is written
    reasons: Counter[str] = field(default_factory=Counter)  # of rejections, without numbers and quotations

    def add(self, other: "Counts") -> None:
        """Add the counts of another stretch of the input."""
        for name in ("records", "tagged", "rejected", "untagged"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.topics.update(other.topics)
        for reason, n in other.reasons.items():
            is_counted = reason in self.reasons or len(self.reasons) < _MAX_REASONS
            self.reasons[reason if is_counted else "other reasons"] += n

    def as_dict(self) -> dict[str, Any]:
        """Return the counts as JSON can hold them."""
        return {**vars(self), "topics": dict(self.topics), "reasons": dict(self.reasons)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Counts":
        """Return the counts that `as_dict` has returned as a dict."""
        return cls(**values | {name: Counter(values[name]) for name in ("topics", "reasons")})


def kind_of_reason(reason: str) -> str:
    """Return a reason without numbers and quotations, which differ from case to case: ``It is not utf-8 (byte …).``."""
    return re.sub(r"(?<![\w-])\d+(?![\w-])|'[^']*'", "…", reason)


class Drift(NamedTuple):
    """A topic that is much more or less frequent in an archive than in training."""

    topic: str
    rate: float  # fraction of the archive's documents above the topic's threshold
    prevalence: float  # fraction of the training documents that have it
    g: float  # how far that is from chance, see `log_likelihood_ratio`


def log_likelihood_ratio(k: int, n: int, other_k: int, other_n: int) -> float:
    """Return G² = 2·Σ observed·ln(observed / expected) over the table of two samples, with and without a feature.

    `k` of a sample's `n` documents have the feature; G² is 0 if a sample is empty. If both samples are drawn from the
    same population, it has a χ² distribution with one degree of freedom, and unlike Pearson's statistic also for a
    rare feature. Source: T. Dunning, Accurate methods for the statistics of surprise and coincidence, Computational
    Linguistics 19 (1993).
    """
    if not n or not other_n:
        return 0.0
    share = (k + other_k) / (n + other_n)
    samples = ((k, n), (other_k, other_n))
    table = [cell for k, n in samples for cell in ((k, n * share), (n - k, n * (1 - share)))]
    return 2 * sum(observed * math.log(observed / expected) for observed, expected in table if observed)


class RunState(NamedTuple):
    """The progress of a run by its journal."""

    counts: Counts
    shards: int = 0  # their number; the next one gets it for its name
    checkpoint: "Checkpoint | None" = None  # where the input is to be read from; None: its beginning
    read: int = 0  # bytes of the inputs up to there
    rejected_bytes: int = 0  # length of the file of rejections
    finished: bool = False
    pipes: Mapping[str, "PipeState"] = {}  # what had been read of each pipe among the inputs, by its name


class Summary(NamedTuple):
    """What a run has written, and its time and memory."""

    manifest: dict[str, Any]  # of the model
    sources: "Sequence[Source]"  # the inputs
    topics: tuple[str, ...]  # those that tags were asked for
    counts: Counts  # of all that is written, by earlier runs on the same folder, too
    before: RunState  # what earlier runs had written
    shards: int
    formats: list[str]  # what the inputs were read as in this run
    seconds: float  # of this run
    memory: int  # the most that it and its workers have held, in bytes

    def __repr__(self) -> str:
        counts = (f"{n:,} {what}" for what, n in vars(self.counts).items() if isinstance(n, int))
        return f"<Summary: {', '.join(counts)}>"

    @property
    def train_sizes(self) -> dict[str, int]:
        """Number of training documents of each requested topic, in the order of the model."""
        sizes, wanted = zip(self.manifest["topics"], self.manifest["train_sizes"], strict=True), set(self.topics)
        return {topic: size for topic, size in sizes if topic in wanted}

    @property
    def drifts(self) -> list[Drift]:
        """Topics whose rate is more than three times their prevalence, or less than a third, significantly.

        Significant is p < .001, divided by the number of topics, if the documents of archive and training were drawn
        from the same population. The most significant topic comes first.
        """
        drifts, sizes, train_documents = [], self.train_sizes, self.manifest["train_documents"]
        for topic, size in sizes.items():
            n, tagged = self.counts.topics[topic], self.counts.tagged
            rate, prevalence = n / max(tagged, 1), size / train_documents
            g = log_likelihood_ratio(n, tagged, size, train_documents)
            p = math.erfc(math.sqrt(max(g, 0.0) / 2))  # that a χ² of one degree of freedom is at least so large
            if max(rate, prevalence) > _RATIO * min(rate, prevalence) and p < _P / len(sizes):
                drifts.append(Drift(topic, rate, prevalence, g))
        return sorted(drifts, key=lambda drift: -drift.g)


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
        """Seconds for the rest at this rate; None if not known."""
        if self.total is None or not self.n_bytes:
            return None
        return max(self.total - self.read, 0) * max(self.seconds, 1e-9) / self.n_bytes

    @property
    def documents(self) -> str:
        """Number of documents and speed, in words."""
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
            if not 0 <= now - last_line < _LOG_SECONDS:  # a clock that was set back counts as late
                log.info("%s", progress)
                last_line = now

        yield show


def clock(seconds: float) -> str:
    """Return seconds as hours, minutes and seconds: 3725 as 1:02:05."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"
