"""Evaluations and timings → tables for people, JSON, CSV and TREC files for programs."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
import scipy  # its parts load at their first use
from numpy.typing import ArrayLike
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from textcat.errors import TextcatError
from textcat.evaluation.ranking import BandQuality, Evaluation, TopicQuality
from textcat.files import replacing

if TYPE_CHECKING:
    from textcat.evaluation.comparison import Comparison, Difference
    from textcat.papers.experiment import Figure, Row

_NO_VALUE = "-"
_UNLIMITED = 100_000

_BAND_LINES = (
    ("macro-averaged precision", "macro_average_precision", 3),
    ("average sparsity", "average_sparsity", 0),
    ("macro F1", "macro_f1", 3),
    ("micro F1", "micro_f1", 3),
)
_ALL_BAND_LINES = (
    _BAND_LINES[0],
    ("macro R-precision", "macro_r_precision", 3),
    ("macro P@10", "macro_precision_at_10", 3),
    ("macro nDCG", "macro_ndcg", 3),
    _BAND_LINES[1],
    *(
        (f"{average} {title}", f"{average}_{measure}", 3)
        for average in ("macro", "micro", "sample")
        for title, measure in (("precision", "precision"), ("recall", "recall"), ("F1", "f1"))
    ),
    ("label ranking average precision", "label_ranking_average_precision", 3),
    ("coverage error", "coverage_error", 2),
    ("top-1 accuracy", "top_1_accuracy", 3),
)
_TITLES = {measure: title for title, measure, _ in _ALL_BAND_LINES}


# --- tables ----------------------------------------------------------------------------------------------------------


def show(console: Console, table: Table) -> None:
    """Print a table at its full width: nothing is cut off or wrapped, on a terminal, in a pipe or in a file.

    Parameters
    ----------
    console : rich.console.Console
        Colours and bold type appear only if it is a terminal.
    table : rich.table.Table
    """
    unlimited = console.options.update(width=_UNLIMITED)
    table.width = Measurement.get(console, unlimited, table).maximum
    with console.capture() as drawn:
        console.print(table, soft_wrap=True)
    # rich fills the last column with spaces, which a narrow terminal would show as empty lines.
    lines = re.sub(r" +((?:\x1b\[[0-9;]*m)*)$", r"\1", drawn.get(), flags=re.MULTILINE)
    console.print(Text.from_ansi(lines.removesuffix("\n")), soft_wrap=True)


def band_table(evaluation: Evaluation, *, every_measure: bool = False) -> Table:
    """Lay out the averages with a column per band, as Table 2 of Li et al. (2002) does; sparsity only if it is known.

    Under a measure stands its interval, if it has been asked for. A line with the topics left out for lack of a test
    positive appears if there are any.

    Parameters
    ----------
    evaluation : Evaluation
    every_measure : bool, default False
        Lay out all measures instead of the four that tell most.
    """
    rows = evaluation.bands
    table = _table("", *(row.band for row in rows))
    for title, measure, decimals in _ALL_BAND_LINES if every_measure else _BAND_LINES:
        if measure != "average_sparsity" or any(row.average_sparsity is not None for row in rows):
            table.add_row(title, *(_average(row, measure, decimals) for row in rows))
        if any(measure in row.intervals for row in rows):
            table.add_row("  95 % interval", *(_interval(row.intervals.get(measure)) for row in rows))
    table.add_row("topics", *(str(row.topics) for row in rows))
    if any(row.left_out for row in rows):
        table.add_row("left out: no test positive", *(str(row.left_out) for row in rows))
    return table


def topic_table(evaluation: Evaluation) -> Table:
    """Lay out a row per topic, from the largest in training to the smallest, with what training knows of it."""
    facts = without_margins(_fact_names(evaluation))
    table = _table("topic", "train", "test", "prevalence", *facts, "precision", "recall", "F1", "AP")
    for row in sorted(evaluation.topics, key=lambda row: (-row.train_positives, row.topic)):
        table.add_row(
            Text(row.topic),
            str(row.train_positives),
            str(row.test_positives),
            _figure(row.prevalence, 4),
            *(Text(_fact(row.facts.get(name))) for name in facts),
            _figure(row.precision),
            _figure(row.recall),
            _figure(row.f1),
            _figure(row.average_precision, undefined="no positive"),
        )
    return table


def stage_table(seconds: Mapping[str, float], peak_memory: int | None = None) -> Table:
    """Lay out the seconds each stage took, their sum, and the peak memory.

    Parameters
    ----------
    seconds : mapping of str to float
        Wall-clock seconds per stage, in the order of the stages.
    peak_memory : int, optional
        Bytes.
    """
    table = _table("stage", "seconds")
    for stage, taken in (*seconds.items(), ("total", sum(seconds.values()))):
        table.add_row(stage, f"{taken:.2f}")
    if peak_memory is not None:
        table.add_row("peak memory", f"{peak_memory / 1e6:.0f} MB")
    return table


def plain_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Lay out rows that all have the same keys, which are the headers; columns that hold words stand left."""
    table = _table(*rows[0]) if rows else Table()
    for column, name in zip(table.columns, rows[0] if rows else (), strict=True):
        if any(isinstance(row[name], (str, os.PathLike)) for row in rows):
            column.justify = "left"
    for row in rows:
        table.add_row(*(Text(_fact(value)) for value in row.values()))
    return table


