"""Read the SGML of Reuters-21578; a file has many stories."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from html.entities import name2codepoint
from typing import NamedTuple

from textcat.reading.dates import iso_date
from textcat.reading.faults import FaultKind, UnreadableError
from textcat.reading.input_settings import InputSettings, LabelSettings
from textcat.reading.records import Block, Record, RecordFormat, RecordSpan, by_record

_OPENING, _CLOSING = b"<REUTERS", b"</REUTERS>"
_PROLOGUE = re.compile(rb"\s*(?:<!DOCTYPE[^>]*>\s*)?")
# Each regex takes linear time on any text.
_ATTRIBUTE = re.compile(r'(?<![A-Z])([A-Z]+)="([^"]*)"')
_ENTRY = re.compile(r"<D>([^<]*)</D>")
_AUTHOR = re.compile(r"<AUTHOR>(?:(?!<AUTHOR>).)*?</AUTHOR>", re.DOTALL)
# The beginning and the text of a usual story. Unusual or broken stories are read element by element, which takes three
# times as long.
_HEAD = re.compile(
    r'<REUTERS TOPICS="([A-Z]*)" LEWISSPLIT="([A-Z-]*)" CGISPLIT="([A-Z-]*)" OLDID="[0-9]*" NEWID="([0-9]*)">\n'
    r"<DATE>([^<]*)</DATE>\n<TOPICS>((?:<D>[^<]*</D>)*)</TOPICS>"
)
_TEXT = re.compile(
    r"<TEXT>[^<]*<TITLE>([^<]*)</TITLE>\n?(?:<AUTHOR>[^<]*</AUTHOR>\n)?"
    r"<DATELINE>([^<]*)</DATELINE><BODY>([^<]*)</BODY></TEXT>\n</REUTERS>"
)
_REFERENCE = re.compile(r"&(?:#([0-9]{1,7})|#[xX]([0-9a-fA-F]{1,6})|([a-zA-Z]+));")
# The wire's control codes (start and end of text, DEL for a lost character) separate words, so each becomes a space.
# Line ends and tabs are kept.
_NO_CONTROLS = bytes(32 if (byte < 32 and byte not in b"\t\n") or byte == 127 else byte for byte in range(256))


class _SplitRule(NamedTuple):
    """The rule of a split, which assigns each story to the training part, the test part or neither."""

    attribute: str  # attribute of a story that determines its part
    parts: Mapping[str, str]  # the part for each value of this attribute
    topics: frozenset[str]  # values of the attribute TOPICS of used stories; other stories are unused


_LEWIS = {"TRAIN": "train", "TEST": "test", "NOT-USED": "unused"}
_HAYES = {"TRAINING-SET": "train", "PUBLISHED-TESTSET": "test"}
#: The three splits of the collection's README, section VIII. TOPICS="YES" means that indexers examined the story, not
#: that it has a topic.
SPLITS = {
    "modapte": _SplitRule("LEWISSPLIT", _LEWIS, frozenset({"YES"})),
    "modlewis": _SplitRule("LEWISSPLIT", _LEWIS, frozenset({"YES", "NO"})),
    "modhayes": _SplitRule("CGISPLIT", _HAYES, frozenset({"YES", "NO", "BYPASS"})),
}


class _StoryCutter:
    """Cut an SGML file of Reuters-21578 after the ends of its stories."""

    def __init__(self) -> None:
        self._inside = False  # state inside a skipped story

    def cut(self, data: bytes) -> int:
        end = data.rfind(_CLOSING)
        return end + len(_CLOSING) if end >= 0 else 0

    def count(self, data: bytes) -> int:
        return data.count(_OPENING)

    def skip(self, data: bytes) -> tuple[int, bool]:
        # Where the next story begins, this one ends.
        start = 0 if self._inside else data.find(_OPENING) + len(_OPENING)
        closing, opening = data.find(_CLOSING, start), data.find(_OPENING, start)
        ends = [end for end in (closing + len(_CLOSING) if closing >= 0 else -1, opening) if end >= 0]
        self._inside = not ends
        return (min(ends), True) if ends else (max(len(data) - len(_CLOSING), 0), False)


def _spans(block: Block, _: InputSettings) -> Iterator[RecordSpan]:
    """Yield the `RecordSpan` of each story, with spaces for its control codes, and of any text between stories.

    A truncated story ends where the next one begins.
    """
    position, offset = block.position, block.offset
    between, *pieces = block.data.split(_OPENING)
    yield from _spans_between(position, offset, between)
    for piece in pieces:
        offset += len(between)
        story, closing, between = piece.partition(_CLOSING)
        data = _OPENING + story + closing
        yield RecordSpan(position, offset, data.translate(_NO_CONTROLS))
        position, offset = position + 1, offset + len(data)
        if between != b"\n":
            yield from _spans_between(position, offset, between)


def _spans_between(position: int, offset: int, data: bytes) -> Iterator[RecordSpan]:
    """Yield text between stories as `RecordSpan`, cut where blocks may end: after each tag that would close a story."""
    *closed, rest = data.split(_CLOSING)
    for part in (*(text + _CLOSING for text in closed), rest):
        if _PROLOGUE.fullmatch(part) is None:
            yield RecordSpan(position, offset, part)
        offset += len(part)


def _content(_: Block, settings: InputSettings, span: RecordSpan) -> Record:
    """Return the content of a story.

    The id is NEWID; the zones are title, dateline and body (``""`` where a story has none). A story of type UNPROC has
    only a body, one of type BRIEF only a title. The names of the story's authors are left out. Source: D. D. Lewis,
    README of Reuters-21578, Distribution 1.0 (1997), sections VI (format) and VIII (splits).
    """
    if not span.data.startswith(_OPENING):
        raise UnreadableError("has text before it that belongs to no story: correct the file")
    story = span.decoded(settings.encoding or "latin-1")
    try:
        return _usual_story(story, settings) or _story(story, settings)
    except UnreadableError as fault:
        sentence = f"{_named(story)} {fault}: correct the file or fetch it again"
        raise UnreadableError(f"cannot be read ({sentence})", FaultKind.STORY, sentence) from None


def _named(story: str) -> str:
    identifier = re.search(r'NEWID="([^"]*)"', story.partition("<REUTERS")[2].partition(">")[0])
    return f"story {identifier[1]}" if identifier else "a story without NEWID"


def _usual_story(story: str, settings: InputSettings) -> Record | None:
    """Parse a story that two patterns match, faster than `_story` does; return None for other stories."""
    head = _HEAD.match(story)
    text = _TEXT.fullmatch(story, story.find("<TEXT", head.end())) if head else None
    if head is None or text is None:
        return None
    indexed, lewis, cgi, name, date, topics = head.groups()
    part = _usual_part(indexed, lewis, cgi, settings.labels)
    if part == "unused" and settings.labels is not None and not settings.labels.unused:
        return Record(name, {}, split=part)
    title, dateline, body = map(_clean, text.groups())
    return _labelled(name, {"title": title, "dateline": dateline, "body": body}, topics, date, part, settings)


def _story(story: str, settings: InputSettings) -> Record:
    if not story.endswith("</REUTERS>"):
        raise UnreadableError("is cut off before </REUTERS>")
    head = _index(story, ">", 0)
    attributes = dict(_ATTRIBUTE.findall(story, 0, head))
    name = _value(attributes, "NEWID")
    zones = _zones(story, _index(story, "<TEXT", head))
    date = _between(story, "<DATE>", "</DATE>", head)
    topics = ""
    if settings.labels is not None:
        topics = _between(story, "<TOPICS>", "</TOPICS>", _index(story, "<TOPICS>", head))
    return _labelled(name, zones, topics, date, _part(attributes, settings.labels), settings)


def _labelled(name: str, zones: dict[str, str], topics: str, date: str, part: str, settings: InputSettings) -> Record:
    """Return a story's content, with labels if the settings ask for them; `topics` is that of the element TOPICS."""
    # Some dates end in control characters, such as "&#5;", or in a remark: "# date added".
    zones, date = settings.filled(zones), iso_date(re.split("[&#]", date, maxsplit=1)[0])
    if settings.labels is None:
        return Record(name, zones, (), date)
    names = tuple(dict.fromkeys(_ENTRY.findall(topics))) if topics else ()  # a few stories have a topic twice
    return Record(name, zones, names, date, part)


