"""Documents of records and tables in memory: their fields, and which are refused."""

import json

import pytest
from cases import every

from textcat.base.errors import TextcatError
from textcat.corpus.catalogue import corpus_of
from textcat.corpus.documents import Corpus, Document
from textcat.reading import document_stream

# --- corpora of records and tables -----------------------------------------------------------------------------------


def test_records_have_the_fields_of_json_lines():
    corpus = Corpus.from_records(
        [
            {"id": 7, "title": "Tin up", "body": "Tin rose.", "topics": ["tin", "tin", 3], "date": "1987-03-03"},
            {"text": "Corn fell.", "topics": "corn", "split": "train", "other": object()},
            {"zones": {"body": "Gold.", "lead": "L"}, "topics": None, "split": "test"},
            {"body": "Silver.", "title": float("nan"), "topics": float("nan")},
        ],
        name="own",
    )
    assert corpus.name == "own"
    assert corpus.train == [
        Document("7", {"title": "Tin up", "body": "Tin rose."}, ("tin", "3"), "1987-03-03"),
        Document("2", {"title": "", "body": "Corn fell."}, ("corn",), "", "train"),
        Document("4", {"title": "", "body": "Silver."}),
    ]
    assert corpus.test == [Document("3", {"body": "Gold.", "lead": "L"}, (), "", "test")]
    assert corpus.topics == ("3", "corn", "tin")


@pytest.mark.parametrize("missing", [{}, {"labels": None}, {"labels": float("nan")}])
def test_records_without_topics_among_others_are_told(caplog, missing):
    records = [{"text": f"Corn {n}.", "labels": ["corn"] if n % 3 else []} for n in range(5)]
    Corpus.from_records(records, topics="labels")
    Corpus.from_records([{"text": "Corn."}] * 3)  # unlabelled
    assert caplog.text == ""
    corpus = Corpus.from_records([*records, {"text": "Gold.", **missing}], topics="labels")
    assert corpus.train[5].topics == ()
    assert "1 of 6 records have no value in 'labels' (6), so they count as having no topic" in caplog.text


@pytest.mark.parametrize("said", [{"split": "unused"}, {"labelled_for": ["corn"]}, {"labelled_for": []}])
def test_no_topics_are_missed_in_records_that_are_not_trained_on_or_were_judged(caplog, said):
    labelled = [{"text": f"Corn {n}.", "labels": ["corn"], "split": "train"} for n in range(3)]
    Corpus.from_records([*labelled, {"text": "Gold.", "split": "train", **said}], topics="labels")
    Corpus.from_records([{"text": "Gold.", "split": part} for part in ("train", "unused")])  # unlabelled
    assert caplog.text == ""
    others = [{"text": "Gold.", "split": part} for part in ("unused", "train")]
    Corpus.from_records([*labelled, *others], topics="labels")
    assert "1 of 4 records have no value in 'labels' (5)" in caplog.text


def test_fields_may_have_other_names():
    record = {
        "key": "k",
        "abstract": "About corn.",
        "keywords": "corn",
        "title": "Corn",
        "labels": "a; b;",
        "part": "train",
    }
    corpus = Corpus.from_records(
        [record],
        text=["title", "abstract", "keywords"],
        id="key",
        topics="labels",
        topics_separator=";",
        split="part",
    )
    assert corpus.train == [
        Document("k", {"title": "Corn", "body": "About corn.\ncorn"}, ("a", "b"), split="train"),
    ]


def test_a_table_is_read_by_its_columns():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"text": ["Corn.", None], "title": ["A", "B"], "label": [1, 2], "split": ["train", "test"]}, index=["x", "y"]
    )
    corpus = Corpus.from_frame(frame, topics="label", topic_rule="both", name="own")
    assert (corpus.name, corpus.topics) == ("own", ())
    assert corpus.train == [Document("x", {"title": "A", "body": "Corn."}, ("1",), split="train")]
    assert corpus.test == [Document("y", {"title": "B", "body": ""}, ("2",), split="test")]
    odd = pandas.DataFrame(
        {"text": pandas.array(["Corn.", pandas.NA]), "title": "", "date": pandas.to_datetime(["2024-03-01", None])}
    ).assign(split="dev", topics=[{"corn"}, ("corn", "tin")])
    corn, tin = Corpus.from_frame(odd, split="").train
    assert (corn.topics, corn.date[:10]) == (("corn",), "2024-03-01")
    assert tin == Document("1", {"title": "", "body": ""}, ("corn", "tin"))
    with pytest.raises(TextcatError, match="A list is not a table"):
        Corpus.from_frame([{"text": "a"}])


