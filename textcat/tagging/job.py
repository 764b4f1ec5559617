"""Tag a batch of the input, in any process: the result has encoded rows of tags, rejections, and counts."""

import gc
import logging
import multiprocessing
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from platform import node
from typing import TYPE_CHECKING, Any, NamedTuple

from textcat.errors import TextcatError
from textcat.folders import installed_version
from textcat.model import SUM, read_manifest
from textcat.progress import peak_memory
from textcat.reading import Batch, InputSettings, Record, Rejection, batch_records
from textcat.runs.results import BatchResult, Counts, process_name
from textcat.tagging.output import ENCODERS, OutputSettings

if TYPE_CHECKING:
    import numpy as np

    from textcat.model.tagger import Tagger

log = logging.getLogger(__name__)

_CACHE_BYTES = 32 << 20  # of the token cache in each process; with four times as much, tagging is no faster


class Job(NamedTuple):
    """Hold the model and the settings by which a run tags each batch."""

    model: str  # the model's folder, as a worker sees it
    digest: str  # checksum that the model there must have
    spacy: str = ""  # version that a worker must have, because tokens depend on it; "" is any
    input: InputSettings = InputSettings()
    output: OutputSettings = OutputSettings()


def tag_batch(job: Job, batch: Batch) -> BatchResult:
    """Read the records of a batch, tag them, and return their encoded rows, with the rejections and counts.

    A TextcatError is raised if the model is missing, has changed since the run began, or needs another spaCy version.
    """
    from textcat.model.selection import n_held  # here, so that a process which only hands out work stays small

    tagger, counts = load_tagger(job), Counts()
    tagged = BatchResult([], [], counts, process_name())
    items = batch_records(batch, job.input)
    while held := list(islice(items, n_held(tagger))):
        counts.records += len(held)
        counts.inputs.update(item.source for item in held if isinstance(item, Record))  # files; the run sums up inputs
        tag_records(tagger, job.output, [item for item in held if isinstance(item, Record)], tagged)
        tagged.rejections += [item for item in held if isinstance(item, Rejection)]
    counts.add_rejections(tagged.rejections)
    tagged.memory = peak_memory() or 0
    return tagged


def tag_records(tagger: "Tagger", output: OutputSettings, records: list[Record], tagged: BatchResult) -> None:
    """Tag records, and add their encoded rows and counts to `tagged`; a record that cannot be tagged is rejected."""
    if not records:
        return
    try:
        scores = tagger.scores(records)
        tagged.rows.append(_encode(tagger, output, records, scores))
    except MemoryError:  # the run tries again, with fewer batches at a time
        raise
    except Exception as error:
        if len(records) > 1:
            for record in records:
                tag_records(tagger, output, [record], tagged)
            return
        source, position = records[0].source, records[0].position
        log.warning("%s:%d cannot be tagged", source, position, exc_info=error)
        reason = f"It cannot be tagged ({type(error).__name__}: {error})."
        tagged.rejections.append(Rejection(source, position, reason))
    else:
        above, counts = tagger.decide(scores), tagged.counts
        counts.tagged += len(above)
        counts.fields.update(name for record in records for name in record.fields or ())
        counts.untagged += len(above) - int(above.any(axis=1).sum())
        sizes = above.sum(axis=0)
        counts.topics.update({tagger.topics[j]: int(sizes[j]) for j in sizes.nonzero()[0].tolist()})


def _encode(tagger: "Tagger", output: OutputSettings, records: list[Record], scores: "np.ndarray") -> bytes:
    least, everything = output.min_probability, output.everything
    tags = tagger.select(scores, top=output.top, everything=everything, min_probability=least)

    def terms(record: Record, topics: Sequence[str]) -> list[dict[str, float]]:
        from textcat.model.explain import term_contributions  # here, as it is only needed if asked for

        return term_contributions(tagger, record, topics, output.explain)

    options = ({"terms": terms} if output.explain else {}) | ({"names": tagger.topic_names} if output.names else {})
    return ENCODERS[output.to](records, tags, settings=output, **options)


@lru_cache(maxsize=1)
def load_tagger(job: Job) -> "Tagger":
    """Load the tagger of a job, with only the topics that the job writes, and with the job's minimal probability.

    The tagger is kept for the next call with the same job. A TextcatError is raised if the model is missing, has
    changed since the run began, or needs another spaCy version.
    """
    from textcat.model.storage import load  # here, so that a process which only hands out work stays small

    if read_manifest(job.model)[SUM] != job.digest:
        raise TextcatError(f"{job.model} is not the model that this run began with: start again with --restart.")
    if job.spacy not in ("", here := installed_version("spacy")):
        raise TextcatError(f"This run needs spaCy {job.spacy}, but {node()} has {here}: install {job.spacy} there.")
    tagger = load(job.model, prepare=False)
    tagger.features.tokens_.memo_bytes = _CACHE_BYTES
    if job.output.topics:
        tagger = restrict_topics(tagger, job.output.topics)
    if job.output.min_probability is not None and tagger.calibration is not None:
        tagger = tagger.with_min_probability(job.output.min_probability)
    tagger.scores([""])  # makes tables of the vocabulary
    if multiprocessing.parent_process() is not None:
        gc.freeze()  # a search for garbage among loaded objects takes a tenth of a worker's time
    return tagger


def restrict_topics(tagger: "Tagger", topics: tuple[str, ...]) -> "Tagger":
    """Return a copy of a tagger with only the given topics, in the order of the tagger's topics."""
    import numpy as np

    from textcat.model.shortlist import Restriction

    columns = np.array([j for j, topic in enumerate(tagger.topics) if topic in topics], np.intp)
    weights: Any = tagger.weights
    restriction = Restriction(columns, tagger.topics, weights, tagger.bias)
    weights = weights[:, columns]
    return replace(
        tagger,
        weights=np.ascontiguousarray(weights) if isinstance(weights, np.ndarray) else weights,
        bias=tagger.bias[columns],
        thresholds=tagger.thresholds[columns],
        topics=tuple(tagger.topics[j] for j in columns.tolist()),
        train_sizes=tagger.train_sizes[columns],
        facts={name: [values[j] for j in columns.tolist()] for name, values in tagger.facts.items()},
        calibration=None if tagger.calibration is None else tagger.calibration.of_topics(columns),
        support=None,  # whose topics are those of the model
        shortlist=None if tagger.shortlist is None else replace(tagger.shortlist, restriction=restriction),
    )
