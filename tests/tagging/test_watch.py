"""Watched folders: each document of the files that arrive is tagged once, whatever stops the process."""

import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from functools import partial
from types import SimpleNamespace

import forked_commands
import pytest
from archive_runs import READ, make_archive, rows, run
from commands import COMMAND
from news_versions import item, write_items
from read_sources import tarred

import textcat
from textcat.base import disk
from textcat.base.errors import TextcatError
from textcat.model.manifest import read_manifest
from textcat.reading import FileState, InputSettings
from textcat.runs.files import ListedFile
from textcat.runs.folder import LOCK
from textcat.runs.records import read_log
from textcat.tagging import watch
from textcat.tagging.output import OutputSettings
from textcat.tagging.planning import make_plan
from textcat.tagging.run import tag_to_folder
from textcat.tagging.shards import read_tags

KILLS = 30 if os.environ.get("TEXTCAT_LONG") else 5


@pytest.fixture
def folder(tmp_path):
    path = make_archive(tmp_path / "in" / "a.jsonl", 12)
    os.utime(path, ns=(1, 1))  # not just now
    return tmp_path / "in"


def watched(model, folder, out, rounds, during=lambda n: None, **options):
    """Watch a folder for some rounds, and return their summaries; `during` is called after each, with its number."""
    summaries = []

    def show(summary):
        summaries.append(summary)
        during(len(summaries))

    plan = partial(make_plan, model, [folder], READ, OutputSettings(), jobs=1)
    watch.watch_archive(plan, [str(folder)], out, show, rounds=rounds, **options)
    return summaries


def hasten(monkeypatch):
    """Let a watching process look a hundred times as often."""
    real = {"time": time.time, "time_ns": time.time_ns, "sleep": lambda seconds: time.sleep(seconds / 100)}
    monkeypatch.setattr(watch, "time", SimpleNamespace(**real, monotonic=lambda: 100 * time.monotonic()))


@pytest.mark.parametrize("polls", [False, True])
def test_files_are_tagged_when_they_are_complete(model, folder, tmp_path, monkeypatch, polls):
    if polls:
        monkeypatch.setitem(sys.modules, "watchfiles", None)

    def change(n):
        if n == 1:
            threading.Thread(target=write_slowly).start()
        elif n == 2:
            (folder / "a.jsonl").rename(folder / "c.jsonl")

    def write_slowly():
        with open(folder / "b.jsonl", "w") as file:
            for number in range(8):
                file.write(json.dumps({"id": f"b{number}", "text": "wheat"}) + "\n")
                file.flush()
                time.sleep(watch.SETTLED / 4)

    first, second, third = watched(model, folder, tmp_path / "out", 3, change)
    assert first.counts.records == 12
    assert second.growth.new == (str(folder / "b.jsonl"),)
    assert second.counts.records == 20
    assert third.growth.renamed == ((str(folder / "c.jsonl"), str(folder / "a.jsonl")),)
    assert not third.growth.gone
    assert sorted(tag.id for tag in read_tags(tmp_path / "out"))[-8:] == [f"b{number}" for number in range(8)]


@pytest.mark.parametrize("polls", [False, True])
def test_a_file_that_arrives_in_the_first_round_is_found(model, folder, tmp_path, monkeypatch, polls):
    if polls:
        monkeypatch.setitem(sys.modules, "watchfiles", None)
    summaries = watched(model, folder, tmp_path / "out", 2, lambda n: make_archive(folder / "b.jsonl", 3, seed=1))
    assert summaries[1].growth.new == (str(folder / "b.jsonl"),)


def test_the_journal_is_replayed_only_if_another_run_has_added_to_it(model, folder, tmp_path, monkeypatch):
    replayed = []

    def read(*of_folder):
        log = read_log(*of_folder)
        replayed.extend([] if log is None else [log])
        return log

    monkeypatch.setattr("textcat.runs.folder.read_log", read)

    def change(n):
        make_archive(folder / f"{n}.jsonl", 3, seed=n)
        if n == 2:
            textcat.tag_archive(model, folder, tmp_path / "out", input_settings=READ, jobs=1)
        numbers.append(len(replayed))

    numbers = []
    watched(model, folder, tmp_path / "out", 3, change)
    assert numbers == [0, 1]
    assert len(replayed) == 2
    sources = Counter(tag.source for tag in read_tags(tmp_path / "out"))
    assert [sources[str(folder / name)] for name in ("1.jsonl", "2.jsonl")] == [3, 3]


