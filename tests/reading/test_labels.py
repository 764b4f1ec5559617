"""Which topics the values of a field of topics stand for, in every format and in memory."""

import json

import numpy as np
import pytest
from cases import every
from same_documents import write

from textcat import Corpus
from textcat.base.errors import TextcatError
from textcat.corpus.catalogue import corpus_of, open_corpus
from textcat.corpus.descriptions import read_descriptions
from textcat.reading import InputSettings
from textcat.reading.document import Document
from textcat.reading.faults import UnreadableError
from textcat.reading.labels import labels_in, with_meanings
from textcat.recipes.recipe import read_recipe
from textcat.training.checks import check_training

pandas = pytest.importorskip("pandas", reason="pandas is not installed")


@every(
    "value, topics",
    [
        (None, ()),
        (float("nan"), ()),
        (pandas.NA, ()),
        (pandas.NaT, ()),
        ("", ()),
        (" \t", ()),
        ("corn", ("corn",)),
        (" winter\n\twheat\u00a0", ("winter wheat",)),
        (3, ("3",)),
        (3.0, ("3",)),
        (np.float32(4), ("4",)),
        (["corn", " corn ", "rye"], ("corn", "rye")),
        ("corn\ud800", ("corn\ufffd",)),
        (["corn\ud800", "corn\udfff"], ("corn\ufffd",)),
        (["corn", None, float("nan")], ("corn",)),
        (("corn", "rye"), ("corn", "rye")),
        ({"rye", "corn"}, ("corn", "rye")),
        (np.array(["corn", "rye"]), ("corn", "rye")),
        ([1, 7], ("1", "7")),
        ("['corn', 'rye']", ("corn", "rye")),
        ('["corn", "rye, winter"]', ("corn", "rye, winter")),
        ("['corn' 'winter rye']", ("corn", "winter rye")),
        ("['corn' 'it''s']".replace("''", "\\'"), ("corn", "it's")),
        ("['corn'\n 'rye'\n \"farmers' oats\"]", ("corn", "rye", "farmers' oats")),
        ("('corn', 'rye')", ("corn", "rye")),
        ("('corn',)", ("corn",)),
        ("{'corn'}", ("corn",)),
        ("set()", ()),
        ("array(['corn', 'rye'], dtype=object)", ("corn", "rye")),
        ("array(['corn, dtype=x'])", ("corn, dtype=x",)),
        ("[np.str_('corn'), np.str_('rye')]", ("corn", "rye")),
        ('{"choices": ["corn", "winter rye"]}', ("corn", "winter rye")),
        ({"choices": ["corn"]}, ("corn",)),
        ('{"winter rye",corn}', ("winter rye", "corn")),
        ("{\"farmer's market\",corn,farmer's}", ("farmer's market", "corn", "farmer's")),
        (r'{"a \"dry\" \\ year, or two",corn}', (r'a "dry" \ year, or two', "corn")),
        ('{"winter rye",NULL,"NULL"}', ("winter rye", "NULL")),
        ("[nan, 'corn']", ("corn",)),
        (np.array("corn"), ("corn",)),
        ("[1, 2]", ("1", "2")),
        ("[1 2]", ("1", "2")),
        ("[]", ()),
        (" [ 'x' ] ", ("x",)),
        ("[x]", ("[x]",)),
        ("(other)", ("(other)",)),
        ("grain (dry)", ("grain (dry)",)),
        ("[Withdrawn] paper", ("[Withdrawn] paper",)),
        ("[" * 5000, ("[" * 5000,)),
    ],
)
def test_a_value_stands_for_topics(value, topics):
    assert labels_in(value, "kinds").topics == topics
    assert labels_in(value, "kinds").labelled_for is None


@every("value", [{"corn": 1.0, "rye": 0.0}, {"corn": True, "rye": False}, "{'corn': .8, 'rye': .3}"])
def test_an_object_of_scores_tells_topics_and_what_a_document_was_judged_for(value):
    assert labels_in(value, "cats") == (("corn",), ("corn", "rye"))


