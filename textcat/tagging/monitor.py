"""Monitor the tags of an archive over time: rates of documents with each topic, with none, or without known terms."""

import os
from array import array
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from textcat.base.errors import TextcatError
from textcat.model import Reason
from textcat.reading.dates import day_of
from textcat.runs.records import facts_of_run
from textcat.tagging.counted_folders import (
    CountedFolders,
    check_has_present_tags,
    counted_folders,
    note_of_left_out,
)
from textcat.tagging.shards import TaggedDocument, TagShard, read_shard
from textcat.trends.alarms import LEVEL, YEAR, Alarm, find_alarms

NO_TOPIC, NO_KNOWN_TERM = "(no topic)", "(no known term)"
_OF_ALL = (NO_TOPIC, NO_KNOWN_TERM)
# rows lack some topics, or have additional ones
_OTHER_TOPICS = ("--top", "--all-topics", "--min-probability", "--automatic")


class RateChange(NamedTuple):
    """A change of the share of documents with a topic.

    Attributes
    ----------
    topic : str
        Its id; ``(no topic)`` stands for documents without a topic, ``(no known term)`` for documents without a term of
        the model.
    before, now : float
        The share of all documents before `since`, and the share from then to the last day, or to the end of the year of
        the alarm.
    since, told : str
        The day on which the share probably changed, accurate to a week; and the day on which the change became
        significant.
    """

    topic: str
    before: float
    now: float
    since: str
    told: str


class Monitoring(NamedTuple):
    """The result of `monitor_tags`.

    Attributes
    ----------
    since, last : str
        The first and the last day that were compared with the days before.
    reference, documents : int
        The number of documents before `since`, and from then on.
    undated : int
        The number of documents without a date, or dated in the future, which are ignored.
    model : str
        The id of the model that tagged the documents; with models by language, their ids, joined by commas.
    left_out : int
        The number of documents with tags by former models or rules only, which are ignored.
    repeated : int
        The number of documents that repeat an earlier one, which are ignored; 0 if they were tagged without
        ``--duplicates``.
    level : float
        An upper bound of the probability of any false alarm within a year.
    changes : list of RateChange
        Sorted by `told`.
    is_alarm : bool
        Whether a change became significant in the year of the last day; years are counted from `since`.
    """

    since: str
    last: str
    reference: int
    documents: int
    undated: int
    model: str
    left_out: int
    repeated: int
    level: float
    changes: list[RateChange]
    is_alarm: bool


