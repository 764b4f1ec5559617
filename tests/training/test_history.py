"""Steps are noted, take what is new in a folder of corrections, and can be undone: the model is that of the others."""

import functools
import json
import os
import shutil
import tempfile
from collections import Counter
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from killing import killed_at
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
    train_from_the_start,
)

import textcat
from textcat import Document, TextcatError
from textcat.base.journal import read_whole_journal, rewrite_journal
from textcat.corpus.corrections import PLACE, Correction, Corrections, with_text_in_id
from textcat.model import CARD
from textcat.model.history import descends_from, n_learnt
from textcat.model.manifest import read_manifest


@pytest.fixture(scope="module")
def first_model(tmp_path_factory):
    known = [document(f"d{i}", ("ash", "birch", "cedar")[i % 3]) for i in range(12)]
    folder = tmp_path_factory.mktemp("first") / "model"
    train_from_the_start(known, PLAIN, folder, measured=True, keep_support="ids")
    return folder


@pytest.fixture
def model(first_model, tmp_path):
    """A model that a test may change."""
    return shutil.copytree(first_model, tmp_path / "model")


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def other(first_model, tmp_path):
    """Another copy of the model, with the same name."""
    return shutil.copytree(first_model, tmp_path / "elsewhere" / "model")


def judge(folder, id_, person="Ann", text=True, **answers):
    judged = document(id_, *(topic for topic, belongs in answers.items() if belongs))
    judged = replace(judged, zones=judged.zones if text else {}, topics=())
    Corrections(folder).add(Correction(judged, answers, person))


def labels(model):
    """The topics of each document of a model, and those that it was judged for."""
    corpus = textcat.model.storage.load_training_counts(model)[0].corpus
    return {d.id: (set(d.topics), d.labelled_for and {*d.labelled_for}) for d in (*corpus.train, *corpus.test)}


def without_twins(folder):
    """The files of a model; `learn` has no texts of the former documents to look for twins in."""
    files = bytes_of(folder)
    manifest = json.loads(files["manifest.json"])
    del manifest["sum"]
    for name in ("twins", "without_twins"):
        manifest["evaluation"].pop(name, None)
    return {**files, "manifest.json": manifest}


# --- any sequence of steps -------------------------------------------------------------------------------------------


def words(document):
    return Counter(" ".join(document.zones.values()).split())


class Naive:
    """What a model knows after steps, of which each may be undone: their documents, learnt one step after the other."""

    def __init__(self, known):
        self.first, self.steps = known, [None]

    def active(self, steps):
        undone, active = set(), []
        for number in range(len(steps) - 1, 0, -1):
            if number not in undone:
                active.insert(0, number)
                undone |= {steps[number].get("undoes")}
        return active

    def answers(self, steps):
        last = {}
        for number in self.active(steps):
            last |= steps[number].get("answers", {})
        return last

    def has_text_from_a_step(self, id_):
        active = [self.steps[number] for number in self.active(self.steps)]
        brought = (d for step in active for d in step.get("new", ()) if any(d.zones.values()))
        return id_ in {d.id for d in brought} or any(id_ in step.get("zones", ()) for step in active)

    def after(self, steps):
        known, active = self.first, self.active(steps)
        for number in active:
            step = steps[number]
            ids = {d.id: d for d in known}
            partly = {}
            new = [d for d in step.get("new", ()) if d.id in ids or any(d.zones.values()) or d.id in step["added"]]
            for id_, answers in step.get("answers", {}).items():
                later = [steps[n]["answers"][id_] for n in active if n > number and id_ in steps[n].get("answers", {})]
                standing = {topic: said for topic, said in answers.items() if all(s.get(topic) is said for s in later)}
                zones = step["zones"].get(id_, {})
                if id_ not in ids and not (zones and answers and all(later)):
                    continue
                old = ids.get(id_) or Document(id_, {}, (), labelled_for=())
                partly |= {id_: standing} if id_ in ids else {}
                topics = {*old.topics} - {t for t in standing if not standing[t]} | {t for t in standing if standing[t]}
                judged = None if old.labelled_for is None else (*old.labelled_for, *standing)
                new.append(Document(id_, zones, tuple(sorted(topics)), old.date, labelled_for=judged))
            names = {name for d in known for name in (*d.topics, *(d.labelled_for or ()))}
            brought = {t for d in new if d.id not in ids or ids[d.id].split != "test" for t in d.topics} - names
            for k, d in enumerate(new):
                if d.id in partly and d.labelled_for is None and brought:
                    new[k] = replace(d, labelled_for=(*names, *partly[d.id]))
            known = learnt_naively(known, new, step.get("gone", set()) & {*ids}, step.get("complete", False))
        return known


