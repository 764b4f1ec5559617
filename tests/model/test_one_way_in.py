"""Measuring, comparing, reporting and explaining take the same corpora, tables, records and files."""

import json

import numpy as np
import pytest

import textcat
from textcat.base.errors import TextcatError

TOPICS = ("fish", "fruit", "tools")
WORDS = {"fish": "cod herring", "fruit": "plum pear", "tools": "saw hammer"}
TRAIN = [{"body": f"{WORDS[TOPICS[k % 3]]} day", "labels": [TOPICS[k % 3]]} for k in range(24)]
# The title has the wrong label: it must not be read where only the body is named.
TEST = [
    {"title": WORDS[TOPICS[(k + 1) % 3]], "body": f"{WORDS[TOPICS[k % 3]]} night", "labels": [TOPICS[k % 3]]}
    for k in range(9)
]
COLUMNS = {"text": "body", "topics": "labels"}
KINDS = ("records", "generator", "pandas", "polars", "jsonl", "corpus")


@pytest.fixture(scope="module")
def taggers():
    return [textcat.train(TRAIN, recipe, **COLUMNS) for recipe in ("paum", "default")]


@pytest.fixture(scope="module")
def folders(tmp_path_factory, taggers):
    folder = tmp_path_factory.mktemp("models")
    return [textcat.save(tagger, folder / str(number)) for number, tagger in enumerate(taggers)]


@pytest.fixture
def source(request, tmp_path):
    """The test documents in one of the shapes that documents have, the columns to name, and the documents' ids."""
    ids = [str(number) for number in range(len(TEST))]
    kind = request.param
    if kind in ("pandas", "polars"):
        library = pytest.importorskip(kind)
        table = library.DataFrame(TEST)
        if kind == "pandas":
            table.index = [f"row {number}" for number in ids]
            ids = [*table.index]
        return table, COLUMNS, ids
    if kind == "jsonl":
        path = tmp_path / "test.jsonl"
        path.write_text("".join(f"{json.dumps({'id': id_, **row})}\n" for id_, row in zip(ids, TEST, strict=True)))
        return path, COLUMNS, ids
    if kind == "corpus":
        ids = [f"t{number}" for number in ids]
        documents = [{**row, "id": id_, "split": "test"} for id_, row in zip(ids, TEST, strict=True)]
        return textcat.Corpus.from_records([*TRAIN, *documents], **COLUMNS), {}, ids
    return (iter(TEST) if kind == "generator" else TEST), COLUMNS, ids


@pytest.mark.parametrize("source", KINDS, indirect=True)
def test_models_are_compared_on_what_they_are_measured_on(taggers, folders, source):
    documents, columns, _ = source
    compared = textcat.compare(folders, documents, n_resamples=100, **columns)
    evaluations = [textcat.evaluate(tagger, TEST, **COLUMNS) for tagger in taggers]
    assert compared == textcat.compare_evaluations(evaluations, n_resamples=100)


@pytest.mark.parametrize("source", KINDS, indirect=True)
def test_a_report_is_written_of_what_a_model_is_measured_on(tmp_path, taggers, folders, source):
    documents, columns, ids = source
    issues, options = tmp_path / "issues.jsonl", {"resamples": 0, "folds": 0, "before": folders[0]}
    textcat.write_report(tmp_path / "r.html", folders[1], documents, label_issues=issues, **columns, **options)
    expected = textcat.Corpus(
        "table",
        [],
        [
            textcat.Document(id_, {"title": "", "body": row["body"]}, tuple(row["labels"]), split="test")
            for id_, row in zip(ids, TEST, strict=True)
        ],
        (),
    )
    textcat.write_report(tmp_path / "s.html", taggers[1], expected, label_issues=tmp_path / "s.jsonl", **options)
    assert issues.read_text() == (tmp_path / "s.jsonl").read_text()
    name = documents.name if isinstance(documents, textcat.Corpus) else "table"
    written, other = ((tmp_path / f"{page}.html").read_text() for page in "rs")
    assert written.replace(name, "table") == other.replace(name, "table")


