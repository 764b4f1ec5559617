"""Teach topics over a pool by active learning: ask about a document, record the answer, rank all documents again."""

from __future__ import annotations

import os
import threading
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from textcat.base.disk import expanded
from textcat.base.errors import TextcatError
from textcat.recipes.recipe import RankerSettings
from textcat.teaching import entries, export, progress, rankings, screening, search
from textcat.teaching.advice import KnownBand
from textcat.teaching.assignment import Assignment
from textcat.teaching.entries import check_answers, checked_exclusion_reason, entry_of_answer
from textcat.teaching.journal import SessionJournal
from textcat.teaching.judgements import Agreement, Judgement, Judgements, TopicState, judgements_of
from textcat.teaching.loop import Choice
from textcat.teaching.pool import Pool, open_pool
from textcat.teaching.pool.duplicates import Groups
from textcat.teaching.query import QueryStrategy, Reason
from textcat.teaching.ranker import Ranker
from textcat.teaching.rankings import checked_position
from textcat.teaching.stopping import Estimate, Stopper

if TYPE_CHECKING:
    pass

#: The strategy of new topics: some questions are drawn at random, so that recall can be estimated.
QUERY = QueryStrategy("highest", random=0.05)
#: When to stop, unless a session is told otherwise.
STOPPER = Stopper()


