"""Count the documents of tagged archives by period (or by the value of a field), topic and bin of log odds."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from textcat.base.errors import TextcatError, did_you_mean
from textcat.runs.records import facts_of_run
from textcat.tagging.counted_folders import CountedFolders, check_has_present_tags
from textcat.tagging.groups import FIELD, GROUPS
from textcat.tagging.score_bins import NO_DAY, FrameArrays, ModelCounts, read_frames, read_model_counts
from textcat.tagging.shards import TagShard, read_field, read_shard
from textcat.trends.bins import N_BINS
from textcat.trends.sample import Judged

PERIODS = {"year": "Y", "month": "M", "day": "D"}  # with numpy's codes
UNDATED, NO_VALUE = "no date", "no value"
MOST_VALUES = 1000  # of a field
MOST_CELLS = 10_000_000  # topics and periods, whose counts take 2 GB

Place = tuple[str, int]  # the source and the position of a document


class Periods(NamedTuple):
    """Numbers of documents by period (or by value of a field), topic and bin of log odds."""

    names: list[str]  # of the periods, or values of the field
    counts: NDArray[np.int64]  # (n_periods, n_topics, n_bins)
    tagged: NDArray[np.int64]  # (n_periods, n_topics)
    model: str  # its id
    model_counts: ModelCounts
    left_out: int  # documents that only former models or rules have tagged
    judged: list["JudgedDocument"]

    def judged_of(self, columns: NDArray[np.intp]) -> Judged:
        """Count the judged documents of each period by bin, for the topics in some columns."""
        counts = np.zeros((2, len(self.names), len(columns), N_BINS), np.int64)
        number_of, topics = {name: number for number, name in enumerate(self.names)}, np.arange(len(columns))
        for document in self.judged:
            lacks = (~document.has[columns]).astype(int)
            counts[lacks, number_of[document.period], topics, document.bins[columns]] += 1
        return Judged(counts[0], counts[1])


class JudgedDocument(NamedTuple):
    """A document whose topics people have judged: its period, its bin for each topic, and whether it has the topic."""

    period: str
    bins: NDArray[np.uint8]  # (n_topics,)
    has: NDArray[np.bool_]


def read_periods(
    folders: CountedFolders,
    by: str,
    *,
    once: bool = False,
    judged: Mapping[Path, Mapping[Place, Collection[str]]] | None = None,
) -> Periods:
    """Count the documents of tagged archives by period, topic and bin.

    Parameters
    ----------
    folders : CountedFolders
    by : str
        One of `PERIODS`, "source", or a field that `textcat tag --keep-fields` has kept.
    once : bool, default=False
        Leave out documents that repeat another one.
    judged : mapping of Path to mapping of (str, int) to collection of str, optional
        For each folder, the documents whose topics people have judged, by source and position, with all topics that
        they have.
    """
    if by not in PERIODS:
        _check_kept(folders.paths, by)
    sums = _Sums(by, once, folders, judged or {})
    for shards in folders.shards.values():
        for shard in shards:
            kept = Counter((row.source, row.position) for row in read_shard(shard)) if shard.was_replaced else None
            values = None if by in PERIODS else read_field(shard, by)
            for frame in read_frames(shard.path):
                sums.add(shard, frame, kept, values)
    check_has_present_tags(sums.model_counts is not None, sums.left_out)
    if sums.model_counts is None:
        raise TextcatError(
            f"{folders.paths[0] if folders.paths else 'No folder'} has no documents: name a folder with tags."
        )
    return sums.periods(sums.model_counts)


def _check_kept(folders: Sequence[Path], field: str) -> None:
    for folder in folders:
        facts = facts_of_run(folder)
        kept = ["source", *facts.get("--keep-fields", ()), *([FIELD] if GROUPS in facts else [])]
        if field not in kept:
            hint = did_you_mean(field, [*PERIODS, *kept])
            raise TextcatError(
                f"The rows of {folder} have no field {field!r}: give year, month, day or source, or tag again with "
                f"--keep-fields {field} and --restart.{hint}"
            )


class _Sums:
    """Count the documents of frames by period; a frame has documents that were scored together."""

    def __init__(
        self, by: str, once: bool, folders: CountedFolders, judged: Mapping[Path, Mapping[Place, Collection[str]]]
    ):
        self._by, self._once, self._folders, self._judged = by, once, folders, judged
        self._counts: dict[str, NDArray[np.int64]] = {}
        self._tagged: dict[str, NDArray[np.int64]] = {}
        self._documents: Counter[str] = Counter()
        self._judged_documents: list[JudgedDocument] = []
        self._model, self.left_out = "", 0
        self.model_counts: ModelCounts | None = None

    def add(
        self, shard: TagShard, frame: FrameArrays, kept: Counter[Place] | None, values: Mapping[Place, str] | None
    ) -> None:
        """Count the documents of a frame of a shard, which were scored together.

        Documents that are not in `kept` are left out; if `kept` is None, none is left out. `values` has the value of
        the field by which documents are counted; None: they are counted by date.
        """
        folder = shard.path.parent
        counts = np.ones(len(frame.days), bool) if kept is None else _take_kept(frame, kept)
        if not self._folders.has(shard, frame.model):
            self.left_out += int(counts.sum())
            return
        if not counts.any():  # they were tagged again since
            return
        if self.model_counts is None:
            self._model, self.model_counts = frame.model, read_model_counts(folder, frame.model)
        if self._once:
            counts &= ~frame.reprints
        names = np.array(_periods_of(frame.days, PERIODS[self._by]) if values is None else _values_of(frame, values))
        periods, of_row = np.unique(names, return_inverse=True)
        n_topics, entries = len(self.model_counts.topics), counts[frame.rows]
        self._check_size(len({*self._documents, *periods.tolist()}), n_topics, is_field=values is not None)
        of_entry, topics = of_row[frame.rows][entries], frame.topics[entries]
        shape = len(periods), n_topics, N_BINS
        cells = np.ravel_multi_index((of_entry, topics, frame.bins[entries]), shape)
        sums = np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape)
        sums[:, :, 0] = 0  # all others are counted, not only those that got the topic by a rule
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
        if judged := self._judged.get(folder):
            for row, place in enumerate(_places(frame)):
                if counts[row] and (has := judged.get(place)) is not None:
                    self._judged_documents.append(_judged(frame, row, has, str(names[row]), self.model_counts.topics))

    def _check_size(self, n: int, n_topics: int, *, is_field: bool) -> None:
        """Raise TextcatError if n is too many values of a field, or if counts of n periods take too much memory."""
        if is_field and n > MOST_VALUES:
            raise TextcatError(
                f"The field {self._by!r} has more than {MOST_VALUES:,} values: name one with fewer, or a period."
            )
        if n * n_topics > MOST_CELLS:
            raise TextcatError(
                f"Counts of {n_topics:,} topics in more than {n - 1:,} periods do not fit into memory: count by month "
                "or by year, or give fewer folders."
            )

    def periods(self, model_counts: ModelCounts) -> Periods:
        """Return the counts in the order of the periods' names; documents without a date or a value come last."""
        last = (UNDATED, NO_VALUE)
        names = sorted((name for name, n in self._documents.items() if n), key=lambda name: (name in last, name))
        counts = np.array([self._counts[name] for name in names]).reshape(len(names), len(model_counts.topics), N_BINS)
        documents = np.array([self._documents[name] for name in names], np.int64)
        counts[:, :, 0] = documents[:, None] - counts.sum(axis=-1)
        tagged = np.array([self._tagged[name] for name in names])
        return Periods(names, counts, tagged, self._model, model_counts, self.left_out, self._judged_documents)


