"""The commands `tag`, `merge` (print the summary of a run) and `diff`."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, BadParameter, Option

from textcat.base.errors import TextcatError
from textcat.cli import common, terminal
from textcat.cli.app import Interrupted
from textcat.cli.configuration import alternatives
from textcat.cli.write_back import (
    WriteBack,
    is_whole,
    rules_not_met,
    show_written,
    write_back_options,
    written_as_dict,
)

if TYPE_CHECKING:
    from rich.console import Console

    from textcat.reading import InputSettings, Rejection
    from textcat.runs.growth import Growth
    from textcat.tagging.difference import TagDifference
    from textcat.tagging.output import OutputSettings
    from textcat.tagging.planning import TaggingPlan
    from textcat.tagging.summary import Summary
    from textcat.tagging.write_back import WriteBackSummary

_output = partial(Option, rich_help_panel="Output")


def output_settings(
    top: Annotated[
        int | None, _output(min=1, help="Number of top-scoring topics to print, instead of those above thresholds.")
    ] = None,
    all_topics: Annotated[
        bool, _output("--all-topics", help="Print all topics, not only those above their thresholds.")
    ] = False,
    topic: Annotated[list[str] | None, _output(help="Print only this topic. May be repeated.")] = None,
    min_probability: Annotated[
        float | None, _output(min=0, max=1, help="Print the topics of at least this probability.")
    ] = None,
    rules: Annotated[
        Path | None,
        _output(help="File of house rules, in place of MODEL.rules.toml beside the model."),
    ] = None,
    automatic: Annotated[
        bool, _output("--automatic", help="Print only topics that may be given without a person, as promised.")
    ] = False,
    expected_recall: Annotated[
        bool,
        _output(
            "--expected-recall",
            help="Add the expected recall of each document's tags: the share of its topics that they find.",
        ),
    ] = False,
    explain: Annotated[
        int,
        _output(min=0, help="Number of terms to print with each topic: those that change its score most."),
    ] = 0,
    to: Annotated[str, _output(help="Format of the output: jsonl, csv or parquet.")] = "jsonl",
    compress: Annotated[str, _output(help="Compress the output: zst.")] = "",
    keep_fields: Annotated[
        list[str] | None, _output(help="Copy these fields of each document, as in title,date. May be repeated.")
    ] = None,
    per_document: Annotated[
        bool, _output("--per-document", help="CSV: a row per document, with its topics in one cell.")
    ] = False,
    no_csv_escape: Annotated[
        bool, _output("--no-csv-escape", help="CSV: no apostrophe before texts that spreadsheets take for formulas.")
    ] = False,
    other_languages: Annotated[
        str, _output(help="With --lang auto, documents in a language without a model: rejected or untagged.")
    ] = "rejected",
    duplicates: Annotated[
        Path | None,
        _output(help="Add the group of each document, from the file that `textcat duplicates` wrote of these inputs."),
    ] = None,
) -> "OutputSettings":
    """Return the settings of the output: which topics are written, and in which format."""
    from textcat.tagging.output import OutputSettings

    names = (name.strip() for listed in keep_fields or () for name in listed.split(","))
    shown = OutputSettings(to, compress, top, all_topics, explain, tuple(topic or ()), min_probability)
    kept = tuple(dict.fromkeys(filter(None, names)))
    shown = shown._replace(other_languages=other_languages, duplicates=str(duplicates or ""))
    shown = shown._replace(rules=str(rules or ""), automatic=automatic, expected_recall=expected_recall)
    return shown._replace(keep_fields=kept, per_document=per_document, no_csv_escape=no_csv_escape)


@alternatives(
    *("out stdout", "write_back stdout", "inputs by_line", "part watch", "part write_back", "topic rules"),
    *("top all_topics", "min_probability all_topics", "automatic top", "automatic all_topics", "explain per_document"),
)
@common.with_options(
    read=common.input_settings, write=output_settings, back=write_back_options, scheduler=common.scheduler_address
)
def tag(
    model: common.ModelFolder,
    read: "InputSettings",
    write: "OutputSettings",
    back: WriteBack,
    scheduler: str,
    inputs: Annotated[
        list[str] | None, Argument(help="Files, folders, patterns such as '*.jsonl', URLs; - or none: standard input.")
    ] = None,
    out: Annotated[
        Path | None, Option(help="Folder for shards, and for the journal by which an interrupted run resumes.")
    ] = None,
    by_line: Annotated[
        bool, Option("--stdin", help="Read one document per line from standard input, as a filter.")
    ] = False,
    stdout: Annotated[bool, Option("--stdout", help="Write to standard output, as without --out.")] = False,
    form: common.Form = "text",
    jobs: Annotated[
        int, Option("--jobs", "-j", callback=common.number_of_jobs, help="Processes that tag; -1: one per core.")
    ] = -1,
    strict: Annotated[bool, Option("--strict", help="Stop at the first document that cannot be read.")] = False,
    max_rejected: Annotated[
        str,
        Option(
            metavar="N|SHARE%",
            help="Stop when more than N documents, or more than a share of 1,000 or more such as 5%, are rejected.",
        ),
    ] = "",
    restart: Annotated[bool, Option("--restart", help="Remove the earlier run in --out, and start again.")] = False,
    model_changes: Annotated[
        str,
        Option(
            help="If --out has tags by another model or other rules, or of documents that another version of a library "
            "such as pypdf has read: new, to tag new and changed files by these; all, to tag all by them in OUT.next, "
            "which then takes the place of OUT; or ask, to stop.",
            show_default="new with --watch, or if `textcat learn` made the model of that one, else ask",
        ),
    ] = "",
    keep: Annotated[
        int | None,
        Option(
            min=1,
            help="With --model-changes all: folders of tags to keep (OUT, OUT.before, OUT.before-2, …), older ones go.",
            show_default="2",
        ),
    ] = None,
    lang: Annotated[
        str,
        Option(
            help="auto: tag each document by the model of its language; MODEL is then a folder of models named en, sv "
            "and so on."
        ),
    ] = "",
    part: Annotated[
        str,
        Option(
            metavar="K/N",
            help="With --out, tag the K-th of N equal shares of the inputs: `textcat merge` joins the N folders.",
        ),
    ] = "",
    watch: Annotated[
        bool, Option("--watch", help="With --out, wait for files that arrive or change, and tag them, until Ctrl-C.")
    ] = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="Show no progress, and print no summary.")] = False,
    log: Annotated[Path | None, Option(help="Append a log of the run to this file.")] = None,
) -> None:
    """Tag documents: print a JSON line for each, or write an archive's tags to a folder of shards.

    Documents that cannot be read are listed on standard error, or in _rejected.jsonl with --out; the exit code is then
    3, as it is if an input shrinks while it is read. An interrupted run resumes when the same command is given again.
    """
    flags = {"by_line": by_line, "stdout": stdout, "restart": restart, "watch": watch}
    _check_tag(inputs, out, back, write, model_changes, keep, part, **flags)
    from textcat.runs.progress import progress_shown
    from textcat.tagging.planning import make_plan

    if not inputs and terminal.is_typed():
        terminal.say("Type or paste documents, and end with Ctrl-D (on Windows Ctrl-Z and Enter).")
    reading = read._replace(lines=read.lines or by_line)
    # No progress bar on a terminal to which tags are printed.
    to_stream = out is None and back.folder is None
    hidden = quiet or (to_stream and (sys.stdout.isatty() or not terminal.may_be_terminal()))
    drawn_on = (lambda: None) if hidden else partial(terminal.console, stderr=True)
    inputs = inputs or ["-"]
    of_run: dict[str, Any] = {"restart": restart, "model_changes": model_changes, **({"keep": keep} if keep else {})}
    plan = partial(
        make_plan,
        model,
        inputs,
        reading,
        write,
        jobs=jobs,
        scheduler=scheduler,
        strict=strict,
        lang=lang,
        part=part,
        max_rejected=max_rejected,
    )
    try:
        with _log_to(log) if log else nullcontext(), progress_shown(drawn_on) as show:
            writer = back.writer(inputs, out is not None, restart=restart, on_rejection=_warn, progress=show)
            if out is not None and watch:
                if writer is not None:
                    back.check_inputs(plan(), watch=True)
                of_run["model_changes"] = model_changes or "new"
                _watch(plan, inputs, out, writer, quiet=quiet, form=form, progress=show, **of_run)
                return
            planned = plan()
            back.check_inputs(planned)
            summary = written = None
            if out is not None:
                from textcat.tagging.run import tag_to_folder

                summary = tag_to_folder(planned, out, progress=show, **of_run)
            elif writer is None:
                from textcat.tagging.stream import tag_to_stream

                summary = tag_to_stream(planned, sys.stdout.buffer, on_rejection=_warn, progress=show)
            if writer is not None:
                written = writer(planned if out is None else plan())  # files may have arrived while others were tagged
    except Interrupted:
        raise Interrupted("" if to_stream else "give the same command without --restart to resume the run") from None
    if not quiet:
        _show(summary, written, out, back, form)
    is_incomplete = summary is not None and (summary.counts.faults or summary.changed)
    raise typer.Exit(3 if is_incomplete or (written is not None and not is_whole(written, out is not None)) else 0)


def diff(
    before: Annotated[Path, Argument(help="Folder of tags that `textcat tag --out` has written.")],
    now: Annotated[Path, Argument(help="Folder of tags of the same archive, by another model or other options.")],
    examples: Annotated[int, Option(min=0, help="Maximum number of document ids to print per topic.")] = 3,
    form: common.Form = "text",
) -> None:
    """Compare two folders of tags: print which tags were added and which were removed, topic by topic."""
    from textcat.tagging.difference import compare_tags

    for folder in (before, now):
        if not folder.is_dir():
            raise TextcatError(f"There is no folder {folder}: name a folder that `textcat tag --out` has written.")
    show_difference(terminal.console(), compare_tags(before, now, examples), form)


def merge(
    parts: Annotated[list[Path], Argument(help="Folders that `textcat tag --part K/N` has written, in any order.")],
    out: Annotated[Path, Option(help="Folder for the tags of all parts, which must not exist or be empty.")],
    form: common.Form = "text",
    quiet: Annotated[bool, Option("--quiet", "-q", help="Print no summary.")] = False,
) -> None:
    """Join the parts that `textcat tag --part` has written; the result has the same bytes as that of a single run.

    The parts are not changed. Later, `textcat tag --out` can resume in the joined folder. The exit code is 3 if
    documents could not be read.
    """
    from textcat.tagging.merge import merge_parts

    summary = merge_parts(parts, out)
    if not quiet:
        show_summary(terminal.console(), summary, out, form)
    raise typer.Exit(3 if summary.counts.faults else 0)


def _warn(rejection: "Rejection") -> None:
    terminal.say(str(rejection))


def _show(
    summary: "Summary | None", written: "WriteBackSummary | None", out: Path | None, back: WriteBack, form: str
) -> None:
    """Print the summary of a run, the summary of the files written back, or both.

    If the tags go to standard output, the summary of the run is printed only if `form` is not "text", or if standard
    error is a terminal and there were several records.
    """
    # After tags on standard output, print a summary only if requested, or on a terminal for several documents.
    is_shown = summary is not None and (out or form != "text" or (summary.counts.records > 1 and sys.stderr.isatty()))
    if written is None and not is_shown:
        return
    console = terminal.console(stderr=out is None and written is None)
    of_files = {} if written is None or back.folder is None else written_as_dict(written, back.folder)
    if summary is not None and is_shown:
        show_summary(console, summary, out, form, write_back=of_files)
    if written is not None and back.folder is not None and (form != "json" or summary is None):
        if summary is not None:
            console.print()
        show_written(console, written, back.folder, form)


def _watch(
    plan: "Callable[[], TaggingPlan]",
    inputs: list[str],
    out: Path,
    writer: "Callable[[TaggingPlan], object] | None",
    *,
    quiet: bool,
    form: str,
    **options: Any,
) -> None:
    """Tag files as they arrive, and print a line for each round."""
    from textcat.tagging.watch import watch_archive

    console = terminal.console()

    def show(summary: "Summary") -> None:
        if form != "text":
            show_summary(console, summary, out, form)
        elif not quiet:
            counts, before = summary.counts, summary.before.counts
            # With a sign, because the rows or rejections of changed files may have become fewer.
            tagged, rejected = counts.tagged - before.tagged, counts.rejected - before.rejected
            new = f"{tagged:+,} documents tagged, {rejected:+,} rejected"
            files = f" ({growth_in_words(summary.growth)})" if summary.growth else ""
            console.print(f"{time.strftime('%Y-%m-%d %H:%M:%S')}  {new}{files}", highlight=False, soft_wrap=True)

    watch_archive(plan, inputs, out, show, after=writer, **options)


def _check_tag(
    inputs: list[str] | None,
    out: Path | None,
    back: WriteBack,
    write: "OutputSettings",
    model_changes: str,
    keep: int | None,
    part: str,
    *,
    by_line: bool,
    stdout: bool,
    restart: bool,
    watch: bool,
) -> None:
    if out is not None and out.is_file():
        raise TextcatError(f"{out} is a file: name a folder for the tags, which is made if there is none.")
    back.check(inputs, out, write)
    for is_wrong, sentence in (
        (inputs and by_line, "--stdin reads standard input: leave out the inputs, or --stdin"),
        (out is not None and stdout, "choose one of --out and --stdout"),
        (stdout and back.folder is not None, "choose one of --stdout and --write-back"),
        (out is None and back.folder is None and restart, "--restart needs --out or --write-back"),
        (watch and (out is None or not inputs or "-" in inputs), "--watch needs --out, and files or folders as inputs"),
        (
            watch and write.duplicates,
            "--duplicates needs files that `textcat duplicates` has read, and --watch tags them before: leave out one "
            "of them",
        ),
        (out is None and model_changes, "--model-changes needs --out"),
        (out is None and keep is not None, "--keep needs --out"),
        (part and out is None, "--part needs --out: a folder of its own for each part"),
        (part and watch, "--watch tags all files that arrive: leave out --part, or --watch"),
        (part and back.folder is not None, "--write-back writes whole files: leave it out with --part"),
    ):
        if is_wrong:
            raise BadParameter(sentence)
    if sys.stdin is None and "-" in (inputs or ["-"]):
        raise TextcatError("Standard input is closed: name files to tag, or send documents to standard input.")


@contextmanager
def _log_to(path: Path) -> Iterator[None]:
    """Append the library's log of runs to a file during a ``with`` block."""
    import logging

    handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    levels = {logging.getLogger(f"textcat.{room}"): logging.NOTSET for room in ("runs", "tagging")}
    for log in levels:
        levels[log] = log.level
        log.addHandler(handler)
        log.setLevel(logging.INFO)
    try:
        yield
    finally:
        for log, level in levels.items():
            log.setLevel(level)
            log.removeHandler(handler)
        handler.close()


