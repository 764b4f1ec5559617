"""Read the tagged format of Web of Science (``.ciw``, ``savedrecs.txt``): a record lies between ``PT`` and ``ER``."""

import re
from itertools import chain

from textcat.reading.faults import UnreadableError
from textcat.reading.formats.references import reference_content, reference_fields, reference_format, tagged_lines
from textcat.reading.input_settings import InputSettings
from textcat.reading.records import Block, Record, RecordSpan

_START = re.compile(rb"^(?:\xef\xbb\xbf)?PT [A-Z][ \t]*\r?\n", re.MULTILINE)
_LINE = re.compile(r"([A-Z][A-Z0-9])(?: (.*))?")
_OF_ONE_LINE = frozenset({"AF", "AU", "BA", "BE", "BF", "C1", "CA", "CR", "GP"})  # tags with one value per line
_TAGS = {
    "type": ("DT",),
    "id": ("UT",),
    "title": ("TI",),
    "abstract": ("AB",),
    "authors": ("AF",),
    "year": ("PY",),
    "date": ("PD",),
    "journal": ("SO", "JI", "J9"),
    "volume": ("VL",),
    "issue": ("IS",),
    "pages": ("BP",),
    "publisher": ("PU",),
    "issn": ("SN", "EI"),
    "doi": ("DI",),
    "language": ("LA",),
    "keywords": ("DE", "ID"),
    "notes": ("NT",),
}


def _content(_: Block, settings: InputSettings, span: RecordSpan) -> Record:
    if not _START.match(span.data):
        raise UnreadableError(
            "has no line such as 'PT J', so it is not from Web of Science: name its format with --format"
        )
    values = _values(span.text(settings))
    short = values.pop("AU", [])  # full names are in AF, except in old records
    if short:
        values.setdefault("AF", short)
    for tag in {"DE", "ID"} & values.keys():
        values[tag] = [*filter(None, map(str.strip, values[tag][0].split(";")))]
    if "EP" in values and "BP" in values:
        values["BP"][0] += f"-{values.pop('EP')[0]}"
    return reference_content(reference_fields(values, _TAGS), settings)


def _values(text: str) -> dict[str, list[str]]:
    """Return the texts of each tag of a record; a line that begins with a blank continues the line before."""
    lines = tagged_lines(text, _LINE, "ER")
    kept = {tag: [*filter(None, chain.from_iterable(texts))] for tag, texts in lines.items()}
    return {tag: texts if tag in _OF_ONE_LINE else [" ".join(texts)] for tag, texts in kept.items() if texts}


FORMAT = reference_format(_START, _content)
