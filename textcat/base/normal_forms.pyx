"""Compiled: convert texts to Unicode's normal form C, and map the characters of the result to those of the text.

Canonically equivalent texts, such as "é" as one character and as "e" with an accent, have the same normal form. Nearly
all texts are in this form already, which a table of stable characters shows faster than unicodedata.
"""

import unicodedata

from cpython.unicode cimport PyUnicode_DATA, PyUnicode_KIND
from libc.stdint cimport uint8_t, uint16_t, uint32_t

import numpy as np

ctypedef fused character:
    uint16_t
    uint32_t

cdef enum:
    FIRST = 0x300     # all characters before it are stable
    BEYOND = 0x10000  # those of the table
    LONG = 64         # successive marks that are put in order here: Python's way takes time that grows with their square

#: Ranges in which all characters are stable: letters of Han and Hangul, surrogates and private characters, emoji.
_STABLE = ((0, 0x2FF), (0x3400, 0x9FFF), (0xAC00, 0xF8FF), (0x1F000, 0x1FAFF), (0x20000, 0x2F7FF), (0x30000, 0x323AF))
_JAMO = range(0x1160, 0x1200)  # vowels and finals of Hangul

cdef uint8_t[BEYOND] STABLE  # whether a character stays as it is in any text, and keeps apart what is on either side
cdef bint is_filled = False


cdef int fill() except -1:
    """Fill the table STABLE: True for each character that stays as it is, whatever characters are next to it.

    Outside the ranges of `_STABLE`, characters that Python's version of Unicode lacks are not stable.
    """
    global is_filled
    cdef int code
    for first, last in _STABLE:
        for code in range(first, min(last + 1, <int>BEYOND)):
            STABLE[code] = True
    others = [code for code in range(FIRST, BEYOND) if not STABLE[code]]
    parts = [unicodedata.decomposition(chr(code)).split() for code in others]
    seconds = {int(pair[1], 16) for pair in parts if len(pair) == 2 and pair[0][0] != "<"}
    for code in others:
        string = chr(code)
        STABLE[code] = not (
            unicodedata.combining(string)
            or code in seconds
            or code in _JAMO
            or unicodedata.category(string) == "Cn"
            or unicodedata.normalize("NFC", string) != string
        )
    is_filled = True
    return 0


cdef inline bint is_stable(uint32_t code) noexcept nogil:
    if code < BEYOND:
        return STABLE[code]
    return 0x1F000 <= code < 0x1FB00 or 0x20000 <= code < 0x2F800 or 0x30000 <= code < 0x323B0


cdef Py_ssize_t longest_unstable(const character* text, Py_ssize_t n) noexcept nogil:
    """Return the length of the longest stretch of characters that are not stable; 0: there is none."""
    cdef Py_ssize_t i, length = 0, longest = 0
    for i in range(n):
        if text[i] < FIRST or is_stable(text[i]):
            length = 0
        else:
            length += 1
            if length > longest:
                longest = length
    return longest


def nfc(text):
    """Return a text in normal form C; the same object if the text is in this form already.

    Source: Unicode Standard Annex #15, Unicode Normalization Forms.
    """
    if type(text) is not str:
        text = str.__str__(text)  # of a subclass of str, such as numpy's
    cdef int kind = PyUnicode_KIND(text)
    cdef Py_ssize_t longest
    if kind == 1:
        return text
    if not is_filled:
        fill()
    if kind == 2:
        longest = longest_unstable(<const uint16_t*>PyUnicode_DATA(text), len(text))
    else:
        longest = longest_unstable(<const uint32_t*>PyUnicode_DATA(text), len(text))
    if not longest:
        return text
    return unicodedata.normalize("NFC", text if longest <= LONG else _with_marks_in_order(text))


def _with_marks_in_order(str text):
    """Return a text that is canonically equivalent, decomposed, with the marks of each letter in canonical order."""
    cdef list pieces = [], marks = []
    for string in text:
        for string in unicodedata.normalize("NFD", string):
            if unicodedata.combining(string):
                marks.append(string)
                continue
            pieces += sorted(marks, key=unicodedata.combining)
            marks = []
            pieces.append(string)
    return "".join(pieces + sorted(marks, key=unicodedata.combining))


def origins(str text):
    """Return, for each character of `nfc(text)`, the start and the end of its origin, the characters that became it.

    They are two arrays of int64. If a group of characters was changed together, it is the origin of all the characters
    that it became.
    """
    cdef Py_ssize_t i, stop, start = 0, n = len(text)
    cdef list starts = [], ends = []
    if not is_filled:
        fill()
    for stop in range(1, n + 1):
        if stop < n and not is_stable(ord(text[stop])) and not is_stable(ord(unicodedata.normalize("NFD", text[stop])[0])):
            continue
        form = text[start:stop] if stop == start + 1 and is_stable(ord(text[start])) else nfc(text[start:stop])
        if form == text[start:stop]:
            starts += range(start, stop)
            ends += range(start + 1, stop + 1)
        else:
            starts += [start] * len(form)
            ends += [stop] * len(form)
        start = stop
    return np.array(starts, np.int64), np.array(ends, np.int64)
