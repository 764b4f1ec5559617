"""Divide XML files between their items, such as the news items of a message, and parse each item separately.

The text before the first item is the header of all blocks: it declares the encoding and the namespaces. An item is
parsed without the file's declarations, so entities other than HTML's are an error.
"""

import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache, partial
from html.entities import name2codepoint
from typing import Any, NamedTuple, TypeAlias

from textcat.reading.faults import UnreadableError
from textcat.reading.formats.charsets import encoding_meant
from textcat.reading.formats.documents import missing_module, tidy_lines
from textcat.reading.formats.html import extract_page, is_block, is_html, is_unseen
from textcat.reading.formats.news import left_out
from textcat.reading.input_settings import InputSettings
from textcat.reading.records import Block, Record, RecordFormat, RecordSpan

#: The tags of items by format; a file whose root is in `_ROOTS` has this format, too.
TAGS = {
    "newsml-g2": rb"newsItem|packageItem|conceptItem|knowledgeItem|planningItem|catalogItem",
    "nitf": rb"nitf",
    "newsml": rb"NewsItem",
    "rss": rb"item",
    "atom": rb"entry",
    "tei": rb"TEI|TEI.2",
}
_ROOTS = {"newsMessage": "newsml-g2", "NewsML": "newsml", "rss": "rss", "RDF": "rss", "feed": "atom"}
_ROOTS |= dict.fromkeys(("TEI.2", "teiCorpus", "teiCorpus.2"), "tei")
_ROOTS |= {"alto": "alto", "mets": "mets"}  # formats of which a file is one document, or lists documents
_NO_MARKUP = rb"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)"
_NAME = rb"(?:[\w.-]+:)?"
_REST_OF_TAG = rb"""(?:[^<>"']|"[^"<]*"|'[^'<]*')*"""
_TOKENS = {
    form: re.compile(rb"%s|<(/?)%s(?:%s)(?=[\s/>])" % (_NO_MARKUP, _NAME, tags), re.DOTALL)
    for form, tags in TAGS.items()
}
# After the name of an end tag. If it is not closed before the next tag, it is not an end tag, and the search stops.
_END_OF_TAG = re.compile(rb"[^<>]*>")
# A lookahead finds the name, so that it matches whole or not at all.
_TAG = re.compile(rb"<(/?)(?=([\w:.-]+))\2%s>" % _REST_OF_TAG)
_COMMENTS = re.compile(_NO_MARKUP, re.DOTALL)
_START = re.compile(rb"(?:%s|<[?!][^<>]*>)+|<%s([A-Za-z_][\w.-]*)(?=[\s/>])" % (_NO_MARKUP, _NAME), re.DOTALL)
_ENCODING = re.compile(rb"""\A\s*<\?xml\s[^<>]{0,200}?encoding\s*=\s*["']([\w.:-]{1,100})["']""")
_NAMESPACE = re.compile(rb"""\s(xmlns(?::[\w.-]+)?)\s*=\s*("[^"<]*"|'[^'<]*')""")
_LANGUAGE = re.compile(rb"""\sxml:lang\s*=\s*["']([\w-]{1,100})["']|<language>\s*([\w-]{1,100})\s*</language>""")
_WESTERN = frozenset(("ascii", "iso8859-1", "iso8859-15", "cp1252"))
_LARGER = frozenset(("big5hkscs", "cp874", "cp932", "cp949", "gb18030"))  # supersets of the declared encodings
_ENTITY = re.compile(rb"&([A-Za-z][A-Za-z0-9]*);")
_OF_XML = frozenset((b"amp", b"lt", b"gt", b"quot", b"apos"))
_PREFIX = re.compile(rb"[</\s]([\w.-]+):")
_FEW, _LONGEST_NAMESPACE = 16, 200  # maximum number of declarations repeated for each item; maximum bytes of one
_LONGEST_TAG = 1000  # bytes kept while a long item is skipped
_LONGEST_END = 200  # maximum bytes of an end tag
_TEI = b"http://www.tei-c.org/ns/"
_XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"


class Opening(NamedTuple):
    """The declarations at the start of an XML file that apply to all items: root, encoding, namespaces and language."""

    root: str  # name of the first element; "": the item is the root
    encoding: str  # "" if none is declared
    namespaces: Mapping[bytes, bytes]  # "xmlns" and those with prefixes, each with its declaration as an attribute
    language: str


