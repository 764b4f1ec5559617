"""The command `monitor`: find changes in the tags of an archive."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Exit, Option

from textcat.cli import common, terminal

if TYPE_CHECKING:
    from rich.console import Console

    from textcat.tagging.monitor import Monitoring


def monitor(
    folders: Annotated[list[Path], Argument(help="Folders of tags that `textcat tag --out` has written.")],
    since: Annotated[
        str | None,
        Option(
            help="Compare documents from this day on with earlier ones, as in 2026-01-31.",
            show_default="when half of the documents had come",
        ),
    ] = None,
    level: Annotated[float, Option(help="Maximum probability of any false alarm within a year.")] = 0.05,
    form: common.Form = "text",
) -> None:
    """Find topics whose rate in an archive has changed significantly over time; exit with code 4 if there are any.

    The chance of any false alarm within a year is at most --level, however often the command is given, for example
    every night.
    """
    from textcat.tagging.monitor import monitor_tags

    found = monitor_tags(folders, since, level)
    show_monitoring(terminal.console(), found, form)
    raise Exit(4 if found.is_alarm else 0)


def show_monitoring(console: "Console", found: "Monitoring", form: str) -> None:
    """Print the data compared, and a row for each rate that has changed."""
    from textcat.cli.printing import Facts, Table, show

    undated = f"; {found.undated:,} without a date, or dated in the future, do not count" if found.undated else ""
    former = f"{found.left_out:,} documents that only former models or rules have tagged" if found.left_out else ""
    repeated = f"{found.repeated:,} documents that repeat an earlier one" if found.repeated else ""
    facts = {
        "model": found.model,
        "compared": f"{found.documents:,} documents from {found.since} to {found.last}{undated}",
        "with": f"{found.reference:,} earlier ones",
        "left out": "; ".join(filter(None, (former, repeated))) or None,
        "false alarms": f"at most {found.level:g} a year",
    }
    rows = [change._asdict() for change in found.changes]
    shown = [row | {name: f"{row[name]:.3%}" for name in ("before", "now")} for row in rows]
    data = {**found._asdict(), "changes": rows}
    says = "" if rows else "No change beyond chance."
    show(console, form, data, Facts(facts), Table(shown, needed=5), says, rows=lambda: rows)
