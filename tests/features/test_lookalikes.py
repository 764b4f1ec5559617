"""Terms that look like the words of a text: inflected forms and compounds, without any n-gram of the text."""

import numpy as np
import pytest
import scipy.sparse as sp

from textcat.features.lookalikes import LookAlikes, terms_of_like_meaning
from textcat.features.tokens import char_ngrams
from textcat.features.vectors import ColumnVectors

WORDS = ["boat", "boats", "lifeboat", "boating", "bread", "breads", "timber", "of", "boat bread"]


def row_of(terms, *words):
    row = np.zeros((1, len(terms)), np.float32)
    row[0, [terms.index(word) for word in words]] = 1
    return sp.csr_array(row)


def cosine(word, other, words):
    """The cosine of two words' n-grams, weighted by idf among the words, computed the slow way."""
    sets = {each: set(char_ngrams(each, range(4, 5))) for each in words}
    idf = {g: 1 + np.log((1 + len(words)) / (1 + sum(g in s for s in sets.values()))) for s in sets.values() for g in s}

    def dot(one, two):
        return sum(idf[gram] ** 2 for gram in sets[one] & sets[two])

    return dot(word, other) / np.sqrt(dot(word, word) * dot(other, other))


def test_a_word_becomes_the_words_that_share_ngrams_with_it():
    alike = LookAlikes(WORDS).rows(row_of(WORDS, "boat")).toarray()[0]
    words = WORDS[:7]  # the others are too short, or n-grams of words
    cosines = np.array([cosine("boat", word, words) for word in words] + [0, 0])
    cosines[cosines < 0.3] = 0
    assert alike == pytest.approx(cosines / np.linalg.norm(cosines), abs=1e-6)
    assert {WORDS[j] for j in np.flatnonzero(alike)} >= {"boat", "boats", "lifeboat"}


def test_the_length_of_a_row_is_without_ngrams_of_words():
    rows = sp.vstack([row_of(WORDS, "boat", "bread", "boat bread"), row_of(WORDS), row_of(WORDS, "of")], format="csr")
    assert LookAlikes(WORDS).lengths(rows).tolist() == [2, 0, 1]


def test_rows_have_unit_length_and_are_empty_without_a_word():
    rows = sp.vstack([row_of(WORDS, "boat", "bread"), row_of(WORDS, "of"), row_of(WORDS)], format="csr")
    alike = LookAlikes(WORDS).rows(rows)
    assert alike.shape == rows.shape
    assert alike.dtype == np.float32
    assert np.linalg.norm(alike.toarray(), axis=1) == pytest.approx([1, 0, 0])


def test_a_word_has_thirty_look_alikes_at_most_the_same_for_blocks_of_any_size(monkeypatch):
    random = np.random.default_rng(0)
    others = ["".join(random.choice(list("abcdefghij"), 8)) for _ in range(2000)]
    terms = [*(f"lumberyards{a}{b}" for a in "abcdefgh" for b in "abcdefgh"), *others]
    rows = sp.csr_array(np.eye(64, len(terms), dtype=np.float32))
    whole = LookAlikes(terms).rows(rows)
    assert np.diff(whole.indptr).max() == 30
    monkeypatch.setattr("textcat.features.lookalikes.BLOCK", 7)
    assert (LookAlikes(terms).rows(rows) != whole).nnz == 0


def test_where_columns_have_ngrams_of_characters_these_are_kept():
    terms = ["boat", "~ boa~", "~boat~", "~oat ~", "bread"]
    look_alikes = LookAlikes(terms)
    row = sp.csr_array(np.array([[5, 3, 0, 4, 1]], np.float32))
    assert look_alikes.rows(row).toarray()[0] == pytest.approx([0, 0.6, 0, 0.8, 0])
    assert row.nnz == 4
    assert look_alikes.ngrams.tolist() == [1, 2, 3]
    assert look_alikes.lengths(row).tolist() == [4]


@pytest.mark.parametrize("terms", [[], ["of", "in"]])
def test_there_may_be_no_word(terms):
    rows = sp.csr_array((2, len(terms)), dtype=np.float32)
    assert LookAlikes(terms).rows(rows).shape == (2, len(terms))


def test_a_row_becomes_the_terms_whose_vectors_are_nearest_to_the_sum_of_its_words(monkeypatch):
    random = np.random.default_rng(0)
    columns, values = np.arange(0, 400, 2, dtype=np.int32), random.integers(-9, 10, (200, 8), dtype=np.int8)
    rows = sp.random_array((50, 400), density=0.01, format="csr", dtype=np.float32, rng=random)
    found = terms_of_like_meaning(rows, ColumnVectors(columns, values, 0.5))
    for row, alike in zip(rows.toarray(), found.toarray(), strict=True):
        wanted, total = np.zeros(400), row[columns] @ values
        if total.any():
            cosines = values @ total / np.linalg.norm(total) / np.linalg.norm(values, axis=1)
            nearest = [k for k in np.argsort(-cosines, kind="stable")[:30] if cosines[k] >= 0.4]
            wanted[columns[nearest]] = cosines[nearest] / np.linalg.norm(cosines[nearest])
        assert alike == pytest.approx(wanted, abs=1e-5)
    monkeypatch.setattr("textcat.features.lookalikes.BLOCK", 7)
    assert terms_of_like_meaning(rows, ColumnVectors(columns, values, 0.5)).toarray() == pytest.approx(found.toarray())
