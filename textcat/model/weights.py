"""Compute scores of rows from the weights of topics, which are dense or sparse; describe a tagger in tables."""

from typing import TYPE_CHECKING, Any

import numpy as np

from textcat.corpus.documents import largest_topics_table
from textcat.features.rows import Rows
from textcat.model._product import product, sparse_product
from textcat.model.topic_names import topic_label

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from textcat.model.tagger import Tagger

FEW_TOPICS = 1 << 16  # whose numbers take two bytes


def scores_of_rows(tagger: "Tagger", rows: Rows) -> np.ndarray:
    """Return the scores of rows for every topic: shape (n_rows, n_topics), float32."""
    if tagger.shortlist is not None:
        rows = rows._replace(data=rows.data.astype(np.float32, copy=False))
        return tagger.shortlist.scores(rows, tagger.weights, tagger.bias)
    if not is_compiled(tagger, rows):
        product_ = tagger.features.matrix(rows) @ (wide(tagger.weights) if tagger.sparse_weights else tagger.weights)
        return np.asarray((product_.toarray() if tagger.sparse_weights else product_) + tagger.bias)
    if tagger.sparse_weights:
        return np.asarray(sparse_product(*rows, *sparse_parts(tagger), tagger.bias))
    return np.asarray(product(*rows, tagger.weights, tagger.bias))


def is_compiled(tagger: "Tagger", rows: Rows) -> bool:
    """Return whether scores are computed by compiled code, that is, if rows, weights and bias are float32.

    Otherwise, scipy computes the scores.
    """
    return bool(rows.data.dtype == tagger.weights.dtype == tagger.bias.dtype == np.float32)


def sparse_parts(tagger: "Tagger") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the three CSR arrays of sparse weights: where each feature's entries start, their topics, their values."""
    return parts_of(tagger.weights)


def parts_of(weights: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the three CSR arrays of a matrix with a column per topic, as compiled code takes them.

    Those of `csr_weights` are returned without a copy.
    """
    return weights.indptr.astype(np.int64, copy=False), _numbers(weights.indices), weights.data


def weights_of_topic(tagger: "Tagger", topic: str, features: np.ndarray | None = None) -> np.ndarray:
    """Return the weights of a topic for the features with the given numbers, or for all: shape (n_features,)."""
    column = tagger.topics.index(topic)
    if tagger.sparse_weights:
        return _sparse_column(sparse_parts(tagger), column, features)
    return np.asarray(tagger.weights[slice(None) if features is None else features, column])


def _sparse_column(
    parts: tuple[np.ndarray, np.ndarray, np.ndarray], column: int, features: np.ndarray | None
) -> np.ndarray:
    starts, topics, values = parts
    weights = np.zeros(len(starts) - 1 if features is None else len(features), values.dtype)
    if features is None:
        entries = np.flatnonzero(topics == column)
        weights[np.searchsorted(starts, entries, side="right") - 1] = values[entries]
        return weights
    for i, (start, end) in enumerate(zip(starts[features].tolist(), starts[features + 1].tolist(), strict=True)):
        entry = start + int(np.searchsorted(topics[start:end], topics.dtype.type(column)))  # topics are in order
        if entry < end and topics[entry] == column:
            weights[i] = values[entry]
    return weights


def canonical_weights(weights: "csr_array") -> "csr_array":
    """Return sparse weights in CSR form, with sorted topics and no duplicate entries."""
    rows = weights.tocsr()
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return csr_weights(rows.indptr, rows.indices, rows.data, rows.shape[1])


def csr_weights(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, n_topics: int) -> "csr_array":
    """Return a csr_array that shares the given (perhaps mapped) arrays; scipy's constructor would copy the indices.

    Indices may have two bytes, as stored models have them. Compiled code takes such an array as it is; scipy computes
    only with what `wide` returns.
    """
    from scipy.sparse import csr_array  # here, so that tagging with dense weights need not import it

    weights = csr_array((len(indptr) - 1, n_topics), dtype=data.dtype)
    weights.indptr, weights.indices = indptr.astype(np.int64, copy=False), _numbers(indices)
    weights.data = data
    weights.has_canonical_format = True
    return weights


def _numbers(indices: np.ndarray) -> np.ndarray:
    """Return numbers of topics as compiled code takes them: two bytes stay two, all others become four."""
    return indices if indices.dtype == np.uint16 else indices.astype(np.int32, copy=False)


def wide(weights: "csr_array") -> "csr_array":
    """Return sparse weights whose indices have four bytes, so that scipy can compute with them."""
    if weights.indices.dtype != np.uint16:
        return weights
    return csr_weights(weights.indptr, weights.indices.astype(np.int32), weights.data, weights.shape[1])


def topics_table(tagger: "Tagger") -> str:
    """Return an HTML table of a tagger's largest topics."""
    order = np.argsort(-tagger.train_sizes, kind="stable").tolist()
    sizes, names = {tagger.topics[j]: int(tagger.train_sizes[j]) for j in order}, tagger.topic_names
    rows = (
        (topic_label(topic, names), size, ", ".join(term for term, _ in tagger.terms(topic, 5)))
        for topic, size in sizes.items()
    )
    caption = f"Tagger: {len(tagger.topics):,} topics, {description(tagger)}"
    head = ("topic", "training documents", "terms of largest weight")
    return largest_topics_table(caption, head, rows, len(tagger.topics))


def description(tagger: "Tagger") -> str:
    """Return one line that describes a tagger: its features, training documents and learner."""
    learner = tagger.recipe.get("learner", {}).get("name", "paum")
    documents = f"{tagger.train_documents:,} documents of {tagger.corpus!r}"
    return f"{len(tagger.features.idf_):,} features, trained on {documents} by {learner}"
