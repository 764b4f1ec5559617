"""Tag batches in other processes, and add up the results; for runs that write to a folder and to a stream."""

import logging
from collections.abc import Generator, Iterable
from contextlib import AbstractContextManager, closing
from functools import partial

from textcat.base.errors import TextcatError
from textcat.base.surrogates import escape_undecodable
from textcat.reading import Batch, Block, Rejection
from textcat.runs.inputs import total_size
from textcat.runs.progress import RunState, ShowProgress
from textcat.runs.results import BatchResult, Counts
from textcat.runs.tally import RunTally
from textcat.runs.workers import WorkerPool, open_workers, ordered_map
from textcat.tagging.job import load_taggers, tag_batch
from textcat.tagging.planning import TaggingPlan
from textcat.tagging.rejection_limit import counts_to_judge
from textcat.tagging.summary import Summary

_log = logging.getLogger(__name__)

_MAX_LOGGED = 100  # maximum number of inputs whose formats are logged


def workers_of(plan: TaggingPlan, n_bytes: int | None) -> AbstractContextManager[WorkerPool]:
    """Return the workers of a plan, for a ``with`` block: this process, or other processes that have loaded the model.

    `n_bytes` is the stored size of the inputs; None if it is unknown.
    """
    return open_workers(plan.jobs, n_bytes, plan.scheduler, partial(load_taggers, plan.job))


def tagged_batches(
    plan: TaggingPlan, batches: Iterable[Batch], workers: WorkerPool, tally: "Tally"
) -> Generator[tuple[Batch, BatchResult]]:
    """Tag batches in the workers; yield each batch with its result, in order.

    A result is added to `tally` when the caller asks for the next one, and has therefore written it. A TextcatError is
    raised if more documents are rejected than the plan allows.
    """
    results = ordered_map(partial(tag_batch, plan.job), batches, workers, plan.start_over)
    with closing(tally.run.followed(results, tally.add)) as followed:
        for batch, tagged in followed:
            refuse_faults(plan, tagged.rejections)
            yield batch, tagged


def refuse_faults(plan: TaggingPlan, rejections: Iterable[Rejection]) -> None:
    """Raise a TextcatError at the first rejection that is an error, if the plan is strict."""
    fault = next((one for one in rejections if one.is_fault), None) if plan.strict else None
    if fault is not None:
        raise TextcatError(f"{fault} The run ends because of --strict: mend it, or leave --strict out.")


class Tally:
    """Add up the formats, rejections and times to read again of a run; `run` adds up its counts and cost."""

    def __init__(self, plan: TaggingPlan, before: RunState, progress: ShowProgress | None):
        # The total bytes of a part of the inputs are unknown, because large files are divided among parts.
        self.run = RunTally(before, total_size(before.sources) if plan.part is None else None, progress)
        self._plan, self._before = plan, before
        self._formats: set[str] = set()
        self._wake = before.wake
        self._of_this_run = Counts()  # documents that were read, and those that were rejected
        self._last_fault: Rejection | str = ""

    def add(self, batch: Batch, tagged: BatchResult) -> None:
        """Add a batch; raise a TextcatError if the run has rejected more documents than its plan allows."""
        self._of_this_run.add(counts_to_judge(tagged))
        for rejection in tagged.rejections:
            if rejection.is_fault:
                self._last_fault = rejection
            if rejection.due is not None:
                self._wake = rejection.due if self._wake is None else min(rejection.due, self._wake)
        self._formats.update(block.format for block in batch.blocks if isinstance(block, Block))
        if self._plan.max_rejected is not None:
            self._plan.max_rejected.check(self._of_this_run, self._last_fault)

    def summary(self, shards: int) -> Summary:
        """Return the summary of a run that has written `shards` shards."""
        counts = self.run.counts
        _log.info("Finished: %d documents, %d tagged, %d rejected", counts.records, counts.tagged, counts.rejected)
        if missing := [name for name in self._plan.job.output.keep_fields if counts.tagged and not counts.fields[name]]:
            _log.warning(
                "No document has the field %s, which --keep-fields names: its cells are empty.", ", ".join(missing)
            )
        named = (name for name in self._plan.job.input.fields if name not in self._plan.job.output.keep_fields)
        # formats that are known without reading a field
        named = (name for name in named if name not in ("language", "source"))
        if missing := [name for name in named if counts.tagged and not counts.fields[name]]:
            _log.warning("No document has the field %s, for which there is a rule.", ", ".join(missing))
        formats, changes = sorted(self._formats), tuple(self.run.changes)
        done = (formats, *self.run.cost(), changes, self._before.growth, self._wake, self._plan.job.output.is_ranking)
        return Summary(self._plan.trained, self._before.sources, self._plan.topics, counts, self._before, shards, *done)


def log_plan(plan: TaggingPlan, where: str) -> None:
    """Log how many inputs are tagged into `where` and, for up to 100, a known format and how it was recognised."""
    n = len(plan.sources)
    model = f"{plan.job.model} (model {plan.job.model_ids})"
    _log.info("Tagging %d input%s by %s into %s", n, "s" * (n > 1), model, where)
    for source in plan.sources[:_MAX_LOGGED]:
        if source.format:
            _log.info(
                "%s is read as %s, recognised by %s", escape_undecodable(source.name), source.format, source.guess.by
            )
