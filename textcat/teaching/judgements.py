"""What people have judged: per topic, group of near-duplicates and person, from the lines of a journal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, NamedTuple

LONGEST_NAME = 300  # characters of a topic's: it stands in headings and addresses
ANSWERS = ("yes", "no", "skip")
# Where a document was judged: when it was asked about; in search results; in a list, where answers can also be changed;
# as an example when the topic was started; to adjudicate a disagreement of two persons.
SOURCES = ("asked", "search", "list", "example", "adjudicated")


class Judgement(NamedTuple):
    """A person's answer on a document, with the document's rank and score at that time."""

    step: int  # the number of its line in the journal
    at: float  # seconds since 1970
    person: str
    topic: str
    position: int
    id: str
    answer: str  # one of ANSWERS
    source: str  # one of SOURCES
    note: str = ""
    why: str = ""  # the reason why it was asked about; "" if it was not
    model: int = 0  # that gave the rank and score: the number of changes to the topic before it was trained
    rank: int = 0  # among the documents not judged by then, from 1; 0 if there was no ranking yet
    score: float | None = None


class Disagreement(NamedTuple):
    """A document on which two persons disagree, and each one's last answer."""

    position: int
    id: str
    judgements: list[Judgement]


class Agreement(NamedTuple):
    """How far persons agree on the documents that at least two of them have judged."""

    kappa: float | None  # Cohen's; of several pairs the mean, weighted by their documents; None if it is not defined
    observed: float | None  # the share on which they agree
    n: int  # documents that a pair has judged, over all pairs
    pairs: dict[tuple[str, str], tuple[float | None, int]]  # kappa, and number of documents
    disagreements: list[Disagreement]  # not adjudicated yet, the oldest first


@dataclass
class TopicState:
    """The current answers on one topic, and what it was started with."""

    name: str
    about: dict[str, Any]
    answers: dict[int, dict[str, list[Judgement]]] = field(
        default_factory=dict
    )  # of a group, by person; the last counts
    adjudications: dict[int, list[Judgement]] = field(default_factory=dict)
    labels: dict[int, bool] = field(default_factory=dict)  # of the groups that have one
    sides: dict[str, list[tuple[int, bool | None]]] = field(default_factory=dict)  # of keywords, with their steps
    n_changes: int = 0  # changes that affect the ranking; the model's number

    def standing(self, group: int) -> dict[str, Judgement]:
        """Return each person's current answer on a group of near-duplicates."""
        return {person: given[-1] for person, given in self.answers.get(group, {}).items() if given}

    def persons(self) -> list[str]:
        """Return who has answered."""
        return sorted({person for group in self.answers for person in self.standing(group)})

    def judged_by(self, person: str) -> Iterator[int]:
        """Yield the groups that a person need not be asked about any more: answered, skipped, or adjudicated."""
        for group, given in self.answers.items():
            if given.get(person):
                yield group
        yield from (group for group, given in self.adjudications.items() if given)

    def first_of(self, group: int) -> Judgement:
        """Return the first current judgement by yes or no on a group that has a label."""
        given = [*self.standing(group).values(), *self.adjudications.get(group, ())]
        return min((each for each in given if each.answer != "skip"), key=lambda each: each.step)

    def n_answers(self) -> int:
        """Count the current answers, including skips."""
        return sum(bool(given) for persons in self.answers.values() for given in persons.values()) + sum(
            map(bool, self.adjudications.values())
        )

    def in_order(self) -> list[tuple[Judgement, bool]]:
        """Return the first judgement of each group that has a label, and the label, in the order of the answers."""
        first = ((self.first_of(group), label) for group, label in self.labels.items())
        return sorted(first, key=lambda pair: pair[0].step)

    def judgements(self) -> list[Judgement]:
        """Return each person's current answer on each group, and the answers that adjudicated one, in order."""
        given = [each for group in self.answers for each in self.standing(group).values()]
        given += [each[-1] for each in self.adjudications.values() if each]
        return sorted(given, key=lambda each: each.step)

    def keywords(self) -> dict[str, bool]:
        """Return the keywords, in alphabetical order, and whether they speak for the topic."""
        sides = {term: given[-1][1] for term, given in sorted(self.sides.items()) if given}
        return {term: side for term, side in sides.items() if side is not None}

    def is_disagreement(self, group: int) -> bool:
        """Return whether persons disagree on a group, and nobody has adjudicated it."""
        opinions = {each.answer for each in self.standing(group).values()} - {"skip"}
        return len(opinions) > 1 and not self.adjudications.get(group)

    def agreement(self) -> Agreement:
        """Compare the answers of each pair of persons."""
        of_pairs: dict[tuple[str, str], list[tuple[bool, bool]]] = {}
        disagreements = []
        for group in self.answers:
            standing = self.standing(group)
            opinions = {who: each.answer == "yes" for who, each in sorted(standing.items()) if each.answer != "skip"}
            for one, other in combinations(opinions, 2):
                of_pairs.setdefault((one, other), []).append((opinions[one], opinions[other]))
            if self.is_disagreement(group):
                last = max(standing.values(), key=lambda each: each.step)
                disagreements.append(Disagreement(last.position, last.id, list(standing.values())))
        pairs = {names: (cohens_kappa(both), len(both)) for names, both in sorted(of_pairs.items())}
        known = [(kappa, n) for kappa, n in pairs.values() if kappa is not None]
        n = sum(len(both) for both in of_pairs.values())
        agreed = sum(one == other for both in of_pairs.values() for one, other in both)
        mean = sum(kappa * n for kappa, n in known) / sum(n for _, n in known) if known else None
        disagreements.sort(key=lambda each: max(judgement.step for judgement in each.judgements))
        return Agreement(mean, agreed / n if n else None, n, pairs, disagreements)

    def _update(self, group: int) -> None:
        label = _label(self.standing(group).values(), self.adjudications.get(group, []))
        if label is None:
            self.labels.pop(group, None)
        else:
            self.labels[group] = label