def xml_format(head: bytes) -> tuple[str, str]:
    """Recognise an XML file by its start: return the format of its items and the name of its root, "" where unknown."""
    start = next((match for match in _START.finditer(head) if match[1]), None)
    root = start[1].decode() if start else ""
    form = next((form for form, tags in TAGS.items() if root.encode() in tags.split(b"|") and form != "rss"), "")
    form = form or _ROOTS.get(root, "")
    if not form and root not in ("", "newsitem", "html", "xml", "records"):
        form = "nitf" if re.search(rb"<nitf[\s>]", head) else ""  # inside of another element
    if form == "tei" and start is not None and not _is_tei(head, start.start(1)):
        form = ""
    return form, root


def _is_tei(head: bytes, name: int) -> bool:
    """Return whether the namespace of the element whose name is at a position is TEI's, or none is declared."""
    tag = _TAG.match(head, head.rindex(b"<", 0, name))
    declared = dict(_NAMESPACE.findall(tag[0])) if tag else {}
    prefix = tag[2].rpartition(b":")[0] if tag else b""
    uri = declared.get(b"xmlns:" + prefix if prefix else b"xmlns", b"")[1:-1]
    return not uri or uri.startswith(_TEI)


def first_item(form: str, data: bytes) -> int:
    """Return the position of the first item in the data of a file of this format, or -1 if there is none."""
    return next((match.start() for match in _TOKENS[form].finditer(data) if match[1] == b""), -1)


def declared_encoding(header: bytes) -> str:
    """Return the encoding that the start of a file, up to its first item, declares; "" if it declares none."""
    return _opening(header).encoding


def ends_without_root(header: bytes, rest: bytes) -> str:
    """Return the name of the root if the rest of a file, behind its last item, does not close the root; else ""."""
    root = _opening(header).root
    return root if root and not re.search(rb"</%s%s\s*>" % (_NAME, re.escape(root.encode())), rest) else ""


@lru_cache(maxsize=64)
def _opening(header: bytes) -> Opening:
    header = _COMMENTS.sub(b"", header)  # comments may contain tags
    tags = [match for match in _TAG.finditer(header) if not match[1]]
    declared = {name: value for tag in tags for name, value in _NAMESPACE.findall(tag[0])}
    languages = [(match[1] or match[2]).decode() for match in _LANGUAGE.finditer(header)]
    encoding = _ENCODING.match(header.removeprefix(b"\xef\xbb\xbf"))
    return Opening(
        tags[0][2].rpartition(b":")[2].decode("utf-8", "replace") if tags else "",
        encoding[1].decode() if encoding else "",
        {name: _declaration(name, value, number) for number, (name, value) in enumerate(declared.items())},
        languages[-1] if languages else "",
    )


def _declaration(name: bytes, value: bytes, number: int) -> bytes:
    """Return a namespace declaration as an attribute; a number replaces a long namespace, as namespaces are ignored."""
    return b" %s=%s" % (name, value) if len(value) <= _LONGEST_NAMESPACE else b" %s='urn:%d'" % (name, number)


def _declared(namespaces: Mapping[bytes, bytes], data: bytes) -> bytes:
    """Return the namespace declarations that an item needs: all if few, otherwise those whose prefixes it uses."""
    if len(namespaces) <= _FEW:
        return b"".join(namespaces.values())
    names = dict.fromkeys((b"xmlns", *(b"xmlns:" + prefix for prefix in _PREFIX.findall(data))))
    return b"".join(namespaces[name] for name in names if name in namespaces)


def _items(form: str, data: bytes) -> Iterator[tuple[int, int, bool]]:
    """Yield the start and end of each item, and whether it is whole; without an end tag, it ends at the next item."""
    start = -1
    for token in _TOKENS[form].finditer(data):
        if token[1] is None:
            continue
        if token[1]:
            end = _END_OF_TAG.match(data, token.end())
            if start >= 0 and end:
                yield start, end.end(), True
                start = -1
            continue
        if start >= 0:
            yield start, token.start(), True
        start, tag = token.start(), _TAG.match(data, token.start())
        if tag and tag[0].endswith(b"/>"):
            yield start, tag.end(), True
            start = -1
    if start >= 0:
        yield start, len(data), False


