"""tf-idf rows are what plain Python gives, to the bit, and the transformer is a citizen of scikit-learn."""

import copy
import logging
import math
import pickle
from collections import namedtuple

import naive_features as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import Perceptron
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks as checks
from sklearn.utils import get_tags

from textcat.errors import TextcatError
from textcat.features.columns import known_terms, ngram_names, space_hashes
from textcat.features.rows import row_bytes
from textcat.features.tfidf import TfIdf
from textcat.features.tokens import OTHER, TermCounts, Tokens

Zones = namedtuple("Zones", "zones")
TOKENS = Tokens()
TRAIN = [
    Zones({"title": "Cocoa prices rise", "body": "Cocoa prices rose in Bahia, traders said. Prices!"}),
    Zones({"title": "Wheat and corn", "body": "The wheat harvest didn't fail; corn prices fell."}),
    Zones({"body": "Oil. Oil! OIL? Crude oil prices, and crude words."}),
    Zones({"title": "", "body": "1987 3.2 -- the of and"}),
    "Cocoa and wheat traders said a word",
]
NEW = [*TRAIN, Zones({"dateline": "Bahia", "title": "Cocoa"}), "unseen vocabulary entirely", "", Zones({})]


def _list(zone_terms):
    return [] if isinstance(zone_terms, bool) else zone_terms


words = st.sampled_from(
    ["cocoa", "wheat", "corn", "oil", "Oil", "prices", "the", "of", "said", "1987", "traders,", "rise."]
)
texts = st.lists(words, max_size=12).map(" ".join)
documents = st.one_of(
    texts, st.dictionaries(st.sampled_from(["title", "body", "dateline"]), texts, max_size=3).map(Zones)
)
options = (
    st.fixed_dictionaries(
        {},
        optional={
            "zones": st.dictionaries(st.sampled_from(["title", "body"]), st.sampled_from([0.3, 1, 2.5, 3]), min_size=1),
            "zone_terms": st.one_of(st.booleans(), st.just(["title"]), st.just(["body", "title"])),
            "min_df": st.integers(1, 3),
            "ngrams": st.integers(1, 3),
            "ngram_min_df": st.integers(1, 3),
            "ngram_weight": st.sampled_from([0.3, 2]),
            "chars": st.integers(0, 6),
            "char_weight": st.sampled_from([0.3, 2]),
            "idf": st.sampled_from(["log", "smooth", "none"]),
        },
    )
    .flatmap(
        lambda how: st.sampled_from(
            [
                {},
                {"sublinear_tf": True},
                {"weighting": "bm25"},
                {"weighting": "bm25", "k1": 0.0},
                {"weighting": "bm25", "b": 0.3},
            ]
        ).map(lambda tf: how | tf)
    )
    .flatmap(
        lambda how: st.sampled_from(
            [{}, {"max_features": 1}, {"max_features": 5}, {"hash_bits": 3}, {"hash_bits": 14}]
        ).map(lambda columns: how | columns)
    )
    .filter(
        lambda how: not ("zone_terms" in how and "zones" in how) or set(_list(how["zone_terms"])) <= how["zones"].keys()
    )
)


def _assert_same(X, names, expected, transformer):
    assert transformer.get_feature_names_out().tolist() == names
    assert X.dtype == np.float32
    assert X.has_sorted_indices
    assert csr_matrix(X, copy=True).has_canonical_format
    assert np.all(X.data != 0)
    assert np.array_equal(X.toarray(), expected)


@given(st.lists(documents, min_size=1, max_size=8), st.lists(documents, max_size=4), options)
@settings(max_examples=200, deadline=None)
def test_rows_are_those_of_plain_python_to_the_bit(train, new, how):
    transformer = TfIdf(TOKENS, **how)
    names, expected = _naive(train, train, how)
    _assert_same(transformer.fit_transform(train), names, expected, transformer)
    _, expected = _naive(train, new, how)
    _assert_same(transformer.transform(iter(new)), names, expected, transformer)


def _naive(train, documents, how):
    how = dict(how)
    return naive.tf_idf(train, documents, **({"idf_": how.pop("idf")} if "idf" in how else {}), **how)


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"zones": {"title": 2, "body": 1}},
        {"zone_terms": True, "ngrams": 2},
        {"zone_terms": ["title"], "ngrams": 3, "ngram_min_df": 1, "ngram_weight": 0.5},
        {"chars": 4, "char_weight": 0.3, "min_df": 2},
        {"weighting": "bm25", "ngrams": 2, "zones": {"title": 2, "body": 1}},
        {"hash_bits": 12, "ngrams": 3, "chars": 3, "zone_terms": ["title"]},
        {"idf": "smooth"},
        {"idf": "none"},
    ],
)
def test_rows_of_documents_in_zones_are_those_of_plain_python(how):
    transformer = TfIdf(**how).fit(TRAIN)
    names, expected = _naive(TRAIN, NEW, how)
    _assert_same(transformer.transform(NEW), names, expected, transformer)


