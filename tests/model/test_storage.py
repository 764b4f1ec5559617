"""A model folder gives back the tagger to the bit, is replaced whole, and tells damage in a sentence."""

import ctypes
import hashlib
import importlib
import inspect
import json
import os
import resource
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from manifests import rewrite

import textcat
from textcat.base.calibration import Calibration
from textcat.features.settings import FeatureSettings
from textcat.features.tfidf import TfIdf
from textcat.features.tokens import Tokens
from textcat.margin.learners import PAUM
from textcat.model import ModelError
from textcat.model.manifest import MODEL, read_manifest
from textcat.model.storage import check_target, load, save
from textcat.teaching.pool import build_pool, open_pool
from textcat.training.update import learn
from textcat.trends.bins import N_BINS
from textcat.trends.held_out import HeldOut

FILES = [f"{name}.npy" for name in ("bias", "calibration", "held_out", "idf", "thresholds", "weights")]
FILES += [f"{name}_{part}.npy" for name in ("kept", "alpha") for part in ("indptr", "indices", "data")]
FILES = sorted([*FILES, "documents.json", "manifest.json", "tokenizer.json", "vocabulary.json"])


@pytest.fixture(scope="module")
def small():
    documents = [
        textcat.Document(str(k), {"body": text}, (topic,))
        for k, (text, topic) in enumerate([("corn and wheat", "grain"), ("gold and silver", "metal")])
    ]
    corpus = textcat.Corpus.from_documents("small", documents)
    return textcat.train(corpus, textcat.Recipe("small"))


@pytest.fixture
def model(small, tmp_path):
    n = len(small.topics)
    held_out = HeldOut(*np.ones((2, n, N_BINS)), np.full(n, 0.01))
    decisions = replace(small.decisions, calibration=Calibration(np.ones(n), np.zeros(n)), held_out=held_out)
    return save(replace(small, decisions=decisions), tmp_path / "model")


def test_a_model_without_probabilities_is_saved_and_loaded(small, tmp_path):
    folder = save(small, tmp_path / "model")
    assert not (folder / "calibration.npy").exists()
    assert load(folder).decisions.calibration is None


def test_a_loaded_tagger_gives_the_probabilities_of_the_saved_one(tagger, tmp_path):
    loaded = load(save(tagger, tmp_path / "model"))
    text = "Wheat exports rose to 12 mln tonnes"
    assert loaded.tag([text]) == tagger.tag([text])
    assert all(0 < tag.probability <= 1 for tag in loaded.tag([text])[0])


def sha256_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


# --- what is written is what is read ---------------------------------------------------------------------------------


def test_a_loaded_tagger_scores_to_the_bit_as_the_saved_one(corpus, tagger, tmp_path):
    again = load(save(tagger, tmp_path / "model"))
    np.testing.assert_array_equal(again.scores(corpus.test), tagger.scores(corpus.test), strict=True)
    assert again.tag(corpus.test) == tagger.tag(corpus.test)
    assert textcat.evaluate(again, corpus) == textcat.evaluate(tagger, corpus)


@pytest.mark.parametrize(
    "features",
    [
        {"zone_terms": True, "ngrams": 2, "chars": 4},
        {"zone_terms": ["title"], "weighting": "bm25", "idf": "smooth"},
        {"ngrams": 3, "ngram_min_df": 1},
        {"dtype": "float64"},
        {"zones": {"title": 2.5}, "max_features": 100},
    ],
)
def test_every_kind_of_features_comes_back(part, features, tmp_path):
    tagger = textcat.train(part, textcat.Recipe("other", {"lowercase": False}, features))
    again = load(save(tagger, tmp_path / "model"))
    np.testing.assert_array_equal(again.scores(part.test), tagger.scores(part.test), strict=True)


def test_the_evaluation_that_training_ended_with_is_kept_without_its_scores(corpus, tagger, tmp_path):
    measured = replace(tagger, evaluation=textcat.evaluate(tagger, corpus))
    again = load(save(measured, tmp_path / "model"))
    assert again.evaluation == measured.evaluation
    assert again.evaluation.scored is None
    rewrite(tmp_path / "model", evaluation={"topics": []})
    with pytest.raises(ModelError, match="is damaged"):
        load(tmp_path / "model")


