"""A batch of input → the rows of its records' tags, what was rejected, and what it all came to."""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
from functools import lru_cache, partial
from importlib.metadata import version
from itertools import islice
from platform import node
from typing import TYPE_CHECKING, NamedTuple

from textcat.errors import TextcatError
from textcat.model.manifest import SUM, read_manifest
from textcat.progress import peak_memory
from textcat.reading import formats
from textcat.reading.records import Batch, InputSettings, Record, Rejection
from textcat.tagging.counts import Counts, kind
from textcat.tagging.output import ENCODERS, OutputSettings, encode_jsonl

if TYPE_CHECKING:
    import numpy as np

    from textcat.model.tagger import Tagger

log = logging.getLogger(__name__)

# Records whose scores are held at the same time: 4096 × 1000 topics are 16 MB.
_BATCH = 4096
# Of the memo of blocks of text, in each process. With four times as much, tagging is no faster.
MEMO_BYTES = 32 << 20


class Job(NamedTuple):
    """What a run does to each of its batches.

    Parameters
    ----------
    model : str
        The model's folder, as a worker sees it.
    digest : str
        The model that must be there.
    spacy : str
        The version of spaCy that must be there, as the tokens depend on it; "" is any.
    input : InputSettings
    output : OutputSettings
    """

    model: str
    digest: str
    spacy: str = ""
    input: InputSettings = InputSettings()
    output: OutputSettings = OutputSettings()


class Tagged(NamedTuple):
    """What became of a batch.

    Parameters
    ----------
    blocks : tuple of bytes
        Rows as an encoder gives them, in the order of the input.
    rejections : tuple of Rejection
        In the order of the input.
    counts : Counts
    process : str
        The process that did it.
    memory : int
        The most memory that process has held so far, in bytes; 0 where the system does not tell.
    """

    blocks: tuple[bytes, ...]
    rejections: tuple[Rejection, ...]
    counts: Counts
    process: str
    memory: int


def tag_batch(job: Job, batch: Batch) -> Tagged:
    """Read the records of a batch, tag them, and encode their rows; in any process that sees the model.

    Raises
    ------
    TextcatError
        If there is no model, another one than the job is for, or another spaCy.
    """
    work = _Work(_tagger(job.model, job.digest, job.spacy), job.output)
    items = formats.records(batch, job.input)
    while some := list(islice(items, _BATCH)):
        work.counts.records += len(some)
        work.tag([item for item in some if isinstance(item, Record)])
        work.rejections += [item for item in some if isinstance(item, Rejection)]
    work.counts.rejected = len(work.rejections)
    work.counts.reasons.update(kind(rejection.reason) for rejection in work.rejections)
    return Tagged(tuple(work.blocks), tuple(work.rejections), work.counts, process_name(), peak_memory() or 0)


def process_name() -> str:
    """Name this process among those of all machines."""
    return f"{node()}:{os.getpid()}"


class _Work:
    """What has been made of a batch so far."""

    def __init__(self, tagger: Tagger, output: OutputSettings):
        self.counts = Counts()
        self.blocks: list[bytes] = []
        self.rejections: list[Rejection] = []
        self._tagger = tagger
        self._output = output
        self._encode = ENCODERS[output.to] if not output.explain else partial(encode_jsonl, terms=self._terms)

    def tag(self, records: list[Record]) -> None:
        """Tag and encode records; if one of them cannot be tagged, it is rejected, and the others are tagged alone."""
        if not records:
            return
        try:
            scores = self._tagger.scores(records)
            tags = self._tagger.tags_of(scores, top=self._output.top, everything=self._output.everything)
            self.blocks.append(self._encode(records, tags))
        except MemoryError:  # it may be enough when less is done at the same time
            raise
        except Exception as error:
            if len(records) > 1:
                for record in records:
                    self.tag([record])
            else:
                self._reject(records[0], error)
        else:
            self._count(scores > self._tagger.thresholds, len(tags))

    def _terms(self, record: Record, topic: str) -> dict[str, float]:
        reasons = self._tagger.explain(record, topic, self._output.explain)
        return {reason.term: reason.contribution for reason in reasons}

    def _reject(self, record: Record, error: Exception) -> None:
        log.warning("%s:%d cannot be tagged", record.source, record.position, exc_info=error)
        reason = f"It cannot be tagged ({type(error).__name__}: {error})."
        self.rejections.append(Rejection(record.source, record.position, reason))

    def _count(self, above: np.ndarray, n_tagged: int) -> None:
        self.counts.tagged += n_tagged
        self.counts.untagged += len(above) - int(above.any(axis=1).sum())
        found = above.sum(axis=0)
        self.counts.topics.update({self._tagger.topics[j]: int(found[j]) for j in found.nonzero()[0].tolist()})


@lru_cache(maxsize=1)
def _tagger(model: str, digest: str, spacy: str) -> Tagger:
    from textcat.model.storage import load  # here, so that a process which only hands out work stays small

    found = read_manifest(model)[SUM]
    if found != digest:
        raise TextcatError(f"{model} is not the model that this run has begun with: start anew with --restart.")
    if spacy not in ("", version("spacy")):
        raise TextcatError(
            f"This run needs spaCy {spacy}, and on {node()} there is {version('spacy')}: install it there."
        )
    tagger = load(model, prepare=False)
    tagger.features.tokens_.memo_bytes = MEMO_BYTES
    tagger.features.tokens_.prepare()
    if multiprocessing.parent_process() is not None:
        # In a worker, what has been loaded stays: to look through it for garbage takes a tenth of the time.
        gc.freeze()
    return tagger
