"""Keep the current answers of each person on each topic and group of near-duplicates, read from a journal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from textcat.errors import TextcatError, did_you_mean
from textcat.surrogates import mark_surrogates
from textcat.teaching.journal import SessionJournal
from textcat.teaching.query import QueryStrategy, Reason

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
    why: Reason = Reason.NOT_ASKED  # it was asked about
    model: int = 0  # that gave the rank and score: the number of changes to the topic before it was trained
    rank: int = 0  # among the documents not judged by then, from 1; 0 if there was no ranking yet
    score: float | None = None
    exclusion_reason: str = ""  # why the answer is "no", if the person gave a reason


class Disagreement(NamedTuple):
    """A document on which persons disagree, and each one's last answer."""

    position: int
    id: str
    judgements: list[Judgement]

    @property
    def answers(self) -> dict[str, str]:
        """Each person's answer."""
        return {judgement.person: judgement.answer for judgement in self.judgements}


class Pair(NamedTuple):
    """The agreement of two persons."""

    people: tuple[str, str]
    documents: int  # that both have judged
    kappa: float | None  # Cohen's; None if it is not defined


class Agreement(NamedTuple):
    """The agreement of persons on the documents that at least two of them have judged."""

    kappa: float | None  # of several pairs the mean, weighted by their documents; None if it is not defined
    agreed: float | None  # the share on which they agree
    documents: int  # that a pair has judged, over all pairs
    pairs: list[Pair]
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

    def __post_init__(self) -> None:
        self.change({})

    def change(self, changes: Mapping[str, Any]) -> None:
        """Change the strategy, its share of random questions, or what persons are shown about the topic."""
        self.about.update(changes)
        names = {"strategy": "name", "random": "random"}
        self.query = QueryStrategy(**{names[key]: self.about[key] for key in names if key in self.about})

    def labelled(self) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
        """Return the groups that have a label, ascending, and 1 or -1 for each."""
        groups = sorted(self.labels)
        return np.array(groups, np.int64), np.array([1 if self.labels[group] else -1 for group in groups], np.int8)

    def examples(self) -> tuple[str, ...]:
        """Return the ids of the documents that the topic was started with."""
        histories = (of_person for of_group in self.answers.values() for of_person in of_group.values())
        return tuple(
            judgement.id for judgements in histories for judgement in judgements if judgement.source == "example"
        )

    def own_answer(self, group: int, person: str) -> str:
        """Return a person's current answer on a group; "" if there is none."""
        judgement = self.standing(group).get(person)
        return judgement.answer if judgement else ""

    def standing(self, group: int) -> dict[str, Judgement]:
        """Return each person's current answer on a group of near-duplicates."""
        return {person: judgements[-1] for person, judgements in self.answers.get(group, {}).items() if judgements}

    def persons(self) -> list[str]:
        """Return the names of the persons who have answered, sorted."""
        return sorted({person for group in self.answers for person in self.standing(group)})

    def judged_by(self, person: str) -> Iterator[int]:
        """Yield the groups that a person need not be asked about any more: answered, skipped, or adjudicated."""
        for group, judgements in self.answers.items():
            if judgements.get(person):
                yield group
        yield from (group for group, judgements in self.adjudications.items() if judgements)

    def first_of(self, group: int) -> Judgement:
        """Return the first current judgement by yes or no on a group that has a label."""
        judgements = [*self.standing(group).values(), *self.adjudications.get(group, ())]
        return min(
            (judgement for judgement in judgements if judgement.answer != "skip"), key=lambda judgement: judgement.step
        )

    def exclusion_reason(self, group: int) -> str:
        """Return the exclusion reason that was given last for a group with the label "no"; "" if there is none."""
        if self.labels.get(group, True):
            return ""
        judgements = self.adjudications.get(group) or self.standing(group).values()
        given = [judgement for judgement in judgements if judgement.exclusion_reason]
        return max(given, key=lambda judgement: judgement.step).exclusion_reason if given else ""

    def n_answers(self) -> int:
        """Count the current answers, including skips."""
        return sum(bool(judgements) for persons in self.answers.values() for judgements in persons.values()) + sum(
            map(bool, self.adjudications.values())
        )

    def in_order(self) -> list[tuple[Judgement, bool]]:
        """Return the first judgement of each group that has a label, and the label, in the order of the answers."""
        first = ((self.first_of(group), label) for group, label in self.labels.items())
        return sorted(first, key=lambda pair: pair[0].step)

    def judgements(self) -> list[Judgement]:
        """Return each person's current answer on each group, and each adjudication, in the order of their steps."""
        current = [judgement for group in self.answers for judgement in self.standing(group).values()]
        current += [judgements[-1] for judgements in self.adjudications.values() if judgements]
        return sorted(current, key=lambda judgement: judgement.step)

    def keywords(self) -> dict[str, bool]:
        """Return the keywords, in alphabetical order, and whether they speak for the topic."""
        sides = {
            term: steps_and_sides[-1][1] for term, steps_and_sides in sorted(self.sides.items()) if steps_and_sides
        }
        return {term: side for term, side in sides.items() if side is not None}

    def is_disagreement(self, group: int) -> bool:
        """Return whether persons disagree on a group, and nobody has adjudicated it."""
        opinions = {judgement.answer for judgement in self.standing(group).values()} - {"skip"}
        return len(opinions) > 1 and not self.adjudications.get(group)

    def agreement(self) -> Agreement:
        """Compare the answers of each pair of persons."""
        of_pairs: dict[tuple[str, str], list[tuple[bool, bool]]] = {}
        disagreements = []
        for group in self.answers:
            standing = self.standing(group)
            opinions = {
                person: judgement.answer == "yes"
                for person, judgement in sorted(standing.items())
                if judgement.answer != "skip"
            }
            for one, other in combinations(opinions, 2):
                of_pairs.setdefault((one, other), []).append((opinions[one], opinions[other]))
            if self.is_disagreement(group):
                last = max(standing.values(), key=lambda judgement: judgement.step)
                disagreements.append(Disagreement(last.position, last.id, list(standing.values())))
        pairs = [Pair(names, len(both), cohens_kappa(both)) for names, both in sorted(of_pairs.items())]
        kappas = [(pair.kappa, pair.documents) for pair in pairs if pair.kappa is not None]
        n = sum(pair.documents for pair in pairs)
        agreed = sum(one == other for both in of_pairs.values() for one, other in both)
        mean = sum(kappa * n for kappa, n in kappas) / sum(n for _, n in kappas) if kappas else None
        disagreements.sort(key=lambda disagreement: max(judgement.step for judgement in disagreement.judgements))
        return Agreement(mean, agreed / n if n else None, n, pairs, disagreements)

    def update_label(self, group: int) -> None:
        """Derive the label of a group from the answers on it."""
        label = _label(self.standing(group).values(), self.adjudications.get(group, []))
        if label is None:
            self.labels.pop(group, None)
        else:
            self.labels[group] = label


