"""Write exports of a session to a file, as JSON Lines, CSV or RIS, by the file's extension."""

import csv
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from textcat.base.disk import expanded, write_atomically
from textcat.base.errors import TextcatError
from textcat.base.spreadsheets import safe_cell


def format_by_ending(out: str | os.PathLike[str], formats: Sequence[str], what: str) -> str:
    """Return the format that the extension of `out` names, such as "csv".

    Raise TextcatError if it is none of `formats`; `what` names the content in the message.
    """
    ending = Path(out).suffix.lower()
    if ending.removeprefix(".") in formats:
        return ending.removeprefix(".")
    *others, last = [f".{name}" for name in formats]
    choices = f"{', '.join(others)} or {last}" if others else last
    raise TextcatError(
        f"{out}: {what} cannot be written as {ending or 'a file without ending'}: give a name in {choices}."
    )


def json_line(fields: Mapping[str, Any]) -> str:
    """Return an object as a line of JSON."""
    try:
        return json.dumps(fields, ensure_ascii=False).encode("utf-8").decode() + "\n"
    except UnicodeEncodeError:  # for lone surrogates
        return json.dumps(fields) + "\n"


def csv_lines(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a CSV header with the columns, and the rows as lines of CSV; spreadsheets run no cell as a formula."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns, lineterminator="\r\n")
    writer.writerow({column: safe_cell(column) for column in columns})
    for row in rows:
        writer.writerow({column: safe_cell(value) for column, value in row.items()})
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
    yield buffer.getvalue()


def write_lines(out: str | os.PathLike[str], lines: Iterable[str]) -> Path:
    """Write lines to a file atomically, so that it is written whole or not at all, and return its path."""
    path = expanded(out)
    write_atomically(path, lines)
    return path
