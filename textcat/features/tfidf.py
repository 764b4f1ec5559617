"""Turn term counts into tf-idf rows of unit length."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from numbers import Integral, Real
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from scipy.sparse import csr_matrix, vstack
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from textcat.errors import TextcatError
from textcat.features._rows import document_frequencies, rows
from textcat.features.tokens import TermCounts, Tokens

BODY = "body"
DOCUMENTS_PER_BLOCK = 4096
NONE = np.zeros(0, np.int32)


class Zoned(Protocol):
    """A document in zones."""

    @property
    def zones(self) -> Mapping[str, str]:
        """The text of each zone by its name."""


Documents: TypeAlias = Iterable[str | Zoned]


class FeatureError(TextcatError, ValueError):
    """Documents or settings from which no rows can be made."""


class _Texts(NamedTuple):
    """The zones of documents, one after the other."""

    texts: list[str]
    weights: np.ndarray
    zones: np.ndarray  # into names
    names: list[str]  # of the zones that have terms of their own; else one empty name
    ends: np.ndarray  # of each document


class TfIdf(TransformerMixin, BaseEstimator):
    """Weigh terms by frequency and rarity.

    Row i is `x / |x|` with `x[t] = tf(t, i) · log(m / df(t))` (natural logarithm).
    `tf` adds up, over the zones of document i, the zone's weight times how often t occurs there (see `sublinear_tf`);
    m is the number of training documents and df(t) how many of them have t. Terms that no training document has, and
    those that all have, get no entry. A document without any entry gives an empty row.

    Parameters
    ----------
    tokens : Tokens, optional
        What counts as a term; by default the lower-cased alphabetic tokens of English that are no stop words.
    zones : dict of str to float, optional
        The weight of each zone, such as `{"title": 2, "body": 1}`; zones not named are left out. By default all zones
        weigh 1. A document given as a string has the single zone "body".
    apart : bool, default=False
        Keep the zones apart: each zone has terms of its own, named "title:word".
    sublinear_tf : bool, default=False
        Let a term that occurs n times in a zone count 1 + log n there, in place of n; the zones' weights come after.
    min_df : int, default=1
        Leave out terms that fewer training documents have.
    max_features : int, optional
        Keep only the terms that most training documents have; among equals, those first in alphabetical order.
    bigrams : bool, default=False
        Add each pair of terms that follow each other within a zone, named "word word".
    dtype : {numpy.float32, numpy.float64}, default=numpy.float32
        Of the rows. All is computed in float64.

    Attributes
    ----------
    vocabulary_ : dict of str to int
        The column of each term, in alphabetical order.
    idf_ : ndarray of shape (n_terms,), float64
        log(m / df).
    n_documents_ : int
        m.
    tokens_ : Tokens
        What counted the terms.

    Source: G. Salton, C. Buckley, Term-weighting approaches in automatic text retrieval, Information Processing &
    Management 24 (1988).
    """

    def __init__(
        self,
        tokens: Tokens | None = None,
        *,
        zones: Mapping[str, float] | None = None,
        apart: bool = False,
        sublinear_tf: bool = False,
        min_df: int = 1,
        max_features: int | None = None,
        bigrams: bool = False,
        dtype: Any = np.float32,
    ) -> None:
        self.tokens = tokens
        self.zones = zones
        self.apart = apart
        self.sublinear_tf = sublinear_tf
        self.min_df = min_df
        self.max_features = max_features
        self.bigrams = bigrams
        self.dtype = dtype

    @classmethod
    def restore(cls, terms: Sequence[str], idf: np.ndarray, n_documents: int, **settings: Any) -> TfIdf:
        """Make a fitted transformer from what another one has learnt.

        Parameters
        ----------
        terms : sequence of str
            `get_feature_names_out()` of the other.
        idf : ndarray of shape (n_terms,), float64
        n_documents : int
        **settings
            The parameters of the class.
        """
        restored = cls(**settings)
        restored._check_settings()
        restored._take_tokens()
        restored._keep(terms, idf, n_documents)
        return restored

    def fit(self, documents: Documents, y: Any = None) -> TfIdf:
        """Learn terms and document frequencies.

        Parameters
        ----------
        documents : iterable of str, or of documents with `zones`
        y : ignored

        Raises
        ------
        ValueError
            If there is no document, one is neither a string nor has zones, or a parameter is out of range.
        """
        self._fit(documents)
        return self

    def fit_transform(self, documents: Documents, y: Any = None) -> csr_matrix:
        """Learn from documents and give their rows, counting once. See `fit` and `transform`."""
        return self._rows(*self._fit(documents))

    def transform(self, documents: Documents) -> csr_matrix:
        """Give the rows of documents.

        Returns
        -------
        csr_matrix of shape (n_documents, n_terms)
            With sorted indices. Each row has Euclidean length 1, or no entry.
        """
        check_is_fitted(self)
        stream = _checked(documents)
        blocks = []
        while block := list(islice(stream, DOCUMENTS_PER_BLOCK)):
            texts = self._flat(block)
            blocks.append(self._rows(texts, self._count(texts)))
        if not blocks:
            return csr_matrix((0, len(self.vocabulary_)), dtype=self.dtype)
        return blocks[0] if len(blocks) == 1 else vstack(blocks, format="csr")

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Give the terms in the order of the columns: an array of shape (n_terms,) of str objects."""
        check_is_fitted(self)
        return np.array(list(self.vocabulary_), dtype=object)

    def _fit(self, documents: Documents) -> tuple[_Texts, TermCounts]:
        self._check_settings()
        texts = self._flat(_checked(documents))
        m = len(texts.ends)
        if not m:
            raise FeatureError("There is no document to learn terms from: give at least one.")
        self._take_tokens()
        counts = self._count(texts)
        names: dict[str, int] = {}
        columns = _Columns(counts.terms, lambda name: names.setdefault(name, len(names)))
        places = columns.of(texts.names, counts)
        frequencies = document_frequencies(texts.ends, counts.ends, counts.ids, texts.zones, *places, len(names))
        df_of = self._selected(dict(zip(names, frequencies.tolist(), strict=True)))
        idf_of = {df: math.log(m / df) for df in set(df_of.values())}
        self._keep(list(df_of), np.array([idf_of[df] for df in df_of.values()], np.float64), m)
        return texts, counts

    def _selected(self, df_of: dict[str, int]) -> dict[str, int]:
        """Pick the terms that become columns, in alphabetical order."""
        names = sorted(name for name, df in df_of.items() if df >= self.min_df)
        if self.max_features is not None:
            names = sorted(sorted(names, key=lambda name: -df_of[name])[: self.max_features])
        return {name: df_of[name] for name in names}

    def _keep(self, terms: Sequence[str], idf: np.ndarray, n_documents: int) -> None:
        self.vocabulary_ = dict(zip(terms, range(len(terms)), strict=True))
        self.idf_ = np.ascontiguousarray(idf, np.float64)
        self.n_documents_ = n_documents
        self._columns: _Columns | None = None

    def _take_tokens(self) -> None:
        self.tokens_ = Tokens() if self.tokens is None else self.tokens

    def _flat(self, documents: Iterable[str | Zoned]) -> _Texts:
        texts: list[str] = []
        weights: list[float] = []
        zones: list[int] = []
        ends: list[int] = []
        names: dict[str, int] = {} if self.apart else {"": 0}
        weight_of = self.zones
        for i, document in enumerate(documents):
            for name, text in _zones(document, i).items():
                weight = 1.0 if weight_of is None else weight_of.get(name)
                if weight is not None:
                    texts.append(text)
                    weights.append(weight)
                    zones.append(names.setdefault(name, len(names)) if self.apart else 0)
            ends.append(len(texts))
        return _Texts(
            texts,
            np.array(weights, np.float64),
            np.array(zones, np.int32),
            list(names),
            np.array(ends, np.int64),
        )

    def _count(self, texts: _Texts) -> TermCounts:
        return self.tokens_.count_terms(texts.texts, bigrams=self.bigrams)

    def _rows(self, texts: _Texts, counts: TermCounts) -> csr_matrix:
        columns = self._columns
        if columns is None or columns.terms is not counts.terms:
            vocabulary = self.vocabulary_
            columns = self._columns = _Columns(counts.terms, lambda name: vocabulary.get(name, -1))
        places = columns.of(texts.names, counts)
        data = np.empty(len(counts.ids), self.dtype)
        indices = np.empty(len(counts.ids), np.int32)
        ends = rows(
            texts.ends,
            counts.ends,
            counts.ids,
            counts.counts,
            texts.zones,
            texts.weights,
            *places,
            self.idf_,
            self.sublinear_tf,
            data,
            indices,
        )
        indptr = np.concatenate([np.zeros(1, np.int64), ends])
        n = int(indptr[-1])
        shape = (len(ends), len(self.vocabulary_))
        X = csr_matrix((data[:n].copy(), indices[:n].copy(), indptr), shape=shape)
        X.has_sorted_indices = X.has_canonical_format = True
        return X

    def _check_settings(self) -> None:
        for name, weight in (self.zones or {}).items():
            if not (isinstance(weight, Real) and 0 < weight < math.inf):
                raise FeatureError(f"The weight of zone {name!r} is {weight!r}: give a positive number.")
        if not (isinstance(self.min_df, Integral) and self.min_df >= 1):
            raise FeatureError(f"min_df is {self.min_df!r}: give a whole number of documents, at least 1.")
        if not (self.max_features is None or (isinstance(self.max_features, Integral) and self.max_features >= 1)):
            raise FeatureError(f"max_features is {self.max_features!r}: give a whole number, at least 1, or None.")
        if np.dtype(self.dtype) not in (np.float32, np.float64):
            raise FeatureError(f"dtype is {self.dtype!r}: give numpy.float32 or numpy.float64.")

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "_columns" in state:
            state["_columns"] = None
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


