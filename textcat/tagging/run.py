"""Tag inputs by a model, and write the tags to a folder of shards or to a stream."""

import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, closing
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from textcat import __version__
from textcat.base.disk import expanded, installed_spacy
from textcat.base.errors import TextcatError
from textcat.base.progress import peak_memory
from textcat.model import CALIBRATION, MANIFEST, SUM, names_in, read_manifest
from textcat.model.topic_names import find_topic
from textcat.reading import (
    START_OVER,
    Batch,
    Block,
    FaultKind,
    InputSettings,
    Record,
    Rejection,
    Source,
    batch_records,
    find_sources,
    read_batches,
)
from textcat.runs.folder import Growing, open_folder
from textcat.runs.growth import Growth, restricted_sources
from textcat.runs.inputs import (
    InputChange,
    bytes_missing,
    check_output_apart,
    documents_of_inputs,
    facts_of_reading,
    total_size,
    warn_of_changes,
)
from textcat.runs.progress import RunProgress, RunState, ShowProgress
from textcat.runs.records import facts_of_run
from textcat.runs.results import BatchResult, Counts, process_name
from textcat.runs.shard_writer import write_shards
from textcat.runs.workers import WorkerPool, open_workers, ordered_map
from textcat.tagging.groups import FIELD, open_groups
from textcat.tagging.job import Job, load_taggers, tag_batch
from textcat.tagging.output import OutputSettings, check_output, file_format, library_versions
from textcat.tagging.shards import remove_rows
from textcat.tagging.summary import Summary, joint_manifest

log = logging.getLogger(__name__)

INPUT, OUTPUT = InputSettings(), OutputSettings()
AUTO = "auto"  # the language that is identified
_MAX_LOGGED = 100  # inputs whose formats are logged
_MOST_NAMED = 5  # files that have changed, and files that are gone, in warnings


class TaggingPlan(NamedTuple):
    """Hold all that a run needs: model and settings, inputs, the model's manifest, and how the work is done."""

    job: Job
    sources: Sequence[Source]  # the inputs
    manifest: dict[str, Any]  # the manifest of the model
    jobs: int = -1  # number of processes; -1: one per core
    scheduler: str = ""  # address of a Dask cluster; "": this machine
    strict: bool = False  # whether a rejection ends the run with an error
    start_over: str = START_OVER  # how the run is begun again, as sentences say it


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
    how: dict[str, Any] = {"jobs": jobs, "scheduler": scheduler, "strict": strict}
    plan = make_plan(model, inputs, input_settings, output_settings, lang, **how)
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
    plan = _with_dates(plan, {})
    _log_plan(plan, "standard output")
    form, tally = file_format(plan.job.output), _Tally(plan, RunState(Counts()), progress)
    stream.write(form.begin())
    batches = read_batches(plan.sources, plan.job.input)
    with workers_of(plan) as workers, closing(_tagged(plan, batches, workers, tally)) as results:
        for _, tagged in results:
            stream.write(b"".join([*map(form.add, tagged.rows), form.flush()]))
            stream.flush()
            for rejection in tagged.rejections:
                on_rejection(rejection)
    stream.write(form.end())
    stream.flush()
    return tally.summary(0)


def make_plan(
    model: str | os.PathLike[str],
    inputs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    input_settings: InputSettings = INPUT,
    output_settings: OutputSettings = OUTPUT,
    lang: str = "",
    **how: Any,
) -> TaggingPlan:
    """Find the inputs, read the model's manifest, and return the plan of the run; for `lang`, see `tag_archive`.

    `how` has the fields `jobs`, `scheduler` and `strict` of the plan. A TextcatError is raised if the settings
    contradict each other, or need topics or probabilities that the model does not have.
    """
    check_output(output_settings)
    by_language = _models_by_language(expanded(model), lang, output_settings)
    manifest = joint_manifest([*by_language.values()]) if by_language else read_manifest(model)
    names = names_in(manifest)
    topics = tuple(find_topic(manifest["topics"], names, topic) for topic in output_settings.topics)
    output_settings = output_settings._replace(topics=topics, names=bool(names))
    uncalibrated = any(f"{CALIBRATION}.npy" not in one["files"] for one in by_language.values() or [manifest])
    if output_settings.min_probability is not None and uncalibrated:
        raise TextcatError(
            f"The model {model} has no probabilities: leave out --min-probability, or train with a recipe that "
            "calibrates its scores."
        )
    if output_settings.duplicates:
        open_groups(output_settings.duplicates)
        output_settings = output_settings._replace(
            keep_fields=tuple(dict.fromkeys((*output_settings.keep_fields, FIELD)))
        )
    if output_settings.keep_fields:
        input_settings = input_settings._replace(fields=output_settings.keep_fields)
    folder = str(expanded(model).resolve())
    parts = tuple((language, str(Path(folder, language)), one[SUM]) for language, one in by_language.items())
    paths = [inputs] if isinstance(inputs, str | os.PathLike) else inputs
    sources = find_sources([os.fspath(path) for path in paths], input_settings)
    job = Job(folder, manifest.get(SUM, ""), installed_spacy(), input_settings, output_settings, parts)
    return TaggingPlan(job, sources, manifest, **how)


