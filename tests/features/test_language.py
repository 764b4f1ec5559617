"""English plurals become singulars, and other words stay what they are."""

import sys
from collections import Counter

import naive_features as naive
import numpy as np
import pytest
from cases import every
from hypothesis import given
from hypothesis import strategies as st

from textcat.base.errors import TextcatError
from textcat.features.language import MissingPackageError, open_language, read_language, singular
from textcat.features.tokens import OTHER, KnownTerms, Tokens

words = st.one_of(
    st.text(), st.builds(str.__add__, st.text("abceiou"), st.sampled_from(["s", "es", "ies", "us", "ss"]))
)


words_of_letters = st.builds(
    str.__add__, st.text("abceiou", min_size=1), st.sampled_from(["", "s", "es", "y", "ies", "us", "ss"])
) | st.sampled_from(["its", "it", "does", "ours", "hers", "always"])
FOLDED = Tokens(singularize=True)


@every(
    "plural, expected",
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


@every("word", ["gas", "surplus", "loss", "price", "as", "", "PRICES"])
def test_other_words_stay(word):
    assert singular(word) == word


@given(words)
def test_the_rules_are_those_of_the_table(word):
    assert singular(word) == naive.singular(word)


@given(st.lists(words_of_letters, min_size=1), st.data())
def test_words_count_as_the_known_singular_that_they_become(spans, data):
    terms = [*dict.fromkeys(data.draw(st.lists(st.sampled_from([*spans, *map(singular, spans)]))))]
    vocabulary = KnownTerms([*terms, OTHER], np.full((1, 2), len(terms), np.int32))
    counts = FOLDED.count_terms([" ".join(spans)], known_terms=vocabulary)
    stops = FOLDED.term_counter().stops
    expected = Counter(singular(span) if singular(span) in terms else OTHER for span in spans if span not in stops)
    assert {counts.terms[id_]: n for id_, n in zip(counts.ids, counts.counts, strict=True)} == expected


def test_plurals_of_other_languages_are_left_alone():
    assert Tokens("de", singularize=True).count_terms(["Autos"]).terms == ["autos"]


def test_an_unknown_language_is_named():
    with pytest.raises(TextcatError, match=r"spaCy has no language 'qqq': give a code .* or 'xx', the rules for all"):
        Tokens("qqq").tokenize("a")


def test_a_missing_package_is_named(monkeypatch):
    def missing(lang):
        def build():
            raise ImportError("no such module")

        return build

    monkeypatch.setattr("spacy.util.get_lang_class", missing)
    with pytest.raises(MissingPackageError, match=r"pip install 'spacy\[ja\]'"):
        open_language("ja")


def test_a_missing_spacy_is_named_where_no_tables_stand_for_it(monkeypatch):
    monkeypatch.setattr("textcat.features.language.read_cached_tables", lambda lang: None)
    monkeypatch.setitem(sys.modules, "spacy.util", None)
    read_language.cache_clear()
    with pytest.raises(MissingPackageError, match="spaCy is not installed"):
        open_language("en")
