"""Write texts and tables as HTML.

A text in the HTML cannot end its element, run as a script, or have a character that UTF-8 cannot encode.
"""

import base64
import hashlib
import html
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

# characters that HTML or UTF-8 cannot contain
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


class Html(str):
    """A text that is HTML already, so that `html_text` does not escape it."""

    __slots__ = ()


def printable_text(text: str) -> str:
    """Return a text with U+FFFD in place of control characters and lone surrogates."""
    return _UNPRINTABLE.sub("\ufffd", text)


def html_text(value: Any) -> str:
    """Return a value as HTML: a text is escaped, a number is formatted, and None becomes a dash."""
    if isinstance(value, Html):
        return value
    if value is None:
        return "–"
    if isinstance(value, (int, float)):
        return f"{value:.3f}" if isinstance(value, float) else f"{value:,}"
    return html.escape(printable_text(str(value)))


def html_table(
    head: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    name: str = "",
    caption: str | None = None,
    hints: Mapping[str, str] = {},
) -> str:
    """Return an HTML table; `head` has the titles of its columns, and the first cell of each row is the row's header.

    `name` is the id of the table. `hints` has a text by column title, which is shown when the mouse is over the title.
    """
    titles = "".join(
        f'<th scope="col"{_attribute("title", hints.get(title, ""))}>{html_text(title)}</th>' if title else "<td></td>"
        for title in head
    )
    lines = "".join(
        f'<tr><th scope="row">{html_text(first)}</th>{"".join(f"<td>{html_text(cell)}</td>" for cell in cells)}</tr>\n'
        for first, *cells in rows
    )
    above = f"<caption>{html_text(caption)}</caption>" if caption is not None else ""
    return f"<table{_attribute('id', name)}>{above}<thead><tr>{titles}</tr></thead>\n<tbody>{lines}</tbody></table>"


def _attribute(name: str, value: str) -> str:
    return f' {name}="{html_text(value)}"' if value else ""


def page_head(title: str, style: str, script: str = "") -> str:
    """Return the beginning of an HTML page, up to the opening tag of its body.

    The security policy in the head allows only this style sheet and this script, and no request to any address.
    """
    scripts = f"script-src '{content_hash(script)}'; " if script else ""
    policy = f"default-src 'none'; {scripts}style-src '{content_hash(style)}'; base-uri 'none'; form-action 'none'"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">\n'
        f"<title>{html_text(title)}</title>\n<style>{style}</style></head>\n<body>"
    )


def content_hash(text: str) -> str:
    """Return the hash by which a page's Content-Security-Policy allows a script or style sheet."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
