"""Compiled: add up the counts of a document's zones, weigh the sums, write rows of unit length, and add up vectors."""

from cpython.unicode cimport PyUnicode_DATA, PyUnicode_KIND
from libc.math cimport log, sqrt
from libc.stdint cimport int8_t, int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memset

import numpy as np

cdef extern from "Python.h":
    Py_UCS4 PyUnicode_READ(int kind, const void* data, Py_ssize_t index) noexcept nogil

cdef extern from *:
    """
    #include <stdlib.h>
    #ifdef __GLIBC__
    #include <malloc.h>
    #define return_freed_memory() (mallopt(M_MMAP_THRESHOLD, 1 << 20), malloc_trim(0))
    #else
    #define return_freed_memory() 0
    #endif

    /* sum += x * vector, element by element: the order of a sum does not depend on the width of the machine's vectors
    */ #define ADD_VECTOR(name, real, small)                                                   \
        static void name(real *sum, real x, const small *vector, ptrdiff_t n)               \
        {                                                                                   \
            _Pragma("omp simd") for (ptrdiff_t k = 0; k < n; k++) sum[k] += x * vector[k];  \
        }
    ADD_VECTOR(add_bytes_float, float, int8_t)
    ADD_VECTOR(add_bytes_double, double, int8_t)
    ADD_VECTOR(add_float, float, float)
    ADD_VECTOR(add_double, double, double)
    """
    int return_freed_memory() nogil
    void add_bytes_float(float* sum, float x, const int8_t* vector, Py_ssize_t n) nogil
    void add_bytes_double(double* sum, double x, const int8_t* vector, Py_ssize_t n) nogil
    void add_float(float* sum, float x, const float* vector, Py_ssize_t n) nogil
    void add_double(double* sum, double x, const double* vector, Py_ssize_t n) nogil

ctypedef fused real:
    float
    double

cdef enum:
    FEW = 24  # up to here insertion sort is the fastest


cdef inline int32_t column_of(
    const int32_t[:, ::1] terms, const int32_t[:, ::1] ngrams, int32_t space, int32_t id
) noexcept nogil:
    return terms[space, id] if id >= 0 else ngrams[space, ~id]


def document_frequencies(
    const int64_t[::1] parts, const int64_t[::1] ends, const int32_t[::1] ids, const int32_t[::1] texts,
    const int32_t[::1] spaces, const int32_t[:, ::1] terms, const int32_t[:, ::1] ngrams, size_t n_columns,
):
    """Return, for each column, in how many documents its term occurs: shape (n_columns,), int32.

    The parameters are those of `rows`.
    """
    cdef Py_ssize_t d, p, t, i
    cdef int32_t column
    frequencies = np.zeros(n_columns, np.int32)
    cdef int32_t[::1] frequency = frequencies
    cdef int32_t[::1] latest = np.full(n_columns, -1, np.int32)
    with nogil:
        for d in range(parts.shape[0]):
            for p in range(parts[d - 1] if d else 0, parts[d]):
                t = texts[p]
                for i in range(ends[t - 1] if t else 0, ends[t]):
                    column = column_of(terms, ngrams, spaces[p], ids[i])
                    if column >= 0 and latest[column] != d:
                        latest[column] = <int32_t>d
                        frequency[column] += 1
    return frequencies


def release_memory():
    """Return freed memory to the system; from now on, return that of a large array as soon as the array is freed.

    By default, glibc keeps freed memory that lies between blocks in use: arrays of up to 32 MB, once the first array of
    such a size was freed.
    """
    return_freed_memory()


def text_lengths(const int64_t[::1] ends, const int32_t[::1] counts):
    """Return the sum of the counts of each text's entries: shape (n_texts,), int64. For `ends` see `rows`."""
    cdef Py_ssize_t t, i
    lengths = np.zeros(ends.shape[0], np.int64)
    cdef int64_t[::1] length = lengths
    with nogil:
        for t in range(ends.shape[0]):
            for i in range(ends[t - 1] if t else 0, ends[t]):
                length[t] += counts[i]
    return lengths


def pick(list items, const int64_t[::1] positions):
    """Return the items at the given positions."""
    cdef Py_ssize_t i, n = positions.shape[0]
    return [items[positions[i]] for i in range(n)]


def character_width(list names):
    """Return the least number of bytes per character, 1, 2 or 4, that suffices for all characters of the names."""
    cdef int width = 1
    for name in names:
        width = max(width, <int>PyUnicode_KIND(<str?>name))
    return width


