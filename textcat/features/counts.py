"""Store the term counts of documents, select and join stored counts, and make features of them.

Stored counts do not depend on other documents counted before or at the same time.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from textcat.features.tokens import NO_IDS, NO_NGRAMS, TermCounts

if TYPE_CHECKING:
    from textcat.features.fitting import CountedDocuments
    from textcat.features.tfidf import TfIdf
    from textcat.features.zones import TextParts

#: The arrays of stored counts; the lists of zones and terms are stored separately.
ARRAYS = ("n_texts", "zone_of", "sizes", "ids", "counts", "ngrams", "chars")


class StoredCounts(NamedTuple):
    """The term counts of documents, as stored in updatable models, and in pools until all documents are read.

    The counts of a model have all n-grams. They list only zones, terms and n-grams that occur, in alphabetical order,
    so that the same documents always have the same counts. The terms of a text are in the order in which they were
    counted, because the last bits of the text's row depend on this order where terms share a column.
    """

    zones: list[str]  # the names of the zones
    n_texts: np.ndarray  # the number of texts of each document: shape (n_documents,), int64
    zone_of: np.ndarray  # the position in `zones` of each text's zone: shape (n_texts,), int64
    counts: TermCounts

    def __len__(self) -> int:
        return len(self.n_texts)

    @classmethod
    def of_batch(cls, parts: TextParts, counts: TermCounts) -> StoredCounts:
        """Return the counts of all documents of a batch, without n-grams; terms are in the order of `counts.terms`.

        A text's terms must count either for its zone alone or for all zones together, not for both. The result depends
        only on these documents, and on the order in which their terms were first counted.
        """
        used = np.zeros(len(counts.terms), np.bool_)
        used[counts.ids] = True
        ids = (np.cumsum(used, dtype=np.int32) - 1)[counts.ids]
        terms = [counts.terms[i] for i in np.flatnonzero(used).tolist()]
        zones = list(dict.fromkeys(parts.zones))
        position_of = dict(zip(zones, range(len(zones)), strict=True))
        zone_of = np.array([position_of[zone] for zone in parts.zones], np.int64)
        batch = TermCounts(counts.ends, ids, counts.counts, terms, NO_NGRAMS, NO_IDS)
        return cls(zones, np.diff(parts.ends, prepend=0), zone_of, batch)

    @classmethod
    def of_documents(cls, parts: TextParts, counts: TermCounts, documents: np.ndarray) -> StoredCounts:
        """Return the counts of some documents, given their positions among all documents of `parts` and `counts`."""
        ends = np.append(parts.sources, -1)[parts.ends - 1] + 1  # texts of a document are consecutive
        ends = np.maximum.accumulate(np.where(np.diff(parts.ends, prepend=0) > 0, ends, 0), dtype=np.int64)
        n_texts = np.diff(ends, prepend=0)
        zones = sorted(set(parts.zones))
        position_of = dict(zip(zones, range(len(zones)), strict=True))
        zone_of = np.fromiter(map(position_of.__getitem__, parts.zones), np.int64, len(parts.zones))
        return cls(zones, n_texts, zone_of, counts).select(documents)

    def select(self, documents: np.ndarray) -> StoredCounts:
        """Return the counts of the documents at the given positions, in this order; unused terms are left out."""
        texts, n_texts = _section_positions(self.n_texts, documents)
        entries, sizes = _section_positions(np.diff(self.counts.ends, prepend=0), texts)
        used, zone_of = np.unique(self.zone_of[texts], return_inverse=True)
        names = [self.zones[i] for i in used.tolist()]
        zones = sorted(names)
        zone_of = np.array([zones.index(name) for name in names], np.int64)[zone_of]
        ids, counts = self.counts.ids[entries], self.counts.counts[entries]
        chosen = self.counts._replace(ends=np.cumsum(sizes), ids=ids, counts=counts)
        return StoredCounts(zones, n_texts, zone_of, _tidy(chosen))

    def extended(self, added: StoredCounts) -> StoredCounts:
        """Return the counts of these documents, followed by those of the added documents.

        New zones and terms come after the earlier ones.
        """
        zones = [*self.zones, *(zone for zone in added.zones if zone not in self.zones)]
        zone_of = np.array([zones.index(zone) for zone in added.zones], np.int64)[added.zone_of]
        ours, theirs = self.counts, added.counts
        (left, right), n_ngrams = theirs.ngrams.T, len(ours.ngrams)
        new_term, terms = _merged_terms(ours, theirs)
        new_ngram, ngram_parts = np.empty(len(left), np.int64), [ours.ngrams]
        for longer in (False, True):  # the first entry may begin a new pair
            ours_of_size, theirs_of_size = (np.flatnonzero((x < 0) == longer) for x in (ours.ngrams[:, 0], left))
            lefts = ~new_ngram[~left[theirs_of_size]] if longer else new_term[left[theirs_of_size]]
            ngrams = np.column_stack([lefts, new_term[right[theirs_of_size]]])
            keys, our_keys = _keys_of(ngrams), _keys_of(ours.ngrams[ours_of_size])  # the latter are ascending
            positions = np.searchsorted(our_keys, keys)
            is_new = np.append(our_keys, -1)[positions] != keys
            new_ngram[theirs_of_size] = np.append(ours_of_size, -1)[positions]
            new_ngram[theirs_of_size[is_new]] = n_ngrams + np.arange(is_new.sum())
            ngram_parts.append(ngrams[is_new])
            n_ngrams += len(ngram_parts[-1])
        ids = np.concatenate([~new_ngram[::-1], new_term])[theirs.ids + len(left)]
        counts = TermCounts(
            np.append(ours.ends, theirs.ends + len(ours.ids)),
            np.append(ours.ids, ids).astype(np.int32),
            np.append(ours.counts, theirs.counts),
            terms,
            np.concatenate(ngram_parts).astype(np.int32),
            np.union1d(ours.chars, new_term[theirs.chars]).astype(np.int32),
        )
        return StoredCounts(zones, np.append(self.n_texts, added.n_texts), np.append(self.zone_of, zone_of), counts)

    def same_as(self, other: StoredCounts, *, in_zones: bool) -> np.ndarray:
        """Return whether each document has the same counts as the one at its position in `other`: shape (n,), bool.

        With `in_zones` False, only the terms of a whole document are compared, without n-grams.
        """
        both, n = self.extended(other), len(self)  # both then number zones and terms alike
        sizes = np.diff(both.counts.ends, prepend=0)
        n_terms = np.diff(np.append(0, np.cumsum(sizes))[np.append(0, np.cumsum(both.n_texts))])
        ends_of_texts, ends_of_terms = (np.cumsum(numbers)[:-1] for numbers in (both.n_texts, n_terms))
        ids, counts = (np.split(array, ends_of_terms) for array in (both.counts.ids, both.counts.counts))
        columns = [ids, counts, *(np.split(array, ends_of_texts) for array in (both.zone_of, sizes))]
        if not in_zones:
            # n-grams have negative ids
            is_word = np.append(~_is_char(both.counts), np.zeros(len(both.counts.ngrams), bool))
            columns = [[np.sort(terms[is_word[terms]]) for terms in map(np.repeat, ids, counts)]]
        return np.array([all(np.array_equal(c[i], c[n + i]) for c in columns) for i in range(n)], bool)

    def counted_for(self, features: TfIdf) -> CountedDocuments:
        """Return the counts in the form in which `features.count` would return them for the documents.

        The features must have the settings by which the documents were counted.
        """
        names = [self.zones[i] for i in self.zone_of.tolist()]
        ends = np.cumsum([0, *self.n_texts]).tolist()
        parts = features.parts_of_zones(tuple(names[start:end]) for start, end in pairwise(ends))
        arrays = {name: getattr(self.counts, name).copy() for name in ("ends", "ids", "counts")}
        return features.drop_rare_ngrams(parts, self.counts._replace(**arrays))

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays to write to a file, by name, each in the smallest integer type that holds its values."""
        counts = self.counts
        arrays = dict(zip(ARRAYS, (self.n_texts, self.zone_of, np.diff(counts.ends, prepend=0)), strict=False))
        arrays |= {"ids": counts.ids, "counts": counts.counts, "ngrams": counts.ngrams, "chars": counts.chars}
        return {name: smallest_type(array) for name, array in arrays.items()}

    @classmethod
    def from_arrays(cls, zones: list[str], terms: list[str], arrays: dict[str, np.ndarray]) -> StoredCounts:
        """Return the counts whose `arrays` were stored; raise ValueError if the arrays do not fit together."""
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


