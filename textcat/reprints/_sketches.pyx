"""Compiled: sketches of texts, and the search for the earlier text that each text repeats."""

from libc.stdint cimport int32_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

import numpy as np

cdef extern from *:
    """
    #if defined(__GNUC__)
    #define PREFETCH(address) __builtin_prefetch(address)
    #else
    #define PREFETCH(address) ((void)(address))
    #endif
    """
    void PREFETCH(const void* address) noexcept nogil

cdef enum:
    BINS = 32  # of a sketch, and the number of words that are sampled
    POSTED = 5  # sampled words by which a text is found
    SLOTS = 6  # entries of a text: its fingerprint, and the words posted
    ASKED = 10  # sampled words by which an earlier text is sought, besides those that few texts have
    FEW_TEXTS = 16
    LOOKED_AT = 32  # latest entries of a word that are looked at: this bounds the work
    LOOKED_AT_COPIES = 64  # the same for fingerprints
    LEAST_WORDS = 20  # of a text that is compared by its sketch; shorter ones must be equal
    LEAST_BYTES = 4  # of a word that can be sampled
    LEAST_SHARED = 9  # of 32 bins that two texts must share
    LEAST_IN_PART = 6  # the same if the shorter text is a part of the longer one
    FEW_WORDS = 40  # a shorter text must share more, as it may have words of a form only
    LEAST_OF_FEW = 13
    COUNTER_BITS = 19  # of the table that counts sampled words

SAMPLED, ENTRIES, COUNTERS, SHORT = BINS, SLOTS, 1 << COUNTER_BITS, LEAST_WORDS
cdef uint64_t ONES = 0x0101010101010101, SEVENS = 0x7F7F7F7F7F7F7F7F