class _Columns:
    """The columns of terms and pairs of terms, by the ids that `Tokens` gave them: they are looked up by name once."""

    def __init__(self, terms: list[str], column_of: Callable[[str], int]) -> None:
        self.terms = terms
        self._column_of = column_of
        self._places: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def of(self, zones: list[str], counts: TermCounts) -> tuple[np.ndarray, np.ndarray]:
        """Give int32 arrays of shape (n_zones, n_terms) and (n_zones, n_pairs): the column, or -1."""
        places = [self._of_zone(zone, counts) for zone in zones]
        if len(places) == 1:
            return places[0][0][None], places[0][1][None]
        n_terms = min((len(terms) for terms, _ in places), default=0)
        n_pairs = min((len(pairs) for _, pairs in places), default=0)
        shape = (len(zones), -1)
        return (
            np.array([terms[:n_terms] for terms, _ in places], np.int32).reshape(shape if places else (0, 0)),
            np.array([pairs[:n_pairs] for _, pairs in places], np.int32).reshape(shape if places else (0, 0)),
        )

    def _of_zone(self, zone: str, counts: TermCounts) -> tuple[np.ndarray, np.ndarray]:
        prefix = f"{zone}:" if zone else ""
        terms, pairs = self._places.get(zone, (NONE, NONE))
        if len(terms) < len(self.terms):
            fresh = [prefix + term for term in self.terms[len(terms) :]]
            terms = np.concatenate([terms, np.array(list(map(self._column_of, fresh)), np.int32)])
        if len(pairs) < len(counts.pairs):
            word = self.terms
            fresh = [f"{prefix}{word[left]} {word[right]}" for left, right in counts.pairs[len(pairs) :].tolist()]
            pairs = np.concatenate([pairs, np.array(list(map(self._column_of, fresh)), np.int32)])
        self._places[zone] = terms, pairs
        return terms, pairs


def _checked(documents: Documents) -> Iterator[str | Zoned]:
    if isinstance(documents, str):
        raise FeatureError("Iterable over raw text documents expected, string object received.")
    return iter(documents)


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
