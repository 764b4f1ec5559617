"""Find the files, folders, URLs and pipes that INPUT arguments name, each with its format and its state."""

import errno
import glob
import hashlib
import io
import logging
import os
import posixpath
import re
import stat
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import orjson

from textcat.base.errors import TextcatError
from textcat.base.surrogates import decode_surrogates
from textcat.reading.changes import Change, FileState, FolderMarks, mark_file
from textcat.reading.containers import (
    ContainerEntry,
    Neighbours,
    files_in,
    folder_entries,
    folder_neighbours,
    hidden,
    listed_neighbours,
    missing_file,
    open_file,
    walk,
)
from textcat.reading.formats import DOCUMENTS, FORMATS, NEWS, REFERENCES, SCANS, annif
from textcat.reading.formats.delimited import SEPARATORS
from textcat.reading.formats.json_feed import is_json_feed
from textcat.reading.formats.mail import SEPARATOR
from textcat.reading.formats.main_text import check_extractor
from textcat.reading.formats.ninjs import is_ninjs
from textcat.reading.formats.rcv1 import VERSIONS, span_of
from textcat.reading.formats.reuters import SPLITS
from textcat.reading.formats.text import HEADERS
from textcat.reading.formats.unread import unread_format, unread_text, unread_xml
from textcat.reading.formats.xml_items import xml_format
from textcat.reading.maildir import is_message
from textcat.reading.records import (
    LAST,
    InputSettings,
    LabelSettings,
    UnreadableError,
    has_usual_name,
    is_encoding,
    usual_name,
)
from textcat.reading.scans import pages_of_mets
from textcat.reading.streams import (
    ByteStream,
    of_file,
    pipe_stream,
    plain_name,
    text_start,
    unpacked_stream,
    unreadable,
)

log = logging.getLogger(__name__)

