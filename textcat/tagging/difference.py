"""Compare the tags of two runs over the same archive: for each topic, which documents gained it and which lost it."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from textcat.tagging.shards import TaggedDocument, read_tags


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
    only_before: int
    only_now: int
    topics: list[TopicDifference]  # topics with differences, the largest number of differences first


def compare_tags(before: Path, now: Path, n_examples: int = 3) -> TagDifference:
    """Compare the tags in two folders of shards (the output files of a run).

    Documents are matched by source and position. If both runs have them in the same order, only a few are in memory at
    a time.

    Parameters
    ----------
    before, now : path
        Folders that `textcat tag --out` has written.
    n_examples : int, default 3
        Maximum number of example ids of documents that gained a topic, and of documents that lost it.

    Returns
    -------
    TagDifference

    Raises
    ------
    TextcatError
        If a folder has no shards.
    """
    counts = defaultdict[str, list[int]](lambda: [0, 0, 0, 0])
    examples = defaultdict[str, tuple[list[str], list[str]]](lambda: ([], []))
    waiting: tuple[dict[tuple[str, int], TaggedDocument], ...] = ({}, {})
    documents = changed = 0
    for old, new in _pairs(read_tags(before), read_tags(now), waiting):
        documents += 1
        topics, topics_now = set(old.topics), set(new.topics)
        changed += topics != topics_now
        for topic in topics:
            counts[topic][0] += 1
        for topic in topics_now:
            counts[topic][1] += 1
        for kind, differing in enumerate((topics_now - topics, topics - topics_now)):
            for topic in differing:
                counts[topic][2 + kind] += 1
                if len(examples[topic][kind]) < n_examples:
                    examples[topic][kind].append(new.id)
    rows = [
        TopicDifference(topic, n_before, n_now, came, went, tuple(examples[topic][0]), tuple(examples[topic][1]))
        for topic, (n_before, n_now, came, went) in counts.items()
        if came or went
    ]
    rows.sort(key=lambda row: (-row.came - row.went, row.topic))
    return TagDifference(documents, changed, len(waiting[0]), len(waiting[1]), rows)


def _pairs(
    before: Iterator[TaggedDocument],
    now: Iterator[TaggedDocument],
    waiting: tuple[dict[tuple[str, int], TaggedDocument], ...],
) -> Iterator[tuple[TaggedDocument, TaggedDocument]]:
    """Yield each document that is in both runs, as a pair: as tagged before, and as tagged now.

    Documents in one run only remain in `waiting`, which has a dict for each run.
    """
    for both in zip_longest(before, now):
        for side, document in enumerate(both):
            if document is None:
                continue
            key = (document.source, document.position)
            partner = waiting[1 - side].pop(key, None)
            if partner is None:
                waiting[side][key] = document
            else:
                yield (partner, document) if side else (document, partner)
