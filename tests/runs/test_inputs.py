"""Inputs of a run: apart from its output, and warned of when they change."""

import pytest
from archive_runs import make_archive, run

from textcat.errors import TextcatError


def test_the_folder_must_not_lie_in_an_input_nor_an_input_in_it(model, tmp_path):
    make_archive(tmp_path / "in" / "a.jsonl", 5)
    for inputs, place in [(["in"], "in/out"), (["in"], "in"), (["in/a.jsonl"], "in")]:
        with pytest.raises(TextcatError, match="one contains the other: write to another folder"):
            run(model, [tmp_path / name for name in inputs], tmp_path / place)
    assert run(model, [tmp_path / "in"], tmp_path / "in2").counts.records == 5


def test_an_input_that_changes_while_it_is_read_is_told_of(model, tmp_path, caplog):
    path = make_archive(tmp_path / "in" / "a.jsonl", 40)
    run(model, [path.parent], tmp_path / "quiet")
    assert not caplog.records

    def add(reached):
        if not (path.parent / "b.jsonl").exists():
            make_archive(path.parent / "b.jsonl", 1)

    run(model, [path.parent], tmp_path / "out", progress=add)
    (record,) = caplog.records
    assert record.message == f"{path.parent} changed while it was read: its new documents may be missing."
    assert record.levelname == "WARNING"
