"""Read Parquet files, in which each row is a document; blocks hold rows in Arrow's format."""

import os
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import IO, Any

from textcat.base.errors import TextcatError, install_hint
from textcat.base.surrogates import mark_surrogates
from textcat.reading.annotations import prodigy_labels
from textcat.reading.columns import ColumnNames, columns_among, log_usual_names, titled_zones, without_unreadable
from textcat.reading.compression import check_ratio
from textcat.reading.dates import date_text, iso_date
from textcat.reading.faults import UnreadableError, encoding_error
from textcat.reading.input_settings import InputSettings
from textcat.reading.labels import labels_in, labels_of_fields
from textcat.reading.records import Block, Record, RecordFormat, RecordSpan
from textcat.reading.streams import READ_ERRORS, unreadable

_MOST_ROWS = 8192  # maximum rows of a batch
_LARGEST_BATCH = 64 << 20  # maximum bytes of a batch's rows when repeated values are written out
# Errors of pyarrow for a value that Python cannot hold: bytes that are not UTF-8, a year after 9999, nanoseconds (which
# only pandas can hold), or a time zone that this machine does not know.
_NOT_IN_PYTHON = (ValueError, OverflowError, LookupError, OSError)


def _arrow() -> Any:
    """Import and return pyarrow; raise TextcatError if it is not installed."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError:
        raise TextcatError(
            f"An input is a Parquet file: run `{install_hint('parquet')}` to read it, then start again."
        ) from None
    return pyarrow


def row_blocks(file: IO[bytes], source: str, settings: InputSettings, group: int, row: int) -> Iterator[Any]:
    """Yield blocks of a Parquet file from row number `row` on (from 1), which is in row group `group` (from 0).

    Each block is yielded with the group and the row where the next block begins, and with the fraction of the file's
    rows that have been read.
    """
    pa, done, starts = _arrow(), row - 1, [1]
    try:
        # Without threads and read-ahead, so that memory does not depend on the size of row groups.
        table = pa.parquet.ParquetFile(file, pre_buffer=False, buffer_size=1 << 20)
        which = _columns(pa, table.schema_arrow, settings)
        log_usual_names(source, which, settings)
        kinds = {name: _values(pa, table.schema_arrow.field(name).type) for name in which.used_names()}
        texts = [name for name, kind in kinds.items() if _is_text(pa, kind)]  # labels and dates may be anything else
        # A text that is stored once may occur in many rows. Opening reads the metadata of all groups, once.
        repeated = pa.parquet.ParquetFile(file, pre_buffer=False, buffer_size=1 << 20, read_dictionary=texts)
        about = [table.metadata.row_group(i) for i in range(table.metadata.num_row_groups)]
        check_ratio(sum(group.total_byte_size for group in about), file.seek(0, os.SEEK_END))
        starts = list(accumulate((group.num_rows for group in about), initial=1))
        for number in range(group, len(about)):
            start = starts[number]
            for batch in _rows(pa, table, repeated, number, which.names(), texts, settings):
                chunk_start, start = start, start + batch.num_rows
                if chunk_start >= row:
                    block = Block(source, "parquet", packed_column(pa, batch), chunk_start, -1)
                    done = start - 1
                    yield block, number, start, done / max(done, starts[-1] - 1, 1)
            if start != starts[number + 1]:
                rows = f"{start - starts[number]} rows where it should have {about[number].num_rows}"
                raise ValueError(f"group {number + 1} has {rows}")  # pyarrow ignores this error
    except (pa.ArrowException, *READ_ERRORS) as error:
        fault, n = unreadable(error), starts[-1] - 1
        missing = f", so {n - done:,} of its {n:,} documents are missing" if n else ""
        raise UnreadableError(f"{fault}{missing}", fault.kind, f"{fault.detail}{missing}") from None


def _columns(pa: Any, schema: Any, settings: InputSettings) -> ColumnNames:
    def is_readable(name: str, default: str) -> bool:
        if default == "date" or name in given:
            return True
        kind = _values(pa, schema.field(name).type)
        return _is_text(pa, kind) or (default == "id" and pa.types.is_integer(kind))

    given = {settings.id_field, settings.split_field, *settings.text_fields, *settings.fields}
    which = columns_among(without_unreadable(schema.names, is_readable), settings)
    for name in which.used_names():
        kind = _values(pa, schema.field(name).type)
        if name in (which.date, which.answer):
            continue
        if name in (which.topics, which.labelled_for, *which.topic_fields) and _holds_labels(pa, kind):
            continue
        if not (_is_text(pa, kind) or (name == which.id and pa.types.is_integer(kind))):
            raise UnreadableError(f"has {kind} in the column {name!r}, which is not text: name another column")
    return which


def _values(pa: Any, kind: Any) -> Any:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _holds_labels(pa: Any, kind: Any) -> bool:
    """Return whether values of a type may be labels: see `labels_in`."""
    types = pa.types
    if types.is_struct(kind):
        return True
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _holds_labels(pa, _values(pa, kind.value_type))
    return _is_text(pa, kind) or types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)


def _is_text(pa: Any, kind: Any) -> bool:
    kinds = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view")
    return any(getattr(pa.types, f"is_{name}")(kind) for name in kinds) or pa.types.is_null(kind)


def _rows(
    pa: Any, table: Any, repeated: Any, group: int, names: list[str], texts: list[str], settings: InputSettings
) -> Iterator[Any]:
    """Yield the rows of a group in pieces of about the size of a block, as record batches of Arrow.

    `names` are the columns to read, and `texts` those of them in which `repeated` reads each distinct text once.
    """
    # Columns are not accessed one by one: with damaged metadata, pyarrow may crash.
    about = table.metadata.row_group(group)
    n = min(max(settings.block_bytes * about.num_rows // max(about.total_byte_size, 1), 1), _MOST_ROWS)
    if _longest(pa, repeated, group, texts) * n > _LARGEST_BATCH:
        table = repeated
    return table.iter_batches(batch_size=n, row_groups=[group], columns=names, use_threads=False)


def _longest(pa: Any, table: Any, group: int, names: list[str]) -> int:
    """Return an estimate of the bytes of the longest row of a group, from the longest value of each column.

    The values are taken from the dictionaries that store a column's distinct values.
    """
    first = next(table.iter_batches(batch_size=1, row_groups=[group], columns=names, use_threads=False), None)
    columns = [column for column in (first.columns if first else ()) if pa.types.is_dictionary(column.type)]
    lengths = [pa.compute.max(pa.compute.binary_length(column.dictionary)).as_py() for column in columns]
    return sum(length or 0 for length in lengths)


def packed_column(pa: Any, batch: Any) -> bytes:
    """Serialise a record batch of Arrow as the bytes of an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue())