STANDARD_INPUT = "-"
_TEXTS = ("text", "lines")
FOLDERS = "folders"  # what a folder per topic is read as: the documents in it, each by its name, or else texts
_GLOB = frozenset("*?[")
_BY_NAME = {
    "jsonl": ("jsonl", "ndjson"),
    "csv": ("csv",),
    "tsv": ("tsv", "tab"),
    "parquet": ("parquet", "pq"),
    "reuters": ("sgm", "sgml"),
    "rcv1": ("xml", "nitf", "newsml", "rss", "atom", "tei", "alto", "mets"),  # XML, of which the content tells more
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
_HEAD, _TEXT_HEAD, _START = 1 << 16, 1 << 12, 128  # bytes looked at
_LINE = re.compile(rb"\A\s*\S[^\n]*\n")  # found or not, in one pass
_FIRST = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*[^\s\xef]")  # what is no white space, nor part of a byte order mark
_XML_HEAD, _ELEMENT = 1 << 10, re.compile(rb"<[A-Za-z]+[\s>]")
_EXPORT = re.compile(rb"(?:<\?xml[^<>]{0,200}>\s*)?(?:<xml>\s*)?<records?>")
# Lines before a list of references that say where it comes from, or count its records.
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
# How texts begin that may be of another format: without a preamble, or as a table, or with a subject's URI.
_CELL = rb"[ \"]*[\w.()/\x80-\xff-][\w .()/\x80-\xff\"-]{0,40}"
_TABLE = re.compile(rb"%b(?:[,;|\t]%b)+\r?\n" % (_CELL, _CELL))
_TAGGED = rb"FN |PT[ \t]|RT |TY|PMID|VN|UI|Databases?:|Scopus|Record|filedesc"
_MAYBE_NO_TEXT = re.compile(rb"[%%@<{_0-9+-]|%b|[^\n]*\t[ \t]*<|%b" % (_TAGGED, _TABLE.pattern))
# How most texts begin, in one quick look: with a line that has no separators, or no short value before the first one.
_PLAIN_START = re.compile(rb"(?!%b)[A-Za-z](?:[^\r\n\t,;|]*|[\w .()/'-]{42}[^\r\n\t]*)(?:\r?\n|\Z)" % _TAGGED)
_PREAMBLE_LENGTH = 1 << 11
_BEHIND_PREAMBLE = (b"\nTY ", b"\nPMID-")
# A first line after which further ones must be seen, before it is known whether they begin a list of references.
_MAYBE_LIST = re.compile(rb"[A-Za-z][A-Za-z ]{0,40}:|<?[0-9]|%|FN |PT ")
_ROWS = 6  # lines of a table that are looked at
ARCHIVES = {
    "zip": (".zip",),
    "tar": (".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2", ".tbz2", ".tar.zst", ".tzst"),
}
_ARCHIVE_ENDINGS = tuple(ending for endings in ARCHIVES.values() for ending in endings)
# What file systems call that which changes when a file does.
_STATES = frozenset(
    {"checksum", "created", "etag", "last_modified", "lastmodified", "md5", "modified", "mtime", "updated", "version"}
)


# What Annif reads besides lines of short texts and subjects, which are recognised as elsewhere.
_SILENT = 60.0  # seconds in which a web server must connect, or send something
_BESIDES_ANNIFS = (".txt", ".csv", ".json", ".jsonl")


class _Guess(NamedTuple):
    """Name a format and how it was recognised: by "name", "content", "option" or "default"; ("", "") if unknown."""

    format: str
    by: str


def named_format(name: str) -> str:
    """Return the format that a name's extension indicates, "zip" or "tar" for an archive; "" if it indicates none."""
    if is_archive(name):
        return "zip" if name.lower().endswith(ARCHIVES["zip"]) else "tar"
    if is_message(name):
        return "eml"
    return _FORMAT_OF.get(plain_name(name).lower().rpartition(".")[2], "") if "." in name else ""


def format_by_name(name: str, settings: InputSettings) -> _Guess:
    """Return the format of a file by its name; the format in the settings takes precedence, except for archives."""
    asked = "" if is_archive(name) else settings.format
    if asked == "mbox" and is_message(name):
        asked = "eml"
    if asked == "annif":
        asked = "" if plain_name(name).lower().endswith(_BESIDES_ANNIFS) else asked
    elif asked == FOLDERS:  # whose files are texts, whatever they are called, unless they can be no texts
        asked = named if (named := named_format(name)) in DOCUMENTS | REFERENCES else "text"
    form = asked or named_format(name)
    by = "option" if asked else "name" if form else ""
    return _Guess("lines" if form == "text" and settings.lines else form, by)


def format_by_content(stream: ByteStream, name: str, settings: InputSettings) -> _Guess:
    """Return the format that the first nonblank line of a stream shows; the stream is not advanced."""
    head = stream.peek(_HEAD, until=_LINE)
    if head.startswith(b"<?xml"):
        head = stream.peek(_XML_HEAD, until=_ELEMENT)
    if "." not in name.rpartition("/")[2]:  # many formats are zips by another name
        archive = "zip" if head.startswith(b"PK\x03\x04") else "tar" if head[257:262] == b"ustar" else ""
        if archive:
            return _Guess(archive, "content")
    head = text_start(head, settings.encoding)
    if head.startswith(b"<") and (
        form := xml_format(text_start(stream.peek(_HEAD, until=_ELEMENT), settings.encoding))[0]
    ):
        return _Guess(form, "content")
    form = next((form for form, start in _BY_START if start.match(head)), "") or _by_columns(head, settings)
    if not form and not settings.lines and _MAYBE_LIST.match(head):
        form = _list_in(text_start(stream.peek(_TEXT_HEAD), settings.encoding))
    if form in ("json", "jsonl") and settings.is_default("text_fields"):
        form = _format_of_json(head) or form
    form = form or ("annif" if annif.annif_kind(_first_line(head)) == "annif" else "")
    if not form and plain_name(name).lower().endswith(".json"):
        form = "json" if head.startswith(b"[") else "jsonl"
    if form or not stream.prompt:
        return _Guess(form, "content" if form else "")
    return _Guess("lines" if settings.lines else "text", "default")  # what is typed is a text


def format_of(stream: ByteStream, name: str, settings: InputSettings, form: str = "") -> str:
    """Return the format of a file, by its name or else its content; raise UnreadableError if neither tells it.

    `form` is the format that is already known, "" if none; the content may still make it more precise.
    """
    if posixpath.basename(name) == annif.CATEGORIES and annif.is_categories(stream.peek(_TEXT_HEAD)):
        return annif.SUBJECTS
    form = form or format_by_name(name, settings).format or format_by_content(stream, name, settings).format
    plain = plain_name(name).lower()
    if form in _TEXTS and settings.format not in _TEXTS:
        # A filter answers each line: it does not wait for further ones.
        head = stream.peek(_TEXT_HEAD, until=_LINE) if stream.prompt and settings.lines else stream.peek(_TEXT_HEAD)
        return _format_of_text(form, plain, head, settings)
    if form in ("", "annif") and plain.endswith(".key"):
        return annif.SUBJECTS
    if form in ("tsv", "annif") and not settings.columns:
        head = text_start(stream.peek(_HEAD, until=_LINE), settings.encoding)
        form = annif.annif_kind(_first_line(head)) or form
    if form == "jsonl" and plain.endswith(".json") and not settings.format:
        line, end, _ = text_start(stream.peek(_HEAD, until=_LINE), settings.encoding).partition(b"\n")
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
    """Return the format of a file that is called a text, or is one for want of another; `head` has its first bytes.

    It may be a list of references, a table or JSON Lines, which are often called texts. UnreadableError is raised if it
    is of a known format that is not read.
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
    """Return the format of a list of references, given its first bytes; "" if they begin no such list."""
    return next((form for form, start in _BY_START if form in REFERENCES and start.match(head)), "")


def _records_in(head: bytes, settings: InputSettings) -> str:
    """Return the format of a table or of JSON Lines that is called a text, given its first bytes; "" for other texts.

    Texts that begin like a table are none if their next lines have other numbers of values. If a format
    was asked for, such as a folder per topic, texts are texts, whatever they begin with.
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


class Source(NamedTuple):
    """Describe one input: a file, a folder, a URL or a pipe, from which records are read."""

    name: str  # its path, its URL, or "-", standard input
    kind: str  # "file", "folder" or "pipe"
    guess: _Guess  # its format; an archive has the format "zip" or "tar", a folder has "folder"
    size: int | None  # in bytes, for a folder the sum of its files; None for a pipe
    state: int | str | None  # a value that changes when the source changes; None for a pipe
    files: int  # the number of files in a folder; otherwise 1
    open: Callable[[], ByteStream] = ByteStream  # opens a file or pipe
    entries: Callable[[], Iterator[ContainerEntry]] = lambda: iter(())  # returns the files of a folder
    changed: Callable[[], Change | None] | None = None  # returns how it has changed since it was found; None: unknown
    # The states of a folder's files, by their paths inside it; None: they are too many.
    states: Sequence[FileState] | None = None
    neighbours: Neighbours | None = None  # the files in the folder of a file; None if they cannot be looked up

    @property
    def format(self) -> str:
        """Return the source's format, or "" if it is recognised only when the source is read."""
        return self.guess.format

    def fingerprint(self) -> dict[str, Any]:
        """Return a dict of JSON values that is different after the source has changed."""
        return {"name": self.name, "files": self.files, "size": self.size, "state": self.state}

    def file_states(self) -> list[FileState] | None:
        """Return the name, size and time of each file of the source, in the order of reading.

        None is returned if these are unknown: for a pipe, and for a folder with very many files.
        """
        if self.kind == "pipe" or (self.kind == "folder" and self.states is None):
            return None
        if self.kind != "folder":
            return [FileState(self.name, -1 if self.size is None else self.size, self.state)]
        above = "" if self.name == "." else self.name
        return [state._replace(name=path_inside(above, state.name)) for state in self.states or ()]

    def openers(self, names: Collection[str]) -> Iterator[tuple[str, Callable[[], ByteStream]]]:
        """Yield those of the source's files that are named, by their names, each with what opens it."""
        if self.kind != "folder":
            yield from [(self.name, self.open)] if self.name in names else []
            return
        above = "" if self.name == "." else self.name
        for entry in self.entries():
            if (path := path_inside(above, entry.name)) in names:
                yield path, entry.open

    def restricted(self, numbers: Mapping[str, int]) -> "Source":
        """Return the source with only the files in `numbers`, each renumbered; `numbers` has the number by path."""
        if self.kind != "folder":
            return self
        above = "" if self.name == "." else self.name

        def entries() -> Iterator[ContainerEntry]:
            paths = ((entry, path_inside(above, entry.name)) for entry in self.entries())
            return (entry._replace(number=numbers[path]) for entry, path in paths if path in numbers)

        states = [state for state in self.states or () if path_inside(above, state.name) in numbers]
        readable = [state.size for state in states if state.size >= 0]
        return self._replace(entries=entries, size=sum(readable), files=len(readable), states=states)


def path_inside(above: str, name: str) -> str:
    """Return the path of a file in a folder or an archive, as documents have it as their source; "" is that itself."""
    return posixpath.join(above, decode_surrogates(name)) if name else above or "."


def find_sources(inputs: Iterable[str | os.PathLike[str]], settings: InputSettings) -> list[Source]:
    """Return the sources that inputs name: files, folders, patterns, URLs of fsspec; ``-`` or no input: standard input.

    A folder is read with all folders in it, sorted, but without hidden files; a pattern (``*``, ``?``, ``[…]``, ``**``)
    names the files that match it, sorted, and the folders on its way that cannot be listed. A file that is named twice,
    or together with its folder, is read once, and a warning is logged. A TextcatError is raised for an unknown file,
    format or encoding, or if neither the name nor the content of a file tells its format.
    """
    _check(settings)
    texts = [os.fspath(text) for text in inputs] or [STANDARD_INPUT]
    return _without_pages_of_mets([*_once([source for text in texts for source in _named(text, settings)])], settings)


def matches(text: str) -> list[str]:
    """Return the files that match a pattern, sorted; [] if the text is no pattern: it has no ``*``, ``?`` or ``[``."""
    return sorted(glob.glob(text, recursive=True)) if not _GLOB.isdisjoint(text) else []


def _check(settings: InputSettings) -> None:
    labels = settings.labels or LabelSettings()
    for what, name, choices in (
        (f"format {settings.format!r}", "text" if settings.format in ("", FOLDERS) else settings.format, FORMATS),
        (f"Reuters split {labels.split!r}", labels.split, SPLITS),
        (f"version {labels.version!r} of RCV1", labels.version, VERSIONS),
        (f"way {labels.headers!r} to treat headers", labels.headers, HEADERS),
    ):
        if name not in choices:
            raise TextcatError(f"There is no {what}: use one of {', '.join(choices)}.")
    if settings.main_text:
        check_extractor()
    for _, values in settings.for_files:
        _check(settings._replace(for_files=(), **dict(values)))
    if not is_encoding(settings.encoding or "utf-8"):
        raise TextcatError(f"There is no encoding {settings.encoding!r}: use for example 'utf-8' or 'latin-1'.")
    for text in filter(None, (labels.train, labels.test)):
        if not LAST.fullmatch(text):
            span_of(text)


def _named(text: str, settings: InputSettings) -> list[Source]:
    if text == STANDARD_INPUT:
        return [_pipe(text, lambda: pipe_stream(sys.stdin.buffer), settings)]
    if is_url(text):
        return _remote(text, settings)
    if not os.path.exists(text) and not _GLOB.isdisjoint(text):
        closed = _closed_folders(text)
        paths = [path for path in matches(text) if not closed or closed.isdisjoint(_folders_above(path))]
        if not paths and not closed:
            raise TextcatError(f"No file matches {text}: check the pattern.")
        # The pattern reads no folder here, so that none needs a format.
        unmatched = sorted(closed.difference(path.rstrip("/") for path in paths))
        unread = [_local(folder, settings)._replace(guess=_Guess("", "")) for folder in unmatched]
        return [*unread, *(_local(path, settings) for path in paths)]
    return [_local(text, settings)]


def _closed_folders(pattern: str) -> set[str]:
    """Return the folders that a pattern leads through, but that cannot be listed or passed: glob skips them silently.

    Each is an input itself as long as that is so: it is rejected, and read by the pattern later.
    """
    parts = pattern.split("/")
    first = next(i for i, part in enumerate(parts) if not _GLOB.isdisjoint(part))
    closed = set[str]()
    for i in range(first, len(parts)):
        above = "/".join(parts[: i + (parts[i] == "**")])
        folders = glob.glob(f"{above}/", recursive=True) if i or above else []
        for folder in folders if i else [".", *folders]:
            try:
                if not _GLOB.isdisjoint(parts[i]):
                    os.scandir(folder).close()
                os.stat(os.path.join(folder, "."))
            except OSError:
                closed.add(folder.rstrip("/") or "/")
    return closed


def _folders_above(path: str) -> Iterator[str]:
    above = os.path.dirname(path.rstrip("/"))
    while above not in ("", "/"):
        yield above
        above = os.path.dirname(above)
    yield above or "."


def _local(path: str, settings: InputSettings) -> Source:
    try:
        status = os.stat(path)
    except OSError as error:
        raise TextcatError(f"{path} cannot be read ({error.strerror}): check the path.") from None
    name, mode = decode_surrogates(str(Path(path))), status.st_mode
    if stat.S_ISDIR(mode):
        return _folder(name, path)
    if stat.S_ISREG(mode):
        mark = mark_file(path, status)
        reading = partial(open_file, path, mark)
        guess = _guess(name, reading, settings)
        changed = partial(mark.change, path)
        found = Source(name, "file", guess, mark.size, mark.modified, 1, reading, changed=changed)
        return found._replace(neighbours=folder_neighbours(os.path.dirname(path)))
    if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):
        return _pipe(name, lambda: pipe_stream(open(path, "rb"), closes=True), settings)
    raise TextcatError(f"{path} is not a file, folder or pipe: check the path.")


