"""The loop of active learning: rank all documents by the answers so far, choose one to ask about, record the answer.

A session and a simulation run the same loop. They differ only in the source of the answers: persons or labels.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from textcat.teaching.query import QueryStrategy, Reason


class RanksDocuments(Protocol):
    """The methods that the loop calls on its ranker."""

    def train(self, positions: Any, labels: Any, examples: Any = None) -> Any:
        """Train on the documents at `positions`, with their labels (1 or -1), and return weights for `scores`.

        `examples` are further training examples that are not documents of the pool, such as keywords.
        """

    def scores(self, weights: Any) -> NDArray[Any]:
        """Score all documents with the weights that `train` returned."""


class Answers(Protocol):
    """The answers on a topic so far."""

    n_changes: int  # number of changes that affect the ranking

    def labelled(self) -> tuple[NDArray[Any], NDArray[np.int8]]:
        """Return the positions of the documents that have a label, and their labels (1 or -1)."""


class Ranking(NamedTuple):
    """The scores of all documents for a topic."""

    model: int  # number of the model: the number of changes that the ranking includes
    weights: Any  # the weights that the ranker returned
    scores: NDArray[np.float32]

    def rank_of(self, position: int, is_open: NDArray[np.bool_]) -> int:
        """Return the rank of a document by score among the open documents, those that can be asked about, from 1.

        `is_open` is the mask of the open documents.
        """
        return 1 + int(np.count_nonzero((self.scores > self.scores[position]) & is_open))


class Choice(NamedTuple):
    """A document chosen to be asked about."""

    position: int
    reason: Reason
    rank: int  # rank among the open documents, from 1
    score: float


class Loop:
    """Active learning of one topic: call `rank`, then `ask`; when there are new answers, call both again.

    Random choices depend only on `key` (a tuple such as seed and topic) and on the number of answers.
    """

    def __init__(self, ranker: RanksDocuments, key: tuple[Any, ...]):
        self.ranking: Ranking | None = None  # the latest ranking
        self._ranker, self._key = ranker, key

    def rank(self, answers: Answers, *evidence: Any) -> Ranking:
        """Train the ranker on the answers and further evidence, and return a ranking with the scores of all documents.

        `evidence` are further arguments of the ranker's `train`.
        """
        positions, labels = answers.labelled()
        weights = self._ranker.train(positions, labels, *evidence)
        self.ranking = Ranking(answers.n_changes, weights, np.asarray(self._ranker.scores(weights)))
        return self.ranking

    def ask(self, query: QueryStrategy, is_open: NDArray[np.bool_], n_answers: int, *key: str) -> Choice | None:
        """Choose one of the open documents, those that can be asked about, by the latest ranking.

        Return None if no document is open. `is_open` is the mask of the open documents, and `n_answers` the number of
        answers so far; `key`, such as a person's name, is appended to the loop's own key.
        """
        assert self.ranking is not None
        chosen = query.choose(self.ranking.scores, is_open, n_answers, (*self._key, *key))
        if chosen is None:
            return None
        position, reason = chosen
        rank = self.ranking.rank_of(position, is_open)
        return Choice(position, reason, rank, float(self.ranking.scores[position]))
