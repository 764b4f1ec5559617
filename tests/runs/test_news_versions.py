"""Versions of news in different files: each item has one row, that of its newest version, whatever happens."""

import errno
import json
import os
import random
import shutil
import zlib

import pytest
from archive_runs import make_archive, run, written
from attacks.histories import Fault
from interrupted_runs import EVERY, Killed
from news_versions import item, make_news, newest_in, write_items
from read_sources import tarred, zipped

from textcat.base.errors import TextcatError
from textcat.reading import InputSettings, ItemVersion, VersionState
from textcat.runs import workers
from textcat.runs.growth import Growth
from textcat.runs.news_version_chunks import encode_versions
from textcat.runs.news_versions import Segment, VersionFile, find_superseded
from textcat.tagging.output import OutputSettings
from textcat.tagging.shards import read_tags

READ = InputSettings(block_bytes=1500)
WITHDRAWN, OLDER = "took its place, and was canceled", "or the same again, took its place"


@pytest.fixture
def folder(tmp_path):
    return make_news(tmp_path / "in")


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def tag(model, folder, out, **options):
    return run(model, [folder], out, read=READ, **options)


def rejected(out):
    path = out / "_rejected.jsonl"
    return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []


def check(out, summary, files):
    """Check that each id has one row, that of its newest version, and that all others are left out once."""
    newest, places = newest_in(files)
    found = [(tags.id, (tags.source, tags.position)) for tags in read_tags(out)]
    assert sorted(found) == sorted(newest.items())
    assert sorted((one["source"], one["position"]) for one in rejected(out)) == sorted({*places} - {*newest.values()})
    assert all(one.get("left_out") for one in rejected(out))
    counts = summary.counts
    assert (counts.records, counts.tagged, counts.faults) == (len(places), len(newest), 0)
    assert counts.rejected == counts.left_out == sum((+counts.reasons).values()) == len(places) - len(newest)


# --- one run ---------------------------------------------------------------------------------------------------------


def test_each_item_has_one_row_that_of_its_newest_version(model, folder, out):
    summary = tag(model, folder, out)
    assert summary.shards > 3
    check(out, summary, sorted(folder.iterdir()))
    reasons = [one["reason"] for one in rejected(out)]
    assert {any(what in reason for reason in reasons) for what in (WITHDRAWN, OLDER, "is canceled by")} == {True}
    again = tag(model, folder, out)
    assert again.before.finished
    assert again.counts == summary.counts


FORMS = [
    OutputSettings(compress="zst"),
    OutputSettings("csv"),
    OutputSettings("csv", no_csv_escape=True),
    OutputSettings("csv", "zst", per_document=True),
    OutputSettings("parquet"),
    OutputSettings(all_topics=True),
]


@pytest.mark.parametrize("form", FORMS, ids=["zst", "csv", "raw", "per document", "parquet", "all"])
def test_every_output_has_each_item_once(model, folder, out, form):
    if form.to == "parquet":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    summary = tag(model, folder, out, write=form)
    check(out, summary, sorted(folder.iterdir()))
    if not form.all_topics:
        above = [topic for tags in read_tags(out) for topic in tags.topics]
        assert sum((+summary.counts.topics).values()) == len(above)