@pytest.mark.parametrize("other", ["../other", ".other"])
def test_files_of_several_folders_are_told_apart(model, folder, tmp_path, monkeypatch, other):
    monkeypatch.chdir(folder)
    make_archive(folder / other / "b.jsonl", 5, seed=1)
    os.utime(folder / other / "b.jsonl", ns=(1, 1))

    def change():
        make_archive(folder / other / "c.jsonl", 3, seed=2)
        (folder / other / "b.jsonl").unlink()

    written, inputs = [], [".", other]
    plan = partial(make_plan, model, inputs, READ, OutputSettings(), jobs=1)
    watch.watch_archive(
        plan,
        inputs,
        tmp_path / "out",
        lambda summary: change() if len(written) == 1 else None,
        rounds=2,
        after=lambda plan: written.append([[state.name for state in source.states] for source in plan.sources]),
    )
    assert written == [[["a.jsonl"], ["b.jsonl"]], [[], ["c.jsonl"]]]
    sources = Counter(tags.source for tags in read_tags(tmp_path / "out"))
    assert sources == {"a.jsonl": 11, f"{other}/b.jsonl": 5, f"{other}/c.jsonl": 3}  # one line of a.jsonl is broken


@pytest.mark.parametrize("packed", [False, True])
def test_a_tar_that_is_written_with_pauses_is_tagged_again_when_it_has_its_end_mark(model, tmp_path, packed):
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    whole = tarred(*((f"{i}.txt", b"wheat") for i in range(3)))
    half = whole[:2048]  # two files, each with its header
    path = folder / ("a.tar.gz" if packed else "a.tar")
    path.write_bytes(gzip.compress(half) if packed else half)
    os.utime(path, ns=(1, 1))
    first, second = watched(
        model, folder, out, 2, lambda n: path.write_bytes(gzip.compress(whole) if packed else whole)
    )
    assert (first.counts.tagged, first.counts.faults) == (2, 1)
    assert (second.counts.tagged, second.counts.faults) == (3, 0)
    assert sorted(os.path.basename(tag.source) for tag in read_tags(out)) == ["0.txt", "1.txt", "2.txt"]


def test_a_newer_version_of_news_that_arrives_replaces_the_row(model, tmp_path):
    folder, out = tmp_path / "in", tmp_path / "out"
    os.utime(write_items(folder / "a.jsonl", [item("urn:1", 1), item("urn:2", 2)]), ns=(1, 1))
    new = [item("urn:1", 2), item("urn:2", 1), item("urn:2", 3, "canceled")]
    first, second = watched(model, folder, out, 2, lambda n: write_items(folder / "b.jsonl", new))
    assert (first.counts.tagged, second.counts.tagged, second.counts.left_out) == (2, 1, 4)
    assert [(tag.id, tag.source) for tag in read_tags(out)] == [("urn:1", str(folder / "b.jsonl"))]


