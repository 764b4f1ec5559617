"""`textcat explain`: what its terms add is the score, in every form, of every document."""

import json
from pathlib import Path

import pytest


def explained(run, *arguments, **options):
    assert run("explain", *arguments, "--as", "json", **options).code == 0, run.err
    return [json.loads(line) for line in run.out.splitlines()]


def test_what_terms_add_with_the_bias_and_the_rest_is_the_score(run, newswire_model):
    for n in (1, 4):
        (line,) = explained(run, newswire_model, "--topic", "wheat", "--terms", n, stdin=b"Wheat exports rose in May")
        (topic,) = line["explanations"]
        assert topic["topic"] == "wheat"
        assert len(topic["reasons"]) <= n
        total = sum(reason["contribution"] for reason in topic["reasons"]) + topic["rest"] + topic["bias"]
        assert total == pytest.approx(topic["score"], rel=1e-4, abs=1e-4)


def test_the_spans_of_a_term_are_places_in_the_text(run, newswire_model):
    text = "Wheat exports rose; wheat fell"
    (line,) = explained(run, newswire_model, "--topic", "wheat", stdin=text.encode())
    spans = [(span["start"], span["end"]) for reason in line["explanations"][0]["reasons"] for span in reason["spans"]]
    assert {text[start:end].lower() for start, end in spans} >= {"wheat"}


def test_a_file_of_several_documents_has_a_line_for_each_that_alone_is_the_same(run, newswire_model):
    texts = ["Wheat exports rose", "Corn and wheat fell"]
    Path("two.jsonl").write_text("".join(json.dumps({"id": text[:4], "text": text}) + "\n" for text in texts))
    lines = explained(run, newswire_model, "two.jsonl", "--topic", "wheat")
    assert [line["id"] for line in lines] == ["Whea", "Corn"]
    for line, text in zip(lines, texts, strict=True):
        (alone,) = explained(run, newswire_model, "--topic", "wheat", stdin=text.encode())
        assert alone["explanations"] == line["explanations"]


def test_a_record_that_cannot_be_read_ends_the_command_with_its_place(run, newswire_model):
    Path("bad.jsonl").write_text('{"text": 5}\n')
    assert "bad.jsonl:1" in run.refuses("explain", newswire_model, "bad.jsonl", "--topic", "wheat")
    Path("empty.jsonl").write_text("")
    assert "There is no document in empty.jsonl" in run.refuses("explain", newswire_model, "empty.jsonl")


def test_the_documents_of_a_corpus_with_a_card_are_explained(run, newswire_model, tmp_path):
    documents = [
        {"id": "a", "text": "wheat exports rose", "topics": ["wheat"], "split": "test"},
        {"id": "b", "text": "gold", "topics": ["gold"], "split": "train"},
        {"id": "c", "text": "zzz", "topics": ["gold"], "split": "test"},
    ]
    (tmp_path / "own.jsonl").write_text("".join(json.dumps(one) + "\n" for one in documents))
    (tmp_path / "own.toml").write_text('reader = "jsonl"\nfiles = ["own.jsonl"]\n')
    out = run("explain", newswire_model, tmp_path / "own.toml", "--topic", "wheat", "--as", "json").out
    assert [json.loads(line)["id"] for line in out.splitlines()] == ["a"]
    assert "1 of 2 documents are not explained. Document c has no term that the model knows" in run.err
