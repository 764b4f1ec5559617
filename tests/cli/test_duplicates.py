"""The command `duplicates`."""

import json

WORDS = " ".join(f"word{i}" for i in range(40))


def write(path, texts):
    path.write_text("".join(json.dumps({"id": f"d{i}", "text": text}) + "\n" for i, text in enumerate(texts)))


def test_duplicates_writes_a_line_per_reprint_and_prints_how_many(textcat, tmp_path):
    write(tmp_path / "news.jsonl", [WORDS, "Another text.", WORDS.upper()])
    out = tmp_path / "out.jsonl"
    done = textcat("duplicates", tmp_path / "news.jsonl", "--out", out, "--json")
    assert done.returncode == 0
    printed = json.loads(done.stdout)
    assert (printed["documents"], printed["exact_reprints"], printed["other_reprints"], printed["groups"]) == (3, 1, 0, 1)
    assert [json.loads(line)["group"] for line in out.read_text().splitlines()] == ["d0"]


def test_duplicates_exits_with_3_if_a_document_cannot_be_read(textcat, tmp_path):
    (tmp_path / "news.jsonl").write_text("no json\n")
    assert textcat("duplicates", tmp_path / "news.jsonl", "--out", tmp_path / "out.jsonl").returncode == 3


def test_tag_refuses_groups_that_do_not_exist(textcat, tmp_path):
    done = textcat("tag", tmp_path, "--groups", tmp_path / "none.jsonl")
    assert done.returncode == 1
