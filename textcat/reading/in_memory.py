"""Convert records in memory, such as dicts and rows of tables, to documents."""

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count, repeat
from typing import Any, NamedTuple

from textcat.base.errors import TextcatError, first_of
from textcat.base.frames import Frame, is_missing, is_table, named_columns
from textcat.base.surrogates import join_surrogates
from textcat.reading.annotations import plain_record
from textcat.reading.columns import names_alike, title_and_body
from textcat.reading.dates import date_text, iso_date
from textcat.reading.document import PARTS, Document
from textcat.reading.faults import FaultKind, UnreadableError
from textcat.reading.input_settings import InputSettings
from textcat.reading.labels import (
    Labels,
    labels_in,
    labels_of_fields,
    refuse_shared_field,
    unlabelled_because,
    warn_of_missing_parts,
    with_meanings,
)
from textcat.reading.recognition import named_format

_log = logging.getLogger(__name__)
_WITH_FIELDS = ("csv", "tsv", "json", "jsonl", "parquet")


def document_stream(
    documents: Any, text: str | Sequence[str] | None = None, trained_on: tuple[str, ...] = ()
) -> Iterator[Any]:
    """Return an iterator over documents; dicts and the rows of a table are converted as by `Corpus.from_records`.

    The rows of a table have the names of `Frame.row_names` as ids. Texts and objects with `zones` are returned
    unchanged. `text` names the fields or columns of texts. The defaults are those in `trained_on`, or, if a table or
    record has none of them, those of `Corpus.from_records`. TextcatError is raised if it has some of them, or if
    `documents` is a single text, a single record or a table of an unknown library.
    """
    if isinstance(documents, str):
        raise TextcatError("A single text is no stream of documents: give a list of texts.")
    if isinstance(documents, Mapping) or hasattr(documents, "zones"):
        raise TextcatError("A single record is no stream of documents: give a list of records.")
    ids: Iterable[str] = repeat("")
    if (frame := Frame.of(documents)) is not None:
        if not frame.is_column:
            text, ids = _chosen(frame.columns, named_columns(text), trained_on) or None, frame.row_names
        documents = frame.records(text)
    elif hasattr(documents, "columns"):
        raise TextcatError(
            f"A {type(documents).__name__} is no stream of documents: give a DataFrame of pandas or polars, one column "
            "of texts, or records, as `frame.to_dict('records')` returns."
        )
    elif not _is_iterable(documents):
        raise TextcatError(f"{documents!r:.60} is no stream of documents: give a list of texts or records.")
    names = named_columns(text)
    numbered = enumerate(zip(documents, ids, strict=False), start=1)
    return (_in_zones(document, id_, number, names, trained_on) for number, (document, id_) in numbered)


def _is_iterable(value: Any) -> bool:
    return hasattr(value, "__iter__") or hasattr(value, "__getitem__")


def _in_zones(document: Any, id_: str, number: int, text: tuple[str, ...], trained_on: tuple[str, ...]) -> Any:
    if isinstance(document, str) or hasattr(document, "zones"):
        return document
    if not isinstance(document, Mapping):
        raise TextcatError(f"Document {number} is {document!r:.60}: give a text, a dict or a Document.")
    fields = plain_record(document, "topics", True, False)
    record = _Fields(fields, f"Row {id_}" if id_ else f"Record {number}")
    date = str(record.value("date") or "")
    further = fields.get("fields")  # as in requests to the server
    all_fields = {**fields, **further} if isinstance(further, Mapping) else dict(fields)
    return Document(id_, record.zones(_chosen(fields, text, trained_on)), date=date, fields=all_fields)


def _chosen(fields: Collection[str], named: tuple[str, ...], trained_on: tuple[str, ...]) -> tuple[str, ...]:
    """Return the fields or columns of texts: the given names or, without any, those of training if all are there.

    TextcatError is raised if only some of those of training are there.
    """
    if named or not trained_on:
        return named
    lacking = [name for name in trained_on if name not in fields]
    if lacking and len(lacking) < len(trained_on):
        raise TextcatError(
            f"There is no column or field {lacking[0]!r}, and the model was trained on "
            f"{', '.join(map(repr, trained_on))}: give all of them, or name those to read by `text`."
        )
    return () if lacking else trained_on