def _pipe(name: str, reading: Callable[[], ByteStream], settings: InputSettings) -> Source:
    return Source(name, "pipe", format_by_name(name, settings.for_file(name)), None, None, 1, reading)


def _folder(name: str, path: str) -> Source:
    files, size, state, faults = 0, 0, hashlib.sha256(), dict[str, UnreadableError]()

    def met() -> Iterator[tuple[str, os.stat_result | None]]:
        nonlocal files, size
        for item in walk(path):
            if item.status is not None:
                files, size = files + 1, size + item.status.st_size
                state.update(repr((item.name, item.status.st_size, item.status.st_mtime_ns)).encode())
            elif item.fault is not None:
                state.update(repr(item.name).encode())
                faults[item.name] = item.fault
            yield item.name, item.status

    marks = FolderMarks(met())
    guess, entries = _Guess("folder", "content"), partial(folder_entries, path, marks, faults)
    changed = (lambda: marks.change(files_in(path))) if marks.is_whole else None
    found = Source(name, "folder", guess, size, state.hexdigest(), files, entries=entries, changed=changed)
    return found._replace(states=marks.states if marks.is_whole else None)


def _guess(name: str, reading: Callable[[], ByteStream], settings: InputSettings) -> _Guess:
    settings = settings.for_file(name)
    by_name = format_by_name(name, settings)
    # Exports of references are often called .txt or .xml.
    is_unsure = by_name.by == "name" and by_name.format in (*_TEXTS, "rcv1") and not is_url(name)
    if by_name.format and not is_unsure:
        return by_name
    try:
        with closing(reading()) as stored:
            stream = unpacked_stream(stored, name)
            guess, head = format_by_content(stream, name, settings), stream.peek(_TEXT_HEAD)
    except UnreadableError:
        return by_name  # what it is read as does not matter
    if by_name.format != "lines" and guess.format in REFERENCES | NEWS | SCANS:
        return guess
    plain = plain_name(name).lower()
    if by_name.format in _TEXTS:
        try:
            form = _format_of_text(by_name.format, plain, head, settings)
        except UnreadableError as fault:
            raise TextcatError(f"{name} {fault}.") from None
        return by_name if form == by_name.format else _Guess(form, "content")
    if by_name.format or guess.format:
        return by_name if by_name.format else guess
    if hint := unread_format(plain, head):
        raise TextcatError(f"{name} is {hint}.")
    if settings.lines:
        return _Guess("lines", "option")
    raise TextcatError(
        f"Neither name nor content tells the format of {name}: name it with --format, one of {', '.join(FORMATS)}."
    )


