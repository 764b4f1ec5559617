"""Reuters-21578's SGML: one file, many stories."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html.entities import name2codepoint
from typing import NamedTuple

from textcat.documents import Document
from textcat.errors import TextcatError
from textcat.reading.members import Member

# Each of them looks at a text once, whatever is in there.
_ATTRIBUTE = re.compile(r'(?<![A-Z])([A-Z]+)="([^"]*)"')
_ENTRY = re.compile(r"<D>([^<]*)</D>")
_AUTHOR = re.compile(r"<AUTHOR>(?:(?!<AUTHOR>).)*?</AUTHOR>", re.DOTALL)
_REFERENCE = re.compile(r"&(?:#([0-9]{1,7})|#[xX]([0-9a-fA-F]{1,6})|([a-zA-Z]+));")
# The wire's own control codes (start and end of text, DEL where a character was lost) separate words, so each
# becomes a space. Line ends and tabs stay.
_NO_CONTROLS = bytes(32 if (byte < 32 and byte not in b"\t\n") or byte == 127 else byte for byte in range(256))


class SplitRule(NamedTuple):
    """Say which attribute puts a story into which part, and which TOPICS values are used at all."""

    attribute: str
    parts: Mapping[str, str]
    topics: frozenset[str]


_LEWIS = {"TRAIN": "train", "TEST": "test", "NOT-USED": "unused"}
_HAYES = {"TRAINING-SET": "train", "PUBLISHED-TESTSET": "test"}
#: The three splits of the collection's README, section VIII. TOPICS="YES" says that the indexers looked at the story,
#: not that it has a topic.
SPLITS = {
    "modapte": SplitRule("LEWISSPLIT", _LEWIS, frozenset({"YES"})),
    "modlewis": SplitRule("LEWISSPLIT", _LEWIS, frozenset({"YES", "NO"})),
    "modhayes": SplitRule("CGISPLIT", _HAYES, frozenset({"YES", "NO", "BYPASS"})),
}


def wanted(name: str, **options: str) -> bool:
    """Tell whether a file holds stories."""
    return name.lower().endswith(".sgm")


def parse(member: Member, split: str = "modapte", encoding: str = "latin-1") -> Iterator[Document]:
    """Yield the stories of one SGML file.

    The id is NEWID; the zones are title, dateline and body (``""`` where a story has none). A story of type UNPROC has
    only a body, one of type BRIEF only a title. The names of its authors are left out.

    Parameters
    ----------
    member : Member
    split : {"modapte", "modlewis", "modhayes"}
        The rule that fills `Document.split`.
    encoding : str

    Yields
    ------
    Document

    Raises
    ------
    TextcatError
        If a story is cut off or lacks an attribute or element, with the file and the story.

    References
    ----------
    D. D. Lewis, README of Reuters-21578, Distribution 1.0 (1997), sections VI (format) and VIII (splits).
    """
    if split not in SPLITS:
        raise TextcatError(f"There is no Reuters split {split!r}: use one of {', '.join(SPLITS)}.")
    text = member._replace(data=member.data.translate(_NO_CONTROLS)).text(encoding)
    *stories, rest = text.split("</REUTERS>")
    for story in stories:
        try:
            yield _document(story, SPLITS[split])
        except _FaultError as fault:
            raise _malformed(member, story, fault) from None
    if "<REUTERS" in rest:
        raise _malformed(member, rest, "is cut off before </REUTERS>")


class _FaultError(Exception):
    """What is wrong with a story, as the verb and object of a sentence."""


def _malformed(member: Member, story: str, fault: object) -> TextcatError:
    identifier = re.search(r'NEWID="([^"]*)"', story.partition("<REUTERS")[2].partition(">")[0])
    which = f"story {identifier[1]}" if identifier else "a story without NEWID"
    return TextcatError(f"{member}: {which} {fault}: mend the file or fetch it again.")


def _document(story: str, rule: SplitRule) -> Document:
    opening = _index(story, "<REUTERS", 0)
    head = _index(story, ">", opening)
    if story.find("<REUTERS", head) >= 0:
        raise _FaultError("is cut off before </REUTERS>")
    attributes = dict(_ATTRIBUTE.findall(story, opening, head))
    topics = _between(story, "<TOPICS>", "</TOPICS>", _index(story, "<TOPICS>", head))
    return Document(
        _value(attributes, "NEWID"),
        _zones(story, _index(story, "<TEXT", head)),
        # A few stories name a topic twice.
        tuple(dict.fromkeys(_ENTRY.findall(topics))) if topics else (),
        _between(story, "<DATE>", "</DATE>", head).strip(),
        _part(attributes, rule),
    )


def _value(attributes: Mapping[str, str], name: str) -> str:
    if name not in attributes:
        raise _FaultError(f"has no attribute {name}")
    return attributes[name]


def _part(attributes: Mapping[str, str], rule: SplitRule) -> str:
    indexed, split = _value(attributes, "TOPICS"), _value(attributes, rule.attribute)
    if indexed not in ("YES", "NO", "BYPASS"):
        raise _FaultError(f"has the unknown value TOPICS={indexed!r}")
    if split not in rule.parts:
        raise _FaultError(f"has the unknown value {rule.attribute}={split!r}")
    return rule.parts[split] if indexed in rule.topics else "unused"


def _zones(story: str, start: int) -> dict[str, str]:
    opening = _index(story, ">", start) + 1
    end = _index(story, "</TEXT>", opening)
    if 'TYPE="UNPROC"' in story[start:opening]:
        return {"title": "", "dateline": "", "body": _clean(story[opening:end])}
    title = _between(story, "<TITLE>", "</TITLE>", opening)
    if 'TYPE="BRIEF"' in story[start:opening]:
        # What else stands in a brief is a row of asterisks and the filler "Blah blah blah.".
        return {"title": _clean(title), "dateline": "", "body": ""}
    dateline = _between(story, "<DATELINE>", "</DATELINE>", opening)
    return {"title": _clean(title), "dateline": _clean(dateline), "body": _body(story, opening)}


def _body(story: str, opening: int) -> str:
    body = _clean(_between(story, "<BODY>", "</BODY>", opening))
    # In some twenty stories a table or a first line stands outside of all elements, behind the title.
    loose_start, loose_end = story.find("</TITLE>", opening) + len("</TITLE>"), story.find("<DATELINE>", opening)
    if loose_end - loose_start > 1:
        loose = _clean(_AUTHOR.sub("", story[loose_start:loose_end]))
        return f"{loose}\n{body}" if loose else body
    return body


def _between(story: str, opening: str, closing: str, start: int) -> str:
    """Return the content of an element, "" if the story has none."""
    first = story.find(opening, start)
    if first < 0:
        return ""
    first += len(opening)
    return story[first : _index(story, closing, first)]


def _index(story: str, tag: str, start: int) -> int:
    found = story.find(tag, start)
    if found < 0:
        raise _FaultError(f"has no {tag}")
    return found


def _clean(text: str) -> str:
    return (_REFERENCE.sub(_character, text) if "&" in text else text).strip()


def _character(reference: re.Match[str]) -> str:
    decimal, hexadecimal, name = reference.groups()
    code = int(decimal) if decimal else int(hexadecimal, 16) if hexadecimal else name2codepoint.get(name, -1)
    if code < 0:
        return reference[0]
    character = chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else " "
    return character if character.isprintable() or character in "\t\n" else " "
