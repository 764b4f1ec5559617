"""Models are copied to and from a hub and URLs: the same bytes, whole or not at all, and nothing of them is run."""

import hashlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from commands import Run
from manifests import rewrite
from small_hub import TOKEN, Hub

import textcat
from textcat.base.errors import TextcatError
from textcat.base.folders import MANIFEST
from textcat.model import CARD, ModelError
from textcat.model.manifest import MODEL
from textcat.sharing import copies, places
from textcat.sharing.copies import kept_documents, pull, push
from textcat.sharing.places import Folder

needs_hub = pytest.mark.skipif(
    importlib.util.find_spec("huggingface_hub") is None, reason="huggingface_hub is not installed (extra hub)"
)
needs_s3 = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("s3fs", "boto3", "moto"))),
    reason="s3fs or moto is not installed",
)
OURS = "hf://ann/news"


@pytest.fixture
def model(newswire_model, tmp_path):
    return Path(shutil.copytree(newswire_model, tmp_path / "model"))


@pytest.fixture
def other(newswire_model, tmp_path):
    """A model of another checksum, with a file that the first does not have."""
    folder = Path(shutil.copytree(newswire_model, tmp_path / "other"))
    rewrite(folder, corpus="another")
    return folder


@pytest.fixture
def hub(monkeypatch, tmp_path):
    hub = Hub()
    for name, value in {
        "ENDPOINT": hub.url,
        "TOKEN": TOKEN,
        "HUB_DISABLE_XET": "1",
        "HUB_DISABLE_TELEMETRY": "1",
    }.items():
        monkeypatch.setenv(f"HF_{name}", value)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    if importlib.util.find_spec("huggingface_hub"):
        from huggingface_hub import constants

        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)  # it may have been imported before
    yield hub
    hub.end()


@pytest.fixture
def s3(monkeypatch, tmp_path):
    from s3_server import Server, use_server

    server = Server()
    use_server(server, monkeypatch, tmp_path)
    yield server
    server.end()


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    return Run(capsys, monkeypatch)