def character_keys(list names, const int64_t[::1] chosen, Py_ssize_t start, int width):
    """Return some characters of each chosen name as a number (uint64), by which names can be sorted.

    They are the 8 // `width` characters from the position `start`, at `width` bytes each, followed by zeros behind the
    name's end. `chosen` has the positions of the chosen names in `names`.
    """
    cdef Py_ssize_t i, k, n
    cdef int kind
    cdef const void* data
    cdef uint64_t key
    cdef str name
    keys = np.empty(chosen.shape[0], np.uint64)
    cdef uint64_t[::1] key_of = keys
    for i in range(chosen.shape[0]):
        name = names[chosen[i]]
        data, kind, n, key = PyUnicode_DATA(name), PyUnicode_KIND(name), len(name), 0
        for k in range(start, start + 8 // width):
            key = key << (8 * width) | (PyUnicode_READ(kind, data, k) if k < n else 0)
        key_of[i] = key
    return keys


def keep_ngrams(int64_t[::1] ends, int32_t[::1] ids, int32_t[::1] counts, const int32_t[::1] new):
    """Renumber the n-grams in the entries of texts, in place; return the number of entries that stay.

    `new` has the new position of each n-gram; the entries of an n-gram whose new position is -1 are dropped. Entries of
    terms stay as they are. For `ends`, `ids` and `counts` see `rows`.
    """
    cdef Py_ssize_t t, i, n = 0, start = 0
    cdef int32_t id
    with nogil:
        for t in range(ends.shape[0]):
            for i in range(start, ends[t]):
                id = ids[i]
                if id < 0:
                    if new[~id] < 0:
                        continue
                    id = ~new[~id]
                ids[n] = id
                counts[n] = counts[i]
                n += 1
            start, ends[t] = ends[t], n
    return n


def rows(
    const int64_t[::1] parts, const int64_t[::1] ends, const int32_t[::1] ids, const int32_t[::1] counts,
    const int32_t[::1] texts, const int32_t[::1] spaces, const double[::1] weights, const double[::1] halves,
    double ngram_weight, const double[::1] term_weights, const int32_t[:, ::1] terms,
    const int32_t[:, ::1] ngrams, const double[::1] idf, bint sublinear, real[::1] data, int32_t[::1] indices,
):
    """Write the tf-idf rows of documents into `data` and `indices`, and return where they end.

    Parameters
    ----------
    parts, ends : ndarray of shape (n_documents,) and (n_texts,), int64
        Where the parts of each document end in `texts` and `spaces`, and where the entries of each text end in `ids`
        and `counts`. A part is a text together with the space to which its terms belong; a text may be several parts.
    ids, counts : ndarray of shape (n_entries,), int32
        The term (or `~ngram`) of each entry, and how often it occurs in the text.
    texts, spaces : ndarray of shape (n_parts,), int32
        The text of each part, and its space: the row of `terms` and `ngrams` that has the part's columns.
    weights : ndarray of shape (n_parts,), float64
        The weight of one occurrence in the part (with `sublinear`, of the first one; with `halves`, of endlessly many).
    halves : ndarray of shape (n_parts,) or (0,), float64
        If not empty, n occurrences in a part count n / (n + half).
    ngram_weight, term_weights : float, and ndarray of shape (n_terms,) or (0,), float64
        The weight of an n-gram, and the weight of each term; if the array is empty, terms have the weight 1.
    terms, ngrams : ndarray of shape (n_spaces, n_terms) and (n_spaces, n_ngrams), int32
        The column of each term and n-gram in each space; -1: no column.
    idf : ndarray of shape (n_columns,), float64
    sublinear : bool
        If True, n occurrences in a part count 1 + log n.
    data, indices : ndarray of shape (at least the number of entries of all parts,)
        The rows are written to these arrays.
    """
    cdef Py_ssize_t d, p, t, i, start, n = 0
    cdef int32_t column
    cdef double count, weight
    cdef bint saturated = halves.shape[0] > 0, weighted = term_weights.shape[0] > 0
    row_ends = np.empty(parts.shape[0], np.int64)
    cdef int64_t[::1] row_end = row_ends
    cdef double[::1] total = np.zeros(idf.shape[0], np.float64)
    cdef int32_t[::1] spare = np.empty(idf.shape[0] + 1, np.int32)
    with nogil:
        for d in range(parts.shape[0]):
            start = n
            for p in range(parts[d - 1] if d else 0, parts[d]):
                t = texts[p]
                for i in range(ends[t - 1] if t else 0, ends[t]):
                    column = column_of(terms, ngrams, spaces[p], ids[i])
                    if column >= 0 and idf[column] != 0:
                        if total[column] == 0:
                            indices[n] = column
                            n += 1
                        count = counts[i]
                        if sublinear and counts[i] > 1:
                            count = 1 + log(count)
                        elif saturated:
                            count = count / (count + halves[p])
                        weight = weights[p]
                        if ids[i] < 0:
                            weight *= ngram_weight
                        elif weighted:
                            weight *= term_weights[ids[i]]
                        total[column] += weight * count
            if n > start:
                sort(&indices[start], &spare[0], n - start, <uint32_t>idf.shape[0])
                scale(&indices[start], &data[start], n - start, &total[0], &idf[0])
            row_end[d] = n
    return row_ends


cdef void scale(
    const int32_t* columns, real* out, Py_ssize_t n, double* total, const double* idf
) noexcept nogil:
    cdef Py_ssize_t i
    cdef double w, squares = 0
    for i in range(n):
        w = total[columns[i]] * idf[columns[i]]
        total[columns[i]] = w
        squares += w * w
    squares = sqrt(squares)
    for i in range(n):
        out[i] = <real>(total[columns[i]] / squares)
        total[columns[i]] = 0


cdef void sort(int32_t* a, int32_t* spare, Py_ssize_t n, uint32_t above) noexcept nogil:
    """Sort n numbers from 0 to below `above` in ascending order, in place; `spare` has room for n numbers.

    A few numbers are sorted by insertion, more numbers by their bytes, the lowest byte first.
    """
    cdef Py_ssize_t i, j
    cdef int32_t x
    cdef int shift = 0
    cdef Py_ssize_t[256] place
    cdef Py_ssize_t here, next_
    cdef int32_t* source = a
    cdef int32_t* target = spare
    if n <= FEW:
        for i in range(1, n):
            x = a[i]
            j = i
            while j > 0 and a[j - 1] > x:
                a[j] = a[j - 1]
                j -= 1
            a[j] = x
        return
    while above >> shift:
        memset(place, 0, sizeof(place))
        for i in range(n):
            place[(source[i] >> shift) & 255] += 1
        next_ = 0
        for i in range(256):
            here = place[i]
            place[i] = next_
            next_ += here
        for i in range(n):
            x = source[i]
            target[place[(x >> shift) & 255]] = x
            place[(x >> shift) & 255] += 1
        source, target = target, source
        shift += 8
        if shift == 32:
            break
    if source != a:
        for i in range(n):
            a[i] = source[i]


def vector_sums(
    const int64_t[::1] indptr, const int32_t[::1] indices, const real[::1] data, const int32_t[::1] vector_of,
    const int8_t[:, ::1] vectors,
):
    """Return for each row of a CSR matrix the sum of its columns' vectors, each multiplied by the row's entry there.

    `vector_of` has the position in `vectors` of each column's vector; -1: none. The sums are taken in the order of the
    columns; their shape is (n_rows, n_dimensions).
    """
    cdef Py_ssize_t i, p, n_rows = indptr.shape[0] - 1, n_dimensions = vectors.shape[1]
    sums = np.zeros((n_rows, n_dimensions), np.asarray(data).dtype)
    cdef real[:, ::1] total = sums
    cdef int32_t vector
    if n_rows and n_dimensions:
        with nogil:
            for i in range(n_rows):
                for p in range(indptr[i], indptr[i + 1]):
                    vector = vector_of[indices[p]]
                    if vector >= 0:
                        if real is float:
                            add_bytes_float(&total[i, 0], data[p], &vectors[vector, 0], n_dimensions)
                        else:
                            add_bytes_double(&total[i, 0], data[p], &vectors[vector, 0], n_dimensions)
    return sums


def vector_products(const int8_t[:, ::1] vectors, const real[:, ::1] weights):
    """Return the matrix product of vectors and weights: shape (n_vectors, n_topics).

    `weights` has a row per dimension of the vectors, and a column per topic. Sums are taken in the order of the
    dimensions.
    """
    cdef Py_ssize_t i, k, n_vectors = vectors.shape[0], n_topics = weights.shape[1]
    products = np.zeros((n_vectors, n_topics), np.asarray(weights).dtype)
    cdef real[:, ::1] total = products
    if n_vectors and n_topics:
        with nogil:
            for i in range(n_vectors):
                for k in range(vectors.shape[1]):
                    if real is float:
                        add_float(&total[i, 0], vectors[i, k], &weights[k, 0], n_topics)
                    else:
                        add_double(&total[i, 0], vectors[i, k], &weights[k, 0], n_topics)
    return products
