"""Search the documents of a pool by similarity to a query in words; near-duplicates are returned once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from textcat.teaching.pool import PoolError
from textcat.teaching.view import View


class Found(NamedTuple):
    """Hold a document that a search has found, with its similarity to the query, a person's answer, and the label."""

    position: int
    id: str
    zones: dict[str, str]
    score: float  # cosine similarity of its row and the query's
    answer: str  # the person's own answer for the topic; "" if there is none
    label: bool | None  # the label for the topic from all persons' answers; None if there is none


class SearchResults(NamedTuple):
    """A page of search results, the most similar document first."""

    n_found: int  # number of results on all pages
    documents: list[Found]


class _Hits(NamedTuple):
    """All documents that a query finds."""

    query: str
    order: NDArray[np.intp]  # positions, the most similar first
    scores: NDArray[np.float32]  # similarities of all documents of the pool


class Search:
    """Search the documents of a session by words; the results of the last query are cached for further pages."""

    def __init__(self, view: View):
        self._view = view
        self._latest: _Hits | None = None

    def find(
        self, query: str, topic: str | None = None, offset: int = 0, limit: int = 20, person: str = ""
    ) -> SearchResults:
        """Return the documents that share a term with a query, the most similar first.

        If the query is the id of a document, this document comes before all others.

        Parameters
        ----------
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
        hits, pool = self._hits(query), self._view.pool
        with self._view.unchanged():
            state, groups = None if topic is None else self._view.topic(topic), self._view.groups
            order = groups.first_of_each(hits.order)
            documents = []
            for position in order[max(offset, 0) : max(offset, 0) + limit].tolist():
                group = groups.of(position)
                answer = "" if state is None else state.own_answer(group, person)
                label = None if state is None else state.labels.get(group)
                facts = pool.ids[position], pool.document(position), float(hits.scores[position])
                documents.append(Found(position, *facts, answer, label))
        return SearchResults(len(order), documents)

    def _hits(self, query: str) -> _Hits:
        hits, pool = self._latest, self._view.pool
        if hits is None or hits.query != query:
            scores = np.asarray(pool.rows @ pool.rows_of([query]).toarray().ravel())
            positions = np.flatnonzero(scores > 0)
            order = positions[np.argsort(-scores[positions], kind="stable")]
            try:
                named = pool.position_of(query)
            except PoolError:
                pass
            else:
                order = np.concatenate([[named], order[order != named]])
            hits = self._latest = _Hits(query, order, scores)
        return hits
