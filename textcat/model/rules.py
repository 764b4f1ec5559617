"""Rules of the house: which topics documents get or lose, whatever their scores are; read from a TOML file."""

import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from textcat.base.disk import expanded
from textcat.base.errors import TextcatError
from textcat.base.records import read_record
from textcat.base.settings import parse_toml, read_toml
from textcat.model.topic_names import find_topic

ENDING = ".rules.toml"  # of the name of a file beside a model's folder, which begins like that of the folder


def path_beside(folder: str | os.PathLike[str]) -> Path:
    """Return the path that a file of rules has beside a model's folder: ``news.rules.toml`` for the folder ``news``."""
    path = Path(os.path.abspath(expanded(folder)))
    return path.with_name(f"{path.name}{ENDING}")


def rules_beside(folder: str | os.PathLike[str]) -> str:
    """Return the text of the file of rules beside a model's folder; "" if there is none."""
    path = path_beside(folder)
    return read_rules(path) if path.exists() else ""


def read_rules(path: str | os.PathLike[str]) -> str:
    """Return the text of a file of rules; raise TextcatError if it cannot be read, or is not TOML."""
    read_toml(expanded(path), "rules")
    return expanded(path).read_text(encoding="utf-8-sig")


@dataclass(frozen=True)
class RuleFile:
    """Hold the fields of a file of rules; topics are given by id or by name.

    Parameters
    ----------
    replace : dict of str to str
        A document that gets the first topic gets the second one in its place.
    adds : dict of str to list of str
        A document that gets the topic gets these, too, such as broader ones, and what these add.
    only_with : dict of str to list of str
        A document gets the topic only if it gets one of these.
    never_with : dict of str to list of str
        A document does not get the topic if it gets one of these.
    never : list of str
        No document gets these topics.
    at_most : int
        A document gets at most this many topics, those with the highest scores; 0: any number.
    """

    replace: dict[str, str] = field(default_factory=dict)
    adds: dict[str, list[str]] = field(default_factory=dict)
    only_with: dict[str, list[str]] = field(default_factory=dict)
    never_with: dict[str, list[str]] = field(default_factory=dict)
    never: list[str] = field(default_factory=list)
    at_most: int = 0

    def __post_init__(self) -> None:
        if self.at_most < 0:
            raise TextcatError(
                f"A document cannot get at most {self.at_most} topics: give 1 or more, or 0 for any number."
            )


class _Rule(NamedTuple):
    """Hold a rule about a topic and others, all given by their columns."""

    text: str  # such as "adds wheat: grain"
    apply: Callable[[NDArray[np.bool_]], int]  # changes what is given; returns how many documents met it


