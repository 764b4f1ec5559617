"""Fit to documents which terms count, and how much; turn documents into tf-idf rows of unit length."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from textcat.features._rows import document_frequencies, keep_ngrams, release_memory, text_lengths
from textcat.features.tokens import TermCounts
from textcat.features.vectorizer import Vectorizer
from textcat.features.zones import (
    Documents,
    FeatureError,
    TermColumns,
    TextParts,
    ZoneTexts,
    checked_documents,
    feature_names,
    ngram_names,
)


class CountedDocuments(NamedTuple):
    """Document-term counts: what rows are made of, whichever of the documents terms are weighed by."""

    parts: TextParts
    counts: TermCounts  # but of n-grams that too few documents have
    lengths: np.ndarray  # of the texts, by all terms and n-grams: shape (n_texts,), int64


class TfIdf(Vectorizer, TransformerMixin, BaseEstimator):
    """Weigh terms by frequency and rarity.

    Row i is `x / |x|` with `x[t] = tf(t, i) · idf(t)`. `tf(t, i)` is the sum over the zones of document i of the zone's
    weight times n, the number of occurrences of t in the zone (or a function of n: see `sublinear_tf` and `weighting`).
    `idf(t)` is log(m / df(t)) (natural logarithm), where m is the number of training documents and df(t) the number of
    those that have t (or see `idf`). Terms that no training document has, and terms whose idf is 0, get no entry. A
    document without any entry has an empty row.

    Parameters
    ----------
    tokens : Tokens, optional
        What counts as a term; by default the lower-cased alphabetic tokens of English that are no stop words.
    zones : dict of str to float, optional
        The weight of each zone, above 0, such as `{"title": 2, "body": 1}`; other zones are left out. By default all
        zones have the weight 1. A document given as a string has the single zone "body".
    zone_terms : bool or list of str, default=False
        Which zones have terms of their own, named "title:word". False: none, all zones share their terms. True: all of
        them, and no terms are shared. A list: these zones, whose words count as shared terms, too.
    ngrams : {1, 2, 3}, default=1
        Add the n-grams of up to this many terms that follow each other within a zone, named "word word".
    ngram_min_df : int, default=2
        Leave out n-grams of terms that occur in fewer training documents than this.
    ngram_weight : float, default=1.0
        Weight of an n-gram of terms, where a term has 1: 0.5 keeps the many rare n-grams from outweighing the terms of
        rare topics.
    chars : int, default=0
        Add the n-grams of this many characters within each term, with a space at either end, named "~abc~"; 0: none.
    char_weight : float, default=1.0
        Weight of an n-gram of characters, where a term has 1. Each term has several: 0.5 is a good start.
    min_df : int, default=1
        Leave out terms, and n-grams of characters, that occur in fewer training documents than this.
    max_features : int, optional
        Keep this many terms, those that occur in the most training documents; among equals, the first in alphabetical
        order.
    hash_bits : int, optional
        Take for each term the column given by its hash (MurmurHash3), out of 2**hash_bits, and keep no vocabulary:
        memory has a bound, and terms have no names. Terms that share a column count as one. df and min_df are those of
        columns; ngram_min_df has no effect.
    weighting : {"tfidf", "bm25"}, default="tfidf"
        "bm25": n occurrences count n / (n + k1 · (1 - b + b · l / a)), where l is the number of terms in the zone, and
        a the average of l over the training documents that have the zone.
    sublinear_tf : bool, default=False
        With "tfidf": n occurrences in a zone count 1 + log n instead of n.
    k1 : float, default=1.2
        With "bm25": the larger k1, the more further occurrences of a term count; 0: only the first one counts.
    b : float, default=0.75
        With "bm25": from 0 to 1, how much less an occurrence counts in a longer zone; 0: length has no effect.
    idf : {"log", "smooth", "none"}, default="log"
        "smooth": 1 + log((1 + m) / (1 + df)), by which terms that all documents have keep some weight; "none": 1.
    dtype : {numpy.float32, numpy.float64}, default=numpy.float32
        Number type of the rows. They are computed in float64.

    Attributes
    ----------
    vocabulary_ : dict of str to int
        The column of each term, in alphabetical order; None with `hash_bits`.
    idf_ : ndarray of shape (n_columns,), float64
        The idf of each column.
    n_documents_ : int
        m, the number of training documents.
    average_lengths_ : dict of str to float
        a by zone, with "bm25"; else empty.
    tokens_ : Tokens
        What counted the terms.

    Source: G. Salton, C. Buckley, Term-weighting approaches in automatic text retrieval, Information Processing &
    Management 24 (1988). BM25: S. Robertson, H. Zaragoza, The probabilistic relevance framework, Foundations and Trends
    in Information Retrieval 3 (2009); its factor k1 + 1 is left out, as rows have unit length.
    """

    def fit(self, documents: Documents, y: Any = None) -> TfIdf:
        """Learn terms and document frequencies.

        Parameters
        ----------
        documents : iterable of str, or of documents with `zones`
            A string has the single zone "body".
        y : ignored

        Returns
        -------
        TfIdf

        Raises
        ------
        ValueError
            If there is no document, one is neither of these, or a parameter is out of range.
        """
        return self.fit_counted(self.count(documents))

    def fit_transform(self, documents: Documents, y: Any = None) -> csr_matrix:
        """Learn from documents and return their rows, counting once.

        Parameters
        ----------
        documents, y
            As for `fit`.

        Returns
        -------
        csr_matrix of shape (n_documents, n_terms)
        """
        counted = self.count(documents)
        return self.fit_counted(counted).rows_of(counted)

    def count(self, documents: Documents) -> CountedDocuments:
        """Count the terms of documents once, so that features can be fitted to several choices of them."""
        return self.restrict_to_vocabulary(*self.count_all(documents))

    def count_all(self, documents: Documents) -> tuple[TextParts, TermCounts]:
        """Count all terms of documents, and n-grams however rare."""
        self.check_settings()
        texts = ZoneTexts(checked_documents(documents), self.zones, self.zone_terms)
        self.take_tokens()
        counts, parts = self.count_texts(texts), texts.parts()
        release_memory()
        return parts, counts

    def restrict_to_vocabulary(self, parts: TextParts, counts: TermCounts) -> CountedDocuments:
        """Return counts in the form that rows are made of; the arrays given may be written over."""
        lengths = text_lengths(counts.ends, counts.counts)
        return CountedDocuments(parts, counts if self.hash_bits else self._without_rare(parts, counts), lengths)

    def parts_of(self, documents: Iterable[tuple[str, ...]]) -> TextParts:
        """Return the parts of documents that were counted, given the names of the zones that each has."""
        self.check_settings()
        self.take_tokens()
        return ZoneTexts((), self.zones, self.zone_terms).parts_of_names(documents)

    def fit_counted(self, counted: CountedDocuments, chosen: ArrayLike | None = None) -> TfIdf:
        """Learn from documents that `count` has counted, by default from all; those chosen are positions, each once.

        They must be counted by the same `tokens`, `zones`, `zone_terms`, `ngrams`, `chars` and `hash_bits`, and no
        lower `ngram_min_df`.
        """
        self.check_settings()
        parts, counts, lengths = counted
        if chosen is not None:
            parts = parts.select(np.asarray(chosen, np.int64))
        m = len(parts.ends)
        if not m:
            raise FeatureError("There is no document to learn terms from: give at least one.")
        vocabulary, df, columns = self._hashed(parts, counts) if self.hash_bits else self._named(parts, counts)
        distinct, positions = np.unique(df, return_inverse=True)
        idf = np.array([self.idf_of(n, m) for n in distinct.tolist()], np.float64)[positions]
        averages = _average_lengths(parts, lengths) if self.weighting == "bm25" else {}
        self.keep(vocabulary, idf, m, averages, columns)
        return self

    def rows_of(self, counted: CountedDocuments, chosen: ArrayLike | None = None) -> csr_matrix:
        """Return the rows of documents that `count` has counted, as `transform` does; those chosen are positions."""
        check_is_fitted(self, "idf_")  # `count` alone has fitted nothing
        parts = counted.parts if chosen is None else counted.parts.select(np.asarray(chosen, np.int64))
        return self.matrix(self.rows_of_counts(parts, counted.counts, counted.lengths))

    # scikit-learn looks for the next two here, not in the base class.

    def transform(self, documents: Documents) -> csr_matrix:
        """Return the rows of documents: shape (n_documents, n_terms), each of length 1 or empty, in `dtype`."""
        check_is_fitted(self)
        return super().transform(documents)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the terms in the order of the columns, "#0" and so on with `hash_bits`: shape (n_columns,), object."""
        check_is_fitted(self)
        return super().get_feature_names_out()

    def _hashed(self, parts: TextParts, counts: TermCounts) -> tuple[None, np.ndarray, TermColumns]:
        """Return no vocabulary, the columns' df or 0 where that is too small, and the columns by hash."""
        bits = self.hash_bits or 0
        columns = TermColumns(counts.terms, None, bits)
        df = document_frequencies(*parts.arguments(counts), *columns.of(parts.names, counts), 2**bits)
        return None, np.where(df >= self.min_df, df, 0), columns

    def _named(self, parts: TextParts, counts: TermCounts) -> tuple[dict[str, int], np.ndarray, TermColumns]:
        """Return the vocabulary, the df of its terms, and the columns by name.

        Terms are first counted by their ids, so that the many that are too rare need no name.
        """
        common = self._common(parts, counts)
        names = [name for space, ids in zip(parts.names, common, strict=True) for name in _names(space, ids, counts)]
        terms = sorted(set(names))  # terms that read alike are one column: "a b" may be a term and an n-gram
        column_of = dict(zip(terms, range(len(terms)), strict=True))
        columns = np.full(common.shape, -1, np.int32)
        columns[common] = [column_of[name] for name in names]
        df = _frequencies(parts, counts, columns, len(terms))
        if self.max_features is not None:
            kept = np.sort(np.argsort(-df, kind="stable")[: self.max_features])
            moved = np.full(len(terms) + 1, -1, np.int32)  # its last entry is where -1 stays -1
            moved[kept] = np.arange(len(kept))
            columns, df, terms = moved[columns], df[kept], [terms[i] for i in kept.tolist()]
        vocabulary = dict(zip(terms, range(len(terms)), strict=True))
        n_terms = common.shape[1] - len(counts.ngrams)
        keys = {space: (row[:n_terms], row[n_terms:]) for space, row in zip(parts.names, columns, strict=True)}
        return vocabulary, df, TermColumns(counts.terms, vocabulary, keys=keys)

    def _common(self, parts: TextParts, counts: TermCounts) -> np.ndarray:
        """Return which terms, and n-grams behind them, are common enough: (n_spaces, n_terms + n_ngrams), bool."""
        n_terms = len(counts.terms)
        shape = (len(parts.names), n_terms + len(counts.ngrams))
        columns = np.arange(shape[0] * shape[1], dtype=np.int32).reshape(shape)
        df = _frequencies(parts, counts, columns, columns.size).reshape(shape)
        return np.hstack([df[:, :n_terms] >= self.min_df, df[:, n_terms:] >= self.ngram_min_df])

    def _without_rare(self, parts: TextParts, counts: TermCounts) -> TermCounts:
        """Return counts without the n-grams that are too rare in all documents, and so in any of them: most are."""
        n_terms, (left, right) = len(counts.terms), counts.ngrams.T
        kept = np.array(self._common(parts, counts)[:, n_terms:].any(axis=0))
        kept[~left[kept & (left < 0)]] = True  # what a longer one begins with, for its name
        new = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)
        left, right = left[kept], right[kept]
        longer = left < 0
        left[longer] = ~new[~left[longer]]
        n = keep_ngrams(counts.ends, counts.ids, counts.counts, new)
        ids, occurrences = counts.ids[:n].copy(), counts.counts[:n].copy()
        # A list of its own: the tokens' one is that of n-grams by other positions.
        terms = list(counts.terms)
        return TermCounts(counts.ends, ids, occurrences, terms, np.column_stack([left, right]), counts.chars)

    def idf_of(self, df: int, m: int) -> float:
        if df == 0 or self.idf == "none":
            return float(df > 0)
        return 1 + math.log((1 + m) / (1 + df)) if self.idf == "smooth" else math.log(m / df)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


