"""Runs without white space: as spaCy cuts them up to a bound, and beyond it in time that grows with their length."""

from functools import cache

import naive_features as naive
import pytest
from cases import every
from hypothesis import given
from hypothesis import strategies as st
from texts import SOME_LANGUAGES

from textcat.features.fitting import alphabetical
from textcat.features.language import LONGEST_SPAN
from textcat.features.spans import places
from textcat.features.tfidf import TfIdf
from textcat.features.tokens import Tokens

PATTERNS = ["(", ")", "'", "…", "…a", "(.", "«é", "http://", "a.b,", "€1", "😀)"]


@every("pattern", PATTERNS)
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


@pytest.mark.parametrize("lang", [*SOME_LANGUAGES, "el"])
@given(st.lists(SIGNS, max_size=40).map("".join))
def test_tables_for_all_characters_give_the_tokens_of_spacy(lang, text):
    assert tables_at_once(lang).tokenize(text) == naive.tokens(text, lang)


def test_words_of_a_long_run_are_tokens():
    text = ",".join(["wheat", "corn"] * LONGEST_SPAN)
    counts = Tokens().count_terms([text])
    assert {"wheat", "corn"} <= set(counts.terms)


@every("text", ["( " * 400, ":( ( " * 200, "( ( a " * 200, ": ( x(" * 200, "’s " * 300])
def test_special_cases_across_many_spans_are_those_of_spacy(text):
    assert Tokens().tokenize(text) == naive.tokens(text)


NGRAMS = {"ngrams": 2, "ngram_min_df": 1, "chars": 4}


def test_of_a_long_text_only_the_first_ngrams_count_and_all_words(monkeypatch):
    monkeypatch.setattr("textcat.features.tokens.MOST_NGRAMS", 6)
    counts = Tokens().count_terms(["corn wheat rye oats tin zinc gold iron lead"], ngrams=2, char_lengths=range(4, 5))
    names = [counts.terms[i] for i in counts.ids.tolist() if i >= 0]
    assert {"corn", "lead"} <= set(names)
    assert int((counts.ids < 0).sum()) == 6
    # " corn ", of three n-grams, and " wheat ", of four, which would be more than six.
    assert [name for name in names if name.startswith("~")] == ["~ cor~", "~corn~", "~orn ~"]


def test_the_places_of_a_long_text_are_those_of_the_ngrams_that_count(monkeypatch):
    for module in ("tokens", "spans"):
        monkeypatch.setattr(f"textcat.features.{module}.MOST_NGRAMS", 6)
    features = TfIdf(Tokens(), **NGRAMS).fit(["corn wheat rye oats tin zinc gold iron lead"])
    text = "lead iron gold zinc tin oats rye wheat corn corn wheat rye oats"
    row = features.transform([text])
    assert set(places(features, text, row.indices.tolist())) == set(row.indices.tolist())


@given(st.lists(SIGNS, max_size=60).map("".join))
def test_names_are_sorted_as_python_sorts_them(text):
    names = [text[i : i + n] for n in (1, 3, 9, 40) for i in range(len(text))] + ["a", "a\0", "a\0b", "\ud800", ""]
    terms, positions = alphabetical(names)
    assert terms == sorted(set(names))
    assert [terms[i] for i in positions.tolist()] == names
