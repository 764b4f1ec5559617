"""Find the documents of a pool that are most similar to a query in words; near-duplicates are found as one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from textcat.teaching.judgements import TopicState
from textcat.teaching.pool import Pool, PoolError
from textcat.teaching.pool.duplicates import Groups

if TYPE_CHECKING:
    from textcat.teaching.session import Session


class Found(NamedTuple):
    """A document that a search has found, with its similarity to the query, a person's answer, and the label."""

    position: int
    id: str
    zones: dict[str, str]
    score: float  # the cosine of its row and the query's
    answer: str  # the person's own answer for the topic; "" if there is none
    label: bool | None  # the label for the topic that all persons' answers give; None if there is none


class SearchResults(NamedTuple):
    """A page of search results, the most similar document first."""

    n_found: int  # on all pages
    documents: list[Found]


class Hits(NamedTuple):
    """All documents that a query finds."""

    query: str
    order: NDArray[np.intp]  # positions, the most similar first; of near-duplicates, the most similar one only
    scores: NDArray[np.float32]  # of all documents of the pool


class Searcher:
    """Finds documents by words; the hits of the last query are kept for its next pages."""

    def __init__(self, pool: Pool, groups: Groups, rows_of: Callable[[list[str]], Any]):
        self._pool, self._groups, self._rows_of = pool, groups, rows_of
        self._latest: Hits | None = None

    def find(self, query: str) -> Hits:
        """Return the documents that share a term with a query, the most similar first.

        If the query is the id of a document, this document comes before all others.
        """
        hits = self._latest
        if hits is None or hits.query != query:
            scores = np.asarray(self._pool.rows @ self._rows_of([query]).toarray().ravel())
            positions = np.flatnonzero(scores > 0)
            order = positions[np.argsort(-scores[positions], kind="stable")]
            try:
                named = self._pool.position_of(query)
            except PoolError:
                pass
            else:
                order = np.concatenate([[named], order[order != named]])
            hits = self._latest = Hits(query, self._groups.first_of_each(order), scores)
        return hits

    def forget(self) -> None:
        """Forget the last query, because groups of near-duplicates have changed."""
        self._latest = None

    def page(self, hits: Hits, offset: int, limit: int, state: TopicState | None, person: str) -> SearchResults:
        """Return up to `limit` hits, beginning with number `offset` (from 0).

        If a topic's `state` is given, each hit has the person's answer and the label for this topic.
        """
        documents = []
        for position in hits.order[max(offset, 0) : max(offset, 0) + limit].tolist():
            group = self._groups.of(position)
            answer = "" if state is None else state.own_answer(group, person)
            label = None if state is None else state.labels.get(group)
            facts = self._pool.ids[position], self._pool.document(position), float(hits.scores[position])
            documents.append(Found(position, *facts, answer, label))
        return SearchResults(len(hits.order), documents)


def search(
    session: Session, query: str, topic: str | None = None, offset: int = 0, limit: int = 20, person: str = ""
) -> SearchResults:
    """Search documents by words, and return the most similar ones first; a document whose id is the query comes first.

    Parameters
    ----------
    session : Session
    query : str
    topic : str, optional
        Include the answers for this topic.
    offset, limit : int
        Number of found documents to skip, and the largest number to return.
    person : str
        The person whose own answers are included.

    Returns
    -------
    SearchResults
    """
    hits = session.searcher.find(query)
    with session.lock:
        state = None if topic is None else session.topic_state(topic)
        return session.searcher.page(hits, offset, limit, state, person)
