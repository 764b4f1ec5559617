"""Raise the scores of topics that often occur together with a document's most probable topics.

Co-occurrences of topics are counted in the training documents.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from textcat.model._shortlist import related_sums

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, eq=False)
class RelatedTopics:
    """Raise the scores of topics that often occur together with a document's best topics.

    Only listed topics have scores: those on the document's shortlist, whose centroids are nearest to the document. The
    score of a listed topic t becomes ::

        score(t) + weight · log(1 + sum_s P(s) · share(s, t) / least)

    The sum is over the document's best topics s. P(s) is the probability of s, computed from its score before scores
    are raised; share(s, t) is the fraction of the training documents with s that also have t.

    A topic without training documents has no co-occurrences. It is raised as much as the listed topic that is raised
    most; otherwise, every raised topic would overtake it.
    """

    shares: "csr_array"  # shape (n_topics, n_topics), float32: share(s, t) in row s
    a: np.ndarray  # shape (n_topics,): P(s) = 1 / (1 + exp(-(a·score + b)))
    b: np.ndarray  # shape (n_topics,)
    best: int  # how many of a document's best topics raise others
    weight: float
    least: float  # sums far below this one add almost nothing
    unseen: np.ndarray  # shape (n_topics,), bool: topics without training documents

    def evidence(self, listed: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Return how much related topics raise the scores of listed topics: shape (n_rows, size), float32, at least 0.

        `listed` has the numbers of the topics on each row's shortlist, filled up with -1, and `scores` has their
        scores; `size` is the number of topics on a shortlist.
        """
        shares = self.shares
        sums = related_sums(listed, scores, self.a, self.b, shares.indptr, shares.indices, shares.data, self.best)
        raised = np.asarray(self.weight * np.log1p(np.asarray(sums, np.float64) / self.least))
        if self.unseen.any():
            raised = np.where(self.unseen[listed] & (listed >= 0), raised.max(axis=1, keepdims=True, initial=0), raised)
        return raised.astype(np.float32)

    def parts(self, listed: np.ndarray, scores: np.ndarray, topic: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the topics that raise the score of a topic, the strongest first, with their contributions.

        `listed` and `scores` have the topics on one document's shortlist, and their scores without related topics. The
        whole contribution is divided among the topics s in proportion to ``P(s) · share(s, t)``, where t is `topic` or,
        if `topic` has no training documents, the topic that is raised most (see the class).
        """
        is_listed = listed >= 0
        if self.unseen[topic]:
            raised = replace(self, unseen=np.zeros_like(self.unseen)).evidence(listed[None], scores[None])
            topic = int(listed[np.argmax(raised[0])])
        best = np.argsort(-scores[is_listed], kind="stable")[: self.best]
        speaking, of_speaking = listed[is_listed][best], scores[is_listed][best].astype(np.float64)
        probabilities = 1 / (1 + np.exp(-(self.a[speaking] * of_speaking + self.b[speaking])))
        terms = probabilities * np.array([self._share(s, topic) for s in speaking.tolist()])
        total = terms.sum()
        added = terms / total * self.weight * np.log1p(total / self.least) if total > 0 else terms
        order = np.argsort(-added, kind="stable")
        order = order[added[order] > 0]
        return speaking[order], added[order]

    def _share(self, speaking: int, topic: int) -> float:
        start, end = self.shares.indptr[speaking : speaking + 2].tolist()
        places = np.flatnonzero(self.shares.indices[start:end] == topic)
        return float(self.shares.data[start + places[0]]) if len(places) else 0.0
