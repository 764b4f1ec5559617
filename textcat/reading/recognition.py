"""Recognise the format of a file by its name or its content."""

import posixpath
import re
from collections.abc import Callable
from contextlib import closing

import orjson

from textcat.base.errors import TextcatError
from textcat.reading.columns import has_usual_name, usual_name
from textcat.reading.compression import plain_name, unpacked_stream
from textcat.reading.decoding import text_start
from textcat.reading.faults import FaultKind, UnreadableError
from textcat.reading.formats import DOCUMENTS, FORMATS, NEWS, REFERENCES, SCANS, annif
from textcat.reading.formats.delimited import SEPARATORS
from textcat.reading.formats.json_feed import is_json_feed
from textcat.reading.formats.mail import SEPARATOR
from textcat.reading.formats.ninjs import is_ninjs
from textcat.reading.formats.unread import unread_format, unread_text, unread_xml
from textcat.reading.formats.xml_items import xml_format
from textcat.reading.input_settings import InputSettings
from textcat.reading.maildir import is_message
from textcat.reading.sources import FormatGuess, is_url
from textcat.reading.streams import ByteStream

_TEXTS = ("text", "lines")
_OF_SUBJECTS = frozenset({".key", ".tsv", ".tab"})  # endings of files that may list the subjects of a text
FOLDERS = "folders"  # formats read for a folder per topic: one document per file, by name, or else texts
_BY_NAME = {
    "jsonl": ("jsonl", "ndjson"),
    "csv": ("csv",),
    "tsv": ("tsv", "tab"),
    "parquet": ("parquet", "pq"),
    "reuters": ("sgm", "sgml"),
    "rcv1": ("xml", "nitf", "newsml", "rss", "atom", "tei", "alto", "mets"),  # XML, whose content determines the format
    "text": ("txt", "text"),
    "mbox": ("mbox", "mbx"),
    "ris": ("ris",),
    "nbib": ("nbib",),
    "bibtex": ("bib", "bibtex"),
    "refer": ("enw",),
    "wos": ("ciw",),
    "html": ("html", "htm", "xhtml"),
    "eml": ("eml",),
    "markdown": ("md", "markdown"),
    "docx": ("docx",),
    "pdf": ("pdf",),
    "warc": ("warc", "wet"),
}
_FORMAT_OF = {ending: name for name, endings in _BY_NAME.items() for ending in endings}
_HEAD, _TEXT_HEAD, _START = 1 << 16, 1 << 12, 128  # number of first bytes examined
_LINE = re.compile(rb"\A\s*\S[^\n]*\n")  # matches in one pass, whether found or not
_FIRST = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*[^\s\xef]")  # a character other than white space and byte order marks
_XML_HEAD, _ELEMENT = 1 << 10, re.compile(rb"<[A-Za-z]+[\s>]")
_EXPORT = re.compile(rb"(?:<\?xml[^<>]{0,200}>\s*)?(?:<xml>\s*)?<records?>")
# Lines before a list of references about its origin, or the number of records.
_PREAMBLE = rb"(?:(?:[A-Za-z][A-Za-z ]{0,40}:[^\n]{0,200}|<?[0-9]{1,6}[.>]?[ \t]*|[ \t]*\r?)\n){0,20}?"
_BY_START = (
    ("json", re.compile(rb"\[\s*(?:\{|\]?\s*\Z)")),
    ("jsonl", re.compile(rb'\{\s*["}]')),
    ("parquet", re.compile(rb"PAR1")),
    ("warc", re.compile(rb"WARC/[01]\.[0-9]+\r?\n")),
    ("pdf", re.compile(rb"%PDF-[0-9]")),
    ("html", re.compile(rb"(?:<\?xml[^<>]{0,200}>\s*)?<(?:!DOCTYPE\s+html|html)[\s>]", re.IGNORECASE)),
    ("reuters", re.compile(rb"<!DOCTYPE lewis|<REUTERS", re.IGNORECASE)),
    ("endnote", _EXPORT),
    ("rcv1", re.compile(rb"<\?xml|<newsitem")),
    ("mbox", SEPARATOR),
    ("ris", re.compile(_PREAMBLE + rb"TY[ \t]{1,3}-[ \t]+[A-Z]{3,7}\s")),
    ("nbib", re.compile(_PREAMBLE + rb"PMID-[ \t]*[0-9]+\s")),
    (
        "bibtex",
        re.compile(
            rb"@[A-Za-z]+\s*\{[^\s,{}]*(?:,|\s*\Z)|"
            rb"@(?:article|book|comment|in[a-z]+|misc|phdthesis|preamble|string)\s*\([^\s,]*(?:,|\s*\Z)",
            re.IGNORECASE,
        ),
    ),
    (
        "refer",
        re.compile(
            rb"%0[ \t]+[A-Z][a-z]+|(?:%[A-Z@0-9][ \t]+\S[^\n]*\n){0,30}?%(?:T|A)[ \t]+\S[^\n]*\n%[A-Z@0-9][ \t]"
        ),
    ),
    (
        "wos",
        re.compile(rb"FN [^\n]{0,100}\n(?:VR|PT) |FN (?:Clarivate|Thomson|ISI) |PT [A-Z][ \t]*\r?\n[A-Z][A-Z0-9] "),
    ),
)
# Beginnings of texts that may be of another format: without a preamble, or a table, or with a subject's URI.
_CELL = rb"[ \"]*[\w.()/\x80-\xff-][\w .()/\x80-\xff\"-]{0,40}"
_TABLE = re.compile(rb"%b(?:[,;|\t]%b)+\r?\n" % (_CELL, _CELL))
_TAGGED = rb"FN |PT[ \t]|RT |TY|PMID|VN|UI|Databases?:|Scopus|Record|filedesc"
_MAYBE_NO_TEXT = re.compile(rb"[%%@<{_0-9+-]|%b|[^\n]*\t[ \t]*<|%b" % (_TAGGED, _TABLE.pattern))
# A quick test for most texts: a first line without separators, or without a short value before the first one.
_PLAIN_START = re.compile(rb"(?!%b)[A-Za-z](?:[^\r\n\t,;|]*|[\w .()/'-]{42}[^\r\n\t]*)(?:\r?\n|\Z)" % _TAGGED)
_PREAMBLE_LENGTH = 1 << 11
_BEHIND_PREAMBLE = (b"\nTY ", b"\nPMID-")
# A first line after which further lines must be read to recognise a list of references.
_MAYBE_LIST = re.compile(rb"[A-Za-z][A-Za-z ]{0,40}:|<?[0-9]|%|FN |PT ")
_ROWS = 6  # number of lines of a table that are examined
ARCHIVES = {
    "zip": (".zip",),
    "tar": (".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2", ".tbz2", ".tar.zst", ".tzst"),
}
_ARCHIVE_ENDINGS = tuple(ending for endings in ARCHIVES.values() for ending in endings)
# Annif's formats, besides lines of short texts and subjects, which are recognised elsewhere.
_BESIDES_ANNIFS = (".txt", ".csv", ".json", ".jsonl")


