"""Compiled: normalise texts, and map the characters of the result to those of the text.

Texts that are the same to a reader become the same. Canonically equivalent texts, such as "é" as one character and as
"e" with an accent, get Unicode's normal form C; letters that are only shaped otherwise, such as "ﬁ" and "ſ", become
"fi" and "s"; characters that are not seen, such as soft hyphens, are left out. Nearly all texts are in this form
already, which a table of stable characters shows faster than unicodedata.
"""

import re
import unicodedata

from cpython.unicode cimport PyUnicode_DATA, PyUnicode_KIND
from libc.stdint cimport uint8_t, uint16_t, uint32_t

import numpy as np

ctypedef fused character:
    uint16_t
    uint32_t

cdef enum:
    FIRST = 0xAC      # all characters before it are stable
    BEYOND = 0x10000  # those of the table
    LONG = 64         # successive marks that are put in order here: Python's way takes time that grows with their square

#: Ranges in which all characters are stable: letters of Han and Hangul, surrogates and private characters, emoji.
_STABLE = ((0, 0x2FF), (0x3400, 0x9FFF), (0xAC00, 0xF8FF), (0x1F000, 0x1FAFF), (0x20000, 0x2F7FF), (0x30000, 0x323AF))
_JAMO = range(0x1160, 0x1200)  # vowels and finals of Hangul
#: Ranges of characters that are not seen, or only lengthen a line (U+0640, tatweel): soft hyphens, zero-width spaces and
#: joiners, marks of direction, variation selectors, byte order marks.
_UNSEEN = (
    *((0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x640, 0x640), (0x200B, 0x200F), (0x202A, 0x202E)),
    *((0x2060, 0x206F), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xE0100, 0xE01EF)),
)
#: Ranges in which letters and digits are only shaped otherwise than those of their compatibility form: long s, Han
#: radicals, ligatures, letters of Hebrew and Arabic as they are drawn in a word, full and half width.
_SHAPES = (
    *((0x17F, 0x17F), (0x1E9B, 0x1E9B), (0x2E80, 0x2FD5), (0xFB00, 0xFDFF), (0xFE70, 0xFEFC)),
    *((0xFF10, 0xFF19), (0xFF21, 0xFF3A), (0xFF41, 0xFF5A), (0xFF66, 0xFFDC)),
)
#: Also the umlaut as a small e, as in Fraktur, and hyphens other than that of keyboards.
_OTHERS = {0x364: "\u0308", 0x2010: "-", 0x2011: "-"}
# A word that is divided at the end of a line by a sign that is used for nothing else there.
_DIVIDED = re.compile(
    "[\xac\xad\u2e17](?:(?<=\xad)[ \t]*(?:\r\n?|\n)[ \t]*|"
    "(?<=[^\\W\\d_].|[\u0300-\u036f].)[ \t]*(?:\r\n?|\n)[ \t]*(?=[^\\W\\d_]))"  # marks: of decomposed letters
)
_DIVIDERS = "\xac\xad\u2e17"

cdef uint8_t[BEYOND] STABLE  # whether a character stays as it is in any text, and keeps apart what is on either side
cdef bint is_filled = False
cdef dict REPLACED = {}  # what takes the place of a character, by its code


cdef int fill() except -1:
    """Fill the table STABLE: True for each character that stays as it is, whatever characters are next to it.

    Outside the ranges of `_STABLE`, characters that Python's version of Unicode lacks are not stable.
    """
    global is_filled
    cdef int code
    for first, last in _STABLE:
        for code in range(first, min(last + 1, <int>BEYOND)):
            STABLE[code] = True
    others = [code for code in range(0x300, BEYOND) if not STABLE[code]]
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
    REPLACED.update({code: "" for first, last in _UNSEEN for code in range(first, last + 1)})
    shapes = {code: _letters(code).translate(REPLACED) for first, last in _SHAPES for code in range(first, last + 1)}
    REPLACED.update({code: form for code, form in shapes.items() if form})
    REPLACED.update(_OTHERS)
    for code in (*REPLACED, *map(ord, _DIVIDERS)):
        if code < BEYOND:
            STABLE[code] = False
    is_filled = True
    return 0