def markdown_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Write rows that all have the same keys as a Markdown table."""
    cells = ([_fact(value) for value in row.values()] for row in rows)
    return _markdown([list(rows[0]), ["---"] * len(rows[0]), *cells])


def _markdown(lines: Iterable[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for header in (first, *others):
        table.add_column(Text(header), no_wrap=True, justify="right" if table.columns else "left")
    return table


def _average(row: BandQuality, measure: str, decimals: int) -> str:
    return _figure(getattr(row, measure), decimals, undefined="no topic")


def _figure(value: float | None, decimals: int = 3, undefined: str = _NO_VALUE) -> str:
    """Write .751 for 0.751, as tables of precision do."""
    if value is None:
        return undefined
    text = f"{value:.{decimals}f}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def _interval(bounds: tuple[float, float] | None, write: Callable[[float], str] = _figure) -> str:
    return _NO_VALUE if bounds is None else " to ".join(map(write, bounds))


def _signed(value: float) -> str:
    return f"{value:+.3f}".replace("0.", ".", 1)


def _fact_names(evaluation: Evaluation) -> list[str]:
    return list(dict.fromkeys(name for row in evaluation.topics for name in row.facts))


def without_margins(names: Iterable[str]) -> list[str]:
    """Return the names of facts that a table has room for; JSON and CSV tell of the margins, too."""
    return [name for name in names if "margin" not in name and name != "certificate"]


def _fact(value: Any) -> str:
    match value:
        case None:
            return _NO_VALUE
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.4g}"
    return str(value)


# --- models side by side ---------------------------------------------------------------------------------------------


def measures_table(comparison: Comparison, names: Sequence[str]) -> Table:
    """Lay out a row per band and measure: its value for each model, and how the others differ from the first."""
    table = _table(
        "band", "measure", *names, *(title for name in names[1:] for title in _difference_titles(names, name))
    )
    table.columns[1].justify = "left"
    for row in comparison.measures:
        told = [cell for difference in row.differences for cell in _told(difference)]
        table.add_row(row.band, _TITLES[row.measure], *(_figure(v, undefined="no topic") for v in row.values), *told)
    return table


def differences_table(comparison: Comparison, names: Sequence[str], n: int | None = None) -> Table:
    """Lay out the average precision of the n topics (by default all) that differ most between the models."""
    table = _table("topic", "train", "test", *names, *(f"{name} - {names[0]}" for name in names[1:]))
    for row in comparison.topics[:n]:
        table.add_row(
            Text(row.topic),
            str(row.train_positives),
            str(row.test_positives),
            *(_figure(value) for value in row.average_precision),
            *(_signed(difference) for difference in row.differences),
        )
    return table


def _difference_titles(names: Sequence[str], name: str) -> tuple[str, ...]:
    return f"{name} - {names[0]}", "95 % interval", "p (documents)", "p (topics)"


def _told(difference: Difference | None) -> tuple[str, ...]:
    if difference is None:
        return (_NO_VALUE,) * 4
    p_values = (_figure(p, 4) for p in (difference.p_documents, difference.p_topics))
    return _signed(difference.difference), _interval(difference.interval, _signed), *p_values


# --- a paper's figures beside ours -----------------------------------------------------------------------------------


def comparison_table(rows: Sequence[Row]) -> Table:
    """Lay out the published figures, ours, and by how many percent these differ."""
    columns = _comparison(rows)
    titled = any(column.title for column in columns)
    table = _table("", *(f"{column.title}\n{column.part}" if titled else column.part for column in columns))
    for number, row in enumerate(rows):
        table.add_row(Text(row.label), *(column.cells[number] for column in columns))
    return table


def comparison_markdown(rows: Sequence[Row]) -> str:
    """Write the same table as Markdown."""
    columns = _comparison(rows)
    heads = ["", *(" ".join(filter(None, (column.title, column.part))) for column in columns)]
    lines = [[row.label, *(column.cells[number] for column in columns)] for number, row in enumerate(rows)]
    return _markdown([heads, ["---", *["---:"] * len(columns)], *lines])


def comparison_notes(rows: Sequence[Row]) -> list[str]:
    """Return the notes of the rows, each once, as the table numbers them from 1."""
    return list(dict.fromkeys(row.note for row in rows if row.note))


@dataclass(frozen=True)
class _Column:
    title: str
    part: str
    cells: list[str]


def _comparison(rows: Sequence[Row]) -> list[_Column]:
    columns = []
    for name in dict.fromkeys(name for row in rows for name in row.figures):
        figures = [row.figures.get(name) for row in rows]
        ours = [_printed(figure, "ours") for figure in figures]
        if any(figure and figure.published is not None for figure in figures):
            columns.append(_Column(name, "published", [_printed(figure, "published") for figure in figures]))
            columns.append(_Column("", "ours", ours))
            columns.append(_Column("", "difference", [_difference(figure) for figure in figures]))
        else:
            columns.append(_Column("", name, ours))
    if any(row.seconds is not None for row in rows):
        columns.append(_Column("", "seconds", [_duration(row.seconds) for row in rows]))
    if notes := comparison_notes(rows):
        columns.append(_Column("", "note", [str(notes.index(row.note) + 1) if row.note else "" for row in rows]))
    return columns


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


# --- files for programs ----------------------------------------------------------------------------------------------


def to_json(evaluation: Evaluation | Comparison, **others: Any) -> str:
    """Write a whole evaluation or comparison as one JSON object, after others; a measure not defined is ``null``."""
    return json.dumps(others | asdict(evaluation), ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def to_csv(evaluation: Evaluation) -> str:
    """Write a CSV line per topic, in the order of the model's topics; a measure that is not defined is empty."""
    measures = [column.name for column in fields(TopicQuality) if column.name != "facts"]
    text = io.StringIO()
    lines = csv.DictWriter(text, [*measures, *_fact_names(evaluation)], lineterminator="\n")
    lines.writeheader()
    for row in evaluation.topics:
        lines.writerow({name: getattr(row, name) for name in measures} | row.facts)
    return text.getvalue()


