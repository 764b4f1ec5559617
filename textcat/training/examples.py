"""Turn documents into vectors (rows) and labels to train on; descriptions of topics are further positive examples."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from copy import copy
from itertools import chain, count
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import scipy  # its parts load at their first use

from textcat.base.errors import TextcatError
from textcat.base.progress import Advance, advance_over
from textcat.corpus.documents import Corpus, Document
from textcat.features.char_ngrams import add_char_ngrams, with_char_ngrams
from textcat.features.counts import StoredCounts
from textcat.features.scripts import are_letters
from textcat.features.store import StoredRows, write_rows
from textcat.features.vector_files import named_vectors
from textcat.features.vectors import ColumnVectors, WordVectors
from textcat.features.zones import SHARED_SPACE
from textcat.margin.problems import NO_ROWS

if TYPE_CHECKING:
    from textcat.features.tfidf import TfIdf
    from textcat.features.tokens import TermCounts, Tokens
    from textcat.features.zones import TextParts
    from textcat.recipes.recipe import Recipe


ROWS_PER_BLOCK = 4096  # number of rows that are computed and written together
# settings that change features only; all others change the counts
_OF_COUNTING = ("zones", "zone_terms", "ngrams", "chars", "char_min")


class Examples(NamedTuple):
    """Training examples: a matrix with a feature vector per row, and their labels.

    `labels` and `left_out` are int8 matrices of shape (n_examples, n_topics).
    """

    rows: scipy.sparse.csr_matrix | StoredRows  # documents, then copies of the topics' descriptions
    labels: scipy.sparse.csc_matrix  # 1 where a row is a positive example
    left_out: scipy.sparse.csc_matrix | None = None
    """1 where a row is not used for a topic: documents that were not judged for it, and descriptions of other topics
    (the description of wheat would be a wrong negative example of grain)."""


class _CountedWords(NamedTuple):
    """The words of a table of word vectors, given by their ids in the list of counted terms."""

    vectors: WordVectors
    ids: np.ndarray  # shape (n_words,), int32
    first_added: int  # words with this id or a larger one occur in no document


class _Texts(NamedTuple):
    """The texts of a document to count, in an object that is made several times as fast as a `Document`."""

    zones: dict[str, str]


class CorpusStream(Protocol):
    """A corpus whose texts are read while it is iterated over."""

    corpus: Corpus  # available after all texts were read; its documents have the texts as `zones`

    def __iter__(self) -> Iterator[dict[str, str]]:
        """Yield the texts of documents by zone (a named part, such as title), as they are read."""


class CountedCorpus:
    """Counts of the terms of a corpus' training documents and topic descriptions, to build examples from.

    Training examples are then built from the positions of documents, without their texts. The texts of a stream are
    counted while they are read, including those of test documents; `serves` then switches to the recipe that suits
    them. `tokens` must have the recipe's settings; its token cache may have been filled by other recipes. Without
    `keep_texts`, the zones (the named texts of a document, such as its title) are emptied once a document is counted.
    The attributes `labels` and `unjudged` describe the training documents. If `updatable`, test documents are counted,
    too, and the attribute `document_counts` has the counts of the training documents, followed by those of the test
    documents.
    """

    def __init__(
        self,
        corpus: Corpus | CorpusStream,
        recipe: Recipe,
        tokens: Tokens | None = None,
        advance: Advance = lambda n: None,
        *,
        keep_texts: bool = True,
        updatable: bool = False,
    ):
        features, self._recipe, self._copies = recipe.make_features(), recipe, recipe.topics.description_copies
        self._words: _CountedWords | None = None
        self.tokens: Tokens | None = None  # kept only if its cache is small enough to pass to a tagger
        if tokens is not None:
            features.set_params(tokens=tokens)
        features.take_tokens()
        self._load_vectors(recipe)
        zones: list[dict[str, str]] = []  # the texts of all counted documents, by zone
        counted_parts = (corpus.train, corpus.test if updatable else []) if isinstance(corpus, Corpus) else ()

        def documents() -> Iterator[_Texts]:
            of_corpus = (document.zones for part in counted_parts for document in part)
            for texts in of_corpus if isinstance(corpus, Corpus) else corpus:
                zones.append(texts)
                yield _Texts(texts)
                if not keep_texts:
                    texts.clear()

        def described() -> Iterator[Document]:
            self.corpus = corpus if isinstance(corpus, Corpus) else corpus.corpus
            yield from self.corpus.described() if self._copies else []

        parts, counts = features.count_all(chain(advance_over(documents(), advance), described()))
        self._take_labels()
        position_of = dict(zip(map(id, zones), count(), strict=False))
        self._train, self._test = (
            np.array([position_of.get(id(document.zones), -1) for document in part], np.int64)
            for part in (self.corpus.train, self.corpus.test)
        )
        positions = np.concatenate([self._train, self._test])
        self.document_counts = StoredCounts.of_documents(parts, counts, positions) if updatable else None
        self._all_counts: tuple[TextParts, TermCounts] | None = parts, counts
        if isinstance(corpus, Corpus):
            self._drop_rare_ngrams(features)
        self._described = np.arange(len(zones), len(zones) + len(self.corpus.topics))

    @classmethod
    def of_document_counts(cls, corpus: Corpus, recipe: Recipe, counts: StoredCounts, features: TfIdf) -> CountedCorpus:
        """Return a counted corpus, given the stored term counts of its training and test documents."""
        self = cls.__new__(cls)
        self.tokens, self._words = features.tokens, None
        self.corpus, self.document_counts, self._recipe, self._copies = (
            corpus,
            counts,
            recipe,
            recipe.topics.description_copies,
        )
        self._take_labels()
        self._load_vectors(recipe)
        n = len(counts)
        if self._copies:
            described = features.count_all(corpus.described())
            counts = counts.extended(StoredCounts.of_documents(*described, np.arange(len(corpus.topics))))
        self._train, self._test = np.split(np.arange(n), [len(corpus.train)])
        self._described = np.arange(n, n + len(corpus.topics))
        self._counts, self._all_counts, self._least_df = counts.counted_for(features), None, features.ngram_min_df
        return self

    def _take_labels(self) -> None:
        self.labels = self.corpus.labels(self.corpus.train)
        self.unjudged = self.corpus.unjudged(self.corpus.train)

    def _drop_rare_ngrams(self, features: TfIdf) -> None:
        assert self._all_counts is not None
        self._counts, self._least_df = features.drop_rare_ngrams(*self._all_counts), features.ngram_min_df
        self._all_counts = None

    def _load_vectors(self, recipe: Recipe) -> None:
        """Load the word vectors that a recipe trains on as `vectors`; None if it trains on terms only."""
        self.vectors = named_vectors(recipe.topics.vectors) if recipe.topics.uses_vectors else None

    def serves(self, recipe: Recipe) -> bool:
        """Switch to another recipe if the same term counts suit it; return whether they do."""
        counted, asked = self._recipe, recipe.features
        serves = (
            recipe.tokens == counted.tokens
            and all(getattr(asked, name) == getattr(counted.features, name) for name in _OF_COUNTING)
            and bool(recipe.topics.description_copies) == bool(self._copies)
            and (self._all_counts is not None or asked.ngram_min_df >= self._least_df)
        )
        if serves:
            self._recipe, self._copies = recipe, recipe.topics.description_copies
            if self._all_counts is not None:
                self._drop_rare_ngrams(recipe.make_features())
            self._load_vectors(recipe)
        return serves

    def fit(self, features: TfIdf, documents: np.ndarray | None = None) -> TfIdf:
        """Fit features of the recipe to the training documents at the positions `documents`; None: to all.

        Descriptions of topics without a document among them are used, too, because their words may occur nowhere else;
        in cross-validation on Reuters-21578, this makes rankings no worse. With a shortlist, every word of a
        description gets a column, even if it is rare. With vectors, every word that has a vector gets one; if
        `documents` are given, only words that occur in any document.
        """
        labels = self.labels if documents is None else self.labels[documents]
        unknown = np.flatnonzero(labels.sum(axis=0).A1 == 0) if self._copies else NO_ROWS
        chosen = np.append(self._positions(documents), self._described[unknown])
        # Only with a shortlist, so that the columns of other recipes depend on documents alone.
        named = self._described if self._copies and self._recipe.topics.shortlist else None
        words = None if self.vectors is None else self._counted_words(self.vectors)
        if words is None:
            return features.fit_counted(self._counts, chosen, named)
        ids = words.ids if documents is None else words.ids[words.ids < words.first_added]
        return features.fit_counted(self._counts, chosen, named, ids)

    def _counted_words(self, vectors: WordVectors) -> _CountedWords:
        """Return the words that have a vector, with their ids; words that no document has are added to the terms."""
        if self._words is None or self._words.vectors is not vectors:
            counts = self._counts.counts
            first_added = len(counts.terms) if self._words is None else self._words.first_added
            id_of = dict(zip(counts.terms, count()))
            for chars in counts.chars.tolist():
                del id_of[counts.terms[chars]]
            added = [word for word in vectors.words if word not in id_of]
            id_of |= zip(added, count(len(counts.terms)))
            ids = np.fromiter(map(id_of.__getitem__, vectors.words), np.int32, len(vectors.words))
            self._words = _CountedWords(vectors, ids, first_added)
            self._counts = self._counts._replace(counts=counts._replace(terms=[*counts.terms, *added]))
        return self._words

    def column_vectors(self, features: TfIdf) -> ColumnVectors | None:
        """Return the word vectors of the features' columns, times the recipe's weight; None if it uses no vectors."""
        if self.vectors is None:
            return None
        words, (parts, counts, _) = self._counted_words(self.vectors), self._counts
        columns, _ = features.columns_of(parts, counts)
        column_of = np.full(len(words.ids), -1)
        if SHARED_SPACE in parts.names:
            column_of = columns[parts.names.index(SHARED_SPACE), words.ids]
        return self.vectors.of_columns(column_of, self._recipe.topics.vector_weight)

    def share_of_known_words(self) -> float:
        """Return the share of word occurrences in the training documents whose word has a vector, from 0 to 1."""
        known = {} if self.vectors is None else self.vectors.position_of
        counts = StoredCounts.of_documents(self._counts.parts, self._counts.counts, self._train).counts
        n_of = np.bincount(counts.ids[counts.ids >= 0], counts.counts[counts.ids >= 0], len(counts.terms))
        is_word = np.array([are_letters(term) for term in counts.terms], bool)
        is_known = np.array([term in known for term in counts.terms], bool)
        return float(n_of[is_word & is_known].sum() / max(n_of[is_word].sum(), 1))

    def n_terms(self) -> np.ndarray:
        """Return the number of different terms of each training document; a term in two zones counts twice.

        The time of training and of scoring is about proportional to it.
        """
        parts, counts, _ = self._counts
        of_parts = np.diff(counts.ends, prepend=0)[parts.sources]
        return np.diff(np.append(0, np.cumsum(of_parts))[np.append(0, parts.ends)])[self._train]

    def held_out_rows(self, features: TfIdf, documents: np.ndarray) -> scipy.sparse.csr_matrix:
        """Return the feature vectors of the training documents at the positions `documents`, to score them.

        If the recipe uses word vectors, their dimensions are further columns. `features` were fitted by `fit`.
        """
        rows, vectors = features.rows_of(self._counts, self._train[documents]), self.column_vectors(features)
        return rows if vectors is None else vectors.beside(rows)

    def test_rows(self, features: TfIdf) -> scipy.sparse.csr_matrix | None:
        """Return the test documents' vectors by `features`, which `fit` has fitted; None if they were not counted."""
        return features.rows_of(self._counts, self._test) if (self._test >= 0).all() else None

    def counts_of(self, documents: np.ndarray) -> StoredCounts:
        """Return the term counts of the training documents at some positions, then of the topics' descriptions.

        Descriptions are left out if the recipe does not train on descriptions.
        """
        described = self._described if self._copies else NO_ROWS
        positions = np.concatenate([self._positions(documents), described])
        return StoredCounts.of_documents(self._counts.parts, self._counts.counts, positions)

    def with_char_ngrams(self, recipe: Recipe) -> CountedCorpus:
        """Return a copy with a recipe's character n-grams; its other terms must have been counted already."""
        copied = copy(self)
        copied.add_char_ngrams(recipe)
        return copied

    def add_char_ngrams(self, recipe: Recipe) -> None:
        """Add a recipe's character n-grams to the counts; its other terms must have been counted already."""
        lengths, divides_runs = recipe.features.char_lengths, recipe.make_tokens().divides_runs
        self._recipe, self._counts = recipe, add_char_ngrams(self._counts, lengths, divides_runs=divides_runs)
        self._load_vectors(recipe)
        if self.document_counts is not None:
            zones, n_texts, zone_of, counts = self.document_counts
            with_chars = StoredCounts(
                zones, n_texts, zone_of, with_char_ngrams(counts, lengths, divides_runs=divides_runs)
            )
            self.document_counts = with_chars.select(np.arange(len(with_chars)))

    def clear(self) -> None:
        """Delete the counts to free memory; no more document vectors can be made."""
        del self._counts

    def _positions(self, documents: np.ndarray | None) -> np.ndarray:
        return self._train if documents is None else self._train[documents]

    def examples(
        self,
        features: TfIdf,
        documents: np.ndarray | None = None,
        *,
        rows_dir: str | os.PathLike[str] | None = None,
        left_out: bool = True,
        advance: Advance = lambda n: None,
    ) -> Examples:
        """Return vectors and labels of training documents (at the positions `documents`) and topics' descriptions.

        If `documents` is None, all training documents are used; `features` were fitted by `fit`. With vectors, their
        dimensions are further columns.

        Each description is repeated `description_copies` times (a setting of the recipe); a description none of whose
        terms has a column is not used. If `rows_dir` is given, the vectors are written to this folder, and `advance` is
        called with the number of vectors written. A topic is trained without the descriptions of other topics, which
        `Examples.left_out` marks. With `left_out` False, this matrix is not made: with thousands of topics, it takes
        much memory.
        """
        labels = self.labels if documents is None else self.labels[documents]
        unjudged = self.unjudged if documents is None or self.unjudged is None else self.unjudged[documents]
        positions = np.append(self._positions(documents), np.tile(self._described, self._copies))
        vectors = self.column_vectors(features)
        if rows_dir is None:
            rows = self._finite_rows(features, positions, vectors)
        else:
            starts = range(0, len(positions), ROWS_PER_BLOCK)
            chosen = (positions[start : start + ROWS_PER_BLOCK] for start in starts)
            blocks = (self._finite_rows(features, block, vectors) for block in chosen)
            rows = write_rows(rows_dir, _advancing(blocks, advance))
        if not self._copies:
            return Examples(rows, labels, unjudged)
        has_term = np.diff(features.rows_of(self._counts, self._described).indptr) > 0
        return Examples(rows, *_append_labels(labels, has_term, self._copies, left_out, unjudged))

    def _finite_rows(
        self, features: TfIdf, positions: np.ndarray, vectors: ColumnVectors | None
    ) -> scipy.sparse.csr_matrix:
        """Return the vectors of documents and topics' descriptions, given their positions in the counts.

        Raise TextcatError if the recipe's weights lead to values that are not finite.
        """
        rows = features.rows_of(self._counts, positions)
        if not np.isfinite(rows.data.sum()):  # every entry is at most 1
            raise TextcatError(
                f"Recipe {self._recipe.name} cannot be followed: rows have values that are not finite; "
                "choose less extreme weights of zones and n-grams, or a smaller k1."
            )
        return rows if vectors is None else vectors.beside(rows)

    def descriptions(self, features: TfIdf) -> scipy.sparse.csr_matrix:
        """Return the vectors of the topics' descriptions: shape (n_topics, n_features); 0 if they are not examples."""
        if not self._copies:
            return scipy.sparse.csr_matrix((len(self.corpus.topics), len(features.idf_)), dtype=np.float32)
        return features.rows_of(self._counts, self._described)


