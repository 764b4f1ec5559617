"""Tags of records → encoded rows of JSON Lines, CSV or Parquet; and what is written of each document."""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain, repeat
from typing import Any, NamedTuple, TypeAlias

import orjson

from textcat.errors import TextcatError
from textcat.folders import installed_version
from textcat.reading import Record, packed_column
from textcat.runs.output import ParquetFile, PlainFile, ZstandardFile
from textcat.surrogates import escape_undecodable

DECIMALS = 4  # of scores and probabilities
_CSV_COLUMNS = "id,source,position,topic,score,probability"  # and terms, if they are asked for

# Of a document: topic, score and probability, or None where the model has no probabilities.
Tags: TypeAlias = Sequence[tuple[str, float, float | None]]
# From a record and topics to what the record's terms add to its score for each topic.
TermsOf: TypeAlias = Callable[[Record, Sequence[str]], Sequence[Mapping[str, float]]]


class OutputSettings(NamedTuple):
    """What is written of each document, and how.

    Parameters
    ----------
    to : {"jsonl", "csv", "parquet"}
        Format of the output.
    compress : {"", "zst"}
        Compression; not for Parquet, which is compressed in itself.
    top : int >= 1, optional
        Write this many topics of each document, those with the highest scores, in place of those above their
        thresholds.
    everything : bool
        Write all topics of each document.
    explain : int >= 0
        Write this many terms that speak for or against each topic.
    topics : tuple of str
        Write only these topics of the model; (): all.
    min_probability : float in [0, 1], optional
        Write the topics of at least this probability, in place of those above their thresholds; with `top`, only those
        of them. For models with calibrated probabilities only.
    """

    to: str = "jsonl"
    compress: str = ""
    top: int | None = None
    everything: bool = False
    explain: int = 0
    topics: tuple[str, ...] = ()
    min_probability: float | None = None

    @property
    def suffix(self) -> str:
        """The ending of the files' names."""
        return f".{self.to}{f'.{self.compress}' if self.compress else ''}"


def check_output(settings: OutputSettings) -> None:
    """Raise a TextcatError for settings that contradict each other, or need a library that is missing."""
    top, least, everything = settings.top, settings.min_probability, settings.everything
    faults = {
        f"Tags cannot be written as {settings.to!r}: choose one of {', '.join(ENCODERS)}.": settings.to not in ENCODERS,
        f"Tags cannot be compressed as {settings.compress!r}: choose zst.": settings.compress not in ("", "zst"),
        "Parquet is already compressed: leave out --compress.": settings.to == "parquet" and settings.compress,
        "Ask for at least 1 topic, or for all scores, not both.": top is not None and (top < 1 or everything),
        f"{least} is not a probability: give one from 0 to 1.": least is not None and not 0 <= least <= 1,
        "Ask for a minimal probability, or for all scores, not both.": least is not None and everything,
    }
    for sentence, is_so in faults.items():
        if is_so:
            raise TextcatError(sentence)
    file_format(settings)


def library_versions(settings: OutputSettings) -> dict[str, str]:
    """Return the versions, by name, of the libraries that the bytes of the output depend on."""
    names = ["pyarrow"] if settings.to == "parquet" else ["zstandard"] if settings.compress else []
    return {name: installed_version(name) for name in names}


