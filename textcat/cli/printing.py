"""Print results of commands in one of five forms: text, JSON, CSV, Markdown or LaTeX."""

import json
import os
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple, TypeAlias

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from textcat.base.progress import Stages, peak_memory
from textcat.cli import terminal
from textcat.evaluation.export import cell_text, csv_of_rows, formatted_tables

_LEAST_WIDTH = 40  # characters of a first column that is wrapped


class Figure(str):
    """A number as tables show it; `value` is the number itself, for CSV. Columns of figures are right-aligned."""

    value: Any

    def __new__(cls, text: object, value: Any = ...) -> "Figure":
        """Return a figure; without a value, CSV has the text."""
        made = super().__new__(cls, text)
        made.value = made if value is ... else value
        return made


class Note(str):
    """A text that is wrapped into lines of the console's width."""


class Facts(NamedTuple):
    """Facts to print by name; facts that are None are not printed."""

    facts: Mapping[str, Any]
    title: str = ""


class Table(NamedTuple):
    """The rows of a table; all rows have the same keys, which are the headers."""

    rows: Sequence[Mapping[str, Any]]
    # number of first columns that are printed however narrow the console is; None: all columns
    needed: int | None = None
    most: int | None = None  # number of rows that are printed as text; None: all


#: The parts of a result, printed in this order; "" and tables without rows are left out.
Part: TypeAlias = str | Facts | Table


def show(
    console: Console, form: str, data: Any, *parts: Part, rows: Callable[[], Sequence[Mapping[str, Any]]] | None = None
) -> None:
    """Print a result in a form: "text", "json", "csv", "markdown" or "latex".

    JSON is `data`. CSV is the result of `rows`; by default, the rows of the first table or, without tables, one row
    with all facts. The other forms print the parts, separated by blank lines.
    """
    if form == "json":
        print_json(console, data)
    elif form == "csv":
        console.file.write(csv_of_rows(_plain_rows(parts) if rows is None else rows()))
    elif form == "text":
        _show_text(console, [part for part in parts if _says_something(part)])
    else:
        console.file.write("\n".join(_formatted(part, form) for part in parts if _says_something(part)))


def _says_something(part: Part) -> bool:
    return bool(part.rows if isinstance(part, Table) else part)


def _plain_rows(parts: Sequence[Part]) -> list[dict[str, Any]]:
    tables = (part.rows for part in parts if isinstance(part, Table))
    facts = {name: value for part in parts if isinstance(part, Facts) for name, value in part.facts.items()}
    return [
        {name: cell.value if isinstance(cell, Figure) else cell for name, cell in row.items()}
        for row in next(tables, [facts])
    ]


def _show_text(console: Console, parts: Sequence[Part]) -> None:
    before: Part = ""
    for part in parts:
        if before and not (isinstance(before, str) and isinstance(part, str)):
            console.print()
        before = part
        if isinstance(part, Table):
            _show_table(console, part)
        elif isinstance(part, Facts):
            _show_facts(console, part)
        else:
            print_text(console, wrapped_text(console, part) if isinstance(part, Note) else part)


def _show_table(console: Console, table: Table) -> None:
    rows = table.rows[: table.most]
    show_columns(console, [(title, [row[title] for row in rows]) for title in rows[0]], needed=table.needed)
    if len(rows) < len(table.rows):
        console.print(f"... and {len(table.rows) - len(rows):,} more", style="dim")


def _show_facts(console: Console, part: Facts) -> None:
    """Print each fact, wrapped into lines of at most 100 characters; words are not split."""
    if part.title:
        print_text(console, part.title)
    shown, indent = dict(_facts_in_words(part.facts)), "  " * bool(part.title)
    width = max(map(len, shown), default=0) + 2
    room = max(20, min(console.width, 100) - width - len(indent))
    for name, value in shown.items():
        lines = textwrap.wrap(value, room, break_long_words=False, break_on_hyphens=False) or [""]
        print_text(console, f"\n{indent}{'':{width}}".join([f"{indent}{name:{width}}{lines[0]}", *lines[1:]]))


