"""Read descriptions of topics from a file."""

import csv
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from textcat.base.errors import TextcatError
from textcat.base.settings import parse_toml
from textcat.reading.labels import label_name

#: The names of such files in corpora without a card.
NAMES = ("topics.json", "topics.tsv", "topics.csv")
_HEADERS = (["name", "text"], ["topic", "description"])
_DELIMITERS = {".tsv": "\t", ".csv": ","}

# Reuters-21578's list: headings such as "**Currency Codes (27)", and below them "U.S. Dollar (DLR)" or a bare "WHEAT".
_HEADING = re.compile(r"\*\*.*\(\d+\)")
_LONG_NAME = re.compile(r"(.+) \(([A-Z][A-Z-]*)\)")
_CODE = re.compile(r"[A-Z][A-Z-]*")
_RULE = "____"  # the beginning of the line after the list of topics


def read_descriptions(name: str, data: bytes, location: str = "") -> dict[str, str]:
    """Return the descriptions in a file, by topic; raise TextcatError if the file is malformed or describes no topic.

    ``.json`` and ``.toml``: an object, or table, of topics and texts. ``.tsv`` and ``.csv``: a topic and a text per
    line, after an optional line "name, text" or "topic, description". ``.txt``: the list of Reuters-21578, where each
    long name precedes the topic's code in parentheses, and a code without a long name has an empty description; or any
    other list of topics, one per line, without descriptions. Error messages name the file by `location`, or else by
    `name`.
    """
    location, suffix = location or name, PurePosixPath(name).suffix.lower()
    text = decoded_text(data, location)
    if suffix == ".json":
        descriptions = _texts_of_names(location, _parsed_json(location, text))
    elif suffix == ".toml":
        descriptions = _texts_of_names(location, parse_toml(text, location))
    elif suffix in _DELIMITERS:
        descriptions = _unique(location, _from_table(location, text, _DELIMITERS[suffix]))
    elif suffix == ".txt":
        lines = [line.strip() for line in text.splitlines()]
        of_reuters = any(map(_HEADING.match, lines))
        descriptions = _unique(location, _from_reuters(lines) if of_reuters else ((line, "") for line in lines if line))
    else:
        raise TextcatError(
            f"{location} cannot be read for descriptions of topics: it must be .toml, .json, .tsv, .csv or .txt."
        )
    if not descriptions:
        raise TextcatError(f"{location} describes no topic: write one a line, or take it away.")
    return descriptions


def has_names(path: Path) -> bool:
    """Return whether a file has names or descriptions of topics, and is not a corpus or the card of one.

    These are ``.txt``; ``.json`` with texts only; ``.toml`` without ``reader``, which every card has; and ``.tsv`` and
    ``.csv`` with the header "topic, description" or "name, text". Return False for a file that cannot be read.
    """
    suffix = path.suffix.lower()
    if suffix == ".txt" or not path.is_file():
        return path.is_file()
    try:
        if suffix in _DELIMITERS:
            first, *_ = decoded_text(path.read_bytes(), str(path)).splitlines() or [""]
            return [cell.strip().lower() for cell in first.split(_DELIMITERS[suffix])] in _HEADERS
        if suffix == ".toml":
            return "reader" not in parse_toml(decoded_text(path.read_bytes(), str(path)), str(path))
        return suffix == ".json" and "reader" not in read_descriptions(path.name, path.read_bytes())
    except (TextcatError, OSError):
        return False


def decoded_text(data: bytes, location: str) -> str:
    """Return the text of a file in UTF-8; raise TextcatError if it is in another encoding."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TextcatError(f"{location} is not utf-8 (byte {error.start}): write it as UTF-8.") from None


def _parsed_json(location: str, text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=lambda pairs: _unique(location, pairs))
    except (ValueError, RecursionError) as error:
        raise TextcatError(f"{location} is not valid JSON ({error}): mend it.") from None


def _texts_of_names(location: str, descriptions: Any) -> dict[str, str]:
    topics = descriptions if isinstance(descriptions, Mapping) else {}
    other = next(
        (f", and {name!r} has {words!r:.60}" for name, words in topics.items() if not isinstance(words, str)), ""
    )
    if other or topics is not descriptions:
        raise TextcatError(
            f"{location} must have a text for each topic{other}: write such as "
            + ('wheat = "Wheat and flour".' if location.endswith(".toml") else '{"wheat": "Wheat and flour"}.')
        )
    return _unique(location, ((name.strip(), words) for name, words in descriptions.items()))


def _from_table(location: str, text: str, delimiter: str) -> Iterable[tuple[str, str]]:
    lines = text.splitlines()
    # Quotes are only needed for commas in a text: in .tsv, a quotation mark is an ordinary character.
    rows = csv.reader(lines) if delimiter == "," else (line.split(delimiter) for line in lines)
    for number, cells in enumerate(rows, start=1):
        row = [cell.strip() for cell in cells]
        if not any(row) or (number == 1 and [cell.lower() for cell in row] in _HEADERS):
            continue
        if len(row) != 2 or not row[0]:
            raise TextcatError(f"{location}: row {number} is {cells!r:.60}; it must be a name and a text.")
        yield row[0], row[1]


def _from_reuters(lines: Iterable[str]) -> Iterable[tuple[str, str]]:
    inside = False
    for line in lines:
        if line.startswith(_RULE) and inside:
            return
        if _HEADING.match(line):
            inside = True
        elif inside and (match := _LONG_NAME.fullmatch(line)):
            yield match[2].lower(), match[1].strip()
        elif inside and _CODE.fullmatch(line):
            yield line.lower(), ""


def _unique(location: str, pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    descriptions: dict[str, Any] = {}
    for name, text in pairs:
        name = label_name(name)
        if name in descriptions:
            raise TextcatError(f"{location} describes {name!r} twice: remove one of the two.")
        descriptions[name] = text
    return descriptions
