"""Results of experiments → a Markdown page each with its pictures, and an index of the pages; JSON for programs."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from textcat.files import write_atomically
from textcat.papers.experiment import Figure, Row
from textcat.papers.runs import Result, experiments, machine

# What stands for a figure that is not known.
_NO_VALUE = "-"

_INDEX = """# Reproductions

The papers' tables and figures, run anew: a page each, with the published figures beside ours, as
`textcat reproduce --all --out docs/reproductions` writes it. `textcat reproduce` lists the experiments and what data
they need.
"""


def write(folder: Path, result: Result) -> Path:
    """Write an experiment's page, ``NAME.md``, and its pictures into a folder, and the index of the pages there anew.

    Returns
    -------
    Path
        The page.

    Raises
    ------
    TextcatError
        If the folder cannot be written.
    """
    path = folder / f"{result.experiment.name}.md"
    write_atomically(path, page(result))
    for picture in result.pictures:
        shutil.copyfile(picture, folder / picture.name)
    write_atomically(folder / "README.md", index(folder))
    return path


def index(folder: Path) -> str:
    """Lay out the list of the experiments that have a page in a folder, as Markdown."""
    lines = [
        f"| [{name}]({name}.md) | {experiment.title} |\n"
        for name, experiment in experiments().items()
        if (folder / f"{name}.md").exists()
    ]
    return f"{_INDEX}\n| experiment | what it shows |\n| --- | --- |\n{''.join(lines)}"


def page(result: Result) -> str:
    """Lay out what came of an experiment as Markdown: setting, table, notes, pictures, and how it was run."""
    experiment = result.experiment
    notes = [f"{number}. {note}" for number, note in enumerate(comparison_notes(result.rows), start=1)]
    pictures = [
        f"![{picture.stem}]({picture.name})" for picture in result.pictures if picture.name not in experiment.text
    ]
    parts = [
        f"# {experiment.title}",
        experiment.text.strip(),
        comparison_markdown(result.rows).rstrip() if result.rows else "",
        "\n".join(notes),
        "\n\n".join(pictures),
        f"## How it was run\n\n```text\n$ {result.command}\n```",
        "\n".join(f"- {name}: {value}" for name, value in facts(result).items()),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def facts(result: Result) -> dict[str, str]:
    """Return when and on what an experiment was run, and how long it took."""
    return {
        "date": f"{result.finished:%Y-%m-%d %H:%M} UTC",
        "time": f"{result.seconds:.0f} s in all, reading of the data included"
        if result.seconds >= 1
        else "under 1 s in all",
        **machine(),
    }


def to_json(results: Sequence[Result]) -> str:
    """Write results as a JSON array, an object per experiment; what is not known is ``null``."""
    return json.dumps([_plain(result) for result in results], ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def _plain(result: Result) -> dict[str, Any]:
    return {
        "experiment": result.experiment.name,
        "title": result.experiment.title,
        "command": result.command,
        "finished": result.finished.isoformat(),
        "seconds": round(result.seconds, 3),
        "machine": dict(machine()),
        "pictures": [os.fspath(picture) for picture in result.pictures],
        "rows": [_row(row) for row in result.rows],
    }


def _row(row: Row) -> dict[str, Any]:
    fields = asdict(row)
    fields["figures"] = {name: _figure(figure) for name, figure in fields["figures"].items()}
    return fields


def _figure(figure: Mapping[str, Any]) -> dict[str, Any]:
    return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in figure.items()}


def comparison_markdown(rows: Sequence[Row]) -> str:
    """Return the table of published figures, ours, and their differences as Markdown."""
    table = columns(rows)
    heads = ["", *(" ".join(filter(None, (column.title, column.part))) for column in table)]
    lines = [[row.label, *(column.cells[number] for column in table)] for number, row in enumerate(rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in [heads, ["---", *["---:"] * len(table)], *lines])


def comparison_notes(rows: Sequence[Row]) -> list[str]:
    """Return the notes of the rows, each once, as the table numbers them from 1."""
    return list(dict.fromkeys(row.note for row in rows if row.note))


@dataclass(frozen=True)
class _Column:
    """A column of the table of figures: its two headers, and a cell per row."""

    title: str
    part: str
    cells: list[str]


def columns(rows: Sequence[Row]) -> list[_Column]:
    """Return the columns of the table of published figures, ours, and their differences, as text."""
    table = []
    for name in dict.fromkeys(name for row in rows for name in row.figures):
        figures = [row.figures.get(name) for row in rows]
        ours = [_printed(figure, "ours") for figure in figures]
        if any(figure and figure.published is not None for figure in figures):
            table.append(_Column(name, "published", [_printed(figure, "published") for figure in figures]))
            table.append(_Column("", "ours", ours))
            table.append(_Column("", "difference", [_difference(figure) for figure in figures]))
        else:
            table.append(_Column("", name, ours))
    if any(row.seconds is not None for row in rows):
        table.append(_Column("", "seconds", [_duration(row.seconds) for row in rows]))
    if notes := comparison_notes(rows):
        table.append(_Column("", "note", [str(notes.index(row.note) + 1) if row.note else "" for row in rows]))
    return table


def _printed(figure: Figure | None, part: str) -> str:
    value = None if figure is None else getattr(figure, part)
    return _NO_VALUE if figure is None or value is None or math.isnan(value) else f"{value:.{figure.digits}f}"


def _difference(figure: Figure | None) -> str:
    """Tell by how much the figures differ as they are printed: ``+0.074 %``, or ``=``."""
    ours, published = _printed(figure, "ours"), _printed(figure, "published")
    if _NO_VALUE in (ours, published):
        return _NO_VALUE
    gap = float(ours) - float(published)
    if gap == 0:
        return "="
    if float(published) == 0:
        return f"{gap:+g}"
    percent = 100 * gap / abs(float(published))
    return f"{percent:+.0f} %" if abs(percent) >= 10 else f"{percent:+.2g} %"


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return _NO_VALUE
    return f"{seconds:.0f}" if seconds >= 100 else f"{seconds:.2g}"