def _facts_in_words(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in facts.items():
        if value is not None:
            yield name.replace("_", " "), _fact_text(name, value)


def _fact_text(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value / 1e6:,.0f} MB" if name.endswith("memory") else f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.1f}"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _formatted(part: Part, form: str) -> str:
    tables: Sequence[Any] = ()
    if isinstance(part, Table):
        tables = [part.rows[: part.most]]
    elif isinstance(part, Facts):
        tables = [[{part.title or "fact": name, "value": value} for name, value in _facts_in_words(part.facts)]]
    return formatted_tables(tables, "latex" if form == "latex" else "markdown", [part] if isinstance(part, str) else ())


def show_columns(console: Console, columns: Sequence[tuple[str, Sequence[Any]]], *, needed: int | None = None) -> None:
    """Print columns, each a title and cells, as a table; cells are never cut off.

    The first column and columns of words are aligned left, columns of numbers right. If the console is too narrow,
    columns are left out from the end, and named below the table; the first `needed` columns (by default all) are always
    printed. On a terminal, a first column of more than 40 characters is wrapped before that; and a last column of words
    is wrapped, if there is room for its title and for 20 characters.
    """
    table = [_Column(title, cells) for title, cells in columns]
    left_out: list[str] = []
    if needed is not None and table and console.is_terminal:
        room = console.width - sum(column.width + 2 for column in table[1:])
        table[0].width = min(table[0].width, max(_LEAST_WIDTH, room))
    while needed is not None and len(table) > needed and sum(column.width + 2 for column in table) - 2 > console.width:
        left_out.insert(0, table.pop().title.replace("\n", " "))
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
    for cells in zip(*(column.lines for column in table), strict=True):
        for pieces in zip_longest(*cells, fillvalue=""):
            print_line(pieces)
    if left_out:
        print_text(console, f"(no room for {', '.join(left_out)}: widen the terminal, or see --as json)")


class _Column:
    """A column as text: its header, its cells, and its width."""

    def __init__(self, title: str, cells: Sequence[Any]):
        self.title, self.header = title, title.split("\n")
        self.cells = [terminal.harmless(cell_text(cell)) for cell in cells]
        self.is_words = any(isinstance(cell, (str, os.PathLike)) and type(cell) is not Figure for cell in cells)
        self.width = max(map(cell_len, [*self.header, *self.cells]))

    @property
    def lines(self) -> list[list[str]]:
        """The lines of each cell, which are as many as its width makes necessary."""
        return [
            # wide characters take two cells
            textwrap.wrap(cell, self.width * len(cell) // cell_len(cell), break_on_hyphens=False)
            if cell_len(cell) > self.width
            else [cell]
            for cell in self.cells
        ]

    def aligned(self, text: str) -> str:
        padding = " " * (self.width - cell_len(text))
        return text + padding if self.is_words else padding + text


def format_figure(value: float | None, decimals: int = 3, undefined: str = "-", sign: str = "") -> Figure:
    """Return a number as a cell, without the zero before the point: .751; return `undefined` for None.

    If `sign` is "+", positive numbers get a plus sign.
    """
    text = undefined if value is None else re.sub(r"^([+-]?)0\.", r"\1.", f"{value:{sign}.{decimals}f}")
    return Figure(text, value)


def format_p_value(p: float | None) -> Figure:
    """Return a p-value as a cell with four decimals, or "<.0001"; "-" for None."""
    return Figure("<.0001", p) if p is not None and p < 0.0001 else format_figure(p, 4)


def seconds_cell(seconds: float | None) -> Figure:
    """Return seconds as a cell with two decimals; "-" for None."""
    return Figure("-" if seconds is None else f"{seconds:,.2f}", seconds)


def format_interval(bounds: tuple[float, float] | None, sign: str = "") -> Figure:
    """Return an interval as a cell: ".71 to .79", or "-" for None.

    If `sign` is "+", positive bounds get a plus sign.
    """
    text = "-" if bounds is None else " to ".join(format_figure(bound, sign=sign) for bound in bounds)
    return Figure(text, bounds and f"{bounds[0]} to {bounds[1]}")


def print_text(console: Console, text: str) -> None:
    """Print a text without wrapping it; control characters are printed as visible characters."""
    console.print(terminal.harmless(text), soft_wrap=True, markup=False)


def wrapped_text(console: Console, text: str, indent: str = "") -> str:
    """Return a text wrapped into lines of the console's width, but of at least 40 and at most 100 characters.

    Longer words are not broken.
    """
    width = max(40, min(console.width, 100)) - len(indent)
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    return textwrap.indent("\n".join(lines), indent)


def print_json(console: Console, value: Any, indent: int | None = 1) -> None:
    """Print a value as JSON, with null for NaN and infinity, which JSON does not have."""
    finite = json.loads(json.dumps(value), parse_constant=lambda _: None)
    console.file.write(json.dumps(finite, ensure_ascii=False, indent=indent) + "\n")


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


def stage_table(seconds: Mapping[str, float], peak_memory: int | None = None) -> Table:
    """Return a row for the seconds of each stage, one for the total and, unless it is None, one for the peak memory."""
    cells = {stage: f"{taken:.2f}" for stage, taken in (*seconds.items(), ("total", sum(seconds.values())))}
    if peak_memory is not None:
        cells["peak memory"] = f"{peak_memory / 1e6:.0f} MB"
    return Table([{"stage": stage, "seconds": Figure(cell)} for stage, cell in cells.items()])


def settings_text(values: Mapping[str, Any], between: str = "=") -> str:
    """Return settings as text, "name=value, …", without those that are None; return "defaults" if there are no others.

    `between` separates a name and its value.
    """
    return ", ".join(f"{name}{between}{value}" for name, value in values.items() if value is not None) or "defaults"