N_EXAMPLES = 60 if "TEXTCAT_LONG" in os.environ else 6


@settings(max_examples=N_EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
@pytest.mark.filterwarnings("ignore")
def test_a_model_is_that_of_the_steps_that_were_not_undone(data):
    known = in_parts(data.draw(beginnings()))
    support = data.draw(st.sampled_from(["none", "ids", "texts"]))
    with tempfile.TemporaryDirectory() as work:
        model, other, folder = Path(work, "model"), Path(work, "other"), Path(work, "corrections")
        try:
            train_from_the_start(known, PLAIN, model, measured=True, keep_support=support)
        except TextcatError:
            assume(False)
        naive, people = Naive(known), []
        corrections = Corrections(folder)
        for turn in range(data.draw(st.integers(2, 7))):
            now, files = naive.after(naive.steps), bytes_of(model)
            ids = [d.id for d in now]
            action = data.draw(st.sampled_from(["learn", "from", "from", "undo", "undo", "restore"]))
            step, refusal, act = None, None, None
            if action == "learn":
                new = [data.draw(documents(f"s{turn}d{i}")) for i in range(data.draw(st.integers(0, 2)))]
                chosen = data.draw(st.lists(st.sampled_from(ids[2:]), max_size=3, unique=True)) if ids[2:] else []
                gone = set(chosen[:1]) if data.draw(st.integers(0, 3)) == 0 else set()
                for id_ in chosen[len(gone) :]:
                    corrected = replace(data.draw(documents(id_)), split="")
                    new.append(data.draw(st.sampled_from([corrected, *[replace(corrected, zones={})] * 3])))
                if not new and not gone:
                    continue
                complete = data.draw(st.booleans())
                step = {"new": new, "gone": gone, "complete": complete, "added": {d.id for d in new} - {*ids}}
                act = functools.partial(textcat.learn, model, new, gone, new_topics_negative=complete)
            elif action == "from":
                for k in range(data.draw(st.integers(0, 2))):
                    id_ = data.draw(st.sampled_from([*ids, "f0", "f1", "f2"]))
                    same = next((d.zones for d in now if d.id == id_ and any(d.zones.values())), None)
                    zones = same if same and data.draw(st.integers(0, 4)) else data.draw(documents(id_)).zones
                    zones = zones if id_ not in ids or data.draw(st.booleans()) else {}
                    answers = data.draw(st.dictionaries(st.sampled_from(TOPICS), st.booleans(), min_size=1))
                    people.append(f"p{turn}.{k}")
                    corrections.add(Correction(Document(id_, zones), answers, people[-1]))
                if people and data.draw(st.booleans()):
                    corrections.take_back(people.pop(data.draw(st.integers(0, len(people) - 1))), "review")
                said = {d.id: d for d in corrections.documents()}
                learnt = naive.answers(naive.steps)
                removed = {id_ for s in naive.steps[1:] for id_ in s.get("gone", ()) if id_ not in ids}
                fresh = {}
                for id_, d in said.items():
                    answers = {topic: topic in d.topics for topic in d.labelled_for}
                    if answers != learnt.get(id_, {}) and (id_ in ids or any(d.zones.values())):
                        fresh[id_] = answers
                gone = {id_: {} for id_, answers in learnt.items() if answers and id_ in ids and id_ not in said}
                if removed & {*fresh}:
                    break  # what was removed may come back or not: by the numbers of its corrections
                zones = {}
                for id_ in fresh:
                    old = next((d for d in now if d.id == id_), None)
                    if any(said[id_].zones.values()):
                        if old is None or words(old) != words(said[id_]):
                            zones[id_] = said[id_].zones
                        elif naive.has_text_from_a_step(id_):
                            zones[id_] = old.zones
                act = functools.partial(textcat.learn, model, corrections=folder)
                if not fresh and not gone:
                    assert act().number is None
                    check_same(bytes_of(model), files)
                    continue
                step = {"answers": {**fresh, **gone}, "zones": zones}
            elif action == "undo" and len(naive.steps) > 1:
                number = data.draw(st.integers(1, len(naive.steps) - 1))
                step = {"undoes": number}
                if number not in naive.active(naive.steps):
                    refusal = "is undone already"
                elif naive.steps[number].get("gone"):
                    refusal = "removed documents, of which nothing is kept"
                act = functools.partial(textcat.undo_step, model, number)
            elif action == "restore" and any(model.parent.glob("model.before-*")):
                step = {"undoes": len(naive.steps) - 1}
                act = functools.partial(textcat.undo_learn, model)
            if step is None:
                continue
            if refusal:
                with pytest.raises(TextcatError, match=refusal):
                    act()
                check_same(bytes_of(model), files)
                continue
            then = naive.after([*naive.steps, step])
            texts = [d.zones for d in (*now, *step.get("new", ()))] + [c.document.zones for c in corrections]
            missing = [d.id for d in then if d.zones not in texts]
            try:
                act()
            except TextcatError as error:
                check_same(bytes_of(model), files)
                assert len(textcat.learning_history(model)) in (0, len(naive.steps))
                if "is not kept" in str(error):
                    assert missing
                    continue
                with pytest.raises(TextcatError):
                    train_from_the_start(then, PLAIN, other, measured=True, keep_support=support)
                continue
            naive.steps.append(step)
            assert textcat.learning_history(model)[-1].number == len(naive.steps) - 1
            train_from_the_start(then, PLAIN, other, measured=True, keep_support=support)
            check_same(*map(without_twins, (model, other)))


# --- corrections in a folder ------------------------------------------------------------------------------------------


def test_a_folder_of_corrections_is_learnt_once(model, tmp_path):
    textcat.learn(model, [document("t", "ash", split="test"), document("part", "birch", labelled_for=("ash", "birch"))])
    before = labels(model)
    judge("corr", "d0", ash=False, cedar=True)
    judge("corr", "part", cedar=True, ash=True, text=False)
    judge("corr", "t", ash=False, birch=True)
    judge("corr", "new", ash=True, dogwood=True, cedar=False)
    judge("corr", "unknown", text=False, ash=True)
    learnt = textcat.learn(model, corrections="corr")
    assert (learnt.added, {*learnt.corrected}, learnt.removed) == (("new",), {"d0", "part", "t"}, ())
    after = labels(model)
    assert after["d0"] == ({"cedar"}, {"ash", "birch", "cedar"}), "nor is one that was judged for others"
    assert after["part"] == ({"ash", "birch", "cedar"}, {"ash", "birch", "cedar"})
    assert after["t"][0] == {"birch"}
    assert after["new"] == ({"ash", "dogwood"}, {"ash", "cedar", "dogwood"})
    assert after["d1"] == ({"birch"}, {"ash", "birch", "cedar"}), "nobody has judged it for the new topic"
    assert "dogwood" in learnt.tagger.topics
    assert [*after] == [*[*before][:-1], "new", "t"], "the test document is still in its part"
    files, noted = bytes_of(model), model.with_name("model.history.jsonl").read_bytes()
    for out in (None, tmp_path / "other"):
        again = textcat.learn(model, corrections="corr", out=out)
        assert (again.number, again.added, again.folder) == (None, (), out or model)
        check_same(bytes_of(model), files)
        assert model.with_name("model.history.jsonl").read_bytes() == noted
    check_same(bytes_of(tmp_path / "other"), files)
    assert (tmp_path / "other.history.jsonl").read_bytes() == noted
    assert textcat.learn(tmp_path / "other", corrections="corr").number is None


def test_what_changes_nothing_is_no_step_and_undoing_restores_the_model_before(model, tmp_path):
    first = bytes_of(model)
    new = [document("n", "ash"), document("d0", "birch")]
    textcat.learn(model, new)
    files, noted = bytes_of(model), model.with_name("model.history.jsonl").read_bytes()
    (model / CARD).write_text("About this model")
    for out in (None, tmp_path / "other"):
        again = textcat.learn(model, new[::-1], out=out)
        assert (again.number, again.corrected, again.folder) == (None, (), out or model)
        check_same(bytes_of(out or model), files | ({} if out else {CARD: b"About this model"}))
        assert model.with_name("model.history.jsonl").read_bytes() == noted
    assert (tmp_path / "other.history.jsonl").read_bytes() == noted
    textcat.undo_learn(model)
    check_same(bytes_of(model), first)
    names = tmp_path / "names.tsv"
    names.write_text("ash\tAsh\n")
    assert [textcat.learn(model, vocabulary=names).number for _ in range(2)] == [3, None]


def test_a_document_of_an_archive_is_not_a_training_document_with_its_id(model, caplog):
    before, files = labels(model), bytes_of(model)
    place = dict(zip(PLACE, ("a.jsonl", 1, ""), strict=True))
    same = document("d0", "ash").zones
    other = Document("d1", {"body": "cedar and dogwood"}, fields=place)
    Corrections("corr").add(
        Correction(Document("d0", same, fields=place), {"cedar": True}), Correction(other, {"cedar": True})
    )
    learnt = textcat.learn(model, corrections="corr")
    assert (learnt.corrected, learnt.added) == (("d0",), (with_text_in_id(other).id,))
    assert "'d1', have the ids of training documents, and other texts" in caplog.text
    after = labels(model)
    assert after["d1"] == before["d1"]
    assert after[with_text_in_id(other).id] == ({"cedar"}, {"cedar"})
    assert textcat.learn(model, corrections="corr").number is None
    Corrections("corr").add(Correction(other, {"cedar": False, "ash": True}))
    assert textcat.learn(model, corrections="corr").corrected == (with_text_in_id(other).id,)
    for _ in range(3):
        Corrections("corr").take_back("", "review")
    textcat.learn(model, corrections="corr")
    check_same(bytes_of(model), files)


def test_answers_that_were_taken_back_are_unlearnt(model):
    textcat.learn(model, [document("first", "ash")])
    files = bytes_of(model)
    judge("corr", "d0", text=False, ash=False, cedar=True)
    judge("corr", "new", dogwood=True)
    judge("corr", "d1", person="Ben", text=False, cedar=True)
    textcat.learn(model, corrections="corr")
    Corrections("corr").take_back("Ben", "review")
    assert textcat.learn(model, corrections="corr").corrected == ("d1",)
    assert labels(model)["d1"][0] == {"birch"}
    for _ in range(2):
        Corrections("corr").take_back("Ann", "review")
    unlearnt = textcat.learn(model, corrections="corr")
    assert (unlearnt.corrected, unlearnt.removed) == (("d0",), ("new",))
    check_same(bytes_of(model), files)
    assert textcat.learn(model, corrections="corr").number is None


def test_a_folder_that_has_lost_corrections_unlearns_nothing(model):
    judge("corr", "d0", text=False, ash=False, cedar=True)
    shutil.copytree("corr", "older")
    judge("corr", "new", dogwood=True)
    Corrections("corr").add(Correction(document("d1", "birch"), {"ash": True}))
    Corrections("corr").take_back("", "review")  # retracted answers stay in the folder
    textcat.learn(model, corrections="corr")
    files = bytes_of(model)
    os.rename("corr", "whole")
    Corrections("corr")
    begun, other = "corr-begun", "corr-other"
    judge(begun, "d2", text=False, cedar=True)
    for n in range(2):
        judge(other, f"d{n + 2}", text=False, cedar=True)
    for folder in ("corr", begun, other, "older"):
        if folder != "corr":
            shutil.rmtree("corr")
            os.rename(folder, "corr")
        with pytest.raises(TextcatError, match=r"does not have correction . any more, about '(d0|new)'.*restore"):
            textcat.learn(model, corrections="corr")
        check_same(bytes_of(model), files)
    shutil.rmtree("corr")
    os.rename("whole", "corr")
    assert textcat.learn(model, corrections="corr").number is None


def test_a_document_that_is_judged_again_after_all_was_taken_back_is_a_new_one(model, other):
    judge("corr", "new", ash=True)
    textcat.learn(model, corrections="corr")
    Corrections("corr").take_back("Ann", "review")
    textcat.learn(model, corrections="corr")
    textcat.learn(model, [document("between", "ash")])
    judge("corr", "new", ash=True)
    textcat.learn(model, corrections="corr")
    assert [*labels(model)][-2:] == ["between", "new"]
    textcat.learn(model, [document("last", "ash")])
    textcat.undo_step(model, 5)
    textcat.undo_step(model, 3)
    textcat.learn(other, corrections="corr")
    check_same(bytes_of(model), bytes_of(other))


def test_answers_that_were_undone_are_learnt_again(model):
    judge("corr", "new", ash=True)
    textcat.learn(model, corrections="corr")
    files = bytes_of(model)
    textcat.undo_learn(model)
    assert textcat.learn(model, corrections="corr").added == ("new",)
    check_same(bytes_of(model), files)


def test_a_removed_document_does_not_come_back_from_the_folder_until_somebody_judges_it_again(model):
    judge("corr", "secret1", ash=True)
    judge("corr", "other", ash=True)
    textcat.learn(model, corrections="corr")
    textcat.learn(model, remove=["secret1"])
    assert "secret1" not in model.with_name("model.history.jsonl").read_text()
    assert textcat.learn(model, corrections="corr").number is None
    assert [step.as_dict()["added"] for step in textcat.learning_history(model)] == [[], ["other"], []]
    assert textcat.learning_history(model)[2].as_dict()["removed"] == 1
    judge("corr", "secret1", ash=True)
    assert textcat.learn(model, corrections="corr").added == ("secret1",)


def test_a_correction_with_the_same_text_leaves_the_text_and_one_with_another_replaces_it(model):
    counts = model.joinpath("counts.npz")
    before = counts.read_bytes()
    same = document("d0", "ash")
    Corrections("corr").add(Correction(same, {"cedar": True}))
    in_one_zone = {"text": " ".join(same.zones.values())}
    Corrections("corr").add(Correction(replace(same, zones=in_one_zone), {"birch": True}))
    textcat.learn(model, corrections="corr")
    assert counts.read_bytes() == before
    Corrections("corr").add(Correction(document("d0", "birch"), {"cedar": False}))
    textcat.learn(model, corrections="corr")
    assert counts.read_bytes() != before


def test_what_goes_wrong_with_corrections_is_told_and_changes_nothing(model, newswire_model):
    files = bytes_of(model)
    judge("corr", "new", ash=True)
    refusals = {
        "has no corrections: name a folder": {"corrections": "nothing"},
        "are learnt alone": {"corrections": "corr", "remove": "d0"},
        "learnt alone": {"corrections": "corr", "documents": [document("n", "ash")]},
    }
    for sentence, options in refusals.items():
        with pytest.raises(TextcatError, match=sentence):
            textcat.learn(model, **options)
    with pytest.raises(TextcatError, match="not updatable"):
        textcat.learn(newswire_model, corrections="corr")
    check_same(bytes_of(model), files)
    assert textcat.learning_history(model) == []


# --- undoing ----------------------------------------------------------------------------------------------------------


def test_a_step_in_the_middle_is_undone_and_later_corrections_stay(model, other):
    first, third = [document("one", "ash")], [Document("d1", {}, ("cedar",)), document("three", "dogwood")]
    second = [document("two", "dogwood"), Document("d1", {}, ("ash",)), Document("d2", {}, ("ash",))]
    for new in (first, second, third):
        textcat.learn(model, new)
    undone = textcat.undo_step(model, 2)
    assert (undone.number, undone.removed, undone.corrected, undone.kept) == (4, ("two",), ("d2",), ("d1",))
    for new in (first, third):
        textcat.learn(other, new)
    check_same(bytes_of(model), bytes_of(other))
    with pytest.raises(TextcatError, match="undone already: undo step 4"):
        textcat.undo_step(model, 2)
    with pytest.raises(TextcatError, match=r"The text of document 'two' .* learn the document again"):
        textcat.undo_step(model, 4)
    assert (textcat.undo_step(model, 1).removed, len(labels(model))) == (("one",), 13)


def test_what_a_later_step_says_of_a_document_stays_though_the_step_that_added_it_is_undone(model, other):
    labelled = document("new", "dogwood")
    judge("corr", "new", ash=True)
    textcat.learn(model, corrections="corr")
    textcat.learn(model, [labelled])
    undone = textcat.undo_step(model, 1)
    assert (undone.removed, undone.kept) == ((), ("new",))
    textcat.learn(other, [labelled])
    check_same(bytes_of(model), bytes_of(other))
    textcat.learn(model, corrections="corr")  # what was undone is learnt again, with the same text
    textcat.undo_step(model, 2)
    assert labels(model)["new"] == ({"ash"}, {"ash"})


def test_what_a_later_step_says_of_a_document_stays_though_the_answer_that_added_it_is_taken_back(model, other):
    labelled = document("new", "dogwood")
    judge("corr", "new", ash=True)
    textcat.learn(model, corrections="corr")
    textcat.learn(model, [labelled])
    Corrections("corr").take_back("Ann", "review")
    assert textcat.learn(model, corrections="corr").removed == ()
    textcat.learn(other, [labelled])
    check_same(bytes_of(model), bytes_of(other))


def test_an_archive_goes_on_by_the_model_that_has_learnt(model, other, tmp_path):
    archive = tmp_path / "archive.jsonl"
    archive.write_text('{"text": "ash and birch"}\n')
    first = read_manifest(model).id
    textcat.tag_archive(model, archive, tmp_path / "tags", jobs=1)
    for change in (
        lambda: textcat.learn(model, [document("one", "ash")]),
        lambda: textcat.learn(model, [document("two", "dogwood")]),
        lambda: textcat.undo_step(model, 1),
    ):
        assert not descends_from(other, first)
        change()
        assert descends_from(model, first)
        archive.write_text(archive.read_text() * 2)
        assert textcat.tag_archive(model, archive, tmp_path / "tags", jobs=1).growth
    learnt = read_manifest(model).id
    shutil.rmtree(model)
    shutil.copytree(other, model)  # not by learning
    assert not descends_from(model, learnt)
    with pytest.raises(TextcatError, match="give --model-changes new"):
        textcat.tag_archive(model, archive, tmp_path / "tags", jobs=1)


def test_an_undone_step_comes_back_if_its_texts_are_in_a_folder_of_corrections(model):
    judge("corr", "new", dogwood=True)
    textcat.learn(model, corrections="corr")
    files = bytes_of(model)
    textcat.learn(model, [document("later", "ash")])
    textcat.undo_step(model, 2)
    check_same(bytes_of(model), files)
    textcat.undo_step(model, 1)
    textcat.undo_step(model, 4)
    check_same(bytes_of(model), files)


def test_steps_that_cannot_be_undone_are_refused_in_a_sentence(model):
    textcat.learn(model, [document("d1", "ash", "birch"), document("n1", "ash")])
    textcat.learn(model, [Document("d1", {}, ("ash",))], remove=["d0"])
    textcat.learn(model, [Document("d2", {"body": "ashwood ashgrove"}, ("ash",))])
    files = bytes_of(model)
    refusals = {7: "no step 7 to undo: the steps are 1 to 3", 0: "no step 0", 2: "removed documents", 3: "not kept"}
    for number, sentence in refusals.items():
        with pytest.raises(TextcatError, match=sentence):
            textcat.undo_step(model, number)
        check_same(bytes_of(model), files)
    train_from_the_start([document("d0", "ash"), document("d1", "birch")], PLAIN, model, measured=False)
    textcat.learn(model, [document("n2", "ash")])
    assert [step.action for step in textcat.learning_history(model)][3:] == ["learn", "found", "learn"]
    with pytest.raises(TextcatError, match="another model took the place"):
        textcat.undo_step(model, 1)
    assert textcat.undo_step(model, 5).removed == ("n2",)


def test_names_of_topics_are_undone_like_documents(model, other):
    Path("names.tsv").write_text("ash\tEsche\nbirch\tBirke\n")
    textcat.learn(model, vocabulary="names.tsv", vocabulary_language="de")
    textcat.learn(model, [document("n1", "dogwood")])
    named = bytes_of(model)
    textcat.undo_step(model, 1)
    textcat.learn(other, [document("n1", "dogwood")])
    check_same(bytes_of(model), bytes_of(other))
    textcat.undo_step(model, 3)
    check_same(bytes_of(model), named)


def test_names_of_a_model_that_is_not_updatable_are_noted_and_only_the_last_step_can_be_undone(tmp_path):
    rows = [document(f"d{i}", ("ash", "birch")[i % 2]) for i in range(8)]
    model = textcat.save(textcat.train(textcat.Corpus.from_documents("c", rows), PLAIN), tmp_path / "plain")
    Path("names.tsv").write_text("ash\tEsche\n")
    textcat.learn(model, vocabulary="names.tsv")
    assert [step.as_dict()["named"] for step in textcat.learning_history(model)] == [False, True]
    with pytest.raises(TextcatError, match="not updatable"):
        textcat.undo_step(model, 1)
    textcat.undo_learn(model)
    assert textcat.learning_history(model)[-1].undoes == 1


def test_the_history_goes_with_a_model_that_is_written_elsewhere(model):
    textcat.learn(model, [document("one", "ash")])
    files = bytes_of(model)
    other = textcat.learn(model, [document("two", "birch")], out=model.with_name("other")).folder
    assert [step.added for step in textcat.learning_history(other)] == [[], ["one"], ["two"]]
    assert len(textcat.learning_history(model)) == 2
    assert (n_learnt(model), n_learnt(other)) == (1, 2)
    textcat.undo_step(other, 2)
    check_same({**bytes_of(other), "manifest.json": b""}, {**files, "manifest.json": b""})
    textcat.learn(model, remove=["one"], out=other)
    assert [step.added for step in textcat.learning_history(model)] == [[], ["one"]]
    assert '"one"' not in other.with_name("other.history.jsonl").read_text()


# --- the history says the truth ---------------------------------------------------------------------------------------


def test_a_step_says_what_changed_and_how_good_the_model_is(model):
    before = read_manifest(model).sha256
    learnt = textcat.learn(model, [document("one", "ash"), Document("d1", {}, ("ash",))])
    start, step = textcat.learning_history(model)
    assert (start.action, start.model, step.replaced, step.model) == (
        "found",
        before,
        before,
        read_manifest(model).sha256,
    )
    assert (step.added, step.corrected, step.number) == (["one"], ["d1"], learnt.number)
    assert step.figures["macro_f1"] == learnt.tagger.evaluation.rows[0]["macro_f1"]
    assert step.figures_before["macro_f1"] == learnt.before.rows[0]["macro_f1"]
    assert json.loads(json.dumps(step.as_dict()))["corrected"] == ["d1"]
    textcat.undo_learn(model)
    assert n_learnt(model) == 0
    undone = textcat.learning_history(model)[-1]
    assert (undone.undoes, undone.unlearnt, undone.corrected, undone.added) == (1, ["one"], ["d1"], [])
    assert (undone.figures, undone.model) == (step.figures_before, before)


def test_a_model_that_came_another_way_begins_anew_and_a_rollback_takes_up_the_thread(model, other):
    textcat.learn(model, [document("one", "ash")])
    files = bytes_of(model)
    textcat.promote(other, model)
    textcat.rollback(model)
    check_same(bytes_of(model), files)
    textcat.learn(model, [document("two", "ash")])
    assert [step.action for step in textcat.learning_history(model)] == ["found", "learn", "learn"]
    textcat.rollback(model)
    assert [step.action for step in textcat.learning_history(model)] == ["found", "learn"]
    textcat.learn(model, [document("three", "ash")])
    assert [step.added for step in textcat.learning_history(model)] == [[], ["one"], ["three"]]


@pytest.mark.parametrize("damage", [b"{}\n", b'{"action": "learn"}\n', b"\n"])
def test_a_damaged_history_is_refused_and_changes_nothing(model, damage):
    textcat.learn(model, [document("one", "ash")])
    path, files = model.with_name("model.history.jsonl"), bytes_of(model)
    path.write_bytes(damage + path.read_bytes())
    changes = {
        "learn": lambda: textcat.learn(model, [document("two", "ash")]),
        "undo": lambda: textcat.undo_learn(model),
        "undo a step": lambda: textcat.undo_step(model, 1),
        "print": lambda: textcat.learning_history(model),
    }
    for change in changes.values():
        with pytest.raises(TextcatError, match=r"is damaged.*move it away"):
            change()
    check_same(bytes_of(model), files)


def test_the_history_of_another_model_undoes_nothing(model):
    textcat.learn(model, [document("one", "ash"), document("two", "ash")])
    path = model.with_name("model.history.jsonl")
    steps = read_whole_journal(path)
    steps[1]["documents"]["one"]["topics"] = ["birch"]
    rewrite_journal(path, steps, "")
    files = bytes_of(model)
    with pytest.raises(TextcatError, match="not that of this model"):
        textcat.undo_step(model, 1)
    check_same(bytes_of(model), files)


@pytest.mark.sampled
@pytest.mark.skipif(not hasattr(os, "fork"), reason="system: processes cannot be forked")
@pytest.mark.parametrize("action", ["learn", "undo", "undo a step", "remove"])
def test_a_kill_at_any_step_leaves_a_model_of_which_the_history_tells_the_truth(model, action, tmp_path_factory):
    textcat.learn(model, [document("one", "ash"), document("secret1", "cedar")])
    textcat.learn(model, [Document("d1", {}, ("cedar",))])
    change = {
        "learn": lambda: textcat.learn(model, [document("two", "ash")]),
        "undo": lambda: textcat.undo_learn(model),
        "undo a step": lambda: textcat.undo_step(model, 1),
        "remove": lambda: textcat.learn(model, remove=["secret1"]),
    }[action]
    begun = shutil.copytree(model.parent, tmp_path_factory.mktemp("kept") / "begun")
    old = bytes_of(model), len(textcat.learning_history(model))
    change()
    new = bytes_of(model), old[1] + 1
    for place in count(step=3 if "TEXTCAT_LONG" in os.environ else 67):
        shutil.rmtree(model.parent)
        shutil.copytree(begun, model.parent)
        os.chdir(model.parent)
        was_killed = killed_at(place, change)
        assert (bytes_of(model), len(textcat.learning_history(model))) in (old, new)
        was_done = bytes_of(model) == new[0]
        textcat.learn(model, [document("next", "ash")])
        steps = textcat.learning_history(model)
        assert [step.action for step in steps].count("found") == 1
        assert len(steps) == (new if was_done else old)[1] + 1
        if action == "remove" and was_done:
            assert "secret1" not in model.with_name("model.history.jsonl").read_text()
        assert textcat.undo_step(model, len(steps) - 1).removed == ("next",)
        if not was_killed:
            break
    assert place > 20
