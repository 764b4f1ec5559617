"""Compiled: find the affixes of strings by tables of character sets, and ask the regex where they cannot tell."""

from cpython.unicode cimport PyUnicode_DATA, PyUnicode_KIND
from libc.stdint cimport int32_t, uint64_t
from libc.stdlib cimport calloc, free

import numpy as np

DEPTH = 4  # characters looked at on either side of the point
EVERYTHING = (<object>1 << 130) - 1

cdef extern from "Python.h":
    Py_UCS4 PyUnicode_READ(int kind, const void* data, Py_ssize_t index) noexcept nogil


cdef class AffixMatch:
    """Stands for the `re.Match` of an affix."""

    cdef Py_ssize_t _start, _end

    def start(self):
        return self._start

    def end(self):
        return self._end


cdef AffixMatch matched(Py_ssize_t start, Py_ssize_t end):
    cdef AffixMatch match = AffixMatch.__new__(AffixMatch)
    match._start = start
    match._end = end
    return match


cdef inline String view(str string):
    cdef String seen
    seen.data, seen.kind, seen.length = PyUnicode_DATA(string), PyUnicode_KIND(string), len(string)
    return seen


cdef inline String part(String string, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    string.data = <const char*>string.data + start * string.kind
    string.length = stop - start
    return string


cdef inline int code(const String* string, Py_ssize_t i) noexcept nogil:
    if i < 0 or i >= string.length:
        return ABSENT
    cdef Py_UCS4 character = PyUnicode_READ(string.kind, string.data, i)
    return <int>character if character < 128 else OTHER


cdef inline bint holds(const uint64_t* mask, int c) noexcept nogil:
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

    cdef Answer meets(self, const Alternative* each, const String* string, Py_ssize_t point) noexcept nogil:
        cdef Answer answer = YES if each.width > 0 else PERHAPS
        cdef int k, c
        for k in range(REACH):
            if each.reads_ahead[k]:
                c = code(string, point + k)
                if not holds(each.ahead[k], c):
                    return NO
                if c == OTHER:
                    answer = PERHAPS
            if each.reads_before[k]:
                c = code(string, point - 1 - k)
                if not holds(each.before[k], c):
                    return NO
                if c == OTHER:
                    answer = PERHAPS
        return answer

    cdef Answer first(self, const String* string, Py_ssize_t point, int* width) noexcept nogil:
        """Find the first alternative that matches at the point, or may match there; where unread, one always may."""
        cdef int c = code(string, point)
        cdef int j
        cdef Answer answer
        width[0] = 0
        if not self.readable:
            return PERHAPS
        for j in range(self.starts[c], self.starts[c + 1]):
            answer = self.meets(&self.table[self.listed[j]], string, point)
            if answer != NO:
                width[0] = self.table[self.listed[j]].width
                return answer
        return NO

    cdef Answer widest(self, const String* string, int* width) noexcept nogil:
        """Find the widest alternative that ends the string: the leftmost match, as all matches end there."""
        cdef int c = code(string, string.length - 1)
        cdef int j
        cdef Answer answer, best = NO
        width[0] = 0
        if c == c"\n" or not self.readable:  # `$` also matches before a line's end
            return PERHAPS
        for j in range(self.starts[c], self.starts[c + 1]):
            answer = self.meets(&self.table[self.listed[j]], string, string.length)
            if answer == PERHAPS:
                return PERHAPS
            if answer == YES:
                best = YES
                width[0] = max(width[0], self.table[self.listed[j]].width)
        return best


cdef class Prefixes(Tables):
    """Stands for `prefix_search`."""

    def __call__(self, str string):
        cdef int width
        cdef String seen = view(string)
        cdef Answer answer = self.first(&seen, 0, &width)
        if answer == NO:
            return None
        return matched(0, width) if answer == YES else self.ask(string)


cdef class Suffixes(Tables):
    """Stands for `suffix_search`."""

    looks_back = True

    def __call__(self, str string):
        cdef int width
        cdef String seen = view(string)
        cdef Answer answer = self.widest(&seen, &width)
        if answer == NO:
            return None
        return matched(seen.length - width, seen.length) if answer == YES else self.ask(string)


cdef class Infixes(Tables):
    """Stands for `infix_finditer`."""

    def __call__(self, str string):
        cdef int width
        cdef Py_ssize_t point = 0
        cdef String seen = view(string)
        cdef Answer answer
        cdef list matches = []
        while point <= seen.length:
            answer = self.first(&seen, point, &width)
            if answer == PERHAPS:
                return self.ask(string)
            if answer == YES:
                matches.append(matched(point, point + width))
                point += width
            else:
                point += 1
        return matches


cdef bint none_within(Infixes infixes, const String* string) noexcept nogil:
    cdef int width
    cdef Py_ssize_t point
    for point in range(string.length + 1):
        if infixes.first(string, point, &width) != NO:
            return False
    return True


cdef bint surely_cut(
    Prefixes prefixes, Suffixes suffixes, Infixes infixes, bint whole, String string, int* before, int* behind
) noexcept nogil:
    """Compute the widths of a span's only prefix and suffix, 0 if none; return whether the tables alone show them.

    They cannot if there may be more affixes, or an infix, or if a span that has affixes may stay `whole` nevertheless.
    """
    cdef String rest, core
    cdef int width
    if prefixes.first(&string, 0, before) == PERHAPS:
        return False
    rest = part(string, before[0], string.length)
    if suffixes.widest(&rest, behind) == PERHAPS:
        return False
    if not before[0] and not behind[0]:
        return none_within(infixes, &string)
    if whole or before[0] + behind[0] >= string.length:
        return False
    core = part(string, before[0], string.length - behind[0])
    return (
        prefixes.first(&core, 0, &width) == NO
        and suffixes.widest(&core, &width) == NO
        and none_within(infixes, &core)
    )


def cut(list spans, set specials, bint whole, Prefixes prefixes, Suffixes suffixes, Infixes infixes):
    """Split spans into their tokens where the tables alone can tell: where there is at most a prefix and a suffix.

    Parameters
    ----------
    spans : list of str
    specials : set of str
        What may be no run of tokens of a span, for it might be a special case.
    whole : bool
        Whether a span with an affix is not to be cut, for something may keep it whole.

    Returns
    -------
    tokens : list of str
        Those of the first span, of the second, and so on.
    lengths : ndarray of shape (n_spans,), int32
        How many tokens each span has; 0 where the tables cannot tell.
    """
    cdef Py_ssize_t i
    cdef list tokens = []
    lengths = np.zeros(len(spans), np.int32)
    cdef int32_t[::1] length = lengths
    for i in range(len(spans)):
        length[i] = cut_span(spans[i], tokens, specials, whole, prefixes, suffixes, infixes)
    return tokens, lengths


cdef int cut_span(
    str span, list tokens, set specials, bint whole, Prefixes prefixes, Suffixes suffixes, Infixes infixes
) except -1:
    cdef Py_ssize_t n = len(span)
    cdef int before, behind
    cdef str core
    if span in specials or not surely_cut(prefixes, suffixes, infixes, whole, view(span), &before, &behind):
        return 0
    if not before and not behind:
        tokens.append(span)
        return 1
    core = span[before : n - behind]
    if core in specials:
        return 0
    if before and (span[:before] in specials or span[before:] in specials):
        return 0
    if behind and (span[n - behind :] in specials or span[: n - behind] in specials):
        return 0
    if before:
        tokens.append(span[:before])
    tokens.append(core)
    if behind:
        tokens.append(span[n - behind :])
    return 1 + (before > 0) + (behind > 0)


cdef int store(uint64_t* mask, object bits) except -1:
    mask[0] = bits & 0xFFFFFFFFFFFFFFFF
    mask[1] = bits >> 64 & 0xFFFFFFFFFFFFFFFF
    mask[2] = bits >> 128
    return 0