@every(
    "records, fields, message",
    [
        (["text"], {}, "Record 1 is a str: give a dict of fields"),
        ([{"text": "a"}, {"content": "b"}], {}, "Record 2 has no text in 'body': .* content"),
        ([{"text": "a"}], {"text": "abstract"}, "Record 1 has no field 'abstract': .* text"),
        ([{"text": "a"}], {"topics": "labels"}, r"no record has a field 'labels' \(only text\)"),
        ([{"text": 3}], {}, "Record 1 has the text 3: it must be a text"),
        ([{"text": "a", "topics": 2.5}], {}, "Record 1 has the topics 2.5: they must be a list of names, or one name"),
        ([{"text": "a", "topics": ["a", True]}], {}, "they must be a list of names, or one name"),
        ([{"text": "a", "topics": [""]}], {}, "they must be a list of names, or one name"),
        ([{"text": "a", "topics": [None]}], {}, r"Record 1 has the topics \[null\]: they must be a list of names"),
        ([{"text": "a", "split": "dev"}], {}, "Record 1 has the split 'dev': it must be one of train, test, unused"),
        (
            [{"text": "a", "id": "x"}, {"text": "b"}, {"text": "c", "id": "x"}],
            {},
            "Records 1 and 3 have the same id 'x'",
        ),
        ([], {}, "has no training document"),
    ],
)
def test_records_that_cannot_be_read_are_told_by_number(records, fields, message):
    with pytest.raises(TextcatError, match=message):
        Corpus.from_records(records, **fields)


# --- names of rows --------------------------------------------------------------------------------------------------

TWO = {"text": ["Corn.", "Tin."], "topics": ["corn", "tin"]}


@pytest.mark.parametrize(
    ("index", "ids"),
    [
        (None, ["0", "1"]),
        (range(7, 9), ["7", "8"]),
        (["x", "y"], ["x", "y"]),
        ([2.5, -1], ["2.5", "-1.0"]),
        (["x", "x"], ["x (row 0)", "x (row 1)"]),
        (["x", "x", "x (row 0)"], ["x (row 0)", "x (row 1)", "x (row 0) (row 2)"]),
        ([("fr", 3), ("fr", 4)], ["('fr', 3)", "('fr', 4)"]),
    ],
)
def test_a_document_of_a_table_has_the_name_that_the_index_gives_its_row(index, ids):
    pandas = pytest.importorskip("pandas")
    if index is not None and isinstance(index[0], tuple):
        index = pandas.MultiIndex.from_tuples(index)
    frame = pandas.DataFrame({name: [*values, *values[:1]][: len(ids)] for name, values in TWO.items()}, index=index)
    assert [document.id for document in Corpus.from_frame(frame).train] == ids
    assert [document.id for document in document_stream(frame)] == ids
    named = frame.assign(key=[*"abc"][: len(ids)])
    assert [document.id for document in Corpus.from_frame(named, id="key").train] == [*named["key"]]
    assert [document.id for document in Corpus.from_frame(named.rename(columns={"key": "id"})).train] == [*named["key"]]
    if frame.index.nlevels == 1:
        assert [document.id for document in Corpus.from_frame(named.rename_axis("nr"), id="nr").train] == ids
    if len({*ids}) == len({*frame.index}):
        assert [*frame.index.map(str)] == ids


