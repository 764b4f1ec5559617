"""Options for files of a pattern, and usual names of fields in JSON."""

import json
import tracemalloc

import pytest
from cases import every
from commands import Run

import textcat
from textcat import InputSettings, TextcatError
from textcat.reading import Rejection, find_sources, read_batches
from textcat.reading.formats import batch_records
from textcat.reading.whole import read_records

LINES = '{"id": "a", "text": "gold rose", "topics": ["gold"]}\n{"id": "b", "text": "tin fell", "topics": ["tin"]}\n'
TABLE = "nr;summary_en;subjects\n1;lead rose;lead\n2;zinc fell;zinc\n".replace(";", ",")
RIS = "TY  - JOUR\nID  - r\nTI  - Iron in pots\nKW  - iron\nER  - \n"
FOR_CSV = ("*.csv", (("text_fields", ("summary_en",)), ("topics_field", "subjects"), ("id_field", "nr")))


@pytest.fixture
def mixed(tmp_path):
    folder = tmp_path / "mixed"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.jsonl").write_text(LINES)
    (folder / "deep" / "b.csv").write_text(TABLE)
    (folder / "c.ris").write_text(RIS)
    (folder / "notes.txt").write_text("no document")
    (folder / "README.md").write_text("about")
    return folder


def read(folder, settings):
    batches = read_batches(find_sources([str(folder)], settings), settings)
    return [item for batch in batches for item in batch_records(batch, settings)]


def test_all_files_of_a_mixed_folder_train_a_model_and_what_is_left_out_is_told(mixed, caplog):
    corpus = textcat.open_corpus(mixed, settings=InputSettings(for_files=(FOR_CSV,)))
    topics = {document.id: document.topics for document in corpus.train}
    assert topics == {"a": ("gold",), "b": ("tin",), "1": ("lead",), "2": ("zinc",), "r": ("iron",)}
    assert "1 of 5 files are not read, as the others are read as records: notes.txt." in caplog.text
    assert "--for 'notes.txt --format text'" in caplog.text
    caplog.clear()
    skipped = ("notes.txt", (("skip", True),))
    assert textcat.open_corpus(mixed, settings=InputSettings(for_files=(FOR_CSV, skipped))).train == corpus.train
    assert "not read" not in caplog.text
    wanted = ("notes.txt", (("format", "lines"),))
    assert len(textcat.open_corpus(mixed, settings=InputSettings(for_files=(FOR_CSV, wanted))).train) == 6


def test_a_table_with_other_columns_names_the_remedy_and_costs_no_other_file(mixed):
    items = read(mixed, InputSettings())
    (fault,) = [item for item in items if isinstance(item, Rejection)]
    assert "name the texts' column with --text-field (in some files only, with --for)" in fault.reason
    found = read(mixed, InputSettings(for_files=(FOR_CSV,)))
    assert [item.id for item in found if item.source.endswith("b.csv")] == ["1", "2"]
    assert len(found) == len(items) + 1
    with pytest.raises(TextcatError, match=r"b\.csv in .*mixed has no column 'text'"):
        textcat.open_corpus(mixed)


def test_the_last_pattern_counts_and_wrong_values_are_told(mixed):
    settings = InputSettings(for_files=(FOR_CSV, ("deep/*.csv", (("id_field", "subjects"),))))
    assert [item.id for item in read(mixed, settings) if item.source.endswith("b.csv")] == ["lead", "zinc"]
    with pytest.raises(TextcatError, match="There is no format 'nix'"):
        find_sources([str(mixed)], InputSettings(for_files=(("*.csv", (("format", "nix"),)),)))


def test_the_command_takes_options_for_files_and_the_model_finds_its_corpus_again(mixed, tmp_path, capsys, monkeypatch):
    run = Run(capsys, monkeypatch)
    options = ("--for", "*.csv --text-field summary_en --topics-field=subjects --id-field nr")
    run("train", mixed, "--out", tmp_path / "model", *options, "--for", "notes.txt --skip")
    assert run.code == 0, run.err
    assert "not read" not in run.err
    run("evaluate", tmp_path / "model")
    assert "no column" not in run.err
    for value, sentence in (
        ("*.csv", "--for '*.csv' has no options: write --for '*.csv --text-field abstract'"),
        ("*.csv --nix x", "'--nix' is none of its options, or has no value"),
        ("*.csv --id-field", "'--id-field' is none of its options, or has no value"),
        ("*.csv --for x", "'--for' is none of its options, or has no value"),
        ("*.csv 'x", "--for takes a pattern and options"),
    ):
        assert sentence in run.misuses("train", mixed, "--for", value)


def test_usual_names_of_fields_in_json_are_found_and_it_is_said(tmp_path, caplog):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"headline": "Tin up", "story": "Tin rose.", "category": "tin", "nr": 7}) + "\n")
    (document,) = textcat.open_corpus(path).train
    assert (document.id, document.zones, document.topics) == ("7", {"title": "Tin up", "body": "Tin rose."}, ("tin",))
    assert "text from 'story', title from 'headline', id from 'nr'" in caplog.text
    assert "topics from 'category'" in caplog.text


