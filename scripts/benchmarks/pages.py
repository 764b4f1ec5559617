"""Write pages of docs/benchmarks: each has a head that says when and of what it was measured, and one table."""

from __future__ import annotations

import os
import platform
import re
import shlex
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from machine import PACKAGES, commit, load_average, processor

from textcat.base.disk import write_atomically
from textcat.evaluation.export import markdown_table


@dataclass(frozen=True)
class Page:
    """A table, with what is said of it: the page NAME.md, and its picture NAME.svg where it has one."""

    name: str
    title: str
    head: str
    text: str  # before the table
    rows: Sequence[Mapping[str, Any]]
    notes: str = ""  # after it
    picture: str = ""  # what it shows
    draw: Callable[[Path], None] | None = None

    def __str__(self) -> str:
        shown = f"![{self.picture}]({self.name}.svg)" if self.picture else ""
        text, notes = wrapped(self.text), wrapped(self.notes)
        parts = (f"# {self.title}", self.head, text, markdown_table(self.rows), shown, notes)
        return "\n\n".join(part.strip() for part in parts if part) + "\n"


def wrapped(text: str) -> str:
    """Break the lines of paragraphs anew; lists stay as they are."""
    return "\n\n".join(map(_wrapped, re.split(r"\n{2,}", text.strip())))


def _wrapped(paragraph: str) -> str:
    filled = textwrap.fill(" ".join(paragraph.split()), 120, break_long_words=False, break_on_hyphens=False)
    # A line that begins with such a sign would begin a list.
    return paragraph if re.search(r"^([-+*#>|]|\d+[.)])( |$)", f"{paragraph}\n{filled}", re.MULTILINE) else filled


def head(recipe: str, load: str, *, commits: str = "", dates: str = "") -> str:
    """Return the list at the head of a page: what was measured, when, where and by which command.

    Without commits and dates, it was measured now, from this checkout.
    """
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    fields = {
        "Date": dates or str(date.today()),
        "Commit": commits or commit(),
        "Recipe": recipe,
        "Machine": f"{processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}",
        "Load": load,
        "Software": f"Python {platform.python_version()}, {versions}",
        "Command": f"`{shlex.join(['scripts/benchmark', *sys.argv[1:]])}`",
    }
    return "".join(f"- {name}: {value}\n" for name, value in fields.items())


class Conditions:
    """Of what, and in which state of the machine, a page is measured: made before the first run."""

    def __init__(self, recipe: str):
        self._recipe, self._load = recipe, load_average()

    def head(self) -> str:
        """Return the head of the page, made after the last run."""
        return head(self._recipe, f"{self._load} before, {load_average()} after")


def publish(parts: Iterable[Page | str], folder: Path | None) -> None:
    """Print pages, and other parts that are in no folder; write the pages to a folder if one is given."""
    for part in parts:
        print(part)
        if folder and isinstance(part, Page):
            folder.mkdir(parents=True, exist_ok=True)
            write_atomically(folder / f"{part.name}.md", str(part))
            if part.draw:
                part.draw(folder / f"{part.name}.svg")