def _letters(code):
    """Return the compatibility form of a character, given by its code, if it is another, of letters, marks and digits."""
    form = unicodedata.normalize("NFKC", chr(code))
    return form if form != chr(code) and all(unicodedata.category(string)[0] in "LMN" for string in form) else ""


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


def normalised(text):
    """Return a text in normal form; the same object if it is in this form already.

    The form is Unicode's normal form C, without characters that are not seen, and with plain letters and digits in
    place of those that are only shaped otherwise. A word that a soft hyphen, "¬" or "⸗" divides at the end of a line is
    joined.

    Source: Unicode Standard Annex #15, Unicode Normalization Forms.
    """
    if type(text) is not str:
        text = str.__str__(text)  # of a subclass of str, such as numpy's
    cdef int kind = PyUnicode_KIND(text)
    cdef Py_ssize_t longest
    if kind == 1 and "\xad" not in text and "\xac" not in text:
        return text
    if not is_filled:
        fill()
    if kind == 1:
        longest = 1
    elif kind == 2:
        longest = longest_unstable(<const uint16_t*>PyUnicode_DATA(text), len(text))
    else:
        longest = longest_unstable(<const uint32_t*>PyUnicode_DATA(text), len(text))
    if not longest:
        return text
    if any([divider in text for divider in _DIVIDERS]):  # found faster than by the expression
        text = _DIVIDED.sub("", text)
    return _form(text, longest)


cdef str _form(str text, Py_ssize_t longest):
    """Return the normal form of a text without divided words; `longest` is that of `longest_unstable` at least."""
    text = _with_plain_letters(text)
    return nfc(text) if longest > LONG else unicodedata.normalize("NFC", text)


def nfc(str text):
    """Return a text in Unicode's normal form C, and nothing else changed, in time proportional to its length."""
    return unicodedata.normalize("NFC", text if len(text) <= LONG else _with_marks_in_order(text))


cdef str _with_plain_letters(str text):
    """Return `text.translate(REPLACED)`, which takes fifty times as long where few characters are replaced."""
    cdef list pieces = []
    cdef Py_ssize_t i, start = 0
    cdef Py_UCS4 code
    for i, code in enumerate(text):
        if code >= FIRST and not is_stable(code):
            replacement = REPLACED.get(<uint32_t>code)
            if replacement is not None:
                pieces += text[start:i], replacement
                start = i + 1
    return "".join([*pieces, text[start:]]) if pieces else text


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
    """Return, for each character of `normalised(text)`, the start and the end of its origin, which became it.

    They are two arrays of int64. If a group of characters was changed together, it is the origin of all the characters
    that it became.
    """
    cdef Py_ssize_t i, stop, start = 0, n = len(text)
    cdef list starts = [], ends = []
    if not is_filled:
        fill()
    between = {i for match in _DIVIDED.finditer(text) for i in range(match.start(), match.end())}
    for stop in range(1, n + 1):
        if stop < n and (stop in between or not _begins_piece(text[stop])):
            continue
        piece = text[start:stop]
        if between and not between.isdisjoint(range(start, stop)):
            piece = "".join([text[i] for i in range(start, stop) if i not in between])
        form = piece if len(piece) == 1 and is_stable(ord(piece)) else _form(piece, len(piece))
        if form == text[start:stop]:
            starts += range(start, stop)
            ends += range(start + 1, stop + 1)
        else:
            starts += [start] * len(form)
            ends += [stop] * len(form)
        start = stop
    return np.array(starts, np.int64), np.array(ends, np.int64)


cdef bint _begins_piece(str string):
    """Return whether no form of a character, alone or with others, is joined to what is before it."""
    if is_stable(ord(string)):
        return True
    form = unicodedata.normalize("NFD", string.translate(REPLACED))
    return bool(form) and is_stable(ord(form[0]))
