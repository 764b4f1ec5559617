"""Word vectors as further columns to train on, which add knowledge about words without labelled documents.

The product of a document's vector of terms and the vectors of its words gives some hundred numbers, its dimensions.
Training uses them as columns beside the terms, so that evidence for a word transfers to words of similar meaning. A
score is linear in the dimensions, and a dimension is linear in the words. Therefore the weights of dimensions are
converted to weights of words when training has ended: the trained ranker has weights of terms only, including words
that no training document has.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from textcat.features.rows import Rows, vector_products, vector_sums

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scipy.sparse import csr_matrix

STATIC = "static"  # name of the shipped vectors
FEWEST_KNOWN = 0.5  # share of words with a vector below which texts must be in another language than the vectors
_TABLE = Path(__file__).with_name("english.npz")


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Word vectors, quantised to 8-bit integers."""

    words: Sequence[str]
    values: np.ndarray  # shape (n_words, n_dimensions), int8
    step: float  # factor of all values
    name: str  # name in recipes

    @cached_property
    def position_of(self) -> dict[str, int]:
        """The position of each word."""
        return dict(zip(self.words, range(len(self.words)), strict=True))

    def of_columns(self, column_of: np.ndarray, weight: float) -> ColumnVectors:
        """Return the vectors of columns, times a weight; `column_of` has the column of each word, -1 if it has none."""
        words = np.flatnonzero(column_of >= 0)
        words = words[np.argsort(column_of[words])]
        return ColumnVectors(column_of[words].astype(np.int32), self.values[words], weight * self.step)


class ColumnVectors(NamedTuple):
    """The word vectors of some columns of a matrix of document vectors; the other columns have none."""

    columns: np.ndarray  # ascending: shape (n_words,), int32
    values: np.ndarray  # shape (n_words, n_dimensions), int8
    step: float  # factor of all values

    def are_valid(self, n_columns: int) -> bool:
        """Return whether there is a vector for each of `columns`, which must ascend and be below `n_columns`."""
        columns = self.columns
        return (
            self.values.ndim == 2
            and columns.shape == self.values.shape[:1]
            and bool((np.diff(columns, prepend=-1) > 0).all())
            and int(columns.max(initial=-1)) < n_columns
        )

    @property
    def n_dimensions(self) -> int:
        """The number of dimensions, which become further columns."""
        return int(self.values.shape[1])

    def dimensions(self, rows: csr_matrix) -> np.ndarray:
        """Return, for each document vector (row), the sum of its words' vectors, weighted by the row's entries.

        The shape is (n_rows, n_dimensions), the type that of the rows. Each sum is taken in the order of the columns,
        so that it does not depend on other rows.
        """
        vector_of = np.full(max(rows.shape[1], int(self.columns.max(initial=-1)) + 1), -1, np.int32)
        vector_of[self.columns] = np.arange(len(self.columns), dtype=np.int32)
        sums: np.ndarray = vector_sums(*Rows.of(rows), vector_of, np.ascontiguousarray(self.values))
        return sums * rows.dtype.type(self.step)

    def beside(self, rows: csr_matrix) -> csr_matrix:
        """Return document vectors (rows) with the results of `dimensions` as further columns.

        A row gets no entries there if none of its words has a word vector.
        """
        dimensions = self.dimensions(rows)
        has_words, n_columns = dimensions.any(axis=1), rows.shape[1]
        indptr = rows.indptr + np.append(0, np.cumsum(has_words * self.n_dimensions))
        is_dimension = np.zeros(indptr[-1], bool)
        is_dimension[indptr[1:][has_words, np.newaxis] - np.arange(self.n_dimensions, 0, -1)] = True
        indices, data = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], rows.dtype)
        indices[~is_dimension], data[~is_dimension] = rows.indices, rows.data
        indices[is_dimension] = np.tile(n_columns + np.arange(self.n_dimensions), has_words.sum())
        data[is_dimension] = dimensions[has_words].ravel()
        return Rows(indptr, indices, data).matrix(n_columns + self.n_dimensions)

    def of_row(self, row: Rows) -> np.ndarray:
        """Return the result of `dimensions` for a single row: shape (n_dimensions,), float32."""
        x = np.zeros(max(int(self.columns.max(initial=0)), int(row.indices.max(initial=0))) + 1, np.float32)
        x[row.indices] = row.data
        used = np.flatnonzero(x[self.columns])
        return x[self.columns[used]] @ (self.values[used].astype(np.float32) * np.float32(self.step))

    def in_words(self, weights: np.ndarray) -> np.ndarray:
        """Convert weights of terms and of the dimensions of word vectors to weights of terms that give the same scores.

        To the weight of each word, the product of its vector and the weights of the dimensions is added. `weights` has
        a row per column of the result of `beside`, and a column per topic; the rows of the dimensions, which come last,
        are left out of the result. It is the same to the bit whatever the number of threads.
        """
        n_columns = len(weights) - self.n_dimensions
        of_words = vector_products(np.ascontiguousarray(self.values), np.ascontiguousarray(weights[n_columns:]))
        words = weights[:n_columns].copy()
        words[self.columns] += of_words * weights.dtype.type(self.step)
        return words


@cache
def english_vectors() -> WordVectors:
    """Return the vectors of 21,719 English words that come with textcat: 256 dimensions each.

    They were made from the sentence transformer all-MiniLM-L6-v2 (Apache 2.0) by scripts/make_word_vectors.py.
    """
    with np.load(_TABLE) as table:
        return WordVectors(bytes(table["words"]).decode().split("\n"), table["values"], float(table["step"]), STATIC)
