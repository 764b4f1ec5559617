"""Keep the summary of all runs in a folder of tags, by the month of the documents' dates."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from textcat.runs.records import SUMMARY, write_changed
from textcat.runs.results import Counts
from textcat.tagging.summary import Trained, find_drifts, may_be_missed

_DECIMALS = 6  # of rates


def write_summary(folder: Path, model: str, trained: Trained, topics: Sequence[str], counts: Counts) -> None:
    """Write the summary of a folder of tags by month of the documents' dates, unless the same is there already.

    `model` is the id of the model that tagged last, `topics` are the topics that the run writes, and `counts` are the
    counts of all documents in the folder.
    """
    assert counts.months.total() == counts.tagged
    training = _Training(trained, topics)
    months = [{"month": month or None, **of_month} for month, of_month in _by_month(counts, training)]
    of_all = _row(counts.tagged, counts.untagged, counts.unknown, counts.topics, training)
    rows = ",\n".join(f"  {json.dumps(row)}" for row in months)
    text = f'{{"model": {json.dumps(model)}, "all":\n  {json.dumps(of_all)},\n"months": [\n{rows}\n]}}\n'
    write_changed(folder / SUMMARY, text)


def _by_month(counts: Counts, training: "_Training") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each month, in order, with its numbers of documents; documents without a date come last."""
    topics = defaultdict[str, Counter[str]](Counter)
    for name, n in counts.months_topics.items():
        month, _, topic = name.partition(" ")
        topics[month][topic] = n
    for month in sorted(counts.months, key=lambda month: (not month, month)):
        if n := counts.months[month]:
            n_untagged, n_unknown = counts.months_untagged[month], counts.months_unknown[month]
            yield month, _row(n, n_untagged, n_unknown, topics[month], training)


class _Training:
    """The shares of held-out training documents that get each topic: see `Trained`."""

    def __init__(self, trained: Trained, topics: Sequence[str]):
        wanted = {*topics}
        self.given = {topic: given for topic, given in trained.given.items() if topic in wanted}
        self.place_of = {topic: place for place, topic in enumerate(trained.sizes) if topic in wanted}
        self.shares = {topic: n / n_held_out for topic, (n, n_held_out) in self.given.items()}
        self._by_share = sorted(self.shares.items(), key=lambda item: -item[1])
        self._most = max((n_held_out for _, n_held_out in self.given.values()), default=1)

    def compared(self, topics: Mapping[str, int], n: int) -> dict[str, tuple[float, float]]:
        """Return the entries of `Trained.given` for the topics whose frequency among `n` documents is compared.

        These are the topics that the documents have, and those so frequent in training that it would be significant if
        no document had them. Models may have thousands of other topics.
        """
        missed = takewhile(lambda item: may_be_missed(item[1] * self._most, n, self._most), self._by_share)
        names = dict.fromkeys((*(topic for topic, k in topics.items() if k), *(topic for topic, _ in missed)))
        return {topic: self.given[topic] for topic in names if topic in self.given}


def _row(n: int, n_untagged: int, n_unknown: int, topics: Mapping[str, int], training: _Training) -> dict[str, Any]:
    found = find_drifts(topics, n, training.compared(topics, n), len(training.place_of))
    drifting = dict.fromkeys(drift.topic for drift in found)
    of_topics: list[dict[str, Any]] = [
        {
            "topic": topic,
            "documents": topics.get(topic, 0),
            "rate": round(topics.get(topic, 0) / max(n, 1), _DECIMALS),
            "in_training": round(training.shares[topic], _DECIMALS) if topic in training.shares else None,
            "drift": topic in drifting,
        }
        for topic in {**dict.fromkeys(topic for topic, k in topics.items() if k), **drifting}
        if topic in training.place_of
    ]
    of_topics.sort(key=lambda row: (-row["documents"], training.place_of[row["topic"]]))
    return {"documents": n, "no_topic": n_untagged, "no_known_term": n_unknown, "topics": of_topics}
