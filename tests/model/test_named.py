"""Names of topics are found in texts as runs of terms."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


class _Naive:
    """Compare every run of terms with every name."""

    def __init__(self, names, by_beginnings):
        self.names, self.by_beginnings = names, by_beginnings

    def same(self, word, term):
        if not self.by_beginnings or len(word) < 4:
            return word == term
        return len(term) <= len(word) + 5 and term.startswith(word[: max(4, len(word) - 2)])

    def counts(self, text):
        terms, counts = text.split(), []
        for words in map(str.split, self.names):
            starts = range(len(terms) - len(words) + 1) if words else ()
            runs = (terms[start : start + len(words)] for start in starts)
            counts.append(sum(all(map(self.same, words, run)) for run in runs))
        return counts


@given(data=st.data(), by_beginnings=st.booleans())
def test_names_are_found_as_by_comparing_each_with_each_place(data, by_beginnings):
    words = st.builds(lambda stem, ending: stem + ending, st.sampled_from(["xa", "xab", "xabcd", "xabcdefg"]),
                      st.text("xyz", max_size=7))  # fmt: skip
    names = data.draw(st.lists(st.lists(words, max_size=3).map(" ".join), max_size=6))
    text = data.draw(st.lists(st.one_of(words, st.sampled_from(" ".join(names).split() or ["x"])), max_size=12))
    assert found(names, " ".join(text), by_beginnings=by_beginnings) == _Naive(names, by_beginnings).counts(
        " ".join(text)
    )


@pytest.mark.parametrize("by_beginnings", [False, True])
def test_the_work_does_not_grow_with_the_names_that_begin_alike(by_beginnings):
    text = "economic growth " * 50

    def calls(n):
        names = [f"economic {'abcdefghij'[k % 10]}{k}" for k in range(n)] + ["economic growth"] * n
        names_in_texts = NamesInTexts(Tokens(lang="en", alphanumeric=True), names, by_beginnings=by_beginnings)
        n_calls = 0

        def count(_frame, _event, _argument):
            nonlocal n_calls
            n_calls += 1

        before = sys.getprofile()
        sys.setprofile(count)
        try:
            assert names_in_texts.counts([text])[n:].tolist() == [50] * n
        finally:
            sys.setprofile(before)
        return n_calls

    calls(1)
    assert calls(200) <= calls(2) + 50


def test_a_text_without_terms_has_no_name():
    assert found(["wheat"], "", " ... ") == [0]
    assert found([], "wheat") == []
