"""The same tags in every format; files that other programs read."""

import csv
import io
import json
from datetime import datetime

import pytest
from cases import every
from hypothesis import given
from tagged_files import DATES, documents, file_of

from textcat.base.errors import TextcatError
from textcat.base.surrogates import escape_undecodable
from textcat.reading import Record
from textcat.tagging.output import (
    ENCODERS,
    OutputSettings,
    TaggedRecords,
    check_output,
    file_format,
    library_versions,
)


def expected(documents):
    for record, found in documents:
        topics = [
            {"topic": topic, "score": round(score, 4), "probability": p if p is None else round(p, 4), "status": status}
            for topic, score, p, status in found
        ]
        yield {
            "id": escape_undecodable(record.id),
            "source": escape_undecodable(record.source),
            "position": record.position,
            "date": escape_undecodable(record.date),
            "topics": topics,
        }


@given(documents)
def test_a_line_of_json_holds_a_document(documents):
    lines = [json.loads(line) for line in file_of(documents, OutputSettings()).split(b"\n")[:-1]]
    for line in lines:
        line.setdefault("date", "")
        for topic in line["topics"]:
            for name in ("probability", "status"):
                topic.setdefault(name, None)
    assert lines == list(expected(documents))


@given(documents)
def test_a_row_of_csv_holds_a_topic_of_a_document(documents):
    settings = OutputSettings("csv", no_csv_escape=True)
    rows = list(csv.reader(io.StringIO(file_of(documents, settings).decode(), newline="")))
    columns = ["date", "date_text", "model", "topic", "score", "probability", "status", "reason"]
    assert rows[0] == ["id", "source", "position", *columns]
    wanted = []
    for line in expected(documents):
        dates = [DATES.get(line["date"], ""), line["date"]]
        of_document = [line["id"], line["source"], str(line["position"]), *dates, ""]
        wanted += [
            [
                *of_document,
                tag["topic"],
                str(tag["score"]),
                str("" if tag["probability"] is None else tag["probability"]),
                tag["status"] or "",
                "",
            ]
            for tag in line["topics"]
        ] or [[*of_document, *[""] * 5]]
    assert rows[1:] == wanted


@given(documents)
def test_a_row_of_parquet_holds_a_document(documents):
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    rows = parquet.read_table(io.BytesIO(file_of(documents, OutputSettings("parquet")))).to_pylist()
    for row in rows:
        row["date"] = row["date"].isoformat() if row["date"] else ""
    assert rows == [
        row | {"date": DATES.get(row["date"], ""), "date_text": row["date"] or None, "model": None, "reason": None}
        for row in expected(documents)
    ]


def test_dates_and_the_model_are_in_every_row_of_every_format():
    records = [Record(text, {"body": "corn"}, (), text, source="b", position=n) for n, text in enumerate(DATES, 1)]
    tags, dates = [[("grain", 1.0, None, None)], *[[]] * (len(DATES) - 1)], [*map(escape_undecodable, DATES)]

    def rows(to, **how):
        settings = OutputSettings(to, **how)
        made = file_format(settings)
        encoded = ENCODERS[to](TaggedRecords(records, tags, [None] * len(records), model="0123456789ab"), settings)
        return made.begin() + made.add(encoded) + made.end()

    lines = [json.loads(line) for line in rows("jsonl").splitlines()]
    assert [line.get("date", "") for line in lines] == dates
    assert {line["model"] for line in lines} == {"0123456789ab"}
    for how in ({}, {"per_document": True}):
        table = [*csv.DictReader(io.StringIO(rows("csv", **how).decode()))]
        assert [row["date"] for row in table] == [*DATES.values()]
        assert [row["date_text"] for row in table] == dates
        assert {row["model"] for row in table} == {"0123456789ab"}
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    read = parquet.read_table(io.BytesIO(rows("parquet")))
    times = [datetime.fromisoformat(time) if time else None for time in DATES.values()]
    assert read.column("date").to_pylist() == times
    assert read.column("date_text").to_pylist() == [text or None for text in dates]
    assert {*read.column("model").to_pylist()} == {"0123456789ab"}


def test_terms_that_explain_stand_behind_each_topic_in_every_format():
    record = Record("a", {"body": "corn"}, source="b", position=1)

    def terms(record, topics):
        return [{record.zones["body"]: 0.12345, topic: 1.0} for topic in topics]

    def written(to, records, tags):
        settings, rows = OutputSettings(to, explain=2), TaggedRecords(records, tags, [None] * len(records), terms)
        made = file_format(settings)
        return made.begin() + made.add(ENCODERS[to](rows, settings)) + made.end()

    records, tags = [record, record], [[("grain", 1.0, None, None)], []]
    expected = {"topic": "grain", "score": 1.0, "terms": {"corn": 0.1235, "grain": 1.0}}
    lines = [json.loads(line) for line in written("jsonl", records, tags).splitlines()]
    assert [line["topics"] for line in lines] == [[expected], []]
    first, second = csv.DictReader(io.StringIO(written("csv", records, tags).decode()))
    assert json.loads(first["terms"]) == expected["terms"]
    assert (second["topic"], second["terms"]) == ("", "")
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    rows = parquet.read_table(io.BytesIO(written("parquet", records, tags))).to_pylist()
    ((topic,), none) = (row["topics"] for row in rows)
    assert {each["term"]: each["adds"] for each in topic["terms"]} == expected["terms"]
    assert none == []


