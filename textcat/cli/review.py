"""The command `review`: people judge the tags of an archive, on a page or in a spreadsheet."""

import signal
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, BadParameter, Option

from textcat.base.errors import TextcatError
from textcat.base.journal import user_name
from textcat.cli import common, terminal
from textcat.cli.app import Interrupted
from textcat.cli.configuration import alternatives
from textcat.cli.teach import checked_keys

if TYPE_CHECKING:
    from rich.console import Console

    from textcat.corpus.corrections import Agreement
    from textcat.review.audit import AuditRow
    from textcat.review.review import Review
    from textcat.tagging.judged_sample import JudgedSample


@alternatives(
    *("uncertain read", "uncertain report", "read report", "out read", "out report", "sample uncertain", "sample audit")
)
def review(
    folder: Annotated[Path, Argument(help="Folder of tags that `textcat tag --out` has written.")],
    corrections: Annotated[
        Path | None, Option(help="Folder for the answers.", show_default="FOLDER's name and -corrections")
    ] = None,
    most: Annotated[int, Option(min=1, help="Maximum number of documents in the queue.")] = 1000,
    audit: Annotated[float, Option(min=0, max=1, help="Share of automatic tags, drawn at random, to audit.")] = 0.0,
    sample: Annotated[
        int,
        Option(
            min=0, help="Draw this many documents of each month at random, and judge all their topics; 0: no sample."
        ),
    ] = 0,
    independent: Annotated[
        bool, Option("--independent", help="Let everybody judge every document, without seeing the answers of others.")
    ] = False,
    uncertain: Annotated[
        int | None, Option(min=1, help="Write this many documents to the CSV file --out, for a spreadsheet, then exit.")
    ] = None,
    out: Annotated[Path | None, Option(help="CSV file for --uncertain or --sample.")] = None,
    read: Annotated[
        Path | None, Option(metavar="FILE", help="Read the answers in a file that --out wrote, then exit.")
    ] = None,
    report: Annotated[
        bool,
        Option(
            "--report", help="Print the precision of audited tags, and the precision and recall of a sample, then exit."
        ),
    ] = False,
    person: Annotated[
        str, Option(help="Name of the person who answered in the file of --read.", show_default="the user's name")
    ] = "",
    host: common.PageHost = "127.0.0.1",
    port: common.PagePort = 8000,
    keys: common.PageKeys = None,
    no_browser: common.NoBrowser = False,
    form: common.Form = "text",
) -> None:
    """Serve a page on which people judge an archive's tags that need review; the most useful documents come first.

    Each answer is saved at once; `textcat learn MODEL --from FOLDER` updates a model by the answers in the folder.
    Documents that were judged before are not shown again. With --read, the exit code is 3 if documents have changed
    since they were tagged, or since the sheet was written, so that their answers are not stored.
    """
    from textcat.review.review import Review, corrections_of
    from textcat.review.sheet import read_sheet, write_sheet

    if (uncertain is None) != (out is None) and not (sample and out):
        raise BadParameter("--uncertain N and --out FILE go together, or --sample N and --out FILE")
    if sum([uncertain is not None, read is not None, report]) > 1:
        raise BadParameter("--uncertain, --read and --report are three things to do: give one of them")
    if report:
        _report(folder, corrections_of(folder, corrections), form)
        return
    if read is not None:
        result = read_sheet(read, folder, corrections, person or user_name())
        repeated = f"; {result.repeated:,} had been read before" if result.repeated else ""
        emptied = f"; {result.emptied:,} have no answer any more: the former ones stay" if result.emptied else ""
        terminal.say(f"{result.kept:,} documents answered{repeated}{emptied}.")
        if result.missing:
            terminal.say(
                f"warning: {len(result.missing):,} documents with answers, such as {result.missing[0]}, are gone, or "
                "have changed since they were tagged: their answers are not stored. If files have changed, tag the "
                "archive again, then read the sheet again."
            )
        if result.changed:
            terminal.say(
                f"warning: {len(result.changed):,} documents with answers, such as {result.changed[0]}, have another "
                "text now, or other tags, than when the sheet was written: their answers are not stored. Write a new "
                f"sheet of them: `textcat review {quote(str(folder))} --uncertain N --out FILE`, or --sample N."
            )
        if result.missing or result.changed:
            raise typer.Exit(3)
        return
    if sample and (uncertain is not None or audit):
        raise BadParameter("--sample draws whole documents: leave out --uncertain and --audit")
    options: dict[str, Any] = {"audit": audit, "sample": sample, "progress": lambda step: terminal.say(f"{step} …")}
    if out is not None:
        queue = Review(folder, corrections, most=uncertain or most, **options)
        _check_queue(queue)
        n_rows = write_sheet(queue, out)
        terminal.say(
            f"{out} has {n_rows:,} tags of {len(queue.documents):,} documents to judge; fill in the columns answer (yes"
            f" or no), add and note, then give `textcat review {quote(str(folder))} --read {quote(str(out))}`."
        )
        return
    accepted = checked_keys(host, keys, "give people a spreadsheet, by --uncertain and --out")
    from textcat.serving import review as page

    queue = Review(folder, corrections, most=most, independent=independent, **options)
    _check_queue(queue)

    def show(url: str) -> None:
        terminal.say(f"{len(queue.documents):,} documents to judge at {url}; Ctrl-C stops, and every answer is saved.")

    if page.serve(queue, host, port, keys=accepted, open_browser=not no_browser, on_start=show) == signal.SIGINT:
        raise Interrupted("every answer is saved; the same command goes on")
    terminal.say("stopped; every answer is saved.")