@every(
    "value, message",
    [
        ([0, 1, 0, 1], "name the topics: give a list of the names"),
        ([1.0, 0.0], "name the topics: give a list of the names"),
        ([-1, 1, -1], "name the topics: give a list of the names"),
        ([True, False], "name the topics: give a list of the names"),
        (np.array([0, 1, 1]), "name the topics: give a list of the names"),
        ("[0. 1. 0.]", "name the topics: give a list of the names"),
        ("[0 1 0 1]", "name the topics: give a list of the names"),
        ("0 1 0 1", "name the topics: give a list of the names"),
        ("tensor([0, 1, 0])", "name the topics: give a list of the names"),
        (["0", "1", "0"], "name the topics: give a list of the names"),
        (2.5, "they must be a list of names, or one name"),
        ([["corn"], ["rye"]], "they must be a list of names, or one name"),
        ([" "], "they must be a list of names, or one name"),
        ([None], "they must be a list of names, or one name"),
        ([float("nan"), None], "they must be a list of names, or one name"),
        (np.array([None]), "they must be a list of names, or one name"),
        ("[null]", "they must be a list of names, or one name"),
        ("[nan]", "they must be a list of names, or one name"),
        ("[{'a': 'b'}]", "they must be a list of names, or one name"),
        (["corn", True], "they must be a list of names, or one name"),
        ([[0, 4, "corn"]], "spans label parts of a text"),
        ([0, 4, "corn"], "spans label parts of a text"),
        ({"corn": 3}, "for each topic, there must be a score between 0 and 1"),
        ({"corn": "much"}, "for each topic, there must be a score between 0 and 1"),
        ("['corn'", "it begins like a list"),
        ("['corn''rye']", "it begins like a list"),
        ("['corn' ... 'rye']", "it begins like a list"),
        ('{"corn","rye', "it begins like a list"),
        ('{"corn",rye', "it begins like a list"),
        ('{"corn"rye,oats}', "it begins like a list"),
    ],
)
def test_a_value_that_names_no_topics_is_refused(value, message):
    with pytest.raises(UnreadableError, match=f"has the kinds .*: .*{message}"):
        labels_in(value, "kinds")


@pytest.mark.parametrize("form", ["csv", "json", "jsonl", "parquet"])
def test_a_list_without_a_name_is_refused_whatever_the_file(tmp_path, form):
    names = (["corn"], [None]) if form != "csv" else ("['corn']", "[null]")
    path = write(tmp_path, form, *({"text": f"text {number}", "topics": value} for number, value in enumerate(names)))
    with pytest.raises(TextcatError, match="they must be a list of names, or one name"):
        open_corpus(path)


def test_a_vector_is_refused_also_if_its_numbers_are_separated_in_a_text():
    assert labels_in("['x'];y;; z ", "kinds", ";").topics == ("['x']", "y", "z")
    with pytest.raises(UnreadableError, match="give a list of the names"):
        labels_in("0,1,0,1", "kinds", ",")


