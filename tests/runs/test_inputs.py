"""Inputs of a run: apart from its output, and warned of when they change."""

from functools import partial

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

    before = path.stat().st_size
    summary = run(model, [path.parent], tmp_path / "out", progress=add)
    (record,) = caplog.records
    now = before + (path.parent / "b.jsonl").stat().st_size
    sizes = f"from {before:,} to {now:,} bytes"
    assert record.message.startswith(
        f"{path.parent} changed, {sizes}, while it was read: its documents may be missing;"
    )
    assert record.levelname == "WARNING"
    assert summary.changed == (str(path.parent),)


def _replace(path):
    other = make_archive(path.with_suffix(".new"), 50)
    other.replace(path)


@pytest.mark.parametrize("change", [_replace, lambda path: path.unlink(), lambda path: path.write_bytes(b"")])
@pytest.mark.parametrize("target", ["a.jsonl", "b.jsonl"])
def test_an_input_that_is_replaced_removed_or_emptied_is_named_at_the_end(model, tmp_path, caplog, change, target):
    paths = [make_archive(tmp_path / name, 40) for name in ("a.jsonl", "b.jsonl")]
    changes = [partial(change, tmp_path / target)]
    summary = run(model, paths, tmp_path / "out", progress=lambda reached: changes and changes.pop()())
    assert summary.changed == (str(tmp_path / target),)
    assert any(str(tmp_path / target) in record.message for record in caplog.records)
