"""Plant duplicates of four kinds among articles, and tell exactly which texts of a corpus repeat earlier ones."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from scipy import sparse

REPEATED = 0.5  # of the pairs of words of the shorter of two texts
RARE = 100  # a pair of words that so many texts have at most leads to texts that may be alike
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def exact(text: str, random_: random.Random, words: list[str]) -> str:
    """Return the text, in other lines and capitals."""
    return text.upper().replace(". ", ".\n")


def cut(text: str, random_: random.Random, words: list[str]) -> str:
    """Return three fifths of the text, in one piece."""
    parts = text.split()
    n = round(0.6 * len(parts))
    start = random_.randrange(len(parts) - n + 1)
    return " ".join(parts[start : start + n])


def reworded(text: str, random_: random.Random, words: list[str]) -> str:
    """Return the text with a fifth of its words replaced by words of other texts."""
    return " ".join(random_.choice(words) if random_.random() < 0.2 else word for word in text.split())


def misread(text: str, random_: random.Random, words: list[str]) -> str:
    """Return the text with one in twenty characters, spaces included, replaced, left out or followed by another."""
    characters = list(text)
    for i, character in enumerate(characters):
        if random_.random() < 0.05:
            letter = random_.choice(LETTERS)
            characters[i] = random_.choice((letter, "", character + letter))
    return "".join(characters)


KINDS: dict[str, tuple[Callable[[str, random.Random, list[str]], str], float]] = {
    "exact": (exact, 0.99),
    "cut to 60 %": (cut, 0.95),
    "a fifth of the words replaced": (reworded, 0.9),
    "5 % of the characters misread": (misread, 0.8),
}


def planted(texts: list[str], seed: int = 0, every: int = 25) -> list[tuple[str, int, str]]:
    """Return texts and duplicates of some: each with the position of its original in `texts`, and its kind or "".

    One text in `every` is duplicated, by the kinds in turn; a duplicate stands at a random place after its original.
    """
    random_ = random.Random(seed)
    words = [word for text in texts[:2000] for word in text.split()]
    entries = [(float(i), text, i, "") for i, text in enumerate(texts)]
    for number, i in enumerate(range(0, len(texts), every)):
        kind = [*KINDS][number % len(KINDS)]
        changed = KINDS[kind][0](texts[i], random_, words)
        entries.append((random_.uniform(i + 0.5, len(texts)), changed, i, kind))
    return [entry[1:] for entry in sorted(entries, key=lambda entry: entry[0])]


def pairs_of_words(text: str) -> set[tuple[str, str]]:
    """Return the pairs of consecutive words."""
    return {*pairwise(re.findall(r"\w+", text.lower()))}


def share(one: set[tuple[str, str]], other: set[tuple[str, str]]) -> float:
    """Return the share of the smaller set that is in the larger one."""
    return len(one & other) / max(min(len(one), len(other)), 1)


def repeated(texts: list[str]) -> set[int]:
    """Return the positions of texts that repeat an earlier one: half of the pairs of words of the shorter are in both.

    The pairs are counted, by no sketch, so that the search is not judged by itself. Counted are all texts that have a
    fiftieth of their pairs in common even without those that more than 100 texts have.
    """
    pairs, ids = [pairs_of_words(text) for text in texts], dict[tuple[str, str], int]()
    columns = np.array([ids.setdefault(pair, len(ids)) for of_text in pairs for pair in of_text], np.int64)
    ends, n_texts = np.cumsum([0, *map(len, pairs)]), np.bincount(columns, minlength=len(ids))
    matrix = sparse.csr_matrix((np.ones(len(columns), np.int32), columns, ends), shape=(len(texts), len(ids)))
    matrix, sizes, found = matrix[:, (n_texts > 1) & (n_texts <= RARE)], np.diff(ends), set[int]()
    for first in range(0, len(texts), 1000):
        common = sparse.tril(matrix[first : first + 1000] @ matrix.T, k=first - 1).tocoo()
        later, earlier = common.row + first, common.col
        alike = common.data >= np.maximum(np.minimum(sizes[later], sizes[earlier]) / 50, 1)
        for i, j in zip(later[alike].tolist(), earlier[alike].tolist(), strict=True):
            if i not in found and share(pairs[i], pairs[j]) >= REPEATED:
                found.add(i)
    return found
