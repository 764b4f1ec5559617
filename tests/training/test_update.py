"""Learning on: the model is, byte for byte, that which training on all documents from the start gives."""

import importlib
import json
import os
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from commands import Run
from feature_settings import FEATURES
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from learning import (
    PLAIN,
    TOPICS,
    beginnings,
    bytes_of,
    check_same,
    document,
    documents,
    in_parts,
    learnt_naively,
    of_all,
    recipe_of,
    train_from_the_start,
    written,
)
from manifests import rewrite

import textcat
from textcat import Corpus, Document, TextcatError
from textcat.margin.learners import LEARNERS
from textcat.model.manifest import read_manifest
from textcat.model.measure import measure_scores
from textcat.model.restrict import restrict_topics

N_HISTORIES = 10 if "TEXTCAT_LONG" in os.environ else 2  # of each learner


@pytest.mark.parametrize("learner", [*sorted(LEARNERS), "with a shortlist"])
@settings(max_examples=N_HISTORIES, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
@pytest.mark.filterwarnings("ignore")
def test_a_history_gives_the_model_that_training_from_the_start_gives(learner, data):
    shortlist, judged = (2, of_all) if learner == "with a shortlist" else (0, list)
    known = judged(in_parts(data.draw(beginnings())))
    strategy = "probability" if shortlist else data.draw(st.sampled_from(["zero", "probability", "scut"]))
    options = data.draw(st.integers(0, len(FEATURES) - 1)), {"strategy": strategy, "folds": 2}
    recipe = recipe_of("paum" if shortlist else learner, *options, data.draw(st.integers(0, 1)), shortlist)
    measured = data.draw(st.booleans())
    with tempfile.TemporaryDirectory() as work:
        model, other = Path(work, "model"), Path(work, "other")
        try:
            train_from_the_start(known, recipe, model, measured=measured)
        except TextcatError:  # such as that no term occurs in two documents
            assume(False)
        before = None
        for step in range(data.draw(st.integers(1, 4))):
            if before is not None and data.draw(st.integers(0, 3)) == 0:
                textcat.undo_learn(model)
                known, files = before
                before = None
                check_same(bytes_of(model), files)
                continue
            new = [data.draw(documents(f"s{step}d{i}")) for i in range(data.draw(st.integers(0, 3)))]
            ids = [document.id for document in known[2:]]
            chosen = data.draw(st.lists(st.sampled_from(ids), max_size=3, unique=True)) if ids else []
            gone = set(chosen[:1]) if data.draw(st.booleans()) else set()
            for id_ in chosen[len(gone) :]:
                corrected = replace(data.draw(documents(id_)), split="")
                new.append(replace(corrected, zones={}) if data.draw(st.booleans()) else corrected)
            if not new and not gone:
                continue
            new, complete = judged(new), bool(shortlist) or data.draw(st.booleans())
            old = known, bytes_of(model)
            then = learnt_naively(known, new, gone, complete)
            try:
                textcat.learn(model, new, gone, new_topics_negative=complete)
            except TextcatError:  # nothing can be learnt of what is left: the model stays as it was
                with pytest.raises(TextcatError):
                    train_from_the_start(then, recipe, other, measured=measured)
                check_same(bytes_of(model), old[1])
                continue
            known = then
            before = None if gone else old
            if gone:
                with pytest.raises(TextcatError, match="no earlier state is kept"):
                    textcat.undo_learn(model)
        train_from_the_start(known, recipe, other, measured=measured)
        check_same(bytes_of(model), bytes_of(other))


@pytest.fixture(scope="module")
def first_model(tmp_path_factory):
    known = [document(f"d{i}", ("ash", "birch", "cedar")[i % 3]) for i in range(12)]
    folder = tmp_path_factory.mktemp("first") / "model"
    train_from_the_start(known, PLAIN, folder, measured=True, keep_support="texts")
    return folder


@pytest.fixture
def model(first_model, tmp_path):
    """A model that a test may change."""
    return shutil.copytree(first_model, tmp_path / "model")


def everything_in(folder):
    """All files in a folder and below, also packed ones, as one text."""
    parts = []
    for path in sorted(Path(folder).rglob("*")):
        if path.is_file():
            parts.append(path.read_bytes())
            if path.suffix == ".npz":
                with np.load(path) as arrays:
                    parts += [arrays[name].tobytes() for name in arrays]
    return b"\n".join(parts)


def test_nothing_of_a_removed_document_is_left(model):
    secret = Document("number-4711", {"title": "Zanzibar", "body": "quixotic ashwood ashgrove"}, ("ash", "mahogany"))
    textcat.learn(model, [secret])
    textcat.learn(model, [document("later", "birch", "dogwood")])  # old ones were judged for the topics of then
    marks = (b"4711", b"anzibar", b"quixotic", b"mahogany", b"zanzibar quixotic")
    assert all(mark in everything_in(model.parent) for mark in marks[:4])
    textcat.learn(model, remove="number-4711")
    left = everything_in(model.parent)
    assert not [mark for mark in marks if mark in left]
    assert sorted(path.name for path in model.parent.iterdir()) == ["model", "model.history.jsonl"]


def test_a_topic_of_the_rules_is_not_removed(model):
    textcat.learn(model, [document("later", "birch", "dogwood")])
    model.with_name("model.rules.toml").write_text('never = ["dogwood"]')
    before = bytes_of(model)
    for out in (None, model):
        with pytest.raises(
            TextcatError, match=r"model\.rules\.toml does not fit the model; mend it: The model has no topic"
        ):
            textcat.learn(model, remove="later", **({} if out is None else {"out": out}))
        assert bytes_of(model) == before


def test_what_a_killed_process_left_is_gone_after_removing(model):
    textcat.learn(model, [document("secret1", "ash")])
    shutil.copytree(model, model.with_name(".model.0123abcd.part"))
    textcat.learn(model, remove=["secret1"])
    assert sorted(path.name for path in model.parent.iterdir()) == ["model", "model.history.jsonl"]


def test_the_next_run_removes_what_killed_runs_left_even_if_it_fails_but_nothing_of_running_ones(model):
    import fcntl

    left, running = (model.with_name(f".model.{number}.part") for number in ("0123abcd", "89abcdef"))
    left.mkdir()
    running.mkdir()
    descriptor = os.open(running, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with pytest.raises(TextcatError, match="no document 'unknown'"):
        textcat.learn(model, remove="unknown")
    assert sorted(path.name for path in model.parent.iterdir()) == [running.name, "model"]
    os.close(descriptor)
    textcat.learn(model, [document("new", "ash")])
    assert not running.exists()


def test_whoever_has_the_model_open_goes_on_with_it(model):
    tagger = textcat.load(model)
    before = tagger.scores(["ashwood birchgrove"])
    textcat.learn(model, [document("d0", "birch"), document("new", "ash")])
    np.testing.assert_array_equal(tagger.scores(["ashwood birchgrove"]), before)
    assert not np.array_equal(textcat.load(model).scores(["ashwood birchgrove"]), before)
    assert textcat.load(model).training_counts is None


def test_a_step_can_be_undone_once(model):
    before = bytes_of(model)
    learnt = textcat.learn(model, [document("new", "ash"), document("d1", "cedar")])
    assert (learnt.added, learnt.corrected, learnt.removed) == (("new",), ("d1",), ())
    assert bytes_of(model) != before
    assert textcat.undo_learn(model) == model
    check_same(bytes_of(model), before)
    with pytest.raises(TextcatError, match="no earlier state is kept"):
        textcat.undo_learn(model)
    textcat.learn(model, [document("one", "ash")])
    middle = bytes_of(model)
    textcat.learn(model, [document("two", "ash")])
    textcat.undo_learn(model)
    check_same(bytes_of(model), middle)


def test_another_model_that_took_the_place_is_not_undone(model):
    textcat.learn(model, [document("new", "ash")])
    train_from_the_start([document("d0", "ash"), document("d1", "birch")], PLAIN, model, measured=False)
    with pytest.raises(TextcatError, match="no earlier state is kept"):
        textcat.undo_learn(model)


def test_a_model_in_another_folder_leaves_the_old_one_alone(model):
    before = bytes_of(model)
    learnt = textcat.learn(model, [document("new", "ash")], out=model.with_name("other"))
    assert learnt.folder.name == "other"
    check_same(bytes_of(model), before)
    assert sorted(path.name for path in model.parent.iterdir()) == ["model", "other", "other.history.jsonl"]


def test_old_documents_are_no_examples_of_a_new_topic(model):
    new = [document("n1", "dogwood"), document("n2", "dogwood"), document("n3", "ash"), document("n4")]
    learnt = textcat.learn(model, new)
    k = learnt.tagger.topics.index("dogwood")
    unjudged = learnt.tagger.training_counts.corpus.unjudged(learnt.tagger.training_counts.corpus.train).toarray()
    assert unjudged[:, k].tolist() == [1] * 12 + [0] * 4
    assert unjudged.sum() == 12
    row = next(row for row in learnt.rows() if row["topic"] == "dogwood")
    assert (row["before"], row["after"], row["ap_before"]) == (0, 2, None)
    # Of the four that were judged, two have the topic: whatever is said of the others, these rank first or they do not.
    scores = np.array([[0.9], [0.1], [0.8], [0.7]], np.float32)
    measured = measure_scores(
        restrict_topics(learnt.tagger, ("dogwood",)), scores, np.array([[0], [1], [1], [0]]), unjudged=None
    )
    assert measured.topics[0].average_precision == pytest.approx((1 / 2 + 2 / 4) / 2)
    from scipy import sparse

    left_out = sparse.csc_matrix(np.array([[1], [0], [0], [1]], np.int8))
    measured = measure_scores(
        restrict_topics(learnt.tagger, ("dogwood",)), scores, np.array([[0], [1], [1], [0]]), unjudged=left_out
    )
    assert measured.topics[0].average_precision == 1


def test_with_complete_old_documents_are_negatives_of_a_new_topic(model):
    learnt = textcat.learn(model, [document("n1", "dogwood"), document("n2", "dogwood")], new_topics_negative=True)
    assert learnt.tagger.training_counts.corpus.unjudged(learnt.tagger.training_counts.corpus.train) is None


def test_a_topic_whose_negatives_nobody_judged_is_warned_of(model, caplog):
    textcat.learn(model, [document("n1", "dogwood"), document("n2", "dogwood")])
    assert "The new topic 'dogwood' has no negative examples" in caplog.text


def test_a_new_topic_spelt_almost_like_a_known_one_is_warned_of(model, caplog):
    misspelt, others = [document("n1", "ceder")], [document("n2", "dogwood"), document("n3", "birch2")]
    textcat.learn(model, misspelt + others)
    assert caplog.text.count("spelt almost like") == 1
    assert "'ceder' is spelt almost like the known topic 'cedar'" in caplog.text
    textcat.learn(model, [document("n1", "cedar")])
    assert "ceder" not in textcat.load(model).topics


def test_a_topic_without_documents_is_gone(model):
    textcat.learn(model, [document("n1", "dogwood"), document("n2", "ash")])
    assert "dogwood" in textcat.load(model).topics
    textcat.learn(model, [Document("n1", {}, ("ash",))])
    assert textcat.load(model).topics == ("ash", "birch", "cedar")


def test_learning_by_several_jobs_gives_the_same(model):
    other = shutil.copytree(model, model.with_name("other"))
    for folder, jobs in ((model, 1), (other, 2)):
        textcat.learn(folder, [document("n1", "dogwood"), document("n2", "ash")], n_jobs=jobs)
    check_same(bytes_of(model), bytes_of(other))


def test_a_model_with_a_shortlist_can_be_updated(tmp_path):
    recipe = replace(textcat.read_recipe("many-topics"), topics={"description_copies": 1, "shortlist": 2})
    known = [document(f"d{i}", ("ash", "birch", "cedar")[i % 3]) for i in range(24)]
    notes = (" ".join(f"{d.id}note{k}" for k in range(40)) for d in known)  # so that no document repeats another
    known = [replace(d, zones={**d.zones, "note": note}) for d, note in zip(known, notes, strict=True)]
    new = [document("n1", "dogwood"), document("n2", "ash")]
    train_from_the_start(known, recipe, tmp_path / "model", measured=True, keep_support="none")
    textcat.learn(tmp_path / "model", new, ["d3"], new_topics_negative=True)
    then = [*known[:3], *known[4:], *new]
    train_from_the_start(then, recipe, tmp_path / "other", measured=True, keep_support="none")
    check_same(bytes_of(tmp_path / "model"), bytes_of(tmp_path / "other"))
    with pytest.raises(
        TextcatError, match="has a shortlist, which takes each document for one that was judged for all"
    ):
        textcat.learn(tmp_path / "model", [document("n3", "elm")])


@pytest.mark.parametrize(
    ("new", "remove", "told"),
    [
        ([], [], "There is nothing to learn: give documents, ids to remove, or names of topics."),
        ([], ["d11 "], "The model has no document 'd11 ', so it cannot be removed. Did you mean 'd11'?"),
        ([], [11], "The model has no document '11', so it cannot be removed."),
        ([], [f"d{i}" for i in range(12)], "No training document would be left"),
        ([document("x", "ash"), document("x", "ash")], [], "Document 'x' is given twice"),
        ([document("d1", "ash")], ["d1"], "Document 'd1' is both to be learnt and removed"),
        ([Document("d1", {}, (), split="test")], [], "Document 'd1' is in the train part of the model"),
        ([{"text": "ashwood", "topics": ["ash"]}], [], "Record 1 has no id"),
        ([{"id": float("nan"), "text": "ashwood", "topics": ["ash"]}], [], "Record 1 has no id"),
        (["ashwood"], [], "'ashwood' is not a document"),
        (document("x", "ash"), [], "A Document is not a list of documents"),
        ({"id": "x", "text": "ashwood"}, [], "A dict is not a list of documents"),
        ("ashwood", [], "No corpus 'ashwood'"),
    ],
)
def test_what_cannot_be_learnt_is_refused_and_leaves_the_model_as_it_was(model, new, remove, told):
    before = bytes_of(model)
    with pytest.raises(TextcatError) as refused:
        textcat.learn(model, new, remove)
    assert str(refused.value).startswith(told)
    check_same(bytes_of(model), before)
    assert [path.name for path in model.parent.iterdir()] == ["model"]


def resealed(folder, name, data):
    """Write a file of a model anew, with a manifest that fits."""
    (folder / name).write_bytes(data)
    manifest = json.loads((folder / "manifest.json").read_bytes())
    from textcat.base.disk import sha256_of_file

    manifest["files"][name] = sha256_of_file(folder / name)
    rewrite(folder, **manifest)


def test_a_damaged_store_is_told_and_tagging_needs_none(model):
    content = (model / "counts.npz").read_bytes()
    (model / "counts.npz").write_bytes(content[:-5] + b"wrong")
    assert textcat.load(model).topics
    with pytest.raises(TextcatError, match=r"damaged, counts\.npz is not as it was written"):
        textcat.learn(model, remove="d1")
    for name, data in (
        ("counts.npz", b"no archive"),
        ("counts.npz", content[: len(content) // 2]),
        ("counts.json", b"[]"),
        ("counts.json", b'{"ids": ["a"]}'),
    ):
        resealed(model, "counts.npz", content)
        resealed(model, name, data)
        with pytest.raises(TextcatError, match="is damaged"):
            textcat.learn(model, remove="d1")


def test_counts_of_another_recipe_are_refused(model):
    entries = json.loads((model / "counts.json").read_bytes())
    entries["terms_of"]["tokens"] = {"lowercase": False}
    resealed(model, "counts.json", json.dumps(entries).encode())
    with pytest.raises(TextcatError, match="its documents were counted for another recipe"):
        textcat.learn(model, remove="d1")


def test_documents_of_the_same_id_are_refused_where_counts_are_kept():
    corpus = Corpus.from_documents("twins", [document("d", "ash"), document("d", "birch")])
    with pytest.raises(TextcatError, match="Corpus twins has two documents of the id 'd'"):
        textcat.train(corpus, PLAIN, updatable=True)


def test_a_model_without_counts_says_how_to_train_one(newswire_model):
    with pytest.raises(TextcatError, match=r"not updatable.*: train it with `textcat train CORPUS --updatable`"):
        textcat.learn(newswire_model, remove="1")


def test_a_model_that_is_learning_is_left_alone(model):
    fcntl = pytest.importorskip("fcntl", reason="system: there is no module fcntl")
    descriptor = os.open(model, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with pytest.raises(TextcatError, match="is being changed by another process"):
        textcat.learn(model, remove="d1")
    os.close(descriptor)


def test_a_model_that_was_replaced_meanwhile_is_not_overwritten(model, monkeypatch):
    from textcat.training import update as module

    def replaced(tagger, folder):
        rewrite(model, corpus="new")
        write(tagger, folder)

    write = module.storage.write_model
    monkeypatch.setattr(module.storage, "write_model", replaced)
    with pytest.raises(TextcatError, match="was replaced meanwhile"):
        textcat.learn(model, remove="d1")
    assert read_manifest(model).corpus == "new"


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "tsv", "parquet"])
def test_files_say_for_which_topics_documents_were_judged(tmp_path, suffix):
    rows = [("1", "ashwood", ["ash"], ["ash", "birch"]), ("2", "birchwood", ["birch"], None), ("3", "fir", [], ["ash"])]
    names = ("id", "text", "topics", "labelled_for")
    path = tmp_path / f"corpus.{suffix}"
    if suffix == "jsonl":
        path.write_text("".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows))
    elif suffix == "parquet":
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pyarrow.table(dict(zip(names, zip(*rows, strict=True), strict=True))), path)
    else:
        separator = "," if suffix == "csv" else "\t"
        cells = [[cell if isinstance(cell, str) else ";".join(cell or ()) for cell in row] for row in rows]
        path.write_text("\n".join(map(separator.join, [names, *cells])) + "\n")
    settings = textcat.InputSettings(topics_separator=";")
    corpus = textcat.open_corpus(path, settings=settings)
    assert [each.labelled_for for each in corpus.train] == [("ash", "birch"), None, ("ash",)]
    assert corpus.unjudged(corpus.train).toarray().tolist() == [[0, 0], [0, 0], [0, 1]]
    of_records = Corpus.from_records([dict(zip(names, row, strict=True)) for row in rows])
    assert [each.labelled_for for each in of_records.train] == [each.labelled_for for each in corpus.train]


def test_a_study_refuses_documents_that_were_judged_for_some_topics(tmp_path):
    from textcat.base.progress import Stages
    from textcat.training.tune import run_trials

    corpus = Corpus.from_documents("c", [document("1", "ash", labelled_for=("ash",)), document("2", "birch")])
    with pytest.raises(TextcatError, match="judged for some topics only"):
        run_trials(corpus, textcat.read_recipe("paum"), None, "grid", 1, None, Stages(), seed=0, n_jobs=1)


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    return Run(capsys, monkeypatch)


def test_what_was_learnt_is_not_measured_as_if_it_were_new(run):
    words = ("ash", "birch", "cedar")
    rows = [{"id": f"d{i}", "text": f"{words[i % 3]}wood grew on hill {i}", "topics": words[i % 3]} for i in range(24)]
    for name, part in (("old", rows[:15]), ("new", rows[15:21]), ("others", rows[21:])):
        Path(f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in part))
    run("train", "old.jsonl", "--recipe", "paum", "--updatable", "--out", "m")
    run("learn", "m", "new.jsonl")
    for corpus in ((), ("old.jsonl",)):  # a part of what it was trained on: as measured when it learnt
        measured = run("evaluate", "m", *corpus)
        assert "Measured after training, on 21 training documents, by cross-validation" in measured.out
        assert "too good" not in measured.err
    shutil.copy("new.jsonl", "copy.jsonl")
    for corpus in ("new.jsonl", "copy.jsonl"):
        assert "was trained on 6 of the 6 documents of" in run("evaluate", "m", corpus).err
    assert "too good" not in run("evaluate", "m", "others.jsonl").err
    assert "only for a model that was trained on them" in run.refuses("report", "m")
    for row in rows[:15]:
        row["text"] += " of another year"
    Path("old.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[:15]))
    changed = run("evaluate", "m", "old.jsonl")  # other documents are measured, with a warning
    assert "cross-validation" not in changed.out
    assert "trained on documents of old.jsonl, so these figures are too good" in changed.err


def test_topics_that_got_clearly_worse_are_shown_though_no_document_of_theirs_was_learnt(run):
    rows = [{"id": f"d{i}", "text": f"{w}wood hill", "topics": w} for i, w in enumerate(["ash", "birch", "cedar"] * 6)]
    copies = [{"id": f"e{i}", "text": "ashwood hill", "topics": "rust"} for i in range(5)]
    for name, part in (("old", rows), ("new", copies)):
        Path(f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in part))
    run("train", "old.jsonl", "--recipe", "paum", "--updatable", "--set", "tags.strategy=single", "--out", "m")
    printed = run("learn", "m", "new.jsonl", "--new-topics-negative").out
    assert [line.split()[0] for line in printed.splitlines() if line.startswith(("ash", "birch", "cedar", "rust"))] == [
        "ash",
        "rust",
    ]
    assert "2 topics have as many documents as before, and no figure that fell by 0.05 (--topics)." in printed


