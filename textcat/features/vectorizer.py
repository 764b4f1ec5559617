"""Turn documents into tf-idf rows of unit length, given what was learnt of their terms."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import scipy  # its sparse matrices are loaded when one is first made: `row_blocks` makes none

from textcat.features._rows import rows
from textcat.features.columns import Columns, Hashed, Named, known_by
from textcat.features.reader import Known
from textcat.features.tokens import TermCounts, Tokens
from textcat.features.zones import Documents, FeatureError, Texts, checked, lay_out

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

DOCUMENTS_PER_BLOCK = 4096
MOST_HASH_BITS = 28

log = logging.getLogger(__name__)

Kind = TypeVar("Kind", bound="Vectorizer")

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


class Rows(NamedTuple):
    """The arrays of rows in CSR form.

    Attributes
    ----------
    indptr : ndarray of shape (n_documents + 1,), int64
    indices : ndarray of shape (n_entries,), int32
        Sorted in each row.
    data : ndarray of shape (n_entries,), float32 or float64
    """

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray


class Vectorizer:
    """Give the rows that `TfIdf` gives, without scikit-learn, whose import takes time and memory.

    For the parameters see there, too. Made by `restore`.

    Attributes
    ----------
    vocabulary_ : dict of str to int
        The column of each term, in alphabetical order; None with `hash_bits`.
    idf_ : ndarray of shape (n_columns,), float64
    n_documents_ : int
        How many there were to learn from.
    average_lengths_ : dict of str to float
        Of zones, in terms; empty but for "bm25".
    tokens_ : Tokens
        What counted the terms.
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
        cls: type[Kind],
        terms: Sequence[str] | None,
        idf: np.ndarray,
        n_documents: int,
        average_lengths: Mapping[str, float] | None = None,
        /,  # `idf` is also the name of a setting
        **settings: Any,
    ) -> Kind:
        """Make one from what a `TfIdf` has learnt.

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

    def transform(self, documents: Documents) -> csr_matrix:
        """Give the rows of documents.

        Returns
        -------
        csr_matrix of shape (n_documents, n_terms)
            With sorted indices. Each row has Euclidean length 1, or no entry.
        """
        blocks = list(map(self._matrix, self.row_blocks(documents)))
        if not blocks:
            return scipy.sparse.csr_matrix((0, len(self.idf_)), dtype=self.dtype)
        return blocks[0] if len(blocks) == 1 else scipy.sparse.vstack(blocks, format="csr")

    def row_blocks(self, documents: Documents) -> Iterator[Rows]:
        """Give the rows of documents as `transform` does, but as bare arrays, and some thousand rows at a time."""
        stream = checked(documents)
        while block := list(islice(stream, DOCUMENTS_PER_BLOCK)):
            texts = self._lay_out(block)
            yield self._rows(texts, self._count(texts, self._known_terms()))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Give the terms in the order of the columns, "#0" and so on with `hash_bits`: shape (n_columns,), object."""
        names = [f"#{i}" for i in range(len(self.idf_))] if self.vocabulary_ is None else list(self.vocabulary_)
        return np.array(names, dtype=object)

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

    def _lay_out(self, documents: Documents) -> Texts:
        return lay_out(documents, self.zones, self.apart)

    def _count(self, texts: Texts, known: Known | None = None) -> TermCounts:
        return self.tokens_.count_terms(texts.texts, ngrams=self.ngrams, chars=self.chars, known=known)

    def _halves(self, texts: Texts, counts: TermCounts) -> np.ndarray:
        """Give, per part, the count that is worth half of what endlessly many are: shape (n_parts,); (0,) for none."""
        if self.weighting != "bm25":
            return np.zeros(0)
        lengths = text_lengths(counts)
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

    def _rows(self, texts: Texts, counts: TermCounts) -> Rows:
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
        found = Rows(indptr, indices[:n].copy(), data[:n].copy())
        log.info("%d rows of %d columns take %.1f MB", len(ends), len(self.idf_), row_bytes(found) / 1e6)
        return found

    def _matrix(self, found: Rows) -> csr_matrix:
        X = scipy.sparse.csr_matrix(found[::-1], shape=(len(found.indptr) - 1, len(self.idf_)))
        X.has_sorted_indices = X.has_canonical_format = True
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
        state = dict(getattr(super(), "__getstate__", self.__dict__.copy)())  # object has one since Python 3.11
        state.update((name, None) for name in ("_columns", "_known") if name in state)
        return state


def row_bytes(X: csr_matrix | Rows) -> int:
    """Tell how much memory rows take."""
    return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)


def text_lengths(counts: TermCounts) -> np.ndarray:
    """Sum the counts of every text."""
    sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts.counts, dtype=np.int64)])
    return np.diff(sums[counts.ends], prepend=0)
