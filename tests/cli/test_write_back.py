"""`textcat tag --write-back`: what it prints, its options and its exit codes."""

import json
import os
import re
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import forked_commands
import pytest
from commands import COMMAND, environment
from news_items import BODY_OF_DATA, NITF, g2_item, g2_message
from read_sources import COMPRESSIONS, tarred, zipped

from textcat.cli.write_back import WriteBack
from textcat.tagging import write_back as write_back_module


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.xml").write_text(g2_message(g2_item(1, BODY_OF_DATA)))
    (tmp_path / "in" / "b.xml").write_text(NITF)
    return tmp_path / "in"


def tags_in(path):
    return len(re.findall(rb"textcat:newswire-[0-9a-f]{12}\b", path.read_bytes()))


def test_files_are_written_and_counted(run, model, folder, tmp_path):
    run("tag", model, "in", "--write-back", "out", "--top", "3")
    assert (run.code, run.err) == (0, "")
    assert "files written  2" in run.out
    assert [tags_in(tmp_path / "out" / name) for name in ("a.xml", "b.xml")] == [3, 3]
    run("tag", model, "in", "--write-back", "out", "--top", "3", "--as", "json")
    found = json.loads(run.out)
    assert (found["written"], found["before"], found["left_out"], found["formats"]) == (0, 2, 0, {})
    run("tag", model, "in", "--write-back", "out", "--top", "3", "--restart", "-q")
    assert (run.code, run.out) == (0, "")


def test_files_are_written_to_the_folder_that_a_link_leads_to(run, model, folder, tmp_path):
    (tmp_path / "link").symlink_to("out")
    run("tag", model, "in", "--write-back", "link", "--top", "3", "-q")
    assert (run.code, run.err) == (0, "")
    assert tags_in(tmp_path / "out" / "a.xml") == 3


def test_what_is_left_out_is_told_and_the_exit_code_is_3(run, model, folder):
    (folder / "c.xml").write_text(g2_message(g2_item(1, BODY_OF_DATA, status="canceled")))
    (folder / "d.csv").write_text("id,text\n1,wheat\n")
    (folder / "e.xml").write_text("")
    run("tag", model, "in", "--write-back", "out")
    assert run.code == 3
    assert run.err.splitlines() == [
        "textcat: in/c.xml:1: Item 1 is canceled by its publisher, so it is left out.",
        "textcat: in/e.xml: It has no news item that could be tagged.",
        "textcat: 1 file is csv, which has no place for tags: write them with --out.",
    ]
    assert "left out          2" in run.out
    assert "of other formats  1" in run.out


def test_the_rest_is_copied_and_counted_and_the_exit_code_is_0(run, model, folder):
    (folder / "c.xml").write_text(g2_message(g2_item(1, BODY_OF_DATA, status="canceled")))
    (folder / "d.csv").write_text("id,text\n1,wheat\n")
    (folder / "e.zip").write_bytes(zipped(("x.xml", b"")))
    run("tag", model, "in", "--write-back", "out", "--copy-rest")
    assert (run.code, run.err) == (0, "")
    assert "files written       2" in run.out
    assert "copied as they are  3" in run.out
    assert re.search(r"1 +Item … is canceled by its publisher\.", run.out)
    assert "left out" not in run.out
    run("tag", model, "in", "--write-back", "json", "--copy-rest", "--as", "json")
    assert sum(json.loads(run.out)["copied"].values()) == 3
    assert "--copy-rest is for" in run.misuses("tag", model, "in", "--copy-rest")


def test_with_out_all_tags_are_in_shards_too(run, model, folder, tmp_path):
    (folder / "d.csv").write_text("id,text\n1,wheat\n")
    run("tag", model, "in", "--write-back", "out", "--out", "tags", "--keep-fields", "section")
    assert run.code == 0
    assert "its tags are in the folder of --out only" in run.err
    assert "documents        3" in run.out
    assert re.search(r"files written +2\n", run.out)
    assert len((tmp_path / "tags" / "part-00000.jsonl").read_text().splitlines()) == 3
    run("tag", model, "in", "--write-back", "out", "--out", "tags", "--keep-fields", "section", "--as", "json")
    assert json.loads(run.out)["write_back"]["before"] == 2


def test_options_that_contradict_each_other_are_refused(run, model, folder):
    back = ("tag", model, "in", "--write-back", "out")
    assert "add --write-back" in run.misuses("tag", model, "in", "--codes", "codes.csv")
    assert "needs files or folders" in run.misuses("tag", model, "--write-back", "out")
    assert "needs files or folders" in run.misuses("tag", model, "-", "--write-back", "out")
    assert "choose one of --stdout and --write-back" in run.misuses(*back, "--stdout")
    assert "--watch needs --out" in run.misuses(*back, "--watch")
    assert "--to is for tags in the folder of --out" in run.misuses(*back, "--to", "csv")
    assert "overlap: write to separate folders" in run.refuses(*back, "--out", "out/tags")
    assert "overlap, as one contains the other" in run.refuses("tag", model, "in", "--write-back", "in")
    assert "codes.csv cannot be read" in run.refuses(*back, "--codes", "codes.csv")
    assert not (folder.parent / "out").exists()


