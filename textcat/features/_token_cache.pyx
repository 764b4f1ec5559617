"""Compiled: split texts into spans as spaCy does, cache the tokens of every distinct span, and count terms.

A span is what spaCy's tokenizer works on: a run of characters other than whitespace, or a run of whitespace less the
one space that follows a word. A span that occurred before costs one look-up in a hash table. What the look-ups of the next spans
will touch is fetched ahead: with many spans, the table lies in slow memory.
"""

from cpython.unicode cimport PyUnicode_DATA, PyUnicode_FromKindAndData, PyUnicode_KIND
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset

import numpy as np

from textcat.features._affixes cimport Infixes, Prefixes, String, Suffixes, surely_cut

cdef extern from "Python.h":
    bint Py_UNICODE_ISSPACE(Py_UCS4) nogil

cdef extern from "../_memory.h":
    void* aligned_memory(size_t n_bytes) noexcept nogil
    void aligned_free(void* memory) noexcept nogil

cdef extern from *:
    """
    #if defined(__GNUC__)
    #define PREFETCH(position) __builtin_prefetch(position)
    #else
    #define PREFETCH(position) ((void)(position))
    #endif
    """
    void prefetch "PREFETCH"(const void* position) noexcept nogil

ctypedef fused character:
    uint8_t
    uint16_t
    uint32_t

cdef enum:
    OTHER = 128  # stands for all non-ASCII characters
    SHORT = 32   # bytes of a key that stands in its span
    LOOKAHEAD = 32  # spans that are looked up together
    FILTER = 1 << 12  # words of 64 bits
    UNKNOWN = -2
    _LETTERS
    _LETTERS_OR_DIGITS
    _ANYTHING
    LONGEST = 256        # bytes of a span that is cut here
    AHEAD = 8    # spans

cdef struct Buffer:
    char* data
    size_t used
    size_t capacity

cdef struct Text:
    const void* data
    Py_ssize_t length
    int width           # bytes per character
    size_t stop         # where its spans end in the sequence
    int32_t whole       # the one span that stands for the whole text, or -1

cdef struct Piece:      # of a text, before it is looked up
    const char* key
    size_t n_bytes
    uint32_t hash
    int width           # bytes per character, as few as the characters allow

cdef struct Span:       # one line of the processor's cache
    char[SHORT] key     # its characters, or where they stand in the arena
    size_t n_bytes
    size_t ids          # where the lengths of its tokens stand in the pool, if several; then its terms, if several
    int32_t n_tokens
    int32_t n_terms
    int32_t term        # the only one
    uint8_t width
    uint8_t reused       # whether it has occurred again since the last eviction

cdef struct Word:
    size_t start        # of its letters
    uint32_t length
    int32_t id_

cdef struct Slot:
    uint32_t hash
    int32_t span        # -1: free

cdef struct Ngram:
    uint64_t parts      # what precedes the last term, and the last term
    int32_t entry       # its id + 1; 0: free

cdef struct Suspect:
    size_t text
    size_t position     # of the right-hand span in the sequence

cdef uint8_t[256] WHITE
for _code in range(256):
    WHITE[_code] = chr(_code).isspace()


cdef inline bint is_white(Py_UCS4 c) noexcept nogil:
    return WHITE[c] if c < 256 else Py_UNICODE_ISSPACE(c)


cdef inline uint64_t mixed(uint64_t h) noexcept nogil:
    h ^= h >> 32
    h *= 0x9E3779B97F4A7C15ULL
    return h >> 32


cdef inline uint64_t word(const char* bytes_, size_t n) noexcept nogil:
    """Return the first 8 of n bytes as a number, or all of them if there are fewer."""
    cdef uint64_t whole = 0
    cdef uint32_t low, high
    if n >= 8:
        memcpy(&whole, bytes_, 8)
    elif n >= 4:
        memcpy(&low, bytes_, 4)
        memcpy(&high, bytes_ + n - 4, 4)
        whole = <uint64_t>high << 32 | low
    elif n:
        whole = <uint8_t>bytes_[0] | <uint32_t>(<uint8_t>bytes_[n >> 1]) << 8 | <uint32_t>(<uint8_t>bytes_[n - 1]) << 16
    return whole


cdef inline uint32_t hash_of(const char* key, size_t n_bytes) noexcept nogil:
    cdef uint64_t h = n_bytes * 0xC2B2AE3D27D4EB4FULL
    cdef size_t n = n_bytes
    while n > 8:
        h = (h ^ word(key, 8)) * 0xFF51AFD7ED558CCDULL
        h ^= h >> 29
        key += 8
        n -= 8
    return <uint32_t>mixed((h ^ word(key, n)) * 0xFF51AFD7ED558CCDULL)


cdef inline void* reserve(Buffer* buffer, size_t more) except NULL nogil:
    """Return a pointer to room for `more` bytes behind those in use."""
    cdef size_t capacity
    cdef char* data
    if buffer.used + more > buffer.capacity or buffer.data == NULL:
        capacity = 2 * buffer.capacity + more + 4096
        data = <char*>realloc(buffer.data, capacity)
        if data == NULL:
            with gil:
                raise MemoryError
        buffer.data = data
        buffer.capacity = capacity
    return buffer.data + buffer.used


