"""Write tags to judge to a CSV file for spreadsheet programs, and read the answers back."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import NamedTuple
from zlib import crc32

import msgspec

from textcat.base.disk import raise_write_errors, write_atomically
from textcat.base.errors import TextcatError, first_of, similar_files
from textcat.base.spreadsheets import list_cell, plain_text, safe_cell, texts_of_cell
from textcat.base.surrogates import escape_undecodable
from textcat.corpus.corrections import ArchivePlace, Correction, checksum_of_text
from textcat.corpus.documents import shortened_text
from textcat.review.review import Review, ReviewDocument, ReviewTag
from textcat.tagging.shards import TaggedDocument, find_documents

_FILLED = ("answer", "add", "note")  # columns that people fill in
_COLUMNS = ("row", "id", "source", "position", "topic", "name", "status", "probability", *_FILLED, "other tags", "text")
_READ = ("key", "topic", *_FILLED, "text")
_EXCERPT = 1000  # maximum number of characters of a text
_WORDS = {"yes": True, "y": True, "true": True, "1": True, "no": False, "n": False, "false": False, "0": False}
_NO_TAG = ReviewTag("", None, None, True, False)  # in the row of a sampled document without tags


class _Key(NamedTuple):
    """Which document and topic a row is about: a cell with a list in JSON, which spreadsheet programs do not change.

    They do change an id such as "0012", and people may sort or move single columns.
    """

    row: int  # its number, from 1
    rows: int  # number of rows of the sheet
    is_sample: bool  # whether the document is of a random sample
    source: str
    position: int
    id: str
    file: str  # checksum of the document's file
    topic: str  # "" for a document without tags
    text: int  # checksum of the text in the row
    zones: str  # checksum of the document's whole text, as `checksum_of_text` returns it

    @property
    def document(self) -> ArchivePlace:
        """The source, position and id of the document in the archive, and the checksum of its file."""
        return ArchivePlace(self.source, self.position, self.id, self.file)


class _Row(NamedTuple):
    """A row of a sheet: its key, and its other cells by column."""

    key: _Key
    cells: Mapping[str, str]


def write_sheet(review: Review, path: Path) -> int:
    """Write a CSV file with a row for each tag to judge in a queue's documents; return the number of rows.

    People fill in the columns `answer` (yes or no), `add` (ids or names of missing topics, separated by ";") and
    `note`; `add` and `note` may be in any row of the document. The column `other tags` has the document's tags that are
    not to be judged. In the sheet of a random sample, a document without tags has a row without a topic; the answer
    "no" in it means that the document has no topics. TextcatError is raised if the file exists, unless it is a sheet
    that nobody has filled in.
    """
    if path.exists() and any(map(_is_filled, _rows(path))):
        raise TextcatError(
            f"{path} has answers: read them by `textcat review {quote(str(review.folder))} --read {quote(str(path))}`, "
            "or name another file."
        )
    tags: list[tuple[ReviewDocument, ReviewTag]] = []
    for document in review.documents:
        asked = [(document, tag) for tag in document.tags if tag.is_asked]
        tags += asked or [(document, _NO_TAG)] * (review.sample > 0)
    rows = io.StringIO(newline="")
    writer = csv.writer(rows, lineterminator="\n")
    writer.writerow((*_COLUMNS, "key"))
    for number, (document, tag) in enumerate(tags, start=1):
        read, p = document.document, tag.probability
        about = review.topics.names.get(tag.topic, ""), tag.status or "", "" if p is None else p
        text = escape_undecodable(shortened_text(" ".join(read.zones.values()), _EXCERPT))
        others = list_cell(tag.topic for tag in document.tags if not tag.is_asked)
        shown = *[""] * len(_FILLED), others, text
        place = *document.place, read.id, document.file
        key = _Key(number, len(tags), review.sample > 0, *place, tag.topic, _checksum(text), checksum_of_text(read))
        cells = number, read.id, *document.place, tag.topic, *about, *shown, msgspec.json.encode(key).decode()
        writer.writerow(map(safe_cell, cells))
    with raise_write_errors(path, "name another file, or make room for it"):
        write_atomically(path, escape_undecodable(rows.getvalue()))
    return len(tags)


class ReadSheet(NamedTuple):
    """What `read_sheet` has stored: numbers of documents by outcome, and the ids of those that it has refused."""

    kept: int  # documents whose answers were stored
    repeated: int  # documents whose answers had been read before
    emptied: int  # documents whose answers were read before, and have none now: the former ones stay
    missing: tuple[str, ...]  # ids of documents with answers that are gone, or whose file has changed since its tagging
    changed: tuple[str, ...]  # ids of documents with answers that have another text, or other tags, than the sheet says


class _DocumentAnswers:
    """What a person has written in the rows of one document: answers, topics to add, and notes."""

    def __init__(self) -> None:
        self._of_rows: dict[str, bool] = {}
        self._added: list[str] = []  # topics of the column add
        self.notes: list[str] = []
        self.asked: set[str] = set()  # topics of the rows
        self.rows_answered: list[bool] = []
        self.is_sampled = False

    def add(self, row: _Row, review: Review, document: ReviewDocument) -> None:
        """Add the cells of a row; raise TextcatError if an answer or a topic is invalid."""
        given = [tag.topic for tag in document.tags]
        word, topic, added = row.cells["answer"].strip(), row.key.topic, _added(row)
        if word and not topic and _answer(word) and not added:
            raise TextcatError("The answer is yes, but the row has no topic: name topics in the column add.")
        if word and topic:
            self._of_rows[review.topics.find(topic, given)] = _answer(word)
        self._added += [review.topics.find(name, given) for name in added]
        self.notes += filter(None, [row.cells["note"].strip()])
        self.asked.add(topic)
        self.rows_answered.append(bool(word or (added and not topic)))
        self.is_sampled |= row.key.is_sample
        if contradicted := [name for name in self._added if self._of_rows.get(name) is False]:
            raise TextcatError(
                f"The answer to {contradicted[0]} is no, but the column add names it: remove one of them."
            )

    @property
    def answers(self) -> dict[str, bool]:
        """The answers by topic; topics in the column `add` count as answered yes."""
        return dict.fromkeys(self._added, True) | self._of_rows

    @property
    def is_complete(self) -> bool:
        """Whether the document is of a random sample, and has an answer: then all its topics are judged."""
        return self.is_sampled and any(self.rows_answered)

    def correction(self, review: Review, number: int, person: str) -> Correction:
        """Return the correction to store; only automatic tags that have a row of their own count as audited."""
        note = "\n".join(self.notes)
        made = review.correction(number, self.answers, person, note, via="sheet", is_complete=self.is_complete)
        return replace(made, audited=tuple(topic for topic in made.audited if topic in self.asked))


def read_sheet(path: Path, folder: Path, corrections: Path | None = None, person: str = "") -> ReadSheet:
    """Read people's answers from a sheet, and store them as corrections; if there is an error, store none.

    A document is looked up at its position in its file or, if the file has changed since, by its id in the file. If its
    text differs from the one that the sheet was written of, its answers are not stored.

    Parameters
    ----------
    path, folder : Path
        The sheet, and the tagged archive that it was made from.
    corrections : Path, optional
        As for `Review`.
    person : str
        The name of the person who answered.

    Raises
    ------
    TextcatError
        If the file is not a sheet, a row is missing, an answer is invalid, the model lacks a topic, or the archive has
        no tags of a document with answers.
    """
    rows = _rows(path)
    tags = find_documents(folder, {row.key.document for row in rows})
    _check_present([row.key for row in rows if row.key.document not in tags and _is_filled(row)], path, folder)
    # automatic tags are in the sheet only if they are audited
    review = Review(folder, corrections, places={(tag.source, tag.position) for tag in tags.values()}, audit=1.0)
    said, missing, changed = _answers_by_document(rows, tags, review, path)
    kept: list[Correction] = []
    repeated = emptied = 0
    for number, of_document in said.items():
        document = review.documents[number]
        before = [made for made in review.answers_of(number) if (made.person, made.via) == (person, "sheet")]
        if of_document.is_complete and not {tag.topic for tag in document.tags} <= of_document.asked:
            changed.append(document.document.id)  # nobody was asked about its present tags
        elif not (of_document.answers or of_document.notes or of_document.is_complete):
            emptied += bool(before)
        else:
            correction = of_document.correction(review, number, person)
            is_repeated = before and (before[-1].answers, before[-1].note) == (correction.answers, correction.note)
            repeated += bool(is_repeated)
            kept += [] if is_repeated else [correction]
    review.corrections.add(*kept)
    return ReadSheet(len(kept), repeated, emptied, tuple(dict.fromkeys(missing)), tuple(dict.fromkeys(changed)))


def _check_present(gone: Sequence[_Key], path: Path, folder: Path) -> None:
    """Raise TextcatError if rows with answers are about documents of which the archive has no tags."""
    if gone:
        row, others = gone[0], f", like {len(gone) - 1:,} others," if gone[1:] else ""
        raise TextcatError(
            f"Row {row.row} of {path}{others} is about a document that {folder} has no tags of, {row.id!r} of "
            f"{row.source}: give the archive that the sheet was written of or, if the document is gone, remove its "
            "answers. Nothing was read."
        )


def _answers_by_document(
    rows: Iterable[_Row], tags: Mapping[ArchivePlace, TaggedDocument], review: Review, path: Path
) -> tuple[dict[int, _DocumentAnswers], list[str], list[str]]:
    """Collect the cells of all rows by document; return them keyed by the document's number in the queue.

    Also return the ids of documents that have answers, but are missing, and of those that have another text now.
    """
    documents = {(document.place, document.document.id): document for document in review.documents}
    said: dict[int, _DocumentAnswers] = {}
    missing: list[str] = []
    changed: list[str] = []
    for row in rows:
        tag = tags.get(row.key.document)
        document = None if tag is None else documents.get(((tag.source, tag.position), tag.id))
        if document is None:
            missing += [row.key.id] if _is_filled(row) else []
            continue
        if checksum_of_text(document.document) != row.key.zones:
            changed += [row.key.id] if _is_filled(row) else []
            continue
        try:
            said.setdefault(document.number, _DocumentAnswers()).add(row, review, document)
        except TextcatError as error:
            what = f"Row {row.key.row} of {path} cannot be read, and nothing was: mend it."
            raise TextcatError(f"{what} {error}") from error
    for number, of_document in said.items():
        if of_document.is_complete and not all(of_document.rows_answered):
            raise TextcatError(
                f"The document {review.documents[number].document.id!r} in {path} is of a random sample, and has rows "
                "with an answer and rows without one: give an answer in all of them, or in none. Nothing was read."
            )
    return said, missing, changed


def _is_filled(row: _Row) -> bool:
    return any(row.cells[name].strip() for name in _FILLED)


def _added(row: _Row) -> list[str]:
    """Return the topics in the column `add` of a row."""
    return [*filter(None, map(str.strip, texts_of_cell(row.cells["add"])))]


def _rows(path: Path) -> list[_Row]:
    """Return the rows of a sheet; raise TextcatError if some are missing, or cells are in other rows than before."""
    rows = _keyed_rows(path)
    if not rows:
        raise TextcatError(
            f"The sheet {path} has no rows, but only its header: restore the rows, and leave the answer empty where "
            "there is none. Nothing was read."
        )
    numbers, sizes = [row.key.row for row in rows], {row.key.rows for row in rows}
    present = {*numbers}
    if len(sizes) > 1 or len(present) < len(numbers):
        raise TextcatError(f"The sheet {path} has rows twice, or rows of another sheet: remove them. Nothing was read.")
    n = sizes.pop()
    if len(numbers) != n:
        lost = [str(number) for number in islice((i for i in range(1, n + 1) if i not in present), 4)]
        raise TextcatError(
            f"The sheet {path} has {len(numbers):,} rows, but lacks some that it was written with, such as "
            f"{first_of(lost)}: restore them, and leave the answer empty where there is none. Nothing was read."
        )
    texts = {row.key.text for row in rows}
    for key, cells in rows:
        has_other_text = _checksum(cells["text"]) != key.text and _checksum(cells["text"]) in texts
        if has_other_text or not _is_same(cells["topic"], key.topic):
            raise TextcatError(
                f"Row {key.row} of {path} has the {'text' if has_other_text else 'topic'} of another row: restore the "
                "column, as rows can only be sorted or moved as a whole, and give other topics in the column add. "
                "Nothing was read."
            )
    return rows


def _keyed_rows(path: Path) -> list[_Row]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise TextcatError(f"Cannot read the sheet {path} ({error.strerror}).{similar_files(path)}") from error
    except UnicodeDecodeError as error:
        raise TextcatError(f"The sheet {path} is not UTF-8: save it as CSV UTF-8.") from error
    head = text.partition("\n")[0]
    # Some spreadsheet programs write a semicolon or a tab instead of the comma.
    between = max(",;\t", key=head.count)
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=between)
    try:
        rows, names = [row for row in reader if any(row.values())], reader.fieldnames or ()
    except csv.Error as error:
        raise TextcatError(
            f"The sheet {path} is no CSV at line {reader.line_num} ({error}): mend that line."
        ) from error
    if missing := [name for name in _READ if name not in names]:
        raise TextcatError(
            f"The sheet {path} has no column {missing[0]!r}: give a file that `textcat review --uncertain N --out "
            "FILE` has written, with all of its columns."
        )
    cells = [{name: plain_text(row[name] or "") for name in _READ} for row in rows]
    try:
        return [_Row(msgspec.json.decode(row["key"], type=_Key), row) for row in cells]
    except msgspec.DecodeError:
        raise TextcatError(
            f"The sheet {path} has a row whose cell in the column 'key' was changed: restore that column. Nothing was "
            "read."
        ) from None


def _checksum(text: str) -> int:
    """Return a checksum of the letters and digits of a text; spreadsheet programs may change its spaces and signs."""
    return crc32("".join(filter(str.isalnum, text)).encode())


def _is_same(cell: str, id_: str) -> bool:
    """Return whether a cell has a topic's id, even if a spreadsheet program has converted it to a number."""
    with suppress(ValueError, OverflowError):
        return cell == id_ or float(cell) == float(id_)
    return False


def _answer(word: str) -> bool:
    try:
        return _WORDS[word.casefold()]
    except KeyError:
        raise TextcatError(f"The answer cannot be {word!r}: give yes or no, or leave it empty.") from None
