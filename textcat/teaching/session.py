"""Teach topics over a pool by active learning: ask about a document, record the answer, rank all documents again."""

from __future__ import annotations

import os
import threading
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from textcat.base.disk import expanded, resolved
from textcat.base.errors import TextcatError
from textcat.recipes.recipe import RankerSettings
from textcat.teaching import prior
from textcat.teaching.assignment import Assignment, unjudged
from textcat.teaching.entries import (
    check_answers,
    check_name,
    checked_exclusion_reason,
    shown_to_persons,
    with_single_spaces,
)
from textcat.teaching.journal import SessionHeader, SessionJournal
from textcat.teaching.judgements import Judgement, Judgements, TopicState, judgements_of
from textcat.teaching.loop import Choice
from textcat.teaching.pool import Pool, PoolError, open_pool
from textcat.teaching.query import QueryStrategy, Reason
from textcat.teaching.ranker import Ranker
from textcat.teaching.rankings import Rankings
from textcat.teaching.steps import (
    Answered,
    JournalAnswer,
    KeywordSet,
    Split,
    TopicAdded,
    TopicChanged,
    Undone,
    answers_of,
)
from textcat.teaching.view import View

if TYPE_CHECKING:
    from textcat.model.tagger import Tagger

#: The strategy of new topics: some questions are random, so that recall can be estimated.
QUERY = QueryStrategy("highest", random_share=0.05)


class Question(NamedTuple):
    """A question to a person: the document to judge next, and why it was chosen."""

    topic: str
    position: int
    id: str
    zones: dict[str, str]
    rank: int  # rank among the documents not judged yet, from 1
    score: float
    why: Reason
    n_answers: int  # number of answers on the topic so far
    duplicates: tuple[str, ...]  # ids of its near-duplicates, which get the same answer
    model: int  # number of the model: the number of changes to the topic that its ranking includes
    answers: dict[str, str]  # the person's own answers on the document for other topics
    fields: dict[str, Any]  # further fields of its record, such as authors and year
    topics: tuple[str, ...]  # topics to answer for; from `Session.next`, only the topic