def test_the_evaluation_of_many_topics_is_kept_without_its_documents(corpus, tagger, tmp_path, monkeypatch):
    monkeypatch.setattr("textcat.model.measure.MANY_TOPICS", len(tagger.topics))
    measured = replace(tagger, evaluation=textcat.evaluate(tagger, corpus))
    again = load(save(measured, tmp_path / "model"))
    assert again.evaluation.overall is not None
    assert again.evaluation == measured.evaluation
    assert again.evaluation.values is None
    rewrite(tmp_path / "model", evaluation={**measured.evaluation.as_dict(), "overall": {}})
    with pytest.raises(ModelError, match="is damaged"):
        load(tmp_path / "model")


def test_arrays_are_mapped_into_memory(model):
    again = load(model)
    for array in (again.scorer.weights, again.scorer.bias, again.decisions.thresholds):
        assert isinstance(array, np.memmap)
        assert not array.flags.writeable


def test_the_manifest_says_what_the_model_is(tagger, tmp_path):
    manifest = read_manifest(save(tagger, tmp_path / "model"))
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == FILES
    assert sorted(manifest.files) == [name for name in FILES if name != "manifest.json"]
    assert manifest.versions["textcat"] == textcat.__version__
    assert {"spacy", "numpy", "scipy", "scikit-learn"} <= manifest.versions.keys()
    assert manifest.recipe == textcat.read_recipe("paum").complete()
    assert manifest.topics == list(tagger.topics)
    assert (manifest.corpus, manifest.train_documents) == ("newswire", 721)
    assert manifest.train_sizes == tagger.facts.train_sizes.tolist()
    for fact in ("tau_pos", "epochs", "updates", "support", "stopped"):
        assert len(manifest.facts[fact]) == len(tagger.topics)


def test_a_model_keeps_the_first_and_the_last_date_of_its_training(small, tmp_path):
    assert "train_dates" not in (save(small, tmp_path / "without") / "manifest.json").read_text()
    documents = [
        textcat.Document("1", {"body": "corn and wheat"}, ("grain",), "2024-05-02T01:00:00+02:00"),
        textcat.Document("2", {"body": "gold and silver"}, ("metal",), "2024-05-01T23:30:00Z"),
        textcat.Document("3", {"body": "gold"}, ("metal",), "in spring"),
    ]
    corpus = textcat.Corpus.from_documents("dated", documents)
    tagger = textcat.train(corpus, textcat.Recipe("small"), updatable=True)
    model = save(tagger, tmp_path / "model")
    dates = ["2024-05-02T01:00:00+02:00", "2024-05-01T23:30:00Z"]
    assert read_manifest(model).train_dates == dates
    assert load(model).facts.train_dates == tuple(dates)
    newer = textcat.Document("4", {"body": "silver"}, ("metal",), "2025-01-01")
    learn(model, textcat.Corpus.from_documents("newer", [newer]), out=tmp_path / "learnt")
    assert read_manifest(tmp_path / "learnt").train_dates == [dates[0], "2025-01-01"]


def test_the_same_seed_gives_the_same_files_with_one_job_or_two(corpus, tmp_path):
    recipe = textcat.read_recipe("paum").changed(seed=7)
    one, two = (save(textcat.train(corpus, recipe, n_jobs=n), tmp_path / str(n)) for n in (1, 2))
    for name in FILES:
        assert (one / name).read_bytes() == (two / name).read_bytes(), name


# --- the recipe, of which every field is stored -----------------------------------------------------------------------

OTHER_DEFAULTS = {
    Tokens: {"lowercase": False, "alphanumeric": True, "remove_stop_words": False, "singularize": True},
    TfIdf: {"zones": {"title": 9.0}, "ngrams": 2, "chars": 3, "weighting": "bm25", "idf": "smooth", "k1": 2.0},
    FeatureSettings: {"ngrams": 3, "chars": 2, "weighting": "bm25", "min_df": 7},
    PAUM: {"tau_neg": 1.0, "lambda_": 9.0, "eta": 2.0},
    type(textcat.Recipe("").tags): {"strategy": "single"},
}


