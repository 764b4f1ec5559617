"""Inputs of a run: apart from its output, and warned of when they change."""

import io
import os
from functools import partial
from types import SimpleNamespace

import pytest
from archive_runs import make_archive, rows, run

from textcat.base.errors import TextcatError
from textcat.reading import ChangeKind, InputSettings


def test_the_folder_must_not_lie_in_an_input_nor_an_input_in_it(model, tmp_path):
    make_archive(tmp_path / "in" / "a.jsonl", 5)
    for inputs, place in [(["in"], "in/out"), (["in"], "in"), (["in/a.jsonl"], "in")]:
        with pytest.raises(TextcatError, match="one contains the other: write to another folder"):
            run(model, [tmp_path / name for name in inputs], tmp_path / place)
    assert run(model, [tmp_path / "in"], tmp_path / "in2").counts.records == 5


def test_a_folder_that_only_grows_while_it_is_read_is_told_of_and_loses_nothing(model, tmp_path, caplog):
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
    assert record.message.startswith(f"{path.parent} grew, {sizes}, while it was read: ")
    assert "give the same command again" in record.message
    assert record.levelname == "WARNING"
    assert (summary.changed, summary.grown) == ((), (str(path.parent),))
    assert summary.counts.inputs == {str(path.parent): summary.counts.tagged}


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


LINES = b"".join(b'{"id": "%d", "text": "Tin rose by %d."}\n' % (i, i) for i in range(1, 601))
BLOCKS = InputSettings(block_bytes=1 << 10)


def _run_while(change, model, inputs, out):
    changes = [change]
    return run(model, inputs, out, BLOCKS, progress=lambda reached: changes and changes.pop()())


def _append(path, data):
    with path.open("ab") as file:
        file.write(data)


@pytest.mark.parametrize("added", [b'{"text": "more"}\n', b', "more": 1}\n'])
def test_a_log_that_only_grows_is_read_as_it_was_at_the_start(model, tmp_path, caplog, added):
    first, log = tmp_path / "first.jsonl", tmp_path / "log.jsonl"
    half = b"" if added.startswith(b"{") else b'{"text": "half"'  # a line of which its writer has written a half
    first.write_bytes(LINES)
    log.write_bytes(LINES + half)
    summary = _run_while(lambda: _append(log, added * 3), model, [first, log], tmp_path / "out")
    assert (summary.counts.tagged, summary.counts.rejected) == (1200, 0)
    assert summary.counts.inputs == {str(first): 600, str(log): 600}
    assert (summary.changed, summary.grown) == ((), (str(log),))
    (record,) = caplog.records
    sizes = f"from {len(LINES + half):,} to {len(LINES + half + 3 * added):,} bytes"
    for part in (str(log), sizes, "600 documents", "give the same command again"):
        assert part in record.message


def test_the_documents_of_a_log_that_grows_again_are_counted_once(model, tmp_path, caplog):
    log = tmp_path / "in" / "log.jsonl"
    log.parent.mkdir()
    (log.parent / "other.jsonl").write_bytes(LINES)
    log.write_bytes(LINES)
    run(model, [log.parent], tmp_path / "out", BLOCKS)
    _append(log, b"".join(LINES.splitlines(keepends=True)[:100]))
    caplog.clear()
    summary = _run_while(lambda: _append(log, LINES), model, [log.parent], tmp_path / "out")
    (change,) = summary.changes
    assert change.grew
    assert change.documents == summary.counts.tagged == len(rows(tmp_path / "out")) > 1200
    assert run(model, [log.parent], tmp_path / "out", BLOCKS).counts.tagged == 600 + log.read_bytes().count(b"\n")


def test_a_pipe_beside_a_log_that_grows_needs_a_new_run(model, tmp_path, monkeypatch):
    log = tmp_path / "log.jsonl"
    log.write_bytes(LINES)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b'{"text": "wheat"}\n')))
    summary = _run_while(lambda: _append(log, LINES), model, [log, "-"], tmp_path / "out")
    assert "--restart" in str(summary.changes[0])


@pytest.mark.parametrize("left", [0, 10_000])
def test_what_a_cut_input_lacks_is_told_by_documents_and_bytes(model, tmp_path, caplog, left):
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    first.write_bytes(LINES * 3)
    second.write_bytes(LINES)
    summary = _run_while(lambda: os.truncate(second, left), model, [first, second], tmp_path / "out")
    (change,) = summary.changes
    assert (change.name, change.change.kind) == (str(second), ChangeKind.SHRANK)
    n = LINES[:left].count(b"\n")
    assert change.documents == summary.counts.inputs[str(second)] == n
    assert change.missing == len(LINES) - sum(map(len, LINES.splitlines(keepends=True)[:n]))
    for part in (str(second), f"{n:,} documents", f"at least {change.missing:,} bytes", "the same command again"):
        assert part in str(change)


def test_a_pipe_that_cannot_be_compared_is_refused_after_another_input_was_cut(model, tmp_path, monkeypatch):
    path = tmp_path / "a.jsonl"
    path.write_bytes(LINES)

    def run_with_pipe():
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b'{"text": "wheat"}\n')))
        run(model, [path, "-"], tmp_path / "out")

    run_with_pipe()
    os.truncate(path, 1000)
    told = f"from {len(LINES):,} to 1,000 bytes, after 600 documents of it were read: "
    with pytest.raises(TextcatError, match=told):
        run_with_pipe()


def test_an_input_that_is_removed_after_it_was_read_lacks_nothing(model, tmp_path):
    path = make_archive(tmp_path / "a.jsonl", 40)
    summary = _run_while(path.unlink, model, [path], tmp_path / "out")
    (change,) = summary.changes
    assert (change.change.kind, change.missing) == (ChangeKind.GONE, None)
    assert "no document of the start of the run is missing" in str(change)
