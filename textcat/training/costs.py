"""Train on a sample of a corpus, and measure the time and memory of each stage, and the size of the model."""

from __future__ import annotations

import logging
import os
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from textcat.base.progress import Bar, Stages
from textcat.corpus.documents import Corpus
from textcat.evaluation.bands import MANY_TOPICS
from textcat.features.rows import release_memory
from textcat.model.measure import CELLS_AT_ONCE
from textcat.model.storage import write_model
from textcat.recipes.recipe import PromiseSettings, Recipe
from textcat.training.checks import TrainingOptions
from textcat.training.cross_validation import folder_beside
from textcat.training.memory import peak_since_reset, reset_peak, used_memory
from textcat.training.steps import train_and_evaluate

_Item = TypeVar("_Item")


class Seconds(NamedTuple):
    """Elapsed seconds, and processor seconds of all threads of this process."""

    by_clock: float = 0.0
    of_threads: float = 0.0

    @classmethod
    def now(cls) -> Seconds:
        """Return the present readings of both clocks; only differences between two readings are meaningful."""
        return cls(time.perf_counter(), time.process_time())

    def times(self, factor: float) -> Seconds:
        """Return both numbers of seconds multiplied by a factor."""
        return Seconds(factor * self.by_clock, factor * self.of_threads)

    def plus(self, other: Seconds) -> Seconds:
        """Return the sums of these and the other seconds."""
        return Seconds(self.by_clock + other.by_clock, self.of_threads + other.of_threads)

    def since(self, then: Seconds) -> Seconds:
        """Return the seconds from an earlier reading, `then`, to this reading."""
        return self.plus(then.times(-1))


class Cost(NamedTuple):
    """The time and memory that training a model on `documents` documents, and evaluating it on `tested`, took.

    `seconds` and `memory` (bytes at the peak) have an entry for each stage; `used_memory` is the memory of the process
    before the first stage, None if unknown; `model_bytes` is the size of the saved model.
    """

    documents: int
    tested: int
    seconds: Mapping[str, Seconds]  # by stage; a stage that did not run has no entry
    used_memory: int | None  # bytes before training; None: the system does not report them
    memory: Mapping[str, float]  # peak bytes of each stage above `used_memory`; {} if unknown
    model_bytes: float


class MeasuredStages(Stages):
    """Measure for each stage the elapsed seconds, the processor seconds of all threads, and the peak memory.

    `memory` has the peak of each stage in bytes, above the `used` bytes of the process before the first stage.
    """

    def __init__(self) -> None:
        super().__init__()
        release_memory()
        self.taken: defaultdict[str, Seconds] = defaultdict(Seconds)
        self.memory: defaultdict[str, float] = defaultdict(float)
        self.used = used_memory()

    @contextmanager
    def stage(self, name: str, total: int | None = None, **options: Any) -> Iterator[Bar]:
        """Time the ``with`` block as a stage, as `Stages.stage` does, and measure its peak memory."""
        started, is_reset = Seconds.now(), reset_peak()
        with super().stage(name, total, **options) as bar:
            yield bar
        self.taken[name] = self.taken[name].plus(Seconds.now().since(started))
        peak = peak_since_reset()
        if is_reset and self.used is not None and peak is not None:
            self.memory[name] = max(self.memory[name], float(peak - self.used))


def evenly_spaced(items: Sequence[_Item], n: int) -> list[_Item]:
    """Return n of the items, evenly spaced from the first to the last; all items if there are at most n."""
    return [items[i] for i in np.linspace(0, len(items) - 1, min(n, len(items))).astype(int)]


def sampled(corpus: Corpus, n: int, n_topics: int) -> Corpus:
    """Return a corpus of n of the training documents, and of `n_topics` of the topics that these documents have.

    If the corpus has no more than `n_topics` topics, all are kept. Test documents are sampled from those with one of
    these topics: as large a share of all test documents as n is of the training documents or, with 1,000 topics or
    more, as many as are scored at a time. The documents are copies, because training may clear their texts.
    """
    train, topics = evenly_spaced(corpus.train, n), corpus.topics
    if n_topics < len(topics):
        seen = {topic for document in train for topic in document.topics}
        topics = tuple(evenly_spaced([topic for topic in topics if topic in seen] or topics, n_topics))
    kept = set(topics)
    tested = [document for document in corpus.test if not kept.isdisjoint(document.topics)]
    n_tested = max(len(corpus.test) * n // len(corpus.train), 1)
    if len(corpus.topics) >= MANY_TOPICS:
        n_tested = max(CELLS_AT_ONCE // len(corpus.topics), 1)
    parts = (train, evenly_spaced(tested, n_tested))
    train, test = ([replace(document, zones=dict(document.zones)) for document in part] for part in parts)
    return replace(corpus, train=train, test=test, topics=topics)


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Suppress warnings, issued or logged: users get them when the whole corpus is trained on."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def cost_of_training(sample: Corpus, recipe: Recipe, options: TrainingOptions) -> Cost:
    """Train, evaluate and save a model of a sample in a temporary folder; return the time and memory that this took.

    If `options.rows_dir` is given, document vectors are kept in a temporary folder beside it, otherwise in memory.
    """
    recipe = replace(recipe, promise=PromiseSettings())  # a sample may be too small for promises, which cost little
    stages = MeasuredStages()
    with folder_beside(options.rows_dir) as rows, _without_warnings():
        options = replace(options, rows_dir=rows)
        tagger = train_and_evaluate(sample, recipe, options, stages=stages, keep_texts=False)
    with tempfile.TemporaryDirectory() as folder:
        with stages.stage("save"):
            write_model(tagger, Path(folder))
        size = sum(entry.stat().st_size for entry in os.scandir(folder))
    return Cost(len(sample.train), len(sample.test), stages.taken, stages.used, stages.memory, size)
