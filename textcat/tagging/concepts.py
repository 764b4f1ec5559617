"""Map topics to the concepts of news formats, which have codes or URIs: by a table, or by the topics themselves."""

import csv
import io
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from textcat.base.disk import expanded, resolved
from textcat.base.errors import TextcatError, similar_files
from textcat.reading import Subject, subject_as_given

_CODES = ("code", "uri", "qcode")  # possible names of the column of codes; the first one found is used
SPACE, MOST_SPACE = b" \t\r\n", 1000  # of white space between two tags, in bytes
_URI_SCHEME = re.compile(r"(?:https?|tag|urn):")


class Tag(NamedTuple):
    """A tag for a news item: its concept, and its confidence and relevance from 0 to 100, or None."""

    concept: Subject
    confidence: int | None  # the topic's probability in per cent
    relevance: int | None  # the topic's score in per cent of the document's highest score


class Edit(NamedTuple):
    """A change of a file: the bytes `data` replace those from `start` to before `end`."""

    start: int
    end: int
    data: bytes


class NoPlaceError(Exception):
    """Raised for an item that has something else where its tags would be; the message says what."""


def space_before(data: bytes, position: int) -> bytes:
    """Return the white space before a position of a file: new tags get that of their neighbours."""
    before = data[max(position - MOST_SPACE, 0) : position]
    return before[len(before.rstrip(SPACE)) :]


def concept_of(code: str, name: str = "", scheme: str = "") -> Subject:
    """Return the concept that a code stands for; it may be a URI, or begin with its scheme: "medtop:20000065"."""
    if _URI_SCHEME.match(scheme) and not scheme.endswith(("/", "#", ":")):
        scheme += "/"
    concept = subject_as_given(code, name, scheme)
    # the scheme is a part of the URI
    is_cut = concept.scheme and not scheme and code.endswith(("/", "#")) and not concept.code.endswith(code[-1])
    return concept._replace(code=concept.code + code[-1]) if is_cut else concept


class CodeTable(NamedTuple):
    """The path, time and size of a table with the codes of topics, by which a change of the table is noticed."""

    path: str = ""  # "": no table
    modified: int = 0  # nanoseconds
    size: int = 0

    def concepts(self) -> Mapping[str, Subject]:
        """Return the subject of each topic in the table, as `read_codes` does; {} if there is no table."""
        return _read_table(self) if self.path else {}


@lru_cache(maxsize=2)
def _read_table(table: CodeTable) -> Mapping[str, Subject]:
    return read_codes(table.path)


def find_codes(path: str | Path) -> CodeTable:
    """Return the `CodeTable` at a path, and read it once; "" gives an empty table. For errors, see `read_codes`."""
    if not str(path):
        return CodeTable()
    place = resolved(path)
    try:
        status = place.stat()
    except OSError as error:
        raise _unreadable(place, error) from None
    table = CodeTable(str(place), status.st_mtime_ns, status.st_size)
    table.concepts()
    return table


def _unreadable(path: Path, error: OSError) -> TextcatError:
    hint = similar_files(path)
    return TextcatError(f"The codes in {path} cannot be read ({error.strerror}): check the path.{hint}")


def read_codes(path: str) -> Mapping[str, Subject]:
    """Read a table (CSV or TSV) of topics and their codes; return the subject of each topic.

    The columns are ``topic``, ``code`` (or ``uri``), and optionally ``scheme`` and ``name``; others are ignored. A
    topic whose code is empty is left out. A TextcatError is raised if the table cannot be read or a topic occurs twice.
    """
    try:
        text = expanded(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise _unreadable(expanded(path), error) from None
    except UnicodeDecodeError:
        raise TextcatError(f"The codes in {path} are not UTF-8: save the table as UTF-8.") from None
    head = text.partition("\n")[0]
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=max("\t;,", key=head.count))
    rows.fieldnames = [name.strip().lower() for name in rows.fieldnames or ()]
    column = next((name for name in _CODES if name in rows.fieldnames), "")
    if "topic" not in rows.fieldnames or not column:
        names = ", ".join(rows.fieldnames) or "none"
        raise TextcatError(f"{path} needs columns named topic and code (or uri), and has {names:.100}: name them so.")
    concepts: dict[str, Subject] = {}
    try:
        for row in rows:
            topic, code, name, scheme = (
                (row.get(column_of) or "").strip() for column_of in ("topic", column, "name", "scheme")
            )
            if topic in concepts:
                raise TextcatError(f"{path} has the topic {topic!r} twice: remove one of its rows.")
            if topic and code:
                concepts[topic] = concept_of(code, name, scheme)
    except csv.Error as error:
        raise TextcatError(f"{path} is not a table ({error}): save it as CSV or TSV.") from None
    return concepts
