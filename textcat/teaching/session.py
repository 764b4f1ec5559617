"""Teach topics over a pool by active learning: ask about a document, record the answer, rank all documents again."""

from __future__ import annotations

import os
import threading
import time
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import vstack

from textcat.documents import Document
from textcat.errors import TextcatError, did_you_mean
from textcat.recipe import RankerSettings
from textcat.teaching import export, prior
from textcat.teaching.descriptions import Descriptions
from textcat.teaching.journal import SessionJournal
from textcat.teaching.judgements import ANSWERS, LONGEST_NAME, SOURCES, Agreement, Judgement, Judgements, TopicState
from textcat.teaching.pool import Pool, open_pool
from textcat.teaching.progress import Progress, history_of, progress_of
from textcat.teaching.ranker import Examples, Ranker, Weights
from textcat.teaching.stopping import DEFAULT_RULE, Estimate, History, estimate
from textcat.teaching.strategies import STRATEGIES, choose

if TYPE_CHECKING:
    from textcat.model.explain import Explanation
    from textcat.model.tagger import Tagger

DEFAULT_STRATEGY = "highest"
RANDOM_SHARE = 0.05  # of the questions are drawn at random, so that recall can be estimated
_EVIDENCE = 30  # terms


class Question(NamedTuple):
    """The document to judge next, and why it was chosen."""

    topic: str
    position: int
    id: str
    zones: dict[str, str]
    rank: int  # among the documents not judged yet, from 1
    score: float
    why: str  # "highest score", "uncertain" or "at random"
    n_answers: int  # on the topic, so far
    duplicates: tuple[str, ...]  # ids of its near-duplicates, which get the same answer
    model: int  # number of changes to the topic that the ranking includes
    answers: dict[str, str]  # the person's own answers on the document for other topics


class Found(NamedTuple):
    """A document that a search has found."""

    position: int
    id: str
    zones: dict[str, str]
    score: float  # the cosine of its row and the query's
    answer: str  # the person's own for the topic, "" if there is none
    label: bool | None  # the result of all persons' answers


class SearchResults(NamedTuple):
    """A page of search results, the most similar first."""

    n_found: int
    documents: list[Found]


class _Ranking(NamedTuple):
    model: int
    weights: Weights
    scores: np.ndarray


