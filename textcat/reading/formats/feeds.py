"""Read feeds: RSS 1 and 2, in which an `<item>` is a document, and Atom, in which it is an `<entry>`."""

from collections.abc import Iterator
from typing import Any

from textcat.reading.formats.html import extract_page
from textcat.reading.formats.news import NewsItem, Subject, is_own, news_content, subject_of
from textcat.reading.formats.xml_items import (
    Opening,
    attribute,
    child,
    children,
    item_format,
    language_of,
    line_of,
    lines_of,
)
from textcat.reading.input_settings import InputSettings
from textcat.reading.records import Record

_ABOUT = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}about"


def _of_rss(item: Any, opening: Opening, settings: InputSettings) -> Record:
    texts = {
        "title": _without_markup(line_of(child(item, "title"))),
        "abstract": _page_text(child(item, "description")),
        "body": _page_text(child(item, "encoded")),
    }
    categories = [
        subject_of(line_of(category), "", _scheme(category, "domain")) for category in children(item, "category")
    ]
    categories += [subject_of(line_of(subject)) for subject in children(item, "subject")]
    date = line_of(child(item, "pubDate")) or line_of(child(item, "date"))
    name = line_of(child(item, "guid")) or attribute(item, _ABOUT) or line_of(child(item, "link"))
    language = line_of(child(item, "language")) or language_of(item) or opening.language
    return news_content(NewsItem(name, texts, date, language, categories), settings)


def _of_atom(entry: Any, opening: Opening, settings: InputSettings) -> Record:
    texts = {
        "title": " ".join(_text_construct(child(entry, "title")).split()),
        "abstract": _text_construct(child(entry, "summary")),
        "body": _text_construct(child(entry, "content")),
    }
    updated = line_of(child(entry, "updated"))
    date = line_of(child(entry, "published")) or updated
    language = language_of(child(entry, "content"), entry) or opening.language
    item = NewsItem(line_of(child(entry, "id")), texts, date, language, list(_categories(entry)), version_date=updated)
    return news_content(item, settings)


def _categories(entry: Any) -> Iterator[Subject]:
    for category in children(entry, "category"):
        name = attribute(category, "label")
        yield subject_of(attribute(category, "term") or name, name, _scheme(category, "scheme"))


def _scheme(category: Any, name: str) -> str:
    """Return the scheme of a category; "" if textcat wrote the category, and signed it in place of a scheme."""
    scheme = attribute(category, name)
    return "" if is_own(scheme) else scheme


def _text_construct(element: Any) -> str:
    """Return the text of an element of Atom, whose attribute type tells how it is written."""
    kind = attribute(element, "type").lower()
    if kind == "xhtml" or (element is not None and len(element)):
        return lines_of(element)
    if kind in ("html", "text/html"):
        return _page_text(element)
    return "" if element is None or kind.startswith(("image/", "video/", "audio/")) else (element.text or "").strip()


def _page_text(element: Any) -> str:
    if element is None:
        return ""
    return lines_of(element) if len(element) else _without_markup(element.text or "")


def _without_markup(text: str) -> str:
    return extract_page(text).body if "<" in text or "&" in text else text.strip()


RSS = item_format(_of_rss)
ATOM = item_format(_of_atom)
