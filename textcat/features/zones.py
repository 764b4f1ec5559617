"""Turn documents into the texts of their zones, and the terms of these into columns: by name, or by hash.

A part is a text whose terms belong to a space: to the shared one, or to that of its zone. A text may be several parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, combinations, count, pairwise
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from textcat.errors import TextcatError
from textcat.features._token_cache import read_pairs
from textcat.features.tokens import NO_IDS, OTHER, TermCounts, Vocabulary

_BODY = "body"
SHARED_SPACE = ""  # the space of terms that are no zone's own


class Zoned(Protocol):
    """A document in zones."""

    @property
    def zones(self) -> Mapping[str, str]:
        """The text of each zone by its name."""


Documents: TypeAlias = Iterable[str | Zoned]


class FeatureError(TextcatError, ValueError):
    """Documents or settings from which no rows can be made."""


class TextParts(NamedTuple):
    """The parts that the texts of documents' zones are."""

    zones: list[str]  # of each text
    sources: np.ndarray  # the text of each part, by its position: shape (n_parts,), int32
    spaces: np.ndarray  # the space of each part, by its position in `names`: shape (n_parts,), int32
    weights: np.ndarray  # of each part: shape (n_parts,), float64
    names: list[str]  # of the spaces: a zone that has terms of its own, or SHARED_SPACE
    ends: np.ndarray  # where the parts of each document end: shape (n_documents,), int64

    def arguments(self, counts: TermCounts, *more: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the first arguments of `document_frequencies`; with the counts themselves, of `rows`."""
        return self.ends, counts.ends, counts.ids, *more, self.sources, self.spaces

    def select(self, documents: np.ndarray) -> TextParts:
        """Return the parts of some documents only, given by their positions."""
        starts = np.concatenate([np.zeros(1, np.int64), self.ends[:-1]])[documents]
        sizes = self.ends[documents] - starts
        ends = np.cumsum(sizes)
        positions = np.arange(sizes.sum()) + np.repeat(starts - (ends - sizes), sizes)
        arrays = {name: getattr(self, name)[positions] for name in ("sources", "spaces", "weights")}
        return self._replace(ends=ends, **arrays)


class ZoneTexts:
    """The texts of documents' zones, as they come; then their parts, with the weights and spaces that `TfIdf` has."""

    def __init__(self, documents: Documents, zones: Mapping[str, float] | None, zone_terms: bool | Sequence[str]):
        self._documents, self._zones, self._zone_terms = documents, zones, zone_terms
        self._plans: list[_Plan] = []
        self._space_ids = {} if zone_terms is True else {SHARED_SPACE: 0}

    def __iter__(self) -> Iterator[str]:
        plan_of: dict[tuple[str, ...], _Plan] = {}
        for i, document in enumerate(self._documents):
            zones = zones_of_document(document, i)
            names = tuple(zones)
            plan = plan_of.get(names)
            if plan is None:
                plan = plan_of[names] = plan_texts(names, self._zones, self._zone_terms, self._space_ids)
            self._plans.append(plan)
            for zone in plan.zones:
                text = zones[zone]
                if not isinstance(text, str):
                    raise FeatureError(f"Zone {zone!r} of document {i} is {text!r:.60}: give a string.")
                yield text

    def parts(self) -> TextParts:
        """Return the parts of the texts that have been given."""
        return self.parts_of(self._plans)

    def parts_of_names(self, documents: Iterable[tuple[str, ...]]) -> TextParts:
        """Return the parts of documents whose texts are not at hand, given the names of the zones that each has."""
        plan_of: dict[tuple[str, ...], _Plan] = {}
        plans = []
        for names in documents:
            if names not in plan_of:
                plan_of[names] = plan_texts(names, self._zones, self._zone_terms, self._space_ids)
            plans.append(plan_of[names])
        return self.parts_of(plans)

    def parts_of(self, plans: Sequence[_Plan]) -> TextParts:
        n_texts = np.fromiter((len(plan.zones) for plan in plans), np.int64, len(plans))
        n_parts = np.fromiter((len(plan.offsets) for plan in plans), np.int64, len(plans))
        offsets = np.fromiter(chain.from_iterable(plan.offsets for plan in plans), np.int64)
        return TextParts(
            [zone for plan in plans for zone in plan.zones],
            (np.repeat(np.cumsum(n_texts) - n_texts, n_parts) + offsets).astype(np.int32),
            np.fromiter(chain.from_iterable(plan.spaces for plan in plans), np.int32),
            np.fromiter(chain.from_iterable(plan.weights for plan in plans), np.float64),
            list(self._space_ids),
            np.cumsum(n_parts),
        )


class _Plan(NamedTuple):
    """The parts of documents with the same names of zones."""

    zones: tuple[str, ...]  # those that are read
    offsets: list[int]  # which of them each part is
    spaces: list[int]
    weights: list[float]


def plan_texts(
    names: tuple[str, ...],
    weights: Mapping[str, float] | None,
    zone_terms: bool | Sequence[str],
    spaces: dict[str, int],
) -> _Plan:
    used = names if weights is None else tuple(zone for zone in names if zone in weights)
    parts: list[tuple[int, str]] = []  # a zone and a space, new ones being numbered
    for k, zone in enumerate(used):
        own = zone_terms if isinstance(zone_terms, bool) else zone in zone_terms
        parts += [(k, SHARED_SPACE)] * (zone_terms is not True) + [(k, zone)] * own
    offsets = [k for k, _ in parts]
    numbers = [spaces.setdefault(space, len(spaces)) for _, space in parts]
    return _Plan(used, offsets, numbers, [1.0 if weights is None else weights[used[k]] for k in offsets])


def checked_documents(documents: Documents) -> Iterator[str | Zoned]:
    """Return an iterator over documents, but refuse a single text, which is a stream of characters."""
    if isinstance(documents, str):
        raise FeatureError("Iterable over raw text documents expected, string object received.")
    return iter(documents)


def zones_of_document(document: str | Zoned, i: int) -> Mapping[str, str]:
    if isinstance(document, str):
        return {_BODY: document}
    zones = getattr(document, "zones", None)
    if type(zones) is not dict and not isinstance(zones, Mapping):  # the second question takes longer
        raise FeatureError(f"Document {i} is {document!r:.60}: give a string or a document with zones.")
    return zones


class TermColumns:
    """The columns of terms and n-grams, by the ids that `Tokens` gave them: each is looked up once.

    With a vocabulary, columns are those of names, "word", "word word", and in a space of its own "title:word". Without,
    they are the lowest `hash_bits` bits of hashes. What is kept, by space, are the keys of terms and of n-grams: a
    column, -1 for none, or a whole hash.
    """

    def __init__(self, terms: list[str], vocabulary: Mapping[str, int] | None, hash_bits: int = 0, keys: Any = None):
        self.terms, self._vocabulary = terms, vocabulary
        self._mask = np.int32(2**hash_bits - 1 if vocabulary is None else -1)
        self._keys: dict[str, tuple[np.ndarray, np.ndarray]] = keys or {}

    def of(self, spaces: Sequence[str], counts: TermCounts) -> tuple[np.ndarray, np.ndarray]:
        """Return int32 arrays of shape (n_spaces, n_terms) and (n_spaces, n_ngrams): the column, or -1."""
        keys = [self._keys_of(space, counts) for space in spaces]
        return self._stacked([terms for terms, _ in keys]), self._stacked([ngrams for _, ngrams in keys])

    def _keys_of(self, space: str, counts: TermCounts) -> tuple[np.ndarray, np.ndarray]:
        terms, ngrams = self._keys.get(space, (NO_IDS, NO_IDS))
        hashed = self._vocabulary is None
        if len(terms) < len(self.terms):
            names = feature_names(space, self.terms[len(terms) :])
            terms = np.concatenate([terms, space_hashes(names) if hashed else self._named(names)])
        if len(ngrams) < len(counts.ngrams) and hashed:
            ngrams = _ngram_hashes(counts, terms, ngrams)
        elif len(ngrams) < len(counts.ngrams):
            names = feature_names(space, ngram_names(counts, np.arange(len(ngrams), len(counts.ngrams))))
            ngrams = np.concatenate([ngrams, self._named(names)])
        self._keys[space] = terms, ngrams
        return terms, ngrams

    def _named(self, names: Sequence[str]) -> np.ndarray:
        column_of = (self._vocabulary or {}).get
        return np.array([column_of(name, -1) for name in names], np.int32)

    def _stacked(self, keys: list[np.ndarray]) -> np.ndarray:
        if not keys:
            return np.zeros((0, 0), np.int32)
        shortest = min(map(len, keys))  # another thread may have lengthened the list of terms meanwhile
        rows = keys[0][None] if len(keys) == 1 else np.array([row[:shortest] for row in keys])
        return rows if self._mask == -1 else rows & self._mask


def space_hashes(names: Sequence[str]) -> np.ndarray:
    """Return the hashes of names, MurmurHash3 (32 bits, seed 0) of their UTF-8: shape (n,), int32."""
    from sklearn.utils import murmurhash3_32  # here, for its import takes a second and 100 MB

    # spaCy has no lone surrogates, but a token that is a whole span never reached it.
    return np.array([murmurhash3_32(name.encode("utf-8", "surrogatepass")) for name in names], np.int32)


def _ngram_hashes(counts: TermCounts, terms: np.ndarray, ngrams: np.ndarray) -> np.ndarray:
    """Return the hashes of all n-grams, given those of all terms and of the first n-grams.

    That of an n-gram is MurmurHash3 of the four bytes, lowest first, of 31 times the hash of all but its last term plus
    the hash of the last one.
    """
    from sklearn.utils import murmurhash3_32

    left, right = counts.ngrams[len(ngrams) :].T
    hashes = np.concatenate([ngrams, np.zeros(len(left), np.int32)])
    new = hashes[len(ngrams) :]
    pair = left >= 0
    new[pair] = murmurhash3_32(np.int32(31) * terms[left[pair]] + terms[right[pair]])
    new[~pair] = murmurhash3_32(np.int32(31) * hashes[~left[~pair]] + terms[right[~pair]])
    return hashes


def feature_names(space: str, terms: Sequence[str]) -> Sequence[str]:
    """Return the names of terms or n-grams in a space: "title:word", or "word" in the shared one, ""."""
    return [f"{space}:{term}" for term in terms] if space else terms


def ngram_names(counts: TermCounts, ids: np.ndarray) -> list[str]:
    """Return the names of n-grams, "word word" or "word word word", by their positions in `counts.ngrams`."""
    terms = counts.terms
    left, right = counts.ngrams[ids].T
    pairs = counts.ngrams[~left[left < 0]]
    names = iter([f"{terms[first]} {terms[second]}" for first, second in pairs.tolist()])
    before = [terms[i] if i >= 0 else next(names) for i in left.tolist()]
    return [f"{first} {terms[last]}" for first, last in zip(before, right.tolist(), strict=True)]


def vocabulary_of(names: Iterable[str], ngrams: int, *, zone_terms: bool) -> Vocabulary:
    """Return the terms and n-grams that names may be names of: all others have no column.

    A name can be read in several ways: the term "a b" or an n-gram, "title:word" of a space (if `zone_terms`) or as a
    shared term. Each counts, since one too many does no harm. None can be read as OTHER.
    """
    names = list(names)
    if ngrams > 1 and not zone_terms:  # all are words and pairs, mostly: sooner
        with suppress(UnicodeEncodeError):  # of a lone surrogate
            if (known := read_pairs(names)) is not None:
                return Vocabulary(*known)
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
    return Vocabulary(list(terms), np.array(list(ids), np.int32))


def _readings(name: str, ngrams: int, zone_terms: bool) -> Iterator[list[str]]:
    """Yield the ways to read a name as up to so many terms."""
    starts = [0, *(i + 1 for i, character in enumerate(name) if zone_terms and character == ":")]
    for start in starts:
        spaces = [i for i in range(start, len(name)) if name[i] == " "]
        for n in range(min(ngrams, len(spaces) + 1)):
            for cuts in combinations(spaces, n):
                edges = [start - 1, *cuts, len(name)]
                parts = [name[left + 1 : right] for left, right in pairwise(edges)]
                if all(parts) and OTHER not in parts:
                    yield parts
