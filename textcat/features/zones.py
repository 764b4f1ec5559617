"""Turn documents into the texts of their zones, and the terms of these into columns: by name, or by hash.

A part is a text whose terms belong to a space: to the shared one, or to that of its zone. A text may be several parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from textcat.features.settings import FeatureError
from textcat.features.tokens import TermCounts

_BODY = "body"
SHARED_SPACE = ""  # the space of terms that are no zone's own


class Zoned(Protocol):
    """A document in zones."""

    @property
    def zones(self) -> Mapping[str, str]:
        """The text of each zone by its name."""


Documents: TypeAlias = Iterable[str | Zoned]


class TextParts(NamedTuple):
    """The texts of documents, each once for every space that its terms belong to, and how much it counts there."""

    zones: list[str]  # of each text
    sources: np.ndarray  # the text of each part, by its position: shape (n_parts,), int32
    spaces: np.ndarray  # the space of each part, by its position in `names`: shape (n_parts,), int32
    weights: np.ndarray  # of each part: shape (n_parts,), float64
    names: list[str]  # of the spaces: a zone that has terms of its own, or SHARED_SPACE
    ends: np.ndarray  # where the parts of each document end: shape (n_documents,), int64

    def arguments(self, counts: TermCounts, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the first arguments of `document_frequencies`; with the counts themselves, of `rows`."""
        return self.ends, counts.ends, counts.ids, *arrays, self.sources, self.spaces

    def select(self, documents: np.ndarray) -> TextParts:
        """Return the parts of some documents only, given by their positions."""
        starts = np.concatenate([np.zeros(1, np.int64), self.ends[:-1]])[documents]
        sizes = self.ends[documents] - starts
        ends = np.cumsum(sizes)
        positions = np.arange(sizes.sum()) + np.repeat(starts - (ends - sizes), sizes)
        arrays = {name: getattr(self, name)[positions] for name in ("sources", "spaces", "weights")}
        return self._replace(ends=ends, **arrays)


class ZoneTexts:
    """Yield the texts of documents' zones, and record the parts of the texts that were read."""

    def __init__(self, documents: Documents, zones: Mapping[str, float] | None, zone_terms: bool | Sequence[str]):
        self._documents, self._zones, self._zone_terms = documents, zones, zone_terms
        self._plans: list[_Plan] = []
        self._plan_of: dict[tuple[str, ...], _Plan] = {}
        self._space_ids = {} if zone_terms is True else {SHARED_SPACE: 0}

    def __iter__(self) -> Iterator[str]:
        for i, document in enumerate(self._documents):
            zones = zones_of_document(document, i)
            for zone in self.plan_document(tuple(zones)).zones:
                text = zones[zone]
                if not isinstance(text, str):
                    raise FeatureError(f"Zone {zone!r} of document {i + 1} is {text!r:.60}: give a string.")
                yield text

    def plan_document(self, names: tuple[str, ...]) -> _Plan:
        """Record a document whose zones have these names, and return its parts."""
        plan = self._plan_of.get(names)
        if plan is None:
            plan = self._plan_of[names] = plan_texts(names, self._zones, self._zone_terms, self._space_ids)
        self._plans.append(plan)
        return plan

    def parts(self) -> TextParts:
        """Return the parts of the documents that were recorded so far."""
        plans = self._plans
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
    """Return the parts of documents with these zones; number new spaces in `spaces`."""
    used = names if weights is None else tuple(zone for zone in names if zone in weights)
    parts: list[tuple[int, str]] = []  # a zone and a space, new ones being numbered
    for k, zone in enumerate(used):
        has_own_terms = zone_terms if isinstance(zone_terms, bool) else zone in zone_terms
        parts += [(k, SHARED_SPACE)] * (zone_terms is not True) + [(k, zone)] * has_own_terms
    offsets = [k for k, _ in parts]
    numbers = [spaces.setdefault(space, len(spaces)) for _, space in parts]
    return _Plan(used, offsets, numbers, [1.0 if weights is None else weights[used[k]] for k in offsets])


def checked_documents(documents: Documents) -> Iterator[str | Zoned]:
    """Return an iterator over documents; refuse a text and a table, which yield characters and names of columns."""
    if isinstance(documents, str):
        raise FeatureError("Iterable over raw text documents expected, string object received.")
    if hasattr(documents, "columns"):
        raise FeatureError(
            f"A {type(documents).__name__} is no list of texts: give one of its columns, as in frame['text'], or name "
            "columns in a ColumnTransformer, each by a string."
        )
    return iter(documents)


def zones_of_document(document: str | Zoned, i: int) -> Mapping[str, str]:
    """Return the text of each zone of a document; a string is the zone "body". Errors name it by `i`, from 0."""
    if isinstance(document, str):
        return {_BODY: document}
    zones = getattr(document, "zones", None)
    if type(zones) is not dict and not isinstance(zones, Mapping):  # the second question takes longer
        raise FeatureError(f"Document {i + 1} is {document!r:.60}: give a string or a document with zones.")
    return zones
