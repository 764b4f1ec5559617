"""Where commands print: standard output, standard error with its progress, and texts made harmless for both."""

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from textcat.progress import Stages


def may_be_terminal() -> bool:
    """Return whether rich, which need not be imported else, may take standard error for a terminal."""
    return sys.stderr.isatty() or not {"FORCE_COLOR", "TTY_COMPATIBLE"}.isdisjoint(os.environ)


def console(*, stderr: bool = False) -> "Console":
    """Return standard output, or standard error, as a console."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False)


# Signs of the same length, so that places in a text stay what they are: new lines and tabs do no harm.
_SIGNS = dict.fromkeys(range(0x7F, 0xA0), 0xFFFD)
_SIGNS |= {code: 0x2400 + code for code in range(32) if code not in (9, 10)}
_SIGNS |= dict.fromkeys((11, 12, 13, 0x85), 32)  # other ends of lines


def harmless(text: str) -> str:
    """Return a text with signs for what a terminal obeys, as a document may hold it: colours, titles, other places."""
    return text.translate(_SIGNS)


def new_stages() -> "Stages":
    """Return stages that are drawn on standard error while they run."""
    from textcat.progress import Stages

    return Stages(console(stderr=True))
