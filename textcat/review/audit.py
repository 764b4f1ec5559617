"""Estimate precision and recall of tags from random samples that people judged: of automatic tags, or of documents."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from textcat.corpus.corrections import ArchivePlace, Correction, archive_place, majority_answers
from textcat.evaluation.promises import clopper_pearson
from textcat.reading.dates import month_of
from textcat.tagging.judged_sample import Months
from textcat.tagging.shards import Row, TaggedDocument, find_documents

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


def present_tags(folder: Path, corrections: Iterable[Correction]) -> dict[ArchivePlace, TaggedDocument]:
    """Return the present tags of those documents of an archive that were audited."""
    audited = (archive_place(made.document) for made in corrections if made.audited)
    rows = {row for row in audited if row is not None}
    return find_documents(folder, rows) if rows else {}


def audit_rows(corrections: Iterable[Correction], tags: Mapping[ArchivePlace, TaggedDocument]) -> list[AuditRow]:
    """Return the audited precision of automatic tags: overall, by topic, by month, and by topic and month.

    If a tag has several answers, `majority_answers` decides. Answers about tags that the archive no longer has, such as
    those of a former model, do not count. Intervals are those of Clopper and Pearson (1934).

    Parameters
    ----------
    corrections : iterable of Correction
    tags : dict
        The present tags of the audited documents, as `present_tags` returns them.
    """
    month_of_row: dict[Row, str] = {}
    made_of: dict[Row, list[Correction]] = {}
    for correction in corrections:
        place, date = archive_place(correction.document), correction.document.date
        tagged = None if place is None else tags.get(place)
        if tagged is None or tagged.model != correction.model:
            continue
        row = tagged.source, tagged.position, tagged.id  # a document has another place for each content of its file
        month_of_row[row] = month_of(date) or "unknown"
        audited = {topic: correction.answers[topic] for topic in correction.audited if topic in tagged.topics}
        made_of.setdefault(row, []).append(replace(correction, answers=audited, is_complete=False))
    counts = defaultdict[tuple[str, str], list[int]](lambda: [0, 0])
    for row, made in made_of.items():
        month = month_of_row[row]
        for topic, is_right in majority_answers(made).items():
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

    `with_topic`, `tagged` and `right` are counts in the sample. Precision and recall are estimates for the whole
    archive, in which each month has the weight of its documents; the intervals from `low` to `high` contain them with a
    confidence of 95 %. Without a tag, there is no precision; without a document that has the topic, there is no recall.
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


def sample_rows(judged: Sequence[tuple[Set[str], TaggedDocument]], months: Months) -> list[SampleRow]:
    """Return the precision and recall of the tags of completely judged documents: overall, then by topic.

    A sample has equally many documents of each month, if there are so many. So the weight of a document is the number
    of its month's documents in the archive, divided by the number of those that were judged. The intervals are those of
    Clopper and Pearson (1934) for the number of independent tags that would have the same variance (Korn and Graubard
    1998).

    Parameters
    ----------
    judged : sequence of tuple of (set of str, TaggedDocument)
        For each document, all topics that it has, and its present tags.
    months : Months
        The months of these documents.
    """
    counts = defaultdict[str, dict[int, tuple[int, int, int]]](dict)
    for document, (true, tags) in enumerate(judged):
        given = {*tags.topics}
        for topic in true | given:
            counts[topic][document] = int(topic in true), int(topic in given), int(topic in true and topic in given)
        if true | given:
            counts[_ALL][document] = len(true), len(given), len(true & given)
    rows = []
    for topic, of_topic in sorted(counts.items()):
        documents, numbers = np.array([*of_topic]), np.array([*of_topic.values()])
        true, given, right = numbers.T
        precision, recall = (_share(months, documents, right, of) for of in (given, true))
        n_true, n_given, n_right = (int(of.sum()) for of in (true, given, right))
        rows.append(SampleRow(topic, len(judged), n_true, n_given, n_right, *precision, *recall))
    return rows


_Share: TypeAlias = tuple[float | None, float | None, float | None]


def _share(months: Months, documents: NDArray[Any], right: NDArray[Any], of: NDArray[Any]) -> _Share:
    """Estimate ``Σ right / Σ of`` over all documents, from a sample stratified by month.

    Return the estimate and the bounds of its interval, or three times None if `of` adds up to 0. `documents` has the
    positions of judged documents; for each of them, `of` counts its tags, for example, and `right` those of them that
    are right.
    """
    month = np.array(months.of_document)
    n_judged = np.bincount(month, minlength=len(months.sizes))
    weight = (months.sizes / n_judged)[month[documents]]
    total = (weight * of).sum()
    if not total:
        return None, None, None
    share = float((weight * right).sum() / total)
    if (n_judged == months.sizes).all():
        return share, share, share
    # The variance of a ratio in a stratified sample without replacement, by linearization (Cochran 1977, chapter 6).
    rest = right - share * of
    sums, squares = (np.bincount(month[documents], values, len(n_judged)) for values in (rest, rest**2))
    within = (squares - sums**2 / n_judged) * n_judged / np.maximum(n_judged - 1, 1)
    variance = ((months.sizes / n_judged) ** 2 * (1 - n_judged / months.sizes) * within).sum() / total**2
    n = total**2 / (weight**2 * of).sum()  # of independent tags with these weights
    if variance > 0 and 0 < share < 1:
        n = min(n, share * (1 - share) / variance)
    low, high = clopper_pearson(share * n, n).tolist()
    return share, low, high