def _check_queue(queue: "Review") -> None:
    """Raise TextcatError if there is no document to judge; warn of documents that are gone or changed since tagging."""
    if queue.n_missing:
        rest = "so those drawn after them do not count as a sample" if queue.sample else "and are left out"
        terminal.say(
            f"warning: {queue.n_missing:,} documents are gone, or have changed since they were tagged, {rest}: give "
            "`textcat tag --out` again if they have changed."
        )
    if not queue.documents:
        if queue.n_missing:
            raise TextcatError(f"No document of {queue.folder} is where it was tagged: give `textcat tag --out` again.")
        if queue.sample:
            raise TextcatError(f"The sample of {queue.folder} is judged: give a larger --sample.")
        raise TextcatError(
            f"No tag of {queue.folder} waits for a person, or all are answered: give --audit .02 to see automatic ones."
        )


def _report(folder: Path, corrections: Path, form: str) -> None:
    from textcat.corpus.corrections import Corrections
    from textcat.review.audit import audit_rows, present_tags
    from textcat.runs.parts import warn_of_lacks
    from textcat.tagging.judged_sample import judged_sample

    stored = Corrections(corrections, must_exist=True)
    warn_of_lacks([folder])
    rows = audit_rows(stored, present_tags(folder, stored))
    show_audit(terminal.console(), rows, judged_sample(folder, stored), stored.agreement(), form)


def show_audit(
    console: "Console", rows: "list[AuditRow]", judged: "JudgedSample", agreement: "Agreement", form: str
) -> None:
    """Print the quality of tags that people have judged, with intervals.

    For automatic tags drawn at random, it is their precision: overall, by topic and by month. For a random sample of
    documents, it is the precision and recall of their tags: overall and by topic.
    """
    from textcat.cli.printing import Facts, Figure, Table, format_figure, format_interval, show
    from textcat.review.audit import sample_rows

    sample = sample_rows(judged.documents, judged.months)
    if not rows and not sample and judged.n_outside:
        raise TextcatError(
            f"None of the {judged.n_outside:,} judged documents is part of a random sample, because documents that are "
            "drawn before them are not judged: give --sample 100, and judge these."
        )
    if not rows and not sample:
        raise TextcatError(
            "No automatic tag and no document was drawn and judged yet: give --audit .02 or --sample 100, and answer."
        )
    parts = []
    for name in ("", "topic", "month"):
        group = [row for row in rows if bool(row.topic) == (name == "topic") and bool(row.month) == (name == "month")]
        cells = [
            {
                name or "automatic tags": getattr(row, name) if name else "all",
                "judged": Figure(f"{row.judged:,}", row.judged),
                "right": Figure(f"{row.right:,}", row.right),
                "precision": format_figure(row.precision),
                "95% interval": format_interval((row.low, row.high)),
            }
            for row in group
        ]
        parts.append(Table(cells))
    cells = [
        {
            f"{row.documents:,} sampled documents": row.topic or "all topics",
            "with it": Figure(f"{row.with_topic:,}", row.with_topic),
            "tagged": Figure(f"{row.tagged:,}", row.tagged),
            "right": Figure(f"{row.right:,}", row.right),
            "precision": format_figure(row.precision),
            "95% interval": format_interval(_ends(row.precision_low, row.precision_high)),
            "recall": format_figure(row.recall),
            "95% interval of recall": format_interval(_ends(row.recall_low, row.recall_high)),
        }
        for row in sample
    ]
    outside, gone = f"{judged.n_outside:,} documents", f"{judged.n_gone:,} documents"
    of_several = f"{agreement.shared:,}, {agreement.disputed:,} of which are disputed: the majority counts"
    facts = {
        "judged, but not in the sample": f"{outside}: --sample N draws those before them" if judged.n_outside else None,
        "judged, but gone": gone if judged.n_gone else None,
        "in months without a sample": f"{judged.n_other:,} documents" if judged.n_other else None,
        "topics that several people judged": of_several if agreement.shared else None,
    }
    audited, sampled = ([row._asdict() for row in group] for group in (rows, sample))
    data = {"audit": audited, "sample": sampled, **agreement._asdict()}
    data |= {"judged_outside": judged.n_outside, "judged_gone": judged.n_gone, "in_other_months": judged.n_other}
    show(console, form, data, *parts, Table(cells), Facts(facts), rows=lambda: audited or sampled)


def _ends(low: float | None, high: float | None) -> tuple[float, float] | None:
    return None if low is None or high is None else (low, high)