def _once(sources: list[Source]) -> Iterator[Source]:
    """Yield each distinct source once, without files that are also read as parts of a folder among the sources."""
    folders = {_key(source) for source in sources if source.kind == "folder"}
    seen = set()
    for source in sources:
        key = _key(source)
        within = [above for above in Path(key).parents if str(above) in folders]
        if key in seen:
            log.warning("%s is named twice; it is read once.", source.name)
        elif any(not hidden(Path(key).relative_to(above).as_posix()) for above in within):
            log.warning("%s is named as well as its folder; it is read once.", source.name)
        else:
            yield source
        seen.add(key)


def _without_pages_of_mets(sources: list[Source], settings: InputSettings) -> list[Source]:
    """Return the sources without the ALTO files that are read as parts of METS files among the sources."""
    pages: dict[str, str] = {}
    for source in sources if any(source.format == "alto" for source in sources) else ():
        if source.format == "mets" and not settings.for_file(source.name).skip:
            above = plain_name(_key(source)).rpartition("/")[0]
            pages |= {
                f"{above}/{name}": source.name
                for name in pages_of_mets(source.open, source.name, settings.for_file(source.name))
            }
    kept = []
    for source in sources:
        owner = pages.get(plain_name(_key(source))) if source.format == "alto" else None
        if owner is None:
            kept.append(source)
        else:
            log.warning("%s is named as well as its METS file, %s; it is read once.", source.name, owner)
    return kept


