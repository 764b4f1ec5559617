"""Folders of tags are counted together only if their tags can be compared, for alarms and trends alike."""

import json
from functools import partial

import pytest

from textcat.base.errors import TextcatError
from textcat.reading import InputSettings
from textcat.tagging.monitor import monitor_tags
from textcat.tagging.output import OutputSettings
from textcat.tagging.planning import make_plan
from textcat.tagging.run import tag_archive, tag_to_folder
from textcat.tagging.trends import estimate_trends

COUNTS = [monitor_tags, partial(estimate_trends, by="day")]
both = pytest.mark.parametrize("count", COUNTS, ids=["monitor", "trends"])


def write(path, days, n=10):
    """Write some documents about wheat for each day of January 2024."""
    path.parent.mkdir(exist_ok=True)
    text = "Wheat exports rose to 12 mln tonnes."
    lines = [{"id": f"{day}-{i}", "text": text, "date": f"2024-01-{day:02}"} for day in days for i in range(n)]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


@pytest.fixture
def rules(tmp_path):
    (tmp_path / "rules.toml").write_text('never = ["wheat"]\n')
    return OutputSettings(rules=str(tmp_path / "rules.toml"))


@pytest.fixture
def tags(promising_model, tmp_path):
    write(tmp_path / "archive" / "a.jsonl", range(1, 11))
    tag_archive(promising_model, [tmp_path / "archive"], tmp_path / "tags", jobs=1)
    return tmp_path / "tags"


@both
def test_documents_tagged_by_former_rules_are_left_out(count, promising_model, tags, rules, tmp_path):
    write(tmp_path / "archive" / "b.jsonl", range(11, 21))
    again = partial(tag_archive, promising_model, [tmp_path / "archive"], tags, jobs=1)
    again(output_settings=rules, model_changes="new")
    found = count([tags])
    assert found.left_out == 100
    assert not getattr(found, "changes", ())
    assert sum(row.tagged for row in getattr(found, "rows", ()) if row.topic == "wheat") == 0
    again(output_settings=rules, model_changes="all")
    assert count([tags]).left_out == 0


@both
def test_an_archive_tagged_by_former_rules_alone_is_refused(count, promising_model, tags, rules, tmp_path):
    write(tmp_path / "archive" / "empty.jsonl", [])
    again = {"jobs": 1, "output_settings": rules, "model_changes": "new"}
    tag_archive(promising_model, [tmp_path / "archive"], tags, **again)
    with pytest.raises(TextcatError, match="100 documents by former models or rules, and none by the present ones"):
        count([tags])


@both
def test_folders_tagged_by_different_rules_are_refused(count, promising_model, tags, rules, tmp_path):
    again = {"jobs": 1, "output_settings": rules, "model_changes": "all"}
    tag_archive(promising_model, [tmp_path / "archive"], tags, **again)
    with pytest.raises(TextcatError, match="different house rules"):
        count([tags, tmp_path / "tags.before"])


@both
def test_folders_with_tags_of_the_same_file_are_refused(count, promising_model, tags, tmp_path):
    write(tmp_path / "archive" / "b.jsonl", range(11, 21))
    kept = OutputSettings(keep_fields=("date",))
    tag_archive(promising_model, [tmp_path / "archive"], tmp_path / "kept", jobs=1, output_settings=kept)
    with pytest.raises(TextcatError, match=r"both have tags of .*a\.jsonl: name one of these folders"):
        count([tags, tmp_path / "kept"])


@both
def test_files_of_the_same_name_with_other_documents_are_no_repetition(count, promising_model, tmp_path, monkeypatch):
    for name, days in {"one": range(1, 11), "two": range(11, 21)}.items():
        write(tmp_path / name / "a.jsonl", days)
        write(tmp_path / name / "empty.jsonl", [])
        monkeypatch.chdir(tmp_path / name)
        tag_archive(promising_model, ["a.jsonl", "empty.jsonl"], "tags", jobs=1)
    found = count([tmp_path / "one" / "tags", tmp_path / "two" / "tags"])
    assert getattr(found, "reference", 0) + found.documents == 200


@both
def test_an_unfinished_run_is_counted_with_a_warning(count, promising_model, tmp_path, caplog):
    for n in range(6):
        write(tmp_path / "archive" / f"{n}.jsonl", range(1 + 5 * n, 6 + 5 * n))
    plan = make_plan(promising_model, tmp_path / "archive", InputSettings(block_bytes=1000), jobs=1)

    def stop(progress):
        if progress.counts.records > 140:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tag_to_folder(plan, tmp_path / "tags", progress=stop, max_records=30)
    caplog.clear()
    count([tmp_path / "tags"])
    assert f"The run in {tmp_path / 'tags'} is not finished, as 4 files are not read to the end yet" in caplog.text
    tag_to_folder(plan, tmp_path / "tags", max_records=30)
    caplog.clear()
    count([tmp_path / "tags"])
    assert not caplog.records


@both
def test_different_parts_of_a_run_count_together_but_not_with_the_whole(count, promising_model, tags, tmp_path, caplog):
    parts = [tmp_path / "1", tmp_path / "2"]
    for number, part in enumerate(parts, start=1):
        small = {"jobs": 1, "input_settings": InputSettings(block_bytes=1000), "part": f"{number}/2"}
        tag_archive(promising_model, [tmp_path / "archive"], part, **small)
    assert count(parts) == count([tags])
    assert not caplog.records
    count(parts[1:])
    assert f"{parts[1]} has only part 2/2 of a run" in caplog.text
    for part in parts:
        with pytest.raises(TextcatError, match="both have tags of"):
            count([tags, part])


@both
def test_a_folder_that_is_missing_or_empty_is_named(count, tags, tmp_path):
    (tmp_path / "empty").mkdir()
    for name in ("missing", "empty"):
        with pytest.raises(TextcatError, match=rf"{name} has no tags"):
            count([tags, tmp_path / name])


@both
def test_a_lack_of_periods_is_explained_by_what_is_left_out(count, promising_model, tags, rules, tmp_path):
    again = partial(tag_archive, promising_model, [tmp_path / "archive"], tags, jobs=1, output_settings=rules)
    write(tmp_path / "archive" / "b.jsonl", [11])
    again(model_changes="new")
    told = r"100 documents that only former models or rules have tagged are left out: .* --model-changes all\.$"
    with pytest.raises(TextcatError, match=rf"are of 2024-01-11: .*{told}"):
        count([tags])
    if count is monitor_tags:
        write(tmp_path / "archive" / "c.jsonl", [12])
        again(model_changes="new")
        with pytest.raises(TextcatError, match=rf"no document before 2024-01-11: .*{told}"):
            count([tags], since="2024-01-11")