def test_the_command_learns_removes_and_undoes(run):
    old = [document(f"d{i}", ("ash", "birch", "cedar")[i % 3], split="test" if i > 11 else "train") for i in range(15)]
    new = [document("n1", "dogwood"), document("n2", "dogwood"), document("n3", "ash"), Document("d1", {}, ("cedar",))]
    written("old.jsonl", old)
    written("new.jsonl", new)
    options = "--recipe", "default", "--updatable", "--band", "ALL", "--out"
    assert run("train", "old.jsonl", *options, "model").code == 0
    before = bytes_of("model")
    printed = run("learn", "model", "new.jsonl", "--remove", "d3,d4", "--out", "other").out
    assert "Documents: 3 added, 1 corrected, 2 removed; 13 are trained on." in printed
    assert (
        [line.split()[:3] for line in printed.splitlines() if line.startswith(("ash", "birch", "cedar", "dogw"))]
        == [
            ["ash", "4", "4"],  # as many as before, of which one is gone and one is new
            ["birch", "4", "2"],
            ["cedar", "4", "5"],
            ["dogwood", "0", "2"],
        ][1:]
    )
    assert "A topic has as many documents as before, and no figure that fell by 0.05 (--topics)." in printed
    then = learnt_naively(old, new, {"d3", "d4"}, False)
    written("then.jsonl", then)
    run("train", "then.jsonl", *options, "anew")
    learnt, anew = bytes_of("other"), bytes_of("anew")
    manifests = [json.loads(files.pop("manifest.json")) for files in (learnt, anew)]
    check_same(learnt, anew)
    for manifest in manifests:  # they are of files of other names
        for name in ("corpus", "origin", "sum"):
            del manifest[name]
        for name in ("twins", "without_twins"):  # `learn` has no texts of the former documents to look for twins in
            manifest["evaluation"].pop(name, None)
    assert manifests[0] == manifests[1]

    check_same(bytes_of("model"), before)
    Path("ids.txt").write_text("d3\n\nd4\n", encoding="utf-8")
    as_json = json.loads(run("learn", "model", "new.jsonl", "--as", "json").out)
    assert as_json["added"] == ["n1", "n2", "n3"]
    assert {row["topic"] for row in as_json["topics"]} == {*TOPICS}
    assert run("learn", "model", "--undo").out == f"The model {Path('model').resolve()} is what it was before.\n"
    check_same(bytes_of("model"), before)
    assert "2 removed; 10 are trained on" in run("learn", "model", "--remove", "ids.txt", "--topics").out
    assert "no earlier state is kept" in run.refuses("learn", "model", "--undo")
    assert "no document 'absent'" in run.refuses("learn", "model", "--remove", ",".join(["absent"] * 100))
    assert "--undo goes alone" in run.misuses("learn", "model", "new.jsonl", "--undo")
    assert "Did you mean 'd1'?" in run.refuses("learn", "model", "--remove", "d1x")
    assert run.refuses("learn", "model").startswith("There is nothing to learn")
    run("learn", "nothing", "new.jsonl")
    assert (run.code, "nothing is not a model" in run.err) == (1, True)


