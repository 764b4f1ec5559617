"""Read the text of a single document, given the bytes of its file."""

import io

from textcat.base.errors import TextcatError
from textcat.reading.compression import plain_name
from textcat.reading.cutting import Place, file_steps
from textcat.reading.faults import FaultKind, UnreadableError
from textcat.reading.formats import DOCUMENTS, NEWS, batch_records, block_zones
from textcat.reading.input_settings import InputSettings
from textcat.reading.recognition import format_by_content, format_of, named_format
from textcat.reading.records import Batch, Block, Record, Rejection
from textcat.reading.streams import ByteStream, file_stream

_LONGEST_NAME = 200  # maximum characters of a name that are shown
_OF_ITEMS = NEWS | {"warc"}  # formats of many documents that are accepted with a single one


def text_of_file(name: str, data: bytes, *, main_text: bool = False) -> dict[str, str]:
    """Return the texts of a document, given the bytes of its file.

    Only these bytes are read: no file, and nothing that the document refers to.

    Parameters
    ----------
    name : str
        The file's name, whose ending tells the format: HTML, ``.eml``, Markdown, ``.docx``, PDF, text, ALTO, or XML or
        JSON of a news agency or feed with a single item. If it has no ending, the content tells the format.
    data : bytes
    main_text : bool
        Extract only the main text of an HTML page, as `InputSettings.main_text` does.

    Returns
    -------
    dict
        The text of each zone: ``title``, if the document has one, ``body`` and, of news, ``slugline`` and
        ``abstract``.

    Raises
    ------
    TextcatError
        If the document has another format, is broken or encrypted, has no text, or is too large.
    """
    settings, stream = InputSettings(main_text=main_text), file_stream(io.BytesIO(data))
    called = " ".join(name.split())[-_LONGEST_NAME:] or "The file"
    form = named_format(name) if "." in name else _document_in(stream, settings)
    try:
        if (form not in DOCUMENTS or form == "text") and plain_name(name) == name:
            form = format_of(stream, name, settings, form)
        if form == "mets":
            raise TextcatError(
                f"{called} is METS, whose text is in ALTO files: give one of them, or use `textcat tag`."
            )
        if form not in DOCUMENTS | _OF_ITEMS or plain_name(name) != name:
            what = "HTML, .eml, Markdown, .docx, PDF, plain text, ALTO, news of an agency, or a page in WARC"
            raise TextcatError(f"{called} is not a document: give {what}.")
        steps = file_steps(stream, Block(called, form, b""), settings, Place(), called)
        if form in _OF_ITEMS:
            return _zones_of_news(called, [item for item, *_ in steps], settings)
        ((block, *_),) = steps
        assert isinstance(block, Block)
        return block_zones(block, settings)
    except UnreadableError as fault:
        if fault.kind is FaultKind.ENCODING:
            raise TextcatError(f"{called} {fault.detail}: save it as UTF-8.") from None
        raise TextcatError(f"{called} {fault}.") from None


def _zones_of_news(name: str, blocks: list[Block | Rejection], settings: InputSettings) -> dict[str, str]:
    """Return the texts of the only item in a file; raise a TextcatError if it has none, or several."""
    items = [*batch_records(Batch(tuple(blocks), (), (), 0), settings)]
    records = [item for item in items if isinstance(item, Record)]
    if len(records) == 1:
        return records[0].zones
    if records:
        raise TextcatError(f"{name} has {len(records)} documents: give a file of one, or use `textcat tag`.")
    reason = items[0].reason if items and isinstance(items[0], Rejection) else "It is empty."
    raise TextcatError(f"{reason} {name} has no document to read: give another file.")


def _document_in(stream: ByteStream, settings: InputSettings) -> str:
    """Return the format of a nameless document by its content, or "text" if the content does not tell it."""
    form = format_by_content(stream, "a.", settings).format
    return "docx" if stream.peek(4) == b"PK\x03\x04" else form if form in DOCUMENTS | _OF_ITEMS else "text"
