"""Estimate the precision of automatic tags, by topic and by month, from a random sample that people judged."""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from textcat.corpus.corrections import Correction
from textcat.evaluation.promises import clopper_pearson

_ALL = ""  # stands for all topics or all months


class AuditRow(NamedTuple):
    """The number and share of audited tags that are right; "" as topic or month stands for all.

    The interval from `low` to `high` contains the share among all automatic tags with a confidence of 95 %.
    """

    topic: str
    month: str  # the month of the documents, such as "2024-05"; "unknown" without a date
    judged: int
    right: int
    precision: float
    low: float
    high: float


def audit_rows(corrections: Iterable[Correction]) -> list[AuditRow]:
    """Return the audited precision of automatic tags: overall, by topic, by month, and by topic and month.

    If a tag has several answers, the last one is used. Intervals are those of Clopper and Pearson (1934).
    """
    answers: dict[tuple[str, str, str], tuple[str, bool]] = {}
    for correction in corrections:
        document = correction.document
        month = document.date[:7] if document.date[:4].isdigit() else "unknown"
        for topic in correction.audited:
            answers[document.id, str(document.fields), topic] = month, correction.answers[topic]
    counts = defaultdict[tuple[str, str], list[int]](lambda: [0, 0])
    for (_, _, topic), (month, is_right) in answers.items():
        for group in ((_ALL, _ALL), (topic, _ALL), (_ALL, month), (topic, month)):
            counts[group][0] += 1
            counts[group][1] += is_right
    rows = []
    # Sort: overall first, then topics, then months, then both.
    for (topic, month), (judged, right) in sorted(counts.items(), key=lambda item: (bool(item[0][1]), item[0])):
        low, high = clopper_pearson(right, judged).tolist()
        rows.append(AuditRow(topic, month, judged, right, right / judged, low, high))
    return rows
