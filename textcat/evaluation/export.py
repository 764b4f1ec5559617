"""Export evaluations as CSV and TREC files, and tables as Markdown and LaTeX."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal
from urllib.parse import quote

import numpy as np
from numpy.typing import ArrayLike

from textcat.base.errors import TextcatError
from textcat.base.spreadsheets import safe_cell
from textcat.evaluation.evaluation import Evaluation, TopicQuality
from textcat.evaluation.metrics import checked_labels

_MARKDOWN = str.maketrans({sign: f"\\{sign}" for sign in r"\`*_[]<>|~#&$"})
_LATEX = str.maketrans(
    {sign: f"\\{sign}" for sign in "&%$#_{}"}
    | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}"}
    | {"[": "{[}", "]": "{]}"}  # after a line end, LaTeX would read a "[" as the start of an argument
)
_NUMERIC = re.compile(r"[-+<]?[\d.,]*( to [-+]?[\d.,]+)?(e[-+]?\d+)?|no topic")


def plain_rows(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return one row per topic for CSV, in the order of the model's topics; if topics were not measured, one per band.

    If each document gets exactly one topic, the last columns, "got TOPIC", count how many of the row's documents got
    which topic.
    """
    return _topic_lines(evaluation) if evaluation.topics else [row.flat() for row in evaluation.bands]


def csv_of_rows(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as CSV text, with a column for each key; formulas of spreadsheets get an apostrophe in front.

    Without rows, the text is empty.
    """
    if not rows:
        return ""
    text = io.StringIO()
    lines = csv.DictWriter(text, list(dict.fromkeys(name for row in rows for name in row)), lineterminator="\n")
    lines.writeheader()
    lines.writerows({name: safe_cell(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def _topic_lines(evaluation: Evaluation) -> list[dict[str, Any]]:
    measures = [column.name for column in fields(TopicQuality) if column.name != "facts"]
    names = [row.topic for row in evaluation.topics] if evaluation.confusion is not None else []
    got = {name: {f"got {other}": 0 for other in names} for name in names}
    for topic, other, documents in evaluation.confusion or ():
        got[topic][f"got {other}"] = documents
    no_facts = dict.fromkeys(fact_names(evaluation), "")
    return [
        {name: getattr(row, name) for name in measures} | no_facts | row.facts | got.get(row.topic, {})
        for row in evaluation.topics
    ]


def markdown_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as a Markdown table; all rows must have the same keys, and Markdown in the cells is kept."""
    head, *body = _lines(rows)
    return "".join(f"| {' | '.join(line)} |\n" for line in (head, ["---"] * len(head), *body))


def formatted_tables(
    tables: Iterable[Sequence[Mapping[str, Any]]], form: Literal["markdown", "latex"], notes: Iterable[str] = ()
) -> str:
    """Return tables as text in Markdown or LaTeX (package booktabs), followed by notes, a paragraph each.

    The rows of a table have the same keys. Special signs are escaped; columns of numbers are aligned to the right.
    """
    if form == "latex":
        written = [
            *map(_as_latex, filter(None, tables)),
            *(f"\\par{{\\footnotesize {_latex(note)}}}\n" for note in notes),
        ]
    else:
        written = [*map(_as_markdown, filter(None, tables)), *(f"{markdown_text(note)}\n" for note in notes)]
    return "\n".join(written)


def markdown_text(text: str) -> str:
    """Return a text as one line of Markdown, with all special characters escaped."""
    return " ".join(text.split()).translate(_MARKDOWN)


def _latex(text: str) -> str:
    return " ".join(text.split()).translate(_LATEX)


def _as_markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    head, *body = (map(markdown_text, cells) for cells in _lines(rows))
    rule = ["---:" if _is_numeric(rows, title) else "---" for title in rows[0]]
    return "".join(f"| {' | '.join(line)} |\n" for line in (head, rule, *body))


def _as_latex(rows: Sequence[Mapping[str, Any]]) -> str:
    columns = "".join("r" if _is_numeric(rows, title) else "l" for title in rows[0])
    head, *body = (" & ".join(map(_latex, cells)) + r" \\" for cells in _lines(rows))
    lines = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule", *body, r"\bottomrule"]
    return "\n".join([*lines, r"\end{tabular}", ""])


def _lines(rows: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    """Yield the cells of each line of a table as text: first the titles, then the rows."""
    yield list(rows[0])
    yield from ([cell_text(value) for value in row.values()] for row in rows)


def _is_numeric(rows: Sequence[Mapping[str, Any]], title: str) -> bool:
    return all(_NUMERIC.fullmatch(cell_text(row[title])) for row in rows)


def cell_text(value: Any) -> str:
    """Return a value as text for a cell of a table."""
    if value is None or isinstance(value, bool):
        return {None: "-", True: "yes", False: "no"}[value]
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def trec_files(
    scores: ArrayLike, Y: Any, document_ids: Sequence[str], topics: Sequence[str]
) -> dict[str, Iterator[str]]:
    """Return the lines of two files, as trec_eval reads them: the rankings, ``run.txt``, and the labels, ``qrels.txt``.

    A line of the run is ``topic Q0 document rank score textcat``, a line of the qrels ``topic 0 document 1``; topics
    take the place of TREC's queries. Documents that are not in the qrels are not relevant. A topic without a positive
    has no line there, and trec_eval leaves it out. White space in names is percent-encoded. Scores have enough digits
    to read the same float back. Documents of equal score are ranked by name, backwards, as trec_eval does, so its
    ``map`` differs from `textcat.evaluate_scores` if scores are equal. A TextcatError is raised if an id or a topic is
    empty or occurs twice.
    """
    positives, values = checked_labels(Y, scores)
    documents, queries = _trec_names(document_ids, "document"), _trec_names(topics, "topic")
    run = _run_lines(values, documents, queries)
    relevant = (
        f"{query} 0 {documents[document]} 1\n"
        for query, start, end in zip(queries, positives.indptr, positives.indptr[1:], strict=False)
        for document in sorted(positives.indices[start:end])
    )
    return {"run.txt": run, "qrels.txt": relevant}


def _run_lines(scores: np.ndarray, documents: Sequence[str], queries: Sequence[str]) -> Iterator[str]:
    digits = 9 if scores.dtype == np.float32 else 17
    backwards = np.array(sorted(range(len(documents)), key=documents.__getitem__, reverse=True), dtype=np.intp)
    for query, column in zip(queries, scores.T, strict=True):
        ranked = backwards[np.argsort(-column[backwards], kind="stable")]
        for rank, (document, score) in enumerate(zip(ranked.tolist(), column[ranked].tolist(), strict=True), start=1):
            yield f"{query} Q0 {documents[document]} {rank} {score:.{digits}g} textcat\n"


def _trec_names(names: Sequence[str], kind: str) -> list[str]:
    encoded = [re.sub(r"[\s%]", lambda blank: quote(blank[0]), name) for name in names]
    if "" in encoded or len(set(encoded)) < len(encoded):
        wrong = next(name for name in encoded if not name or encoded.count(name) > 1)
        raise TextcatError(
            f"TREC files need a name of its own for every {kind}, but {wrong!r} is empty or occurs twice: "
            "give the corpus other ids."
        )
    return encoded


def fact_names(evaluation: Evaluation) -> list[str]:
    """Return the names of the values that training records for each topic, such as "epochs"; [] without topics."""
    return list(dict.fromkeys(name for row in evaluation.topics for name in row.facts))
