"""The summary of a folder of tags by month: the same whatever has happened to its files."""

import json
import shutil

import pytest
from archive_runs import run
from interrupted_runs import EVERY, Killed, count_steps

from textcat.model.manifest import read_manifest
from textcat.reading.dates import month_of
from textcat.tagging.merge import merge_parts
from textcat.tagging.output import OutputSettings
from textcat.tagging.run import tag_archive
from textcat.tagging.shards import read_tags

DATES = ["2026-01-05", "2026-01-31T23:59:00-05:00", "2026-02", "", "last week", "1999"]
MONTHS = ["1999-01", "2026-01", "2026-02", None]  # as they are listed


def write_dated(path, numbers):
    """Write documents of several months, and some without a date or a known term."""
    path.parent.mkdir(exist_ok=True)
    texts = ["Wheat exports rose.", "Oil prices fell in London.", "zyxwv qwzk", "The bank left its discount rate."]
    lines = [{"id": str(number), "text": texts[number % 4], "date": DATES[number % len(DATES)]} for number in numbers]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines) + "{\n")
    return path


def summary_of(out):
    return json.loads((out / "_summary.json").read_text())


@pytest.mark.parametrize("write", [{}, {"to": "csv"}, {"to": "parquet"}, {"top": 2, "compress": "zst"}])
def test_a_folder_has_its_summary_by_month_whatever_has_changed_in_its_files(model, tmp_path, write):
    folder, out, write = tmp_path / "in", tmp_path / "out", OutputSettings(**write)
    write_dated(folder / "a.jsonl", range(40))
    write_dated(folder / "b.jsonl", range(7))
    run(model, [folder], out, write=write)
    write_dated(folder / "b.jsonl", range(40, 70))
    write_dated(folder / "c.jsonl", range(90, 99))
    run(model, [folder], out, write=write)
    run(model, [folder], tmp_path / "whole", write=write)
    assert (out / "_summary.json").read_bytes() == (tmp_path / "whole" / "_summary.json").read_bytes()
    found = summary_of(out)
    assert [month["month"] for month in found["months"]] == MONTHS
    assert sum(month["documents"] for month in found["months"]) == found["all"]["documents"] == 79
    assert sum(month["no_known_term"] for month in found["months"]) == found["all"]["no_known_term"] == 20


def test_a_month_has_what_its_documents_have(model, tmp_path):
    out = tmp_path / "out"
    summary = run(model, [write_dated(tmp_path / "a.jsonl", range(60))], out)
    found, documents = summary_of(out), [*read_tags(out)]
    assert found["model"] == read_manifest(model).id
    for month in found["months"]:
        here = [one for one in documents if (month_of(one.date) or None) == month["month"]]
        assert month["documents"] == len(here)
        assert month["no_topic"] == sum(not one.topics for one in here)
        for topic in month["topics"]:
            assert topic["documents"] == sum(topic["topic"] in one.topics for one in here)
            assert topic["rate"] == pytest.approx(topic["documents"] / len(here), abs=1e-6)
    drifting = {topic["topic"] for topic in found["all"]["topics"] if topic["drift"]}
    assert drifting == {drift.topic for drift in summary.drifts}


def test_parts_and_another_model_give_the_summary_of_one_run(model, other_model, tmp_path):
    folder = tmp_path / "in"
    for number, name in enumerate("abcd"):
        write_dated(folder / f"{name}.jsonl", range(number * 50, number * 50 + 40))
    for number in (1, 2):
        tag_archive(model, [folder], tmp_path / f"{number}", jobs=1, part=f"{number}/2")
        assert not (tmp_path / f"{number}" / "_summary.json").exists()
    merge_parts([tmp_path / "2", tmp_path / "1"], tmp_path / "merged")
    for name, of in (("whole", model), ("other", other_model)):
        tag_archive(of, [folder], tmp_path / name, jobs=1)
    assert (tmp_path / "merged" / "_summary.json").read_bytes() == (tmp_path / "whole" / "_summary.json").read_bytes()
    tag_archive(other_model, [folder], tmp_path / "merged", jobs=1, model_changes="all")
    assert (tmp_path / "merged" / "_summary.json").read_bytes() == (tmp_path / "other" / "_summary.json").read_bytes()


@pytest.mark.sampled
def test_a_run_that_was_killed_at_any_step_ends_with_the_same_summary(model, tmp_path, monkeypatch):
    kill_at, folder, start = count_steps(monkeypatch), tmp_path / "in", tmp_path / "start"
    write_dated(folder / "a.jsonl", range(30))
    run(model, [folder], start)
    former = (start / "_summary.json").read_bytes()
    write_dated(folder / "a.jsonl", range(10, 24))
    run(model, [folder], tmp_path / "whole")
    whole, step, is_killed = (tmp_path / "whole" / "_summary.json").read_bytes(), 0, True
    while is_killed:
        step, is_killed, out = step + EVERY, False, tmp_path / f"out-{step}"
        shutil.copytree(start, out)
        kill_at[:] = [step, 0]
        try:
            run(model, [folder], out)
        except Killed:
            is_killed = True
        kill_at[:] = [-1, 0]
        assert (out / "_summary.json").read_bytes() in (former, whole)
        run(model, [folder], out)
        assert (out / "_summary.json").read_bytes() == whole, step
    assert step > 10


def test_a_lost_summary_comes_back_and_a_new_run_removes_that_of_the_former(model, tmp_path):
    path, out = write_dated(tmp_path / "a.jsonl", range(9)), tmp_path / "out"
    run(model, [path], out)
    before = (out / "_summary.json").read_bytes()
    (out / "_summary.json").unlink()
    run(model, [path], out)
    assert (out / "_summary.json").read_bytes() == before

    def look(progress):
        assert not (out / "_summary.json").exists()

    run(model, [path], out, restart=True, progress=look)
    assert (out / "_summary.json").read_bytes() == before
