"""A text that a spreadsheet would run as a formula gets an apostrophe, and is read back as it was, like all others."""

from cases import every
from hypothesis import given
from hypothesis import strategies as st

from textcat.base.spreadsheets import list_cell, plain_text, safe_cell, texts_of_cell

ODD_TEXTS = st.text(st.sampled_from("'=-@\t\r\n\uff1da ;\""))


@every("text", ["=1+1", "+1", "-1", "@A1", "\t=1", "\r=1", "\n=1", "\uff1d1", '=HYPERLINK("http://x")', "'=1"])
def test_a_formula_gets_an_apostrophe(text):
    assert safe_cell(text) == f"'{text}"


@every("value", ["", "wheat", "a=b", " =1", "'wheat", -0.5, 3, None])
def test_other_texts_and_numbers_stay(value):
    assert safe_cell(value) is value


@given(ODD_TEXTS)
def test_every_text_is_read_back_as_it_was(text):
    cell = safe_cell(text)
    assert plain_text(cell) == text
    assert not cell.startswith(("=", "-", "@", "\t", "\r", "\n", "\uff1d"))


@given(st.lists(ODD_TEXTS).filter(lambda texts: texts != [""]))
def test_every_list_is_read_back_as_it_was(texts):
    assert texts_of_cell(list_cell(texts)) == texts


def test_a_list_of_usual_texts_is_easy_to_read():
    assert list_cell(["corn", "wheat"]) == "corn; wheat"
    assert list_cell(["a; b", 'say "c"']) == '"a; b"; say "c"'
    assert texts_of_cell("corn;wheat ; tin") == ["corn", "wheat ", "tin"]
