"""The command that examines an installation."""

from typing import TYPE_CHECKING, Any

from textcat.cli import common, terminal

if TYPE_CHECKING:
    from rich.console import Console

    from textcat.doctor.examine import Examination


def doctor(as_json: common.AsJson = False) -> int:
    """Examine this installation: versions, machine, limits and data; check every compiled kernel in a few seconds.

    The exit code is 1 if something is broken. Nothing secret is printed: paste the output into a report of an error.
    """
    from textcat.doctor.examine import examine

    examination = examine()
    show_examination(terminal.console(), examination, as_json=as_json)
    return 1 if examination.broken else 0


def show_examination(console: "Console", examination: "Examination", *, as_json: bool) -> None:
    """Print the facts of an examination by section, the checks of kernels, and what is wrong."""
    from textcat.cli import tables

    if as_json:
        tables.print_json(console, examination.as_dict())
        return
    for section, facts in examination.facts.items():
        tables.print_text(console, section)
        lines = (f"  {name}: {_in_words(value)}\n" for name, value in facts.items())
        tables.print_text(console, "".join(lines))
    right = [check for check in examination.kernels if not check.error]
    seconds = sum(check.seconds for check in examination.kernels)
    tables.print_text(console, f"kernels: {len(right)} of {len(examination.kernels)} compute right ({seconds:.1f} s)")
    for sentence in examination.warnings:
        tables.print_text(console, f"warning: {sentence}")
    for sentence in examination.broken:
        tables.print_text(console, f"broken: {sentence}")
    if not examination.broken:
        tables.print_text(console, "Nothing is broken.")


def _in_words(value: Any) -> str:
    if value is None:
        return "unlimited or unknown"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
