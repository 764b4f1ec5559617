"""Compiled: multiply sparse rows by dense weights, and add a bias."""

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, int64_t

import numpy as np

cdef extern from "_product.h":
    void row_product(
        const float* x, const int32_t* columns, ptrdiff_t n, const float* W, const float* b, ptrdiff_t m, float* y
    ) noexcept nogil


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