cdef inline uint64_t mixed(uint64_t x) noexcept nogil:
    """Return x with mixed bits, by the finalizer of splitmix64."""
    x = (x ^ (x >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * <uint64_t>0x94D049BB133111EB
    return x ^ (x >> 31)


cdef inline int width(const uint8_t* text, Py_ssize_t left) noexcept nogil:
    """Return the bytes of a character that is a word of its own, as in scripts without spaces; 0: it is none."""
    cdef uint8_t c = text[0], c2
    if c < 0xE0 or left < 3:
        return 0
    c2 = text[1]
    if c == 0xE0:  # Thai and Lao
        return 3 if 0xB8 <= c2 <= 0xBB else 0
    if c == 0xE1:  # Myanmar and Khmer
        return 3 if 0x80 <= c2 <= 0x82 or c2 in (0x9E, 0x9F) else 0
    return 3 if 0xE3 <= c <= 0xE9 and not (c == 0xE3 and c2 == 0x80) else 0


cdef inline int separator(const uint8_t* text, Py_ssize_t left) noexcept nogil:
    """Return the bytes of a character that separates words; 0: it belongs to a word."""
    cdef uint8_t c = text[0]
    if c < 0x80:
        return 0 if 97 <= c <= 122 or 48 <= c <= 57 else 1
    if c == 0xC2:
        return 2 if left > 1 else 1
    if (c == 0xE2 and left > 2 and text[1] in (0x80, 0x81)) or (c == 0xE3 and left > 2 and text[1] == 0x80):
        return 3
    return 0


def sketch(
    list texts, uint64_t[::1] fingerprints, uint16_t[::1] sizes, uint8_t[:, ::1] bins, uint32_t[:, ::1] words
):
    """Write the sketches of texts, which are given in small letters, in UTF-8.

    A sketch has a fingerprint of all words in order; their number, at most 65,535; for each of 32 bins, a byte of the
    smallest hash of a pair of consecutive words that falls into the bin, and 0 for an empty bin; and a sample of words:
    the smallest hash in each bin of a word of four bytes or more, or 0. In scripts without spaces, each character is a
    word, and pairs of characters are sampled.

    Parameters
    ----------
    texts : list of bytes
    fingerprints, sizes : ndarray of shape (n_texts,), uint64 and uint16
    bins, words : ndarray of shape (n_texts, 32), uint8 and uint32
    """
    cdef Py_ssize_t i
    cdef bytes text
    for i, text in enumerate(texts):
        sketch_text(<const uint8_t*>(<char*>text), len(text), &fingerprints[i], &sizes[i], &bins[i, 0], &words[i, 0])


cdef void sketch_text(
    const uint8_t* t, Py_ssize_t end, uint64_t* fingerprint_of, uint16_t* size, uint8_t* bins, uint32_t* words
) noexcept nogil:
    cdef uint64_t pairs[BINS]
    cdef uint64_t singles[BINS]
    cdef Py_ssize_t i = 0, start, n = 0
    cdef uint64_t h, before = 0, pair, word, fingerprint = 0
    cdef int k, w, step
    for k in range(BINS):
        pairs[k] = singles[k] = <uint64_t>-1
    while i < end:
        step = separator(t + i, end - i)
        if step:
            i += step
            continue
        h, start, w = <uint64_t>0xCBF29CE484222325, i, width(t + i, end - i)
        while i < end:
            if w:
                if i == start + w:
                    break
            elif separator(t + i, end - i) or (i > start and width(t + i, end - i)):
                break
            h = (h ^ t[i]) * <uint64_t>0x100000001B3
            i += 1
        pair = mixed(before * 3 + h)
        if n:
            k = <int>(pair >> 59)
            pairs[k] = min(pairs[k], pair)
        word = pair if w else mixed(h + <uint64_t>0x9E3779B97F4A7C15)
        if w or i - start >= LEAST_BYTES:
            k = <int>(word >> 59)
            singles[k] = min(singles[k], word)
        fingerprint = mixed(fingerprint + h)
        before = h
        n += 1
    for k in range(BINS):
        bins[k] = <uint8_t>(1 + (pairs[k] & 0xFFFF) % 255) if pairs[k] != <uint64_t>-1 else 0
        words[k] = <uint32_t>(singles[k] >> 32) | 1 if singles[k] != <uint64_t>-1 else 0
    fingerprint_of[0], size[0] = fingerprint, <uint16_t>min(n, 65535)


cdef inline int zero_bytes(uint64_t x) noexcept nogil:
    cdef uint64_t full = ((x & SEVENS) + SEVENS) | x | SEVENS
    return <int>((((~full) >> 7) * ONES) >> 56)


cdef inline int shared_bins(const uint8_t* one, const uint8_t* other, int* used) noexcept nogil:
    """Return the number of bins in which two sketches are equal; `used` becomes that of bins that are not empty."""
    cdef uint64_t a[4]
    cdef uint64_t b[4]
    cdef int k, same = 0, empty = 0
    memcpy(a, one, BINS)
    memcpy(b, other, BINS)
    for k in range(4):
        same += zero_bytes(a[k] ^ b[k])
        empty += zero_bytes(a[k] | b[k])
    used[0] = BINS - empty
    return same - empty


cdef inline bint repeats(int shared, int used, int a, int b) noexcept nogil:
    """Return whether one of two texts of a and b words repeats the other, given the bins that they share.

    J = shared / used estimates the Jaccard coefficient of their pairs of words, and J / (1 + J) * (a + b) / min(a, b)
    the share of the shorter text that is in the longer one.
    """
    if min(a, b) < FEW_WORDS:
        return BINS * shared >= LEAST_OF_FEW * used
    if BINS * shared >= LEAST_SHARED * used:
        return True
    return shared >= LEAST_IN_PART and 10 * shared * (a + b) >= 7 * (shared + used) * min(a, b)


cdef inline size_t place(uint32_t key, int bits) noexcept nogil:
    return <size_t>((key * <uint64_t>0x9E3779B97F4A7C15) >> (64 - bits))


def enter(const uint32_t[:, ::1] posted, size_t first, uint32_t[::1] head, int bits, uint32_t[::1] after):
    """Enter texts into the table `head` of 2**bits chains by the keys posted; `first` is the number of the first text."""
    cdef Py_ssize_t i, k
    cdef size_t entry, chain
    with nogil:
        for i in range(posted.shape[0]):
            for k in range(SLOTS):
                if posted[i, k]:
                    entry, chain = (first + i) * SLOTS + k, place(posted[i, k], bits)
                    after[entry] = head[chain]
                    head[chain] = <uint32_t>entry + 1


def assign(
    const uint64_t[::1] fingerprints, const uint16_t[::1] sizes, const uint8_t[:, ::1] bins,
    const uint32_t[:, ::1] words, uint32_t[::1] known_fingerprints, uint16_t[::1] known_sizes,
    uint8_t[:, ::1] known_bins, uint32_t[::1] group_of, uint32_t[::1] head, int bits, uint32_t[::1] after,
    uint16_t[::1] counts, size_t n, int32_t[::1] groups, int32_t[::1] shares, uint32_t[:, ::1] posted,
):
    """Assign texts to groups, in order, and keep what finds them; return the number of texts that are kept.

    A text belongs to the group of the earlier text with which it shares most bins, the first of equals, if it repeats
    that text. Earlier texts are sought by the words of a text that are in the fewest texts so far. A copy of an earlier
    text is not kept.

    Parameters
    ----------
    fingerprints, sizes, bins, words : ndarray
        A row per text: what `sketch` returns and writes.
    known_fingerprints, known_sizes, known_bins, group_of : ndarray
        Rows of the n texts that are kept, with room for those to come; group_of has the first text of the group.
    head, bits, after : ndarray, int, ndarray
        Chains of entries by hash: the latest entry, from 1, of each of 2**bits chains, and the one before each entry.
    counts : ndarray of shape (2**19,), uint16
        The number of texts with each sampled word, by hash.
    n : int
    groups, shares : ndarray of shape (n_texts,), int32
        Written: the first text of each text's group among those kept, and in how many 32nds its sketch agrees with that
        of the text that it repeats: 33 if all words are the same, -1 if it repeats none; the group is -1 if it has no
        words.
    posted : ndarray of shape (n_texts, 6), uint32
        Written: the keys of the texts that are kept.
    """
    cdef Py_ssize_t i
    cdef int k, j, m, asked, looked_at, shared, used, best_shared, best_used, n_keys, n_new, n_seen, n_asked, left
    cdef uint32_t entry, y, best, key, n_before = <uint32_t>n
    cdef uint32_t keys[BINS]
    cdef uint16_t seen[BINS]
    cdef uint32_t chains[BINS]
    cdef uint16_t count
    cdef size_t slot
    with nogil:
        for i in range(sizes.shape[0]):
            groups[i] = shares[i] = -1
            if not sizes[i]:
                continue
            if i + 1 < sizes.shape[0]:
                PREFETCH(&head[place(<uint32_t>(fingerprints[i + 1] >> 32) | 1, bits)])
                for k in range(BINS):
                    PREFETCH(&counts[place(words[i + 1, k], COUNTER_BITS)])
            key = <uint32_t>(fingerprints[i] >> 32) | 1
            entry, looked_at = head[place(key, bits)], 0
            while entry and looked_at < LOOKED_AT_COPIES:
                y = (entry - 1) // SLOTS
                if (
                    known_fingerprints[y] == <uint32_t>fingerprints[i]
                    and known_sizes[y] == sizes[i]
                    and memcmp(&known_bins[y, 0], &bins[i, 0], BINS) == 0
                ):
                    groups[i], shares[i] = <int32_t>group_of[y], BINS + 1
                    break
                entry = after[entry - 1]
                looked_at += 1
            if groups[i] >= 0:
                continue
            posted[n - n_before, 0] = key
            for k in range(1, SLOTS):
                posted[n - n_before, k] = 0
            group_of[n], known_fingerprints[n], known_sizes[n] = <uint32_t>n, <uint32_t>fingerprints[i], sizes[i]
            memcpy(&known_bins[n, 0], &bins[i, 0], BINS)
            if sizes[i] >= LEAST_WORDS:
                n_keys = 0
                for k in range(BINS):  # sort by count
                    if words[i, k]:
                        key = words[i, k]
                        slot = place(key, COUNTER_BITS)
                        count = counts[slot]
                        if count < 65535:
                            counts[slot] += 1
                        j = n_keys
                        while j and seen[j - 1] > count:
                            seen[j], keys[j] = seen[j - 1], keys[j - 1]
                            j -= 1
                        seen[j], keys[j] = count, key
                        n_keys += 1
                n_new = 0  # words that no text had
                while n_new < n_keys and not seen[n_new]:
                    n_new += 1
                best, best_shared, best_used, asked = 0, 0, 1, 0
                n_asked = min(n_new + ASKED, n_keys)
                while n_asked < n_keys and seen[n_asked] <= FEW_TEXTS:
                    n_asked += 1
                for k in range(n_new, n_asked):
                    PREFETCH(&head[place(keys[k], bits)])
                for k in range(n_new, n_asked):
                    if head[place(keys[k], bits)]:
                        chains[asked] = head[place(keys[k], bits)]
                        asked += 1
                # All chains go one step at a time, so that memory is read for all of them at once.
                for looked_at in range(LOOKED_AT):
                    for k in range(asked):
                        PREFETCH(&known_bins[(chains[k] - 1) // SLOTS, 0])
                        PREFETCH(&after[chains[k] - 1])
                    left = 0
                    for k in range(asked):
                        y = (chains[k] - 1) // SLOTS
                        shared = shared_bins(&known_bins[n, 0], &known_bins[y, 0], &used)
                        if (
                            (shared > best_shared or (shared == best_shared and y < best))
                            and known_sizes[y] >= LEAST_WORDS
                            and repeats(shared, used, sizes[i], known_sizes[y])
                        ):
                            best, best_shared, best_used = y, shared, used
                        chains[left] = after[chains[k] - 1]
                        left += chains[left] != 0
                    asked = left
                    if not asked:
                        break
                if best_shared:
                    group_of[n] = group_of[best]
                    shares[i] = best_shared * BINS // best_used
                # Some words that are new, as a name may be, and some that are not, as misprints mostly are.
                n_seen = min(n_keys - n_new, POSTED - min(n_new, 2))
                m = 1
                for k in range(n_new, n_new + n_seen):
                    posted[n - n_before, m] = keys[k]
                    m += 1
                for k in range(min(n_new, POSTED - n_seen)):
                    posted[n - n_before, m] = keys[k]
                    m += 1
            groups[i] = <int32_t>group_of[n]
            for k in range(SLOTS):
                key = posted[n - n_before, k]
                if key:
                    slot = place(key, bits)
                    after[n * SLOTS + k] = head[slot]
                    head[slot] = <uint32_t>(n * SLOTS + k + 1)
            n += 1
    return n - n_before