@pytest.mark.parametrize("source", KINDS, indirect=True)
def test_documents_are_explained_by_name(taggers, folders, source):
    documents, columns, ids = source
    named = {"text": columns["text"]} if columns else {}
    explained = textcat.explain(folders[0], documents, "fish", n=3, **named)
    assert [one.document.id for one in explained] == ids
    for one, row in zip(explained, TEST, strict=True):
        (explanation,) = one.explanations
        assert explanation == taggers[0].explain(row["body"], "fish", n=3)
        assert "night" in explanation.html(one.document)
    if isinstance(documents, list):
        tags = taggers[0].tag([row["body"] for row in TEST])
        by_default = [[one.topic for one in of_document] for _, of_document in textcat.explain(taggers[0], documents)]
        assert by_default == [[tag.topic for tag in of_document] for of_document in tags]


def test_texts_and_a_column_of_texts_are_explained(taggers):
    texts = [row["body"] for row in TEST]
    explained = textcat.explain(taggers[0], texts, ["fish", "tools"])
    assert [one.document.id for one in explained] == [str(number) for number in range(9)]
    assert [len(one.explanations) for one in explained] == [2] * 9
    pandas = pytest.importorskip("pandas")
    column = textcat.explain(taggers[0], pandas.Series(texts, index=[*"abcdefghi"]), "fish")
    assert [one.document.id for one in column] == [*"abcdefghi"]


def test_labels_to_check_have_the_names_of_the_index(tmp_path, taggers):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(TRAIN, index=[f"d{number}" for number in range(24)])
    frame.at["d4", "labels"] = ["tools"]  # which is about fruit
    tagger = textcat.train(frame, "default", **COLUMNS)
    corpus = textcat.Corpus.from_frame(frame, **COLUMNS)
    textcat.write_report(tmp_path / "r.html", tagger, corpus, resamples=0, label_issues=tmp_path / "issues.jsonl")
    assert "d4" in {json.loads(line)["id"] for line in (tmp_path / "issues.jsonl").read_text().splitlines()}
    (neighbour, *_) = tagger.explain("plum pear day", "fruit").documents
    assert neighbour.id in frame.index


def test_what_cannot_be_compared_or_reported_is_refused(tmp_path, taggers):
    for models in (taggers[:1], [], taggers[0], "m"):
        with pytest.raises(TextcatError, match="Fewer than two models cannot be compared: give a list of two or more"):
            textcat.compare(models, TEST, **COLUMNS)
    for options, told in (({"folds": -1}, "folds cannot be -1"), ({"resamples": -5}, "resamples cannot be -5")):
        with pytest.raises(TextcatError, match=told):
            textcat.write_report(tmp_path / "r.html", taggers[0], TEST, **COLUMNS, **options)
    corpus = textcat.Corpus.from_records(TRAIN, **COLUMNS)
    with pytest.raises(TextcatError, match="leave out the columns"):
        textcat.explain(taggers[0], corpus, text="body")
    with pytest.raises(TextcatError, match=r"nosuch.jsonl cannot be read"):
        textcat.explain(taggers[0], "nosuch.jsonl")
    assert not (tmp_path / "r.html").exists()


def test_models_with_other_topics_are_compared_on_those_they_share(taggers, caplog):
    fewer = textcat.train([row for row in TRAIN if row["labels"] != ["tools"]], "paum", **COLUMNS)
    compared = textcat.compare([taggers[0], fewer], TEST, n_resamples=100, **COLUMNS)
    assert "compared on the 2 topics that all models have; left out: 1 of model 1" in caplog.text
    assert {row.topic for row in compared.topics} == {"fish", "fruit"}
    np.testing.assert_array_equal(taggers[0].topics, TOPICS)