class Question(NamedTuple):
    """A question to a person: the document to judge next, and why it was chosen."""

    topic: str
    position: int
    id: str
    zones: dict[str, str]
    rank: int  # among the documents not judged yet, from 1
    score: float
    why: Reason
    n_answers: int  # on the topic, so far
    duplicates: tuple[str, ...]  # ids of its near-duplicates, which get the same answer
    model: int  # number of the model: how many changes to the topic its ranking includes
    answers: dict[str, str]  # the person's own answers on the document for other topics
    fields: dict[str, Any]  # of its record, such as authors and year


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
        A ranker of the pool's rows; by default one with the settings in the journal.
    query : QueryStrategy
        The strategy of new topics for which no other is given.
    stopper : Stopper
        Estimates recall, and tells when to stop.
    journal : SessionJournal, optional
        By default a new one in memory.
    """

    def __init__(
        self,
        pool: Pool,
        *,
        ranker: Ranker | None = None,
        query: QueryStrategy = QUERY,
        stopper: Stopper = STOPPER,
        journal: SessionJournal | None = None,
    ):
        self.pool, self.query, self.stopper = pool, query, stopper
        self.journal = journal or SessionJournal.create(None, _header(pool))
        _check_pool(pool, self.journal)
        self.seed = int(self.journal.header["seed"])
        self.groups = Groups(pool.groups)
        self.rankings = rankings.Rankings(pool, ranker or _ranker(pool, self.journal), self.folder, self.seed)
        self.searcher = search.Searcher(pool, self.groups, self.rankings.rows_of)
        self.assignment = Assignment(self.groups, self.seed, float(self.journal.header["overlap"]))
        self._asked: dict[tuple[str, str], Question] = {}
        self.bands: dict[tuple[str, Stopper], KnownBand] = {}
        self.estimates: dict[tuple[str, int, Stopper], Estimate] = {}
        self.lock = threading.RLock()  # held while answers and rankings are read or changed
        self.current = Judgements(self.journal, self.groups)  # the current answers, by all lines of the journal

    @classmethod
    def create(
        cls,
        folder: str | os.PathLike[str] | None,
        pool: Pool,
        *,
        seed: int = 0,
        overlap: float = 1.0,
        settings: RankerSettings | None = None,
        **parts: Any,
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
        **parts
            The parameters `query` and `stopper` of `Session`.

        Returns
        -------
        Session
        """
        if not 0 <= overlap <= 1:
            raise TextcatError(f"The share of documents that everybody is shown cannot be {overlap}: give 0 to 1.")
        if settings and settings.embeddings:
            pool.embeddings()  # fails, if it does, before anything is written
        path = None if folder is None else expanded(folder)
        journal = SessionJournal.create(path, _header(pool, path, seed, overlap, settings))
        with journal.closing_on_error():
            return cls(pool, journal=journal, **parts)

    @classmethod
    def open(
        cls, folder: str | os.PathLike[str], pool: Pool | None = None, *, read_only: bool = False, **parts: Any
    ) -> Session:
        """Open a session again; raise TextcatError if it is damaged, open in another process, or its pool has changed.

        Parameters
        ----------
        folder : path
        pool : Pool, optional
            By default the one on disk that the session was started with.
        read_only : bool, default=False
            Open the session only for reading, which is possible while another process has it open.
        **parts
            The parameters `query` and `stopper` of `Session`.

        Returns
        -------
        Session
        """
        path = expanded(folder)
        journal = SessionJournal.open(path, read_only=read_only)
        with journal.closing_on_error():
            if pool is None and not journal.header["pool"]:
                raise TextcatError(f"The session {path} was started with a pool in memory: give that pool, too.")
            return cls(pool or open_pool(path / journal.header["pool"]), journal=journal, **parts)

    def close(self) -> None:
        """Close the journal, so that other processes can open the session."""
        with self.lock:
            self.journal.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    @property
    def folder(self) -> Path | None:
        """The folder of the journal; None if the session is in memory."""
        return self.journal.folder

    @property
    def tag(self) -> str:
        """A checksum of the session's folder and of the journal's header, which identifies the session."""
        facts = self.folder and str(self.folder.resolve()), sorted(self.journal.header.items())
        return f"{zlib.crc32(repr(facts).encode('utf-8', 'surrogateescape')):08x}"

    # --- topics -------------------------------------------------------------------------------------------------------

    def topics(self) -> list[str]:
        """Return the names of the topics, in the order in which they were added."""
        with self.lock:
            return list(self.current.topics)

    def chosen_topics(self, topics: Iterable[str] | None = None) -> list[str]:
        """Return the given topics without repetitions; by default, return all topics of the session.

        Raise TextcatError if the session has no topic at all, or lacks one of the given topics.
        """
        chosen = self.topics() if topics is None else list(dict.fromkeys(topics))
        if not chosen:
            raise TextcatError("The session has no topic: add one first.")
        for topic in chosen:
            self.topic_state(topic)
        return chosen

    def topic_state(self, name: str) -> TopicState:
        """Return a topic's answers, texts and settings; raise TextcatError if there is no such topic."""
        return self.current.topic(name)

    def about(self, topic: str) -> dict[str, Any]:
        """Return a topic's texts and settings by name: description, query, examples, criteria, strategy and so on."""
        state = self.topic_state(topic)
        return {**state.about, "examples": state.examples()}

    add_topic = entries.add_topic
    change_topic = entries.change_topic

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
        with self.lock:
            state = self.topic_state(topic)
            shown = [asked.position for (name, who), asked in self._asked.items() if name == topic and who != person]
            choice = self.rankings.ask(state, self.assignment.open_to(state, person, shown), person)
            if choice is None:
                self._asked.pop((topic, person), None)
                return None
            question = self._asked[topic, person] = _question(self, state, choice, person)
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
            Position of the document in the pool; the answer counts for its near-duplicates, too.
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
        with self.lock:
            check_answers(answer_of.values(), source)
            exclusion_reason = checked_exclusion_reason(exclusion_reason, answer)
            for name in answer_of:
                self.topic_state(name)
            position = checked_position(self.pool, position)
            question = self._asked.get((topic, person))
            if source == "asked" and (question is None or question.position != position):
                question = self.next(topic, person)  # the same one as before, if the session was opened again
            if source != "asked" or question is None or question.position != position:
                question = None
            answers = [
                entry_of_answer(
                    self, name, position, answer_of[name], source, note, question if name == topic else None
                )
                for name in answer_of
            ]
            if exclusion_reason:
                answers[0]["exclusion_reason"] = exclusion_reason
            self.current.write({"person": person, "answers": answers})
            self._asked.pop((topic, person), None)

    def set_keyword(self, topic: str, term: str, speaks_for: bool | None, person: str = "") -> None:
        """Add or remove a keyword: one or several words that are a short training example for or against a topic.

        TextcatError is raised if no document has any of these words.

        Parameters
        ----------
        topic, term : str
        speaks_for : bool or None
            Whether the keyword speaks for the topic (True) or against it (False); None removes the keyword.
        person : str
        """
        with self.lock:
            self.topic_state(topic)
            term = " ".join(term.split())
            if not self.rankings.rows_of([term]).nnz:
                raise TextcatError(f"No term of the documents is in {term!r}: give keywords that the documents have.")
            self.current.write({"topic": topic, "keyword": term, "speaks_for": speaks_for, "person": person})

    def split(self, positions: Iterable[int], person: str = "") -> None:
        """Split records off from their group of near-duplicates: from now on, they are a group of their own.

        Earlier answers count for the part that has their document. TextcatError is raised if the records are not of
        one group, or are all of it.

        Parameters
        ----------
        positions : iterable of int
            Positions of the records in the pool.
        person : str
        """
        with self.lock:
            part = sorted({checked_position(self.pool, position) for position in positions})
            groups = {self.groups.of(position) for position in part}
            if len(groups) != 1 or len(part) == self.groups.size_of(part[0]):
                which = ", ".join(map(str, part[:5])) or "none"
                raise TextcatError(
                    f"The records at {which} cannot be split off: give some, but not all, of one group of duplicates."
                )
            ids = [self.pool.ids[position] for position in part]
            self.current.write({"split": part, "ids": ids, "person": person})
            self._forget_groups()

    def _forget_groups(self) -> None:
        """Forget what was made with other groups of near-duplicates."""
        self._asked.clear()
        self.bands.clear()
        self.searcher.forget()

    def keywords(self, topic: str) -> dict[str, bool]:
        """Return the keywords of a topic: True if a keyword speaks for the topic, False if against it."""
        return self.topic_state(topic).keywords()

    def undo(self, person: str = "") -> list[Judgement] | None:
        """Undo a person's last answer, keyword or split; return None if there is nothing to undo.

        Otherwise return the judgements that were undone: one for each topic that was answered at the same time, or an
        empty list if a keyword or a split was undone.
        """
        with self.lock:
            line = self.current.last_of(person)
            if line is None:
                return None
            self.current.write({"undo": line["step"], "person": person})
            if "split" in line:
                self._forget_groups()
            return list(judgements_of(line))

    search = search.search
    evidence = rankings.evidence
    terms = rankings.terms
    history = progress.history
    estimate = progress.estimate
    progress = progress.progress

    def judgements(self, topic: str) -> list[Judgement]:
        """Return the current answers on a topic in the order in which they were given.

        There is one per person and group of near-duplicates, and one per adjudicated group.
        """
        with self.lock:
            return self.topic_state(topic).judgements()

    def labels(self, topic: str) -> dict[int, bool]:
        """Return the labels for a topic (True: yes) by the documents' positions.

        Near-duplicates of judged documents are included.
        """
        with self.lock:
            labels = self.topic_state(topic).labels
            return dict(sorted((i, label) for group, label in labels.items() for i in self.groups.members(group)))

    def agreement(self, topic: str) -> Agreement:
        """Return the agreement of persons on a topic, and the disagreements that nobody has adjudicated."""
        with self.lock:
            return self.topic_state(topic).agreement()

    def scores(self, topic: str) -> np.ndarray:
        """Return the scores of all documents by a ranking that includes all answers: shape (n_documents,), float32."""
        with self.lock:
            return self.rankings.of(self.topic_state(topic)).scores

    screening_counts = screening.screening_counts

    export_duplicates = export.write_duplicates
    export_records = export.write_records
    export_labels = export.write_labels
    export_included = export.write_included
    export_counts = screening.write_counts
    export_corpus = export.write_corpus
    export_model = export.write_model
    export_audit = export.write_audit


