"""Convert news items to documents: code shared by the formats of agencies and feeds.

A new format of news is a module beside this one. `FORMATS` in `__init__.py` lists it, and so does `TAGS` in
`xml_items.py` if it is XML, or else `NEWS` in `__init__.py`. If tags can be written back into its files, `EDITORS` in
tagging/edit_news.py lists it, too.
"""

import re
import time
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

from textcat.base.surrogates import mark_surrogates
from textcat.reading.dates import iso_date, moment, with_zone
from textcat.reading.faults import FaultKind, UnreadableError
from textcat.reading.input_settings import InputSettings
from textcat.reading.records import NO_VERSION, Record

_LAST_ZONE = "-12:00"  # when a time has passed there, it has passed everywhere
_SHOWN = 80  # maximum characters of an embargo in messages
_DATE_REMEDY = ": write its date like 2024-05-01T10:00:00Z"
_YEAR_1 = datetime.min.replace(tzinfo=timezone.utc)
OWN = "textcat"  # scheme of the creators of tags written by this package
_ZONES = ("title", "slugline", "abstract", "body")
# IPTC schemes with a short name in every catalogue, by the end of their URI.
_IPTC = re.compile(r"https?://cv\.iptc\.org/newscodes/([\w-]+)/", re.IGNORECASE)
_ALIASES = {"mediatopic": "medtop", "subjectcode": "subj"}
#: The URIs of these schemes by their short names.
IPTC_URIS = {alias: f"http://cv.iptc.org/newscodes/{name}/" for name, alias in _ALIASES.items()}
# The code must not contain a separator; otherwise, the regex would take quadratic time.
_URI = re.compile(r"((?:https?|tag|urn):\S*[/#:])([^/#:\s]+:?|:)[/#]?")
_QCODE = re.compile(r"([A-Za-z][\w.-]*):(\S+)")
_REASONS = {
    "canceled": "is canceled by its publisher",
    "cancelled": "is canceled by its publisher",
    "killed": "is killed by its publisher",
    "withheld": "is withheld by its publisher",
    "embargoed": "is under embargo",
}


class Subject(NamedTuple):
    """A subject of a news item: its scheme, such as "medtop", its code in the scheme, and its name."""

    scheme: str
    code: str
    name: str = ""

    @property
    def topic(self) -> str:
        """Return the name of the subject's topic: "medtop:20000065", a URI or, without a code, the subject's name."""
        if not self.code:
            return self.name
        return f"{self.scheme}{'' if self.scheme.endswith(('/', '#', ':')) or not self.scheme else ':'}{self.code}"

    def is_of(self, scheme: str) -> bool:
        """Return whether the subject belongs to a scheme, given by its short name, its URI or the end of its URI."""
        bare = self.scheme.rstrip("/#:")
        return scheme.rstrip("/#:") in (bare, re.split("[/#:]", bare)[-1])


def subject_of(code: str, name: str = "", scheme: str = "") -> Subject:
    """Return the subject for a code, which may be a URI, or begin with the short name of its scheme: "medtop:20000065".

    Schemes of the IPTC get their short names.
    """
    subject = subject_as_given(code, name, scheme)
    if iptc := _IPTC.fullmatch(subject.scheme):
        return subject._replace(scheme=_ALIASES.get(iptc[1].lower(), iptc[1].lower()))
    return subject


def subject_as_given(code: str, name: str, scheme: str) -> Subject:
    """Like `subject_of`, but keep the URI of an IPTC scheme instead of its short name."""
    code, name, scheme = (" ".join(mark_surrogates(text).split()) for text in (code, name, scheme))
    match = None if not code or scheme else _URI.fullmatch(code) or _QCODE.fullmatch(code)
    if match:
        scheme, code = match[1], match[2]
    elif scheme and code.startswith(f"{scheme}:"):
        code = code[len(scheme) + 1 :]
    return Subject(scheme, code, name)


def is_own(creator: str) -> bool:
    """Return whether a tag was written by textcat, given its creator: "textcat:" followed by a model's name.

    The attribute that holds the creator differs between formats.
    """
    return creator.startswith(f"{OWN}:")