@pytest.fixture
def other_defaults(monkeypatch):
    """The defaults of a later version."""
    for cls, defaults in OTHER_DEFAULTS.items():
        function, names = cls.__init__, list(inspect.signature(cls).parameters)
        if positional := function.__defaults__:
            first = len(names) - len(positional) - len(function.__kwdefaults__ or {})
            values = [defaults.get(name, value) for name, value in zip(names[first:], positional, strict=False)]
            monkeypatch.setattr(function, "__defaults__", tuple(values))
        if keywords := function.__kwdefaults__:
            new = {name: value for name, value in defaults.items() if name in keywords}
            monkeypatch.setattr(function, "__kwdefaults__", {**keywords, **new})
        assert {name: inspect.signature(cls).parameters[name].default for name in defaults} == defaults


def tags_of(folder, corpus):
    return json.dumps(load(folder).tag(corpus.test))


@pytest.mark.parametrize("name", ["paum", "chars"])
def test_a_model_reads_texts_by_its_own_settings_whatever_the_defaults_become(part, name, tmp_path, request):
    folder = save(textcat.train(part, textcat.read_recipe(name), updatable=True), tmp_path / "model")
    before = tags_of(folder, part)
    request.getfixturevalue("other_defaults")
    assert tags_of(folder, part) == before
    again = learn(folder, [part.train[0]], out=tmp_path / "learnt")
    assert read_manifest(again.folder).recipe == read_manifest(folder).recipe


def test_a_pool_reads_texts_by_its_own_settings_whatever_the_defaults_become(corpus, tmp_path, request):
    texts = [document.zones["body"] for document in corpus.test]
    pool = build_pool(corpus, tmp_path / "pool", recipe=textcat.Recipe("mine"))
    before = pool.features.transform(texts)
    request.getfixturevalue("other_defaults")
    assert (open_pool(tmp_path / "pool").features.transform(texts) != before).nnz == 0


# --- the tables of the tokenizer -------------------------------------------------------------------------------------

SCORES = """
from textcat.lean_imports import keep_imports_lean
keep_imports_lean()  # as the command does: it saves a second
import json, sys
import textcat
if sys.argv[2] == "without spaCy":
    sys.modules["spacy"] = None  # importing it raises
print(json.dumps(textcat.load(sys.argv[1]).scores(sys.argv[3:]).tolist()), "spacy" in sys.modules)
"""
TEXTS = ["Gold and silver prices rose (to $350.25), a dealer said.", "The U.S. won't sell long-term corn and wheat,"]
TEXTS += ["Wheat... façade http://example.org/grain (D-Mont.), x :) )"]


def scores_elsewhere(folder, how, *texts):
    """Returns the scores that another process gives, without tables in the cache, and whether it has imported spaCy."""
    command = [sys.executable, "-c", SCORES, str(folder), how, *texts]
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "no folder")}
    process = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    *scores, imported = process.stdout.split()
    return np.array(json.loads("".join(scores)), np.float32), imported == "True"


def test_a_model_scores_texts_without_spacy(tagger, tmp_path):
    scores, _ = scores_elsewhere(save(tagger, tmp_path / "model"), "without spaCy", *TEXTS)
    np.testing.assert_array_equal(scores, tagger.scores(TEXTS), strict=True)


def change_tables(model, change):
    """Change the tables of a model, or with None remove them, as if it had been written so."""
    files, path = read_manifest(model).files, model / "tokenizer.json"
    del files[path.name]
    if change is None:
        path.unlink()
    else:
        path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
        files[path.name] = sha256_of(path)
    rewrite(model, files=files)


def test_spacy_is_asked_if_a_model_has_no_tables_of_the_installed_one(tagger, tmp_path):
    folder = save(tagger, tmp_path / "model")
    change_tables(folder, {"spacy": "2.0", "stop_words": ["gold", "wheat"]})
    scores, imported = scores_elsewhere(folder, "with spaCy", *TEXTS)
    np.testing.assert_array_equal(scores, tagger.scores(TEXTS), strict=True)
    assert imported
    change_tables(folder, None)
    np.testing.assert_array_equal(load(folder).scores(TEXTS), tagger.scores(TEXTS), strict=True)


