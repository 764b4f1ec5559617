"""Take the steps of `TfIdf` from documents to vectors (rows): count, fit, weigh."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from textcat.base.parameters import Parameters
from textcat.features._rows import release_memory, rows, text_lengths
from textcat.features.columns import NamedColumns, TermColumns, known_terms
from textcat.features.fitting import (
    CountedDocuments,
    Frequencies,
    average_lengths,
    half_saturation,
    inverse_frequencies,
    named_columns,
    term_weights,
    without_rare_ngrams,
)
from textcat.features.rows import Rows, row_bytes
from textcat.features.settings import FeatureError, FeatureSettings, check_settings
from textcat.features.tokens import KnownTerms, TermCounts, Tokens
from textcat.features.zones import SHARED_SPACE, Documents, TextParts, ZoneTexts, checked_documents

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from scipy.sparse import csr_matrix

log = logging.getLogger(__name__)

_Self = TypeVar("_Self", bound="FeatureSteps")


@dataclass(eq=False, repr=False)
class FeatureSteps(Parameters, FeatureSettings):
    """Implement the steps of `TfIdf.fit` and `TfIdf.transform`: count terms, choose columns, compute rows.

    The settings are those of `TfIdf`, which is a subclass.
    """

    tokens: Tokens | None = None
    dtype: Any = field(default=np.float32, kw_only=True)

    @classmethod
    def restore(
        cls: type[_Self],
        terms: Sequence[str],
        idf: np.ndarray,
        n_documents: int,
        average_lengths: Mapping[str, float] | None = None,
        /,  # the method's own parameter `idf` is also the name of a setting
        **settings: Any,
    ) -> _Self:
        """Return fitted features, given their settings and the attributes that fitting has computed.

        `terms` are the names of the columns in order; `idf`, `n_documents` and `average_lengths` are the attributes
        `idf_`, `n_documents_` and `average_lengths_`. FeatureError is raised if a setting is out of range, or `idf`
        does not fit the columns.
        """
        restored = cls(**settings)
        check_settings(vars(restored))
        if len(idf) != len(terms):
            raise FeatureError(
                f"{len(idf)} idf do not fit the {len(terms)} columns: give those learnt with the settings."
            )
        restored.set_fitted(NamedColumns(list(terms)), idf, n_documents, dict(average_lengths or {}))
        return restored

    def count_all(self, documents: Documents) -> tuple[TextParts, TermCounts]:
        """Count the terms and all n-grams of documents, even rare ones; return the documents' parts and the counts.

        A part is a text of a document, with the zone or the shared vocabulary to which its terms belong.
        """
        check_settings(vars(self))
        texts = ZoneTexts(checked_documents(documents), self.zones, self.zone_terms)
        self.take_tokens()
        counts = self.tokens_.count_terms(texts, ngrams=self.ngrams, char_lengths=self.char_lengths)
        release_memory()
        return texts.parts(), counts

    def drop_rare_ngrams(self, parts: TextParts, counts: TermCounts) -> CountedDocuments:
        """Return counted documents without rare n-grams, as `count` does, given what `count_all` has returned.

        The arrays of the counts may be overwritten.
        """
        lengths = text_lengths(counts.ends, counts.counts)
        return CountedDocuments(parts, without_rare_ngrams(parts, counts, self.ngram_min_df), lengths)

    def parts_of_zones(self, documents: Iterable[tuple[str, ...]]) -> TextParts:
        """Return the parts of documents that were counted earlier, given the names of the zones of each document."""
        check_settings(vars(self))
        texts = ZoneTexts((), self.zones, self.zone_terms)
        for names in documents:
            texts.plan_document(names)
        self.take_tokens()
        return texts.parts()

    def fit_counted(
        self: _Self,
        counted: CountedDocuments,
        chosen: ArrayLike | None = None,
        named: ArrayLike | None = None,
        kept: ArrayLike | None = None,
    ) -> _Self:
        """Fit to documents that `count` has counted: to all, or to those at the positions `chosen`, each listed once.

        The documents at the positions `named` are not fitted to, but all of their terms get a column, as do the shared
        terms with the ids `kept`, unless `max_features` excludes them.

        The documents must have been counted with the same `tokens`, `zones`, `zone_terms`, `ngrams`, `chars` and
        `char_min`, and with an `ngram_min_df` that was not higher than the present one.
        """
        check_settings(vars(self))
        parts, counts, lengths = counted
        if chosen is not None:
            parts = parts.select(np.asarray(chosen, np.int64))
        n_documents = len(parts.ends)
        if not n_documents:
            raise FeatureError("There is no document to learn terms from: give at least one.")
        most = max(1, math.floor(self.char_max_df * n_documents))
        allowed = Frequencies(self.min_df, self.ngram_min_df, most)
        described = None if named is None else counted.parts.select(np.asarray(named, np.int64))
        kept = None if kept is None else np.asarray(kept, np.int64)
        fitted = named_columns(parts, counts, allowed, self.max_features, described, kept)
        averages = average_lengths(parts, lengths) if self.weighting == "bm25" else {}
        self.set_fitted(fitted.named, self.idf_of(fitted.df, n_documents), n_documents, averages, fitted.columns)
        return self

    def rows_of(self, counted: CountedDocuments, chosen: ArrayLike | None = None) -> csr_matrix:
        """Return the vectors of documents that `count` has counted, as rows of a matrix, as `transform` returns them.

        If `chosen` is given, return only the vectors of the documents at these positions.
        """
        self.check_is_fitted()  # `count` alone does not fit anything
        parts = counted.parts if chosen is None else counted.parts.select(np.asarray(chosen, np.int64))
        return self.matrix(self.rows_of_counts(parts, counted.counts, counted.lengths))

    def idf_of(self, df: np.ndarray, n_documents: int) -> np.ndarray:
        """Return the idf of each document frequency in `df`; it is 0 where df is 0."""
        return inverse_frequencies(df, n_documents, self.idf)

    def set_fitted(
        self,
        named: NamedColumns,
        idf: np.ndarray,
        n_documents: int,
        averages: dict[str, float],
        columns: TermColumns | None = None,
    ) -> None:
        """Set the attributes of fitted features: `idf_`, `n_documents_`, `average_lengths_`, and the columns."""
        self.take_tokens()
        self._named, self.n_documents_, self.average_lengths_ = named, n_documents, averages
        self.idf_ = np.ascontiguousarray(idf, np.float64)
        self._columns = columns
        self._terms: KnownTerms | None = None

    @property
    def vocabulary_(self) -> dict[str, int]:
        """The column of each term, in alphabetical order."""
        return self._named.column_of

    def listed_names(self) -> list[str]:
        """Return the names of the columns, as a list that must not be changed."""
        return self._named.names

    def zone_prefixes(self) -> tuple[str, ...]:
        """Return a prefix such as "title:" for each zone that `zone_terms` lists; () if it is True or False."""
        return tuple(f"{zone}:" for zone in self.zone_terms) if isinstance(self.zone_terms, (list, tuple)) else ()

    def known_terms(self) -> KnownTerms | None:
        """Return the terms that can have a column, so that only these are counted; None if any term can have one."""
        if self._terms is None and not self.chars:
            self._terms = known_terms(self._named.names, self.ngrams, zone_terms=bool(self.zone_terms))
        return self._terms

    def take_tokens(self) -> None:
        """Set `tokens_` to the parameter `tokens`, or to `Tokens()` if that is None."""
        if self.tokens is not None and not isinstance(self.tokens, Tokens):
            raise FeatureError(f"tokens is {self.tokens!r:.60}: give Tokens, such as Tokens(lang='en'), or None.")
        self.tokens_ = Tokens() if self.tokens is None else self.tokens

    def counted_texts(self, documents: Documents) -> tuple[TextParts, TermCounts, np.ndarray]:
        """Count the terms of documents; return the arguments of `rows_of_counts`: parts, counts, lengths of texts."""
        texts = ZoneTexts(documents, self.zones, self.zone_terms)
        known_terms = self.known_terms()
        counts = self.tokens_.count_terms(
            texts, ngrams=self.ngrams, char_lengths=self.char_lengths, known_terms=known_terms
        )
        return texts.parts(), counts, text_lengths(counts.ends, counts.counts)

    def columns_of(self, parts: TextParts, counts: TermCounts) -> tuple[np.ndarray, np.ndarray]:
        """Return the columns of terms and of n-grams: two arrays with a row per name in `parts.names`.

        See `TermColumns.of`.
        """
        columns = self._columns
        if columns is None or columns.terms is not counts.terms:
            shared = self._terms.columns if self._terms is not None and self._terms.terms is counts.terms else None
            keys = {SHARED_SPACE: shared} if shared else None
            columns = self._columns = TermColumns(counts.terms, self._named, keys)
        return columns.of(parts.names, counts)

    def occurrence_weights(
        self, parts: TextParts, counts: TermCounts, lengths: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, float, np.ndarray]:
        """Return the arguments `weights`, `halves`, `ngram_weight`, `term_weights` of the compiled function `rows`."""
        half = np.zeros(0)
        if self.weighting == "bm25":
            half = half_saturation(parts, lengths, self.average_lengths_, self.k1, self.b)
        return parts.weights, half, self.ngram_weight, term_weights(counts, self.char_weight if self.chars else None)

    def rows_of_counts(
        self, parts: TextParts, counts: TermCounts, lengths: np.ndarray, columns: TermColumns | None = None
    ) -> Rows:
        """Return document vectors, given the results of `counted_texts`; `columns` None: with the fitted columns."""
        of_terms = self.columns_of(parts, counts) if columns is None else columns.of(parts.names, counts)
        sizes = np.diff(counts.ends, prepend=0)
        n_entries = int(sizes[parts.sources].sum())
        data = np.empty(n_entries, self.dtype)
        indices = np.empty(n_entries, np.int32)
        weighed = *self.occurrence_weights(parts, counts, lengths), *of_terms, self.idf_, self.sublinear_tf
        ends = rows(*parts.arguments(counts, counts.counts), *weighed, data, indices)
        indptr = np.concatenate([np.zeros(1, np.int64), ends])
        for array in (indices, data):  # normalised in place: nothing else refers to them
            array.resize(indptr[-1], refcheck=False)
        arrays = Rows(indptr, indices, data)
        log.info("%d rows of %d columns take %.1f MB", len(ends), len(self.idf_), row_bytes(arrays) / 1e6)
        return arrays

    def matrix(self, rows: Rows) -> csr_matrix:
        """Return document vectors in CSR form as a matrix, which shares their arrays."""
        return rows.matrix(len(self.idf_))

    def check_is_fitted(self) -> None:
        """Raise scikit-learn's NotFittedError if the features are not fitted."""
        if not hasattr(self, "idf_"):
            from sklearn.utils.validation import check_is_fitted

            check_is_fitted(self, "idf_")

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | dict.fromkeys(self.__dict__.keys() & {"_columns", "_terms"})
