"""Runs without white space: as spaCy cuts them up to a bound, and beyond it in time that grows with their length."""

from functools import cache

import naive_features as naive
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from textcat.features.language import LONGEST_SPAN
from textcat.features.tokens import Tokens

PATTERNS = ["(", ")", "'", "…", "…a", "(.", "«é", "http://", "a.b,", "€1", "😀)"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_up_to_the_bound_tokens_are_those_of_spacy(pattern):
    text = (pattern * LONGEST_SPAN)[:LONGEST_SPAN]
    assert Tokens().tokenize(text) == naive.tokens(text)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_beyond_the_bound_nothing_is_lost_and_words_are_found(pattern):
    text = f"Wheat {pattern * 200_000} rose"  # for some hours, if each prefix were taken off by itself
    tokens = Tokens().tokenize(text)
    assert (tokens[0], tokens[-1]) == ("Wheat", "rose")
    assert "".join(tokens) == text.replace(" ", "")


SIGNS = st.sampled_from(
    [*"()[].,:;'-/+*%$#<>_&5aZ", *"…«»—“’¿€£°²é😀👍\u0301中本км", "http://", "...", "km", "'s", "www."]
)


@cache
def tables_at_once(lang):
    """Tokens whose language reads the tables for all characters before the first text."""
    tokens = Tokens(lang)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("textcat.features.language.PATIENCE", 0)
        return tokens.prepare()


@pytest.mark.parametrize("lang", ["en", "de", "sv", "fr", "ru", "el", "hu"])
@given(st.lists(SIGNS, max_size=40).map("".join))
@settings(max_examples=100, deadline=None)
def test_tables_for_all_characters_give_the_tokens_of_spacy(lang, text):
    assert tables_at_once(lang).tokenize(text) == naive.tokens(text, lang)


def test_words_of_a_long_run_are_tokens():
    text = ",".join(["wheat", "corn"] * LONGEST_SPAN)
    counts = Tokens().count_terms([text])
    assert {"wheat", "corn"} <= set(counts.terms)
