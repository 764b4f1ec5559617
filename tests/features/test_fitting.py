"""Columns are those of terms that are common enough among the documents fitted to, and so are their weights."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from zoned_texts import TOKENS, TRAIN, assert_same_rows, documents, naive_rows, options

from textcat.features.columns import ngram_names
from textcat.features.tfidf import TfIdf
from textcat.features.tokens import OTHER, Tokens


def test_bm25_saturates_and_feels_length():
    texts = ["oil oil oil oil wheat", "oil wheat", "oil", "zinc"]
    X = TfIdf(TOKENS, weighting="bm25", k1=1.0, b=1.0, idf="none").fit_transform(texts).toarray()
    # l = 5 and a = 9/4: 4 occurrences count 4 / (4 + 20/9), one counts 1 / (1 + 20/9).
    assert X[0, 0] / X[0, 1] == pytest.approx((4 / (4 + 20 / 9)) / (1 / (1 + 20 / 9)))
    assert X[1, 0] == X[1, 1]


def test_a_term_of_every_document_has_no_entry_and_weight_zero():
    transformer = TfIdf(TOKENS)
    X = transformer.fit_transform(["oil wheat", "oil corn"])
    assert transformer.idf_[transformer.vocabulary_["oil"]] == 0
    assert X.nnz == 2


def test_a_single_document_or_none_with_terms_gives_empty_rows():
    assert TfIdf(TOKENS).fit_transform(["oil wheat"]).nnz == 0
    transformer = TfIdf(TOKENS).fit(["", "the 1987"])
    assert transformer.transform(["oil", ""]).shape == (2, 0)


@given(st.lists(documents, min_size=1, max_size=8), options, st.data())
def test_learning_from_some_of_the_counted_documents_is_learning_from_those_alone(texts, how, data):
    chosen = data.draw(st.lists(st.integers(0, len(texts) - 1), min_size=1, unique=True))
    transformer = TfIdf(TOKENS, **how)
    counted = transformer.count(texts)
    rows = transformer.fit_counted(counted, chosen).rows_of(counted)
    alone = TfIdf(TOKENS, **how).fit([texts[i] for i in chosen])
    assert transformer.vocabulary_ == alone.vocabulary_
    assert np.array_equal(transformer.idf_, alone.idf_)
    assert transformer.average_lengths_ == alone.average_lengths_
    assert np.array_equal(rows.toarray(), alone.transform(texts).toarray())


@given(st.lists(documents, min_size=1, max_size=6), st.lists(documents, min_size=1, max_size=3), options)
def test_all_words_of_named_documents_have_a_column(texts, named, how):
    if "max_features" in how:
        return
    transformer = TfIdf(TOKENS, **how)
    counted = transformer.count([*texts, *named])
    chosen, positions = np.arange(len(texts)), np.arange(len(texts), len(counted.parts.ends))
    rows = transformer.fit_counted(counted, chosen, positions).rows_of(counted, chosen)
    names, expected = naive_rows(texts, texts, how | {"named": named})
    assert_same_rows(rows, names, expected, transformer)


def test_ngrams_of_characters_that_most_documents_have_are_left_out():
    texts = ["oil", "oils", "corn", "zinc"]
    every = TfIdf(TOKENS, chars=3).fit(texts).vocabulary_
    rarer = TfIdf(TOKENS, chars=3, char_max_df=0.25).fit(texts).vocabulary_
    assert set(every) - set(rarer) == {"~ oi~", "~oil~"}


def test_what_was_counted_holds_no_ngram_that_is_too_rare():
    texts = ["oil price falls", "oil price rises", "oil price falls", "wheat price"]
    counted = TfIdf(TOKENS, ngrams=3, ngram_min_df=2).count(texts)
    assert ngram_names(counted.counts, np.arange(len(counted.counts.ngrams))) == [
        "oil price",
        "price falls",
        "oil price falls",
    ]
    assert counted.lengths.tolist() == [6, 6, 6, 3]


def test_terms_that_can_have_no_column_take_no_counter():
    transformer = TfIdf(Tokens(), ngrams=2, ngram_min_df=1).fit(TRAIN)
    expected = transformer.transform(TRAIN)
    transformer.transform([f"new{'x' * i} words traders{'y' * i}" for i in range(200)])
    counter = transformer.tokens_.counter
    assert set(counter.terms) == {*transformer.vocabulary_, OTHER}
    np.testing.assert_array_equal(transformer.transform(TRAIN).toarray(), expected.toarray())


def test_max_features_keeps_the_commonest_and_breaks_ties_by_name():
    transformer = TfIdf(TOKENS, max_features=3).fit(["oil wheat", "oil corn", "zinc corn", "barley"])
    assert transformer.get_feature_names_out().tolist() == ["barley", "corn", "oil"]
