"""Output that is written anew beside a folder and then replaces it: readers see the former or the new, never a part."""

import os
import shutil
from functools import partial
from pathlib import Path

import pytest
from archive_runs import READ, make_archive, rows, run
from interrupted_runs import EVERY, Killed, counted

import textcat
from textcat.base.errors import TextcatError
from textcat.model.manifest import read_manifest
from textcat.reading import open_file
from textcat.runs import replacing


def test_a_folder_without_a_name_of_its_own_is_not_replaced(model, other_model, tmp_path, monkeypatch):
    make_archive(tmp_path / "in" / "a.jsonl", 5)
    run(model, [tmp_path / "in"], tmp_path / "out")
    monkeypatch.chdir(tmp_path / "out")
    with pytest.raises(TextcatError, match="cannot be replaced by this name: give the command in another folder"):
        run(other_model, [tmp_path / "in"], Path("."), model_changes="all")
    assert {path.name for path in tmp_path.iterdir()} == {"in", "out"}


def test_other_options_are_refused_where_tags_of_deleted_files_stay(model, other_model, tmp_path):
    folder, out = tmp_path / "in", tmp_path / "out"
    make_archive(folder / "a.jsonl", 5)
    make_archive(folder / "gone.jsonl", 5, seed=1)
    run(model, [folder], out)
    (folder / "gone.jsonl").unlink()
    with pytest.raises(TextcatError, match=r"/out began with no --top, but now has --top 1: give those that it began"):
        run(other_model, [folder], out, write=textcat.OutputSettings(top=1), model_changes="all")
    assert not (tmp_path / "out.next").exists()


def test_all_is_tagged_by_another_model_beside_the_folder_and_put_in_its_place(model, other_model, tmp_path):
    folder, out, before = (tmp_path / name for name in ("in", "out", "out.before"))
    make_archive(folder / "a.jsonl", 30)
    make_archive(folder / "gone.jsonl", 10, seed=1)
    run(model, [folder], out)
    first = rows(out)
    (folder / "gone.jsonl").unlink()
    make_archive(folder / "b.jsonl", 30, seed=2)
    run(other_model, [folder], out, model_changes="new")
    mixed = rows(out)

    def look(progress):
        assert rows(out) == mixed  # a reader sees the former tags until all are new
        if progress.counts.records >= 75:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(other_model, [folder], out, model_changes="all", progress=look)
    assert rows(out) == mixed
    assert not before.exists()
    begun = (tmp_path / "out.next").stat().st_ino
    run(other_model, [folder], out, model_changes="all")
    run(other_model, [folder], tmp_path / "whole")
    assert out.stat().st_ino == begun  # it was gone on with
    gone = [row for row in first if b"/gone.jsonl" in row]
    assert gone
    assert sorted(rows(out)) == sorted(gone + rows(tmp_path / "whole"))
    assert rows(before) == mixed
    assert not (tmp_path / "out.next").exists()
    linked = [path for path in out.glob("part-*") if path.stat().st_nlink == 2]
    assert linked  # the shard of what this model had tagged
    summary = run(other_model, [folder], out, model_changes="all")
    assert summary.before.finished
    assert rows(before) == mixed
    run(model, [folder], out, model_changes="all", keep=3)
    assert rows(tmp_path / "out.before-2") == mixed
    former = rows(out)
    (tmp_path / "out.before-notes").mkdir()
    run(other_model, [folder], out, model_changes="all")  # keeps two
    assert rows(before) == former
    others = {"in", "out", "out.before-notes", "whole"}
    assert {path.name for path in tmp_path.iterdir()} == {*others, "out.before"}
    run(model, [folder], out, model_changes="all", keep=1)
    assert {path.name for path in tmp_path.iterdir()} == others


@pytest.fixture
def mixed(model, other_model, tmp_path):
    """A folder with tags by two models, and the folder of inputs, of which one file is gone."""
    folder, out = tmp_path / "in", tmp_path / "out"
    for number, name in enumerate("abc"):
        make_archive(folder / f"{name}.jsonl", 12, seed=number)
    run(model, [folder], out)
    (folder / "c.jsonl").unlink()
    make_archive(folder / "d.jsonl", 12, seed=3)
    run(other_model, [folder], out, model_changes="new")
    return folder, out


