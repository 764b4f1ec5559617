"""Estimate how prevalent topics are in each period of a tagged archive, from its folder alone."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import numpy as np

from textcat.base.errors import TextcatError, did_you_mean
from textcat.base.paths import named_paths
from textcat.corpus.corrections import Corrections, corrections_of
from textcat.reading.labels import label_name
from textcat.runs.records import facts_of_run
from textcat.tagging.counted_folders import counted_folders, note_of_left_out
from textcat.tagging.judged_sample import NO_SAMPLE, JudgedSample, judged_sample
from textcat.tagging.periods import NO_VALUE, PERIODS, UNDATED, Periods, read_periods
from textcat.tagging.score_bins import ModelCounts
from textcat.trends.estimators import ESTIMATORS
from textcat.trends.intervals import intervals
from textcat.trends.sample import LEAST_DOCUMENTS, likeliest_estimator, sampled_prevalences

REPRINTS = ("all", "once")
_FEWEST = 2  # periods
_EVIDENCE = 100  # topics, the most frequent ones, by which a sample chooses the estimator


class TrendRow(NamedTuple):
    """The estimated prevalence of a topic in a period, as a share of the documents, with numbers of documents.

    The interval from `low` to `high` contains the true share with a confidence of 95 %.
    """

    topic: str
    period: str  # such as "2024", "2024-05" or "2024-05-31", or the value of a field; `UNDATED`, `NO_VALUE`
    documents: int
    judged: int  # those whose topics people have all judged; 0 if the estimate does not use them
    tagged: int
    prevalence: float
    low: float
    high: float


class Trends(NamedTuple):
    """The prevalences of topics by period, and how they were estimated."""

    rows: list[TrendRow]  # by topic, the most frequent one first, then by period
    by: str
    estimator: str
    model: str  # its id
    names: dict[str, str]  # of topics
    documents: int
    topics: int  # number of topics; with `most`, only the most frequent ones have rows
    left_out: int = 0  # documents that only former models or rules have tagged
    judged: int = 0  # documents of a random sample, judged by people, that the estimates use
    judged_gone: int = 0  # judged documents that are not in the archive any more
    judged_outside: int = 0  # judged documents that are not part of a random sample, because months have grown since


def estimate_trends(
    folders: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    by: str = "month",
    topics: Sequence[str] = (),
    reprints: str = "all",
    estimator: str = "",
    corrections: str | os.PathLike[str] | None = None,
    most: int | None = None,
) -> Trends:
    """Estimate the prevalence of topics in each period of a tagged archive, with intervals at 95 %.

    Parameters
    ----------
    folders : path, or iterable of paths
        Folders that `tag_archive` has written, by one model and its present house rules. Tags by models or rules before
        do not count.
    by : str
        The length of periods, "month", "year" or "day"; or, in place of periods, "source" or a field that the rows have
        kept.
    topics : sequence of str
        Topics of the model, by id or name; (): all.
    reprints : {"all", "once"}
        Whether documents that repeat another one count ("all") or not ("once"), if the archive was tagged with a file
        of duplicates.
    estimator : {"", "summed", "adjusted", "em", "adaptive"}
        How prevalences are estimated from scores. "": by the estimator under which the labels of the judged sample are
        most likely or, without such a sample, "adaptive".
    corrections : path, optional
        The folder with the answers of `textcat review --sample`, if there is only one folder of tags. By default, the
        folders named like each folder of tags with ``-corrections`` added, where they exist.
    most : int, optional
        Only so many topics, the most frequent ones; None: all.

    Returns
    -------
    Trends

    Raises
    ------
    TextcatError
        If a folder is named twice, has no tags, only those of former models or rules, or none with scores; if models or
        rules of folders differ, or two of them have tags of the same file; if there are no dates, or they are in one
        period; if the model has no such topic; or if `corrections` are named for several folders, or have fewer than 30
        documents of a random sample.
    """
    for value, choices in ((reprints, REPRINTS), (estimator, ("", *ESTIMATORS))):
        if value not in choices:
            raise TextcatError(f"{value!r} is not one of {', '.join(filter(None, choices))}: give one of these.")
    named = named_paths(folders)
    if corrections is not None and len(named) > 1:
        raise TextcatError(
            f"The corrections in {corrections} are of one folder of tags, and {len(named)} were given: name one, or "
            "leave the corrections of each beside it, and out of the command."
        )
    counted = counted_folders(named)
    paths = counted.paths
    samples = {path: _judged(path, corrections) for path in paths}
    n_outside = sum(sample.n_outside for sample in samples.values())
    if reprints == "once" and (without := [path for path in paths if not facts_of_run(path).get("--duplicates")]):
        raise TextcatError(
            f"The tags in {without[0]} do not say which documents are reprints: give --reprints all, or tag again with "
            "--duplicates FILE and --restart."
        )
    judged = {
        path: {(tags.source, tags.position): topics for topics, tags in sample.documents}
        for path, sample in samples.items()
    }
    periods = read_periods(counted, by, once=reprints == "once", judged=judged)
    _check_several(periods, by)
    if corrections is not None and len(periods.judged) < LEAST_DOCUMENTS:
        raise TextcatError(
            f"{corrections} has {len(periods.judged):,} documents of a random sample of these tags whose topics were "
            f"all judged, and {n_outside:,} others, too few to count: draw at least {LEAST_DOCUMENTS} by `textcat "
            "review --sample`, and judge them."
        )
    estimated = _estimated(periods, estimator, _columns(periods.model_counts, topics), by, most)
    n_gone = sum(sample.n_gone for sample in samples.values())
    return estimated._replace(judged_gone=n_gone, judged_outside=n_outside)


def _judged(folder: Path, corrections: str | os.PathLike[str] | None) -> JudgedSample:
    path = corrections_of(folder, corrections)
    if corrections is None and not path.is_dir():
        return NO_SAMPLE
    return judged_sample(folder, Corrections(path, must_exist=True))


def _check_several(periods: Periods, by: str) -> None:
    """Raise TextcatError unless documents are of two periods or more or, if `by` is a field, have two values of it."""
    left_out = note_of_left_out(periods.left_out)
    named = [name for name in periods.names if name not in (UNDATED, NO_VALUE)]
    if by not in PERIODS:
        if len(named) < _FEWEST:
            seen = f"Only the value {named[0]!r}" if named else "No value"
            raise TextcatError(f"{seen} of the field {by!r} occurs: name another field, or a period.{left_out}")
        return
    if not named:
        raise TextcatError(
            "No document has a date: name the field that has one by --date-field, and tag again with "
            f"--restart.{left_out}"
        )
    if len(named) < _FEWEST:
        shorter = {"year": "count by month or by day", "month": "count by day"}.get(by)
        remedy = "add the folders of other periods" if shorter is None else f"{shorter}, or add folders"
        raise TextcatError(f"All dated documents are of {named[0]}: {remedy}.{left_out}")


def _columns(counts: ModelCounts, topics: Sequence[str]) -> list[int]:
    """Return the columns of topics, given by id or name; raise TextcatError for a topic that the model lacks."""
    by_name = {name: topic for topic, name in counts.names.items()}
    column_of = {topic: column for column, topic in enumerate(counts.topics)}
    columns = []
    for topic in topics or counts.topics:
        column = column_of.get(topic, column_of.get(by_name.get(topic, label_name(topic))))
        if column is None:
            hint = did_you_mean(topic, [*counts.topics, *by_name]) or " Leave out --topic for all."
            raise TextcatError(f"The archive was not tagged for a topic {topic!r}: name another one.{hint}")
        columns.append(column)
    return list(dict.fromkeys(columns))


def _estimated(periods: Periods, estimator: str, columns: Sequence[int], by: str, most: int | None) -> Trends:
    held_out, topics = periods.model_counts.held_out, periods.model_counts.topics
    has_sample = len(periods.judged) >= LEAST_DOCUMENTS
    if has_sample and not estimator:
        frequent = np.argsort(-held_out.positives.sum(axis=1), kind="stable")[:_EVIDENCE]
        of_frequent = periods.counts[:, frequent], periods.judged_of(frequent), held_out.of_topics(frequent)
        name = likeliest_estimator(*of_frequent)
    else:
        name = estimator or "adaptive"
    documents, chosen = periods.counts[:, 0].sum(axis=-1), np.array(columns)
    of_all = ESTIMATORS[name](periods.counts, held_out)[:, chosen]  # by all topics, whichever are shown
    order = np.argsort(-(of_all * documents[:, None]).sum(axis=0), kind="stable")[:most]
    chosen, estimates = chosen[order], of_all[:, order]
    counts, some = periods.counts[:, chosen], held_out.of_topics(chosen)
    seeds = np.array([crc32(topics[column].encode()) for column in chosen.tolist()])
    judged = np.zeros(len(documents), int)
    if has_sample:
        sample = periods.judged_of(chosen)
        judged = sample.documents
        estimates, low, high = sampled_prevalences(counts, sample, some, estimates, seeds)
    else:
        low, high = intervals(counts, some, estimates, seeds)
    rows = [
        TrendRow(
            topics[column],
            period,
            int(documents[i]),
            int(judged[i]),
            int(periods.tagged[i, column]),
            float(estimates[i, j]),
            float(low[i, j]),
            float(high[i, j]),
        )
        for j, column in enumerate(chosen.tolist())
        for i, period in enumerate(periods.names)
    ]
    about = by, name, periods.model, periods.model_counts.names
    return Trends(rows, *about, int(documents.sum()), len(columns), periods.left_out, int(judged.sum()))