def _question(session: Session, state: TopicState, choice: Choice, person: str) -> Question:
    position, pool = choice.position, session.pool
    group = session.groups.of(position)
    return Question(
        state.name,
        position,
        pool.ids[position],
        pool.document(position),
        choice.rank,
        choice.score,
        choice.reason,
        state.n_answers(),
        tuple(pool.ids[member] for member in session.groups.members(position) if member != position),
        state.n_changes,
        {
            topic: session.topic_state(topic).own_answer(group, person)
            for topic in session.topics()
            if topic != state.name
        },
        pool.fields(position),
    )


def _ranker(pool: Pool, journal: SessionJournal) -> Ranker:
    """Return a ranker with the settings in the journal's header; raise TextcatError if the header has unknown ones."""
    try:
        settings = RankerSettings(**journal.header["ranker"])
    except TypeError as error:
        raise TextcatError(
            f"The session {journal.folder} was started by another version of textcat: start a new one."
        ) from error
    embeddings = pool.embeddings() if settings.embeddings else None
    return Ranker(pool.rows, embeddings=embeddings, settings=settings, seed=int(journal.header["seed"]))


def _header(
    pool: Pool,
    folder: Path | None = None,
    seed: int = 0,
    overlap: float = 1.0,
    settings: RankerSettings | None = None,
) -> dict[str, Any]:
    """Return the entries for the header of a new journal: facts about the pool, and the session's settings."""
    path = ""
    if pool.folder is not None:
        resolved = pool.folder.resolve()
        path = str(resolved) if folder is None else os.path.relpath(resolved, folder.resolve())
    facts = {"pool": path, "documents": len(pool), "sum": _sum_of(pool), "seed": seed, "overlap": overlap}
    return facts | {"ranker": asdict(settings or pool.recipe.make_ranker())}


def _check_pool(pool: Pool, journal: SessionJournal) -> None:
    """Raise TextcatError if a journal was started with other documents."""
    header, refusal = journal.header, f"The documents are not those that the session {journal.folder} was started with"
    if (header["documents"], header["sum"]) != (len(pool), _sum_of(pool)):
        raise TextcatError(
            f"{refusal} ({header['documents']:,}, now {len(pool):,}): start a new one in another folder."
        )
    for line in journal.lines:
        for answer in line.get("answers", ()):
            position, id = answer["position"], answer["id"]
            if not 0 <= position < len(pool) or pool.ids[position] != id:
                raise TextcatError(
                    f"{refusal}: {id!r} is not at position {position}. Start a new one in another folder."
                )


def _sum_of(pool: Pool) -> int | str:
    """Return a checksum that identifies a pool; for a pool in memory, it is made of the rows' lengths and some ids."""
    if pool.sum:
        return pool.sum
    n = len(pool)
    some_ids = [pool.ids[i] for i in range(0, n, max(1, n // 64))]
    ends = np.ascontiguousarray(np.asarray(pool.rows.indptr), np.int64)
    return zlib.crc32("\n".join(map(str, some_ids)).encode("utf-8", "surrogatepass"), zlib.crc32(ends.data))
