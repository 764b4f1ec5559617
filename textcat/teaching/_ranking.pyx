"""Compiled: train a linear ranker on a few rows of a large matrix, and multiply all rows of the matrix by the weights."""

from libc.math cimport fabs
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int8_t, int32_t, int64_t, uint64_t

import numpy as np

cdef extern from "_ranking.h":
    void rows_times_32(
        const int32_t* indptr, const int32_t* indices, const float* x, ptrdiff_t first, ptrdiff_t last, const float* w,
        float bias, float* scores, int plain
    ) noexcept nogil
    void rows_times_64(
        const int64_t* indptr, const int32_t* indices, const float* x, ptrdiff_t first, ptrdiff_t last, const float* w,
        float bias, float* scores, int plain
    ) noexcept nogil
    double double_row_times(const int32_t* indices, const float* x, ptrdiff_t n, const double* w) noexcept nogil
    uint64_t drawn(uint64_t* state) noexcept nogil

ctypedef fused place:
    int32_t
    int64_t


def rows_times(
    const place[::1] indptr, const int32_t[::1] indices, const float[::1] data, ptrdiff_t first, ptrdiff_t last,
    const float[::1] w, float bias, float[::1] scores, bint plain=False,
):
    """Write ``X[i] @ w + bias`` to ``scores[i]`` for each row i of ``first <= i < last`` of the CSR matrix X.

    X has the arrays `indptr`, `indices` and `data`.

    Entry p of a row counts towards sum p mod 8. The eight sums are added by halves: sum k and sum k + 4, then k and
    k + 2, then the last two; and the bias last. So the result is the same to the bit with and without AVX2
    instructions; `plain` leaves AVX2 out.
    """
    if first >= last:
        return
    cdef const int32_t* columns = &indices[0] if indices.shape[0] else NULL
    cdef const float* x = &data[0] if data.shape[0] else NULL
    cdef const float* weights = &w[0] if w.shape[0] else NULL
    with nogil:
        if place is int32_t:
            rows_times_32(&indptr[0], columns, x, first, last, weights, bias, &scores[0], plain)
        else:
            rows_times_64(&indptr[0], columns, x, first, last, weights, bias, &scores[0], plain)


def add_up(const int32_t[::1] indices, const float[::1] data, double[::1] sums):
    """Add every entry of a matrix to the sum of its column."""
    cdef ptrdiff_t p
    with nogil:
        for p in range(indices.shape[0]):
            sums[indices[p]] += data[p]


def gather(
    const place[::1] indptr, const int32_t[::1] indices, const float[::1] data, const int64_t[::1] rows,
    int32_t[::1] number_of, int32_t[::1] columns, ptrdiff_t n_columns, int64_t[::1] ends, int32_t[::1] numbers,
    float[::1] values, ptrdiff_t n_rows,
):
    """Append the given `rows` of a matrix to the `n_rows` rows that `ends`, `numbers` and `values` already hold.

    Columns are numbered in the order in which they occur. `number_of` has the number of each column of the matrix (-1:
    not numbered yet); `columns` has the column of each number. Return the number of numbered columns, which was
    `n_columns` before.
    """
    cdef ptrdiff_t r, p, q = ends[n_rows - 1] if n_rows else 0
    cdef int32_t column
    with nogil:
        for r in range(rows.shape[0]):
            for p in range(indptr[rows[r]], indptr[rows[r] + 1]):
                column = indices[p]
                if number_of[column] < 0:
                    number_of[column] = <int32_t> n_columns
                    columns[n_columns] = column
                    n_columns += 1
                numbers[q], values[q] = number_of[column], data[p]
                q += 1
            ends[n_rows + r] = q
    return n_columns


def solve(
    const int64_t[::1] ends, const int32_t[::1] numbers, const float[::1] values, const int8_t[::1] labels,
    const double[::1] costs, double[::1] w, double bias, double constant, double tol, ptrdiff_t max_epochs, uint64_t seed,
    const double[::1] means, double square, double along, double times,
):
    """Minimise ``|w - w₀|²/2 + (b - b₀)²/2 + Σ c_i max(0, 1 - y_i (w·x_i + b·constant))²`` from w₀ = w and b₀ = bias.

    The matrix has its rows one after the other: row i has `values` in the columns `numbers`, up to ``ends[i]``. In the
    formula, x_i means row i minus a dense vector m, and w means ``w - times·m``. m is not given, only products with it:
    means[i] is that with row i, square is ``m·m``, and along is that with the array `w` at the start. Without any m,
    these products and times are 0. y are the `labels` (1 or -1), and c the `costs`.

    The method is dual coordinate descent (Hsieh et al., ICML 2008, algorithm 1 for the L2-SVM): row i has a coefficient
    α_i ≥ 0, and w = w₀ + Σ α_i y_i x_i. Every epoch presents all rows in a new random order; training ends after the
    first epoch in which no projected gradient is larger than tol, or after max_epochs. A coefficient whose projected
    gradient is at most .3 tol is not changed. The solution is written into w; b, the coefficients, the number of
    epochs, and times are returned.
    """
    cdef ptrdiff_t n = labels.shape[0], epochs = 0, i, j, k, p, first, length
    cdef double gradient, projected, worst, alpha, step
    cdef double b = bias, small = 0.3 * tol  # what less would change is not worth a pass over the row
    cdef uint64_t state = seed
    cdef int32_t[::1] order = np.arange(n, dtype=np.int32)
    cdef double[::1] squares = np.empty(n), alphas = np.zeros(n)
    with nogil:
        for i in range(n):
            squares[i] = constant * constant + 1 / (2 * costs[i])
            for p in range(ends[i - 1] if i else 0, ends[i]):
                squares[i] += <double> values[p] * <double> values[p]
            squares[i] += square - 2 * means[i]
        while n and epochs < max_epochs:
            worst = 0
            for k in range(n):
                j = k + <ptrdiff_t> (drawn(&state) % <uint64_t> (n - k))
                i = order[j]
                order[j] = order[k]
                order[k] = <int32_t> i
                first = ends[i - 1] if i else 0
                length = ends[i] - first
                alpha = alphas[i]
                gradient = constant * b
                if length:
                    gradient = double_row_times(&numbers[first], &values[first], length, &w[0]) + gradient
                gradient -= along + times * (means[i] - square)
                gradient = labels[i] * gradient - 1 + alpha / (2 * costs[i])
                projected = gradient if alpha > 0 or gradient < 0 else 0
                worst = max(worst, fabs(projected))
                if fabs(projected) > small:
                    alphas[i] = max(alpha - gradient / squares[i], 0.0)
                    step = (alphas[i] - alpha) * labels[i]
                    b += step * constant
                    along += step * means[i]
                    times += step
                    for p in range(first, first + length):
                        w[numbers[p]] += step * values[p]
            epochs += 1
            if worst <= tol:
                break
    return b, np.asarray(alphas), epochs, times