class NewsItem(NamedTuple):
    """A news item in a common form for all formats; missing texts and facts are ""."""

    id: str
    texts: Mapping[str, str]  # texts by zone: title, slugline, abstract, body
    date: str = ""
    language: str = ""
    subjects: Iterable[Subject] = ()
    version: str = ""  # version, a whole number
    status: str = ""  # status of publication, such as "usable", "stat:canceled" or a URI
    #: Date of its release; "": unknown, until the publisher says so; None: no embargo, unless that is its status.
    embargo: str | None = None
    version_date: str = ""  # orders versions with the same number; "": use its date


def news_content(item: NewsItem, settings: InputSettings) -> Record:
    """Convert a news item to the content of a record.

    If it has no body, its abstract becomes the body. A canceled item, or one under embargo, is marked as left out.
    So is one whose embargo is no date, as an error. UnreadableError is raised if the item has no text.
    """
    texts = {zone: mark_surrogates(item.texts.get(zone, "")).strip() for zone in _ZONES}
    for zone in ("title", "slugline"):
        texts[zone] = " ".join(texts[zone].split())
    if not texts["body"]:
        texts["body"], texts["abstract"] = texts["abstract"], ""
    version, date, language = item.version.strip(), iso_date(mark_surrogates(item.date)), mark_surrogates(item.language)
    reason, due, kind = _left_out(item.status, item.embargo and item.embargo.strip())
    if reason:
        reason = f"{reason}, so it is left out{'' if kind is FaultKind.LEFT_OUT else _DATE_REMEDY}"
    elif not any(texts.values()):
        raise left_out("has no text, as its content is elsewhere or empty")
    elif not (texts["title"] or texts["body"]):
        texts["body"] = texts["slugline"]
    number = int(version) if version.isdecimal() and len(version) < 20 else None
    updated = moment(iso_date(item.version_date) or date)
    microseconds = -1 if updated is None else (updated - _YEAR_1) // timedelta(microseconds=1)
    key = NO_VERSION if not item.id or (number is None and updated is None) else (number or 0, microseconds)
    subjects = list(dict.fromkeys(subject for subject in item.subjects if subject.topic))
    chosen = [subject for subject in subjects if not settings.topics_scheme or subject.is_of(settings.topics_scheme)]
    topics = () if settings.labels is None else tuple(dict.fromkeys(subject.topic for subject in chosen))
    zones = settings.filled({zone: text for zone, text in texts.items() if text or zone in ("title", "body")})
    said = (_fields(item._replace(date=date, language=language), subjects, settings), language.strip())
    return Record(mark_surrogates(item.id), zones, topics, date, "", None, *said, key, reason, due, None, kind)


def left_out(why: str, always: str = "") -> UnreadableError:
    """Return the error for a valid item that is not a document to tag or to train on.

    `why` is the reason for this item. `always` is the reason for all items of its kind, which is logged once per
    corpus.
    """
    return UnreadableError(f"{why}: it is left out", FaultKind.LEFT_OUT, always)


def _left_out(status: str, embargo: str | None) -> tuple[str, float | None, FaultKind]:
    """Return why an item is left out (or ""), when its embargo ends, if that is known, and the kind of the rejection.

    The kind is an error's if the embargo is neither a date nor "".
    """
    said = re.split("[/#:]", status.strip().lower())[-1]
    if said in _REASONS and not (said == "embargoed" and embargo):
        return _REASONS[said], None, FaultKind.LEFT_OUT
    if embargo is None:
        return "", None, FaultKind.LEFT_OUT
    if not embargo:
        return _REASONS["embargoed"], None, FaultKind.LEFT_OUT
    until = with_zone(iso_date(embargo), _LAST_ZONE)
    release = moment(until)
    if release is None:
        return f"has the embargo {embargo[:_SHOWN]!r}, which is no date", None, FaultKind.CONTENT
    if (due := release.timestamp()) <= time.time():
        return "", None, FaultKind.LEFT_OUT
    return f"{_REASONS['embargoed']} until {until}", due, FaultKind.LEFT_OUT


def _fields(item: NewsItem, subjects: list[Subject], settings: InputSettings) -> dict[str, Any] | None:
    if not settings.fields:
        return None
    fields = {
        "date": item.date,
        "language": item.language.strip(),
        "version": mark_surrogates(item.version.strip()),
        "subjects": [subject._asdict() for subject in subjects],
    }
    return settings.kept(fields)
