"""Read HTML: the title and the visible text of a page, without its navigation; decode it as browsers do."""

import codecs
import re
from collections.abc import Mapping
from typing import Any

from textcat.base.surrogates import mark_surrogates
from textcat.reading.dates import iso_date
from textcat.reading.faults import UnreadableError
from textcat.reading.formats.charsets import decoded_as, encoding_meant
from textcat.reading.formats.documents import (
    ExtractedText,
    broken_file,
    document_format,
    missing_module,
    tidy_lines,
)
from textcat.reading.formats.main_text import main_text, page_tree
from textcat.reading.input_settings import InputSettings
from textcat.reading.records import RecordSpan

# Elements that begin and end a line; a table cell only ends a word.
_LINES = frozenset(
    re.findall(
        r"\w+",
        "address article aside blockquote body br caption center dd details dialog dir div dl dt fieldset figcaption "
        "figure footer form h1 h2 h3 h4 h5 h6 header hr legend li main menu ol p pre section summary table tbody "
        "textarea tfoot thead title tr ul",
    )
)
_CELLS = frozenset(("option", "td", "th"))
_HIDDEN = frozenset(
    re.findall(
        r"\w+",
        "applet audio button canvas datalist embed iframe map math nav noembed noframes noscript object script select "
        "style svg template video",
    )
)
_WHOLE = ("html", "body")  # elements that may be hidden until a script has run
_UNSHOWN = re.compile(r"(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)
_SPACES = re.compile(r"\s+")
# Names in `<meta>` for the date of publication.
_DATES = frozenset(
    ("article:published_time", "date", "datepublished", "dc.date", "dc.date.issued", "dcterms.date", "dcterms.issued")
)
_DATES |= {
    "dcterms.created",
    "og:article:published_time",
    "parsely-pub-date",
    "pubdate",
    "publish-date",
    "sailthru.date",
}
_HEAD = 4096  # number of first bytes in which a page declares its encoding
_DECLARED = re.compile(
    rb"""<meta\s[^>]{0,400}?charset\s*=\s*["']?\s*([\w.:-]+)|\A\s*<\?xml\s[^>]{0,200}?encoding\s*=\s*["']([\w.:-]+)""",
    re.IGNORECASE,
)
_OF_PAGES = re.compile(r"utf-8|cp125\d|cp8(?:66|74)|cp9(?:32|49)|iso8859-\d+|koi8-\w|mac-\w+|gb18030|big5\w*|euc_jp")
_CHARSET = re.compile(r"""charset\s*=\s*["']?([\w.:-]+)""", re.IGNORECASE)
_START_OF_HTML = re.compile(
    r"\s*<(?:!doctype html|html|body|article|section|p|div|h[1-6]|table|ul|ol|br)(?:\s[^<>]*)?/?>", re.IGNORECASE
)

# Elements of NITF that begin and end a line, and elements without text.
_LINES_OF_NITF = frozenset(
    ("block", "body.content", "bq", "credit", "dateline", "distributor", "fn", "hedline", "media")
)
_LINES_OF_NITF |= {"media-caption", "note", "nitf-table", "hl1", "hl2"}
_HIDDEN_IN_NITF = frozenset(("media-metadata", "media-object", "media-reference", "media-producer", "datasource"))


def is_html(text: str) -> bool:
    """Return whether a text looks like HTML: whether it begins with an element of HTML that contains text."""
    return bool(_START_OF_HTML.match(text))


def is_block(tag: str) -> bool:
    """Return whether a tag of HTML or NITF begins a block, whose text is separate from the words around it."""
    return tag in _LINES or tag in _CELLS or tag in _LINES_OF_NITF


def is_unseen(tag: str) -> bool:
    """Return whether a tag of HTML or NITF holds no visible text, as `<script>` does."""
    return tag in _HIDDEN or tag in _HIDDEN_IN_NITF


class _Page:
    """Gather the visible text of a page; lxml's parser calls the methods, so that no tree is built."""

    def __init__(self) -> None:
        self.date = self.language = ""
        self._title: list[str] = []
        self._shown: list[str] = []
        self._main: list[str] = []
        self._unseen, self._mains, self._pre = 0, 0, 0  # depth of such elements around the current position
        self._in_title = False

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "meta" and not self.date:
            self.date = _declared_date(attributes)
        if tag == "html" and not self.language:
            self.language = _declared_language(attributes)
        if self._unseen or tag in _HIDDEN or (tag not in _WHOLE and _is_hidden(attributes)):
            self._unseen += 1
            return
        if self._mains or tag == "main" or attributes.get("role", "").lower() == "main":
            self._mains += 1
        self._pre += tag in ("pre", "textarea")
        self._in_title = tag == "title" and not self._title
        self._break(tag)

    def end(self, tag: str) -> None:
        if self._unseen:
            self._unseen -= 1
            return
        self._in_title = False
        self._pre -= tag in ("pre", "textarea")
        self._break(tag)
        if self._mains:
            self._mains -= 1

    def data(self, text: str) -> None:
        if self._in_title:
            self._title += filter(None, (text,))
        elif not self._unseen:
            self._add(text if self._pre else _SPACES.sub(" ", text))

    def close(self) -> "_Page":
        return self

    def title(self) -> str:
        """Return the text of the first title that is not empty."""
        return "".join(self._title)

    def body(self) -> str:
        """Return the text of the page's main part, or the text of the whole page if the main part is empty."""
        return tidy_lines("".join(self._main)) or tidy_lines("".join(self._shown))

    def _break(self, tag: str) -> None:
        if tag in _LINES:
            self._add("\n")
        elif tag in _CELLS:
            self._add(" ")

    def _add(self, text: str) -> None:
        self._shown.append(text)
        if self._mains:
            self._main.append(text)


def _declared_date(meta: Mapping[str, str]) -> str:
    name = (meta.get("property") or meta.get("name") or meta.get("itemprop") or "").lower()
    return meta.get("content", "") if name in _DATES else ""


def _declared_language(html: Mapping[str, str]) -> str:
    return (html.get("lang") or html.get("xml:lang") or "").strip()


def _is_hidden(attributes: dict[str, str]) -> bool:
    if not attributes:
        return False
    hidden = attributes.get("hidden")
    return (hidden is not None and hidden.lower() != "until-found") or bool(
        _UNSHOWN.search(attributes.get("style") or "")
    )


def extract_page(text: str) -> ExtractedText:
    """Extract the title and all visible text of a page of HTML; files that the page refers to are not loaded."""
    try:
        from lxml import etree
    except ImportError as error:
        raise missing_module(error) from None
    try:
        # Without a tree, depth is unlimited, and time is proportional to the page's length.
        parser = etree.HTMLParser(target=_Page(), encoding="utf-8", huge_tree=True, no_network=True)
        page = etree.fromstring(text.encode("utf-8", "replace"), parser)
    except (etree.LxmlError, ValueError) as error:
        raise broken_file("HTML", error) from None
    return _extracted(page.title(), page.body(), page.date, page.language)


def _extracted(title: str, body: str, date: str, language: str) -> ExtractedText:
    return ExtractedText(title, body, (), iso_date(mark_surrogates(date)), mark_surrogates(language))


def extract_text(text: str, settings: InputSettings) -> ExtractedText:
    """Extract the title and body of a page of HTML; the body is the main text if the settings ask for it.

    The author is extracted only if the settings ask for it, because this takes half as long as the main text.
    """
    if not settings.main_text or (tree := page_tree(text)) is None:
        return extract_page(text)
    body, author = main_text(tree, not {"author", "*"}.isdisjoint(settings.fields))
    page = _described(tree, body) if body else extract_page(text)
    return page._replace(author=author)


def _described(tree: Any, body: str) -> ExtractedText:
    """Return the body with the title, date and language from the tree of a page, by the rules of `_Page`."""
    root = tree.getroottree()
    title = next(filter(None, ("".join(element.itertext()) for element in root.iter("title"))), "")
    date = next(filter(None, map(_declared_date, root.iter("meta"))), "")
    return _extracted(title, body, date, _declared_language(root.getroot()))


def decode_page(data: bytes, content_type: str, settings: InputSettings) -> str:
    """Decode a page or a plain text from the web, given the header Content-Type that its server sent.

    UnreadableError is raised if it has a NUL byte.
    """
    declared = _CHARSET.search(content_type)
    encoding = settings.encoding or (_encoding_of(declared[1]) if declared else "")
    if encoding and (settings.encoding or not data.startswith(codecs.BOM_UTF8)):
        return _checked(decoded_as(data, encoding), data)
    return _checked(decode_declared(data.removeprefix(codecs.BOM_UTF8)), data)


def _checked(text: str, data: bytes) -> str:
    if b"\0" in data and "\0" in text:  # cheaper than a search in the text of most pages
        raise UnreadableError(f"has a NUL byte (byte {data.find(0)}), so it is not HTML: leave it out")
    return text


def decode_declared(data: bytes) -> str:
    """Decode a page by the encoding that it declares, or else as UTF-8, or if it is not UTF-8, as Windows-1252."""
    declared = _DECLARED.search(data[:_HEAD])
    return decoded_as(data, _encoding_of((declared[1] or declared[2]).decode("latin-1")) if declared else "")


def _encoding_of(declared: str) -> str:
    name = encoding_meant(declared)
    # A declaration readable as ASCII up to here cannot be UTF-16.
    name = "utf-8" if name.startswith("utf-16") else name
    return name if _OF_PAGES.fullmatch(name) else ""


def _read(span: RecordSpan, settings: InputSettings) -> ExtractedText:
    if settings.encoding:
        text = span.text(settings)
    else:  # only a byte order mark precedes the text
        text = span.data.decode("utf-8", "replace") if span.offset else decode_declared(span.data)
    return extract_text(_checked(text, span.data), settings)


FORMAT = document_format(_read)