def test_a_zone_named_apart_counts_as_shared_terms_too():
    document = Zones({"title": "cocoa rise", "body": "cocoa"})
    names = TfIdf(TOKENS, zone_terms=["title"]).fit([document]).get_feature_names_out().tolist()
    assert names == ["cocoa", "rise", "title:cocoa", "title:rise"]
    names = TfIdf(TOKENS, zone_terms=True).fit([document]).get_feature_names_out().tolist()
    assert names == ["body:cocoa", "title:cocoa", "title:rise"]


def test_ngrams_do_not_cross_zones():
    transformer = TfIdf(TOKENS, ngrams=3, ngram_min_df=1).fit(
        [Zones({"title": "cocoa rise", "body": "oil wheat corn"})]
    )
    ngrams = [name for name in transformer.vocabulary_ if " " in name]
    assert ngrams == ["cocoa rise", "oil wheat", "oil wheat corn", "wheat corn"]


def test_characters_of_a_term_have_a_space_at_either_end():
    assert list(TfIdf(TOKENS, chars=3).fit(["Oil"]).vocabulary_) == ["oil", "~ oi~", "~il ~", "~oil~"]
    assert list(TfIdf(TOKENS, chars=9).fit(["Oil"]).vocabulary_) == ["oil", "~ oil ~"]


def test_a_term_that_reads_like_an_ngram_is_one_column_with_it():
    class Written:
        def count_terms(self, texts, **how):
            assert list(texts) == ["", ""]
            # The first text has the term "oil wheat", the second one the terms "oil" and "wheat" in a row.
            ids, counts = np.array([1, 0, 2, ~0], np.int32), np.ones(4, np.int32)
            ngrams = np.array([[0, 2]], np.int32)
            terms, ends = ["oil", "oil wheat", "wheat"], np.array([1, 4])
            return TermCounts(ends, ids, counts, terms, ngrams, np.zeros(0, np.int32))

    transformer = TfIdf(Written(), ngrams=2, ngram_min_df=1, idf="none")
    X = transformer.fit_transform(["", ""])
    assert transformer.get_feature_names_out().tolist() == ["oil", "oil wheat", "wheat"]
    assert (X.toarray() > 0).tolist() == [[False, True, False], [True, True, True]]


def test_columns_by_hash_are_bounded_and_have_numbers_for_names():
    transformer = TfIdf(TOKENS, hash_bits=4, ngrams=2)
    X = transformer.fit_transform(TRAIN)
    assert X.shape[1] == 16
    assert transformer.vocabulary_ is None
    assert transformer.get_feature_names_out().tolist() == [f"#{i}" for i in range(16)]


def test_the_hash_is_murmurhash3_to_the_published_values():
    # Of the reference implementation, seed 0.
    assert space_hashes(["", "hello"]).tolist() == [0, 0x248BFA47]


def test_bm25_saturates_and_feels_length():
    texts = ["oil oil oil oil wheat", "oil wheat", "oil", "zinc"]
    X = TfIdf(TOKENS, weighting="bm25", k1=1.0, b=1.0, idf="none").fit_transform(texts).toarray()
    # l = 5 and a = 9/4: 4 occurrences count 4 / (4 + 20/9), one counts 1 / (1 + 20/9).
    assert X[0, 0] / X[0, 1] == pytest.approx((4 / (4 + 20 / 9)) / (1 / (1 + 20 / 9)))
    assert X[1, 0] == X[1, 1]


def test_the_bytes_of_the_rows_are_told(caplog):
    with caplog.at_level(logging.INFO, "textcat"):
        X = TfIdf(TOKENS).fit_transform(TRAIN)
    assert row_bytes(X) == 8 * X.nnz + X.indptr.itemsize * (len(TRAIN) + 1)
    assert f"{len(TRAIN)} rows of {X.shape[1]} columns take 0.0 MB" in caplog.text


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


def test_many_columns_come_out_sorted():
    long = " ".join(f"{a}{b}{c}" for a in "qwrt" for b in "zxcvbnm" for c in "sdfghjk")
    transformer = TfIdf(TOKENS)
    X = transformer.fit_transform([long, "qzs", "other words"])
    assert np.all(np.diff(X.indices[: X.indptr[1]]) > 0)
    assert X.indptr[1] == 4 * 7 * 7


def test_rows_have_unit_length_or_no_entry():
    X = TfIdf(TOKENS).fit(TRAIN).transform(NEW)
    lengths = np.sqrt(X.multiply(X).sum(axis=1).A1)
    assert lengths == pytest.approx([1, 1, 1, 0, 1, 1, 0, 0, 0])


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
@settings(max_examples=150, deadline=None)
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


