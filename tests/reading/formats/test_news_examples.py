"""The IPTC's examples of news, read a second time in another way: by ElementTree, json and html.parser.

The second reading knows where each standard keeps things, and nothing of the package: it searches the whole item for a
name, and joins all words that it finds there.
"""

import json
import os
from datetime import datetime
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from cases import every
from read_sources import read

from textcat.reading import Record

NEWS = Path(os.environ.get("TEXTCAT_NEWS") or "/nowhere")
NINJS = sorted(NEWS.glob("ninjs/examples/**/*.json"))
XML = sorted(NEWS.glob("newsml-g2/examples/*.xml"))
pytestmark = pytest.mark.skipif(not XML, reason="data: the IPTC's examples are absent, TEXTCAT_NEWS is not set to them")

# The files that are no news, with a word of the reason that is told.
NO_NEWS = {
    "20231016-event-timeline-sample.json": "event",
    "simpleEvent.json": "event",
    "008_event.json": "event",
    "008_extension.json": "no text",
    "extension-schema.json": "JSON Schema",
    "LISTING_10": "concept item",
    "LISTING_11": "concept item",
    "LISTING_12": "knowledge item",
    "LISTING_13": "catalog item",
    "LISTING_14": "concept item",
    "LISTING_15": "knowledge item",
    "LISTING_17": "planning item",
    "LISTING_18": "planning item",
    "LISTING_19": "planning item",
    "LISTING_20": "planning item",
    "LISTING_23": "package",
    "LISTING_24": "no text",
    "LISTING_28": "contentMeta",
    "LISTING_29": "no text",
    "LISTING_6": "package",
    "LISTING_7": "groupSet",
    "LISTING_8": "groupSet",
    "LISTING_9": "groupSet",
    "facet-example.xml": "no text",
    "facet-example-2.xml": "no text",
}


def reason_of(path):
    return next((why for name, why in NO_NEWS.items() if path.name in (name,) or path.name.startswith(f"{name}_")), "")


def words(text):
    return " ".join(text.split())


def when(text):
    return datetime.fromisoformat(text.strip().replace("Z", "+00:00")) if text.strip() else None


class Words(HTMLParser):
    def __init__(self):
        super().__init__()
        self.parts = []

    def handle_data(self, data):
        self.parts.append(data)

    def handle_starttag(self, tag, attributes):
        self.parts.append(" " if tag in ("p", "br", "div", "section", "blockquote", "h1", "html", "body") else "")

    handle_endtag = lambda self, tag: self.handle_starttag(tag, ())  # noqa: E731


def html_words(text):
    parser = Words()
    parser.feed(text)
    return words("".join(parser.parts))


# --- XML --------------------------------------------------------------------------------------------------------------


def local(element):
    return element.tag.rpartition("}")[2]


def first(element, *names):
    """The first descendant that has one of the names, in the order of the names."""
    for name in names:
        for found in element.iter():
            if local(found) == name:
                return found
    return None


def text_words(element):
    if element is None:
        return ""
    pieces = []

    def walk(one):
        inline = local(one) in ("em", "strong", "a", "b", "i", "span", "chron", "location", "org", "person")
        pieces.append("" if inline else " ")
        pieces.append(one.text or "")
        for part in one:
            walk(part)
            pieces.append(part.tail or "")
        pieces.append("" if inline else " ")

    walk(element)
    return words("".join(pieces))


def second_reading_of_xml(path):
    """One of the examples declares Latin-1 and is UTF-8: it has "BÃ¼low" if its declaration is believed."""
    data = path.read_bytes()
    root = ElementTree.fromstring(data.replace(b'"ISO-8859-1"', b'"UTF-8"') if "LISTING_5_" in path.name else data)
    item = root if local(root) == "newsItem" else first(root, "nitf")
    meta = first(item, "contentMeta")
    about = first(item, "itemMeta")
    subjects = []
    for subject in meta if meta is not None else ():
        if local(subject) == "subject":
            code = subject.get("qcode") or subject.get("uri") or subject.get("literal")
            subjects.append(code or text_words(next((e for e in subject if local(e) == "name"), None)))
    nitf, inline = first(item, "nitf"), first(item, "inlineXML")
    body = first(item, "body.content") if nitf is not None else inline
    headline = first(meta, "headline") if meta is not None else first(item, "hl1")
    abstract = next((e for e in meta or () if local(e) == "description"), None) if meta is not None else None
    abstract = abstract if abstract is not None else first(item, "abstract")
    date = first(about, "versionCreated") if about is not None else None
    language = next((e for e in meta or () if local(e) == "language"), None) if meta is not None else None
    lang = "{http://www.w3.org/XML/1998/namespace}lang"
    return {
        "id": item.get("guid"),
        "title": text_words(headline),
        "slugline": text_words(first(meta, "slugline")) if meta is not None else "",
        "text": text_words(body) or text_words(abstract),
        "date": when(date.text) if date is not None else None,
        "language": language.get("tag") if language is not None else item.get(lang, ""),
        "subjects": subjects,
    }


@every("path", XML)
def test_an_example_of_newsml_g2_is_read_as_by_another_reader(path):
    found = read(str(path), fields=("*",))
    if reason := reason_of(path):
        assert not any(isinstance(item, Record) for item in found)
        assert reason in found[-1].reason
        return
    (record,) = found
    again = second_reading_of_xml(path)
    assert words(record.zones.get("title", "")) == again["title"]
    assert record.zones.get("slugline", "") == again["slugline"]
    assert words(record.zones.get("body", "")) == again["text"]
    assert (when(record.date), record.language) == (again["date"], again["language"])
    subjects = (record.fields or {}).get("subjects", [])
    qcodes = [f"{one['scheme']}:{one['code']}" if one["scheme"] else one["code"] or one["name"] for one in subjects]
    assert qcodes == list(dict.fromkeys(filter(None, again["subjects"])))
    if again["id"]:
        assert record.id == again["id"]


# --- ninjs ------------------------------------------------------------------------------------------------------------


def texts_of(fields, stem, plural):
    """All texts of a kind, each without markup."""
    texts = [value for name, value in fields.items() if name == stem or name.startswith(f"{stem}_")]
    texts += [entry["value"] for entry in fields.get(plural, [])]
    return [html_words(text) if "<" in text else words(text) for text in texts if isinstance(text, str)]


@every("path", NINJS)
def test_an_example_of_ninjs_is_read_as_by_another_reader(path):
    found = read(str(path), fields=("*",))
    if reason := reason_of(path):
        assert not any(isinstance(item, Record) for item in found)
        assert all(reason in item.reason for item in found)
        return
    (record,) = found
    fields = json.loads(path.read_text())
    assert record.id == fields["uri"]
    assert words(record.zones.get("title", "")) in [*texts_of(fields, "headline", "headlines"), ""]
    bodies = texts_of(fields, "body", "bodies") or texts_of(fields, "description", "descriptions")
    assert words(record.zones["body"]) in bodies
    assert bool(record.zones.get("title")) == bool(texts_of(fields, "headline", "headlines"))
    date = fields.get("versioncreated") or fields.get("versionCreated") or fields.get("contentcreated") or ""
    assert (when(record.date), record.language) == (when(date), fields.get("language", ""))
    names = [(one["name"], one.get("uri") or one.get("literal")) for one in fields.get("subjects", [])]
    subjects = [(one["name"], one["scheme"] + one["code"]) for one in (record.fields or {}).get("subjects", [])]
    assert subjects == names
