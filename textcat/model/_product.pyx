"""Compiled: multiply sparse rows by weights, dense or sparse, add a bias, and find the highest scores."""

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, int64_t

import numpy as np


def product(
    const int64_t[::1] indptr, const int32_t[::1] indices, const float[::1] data, const float[:, ::1] weights,
    const float[::1] bias,
):
    """Return the product of rows in CSR form and weights, plus bias: shape (n_rows, n_topics), float32.

    Each number is summed in the order of the row's entries, from 0, and the bias added at last.
    """
    cdef ptrdiff_t i, n = indptr.shape[0] - 1, m = bias.shape[0]
    scores = np.empty((n, m), np.float32)
    cdef float[:, ::1] out = scores
    if n and m:
        with nogil:
            for i in range(n):
                row_product(
                    &data[0] + indptr[i], &indices[0] + indptr[i], indptr[i + 1] - indptr[i],
                    &weights[0, 0] if weights.shape[0] else NULL, &bias[0], m, &out[i, 0],
                )
    return scores


def sparse_product(
    const int64_t[::1] indptr, const int32_t[::1] indices, const float[::1] data, const int64_t[::1] starts,
    const topic_t[::1] topics, const float[::1] weights, const float[::1] bias,
):
    """Return the same as `product`, to the bit, for sparse weights in CSR form.

    The entries of feature j are those from ``starts[j]`` to ``starts[j + 1]`` in `topics` and `weights`; other weights
    are 0. The topics of a feature must ascend, and be different.
    """
    cdef ptrdiff_t i, n = indptr.shape[0] - 1, m = bias.shape[0]
    scores = np.empty((n, m), np.float32)
    cdef float[:, ::1] out = scores
    if n and m:
        with nogil:
            for i in range(n):
                row_times(
                    &data[0] + indptr[i], &indices[0] + indptr[i], indptr[i + 1] - indptr[i],
                    &starts[0], &topics[0], &weights[0], &bias[0], m, &out[i, 0],
                )
    return scores


def top(
    const int64_t[::1] indptr, const int32_t[::1] indices, const float[::1] data, const int64_t[::1] starts,
    const topic_t[::1] topics, const float[::1] weights, const float[::1] bias, ptrdiff_t k,
):
    """Return the k highest topics of each row and their scores: the same as `highest` of the `sparse_product`.

    Only the scores of one row at a time are in memory. k is from 1 to n_topics.
    """
    cdef ptrdiff_t i, n = indptr.shape[0] - 1, m = bias.shape[0]
    highest_topics, highest_scores = np.empty((n, k), np.int32), np.empty((n, k), np.float32)
    cdef int32_t[:, ::1] columns = highest_topics
    cdef float[:, ::1] values = highest_scores
    cdef float[::1] scores = np.empty(m, np.float32)
    with nogil:
        for i in range(n):
            row_times(
                &data[0] + indptr[i], &indices[0] + indptr[i], indptr[i + 1] - indptr[i],
                &starts[0], &topics[0], &weights[0], &bias[0], m, &scores[0],
            )
            row_top(&scores[0], m, k, &values[i, 0], &columns[i, 0])
    return highest_topics, highest_scores


def highest(const float[:, ::1] scores, ptrdiff_t k):
    """Return the k highest topics of each row of scores, the highest first, and their scores: each of shape (n_rows, k).

    Topics of equal scores keep their order, and nan comes last, as in ``argsort(-scores, kind="stable")``.
    k is from 1 to n_topics.
    """
    cdef ptrdiff_t i, n = scores.shape[0], m = scores.shape[1]
    highest_topics, highest_scores = np.empty((n, k), np.int32), np.empty((n, k), np.float32)
    cdef int32_t[:, ::1] columns = highest_topics
    cdef float[:, ::1] values = highest_scores
    with nogil:
        for i in range(n):
            row_top(&scores[i, 0], m, k, &values[i, 0], &columns[i, 0])
    return highest_topics, highest_scores


def are_rows(const int64_t[::1] starts, const topic_t[::1] topics, ptrdiff_t n_topics):
    """Return whether `starts` and `topics` are valid `indptr` and `indices` of a CSR matrix with `n_topics` columns.

    The topics (columns) of a row must ascend, and be different.
    """
    cdef ptrdiff_t i, e, n = starts.shape[0] - 1, size = topics.shape[0]
    cdef int32_t last
    cdef bint are = n >= 0 and starts[0] == 0 and starts[n] == size
    with nogil:
        for i in range(n):
            are = are and starts[i] <= starts[i + 1] <= size
            if not are:
                break
            last = -1
            for e in range(starts[i], starts[i + 1]):
                are = are and last < topics[e] < n_topics
                last = topics[e]
    return are