def steps_at_which_it_is_killed(start, out, kill_at, tag, every=EVERY):
    """Yield each step at which tagging of the folder `start` was killed, by its number; then one after the last."""
    step, is_killed = 1 - every, 1
    while is_killed:
        step, is_killed = step + every, 0
        for left in out.parent.glob(f"{out.name}*"):
            shutil.rmtree(left)
        shutil.copytree(start, out)
        kill_at[:] = [step, 0]
        try:
            tag()
        except Killed:
            is_killed = 1
        kill_at[:] = [-1, 0]
        yield step


@pytest.mark.sampled
def test_whenever_it_is_killed_a_reader_sees_the_former_tags_or_all_new_ones(
    mixed, other_model, tmp_path, kill_at, monkeypatch
):
    folder, out = mixed
    former, start = sorted(rows(out)), tmp_path / "start"
    shutil.copytree(out, start)
    run(other_model, [folder], out, model_changes="all")
    new = sorted(rows(out))
    assert new != former
    for place, name in ((os, "rename"), (os, "link"), (shutil, "rmtree"), (replacing, "exchange_folders")):
        monkeypatch.setattr(place, name, counted(getattr(place, name), kill_at))
    tag = partial(run, other_model, [folder], out, model_changes="all")
    for step in steps_at_which_it_is_killed(start, out, kill_at, tag):
        assert sorted(rows(out)) in (former, new), step
        run(other_model, [folder], out, model_changes="all")
        assert sorted(rows(out)) == new
        assert sorted(rows(tmp_path / "out.before")) == former
        assert {path.name for path in tmp_path.glob("out*")} == {"out", "out.before"}
    assert step > 50


def test_where_folders_cannot_be_exchanged_they_are_renamed(mixed, other_model, tmp_path, monkeypatch):
    folder, out = mixed
    former = rows(out)
    monkeypatch.setattr(replacing, "exchange_folders", lambda one, other: False)
    run(other_model, [folder], out, model_changes="all")
    assert rows(tmp_path / "out.before") == former
    assert rows(out) != former
    os.rename(out, tmp_path / "out.next")  # as a process leaves it that was killed between both
    run(other_model, [folder], out, model_changes="all")
    assert not (tmp_path / "out.next").exists()


def test_what_is_in_the_way_is_told(mixed, other_model, tmp_path):
    folder, out = mixed
    (tmp_path / "out.before").mkdir()
    with pytest.raises(TextcatError, match=r"out\.before is no folder of tags, but in the way"):
        run(other_model, [folder], out, model_changes="all")
    with pytest.raises(TextcatError, match="folders of tags to keep cannot be 0"):
        run(other_model, [folder], out, model_changes="all", keep=0)


def test_the_folder_that_a_link_leads_to_is_replaced_and_the_link_stays(mixed, other_model, tmp_path):
    folder, out = mixed
    former, link = rows(out), tmp_path / "on-another-disk"
    real = tmp_path / "real" / "tags"
    real.parent.mkdir()
    link.symlink_to(real)  # to a folder that does not exist yet
    tag = partial(textcat.tag_archive, other_model, [folder], link, input_settings=READ, jobs=1)
    assert tag().counts.tagged
    shutil.rmtree(real)
    shutil.move(out, real)
    tag(model_changes="all")
    assert link.is_symlink()
    assert rows(real) != former
    assert rows(real.with_name("tags.before")) == former
    assert {path.name for path in tmp_path.iterdir()} == {"in", "on-another-disk", "real"}


