"""Documents → rows and labels to train on, with the topics' descriptions as further positive examples."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import chain, count
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import scipy  # its parts load at their first use

from textcat.documents import Corpus, Document
from textcat.errors import TextcatError
from textcat.features.counts import StoredCounts
from textcat.features.store import StoredRows, write_rows
from textcat.margin.problems import NO_ROWS
from textcat.progress import Advance, advance_over

if TYPE_CHECKING:
    from textcat.features.tfidf import TfIdf
    from textcat.features.tokens import Tokens
    from textcat.recipe import Recipe


ROWS_PER_BLOCK = 4096  # made, and written, together


class Examples(NamedTuple):
    """Rows, and what each is to each topic: sparse matrices of a row each, labels of int8 with a column a topic."""

    rows: scipy.sparse.csr_matrix | StoredRows  # documents, then copies of the topics' descriptions
    labels: scipy.sparse.csc_matrix  # 1 where a row is a positive example
    left_out: scipy.sparse.csc_matrix | None = None
    """1 where a row is no example at all: a document of a topic that it was not judged for, and a description of all
    topics but its own, for it would be wrong to call that of wheat a negative example of grain."""


class CorpusStream(Protocol):
    """A corpus that is being read."""

    corpus: Corpus  # once all texts have gone by; its documents have them as `zones`

    def __iter__(self) -> Iterator[dict[str, str]]:
        """Yield the texts of documents by zone, as they are read."""


class CountedCorpus:
    """The training documents of a corpus, and its topics' descriptions, with their terms counted once.

    Build training examples from document positions; texts are no longer needed. The texts of a stream are counted while
    they are read, those of test documents, too. `tokens` must have the recipe's settings: what their cache holds from
    other recipes is used again. Without `keep_texts`, the zones of each document are emptied once it is counted.
    `labels` and `unjudged` are those of the training documents. For an `updatable` model, test documents are counted,
    too, and `document_counts` has the training documents, followed by the test documents.
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
        features, self._recipe, self._copies = recipe.make_features(), recipe, recipe.descriptions
        self.tokens: Tokens | None = None  # with few texts in their cache, so that a tagger may have them
        if tokens is not None:
            features.set_params(tokens=tokens)
        zones: list[dict[str, str]] = []  # all that were counted
        counted_parts = (corpus.train, corpus.test if updatable else []) if isinstance(corpus, Corpus) else ()

        def documents() -> Iterator[Document]:
            of_corpus = (document.zones for part in counted_parts for document in part)
            for texts in of_corpus if isinstance(corpus, Corpus) else corpus:
                zones.append(texts)
                yield Document("", texts)
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
        self._counts = features.drop_rare_ngrams(parts, counts)
        self._described = np.arange(len(zones), len(zones) + len(self.corpus.topics))

    @classmethod
    def of_document_counts(cls, corpus: Corpus, recipe: Recipe, counts: StoredCounts, features: TfIdf) -> CountedCorpus:
        """Return the counted corpus, given the counts of its training and test documents."""
        self = cls.__new__(cls)
        self.tokens = features.tokens
        self.corpus, self.document_counts, self._recipe, self._copies = corpus, counts, recipe, recipe.descriptions
        self._take_labels()
        n = len(counts)
        if self._copies:
            described = features.count_all(corpus.described())
            counts = counts.extended(StoredCounts.of_documents(*described, np.arange(len(corpus.topics))))
        self._train, self._test = np.split(np.arange(n), [len(corpus.train)])
        self._described = np.arange(n, n + len(corpus.topics))
        self._counts = counts.counted_for(features)
        return self

    def _take_labels(self) -> None:
        self.labels = self.corpus.labels(self.corpus.train)
        self.unjudged = self.corpus.unjudged(self.corpus.train)

    def serves(self, recipe: Recipe) -> bool:
        """Return whether these counts fit a recipe; if so, use its number of copies of descriptions from now on."""
        serves = recipe.same_terms(self._recipe) and bool(recipe.descriptions) == bool(self._copies)
        if serves:
            self._recipe, self._copies = recipe, recipe.descriptions
        return serves

    def fit(self, features: TfIdf, documents: np.ndarray | None = None) -> TfIdf:
        """Fit features of the recipe to documents, given by their positions, by default to all.

        Terms are counted in these documents, and in the descriptions of topics that none of them has: the words of such
        a description may occur nowhere else. In cross-validation on Reuters-21578, this makes rankings no worse.
        """
        labels = self.labels if documents is None else self.labels[documents]
        unknown = np.flatnonzero(labels.sum(axis=0).A1 == 0) if self._copies else NO_ROWS
        return features.fit_counted(self._counts, np.append(self._positions(documents), self._described[unknown]))

    def rows_of_counts(self, features: TfIdf, documents: np.ndarray) -> scipy.sparse.csr_matrix:
        """Return the rows of documents, given by their positions, by features that `fit` has returned."""
        return features.rows_of(self._counts, self._train[documents])

    def test_rows(self, features: TfIdf) -> scipy.sparse.csr_matrix | None:
        """Return the rows of the test documents by features that `fit` has returned; None if they were not counted."""
        return features.rows_of(self._counts, self._test) if (self._test >= 0).all() else None

    def clear(self) -> None:
        """Forget what was counted: no more rows can be made."""
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
        """Return rows and labels of documents, by default of all, and of the topics' descriptions.

        Each description becomes as many rows as the recipe's `descriptions` says, one after the other for all topics;
        without a known term it is no example of any topic. Given a folder as `rows_dir`, the rows are written there,
        and `advance` counts them. Without `left_out`, the topics that each description is no example of are not
        listed: with thousands of topics, the lists would be large.
        """
        labels = self.labels if documents is None else self.labels[documents]
        unjudged = self.unjudged if documents is None or self.unjudged is None else self.unjudged[documents]
        positions = np.append(self._positions(documents), np.tile(self._described, self._copies))
        if rows_dir is None:
            rows = self._finite_rows(features, positions)
        else:
            starts = range(0, len(positions), ROWS_PER_BLOCK)
            blocks = (self._finite_rows(features, positions[start : start + ROWS_PER_BLOCK]) for start in starts)
            rows = write_rows(rows_dir, _advancing(blocks, advance))
        if not self._copies:
            return Examples(rows, labels, unjudged)
        has_term = np.diff(features.rows_of(self._counts, self._described).indptr) > 0
        return Examples(rows, *_append_labels(labels, has_term, self._copies, left_out, unjudged))

    def _finite_rows(self, features: TfIdf, positions: np.ndarray) -> scipy.sparse.csr_matrix:
        """Return rows; raise TextcatError if the recipe's weights are such that their lengths are no numbers."""
        rows = features.rows_of(self._counts, positions)
        if not np.isfinite(rows.data.sum()):  # no entry is above 1
            raise TextcatError(
                f"Recipe {self._recipe.name} cannot be followed: rows have values that are not finite; "
                "choose less extreme weights of zones and n-grams, or a smaller k1."
            )
        return rows

    def descriptions(self, features: TfIdf) -> scipy.sparse.csr_matrix:
        """Return a row per topic, of its description, or without an entry where descriptions are no examples."""
        if not self._copies:
            return scipy.sparse.csr_matrix((len(self.corpus.topics), len(features.idf_)), dtype=np.float32)
        return features.rows_of(self._counts, self._described)


def _advancing(blocks: Iterable[scipy.sparse.csr_matrix], advance: Advance) -> Iterator[scipy.sparse.csr_matrix]:
    for block in blocks:
        yield block
        advance(block.shape[0])


def examples_without(
    held_out: Iterable[np.ndarray], corpus: Corpus, recipe: Recipe, tokens: Tokens | None = None
) -> Iterator[Examples]:
    """Yield the examples of a recipe for several choices of training documents, by their positions, to be held out.

    The rows are those of all documents, but their terms are weighed by those that are not held out.
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
    """Append the labels of copies of descriptions to those of documents; return the topics they are no examples of."""
    own_terms = scipy.sparse.diags_array(has_term, dtype=np.int8)
    appended = scipy.sparse.vstack([labels] + [own_terms] * copies, format="csc")
    if not left_out:
        return appended, None
    other_terms = scipy.sparse.csr_matrix(np.ones(own_terms.shape, np.int8) - own_terms)
    nothing = scipy.sparse.csr_matrix(labels.shape, dtype=np.int8) if unjudged is None else unjudged
    return appended, scipy.sparse.vstack([nothing] + [other_terms] * copies, format="csc")
