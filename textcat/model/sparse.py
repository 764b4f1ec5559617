"""A scorer with sparse weights, for many topics: it scores every topic."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from textcat.features.rows import Rows
from textcat.model._product import sparse_product
from textcat.model._product import top as sparse_top
from textcat.model.csr import (
    are_parts,
    canonical_weights,
    column_of,
    parts_of,
    parts_to_store,
    stored_matrix,
    types_of_parts,
    wide,
)
from textcat.model.manifest import BIAS, PARTS, ScorerSettings
from textcat.model.scorer import NUMBERS, Arrays, are_float32, highest_scores

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, eq=False)
class Sparse:
    """Score a document for every topic, to the bit as `Dense` does. Weights in any sparse format are accepted."""

    name: ClassVar[str] = "sparse"
    types: ClassVar[Mapping[str, tuple[np.dtype[Any], ...]]] = {**types_of_parts(PARTS, NUMBERS), BIAS: NUMBERS}
    unlisted_score: ClassVar[float] = -np.inf

    weights: "csr_array"  # shape (n_features, n_topics)
    bias: np.ndarray  # shape (n_topics,)

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", canonical_weights(self.weights))

    def scores(self, rows: Rows) -> np.ndarray:
        """Return the scores of documents, given their vectors (`rows`), for every topic: shape (n_rows, n_topics)."""
        if are_float32(rows, self.weights, self.bias):
            return np.asarray(sparse_product(*rows, *parts_of(self.weights), self.bias))
        return np.asarray((rows.matrix(self.weights.shape[0]) @ wide(self.weights)).toarray() + self.bias)

    def top(self, rows: Rows, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the columns of each document's n highest-scored topics, and their scores: see `Scorer.top`.

        Compiled code holds the scores of one row at a time.
        """
        if not are_float32(rows, self.weights, self.bias):
            return highest_scores(self.scores(rows), n)
        return sparse_top(*rows, *parts_of(self.weights), self.bias, min(n, len(self.bias)))

    def weights_of(self, column: int, features: np.ndarray | None = None) -> np.ndarray:
        """Return the weights of the topic in a column: for the features with the given numbers, or for all."""
        return column_of(self.weights, column, features)

    def related(self, row: Rows, topics: Sequence[str]) -> None:
        """Return None, because no topic adds to the score of another."""

    def of_topics(self, columns: np.ndarray, topics: Sequence[str]) -> "Sparse":
        """Return a scorer for only the topics in the given columns."""
        return Sparse(wide(self.weights)[:, columns], self.bias[columns])

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the CSR arrays of the weights and the biases, by the names under which they are stored."""
        return {**parts_to_store(self.weights, PARTS), BIAS: self.bias}

    def settings(self) -> ScorerSettings:
        """Return only the scorer's name; everything else is in arrays."""
        return ScorerSettings(self.name)

    @classmethod
    def fit_together(cls, arrays: Arrays, settings: ScorerSettings, n_features: int, n_topics: int) -> bool:
        """Return whether stored arrays fit a sparse scorer of so many features and topics."""
        return are_parts(arrays, PARTS, n_features, n_topics) and arrays[BIAS].shape == (n_topics,)

    @classmethod
    def restored(cls, arrays: Arrays, settings: ScorerSettings, n_topics: int) -> "Sparse":
        """Return a sparse scorer, given its stored arrays."""
        return cls(stored_matrix(arrays, PARTS, n_topics), arrays[BIAS])
