"""Where commands print, and texts that a terminal only shows."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textcat.cli.terminal import console, harmless, may_be_terminal, new_stages

TEXTS = st.text(st.characters(exclude_categories=["Cs"]) | st.characters(categories=["Cc"]))


@given(TEXTS)
def test_a_terminal_obeys_nothing_in_a_harmless_text_and_places_stay(text):
    shown = harmless(text)
    assert len(shown) == len(text)
    assert not {letter for letter in shown if unicodedata.category(letter) == "Cc"} - {"\n", "\t"}
    for before, after in zip(text, shown, strict=True):
        assert after == before or unicodedata.category(before) == "Cc"
    assert harmless(shown) == shown


def test_the_signs_tell_which_command_it_was():
    assert harmless("\x1b[31mred\x07\x9b\x7f\r\n\t\x00") == "␛[31mred␇\ufffd\ufffd \n\t␀"


@pytest.mark.parametrize(
    ("variable", "expected"), [("", False), ("FORCE_COLOR", True), ("TTY_COMPATIBLE", True), ("NO_COLOR", False)]
)
def test_without_a_terminal_only_what_rich_obeys_makes_one_possible(monkeypatch, variable, expected):
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    if variable:
        monkeypatch.setenv(variable, "1")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    assert may_be_terminal() is expected
    if console(stderr=True).is_terminal:
        assert may_be_terminal(), "what rich takes for a terminal may be one"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert may_be_terminal()


def test_the_two_streams_are_kept_apart(capsys):
    console().print("to out")
    console(stderr=True).print("to err")
    with new_stages().stage("quiet", 1) as advance:
        advance(1)
    assert capsys.readouterr() == ("to out\n", "to err\n")
