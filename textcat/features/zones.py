"""Lay the zones of documents out as texts, and the parts these play: a text read with the terms of a space."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from textcat.errors import TextcatError
from textcat.features.tokens import TermCounts

BODY = "body"
SHARED = ""  # the space of terms that are no zone's own


class Zoned(Protocol):
    """A document in zones."""

    @property
    def zones(self) -> Mapping[str, str]:
        """The text of each zone by its name."""


Documents: TypeAlias = Iterable[str | Zoned]


class FeatureError(TextcatError, ValueError):
    """Documents or settings from which no rows can be made."""


class Texts(NamedTuple):
    """The zones of documents, one after the other, and the parts they play.

    Attributes
    ----------
    texts : list of str
    zones : list of str
        The zone of each text.
    sources : ndarray of shape (n_parts,), int32
        Which text each part is.
    spaces : ndarray of shape (n_parts,), int32
        The space of each part, by its place in `names`.
    weights : ndarray of shape (n_parts,), float64
    names : list of str
        Of the spaces: a zone that has terms of its own, or SHARED.
    ends : ndarray of shape (n_documents,), int64
        Where the parts of each document end.
    """

    texts: list[str]
    zones: list[str]
    sources: np.ndarray
    spaces: np.ndarray
    weights: np.ndarray
    names: list[str]
    ends: np.ndarray

    def places(self, counts: TermCounts, *more: np.ndarray) -> tuple[np.ndarray, ...]:
        """Give the first arguments of `document_frequencies`; with the counts themselves, of `rows`."""
        return self.ends, counts.ends, counts.ids, *more, self.sources, self.spaces

    def of(self, documents: np.ndarray) -> Texts:
        """Keep the parts of some documents only, given by their places; the texts keep theirs."""
        starts = np.concatenate([np.zeros(1, np.int64), self.ends[:-1]])[documents]
        sizes = self.ends[documents] - starts
        ends = np.cumsum(sizes)
        parts = np.arange(sizes.sum()) + np.repeat(starts - (ends - sizes), sizes)
        chosen = {name: getattr(self, name)[parts] for name in ("sources", "spaces", "weights")}
        return self._replace(ends=ends, **chosen)


def lay_out(documents: Documents, zones: Mapping[str, float] | None, apart: bool | Sequence[str]) -> Texts:
    """Lay documents out, with the weights of zones and the spaces that `TfIdf` describes.

    Raises
    ------
    FeatureError
        If a document is neither a string nor has zones.
    """
    texts: list[str] = []
    zone_of: list[str] = []
    plans: dict[tuple[str, ...], _Plan] = {}
    followed: list[_Plan] = []
    offsets: list[int] = []
    kinds: list[int] = []
    parts = _Parts(zones, apart)
    for i, document in enumerate(documents):
        of_document = _zones(document, i)
        names = tuple(of_document)
        plan = plans.get(names)
        if plan is None:
            plan = plans[names] = parts.plan(names)
        texts += of_document.values() if plan.zones == names else map(of_document.__getitem__, plan.zones)
        zone_of += plan.zones
        offsets += plan.offsets
        kinds += plan.kinds
        followed.append(plan)
    n_texts = np.fromiter((len(plan.zones) for plan in followed), np.int64, len(followed))
    n_parts = np.fromiter((len(plan.kinds) for plan in followed), np.int64, len(followed))
    _check_texts(texts, zone_of, n_texts)
    sources = np.repeat(np.cumsum(n_texts) - n_texts, n_parts) + np.array(offsets, np.int64)
    which = np.array(kinds, np.int64)
    return Texts(
        texts,
        zone_of,
        sources.astype(np.int32),
        np.array(parts.spaces, np.int32)[which],
        np.array(parts.weights, np.float64)[which],
        list(parts.names),
        np.cumsum(n_parts),
    )


class _Plan(NamedTuple):
    """How documents with the same names of zones are laid out.

    Attributes
    ----------
    zones : tuple of str
        Those that are read.
    offsets : list of int
        Which of them each part is.
    kinds : list of int
        The kind of each part, of which `_Parts` has the space and the weight.
    """

    zones: tuple[str, ...]
    offsets: list[int]
    kinds: list[int]


class _Parts:
    """The kinds of parts met so far, with their spaces and weights."""

    def __init__(self, zones: Mapping[str, float] | None, apart: bool | Sequence[str]):
        self.names: dict[str, int] = {} if apart is True else {SHARED: 0}
        self.spaces: list[int] = []
        self.weights: list[float] = []
        self._zones, self._apart = zones, apart
        self._kinds: dict[str, range] = {}

    def plan(self, zones: tuple[str, ...]) -> _Plan:
        """Plan the documents with these zones."""
        read = tuple(zone for zone in zones if self._kinds_of(zone))
        of_zones = [self._kinds_of(zone) for zone in read]
        offsets = [k for k, kinds in enumerate(of_zones) for _ in kinds]
        return _Plan(read, offsets, [kind for kinds in of_zones for kind in kinds])

    def _kinds_of(self, zone: str) -> range:
        if zone not in self._kinds:
            start, weight = len(self.spaces), 1.0 if self._zones is None else self._zones.get(zone)
            if weight is not None:
                self.spaces += [self.names.setdefault(name, len(self.names)) for name in _spaces_of(zone, self._apart)]
                self.weights += [weight] * (len(self.spaces) - start)
            self._kinds[zone] = range(start, len(self.spaces))
        return self._kinds[zone]


def checked(documents: Documents) -> Iterator[str | Zoned]:
    """Give documents one by one, but refuse a single text, which is a stream of characters."""
    if isinstance(documents, str):
        raise FeatureError("Iterable over raw text documents expected, string object received.")
    return iter(documents)


def _spaces_of(zone: str, apart: bool | Sequence[str]) -> list[str]:
    if apart is True:
        return [zone]
    return [SHARED, zone] if apart and zone in apart else [SHARED]


def _zones(document: str | Zoned, i: int) -> Mapping[str, str]:
    if isinstance(document, str):
        return {BODY: document}
    zones = getattr(document, "zones", None)
    if type(zones) is not dict and not isinstance(zones, Mapping):  # the second question takes longer
        raise FeatureError(f"Document {i} is {document!r:.60}: give a string or a document with zones.")
    return zones


def _check_texts(texts: list[str], zones: list[str], n_texts: np.ndarray) -> None:
    if set(map(type, texts)) <= {str}:
        return
    for k, (zone, text) in enumerate(zip(zones, texts, strict=True)):
        if not isinstance(text, str):
            i = int(np.searchsorted(np.cumsum(n_texts), k, side="right"))
            raise FeatureError(f"Zone {zone!r} of document {i} is {text!r:.60}: give a string.")
