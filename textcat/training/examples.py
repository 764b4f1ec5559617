"""Documents → rows and labels to train on, with the topics' descriptions as further positive examples."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy  # its parts load at their first use

from textcat.documents import topic_counts
from textcat.features.store import StoredRows, write_rows
from textcat.margin.problems import NO_ROWS
from textcat.progress import Advance, counted

if TYPE_CHECKING:
    from textcat.documents import Corpus, Document
    from textcat.features.tfidf import TfIdf
    from textcat.features.tokens import Tokens
    from textcat.recipe import Recipe


_BATCH = 4096  # documents whose rows are made, and written, together


class Examples(NamedTuple):
    """Rows, and what each is to each topic: sparse matrices of a row each, labels of int8 with a column a topic."""

    rows: scipy.sparse.csr_matrix | StoredRows  # documents, then copies of the topics' descriptions
    labels: scipy.sparse.csc_matrix  # 1 where a row is a positive example
    left_out: scipy.sparse.csc_matrix | None = None
    """1 where a row is no example at all. A description is one of its own topic alone: it would be wrong to call that
    of wheat a negative example of grain."""


def make_examples(
    corpus: Corpus,
    documents: Sequence[Document],
    features: TfIdf,
    labels: scipy.sparse.csc_matrix,
    copies: int,
    *,
    store: str | os.PathLike[str] | None = None,
    advance: Advance = lambda n: None,
) -> Examples:
    """Fit features to documents, and make rows of them and of the topics' descriptions.

    Terms are counted in the documents, and in the descriptions of topics that none of them has: the words of such a
    description may occur nowhere else. In cross-validation on Reuters-21578 rankings are as good or better so.

    Parameters
    ----------
    corpus, documents : Corpus, sequence of Document
        Where the descriptions are, and what is trained on.
    features, labels : TfIdf, sparse of shape (n_documents, n_topics), 0/1
    copies : int
        How many rows each description becomes, one after the other for all topics; 0: none. A description without a
        known term is an example of nothing.
    store : path, optional
        Folder to write the rows to; they are the same, but not held in memory, and terms are counted twice. A
        TextcatError says so if nothing can be written there.
    advance : callable
        Called with the number of documents that have been counted.

    Returns
    -------
    examples : Examples
    """
    with_documents = topic_counts(documents)
    unknown = [text for text in corpus.described() if text.topics[0] not in with_documents] if copies else []
    known = counted([*documents, *unknown] if unknown else documents, advance)
    if store is None:
        rows = features.fit_transform(known)
        if not copies:
            return Examples(rows, labels)
        return _append(rows[: len(documents)], labels, features.transform(corpus.described()), copies)
    features.fit(known)
    described = [features.transform(corpus.described())] * copies if copies else []
    batches = (documents[start : start + _BATCH] for start in range(0, len(documents), _BATCH))
    rows = write_rows(store, chain(map(features.transform, batches), described))
    return Examples(rows, *_append_labels(labels, described))


def examples_without(
    held_out: Iterable[np.ndarray], corpus: Corpus, recipe: Recipe, tokens: Tokens | None = None
) -> Iterator[Examples]:
    """Yield the examples of a recipe where documents are held out, for each of several choices of such documents.

    The rows are those of all documents, but their terms are weighed by those that are not held out.

    Parameters
    ----------
    held_out : iterable of ndarray of int
        Training documents, by their positions.
    corpus, recipe
    tokens : Tokens, optional
        Of the recipe's settings; its cache of other recipes' texts is used again.

    Yields
    ------
    examples : Examples
    """
    labels, copies, n = corpus.labels(corpus.train), recipe.descriptions, len(corpus.train)
    features = recipe.make_features().set_params(tokens=tokens or recipe.make_tokens())
    counts = features.count([*corpus.train, *(corpus.described() if copies else [])])
    for documents in held_out:
        trained = np.setdiff1d(np.arange(n), documents)
        # As in `make_examples`: descriptions are counted where they are all that is known of their topics.
        unknown = np.flatnonzero(labels[trained].sum(axis=0).A1 == 0) if copies else NO_ROWS
        rows = features.fit_counted(counts, np.append(trained, n + unknown)).rows_of(counts)
        yield _append(rows[:n], labels, rows[n:], copies)


def _append(
    rows: scipy.sparse.csr_matrix, labels: scipy.sparse.csc_matrix, described: scipy.sparse.csr_matrix, copies: int
) -> Examples:
    """Append copies of the rows of the topics' descriptions to those of documents."""
    several = [described] * copies
    rows = scipy.sparse.vstack([rows, *several], format="csr") if several else rows
    return Examples(rows, *_append_labels(labels, several))


def _append_labels(
    labels: scipy.sparse.csc_matrix, described: Sequence[scipy.sparse.csr_matrix]
) -> tuple[scipy.sparse.csc_matrix, scipy.sparse.csc_matrix | None]:
    """Append the labels of descriptions to those of documents, and return the topics they are no examples of, too."""
    if not described:
        return labels, None
    own = scipy.sparse.diags_array(np.diff(described[0].indptr) > 0, dtype=np.int8)
    others = scipy.sparse.csr_matrix(np.ones(own.shape, np.int8) - own)
    nothing = scipy.sparse.csr_matrix(labels.shape, dtype=np.int8)
    several = len(described)
    return (
        scipy.sparse.vstack([labels] + [own] * several, format="csc"),
        scipy.sparse.vstack([nothing] + [others] * several, format="csc"),
    )
