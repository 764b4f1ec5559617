"""Records of programs for annotation are read by the names that these programs give to fields."""

import json

import pytest

from textcat import Corpus
from textcat.base.errors import TextcatError
from textcat.corpus.catalogue import open_corpus
from textcat.reading import InputSettings, find_sources, formats, read_batches


def task(text, *choices, cancelled=False, control="kind", n=1):
    """Return a task of Label Studio; each of `choices` is the list that one person gave."""
    results = [
        [{"from_name": control, "to_name": "text", "type": "choices", "value": {"choices": given}}] if given else []
        for given in choices
    ]
    annotations = [
        {"id": i, "completed_by": i, "was_cancelled": cancelled, "result": result} for i, result in enumerate(results)
    ]
    return {"id": n, "data": {"text": text, "source": "desk"}, "annotations": annotations, "predictions": []}


def response(text, *values, status="submitted", question="kind"):
    """Return a record of Argilla with the responses that persons gave to one question."""
    responses = {question: [{"value": value, "user_id": str(i), "status": status} for i, value in enumerate(values)]}
    suggestions = {question: {"value": "barley", "score": 0.9, "agent": "m"}}
    return {"id": text, "fields": {"text": text}, "responses": responses, "suggestions": suggestions}


def read_through(door, tmp_path, records, topics="topics"):
    """Return (text, topics, labelled_for) of the documents, read from a file or in memory."""
    if door == "records":
        corpus = Corpus.from_records(records, topics=topics)
    else:
        lines = "\n".join(map(json.dumps, records)) if door == "jsonl" else json.dumps(records, indent=1)
        (tmp_path / f"a.{door}").write_text(lines)
        corpus = open_corpus(tmp_path / f"a.{door}", settings=InputSettings(topics_field=topics))
    return [(d.zones["body"], d.topics, d.labelled_for) for d in corpus.train]


def described(*documents):
    return [(text, topics, None) for text, topics in documents]


@pytest.fixture(params=["jsonl", "json", "records"])
def read_topics(request, tmp_path):
    return lambda records, **how: read_through(request.param, tmp_path, records, **how)


def test_answers_of_prodigy_judge_a_document_for_one_topic(read_topics):
    records = [
        {"text": "a", "label": "corn", "_view_id": "classification", "answer": "accept"},
        {"text": "a", "label": "rye", "_view_id": "classification", "answer": "reject"},
        {"text": "b", "label": "corn", "_view_id": "classification", "answer": "ignore"},
    ]
    expected = [("a", ("corn",), ("corn",)), ("a", (), ("rye",))]
    assert read_topics(records) == expected
    assert read_topics(records, topics="label") == expected


def test_choices_of_prodigy_are_the_options_that_were_accepted(read_topics):
    options = [{"id": "corn", "text": "Corn"}, {"id": "rye", "text": "Rye"}]
    records = [
        {"text": "a", "options": options, "accept": ["corn", "rye"], "answer": "accept"},
        {"text": "b", "options": options, "accept": [], "answer": "accept"},
        {"text": "c", "options": options, "accept": ["rye"], "answer": "reject"},
        {"text": "d", "options": options, "accept": [], "answer": "ignore"},
    ]
    assert read_topics(records) == [("a", ("corn", "rye"), ("corn", "rye")), ("b", (), ("corn", "rye"))]


def test_an_answer_that_is_none_of_prodigys_is_a_field_like_others(read_topics):
    assert read_topics([{"text": "a", "topics": "corn", "answer": "because"}]) == described(("a", ("corn",)))
    records = [{"text": "a", "answer": "accept"}, {"text": "b", "answer": "reject"}]
    assert read_topics(records, topics="answer") == described(("a", ("accept",)), ("b", ("reject",)))


@pytest.mark.parametrize("form", ["csv", "tsv", "parquet", "frame"])
def test_answers_of_prodigy_count_in_tables_too(tmp_path, form):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    answers = ["accept", "reject", "ignore"]
    frame = pandas.DataFrame({"text": ["a", "b", "c"], "label": ["corn"] * 3, "answer": answers})
    path = tmp_path / f"a.{form}"
    if form == "parquet":
        frame.to_parquet(path)
    elif form != "frame":
        frame.to_csv(path, index=False, sep="," if form == "csv" else "\t")
    corpus = Corpus.from_frame(frame, topics="label") if form == "frame" else open_corpus(path)
    assert [(d.topics, d.labelled_for) for d in corpus.train] == [(("corn",), ("corn",)), ((), ("corn",))]


def test_scores_of_spacy_are_topics(read_topics):
    records = [{"text": "a", "cats": {"corn": 1.0, "rye": 0.0}}, {"text": "b", "cats": {"corn": 0.2, "rye": 0.5}}]
    expected = [("a", ("corn",), ("corn", "rye")), ("b", ("rye",), ("corn", "rye"))]
    assert read_topics(records, topics="cats") == expected


def test_spacys_field_is_found_by_its_name(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "a", "cats": {"corn": 1, "rye": 0}}\n')
    assert open_corpus(tmp_path / "a.jsonl").topics == ("corn",)