def named_format(name: str) -> str:
    """Return the format that a name's extension indicates, "zip" or "tar" for an archive; "" if it indicates none."""
    if is_archive(name):
        return "zip" if name.lower().endswith(ARCHIVES["zip"]) else "tar"
    if is_message(name):
        return "eml"
    return _FORMAT_OF.get(plain_name(name).lower().rpartition(".")[2], "") if "." in name else ""


def is_read_alike(name: str, other: str, settings: InputSettings) -> bool:
    """Return whether the same file is read in the same way under two names: names decide about formats and options.

    Options may be for some files of an archive, whose paths begin with its name: then it is read alike under no other.
    """
    names = (name, other)
    endings = {"eml" if is_message(of) else posixpath.splitext(plain_name(of))[1].lower() for of in names}
    packed = {plain_name(of) != of for of in names}
    if len(endings) > 1 or len(packed) > 1:
        return False
    # Whether such a file lists the subjects of a text depends on the texts beside it.
    if not endings.isdisjoint(_OF_SUBJECTS) and len({annif.stem_of_name(plain_name(of)) for of in names}) > 1:
        return False
    return not settings.for_files or (settings.for_file(name) == settings.for_file(other) and not is_archive(name))


def format_by_name(name: str, settings: InputSettings) -> FormatGuess:
    """Return the format of a file by its name; the format in the settings takes precedence, except for archives."""
    asked = "" if is_archive(name) else settings.format
    if asked == "mbox" and is_message(name):
        asked = "eml"
    if asked == "annif":
        asked = "" if plain_name(name).lower().endswith(_BESIDES_ANNIFS) else asked
    elif asked == FOLDERS:  # formats whose files are texts, whatever their names, unless they cannot be texts
        asked = named if (named := named_format(name)) in DOCUMENTS | REFERENCES else "text"
    form = asked or named_format(name)
    by = "option" if asked else "name" if form else ""
    return FormatGuess("lines" if form == "text" and settings.lines else form, by)


