"""Rank a pool (the documents of an archive) by the answers on a topic; keep the ranking until the answers change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import vstack

from textcat.corpus.documents import name_in_words
from textcat.teaching import prior
from textcat.teaching.descriptions import Descriptions
from textcat.teaching.judgements import TopicState
from textcat.teaching.loop import Choice, Loop, Ranking
from textcat.teaching.pool import Pool
from textcat.teaching.query import Reason, most_uncertain
from textcat.teaching.ranker import Examples, Ranker, Weights

if TYPE_CHECKING:
    from textcat.model.tagger import Tagger


class Rankings:
    """The latest ranking of each topic of a session; rankers are trained when a ranking lacks answers."""

    def __init__(self, pool: Pool, ranker: Ranker, folder: Path | None, seed: int):
        self._pool, self._ranker, self._folder, self._seed = pool, ranker, folder, seed
        self._descriptions = Descriptions(pool.features)
        self._loops: dict[str, Loop] = {}
        self._priors: dict[str, Weights] = {}

    def latest(self, topic: str) -> Ranking | None:
        """Return the latest ranking of a topic, which may lack the latest answers; None before the first ranking."""
        return self._loops[topic].ranking if topic in self._loops else None

    def of(self, state: TopicState) -> Ranking:
        """Return a ranking of a topic that includes all answers; train the ranker if the latest ranking lacks some."""
        latest = self.latest(state.name)
        if latest is not None and latest.model == state.n_changes:
            return latest
        loop = self._loops.setdefault(state.name, Loop(self._ranker, (self._seed, state.name)))
        return loop.rank(state, self._examples(state), self._prior(state))

    def ask(self, state: TopicState, is_open: NDArray[np.bool_], person: str) -> Choice | None:
        """Choose a document to ask a person about; return None if no document is open.

        `is_open` is the mask of the open documents: those that the person can be asked about.
        """
        self.of(state)
        return self._loops[state.name].ask(state.query, is_open, state.n_answers(), person)

    def ask_over(
        self, states: Sequence[TopicState], is_open: Sequence[NDArray[np.bool_]], person: str
    ) -> tuple[TopicState, Choice] | None:
        """Choose a document to ask a person about for several topics, and the topic that is most uncertain about it.

        If a topic's own next question is drawn at random, return this question: of several, that of the first topic.
        `is_open` has for each topic the mask of the documents that can be asked about. Return None if there is none.
        """
        for state, mask in zip(states, is_open, strict=True):
            choice = self.ask(state, mask, person)
            if choice is not None and choice.reason == Reason.AT_RANDOM:
                return state, choice
        rankings = [self.of(state) for state in states]
        chosen = most_uncertain([ranking.scores for ranking in rankings], is_open)
        if chosen is None:
            return None
        position, number = chosen
        ranking, rank = rankings[number], rankings[number].rank_of(position, is_open[number])
        return states[number], Choice(position, Reason.UNCERTAIN, rank, float(ranking.scores[position]))

    def tagger(self, topic: str, ranking: Ranking, labels: Mapping[int, bool], position: int | None = None) -> Tagger:
        """Return a tagger of one topic that has a ranking's weights.

        If `position` is given, the weights are multiplied by the length factor of the document at this position (see
        `RankerSettings.length`), so that the tagger scores this document as the ranking does. `labels` has the label of
        each judged group of near-duplicates.
        """
        from textcat.model.decisions import Decisions
        from textcat.model.dense import Dense
        from textcat.model.facts import TrainingFacts
        from textcat.model.tagger import Tagger

        w, bias = self._ranker.whole(ranking.weights, 1 if position is None else self._ranker.factors[position])
        return Tagger(
            features=self._pool.features,
            scorer=Dense(w.reshape(-1, 1), np.array([bias], np.float32)),
            decisions=Decisions(np.zeros(1, np.float32)),
            topics=(topic,),
            facts=TrainingFacts(np.array([sum(labels.values())]), len(labels)),
        )

    def _prior(self, state: TopicState) -> Weights | None:
        if "model" in state.about and state.name not in self._priors:
            self._priors[state.name] = prior.read_prior(self._folder, state.about["model"])
        return self._priors.get(state.name)

    def _examples(self, state: TopicState) -> Examples | None:
        """Return a topic's name, description, query and keywords as training examples.

        Return None if no document of the pool has any of their terms.
        """
        about = " ".join(filter(None, [name_in_words(state.name), state.about["description"]]))
        descriptions = [text for text in (about, state.about["query"]) if text.strip()]
        keywords = state.keywords()
        described_rows = self._descriptions.rows(descriptions)
        rows = vstack([described_rows, *(self._pool.rows_of([term]) for term in keywords)], "csr", np.float32)
        nonempty = np.flatnonzero(np.diff(rows.indptr) > 0)
        if not len(nonempty):
            return None
        sides = [1] * len(descriptions) + [1 if speaks_for else -1 for speaks_for in keywords.values()]
        return Examples(rows[nonempty], np.array(sides, np.int8)[nonempty], np.ones(len(nonempty)))
