"""Tables of pandas and polars: read by their columns, answered in kind; what is wrong in them is told by row."""

import json
import subprocess
import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from cases import every

import textcat
from textcat.base.errors import TextcatError
from textcat.base.frames import Frame, answer_in_kind, is_missing, is_table

COLUMNS = {
    "headline": ["Corn up", "Gold down", "Wheat late", "Silver steady"] * 3,
    "story": ["Corn and wheat rose.", "Gold fell.", "The harvest of wheat is late.", "Silver and gold rested."] * 3,
    "section": ["grain", "metal", "grain", "metal"] * 3,
    "grain": [1, 0, 1, 0] * 3,
    "metal": [False, True, False, True] * 3,
}
TEXT = ("headline", "story")


@pytest.fixture(params=["pandas", "polars"])
def library(request):
    return pytest.importorskip(request.param)


@pytest.fixture
def table(library):
    table = library.DataFrame(COLUMNS)
    if library.__name__ == "pandas":
        table.index = [f"row {number}" for number in range(len(table))]
    return table


@pytest.fixture(scope="module")
def tagger():
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)]
    return textcat.train(rows, "paum", text=TEXT, topics="section")


def test_a_table_or_a_column_is_known_by_its_type_and_nothing_else_is_one(library, table):
    assert Frame.of(table) == (table, library.__name__, False)
    assert Frame.of(table["story"])[1:] == (library.__name__, True)
    assert [Frame.of(other) for other in (["text"], {"text": "a"}, "text", None, np.zeros(3))] == [None] * 5
    assert is_table(table)
    assert not is_table([{"text": "a"}])