def format_by_content(stream: ByteStream, name: str, settings: InputSettings) -> FormatGuess:
    """Recognise the format of a stream by its first nonblank line, without advancing the stream."""
    head = stream.peek(_HEAD, until=_LINE)
    if head.startswith(b"<?xml"):
        head = stream.peek(_XML_HEAD, until=_ELEMENT)
    if "." not in name.rpartition("/")[2]:  # many formats are zips under another name
        archive = "zip" if head.startswith(b"PK\x03\x04") else "tar" if head[257:262] == b"ustar" else ""
        if archive:
            return FormatGuess(archive, "content")
    head = text_start(head, settings.encoding)
    if head.startswith(b"<") and (
        form := xml_format(text_start(stream.peek(_HEAD, until=_ELEMENT), settings.encoding))[0]
    ):
        return FormatGuess(form, "content")
    form = next((form for form, start in _BY_START if start.match(head)), "") or _by_columns(head, settings)
    if not form and not settings.lines and _MAYBE_LIST.match(head):
        form = _list_in(text_start(stream.peek(_TEXT_HEAD), settings.encoding))
    if form in ("json", "jsonl") and settings.is_default("text_fields"):
        form = _format_of_json(head) or form
    form = form or ("annif" if annif.annif_kind(_first_line(head)) == "annif" else "")
    if not form and plain_name(name).lower().endswith(".json"):
        form = "json" if head.startswith(b"[") else "jsonl"
    if form or not stream.prompt:
        return FormatGuess(form, "content" if form else "")
    return FormatGuess("lines" if settings.lines else "text", "default")  # typed input is text


