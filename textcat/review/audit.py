"""Estimate precision and recall of tags from random samples that people judged: of automatic tags, or of documents."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from pathlib import Path
from typing import NamedTuple

from textcat.corpus.corrections import ArchiveRow, Correction, row_of
from textcat.evaluation.promises import clopper_pearson
from textcat.tagging.shards import TaggedDocument, find_documents

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


def present_tags(folder: Path, corrections: Iterable[Correction]) -> dict[ArchiveRow, TaggedDocument]:
    """Return the present tags of the documents of an archive that were audited, or judged completely."""
    judged = (row_of(made.document) for made in corrections if made.audited or made.is_complete)
    rows = {row for row in judged if row is not None}
    return find_documents(folder, rows) if rows else {}


def audit_rows(corrections: Iterable[Correction], tags: Mapping[ArchiveRow, TaggedDocument]) -> list[AuditRow]:
    """Return the audited precision of automatic tags: overall, by topic, by month, and by topic and month.

    If a tag has several answers, the last one is used. Answers about tags that the archive no longer has, such as those
    of a former model, do not count. Intervals are those of Clopper and Pearson (1934).

    Parameters
    ----------
    corrections : iterable of Correction
    tags : dict
        The present tags of the audited documents, as of `present_tags`.
    """
    answers: dict[tuple[ArchiveRow, str], tuple[str, bool]] = {}
    for correction in corrections:
        row, date = row_of(correction.document), correction.document.date
        tagged = None if row is None else tags.get(row)
        if row is None or tagged is None or tagged.model != correction.model:
            continue
        month = date[:7] if date[:4].isdigit() else "unknown"
        for topic in correction.audited:
            if topic in tagged.topics:
                answers[row, topic] = month, correction.answers[topic]
    counts = defaultdict[tuple[str, str], list[int]](lambda: [0, 0])
    for (_, topic), (month, is_right) in answers.items():
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


def sample_rows(judged: Mapping[ArchiveRow, Set[str]], tags: Mapping[ArchiveRow, TaggedDocument]) -> list[SampleRow]:
    """Return the precision and recall of the tags of completely judged documents: overall, then by topic.

    Intervals are those of Clopper and Pearson (1934).

    Parameters
    ----------
    judged : dict
        All topics of each judged document, as of `Corrections.judged_documents`.
    tags : dict
        The present tags of these documents, as of `present_tags`; documents without an entry do not count.
    """
    last = {row: true for row, true in judged.items() if row in tags}
    counts = defaultdict[str, list[int]](lambda: [0, 0, 0])
    for row, true in last.items():
        given = {*tags[row].topics}
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
