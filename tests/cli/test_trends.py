"""The command `trends`."""

import csv
import json

import pytest

import textcat


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
    run("trends", tags, "--as", "json", "--estimator", "em", "--topic", topics[0])
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
