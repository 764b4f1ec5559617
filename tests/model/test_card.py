"""A model's card is read within bounds, and shown by a few elements, whatever is in it."""

import html.parser
import re

import pytest

import textcat
from textcat.base.errors import TextcatError
from textcat.model import CARD, MOST_CARD_BYTES
from textcat.model.card import card_elements, card_html, plain, read_card

HOSTILE = """---
title: "<script>alert(0)</script>"
---
# Card <script>alert(1)</script>

<img src=x onerror=alert(2)> <iframe srcdoc="x"></iframe> <svg onload=alert(3)>

<div onclick="alert(4)">

[a](javascript:alert(5)) [b](data:text/html,x) [c](https://example.org/"onmouseover="alert(6)) [d](vbscript:x)
![picture](https://example.org/track.gif "t") <https://example.org/auto> <javascript:alert(7)>

[ref]: javascript:alert(8)
[ref]

| a | <b onclick=alert(9)> |
|---|---|
| `</td><script>` | [x](HTTPS://example.org/x) |

```html
</pre><script>alert(10)</script>
```
"""
ALLOWED = {"a", "blockquote", "code", "em", "hr", "li", "ol", "p", "pre", "strong", "ul"}
ALLOWED |= {"table", "tbody", "td", "th", "thead", "tr", *(f"h{level}" for level in range(1, 7))}


class Seen(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes


def test_a_hostile_card_is_made_of_a_few_elements_without_scripts():
    seen = Seen(card_html(HOSTILE))
    assert set(seen.tags) <= ALLOWED
    assert {name for name, _ in seen.attributes} == {"href", "rel"}
    addresses = [value for name, value in seen.attributes if name == "href"]
    of_quotes = "https://example.org/%22onmouseover=%22alert(6)"
    assert addresses == [of_quotes, "https://example.org/auto", "HTTPS://example.org/x"]


def test_no_address_is_a_script_and_no_text_is_lost():
    def walk(elements):
        for one in elements:
            if isinstance(one, str):
                yield "", one
            else:
                yield one[1], ""
                yield from walk(one[2])

    pairs = [*walk(plain(card_elements(HOSTILE)))]
    assert all(re.match("(?i)https?://", address) for address, _ in pairs if address)
    text = "".join(said for _, said in pairs)
    for piece in ("alert(1)", "alert(2)", "alert(4)", "alert(10)", "picture"):
        assert piece in text
    assert "alert(0)" not in text  # the head is for programs


def test_headings_of_a_card_are_below_those_of_the_page():
    assert card_html("# One\n\n###### Six\n", level=3) == "<h3>One</h3><h6>Six</h6>"


def test_lists_breaks_and_code_are_shown():
    shown = card_html("- a\n- *b*\n\none  \ntwo\nthree\n\n    code\n\n1. x\n\n   y\n")
    assert shown.startswith("<ul><li>a</li><li><em>b</em></li></ul><p>one\ntwo three</p><pre>code\n</pre>")
    assert shown.endswith("<ol><li><p>x</p><p>y</p></li></ol>")


def test_a_card_of_very_many_parts_is_not_shown():
    assert "is not shown" in card_html("*a* " * 15_000)


def test_a_card_is_read_within_bounds(tmp_path):
    assert read_card(tmp_path) is None
    (tmp_path / CARD).write_bytes(b"# A \xff\x00 card\n")
    assert read_card(tmp_path) == "# A \ufffd\ufffd card\n"
    (tmp_path / CARD).write_bytes(b"x" * (MOST_CARD_BYTES + 1))
    with pytest.raises(TextcatError, match="too many for a card"):
        read_card(tmp_path)


def test_a_card_is_not_counted_by_the_checksums_and_goes_with_its_model(tagger, tmp_path):
    folder = textcat.save(tagger, tmp_path / "model")
    before = (folder / "manifest.json").read_bytes()
    (folder / CARD).write_text("# Edited by hand\n")
    assert textcat.load(folder).topics == tagger.topics
    assert (folder / "manifest.json").read_bytes() == before
    textcat.save(tagger, folder)  # another model: the card was not of it
    assert not (folder / CARD).exists()
