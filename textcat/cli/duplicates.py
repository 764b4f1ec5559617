"""The command `duplicates`: find the duplicates of an archive."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from textcat.cli import common, terminal
from textcat.cli.app import Interrupted

if TYPE_CHECKING:
    from rich.console import Console

    from textcat.reading import InputSettings
    from textcat.tagging.duplicates import Duplicates


@common.with_options(read=common.input_settings)
def duplicates(
    read: "InputSettings",
    inputs: Annotated[list[str], Argument(help="Files, folders, patterns such as '*.jsonl', URLs.")],
    out: Annotated[Path, Option(help="File for a JSON line per duplicate; FILE.sketches keeps what resuming needs.")],
    form: common.Form = "text",
    jobs: Annotated[
        int, Option("--jobs", "-j", callback=common.number_of_jobs, help="Processes that sketch; -1: one per core.")
    ] = -1,
    restart: Annotated[bool, Option("--restart", help="Remove the earlier run of --out, and start again.")] = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="Show no progress, and print no summary.")] = False,
) -> None:
    """Find documents that repeat an earlier one: exact, cut, reworded or misread; a group has the place of its first.

    An interrupted run resumes when the same command is given again; if an archive has grown, only its new and changed
    files are read. The exit code is 3 if documents could not be read.
    """
    from textcat.runs.progress import progress_shown
    from textcat.tagging.duplicates import find_duplicates

    drawn_on = (lambda: None) if quiet else partial(terminal.console, stderr=True)
    try:
        with progress_shown(drawn_on) as show:
            result = find_duplicates(inputs, out, input_settings=read, jobs=jobs, restart=restart, progress=show)
    except Interrupted:
        raise Interrupted("give the same command without --restart to resume the run") from None
    if not quiet:
        show_duplicates(terminal.console(), result, out, form)
    raise typer.Exit(3 if result.counts.faults or any(not change.grew for change in result.changes) else 0)


def show_duplicates(console: "Console", result: "Duplicates", out: Path, form: str) -> None:
    """Print how many documents are duplicates, and in how many groups."""
    from textcat.cli.printing import Facts, show

    facts: dict[str, Any] = {
        "documents": result.counts.records,
        "rejected": result.counts.rejected,
        "groups": result.groups,
    }
    facts |= {"exact_duplicates": result.exact, "other_duplicates": result.near}
    facts |= {"seconds": result.seconds, "peak_memory": result.memory, "output": str(out)}
    show(console, form, facts, Facts(facts))
