"""Give terms and n-grams their columns: by name in a vocabulary, or by hash."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, count, pairwise
from typing import Protocol

import numpy as np

from textcat.features.reader import OTHER, Known
from textcat.features.tokens import TermCounts

NONE = np.zeros(0, np.int32)


class Keys(Protocol):
    """How terms and n-grams find their columns: a key & mask is a column, or -1."""

    mask: int

    def of_terms(self, space: str, terms: Sequence[str]) -> np.ndarray:
        """Give the keys of terms: shape (n,), int32."""

    def of_ngrams(self, space: str, counts: TermCounts, terms: np.ndarray, before: np.ndarray) -> np.ndarray:
        """Give the keys of the last n-grams, given those of all terms and of the n-grams before."""


class Named:
    """Columns by name: "word", "word word", and in a space of its own "title:word".

    Parameters
    ----------
    vocabulary : dict of str to int
        The column of each name.
    """

    mask = -1

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        self._vocabulary = vocabulary

    def of_terms(self, space: str, terms: Sequence[str]) -> np.ndarray:
        """Look the names of terms up; -1 for none."""
        return self._columns(names_of(space, terms))

    def of_ngrams(self, space: str, counts: TermCounts, terms: np.ndarray, before: np.ndarray) -> np.ndarray:
        """Look the names of n-grams up; -1 for none."""
        return self._columns(names_of(space, ngram_names(counts, np.arange(len(before), len(counts.ngrams)))))

    def _columns(self, names: Sequence[str]) -> np.ndarray:
        column_of = self._vocabulary.get
        return np.array([column_of(name, -1) for name in names], np.int32)


class Hashed:
    """Columns by hash: the lowest `bits` bits of MurmurHash3 (32 bits, seed 0).

    That of a term is taken of its name in UTF-8, "word" or "title:word"; that of an n-gram of the four bytes, lowest
    first, of 31 times the hash of all but its last term plus the hash of the last one.

    Parameters
    ----------
    bits : int
    """

    def __init__(self, bits: int) -> None:
        self.mask = 2**bits - 1

    def of_terms(self, space: str, terms: Sequence[str]) -> np.ndarray:
        """Hash the names of terms."""
        from sklearn.utils import murmurhash3_32  # here, for its import takes a second and 100 MB

        # spaCy has no lone surrogates, but a token that is a whole chunk never saw it.
        return np.array([murmurhash3_32(n.encode("utf-8", "surrogatepass")) for n in names_of(space, terms)], np.int32)

    def of_ngrams(self, space: str, counts: TermCounts, terms: np.ndarray, before: np.ndarray) -> np.ndarray:
        """Hash n-grams by the hashes of their parts."""
        from sklearn.utils import murmurhash3_32

        left, right = counts.ngrams[len(before) :].T
        keys = np.concatenate([before, np.zeros(len(left), np.int32)])
        fresh = keys[len(before) :]
        pair = left >= 0
        fresh[pair] = murmurhash3_32(np.int32(31) * terms[left[pair]] + terms[right[pair]])
        fresh[~pair] = murmurhash3_32(np.int32(31) * keys[~left[~pair]] + terms[right[~pair]])
        return fresh


class Columns:
    """The columns of terms and n-grams by the ids that `Tokens` gave them: each is looked up once.

    Parameters
    ----------
    terms : list of str
        That of the `TermCounts` the ids are of.
    keys : Keys
    known : dict, optional
        Of each space, the keys of terms and of n-grams that are known from the start.
    """

    def __init__(self, terms: list[str], keys: Keys, known: dict[str, tuple[np.ndarray, np.ndarray]] | None = None):
        self.terms = terms
        self._keys = keys
        self._known = known or {}

    def of(self, spaces: Sequence[str], counts: TermCounts) -> tuple[np.ndarray, np.ndarray]:
        """Give int32 arrays of shape (n_spaces, n_terms) and (n_spaces, n_ngrams): the column, or -1."""
        found = [self._of_space(space, counts) for space in spaces]
        return self._together([terms for terms, _ in found]), self._together([ngrams for _, ngrams in found])

    def _of_space(self, space: str, counts: TermCounts) -> tuple[np.ndarray, np.ndarray]:
        terms, ngrams = self._known.get(space, (NONE, NONE))
        if len(terms) < len(self.terms):
            terms = np.concatenate([terms, self._keys.of_terms(space, self.terms[len(terms) :])])
        if len(ngrams) < len(counts.ngrams):
            ngrams = np.concatenate([ngrams, self._keys.of_ngrams(space, counts, terms, ngrams)])
        self._known[space] = terms, ngrams
        return terms, ngrams

    def _together(self, keys: list[np.ndarray]) -> np.ndarray:
        if not keys:
            return np.zeros((0, 0), np.int32)
        shortest = min(map(len, keys))  # another thread may have lengthened the list of terms meanwhile
        rows = keys[0][None] if len(keys) == 1 else np.array([row[:shortest] for row in keys])
        return rows if self._keys.mask == -1 else rows & np.int32(self._keys.mask)


def names_of(space: str, terms: Sequence[str]) -> Sequence[str]:
    """Give the names that terms or n-grams have in a space: "title:word", or "word" in the shared one, ""."""
    return [f"{space}:{term}" for term in terms] if space else terms


def ngram_names(counts: TermCounts, numbers: np.ndarray) -> list[str]:
    """Name n-grams by their numbers: "word word", "word word word"."""
    terms = counts.terms
    left, right = counts.ngrams[numbers].T
    pairs = counts.ngrams[~left[left < 0]]
    names = iter([f"{terms[first]} {terms[second]}" for first, second in pairs.tolist()])
    before = [terms[i] if i >= 0 else next(names) for i in left.tolist()]
    return [f"{first} {terms[last]}" for first, last in zip(before, right.tolist(), strict=True)]


def known_by(names: Iterable[str], ngrams: int, *, apart: bool) -> Known:
    """Give the terms and n-grams that names may be names of: all others have no column.

    A name can be read in several ways: the term "a b" or an n-gram, "title:word" of a space or as a shared term. Each
    counts, since one too many does no harm. None can be read as OTHER.

    Parameters
    ----------
    names : iterable of str
    ngrams : {1, 2, 3}
        The longest.
    apart : bool
        Whether names may begin with that of a space.
    """
    single: dict[str, None] = {}  # names that can be read as a term only
    others = []
    for name in names:
        if " " in name or (apart and ":" in name):
            others.append(name)
        elif name:
            single[name] = None
    terms = dict(zip(single, count()))
    numbers: dict[tuple[int, int], int] = {}
    for name in others:
        for parts in _readings(name, ngrams, apart):
            places = [terms.setdefault(part, len(terms)) for part in parts]
            left = places[0]
            for right in places[1:]:
                left = ~numbers.setdefault((left, right), len(numbers))
    other = terms.setdefault(OTHER, len(terms))
    numbers[other, other] = len(numbers)
    return Known(list(terms), np.array(list(numbers), np.int32))


def _readings(name: str, ngrams: int, apart: bool) -> Iterator[list[str]]:
    """List the ways to read a name as up to so many terms."""
    starts = [0, *(i + 1 for i, character in enumerate(name) if apart and character == ":")]
    for start in starts:
        gaps = [i for i in range(start, len(name)) if name[i] == " "]
        for n in range(min(ngrams, len(gaps) + 1)):
            for cuts in combinations(gaps, n):
                edges = [start - 1, *cuts, len(name)]
                parts = [name[left + 1 : right] for left, right in pairwise(edges)]
                if all(parts) and OTHER not in parts:
                    yield parts