def _unpacked(pa: Any, block: Block) -> Any:
    with pa.ipc.open_stream(block.data) as stream:
        return stream.read_next_batch()


def _spans(block: Block, _: InputSettings) -> Iterator[RecordSpan]:
    n_rows = _unpacked(_arrow(), block).num_rows
    return (RecordSpan(row, -1, b"") for row in range(block.position, block.position + n_rows))


def _parser(block: Block, settings: InputSettings) -> Callable[[RecordSpan], Record]:
    """Return a function that parses the `RecordSpan` of a row; it raises UnreadableError if the row has no text."""
    pa = _arrow()
    batch = _unpacked(pa, block)
    which = _columns(pa, batch.schema, settings)
    values = {"": [None] * batch.num_rows} | {name: _column(pa, batch, name) for name in which.names()}
    titles, bodies = values[which.title], [values[name] for name in which.body]

    def parse(span: RecordSpan) -> Record:
        i = span.position - block.position
        title, texts = _text(titles[i], settings), [_text(column[i], settings) for column in bodies]
        if not title and all(text is None for text in texts):
            raise UnreadableError("has no text: give it one, or leave it out")
        zones = titled_zones(title or "", [text or "" for text in texts], settings)
        length = sum(_length(text, settings) for text in zones.values())
        if length > settings.max_bytes:
            raise settings.too_long(length)
        name = _name(values[which.id][i], settings)
        fields = {name: _kept(values[name][i], name, settings) for name in which.fields} if which.fields else None
        when = _plain(values[which.date][i], settings)
        date = "" if when is None or isinstance(when, list | dict) else iso_date(str(when))
        if settings.labels is None:
            return Record(name, zones, (), date, fields=fields)
        separator, answer = settings.topics_separator, _decoded(values[which.answer][i], settings)
        if which.topic_fields:
            labels = labels_of_fields({name: _decoded(values[name][i], settings) for name in which.topic_fields})
        else:
            labels = labels_in(_decoded(values[which.topics][i], settings), which.topics, separator)
        labels = prodigy_labels(labels, answer)
        if (names := values[which.labelled_for][i]) is not None:
            names = labels_in(_decoded(names, settings), "labelled_for", separator).topics
            labels = labels._replace(labelled_for=names)
        part = settings.part_in(_text(values[which.split][i], settings) or "")
        return Record(name, zones, labels.topics, date, part, labels.labelled_for, fields)

    return parse


