"""Derive the current answers from a session's journal, for each topic, group of near-duplicates and person."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from textcat.base.errors import TextcatError, did_you_mean
from textcat.base.surrogates import mark_surrogates
from textcat.teaching.journal import SessionJournal
from textcat.teaching.pool.duplicates import Groups
from textcat.teaching.query import QueryStrategy, Reason
from textcat.teaching.steps import (
    JournalAnswer,
    KeywordSet,
    SessionStep,
    Split,
    TopicAdded,
    TopicChanged,
    Undone,
    answers_of,
    texts_of,
)

LONGEST_NAME = 300  # maximum characters of a topic's name, which appears in headings and URLs


@dataclass(frozen=True, kw_only=True)
class Judgement(JournalAnswer):
    """A person's answer, together with what the journal says of its step."""

    step: int  # the number of the judgement's line in the journal
    at: float  # seconds since 1970
    person: str
    why: Reason


class Disagreement(NamedTuple):
    """A document on which persons disagree, with each person's current judgement."""

    position: int
    id: str
    judgements: list[Judgement]

    @property
    def answers(self) -> dict[str, str]:
        """Each person's current answer, by the person's name."""
        return {judgement.person: judgement.answer for judgement in self.judgements}


class Pair(NamedTuple):
    """The agreement of two persons on the documents that both have judged."""

    people: tuple[str, str]
    documents: int  # number of documents that both have judged
    kappa: float | None  # Cohen's kappa; None if it is not defined


class Agreement(NamedTuple):
    """The agreement of persons on the documents that at least two persons have judged."""

    kappa: float | None  # mean over the pairs, weighted by their numbers of documents; None if undefined
    agreed: float | None  # share of `documents` on which the pair agrees; None if there are no pairs
    documents: int  # number of documents that both persons of a pair have judged, summed over the pairs
    pairs: list[Pair]
    disagreements: list[Disagreement]  # disagreements not adjudicated yet, the oldest first