def test_annotations_of_doccano_are_read(read_topics):
    of_one = [{"text": "a", "annotations": [{"label": 1, "user": 1}, {"label": 4, "user": 1}]}]
    assert read_topics(of_one) == described(("a", ("1", "4")))
    of_three = [{"text": "a", "annotations": [{"label": label, "user": i} for i, label in enumerate((4, 4, 1))]}]
    assert read_topics(of_three) == described(("a", ("4",)))


def test_spans_of_doccano_are_no_topics(read_topics):
    with pytest.raises(TextcatError, match="spans label parts of a text"):
        read_topics([{"text": "corn", "label": [[0, 4, "plant"]]}], topics="label")


def test_choices_of_label_studio_are_topics(read_topics):
    records = [task("a", ["corn", "rye"]), task("b", [], n=2)]
    assert read_topics(records) == described(("a", ("corn", "rye")), ("b", ()))
    assert read_topics([task("a", ["corn"])], topics="kind") == described(("a", ("corn",)))
    assert read_topics([task("a", ["corn"])], topics="source") == described(("a", ("desk",)))


def test_tasks_that_were_skipped_or_that_nobody_labelled_are_left_out(read_topics):
    records = [task("a", ["corn"]), task("b", ["rye"], cancelled=True, n=2), task("c", n=3)]
    assert read_topics(records) == described(("a", ("corn",)))


def test_of_several_persons_more_than_half_decide(read_topics):
    of_three = [task("a", ["corn"], ["corn", "rye"], ["oats"]), task("b", ["corn"], ["rye"], n=2)]
    assert read_topics(of_three) == described(("a", ("corn",)))
    assert read_topics([task("a", ["corn"]), task("b", ["x"], ["y"], ["z"], n=2)]) == described(("a", ("corn",)))


def test_of_several_controls_one_must_be_named(read_topics):
    both = task("a", ["corn"])
    both["annotations"][0]["result"] += task("a", ["long"], control="size")["annotations"][0]["result"]
    with pytest.raises(TextcatError, match=r"several controls \('kind', 'size'\): name the one"):
        read_topics([both])
    assert read_topics([both], topics="size") == described(("a", ("long",)))


def test_small_json_of_label_studio_is_read(read_topics):
    record = {"id": 1, "text": "a", "kind": {"choices": ["corn", "rye"]}, "annotator": 1, "annotation_id": 7}
    expected = described(("a", ("corn", "rye")), ("b", ("corn",)))
    assert read_topics([record, {**record, "id": 2, "text": "b", "kind": "corn"}], topics="kind") == expected


def test_responses_of_argilla_are_topics_and_suggestions_are_not(read_topics):
    records = [response("a", "corn"), response("b", ["corn", "rye"]), response("c"), response("d", "x", status="draft")]
    assert read_topics(records) == described(("a", ("corn",)), ("b", ("corn", "rye")))


def test_responses_of_older_versions_of_argilla_are_read(read_topics):
    of_persons = {
        "fields": {"text": "a"},
        "responses": [{"user_id": "1", "status": "submitted", "values": {"kind": {"value": "corn"}}}],
    }
    assert read_topics([of_persons]) == described(("a", ("corn",)))
    older = {"text": None, "inputs": {"text": "a"}, "prediction": [["rye", 0.9]], "annotation": "corn"}
    records = [older | {"status": "Validated"}, older | {"status": "Discarded"}, older | {"annotation": None}]
    assert read_topics(records) == described(("a", ("corn",)))


@pytest.mark.parametrize(
    "record", [task("a", ["corn"], cancelled=True), response("a"), {"text": "a", "answer": "ignore"}]
)
def test_records_that_training_leaves_out_are_tagged(tmp_path, record):
    (tmp_path / "a.jsonl").write_text(json.dumps(record))
    settings = InputSettings()
    sources = find_sources([tmp_path / "a.jsonl"], settings)
    (item,) = [item for batch in read_batches(sources, settings) for item in formats.batch_records(batch, settings)]
    assert item.zones == {"body": "a"}


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_rows_that_lack_what_other_rows_have_of_a_program_are_rows_like_others(missing):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    columns = {"text": ["a", "b"], "topics": ["corn", "rye"], "answer": ["accept", missing]}
    for name in ("annotations", "suggestions", "completions"):
        columns[name] = pandas.Series([missing, missing], dtype=object)
    corpus = Corpus.from_frame(pandas.DataFrame(columns))
    assert [(d.topics, d.labelled_for) for d in corpus.train] == [(("corn",), ("corn",)), (("rye",), None)]


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_task_whose_annotations_are_missing_is_left_out(missing):
    records = [task("a", ["corn"]), {**task("b", n=2), "annotations": missing}]
    assert [d.topics for d in Corpus.from_records(records).train] == [("corn",)]


def test_of_a_record_of_doccano_that_names_no_topics_the_annotations_are_a_field_like_others(read_topics):
    records = [{"text": "a", "annotations": [{"start": 0, "label": [1]}], "topics": "corn"}, {"text": "b"}]
    assert read_topics(records) == described(("a", ("corn",)), ("b", ()))