def test_a_file_is_complete_when_it_has_not_changed_for_a_while(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(watch.time, "monotonic", lambda: clock[0])
    states = [FileState("in/a", 5, 1)]
    monkeypatch.setattr(watch, "list_files", lambda sources: [ListedFile("in", 0, 0, *state) for state in states])
    seen = watch.SettledFiles()
    assert seen.complete([], {}) == ([], {"in/a": states[0]})
    done = {"in/a": states[0]}
    grown = FileState("in/a", 7, 2)
    states[:] = [grown, FileState("in/b", 1, 2)]
    assert seen.complete([], done) == ([], done)
    clock[0] = watch.SETTLED
    states[0] = FileState("in/a", 9, 3)
    assert seen.complete([], done) == ([], {**done, "in/b": states[1]})
    clock[0] = 2 * watch.SETTLED
    del states[1]
    done = {"in/a": states[0], "in/b": FileState("in/b", 1, 2)}
    assert seen.complete([], done) == ([], done)
    clock[0] = 3 * watch.SETTLED
    assert seen.complete([], done) == ([], {"in/a": states[0]})


def test_an_input_of_unknown_files_cannot_be_watched(model, tmp_path, monkeypatch):
    monkeypatch.setattr(watch, "list_files", lambda sources: None)
    with pytest.raises(TextcatError, match="cannot be watched: name folders or files"):
        watched(model, make_archive(tmp_path / "in" / "a.jsonl", 2).parent, tmp_path / "out", 1)


@pytest.mark.sampled
def test_whenever_a_watching_process_is_killed_each_document_is_tagged_once(model, folder, tmp_path):
    draw, out = random.Random(3), tmp_path / "out"
    command = [*COMMAND, "tag", model, folder, "--out", out, "--watch", "-j", "1"]
    for kill in range(KILLS):
        process = forked_commands.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for step in range(3):
            make_archive(folder / f"new{kill}-{step}.jsonl", draw.randrange(1, 40), seed=100 * kill + step + 10)
            time.sleep(draw.random())
            names = sorted(folder.iterdir())
            if step == 1 and kill % 2:
                with open(draw.choice(names), "a") as file:
                    file.write(json.dumps({"id": f"added{kill}", "text": "gold"}) + "\n")
            elif step == 2 and kill % 3 == 0:
                draw.choice(names[:3]).rename(folder / f"renamed{kill}.jsonl")
        process.send_signal(signal.SIGKILL if kill % 4 else signal.SIGTERM)
        error = process.communicate(timeout=60)[1].decode()
        assert "Traceback" not in error, error
    run(model, [folder], out, read=InputSettings())
    run(model, [folder], tmp_path / "anew")
    tags = Counter((tag.id, tag.topics) for tag in read_tags(out))
    for key, n in Counter((tag.id, tag.topics) for tag in read_tags(tmp_path / "anew")).items():
        assert tags[key] == n, key


def test_a_file_that_disappears_before_it_is_read_is_rejected_only_until_it_is_known_to_be_gone(
    model, folder, tmp_path
):
    for name in ("a.jsonl", "b.jsonl"):
        (folder / name).write_text('{"text": "wheat"}\n')
        os.utime(folder / name, ns=(1, 1))
    other = folder / "b.jsonl"
    seen, plan = watch.SettledFiles(), partial(make_plan, model, [folder], READ, OutputSettings(), jobs=1)
    sources, complete = seen.complete(plan().sources, {})
    other.unlink()
    sources, now = seen.complete(plan().sources, complete)
    (folder / "a.jsonl").write_text('{"text": "wheat"}\n' * 9)  # as many bytes as both, and more
    assert now == complete  # it may appear again under another name
    out = tmp_path / "out"
    tag_to_folder(plan()._replace(sources=sources), out)
    (rejection,) = map(json.loads, (out / "_rejected.jsonl").read_text().splitlines())
    assert rejection["source"] == str(other)
    assert "No such file" in rejection["reason"]
    run(model, [folder], out)
    assert not (out / "_rejected.jsonl").exists()


def test_watching_writes_to_the_folder_that_a_link_leads_to(model, folder, tmp_path):
    (tmp_path / "link").symlink_to("real")
    watched(model, folder, tmp_path / "link", 1)
    assert rows(tmp_path / "real")


@pytest.mark.parametrize("how", ["a link is switched", "a folder is exchanged", "a folder is made anew", "at once"])
def test_watching_goes_on_when_its_folder_is_replaced(model, folder, tmp_path, monkeypatch, caplog, how):
    hasten(monkeypatch)
    other, watched_folder = tmp_path / "other", tmp_path / "watched"
    other.mkdir()
    make_archive(other / "other.jsonl", 12, seed=3)
    if how == "a link is switched":
        watched_folder.symlink_to(folder)
    else:
        folder.rename(watched_folder)

    def during(n):
        if n == 1:  # notification begins after this round
            make_archive(watched_folder / "first.jsonl", 12, seed=5)
        elif n == 2 and how == "a link is switched":
            (tmp_path / "new").symlink_to(other)
            (tmp_path / "new").replace(watched_folder)
        elif n == 2 and how == "a folder is exchanged":
            watched_folder.rename(folder)
            other.rename(watched_folder)
        elif n == 2:
            shutil.rmtree(watched_folder)
            threading.Timer(0.3 * (how != "at once"), shutil.copytree, [other, watched_folder]).start()
        elif n == 3:
            make_archive(watched_folder / "new.jsonl", 12, seed=9)

    monkeypatch.setattr(watch, "LONGEST", 1e9)
    if how == "at once":  # the new folder may get the identity of the deleted one, as on ext4
        monkeypatch.setattr(watch, "identity_of", lambda folder: (0, 0))
    summaries = watched(model, watched_folder, tmp_path / "out", 4, during)
    assert summaries[-1].counts.records == 48
    assert caplog.text.count("cannot be read") <= 1


def test_watching_finds_changes_that_it_is_not_notified_of(model, folder, tmp_path, monkeypatch):
    def no_changes(*folders, **options):  # as of a network file system
        while True:
            time.sleep(0.01)
            yield set()

    hasten(monkeypatch)
    monkeypatch.setitem(sys.modules, "watchfiles", SimpleNamespace(watch=no_changes))
    change = threading.Timer(0.2, make_archive, [folder / "new.jsonl", 12], {"seed": 3})
    summaries = watched(model, folder, tmp_path / "out", 2, lambda n: change.start() if n == 1 else None)
    assert summaries[-1].counts.records == 24


def test_watching_waits_for_another_run_into_its_folder(model, folder, tmp_path, caplog):
    out, locks = tmp_path / "out", []

    def during(n):
        if n == 1:
            locks.append(disk.acquire_lock(out / LOCK, "busy", thread_local=False))
            make_archive(folder / "new.jsonl", 12, seed=9)
            threading.Timer(3 * watch.SETTLED, locks[0].release).start()

    first, second = watched(model, folder, out, 2, during)
    assert "Another run is writing" in caplog.text
    assert (first.counts.records, second.counts.records) == (12, 24)
    with disk.acquire_lock(out / LOCK, "busy"), pytest.raises(disk.LockedError):
        watched(model, folder, out, 1)


def test_watching_tells_that_another_run_has_tagged_its_folder_by_another_model(
    model, other_model, folder, tmp_path, caplog
):
    out, id_of_other = tmp_path / "out", read_manifest(other_model).id

    def during(n):
        if n == 1:
            textcat.tag_archive(other_model, folder, out, input_settings=READ, jobs=1, model_changes="all")
            caplog.clear()
        make_archive(folder / f"{n}.jsonl", 12, seed=n)

    watched(model, folder, out, 3, during, model_changes="new")
    (warning,) = (record.message for record in caplog.records)
    assert f"{out} has tags by model {id_of_other}; files that are new or change are tagged by" in warning


def test_watching_goes_on_when_its_model_is_replaced(model, folder, tmp_path, caplog):
    served, out = shutil.copytree(model, tmp_path / "served"), tmp_path / "out"
    other = textcat.train(textcat.open_corpus("newswire"), textcat.read_recipe("paum").changed(None, tau_pos=1.0))

    def during(n):
        if n == 1:
            textcat.save(other, served)  # as `learn` does, or a promotion
            make_archive(folder / "new.jsonl", 12, seed=9)

    watched(served, folder, out, 2, during, model_changes="new")
    assert "files that are new or change are tagged by model" in caplog.text
    run(served, [folder], tmp_path / "whole")
    of_new, expected = ([row for row in rows(each) if b"new.jsonl" in row] for each in (out, tmp_path / "whole"))
    assert of_new == expected != []
