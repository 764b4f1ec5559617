"""Write tags to judge to a CSV file for spreadsheet programs, and read the answers back."""

import csv
import io
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from textcat.base.disk import write_atomically
from textcat.base.errors import TextcatError, first_of, similar_files
from textcat.base.spreadsheets import safe_cell
from textcat.base.surrogates import escape_undecodable
from textcat.corpus.corrections import Correction
from textcat.corpus.documents import shortened_text
from textcat.review.review import Review, ReviewDocument, ReviewTag

_KEY = ("row", "rows", "sample", "id", "source", "position", "topic")
_FILLED = ("answer", "add", "note")  # columns that people fill in
_COLUMNS = (*_KEY, "name", "status", "probability", *_FILLED, "text")
_EXCERPT = 1000  # maximum number of characters of a text
_WORDS = {"yes": True, "y": True, "true": True, "1": True, "no": False, "n": False, "false": False, "0": False}
_BETWEEN = ";"  # separator of topics to add
_NO_TAG = ReviewTag("", None, None, True, False)  # in the row of a sampled document without tags


def write_sheet(review: Review, path: Path) -> int:
    """Write a CSV file with a row for each tag to judge in a queue's documents; return the number of rows.

    People fill in the columns `answer` (yes or no), `add` (ids or names of missing topics, separated by ";") and
    `note`; `add` and `note` may be in any row of the document. In the sheet of a random sample, a document without tags
    has a row without a topic; the answer "no" in it means that the document has no topics.
    """
    tags: list[tuple[ReviewDocument, ReviewTag]] = []
    for document in review.documents:
        asked = [(document, tag) for tag in document.tags if tag.is_asked]
        tags += asked or [(document, _NO_TAG)] * (review.sample > 0)
    is_sample = "yes" if review.sample else ""
    rows = io.StringIO(newline="")
    writer = csv.writer(rows, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for number, (document, tag) in enumerate(tags, start=1):
        read, p = document.document, tag.probability
        about = review.topics.names.get(tag.topic, ""), tag.status or "", "" if p is None else p
        text = shortened_text(" ".join(read.zones.values()), _EXCERPT)
        cells = number, len(tags), is_sample, read.id, *document.place, tag.topic, *about, *[""] * len(_FILLED), text
        writer.writerow(map(safe_cell, cells))
    write_atomically(path, escape_undecodable(rows.getvalue()))
    return len(tags)


class _Said(NamedTuple):
    """The answers, missing topics and note in the rows of a document."""

    answers: dict[str, bool]
    notes: list[str]
    rows_answered: list[bool]
    is_sampled: bool


class ReadSheet(NamedTuple):
    """How many documents' answers were read from a sheet, and how many had been read before."""

    kept: int
    repeated: int


def read_sheet(path: Path, folder: Path, corrections: Path | None = None, person: str = "") -> ReadSheet:
    """Read people's answers from a sheet, and store all of them as corrections; on an error, none.

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
        If the file is not a sheet, a row is missing, an answer is invalid, or the archive lacks a document or topic.
    """
    rows = _rows(path)
    places = {_place(row) for row in rows}
    # automatic tags are in the sheet only if they are audited
    review = Review(folder, corrections, places=places, audit=1.0)
    documents_at: dict[tuple[str, int], list[ReviewDocument]] = {}
    for document in review.documents:
        documents_at.setdefault(document.place, []).append(document)
    said: dict[int, _Said] = {}
    for row in rows:
        there = [each for each in documents_at.get(_place(row), ()) if _is_same(row["id"], each.document.id)]
        if not there:
            raise TextcatError(
                f"Row {row['row']} of {path} is about the document {row['id']!r}, which {folder} has not at "
                f"{row['source']}, {row['position']}: give the archive that the sheet was written of."
            )
        of_document = said.setdefault(there[0].number, _Said({}, [], [], row["sample"].strip() == "yes"))
        answers, added = of_document.answers, [*filter(None, map(str.strip, row["add"].split(_BETWEEN)))]
        of_document.rows_answered.append(bool(row["answer"].strip() or (added and not row["topic"])))
        given = [tag.topic for tag in there[0].tags]
        try:
            word = row["answer"].strip()
            if word and not row["topic"] and _answer(word) and not added:
                raise TextcatError("The answer is yes, but the row has no topic: name topics in the column add.")
            if word and row["topic"]:
                answers[review.topics.find(row["topic"], given)] = _answer(word)
            for topic in added:
                answers.setdefault(review.topics.find(topic, given), True)
        except TextcatError as error:
            what = f"Row {row['row']} of {path} cannot be read, and nothing was: mend it."
            raise TextcatError(f"{what} {error}") from error
        if note := row["note"].strip():
            of_document.notes.append(note)
    kept: list[Correction] = []
    repeated = 0
    for number, (answers, notes, rows_answered, is_sampled) in said.items():
        is_complete = is_sampled and any(rows_answered)
        if is_complete and not all(rows_answered):
            raise TextcatError(
                f"The document {review.documents[number].document.id!r} in {path} is of a random sample, and has rows "
                "with an answer and rows without one: give an answer in all of them, or in none. Nothing was read."
            )
        if answers or notes or is_complete:
            about = person, "\n".join(notes)
            correction = review.correction(number, answers, *about, via="sheet", is_complete=is_complete)
            before = [made for made in review.answers_of(number) if (made.person, made.via) == (person, "sheet")]
            if before and (before[-1].answers, before[-1].note) == (correction.answers, correction.note):
                repeated += 1
            else:
                kept.append(correction)
    review.corrections.add(*kept)
    return ReadSheet(len(kept), repeated)


def _rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a sheet by column; raise TextcatError if columns or rows are missing."""
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
    if missing := [name for name in (*_KEY, *_FILLED) if name not in names]:
        raise TextcatError(
            f"The sheet {path} has no column {missing[0]!r}: give a file that `textcat review --uncertain N --out "
            "FILE` has written, with all of its columns."
        )
    plain = [{name: _plain(row[name] or "") for name in (*_KEY, *_FILLED)} for row in rows]
    numbers = [_whole(row["row"]) for row in plain]
    sizes, present = {_whole(row["rows"]) for row in plain}, {*numbers}
    if len(sizes) > 1 or len(present) < len(numbers):
        raise TextcatError(f"The sheet {path} has rows twice, or rows of another sheet: remove them. Nothing was read.")
    n = sizes.pop() if sizes else 1
    if present != {*range(1, len(numbers) + 1)} or len(numbers) != n:
        lost = [str(number) for number in islice((i for i in range(1, n + 1) if i not in present), 4)]
        raise TextcatError(
            f"The sheet {path} has {len(numbers):,} rows, but lacks some that it was written with, such as "
            f"{first_of(lost)}: restore them, and leave the answer empty where there is none. Nothing was read."
        )
    return plain


def _plain(cell: str) -> str:
    """Return the text of a cell, without the apostrophe that `safe_cell` may have added."""
    return cell[1:] if cell.startswith("'") and safe_cell(cell[1:]) == cell else cell


def _whole(cell: str) -> int:
    with suppress(ValueError, OverflowError):
        return int(float(cell))
    return 0


def _place(row: Mapping[str, str]) -> tuple[str, int]:
    return row["source"], _whole(row["position"])


def _is_same(cell: str, id_: str) -> bool:
    """Return whether a cell has an id, even if a spreadsheet program has converted it to a number."""
    with suppress(ValueError, OverflowError):
        return cell == id_ or float(cell) == float(id_)
    return False


def _answer(word: str) -> bool:
    try:
        return _WORDS[word.casefold()]
    except KeyError:
        raise TextcatError(f"The answer cannot be {word!r}: give yes or no, or leave it empty.") from None
