"""The command `trends`: estimate how prevalent topics are in each period of a tagged archive."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, BadParameter, Option

from textcat.cli import common, terminal

if TYPE_CHECKING:
    from rich.console import Console

    from textcat.tagging.trends import Trends

_MOST_TOPICS = 10  # that people see, unless they name topics
_DECIMALS = 6
_FORMS = (".csv", ".json", ".parquet", ".html")


def trends(
    folders: Annotated[list[Path], Argument(help="Folders that `textcat tag --out` has written, by one model.")],
    by: Annotated[
        str,
        Option(help="Length of periods (year, month or day), or in their place source, or a field of --keep-fields."),
    ] = "month",
    topic: Annotated[
        list[str] | None, Option(help="Show only this topic, by id or name. May be repeated.", show_default="all")
    ] = None,
    reprints: Annotated[
        str,
        Option(help="If it was tagged with --duplicates: count documents that repeat another one, all or once."),
    ] = "all",
    estimator: Annotated[
        str,
        Option(help="summed, adjusted, em or adaptive.", show_default="the best one on the judged sample, or adaptive"),
    ] = "",
    corrections: Annotated[
        Path | None,
        Option(
            help="Folder of answers of `textcat review --sample`, which the estimates use.",
            show_default="FOLDER's name and -corrections, if there is such a folder",
        ),
    ] = None,
    form: common.Form = "text",
    out: Annotated[
        Path | None, Option(help="Write all topics into this file: .csv, .json, .parquet, or .html, a page of curves.")
    ] = None,
) -> None:
    """Estimate how prevalent each topic is in each period of a tagged archive, with intervals at 95 %.

    The estimates correct counts of tags for the model's errors, by its scores of held-out training documents. No text
    and no model is needed.
    """
    if out is not None and out.suffix not in _FORMS:
        raise BadParameter(f"{out} has no ending that says its form: give {', '.join(_FORMS[:-1])} or {_FORMS[-1]}")
    from textcat.tagging.trends import estimate_trends

    options: dict[str, Any] = {"topics": topic or (), "reprints": reprints, "estimator": estimator}
    options["corrections"] = corrections
    if not topic and form not in ("json", "csv") and out is None:
        options["most"] = _MOST_TOPICS
    result = estimate_trends(folders, by=by, **options)
    if out is not None:
        _write(result, out, f"Trends of {', '.join(folder.name for folder in folders)}")
    show_trends(terminal.console(), result, form, most=None if topic else _MOST_TOPICS)


def _rows(result: "Trends") -> list[dict[str, Any]]:
    """Return the rows of a table of trends as dicts, with the names of topics if they have any, and rounded shares."""
    names = result.names
    shares = ("prevalence", "low", "high")
    return [
        {
            "topic": row.topic,
            **({"name": names.get(row.topic, "")} if names else {}),
            **row._asdict(),
            **{share: round(getattr(row, share), _DECIMALS) for share in shares},
        }
        for row in result.rows
    ]


def _write(result: "Trends", path: Path, title: str) -> None:
    import json

    from textcat.base.disk import raise_write_errors, write_atomically
    from textcat.evaluation.export import csv_of_rows

    rows = _rows(result)
    with raise_write_errors(path, "fix that, and give the command again"):
        if path.suffix == ".parquet":
            import pyarrow as pa
            import pyarrow.parquet as pq

            pq.write_table(pa.Table.from_pylist(rows), path)
        elif path.suffix == ".html":
            from textcat.report.trends import trends_page

            write_atomically(path, trends_page(result, title))
        else:
            write_atomically(path, csv_of_rows(rows) if path.suffix == ".csv" else f"{json.dumps(_data(result))}\n")


def _data(result: "Trends") -> dict[str, Any]:
    facts = {
        name: getattr(result, name)
        for name in ("by", "estimator", "model", "documents", "judged", "judged_gone", "judged_outside", "left_out")
    }
    return {**facts, "rows": _rows(result)}


def show_trends(console: "Console", result: "Trends", form: str, most: int | None) -> None:
    """Print the prevalences; as text, Markdown or LaTeX, only those of the `most` most frequent topics."""
    from textcat.cli.printing import Facts, Figure, Table, show

    shown = {*list(dict.fromkeys(row.topic for row in result.rows))[:most]}
    rows = [
        {
            "topic": row["name"] if row.get("name") else row["topic"],
            **{key: row[key] for key in ("period", "documents", *["judged"] * (result.judged > 0), "tagged")},
            **{key: Figure(f"{row[key]:.2%}", row[key]) for key in ("prevalence", "low", "high")},
        }
        for row in _rows(result)
        if row["topic"] in shown
    ]
    former = f"{result.left_out:,} documents that only former models or rules have tagged" if result.left_out else None
    facts = {"documents": result.documents, "judged": result.judged or None, "model": result.model}
    gone = f"{result.judged_gone:,} documents that are not in the archive any more" if result.judged_gone else None
    outside = f"{result.judged_outside:,} documents" if result.judged_outside else None
    facts |= {
        "judged, but gone": gone,
        "judged, but not in the sample": outside,
        "left out": former,
        "estimator": result.estimator,
    }
    rest = result.topics - len(shown)
    note = f"{rest:,} less frequent topics are left out: name some with --topic, or take --as csv." if rest else ""
    show(console, form, _data(result), Table(rows), Facts(facts), note, rows=lambda: _rows(result))
