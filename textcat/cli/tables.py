"""Rows → a table as text, Markdown, LaTeX or JSON."""

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

from textcat.base.progress import Stages, peak_memory
from textcat.cli import terminal
from textcat.evaluation.export import cell_text, formatted_tables


class Figure(str):
    """A number as text: columns of such cells are aligned right."""


def show(console: Console, rows: Sequence[Mapping[str, Any]], *, needed: int | None = None) -> None:
    """Print rows as a table; all rows have the same keys, which are the headers. `needed` is as in `show_columns`."""
    show_columns(console, [(title, [row[title] for row in rows]) for title in rows[0]] if rows else [], needed=needed)


def show_columns(console: Console, columns: Sequence[tuple[str, Sequence[Any]]], *, needed: int | None = None) -> None:
    """Print columns, each a title and cells, as a table; cells are never cut off.

    Columns of words are aligned left, columns of numbers right. If the console is too narrow, columns are left out from
    the end, and named below the table; the first `needed` columns (by default all) are always printed. On a terminal, a
    last column of words is wrapped.
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
    """A column as text: its header, its cells, and its width."""

    def __init__(self, title: str, cells: Sequence[Any]):
        self.title, self.header = title, title.split("\n")
        self.cells = [terminal.harmless(cell_text(cell)) for cell in cells]
        self.is_words = any(isinstance(cell, (str, os.PathLike)) and type(cell) is not Figure for cell in cells)
        self.width = max(map(cell_len, [*self.header, *self.cells]))

    def aligned(self, text: str) -> str:
        padding = " " * (self.width - cell_len(text))
        return text + padding if self.is_words else padding + text


def format_figure(value: float | None, decimals: int = 3, undefined: str = "-", sign: str = "") -> Figure:
    """Return a number as a cell, without the zero before the point: .751; return `undefined` for None.

    If `sign` is "+", positive numbers get a plus sign.
    """
    return Figure(undefined if value is None else re.sub(r"^([+-]?)0\.", r"\1.", f"{value:{sign}.{decimals}f}"))


def format_p_value(p: float | None) -> Figure:
    """Return a p-value as a cell with four decimals, or "<.0001"; "-" for None."""
    return Figure("<.0001") if p is not None and p < 0.0001 else format_figure(p, 4)


def seconds_cell(seconds: float | None) -> Figure:
    """Return seconds as a cell with two decimals; "-" for None."""
    return Figure("-" if seconds is None else f"{seconds:,.2f}")


def format_interval(bounds: tuple[float, float] | None, sign: str = "") -> Figure:
    """Return an interval as a cell: ".71 to .79", or "-" for None.

    If `sign` is "+", positive bounds get a plus sign.
    """
    return Figure("-" if bounds is None else " to ".join(format_figure(bound, sign=sign) for bound in bounds))


def print_text(console: Console, text: str) -> None:
    """Print a text without wrapping it; control characters are printed as visible characters."""
    console.print(terminal.harmless(text), soft_wrap=True, markup=False)


def wrapped_text(console: Console, text: str, indent: str = "") -> str:
    """Return a text wrapped into lines of the console's width, but of at most 100 characters."""
    width = max(40, min(console.width, 100)) - len(indent)
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    return textwrap.indent("\n".join(lines), indent)


def show_facts(console: Console, facts: Mapping[str, Any]) -> None:
    """Print each fact whose value is not None, wrapped into lines of at most 100 characters; words are not split."""
    width = max(map(len, facts)) + 2
    for name, value in facts.items():
        if value is not None:
            lines = textwrap.wrap(str(value), 100 - width, break_long_words=False, break_on_hyphens=False) or [""]
            print_text(console, f"\n{'':{width}}".join([f"{name:{width}}{lines[0]}", *lines[1:]]))


def print_json(console: Console, value: Any, indent: int | None = 1) -> None:
    """Print a value as JSON, with null for NaN and infinity, which JSON does not have."""
    finite = json.loads(json.dumps(value), parse_constant=lambda _: None)
    console.file.write(json.dumps(finite, ensure_ascii=False, indent=indent) + "\n")


def show_in_form(
    console: Console, tables: Iterable[Sequence[Mapping[str, Any]]], form: str, notes: Iterable[str] = ()
) -> None:
    """Print tables, and notes below them, as "markdown" or as "latex"."""
    console.file.write(formatted_tables(tables, "latex" if form == "latex" else "markdown", notes))


def show_rows(console: Console, rows: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    """Print rows as a table, or as JSON."""
    (print_json if as_json else show)(console, rows)


def named_rows(titles: Iterable[str], rows: Iterable[Iterable[Any]]) -> list[dict[str, Any]]:
    """Return each row as a dict from the titles of the columns to the row's cells."""
    names = list(titles)
    return [dict(zip(names, row, strict=True)) for row in rows]


def largest_first(rows: Iterable[dict[str, Any]], size: str = "train") -> list[dict[str, Any]]:
    """Return rows of topics sorted by the number under the key `size`, the largest first; ties are sorted by topic."""
    return sorted(rows, key=lambda row: (-row[size], row["topic"]))


def cost_of_stages(stages: Stages) -> dict[str, Any]:
    """Return the cost of a job for JSON output: the seconds of each stage, and the peak memory."""
    return {"seconds": stages.seconds, "peak_memory": peak_memory()}


def show_stages(console: Console, stages: Stages) -> None:
    """Print the seconds of each stage, and the peak memory."""
    show(console, stage_rows(stages.seconds, peak_memory()))


def stage_rows(seconds: Mapping[str, float], peak_memory: int | None = None) -> list[dict[str, str]]:
    """Return a row for the seconds of each stage, one for the total and, unless it is None, one for the peak memory."""
    cells = {stage: f"{taken:.2f}" for stage, taken in (*seconds.items(), ("total", sum(seconds.values())))}
    if peak_memory is not None:
        cells["peak memory"] = f"{peak_memory / 1e6:.0f} MB"
    return [{"stage": stage, "seconds": Figure(cell)} for stage, cell in cells.items()]
