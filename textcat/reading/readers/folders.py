"""A folder per topic, one text a file, with or without a train and a test part."""

from __future__ import annotations

import re
from collections.abc import Iterator

from textcat.documents import Document
from textcat.errors import TextcatError
from textcat.reading.members import Member

HEADERS = ("keep", "title", "subject", "drop")
_PART = re.compile(r"(?:^|[-_.])(train|test)$")
_HEADER_LINE = re.compile(r"[A-Za-z][A-Za-z0-9-]*:")
_SUBJECT = re.compile(r"^Subject:[ \t]*(.*(?:\n[ \t].*)*)", re.IGNORECASE | re.MULTILINE)


def wanted(name: str, **options: str) -> bool:
    """Tell whether a file lies in a topic's folder; a README beside the folders does not."""
    return "/" in name


def parse(member: Member, headers: str = "keep", encoding: str = "utf-8") -> Iterator[Document]:
    """Yield the one document a file is.

    The id is the file's path inside the source; the topic is the folder it lies in; the part is ``"train"`` or
    ``"test"`` where a folder above that has this name or ends in it after a dash, underscore or dot, else ``""``.
    The zones are title and body.

    Parameters
    ----------
    member : Member
    headers : {"keep", "title", "subject", "drop"}
        What becomes of the mail headers at the start of a post: ``"keep"`` leaves the text as it is, without title;
        ``"title"`` leaves it as it is, too, and makes the Subject the title besides; ``"subject"`` makes the Subject
        the title and drops the others, which name the poster and so may give the group away; ``"drop"`` drops all.
    encoding : str

    Yields
    ------
    Document

    Raises
    ------
    TextcatError
        If `headers` is unknown or the text is not in that encoding.
    """
    if headers not in HEADERS:
        raise TextcatError(f"There is no way {headers!r} to treat headers: use one of {', '.join(HEADERS)}.")
    *above, topic, _ = member.name.split("/")
    title, body = _zones(member.text(encoding).replace("\r\n", "\n"), headers)
    yield Document(member.name, {"title": title, "body": body}, (topic,), split=part(above))


def part(folders: list[str]) -> str:
    """Return the part that the innermost of these names is or ends in after a dash, underscore or dot; else ""."""
    found = (_PART.search(folder.lower()) for folder in reversed(folders))
    return next((match[1] for match in found if match), "")


def _zones(text: str, headers: str) -> tuple[str, str]:
    if headers == "keep" or not _HEADER_LINE.match(text):
        return "", text.strip()
    head, _, body = text.partition("\n\n")
    subject = _SUBJECT.search(head) if headers != "drop" else None
    rest = text if headers == "title" else body
    return " ".join(subject[1].split()) if subject else "", rest.strip()
