"""A file that says in words what topics are about → the description of each topic."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any

from textcat.errors import TextcatError
from textcat.reading.members import Member

#: The names such a file has where no card names it.
NAMES = ("topics.json", "topics.tsv", "topics.csv")
_HEADERS = (["name", "text"], ["topic", "description"])
_DELIMITERS = {".tsv": "\t", ".csv": ","}

# Reuters-21578's list: headings such as "**Currency Codes (27)", and below them "U.S. Dollar (DLR)" or a bare "WHEAT".
_HEADING = re.compile(r"\*\*.*\(\d+\)")
_LONG_NAME = re.compile(r"(.+) \(([A-Z][A-Z-]*)\)")
_CODE = re.compile(r"[A-Z][A-Z-]*")
_RULE = "____"  # begins the line that ends the list of topics


def read_descriptions(member: Member) -> dict[str, str]:
    """Return the description of each topic a file names.

    Parameters
    ----------
    member : Member
        UTF-8. ``.json``: an object of names and texts. ``.tsv`` and ``.csv``: a name and a text a line; a first line
        "name, text" is passed over. ``.txt``: the list of Reuters-21578, where long names stand before codes in
        parentheses; a code without one is described by "".

    Raises
    ------
    TextcatError
        If the file is none of these, is malformed, names a topic twice, or names none.
    """
    suffix = PurePosixPath(member.name).suffix.lower()
    text = member.text("utf-8").removeprefix("\ufeff")
    if suffix == ".json":
        found = _from_json(member, text)
    elif suffix in _DELIMITERS:
        found = _unique(member, _from_table(member, text, _DELIMITERS[suffix]))
    elif suffix == ".txt":
        found = _unique(member, _from_reuters(text))
    else:
        raise TextcatError(f"{member} cannot be read for descriptions of topics: it must be .json, .tsv, .csv or .txt.")
    if not found:
        raise TextcatError(f"{member} describes no topic: write one a line, or take it away.")
    return found


def _from_json(member: Member, text: str) -> dict[str, str]:
    try:
        found = json.loads(text, object_pairs_hook=lambda pairs: _unique(member, pairs))
    except (ValueError, RecursionError) as error:
        raise TextcatError(f"{member} is not valid JSON ({error}): mend it.") from None
    if not isinstance(found, Mapping) or not all(isinstance(words, str) for words in found.values()):
        raise TextcatError(
            f'{member} must be a JSON object of names and texts, such as {{"wheat": "Wheat and flour"}}.'
        )
    return dict(found)


def _from_table(member: Member, text: str, delimiter: str) -> Iterable[tuple[str, str]]:
    lines = text.splitlines()
    # A text may hold a comma, never a tab: in a .tsv quotes are only quotes.
    rows = csv.reader(lines) if delimiter == "," else (line.split(delimiter) for line in lines)
    for number, cells in enumerate(rows, start=1):
        row = [cell.strip() for cell in cells]
        if not any(row) or (number == 1 and [cell.lower() for cell in row] in _HEADERS):
            continue
        if len(row) != 2 or not row[0]:
            raise TextcatError(f"{member}: row {number} is {cells!r:.60}; it must be a name and a text.")
        yield row[0], row[1]


def _from_reuters(text: str) -> Iterable[tuple[str, str]]:
    inside = False
    for line in map(str.strip, text.splitlines()):
        if line.startswith(_RULE) and inside:
            return
        if _HEADING.match(line):
            inside = True
        elif inside and (match := _LONG_NAME.fullmatch(line)):
            yield match[2].lower(), match[1].strip()
        elif inside and _CODE.fullmatch(line):
            yield line.lower(), ""


def _unique(member: Member, pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, text in pairs:
        if name in found:
            raise TextcatError(f"{member} describes {name!r} twice: remove one of the two.")
        found[name] = text
    return found