@dataclass
class TopicState:
    """The state of a topic: its current answers, labels and keywords, and its description, criteria and settings."""

    name: str
    about: dict[str, Any]
    # By group, then by person; the person's last judgement is used.
    answers: dict[int, dict[str, list[Judgement]]] = field(default_factory=dict)
    adjudications: dict[int, list[Judgement]] = field(default_factory=dict)  # by group; the last one is used
    labels: dict[int, bool] = field(default_factory=dict)  # by group, for groups that have a label
    # By keyword: pairs of the journal's step, and True (for the topic), False (against it) or None (removed).
    _sides: dict[str, list[tuple[int, bool | None]]] = field(default_factory=dict)
    n_changes: int = 0  # number of changes that affect the ranking; also the number of the model trained on them

    def __post_init__(self) -> None:
        self._change({})

    def _change(self, changes: Mapping[str, Any]) -> None:
        """Change settings of the topic, given by name: the strategy that chooses questions, criteria, and so on."""
        self.about.update(changes)
        names = {"strategy": "name", "random_share": "random_share"}
        self.query = QueryStrategy(**{names[key]: self.about[key] for key in names if key in self.about})

    def labelled(self) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
        """Return the groups of near-duplicates that have a label, ascending, and their labels: 1 for yes, -1 for no.

        A group is the position of its first document.
        """
        groups = sorted(self.labels)
        return np.array(groups, np.int64), np.array([1 if self.labels[group] else -1 for group in groups], np.int8)

    def examples(self) -> tuple[str, ...]:
        """Return the ids of the example documents that the topic was started with."""
        histories = (of_person for of_group in self.answers.values() for of_person in of_group.values())
        return tuple(
            judgement.id for judgements in histories for judgement in judgements if judgement.source == "example"
        )

    def own_answer(self, group: int, person: str) -> str:
        """Return a person's current answer on a group of near-duplicates; "" if there is none."""
        judgement = self.standing(group).get(person)
        return judgement.answer if judgement else ""

    def standing(self, group: int) -> dict[str, Judgement]:
        """Return all persons' current answers on a group of near-duplicates, by person."""
        return {person: judgements[-1] for person, judgements in self.answers.get(group, {}).items() if judgements}

    def persons(self) -> list[str]:
        """Return the sorted names of the persons who have a current answer."""
        return sorted({person for group in self.answers for person in self.standing(group)})

    def judged_by(self, person: str) -> Iterator[int]:
        """Yield the groups of near-duplicates that a person has answered or skipped, or that somebody has adjudicated.

        The person is no longer asked about these groups.
        """
        for group, judgements in self.answers.items():
            if judgements.get(person):
                yield group
        yield from (group for group, judgements in self.adjudications.items() if judgements)

    def first_of(self, group: int) -> Judgement:
        """Return the earliest current judgement by yes or no on a group of near-duplicates, which must have a label."""
        judgements = [*self.standing(group).values(), *self.adjudications.get(group, ())]
        return min(
            (judgement for judgement in judgements if judgement.answer != "skip"), key=lambda judgement: judgement.step
        )

    def exclusion_reason(self, group: int) -> str:
        """Return the exclusion reason given last for a group of near-duplicates.

        Return "" if there is none, or if the group's label is not "no".
        """
        if self.labels.get(group, True):
            return ""
        judgements = self.adjudications.get(group) or self.standing(group).values()
        reasoned = [judgement for judgement in judgements if judgement.exclusion_reason]
        return max(reasoned, key=lambda judgement: judgement.step).exclusion_reason if reasoned else ""

    def n_answers(self) -> int:
        """Count the current answers, including skips and adjudications."""
        return sum(bool(judgements) for persons in self.answers.values() for judgements in persons.values()) + sum(
            map(bool, self.adjudications.values())
        )

    def in_order(self) -> list[tuple[Judgement, bool]]:
        """Return a pair for each group of near-duplicates with a label: its first judgement, and its label (True: yes).

        The pairs are in the order in which these judgements were given.
        """
        first = ((self.first_of(group), label) for group, label in self.labels.items())
        return sorted(first, key=lambda pair: pair[0].step)

    def judgements(self) -> list[Judgement]:
        """Return each person's current answer on each group of near-duplicates, and each adjudication.

        They are in the order in which they were given.
        """
        current = [judgement for group in self.answers for judgement in self.standing(group).values()]
        current += [judgements[-1] for judgements in self.adjudications.values() if judgements]
        return sorted(current, key=lambda judgement: judgement.step)

    def keywords(self) -> dict[str, bool]:
        """Return the keywords in alphabetical order: True if a keyword speaks for the topic, False if against it."""
        sides = {
            term: steps_and_sides[-1][1] for term, steps_and_sides in sorted(self._sides.items()) if steps_and_sides
        }
        return {term: side for term, side in sides.items() if side is not None}

    def is_disagreement(self, group: int) -> bool:
        """Return whether persons disagree on a group of near-duplicates, and nobody has settled the disagreement."""
        opinions = {judgement.answer for judgement in self.standing(group).values()} - {"skip"}
        return len(opinions) > 1 and not self.adjudications.get(group)

    def agreement(self) -> Agreement:
        """Compute how far each pair of persons agrees, and list the disagreements that nobody has adjudicated."""
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

    def _update_label(self, group: int) -> None:
        """Derive the label of a group of near-duplicates from its last adjudication or current answers, and store it.

        If neither is yes or no, remove the label.
        """
        label = _label(self.standing(group).values(), self.adjudications.get(group, []))
        if label is None:
            self.labels.pop(group, None)
        else:
            self.labels[group] = label


def _label(judgements: Iterable[Judgement], adjudicated: list[Judgement]) -> bool | None:
    """Return a document's label (True: yes) from the persons' judgements and the adjudications.

    The label is the last adjudication or, without one, the majority of the answers yes and no. A tie gives yes: if two
    persons disagree, the label is yes until somebody adjudicates it, because including one document too many is better
    than missing one. Return None if nobody has answered yes or no.
    """
    if adjudicated:
        return adjudicated[-1].answer == "yes"
    opinions = [judgement.answer == "yes" for judgement in judgements if judgement.answer != "skip"]
    return 2 * sum(opinions) >= len(opinions) if opinions else None


def cohens_kappa(pairs: Iterable[tuple[bool, bool]]) -> float | None:
    """Compute Cohen's kappa of two persons' answers on the same documents (True: yes): (p - e) / (1 - e).

    p is the share of the documents on which the persons agree. e is the share on which they would agree by chance: the
    product of the two persons' shares of yes, plus the product of their shares of no. Return None where kappa is not
    defined: if there are no documents, or if e is 1 because all answers of both persons are yes, or all are no.

    Source: J. Cohen, A coefficient of agreement for nominal scales, Educational and Psychological Measurement 20
    (1960).
    """
    both = list(pairs)
    if not both:
        return None
    n = len(both)
    n_first, n_second = sum(a for a, _ in both), sum(b for _, b in both)
    # Multiplied by n squared: integers, so that 1 is detected exactly.
    by_chance = n_first * n_second + (n - n_first) * (n - n_second)
    agreed = sum(a == b for a, b in both)
    return None if by_chance == n * n else (agreed * n - by_chance) / (n * n - by_chance)