COLUMNS = [
    ["ID", "Title", "text", "topics", "Date", "Split"],
    [" id", "TITLE", "Text", "Topics", "\ufeffdate", "split "],
    ["ｉｄ", "title", "text", "topics", "Ｄａｔｅ", "SPLIT"],
]


@pytest.mark.parametrize("form", ["csv", "jsonl", "json"])
@every("names", COLUMNS)
def test_columns_of_default_names_in_another_case_are_read_and_it_is_said(form, names, tmp_path, caplog):
    rows = [["a", "Tin", "It rose.", "tin", "1848-03-05", "train"], ["b", "Zinc", "It fell.", "zinc", "1848", "test"]]
    path = tmp_path / f"{names[1]}.{form}"
    objects = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
    whole = {
        "csv": "\n".join(map(",".join, [names, *rows])),
        "jsonl": "\n".join(objects),
        "json": f"[{','.join(objects)}]",
    }
    path.write_text(whole[form], encoding="utf-8")
    corpus = textcat.open_corpus(path)
    assert [(d.id, d.zones["title"], d.zones["body"], d.topics, d.date) for d in (*corpus.train, *corpus.test)] == [
        ("a", "Tin", "It rose.", ("tin",), "1848-03-05"),
        ("b", "Zinc", "It fell.", ("zinc",), "1848"),
    ]
    assert f"date from {names[4]!r}" in caplog.text
    caplog.clear()
    read = [*read_records([str(path)], InputSettings())]
    assert [(record.id, record.zones["title"], record.date) for record in read] == [
        ("a", "Tin", "1848-03-05"),
        ("b", "Zinc", "1848"),
    ]


def test_names_of_fields_take_no_memory_however_many_and_long_they_are(tmp_path):
    path, other, long = tmp_path / "a.jsonl", tmp_path / "b.jsonl", "n" * 100_000
    lines = [json.dumps({"text": "It rose.", **{f"{long}{i}-{k}": "" for k in range(2)}}) for i in range(200)]
    path.write_text("\n".join(lines))
    other.write_text('{"text": "It rose."}')
    assert len([*read_records([str(other)], InputSettings())]) == 1
    tracemalloc.start()
    assert len([*read_records([str(path)], InputSettings())]) == 200  # with 40 MB of names
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 4_000_000


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@every("title", ["Title", "Headline"])
def test_a_title_of_another_name_is_kept_under_it_where_it_is_asked_for(form, title, tmp_path):
    path = tmp_path / f"{title}.{form}"
    whole = {"csv": f"Text,{title}\nIt rose.,Tin\n", "jsonl": json.dumps({"Text": "It rose.", title: "Tin"})}
    path.write_text(whole[form])
    (record,) = read_records([str(path)], InputSettings(fields=(title,)))
    assert (record.fields, record.zones) == ({title: "Tin"}, {"title": "Tin", "body": "It rose."})


def test_a_date_that_is_no_number_is_none(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "a", "date": NaN}\n{"text": "b", "date": 1848.0}')
    assert [record.date for record in read_records([str(tmp_path / "a.jsonl")], InputSettings())] == ["", "1848"]