def _names(space: str, selected: np.ndarray, counts: TermCounts) -> list[str]:
    """Return the names of the selected ones among the terms, and the n-grams behind them."""
    n_terms = len(selected) - len(counts.ngrams)
    terms = [counts.terms[i] for i in np.flatnonzero(selected[:n_terms]).tolist()]
    return list(feature_names(space, terms + ngram_names(counts, np.flatnonzero(selected[n_terms:]))))


def _frequencies(parts: TextParts, counts: TermCounts, columns: np.ndarray, n_columns: int) -> np.ndarray:
    """Count the documents that have each column, given the columns of terms and of n-grams behind them."""
    n_terms = columns.shape[1] - len(counts.ngrams)
    terms, ngrams = np.ascontiguousarray(columns[:, :n_terms]), np.ascontiguousarray(columns[:, n_terms:])
    return document_frequencies(*parts.arguments(counts), terms, ngrams, n_columns)


def _average_lengths(parts: TextParts, lengths: np.ndarray) -> dict[str, float]:
    of_zone: dict[str, list[int]] = {}
    for text in np.unique(parts.sources).tolist():
        of_zone.setdefault(parts.zones[text], []).append(int(lengths[text]))
    return {zone: sum(lengths) / len(lengths) for zone, lengths in of_zone.items()}