# --- what is printed and written -------------------------------------------------------------------------------------


def show_summary(
    console: "Console", summary: "Summary", out: Path | None, form: str, write_back: Mapping[str, Any] | None = None
) -> None:
    """Print the summary of a run: counts, reasons of rejections, and a row per topic that documents got.

    The row compares the topic's share of documents with its share in training. `write_back` is the part of the JSON
    about files written back.
    """
    from textcat.cli.printing import Facts, Table, show

    counts, before = summary.counts, summary.before
    data = {name: n for name, n in counts.as_dict().items() if not name.startswith("months")} | {
        "records_before": before.counts.records,
        "read_as": summary.formats,
        "drift": [drift.topic for drift in summary.drifts],
        "changed": summary.changed,
        "grown": summary.grown,
        "bytes_missing": {change.name: change.missing for change in summary.changes if change.missing is not None},
        "since_last_run": summary.growth and summary.growth._asdict(),
        "seconds": summary.seconds,
        "peak_memory": summary.memory,
        **({"write_back": write_back} if write_back else {}),
        "output": out and str(out),
        "shards": summary.shards,
    }
    if before.finished and form == "text":  # no new documents
        faults = f", {counts.rejected:,} of them rejected" if counts.rejected else ""
        done = f"{out} is finished, with {counts.records:,} documents{faults}: nothing is left to do."
        show(console, form, data, done)
        return
    reasons = [{"rejected": n, "because": reason} for reason, n in (+counts.reasons).most_common()]
    topics, drift = _topic_rows(summary) if counts.topics else ([], "")
    parts = Table(reasons), Table(topics), drift, rules_not_met(counts)
    show(console, form, data, Facts(_facts_of(summary, out)), *parts, rows=lambda: topics)


