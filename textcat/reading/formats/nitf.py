"""Read NITF 3, the news industry's text format: a `<nitf>` is a document."""

from collections.abc import Iterator
from typing import Any

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

_SUBJECT_NAMES = ("tobject.subject.detail", "tobject.subject.matter", "tobject.subject.type")


def nitf_texts(nitf: Any) -> dict[str, str]:
    """Return the texts of a `<nitf>` by zone; the byline, which names the author, is left out."""
    body, head = child(nitf, "body"), child(nitf, "head")
    top, content = child(body, "body.head"), child(body, "body.content")
    headline = child(top, "hedline")
    whole = [block for block in children(content, "block") if block.get("class") == "full_text"]
    return {
        "title": line_of(child(headline, "hl1")) or line_of(headline) or line_of(child(head, "title")),
        "slugline": next(filter(None, (_meta(head, name) for name in ("slugline", "slug"))), ""),
        "abstract": lines_of(child(top, "abstract")),
        # The New York Times repeats the first paragraphs in a block of their own.
        "body": lines_of(whole[0]) if whole else lines_of(content),
    }


def nitf_language(nitf: Any) -> str:
    """Return the language that a `<nitf>` declares, or ""."""
    return language_of(child(nitf, "body"), nitf) or _meta(child(nitf, "head"), "lang")


def _content(nitf: Any, opening: Opening, settings: InputSettings) -> Record:
    head = child(nitf, "head")
    about = child(head, "docdata")
    release = attribute(child(about, "date.release"), "norm")
    dates = [
        attribute(child(about, "date.issue"), "norm"),
        release,
        attribute(child(head, "pubdata"), "date.publication"),
    ]
    item = NewsItem(
        attribute(child(about, "doc-id"), "id-string"),
        nitf_texts(nitf),
        next(filter(None, dates), "") or attribute(child(nitf, "body", "body.head", "dateline", "story.date"), "norm"),
        nitf_language(nitf) or opening.language,
        list(_subjects(head, about)) if settings.labels is not None or settings.fields else (),
        attribute(child(about, "du-key"), "version"),
        attribute(about, "management-status"),
        release or None,
    )
    return news_content(item, settings)


def _meta(head: Any, name: str) -> str:
    return next((attribute(meta, "content") for meta in children(head, "meta") if meta.get("name") == name), "")


def _subjects(head: Any, about: Any) -> Iterator[Subject]:
    for subject in children(child(head, "tobject"), "tobject.subject"):
        code = attribute(subject, "tobject.subject.refnum")
        yield subject_of(code, attribute(subject, *_SUBJECT_NAMES), "subj" if code.isdecimal() else "")
    for classifier in children(child(about, "identified-content"), "classifier"):
        origin = attribute(classifier, "class")
        scheme = attribute(classifier, "type") or ("" if is_own(origin) else origin)
        name, code = line_of(classifier), attribute(classifier, "value", "idsrc")
        yield subject_of(code, name or code, scheme) if code else Subject(scheme, "", name)


FORMAT = item_format(_content)
