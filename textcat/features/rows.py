"""Sparse document vectors (rows) as bare arrays, for compiled code, and their conversion to matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from textcat.features._rows import document_frequencies as document_frequencies
from textcat.features._rows import release_memory as release_memory
from textcat.features._rows import text_lengths as text_lengths
from textcat.features._rows import vector_products as vector_products
from textcat.features._rows import vector_sums as vector_sums

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


class Rows(NamedTuple):
    """The three arrays of a sparse CSR matrix, whose rows are documents."""

    indptr: np.ndarray  # shape (n_documents + 1,), int64
    indices: np.ndarray  # shape (n_entries,), int32, sorted in each row
    data: np.ndarray  # shape (n_entries,), float32 or float64

    @classmethod
    def of(cls, matrix: Any) -> Rows:
        """Return the arrays of a matrix in CSR form, as compiled code takes them."""
        return cls(matrix.indptr.astype(np.int64, copy=False), matrix.indices.astype(np.int32, copy=False), matrix.data)

    @property
    def has_terms(self) -> np.ndarray:
        """Whether each row has an entry, that is, the document has a term that the features know: a bool array."""
        return np.asarray(self.indptr[1:] > self.indptr[:-1])

    def part(self, start: int, stop: int) -> Rows:
        """Return the rows from `start` to before `stop`, or to the last one; entries are not copied."""
        indptr = self.indptr[start : stop + 1]
        entries = slice(indptr[0], indptr[-1])
        return Rows(indptr - indptr[0], self.indices[entries], self.data[entries])

    def matrix(self, n_columns: int) -> csr_matrix:
        """Return the rows as a matrix with a given number of columns; the matrix shares the arrays."""
        from scipy import sparse  # imported here, because tagging in blocks needs no matrix

        X = sparse.csr_matrix(self[::-1], shape=(len(self.indptr) - 1, n_columns))
        X.has_sorted_indices = X.has_canonical_format = True
        return X


def row_bytes(X: csr_matrix | Rows) -> int:
    """Return the number of bytes that rows take in memory."""
    return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