def _section_positions(sizes: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of all entries of the chosen sections of an array, and the sizes of these sections.

    The array is divided into sections that follow each other, of the given `sizes`; `chosen` has the numbers of the
    sections, from 0.
    """
    starts, taken = (np.cumsum(sizes) - sizes)[chosen], sizes[chosen]
    first = np.cumsum(taken) - taken
    return np.arange(taken.sum()) + np.repeat(starts - first, taken), taken


def _merged_terms(ours: TermCounts, theirs: TermCounts) -> tuple[np.ndarray, list[str]]:
    """Merge two lists of terms; return the position of each term of `theirs` in the merged list, and this list.

    The merged list has the terms of `ours`, followed by those terms of `theirs` that are new.
    """
    has_chars = len(ours.chars) or len(theirs.chars)  # a token may look like a character n-gram
    our_keys, their_keys = (
        [*zip(side.terms, _is_char(side).tolist(), strict=True)] if has_chars else side.terms for side in (ours, theirs)
    )
    position_of: dict[Any, int] = dict(zip(our_keys, range(len(our_keys)), strict=True))
    positions = np.array([position_of.setdefault(key, len(position_of)) for key in their_keys], np.int64)
    return positions, [*ours.terms, *(theirs.terms[i] for i in np.flatnonzero(positions >= len(our_keys)).tolist())]


def _is_char(counts: TermCounts) -> np.ndarray:
    """Return a bool array over the terms: whether each is an n-gram of characters."""
    is_char = np.zeros(len(counts.terms), bool)
    is_char[counts.chars] = True
    return is_char


def _keys_of(ngrams: np.ndarray) -> np.ndarray:
    """Return a number for each n-gram, the same only for equal n-grams; all n-grams must have equally many terms."""
    left, right = ngrams.T.astype(np.int64)
    return np.where(left < 0, ~left, left) << 32 | right


def _tidy(counts: TermCounts) -> TermCounts:
    """Return counts with only the terms and n-grams that occur, each once, in alphabetical order."""
    terms, (left, right) = counts.terms, counts.ngrams.T
    positions = counts.ids + np.int32(len(left))  # n-grams from the last to the first, then terms
    occurs = np.zeros(len(left) + len(terms), bool)
    occurs[positions] = True
    has_ngram, has_term = occurs[: len(left)][::-1], occurs[len(left) :]
    has_ngram[~left[has_ngram & (left < 0)]] = True  # the beginning of a longer n-gram
    is_pair = has_ngram & (left >= 0)
    for used in (left[is_pair], right[has_ngram]):
        has_term[used] = True
    is_char, kept = _is_char(counts), np.flatnonzero(has_term)
    keys = [(terms[i], char) for i, char in zip(kept.tolist(), is_char[kept].tolist(), strict=True)]
    distinct = sorted(set(keys))  # a token may look like a character n-gram
    position_of = dict(zip(distinct, range(len(distinct)), strict=True))
    new_term, new_ngram = np.full(len(terms), -1, np.int64), np.full(len(left), -1, np.int64)
    new_term[kept] = np.fromiter(map(position_of.__getitem__, keys), np.int64, len(keys))
    pairs, new_ngram[is_pair] = _unique(new_term[left[is_pair]] << 32 | new_term[right[is_pair]])
    is_longer = has_ngram & (left < 0)
    of_longer = new_ngram[~left[is_longer]] << 32 | new_term[right[is_longer]]
    longer, place_of = _unique(of_longer)
    new_ngram[is_longer] = len(pairs) + place_of
    lefts = np.concatenate([pairs >> 32, ~(longer >> 32)])
    ngrams = np.column_stack([lefts, np.concatenate([pairs, longer]) & 0xFFFFFFFF]).astype(np.int32)
    new_ids = np.concatenate([~new_ngram[::-1], new_term]).astype(np.int32)[positions]
    chars = np.array([i for i, (_, char) in enumerate(distinct) if char], np.int32)
    return TermCounts(counts.ends, new_ids, counts.counts, [term for term, _ in distinct], ngrams, chars)


def _unique(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct keys in ascending order, and the position of each key among these: a faster `np.unique`."""
    ascending = np.sort(keys)
    distinct = ascending[np.diff(ascending, prepend=-1) != 0]
    return distinct, np.searchsorted(distinct, keys)


def smallest_type(array: np.ndarray) -> np.ndarray:
    """Return an array of integers, converted to the smallest integer type that holds them."""
    lowest, highest = (int(array.min()), int(array.max())) if array.size else (0, 0)
    return array.astype(np.promote_types(np.min_scalar_type(lowest), np.min_scalar_type(highest)))


def _within(array: np.ndarray, lowest: float, above: float) -> bool:
    return not array.size or bool(array.min() >= lowest and array.max() < above)
