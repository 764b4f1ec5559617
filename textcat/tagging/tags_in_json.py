"""Write tags into news items of ninjs, the JSON format of news agencies, as subjects in the form of its version."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from textcat.reading import IPTC_URIS, ValueSpan, is_own, members_of, values_in
from textcat.tagging.concepts import MOST_SPACE, Edit, NoPlaceError, Tag, space_before

_VERSION = re.compile(r"(?<!\d)(\d{1,3})\.(\d{1,3})")  # searched for in texts of any length
_OF_FIRST = re.compile(r"(?:subject|person|place|organisation|event|object|genre|infosource|byline|mimetype|headline)"
                       r"|(?:headline|body|description)_\w+|(?:char|word)count|\$standard|trustindicator")  # fmt: skip
_CREATORS = ("creator", "rel")


def edits_of_ninjs(data: bytes, tags: Sequence[Tag], creator: str) -> list[Edit]:
    """Return the edits that write tags into an item of ninjs as subjects, and remove those of earlier runs.

    Versions 1.x have the subjects in ``subject``, later versions in ``subjects``. A null is replaced by a list;
    NoPlaceError is raised for any other value that is not a list.
    """
    members = members_of(data, 0)
    version = _version(data, members)
    name = "subject" if version < (2, 0) else "subjects"
    subjects = [_subject(tag, creator, version) for tag in tags]
    member = members.get(name)
    if member is not None and data[member.start] == ord("["):
        return _edits_of_list(data, member, subjects)
    if not subjects:
        return []
    if member is None:
        return [_new_member(data, name, subjects)]
    if data[member.start : member.end] != b"null":
        raise NoPlaceError(f"its field {name} is not a list: correct it")
    return [Edit(member.start, member.end, _list_like(data, member, subjects))]


def _version(data: bytes, members: Mapping[str, ValueSpan]) -> tuple[int, int]:
    """Return an item's version of ninjs: the declared one or, without one, a version that has its members."""
    declared = members.get("standard") or members.get("$standard")
    if declared is not None:
        declared_by = _loaded(data, declared)
        match = (
            _VERSION.search(str(declared_by.get("version") or declared_by.get("schema") or ""))
            if isinstance(declared_by, dict)
            else None
        )
        if match:
            return int(match[1]), int(match[2])
    if "subjects" not in members and any(map(_OF_FIRST.fullmatch, members)):
        # Version 1.5 added members for the creator and the confidence.
        is_later = "digitalsourcetype" in members or any(
            "creator" in subject or "confidence" in subject for subject in _subjects(data, members)
        )
        return (1, 5) if is_later else (1, 0)
    return (2, 1)


def _loaded(data: bytes, value: ValueSpan) -> Any:
    return json.loads(data[value.start : value.end].decode("utf-8", "replace"))


def _subject(tag: Tag, creator: str, version: tuple[int, int]) -> dict[str, Any]:
    """Return a tag as a JSON object; in versions of ninjs without a creator, its member "rel" is the creator."""
    concept = tag.concept
    scheme = IPTC_URIS.get(concept.scheme, concept.scheme)
    is_uri = scheme.endswith(("/", "#", ":")) and " " not in concept.code
    name = concept.name or ("" if concept.scheme else concept.code)
    subject: dict[str, Any] = {"name": name} if name else {}
    if version < (2, 0):
        subject |= {"scheme": scheme, "code": concept.code} if is_uri else {"code": concept.topic}
    else:
        subject |= {"uri": scheme + concept.code} if is_uri else {"literal": concept.topic}
    if version < (1, 5) or version == (2, 0):
        return {**subject, "rel": creator}
    numbers = {"relevance": tag.relevance, "confidence": tag.confidence}
    return {**subject, "creator": creator, **{key: number for key, number in numbers.items() if number is not None}}


def _edits_of_list(data: bytes, found: ValueSpan, subjects: Sequence[dict[str, Any]]) -> list[Edit]:
    """Return the edits of a list of subjects: new ones replace those that textcat has written, or are appended."""
    values, _ = values_in(data, found.start)
    owned = [_is_own(_loaded(data, value)) for value in values]
    is_spaced = b'": ' in data[found.start : found.end] or not values
    if not any(owned):
        place = values[-1].end if values else found.start + 1
        between = _between(data, values[-1], is_spaced) if values else b", "
        added = between.join(_encoded(subjects, is_spaced))
        return [Edit(place, place, (between if values else b"") + added)] if subjects else []
    first = owned.index(True)
    edits = []
    if subjects:
        between = _between(data, values[first], is_spaced)
        if owned[first + 1 : first + 2] == [True]:
            between = _separator(data, values[first], values[first + 1]) or between
        edits = [Edit(values[first].start, values[first].end, between.join(_encoded(subjects, is_spaced)))]
    has_before = bool(subjects) or first > 0  # whether a subject that stays precedes
    for i in range(first + bool(subjects), len(values)):
        if not owned[i]:
            has_before = True
        elif has_before:
            edits.append(Edit(values[i - 1].end, values[i].end, b""))
        else:  # remove the following comma, too
            edits.append(Edit(values[i].start, values[i + 1].start if i + 1 < len(values) else values[i].end, b""))
    return edits


def _separator(data: bytes, value: ValueSpan, other: ValueSpan) -> bytes:
    """Return the bytes between two neighbours in a list; b"" if they are too many to repeat."""
    return data[value.end : other.start] if other.start - value.end <= MOST_SPACE else b""


def _between(data: bytes, value: ValueSpan, is_spaced: bool) -> bytes:
    """Return the comma and white space that separate a value of a list from its neighbours."""
    return b"," + (space_before(data, value.start) or (b" " if is_spaced else b""))


def _new_member(data: bytes, name: str, subjects: Sequence[dict[str, Any]]) -> Edit:
    """Return the edit that adds a list of subjects after the last member of an item, in the item's layout."""
    last = values_in(data, 0)[0][-1]
    space, colon = space_before(data, last.begin), _colon(data, last)
    written = b',%s"%s"%s%s' % (space, name.encode(), colon, _list_like(data, last, subjects))
    return Edit(last.end, last.end, written)


def _colon(data: bytes, member: ValueSpan) -> bytes:
    return b":" + data[data.rindex(b":", member.begin, member.start) + 1 : member.start]


def _list_like(data: bytes, member: ValueSpan, subjects: Sequence[dict[str, Any]]) -> bytes:
    """Return subjects as a list in the layout of an item, as the value of a member such as `member`."""
    space, end_space = space_before(data, member.begin), space_before(data, values_in(data, 0)[1])
    is_spaced = len(_colon(data, member)) > 1
    objects = _encoded(subjects, is_spaced)
    if b"\n" not in space:
        return b"[%s]" % (b", " if is_spaced else b",").join(objects)
    step = space.removeprefix(end_space) if space != end_space else b""
    inner = space + step.replace(b"\n", b"")
    return b"[%s]" % (b",".join(inner + written for written in objects) + space)


def _encoded(subjects: Sequence[dict[str, Any]], is_spaced: bool) -> list[bytes]:
    """Return each object as JSON in ASCII, with or without spaces; so the file's encoding does not matter."""
    separators = (", ", ": ") if is_spaced else (",", ":")
    return [json.dumps(subject, separators=separators).encode() for subject in subjects]


def _subjects(data: bytes, members: Mapping[str, ValueSpan]) -> list[Any]:
    member = members.get("subject")
    listed = [] if member is None else _loaded(data, member)
    return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []


def _is_own(subject: Any) -> bool:
    return isinstance(subject, dict) and any(is_own(str(subject.get(name, ""))) for name in _CREATORS)