def test_neither_library_is_imported_unless_the_user_gave_a_table_of_it():
    program = (
        "import sys\n"
        "from textcat.base.frames import Frame, answer_in_kind, is_table\n"
        "assert not is_table(['corn']) and Frame.of('corn') is None and answer_in_kind(['corn'], 1, ['a']) == 1\n"
        "assert 'pandas' not in sys.modules\n"  # which scikit-learn imports by itself
        "import textcat\n"
        "tagger = textcat.train([{'text': 'corn', 'topics': 'a'}, {'text': 'gold', 'topics': 'b'}], 'paum')\n"
        "tagger.predict(['corn']), tagger.tag(['corn'])\n"
        "assert 'polars' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@every("value, is_one", [(None, True), (float("nan"), True), (np.float32("nan"), True), ("", False), (0, False)])
def test_none_and_nan_stand_for_no_value(value, is_one):
    assert is_missing(value) is is_one


def test_a_table_trains_the_model_that_its_records_train(table, tagger):
    of_table = textcat.train(table, "paum", text=TEXT, topics="section")
    assert (of_table.topics, of_table.facts.train_documents) == (("grain", "metal"), 12)
    np.testing.assert_array_equal(of_table.scorer.weights, tagger.scorer.weights)
    in_columns = textcat.train(table, "paum", text=[*TEXT], topics=["metal", "grain"])
    np.testing.assert_array_equal(in_columns.scorer.weights, tagger.scorer.weights)


LEAKY = {
    "title": ["grain", "metal", "grain", "metal"] * 3,  # which holds the label
    "body": COLUMNS["story"],
    "topics": COLUMNS["section"],
}


@pytest.fixture(scope="module")
def of_bodies():
    """A tagger of a table that has no column but the bodies."""
    rows = [dict(zip(("body", "topics"), row, strict=True)) for row in zip(LEAKY["body"], LEAKY["topics"], strict=True)]
    return textcat.train(rows, "paum")


@pytest.mark.parametrize("kind", ["pandas", "polars", "records", "generator", "csv", "jsonl"])
def test_a_title_beside_the_column_that_is_named_changes_neither_training_nor_scores(tmp_path, of_bodies, kind):
    rows = [dict(zip(LEAKY, row, strict=True)) for row in zip(*LEAKY.values(), strict=True)]
    if kind in ("pandas", "polars"):
        library = pytest.importorskip(kind)
        leaky = library.DataFrame(LEAKY)
    elif kind in ("csv", "jsonl"):
        leaky = tmp_path / f"a.{kind}"
        lines = (
            map(json.dumps, rows)
            if kind == "jsonl"
            else ["title,body,topics", *(",".join(row.values()) for row in rows)]
        )
        leaky.write_text("\n".join(lines))
    else:
        leaky = rows
    source = iter(leaky) if kind == "generator" else leaky
    tagger = textcat.train(source, "paum", text="body")
    np.testing.assert_array_equal(tagger.scorer.weights, of_bodies.scorer.weights)
    expected = of_bodies.scores(LEAKY["body"])
    if kind not in ("csv", "jsonl"):
        np.testing.assert_array_equal(np.asarray(tagger.scores(leaky, text="body")), expected)
    for named in ({"text": "body"}, {}):  # what training named is the default
        assert textcat.evaluate(tagger, rows, **named).bands == textcat.evaluate(of_bodies, rows, text="body").bands


def test_the_columns_that_training_named_are_those_of_scores_until_others_are_named(tmp_path, of_bodies):
    rows = [dict(zip(LEAKY, row, strict=True)) for row in zip(*LEAKY.values(), strict=True)]
    tagger = textcat.train(rows, "paum", text=["body"])
    textcat.save(tagger, tmp_path / "model")
    for one in (tagger, textcat.load(tmp_path / "model")):
        assert one.facts.text_columns == ("body",)
        np.testing.assert_array_equal(one.scores(rows), of_bodies.scores(LEAKY["body"]))
        assert one.tag(rows) == of_bodies.tag(LEAKY["body"])
        assert one.explain(rows[0], "grain").score == of_bodies.explain(LEAKY["body"][0], "grain").score
        titles = np.asarray(one.scores(rows, text="title"))
        np.testing.assert_array_equal(titles, of_bodies.scores(LEAKY["title"]))
        renamed = [{"title": row["title"], "text": row["body"]} for row in rows]  # which have not what was named
        np.testing.assert_array_equal(one.scores(renamed), of_bodies.scores(renamed))
    assert of_bodies.facts.text_columns == ()


@pytest.mark.parametrize("text", [[], (), 3, [None]])
def test_names_of_columns_that_are_none_are_refused(of_bodies, text):
    for ask in (textcat.train, of_bodies.scores, partial(textcat.evaluate, of_bodies)):
        with pytest.raises(TextcatError, match=r"Texts cannot be in the columns .*: give one name or a list of names"):
            ask([{"body": "corn", "topics": "grain"}], text=text)


@pytest.mark.parametrize("names", [[0, 1], [("a", "text"), ("a", "topics")]])
def test_columns_that_are_not_called_by_texts_are_to_be_renamed(names):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame([["corn", "grain"]])
    table.columns = pd.MultiIndex.from_tuples(names) if isinstance(names[0], tuple) else names
    with pytest.raises(TextcatError, match=r"not all called by texts: rename them"):
        textcat.train(table, text="a")
    with pytest.raises(TextcatError, match=r"which are texts; rename columns"):
        textcat.train(table, text=names[0] if names[0] == 0 else names[:1])


def test_answers_to_a_table_are_tables_of_its_library_with_its_index_and_a_column_per_topic(library, table, tagger):
    texts = [f"{row[0]}\n{row[1]}" for row in zip(COLUMNS["headline"], COLUMNS["story"], strict=True)]
    for ask in (tagger.scores, tagger.predict_proba, tagger.predict):
        answer = ask(table, text=TEXT)
        assert isinstance(answer, library.DataFrame)
        assert [*answer.columns] == ["grain", "metal"]
        plain = ask(texts)
        assert isinstance(plain, np.ndarray)
        np.testing.assert_array_equal(answer.to_numpy(), plain)
        assert answer.to_numpy().dtype == plain.dtype
        if library.__name__ == "pandas":
            assert answer.index.equals(table.index)
        assert ask(table[:0], text=TEXT).shape == (0, 2)
    assert tagger.predict(texts).tolist() == tagger.decisions.decide(tagger.scores(texts)).tolist()
    np.testing.assert_array_equal(tagger.scores(table["story"]).to_numpy(), tagger.scores(COLUMNS["story"]))


def test_tags_of_a_table_become_a_long_table_by_its_index(library, table, tagger):
    tags = tagger.tag(table[:3], text=TEXT, all_topics=True)
    assert tags == tagger.tag([f"{row[0]}\n{row[1]}" for row in table[:3][[*TEXT]].to_numpy()], all_topics=True)
    long = tags.to_frame()
    assert isinstance(long, library.DataFrame)
    expected = [(number, *tag[:3]) for number, of_document in enumerate(tags) for tag in of_document]
    if library.__name__ == "pandas":
        assert long.index.tolist() == [f"row {number}" for number, *_ in expected]
        long = long.assign(index=[number for number, *_ in expected])
    assert [*long.columns[:5]] == (
        ["index", "topic", "name", "score", "probability"]
        if library.__name__ == "polars"
        else ["topic", "name", "score", "probability", "index"]
    )
    rows = zip(*(long[name] for name in ("index", "topic", "score", "probability")), strict=True)
    assert [*rows] == expected
    for without_tags in (table[:0], table[:2].assign(story="", headline="") if hasattr(table, "assign") else table[:0]):
        empty = tagger.tag(without_tags, text=TEXT).to_frame()
        assert len(empty) == 0
        assert [str(empty[name].dtype) for name in long.columns if name in empty] == [
            str(long[name].dtype) for name in long.columns if name in empty
        ]


def test_tags_of_texts_become_a_table_of_pandas_with_the_names_of_topics(tagger):
    pytest.importorskip("pandas")
    named = replace(tagger, topic_names={"grain": "Cereals"}, decisions=replace(tagger.decisions, calibration=None))
    long = named.tag(["corn and wheat", "nothing known", "gold"], top=1).to_frame()
    assert long["topic"].tolist() == ["grain", "metal"]  # a text without a known term has none
    assert long["name"].tolist() == ["Cereals", "metal"]
    assert named.weights_of("Cereals").tolist() == named.weights_of("grain").tolist()
    with pytest.raises(TextcatError, match="has no topic 'Cereal'"):
        named.weights_of("Cereal")
    assert long.index.tolist() == [0, 2]
    assert long["probability"].isna().all()
    assert long[long.probability > 0.5].empty


def test_a_table_is_measured_whole_unless_a_column_splits_it(library, table, tagger, caplog):
    test = library.DataFrame({name: values[:5] for name, values in COLUMNS.items()})
    evaluation = textcat.evaluate(tagger, test, text=TEXT, topics="section")
    assert (evaluation.test_documents, evaluation.measured_on) == (5, textcat.MeasuredOn.TEST)
    assert textcat.evaluate(tagger, test, text=TEXT, topics=["grain", "metal"]) == evaluation
    of_grain = textcat.evaluate(tagger, test, text=TEXT, topics=["grain"])  # nobody judged metal
    assert of_grain.bands[0]["micro_f1"] == next(row.f1 for row in evaluation.topics if row.topic == "grain")
    split = library.DataFrame({**COLUMNS, "split": ["test", "train", "test"] * 4})
    assert textcat.evaluate(tagger, split, text=TEXT, topics="section").test_documents == 8
    assert "measured on the 8 test documents of the table; its 4 training documents are left out" in caplog.text
    assert textcat.evaluate(tagger, split[:1], text=TEXT, topics="section").test_documents == 1


def test_measuring_as_many_rows_as_were_trained_on_is_warned_of(table, tagger, caplog):
    textcat.evaluate(tagger, table, text=TEXT, topics="section")
    assert "trained on 12 documents, with as many of each topic as these" in caplog.text
    caplog.clear()
    textcat.evaluate(tagger, table, text=TEXT, topics=["grain"])
    assert "trained on 12 documents" in caplog.text


def test_other_rows_of_the_same_number_are_not_taken_for_those_of_training(library, tagger, caplog):
    others = library.DataFrame({name: [*values[1:], values[1]] for name, values in COLUMNS.items()})
    textcat.evaluate(tagger, others, text=TEXT, topics="section")
    assert "trained on 12 documents" not in caplog.text


HALF = ["a", None, None, "b"] * 3


@pytest.mark.parametrize(
    ("changed", "columns", "message"),
    [
        ({}, {"text": "stori"}, r"no column 'stori'. Did you mean 'story'\? It has headline, story, section, grain"),
        ({}, {"text": "text"}, r"The table has no column 'text'. .*name the ones to take by text=\."),
        ({}, {"topics": "topics"}, r"The table has no column 'topics'. .*name the ones to take by topics=\."),
        (
            {"story": HALF},
            {},
            r"6 of the 12 rows have no text in 'story' \(rows 1, 2, 5, 6, 9, …, (by the index|counted from 0)\)",
        ),
        (
            {"story": [None, *["a"] * 11]},
            {},
            r"1 of the 12 rows has no text in 'story' \(row 0, (by the index|counted from 0)\)",
        ),
        ({"section": HALF}, {}, r"6 of the 12 rows have no topics in 'section' \(rows .* '', which is no topic"),
        (
            {"grain": [1, None] * 6},
            {"topics": ["grain", "metal"]},
            r"no topics in 'grain' or 'metal' .* fill in 0 or 1",
        ),
        ({"grain": [1, None] * 6}, {"topics": ["grain"]}, r"no topics in 'grain' .* or fill in 0 or 1"),
        (
            {"grain": [1, 2] * 6},
            {"topics": ["metal", "grain"]},
            r"Row 1 of the table has 2 in the column 'grain'",
        ),
        (
            {},
            {"topics": ["section"]},
            r"Row 0 of the table has 'grain' in .*'section': give 1 .* topics='section'",
        ),
    ],
)
def test_what_is_wrong_in_a_table_is_told_by_column_and_row_with_the_remedy(library, changed, columns, message):
    table = library.DataFrame(COLUMNS | changed)
    for ask in (textcat.train, textcat.Corpus.from_frame):
        with pytest.raises(TextcatError, match=message):
            ask(table, **{"text": "story", "topics": "section", **columns})


def test_the_remedy_for_missing_values_is_in_the_words_of_the_library(library):
    remedy = {"pandas": r"dropna\(subset=\['text'\]\)", "polars": r"drop_nulls\(\['text'\]\)"}[library.__name__]
    table = library.DataFrame({"text": ["corn", None], "topics": ["a", "b"]})
    with pytest.raises(TextcatError, match=rf"leave them out by {remedy}, or fill in a text"):
        textcat.train(table)
    remedy = {"pandas": r"dropna\(\)", "polars": r"drop_nulls\(\)"}[library.__name__]
    with pytest.raises(TextcatError, match=rf"1 of the 2 rows has no text \(row 1, .*\): .* by {remedy}"):
        Frame.of(table["text"]).records("text")


def test_what_is_no_table_of_documents_is_told(library, table, tagger):
    with pytest.raises(TextcatError, match="The table has no rows"):
        textcat.train(table[:0], text=TEXT, topics="section")
    with pytest.raises(TextcatError, match="A Series is not a table: give a DataFrame that has the topics, too"):
        textcat.evaluate(tagger, table["story"])
    with pytest.raises(TextcatError, match="null in the field 'a': give 1"):
        textcat.train([{"text": "corn"}], topics=["a"])


def test_a_lazy_table_one_of_pyarrow_and_a_name_twice_are_refused(tagger):
    polars, pandas = pytest.importorskip("polars"), pytest.importorskip("pandas")
    for ask in (tagger.tag, partial(textcat.evaluate, tagger), textcat.train):
        with pytest.raises(TextcatError, match=r"A LazyFrame has no rows yet: give what its collect\(\) returns"):
            ask(polars.LazyFrame(COLUMNS))
    arrow = pytest.importorskip("pyarrow").table(COLUMNS)
    for ask in (tagger.tag, partial(textcat.evaluate, tagger), textcat.train, textcat.Corpus.from_frame):
        with pytest.raises(TextcatError, match=r"A Table of pyarrow .*: give its to_pandas\(\)"):
            ask(arrow)
    twice = pandas.DataFrame([["corn", "gold", "a"]], columns=["text", "text", "topics"])
    with pytest.raises(TextcatError, match="The table has 2 columns 'text'"):
        textcat.train(twice)


def test_lists_of_topics_and_whole_numbers_are_topics(library):
    table = library.DataFrame({"text": ["corn", "gold", "tin"], "topics": [["a", "b"], ["a"], []], "code": [3, 4, 3]})
    assert [one.topics for one in textcat.Corpus.from_frame(table).train] == [("a", "b"), ("a",), ()]
    assert textcat.Corpus.from_frame(table, topics="code").topics == ("3", "4")
    in_one = library.DataFrame({"text": ["corn"], "topics": ["a; b"]})
    assert textcat.Corpus.from_frame(in_one, topics_separator=";").topics == ("a", "b")


def test_values_for_anything_else_than_a_table_stay_as_they_are():
    values = np.zeros((1, 2))
    assert answer_in_kind(["text"], values, ["a", "b"]) is values


@pytest.mark.parametrize("rows", [np.zeros((3, 4)), sp.eye_array(3)], ids=["dense", "sparse"])
def test_rows_of_features_are_refused_with_the_learner_that_takes_them(rows):
    with pytest.raises(TextcatError, match=r"of shape \(3, .\) has rows of features.* textcat.PAUM\("):
        textcat.train(rows)


def test_a_list_that_was_written_as_text_is_a_list_as_in_a_file():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame({"text": ["a", "b", "c"], "topics": ["['x', 'y']", "[]", "[sic]"]})
    corpus = textcat.Corpus.from_frame(frame)
    assert [document.topics for document in corpus.train] == [("x", "y"), (), ("[sic]",)]
