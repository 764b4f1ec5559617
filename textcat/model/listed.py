"""A scorer for thousands of topics: it scores only the topics on a document's shortlist."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from textcat.features.rows import Rows
from textcat.model._product import highest
from textcat.model.csr import are_parts, column_of, parts_to_store, stored_matrix, types_of_parts
from textcat.model.manifest import BIAS, CENTROIDS, PARTS, RELATED, RELATED_CURVES, RelatedSettings, ScorerSettings
from textcat.model.related import RelatedTopics
from textcat.model.scorer import Arrays, Related
from textcat.model.shortlist import Shortlist, products_of_listed

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_FLOAT32 = (np.dtype(np.float32),)


class Restriction(NamedTuple):
    """The topics that a scorer is restricted to; the model's other topics may still raise their scores."""

    columns: np.ndarray  # columns of the scorer's topics in the model
    topics: Sequence[str]  # all topics of the model


@dataclass(frozen=True, eq=False)
class Listed:
    """Score a document only for its shortlist: the topics whose centroids are nearest to it.

    A topic that often occurs together with the document's best topics gets a higher score.

    Each topic's weights were trained only on documents whose shortlist has the topic; its scores of other documents are
    meaningless.
    """

    name: ClassVar[str] = "listed"
    types: ClassVar[Mapping[str, tuple[np.dtype[Any], ...]]] = {
        **types_of_parts(PARTS, _FLOAT32),
        **types_of_parts(CENTROIDS, _FLOAT32),
        **types_of_parts(RELATED, _FLOAT32),
        RELATED_CURVES: (np.dtype(np.float64),),
        BIAS: _FLOAT32,
    }
    unlisted_score: ClassVar[float] = -30.0  # a log odds of about 1 in 10^13

    weights: "csr_array"  # shape (n_features, n_topics of the model), float32
    biases: np.ndarray  # shape (n_topics of the model,)
    shortlist: Shortlist
    related_topics: RelatedTopics | None = None  # None: no related topics
    restriction: Restriction | None = None  # None: the scorer has all topics of the model

    @property
    def bias(self) -> np.ndarray:
        """The score of each topic for a document without terms, if it were on the shortlist: shape (n_topics,)."""
        return self.biases if self.restriction is None else self.biases[self.restriction.columns]

    def scores(self, rows: Rows) -> np.ndarray:
        """Return the scores of documents, given their vectors (`rows`), for every topic: shape (n_rows, n_topics).

        The scores of topics that are not on a document's shortlist are `unlisted_score`.
        """
        listed, values = self._listed_and_raised(rows)
        scores = np.full((len(listed), len(self.bias)), self.unlisted_score, np.float32)
        documents, places = np.nonzero(listed >= 0)
        scores[documents, listed[documents, places]] = values[documents, places]
        return scores

    def top(self, rows: Rows, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the columns of each document's n highest-scored topics, and their scores.

        At most as many columns are returned as a shortlist has topics. Like `Scorer.top`, it pads short lists.
        """
        listed, scores = self._listed_and_raised(rows)
        places, values = highest(scores, min(n, self.shortlist.size))
        return np.take_along_axis(listed, places, 1), values

    def weights_of(self, column: int, features: np.ndarray | None = None) -> np.ndarray:
        """Return the weights of the topic in a column: for the features with the given numbers, or for all."""
        return column_of(self.weights, self._column_in_model(column), features)

    def listed(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Return the model's topics on each document's shortlist, and their scores before related topics raise them.

        Both arrays have the shape (n_rows, size), where `size` is the length of a shortlist; shorter lists are filled
        up with -1 and `unlisted_score`.
        """
        rows = rows._replace(data=rows.data.astype(np.float32, copy=False))
        listed = self.shortlist.topics(rows)
        scores = products_of_listed(rows, self.weights, listed) + self.biases[listed]
        return listed, np.where(listed < 0, np.float32(self.unlisted_score), scores)

    def _listed_and_raised(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Return the columns of topics on each document's shortlist, and their scores raised by related topics.

        For topics that the scorer is not restricted to, these are -1 and `unlisted_score`.
        """
        listed, scores = self.listed(rows)
        if self.related_topics is not None:
            scores += self.related_topics.evidence(listed, scores)
        if self.restriction is not None:
            columns = self.restriction.columns
            position_of = np.full(len(self.biases) + 1, -1, np.int32)  # its last entry keeps -1 at -1
            position_of[columns] = np.arange(len(columns))
            listed = position_of[listed]
            scores = np.where(listed < 0, np.float32(self.unlisted_score), scores)
        return listed, scores

    def _column_in_model(self, column: int) -> int:
        return column if self.restriction is None else int(self.restriction.columns[column])

    def related(self, row: Rows, topics: Sequence[str]) -> Related | None:
        """Return a function that lists the topics that raise another topic's score: see `Scorer.related`."""
        if (related := self.related_topics) is None:
            return None
        names = topics if self.restriction is None else self.restriction.topics
        listed, scores = self.listed(row)  # computed once for all topics that are asked for

        def of_topic(column: int) -> list[tuple[str, float]]:
            columns, added = related.parts(listed[0], scores[0], self._column_in_model(column))
            return [(names[j], adds) for j, adds in zip(columns.tolist(), added.tolist(), strict=True)]

        return of_topic

    def of_topics(self, columns: np.ndarray, topics: Sequence[str]) -> "Listed":
        """Return a scorer for only the topics in the given columns; it still ranks all topics to find shortlists."""
        if self.restriction is not None:
            columns, topics = self.restriction.columns[columns], self.restriction.topics
        return replace(self, restriction=Restriction(columns, topics))

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of weights, centroids and related topics, by the names under which they are stored."""
        arrays = {**parts_to_store(self.weights, PARTS), BIAS: self.biases}
        arrays |= parts_to_store(self.shortlist.centroids, CENTROIDS)
        if (related := self.related_topics) is not None:
            arrays |= parts_to_store(related.shares, RELATED)
            arrays[RELATED_CURVES] = np.stack([related.a, related.b])
        return arrays

    def settings(self) -> ScorerSettings:
        """Return the settings to store: the number of topics on a shortlist, and the settings of related topics."""
        numbers = None
        if (related := self.related_topics) is not None:
            unseen = np.flatnonzero(related.unseen).tolist()
            numbers = RelatedSettings(related.best, related.weight, related.least, unseen)
        return ScorerSettings(self.name, self.shortlist.size, numbers)

    @classmethod
    def fit_together(cls, arrays: Arrays, settings: ScorerSettings, n_features: int, n_topics: int) -> bool:
        """Return whether stored arrays and settings fit a scorer with a shortlist, of so many features and topics."""
        return (
            are_parts(arrays, PARTS, n_features, n_topics)
            and are_parts(arrays, CENTROIDS, n_features, n_topics)
            and arrays[BIAS].shape == (n_topics,)
            and 0 < settings.size <= n_topics
            and (settings.related is not None) == (RELATED_CURVES in arrays)
            and (settings.related is None or _are_related(arrays, settings.related, n_topics))
        )

    @classmethod
    def restored(cls, arrays: Arrays, settings: ScorerSettings, n_topics: int) -> "Listed":
        """Return a scorer with a shortlist, given its stored arrays and settings."""
        related = None
        if (numbers := settings.related) is not None:
            unseen = np.zeros(n_topics, bool)
            unseen[numbers.unseen] = True
            shares, (a, b) = stored_matrix(arrays, RELATED, n_topics), arrays[RELATED_CURVES]
            related = RelatedTopics(shares, a, b, numbers.best, numbers.weight, numbers.least, unseen)
        shortlist = Shortlist(stored_matrix(arrays, CENTROIDS, n_topics), settings.size)
        return cls(stored_matrix(arrays, PARTS, n_topics), arrays[BIAS], shortlist, related)


def _are_related(arrays: Arrays, numbers: RelatedSettings, n_topics: int) -> bool:
    """Return whether stored arrays and settings of related topics fit together, for so many topics."""
    return (
        are_parts(arrays, RELATED, n_topics, n_topics)
        and arrays[RELATED_CURVES].shape == (2, n_topics)
        and all(0 <= topic < n_topics for topic in numbers.unseen)
    )
