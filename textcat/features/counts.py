"""Counted documents ↔ what is kept of them: the counts of their terms, in an order that does not tell how they came."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from textcat.features.tokens import TermCounts

if TYPE_CHECKING:
    from textcat.features.tfidf import TfIdf, _CountedDocuments
    from textcat.features.zones import _Parts

#: The arrays that a file has, besides the lists of zones and terms.
ARRAYS = ("n_texts", "zone_of", "sizes", "ids", "counts", "ngrams", "chars")


class DocumentCounts(NamedTuple):
    """How often each term occurs in each text of documents, n-grams however rare.

    Zones, terms and n-grams are those that occur, in alphabetical order: so the counts of the same documents are the
    same, whatever was counted before or beside them. The terms of a text stand in the order that they were counted in,
    which decides on the last bits of its row where terms share a column.
    """

    zones: list[str]
    n_texts: np.ndarray  # of each document: shape (n_documents,), int64
    zone_of: np.ndarray  # of each text, its position in `zones`: shape (n_texts,), int64
    counts: TermCounts

    def __len__(self) -> int:
        return len(self.n_texts)

    @classmethod
    def _of(cls, parts: _Parts, counts: TermCounts, documents: np.ndarray) -> DocumentCounts:
        """Return what was counted of some documents, by their positions."""
        ends = np.append(parts.sources, -1)[parts.ends - 1] + 1  # the texts of documents follow each other
        ends = np.maximum.accumulate(np.where(np.diff(parts.ends, prepend=0) > 0, ends, 0), dtype=np.int64)
        n_texts = np.diff(ends, prepend=0)
        zones = sorted(set(parts.zones))
        place = dict(zip(zones, range(len(zones)), strict=True))
        zone_of = np.fromiter(map(place.__getitem__, parts.zones), np.int64, len(parts.zones))
        return cls(zones, n_texts, zone_of, counts).select(documents)

    def select(self, documents: np.ndarray) -> DocumentCounts:
        """Return the counts of some documents, by their positions, in that order; nothing of the others is left."""
        texts, n_texts = _stretches(self.n_texts, documents)
        entries, sizes = _stretches(np.diff(self.counts.ends, prepend=0), texts)
        used, zone_of = np.unique(self.zone_of[texts], return_inverse=True)
        ids, counts = self.counts.ids[entries], self.counts.counts[entries]
        chosen = self.counts._replace(ends=np.cumsum(sizes), ids=ids, counts=counts)
        return DocumentCounts([self.zones[i] for i in used.tolist()], n_texts, zone_of, _tidied(chosen))

    @classmethod
    def _joined(cls, parts: Sequence[DocumentCounts], documents: np.ndarray | None = None) -> DocumentCounts:
        """Return the counts of the documents of all parts, or of those chosen by their positions, in that order."""
        zones = sorted({zone for part in parts for zone in part.zones})
        place = dict(zip(zones, range(len(zones)), strict=True))
        zone_of = [np.array([place[zone] for zone in part.zones], np.int64)[part.zone_of] for part in parts]
        terms: list[str] = []
        columns: dict[str, list[np.ndarray]] = {name: [] for name in ("sizes", "ids", "counts", "ngrams", "chars")}
        n_ngrams = 0
        for part in parts:
            counts, n_terms = part.counts, len(terms)
            left, right = counts.ngrams.T
            left = np.where(left >= 0, left + n_terms, left - n_ngrams)
            columns["sizes"].append(np.diff(counts.ends, prepend=0))
            columns["ids"].append(np.where(counts.ids >= 0, counts.ids + n_terms, counts.ids - n_ngrams))
            columns["counts"].append(counts.counts)
            columns["ngrams"].append(np.column_stack([left, right + n_terms]))
            columns["chars"].append(counts.chars + n_terms)
            terms += counts.terms
            n_ngrams += len(counts.ngrams)
        sizes, ids, values, ngrams, chars = (np.concatenate(arrays) for arrays in columns.values())
        whole = TermCounts(np.cumsum(sizes), ids, values, terms, ngrams, chars)
        joined = cls(zones, np.concatenate([part.n_texts for part in parts]), np.concatenate(zone_of), whole)
        return joined.select(np.arange(len(joined)) if documents is None else documents)

    def of_use(self, features: TfIdf) -> _CountedDocuments:
        """Return the counts as `TfIdf.count` of the documents returns them, for features of the same settings."""
        names = [self.zones[i] for i in self.zone_of.tolist()]
        ends = np.cumsum([0, *self.n_texts]).tolist()
        parts = features._parts_of(tuple(names[start:end]) for start, end in pairwise(ends))
        arrays = {name: getattr(self.counts, name).copy() for name in ("ends", "ids", "counts")}
        return features._of_use(parts, self.counts._replace(**arrays))

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of a file, each in the smallest type that holds it."""
        counts = self.counts
        arrays = dict(zip(ARRAYS, (self.n_texts, self.zone_of, np.diff(counts.ends, prepend=0)), strict=False))
        arrays |= {"ids": counts.ids, "counts": counts.counts, "ngrams": counts.ngrams, "chars": counts.chars}
        return {name: _small(array) for name, array in arrays.items()}

    @classmethod
    def _from_arrays(cls, zones: list[str], terms: list[str], arrays: dict[str, np.ndarray]) -> DocumentCounts:
        """Return the counts of a file; ValueError if its arrays do not fit together."""
        n_texts, zone_of, sizes = (arrays[name].astype(np.int64) for name in ARRAYS[:3])
        ids, counts, ngrams, chars = (arrays[name].astype(np.int32) for name in ARRAYS[3:])
        shapes_fit = all(array.ndim == 1 for array in (n_texts, zone_of, sizes, ids, counts, chars))
        if not shapes_fit or ngrams.shape != (len(ngrams), 2):
            raise ValueError("arrays of counts have other shapes")
        left, right = ngrams.T
        pairs = int((left >= 0).sum())
        fits = (
            (n_texts.sum(), sizes.sum(), len(counts)) == (len(zone_of), len(ids), len(ids))
            and len(sizes) == len(zone_of)
            and _within(zone_of, 0, len(zones))
            and _within(ids, -len(ngrams), len(terms))
            and _within(left, -pairs, len(terms))
            and (left[:pairs] >= 0).all()
            and _within(right, 0, len(terms))
            and _within(chars, 0, len(terms))
            and _within(counts, 1, np.inf)
            and _within(np.append(n_texts, sizes), 0, np.inf)
        )
        if not fits:
            raise ValueError("arrays of counts do not fit together")
        return cls(zones, n_texts, zone_of, TermCounts(np.cumsum(sizes), ids, counts, terms, ngrams, chars))