@every("size", [10_000, 200_000])
@every("unit", ["'", '\\"', "[", ", dtype=", "' '", "np.a(", "(", "1 "])
@every("begin", ["[", '["', "array(", "{'"])
def test_a_long_value_ends_as_a_name_or_is_refused(begin, unit, size):
    try:
        topics = labels_in(begin + unit * (size // len(unit)), "kinds").topics
    except UnreadableError:
        return
    assert topics


# --- names that have a meaning only among all of a corpus -------------------------------------------------------------


def meant(names, field):
    documents = with_meanings([Document(str(i), {}, (name,) if name else ()) for i, name in enumerate(names)], field)
    return [" ".join(document.topics) for document in documents]


def test_yes_and_no_in_a_field_that_is_named_are_the_topic_of_its_name():
    assert meant(["1", "0", "", "1"], "spam") == ["spam", "", "", "spam"]
    assert meant(["True", "False"], "spam") == ["spam", ""]
    assert meant(["yes", "no"], "is spam") == ["is spam", ""]
    assert meant(["1.0", "0.0"], "spam") == ["spam", ""]
    assert meant(["1", "-1"], "spam") == ["spam", ""]
    assert meant(["0", "1", "2"], "stars") == ["0", "1", "2"]
    assert meant(["yes", "no", "maybe"], "spam") == ["yes", "no", "maybe"]


def test_a_usual_name_of_a_field_names_no_topic():
    assert meant(["1", "0"], "label") == ["1", "0"]
    assert meant(["yes", "no"], "Category") == ["yes", "no"]
    assert meant(["True", "False"], "label") == ["label", ""]
    assert meant(["True", "False"], "") == ["True", "False"]


def test_numbers_that_were_all_written_as_fractions_are_whole():
    assert meant(["1.0", "12.0", ""], "") == ["1", "12", ""]
    assert meant(["1.0", "1.5"], "") == ["1.0", "1.5"]


def test_lists_without_quotes_are_lists_if_all_are():
    assert meant(["[corn, winter rye]", "[corn]", ""], "") == ["corn winter rye", "corn", ""]
    assert meant(["[corn]", "[rye]"], "") == ["[corn]", "[rye]"]
    assert meant(['{corn,"winter rye"}', "{corn}"], "") == ["corn winter rye", "corn"]
    assert meant(['{corn,"farmer\'s market"}', r'{rye,"\"dry\" year"}'], "") == [
        "corn farmer's market",
        'rye "dry" year',
    ]
    assert meant(["{corn,NULL}", "{NULL}", "{}"], "") == ["corn", "", ""]
    assert meant(["{corn,rye}", "oats, dry"], "") == ["{corn,rye}", "oats, dry"]


# --- through every door -----------------------------------------------------------------------------------------------


def topics_through(door, tmp_path, values, field="kinds"):
    """Return the topics of records with the given values in a field, read from a file of a format or in memory."""
    records = [{"text": f"text {i}", field: value} for i, value in enumerate(values)]
    if door == "records":
        corpus = Corpus.from_records(records, topics=field)
    elif door == "frame":
        corpus = Corpus.from_frame(pandas.DataFrame(records), topics=field)
    else:
        corpus = open_corpus(write(tmp_path, door, *records), settings=InputSettings(topics_field=field))
    return [document.topics for document in corpus.train]


DOORS = ["jsonl", "json", "csv", "tsv", "parquet", "records", "frame"]


@every("door", DOORS)
@every(
    "values, topics",
    [
        ([" corn", "corn ", "winter\u00a0wheat"], [("corn",), ("corn",), ("winter wheat",)]),
        (["['corn' 'dry rye']", "('corn',)", "[]"], [("corn", "dry rye"), ("corn",), ()]),
        (['{"choices": ["corn", "rye"]}', "rye", ""], [("corn", "rye"), ("rye",), ()]),
        ([True, False, True], [("kinds",), (), ("kinds",)]),
        ([1, 0, 1], [("kinds",), (), ("kinds",)]),
        ([1.0, 2.0, 7.0], [("1",), ("2",), ("7",)]),
        (["yes", "no", "no"], [("kinds",), (), ()]),
    ],
)
def test_the_same_values_are_the_same_topics_through_every_door(tmp_path, door, values, topics):
    assert topics_through(door, tmp_path, values) == topics


@pytest.mark.parametrize("door", ["jsonl", "json", "parquet", "records", "frame"])
@pytest.mark.parametrize(
    ("values", "topics"),
    [
        ([["corn "], ["rye", "corn"]], [("corn",), ("rye", "corn")]),
        ([{"corn": 1.0, "rye": 0.0}, {"corn": 0.0, "rye": 1.0}], [("corn",), ("rye",)]),
    ],
)
def test_lists_and_scores_are_read_where_there_are_such_values(tmp_path, door, values, topics):
    assert topics_through(door, tmp_path, values) == topics


@pytest.mark.parametrize("door", ["jsonl", "json", "csv", "parquet", "records", "frame"])
def test_a_vector_is_refused_through_every_door(tmp_path, door):
    value = [0, 1, 0, 1] if door != "csv" else "[0, 1, 0, 1]"
    with pytest.raises(TextcatError, match=r"has the kinds \[0, 1, 0, 1\]: .* give a list of the names"):
        topics_through(door, tmp_path, [value, value])


# --- fields that are absent -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("door", ["jsonl", "json", "records"])
def test_a_named_field_that_some_records_lack_says_that_they_have_no_topics(tmp_path, door):
    records = [{"text": "a", "tags": ["corn"]}, {"text": "b"}]
    if door == "records":
        corpus = Corpus.from_records(records, topics="tags")
    else:
        corpus = open_corpus(write(tmp_path, door, *records), settings=InputSettings(topics_field="tags"))
    assert [document.topics for document in corpus.train] == [("corn",), ()]


def test_references_may_lack_a_named_field(tmp_path):
    entry = "TY  - JOUR\nTI  - Corn\nN1  - kept\nER  - \n\nTY  - JOUR\nTI  - Rye\nER  - \n"
    (tmp_path / "a.ris").write_text(entry)
    corpus = open_corpus(tmp_path / "a.ris", settings=InputSettings(topics_field="notes"))
    assert [document.topics for document in corpus.train] == [("kept",), ()]
    with pytest.raises(TextcatError, match=r"no record has a field 'nosuch' \(only title, type, notes"):
        open_corpus(tmp_path / "a.ris", settings=InputSettings(topics_field="nosuch"))


@pytest.mark.parametrize("form", ["jsonl", "json"])
def test_where_no_record_has_topics_the_fields_are_told(tmp_path, form):
    corpus = open_corpus(write(tmp_path, form, {"text": "a", "marks": "corn"}, {"text": "b", "year": 1}))
    with pytest.raises(TextcatError) as refused:
        check_training(corpus, read_recipe("paum"))
    for words in ("no record has a field 'topics'", "only text, marks, year", "--topics-field"):
        assert words in str(refused.value)


@pytest.mark.parametrize("topics", ["topics", "tags"])
def test_records_in_memory_of_which_none_has_topics_are_not_trained_on_and_their_fields_are_told(topics):
    with pytest.raises(TextcatError, match=r"o record has a field '\w+' \(only text, marks\): .* topics="):
        check_training(Corpus.from_records([{"text": "a", "marks": "corn"}], topics=topics), read_recipe("paum"))


def test_fields_of_records_in_memory_are_not_guessed_but_told():
    with pytest.raises(TextcatError, match=r"'label' or 'category' may hold the topics: name .* topics="):
        Corpus.from_records([{"text": "a", "label": "corn", "category": None}])
    with pytest.raises(TextcatError, match=r"no record has a field 'topics' \(only text, Label\): name .* topics="):
        Corpus.from_records([{"text": "a", "Label": "corn"}, {"text": "b"}])
    assert Corpus.from_records([{"text": "a", "label": "corn"}, {"text": "b", "topics": "rye"}]).topics == ("rye",)
    assert Corpus.from_records([{"text": "a", "label": "corn"}], topics="").topics == ()


def test_records_that_have_only_descriptions_of_topics_need_no_field_of_topics():
    corpus = Corpus.from_records([{"text": "a"}], topic_rule="described", descriptions={"corn": "of maize"})
    assert corpus.topics == ("corn",)
    assert Corpus.from_records([{"text": "a"}], topics="").topics == ()


@every(
    "written",
    [
        "E\u0301conomie",
        "\u00c9conomie\u200e",
        "\ufeff\u00c9cono\xadmie",
        "\u200b E\u0301conomie\u200b ",
        "\u2068\u00c9conomie\u2069",
        "E\u200b\u0301conomie",
    ],
)
def test_names_that_look_the_same_are_one_topic_through_every_door(written, tmp_path):
    topic = "\u00c9conomie"
    assert labels_in([written, topic, "tin"], "topics").topics == (topic, "tin")
    assert labels_in(f"{written};{topic}", "topics", ";").topics == (topic,)
    assert labels_in({written: 1.0, "tin": 0}, "cats") == ((topic,), (topic, "tin"))
    folder = tmp_path / ascii(written).strip("'").replace("\\", "") / written
    folder.mkdir(parents=True)
    (folder / "a.txt").write_text("Or")
    (folder.parent / "tin").mkdir()
    (folder.parent / "tin" / "b.txt").write_text("Tin")
    assert open_corpus(folder.parent).topics == ("tin", topic)
    assert read_descriptions("topics.json", json.dumps({written: "Or"}).encode()) == {topic: "Or"}


def test_a_name_of_many_marks_takes_time_in_proportion_to_its_length():
    name = "a" + "\u0301\u0323" * 100_000  # a minute, if the time grew with the square
    assert [*map(len, labels_in(name, "topics").topics)] == [200_000]


def test_a_name_of_which_nothing_is_seen_is_none():
    for value in ("\u200b", ["\ufeff", " \xad"], {"\u200e": 1.0}):
        assert labels_in(value, "cats").topics == ()


def test_joiners_and_other_letters_stay_in_names():
    for name in ("می\u200cشود", "श\u200dक", "½", "CO²", "Ａ", "ﬁ", "❤\ufe0f"):
        assert labels_in(name, "topics").topics == (name,)


def test_labels_of_folders_lose_their_white_space(tmp_path):
    for folder in ("corn ", "winter  rye"):
        (tmp_path / "of" / folder).mkdir(parents=True)
        (tmp_path / "of" / folder / "a.txt").write_text("text")
    assert open_corpus(tmp_path / "of").topics == ("corn", "winter rye")


def test_numbers_of_folders_are_names(tmp_path):
    for folder in ("1.0", "2.0"):
        (tmp_path / "of" / folder).mkdir(parents=True)
        (tmp_path / "of" / folder / "a.txt").write_text(json.dumps(folder))
    assert open_corpus(tmp_path / "of").topics == ("1.0", "2.0")


# --- a field per topic ------------------------------------------------------------------------------------------------


@every("door", DOORS)
@every("yes, no", [(1, 0), (True, False), (1.0, 0.0)])
def test_of_several_fields_each_is_a_topic_through_every_door(tmp_path, door, yes, no):
    records = [{"text": "a", "corn": yes, "rye": no}, {"text": "b", "corn": yes, "rye": yes}, {"text": "c"}]
    records[2] |= {"corn": no, "rye": no}
    if door in ("records", "frame"):
        rows = records if door == "records" else pandas.DataFrame(records)
        corpus = corpus_of(rows, topics=["corn", "rye"])
    else:
        corpus = corpus_of(write(tmp_path, door, *records), topics=["corn", "rye"])
    assert [document.topics for document in corpus.train] == [("corn",), ("corn", "rye"), ()]
    assert {document.labelled_for for document in corpus.train} == {("corn", "rye")}
    assert corpus.unjudged(corpus.train) is None


@pytest.mark.parametrize("door", ["jsonl", "csv", "parquet", "records"])
@pytest.mark.parametrize("value", ["maybe", "", 2])
def test_a_field_of_a_topic_that_holds_anything_else_is_refused(tmp_path, door, value):
    rows = [{"text": "a", "corn": value, "rye": 1}]
    with pytest.raises(TextcatError, match="in the field 'corn': give 1 in the field of a topic"):
        corpus_of(rows if door == "records" else write(tmp_path, door, *rows), topics=["corn", "rye"])


@pytest.mark.parametrize("door", ["jsonl", "csv", "parquet"])
def test_a_field_of_a_topic_that_no_record_has_is_told(tmp_path, door):
    with pytest.raises(TextcatError, match="'nosuch'"):
        corpus_of(write(tmp_path, door, {"text": "a", "corn": 1}), topics=["nosuch", "corn"])