def test_a_corpus_with_documents_that_were_judged_for_some_topics_is_measured_and_reported(run):
    known = [document(f"d{i}", ("ash", "birch", "cedar")[i % 3]) for i in range(12)]
    known += [
        document(f"t{i}", ("ash", "birch")[i % 2], split="test", labelled_for=(("ash",), None)[i > 3]) for i in range(8)
    ]
    written("some.jsonl", known)
    assert run("train", "some.jsonl", "--recipe", "paum", "--out", "model").code == 0
    kept = {row.topic: row for row in textcat.load("model").evaluation.topics}
    corpus = textcat.open_corpus("some.jsonl")
    evaluation = textcat.evaluate(textcat.load("model"), corpus)
    of_birch = [i for i, each in enumerate(corpus.test) if each.labelled_for is None or "birch" in each.topics]
    alone = textcat.evaluate(textcat.load("model"), replace(corpus, test=[corpus.test[i] for i in of_birch]))
    for name in ("average_precision", "f1", "precision", "recall", "test_positives"):
        assert getattr(kept["birch"], name) == getattr(evaluation.topics[1], name) == getattr(alone.topics[1], name)
    assert np.isfinite(evaluation.scored.scores).all()
    assert run("report", "model", "--out", "report.html").code == 0


def test_no_code_of_a_strangers_model_is_run_by_an_update(tmp_path, monkeypatch):
    (tmp_path / "of_a_stranger.py").write_text(
        "from dataclasses import dataclass\nfrom textcat import PAUM\n\n\n"
        "@dataclass(eq=False, repr=False)\nclass Own(PAUM):\n    pass\n"
    )
    monkeypatch.chdir(tmp_path)
    recipe = replace(textcat.read_recipe("paum"), learner={"name": "of_a_stranger:Own"})
    records = [{"id": str(i), "text": text, "topics": [text]} for i, text in enumerate(["tin", "gold"] * 4)]
    textcat.save(textcat.train(textcat.Corpus.from_records(records), recipe, updatable=True), tmp_path / "model")
    new = [{"id": "n", "text": "iron", "topics": ["iron"]}]
    monkeypatch.delitem(sys.modules, "of_a_stranger")
    sentence = "trained by a learner of another package, 'of_a_stranger:Own', whose code would run: give"
    with pytest.raises(TextcatError, match=sentence):
        textcat.learn(tmp_path / "model", new)
    assert "of_a_stranger" not in sys.modules
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("of_a_stranger")
    assert textcat.learn(tmp_path / "model", new).added == ("n",)


