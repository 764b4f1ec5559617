"""Read NewsML 1.2: a `<NewsItem>` is a document."""

from collections.abc import Iterator
from typing import Any

from textcat.reading.formats.news import NewsItem, Subject, news_content, subject_of
from textcat.reading.formats.nitf import nitf_language, nitf_texts
from textcat.reading.formats.xml_items import (
    Opening,
    attribute,
    child,
    item_format,
    language_of,
    line_of,
    lines_of,
    outermost,
)
from textcat.reading.input_settings import InputSettings
from textcat.reading.records import Record

_SUBJECTS = ("Subject", "SubjectMatter", "SubjectDetail", "SubjectQualifier")
_NO_TEXT = frozenset(("Photo", "Graphic", "Video", "Audio", "ComplexData"))


def _content(item: Any, opening: Opening, settings: InputSettings) -> Record:
    named, managed = child(item, "Identification", "NewsIdentifier"), child(item, "NewsManagement")
    parts = [line_of(child(named, name)) for name in ("ProviderId", "DateId", "NewsItemId")]
    texts, language = _texts(item)
    marked = {"title": _first_line(item, "HeadLine"), "slugline": _first_line(item, "SlugLine")}
    if not marked["slugline"]:
        marked["slugline"] = line_of(child(item, "Identification", "NameLabel"))
    dates = [line_of(child(managed, name)) for name in ("ThisRevisionCreated", "FirstCreated")]
    status, change = (
        attribute(child(managed, "Status"), "FormalName"),
        child(managed, "StatusWillChange", "DateAndTime"),
    )
    is_embargo = status.lower() == "embargoed" and change is not None
    declared = next(item.iter("{*}Language"), None)
    said = NewsItem(
        f"urn:newsml:{':'.join(parts)}" if all(parts) else line_of(child(named, "PublicIdentifier")),
        texts | {zone: text for zone, text in marked.items() if text},
        next(filter(None, dates), "") or parts[1],
        attribute(declared, "FormalName") or language or language_of(item) or opening.language,
        list(_subjects(item)) if settings.labels is not None or settings.fields else (),
        line_of(child(named, "RevisionId")),
        status,
        line_of(change) if is_embargo else None,
    )
    return news_content(said, settings)


def _first_line(item: Any, name: str) -> str:
    return next(filter(None, map(line_of, outermost(item, name))), "")


def _texts(item: Any) -> tuple[dict[str, str], str]:
    """Return the texts, by zone, of the first content that has any, and its language."""
    for content in _contents(item):
        data = child(content, "DataContent")
        if data is None:
            continue
        nitf = next(data.iter("{*}nitf"), None)
        page = child(data, "html", "body")
        texts = nitf_texts(nitf) if nitf is not None else {"body": lines_of(data if page is None else page)}
        if any(texts.values()):
            return texts, "" if nitf is None else nitf_language(nitf)
    return {}, ""


def _contents(item: Any) -> Iterator[Any]:
    """Yield the `<ContentItem>` elements of an item that may be texts, not those inside another one."""
    from lxml import etree

    walk = etree.iterwalk(item, events=("start",), tag="{*}ContentItem")
    for _, content in walk:
        if attribute(child(content, "MediaType"), "FormalName") not in _NO_TEXT:
            walk.skip_subtree()
            yield content


def _subjects(item: Any) -> Iterator[Subject]:
    for name in _SUBJECTS:
        for subject in item.iter(f"{{*}}{name}"):
            code = attribute(subject, "FormalName")
            yield subject_of(code, "", "subj" if code.isdecimal() else attribute(subject, "Vocabulary"))


FORMAT = item_format(_content)
