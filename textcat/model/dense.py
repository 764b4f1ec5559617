"""A scorer with dense weights: it scores every topic."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from textcat.features.rows import Rows
from textcat.model._product import product
from textcat.model.manifest import BIAS, WEIGHTS, ScorerSettings
from textcat.model.scorer import NUMBERS, Arrays, are_float32, highest_scores


@dataclass(frozen=True, eq=False)
class Dense:
    """Score a document for every topic: its feature vector (row) times the weights, plus the bias."""

    name: ClassVar[str] = "dense"
    types: ClassVar[Mapping[str, tuple[np.dtype[Any], ...]]] = {WEIGHTS: NUMBERS, BIAS: NUMBERS}
    unlisted_score: ClassVar[float] = -np.inf

    weights: np.ndarray  # shape (n_features, n_topics)
    bias: np.ndarray  # shape (n_topics,)

    def scores(self, rows: Rows) -> np.ndarray:
        """Return the scores of documents, given their vectors (`rows`), for every topic: shape (n_rows, n_topics)."""
        if are_float32(rows, self.weights, self.bias):
            return np.asarray(product(*rows, self.weights, self.bias))
        return np.asarray(rows.matrix(len(self.weights)) @ self.weights + self.bias)

    def top(self, rows: Rows, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the columns of each document's n highest-scored topics, and their scores, as `Scorer.top`."""
        return highest_scores(self.scores(rows), n)

    def weights_of(self, column: int, features: np.ndarray | None = None) -> np.ndarray:
        """Return the weights of the topic in a column: for the features with the given numbers, or for all."""
        return np.asarray(self.weights[slice(None) if features is None else features, column])

    def related(self, row: Rows, topics: Sequence[str]) -> None:
        """Return None, because no topic adds to the score of another."""

    def of_topics(self, columns: np.ndarray, topics: Sequence[str]) -> "Dense":
        """Return a scorer for only the topics in the given columns."""
        return Dense(np.ascontiguousarray(self.weights[:, columns]), self.bias[columns])

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the weights and the biases, by the names under which they are stored."""
        return {WEIGHTS: self.weights, BIAS: self.bias}

    def settings(self) -> ScorerSettings:
        """Return only the scorer's name; everything else is in arrays."""
        return ScorerSettings(self.name)

    @classmethod
    def fit_together(cls, arrays: Arrays, settings: ScorerSettings, n_features: int, n_topics: int) -> bool:
        """Return whether the shapes of stored arrays fit a dense scorer of so many features and topics."""
        return arrays[WEIGHTS].shape == (n_features, n_topics) and arrays[BIAS].shape == (n_topics,)

    @classmethod
    def restored(cls, arrays: Arrays, settings: ScorerSettings, n_topics: int) -> "Dense":
        """Return a dense scorer, given its stored arrays."""
        return cls(arrays[WEIGHTS], arrays[BIAS])