class Session:
    """A pool, topics, and a journal of judgements; made by `create` or `open`, for any number of persons and threads.

    `next` uses a ranking that includes all answers; it is computed when it is first needed. It depends only on the
    pool, the settings, the seed and the judgements that were not undone or replaced: a session that is opened again
    asks the same question with the same scores, to the bit.

    Parameters
    ----------
    pool : Pool
    journal : SessionJournal
    """

    def __init__(self, pool: Pool, journal: SessionJournal):
        self.pool, self.journal = pool, journal
        self.seed = int(journal.header["seed"])
        self.overlap = float(journal.header["overlap"])
        try:
            settings = RankerSettings(**journal.header["ranker"])
        except TypeError as error:
            raise TextcatError(
                f"The session {journal.folder} was started by another version of textcat: start a new one."
            ) from error
        self._groups = np.asarray(pool.groups)
        self._firsts = self._groups == np.arange(len(pool), dtype=self._groups.dtype)
        self._sizes = np.bincount(self._groups, minlength=len(pool)).astype(np.int32)
        self._n_groups = int(self._firsts.sum())
        embeddings = pool.embeddings() if settings.embeddings else None
        self._ranker = Ranker(pool.rows, embeddings=embeddings, settings=settings, seed=self.seed)
        self._descriptions = Descriptions(pool.features)
        self._rankings: dict[str, _Ranking] = {}
        self._priors: dict[str, Weights] = {}
        self._asked: dict[tuple[str, str], Question] = {}
        self._estimates: dict[tuple[Any, ...], Estimate] = {}
        self._found: tuple[str, np.ndarray, np.ndarray] | None = None  # the last query, what it found, and the scores
        self.lock = threading.RLock()  # of what changes
        self._texts = threading.Lock()  # of what turns texts into terms; who holds it waits for nothing else
        for line in journal.lines:
            self._check(line)
        self._replay()

    @classmethod
    def create(
        cls,
        folder: str | os.PathLike[str] | None,
        pool: Pool,
        *,
        seed: int = 0,
        overlap: float = 1.0,
        settings: RankerSettings | None = None,
    ) -> Session:
        """Start a session.

        Parameters
        ----------
        folder : path or None
            For the journal; it may be the folder of the pool. None: nothing is saved.
        pool : Pool
        seed : int, default=0
            Of the questions that are drawn at random.
        overlap : float, default=1.0
            The share of documents that each person is asked about, whatever others have answered; for the rest one
            answer is enough. 1: persons judge independently of each other; 0: they share the work.
        settings : RankerSettings, optional
            How documents are ranked; by default as the pool's recipe says.

        Returns
        -------
        Session

        Raises
        ------
        TextcatError
            If the folder already has a session, or cannot be written to.
        """
        if not 0 <= overlap <= 1:
            raise TextcatError(f"The share of documents that everybody is shown cannot be {overlap}: give 0 to 1.")
        if settings and settings.embeddings:
            pool.embeddings()  # fails, if it does, before anything is written
        place = None if folder is None else Path(folder).expanduser()
        header = {
            "pool": _path_from(place, pool.folder),
            "documents": len(pool),
            "sum": _sum_of(pool),
            "seed": seed,
            "overlap": overlap,
            "ranker": asdict(settings or pool.recipe.make_ranker()),
        }
        journal = SessionJournal.create(place, header)
        return cls._with(pool, journal)

    @classmethod
    def open(cls, folder: str | os.PathLike[str], pool: Pool | None = None, *, read_only: bool = False) -> Session:
        """Open a session again.

        Parameters
        ----------
        folder : path
        pool : Pool, optional
            By default the one on disk that the session was started with.
        read_only : bool, default=False
            Only read, also while another process has the session open.

        Returns
        -------
        Session

        Raises
        ------
        TextcatError
            If the folder has no session, it is damaged or open in another process, or its pool has changed.
        """
        place = Path(folder).expanduser()
        journal = SessionJournal.open(place, read_only=read_only)
        try:
            if pool is None:
                if not journal.header["pool"]:
                    raise TextcatError(f"The session {place} was started with a pool in memory: give that pool, too.")
                pool = open_pool(place / journal.header["pool"])
        except BaseException:
            journal.close()
            raise
        return cls._with(pool, journal)

    @classmethod
    def _with(cls, pool: Pool, journal: SessionJournal) -> Session:
        try:
            header = journal.header
            if (header["documents"], header["sum"]) != (len(pool), _sum_of(pool)):
                raise TextcatError(
                    f"The documents are not those that the session {journal.folder} was started with "
                    f"({header['documents']:,}, now {len(pool):,}): start a new one in another folder."
                )
            return cls(pool, journal)
        except BaseException:
            journal.close()
            raise

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
        """The folder of the journal; None in memory."""
        return self.journal.folder

    @property
    def tag(self) -> str:
        """Identifies the session: a checksum of its folder and of the journal's header."""
        known = self.folder and str(self.folder.resolve()), sorted(self.journal.header.items())
        return f"{zlib.crc32(repr(known).encode('utf-8', 'surrogateescape')):08x}"

    # --- topics -------------------------------------------------------------------------------------------------------

    def topics(self) -> list[str]:
        """Return the names of the topics, in the order in which they were added."""
        return list(self._judgements.topics)

    def about(self, topic: str) -> dict[str, Any]:
        """Return what a topic was started with, its strategy, and its share of random questions."""
        state = self.topic_state(topic)
        given = (each for of_group in state.answers.values() for every in of_group.values() for each in every)
        return {**state.about, "examples": tuple(each.id for each in given if each.source == "example")}

    def add_topic(
        self,
        name: str,
        description: str = "",
        query: str = "",
        examples: Iterable[str] = (),
        model: tuple[Tagger | str | os.PathLike[str], str] | None = None,
        *,
        strategy: str = DEFAULT_STRATEGY,
        random: float = RANDOM_SHARE,
        person: str = "",
    ) -> None:
        """Add a topic, and say what it is about; everything given is used as evidence.

        Parameters
        ----------
        name : str
            Its words are evidence, too.
        description, query : str
            In words.
        examples : iterable of str
            Ids of documents that belong to it: they are answered with yes.
        model : (tagger or its folder, topic), optional
            Start with a model's weights for a topic, matched to the pool's terms by name.
        strategy : str
            One of `textcat.teaching.strategies.STRATEGIES`: which documents are asked about.
        random : float
            The share of questions that are drawn at random; some estimates of recall need them.
        person : str
            Who gives the examples.

        Raises
        ------
        TextcatError
            If the topic exists already, there is no such document or strategy, or the model shares no term with the
            pool.
        """
        with self.lock:
            if not name.strip():
                raise TextcatError("A topic needs a name: give one.")
            if len(name) > LONGEST_NAME:
                raise TextcatError(
                    f"The name of the topic {name:.20}… has {len(name):,} characters, and {LONGEST_NAME} are the most: "
                    "move the rest to its description."
                )
            if name in self._judgements.topics:
                raise TextcatError(f"The session has a topic {name!r} already: resume it, or give another name.")
            about: dict[str, Any] = {"description": description, "query": query}
            about |= checked_choice(strategy, random)
            positions = [self._position_of(id) for id in dict.fromkeys(examples)]
            if model is not None:
                about["model"] = prior.keep(self.pool, self.folder, *model, number=len(self._judgements.topics) + 1)
            answers = [self._entry(name, position, "yes", "example") for position in positions]
            self.write_entry({"topic": name, "about": about, "person": person, "answers": answers})

    def choose_by(self, topic: str, strategy: str | None = None, random: float | None = None) -> None:
        """Use another strategy from now on, or another share of random questions.

        Parameters
        ----------
        topic : str
        strategy, random
            As for `add_topic`; None: unchanged.
        """
        with self.lock:
            about = self.topic_state(topic).about
            chosen = strategy or about["strategy"], about["random"] if random is None else random
            self.write_entry({"topic": topic, "change": checked_choice(*chosen), "person": ""})

    # --- questions and answers ----------------------------------------------------------------------------------------

    def next(self, topic: str, person: str = "") -> Question | None:
        """Return the next question to a person; None if no document is left to ask about.

        Parameters
        ----------
        topic, person : str

        Returns
        -------
        Question or None
        """
        with self.lock:
            state, open_ = self.topic_state(topic), self._open(topic, person)
            ranking, n_answers = self._ranking(topic), state.n_answers()
            strategy = f"{state.about['strategy']}:{state.about['random']}"
            chosen = choose(ranking.scores, open_, n_answers, strategy, (self.seed, topic, person))
            if chosen is None:
                self._asked.pop((topic, person), None)
                return None
            position, why = chosen
            score = ranking.scores[position]
            question = Question(
                topic,
                position,
                self.pool.ids[position],
                self.pool.document(position),
                1 + int(np.count_nonzero((ranking.scores > score) & open_)),
                float(score),
                why,
                n_answers,
                tuple(self.pool.ids[i] for i in self.members(position) if i != position),
                ranking.model,
                {other: self.own_answer(other, position, person) for other in self.topics() if other != topic},
            )
            self._asked[topic, person] = question
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
        others: Mapping[str, str] | None = None,
    ) -> None:
        """Record an answer; when this returns, it is on disk. It replaces the person's earlier answer on the document.

        Parameters
        ----------
        topic : str
        position : int
            The document; the answer counts for its near-duplicates, too.
        answer : {"yes", "no", "skip"}
        person : str
        source : {"asked", "search", "list", "adjudicated"}
            Where the document was answered. An answer that adjudicates a disagreement overrides persons' own answers.
        note : str
        others : dict of str to str, optional
            Answers on the same document for other topics.

        Raises
        ------
        TextcatError
            If there is no such topic, document, answer or source, or the disk fails.
        """
        if source not in SOURCES or source == "example":
            raise TextcatError(f"No source {source!r} of an answer: choose one of asked, search, list and adjudicated.")
        with self.lock:
            given = {topic: answer, **(others or {})}
            for each in given.values():
                if each not in ANSWERS or (source == "adjudicated" and each == "skip"):
                    raise TextcatError(
                        f"No answer {each!r}: choose one of {', '.join(ANSWERS)}; skip adjudicates nothing."
                    )
            for each in given:
                self.topic_state(each)
            position = self._checked_position(position)
            asked = self._asked.get((topic, person))
            if source == "asked" and (asked is None or asked.position != position):
                asked = self.next(topic, person)  # the same question as before, if the session was opened again
            question = asked if source == "asked" and asked is not None and asked.position == position else None
            answers = [
                self._entry(name, position, each, source, note, question if name == topic else None)
                for name, each in given.items()
            ]
            self.write_entry({"person": person, "answers": answers})
            self._asked.pop((topic, person), None)

    def set_keyword(self, topic: str, term: str, speaks_for: bool | None, person: str = "") -> None:
        """Add a keyword, which speaks for or against a topic: a short example of this word, or these words, alone.

        Parameters
        ----------
        topic, term : str
        speaks_for : bool or None
            None removes the keyword.
        person : str

        Raises
        ------
        TextcatError
            If no document has the words.
        """
        with self.lock:
            self.topic_state(topic)
            term = " ".join(term.split())
            if not self.rows_of([term]).nnz:
                raise TextcatError(f"No term of the documents is in {term!r}: give keywords that the documents have.")
            self.write_entry({"topic": topic, "keyword": term, "speaks_for": speaks_for, "person": person})

    def keywords(self, topic: str) -> dict[str, bool]:
        """Return the keywords of a topic, and whether they speak for it."""
        return self.topic_state(topic).keywords()

    def undo(self, person: str = "") -> list[Judgement] | None:
        """Undo a person's last answer or keyword; return None if there is none.

        Parameters
        ----------
        person : str

        Returns
        -------
        list of Judgement or None
            What was undone: a judgement for each topic that was answered at the same time; none for a keyword.
        """
        from textcat.teaching.judgements import judgements_of

        with self.lock:
            line = self._judgements.last_of(person)
            if line is None:
                return None
            taken_back = list(judgements_of(line))
            self.write_entry({"undo": line["step"], "person": person})
            return taken_back

    # --- looking ------------------------------------------------------------------------------------------------------

    def search(
        self, query: str, topic: str | None = None, offset: int = 0, limit: int = 20, person: str = ""
    ) -> SearchResults:
        """Search documents by words, the most similar to the query first; a document with the query as its id leads.

        Parameters
        ----------
        query : str
        topic : str, optional
            Include the answers for this topic.
        offset, limit : int
            Which of the documents found are returned.
        person : str
            Whose own answers are included.

        Returns
        -------
        SearchResults
        """
        known = self._found
        if known is None or known[0] != query:
            scores = np.asarray(self.pool.rows @ self.rows_of([query]).toarray().ravel())
            found = np.flatnonzero(scores > 0)
            order = found[np.argsort(-scores[found], kind="stable")]
            if (named := self._named(query)) is not None:
                order = np.concatenate([[named], order[order != named]])
            known = self._found = query, order, scores
        _, order, scores = known
        documents = []
        with self.lock:
            state = None if topic is None else self.topic_state(topic)
            for position in order[max(offset, 0) : max(offset, 0) + limit].tolist():
                group = int(self._groups[position])
                own = "" if topic is None else self.own_answer(topic, position, person)
                label = None if state is None else state.labels.get(group)
                found_ = self.pool.ids[position], self.pool.document(position), float(scores[position]), own, label
                documents.append(Found(position, *found_))
            return SearchResults(len(order), documents)

    def evidence(self, topic: str, position: int, n: int = _EVIDENCE) -> Explanation:
        """Explain a document's score: the terms that are evidence for and against the topic, and where they occur.

        Parameters
        ----------
        topic : str
        position : int
        n : int, default=30
            How many terms; those that contribute most to the score.

        Returns
        -------
        Explanation
        """
        from textcat.model.explain import explain_document, explanation_in_words

        document = Document("", self.pool.document(self._checked_position(position)))
        tagger = self._tagger(topic, self._ranker.factors[position])
        with self._texts:
            explanation = explain_document(tagger, document, [topic], None)[0]
        features = self.pool.features
        own = tuple(f"{zone}:" for zone in document.zones) if features.zone_terms is True else features.zone_prefixes()
        return explanation_in_words(explanation, own, n)

    def terms(self, topic: str, n: int = 20) -> list[tuple[str, float]]:
        """Return the terms of largest weight for a topic, with their weights.

        Parameters
        ----------
        topic : str
        n : int, default=20

        Returns
        -------
        list of (str, float)
        """
        return self._tagger(topic).terms(topic, n)

    def judgements(self, topic: str) -> list[Judgement]:
        """Return the current answers on a topic, one per person and group of near-duplicates, in their order."""
        with self.lock:
            return self.topic_state(topic).judgements()

    def labels(self, topic: str) -> dict[int, bool]:
        """Return the label of each judged document of a topic, near-duplicates included."""
        with self.lock:
            labels = self.topic_state(topic).labels
            found = {i: label for group, label in labels.items() for i in self.members(group)}
            return dict(sorted(found.items()))

    def agreement(self, topic: str) -> Agreement:
        """Return how far persons agree on a topic, and the disagreements that nobody has adjudicated."""
        with self.lock:
            return self.topic_state(topic).agreement()

    def scores(self, topic: str) -> np.ndarray:
        """Return the scores of all documents by a ranking that includes all answers: shape (n_documents,), float32."""
        with self.lock:
            return self._ranking(topic).scores

    def history(self, topic: str) -> History:
        """Return the answers on a topic for stopping rules: one for each group of near-duplicates."""
        with self.lock:
            return history_of(self.topic_state(topic), self._n_groups)

    def estimate(
        self, topic: str, rule: str = DEFAULT_RULE, target: float = 0.95, confidence: float = 0.95
    ) -> Estimate:
        """Estimate the recall of a topic by a rule of `textcat.teaching.stopping`.

        Parameters
        ----------
        topic, rule : str
        target, confidence : float
            The recall that is wanted, and the confidence in it.

        Returns
        -------
        Estimate
        """
        with self.lock:
            key = topic, self.topic_state(topic).n_changes, rule, target, confidence
            if known := self._estimates.get(key):
                return known
            history = self.history(topic)
        found = estimate(history, rule, target, confidence)  # which may take long, while others answer
        with self.lock:
            self._estimates = {name: each for name, each in self._estimates.items() if name[:2] == key[:2]}
            self._estimates[key] = found
        return found

    def progress(
        self, topic: str, rule: str | None = DEFAULT_RULE, target: float = 0.95, confidence: float = 0.95
    ) -> Progress:
        """Return the progress of a topic: counts, the gain curve, the pace, and an estimate of recall.

        Parameters
        ----------
        topic : str
        rule, target, confidence
            As for `estimate`; without a rule, recall is not estimated.

        Returns
        -------
        Progress
        """
        estimated = None if rule is None else self.estimate(topic, rule, target, confidence)
        with self.lock:
            return progress_of(self.topic_state(topic), len(self.pool), self._n_groups, self._size_of, estimated)

    # --- exports ------------------------------------------------------------------------------------------------------

    export_labels = export.write_labels
    export_corpus = export.write_corpus
    export_model = export.write_model
    export_audit = export.write_audit

    # --- helpers ------------------------------------------------------------------------------------------------------

    def topic_state(self, name: str) -> TopicState:
        topics = self._judgements.topics
        if name not in topics:
            known = f"it has {', '.join(map(repr, topics))}" if topics else "add one first"
            raise TextcatError(f"The session has no topic {name!r}: {known}.{did_you_mean(name, topics)}")
        return topics[name]

    def write_entry(self, entry: Mapping[str, Any]) -> None:
        notes = (each["note"] for each in entry.get("answers", ()))
        for text in (entry.get("topic"), entry["person"], *entry.get("about", {}).values(), *notes):
            if isinstance(text, str) and not text.isascii() and text != text.encode("utf-8", "replace").decode():
                raise TextcatError(
                    f"{text!r:.80} is not valid Unicode, so pages and exports could not show it: write it again."
                )
        try:
            self._judgements.apply(self.journal.append({"at": round(time.time(), 3), **entry}))
        except BaseException:  # Ctrl-C may come between the two
            self._replay()
            raise

    def _replay(self) -> None:
        judgements = Judgements(lambda position: int(self._groups[position]))
        for line in self.journal.lines:
            judgements.apply(line)
        self._judgements = judgements

    def _entry(
        self,
        topic: str,
        position: int,
        answer: str,
        source: str,
        note: str = "",
        question: Question | None = None,
    ) -> dict[str, Any]:
        """Return the journal's entry of an answer on a topic, with the document's rank and score, and by which model.

        The model is the one that chose the document; if it was not asked about, the last one trained.
        """
        entry = {"topic": topic, "position": position, "id": self.pool.ids[position], "answer": answer}
        entry |= {"source": source, "note": note}
        if question is not None:
            return {**entry, **{name: getattr(question, name) for name in ("why", "model", "rank", "score")}}
        if ranking := self._rankings.get(topic):
            score = ranking.scores[self._groups[position]]
            rank = 1 + int(np.count_nonzero((ranking.scores > score) & self.unjudged(topic)))
            entry |= {"model": ranking.model, "rank": rank, "score": float(score)}
        return entry

    def _check(self, line: Mapping[str, Any]) -> None:
        """Raise TextcatError if the journal names a document that the pool does not have at its position."""
        for answer in line.get("answers", ()):
            position = answer["position"]
            if not 0 <= position < len(self.pool) or self.pool.ids[position] != answer["id"]:
                raise TextcatError(
                    f"The documents are not those that the session {self.folder} was started with: "
                    f"{answer['id']!r} is not at position {position}. Start a new one in another folder."
                )

    def _ranking(self, topic: str) -> _Ranking:
        state, known = self.topic_state(topic), self._rankings.get(topic)
        if known is not None and known.model == state.n_changes:
            return known
        positions = np.array(sorted(state.labels), np.int64)
        labels = np.array([1 if state.labels[i] else -1 for i in positions.tolist()], np.int8)
        if "model" in state.about and topic not in self._priors:
            self._priors[topic] = prior.read(self.folder, state.about["model"])
        weights = self._ranker.train(positions, labels, self._examples(state), self._priors.get(topic))
        scores = np.asarray(self._ranker.scores(weights))
        ranking = self._rankings[topic] = _Ranking(state.n_changes, weights, scores)
        return ranking

    def _examples(self, state: TopicState) -> Examples | None:
        """Return the examples of a topic that are no documents: its name, description and query, and keywords."""
        about = " ".join(filter(None, [name_in_words(state.name), state.about["description"]]))
        described = [text for text in (about, state.about["query"]) if text.strip()]
        keywords = state.keywords()
        with self._texts:
            described_rows = self._descriptions.rows(described)
        rows = vstack([described_rows, *(self.rows_of([term]) for term in keywords)], "csr", np.float32)
        known = np.flatnonzero(np.diff(rows.indptr) > 0)
        if not len(known):
            return None
        sides = [1] * len(described) + [1 if speaks_for else -1 for speaks_for in keywords.values()]
        return Examples(rows[known], np.array(sides, np.int8)[known], np.ones(len(known)))

    def rows_of(self, texts: list[str]) -> Any:
        """Return the rows of texts, as if each were title and body of a document."""
        with self._texts:
            return self.pool.features.transform([Document("", {"title": text, "body": text}) for text in texts])

    def _tagger(self, topic: str, factor: float = 1) -> Tagger:
        """Return the ranker of a topic as a tagger, its weights multiplied by a document's factor (for its length)."""
        from textcat.model.tagger import Tagger

        with self.lock:
            weights, labels = self._ranking(topic).weights, self.topic_state(topic).labels.copy()
        w, bias = self._ranker.whole(weights, factor)
        return Tagger(
            features=self.pool.features,
            weights=w.reshape(-1, 1),
            bias=np.array([bias], np.float32),
            thresholds=np.zeros(1, np.float32),
            topics=(topic,),
            train_sizes=np.array([sum(labels.values())]),
            train_documents=len(labels),
        )

    def _open(self, topic: str, person: str) -> np.ndarray:
        """Return which documents a person can be asked about."""
        state = self.topic_state(topic)
        open_ = self._firsts.copy()
        open_[list(state.judged_by(person))] = False
        if self.overlap < 1:
            shared = [group for group in state.labels if not self._is_for_all(group)]
            open_[shared] = False
            others = [each.position for (name, who), each in self._asked.items() if name == topic and who != person]
            free = open_.copy()
            free[[i for i in others if not self._is_for_all(i)]] = False
            # What others have been shown and not answered yet is left to them, unless nothing else is open.
            open_ = free if free.any() else open_
        return open_

    def unjudged(self, topic: str) -> np.ndarray:
        open_ = self._firsts.copy()
        open_[list(self.topic_state(topic).labels)] = False
        return open_

    def _is_for_all(self, group: int) -> bool:
        """Return whether every person is to be asked about a document: drawn by its position alone."""
        return zlib.crc32(b"%d %d" % (self.seed, group)) < self.overlap * 2**32

    def own_answer(self, topic: str, position: int, person: str) -> str:
        given = self.topic_state(topic).standing(int(self._groups[position])).get(person)
        return given.answer if given else ""

    def members(self, position: int) -> list[int]:
        """Return the documents of a group of near-duplicates, the first one first."""
        group = int(self._groups[position])
        return [group] if self._size_of(group) == 1 else np.flatnonzero(self._groups == group).tolist()

    def _size_of(self, position: int) -> int:
        return int(self._sizes[self._groups[position]])

    def _checked_position(self, position: int) -> int:
        if not 0 <= position < len(self.pool):
            raise TextcatError(
                f"No document {position}: choose one of the session's {len(self.pool):,}, counted from 0."
            )
        return int(position)

    def _position_of(self, id: str) -> int:
        try:
            return int(self.pool.position_of(id))
        except (KeyError, ValueError) as error:
            raise TextcatError(f"No document has the id {id!r}: give an id that the archive has.") from error

    def _named(self, id: str) -> int | None:
        try:
            return int(self.pool.position_of(id))
        except (KeyError, ValueError, TextcatError):
            return None


