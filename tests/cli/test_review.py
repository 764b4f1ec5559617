"""`textcat review`: a spreadsheet goes out and comes back, the audit is printed, mistakes are told in a sentence."""

import csv
import json
import shutil
from functools import partial

import pytest

from textcat.corpus.corrections import Corrections
from textcat.review.review import Review


@pytest.fixture
def archive(tagged_archive, tmp_path):
    return shutil.copytree(tagged_archive, tmp_path / "tags")


def test_answers_go_out_and_come_back_by_a_spreadsheet(run, archive, tmp_path):
    run("review", archive, "--uncertain", 5, "--audit", 0.5, "--out", tmp_path / "r.csv")
    assert run.code == 0
    assert "tags of 5 documents to judge" in run.err
    with open(tmp_path / "r.csv", newline="", encoding="utf-8") as file:
        rows = [row | {"answer": "yes"} for row in csv.DictReader(file)]
    with open(tmp_path / "r.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    run("review", archive, "--read", tmp_path / "r.csv", "--person", "Ann")
    assert (run.code, run.err) == (0, "textcat: 5 documents answered.\n")
    run("review", archive, "--read", tmp_path / "r.csv", "--person", "Ann")
    assert run.err == "textcat: 0 documents answered; 5 had been read before.\n"
    made = [*Corrections(tmp_path / "tags-corrections")]
    assert sum(len(correction.answers) for correction in made) == len(rows)
    run("review", archive, "--report")
    n = sum(row["status"] == "automatic" for row in rows)
    assert n
    assert f"all             {n:>6}" in run.out
    assert run("review", archive, "--report", "--as", "csv").out.startswith(
        "topic,month,judged,right,precision,low,high\n"
    )


def test_the_tags_of_an_unfinished_run_are_judged_with_a_warning(run, archive, tmp_path):
    lines = (archive / "_journal.jsonl").read_bytes().splitlines(keepends=True)
    Review(archive).answer(0, {}, "Ann")
    (archive / "_journal.jsonl").write_bytes(b"".join(line for line in lines if b'"finished"' not in line))
    for options in (("--sample", 5), ("--uncertain", 5)):
        run("review", archive, *options, "--out", tmp_path / "r.csv")
        assert run.code == 0
        assert f"warning: The run in {archive} is not finished" in run.err
    run("review", archive, "--report")
    assert "is not finished" in run.err


def test_a_folder_of_tags_may_be_the_current_one_or_the_one_above(run, archive, tmp_path, monkeypatch):
    Review(archive).answer(0, {}, "Ann")
    (tmp_path / "tags" / "in").mkdir()
    for folder, name in (("tags", "."), ("tags/in", "..")):
        monkeypatch.chdir(tmp_path / folder)
        assert "No automatic tag and no document was drawn" in run.refuses("review", name, "--report")
        run("review", name, "--uncertain", 5, "--out", tmp_path / "r.csv")
        assert run.code == 0
        run("trends", name, "--by", "month")
        assert run.code == 0
    assert [path.name for path in tmp_path.glob("*-corrections")] == ["tags-corrections"]


def test_answers_about_a_text_that_was_replaced_need_a_new_sheet(run, newswire_model, tmp_path):
    story, sheet = tmp_path / "a.jsonl", tmp_path / "s.csv"
    tag = partial(run, "tag", newswire_model, story, "--out", tmp_path / "tags", "--jobs", 1)
    read = partial(run, "review", tmp_path / "tags", "--read", sheet)
    story.write_text('{"id": "s1", "text": "Wheat exports rose to 12 mln tonnes, wheat and grain."}\n')
    tag()
    run("review", tmp_path / "tags", "--uncertain", 9, "--out", sheet)
    with open(sheet, newline="", encoding="utf-8") as file:
        rows = [row | {"answer": "yes"} for row in csv.DictReader(file)]
    with open(sheet, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    story.write_text('{"id": "s1", "text": "Corn exports fell to 11 mln tonnes, corn and grain."}\n')
    assert "s1, are gone, or have changed since they were tagged" in read().err
    assert run.code == 3
    assert run.err.endswith("tag the archive again, then read the sheet again.\n")
    tag()
    assert "such as s1, have another text now" in read().err
    assert run.code == 3
    assert "Write a new sheet" in run.err
    assert [*Corrections(tmp_path / "tags-corrections")] == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--uncertain", 5), "--uncertain N and --out FILE go together"),
        (("--read", "a.csv", "--report"), "give one of them"),
        (("--audit", 2), "audit"),
    ],
)
def test_options_that_do_not_go_together_are_refused(run, archive, arguments, words):
    assert words in run.misuses("review", archive, *arguments)


def test_what_is_not_there_is_told_in_a_sentence(run, archive, tmp_path):
    assert "does not say where its documents are" in run.refuses("review", tmp_path, "--uncertain", 5, "--out", "r.csv")
    assert "has no corrections" in run.refuses("review", archive, "--report")
    assert "Cannot read the sheet" in run.refuses("review", archive, "--read", "r.csv")
    Corrections(tmp_path / "tags-corrections")
    assert "No automatic tag and no document was drawn" in run.refuses("review", archive, "--report")


def test_the_report_counts_the_majority_of_people_and_what_is_no_sample(run, archive, tmp_path):
    review = Review(archive, sample=30)
    *first, left_out, last = review.documents
    for document in (*first, last):
        for person in ("Ann", "Bob", "Carl"):
            said = dict.fromkeys(document.document.topics, person != "Carl")
            review.answer(document.number, said, person, is_complete=True)
    run("review", archive, "--report", "--as", "json")
    report = json.loads(run.out)
    n_tags = sum(len(document.document.topics) for document in (*first, last))
    assert report["sample"][0]["precision"] == 1
    assert (report["shared"], report["disputed"]) == (n_tags, n_tags)
    is_after = left_out.document.date[:7] == last.document.date[:7]
    assert report["judged_outside"] == is_after
    assert report["sample"][0]["documents"] == len(first) + 1 - is_after
    assert report["judged_gone"] == report["in_other_months"] == 0
    run("review", archive, "--report")
    assert f"{n_tags:,} of which are disputed" in run.out


def test_a_sample_without_its_first_document_is_refused(run, archive):
    review = Review(archive, sample=30)
    first = {document.document.date[:7]: document.number for document in reversed(review.documents)}.values()
    assert len(review.documents) > len(first)
    for document in review.documents:
        if document.number not in first:
            review.answer(document.number, dict.fromkeys(document.document.topics, True), is_complete=True)
    assert "None of the" in run.refuses("review", archive, "--report")
    (kept, *_) = first
    review.answer(kept, dict.fromkeys(review.documents[kept].document.topics, True), is_complete=True)
    assert "sampled documents" in run("review", archive, "--report").out
