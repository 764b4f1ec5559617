"""Compiled: the topics nearest to each document, and its scores for those alone."""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint16_t
from libc.string cimport memset

import numpy as np

cdef enum:
    BINS = 1024  # of similarities, among which the least one that is listed is looked for


cdef void add_up(
    const int64_t[::1] indptr, const int32_t[::1] indices, const float[::1] data, Py_ssize_t row,
    const int64_t[::1] starts, const int32_t[::1] topics, const float[::1] values, float[::1] total,
) noexcept nogil:
    """Write a row's product with a matrix in CSR form, summed in the order of the row's entries."""
    cdef int64_t p, e
    cdef float x
    memset(&total[0], 0, total.shape[0] * sizeof(float))
    for p in range(indptr[row], indptr[row + 1]):
        x = data[p]
        for e in range(starts[indices[p]], starts[indices[p] + 1]):
            total[topics[e]] += x * values[e]


cdef float nth_highest(float* values, Py_ssize_t size, Py_ssize_t n) noexcept nogil:
    """Return the n-th highest of values, n from 0, and change their order."""
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
    const int32_t[::1] topics, const float[::1] values, Py_ssize_t n_topics, Py_ssize_t k,
):
    """Return the k topics of the highest products with each row: shape (n_rows, k), int32, ascending.

    The matrix of features and topics is in CSR form. Of equal products the topic that stands first is taken. A topic
    whose product is not above 0 is none of them: where they are fewer, -1 fills the row.
    """
    cdef Py_ssize_t i, n_rows = indptr.shape[0] - 1, t, n, above, same, wanted
    cdef int32_t bin, cut
    cdef float highest, scale, least
    listed = np.full((n_rows, k), -1, np.int32)
    cdef int32_t[:, ::1] out = listed
    cdef float[::1] total = np.zeros(n_topics, np.float32)
    cdef float[::1] in_cut = np.empty(n_topics, np.float32)
    cdef int32_t[::1] found = np.empty(n_topics + 1, np.int32)
    cdef int32_t[::1] counts = np.empty(BINS, np.int32)
    with nogil:
        for i in range(n_rows):
            add_up(indptr, indices, data, i, starts, topics, values, total)
            n = 0
            highest = 0
            for t in range(n_topics):  # without a branch, as no processor can guess which topics these are
                found[n] = <int32_t>t
                n += total[t] > 0
                highest = total[t] if total[t] > highest else highest
            if n > k and highest < INFINITY:
                scale = (BINS - 1) / highest
                if scale == INFINITY:  # the highest is next to nothing
                    scale = 0
                memset(&counts[0], 0, BINS * sizeof(int32_t))
                for t in range(n):
                    counts[<int32_t>(total[found[t]] * scale)] += 1
                cut, above = BINS - 1, 0
                while above + counts[cut] < k:
                    above += counts[cut]
                    cut -= 1
                same = 0
                for t in range(n):
                    if <int32_t>(total[found[t]] * scale) == cut:
                        in_cut[same] = total[found[t]]
                        same += 1
                wanted = k - above
                least = nth_highest(&in_cut[0], same, wanted - 1)
                for t in range(same):
                    wanted -= in_cut[t] > least  # now the number of those that equal the least one
                same = 0
                for t in range(n):
                    bin = <int32_t>(total[found[t]] * scale)
                    if bin < cut or (bin == cut and total[found[t]] < least):
                        continue
                    if bin == cut and total[found[t]] == least:
                        if not wanted:
                            continue
                        wanted -= 1
                    out[i, same] = found[t]
                    same += 1
            else:
                for t in range(min(n, k)):
                    out[i, t] = found[t]
    return listed


def products_at(
    const int64_t[::1] indptr, const int32_t[::1] indices, const float[::1] data, const int64_t[::1] starts,
    const int32_t[::1] topics, const float[::1] values, Py_ssize_t n_topics, const int32_t[:, ::1] listed,
):
    """Return the products of rows with a matrix in CSR form at the topics listed for each: float32, 0 where that is -1."""
    cdef Py_ssize_t i, t, n_rows = indptr.shape[0] - 1
    products = np.zeros((n_rows, listed.shape[1]), np.float32)
    cdef float[:, ::1] out = products
    cdef float[::1] total = np.zeros(n_topics, np.float32)
    with nogil:
        for i in range(n_rows):
            add_up(indptr, indices, data, i, starts, topics, values, total)
            for t in range(listed.shape[1]):
                if listed[i, t] >= 0:
                    out[i, t] = total[listed[i, t]]
    return products


def rows_by_topic(const int32_t[:, ::1] listed, Py_ssize_t n_topics, const int64_t[::1] own_starts, const int32_t[::1] own):
    """Return for which rows each topic is listed, but those that it owns: where its rows end, int64, and they, int32.

    `own` has the rows of each topic, ascending, from ``own_starts[topic]``.
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
                if t < 0:
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
                if t < 0:
                    break
                while next_own[t] < own_starts[t + 1] and own[next_own[t]] < i:
                    next_own[t] += 1
                if next_own[t] < own_starts[t + 1] and own[next_own[t]] == i:
                    continue
                rows[place[t]] = <int32_t>i
                place[t] += 1
    return ends, np.asarray(place), of_topics


def scores_at(
    const int64_t[::1] indptr, const int32_t[::1] indices, const float[::1] data, const int64_t[::1] starts,
    const int32_t[::1] topics, const float[::1] values, const float[::1] bias, const int32_t[:, ::1] listed, float other,
):
    """Return scores of rows for every topic, float32: product plus bias where it is listed, and one value elsewhere."""
    cdef Py_ssize_t i, t, m = bias.shape[0], n_rows = indptr.shape[0] - 1
    scores = np.full((n_rows, m), other, np.float32)
    cdef float[:, ::1] out = scores
    cdef float[::1] total = np.zeros(m, np.float32)
    with nogil:
        for i in range(n_rows):
            add_up(indptr, indices, data, i, starts, topics, values, total)
            for t in range(listed.shape[1]):
                if listed[i, t] >= 0:
                    out[i, listed[i, t]] = total[listed[i, t]] + bias[listed[i, t]]
    return scores