def test_what_cannot_be_written_is_refused_before_any_work():
    for output, told in {
        OutputSettings("xml"): "Tags cannot be written as 'xml': choose one of jsonl, csv, parquet.",
        OutputSettings(compress="rar"): "Tags cannot be compressed as 'rar': choose zst.",
        OutputSettings("parquet", "zst"): "Parquet is already compressed: leave out --compress.",
        OutputSettings(top=0): "Ask for at least 1 topic, or for all topics, not both.",
        OutputSettings(top=1, all_topics=True): "Ask for at least 1 topic, or for all topics, not both.",
    }.items():
        with pytest.raises(TextcatError) as error:
            check_output(output)
        assert str(error.value) == told
    check_output(OutputSettings("csv", "zst", top=3))


def test_a_library_that_is_missing_is_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(TextcatError, match=r"pip install 'textcat-margin\[parquet\]'"):
        check_output(OutputSettings("parquet"))
    with pytest.raises(TextcatError, match=r"pip install 'textcat-margin\[zst\]'"):
        check_output(OutputSettings(compress="zst"))


def test_the_versions_of_what_makes_the_bytes_are_told():
    assert library_versions(OutputSettings()) == {}
    assert list(library_versions(OutputSettings(compress="zst"))) == ["zstandard"]
    assert list(library_versions(OutputSettings("parquet"))) == ["pyarrow"]


def cells(documents, **settings):
    encoded = file_of(documents, OutputSettings("csv", **settings)).decode()
    return list(csv.reader(io.StringIO(encoded, newline="")))


@given(documents)
def test_cells_that_a_spreadsheet_would_run_get_an_apostrophe_and_no_others(documents):
    for safe, raw in zip(cells(documents), cells(documents, no_csv_escape=True), strict=True):
        texts = [*zip(safe, raw, strict=True)]
        assert all(one in (other, f"'{other}") for one, other in texts)
        assert not any(one.startswith(("=", "+", "@", "\t", "\r")) for one, _ in texts)


CARRYING = {"title": "Wheat up", "authors": ["A", "B"], "pages": 3, "date": None}
CARRIED = [
    (
        Record("1", {"body": "x"}, fields=CARRYING, source="a.csv", position=1),
        [("corn", 0.5, 0.9, None), ("wheat", 0.25, 0.8, None)],
    ),
    (Record("2", {"body": "x"}, fields={}, source="a.csv", position=2), []),
]


def test_documents_without_an_expected_recall_have_an_empty_cell():
    """Such as those in a language without a model."""
    settings = OutputSettings("csv", expected_recall=True)
    records = [Record("a", {}, source="a.jsonl", position=1), Record("b", {}, source="a.jsonl", position=2)]
    tagged = [("wheat", 1.0, 0.5, "review")], []
    rows = ENCODERS["csv"](TaggedRecords(records, tagged, [None, None]), settings)
    lines = [*csv.reader(io.StringIO((file_format(settings).begin() + rows).decode()))]
    assert lines[0][-3:] == ["status", "expected_recall", "reason"]
    assert [line[-3:] for line in lines[1:]] == [["review", "", ""], ["", "", ""]]
    assert {*map(len, lines)} == {12}


def test_fields_of_records_go_along():
    keep_fields = ("title", "authors", "pages", "none")
    lines = [
        json.loads(line) for line in file_of(CARRIED, OutputSettings(keep_fields=(*keep_fields, "date"))).splitlines()
    ]
    assert [line["fields"] for line in lines] == [CARRYING, {}]
    rows = cells(CARRIED, keep_fields=keep_fields)
    assert rows[0][6:] == [*keep_fields, "topic", "score", "probability", "status", "reason"]
    assert rows[1] == ["1", "a.csv", "1", "", "", "", "Wheat up", "A; B", "3", "", "corn", "0.5", "0.9", "", ""]
    assert rows[3] == ["2", "a.csv", "2", *[""] * 12]
    parquet = pytest.importorskip("pyarrow.parquet", reason="system: pyarrow is not installed")
    table = parquet.read_table(
        io.BytesIO(file_of(CARRIED, OutputSettings("parquet", keep_fields=keep_fields)))
    ).to_pylist()
    assert [row["authors"] for row in table] == ["A; B", ""]


def test_a_row_per_document_has_its_topics_in_one_cell():
    rows = cells(CARRIED, keep_fields=("title",), per_document=True)
    assert rows[0][6:] == ["title", "topics", "scores", "probabilities", "statuses", "reason"]
    assert rows[1:] == [
        ["1", "a.csv", "1", "", "", "", "Wheat up", "corn; wheat", "0.5; 0.25", "0.9; 0.8", "", ""],
        ["2", "a.csv", "2", *[""] * 9],
    ]
    with_status = [(CARRIED[0][0], [("corn", 0.5, 0.9, "review"), ("wheat", 0.25, 0.8, None)])]
    assert cells(with_status, per_document=True)[1][-2] == "review; "


@every(
    "settings, told",
    [
        ({"to": "csv", "keep_fields": ("score",)}, "'score' cannot be kept"),
        ({"keep_fields": ("title", "*")}, "name them in place of"),
        ({"per_document": True}, "for CSV, not for jsonl"),
        ({"to": "csv", "per_document": True, "explain": 2}, "no room for terms"),
    ],
)
def test_columns_that_do_not_go_together_are_refused(settings, told):
    with pytest.raises(TextcatError, match=told):
        check_output(OutputSettings(**settings))
