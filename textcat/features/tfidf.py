"""Turn term counts into tf-idf rows of unit length."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from numbers import Integral, Real
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from scipy.sparse import csr_matrix, vstack
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from textcat.errors import TextcatError
from textcat.features._rows import document_frequencies, rows
from textcat.features.columns import Columns, Hashed, Named, known_by, names_of, ngram_names
from textcat.features.reader import Known
from textcat.features.tokens import TermCounts, Tokens

BODY = "body"
SHARED = ""  # the space of terms that are no zone's own
DOCUMENTS_PER_BLOCK = 4096
MOST_HASH_BITS = 28

log = logging.getLogger(__name__)

# The least and the most that a parameter may be, and what to say otherwise.
_MANY = 2**31 - 1
_WHOLE = {
    "ngrams": (1, 3, "1, 2 or 3"),
    "chars": (0, _MANY, "a whole number of characters, or 0 for none"),
    "min_df": (1, _MANY, "a whole number of documents, at least 1"),
    "ngram_min_df": (1, _MANY, "a whole number of documents, at least 1"),
    "max_features": (1, _MANY, "a whole number, at least 1, or None"),
    "hash_bits": (1, MOST_HASH_BITS, f"a whole number from 1 to {MOST_HASH_BITS}, or None"),
}
_CHOICES = {"weighting": ("tfidf", "bm25"), "idf": ("log", "smooth", "none")}


class Zoned(Protocol):
    """A document in zones."""

    @property
    def zones(self) -> Mapping[str, str]:
        """The text of each zone by its name."""


Documents: TypeAlias = Iterable[str | Zoned]


class FeatureError(TextcatError, ValueError):
    """Documents or settings from which no rows can be made."""


class _Texts(NamedTuple):
    """The zones of documents, one after the other, and the parts they play: a text read with the terms of a space."""

    texts: list[str]
    zones: list[str]  # the zone of each text
    sources: np.ndarray  # which text each part is
    spaces: np.ndarray  # of each part, into names
    weights: np.ndarray  # of each part
    names: list[str]  # of the spaces: a zone that has terms of its own, or SHARED
    ends: np.ndarray  # of each document, in parts

    def places(self, counts: TermCounts, *more: np.ndarray) -> tuple[np.ndarray, ...]:
        """Give the first arguments of `document_frequencies`; with the counts themselves, of `rows`."""
        return self.ends, counts.ends, counts.ids, *more, self.sources, self.spaces


class TfIdf(TransformerMixin, BaseEstimator):
    """Weigh terms by frequency and rarity.

    Row i is `x / |x|` with `x[t] = tf(t, i) · idf(t)`. `tf` adds up, over the zones of document i, the zone's weight
    times what the n occurrences of t there count: n, or see `sublinear_tf` and `weighting`. `idf` is log(m / df(t))
    (natural logarithm), where m is the number of training documents and df(t) how many of them have t, or see `idf`.
    Terms that no training document has, and those of idf 0, get no entry. A document without any entry gives an empty
    row.

    Parameters
    ----------
    tokens : Tokens, optional
        What counts as a term; by default the lower-cased alphabetic tokens of English that are no stop words.
    zones : dict of str to float, optional
        The weight of each zone, such as `{"title": 2, "body": 1}`; zones not named are left out. By default all zones
        weigh 1. A document given as a string has the single zone "body".
    apart : bool or list of str, default=False
        Which zones have terms of their own, named "title:word". False: none, all zones share their terms. True: all of
        them, and no terms are shared. A list: those zones, and their words count as shared terms, too.
    ngrams : {1, 2, 3}, default=1
        Add the n-grams of up to so many terms that follow each other within a zone, named "word word".
    ngram_min_df : int, default=2
        Leave out n-grams of terms that fewer training documents have.
    ngram_weight : float, default=1.0
        What an n-gram of terms counts beside a term. Where it counts as much, the many rare ones drown the terms of
        rare topics: 0.5 is a good start.
    chars : int, default=0
        Add the n-grams of so many characters within each term, with a space at either end, named "~abc~"; 0: none.
    char_weight : float, default=1.0
        What an n-gram of characters counts beside a term, of which each term has several: 0.5 is a good start.
    min_df : int, default=1
        Leave out terms, and n-grams of characters, that fewer training documents have.
    max_features : int, optional
        Keep only the terms that most training documents have; among equals, those first in alphabetical order.
    hash_bits : int, optional
        Give each term the column that its hash names, out of 2**hash_bits, and keep no vocabulary: memory has a bound
        that the corpus cannot break, and terms have no names. Terms that share a column count as one. df is that of a
        column, and min_df holds for it; ngram_min_df has no say. See `columns.Hashed` for the hash, which has no sign:
        where columns are many enough to serve, collisions are few, and a value says how much there is.
    weighting : {"tfidf", "bm25"}, default="tfidf"
        "bm25": let n occurrences count n / (n + k1 · (1 - b + b · l / a)), where l counts the zone's terms and a is the
        average of l over the training documents that have the zone.
    sublinear_tf : bool, default=False
        With "tfidf": let a term that occurs n times in a zone count 1 + log n there, in place of n.
    k1 : float, default=1.2
        With "bm25": how slowly occurrences saturate; 0: at once.
    b : float, default=0.75
        With "bm25": how much longer zones slow it, 0 to 1.
    idf : {"log", "smooth", "none"}, default="log"
        "smooth": 1 + log((1 + m) / (1 + df)), which leaves terms that all documents have some weight; "none": 1.
    dtype : {numpy.float32, numpy.float64}, default=numpy.float32
        Of the rows. All is computed in float64.

    Attributes
    ----------
    vocabulary_ : dict of str to int
        The column of each term, in alphabetical order; None with `hash_bits`.
    idf_ : ndarray of shape (n_columns,), float64
    n_documents_ : int
        m.
    average_lengths_ : dict of str to float
        a, by zone; empty but for "bm25".
    tokens_ : Tokens
        What counted the terms.

    Source: G. Salton, C. Buckley, Term-weighting approaches in automatic text retrieval, Information Processing &
    Management 24 (1988). BM25: S. Robertson, H. Zaragoza, The probabilistic relevance framework, Foundations and Trends
    in Information Retrieval 3 (2009), whose factor k1 + 1 a row of unit length does not feel.
    """

    def __init__(
        self,
        tokens: Tokens | None = None,
        *,
        zones: Mapping[str, float] | None = None,
        apart: bool | Sequence[str] = False,
        ngrams: int = 1,
        ngram_min_df: int = 2,
        ngram_weight: float = 1.0,
        chars: int = 0,
        char_weight: float = 1.0,
        min_df: int = 1,
        max_features: int | None = None,
        hash_bits: int | None = None,
        weighting: str = "tfidf",
        sublinear_tf: bool = False,
        k1: float = 1.2,
        b: float = 0.75,
        idf: str = "log",
        dtype: Any = np.float32,
    ) -> None:
        self.tokens = tokens
        self.zones = zones
        self.apart = apart
        self.ngrams = ngrams
        self.ngram_min_df = ngram_min_df
        self.ngram_weight = ngram_weight
        self.chars = chars
        self.char_weight = char_weight
        self.min_df = min_df
        self.max_features = max_features
        self.hash_bits = hash_bits
        self.weighting = weighting
        self.sublinear_tf = sublinear_tf
        self.k1 = k1
        self.b = b
        self.idf = idf
        self.dtype = dtype

    @classmethod
    def restore(
        cls,
        terms: Sequence[str] | None,
        idf: np.ndarray,
        n_documents: int,
        average_lengths: Mapping[str, float] | None = None,
        /,  # `idf` is also the name of a setting
        **settings: Any,
    ) -> TfIdf:
        """Make a fitted transformer from what another one has learnt.

        Parameters
        ----------
        terms : sequence of str, or None
            The keys of `vocabulary_` of the other.
        idf : ndarray of shape (n_columns,), float64
        n_documents : int
        average_lengths : dict of str to float, optional
        **settings
            The parameters of the class.
        """
        restored = cls(**settings)
        restored._check_settings()
        restored._take_tokens()
        vocabulary = None if terms is None else dict(zip(terms, range(len(terms)), strict=True))
        n_columns = 2**restored.hash_bits if restored.hash_bits else len(vocabulary or {})
        if (vocabulary is None) != bool(restored.hash_bits) or len(idf) != n_columns:
            raise FeatureError(
                f"{len(idf)} idf do not fit the {n_columns} columns: give those learnt with the settings."
            )
        restored._keep(vocabulary, idf, n_documents, dict(average_lengths or {}))
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
            blocks.append(self._rows(texts, self._count(texts, self._known_terms())))
        if not blocks:
            return csr_matrix((0, len(self.idf_)), dtype=self.dtype)
        return blocks[0] if len(blocks) == 1 else vstack(blocks, format="csr")

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Give the terms in the order of the columns, "#0" and so on with `hash_bits`: shape (n_columns,), object."""
        check_is_fitted(self)
        names = [f"#{i}" for i in range(len(self.idf_))] if self.vocabulary_ is None else list(self.vocabulary_)
        return np.array(names, dtype=object)

    def _fit(self, documents: Documents) -> tuple[_Texts, TermCounts]:
        self._check_settings()
        texts = self._flat(_checked(documents))
        m = len(texts.ends)
        if not m:
            raise FeatureError("There is no document to learn terms from: give at least one.")
        self._take_tokens()
        counts = self._count(texts)
        vocabulary, df, columns = self._hashed(texts, counts) if self.hash_bits else self._named(texts, counts)
        distinct, which = np.unique(df, return_inverse=True)
        idf = np.array([self._idf_of(n, m) for n in distinct.tolist()], np.float64)[which]
        averages = _average_lengths(texts, counts) if self.weighting == "bm25" else {}
        self._keep(vocabulary, idf, m, averages, columns)
        return texts, counts

    def _hashed(self, texts: _Texts, counts: TermCounts) -> tuple[None, np.ndarray, Columns]:
        """Give no vocabulary, the columns' df or 0 where that is too small, and the columns by hash."""
        bits = self.hash_bits or 0
        columns = Columns(counts.terms, Hashed(bits))
        df = document_frequencies(*texts.places(counts), *columns.of(texts.names, counts), 2**bits)
        return None, np.where(df >= self.min_df, df, 0), columns

    def _named(self, texts: _Texts, counts: TermCounts) -> tuple[dict[str, int], np.ndarray, Columns]:
        """Give the vocabulary, the df of its terms, and the columns by name.

        Terms are first counted by their ids, so that the many that are too rare need no name.
        """
        common = self._common(texts, counts)
        names = [name for space, ids in zip(texts.names, common, strict=True) for name in _names(space, ids, counts)]
        terms = sorted(set(names))  # terms that read alike are one column: "a b" may be a term and an n-gram
        column_of = dict(zip(terms, range(len(terms)), strict=True))
        places = np.full(common.shape, -1, np.int32)
        places[common] = [column_of[name] for name in names]
        df = _frequencies(texts, counts, places, len(terms))
        if self.max_features is not None:
            kept = np.sort(np.argsort(-df, kind="stable")[: self.max_features])
            moved = np.full(len(terms) + 1, -1, np.int32)  # its last place is where -1 stays -1
            moved[kept] = np.arange(len(kept))
            places, df, terms = moved[places], df[kept], [terms[i] for i in kept.tolist()]
        vocabulary = dict(zip(terms, range(len(terms)), strict=True))
        n_terms = common.shape[1] - len(counts.ngrams)
        known = {space: (row[:n_terms], row[n_terms:]) for space, row in zip(texts.names, places, strict=True)}
        return vocabulary, df, Columns(counts.terms, Named(vocabulary), known)

    def _common(self, texts: _Texts, counts: TermCounts) -> np.ndarray:
        """Tell which terms, and n-grams behind them, are common enough: shape (n_spaces, n_terms + n_ngrams), bool."""
        least = np.repeat([self.min_df, self.ngram_min_df], [len(counts.terms), len(counts.ngrams)])
        shape = (len(texts.names), len(least))
        places = np.arange(shape[0] * shape[1], dtype=np.int32).reshape(shape)
        return _frequencies(texts, counts, places, places.size).reshape(shape) >= least

    def _keep(
        self,
        vocabulary: dict[str, int] | None,
        idf: np.ndarray,
        n_documents: int,
        averages: dict[str, float],
        columns: Columns | None = None,
    ) -> None:
        self.vocabulary_ = vocabulary
        self.idf_ = np.ascontiguousarray(idf, np.float64)
        self.n_documents_ = n_documents
        self.average_lengths_ = averages
        self._columns = columns
        self._known: Known | None = None

    def _known_terms(self) -> Known | None:
        """Give what can have a column, so that the rest is passed over; None where that may be any term."""
        if self._known is None and self.vocabulary_ is not None and not self.chars:
            self._known = known_by(self.vocabulary_, self.ngrams, apart=bool(self.apart))
        return self._known

    def _take_tokens(self) -> None:
        self.tokens_ = Tokens() if self.tokens is None else self.tokens

    def _idf_of(self, df: int, m: int) -> float:
        if df == 0:
            return 0.0
        if self.idf == "none":
            return 1.0
        return 1 + math.log((1 + m) / (1 + df)) if self.idf == "smooth" else math.log(m / df)

    def _spaces_of(self, zone: str) -> list[str]:
        if self.apart is True:
            return [zone]
        return [SHARED, zone] if self.apart and zone in self.apart else [SHARED]

    def _flat(self, documents: Iterable[str | Zoned]) -> _Texts:
        texts: list[str] = []
        zones: list[str] = []
        sources: list[int] = []
        spaces: list[int] = []
        weights: list[float] = []
        ends: list[int] = []
        names: dict[str, int] = {} if self.apart is True else {SHARED: 0}
        spaces_of: dict[str, list[int]] = {}
        weight_of = self.zones
        for i, document in enumerate(documents):
            for zone, text in _zones(document, i).items():
                weight = 1.0 if weight_of is None else weight_of.get(zone)
                if weight is None:
                    continue
                if zone not in spaces_of:
                    spaces_of[zone] = [names.setdefault(name, len(names)) for name in self._spaces_of(zone)]
                for space in spaces_of[zone]:
                    sources.append(len(texts))
                    spaces.append(space)
                    weights.append(weight)
                texts.append(text)
                zones.append(zone)
            ends.append(len(sources))
        return _Texts(
            texts,
            zones,
            np.array(sources, np.int32),
            np.array(spaces, np.int32),
            np.array(weights, np.float64),
            list(names),
            np.array(ends, np.int64),
        )

    def _count(self, texts: _Texts, known: Known | None = None) -> TermCounts:
        return self.tokens_.count_terms(texts.texts, ngrams=self.ngrams, chars=self.chars, known=known)

    def _halves(self, texts: _Texts, counts: TermCounts) -> np.ndarray:
        """Give, per part, the count that is worth half of what endlessly many are: shape (n_parts,); (0,) for none."""
        if self.weighting != "bm25":
            return np.zeros(0)
        lengths = _lengths(counts)
        average = np.array([self.average_lengths_.get(zone, 0.0) for zone in texts.zones], np.float64)
        # A zone that no training document has, or none with a term, is as long as any.
        relative = np.divide(lengths, average, out=np.ones(len(lengths)), where=average > 0)
        return (self.k1 * (1 - self.b + self.b * relative))[texts.sources]

    def _term_weights(self, counts: TermCounts) -> np.ndarray:
        """Give what each term counts: shape (n_terms,); (0,) if all count the same."""
        if not self.chars:
            return np.zeros(0)
        weights = np.ones(len(counts.terms))
        weights[counts.chars] = self.char_weight
        return weights

    def _rows(self, texts: _Texts, counts: TermCounts) -> csr_matrix:
        columns = self._columns
        if columns is None or columns.terms is not counts.terms:
            keys = Hashed(self.hash_bits or 0) if self.vocabulary_ is None else Named(self.vocabulary_)
            columns = self._columns = Columns(counts.terms, keys)
        places = columns.of(texts.names, counts)
        sizes = np.diff(counts.ends, prepend=0)
        n_entries = int(sizes[texts.sources].sum())
        data = np.empty(n_entries, self.dtype)
        indices = np.empty(n_entries, np.int32)
        ends = rows(
            *texts.places(counts, counts.counts),
            texts.weights,
            self._halves(texts, counts),
            self.ngram_weight,
            self._term_weights(counts),
            *places,
            self.idf_,
            self.sublinear_tf,
            data,
            indices,
        )
        indptr = np.concatenate([np.zeros(1, np.int64), ends])
        n = int(indptr[-1])
        shape = (len(ends), len(self.idf_))
        X = csr_matrix((data[:n].copy(), indices[:n].copy(), indptr), shape=shape)
        X.has_sorted_indices = X.has_canonical_format = True
        log.info("%d rows of %d columns take %.1f MB", *shape, row_bytes(X) / 1e6)
        return X

    def _check_settings(self) -> None:
        for name, weight in (self.zones or {}).items():
            if not (isinstance(weight, Real) and 0 < weight < math.inf):
                raise FeatureError(f"The weight of zone {name!r} is {weight!r}: give a positive number.")
        self._check_apart()
        for name, (least, most, what) in _WHOLE.items():
            n = getattr(self, name)
            fits = isinstance(n, Integral) and not isinstance(n, bool) and least <= int(n) <= most
            if not (fits or (n is None and what.endswith("None"))):
                raise FeatureError(f"{name} is {n!r}: give {what}.")
        for name, known in _CHOICES.items():
            if getattr(self, name) not in known:
                raise FeatureError(f"{name} is {getattr(self, name)!r}: give {' or '.join(map(repr, known))}.")
        for name in ("ngram_weight", "char_weight"):
            if not (isinstance(getattr(self, name), Real) and 0 < getattr(self, name) < math.inf):
                raise FeatureError(f"{name} is {getattr(self, name)!r}: give a positive number.")
        if not (isinstance(self.k1, Real) and 0 <= self.k1 < math.inf):
            raise FeatureError(f"k1 is {self.k1!r}: give a number, at least 0.")
        if not (isinstance(self.b, Real) and 0 <= self.b <= 1):
            raise FeatureError(f"b is {self.b!r}: give a number from 0 to 1.")
        if self.weighting == "bm25" and self.sublinear_tf:
            raise FeatureError("sublinear_tf is True, and bm25 has its own way of counting: leave one of them out.")
        if self.hash_bits is not None and self.max_features is not None:
            raise FeatureError("hash_bits keeps no terms for max_features to choose from: leave one of them out.")
        if np.dtype(self.dtype) not in (np.float32, np.float64):
            raise FeatureError(f"dtype is {self.dtype!r}: give numpy.float32 or numpy.float64.")

    def _check_apart(self) -> None:
        if isinstance(self.apart, bool):
            return
        if isinstance(self.apart, str) or not isinstance(self.apart, Sequence):
            raise FeatureError(f"apart is {self.apart!r}: give True, False, or a list of zones.")
        for zone in self.apart:
            if self.zones is not None and zone not in self.zones:
                raise FeatureError(f"apart names zone {zone!r}, which zones leaves out: name it in both.")

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.update((name, None) for name in ("_columns", "_known") if name in state)
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


