"""Count the records of a review at each stage of screening, for the flow diagram of PRISMA 2020.

Source: M. J. Page et al., The PRISMA 2020 statement: an updated guideline for reporting systematic reviews, BMJ 372
(2021), n71, figure 1.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from textcat.teaching.output import csv_lines, format_by_ending, json_line, write_lines
from textcat.teaching.view import View

COUNT_FORMATS = ("csv", "jsonl")


class ScreeningCounts(NamedTuple):
    """Numbers of records at each stage of screening; from `screened` on, near-duplicates are not counted."""

    topic: str
    identified: int  # all records of the inputs
    unreadable: int  # unreadable records, removed before screening
    duplicates: int  # near-duplicates of an earlier record, removed before screening
    screened: int  # answered by yes or no
    included: int
    excluded: int
    exclusion_reasons: dict[str, int]  # number of excluded records by reason, the most frequent first
    not_screened: int

    def as_dict(self) -> dict[str, Any]:
        """Return the counts for JSON output."""
        return self._asdict()


def screening_counts(view: View, topic: str) -> ScreeningCounts:
    """Count the records at each stage of screening for a topic.

    Parameters
    ----------
    view : View
    topic : str

    Returns
    -------
    ScreeningCounts
    """
    with view.unchanged():
        state = view.topic(topic)
        included = sum(state.labels.values())
        reasons = Counter(filter(None, map(state.exclusion_reason, state.labels)))
        n_documents, n_groups, screened = len(view.pool), len(view.groups), len(state.labels)
    return ScreeningCounts(
        topic,
        n_documents + view.pool.n_rejected,
        view.pool.n_rejected,
        n_documents - n_groups,
        screened,
        included,
        screened - included,
        dict(sorted(reasons.items(), key=lambda entry: (-entry[1], entry[0]))),
        n_groups - screened,
    )


def write_counts(view: View, out: str | os.PathLike[str], topics: Sequence[str] | None = None) -> Path:
    """Write the counts of screening: a row per topic, stage and exclusion reason as CSV, or a line per topic as JSON.

    Parameters
    ----------
    view : View
    out : path
        Its extension, .csv or .jsonl, decides the format.
    topics : sequence of str, optional
        By default all.

    Returns
    -------
    Path
    """
    made_as = format_by_ending(out, COUNT_FORMATS, "counts")
    counts = [screening_counts(view, topic) for topic in view.chosen_topics(topics)]
    if made_as == "jsonl":
        return write_lines(out, (json_line(row.as_dict()) for row in counts))
    rows = []
    for row in counts:
        stages = [(name, value, "") for name, value in row.as_dict().items() if isinstance(value, int)]
        at = [name for name, *_ in stages].index("excluded") + 1
        stages[at:at] = [("excluded", n, reason) for reason, n in row.exclusion_reasons.items()]
        rows += [{"topic": row.topic, "stage": s, "exclusion_reason": r, "records": n} for s, n, r in stages]
    return write_lines(out, csv_lines(("topic", "stage", "exclusion_reason", "records"), rows))
