"""Compare the tags of two runs over the same archive: for each topic, which documents gained it and which lost it."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import chain, zip_longest
from pathlib import Path
from typing import NamedTuple, TypeAlias

from textcat.runs.parts import warn_of_lacks
from textcat.tagging.shards import read_tags

# Topics of documents that have no partner so far, of the earlier and of the later run, by id, source and position.
_Unmatched: TypeAlias = tuple[dict[tuple[str, str, int], frozenset[str]], dict[tuple[str, str, int], frozenset[str]]]
_Pair: TypeAlias = tuple[str, frozenset[str], frozenset[str]]  # id, topics before, topics now


class TopicDifference(NamedTuple):
    """How many documents have a topic in two runs, and how many gained or lost it, with example ids.

    `came` counts the documents with the topic in the later run only, `went` those with it in the earlier run only.
    """

    topic: str
    before: int  # documents with the topic in the earlier run, among documents in both runs
    now: int  # documents with the topic in the later run, among the same
    came: int  # documents that gained the topic
    went: int  # documents that lost the topic
    examples_came: tuple[str, ...]  # example ids
    examples_went: tuple[str, ...]


class TagDifference(NamedTuple):
    """How many documents have different tags in two runs, and for which topics."""

    documents: int  # documents in both runs
    changed: int  # those of them with different topics
    only_before: int  # documents in the earlier run only
    only_now: int  # documents in the later run only
    topics: list[TopicDifference]  # topics with differences, the largest number of differences first


def compare_tags(before: Path, now: Path, n_examples: int = 3) -> TagDifference:
    """Compare the tags in two folders of shards (the output files of a run).

    A document of one run is compared with the document of the other run that has the same id, source and position. If
    there is none, it is compared with the document that has the same id, unless either run has several documents with
    this id: so documents that moved within a file, or to another one, are matched. (Documents without ids get one that
    is made of source and position.) If both runs have documents in the same order, only a few are in memory at a time.

    Parameters
    ----------
    before, now : path
        Folders that `textcat tag --out` has written.
    n_examples : int, default 3
        Maximum number of example ids of documents that gained a topic, and of documents that lost it.

    Raises
    ------
    TextcatError
        If a folder has no tags.
    """
    for folder in (before, now):
        warn_of_lacks([folder])
    counts = defaultdict[str, list[int]](lambda: [0, 0, 0, 0])
    examples = defaultdict[str, tuple[list[str], list[str]]](lambda: ([], []))
    unmatched: _Unmatched = ({}, {})
    documents = changed = 0
    for id_, topics, topics_now in chain(
        _unmoved_documents(before, now, unmatched), _moved_documents(before, now, unmatched)
    ):
        documents += 1
        changed += topics != topics_now
        for topic in topics:
            counts[topic][0] += 1
        for topic in topics_now:
            counts[topic][1] += 1
        for kind, differing in enumerate((topics_now - topics, topics - topics_now)):
            for topic in differing:
                counts[topic][2 + kind] += 1
                if len(examples[topic][kind]) < n_examples:
                    examples[topic][kind].append(id_)
    rows = [
        TopicDifference(topic, n_before, n_now, came, went, tuple(examples[topic][0]), tuple(examples[topic][1]))
        for topic, (n_before, n_now, came, went) in counts.items()
        if came or went
    ]
    rows.sort(key=lambda row: (-row.came - row.went, row.topic))
    return TagDifference(documents, changed, len(unmatched[0]), len(unmatched[1]), rows)


def _unmoved_documents(before: Path, now: Path, unmatched: _Unmatched) -> Iterator[_Pair]:
    """Yield documents with the same id, source and position in both runs; add all others to `unmatched`."""
    for rows in zip_longest(read_tags(before), read_tags(now)):
        for side, row in enumerate(rows):
            if row is None:
                continue
            key, topics = (row.id, row.source, row.position), frozenset(row.topics)
            partner = unmatched[1 - side].pop(key, None)
            if partner is None:
                unmatched[side][key] = topics
            else:
                yield (row.id, partner, topics) if side else (row.id, topics, partner)


def _moved_documents(before: Path, now: Path, unmatched: _Unmatched) -> Iterator[_Pair]:
    """Yield documents of `unmatched` that both runs have read, but from different files or positions; remove them.

    They are found by their ids, if an id occurs once in each run.
    """
    places = [{key[0]: key for key in documents} for documents in unmatched]
    moved = places[0].keys() & places[1].keys()
    if not moved:
        return
    for folder in (before, now):
        numbers = Counter(row.id for row in read_tags(folder) if row.id in moved)
        moved = {id_ for id_ in moved if numbers[id_] == 1}
    for id_ in [id_ for id_ in places[1] if id_ in moved]:
        topics, topics_now = (unmatched[side].pop(places[side][id_]) for side in (0, 1))
        yield id_, topics, topics_now