def _key(source: Source) -> str:
    return source.name if is_url(source.name) or source.name == STANDARD_INPUT else os.path.realpath(source.name)


# --- URLs, by fsspec --------------------------------------------------------------------------------------------------


def is_url(text: str) -> bool:
    """Return True if an input is a URL, and False if it is a path."""
    return "://" in text or "::" in text


def file_system(url: str) -> tuple[Any, str]:
    """Return the file system of fsspec for a URL, and the path there.

    A file from a web server may take as long as it needs: aiohttp would give up after five minutes. A server that sends
    nothing for a minute is given up.
    """
    from fsspec.config import conf
    from fsspec.core import url_to_fs

    options = {}
    for kind in ("http", "https"):
        if f"{kind}://" in url:
            from aiohttp import ClientTimeout

            timeout = ClientTimeout(total=None, sock_connect=_SILENT, sock_read=_SILENT)
            options[kind] = {"client_kwargs": {"timeout": timeout, **conf.get(kind, {}).get("client_kwargs", {})}}
    system, path = url_to_fs(url, **options)
    return system, path


def _remote(url: str, settings: InputSettings) -> list[Source]:
    """Return the source that a URL names; for a URL with ``*``, return the files that match it, sorted."""
    try:
        system, path = file_system(url)
        system.invalidate_cache()  # what it listed before may have changed
        if "*" in url:
            urls = {system.unstrip_protocol(name): name for name in sorted(system.glob(path))}
        else:
            urls = {url: path}
        sources = [_remote_source(name, system, path, settings) for name, path in urls.items()]
    except TextcatError:
        raise
    except FileNotFoundError:
        raise TextcatError(f"{url} does not exist: check the address.") from None
    except ImportError as error:
        raise TextcatError(f"{url} needs another package ({str(error).rstrip('.')}): install it.") from None
    except Exception as error:  # every system has its own
        raise TextcatError(f"{url} cannot be read ({error}): check the address and your rights there.") from None
    if not urls:
        raise TextcatError(f"No file matches {url}: check the pattern.")
    return sources


