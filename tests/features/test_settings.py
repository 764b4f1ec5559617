"""Settings are got, set and checked as scikit-learn does it."""

import math

import numpy as np
import pytest
from cases import every
from zoned_texts import TOKENS, TRAIN, Zones

from textcat.base.errors import TextcatError
from textcat.features.tfidf import TfIdf
from textcat.features.tokens import Tokens


def test_changed_settings_take_effect():
    tokens = Tokens()
    assert tokens.count_terms(["The Word"]).terms == ["word"]
    tokens.set_params(lowercase=False, remove_stop_words=False)
    assert tokens.count_terms(["The Word"]).terms == ["The", "Word"]


def test_parameters_are_those_that_scikit_learn_would_see():
    tokens = Tokens("de", memo_bytes=5)
    estimator = TfIdf(tokens)
    assert repr(tokens) == "Tokens(lang='de', memo_bytes=5)"
    assert tokens.get_params() == {
        name.removeprefix("tokens__"): value for name, value in estimator.get_params().items() if "__" in name
    }
    assert estimator.set_params(tokens__lang="fr").tokens.lang == "fr"
    with pytest.raises(ValueError, match=r"Tokens has no parameter 'language'; it has lang, lowercase"):
        tokens.set_params(language="fr")
    with pytest.raises(ValueError, match=r"The 'tokens' parameter of TfIdf is None, which has no parameter 'lang'"):
        TfIdf().set_params(tokens__lang="fr")
    both = TfIdf().set_params(tokens__lang="fr", tokens=Tokens(lowercase=False))
    assert repr(both) == "TfIdf(tokens=Tokens(lang='fr', lowercase=False))"


@every(
    "settings, train, message",
    [
        ({}, [], "There is no document to learn terms from: give at least one."),
        ({}, ["a", 3.5], "Document 2 is 3.5: give a string or a document with zones."),
        ({}, [Zones({"title": None})], "Zone 'title' of document 1 is None: give a string."),
        ({"zones": {"title": -1}}, TRAIN, "The weight of zone 'title' is -1: give a positive number."),
        ({"zones": {"title": math.nan}}, TRAIN, "The weight of zone 'title' is nan: give a positive number."),
        ({"tokens": "en"}, TRAIN, "tokens is 'en': give Tokens, such as Tokens(lang='en'), or None."),
        (
            {"tokens": str.split},
            TRAIN,
            "tokens is <method 'split' of 'str' objects>: give Tokens, such as Tokens(lang='en'), or None.",
        ),
        ({"min_df": 0}, TRAIN, "min_df is 0: give a whole number of documents, at least 1."),
        ({"min_df": 0.5}, TRAIN, "min_df is 0.5: give a whole number of documents, at least 1."),
        ({"min_df": True}, TRAIN, "min_df is True: give a whole number of documents, at least 1."),
        ({"ngram_min_df": 0}, TRAIN, "ngram_min_df is 0: give a whole number of documents, at least 1."),
        ({"ngrams": 4}, TRAIN, "ngrams is 4: give 1, 2 or 3."),
        ({"ngram_weight": 0}, TRAIN, "ngram_weight is 0: give a positive number."),
        ({"chars": -1}, TRAIN, "chars is -1: give a whole number of characters, or 0 for none."),
        ({"char_max_df": 0}, TRAIN, "char_max_df is 0: give a number above 0, at most 1."),
        ({"char_weight": math.inf}, TRAIN, "char_weight is inf: give a positive number."),
        ({"weighting": "tf"}, TRAIN, "weighting is 'tf': give 'tfidf' or 'bm25'."),
        (
            {"weighting": "bm25", "sublinear_tf": True},
            TRAIN,
            "sublinear_tf is True, and bm25 has its own way of counting: leave one of them out.",
        ),
        ({"k1": -1}, TRAIN, "k1 is -1: give a number, at least 0."),
        ({"b": 1.5}, TRAIN, "b is 1.5: give a number from 0 to 1."),
        ({"idf": "bm25"}, TRAIN, "idf is 'bm25': give 'log' or 'smooth' or 'none'."),
        ({"zone_terms": "title"}, TRAIN, "zone_terms is 'title': give True, False, or a list of zones."),
        (
            {"zone_terms": ["dateline"], "zones": {"title": 1}},
            TRAIN,
            "zone_terms names zone 'dateline', which zones leaves out: name it in both.",
        ),
        ({"max_features": 0}, TRAIN, "max_features is 0: give a whole number, at least 1, or None."),
        ({"dtype": np.int32}, TRAIN, "dtype is <class 'numpy.int32'>: give numpy.float32 or numpy.float64."),
    ],
)
def test_mistakes_are_told_in_a_sentence(settings, train, message):
    with pytest.raises(TextcatError) as caught:
        TfIdf(**{"tokens": TOKENS, **settings}).fit(train)
    assert str(caught.value) == message
    assert isinstance(caught.value, ValueError)


def test_a_table_is_no_list_of_texts():
    table = pytest.importorskip("pandas").DataFrame({"text": TRAIN})
    for ask in (TfIdf(TOKENS).fit, TfIdf(TOKENS).fit_transform, TfIdf(TOKENS).fit(TRAIN).transform):
        with pytest.raises(
            TextcatError, match=r"A DataFrame is no list of texts: give one of its columns, as in frame"
        ):
            ask(table)
    assert TfIdf(TOKENS).fit_transform(table["text"]).shape == TfIdf(TOKENS).fit_transform(TRAIN).shape
