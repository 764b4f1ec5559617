"""The command `duplicates`, and what other commands say of duplicates."""

import json

import pytest
from news_versions import item, write_items

import textcat

WORDS = " ".join(f"word{i}" for i in range(40))


def write(path, texts):
    path.write_text("".join(json.dumps({"id": f"d{i}", "text": text}) + "\n" for i, text in enumerate(texts)))


def test_duplicates_writes_a_line_per_duplicate_and_prints_how_many(run, tmp_path):
    write(tmp_path / "news.jsonl", [WORDS, "Another text.", WORDS.upper()])
    run("duplicates", "news.jsonl", "--out", "out.jsonl", "--as", "json")
    assert run.code == 0
    printed = json.loads(run.out)
    names = ("documents", "exact_duplicates", "other_duplicates", "groups")
    assert [printed[name] for name in names] == [3, 1, 0, 1]
    assert [json.loads(line)["group"] for line in (tmp_path / "out.jsonl").read_text().splitlines()] == ["news.jsonl:1"]
    run("duplicates", "news.jsonl", "--out", "out.jsonl")
    assert "exact duplicates  1" in run.out


def test_duplicates_exits_with_3_if_a_document_cannot_be_read(run, tmp_path):
    (tmp_path / "news.jsonl").write_text("no json\n")
    run("duplicates", "news.jsonl", "--out", "out.jsonl", "--quiet")
    assert (run.code, run.out) == (3, "")


def test_items_that_are_left_out_on_purpose_are_no_faults(run, tmp_path):
    write_items(tmp_path / "news.jsonl", [item("urn:1", 1, "canceled")])
    run("duplicates", "news.jsonl", "--out", "out.jsonl", "--quiet")
    assert (run.code, run.out) == (0, "")


def test_tag_refuses_groups_that_do_not_exist(run, model, tmp_path):
    write(tmp_path / "news.jsonl", [WORDS])
    assert "none.jsonl" in run.refuses("tag", model, "news.jsonl", "--duplicates", "none.jsonl")


def test_files_are_not_tagged_with_groups_as_they_arrive(run, model, tmp_path):
    write(tmp_path / "news.jsonl", [WORDS])
    run("duplicates", "news.jsonl", "--out", "out.jsonl")
    said = run.misuses("tag", model, "news.jsonl", "--duplicates", "out.jsonl", "--out", "tags", "--watch")
    assert "textcat duplicates" in said


def test_keep_groups_needs_a_test_part_to_draw(run):
    assert "--test-size" in run.misuses("train", "newswire", "--keep-groups")


@pytest.fixture
def with_twins(tmp_path):
    """A labelled file of which every other document is duplicated."""
    records = [
        {"text": f"{'wheat' if i % 2 else 'gold'} " + " ".join(f"w{i}x{j}" for j in range(30)), "topics": [f"t{i % 2}"]}
        for i in range(40)
    ]
    path = tmp_path / "news.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records + records[::2]))
    return path


def test_train_and_evaluate_warn_of_twins_and_measure_without_them(run, with_twins):
    run("train", with_twins, "--test-size", "20", "--out", "model", "--as", "json")
    assert "test documents repeat training documents; without these, MAP is" in run.err
    trained = json.loads(run.out)
    assert 0 < trained["twins"] < 20
    run("evaluate", "model", "--as", "json")
    evaluated = json.loads(run.out)
    assert (evaluated["twins"], evaluated["without_twins"]) == (trained["twins"], trained["without_twins"])
    assert textcat.load("model").evaluation.as_dict()["without_twins"] == trained["without_twins"]


def test_a_test_part_that_keeps_groups_has_no_twins_also_when_it_is_measured_later(run, with_twins):
    run("train", with_twins, "--test-size", "20", "--keep-groups", "--out", "model", "--as", "json")
    assert "twins" not in json.loads(run.out)
    assert "test documents repeat" not in run.err
    run("evaluate", "model", "--as", "json")
    assert "twins" not in json.loads(run.out)
    assert json.loads(run.out)["test_documents"] == 20
