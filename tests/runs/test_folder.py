"""The folder of a run: whole shards, a journal that is true, and nobody else's files."""

import subprocess
import sys
from contextlib import closing
from dataclasses import replace

import pytest
from archive_folders import FACTS, INPUTS, PER_PIECE, batch, content, write
from tag_folders import write_tags

from textcat.base.errors import TextcatError
from textcat.base.journal import journal_line, read_journal
from textcat.runs.folder import open_folder
from textcat.runs.records import read_log
from textcat.runs.results import encode_rejection
from textcat.runs.shard_writer import ShardWriter
from textcat.tagging.output import OutputSettings, file_format

JSONL = OutputSettings()


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def cut_after(out, n_shards):
    """Take away what was written after so many shards, but for files that nobody has named yet."""
    lines = (out / "_journal.jsonl").read_bytes().splitlines(keepends=True)
    (out / "_journal.jsonl").write_bytes(b"".join(lines[: n_shards + 1]))


def refused(out, **changed):
    with pytest.raises(TextcatError) as error:
        write(out, **changed)
    return str(error.value)


# --- what is written -------------------------------------------------------------------------------------------------


def test_the_shards_hold_what_became_of_the_pieces_in_their_order(out):
    write(out, 8)
    done = [batch(number, JSONL)[1] for number in range(8)]
    names, written = content(out)
    assert names == [
        ".lock",
        "_inputs.jsonl",
        "_journal.jsonl",
        "_rejected.jsonl",
        *(f"part-0000{i}.jsonl" for i in range(4)),
    ]
    rejections = [encode_rejection(rejection) for tagged in done for rejection in tagged.rejections]
    assert written == b"".join([rows for tagged in done for rows in tagged.rows] + rejections)


def test_a_shard_ends_with_the_piece_that_brings_it_to_its_size(out):
    write(out, 8, max_records=2 * PER_PIECE + 1)
    _, *entries, last = read_journal(out / "_journal.jsonl").lines
    assert [entry["checkpoint"][0] for entry in entries] == [3, 6, 8]
    assert [entry["counts"]["records"] for entry in entries] == [9, 9, 6]
    assert last == {"record": "finished"}
    write(out.with_name("bytes"), 8, max_bytes=1)
    assert len(read_journal(out.with_name("bytes") / "_journal.jsonl").lines) == 1 + 8 + 1


def test_where_all_is_rejected_there_is_no_shard_but_the_journal_goes_on(out):
    with (
        open_folder(out, FACTS, INPUTS) as state,
        closing(ShardWriter(out, state, file_format(JSONL), max_records=1, max_bytes=1 << 20)) as shards,
    ):
        first, tagged = batch(1, JSONL)
        shards.add(first, replace(tagged, rows=[]))
        shards.add(*batch(2, JSONL))
        shards.finish()
    assert [entry.get("name") for entry in read_journal(out / "_journal.jsonl").lines[1:]] == [
        "",
        "part-00000.jsonl",
        None,
    ]
    assert write(out).shards == 1


def test_a_run_without_input_leaves_no_shard(out):
    write(out, 0)
    assert content(out) == ([".lock", "_inputs.jsonl", "_journal.jsonl"], b"")
    assert write(out, 0).finished


# --- going on --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_shards", range(5))
@pytest.mark.parametrize(
    "output",
    [JSONL, JSONL._replace(compress="zst"), OutputSettings("csv"), OutputSettings("parquet")],
    ids=lambda o: o.suffix,
)
def test_a_run_goes_on_after_the_last_shard_of_its_journal(out, n_shards, output):
    write(out, 8, output)
    undisturbed = content(out)
    cut_after(out, n_shards)
    done = write(out, 8, output)
    assert (done.shards, done.finished) == (n_shards, False)
    assert content(out) == undisturbed
    assert write(out, 8, output).finished


@pytest.mark.parametrize("torn", [1, 10, -1])
def test_a_line_of_the_journal_that_was_being_written_is_dropped(out, torn):
    write(out, 8)
    undisturbed = content(out)
    lines = (out / "_journal.jsonl").read_bytes().splitlines(keepends=True)
    (out / "_journal.jsonl").write_bytes(b"".join(lines[:3]) + lines[3][:torn])
    assert write(out, 8).shards == 2
    assert content(out) == undisturbed
    assert not read_journal(out / "_journal.jsonl").damaged


def test_what_stands_behind_the_journal_is_removed_when_a_run_goes_on(out):
    write(out, 8)
    undisturbed = content(out)
    cut_after(out, 2)
    for name in ("part-00099.jsonl", "part-00004.jsonl.part", "_journal.jsonl.part", "part-00001.csv"):
        (out / name).write_text("left")
    write(out, 8)
    assert content(out) == undisturbed


def test_how_far_a_run_has_come_is_the_sum_of_its_journal(out):
    write(out, 8)
    done = write(out, 8)
    assert (done.finished, done.shards, done.checkpoint, done.read) == (True, 4, (8, 0), 80)
    assert (done.counts.records, done.counts.tagged, done.counts.rejected) == (24, 20, 4)
    assert done.counts.topics == {"wheat": 20}
    assert done.log.rejections[0] == (out / "_rejected.jsonl").stat().st_size


def test_a_finished_run_is_left_as_it_is(out):
    write(out, 8)
    before = {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in out.glob("[!.]*")}
    assert write(out, 8).finished
    journal_is_longer = {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in out.glob("part*")}
    assert journal_is_longer.items() <= before.items()


# --- names -----------------------------------------------------------------------------------------------------------


