"""Find words in a text: their letters and digits, with the marks on them, such as the vowels of Hindi."""

import re
from unicodedata import category

from textcat.base.normal_forms import normalised

_BETWEEN = re.compile(r"[\W_]+")
_SPACES = re.compile(" +")


def with_spaces(text: str) -> str:
    """Return a text in normal form, with a single space in place of all characters between words."""
    return _BETWEEN.sub(_marks_and_spaces, normalised(text)).strip()


def _marks_and_spaces(match: "re.Match[str]") -> str:
    marks = "".join(character if category(character)[0] == "M" else " " for character in match[0])
    return _SPACES.sub(" ", marks)
