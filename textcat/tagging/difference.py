"""Compare the tags of two runs over the same archive: which tags came and which went, topic by topic."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from textcat.tagging.shards import TaggedDocument, read_tags


class TopicDifference(NamedTuple):
    """Hold how many documents have a topic in two runs, and how many got or lost it, with ids of some of them.

    `came` counts the documents that have the topic only in the later run, `went` those that have it only in the
    earlier.
    """

    topic: str
    before: int  # documents with the topic in the earlier run, of those that both have
    now: int  # of the same, those with the topic in the later run
    came: int  # documents that got the topic
    went: int  # documents that lost it
    examples_came: tuple[str, ...]  # ids of the first such documents
    examples_went: tuple[str, ...]


class TagDifference(NamedTuple):
    """Hold how many documents have other tags in one run than in an earlier one, and for which topics."""

    documents: int  # that both runs have
    changed: int  # those of them whose topics differ
    only_before: int
    only_now: int
    topics: list[TopicDifference]  # those with the most differences first; topics without a difference are left out


def compare_tags(before: Path, now: Path, n_examples: int = 3) -> TagDifference:
    """Compare the tags in two folders of shards (the output files of a run).

    Two documents are the same if they have the same source and position. If both runs have their documents in the same
    order, only few of them are in memory at a time.

    Parameters
    ----------
    before, now : path
        Folders that `textcat tag --out` has written.
    n_examples : int, default 3
        Most ids to keep of the documents that got, and of those that lost, a topic.

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
    """Yield each document that both runs have, once as tagged before and once as now.

    Documents that only one run has are left in `waiting`, which has a dict for each run.
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