class Judgements:
    """The current answers on all topics of a session, derived from the lines of its journal.

    An answer applies to all near-duplicates of its document. If records are split off from a group, earlier answers
    apply to the group that then has their document.
    """

    def __init__(self, journal: SessionJournal, groups_of_pool: NDArray[np.int32]):
        self._journal, self._groups_of_pool = journal, groups_of_pool
        self._replay()

    def _replay(self) -> None:
        steps = self._journal.steps
        undone = {step.undo for step in steps if isinstance(step, Undone)}
        splits = (step.split for step in steps if isinstance(step, Split) and step.step not in undone)
        self.groups = Groups(self._groups_of_pool, splits)
        self.topics: dict[str, TopicState] = {}
        self._done: dict[str, list[SessionStep]] = {}  # each person's steps that can be undone
        for step in steps:
            self._apply(step)

    def topic(self, name: str) -> TopicState:
        """Return the state of a topic; raise TextcatError if the session has no topic of this name."""
        if name not in self.topics:
            names = f"it has {', '.join(map(repr, self.topics))}" if self.topics else "add one first"
            raise TextcatError(f"The session has no topic {name!r}: {names}.{did_you_mean(name, self.topics)}")
        return self.topics[name]

    def write(self, step: SessionStep) -> None:
        """Write a step to the journal, and apply it to the current answers.

        Raise TextcatError if a text in it is not valid Unicode.
        """
        for text in texts_of(step):
            if text != mark_surrogates(text):
                raise TextcatError(
                    f"{text!r:.80} is not valid Unicode, so pages and exports could not show it: write it again."
                )
        changes_groups = isinstance(self.last_of(step.person) if isinstance(step, Undone) else step, Split)
        try:
            written = self._journal.append(replace(step, at=round(time.time(), 3)))
            if changes_groups:
                self._replay()  # earlier answers now apply to other groups
            else:
                self._apply(written)
        except BaseException:  # Ctrl-C may come between the two statements
            self._replay()
            raise

    def _apply(self, step: SessionStep) -> None:
        """Update the current answers by a step of the journal, such as an answer, a split of duplicates, or an undo."""
        if isinstance(step, Undone):
            last = self._done[step.person].pop()
            assert last.step == step.undo
            self._take_back(last)
            return
        if isinstance(step, TopicAdded):
            self.topics[step.topic] = TopicState(step.topic, dict(step.about))
        elif isinstance(step, TopicChanged):
            self.topics[step.topic]._change(step.change)
        else:
            self._done.setdefault(step.person, []).append(step)
        if isinstance(step, Split):
            self._change_all()
        if isinstance(step, KeywordSet):
            topic = self.topics[step.topic]
            topic._sides.setdefault(step.keyword, []).append((step.step, step.speaks_for))
            topic.n_changes += 1
        for judgement in judgements_of(step):
            topic, group = self.topics[judgement.topic], self.groups.of(judgement.position)
            if judgement.source == "adjudicated":
                topic.adjudications.setdefault(group, []).append(judgement)
            else:
                topic.answers.setdefault(group, {}).setdefault(judgement.person, []).append(judgement)
            topic._update_label(group)
            topic.n_changes += 1

    def last_of(self, person: str) -> SessionStep | None:
        """Return a person's last step that can be undone; None if there is none.

        It is an answer, a keyword, or a split of a group of near-duplicates.
        """
        done = self._done.get(person)
        return done[-1] if done else None

    def _change_all(self) -> None:
        for topic in self.topics.values():
            topic.n_changes += 1

    def _take_back(self, step: SessionStep) -> None:
        if isinstance(step, Split):
            self._change_all()
        if isinstance(step, KeywordSet):
            topic = self.topics[step.topic]
            sides = topic._sides[step.keyword]
            sides[:] = [entry for entry in sides if entry[0] != step.step]
            topic.n_changes += 1
        for judgement in judgements_of(step):
            topic, group = self.topics[judgement.topic], self.groups.of(judgement.position)
            adjudicated = judgement.source == "adjudicated"
            judgements_of_person = topic.adjudications[group] if adjudicated else topic.answers[group][judgement.person]
            judgements_of_person.remove(judgement)
            topic._update_label(group)
            topic.n_changes += 1


def judgements_of(step: SessionStep) -> Iterator[Judgement]:
    """Yield the judgements of a step: one for each topic that the person answered."""
    for answer in answers_of(step):
        facts = {**vars(answer), "why": Reason(answer.why)}
        yield Judgement(step=step.step, at=step.at, person=step.person, **facts)
