"""Convert a model's card, the file README.md in its folder, to text or to elements that a web page can show safely.

A card may be edited by hand, as on a hub, so the checksums of a model leave it out, and it affects nothing but what is
shown. It is never read through a symbolic link, which might lead to a private file. The card of a stranger's model is
untrusted text: only the Markdown elements below are shown, HTML is shown as text, and pictures as their descriptions.
"""

import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from textcat.base.disk import expanded, open_regular
from textcat.base.errors import TextcatError
from textcat.base.markup import html_text, printable_text
from textcat.model import CARD, MOST_CARD_BYTES

if TYPE_CHECKING:
    from markdown_it.tree import SyntaxTreeNode

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n.*?^---[ \t]*$\n?", re.DOTALL | re.MULTILINE)
_ADDRESS = re.compile(r"https?://[^\s\"'<>\\]+", re.IGNORECASE)
_SAME = frozenset(
    {"blockquote", "em", "hr", "strong", "table", "tbody", "td", "th", "thead", "tr"}
)  # elements with the same name in the Markdown parser and in HTML
_ELEMENTS = {"paragraph": "p", "bullet_list": "ul", "ordered_list": "ol", "list_item": "li"}
_ELEMENTS |= {name: name for name in _SAME}
_CODE = {"fence": "pre", "code_block": "pre", "code_inline": "code"}
_BREAKS = {"softbreak": " ", "hardbreak": "\n"}
_SHOWN = 20_000  # maximum number of nodes of a card: a page with more would be slow


class Element(NamedTuple):
    """An element of HTML: its tag, its address if it is a link, and its contents."""

    tag: str
    address: str
    children: "list[Element | str]"


def read_card(folder: Path) -> str | None:
    """Return the card of the model in a folder, as it is written; None if there is none.

    TextcatError is raised if the file cannot be read, is a link, or is too large for a card.
    """
    data = card_bytes(folder)
    return None if data is None else printable_text(data.decode("utf-8", "replace"))


def card_bytes(folder: Path) -> bytes | None:
    """Return the card in a model's folder as bytes, unchanged; None if there is none.

    TextcatError is raised as by `read_card`.
    """
    path = expanded(folder) / CARD
    try:
        with open_regular(path, follow_links=False) as file:
            data = file.read(MOST_CARD_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise TextcatError(f"The card {path} cannot be read ({error.strerror or error}): check it.") from error
    if len(data) > MOST_CARD_BYTES:
        raise TextcatError(f"{path} has more than {MOST_CARD_BYTES:,} bytes, too many for a card: shorten it.")
    return data


@lru_cache(maxsize=8)
def card_elements(text: str) -> tuple[Element | str, ...]:
    """Return a card as elements of HTML, without the YAML at its head.

    If the card has too many parts, a sentence that says so is returned instead.
    """
    from markdown_it import MarkdownIt
    from markdown_it.tree import SyntaxTreeNode

    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(_FRONT_MATTER.sub("", text, count=1))
    if sum(1 + len(token.children or ()) for token in tokens) > _SHOWN:
        return (Element("p", "", [f"This card has more than {_SHOWN:,} parts, and is not shown."]),)
    return tuple(_elements(SyntaxTreeNode(tokens)))


def card_html(text: str, level: int = 3) -> str:
    """Return a card as HTML whose highest headings have the given level, such as 3 for h3."""
    return "".join(_html(element, level) for element in card_elements(text))


def _elements(node: "SyntaxTreeNode") -> list[Element | str]:
    """Convert the children of a node of a Markdown tree to elements of HTML and texts."""
    inside: list[Element | str] = []
    for child in node.children:
        inside += _element(child)
    return inside


def _element(node: "SyntaxTreeNode") -> list[Element | str]:
    kind = node.type
    if kind == "paragraph" and node.hidden:  # a list item without blank lines around it
        return _elements(node)
    if kind in _ELEMENTS:
        return [Element(_ELEMENTS[kind], "", _elements(node))]
    if kind == "heading":
        return [Element(node.tag, "", _elements(node))]
    if kind in _CODE:
        return [Element(_CODE[kind], "", [node.content])]
    if kind == "link":
        address = str(node.attrs.get("href", ""))
        return [Element("a", address, _elements(node))] if _ADDRESS.fullmatch(address) else _elements(node)
    if kind == "image":
        return [node.content]
    if kind in _BREAKS:
        return [_BREAKS[kind]]
    return _elements(node) if node.children else [node.content]


def _html(element: Element | str, level: int) -> str:
    if isinstance(element, str):
        return html_text(element)
    tag, address, children = element
    if re.fullmatch("h[1-6]", tag):
        tag = f"h{min(int(tag[1]) + level - 1, 6)}"
    if tag == "hr":
        return "<hr>"
    link = f' href="{html_text(address)}" rel="noopener noreferrer nofollow"' if address else ""
    return f"<{tag}{link}>{''.join(_html(child, level) for child in children)}</{tag}>"


def plain(elements: Any) -> Any:
    """Convert elements to lists for JSON, ``[tag, address, [child, …]]``; texts stay as they are."""
    return [
        element if isinstance(element, str) else [element.tag, element.address, plain(element.children)]
        for element in elements
    ]
