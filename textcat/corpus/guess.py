"""Guess a card for data without one, from the names of their files and, if necessary, their content."""

import logging
import os
import re
from dataclasses import replace
from pathlib import Path, PurePosixPath

from textcat.base.errors import TextcatError, first_of
from textcat.corpus import descriptions
from textcat.corpus.cards import RECORD_READERS, Card, holds_documents, is_wanted
from textcat.reading import (
    NEWS,
    REFERENCES,
    SCANS,
    SUBJECTS,
    ByteStream,
    InputSettings,
    UnreadableError,
    folders_of,
    format_of,
    is_matched,
    named_format,
    part_of,
    read_documents,
    shared_depth,
)

_log = logging.getLogger(__name__)

_NO_DATA = re.compile(r"[._]|(readme|licen[cs]e|changelog|citation|copying|notice)\b", re.IGNORECASE)
_LOOKED_INTO = 9  # maximum number of files searched for a list of subjects; some may be empty


def guess_card(data: str, settings: InputSettings | None) -> Card:
    """Return a card for data without one, judging by the names of its files and, if need be, their content.

    `data` is the path or URL of the data. TextcatError is raised if no file has a known format, and there is no folder
    per topic.
    """
    settings = settings or InputSettings()
    names: list[str] = []
    read_documents([data], settings, names.append)  # `append` returns None, so no file is read
    _log_patterns_without_files(data, names, settings)
    described = _descriptions_among(names)
    names = [name for name in names if name != described]
    reader = "folders" if settings.format == "text" else settings.format
    if not reader:
        reader = "annif" if _list_subjects(data, names, settings) else _reader_of(names, settings)
        if reader in ("", "folders", "json", "jsonl", "records") and _hold_news(data, names, settings):
            reader = "news"
    others: tuple[str, ...] = ()
    if not settings.format and reader in ("", "records", *RECORD_READERS):
        others = _records_in_texts(data, names, settings)
        reader = "records" if others else reader
    elif reader == "lines":  # files of lines often have only the topic as name
        others = tuple(name for name in names if "." not in name.rpartition("/")[2] and not _is_no_data(name))
    if not reader:
        raise TextcatError(
            f"{data} holds no file of a known format and no folder per topic: name the format with --format, or give "
            "it a card (.toml) with a reader."
        )
    name = Path(data).name
    guessed = Card(name, Path(data).parent, reader, [name], descriptions=described, depth=shared_depth(names))
    guessed = replace(guessed, others=others)
    if not settings.format:
        _log_files_left_out(data, guessed, names, settings)
    return guessed


def _log_patterns_without_files(data: str, names: list[str], settings: InputSettings) -> None:
    for pattern, values in settings.for_files:
        skips = dict(values).get("skip")  # files to leave out may be missing
        if not skips and not any(is_matched(name, pattern) for name in names):
            _log.warning("No file of %s is matched by --for %r: its options change nothing.", data, pattern)


def _log_files_left_out(data: str, card: Card, names: list[str], settings: InputSettings) -> None:
    wanted = is_wanted(card, settings)
    left_out = [name for name in names if not (wanted(name) or settings.for_file(name).skip or _is_no_data(name))]
    if left_out:
        shown = first_of(left_out)
        _log.warning(
            "%s: %d of %d files are not read, as the others are read as %s: %s. If they hold documents, name their "
            "format, such as --for '%s --format text'.",
            *(data, len(left_out), len(names), card.reader, shown, PurePosixPath(left_out[0]).name),
        )


def _is_no_data(name: str) -> bool:
    return bool(_NO_DATA.match(PurePosixPath(name).name))


def _records_in_texts(data: str, names: list[str], settings: InputSettings) -> tuple[str, ...]:
    """Return the names of text files outside topics' folders whose content is a list of records, such as references.

    A single file is examined whatever its name. TextcatError is raised if all files have a known but unsupported
    format.
    """
    texts = names
    if len(names) > 1:
        texts = [name for name in _outside_topics(names) if named_format(name) == "text" and not _is_no_data(name)]
    forms = _formats_of(data, texts, settings)
    refused = [(name, form) for name, form in forms.items() if isinstance(form, UnreadableError)]
    if refused and len(refused) == len(names):
        name, fault = refused[0]
        raise TextcatError(f"{data} {fault}." if len(names) == 1 else f"{name} in {data} {fault}.")
    return tuple(name for name, form in forms.items() if form in REFERENCES or form in ("annif", *RECORD_READERS))


def _list_subjects(data: str, names: list[str], settings: InputSettings) -> bool:
    """Return whether files list the subjects of the texts next to them, as in Annif's full-text corpora.

    `names` are the names of all files in `data`.
    """
    texts = {name[:-4] for name in names if name.lower().endswith(".txt")}
    beside = [name for name in names if name[:-4] in texts and name.lower().endswith((".key", ".tsv"))]
    return SUBJECTS in _formats_of(data, beside[:_LOOKED_INTO], settings).values()


def _hold_news(data: str, names: list[str], settings: InputSettings) -> bool:
    """Return whether the XML files among the files `names` are news or scanned pages."""
    xml = [name for name in names if named_format(name) == "rcv1"][:_LOOKED_INTO]
    return not (NEWS | SCANS).isdisjoint(_formats_of(data, xml, settings).values())


def _formats_of(data: str, names: list[str], settings: InputSettings) -> dict[str, str | UnreadableError]:
    """Return the format of each named file, or the reason why it is not read, as far as name and content show it."""
    forms: dict[str, str | UnreadableError] = {}

    def look(name: str, stream: ByteStream) -> None:
        try:
            forms[name] = format_of(stream, name, settings)
        except UnreadableError as fault:
            forms[name] = fault.with_traceback(None)

    if names:
        read_documents([data], settings, frozenset(names).__contains__, look)
    return forms


def _reader_of(names: list[str], settings: InputSettings) -> str:
    """Return the reader for these files, by the name that a card gives it, such as "jsonl"; "" if none fits."""

    def holds(reader: str, name: str) -> bool:
        # Not all files that RCV1's reader accepts: a topic's folder may contain XML files with numbers.
        return name.lower().endswith("newsml.xml") if reader == "rcv1" else holds_documents(reader, name)

    # Files in a topic's folder are its documents, whatever their format.
    beside = _outside_topics(names)
    among = dict.fromkeys(("reuters", "rcv1", "jsonl"), names)
    among |= dict.fromkeys(RECORD_READERS[1:], beside) | {"mbox": names, "warc": names}
    fitting = [reader for reader, candidates in among.items() if any(holds(reader, name) for name in candidates)]
    if fitting:
        several = fitting[0] in RECORD_READERS and {*fitting[1:]} & {*RECORD_READERS}
        return "records" if several else fitting[0]
    if settings.lines and names:
        return "lines"
    return "folders" if any("/" in name for name in names) else ""


def _outside_topics(names: list[str]) -> list[str]:
    """Return the names of those files that are not in a topic's folder."""
    depth = shared_depth(names)
    return [
        name
        for name in names
        if all(part_of(folder) or folder.lower() == "unused" for folder in folders_of(name)[depth:])
    ]


def _descriptions_among(names: list[str]) -> str:
    """Return the name of the file that describes topics, in the common folder of all files; "" if there is none."""
    if len(names) < 2:  # a single file is the data
        return ""
    folder = os.path.commonpath(names)
    candidates = (f"{folder}/{name}" if folder else name for name in descriptions.NAMES)
    return next((name for name in candidates if name in names), "")
