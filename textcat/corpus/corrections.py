"""Store people's corrections of documents' topics in a folder, to which several processes can add."""

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from textcat.base.disk import beside, expanded
from textcat.base.errors import TextcatError
from textcat.base.journal import time_now
from textcat.base.surrogates import escape_undecodable
from textcat.reading.document import Document

FILE = "corrections.sqlite"  # name of the database in the folder
_FORMAT = 2
_COLUMNS = ("at", "person", "via", "model", "id", "document", "before", "answers", "audited", "note", "complete")
# Fields of a corrected document of an archive: its place there, and the checksum that its file had then.
PLACE = ("tagged source", "tagged position", "tagged file")
_TABLE = f"CREATE TABLE corrections (number INTEGER PRIMARY KEY AUTOINCREMENT, {', '.join(_COLUMNS)}, taken_back)"


@dataclass(frozen=True)
class Correction:
    """A person's correction of the topics of a document.

    Parameters
    ----------
    document : Document
        The document with its texts; its `topics` are those before the correction.
    answers : dict of str to bool
        For each topic that the person has judged: whether the document belongs to it.
    person : str
        The name of the person, or of the person's key.
    via : {"review", "sheet", "page", "api"}
        Where the person answered.
    model : str
        The id of the model whose tags were corrected; "": no model.
    audited : tuple of str
        The judged topics that were drawn at random from automatic tags.
    note : str
    is_complete : bool
        Whether `answers` lists all topics of the document.
    at : str
        The time in UTC (ISO 8601); "": now.
    number : int
        Its number in the folder, from 1; 0: not stored yet.
    """

    document: Document
    answers: dict[str, bool] = field(default_factory=dict)
    person: str = ""
    via: str = "review"
    model: str = ""
    audited: tuple[str, ...] = ()
    note: str = ""
    is_complete: bool = False
    at: str = ""
    number: int = 0

    @property
    def before(self) -> tuple[str, ...]:
        """The topics that the document had before."""
        return self.document.topics

    @property
    def is_final(self) -> bool:
        """Whether it judges all topics of its document, or skips the document."""
        return self.is_complete or not self.answers

    @property
    def after(self) -> tuple[str, ...]:
        """The topics of the document after the correction: previous ones that were not rejected, then added ones."""
        kept = [topic for topic in self.before if self.answers.get(topic, True)]
        return (*kept, *(topic for topic, belongs in self.answers.items() if belongs and topic not in self.before))


class ArchivePlace(NamedTuple):
    """The place of a document in an archive when it was tagged: source, position, id, and checksum of the file."""

    source: str
    position: int
    id: str
    file: str  # "": unknown