def _facts_of(summary: "Summary", out: Path | None) -> dict[str, Any]:
    counts, before = summary.counts, summary.before
    by = {source.format: source.guess.by for source in summary.sources}
    formats = [f"{form} (by {by[form]})" if by.get(form) else form for form in summary.formats]
    rate = (counts.records - before.counts.records) / max(summary.seconds, 1e-9)
    share = f" ({counts.untagged / counts.tagged:.1%} of those tagged)" if counts.tagged else ""
    unknown = f"; {counts.unknown:,} documents have no term that the model knows" if counts.unknown else ""
    left_out = f", {counts.left_out:,} of them left out as no documents" if counts.left_out else ""
    return {
        "documents": counts.records,
        "tagged": counts.tagged,
        "rejected": f"{counts.rejected:,}{left_out}",
        "without a topic": f"{counts.untagged:,}{share}{unknown}",
        "languages read": [f"{language} {n:,}" for language, n in counts.languages.most_common()] or None,
        "done before": before.counts.records or None,
        "since then": growth_in_words(summary.growth) if summary.growth else None,
        "read as": formats or None,
        "seconds": f"{summary.seconds:.1f} ({rate:,.0f} documents/s)",
        "peak memory": summary.memory,
        "output": None if out is None else f"{out} ({summary.shards} shard{'s' * (summary.shards != 1)})",
    }