def test_fields_of_default_names_in_another_case_are_others_if_their_values_cannot_be_read(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    row = {"ID": 1.5, "Title": 7, "Split": 0.5, "text": "It rose.", "topics": "tin"}
    (tmp_path / "a.jsonl").write_text(json.dumps(row))
    parquet.write_table(pa.Table.from_pylist([row]), tmp_path / "a.parquet")
    for name in ("a.jsonl", "a.parquet"):
        (document,) = textcat.open_corpus(tmp_path / name).train
        assert ([*filter(None, document.zones.values())], document.topics) == (["It rose."], ("tin",))
        with pytest.raises(TextcatError, match="ID"):  # it was asked for
            textcat.open_corpus(tmp_path / name, settings=InputSettings(id_field="ID"))


def test_a_column_of_a_default_name_is_not_replaced_nor_is_one_of_two_others_taken(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,ID,text,topics,Date,DATE\na,x,It rose.,tin,1848,1849\n")
    (document,) = textcat.open_corpus(path).train
    assert (document.id, document.date) == ("a", "")


@pytest.mark.parametrize(
    ("fields", "zones", "topics"),
    [
        ({"text": "Tin rose.", "section": "x"}, {"title": "", "body": "Tin rose."}, ()),
        ({"text": "Tin rose.", "topics": [], "label": "x"}, {"title": "", "body": "Tin rose."}, ()),
        ({"title": "Tin", "abstract": "It rose.", "topics": ["tin"]}, {"title": "Tin", "body": "It rose."}, ("tin",)),
        ({"title": "Tin", "story": "x", "abstract": "y", "topics": ["a"]}, {"title": "Tin", "body": ""}, ("a",)),
    ],
)
def test_fields_are_guessed_only_where_the_default_ones_are_missing(tmp_path, fields, zones, topics):
    other = {"id": "o", "text": "other", "topics": ["o"]}
    (tmp_path / "a.jsonl").write_text(json.dumps(other) + "\n" + json.dumps(fields) + "\n")
    document = textcat.open_corpus(tmp_path / "a.jsonl").train[1]
    assert (document.zones, document.topics) == (zones, topics)


@pytest.mark.parametrize("form", ["jsonl", "json"])
@pytest.mark.parametrize(
    ("records", "topics"),
    [
        ([{"category": "tin"}, {}], [("tin",), ()]),
        ([{"Label": None}, {"Label": "tin"}], [(), ("tin",)]),
        ([{"cats": {"tin": 1, "zinc": 0}, "labelled_for": ["tin"]}, {}], [("tin",), ()]),
        ([{"label": "zinc"}, {"topics": "tin"}], [(), ("tin",)]),
        ([{"section": {"no": 3.5}}, {"topics": "tin"}], [(), ("tin",)]),
        ([{"topics": None, "label": "zinc"}, {"label": "zinc"}], [(), ()]),
    ],
)
def test_the_only_field_with_a_usual_name_has_the_topics_if_no_record_has_the_default_one(
    tmp_path, form, records, topics
):
    corpus = textcat.open_corpus(write_records(tmp_path, form, records))
    assert [document.topics for document in corpus.train] == topics


@pytest.mark.parametrize("form", ["jsonl", "json"])
@pytest.mark.parametrize(
    "records",
    [
        [{"label": "tin", "category": "metal"}] * 2,
        [{"label": "tin"}, {"category": "metal"}],
        [{"label": "tin"}, {"label": "zinc", "category": None}],
        [{"label": "tin"}, {"category": []}, {}],
        [{"label": [[0, 4, "plant"]]}, {"category": "metal"}],
    ],
)
def test_of_several_fields_that_may_have_the_topics_one_must_be_named(tmp_path, form, records):
    path = write_records(tmp_path, form, records)
    with pytest.raises(TextcatError, match=r"topics in 'label' or 'category': name .* --topics-field"):
        textcat.open_corpus(path)
    named = textcat.open_corpus(path, settings=InputSettings(topics_field="category"))
    assert len(named.train) == len(records)


def test_files_may_have_their_topics_in_different_fields_if_both_are_named(tmp_path):
    for name, field in (("a", "label"), ("b", "category")):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"text": "Tin rose.", field: name}) + "\n")
    fields = (("a.jsonl", (("topics_field", "label"),)), ("b.jsonl", (("topics_field", "category"),)))
    assert textcat.open_corpus(tmp_path, settings=InputSettings(for_files=fields)).topics == ("a", "b")
    assert textcat.open_corpus(tmp_path, settings=InputSettings(for_files=fields[:1])).topics == ("a", "b")


def test_a_field_that_cannot_hold_topics_is_told_with_its_record(tmp_path):
    path = write_records(tmp_path, "jsonl", [{"label": "tin"}, {"label": [[0, 4, "plant"]]}])
    with pytest.raises(TextcatError, match=r"a\.jsonl:2 has the label .* spans label parts"):
        textcat.open_corpus(path)


@pytest.mark.parametrize("form", ["jsonl", "csv"])
@pytest.mark.parametrize("fields", [("content", "review"), ("Text", "TEXT")])
def test_of_several_fields_that_may_have_the_text_one_must_be_named(tmp_path, form, fields):
    record = dict.fromkeys(fields, "Tin rose.") | {"topics": "tin"}
    path = tmp_path / f"a.{form}"
    rows = (record.keys(), record.values())
    path.write_text(json.dumps(record) if form == "jsonl" else "\n".join(map(",".join, rows)) + "\n")
    with pytest.raises(TextcatError, match=rf"'{fields[0]}' or '{fields[1]}'.*: name the texts' .* --text-field"):
        textcat.open_corpus(path)


def test_a_table_names_the_columns_that_may_have_the_topics(tmp_path):
    (tmp_path / "a.csv").write_text("text,label,category\nTin,tin,metal\n")
    with pytest.raises(TextcatError, match=r"and 'label' or 'category' may hold the topics: name .* --topics-field"):
        textcat.open_corpus(tmp_path / "a.csv")


def write_records(folder, form, records):
    """Write records with a text to a file of JSON or JSON Lines; return its path."""
    path, records = folder / f"a.{form}", [{"text": "Tin rose."} | record for record in records]
    path.write_text(json.dumps(records) if form == "json" else "\n".join(map(json.dumps, records)))
    return path


def test_who_names_the_field_of_the_text_gets_no_other(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"story": "Tin rose.", "topics": ["tin"]}\n')
    with pytest.raises(TextcatError, match="has no field 'note'"):
        textcat.open_corpus(tmp_path / "a.jsonl", settings=InputSettings(text_fields=("note",)))


def test_a_pattern_that_matches_no_file_is_told(mixed, caplog):
    lost = ("*.xls", (("text_fields", ("x",)),))
    textcat.open_corpus(mixed, settings=InputSettings(for_files=(FOR_CSV, lost, ("*.bak", (("skip", True),)))))
    told = [message for message in caplog.messages if "is matched by --for" in message]
    assert told == [f"No file of {mixed} is matched by --for '*.xls': its options change nothing."]
