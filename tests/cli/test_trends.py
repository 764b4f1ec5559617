"""The command `trends`."""

import csv
import json

import pytest

import textcat
from textcat.review.review import Review


@pytest.fixture
def tags(tagged_archive):
    """Tags of 300 documents of three months."""
    return str(tagged_archive)


def test_people_see_the_most_frequent_topics_and_programs_all(run, tags, promising_model):
    topics = textcat.load(promising_model).topics
    assert run("trends", tags).code == 0
    assert "2024-01" in run.out
    assert f"{len(topics) - 10} less frequent topics are left out" in run.out
    run("trends", tags, "--as", "csv")
    rows = [*csv.DictReader(run.out.splitlines())]
    assert len(rows) == 3 * len(topics)
    assert {row["period"] for row in rows} == {"2024-01", "2024-02", "2024-03"}
    assert all(0 <= float(row["low"]) <= float(row["prevalence"]) <= float(row["high"]) <= 1 for row in rows)
    run("trends", tags, "--as", "json", "--estimator", "em", "--topic", f"{topics[0]}\u200b")
    printed = json.loads(run.out)
    assert (printed["estimator"], printed["by"], printed["documents"]) == ("em", "month", 300)
    assert [row["topic"] for row in printed["rows"]] == [topics[0]] * 3


def test_a_file_has_the_rows_in_the_form_of_its_ending(run, tags, tmp_path):
    import pyarrow.parquet as pq

    for ending in ("csv", "json", "parquet"):
        assert run("trends", tags, "--out", f"trends.{ending}").code == 0
    rows = json.loads((tmp_path / "trends.json").read_text())["rows"]
    assert pq.read_table(tmp_path / "trends.parquet").to_pylist() == rows
    assert len([*csv.DictReader((tmp_path / "trends.csv").open())]) == len(rows)
    assert ".parquet" in run.misuses("trends", tags, "--out", "trends.xlsx")


def test_what_cannot_be_estimated_is_refused(run, tags, tmp_path):
    assert "--by day" not in run.refuses("trends", tags, "--topic", "nothing")
    assert "has no tags" in run.refuses("trends", tmp_path)
    assert "by month or by day" in run.refuses("trends", tags, "--by", "year")
    assert "week" in run.refuses("trends", tags, "--by", "week")


def test_a_page_of_curves_is_written(run, tags, tmp_path):
    assert run("trends", tags, "--out", "trends.html", "--topic", "grain").code == 0
    assert "Trends of tags" in (tmp_path / "trends.html").read_text()


def test_a_judged_sample_is_used_and_shown(run, tags, tmp_path):
    said = str(tmp_path / "said")
    assert "has no corrections" in run.refuses("trends", tags, "--corrections", said)
    review = Review(tags, said, sample=20)
    for document in review.documents:
        review.answer(document.number, dict.fromkeys(document.document.topics, True), is_complete=True)
    run("trends", tags, "--corrections", said)
    assert "judged" in run.out
    run("trends", tags, "--corrections", said, "--as", "json")
    printed = json.loads(run.out)
    assert printed["judged"] == 60
    assert {row["judged"] for row in printed["rows"]} == {20}


def test_documents_are_counted_by_source_or_a_kept_field(run, tags):
    run("trends", tags, "--by", "source", "--as", "csv")
    assert len({row["period"] for row in csv.DictReader(run.out.splitlines())}) == 2
    assert "--keep-fields desk" in run.refuses("trends", tags, "--by", "desk")