def test_what_was_counted_holds_no_ngram_that_is_too_rare():
    texts = ["oil price falls", "oil price rises", "oil price falls", "wheat price"]
    counted = TfIdf(TOKENS, ngrams=3, ngram_min_df=2).count(texts)
    assert ngram_names(counted.counts, np.arange(len(counted.counts.ngrams))) == [
        "oil price",
        "price falls",
        "oil price falls",
    ]
    assert counted.lengths.tolist() == [6, 6, 6, 3]


def test_no_row_is_given_before_anything_was_learnt():
    transformer = TfIdf(TOKENS)
    with pytest.raises(NotFittedError):
        transformer.rows_of(transformer.count(TRAIN))


def test_fitting_and_transforming_at_once_or_in_turn_is_the_same():
    at_once = TfIdf(TOKENS, ngrams=2).fit_transform(TRAIN)
    in_turn = TfIdf(TOKENS, ngrams=2).fit(TRAIN).transform(TRAIN)
    assert (at_once != in_turn).nnz == 0


def test_rows_do_not_depend_on_the_block(monkeypatch):
    transformer = TfIdf(TOKENS).fit(TRAIN)
    whole = transformer.transform(NEW)
    monkeypatch.setattr("textcat.features.tfidf.DOCUMENTS_PER_BLOCK", 2)
    parts = transformer.transform(NEW)
    assert parts.has_sorted_indices
    assert (whole != parts).nnz == 0
    assert transformer.transform([]).shape == (0, whole.shape[1])


@pytest.mark.parametrize("more", [{}, {"hash_bits": 10}])
def test_rows_stay_right_when_the_token_cache_drops_its_ids(more):
    transformer = TfIdf(Tokens(memo_bytes=0), ngrams=3, chars=3, ngram_min_df=1, **more).fit(TRAIN)
    expected = transformer.transform(NEW)
    transformer.transform(["quite other words come first", "and then more of them"])
    assert (transformer.transform(NEW) != expected).nnz == 0


def test_terms_that_can_have_no_column_take_no_counter():
    transformer = TfIdf(Tokens(), ngrams=2, ngram_min_df=1).fit(TRAIN)
    expected = transformer.transform(TRAIN)
    transformer.transform([f"new{'x' * i} words traders{'y' * i}" for i in range(200)])
    counter = transformer.tokens_.counter
    assert set(counter.terms) == {*transformer.vocabulary_, OTHER}
    np.testing.assert_array_equal(transformer.transform(TRAIN).toarray(), expected.toarray())


def test_names_are_read_in_every_way_there_is():
    known = known_terms(["a:b c d", "x", " "], 3, zone_terms=True)
    assert set(known.terms) == {"a:b", "c", "d", "a:b c", "c d", "a:b c d", "b", "b c", "b c d", "x", " "}
    assert known.terms[-1] == " "
    counts = TermCounts(*[np.zeros(0, np.int32)] * 3, known.terms, known.ngrams, np.zeros(0, np.int32))
    names = ngram_names(counts, np.arange(len(known.ngrams)))
    assert {"a:b c", "a:b c d", "b c d", "b c", "c d", "   "} >= set(names) >= {"a:b c", "a:b c d", "b c d", "   "}
    assert known_terms(["a:b"], 1, zone_terms=False).terms == ["a:b", " "]


def test_pairs_of_words_are_read_as_other_names_are():
    names = ["a", "b c", "c", "c d", "b e", "a:b f"]
    pairs, also = (known_terms([*names, *more], 2, zone_terms=False) for more in ([], ["x y z"]))
    assert pairs.terms == [*also.terms[:-6], OTHER]
    np.testing.assert_array_equal(pairs.ngrams[:-1], also.ngrams[: len(pairs.ngrams) - 1])
    read = [[pairs.terms[i] for i in pair] for pair in pairs.ngrams]
    assert read == [*(name.split() for name in names if " " in name), [OTHER, OTHER]]
    place = {name: i for i, name in enumerate(names)}
    columns = [[place.get(name, -1) for name in of] for of in (pairs.terms, [*map(" ".join, read)])]
    assert [column.tolist() for column in pairs.columns] == columns


def test_names_that_cannot_be_encoded_are_read_as_others_are():
    assert known_terms(["\ud800", "a \ud800"], 2, zone_terms=False).terms == ["\ud800", "a \ud800", "a", OTHER]


def test_a_zone_counts_sublinearly_before_it_is_weighted():
    half = {"zones": {"title": 0.5, "body": 1}, "sublinear_tf": True}
    names, expected = naive.tf_idf(TRAIN, NEW, **half)
    transformer = TfIdf(TOKENS, **half).fit(TRAIN)
    _assert_same(transformer.transform(NEW), names, expected, transformer)
    assert transformer.transform(NEW).data.min() > 0