def test_ids_and_files_that_csv_writes_with_an_apostrophe_are_found(model, tmp_path, out, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_items(tmp_path / "=a.jsonl", [item("=1", 1), item("-2", 2), item("'=1", 1)])
    write_items(tmp_path / "=b.jsonl", [item("=1", 2), item("-2", 1), item("'=1", 2)])
    summary = run(model, ["=a.jsonl", "=b.jsonl"], out, read=READ._replace(block_bytes=1), write=OutputSettings("csv"))
    assert summary.counts.tagged == 3
    assert [(one["source"], one["position"]) for one in rejected(out)] == [
        ("=a.jsonl", 1),
        ("=a.jsonl", 3),
        ("=b.jsonl", 2),
    ]


def test_processes_write_what_the_process_itself_does(model, folder, out, monkeypatch):
    tag(model, folder, out.with_name("alone"))
    monkeypatch.setattr(workers, "IN_PROCESS_BYTES", 0)
    tag(model, folder, out, jobs=2)
    assert written(out) == written(out.with_name("alone"))
    assert (out / "_versions-00000.bin").read_bytes() == (out.with_name("alone") / "_versions-00000.bin").read_bytes()


@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
def test_rows_of_documents_without_versions_are_never_touched(model, tmp_path, out, block_bytes):
    write_items(tmp_path / "in" / "a.jsonl", [item("urn:1", 1)])
    write_items(tmp_path / "in" / "a2.jsonl", [{"id": "urn:1", "text": "wheat"}])
    (tmp_path / "in" / "a.rss").write_text(
        "<rss><channel><item><guid>urn:1</guid><title>Tin</title><description>Tin rose.</description></item>"
        "</channel></rss>"
    )
    write_items(tmp_path / "in" / "b.jsonl", [item("urn:1", 2)])
    plain = make_archive(tmp_path / "in" / "c.jsonl", 5)
    summary = run(model, [tmp_path / "in"], out, read=READ._replace(block_bytes=block_bytes))
    n_plain = sum('"id": "0-' in line for line in plain.read_text().splitlines())
    assert [tags.id for tags in read_tags(out)].count("urn:1") == 3
    assert summary.counts.tagged == 3 + n_plain
    assert [(os.path.basename(one["source"]), one["position"]) for one in rejected(out) if "left_out" in one] == [
        ("a.jsonl", 1)
    ]


@pytest.mark.parametrize("version", ["0", 0])
@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
def test_version_0_without_a_date_is_a_version(model, tmp_path, out, version, block_bytes):
    write_items(tmp_path / "in" / "a.jsonl", [{"uri": "urn:1", "version": version, "body_text": "Wheat rose."}])
    write_items(tmp_path / "in" / "b.jsonl", [{"uri": "urn:1", "version": "2", "body_text": "Wheat fell."}])
    summary = run(model, [tmp_path / "in"], out, read=READ._replace(block_bytes=block_bytes))
    assert (summary.counts.tagged, len(rejected(out))) == (1, 1)


def test_an_archive_without_news_has_no_file_of_versions(model, tmp_path, out):
    make_archive(tmp_path / "a.jsonl", 20)
    run(model, [tmp_path / "a.jsonl"], out)
    assert {path.name for path in out.iterdir() if not path.name.startswith(("_bins-", "_held-out-"))} <= {
        *("part-00000.jsonl", "part-00001.jsonl", ".lock", "_rejected.jsonl"),
        *("_journal.jsonl", "_inputs.jsonl", "_files-00000.jsonl", "_origin.json", "_summary.json"),
    }
    assert b'"versions"' not in (out / "_journal.jsonl").read_bytes()


def test_the_same_item_in_entries_of_the_same_name_is_written_once(model, tmp_path, out):
    import tarfile

    for number, version in enumerate((2, 1)):
        write_items(tmp_path / "x.jsonl", [item("urn:1", version, words=40)])
        with tarfile.open(tmp_path / "a.tar", "a" if number else "w") as file:
            file.add(tmp_path / "x.jsonl", "x.jsonl")
    write_items(tmp_path / "b.jsonl", [item("urn:1", 1)])
    summary = run(model, [tmp_path / "a.tar", tmp_path / "b.jsonl"], out, read=READ._replace(block_bytes=1))
    assert (summary.counts.tagged, summary.counts.left_out) == (1, 2)


# --- archives that grow ----------------------------------------------------------------------------------------------


def test_a_newer_version_that_arrives_later_replaces_the_row(model, tmp_path, out):
    folder = tmp_path / "in"
    write_items(folder / "a.jsonl", [item("urn:1", 1), item("urn:2", 1), item("urn:3", 2)])
    run(model, [folder], out)
    write_items(folder / "b.jsonl", [item("urn:1", 2), item("urn:2", 2, "canceled"), item("urn:3", 1)])
    summary = run(model, [folder], out)
    check(out, summary, sorted(folder.iterdir()))
    assert [tags.id for tags in read_tags(out)] == ["urn:3", "urn:1"]
    # The same again, and one in between.
    write_items(folder / "c.jsonl", [item("urn:2", 1), item("urn:3", 1), item("urn:1", 2)])
    check(out, run(model, [folder], out), sorted(folder.iterdir()))


def test_an_older_version_counts_again_when_the_newer_one_has_gone_from_a_changed_file(model, tmp_path, out):
    folder = tmp_path / "in"
    write_items(folder / "a.jsonl", [item("urn:1", 1), item("urn:2", 1)])
    write_items(folder / "b.jsonl", [item("urn:1", 2), item("urn:3", 1)])
    run(model, [folder], out)
    write_items(folder / "b.jsonl", [item("urn:3", 1), item("urn:4", 1)], ns=10**18)
    summary = run(model, [folder], out)
    check(out, summary, sorted(folder.iterdir()))
    assert [os.path.basename(name) for name in summary.growth.changed] == ["b.jsonl"]
    assert run(model, [folder], out).growth is not None
    (folder / "a.jsonl").rename(folder / "c.jsonl")
    check_places(model, folder, out)


def check_places(model, folder, out):
    """A renamed file keeps its former name in the rows."""
    summary = run(model, [folder], out)
    assert not summary.growth.gone
    newest, places = newest_in(sorted(folder.iterdir()))
    assert sorted(tags.id for tags in read_tags(out)) == sorted(newest)
    assert summary.counts.records == len(places)


# What happens between two runs: file and version of urn:1 (a dict), "-" and a file that is deleted, "!" and one that
# cannot be read, "?" and one that can again. A version 0 stands for another item, and a negative one is canceled.
A, B, C = {"a": 1}, {"b": 2}, {"c": 3}
STORIES = {
    "gone before": ([A | B, "-b", {"d": 3}, {"d": 0}], "a1"),
    "gone before, canceled": ([A | B, "-b", {"d": -3}, {"d": 0}], "a1"),
    "not gone": ([A | B, {"d": 3}, {"d": 0}], "b2"),
    "gone while the newer one is there": ([A | B, {"d": 3}, "-b", {"d": 0}], "a1"),
    "gone when the newer one goes": ([A | B, {"d": 3}, ["-b", {"d": 0}]], "a1"),
    "gone while the canceled one is there": ([A | B, {"d": -3}, "-b", {"d": 0}], "a1"),
    "gone after": ([A | B, {"d": 3}, {"d": 0}, "-b"], "b2"),
    "the older one comes later": ([B, A, "-b", {"d": 3}, {"d": 0}], "a1"),
    "the oldest one comes last": ([B, "-b", {"d": 3}, A, {"d": 0}], "a1"),
    "all are gone": ([A | B, "-b", {"d": 3}, "-a", {"d": 0}], ""),
    "all are gone, the older one comes back": ([A | B, "-b", {"d": 3}, "-a", {"d": 0}, A], "a1"),
    "all are gone, both come back": ([A | B, "-b", {"d": 3}, "-a", {"d": 0}, A, B], "b2"),
    "it comes back": ([A | B, "-b", {"d": 3}, {"d": 0}, B], "b2"),
    "it comes back under another name": ([A | B, "-b", {"d": 3}, {"d": 0}, {"e": 2}], "e2"),
    "it comes back when the oldest one is gone": ([A | B, "-b", {"d": 3}, {"d": 0}, "-a", B], "b2"),
    "two are gone": ([A | B | C, "-b", "-c", {"d": 4}, {"d": 0}], "a1"),
    "two are gone, one comes back": ([A | B | C, "-b", "-c", {"d": 4}, {"d": 0}, B], "b2"),
    "the newest of three": ([A | B | C, "-c", {"d": 4}, {"d": 0}], "b2"),
    "the newest of three, then the next": ([A | B | C, "-c", {"d": 4}, {"d": 0}, "-b", {"d": 4}, {"d": 0}], "a1"),
    "one after the other": ([A, B, C, {"d": 4}, {"d": 0}, {"c": 0}, {"b": 0}], "a1"),
    "a row of a gone file": ([A | B, "-b", {"d": 1}, "-a", {"d": 0}], "b2"),
    "the same twice": ([A | {"b": 1}, "-b", {"d": 2}, {"d": 0}], "a1"),
    "the same twice, the first is gone": ([A | {"b": 1}, "-a", {"d": 2}, {"d": 0}], "b1"),
    "unreadable": ([A | B, "!b", {"d": 3}, {"d": 0}], "a1"),
    "unreadable, and the next is gone": ([A | B | C, ["!c", "-b"], {"d": 4}, {"d": 0}], "a1"),
    "unreadable, until it can be read": ([A | B, "!b", {"d": 3}, {"d": 0}, "?b"], "b2"),
    "unreadable, and deleted": ([A | B, {"d": 3}, "!b", {"d": 0}, "-b"], "a1"),
    "the oldest one can be read later": ([A | B, "-b", {"d": 3}, "!a", {"d": 0}, "?a"], "a1"),
    "a cancellation stays when its file is gone": ([A, {"d": -2}, "-d"], ""),
}  # fmt: skip


# Each story in one form of its files, in turn, or in all.
TOLD = [
    (story, form)
    for number, story in enumerate(STORIES)
    for turn, form in enumerate(["jsonl", "zip", "tar"])
    if number % 3 == turn or "TEXTCAT_LONG" in os.environ
]


@pytest.mark.sampled
@pytest.mark.parametrize(("story", "form"), TOLD)
def test_the_newest_version_that_can_be_read_or_has_a_row_has_the_row(model, tmp_path, out, faults, story, form):
    steps, expected = STORIES[story]
    folder, ns = tmp_path / "in", {}
    for number, step in enumerate(steps):
        for change in step if isinstance(step, list) else [step]:
            if isinstance(change, dict):
                for name, version in change.items():
                    # A file that comes back has its former content and time.
                    ns.setdefault((name, version), number + 1)
                    put_version(folder / f"{name}.{form}", version, ns[name, version])
                continue
            path = folder / f"{change[1:]}.{form}"
            if change[0] == "-":
                path.unlink()
            faults.pop(str(path), None)
            if change[0] == "!":
                faults[str(path)] = Fault(errno.EIO)
        summary = run(model, [folder], out)
    found = [os.path.relpath(tags.source, folder)[0] for tags in read_tags(out) if tags.id == "urn:1"]
    assert found == [*expected[:1]]
    assert all("took its place" in one["reason"] or "canceled" in one["reason"] for one in rejected(out))
    assert (summary.counts.rejected, summary.counts.faults) == (len(rejected(out)), 0)
    assert summary.counts.tagged == len([*read_tags(out)])
    assert run(model, [folder], out).growth == Growth()


def put_version(path, version, ns):
    """Write a file of two items, one of which is a version of urn:1; 0: it is another item."""
    status = "canceled" if version < 0 else "usable"
    items = [item(f"urn:1-{path.stem}", 1), item("urn:1" if version else "urn:9", abs(version), status)]
    plain = write_items(path.with_name("x.jsonl"), items)
    data = plain.read_bytes()
    plain.unlink()
    packed = {".zip": zipped, ".tar": tarred}.get(path.suffix)
    path.write_bytes(packed(("x/a.jsonl", data)) if packed else data)
    os.utime(path, ns=(ns * 10**9, ns * 10**9))


@pytest.mark.sampled
def test_a_run_that_was_killed_at_any_step_ends_with_the_same(model, tmp_path, out, kill_at):
    folder = make_news(tmp_path / "in", n_items=9, n_files=3, seed=3, share=1)
    tag(model, folder, out)
    expected, n_steps = written(out), kill_at[1]
    assert b'"replaced"' in (out / "_journal.jsonl").read_bytes()
    check(out, tag(model, folder, out), sorted(folder.iterdir()))
    # Steps before the first row is replaced are those of any run: see test_archive_faults.
    for step in [*range(1, n_steps // 2, 2 * EVERY), *range(n_steps // 2, n_steps + 1, EVERY)]:
        again = tmp_path / "again"
        shutil.rmtree(again, ignore_errors=True)
        kill_at[:] = [step, 0]
        with pytest.raises(Killed):
            tag(model, folder, again)
        kill_at[:] = [-1, 0]
        summary = tag(model, folder, again)
        assert written(again) == expected, step
    check(again, summary, sorted(folder.iterdir()))


def test_whenever_the_run_is_killed_while_news_arrives_and_changes_each_item_has_its_newest_row(
    model, tmp_path, out, kill_at
):
    draw, folder, kills = random.Random(5), make_news(tmp_path / "in", n_items=20, n_files=4, seed=4), 0
    tag(model, folder, out)
    for step in range(30):
        kill_at[:] = [draw.randrange(2, 60), 0]
        try:
            tag(model, folder, out)
        except Killed:
            kills += 1
        kill_at[0] = -1
        new = [
            item(f"urn:{draw.randrange(24)}", draw.randrange(1, 6), draw.choice(["usable", "usable", "canceled"]), step)
            for _ in range(draw.randrange(1, 6))
        ]
        # A new file, or another content of one that was there.
        path = folder / f"new{step:02}.jsonl" if step % 3 else draw.choice(sorted(folder.iterdir()))
        write_items(path, new, ns=10**18 + step * 10**9)
    assert kills >= 20
    summary = tag(model, folder, out)
    newest, places = newest_in(sorted(folder.iterdir()))
    # Of equal versions, the last one that was read counts, which depends on when files arrived.
    assert sorted(tags.id for tags in read_tags(out)) == sorted(newest)
    assert summary.counts.records == len(places)
    assert summary.counts.rejected == len(rejected(out)) == summary.counts.left_out
    assert not summary.counts.faults


# --- the table -------------------------------------------------------------------------------------------------------


def table(tmp_path, number, items, shard="part-00000.jsonl"):
    data = encode_versions([ItemVersion(*one) for one in items])
    path = tmp_path / str(number)
    path.write_bytes(data)
    return VersionFile(path, len(data), zlib.crc32(data), [Segment(shard, len(data))])


def test_the_largest_number_counts_then_the_latest_date_then_the_last_one(tmp_path):
    read = VersionState.READ
    for versions, n_lost in (([(2, 5), (10, 1)], 0), ([(1, 7), (1, 5)], 1), ([(0, -1), (1, -1)], 0), ([(3, 3)] * 2, 0)):
        items = [("a", version, "x", position, read) for position, version in enumerate(versions)]
        found = find_superseded([table(tmp_path, 0, [*items, ("b", (1, 1), "x", 9, read)])], 0)
        assert found.shards == {"part-00000.jsonl": 1}
        assert found.chunk[8:] == bytes([0, 0, 0, 0, n_lost, *bytes(7), 0])


def test_an_entry_takes_45_bytes_beside_the_names_of_the_files():
    items = [ItemVersion(f"urn:{i}", (i, i), "a.xml", i, VersionState.READ) for i in range(100)]
    assert len(encode_versions(items)) == 8 + len('["a.xml"]') + 45 * 100
    assert encode_versions([]) == b""


def test_what_is_left_out_has_no_row_to_lose_and_none_to_win_back(tmp_path):
    out = VersionState.LEFT_OUT
    first = table(tmp_path, 0, [("a", (1, 1), "x", 1, VersionState.READ), ("b", (1, 1), "x", 2, out)])
    second = table(tmp_path, 1, [("a", (2, 1), "y", 1, out), ("b", (2, 1), "y", 2, VersionState.READ)], "part-00001")
    found = find_superseded([first, second], 1)
    assert (found.shards, found.again) == ({"part-00000.jsonl": 1}, [])
    assert found.chunk[-1]  # withdrawn
    gone = second._replace(gone={"y"})
    older = first._replace(path=tmp_path / "2")
    items = [("a", (1, 1), "z/x", 1, VersionState.OLDER), ("b", (1, 1), "z/x", 2, out)]
    older = table(tmp_path, 2, items)
    assert find_superseded([older, gone], 2).again == [(0, "z/x")]


def test_a_damaged_file_of_versions_is_told(tmp_path):
    whole = table(tmp_path, 0, [("a", (1, 1), "x", position, VersionState.READ) for position in range(2)])
    data = whole.path.read_bytes()
    for damaged in (data[:-1], data[:-1] + b"\x07", bytes(4) + data[4:], b"\xff" * 8 + data[8:], None):
        whole.path.write_bytes(damaged) if damaged is not None else whole.path.unlink()
        with pytest.raises(TextcatError, match=r"0 is missing or changed: restore it, or start again with --restart\."):
            find_superseded([whole], 0)


@pytest.mark.parametrize("name", ["_rejected.jsonl", "_versions-00000.bin"])
def test_where_a_file_of_the_run_was_changed_nothing_is_read_or_written(model, folder, out, name):
    tag(model, folder, out)
    data = bytearray((out / name).read_bytes())
    data[len(data) // 2] ^= 8
    (out / name).write_bytes(data)
    write_items(folder / "new.jsonl", [item("urn:new", 1)])
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    with pytest.raises(TextcatError, match=rf"{name} is missing or changed: restore it, or start again"):
        tag(model, folder, out)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
