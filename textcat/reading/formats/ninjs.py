"""Read ninjs, the JSON of news agencies, versions 1 to 3: an item, an array, one item per line, or a feed of items."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import orjson

from textcat.reading.faults import UnreadableError
from textcat.reading.formats import jsonl
from textcat.reading.formats.html import extract_page
from textcat.reading.formats.json_values import members_of, values_in
from textcat.reading.formats.news import NewsItem, Subject, left_out, news_content, subject_of
from textcat.reading.input_settings import InputSettings
from textcat.reading.records import Block, Record, RecordFormat, RecordSpan, by_record

_OF_ITEM = re.compile(rb'"(?:uri|guid)"\s*:')
_NAMES = re.compile(
    rb'"(?:versioncreated|representationtype|pubstatus|headlines?|headline_\w+|bodies|body_\w+|descriptions|'
    rb'description_\w+|eventdetails)"\s*:|"name"\s*:\s*"ninjs"',
    re.IGNORECASE,
)
_OTHERS = re.compile(rb'"(?:text|zones|topics)"\s*:\s*["\[{]')  # names of JSON members defined by this package
_MARKED_UP = re.compile(r"x?html|rich", re.IGNORECASE)
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
# Names under which feeds have their list of items, or an object that contains it.
_LISTS = ("items", "_items", "item", "newsItems", "data", "results", "articles")
_LIST = re.compile(rb'"(?:%s)"\s*:\s*[\[{]' % b"|".join(name.encode() for name in _LISTS))
_FIRST = ("main", "text", "plain")  # roles, or ends of names, of the preferred texts


def is_ninjs(head: bytes) -> bool:
    """Return whether the first bytes of JSON are those of news items of ninjs."""
    return bool(_OF_ITEM.search(head) and _NAMES.search(head)) and not _OTHERS.search(head)


def _spans(block: Block, settings: InputSettings) -> Iterator[RecordSpan]:
    """Yield the `RecordSpan` of each item, which may be in the list of a feed."""
    for span in jsonl.ARRAY.spans(block, settings):
        for i, (start, end) in enumerate(_items_in(span, settings) or [(0, len(span.data))]):
            yield RecordSpan(span.position + i, span.offset + start, span.data[start:end])


def _items_in(span: RecordSpan, settings: InputSettings) -> list[tuple[int, int]]:
    """Return the start and end of each item in a feed's bytes; [] if the object is not a feed."""
    if len(span.data) > settings.max_bytes or not _LIST.search(span.data):
        return []
    try:
        fields = orjson.loads(span.text(settings))
        return _ranges_of_items(span.data, 0) if "uri" not in fields else []
    except (UnreadableError, ValueError, TypeError):
        return []  # the error is reported when the span is parsed


def _ranges_of_items(data: bytes, start: int, depth: int = 2) -> list[tuple[int, int]]:
    """Return the start and end of each item in the lists of a feed's object at `start`, and of objects inside it.

    `depth` is the number of levels of objects to search.
    """
    items: list[tuple[int, int]] = []
    members = members_of(data, start)
    for name in _LISTS:
        member = members.get(name)
        if member is None:
            continue
        listed = values_in(data, member.start)[0] if data[member.start] == ord("[") else []
        if listed and all(data[element.start] == ord("{") for element in listed):
            wrapped = (members_of(data, element.start).get("item", element) for element in listed)
            items += [(element.start, element.end) for element in wrapped]
        elif data[member.start] == ord("{"):
            is_item = name == "item" and not members_of(data, member.start).keys().isdisjoint(("uri", "guid"))
            items += (
                [(member.start, member.end)]
                if is_item
                else _ranges_of_items(data, member.start, depth - 1)
                if depth
                else []
            )
    return items


def item_format(content: Callable[[dict[str, Any], InputSettings], Record]) -> RecordFormat:
    """Return a format of JSON files with many items; `content` converts the fields of an item to a record's content."""

    def of_item(_: Block, settings: InputSettings, span: RecordSpan) -> Record:
        return content(jsonl.read_object(span.text(settings)), settings)

    return RecordFormat(_spans, by_record(of_item), "Item {}", jsonl.ARRAY.cutter)


def _content(fields: dict[str, Any], settings: InputSettings) -> Record:
    """Return the content of an item: ninjs 1 has texts such as body_text, later versions have lists of them."""
    lower = {name.lower(): value for name, value in fields.items()}
    if lower.get("type") in ("event", "planning") or "eventdetails" in lower:
        raise left_out("is an event, not a news item")
    name = _string(lower, "uri") or _string(lower, "guid")
    if not name:
        raise UnreadableError("has no uri, so it is not an item of ninjs: name the format with --format")
    texts = {
        "title": _text(lower, "headline", "headlines") or _string(lower, "title"),
        "slugline": _string(lower, "slugline"),
        "abstract": _text(lower, "description", "descriptions"),
        "body": _text(lower, "body", "bodies"),
    }
    dates = [_string(lower, key) for key in ("versioncreated", "contentcreated", "firstcreated")]
    item = NewsItem(
        name,
        texts,
        next(filter(None, dates), ""),
        _string(lower, "language"),
        _subjects(lower),
        str(value) if (value := lower.get("version")) is not None else "",
        _string(lower, "pubstatus"),
        _embargo(lower.get("embargoed")),
    )
    return news_content(item, settings)


def _embargo(value: Any) -> str | None:
    """Return an embargo as text; None if there is none: null, false, 0, or an empty list or object."""
    return value if isinstance(value, str) else json.dumps(value) if value else None


def _string(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def _text(fields: Mapping[str, Any], stem: str, plural: str) -> str:
    """Return the best text of a kind, such as the body: plain text if there is any, else HTML without its tags.

    In ninjs 1, the names of its fields begin with `stem`; in later versions, the field `plural` has a list of texts.
    """
    texts = [(name[len(stem) :].strip("_"), "", value) for name, value in fields.items() if _is_named(name, stem)]
    for entry in fields.get(plural) or () if isinstance(fields.get(plural), list) else ():
        if isinstance(entry, dict):
            lower = {name.lower(): value for name, value in entry.items()}
            texts.append((_string(lower, "role"), _string(lower, "contenttype"), lower.get("value")))
    strings = [(role.lower(), kind.lower(), text) for role, kind, text in texts if isinstance(text, str)]
    ranked = sorted(strings, key=lambda string: (_is_marked_up(*string), string[0] not in ("", *_FIRST)))
    for role, kind, text in ranked:
        plain = extract_page(text).body if _is_marked_up(role, kind, text) else text
        if plain.strip():
            return plain
    return ""


def _is_named(name: str, stem: str) -> bool:
    return name == stem or name.startswith(f"{stem}_")


def _is_marked_up(role: str, kind: str, text: str) -> bool:
    return bool(_MARKED_UP.search(kind or role)) and bool(_TAG.search(text) or "&" in text)


def _subjects(fields: Mapping[str, Any]) -> list[Subject]:
    """Return the subjects of an item: those of ninjs 1 have scheme and code, those of later versions a URI."""
    subjects = []
    for key in ("subject", "subjects"):
        for entry in fields.get(key) or () if isinstance(fields.get(key), list) else ():
            if isinstance(entry, dict):
                code = _string(entry, "uri") or _string(entry, "code") or _string(entry, "literal")
                scheme = "" if _string(entry, "uri") else _string(entry, "scheme")
                subjects.append(subject_of(code, _string(entry, "name"), scheme))
            elif isinstance(entry, str):
                subjects.append(subject_of(entry))
    return subjects


FORMAT = item_format(_content)
