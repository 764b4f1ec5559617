"""Tags of records → blocks of rows of JSON Lines, CSV or Parquet, as bytes that forms.py makes files of."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import orjson

from textcat.reading.records import Record, Rejection

DECIMALS = 4  # of scores and probabilities
COLUMNS = ("id", "source", "position", "topic", "score", "probability")

Given: TypeAlias = Sequence[tuple[str, float, float | None]]
"""The tags of a document: topic, score and probability, or None where the model has no probabilities."""
Terms: TypeAlias = Mapping[str, float]
"""What terms add to a document's score for a topic."""
Encoder: TypeAlias = Callable[[Sequence[Record], Sequence[Given]], bytes]


class OutputSettings(NamedTuple):
    """What is written of each document, and how.

    Parameters
    ----------
    to : {"jsonl", "csv", "parquet"}
    compress : {"", "zst"}
        Not for Parquet, which is compressed in itself.
    top : int, optional
        That many topics, those of highest score, in place of those above their thresholds.
    everything : bool
        All topics.
    explain : int
        So many terms that speak for each topic; for JSON Lines only.
    """

    to: str = "jsonl"
    compress: str = ""
    top: int | None = None
    everything: bool = False
    explain: int = 0

    @property
    def suffix(self) -> str:
        """What the names of the files end in."""
        return f".{self.to}{f'.{self.compress}' if self.compress else ''}"


def encode_jsonl(
    records: Sequence[Record], tags: Sequence[Given], terms: Callable[[Record, str], Terms] | None = None
) -> bytes:
    """Write an object a line: id, source, position, and topics with their scores and probabilities.

    Parameters
    ----------
    records : sequence of Record
    tags : sequence of Given
        One for each record.
    terms : callable, optional
        From a record and a topic to the terms that speak for it, which are then written, too.
    """
    lines = []
    for record, given in zip(records, tags, strict=True):
        topics = [_entry(*tag) for tag in given]
        if terms is not None:
            for entry in topics:
                added = terms(record, entry["topic"])
                entry["terms"] = {name: round(value, DECIMALS) for name, value in added.items()}
        lines.append(_json_line(record.id, record.source, record.position, topics))
    return b"".join(lines)


def _entry(topic: str, score: float, probability: float | None) -> dict[str, Any]:
    if probability is None:
        return {"topic": topic, "score": round(score, DECIMALS)}
    return {"topic": topic, "score": round(score, DECIMALS), "probability": round(probability, DECIMALS)}


def _json_line(id: str, source: str, position: int, topics: list[dict[str, Any]]) -> bytes:
    line = {"id": id, "source": source, "position": position, "topics": topics}
    try:
        return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:  # a file's name that is no UTF-8
        return orjson.dumps({**line, "id": valid(id), "source": valid(source)}, option=orjson.OPT_APPEND_NEWLINE)


def encode_rejection(rejection: Rejection) -> bytes:
    """Write the line of a rejection: source, position, reason, and where its bytes lie."""
    fields = rejection._asdict() | {"source": valid(rejection.source), "reason": valid(rejection.reason)}
    return orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)


def encode_csv(records: Sequence[Record], tags: Sequence[Given]) -> bytes:
    """Write a row per document and topic, and for a document without a topic one in which it is empty."""
    rows = io.StringIO(newline="")
    # All texts are quoted: a carriage return would not be, where lines end without one.
    write = csv.writer(rows, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC).writerow
    for record, given in zip(records, tags, strict=True):
        of_document = (record.id, record.source, record.position)
        for topic, score, probability in given:
            likely = "" if probability is None else round(probability, DECIMALS)
            write((*of_document, topic, round(score, DECIMALS), likely))
        if not given:
            write((*of_document, "", "", ""))
    return valid(rows.getvalue()).encode()


def encode_parquet(records: Sequence[Record], tags: Sequence[Given]) -> bytes:
    """Write a row per document, with a list of its topics, as a stream of Arrow."""
    import pyarrow as pa

    topics = [
        [{"topic": topic, "score": round(score, DECIMALS), "probability": _rounded(p)} for topic, score, p in given]
        for given in tags
    ]
    columns = {
        "id": [valid(record.id) for record in records],
        "source": [valid(record.source) for record in records],
        "position": [record.position for record in records],
        "topics": topics,
    }
    batch = pa.RecordBatch.from_pydict(columns, schema())
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue())


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, DECIMALS)


def schema() -> Any:
    """Return the columns of Parquet, in Arrow's terms."""
    import pyarrow as pa

    tag = pa.struct([("topic", pa.string()), ("score", pa.float64()), ("probability", pa.float64())])
    return pa.schema(
        [("id", pa.string()), ("source", pa.string()), ("position", pa.int64()), ("topics", pa.list_(tag))]
    )


def valid(text: str) -> str:
    """Replace what stands for undecodable bytes of a file's name by escapes: no output can hold it."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


ENCODERS: dict[str, Encoder] = {"jsonl": encode_jsonl, "csv": encode_csv, "parquet": encode_parquet}
