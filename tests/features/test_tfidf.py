"""tf-idf rows are what plain Python gives, to the bit, and the transformer is a citizen of scikit-learn."""

import copy
import pickle

import naive_features as naive
import numpy as np
import pytest
from cases import every
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import Perceptron
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks as checks
from sklearn.utils import get_tags
from zoned_texts import (
    NEW,
    TOKENS,
    TRAIN,
    assert_same_rows,
    documents,
    naive_rows,
    options,
)

from textcat.features.tfidf import TfIdf
from textcat.features.tokens import Tokens


@given(st.lists(documents, min_size=1, max_size=8), st.lists(documents, max_size=4), options)
def test_rows_are_those_of_plain_python_to_the_bit(train, new, how):
    transformer = TfIdf(TOKENS, **how)
    names, expected = naive_rows(train, train, how)
    assert_same_rows(transformer.fit_transform(train), names, expected, transformer)
    _, expected = naive_rows(train, new, how)
    assert_same_rows(transformer.transform(iter(new)), names, expected, transformer)


def test_characters_of_a_term_have_a_space_at_either_end():
    assert list(TfIdf(TOKENS, chars=3).fit(["Oil"]).vocabulary_) == ["oil", "~ oi~", "~il ~", "~oil~"]
    assert list(TfIdf(TOKENS, chars=9).fit(["Oil"]).vocabulary_) == ["oil", "~ oil ~"]


def test_rows_agree_with_the_formula_computed_by_scikit_learn():
    texts = [document if isinstance(document, str) else document.zones["body"] for document in TRAIN]
    transformer = TfIdf(TOKENS)
    X = transformer.fit_transform(texts)
    tf = np.array([[naive.term_frequencies(text)[name,] for name in transformer.vocabulary_] for text in texts])
    # scikit-learn adds 1 to every idf
    theirs = TfidfTransformer(norm=None, smooth_idf=False).fit(tf)
    assert transformer.idf_ == pytest.approx(theirs.idf_ - 1)
    expected = tf * (theirs.idf_ - 1)
    lengths = np.linalg.norm(expected, axis=1, keepdims=True)
    assert np.allclose(X.toarray(), expected / np.where(lengths, lengths, 1), atol=1e-6)


def test_fitting_and_transforming_at_once_or_in_turn_is_the_same():
    at_once = TfIdf(TOKENS, ngrams=2).fit_transform(TRAIN)
    in_turn = TfIdf(TOKENS, ngrams=2).fit(TRAIN).transform(TRAIN)
    assert (at_once != in_turn).nnz == 0


def test_rows_stay_right_when_the_token_cache_drops_its_ids():
    transformer = TfIdf(Tokens(memo_bytes=0), ngrams=3, chars=3, ngram_min_df=1).fit(TRAIN)
    expected = transformer.transform(NEW)
    transformer.transform(["quite other words come first", "and then more of them"])
    assert (transformer.transform(NEW) != expected).nnz == 0


def test_copies_give_the_same_rows_and_share_no_token_cache():
    fitted = TfIdf(ngrams=2).fit(TRAIN)
    expected = fitted.transform(NEW)
    for copied in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted), clone(fitted).fit(TRAIN)):
        assert (copied.transform(NEW) != expected).nnz == 0
        assert copied.tokens_ is not fitted.tokens_


def test_a_clone_is_not_fitted():
    with pytest.raises(ValueError, match="not fitted"):
        clone(TfIdf().fit(TRAIN)).transform(NEW)


def test_it_works_in_a_pipeline():
    topics = [1, 0, 0, 0, 1]
    pipeline = make_pipeline(TfIdf(TOKENS), Perceptron()).fit(TRAIN, topics)
    assert pipeline.predict(TRAIN).tolist() == topics
    assert len(pipeline[:-1].get_feature_names_out()) == pipeline[-1].n_features_in_


@every(
    "check",
    [
        checks.check_no_attributes_set_in_init,
        checks.check_parameters_default_constructible,
        checks.check_get_params_invariance,
        checks.check_set_params,
        checks.check_estimator_repr,
        checks.check_estimator_tags_renamed,
        checks.check_valid_tag_types,
        checks.check_mixin_order,
        checks.check_do_not_raise_errors_in_init_or_set_params,
    ],
)  # those that hand over numbers do not apply to text
def test_the_checks_of_scikit_learn_that_apply_to_text_pass(check):
    check("TfIdf", TfIdf())


def test_the_tags_say_text():
    tags = get_tags(TfIdf())
    assert tags.input_tags.string
    assert not tags.input_tags.two_d_array
    assert tags.requires_fit


def test_default_output_may_be_set():
    transformer = TfIdf(TOKENS).set_output(transform="default")
    assert transformer.fit_transform(TRAIN).shape[0] == len(TRAIN)


@every("method", ["fit", "fit_transform", "transform"])
def test_a_single_string_is_refused_as_scikit_learn_refuses_it(method):
    transformer = TfIdf(TOKENS).fit(TRAIN)
    with pytest.raises(ValueError, match=r"^Iterable over raw text documents expected, string object received\.$"):
        getattr(transformer, method)("a text")
