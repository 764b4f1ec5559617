"""A promoted model takes its place in one step, whatever kills it, and the journal tells which model was there when."""

import json
import os
import shutil
from itertools import count

import pytest
from killing import killed_at
from manifests import rewrite

import textcat
from textcat.base import disk
from textcat.base.errors import TextcatError
from textcat.base.folders import MANIFEST
from textcat.model import CARD
from textcat.model.manifest import read_manifest

TEXTS = {"ash": "ashwood ashgrove leaf", "birch": "birchwood birchgrove bark"}


def train(folder, *, wrong=0):
    """Write a small model; of its documents, the first `wrong` have another topic than their words."""
    names = [*TEXTS] * 6
    rows = [{"text": f"{TEXTS[name]} {k}", "topics": [name]} for k, name in enumerate(names)]
    for row in rows[:wrong]:
        row["topics"] = ["birch" if row["topics"] == ["ash"] else "ash"]
    return textcat.save(textcat.train(rows, "paum"), folder)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return train(folder / "good"), train(folder / "bad", wrong=12)


@pytest.fixture
def models(trained, tmp_path):
    """Return the folders of a good and a bad model, and one to promote them to."""
    for folder in trained:
        shutil.copytree(folder, tmp_path / folder.name)
    return tmp_path / "good", tmp_path / "bad", tmp_path / "served"


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def checksum(folder):
    return read_manifest(folder).sha256


def journal(served):
    path = served.with_name("served.promotions.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def beside(served):
    return sorted(path.name for path in served.parent.iterdir() if path.name.strip(".").startswith("served"))


def test_a_model_that_rules_do_not_fit_is_not_put_beside_them(models, caplog):
    good, bad, served = models
    rules = served.with_name("served.rules.toml")
    rules.write_text('never = ["oak"]')
    for change in (lambda: textcat.promote(good, served), lambda: textcat.promote(bad, served)):
        with pytest.raises(TextcatError, match=r"served\.rules\.toml does not fit the model; .* no topic 'oak'"):
            change()
        assert not served.exists()
    rules.unlink()
    textcat.promote(good, served)
    textcat.promote(bad, served)
    rules.write_text('never = ["oak"]')
    for change in (lambda: textcat.promote(good, served), lambda: textcat.rollback(served)):
        with pytest.raises(TextcatError, match="does not fit"):
            change()
        assert contents(served) == contents(bad)
    link, of_link = served.with_name("current"), served.with_name("current.rules.toml")
    rules.unlink()
    link.symlink_to(served)
    of_link.write_text('never = ["oak"]')
    with pytest.raises(TextcatError, match=r"current\.rules\.toml does not fit"):
        textcat.promote(good, link)
    assert contents(served) == contents(bad)
    rules.write_text('never = ["oak"]')
    train(served)  # by `save`, where training would be lost
    assert "served.rules.toml does not fit the model" in caplog.text


def test_a_model_is_promoted_and_put_back_byte_for_byte(models):
    good, bad, served = models
    (bad / CARD).write_text("# A card\n")
    first = textcat.promote(good, served)
    assert (first.model, first.replaced, contents(served)) == (checksum(good), None, contents(good))
    assert (served / MANIFEST).stat().st_mtime_ns == (good / MANIFEST).stat().st_mtime_ns, "when it was trained"
    second = textcat.promote(bad, served)
    assert (second.model, second.replaced, contents(served)) == (checksum(bad), checksum(good), contents(bad))
    assert not (bad / CARD).samefile(served / CARD), "a copy: the new model may be deleted, or its card edited"
    back = textcat.rollback(served)
    assert (back.model, back.replaced, contents(served)) == (checksum(good), checksum(bad), contents(good))
    assert beside(served) == ["served", "served.promotions.jsonl"]
    with pytest.raises(TextcatError, match="no earlier state is kept"):
        textcat.rollback(served)
    actions = [(line["action"], line["model"], line["replaced"]) for line in journal(served)]
    assert actions == [(done.action, done.model, done.replaced) for done in (first, second, back)]
    assert [line["source"] for line in journal(served)] == [str(good), str(bad), None]


def test_only_one_step_is_kept(models):
    good, bad, served = models
    for model in (good, bad, good):
        textcat.promote(model, served)
    assert len(beside(served)) == 3
    assert textcat.rollback(served).model == checksum(bad)
    with pytest.raises(TextcatError, match="no earlier state is kept"):
        textcat.rollback(served)


def test_the_same_model_again_changes_nothing_but_the_journal(models):
    good, bad, served = models
    for model in (good, bad, bad):
        textcat.promote(model, served)
    assert [line["replaced"] for line in journal(served)] == [None, checksum(good), checksum(bad)]
    assert textcat.rollback(served).model == checksum(good)


def test_a_model_that_fails_by_a_condition_is_not_promoted(models):
    good, bad, served = models
    textcat.promote(good, served)
    before, noted = contents(served), journal(served)
    rows = [{"text": text, "topics": [name], "split": "test"} for name, text in TEXTS.items()] * 4
    with pytest.raises(textcat.GateError, match="fails by 'MAP < 0'") as error:
        textcat.promote(bad, served, rows, fail_if=["MAP < 0", "MAP < -1"], n_resamples=100)
    assert [gate.failed for gate in error.value.gates] == [True, False]
    assert (contents(served), journal(served)) == (before, noted)
    promoted = textcat.promote(bad, served, rows, fail_if="MAP < -1", n_resamples=100)
    assert [gate["gate"] for gate in journal(served)[-1]["gates"]] == ["MAP < -1"]
    assert promoted.gates[0].measured < 0


def test_a_model_that_came_another_way_is_noted_as_found(models):
    good, bad, served = models
    shutil.copytree(good, served)
    textcat.promote(bad, served)
    textcat.save(textcat.load(good), served)
    middle = checksum(served)
    textcat.promote(bad, served)
    lines = [(line["action"], line["model"]) for line in journal(served)]
    promoted = ("promote", checksum(bad))
    assert lines == [("found", checksum(good)), promoted, ("found", middle), promoted]


def test_the_journal_forgets_an_unfinished_line_and_refuses_damaged_ones(models):
    good, bad, served = models
    textcat.promote(good, served)
    path = served.with_name("served.promotions.jsonl")
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:30])
    textcat.promote(bad, served)
    assert [line["model"] for line in journal(served)] == [checksum(good), checksum(bad)]
    path.write_bytes(b"{}\n" + path.read_bytes())
    for change in (lambda: textcat.promote(good, served), lambda: textcat.rollback(served)):
        with pytest.raises(TextcatError, match="damaged in line 1: move it away"):
            change()
    assert checksum(served) == checksum(bad)