cdef inline int push(Buffer* buffer, int32_t value) except -1 nogil:
    (<int32_t*>reserve(buffer, sizeof(int32_t)))[0] = value
    buffer.used += sizeof(int32_t)
    return 0


cdef object as_array(const Buffer* buffer):
    """Copy a buffer of int32 out."""
    cdef size_t n = buffer.used // sizeof(int32_t)
    array = np.empty(n, np.int32)
    cdef int32_t[::1] view = array
    if n:
        memcpy(&view[0], buffer.data, buffer.used)
    return array


LETTERS, LETTERS_OR_DIGITS, ANYTHING = _LETTERS, _LETTERS_OR_DIGITS, _ANYTHING


cdef class WordTable:
    """The terms of spans of ASCII characters whose tokens are plain without asking the language.

    Each has one token that may be a term, and may have a prefix and a suffix that are none.

    Parameters
    ----------
    ids : dict of str to int
        The ids of the terms of tokens, in lower case; -1 for tokens that are no terms. All others have `other`.
    other : int
    kind : {LETTERS, LETTERS_OR_DIGITS, ANYTHING}
        Of which characters a term consists alone, or has one of, or any.
    specials : set of str
        What may be no run of tokens of a span.
    whole : bool
        Whether spans with affixes are to be left to the language.
    prefixes, suffixes, infixes
        The tables of affixes.
    """

    cdef Prefixes prefixes
    cdef Suffixes suffixes
    cdef Infixes infixes
    cdef bint whole
    cdef int32_t other
    cdef int kind
    cdef uint64_t[FILTER] special  # a bit for each, and so for some others
    cdef Buffer letters, words
    cdef int32_t* slots            # words by hash; -1: free
    cdef size_t n_slots

    def __cinit__(self, dict ids, int32_t other, int kind, set specials, bint whole, prefixes, suffixes, infixes):
        cdef size_t bit
        self.prefixes, self.suffixes, self.infixes = prefixes, suffixes, infixes
        self.whole, self.other, self.kind = whole, other, kind
        for each in specials:
            key = each.encode("utf-8", "surrogatepass")
            bit = special_bit(<const char*>key, len(key))
            self.special[bit >> 6] |= <uint64_t>1 << (bit & 63)
        self.n_slots = 1 << 8
        while self.n_slots < 2 * <size_t>len(ids):
            self.n_slots *= 2
        self.slots = <int32_t*>malloc(self.n_slots * sizeof(int32_t))
        if self.slots == NULL:
            raise MemoryError
        memset(self.slots, 0xFF, self.n_slots * sizeof(int32_t))
        for word, id_ in ids.items():
            if word.isascii():
                add_word(self, word.encode(), id_)

    def __dealloc__(self):
        free(self.slots)
        free(self.letters.data)
        free(self.words.data)


