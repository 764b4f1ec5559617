"""Draw documents of each month of a tagged archive at random, and find the judged documents that are such a sample."""

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from textcat.corpus.corrections import Correction, Corrections, all_topics
from textcat.reading.dates import month_of
from textcat.tagging.shards import Row, TaggedDocument, find_documents, read_tags

_OPEN, _SKIPPED, _JUDGED = range(3)


class Draws(NamedTuple):
    """The order in which the documents of each month are drawn; documents without a date are one more month."""

    order: NDArray[np.intp]  # numbers of documents, by month, then in the order of draws
    turns: NDArray[np.intp]  # for each of these, its place in the order of its month, from 0
    sizes: NDArray[np.intp]  # number of documents of each month
    states: NDArray[np.int8]  # for each document, by number


class Months(NamedTuple):
    """The months of judged documents, and the numbers of documents that these months have in the archive."""

    of_document: Sequence[int]  # for each judged document, the number of its month
    sizes: NDArray[np.int64]


class JudgedSample(NamedTuple):
    """The judged documents that are a random sample of each month of an archive as it is now."""

    documents: list[tuple[Set[str], TaggedDocument]]  # all topics of each document, and its present tags
    months: Months
    n_outside: int = 0  # judged documents that are not part of the sample
    n_gone: int = 0  # judged documents that are not in the archive any more
    n_other: int = 0  # documents of months without a judged document of the sample


NO_SAMPLE = JudgedSample([], Months([], np.zeros(0, np.int64)))


def draw_documents(rows: Iterable[TaggedDocument], state_of: Callable[[TaggedDocument], int]) -> Draws:
    """Return the order in which the documents of each month are drawn.

    It is the order of hashes of documents' sources and ids, so it stays the same if documents are added, or have moved
    in their file. `state_of` returns a small number, which is kept for each document.
    """
    number_of: dict[str, int] = {}
    months, digests, states = array("q"), bytearray(), array("b")
    for row in rows:
        months.append(number_of.setdefault(month_of(row.date), len(number_of)))
        key = f"{row.source}\0{row.id}".encode("utf-8", "surrogatepass")
        digests += blake2b(key, digest_size=8).digest()
        states.append(state_of(row))
    of_row = np.array(months, np.intp)
    hashes = np.frombuffer(digests, ">u8").astype(np.uint64)
    order = np.lexsort((_distinct(hashes), of_row))
    sizes = np.bincount(of_row, minlength=len(number_of))
    turns = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return Draws(order, turns, sizes, np.array(states, np.int8))


def _distinct(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Give equal hashes, of documents with the same id, other ones by their order: otherwise, they are drawn at once.

    The nth is what the generator SplitMix64 returns after n steps from the hash.
    """
    order = np.argsort(hashes, kind="stable")
    in_order = hashes[order]
    is_first = np.r_[True, in_order[1:] != in_order[:-1]][: len(hashes)]
    numbers = np.arange(len(hashes))
    nth = np.empty(len(hashes), np.uint64)
    nth[order] = numbers - np.maximum.accumulate(np.where(is_first, numbers, 0))
    mixed = hashes + nth * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))


def judged_sample(folder: Path, corrections: Corrections) -> JudgedSample:
    """Return the judged documents of a tagged archive that are a random sample of each month: see `sample_among`."""
    by_place = {place: made for place, made in corrections.by_place().items() if any(each.is_final for each in made)}
    found = find_documents(folder, by_place) if by_place else {}
    n_gone = sum(all_topics(made) is not None for place, made in by_place.items() if place not in found)
    made_of: dict[Row, list[Correction]] = {}
    for place, row in found.items():  # a document has another place for each content of its file
        made_of.setdefault(_row(row), []).extend(by_place[place])
    topics_of = {row: all_topics(sorted(made, key=lambda each: each.number)) for row, made in made_of.items()}
    is_any_judged = any(topics is not None for topics in topics_of.values())  # else, the archive need not be read
    return sample_among(read_tags(folder) if is_any_judged else (), topics_of)._replace(n_gone=n_gone)


def sample_among(rows: Iterable[TaggedDocument], topics_of: Mapping[Row, Set[str] | None]) -> JudgedSample:
    """Return the judged documents that are a random sample of each month's documents in an archive.

    Documents that a month got after people judged its sample had no chance to be drawn. So a judged document counts
    only if it comes before the month's first unjudged one in the order of draws. Documents that people skipped are
    passed over.

    Parameters
    ----------
    rows : iterable of TaggedDocument
    topics_of : mapping of (str, int, str) to set of str or None
        All topics of each judged document, by source, position and id; None: people skipped it.
    """
    judged: list[tuple[Set[str], TaggedDocument]] = []

    def state_of(row: TaggedDocument) -> int:
        if _row(row) not in topics_of:
            return _OPEN
        topics = topics_of[_row(row)]
        if topics is None:
            return _SKIPPED
        judged.append((topics, row))
        return _JUDGED

    order, turns, sizes, states = draw_documents(rows, state_of)
    month = np.repeat(np.arange(len(sizes)), sizes)  # of the documents in `order`, as all below
    first_open = sizes.copy()
    is_open, is_judged = (states[order] == state for state in (_OPEN, _JUDGED))
    np.minimum.at(first_open, month[is_open], turns[is_open])
    is_sampled = is_judged & (turns < first_open[month])
    number = np.cumsum(states == _JUDGED) - 1  # of each judged document in `judged`
    documents = [judged[i] for i in number[order[is_sampled]].tolist()]
    sampled, of_document = np.unique(month[is_sampled], return_inverse=True)
    months = Months(of_document.tolist(), sizes[sampled])
    n_other = int(sizes.sum() - sizes[sampled].sum())
    return JudgedSample(documents, months, len(judged) - len(documents), n_other=n_other)


def _row(document: TaggedDocument) -> Row:
    return document.source, document.position, document.id
