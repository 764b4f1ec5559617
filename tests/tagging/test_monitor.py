"""Tags of an archive are compared with earlier ones: what has changed is told, and little else."""

import json
from datetime import date, timedelta

import numpy as np
import pytest
from archive_runs import run
from tag_folders import write_tags

import textcat
from textcat.base.errors import TextcatError
from textcat.model.manifest import read_manifest
from textcat.runs.records import facts_of_run
from textcat.tagging.monitor import NO_KNOWN_TERM, NO_TOPIC, RateChange, monitor_tags
from textcat.tagging.output import OutputSettings
from textcat.tagging.run import tag_archive

TEXTS = {"wheat": "Wheat exports rose to 12 mln tonnes.", "": "Nothing of it is known."}
FIRST = date(2025, 1, 1)


def write_archive(path, n_days, wheat, a_day=20, seed=0):
    """Write documents of some days, of which a share is about wheat; `wheat` is a function of the day."""
    chance, lines = np.random.default_rng(seed), []
    for day in range(n_days):
        for _ in range(a_day):
            text = TEXTS["wheat" if chance.random() < wheat(day) else ""]
            lines.append({"id": str(len(lines)), "text": text, "date": str(FIRST + timedelta(day))})
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


@pytest.fixture(scope="module")
def changed(model, tmp_path_factory):
    """An archive of which ever more documents are about wheat from the 60th day on, and its tags."""
    folder = tmp_path_factory.mktemp("changed")
    run(model, [write_archive(folder / "a.jsonl", 90, lambda day: 0.1 if day < 60 else 0.5)], folder / "tags")
    return folder


def test_what_has_changed_is_told_with_the_day(changed):
    found = monitor_tags([changed / "tags"], since="2025-02-01")
    assert (found.reference, found.documents, found.undated) == (31 * 20, 59 * 20, 0)
    assert (found.since, found.last, found.is_alarm) == ("2025-02-01", "2025-03-31", True)
    (wheat,) = (change for change in found.changes if change.topic == "wheat")
    assert "2025-02-22" <= wheat.since <= "2025-03-02" < wheat.told < "2025-03-06"
    assert wheat.before < 0.2 < 0.3 < wheat.now
    assert {change.topic for change in found.changes} >= {"wheat", NO_TOPIC}
    assert all(isinstance(change, RateChange) and change.told >= "2025-03-02" for change in found.changes)
    assert monitor_tags([changed / "tags"]).since == "2025-02-15"


def test_documents_dated_in_the_future_and_years_without_documents_change_nothing(changed, tmp_path):
    found = monitor_tags([changed / "tags"], since="2025-02-01")
    days = ["9999-12-31", "2505-01-01", "1600-01-01", "0001-01-01"]
    rows = [{"id": day, "source": "a", "position": 1, "date": day, "topics": []} for day in days]
    other = write_tags(tmp_path / "other", {"part-00000.jsonl": rows}, facts_of_run(changed / "tags"))
    with_others = monitor_tags([changed / "tags", other], since="2025-02-01")
    assert with_others.undated == 2
    assert with_others.reference == found.reference + 2
    assert (with_others.last, with_others.is_alarm) == (found.last, True)
    assert [(one.topic, one.told) for one in with_others.changes] == [(one.topic, one.told) for one in found.changes]
    assert (
        monitor_tags([changed / "tags", other], since="0001-01-02").documents == found.reference + found.documents + 1
    )


@pytest.mark.parametrize("to", ["jsonl", "csv", "parquet"])
def test_a_story_printed_often_is_no_change_if_duplicates_are_known(to, model, tmp_path):
    path = write_archive(tmp_path / "a.jsonl", 60, lambda day: 0)
    story = "Wheat exports rose to 12 mln tonnes in the first half of the year, the ministry said on Tuesday."
    copies = [{"id": "1", "text": story, "date": f"2025-02-{day:02}"} for day in range(1, 20) for _ in range(5)]
    path.write_text(
        "".join(
            f"{json.dumps(line | {'text': line['text'] + line['id']})}\n"
            for line in map(json.loads, path.read_text().splitlines())
        )
    )
    with path.open("a") as file:
        file.writelines(f"{json.dumps(line)}\n" for line in copies)
    textcat.find_duplicates([path], tmp_path / "groups.jsonl", jobs=1)
    for name, groups in (("apart", ""), ("known", str(tmp_path / "groups.jsonl"))):
        tag_archive(model, path, tmp_path / name, jobs=1, output_settings=OutputSettings(to=to, duplicates=groups))
    apart, known = (monitor_tags([tmp_path / name], since="2025-02-01") for name in ("apart", "known"))
    assert (apart.repeated, known.repeated) == (0, len(copies) - 1)
    assert (apart.is_alarm, known.is_alarm) == (True, False)
    assert apart.documents - known.documents == len(copies) - 1