def _with_dates(plan: TaggingPlan, former: dict[str, Any]) -> TaggingPlan:
    """Return the plan with the decision whether CSV and Parquet have a column of dates.

    `former` has the facts of the run in the output folder, whose shards have such a column or not; {}: it is a new run.
    """
    output = plan.job.output
    if output.to == "jsonl" or "date" in output.keep_fields:
        return plan
    dates = "dates" in former if former else _have_dates(plan.sources, plan.job.input)
    return plan._replace(job=plan.job._replace(output=output._replace(dates=dates)))


def _have_dates(sources: Sequence[Source], settings: InputSettings) -> bool:
    """Return whether the user names a field of dates, or documents in the first batch of files have dates."""
    if not settings.is_default("date_field"):
        return True
    files = [source for source in sources if source.kind != "pipe"]
    first = islice(read_batches(files, settings), 1)
    items = [item for batch in first for item in batch_records(batch, settings)]
    return any(isinstance(item, Record) and item.date for item in items)


def _models_by_language(folder: Path, lang: str, output: OutputSettings) -> dict[str, dict[str, Any]]:
    """Return the manifests of the models in a folder by language; {} if no language is to be identified."""
    models = [path.parent for path in sorted(folder.glob(f"*/{MANIFEST}"))] if not (folder / MANIFEST).exists() else []
    languages = ", ".join(model.name for model in models)
    if lang not in ("", AUTO):
        raise TextcatError(f"The language of documents cannot be {lang!r}: give 'auto', or the model of this language.")
    if not lang and models:
        raise TextcatError(
            f"{folder} holds several models ({languages:.60}): name one of them, or give --lang auto if they are named "
            "after their languages."
        )
    if lang and not models:
        raise TextcatError(
            f"{folder} has no models by language, as --lang auto needs them: give a folder of models that are named "
            "en, sv and so on, or leave out --lang."
        )
    if lang and output.topics:
        raise TextcatError("--topic chooses topics of one model: leave it out, or leave out --lang and name the model.")
    return {model.name: read_manifest(model) for model in models} if lang else {}


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
    if plan.job.output.to != "jsonl":
        plan = _with_dates(plan, {} if restart else facts_of_run(out))
    whole_plan = plan
    _log_plan(plan, str(out))
    inputs = [source.fingerprint() for source in plan.sources]
    growing = Growing(plan.sources, partial(remove_rows, plan.job.output), trusted)
    # Workers first: if this process is killed, they would hold what they were forked with, such as the lock, longer.
    with (
        workers_of(plan) as workers,
        open_folder(out, facts_of_plan(plan), inputs, restart=restart, growing=growing) as state,
    ):
        _log_growth(state.growth)
        plan = plan._replace(sources=restricted_sources(plan.sources, state.files))
        tally = _Tally(plan, state, progress)
        if state.finished:
            return tally.summary(state.shards)
        batches = read_batches(plan.sources, plan.job.input, state.checkpoint, state.pipes)
        results = _tagged(plan, batches, workers, tally)
        written = write_shards(out, state, file_format(plan.job.output), results, growing.remove, **limits)
        tally.add_counts(written.removed)
        summary = tally.summary(written.shards)
    if state.is_last and written.is_whole:
        return summary
    # An interrupted run was resumed with the files that it began with: others may be new, or have changed. Or newer
    # versions have gone with the content of a changed file, so that older ones in other files count again.
    second = tag_to_folder(whole_plan, out, restart=False, progress=progress, trusted=True, **limits)
    formats = sorted({*summary.formats, *second.formats})
    growth = second.growth if state.growth is None else state.growth
    return second._replace(before=state, formats=formats, seconds=summary.seconds + second.seconds, growth=growth)


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


def workers_of(plan: TaggingPlan) -> AbstractContextManager[WorkerPool]:
    """Return the workers of a plan, for a ``with`` block: this process, or others that have loaded the model."""
    return open_workers(plan.jobs, total_size(plan.sources), plan.scheduler, partial(load_taggers, plan.job))


