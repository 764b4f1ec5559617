"""The steps of a session, such as answers, new topics and undos: a record for each kind of line in its journal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from textcat.base.records import read_record

ANSWERS = ("yes", "no", "skip")
# Where a document was judged: in answer to a question; in search results; in a list, where answers can also be changed;
# as an example when the topic was added; or to adjudicate a disagreement of two persons.
SOURCES = ("asked", "search", "list", "example", "adjudicated")


@dataclass(frozen=True)
class JournalAnswer:
    """A person's answer on a document for a topic, with the document's rank and score at that time."""

    topic: str
    position: int
    id: str
    answer: str  # one of ANSWERS
    source: str  # one of SOURCES
    note: str
    why: str = ""  # the value of the `Reason` why the document was asked about
    # number of the model that gave rank and score: the number of changes to the topic that it was trained on
    model: int = 0
    rank: int = 0  # rank among the documents not judged by then, from 1; 0 if there was no ranking yet
    score: float | None = None
    exclusion_reason: str = ""  # the reason for an answer "no", if the person gave one


@dataclass(frozen=True, kw_only=True)
class _Step:
    """The fields of all steps. The journal sets `step` and `at`."""

    step: int = 0  # the number of the line, from 1
    at: float = 0.0  # seconds since 1970


@dataclass(frozen=True, kw_only=True)
class TopicAdded(_Step):
    """A topic was added: `about` has its description, query and settings; `answers` are those on its examples."""

    topic: str
    about: dict[str, Any]
    person: str
    answers: list[JournalAnswer]


@dataclass(frozen=True, kw_only=True)
class TopicChanged(_Step):
    """A topic's criteria, exclusion reasons or way of choosing questions were changed."""

    topic: str
    change: dict[str, Any]
    person: str


@dataclass(frozen=True, kw_only=True)
class Answered(_Step):
    """A person answered on a document, for one topic or several."""

    person: str
    answers: list[JournalAnswer]


@dataclass(frozen=True, kw_only=True)
class KeywordSet(_Step):
    """A keyword was added to a topic, or removed: then, `speaks_for` is None."""

    topic: str
    keyword: str
    speaks_for: bool | None
    person: str


@dataclass(frozen=True, kw_only=True)
class Split(_Step):
    """Records were split off from their group of near-duplicates."""

    split: list[int]  # positions of the records
    ids: list[str]
    person: str


@dataclass(frozen=True, kw_only=True)
class Undone(_Step):
    """A person's last answer, keyword or split of near-duplicates was undone."""

    undo: int  # number of the undone step
    person: str


SessionStep = TopicAdded | TopicChanged | Answered | KeywordSet | Split | Undone
# The first of these fields that a line has determines its kind; a line without any is an answer.
_BY_FIELD: dict[str, type[SessionStep]] = {
    "about": TopicAdded,
    "change": TopicChanged,
    "keyword": KeywordSet,
    "split": Split,
    "undo": Undone,
}


def read_step(line: Mapping[str, Any]) -> SessionStep:
    """Parse a line of a journal into a step; raise one of `MISFITS` if it is invalid."""
    kind = next((_BY_FIELD[name] for name in _BY_FIELD if name in line), Answered)
    return read_record(kind, line, "in a step")


def answers_of(step: SessionStep) -> list[JournalAnswer]:
    """Return the answers that a person gave in a step, one for each topic."""
    return step.answers if isinstance(step, TopicAdded | Answered) else []


def texts_of(step: SessionStep) -> Iterator[str]:
    """Yield the texts that persons wrote in a step."""
    about = step.about if isinstance(step, TopicAdded) else step.change if isinstance(step, TopicChanged) else {}
    topic = [step.topic] if isinstance(step, TopicAdded) else []
    values = (value if isinstance(value, list) else [value] for value in about.values())
    notes = ([answer.note, answer.exclusion_reason] for answer in answers_of(step))
    texts = chain([step.person], topic, *values, *notes)
    yield from (text for text in texts if isinstance(text, str))
