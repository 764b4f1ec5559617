"""Settings of reading: fields are mapped, labels are checked."""

import datetime

import pyarrow
import pyarrow.parquet
import pytest
from cases import every
from read_sources import read
from same_documents import tagged, trained_on, write

import textcat
from textcat.base.errors import TextcatError
from textcat.corpus.catalogue import open_corpus
from textcat.reading import InputSettings, Record, Rejection, find_sources, formats, read_batches, read_documents
from textcat.reading.faults import UnreadableError
from textcat.reading.records import RecordSpan

# Columns and fields

ABSTRACTS = {
    "headline": "Tin up",
    "abstract": "Tin rose.",
    "note": "In May.",
    "codes": "3; 14",
    "part": "train",
    "nr": "7",
}


MAPPED = {
    "text_fields": ("abstract", "note"),
    "id_field": "nr",
    "topics_field": "codes",
    "topics_separator": ";",
    "split_field": "part",
}


@pytest.mark.parametrize("form", ["jsonl", "json", "csv", "tsv", "parquet"])
def test_fields_are_mapped_for_every_format_that_has_them(tmp_path, form):
    path = write(tmp_path, form, ABSTRACTS)
    (document,) = open_corpus(path, settings=InputSettings(**MAPPED)).train
    assert (document.id, document.topics, document.split) == ("7", ("3", "14"), "train")
    assert document.zones == {"title": "", "body": "Tin rose.\nIn May."}
    assert tagged(path, **MAPPED) == [("", "Tin rose.\nIn May.")]
    path = write(tmp_path, form, {"title": "Tin up", **ABSTRACTS})
    for fields in (("title", "abstract", "note"), ("abstract", "title", "note")):
        assert tagged(path, **{**MAPPED, "text_fields": fields}) == [("Tin up", "Tin rose.\nIn May.")]
    assert tagged(path, **{**MAPPED, "text_fields": ("note", "abstract")}) == [("", "In May.\nTin rose.")]


# What is named is what is read: a title, a body or zones beside it, which are read by default, say something else.
BESIDE = {"id": "1", "text": "Corn.", "title": "Tin up", "body": "Gold.", "note": "Wheat.", "date": "1987"}


@every("form", ["jsonl", "json", "csv", "tsv", "parquet", "memory", "labelled"])
@every(
    "named, zones",
    [
        (None, {"title": "Tin up", "body": "Corn."}),
        ("text", {"body": "Corn."}),
        ("body", {"body": "Gold."}),
        ("note", {"body": "Wheat."}),
        ("title", {"body": "Tin up"}),
        (("note", "body"), {"body": "Wheat.\nGold."}),
        (("body", "title"), {"title": "Tin up", "body": "Gold."}),
        (("note", "title", "text"), {"title": "Tin up", "body": "Wheat.\nCorn."}),
    ],
)
def test_only_the_fields_that_are_named_are_read_as_text(tmp_path, form, named, zones):
    if form == "memory":
        (document,) = textcat.Corpus.from_records([BESIDE], text=named).train
        read_zones = document.zones
    else:
        path = write(tmp_path, "jsonl" if form == "labelled" else form, BESIDE)
        fields = () if named is None else (named,) if isinstance(named, str) else named
        settings = InputSettings(text_fields=fields)
        (one,) = open_corpus(path, settings=settings).train if form == "labelled" else read(path, text_fields=fields)
        read_zones = one.zones
    assert {zone: text for zone, text in read_zones.items() if text} == zones


@pytest.mark.parametrize("named", ["text", ("text",)])
@pytest.mark.parametrize("zones", [{"lead": "Tin."}, "Tin."])
def test_zones_are_read_only_by_default_or_if_they_are_named(tmp_path, named, zones):
    record = {"text": "Corn.", "zones": zones}
    path = write(tmp_path, "jsonl", record)
    (in_memory,) = textcat.Corpus.from_records([record], text=named).train
    (in_file,) = read(path, text_fields=("text",))
    assert {zone: text for zone, text in in_memory.zones.items() if text} == in_file.zones == {"body": "Corn."}
    (in_memory,) = textcat.Corpus.from_records([record], text="zones").train
    (in_file,) = read(path, text_fields=("zones",))
    expected = zones if isinstance(zones, dict) else {"body": zones}
    assert {zone: text for zone, text in in_memory.zones.items() if text} == in_file.zones == expected


