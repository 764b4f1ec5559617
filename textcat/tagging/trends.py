"""Estimate how prevalent topics are in each period of a tagged archive, from its folder alone."""

import os
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from textcat.base.disk import expanded
from textcat.base.errors import TextcatError, did_you_mean
from textcat.runs.records import own_journal
from textcat.tagging.score_bins import NO_DAY, FrameArrays, ModelCounts, read_frames, read_model_counts
from textcat.tagging.shards import check_present, present_models, read_shard
from textcat.trends.bins import N_BINS
from textcat.trends.choice import choose_estimator
from textcat.trends.estimators import ESTIMATORS
from textcat.trends.held_out import HeldOut
from textcat.trends.intervals import intervals

PERIODS = {"year": "Y", "month": "M", "day": "D"}  # with numpy's codes
REPRINTS = ("all", "once")
UNDATED = "no date"
_FEWEST = 2  # periods


class TrendRow(NamedTuple):
    """Hold the prevalence of a topic in a period: shares of the documents, and the numbers they are made of.

    The interval from `low` to `high` contains the true share with a confidence of 95 %.
    """

    topic: str
    period: str  # such as "2024", "2024-05" or "2024-05-31"; `UNDATED`
    documents: int
    tagged: int
    prevalence: float
    low: float
    high: float


class Trends(NamedTuple):
    """Hold the prevalences of topics by period, and how they were estimated."""

    rows: list[TrendRow]  # by topic, the most frequent one first, then by period
    by: str
    estimator: str
    model: str  # its id
    names: dict[str, str]  # of topics
    documents: int
    topics: int  # of which all, or the most frequent ones, have rows
    left_out: int = 0  # documents that only former models have tagged


class Periods(NamedTuple):
    """Hold the documents of each period, by topic and by bin of log odds."""

    names: list[str]
    counts: NDArray[np.int64]  # (n_periods, n_topics, n_bins)
    tagged: NDArray[np.int64]  # (n_periods, n_topics)
    model: str
    model_counts: ModelCounts
    left_out: int  # documents that only former models have tagged


def estimate_trends(
    folders: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    by: str = "month",
    topics: Sequence[str] = (),
    reprints: str = "all",
    estimator: str = "",
    most: int | None = None,
) -> Trends:
    """Estimate the prevalence of topics in each period of a tagged archive, with intervals at 95 %.

    Parameters
    ----------
    folders : path, or iterable of paths
        Folders that `tag_archive` has written, by one model. Tags by models before it do not count.
    by : {"month", "year", "day"}
        The length of periods.
    topics : sequence of str
        Topics of the model, by id or name; (): all.
    reprints : {"all", "once"}
        Whether documents that repeat another one count, if the archive was tagged with a file of duplicates.
    estimator : {"", "summed", "adjusted", "em", "damped"}
        How prevalences are estimated; "": as is best on simulated samples of the model's held-out documents.

    most : int, optional
        Only so many topics, the most frequent ones; None: all.

    Returns
    -------
    Trends

    Raises
    ------
    TextcatError
        If a folder has no tags, only those of former models, or none with scores; if models of folders differ; if there
        are no dates, or they are in one period; or if the model has no such topic.
    """
    for value, choices in ((by, PERIODS), (reprints, REPRINTS), (estimator, ("", *ESTIMATORS))):
        if value not in choices:
            raise TextcatError(f"{value!r} is not one of {', '.join(filter(None, choices))}: give one of these.")
    paths = [folders] if isinstance(folders, str | os.PathLike) else folders
    periods = read_periods([*map(expanded, paths)], by, once=reprints == "once")
    dated = [name for name in periods.names if name != UNDATED]
    if not dated:
        raise TextcatError(
            "No document has a date: name the field that has one by --date-field, and tag again with --restart."
        )
    if len(dated) < _FEWEST:
        shorter = {"year": " by month or", "month": " "}.get(by)
        remedy = "add the folders of other periods" if shorter is None else f"count{shorter} by day, or add folders"
        raise TextcatError(f"All dated documents are of {dated[0]}: {remedy}.")
    held_out = periods.model_counts.held_out
    name = estimator or choose_estimator(held_out).name
    return _estimated(periods, held_out, name, _columns(periods.model_counts, topics), by, most)


def _columns(counts: ModelCounts, topics: Sequence[str]) -> list[int]:
    """Return the columns of topics, given by id or name; raise TextcatError for one that the model has not."""
    by_name = {name: topic for topic, name in counts.names.items()}
    column_of = {topic: column for column, topic in enumerate(counts.topics)}
    columns = []
    for topic in topics or counts.topics:
        column = column_of.get(topic, column_of.get(by_name.get(topic, topic)))
        if column is None:
            hint = did_you_mean(topic, [*counts.topics, *by_name]) or " Leave out --topic for all."
            raise TextcatError(f"The archive was not tagged for a topic {topic!r}: name another one.{hint}")
        columns.append(column)
    return list(dict.fromkeys(columns))


def _estimated(
    periods: Periods, held_out: HeldOut, name: str, columns: Sequence[int], by: str, most: int | None
) -> Trends:
    documents, chosen, topics = periods.counts[:, 0].sum(axis=-1), np.array(columns), periods.model_counts.topics
    of_all = ESTIMATORS[name](periods.counts[:, chosen], held_out.of_topics(chosen))
    order = np.argsort(-(of_all * documents[:, None]).sum(axis=0), kind="stable")[:most]
    columns, estimates = chosen[order].tolist(), of_all[:, order]
    counts, some = periods.counts[:, columns], held_out.of_topics(chosen[order])
    seeds = np.array([crc32(topics[column].encode()) for column in columns])
    low, high = intervals(counts, some, estimates, seeds)
    rows = [
        TrendRow(
            topics[column],
            period,
            int(documents[i]),
            int(periods.tagged[i, column]),
            float(estimates[i, j]),
            float(low[i, j]),
            float(high[i, j]),
        )
        for j, column in enumerate(columns)
        for i, period in enumerate(periods.names)
    ]
    names, n = periods.model_counts.names, int(documents.sum())
    return Trends(rows, by, name, periods.model, names, n, len(chosen), periods.left_out)


