"""Turn documents into tf-idf rows of unit length by a fitted vocabulary, without scikit-learn."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import islice
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from textcat.features._rows import rows, text_lengths
from textcat.features.tokens import TermCounts, Tokens, Vocabulary
from textcat.features.zones import (
    SHARED_SPACE,
    Documents,
    FeatureError,
    TermColumns,
    TextParts,
    ZoneTexts,
    checked_documents,
    vocabulary_of,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_DOCUMENTS_PER_BLOCK = 4096
_MAX_HASH_BITS = 28
_MAX_INT = 2**31 - 1

log = logging.getLogger(__name__)

_Self = TypeVar("_Self", bound="Vectorizer")


def _whole(least: int, most: int = _MAX_INT, *, optional: bool = False) -> Callable[[Any], bool]:
    return lambda n: (
        optional if n is None else isinstance(n, Integral) and not isinstance(n, bool) and least <= int(n) <= most
    )


def _is_positive(x: Any) -> bool:
    return isinstance(x, Real) and 0 < float(x) < math.inf


# What each parameter may be, and how to say so.
_CHECKS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "zone_terms": (
        lambda x: isinstance(x, bool) or (isinstance(x, Sequence) and not isinstance(x, str)),
        "True, False, or a list of zones",
    ),
    "ngrams": (_whole(1, 3), "1, 2 or 3"),
    "chars": (_whole(0), "a whole number of characters, or 0 for none"),
    "min_df": (_whole(1), "a whole number of documents, at least 1"),
    "ngram_min_df": (_whole(1), "a whole number of documents, at least 1"),
    "max_features": (_whole(1, optional=True), "a whole number, at least 1, or None"),
    "hash_bits": (_whole(1, _MAX_HASH_BITS, optional=True), f"a whole number from 1 to {_MAX_HASH_BITS}, or None"),
    "weighting": (lambda x: x in ("tfidf", "bm25"), "'tfidf' or 'bm25'"),
    "idf": (lambda x: x in ("log", "smooth", "none"), "'log' or 'smooth' or 'none'"),
    "ngram_weight": (_is_positive, "a positive number"),
    "char_weight": (_is_positive, "a positive number"),
    "k1": (lambda x: isinstance(x, Real) and 0 <= float(x) < math.inf, "a number, at least 0"),
    "b": (lambda x: isinstance(x, Real) and 0 <= float(x) <= 1, "a number from 0 to 1"),
    "dtype": (lambda x: np.dtype(x) in (np.float32, np.float64), "numpy.float32 or numpy.float64"),
}


class Rows(NamedTuple):
    """The arrays of rows in CSR form."""

    indptr: np.ndarray  # shape (n_documents + 1,), int64
    indices: np.ndarray  # shape (n_entries,), int32, sorted in each row
    data: np.ndarray  # shape (n_entries,), float32 or float64

    @classmethod
    def of(cls, matrix: Any) -> Rows:
        """Return the arrays of a matrix in CSR form, as compiled code takes them."""
        return cls(matrix.indptr.astype(np.int64, copy=False), matrix.indices.astype(np.int32, copy=False), matrix.data)


@dataclass(eq=False, repr=False)
class Vectorizer:
    """Return the rows that a fitted `TfIdf` returns, without scikit-learn, whose import takes time and memory.

    Made by `_restore`. Its parameters and attributes are those of `TfIdf`.
    """

    tokens: Tokens | None = None
    _: KW_ONLY
    zones: Mapping[str, float] | None = None
    zone_terms: bool | Sequence[str] = False
    ngrams: int = 1
    ngram_min_df: int = 2
    ngram_weight: float = 1.0
    chars: int = 0
    char_weight: float = 1.0
    min_df: int = 1
    max_features: int | None = None
    hash_bits: int | None = None
    weighting: str = "tfidf"
    sublinear_tf: bool = False
    k1: float = 1.2
    b: float = 0.75
    idf: str = "log"
    dtype: Any = np.float32

    @classmethod
    def restore(
        cls: type[_Self],
        terms: Sequence[str] | None,
        idf: np.ndarray,
        n_documents: int,
        average_lengths: Mapping[str, float] | None = None,
        /,  # `idf` is also the name of a setting
        **settings: Any,
    ) -> _Self:
        """Return one of what a `TfIdf` was fitted to: the keys of its `vocabulary_`, other attributes, parameters."""
        restored = cls(**settings)
        restored.check_settings()
        vocabulary = None if terms is None else dict(zip(terms, range(len(terms)), strict=True))
        n_columns = 2**restored.hash_bits if restored.hash_bits else len(vocabulary or {})
        if (vocabulary is None) != bool(restored.hash_bits) or len(idf) != n_columns:
            raise FeatureError(
                f"{len(idf)} idf do not fit the {n_columns} columns: give those learnt with the settings."
            )
        restored.keep(vocabulary, idf, n_documents, dict(average_lengths or {}))
        return restored

    def transform(self, documents: Documents) -> csr_matrix:
        """Return the rows of documents: shape (n_documents, n_terms), each of length 1 or without an entry."""
        from scipy import sparse  # here, for `row_blocks` makes no matrix

        blocks = list(map(self.matrix, self.row_blocks(documents)))
        if not blocks:
            return sparse.csr_matrix((0, len(self.idf_)), dtype=self.dtype)
        return blocks[0] if len(blocks) == 1 else sparse.vstack(blocks, format="csr")

    def row_blocks(self, documents: Documents) -> Iterator[Rows]:
        """Yield the rows of documents as `transform` returns them, but as bare arrays, some thousand rows at a time."""
        stream = checked_documents(documents)
        while block := list(islice(stream, _DOCUMENTS_PER_BLOCK)):
            yield self.rows_of_counts(*self.counted_texts(block))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the terms in the order of the columns, "#0" and so on with `hash_bits`: shape (n_columns,), object."""
        return np.array(self.listed_names(), dtype=object)

    def keep(
        self,
        vocabulary: dict[str, int] | None,
        idf: np.ndarray,
        n: int,
        averages: dict[str, float],
        columns: Any = None,
    ) -> None:
        self.take_tokens()
        self.vocabulary_, self.n_documents_, self.average_lengths_ = vocabulary, n, averages
        self.idf_ = np.ascontiguousarray(idf, np.float64)
        self._columns: TermColumns | None = columns
        self._terms: Vocabulary | None = None
        self._name_list: list[str] | None = None

    def listed_names(self) -> list[str]:
        """Return the names of the columns: those of a vocabulary, in a list that is kept."""
        if self._name_list is None:
            self._name_list = list(self.vocabulary_ or (f"#{i}" for i in range(len(self.idf_))))
        return self._name_list

    def zone_prefixes(self) -> tuple[str, ...]:
        """Return how the names of terms begin that zones have for themselves, beside those that are shared."""
        return tuple(f"{zone}:" for zone in self.zone_terms) if isinstance(self.zone_terms, (list, tuple)) else ()

    def _known_terms(self) -> Vocabulary | None:
        """Return what can have a column, so that the rest is passed over; None where that may be any term."""
        if self._terms is None and self.vocabulary_ is not None and not self.chars:
            self._terms = vocabulary_of(self.vocabulary_, self.ngrams, zone_terms=bool(self.zone_terms))
        return self._terms

    def take_tokens(self) -> None:
        self.tokens_ = Tokens() if self.tokens is None else self.tokens

    def count_texts(self, texts: ZoneTexts, vocabulary: Vocabulary | None = None) -> TermCounts:
        return self.tokens_.count_terms(texts, ngrams=self.ngrams, chars=self.chars, vocabulary=vocabulary)

    def _saturation(self, parts: TextParts, lengths: np.ndarray) -> np.ndarray:
        """Return, per part, the count that is worth half of what endlessly many are: shape (n_parts,); (0,): none."""
        if self.weighting != "bm25":
            return np.zeros(0)
        average = np.array([self.average_lengths_.get(zone, 0.0) for zone in parts.zones], np.float64)
        # A zone that no training document has, or none with a term, is as long as any.
        relative = np.divide(lengths, average, out=np.ones(len(lengths)), where=average > 0)
        return (self.k1 * (1 - self.b + self.b * relative))[parts.sources]

    def _term_weights(self, counts: TermCounts) -> np.ndarray:
        """Return what each term counts: shape (n_terms,); (0,) if all count the same."""
        if not self.chars:
            return np.zeros(0)
        weights = np.ones(len(counts.terms))
        weights[counts.chars] = self.char_weight
        return weights

    def counted_texts(self, documents: Documents) -> tuple[TextParts, TermCounts, np.ndarray]:
        """Return the parts, counts and lengths of documents, of which `_rows` makes rows."""
        texts = ZoneTexts(documents, self.zones, self.zone_terms)
        counts = self.count_texts(texts, self._known_terms())
        return texts.parts(), counts, text_lengths(counts.ends, counts.counts)

    def columns_of(self, parts: TextParts, counts: TermCounts) -> tuple[np.ndarray, np.ndarray]:
        """Return the columns of terms and n-grams, by space and id: see `TermColumns.of`."""
        columns = self._columns
        if columns is None or columns.terms is not counts.terms:
            known = self._terms is not None and self._terms.terms is counts.terms and self._terms.columns
            keys = {SHARED_SPACE: known} if known else None
            columns = self._columns = TermColumns(counts.terms, self.vocabulary_, self.hash_bits or 0, keys)
        return columns.of(parts.names, counts)

    def weights_of(
        self, parts: TextParts, counts: TermCounts, lengths: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, float, np.ndarray]:
        """Return what occurrences count: by part, how they saturate there, for n-grams, and by term."""
        return parts.weights, self._saturation(parts, lengths), self.ngram_weight, self._term_weights(counts)

    def rows_of_counts(self, parts: TextParts, counts: TermCounts, lengths: np.ndarray) -> Rows:
        columns = self.columns_of(parts, counts)
        sizes = np.diff(counts.ends, prepend=0)
        n_entries = int(sizes[parts.sources].sum())
        data = np.empty(n_entries, self.dtype)
        indices = np.empty(n_entries, np.int32)
        weighed = *self.weights_of(parts, counts, lengths), *columns, self.idf_, self.sublinear_tf
        ends = rows(*parts.arguments(counts, counts.counts), *weighed, data, indices)
        indptr = np.concatenate([np.zeros(1, np.int64), ends])
        for array in (indices, data):  # made shorter where they lie: nothing else refers to them
            array.resize(indptr[-1], refcheck=False)
        arrays = Rows(indptr, indices, data)
        log.info("%d rows of %d columns take %.1f MB", len(ends), len(self.idf_), row_bytes(arrays) / 1e6)
        return arrays

    def matrix(self, arrays: Rows) -> csr_matrix:
        from scipy import sparse

        X = sparse.csr_matrix(arrays[::-1], shape=(len(arrays.indptr) - 1, len(self.idf_)))
        X.has_sorted_indices = X.has_canonical_format = True
        return X

    def check_settings(self) -> None:
        for zone, weight in (self.zones or {}).items():
            if not _is_positive(weight):
                raise FeatureError(f"The weight of zone {zone!r} is {weight!r}: give a positive number.")
        for name, (fits, what) in _CHECKS.items():
            if not fits(getattr(self, name)):
                raise FeatureError(f"{name} is {getattr(self, name)!r}: give {what}.")
        for zone in () if isinstance(self.zone_terms, bool) else self.zone_terms:
            if self.zones is not None and zone not in self.zones:
                raise FeatureError(f"zone_terms names zone {zone!r}, which zones leaves out: name it in both.")
        if self.weighting == "bm25" and self.sublinear_tf:
            raise FeatureError("sublinear_tf is True, and bm25 has its own way of counting: leave one of them out.")
        if self.hash_bits is not None and self.max_features is not None:
            raise FeatureError("hash_bits keeps no terms for max_features to choose from: leave one of them out.")

    def __getstate__(self) -> dict[str, Any]:
        state = dict(getattr(super(), "__getstate__", self.__dict__.copy)())  # object has one since Python 3.11
        state.update((name, None) for name in ("_columns", "_terms", "_name_list") if name in state)
        return state


def row_bytes(X: csr_matrix | Rows) -> int:
    """Return the bytes of memory that rows take."""
    return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