def _advancing(blocks: Iterable[scipy.sparse.csr_matrix], advance: Advance) -> Iterator[scipy.sparse.csr_matrix]:
    for block in blocks:
        yield block
        advance(block.shape[0])


def examples_without(
    held_out: Iterable[np.ndarray], corpus: Corpus, recipe: Recipe, tokens: Tokens | None
) -> Iterator[Examples]:
    """Yield the examples of a recipe for each set of held-out training documents.

    `held_out` has an array of positions for each set. All training documents are among the examples, but the vocabulary
    and the document frequencies are computed without the held-out documents.
    """
    counts = CountedCorpus(corpus, recipe, tokens)
    features = recipe.make_features()
    for documents in held_out:
        counts.fit(features, np.setdiff1d(np.arange(len(corpus.train)), documents))
        yield counts.examples(features)


def _append_labels(
    labels: scipy.sparse.csc_matrix,
    has_term: np.ndarray,
    copies: int,
    left_out: bool,
    unjudged: scipy.sparse.csc_matrix | None,
) -> tuple[scipy.sparse.csc_matrix, scipy.sparse.csc_matrix | None]:
    """Append the labels of the descriptions to the documents' labels; return all labels, and `Examples.left_out`.

    `has_term` is True for topics whose description has a term with a column; `copies` is how often descriptions are
    repeated. If `left_out` is False, None is returned in place of `Examples.left_out`.
    """
    n_topics = labels.shape[1]
    own = np.repeat(np.flatnonzero(has_term), copies)
    rows = own + n_topics * (np.arange(len(own)) % copies)
    appended = _with_rows(labels, own, rows, n_topics * copies)
    if not left_out:
        return appended, None
    others, rows = np.nonzero(np.tile(~np.diag(has_term), copies))
    nothing = scipy.sparse.csc_matrix(labels.shape, dtype=np.int8) if unjudged is None else unjudged
    return appended, _with_rows(nothing, others, rows, n_topics * copies)


def _with_rows(
    labels: scipy.sparse.csc_matrix, columns: np.ndarray, rows: np.ndarray, n_rows: int
) -> scipy.sparse.csc_matrix:
    """Append rows to a matrix of 0 and 1; `columns` and `rows` have the place of each 1 in them, column by column.

    For small matrices, `scipy.sparse.vstack` takes several times as long, and where documents are few, thousands are
    made.
    """
    n, n_columns = labels.shape
    # counted from column 1, as the number of entries before each column is wanted
    added = np.bincount(columns + 1, minlength=n_columns + 1).cumsum(dtype=labels.indptr.dtype)
    is_old = np.zeros(labels.nnz + len(rows), bool)
    is_old[np.arange(labels.nnz) + np.repeat(added[:-1], np.diff(labels.indptr))] = True
    indices, data = np.empty(len(is_old), labels.indices.dtype), np.ones(len(is_old), labels.data.dtype)
    indices[is_old], indices[~is_old], data[is_old] = labels.indices, n + rows, labels.data
    return scipy.sparse.csc_matrix((data, indices, labels.indptr + added), shape=(n + n_rows, n_columns))