# --- damage ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("place", [0.0, 0.3, 0.6, 1.0])
def test_a_changed_byte_is_noticed(model, name, place):
    path = model / name
    content = bytearray(path.read_bytes())
    at = round(place * (len(content) - 1))
    content[at] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"damaged"):
        load(model)


def test_a_letter_changed_in_the_manifest_is_noticed(model):
    path = model / "manifest.json"
    path.write_text(path.read_text().replace('"grain"', '"brain"'))
    with pytest.raises(ModelError, match=r"manifest\.json is damaged"):
        load(model)


def test_a_manifest_that_was_formatted_anew_is_noticed_as_its_sha256_is_the_id(model):
    path = model / "manifest.json"
    assert read_manifest(model).sha256 == sha256_of(path)
    assert read_manifest(model).id == sha256_of(path)[:12]
    path.write_text(path.read_text().replace("\n", "\r\n"), newline="")
    with pytest.raises(ModelError, match=r"manifest\.json is damaged"):
        load(model)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_noticed(model, name):
    (model / name).unlink()
    with pytest.raises(ModelError, match=f"(no|damaged,) {name}"):
        load(model)


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "null", "{}", "[" * 100_000, '{"format": "1"}', '{"format": true}', "\xff"]
)
def test_what_is_no_manifest_is_told_in_a_sentence(model, content):
    (model / "manifest.json").write_text(content, encoding="latin-1")
    with pytest.raises(ModelError, match=r"manifest\.json is damaged"):
        load(model)


def test_a_truncated_manifest_is_told_in_a_sentence(model):
    path = model / "manifest.json"
    content = path.read_bytes()
    for length in range(0, len(content), 97):
        path.write_bytes(content[:length])
        with pytest.raises(ModelError, match=r"manifest\.json is damaged"):
            read_manifest(model)


RECIPE = textcat.Recipe("").complete().as_dict()


@pytest.mark.parametrize(
    "entries",
    [
        {"topics": "grain"},
        {"topics": ["grain"]},
        {"train_sizes": ["many", "few"]},
        {"train_documents": None},
        {"facts": []},
        {"features": {}},
        {"recipe": []},
        {"recipe": {"learner": {}, "unknown": {}}},
        {"recipe": {"features": {"unknown": 1}}},
        *({"recipe": {**RECIPE, **change}} for change in ({"title": 5}, {"title": None}, {"tags": []}, {"more": {}})),
        *({"recipe": {**RECIPE, **change}} for change in ({"learner": {"name": 5}}, {"many": {}}, {"name": 5})),
        *({"train_dates": dates} for dates in ("2024", ["2024"], ["2024", 2025])),
        *({"train_documents": n} for n in (True, 0, -1)),
        {"names_language": 5},
        {"choices": []},
        {"evaluation": []},
        {"versions": {"textcat": 5}},
        {"unknown": 5},
        {"files": {}},
        {"files": {"../model/weights.npy": "0"}},
    ],
)
@pytest.mark.parametrize("read", [load, read_manifest])
def test_a_manifest_that_makes_no_sense_is_told_in_a_sentence(model, entries, read):
    rewrite(model, **entries)
    with pytest.raises(ModelError, match=r"manifest\.json is damaged, it is not as it was written"):
        read(model)


def test_a_file_name_cannot_lead_out_of_the_folder(model):
    secret = model.parent / "secret.npy"
    np.save(secret, np.zeros(1))
    files = read_manifest(model).files
    rewrite(model, files={**files, "../secret.npy": sha256_of(secret)})
    with pytest.raises(ModelError, match=r"is damaged"):
        load(model)


def test_files_that_do_not_fit_together_are_noticed(model):
    np.save(model / "bias.npy", np.zeros(5, np.float32))
    files = read_manifest(model).files
    rewrite(model, files={**files, "bias.npy": sha256_of(model / "bias.npy")})
    with pytest.raises(ModelError, match=r"do not fit together"):
        load(model)


def test_pickled_objects_are_never_loaded(model):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(model / "sprung"),)

    np.save(model / "bias.npy", np.array([Trap(), Trap()], object), allow_pickle=True)
    files = read_manifest(model).files
    rewrite(model, files={**files, "bias.npy": sha256_of(model / "bias.npy")})
    with pytest.raises(ModelError, match=r"is damaged"):
        load(model)
    assert not (model / "sprung").exists()