def format_of(
    stream: ByteStream,
    name: str,
    settings: InputSettings,
    form: str = "",
    is_beside_text: Callable[[], bool] = lambda: True,
) -> str:
    """Return the format of a file, by its name or else its content; raise UnreadableError if both leave it open.

    `form` is the format that the name has indicated, "" if none; the content may still make it more precise.
    `is_beside_text` returns whether the file lies beside a text of its name, whose subjects it may list.
    """
    if posixpath.basename(name) == annif.CATEGORIES and annif.is_categories(stream.peek(_TEXT_HEAD)):
        return annif.SUBJECTS
    form = form or format_by_name(name, settings).format or format_by_content(stream, name, settings).format
    plain = plain_name(name).lower()
    if form in _TEXTS and settings.format not in _TEXTS:
        # A filter answers each line: it must not wait for further lines.
        head = stream.peek(_TEXT_HEAD, until=_LINE) if stream.prompt and settings.lines else stream.peek(_TEXT_HEAD)
        return _format_of_text(form, plain, head, settings)
    if form in ("", "annif") and plain.endswith(".key") and is_beside_text():
        return annif.SUBJECTS
    if form in ("tsv", "annif") and not settings.columns:
        head = text_start(stream.peek(_HEAD, until=_LINE), settings.encoding)
        kind = annif.annif_kind(_first_line(head)) or form
        form = form if kind == annif.SUBJECTS and not is_beside_text() else kind
    if form == "jsonl" and plain.endswith(".json") and not settings.format:
        head = stream.peek(_HEAD, until=_LINE)
        line, end, _ = text_start(head, settings.encoding).partition(b"\n")
        if not line and len(head) < _HEAD:
            stream.check()
            raise UnreadableError("is empty, so it is not JSON: get it again", FaultKind.DAMAGE, "it is empty")
        form = "json" if end and not line.rstrip().endswith(b"}") else form  # an object on several lines
    if not form:
        stream.check()
    is_unsure = form in ("", "json", "jsonl", "rcv1") and not settings.format
    if is_unsure and (hint := unread_format(plain, stream.peek(_START, until=_LINE))):
        raise UnreadableError(f"is {hint}")
    if not form and settings.lines:
        return "lines"
    if not form:
        raise UnreadableError(
            "is not read, as neither its name nor its content tells the format: name it with --format"
        )
    if form == "rcv1" and not settings.format:
        return _format_of_xml(text_start(stream.peek(_HEAD), settings.encoding))
    if form in ("json", "jsonl") and settings.is_default("text_fields"):
        form = _format_of_json(stream.peek(_HEAD, until=_LINE)) or form
    # An array of objects is often called JSON Lines.
    if form == "jsonl" and _BY_START[0][1].match(text_start(stream.peek(_START, until=_LINE), settings.encoding)):
        return "json"
    return form


def _format_of_text(form: str, plain: str, head: bytes, settings: InputSettings) -> str:
    """Return the format of a file named as text or without a known name, by its first bytes, `head`.

    Lists of references, tables and JSON Lines often have names of text files. UnreadableError is raised for a known but
    unsupported format.
    """
    if _PLAIN_START.match(head) and all(head.find(start, 0, _PREAMBLE_LENGTH) < 0 for start in _BEHIND_PREAMBLE):
        return form
    text = text_start(head, settings.encoding)
    if not (_MAYBE_NO_TEXT.match(text) or any(start in text[:_PREAMBLE_LENGTH] for start in _BEHIND_PREAMBLE)):
        return form
    hint = unread_text(text) or (b"\0" in text and unread_format(plain, head))
    if hint:
        raise UnreadableError(f"is {hint}")
    return form if form == "lines" else _list_in(text) or _records_in(text, settings) or form


def _list_in(head: bytes) -> str:
    """Return the format of a list of references by its first bytes; "" if they do not begin such a list."""
    return next((form for form, start in _BY_START if form in REFERENCES and start.match(head)), "")


def _records_in(head: bytes, settings: InputSettings) -> str:
    """Return the format of a table or of JSON Lines in a file named as text, by its first bytes; "" for other texts.

    A text that begins like a table is not a table if its next lines have other numbers of values. If the user requested
    a format, such as a folder per topic, texts are always texts.
    """
    if settings.format:
        return ""
    first, *others = head.split(b"\n", _ROWS)
    if first.startswith(b'{"') and first.rstrip().endswith(b"}"):
        return "jsonl" if _is_object(first) else ""
    if annif.annif_kind(_first_line(head)) == "annif":
        return "annif"
    if not _TABLE.match(head):
        return ""
    for mark in SEPARATORS["csv"]:
        separator = mark.encode()
        cells = [cell.strip(b' "\r') for cell in first.split(separator)] if separator in first else []
        if cells:
            rows = [line for line in others[:-1] if line.strip()]
            is_regular = all(line.count(separator) >= len(cells) - 1 for line in rows if b'"' not in line)
            if (
                rows
                and is_regular
                and _has_columns([cell.decode(errors="replace").lower() for cell in cells], settings)
            ):
                return "tsv" if mark == "\t" else "csv"
    return ""


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(orjson.loads(line), dict)
    except orjson.JSONDecodeError:
        return False