def _remote_source(url: str, system: Any, path: str, settings: InputSettings) -> Source:
    info = system.info(path)
    if info.get("type") != "directory":
        reading = partial(_open_remote, system, path)
        found = Source(url, "file", _guess(url, reading, settings), _size(info), _state(info), 1, reading)
        return found._replace(neighbours=Neighbours(lambda _: iter(()), partial(_open_beside, system, path)))
    listing = system.find(path, detail=True)
    path_of = {name[len(path) :].lstrip("/"): name for name in listing}
    files = [(name, path_of[name], listing[path_of[name]]) for name in sorted(path_of) if not hidden(name)]
    looked_up = listed_neighbours(lambda: ((name, partial(_open_remote, system, file)) for name, file, _ in files))
    neighbours = looked_up._replace(is_remote=True)
    entries = [
        ContainerEntry(index, name, partial(_open_remote, system, file), size=_size(info) or 0, neighbours=neighbours)
        for index, (name, file, info) in enumerate(files)
    ]
    state = _sum([(name, _size(info), _state(info)) for name, _, info in files])
    size, guess = sum(entry.size for entry in entries), _Guess("folder", "content")
    found = Source(url.rstrip("/"), "folder", guess, size, state, max(len(files), 1), entries=lambda: iter(entries))
    return found._replace(states=[FileState(name, _size(info) or 0, _state(info)) for name, _, info in files])


