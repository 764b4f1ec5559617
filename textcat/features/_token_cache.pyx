"""Compiled: split texts into spans as spaCy does, tokenize plain spans, cache the tokens of each span, count terms.

A *span* is a piece of text that spaCy's tokenizer works on: consecutive characters other than white space, or white
space without the one space that follows a word. The tokens of a span that occurred before are found by one look-up in a
hash table. The memory of the next look-ups is fetched ahead, because a table of many spans lies in slow memory.

*Affixes* (prefixes, suffixes and infixes) are found by tables of character sets, made from spaCy's regexes: see
`textcat.features.affixes`. Where the tables cannot decide, the regex is run.

A *run* is a sequence of characters of a script without spaces between words, such as Chinese. If the cache divides
runs, a run is a span by itself; its terms are its 1-, 2- and 3-grams, for which there is a hash table by their
characters.

A *crossing* is a sequence of other characters, with up to two characters of runs on either side. If Han characters and
kana are a good part of a text, the n-grams of its crossings are terms, too; in them, a *stand-in* (an unassigned
character of Unicode) takes the place of each character that is not of a run.
"""

from cpython.dict cimport PyDict_GetItem
from cpython.ref cimport PyObject
from cpython.unicode cimport PyUnicode_DATA, PyUnicode_FromKindAndData, PyUnicode_KIND
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memchr, memcmp, memcpy, memset

import numpy as np

from textcat.features.scripts import HAN_AND_KANA, LEAST_SHARE, STAND_IN, UNSPACED_RANGES

cdef extern from "Python.h":
    bint Py_UNICODE_ISSPACE(Py_UCS4) nogil
    Py_UCS4 Py_UNICODE_TOLOWER(Py_UCS4) nogil
    bint PyUnicode_IS_ASCII(object)
    const char* PyUnicode_AsUTF8AndSize(object, Py_ssize_t* size) except NULL
    Py_UCS4 PyUnicode_READ(int kind, const void* data, Py_ssize_t index) noexcept nogil

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
    OTHER = 128  # stands for all non-ASCII characters of which the class is not known
    ABSENT = 129  # and for none
    REACH = 8  # characters looked at on either side of an affix's point
    ALL_CHARACTERS = 0x110000
    PAGE = 256  # characters that are classified together
    SHORT = 32   # bytes of a key that stands in its span
    LOOKAHEAD = 32  # spans that are looked up together
    FILTER = 1 << 12  # words of 64 bits
    UNKNOWN = -2
    _LETTERS
    _LETTERS_OR_DIGITS
    _ANYTHING
    LONGEST = 256        # bytes of a span that is cut here
    AHEAD = 8    # spans
    FIRST_UNSPACED = 0x0E01
    BEYOND_UNSPACED = 0x32400
    CHARACTER_BITS = 21
    LONGEST_NGRAM = 3    # characters, as in textcat.features.scripts
    RUN = 1              # kinds of spans: of a script without spaces,
    CROSSING = 2         # or stand-ins with characters of runs around them; 0: any other
    OF_RUN = 1           # kinds of characters
    HAN_OR_KANA = 2
    FIRST_STAND_IN = 0x40000  # as in textcat.features.scripts
    BEYOND_STAND_INS = 0x60000
    REPLACEMENT = 0xFFFD

cdef enum Answer:
    NO
    YES
    PERHAPS

cdef struct Alternative:
    uint16_t[REACH] before    # the number of a set for each place, nearest first; 0 is the set of everything
    uint16_t[REACH] ahead
    int n_before, n_ahead     # places before and behind of which the set excludes anything
    int width
    bint repeats              # whether all characters next to the last one that are in its set belong to the match, too

cdef struct String:     # as Python keeps it
    const void* data
    int kind            # bytes per character
    Py_ssize_t length

cdef struct Text:
    const void* data
    Py_ssize_t length
    int width           # bytes per character
    size_t stop         # where its spans end in the sequence

cdef struct Piece:      # of a text, before it is looked up
    const char* key
    size_t n_bytes
    uint32_t hash
    int width           # bytes per character, as few as the characters allow
    uint8_t is_run      # RUN, CROSSING or 0

cdef struct Span:       # one line of the processor's cache
    char[SHORT] key     # its characters, or where they stand in the arena
    size_t n_bytes
    size_t ids          # where the lengths of its tokens stand in the pool, if several; then its terms, if several
    int32_t n_tokens
    int32_t n_terms
    int32_t term        # the only one
    uint8_t width
    uint8_t reused       # whether it has occurred again since the last eviction
    uint8_t is_run       # RUN: one token, whose terms are its n-grams of characters; CROSSING: no token, but terms; or 0

cdef struct Word:
    size_t start        # of its letters
    uint32_t length
    int32_t id_

cdef struct Slot:
    uint32_t hash
    int32_t span        # -1: free

cdef struct Entry:      # of a table of special cases
    uint64_t key        # a hash
    int32_t number      # 0: free

cdef struct Suspect:
    size_t text
    size_t position     # of the right-hand span in the sequence
    Py_ssize_t start, end  # in the text: of the left-hand span, and the end of the right-hand one

cdef struct CharNgrams:   # of terms
    const int32_t* sizes  # how many each term has; NULL: they are not counted
    const int64_t* starts  # where they start in `ids`
    const int32_t* ids

assert STAND_IN == FIRST_STAND_IN
cdef int LEAST = LEAST_SHARE  # Han characters and kana are at least one of so many characters

cdef uint8_t[256] WHITE
for _code in range(256):
    WHITE[_code] = chr(_code).isspace()

cdef uint8_t[BEYOND_UNSPACED] UNSPACED


cdef void mark_unspaced(int first, int last, uint8_t kind) noexcept:
    memset(&UNSPACED[first], kind, last - first + 1)


for _first, _last in UNSPACED_RANGES:
    mark_unspaced(_first, _last, OF_RUN)
for _first, _last in HAN_AND_KANA:
    mark_unspaced(_first, _last, HAN_OR_KANA)


cdef inline bint is_white(Py_UCS4 c) noexcept nogil:
    return WHITE[c] if c < 256 else Py_UNICODE_ISSPACE(c)


cdef inline bint is_unspaced(Py_UCS4 c) noexcept nogil:
    return FIRST_UNSPACED <= c < BEYOND_UNSPACED and UNSPACED[c]


cdef inline bint is_stand_in(Py_UCS4 c) noexcept nogil:
    return FIRST_STAND_IN <= c < BEYOND_STAND_INS


cdef inline Py_UCS4 crossing_character(Py_UCS4 c, bint lowercase) noexcept nogil:
    """Return the stand-in that takes the place of a character in a crossing; return a character of a run unchanged.

    The head of this module explains runs, crossings and stand-ins.
    """
    if is_unspaced(c):
        return c
    if is_white(c):
        c = 32
    elif lowercase:
        c = Py_UNICODE_TOLOWER(c)
    if 0xD800 <= c < 0xE000 or c >= BEYOND_STAND_INS - FIRST_STAND_IN:
        c = REPLACEMENT
    return <Py_UCS4>(<uint32_t>FIRST_STAND_IN + <uint32_t>c)


cdef bint has_crossings(const character* s, Py_ssize_t n) noexcept nogil:
    """Return whether a text has crossings: Han and kana are a good part of it, and some characters are not of a run.

    Han and kana are a good part if they are at least one in `LEAST` characters other than white space.
    """
    cdef Py_ssize_t i, n_of_runs = 0, n_white = 0, n_counting = 0
    for i in range(n):
        if is_unspaced(s[i]):
            n_of_runs += 1
            n_counting += UNSPACED[s[i]] == HAN_OR_KANA
        elif is_white(s[i]):
            n_white += 1
    return 0 < n_counting and n_of_runs < n and LEAST * n_counting >= n - n_white


cdef inline uint64_t spread(uint64_t h) noexcept nogil:
    h ^= h >> 32
    h *= 0x9E3779B97F4A7C15ULL
    return h >> 32


cdef inline uint64_t bytes_as_number(const char* bytes_, size_t n) noexcept nogil:
    """Return a number made of the first 8 of n bytes, or of all of them if there are fewer."""
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
        h = (h ^ bytes_as_number(key, 8)) * 0xFF51AFD7ED558CCDULL
        h ^= h >> 29
        key += 8
        n -= 8
    return <uint32_t>spread((h ^ bytes_as_number(key, n)) * 0xFF51AFD7ED558CCDULL)


cdef union Items:
    char* chars
    int32_t* ints
    uint32_t* edges
    Alternative* alternatives
    Entry* entries
    Suspect* suspects
    Text* texts
    Word* words


cdef class Buffer:
    """An array of items of one size that grows at its end."""

    cdef Items data
    cdef size_t n, capacity, item_size

    def __cinit__(self, size_t item_size):
        self.item_size = item_size

    def __dealloc__(self):
        free(self.data.chars)


cdef inline int reserve(Buffer buffer, size_t more) except -1 nogil:
    """Make room in a buffer for `more` items after those in use."""
    if buffer.n + more > buffer.capacity:
        grow(buffer, more)
    return 0


cdef int grow(Buffer buffer, size_t more) except -1 nogil:
    cdef size_t capacity = 2 * buffer.capacity + more + 4096 // buffer.item_size
    cdef char* data = <char*>realloc(buffer.data.chars, capacity * buffer.item_size)
    if data == NULL:
        with gil:
            raise MemoryError
    buffer.data.chars, buffer.capacity = data, capacity
    return 0


cdef inline int push(Buffer buffer, int32_t value) except -1 nogil:
    reserve(buffer, 1)
    buffer.data.ints[buffer.n] = value
    buffer.n += 1
    return 0


cdef inline size_t append(Buffer chars, const char* key, size_t n, size_t room) except? 1 nogil:
    """Append n bytes to a buffer, and `room` - n unused bytes behind them; return where they begin."""
    reserve(chars, room)
    memcpy(chars.data.chars + chars.n, key, n)
    chars.n += room
    return chars.n - room


cdef int lengthen(Buffer buffer, size_t n, int byte) except -1 nogil:
    """Lengthen a buffer to n items if it has fewer; every byte of the new items is `byte`."""
    if buffer.n < n:
        reserve(buffer, n - buffer.n)
        memset(buffer.data.chars + buffer.n * buffer.item_size, byte, (n - buffer.n) * buffer.item_size)
        buffer.n = n
    return 0


cdef int push_group(Buffer groups, const Suspect* group, size_t stop) except -1:
    """Append a group of neighbouring spans to `groups`, as the five numbers that `TokenCache.special_groups` returns.

    `stop` is the position of the span that follows the group.
    """
    push(groups, <int32_t>group.text)
    push(groups, <int32_t>(group.position - 1))
    push(groups, <int32_t>(stop - group.position + 1))
    push(groups, <int32_t>group.start)
    push(groups, <int32_t>group.end)
    return 0


cdef Buffer filled(size_t item_size, size_t n, int byte):
    buffer = Buffer(item_size)
    lengthen(buffer, n, byte)
    return buffer


