"""Turn records in memory, such as dicts and rows of tables, into documents."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Integral
from typing import Any, NamedTuple

from textcat.errors import TextcatError
from textcat.frames import Frame, is_missing, is_table
from textcat.reading.dates import iso_date
from textcat.reading.document import PARTS, Document
from textcat.reading.records import listed_in


def document_stream(documents: Any, text: str | Sequence[str]) -> Iterator[Any]:
    """Return an iterator over documents; dicts and the rows of a table are converted as by `Corpus.from_records`.

    Texts and objects with `zones` stay as they are. `text` names the fields or columns that hold texts. TextcatError is
    raised if `documents` is a single text, a single record or a table of an unknown library.
    """
    if isinstance(documents, str):
        raise TextcatError("A single text is no stream of documents: give a list of texts.")
    if isinstance(documents, Mapping) or hasattr(documents, "zones"):
        raise TextcatError("A single record is no stream of documents: give a list of records.")
    if (frame := Frame.of(documents)) is not None:
        documents = frame.records(text)
    elif hasattr(documents, "columns"):
        raise TextcatError(
            f"A {type(documents).__name__} is no stream of documents: give a DataFrame of pandas or polars, one column "
            "of texts, or records, as `frame.to_dict('records')` returns."
        )
    return (_in_zones(document, number, text) for number, document in enumerate(documents, start=1))


def _in_zones(document: Any, number: int, text: str | Sequence[str]) -> Any:
    if isinstance(document, str) or hasattr(document, "zones"):
        return document
    if not isinstance(document, Mapping):
        raise TextcatError(f"Document {number} is {document!r:.60}: give a text, a dict or a Document.")
    return Document("", _Fields(document, number).zones(text))


def as_documents(
    records: Iterable[Mapping[str, Any]],
    text: str | Sequence[str] = "text",
    id: str = "id",
    topics: str | Sequence[str] = "topics",
    topics_separator: str = "",
    split: str = "split",
) -> list[Document]:
    """Return the documents of a table or of records in memory: see `Corpus.from_frame` and `Corpus.from_records`."""
    if is_table(records):
        records = _table_records(records, text, topics)
        topics = topics if isinstance(topics, str) else "topics"
    elif not isinstance(topics, str):
        raise TextcatError(f"The topics of records are in one field, not in {topics!r}: name it, or give a table.")
    fields_of = zip((id, topics, split), ("id", "topics", "split"), strict=True)
    named = [field for field, default in fields_of if field not in ("", default)]
    documents: list[Document] = []
    number_of: dict[str, int] = {}
    for number, fields in enumerate(records, start=1):
        if not isinstance(fields, Mapping):
            raise TextcatError(f"Record {number} is a {type(fields).__name__}: give a dict of fields.")
        record = _Fields(fields, number)
        record.check(named)
        identifier, date, part = record.value(id), record.value("date"), record.text(split)
        identifier = str(number if identifier is None else identifier)
        if number_of.setdefault(identifier, number) != number:
            numbers = f"{number_of[identifier]} and {number}"
            raise TextcatError(f"Records {numbers} have the same id {identifier!r}: give each its own.")
        if part not in ("", *PARTS):
            raise TextcatError(f"Record {number} has the split {part!r}: it must be one of {', '.join(PARTS)}.")
        names = record.topics(topics, topics_separator)
        labelled_for = None if record.value("labelled_for") is None else record.topics("labelled_for", topics_separator)
        date = "" if date is None else iso_date(str(date))
        documents.append(Document(identifier, record.zones(text), names, date, part, labelled_for))
    return documents


def _table_records(table: Any, text: str | Sequence[str], topics: str | Sequence[str]) -> Iterator[dict[str, Any]]:
    """Return an iterator over the rows of a table, as dicts; topics from several columns are in the field "topics".

    TextcatError is raised if the table has no rows or is a single column, if a named column is missing, or if a row has
    no text or no topics.
    """
    frame = Frame.of(table) or Frame(table)
    if frame.is_column:
        raise TextcatError(f"A {type(table).__name__} is not a table: give a DataFrame that has the topics, too.")
    if not len(table):
        raise TextcatError("The table has no rows: give one with a row per document.")
    frame.text_columns(text)
    columns = frame.columns
    frame.check(columns)  # that no two have the same name
    rows = (dict(zip(columns, row, strict=True)) for row in frame.rows(columns))
    if not topics:
        return rows
    field = topics if isinstance(topics, str) else "topics"
    return ({**row, field: value} for row, value in zip(rows, frame.topics(topics), strict=True))


class _Fields(NamedTuple):
    """Read the fields of a record in memory; `number` is the record's number, for error messages."""

    fields: Mapping[str, Any]
    number: int

    def zones(self, names: str | Sequence[str]) -> dict[str, str]:
        zones = self.fields.get("zones")
        if isinstance(zones, Mapping):
            return {str(zone): _Fields(zones, self.number).text(zone) for zone in zones}
        names = (names,) if isinstance(names, str) else tuple(names)
        if names == ("text",):
            names = ("text",) if self.value("text") is not None else ("body",)
        else:
            self.check(names)
        if all(self.value(name) is None for name in (*names, "title")):
            raise self._fault(f"no text in {' or '.join(map(repr, names))}", self._name_fields())
        body = [self.text(name) for name in names if name != "title"]
        return {"title": self.text("title"), "body": "\n".join(filter(None, body))}

    def topics(self, field: str, separator: str) -> tuple[str, ...]:
        value = self.value(field)
        if isinstance(value, str):
            parts = value.split(separator) if separator else listed_in(value)
            names = [name.strip() for name in ([value] if parts is None else parts)]
            return tuple(dict.fromkeys(filter(None, names)))
        values = list(value) if isinstance(value, Iterable) else [] if value is None else [value]
        for name in values:
            if isinstance(name, bool) or not isinstance(name, str | Integral) or not str(name).strip():
                raise self._fault(f"the {field} {value!r:.60}", "they must be a list of names, or one name")
        return tuple(dict.fromkeys(map(str, values)))

    def text(self, field: str) -> str:
        value = self.value(field)
        if value is not None and not isinstance(value, str):
            raise self._fault(f"the {field} {value!r:.60}", "it must be a text")
        return value or ""

    def value(self, field: str) -> Any:
        """Return the value of a field; None if the field is missing, or its value is NaN, NaT or NA."""
        value = self.fields.get(field)
        return None if is_missing(value) else value

    def check(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self.fields:
                raise self._fault(f"no field {name!r}", self._name_fields())

    def _name_fields(self) -> str:
        return f"name one of its fields: {', '.join(map(str, self.fields))}"

    def _fault(self, what: str, remedy: str) -> TextcatError:
        return TextcatError(f"Record {self.number} has {what}: {remedy}.")