def monitor_tags(
    folders: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], since: str | None = None, level: float = LEVEL
) -> Monitoring:
    """Find topics that significantly more or fewer documents of an archive get than before.

    Parameters
    ----------
    folders : path, or iterable of path
        Folders that `textcat tag --out` has written, all by the same model and the same house rules. Tags by former
        models or rules are ignored.
    since : str, optional
        A day, such as "2026-01-01": documents from then on are compared with earlier ones. By default, the day of the
        middle document in the order of dates.
    level : float, default 0.05
        An upper bound of the probability of any false alarm in each year from `since`, however often you look.

    Returns
    -------
    Monitoring

    Raises
    ------
    TextcatError
        If a folder is named twice, has no tags, or only those of former models or rules or of other options; if models
        or rules of folders differ, or two of them have tags of the same file; if documents have no dates; or if all are
        before `since`, or all later.
    """
    if not 0 < level < 1:
        raise TextcatError(f"The level cannot be {level}: give a chance between 0 and 1, such as .05.")
    counted = counted_folders(folders)
    for path in counted.paths:
        if wrong := [name for name in _OTHER_TOPICS if facts_of_run(path).get(name)]:
            raise TextcatError(
                f"The tags in {path} were chosen by {wrong[0]}, and need not be those above thresholds: leave it "
                "out, and tag again with --restart."
            )
    read = _Tags(counted)
    for path, shards in counted.shards.items():
        knows_groups = bool(facts_of_run(path).get("--duplicates"))
        for shard in shards:
            read.add(shard, knows_groups=knows_groups)
    check_has_present_tags(len(read.days) + read.undated > 0, read.left_out)
    left_out, days = note_of_left_out(read.left_out), np.array(read.days)
    if not len(days):
        raise TextcatError(
            f"None of the {read.undated:,} documents has a date: name the field of the date by --date-field, and tag "
            f"again with --restart.{left_out}"
        )
    first = int(np.sort(days)[len(days) // 2]) if since is None else _ordinal(since)
    earlier = days < first
    n_earlier, n_later = int(earlier.sum()), int((~earlier).sum())
    if not n_earlier or not n_later:
        first_day, last_day = (date.fromordinal(int(day)) for day in (days.min(), days.max()))
        if first_day == last_day:
            raise TextcatError(f"All dated documents are of {first_day}: add the folders of other periods.{left_out}")
        lacking = f"before {date.fromordinal(first)}" if not n_earlier else f"from {date.fromordinal(first)} on"
        raise TextcatError(
            f"There is no document {lacking}: give another day by --since, from {first_day + timedelta(days=1)} to "
            f"{last_day}.{left_out}"
        )
    found, last = _alarms(read, days, first, level), int(days.max())
    changes = [
        RateChange(read.names[alarm.column], alarm.before, alarm.now, _day(first, alarm.since), _day(first, alarm.told))
        for alarm in found
    ]
    is_alarm = any(alarm.told // YEAR == (last - first) // YEAR for alarm in found)
    return Monitoring(
        since=_day(first, 0),
        last=_day(first, last - first),
        reference=n_earlier,
        documents=n_later,
        undated=read.undated,
        model=", ".join(sorted(counted.models)),
        left_out=read.left_out,
        repeated=read.repeated,
        level=level,
        changes=changes,
        is_alarm=is_alarm,
    )


def _alarms(read: "_Tags", days: NDArray[np.int32], first: int, level: float) -> list[Alarm]:
    """Find changed rates of topics; return the alarms in the order of detection, with days counted from `first`.

    Years are counted one by one, and those without documents left out, so that a single document of another century
    takes neither time nor memory.
    """
    n_rates, columns, of_tags = len(read.names), np.array(read.columns), days[np.array(read.documents, np.int64)]
    reference, n_reference = np.bincount(columns[of_tags < first], minlength=n_rates), int((days < first).sum())
    alarms: list[Alarm] = []
    for year in np.unique((days[days >= first] - first) // YEAR).tolist():
        begin = first + year * YEAR
        n_days = min(YEAR, int(days.max()) + 1 - begin)
        n = np.bincount(days[(days >= begin) & (days < begin + n_days)] - begin, minlength=n_days)
        of_year = (of_tags >= begin) & (of_tags < begin + n_days)
        counts = np.zeros((n_days, n_rates), np.int64)
        np.add.at(counts, (of_tags[of_year] - begin, columns[of_year]), 1)
        past = year * YEAR
        found = find_alarms(reference, n_reference, counts, n, level)
        alarms += [alarm._replace(told=alarm.told + past, since=alarm.since + past) for alarm in found]
    return alarms


class _Tags:
    """The dates and tags of an archive's documents: for each tag, the numbers of its document and its topic.

    Documents tagged by former models or rules are left out, and so are those that repeat another one. Those dated in
    the future, such as 9999-12-31 for "never", count as undated.
    """

    def __init__(self, folders: CountedFolders) -> None:
        self.names, self.undated, self.left_out, self.repeated = [*_OF_ALL], 0, 0, 0
        self.days, self.documents, self.columns = array("i"), array("q"), array("i")
        self._folders, self._column_of = folders, {name: column for column, name in enumerate(self.names)}

    def add(self, shard: TagShard, *, knows_groups: bool) -> None:
        """Add the documents of a shard.

        Unless `knows_groups`, a field `group` is one of their own, and says nothing of repeats.
        """
        latest = str(date.today() + timedelta(days=1))  # it is tomorrow elsewhere
        for document in read_shard(shard):
            if not self._folders.has(shard, document.model):
                self.left_out += 1
                continue
            if knows_groups and document.repeats_another:
                self.repeated += 1
                continue
            day = day_of(document.date)
            if not day or day > latest:
                self.undated += 1
                continue
            for name in self._names_of(document):
                column = self._column_of.setdefault(name, len(self.names))
                if column == len(self.names):
                    self.names.append(name)
                self.documents.append(len(self.days))
                self.columns.append(column)
            self.days.append(_ordinal(day))

    @staticmethod
    def _names_of(document: TaggedDocument) -> Sequence[str]:
        no_term = (NO_KNOWN_TERM,) if document.reason == Reason.NO_KNOWN_TERM else ()
        return (*(dict.fromkeys(document.topics) or (NO_TOPIC,)), *no_term)


def _ordinal(day: str) -> int:
    try:
        return date.fromisoformat(day).toordinal()
    except ValueError:
        raise TextcatError(f"{day!r} is no day: give one such as 2026-01-31.") from None


def _day(first: int, row: int) -> str:
    return (date.fromordinal(first) + timedelta(days=row)).isoformat()