def _label(judgements: Iterable[Judgement], adjudicated: list[Judgement]) -> bool | None:
    """Return a document's label: the answer that adjudicated it, or else the majority's, without skips; a tie is a yes.

    So if two persons disagree, the label is yes until it is adjudicated: a document too many is better than one missed.
    """
    if adjudicated:
        return adjudicated[-1].answer == "yes"
    opinions = [judgement.answer == "yes" for judgement in judgements if judgement.answer != "skip"]
    return 2 * sum(opinions) >= len(opinions) if opinions else None


def cohens_kappa(pairs: Iterable[tuple[bool, bool]]) -> float | None:
    """Compute Cohen's kappa of two persons' answers on the same documents: (p - e) / (1 - e).

    p is the share on which they agree, and e what chance would give: the product of their shares of yes, plus that of
    their shares of no. If all answers of both are yes, or all are no, e is 1 and kappa is not defined: None.

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
    """The current answers on all topics of a session, from the lines of its journal, by groups of near-duplicates."""

    def __init__(self, journal: SessionJournal, group_of: Callable[[int], int]):
        self._journal, self._group_of = journal, group_of
        self._replay()

    def _replay(self) -> None:
        self.topics: dict[str, TopicState] = {}
        self._done: dict[str, list[int]] = {}  # the steps of each person that can be undone
        self._lines: dict[int, Mapping[str, Any]] = {}
        for line in self._journal.lines:
            self.apply(line)

    def topic(self, name: str) -> TopicState:
        """Return the state of a topic; raise TextcatError if there is none of this name."""
        if name not in self.topics:
            names = f"it has {', '.join(map(repr, self.topics))}" if self.topics else "add one first"
            raise TextcatError(f"The session has no topic {name!r}: {names}.{did_you_mean(name, self.topics)}")
        return self.topics[name]

    def write(self, entry: Mapping[str, Any]) -> None:
        """Write an entry to the journal, and apply it."""
        answers = entry.get("answers", ())
        texts = [answer[name] for answer in answers for name in ("note", "exclusion_reason") if name in answer]
        for value in ({**entry.get("about", {}), **entry.get("change", {})}).values():
            texts += value if isinstance(value, list) else [value]
        for text in (entry.get("topic"), entry["person"], *texts):
            if isinstance(text, str) and text != mark_surrogates(text):
                raise TextcatError(
                    f"{text!r:.80} is not valid Unicode, so pages and exports could not show it: write it again."
                )
        try:
            self.apply(self._journal.append({"at": round(time.time(), 3), **entry}))
        except BaseException:  # Ctrl-C may come between the two
            self._replay()
            raise

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
            self.topics[line["topic"]].change(line["change"])
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
            topic.update_label(group)
            topic.n_changes += 1

    def last_of(self, person: str) -> Mapping[str, Any] | None:
        """Return the line of a person's last answer or keyword; None if there is nothing left to undo."""
        done = self._done.get(person)
        return self._lines[done[-1]] if done else None

    def _take_back(self, line: Mapping[str, Any]) -> None:
        if "keyword" in line:
            topic = self.topics[line["topic"]]
            topic.sides[line["keyword"]] = [entry for entry in topic.sides[line["keyword"]] if entry[0] != line["step"]]
            topic.n_changes += 1
        for judgement in judgements_of(line):
            topic, group = self.topics[judgement.topic], self._group_of(judgement.position)
            adjudicated = judgement.source == "adjudicated"
            judgements_of_person = topic.adjudications[group] if adjudicated else topic.answers[group][judgement.person]
            judgements_of_person.remove(judgement)
            topic.update_label(group)
            topic.n_changes += 1


def judgements_of(line: Mapping[str, Any]) -> Iterator[Judgement]:
    """Yield the judgements of a line of the journal: one on each topic that was answered."""
    for answer in line.get("answers", ()):
        facts = {**answer, "why": Reason(answer.get("why", ""))}
        yield Judgement(step=line["step"], at=line["at"], person=line["person"], **facts)
