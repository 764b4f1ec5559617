"""The protocol of scorers, which score documents for topics; each kind of scorer is a class in a file of its own.

`storage.py` lists the classes, and `manifest.py` the files that each of them stores.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np

from textcat.features.rows import Rows
from textcat.model._product import highest
from textcat.model.manifest import ScorerSettings

Arrays: TypeAlias = Mapping[str, np.ndarray]
#: A function that returns the topics that raise the score of the topic in a column, strongest first, with their
#: contributions.
Related: TypeAlias = Callable[[int], list[tuple[str, float]]]
NUMBERS = (np.dtype(np.float32), np.dtype(np.float64))  # types of stored arrays that hold weights


class Scorer(Protocol):
    """Score documents for topics, given the documents' feature vectors (rows); callers do not depend on the class."""

    name: ClassVar[str]  # name of the class, in manifests
    types: ClassVar[Mapping[str, tuple[np.dtype[Any], ...]]]  # the types that stored arrays may have, by their names
    #: The score of a topic that was not scored for a document; -inf where every topic is scored.
    unlisted_score: ClassVar[float]

    @property
    def bias(self) -> np.ndarray:
        """The score of each topic for a document without terms: shape (n_topics,)."""

    def scores(self, rows: Rows) -> np.ndarray:
        """Return the scores of documents, given their vectors (`rows`), for every topic: shape (n_rows, n_topics)."""

    def top(self, rows: Rows, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the columns of each document's n highest-scored topics, and their scores, the highest first.

        Topics of equal scores keep their order. There may be fewer than n columns. If a document has fewer topics than
        others, its columns are padded with -1, and its scores with `unlisted_score`.
        """

    def weights_of(self, column: int, features: np.ndarray | None = None) -> np.ndarray:
        """Return the weights of the topic in a column: for the features with the given numbers, or for all."""

    def related(self, row: Rows, topics: Sequence[str]) -> Related | None:
        """Return a function that lists the topics that raise another topic's score; None if no topic does.

        `topics` are the names of the scorer's columns.
        """

    def of_topics(self, columns: np.ndarray, topics: Sequence[str]) -> "Scorer":
        """Return a scorer of the topics in some columns, with the same scores; `topics` names all columns."""

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays to store, by the names in `types`."""

    def settings(self) -> ScorerSettings:
        """Return the settings to store in addition to the arrays."""

    @classmethod
    def fit_together(cls, arrays: Arrays, settings: ScorerSettings, n_features: int, n_topics: int) -> bool:
        """Return whether stored arrays and settings fit together, for so many features and topics."""

    @classmethod
    def restored(cls, arrays: Arrays, settings: ScorerSettings, n_topics: int) -> "Scorer":
        """Return a scorer made from stored `arrays` and `settings`; memory-mapped arrays stay mapped."""


def are_float32(rows: Rows, weights: Any, bias: np.ndarray) -> bool:
    """Return whether rows, weights and biases are all float32, so that compiled code can be used instead of scipy."""
    return bool(rows.data.dtype == weights.dtype == bias.dtype == np.float32)


def highest_scores(scores: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns of the n highest scores of each row, and these scores, as `Scorer.top` does."""
    if scores.dtype == np.float32:
        return highest(np.ascontiguousarray(scores), min(n, scores.shape[1]))
    columns = np.argsort(-scores, axis=1, kind="stable")[:, :n]
    return columns, np.take_along_axis(scores, columns, axis=1)
