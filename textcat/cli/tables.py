"""Rows → tables as text for people, as Markdown and LaTeX for papers, or JSON for programs."""

import json
import os
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from textcat.cli import terminal
from textcat.evaluation.export import cell_text, formatted_tables
from textcat.progress import Stages, peak_memory


class Figure(str):
    """A cell of a column of numbers, which stands right."""


def show(console: Console, rows: Sequence[Mapping[str, Any]], *, needed: int | None = None) -> None:
    """Print rows that have the same keys, which are the headers; see `show_columns`."""
    show_columns(console, [(title, [row[title] for row in rows]) for title in rows[0]] if rows else [], needed=needed)


def show_columns(console: Console, columns: Sequence[tuple[str, Sequence[Any]]], *, needed: int | None = None) -> None:
    """Print a table; no cell is cut off, on a terminal, in a pipe or in a file.

    Columns that hold words stand left. Where a line has no room for all of them, the last are left out, and named, but
    never the first `needed` ones (by default all); a last column of words is wrapped on a terminal.
    """
    table = [_Column(title, cells) for title, cells in columns]
    left_out: list[str] = []
    while needed is not None and len(table) > needed and sum(column.width + 2 for column in table) - 2 > console.width:
        left_out.insert(0, table.pop().title)
    if not table:
        return

    def print_line(cells: Sequence[str], style: str = "") -> None:
        aligned = (column.aligned(cell) for column, cell in zip(table, cells, strict=True))
        console.print(Text("  ".join(aligned).rstrip(), style), soft_wrap=True)

    table[0].is_words, last = True, table[-1]
    room = console.width - sum(column.width + 2 for column in table[:-1])
    if console.is_terminal and last.is_words and room >= max(20, cell_len(last.title)):
        last.width = min(last.width, room)
    for header in zip_longest(*(column.header for column in table), fillvalue=""):
        print_line(header, "bold")
    for *cells, words in zip(*(column.cells for column in table), strict=True):
        first, *rest = textwrap.wrap(words, last.width) if cell_len(words) > last.width else [words]
        print_line([*cells, first])
        for piece in rest:
            print_line([""] * len(cells) + [piece])
    if left_out:
        print_text(console, f"(no room for {', '.join(left_out)}: widen the terminal, or see --json)")


class _Column:
    """A column of a table as text."""

    def __init__(self, title: str, cells: Sequence[Any]):
        self.title, self.header = title, title.split("\n")
        self.cells = [terminal.harmless(cell_text(cell)) for cell in cells]
        self.is_words = any(isinstance(cell, (str, os.PathLike)) and type(cell) is not Figure for cell in cells)
        self.width = max(map(cell_len, [*self.header, *self.cells]))

    def aligned(self, text: str) -> str:
        padding = " " * (self.width - cell_len(text))
        return text + padding if self.is_words else padding + text


def format_figure(value: float | None, decimals: int = 3, undefined: str = "-", sign: str = "") -> Figure:
    """Return .751 for 0.751, as tables of precision have it."""
    return Figure(undefined if value is None else re.sub(r"^([+-]?)0\.", r"\1.", f"{value:{sign}.{decimals}f}"))


def format_interval(bounds: tuple[float, float] | None, sign: str = "") -> Figure:
    """Return the ends of an interval as a cell."""
    return Figure("-" if bounds is None else " to ".join(format_figure(bound, sign=sign) for bound in bounds))


def print_text(console: Console, text: str) -> None:
    """Print a text as it is, without control characters."""
    console.print(terminal.harmless(text), soft_wrap=True, markup=False)


def wrapped_text(console: Console, text: str, indent: str = "") -> str:
    """Return a text in lines that the console has room for."""
    width = max(40, min(console.width, 100)) - len(indent)
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    return textwrap.indent("\n".join(lines), indent)


def show_facts(console: Console, facts: Mapping[str, Any]) -> None:
    """Print a line for each fact that is there."""
    width = max(map(len, facts))
    for name, value in facts.items():
        if value is not None:
            print_text(console, f"{name:{width}}  {value}")


def print_json(console: Console, value: Any, indent: int | None = 1) -> None:
    """Write a value as JSON, in which a number that is none is null."""
    finite = json.loads(json.dumps(value), parse_constant=lambda _: None)  # NaN is no number in JSON
    console.file.write(json.dumps(finite, ensure_ascii=False, indent=indent) + "\n")


def show_in_form(console: Console, tables: Iterable[Sequence[Mapping[str, Any]]], form: str) -> None:
    """Print tables in the form "markdown" or "latex"."""
    console.file.write(formatted_tables(tables, "latex" if form == "latex" else "markdown"))


def show_rows(console: Console, rows: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    """Print rows as a table, or as JSON."""
    (print_json if as_json else show)(console, rows)


def named_rows(titles: Iterable[str], rows: Iterable[Iterable[Any]]) -> list[dict[str, Any]]:
    """Return rows of cells as rows by title."""
    names = list(titles)
    return [dict(zip(names, row, strict=True)) for row in rows]


def largest_first(rows: Iterable[dict[str, Any]], size: str = "train") -> list[dict[str, Any]]:
    """Return rows of topics by a size, the largest first, equal ones by name."""
    return sorted(rows, key=lambda row: (-row[size], row["topic"]))


def cost_of_stages(stages: Stages) -> dict[str, Any]:
    """Return the seconds of each stage, and the peak memory."""
    return {"seconds": stages.seconds, "peak_memory": peak_memory()}


def show_stages(console: Console, stages: Stages) -> None:
    """Print what each stage took."""
    show(console, stage_rows(stages.seconds, peak_memory()))


def stage_rows(seconds: Mapping[str, float], peak_memory: int | None = None) -> list[dict[str, str]]:
    """Return the seconds each stage took, their sum, and the peak memory."""
    cells = {stage: f"{taken:.2f}" for stage, taken in (*seconds.items(), ("total", sum(seconds.values())))}
    if peak_memory is not None:
        cells["peak memory"] = f"{peak_memory / 1e6:.0f} MB"
    return [{"stage": stage, "seconds": Figure(cell)} for stage, cell in cells.items()]
