"""Choose the documents of a tagged archive to review, those with the largest expected gain first."""

from array import array
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from textcat.evaluation.promises import Status
from textcat.tagging.judged_sample import draw_documents
from textcat.tagging.shards import TaggedDocument

_UNKNOWN = 0.5  # the probability of a tag if the model has no probabilities
_WITHOUT_PROMISE = 1e-6  # the weight of topics without a promise, which come last


class Chosen(NamedTuple):
    """The documents to review, as positions in the archive's tags, from 0.

    `n_open` is the number of documents that would be chosen if the queue could have any length.
    """

    numbers: NDArray[np.intp]
    n_open: int


def choose_documents(
    rows: Iterable[TaggedDocument],
    n: int,
    audit: float = 0.0,
    is_done: Callable[[TaggedDocument], bool] = lambda row: False,
) -> Chosen:
    """Choose documents to review, the largest gain first.

    The gain of a document is the expected increase of topics' recall if a person confirms its tags: the sum of ``p /
    n`` over its tags for review, where p is the probability of the tag (1/2 if the model has none), and n the expected
    number of documents with the topic in the archive. If the model makes no promises, all tags are for review. Topics
    with a promise come first, because they can be completed sooner. Documents with tags to audit are inserted at random
    places.

    Parameters
    ----------
    rows : iterable of TaggedDocument
    n : int
        How many documents to choose, at most.
    audit : float in [0, 1], default=0
        The share of automatic tags that is drawn at random for an audit.
    is_done : callable, optional
        Returns whether a document is already done.
    """
    number_of: dict[str, int] = {}
    document, topic, status, probability = array("q"), array("q"), array("b"), array("d")
    audited, closed = array("q"), array("q")  # row numbers of documents
    n_rows = 0
    for number, row in enumerate(rows):
        n_rows = number + 1
        if is_done(row):
            closed.append(number)
        elif audit and any(audited_tags(row, audit)):
            audited.append(number)
        for name, p, said in zip(row.topics, row.probabilities, row.statuses, strict=True):
            document.append(number)
            topic.append(number_of.setdefault(name, len(number_of)))
            status.append(_CODES[said])
            probability.append(_UNKNOWN if p is None else p)
    topics, statuses, probabilities = np.array(topic, np.intp), np.array(status), np.array(probability)
    is_promised = np.zeros(len(number_of), bool)
    is_promised[topics[statuses == _CODES[Status.AUTOMATIC]]] = True
    waits = statuses == (_CODES[Status.REVIEW] if statuses.any() else _CODES[None])
    expected = np.maximum(np.bincount(topics, probabilities, len(number_of)), 1)
    weights = (np.where(is_promised, 1.0, _WITHOUT_PROMISE) / expected)[topics] * probabilities * waits
    gains = np.bincount(np.array(document, np.intp), weights, n_rows)
    gains[closed] = gains[audited] = 0
    drawn = np.random.default_rng(0).permutation(np.array(audited, np.intp))
    by_gain = np.argsort(-gains, kind="stable")[: np.count_nonzero(gains)]
    return Chosen(_mixed(by_gain, drawn)[:n], len(by_gain) + len(drawn))


def choose_sample(
    rows: Iterable[TaggedDocument],
    n: int,
    most: int,
    is_done: Callable[[TaggedDocument], bool] = lambda row: False,
) -> Chosen:
    """Choose up to n random documents of each month; documents that are done count among the n, but are not returned.

    They are the first ones by `draw_documents`, so a larger sample contains a smaller one. The months take turns, one
    document each, so that the documents judged first are a random sample, too.

    Parameters
    ----------
    rows : iterable of TaggedDocument
    n : int
        Maximum number of documents per month; documents without a date are treated as one more month.
    most : int
        Maximum number of documents to return.
    is_done : callable, optional
        Called with a document; returns whether it is done, so that it is not shown again.
    """
    draws = draw_documents(rows, is_done)
    chosen = draws.order[np.argsort(draws.turns, kind="stable")][: np.minimum(draws.sizes, n).sum()]
    chosen = chosen[draws.states[chosen] == 0]
    return Chosen(chosen[:most], len(chosen))


def _mixed(first: NDArray[np.intp], second: NDArray[np.intp]) -> NDArray[np.intp]:
    """Merge two arrays, with the entries of the second at random places."""
    is_second = np.zeros(len(first) + len(second), bool)
    is_second[np.random.default_rng(1).permutation(len(is_second))[: len(second)]] = True
    mixed = np.empty(len(is_second), np.intp)
    mixed[is_second], mixed[~is_second] = second, first
    return mixed


_CODES = {None: 0, Status.REVIEW.value: 1, Status.AUTOMATIC.value: 2}


def reviewed_tags(row: TaggedDocument, *, has_promises: bool) -> list[bool]:
    """Return for each tag of a document whether it is for review, by its status.

    If the model makes no promises (`has_promises` is False), all tags are for review.
    """
    return [said == Status.REVIEW if has_promises else True for said in row.statuses]


def audited_tags(row: TaggedDocument, share: float) -> list[bool]:
    """Return for each tag of a document whether it is in the audit: a random sample of the archive's automatic tags.

    The choice depends on the document and the topic alone; a larger share includes all tags of a smaller one.
    """
    return [
        said == Status.AUTOMATIC and _draw(row, topic) < share
        for topic, said in zip(row.topics, row.statuses, strict=True)
    ]


def _draw(row: TaggedDocument, topic: str) -> float:
    key = f"{row.source}\0{row.position}\0{row.id}\0{topic}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(key, digest_size=8).digest(), "big") / 2**64
