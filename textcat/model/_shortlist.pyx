"""Compiled: find the topics nearest to each document, its products with them, and sums over topics related to them."""

from libc.math cimport exp, sqrt
from libc.stdint cimport int32_t, int64_t

import numpy as np

from textcat.model._product cimport row_times, topic_t


cdef enum:
    SAMPLED_ONE_OF = 16  # topics, to guess the least similarity that is listed


cdef float nth_highest(float* values, Py_ssize_t size, Py_ssize_t n) noexcept nogil:
    """Return the n-th highest value, with n = 0 for the highest; the values are left in another order."""
    cdef Py_ssize_t low = 0, high = size - 1, i, j
    cdef float pivot
    while low < high:
        pivot = values[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if n <= j:
            high = j
        elif n >= i:
            low = i
        else:
            break
    return values[n]


def nearest(
    const int64_t[::1] indptr, const int32_t[::1] indices, const float[::1] data, const int64_t[::1] starts,
    const topic_t[::1] topics, const float[::1] values, Py_ssize_t n_topics, Py_ssize_t k,
):
    """Return for each row the k columns of a CSR matrix with which its dot products are highest: (n_rows, k), int32.

    The matrix (`starts`, `topics` and `values`) has a row per feature and a column per topic, such as its centroid. The
    columns of each row ascend. Of equal products, the first ones are taken. Only products above 0 count: if there are
    fewer than k, -1 fills the row.
    """
    cdef Py_ssize_t i, t, n, n_rows = indptr.shape[0] - 1, n_sampled, taken, ties
    cdef Py_ssize_t rank = k // SAMPLED_ONE_OF + 3 * <Py_ssize_t>sqrt(k // SAMPLED_ONE_OF + 1.0)
    cdef float bound, least
    listed = np.full((n_rows, k), -1, np.int32)
    cdef int32_t[:, ::1] out = listed
    cdef float[::1] total = np.empty(n_topics, np.float32)
    cdef float[::1] none = np.zeros(n_topics, np.float32)
    cdef float[::1] sample = np.empty(n_topics, np.float32)
    cdef int32_t[::1] reached = np.empty(n_topics + 1, np.int32)
    with nogil:
        for i in range(n_rows):
            row_times(
                &data[0] + indptr[i], &indices[0] + indptr[i], indptr[i + 1] - indptr[i],
                &starts[0], &topics[0], &values[0], &none[0], n_topics, &total[0],
            )
            # A value of a sample that most likely k others exceed spares looking at most of them again.
            n_sampled = (n_topics + SAMPLED_ONE_OF - 1) // SAMPLED_ONE_OF
            for t in range(n_sampled):
                sample[t] = total[t * SAMPLED_ONE_OF]
            bound = nth_highest(&sample[0], n_sampled, rank) if rank < n_sampled else 0
            n = 0
            if bound > 0:
                for t in range(n_topics):  # without a branch, as no processor can guess which topics these are
                    reached[n] = <int32_t>t
                    n += total[t] >= bound
            if n < k:
                n = 0
                for t in range(n_topics):
                    reached[n] = <int32_t>t
                    n += total[t] > 0
            least, ties = 0, 0
            if n > k:
                for t in range(n):
                    sample[t] = total[reached[t]]
                least, ties = nth_highest(&sample[0], n, k - 1), k
                for t in range(n):
                    ties -= sample[t] > least  # how many of those that equal the least one are taken
            taken = 0
            for t in range(n):
                if total[reached[t]] == least:
                    ties -= 1
                if total[reached[t]] > least or (total[reached[t]] == least and ties >= 0):
                    out[i, taken] = reached[t]
                    taken += 1
    return listed


def products_at(
    const int64_t[::1] indptr, const int32_t[::1] indices, const float[::1] data, const int64_t[::1] starts,
    const topic_t[::1] topics, const float[::1] values, Py_ssize_t n_topics, const int32_t[:, ::1] listed,
):
    """Return the dot products of each row with the columns of a CSR matrix that `listed` names for it.

    They are float32, in the shape of `listed`; 0 where `listed` is -1.
    """
    cdef Py_ssize_t i, t, n_rows = indptr.shape[0] - 1
    products = np.zeros((n_rows, listed.shape[1]), np.float32)
    cdef float[:, ::1] out = products
    cdef float[::1] total = np.empty(n_topics, np.float32)
    cdef float[::1] none = np.zeros(n_topics, np.float32)
    with nogil:
        for i in range(n_rows):
            row_times(
                &data[0] + indptr[i], &indices[0] + indptr[i], indptr[i + 1] - indptr[i],
                &starts[0], &topics[0], &values[0], &none[0], n_topics, &total[0],
            )
            for t in range(listed.shape[1]):
                if listed[i, t] >= 0:
                    out[i, t] = total[listed[i, t]]
    return products


def rows_by_topic(
    const topic_t[:, ::1] listed, Py_ssize_t n_topics, const int64_t[::1] own_starts, const int32_t[::1] own,
):
    """Return the numbers of the rows of `listed` that have each topic, except some rows: ``(starts, ends, rows)``.

    The rows for topic t, int32, are ``rows[starts[t]:ends[t]]``. Those from ``own_starts[t]`` to ``own_starts[t + 1]``
    in `own`, which must ascend, are left out. A row of `listed` ends at the first number that is not a topic.
    """
    cdef Py_ssize_t i, j, t, n_rows = listed.shape[0]
    ends = np.zeros(n_topics + 1, np.int64)
    cdef int64_t[::1] end = ends
    cdef int64_t[::1] place = np.empty(n_topics, np.int64)
    cdef int64_t[::1] next_own = np.array(own_starts[:n_topics])
    cdef int32_t[::1] rows
    with nogil:
        for i in range(n_rows):
            for j in range(listed.shape[1]):
                t = listed[i, j]
                if not 0 <= t < n_topics:
                    break
                end[t + 1] += 1
        for t in range(n_topics):
            place[t] = end[t]
            end[t + 1] += end[t]
    of_topics = np.empty(end[n_topics], np.int32)
    rows = of_topics
    with nogil:
        for i in range(n_rows):
            for j in range(listed.shape[1]):
                t = listed[i, j]
                if not 0 <= t < n_topics:
                    break
                while next_own[t] < own_starts[t + 1] and own[next_own[t]] < i:
                    next_own[t] += 1
                if next_own[t] < own_starts[t + 1] and own[next_own[t]] == i:
                    continue
                rows[place[t]] = <int32_t>i
                place[t] += 1
    return ends, np.asarray(place), of_topics


def related_sums(
    const int32_t[:, ::1] listed, const float[:, ::1] scores, const double[::1] a, const double[::1] b,
    const int64_t[::1] starts, const topic_t[::1] topics, const float[::1] shares, Py_ssize_t n_best,
):
    """Return, for each listed topic t of a document, the sum of ``P(s)·share(s, t)`` over its n best topics s: float32.

    The best topics are those of `listed` with the highest scores; ``P(s) = 1 / (1 + exp(-(a·score + b)))``. The share
    of the documents with s that also have t is given as a CSR matrix of shape (n_topics, n_topics): `starts`, `topics`
    and `shares`. A -1 in `listed` is no topic, and its sum is 0.
    """
    cdef Py_ssize_t i, j, k, t, n, n_rows = listed.shape[0], size = listed.shape[1], n_topics = a.shape[0]
    cdef int64_t entry
    cdef float probability
    sums = np.zeros((n_rows, size), np.float32)
    cdef float[:, ::1] out = sums
    cdef float[::1] total = np.zeros(n_topics + 1, np.float32)
    cdef Py_ssize_t[::1] best = np.zeros(n_best + 1, np.intp)
    with nogil:
        for i in range(n_rows):
            n = 0  # of the best ones, which are kept in order by insertion; of equal scores, the first one is better
            for j in range(size):
                if listed[i, j] < 0 or (n == n_best and (n == 0 or scores[i, j] <= scores[i, best[n - 1]])):
                    continue
                k = n if n < n_best else n_best - 1
                while k > 0 and scores[i, best[k - 1]] < scores[i, j]:
                    best[k] = best[k - 1]
                    k -= 1
                best[k] = j
                n = n + 1 if n < n_best else n_best
            for k in range(n):
                t = listed[i, best[k]]
                probability = <float>(1 / (1 + exp(-(a[t] * scores[i, best[k]] + b[t]))))
                for entry in range(starts[t], starts[t + 1]):
                    total[topics[entry]] += probability * shares[entry]
            for j in range(size):
                if listed[i, j] >= 0:
                    out[i, j] = total[listed[i, j]]
            for k in range(n):
                t = listed[i, best[k]]
                for entry in range(starts[t], starts[t + 1]):
                    total[topics[entry]] = 0
    return sums