cdef object as_array(Buffer ints):
    array = np.empty(ints.n, np.int32)
    cdef int32_t[::1] view = array
    if ints.n:
        memcpy(&view[0], ints.data.ints, ints.n * sizeof(int32_t))
    return array


REACHED = REACH


class Codes:
    """Codes of characters, by which tables list sets of characters.

    An ASCII character is its own code; any other character has the code of its class, from 130 on. `page` is a function
    that returns the codes of 256 consecutive characters, given the number of this page; None: all characters other than
    ASCII have the code OTHER.
    """

    def __init__(self, n_codes=130, page=None):
        self.n_codes, self.page = n_codes, page  # a function that returns the codes of the characters of a page


cdef inline String string_of(str string):
    cdef String seen
    seen.data, seen.kind, seen.length = PyUnicode_DATA(string), PyUnicode_KIND(string), len(string)
    return seen


cdef inline String part(String string, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    string.data = <const char*>string.data + start * string.kind
    string.length = stop - start
    return string


cdef class CodeTable:
    """A table of the codes (see `Codes`) of the characters that have occurred so far."""

    cdef object page
    cdef int n_codes
    cdef uint16_t[::1] codes   # 0: not known yet
    cdef const uint16_t* data  # NULL: all characters that are not ASCII are OTHER

    def __cinit__(self, codes):
        self.page, self.n_codes, self.data = codes.page, codes.n_codes, NULL
        if self.page is not None:
            self.codes = np.zeros(ALL_CHARACTERS, np.uint16)
            self.data = &self.codes[0]

    cdef int add_codes(self, String string) except -1:
        """Add the codes of a string's characters to the table."""
        cdef Py_ssize_t i, character, number
        cdef const uint16_t[::1] learnt
        if self.data == NULL:
            return 0
        for i in range(string.length):
            character = PyUnicode_READ(string.kind, string.data, i)
            if character >= 128 and self.data[character] == 0:
                number = character // PAGE
                learnt = self.page(number)
                self.codes[PAGE * number : PAGE * (number + 1)] = learnt
        return 0

    cdef inline int at(self, const String* string, Py_ssize_t i) noexcept nogil:
        if i < 0 or i >= string.length:
            return ABSENT
        cdef Py_UCS4 character = PyUnicode_READ(string.kind, string.data, i)
        if character < 128:
            return <int>character
        return OTHER if self.data == NULL else self.data[character]


cdef class AffixTable:
    """Find affixes of one kind (prefixes, suffixes or infixes) by the alternatives of their regex, as character sets.

    `ask` is the function that runs the regex. It is called if the alternatives cannot decide, or if `alternatives` is
    None. Alternatives are sets around a point, where an affix begins or, if `looks_back` is True (for suffixes), where
    it ends. `codes` is the table of the codes of characters (see `Codes`) from which the sets are made.
    """

    cdef object ask
    cdef bint readable
    cdef CodeTable codes
    cdef Py_ssize_t asked      # about how many characters
    cdef Buffer table
    cdef Buffer sets           # a byte for every set and code: whether the set has it
    cdef Buffer listed         # for every code its alternatives, one after the other
    cdef Buffer starts         # and where they start

    def __cinit__(self, ask, alternatives, bint looks_back=False, codes=None):
        cdef int c, i
        cdef const unsigned char[::1] bits
        cdef Alternative* row
        self.ask, self.asked = ask, 0
        self.codes = CodeTable(Codes()) if codes is None else codes
        self.readable = alternatives is not None
        alternatives = alternatives or []
        everything = (<object>1 << self.codes.n_codes) - 1
        numbers = {everything: 0}
        self.table = filled(sizeof(Alternative), len(alternatives), 0)
        for i, each in enumerate(alternatives):
            row = self.table.data.alternatives + i
            row.width, row.repeats = each.width, each.repeats
            row.n_before = number_sets(row.before, each.before, everything, numbers)
            row.n_ahead = number_sets(row.ahead, each.ahead, everything, numbers)
        self.sets = filled(1, len(numbers) * self.codes.n_codes, 0)
        for mask, i in numbers.items():
            bits = mask.to_bytes((self.codes.n_codes + 7) // 8, "little")
            for c in range(self.codes.n_codes):
                self.sets.data.chars[i * self.codes.n_codes + c] = bits[c // 8] >> c % 8 & 1
        self.listed, self.starts = Buffer(sizeof(int32_t)), Buffer(sizeof(int32_t))
        for c in range(self.codes.n_codes):
            push(self.starts, <int32_t>self.listed.n)
            for i in range(len(alternatives)):
                row = self.table.data.alternatives + i
                if self.holds(row.before[0] if looks_back else row.ahead[0], c):
                    push(self.listed, i)
        push(self.starts, <int32_t>self.listed.n)

    cdef inline bint holds(self, uint16_t number, int c) noexcept nogil:
        return self.sets.data.chars[number * self.codes.n_codes + c]

    cdef Answer meets(self, const Alternative* each, const String* string, Py_ssize_t point) noexcept nogil:
        cdef Answer answer = YES if each.width > 0 else PERHAPS
        cdef int k, c
        for k in range(each.n_ahead):
            if each.ahead[k]:
                c = self.codes.at(string, point + k)
                if not self.holds(each.ahead[k], c):
                    return NO
                if c == OTHER:
                    answer = PERHAPS
        for k in range(each.n_before):
            if each.before[k]:
                c = self.codes.at(string, point - 1 - k)
                if not self.holds(each.before[k], c):
                    return NO
                if c == OTHER:
                    answer = PERHAPS
        return answer

    cdef Answer first_match(self, const String* string, Py_ssize_t point, int* width) noexcept nogil:
        """Return YES if an alternative of the regex matches at a point, NO if none does, else PERHAPS.

        PERHAPS: the regex must decide. The first alternative that matches, or may match, counts; the number of its
        characters is written to `width`.
        """
        cdef int c = self.codes.at(string, point)
        cdef int j
        cdef Answer answer
        cdef const Alternative* each
        width[0] = 0
        if not self.readable:
            return PERHAPS
        for j in range(self.starts.data.ints[c], self.starts.data.ints[c + 1]):
            each = self.table.data.alternatives + self.listed.data.ints[j]
            answer = self.meets(each, string, point)
            if answer != NO:
                width[0] = each.width
                while each.repeats and self.holds(each.ahead[0], self.codes.at(string, point + width[0])):
                    width[0] += 1
                return answer
        return NO

    cdef bint may_end(self, const String* string, Py_ssize_t point) noexcept nogil:
        """Return whether a suffix matches, or may match, that ends at a point."""
        cdef int c = self.codes.at(string, point - 1)
        cdef int j
        for j in range(self.starts.data.ints[c], self.starts.data.ints[c + 1]):
            if self.meets(self.table.data.alternatives + self.listed.data.ints[j], string, point) != NO:
                return True
        return False

    cdef Answer widest_suffix(self, const String* string, int* width) noexcept nogil:
        """Return YES if a string has a suffix by the tables, NO if it has none, PERHAPS if the regex must decide.

        The number of the suffix's characters is written to `width`: of the alternatives that match, the widest counts.
        """
        cdef int c = self.codes.at(string, string.length - 1)
        cdef int j, wide
        cdef Answer answer, best = NO
        cdef const Alternative* each
        width[0] = 0
        if not self.readable:
            return PERHAPS
        if c == c"\n":  # `$` also matches before a line's end
            return PERHAPS if self.may_end(string, string.length) or self.may_end(string, string.length - 1) else NO
        for j in range(self.starts.data.ints[c], self.starts.data.ints[c + 1]):
            each = self.table.data.alternatives + self.listed.data.ints[j]
            answer = self.meets(each, string, string.length)
            if answer == PERHAPS:
                return PERHAPS
            if answer == YES:
                best, wide = YES, each.width
                while each.repeats and self.holds(each.before[0], self.codes.at(string, string.length - 1 - wide)):
                    wide += 1
                width[0] = max(width[0], wide)
        return best

    cdef Py_ssize_t prefix_width(self, str span, Py_ssize_t start, Py_ssize_t stop) except -1:
        """Return the number of characters of the prefix of ``span[start:stop]``; 0 if there is none."""
        cdef int width
        cdef String string = part(string_of(span), start, stop)
        if self.first_match(&string, 0, &width) != PERHAPS:
            return width
        self.asked += stop - start + 1
        return width_of(self.ask(span[start:stop]))

    cdef Py_ssize_t suffix_width(self, str span, Py_ssize_t start, Py_ssize_t stop) except -1:
        """Return the number of characters of the suffix of ``span[start:stop]``; 0 if there is none."""
        cdef int width
        cdef String string = part(string_of(span), start, stop)
        if self.widest_suffix(&string, &width) != PERHAPS:
            return width
        self.asked += stop - start + 1
        return width_of(self.ask(span[start:stop]))

    def prefix(self, str string):
        """Return the number of characters of the prefix of a string; 0 if it has none."""
        self.codes.add_codes(string_of(string))
        return self.prefix_width(string, 0, len(string))

    def suffix(self, str string):
        """Return the number of characters of the suffix of a string; 0 if it has none."""
        self.codes.add_codes(string_of(string))
        return self.suffix_width(string, 0, len(string))

    cpdef list infixes(self, str string):
        """Return the infixes of a string, each as the pair of its start and end."""
        cdef int width
        cdef Py_ssize_t point = 0
        cdef String seen = string_of(string)
        cdef Answer answer
        cdef list spans = []
        self.codes.add_codes(seen)
        while point <= seen.length:
            answer = self.first_match(&seen, point, &width)
            if answer == PERHAPS:
                self.asked += seen.length + 1
                return [match.span() for match in self.ask(string)]
            if answer == YES:
                spans.append((point, point + width))
            point += max(width, 1)
        return spans

    cdef bint none_within(self, const String* string) noexcept nogil:
        cdef int width
        cdef Py_ssize_t point
        for point in range(string.length + 1):
            if self.first_match(string, point, &width) != NO:
                return False
        return True


cdef int number_sets(uint16_t* sets, masks, everything, dict numbers) except -1:
    """Number the sets of characters (bit masks) on one side of a point, and write their numbers to `sets`.

    `numbers` has the number of each set so far; a new set gets the next one. Return how many sets must be checked:
    those up to the last one that excludes a character.
    """
    cdef int k, n = 0
    for k, mask in enumerate(masks):
        mask = mask & everything
        sets[k] = numbers.setdefault(mask, len(numbers))
        if mask != everything:
            n = k + 1
    return n


cdef Py_ssize_t width_of(match) except -1:
    return 0 if match is None else match.end() - match.start()


cdef class SpanCutter:
    """Split spans into tokens as spaCy does: by a language's tables, and by its regexes if the tables cannot decide.

    Parameters
    ----------
    asked : sequence of 5 functions or None
        They run the regexes of prefixes, suffixes, infixes, `url_match` and `token_match`; None: no such regex.
    alternatives : sequence of 3, each a list of Alternative or None
        The alternatives of the first three regexes; None: the regex must always be run.
    url : sequence of int
        Sets of characters (bit masks); a URL in ASCII has a character of each set.
    tokens : dict of str to list of str
        The tokens of each special case, by its text.
    specials : set of str
        Texts of special cases, also without white space; the tables do not split a span if consecutive tokens form one.
    read_exact : callable, optional
        Called once the regexes have been run on `patience` characters. It returns alternatives that can decide nearly
        all cases, and their `Codes`; or None.
    patience : int
    """

    cdef AffixTable prefixes, suffixes, infixes
    cdef object url_match, token_match
    cdef list url
    cdef dict tokens
    cdef bint whole       # whether something may keep a span whole that has affixes
    cdef Buffer specials  # a table of their hashes
    cdef Py_ssize_t longest_special
    cdef CodeTable codes
    cdef object read_exact
    cdef int patience

    def __cinit__(self, asked, alternatives, url, tokens, specials, read_exact=None, int patience=0):
        cdef Entry* slot
        cdef uint64_t key
        prefixes, suffixes, infixes, self.url_match, self.token_match = asked
        self.read_exact, self.patience = read_exact, patience
        self.set_tables(asked, alternatives, Codes())
        self.url = [{chr(c) for c in range(128) if mask >> c & 1} for mask in url]
        self.tokens, self.whole = dict(tokens), self.token_match is not None
        self.longest_special = max(map(len, specials), default=0)
        self.specials = filled(sizeof(Entry), 1 << (2 * len(specials) + 1).bit_length(), 0)
        for each in specials:
            key = special_hash(string_of(each))
            slot = slot_of(self.specials, key)
            slot.key, slot.number = key, 1

    cdef int set_tables(self, asked, alternatives, codes) except -1:
        self.codes = CodeTable(codes)
        self.prefixes = AffixTable(asked[0], alternatives[0], False, self.codes)
        self.suffixes = AffixTable(asked[1], alternatives[1], True, self.codes)
        self.infixes = AffixTable(asked[2], alternatives[2], False, self.codes)
        return 0

    cdef int add_codes(self, String string) except -1:
        """Add the codes of a string's characters to the table; get more exact tables if regexes were run too often."""
        cdef AffixTable table
        if self.read_exact is not None and (
            self.prefixes.asked + self.suffixes.asked + self.infixes.asked >= self.patience
        ):
            read_exact, self.read_exact = self.read_exact, None
            exact = read_exact()
            if exact is not None:
                self.set_tables((self.prefixes.ask, self.suffixes.ask, self.infixes.ask), exact[0], exact[1])
        return self.codes.add_codes(string)

    def cut(
        self, list spans, Py_ssize_t longest=0, runs_of=None, without_surrogates=None, dict cuts=None, dict specials=None
    ):
        """Tokenize each span (a piece of text between white space) alone; return all tokens, and how many a span has.

        `runs_of` splits spans of more than `longest` characters; for `cuts` and `specials` see `cut_text`. Without
        `runs_of`, spans that the tables alone cannot split get no tokens.
        """
        cdef Py_ssize_t i, n
        cdef int before, behind
        cdef str span, piece
        cdef list tokens = [], of_span
        lengths = np.zeros(len(spans), np.int32)
        cdef int32_t[::1] length = lengths
        for i in range(len(spans)):
            span = spans[i]
            self.codes.add_codes(string_of(span))
            if self.splits_by_tables(string_of(span), &before, &behind):
                n = len(span)
                of_span = [piece for piece in (span[:before], span[before : n - behind], span[n - behind :]) if piece]
            elif runs_of is None:
                continue
            else:
                if has_surrogates(string_of(span)):
                    span = without_surrogates(span)
                of_span = self.split(span) if len(span) <= longest else runs_of(span)
                of_span = apply_specials(of_span, span, None, cuts, specials)
            tokens += of_span
            length[i] = <int32_t>len(of_span)
        return tokens, lengths

    cdef bint splits_by_tables(self, String string, int* before, int* behind) noexcept nogil:
        """Return whether the tables alone can split a span: into at most a prefix, a token and a suffix.

        They cannot if there may be more affixes, an infix or a special case. The numbers of characters of the prefix
        and of the suffix are written to `before` and `behind`; 0: there is none.
        """
        cdef String rest, core
        cdef int width
        cdef Py_ssize_t n = string.length
        if self.is_special(string) or self.prefixes.first_match(&string, 0, before) == PERHAPS:
            return False
        rest = part(string, before[0], n)
        if self.suffixes.widest_suffix(&rest, behind) == PERHAPS:
            return False
        if not before[0] and not behind[0]:
            return self.infixes.none_within(&string)
        if self.whole or before[0] + behind[0] >= n:
            return False
        core = part(string, before[0], n - behind[0])
        return (
            self.prefixes.first_match(&core, 0, &width) == NO
            and self.suffixes.widest_suffix(&core, &width) == NO
            and self.infixes.none_within(&core)
            and not self.is_special(core)
            and not (before[0] and (self.is_special(part(string, 0, before[0])) or self.is_special(rest)))
            and not (
                behind[0]
                and (self.is_special(part(string, n - behind[0], n)) or self.is_special(part(string, 0, n - behind[0])))
            )
        )

    cdef bint is_special(self, String string) noexcept nogil:
        return string.length <= self.longest_special and slot_of(self.specials, special_hash(string)).number != 0

    def split(self, str span):
        """Split a span into tokens by the steps of spaCy's `Tokenizer._split_affixes` and `_attach_tokens`.

        Special cases that consist of several of these tokens are not yet applied: see `apply_specials`.
        """
        cdef Py_ssize_t start = 0, stop = len(span), before, behind
        cdef list tokens = [], suffixes = []
        self.add_codes(string_of(span))
        while start < stop and not self.has_tokens(span, start, stop):
            if self.token_match is not None and self.is_whole(span[start:stop]):
                break
            before = self.prefixes.prefix_width(span, start, stop)
            if before and self.has_tokens(span, start + before, stop):
                behind = 0
            else:
                behind = self.suffixes.suffix_width(span, start + before, stop)
                if behind and self.has_tokens(span, start, stop - behind):
                    before = 0
            if before:
                tokens.append(span[start : start + before])
            if behind:
                suffixes.append(span[stop - behind : stop])
            start += before
            stop -= behind
            if not before and not behind:
                break
        if self.has_tokens(span, start, stop):
            tokens += self.tokens[span[start:stop]]
        elif start < stop:
            tokens += self.split_at_infixes(span[start:stop])
        return tokens + suffixes[::-1]

    cdef bint has_tokens(self, str span, Py_ssize_t start, Py_ssize_t stop):
        return self.is_special(part(string_of(span), start, stop)) and span[start:stop] in self.tokens

    cdef bint is_whole(self, str string):
        return self.token_match is not None and self.token_match(string) is not None

    cdef bint is_url(self, str string):
        if self.url_match is None or string.isascii() and any(each.isdisjoint(string) for each in self.url):
            return False
        return self.url_match(string) is not None

    cdef list split_at_infixes(self, str string):
        cdef Py_ssize_t begun = 0, first, last
        cdef list pieces = []
        for first, last in self.infixes.infixes(string):
            if first:
                pieces += (string[begun:first], string[first:last])
                begun = last
        if not begun or self.is_whole(string) or self.is_url(string):
            return [string]
        return [piece for piece in (*pieces, string[begun:]) if piece]


    def cut_text(self, str text, Py_ssize_t longest, runs_of, dict cuts, dict specials):
        """Return the tokens of a whole text; `runs_of` splits its spans of more than `longest` characters.

        `cuts` is a trie of the special cases, each as the tokens into which affixes divide its text: nested dicts by
        token, in which the key "" marks the end of a special case. `specials` has the tokens that take their place, by
        the text of the special case.
        """
        cdef String string = string_of(text)
        cdef Py_ssize_t i = 0, start
        cdef Buffer starts = Buffer(sizeof(int32_t))
        cdef list tokens = [], of_span
        cdef dict tokens_by_span = {}
        cdef str span, token
        while i < string.length:
            start = i
            if is_white(PyUnicode_READ(string.kind, string.data, i)):
                # The token before it is said to have a space behind it, which then is no token.
                if i > 0 and PyUnicode_READ(string.kind, string.data, i) == 32:
                    start = i + 1
                while i < string.length and is_white(PyUnicode_READ(string.kind, string.data, i)):
                    i += 1
            else:
                while i < string.length and not is_white(PyUnicode_READ(string.kind, string.data, i)):
                    i += 1
            if start < i:
                span = text[start:i]
                of_span = <list>tokens_by_span.get(span)
                if of_span is None:
                    of_span = tokens_by_span[span] = self.split(span) if i - start <= longest else runs_of(span)
                tokens += of_span
                for token in of_span:
                    push(starts, <int32_t>start)
                    start += len(token)
        return apply_specials(tokens, text, starts, cuts, specials)


cdef bint has_surrogates(String string) noexcept nogil:
    cdef Py_ssize_t i
    if string.kind > 1:
        for i in range(string.length):
            if 0xD800 <= PyUnicode_READ(string.kind, string.data, i) < 0xE000:
                return True
    return False


cdef list apply_specials(list tokens, str text, Buffer starts, dict cuts, dict specials):
    """Replace the tokens of each special case by those that it prescribes, as spaCy's `Tokenizer._apply_special_cases`.

    `starts` has the position of each token in the text; None: there is no white space between the tokens. For `cuts`
    and `specials` see `SpanCutter.cut_text`.
    """
    if not find_specials(tokens, cuts, None, None):
        return tokens
    cdef Buffer firsts = Buffer(sizeof(int32_t)), stops = Buffer(sizeof(int32_t)), seen, chosen
    cdef int32_t longest = find_specials(tokens, cuts, firsts, stops), size, first, stop
    cdef Py_ssize_t i, k, n = len(tokens)
    if starts is None:
        starts, k = Buffer(sizeof(int32_t)), 0
        for token in tokens:
            push(starts, <int32_t>k)
            k += len(<str>token)
    seen, chosen = filled(1, n, 0), filled(sizeof(int32_t), n, 0)
    for size in range(longest, 0, -1):  # the longest first, and of these the first
        for k in range(firsts.n):
            first, stop = firsts.data.ints[k], stops.data.ints[k]
            if stop - first == size:
                if not seen.data.chars[first] and not seen.data.chars[stop - 1]:
                    chosen.data.ints[first] = stop
                memset(seen.data.chars + first, 1, size)
    result = []
    i = 0
    while i < n:
        stop = chosen.data.ints[i] if chosen.data.ints[i] else <int32_t>i + 1
        special = None
        if chosen.data.ints[i]:
            special = specials.get(text[starts.data.ints[i] : starts.data.ints[stop - 1] + len(<str>tokens[stop - 1])])
        if special is None:
            result += tokens[i:stop]
        else:
            result += special
        i = stop
    return result


cdef int32_t find_specials(list tokens, dict cuts, Buffer firsts, Buffer stops) except -1:
    """Find the special cases in a list of tokens, by a trie: see `SpanCutter.cut_text`.

    The positions of their first tokens are written to `firsts`, and those of the tokens that follow to `stops`. Return
    the number of tokens of the longest one; if `firsts` is None, only whether there is one.
    """
    cdef Py_ssize_t i, k, n = len(tokens)
    cdef int32_t longest = 0
    cdef dict node
    for i in range(n):
        node = <dict>cuts.get(tokens[i])
        k = i + 1
        while node is not None:
            if "" in node:
                if firsts is None:
                    return True
                push(firsts, <int32_t>i)
                push(stops, <int32_t>k)
                longest = max(longest, <int32_t>(k - i))
            node = <dict>node.get(tokens[k]) if k < n else None
            k += 1
    return longest


cdef uint64_t special_hash(String string) noexcept nogil:
    """Return a hash of 64 bits of a string; it does not depend on how many bytes a character takes in memory."""
    cdef uint64_t h = string.length
    cdef Py_ssize_t i
    for i in range(string.length):
        h = (h ^ <uint64_t>PyUnicode_READ(string.kind, string.data, i)) * 0xFF51AFD7ED558CCDULL
        h ^= h >> 29
    return h


LETTERS, LETTERS_OR_DIGITS, ANYTHING = _LETTERS, _LETTERS_OR_DIGITS, _ANYTHING


cdef class WordTable:
    """Look up the terms of spans of ASCII characters, without running regexes or spaCy's functions.

    This is possible if a span has a single token that may be a term; it may also have a prefix and a suffix that are
    not terms.

    `ids` has the ids of terms, by tokens in lower case. Tokens in `stops` are not terms; any other token has the id
    `other`. If `plurals` is True, the term of a token is what `language.singular` returns for it. `kind` says which
    tokens are terms: those of LETTERS alone, those with a letter or digit (LETTERS_OR_DIGITS), or ANYTHING.
    """

    cdef SpanCutter cutter
    cdef int32_t other
    cdef int kind
    cdef Buffer letters, words
    cdef Buffer slots     # words by hash; -1: free

    def __cinit__(self, dict ids, stops, bint plurals, int32_t other, int kind, cutter):
        self.cutter, self.other, self.kind = cutter, other, kind
        self.letters, self.words = Buffer(1), Buffer(sizeof(Word))
        # What is looked up are spans between white space: an n-gram of terms is none.
        words = [term for term in ids if term.isascii() and " " not in term]
        make_slots(self, len(stops) + (2 if plurals else 1) * len(words))
        for term in stops:  # first, so that they are found first
            if term.isascii():
                add_word(self, term.encode(), len(term), -1)
        for term in words:
            if plurals:
                add_words_with_singular(self, term.encode(), len(term), ids[term])
            else:
                add_word(self, term.encode(), len(term), ids[term])


cdef int make_slots(WordTable words, size_t n) except -1:
    """Create the hash table of words, so large that n words take less than half of it."""
    words.slots = filled(sizeof(int32_t), max(1 << 8, 1 << (2 * n).bit_length()), 0xFF)
    return 0


cdef int add_word(WordTable words, const char* key, size_t n, int32_t id_) except -1:
    cdef Word word
    cdef size_t position = hash_of(key, n) & (words.slots.n - 1)
    word.start = append(words.letters, key, n, n)
    word.length, word.id_ = <uint32_t>n, id_
    while words.slots.data.ints[position] >= 0:
        position = (position + 1) & (words.slots.n - 1)
    words.slots.data.ints[position] = <int32_t>words.words.n
    reserve(words.words, 1)
    words.words.data.words[words.words.n] = word
    words.words.n += 1
    return 0


cdef int add_words_with_singular(WordTable words, bytes term, size_t n, int32_t id_) except -1:
    """Add all words that `language.singular` turns into `term` to the table: the term itself, and its plurals."""
    cdef const char* key = term
    cdef char last = key[n - 1] if n else 0, last_but_one = key[n - 2] if n > 1 else 0
    if last != c"s" or n < 4 or last_but_one == c"s" or last_but_one == c"u":
        add_word(words, key, n, id_)
    # "ies" becomes "y" but not after "a" or "e", and no word that ends in "ss" or "us" is a plural.
    if n > 2 and last != c"s" and last != c"u" and (
        last != c"e" or last_but_one != c"i" or key[n - 3] == c"a" or key[n - 3] == c"e"
    ):
        add_word(words, term + b"s", n + 1, id_)
    if n > 1 and last == c"y" and last_but_one != c"a" and last_but_one != c"e":
        add_word(words, term[:n - 1] + b"ies", n + 2, id_)
    return 0


def read_pairs(list names):
    """Read the names of columns as terms and n-grams, if each is a word or two words separated by a space; else None.

    Return the fields of `KnownTerms`: terms, n-grams and columns. The terms are the words; then the pairs, each of
    which may be a term, too, and is followed by those of its words that are not names of columns; then OTHER, for
    unknown terms. The n-grams are the pairs, each as the ids of its words, and (OTHER, OTHER). The columns are the
    positions of terms and n-grams in `names`; -1: not there.
    """
    cdef WordTable table = WordTable({}, (), False, -1, _ANYTHING, None)
    cdef Buffer ngrams = Buffer(sizeof(int32_t)), of_terms = Buffer(sizeof(int32_t)), of_ngrams = Buffer(sizeof(int32_t))
    cdef list terms = []
    cdef const char* key
    cdef const char* space
    cdef Py_ssize_t n, at
    cdef int32_t i
    make_slots(table, 2 * len(names))
    for i in range(len(names)):
        key = PyUnicode_AsUTF8AndSize(names[i], &n)
        if n and memchr(key, c" ", n) == NULL:
            add_word(table, key, n, <int32_t>len(terms))
            terms.append(names[i])
            push(of_terms, i)
    for i in range(len(names)):
        key = PyUnicode_AsUTF8AndSize(names[i], &n)
        space = <const char*>memchr(key, c" ", n)
        if space == NULL:
            continue
        at = space - key
        if at == 0 or at == n - 1 or memchr(space + 1, c" ", n - at - 1) != NULL:
            return None
        terms.append(names[i])
        push(of_terms, i)
        push(ngrams, id_of_word(table, terms, of_terms, key, at))
        push(ngrams, id_of_word(table, terms, of_terms, space + 1, n - at - 1))
        push(of_ngrams, i)
    for buffer in (of_terms, of_ngrams):
        push(buffer, -1)
    for i in range(2):
        push(ngrams, <int32_t>len(terms))
    terms.append(" ")
    return terms, as_array(ngrams).reshape(-1, 2), (as_array(of_terms), as_array(of_ngrams))


cdef int32_t id_of_word(WordTable table, list terms, Buffer of_terms, const char* key, size_t n) except -1:
    """Return the id of a word, its position in `terms`; add the word to the list and to the table if it is new."""
    cdef int32_t id_ = id_of(table, key, n)
    if id_ < 0:
        id_ = <int32_t>len(terms)
        terms.append(key[:n].decode("utf-8"))
        push(of_terms, -1)
        add_word(table, key, n, id_)
    return id_


cdef int32_t plain_term(WordTable words, String string, int* before, int* behind) noexcept nogil:
    """Return the id of a span's term, -1 if it has none, or UNKNOWN if the tables cannot decide.

    The numbers of characters of its prefix and suffix are written to `before` and `behind`.
    """
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
    if not words.cutter.splits_by_tables(string, before, behind):
        return UNKNOWN
    core = n - before[0] - behind[0]
    if may_be_term(words.kind, key, before[0]) or may_be_term(words.kind, key + n - behind[0], behind[0]):
        return UNKNOWN
    if not may_be_term(words.kind, key + before[0], core):
        return -1
    for k in range(core):
        letter = key[before[0] + k]
        letters[k] = letter | 32 if c"A" <= letter <= c"Z" else letter
    return id_of(words, letters, core)


cdef inline bint may_be_term(int kind, const char* key, size_t n) noexcept nogil:
    cdef size_t k, n_letters = 0, n_digits = 0, n_spaces = 0
    for k in range(n):
        n_letters += c"a" <= <uint8_t>key[k] | 32 <= c"z"
        n_digits += c"0" <= <uint8_t>key[k] <= c"9"
        n_spaces += WHITE[<uint8_t>key[k]]
    if kind == _LETTERS:
        return n_letters == n and n > 0
    return n_letters + n_digits > 0 if kind == _LETTERS_OR_DIGITS else n_spaces < n


cdef inline int32_t id_of(WordTable words, const char* key, size_t n) noexcept nogil:
    cdef size_t position = hash_of(key, n) & (words.slots.n - 1)
    cdef const Word* word
    while words.slots.data.ints[position] >= 0:
        word = words.words.data.words + words.slots.data.ints[position]
        if word.length == n and memcmp(words.letters.data.chars + word.start, key, n) == 0:
            return word.id_
        position = (position + 1) & (words.slots.n - 1)
    return words.other


cdef class TokenCache:
    """Hold the spans that have occurred so far, with their tokens and terms, and the present batch of texts.

    The head of this module explains spans, runs and crossings.

    Parameters
    ----------
    edges : ndarray of shape (n, 4), uint32
        Two neighbouring spans might form a special case together if a row has the last two characters of the first and
        the first two of the second. A 0 in the first or last place is any character, or no character.
    divides_runs : bool
        Whether a run is a span by itself.
    crosses : bool
        Whether n-grams of crossings are terms.
    lowercase : bool
        Whether crossings are converted to lower case.
    """

    cdef Slot* slots
    cdef size_t n_slots
    cdef Buffer arena, pool
    cdef Span* spans
    cdef size_t n_spans, span_capacity
    cdef size_t n_stored      # spans before it have tokens
    cdef bint overridden      # whether spans, ids and keys beyond the next three belong to the batch alone
    cdef size_t n_kept_spans, n_kept_ids, n_kept_keys
    cdef int32_t empty        # a span of the batch without a token
    cdef uint8_t[129][129] edge_pairs  # by the last and the first character; 128 stands for all that are not ASCII
    cdef Buffer edges, texts, sequence, suspect_list
    cdef Buffer narrow        # keys in fewer bytes than their text has, of the present text
    cdef Buffer ngram_table
    cdef bint restricted      # whether all n-grams without an id are counted as the last one
    cdef int32_t last_ngram
    cdef uint64_t[FILTER] ngram_filter  # a bit for some of the n-grams; where there is none, there is no such n-gram
    cdef Buffer ngram_parts, tally, ngram_tally
    cdef list batch
    cdef bint divides_runs, crosses, lowercase
    cdef Buffer crossing      # the characters of one
    cdef Buffer runs_table    # the ids of the n-grams of runs, plus 1, by their characters
    cdef size_t n_in_runs     # and how many it has
    cdef int32_t other_term   # the id of all n-grams of runs that have none in the table; -1: each gets its own

    def __cinit__(
        self, const uint32_t[:, ::1] edges, bint divides_runs=False, bint crosses=False, bint lowercase=True
    ):
        cdef size_t i, k
        self.divides_runs, self.crosses, self.lowercase = divides_runs, crosses, lowercase
        self.crossing = Buffer(sizeof(uint32_t))
        self.n_in_runs, self.other_term, self.runs_table = 0, -1, filled(sizeof(Entry), 1 << 8, 0)
        self.texts, self.suspect_list, self.narrow = Buffer(sizeof(Text)), Buffer(sizeof(Suspect)), Buffer(1)
        self.edges, self.sequence, self.ngram_parts, self.tally, self.ngram_tally = [Buffer(sizeof(int32_t)) for _ in range(5)]
        for i in range(edges.shape[0]):
            self.edge_pairs[min(edges[i, 1], OTHER)][min(edges[i, 2], OTHER)] = True
            for k in range(4):
                push(self.edges, <int32_t>edges[i, k])
        self.batch = []
        self.clear_ngrams()
        self.evict(keep_reused=False)

    def __dealloc__(self):
        aligned_free(self.slots)
        aligned_free(self.spans)

    def clear_ngrams(self):
        """Forget all n-grams, so that their ids begin anew."""
        self.restricted = False
        self.ngram_parts.n = 0
        self.ngram_table = filled(sizeof(int32_t), 1 << 12, 0)

    def evict(self, bint keep_reused=True):
        """Drop the spans that have not occurred again since they came, or since the last eviction.

        If `keep_reused` is False, drop all spans.
        """
        self.release()
        cdef Buffer arena = self.arena, pool = self.pool
        cdef Span* spans = self.spans
        cdef size_t i, n = self.n_stored if keep_reused else 0
        self.arena, self.pool, self.spans = Buffer(1), Buffer(sizeof(int32_t)), NULL
        self.n_spans = self.span_capacity = self.n_stored = 0
        try:
            with nogil:
                for i in range(n):
                    keep_span(self, spans + i, arena, pool)
        finally:
            aligned_free(spans)
        self.n_stored = self.n_spans
        new_table(self, 1 << 8)

    def restrict(self, const int32_t[:, ::1] parts, const int32_t[::1] new_ids):
        """From now on, count only some n-grams, and any other one as the last of them; give new ids to the terms.

        `parts` has a row per n-gram to count, as `ngrams` returns them, and `new_ids` the new id of each term in the
        cache.
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
        lengthen(self.ngram_tally, parts.shape[0], 0)
        for i in range(self.n_stored):
            span = self.spans + i
            terms = terms_of(self, span)
            for k in range(span.n_terms):
                terms[k] = new_ids[terms[k]]

    def restrict_runs(self, list terms):
        """Count only the given terms among n-grams of runs from now on; any other n-gram gets the id of the last term.

        A run is a sequence of characters of a script without spaces between words.
        """
        cdef int32_t i
        cdef str term
        self.n_in_runs, self.other_term, self.runs_table = 0, <int32_t>len(terms) - 1, filled(sizeof(Entry), 1 << 8, 0)
        for i in range(<int32_t>len(terms)):
            term = terms[i]
            if len(term) <= LONGEST_NGRAM and not term.isascii() and is_unspaced_whole(term):
                add_run_ngram(self, ngram_key(string_of(term)), i)

    @property
    def span_bytes(self):
        """The number of bytes of memory that the spans and their tokens take."""
        return (
            self.n_slots * sizeof(Slot) + self.arena.n + self.n_spans * sizeof(Span) + self.pool.n * sizeof(int32_t)
        )

    @property
    def nbytes(self):
        """The number of bytes of memory that the spans, their tokens, and the n-grams take."""
        return (
            self.span_bytes
            + self.runs_table.n * sizeof(Entry)
            + (self.ngram_table.n + self.ngram_parts.n) * sizeof(int32_t)
        )

    @property
    def ngrams(self):
        """Array of shape (n_ngrams, 2), int32: for each n-gram, the ids of its beginning and of its last term.

        The beginning of a 2-gram is a term; that of a 3-gram is a 2-gram, given as `~id`.
        """
        return as_array(self.ngram_parts).reshape(-1, 2)

    def load(self, list texts):
        """Load a batch of texts, and look up each of their spans (pieces between white space) in the cache."""
        cdef Text* text
        cdef size_t i
        self.release()
        self.batch = texts
        reserve(self.texts, len(texts))
        for string in texts:
            text = self.texts.data.texts + self.texts.n
            text.data, text.length = PyUnicode_DATA(<str?>string), len(<str>string)
            text.width, text.stop = PyUnicode_KIND(string), 0
            self.texts.n += 1
        with nogil:
            for i in range(self.texts.n):
                text = self.texts.data.texts + i
                if text.width == 1:
                    scan_text(self, <const uint8_t*>text.data, text.length, i)
                elif text.width == 2:
                    scan_text(self, <const uint16_t*>text.data, text.length, i)
                else:
                    scan_text(self, <const uint32_t*>text.data, text.length, i)
                if self.crosses and text.width > 1:
                    if text.width == 2:
                        scan_crossings(self, <const uint16_t*>text.data, text.length)
                    else:
                        scan_crossings(self, <const uint32_t*>text.data, text.length)
                text.stop = self.sequence.n

    def release(self):
        """Drop the texts of the batch, and the tokens stored for them by `override`; other spans stay in the cache."""
        if self.overridden:
            self.n_spans = self.n_stored = self.n_kept_spans
            self.pool.n, self.arena.n, self.overridden = self.n_kept_ids, self.n_kept_keys, False
        self.batch = []
        self.texts.n = self.sequence.n = self.suspect_list.n = 0

    def store_runs(self, list terms, dict ids):
        """Store the terms of new spans that are runs or crossings (see the head of this module).

        New n-grams are appended to `terms`, and their ids are added to `ids`, unless n-grams of runs are restricted.
        """
        cdef size_t i
        with nogil:
            for i in range(self.n_stored, self.n_spans):
                if self.spans[i].is_run:
                    store_run(self, self.spans + i, terms, ids)

    def store_plain(self, WordTable words):
        """Store the tokens of those spans without tokens that a `WordTable` can tokenize."""
        cdef size_t i
        with nogil:
            for i in range(self.n_stored, self.n_spans):
                store_span(self, words, self.spans + i)

    def unknown(self):
        """Return the texts of the spans that have no tokens yet, in the order in which they occurred."""
        cdef size_t i
        return [
            span_text(self, self.spans + i)
            for i in range(self.n_stored, self.n_spans)
            if not self.spans[i].n_tokens and not self.spans[i].is_run
        ]

    def store(self, list tokens, const int32_t[::1] terms, const int32_t[::1] lengths):
        """Store the tokens of the spans that `unknown` returns.

        `tokens` has the tokens of all these spans, one span after the other, and `lengths` the number of tokens of each
        span. `terms` has the id of each token's term; -1: the token is not a term.
        """
        cdef size_t i, k = 0, start = 0
        for i in range(self.n_stored, self.n_spans):
            if not self.spans[i].n_tokens and not self.spans[i].is_run:
                store_tokens(self, self.spans + i, tokens, terms, start, lengths[k])
                start += lengths[k]
                k += 1
        self.n_stored = self.n_spans

    def special_groups(self, dict meet, may_meet):
        """Return the groups of neighbouring spans that might form a special case of spaCy's tokenizer together.

        Each group is a row of an array of int32: the number of the text, the position of the group's first span in the
        sequence of the batch's spans, its number of spans, and where it starts and ends in the text. `may_meet` returns
        whether a special case may lie across two spans, and `meet` caches its results by the two spans.
        """
        cdef size_t i, stop = 0
        cdef Suspect each, group
        cdef const int32_t* sequence = self.sequence.data.ints
        cdef int32_t left = -1, right = -1
        cdef bint meets = False
        cdef Buffer groups = Buffer(sizeof(int32_t))
        memset(&group, 0, sizeof(group))
        for i in range(self.suspect_list.n):
            each = self.suspect_list.data.suspects[i]
            if left != sequence[each.position - 1] or right != sequence[each.position]:
                left, right = sequence[each.position - 1], sequence[each.position]
                pair_meets = meet.get((left, right))
                if pair_meets is None:
                    pair_meets = meet[left, right] = may_meet(left, right)
                meets = pair_meets
            if not meets:
                continue
            if stop and group.text == each.text and stop == each.position:
                group.end = each.end
            else:
                if stop:
                    push_group(groups, &group, stop)
                group = each
            stop = each.position + 1
        if stop:
            push_group(groups, &group, stop)
        return as_array(groups).reshape(-1, 5)

    def override_groups(self, const int32_t[:, ::1] groups, list batch, cut):
        """Tokenize each group of spans that `special_groups` has returned, and store its tokens for the batch.

        `batch` has the texts. `cut` is called once with the distinct texts of groups; it returns a list of the tokens
        of each text, and the ids of the terms of all these tokens (-1: no term), one text after the other.
        """
        cdef Py_ssize_t k, number, start
        cdef dict number_of = {}
        cdef list texts = [], cuts
        cdef Buffer numbers = Buffer(sizeof(int32_t)), starts = Buffer(sizeof(int32_t)), spans
        for k in range(groups.shape[0]):
            text = (<str>batch[groups[k, 0]])[groups[k, 3] : groups[k, 4]]
            text_number = number_of.get(text)
            if text_number is None:
                text_number = number_of[text] = len(texts)
                texts.append(text)
            push(numbers, text_number)
        cuts, ids = cut(texts)
        start = 0
        for tokens in cuts:
            push(starts, <int32_t>start)
            start += len(tokens)
        spans = filled(sizeof(int32_t), len(texts), 0xFF)  # those that stand for the groups with a text
        for k in range(groups.shape[0]):
            number = numbers.data.ints[k]
            if spans.data.ints[number] < 0:
                start = starts.data.ints[number]
                spans.data.ints[number] = self.override(groups[k, 1], groups[k, 2], cuts[number], ids[start:])
            else:
                self.repeat(groups[k, 1], groups[k, 2], spans.data.ints[number])

    def span(self, int32_t i):
        """Return the text of a span, its first token, and its last token; the span is given by its position."""
        tokens = tokens_of(self, self.spans + i)
        return "".join(tokens), tokens[0], tokens[len(tokens) - 1]

    def override(self, size_t position, size_t n, list tokens, const int32_t[::1] terms):
        """Replace n spans of the batch, from a position, by a single span with the given tokens; return its position.

        `terms` has the id of each token's term; -1: the token is not a term. The new span is dropped with the batch.
        """
        cdef Piece piece
        cdef str joined = "".join(tokens)
        if not self.overridden:
            self.n_kept_spans, self.n_kept_ids, self.n_kept_keys = self.n_spans, self.pool.n, self.arena.n
            self.overridden = True
            self.empty = <int32_t>self.n_spans
            piece.key, piece.width, piece.n_bytes, piece.is_run = NULL, 1, 0, False
            add_span(self, &piece)
            self.n_stored += 1
        piece.key = <const char*>PyUnicode_DATA(joined)
        piece.width = PyUnicode_KIND(joined)
        piece.n_bytes, piece.is_run = len(joined) * piece.width, False
        add_span(self, &piece)
        store_tokens(self, self.spans + self.n_stored, tokens, terms, 0, len(tokens))
        self.n_stored += 1
        self.repeat(position, n, <int32_t>self.n_spans - 1)
        return self.n_spans - 1

    cdef int repeat(self, size_t position, size_t n, int32_t span) except -1:
        """Replace n spans of the batch, from a position, by a single span that `override` has added."""
        cdef size_t i
        for i in range(position, position + n):
            self.sequence.data.ints[i] = self.empty
        self.sequence.data.ints[position] = span
        return 0

    def tokens(self, size_t text, bint whole_runs=False):
        """Return the tokens of a text of the batch; of a run of a script without spaces, its characters.

        If `whole_runs`, a run is one token.
        """
        cdef size_t i, n
        cdef const int32_t* spans = spans_of(self, text, &n)
        tokens = []
        for i in range(n):
            if self.spans[spans[i]].is_run == RUN and not whole_runs:
                tokens += span_text(self, self.spans + spans[i])
            else:
                tokens += tokens_of(self, self.spans + spans[i])
        return tokens

    def n_tokens(self):
        """Return the number of tokens of every text of the batch."""
        cdef size_t i, t, n
        cdef const int32_t* spans
        cdef const Span* span
        totals = np.zeros(self.texts.n, np.int64)
        cdef int64_t[::1] total = totals
        for t in range(self.texts.n):
            spans = spans_of(self, t, &n)
            for i in range(n):
                span = self.spans + spans[i]
                total[t] += <int64_t>(span.n_bytes // span.width) if span.is_run == RUN else span.n_tokens
        return totals

    def token_places(self, size_t text, str string):
        """Return the distinct tokens of a text of the batch, and for each token in the text its number and its start.

        The number of a token is its position among the distinct tokens. Numbers and starts are arrays of int32, in the
        order of the text. `text` is the number of the text in the batch, `string` the text itself.
        """
        cdef size_t i, n
        cdef int k
        cdef const int32_t* spans = spans_of(self, text, &n)
        cdef const int32_t* listed
        cdef Buffer firsts = filled(sizeof(int32_t), self.n_spans, 0xFF)  # where the tokens of a span are listed
        cdef Buffer numbers = Buffer(sizeof(int32_t)), ids = Buffer(sizeof(int32_t)), starts = Buffer(sizeof(int32_t))
        cdef dict number_of = {}
        cdef String whole = string_of(string)
        cdef Py_ssize_t end = 0
        for i in range(n):
            if firsts.data.ints[spans[i]] < 0:
                firsts.data.ints[spans[i]] = <int32_t>numbers.n
                for token in tokens_of(self, self.spans + spans[i]) if self.spans[spans[i]].n_tokens else ():
                    push(numbers, number_of.setdefault(token, len(number_of)))
                    push(numbers, <int32_t>len(<str>token))
            for k in range(self.spans[spans[i]].n_tokens):
                listed = numbers.data.ints + firsts.data.ints[spans[i]] + 2 * k
                # The one space that follows a word is no token.
                if 0 < end < whole.length and PyUnicode_READ(whole.kind, whole.data, end) == 32:
                    end += 1
                push(ids, listed[0])
                push(starts, <int32_t>end)
                end += listed[1]
        return list(number_of), as_array(ids), as_array(starts)

    def terms_within(self, const int32_t[::1] sizes, int64_t most):
        """Return for each term 1 if its n-grams of characters are counted in some text of the batch, else 0: uint8.

        `sizes` has the number of n-grams of each term. In each text, the n-grams of its distinct terms are counted in
        the order of the text, up to the first term with which there would be more than `most`.
        """
        cdef size_t t, i, n
        cdef int k
        cdef int64_t size
        cdef const int32_t* spans
        cdef const int32_t* terms
        within = np.zeros(sizes.shape[0], np.uint8)
        cdef uint8_t[::1] is_within = within
        cdef int64_t[::1] seen_in = np.full(sizes.shape[0], -1, np.int64)  # the last text that had the term
        with nogil:
            for t in range(self.texts.n):
                spans, size = spans_of(self, t, &n), 0
                for i in range(n):
                    terms = terms_of(self, self.spans + spans[i])
                    for k in range(self.spans[spans[i]].n_terms):
                        if seen_in[terms[k]] == <int64_t>t:
                            continue
                        seen_in[terms[k]] = t
                        size += sizes[terms[k]]
                        if size > most:
                            break
                        is_within[terms[k]] = True
                    if size > most:
                        break
        return within

    def count(
        self, size_t n_terms, int longest, int64_t most, const int32_t[::1] char_sizes, const int64_t[::1] char_starts,
        const int32_t[::1] char_ids,
    ):
        """Count the terms of every text of the batch, and return the first three fields of `TermCounts`.

        All ids of terms are below `n_terms`. N-grams of up to `longest` <= 3 consecutive terms are counted, too, and so
        are those of characters, unless the last three arguments are empty: `char_ids` lists the ids of each term's
        n-grams, `char_starts` has the position where those of a term start, and `char_sizes` their number. Of each
        text, only about the first `most` n-grams of either kind are counted.
        """
        cdef size_t t
        cdef bint with_chars = char_sizes.shape[0] > 0
        cdef CharNgrams chars
        cdef Buffer ids = Buffer(sizeof(int32_t)), counts = Buffer(sizeof(int32_t))
        ends = np.empty(self.texts.n, np.int64)
        cdef int64_t[::1] end = ends
        chars.sizes = &char_sizes[0] if with_chars else NULL
        chars.starts = &char_starts[0] if with_chars else NULL
        chars.ids = &char_ids[0] if char_ids.shape[0] else NULL
        with nogil:
            lengthen(self.tally, n_terms, 0)
            for t in range(self.texts.n):
                count_text(self, t, longest, most, chars, ids)
                collect(self, ids, counts)
                end[t] = ids.n
        return ends, as_array(ids), as_array(counts)


cdef inline const char* key_of(Buffer arena, const Span* span) noexcept nogil:
    cdef size_t position
    if span.n_bytes <= SHORT:
        return span.key
    memcpy(&position, span.key, sizeof(position))
    return arena.data.chars + position


cdef inline int32_t* terms_of(TokenCache cache, Span* span) noexcept nogil:
    if span.n_terms == 1:
        return &span.term
    return cache.pool.data.ints + span.ids + (span.n_tokens if span.n_tokens > 1 else 0)


cdef str span_text(TokenCache cache, Span* span):
    return <str>PyUnicode_FromKindAndData(span.width, key_of(cache.arena, span), span.n_bytes // span.width)


cdef list tokens_of(TokenCache cache, Span* span):
    cdef int k
    cdef Py_ssize_t start = 0
    cdef const int32_t* lengths = cache.pool.data.ints + span.ids
    cdef str string = span_text(cache, span)
    cdef list tokens = []
    if span.n_tokens == 1:
        return [string]
    for k in range(span.n_tokens):
        tokens.append(string[start : start + lengths[k]])
        start += lengths[k]
    return tokens


cdef const int32_t* spans_of(TokenCache cache, size_t text, size_t* n) noexcept nogil:
    cdef const Text* each = cache.texts.data.texts + text
    cdef size_t start = (each - 1).stop if text else 0
    n[0] = each.stop - start
    return cache.sequence.data.ints + start


cdef int store_tokens(
    TokenCache cache, Span* span, list tokens, const int32_t[::1] terms, size_t start, size_t n
) except -1:
    cdef size_t k
    span.ids = cache.pool.n
    span.n_tokens = <int32_t>n
    span.n_terms = 0
    for k in range(start, start + n):
        if n > 1:
            push(cache.pool, <int32_t>len(<str>tokens[k]))
        if terms[k] >= 0:
            span.n_terms += 1
            span.term = terms[k]
    if span.n_terms > 1:
        for k in range(start, start + n):
            if terms[k] >= 0:
                push(cache.pool, terms[k])
    return 0


cdef int store_span(TokenCache cache, WordTable words, Span* span) except -1 nogil:
    cdef String string
    cdef int before, behind
    cdef int32_t term
    string.data, string.length, string.kind = key_of(cache.arena, span), span.n_bytes, 1
    term = plain_term(words, string, &before, &behind)
    if span.width != 1 or term == UNKNOWN:
        return 0
    span.ids = cache.pool.n
    span.n_tokens = 1 + (before > 0) + (behind > 0)
    span.n_terms, span.term = term >= 0, term
    if before:
        push(cache.pool, before)
    if before or behind:
        push(cache.pool, <int32_t>string.length - before - behind)
    if behind:
        push(cache.pool, behind)
    return 0


cdef bint is_unspaced_whole(str term):
    cdef Py_UCS4 c
    for c in term:
        if not is_unspaced(c) and not is_stand_in(c):
            return False
    return True


cdef uint64_t ngram_key(String string) noexcept nogil:
    """Return a number that identifies an n-gram of up to three characters; it is never 0."""
    cdef uint64_t key = 0
    cdef Py_ssize_t i
    for i in range(string.length):
        key = key << CHARACTER_BITS | <uint64_t>PyUnicode_READ(string.kind, string.data, i)
    return key


cdef int add_run_ngram(TokenCache cache, uint64_t key, int32_t id_) except -1 nogil:
    """Add an n-gram of a run, given by its `ngram_key`, to the hash table of these; it must not be there yet."""
    cdef Entry* slot = slot_of(cache.runs_table, key)
    slot.key, slot.number = key, id_ + 1
    cache.n_in_runs += 1
    if 2 * cache.n_in_runs > cache.runs_table.n:
        grow_runs_table(cache)
    return 0


cdef int grow_runs_table(TokenCache cache) except -1 with gil:
    cache.runs_table = doubled(cache.runs_table)
    return 0


cdef Buffer doubled(Buffer entries):
    """Return a hash table of twice the size with the same entries."""
    cdef Buffer table = filled(sizeof(Entry), 2 * entries.n, 0)
    cdef size_t i
    cdef Entry each
    for i in range(entries.n):
        each = entries.data.entries[i]
        if each.number:
            slot_of(table, each.key)[0] = each
    return table


cdef int store_run(TokenCache cache, Span* span, list terms, dict ids) except -1 nogil:
    """Store a run as one token whose terms are its n-grams of 1 to `LONGEST_NGRAM` characters, ordered by their start.

    A crossing has no token, and only n-grams with a stand-in are its terms.
    """
    cdef String string
    cdef Py_ssize_t start, stop, i, behind = 0
    cdef int32_t id_
    string.data, string.kind = key_of(cache.arena, span), span.width
    string.length = span.n_bytes // span.width
    span.ids, span.n_tokens, span.n_terms = cache.pool.n, span.is_run == RUN, 0
    for start in range(string.length):
        behind = start  # the first stand-in at or behind the start
        while span.is_run == CROSSING and behind < string.length and not is_stand_in(
            PyUnicode_READ(string.kind, string.data, behind)
        ):
            behind += 1
        for stop in range(behind + 1, min(start + LONGEST_NGRAM, string.length) + 1):
            id_ = id_in_run(cache, part(string, start, stop), terms, ids)
            push(cache.pool, id_)
            span.term = id_
            span.n_terms += 1
    if span.n_terms == 1:
        cache.pool.n = span.ids
    return 0


cdef inline int32_t id_in_run(TokenCache cache, String string, list terms, dict ids) except -1 nogil:
    cdef uint64_t key = ngram_key(string)
    cdef int32_t id_ = slot_of(cache.runs_table, key).number - 1
    if id_ >= 0:
        return id_
    if cache.other_term >= 0:
        return cache.other_term
    with gil:
        term = PyUnicode_FromKindAndData(string.kind, string.data, string.length)
        id_ = <int32_t>len(terms)
        terms.append(term)
        ids[term] = id_
    add_run_ngram(cache, key, id_)
    return id_


cdef int scan_text(TokenCache cache, const character* s, Py_ssize_t n, size_t text) except -1 nogil:
    cdef Piece[LOOKAHEAD] lookahead
    cdef Piece* piece
    cdef Py_ssize_t i = 0, start, before = 0, stop = 0  # of the present span, the one before it, and its end
    cdef int n_pieces = 0
    cdef bint divides_runs = sizeof(character) > 1 and cache.divides_runs
    cdef uint8_t is_run
    cache.narrow.n = 0
    if sizeof(character) > 1:
        reserve(cache.narrow, n * sizeof(character))  # now, so that the keys in there stay where they are
    while i < n:
        is_run = 0
        if is_white(s[i]):
            # The space after a word is no span of its own, and does not begin one.
            if i > 0 and s[i] == 32:
                i += 1
            start = i
            while i < n and is_white(s[i]):
                i += 1
        elif divides_runs and is_unspaced(s[i]):
            start, is_run = i, RUN
            while i < n and is_unspaced(s[i]):
                i += 1
        else:
            start = i
            while i < n and not is_white(s[i]) and not (divides_runs and is_unspaced(s[i])):
                i += 1
        if i > start:
            # What lies on either side of a run is tokenized as a text of its own.
            if stop and not is_run and cache.edge_pairs[min(s[stop - 1], OTHER)][min(s[start], OTHER)]:
                if edges(
                    cache, s[stop - 2] if stop > before + 1 else 0, s[stop - 1], s[start], s[start + 1] if i > start + 1 else 0
                ):
                    add_suspect(cache, text, cache.sequence.n + n_pieces, before, i)
            before, stop = start, 0 if is_run else i
            piece = lookahead + n_pieces
            piece.is_run = is_run
            set_key(cache, piece, s + start, i - start)
            piece.hash = hash_of(piece.key, piece.n_bytes)
            prefetch(cache.slots + (piece.hash & (cache.n_slots - 1)))
            n_pieces += 1
            if n_pieces == LOOKAHEAD:
                look_up_all(cache, lookahead, n_pieces)
                n_pieces = 0
    return look_up_all(cache, lookahead, n_pieces)


cdef int scan_crossings(TokenCache cache, const character* s, Py_ssize_t n) except -1 nogil:
    """Append the crossings of a text (see the head of this module) to the sequence of spans."""
    cdef Piece piece
    cdef Py_ssize_t i = 0, k, first, stop
    cdef uint32_t* characters
    if not has_crossings(s, n):
        return 0
    while i < n:
        if is_unspaced(s[i]):
            i += 1
            continue
        first = max(i - (LONGEST_NGRAM - 1), 0)
        # Across a single character of a run, n-grams have characters of both stretches around it.
        while i < n and not (is_unspaced(s[i]) and (i + 1 == n or is_unspaced(s[i + 1]))):
            i += 1
        stop = min(i + LONGEST_NGRAM - 1, n)
        cache.crossing.n = 0
        reserve(cache.crossing, stop - first)
        characters = cache.crossing.data.edges
        for k in range(stop - first):
            characters[k] = crossing_character(s[first + k], cache.lowercase)
        piece.key, piece.n_bytes, piece.width = <const char*>characters, (stop - first) * sizeof(uint32_t), 4
        piece.is_run, piece.hash = CROSSING, hash_of(piece.key, piece.n_bytes)
        look_up(cache, &piece)
    return 0


def without_stand_ins(text):
    """Return a text with U+FFFD in place of the characters, unassigned in Unicode, that are used as stand-ins."""
    if type(text) is not str:
        text = str.__str__(text)  # of a subclass of str, such as numpy's
    cdef String string
    cdef Py_ssize_t i
    cdef Buffer characters
    if PyUnicode_KIND(text) < 4:
        return text
    string = string_of(text)
    for i in range(string.length):
        if is_stand_in((<const uint32_t*>string.data)[i]):
            break
    else:
        return text
    characters = filled(sizeof(uint32_t), string.length, 0)
    for i in range(string.length):
        characters.data.edges[i] = PyUnicode_READ(4, string.data, i)
        if is_stand_in(characters.data.edges[i]):
            characters.data.edges[i] = REPLACEMENT
    return PyUnicode_FromKindAndData(4, characters.data.edges, string.length)


def crossing_text(str text, bint lowercase):
    """Return a text with stand-ins in place of all characters that are not of a run; "" if it has no crossings.

    The head of this module explains runs, crossings and stand-ins.
    """
    cdef String string = string_of(text)
    cdef Py_ssize_t i
    cdef Buffer characters
    if string.kind == 1 or not (
        has_crossings(<const uint16_t*>string.data, string.length)
        if string.kind == 2
        else has_crossings(<const uint32_t*>string.data, string.length)
    ):
        return ""
    characters = filled(sizeof(uint32_t), string.length, 0)
    for i in range(string.length):
        characters.data.edges[i] = crossing_character(PyUnicode_READ(string.kind, string.data, i), lowercase)
    return PyUnicode_FromKindAndData(4, characters.data.edges, string.length)


cdef inline int set_key(TokenCache cache, Piece* piece, const character* s, size_t n) except -1 nogil:
    """Set the key of a piece of text: its characters in as few bytes as possible.

    So the same characters have the same key in all texts, even if texts take more bytes per character.
    """
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
    key = cache.narrow.data.chars + cache.narrow.n
    cache.narrow.n += (piece.n_bytes + 1) & ~<size_t>1
    for k in range(n):
        if piece.width == 1:
            (<uint8_t*>key)[k] = <uint8_t>s[k]
        else:
            (<uint16_t*>key)[k] = <uint16_t>s[k]
    piece.key = key
    return 0


cdef bint edges(TokenCache cache, uint32_t last_but_one, uint32_t last, uint32_t first, uint32_t second) noexcept nogil:
    cdef const uint32_t* each = cache.edges.data.edges
    cdef size_t i
    for i in range(cache.edges.n // 4):
        if each[1] == last and each[2] == first:
            if not (each[0] and last_but_one and each[0] != last_but_one):
                if not (each[3] and second and each[3] != second):
                    return True
        each += 4
    return False


cdef int add_suspect(TokenCache cache, size_t text, size_t position, Py_ssize_t start, Py_ssize_t end) except -1 nogil:
    cdef Suspect* suspect
    reserve(cache.suspect_list, 1)
    suspect = cache.suspect_list.data.suspects + cache.suspect_list.n
    suspect.text, suspect.position, suspect.start, suspect.end = text, position, start, end
    cache.suspect_list.n += 1
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
    """Append the position of a piece's span to the sequence of spans; add the span to the cache if it is new."""
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
                and span.is_run == piece.is_run
                and memcmp(key_of(cache.arena, span), piece.key, piece.n_bytes) == 0
            ):
                span.reused = True
                return push(cache.sequence, slot.span)
        position = (position + 1) & mask
    slot.hash = piece.hash
    slot.span = <int32_t>cache.n_spans
    cache.slots[position] = slot
    push(cache.sequence, slot.span)
    add_span(cache, piece)
    if 2 * cache.n_spans > cache.n_slots:
        new_table(cache, 2 * cache.n_slots)
    return 0


cdef Span* add_span(TokenCache cache, const Piece* piece) except NULL nogil:
    cdef size_t start
    cdef Span* span
    if cache.n_spans == cache.span_capacity:
        grow_spans(cache)
    span = cache.spans + cache.n_spans
    cache.n_spans += 1
    memset(span, 0, sizeof(Span))
    span.width = piece.width
    span.is_run = piece.is_run
    span.n_bytes = piece.n_bytes
    if piece.n_bytes <= SHORT:
        memcpy(span.key, piece.key, piece.n_bytes)
    else:
        # Rounded up, as keys of wide characters stay aligned.
        start = append(cache.arena, piece.key, piece.n_bytes, (piece.n_bytes + 3) & ~<size_t>3)
        memcpy(span.key, &start, sizeof(size_t))
    return span


cdef int grow_spans(TokenCache cache) except -1 nogil:
    """Move the spans to new memory that has room for twice as many."""
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


cdef int keep_span(TokenCache cache, const Span* old, Buffer arena, Buffer pool) except -1 nogil:
    """Copy a span to the new memory of the cache if it has occurred again; `arena` and `pool` are the former memory."""
    cdef Piece piece
    cdef Span* span
    cdef int32_t k
    if not old.reused:
        return 0
    piece.key, piece.n_bytes, piece.width, piece.is_run = key_of(arena, old), old.n_bytes, old.width, old.is_run
    span = add_span(cache, &piece)
    span.n_tokens, span.n_terms, span.term, span.ids = old.n_tokens, old.n_terms, old.term, cache.pool.n
    for k in range((old.n_tokens if old.n_tokens > 1 else 0) + (old.n_terms if old.n_terms > 1 else 0)):
        push(cache.pool, pool.data.ints[old.ids + k])
    return 0


cdef int new_table(TokenCache cache, size_t n_slots) except -1 nogil:
    """Create a new hash table of all spans, with `n_slots` slots, or more if the spans need more."""
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
        hash_ = hash_of(key_of(cache.arena, span), span.n_bytes)
        position = hash_ & (n_slots - 1)
        while slots[position].span >= 0:
            position = (position + 1) & (n_slots - 1)
        slots[position].hash, slots[position].span = hash_, <int32_t>i
    aligned_free(cache.slots)
    cache.slots, cache.n_slots = slots, n_slots
    return 0


cdef int count_text(
    TokenCache cache, size_t text, int longest, int64_t most, CharNgrams chars, Buffer ids
) except -1 nogil:
    cdef size_t i, n, start = ids.n
    cdef const int32_t* spans = spans_of(cache, text, &n)
    cdef const int32_t* terms
    cdef int32_t* tally = cache.tally.data.ints
    cdef int32_t term, before = -1, pair = -1, id_
    cdef int64_t n_ngrams = 0, n_chars = 0
    cdef int64_t stop = -1  # where in `ids` the terms end whose n-grams of characters are counted; -1: at the end
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
                if chars.sizes != NULL and stop < 0:
                    n_chars += chars.sizes[term]
                    if n_chars > most:
                        stop = ids.n
                push(ids, term)
            tally[term] += 1
            if longest > 1 and n_ngrams < most and not span.is_run:
                if before >= 0:
                    n_ngrams += 1
                    id_ = count_ngram(cache, before, term, ids)
                    if longest > 2 and pair >= 0:
                        count_ngram(cache, ~pair, term, ids)
                    pair = id_
                before = term
        if span.is_run:  # its terms overlap, and make no n-grams of words with what is around them
            before = pair = -1
    if chars.sizes != NULL:
        count_chars(cache, chars, start, ids.n if stop < 0 else <size_t>stop, ids)
    return 0


cdef int32_t count_ngram(TokenCache cache, int32_t left, int32_t right, Buffer ids) except -1 nogil:
    cdef int32_t id_ = ngram_id(cache, left, right)
    cdef int32_t* tally
    lengthen(cache.ngram_tally, id_ + 1, 0)
    tally = cache.ngram_tally.data.ints
    if tally[id_] == 0:
        push(ids, ~id_)
    tally[id_] += 1
    return id_


cdef int count_chars(TokenCache cache, CharNgrams chars, size_t start, size_t n, Buffer ids) except -1 nogil:
    """Count the n-grams of characters of a text: each is counted as often as the terms that have it.

    `ids` lists the text's terms from the position `start` on, to `n`; the n-grams are appended.
    """
    cdef size_t k
    cdef int32_t* tally = cache.tally.data.ints
    cdef int32_t term
    cdef int64_t i
    for k in range(start, n):
        term = ids.data.ints[k]
        if term >= 0:
            for i in range(chars.starts[term], chars.starts[term] + chars.sizes[term]):
                if tally[chars.ids[i]] == 0:
                    push(ids, chars.ids[i])
                tally[chars.ids[i]] += tally[term]
    return 0


cdef int collect(TokenCache cache, Buffer ids, Buffer counts) except -1 nogil:
    """Append the counts of a text's terms and n-grams, the last ones in `ids`, to `counts`; reset the tallies."""
    cdef size_t k
    cdef int32_t id_
    cdef int32_t* total
    reserve(counts, ids.n - counts.n)
    for k in range(counts.n, ids.n):
        id_ = ids.data.ints[k]
        total = cache.tally.data.ints + id_ if id_ >= 0 else cache.ngram_tally.data.ints + ~id_
        counts.data.ints[k] = total[0]
        total[0] = 0
    counts.n = ids.n
    return 0


cdef int32_t ngram_id(TokenCache cache, int32_t left, int32_t right) except -1 nogil:
    """Return the id of an n-gram; a new one gets the next id or, if n-grams are restricted, the last one."""
    cdef uint64_t parts = parts_of(left, right)
    cdef size_t bit
    cdef int32_t* slot
    cdef int32_t id_
    if cache.restricted:
        bit = filter_bit(parts)
        if not cache.ngram_filter[bit >> 6] >> (bit & 63) & 1:
            return cache.last_ngram
    slot = ngram_slot(cache.ngram_table, cache.ngram_parts, left, right)
    if slot[0]:
        return slot[0] - 1
    if cache.restricted:
        return cache.last_ngram
    id_ = <int32_t>(cache.ngram_parts.n // 2)
    slot[0] = id_ + 1
    push(cache.ngram_parts, left)
    push(cache.ngram_parts, right)
    if 2 * <size_t>id_ > cache.ngram_table.n:
        grow_ngrams(cache)
    return id_


cdef inline uint64_t parts_of(int32_t left, int32_t right) noexcept nogil:
    return <uint64_t><uint32_t>left << 32 | <uint32_t>right


cdef inline size_t filter_bit(uint64_t parts) noexcept nogil:
    return (parts * 0x9E3779B97F4A7C15ULL >> 40) & (64 * FILTER - 1)


cdef inline Entry* slot_of(Buffer table, uint64_t key) noexcept nogil:
    cdef Entry* entries = table.data.entries
    cdef size_t position = spread(key * 0xFF51AFD7ED558CCDULL) & (table.n - 1)
    while entries[position].number and entries[position].key != key:
        position = (position + 1) & (table.n - 1)
    return entries + position


cdef inline int32_t* ngram_slot(Buffer table, Buffer parts, int32_t left, int32_t right) noexcept nogil:
    """Return the place in the table for an n-gram: it holds the n-gram's id + 1, or 0 if the n-gram is new."""
    cdef int32_t* numbers = table.data.ints
    cdef const int32_t* key
    cdef size_t position = spread(parts_of(left, right) * 0xFF51AFD7ED558CCDULL) & (table.n - 1)
    while numbers[position]:
        key = parts.data.ints + 2 * <size_t>(numbers[position] - 1)
        if key[0] == left and key[1] == right:
            break
        position = (position + 1) & (table.n - 1)
    return numbers + position


cdef int grow_ngrams(TokenCache cache) except -1 with gil:
    cdef Buffer table = filled(sizeof(int32_t), 2 * cache.ngram_table.n, 0), parts = cache.ngram_parts
    cdef size_t id_
    for id_ in range(parts.n // 2):
        ngram_slot(table, parts, parts.data.ints[2 * id_], parts.data.ints[2 * id_ + 1])[0] = <int32_t>id_ + 1
    cache.ngram_table = table
    return 0


def ngrams_of_runs(str text, const int64_t[:, ::1] runs):
    """Find the terms of runs in a text: their n-grams of 1 to `LONGEST_NGRAM` characters, ordered by their start.

    Parameters
    ----------
    text : str
    runs : ndarray of shape (n_runs, 2), int64
        The start and the end of each run.

    Returns
    -------
    places : ndarray of shape (n_terms, 2), int64
        The start and the end of the first occurrence of each distinct term.
    keys : ndarray of shape (n_terms,), uint64
        A number that identifies each term.
    numbers, starts, ends : ndarray of shape (n_occurrences,), int64
        The number of the term (its position in `keys`), the start and the end of each occurrence.
    """
    cdef Py_ssize_t r, start, stop, n, i = 0, total = 0
    cdef String string = string_of(text)
    cdef uint64_t key
    cdef Entry* slot
    cdef Buffer table = filled(sizeof(Entry), 1 << 8, 0), firsts = Buffer(sizeof(int32_t))
    for r in range(runs.shape[0]):
        n = runs[r, 1] - runs[r, 0]
        total += sum([max(n - k, 0) for k in range(LONGEST_NGRAM)])
    places = np.empty((3, total), np.int64)
    cdef int64_t[:, ::1] place = places
    for r in range(runs.shape[0]):
        for start in range(runs[r, 0], runs[r, 1]):
            key = 0
            for stop in range(start + 1, min(start + LONGEST_NGRAM, runs[r, 1]) + 1):
                key |= <uint64_t>PyUnicode_READ(string.kind, string.data, stop - 1) << CHARACTER_BITS * (stop - start - 1)
                slot = slot_of(table, key)
                if not slot.number:
                    push(firsts, <int32_t>i)
                    slot.key, slot.number = key, <int32_t>firsts.n
                    if 2 * firsts.n > table.n:
                        table = doubled(table)
                        slot = slot_of(table, key)
                place[0, i], place[1, i], place[2, i] = slot.number - 1, start, stop
                i += 1
    first = as_array(firsts)
    keys = np.empty(len(first), np.uint64)
    cdef uint64_t[::1] key_of_term = keys
    for i in range(<Py_ssize_t>table.n):
        if table.data.entries[i].number:
            key_of_term[table.data.entries[i].number - 1] = table.data.entries[i].key
    return places[1:, first].T, keys, *places


def number_tokens(list tokens, dict ids, list listed, int32_t other, terms_of, simple):
    """Return the id of each token's term, -1 if the token is not a term: shape (n_tokens,), int32.

    Parameters
    ----------
    tokens : list of str
    ids, listed : dict of str to int, list of str
        The id of each term so far, and the terms by their ids; new terms are added to both if `other` is -1.
    other : int
        The id for new terms; -1: they get the next ids.
    terms_of : callable
        Given a list of tokens, returns those that count as terms, in the same order, and the term of each.
    simple : tuple, optional
        Which tokens are their own terms, so that `terms_of` is not called for them: tokens of ASCII characters without
        capitals and white space. The tuple has a collection of tokens that are excepted, the kind of tokens that are
        terms (see `WordTable`), and whether tokens that end in "s" are excepted. None: all tokens go to `terms_of`.
    """
    cdef Py_ssize_t i, k, n = len(tokens)
    cdef dict position_of = {}
    cdef int32_t[256] of_character
    cdef list others, words, terms
    cdef str token
    cdef Buffer known
    stops, kind, plurals = simple or ((), _ANYTHING, False)
    cdef bint any_simple = simple is not None, with_plurals = plurals
    cdef int kind_of_terms = kind
    numbers = np.empty(n, np.int32)
    cdef int32_t[::1] number = numbers
    memset(of_character, 0xFF, sizeof(of_character))
    for i in range(n):
        token = tokens[i]
        if len(token) == 1 and PyUnicode_KIND(token) == 1:
            k = (<const uint8_t*>PyUnicode_DATA(token))[0]
            if of_character[k] < 0:
                of_character[k] = position_of.setdefault(token, len(position_of))
            number[i] = of_character[k]
        elif any_simple and looks_simple(token, kind_of_terms, with_plurals) and token not in stops:
            number[i] = -1
        else:
            number[i] = position_of.setdefault(token, len(position_of))
    others = list(position_of)
    words, terms = terms_of(others)
    term_of = [None] * len(others)
    i = 0
    for k in range(len(others)):
        if i < len(words) and words[i] is others[k]:
            term_of[k] = terms[i]
            i += 1
    known = filled(sizeof(int32_t), len(others), 0x80)  # far below -1: the id is not known yet
    for i in range(n):
        k = number[i]
        if k < 0:
            number[i] = id_of_term(tokens[i], ids, listed, other)
            continue
        if known.data.ints[k] < -1:
            known.data.ints[k] = -1 if term_of[k] is None else id_of_term(term_of[k], ids, listed, other)
        number[i] = known.data.ints[k]
    return numbers


cdef bint looks_simple(str token, int kind, bint plurals) noexcept:
    cdef Py_ssize_t i, n = len(token)
    cdef const char* key
    if not n or not PyUnicode_IS_ASCII(token):
        return False
    key = <const char*>PyUnicode_DATA(token)
    for i in range(n):
        if key[i] <= 32 or c"A" <= key[i] <= c"Z":
            return False
    return may_be_term(kind, key, n) and not (plurals and key[n - 1] == c"s")


cdef int32_t id_of_term(term, dict ids, list listed, int32_t other) except -2:
    cdef PyObject* found = PyDict_GetItem(ids, term)
    if found is not NULL:
        return <object>found
    if other < 0:
        other = <int32_t>len(listed)
        ids[term] = other
        listed.append(term)
    return other