def _kept(value: Any, column: str, settings: InputSettings) -> Any:
    """Convert a value of a column that records keep to JSON; an UnreadableError names the column."""
    try:
        return _plain(value, settings)
    except UnreadableError as fault:
        raise UnreadableError(f"in the column {column!r} {fault}", fault.kind, fault.detail) from None


def _plain(value: Any, settings: InputSettings) -> Any:
    """Convert a value to JSON: dates and the like become strings, and NaN becomes null."""
    if isinstance(value, list):
        return [_plain(item, settings) for item in value]
    if isinstance(value, dict):
        return {name: _plain(item, settings) for name, item in value.items()}
    if value is None or isinstance(value, str | bool | int | float):
        return None if value != value else value
    return _text(value, settings) if isinstance(value, bytes | UnreadableError) else date_text(value)


def _name(value: Any, settings: InputSettings) -> str:
    return str(value) if isinstance(value, int) else _text(value, settings) or ""


def _decoded(value: Any, settings: InputSettings) -> Any:
    """Return the value of a column of labels, whose texts may be bytes."""
    if isinstance(value, list):
        return [_decoded(item, settings) for item in value]
    return _text(value, settings) if isinstance(value, bytes | UnreadableError) else value


def _column(pa: Any, batch: Any, name: str) -> list[Any]:
    """Return a column's values; in place of a value that cannot be read, there is an UnreadableError."""
    column = batch.column(name)
    if pa.types.is_dictionary(column.type):
        values = _items(pa, column.dictionary)
        return [None if i is None else values[i] for i in column.indices.to_pylist()]
    return _items(pa, column)


def _items(pa: Any, column: Any) -> list[Any]:
    try:
        values: list[Any] = column.to_pylist()
    except _NOT_IN_PYTHON:
        return [_item(pa, value) for value in column]
    return values


def _item(pa: Any, value: Any) -> Any:
    try:
        return value.as_py()
    except UnicodeDecodeError as error:
        return UnreadableError(f"is not utf-8 (byte {error.start} of the value): write the file again")
    except _NOT_IN_PYTHON:
        if isinstance(value, pa.StructScalar):
            return {name: _item(pa, part) for name, part in value.items()}
        if isinstance(value, pa.ListScalar):
            return _items(pa, value.values)
        if pa.types.is_temporal(value.type):
            return _time_as_text(pa, value)
        return UnreadableError(f"has a value of the type {value.type}, which Python cannot hold: write it as text")


def _time_as_text(pa: Any, value: Any) -> str | None:
    """Return a time as Arrow writes it, with more digits and years than Python has; in UTC if its zone is unknown.

    None is returned if Arrow cannot write it, either.
    """
    is_stamp = pa.types.is_timestamp(value.type)
    # Arrow says of times without a zone alone that it cannot write them
    if "out of range" in str((value.cast(pa.timestamp(value.type.unit)) if is_stamp else value).cast(pa.string())):
        return None
    try:
        return str(value.cast(pa.string()).as_py())
    except pa.ArrowInvalid:
        return str(value.cast(pa.timestamp(value.type.unit, "UTC")).cast(pa.string()).as_py())


def _text(value: Any, settings: InputSettings) -> str | None:
    if isinstance(value, UnreadableError):
        raise value
    if not isinstance(value, bytes):
        text: str | None = value
        return text
    encoding = settings.encoding or "utf-8"
    try:
        return value.decode(encoding)
    except UnicodeError as error:
        raise encoding_error(encoding, f"{getattr(error, 'start', 0)} of the value") from None


def _length(text: str, settings: InputSettings) -> int:
    # No character has more than four bytes.
    return len(text) if len(text) <= settings.max_bytes // 4 else len(mark_surrogates(text).encode())


FORMAT = RecordFormat(_spans, _parser, "Row {}")