def _judged(frame: FrameArrays, row: int, has: Collection[str], period: str, topics: Sequence[str]) -> JudgedDocument:
    bins, entries = np.zeros(len(topics), np.uint8), frame.rows == row
    bins[frame.topics[entries]] = frame.bins[entries]
    return JudgedDocument(period, bins, np.array([topic in has for topic in topics]))


def _periods_of(days: NDArray[np.int32], code: str) -> list[str]:
    different, of_row = np.unique(days, return_inverse=True)
    dates = different.astype("datetime64[D]").astype(f"datetime64[{code}]").astype(str)
    names = [UNDATED if day == NO_DAY else date for day, date in zip(different.tolist(), dates.tolist(), strict=True)]
    return [names[i] for i in of_row.tolist()]


def _values_of(frame: FrameArrays, values: Mapping[Place, str]) -> list[str]:
    return [values.get(place) or NO_VALUE for place in _places(frame)]


def _places(frame: FrameArrays) -> Iterator[Place]:
    return zip(frame.sources, frame.positions.tolist(), strict=True)


def _take_kept(frame: FrameArrays, kept: Counter[Place]) -> NDArray[np.bool_]:
    """Return which documents of a frame are still in their shard: those in `kept`, from which they are removed."""
    are_kept = np.zeros(len(frame.days), bool)
    for row, place in enumerate(_places(frame)):
        if kept[place]:
            kept[place] -= 1
            are_kept[row] = True
    return are_kept
