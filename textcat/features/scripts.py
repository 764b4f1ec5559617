"""Find the runs of scripts that are written without spaces between words, and list the terms of such a run."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from unicodedata import category

from textcat.base.errors import TextcatError

NGRAMS, RUNS, SPACY = "ngrams", "runs", "spacy"
SEGMENTERS = NGRAMS, RUNS, SPACY
#: Languages written without spaces between words. spaCy's tokenizers of some of them need packages, or do not exist.
UNSPACED_LANGUAGES = frozenset({"ja", "km", "lo", "my", "th", "zh"})
# spaCy's code for language-independent rules, used for example for Latin words in Chinese texts
NEUTRAL_LANGUAGE = "xx"
LONGEST_NGRAM = 3  # characters
#: In n-grams that cross the edges of runs, a stand-in replaces each character outside of runs: its code plus this
#: number, in planes of Unicode without characters. So a word never equals such an n-gram.
STAND_IN = 0x40000
_BEYOND = 0x60000
#: N-grams cross the edges of runs in texts where at least one of this many characters (without white space) is a Han
#: character or kana. In Thai, whose spaces separate phrases, such n-grams did not help.
LEAST_SHARE = 4

# The letters and marks, without digits and punctuation. The list is fixed, because Python's Unicode tables grow with
# each version, but a model must read a text as it did in training.
_THAI = ((0x0E01, 0x0E3A), (0x0E40, 0x0E4E))
_LAO = ((0x0E81, 0x0EBD), (0x0EC0, 0x0ECE), (0x0EDC, 0x0EDF))
_MYANMAR = ((0x1000, 0x103F), (0x1050, 0x108F), (0x109A, 0x109D), (0xA9E0, 0xA9EF), (0xA9FA, 0xA9FE), (0xAA60, 0xAA76))
_KHMER = ((0x1780, 0x17D3), (0x17D7, 0x17D7), (0x17DC, 0x17DD))
# Including signs that repeat or lengthen the preceding character.
_KANA = (
    *((0x3041, 0x3096), (0x3099, 0x309A), (0x309D, 0x309F), (0x30A1, 0x30FA), (0x30FC, 0x30FF)),
    *((0x31F0, 0x31FF), (0xFF66, 0xFF9F), (0x1B000, 0x1B16F)),
)
_HAN = ((0x3005, 0x3007), (0x303B, 0x303B), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x323AF))
#: The first and last character of each range of characters that runs consist of, in order.
UNSPACED_RANGES = tuple(sorted((*_THAI, *_LAO, *_MYANMAR, *_KHMER, *_KANA, *_HAN)))
HAN_AND_KANA = (*_HAN, *_KANA)
_HAN_PER_KANA = 10  # minimum ratio of Han characters to kana in Chinese; Japanese has more kana


def _characters(ranges: Iterable[tuple[int, int]]) -> str:
    return "[{}]".format("".join(f"{chr(first)}-{chr(last)}" for first, last in ranges))


_STAND_IN_RANGE = (STAND_IN, _BEYOND - 1)
# Compiled at their first use, which takes milliseconds: most commands see no such texts.
_RUN = cache(lambda: re.compile(_characters((*UNSPACED_RANGES, _STAND_IN_RANGE)) + "+"))
_STAND_INS = cache(lambda: re.compile(_characters([_STAND_IN_RANGE])))
_HAN_CHARACTERS = cache(lambda: re.compile(_characters(_HAN)))
_KANA_CHARACTERS = cache(lambda: re.compile(_characters(_KANA)))
_SPACE = "␣"  # for people


def is_unspaced(term: str) -> bool:
    """Return whether a term is an n-gram from a script without spaces between words, such as Chinese.

    It is if it begins with a character of such a script, or with a stand-in. A stand-in takes the place of any other
    character, such as a space or a Latin letter, in an n-gram of characters: see `STAND_IN`.
    """
    return not term.isascii() and _RUN().match(term) is not None


def are_letters(token: str) -> bool:
    """Return whether a token consists of letters, and marks on them, such as the vowels of Hindi."""
    if token.isascii() or token.isalpha():
        return token.isalpha()
    return token[0].isalpha() and all(character.isalpha() or category(character)[0] == "M" for character in token)


def has_stand_in(term: str) -> bool:
    """Return whether a term contains a stand-in: a private code in place of a character such as a space or a digit."""
    return not term.isascii() and _STAND_INS().search(term) is not None


def shown(term: str) -> str:
    """Return a term for people to read: stand-ins (see `STAND_IN`) become the characters that they had replaced.

    A space that a stand-in had replaced becomes "␣"; other spaces, as between the words of an n-gram, stay.
    """
    if term.isascii():
        return term
    return _STAND_INS().sub(lambda match: chr(ord(match[0]) - STAND_IN).replace(" ", _SPACE), term)


def are_chinese(texts: Iterable[str]) -> bool:
    """Return whether texts, taken together, are Chinese: many of the characters are Han, and hardly any are kana."""
    n_han = n_kana = n = 0
    for text in texts:
        n_han += len(_HAN_CHARACTERS().findall(text))
        n_kana += len(_KANA_CHARACTERS().findall(text))
        n += sum(map(len, text.split()))
    return 0 < n <= LEAST_SHARE * n_han and n_han >= _HAN_PER_KANA * n_kana


def places_in_run(n: int) -> list[tuple[int, int]]:
    """Return the places (start, end) of the terms of a run: its 1-, 2- and 3-grams, ordered by their start.

    A run is a sequence of `n` characters of a script without spaces between words, such as Chinese.
    """
    sizes = range(1, LONGEST_NGRAM + 1)
    return [(start, start + size) for start in range(n) for size in sizes if start + size <= n]


def are_unspaced(terms: Iterable[str]) -> list[bool]:
    """Return `is_unspaced` of each term in a list; terms of ASCII characters are not checked."""
    return [not term.isascii() and is_unspaced(term) for term in terms]


def language_of_words(lang: str, segmenter: str) -> str:
    """Return the spaCy language that tokenizes the text outside runs; raise TextcatError for an unknown segmenter.

    A run is a sequence of characters of a script without spaces between words. If the segmenter cuts runs into n-grams,
    and `lang` is written in such a script, the words around the runs are of other languages, and "xx" is returned.
    """
    if segmenter not in SEGMENTERS:
        raise TextcatError(f"There is no segmenter {segmenter!r}: give {' or '.join(map(repr, SEGMENTERS))}.")
    return NEUTRAL_LANGUAGE if segmenter != SPACY and lang in UNSPACED_LANGUAGES else lang
