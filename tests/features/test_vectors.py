"""Dimensions of rows are sums over words, and weights of dimensions are weights of words."""

import hashlib

import numpy as np
import pytest
import scipy.sparse as sp

from textcat.features.rows import Rows, vector_products, vector_sums
from textcat.features.vectors import WordVectors, english_vectors


@pytest.fixture
def rows():
    return sp.random_array((7, 12), density=0.4, format="csr", dtype=np.float32, random_state=0).tocsr()


@pytest.fixture
def vectors():
    values = np.random.default_rng(1).integers(-127, 128, (5, 3)).astype(np.int8)
    words = WordVectors(["c", "a", "unknown", "f", "l"], values, 0.01, "five words")
    return words.of_columns(np.array([2, 0, -1, 5, 11]), weight=2.0)


def test_dimensions_are_sums_over_the_words_of_a_row(rows, vectors):
    values = {0: 1, 2: 0, 5: 3, 11: 4}  # the word of each column
    assert vectors.columns.tolist() == [*values]
    table = np.random.default_rng(1).integers(-127, 128, (5, 3)) * 0.02
    dense = rows.toarray()
    naive = sum(np.outer(dense[:, column], table[word]) for column, word in values.items())
    np.testing.assert_allclose(vectors.dimensions(rows), naive, atol=1e-6)
    beside = vectors.beside(rows)
    np.testing.assert_array_equal(beside.toarray(), np.hstack([dense, vectors.dimensions(rows)]))
    for i in range(len(dense)):
        np.testing.assert_allclose(vectors.of_row(Rows.of(rows[[i]])), naive[i], atol=1e-6)
        np.testing.assert_array_equal(vectors.dimensions(rows[[i]])[0], vectors.dimensions(rows)[i])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_and_products_of_vectors_are_those_of_plain_loops_in_order(rows, dtype):
    random = np.random.default_rng(3)
    values = random.integers(-127, 128, (4, 19)).astype(np.int8)
    vector_of = np.array([3, -1, 0, 1, -1, 2, 2, -1, 0, 3, 1, -1], np.int32)
    rows, sums = rows.astype(dtype), np.zeros((7, 19), dtype)
    for i, sum_of_row in enumerate(sums):
        for p in range(*rows.indptr[i : i + 2]):
            if (vector := vector_of[rows.indices[p]]) >= 0:
                sum_of_row += rows.data[p] * values[vector].astype(dtype)
    np.testing.assert_array_equal(vector_sums(*Rows.of(rows), vector_of, values), sums)
    weights, products = random.normal(size=(19, 5)).astype(dtype), np.zeros((4, 5), dtype)
    for product, vector in zip(products, values, strict=True):
        for value, of_dimension in zip(vector.astype(dtype), weights, strict=True):
            product += value * of_dimension
    np.testing.assert_array_equal(vector_products(values, weights), products)
    assert vector_products(values, weights[:, :0]).shape == (4, 0)
    assert vector_sums(*Rows.of(rows[:0]), vector_of, values).shape == (0, 19)


def test_a_row_without_a_known_word_has_no_dimensions(rows, vectors):
    rows[2] = 0
    rows.eliminate_zeros()
    beside = vectors.beside(rows)
    assert np.diff(beside.indptr)[2] == 0
    assert beside.has_canonical_format
    np.testing.assert_array_equal(beside.toarray(), np.hstack([rows.toarray(), vectors.dimensions(rows)]))


def test_weights_in_words_give_the_scores_that_weights_of_dimensions_give(rows, vectors):
    weights = np.random.default_rng(2).normal(size=(12 + 3, 4)).astype(np.float32)
    in_words = vectors.in_words(weights)
    assert in_words.shape == (12, 4)
    np.testing.assert_allclose(rows @ in_words, vectors.beside(rows) @ weights, atol=1e-5)
    no_words = [i for i in range(12) if i not in vectors.columns]
    np.testing.assert_array_equal(in_words[no_words], weights[no_words])


def test_the_vectors_of_english_words_know_which_words_are_similar():
    english = english_vectors()
    assert (len(english.words), english.values.shape) == (21_719, (21_719, 256))
    assert [*english.words] == sorted(set(english.words))

    def similarity(one: str, other: str) -> float:
        a, b = (english.values[english.position_of[word]].astype(float) for word in (one, other))
        return a @ b / np.linalg.norm(a) / np.linalg.norm(b)

    for word, near, far in (("wheat", "corn", "piano"), ("bank", "loan", "tennis"), ("court", "judge", "banana")):
        assert similarity(word, near) > 0.3 > similarity(word, far)


def test_the_table_is_the_one_that_models_were_measured_with():
    assert (
        hashlib.sha256(english_vectors().values.tobytes()).hexdigest()
        == "8f83261f12662b519182c0db94e51db550250112672982831396f39b8dc3671f"
    )