def _value(attributes: Mapping[str, str], name: str) -> str:
    if name not in attributes:
        raise UnreadableError(f"has no attribute {name}")
    return attributes[name]


def _part(attributes: Mapping[str, str], labels: LabelSettings | None) -> str:
    """Return the part of a story: "train", "test" or "unused"; "" if the settings ask for no labels."""
    if labels is None:
        return ""
    rule = SPLITS[labels.split]
    indexed, split = _value(attributes, "TOPICS"), _value(attributes, rule.attribute)
    if indexed not in ("YES", "NO", "BYPASS"):
        raise UnreadableError(f"has the unknown value TOPICS={indexed!r}")
    if split not in rule.parts:
        raise UnreadableError(f"has the unknown value {rule.attribute}={split!r}")
    return rule.parts[split] if indexed in rule.topics else "unused"


@lru_cache(maxsize=256)
def _usual_part(indexed: str, lewis: str, cgi: str, labels: LabelSettings | None) -> str:
    return _part({"TOPICS": indexed, "LEWISSPLIT": lewis, "CGISPLIT": cgi}, labels)


def _zones(story: str, start: int) -> dict[str, str]:
    opening = _index(story, ">", start) + 1
    end = _index(story, "</TEXT>", opening)
    if 'TYPE="UNPROC"' in story[start:opening]:
        return {"title": "", "dateline": "", "body": _clean(story[opening:end])}
    title = _between(story, "<TITLE>", "</TITLE>", opening)
    if 'TYPE="BRIEF"' in story[start:opening]:
        # The other text of a brief is a row of asterisks and the filler "Blah blah blah.".
        return {"title": _clean(title), "dateline": "", "body": ""}
    dateline = _between(story, "<DATELINE>", "</DATELINE>", opening)
    return {"title": _clean(title), "dateline": _clean(dateline), "body": _body(story, opening)}