def row_bytes(X: csr_matrix) -> int:
    """Tell how much memory rows take."""
    return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)


def _names(space: str, wanted: np.ndarray, counts: TermCounts) -> Sequence[str]:
    """Name the wanted ones among the terms, and the n-grams behind them."""
    n_terms = len(wanted) - len(counts.ngrams)
    of_terms = [counts.terms[i] for i in np.flatnonzero(wanted[:n_terms]).tolist()]
    return names_of(space, of_terms + ngram_names(counts, np.flatnonzero(wanted[n_terms:])))


def _frequencies(texts: _Texts, counts: TermCounts, places: np.ndarray, n_columns: int) -> np.ndarray:
    """Count the documents that have each column, given the columns of terms and of n-grams behind them."""
    n_terms = places.shape[1] - len(counts.ngrams)
    terms, ngrams = np.ascontiguousarray(places[:, :n_terms]), np.ascontiguousarray(places[:, n_terms:])
    return document_frequencies(*texts.places(counts), terms, ngrams, n_columns)


def _lengths(counts: TermCounts) -> np.ndarray:
    """Sum the counts of every text."""
    sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts.counts, dtype=np.int64)])
    return np.diff(sums[counts.ends], prepend=0)


def _average_lengths(texts: _Texts, counts: TermCounts) -> dict[str, float]:
    of_zone: dict[str, list[int]] = {}
    for zone, length in zip(texts.zones, _lengths(counts).tolist(), strict=True):
        of_zone.setdefault(zone, []).append(length)
    return {zone: sum(lengths) / len(lengths) for zone, lengths in of_zone.items()}


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