class Corrections:
    """The corrections in a folder, in an SQLite database; each is on disk when the call that adds it returns.

    Any number of threads and processes may add corrections and read them at the same time. Nothing is ever deleted:
    retracted corrections are only marked.

    Parameters
    ----------
    folder : path
        It is created if it does not exist, unless `must_exist`.
    must_exist : bool
        Raise TextcatError if the folder has no corrections yet.
    """

    def __init__(self, folder: str | os.PathLike[str], *, must_exist: bool = False) -> None:
        self.folder = expanded(folder)
        self._path = self.folder / FILE
        if must_exist and not (self._path.is_file() and self._path.stat().st_size):
            raise TextcatError(
                f"{self.folder} has no corrections: name a folder that `textcat review` or `textcat serve "
                "--corrections` has written."
            )
        with self._connection():
            pass  # only to check the database, or to create it

    def check_writable(self) -> None:
        """Raise TextcatError if no correction can be added."""
        with self._connection() as connection:
            connection.execute(f"PRAGMA user_version = {_FORMAT}")  # it writes, even if nothing changes

    def add(self, *corrections: Correction) -> list[Correction]:
        """Add corrections, all or none; return them with their numbers and times."""
        now = time_now()
        made = []
        with self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            for correction in corrections:
                given = replace(correction, at=correction.at or now)
                columns = ", ".join(_COLUMNS)
                cursor = connection.execute(
                    f"INSERT INTO corrections ({columns}) VALUES ({', '.join('?' * len(_COLUMNS))})", _row(given)
                )
                made.append(replace(given, number=cursor.lastrowid or 0))
            connection.execute("COMMIT")
        return made

    def take_back(self, person: str, via: str) -> Correction | None:
        """Retract and return a person's last correction with this `Correction.via`; return None if there is none."""
        with self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            row = connection.execute(
                f"SELECT number, {', '.join(_COLUMNS)} FROM corrections "
                "WHERE person = ? AND via = ? AND taken_back IS NULL ORDER BY number DESC LIMIT 1",
                (person, via),
            ).fetchone()
            if row is not None:
                now = time_now()
                connection.execute("UPDATE corrections SET taken_back = ? WHERE number = ?", (now, row[0]))
            connection.execute("COMMIT")
        return None if row is None else _correction(row)

    def __iter__(self) -> Iterator[Correction]:
        """Iterate over the corrections that were not retracted, in the order in which they were made."""
        return (correction for correction, is_retracted in self._all() if not is_retracted)

    def _all(self) -> Iterator[tuple[Correction, bool]]:
        """Iterate over all corrections, in the order in which they were made, and whether each was retracted."""
        with self._connection() as connection:
            rows = connection.execute(
                f"SELECT taken_back, number, {', '.join(_COLUMNS)} FROM corrections ORDER BY number"
            ).fetchall()
        return ((_correction(row), retracted is not None) for retracted, *row in rows)

    def by_document(self) -> dict[str, list[Correction]]:
        """Return the corrections of each document by its id, in the order in which they were made.

        Documents of archives that share an id, but not the text, are different documents: the ids of all but the first
        get the checksum of their text (see `with_text_in_id`).
        """
        texts_of: dict[str, list[str]] = {}
        made_of: dict[str, list[Correction]] = {}
        for correction, is_retracted in self._all():
            document = correction.document
            if archive_place(document) is not None:
                texts = texts_of.setdefault(document.id, [])
                text = checksum_of_text(document)
                texts += [] if text in texts else [text]
                document = with_text_in_id(document) if text != texts[0] else document
            if not is_retracted:
                made_of.setdefault(document.id, []).append(replace(correction, document=document))
        return made_of

    def documents(self) -> list[Document]:
        """Return each corrected document once: its topics are those confirmed or added, `labelled_for` those judged.

        If answers contradict each other, `majority_answers` decides; a document's texts are those of its last
        correction. Documents without an answer are left out.
        """
        documents = []
        for made in self.by_document().values():
            answers = majority_answers(made)
            topics = tuple(topic for topic, belongs in answers.items() if belongs)
            documents += [replace(made[-1].document, topics=topics, labelled_for=tuple(answers))] if answers else []
        return documents

    def ids(self) -> dict[int, str]:
        """Return the id of the document of each correction by the correction's number, also of retracted ones."""
        with self._connection() as connection:
            return dict(connection.execute("SELECT number, id FROM corrections").fetchall())

    def topics_of(self, id_: str) -> set[str]:
        """Return the topics that a document has by its corrections."""
        with self._connection() as connection:
            rows = connection.execute(
                f"SELECT number, {', '.join(_COLUMNS)} FROM corrections "
                "WHERE id = ? AND taken_back IS NULL ORDER BY number",
                (escape_undecodable(id_),),
            ).fetchall()
        return {topic for topic, belongs in majority_answers(map(_correction, rows)).items() if belongs}

    def by_place(self) -> dict[ArchivePlace, list[Correction]]:
        """Return the corrections of each document of an archive, in the order in which they were made."""
        made_of: dict[ArchivePlace, list[Correction]] = {}
        for correction in self:
            if (place := archive_place(correction.document)) is not None:
                made_of.setdefault(place, []).append(correction)
        return made_of

    def agreement(self) -> "Agreement":
        """Count the answers of several people about a topic of a document, and those about which they disagree."""
        answers = (of for made in self.by_document().values() for of in _answers_of_people(made).values())
        shared = [{*of_people.values()} for of_people in answers if len(of_people) > 1]
        return Agreement(len(shared), sum(len(different) > 1 for different in shared))

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        refusal = f"Cannot write to the corrections in {self.folder}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._path, timeout=30, isolation_level=None)) as connection:
                connection.execute("PRAGMA synchronous = EXTRA")  # a power failure must not lose any answer
                self._create_table(connection)  # the folder may have been moved away since the last connection
                yield connection
        except OSError as error:
            raise TextcatError(f"{refusal} ({error.strerror}): check the disk, or name another folder.") from error
        except sqlite3.OperationalError as error:
            raise TextcatError(
                f"{refusal} ({error}): check the disk, and answer again; earlier answers are saved."
            ) from error
        except sqlite3.DatabaseError as error:
            raise TextcatError(f"{self._path} is damaged ({error}): restore it from a backup.") from error

    def _create_table(self, connection: sqlite3.Connection) -> None:
        """Create the table if the database is new; raise TextcatError if it has another format."""
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version == 0:
            connection.execute("BEGIN IMMEDIATE")  # another process may do the same
            if not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
                connection.execute(_TABLE)
                connection.execute(f"PRAGMA user_version = {_FORMAT}")
            connection.execute("COMMIT")
        elif version != _FORMAT:
            raise TextcatError(
                f"{self._path} was made by another version of textcat, with format {version} instead of {_FORMAT}: "
                "name another folder."
            )


