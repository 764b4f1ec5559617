"""Compiled: tell from tables of character sets what affix a string has, and ask the regex where they cannot tell."""

from libc.stdint cimport int32_t, uint64_t
from libc.stdlib cimport calloc, free

import numpy as np

DEPTH = 4  # characters looked at on either side of the point
EVERYTHING = (<object>1 << 130) - 1

cdef enum:
    REACH = 4
    OTHER = 128
    ABSENT = 129
    CODES = 130

cdef enum Answer:
    NO
    YES
    PERHAPS

cdef struct Alternative:
    uint64_t before[REACH][3]
    uint64_t ahead[REACH][3]
    bint reads_before[REACH]  # whether the set there excludes anything
    bint reads_ahead[REACH]
    int width


cdef class Found:
    """Stands for the `re.Match` of an affix."""

    cdef Py_ssize_t _start, _end

    def start(self):
        return self._start

    def end(self):
        return self._end


cdef Found found(Py_ssize_t start, Py_ssize_t end):
    cdef Found match = Found.__new__(Found)
    match._start = start
    match._end = end
    return match


cdef inline int code(str string, Py_ssize_t i, Py_ssize_t n):
    if i < 0 or i >= n:
        return ABSENT
    cdef Py_UCS4 character = string[i]
    return <int>character if character < 128 else OTHER


cdef inline bint holds(const uint64_t* mask, int c) noexcept:
    return (mask[c >> 6] >> (c & 63)) & 1


cdef class Tables:
    """The alternatives of one affix regex, and for every character those that it may begin or end, in order.

    Parameters
    ----------
    ask : callable or None
        The tokenizer's own function, asked where the tables cannot tell.
    alternatives : list of Alternative, or None
        None if the regex could not be read: then it is always asked.
    """

    cdef object ask
    cdef bint readable
    cdef Alternative* table
    cdef int* listed        # for every code its alternatives, one after the other
    cdef int starts[CODES + 1]

    looks_back = False

    def __cinit__(self, ask, alternatives):
        cdef int c, i, k, n_listed = 0
        self.ask = ask
        self.readable = alternatives is not None
        alternatives = alternatives or []
        masks = [(each.before if self.looks_back else each.ahead)[0] for each in alternatives]
        self.table = <Alternative*>calloc(len(alternatives) + 1, sizeof(Alternative))
        self.listed = <int*>calloc(CODES * (len(alternatives) + 1), sizeof(int))
        if self.table == NULL or self.listed == NULL:
            raise MemoryError
        for i, each in enumerate(alternatives):
            self.table[i].width = each.width
            for k in range(REACH):
                store(self.table[i].before[k], each.before[k])
                store(self.table[i].ahead[k], each.ahead[k])
                self.table[i].reads_before[k] = each.before[k] != EVERYTHING
                self.table[i].reads_ahead[k] = each.ahead[k] != EVERYTHING
        for c in range(CODES):
            self.starts[c] = n_listed
            for i, mask in enumerate(masks):
                if mask >> c & 1:
                    self.listed[n_listed] = i
                    n_listed += 1
        self.starts[CODES] = n_listed

    def __dealloc__(self):
        free(self.table)
        free(self.listed)

    cdef Answer meets(self, const Alternative* each, str string, Py_ssize_t point, Py_ssize_t n):
        cdef Answer answer = YES if each.width > 0 else PERHAPS
        cdef int k, c
        for k in range(REACH):
            if each.reads_ahead[k]:
                c = code(string, point + k, n)
                if not holds(each.ahead[k], c):
                    return NO
                if c == OTHER:
                    answer = PERHAPS
            if each.reads_before[k]:
                c = code(string, point - 1 - k, n)
                if not holds(each.before[k], c):
                    return NO
                if c == OTHER:
                    answer = PERHAPS
        return answer

    cdef Answer first(self, str string, Py_ssize_t point, Py_ssize_t n, int* width):
        """Find the first alternative that matches at the point, or may match there."""
        cdef int c = code(string, point, n)
        cdef int j
        cdef Answer answer
        for j in range(self.starts[c], self.starts[c + 1]):
            answer = self.meets(&self.table[self.listed[j]], string, point, n)
            if answer != NO:
                width[0] = self.table[self.listed[j]].width
                return answer
        return NO

    cdef Answer widest(self, str string, Py_ssize_t n, int* width):
        """Find the widest alternative that ends the string: the leftmost match, as all matches end there."""
        cdef int c = code(string, n - 1, n)
        cdef int j
        cdef Answer answer, best = NO
        width[0] = 0
        if c == c"\n":  # `$` also matches before it
            return PERHAPS
        for j in range(self.starts[c], self.starts[c + 1]):
            answer = self.meets(&self.table[self.listed[j]], string, n, n)
            if answer == PERHAPS:
                return PERHAPS
            if answer == YES:
                best = YES
                width[0] = max(width[0], self.table[self.listed[j]].width)
        return best