def test_learning_reads_the_fields_that_training_named_or_those_that_are_named_now(tmp_path):
    known = [{"id": f"d{k}", "story": f"{topic} wood", "topics": topic} for k, topic in enumerate(TOPICS[:2] * 3)]
    new = [{"id": "n", "title": "cedar", "story": "ash grove", "labels": "ash"}]
    for named in ({}, {"text": "story"}):
        model = tmp_path / f"model {named}"
        textcat.save(textcat.train(known, PLAIN, text="story", updatable=True), model)
        assert "cedar" not in textcat.learn(model, new, topics="labels", **named).tagger.features.vocabulary_
    learnt = textcat.learn(model, [{**new[0], "id": "m"}], topics="labels", text=["title", "story"])
    assert "cedar" in learnt.tagger.features.vocabulary_


@pytest.mark.parametrize("by_command", [True, False])
def test_a_file_is_learnt_as_the_files_of_training_were_read_unless_options_say_otherwise(run, by_command):
    def save(name, *rows):
        Path(name).write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")

    def learn(file, options=(), **named):
        if by_command:
            assert run("learn", "model", file, *options).code == 0, run.err
        else:
            textcat.learn("model", file, **named)
        learnt = textcat.load("model")
        return {*learnt.features.vocabulary_}, learnt.topics

    save("old.jsonl", *({"id": f"d{k}", "story": f"{topic} wood", "kind": topic} for k, topic in enumerate(TOPICS * 3)))
    options = "--text-field", "story", "--topics-field", "kind", "--recipe", "paum", "--set", "features.min_df=1"
    assert run("train", "old.jsonl", *options, "--updatable", "--out", "model").code == 0, run.err
    save("new.jsonl", {"id": "n", "story": "elm grove", "text": "fir", "kind": "elm", "topics": "fir"})
    assert learn("new.jsonl") == ({*TOPICS, "wood", "grove", "elm"}, (*TOPICS, "elm"))
    save("other.jsonl", {"id": "m", "story": "larch", "text": "fir", "kind": "larch", "topics": "fir"})
    words, topics = learn("other.jsonl", ("--text-field", "text"), text="text")
    assert words >= {"fir", "elm"}
    assert "larch" not in words
    assert topics == (*TOPICS, "elm", "fir")
    save("corrections.jsonl", {"id": "n", "text": "elm", "topics": "fir"})
    if by_command:
        assert "name the texts' field with --text-field" in run.refuses("learn", "model", "corrections.jsonl")
        assert learn("corrections.jsonl", ("--topics-field", "topics"))[1] == (*TOPICS, "fir")