def _body(story: str, opening: int) -> str:
    body = _clean(_between(story, "<BODY>", "</BODY>", opening))
    # In some twenty stories, a table or a first line is outside of all elements, after the title.
    loose_start, loose_end = story.find("</TITLE>", opening) + len("</TITLE>"), story.find("<DATELINE>", opening)
    if loose_end - loose_start > 1:
        loose = _clean(_AUTHOR.sub("", story[loose_start:loose_end]))
        return f"{loose}\n{body}" if loose else body
    return body


def _between(story: str, opening: str, closing: str, start: int) -> str:
    """Return the text between two tags, the first one at or after `start`; "" if the opening tag is missing."""
    first = story.find(opening, start)
    if first < 0:
        return ""
    first += len(opening)
    return story[first : _index(story, closing, first)]


def _index(story: str, tag: str, start: int) -> int:
    position = story.find(tag, start)
    if position < 0:
        raise UnreadableError(f"has no {tag}")
    return position


def _clean(text: str) -> str:
    if "&" in text:
        text = text.replace("&lt;", "<").replace("&#3;", " ")  # nearly all that there are
    if "&" in text:
        text = _REFERENCE.sub(lambda match: _character(*match.groups()) or match[0], text)
    return text.strip()


@lru_cache(maxsize=256)
def _character(decimal: str | None, hexadecimal: str | None, name: str | None) -> str:
    code = int(decimal) if decimal else int(hexadecimal, 16) if hexadecimal else name2codepoint.get(name or "", -1)
    if code < 0:
        return ""
    character = chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else " "
    return character if character.isprintable() or character in "\t\n" else " "


FORMAT = RecordFormat(_spans, by_record(_content), "Story {}", lambda *_: _StoryCutter())