@pytest.mark.parametrize("version", [-1, 0, 1, MODEL.version - 1, MODEL.version + 1, 10**30])
@pytest.mark.parametrize("read", [load, read_manifest, lambda model: learn(model, [])])
def test_a_model_of_another_format_is_refused_before_anything_else_of_it_is_read(model, version, read):
    rewrite(model, format=version, files={"something": "else"}, recipe={"name": "of another time"})
    with pytest.raises(ModelError) as refusal:
        read(model)
    assert str(refusal.value) == (
        f"{model} was made by another version of textcat, with model format {version} instead of {MODEL.version}: "
        "train the model again."
    )


def test_other_files_beside_a_model_do_not_matter_to_it(model, small):
    (model / "notes.txt").write_text("the best one yet")
    np.testing.assert_array_equal(load(model).scorer.weights, small.scorer.weights)


# --- writing ---------------------------------------------------------------------------------------------------------


def test_a_model_takes_the_place_of_an_older_one(small, tagger, model):
    save(tagger, model)
    assert load(model).topics == tagger.topics
    assert [path.name for path in model.parent.iterdir()] == ["model"]


def test_a_damaged_model_can_be_replaced(small, model):
    (model / "manifest.json").write_text("")
    save(small, model)
    assert load(model).topics == small.topics


def test_without_the_exchange_of_folders_a_model_is_replaced_all_the_same(small, model, monkeypatch):
    monkeypatch.setattr("textcat.base.folders.exchange_folders", lambda *_: False)
    save(small, model)
    assert load(model).topics == small.topics
    assert [path.name for path in model.parent.iterdir()] == ["model"]


def test_the_folder_behind_a_link_is_replaced_and_the_link_stays(small, tagger, model, tmp_path):
    (tmp_path / "link").symlink_to("model")
    save(tagger, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert load(model).topics == tagger.topics
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "model"]


def test_a_model_is_not_replaced_if_something_else_would_be_lost(small, model):
    (model / "notes.txt").write_text("the best one yet")
    with pytest.raises(ModelError, match=r"notes\.txt would be lost"):
        save(small, model)


@pytest.mark.parametrize("content", [["notes.txt"], ["manifest.json"], ["manifest.json", "index.html"], ["below/x"]])
def test_a_folder_that_is_no_model_is_left_alone(small, tmp_path, content):
    for name in content:
        (tmp_path / "folder" / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / "folder" / name).write_text("{}")
    for refused in (check_target, lambda folder: save(small, folder)):
        with pytest.raises(ModelError, match=r"exists and is not a model: name another folder\."):
            refused(tmp_path / "folder")
    assert sum(path.is_file() for path in tmp_path.rglob("*")) == len(content)


def test_an_empty_folder_is_taken_but_not_the_current_one(small, tmp_path, monkeypatch):
    (tmp_path / "empty").mkdir()
    assert load(save(small, tmp_path / "empty")).topics == small.topics
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(ModelError, match=r"is the current folder"):
        save(small, ".")


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="system: root may write everywhere")
def test_a_folder_nobody_may_write_to_is_told_of(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(ModelError, match=r"Permission denied"):
        check_target(tmp_path / "model")


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="system: root may look everywhere")
@pytest.mark.parametrize("name", ["model", "new/model"])
def test_a_folder_that_nobody_may_look_into_is_told_of(small, tmp_path, name):
    (tmp_path / "locked").mkdir(0o000)
    for refused in (check_target, lambda folder: save(small, folder)):
        with pytest.raises(ModelError, match=r"Permission denied"):
            refused(tmp_path / "locked" / name)


@pytest.mark.skipif(sys.platform == "win32", reason="system: other limits")
@pytest.mark.parametrize("name", ["m" * 300, "m" * 300 + "/model"])
def test_a_folder_with_too_long_a_name_is_told_of(small, tmp_path, name):
    for refused in (check_target, lambda folder: save(small, folder)):
        with pytest.raises(ModelError, match=r"Cannot write the model to .* \(File name too long\): name another"):
            refused(tmp_path / name)
    assert not [*tmp_path.iterdir()]


