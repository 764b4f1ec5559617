"""Consoles to print to, messages and a question to people, and a filter for control characters."""

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from textcat.base.disk import expanded
from textcat.base.errors import TextcatError

if TYPE_CHECKING:
    from rich.console import Console

    from textcat.base.progress import Stages


def may_be_terminal() -> bool:
    """Return whether rich may treat standard error as a terminal; if not, rich need not be imported.

    Environment variables such as FORCE_COLOR make rich treat any output as a terminal.
    """
    return sys.stderr.isatty() or not {"FORCE_COLOR", "TTY_COMPATIBLE"}.isdisjoint(os.environ)


def is_typed() -> bool:
    """Return whether standard input is a terminal, where a user may not notice that the program waits for input."""
    return sys.stdin is not None and sys.stdin.isatty()


def can_ask() -> bool:
    """Return whether a person can be asked: whether standard input and standard error are a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def say(sentence: str) -> None:
    """Print a sentence to standard error, as all messages that are not results."""
    typer.echo(f"textcat: {sentence}", err=True)


def check_replacing(folder: Path, *, force: bool) -> None:
    """If a folder has a model, ask at a terminal whether to replace it, unless `force` is set.

    Raise TextcatError if the answer is no, or if nobody can be asked.
    """
    from textcat.base.folders import MANIFEST

    if force or not (expanded(folder) / MANIFEST).exists():
        return
    if can_ask():
        with suppress(typer.Abort):  # Ctrl-D means no
            if typer.confirm(f"The model {folder} exists. Replace it?", err=True):
                return
        raise TextcatError(f"The model {folder} is not replaced: name another folder with --out.")
    raise TextcatError(f"The model {folder} exists: replace it with --force, or name another folder with --out.")


def console(*, stderr: bool = False) -> "Console":
    """Return standard output, or standard error, as a console; a pipe or a file is 100 characters wide."""
    from rich.console import Console

    made = Console(stderr=stderr, highlight=False)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = _WIDTH_OF_FILES
    return made


_WIDTH_OF_FILES = 100
# One character for each, so that positions in a text stay the same; line feeds and tabs are harmless.
_SIGNS = dict.fromkeys(range(0x7F, 0xA0), 0xFFFD)
_SIGNS |= {code: 0x2400 + code for code in range(32) if code not in (9, 10)}
_SIGNS |= dict.fromkeys((11, 12, 13, 0x85), 32)  # other line ends


def harmless(text: str) -> str:
    """Return a text in which visible characters replace control characters.

    With control characters, a document could command the terminal.
    """
    return text.translate(_SIGNS)


def new_stages() -> "Stages":
    """Return an object that times the stages of a job, and draws their progress on standard error."""
    from textcat.base.progress import Stages

    return Stages(console(stderr=True))
