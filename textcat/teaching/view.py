"""Read a session: its documents, topics, answers, labels, rankings and journal."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from textcat.base.errors import TextcatError
from textcat.teaching.journal import SessionJournal
from textcat.teaching.judgements import Agreement, Judgement, Judgements, TopicState
from textcat.teaching.pool import Pool
from textcat.teaching.pool.duplicates import Groups
from textcat.teaching.rankings import Rankings
from textcat.teaching.steps import SessionStep

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from textcat.model.tagger import Tagger


class View:
    """A read-only view of a session, for search, progress, screening and exports.

    `Session.view` returns it. Each method uses the answers at the time of the call.

    Parameters
    ----------
    pool : Pool
        The documents; also an attribute.
    journal : SessionJournal
    judgements : Judgements
        The current answers.
    rankings : Rankings
        The rankings by these answers.
    lock : context manager
        The session's lock: answers change only while it is held.
    """

    def __init__(
        self,
        pool: Pool,
        journal: SessionJournal,
        judgements: Judgements,
        rankings: Rankings,
        lock: AbstractContextManager[Any],
    ):
        self.pool = pool
        self._journal, self._judgements, self._rankings, self._lock = journal, judgements, rankings, lock

    def unchanged(self) -> AbstractContextManager[Any]:
        """Return a context manager: inside its ``with`` block no answer changes, so that several calls agree."""
        return self._lock

    @property
    def groups(self) -> Groups:
        """The groups of near-duplicates, after the splits that persons have made."""
        return self._judgements.groups

    @property
    def steps(self) -> list[SessionStep]:
        """The steps of the journal."""
        return [*self._journal.steps]

    def topic(self, name: str) -> TopicState:
        """Return the state of a topic: answers, settings and so on; raise TextcatError if there is no such topic."""
        return self._judgements.topic(name)

    def chosen_topics(self, topics: Iterable[str] | None = None) -> list[str]:
        """Return the given topics without repetitions; by default, return all topics of the session.

        Raise TextcatError if the session has no topic at all, or lacks one of the given topics.
        """
        with self._lock:
            chosen = list(self._judgements.topics if topics is None else dict.fromkeys(topics))
            if not chosen:
                raise TextcatError("The session has no topic: add one first.")
            for topic in chosen:
                self.topic(topic)
        return chosen

    def judgements(self, topic: str) -> list[Judgement]:
        """Return the current answers on a topic in the order in which they were given.

        There is one per person and group of near-duplicates, and one per adjudicated group.
        """
        with self._lock:
            return self.topic(topic).judgements()

    def labels(self, topic: str) -> dict[int, bool]:
        """Return the labels for a topic (True: yes), keyed by document position.

        Near-duplicates of judged documents are included.
        """
        with self._lock:
            labels, groups = self.topic(topic).labels, self.groups
            return dict(sorted((i, label) for group, label in labels.items() for i in groups.members(group)))

    def agreement(self, topic: str) -> Agreement:
        """Return the agreement of persons on a topic, and the disagreements that nobody has adjudicated."""
        with self._lock:
            return self.topic(topic).agreement()

    def scores(self, topic: str) -> NDArray[np.float32]:
        """Return the scores of all documents by a ranking that includes all answers: shape (n_documents,), float32."""
        with self._lock:
            return self._rankings.of(self.topic(topic)).scores

    def tagger(self, topic: str, position: int | None = None) -> Tagger:
        """Return a tagger of one topic, with the weights of a ranking that includes all answers.

        Parameters
        ----------
        topic : str
        position : int, optional
            Position of the document that the tagger is to score as the ranking does; without it, the length of a
            document has no effect (see `RankerSettings.length`).

        Returns
        -------
        Tagger
        """
        with self._lock:
            state = self.topic(topic)
            ranking, labels = self._rankings.of(state), state.labels.copy()
        return self._rankings.tagger(topic, ranking, labels, position)
