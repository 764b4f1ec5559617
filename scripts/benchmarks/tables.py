"""Tables of benchmarks: each is a file NAME.json, which pages show where they say `<!-- table: NAME -->`.

python scripts/benchmarks/tables.py docs/benchmarks     # writes the tables in the pages of a folder anew
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

FOLDER = "tables"  # beside the pages
_SHOWN = re.compile(r"(?<=<!-- table: )([\w-]+)( -->\n).*?(?=<!-- end of table -->)", re.DOTALL)


class Conditions(NamedTuple):
    """When, of what, where and by which command a table was measured."""

    date: str
    commit: str
    recipe: str
    machine: str
    load: str
    software: str
    command: str


class Table(NamedTuple):
    """Figures as they are shown; `None` is shown as a dash."""

    title: str
    conditions: Conditions
    columns: Sequence[str]
    rows: Sequence[Sequence[str | None]]

    def __str__(self) -> str:
        return f"{self.grid()}\n{self.measured()}\n"

    def grid(self) -> str:
        """Return the figures in Markdown."""
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        return "".join(f"| {' | '.join('-' if cell is None else cell for cell in line)} |\n" for line in lines)

    def measured(self) -> str:
        """Return a sentence of how the figures were measured."""
        return f"Measured: {_listed(self.conditions._asdict())}."

    def measured_as(self, above: Conditions) -> str:
        """Return a sentence of what differs from the conditions of the table above."""
        differing = {name: value for name, value in self.conditions._asdict().items() if value != getattr(above, name)}
        return f"Measured as the table above{', except ' if differing else ''}{_listed(differing)}."


def _listed(conditions: Mapping[str, str]) -> str:
    return "; ".join(f"{name}: {value}" for name, value in conditions.items())


def make_table(title: str, conditions: Conditions, rows: Sequence[Mapping[str, object]]) -> Table:
    """Return the table of rows by column; all rows have the columns of the first one."""
    columns = list(rows[0])
    cells = [[None if row[column] is None else str(row[column]) for column in columns] for row in rows]
    return Table(title, conditions, columns, cells)


def read_table(path: Path) -> Table:
    """Read a table from its file."""
    fields = json.loads(path.read_text(encoding="utf-8"))
    return Table(fields["title"], Conditions(**fields["conditions"]), fields["columns"], fields["rows"])


def write_table(path: Path, table: Table) -> None:
    """Write a table to its file, a row a line."""
    fields = {"title": table.title, "conditions": table.conditions._asdict(), "columns": table.columns}
    head = json.dumps(fields, ensure_ascii=False, indent=1).removesuffix("\n}")
    rows = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in table.rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{head},\n "rows": [\n  {rows}\n ]\n}}\n', encoding="utf-8")


def with_tables(page: str, folder: Path) -> str:
    """Return the text of a page with the tables that it names, from the files of a folder.

    Of how it was measured, a table says only what differs from the one above it.
    """
    shown, above = [], None
    for name in names_of_tables(page):
        table = read_table(folder / f"{name}.json")
        measured = table.measured_as(above) if above else table.measured()
        shown.append(f"{table.grid()}\n{measured}\n")
        above = table.conditions
    tables = iter(shown)
    return _SHOWN.sub(lambda match: f"{match[1]}{match[2]}\n{next(tables)}\n", page)


def names_of_tables(page: str) -> Iterator[str]:
    """Yield the names of the tables that a page shows."""
    return (match[1] for match in _SHOWN.finditer(page))


def write_pages(folder: Path) -> None:
    """Write the tables in all pages of a folder anew."""
    for path in folder.glob("*.md"):
        page = path.read_text(encoding="utf-8")
        path.write_text(with_tables(page, folder / FOLDER), encoding="utf-8")


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
