"""Compiled: split texts into spans as spaCy does, remember the tokens of every distinct span, and count terms.

A span is what spaCy's tokenizer works on: a run of characters other than whitespace, or a run of whitespace less the
one space that follows a word. A span met before costs one look-up in a hash table.
"""

from cpython.unicode cimport PyUnicode_DATA, PyUnicode_FromKindAndData, PyUnicode_KIND
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset

import numpy as np

cdef extern from "Python.h":
    bint Py_UNICODE_ISSPACE(Py_UCS4) nogil

ctypedef fused character:
    uint8_t
    uint16_t
    uint32_t

cdef enum:
    OTHER = 128  # stands for all non-ASCII characters
    NOWHERE = 129

cdef struct Buffer:
    char* data
    size_t used
    size_t capacity

cdef struct Text:
    const void* data
    Py_ssize_t length
    int width           # bytes per character
    size_t stop         # where its spans end in the reading
    int32_t whole       # the one span that stands for the whole text, or -1

cdef struct Span:
    size_t key          # where its characters stand in the arena
    size_t ids          # where its token ids stand in the pool; its term ids follow them
    uint32_t length     # in characters
    int32_t n_tokens
    int32_t n_terms
    int32_t width       # bytes per character, as few as the characters allow

cdef struct Slot:
    uint32_t hash
    int32_t span        # -1: free

cdef struct Ngram:
    uint64_t parts      # what stands before the last term, and the last term
    int32_t place       # its number + 1; 0: free

cdef struct Suspect:
    size_t text
    size_t position     # of the right-hand span in the reading

cdef uint8_t[256] WHITE
for _code in range(256):
    WHITE[_code] = chr(_code).isspace()


cdef inline bint is_white(Py_UCS4 c) noexcept nogil:
    return WHITE[c] if c < 256 else Py_UNICODE_ISSPACE(c)


cdef inline uint64_t mixed(uint64_t h) noexcept nogil:
    h ^= h >> 32
    h *= 0x9E3779B97F4A7C15ULL
    return h >> 32


cdef inline void* room(Buffer* buffer, size_t more) except NULL nogil:
    """Make room for `more` bytes behind those in use, and point at it."""
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
    (<int32_t*>room(buffer, sizeof(int32_t)))[0] = value
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


