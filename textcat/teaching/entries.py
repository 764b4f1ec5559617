"""Add and change topics in a session's journal, and make the journal's entries for answers."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable
from typing import TYPE_CHECKING, Any

from textcat.base.errors import TextcatError
from textcat.teaching import prior
from textcat.teaching.judgements import ANSWERS, LONGEST_NAME, SOURCES
from textcat.teaching.pool import Pool, PoolError

if TYPE_CHECKING:
    from textcat.model.tagger import Tagger
    from textcat.teaching.session import Question, Session

LONGEST_EXCLUSION_REASON = 200  # characters: it stands on a button and in tables


def add_topic(
    session: Session,
    name: str,
    description: str = "",
    query: str = "",
    examples: Iterable[str] = (),
    model: tuple[Tagger | str | os.PathLike[str], str] | None = None,
    *,
    criteria: str = "",
    exclusion_reasons: Iterable[str] = (),
    strategy: str | None = None,
    random: float | None = None,
    person: str = "",
) -> None:
    """Add a topic to a session. The name, description, query, examples and model are evidence for its ranker.

    Parameters
    ----------
    session : Session
    name : str
        Its words are evidence, too.
    description, query : str
        What the topic is about, in sentences; and words that occur in its documents.
    examples : iterable of str
        Ids of documents that belong to the topic: the answer "yes" is recorded for each.
    model : (tagger or its folder, topic), optional
        Start with a model's weights for a topic, matched to the pool's terms by name.
    criteria : str
        The criteria by which persons decide; they are shown next to each document, and are no evidence.
    exclusion_reasons : iterable of str
        Reasons for the answer "no" that persons can choose from.
    strategy : str, optional
        The name of the `QueryStrategy` that chooses the documents to ask about; by default the session's.
    random : float, optional
        The share of questions that are drawn at random; some estimates of recall need such questions.
    person : str
        The person who gives the examples.

    Raises
    ------
    TextcatError
        If the topic exists already, its name is empty or too long, an exclusion reason is too long, there is no such
        document or strategy, the model has no such topic, or the model shares no term with the pool.
    """
    with session.lock:
        topics = session.current.topics
        _check_name(name, topics)
        about = {"description": description, "query": query, **session.query.changed(strategy, random).about}
        about |= _shown_to_persons(criteria, exclusion_reasons)
        positions = [_position_of(session.pool, id) for id in dict.fromkeys(examples)]
        if model is not None:
            about["model"] = prior.keep(session.pool, session.folder, *model, number=len(topics) + 1)
        answers = [entry_of_answer(session, name, position, "yes", "example") for position in positions]
        session.current.write({"topic": name, "about": about, "person": person, "answers": answers})


def change_topic(
    session: Session,
    topic: str,
    *,
    criteria: str = "",
    exclusion_reasons: Iterable[str] = (),
    strategy: str | None = None,
    random: float | None = None,
) -> None:
    """Change what persons are shown about a topic, or how its questions are chosen, from now on.

    Parameters
    ----------
    session : Session
    topic : str
    criteria, exclusion_reasons, strategy, random : optional
        As for `add_topic`; a setting that is not given stays as it is.
    """
    with session.lock:
        change = session.topic_state(topic).query.changed(strategy, random).about
        change |= _shown_to_persons(criteria, exclusion_reasons)
        session.current.write({"topic": topic, "change": change, "person": ""})


def _shown_to_persons(criteria: str, exclusion_reasons: Iterable[str]) -> dict[str, Any]:
    reasons = [*dict.fromkeys(checked_exclusion_reason(reason, "no") for reason in exclusion_reasons)]
    shown: dict[str, Any] = {"criteria": criteria.strip(), "exclusion_reasons": [*filter(None, reasons)]}
    return {name: value for name, value in shown.items() if value}


def entry_of_answer(
    session: Session,
    topic: str,
    position: int,
    answer: str,
    source: str,
    note: str = "",
    question: Question | None = None,
) -> dict[str, Any]:
    """Return the journal's entry of an answer on a topic, with the document's rank, its score, and the model's number.

    `question` is the question that the person answers; None if the person was not asked about the document. The entry
    has the rank and score of the question. Without a question, it has the rank and score by the latest model, or none
    if there is no model yet. `source` is one of SOURCES.
    """
    entry = {"topic": topic, "position": position, "id": session.pool.ids[position], "answer": answer}
    entry |= {"source": source, "note": note}
    if question is not None:
        ranks = {"why": question.why.value, "model": question.model, "rank": question.rank}
        return {**entry, **ranks, "score": question.score}
    if ranking := session.rankings.latest(topic):
        group = session.groups.of(position)
        rank = ranking.rank_of(group, session.assignment.unjudged(session.topic_state(topic)))
        entry |= {"model": ranking.model, "rank": rank, "score": float(ranking.scores[group])}
    return entry


def check_answers(answers: Iterable[str], source: str) -> None:
    """Raise TextcatError if an answer or the source is not allowed, or if an answer that adjudicates is "skip"."""
    if source not in SOURCES or source == "example":
        raise TextcatError(f"No source {source!r} of an answer: choose one of asked, search, list and adjudicated.")
    for answer in answers:
        if answer not in ANSWERS or (source == "adjudicated" and answer == "skip"):
            raise TextcatError(f"No answer {answer!r}: choose one of {', '.join(ANSWERS)}; skip adjudicates nothing.")


def checked_exclusion_reason(reason: str, answer: str) -> str:
    """Return an exclusion reason in one line, without repeated spaces.

    Raise TextcatError if the reason is too long, or if it comes with another answer than "no".
    """
    reason = " ".join(reason.split())
    if reason and answer != "no":
        raise TextcatError(f"The exclusion reason {reason!r:.80} came with {answer!r}: give it with the answer 'no'.")
    if len(reason) > LONGEST_EXCLUSION_REASON:
        raise TextcatError(
            f"The exclusion reason {reason:.20}… has {len(reason):,} characters, and {LONGEST_EXCLUSION_REASON} are "
            "the most: move the rest to a note."
        )
    return reason


def _check_name(name: str, topics: Container[str]) -> None:
    """Raise TextcatError if a new topic's name is empty, too long, or one of `topics`."""
    if not name.strip():
        raise TextcatError("A topic needs a name: give one.")
    if len(name) > LONGEST_NAME:
        raise TextcatError(
            f"The name of the topic {name:.20}… has {len(name):,} characters, and {LONGEST_NAME} are the most: "
            "move the rest to its description."
        )
    if name in topics:
        raise TextcatError(f"The session has a topic {name!r} already: resume it, or give another name.")


def _position_of(pool: Pool, id: str) -> int:
    try:
        return pool.position_of(id)
    except PoolError as error:
        raise TextcatError(f"No document has the id {id!r}: give an id that the archive has.") from error
