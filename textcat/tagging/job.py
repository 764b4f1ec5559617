"""A batch of input → the rows of its records' tags, what was rejected, and counts of both; in any process."""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
from dataclasses import replace
from functools import lru_cache, partial
from importlib.metadata import version
from itertools import islice
from platform import node
from typing import TYPE_CHECKING, NamedTuple

from textcat.errors import TextcatError
from textcat.model import SUM, read_manifest
from textcat.progress import peak_memory
from textcat.reading import formats
from textcat.reading.records import Batch, InputSettings, Record, Rejection
from textcat.tagging.output import ENCODERS, OutputSettings
from textcat.tagging.summary import Counts, kind_of_reason

if TYPE_CHECKING:
    import numpy as np

    from textcat.model.tagger import Tag, Tagger

log = logging.getLogger(__name__)

# Records whose scores are held at the same time: 4096 × 1000 topics are 16 MB.
_HELD = 4096
# Of the token cache, in each process. With four times as much, tagging is no faster.
_CACHE_BYTES = 32 << 20


class Job(NamedTuple):
    """What a run does to each batch of its input."""

    model: str  # the model's folder, as a worker sees it
    digest: str  # of the model that must be there
    spacy: str = ""  # the version that must be there, as the tokens depend on it; "" is any
    input: InputSettings = InputSettings()
    output: OutputSettings = OutputSettings()


class _TaggedBatch(NamedTuple):
    """What became of a batch."""

    rows: tuple[bytes, ...]  # as an encoder returns them, in the order of the input
    rejections: tuple[Rejection, ...]
    counts: Counts
    process: str  # that did it, see `process_name`
    memory: int  # the most that process has held so far, in bytes; 0 where the system does not tell


def tag_batch(job: Job, batch: Batch) -> _TaggedBatch:
    """Read the records of a batch, tag them, and encode their rows.

    Parameters
    ----------
    job, batch : Job, Batch

    Returns
    -------
    Rows, rejections and counts.

    Raises
    ------
    TextcatError
        If there is no model, another one than the job is for, or another spaCy.
    """
    work = _Work(_load(job.model, job.digest, job.spacy, job.output.topics, job.output.min_probability), job.output)
    items = formats.records(batch, job.input)
    while held := list(islice(items, _HELD)):
        work.counts.records += len(held)
        work.tag([item for item in held if isinstance(item, Record)])
        work.rejections += [item for item in held if isinstance(item, Rejection)]
    work.counts.rejected = len(work.rejections)
    work.counts.reasons.update(kind_of_reason(rejection.reason) for rejection in work.rejections)
    return _TaggedBatch(tuple(work.rows), tuple(work.rejections), work.counts, process_name(), peak_memory() or 0)


def process_name() -> str:
    """Return a name of this process among those of all machines."""
    return f"{node()}:{os.getpid()}"


class _Work:
    """What has been made of a batch so far."""

    def __init__(self, tagger: Tagger, output: OutputSettings):
        self.counts = Counts()
        self.rows: list[bytes] = []
        self.rejections: list[Rejection] = []
        self._tagger = tagger
        self._output = output
        self._encode = ENCODERS[output.to] if not output.explain else partial(ENCODERS["jsonl"], terms=self._terms)

    def tag(self, records: list[Record]) -> None:
        """Tag and encode records; if one of them cannot be tagged, it is rejected, and the others are tagged alone."""
        if not records:
            return
        try:
            scores = self._tagger.scores(records)
            tags = self._tags(scores)
            self.rows.append(self._encode(records, tags))
        except MemoryError:  # it may be enough when less is done at the same time
            raise
        except Exception as error:
            if len(records) == 1:
                self._reject(records[0], error)
                return
            for record in records:
                self.tag([record])
        else:
            self._count(self._tagger.decide(scores))

    def _tags(self, scores: np.ndarray) -> list[list[Tag]]:
        top, least = self._output.top, self._output.min_probability
        tags = self._tagger.tags_of(scores, top=top, everything=self._output.everything)
        if top is None or least is None:
            return tags
        return [[tag for tag in of_record if (tag.probability or 0) >= least] for of_record in tags]

    def _terms(self, record: Record, topic: str) -> dict[str, float]:
        reasons = self._tagger.explain(record, topic, self._output.explain)
        return {reason.term: reason.contribution for reason in reasons}

    def _reject(self, record: Record, error: Exception) -> None:
        log.warning("%s:%d cannot be tagged", record.source, record.position, exc_info=error)
        reason = f"It cannot be tagged ({type(error).__name__}: {error})."
        self.rejections.append(Rejection(record.source, record.position, reason))

    def _count(self, above: np.ndarray) -> None:
        self.counts.tagged += len(above)
        self.counts.untagged += len(above) - int(above.any(axis=1).sum())
        per_topic = zip(self._tagger.topics, above.sum(axis=0).tolist(), strict=True)
        self.counts.topics.update({topic: n for topic, n in per_topic if n})


@lru_cache(maxsize=1)
def _load(model: str, digest: str, spacy: str, topics: tuple[str, ...], min_probability: float | None) -> Tagger:
    """Return the tagger of a job, which has no other topics and thresholds than those asked for."""
    from textcat.model.storage import load  # here, so that a process which only hands out work stays small

    if read_manifest(model)[SUM] != digest:
        raise TextcatError(f"{model} is not the model that this run has begun with: start anew with --restart.")
    if spacy not in ("", version("spacy")):
        raise TextcatError(
            f"This run needs spaCy {spacy}, and on {node()} there is {version('spacy')}: install it there."
        )
    tagger = load(model, prepare=False)
    tagger.features.tokens_.memo_bytes = _CACHE_BYTES
    tagger.features.tokens_.prepare()
    if topics:
        tagger = _restricted(tagger, topics)
    if min_probability is not None and tagger.calibration is not None:
        tagger = replace(tagger, thresholds=tagger.calibration.threshold(min_probability))
    if multiprocessing.parent_process() is not None:
        # In a worker, what has been loaded stays: to look through it for garbage takes a tenth of the time.
        gc.freeze()
    return tagger


def _restricted(tagger: Tagger, topics: tuple[str, ...]) -> Tagger:
    """Return a tagger with some of the topics, in the order of the model."""
    import numpy as np

    columns = np.array([j for j, topic in enumerate(tagger.topics) if topic in topics], np.intp)
    return replace(
        tagger,
        weights=np.ascontiguousarray(tagger.weights[:, columns]),
        bias=tagger.bias[columns],
        thresholds=tagger.thresholds[columns],
        topics=tuple(tagger.topics[j] for j in columns.tolist()),
        train_sizes=tagger.train_sizes[columns],
        facts={name: [values[j] for j in columns.tolist()] for name, values in tagger.facts.items()},
        calibration=None if tagger.calibration is None else tagger.calibration.of_topics(columns),
    )
