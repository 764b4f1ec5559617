"""Write tables of docs/benchmarks/tables, and show them in the pages of docs/benchmarks."""

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

import tables
from machine import PACKAGES, commit, load_average, processor


@dataclass(frozen=True)
class Page:
    """A table NAME.json, with what is said of it, and its picture NAME.svg where it has one."""

    name: str
    title: str
    head: tables.Conditions
    text: str  # before the table
    rows: Sequence[Mapping[str, Any]]
    notes: str = ""  # after it
    picture: str = ""  # what it shows
    draw: Callable[[Path], None] | None = None

    def __str__(self) -> str:
        parts = (f"# {self.title}", wrapped(self.text), str(self.table()), wrapped(self.notes))
        return "\n\n".join(part.strip() for part in parts if part) + "\n"

    def table(self) -> tables.Table:
        """Return the table."""
        return tables.make_table(self.title, self.head, self.rows)


def wrapped(text: str) -> str:
    """Break the lines of paragraphs anew; lists stay as they are."""
    return "\n\n".join(map(_wrapped, re.split(r"\n{2,}", text.strip())))


def _wrapped(paragraph: str) -> str:
    filled = textwrap.fill(" ".join(paragraph.split()), 120, break_long_words=False, break_on_hyphens=False)
    # A line that begins with such a sign would begin a list.
    return paragraph if re.search(r"^([-+*#>|]|\d+[.)])( |$)", f"{paragraph}\n{filled}", re.MULTILINE) else filled


def head(recipe: str, load: str, *, commits: str = "", dates: str = "") -> tables.Conditions:
    """Return of what, when, where and by which command something was measured.

    Without commits and dates, it was measured now, from this checkout.
    """
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return tables.Conditions(
        dates or str(date.today()),
        commits or commit(),
        recipe,
        f"{processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}",
        load,
        f"Python {platform.python_version()}, {versions}",
        f"`{shlex.join(['scripts/benchmark', *sys.argv[1:]])}`",
    )


class Conditions:
    """Of what, and in which state of the machine, a page is measured: made before the first run."""

    def __init__(self, recipe: str):
        self._recipe, self._load = recipe, load_average()

    def head(self) -> tables.Conditions:
        """Return the conditions, made after the last run."""
        return head(self._recipe, f"{self._load} before, {load_average()} after")


def publish(parts: Iterable[Page | str], folder: Path | None) -> None:
    """Print tables and other parts; write the tables to a folder and its pages if one is given."""
    for part in parts:
        print(part)
        if folder and isinstance(part, Page):
            tables.write_table(folder / tables.FOLDER / f"{part.name}.json", part.table())
            tables.write_pages(folder)
            if part.draw:
                part.draw(folder / f"{part.name}.svg")