class Agreement(NamedTuple):
    """How many topics of documents several people have judged, and about how many of these they disagree."""

    shared: int
    disputed: int


def majority_answers(corrections: Iterable[Correction]) -> dict[str, bool]:
    """Return what most people say about each topic of a document; if they are equally many, what the last one says.

    Only a person's last answer about a topic counts. Who judges all topics of the document says no to those that only
    others name. `corrections` are those of the document, in the order in which they were made; people without a name
    count as one person.
    """
    answers: dict[str, bool] = {}
    for topic, of_people in _answers_of_people([*corrections]).items():
        said = [*of_people.values()]
        answers[topic] = said[-1] if 2 * sum(said) == len(said) else 2 * sum(said) > len(said)
    return answers


def all_topics(corrections: Sequence[Correction]) -> set[str] | None:
    """Return all topics of a document by its corrections, in the order in which they were made.

    None: nobody has judged all of its topics.
    """
    if not any(correction.is_complete for correction in corrections):
        return None
    return {topic for topic, belongs in majority_answers(corrections).items() if belongs}


def _answers_of_people(corrections: Sequence[Correction]) -> dict[str, dict[str, bool]]:
    """Return for each topic the last answer of each person, in the order in which these were given."""
    of_topics: dict[str, dict[str, bool]] = {topic: {} for made in corrections for topic in made.answers}
    for made in corrections:
        answers = dict.fromkeys(of_topics, False) | made.answers if made.is_complete else made.answers
        for topic, belongs in answers.items():
            of_topics[topic].pop(made.person, None)
            of_topics[topic][made.person] = belongs
    return of_topics


def archive_place(document: Document) -> ArchivePlace | None:
    """Return the place of a corrected document in the archive that was tagged; None if it is from no archive."""
    fields = document.fields or {}
    if any(name not in fields for name in PLACE):
        return None
    source, position, file = (fields[name] for name in PLACE)
    return ArchivePlace(str(source), int(position), document.id, str(file))


def checksum_of_text(document: Document) -> str:
    """Return the first digits of the checksum of a document's zones; "" if it has no text."""
    if not any(document.zones.values()):
        return ""
    return hashlib.sha256(json.dumps(document.zones).encode()).hexdigest()[:32]


def with_text_in_id(document: Document) -> Document:
    """Return a document with a part of its text's checksum appended to its id, which another document has, too."""
    return replace(document, id=f"{document.id} ({checksum_of_text(document)[:8]})")


def corrections_of(folder: Path, corrections: str | os.PathLike[str] | None) -> Path:
    """Return the folder of corrections of a tagged archive: the given one, or the one beside the archive."""
    return beside(folder, "-corrections") if corrections is None else expanded(corrections)


def _row(correction: Correction) -> tuple[str, ...]:
    document = correction.document
    facts = {"zones": document.zones, "date": document.date, "language": document.language, "fields": document.fields}
    texts = correction.at, correction.person, correction.via, correction.model, document.id
    values = facts, document.topics, correction.answers, correction.audited
    note = escape_undecodable(correction.note)
    return (*map(escape_undecodable, texts), *map(json.dumps, values), note, json.dumps(correction.is_complete))


def _correction(row: tuple[object, ...]) -> Correction:
    number, at, person, via, model, id_, *values, note, complete = row
    facts, before, answers, audited = (json.loads(str(value)) for value in values)
    document = Document(str(id_), topics=tuple(before), **facts)
    said = answers, str(person), str(via), str(model), tuple(audited), str(note), json.loads(str(complete))
    return Correction(document, *said, str(at), int(str(number)))
