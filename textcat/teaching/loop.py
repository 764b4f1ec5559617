"""The loop of active learning: rank all documents by the answers so far, choose one to ask about, take its answer.

A session and a simulation run the same loop. They differ only in where answers come from: persons, or labels.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from textcat.teaching.query import QueryStrategy, Reason


class RanksDocuments(Protocol):
    """The methods of a ranker that the loop calls."""

    def train(self, positions: Any, labels: Any, examples: Any = None) -> Any:
        """Train on documents with the labels 1 and -1, and on other examples; return the weights for `scores`."""

    def scores(self, weights: Any) -> NDArray[Any]:
        """Score all documents with the weights that `train` returned."""


class Answers(Protocol):
    """The answers on a topic so far."""

    n_changes: int  # that affect the ranking

    def labelled(self) -> tuple[NDArray[Any], NDArray[np.int8]]:
        """Return the positions of the documents that have a label, and 1 or -1 for each."""


class Ranking(NamedTuple):
    """The scores of all documents for a topic."""

    model: int  # the number of changes to the answers that it includes
    weights: Any  # of the ranker
    scores: NDArray[np.float32]

    def rank_of(self, position: int, is_open: NDArray[np.bool_]) -> int:
        """Return the rank of a document among those that are open, from 1."""
        return 1 + int(np.count_nonzero((self.scores > self.scores[position]) & is_open))


class Choice(NamedTuple):
    """A document chosen to be asked about."""

    position: int
    reason: Reason
    rank: int  # among the documents that are open, from 1
    score: float


class Loop:
    """Active learning of one topic: call `rank` and `ask`, and repeat this when there are new answers.

    Random choices are a function of the key and of the number of answers.
    """

    def __init__(self, ranker: RanksDocuments, key: tuple[Any, ...]):
        self.ranking: Ranking | None = None  # the latest
        self._ranker, self._key = ranker, key

    def rank(self, answers: Answers, *evidence: Any) -> Ranking:
        """Train the ranker on the answers and on other evidence, and score all documents."""
        positions, labels = answers.labelled()
        weights = self._ranker.train(positions, labels, *evidence)
        self.ranking = Ranking(answers.n_changes, weights, np.asarray(self._ranker.scores(weights)))
        return self.ranking

    def ask(self, query: QueryStrategy, is_open: NDArray[np.bool_], n_answers: int, *key: str) -> Choice | None:
        """Choose one of the open documents by the latest ranking; return None if none is open."""
        assert self.ranking is not None
        chosen = query.choose(self.ranking.scores, is_open, n_answers, (*self._key, *key))
        if chosen is None:
            return None
        position, reason = chosen
        rank = self.ranking.rank_of(position, is_open)
        return Choice(position, reason, rank, float(self.ranking.scores[position]))
