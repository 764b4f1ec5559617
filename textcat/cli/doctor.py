"""The command that examines an installation."""

from typing import TYPE_CHECKING, Any

from textcat.cli import common, terminal

if TYPE_CHECKING:
    from rich.console import Console

    from textcat.doctor.examine import Examination


def doctor(form: common.Form = "text") -> int:
    """Examine this installation: versions, machine, limits and data; check every compiled kernel in a few seconds.

    The exit code is 1 if something is broken. Nothing secret is printed: paste the output into a report of an error.
    """
    from textcat.doctor.examine import examine

    examination = examine()
    show_examination(terminal.console(), examination, form)
    return 1 if examination.broken else 0


def show_examination(console: "Console", examination: "Examination", form: str) -> None:
    """Print the facts about an installation by section, the checks of compiled functions, and the problems found."""
    from textcat.cli.printing import Facts, show

    right = [check for check in examination.kernels if not check.error]
    seconds = sum(check.seconds for check in examination.kernels)
    show(
        console,
        form,
        examination.as_dict(),
        *(
            Facts({name: _in_words(value) for name, value in facts.items()}, section)
            for section, facts in examination.facts.items()
        ),
        f"kernels: {len(right)} of {len(examination.kernels)} compute right ({seconds:.1f} s)",
        *(f"warning: {sentence}" for sentence in examination.warnings),
        *(f"broken: {sentence}" for sentence in examination.broken),
        "" if examination.broken else "Nothing is broken.",
    )


def _in_words(value: Any) -> Any:
    return "unlimited or unknown" if value is None else str(value) if type(value) in (int, float) else value