class Session:
    """A pool, the topics taught over it, and a journal of judgements, for any number of persons and threads.

    `create` starts a session that is saved in a folder, and `open` opens it again; ``Session(pool)`` starts a session
    in memory. `next` chooses by a ranking that includes all answers; a ranking is computed when it is first needed. It
    depends only on the pool, the settings, the seed and the judgements that were not undone or replaced: a session that
    is opened again asks the same question with the same scores, to the bit.

    Parameters
    ----------
    pool : Pool
    ranker : Ranker, optional
        A ranker of the pool's documents; by default one with the settings in the journal.
    query : QueryStrategy
        The strategy of new topics for which no other is given.
    journal : SessionJournal, optional
        By default a new one in memory.
    """

    def __init__(
        self,
        pool: Pool,
        *,
        ranker: Ranker | None = None,
        query: QueryStrategy = QUERY,
        journal: SessionJournal | None = None,
    ):
        journal = journal or SessionJournal.create(None, _header(pool))
        _check_pool(pool, journal)
        header = journal.header
        if ranker is None:
            embeddings = pool.embeddings() if header.ranker.embeddings else None
            ranker = Ranker(pool.rows, embeddings=embeddings, settings=header.ranker, seed=header.seed)
        self._pool, self._query, self._journal = pool, query, journal
        self._rankings = Rankings(pool, ranker, journal.folder, header.seed)
        self._assignment = Assignment(header.seed, header.overlap)
        self._asked: dict[tuple[str, str], Question] = {}
        self._lock = threading.RLock()  # held while answers and rankings are read or changed
        # the current answers, according to all lines of the journal
        self._judgements = Judgements(journal, pool.groups)
        self._view = View(pool, journal, self._judgements, self._rankings, self._lock)

    @classmethod
    def create(
        cls,
        folder: str | os.PathLike[str] | None,
        pool: Pool,
        *,
        seed: int = 0,
        overlap: float = 1.0,
        settings: RankerSettings | None = None,
        query: QueryStrategy = QUERY,
    ) -> Session:
        """Start a session; raise TextcatError if the folder already has one, or cannot be written to.

        Parameters
        ----------
        folder : path or None
            Folder of the journal; it may be the folder of the pool. None: nothing is saved.
        pool : Pool
        seed : int, default=0
            Seed of the questions that are drawn at random.
        overlap : float, default=1.0
            The share of documents that each person is asked about; for the rest one answer is enough. 1: persons judge
            independently of each other; 0: they share the work.
        settings : RankerSettings, optional
            How documents are ranked; by default as the pool's recipe says.
        query : QueryStrategy
            As for `Session`.

        Returns
        -------
        Session
        """
        if not 0 <= overlap <= 1:
            raise TextcatError(f"The share of documents that everybody is shown cannot be {overlap}: give 0 to 1.")
        if settings and settings.embeddings:
            pool.embeddings()  # any failure must come before anything is written
        path = None if folder is None else expanded(folder)
        journal = SessionJournal.create(path, _header(pool, path, seed, overlap, settings))
        with journal.closing_on_error():
            return cls(pool, query=query, journal=journal)

    @classmethod
    def open(
        cls,
        folder: str | os.PathLike[str],
        pool: Pool | None = None,
        *,
        read_only: bool = False,
        query: QueryStrategy = QUERY,
    ) -> Session:
        """Open a session again; raise TextcatError if it is damaged, open in another process, or its pool has changed.

        Parameters
        ----------
        folder : path
        pool : Pool, optional
            By default the one on disk that the session was started with.
        read_only : bool, default=False
            Open the session only for reading, which is possible while another process has it open.
        query : QueryStrategy
            As for `Session`.

        Returns
        -------
        Session
        """
        path = expanded(folder)
        journal = SessionJournal.open(path, read_only=read_only)
        with journal.closing_on_error():
            if pool is None and not journal.header.pool:
                raise TextcatError(f"The session {path} was started with a pool in memory: give that pool, too.")
            return cls(pool or open_pool(path / journal.header.pool), query=query, journal=journal)

    def close(self) -> None:
        """Close the journal, so that other processes can open the session."""
        with self._lock:
            self._journal.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    @property
    def folder(self) -> Path | None:
        """The folder of the journal; None if the session is in memory."""
        return self._journal.folder

    @property
    def fingerprint(self) -> str:
        """A checksum of the session's folder and of the journal's header, which identifies the session."""
        facts = self.folder and str(resolved(self.folder)), sorted(asdict(self._journal.header).items())
        return f"{zlib.crc32(repr(facts).encode('utf-8', 'surrogateescape')):08x}"

    @property
    def view(self) -> View:
        """The session for reading only: its documents, labels, scores, groups of near-duplicates, and journal."""
        return self._view

    # --- topics -------------------------------------------------------------------------------------------------------

    def topics(self) -> list[str]:
        """Return the names of the topics, in the order in which they were added."""
        with self._lock:
            return list(self._judgements.topics)

    def about(self, topic: str) -> dict[str, Any]:
        """Return a topic's texts and settings by name: description, query, examples, criteria, strategy and so on."""
        with self._lock:
            state = self._judgements.topic(topic)
            return {**state.about, "examples": state.examples()}

    def keywords(self, topic: str) -> dict[str, bool]:
        """Return the keywords of a topic: True if a keyword speaks for the topic, False if against it."""
        with self._lock:
            return self._judgements.topic(topic).keywords()

    def add_topic(
        self,
        name: str,
        description: str = "",
        query: str = "",
        examples: Iterable[str] = (),
        model: tuple[Tagger | str | os.PathLike[str], str] | None = None,
        *,
        criteria: str = "",
        exclusion_reasons: Iterable[str] = (),
        strategy: str | None = None,
        random_share: float | None = None,
        person: str = "",
    ) -> None:
        """Add a topic; its name, description, query, examples and model are evidence for its ranker.

        Parameters
        ----------
        name : str
            Its words are evidence, too.
        description, query : str
            A description of the topic in sentences, and words that occur in its documents.
        examples : iterable of str
            Ids of documents that belong to the topic: the answer "yes" is recorded for each.
        model : (tagger or its folder, topic), optional
            Start with a model's weights for a topic, matched to the pool's terms by name.
        criteria : str
            The criteria by which persons decide; they are shown next to each document, and are not used as evidence.
        exclusion_reasons : iterable of str
            Reasons for the answer "no" that persons can choose from.
        strategy : str, optional
            The name of the `QueryStrategy` that chooses the documents to ask about; by default the session's.
        random_share : float, optional
            The share of questions that are drawn at random; some estimates of recall need such questions.
        person : str
            The person who gives the examples.

        Raises
        ------
        TextcatError
            If the topic exists already, its name is empty or too long, an exclusion reason is too long, there is no
            such document or strategy, the model has no such topic, or the model shares no term with the pool.
        """
        name = with_single_spaces(name)
        with self._lock:
            topics = self._judgements.topics
            check_name(name, topics)
            about = {"description": description, "query": query, **self._query.changed(strategy, random_share).about}
            about |= shown_to_persons(criteria, exclusion_reasons)
            positions = [_position_of(self._pool, id) for id in dict.fromkeys(examples)]
            if model is not None:
                about["model"] = prior.save_prior(self._pool, self.folder, *model, number=len(topics) + 1)
            answers = [self._entry(name, position, "yes", "example") for position in positions]
            self._judgements.write(TopicAdded(topic=name, about=about, person=person, answers=answers))

    def change_topic(
        self,
        topic: str,
        *,
        criteria: str = "",
        exclusion_reasons: Iterable[str] = (),
        strategy: str | None = None,
        random_share: float | None = None,
    ) -> None:
        """Change a topic's criteria and exclusion reasons, or how its questions are chosen, from now on.

        Parameters
        ----------
        topic : str
        criteria, exclusion_reasons, strategy, random_share : optional
            As for `add_topic`; a setting that is not given stays as it is.
        """
        with self._lock:
            change = self._judgements.topic(topic).query.changed(strategy, random_share).about
            change |= shown_to_persons(criteria, exclusion_reasons)
            self._judgements.write(TopicChanged(topic=topic, change=change, person=""))

    # --- questions and answers ----------------------------------------------------------------------------------------

    def next(self, topic: str, person: str = "") -> Question | None:
        """Return the next question to a person; None if no document is left to ask the person about.

        Parameters
        ----------
        topic, person : str

        Returns
        -------
        Question or None
        """
        with self._lock:
            state, groups = self._judgements.topic(topic), self._judgements.groups
            shown = [asked.position for (name, who), asked in self._asked.items() if name == topic and who != person]
            choice = self._rankings.ask(state, self._assignment.open_to(groups, state, person, shown), person)
            if choice is None:
                self._asked.pop((topic, person), None)
                return None
            question = self._asked[topic, person] = self._question(state, choice, person)
            return question

    def next_of(self, topics: Iterable[str], person: str = "") -> Question | None:
        """Return the next question to a person who answers for several topics; None if no document is left for any.

        If the strategy of all the topics is "uncertain", the question is about the document that they are most
        uncertain about together: the one with the largest sum of ``1 / (1 + |score|)`` over the topics for which the
        person can be asked about it. Its `topics` are these, and its `topic` is the one whose score is closest to 0;
        answer for all of them, by `answer(..., others=...)`. Questions that a topic draws at random come first.

        If a topic has another strategy, the question is the next one of the first topic that still has a question.

        Parameters
        ----------
        topics : iterable of str
        person : str

        Returns
        -------
        Question or None

        Raises
        ------
        TextcatError
            If the session has no topic of one of these names.
        """
        with self._lock:
            states = [self._judgements.topic(topic) for topic in dict.fromkeys(topics)]
            if len(states) < 2 or any(state.query.name != "uncertain" for state in states):
                return next(filter(None, (self.next(state.name, person) for state in states)), None)
            names, groups = {state.name for state in states}, self._judgements.groups
            shown = [asked.position for (name, who), asked in self._asked.items() if name in names and who != person]
            is_open = [self._assignment.open_to(groups, state, person, shown) for state in states]
            for name in names:
                self._asked.pop((name, person), None)
            chosen = self._rankings.ask_over(states, is_open, person)
            if chosen is None:
                return None
            state, choice = chosen
            names_of_open = [other.name for other, mask in zip(states, is_open, strict=True) if mask[choice.position]]
            question = self._question(state, choice, person)._replace(topics=tuple(names_of_open))
            self._asked[state.name, person] = question
            return question

    def answer(
        self,
        topic: str,
        position: int,
        answer: str,
        person: str = "",
        source: str = "asked",
        note: str = "",
        *,
        exclusion_reason: str = "",
        others: Mapping[str, str] | None = None,
    ) -> None:
        """Record an answer, which is saved when this returns; it replaces the person's earlier answer on the document.

        Parameters
        ----------
        topic : str
        position : int
            Position of the document in the pool; the answer also applies to its near-duplicates.
        answer : {"yes", "no", "skip"}
        person : str
        source : {"asked", "search", "list", "adjudicated"}
            Where the person answered. "adjudicated" settles a disagreement: it overrides the persons' own answers.
        note : str
        exclusion_reason : str
            Why the document does not belong to the topic: any text, with the answer "no" only.
        others : dict of str to str, optional
            Answers on the same document for other topics.

        Raises
        ------
        TextcatError
            If there is no such topic, document, answer or source, an exclusion reason is too long or comes with another
            answer than "no", or the journal cannot be written.
        """
        answer_of = {topic: answer, **(others or {})}
        with self._lock:
            check_answers(answer_of.values(), source)
            exclusion_reason = checked_exclusion_reason(exclusion_reason, answer)
            for name in answer_of:
                self._judgements.topic(name)
            position = self._pool.checked(position)
            question = self._asked.get((topic, person))
            if source == "asked" and (question is None or question.position != position):
                question = self.next(topic, person)  # the same question as before, if the session was opened again
            if source != "asked" or question is None or question.position != position:
                question = None
            answers = [
                self._entry(name, position, answer_of[name], source, note, question if name == topic else None)
                for name in answer_of
            ]
            if exclusion_reason:
                answers[0] = replace(answers[0], exclusion_reason=exclusion_reason)
            self._judgements.write(Answered(person=person, answers=answers))
            self._asked.pop((topic, person), None)

    def set_keyword(self, topic: str, term: str, speaks_for: bool | None, person: str = "") -> None:
        """Add or remove a keyword: one or several words used as a short training example for or against a topic.

        TextcatError is raised if no document has any of these words.

        Parameters
        ----------
        topic, term : str
        speaks_for : bool or None
            Whether the keyword is evidence for the topic (True) or against it (False); None removes the keyword.
        person : str
        """
        with self._lock:
            self._judgements.topic(topic)
            term = " ".join(term.split())
            if not self._pool.rows_of([term]).nnz:
                raise TextcatError(f"No term of the documents is in {term!r}: give keywords that the documents have.")
            self._judgements.write(KeywordSet(topic=topic, keyword=term, speaks_for=speaks_for, person=person))

    def split(self, positions: Iterable[int], person: str = "") -> None:
        """Split records off from their group of near-duplicates into a group of their own.

        Earlier answers apply to the group that then has their document. TextcatError is raised if the records are not
        of one group, or are the whole group.

        Parameters
        ----------
        positions : iterable of int
            Positions of the records in the pool.
        person : str
        """
        with self._lock:
            part = sorted({self._pool.checked(position) for position in positions})
            groups = {self._judgements.groups.of(position) for position in part}
            if len(groups) != 1 or len(part) == self._judgements.groups.size_of(part[0]):
                which = ", ".join(map(str, part[:5])) or "none"
                raise TextcatError(
                    f"The records at {which} cannot be split off: give some, but not all, of one group of duplicates."
                )
            ids = [self._pool.ids[position] for position in part]
            self._judgements.write(Split(split=part, ids=ids, person=person))
            self._asked.clear()  # pending questions were about other groups

    def undo(self, person: str = "") -> list[Judgement] | None:
        """Undo a person's last answer, keyword or split of near-duplicates; return None if there is nothing to undo.

        Otherwise return the judgements that were undone: one for each topic that was answered at the same time, or an
        empty list if a keyword or a split was undone.
        """
        with self._lock:
            last = self._judgements.last_of(person)
            if last is None:
                return None
            self._judgements.write(Undone(undo=last.step, person=person))
            if isinstance(last, Split):
                self._asked.clear()
            return list(judgements_of(last))

    def _question(self, state: TopicState, choice: Choice, person: str) -> Question:
        position, pool, groups = choice.position, self._pool, self._judgements.groups
        group = groups.of(position)
        return Question(
            state.name,
            position,
            pool.ids[position],
            pool.document(position),
            choice.rank,
            choice.score,
            choice.reason,
            state.n_answers(),
            tuple(pool.ids[member] for member in groups.members(position) if member != position),
            state.n_changes,
            {
                name: other.own_answer(group, person)
                for name, other in self._judgements.topics.items()
                if name != state.name
            },
            pool.fields(position),
            (state.name,),
        )

    def _entry(
        self, topic: str, position: int, answer: str, source: str, note: str = "", question: Question | None = None
    ) -> JournalAnswer:
        """Return the journal's record of an answer, with the document's rank and score, and the ranking's number.

        `question` is the question that the person answers; None if the person was not asked about the document. The
        record has the rank and score of the question. Without a question, it has the rank and score by the latest
        model, or none if there is no model yet.
        """
        given = JournalAnswer(topic, position, self._pool.ids[position], answer, source, note)
        if question is not None:
            why, score = question.why.value, question.score
            return replace(given, why=why, model=question.model, rank=question.rank, score=score)
        if ranking := self._rankings.latest(topic):
            groups = self._judgements.groups
            group = groups.of(position)
            rank = ranking.rank_of(group, unjudged(groups, self._judgements.topic(topic)))
            return replace(given, model=ranking.model, rank=rank, score=float(ranking.scores[group]))
        return given