def test_rows_of_float64_round_to_those_of_float32():
    exact = TfIdf(TOKENS, dtype=np.float64).fit_transform(TRAIN)
    assert exact.dtype == np.float64
    assert np.array_equal(exact.astype(np.float32).toarray(), TfIdf(TOKENS).fit_transform(TRAIN).toarray())


def test_max_features_keeps_the_commonest_and_breaks_ties_by_name():
    transformer = TfIdf(TOKENS, max_features=3).fit(["oil wheat", "oil corn", "zinc corn", "barley"])
    assert transformer.get_feature_names_out().tolist() == ["barley", "corn", "oil"]


@pytest.mark.parametrize("more", [{}, {"weighting": "bm25", "ngrams": 2}, {"hash_bits": 9, "chars": 4}])
def test_a_restored_transformer_gives_the_same_rows(more):
    how = {"zones": {"title": 2, "body": 1}, "zone_terms": True, **more}
    fitted = TfIdf(TOKENS, **how).fit(TRAIN)
    learnt = (fitted.vocabulary_, fitted.idf_, fitted.n_documents_, fitted.average_lengths_)
    restored = TfIdf.restore(*learnt, **how)
    assert restored.get_params(deep=False) | {"tokens": 0} == fitted.get_params(deep=False) | {"tokens": 0}
    assert (restored.transform(NEW) != fitted.transform(NEW)).nnz == 0
    assert restored.n_documents_ == len(TRAIN)


@pytest.mark.parametrize(
    ("terms", "more"), [(["oil"], {}), (None, {}), (None, {"hash_bits": 3}), (["oil"], {"hash_bits": 1})]
)
def test_what_does_not_fit_together_is_not_restored(terms, more):
    with pytest.raises(TextcatError, match="2 idf do not fit the"):
        TfIdf.restore(terms, np.ones(2), 9, **more)


def test_what_a_transformer_has_learnt_gives_the_same_rows_without_it():
    fitted = TfIdf(TOKENS, ngrams=2, sublinear_tf=True).fit(TRAIN)
    learnt = (fitted.vocabulary_, fitted.idf_, fitted.n_documents_, fitted.average_lengths_)
    alone = TfIdf.restore(*learnt, **fitted.get_params(deep=False))
    for each in (alone, pickle.loads(pickle.dumps(alone)), copy.deepcopy(alone)):
        assert (each.transform(NEW) != fitted.transform(NEW)).nnz == 0
        assert each.get_feature_names_out().tolist() == fitted.get_feature_names_out().tolist()


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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize("method", ["fit", "fit_transform", "transform"])
def test_a_single_string_is_refused_as_scikit_learn_refuses_it(method):
    transformer = TfIdf(TOKENS).fit(TRAIN)
    with pytest.raises(ValueError, match=r"^Iterable over raw text documents expected, string object received\.$"):
        getattr(transformer, method)("a text")


@pytest.mark.parametrize(
    ("settings", "train", "message"),
    [
        ({}, [], "There is no document to learn terms from: give at least one."),
        ({}, ["a", 3.5], "Document 1 is 3.5: give a string or a document with zones."),
        ({}, [Zones({"title": None})], "Zone 'title' of document 0 is None: give a string."),
        ({"zones": {"title": -1}}, TRAIN, "The weight of zone 'title' is -1: give a positive number."),
        ({"zones": {"title": math.nan}}, TRAIN, "The weight of zone 'title' is nan: give a positive number."),
        ({"min_df": 0}, TRAIN, "min_df is 0: give a whole number of documents, at least 1."),
        ({"min_df": 0.5}, TRAIN, "min_df is 0.5: give a whole number of documents, at least 1."),
        ({"min_df": True}, TRAIN, "min_df is True: give a whole number of documents, at least 1."),
        ({"ngram_min_df": 0}, TRAIN, "ngram_min_df is 0: give a whole number of documents, at least 1."),
        ({"ngrams": 4}, TRAIN, "ngrams is 4: give 1, 2 or 3."),
        ({"ngram_weight": 0}, TRAIN, "ngram_weight is 0: give a positive number."),
        ({"chars": -1}, TRAIN, "chars is -1: give a whole number of characters, or 0 for none."),
        ({"char_weight": math.inf}, TRAIN, "char_weight is inf: give a positive number."),
        ({"hash_bits": 29}, TRAIN, "hash_bits is 29: give a whole number from 1 to 28, or None."),
        (
            {"hash_bits": 9, "max_features": 9},
            TRAIN,
            "hash_bits keeps no terms for max_features to choose from: leave one of them out.",
        ),
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
        TfIdf(TOKENS, **settings).fit(train)
    assert str(caught.value) == message
    assert isinstance(caught.value, ValueError)
