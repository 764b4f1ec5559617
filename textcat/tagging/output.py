"""Encode the tags of records as rows of JSON Lines, CSV or Parquet; check the settings of the output."""

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, repeat
from typing import Any, NamedTuple, TypeAlias

import orjson

from textcat.base.disk import installed_version
from textcat.base.errors import TextcatError
from textcat.base.spreadsheets import list_cell, safe_cell
from textcat.base.surrogates import escape_undecodable
from textcat.model.topic_names import name_entry
from textcat.reading import Record, packed_column, time_of
from textcat.runs.output import ParquetFile, PlainFile, ZstandardFile
from textcat.tagging.groups import FIELD

DECIMALS = 4  # decimals of scores and probabilities
MODEL = "model"  # the id of the model that tagged the document
RULES = "--rules"  # name of the setting of a run for the digest of its house rules
# Columns for a document, for one of its topics, and for all of its topics.
_OF_DOCUMENT = ("id", "source", "position", "date", "date_text", MODEL)
_OF_TOPIC = ("topic", "name", "score", "probability", "status")
_OF_TOPICS = ("topics", "names", "scores", "probabilities", "statuses")

RECALL = "expected_recall"  # expected recall of a document's tags, from models that make promises
REASON = "reason"  # reason why a document gives no evidence for any topic
# A document's tags: topic, score, probability (None if the model has no probabilities), and status (None if it makes no
# promises, or the score is below all thresholds).
Tags: TypeAlias = Sequence[tuple[str, float, float | None, str | None]]
# A function of a record and topics, which returns the contributions of terms to each topic's score.
TermsOf: TypeAlias = Callable[[Record, Sequence[str]], Sequence[Mapping[str, float]]]


class OutputSettings(NamedTuple):
    """The settings of the output: which topics of each document are written, and in which format.

    Parameters
    ----------
    to : {"jsonl", "csv", "parquet"}
        Format of the output.
    compress : {"", "zst"}
        Compression of JSON Lines and CSV; Parquet is always compressed.
    top : int >= 1, optional
        Write the topics with the highest scores, this many of each document, instead of those above their thresholds.
    all_topics : bool
        Write all topics of each document.
    explain : int >= 0
        Write with each topic the terms that change its score most, this many.
    topics : tuple of str
        Write only these topics of the model; (): all.
    min_probability : float in [0, 1], optional
        Write the topics of at least this probability, instead of the topics above their thresholds; `top` limits their
        number. The model must have calibrated probabilities.
    names : bool
        Write the name of each topic next to its id. A run sets it to whether its model has names of topics.
    rules : str
        The path of a file of house rules; "": use the file beside the model, if there is one.
    automatic : bool
        Write only topics that may be given without a person. The model must make promises.
    expected_recall : bool
        Write the expected recall of each document: the share of its topics that its tags above thresholds are expected
        to find. The model must make promises.
    keep_fields : tuple of str
        Copy these fields of each record, such as ``("title", "url")``: to an object ``fields`` in JSON Lines, to a
        column each in CSV and Parquet.
    per_document : bool
        Write one row of CSV per document, with its topics in one cell: ``"corn; wheat"``. A topic that has a
        semicolon is in quotation marks.
    no_csv_escape : bool
        Write texts in CSV as they are. Otherwise, a text that begins with ``=``, ``+``, ``-``, ``@`` or a control
        character, which spreadsheets would run as a formula, gets an apostrophe before it.
    other_languages : {"rejected", "untagged"}
        With models by language: reject documents in a language without a model, or write them without topics.
    duplicates : str
        A file that `textcat duplicates` wrote for the same inputs: each document gets the field `group`, the id of the
        first document with its text; "": no file.
    """

    to: str = "jsonl"
    compress: str = ""
    top: int | None = None
    all_topics: bool = False
    explain: int = 0
    topics: tuple[str, ...] = ()
    min_probability: float | None = None
    names: bool = False
    rules: str = ""
    automatic: bool = False
    expected_recall: bool = False
    keep_fields: tuple[str, ...] = ()
    per_document: bool = False
    no_csv_escape: bool = False
    other_languages: str = "rejected"
    duplicates: str = ""

    @property
    def suffix(self) -> str:
        """The ending of the names of the output files, such as ".csv.zst"."""
        return f".{self.to}{f'.{self.compress}' if self.compress else ''}"

    @property
    def is_ranking(self) -> bool:
        """Whether documents get topics by their rank, or all, instead of those that thresholds and rules decide."""
        return self.top is not None or self.all_topics

    @property
    def shows_counted(self) -> bool:
        """Whether the topics that the summary counts, by thresholds and rules, can be read from the rows again.

        They cannot if topics are written by rank, or all; and they are never read from CSV.
        """
        return not self.is_ranking and self.to != "csv"


