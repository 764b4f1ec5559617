"""Read Word's .docx: paragraphs, tables, text boxes and notes in the order of the file, without headers or comments."""

import io
import zipfile
from collections.abc import Iterable, Iterator
from typing import Any

from textcat.reading.compression import check_ratio
from textcat.reading.faults import UnreadableError
from textcat.reading.formats.documents import (
    LARGER,
    ExtractedText,
    broken_file,
    document_format,
    missing_module,
    tidy_lines,
)
from textcat.reading.input_settings import InputSettings
from textcat.reading.records import RecordSpan

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_SHOWN = {f"{_W}tab": "\t", f"{_W}br": "\n", f"{_W}cr": "\n", f"{_W}noBreakHyphen": "-"}
_PARAGRAPH, _TEXT, _RUN = f"{_W}p", f"{_W}t", f"{_W}r"
_VANISHED = f"{_W}rPr/{_W}vanish"
# Deleted text, and fallbacks for shapes, which repeat their text.
_SKIPPED = (f"{_W}del", f"{_W}moveFrom", "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback")
_NOTES = ("/word/footnotes.xml", "/word/endnotes.xml")
_ENCRYPTED = b"\xd0\xcf\x11\xe0"


def _read(span: RecordSpan, settings: InputSettings) -> ExtractedText:
    try:
        from docx import Document
        from docx.oxml import parse_xml
    except ImportError as error:
        raise missing_module(error) from None
    if span.data.startswith(_ENCRYPTED):
        raise UnreadableError("is encrypted, or in Word's format before 2007: save it as .docx without a password")
    try:
        _check_size(span.data, settings.max_bytes)
        document = Document(io.BytesIO(span.data))
        notes = [part for part in document.part.package.iter_parts() if part.partname in _NOTES]
        roots = [document.element, *(getattr(part, "element", None) or parse_xml(part.blob) for part in notes)]
        title = document.core_properties.title or next(_titles(document), "")
        return ExtractedText(title, tidy_lines("".join(piece for root in roots for piece in _pieces(root))))
    except UnreadableError:
        raise
    except Exception as error:  # the library raises many types of exceptions for missing or invalid parts
        raise broken_file(".docx", error) from None


def _check_size(data: bytes, most: int) -> None:
    """Raise UnreadableError if a file declares an unpacked size that is implausible or exceeds the limit `most`."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = archive.infolist()
    whole = sum(entry.file_size for entry in entries)
    check_ratio(whole, len(data))
    texts = sum(entry.file_size for entry in entries if entry.filename.lower().endswith((".xml", ".rels")))
    if texts > most or whole > LARGER * most:
        raise UnreadableError(
            f"unpacks to {whole:,} bytes, {texts:,} of them text, more than a document may have: split it"
        )


def _titles(document: Any) -> Iterator[str]:
    """Yield the texts of those among the first 20 paragraphs that have the style Title and are not blank."""
    for paragraph in document.paragraphs[:20]:
        style = paragraph.style
        if style is not None and style.name == "Title" and paragraph.text.strip():
            yield paragraph.text


def _pieces(root: Any) -> Iterable[str]:
    from lxml import etree

    tags = (*_SHOWN, _PARAGRAPH, _TEXT, _RUN, *_SKIPPED)
    walk = etree.iterwalk(root, events=("start", "end"), tag=tags)
    for event, element in walk:
        tag = element.tag
        if tag == _PARAGRAPH:
            yield "\n"
        elif event == "start":
            if tag in _SKIPPED or (tag == _RUN and element.find(_VANISHED) is not None):
                walk.skip_subtree()
            elif tag == _TEXT:
                yield element.text or ""
            else:
                yield _SHOWN.get(tag, "")


FORMAT = document_format(_read, larger=True)
