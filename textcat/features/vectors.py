"""Vectors of words: what is known of words without any labelled document, as further columns to train on.

The row of a document times the vectors of its words gives some hundred numbers, its dimensions. Training sees them
beside the terms, so that what it learns of a word counts for words of similar meaning, too. A ranker is a sum over
columns, and a dimension is a sum over words. Therefore the weights of the dimensions are turned into weights of words
once training has ended: the trained ranker has terms alone, among them words that no training document has.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from textcat.features.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scipy.sparse import csr_matrix

STATIC = "static"  # the name of the vectors that come with textcat
_TABLE = Path(__file__).with_name("english.npz")


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Hold the vectors of words, as small whole numbers."""

    words: Sequence[str]
    values: np.ndarray  # shape (n_words, n_dimensions), int8
    step: float  # by which all values are to be multiplied
    name: str  # by which a recipe names them

    @cached_property
    def position_of(self) -> dict[str, int]:
        """The position of each word."""
        return dict(zip(self.words, range(len(self.words)), strict=True))

    def of_columns(self, names: Sequence[str], weight: float) -> ColumnVectors:
        """Return the vectors of those columns whose names are words, times a weight."""
        known = [(column, self.position_of[name]) for column, name in enumerate(names) if name in self.position_of]
        columns, positions = np.array(known, np.int32).reshape(-1, 2).T
        return ColumnVectors(np.ascontiguousarray(columns), self.values[positions], weight * self.step)


class ColumnVectors(NamedTuple):
    """Hold the vectors of some columns of rows; the other columns have none."""

    columns: np.ndarray  # ascending: shape (n_words,), int32
    values: np.ndarray  # shape (n_words, n_dimensions), int8
    step: float  # by which all values are to be multiplied

    def fit(self, n_columns: int) -> bool:
        """Return whether there is a vector for each column, and the columns are columns of rows, in order."""
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
        """Return the dimensions of rows: shape (n_rows, n_dimensions), in the type of the rows.

        Each sum is taken in the order of the columns, so that it does not depend on other rows.
        """
        vectors = self.values.astype(rows.dtype) * rows.dtype.type(self.step)
        return np.asarray(rows[:, self.columns] @ vectors)

    def beside(self, rows: csr_matrix) -> csr_matrix:
        """Return rows with their dimensions as further columns."""
        from scipy import sparse

        return sparse.hstack([rows, sparse.csr_matrix(self.dimensions(rows))], format="csr", dtype=rows.dtype)

    def of_row(self, row: Rows) -> np.ndarray:
        """Return the dimensions of a single row: shape (n_dimensions,), float32."""
        x = np.zeros(max(int(self.columns.max(initial=0)), int(row.indices.max(initial=0))) + 1, np.float32)
        x[row.indices] = row.data
        used = np.flatnonzero(x[self.columns])
        return x[self.columns[used]] @ (self.values[used].astype(np.float32) * np.float32(self.step))

    def in_words(self, weights: np.ndarray) -> np.ndarray:
        """Return weights without those of the dimensions, which are added to the weights of words.

        `weights` has a row per column of `beside`, and a column per topic. The result is the same to the bit whatever
        the number of threads.
        """
        from scipy import sparse

        n_columns = len(weights) - self.n_dimensions
        words = weights[:n_columns].copy()
        vectors = sparse.csr_matrix(self.values.astype(weights.dtype) * weights.dtype.type(self.step))
        words[self.columns] += vectors @ weights[n_columns:]
        return words


@cache
def english_vectors() -> WordVectors:
    """Return the vectors of 21,719 English words that come with textcat: 256 dimensions each.

    They were made from the sentence transformer all-MiniLM-L6-v2 (Apache 2.0) by scripts/make_word_vectors.py.
    """
    with np.load(_TABLE) as table:
        return WordVectors(bytes(table["words"]).decode().split("\n"), table["values"], float(table["step"]), STATIC)