@dataclass(frozen=True, eq=False)
class Rules:
    """Hold the rules about the topics of a model, in the order in which they are applied.

    This is the order of the fields of `RuleFile`: a topic is replaced before others are added, and so on.
    """

    rules: tuple[_Rule, ...]
    at_most: int
    source: str  # the text of the file

    @classmethod
    def parse(cls, text: str, topics: Sequence[str], names: Mapping[str, str] | None = None) -> "Rules":
        """Return the rules that the text of a file says about the topics of a model, which may have names, by id.

        TextcatError is raised if it names a topic that the model has not, or contradicts itself.
        """
        asked = read_record(RuleFile, parse_toml(text, "The file of rules"), "in the file of rules")
        column_of = {topic: column for column, topic in enumerate(topics)}

        def columns(named: Sequence[str]) -> list[int]:
            try:
                return [column_of[find_topic(column_of, names or {}, topic)] for topic in named]
            except TextcatError as error:
                raise TextcatError(f"{error} Mend the file of rules, which names it, or leave it out.") from error

        adds = {columns([topic])[0]: columns(others) for topic, others in asked.adds.items()}
        excluded = {columns([topic])[0]: columns(others) for topic, others in asked.never_with.items()}
        closed = {column: _closure(column, adds) for column in adds}
        _check(topics, closed, excluded, set(columns(asked.never)))
        rules: list[_Rule] = []
        for topic, other in asked.replace.items():
            rules.append(_Rule(f"replace {topic}: {other}", _replaced(*columns([topic, other]))))
        for topic, others in asked.adds.items():
            (column,) = columns([topic])
            rules.append(_Rule(f"adds {topic}: {', '.join(others)}", _added(column, closed[column])))
        for kind, keeps in (("only_with", True), ("never_with", False)):
            for topic, others in getattr(asked, kind).items():
                (column,) = columns([topic])
                rules.append(_Rule(f"{kind} {topic}: {', '.join(others)}", _kept_with(column, columns(others), keeps)))
        for topic in asked.never:
            rules.append(_Rule(f"never {topic}", _removed(*columns([topic]))))
        return cls(tuple(rules), asked.at_most, text)

    @property
    def texts(self) -> tuple[str, ...]:
        """All rules in words."""
        return (*(rule.text for rule in self.rules), *([f"at_most {self.at_most}"] if self.at_most else []))

    def reason(self, given: NDArray[np.bool_], scores: NDArray[Any], column: int) -> str:
        """Return the rule by which a document gets or loses the topic in a column; "" if none changes it.

        Parameters as for `apply`, of one document. Of several rules, it is the last.
        """
        reason, given = "", given.copy()
        for rule in self.rules:
            before = given[0, column]
            rule.apply(given)
            if given[0, column] != before:
                reason = rule.text
        if given[0, column]:
            self._limit(given, scores)
            reason = reason if given[0, column] else self.texts[-1]
        return reason

    def apply(self, given: NDArray[np.bool_], scores: NDArray[Any]) -> tuple[NDArray[np.bool_], dict[str, int]]:
        """Return which documents get which topics by the rules, and for each rule how many documents met it.

        Parameters
        ----------
        given : ndarray of shape (n_documents, n_topics), bool
            Which documents get which topics without the rules.
        scores : ndarray of the same shape
            By which `at_most` chooses.
        """
        given, met = given.copy(), {}
        for rule in self.rules:
            met[rule.text] = rule.apply(given)
        if self.at_most:
            met[self.texts[-1]] = self._limit(given, scores)
        return given, met

    def _limit(self, given: NDArray[np.bool_], scores: NDArray[Any]) -> int:
        """Leave each document at most `at_most` topics, if it is not 0; return how many documents had more."""
        too_many = np.flatnonzero(given.sum(axis=1) > self.at_most) if self.at_most else np.zeros(0, int)
        for row in too_many.tolist():
            columns = np.flatnonzero(given[row])
            given[row, columns[np.argsort(-scores[row, columns], kind="stable")[self.at_most :]]] = False
        return len(too_many)


def _check(
    topics: Sequence[str],
    closed: Mapping[int, Sequence[int]],
    excluded: Mapping[int, Sequence[int]],
    never: set[int],
) -> None:
    """Raise TextcatError if a rule adds what another one takes away in any case.

    `closed` has for each topic all that it adds, and what these add.
    """
    for column, others in closed.items():
        all_added = {column, *others}
        for added in (column, *others):
            if added in never and added != column:
                raise TextcatError(
                    f"The rules add {topics[added]!r} to {topics[column]!r}, and never give it: remove one of the two."
                )
            if both := all_added.intersection(excluded.get(added, ())):
                raise TextcatError(
                    f"The rules give {topics[added]!r} and {topics[min(both)]!r} together with "
                    f"{topics[column]!r}, and never give them together: remove one of the two."
                )


def _closure(column: int, adds: Mapping[int, Sequence[int]]) -> list[int]:
    """Return what a topic adds, and what these topics add, and so on."""
    found: dict[int, None] = {}
    waiting = deque(adds.get(column, ()))
    while waiting:
        added = waiting.popleft()
        if added not in found and added != column:
            found[added] = None
            waiting += adds.get(added, ())
    return [*found]


def _replaced(old: int, new: int) -> Callable[[NDArray[np.bool_]], int]:
    def apply(given: NDArray[np.bool_]) -> int:
        rows = np.flatnonzero(given[:, old])
        given[rows, old] = False
        given[rows, new] = True
        return len(rows)

    return apply


def _added(column: int, others: Sequence[int]) -> Callable[[NDArray[np.bool_]], int]:
    def apply(given: NDArray[np.bool_]) -> int:
        rows = np.flatnonzero(given[:, column])[:, None]
        n_met = int((~given[rows, others].all(axis=1)).sum())
        given[rows, others] = True
        return n_met

    return apply


def _kept_with(column: int, others: Sequence[int], keeps: bool) -> Callable[[NDArray[np.bool_]], int]:
    def apply(given: NDArray[np.bool_]) -> int:
        rows = np.flatnonzero(given[:, column])
        met = rows[given[rows[:, None], others].any(axis=1) != keeps]
        given[met, column] = False
        return len(met)

    return apply


def _removed(column: int) -> Callable[[NDArray[np.bool_]], int]:
    def apply(given: NDArray[np.bool_]) -> int:
        rows = np.flatnonzero(given[:, column])
        given[rows, column] = False
        return len(rows)

    return apply