def _has_columns(names: list[str], settings: InputSettings) -> bool:
    """Return whether a row has the names of a column of texts and of another column that records usually have."""
    texts = {*map(str.lower, settings.text_fields), "body"}
    if settings.is_default("text_fields"):
        texts.update(name for name in names if usual_name([name], "body"))
    others = [name for name in names if name not in texts or name == "title"]
    return not texts.isdisjoint(names) and any(has_usual_name([name]) for name in others)


def _format_of_json(head: bytes) -> str:
    return "json-feed" if is_json_feed(head) else "ninjs" if is_ninjs(head) else ""


def _format_of_xml(head: bytes) -> str:
    if _EXPORT.match(head):
        return "endnote"
    form, root = xml_format(head)
    if not form and (hint := unread_xml(root)):
        raise UnreadableError(f"is {hint}")
    if not form and root not in ("", "newsitem"):
        raise UnreadableError(f"is XML with the root <{root}>, of no format that is read: leave it out, or convert it")
    return form or "rcv1"


def _first_line(head: bytes) -> bytes:
    """Return the first line of a text, given the text's first bytes; b"" if these do not have the end of the line."""
    return b"" if len(head) >= _HEAD and b"\n" not in head else head.partition(b"\n")[0]


def holds_array(stream: ByteStream, settings: InputSettings) -> bool:
    """Return whether a stream of JSON begins with an array; nothing is consumed."""
    return text_start(stream.peek(_HEAD, until=_FIRST), settings.encoding).startswith(b"[")


def is_archive(name: str) -> bool:
    """Return whether a name has the ending of a zip or a tar, such as ".tar.gz"."""
    return name.lower().endswith(_ARCHIVE_ENDINGS)


def _by_columns(head: bytes, settings: InputSettings) -> str:
    """Return "csv" or "tsv" if the first line is a header with the name of a column of texts; otherwise ""."""
    fields, first = (*(settings.text_fields or ("text",)), "body"), head.partition(b"\n")[0]
    names = {field.encode() for field in fields}
    for separator in SEPARATORS["csv"]:
        cells = [cell.strip(b' "\r') for cell in first.split(separator.encode())]
        if len(cells) > 1 and not names.isdisjoint(cells):
            return "tsv" if separator == "\t" else "csv"
    return ""


def guess_format(name: str, reading: Callable[[], ByteStream], settings: InputSettings) -> FormatGuess:
    """Guess the format of an input from its name and, unless the name settles it, from its first bytes.

    The first bytes are read if the name indicates no format, or one of files that often hold another: texts, and XML of
    RCV1. `reading` opens the input. TextcatError is raised if neither indicates a format (and `settings.lines` does not
    say that each line is a document), or if the format is not supported.
    """
    settings = settings.for_file(name)
    by_name = format_by_name(name, settings)
    # Exported references are often named .txt or .xml.
    is_unsure = by_name.by == "name" and by_name.format in (*_TEXTS, "rcv1") and not is_url(name)
    if by_name.format and not is_unsure:
        return by_name
    try:
        with closing(reading()) as stored:
            stream = unpacked_stream(stored, name)
            guess, head = format_by_content(stream, name, settings), stream.peek(_TEXT_HEAD)
    except UnreadableError:
        return by_name  # the format to read it by does not matter
    if by_name.format != "lines" and guess.format in REFERENCES | NEWS | SCANS:
        return guess
    plain = plain_name(name).lower()
    if by_name.format in _TEXTS:
        try:
            form = _format_of_text(by_name.format, plain, head, settings)
        except UnreadableError as fault:
            raise TextcatError(f"{name} {fault}.") from None
        return by_name if form == by_name.format else FormatGuess(form, "content")
    if by_name.format or guess.format:
        return by_name if by_name.format else guess
    if hint := unread_format(plain, head):
        raise TextcatError(f"{name} is {hint}.")
    if settings.lines:
        return FormatGuess("lines", "option")
    raise TextcatError(
        f"Neither name nor content tells the format of {name}: name it with --format, one of {', '.join(FORMATS)}."
    )
