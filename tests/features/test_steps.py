"""What was learnt makes the same rows without the documents, and they are what the formulas say."""

import copy
import pickle

import numpy as np
import pytest
from cases import every
from sklearn.exceptions import NotFittedError
from zoned_texts import (
    NEW,
    TOKENS,
    TRAIN,
)

from textcat.base.errors import TextcatError
from textcat.features.tfidf import TfIdf


def test_rows_have_unit_length_or_no_entry():
    X = TfIdf(TOKENS).fit(TRAIN).transform(NEW)
    lengths = np.sqrt(X.multiply(X).sum(axis=1).A1)
    assert lengths == pytest.approx([1, 1, 1, 0, 1, 1, 0, 0, 0])


def test_no_row_is_given_before_anything_was_learnt():
    transformer = TfIdf(TOKENS)
    with pytest.raises(NotFittedError):
        transformer.rows_of(transformer.count(TRAIN))


def test_rows_do_not_depend_on_the_block(monkeypatch):
    transformer = TfIdf(TOKENS).fit(TRAIN)
    whole = transformer.transform(NEW)
    monkeypatch.setattr("textcat.features.tfidf.DOCUMENTS_PER_BLOCK", 2)
    parts = transformer.transform(NEW)
    assert parts.has_sorted_indices
    assert (whole != parts).nnz == 0
    assert transformer.transform([]).shape == (0, whole.shape[1])


@every("more", [{}, {"weighting": "bm25", "ngrams": 2}, {"ngrams": 3, "chars": 4}])
def test_a_restored_transformer_gives_the_same_rows(more):
    how = {"zones": {"title": 2, "body": 1}, "zone_terms": True, **more}
    fitted = TfIdf(TOKENS, **how).fit(TRAIN)
    learnt = (fitted.vocabulary_, fitted.idf_, fitted.n_documents_, fitted.average_lengths_)
    restored = TfIdf.restore(*learnt, **how)
    assert restored.get_params(deep=False) | {"tokens": 0} == fitted.get_params(deep=False) | {"tokens": 0}
    assert (restored.transform(NEW) != fitted.transform(NEW)).nnz == 0
    assert restored.n_documents_ == len(TRAIN)


@every("terms", [["oil"], [], ["corn", "oil", "wheat"]])
def test_what_does_not_fit_together_is_not_restored(terms):
    with pytest.raises(TextcatError, match="2 idf do not fit the"):
        TfIdf.restore(terms, np.ones(2), 9)


def test_what_a_transformer_has_learnt_gives_the_same_rows_without_it():
    fitted = TfIdf(TOKENS, ngrams=2, sublinear_tf=True).fit(TRAIN)
    learnt = (fitted.vocabulary_, fitted.idf_, fitted.n_documents_, fitted.average_lengths_)
    alone = TfIdf.restore(*learnt, **fitted.get_params(deep=False))
    for each in (alone, pickle.loads(pickle.dumps(alone)), copy.deepcopy(alone)):
        assert (each.transform(NEW) != fitted.transform(NEW)).nnz == 0
        assert each.get_feature_names_out().tolist() == fitted.get_feature_names_out().tolist()
