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
    sources: list[int] = []
    kinds: list[int] = []
    ends: list[int] = []
    names: dict[str, int] = {} if apart is True else {SHARED: 0}
    kinds_of: dict[str, range] = {}
    spaces: list[int] = []
    weights: list[float] = []
    for i, document in enumerate(documents):
        for zone, text in _zones(document, i).items():
            kinds_here = kinds_of.get(zone)
            if kinds_here is None:
                weight = 1.0 if zones is None else zones.get(zone)
                if weight is not None:
                    spaces += [names.setdefault(name, len(names)) for name in _spaces_of(zone, apart)]
                    weights += [weight] * (len(spaces) - len(weights))
                kinds_here = kinds_of[zone] = range(sum(map(len, kinds_of.values())), len(spaces))
            if kinds_here:
                sources += [len(texts)] * len(kinds_here)
                kinds += kinds_here
                texts.append(text)
                zone_of.append(zone)
        ends.append(len(sources))
    which = np.array(kinds, np.int64)
    return Texts(
        texts,
        zone_of,
        np.array(sources, np.int32),
        np.array(spaces, np.int32)[which],
        np.array(weights, np.float64)[which],
        list(names),
        np.array(ends, np.int64),
    )


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
    if not isinstance(zones, Mapping):
        raise FeatureError(f"Document {i} is {document!r:.60}: give a string or a document with zones.")
    for name, text in zones.items():
        if not isinstance(text, str):
            raise FeatureError(f"Zone {name!r} of document {i} is {text!r:.60}: give a string.")
    return zones
