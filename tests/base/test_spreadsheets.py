"""A text that a spreadsheet would run as a formula gets an apostrophe; all else stays as it is."""

import pytest

from textcat.base.spreadsheets import safe_cell


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@A1", "\t=1", "\r=1", "\n=1", "\uff1d1", '=HYPERLINK("http://x")']
)
def test_a_formula_gets_an_apostrophe(text):
    assert safe_cell(text) == f"'{text}"


@pytest.mark.parametrize("value", ["", "wheat", "a=b", " =1", "'=1", -0.5, 3, None])
def test_other_texts_and_numbers_stay(value):
    assert safe_cell(value) is value
