"""Read Refer, as EndNote exports it (``.enw``): fields such as ``%T title``, and a blank line between records."""

import re

from textcat.reading.faults import UnreadableError
from textcat.reading.formats.references import reference_content, reference_fields, reference_format, tagged_lines
from textcat.reading.input_settings import InputSettings
from textcat.reading.records import Block, Record, RecordSpan

# A type, or any field after a blank line or at the start; the percent sign first, because it is rare.
_START = re.compile(rb"%(?:(?<=\n%)0|(?:(?<=\n\n%)|(?<=\n\r\n%)|(?<=\A%)|(?<=\n\xef\xbb\xbf%))[0A-Z])[ \t]")
_LINE = re.compile(r"(%[0-9A-Z@?!$\]&()*+<>\[=~^#,.;:/'-])(?:[ \t]+(.*)|)")
_TAGS = {
    "type": ("%0",),
    "id": ("%M", "%F"),
    "title": ("%T",),
    "abstract": ("%X",),
    "authors": ("%A",),
    "year": ("%D",),
    "date": ("%8",),
    "journal": ("%J", "%B"),
    "volume": ("%V",),
    "issue": ("%N",),
    "pages": ("%P",),
    "publisher": ("%I",),
    "issn": ("%@",),
    "doi": ("%R",),
    "url": ("%U",),
    "language": ("%G",),
    "keywords": ("%K",),
    "notes": ("%Z", "%O"),
}


def _content(_: Block, settings: InputSettings, span: RecordSpan) -> Record:
    values = _values(span.text(settings))
    if not values:
        raise UnreadableError("has no line such as '%T Title', so it is not Refer: name its format with --format")
    return reference_content(reference_fields(values, _TAGS), settings)


def _values(text: str) -> dict[str, list[str]]:
    """Return the texts of each field; a line without a tag continues the field before.

    In the field of keywords (%K), each line, and each part of a line between semicolons, is a keyword.
    """
    texts = tagged_lines(text.removesuffix("\ufeff"), _LINE)  # the mark of a file that was concatenated with this one
    values = {tag: [" ".join(" ".join(lines).split()) for lines in fields] for tag, fields in texts.items()}
    if "%K" in texts:
        words = [word for lines in texts["%K"] for line in lines for word in line.split(";")]
        values["%K"] = [" ".join(word.split()) for word in words]
    return {tag: kept for tag, fields in values.items() if (kept := [*filter(None, fields)])}


FORMAT = reference_format(_START, _content)