def _position_of(pool: Pool, id: str) -> int:
    try:
        return pool.position_of(id)
    except PoolError as error:
        raise TextcatError(f"No document has the id {id!r}: give an id that the archive has.") from error


def _header(
    pool: Pool, folder: Path | None = None, seed: int = 0, overlap: float = 1.0, settings: RankerSettings | None = None
) -> SessionHeader:
    """Return the header of a new journal; for the parameters, see `Session.create`."""
    path = ""
    if pool.folder is not None:
        place = resolved(pool.folder)
        path = str(place) if folder is None else os.path.relpath(place, resolved(folder))
    return SessionHeader(path, len(pool), _checksum_of_pool(pool), seed, overlap, settings or pool.recipe.ranker)


def _check_pool(pool: Pool, journal: SessionJournal) -> None:
    """Raise TextcatError if a journal was started with other documents."""
    header, refusal = journal.header, f"The documents are not those that the session {journal.folder} was started with"
    if (header.documents, header.sum) != (len(pool), _checksum_of_pool(pool)):
        raise TextcatError(f"{refusal} ({header.documents:,}, now {len(pool):,}): start a new one in another folder.")
    for answer in chain.from_iterable(map(answers_of, journal.steps)):
        if not 0 <= answer.position < len(pool) or pool.ids[answer.position] != answer.id:
            raise TextcatError(
                f"{refusal}: {answer.id!r} is not at position {answer.position}. Start a new one in another folder."
            )


def _checksum_of_pool(pool: Pool) -> int | str:
    """Return a checksum that identifies a pool; in memory, it is made of the numbers of terms and some ids."""
    if pool.sum:
        return pool.sum
    n = len(pool)
    some_ids = [pool.ids[i] for i in range(0, n, max(1, n // 64))]
    ends = np.ascontiguousarray(np.asarray(pool.rows.indptr), np.int64)
    return zlib.crc32("\n".join(map(str, some_ids)).encode("utf-8", "surrogatepass"), zlib.crc32(ends.data))