@every("form", ["jsonl", "json", "csv", "tsv", "parquet"])
@every(
    "setting, option",
    [
        ("text_fields", "--text-field"),
        ("id_field", "--id-field"),
        ("topics_field", "--topics-field"),
        ("split_field", "--split-field"),
    ],
)
def test_a_field_that_is_not_there_is_refused_with_those_that_are(tmp_path, form, setting, option):
    path = write(tmp_path, form, ABSTRACTS)
    value = ("abstract", "nosuch") if setting == "text_fields" else "nosuch"
    known = r"'nosuch' \(only headline, abstract, note, codes, part, nr\): name the .* with "
    with pytest.raises(TextcatError, match=known + option):
        open_corpus(path, settings=InputSettings(**{**MAPPED, setting: value}))
    how = InputSettings(**{**MAPPED, setting: value})
    (item,) = [
        item for batch in read_batches(find_sources([path], how), how) for item in formats.batch_records(batch, how)
    ]
    # Labels are no matter of tagging.
    assert isinstance(item, Rejection if setting in ("text_fields", "id_field") else Record)


@every("label", [3, "3", [3], ["3"]])
@every("form", ["jsonl", "json", "parquet"])
def test_whole_numbers_are_names_of_topics(tmp_path, form, label):
    assert trained_on(write(tmp_path, form, {"text": "Tin", "topics": label}))[1] == [("3",)]


# Further fields

STUDY = {"id": "7", "title": "Tin up", "abstract": "Tin rose.", "authors": "J. Doe", "year": "1987", "note": ""}


@every("form", ["jsonl", "json", "csv", "tsv", "parquet"])
@every(
    "asked, names",
    [
        ((), None),
        (("year", "nosuch", "authors"), ["year", "authors"]),
        (("title",), ["title"]),
        (("*",), ["id", "authors", "year", "note"]),
    ],
)
def test_a_record_keeps_the_further_fields_that_are_asked_for(tmp_path, form, asked, names):
    path = write(tmp_path, form, STUDY)
    (record,) = read(path, text_fields=("title", "abstract"), fields=asked)
    assert record.fields == (None if names is None else {name: STUDY[name] for name in names})
    assert record.zones == {"title": "Tin up", "body": "Tin rose."}
    settings = InputSettings(text_fields=("title", "abstract"), fields=asked, topics_field="year")
    (document,) = read_documents([path], settings)
    assert document.fields == record.fields
    assert document.topics == ("1987",)


def test_texts_that_are_joined_are_among_the_further_fields(tmp_path):
    path = write(tmp_path, "csv", STUDY)
    (record,) = read(path, text_fields=("abstract", "note"), fields=("*",))
    assert list(record.fields) == ["id", "title", "abstract", "authors", "year", "note"]


@pytest.mark.parametrize("form", ["jsonl", "json", "parquet"])
def test_further_fields_have_the_values_of_json(tmp_path, form):
    others = {"authors": ["Doe, J.", "Roe, R."], "year": 1987, "open": True, "weight": 0.5, "doi": None}
    (record,) = read(write(tmp_path, form, {"text": "Tin.", **others}), fields=("*",))
    assert record.fields == others
    assert [*map(type, record.fields.values())] == [*map(type, others.values())]


def test_numbers_of_many_digits_and_halves_of_characters_are_kept_in_further_fields(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "Tin.", "n": 12345678901234567890123, "who": ["\\ud83d\\ude00"]}\n')
    (record,) = read(tmp_path / "a.jsonl", fields=("*",))
    assert record.fields == {"n": 12345678901234567890123, "who": ["😀"]}


def test_dates_among_the_further_fields_are_texts(tmp_path):
    table = pyarrow.table({"text": ["Tin."], "day": [datetime.date(1987, 10, 19)], "rate": [float("nan")]})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    (record,) = read(tmp_path / "a.parquet", fields=("*",))
    assert record.fields == {"day": "1987-10-19", "rate": None}


@every(
    "data, offset, remedy",
    [
        ("Weizen, Ernte".encode("utf-16-le"), 0, "name its encoding with --encoding utf-16-le"),
        ("Weizen, Ernte".encode("utf-16-le")[1:], 21, "name its encoding with --encoding utf-16-le"),
        ("Weizen, Ernte".encode("utf-16-be"), 0, "name its encoding with --encoding utf-16-be"),
        (b"Wei\0zen, Ernte", 0, "leave it out or convert it"),
        (b"\0\1\2\3\0\4\5\6\7", 0, "leave it out or convert it"),
    ],
)
def test_utf_16_without_a_mark_is_named_where_its_nuls_are_refused(data, offset, remedy):
    with pytest.raises(UnreadableError, match=f"has a NUL byte .*: {remedy}"):
        RecordSpan(1, offset, data).text(InputSettings())
