"""Models by name, and what takes over from them."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest
from serving_requests import STORY, TAG, post

import textcat
from textcat.base.errors import TextcatError
from textcat.serving.http.log import Log
from textcat.serving.store import Store, folder_for_model, named_folders
from textcat.serving.tagging import Service


def test_a_replaced_model_is_taken_over_and_a_broken_one_is_not(tmp_path):
    def train(tau):
        recipe = textcat.read_recipe("paum").with_settings([f"learner.tau_pos={tau}"])
        return textcat.train(textcat.open_corpus("newswire"), recipe)

    folder = tmp_path / "model"
    textcat.save(train(50), folder)
    store = Store({"news": folder})
    store.load()
    events = []
    service = Service(store, log=Log(None))
    store.on_load = lambda *event: events.append(event)
    first = store["news"].version
    asyncio.run(store.check())
    assert store["news"].version == first
    assert not events
    textcat.save(train(5), folder)
    asyncio.run(store.check())
    second = store["news"].version
    assert second != first
    assert post(service, TAG, json={"text": STORY}).json()["version"] == second
    (tmp_path / "broken").write_bytes(b"broken")
    (tmp_path / "broken").replace(folder / "weights.npy")  # not written over: the old one is mapped
    (folder / "manifest.json").touch()
    asyncio.run(store.check())
    asyncio.run(store.check())
    assert store["news"].version == second
    assert post(service, TAG, json={"text": STORY}).status_code == 200
    assert [event[:2] for event in events] == [("news", "loaded"), ("news", "failed")]
    textcat.save(train(50), folder)
    asyncio.run(store.check())
    assert store["news"].version == first


def test_models_are_named_by_their_folders_or_as_asked_for(tmp_path, monkeypatch):
    assert named_folders([str(tmp_path / "a"), "b=c"]) == {"a": tmp_path / "a", "b": textcat.base.disk.Path("c")}
    (tmp_path / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a" / "b")
    assert {*named_folders(["."]), *named_folders([".."])} == {"a", "b"}
    for models, words in ((["a b"], "NAME="), (["a/x", "b/x"], "another name"), (["/"], "NAME=")):
        with pytest.raises(TextcatError, match=words):
            named_folders(models)


def test_a_process_that_replaces_another_loads_models_anew_and_leaves_damaged_ones_out(tmp_path, newswire_model):
    folder = tmp_path / "model"
    shutil.copytree(newswire_model, folder)
    store = Store({"news": folder})
    store.load()
    service, events = Service(store, log=Log(None)), []
    store.on_load = lambda *event: events.append(event[:2])
    weights = next(folder.glob("weights*.npy"))
    whole = weights.read_bytes()
    (tmp_path / "other").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "other").replace(weights)
    store.load_again()
    assert events == [("news", "failed")]  # before the first request is answered
    for _ in range(2):
        answer = post(service, TAG, json={"text": STORY})
        assert answer.status_code == 503
        assert f"as {weights.name} is not as it was written" in answer.json()["detail"]
        assert str(tmp_path) not in answer.text
        asyncio.run(store.check())
    assert events == [("news", "failed")]
    (tmp_path / "other").write_bytes(whole)
    (tmp_path / "other").replace(weights)
    asyncio.run(store.check(now=True))
    assert events[-1] == ("news", "loaded")
    assert post(service, TAG, json={"text": STORY}).status_code == 200


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="system: there are no pipes")
@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_a_model_stays_when_its_manifest_is_replaced_by_what_is_no_file(tmp_path, newswire_model, kind):
    folder = tmp_path / "model"
    shutil.copytree(newswire_model, folder)
    store, events = Store({"news": folder}), []
    store.load()
    store.on_load = lambda *event: events.append(event)
    version = store["news"].version
    manifest = folder / "manifest.json"
    manifest.unlink()
    {"pipe": os.mkfifo, "device": lambda path: path.symlink_to("/dev/zero"), "folder": os.mkdir}[kind](manifest)
    for _ in range(12):  # it is tried again now and then, and told once
        asyncio.run(store.check())
    ((_, outcome, said),) = events
    assert outcome == "failed"
    assert "manifest.json" in said
    assert store["news"].version == version


def test_changed_rules_are_taken_over_and_broken_ones_are_not(tmp_path, newswire_model):
    folder = Path(shutil.copytree(newswire_model, tmp_path / "news"))
    rules, events = tmp_path / "news.rules.toml", []
    store = Store({"news": folder})
    store.load()
    store.on_load = lambda *event: events.append(event[1])
    assert store["news"].rules == ""
    for text, expected in (('never = ["tin"]', "loaded"), ('never = ["tinn"]', "failed"), ("at_most = 2", "loaded")):
        rules.write_text(text)
        os.utime(rules, ns=(0, (len(events) + 1) * 10**9))
        asyncio.run(store.check())
        assert events[-1] == expected
    assert store["news"].rules == "at_most = 2"
    rules.unlink()
    asyncio.run(store.check())
    assert store["news"].rules == ""


def test_a_folder_for_one_of_several_models_names_it():
    assert folder_for_model("new", ["news"]) == ("news", Path("new"))
    assert folder_for_model("b=new", ["a", "b"]) == ("b", Path("new"))
    for text, names in (("new", ["a", "b"]), ("c=new", ["a", "b"]), ("c=new", ["a"])):
        with pytest.raises(TextcatError, match="give NAME=FOLDER"):
            folder_for_model(text, names)
