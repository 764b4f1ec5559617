"""Parquet: rows are documents; what is damaged or no text is rejected."""

import io
import subprocess
import sys

import pyarrow
import pyarrow.parquet
from cases import every
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from textcat.reading import InputSettings, Record, Rejection, batch_records, find_sources, read_batches
from textcat.reading.dates import iso_date

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
        Record("1", {"title": "Tin", "body": "rose"}, source="a", position=1),
        Rejection("a", 2, "Row 2 has no text: give it one, or leave it out.", -1, -1),
        Record("3", {"body": ""}, source="a", position=3),
    ]


@every(
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
        assert "Row 1 is not utf-8 (byte 1 of the value)" in fault.reason
        assert record.zones == {"body": "Tin"}
    table = pyarrow.table({"text": ["Tin"], "picture": pyarrow.array([b"\x89PNG"])})
    (fault,) = place("parquet", written(table), fields=("picture",))
    assert "Row 1 in the column 'picture' is not utf-8 (byte 0 of the value)" in fault.reason
    column = pyarrow.array([b"T\xe9"])
    assert place("parquet", written(pyarrow.table({"text": column})), encoding="latin-1")[0].zones == {"body": "Té"}


@every(
    "table, reason",
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


@every(
    "value, kind",
    [
        ([2024], pyarrow.list_(pyarrow.int64())),
        (["2024"], pyarrow.list_(pyarrow.string(), 1)),
        ({"y": 2024}, pyarrow.struct({"y": pyarrow.int64()})),
        ([("y", "2024")], pyarrow.map_(pyarrow.string(), pyarrow.string())),
    ],
)
@every("date_field", ["date", "when.made"])
def test_a_date_that_is_a_list_or_a_structure_is_none_as_in_json(place, value, kind, date_field):
    table = pyarrow.table({"text": ["Tin rose."], date_field: pyarrow.array([value], kind)})
    (record,) = place("parquet", written(table), date_field=date_field)
    assert (record.zones, record.date) == ({"body": "Tin rose."}, "")


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


TIMES = {
    "2024-05-01T00:00:00.123456789": ([1714521600123456789], pyarrow.timestamp("ns")),
    "2024-04-30T20:00:00.123456789-04:00": ([1714521600123456789], pyarrow.timestamp("ns", "America/New_York")),
    "2024-05-01T00:00:00.123456Z": ([1714521600123456], pyarrow.timestamp("us", "Mars/Phobos")),
    "1970-01-01T00:00:00.000001Z": ([1], pyarrow.timestamp("us", "America")),
    "0000-12-31 23:00:00.000000-0100": ([-62135596800000000], pyarrow.timestamp("us", "Etc/GMT+1")),
    "10000-01-01 00:00:00.000Z": ([253402300800], pyarrow.timestamp("s", "UTC")),
    "0001-01-01T00:00:00+00:00": ([-62135596800], pyarrow.timestamp("s", "Europe/Berlin")),
}


def dated(values, kind):
    """A table of one document with a date, which is also a kept field, alone and inside others."""
    date = pyarrow.array(values, pyarrow.int32() if kind == pyarrow.date32() else pyarrow.int64()).cast(kind)
    packed = pyarrow.ListArray.from_arrays([0, 1], pyarrow.StructArray.from_arrays([date], ["of"]))
    return written(pyarrow.table({"text": ["Tin rose"], "date": date, "dates": packed}))


@every("date", TIMES)
def test_a_time_that_python_cannot_hold_is_read_as_text(place, date):
    (record,) = place("parquet", dated(*TIMES[date]), fields=("date", "dates"))
    assert (record.zones, record.date) == ({"body": "Tin rose"}, date)
    assert record.fields["dates"] == [{"of": record.fields["date"]}]
    assert iso_date(record.fields["date"]) == date


@every("kind", [pyarrow.date32(), *(pyarrow.timestamp(*how) for how in (["ms"], ["us"], ["us", "UTC"]))])
def test_a_time_that_arrow_cannot_write_either_is_null(place, kind):
    value = 10**9 if kind == pyarrow.date32() else 9 * 10**18
    (record,) = place("parquet", dated([value], kind), fields=("date", "dates"))
    assert (record.date, record.fields) == ("", {"date": None, "dates": [{"of": None}]})


def test_nanoseconds_are_read_without_pandas_as_with_it(place, tmp_path):
    date = next(iter(TIMES))
    (record,) = place("parquet", dated(*TIMES[date]), fields=("dates",))
    run = subprocess.run([sys.executable, "-c", _WITHOUT_PANDAS, tmp_path / "a"], capture_output=True, text=True)
    assert run.stdout.splitlines() == [date, str(record.fields)], run.stderr


_WITHOUT_PANDAS = """
import sys

class NoPandas:
    def find_spec(self, name, *_):
        if name == "pandas":
            raise ImportError(name)

sys.meta_path.insert(0, NoPandas())
from textcat.reading import InputSettings, batch_records, find_sources, read_batches

settings = InputSettings(format="parquet", fields=("dates",))
(batch,) = read_batches(find_sources([sys.argv[1]], settings), settings)
(record,) = batch_records(batch, settings)
print(record.date, record.fields, sep="\\n")
"""


def test_a_date_that_is_no_utf8_is_a_rejection(place):
    for kind in (pyarrow.string(), pyarrow.binary()):
        date = pyarrow.Array.from_buffers(kind, 2, pyarrow.array([b"T\xe9", b"2024"]).buffers())
        fault, record = place("parquet", written(pyarrow.table({"text": ["Tin", "rose"], "date": date})))
        assert (type(fault), fault.position, record.date) == (Rejection, 1, "2024")