class TaggedRecords(NamedTuple):
    """Records to be written, and what their rows say of them."""

    records: Sequence[Record]
    tags: Sequence[Tags]  # of each record
    reasons: Sequence[str | None]  # for each record, why it gives no evidence for any topic; None if it gives evidence
    terms: TermsOf | None = None  # None: rows have no terms
    names: Mapping[str, str] | None = None  # the names of topics; None: rows have no names
    recalls: Sequence[float] | None = None  # the expected recall of each record
    model: str = ""  # the id of the model that tagged the records

    def rows(self) -> Iterator[tuple[Record, Tags, str | None, float | None]]:
        """Yield each record with its tags, its reason and its expected recall, rounded; None: it has none."""
        return zip(self.records, self.tags, self.reasons, self.rounded_recalls(), strict=True)

    def rounded_recalls(self) -> list[float | None]:
        """Return the expected recall of each record, rounded; None for each record if there are no `recalls`."""
        return (
            [None] * len(self.records) if self.recalls is None else [round(recall, DECIMALS) for recall in self.recalls]
        )


def check_output(settings: OutputSettings) -> None:
    """Raise a TextcatError if settings are invalid, contradict each other, or need a library that is not installed."""
    top, least, all_topics = settings.top, settings.min_probability, settings.all_topics
    taken = next(
        (
            name
            for name in settings.keep_fields
            if settings.to != "jsonl" and name in (*_OF_DOCUMENT, *_OF_TOPIC, *_OF_TOPICS, "terms", RECALL, REASON)
        ),
        "",
    )
    faults = {
        f"Tags cannot be written as {settings.to!r}: choose one of {', '.join(ENCODERS)}.": settings.to not in ENCODERS,
        f"Documents of other languages can be 'rejected' or 'untagged', not {settings.other_languages!r}.": (
            settings.other_languages not in ("rejected", "untagged")
        ),
        f"Tags cannot be compressed as {settings.compress!r}: choose zst.": settings.compress not in ("", "zst"),
        "Parquet is already compressed: leave out --compress.": settings.to == "parquet" and settings.compress,
        "Ask for at least 1 topic, or for all topics, not both.": top is not None and (top < 1 or all_topics),
        f"{settings.explain} terms cannot be written with each topic: give 0 or more.": settings.explain < 0,
        f"{least} is not a probability: give one from 0 to 1.": least is not None and not 0 <= least <= 1,
        f"The field {taken!r} cannot be kept: the output has a column {taken!r} of its own.": taken,
        "The field 'group' cannot be kept: with --duplicates, it is the group of the document's duplicates.": (
            settings.duplicates and FIELD in settings.keep_fields
        ),
        "Fields are kept by their names: name them in place of '*'.": "*" in settings.keep_fields,
        f"A row per document is for CSV, not for {settings.to}: add --to csv.": settings.per_document
        and settings.to != "csv",
        "A row per document has no room for terms: leave out --explain or --per-document.": settings.per_document
        and settings.explain,
        "Ask for a minimal probability, or for all topics, not both.": least is not None and all_topics,
        "Ask for automatic tags, or for a number of topics, or for all, not both.": settings.automatic
        and (top is not None or all_topics),
    }
    for sentence, is_so in faults.items():
        if is_so:
            raise TextcatError(sentence)
    file_format(settings)


def library_versions(settings: OutputSettings) -> dict[str, str]:
    """Return the versions of the libraries that write the output, by name; {} if none is needed."""
    names = ["pyarrow"] if settings.to == "parquet" else ["zstandard"] if settings.compress else []
    return {name: installed_version(name) for name in names}