def write_trec(
    folder: str | os.PathLike[str],
    scores: ArrayLike,
    Y: Any,
    document_ids: Sequence[str],
    topics: Sequence[str],
    run_name: str = "textcat",
) -> tuple[Path, Path]:
    """Write the rankings as ``run.txt`` and the labels as ``qrels.txt``, as trec_eval reads them.

    A line of the run is ``topic Q0 document rank score run_name``, a line of the qrels ``topic 0 document 1``: the
    topic stands where TREC has its query. Documents that are not in the qrels are not relevant; a topic without a
    positive is not there either, and trec_eval leaves it out. White space in names is percent-encoded. Scores have as
    many digits as it takes to read the same float back. trec_eval knows no ties: it orders documents of equal score by
    name, backwards, and so do the ranks here, so its ``map`` differs from `textcat.evaluation.ranking` where scores are
    equal.

    Parameters
    ----------
    folder : str or path-like
        Made if absent; files of these names are replaced.
    scores : array-like of shape (n_documents, n_topics), float
        Signed, unscaled; larger = more relevant.
    Y : array-like or scipy sparse of shape (n_documents, n_topics), bool or 0/1
        Positive entries are the relevant documents.
    document_ids : sequence of str of length n_documents
    topics : sequence of str of length n_topics
    run_name : str, default "textcat"

    Returns
    -------
    run, qrels : Path

    Raises
    ------
    TextcatError
        If a name is empty or occurs twice, or the folder cannot be written.
    """
    values = np.asarray(scores)
    positives = scipy.sparse.csc_array((Y if scipy.sparse.issparse(Y) else np.asarray(Y)) > 0)
    documents, queries = _trec_names(document_ids, "document"), _trec_names(topics, "topic")
    run, qrels = Path(folder, "run.txt"), Path(folder, "qrels.txt")
    with replacing(run) as file:
        file.writelines(_run_lines(values, documents, queries, _trec_names([run_name], "run")[0]))
    with replacing(qrels) as file:
        for query, start, end in zip(queries, positives.indptr, positives.indptr[1:], strict=False):
            relevant = sorted(positives.indices[start:end])
            file.writelines(f"{query} 0 {documents[document]} 1\n" for document in relevant)
    return run, qrels


def _run_lines(scores: np.ndarray, documents: Sequence[str], queries: Sequence[str], run_name: str) -> Iterator[str]:
    digits = 9 if scores.dtype == np.float32 else 17
    backwards = np.array(sorted(range(len(documents)), key=documents.__getitem__, reverse=True), dtype=np.intp)
    for query, column in zip(queries, scores.T, strict=True):
        ranked = backwards[np.argsort(-column[backwards], kind="stable")]
        for rank, (document, score) in enumerate(zip(ranked.tolist(), column[ranked].tolist(), strict=True), start=1):
            yield f"{query} Q0 {documents[document]} {rank} {score:.{digits}g} {run_name}\n"


def _trec_names(names: Sequence[str], kind: str) -> list[str]:
    encoded = [re.sub(r"[\s%]", lambda blank: quote(blank[0]), name) for name in names]
    if "" in encoded or len(set(encoded)) < len(encoded):
        wrong = next(name for name in encoded if not name or encoded.count(name) > 1)
        raise TextcatError(
            f"TREC files need a name of its own for every {kind}, but {wrong!r} is empty or occurs twice: "
            "give the corpus other ids."
        )
    return encoded
