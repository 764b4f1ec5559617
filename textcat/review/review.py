"""Show the documents of a tagged archive to people who judge the tags, and store their answers."""

import os
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from textcat.base.disk import expanded
from textcat.base.errors import TextcatError, first_of
from textcat.corpus.corrections import PLACE, ArchivePlace, Correction, Corrections, archive_place, corrections_of
from textcat.model.manifest import Manifest, read_manifest
from textcat.model.topic_names import topic_finder
from textcat.reading import Record
from textcat.reading.document import Document
from textcat.review.audit import AuditRow, audit_rows, present_tags
from textcat.review.queue import audited_tags, choose_documents, choose_sample, reviewed_tags
from textcat.runs.files import checksum_of_source, tagged_files
from textcat.runs.parts import warn_of_lacks
from textcat.tagging.origin import RunOrigin
from textcat.tagging.shards import TaggedDocument, find_documents, read_tags

if TYPE_CHECKING:
    from textcat.model.explain import Explanation
    from textcat.model.tagger import Tagger

MOST = 1000  # maximum number of documents in a queue


class ReviewTag(NamedTuple):
    """A tag of a document: its topic, its probability and status, and whether it is to be judged."""

    topic: str
    probability: float | None
    status: str | None
    is_asked: bool
    is_audited: bool  # it was drawn for the audit of automatic tags


class ReviewDocument(NamedTuple):
    """A document of the queue: its number from 0, its texts and fields, and its tags."""

    number: int
    document: Document  # its topics are the tags
    tags: tuple[ReviewTag, ...]
    model: str = ""  # the id of the model that tagged it; "" if none did

    @property
    def place(self) -> tuple[str, int]:
        """The source and position of the document, as in the archive's tags."""
        source, position, _ = ((self.document.fields or {})[name] for name in PLACE)
        return source, position

    @property
    def file(self) -> str:
        """The checksum of the document's file; "" if it is unknown."""
        return str((self.document.fields or {})[PLACE[2]])

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the document's record."""
        return {name: value for name, value in (self.document.fields or {}).items() if name not in PLACE}


class Undone(NamedTuple):
    """A correction that was retracted, and its document (None if it is not in the queue)."""

    correction: Correction
    document: ReviewDocument | None