cdef class Memo:
    """The spans met so far with their tokens, and the batch of texts in hand.

    Parameters
    ----------
    clashes : ndarray of shape (129, 129), uint8
        Non-zero at [last, first] if a span that ends with one character and the next span, beginning with the other,
        might together form a special case. 128 stands for all non-ASCII characters.
    """

    cdef Slot* slots
    cdef size_t n_slots
    cdef Buffer arena, spans, pool
    cdef size_t n_learnt      # spans before it have tokens
    cdef bint lent            # whether spans and ids behind those kept belong to the batch alone
    cdef size_t kept_spans, kept_ids
    cdef uint8_t[129][130] clash
    cdef Buffer texts, reading, suspects
    cdef Ngram* ngrams
    cdef size_t n_ngram_slots
    cdef Buffer ngram_parts, tally, ngram_tally
    cdef list held

    def __cinit__(self, const uint8_t[:, ::1] clashes):
        cdef int last, first
        for last in range(129):
            for first in range(129):
                self.clash[last][first] = clashes[last, first]
        self.held = []
        self.n_ngram_slots = 1 << 12
        self.ngrams = <Ngram*>calloc(self.n_ngram_slots, sizeof(Ngram))
        if self.ngrams == NULL:
            raise MemoryError
        self.forget_spans()

    def __dealloc__(self):
        free(self.slots)
        free(self.ngrams)
        free(self.arena.data)
        free(self.spans.data)
        free(self.pool.data)
        free(self.texts.data)
        free(self.reading.data)
        free(self.suspects.data)
        free(self.ngram_parts.data)
        free(self.tally.data)
        free(self.ngram_tally.data)

    def forget_spans(self):
        """Start anew with an empty hash table; n-grams keep their numbers."""
        self.put_down()
        free(self.slots)
        free(self.arena.data)
        free(self.spans.data)
        free(self.pool.data)
        memset(&self.arena, 0, sizeof(Buffer))
        memset(&self.spans, 0, sizeof(Buffer))
        memset(&self.pool, 0, sizeof(Buffer))
        self.n_learnt = 0
        self.n_slots = 1 << 12
        self.slots = <Slot*>malloc(self.n_slots * sizeof(Slot))
        if self.slots == NULL:
            raise MemoryError
        memset(self.slots, 0xFF, self.n_slots * sizeof(Slot))

    @property
    def span_bytes(self):
        """How many bytes the spans and their tokens take."""
        return self.n_slots * sizeof(Slot) + self.arena.used + self.spans.used + self.pool.used

    @property
    def nbytes(self):
        """How many bytes the spans, their tokens, and the n-grams take."""
        return self.span_bytes + self.n_ngram_slots * sizeof(Ngram) + self.ngram_parts.used

    @property
    def parts_of_ngrams(self):
        """Array of shape (n_ngrams, 2), int32: by number, what stands before the last term, and that term.

        Before the last term stands a term, or `~number` of an n-gram of one term less.
        """
        return as_array(&self.ngram_parts).reshape(-1, 2)

    def read(self, list texts):
        """Take a batch of texts in hand and look every span up."""
        cdef Text* text
        cdef size_t i, n = len(texts)
        self.put_down()
        self.held = texts
        room(&self.texts, n * sizeof(Text))
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
                    read_text(self, <const uint8_t*>text.data, text.length, i)
                elif text.width == 2:
                    read_text(self, <const uint16_t*>text.data, text.length, i)
                else:
                    read_text(self, <const uint32_t*>text.data, text.length, i)
                text.stop = self.reading.used // sizeof(int32_t)

    def put_down(self):
        """Forget the batch."""
        if self.lent:
            self.spans.used = self.kept_spans
            self.pool.used = self.kept_ids
            self.n_learnt = self.spans.used // sizeof(Span)
            self.lent = False
        self.held = []
        self.texts.used = self.reading.used = self.suspects.used = 0

    def unknown(self):
        """List the spans without tokens, as strings, in the order in which they were met."""
        cdef size_t i
        return [span_text(self, i) for i in range(self.n_learnt, self.spans.used // sizeof(Span))]

    def learn(self, const int32_t[::1] tokens, const int32_t[::1] terms, const int32_t[::1] lengths):
        """Give the unknown spans their tokens.

        Parameters
        ----------
        tokens : ndarray of shape (n,), int32
            Token ids of the first unknown span, of the second, and so on.
        terms : ndarray of shape (n,), int32
            The term of each of these tokens; -1 for none.
        lengths : ndarray of shape (n_unknown,), int32
            How many tokens each span has.
        """
        cdef size_t i, start = 0
        with nogil:
            for i in range(lengths.shape[0]):
                store_ids(self, self.n_learnt, tokens, terms, start, lengths[i])
                self.n_learnt += 1
                start += lengths[i]

    def suspected(self):
        """List (text, place, left span, right span) where two neighbours might form a special case together."""
        cdef size_t i
        cdef Suspect* suspect
        cdef const int32_t* reading = <int32_t*>self.reading.data
        found = []
        for i in range(self.suspects.used // sizeof(Suspect)):
            suspect = <Suspect*>self.suspects.data + i
            found.append((suspect.text, suspect.position, reading[suspect.position - 1], reading[suspect.position]))
        return found

    def span(self, int32_t i):
        """Give a span by number: its string, and the ids of its first and last token."""
        cdef Span* span = <Span*>self.spans.data + i
        cdef const int32_t* ids = <const int32_t*>(self.pool.data + span.ids)
        return span_text(self, i), ids[0], ids[span.n_tokens - 1]

    def around(self, size_t text, size_t place, size_t reach):
        """Join the spans of a text before a place, and those from there on: up to `reach` either way."""
        cdef Text* each = <Text*>self.texts.data + text
        cdef size_t start = (each - 1).stop if text else 0
        cdef const int32_t* reading = <int32_t*>self.reading.data
        left = [span_text(self, reading[i]) for i in range(max(start, place - min(reach, place)), place)]
        right = [span_text(self, reading[i]) for i in range(place, min(each.stop, place + reach))]
        return "".join(left), "".join(right)

    def replace(self, size_t text, const int32_t[::1] tokens, const int32_t[::1] terms):
        """Give a text of the batch, as a whole, the tokens it has."""
        cdef Span* span
        if not self.lent:
            self.kept_spans, self.kept_ids = self.spans.used, self.pool.used
            self.lent = True
        span = <Span*>room(&self.spans, sizeof(Span))
        span.length = span.width = span.key = 0
        (<Text*>self.texts.data + text).whole = self.spans.used // sizeof(Span)
        self.spans.used += sizeof(Span)
        store_ids(self, self.n_learnt, tokens, terms, 0, tokens.shape[0])
        self.n_learnt += 1

    def tokens(self, size_t text):
        """List the token ids of a text of the batch."""
        cdef size_t i, n
        cdef Span* span
        cdef int k
        cdef const int32_t* spans = spans_of(self, text, &n)
        found = []
        for i in range(n):
            span = <Span*>self.spans.data + spans[i]
            for k in range(span.n_tokens):
                found.append((<int32_t*>(self.pool.data + span.ids))[k])
        return found

    def n_tokens(self):
        """Count the tokens of every text of the batch."""
        cdef size_t i, t, n, n_texts = self.texts.used // sizeof(Text)
        cdef const int32_t* spans
        totals = np.zeros(n_texts, np.int64)
        cdef int64_t[::1] total = totals
        for t in range(n_texts):
            spans = spans_of(self, t, &n)
            for i in range(n):
                total[t] += (<Span*>self.spans.data + spans[i]).n_tokens
        return totals

    def count(self, size_t n_terms, int longest, const int64_t[::1] spelt_ends, const int32_t[::1] spelt):
        """Count the terms of every text of the batch.

        Parameters
        ----------
        n_terms : int
            Above all term ids.
        longest : int
            Also count the n-grams of up to so many consecutive terms; at most 3.
        spelt_ends : ndarray of shape (n_terms,) or (0,), int64
            Where the character n-grams of each term end in `spelt`; if empty, none are counted.
        spelt : ndarray, int32
            Ids of terms, those that stand for character n-grams.

        Returns
        -------
        ends : ndarray of shape (n_texts,), int64
            Where each text's terms end in the other two.
        ids : ndarray of int32
            Every term of a text once, in the order of first occurrence; `~number` for an n-gram.
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
                    if spelt_ends.shape[0]:
                        count_spelt(self, &spelt_ends[0], &spelt[0] if spelt.shape[0] else NULL, start, &ids)
                    collect(self, &ids, start, &counts)
                    end[t] = ids.used // sizeof(int32_t)
            return ends, as_array(&ids), as_array(&counts)
        finally:
            free(ids.data)
            free(counts.data)


cdef str span_text(Memo memo, size_t i):
    cdef Span* span = <Span*>memo.spans.data + i
    return <str>PyUnicode_FromKindAndData(span.width, memo.arena.data + span.key, span.length)


cdef const int32_t* spans_of(Memo memo, size_t text, size_t* n) noexcept nogil:
    cdef Text* each = <Text*>memo.texts.data + text
    cdef size_t start = (each - 1).stop if text else 0
    if each.whole >= 0:
        n[0] = 1
        return &each.whole
    n[0] = each.stop - start
    return <int32_t*>memo.reading.data + start


cdef int store_ids(
    Memo memo, size_t i, const int32_t[::1] tokens, const int32_t[::1] terms, size_t start, size_t n
) except -1 nogil:
    cdef size_t k
    cdef int32_t n_terms = 0
    cdef size_t ids = memo.pool.used
    cdef Span* span = <Span*>memo.spans.data + i
    for k in range(start, start + n):
        push(&memo.pool, tokens[k])
    for k in range(start, start + n):
        if terms[k] >= 0:
            push(&memo.pool, terms[k])
            n_terms += 1
    span.ids = ids
    span.n_tokens = <int32_t>n
    span.n_terms = n_terms
    return 0


cdef int read_text(Memo memo, const character* s, Py_ssize_t n, size_t text) except -1 nogil:
    cdef Py_ssize_t i = 0, start
    cdef uint64_t h
    cdef uint32_t union
    cdef int last = -1, first
    while i < n:
        h, union = 0xCBF29CE484222325ULL, 0
        if is_white(s[i]):
            # The space after a word is no span of its own, and does not begin one.
            if i > 0 and s[i] == 32:
                i += 1
            start = i
            while i < n and is_white(s[i]):
                h = (h ^ s[i]) * 0x100000001B3ULL
                union |= s[i]
                i += 1
        else:
            start = i
            while i < n and not is_white(s[i]):
                h = (h ^ s[i]) * 0x100000001B3ULL
                union |= s[i]
                i += 1
        if i > start:
            first = <int>s[start] if s[start] < 128 else OTHER
            if last >= 0 and memo.clash[last][first]:
                suspect(memo, text)
            last = <int>s[i - 1] if s[i - 1] < 128 else OTHER
            meet(memo, s + start, i - start, mixed(h), union)
    return 0


cdef int suspect(Memo memo, size_t text) except -1 nogil:
    cdef Suspect* found = <Suspect*>room(&memo.suspects, sizeof(Suspect))
    found.text = text
    found.position = memo.reading.used // sizeof(int32_t)
    memo.suspects.used += sizeof(Suspect)
    return 0


cdef int meet(Memo memo, const character* s, size_t n, uint32_t h, uint32_t union) except -1 nogil:
    """Append the span's number to the reading; give it one if it is new."""
    cdef size_t mask = memo.n_slots - 1
    cdef size_t place = h & mask
    cdef Slot slot
    while True:
        slot = memo.slots[place]
        if slot.span < 0:
            break
        if slot.hash == h and is_key(memo, <Span*>memo.spans.data + slot.span, s, n):
            return push(&memo.reading, slot.span)
        place = (place + 1) & mask
    slot.hash = h
    slot.span = <int32_t>(memo.spans.used // sizeof(Span))
    memo.slots[place] = slot
    push(&memo.reading, slot.span)
    add_span(memo, s, n, union)
    if 2 * memo.spans.used // sizeof(Span) > memo.n_slots:
        spread(memo)
    return 0


cdef inline bint is_key(Memo memo, const Span* span, const character* s, size_t n) noexcept nogil:
    cdef const char* key = memo.arena.data + span.key
    cdef size_t k
    if span.length != n:
        return False
    if span.width == sizeof(character):
        return memcmp(key, s, n * sizeof(character)) == 0
    if span.width == 1:
        for k in range(n):
            if (<const uint8_t*>key)[k] != s[k]:
                return False
        return True
    if span.width == 2:
        for k in range(n):
            if (<const uint16_t*>key)[k] != s[k]:
                return False
        return True
    return False  # a key of wide characters, a text without any


cdef int add_span(Memo memo, const character* s, size_t n, uint32_t union) except -1 nogil:
    cdef Span* span = <Span*>room(&memo.spans, sizeof(Span))
    cdef size_t k
    cdef char* key
    memset(span, 0, sizeof(Span))
    memo.spans.used += sizeof(Span)
    span.width = 1 if union < 0x100 else 2 if union < 0x10000 else 4
    span.length = <uint32_t>n
    key = <char*>room(&memo.arena, n * span.width + 4)
    span.key = memo.arena.used
    for k in range(n):
        if span.width == 1:
            (<uint8_t*>key)[k] = <uint8_t>s[k]
        elif span.width == 2:
            (<uint16_t*>key)[k] = <uint16_t>s[k]
        else:
            (<uint32_t*>key)[k] = <uint32_t>s[k]
    memo.arena.used += (n * span.width + 3) & ~<size_t>3  # keys of wide characters stay aligned
    return 0


cdef int spread(Memo memo) except -1 nogil:
    """Make the hash table twice as large."""
    cdef size_t n_slots = 2 * memo.n_slots, place, i
    cdef Slot* slots = <Slot*>malloc(n_slots * sizeof(Slot))
    if slots == NULL:
        with gil:
            raise MemoryError
    memset(slots, 0xFF, n_slots * sizeof(Slot))
    for i in range(memo.n_slots):
        if memo.slots[i].span >= 0:
            place = memo.slots[i].hash & (n_slots - 1)
            while slots[place].span >= 0:
                place = (place + 1) & (n_slots - 1)
            slots[place] = memo.slots[i]
    free(memo.slots)
    memo.slots, memo.n_slots = slots, n_slots
    return 0


cdef int zeros(Buffer* tally, size_t n) except -1 nogil:
    """Lengthen a tally; between texts it holds nothing but zeros."""
    cdef size_t nbytes = n * sizeof(int32_t)
    if tally.used < nbytes:
        memset(room(tally, nbytes - tally.used), 0, nbytes - tally.used)
        tally.used = nbytes
    return 0


cdef int count_text(Memo memo, size_t text, int longest, Buffer* ids) except -1 nogil:
    cdef size_t i, n
    cdef const int32_t* spans = spans_of(memo, text, &n)
    cdef const int32_t* terms
    cdef int32_t* tally = <int32_t*>memo.tally.data
    cdef int32_t term, before = -1, pair = -1, number
    cdef const Span* span
    cdef int k
    for i in range(n):
        span = <Span*>memo.spans.data + spans[i]
        terms = <const int32_t*>(memo.pool.data + span.ids) + span.n_tokens
        for k in range(span.n_terms):
            term = terms[k]
            if tally[term] == 0:
                push(ids, term)
            tally[term] += 1
            if longest > 1:
                if before >= 0:
                    number = count_ngram(memo, before, term, ids)
                    if longest > 2 and pair >= 0:
                        count_ngram(memo, ~pair, term, ids)
                    pair = number
                before = term
    return 0


cdef int32_t count_ngram(Memo memo, int32_t left, int32_t right, Buffer* ids) except -1 nogil:
    cdef int32_t number = ngram_number(memo, left, right)
    zeros(&memo.ngram_tally, number + 1)
    if (<int32_t*>memo.ngram_tally.data)[number] == 0:
        push(ids, ~number)
    (<int32_t*>memo.ngram_tally.data)[number] += 1
    return number


cdef int count_spelt(
    Memo memo, const int64_t* ends, const int32_t* spelt, size_t start, Buffer* ids
) except -1 nogil:
    """Count the character n-grams of a text by those of its terms."""
    cdef size_t k, n = ids.used // sizeof(int32_t)
    cdef int32_t* tally = <int32_t*>memo.tally.data
    cdef int32_t term
    cdef int64_t i
    for k in range(start // sizeof(int32_t), n):
        term = (<int32_t*>ids.data)[k]
        if term >= 0:
            for i in range(ends[term - 1] if term else 0, ends[term]):
                if tally[spelt[i]] == 0:
                    push(ids, spelt[i])
                tally[spelt[i]] += tally[term]
    return 0


cdef int collect(Memo memo, const Buffer* ids, size_t start, Buffer* counts) except -1 nogil:
    """Move the counts of one text from the tallies behind the others."""
    cdef int32_t* count = <int32_t*>room(counts, ids.used - start)
    cdef const int32_t* id = <const int32_t*>(ids.data + start)
    cdef int32_t* place
    cdef size_t k, n = (ids.used - start) // sizeof(int32_t)
    for k in range(n):
        place = (
            &(<int32_t*>memo.tally.data)[id[k]] if id[k] >= 0 else &(<int32_t*>memo.ngram_tally.data)[~id[k]]
        )
        count[k] = place[0]
        place[0] = 0
    counts.used += ids.used - start
    return 0


cdef int32_t ngram_number(Memo memo, int32_t left, int32_t right) except -1 nogil:
    """Number the n-grams in the order in which they are met."""
    cdef uint64_t parts = <uint64_t><uint32_t>left << 32 | <uint32_t>right
    cdef Ngram* found = slot_of(memo.ngrams, memo.n_ngram_slots, parts)
    cdef int32_t number
    if found.place:
        return found.place - 1
    number = <int32_t>(memo.ngram_parts.used // (2 * sizeof(int32_t)))
    found.parts = parts
    found.place = number + 1
    push(&memo.ngram_parts, left)
    push(&memo.ngram_parts, right)
    if 2 * <size_t>number > memo.n_ngram_slots:
        spread_ngrams(memo)
    return number


cdef inline Ngram* slot_of(Ngram* ngrams, size_t n_slots, uint64_t parts) noexcept nogil:
    cdef size_t place = mixed(parts * 0xFF51AFD7ED558CCDULL) & (n_slots - 1)
    while ngrams[place].place and ngrams[place].parts != parts:
        place = (place + 1) & (n_slots - 1)
    return &ngrams[place]


cdef int spread_ngrams(Memo memo) except -1 nogil:
    cdef size_t n_slots = 2 * memo.n_ngram_slots, i
    cdef Ngram* ngrams = <Ngram*>calloc(n_slots, sizeof(Ngram))
    if ngrams == NULL:
        with gil:
            raise MemoryError
    for i in range(memo.n_ngram_slots):
        if memo.ngrams[i].place:
            slot_of(ngrams, n_slots, memo.ngrams[i].parts)[0] = memo.ngrams[i]
    free(memo.ngrams)
    memo.ngrams, memo.n_ngram_slots = ngrams, n_slots
    return 0
