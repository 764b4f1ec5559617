"""`textcat review`: a spreadsheet goes out and comes back, the audit is printed, mistakes are told in a sentence."""

import csv
import shutil

import pytest

from textcat.corpus.corrections import Corrections


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
