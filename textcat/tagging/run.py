"""Tag inputs by a model, and write the tags to a folder of shards or to a stream."""

import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager, closing
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from textcat.base.disk import expanded
from textcat.base.errors import TextcatError
from textcat.base.progress import peak_memory
from textcat.model import SUM, read_manifest
from textcat.reading import Batch, Block, FaultKind, InputSettings, Rejection, read_batches
from textcat.runs.folder import Growing, open_folder
from textcat.runs.growth import Growth
from textcat.runs.inputs import (
    InputChange,
    bytes_missing,
    check_output_apart,
    documents_of_inputs,
    total_size,
    warn_of_changes,
)
from textcat.runs.progress import RunProgress, RunState, ShowProgress
from textcat.runs.records import facts_of_run
from textcat.runs.results import BatchResult, Counts, process_name
from textcat.runs.shard_writer import write_shards
from textcat.runs.workers import WorkerPool, open_workers, ordered_map
from textcat.tagging.job import load_taggers, tag_batch
from textcat.tagging.output import OutputSettings, file_format
from textcat.tagging.planning import INPUT, OUTPUT, TaggingPlan, facts_of_job, make_plan, with_dates
from textcat.tagging.shards import remove_rows
from textcat.tagging.summary import Summary

log = logging.getLogger(__name__)

_MAX_LOGGED = 100  # inputs whose formats are logged
_MOST_NAMED = 5  # files that have changed, and files that are gone, in warnings


def tag_archive(
    model: str | os.PathLike[str],
    inputs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    input_settings: InputSettings = INPUT,
    output_settings: OutputSettings = OUTPUT,
    jobs: int = -1,
    scheduler: str = "",
    strict: bool = False,
    restart: bool = False,
    progress: ShowProgress | None = None,
    lang: str = "",
) -> Summary:
    """Tag an archive of any size: write the tags of its documents to a folder of shards.

    If the folder holds an interrupted run with the same model, inputs and settings, the run resumes where its journal
    ends. If that run is finished, only files that are new or have changed since are read, into further shards; the
    earlier tags of changed files are removed, and those of files that are gone stay. Documents that cannot be read are
    listed in ``_rejected.jsonl`` there, with the reason.

    Parameters
    ----------
    model, out : path
        The model's folder, and the folder of shards, which is created if it does not exist. With `lang`, the folder has
        a model of each language, such as ``en`` and ``sv``.
    inputs : path, or iterable of paths
        Files, folders, patterns such as ``*.jsonl``, and URLs.
    input_settings, output_settings : InputSettings, OutputSettings
        How inputs are read, and what is written, in which format.
    jobs : int, default -1
        Number of processes that tag; -1: one per core. Unless it is 1, a script must call this function below
        ``if __name__ == "__main__":``.
    scheduler : str
        The address of a Dask cluster that does the work; "": this machine.
    strict : bool, default False
        Raise an error at the first document that cannot be read.
    restart : bool, default False
        Remove the files of an earlier run from the folder.
    progress : callable, optional
        Called with a `RunProgress` after each batch of the input.
    lang : {"", "auto"}
        "auto": identify the language of each document, and tag it by the model of this language.

    Returns
    -------
    Summary
        Counts of documents, rejections and topics, and topics that are more or less frequent than in training.

    Raises
    ------
    TextcatError
        If the model or an input does not exist, the settings contradict each other, or the folder is inside an input,
        holds other files or another run, or cannot be written to.

    Examples
    --------
    >>> import textcat
    >>> textcat.tag_archive("model", ["news/*.jsonl.gz"], "tags", jobs=4)  # doctest: +SKIP
    """
    options: dict[str, Any] = {"jobs": jobs, "scheduler": scheduler, "strict": strict, "lang": lang}
    plan = make_plan(model, inputs, input_settings, output_settings, **options)
    return tag_to_folder(plan, expanded(out), restart=restart, progress=progress)


