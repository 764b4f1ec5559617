"""Tag inputs by a model, and write the tags to a folder of shards."""

import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from textcat.base.disk import link_target
from textcat.base.errors import TextcatError, first_of
from textcat.base.settings import check_whole_number
from textcat.base.surrogates import escape_undecodable
from textcat.model.history import descends_from
from textcat.reading import Batch, InputSettings, Share, check_pipes, read_batches
from textcat.runs.files import KnownFile, is_within, tagged_files
from textcat.runs.folder import Growing, compare_facts, in_words, open_folder, record_missing_sums
from textcat.runs.growth import Growth, list_files
from textcat.runs.inputs import READERS, check_output_apart, is_other, total_size
from textcat.runs.parts import PART
from textcat.runs.progress import RunState, ShowProgress
from textcat.runs.records import Log, facts_of_run, read_log
from textcat.runs.replacing import (
    KEPT,
    drop_replacement,
    end_replacement,
    find_replacement,
    new_output_folder,
    replaced,
)
from textcat.runs.shard_writer import write_shards
from textcat.tagging.grouped_files import check_grouped_files
from textcat.tagging.groups import GROUPS, GroupsMark, open_groups
from textcat.tagging.merge import write_part_plan
from textcat.tagging.origin import RunOrigin
from textcat.tagging.output import MODEL, RULES, OutputSettings, file_format
from textcat.tagging.planning import INPUT, OUTPUT, TaggingPlan, facts_of_job, make_plan
from textcat.tagging.shards import remove_rows
from textcat.tagging.summary import Summary
from textcat.tagging.summary_by_month import write_summary
from textcat.tagging.work import Tally, log_plan, tagged_batches, workers_of

log = logging.getLogger(__name__)

