"""Read Annif's formats: lines with a short text and its subjects' URIs, and files with the subjects of a text.

A short text is a line: the text, a tab, and URIs in ``<>``, separated by spaces. The subjects of ``X.txt`` are in
``X.tsv`` next to it (per line a URI in ``<>``, a tab and a label), or in ``X.key`` (a label per line). Annif's
CSV and JSON are read by other modules, which know the names that Annif gives to fields. Corpora of NLTK list the
topics of all texts in one file.
"""

import re
from collections.abc import Mapping
from typing import Any

from textcat.reading.columns import titled_zones
from textcat.reading.faults import UnreadableError
from textcat.reading.formats.text import LineCutter, nonblank_lines
from textcat.reading.input_settings import InputSettings
from textcat.reading.records import Block, Record, RecordFormat, RecordSpan, by_record

CATEGORIES = "cats.txt"  # the file in which NLTK corpora list the topics of all texts, by path
_CATEGORIES = re.compile(rb"(?:\S+/\S+(?: +\S+)+ *\r?(?:\n|\Z)){2}")
SUBJECTS = "subjects"  # pseudo-format of a file of subjects
_URI = rb"<[A-Za-z][A-Za-z0-9+.-]*:[^<>\s]*>"
_SHORT = re.compile(rb"[^\t\n]*\t[ \t]*" + _URI + rb"(?:\s+" + _URI + rb")*\s*\Z")
_LIST = re.compile(_URI + rb"[ \t]*(?:\t|\r?\Z)")


def annif_kind(line: bytes) -> str:
    """Return which of Annif's formats a file has, given its first line; "" if the line fits neither format.

    The formats are "annif", short texts with their subjects, and `SUBJECTS`, the subjects of one text.
    """
    return SUBJECTS if _LIST.match(line) else "annif" if _SHORT.match(line) else ""


def stem_of_name(name: str) -> str:
    """Return a file name without its extension, such as ".txt"."""
    return name.rpartition(".")[0]


def read_subjects(name: str, data: bytes, encoding: str) -> tuple[str, ...]:
    """Return the subjects that a file lists, each once: labels if its name ends in ``.key``, otherwise URIs."""
    lines = RecordSpan(1, 0, data).decoded(encoding or "utf-8").removeprefix("\ufeff").splitlines()
    subjects = [line.strip() for line in lines if line.strip()]
    if not name.lower().endswith(".key"):
        subjects = [_uri_in(line.partition("\t")[0].strip()) for line in subjects]
    return tuple(dict.fromkeys(subjects))


def is_categories(head: bytes) -> bool:
    """Return whether a file begins with lines of a path and topics, as `CATEGORIES` does."""
    return bool(_CATEGORIES.match(head))


def read_categories(name: str, data: bytes, encoding: str) -> dict[str, tuple[str, ...]]:
    """Return the topics of each text that a file `CATEGORIES` lists, by the text's path; `name` is the file's own."""
    above = name.rpartition("/")[0]
    lines = RecordSpan(1, 0, data).decoded(encoding or "utf-8").removeprefix("\ufeff").splitlines()
    listed = [line.split() for line in lines if line.strip()]
    return {f"{above}/{path}".lstrip("/"): tuple(dict.fromkeys(topics)) for path, *topics in listed}


def _uri_in(text: str) -> str:
    if not (text.startswith("<") and text.endswith(">") and len(text) > 2):
        raise UnreadableError(f"has the subject {text!r:.80}: it must be a URI in <>, such as <http://example.org/1>")
    return text[1:-1]


def uris_in(text: str) -> tuple[str, ...]:
    """Return the URIs in a cell of a CSV file; as in Annif, each may be in ``<>`` or not."""
    return tuple(dict.fromkeys(uri.removeprefix("<").removesuffix(">") for uri in text.split()))


def has_subjects(fields: Mapping[str, Any]) -> bool:
    """Return whether a JSON object has a list of subjects as Annif writes them: objects with a URI or a label."""
    subjects = fields.get("subjects")
    return type(subjects) is list and bool(subjects) and all(map(is_subject, subjects))


def is_subject(value: Any) -> bool:
    """Return whether a JSON value is a subject as Annif writes it: an object with a URI or a label."""
    return type(value) is dict and type(value.get("uri", value.get("label"))) is str


def _content(_: Block, settings: InputSettings, span: RecordSpan) -> Record:
    text, tab, subjects = span.text(settings).removeprefix("\ufeff").partition("\t")
    if settings.labels is None:
        return Record("", {"body": text.strip()})
    if not tab:
        raise UnreadableError("has no tab followed by the URIs of its subjects: add them, or leave it out")
    return Record("", titled_zones("", [text.strip()], settings), tuple(dict.fromkeys(map(_uri_in, subjects.split()))))


FORMAT = RecordFormat(nonblank_lines, by_record(_content), "Line {}", lambda *_: LineCutter())
