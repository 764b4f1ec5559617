"""`textcat learn`: what it takes from a folder of corrections, which steps it lists, and how each is undone."""

import json
from pathlib import Path

import pytest
from learning import document, written

from textcat.corpus.corrections import Correction, Corrections


@pytest.fixture
def model(run):
    """The folder of a small model; the current folder has corrections, too."""
    written("old.jsonl", [document(f"d{i}", ("ash", "birch", "cedar")[i % 3]) for i in range(12)])
    options = "--recipe", "default", "--updatable", "--band", "ALL", "--set", "tags.folds=2"
    assert run("train", "old.jsonl", *options, "--out", "m").code == 0
    Corrections("corr").add(Correction(document("n1", "ash"), {"ash": True, "dogwood": True}))
    return "m"


def test_corrections_are_learnt_listed_and_undone(run, model):
    assert run("learn", model, "--history").out == "The model has learnt nothing since it was trained.\n"
    assert "Documents: 1 added; 13 are trained on." in run("learn", model, "--from", "corr").out
    assert run.out.endswith("/m, after step 1\n")
    before = Path("m/manifest.json").read_bytes()
    told = f"Nothing new: the model in {Path('m').resolve()} is the same as before.\n"
    assert run("learn", model, "--from", "corr").out == told
    assert json.loads(run("learn", model, "--from", "corr", "--as", "json").out)["step"] is None
    assert Path("m/manifest.json").read_bytes() == before
    written("more.jsonl", [document("n2", "birch"), document("d0", "cedar")])
    run("learn", model, "more.jsonl")
    written("again.jsonl", [document("d0", "birch")])
    run("learn", model, "again.jsonl")
    assert "1 removed" in run("learn", model, "--undo-step", "1").out
    assert json.loads(run("learn", model, "--undo-step", "4", "--as", "json").out)["added"] == ["n1"]
    shown = run("learn", model, "--history").out
    rows = [line.split()[3:] for line in shown.splitlines() if line[:1].isdigit()]
    assert rows[1][:6] == ["learnt", "from", "corr", "1", "0", "0"]
    assert rows[4][:6] == ["undid", "step", "1", "0", "0", "1"]
    steps = json.loads(run("learn", model, "--history", "--as", "json").out)
    assert [step["undoes"] for step in steps] == [None, None, None, None, 1, 4]
    assert (steps[2]["added"], steps[2]["corrected"], steps[2]["removed"]) == (["n2"], ["d0"], 0)
    lines = run("learn", model, "--history", "--as", "csv").out.splitlines()
    assert len(lines) == 7
    assert lines[0].startswith("number,action,at,who,model,replaced,corrections,undoes,removed,named,added,corrected")


def test_documents_that_a_later_step_corrected_are_named(run, model):
    for name, topic in (("one", "birch"), ("two", "cedar")):
        written(f"{name}.jsonl", [document("d0", topic)])
        run("learn", model, f"{name}.jsonl")
    refused = run.refuses("learn", model, "--undo-step", "2")
    assert "The text of document 'd0' as it was then is not kept" in refused
    told = "Documents that later steps labelled, too, keep these labels: d0."
    assert told in run("learn", model, "--undo-step", "1").out


def test_options_that_contradict_each_other_are_refused(run, model):
    assert "--undo goes alone" in run.misuses("learn", model, "--undo", "--undo-step", "1")
    assert "--undo goes alone" in run.misuses("learn", model, "--history", "--from", "corr")
    assert "--from goes without" in run.misuses("learn", model, "old.jsonl", "--from", "corr")
    assert "has no corrections" in run.refuses("learn", model, "--from", "nothing")
    assert not Path("nothing").exists()
    assert "the steps are none" in run.refuses("learn", model, "--undo-step", "1")
    assert "is not a model" in run.refuses("learn", "nothing", "--history")
    assert run.refuses("learn", model).startswith("There is nothing to learn")


def test_learn_replaces_another_model_by_force_only(run, own):
    for name in ("m", "other"):
        assert run("train", own, "--recipe", "paum", "--out", name, "--updatable").code == 0
    before = Path("other/manifest.json").read_bytes()
    assert run.refuses("learn", "m", own, "--out", "other").startswith(
        "The model other exists: replace it with --force"
    )
    assert Path("other/manifest.json").read_bytes() == before
    assert run("learn", "m", own, "--out", "other", "--force").code == 0
    assert run("learn", "m", own, "--out", "m").code == 0