MODEL_CHANGES = ("ask", "new", "all")  # choices for a folder with tags by another model, other rules or libraries
_MAY_CHANGE = (MODEL, RULES, *READERS)  # settings of a run to which these choices apply
_MOST_NAMED = 5  # maximum number of changed files, and of missing files, in warnings


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
    model_changes: str = "",
    keep: int = KEPT,
    part: str = "",
    max_rejected: int | str = "",
) -> Summary:
    """Tag an archive of any size: write the tags of its documents to a folder of shards.

    If the folder holds an interrupted run with the same model, inputs and settings, the run resumes where its journal
    ends. If that run is finished, only files that are new or have changed since are read, into further shards; earlier
    tags of changed files are removed, and tags of missing files stay. Documents that cannot be read are listed in
    ``_rejected.jsonl`` in the folder, with the reason.

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
    model_changes : {"", "ask", "new", "all"}
        What to do if the folder has tags by another model or other rules, or of documents that another version of a
        library such as pypdf has read. "new": tag files that are new or have
        changed by these; other tags stay. "all": tag all documents by these, in a folder ``OUT.next``, which replaces
        `out` atomically when it is finished; files that they have tagged already are not read again. "ask": raise an
        error. "": "new" if the model was made from the other one by `textcat learn`, otherwise "ask".
    keep : int, default 2
        With "all", how many folders of tags to keep: the new one, then the one before, as ``OUT.before``, then
        ``OUT.before-2`` and so on.
    part : str
        A share of the inputs to tag, such as ``"2/3"``, the second of three, which `merge_parts` joins; "": all inputs.
    max_rejected : int or str
        Raise an error when this run has rejected more documents than this number, or than a percentage of the documents
        read, such as ``"5%"`` (checked from 1,000 documents on); "": no limit. Documents that were left out on purpose
        do not count.

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
    plan = make_plan(
        model,
        inputs,
        input_settings,
        output_settings,
        jobs=jobs,
        scheduler=scheduler,
        strict=strict,
        max_rejected=max_rejected,
        lang=lang,
        part=part,
    )
    return tag_to_folder(plan, out, restart=restart, progress=progress, model_changes=model_changes, keep=keep)


def tag_to_folder(
    plan: TaggingPlan,
    out: str | os.PathLike[str],
    *,
    restart: bool = False,
    progress: ShowProgress | None = None,
    former: Log | None = None,
    model_changes: str = "",
    keep: int = KEPT,
    **limits: Any,
) -> Summary:
    """Tag the inputs of a plan, write the tags to the folder `out`, and return the summary: see `tag_archive`.

    `former` is the log of this process's last run in the folder, see `Growing`. `limits` are the arguments
    `max_records` and `max_bytes` of `ShardWriter`.
    """
    out = link_target(out)
    check_output_apart(plan.sources, out)
    if model_changes not in ("", *MODEL_CHANGES):
        raise TextcatError(
            f"With a new model, {model_changes!r} cannot be done: give {', '.join(MODEL_CHANGES[:-1])} or all."
        )
    if plan.part is not None and model_changes not in ("", "ask"):
        raise TextcatError("All parts are tagged by one model: leave out --model-changes, or --part.")
    check_whole_number(keep, 1, "The number of folders of tags to keep")
    if restart or model_changes != "all":
        return _tag(plan, out, restart=restart, progress=progress, former=former, changes=model_changes, **limits)
    if out.exists() and any(source.kind == "pipe" for source in plan.sources):
        raise TextcatError(
            f"Standard input may have other documents than those in {out}, so --model-changes all cannot replace their "
            "tags: name the files, give --restart to begin again with the present input, or name another folder."
        )
    end_replacement(out, keep)
    facts = facts_of_job(plan.job, plan.sources)
    found = find_replacement(out, plan.sources, plan.job.input, **_that_may_change(facts))
    if not found.is_due:
        drop_replacement(out, keep)
        return _tag(plan, out, progress=progress, former=former, changes="new", **limits)
    if found.stays:  # tags of one run have the same options
        remedy = "give those that it began with, or name another folder"
        compare_facts(out, facts_of_run(out), facts, _MAY_CHANGE, remedy)
    log.warning(
        "%s has tags by another model, other rules or another version of a library that reads documents: all is tagged "
        "anew in %s, which then takes its place.",
        *(out, new_output_folder(out)),
    )
    with replaced(out, stays=found.stays, kept=keep) as new:
        return _tag(plan, new, progress=progress, changes="all", **limits)


def _tag(
    plan: TaggingPlan,
    out: Path,
    *,
    restart: bool = False,
    progress: ShowProgress | None = None,
    former: Log | None = None,
    changes: str,
    **limits: Any,
) -> Summary:
    from textcat.tagging.score_bins import write_model_counts  # imported here, because it needs numpy

    n_bytes, inputs = total_size(plan.sources), [source.fingerprint() for source in plan.sources]
    former = former if former is not None and former.is_current() else None
    facts_before = {} if restart else facts_of_run(out) if former is None else former.facts
    # Scores of several models cannot be added up.
    plan = plan._replace(job=plan.job._replace(keeps_scores=not plan.job.by_language))
    facts, form = facts_of_job(plan.job, plan.sources), file_format(plan.job.output)
    tagged: dict[str, KnownFile] = {}
    if plan.job.groups is not None:
        tagged = tagged_files(out) if facts_before else {}
        is_read = _files_renewed(out, tagged, facts) if changes == "all" else ()
        stays = {source: item for source, item in tagged.items() if source not in is_read}
        check_grouped_files(plan.job.output.duplicates, plan.sources, stays)
    is_part = plan.part is not None
    facts |= {PART: str(plan.part)} if is_part else {}
    # All parts must be tagged by the same model, so that they can be merged.
    changing = () if is_part else _changing(plan, out, facts_before, facts, changes)
    changing += (GROUPS,) if not is_part and _groups_grew(plan, tagged, facts_before.get(GROUPS)) else ()
    log_plan(plan, str(out))
    origin = RunOrigin.of(plan.job.model, plan.job.digest, plan.sources, plan.job.input)
    remove, before = partial(remove_rows, plan.job.output), None
    while True:
        growing = Growing(plan.sources, plan.job.input, remove, former, renews=changes == "all", is_part=is_part)
        # Start workers first: a forked worker would inherit the lock, and hold it longer than a killed process.
        with (
            workers_of(plan, n_bytes) as workers,
            open_folder(out, facts, inputs, restart=restart, growing=growing, changing=changing) as state,
        ):
            origin.write(out)
            if plan.job.keeps_scores:
                write_model_counts(out, plan.job.model, plan.job.output.topics)
            if is_part:
                write_part_plan(plan, out)
            _log_growth(state.growth)
            if state.finished:
                check_pipes(plan.sources, state.pipes)
            tally, shards, is_whole = Tally(plan, state, progress), state.shards, True
            if not state.finished:
                results = tagged_batches(plan, _batches_left(plan, state), workers, tally)
                written = write_shards(out, state, form, results, None if is_part else growing.remove, **limits)
                tally.run.counts.add(written.removed)
                tally.run.warn_of_changes(plan.job.input, plan.start_over)
                shards, is_whole = written.shards, state.is_last and written.is_whole
                if is_whole and not is_part and state.log is not None:
                    record_missing_sums(state.log, plan.sources, plan.job.input)
            summary = tally.summary(shards)
            # Another process may have been killed before it wrote its summary; this one has not.
            if (
                is_whole
                and state.log is not None
                and not (is_part or (state.finished and state.log is former and before is None))
            ):
                write_summary(out, facts["model"], summary.trained, summary.topics, state.log.counts)
        summary = summary if before is None else before.followed_by(summary)
        if is_whole:
            return summary
        # Look for further work: the run was resumed with its old list of files, and others may be new or have changed;
        # or newer versions of news are gone from a changed file, so that older versions in other files count again.
        before, restart, former = summary, False, state.log


def _batches_left(plan: TaggingPlan, state: RunState) -> Iterator[Batch]:
    """Read the batches of a plan's share of the inputs that the run has not written yet."""
    share, last = plan.part or Share(), None if state.log is None else state.log.last_batch
    return read_batches(state.sources, plan.job.input, state.checkpoint, state.pipes, share=share, last=last)