def _size(info: dict[str, Any]) -> int | None:
    size = info.get("size")
    return size if isinstance(size, int) else None


def _state(info: dict[str, Any]) -> str:
    """Return a checksum of those properties of a remote file, given as `info`, that change when the file changes."""
    return _sum(sorted((key, str(value)) for key, value in info.items() if key.lower() in _STATES))


def _sum(sizes: list[Any]) -> str:
    return hashlib.sha256(repr(sizes).encode()).hexdigest()


def _open_beside(system: Any, path: str, _: str, name: str) -> ByteStream:
    """Open a file, given the path of another one and its own path from the folder of that on."""
    name = quote(name) if "http" in system.protocol else name
    beside = f"{path.rpartition('/')[0]}/{name}"
    try:
        system.info(beside)
    except FileNotFoundError:
        raise missing_file() from None
    except Exception as error:  # every system has its own
        raise unreadable(_as_oserror(error)) from None
    return _open_remote(system, beside)


def _open_remote(system: Any, path: str) -> ByteStream:
    try:
        if _gives_ranges(system, path):
            return of_file(_RemoteFile(system.open(path, "rb")))
        return of_file(_RemoteFile(system.open(path, "rb", block_size=0), seekable=False))
    except Exception as error:  # every system has its own
        raise unreadable(_as_oserror(error)) from None


def _gives_ranges(system: Any, path: str) -> bool:
    """Return whether a remote file is seekable: some web servers only send whole files."""
    if "http" not in system.protocol:
        return True
    with system.open(path, "rb", block_size=1) as file:
        try:
            file.seek(1)
            file.read(1)
        except ValueError:
            return False
    return True


def _as_oserror(error: BaseException) -> OSError:
    if isinstance(error, OSError) and error.strerror:
        return error
    return OSError(errno.EIO, f"{type(error).__name__}: {error}")


class _RemoteFile(io.RawIOBase):
    """Wrap a remote file: all its errors are OSErrors, and it can be declared not seekable."""

    def __init__(self, file: Any, *, seekable: bool = True) -> None:
        self._file, self._sought = file, seekable

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._sought and bool(self._file.seekable())

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        position: int = self._file.seek(offset, whence)
        return position

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._file.read(len(buffer))
        except Exception as error:  # every system has its own
            raise _as_oserror(error) from None
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()
