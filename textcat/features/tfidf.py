"""Fit to documents which terms count, and how much; turn documents into tf-idf rows of unit length."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from textcat.features._rows import release_memory, rows, text_lengths
from textcat.features.columns import TermColumns, known_terms
from textcat.features.fitting import (
    CountedDocuments,
    average_lengths,
    hashed_columns,
    inverse_frequencies,
    named_columns,
    without_rare_ngrams,
)
from textcat.features.rows import Rows, row_bytes
from textcat.features.settings import FeatureError, Parameters, check_settings
from textcat.features.tokens import KnownTerms, TermCounts, Tokens
from textcat.features.zones import SHARED_SPACE, Documents, TextParts, ZoneTexts, checked_documents

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from scipy.sparse import csr_matrix

DOCUMENTS_PER_BLOCK = 4096

log = logging.getLogger(__name__)

_Self = TypeVar("_Self", bound="TfIdf")


@dataclass(eq=False, repr=False)
class TfIdf(Parameters):
    """Weigh terms by frequency and rarity.

    Row i is `x / |x|` with `x[t] = tf(t, i) · idf(t)`. `tf(t, i)` is the sum over the zones of document i of the zone's
    weight times n, the number of occurrences of t in the zone (or a function of n: see `sublinear_tf` and `weighting`).
    `idf(t)` is log(m / df(t)) (natural logarithm), where m is the number of training documents and df(t) the number of
    those that have t (or see `idf`). Terms that no training document has, and terms whose idf is 0, get no entry. A
    document without any entry has an empty row.

    It is a transformer of scikit-learn, whose import takes time and memory, and which it imports only to answer it.

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
        """Return what was fitted, given the keys of its `vocabulary_`, its other attributes and its parameters."""
        restored = cls(**settings)
        check_settings(restored)
        vocabulary = None if terms is None else dict(zip(terms, range(len(terms)), strict=True))
        n_columns = 2**restored.hash_bits if restored.hash_bits else len(vocabulary or {})
        if (vocabulary is None) != bool(restored.hash_bits) or len(idf) != n_columns:
            raise FeatureError(
                f"{len(idf)} idf do not fit the {n_columns} columns: give those learnt with the settings."
            )
        restored.set_fitted(vocabulary, idf, n_documents, dict(average_lengths or {}))
        return restored

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

    def transform(self, documents: Documents) -> csr_matrix:
        """Return the rows of documents: shape (n_documents, n_terms), each of length 1 or empty, in `dtype`."""
        from scipy import sparse  # here, for `row_blocks` makes no matrix

        self._check_is_fitted()
        blocks = list(map(self.matrix, self.row_blocks(documents)))
        if not blocks:
            return sparse.csr_matrix((0, len(self.idf_)), dtype=self.dtype)
        return blocks[0] if len(blocks) == 1 else sparse.vstack(blocks, format="csr")

    def row_blocks(self, documents: Documents) -> Iterator[Rows]:
        """Yield the rows of documents as `transform` returns them, but as bare arrays, some thousand rows at a time."""
        stream = checked_documents(documents)
        while block := list(islice(stream, DOCUMENTS_PER_BLOCK)):
            yield self.rows_of_counts(*self.counted_texts(block))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the terms in the order of the columns, "#0" and so on with `hash_bits`: shape (n_columns,), object."""
        self._check_is_fitted()
        return np.array(self.listed_names(), dtype=object)

    def count(self, documents: Documents) -> CountedDocuments:
        """Count the terms of documents once, so that features can be fitted to several choices of them."""
        return self.drop_rare_ngrams(*self.count_all(documents))

    def count_all(self, documents: Documents) -> tuple[TextParts, TermCounts]:
        """Count all terms of documents, and n-grams however rare."""
        check_settings(self)
        texts = ZoneTexts(checked_documents(documents), self.zones, self.zone_terms)
        self.take_tokens()
        counts, parts = self.count_texts(texts), texts.parts()
        release_memory()
        return parts, counts

    def drop_rare_ngrams(self, parts: TextParts, counts: TermCounts) -> CountedDocuments:
        """Return what `count_all` has counted as `count` does; the arrays given may be written over."""
        lengths = text_lengths(counts.ends, counts.counts)
        if not self.hash_bits:
            counts = without_rare_ngrams(parts, counts, self.ngram_min_df)
        return CountedDocuments(parts, counts, lengths)

    def parts_of_zones(self, documents: Iterable[tuple[str, ...]]) -> TextParts:
        """Return the parts of documents that were counted, given the names of the zones that each has."""
        check_settings(self)
        self.take_tokens()
        return ZoneTexts((), self.zones, self.zone_terms).parts_of_names(documents)

    def fit_counted(self, counted: CountedDocuments, chosen: ArrayLike | None = None) -> TfIdf:
        """Learn from documents that `count` has counted, by default from all; those chosen are positions, each once.

        They must be counted by the same `tokens`, `zones`, `zone_terms`, `ngrams`, `chars` and `hash_bits`, and no
        lower `ngram_min_df`.
        """
        check_settings(self)
        parts, counts, lengths = counted
        if chosen is not None:
            parts = parts.select(np.asarray(chosen, np.int64))
        n_documents = len(parts.ends)
        if not n_documents:
            raise FeatureError("There is no document to learn terms from: give at least one.")
        if self.hash_bits:
            fitted = hashed_columns(parts, counts, self.hash_bits, self.min_df)
        else:
            fitted = named_columns(parts, counts, self.min_df, self.ngram_min_df, self.max_features)
        averages = average_lengths(parts, lengths) if self.weighting == "bm25" else {}
        self.set_fitted(fitted.vocabulary, self.idf_of(fitted.df, n_documents), n_documents, averages, fitted.columns)
        return self

    def rows_of(self, counted: CountedDocuments, chosen: ArrayLike | None = None) -> csr_matrix:
        """Return the rows of documents that `count` has counted, as `transform` does; those chosen are positions."""
        self._check_is_fitted()  # `count` alone has fitted nothing
        parts = counted.parts if chosen is None else counted.parts.select(np.asarray(chosen, np.int64))
        return self.matrix(self.rows_of_counts(parts, counted.counts, counted.lengths))

    def idf_of(self, df: np.ndarray, n_documents: int) -> np.ndarray:
        """Return the idf of document frequencies; 0 where these are 0."""
        return inverse_frequencies(df, n_documents, self.idf)

    def set_fitted(
        self,
        vocabulary: dict[str, int] | None,
        idf: np.ndarray,
        n_documents: int,
        averages: dict[str, float],
        columns: TermColumns | None = None,
    ) -> None:
        """Set what fitting learns: the attributes, and, if known, the columns by the ids of terms."""
        self.take_tokens()
        self.vocabulary_, self.n_documents_, self.average_lengths_ = vocabulary, n_documents, averages
        self.idf_ = np.ascontiguousarray(idf, np.float64)
        self._columns = columns
        self._terms: KnownTerms | None = None
        self._name_list: list[str] | None = None

    def listed_names(self) -> list[str]:
        """Return the names of the columns: those of a vocabulary, in a list that is kept."""
        if self._name_list is None:
            self._name_list = list(self.vocabulary_ or (f"#{i}" for i in range(len(self.idf_))))
        return self._name_list

    def zone_prefixes(self) -> tuple[str, ...]:
        """Return the beginnings of the names of terms that zones have for themselves, next to shared ones."""
        return tuple(f"{zone}:" for zone in self.zone_terms) if isinstance(self.zone_terms, (list, tuple)) else ()

    def known_terms(self) -> KnownTerms | None:
        """Return the terms that can have a column, so that others are passed over; None if any term can."""
        if self._terms is None and self.vocabulary_ is not None and not self.chars:
            self._terms = known_terms(self.vocabulary_, self.ngrams, zone_terms=bool(self.zone_terms))
        return self._terms

    def take_tokens(self) -> None:
        """Set `tokens_`: the tokenizer given, or the default one."""
        self.tokens_ = Tokens() if self.tokens is None else self.tokens

    def count_texts(self, texts: ZoneTexts, terms: KnownTerms | None = None) -> TermCounts:
        """Count the terms of texts, by default all of them."""
        return self.tokens_.count_terms(texts, ngrams=self.ngrams, chars=self.chars, known_terms=terms)

    def counted_texts(self, documents: Documents) -> tuple[TextParts, TermCounts, np.ndarray]:
        """Return the parts, counts and lengths of documents, as `rows_of_counts` takes them."""
        texts = ZoneTexts(documents, self.zones, self.zone_terms)
        counts = self.count_texts(texts, self.known_terms())
        return texts.parts(), counts, text_lengths(counts.ends, counts.counts)

    def columns_of(self, parts: TextParts, counts: TermCounts) -> tuple[np.ndarray, np.ndarray]:
        """Return the columns of terms and n-grams, by space and id: see `TermColumns.of`."""
        columns = self._columns
        if columns is None or columns.terms is not counts.terms:
            shared = self._terms.columns if self._terms is not None and self._terms.terms is counts.terms else None
            keys = {SHARED_SPACE: shared} if shared else None
            columns = self._columns = TermColumns(counts.terms, self.vocabulary_, self.hash_bits or 0, keys)
        return columns.of(parts.names, counts)

    def occurrence_weights(
        self, parts: TextParts, counts: TermCounts, lengths: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, float, np.ndarray]:
        """Return what an occurrence counts: by part, how it saturates there, for n-grams, and by term."""
        return parts.weights, self._saturation(parts, lengths), self.ngram_weight, self._term_weights(counts)

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

    def rows_of_counts(
        self, parts: TextParts, counts: TermCounts, lengths: np.ndarray, columns: TermColumns | None = None
    ) -> Rows:
        """Return the rows of counted texts, by default with the columns that fitting gave their terms."""
        of_terms = self.columns_of(parts, counts) if columns is None else columns.of(parts.names, counts)
        sizes = np.diff(counts.ends, prepend=0)
        n_entries = int(sizes[parts.sources].sum())
        data = np.empty(n_entries, self.dtype)
        indices = np.empty(n_entries, np.int32)
        weighed = *self.occurrence_weights(parts, counts, lengths), *of_terms, self.idf_, self.sublinear_tf
        ends = rows(*parts.arguments(counts, counts.counts), *weighed, data, indices)
        indptr = np.concatenate([np.zeros(1, np.int64), ends])
        for array in (indices, data):  # made shorter where they lie: nothing else refers to them
            array.resize(indptr[-1], refcheck=False)
        arrays = Rows(indptr, indices, data)
        log.info("%d rows of %d columns take %.1f MB", len(ends), len(self.idf_), row_bytes(arrays) / 1e6)
        return arrays

    def matrix(self, rows: Rows) -> csr_matrix:
        """Return rows as a matrix, which shares their arrays."""
        return rows.matrix(len(self.idf_))

    # What scikit-learn asks of an estimator, besides `get_params` and `set_params`.

    def set_output(self, *, transform: str | None = None) -> TfIdf:
        """Accept "default" as the container of rows: there is no other for sparse ones."""
        if transform not in (None, "default"):
            raise FeatureError(f"Rows cannot be put out as {transform!r}, as they are sparse: give 'default'.")
        return self

    def _check_is_fitted(self) -> None:
        if not hasattr(self, "idf_"):
            from sklearn.utils.validation import check_is_fitted

            check_is_fitted(self, "idf_")

    def _repr_html_(self) -> str:
        from sklearn.utils import estimator_html_repr

        return str(estimator_html_repr(self))

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        text = InputTags(string=True, two_d_array=False)
        return Tags(None, TargetTags(required=False), transformer_tags=TransformerTags(), input_tags=text)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | dict.fromkeys(self.__dict__.keys() & {"_columns", "_terms", "_name_list"})
