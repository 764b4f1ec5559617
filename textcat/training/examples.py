"""Rows of documents → what is learnt from: with the topics' descriptions as further positive examples of them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy  # its parts load at their first use

from textcat.documents import topic_counts
from textcat.features.store import StoredRows, write_rows
from textcat.progress import Advance, counted

if TYPE_CHECKING:
    from textcat.documents import Corpus, Document
    from textcat.features.tfidf import TfIdf


_TOGETHER = 4096  # documents whose rows are made, and written, together


class Examples(NamedTuple):
    """Rows, and what each is to each topic.

    Parameters
    ----------
    rows : csr_matrix or StoredRows of shape (n_rows, n_features)
        Documents, then copies of the topics' descriptions.
    labels : csc_matrix of shape (n_rows, n_topics), int8
        1 where a row is a positive example.
    left_out : csc_matrix of shape (n_rows, n_topics), int8, or None
        1 where a row is no example at all. A description is one of its own topic alone: it would be wrong to call that
        of wheat a negative example of grain.
    """

    rows: scipy.sparse.csr_matrix | StoredRows
    labels: scipy.sparse.csc_matrix
    left_out: scipy.sparse.csc_matrix | None


def documents_to_count(corpus: Corpus, documents: Sequence[Document], copies: int) -> Sequence[Document]:
    """Return the documents whose terms are to be counted: these, and the descriptions of topics that none of them has.

    Where a topic has documents, its description is not counted: in cross-validation on Reuters-21578, rankings are as
    good or better so. Where it has none, the words of its description may occur nowhere else.

    Parameters
    ----------
    corpus : Corpus
    documents : sequence of Document
        Those that are trained on.
    copies : int
        How many times a description is an example; 0: no description is counted.
    """
    known = topic_counts(documents)
    unknown = [text for text in corpus.described() if text.topics[0] not in known] if copies else []
    return [*documents, *unknown] if unknown else documents


def learn(
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

    Parameters
    ----------
    corpus : Corpus
    documents : sequence of Document
        Those that are trained on.
    features : TfIdf
        Is fitted.
    labels, copies
        As for `with_descriptions`.
    store : path, optional
        Folder to write the rows to; they are the same, but not held in memory, and terms are counted twice.
    advance : callable
        Called with the number of documents that have been counted.

    Raises
    ------
    TextcatError
        If nothing can be written to the folder.
    """
    known = documents_to_count(corpus, documents, copies)
    if store is None:
        return with_descriptions(corpus, features, features.fit_transform(counted(known, advance)), labels, copies)
    features.fit(counted(known, advance))
    described = [features.transform(corpus.described())] * copies if copies else []
    blocks = (features.transform(batch) for batch in _batches(documents))
    return Examples(write_rows(store, chain(blocks, described)), *_with_their_labels(described, labels))


def _batches(documents: Sequence[Document]) -> Iterator[Sequence[Document]]:
    return (documents[start : start + _TOGETHER] for start in range(0, len(documents), _TOGETHER))


def with_descriptions(
    corpus: Corpus, features: TfIdf, rows: scipy.sparse.csr_matrix, labels: scipy.sparse.csc_matrix, copies: int
) -> Examples:
    """Append the descriptions of topics to the rows of documents.

    Parameters
    ----------
    corpus : Corpus
    features : TfIdf
        Fitted; see `documents_to_count`.
    rows : csr_matrix
        Of the documents; those of descriptions that `documents_to_count` put behind them are passed over.
    labels : sparse of shape (n_documents, n_topics), 0/1
    copies : int
        How many rows each description becomes, one after the other for all topics; 0: none. A description without a
        known term is an example of nothing.
    """
    if not copies:
        return Examples(rows, labels, None)
    return with_described(rows[: labels.shape[0]], labels, features.transform(corpus.described()), copies)


def with_described(
    rows: scipy.sparse.csr_matrix, labels: scipy.sparse.csc_matrix, described: scipy.sparse.csr_matrix, copies: int
) -> Examples:
    """Append the rows of the topics' descriptions, one per topic, so many times to those of documents."""
    if not copies:
        return Examples(rows, labels, None)
    several = [described] * copies
    return Examples(scipy.sparse.vstack([rows, *several], format="csr"), *_with_their_labels(several, labels))


def _with_their_labels(
    described: Sequence[scipy.sparse.csr_matrix], labels: scipy.sparse.csc_matrix
) -> tuple[scipy.sparse.csc_matrix, scipy.sparse.csc_matrix | None]:
    """Put the labels of descriptions behind those of documents; and tell of which topics they are no examples."""
    if not described:
        return labels, None
    own = scipy.sparse.diags_array(np.diff(described[0].indptr) > 0, dtype=np.int8)
    others = scipy.sparse.csr_matrix(np.ones(own.shape, np.int8) - own)
    nothing = scipy.sparse.csr_matrix(labels.shape, dtype=np.int8)
    return (
        scipy.sparse.vstack([labels] + [own] * len(described), format="csc"),
        scipy.sparse.vstack([nothing] + [others] * len(described), format="csc"),
    )
