"""Results of experiments → a Markdown page each with its pictures, and an index of the pages; JSON for programs."""

import math
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from textcat import papers
from textcat.errors import TextcatError, install_hint
from textcat.evaluation.export import markdown_table
from textcat.files import _write_atomically
from textcat.papers.experiments import FACTS, Experiment, Figure, Result, Row, machine

_NO_VALUE = "-"  # a figure that is not known


def _write(folder: Path, result: Result) -> Path:
    """Write an experiment's page, ``NAME.md``, and its pictures into a folder, and the index of the pages there anew.

    What an older page says above its table is kept. The page's path is returned.
    """
    path = folder / f"{result.experiment.name}.md"
    _write_atomically(path, _page(result, _prose(path, result.experiment)))
    for picture in result.pictures:
        shutil.copyfile(picture, folder / picture.name)
    rows = [
        {"experiment": f"[{name}]({name}.md)", "what it shows": experiment.title}
        for name, experiment in papers.known_experiments().items()
        if (folder / f"{name}.md").exists()
    ]
    _write_atomically(folder / "README.md", FACTS["index"]["text"] + markdown_table(rows))
    return path


def _prose(path: Path, experiment: Experiment) -> str:
    """Return what stands between the title and the table of a page, or the experiment's own text for a new one."""
    if not path.exists():
        return experiment.text.strip()
    _, _, body = path.read_text(encoding="utf-8").partition("\n")
    return re.split(r"^(?:\||## How it was run)", body, maxsplit=1, flags=re.MULTILINE)[0].strip()


def _page(result: Result, prose: str) -> str:
    """Return a page: title, prose, table, notes, pictures, and how the experiment was run."""
    date = f"{result.finished:%Y-%m-%d %H:%M} UTC"
    seconds = f"{result.seconds:.0f} s in all, reading of the data included" if result.seconds >= 1 else ""
    facts = {"date": date, "time": seconds or "under 1 s in all", **machine()}
    heads, cells = zip(*columns(result.rows), strict=True)
    lines = [[head.replace("\n", " ").strip() for head in heads], ["---", *["---:"] * (len(heads) - 1)]]
    table = "\n".join(f"| {' | '.join(line)} |" for line in [*lines, *zip(*cells, strict=True)])
    sections = [
        f"# {result.experiment.title}",
        prose,
        table if result.rows else "",
        "\n".join(f"{number}. {note}" for number, note in enumerate(notes(result.rows), start=1)),
        "\n\n".join(f"![{each.stem}]({each.name})" for each in result.pictures if each.name not in prose),
        f"## How it was run\n\n```text\n$ {result.command}\n```",
        "\n".join(f"- {name}: {value}" for name, value in facts.items()),
    ]
    return "\n\n".join(filter(None, sections)) + "\n"


def as_objects(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Return results as JSON has them, an object per experiment."""
    return [
        {
            "experiment": result.experiment.name,
            "title": result.experiment.title,
            "command": result.command,
            "finished": result.finished.isoformat(),
            "seconds": round(result.seconds, 3),
            "machine": dict(machine()),
            "pictures": [os.fspath(picture) for picture in result.pictures],
            "rows": [asdict(row) for row in result.rows],
        }
        for result in results
    ]


def notes(rows: Sequence[Row]) -> list[str]:
    """Return the notes of the rows, each once, as the table numbers them from 1."""
    return list(dict.fromkeys(row.note for row in rows if row.note))


def columns(rows: Sequence[Row]) -> list[tuple[str, list[str]]]:
    """Return the columns of the table of published figures, ours, and their differences, as text.

    First the labels. A header has two lines where ours and the published figures stand side by side.
    """
    table = []
    for name in dict.fromkeys(name for row in rows for name in row.figures):
        figures = [row.figures.get(name) or Figure(None) for row in rows]
        ours = [_printed(figure.ours, f".{figure.digits}f") for figure in figures]
        if any(figure.published is not None for figure in figures):
            printed = [_printed(figure.published, f".{figure.digits}f") for figure in figures]
            differences = list(map(_difference, ours, printed))
            table += [(f"{name}\npublished", printed), ("\nours", ours), ("\ndifference", differences)]
        else:
            table.append((f"\n{name}", ours))
    if any(row.seconds is not None for row in rows):
        seconds = [_printed(row.seconds, ".0f" if row.seconds and row.seconds >= 100 else ".2g") for row in rows]
        table.append(("\nseconds", seconds))
    if known := notes(rows):
        table.append(("\nnote", [str(known.index(row.note) + 1) if row.note else "" for row in rows]))
    if all(head.startswith("\n") for head, _ in table):
        table = [(head.strip(), cells) for head, cells in table]
    return [("", [row.label for row in rows]), *table]


def _printed(value: float | None, form: str) -> str:
    return _NO_VALUE if value is None or math.isnan(value) else f"{value:{form}}"


def _difference(ours: str, published: str) -> str:
    """Return by how much figures differ as they are printed: ``+0.074 %``, or ``=``."""
    if _NO_VALUE in (ours, published):
        return _NO_VALUE
    gap = float(ours) - float(published)
    if gap == 0:
        return "="
    if float(published) == 0:
        return f"{gap:+g}"
    percent = 100 * gap / abs(float(published))
    return f"{percent:+.0f} %" if abs(percent) >= 10 else f"{percent:+.2g} %"


@contextmanager
def _drawing(path: Path, width: float = 6.0, height: float = 4.0) -> Iterator[Any]:
    """Yield axes of matplotlib, of so many inches, and write them as SVG: the same to the byte from run to run."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise TextcatError(f"A picture needs matplotlib: {install_hint('pictures')}.") from error
    axes = Figure(figsize=(width, height), layout="constrained").add_subplot()
    yield axes
    with matplotlib.rc_context({"svg.hashsalt": "textcat", "svg.fonttype": "none"}):
        axes.figure.savefig(path, format="svg", metadata={"Date": None})
