"""Build the single HTML file of a report, which needs no other file, and in which no text can run as a script."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from textcat.base.markup import html_table, html_text, page_head, printable_text

_FOLDER = Path(__file__).parent
# The scripts of each kind of page.
_SCRIPTS = {
    "report": ("nodes.js", "plots.js", "report.js"),
    "many_topics": ("nodes.js", "many_topics.js"),
    "trends": ("nodes.js", "plots.js", "trends.js"),
}
_NEED_SCRIPT = {
    "report": "Curves, documents and the page of each topic need JavaScript; the tables do not.",
    "many_topics": "Searching and sorting need JavaScript; the tables and documents do not.",
    "trends": "Curves need JavaScript; the table of the most frequent topics does not.",
}


def report_page(
    title: str, sections: Sequence[tuple[str, str, str]], data: Mapping[str, Any], script: str = "report"
) -> str:
    """Return the HTML file of a report.

    `sections` are tuples (id, heading, HTML). `script` is a key of `_SCRIPTS`: the script that draws `data`.
    """
    needs_script = _NEED_SCRIPT[script]
    curve = ["learning_curve.js"] if data.get("forecast") else []
    *parts, style = ((_FOLDER / name).read_text(encoding="utf-8") for name in (*_SCRIPTS[script], *curve, "report.css"))
    script = "".join(parts)
    links = "".join(f'<li><a href="#{name}">{html_text(heading)}</a></li>' for name, heading, _ in sections)
    body = "".join(
        f'<section id="{name}" aria-labelledby="{name}-heading"><h2 id="{name}-heading">{html_text(heading)}</h2>'
        f"{content}</section>\n"
        for name, heading, content in sections
    )
    return (
        f'{page_head(title, style, script)}<a class="skip" href="#main">Skip to the report</a>'
        f'<header><h1>{html_text(title)}</h1><nav aria-label="Sections"><ul>{links}</ul></nav></header>\n'
        f'<main id="main" tabindex="-1">{body}'
        f"<noscript><p>{needs_script}</p></noscript>"
        f'</main>\n<script type="application/json" id="data">{_json(data)}</script>\n<script>{script}</script>\n'
        "</body></html>\n"
    )


def _json(data: Mapping[str, Any]) -> str:
    """Return data as JSON that can neither end the HTML element around it nor begin a comment there."""
    written = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return printable_text(written).replace("<", "\\u003c")


def scrolled_table(name: str, caption: str, head: Sequence[str], rows: Sequence[Sequence[Any]], **options: Any) -> str:
    """Return an HTML table in a box that scrolls; the `options` are those of `html_table`."""
    return (
        f'<div class="scroll" role="region" aria-label="{html_text(caption)}" tabindex="0">'
        f"{html_table(head, rows, name=name, caption=caption, **options)}</div>"
    )
