"""`textcat simulate`: its intervals are exact, and its figures are those of its runs."""

import json
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def records():
    """Forty records of two topics."""
    lines = []
    for i in range(40):
        topics = ["tin"] * (i % 5 == 0) + ["gold"] * (i % 4 == 1)
        lines.append(
            json.dumps({"id": str(i), "text": " ".join([*topics, f"word{i % 7}", "report"]), "topics": topics})
        )
    Path("records.jsonl").write_text("\n".join(lines) + "\n")
    return "records.jsonl"


def test_the_means_are_those_of_the_runs_and_do_not_hang_on_the_number_of_jobs(run, records):
    command = ["simulate", records, "--seeds", 2, "--rule", "none", "--as", "json"]
    told, again = (json.loads(run(*command, "--jobs", jobs).out) for jobs in (1, 2))
    assert told["runs"] == again["runs"]
    assert [(one["topic"], one["seed"]) for one in told["runs"]] == [
        (topic, seed) for topic in ("gold", "tin") for seed in (0, 1)
    ]
    assert {one["topic"]: one["relevant"] for one in told["runs"]} == {"gold": 10, "tin": 8}
    for one in told["topics"]:
        losses = [each["loss"] for each in told["runs"] if each["topic"] == one["topic"]]
        assert one["loss"]["mean"] == pytest.approx(np.mean(losses))
    assert told["rules"] == []


def test_one_topic_is_taught_in_each_way_that_is_named_once(run, records):
    ways = ["--strategy", "highest", "--strategy", "uncertain", "--strategy", "highest"]
    printed = run("simulate", records, "--topic", "tin", *ways, "--seeds", 1, "--jobs", 1).out
    assert [line.split()[0] for line in printed.splitlines() if "highest" in line][:1] == ["tin"]
    run("simulate", records, "--topic", "tin", *ways, "--seeds", 1, "--jobs", 1, "--as", "json")
    told = json.loads(run.out)
    assert [(one["topic"], one["strategy"]) for one in told["topics"]] == [("tin", "highest"), ("tin", "uncertain")]
    for one in told["runs"]:
        assert 8 <= one["answers95"] <= one["documents"] == 40
        assert 0 <= one["stops"]["learned"]["recall"] <= 1
        assert 0 < one["stops"]["learned"]["answers"] <= 40


def test_a_way_or_a_start_that_there_is_none_of_is_refused(run, records):
    for option in ("--strategy", "--start"):
        assert run("simulate", records, option, "sideways", "--jobs", 1, "--seeds", 1).code in (1, 2)
        assert "sideways" in run.err
        assert run.err.startswith("textcat: ")
