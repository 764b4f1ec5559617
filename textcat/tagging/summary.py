"""Pieces that are done → how far a run has come, and in the end what it came to."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import NamedTuple

from textcat.progress import peak_memory
from textcat.reading.records import Batch, Block
from textcat.tagging.counts import Counts
from textcat.tagging.drift import Drift, drifts
from textcat.tagging.job import Tagged, process_name
from textcat.tagging.meter import Reached
from textcat.tagging.plan import Plan
from textcat.tagging.shards import Done

log = logging.getLogger(__name__)

Show = Callable[[Reached], None]


class Summary(NamedTuple):
    """What a run came to.

    Parameters
    ----------
    plan : Plan
    counts : Counts
        Of all that is done, earlier runs on the same folder included.
    before : Done
        How far the earlier ones had come.
    shards : int
    formats : list of str
        What the inputs were read as in this run.
    seconds : float
        Of this run.
    memory : int
        The most that it and its workers have held, in bytes.
    """

    plan: Plan
    counts: Counts
    before: Done
    shards: int
    formats: list[str]
    seconds: float
    memory: int

    @property
    def drifts(self) -> list[Drift]:
        """The topics whose rates differ much from those of training."""
        sizes = dict(zip(self.plan.manifest["topics"], self.plan.manifest["train_sizes"], strict=True))
        return drifts(self.counts, sizes, self.plan.manifest["train_documents"])


class Tally:
    """What a run has come to so far.

    Parameters
    ----------
    plan : Plan
    before : Done
        How far earlier runs had come.
    show : callable, optional
        Is told after each batch.
    """

    def __init__(self, plan: Plan, before: Done, show: Show | None):
        self._plan, self._before, self._show = plan, before, show
        self._counts = Counts()
        self._counts.add(before.counts)
        self._started = time.monotonic()
        self._memory: dict[str, int] = {}
        self._formats: set[str] = set()

    def add(self, batch: Batch, tagged: Tagged) -> None:
        """Count a batch, and show it."""
        self._counts.add(tagged.counts)
        self._memory[tagged.process] = tagged.memory
        self._formats.update(block.format for block in batch.blocks if isinstance(block, Block))
        if self._show is not None:
            self._show(
                Reached(
                    self._counts,
                    batch.read,
                    self._plan.total,
                    self._counts.records - self._before.counts.records,
                    batch.read - self._before.read,
                    self._seconds(),
                    self._all_memory(),
                )
            )

    def summary(self, shards: int) -> Summary:
        """Sum up the run."""
        formats, memory, counts = sorted(self._formats), self._all_memory(), self._counts
        log.info("Finished: %d documents, %d tagged, %d rejected", counts.records, counts.tagged, counts.rejected)
        return Summary(self._plan, self._counts, self._before, shards, formats, self._seconds(), memory)

    def _seconds(self) -> float:
        return max(time.monotonic() - self._started, 0.0)

    def _all_memory(self) -> int:
        return sum({**self._memory, process_name(): peak_memory() or 0}.values())