def test_archives_are_refused_before_any_work(run, model, folder, tmp_path):
    (folder / "b").mkdir()
    (folder / "b" / "c.tgz").write_bytes(COMPRESSIONS[".gz"](tarred(("a.xml", b"<a/>"))))
    (tmp_path / "d.zip").write_bytes(zipped(("a.xml", b"<a/>")))
    for inputs, name in (("in",), "in/b/c.tgz"), (("in/a.xml", "d.zip"), "d.zip"), (("-j", "2", "*.zip"), "d.zip"):
        for with_out in ((), ("--out", "tags"), ("--restart",)):
            sentence = run.refuses("tag", model, *inputs, "--write-back", "out", *with_out)
            assert f"{name} is a zip or tar" in sentence
            assert "unpack archives first" in sentence
            assert {path.name for path in tmp_path.iterdir()} == {"in", "d.zip"}
    run("tag", model, "in", "--out", "tags")
    assert "in/b/c.tgz" in (tmp_path / "tags" / "_rejected.jsonl").read_text()


def test_ctrl_c_leaves_whole_files_and_says_how_to_go_on(model, folder, tmp_path):
    command = [*COMMAND, "tag", str(model), "in", "--write-back", "out", "-j", "1"]
    first, code, n_files = 0, 0, 150
    while code == 0 and first < 5000:  # a fast machine may have written a small folder before the signal arrives
        for n in range(first, first + n_files):
            (folder / f"{n}.xml").write_text(g2_message(*(g2_item(i, BODY_OF_DATA) for i in range(1, 9))))
        process = started(command, tmp_path)
        # So many that those of the first batch are noted as written, too.
        while process.poll() is None and len([*(tmp_path / "out").glob("*.xml")]) < first + 2 * n_files // 3:
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        error = process.communicate(timeout=60)[1].decode()
        code, first, n_files = process.returncode, first + n_files, 3 * n_files
    assert code == 130
    assert "give the same command without --restart to resume the run" in error
    assert not (tmp_path / "out" / ".write-back.part").exists()
    done = forked_commands.run([*command, "--as", "json"], cwd=tmp_path, env=environment())
    found = json.loads(done.stdout)
    assert found["written"] + found["before"] == first + 2
    assert found["before"] >= 1


def test_a_watched_folder_is_written_back_as_files_arrive(model, folder, tmp_path):
    os.utime(folder / "a.xml", ns=(1, 1))
    (folder / "b.zip").write_bytes(zipped(("b.xml", g2_message(g2_item(3, BODY_OF_DATA)).encode())))
    command = [*COMMAND, "tag", str(model), "in", "--write-back", "out", "--out", "tags", "--watch", "-j", "1"]
    process = started(command, tmp_path)
    try:
        wait_for(tmp_path / "out" / "a.xml", process)
        (folder / "late.xml").write_text(g2_message(g2_item(2, BODY_OF_DATA)))
        wait_for(tmp_path / "out" / "late.xml", process)
        wait_for(tmp_path / "tags", process, lambda tags: len(rows_in(tags)) == 4)
    finally:
        process.send_signal(signal.SIGINT)
        error = process.communicate(timeout=60)[1].decode()
    assert "Traceback" not in error
    assert "1 file is zip, which has no place for tags" in error
    assert len(rows_in(tmp_path / "tags")) == 4
    assert not (tmp_path / "out" / "b.zip").exists()


def started(command, folder):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return forked_commands.Popen(command, cwd=folder, env=environment(), **pipes)


def rows_in(tags):
    """All rows of a run's shards: what arrives later is in further ones."""
    return [line for shard in sorted(tags.glob("part-*.jsonl")) for line in shard.read_text().splitlines()]


def wait_for(path, process, is_there=Path.exists):
    ends = time.monotonic() + 60
    while not is_there(path):
        assert process.poll() is None
        assert time.monotonic() < ends, f"{path} does not come"
        time.sleep(0.05)


def test_paths_in_the_folder_stay_when_a_watched_folder_is_missing_for_a_moment(folder, tmp_path, monkeypatch):
    bases = []

    def write_back(plan, out, base, *others, **options):
        bases.append(base)
        return SimpleNamespace(formats=Counter())

    monkeypatch.setattr(write_back_module, "write_back", write_back)
    write = WriteBack(tmp_path / "out", None, copy_rest=False).writer([str(folder)], has_out=True)
    write(None)
    folder.rename(tmp_path / "moved")
    write(None)
    assert bases == [str(folder)] * 2
