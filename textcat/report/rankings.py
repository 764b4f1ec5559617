"""Rank the topics of test documents by a tagger of thousands of topics: measures per topic, documents ranked worst."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from textcat.base.progress import Stages
from textcat.features.rows import Rows
from textcat.model.measure import relevant_topics, score_row_blocks, without_unjudged

if TYPE_CHECKING:
    from textcat.corpus.documents import Corpus, Document
    from textcat.evaluation.evaluation import Evaluation
    from textcat.model.tagger import Tagger

RANKS = 10  # number of first topics of a document that are examined
_SHARES = 3  # decimals


class Rankings(NamedTuple):
    """The top-ranked topics of test documents, and counts for each topic.

    `found` counts the documents that have the topic among their top-ranked topics and in their labels. `given` counts
    the documents that get the topic, and `right` those of them that have it.
    """

    documents: Sequence[Document]
    relevant: sparse.csr_array  # shape (n_documents, n_topics), 1 where a document has a topic
    top: NDArray[np.int32]  # shape (n_documents, `RANKS`): topics by rank; -1: none
    found: NDArray[np.int64]  # for each topic: documents that have it, with it among their first topics
    given: NDArray[np.int64]  # for each topic: documents that get it by its threshold
    right: NDArray[np.int64]  # for each topic: those of these documents that have it


def rank_documents(tagger: Tagger, corpus: Corpus, stages: Stages) -> Rankings:
    """Rank the topics of the test documents of a corpus, and decide which topics they get, without house rules."""
    documents, n_topics = corpus.test, len(tagger.topics)
    relevant = sparse.csr_array(relevant_topics(tagger, corpus))
    found, given, right = (np.zeros(n_topics, np.int64) for _ in range(3))
    tops: list[NDArray[np.int32]] = []
    with stages.stage("rank topics", len(documents)) as advance:
        rows = tagger.features.transform(documents)
        has_terms = Rows.of(rows).has_terms
        blocks, start = score_row_blocks(tagger, rows, advance), 0
        for scores in without_unjudged(blocks, corpus.unjudged(documents)):
            top = tagger.decisions.first_topics(scores, RANKS)
            is_listed = np.take_along_axis(scores, top, axis=1) > tagger.scorer.unlisted_score
            tops.append(np.where(is_listed, top, -1).astype(np.int32))
            here = slice(start, start + len(scores))
            labels = relevant[here].toarray() > 0
            start += len(scores)
            given_here = tagger.decisions.without_rules.decide(scores, has_terms[here])
            given += given_here.sum(axis=0)
            right += (given_here & labels).sum(axis=0)
            places, ranks = np.nonzero(is_listed & np.take_along_axis(labels, top, axis=1))
            found += np.bincount(top[places, ranks], minlength=n_topics)
    return Rankings(documents, relevant, np.concatenate(tops), found, given, right)


def topic_rows(tagger: Tagger, rankings: Rankings | None, labels: Sequence[str]) -> list[list[Any]]:
    """Return the cells of a row for each topic, the largest topic first: its label, then numbers.

    The numbers are: training documents; test documents; of the test documents with the topic, the share that have it
    among their top-ranked topics; test documents that get the topic; precision, recall and F1 of these decisions. A
    number is None if it is not defined.
    """
    sizes = tagger.facts.train_sizes
    order = sorted(range(len(labels)), key=lambda j: (-sizes[j], labels[j]))
    if rankings is None:
        return [[labels[j], int(sizes[j]), *[None] * 6] for j in order]
    n, given, right = rankings.relevant.sum(axis=0), rankings.given, rankings.right
    shares = [
        _shares(over, under)
        for over, under in ((rankings.found, n), (right, given), (right, n), (2 * right, np.where(n, n + given, 0)))
    ]
    found, precision, recall, f1 = shares
    return [
        [labels[j], int(sizes[j]), int(n[j]), found[j], int(given[j]), precision[j], recall[j], f1[j]] for j in order
    ]


def _shares(over: NDArray[Any], under: NDArray[Any]) -> list[float | None]:
    return [round(float(a / b), _SHARES) if b else None for a, b in zip(over, under, strict=True)]


class RankedTopic(NamedTuple):
    """A topic of a test document: its rank, whether the document has it, and whether the tagger knows it."""

    topic: str
    rank: int | None  # from 1; None: not among the first topics
    is_wanted: bool
    is_known: bool = True  # whether the tagger has it


class WorstDocument(NamedTuple):
    """A test document whose topics are ranked badly, with the topics that it has and those that come first."""

    document: Document
    ndcg: float  # nDCG@10
    wanted: list[RankedTopic]
    first: list[RankedTopic]


def worst_documents(
    tagger: Tagger, rankings: Rankings, evaluation: Evaluation, n: int, n_first: int
) -> list[WorstDocument]:
    """Return the n documents with the lowest nDCG@10, each with its `n_first` top-ranked topics.

    Of documents with equal nDCG@10, those with more topics come first. Documents that have no topic known to the tagger
    are left out, because it cannot find any of their topics.
    """
    values = evaluation.values
    assert values is not None
    ndcg, n_wanted = values.values[0][values.measures.index(f"ndcg@{RANKS}")], np.diff(rankings.relevant.indptr)
    order = np.lexsort((-n_wanted, ndcg))
    worst = order[n_wanted[order] > 0][:n].tolist()
    return [_worst_document(tagger, rankings, i, float(ndcg[i]), n_first) for i in worst]


def _worst_document(tagger: Tagger, rankings: Rankings, i: int, ndcg: float, n_first: int) -> WorstDocument:
    document, top = rankings.documents[i], [int(j) for j in rankings.top[i] if j >= 0]
    rank_of = {tagger.topics[j]: rank for rank, j in enumerate(top, 1)}
    wanted_names = {tagger.topics[j] for j in rankings.relevant[[i]].indices.tolist()}
    wanted = [RankedTopic(topic, rank_of.get(topic), True, topic in wanted_names) for topic in document.topics]
    first = [RankedTopic(topic, rank, topic in document.topics) for topic, rank in rank_of.items()]
    return WorstDocument(document, ndcg, wanted, first[:n_first])
