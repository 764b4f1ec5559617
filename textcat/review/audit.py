"""Count how often automatic tags are right, by those that were drawn at random and judged: by topic and by month."""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from textcat.corpus.corrections import Correction
from textcat.evaluation.promises import clopper_pearson

_ALL = ""  # in place of a topic or a month


class AuditRow(NamedTuple):
    """Hold how many of the audited tags are right, and what share that is; "" as a topic or a month stands for all.

    The interval from `low` to `high` contains the share among all automatic tags with a confidence of 95 %.
    """

    topic: str
    month: str  # of the documents' dates, such as "2024-05"; "unknown" if they have none
    judged: int
    right: int
    precision: float
    low: float
    high: float


def audit_rows(corrections: Iterable[Correction]) -> list[AuditRow]:
    """Return the precision of automatic tags, as audited: of all, by topic, by month, and by topic and month.

    Of several answers about a tag, the last one counts. The intervals are those of Clopper and Pearson (1934).
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
    # All first, then topics, then months, then both.
    for (topic, month), (judged, right) in sorted(counts.items(), key=lambda item: (bool(item[0][1]), item[0])):
        low, high = clopper_pearson(right, judged).tolist()
        rows.append(AuditRow(topic, month, judged, right, right / judged, low, high))
    return rows
