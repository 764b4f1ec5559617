"""A shortlist of topics for each document, where a model has thousands: the topics with the nearest centroids."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from textcat.features.rows import Rows
from textcat.model._product import highest
from textcat.model._shortlist import nearest, products_at
from textcat.model._shortlist import rows_by_topic as rows_by_topic
from textcat.model.related import RelatedTopics
from textcat.model.weights import parts_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: The score of a topic that is not listed: as log odds, a probability of 1 in 10^13.
NOT_LISTED = -30.0


class Restriction(NamedTuple):
    """Hold the topics, weights and biases of a whole model, for a tagger that has only some of the model's topics.

    They are needed because the model's other topics may raise the scores of the tagger's topics.
    """

    columns: np.ndarray  # of the tagger's topics, in the model
    topics: tuple[str, ...]  # of the model,
    weights: "csr_array"  # with its weights
    bias: np.ndarray


@dataclass(frozen=True, eq=False)
class Shortlist:
    """List the topics whose centroids are nearest to a document: only these are scored by their rankers.

    Each ranker was trained only on documents for which its topic was listed; its scores of other documents mean
    nothing.
    """

    centroids: "csr_array"  # shape (n_features, n_topics), float32
    size: int  # number of topics listed for a document
    related: RelatedTopics | None = None  # None: related topics change no score
    restriction: Restriction | None = None  # None: the tagger has all topics of the model

    def with_related(self, related: RelatedTopics) -> "Shortlist":
        """Return a copy with related topics, which raise the scores of topics that often go with them."""
        return replace(self, related=related)

    def topics(self, rows: Rows) -> np.ndarray:
        """Return the column numbers of the topics nearest to each row, ascending: shape (n_rows, size), int32.

        Where a row has fewer topics, they are filled up with -1.
        """
        return np.asarray(nearest(*rows, *parts_of(self.centroids), self.centroids.shape[1], self.size))

    def scores(self, rows: Rows, weights: "csr_array", bias: np.ndarray) -> np.ndarray:
        """Return the scores of rows for all topics: shape (n_rows, n_topics).

        The score of a topic that is not on the row's shortlist (of the nearest topics) is `NOT_LISTED`.
        """
        listed, values = self.listed_scores(rows, weights, bias)
        scores = np.full((len(listed), len(bias)), NOT_LISTED, np.float32)
        documents, places = np.nonzero(listed >= 0)
        scores[documents, listed[documents, places]] = values[documents, places]
        return scores

    def top(self, rows: Rows, weights: "csr_array", bias: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of the topics with the n highest scores for each row, and these scores.

        Both arrays have the shape (n_rows, min(n, size)). Where a row has fewer topics, the topics are filled up with
        -1, and the scores with `NOT_LISTED`.
        """
        listed, scores = self.listed_scores(rows, weights, bias)
        places, values = highest(scores, min(n, self.size))
        return np.take_along_axis(listed, places, 1), values

    def scored(self, rows: Rows, weights: "csr_array", bias: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the topics nearest to each row, and their scores without the contributions of related topics.

        Both arrays have the shape (n_rows, size); where fewer topics are listed, they are filled up with -1 and
        `NOT_LISTED`.
        """
        if self.restriction is not None:
            weights, bias = self.restriction.weights, self.restriction.bias
        listed = self.topics(rows)
        scores = self.products(rows, weights, listed) + bias[listed]
        return listed, np.where(listed < 0, np.float32(NOT_LISTED), scores)

    def listed_scores(self, rows: Rows, weights: "csr_array", bias: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the topics nearest to each row, and their scores with the contributions of related topics.

        The number -1 stands for a topic that the tagger lacks.
        """
        listed, scores = self.scored(rows, weights, bias)
        if self.related is not None:
            scores += self.related.evidence(listed, scores)
        if self.restriction is not None:
            columns = self.restriction.columns
            position_of = np.full(self.centroids.shape[1] + 1, -1, np.int32)  # its last entry is where -1 stays -1
            position_of[columns] = np.arange(len(columns))
            listed = position_of[listed]
            scores = np.where(listed < 0, np.float32(NOT_LISTED), scores)
        return listed, scores

    def products(self, rows: Rows, matrix: "csr_array", listed: np.ndarray) -> np.ndarray:
        """Return the dot products of each row and the columns of a matrix that `listed` has for this row.

        `listed` has column numbers, of shape (n_rows, size); the products have the same shape.
        """
        return np.asarray(products_at(*rows, *parts_of(matrix), matrix.shape[1], listed))
