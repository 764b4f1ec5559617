"""Extract the main text of a web page: without navigation, notices, comments and lists of other pages."""

import logging
import re
from functools import cache
from importlib.util import find_spec
from typing import Any

from textcat.base.errors import TextcatError, install_hint

_LONGEST = 2 << 20  # maximum characters; the extractor's time may grow faster than the page
_MOST_ATTRIBUTES = 500  # maximum attributes of a tag: the time of building a tree grows with their square or cube
# bytes up to which the number of attributes is not checked: such a page takes at most a twentieth of a second
_SHORT = 1 << 15
_START = 50  # first characters in which a page declares that it is HTML
_FEWEST = 2  # top-level elements of pages that do not declare it
# The extractor fails on control characters, U+FFFE and U+FFFF.
_CONTROLS = bytes(sorted({*range(32)} - {*b"\t\n\r"}))
_NO_CHARACTERS = (b"\xef\xbf\xbe", b"\xef\xbf\xbf")
_CLOSED_ROOT = re.compile(rb"<html[^<>]*/>", re.IGNORECASE)
_HEAD = 4096  # number of first bytes in which it is sought
_DATA = frozenset(("application/ld+json", "application/settings+json"))  # types of scripts that the extractor reads


def check_extractor() -> None:
    """Raise a TextcatError if the package that finds main texts is not installed."""
    if find_spec("trafilatura") is None:
        raise TextcatError(f"--main-text needs a package that is not installed: run `{install_hint('web')}`.")


def page_tree(text: str) -> Any:
    """Parse a page; return the root of its tree without scripts, styles and drawings, or None if no tree can be made.

    None is also returned for a page of more than 2 million characters, or with a tag of more than 500 attributes.
    """
    if len(text) > _LONGEST:
        return None
    try:
        tree = _parsed(text.encode("utf-8", "replace"))
    except Exception:  # lxml raises several types of exceptions for input that is not a page
        return None
    is_page = "html" in text[:_START].lower() or len(tree) >= _FEWEST
    return tree if is_page else None


def _parsed(data: bytes) -> Any:
    from lxml import etree, html

    data = data.translate(None, _CONTROLS)
    for character in _NO_CHARACTERS:
        data = data.replace(character, b"")
    if root := _CLOSED_ROOT.search(data, 0, _HEAD):  # the parser would end the page at this character
        data = data[: root.end() - 2] + data[root.end() - 1 :]
    if len(data) > _SHORT and _most_attributes(data) > _MOST_ATTRIBUTES:
        raise ValueError
    tree = html.fromstring(data, parser=_parser())
    for script in tree.iter("script"):
        if script.get("type") not in _DATA:
            script.tag = "style"
    etree.strip_elements(tree, "style", "svg", with_tail=False)
    return tree


class _Attributes:
    """Find the largest number of attributes of any tag of a page; lxml's parser calls the methods."""

    def __init__(self) -> None:
        self._most = 0

    def start(self, _: str, attributes: dict[str, str]) -> None:
        self._most = max(self._most, len(attributes))

    def close(self) -> int:
        return self._most


def _most_attributes(data: bytes) -> int:
    from lxml import etree

    most: int = etree.fromstring(data, etree.HTMLParser(target=_Attributes(), encoding="utf-8", huge_tree=True))
    return most


@cache
def _parser() -> Any:
    """Return a parser like the extractor's, but with a single class for all elements, which saves calls."""
    from lxml import etree, html

    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, collect_ids=False)
    parser.set_element_class_lookup(etree.ElementDefaultClassLookup(element=html.HtmlElement))
    return parser


def main_text(tree: Any, with_author: bool = False) -> tuple[str, str]:
    """Extract the main text of a page, given its tree, and the author if `with_author`; "" where the page has none."""
    extractor, options = _extractor(with_author)
    try:
        extracted = extractor.bare_extraction(tree, options=options)
    except Exception:  # the library raises many types of exceptions for odd pages; the visible text is used instead
        return "", ""
    return ((extracted.text or "").strip(), (extracted.author or "").strip()) if extracted is not None else ("", "")


@cache
def _extractor(with_author: bool) -> tuple[Any, Any]:
    """Return trafilatura and the options of its extraction (cached, because making them takes a millisecond)."""
    check_extractor()
    import trafilatura
    from trafilatura.settings import Extractor

    for name in ("trafilatura", "htmldate"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # they warn of pages without text
    options = {"fast": True, "comments": False, "formatting": False, "with_metadata": with_author}
    return trafilatura, Extractor(output_format="python", **options)