def read_periods(folders: Sequence[Path], by: str, *, once: bool = False) -> Periods:
    """Count the documents of tagged archives by period, topic and bin; with `once`, leave out what repeats another."""
    shards = {folder: _shards(folder) for folder in folders}
    sums = _Sums(by, once, present_models(folders))
    for folder in folders:
        for shard, was_replaced in shards[folder]:
            kept = Counter(map(_place, read_shard(shard))) if was_replaced else None
            for frame in read_frames(shard):
                sums.add(folder, frame, kept)
    check_present(sums.model_counts is not None, sums.left_out)
    if sums.model_counts is None:
        raise TextcatError(f"{folders[0] if folders else 'No folder'} has no documents: name a folder with tags.")
    return sums.periods(sums.model_counts)


def _shards(folder: Path) -> list[tuple[Path, bool]]:
    """Return the shards of a run, and whether rows were removed from each since it was written."""
    journal = own_journal(folder) if folder.is_dir() else None
    if journal is None:
        raise TextcatError(f"{folder} has no tags: name a folder that `textcat tag --out` has written.")
    names = [line["name"] for line in journal.lines if line.get("record") == "shard" and line["name"]]
    replaced = {line["name"] for line in journal.lines if line.get("record") == "replaced"}
    return [(folder / name, name in replaced) for name in names]


def _place(document: Any) -> tuple[str, int]:
    return document.source, document.position


class _Sums:
    """Add up frames by period."""

    def __init__(self, by: str, once: bool, models: Set[str]):
        self._code, self._once, self._models = PERIODS[by], once, models
        self._counts: dict[str, NDArray[np.int64]] = {}
        self._tagged: dict[str, NDArray[np.int64]] = {}
        self._documents: Counter[str] = Counter()
        self._model, self.left_out = "", 0
        self.model_counts: ModelCounts | None = None

    def add(self, folder: Path, frame: FrameArrays, kept: Counter[tuple[str, int]] | None) -> None:
        """Add a frame, without the documents that are not in `kept` any more; None: all are."""
        counts = np.ones(len(frame.days), bool) if kept is None else _are_kept(frame, kept)
        if frame.model not in self._models:
            self.left_out += int(counts.sum())
            return
        if not counts.any():  # they were tagged again since
            return
        if self.model_counts is None:
            self._model, self.model_counts = frame.model, read_model_counts(folder, frame.model)
        if self._once:
            counts &= ~frame.reprints
        names = np.array(_periods_of(frame.days, self._code))
        periods, of_row = np.unique(names, return_inverse=True)
        n_topics, entries = len(self.model_counts.topics), counts[frame.rows]
        of_entry, topics = of_row[frame.rows][entries], frame.topics[entries]
        shape = len(periods), n_topics, N_BINS
        cells = np.ravel_multi_index((of_entry, topics, frame.bins[entries]), shape)
        sums = np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape)
        sums[:, :, 0] = 0  # all others are there, not only those that got the topic by a rule
        cells = np.ravel_multi_index((of_entry, topics), shape[:2])
        tagged = np.bincount(cells, frame.given[entries], int(np.prod(shape[:2]))).reshape(shape[:2]).astype(np.int64)
        documents = np.bincount(of_row, counts, len(periods)).astype(int).tolist()
        for i, period in enumerate(periods.tolist()):
            self._documents[period] += documents[i]
            for of_periods, of_frame in ((self._counts, sums[i]), (self._tagged, tagged[i])):
                if period in of_periods:
                    of_periods[period] += of_frame
                else:
                    of_periods[period] = of_frame.copy()

    def periods(self, model_counts: ModelCounts) -> Periods:
        """Return the sums; documents without a date come last."""
        names = sorted((name for name, n in self._documents.items() if n), key=lambda name: (name == UNDATED, name))
        counts = np.array([self._counts[name] for name in names]).reshape(len(names), len(model_counts.topics), N_BINS)
        documents = np.array([self._documents[name] for name in names], np.int64)
        counts[:, :, 0] = documents[:, None] - counts.sum(axis=-1)
        tagged = np.array([self._tagged[name] for name in names])
        return Periods(names, counts, tagged, self._model, model_counts, self.left_out)


def _periods_of(days: NDArray[np.int32], code: str) -> list[str]:
    different, of_row = np.unique(days, return_inverse=True)
    dates = different.astype("datetime64[D]").astype(f"datetime64[{code}]").astype(str)
    names = [UNDATED if day == NO_DAY else date for day, date in zip(different.tolist(), dates.tolist(), strict=True)]
    return [names[i] for i in of_row.tolist()]


def _are_kept(frame: FrameArrays, kept: Counter[tuple[str, int]]) -> NDArray[np.bool_]:
    """Return which documents of a frame are in their shard still; each is taken out of `kept`."""
    are_kept = np.zeros(len(frame.days), bool)
    for row, place in enumerate(zip(frame.sources, frame.positions.tolist(), strict=True)):
        for source in (place[0], f"'{place[0]}"):  # as a cell of CSV may have it
            if kept[source, place[1]]:
                kept[source, place[1]] -= 1
                are_kept[row] = True
                break
    return are_kept
