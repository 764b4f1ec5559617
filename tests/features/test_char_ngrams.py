"""N-grams of characters that are added to counts are those that counting with them gives."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from zoned_texts import NEW, TOKENS, TRAIN, documents

from textcat.features.char_ngrams import add_char_ngrams
from textcat.features.tfidf import TfIdf
from textcat.features.tokens import Tokens

SETTINGS = {"ngrams": 2, "ngram_min_df": 1, "weighting": "bm25", "char_weight": 0.7}


@given(st.lists(documents, min_size=1, max_size=8), st.integers(1, 5), st.integers(0, 5))
def test_rows_are_those_of_documents_counted_with_them(texts, longest, shortest):
    counted_with_them = TfIdf(TOKENS, chars=longest, char_min=shortest, **SETTINGS)
    expected = counted_with_them.fit_transform(texts)
    features = TfIdf(TOKENS, chars=longest, char_min=shortest, **SETTINGS)
    counted = add_char_ngrams(TfIdf(TOKENS, **SETTINGS).count(texts), features.char_lengths, divides_runs=True)
    rows = features.fit_counted(counted).rows_of(counted)
    assert features.vocabulary_ == counted_with_them.vocabulary_
    assert features.average_lengths_ == counted_with_them.average_lengths_
    np.testing.assert_array_equal(rows.toarray(), expected.toarray())


@given(st.lists(documents, min_size=1, max_size=8), st.integers(1, 30))
def test_long_texts_have_the_same_ngrams_as_if_counted_with_the_texts(texts, most):
    with pytest.MonkeyPatch.context() as patch:
        for module in ("tokens", "char_ngrams"):
            patch.setattr(f"textcat.features.{module}.MOST_NGRAMS", most)
        counted_with_them = TfIdf(Tokens(), chars=4, char_min=2, **SETTINGS | {"ngrams": 1})
        expected = counted_with_them.fit_transform(texts)
        features = TfIdf(Tokens(), chars=4, char_min=2, **SETTINGS | {"ngrams": 1})
        counted = add_char_ngrams(features.set_params(chars=0).count(texts), range(2, 5), divides_runs=True)
        rows = features.set_params(chars=4).fit_counted(counted).rows_of(counted)
    assert features.vocabulary_ == counted_with_them.vocabulary_
    np.testing.assert_array_equal(rows.toarray(), expected.toarray())


def test_features_fitted_to_them_transform_new_texts():
    counted = add_char_ngrams(TfIdf(TOKENS, **SETTINGS).count(TRAIN), range(4, 5), divides_runs=True)
    features = TfIdf(TOKENS, chars=4, **SETTINGS).fit_counted(counted)
    expected = TfIdf(TOKENS, chars=4, **SETTINGS).fit(TRAIN).transform(NEW)
    np.testing.assert_array_equal(features.transform(NEW).toarray(), expected.toarray())