def test_a_disk_that_fills_up_leaves_the_old_model_and_nothing_else(small, tagger, model):
    program = (
        "import resource, sys, textcat\n"
        "tagger = textcat.load(sys.argv[1])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
        "try: textcat.save(tagger, sys.argv[2])\n"
        "except textcat.TextcatError as error: print(error)\n"
    )
    large = save(tagger, model.with_name("large"))
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 20_000
    command = [sys.executable, "-c", program, large, model]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.startswith(f"Cannot write the model to {model}: ")
    assert load(model).topics == small.topics
    assert sorted(path.name for path in model.parent.iterdir()) == ["large", "model"]


def test_a_model_is_read_where_files_cannot_be_opened_through_their_folder(small, model, monkeypatch):
    monkeypatch.setattr(os, "supports_dir_fd", set())
    np.testing.assert_array_equal(load(model).scorer.weights, small.scorer.weights)
    (model / "bias.npy").unlink()
    with pytest.raises(ModelError, match=r"damaged, bias\.npy is missing"):
        load(model)


@pytest.mark.parametrize("step", ["textcat.base.folders.folder_identity", "textcat.base.folders.read_record"])
def test_a_model_that_is_replaced_while_it_is_read_is_read_whole(small, model, step, monkeypatch):
    """Either after its folder has been opened and before its files are, or between its manifest and its arrays."""
    scorer = replace(small.scorer, bias=small.scorer.bias + 1)
    twin = replace(small, scorer=scorer, facts=replace(small.facts, corpus="twin"))
    module, name = step.rsplit(".", 1)
    function = getattr(importlib.import_module(module), name)
    replacements = [twin]

    def replace_first(*arguments):
        if replacements:
            save(replacements.pop(), model)
        return function(*arguments)

    monkeypatch.setattr(step, replace_first)
    loaded = load(model)
    assert not replacements
    expected = {"small": small.scorer.bias, "twin": twin.scorer.bias}
    np.testing.assert_array_equal(loaded.scorer.bias, expected[loaded.facts.corpus])
    np.testing.assert_array_equal(loaded.scorer.weights, small.scorer.weights)
    assert load(model).facts.corpus == "twin"


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "renameat2"), reason="system: nothing can exchange two folders")
def test_while_a_model_is_replaced_others_read_the_old_or_the_new_one(small, model):
    scorer = replace(small.scorer, bias=small.scorer.bias + 1)
    twin = replace(small, scorer=scorer, facts=replace(small.facts, corpus="twin"))
    expected = {"small": small.scorer.bias, "twin": twin.scorer.bias}
    stop = threading.Event()

    def keep_replacing():
        while not stop.is_set():
            save(twin, model)
            save(small, model)

    writer = threading.Thread(target=keep_replacing)
    writer.start()
    try:
        for _ in range(40):
            loaded = load(model, prepare=False)
            np.testing.assert_array_equal(loaded.scorer.bias, expected[loaded.facts.corpus])
    finally:
        stop.set()
        writer.join()


@pytest.mark.parametrize("name", ["manifest.json", "bias.npy"])
@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_pipes_devices_and_folders_among_the_files_are_refused_at_once(tagger, tmp_path, name, kind):
    path = textcat.save(tagger, tmp_path / "model") / name
    path.unlink()
    make = {"pipe": os.mkfifo, "device": lambda path: path.symlink_to("/dev/zero"), "folder": Path.mkdir}
    make[kind](path)
    with pytest.raises(ModelError, match=r"regular file|directory"):
        textcat.load(tmp_path / "model")


@pytest.mark.parametrize("size", [51, 10**9, 2**70])
def test_a_shortlist_that_no_memory_holds_is_refused(corpus, trained, tmp_path, size):
    model = textcat.save(trained("many-topics"), tmp_path / "model")
    scorer = json.loads((model / "manifest.json").read_text())["scorer"]
    assert scorer["size"] == len(corpus.topics) == 50
    rewrite(model, scorer=scorer | {"size": size})
    with pytest.raises(ModelError, match="is damaged"):
        textcat.load(model)