def contents(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def sibling_names(folder):
    return sorted(path.name for path in folder.parent.iterdir() if path.name.startswith("."))


# --- there and back ---


@needs_hub
def test_what_is_pulled_from_the_hub_is_what_was_pushed(hub, model, tmp_path):
    (model / CARD).write_text("# A card\n")
    assert push(model, "ann/news") == OURS
    assert hub.private["ann/news"]
    stored = hub.files("ann/news")
    assert {name: data for name, data in stored.items() if name != ".gitattributes"} == contents(model)
    pulled = pull(OURS, tmp_path / "pulled")
    assert contents(pulled) == contents(model)
    assert textcat.load(pulled).tag(["Wheat rose."]) == textcat.load(model).tag(["Wheat rose."])


@needs_hub
def test_a_repository_is_public_only_if_that_is_asked_for(hub, model):
    push(model, OURS, public=True)
    assert not hub.private["ann/news"]


@needs_hub
def test_a_model_is_replaced_on_the_hub_in_one_commit_and_only_when_forced(hub, model, other, tmp_path):
    push(model, OURS)
    hub.commit("ann/news", hub.files("ann/news") | {"notes.txt": b"mine", "weights_data.npy": b"stale"})
    push(model, OURS)  # the same model: nothing is lost
    with pytest.raises(TextcatError, match=r"another model's files.*--force"):
        push(other, OURS)
    before = len(hub.repositories["ann/news"])
    push(other, OURS, force=True)
    assert len(hub.repositories["ann/news"]) == before + 1
    files = hub.files("ann/news")
    assert "weights_data.npy" not in files
    assert files["notes.txt"] == b"mine"
    assert contents(pull(OURS, tmp_path / "pulled")) == contents(other)


@needs_hub
def test_a_revision_is_pulled_as_it_was(hub, model, other, tmp_path):
    from small_hub import sha_of

    hub.commit("ann/news", contents(model))
    hub.commit("ann/news", contents(other))
    assert contents(pull(f"{OURS}@{sha_of('ann/news', 0)}", tmp_path / "first")) == contents(model)
    assert contents(pull(OURS, tmp_path / "last")) == contents(other)


@needs_hub
def test_a_pull_reads_one_commit_even_if_another_one_comes_meanwhile(hub, model, other, tmp_path, monkeypatch):
    hub.commit("ann/news", contents(model))
    usage = shutil.disk_usage  # looked up between the manifest and the other files

    def then_commit(*arguments):
        hub.commit("ann/news", contents(other))
        return usage(*arguments)

    monkeypatch.setattr(shutil, "disk_usage", then_commit)
    assert contents(pull(OURS, tmp_path / "pulled")) == contents(model)


def test_what_is_pulled_from_a_url_is_what_was_pushed(model, tmp_path):
    (model / CARD).write_text("# A card\n")
    (model / "mine.txt").write_text("not the model's")
    for place in ("memory://shelf/model", (tmp_path / "my shelf").as_uri(), f"file://{tmp_path}/10% shelf"):
        assert push(model, place) == place
        pulled = contents(pull(place, tmp_path / "pulled", force=True))
        assert pulled == {name: data for name, data in contents(model).items() if name != "mine.txt"}
    assert not (tmp_path / "shelf" / "mine.txt").exists()


def test_a_model_at_a_url_is_replaced_only_when_forced_and_other_files_stay(model, other, tmp_path):
    shelf = tmp_path / "shelf"
    push(model, shelf.as_uri())
    (shelf / "weights_data.npy").write_bytes(b"stale")
    (shelf / "notes.txt").write_bytes(b"mine")
    with pytest.raises(TextcatError, match="another model's files"):
        push(other, shelf.as_uri())
    push(other, shelf.as_uri(), force=True)
    assert contents(shelf) == {**contents(other), "notes.txt": b"mine"}


def test_a_push_that_is_cut_leaves_no_manifest_at_a_url(model, other, tmp_path, monkeypatch):
    from fsspec.implementations.local import LocalFileSystem

    shelf, open_ = tmp_path / "shelf", LocalFileSystem.open
    push(model, shelf.as_uri())

    def fail(self, path, mode="rb", **options):
        if mode == "wb" and path.endswith("idf.npy"):
            raise OSError(28, "No space left on device")
        return open_(self, path, mode, **options)

    monkeypatch.setattr(LocalFileSystem, "open", fail)
    with pytest.raises(TextcatError, match="No space left"):
        push(other, shelf.as_uri(), force=True)
    with pytest.raises(TextcatError, match="is not a model"):
        pull(shelf.as_uri(), tmp_path / "pulled")


def test_a_damaged_model_is_not_pushed(model, tmp_path):
    (model / "bias.npy").write_bytes(b"")
    with pytest.raises(ModelError, match=r"damaged, bias.npy is not as it was written"):
        push(model, (tmp_path / "shelf").as_uri())
    assert not (tmp_path / "shelf").exists()


@needs_s3
def test_what_is_pulled_from_s3_is_what_was_pushed(s3, model, other, tmp_path):
    push(model, "s3://news/models/first")
    assert s3.get("models/first/bias.npy") == (model / "bias.npy").read_bytes()
    assert contents(pull("s3://news/models/first", tmp_path / "pulled")) == contents(model)
    with pytest.raises(TextcatError, match="another model's files"):
        push(other, "s3://news/models/first")
    push(other, "s3://news/models/first", force=True)
    assert contents(pull("s3://news/models/first", tmp_path / "pulled", force=True)) == contents(other)


@needs_s3
def test_every_failure_of_s3_is_one_sentence(s3, model, run, monkeypatch, tmp_path):
    assert "s3://news/none is not a model" in run.refuses("pull", "s3://news/none")
    assert "There is no folder s3://absent/model" in run.refuses("push", model, "s3://absent/model")
    s3.is_gone = True
    assert "There is no connection to s3://news/model" in run.refuses("pull", "s3://news/model")


# --- hostile and damaged sources ---


def test_only_files_of_a_model_are_pulled(model, tmp_path):
    for name in ("pytorch_model.bin", "evil.py", "weights.pkl"):
        (model / name).write_bytes(b"cos\nsystem\n(S'touch /tmp/x'\ntR.")
    pulled = pull(model.as_uri(), tmp_path / "pulled")
    assert {*contents(pulled)} <= MODEL.files | {MANIFEST}


@pytest.mark.parametrize("name", ["../escaped.npy", "/etc/passwd", "sub/x.npy", "evil.py", "README.md", ".bashrc"])
def test_a_manifest_names_no_other_files_than_a_models(model, tmp_path, name):
    files = json.loads((model / MANIFEST).read_bytes())["files"]
    rewrite(model, files={**files, name: "0" * 64})
    with pytest.raises(ModelError, match="damaged"):
        pull(model.as_uri(), tmp_path / "in" / "pulled")
    assert not (tmp_path / "escaped.npy").exists()
    assert not (tmp_path / "in" / "pulled").exists()
    assert sibling_names(tmp_path / "in" / "pulled") == []


def test_a_file_of_a_wrong_sum_is_refused(model, tmp_path):
    data = (model / "bias.npy").read_bytes()
    (model / "bias.npy").write_bytes(data[:-1] + b"\x01")
    with pytest.raises(ModelError, match=r"damaged, bias.npy is not as its manifest says: tell its owner") as caught:
        pull(model.as_uri(), tmp_path / "pulled")
    assert ".part" not in str(caught.value)
    assert not (tmp_path / "pulled").exists()


def test_each_file_that_is_pulled_is_hashed_no_more_than_twice(model, tmp_path, monkeypatch):
    n_hashed, sha256 = 0, hashlib.sha256

    class Counting:
        def __init__(self, data=b"", **options):
            self._digest = sha256(**options)
            self.update(data)

        def update(self, data):
            nonlocal n_hashed
            n_hashed += len(data)
            self._digest.update(data)

        def hexdigest(self):
            return self._digest.hexdigest()

    monkeypatch.setattr(hashlib, "sha256", Counting)
    pulled = pull(model.as_uri(), tmp_path / "pulled")
    n_bytes = sum(map(len, contents(pulled).values()))
    assert n_bytes < n_hashed < 2.2 * n_bytes


def test_a_missing_file_another_format_and_an_empty_place_are_told(model, tmp_path):
    with pytest.raises(ModelError, match=r"is not a model: it has no manifest.json"):
        pull((tmp_path / "nothing").as_uri(), tmp_path / "pulled")
    (model / "bias.npy").unlink()
    with pytest.raises(ModelError, match=r"bias.npy is missing"):
        pull(model.as_uri(), tmp_path / "pulled")
    (model / MANIFEST).write_text('{"format": 99}')
    with pytest.raises(
        ModelError, match=f"^{model.as_uri()} was made by another version of textcat, .*format 99"
    ) as caught:
        pull(model.as_uri(), tmp_path / "pulled")
    assert ".part" not in str(caught.value)
    (model / MANIFEST).write_text("[" * 100_000)
    with pytest.raises(ModelError, match="damaged"):
        pull(model.as_uri(), tmp_path / "pulled")


def test_right_sums_of_files_that_do_not_fit_together_are_refused(model, tmp_path):
    import hashlib

    import numpy as np

    np.save(model / "bias.npy", np.zeros(3, np.float32))
    files = json.loads((model / MANIFEST).read_bytes())["files"]
    rewrite(model, files={**files, "bias.npy": hashlib.sha256((model / "bias.npy").read_bytes()).hexdigest()})
    with pytest.raises(ModelError, match="do not fit together"):
        pull(model.as_uri(), tmp_path / "pulled")
    assert not (tmp_path / "pulled").exists()


def test_the_learner_that_a_model_names_is_not_imported(model, tmp_path, monkeypatch):
    trap = tmp_path / "trap.py"
    trap.write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    recipe = json.loads((model / MANIFEST).read_bytes())["recipe"]
    rewrite(model, recipe={**recipe, "learner": {"name": "trap:Learner"}})
    pull(model.as_uri(), tmp_path / "pulled")
    assert "trap" not in sys.modules


def test_a_pickled_array_is_refused(model, tmp_path):
    import hashlib

    import numpy as np

    np.save(model / "bias.npy", np.array([{}], object), allow_pickle=True)
    files = json.loads((model / MANIFEST).read_bytes())["files"]
    rewrite(model, files={**files, "bias.npy": hashlib.sha256((model / "bias.npy").read_bytes()).hexdigest()})
    with pytest.raises(ModelError, match="damaged"):
        pull(model.as_uri(), tmp_path / "pulled")


def test_a_model_that_is_too_large_is_refused_before_it_is_copied(model, tmp_path):
    with pytest.raises(ModelError, match=r"more than the 1 MB allowed.*--max-size"):
        pull(model.as_uri(), tmp_path / "pulled", max_bytes=10**6)
    assert not (tmp_path / "pulled").exists()


def test_a_file_that_grows_beyond_its_size_is_cut_off(model, tmp_path, monkeypatch):
    monkeypatch.setattr(copies.Folder, "size", lambda self, name: 10)
    with pytest.raises(ModelError, match="larger than its 10 bytes"):
        pull(model.as_uri(), tmp_path / "pulled")


def test_files_whose_size_is_not_told_are_bounded_together(model, tmp_path, monkeypatch):
    monkeypatch.setattr(copies.Folder, "size", lambda self, name: None if name == CARD else -1)
    total = sum(map(len, contents(model).values()))
    with pytest.raises(ModelError, match="is larger than its"):
        pull(model.as_uri(), tmp_path / "pulled", max_bytes=total - 1)
    assert contents(pull(model.as_uri(), tmp_path / "pulled", max_bytes=total)) == contents(model)


def test_a_size_below_zero_counts_as_none(tmp_path):
    class System:
        def info(self, path):
            return {"type": "file", "size": -(10**12)}  # else, two sizes could make up for each other

    assert Folder("there", System(), "root").size("bias.npy") == -1


def test_a_card_of_no_cards_size_is_left_out(model, tmp_path, caplog):
    (model / CARD).write_bytes(b"x" * (copies.MOST_CARD_BYTES + 1))
    pulled = pull(model.as_uri(), tmp_path / "pulled")
    assert not (pulled / CARD).exists()
    assert "left out" in caplog.text


# --- whole or not at all ---


def test_an_existing_model_stays_unless_the_pull_is_forced(model, other, tmp_path):
    with pytest.raises(TextcatError, match="exists: replace it with --force"):
        pull(model.as_uri(), other)
    before = contents(other)
    (model / "bias.npy").write_bytes(b"")
    with pytest.raises(ModelError):
        pull(model.as_uri(), other, force=True)
    assert contents(other) == before
    with pytest.raises(TextcatError, match="not a model"):
        pull(model.as_uri(), tmp_path, force=True)  # a folder of other files


@needs_hub
def test_a_pull_that_is_cut_leaves_nothing_and_the_next_one_is_whole(hub, model, tmp_path):
    hub.commit("ann/news", contents(model))
    hub.cut = {"weights.npy": 1000}
    target = tmp_path / "in" / "pulled"
    with pytest.raises(TextcatError):
        pull(OURS, target)
    assert not target.exists()
    assert sibling_names(target) == []
    hub.cut = {}
    assert contents(pull(OURS, target)) == contents(model)


@pytest.mark.long
def test_a_pull_that_is_killed_leaves_no_model_and_the_next_one_removes_its_rest(model, tmp_path):
    program = (
        "import sys, time; from textcat.model import storage; from textcat.sharing import copies\n"
        "storage.load = lambda *_, **__: (print('there', flush=True), time.sleep(60))\n"
        "copies.pull(sys.argv[1], sys.argv[2])"
    )
    target = tmp_path / "in" / "pulled"
    command = [sys.executable, "-c", program, model.as_uri(), str(target)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"there\n"
        process.send_signal(signal.SIGKILL)
    assert not target.exists()
    assert len(sibling_names(target)) == 1
    assert contents(pull(model.as_uri(), target)) == contents(model)
    assert sibling_names(target) == []


# --- sentences ---


@needs_hub
def test_every_failure_of_the_hub_is_one_sentence(hub, model, run, monkeypatch):
    assert "There is no repository or revision hf://no/where" in run.refuses("pull", "no/where")
    hub.commit("ann/empty", {"config.json": b"{}"})
    assert run.refuses("pull", "hf://ann/empty").startswith("hf://ann/empty is not a model: it has no manifest.json.")
    assert "There is no repository or revision hf://ann/empty@v9" in run.refuses("pull", "ann/empty@v9")
    hub.readers = {TOKEN}
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    assert "HF_TOKEN" in run.refuses("pull", "ann/empty")
    hub.readers = None
    assert "HF_TOKEN" in run.refuses("push", model, "ann/empty")
    hub.end()
    assert "There is no connection to hf://ann/empty" in run.refuses("pull", "ann/empty")


def test_without_the_extra_the_remedy_is_its_installation(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert run.refuses("pull", "ann/news").endswith("pip install 'textcat-margin[hub]'.")


@pytest.mark.parametrize(
    "source", ["news", "a/b/c", "hf://datasets/ann/news", "../x/y", "ann/..", "/tmp/model", "hf://"]
)
def test_a_text_that_names_no_place_is_told(run, source):
    assert "names no place" in run.refuses("pull", source)


def test_a_path_that_looks_like_a_repository_is_refused(run, model, tmp_path):
    (tmp_path / "models").mkdir()
    shutil.copytree(model, tmp_path / "models" / "news")
    assert "write hf://models/news for the repository" in run.refuses("pull", "models/news", "x")


def test_no_password_is_printed(run):
    said = run.refuses("pull", "http://ann:secret@127.0.0.1:9/model")
    assert "There is no connection" in said
    assert "secret" not in said


def test_a_kind_of_url_that_nobody_knows_and_one_without_its_package(run, monkeypatch):
    assert "Protocol not known" in run.refuses("pull", "blub://x/y")
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    assert "needs another package" in run.refuses("pull", "gs://bucket/model")


def test_a_place_where_a_model_is_expected_leads_to_pull(run):
    assert "textcat pull" in run.refuses("tag", OURS)


# --- the commands ---


def test_the_commands_name_the_place_the_size_and_what_the_model_keeps(run, model, tmp_path):
    run("push", model, "memory://shelf/printed")
    n, megabytes = len(contents(model)), sum(map(len, contents(model).values())) / 1e6
    first, second = run.out.splitlines()
    assert first == f"Pushed: memory://shelf/printed ({n} files, {megabytes:,.1f} MB)"
    assert "titles" in second
    run("pull", "memory://shelf/printed")
    assert run.out == f"Model: models/printed ({n} files, {megabytes:,.1f} MB)\n"
    assert contents(tmp_path / "models" / "printed") == contents(model)


def test_what_a_model_keeps_of_its_documents_is_told(model, tmp_path):
    assert "titles" in kept_documents(model)
    corpus = textcat.open_corpus("newswire")
    tagger = textcat.train(corpus, textcat.read_recipe("paum"), keep_support="none")
    tagger.facts.origin.clear()
    assert kept_documents(textcat.save(tagger, tmp_path / "bare")) == ""
    rewrite(model, origin={"name_or_path": "/home/ann/letters.jsonl"})
    assert "/home/ann/letters.jsonl" in kept_documents(model)
    updatable = textcat.train(corpus, textcat.read_recipe("paum"), updatable=True)
    said = kept_documents(textcat.save(updatable, tmp_path / "updatable"))
    assert "words of all its documents (--updatable)" in said
    assert "titles or texts" in said


SECRET = "root:x:0:0"


@pytest.fixture
def secret(tmp_path):
    """A file that nobody else may read."""
    path = tmp_path / "secret"
    path.write_text(f"{SECRET}:root:/root:/bin/bash\n")
    return path


def texts_below(folder):
    return [path.read_bytes().decode("latin-1") for path in folder.rglob("*") if path.is_file()]


@pytest.mark.skipif(os.name == "nt", reason="system: links and pipes")
@pytest.mark.parametrize("kind", ["link", "link to a device", "link to nothing", "pipe", "folder"])
def test_a_card_that_is_no_file_is_not_pushed(model, tmp_path, secret, kind):
    make_no_file(model / "README.md", kind, secret)
    with pytest.raises(TextcatError, match=r"README\.md cannot be read"):
        push(model, (tmp_path / "there").as_uri())
    assert not (tmp_path / "there").exists() or SECRET not in "".join(texts_below(tmp_path / "there"))


def make_no_file(path, kind, secret):
    path.unlink(missing_ok=True)
    match kind:
        case "link":
            path.symlink_to(secret)
        case "link to a device":
            path.symlink_to("/dev/zero")
        case "link to nothing":
            path.symlink_to("nothing")
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()


@pytest.mark.skipif(os.name == "nt", reason="system: links and pipes")
@pytest.mark.parametrize("kind", ["link", "link to a device", "pipe"])
@pytest.mark.parametrize("name", ["README.md", "manifest.json", "vocabulary.json"])
def test_what_is_no_file_is_not_pulled(model, tmp_path, secret, kind, name):
    make_no_file(model / name, kind, secret)
    with pytest.raises(TextcatError, match=f"{name} of .* is a link, a pipe or a device"):
        pull(model.as_uri(), tmp_path / "pulled")
    assert not (tmp_path / "pulled").exists()
    assert not sibling_names(tmp_path / "pulled")


@pytest.mark.skipif(os.name == "nt", reason="system: links and pipes")
@pytest.mark.parametrize("name", ["README.md", "bias.npy", "manifest.json"])
def test_a_push_does_not_write_through_a_link(model, tmp_path, secret, name):
    (model / "README.md").write_text("# Mine\n")
    there = tmp_path / "there"
    there.mkdir()
    (there / name).symlink_to(secret)
    push(model, there.as_uri(), force=True)
    assert SECRET in secret.read_text()
    assert contents(there) == contents(model)
    assert not (there / name).is_symlink()


@pytest.mark.skipif(os.name == "nt", reason="system: links and pipes")
@pytest.mark.parametrize("kind", ["link to a device", "pipe"])
def test_a_push_waits_for_no_pipe(model, tmp_path, secret, kind):
    there = tmp_path / "there"
    there.mkdir()
    make_no_file(there / "manifest.json", kind, secret)
    with pytest.raises(TextcatError, match="is a link, a pipe or a device"):
        push(model, there.as_uri())
    push(model, there.as_uri(), force=True)
    assert contents(there) == contents(model)


def test_a_manifest_of_no_manifests_size_is_refused_before_it_is_read(model, tmp_path, monkeypatch):
    with open(model / "manifest.json", "ab") as file:
        file.truncate(120 << 20)
    monkeypatch.setattr(places.Folder, "opened", lambda folder, name: pytest.fail(f"{name} was opened"))
    with pytest.raises(ModelError, match=r"manifest\.json of .* is larger than its 67,108,864 bytes"):
        pull(model.as_uri(), tmp_path / "pulled")


@pytest.mark.skipif(os.name == "nt", reason="system: links")
def test_files_with_checksums_may_be_links_as_the_hubs_library_makes_them(model, tmp_path):
    blobs = tmp_path / "blobs"
    blobs.mkdir()
    for path in [*model.iterdir()]:
        path.rename(blobs / path.name)
        path.symlink_to(blobs / path.name)
    assert textcat.load(model).topics