cdef int add_word(WordTable words, bytes key, int32_t id_) except -1:
    cdef Word* word
    cdef const char* letters = key
    cdef size_t position
    memcpy(reserve(&words.letters, len(key)), letters, len(key))
    word = <Word*>reserve(&words.words, sizeof(Word))
    word.start, word.length, word.id_ = words.letters.used, <uint32_t>len(key), id_
    position = hash_of(letters, len(key)) & (words.n_slots - 1)
    while words.slots[position] >= 0:
        position = (position + 1) & (words.n_slots - 1)
    words.slots[position] = <int32_t>(words.words.used // sizeof(Word))
    words.letters.used += len(key)
    words.words.used += sizeof(Word)
    return 0


cdef inline size_t special_bit(const char* key, size_t n) noexcept nogil:
    return hash_of(key, n) & (64 * FILTER - 1)


cdef inline bint is_special(WordTable words, const char* key, size_t n) noexcept nogil:
    cdef size_t bit = special_bit(key, n)
    return words.special[bit >> 6] >> (bit & 63) & 1


cdef int32_t plain_term(WordTable words, String string, int* before, int* behind) noexcept nogil:
    """Return the id of a span's term, -1 if it has none, or UNKNOWN, and the widths of its affixes."""
    cdef const char* key = <const char*>string.data
    cdef size_t n = string.length, core
    cdef char[LONGEST] letters
    cdef size_t k
    cdef uint8_t letter
    if n > LONGEST:
        return UNKNOWN
    for k in range(n):
        if <uint8_t>key[k] >= 128:
            return UNKNOWN
    if is_special(words, key, n):
        return UNKNOWN
    if not surely_cut(words.prefixes, words.suffixes, words.infixes, words.whole, string, before, behind):
        return UNKNOWN
    core = n - before[0] - behind[0]
    if before[0] or behind[0]:
        if (
            is_special(words, key + before[0], core)
            or before[0] and (is_special(words, key, before[0]) or is_special(words, key + before[0], n - before[0]))
            or behind[0] and (
                is_special(words, key + n - behind[0], behind[0]) or is_special(words, key, n - behind[0])
            )
            or may_be_term(words, key, before[0])
            or may_be_term(words, key + n - behind[0], behind[0])
        ):
            return UNKNOWN
    if not may_be_term(words, key + before[0], core):
        return -1
    for k in range(core):
        letter = key[before[0] + k]
        letters[k] = letter | 32 if c"A" <= letter <= c"Z" else letter
    return id_of(words, letters, core)


cdef inline bint may_be_term(WordTable words, const char* key, size_t n) noexcept nogil:
    cdef size_t k, n_letters = 0, n_digits = 0, n_spaces = 0
    for k in range(n):
        n_letters += c"a" <= <uint8_t>key[k] | 32 <= c"z"
        n_digits += c"0" <= <uint8_t>key[k] <= c"9"
        n_spaces += WHITE[<uint8_t>key[k]]
    if words.kind == _LETTERS:
        return n_letters == n and n > 0
    return n_letters + n_digits > 0 if words.kind == _LETTERS_OR_DIGITS else n_spaces < n


cdef inline int32_t id_of(WordTable words, const char* key, size_t n) noexcept nogil:
    cdef size_t position = hash_of(key, n) & (words.n_slots - 1)
    cdef const Word* word
    while words.slots[position] >= 0:
        word = <const Word*>words.words.data + words.slots[position]
        if word.length == n and memcmp(words.letters.data + word.start, key, n) == 0:
            return word.id_
        position = (position + 1) & (words.n_slots - 1)
    return words.other


cdef class TokenCache:
    """The spans that occurred so far with their terms, and the present batch of texts.

    Parameters
    ----------
    edges : ndarray of shape (n, 4), uint32
        The last two characters of a span and the first two of the next one with which they might together form a special
        case; 0 stands for any character before the last one or after the first one, and for none.
    """

    cdef Slot* slots
    cdef size_t n_slots
    cdef Buffer arena, pool
    cdef Span* spans
    cdef size_t n_spans, span_capacity
    cdef size_t n_stored      # spans before it have tokens
    cdef bint overridden      # whether spans, ids and keys beyond the next three belong to the batch alone
    cdef size_t n_kept_spans, n_kept_ids, n_kept_keys
    cdef uint8_t[129][129] edge_pairs  # by the last and the first character; 128 stands for all that are not ASCII
    cdef Buffer edges
    cdef Buffer texts, sequence, suspect_list, narrow
    cdef Ngram* ngram_table
    cdef size_t n_ngram_slots
    cdef bint restricted      # whether all n-grams without an id are counted as the last one
    cdef int32_t last_ngram
    cdef uint64_t[FILTER] ngram_filter  # a bit for some of the n-grams; where there is none, there is no such n-gram
    cdef Buffer ngram_parts, tally, ngram_tally
    cdef list batch

    def __cinit__(self, const uint32_t[:, ::1] edges):
        cdef size_t i
        for i in range(edges.shape[0]):
            self.edge_pairs[min(edges[i, 1], OTHER)][min(edges[i, 2], OTHER)] = True
            memcpy(reserve(&self.edges, 4 * sizeof(uint32_t)), &edges[i, 0], 4 * sizeof(uint32_t))
            self.edges.used += 4 * sizeof(uint32_t)
        self.batch = []
        self.clear_ngrams()
        self.evict(keep_reused=False)

    def __dealloc__(self):
        aligned_free(self.slots)
        free(self.ngram_table)
        free(self.arena.data)
        aligned_free(self.spans)
        free(self.pool.data)
        free(self.texts.data)
        free(self.sequence.data)
        free(self.suspect_list.data)
        free(self.narrow.data)
        free(self.edges.data)
        free(self.ngram_parts.data)
        free(self.tally.data)
        free(self.ngram_tally.data)

    def clear_ngrams(self):
        """Drop all n-grams."""
        self.restricted = False
        self.ngram_parts.used = 0
        free(self.ngram_table)
        self.n_ngram_slots = 1 << 12
        self.ngram_table = <Ngram*>calloc(self.n_ngram_slots, sizeof(Ngram))
        if self.ngram_table == NULL:
            raise MemoryError

    def evict(self, bint keep_reused=True):
        """Drop the spans that have not occurred again since they came or since the last eviction, or all."""
        self.release()
        cdef Buffer arena = self.arena, pool = self.pool
        cdef Span* spans = self.spans
        cdef size_t i, n = self.n_stored if keep_reused else 0
        reset_spans(self)
        try:
            with nogil:
                for i in range(n):
                    keep_span(self, spans + i, &arena, &pool)
        finally:
            free(arena.data)
            aligned_free(spans)
            free(pool.data)
        self.n_stored = self.n_spans
        new_table(self, 1 << 8)

    def restrict(self, const int32_t[:, ::1] parts, const int32_t[::1] new_ids):
        """Count from now on all other n-grams as the last of these, and change the ids of the terms in the cache.

        Parameters
        ----------
        parts : ndarray of shape (n_ngrams, 2), int32
            As `ngrams`.
        new_ids : ndarray of shape (n_terms,), int32
            The new id of each term.
        """
        cdef size_t i, bit
        cdef int k
        cdef Span* span
        cdef int32_t* terms
        self.release()
        self.clear_ngrams()
        memset(self.ngram_filter, 0, sizeof(self.ngram_filter))
        for i in range(parts.shape[0]):
            ngram_id(self, parts[i, 0], parts[i, 1])
            bit = filter_bit(parts_of(parts[i, 0], parts[i, 1]))
            self.ngram_filter[bit >> 6] |= <uint64_t>1 << (bit & 63)
        self.restricted, self.last_ngram = True, <int32_t>parts.shape[0] - 1
        zeros(&self.ngram_tally, parts.shape[0])
        for i in range(self.n_stored):
            span = self.spans + i
            terms = terms_of(self, span)
            for k in range(span.n_terms):
                terms[k] = new_ids[terms[k]]

    @property
    def span_bytes(self):
        """The bytes that the spans and their tokens take."""
        return self.n_slots * sizeof(Slot) + self.arena.used + self.n_spans * sizeof(Span) + self.pool.used

    @property
    def nbytes(self):
        """The bytes that the spans, their tokens, and the n-grams take."""
        return self.span_bytes + self.n_ngram_slots * sizeof(Ngram) + self.ngram_parts.used

    @property
    def ngrams(self):
        """Array of shape (n_ngrams, 2), int32: by id, what precedes the last term, and that term.

        A term precedes it, or `~id` of an n-gram of one term less.
        """
        return as_array(&self.ngram_parts).reshape(-1, 2)

    def load(self, list texts):
        """Load a batch of texts and look every span up."""
        cdef Text* text
        cdef size_t i, n = len(texts)
        self.release()
        self.batch = texts
        reserve(&self.texts, n * sizeof(Text))
        self.texts.used = n * sizeof(Text)
        for i in range(n):
            string = <str?>texts[i]
            text = <Text*>self.texts.data + i
            text.data = PyUnicode_DATA(string)
            text.length = len(string)
            text.width = PyUnicode_KIND(string)
            text.whole = -1
        with nogil:
            for i in range(n):
                text = <Text*>self.texts.data + i
                if text.width == 1:
                    scan_text(self, <const uint8_t*>text.data, text.length, i)
                elif text.width == 2:
                    scan_text(self, <const uint16_t*>text.data, text.length, i)
                else:
                    scan_text(self, <const uint32_t*>text.data, text.length, i)
                text.stop = self.sequence.used // sizeof(int32_t)

    def release(self):
        """Drop the batch."""
        if self.overridden:
            self.n_spans = self.n_stored = self.n_kept_spans
            self.pool.used = self.n_kept_ids
            self.arena.used = self.n_kept_keys
            self.overridden = False
        self.batch = []
        self.texts.used = self.sequence.used = self.suspect_list.used = 0

    def store_plain(self, WordTable words):
        """Store the tokens of those unknown spans that need no language for it."""
        cdef size_t i
        with nogil:
            for i in range(self.n_stored, self.n_spans):
                store_span(self, words, self.spans + i)

    def unknown(self):
        """Return the spans without tokens, as strings, in the order in which they occurred."""
        cdef size_t i
        return [
            span_text(self, self.spans + i) for i in range(self.n_stored, self.n_spans) if not self.spans[i].n_tokens
        ]

    def store(self, list tokens, dict terms, const int32_t[::1] lengths):
        """Store the tokens of the unknown spans.

        Parameters
        ----------
        tokens : list of str
            Those of the first unknown span, of the second, and so on.
        terms : dict of str to int
            The term of each token; -1 for none.
        lengths : ndarray of shape (n_unknown,), int32
            How many tokens each span has.
        """
        cdef size_t i, k = 0, start = 0
        for i in range(self.n_stored, self.n_spans):
            if not self.spans[i].n_tokens:
                store_tokens(self, self.spans + i, tokens, terms, start, lengths[k])
                start += lengths[k]
                k += 1
        self.n_stored = self.n_spans

    def suspects(self):
        """Return (text, position, left span, right span) where two neighbours might form a special case together."""
        cdef size_t i
        cdef Suspect* suspect
        cdef const int32_t* sequence = <int32_t*>self.sequence.data
        pairs = []
        for i in range(self.suspect_list.used // sizeof(Suspect)):
            suspect = <Suspect*>self.suspect_list.data + i
            pairs.append((suspect.text, suspect.position, sequence[suspect.position - 1], sequence[suspect.position]))
        return pairs

    def span(self, int32_t i):
        """Return a span by its position, its first token, and its last one."""
        cdef Span* span = self.spans + i
        cdef const int32_t* lengths = <const int32_t*>(self.pool.data + span.ids)
        string = span_text(self, span)
        if span.n_tokens == 1:
            return string, string, string
        return string, string[: lengths[0]], string[len(string) - lengths[span.n_tokens - 1] :]

    def around(self, size_t text, size_t position, size_t reach):
        """Return the joined spans of a text before a position, and those from there on: up to `reach` either way."""
        cdef Text* each = <Text*>self.texts.data + text
        cdef size_t start = (each - 1).stop if text else 0
        cdef const int32_t* sequence = <int32_t*>self.sequence.data
        left = [span_text(self, self.spans + sequence[i]) for i in range(max(start, position - min(reach, position)), position)]
        right = [span_text(self, self.spans + sequence[i]) for i in range(position, min(each.stop, position + reach))]
        return "".join(left), "".join(right)

    def override(self, size_t text, list tokens, dict terms):
        """Store the tokens of a text of the batch as a whole; for the parameters see `store`."""
        cdef Piece piece
        cdef str joined = "".join(tokens)
        if not self.overridden:
            self.n_kept_spans, self.n_kept_ids, self.n_kept_keys = self.n_spans, self.pool.used, self.arena.used
            self.overridden = True
        piece.key = <const char*>PyUnicode_DATA(joined)
        piece.width = PyUnicode_KIND(joined)
        piece.n_bytes = len(joined) * piece.width
        (<Text*>self.texts.data + text).whole = <int32_t>self.n_spans
        add_span(self, &piece)
        store_tokens(self, self.spans + self.n_stored, tokens, terms, 0, len(tokens))
        self.n_stored += 1

    def tokens(self, size_t text):
        """Return the tokens of a text of the batch."""
        cdef size_t i, n
        cdef Span* span
        cdef int k
        cdef const int32_t* lengths
        cdef const int32_t* spans = spans_of(self, text, &n)
        tokens = []
        for i in range(n):
            span = self.spans + spans[i]
            string, start = span_text(self, span), 0
            if span.n_tokens == 1:
                tokens.append(string)
                continue
            lengths = <const int32_t*>(self.pool.data + span.ids)
            for k in range(span.n_tokens):
                tokens.append(string[start : start + lengths[k]])
                start += lengths[k]
        return tokens

    def n_tokens(self):
        """Count the tokens of every text of the batch."""
        cdef size_t i, t, n, n_texts = self.texts.used // sizeof(Text)
        cdef const int32_t* spans
        totals = np.zeros(n_texts, np.int64)
        cdef int64_t[::1] total = totals
        for t in range(n_texts):
            spans = spans_of(self, t, &n)
            for i in range(n):
                total[t] += self.spans[spans[i]].n_tokens
        return totals

    def count(self, size_t n_terms, int longest, const int64_t[::1] char_ends, const int32_t[::1] char_ids):
        """Count the terms of every text of the batch.

        Parameters
        ----------
        n_terms : int
            Above all term ids.
        longest : int
            Also count the n-grams of up to so many consecutive terms; at most 3.
        char_ends : ndarray of shape (n_terms,) or (0,), int64
            Where the character n-grams of each term end in `char_ids`; if empty, none are counted.
        char_ids : ndarray, int32
            Ids of terms, those that stand for character n-grams.

        Returns
        -------
        ends : ndarray of shape (n_texts,), int64
            Where each text's terms end in the other two.
        ids : ndarray of int32
            Every term of a text once, in the order of first occurrence; `~id` for an n-gram.
        counts : ndarray of int32
        """
        cdef size_t t, start, n_texts = self.texts.used // sizeof(Text)
        cdef Buffer ids, counts
        ends = np.empty(n_texts, np.int64)
        cdef int64_t[::1] end = ends
        memset(&ids, 0, sizeof(Buffer))
        memset(&counts, 0, sizeof(Buffer))
        try:
            with nogil:
                zeros(&self.tally, n_terms)
                for t in range(n_texts):
                    start = ids.used
                    count_text(self, t, longest, &ids)
                    if char_ends.shape[0]:
                        count_chars(self, &char_ends[0], &char_ids[0] if char_ids.shape[0] else NULL, start, &ids)
                    collect(self, &ids, start, &counts)
                    end[t] = ids.used // sizeof(int32_t)
            return ends, as_array(&ids), as_array(&counts)
        finally:
            free(ids.data)
            free(counts.data)


cdef inline const char* key_of(const Buffer* arena, const Span* span) noexcept nogil:
    cdef size_t position
    if span.n_bytes <= SHORT:
        return span.key
    memcpy(&position, span.key, sizeof(position))
    return arena.data + position


cdef inline int32_t* terms_of(TokenCache cache, Span* span) noexcept nogil:
    if span.n_terms == 1:
        return &span.term
    return <int32_t*>(cache.pool.data + span.ids) + (span.n_tokens if span.n_tokens > 1 else 0)


cdef str span_text(TokenCache cache, Span* span):
    return <str>PyUnicode_FromKindAndData(span.width, key_of(&cache.arena, span), span.n_bytes // span.width)


cdef const int32_t* spans_of(TokenCache cache, size_t text, size_t* n) noexcept nogil:
    cdef Text* each = <Text*>cache.texts.data + text
    cdef size_t start = (each - 1).stop if text else 0
    if each.whole >= 0:
        n[0] = 1
        return &each.whole
    n[0] = each.stop - start
    return <int32_t*>cache.sequence.data + start


cdef int store_tokens(TokenCache cache, Span* span, list tokens, dict terms, size_t start, size_t n) except -1:
    cdef size_t k
    cdef int32_t term
    span.ids = cache.pool.used
    span.n_tokens = <int32_t>n
    span.n_terms = 0
    for k in range(start, start + n):
        if n > 1:
            push(&cache.pool, <int32_t>len(<str>tokens[k]))
        term = terms[tokens[k]]
        if term >= 0:
            span.n_terms += 1
            span.term = term
    if span.n_terms > 1:
        for k in range(start, start + n):
            term = terms[tokens[k]]
            if term >= 0:
                push(&cache.pool, term)
    return 0


cdef int store_span(TokenCache cache, WordTable words, Span* span) except -1 nogil:
    cdef String string
    cdef int before, behind
    cdef int32_t term
    string.data, string.length, string.kind = key_of(&cache.arena, span), span.n_bytes, 1
    term = plain_term(words, string, &before, &behind)
    if span.width != 1 or term == UNKNOWN:
        return 0
    span.ids = cache.pool.used
    span.n_tokens = 1 + (before > 0) + (behind > 0)
    span.n_terms, span.term = term >= 0, term
    if before:
        push(&cache.pool, before)
    if before or behind:
        push(&cache.pool, <int32_t>string.length - before - behind)
    if behind:
        push(&cache.pool, behind)
    return 0


cdef int scan_text(TokenCache cache, const character* s, Py_ssize_t n, size_t text) except -1 nogil:
    cdef Piece[LOOKAHEAD] lookahead
    cdef Piece* piece
    cdef Py_ssize_t i = 0, start, before = 0, stop = 0  # of the present span, the one before it, and its end
    cdef int n_pieces = 0
    cache.narrow.used = 0
    if sizeof(character) > 1:
        reserve(&cache.narrow, n * sizeof(character))  # so that the keys in there stay where they are
    while i < n:
        if is_white(s[i]):
            # The space after a word is no span of its own, and does not begin one.
            if i > 0 and s[i] == 32:
                i += 1
            start = i
            while i < n and is_white(s[i]):
                i += 1
        else:
            start = i
            while i < n and not is_white(s[i]):
                i += 1
        if i > start:
            if stop and cache.edge_pairs[min(s[stop - 1], OTHER)][min(s[start], OTHER)]:
                if edges(
                    cache, s[stop - 2] if stop > before + 1 else 0, s[stop - 1], s[start], s[start + 1] if i > start + 1 else 0
                ):
                    suspect(cache, text, n_pieces)
            before, stop = start, i
            piece = lookahead + n_pieces
            set_key(cache, piece, s + start, i - start)
            piece.hash = hash_of(piece.key, piece.n_bytes)
            prefetch(cache.slots + (piece.hash & (cache.n_slots - 1)))
            n_pieces += 1
            if n_pieces == LOOKAHEAD:
                look_up_all(cache, lookahead, n_pieces)
                n_pieces = 0
    return look_up_all(cache, lookahead, n_pieces)


cdef inline int set_key(TokenCache cache, Piece* piece, const character* s, size_t n) except -1 nogil:
    """Write a piece's characters down in as few bytes as they allow: a span is the same in texts of any width."""
    cdef uint32_t union = 0
    cdef size_t k
    cdef char* key
    if sizeof(character) == 1:
        piece.key, piece.n_bytes, piece.width = <const char*>s, n, 1
        return 0
    for k in range(n):
        union |= s[k]
    piece.width = 1 if union < 0x100 else 2 if union < 0x10000 else 4
    piece.n_bytes = n * piece.width
    if piece.width == sizeof(character):
        piece.key = <const char*>s
        return 0
    key = cache.narrow.data + cache.narrow.used
    cache.narrow.used += (piece.n_bytes + 1) & ~<size_t>1
    for k in range(n):
        if piece.width == 1:
            (<uint8_t*>key)[k] = <uint8_t>s[k]
        else:
            (<uint16_t*>key)[k] = <uint16_t>s[k]
    piece.key = key
    return 0


cdef bint edges(TokenCache cache, uint32_t last_but_one, uint32_t last, uint32_t first, uint32_t second) noexcept nogil:
    cdef const uint32_t* each = <const uint32_t*>cache.edges.data
    cdef size_t i
    for i in range(cache.edges.used // (4 * sizeof(uint32_t))):
        if each[1] == last and each[2] == first:
            if not (each[0] and last_but_one and each[0] != last_but_one):
                if not (each[3] and second and each[3] != second):
                    return True
        each += 4
    return False


cdef int suspect(TokenCache cache, size_t text, size_t n_pieces) except -1 nogil:
    cdef Suspect* added = <Suspect*>reserve(&cache.suspect_list, sizeof(Suspect))
    added.text = text
    added.position = cache.sequence.used // sizeof(int32_t) + n_pieces
    cache.suspect_list.used += sizeof(Suspect)
    return 0


cdef int look_up_all(TokenCache cache, const Piece* pieces, int n) except -1 nogil:
    cdef int k
    cdef Slot slot
    for k in range(n):
        slot = cache.slots[pieces[k].hash & (cache.n_slots - 1)]
        if slot.span >= 0:
            prefetch(cache.spans + slot.span)
    for k in range(n):
        look_up(cache, pieces + k)
    return 0


cdef inline int look_up(TokenCache cache, const Piece* piece) except -1 nogil:
    """Append the span's position to the sequence, and add the span if it is new."""
    cdef size_t mask = cache.n_slots - 1
    cdef size_t position = piece.hash & mask
    cdef Slot slot
    cdef Span* span
    while True:
        slot = cache.slots[position]
        if slot.span < 0:
            break
        if slot.hash == piece.hash:
            span = cache.spans + slot.span
            if (
                span.n_bytes == piece.n_bytes
                and span.width == piece.width
                and memcmp(key_of(&cache.arena, span), piece.key, piece.n_bytes) == 0
            ):
                span.reused = True
                return push(&cache.sequence, slot.span)
        position = (position + 1) & mask
    slot.hash = piece.hash
    slot.span = <int32_t>cache.n_spans
    cache.slots[position] = slot
    push(&cache.sequence, slot.span)
    add_span(cache, piece)
    if 2 * cache.n_spans > cache.n_slots:
        new_table(cache, 2 * cache.n_slots)
    return 0


cdef Span* add_span(TokenCache cache, const Piece* piece) except NULL nogil:
    cdef Span* span
    if cache.n_spans == cache.span_capacity:
        grow_spans(cache)
    span = cache.spans + cache.n_spans
    cache.n_spans += 1
    memset(span, 0, sizeof(Span))
    span.width = piece.width
    span.n_bytes = piece.n_bytes
    if piece.n_bytes <= SHORT:
        memcpy(span.key, piece.key, piece.n_bytes)
    else:
        memcpy(reserve(&cache.arena, piece.n_bytes + 4), piece.key, piece.n_bytes)
        memcpy(span.key, &cache.arena.used, sizeof(size_t))
        cache.arena.used += (piece.n_bytes + 3) & ~<size_t>3  # keys of wide characters stay aligned
    return span


cdef int grow_spans(TokenCache cache) except -1 nogil:
    """Move the spans to where there is room for twice as many."""
    cdef size_t span_capacity = 2 * cache.span_capacity + 64
    cdef Span* spans = <Span*>aligned_memory(span_capacity * sizeof(Span))
    if spans == NULL:
        with gil:
            raise MemoryError
    if cache.n_spans:
        memcpy(spans, cache.spans, cache.n_spans * sizeof(Span))
    aligned_free(cache.spans)
    cache.spans, cache.span_capacity = spans, span_capacity
    return 0


cdef void reset_spans(TokenCache cache) noexcept nogil:
    """Start with no spans, and no memory for any."""
    memset(&cache.arena, 0, sizeof(Buffer))
    memset(&cache.pool, 0, sizeof(Buffer))
    cache.spans = NULL
    cache.n_spans = cache.span_capacity = cache.n_stored = 0


cdef int keep_span(TokenCache cache, const Span* old, const Buffer* arena, const Buffer* pool) except -1 nogil:
    """Copy a span out of what the cache held before, if it has occurred again."""
    cdef Piece piece
    cdef Span* span
    cdef size_t n_bytes
    if not old.reused:
        return 0
    piece.key, piece.n_bytes, piece.width = key_of(arena, old), old.n_bytes, old.width
    span = add_span(cache, &piece)
    span.n_tokens, span.n_terms, span.term, span.ids = old.n_tokens, old.n_terms, old.term, cache.pool.used
    n_bytes = sizeof(int32_t) * ((old.n_tokens if old.n_tokens > 1 else 0) + (old.n_terms if old.n_terms > 1 else 0))
    if n_bytes:
        memcpy(reserve(&cache.pool, n_bytes), pool.data + old.ids, n_bytes)
        cache.pool.used += n_bytes
    return 0


cdef int new_table(TokenCache cache, size_t n_slots) except -1 nogil:
    """Enter all spans into a hash table of so many slots, or of as many more as they need."""
    while n_slots < 2 * cache.n_spans:
        n_slots *= 2
    cdef size_t i, position
    cdef Slot* slots
    cdef Span* span
    cdef uint32_t hash_
    slots = <Slot*>aligned_memory(n_slots * sizeof(Slot))
    if slots == NULL:
        with gil:
            raise MemoryError
    memset(slots, 0xFF, n_slots * sizeof(Slot))
    for i in range(cache.n_spans):
        span = cache.spans + i
        hash_ = hash_of(key_of(&cache.arena, span), span.n_bytes)
        position = hash_ & (n_slots - 1)
        while slots[position].span >= 0:
            position = (position + 1) & (n_slots - 1)
        slots[position].hash, slots[position].span = hash_, <int32_t>i
    aligned_free(cache.slots)
    cache.slots, cache.n_slots = slots, n_slots
    return 0


cdef int zeros(Buffer* tally, size_t n) except -1 nogil:
    """Lengthen a tally; between texts it holds nothing but zeros."""
    cdef size_t nbytes = n * sizeof(int32_t)
    if tally.used < nbytes:
        memset(reserve(tally, nbytes - tally.used), 0, nbytes - tally.used)
        tally.used = nbytes
    return 0


cdef int count_text(TokenCache cache, size_t text, int longest, Buffer* ids) except -1 nogil:
    cdef size_t i, n
    cdef const int32_t* spans = spans_of(cache, text, &n)
    cdef const int32_t* terms
    cdef int32_t* tally = <int32_t*>cache.tally.data
    cdef int32_t term, before = -1, pair = -1, id_
    cdef Span* span
    cdef int k
    for i in range(n):
        if i + AHEAD < n:
            prefetch(cache.spans + spans[i + AHEAD])
        span = cache.spans + spans[i]
        terms = terms_of(cache, span)
        for k in range(span.n_terms):
            term = terms[k]
            if tally[term] == 0:
                push(ids, term)
            tally[term] += 1
            if longest > 1:
                if before >= 0:
                    id_ = count_ngram(cache, before, term, ids)
                    if longest > 2 and pair >= 0:
                        count_ngram(cache, ~pair, term, ids)
                    pair = id_
                before = term
    return 0


cdef int32_t count_ngram(TokenCache cache, int32_t left, int32_t right, Buffer* ids) except -1 nogil:
    cdef int32_t id_ = ngram_id(cache, left, right)
    zeros(&cache.ngram_tally, id_ + 1)
    if (<int32_t*>cache.ngram_tally.data)[id_] == 0:
        push(ids, ~id_)
    (<int32_t*>cache.ngram_tally.data)[id_] += 1
    return id_


cdef int count_chars(
    TokenCache cache, const int64_t* ends, const int32_t* char_ids, size_t start, Buffer* ids
) except -1 nogil:
    """Count the character n-grams of a text by those of its terms."""
    cdef size_t k, n = ids.used // sizeof(int32_t)
    cdef int32_t* tally = <int32_t*>cache.tally.data
    cdef int32_t term
    cdef int64_t i
    for k in range(start // sizeof(int32_t), n):
        term = (<int32_t*>ids.data)[k]
        if term >= 0:
            for i in range(ends[term - 1] if term else 0, ends[term]):
                if tally[char_ids[i]] == 0:
                    push(ids, char_ids[i])
                tally[char_ids[i]] += tally[term]
    return 0


cdef int collect(TokenCache cache, const Buffer* ids, size_t start, Buffer* counts) except -1 nogil:
    """Move the counts of one text from the tallies behind the others."""
    cdef int32_t* count = <int32_t*>reserve(counts, ids.used - start)
    cdef const int32_t* id = <const int32_t*>(ids.data + start)
    cdef int32_t* total
    cdef size_t k, n = (ids.used - start) // sizeof(int32_t)
    for k in range(n):
        total = (
            &(<int32_t*>cache.tally.data)[id[k]] if id[k] >= 0 else &(<int32_t*>cache.ngram_tally.data)[~id[k]]
        )
        count[k] = total[0]
        total[0] = 0
    counts.used += ids.used - start
    return 0


cdef int32_t ngram_id(TokenCache cache, int32_t left, int32_t right) except -1 nogil:
    """Return the id of an n-gram: the next one if it is new, or the last one if no more are taken."""
    cdef uint64_t parts = parts_of(left, right)
    cdef size_t bit
    cdef Ngram* slot
    cdef int32_t id_
    if cache.restricted:
        bit = filter_bit(parts)
        if not cache.ngram_filter[bit >> 6] >> (bit & 63) & 1:
            return cache.last_ngram
    slot = slot_of(cache.ngram_table, cache.n_ngram_slots, parts)
    if slot.entry:
        return slot.entry - 1
    if cache.restricted:
        return cache.last_ngram
    id_ = <int32_t>(cache.ngram_parts.used // (2 * sizeof(int32_t)))
    slot.parts = parts
    slot.entry = id_ + 1
    push(&cache.ngram_parts, left)
    push(&cache.ngram_parts, right)
    if 2 * <size_t>id_ > cache.n_ngram_slots:
        grow_ngrams(cache)
    return id_


cdef inline uint64_t parts_of(int32_t left, int32_t right) noexcept nogil:
    return <uint64_t><uint32_t>left << 32 | <uint32_t>right


cdef inline size_t filter_bit(uint64_t parts) noexcept nogil:
    return (parts * 0x9E3779B97F4A7C15ULL >> 40) & (64 * FILTER - 1)


cdef inline Ngram* slot_of(Ngram* ngrams, size_t n_slots, uint64_t parts) noexcept nogil:
    cdef size_t position = mixed(parts * 0xFF51AFD7ED558CCDULL) & (n_slots - 1)
    while ngrams[position].entry and ngrams[position].parts != parts:
        position = (position + 1) & (n_slots - 1)
    return &ngrams[position]


cdef int grow_ngrams(TokenCache cache) except -1 nogil:
    cdef size_t n_slots = 2 * cache.n_ngram_slots, i
    cdef Ngram* ngrams = <Ngram*>calloc(n_slots, sizeof(Ngram))
    if ngrams == NULL:
        with gil:
            raise MemoryError
    for i in range(cache.n_ngram_slots):
        if cache.ngram_table[i].entry:
            slot_of(ngrams, n_slots, cache.ngram_table[i].parts)[0] = cache.ngram_table[i]
    free(cache.ngram_table)
    cache.ngram_table, cache.n_ngram_slots = ngrams, n_slots
    return 0