class _ItemCutter:
    """Cut an XML file into blocks that end where an item ends."""

    def __init__(self, form: str) -> None:
        self._form, self._inside = form, False  # whether the start of a skipped item was passed
        self._cut = 0, 0  # the length returned last, and its number of items

    def cut(self, data: bytes) -> int:
        end = n = 0
        for _, end_of_item, is_whole in _items(self._form, data):
            if is_whole:
                end, n = end_of_item, n + 1
        self._cut = end, n
        return end

    def count(self, data: bytes) -> int:
        (length, n), self._cut = self._cut, (0, 0)
        if length and length == len(data):  # the part that was cut off
            return n
        return sum(1 for match in _TOKENS[self._form].finditer(data) if match[1] == b"")

    def skip(self, data: bytes) -> tuple[int, bool]:
        self._cut = 0, 0
        tokens = (match for match in _TOKENS[self._form].finditer(data) if match[1] is not None)
        for token in tokens:
            if not token[1] and not self._inside:
                self._inside = True
                continue
            closed = _END_OF_TAG.match(data, token.end())
            if self._inside and (closed or not token[1]):
                self._inside = False
                return closed.end() if closed and token[1] else token.start(), True
        return max(len(data) - _LONGEST_TAG, 0), False


def _spans(block: Block, _: InputSettings) -> Iterator[RecordSpan]:
    position, data = block.position, block.data
    for start, end, _is_whole in _items(block.format, data):
        yield RecordSpan(position, block.offset + start, data[start:end])
        position += 1
    if position == block.position and not block.header and block.offset == 0:
        yield RecordSpan(position, 0, data)  # a file without items


# A function of an item and the declarations of its file, which returns the content of the item.
_Content: TypeAlias = "Callable[[Any, Opening, InputSettings], Record]"


def item_format(content: _Content) -> RecordFormat:
    """Return a format of XML files with many items, each of which is an element and becomes a document.

    `content` is called with the element of an item, and returns the content of its record.
    """
    return RecordFormat(_spans, partial(_parser, content), "Item {}", lambda _, form, __: _ItemCutter(form))


def _parser(content: _Content, block: Block, settings: InputSettings) -> Callable[[RecordSpan], Record]:
    opening, tags = _opening(block.header), TAGS[block.format]
    tag = re.compile(rb"<%s(%s)(?=[\s/>])" % (_NAME, tags))
    end = re.compile(rb"</%s(?:%s)\s*>\Z|/>\Z" % (_NAME, tags))

    def parse(span: RecordSpan) -> Record:
        start = tag.match(span.data)
        if not start:
            raise _no_items(span.data, block.format)
        if not end.search(span.data, max(len(span.data) - _LONGEST_END, 0)):
            raise UnreadableError(f"is cut off before </{start[1].decode()}>: check whether the file is complete")
        try:
            item = parse_item(span.data, opening, settings)
            return content(item, opening, settings)
        except RecursionError:
            raise UnreadableError("has elements that are nested too deeply: leave it out") from None

    return parse


def _no_items(data: bytes, form: str) -> UnreadableError:
    """Return the error for a file without items."""
    root = next((match[1].decode() for match in _START.finditer(data) if match[1]), "")
    names = " or ".join(f"<{tag.decode()}>" for tag in TAGS[form].split(b"|")[:2])
    closing = rb"</%s%s\s*>\s*\Z" % (_NAME, re.escape(root.encode()))
    if root and re.search(closing, _COMMENTS.sub(b"", data)):
        return left_out(f"has no {names}")
    return UnreadableError(f"has no whole {names}, so it is cut off or of another format: check the file")


def parse_item(data: bytes, opening: Opening, settings: InputSettings) -> Any:
    """Return the element of an item; raise UnreadableError if it is not well-formed."""
    if b"&" in data:
        data = _ENTITY.sub(_character, data)
    encoding = settings.encoding or _actual_encoding(opening.encoding, data)
    try:
        item = _tree(b"<_%s>%s</_>" % (_declared(opening.namespaces, data), data), encoding)
    except UnicodeError:
        raise UnreadableError("is in an encoding that it does not declare: name it with --encoding") from None
    if len(item) != 1:
        raise UnreadableError("has elements behind its end: check the file")
    return item[0]


def _actual_encoding(declared: str, data: bytes) -> str:
    """Return "utf-8" if the data are UTF-8 but declared as Latin-1 or the like; otherwise the declared encoding.

    Accented text in a Western encoding is never valid UTF-8 by chance. A declared encoding for which browsers use a
    larger one, such as GB18030 for GB2312, is replaced by the larger one.
    """
    if not declared or data.isascii():
        return declared or "utf-8"
    with suppress(LookupError, UnicodeError):
        if codecs.lookup(declared).name in _WESTERN:
            data.decode()
            return "utf-8"
    meant = encoding_meant(declared)
    return meant if meant in _LARGER else declared


