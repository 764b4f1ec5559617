"""Documents of records and tables in memory: their fields, and which are refused."""

import pytest

from textcat.documents import Corpus, Document
from textcat.errors import TextcatError

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
    assert corpus.train == [Document("1", {"title": "A", "body": "Corn."}, ("1",), split="train")]
    assert corpus.test == [Document("2", {"title": "B", "body": ""}, ("2",), split="test")]
    odd = pandas.DataFrame(
        {"text": pandas.array(["Corn.", pandas.NA]), "title": "", "date": pandas.to_datetime(["2024-03-01", None])}
    ).assign(split="dev", topics=[{"corn"}, ("corn", "tin")])
    corn, tin = Corpus.from_frame(odd, split="").train
    assert (corn.topics, corn.date[:10]) == (("corn",), "2024-03-01")
    assert tin == Document("2", {"title": "", "body": ""}, ("corn", "tin"))
    with pytest.raises(TextcatError, match="A list is not a table"):
        Corpus.from_frame([{"text": "a"}])


@pytest.mark.parametrize(
    ("records", "fields", "message"),
    [
        (["text"], {}, "Record 1 is a str: give a dict of fields"),
        ([{"text": "a"}, {"content": "b"}], {}, "Record 2 has no text in 'body': .* content"),
        ([{"text": "a"}], {"text": "abstract"}, "Record 1 has no field 'abstract': .* text"),
        ([{"text": "a"}], {"topics": "labels"}, "Record 1 has no field 'labels': .* text"),
        ([{"text": 3}], {}, "Record 1 has the text 3: it must be a text"),
        ([{"text": "a", "topics": 2.5}], {}, "Record 1 has the topics 2.5: they must be a list of names, or one name"),
        ([{"text": "a", "topics": ["a", True]}], {}, "they must be a list of names, or one name"),
        ([{"text": "a", "topics": [""]}], {}, "they must be a list of names, or one name"),
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
