"""Decide which topics of a document stay if some of them exclude others."""

from collections.abc import Collection, Mapping


def excluded_topics(excluders: Mapping[int, Collection[int]], rank: Mapping[int, int]) -> dict[int, int]:
    """Return the topics that a document loses, each with the topic that excludes it, or is preferred to it.

    A topic is lost if one of its excluders stays; a topic that is lost excludes none. Of topics that exclude each
    other, directly or in a circle, the one with the lowest rank stays. The result does not depend on any order of the
    arguments. A topic that excludes itself is lost.

    Parameters
    ----------
    excluders : dict of int to collection of int
        For each topic that may be lost, the topics of the document that exclude it.
    rank : dict of int to int
        The place of each topic, different for all: 0 for the one to prefer.
    """
    lost = {topic: topic for topic, others in excluders.items() if topic in others}
    waiting = {
        topic: {other for other in excluders.get(topic, ()) if other not in lost}
        for topic in {*excluders, *(other for others in excluders.values() for other in others)} - lost.keys()
    }
    while waiting:
        stays = min(_free(waiting), key=rank.__getitem__)
        # Those that exclude it are in a circle with it, and not preferred.
        for topic in [topic for topic in waiting if stays in waiting[topic] or topic in waiting[stays]]:
            lost[topic] = stays
        waiting = {topic: others - lost.keys() for topic, others in waiting.items() if topic not in lost}
        waiting = {topic: others for topic, others in waiting.items() if topic != stays}
    return lost


def _free(excluders: Mapping[int, Collection[int]]) -> list[int]:
    """Return topics that nothing excludes; if there are none, those that are excluded only in circles with them."""
    if free := [topic for topic, others in excluders.items() if not others]:
        return free
    above = {topic: {*reachable(topic, excluders)} for topic in excluders}
    return [topic for topic, others in above.items() if all(topic in above[other] for other in others)]


def reachable(topic: int, links: Mapping[int, Collection[int]]) -> list[int]:
    """Return all topics that are reachable from a topic through links, without itself."""
    found, waiting = {topic: None}, [topic]
    while waiting:
        new = [other for other in links.get(waiting.pop(), ()) if other not in found]
        found |= dict.fromkeys(new)
        waiting += new
    return [other for other in found if other != topic]
