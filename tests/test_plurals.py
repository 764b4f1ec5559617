"""English plurals become singulars, and other words stay what they are."""

import naive_features as naive
import pytest
from hypothesis import given
from hypothesis import strategies as st

from textcat.features.language import singular, words_with_singular

words = st.one_of(
    st.text(), st.builds(str.__add__, st.text("abceiou"), st.sampled_from(["s", "es", "ies", "us", "ss"]))
)


@pytest.mark.parametrize(
    ("plural", "expected"),
    [
        ("prices", "price"),
        ("exports", "export"),
        ("commodities", "commodity"),
        ("losses", "losse"),
        ("banks", "bank"),
        ("vetoes", "vetoe"),
        ("employees", "employee"),
    ],
)
def test_a_plural_loses_its_ending(plural, expected):
    assert singular(plural) == expected


@pytest.mark.parametrize("word", ["gas", "surplus", "loss", "price", "as", "", "PRICES"])
def test_other_words_stay(word):
    assert singular(word) == word


@given(words)
def test_the_rules_are_those_of_the_table(word):
    assert singular(word) == naive.singular(word)


@given(words)
def test_a_word_is_among_those_that_become_its_singular(word):
    assert word in words_with_singular(singular(word))


@given(words)
def test_all_words_of_a_term_become_it(term):
    assert {singular(word) for word in words_with_singular(term)} <= {term}
