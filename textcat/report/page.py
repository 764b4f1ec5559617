"""The tables and data of a report → one HTML file that needs nothing else, and in which no text runs as a script."""

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")  # that no HTML or UTF-8 has


def report_page(title: str, sections: Sequence[tuple[str, str, str]], data: Mapping[str, Any]) -> str:
    """Return the file: sections of an id, a heading and HTML, and what the script draws from.

    The policy in its head allows only the script and the style sheet with the given hashes: whatever a document's text
    or a topic's name contains, the browser runs none of it and sends no requests.
    """
    script, style = ((_FOLDER / f"report.{kind}").read_text(encoding="utf-8") for kind in ("js", "css"))
    policy = (
        f"default-src 'none'; script-src '{content_hash(script)}'; style-src '{content_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    links = "".join(f'<li><a href="#{name}">{html_text(heading)}</a></li>' for name, heading, _ in sections)
    body = "".join(
        f'<section id="{name}" aria-labelledby="{name}-heading"><h2 id="{name}-heading">{html_text(heading)}</h2>'
        f"{content}</section>\n"
        for name, heading, content in sections
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">\n'
        f"<title>{html_text(title)}</title>\n<style>{style}</style></head>\n"
        f'<body><a class="skip" href="#main">Skip to the report</a><header><h1>{html_text(title)}</h1>'
        f'<nav aria-label="Sections"><ul>{links}</ul></nav></header>\n<main id="main" tabindex="-1">{body}'
        "<noscript><p>Curves, documents and the page of each topic need JavaScript; the tables do not.</p></noscript>"
        f'</main>\n<script type="application/json" id="data">{_json(data)}</script>\n<script>{script}</script>\n'
        "</body></html>\n"
    )


def content_hash(text: str) -> str:
    """Return the hash by which a page's policy allows a script or a style sheet."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _json(data: Mapping[str, Any]) -> str:
    """Return JSON that can neither end its HTML element nor begin a comment there."""
    written = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _CONTROLS.sub("\ufffd", written).replace("<", "\\u003c")


def html_text(value: Any) -> str:
    """Return a text escaped for HTML."""
    return html.escape(_CONTROLS.sub("\ufffd", str(value)))


def html_table(
    name: str, caption: str, titles: Sequence[str], rows: Sequence[Sequence[Any]], *, hint: Mapping[str, str] = {}
) -> str:
    """Return a table; the first cell of each row is its header, as HTML, and numbers are aligned right."""
    head = "".join(
        f'<th scope="col"{_title(hint.get(title))}>{html_text(title)}</th>' if title else "<td></td>"
        for title in titles
    )
    lines = "".join(
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{_cell(cell)}</td>" for cell in cells)}</tr>\n'
        for first, *cells in rows
    )
    return (
        f'<div class="scroll" role="region" aria-label="{html_text(caption)}" tabindex="0"><table id="{name}">'
        f"<caption>{html_text(caption)}</caption><thead><tr>{head}</tr></thead>\n<tbody>{lines}</tbody></table></div>"
    )


def _title(text: str | None) -> str:
    return f' title="{html_text(text)}"' if text else ""


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else html_text(value)
