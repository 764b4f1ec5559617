"""Compiled: the distinct terms of documents, and which documents are near-duplicates of an earlier one."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from textcat.reprints.mixing cimport mixed

import numpy as np

cdef enum:
    LOOKED_AT = 8  # earliest leaders of a key that a document is compared with: this bounds the work


def distinct_terms(
    const int64_t[::1] parts, const int64_t[::1] ends, const int32_t[::1] ids, const int32_t[::1] texts, size_t n_terms
):
    """Count the distinct terms of every document: shape (n_documents,), int32.

    N-grams of terms, whose ids are negative, do not count. `textcat.features._rows.rows` explains the parameters.
    """
    cdef Py_ssize_t d, p, t, i
    counted = np.zeros(parts.shape[0], np.int32)
    cdef int32_t[::1] n = counted
    cdef int32_t[::1] latest = np.full(n_terms, -1, np.int32)
    with nogil:
        for d in range(parts.shape[0]):
            for p in range(parts[d - 1] if d else 0, parts[d]):
                t = texts[p]
                for i in range(ends[t - 1] if t else 0, ends[t]):
                    if ids[i] >= 0 and latest[ids[i]] != d:
                        latest[ids[i]] = <int32_t>d
                        n[d] += 1
    return counted


def leaders(
    const int64_t[::1] indptr, const int32_t[::1] indices, const uint8_t[::1] counts, const int32_t[::1] sizes,
    int32_t everywhere, const int32_t[::1] class_of, const int32_t[::1] differences, int bits, size_t n_keys,
):
    """Return the position of each document's leader, in the order of the documents: shape (n_documents,), int32.

    A document's leader is the first earlier leader whose Jaccard coefficient with the document is at least 9/10; a
    document without such a leader is its own leader. Two documents of a and b terms with such a coefficient differ in
    at most (a + b) / 19 terms. So if terms are divided by hash into one part more than this number, the two documents
    have the same terms in at least one part. The hash of a part is a key, under which leaders are looked up.

    Parameters
    ----------
    indptr, indices : ndarray of int64 and int32
        The rows of documents; columns ascend.
    counts : ndarray of shape (n_columns,), uint8
        1 for a column that counts; 0 for a column that does not count, such as that of a pair of words.
    sizes : ndarray of shape (n_documents,), int32
        The number of terms of each document, including terms without a column.
    everywhere : int
        The number of terms that all documents have, but that have no entry in any row.
    class_of : ndarray of shape (largest size + 1,), int32
        The class of each size. Near-duplicates are of the same class, or of neighbouring classes.
    differences : ndarray of shape (n_classes + 1,), int32
        For each class, in how many terms two near-duplicates may differ that are of this class or the class before.
    bits, n_keys : int
        The table of keys has 2**bits slots; n_keys is the largest possible number of keys of leaders.
    """
    cdef Py_ssize_t n = indptr.shape[0] - 1, i, e, k
    cdef int32_t size, best, y, n_parts, known, looked_at, half
    cdef uint32_t entry, last, n_entries = 0
    cdef uint64_t x, key, part, mask = (<uint64_t>1 << bits) - 1
    found = np.arange(n, dtype=np.int32)
    cdef int32_t[::1] leader = found
    cdef uint32_t[::1] head = np.zeros(<size_t>1 << bits, np.uint32)  # 1 + the position of the first entry
    # Entries of the same slot follow each other; the first one knows the last.
    cdef uint32_t[::1] after = np.zeros(n_keys + 1, np.uint32), end = np.zeros(n_keys + 1, np.uint32)
    cdef int32_t[::1] holder = np.zeros(n_keys + 1, np.int32)
    cdef int32_t[::1] refused = np.full(n, -1, np.int32)  # by which document a leader was compared in vain
    cdef uint64_t[::1] sums = np.empty(np.max(differences) + 1, np.uint64)
    cdef uint64_t[::1] slots = np.empty(2 * len(sums), np.uint64)
    cdef Py_ssize_t n_slots
    cdef const int32_t* columns = &indices[0] if indices.shape[0] else NULL
    cdef const uint8_t* counting = &counts[0] if counts.shape[0] else NULL
    with nogil:
        for i in range(n):
            size = sizes[i]
            if size <= 0:
                continue
            known = everywhere
            for e in range(indptr[i], indptr[i + 1]):
                known += counts[indices[e]]
            n_slots = 0
            best = <int32_t>i
            for half in range(2):  # as the lower and as the upper neighbour in a class
                k = class_of[size] + half
                n_parts = differences[k] + 1
                if size - known >= n_parts:  # it has more terms of its own than it may differ in
                    continue
                for e in range(n_parts):
                    sums[e] = 0
                for e in range(indptr[i], indptr[i + 1]):
                    if counts[indices[e]]:
                        x = mixed(<uint64_t>indices[e] + <uint64_t>0x9E3779B97F4A7C15)
                        part = ((x >> 32) * <uint64_t>n_parts) >> 32
                        sums[part] += mixed(x)
                for e in range(n_parts):
                    key = mixed(sums[e] + mixed((<uint64_t>k << 32) + <uint64_t>e + 1)) & mask
                    slots[n_slots] = key
                    n_slots += 1
                    entry = head[key]
                    looked_at = 0
                    while entry and looked_at < LOOKED_AT:
                        y = holder[entry]
                        if y >= best:
                            break
                        looked_at += 1
                        if refused[y] != i:
                            if near(columns, indptr[i], indptr[i + 1], indptr[y], indptr[y + 1], counting, size, sizes[y],
                                    everywhere):
                                best = y
                                break
                            refused[y] = <int32_t>i
                        entry = after[entry]
            if best < i:
                leader[i] = best
                continue
            for e in range(n_slots):
                n_entries += 1
                holder[n_entries] = <int32_t>i
                key = slots[e]
                if head[key] == 0:
                    head[key] = n_entries
                else:
                    last = end[head[key]]
                    after[last] = n_entries
                end[head[key]] = n_entries
    return found


cdef inline bint near(
    const int32_t* columns, int64_t i, int64_t i_end, int64_t j, int64_t j_end, const uint8_t* counts, int64_t a,
    int64_t b, int64_t shared
) noexcept nogil:
    """Return whether two rows have a Jaccard coefficient of at least 9/10: whether 19 o >= 9 (a + b).

    a and b are the sizes of their sets of terms, and o is the number of terms that both have; `shared` of these have no
    entry in the rows.
    """
    cdef int64_t differing = 0, most = (a + b) // 19
    if 10 * a < 9 * b or 10 * b < 9 * a:
        return False
    while i < i_end and j < j_end and differing <= most:
        if columns[i] < columns[j]:
            differing += counts[columns[i]]
            i += 1
        elif columns[i] > columns[j]:
            differing += counts[columns[j]]
            j += 1
        else:
            shared += counts[columns[i]]
            i += 1
            j += 1
    return 19 * shared >= 9 * (a + b)


def single_terms(list names, tuple prefixes, bint of_zones):
    """Return a mask of the names of columns that are no n-grams of terms and begin with none of the prefixes: bool.

    An n-gram of terms has a space inside, and an n-gram of characters may have one at either end. If `of_zones`, each
    name begins with a zone and a colon, which are left out first.
    """
    cdef Py_ssize_t i
    cdef str name
    mask = np.empty(len(names), np.bool_)
    cdef uint8_t[::1] is_single = mask.view(np.uint8)
    for i in range(len(names)):
        name = names[i]
        if of_zones:
            name = name.partition(":")[2]
        is_single[i] = (" " not in name or " " not in name.strip("~ ")) and not name.startswith(prefixes)
    return mask
