"""Get, set and check the settings of `Tokens` and `TfIdf`, as scikit-learn does, but without importing it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np

from textcat.base.errors import TextcatError

NFC, AS_IT_IS = "nfc", "none"
NORMAL_FORMS = NFC, AS_IT_IS
_MAX_INT = 2**31 - 1

_Self = TypeVar("_Self", bound="Parameters")


class FeatureError(TextcatError, ValueError):
    """Report wrong documents, or wrong settings of features, from which no rows can be made."""


class Parameters:
    """Add scikit-learn's `get_params` and `set_params` to a dataclass whose fields are its parameters."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name.

        If `deep` is True, the parameters of a parameter are returned, too, under names such as "tokens__lang".
        """
        parameters = {name: getattr(self, name) for name in _defaults(self)}
        for name, value in list(parameters.items()) if deep else ():
            if hasattr(value, "get_params") and not isinstance(value, type):
                parameters |= {f"{name}__{inner}": setting for inner, setting in value.get_params().items()}
        return parameters

    def set_params(self: _Self, **parameters: Any) -> _Self:
        """Change parameters by name, and return the object.

        As in scikit-learn, `tokens__lang` is the parameter `lang` of the parameter `tokens`.
        """
        names = _defaults(self)
        for name, value in parameters.items():
            outer, _, inner = name.partition("__")
            if outer not in names:
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(names)}.")
            if inner:
                getattr(self, outer).set_params(**{inner: value})
            else:
                setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults, parameters = _defaults(self), self.get_params(deep=False)
        changed = [f"{name}={value!r}" for name, value in parameters.items() if value != defaults[name]]
        return f"{type(self).__name__}({', '.join(changed)})"


def _defaults(parameters: Any) -> dict[str, Any]:
    return {field.name: field.default for field in fields(parameters)}


def _whole(least: int, most: int = _MAX_INT, *, optional: bool = False) -> Callable[[Any], bool]:
    return lambda n: (
        optional if n is None else isinstance(n, Integral) and not isinstance(n, bool) and least <= int(n) <= most
    )


def _is_positive(x: Any) -> bool:
    return isinstance(x, Real) and 0 < float(x) < math.inf


def _is_float(x: Any) -> bool:
    with suppress(TypeError):  # numpy's, of a type that there is not
        return np.dtype(x) in (np.float32, np.float64)
    return False


# What each parameter may be, and how to say so.
_CHECKS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "zone_terms": (
        lambda x: isinstance(x, bool) or (isinstance(x, Sequence) and not isinstance(x, str)),
        "True, False, or a list of zones",
    ),
    "ngrams": (_whole(1, 3), "1, 2 or 3"),
    "chars": (_whole(0), "a whole number of characters, or 0 for none"),
    "min_df": (_whole(1), "a whole number of documents, at least 1"),
    "ngram_min_df": (_whole(1), "a whole number of documents, at least 1"),
    "max_features": (_whole(1, optional=True), "a whole number, at least 1, or None"),
    "weighting": (lambda x: x in ("tfidf", "bm25"), "'tfidf' or 'bm25'"),
    "idf": (lambda x: x in ("log", "smooth", "none"), "'log' or 'smooth' or 'none'"),
    "ngram_weight": (_is_positive, "a positive number"),
    "char_weight": (_is_positive, "a positive number"),
    "char_max_df": (lambda x: isinstance(x, Real) and 0 < float(x) <= 1, "a number above 0, at most 1"),
    "k1": (lambda x: isinstance(x, Real) and 0 <= float(x) < math.inf, "a number, at least 0"),
    "b": (lambda x: isinstance(x, Real) and 0 <= float(x) <= 1, "a number from 0 to 1"),
    "dtype": (_is_float, "numpy.float32 or numpy.float64"),
}


def check_normal_form(form: str) -> None:
    """Raise FeatureError if there is no such normal form."""
    if form not in NORMAL_FORMS:
        raise FeatureError(f"normal_form is {form!r}: give {' or '.join(map(repr, NORMAL_FORMS))}.")


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