def _changing(
    plan: TaggingPlan, out: Path, before: Mapping[str, Any], now: Mapping[str, Any], model_changes: str
) -> tuple[str, ...]:
    """Return which settings of a run may change, given its former settings ({}: there is no run) and the present ones.

    Raise TextcatError if the model or its rules differ, and `model_changes` (see `tag_archive`) does not allow that.
    """
    names = tuple(name for name in _that_may_change(now) if before and is_other(name, before, now))
    if not names:
        return ()
    former, present = _in_words(names, before, "other rules"), _in_words(names, now, "its present ones")
    is_learnt = names == ("model",) and descends_from(plan.job.model, before["model"])
    if model_changes == "ask" or not (model_changes or is_learnt):
        raise TextcatError(
            f"The run in {out} began with {former}, but now has {present}: give --model-changes new to tag only new "
            "and changed files by them, --model-changes all to tag all again, or --restart."
        )
    if model_changes != "all":
        log.warning("%s has tags by %s; files that are new or change are tagged by %s.", out, former, present)
    return names


def _that_may_change(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: facts[name] for name in _MAY_CHANGE if name in facts}


def _in_words(names: Iterable[str], facts: Mapping[str, Any], rules: str) -> str:
    """Return settings that have changed as text, in which `rules` stands for the rules."""
    return " and ".join(rules if name == RULES else in_words(name, facts[name]) for name in names)


def _files_renewed(out: Path, tagged: Mapping[str, KnownFile], facts: Mapping[str, Any]) -> set[str]:
    """Return which of the `tagged` files, by their names in the output, are read again if all is tagged anew."""
    log, changing = read_log(out, "begin again with --restart"), _that_may_change(facts)
    return {
        source
        for source, item in tagged.items()
        if log is not None and any(log.are_others(shard, changing) for shard in item.shards)
    }


def _groups_grew(plan: TaggingPlan, tagged: Mapping[str, KnownFile], before: Any) -> bool:
    """Return whether the file of groups has grown since by documents that the run has not tagged yet, or tags again.

    `tagged` has the files that the run has tagged, `before` describes the file of groups as it was then.
    """
    if not isinstance(before, dict) or plan.job.groups in (None, mark := GroupsMark(**before)):
        return False
    added = open_groups(plan.job.output.duplicates).added_since(mark)
    if not added:
        return added is not None
    now = {file.name: file.content for file in list_files(plan.sources) or ()}
    stays = {
        source
        for source, item in tagged.items()
        if item.due is None and now.get(item.file.name, item.file.content) == item.file.content
    }
    return not any(map(is_within(stays), added))


def _log_growth(growth: Growth | None) -> None:
    """Log how the inputs have changed since the previous run, with a warning about files that are gone or replaced."""
    if growth is None:
        return
    gone, changed, again = ([*map(escape_undecodable, names)] for names in (growth.gone, growth.changed, growth.again))
    if gone:
        log.warning(
            "%d input files are gone since the last run; their tags stay: %s.", len(gone), first_of(gone, _MOST_NAMED)
        )
    for name in changed[:_MOST_NAMED]:
        log.warning("%s has changed since the last run: its tags are replaced.", name)
    for name in again[:_MOST_NAMED]:
        log.info(
            "%s is read again: it could not be read before, an embargo has ended, older news in it counts again, or it "
            "was tagged by another model.",
            name,
        )
    if growth:
        log.info("Since the last run: %d new files, %d changed, %d renamed", *map(len, growth[:3]))
