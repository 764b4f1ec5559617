"""N-grams of characters that are added to counts are those that counting with them gives."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from zoned_texts import NEW, TOKENS, TRAIN, documents

from textcat.features.char_ngrams import add_char_ngrams
from textcat.features.tfidf import TfIdf

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


def test_features_fitted_to_them_transform_new_texts():
    counted = add_char_ngrams(TfIdf(TOKENS, **SETTINGS).count(TRAIN), range(4, 5), divides_runs=True)
    features = TfIdf(TOKENS, chars=4, **SETTINGS).fit_counted(counted)
    expected = TfIdf(TOKENS, chars=4, **SETTINGS).fit(TRAIN).transform(NEW)
    np.testing.assert_array_equal(features.transform(NEW).toarray(), expected.toarray())