def tag_to_stream(
    model: str | os.PathLike[str],
    inputs: Iterable[str | os.PathLike[str]],
    stream: BinaryIO,
    *,
    on_rejection: Callable[[Rejection], None],
    progress: ShowProgress | None = None,
    **settings: Any,
) -> Summary:
    """Tag the inputs, and write the rows to a stream, which is flushed after each batch; return the summary.

    The input ``-`` is standard input. `on_rejection` is called with each rejection, and `progress` with the progress
    after each batch. `settings` are `input_settings`, `output_settings`, `jobs`, `scheduler`, `strict` and `lang`, as
    for `tag_archive`. A TextcatError is also raised if the format of the output is Parquet.
    """
    plan = make_plan(model, inputs, **settings)._replace(start_over="give the same command again")
    if plan.job.output.to == "parquet":
        raise TextcatError("Parquet cannot be written to a stream: write it to a folder with --out.")
    plan = with_dates(plan, {})
    _log_plan(plan, "standard output")
    form, n_bytes = file_format(plan.job.output), total_size(plan.sources)
    tally = _Tally(plan, RunState(Counts(), sources=plan.sources), progress)
    stream.write(form.begin())
    batches = read_batches(plan.sources, plan.job.input)
    with workers_of(plan, n_bytes) as workers, closing(_tagged(plan, batches, workers, tally)) as results:
        for _, tagged in results:
            stream.write(b"".join([*map(form.add, tagged.rows), form.flush()]))
            stream.flush()
            for rejection in tagged.rejections:
                on_rejection(rejection)
    stream.write(form.end())
    stream.flush()
    return tally.summary(0)


def tag_to_folder(
    plan: TaggingPlan,
    out: Path,
    *,
    restart: bool = False,
    progress: ShowProgress | None = None,
    trusted: bool = False,
    **limits: int,
) -> Summary:
    """Tag the inputs of a plan, write the tags to the folder `out`, and return the summary: see `tag_archive`.

    If this process has written the folder, so that its shards need not be verified, `trusted` is True. `limits` are the
    arguments `max_records` and `max_bytes` of `ShardWriter`.
    """
    check_output_apart(plan.sources, out)
    n_bytes, inputs = total_size(plan.sources), [source.fingerprint() for source in plan.sources]
    plan = with_dates(plan, {} if restart else facts_of_run(out))
    facts, form = facts_of_job(plan.job, plan.sources), file_format(plan.job.output)
    _log_plan(plan, str(out))
    before: Summary | None = None
    while True:
        growing = Growing(plan.sources, partial(remove_rows, plan.job.output), trusted)
        # Workers first: they would hold what they are forked with, such as the lock, longer than a killed process.
        with (
            workers_of(plan, n_bytes) as workers,
            open_folder(out, facts, inputs, restart=restart, growing=growing) as state,
        ):
            _log_growth(state.growth)
            tally, shards, is_whole = _Tally(plan, state, progress), state.shards, True
            if not state.finished:
                batches = read_batches(state.sources, plan.job.input, state.checkpoint, state.pipes)
                results = _tagged(plan, batches, workers, tally)
                written = write_shards(out, state, form, results, growing.remove, **limits)
                tally.add_counts(written.removed)
                shards, is_whole = written.shards, state.is_last and written.is_whole
            summary = tally.summary(shards)
        summary = summary if before is None else before.followed_by(summary)
        if is_whole:
            return summary
        # The run was resumed with the files that it began with: others may be new, or have changed. Or newer versions
        # have gone with the content of a changed file, so that older ones in other files count again.
        before, restart, trusted = summary, False, True


def set_aside(model: Path, out: Path) -> None:
    """Rename a folder of tags that another model has given: ``.before`` is added to its name.

    A TextcatError is raised if there is a folder of that name already.
    """
    model_before = facts_of_run(out).get("model")
    if model_before in (None, read_manifest(model).get(SUM, "")[:16]):
        return
    aside = out.with_name(f"{out.name}.before")
    if aside.exists():
        raise TextcatError(f"{aside} has tags of an earlier model: remove or rename it, and give the command again.")
    out.rename(aside)
    log.info("The tags in %s are by model %s: they are in %s now", out, model_before, aside)


def workers_of(plan: TaggingPlan, n_bytes: int | None) -> AbstractContextManager[WorkerPool]:
    """Return the workers of a plan, for a ``with`` block: this process, or others that have loaded the model.

    `n_bytes` is the stored size of its inputs; None if it is unknown.
    """
    return open_workers(plan.jobs, n_bytes, plan.scheduler, partial(load_taggers, plan.job))