def parse_file(data: bytes, settings: InputSettings) -> tuple[Any, Opening]:
    """Parse a file that is one document; return its root, and what the file declares before the root.

    Entities that the file itself declares are not expanded, as in items. UnreadableError is raised if it is malformed.
    """
    start = next((match for match in _START.finditer(data) if match[1]), None)
    if start is None:
        raise UnreadableError("has no element, so it is empty, cut off or no XML: check the file")
    begin = data.rindex(b"<", 0, start.start(1))
    opening = _opening.__wrapped__(data[:begin])._replace(root="")  # skip a long comment
    return parse_item(data[begin:], opening, settings), opening


def _character(match: "re.Match[bytes]") -> bytes:
    code = None if match[1] in _OF_XML else name2codepoint.get(match[1].decode())
    return match[0] if code is None else b"&#%d;" % code


def _tree(data: bytes, encoding: str) -> Any:
    try:
        from lxml import etree
    except ImportError as error:
        raise missing_module(error) from None
    try:
        return etree.fromstring(data, _xml_parser(encoding.lower()))
    except LookupError:
        with suppress(LookupError):  # by an alias
            if (name := encoding_meant(encoding) or codecs.lookup(encoding).name) != encoding:
                return _tree(data, name)
        raise UnreadableError(f"is in the encoding {encoding!r}, which is unknown: name it with --encoding") from None
    except (etree.LxmlError, ValueError) as error:
        text = re.sub(r", line \d+, column \d+ \(<string>.*", "", " ".join(str(error).split()))
        if "ncoding" in text or "UTF-8" in text or "nput is not proper" in text:
            raise UnreadableError(f"is not {encoding} ({text:.80}): name its encoding with --encoding") from None
        raise UnreadableError(f"is not well-formed XML ({text:.100}): correct it, or leave it out") from None


@lru_cache(maxsize=16)
def _xml_parser(encoding: str) -> Any:
    from lxml import etree

    off = {
        "resolve_entities": False,
        "no_network": True,
        "huge_tree": False,
        "load_dtd": False,
        "dtd_validation": False,
    }
    return etree.XMLParser(encoding=encoding, remove_comments=True, remove_pis=True, **off)


# --- parts of elements -----------------------------------------------------------------------------------------------


def child(element: Any, *path: str) -> Any:
    """Return the first child of an element with a given name, in any namespace; None if there is no such child.

    Several names are a path: the first child of that child, and so on. If the element is None, None is returned.
    """
    for name in path:
        if element is None:
            return None
        element = next(element.iterchildren(f"{{*}}{name}"), None)
    return element


def children(element: Any, name: str) -> Iterable[Any]:
    """Return all children of an element with a given name, in any namespace; none if the element is None."""
    return () if element is None else element.iterchildren(f"{{*}}{name}")


def outermost(element: Any, *names: str) -> Iterator[Any]:
    """Yield the descendants of an element with one of the names, except those inside another descendant of this kind.

    Namespaces are ignored.
    """
    from lxml import etree

    walk = etree.iterwalk(element, events=("start",), tag=[f"{{*}}{name}" for name in names])
    for _, descendant in walk:
        walk.skip_subtree()
        yield descendant


def attribute(element: Any, *names: str) -> str:
    """Return the value of the first of the named attributes that an element has; "" if it has none of them."""
    if element is not None:
        for name in names:
            if value := element.get(name):
                return str(value).strip()
    return ""


def language_of(*elements: Any) -> str:
    """Return the language of the first of the elements that declares one; "" if none does."""
    return next(filter(None, (attribute(element, _XML_LANG) for element in elements)), "")


def line_of(element: Any) -> str:
    """Return the text of an element as one line; "" if the element is None."""
    if element is None:
        return ""
    text = element.text or "" if not len(element) else "".join(element.itertext())
    return " ".join(text.split())


def lines_of(element: Any) -> str:
    """Return the visible text of an element, with a line for each paragraph or similar block; "" for None.

    Text that is itself HTML, as in CDATA, is read as HTML.
    """
    if element is None:
        return ""
    if not len(element) and is_html(element.text or ""):
        return extract_page(element.text).body
    pieces: list[str] = []
    _gather(element, pieces)
    return tidy_lines("".join(pieces))


@lru_cache(maxsize=4096)
def _kind(tag: str) -> int:
    name = tag.rpartition("}")[2]
    return 2 if is_unseen(name) else 1 if is_block(name) else 0


def _gather(element: Any, pieces: list[str]) -> None:
    if element.text:
        pieces.append(element.text.replace("\n", " "))
    for part in element:
        kind = _kind(part.tag)
        if kind < 2:
            if kind:
                pieces.append("\n")
            _gather(part, pieces)
            if kind:
                pieces.append("\n")
        if part.tail:
            pieces.append(part.tail.replace("\n", " "))