def checked_choice(strategy: str, random: float) -> dict[str, Any]:
    if strategy not in STRATEGIES:
        raise TextcatError(f"No strategy {strategy!r}: choose one of {', '.join(STRATEGIES)}.")
    if not 0 <= random <= 1:
        raise TextcatError(f"The share of questions at random cannot be {random}: give 0 to 1.")
    return {"strategy": strategy, "random": random}


def name_in_words(name: str) -> str:
    """Return a topic's name as words: the tokenizer would take rec.sport.hockey for a web address."""
    from textcat.documents import SEPARATORS

    return SEPARATORS.sub(" ", name).strip()


def _path_from(folder: Path | None, pool: Path | None) -> str:
    if pool is None:
        return ""
    return str(pool.resolve()) if folder is None else os.path.relpath(pool.resolve(), folder.resolve())


def _sum_of(pool: Pool) -> int | str:
    """Return what identifies a pool; in memory, a checksum of the ends of its rows and of some ids."""
    if pool.sum:
        return pool.sum
    n = len(pool)
    some = [pool.ids[i] for i in range(0, n, max(1, n // 64))]
    ends = np.ascontiguousarray(np.asarray(pool.rows.indptr), np.int64)
    return zlib.crc32("\n".join(map(str, some)).encode("utf-8", "surrogatepass"), zlib.crc32(ends.data))