NEW = [{"id": f"n{k}", "text": f"{topic}wood {topic}grove", "topics": topic} for k, topic in enumerate(TOPICS)]


@pytest.mark.parametrize("kind", ["pandas", "the index of pandas", "polars", "a file", "a corpus"])
def test_learning_takes_what_training_takes(model, tmp_path, kind):
    other = shutil.copytree(model, tmp_path / "other")
    expected = textcat.learn(other, NEW)
    if "pandas" in kind:
        new = pytest.importorskip("pandas").DataFrame(NEW)
        new = new if kind == "pandas" else new.set_index("id")
    elif kind == "polars":
        new = pytest.importorskip("polars").DataFrame(NEW)
    else:
        new = tmp_path / "new.jsonl"
        new.write_text("".join(f"{json.dumps(row)}\n" for row in NEW))
        new = textcat.open_corpus(new) if kind == "a corpus" else new
    assert textcat.learn(model, new).added == expected.added == ("n0", "n1", "n2", "n3")
    check_same(bytes_of(model), bytes_of(other))


def test_the_columns_of_a_table_to_learn_are_named_as_for_training(model):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"id": [7, 8], "ash": [1, 0], "elm": [0, 1], "story": ["ashwood", "elmwood"]})
    learnt = textcat.learn(model, table, text="story", topics=["ash", "elm"])
    assert (learnt.added, learnt.tagger.topics) == (("7", "8"), ("ash", "birch", "cedar", "elm"))


