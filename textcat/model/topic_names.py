"""Find the topic that a user names by id or name, and show names next to ids."""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain
from typing import Any

from textcat.base.errors import TextcatError, first_of
from textcat.reading.labels import folded_name

_END = re.compile("[/#]")  # separators before the last part of a URI


def find_topic(topics: Collection[str], names: Mapping[str, str], wanted: str) -> str:
    """Return the id of the topic that `wanted` names by id or name; raise TextcatError unless there is exactly one.

    `names` has the names of topics by their ids.
    """
    from difflib import get_close_matches  # imported here, so that `textcat --help` need not import it

    if wanted in topics:
        return wanted
    if not isinstance(wanted, str):
        raise TextcatError(f"{wanted!r:.60} is no topic: give the id or the name of one, a text.")
    same_name = [topic for topic, name in names.items() if name == wanted]
    key = folded_name(wanted)
    same_name = same_name or [topic for topic, name in names.items() if folded_name(name) == key]
    ids = same_name or [topic for topic in topics if folded_name(topic) == key]
    if len(ids) == 1:
        return ids[0]
    if ids:
        shown = first_of(sorted(ids))
        raise TextcatError(f"{len(ids)} topics have the name {wanted!r}: give the id of one of them, {shown}.")
    folded = wanted.casefold()
    text_of = {text.casefold(): text for text in chain(topics, names.values())}
    # users may know only the end of a URI, or only one word of a name
    ends = {_END.split(text)[-1]: text_of[text] for text in text_of}
    near = get_close_matches(folded, text_of, n=1) or [text_of[text] for text in text_of if folded in text.split()]
    near = near or [ends[end] for end in get_close_matches(folded, ends, n=1)]
    hint = f" Did you mean {text_of.get(near[0], near[0])!r}?" if near else ""
    raise TextcatError(f"The model has no topic {wanted!r}.{hint} `textcat topics MODEL` lists its topics.")


def topic_finder(topics: Collection[str], names: Mapping[str, str]) -> Callable[[str], str]:
    """Return a function of a name that does the same as `find_topic`, but faster for many names."""
    by_name, by_folded, by_id = (defaultdict[str, list[str]](list) for _ in range(3))
    for topic, name in names.items():
        by_name[name].append(topic)
        by_folded[folded_name(name)].append(topic)
    for topic in topics:
        by_id[folded_name(topic)].append(topic)

    def find(wanted: str) -> str:
        if wanted in topics:
            return wanted
        key = folded_name(wanted)
        ids = by_name.get(wanted) or by_folded.get(key) or by_id.get(key, [])
        return ids[0] if len(ids) == 1 else find_topic(topics, names, wanted)

    return find


def topic_label(topic: str, names: Mapping[str, str]) -> str:
    """Return a topic's name followed by its id in parentheses, or its id alone if it has no other name."""
    name = names.get(topic, topic)
    return topic if name == topic else f"{name} ({topic})"


def name_entry(topic: str, names: Mapping[str, str]) -> dict[str, str]:
    """Return ``{"name": name}`` for a topic with a name, and an empty dict for a topic without a name."""
    return {"name": names[topic]} if topic in names else {}


def facts_with_names(
    facts: Mapping[str, Sequence[Any]], topics: Sequence[str], names: Mapping[str, str]
) -> Mapping[str, Sequence[Any]]:
    """Return facts about topics with a first entry "name", the list of the topics' names.

    A topic without a name has "" there. If no topic has a name, the facts are returned as they are.
    """
    return {"name": [names.get(topic, "") for topic in topics], **facts} if names else facts
