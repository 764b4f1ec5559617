"""Read PDF: the body is the text of the pages in order, and the title is that in the document's properties."""

import io
import logging
from typing import Any

from textcat.base.disk import is_installed
from textcat.reading.faults import UnreadableError
from textcat.reading.formats.documents import (
    ExtractedText,
    broken_file,
    document_format,
    missing_module,
    tidy_lines,
)
from textcat.reading.input_settings import InputSettings
from textcat.reading.records import RecordSpan

MOST_PAGES = 10_000
# maximum operations on all pages (drawing letters, a line, and so on), some 20 microseconds each
MOST_OPERATIONS = 2_000_000
_STREAM = 32 << 20  # maximum unpacked bytes of a stream
_LIGATURES = {0xFB00 + i: letters for i, letters in enumerate(("ff", "fi", "fl", "ffi", "ffl", "st", "st"))}
_NO_TITLE = ("", "untitled")
_LIMITS: dict[str, Any] = {
    **{
        f"{kind}_maximum_output_length": _STREAM
        for kind in ("zlib", "lzw", "run_length", "brotli", "array_based_stream")
    },
    "stream_decoding_work_maximum_length": 4 * _STREAM,
    "stream_parsing_work_maximum_count": 1_000_000,
    "xform_maximum_invocations_per_extraction": 1_000,
    "jbig2dec_binary": None,  # no external program is started
}


class _Work:
    """Count the pages of a file, drawing operations and text; raise UnreadableError if there are too many."""

    def __init__(self, most: int) -> None:
        self._left, self._most, self._n_pages = MOST_OPERATIONS, most, 0

    def __call__(self, *_: object) -> None:
        self._left -= 1
        if self._left < 0:
            raise UnreadableError(
                f"has more than {MOST_OPERATIONS:,} drawing operations, the most that are read: split it"
            )

    def page(self, text: str) -> str:
        """Return the text of a page; add 1 to the number of pages, and the text's length to that of the document."""
        self._most -= len(text)
        self._n_pages += 1
        if self._most < 0 or self._n_pages > MOST_PAGES:
            raise UnreadableError(f"has more than {MOST_PAGES:,} pages, or more text than a document may: split it")
        return text


def _read(span: RecordSpan, settings: InputSettings) -> ExtractedText:
    try:
        import pypdf
    except ImportError as error:
        raise missing_module(error) from None
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it warns of each fault that it tolerates
    try:
        with pypdf.apply_configuration(**_LIMITS):
            return _pages(pypdf.PdfReader(io.BytesIO(span.data)), _Work(settings.max_bytes))
    except UnreadableError:
        raise
    except pypdf.errors.DependencyError as error:
        if is_installed("cryptography"):  # it lacks another program or package, as for pictures
            raise broken_file("PDF", error) from None
        raise missing_module(ModuleNotFoundError(name="cryptography")) from None
    except Exception as error:  # the library raises many types of exceptions for broken files
        raise broken_file("PDF", error) from None


def _pages(reader: Any, work: _Work) -> ExtractedText:
    if reader.is_encrypted and not reader.decrypt(""):  # most need no password for reading
        raise UnreadableError("is encrypted: save it without its password")
    body = tidy_lines("\n".join(work.page(page.extract_text(visitor_operand_before=work)) for page in reader.pages))
    if not body:
        raise UnreadableError("has no text, like scanned pages: run a program for OCR on it first")
    title = str(reader.metadata.title or "") if reader.metadata else ""
    body = body.translate(_LIGATURES)
    return ExtractedText("" if title.strip().lower() in _NO_TITLE else title, body)


FORMAT = document_format(_read, larger=True)
