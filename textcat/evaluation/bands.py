"""Choose bands, such as the largest topics: sets of topics over which measures are averaged."""

import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from textcat.base.errors import TextcatError, did_you_mean
from textcat.reading.labels import label_name

DEFAULT_BANDS = ("ALL", "TOP10", "LAST30")
MANY_TOPICS = 1000  # the number of topics from which taggers are measured by the top-ranked topics of each document
_LARGEST_OR_SMALLEST = re.compile(r"(TOP|LAST)([1-9][0-9]*)", re.IGNORECASE)
_SIZES = re.compile(r"([0-9]+)-([0-9]*)")


@dataclass(frozen=True)
class Band:
    """A set of topics, such as the ten largest, over which measures are averaged."""

    name: str
    topics: tuple[int, ...]  # columns of topics, from the largest in training to the smallest, or as they are listed


def choose_bands(topics: Sequence[str], train_sizes: ArrayLike, spec: str | Iterable[str] | None = None) -> list[Band]:
    """Choose the topics of each band by their number of training positives.

    `spec` names the bands, as in `textcat.evaluate_scores`. Topics are ordered from the largest to the smallest, topics
    of equal size by name; ``TOPn`` is the head of that order, and ``LASTn`` its tail. With fewer than n topics, the
    band has all topics.
    """
    sizes = np.asarray(train_sizes).tolist()
    if len(sizes) != len(topics):
        raise ValueError(f"{len(topics)} topics need as many training sizes, not {len(sizes)}.")
    by_size = sorted(range(len(topics)), key=lambda column: (-sizes[column], topics[column]))
    if spec is None:
        spec = default_bands(len(topics)) or "ALL"
    return [_band(text.strip(), topics, sizes, by_size) for text in ([spec] if isinstance(spec, str) else spec)]


def default_bands(n_topics: int) -> list[str]:
    """Return the names of the default bands (sets of topics), such as ALL and TOP10."""
    return [name for name, size in zip(DEFAULT_BANDS, (0, 10, 30), strict=True) if size < n_topics]


def _band(text: str, topics: Sequence[str], sizes: Sequence[int], by_size: Sequence[int]) -> Band:
    if "=" in text:
        return _listed(text, topics)
    if text.upper() == "ALL":
        return Band("ALL", tuple(by_size))
    if match := _LARGEST_OR_SMALLEST.fullmatch(text):
        n = int(match[2])
        return Band(text.upper(), tuple(by_size[:n] if match[1].upper() == "TOP" else by_size[-n:]))
    if match := _SIZES.fullmatch(text):
        low, high = int(match[1]), int(match[2]) if match[2] else math.inf
        if low <= high:
            return Band(text, tuple(column for column in by_size if low <= sizes[column] <= high))
    raise TextcatError(
        f"No band '{text}': give ALL, TOPn or LASTn with n from 1, a range of training sizes "
        "such as 10-50 or 50-, or name=topic,topic."
    )


def _listed(text: str, topics: Sequence[str]) -> Band:
    name, _, listed = (part.strip() for part in text.partition("="))
    columns = {topic: column for column, topic in enumerate(topics)}
    given = _split_topics(listed, columns)
    wanted = dict.fromkeys(topic if topic in columns else label_name(topic) for topic in given)
    if not (name and wanted):
        raise TextcatError(f"The band '{text}' lacks its name or its topics: write name=topic,topic.")
    for topic in wanted:
        if topic not in columns:
            remedy = did_you_mean(topic, topics) or f" Known topics: {', '.join(topics)}."
            raise TextcatError(f"No topic '{topic}' for the band '{name}'.{remedy}")
    return Band(name, tuple(columns[topic] for topic in wanted))


def _split_topics(listed: str, known: Collection[str]) -> Iterator[str]:
    """Yield topics that are separated by commas; a known topic may have commas, too."""
    parts, most = listed.split(","), max((topic.count(",") for topic in known), default=0)
    while parts:
        joined = (",".join(parts[:n]).strip() for n in range(min(len(parts), most + 1), 1, -1))
        topic = next((topic for topic in joined if topic in known), parts[0].strip())
        del parts[: topic.count(",") + 1]
        if topic:
            yield topic