def test_an_old_model_that_cannot_be_read_is_replaced(models):
    good, _, served = models
    shutil.copytree(good, served)
    rewrite(served, format=1)
    assert textcat.promote(good, served).replaced is None
    assert contents(served) == contents(good)


def test_what_cannot_be_promoted_is_refused_and_changes_nothing(models, monkeypatch):
    good, bad, served = models
    refused = {
        "its own place": (good, good),
        "no model": (good, served),
        "is not a model": (served, good),
        "would be lost": (bad, good),
    }
    (good / "notes.txt").write_text("mine")
    for sentence, (new, old) in refused.items():
        with pytest.raises(TextcatError, match=sentence):
            textcat.promote(new, old, "newswire", fail_if="MAP < 0" if sentence == "no model" else ())
    (bad / "thresholds.npy").write_bytes(b"")
    with pytest.raises(TextcatError, match="is damaged"):
        textcat.promote(bad, served)
    assert beside(served) == []


def test_a_model_that_is_being_changed_is_left_alone(models):
    fcntl = pytest.importorskip("fcntl", reason="system: there is no module fcntl")
    good, bad, served = models
    textcat.promote(good, served)
    descriptor = os.open(served, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    for change in (lambda: textcat.promote(bad, served), lambda: textcat.rollback(served)):
        with pytest.raises(TextcatError, match="is being changed by another process"):
            change()
    os.close(descriptor)


def test_a_journal_that_cannot_be_written_is_told(models, monkeypatch):
    good, _, served = models

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk, "write_all", full)
    with pytest.raises(TextcatError, match=r"No space left on device.*the model is in its place"):
        textcat.promote(good, served)
    assert contents(served) == contents(good)


@pytest.mark.sampled
@pytest.mark.skipif(not hasattr(os, "fork"), reason="system: processes cannot be forked")
@pytest.mark.parametrize("action", ["promote", "rollback"])
def test_a_kill_at_any_step_leaves_the_old_model_or_the_new_one(models, action):
    good, bad, served = models
    textcat.promote(good, served)
    if action == "rollback":
        textcat.promote(bad, served)
    old, new = (good, bad) if action == "promote" else (bad, good)
    states = contents(old), contents(new)
    saved = served.parent / "saved"
    saved.mkdir()
    for name in beside(served):
        path = served.parent / name
        (shutil.copytree if path.is_dir() else shutil.copy)(path, saved / name)

    def change():
        textcat.promote(bad, served) if action == "promote" else textcat.rollback(served)

    found = []
    for place in count(step=1 if "TEXTCAT_LONG" in os.environ else 17):
        was_killed = killed_at(place, change)
        found.append(states.index(contents(served)))
        textcat.load(served, prepare=False)
        if found[-1] == 0:
            change()
        assert contents(served) == states[1]
        if action == "promote":
            assert textcat.rollback(served).model == checksum(good)
        else:
            textcat.promote(good, served)
        left = [name for name in beside(served) if name.endswith((".part", ".old"))]
        assert not left, "the next change removes what a killed one has left"
        for name in beside(served):
            path = served.parent / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for path in saved.iterdir():
            (shutil.copytree if path.is_dir() else shutil.copy)(path, served.parent / path.name)
        if not was_killed:
            break
    assert found == sorted(found)
    assert place > 20
    assert {*found} == {0, 1}
