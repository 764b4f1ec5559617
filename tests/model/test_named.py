"""Names of topics are found in texts as runs of terms."""

import pytest

from textcat.features.tokens import Tokens
from textcat.model.named import NamesInTexts


def found(names, *texts, lang="en", by_beginnings=False, **settings):
    tokens = Tokens(lang=lang, alphanumeric=True, **settings)
    return NamesInTexts(tokens, names, by_beginnings=by_beginnings).counts(texts).tolist()


def test_names_are_counted_in_all_texts_together():
    names = ["wheat", "wheat exports", "gold", ""]
    assert found(names, "Wheat exports, and wheat: exports of wheat", "No buckwheat; WHEAT!") == [4, 2, 0, 0]


def test_terms_between_two_words_of_a_name_part_them_and_other_tokens_do_not():
    assert found(["forest owners"], "Forest, old owners; owners. Forest-owners") == [1]
    assert found(["forest owners"], "Owners of the forest; of the forest, and of its owners") == [1]


def test_a_qualifier_in_parentheses_is_no_part_of_a_name():
    assert found(["bass (fish)", "(fish)", "seat (of a bicycle) posts"], "A bass, a seat post", singularize=True) == [
        1,
        0,
        1,
    ]


def test_two_topics_may_have_the_same_name():
    assert found(["bass (fish)", "bass (music)"], "bass and bass") == [2, 2]


@pytest.mark.parametrize(
    ("name", "text", "n"),
    [
        ("kirjastot", "kirjasto kirjastossa Kirjastoissaan kirja", 3),
        ("kissat", "kissa kissoja kissan", 3),
        ("kissat", "kissanruokakuppi", 0),  # too long: a compound
        ("talot", "talo talossa Tali", 2),
        ("työ", "työ työt työn", 1),  # a short word has no ending
        ("avoin tiede", "avoinna tiedettä, tiedettä avoin", 1),
    ],
)
def test_words_are_compared_by_their_beginnings_where_languages_have_endings(name, text, n):
    assert found([name], text, lang="fi", by_beginnings=True) == [n]
    assert found([name], text, lang="fi")[0] <= n


def test_a_text_without_terms_has_no_name():
    assert found(["wheat"], "", " ... ") == [0]
    assert found([], "wheat") == []
