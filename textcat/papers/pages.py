"""Results of experiments → a Markdown page each with its pictures, and an index of the pages; JSON for programs."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from textcat.evaluation.report import comparison_markdown, comparison_notes
from textcat.files import write_atomically
from textcat.papers.experiment import Row
from textcat.papers.runs import Result, experiments, machine

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