def _tagged(
    plan: TaggingPlan, batches: Iterable[Batch], workers: WorkerPool, tally: "_Tally"
) -> Generator[tuple[Batch, BatchResult]]:
    """Yield each batch with its result; when the caller has written the result, add it to the tally."""
    with closing(ordered_map(partial(tag_batch, plan.job), batches, workers)) as results:
        for batch, tagged in results:
            faults = (
                [fault for fault in tagged.rejections if fault.kind is not FaultKind.LEFT_OUT] if plan.strict else []
            )
            if faults:
                raise TextcatError(f"{faults[0]} The run ends because of --strict: mend it, or leave --strict out.")
            tagged.counts.inputs = documents_of_inputs(tagged.counts.inputs, tally.sources, batch)
            yield batch, tagged
            tally.add(batch, tagged)
    tally.warn_of_changes()


class _Tally:
    """Add up the counts, formats, memory and time of a run."""

    def __init__(self, plan: TaggingPlan, before: RunState, progress: ShowProgress | None):
        self._plan, self._before, self._progress = plan, before, progress
        self.sources, self._total = before.sources, total_size(before.sources)
        self._counts = Counts()
        self._counts.add(before.counts)
        self._started = time.monotonic()
        self._memory: dict[str, int] = {}
        self._formats: set[str] = set()
        self._missing: Counter[str] = Counter()  # bytes that could not be read of each input
        self._changes: list[InputChange] = []
        self._wake = before.wake

    def warn_of_changes(self) -> None:
        """Find the inputs that changed while they were read, and log how much of each input is missing."""
        settings, start_over = self._plan.job.input, self._plan.start_over
        self._changes = warn_of_changes(self.sources, settings, self._counts.inputs, self._missing, start_over)

    def add_counts(self, counts: Counts) -> None:
        self._counts.add(counts)

    def add(self, batch: Batch, tagged: BatchResult) -> None:
        self._counts.add(tagged.counts)
        self._missing.update(bytes_missing(batch, self.sources))
        for rejection in tagged.rejections:
            if rejection.due is not None:
                self._wake = rejection.due if self._wake is None else min(rejection.due, self._wake)
        self._memory[tagged.process] = tagged.memory
        self._formats.update(block.format for block in batch.blocks if isinstance(block, Block))
        if self._progress is not None:
            records, n_bytes = self._counts.records - self._before.counts.records, batch.read - self._before.read
            self._progress(RunProgress(self._counts, batch.read, self._total, records, n_bytes, *self._cost()))

    def summary(self, shards: int) -> Summary:
        counts = self._counts
        log.info("Finished: %d documents, %d tagged, %d rejected", counts.records, counts.tagged, counts.rejected)
        manifest = self._plan.manifest
        topics = self._plan.job.output.topics or tuple(manifest["topics"])
        if missing := [name for name in self._plan.job.output.keep_fields if counts.tagged and not counts.fields[name]]:
            log.warning(
                "No document has the field %s, which --keep-fields names: its cells are empty.", ", ".join(missing)
            )
        formats, changes = sorted(self._formats), tuple(self._changes)
        done = (formats, *self._cost(), changes, self._before.growth, self._wake)
        return Summary(manifest, self.sources, topics, counts, self._before, shards, *done)

    def _cost(self) -> tuple[float, int]:
        """Return the seconds since the run began, and the peak memory of its processes in bytes."""
        memory = self._memory | {process_name(): peak_memory() or 0}
        return max(time.monotonic() - self._started, 0.0), sum(memory.values())


def _log_growth(growth: Growth | None) -> None:
    """Log what has become of the inputs since the run before: a warning names files that are gone or replaced."""
    if growth is None:
        return
    shown = ", ".join([*growth.gone[:_MOST_NAMED], "…"] if len(growth.gone) > _MOST_NAMED else growth.gone)
    if growth.gone:
        log.warning("%d input files are gone since the last run; their tags stay: %s.", len(growth.gone), shown)
    for name in growth.changed[:_MOST_NAMED]:
        log.warning("%s has changed since the last run: its tags are replaced.", name)
    for name in growth.again[:_MOST_NAMED]:
        log.info(
            "%s is read again: it could not be read before, an embargo has ended, or older news in it counts again.",
            name,
        )
    if growth:
        log.info("Since the last run: %d new files, %d changed, %d renamed", *map(len, growth[:3]))


def _log_plan(plan: TaggingPlan, where: str) -> None:
    n = len(plan.sources)
    log.info("Tagging %d input%s by %s into %s", n, "s" * (n > 1), plan.job.model, where)
    for source in plan.sources[:_MAX_LOGGED]:
        if source.format:
            log.info("%s is read as %s, recognised by %s", source.name, source.format, source.guess.by)
