"""Hold and check the settings of `Tokens` and `TfIdf`, which are [tokens] and [features] of recipes."""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any

import numpy as np

from textcat.base.errors import TextcatError
from textcat.base.parameters import is_whole
from textcat.features.scripts import NGRAMS, language_of_words

NFC, AS_IT_IS = "nfc", "none"
NORMAL_FORMS = NFC, AS_IT_IS
_MAX_INT = 2**31 - 1


class FeatureError(TextcatError, ValueError):
    """Raised for wrong documents, or wrong settings of features."""


@dataclass
class TokenSettings:
    """The settings of `Tokens`, which explains each of them."""

    lang: str = "en"
    _: KW_ONLY
    lowercase: bool = True
    alphabetic: bool = True
    alphanumeric: bool = False
    remove_stop_words: bool = True
    singularize: bool = False
    segmenter: str = NGRAMS
    normal_form: str = NFC
    memo_bytes: int = 256 * 2**20


@dataclass(kw_only=True)
class FeatureSettings:
    """The settings of `TfIdf`, which explains each of them; settings of tokens are in `TokenSettings`."""

    zones: Mapping[str, float] | None = None
    zone_terms: bool | Sequence[str] = False
    ngrams: int = 1
    ngram_min_df: int = 2
    ngram_weight: float = 1.0
    chars: int = 0
    char_min: int = 0
    char_weight: float = 1.0
    char_max_df: float = 1.0
    min_df: int = 1
    max_features: int | None = None
    weighting: str = "tfidf"
    sublinear_tf: bool = False
    k1: float = 1.2
    b: float = 0.75
    idf: str = "log"
    dtype: str = "float32"

    @property
    def char_lengths(self) -> range:
        """The lengths of the n-grams of characters, in ascending order; empty if there are none."""
        return range(min(self.char_min or self.chars, self.chars), self.chars + 1) if self.chars else range(0)


def _is_positive(x: Any) -> bool:
    return isinstance(x, Real) and 0 < float(x) < math.inf


def _is_float(x: Any) -> bool:
    with suppress(TypeError):  # for a name that is not a numpy type
        return np.dtype(x) in (np.float32, np.float64)
    return False


# The check of each parameter, and the words for valid values.
_CHECKS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "zone_terms": (
        lambda x: isinstance(x, bool) or (isinstance(x, Sequence) and not isinstance(x, str)),
        "True, False, or a list of zones",
    ),
    "ngrams": (is_whole(1, 3), "1, 2 or 3"),
    "chars": (is_whole(0, _MAX_INT), "a whole number of characters, or 0 for none"),
    "char_min": (is_whole(0, _MAX_INT), "a whole number of characters, or 0"),
    "min_df": (is_whole(1, _MAX_INT), "a whole number of documents, at least 1"),
    "ngram_min_df": (is_whole(1, _MAX_INT), "a whole number of documents, at least 1"),
    "max_features": (is_whole(1, _MAX_INT, optional=True), "a whole number, at least 1, or None"),
    "weighting": (lambda x: x in ("tfidf", "bm25"), "'tfidf' or 'bm25'"),
    "idf": (lambda x: x in ("log", "smooth", "none"), "'log' or 'smooth' or 'none'"),
    "ngram_weight": (_is_positive, "a positive number"),
    "char_weight": (_is_positive, "a positive number"),
    "char_max_df": (lambda x: isinstance(x, Real) and 0 < float(x) <= 1, "a number above 0, at most 1"),
    "k1": (lambda x: isinstance(x, Real) and 0 <= float(x) < math.inf, "a number, at least 0"),
    "b": (lambda x: isinstance(x, Real) and 0 <= float(x) <= 1, "a number from 0 to 1"),
    "dtype": (_is_float, "numpy.float32 or numpy.float64"),
}


def check_tokens(settings: TokenSettings) -> None:
    """Raise TextcatError if a setting of `Tokens` is out of range."""
    language_of_words(settings.lang, settings.segmenter)
    if settings.normal_form not in NORMAL_FORMS:
        raise FeatureError(f"normal_form is {settings.normal_form!r}: give {' or '.join(map(repr, NORMAL_FORMS))}.")
    if settings.memo_bytes < 0:
        raise TextcatError(f"The memo_bytes of tokens cannot be {settings.memo_bytes}: give 0 or more.")


def check_settings(settings: Mapping[str, Any]) -> None:
    """Raise FeatureError if a setting of `TfIdf`, given by its name, is out of range or contradicts another one."""
    zones, zone_terms = settings["zones"], settings["zone_terms"]
    for zone, weight in (zones or {}).items():
        if not _is_positive(weight):
            raise FeatureError(f"The weight of zone {zone!r} is {weight!r}: give a positive number.")
    for name, (fits, what) in _CHECKS.items():
        if not fits(settings[name]):
            raise FeatureError(f"{name} is {settings[name]!r}: give {what}.")
    for zone in () if isinstance(zone_terms, bool) else zone_terms:
        if zones is not None and zone not in zones:
            raise FeatureError(f"zone_terms names zone {zone!r}, which zones leaves out: name it in both.")
    if settings["weighting"] == "bm25" and settings["sublinear_tf"]:
        raise FeatureError("sublinear_tf is True, and bm25 has its own way of counting: leave one of them out.")