def _label(given: Iterable[Judgement], adjudicated: list[Judgement]) -> bool | None:
    """Return a document's label: the answer that adjudicated it, or else the majority's, without skips; a tie is a yes.

    So a disagreement of two is a yes until it is adjudicated: one document too many is better than one missed.
    """
    if adjudicated:
        return adjudicated[-1].answer == "yes"
    opinions = [each.answer == "yes" for each in given if each.answer != "skip"]
    return 2 * sum(opinions) >= len(opinions) if opinions else None


def cohens_kappa(pairs: Iterable[tuple[bool, bool]]) -> float | None:
    """Compute Cohen's kappa of two persons' answers on the same documents: (p - e) / (1 - e).

    p is the share on which they agree, and e what chance would give: the product of their shares of yes, plus that of
    their shares of no. Where both have given only one and the same answer, e is 1 and kappa is not defined: None.

    Source: J. Cohen, A coefficient of agreement for nominal scales, Educational and Psychological Measurement 20
    (1960).
    """
    both = list(pairs)
    if not both:
        return None
    n = len(both)
    one, other = sum(a for a, _ in both), sum(b for _, b in both)
    by_chance = one * other + (n - one) * (n - other)  # times n squared: whole numbers, so that 1 is found exactly
    agreed = sum(a == b for a, b in both)
    return None if by_chance == n * n else (agreed * n - by_chance) / (n * n - by_chance)


class Judgements:
    """All topics of a session: `apply` takes the lines of its journal, one after the other.

    Parameters
    ----------
    group_of : function of int
        Returns the group of near-duplicates of a document, as its lowest position.
    """

    def __init__(self, group_of: Callable[[int], int]):
        self.topics: dict[str, TopicState] = {}
        self._group_of = group_of
        self._done: dict[str, list[int]] = {}  # the steps of each person that can be undone
        self._lines: dict[int, Mapping[str, Any]] = {}

    def apply(self, line: Mapping[str, Any]) -> None:
        """Apply a line of the journal to the current state."""
        if "undo" in line:
            step = self._done[line["person"]].pop()
            assert step == line["undo"]
            self._take_back(self._lines.pop(step))
            return
        if "about" in line:
            self.topics[line["topic"]] = TopicState(line["topic"], dict(line["about"]))
        elif "change" in line:
            self.topics[line["topic"]].about.update(line["change"])
            return
        else:
            self._done.setdefault(line["person"], []).append(line["step"])
            self._lines[line["step"]] = line
        if "keyword" in line:
            topic = self.topics[line["topic"]]
            topic.sides.setdefault(line["keyword"], []).append((line["step"], line["speaks_for"]))
            topic.n_changes += 1
        for judgement in judgements_of(line):
            topic, group = self.topics[judgement.topic], self._group_of(judgement.position)
            if judgement.source == "adjudicated":
                topic.adjudications.setdefault(group, []).append(judgement)
            else:
                topic.answers.setdefault(group, {}).setdefault(judgement.person, []).append(judgement)
            topic._update(group)
            topic.n_changes += 1

    def last_of(self, person: str) -> Mapping[str, Any] | None:
        """Return a person's last line that can be undone."""
        done = self._done.get(person)
        return self._lines[done[-1]] if done else None

    def _take_back(self, line: Mapping[str, Any]) -> None:
        if "keyword" in line:
            topic = self.topics[line["topic"]]
            topic.sides[line["keyword"]] = [each for each in topic.sides[line["keyword"]] if each[0] != line["step"]]
            topic.n_changes += 1
        for judgement in judgements_of(line):
            topic, group = self.topics[judgement.topic], self._group_of(judgement.position)
            adjudicated = judgement.source == "adjudicated"
            given = topic.adjudications[group] if adjudicated else topic.answers[group][judgement.person]
            given.remove(judgement)
            topic._update(group)
            topic.n_changes += 1


def judgements_of(line: Mapping[str, Any]) -> Iterator[Judgement]:
    """Yield the judgements of a line of the journal: one on each topic that was answered."""
    for answer in line.get("answers", ()):
        yield Judgement(step=line["step"], at=line["at"], person=line["person"], **answer)