def test_a_document_of_a_table_without_an_index_has_its_row_number_from_0():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(TWO)
    assert [document.id for document in Corpus.from_frame(frame).train] == ["0", "1"]
    with_ids = frame.with_columns(id=polars.Series(["a", None]))
    assert [document.id for document in Corpus.from_frame(with_ids).train] == ["a", "1"]


@pytest.mark.parametrize(
    ("columns", "fields", "message"),
    [
        ({"topics": [["a"], [2.5]]}, {}, r"Row y has the topics \[2.5\]"),
        ({"split": ["train", "dev"]}, {}, "Row y has the split 'dev'"),
        ({"text": ["a", 3]}, {}, "Row y has the text 3"),
        ({"id": ["a", "a"]}, {}, "Rows x and y have the same id 'a'"),
        ({}, {"id": "nosuch"}, "Row x has no field 'nosuch'"),
    ],
)
def test_rows_that_cannot_be_read_are_told_by_the_index(columns, fields, message):
    pandas = pytest.importorskip("pandas")
    with pytest.raises(TextcatError, match=message):
        Corpus.from_frame(pandas.DataFrame({**TWO, **columns}, index=["x", "y"]), **fields)


@pytest.mark.parametrize("as_table", [True, False])
def test_some_columns_of_training_are_not_enough(as_table):
    """With the usual names, title and body, the title alone would be read."""
    pd = pytest.importorskip("pandas")
    records = [{"title": "Tin rose."}, {"title": "Wheat fell."}]
    given = pd.DataFrame(records) if as_table else records
    with pytest.raises(TextcatError, match="no column or field 'body', and the model was trained on 'title', 'body'"):
        [*document_stream(given, trained_on=("title", "body"))]
    assert len([*document_stream(given, "title", trained_on=("title", "body"))]) == 2
    assert len([*document_stream(given, trained_on=("headline", "story"))]) == 2


@pytest.mark.parametrize("missing", [None, float("nan"), ""])
@pytest.mark.parametrize("in_file", [False, True])
def test_records_without_a_split_among_others_are_told(tmp_path, caplog, missing, in_file):
    records = [
        {"id": str(i), "text": f"corn {i}", "topics": "grain", "split": split}
        for i, split in enumerate(["train"] * 4 + ["test"] * 2 + [missing] * 3)
    ]
    source = records
    if in_file:
        text = "".join(json.dumps(record) + "\n" for record in records)
        (source := tmp_path / "some.jsonl").write_text(text.replace("NaN", "null"))
    corpus = corpus_of(source)
    assert (len(corpus.train), len(corpus.test)) == (7, 2)
    assert "3 of 9 documents have no split, and others do" in caplog.text
    caplog.clear()
    corpus_of([{**record, "split": None} for record in records])
    corpus_of(records[:6])
    assert "no split" not in caplog.text


@pytest.mark.parametrize("columns", [{"text": "topics"}, {"text": ["text", "corn"], "topics": ["corn", "rye"]}])
@pytest.mark.parametrize("in_file", [False, True])
def test_a_field_of_texts_and_topics_at_once_is_refused(tmp_path, columns, in_file):
    source = [{"text": "a", "topics": "corn", "corn": 1, "rye": 0}, {"text": "b", "topics": "rye", "corn": 0, "rye": 1}]
    if in_file:
        text = "".join(json.dumps(record) + "\n" for record in source)
        (source := tmp_path / "some.jsonl").write_text(text)
    with pytest.raises(TextcatError, match="cannot hold both the texts and the topics"):
        corpus_of(source, **columns)


@every(
    "several",
    [
        lambda table: table.columns[1:],
        lambda table: table.columns[1:].to_numpy(),
        lambda table: iter(table.columns[1:]),
    ],
)
@every("kind", [lambda table: table, lambda table: table.to_dict("records")])
def test_topics_may_be_named_by_a_part_of_the_columns_of_a_table(several, kind):
    table = pytest.importorskip("pandas").DataFrame({"text": ["a", "b"], "corn": [1, 0], "tin": [1, 1]})
    corpus = Corpus.from_records(kind(table), topics=several(table))
    assert [document.topics for document in corpus.train] == [("corn", "tin"), ("tin",)]