def origin_of_columns(text: tuple[str, ...]) -> dict[str, Any]:
    """Return the `Corpus.origin` of a corpus in memory whose texts are in these columns or fields."""
    return {"settings": {"text_fields": [*text]}}


def named_in_training(origin: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the columns or fields of text that the user named in training, given a `Corpus.origin`; () if none."""
    return tuple(origin.get("settings", {}).get("text_fields", ()))


def warn_of_unnamed_texts(trained_on: Sequence[str], settings: InputSettings, files: Iterable[str]) -> None:
    """Warn if a model was trained on named fields, and files with fields are read without naming any.

    `trained_on` is the result of `named_in_training`; `files` are paths or URLs.
    """
    if not trained_on or not settings.is_default("text_fields"):
        return
    if name := next((file for file in files if named_format(file) in _WITH_FIELDS), ""):
        _log.warning(
            "The model was trained on the texts in %s; of %s, the fields with usual names are read: --text-field names "
            "others.",
            *(", ".join(trained_on), name),
        )


def as_documents(
    records: Iterable[Mapping[str, Any]],
    text: str | Sequence[str] | None = None,
    id: str = "id",
    topics: str | Sequence[str] = "topics",
    topics_separator: str = "",
    split: str = "split",
    trained_on: tuple[str, ...] = (),
    names_of_fields: dict[str, None] | None = None,
) -> list[Document]:
    """Return the documents of a table or of records in memory: see `Corpus.from_frame` and `Corpus.from_records`.

    The rows of a table without the column `id` have the names of `Frame.row_names` as ids. `trained_on` is as for
    `document_stream`. The names of the fields of all records are added to the keys of `names_of_fields`.
    """
    if isinstance(records, Mapping):
        raise TextcatError(
            "A dict is no list of records: give a list of dicts or, of a dict of columns, the DataFrame that it makes."
        )
    topics = topics if isinstance(topics, str) else [*topics]  # the columns of a table may be a part of its `columns`
    names_of_texts, kind, row_names = named_columns(text), "Record", None
    if is_table(records):
        frame = Frame.of(records) or Frame(records)
        if frame.is_column:
            raise TextcatError(f"A {type(records).__name__} is not a table: give a DataFrame that has the topics, too.")
        names_of_texts = _chosen(frame.columns, names_of_texts, trained_on)
        kind, row_names = "Row", frame.row_names
        id = "" if id not in frame.columns and id == frame.index_name else id
        records = _table_records(frame, names_of_texts or None, topics)
    elif not _is_iterable(records):
        raise TextcatError(f"{records!r:.60} is no list of records: give a list of dicts, or a DataFrame.")
    refuse_shared_field(names_of_texts, topics)
    asked = topics if isinstance(topics, str) else ""
    named = [field for field, default in ((id, "id"), (split, "split")) if field not in ("", default)]
    documents: list[Document] = []
    label_of: dict[str, str] = {}
    makes_corpus, names_of_fields = names_of_fields is not None, {} if names_of_fields is None else names_of_fields
    left_out, without_topics = Counter[str](), list[str]()
    for label, original in zip(map(str, count(1)) if row_names is None else row_names, records, strict=False):
        if not isinstance(original, Mapping):
            example = "{'text': '…', 'topics': ['…']}"
            raise TextcatError(
                f"Record {label} is a {type(original).__name__}: give a dict of fields, such as {example}, or a "
                "DataFrame."
            )
        try:
            fields = plain_record(original, asked or "topics", asked in ("", "topics"), bool(topics))
        except UnreadableError as fault:
            if fault.kind is not FaultKind.LEFT_OUT:
                raise TextcatError(f"{kind} {label} {fault}.") from None
            left_out[fault.detail] += 1
            continue
        if not fields.keys() <= names_of_fields.keys():
            names_of_fields.update(dict.fromkeys(map(str, fields)))
        record = _Fields(fields, f"{kind} {label}")
        record.check(named)
        identifier, date, part = record.value(id), record.value("date"), record.text(split)
        identifier = label if identifier is None else join_surrogates(str(identifier))
        if label_of.setdefault(identifier, label) != label:
            labels = f"{label_of[identifier]} and {label}"
            raise TextcatError(f"{kind}s {labels} have the same id {identifier!r}: give each its own.")
        if part not in ("", *PARTS):
            raise TextcatError(f"{kind} {label} has the split {part!r}: it must be one of {', '.join(PARTS)}.")
        texts = _chosen(fields, names_of_texts, trained_on)
        names, labelled_for = record.labels(topics, topics_separator)
        if asked and part != "unused" and labelled_for is None and record.value(asked) is None:
            without_topics.append(label)
        date = "" if date is None else iso_date(date_text(date))
        documents.append(Document(identifier, record.zones(texts), names, date, part, labelled_for))
    for sentence, n in left_out.items():
        _log.warning("%s (%d of %d).", sentence, n, n + len(documents))
    warn_of_missing_parts(sum(not document.split for document in documents), len(documents))
    is_forgotten = asked != "topics" or names_alike(names_of_fields, "topics")  # "topics": no record needs any
    if asked and asked not in names_of_fields and is_forgotten and documents:
        raise TextcatError(f"There are no topics: {unlabelled_because([asked], names_of_fields)}.")
    # A corpus knows by itself that all its documents are unlabelled.
    n_used = sum(document.split != "unused" for document in documents)
    if without_topics and (len(without_topics) < n_used or not makes_corpus):
        _log.warning(
            "%s of %s records have no value in %r (%s), so they count as having no topic: leave them out, or give an "
            "empty list.",
            *(f"{len(without_topics):,}", f"{n_used:,}", asked, first_of(without_topics)),
        )
    return with_meanings(documents, "" if asked == "topics" else asked)


def _table_records(
    frame: Frame, text: str | Sequence[str] | None, topics: str | Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Return an iterator over the rows of a table, as dicts.

    TextcatError is raised if the table has no rows, if a named column is missing, or if a row has
    no text or no topics.
    """
    if not len(frame.data):
        raise TextcatError("The table has no rows: give one with a row per document.")
    frame.text_columns(text)
    columns = frame.columns
    frame.check(columns)  # so that all names are distinct
    rows = (dict(zip(columns, row, strict=True)) for row in frame.rows(columns))
    if topics:
        frame.check_topics(topics)
    return rows


class _Fields(NamedTuple):
    """The fields of a record in memory; `called` is the record's name in error messages, such as "Record 3"."""

    fields: Mapping[str, Any]
    called: str

    def zones(self, names: tuple[str, ...]) -> dict[str, str]:
        """Return the texts of the named fields; if none is named, those of `zones`, or of title and text or body.

        As in files, a title is a zone of its own unless it is the only field that is named.
        """
        self.check(names)
        zones = self.fields.get("zones")
        if isinstance(zones, Mapping) and names in ((), ("zones",)):
            return {str(zone): _Fields(zones, self.called).text(zone) for zone in zones}
        if names:
            title, body = title_and_body(names)
        else:
            title, body = "title", ("body",) if self.value("text") is None else ("text",)
        texts = [self.text(name) for name in body]
        head = self.text(title) if title else ""
        if not (head or any(texts)) and all(self.value(name) is None for name in (*body, title)):
            raise self._fault(f"no text in {' or '.join(map(repr, body))}", self._name_fields())
        return {"title": head, "body": texts[0] if len(texts) == 1 else "\n".join(filter(None, texts))}

    def labels(self, field: str | Sequence[str], separator: str) -> Labels:
        try:
            if isinstance(field, str):
                labels = labels_in(self.fields.get(field), field, separator)
            else:
                labels = labels_of_fields({name: self.fields.get(name) for name in field})
            if self.value("labelled_for") is not None:
                judged = labels_in(self.fields["labelled_for"], "labelled_for", separator)
                labels = labels._replace(labelled_for=judged.topics)
        except UnreadableError as fault:
            raise TextcatError(f"{self.called} {fault}.") from None
        return labels

    def text(self, field: str) -> str:
        value = self.value(field)
        if value is not None and not isinstance(value, str):
            raise self._fault(f"the {field} {value!r:.60}", "it must be a text")
        return value or ""

    def value(self, field: str) -> Any:
        """Return the value of a field; None if the field is missing, or its value is NaN, NaT or NA."""
        value = self.fields.get(field)
        return value if type(value) is str or not is_missing(value) else None

    def check(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self.fields:
                raise self._fault(f"no field {name!r}", self._name_fields())

    def _name_fields(self) -> str:
        return f"name one of its fields: {', '.join(map(str, self.fields))}"

    def _fault(self, what: str, remedy: str) -> TextcatError:
        return TextcatError(f"{self.called} has {what}: {remedy}.")