class Review:
    """A queue of documents whose tags people judge; any number of people and threads may use it.

    The queue does not change while it is open. When it is opened again, answered documents are left out, unless people
    review independently.

    Parameters
    ----------
    folder : path
        A folder that `textcat tag --out` has written.
    corrections : path, optional
        The folder of answers; by default, the name of `folder` with ``-corrections`` added.
    most : int, default=1000
        Maximum number of documents in the queue.
    audit : float in [0, 1], default=0
        The share of automatic tags that is drawn at random for an audit.
    sample : int, default=0
        Draw up to this many documents of each month at random, to judge all their topics, instead of taking documents
        whose tags need review: see `choose_sample`. 0: no sample.
    places : collection of tuple of (str, int), optional
        The sources and positions of the documents of the queue, answered or not; by default, those with the largest
        gain: see `choose_documents`.
    independent : bool, default=False
        True: everybody judges every document, without seeing the answers of others. False: people share the work.
    progress : callable, optional
        Called with a sentence for each step that may take long.

    Raises
    ------
    TextcatError
        If the folder has no tags, or its documents cannot be read again.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        corrections: str | os.PathLike[str] | None = None,
        *,
        most: int = MOST,
        audit: float = 0.0,
        sample: int = 0,
        places: Collection[tuple[str, int]] | None = None,
        independent: bool = False,
        progress: Callable[[str], object] = lambda sentence: None,
    ) -> None:
        self.folder, self.independent, self.audit, self.sample = expanded(folder), independent, audit, sample
        if most < 1 or not 0 <= audit <= 1:
            raise TextcatError(f"A queue cannot have {most:,} documents and {audit:g} of the tags: give 1, and 0 to 1.")
        self._origin = RunOrigin.read(self.folder)
        self.corrections = Corrections(corrections_of(self.folder, corrections))
        self.topics = _Topics(self._origin)
        self._taggers: dict[Path, Tagger] = {}
        self._lock, self._loading = threading.RLock(), threading.Lock()
        self._answers: dict[tuple[str, str, str], list[Correction]] = {}
        self._keep_former_answers()
        self._shown: dict[str, int] = {}  # the document that each person is looking at, by number
        progress("reading the tags")
        if places is None:
            warn_of_lacks([self.folder])
            if sample:
                chosen = choose_sample(read_tags(self.folder), sample, most, self._is_done)
            else:
                chosen = choose_documents(read_tags(self.folder), most, audit, self._is_done)
            self.n_open = chosen.n_open
            numbers = {int(number): place for place, number in enumerate(chosen.numbers)}
            rows = {numbers[n]: row for n, row in enumerate(read_tags(self.folder)) if n in numbers}
        else:
            found = [row for row in read_tags(self.folder) if (row.source, row.position) in places]
            rows, self.n_open = dict(enumerate(found)), len(found)
        progress(f"reading the texts of {len(rows):,} documents")
        self.documents, self.n_missing = self._read(rows)
        self._number_of = {_key(document.document): document.number for document in self.documents}

    @property
    def fingerprint(self) -> str:
        """A checksum of the documents of the queue, in order."""
        keys = repr([_key(document.document) for document in self.documents])
        return f"{crc32(keys.encode('utf-8', 'surrogatepass')):08x}"

    def _keep_former_answers(self) -> None:
        """Keep the answers in the folder of corrections that are about documents in the archive as it is now.

        A document without an id of its own, in a file that has changed, is the same if it has the same words.
        """
        if not (made_of := self.corrections.by_place()):
            return
        present = find_documents(self.folder, made_of)
        changed = {place[:3] for place in made_of if place not in present}
        read = self._origin.read_documents(changed, tagged_files(self.folder)) if changed else {}
        key_of: dict[ArchivePlace, tuple[str, str, str]] = {}
        for place, made in made_of.items():
            record = read.get(place[:3])
            is_same = record is not None and _texts(record) == made[-1].document.zones
            if place in present or is_same:
                key_of[place] = _key(present.get(place, made[-1].document))
        answers = [(correction, key_of[place]) for place in key_of for correction in made_of[place]]
        for correction, key in sorted(answers, key=lambda answer: answer[0].number):
            self._keep(correction, key)

    def _is_done(self, row: TaggedDocument) -> bool:
        return not self.independent and any(map(self._is_final, self._answers.get(_key(row), ())))

    def _read(self, rows: Mapping[int, TaggedDocument]) -> tuple[list[ReviewDocument], int]:
        """Read the documents of some rows of the archive's tags; return them, and the number of missing documents.

        A document is missing if its file no longer has it, or has it at another position.
        """
        places = {(row.source, row.position, row.id) for row in rows.values()}
        files = tagged_files(self.folder)
        found = self._origin.read_documents(places, files)
        has_promises = any(status for row in rows.values() for status in row.statuses)
        documents: list[ReviewDocument] = []
        for _, row in sorted(rows.items()):
            record = found.get((row.source, row.position, row.id))
            if record is None:
                continue
            asked = reviewed_tags(row, has_promises=has_promises and not self.sample)
            audited = audited_tags(row, self.audit)
            facts = zip(row.topics, row.probabilities, row.statuses, asked, audited, strict=True)
            tags = tuple(ReviewTag(*fact[:3], fact[3] or fact[4], fact[4]) for fact in facts)
            of_place = row.source, row.position, checksum_of_source(files, row.source)
            place: dict[str, Any] = dict(zip(PLACE, of_place, strict=True))
            fields = (record.fields or {}) | place
            document = Document(
                row.id, _texts(record), row.topics, record.date, fields=fields, language=record.language
            )
            documents.append(ReviewDocument(len(documents), document, tags, row.model))
        return documents, len(rows) - len(documents)

    def next(self, person: str = "") -> ReviewDocument | None:
        """Return the next document for a person to judge; None if none is left.

        It is the first document without an answer that nobody else is looking at. If others are looking at all
        documents without an answer, it is the first of these, because people may leave. If people review independently,
        it is the first one that this person has not answered.
        """
        with self._lock:
            others = set() if self.independent else {n for who, n in self._shown.items() if who != person}
            unanswered = [document for document in self.documents if not self._is_answered(document, person)]
            free = (document for document in unanswered if document.number not in others)
            document = next(free, next(iter(unanswered), None))
            if document is None:
                self._shown.pop(person, None)
            else:
                self._shown[person] = document.number
            return document

    def answer(
        self,
        number: int,
        answers: Mapping[str, bool],
        person: str = "",
        note: str = "",
        *,
        via: str = "review",
        is_complete: bool = False,
    ) -> Correction:
        """Store a person's answers about the topics of a document; they are on disk when this returns.

        Parameters
        ----------
        number : int
            The document's place in the queue.
        answers : dict of str to bool
            For each topic that the person has judged, by id or name: whether the document belongs to it. With {}, the
            document is skipped, unless `is_complete`.
        person, note : str
        via : str
            As for `Correction`.
        is_complete : bool, default=False
            Whether `answers` lists all topics of the document; then all its tags must be judged.

        Raises
        ------
        TextcatError
            If there is no such document or topic, if a tag has no answer although `is_complete` is set, or if the
            answers cannot be written.
        """
        with self._lock:
            made = self.correction(number, answers, person, note, via=via, is_complete=is_complete)
            (made,) = self.corrections.add(made)
            self._keep(made, _key(made.document))
            self._shown.pop(person, None)
            return made

    def correction(
        self,
        number: int,
        answers: Mapping[str, bool],
        person: str = "",
        note: str = "",
        *,
        via: str = "review",
        is_complete: bool = False,
    ) -> Correction:
        """Return the correction that `answer` would store for the same arguments, without storing it."""
        document = self.document(number)
        given = [tag.topic for tag in document.tags]
        judged = {self.topics.find(topic, given): belongs for topic, belongs in answers.items()}
        audited = tuple(tag.topic for tag in document.tags if tag.is_audited and tag.topic in judged)
        if is_complete and (open_tags := [topic for topic in given if topic not in judged]):
            raise TextcatError(
                f"Tags of the document {document.document.id!r} have no answer: give one to {first_of(open_tags)}."
            )
        return Correction(document.document, judged, person, via, document.model, audited, note, is_complete)

    def undo(self, person: str = "") -> Undone | None:
        """Retract the last answer that a person gave with `via` "review"; return None if there is none."""
        with self._lock:
            correction = self.corrections.take_back(person, "review")
            if correction is None:
                return None
            number = None
            for key, answers in self._answers.items():
                if any(made.number == correction.number for made in answers):
                    self._answers[key] = [made for made in answers if made.number != correction.number]
                    number = self._number_of.get(key)
            if number is None:
                return Undone(correction, None)
            self._shown[person] = number
            return Undone(correction, self.documents[number])

    def document(self, number: int) -> ReviewDocument:
        """Return a document by its place in the queue; raise TextcatError if there is none."""
        if not 0 <= number < len(self.documents):
            n = len(self.documents)
            raise TextcatError(f"There is no document {number} in the queue: give a number from 0 to {n - 1}.")
        return self.documents[number]

    def answers_of(self, number: int, person: str = "") -> list[Correction]:
        """Return the answers about a document in the order in which they were given.

        If people review independently, these are the answers of this person alone.
        """
        with self._lock:
            made = self._answers.get(_key(self.document(number).document), [])
            return [correction for correction in made if not self.independent or correction.person == person]

    def n_answered(self, person: str = "") -> int:
        """Return how many documents of the queue need no further answer.

        If people review independently, only the answers of `person` count.
        """
        with self._lock:
            return sum(self._is_answered(document, person) for document in self.documents)

    def audited_precision(self) -> list[AuditRow]:
        """Return the audited precision of the archive's automatic tags."""
        return audit_rows(self.corrections, self._tags)

    @cached_property
    def _tags(self) -> dict[ArchivePlace, TaggedDocument]:
        """The present tags of the documents of the queue, and of those audited before."""
        tags = present_tags(self.folder, self.corrections)
        for document in self.documents:
            if (row := archive_place(document.document)) is not None:
                tags[row] = TaggedDocument(row.id, *row[:2], document.document.topics, model=document.model)
        return tags

    def explain(self, number: int, topic: str, n: int = 60) -> "Explanation | None":
        """Return a document's terms for and against a topic; None if the model no longer exists or lacks the topic."""
        document = self.document(number)
        tagger = self._model(self.topics.folder_of(document.model))
        return tagger.explain(document.document, topic, n) if tagger is not None and topic in tagger.topics else None

    def _model(self, folder: Path | None) -> "Tagger | None":
        with self._loading:
            if folder is not None and folder not in self._taggers:
                from textcat.model import storage

                with suppress(TextcatError):  # it may have been deleted since
                    self._taggers[folder] = storage.load(folder)
            return None if folder is None else self._taggers.get(folder)

    def _keep(self, correction: Correction, key: tuple[str, str, str]) -> None:
        """Keep a correction in memory, without its texts, as an answer about the document with a key."""
        light = replace(correction, document=replace(correction.document, zones={}))
        self._answers.setdefault(key, []).append(light)

    def _is_answered(self, document: ReviewDocument, person: str) -> bool:
        made = self._answers.get(_key(document.document), ())
        return any(self._is_final(each) and (not self.independent or each.person == person) for each in made)

    def _is_final(self, correction: Correction) -> bool:
        """Return whether a correction answers all that is asked about its document.

        In a random sample, this is so only if the answer judges all topics, or skips the document.
        """
        return not self.sample or correction.is_final