def test_changes_are_told_in_every_year_that_has_documents(changed, tmp_path):
    facts = facts_of_run(changed / "tags")
    days = ["1900-01-01"] * 500 + ["1901-02-01", "1901-03-01"] * 300 + ["2024-12-24"] * 500
    rows = [
        {"id": str(i), "source": "a", "position": i, "date": day, "topics": [{"topic": "wheat"}] * (day > "1901")}
        for i, day in enumerate(days)
    ]
    out = write_tags(tmp_path / "out", {"part-00000.jsonl": rows}, facts)
    found = monitor_tags([out], since="1901-01-01")
    told = sorted({(change.topic, change.told) for change in found.changes})
    assert told == [
        (NO_TOPIC, "1901-02-01"),
        (NO_TOPIC, "2024-12-24"),
        ("wheat", "1901-02-01"),
        ("wheat", "2024-12-24"),
    ]


@pytest.mark.parametrize("to", ["jsonl", "csv", "parquet"])
def test_all_formats_are_read_and_a_quiet_archive_gives_no_alarm(model, tmp_path, to):
    archive = write_archive(tmp_path / "a.jsonl", 60, lambda day: 0.2, a_day=5)
    run(model, [archive], tmp_path / "tags", write=OutputSettings(to=to))
    found = monitor_tags([tmp_path / "tags"])
    assert (found.reference, found.documents) == (150, 150)
    assert not found.changes
    assert not found.is_alarm


def test_documents_without_a_known_term_are_a_rate_of_their_own(model, tmp_path):
    lines = [
        {"text": "zyxwv qwzk" if day >= 40 and i % 2 else TEXTS["wheat"], "date": str(FIRST + timedelta(day))}
        for day in range(60)
        for i in range(10)
    ]
    (tmp_path / "a.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines) + '{"text": "wheat"}\n')
    run(model, [tmp_path / "a.jsonl"], tmp_path / "tags")
    found = monitor_tags([tmp_path / "tags"], since="2025-01-20")
    assert found.undated == 1
    assert NO_KNOWN_TERM in {change.topic for change in found.changes}


def test_documents_that_a_former_model_tagged_are_left_out(model, other_model, tmp_path):
    (tmp_path / "archive").mkdir()
    gone, out = write_archive(tmp_path / "archive" / "a.jsonl", 3, lambda day: 1), tmp_path / "tags"
    tag_archive(other_model, [tmp_path / "archive"], out, jobs=1)
    tag_archive(model, [tmp_path / "archive"], out, jobs=1, model_changes="new")
    with pytest.raises(TextcatError, match="60 documents by former models or rules, and none by the present ones"):
        monitor_tags([out])
    gone.unlink()
    write_archive(tmp_path / "archive" / "b.jsonl", 10, lambda day: 0)
    tag_archive(model, [tmp_path / "archive"], out, jobs=1, model_changes="all")
    found = monitor_tags([out])
    assert (found.model, found.left_out) == (read_manifest(model).id, 60)
    assert (found.reference, found.documents) == (100, 100)


def test_what_cannot_be_compared_is_told(changed, model, other_model, tmp_path):
    tags = changed / "tags"
    for since, told in {
        "2025-01-01": r"no document before 2025-01-01: give another day by --since, from 2025-01-02 to 2025-03-31",
        "2026-01-01": "no document from 2026-01-01 on",
        "last week": "'last week' is no day",
    }.items():
        with pytest.raises(TextcatError, match=told):
            monitor_tags([tags], since=since)
    with pytest.raises(TextcatError, match="level cannot be 1"):
        monitor_tags([tags], level=1)
    archive = write_archive(tmp_path / "a.jsonl", 3, lambda day: 1)
    run(other_model, [archive], tmp_path / "other")
    with pytest.raises(TextcatError, match=r"models \w+ and \w+"):
        monitor_tags([tags, tmp_path / "other"])
    run(model, [archive], tmp_path / "top", write=OutputSettings(top=2))
    with pytest.raises(TextcatError, match="chosen by --top"):
        monitor_tags([tmp_path / "top"])
    (tmp_path / "undated.jsonl").write_text('{"text": "wheat"}\n')
    run(model, [tmp_path / "undated.jsonl"], tmp_path / "undated")
    with pytest.raises(TextcatError, match="None of the 1 documents has a date"):
        monitor_tags([tmp_path / "undated"])
    with pytest.raises(TextcatError, match="has no tags"):
        monitor_tags([tmp_path])
    assert textcat.monitor_tags is monitor_tags
