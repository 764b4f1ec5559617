"""Any value is shown as text, and a page's policy names the hash of its style sheet and of its script."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textcat.base.markup import Html, content_hash, html_table, html_text, page_head, printable_text


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=30))
def test_any_text_can_be_written_and_comes_back_from_the_table(text):
    html5lib = pytest.importorskip("html5lib")
    written = html_table([text, "b"], [[text, text]], name="t", caption=text, hints={text: text})
    written.encode()
    table = html5lib.parse(written, namespaceHTMLElements=False).find(".//table")
    read = ["".join(cell.itertext()) for cell in table.iter("td")]
    assert read == ([""] if not text else []) + [printable_text(text).replace("\r\n", "\n").replace("\r", "\n")]


def test_numbers_are_in_digits_what_is_missing_is_a_dash_and_html_stays():
    assert [*map(html_text, (1234, 0.5, None, "<b>", Html("<b>")))] == ["1,234", "0.500", "–", "&lt;b&gt;", "<b>"]


def test_a_page_allows_only_its_own_style_and_script():
    assert content_hash("") == "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
    head = page_head("<t>", "p {}", "run()")
    assert f"script-src '{content_hash('run()')}'; style-src '{content_hash('p {}')}'" in head
    assert "<title>&lt;t&gt;</title>" in head
    assert "script-src" not in page_head("t", "p {}")