def _stretches(sizes: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of what is in the chosen ones of stretches that follow each other, and their sizes."""
    starts, taken = (np.cumsum(sizes) - sizes)[chosen], sizes[chosen]
    first = np.cumsum(taken) - taken
    return np.arange(taken.sum()) + np.repeat(starts - first, taken), taken


def _tidied(counts: TermCounts) -> TermCounts:
    """Return counts without terms and n-grams that do not occur; each is there once, in alphabetical order."""
    terms, (left, right) = counts.terms, counts.ngrams.T
    places = counts.ids + np.int32(len(left))  # n-grams from the last to the first, and behind them terms
    occurs = np.zeros(len(left) + len(terms), bool)
    occurs[places] = True
    has_ngram, has_term = occurs[: len(left)][::-1], occurs[len(left) :]
    has_ngram[~left[has_ngram & (left < 0)]] = True  # what a longer one begins with
    is_pair = has_ngram & (left >= 0)
    for used in (left[is_pair], right[has_ngram]):
        has_term[used] = True
    is_char = np.zeros(len(terms), bool)
    is_char[counts.chars] = True
    positions = np.flatnonzero(has_term)
    keys = [(terms[i], char) for i, char in zip(positions.tolist(), is_char[positions].tolist(), strict=True)]
    distinct = sorted(set(keys))  # a token may read like an n-gram of characters
    place = dict(zip(distinct, range(len(distinct)), strict=True))
    new_term, new_ngram = np.full(len(terms), -1, np.int64), np.full(len(left), -1, np.int64)
    new_term[positions] = np.fromiter(map(place.__getitem__, keys), np.int64, len(keys))
    pairs, new_ngram[is_pair] = _numbered(new_term[left[is_pair]] << 32 | new_term[right[is_pair]])
    is_longer = has_ngram & (left < 0)
    of_longer = new_ngram[~left[is_longer]] << 32 | new_term[right[is_longer]]
    longer, place_of = _numbered(of_longer)
    new_ngram[is_longer] = len(pairs) + place_of
    lefts = np.concatenate([pairs >> 32, ~(longer >> 32)])
    ngrams = np.column_stack([lefts, np.concatenate([pairs, longer]) & 0xFFFFFFFF]).astype(np.int32)
    new_ids = np.concatenate([~new_ngram[::-1], new_term]).astype(np.int32)[places]
    chars = np.array([i for i, (_, char) in enumerate(distinct) if char], np.int32)
    return TermCounts(counts.ends, new_ids, counts.counts, [term for term, _ in distinct], ngrams, chars)


def _numbered(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return different keys, ascending, and the place of each: as np.unique does, which takes several times longer."""
    ascending = np.sort(keys)
    distinct = ascending[np.diff(ascending, prepend=-1) != 0]
    return distinct, np.searchsorted(distinct, keys)


def _small(array: np.ndarray) -> np.ndarray:
    """Return whole numbers in the smallest type that holds them."""
    lowest, highest = (int(array.min()), int(array.max())) if array.size else (0, 0)
    return array.astype(np.promote_types(np.min_scalar_type(lowest), np.min_scalar_type(highest)))


def _within(array: np.ndarray, lowest: float, above: float) -> bool:
    return not array.size or bool(array.min() >= lowest and array.max() < above)