class _Topics:
    """The topics that people can choose: those of the model, by id, with names."""

    def __init__(self, origin: RunOrigin) -> None:
        manifests: list[Manifest] = []
        folder = Path(origin.model)
        folders = [folder] if origin.digest else sorted(path for path in folder.glob("*") if path.is_dir())
        with suppress(TextcatError):
            manifests = [read_manifest(path) for path in folders]
        self.names: dict[str, str] = {}
        for manifest in manifests:
            self.names = manifest.names | self.names
        self.topics = dict.fromkeys(topic for manifest in manifests for topic in manifest.topics).keys()
        self._folders = dict(zip((manifest.id for manifest in manifests), folders, strict=False))
        # If the model was replaced since, use the present one, unless there are several by language.
        self._otherwise = folder if origin.digest and manifests else None
        self._find = topic_finder(self.topics, self.names)

    def folder_of(self, model: str) -> Path | None:
        """Return the folder of the model with this id, or of the model that replaced it; None if there is neither."""
        return self._folders.get(model, self._otherwise)

    def find(self, wanted: str, given: Collection[str]) -> str:
        """Return the id of a topic, given its id or its name in the model; ids in `given` are returned as they are."""
        return wanted if wanted in given or not self.topics else self._find(wanted)

    def search(self, query: str, n: int) -> list[str]:
        """Return ids of up to n topics whose id or name has the query's words; those that begin with it come first."""
        words = query.casefold().split()
        ranked = []
        for topic in self.topics:
            text = f"{self.names.get(topic, '')} {topic}".casefold()
            if all(word in text for word in words):
                ranked.append((not text.startswith(query.casefold()), len(text), topic))
        return [topic for *_, topic in sorted(ranked)[:n]]


def _texts(record: Record) -> dict[str, str]:
    return {name: text for name, text in record.zones.items() if text}


def _key(document: Document | TaggedDocument) -> tuple[str, str, str]:
    """Return a key that identifies a document of the archive: its id, and its source and position as text."""
    if isinstance(document, TaggedDocument):
        return document.id, document.source, str(document.position)
    fields = document.fields or {}
    source, position, _ = (str(fields.get(name, "")) for name in PLACE)
    return document.id, source, position
