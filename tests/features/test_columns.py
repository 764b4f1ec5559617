"""Columns have the names of terms and n-grams."""

import pickle

import numpy as np

from textcat.features.columns import NamedColumns, known_terms, ngram_names
from textcat.features.tfidf import TfIdf
from textcat.features.tokens import OTHER, TermCounts, Tokens


def test_a_term_that_reads_like_an_ngram_is_one_column_with_it():
    class Written(Tokens):
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


def test_columns_have_a_dict_only_once_one_is_looked_up():
    named = NamedColumns(["oil", "wheat"])
    assert vars(named) == {"names": ["oil", "wheat"]}
    assert named.column_of == {"oil": 0, "wheat": 1}
    assert vars(pickle.loads(pickle.dumps(named))) == {"names": ["oil", "wheat"]}


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