def growth_in_words(growth: "Growth") -> str:
    """Return a phrase on how the inputs of a run have changed: how many files are new, changed, renamed or missing."""
    numbers = (
        (len(growth.new), "new"),
        (len(growth.changed), "changed"),
        (len(growth.renamed), "renamed"),
        (len(growth.gone), "gone, whose tags stay"),
        (len(growth.again), "read again"),
    )
    return "files " + ", ".join(f"{n:,} {what}" for n, what in numbers if n)


def show_difference(console: "Console", difference: "TagDifference", form: str) -> None:
    """Print how the tags of two runs differ: counts, and a row per topic."""
    from textcat.cli.printing import Facts, Note, Table, show

    rows = [row._asdict() for row in difference.topics]
    facts = {
        "documents in both": difference.documents,
        "with other topics": difference.changed,
        "only before": difference.only_before or None,
        "only now": difference.only_now or None,
    }
    titles = {"examples_came": "came, for example", "examples_went": "went, for example"}
    shown = [
        {titles.get(name, name): ", ".join(cell) if name in titles else cell for name, cell in row.items()}
        for row in rows
    ]
    nothing = (
        ""
        if difference.documents
        else Note(
            "No document is in both folders: documents are matched by id, and those without ids by their position in a "
            "file, with its name as it was given to `textcat tag`."
        )
    )
    show(console, form, {**difference._asdict(), "topics": rows}, Facts(facts), nothing, Table(shown, needed=5))


