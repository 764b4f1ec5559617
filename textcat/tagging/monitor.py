"""Compare the tags of an archive with earlier ones: how often documents get each topic, none, or have no known term."""

import os
from array import array
from collections.abc import Iterable, Sequence, Set
from datetime import date, timedelta
from typing import NamedTuple

import numpy as np

from textcat.base.disk import expanded
from textcat.base.errors import TextcatError
from textcat.model import Reason
from textcat.reading.dates import day_of
from textcat.runs.records import facts_of_run
from textcat.tagging.shards import TaggedDocument, check_present, present_models, read_tags
from textcat.trends.alarms import LEVEL, YEAR, find_alarms

NO_TOPIC, NO_KNOWN_TERM = "(no topic)", "(no known term)"
_OF_ALL = (NO_TOPIC, NO_KNOWN_TERM)
_OTHER_TOPICS = ("--top", "--all-topics", "--min-probability", "--automatic")  # rows lack some topics, or have others


class RateChange(NamedTuple):
    """Hold how the share of documents with a topic has changed.

    Attributes
    ----------
    topic : str
        Its id; ``(no topic)`` and ``(no known term)`` are the shares of such documents.
    before, now : float
        The share until the change, and from then to the day on which it was first told.
    since, told : str
        The day from which the share probably differs, to a week, and the day at whose end that was beyond chance.
    """

    topic: str
    before: float
    now: float
    since: str
    told: str


class Monitoring(NamedTuple):
    """Hold what `monitor_tags` has found.

    Attributes
    ----------
    since, last : str
        The first and the last day that were compared with the days before.
    reference, documents : int
        The number of documents before `since`, and from then on.
    undated : int
        The number of documents without a date, which do not count.
    model : str
        The id of the model that tagged them; several, by language, are joined by commas.
    left_out : int
        The number of documents that only former models have tagged, which do not count.
    level : float
        The chance, at most, that a year has any false alarm.
    changes : list of RateChange
        The first told first.
    is_alarm : bool
        Whether a change was told in the present year since `since`.
    """

    since: str
    last: str
    reference: int
    documents: int
    undated: int
    model: str
    left_out: int
    level: float
    changes: list[RateChange]
    is_alarm: bool


def monitor_tags(
    folders: Iterable[str | os.PathLike[str]], since: str | None = None, level: float = LEVEL
) -> Monitoring:
    """Find the topics of which an archive has got more or fewer documents than before, beyond chance.

    Parameters
    ----------
    folders : iterable of path
        Folders that `textcat tag --out` has written, all by the same model. Tags by models before it do not count.
    since : str, optional
        A day, such as "2026-01-01": documents from then on are compared with earlier ones. By default, the first day
        behind the first half of the documents.
    level : float, default 0.05
        The chance, at most, that a year since `since` has any false alarm, however often one looks.

    Returns
    -------
    Monitoring

    Raises
    ------
    TextcatError
        If a folder has no tags, or only those of former models or other options; if models of folders differ; if
        documents have no dates; or if there are none before `since`, or none later.
    """
    if not 0 < level < 1:
        raise TextcatError(f"The level cannot be {level}: give a chance between 0 and 1, such as .05.")
    paths = [expanded(folder) for folder in folders]
    for path in paths:
        if wrong := [name for name in _OTHER_TOPICS if facts_of_run(path).get(name)]:
            raise TextcatError(
                f"The tags in {path} were chosen by {wrong[0]}, and need not be those above thresholds: leave it "
                "out, and tag again with --restart."
            )
    models = present_models(paths)
    read = _Tags((document for path in paths for document in read_tags(path)), models)
    check_present(len(read.days) + read.undated > 0, read.left_out)
    days = np.array(read.days)
    if not len(days):
        raise TextcatError(
            f"None of the {read.undated:,} documents has a date: name the field of the date by --date-field, and tag "
            "again with --restart."
        )
    first = int(np.sort(days)[len(days) // 2]) if since is None else _ordinal(since)
    earlier = days < first
    n_earlier, n_later = int(earlier.sum()), int((~earlier).sum())
    if not n_earlier or not n_later:
        lacking = "before" if not n_earlier else "from then on"
        raise TextcatError(
            f"There is no document {lacking} ({date.fromordinal(first)}): give another day by --since, from "
            f"{date.fromordinal(int(days.min()) + 1)} to {date.fromordinal(int(days.max()))}."
        )
    n_days, n_rates = int(days.max()) - first + 1, len(read.names)
    documents, columns = np.array(read.documents, np.int64), np.array(read.columns, np.int64)
    of_tags = days[documents]
    reference = np.bincount(columns[of_tags < first], minlength=n_rates)
    later = of_tags >= first
    counts = np.zeros((n_days, n_rates), np.int64)
    np.add.at(counts, (of_tags[later] - first, columns[later]), 1)
    n = np.bincount(days[~earlier] - first, minlength=n_days)
    found = find_alarms(reference, n_earlier, counts, n, level)
    changes = [
        RateChange(read.names[alarm.column], alarm.before, alarm.now, _day(first, alarm.since), _day(first, alarm.told))
        for alarm in found
    ]
    is_alarm = any(alarm.told // YEAR == (n_days - 1) // YEAR for alarm in found)
    return Monitoring(
        since=_day(first, 0),
        last=_day(first, n_days - 1),
        reference=n_earlier,
        documents=n_later,
        undated=read.undated,
        model=", ".join(sorted(models)),
        left_out=read.left_out,
        level=level,
        changes=changes,
        is_alarm=is_alarm,
    )


class _Tags:
    """The days of documents, and their tags: for each, the number of the document, and that of its name.

    Documents that other models than `models` have tagged are left out.
    """

    def __init__(self, tagged: Iterable[TaggedDocument], models: Set[str]) -> None:
        self.names, self.undated, self.left_out = [*_OF_ALL], 0, 0
        self.days, self.documents, self.columns = array("i"), array("q"), array("i")
        column_of = {name: column for column, name in enumerate(self.names)}
        for document in tagged:
            if document.model and document.model not in models:
                self.left_out += 1
                continue
            day = day_of(document.date) if document.date else ""
            if not day:
                self.undated += 1
                continue
            for name in self._names_of(document):
                column = column_of.setdefault(name, len(self.names))
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
