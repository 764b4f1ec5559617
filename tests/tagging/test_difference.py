"""Two runs over the same archive, compared: what came and what went."""

import pytest
from archive_runs import make_archive, run
from tag_folders import write_tags

from textcat.base.errors import TextcatError
from textcat.tagging.difference import TagDifference, TopicDifference, compare_tags
from textcat.tagging.output import OutputSettings
from textcat.tagging.shards import read_tags


def write(folder, documents):
    rows = [
        {"id": id_, "source": "a", "position": position, "topics": [{"topic": topic} for topic in topics]}
        for id_, position, topics in documents
    ]
    return write_tags(folder, {"part-00000.jsonl": rows})


def test_tags_that_came_and_went_are_counted_with_examples(tmp_path):
    old = [("x", 1, ["gold"]), ("y", 2, ["gold", "tin"]), ("z", 3, []), ("old", 4, ["tin"])]
    new = [("new", 9, []), ("z", 3, ["gold"]), ("x", 1, ["zinc"]), ("y", 2, ["tin"])]
    found = compare_tags(write(tmp_path / "old", old), write(tmp_path / "new", new), 1)
    gold = TopicDifference("gold", 2, 1, 1, 2, ("z",), ("x",))
    zinc = TopicDifference("zinc", 0, 1, 1, 0, ("x",), ())
    assert found == TagDifference(3, 3, 1, 1, [gold, zinc])


def test_documents_that_moved_are_compared_with_themselves_if_their_ids_are_unique(tmp_path):
    old = [("x", 1, ["gold"]), ("y", 2, ["tin"]), ("twice", 3, ["tin"]), ("twice", 4, ["gold"])]
    new = [("new", 1, ["zinc"]), ("x", 2, ["gold"]), ("y", 3, ["gold"]), ("twice", 4, ["gold"]), ("twice", 5, ["tin"])]
    found = compare_tags(write(tmp_path / "old", old), write(tmp_path / "new", new))
    assert found[:4] == (3, 1, 1, 2)  # which of two with an id has moved, nobody knows
    assert [(row.topic, row.came, row.went) for row in found.topics] == [("gold", 1, 0), ("tin", 0, 1)]


@pytest.mark.parametrize("to", ["jsonl", "csv", "parquet"])
def test_any_two_forms_of_output_are_compared(model, tmp_path, caplog, to):
    archive = make_archive(tmp_path / "a.jsonl", 60)
    run(model, [archive], tmp_path / "jsonl")
    other = tmp_path / "other"
    run(model, [archive], other, write=OutputSettings(to=to, compress="zst" if to == "csv" else ""))
    assert len(list(read_tags(other))) > 40
    found = compare_tags(tmp_path / "jsonl", other)
    assert (found.changed, found.only_before, found.only_now, found.topics) == (0, 0, 0, [])
    assert not caplog.records
    run(model, [archive], tmp_path / "one", write=OutputSettings(to=to, top=1))
    assert compare_tags(tmp_path / "jsonl", tmp_path / "one").changed > 0


def test_unfinished_runs_are_compared_with_a_warning(tmp_path, caplog):
    folders = [write(tmp_path / name, [("x", 1, ["gold"])]) for name in ("old", "new")]
    assert compare_tags(*folders).documents == 1
    for folder, record in zip(folders, caplog.records, strict=True):
        assert f"The run in {folder} is not finished" in record.message


def test_a_folder_without_shards_is_told(tmp_path):
    with pytest.raises(TextcatError, match="has no tags"):
        compare_tags(tmp_path, tmp_path)