def _encode_jsonl(tagged: TaggedRecords, settings: OutputSettings) -> bytes:
    """Return a JSON object per record, one per line: its id, source, position, topics, scores and probabilities.

    The object also has the record's date and the model's id, unless they are "". Each topic has its status, if it has
    one, and its name and terms, if they are requested. A document that gives no evidence has its reason.
    """
    lines, keeps_fields = [], bool(settings.keep_fields)
    for record, tags, reason, recall in tagged.rows():
        topics = _topic_objects(record, tags, tagged)
        line: dict[str, Any] = {"id": record.id, "source": record.source, "position": record.position}
        if record.date:
            line["date"] = record.date
        if keeps_fields:
            kept, fields = settings.keep_fields, record.fields or {}  # including fields that only rules use
            line["fields"] = {name: value for name, value in fields.items() if name in kept}
        line["topics"] = topics
        if tagged.model:
            line[MODEL] = tagged.model
        if recall is not None:
            line[RECALL] = recall
        if reason is not None:
            line[REASON] = reason
        try:
            lines.append(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
        except TypeError:  # a file's name may not be valid UTF-8
            line |= {name: escape_undecodable(line[name]) for name in ("id", "source", "date") if name in line}
            lines.append(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
    return b"".join(lines)


def _topic_objects(record: Record, tags: Tags, tagged: TaggedRecords) -> list[dict[str, Any]]:
    topics = [_topic_object(*tag) for tag in tags]
    if (names := tagged.names) is not None:
        topics = [{"topic": tag["topic"], **name_entry(tag["topic"], names), **tag} for tag in topics]
    if tagged.terms is not None:
        for topic, of_topic in zip(topics, _rounded_terms(record, tags, tagged.terms), strict=False):
            topic["terms"] = of_topic
    return topics


def _topic_object(topic: str, score: float, probability: float | None, status: str | None) -> dict[str, Any]:
    tag: dict[str, Any] = {"topic": topic, "score": round(score, DECIMALS)}
    if probability is not None:
        tag["probability"] = round(probability, DECIMALS)
    if status is not None:
        tag["status"] = status
    return tag


def _rounded_terms(record: Record, tags: Tags, terms: TermsOf | None) -> list[dict[str, float]]:
    """Return, for each tag, the rounded contribution of each term to its score; [] if terms are not requested."""
    if terms is None or not tags:
        return []
    contributions = terms(record, [tag[0] for tag in tags])
    return [
        {escape_undecodable(term): round(value, DECIMALS) for term, value in adds_of.items()}
        for adds_of in contributions
    ]


def _kept_cells(record: Record, settings: OutputSettings) -> list[str]:
    """Return the values of a record's fields that `settings.keep_fields` names, each converted to a text."""
    return [text_of_value(value) for value in map((record.fields or {}).get, settings.keep_fields)]


def text_of_value(value: Any) -> str:
    """Return the value of a field as the text of a cell.

    A text stays, a list of texts is joined by "; ", None becomes "", and any other value becomes JSON.
    """
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return "; ".join(value)
    return "" if value is None else value if isinstance(value, str) else orjson.dumps(value).decode()


def _encode_csv(tagged: TaggedRecords, settings: OutputSettings) -> bytes:
    """Return CSV rows: one per document and topic; a document without topics has one row, with an empty topic.

    Dates are written twice: as `time_of` returns them, and as in the record.

    With `settings.per_document`, there is one row per document instead. If terms are requested, a column has a JSON
    object of terms. The last column has the reason of a document that gives no evidence.
    """
    rows, names = io.StringIO(newline=""), tagged.names
    # All texts are quoted, because carriage returns are not quoted otherwise if lines end without one.
    write_row = csv.writer(rows, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC).writerow
    safe = (lambda cell: cell) if settings.no_csv_escape else safe_cell

    for record, tags, reason, recall in tagged.rows():
        when = time_of(record.date)
        dates = "" if when is None else when.isoformat(), safe(record.date)
        place = safe(record.id), safe(record.source), record.position
        of_document = (*place, *dates, tagged.model, *map(safe, _kept_cells(record, settings)))
        of_recall = ("" if recall is None else recall,) if settings.expected_recall else ()
        last = (*of_recall, reason or "")
        if settings.per_document:
            cells = map(safe, map(list_cell, _columns_of(tags, names)))
            write_row((*of_document, *cells, *last))
            continue
        of_topics = [(orjson.dumps(adds_of).decode(),) for adds_of in _rounded_terms(record, tags, tagged.terms)]
        for tag, extra in zip(tags, of_topics or repeat(()), strict=False):
            topic, score, p, status = tag
            name = () if names is None else (safe(names.get(topic, "")),)
            numbers = round(score, DECIMALS), "" if p is None else round(p, DECIMALS)
            write_row((*of_document, safe(topic), *name, *numbers, status or "", *extra, *last))
        if not tags:
            n_empty = 4 + (tagged.terms is not None) + (names is not None)
            write_row((*of_document, *[""] * n_empty, *last))
    return escape_undecodable(rows.getvalue()).encode()


def _columns_of(tags: Tags, names: Mapping[str, str] | None) -> list[list[str]]:
    """Return a document's tags as lists of texts: topics, names, scores, probabilities and statuses.

    If `names` is None, there is no list of names. The list of probabilities is empty if no tag has a probability, and
    the list of statuses if no tag has a status.
    """
    topics = [tag[0] for tag in tags]
    scores = [str(round(tag[1], DECIMALS)) for tag in tags]
    probabilities = ["" if tag[2] is None else str(round(tag[2], DECIMALS)) for tag in tags]
    statuses = [tag[3] or "" for tag in tags]
    named = [] if names is None else [[names.get(topic, "") for topic in topics]]
    return [topics, *named, scores, *(texts if any(texts) else [] for texts in (probabilities, statuses))]


def _encode_parquet(tagged: TaggedRecords, settings: OutputSettings) -> bytes:
    """Return rows for a Parquet file, serialised as an Arrow IPC stream.

    There is one row per document, with a list of its topics; if terms are requested, each topic has a list of its
    terms. A document that gives no evidence has its reason. Missing values, such as a date, a model or a status, are
    null.
    """
    import pyarrow as pa

    records, has_terms = tagged.records, tagged.terms is not None
    topics = [_topic_objects(*pair, tagged) for pair in zip(records, tagged.tags, strict=True)]
    for topic in chain.from_iterable(topics) if has_terms else ():
        topic["terms"] = [{"term": term, "adds": value} for term, value in topic["terms"].items()]
    columns = {
        "id": [escape_undecodable(record.id) for record in records],
        "source": [escape_undecodable(record.source) for record in records],
        "position": [record.position for record in records],
        "date": [time_of(record.date) for record in records],
        "date_text": [escape_undecodable(record.date) or None for record in records],
        MODEL: [tagged.model or None] * len(records),
    }
    cells = [[escape_undecodable(text) for text in _kept_cells(record, settings)] for record in records]
    columns |= dict(zip(settings.keep_fields, map(list, zip(*cells, strict=True)), strict=False))
    columns |= {"topics": topics, REASON: tagged.reasons}
    if settings.expected_recall:
        columns[RECALL] = tagged.rounded_recalls()
    schema = _arrow_schema(settings, has_terms, tagged.names is not None)
    return packed_column(pa, pa.RecordBatch.from_pydict(columns, schema))


def _arrow_schema(settings: OutputSettings, with_terms: bool, with_names: bool) -> Any:
    import pyarrow as pa

    term = pa.struct([("term", pa.string()), ("adds", pa.float64())])
    extra_fields = [("terms", pa.list_(term))] if with_terms else []
    name = [("name", pa.string())] if with_names else []
    numbers = [("score", pa.float64()), ("probability", pa.float64())]
    tag = pa.struct([("topic", pa.string()), *name, *numbers, ("status", pa.string()), *extra_fields])
    types = dict.fromkeys((*_OF_DOCUMENT, *settings.keep_fields), pa.string())
    types |= {"position": pa.int64(), "date": pa.timestamp("us"), "topics": pa.list_(tag)}
    types |= {RECALL: pa.float64()} if settings.expected_recall else {}
    types |= {REASON: pa.string()}
    return pa.schema(types.items())


#: By format, the function that encodes rows.
ENCODERS: dict[str, Callable[[TaggedRecords, OutputSettings], bytes]] = {
    "jsonl": _encode_jsonl,
    "csv": _encode_csv,
    "parquet": _encode_parquet,
}


def file_format(settings: OutputSettings) -> PlainFile:
    """Return the object that builds the output files; raise a TextcatError if its library is not installed."""
    head = _csv_head(settings) if settings.to == "csv" else b""
    if settings.to != "parquet":
        return (ZstandardFile if settings.compress else PlainFile)(settings.suffix, head)
    schema = partial(_arrow_schema, settings, settings.explain > 0, settings.names)
    return ParquetFile(settings.suffix, schema)


def _csv_head(settings: OutputSettings) -> bytes:
    """Return the header line of CSV, with names of columns quoted only where necessary."""
    topic, name, *others = _OF_TOPICS if settings.per_document else _OF_TOPIC
    topic_columns = [topic, *([name] if settings.names else []), *others]
    columns = settings.keep_fields
    safe_columns = columns if settings.no_csv_escape else map(safe_cell, columns)
    line = io.StringIO()
    last = [*(["terms"] if settings.explain else []), *([RECALL] if settings.expected_recall else []), REASON]
    csv.writer(line, lineterminator="\n").writerow([*_OF_DOCUMENT, *safe_columns, *topic_columns, *last])
    return line.getvalue().encode()
