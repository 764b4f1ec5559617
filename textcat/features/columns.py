"""Convert terms and n-grams to the names of their columns, such as "title:word", and to the columns' numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import combinations, count, pairwise
from typing import Any

import numpy as np

from textcat.features._token_cache import read_pairs
from textcat.features.tokens import NO_IDS, OTHER, KnownTerms, TermCounts


class NamedColumns:
    """The names of columns, in order, with look-up by name.

    The dict is made at the first look-up, because fitting and opening features often need none.
    """

    def __init__(self, names: list[str]):
        self.names = names

    @cached_property
    def column_of(self) -> dict[str, int]:
        """The number of the column of each name, as a dict in the order of the columns."""
        return dict(zip(self.names, range(len(self.names)), strict=True))

    def __getstate__(self) -> dict[str, Any]:
        return {"names": self.names}


class TermColumns:
    """Look up the columns of terms and n-grams by the ids that `Tokens` gave them, and cache the results.

    The name of a term or n-gram decides its column: "word" or "word word" if all zones share it, "title:word" if it
    belongs to the zone title alone. `keys` holds earlier results, by the name of a zone with terms of its own, or ""
    for shared terms: an array with the column of each term, and one for n-grams; -1 stands for no column.
    """

    def __init__(self, terms: list[str], named: NamedColumns, keys: Any = None):
        self.terms, self._columns = terms, named
        self._keys: dict[str, tuple[np.ndarray, np.ndarray]] = keys or {}

    def of(self, spaces: Sequence[str], counts: TermCounts) -> tuple[np.ndarray, np.ndarray]:
        """Return two arrays of int32: the columns of all terms, and those of all n-grams; -1: no column.

        They have a row for each name in `spaces`, which is that of a zone with terms of its own, or "" for the terms
        that all zones share. The shapes are (n_spaces, n_terms) and (n_spaces, n_ngrams).
        """
        keys = [self._keys_of(space, counts) for space in spaces]
        return _stacked([terms for terms, _ in keys]), _stacked([ngrams for _, ngrams in keys])

    def _keys_of(self, space: str, counts: TermCounts) -> tuple[np.ndarray, np.ndarray]:
        terms, ngrams = self._keys.get(space, (NO_IDS, NO_IDS))
        if len(terms) < len(self.terms):
            names = feature_names(space, self.terms[len(terms) :])
            terms = np.concatenate([terms, self._named(names)])
        if len(ngrams) < len(counts.ngrams):
            names = feature_names(space, ngram_names(counts, np.arange(len(ngrams), len(counts.ngrams))))
            ngrams = np.concatenate([ngrams, self._named(names)])
        self._keys[space] = terms, ngrams
        return terms, ngrams

    def _named(self, names: Sequence[str]) -> np.ndarray:
        column_of = self._columns.column_of.get
        return np.array([column_of(name, -1) for name in names], np.int32)


def _stacked(rows: list[np.ndarray]) -> np.ndarray:
    if not rows:
        return np.zeros((0, 0), np.int32)
    shortest = min(map(len, rows))  # another thread may have extended the list of terms meanwhile
    return rows[0][None] if len(rows) == 1 else np.array([row[:shortest] for row in rows])


def feature_names(space: str, terms: Sequence[str]) -> Sequence[str]:
    """Return the names of the columns of terms or n-grams.

    If `space` is the name of a zone with terms of its own, such as "title", a column's name is "title:word"; if it is
    "", for terms that all zones share, it is "word".
    """
    return [f"{space}:{term}" for term in terms] if space else terms


def ngram_names(counts: TermCounts, ids: np.ndarray) -> list[str]:
    """Return the names of some n-grams, such as "word word"; `ids` are their positions in `counts.ngrams`."""
    terms = counts.terms
    left, right = counts.ngrams[ids].T
    pairs = counts.ngrams[~left[left < 0]]
    names = iter([f"{terms[first]} {terms[second]}" for first, second in zip(*pairs.T.tolist(), strict=True)])
    before = [terms[i] if i >= 0 else next(names) for i in left.tolist()]
    return [f"{first} {terms[last]}" for first, last in zip(before, right.tolist(), strict=True)]


def known_terms(names: Iterable[str], ngrams: int, *, zone_terms: bool) -> KnownTerms:
    """Return the terms and n-grams that may have one of the given columns; all others have no column.

    `ngrams` is the largest number of terms in an n-gram. A name of a column can be read in several ways: "a b" as a
    term or an n-gram, "title:word" as a term of a zone (if `zone_terms`), or as any term. All readings are returned,
    except those that contain OTHER, the term that stands for all unknown terms.
    """
    names = list(names)
    if ngrams > 1 and not zone_terms:  # most vocabularies have only words and pairs, for which this is faster
        with suppress(UnicodeEncodeError):  # for lone surrogates
            if (arrays := read_pairs(names)) is not None:
                return KnownTerms(*arrays)
    plain: list[str] = []
    ambiguous: list[str] = []
    for name in filter(None, names):
        (ambiguous if " " in name or (zone_terms and ":" in name) else plain).append(name)
    terms = dict(zip(dict.fromkeys(plain), count()))
    ids: dict[tuple[int, int], int] = {}
    for name in ambiguous:
        for parts in _readings(name, ngrams, zone_terms):
            positions = [terms.setdefault(part, len(terms)) for part in parts]
            left = positions[0]
            for right in positions[1:]:
                left = ~ids.setdefault((left, right), len(ids))
    other = terms.setdefault(OTHER, len(terms))
    ids[other, other] = len(ids)
    return KnownTerms(list(terms), np.array(list(ids), np.int32))


def _readings(name: str, ngrams: int, zone_terms: bool) -> Iterator[list[str]]:
    """Yield each way to split a column's name into a list of 1 to `ngrams` terms.

    A space may end a term. If `zone_terms` is True, a colon may end the name of a zone, which is then left out of the
    list.
    """
    starts = [0, *(i + 1 for i, character in enumerate(name) if zone_terms and character == ":")]
    for start in starts:
        spaces = [i for i in range(start, len(name)) if name[i] == " "]
        for n in range(min(ngrams, len(spaces) + 1)):
            for cuts in combinations(spaces, n):
                edges = [start - 1, *cuts, len(name)]
                parts = [name[left + 1 : right] for left, right in pairwise(edges)]
                if all(parts) and OTHER not in parts:
                    yield parts
