"""Read the XML of Reuters Corpus Volume 1: a file is one story, and there is a folder or zip for each day."""

import re
from collections import defaultdict
from functools import lru_cache
from typing import NamedTuple

from textcat.base.errors import TextcatError
from textcat.reading.faults import UnreadableError
from textcat.reading.input_settings import InputSettings, LabelSettings
from textcat.reading.records import Block, Record, RecordFormat, RecordSpan, by_record

VERSIONS = ("1", "2")
_TOPICS, _COUNTRIES = "bip:topics:1.0", "bip:countries:1.0"
_ZONES = frozenset({"title", "headline", "dateline", "p"})
# The distribution also has lists of codes and DTDs, whose names do not begin with a number.
_STORY = re.compile(r"(?:^|/)[0-9]+[^/]*\.xml$", re.IGNORECASE)
_DAY = re.compile(r"(?:^|/)([0-9]{4})([0-9]{2})([0-9]{2})(?:\.zip)?/", re.IGNORECASE)
_SPAN = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}) to ([0-9]{4}-[0-9]{2}-[0-9]{2})|([0-9]+) to ([0-9]+)")


def is_wanted_story(name: str, labels: LabelSettings) -> bool:
    """Return whether the file at a path holds a story to read.

    If the settings define the training and the test part by ranges of dates, only stories of these days are read.
    """
    if not _STORY.search(name):
        return False
    day = _DAY.search(name)
    spans = [span_of(text) for text in (labels.train, labels.test) if text]
    if not day or not spans:
        return True
    return any(isinstance(span.first, int) or span.holds(0, "-".join(day.groups())) for span in spans)


def _content(_: Block, settings: InputSettings, span: RecordSpan) -> Record:
    """Return the content of the only story in a file.

    The id is its itemid, the date is the newsitem's; the zones are title (the headline), dateline and body (a line
    per paragraph), each ``""`` where the story has none. The topics are the codes of class bip:topics:1.0; version 2
    adds their ancestors in the hierarchy, and leaves a story unused that has no topic or no country. The byline,
    which names the author, is left out. Source: D. D. Lewis, Y. Yang, T. G. Rose and F. Li, RCV1: A new benchmark
    collection for text categorization research, Journal of Machine Learning Research 5 (2004), 361-397: sections 2.3
    (the codes' hierarchy) and 4 (RCV1-v2).
    """
    story = _story(span.data, settings.encoding)
    name = _attribute(story, "itemid", "[0-9]+")
    date = _attribute(story, "date", "[0-9]{4}-[0-9]{2}-[0-9]{2}")
    texts = story.texts
    # The `title` element repeats the headline, with a country's name before it.
    title = " ".join(texts["headline"]) or " ".join(texts["title"])
    zones = settings.filled({"title": title, "dateline": " ".join(texts["dateline"]), "body": "\n".join(texts["p"])})
    language = story.attributes.get("xml:lang", "")
    if settings.labels is None:
        return Record(name, zones, (), date, language=language)
    return Record(name, zones, *_labels(story, int(name), date, settings.labels), language=language)


def _labels(story: "_Story", itemid: int, date: str, labels: LabelSettings) -> tuple[tuple[str, ...], str, str]:
    topics, part = story.codes[_TOPICS], _part(itemid, date, labels.train, labels.test)
    if labels.version == "2":
        part = part if topics and story.codes[_COUNTRIES] else "unused"
        topics = [code for topic in topics for code in _with_ancestors(topic)]
    return tuple(dict.fromkeys(topics)), date, part


class _Range(NamedTuple):
    """A range of stories by first and last date, or first and last itemid."""

    first: str | int
    last: str | int

    def holds(self, itemid: int, date: str) -> bool:
        value = itemid if isinstance(self.first, int) else date
        return self.first <= value <= self.last  # type: ignore[operator]  # both are dates, or both itemids


@lru_cache(maxsize=8)
def span_of(text: str) -> _Range:
    """Parse a range of stories, such as "2286 to 26150"; raise TextcatError if the text is not a range."""
    match = _SPAN.fullmatch(text)
    if not match:
        raise TextcatError(f"{text!r} is not a range of stories: write '1996-08-26 to 1996-09-01' or '2286 to 26150'.")
    first_date, last_date, first_id, last_id = match.groups()
    return _Range(first_date, last_date) if first_date else _Range(int(first_id), int(last_id))


def _part(itemid: int, date: str, train: str, test: str) -> str:
    if not (train or test):
        return ""
    parts = (part for part, text in (("train", train), ("test", test)) if text and span_of(text).holds(itemid, date))
    return next(parts, "unused")


def _with_ancestors(topic: str) -> list[str]:
    """Return a topic and all topics above it in the hierarchy, such as C1511, C151, C15, CCAT, or GSPO, GCAT."""
    chain = [topic]
    while chain[-1][1:] != "CAT":
        code = chain[-1]
        chain.append(code[:-1] if code[1:].isdigit() and len(code) > 3 else f"{code[0]}CAT")
    return chain


class _Story:
    """Gather the parts of a story; the XML parser calls the methods."""

    def __init__(self) -> None:
        self.root = ""
        self.attributes: dict[str, str] = {}
        self.texts: dict[str, list[str]] = defaultdict(list)
        self.codes: dict[str, list[str]] = defaultdict(list)
        self._class = ""  # class of the codes that follow
        self._pieces: list[str] = []

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "code":
            if attributes.get("code"):
                self.codes[self._class].append(attributes["code"])
        elif tag == "codes":
            self._class = attributes.get("class", "")
        elif tag in _ZONES:
            self._pieces.clear()
        elif not self.root:
            self.root, self.attributes = tag, attributes

    def characters(self, text: str) -> None:
        self._pieces.append(text)

    def end(self, tag: str) -> None:
        if tag in _ZONES:
            text = "".join(self._pieces).strip()
            if text:
                self.texts[tag].append(text)

    def entity(self, name: str, *declaration: object) -> None:
        # No story declares entities, and nested entities could grow without bound.
        raise _no_story(f"it declares the entity {name!r}")


def _no_story(fault: object, remedy: str = "") -> UnreadableError:
    return UnreadableError(f"is not a story of RCV1 ({fault}): correct the file or get it again{remedy}")


def _story(data: bytes, encoding: str) -> _Story:
    from xml.parsers import expat

    story = _Story()
    try:
        parser = expat.ParserCreate(encoding or None)
        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler = story.start, story.end
        parser.CharacterDataHandler, parser.EntityDeclHandler = story.characters, story.entity
        parser.Parse(data, True)
    except (expat.ExpatError, LookupError, ValueError) as error:  # the last two: an encoding that Python does not know
        raise _no_story(error, ", or name its encoding with --encoding") from None
    return story


def _attribute(story: _Story, name: str, form: str) -> str:
    if story.root != "newsitem":
        raise _no_story("it has no newsitem")
    if not re.fullmatch(form, story.attributes.get(name, "")):
        raise _no_story(f"its newsitem has the {name} {story.attributes.get(name, '')!r}")
    return story.attributes[name]


def _spans(block: Block, _: InputSettings) -> list[RecordSpan]:
    return [RecordSpan(block.position, block.offset, block.data)]


FORMAT = RecordFormat(_spans, by_record(_content))