cdef class Prefixes(Tables):
    """Stands for `prefix_search`."""

    cpdef bint none_in(self, str string):
        """Tell whether the tables alone show that there is no prefix."""
        cdef int width
        return self.readable and self.first(string, 0, len(string), &width) == NO

    cdef bint surely(self, str string, int* width):
        """Tell the width of the prefix, 0 if there is none, and whether the tables alone show that."""
        width[0] = 0
        return self.readable and self.first(string, 0, len(string), width) != PERHAPS

    def __call__(self, str string):
        cdef int width
        cdef Answer answer = self.first(string, 0, len(string), &width) if self.readable else PERHAPS
        if answer == NO:
            return None
        return found(0, width) if answer == YES else self.ask(string)


cdef class Suffixes(Tables):
    """Stands for `suffix_search`."""

    looks_back = True

    cpdef bint none_in(self, str string):
        """Tell whether the tables alone show that there is no suffix."""
        cdef int width
        return self.readable and self.widest(string, len(string), &width) == NO

    cdef bint surely(self, str string, int* width):
        """Tell the width of the suffix, 0 if there is none, and whether the tables alone show that."""
        width[0] = 0
        return self.readable and self.widest(string, len(string), width) != PERHAPS

    def __call__(self, str string):
        cdef int width
        cdef Py_ssize_t n = len(string)
        cdef Answer answer = self.widest(string, n, &width) if self.readable else PERHAPS
        if answer == NO:
            return None
        return found(n - width, n) if answer == YES else self.ask(string)


cdef class Infixes(Tables):
    """Stands for `infix_finditer`."""

    cpdef bint none_in(self, str string):
        """Tell whether the tables alone show that there is no infix."""
        cdef int width
        cdef Py_ssize_t point, n = len(string)
        if not self.readable:
            return False
        for point in range(n + 1):
            if self.first(string, point, n, &width) != NO:
                return False
        return True

    def __call__(self, str string):
        cdef int width
        cdef Py_ssize_t point = 0, n = len(string)
        cdef Answer answer
        cdef list matches = []
        if not self.readable:
            return self.ask(string)
        while point <= n:
            answer = self.first(string, point, n, &width)
            if answer == PERHAPS:
                return self.ask(string)
            if answer == YES:
                matches.append(found(point, point + width))
                point += width
            else:
                point += 1
        return matches


def cut(list chunks, set specials, bint whole, Prefixes prefixes, Suffixes suffixes, Infixes infixes):
    """Cut chunks into their tokens where the tables alone can tell: where there is at most a prefix and a suffix.

    Parameters
    ----------
    chunks : list of str
    specials : set of str
        What may be no run of tokens of a chunk, for it might be a special case.
    whole : bool
        Whether a chunk with an affix is not to be cut, for something may keep it whole.

    Returns
    -------
    tokens : list of str
        Those of the first chunk, of the second, and so on.
    lengths : ndarray of shape (n_chunks,), int32
        How many tokens each chunk has; 0 where the tables cannot tell.
    """
    cdef Py_ssize_t i
    cdef list tokens = []
    lengths = np.zeros(len(chunks), np.int32)
    cdef int32_t[::1] length = lengths
    for i in range(len(chunks)):
        length[i] = cut_chunk(chunks[i], tokens, specials, whole, prefixes, suffixes, infixes)
    return tokens, lengths


cdef int cut_chunk(
    str chunk, list tokens, set specials, bint whole, Prefixes prefixes, Suffixes suffixes, Infixes infixes
) except -1:
    cdef Py_ssize_t n = len(chunk)
    cdef int before = 0, behind = 0
    cdef str core
    if chunk in specials or not prefixes.surely(chunk, &before):
        return 0
    if not suffixes.surely(chunk[before:] if before else chunk, &behind):
        return 0
    if not before and not behind:
        if not infixes.none_in(chunk):
            return 0
        tokens.append(chunk)
        return 1
    if whole or before + behind >= n:
        return 0
    core = chunk[before : n - behind]
    if not (prefixes.none_in(core) and suffixes.none_in(core) and infixes.none_in(core)) or core in specials:
        return 0
    if before and (chunk[:before] in specials or chunk[before:] in specials):
        return 0
    if behind and (chunk[n - behind :] in specials or chunk[: n - behind] in specials):
        return 0
    if before:
        tokens.append(chunk[:before])
    tokens.append(core)
    if behind:
        tokens.append(chunk[n - behind :])
    return 1 + (before > 0) + (behind > 0)


cdef int store(uint64_t* mask, object bits) except -1:
    mask[0] = bits & 0xFFFFFFFFFFFFFFFF
    mask[1] = bits >> 64 & 0xFFFFFFFFFFFFFFFF
    mask[2] = bits >> 128
    return 0
