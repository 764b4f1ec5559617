"""Estimate precision and recall of tags from random samples that people judged: of automatic tags, or of documents."""

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


class SampleRow(NamedTuple):
    """The quality of the tags of a random sample of documents; "" as topic stands for all topics.

    The intervals from `low` to `high` contain the share among all documents with a confidence of 95 %. Without a tag,
    there is no precision; without a document that has the topic, there is no recall.
    """

    topic: str
    documents: int  # number of judged documents
    with_topic: int  # by the people's answers; for all topics, the sum over topics
    tagged: int
    right: int  # number of tagged documents that have the topic
    precision: float | None
    precision_low: float | None
    precision_high: float | None
    recall: float | None
    recall_low: float | None
    recall_high: float | None


def sample_rows(corrections: Iterable[Correction]) -> list[SampleRow]:
    """Return the precision and recall of the tags of completely judged documents: overall, then by topic.

    If a document has several complete answers, the last one is used. Intervals are those of Clopper and Pearson (1934).
    """
    last = {(made.document.id, str(made.document.fields)): made for made in corrections if made.is_complete}
    counts = defaultdict[str, list[int]](lambda: [0, 0, 0])
    for made in last.values():
        given, true = {*made.before}, {topic for topic, belongs in made.answers.items() if belongs}
        for topic in given | true:
            for group in (_ALL, topic):
                counts[group][0] += topic in true
                counts[group][1] += topic in given
                counts[group][2] += topic in true and topic in given
    return [
        SampleRow(topic, len(last), true, given, right, *_share(right, given), *_share(right, true))
        for topic, (true, given, right) in sorted(counts.items())
    ]


def _share(right: int, n: int) -> tuple[float | None, float | None, float | None]:
    """Return a share with its interval; None if it is a share of nothing."""
    if not n:
        return None, None, None
    low, high = clopper_pearson(right, n).tolist()
    return right / n, low, high