def _tagged(
    plan: TaggingPlan, batches: Iterable[Batch], workers: WorkerPool, tally: "_Tally"
) -> Generator[tuple[Batch, BatchResult]]:
    """Yield each batch with its result; when the caller has written the result, add it to the tally."""
    with closing(ordered_map(partial(tag_batch, plan.job), batches, workers)) as results:
        for batch, tagged in results:
            _check_counts(plan.job, batch, tagged)
            faults = [one for one in tagged.rejections if one.kind is not FaultKind.LEFT_OUT] if plan.strict else []
            if faults:
                raise TextcatError(f"{faults[0]} The run ends because of --strict: mend it, or leave --strict out.")
            tagged.counts.inputs = documents_of_inputs(tagged.counts.inputs, plan.sources, batch)
            yield batch, tagged
            tally.add(batch, tagged)
    tally.warn_of_changes()


def _check_counts(job: Job, batch: Batch, tagged: BatchResult) -> None:
    """Raise a RuntimeError if a record of a batch was neither written nor rejected.

    Written and rejected records are counted in two ways, and both must agree with the number of records read.
    """
    counts, rejected = tagged.counts, len(tagged.rejections)
    written = sum(rows.count(b"\n") for rows in tagged.rows) if job.output.to == "jsonl" else counts.tagged
    if not counts.records == written + rejected == counts.tagged + counts.rejected:
        read = f"{counts.records} records up to {batch.source} were read"
        raise RuntimeError(f"{read}, but {written} written and {rejected} rejected")


class _Tally:
    """Add up the counts, formats, memory and time of a run."""

    def __init__(self, plan: TaggingPlan, before: RunState, progress: ShowProgress | None):
        self._plan, self._before, self._progress = plan, before, progress
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
        plan, documents = self._plan, self._counts.inputs
        self._changes = warn_of_changes(plan.sources, plan.job.input, documents, self._missing, plan.start_over)

    def add_counts(self, counts: Counts) -> None:
        self._counts.add(counts)

    def add(self, batch: Batch, tagged: BatchResult) -> None:
        self._counts.add(tagged.counts)
        self._missing.update(bytes_missing(batch, self._plan.sources))
        for rejection in tagged.rejections:
            if rejection.due is not None:
                self._wake = rejection.due if self._wake is None else min(rejection.due, self._wake)
        self._memory[tagged.process] = tagged.memory
        self._formats.update(block.format for block in batch.blocks if isinstance(block, Block))
        if self._progress is not None:
            records, n_bytes = self._counts.records - self._before.counts.records, batch.read - self._before.read
            total = total_size(self._plan.sources)
            self._progress(RunProgress(self._counts, batch.read, total, records, n_bytes, *self._cost()))

    def summary(self, shards: int) -> Summary:
        counts = self._counts
        log.info("Finished: %d documents, %d tagged, %d rejected", counts.records, counts.tagged, counts.rejected)
        manifest, sources = self._plan.manifest, self._plan.sources
        topics = self._plan.job.output.topics or tuple(manifest["topics"])
        if missing := [name for name in self._plan.job.output.keep_fields if counts.tagged and not counts.fields[name]]:
            log.warning(
                "No document has the field %s, which --keep-fields names: its cells are empty.", ", ".join(missing)
            )
        formats, changes = sorted(self._formats), tuple(self._changes)
        done = (formats, *self._cost(), changes, self._before.growth, self._wake)
        return Summary(manifest, sources, topics, counts, self._before, shards, *done)

    def _cost(self) -> tuple[float, int]:
        """Return the seconds since the run began, and the peak memory of its processes in bytes."""
        memory = self._memory | {process_name(): peak_memory() or 0}
        return max(time.monotonic() - self._started, 0.0), sum(memory.values())


def facts_of_plan(plan: TaggingPlan) -> dict[str, Any]:
    """Return the model, versions and settings that the output depends on, under names that error messages can show."""
    write = plan.job.output
    by_language = [f"{language} {digest[:16]}" for language, _, digest in plan.job.by_language]
    return {
        "model": ", ".join(by_language) or plan.job.digest[:16],
        "textcat": __version__,
        "spacy": plan.job.spacy,
        **library_versions(write),
        **facts_of_reading(plan.sources, plan.job.input),
        "--to": write.to,
        "--compress": write.compress,
        "--top": write.top,
        "--all-topics": write.all_topics,
        "--explain": write.explain,
        "--topic": ", ".join(sorted(write.topics)),
        **({"--keep-fields": ", ".join(write.keep_fields)} if write.keep_fields else {}),
        **({"--per-document": True} if write.per_document else {}),
        **({"--no-csv-escape": True} if write.no_csv_escape else {}),
        **({"dates": True} if write.dates else {}),
        **({"--duplicates": write.duplicates} if write.duplicates else {}),
        **({"--other-languages": write.other_languages} if by_language else {}),
        "--min-probability": None if write.min_probability is None else str(write.min_probability),
    }


def _log_growth(growth: Growth | None) -> None:
    """Log what has become of the inputs since the run before: files that are gone or replaced are told in a warning."""
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