def test_a_folder_of_parquet_is_read_whole_by_pandas(out):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    write(out, 8, OutputSettings("parquet"))
    frame = pandas.read_parquet(out)
    assert list(frame["id"]) == [f"{number}-{i}" for number in range(8) for i in range(PER_PIECE - number % 2)]
    assert (out / "_rejected.jsonl").exists()


# --- refusing --------------------------------------------------------------------------------------------------------


def test_a_run_with_other_facts_is_refused_and_told_which(out):
    write(out)
    assert refused(out, facts={**FACTS, "model": "b2"}) == (
        f"The run in {out} began with model a1, but now has model b2: "
        "start again with --restart, or name another folder."
    )
    assert "began with no --top, but now has --top 3" in refused(out, facts={**FACTS, "--top": 3})
    assert "began with model a1, but now has no model" in refused(out, facts={"--top": None})


def test_a_run_with_other_inputs_is_refused_and_told_which(out):
    write(out)
    first, second = INPUTS
    assert f"b.jsonl has changed since the run in {out} began" in refused(out, inputs=[first, {**second, "size": 21}])
    assert "The inputs have changed, from b.jsonl to nothing, since" in refused(out, inputs=[first])
    assert "from nothing to c.jsonl" in refused(out, inputs=[*INPUTS, {"name": "c.jsonl"}])
    assert "from a.jsonl to b.jsonl" in refused(out, inputs=[second])


def test_restart_begins_anew_and_removes_what_was_written(out):
    write(out, 8)
    (out / "notes.txt").write_text("mine")
    write(out, 2, facts={**FACTS, "model": "b2"}, restart=True)
    assert content(out)[0] == [
        ".lock",
        "_inputs.jsonl",
        "_journal.jsonl",
        "_rejected.jsonl",
        "notes.txt",
        "part-00000.jsonl",
    ]
    assert write(out, 2, facts={**FACTS, "model": "b2"}).finished


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("name", ["part-00000.jsonl", "notes.txt", "_rejected.jsonl"])
def test_a_folder_that_holds_anything_else_is_refused(out, name, restart):
    out.mkdir()
    (out / name).write_text("mine")
    assert refused(out, restart=restart) == f"{out} holds {name!r}, but no journal of a run: name another folder."
    assert (out / name).read_text() == "mine"


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("theirs", ["", "my journal\n", '{"a": 1}\n{"b": 2}\n'])
def test_another_programs_journal_is_refused(out, theirs, restart):
    out.mkdir()
    (out / "_journal.jsonl").write_text(theirs)
    assert "is not a journal of textcat: name another folder" in refused(out, restart=restart)
    assert (out / "_journal.jsonl").read_text() == theirs


def test_a_shard_or_a_journal_that_was_changed_is_refused(out):
    write(out)
    shard, written = out / "part-00001.jsonl", (out / "part-00001.jsonl").read_bytes()
    shard.write_bytes(written.replace(b"wheat", b"maize"))
    told = f"{shard} is missing or changed: restore it, or start again with --restart, or name another"
    told += " folder."
    assert refused(out) == told
    shard.unlink()
    assert refused(out) == told
    shard.write_bytes(written)
    rejected = (out / "_rejected.jsonl").read_bytes()
    for changed in (b"", rejected[:-1], rejected.replace(b"reason", b"reasom", 1)):
        (out / "_rejected.jsonl").write_bytes(changed)
        assert "_rejected.jsonl is missing or changed" in refused(out)
    (out / "_rejected.jsonl").write_bytes(rejected)
    lines = (out / "_journal.jsonl").read_bytes().splitlines(keepends=True)
    (out / "_journal.jsonl").write_bytes(b"".join([lines[0], lines[1].replace(b"wheat", b"maize"), *lines[2:]]))
    assert "_journal.jsonl is damaged" in refused(out)
    (out / "_journal.jsonl").write_bytes(lines[0].replace(b"a1", b"b2") + lines[1])
    assert "is not a journal" in refused(out)


@pytest.mark.parametrize("version", [0, 2, 4, "3"])
def test_a_folder_of_another_version_is_refused(out, version):
    out.mkdir()
    (out / "_journal.jsonl").write_bytes(journal_line({"textcat archive": version, "facts": {}}))
    assert "was begun by another version of textcat" in refused(out)


def test_two_runs_do_not_write_to_one_folder(out):
    with open_folder(out, FACTS, INPUTS):
        assert refused(out) == f"Another run is writing to {out}: wait until it ends, or name another folder."
    write(out)


def test_the_lock_of_a_process_that_was_killed_keeps_nobody_out(out):
    program = (
        "import os, signal, sys; from pathlib import Path; from textcat.runs.folder import open_folder\n"
        "with open_folder(Path(sys.argv[1]), {}, []): print(flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(out)], capture_output=True)
    assert (ended.stdout, ended.returncode) == (b"\n", -9)
    write(out, facts={}, inputs=[])


def test_a_folder_that_cannot_be_made_is_told_in_a_sentence(tmp_path):
    (tmp_path / "file").touch()
    assert refused(tmp_path / "file" / "out").startswith(
        f"Cannot write to {tmp_path / 'file' / 'out'} (Not a directory)"
    )


# --- forms -----------------------------------------------------------------------------------------------------------


def test_the_log_of_a_folder_that_another_run_has_replaced_is_not_current(tmp_path):
    shards = {"part-00000.jsonl": []}
    log = read_log(write_tags(tmp_path / "tags", shards, {"model": "a"}), "")
    assert log.is_current()
    write_tags(tmp_path / "tags", shards, {"model": "b"})
    assert (tmp_path / "tags" / "_journal.jsonl").stat().st_size == log.length
    assert not log.is_current()
