"""Divide documents into the texts of their zones, and assign terms of each text to spaces.

A space is a set of terms: the shared one, or that of a zone with terms of its own. A part is a text together with one
of the spaces to which its terms belong, so a text may be several parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from textcat.features.settings import FeatureError
from textcat.features.tokens import TermCounts

_BODY = "body"
SHARED_SPACE = ""  # the space of shared terms


class Zoned(Protocol):
    """Any document that has `zones`: named parts of its text, such as title and body."""

    @property
    def zones(self) -> Mapping[str, str]:
        """The text of each zone by its name."""


Documents: TypeAlias = Iterable[str | Zoned]


class TextParts(NamedTuple):
    """The parts of documents: each text, once for every space of its terms, with its weight there.

    A space is a set of terms: that of a single zone, or the one that all zones share.
    """

    zones: list[str]  # the zone of each text
    sources: np.ndarray  # the text of each part, by its position: shape (n_parts,), int32
    spaces: np.ndarray  # the space of each part, by its position in `names`: shape (n_parts,), int32
    weights: np.ndarray  # the weight of each part: shape (n_parts,), float64
    names: list[str]  # the names of the spaces: zones that have terms of their own, or SHARED_SPACE
    ends: np.ndarray  # where the parts of each document end: shape (n_documents,), int64

    def arguments(self, counts: TermCounts, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the first arguments of the compiled functions `document_frequencies` and `rows`.

        For `rows`, `arrays` is the array `counts.counts`; for `document_frequencies`, there are no `arrays`.
        """
        return self.ends, counts.ends, counts.ids, *arrays, self.sources, self.spaces

    def select(self, documents: np.ndarray) -> TextParts:
        """Return the parts of the documents at the given positions, in this order."""
        starts = np.concatenate([np.zeros(1, np.int64), self.ends[:-1]])[documents]
        sizes = self.ends[documents] - starts
        ends = np.cumsum(sizes)
        positions = np.arange(sizes.sum()) + np.repeat(starts - (ends - sizes), sizes)
        arrays = {name: getattr(self, name)[positions] for name in ("sources", "spaces", "weights")}
        return self._replace(ends=ends, **arrays)


class ZoneTexts:
    """An iterable of the texts of documents' zones, which records the zones of each document that it reads.

    A zone is a named part of a document, such as the title. `parts` then says where the terms of each text are counted:
    as terms of the zone alone ("title:word"), as terms that all zones share, or both.
    """

    def __init__(self, documents: Documents, zones: Mapping[str, float] | None, zone_terms: bool | Sequence[str]):
        self._documents, self._zones, self._zone_terms = documents, zones, zone_terms
        self._plans: list[_ZonePlan] = []
        self._plan_of: dict[tuple[str, ...], _ZonePlan] = {}
        self._space_ids = {} if zone_terms is True else {SHARED_SPACE: 0}

    def __iter__(self) -> Iterator[str]:
        for i, document in enumerate(self._documents):
            zones = zones_of_document(document, i)
            for zone in self.plan_document(tuple(zones)).zones:
                text = zones[zone]
                if not isinstance(text, str):
                    raise FeatureError(f"Zone {zone!r} of document {i + 1} is {text!r:.60}: give a string.")
                yield text

    def plan_document(self, names: tuple[str, ...]) -> _ZonePlan:
        """Record the next document, given its zones; return its parts: texts, each with a set of terms (a space)."""
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


class _ZonePlan(NamedTuple):
    """Hold the parts that every document with certain zones has, given by the names of the zones.

    A part is a zone's text with a space to which its terms belong: the zone's own, or the one that all zones share.
    """

    zones: tuple[str, ...]  # the zones that are read
    offsets: list[int]  # the position in `zones` of each part's zone
    spaces: list[int]  # the number of each part's space
    weights: list[float]  # the weight of each part


def plan_texts(
    names: tuple[str, ...],
    weights: Mapping[str, float] | None,
    zone_terms: bool | Sequence[str],
    spaces: dict[str, int],
) -> _ZonePlan:
    """Return the parts of a document, given the names of its zones.

    A part is a zone's text with a space to which its terms belong: the zone's own, or the one that all zones share.
    `weights` and `zone_terms` are the parameters `zones` and `zone_terms` of `TfIdf`. `spaces` has the number of each
    space by name; new spaces are added to it.
    """
    used = names if weights is None else tuple(zone for zone in names if zone in weights)
    parts: list[tuple[int, str]] = []  # for a zone and a space; a new space gets a number
    for k, zone in enumerate(used):
        has_own_terms = zone_terms if isinstance(zone_terms, bool) else zone in zone_terms
        parts += [(k, SHARED_SPACE)] * (zone_terms is not True) + [(k, zone)] * has_own_terms
    offsets = [k for k, _ in parts]
    numbers = [spaces.setdefault(space, len(spaces)) for _, space in parts]
    return _ZonePlan(used, offsets, numbers, [1.0 if weights is None else weights[used[k]] for k in offsets])


def checked_documents(documents: Documents) -> Iterator[str | Zoned]:
    """Return an iterator over documents; raise FeatureError if they are a single text or a table.

    Iterating over these would yield characters or the names of columns.
    """
    if isinstance(documents, str):
        raise FeatureError("Iterable over raw text documents expected, string object received.")
    if hasattr(documents, "columns"):
        raise FeatureError(
            f"A {type(documents).__name__} is no list of texts: give one of its columns, as in frame['text'], or name "
            "columns in a ColumnTransformer, each by a string."
        )
    return iter(documents)


def zones_of_document(document: str | Zoned, i: int) -> Mapping[str, str]:
    """Return the text of each zone of a document, by the zone's name; a string is the zone "body".

    `i` is the number of the document, from 0, for the message of the FeatureError if it has no zones.
    """
    if isinstance(document, str):
        return {_BODY: document}
    zones = getattr(document, "zones", None)
    if type(zones) is not dict and not isinstance(zones, Mapping):  # checked last, because it takes longer
        raise FeatureError(f"Document {i + 1} is {document!r:.60}: give a string or a document with zones.")
    return zones
