"""Pages of the web with known main texts → F1, precision, recall and speed of extractors, as a table."""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from html import escape
from itertools import product
from typing import NamedTuple

from harness import Row, Work

from textcat.corpus.catalogue import open_corpus
from textcat.reading import InputSettings
from textcat.reading.formats.html import extract_page, extract_text

_WORDS = 4  # of a shingle
_SECTIONS = ["World", "Markets", "Metals", "Grain", "Weather", "Opinion", "Sport", "Video", "Archive", "Contact"]


class Page(NamedTuple):
    """A page of HTML and its main text."""

    html: str
    text: str


class _Story(NamedTuple):
    title: str
    paragraphs: list[str]


def _links(titles: list[str], tag: str = "li") -> str:
    return "".join(f'<{tag}><a href="/{i}">{escape(title)}</a></{tag}>' for i, title in enumerate(titles))


def _semantic(title: str, body: str, around: dict[str, str]) -> str:
    return (
        f"<header><nav><ul>{around['menu']}</ul></nav></header><main><article><h1>{title}</h1>{body}</article>"
        f"<aside><h2>Read more</h2><ul>{around['related']}</ul></aside></main>{around['comments']}"
        f"<footer>{around['footer']}</footer>"
    )


def _by_class(title: str, body: str, around: dict[str, str]) -> str:
    return (
        f'<div class="cookie-banner">{around["notice"]}</div><div id="nav" class="menu"><ul>{around["menu"]}</ul></div>'
        f'<div class="content post"><h1 class="headline">{title}</h1><div class="entry-content">{body}</div></div>'
        f'<div class="sidebar related"><ul>{around["related"]}</ul></div>{around["comments"]}'
        f'<div class="footer">{around["footer"]}</div>'
    )


def _unnamed(title: str, body: str, around: dict[str, str]) -> str:
    return (
        f"<div><div><ul>{around['menu']}</ul></div><div>{around['notice']}</div><div><h1>{title}</h1>{body}</div>"
        f"<div><ul>{around['related']}</ul></div>{around['comments']}<div>{around['footer']}</div></div>"
    )


def _table(title: str, body: str, around: dict[str, str]) -> str:
    return (
        f"<table width=800><tr><td colspan=3><font size=1>{around['menu']}</font></td></tr><tr><td width=150><ul>"
        f"{around['related']}</ul></td><td><b>{title}</b><br><br>{body}</td><td>{around['notice']}</td></tr>"
        f"<tr><td colspan=3>{around['footer']}</td></tr></table>"
    )


def _paragraphs(story: _Story) -> str:
    return "".join(f"<p>{escape(text)}</p>\n" for text in story.paragraphs)


def _breaks(story: _Story) -> str:
    return "<br><br>\n".join(map(escape, story.paragraphs))


def _rich(story: _Story) -> str:
    first, *rest = map(escape, story.paragraphs)
    half = len(rest) // 2
    middle = f"<h2>What else</h2><ul>{''.join(f'<li>{text}</li>' for text in rest[:half])}</ul>" if half else ""
    return f"<p><strong>{first}</strong></p>{middle}" + "".join(f"<div><p>{text}</p></div>" for text in rest[half:])


_LAYOUTS = (_semantic, _by_class, _unnamed, _table)
_BODIES = (_paragraphs, _breaks, _rich)
_COMMENTS = (
    "",
    '<div id="comments" class="comments"><h3>3 comments</h3>{}</div>',
)


def make_pages(per_kind: int = 4, seed: int = 1) -> list[Page]:
    """Make pages of all layouts, ways to write a text, with comments and without, around invented articles."""
    chosen = random.Random(seed)
    stories = [
        _Story(document.zones["title"].capitalize(), texts)
        for document in open_corpus("newswire").train
        if len(texts := [" ".join(t.split()) for t in re.split(r"\n {4}", document.zones["body"])][:-1]) > 3
    ]
    pages = []
    for layout, write, comments, _ in product(_LAYOUTS, _BODIES, _COMMENTS, range(per_kind)):
        story, *others = chosen.sample(stories, 9)
        replies = [f"<b>Reader {i}</b> {escape(other.paragraphs[0])}" for i, other in enumerate(others)]
        said = "".join(f"<div class=comment>{reply}</div>" for reply in replies)
        around = {
            "menu": _links(_SECTIONS),
            "related": _links([other.title for other in others]),
            "notice": "<p>We use cookies to improve this site. <button>Accept all</button> <a href=/p>Privacy</a></p>",
            "footer": "Copyright 2026. All rights reserved. <a href=/i>Imprint</a> <a href=/t>Terms of use</a>",
            "comments": comments.format(said),
        }
        body = layout(escape(story.title), write(story), around)
        head = f"<head><title>{escape(story.title)} | The Wire</title><script>var a = '<p>';</script></head>"
        text = "\n".join([story.title, *(["What else"] if write is _rich else []), *story.paragraphs])
        pages.append(Page(f"<!DOCTYPE html><html lang=en>{head}<body>{body}</body></html>", text))
    return pages


def extractors() -> Iterator[tuple[str, Callable[[str], str]]]:
    """Yield the name and the function of each extractor that is installed."""
    yield "default of textcat", lambda html: extract_page(html).body
    yield "--main-text", lambda html: extract_text(html, InputSettings(main_text=True)).body
    with suppress(ImportError):
        from resiliparse.extract.html2text import extract_plain_text

        yield "Resiliparse", lambda html: extract_plain_text(html, main_content=True, comments=False, alt_texts=False)
    with suppress(ImportError):
        import justext

        words = justext.get_stoplist("English")
        yield "jusText", lambda html: "\n".join(p.text for p in justext.justext(html, words) if not p.is_boilerplate)


def _shingles(text: str) -> Counter[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return Counter(tuple(words[i : i + _WORDS]) for i in range(max(1, len(words) - _WORDS + 1)))


def measure(work: Work) -> list[Row]:
    """Measure all extractors on the pages: sequences of four words that are found, and the pages a second."""
    pages, rows = make_pages(1 if work.quick else 4), list[Row]()
    for extractor, extract in extractors():
        extract(pages[0].html)
        start = time.process_time()
        found = [extract(page.html) for page in pages]
        seconds = time.process_time() - start
        hits = returned = wanted = 0
        for page, text in zip(pages, found, strict=True):
            expected, got = _shingles(page.text), _shingles(text)
            hits, returned, wanted = hits + (expected & got).total(), returned + got.total(), wanted + expected.total()
        figures = {"F1": 2 * hits / (returned + wanted), "precision": hits / returned, "recall": hits / wanted}
        shown = {name: f"{figure:.3f}".lstrip("0") for name, figure in figures.items()}
        rows.append({"extractor": extractor, **shown, "pages a second": f"{len(pages) / seconds:,.0f}"})
    return rows
