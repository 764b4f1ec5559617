"""Compare, day by day, how often each topic is given to clients' documents and to the documents of a folder of tags.

The processes of the server count the documents that they tag in shared memory. After each day,
`textcat.trends.alarms` finds the topics that are significantly more or less frequent than in the folder.
"""

from __future__ import annotations

import json
import mmap
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime, timezone
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from textcat.base.errors import TextcatError
from textcat.model import Reason
from textcat.runs.parts import lacks
from textcat.runs.records import SUMMARY, all_facts
from textcat.tagging.monitor import NO_KNOWN_TERM, NO_TOPIC, RateChange
from textcat.tagging.output import RULES
from textcat.trends.alarms import LEVEL, YEAR, find_alarms

if TYPE_CHECKING:
    from textcat.model.tagger import Tagger
    from textcat.serving.work import Answer, Choice

PER_HOUR = 200  # documents that count, so that the memory and time of a year are bounded, and no hour prevails
_OTHER_TAGS = ("--topic", "--min-probability", "--automatic")  # options by which a folder has other tags than clients


def _now() -> datetime:
    return datetime.now(timezone.utc)


class Alarms:
    """Find topics that clients' documents get more or less often than the documents of a folder of tags.

    Parameters
    ----------
    name, version : str
        The name and the version of the served model. If it or its house rules are replaced, counting ends.
    tagger : Tagger
    folder : Path
        A folder of tags by this model and its house rules, and by no others.
    now : callable
        Returns the present time, in UTC.

    Attributes
    ----------
    rules : str
        The text of the model's house rules; "" if there are none.
    changes : list of RateChange
        The topics whose share has changed in the present year, as of the end of yesterday; years begin with the
        server's first day.
    """

    def __init__(
        self, name: str, version: str, tagger: Tagger, folder: Path, now: Callable[[], datetime] = _now
    ) -> None:
        self.name, self.version, self._now = name, version, now
        rules = tagger.decisions.rules
        self.rules = "" if rules is None else rules.source
        self._rates = [*tagger.topics, NO_TOPIC, NO_KNOWN_TERM]
        self._column_of = {rate: column for column, rate in enumerate(self._rates)}
        self._reference, self._n_reference = self._read_reference(folder, tagger)
        n = len(self._rates)
        # Shared by the processes: the first day, the present hour, the documents that count in it; and for each day of
        # a year the number of documents with each topic, and of all.
        shared = np.frombuffer(mmap.mmap(-1, 8 * (3 + YEAR * (n + 1))), np.int64)
        self._head, self._days = shared[:3], shared[3:].reshape(YEAR, n + 1)
        self._locked_file = tempfile.TemporaryFile()  # noqa: SIM115
        self._counted: Counter[int] = Counter()  # by this process, since they were added to the shared ones
        self._room, self._evaluated = PER_HOUR, 0
        self.is_served = True
        self.changes: list[RateChange] = []

    def _read_reference(self, folder: Path, tagger: Tagger) -> tuple[np.ndarray, int]:
        """Return how many documents of a folder have each topic, and how many there are."""
        try:
            found = json.loads((folder / SUMMARY).read_bytes())["all"]
        except (OSError, ValueError, KeyError):
            raise TextcatError(
                " ".join(lacks([folder]))
                or f"{folder} has no summary of tags: name a folder that `textcat tag --out` has written."
            ) from None
        settings = all_facts(folder)
        if models := sorted({str(of_run["model"]) for of_run in settings} - {self.version}):
            raise TextcatError(
                f"{folder} has tags by model {' and '.join(models)}, but {self.version} is served as {self.name!r}: "
                "name a folder that this model alone has tagged."
            )
        expected = sha256(self.rules.encode()).hexdigest()[:16] if self.rules else None
        why = "" if found["documents"] else "are of no document"
        if others := {of_run.get(RULES) for of_run in settings} - {expected}:
            has_rules = any(others)
            by_which = (
                "house rules that the model does not have now" if has_rules else "none of the model's house rules"
            )
            why = f"were chosen by {by_which}, unlike those that clients get"
        if option := next(filter(settings[0].get, _OTHER_TAGS), ""):
            why = f"were chosen by {option}, unlike those that clients get"
        if why:
            raise TextcatError(f"The tags in {folder} {why}: name another folder.")
        counts = {topic["topic"]: topic["documents"] for topic in found["topics"]}
        counts |= {NO_TOPIC: found["no_topic"], NO_KNOWN_TERM: found["no_known_term"]}
        return np.array([counts.get(rate, 0) for rate in self._rates]), found["documents"]

    @property
    def documents(self) -> int:
        """The number of documents that all processes have counted in the present year."""
        return int(self._days[:, -1].sum())

    def count(self, name: str, documents: Sequence[Any], choice: Choice, answers: Sequence[Answer]) -> None:
        """Count the tags of clients' documents, if the clients asked for tags by thresholds, not for other tags.

        Nothing is counted for other models or house rules than the monitored ones, or beyond a maximum number of
        documents per hour.
        """
        if self._room <= 0 or name != self.name or choice[:3] != (None, None, False) or not self.is_served:
            return
        self._room -= len(answers)
        for answer in answers:
            rates = [tag["topic"] for tag in answer.tags] or [NO_TOPIC]
            rates += [NO_KNOWN_TERM] if answer.reason is Reason.NO_KNOWN_TERM else []
            self._counted.update([-1, *map(self._column_of.__getitem__, rates)])

    def add_up(self) -> bool:
        """Add this process's counts to the shared counts; return whether `evaluate` is due, once a day."""
        now, counted = self._now(), self._counted
        today, hour = now.toordinal(), int(now.timestamp()) // 3600
        self._counted = Counter()
        with self._locked():
            if not self._head[0] or today - self._head[0] >= YEAR:
                self._days[:], self._head[0] = 0, today
            if self._head[1] != hour:
                self._head[1:] = hour, 0
            row = self._days[max(today - self._head[0], 0)]  # 0: the clock was put back
            for column, n in counted.items():
                row[column] += n
            self._head[2] += counted[-1]
            self._room = PER_HOUR - int(self._head[2])
        return today != self._evaluated

    def evaluate(self) -> None:
        """Find the topics whose share has changed by the end of yesterday, and put them into `changes`."""
        first, self._evaluated = int(self._head[0]), self._now().toordinal()
        days = self._days[: max(self._evaluated - first, 0)].copy()
        found = find_alarms(self._reference, self._n_reference, days[:, :-1], days[:, -1], LEVEL) if len(days) else []
        dates = [[date.fromordinal(first + row).isoformat() for row in (alarm.since, alarm.told)] for alarm in found]
        self.changes = [
            RateChange(self._rates[alarm.column], alarm.before, alarm.now, *of_alarm)
            for alarm, of_alarm in zip(found, dates, strict=True)
        ]

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Lock the shared numbers; the system unlocks them if the process is killed."""
        try:
            import fcntl
        except ImportError:  # there is only one process
            yield
            return
        fcntl.lockf(self._locked_file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.lockf(self._locked_file, fcntl.LOCK_UN)