def test_a_link_in_the_place_of_former_output_is_told(mixed, model, other_model, tmp_path):
    folder, out = mixed
    run(other_model, [folder], out, model_changes="all")
    (tmp_path / "out.before").rename(tmp_path / "moved")
    (tmp_path / "out.before").symlink_to(tmp_path / "moved")
    with pytest.raises(TextcatError, match=r"out\.before is a link, but in the way of those before: rename it"):
        run(model, [folder], out, model_changes="all")
    (tmp_path / "out.before").unlink()
    run(model, [folder], out, model_changes="all")
    assert {path.name for path in tmp_path.iterdir()} == {"in", "moved", "out", "out.before"}


@pytest.mark.parametrize("moves", [{"a": "b"}, {"a": "c", "b": "d"}, {"a": "b", "b": "c"}])
def test_renamed_files_are_tagged_again(model, other_model, tmp_path, moves):
    folder, out = tmp_path / "in", tmp_path / "out"
    for number, name in enumerate("ab"):
        if name in moves:
            make_archive(folder / f"{name}.jsonl", 12, number)
    run(model, [folder], out)
    for name in reversed(moves):
        (folder / f"{name}.jsonl").rename(folder / f"{moves[name]}.jsonl")
    run(other_model, [folder], out, model_changes="all")
    run(other_model, [folder], tmp_path / "whole")
    assert sorted(rows(out)) == sorted(rows(tmp_path / "whole"))
    assert rows(tmp_path / "out.before")
    assert run(other_model, [folder], out, model_changes="all").before.finished


def test_a_file_that_is_gone_keeps_its_rows_even_if_another_has_its_content(model, other_model, tmp_path):
    folder, out = tmp_path / "in", tmp_path / "out"
    make_archive(folder / "a.jsonl", 12)
    shutil.copy(folder / "a.jsonl", folder / "gone.jsonl")
    run(model, [folder], out)
    before = rows(out)
    (folder / "gone.jsonl").unlink()
    summary = run(other_model, [folder], out, model_changes="all")
    assert len(rows(out)) == len(before)
    assert [row for row in rows(out) if b"/gone.jsonl" in row] == [row for row in before if b"/gone.jsonl" in row]
    assert summary.growth.gone


def test_where_no_other_model_has_ever_tagged_no_file_is_compared(model, tmp_path, monkeypatch):
    make_archive(tmp_path / "in" / "a.jsonl", 12)
    run(model, [tmp_path / "in"], tmp_path / "out", model_changes="all")
    monkeypatch.setattr(replacing, "read_log", None)
    assert run(model, [tmp_path / "in"], tmp_path / "out", model_changes="all").before.finished


def test_where_rows_stay_only_one_file_is_read_to_tell_that_something_is_to_be_tagged(mixed, other_model, monkeypatch):
    folder, out = mixed
    summed, kind = [], type(open_file(folder / "a.jsonl"))
    sum_up = kind.sum_up
    monkeypatch.setattr(kind, "sum_up", lambda self: (summed.append(self), sum_up(self)))
    run(other_model, [folder], out, model_changes="all")
    assert len(summed) == 1 + 2 * 2  # then the two, to tell whether they can be read, and to tag them


@pytest.mark.sampled
def test_whenever_it_is_killed_a_third_model_leaves_the_former_tags_in_a_folder(
    mixed, other_model, promising_model, tmp_path, monkeypatch
):
    (folder, out), kill_at = mixed, [-1, 0]
    former, start = sorted(rows(out)), tmp_path / "start"
    shutil.copytree(out, start)
    for place, name in ((os, "rename"), (shutil, "rmtree"), (replacing, "exchange_folders")):
        monkeypatch.setattr(place, name, counted(getattr(place, name), kill_at))
    tag = partial(run, other_model, [folder], out, model_changes="all", keep=3)
    for step in steps_at_which_it_is_killed(start, out, kill_at, tag, min(EVERY, 3)):  # of few
        run(promising_model, [folder], out, model_changes="all", keep=3)
        by_third = [row for row in rows(out) if read_manifest(promising_model).id.encode() in row]
        assert len(by_third) == sum(b"/c.jsonl" not in row for row in rows(out)) > 20
        kept = [sorted(rows(path)) for path in tmp_path.glob("out.before*")]
        assert former in kept, step
    assert step > 3
