"""Parquet: rows are documents; what is damaged or no text is rejected."""

import io

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from textcat.reading import InputSettings, Record, Rejection, batch_records, find_sources, read_batches

# Parquet


def written(table, **how):
    file = io.BytesIO()
    pyarrow.parquet.write_table(table, file, **how)
    return file.getvalue()


def test_rows_are_documents_and_a_null_is_rejected(place):
    table = pyarrow.table(
        {"id": [1, None, 3], "title": ["Tin", None, None], "text": ["rose", None, ""], "x": [[1], [2], []]}
    )
    found = place("parquet", written(table))
    assert found == [
        Record("1", "a", 1, {"title": "Tin", "body": "rose"}),
        Rejection("a", 2, "Row 2 has no text: give it one, or leave it out.", -1, -1),
        Record("3", "a", 3, {"body": ""}),
    ]


@pytest.mark.parametrize(
    "kind",
    [
        pyarrow.large_string(),
        pyarrow.string_view(),
        pyarrow.dictionary(pyarrow.int8(), pyarrow.string()),
        pyarrow.binary(),
    ],
)
def test_texts_of_every_kind_are_read(place, kind):
    column = (
        pyarrow.array([b"Tin", None, b"caf\xc3\xa9"]).cast(kind)
        if kind == pyarrow.binary()
        else pyarrow.array(["Tin", None, "café"]).cast(kind)
    )
    found = place("parquet", written(pyarrow.table({"text": column, "id": column})))
    assert [record.zones["body"] for record in found if isinstance(record, Record)] == ["Tin", "café"]
    assert [record.id for record in found if isinstance(record, Record)] == ["Tin", "café"]


def test_texts_that_are_no_utf8_are_rejected_alone(place):
    text = pyarrow.Array.from_buffers(pyarrow.string(), 2, pyarrow.array([b"T\xe9", b"Tin"]).buffers())
    for column in (text, pyarrow.array([b"T\xe9", b"Tin"])):
        fault, record = place("parquet", written(pyarrow.table({"text": column})))
        assert "Row 1 is not utf-8 (byte 1 of the text)" in fault.reason
        assert record.zones == {"body": "Tin"}
    column = pyarrow.array([b"T\xe9"])
    assert place("parquet", written(pyarrow.table({"text": column})), encoding="latin-1")[0].zones == {"body": "Té"}


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (
            {"id": ["1"], "note": ["Tin"]},
            "The file has no column 'text' (only id, note): name the texts' column with --text-field",
        ),
        ({"text": [1]}, "The file has int64 in the column 'text', which is not text: name another column."),
        (
            {"text": ["a"], "id": [1.5]},
            "The file has double in the column 'id', which is not text: name another column.",
        ),
    ],
)
def test_a_table_without_texts_is_one_rejection(place, table, reason):
    (fault,) = place("parquet", written(pyarrow.table(table)))
    assert (fault.position, fault.reason[: len(reason)]) == (0, reason)


def test_a_text_that_stands_in_many_rows_takes_the_memory_of_one(place):
    table = pyarrow.table({"text": pyarrow.DictionaryArray.from_arrays([0] * 20_000, ["x" * 1_000_000])})
    data = written(table)
    assert len(data) < 200_000
    found = place("parquet", data)
    assert len(found) == 20_000
    assert {len(record.zones["body"]) for record in found} == {1_000_000}
    assert len(place("parquet", data, max_bytes=999_999)) == 20_000


def test_a_damaged_table_is_rejected(place):
    data = written(pyarrow.table({"text": ["Tin rose"] * 10}))
    for broken in (b"", data[:-10], data[4:], b"PAR1" + bytes(len(data) - 8) + b"PAR1"):
        (fault,) = place("parquet", broken)
        assert "is damaged or incomplete" in fault.reason


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_table_with_changed_bytes_is_no_crash(place, data):
    table = bytearray(written(pyarrow.table({"id": range(50), "text": ["Tin rose"] * 50})))
    for place_, byte in data.draw(st.lists(st.tuples(st.integers(0, len(table) - 1), st.integers(0, 255)), max_size=3)):
        table[place_] = byte
    place("parquet", bytes(table))


def test_what_a_file_says_of_its_groups_is_read_twice_however_many_they_are(tmp_path, monkeypatch):
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"text": ["Tin rose."] * 50}), path, row_group_size=1)
    opened = []
    file = pyarrow.parquet.ParquetFile
    monkeypatch.setattr(pyarrow.parquet, "ParquetFile", lambda *given, **how: opened.append(how) or file(*given, **how))
    how = InputSettings()
    batches = read_batches(find_sources([path], how), how)
    assert sum(1 for batch in batches for _ in batch_records(batch, how)) == 50
    assert len(opened) <= 2
