"""Read EndNote's XML: a ``<record>`` is a reference; its fields get the names that `references` lists."""

import re
from typing import TYPE_CHECKING

from textcat.base.surrogates import mark_surrogates
from textcat.reading.faults import UnreadableError
from textcat.reading.formats.references import reference_content, reference_fields, reference_format
from textcat.reading.input_settings import InputSettings
from textcat.reading.records import Block, Record, RecordSpan

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_START, _END = re.compile(rb"<record[\s>]"), "</record>"
_PATHS = {
    "id": "rec-number",
    "title": "titles/title",
    "abstract": "abstract",
    "authors": "contributors/authors/author",
    "year": "dates/year",
    "date": "dates/pub-dates/date",
    "journal": "periodical/full-title",
    "volume": "volume",
    "issue": "number",
    "pages": "pages",
    "publisher": "publisher",
    "issn": "isbn",
    "doi": "electronic-resource-num",
    "url": "urls/related-urls/url",
    "language": "language",
    "keywords": "keywords/keyword",
    "notes": "notes",
}
_TAGS: dict[str, tuple[str, ...]] = {"type": ("type",), **{name: (path,) for name, path in _PATHS.items()}}
_TAGS["journal"] = ("periodical/full-title", "titles/secondary-title", "periodical/abbr-1")
_OTHERS = ("titles/short-title", "accession-num", "work-type", "auth-address", "label", "remote-database-name")


def _content(_: Block, settings: InputSettings, span: RecordSpan) -> Record:
    from xml.etree import ElementTree

    text, end, _rest = span.text(settings).partition(_END)
    if not _START.match(span.data):
        raise UnreadableError("has no <record>, so it is not EndNote's XML: name its format with --format")
    if not end:
        raise UnreadableError("is cut off before </record>: repair the file or export it again")
    try:
        # The span has no declarations, so only XML's own entities are possible.
        record = ElementTree.fromstring(mark_surrogates(text) + end)
    except (ElementTree.ParseError, ValueError) as error:
        raise UnreadableError(f"is not valid XML ({error!s:.80}): repair the file or export it again") from None
    return reference_content(_fields(record), settings)


def _fields(record: "Element") -> dict[str, object]:
    values = {}
    for path in dict.fromkeys(path for paths in [*_TAGS.values(), _OTHERS] for path in paths):
        texts = [" ".join("".join(element.itertext()).split()) for element in record.iterfind(path)]
        if texts := [*filter(None, texts)]:
            values[path] = texts
    kind = record.find("ref-type")
    if kind is not None and kind.get("name"):
        values["type"] = [kind.get("name", "")]
    if "periodical/full-title" in values and values.get("titles/secondary-title") == values["periodical/full-title"]:
        del values["titles/secondary-title"]  # the field is a repetition
    fields: dict[str, object] = {}
    for path, value in reference_fields(values, _TAGS).items():
        name = path.rpartition("/")[2]
        both = [
            text for texts in (fields.get(name, []), value) for text in (texts if isinstance(texts, list) else [texts])
        ]
        fields[name] = both if name in fields else value  # a second URL, for example
    return fields


FORMAT = reference_format(_START, _content)