def test_documents_of_a_table_with_columns_of_some_topics_are_no_negatives_of_the_others(model, tmp_path):
    pandas = pytest.importorskip("pandas")
    other = shutil.copytree(model, tmp_path / "other")
    rows = [{"id": str(i), "text": "birchwood elmwood", "ash": i} for i in range(2)]
    textcat.learn(model, pandas.DataFrame(rows), topics=["ash"])
    textcat.learn(other, [{**row, "topics": ["ash"] * row["ash"], "labelled_for": ["ash"]} for row in rows])
    check_same(bytes_of(model), bytes_of(other))


def test_labels_for_topics_that_a_table_does_not_judge_stay(model):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"id": ["d0", "d1", "d2"], "text": ["ashwood"] * 3, "ash": [0, 1, 1], "elm": [1, 0, 0]})
    learnt = textcat.learn(model, table, topics=["ash", "elm"])
    corpus = learnt.tagger.training_counts.corpus
    assert [{*document.topics} for document in corpus.train[:3]] == [{"elm"}, {"ash", "birch"}, {"ash", "cedar"}]
    unjudged = corpus.unjudged(corpus.train).toarray()
    assert unjudged[:, corpus.topics.index("elm")].tolist() == [0] * 3 + [1] * 9
    assert unjudged.sum() == 9


def test_records_without_topics_are_told_before_they_are_learnt(model, caplog):
    textcat.learn(model, [{"id": "new", "text": "Corn rose."}])
    assert "1 of 1 records have no value in 'topics' (1), so they count as having no topic" in caplog.text


@pytest.mark.parametrize("kind", ["numbered", "missing", "column", "polars"])
def test_a_table_without_ids_is_not_learnt(model, kind):
    pandas = pytest.importorskip("pandas")
    before, table = bytes_of(model), pandas.DataFrame(NEW)
    tables = {"numbered": table.drop(columns="id"), "missing": table.assign(id=["a", None, "b", "c"])}
    tables |= {"column": table["text"]}
    if kind == "polars":
        tables[kind] = pytest.importorskip("polars").DataFrame(NEW).drop("id")
    says = {"missing": "^Row 1 has no id", "column": "^A Series is not a table"}.get(kind, "^The table has no ids")
    with pytest.raises(TextcatError, match=says):
        textcat.learn(model, tables[kind])
    check_same(bytes_of(model), before)
