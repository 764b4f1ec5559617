"""Read NewsML-G2: a `<newsItem>`, alone or in a message; packages, concepts and plans are left out and reported."""

from collections.abc import Iterator
from typing import Any

from textcat.reading.formats.html import extract_page, is_html
from textcat.reading.formats.news import NewsItem, Subject, left_out, news_content, subject_of
from textcat.reading.formats.nitf import nitf_language, nitf_texts
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

_OTHERS = {
    "packageItem": "a package, whose items are elsewhere",
    "conceptItem": "a concept item, not a news item",
    "knowledgeItem": "a knowledge item, not a news item",
    "planningItem": "a planning item, not a news item",
    "catalogItem": "a catalog item, not a news item",
}


def _content(element: Any, opening: Opening, settings: InputSettings) -> Record:
    kind = element.tag.rpartition("}")[2]
    if kind in _OTHERS:
        raise left_out(f"is {_OTHERS[kind]}")
    about, meta, contents = (child(element, name) for name in ("itemMeta", "contentMeta", "contentSet"))
    texts, language = _inline(contents)
    marked = {
        "title": line_of(child(meta, "headline")),
        "slugline": line_of(child(meta, "slugline")),
        "abstract": lines_of(child(meta, "description")),
    }
    dates = [line_of(child(about, "versionCreated")), line_of(child(about, "firstCreated"))]
    embargo = child(about, "embargoed")
    item = NewsItem(
        attribute(element, "guid"),
        texts | {zone: text for zone, text in marked.items() if text},
        next(filter(None, dates), "") or line_of(child(meta, "contentCreated")),
        attribute(child(meta, "language"), "tag") or language or language_of(element) or opening.language,
        list(_subjects(meta)) if settings.labels is not None or settings.fields else (),
        attribute(element, "version"),
        attribute(child(about, "pubStatus"), "qcode", "uri"),
        None if embargo is None else line_of(embargo),
    )
    return news_content(item, settings)


def _subjects(meta: Any) -> Iterator[Subject]:
    for subject in children(meta, "subject"):
        code = attribute(subject, "qcode", "uri", "literal")
        yield subject_of(code, line_of(child(subject, "name")))


def _inline(contents: Any) -> tuple[dict[str, str], str]:
    """Return the texts, by zone, of the first content that has any, and its language."""
    for content in contents if contents is not None else ():
        kind = content.tag.rpartition("}")[2]
        texts: dict[str, str] = {}
        if kind == "inlineXML" and len(content):
            texts, language = _texts_of_xml(content)
        elif kind == "inlineData":
            texts, language = {"body": _text_of_data(content)}, language_of(content)
        if any(texts.values()):
            return texts, language
    return {}, ""


def _texts_of_xml(content: Any) -> tuple[dict[str, str], str]:
    inner = content[0]
    kind = inner.tag.rpartition("}")[2]
    if kind == "nitf":
        return nitf_texts(inner), nitf_language(inner) or language_of(content)
    if kind == "html":
        title, body = line_of(child(inner, "head", "title")), child(inner, "body")
        return {"title": title, "body": _without_margins(body)}, language_of(body, inner, content)
    return {"body": lines_of(content)}, language_of(inner, content)


def _without_margins(body: Any) -> str:
    """Return the text of a page without its header and footer, which repeat headline, subjects and rights."""
    whole = lines_of(body)
    for part in [*children(body, "header"), *children(body, "footer")]:
        part.clear(keep_tail=True)
    return lines_of(body) or whole


def _text_of_data(content: Any) -> str:
    kind, text = attribute(content, "contenttype").lower(), "".join(content.itertext())
    if content.get("encoding") or (kind and not kind.startswith(("text/", "application/xhtml"))):
        return ""  # a picture, for example
    return extract_page(text).body if "html" in kind or is_html(text) else text.strip()


FORMAT = item_format(_content)
