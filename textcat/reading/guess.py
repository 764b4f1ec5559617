"""The name of a file, and the bytes it begins with → its format, where they tell."""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

from textcat.reading.compression import COMPRESSIONS
from textcat.reading.formats.delimited import SEPARATORS
from textcat.reading.formats.mbox import SEPARATOR
from textcat.reading.records import InputSettings
from textcat.reading.streams import Stream, UnreadableError

_BY_NAME = {
    "jsonl": ("jsonl", "ndjson"),
    "csv": ("csv",),
    "tsv": ("tsv", "tab"),
    "parquet": ("parquet", "pq"),
    "reuters": ("sgm", "sgml"),
    "rcv1": ("xml",),
    "text": ("txt", "text"),
    "mbox": ("mbox", "mbx"),
}
_FORMAT_OF = {ending: name for name, endings in _BY_NAME.items() for ending in endings}
_COMPRESSED = tuple(ending for compression in COMPRESSIONS for ending in compression.endings)
_HEAD = 1 << 16  # bytes looked at
_LINE = re.compile(rb"\A\s*\S[^\n]*\n")  # found or not, in one pass
_BY_START = (
    ("jsonl", re.compile(rb'\{\s*["}]')),
    ("parquet", re.compile(rb"PAR1")),
    ("reuters", re.compile(rb"<!DOCTYPE lewis|<REUTERS", re.IGNORECASE)),
    ("rcv1", re.compile(rb"<\?xml|<newsitem")),
    ("mbox", SEPARATOR),
)
ARCHIVES = {
    "zip": (".zip",),
    "tar": (".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2", ".tbz2", ".tar.zst", ".tzst"),
}


class Guess(NamedTuple):
    """A format, and what it was told by: "name", "content", "option" or "default"; ("", "") where nothing tells."""

    format: str
    by: str


def by_name(name: str, settings: InputSettings) -> Guess:
    """Tell the format by the name; but of what is no archive, by the settings if they say it."""
    for archive, endings in ARCHIVES.items():
        if name.lower().endswith(endings):
            return Guess(archive, "name")
    if settings.format:
        return Guess(_or_lines(settings.format, settings), "option")
    found = _FORMAT_OF.get(_plain(name).lower().rpartition(".")[2], "") if "." in name else ""
    return Guess(_or_lines(found, settings), "name" if found else "")


def by_content(stream: Stream, name: str, settings: InputSettings) -> Guess:
    """Tell the format by the first line that is not blank, without using it up."""
    head = stream.peek(_HEAD, until=_LINE).removeprefix(codecs.BOM_UTF8)
    if "." not in name.rpartition("/")[2]:  # many formats are zips by another name
        archive = "zip" if head.startswith(b"PK\x03\x04") else "tar" if head[257:262] == b"ustar" else ""
        if archive:
            return Guess(archive, "content")
    head = head.lstrip()
    found = next((form for form, start in _BY_START if start.match(head)), "") or _by_columns(head, settings)
    if found or not stream.prompt:
        return Guess(found, "content" if found else "")
    return Guess(_or_lines("text", settings), "default")  # what is typed is a text


def format_of(stream: Stream, name: str, settings: InputSettings) -> str:
    """Tell the format of a file.

    Raises
    ------
    UnreadableError
        If neither name nor content tell it.
    """
    found = by_name(name, settings).format or by_content(stream, name, settings).format
    if not found:
        raise UnreadableError("is not read, as neither name nor content tell its format: name it with --format")
    return found


def _plain(name: str) -> str:
    """Give a name without the ending that says how it is compressed."""
    ending = next((ending for ending in _COMPRESSED if name.lower().endswith(ending)), "")
    return name[: len(name) - len(ending)]


def _or_lines(form: str, settings: InputSettings) -> str:
    return "lines" if form == "text" and settings.lines else form


def _by_columns(head: bytes, settings: InputSettings) -> str:
    """Tell by a header with the name of the texts' column among others."""
    names, first = {settings.text_field.encode(), b"body"}, head.partition(b"\n")[0]
    for separator in SEPARATORS["csv"]:
        cells = [cell.strip(b' "\r') for cell in first.split(separator.encode())]
        if len(cells) > 1 and not names.isdisjoint(cells):
            return "tsv" if separator == "\t" else "csv"
    return ""