def _encode_jsonl(records: Sequence[Record], tags: Sequence[Tags], terms: TermsOf | None = None) -> bytes:
    """Return an object per line: id, source, position, and topics with their scores, probabilities, and terms."""
    lines = []
    for record, tags_of_record in zip(records, tags, strict=True):
        topics = _topic_objects(record, tags_of_record, terms)
        line = {"id": record.id, "source": record.source, "position": record.position, "topics": topics}
        try:
            lines.append(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
        except TypeError:  # a file's name that is no UTF-8
            line |= {"id": escape_undecodable(record.id), "source": escape_undecodable(record.source)}
            lines.append(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
    return b"".join(lines)


def _topic_objects(record: Record, tags: Tags, terms: TermsOf | None) -> list[dict[str, Any]]:
    topics = [_topic_object(*tag) for tag in tags]
    for topic, of_topic in zip(topics, _rounded_terms(record, tags, terms), strict=False):
        topic["terms"] = of_topic
    return topics


def _topic_object(topic: str, score: float, probability: float | None) -> dict[str, Any]:
    if probability is None:
        return {"topic": topic, "score": round(score, DECIMALS)}
    return {"topic": topic, "score": round(score, DECIMALS), "probability": round(probability, DECIMALS)}


def _rounded_terms(record: Record, tags: Tags, terms: TermsOf | None) -> list[dict[str, float]]:
    """Return the contributions of terms to the score of each tag; [] if terms are not requested."""
    if terms is None or not tags:
        return []
    contributions = terms(record, [topic for topic, _, _ in tags])
    return [
        {escape_undecodable(term): round(value, DECIMALS) for term, value in adds_of.items()}
        for adds_of in contributions
    ]


def _encode_csv(records: Sequence[Record], tags: Sequence[Tags], terms: TermsOf | None = None) -> bytes:
    """Return a row per document and topic, and for a document without a topic a row with an empty topic.

    Terms are an object of JSON in the last column.
    """
    rows = io.StringIO(newline="")
    # All texts are quoted: a carriage return would not be, where lines end without one.
    write = csv.writer(rows, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC).writerow
    for record, tags_of_record in zip(records, tags, strict=True):
        of_document = (record.id, record.source, record.position)
        of_topics = [(orjson.dumps(adds_of).decode(),) for adds_of in _rounded_terms(record, tags_of_record, terms)]
        for (topic, score, p), extra in zip(tags_of_record, of_topics or repeat(()), strict=False):
            write((*of_document, topic, round(score, DECIMALS), "" if p is None else round(p, DECIMALS), *extra))
        if not tags_of_record:
            write((*of_document, "", "", "") if terms is None else (*of_document, "", "", "", ""))
    return escape_undecodable(rows.getvalue()).encode()


def _encode_parquet(records: Sequence[Record], tags: Sequence[Tags], terms: TermsOf | None = None) -> bytes:
    """Return a row per document, with a list of its topics, and lists of their terms, as a stream of Arrow."""
    import pyarrow as pa

    topics = [_topic_objects(*pair, terms) for pair in zip(records, tags, strict=True)]
    for topic in chain.from_iterable(topics) if terms is not None else ():
        topic["terms"] = [{"term": term, "adds": value} for term, value in topic["terms"].items()]
    columns = {
        "id": [escape_undecodable(record.id) for record in records],
        "source": [escape_undecodable(record.source) for record in records],
        "position": [record.position for record in records],
        "topics": topics,
    }
    return packed_column(pa, pa.RecordBatch.from_pydict(columns, _arrow_schema(with_terms=terms is not None)))


def _arrow_schema(*, with_terms: bool) -> Any:
    import pyarrow as pa

    term = pa.struct([("term", pa.string()), ("adds", pa.float64())])
    extra_fields = [("terms", pa.list_(term))] if with_terms else []
    tag = pa.struct([("topic", pa.string()), ("score", pa.float64()), ("probability", pa.float64()), *extra_fields])
    types = {"id": pa.string(), "source": pa.string(), "position": pa.int64(), "topics": pa.list_(tag)}
    return pa.schema(types.items())


# From records and their tags, one for each, to rows.
ENCODERS: dict[str, Callable[..., bytes]] = {"jsonl": _encode_jsonl, "csv": _encode_csv, "parquet": _encode_parquet}


def file_format(settings: OutputSettings) -> PlainFile:
    """Return the encoder of rows as the bytes of files; raise a TextcatError if a library for it is missing."""
    if settings.to == "parquet":
        return ParquetFile(settings.suffix, partial(_arrow_schema, with_terms=settings.explain > 0))
    columns = _CSV_COLUMNS + (",terms" if settings.explain else "")
    head = f"{columns}\n".encode() if settings.to == "csv" else b""
    return (ZstandardFile if settings.compress else PlainFile)(settings.suffix, head)
