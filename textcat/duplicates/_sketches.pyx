"""Compiled: compute sketches of texts (see `sketch`); find by them the earlier text that each text repeats."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

import numpy as np

cdef extern from *:
    """
    #if defined(__GNUC__)
    #define PREFETCH(address) __builtin_prefetch(address)
    #else
    #define PREFETCH(address) ((void)(address))
    #endif
    #ifdef _WIN32
    #include <io.h>
    static int read_at(int file, void* to, int n, int64_t at)
    {
        return _lseeki64(file, at, 0) == at && _read(file, to, n) == n;
    }
    #else
    #include <unistd.h>
    static int read_at(int file, void* to, int n, int64_t at) { return pread(file, to, n, at) == n; }
    #endif
    """
    void PREFETCH(const void* address) noexcept nogil
    bint read_at(int file, void* to, int n, int64_t at) noexcept nogil

cdef enum:
    BINS = 64  # of a sketch
    BYTES = 32  # that they take
    SAMPLE = 32  # words that are sampled
    POSTED = 5  # sampled words by which a text is found
    SLOTS = 6  # entries of a text: its fingerprint, and the words posted
    ASKED = 10  # sampled words by which an earlier text is sought, besides those that few texts have
    FEW_TEXTS = 16
    LOOKED_AT = 32  # latest entries of a word that are looked at: this bounds the work
    LOOKED_AT_COPIES = 64  # the same for fingerprints
    LEAST_WORDS = 12  # of a text that is compared by its sketch; shorter ones must be equal
    LEAST_BYTES = 4  # of a word that can be sampled
    LEAST_DIGITS = 3  # the same of a number
    LEAST_SHARED = 12  # of 64 bins that are equal in two texts whose words are compared
    COUNTER_BITS = 24  # of the table that counts sampled words: those of a million texts fill a fifth of it

SKETCH_BYTES, SAMPLED, ENTRIES, COUNTERS = BYTES, SAMPLE, SLOTS, 1 << COUNTER_BITS
cdef double LEAST = 0.615  # of the sum by which a text repeats another one
cdef uint64_t ONES = 0x0101010101010101, FIRST_OF_FOUR = 0x1111111111111111


cdef uint8_t PLAIN[256]  # small letters of ASCII letters, and digits; 0 for all else
for code in range(256):
    PLAIN[code] = ord(chr(code).lower()) if code < 128 and chr(code).isalnum() else 0


cdef inline uint64_t mix_bits(uint64_t x) noexcept nogil:
    """Return a hash of x, by the finalizer of splitmix64."""
    x = (x ^ (x >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * <uint64_t>0x94D049BB133111EB
    return x ^ (x >> 31)


cdef inline int single_word_bytes(const uint8_t* text, Py_ssize_t left) noexcept nogil:
    """Return the number of bytes of the first character if it is a word by itself, as in Chinese or Thai; 0 if not.

    `text` is in UTF-8, and has `left` bytes.
    """
    cdef uint8_t c = text[0], c2
    if c < 0xE0 or left < 3:
        return 0
    c2 = text[1]
    if c == 0xE0:  # Thai and Lao
        return 3 if 0xB8 <= c2 <= 0xBB else 0
    if c == 0xE1:  # Myanmar and Khmer
        return 3 if 0x80 <= c2 <= 0x82 or c2 in (0x9E, 0x9F) else 0
    return 3 if 0xE3 <= c <= 0xE9 and not (c == 0xE3 and c2 == 0x80) else 0


cdef inline bint digit(uint8_t c) noexcept nogil:
    return 48 <= c <= 57


cdef inline bint is_in_number(const uint8_t* text, Py_ssize_t left) noexcept nogil:
    """Return whether the first character is a point or comma between digits; another character must precede `text`."""
    return (text[0] == 44 or text[0] == 46) and left > 1 and digit(text[1]) and digit((text - 1)[0])


cdef inline int separator_bytes(const uint8_t* text, Py_ssize_t left) noexcept nogil:
    """Return the number of bytes of the first character if it separates words; 0 if it belongs to a word."""
    cdef uint8_t c = text[0]
    if c < 0x80:
        return 0 if 97 <= c <= 122 or digit(c) else 1
    if c == 0xC2:
        return 2 if left > 1 else 1
    if (c == 0xE2 and left > 2 and text[1] in (0x80, 0x81)) or (c == 0xE3 and left > 2 and text[1] == 0x80):
        return 3
    return 0


def sketch(
    list texts, uint64_t[::1] fingerprints, uint16_t[::1] sizes, uint8_t[:, ::1] bins, uint32_t[:, ::1] words
):
    """Compute a sketch of each text, by which texts that repeat each other are found, and write it to four arrays.

    Hashes of words, and of pairs of consecutive words, are divided into bins. A point or a comma between digits belongs
    to the number. In scripts without spaces, each character is a word, and the sample has pairs of characters.

    Parameters
    ----------
    texts : list of bytes
        In UTF-8; letters other than those of ASCII must be in lower case.
    fingerprints : ndarray of shape (n_texts,), uint64
        Written: a hash of all words in order.
    sizes : ndarray of shape (n_texts,), uint16
        Written: the number of words, at most 65,535.
    bins : ndarray of shape (n_texts, 32), uint8
        Written: for each of 64 bins of pairs, four bits of the smallest hash in it, or 0 for none; two bins a byte.
    words : ndarray of shape (n_texts, 32), uint32
        Written: a sample of words; for each of 32 bins, the smallest hash of a word that begins with a digit and has
        at least three bytes, or of another word of at least four bytes; 0 for none.
    """
    cdef Py_ssize_t i
    cdef bytes text
    for i, text in enumerate(texts):
        sketch_text(<const uint8_t*>(<char*>text), len(text), &fingerprints[i], &sizes[i], &bins[i, 0], &words[i, 0])


cdef void sketch_text(
    const uint8_t* t, Py_ssize_t end, uint64_t* fingerprint_of, uint16_t* size, uint8_t* bins, uint32_t* words
) noexcept nogil:
    cdef uint64_t pairs[BINS]
    cdef uint64_t singles[SAMPLE]
    cdef Py_ssize_t i = 0, start, n = 0
    cdef uint64_t h, before = 0, pair, word, fingerprint = 0
    cdef int k, w, step
    cdef uint8_t c
    for k in range(BINS):
        pairs[k] = <uint64_t>-1
    for k in range(SAMPLE):
        singles[k] = <uint64_t>-1
    while i < end:
        w = 0
        if not PLAIN[t[i]]:
            step = separator_bytes(t + i, end - i)
            if step:
                i += step
                continue
            w = single_word_bytes(t + i, end - i)
        h, start = <uint64_t>0xCBF29CE484222325, i
        while i < end:
            c = PLAIN[t[i]]
            if not c:
                if w:
                    if i == start + w:
                        break
                elif separator_bytes(t + i, end - i):
                    if not is_in_number(t + i, end - i):
                        break
                elif i > start and single_word_bytes(t + i, end - i):
                    break
                c = t[i]
            elif w:
                break
            h = (h ^ c) * <uint64_t>0x100000001B3
            i += 1
        pair = mix_bits(before * 3 + h)
        if n:
            k = <int>(pair >> 58)
            pairs[k] = min(pairs[k], pair)
        word = pair if w else mix_bits(h + <uint64_t>0x9E3779B97F4A7C15)
        if w or i - start >= (LEAST_DIGITS if digit(t[start]) else LEAST_BYTES):
            k = <int>(word >> 59)
            singles[k] = min(singles[k], word)
        fingerprint = mix_bits(fingerprint + h)
        before = h
        n += 1
    for k in range(BYTES):
        bins[k] = four_bits(pairs[2 * k]) | (four_bits(pairs[2 * k + 1]) << 4)
    for k in range(SAMPLE):
        words[k] = <uint32_t>(singles[k] >> 32) | 1 if singles[k] != <uint64_t>-1 else 0
    fingerprint_of[0], size[0] = fingerprint, <uint16_t>min(n, 65535)


cdef inline uint8_t four_bits(uint64_t h) noexcept nogil:
    return <uint8_t>(1 + (h & 0xFFFF) % 15) if h != <uint64_t>-1 else 0


cdef inline int zero_bins(uint64_t x) noexcept nogil:
    """Return how many of the sixteen bins (four bits each) in x are 0."""
    x |= x >> 1
    x = ~(x | (x >> 2)) & FIRST_OF_FOUR
    return <int>((((x + (x >> 4)) & <uint64_t>0x0F0F0F0F0F0F0F0F) * ONES) >> 56)


cdef inline int shared_bins(const uint8_t* one, const uint8_t* other, int* used) noexcept nogil:
    """Return the number of bins in which two sketches are equal and not empty.

    The number of bins that are not empty in at least one sketch is written to `used`.
    """
    cdef uint64_t a[4]
    cdef uint64_t b[4]
    cdef int k, same = 0, empty = 0
    memcpy(a, one, BYTES)
    memcpy(b, other, BYTES)
    for k in range(4):
        same += zero_bins(a[k] ^ b[k])
        empty += zero_bins(a[k] | b[k])
    used[0] = BINS - empty
    return same - empty


cdef inline double jaccard(int shared, int used) noexcept nogil:
    """Estimate the Jaccard coefficient of two texts from the results of `shared_bins` (Li and König, WWW 2010).

    One of fifteen bins is equal by chance.
    """
    return max((15 * shared - used) / (14.0 * used), 0.0)


cdef inline int bit_length(uint32_t x) noexcept nogil:
    cdef int n = 0
    while x:
        x >>= 1
        n += 1
    return n


cdef double likeness(
    double jaccard, const uint32_t* earlier, const uint32_t* later, const uint16_t* counts, size_t n
) noexcept nogil:
    """Return J + V / 2 + N / 5, which is 0.615 or more if the later of two texts repeats the earlier one.

    J is the Jaccard coefficient `jaccard`. `earlier` and `later` are samples of the two texts' words (see `sketch`); of
    each bin, the word with the smaller hash is used. N is the share of these words that only the later text has, and no
    text before it, as misprints do. V is the share of the others that both texts have; there, a word is weighted by its
    rareness, log2 of the number of texts divided by those that have the word, because figures and names distinguish
    reports of the same form. `counts` has the number of texts with each word, by hash, and n is the number of texts.
    """
    cdef int k, count, weight, both = 0, one = 0, known = 0, new = 0, most = bit_length(<uint32_t>min(n + 1, 65535))
    cdef uint32_t a, b
    cdef bint of_later
    for k in range(SAMPLE):
        a, b = earlier[k], later[k]
        if not (a or b):
            continue
        of_later = b and (b <= a or not a)
        count = counts[place(b if of_later else a, COUNTER_BITS)] - of_later  # of earlier texts
        if of_later and a != b and not count:
            new += 1
            continue
        known += 1
        weight = max(most - bit_length(max(count, 1)), 0)
        if a == b:
            both += weight
        else:
            one += weight
    return jaccard + (both / (2.0 * (both + one)) if both else 0) + (new / (5.0 * (known + new)) if new else 0)


cdef inline size_t place(uint32_t key, int bits) noexcept nogil:
    return <size_t>((key * <uint64_t>0x9E3779B97F4A7C15) >> (64 - bits))


def enter(const uint32_t[:, ::1] posted, size_t first, uint32_t[::1] head, int bits, uint32_t[::1] after):
    """Add texts to a hash table of 2**bits chains, by the keys in each text's row of `posted`; a key of 0 is none.

    `first` is the number of the first text. For `head` and `after` see `assign`.
    """
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
    uint16_t[::1] counts, int samples, size_t n, double least, int32_t[::1] groups, double[::1] similarities,
    uint32_t[:, ::1] posted, uint32_t[::1] rows,
):
    """Assign texts, in order, to the groups of the earlier texts that they repeat; return how many texts are kept.

    A text is kept, to be found by later ones, unless it has no words, or the same words as an earlier text. Candidates
    are found by those sampled words that the fewest texts so far have. The candidate that shares most bins with the
    text is examined, the earliest of equal ones; if the text repeats it, the text belongs to its group.

    Parameters
    ----------
    fingerprints, sizes, bins, words : ndarray
        The sketches of the texts, as `sketch` writes them.
    known_fingerprints, known_sizes, known_bins, group_of : ndarray
        The same of the n texts kept so far, and the number of the first text of each one's group; there must be room
        for the texts to be kept.
    head, bits, after : ndarray, int, ndarray
        The hash table of 2**bits chains, through which kept texts are found. Entries, numbered from 1, are six per
        text; `head` has the latest entry of each chain, and `after` the entry before each entry; 0: none.
    counts : ndarray of shape (2**24,), uint16
        The number of texts with each sampled word, by hash.
    samples : int
        The descriptor of a file with the sampled words of the n texts, 128 bytes each.
    n : int
        The number of texts kept so far.
    least : float
        The least Jaccard coefficient of a text and a text that it repeats; 0: any.
    groups : ndarray of shape (n_texts,), int32
        Written: the number, among kept texts, of the first text of each text's group; -1: the text has no words.
    similarities : ndarray of shape (n_texts,), float64
        Written: the Jaccard coefficient of the text and the one that it repeats, by pairs of words; 2 if all words are
        the same, -1 if it repeats none.
    posted : ndarray of shape (n_texts, 6), uint32
        Written: the keys, for `enter`, of the texts that are kept; 0 for no key.
    rows : ndarray of shape (n_texts,), uint32
        Written: the positions, among the given texts, of those that are kept.

    Raises
    ------
    OSError
        If the file of sampled words cannot be read.
    """
    cdef Py_ssize_t i
    cdef int k, j, m, asked, looked_at, shared, used, best_shared, best_used, order, failed = 0, n_keys, n_new, n_seen, n_asked, left
    cdef uint32_t entry, y, best, key, n_before = <uint32_t>n
    cdef uint32_t keys[SAMPLE]
    cdef uint16_t seen[SAMPLE]
    cdef uint32_t chains[SAMPLE]
    cdef uint32_t read[SAMPLE]
    cdef const uint32_t* earlier
    cdef double similarity
    cdef uint16_t count
    cdef size_t slot
    with nogil:
        for i in range(sizes.shape[0]):
            groups[i], similarities[i] = -1, -1
            if not sizes[i]:
                continue
            if i + 1 < sizes.shape[0]:
                PREFETCH(&head[place(<uint32_t>(fingerprints[i + 1] >> 32) | 1, bits)])
                for k in range(SAMPLE):
                    PREFETCH(&counts[place(words[i + 1, k], COUNTER_BITS)])
            key = <uint32_t>(fingerprints[i] >> 32) | 1
            entry, looked_at = head[place(key, bits)], 0
            while entry and looked_at < LOOKED_AT_COPIES:
                y = (entry - 1) // SLOTS
                if (
                    known_fingerprints[y] == <uint32_t>fingerprints[i]
                    and known_sizes[y] == sizes[i]
                    and memcmp(&known_bins[y, 0], &bins[i, 0], BYTES) == 0
                ):
                    groups[i], similarities[i] = <int32_t>group_of[y], 2
                    break
                entry = after[entry - 1]
                looked_at += 1
            if groups[i] >= 0:
                continue
            posted[n - n_before, 0] = key
            for k in range(1, SLOTS):
                posted[n - n_before, k] = 0
            group_of[n], known_fingerprints[n], known_sizes[n] = <uint32_t>n, <uint32_t>fingerprints[i], sizes[i]
            memcpy(&known_bins[n, 0], &bins[i, 0], BYTES)
            rows[n - n_before] = <uint32_t>i
            if sizes[i] >= LEAST_WORDS:
                n_keys = 0
                for k in range(SAMPLE):  # sort by count
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
                        if BINS * shared >= LEAST_SHARED * used and known_sizes[y] >= LEAST_WORDS:
                            order = shared * best_used - best_shared * used
                            if order > 0 or (order == 0 and y < best):
                                best, best_shared, best_used = y, shared, used
                        chains[left] = after[chains[k] - 1]
                        left += chains[left] != 0
                    asked = left
                    if not asked:
                        break
                if best_shared:
                    earlier = read
                    if best >= n_before:
                        earlier = &words[rows[best - n_before], 0]
                    elif not read_at(samples, read, sizeof(read), <int64_t>best * sizeof(read)):
                        failed = 1
                        break
                    similarity = jaccard(best_shared, best_used)
                    if similarity >= least and likeness(similarity, earlier, &words[i, 0], &counts[0], n) >= LEAST:
                        group_of[n], similarities[i] = group_of[best], similarity
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
    if failed:
        raise OSError("the samples of earlier texts cannot be read")
    return n - n_before
