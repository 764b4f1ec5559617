"""Store sparse matrices with a column for each topic as CSR arrays, which may be memory-mapped, for compiled code."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from textcat.model._product import are_rows

if TYPE_CHECKING:
    from scipy.sparse import csr_array

FEW_TOPICS = 1 << 16  # the number of topics up to which column numbers take two bytes

_OF_TOPICS = np.dtype(np.int32), np.dtype(np.uint16)

Parts: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]  # row starts (int64), columns, values


def parts_of(matrix: Any) -> Parts:
    """Return the CSR arrays (indptr, indices, data) of a matrix with a column per topic, in the types of compiled code.

    The arrays of a matrix that `csr_weights` has returned are not copied.
    """
    return matrix.indptr.astype(np.int64, copy=False), _numbers(matrix.indices), matrix.data


def parts_to_store(matrix: Any, names: tuple[str, str, str]) -> dict[str, np.ndarray]:
    """Return the CSR arrays (indptr, indices, data) of a matrix with a column per topic, under the given names.

    Column numbers take two bytes if they fit.
    """
    starts, topics, values = parts_of(matrix)
    numbers = topics.astype(np.uint16 if matrix.shape[1] <= FEW_TOPICS else np.int32, copy=False)
    return dict(zip(names, (starts, numbers, values), strict=True))


def stored_matrix(arrays: Mapping[str, np.ndarray], names: tuple[str, str, str], n_topics: int) -> "csr_array":
    """Return the matrix whose CSR arrays are stored under the given names; the arrays are not copied."""
    indptr, indices, data = map(arrays.__getitem__, names)
    return csr_weights(indptr, indices, data, n_topics)


def types_of_parts(names: tuple[str, str, str], numbers: tuple[np.dtype[Any], ...]) -> dict[str, tuple[Any, ...]]:
    """Return the number types that stored CSR arrays may have, by name; `numbers` has the types of the values."""
    return dict(zip(names, ((np.dtype(np.int64),), _OF_TOPICS, numbers), strict=True))


def are_parts(arrays: Mapping[str, np.ndarray], names: tuple[str, str, str], n_rows: int, n_columns: int) -> bool:
    """Return whether the arrays under the given names form a valid, contiguous CSR matrix of the given shape."""
    starts, columns, values = map(arrays.__getitem__, names)
    return (
        starts.shape == (n_rows + 1,)
        and columns.ndim == 1
        and columns.shape == values.shape
        and bool(are_rows(starts, columns, n_columns))
    )


def canonical_weights(weights: Any) -> "csr_array":
    """Return sparse weights in CSR form, with sorted topics and no duplicate entries."""
    rows = weights.tocsr()
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return csr_weights(rows.indptr, rows.indices, rows.data, rows.shape[1])


def csr_weights(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, n_topics: int) -> "csr_array":
    """Return a csr_array that shares the given (perhaps mapped) arrays; scipy's constructor would copy the indices.

    Indices may have two bytes, as in stored models. Compiled code accepts such an array; scipy needs the result of
    `wide`.
    """
    from scipy.sparse import csr_array  # imported here, so that tagging with dense weights need not import it

    weights = csr_array((len(indptr) - 1, n_topics), dtype=data.dtype)
    weights.indptr, weights.indices = indptr.astype(np.int64, copy=False), _numbers(indices)
    weights.data = data
    weights.has_canonical_format = True
    return weights


def wide(weights: "csr_array") -> "csr_array":
    """Return sparse weights whose column numbers are 32-bit integers, so that scipy can compute with them."""
    if weights.indices.dtype != np.uint16:
        return weights
    return csr_weights(weights.indptr, weights.indices.astype(np.int32), weights.data, weights.shape[1])


def column_of(matrix: Any, column: int, rows: np.ndarray | None = None) -> np.ndarray:
    """Return the entries of a column of a sparse matrix, in the given rows or in all: shape (n_rows,)."""
    starts, topics, values = parts_of(matrix)
    entries_of_column = np.zeros(len(starts) - 1 if rows is None else len(rows), values.dtype)
    if rows is None:
        entries = np.flatnonzero(topics == column)
        entries_of_column[np.searchsorted(starts, entries, side="right") - 1] = values[entries]
        return entries_of_column
    for i, (start, end) in enumerate(zip(starts[rows].tolist(), starts[rows + 1].tolist(), strict=True)):
        # column numbers are sorted within each row
        entry = start + int(np.searchsorted(topics[start:end], topics.dtype.type(column)))
        if entry < end and topics[entry] == column:
            entries_of_column[i] = values[entry]
    return entries_of_column


def _numbers(indices: np.ndarray) -> np.ndarray:
    """Return topic numbers in the types of compiled code: two-byte numbers stay, all others become four bytes."""
    return indices if indices.dtype == np.uint16 else indices.astype(np.int32, copy=False)