def _topic_rows(summary: "Summary") -> tuple[list[dict[str, Any]], str]:
    """Return a row per topic that documents got or whose rate has changed since training, and text below the table."""
    from textcat.cli.printing import largest_first, named_rows
    from textcat.model.topic_names import topic_label

    sizes, counts, given = summary.train_sizes, summary.counts, summary.given_in_training
    drifting = {drift.topic for drift in summary.drifts}
    rows = (
        (
            topic_label(topic, summary.trained.names),
            counts.topics[topic],
            counts.topics[topic] / counts.tagged,
            given[topic][0] / given[topic][1] if topic in given else None,
            drift,
        )
        for topic in sizes
        if (drift := "*" if topic in drifting else "") or counts.topics[topic]
    )
    titles = ("topic", "documents", "rate", "in training", "drift")
    table = largest_first(named_rows(titles, rows), "documents")
    rate = "more than three times, or less than a third of, the rate in training, beyond chance"
    lines = []
    if summary.is_ranking:
        lines.append("The table counts the topics above their thresholds, as without --top and --all-topics.")
    if n_without := sum(not counts.topics[topic] for topic in sizes):
        lines.append(f"{n_without} of {len(sizes)} topics have no document.")
    if drifting:
        other = "the archive may be about other things than the training documents were"
        lines.append(f"* {len(drifting)} of {len(sizes)} topics have {rate}: {other}.")
    else:
        table = [{title: row[title] for title in titles[:-1]} for row in table]
        lines += [f"No drift: no topic has {rate}."] * bool(given)
    if n_unknown := len(sizes) - len(given):
        lines.append(
            f"{n_unknown} of {len(sizes)} topics are not compared with training: it is unknown how many held-out "
            "documents get them by these thresholds, options and rules."
        )
    return table, "\n\n".join(lines)
