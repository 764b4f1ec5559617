"""Read JSON Feed (https://jsonfeed.org/version/1.1), the JSON of web feeds: an item of the feed is a document."""

import re
from typing import Any

from textcat.reading.formats.html import extract_page
from textcat.reading.formats.news import NewsItem, news_content, subject_of
from textcat.reading.formats.ninjs import item_format
from textcat.reading.input_settings import InputSettings
from textcat.reading.records import Record

_VERSION = re.compile(rb'"version"\s*:\s*"https?:\\?/\\?/(?:www\.)?jsonfeed\.org')


def is_json_feed(head: bytes) -> bool:
    """Return whether the first bytes of JSON are those of a JSON Feed."""
    return bool(_VERSION.search(head))


def _content(fields: dict[str, Any], settings: InputSettings) -> Record:
    texts = {name: value for name, value in fields.items() if isinstance(value, str)}
    body = texts.get("content_text", "").strip() or _page_text(texts.get("content_html", ""))
    tags = fields.get("tags")
    name = fields.get("id")
    item = NewsItem(
        str(name) if isinstance(name, str | int) and name != "" else texts.get("url", ""),
        {"title": texts.get("title", ""), "abstract": texts.get("summary", ""), "body": body},
        texts.get("date_published", "") or texts.get("date_modified", ""),
        texts.get("language", ""),
        [subject_of(tag) for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else (),
        version_date=texts.get("date_modified", ""),
    )
    return news_content(item, settings)


def _page_text(html: str) -> str:
    return extract_page(html).body if html else ""


FORMAT = item_format(_content)
