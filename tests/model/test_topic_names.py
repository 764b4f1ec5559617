"""Topics have names: a vocabulary's, which stay with the model, are shown next to the id, and stand for it."""

import dataclasses
import json
from pathlib import Path

import pytest
from cases import every
from commands import Run
from manifests import rewrite

import textcat
from textcat import Document
from textcat.base.errors import TextcatError
from textcat.cli.evaluate import topic_rows
from textcat.corpus.documents import Corpus, name_in_words
from textcat.model import ModelError
from textcat.model.topic_names import find_topic, topic_finder, topic_label
from textcat.teaching.pool import Pool
from textcat.teaching.session import Session

TEXTS = {"http://x/p1": "wheat corn tonnes exports", "http://x/p2": "gold ounces mine", "p3": "coffee beans roast"}
NAMES = {"http://x/p1": "Weizen", "http://x/p2": "Gold"}
VOCABULARY = "<http://x/p1>\tWeizen\n<http://x/p1>\tKorn\n<http://x/p2>\tGold\n<http://x/p9>\tTee\n"


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    records = [{"text": f"{text} {i}", "topics": [topic]} for topic, text in TEXTS.items() for i in range(6)]
    Path("train.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    Path("names.tsv").write_text(VOCABULARY)
    return Run(capsys, monkeypatch)


@pytest.fixture
def model(run):
    arguments = ("train.jsonl", "--recipe", "paum", "--vocabulary", "names.tsv", "--vocabulary-language", "de")
    assert run("train", *arguments, "--updatable", "--out", "model").code == 0, run.err
    return Path("model")


def test_a_topic_is_found_by_its_id_or_its_name():
    topics, names = ["a", "b", "c", "Apple"], {"a": "Apple", "b": "pear", "c": "Pear"}
    assert [find_topic(topics, names, wanted) for wanted in ("a", "pear", "Pear", "Apple")] == ["a", "b", "c", "Apple"]
    assert find_topic(["wheat", "Q1"], {"Q1": "Wheat"}, "WHEAT") == "Q1"
    assert topic_finder(["wheat", "Q1"], {"Q1": "Wheat"})("WHEAT") == "Q1"
    assert find_topic(["tea", "Cafe\u0301"], {}, "caf\u00e9") == "Cafe\u0301"
    with pytest.raises(TextcatError, match=r"2 topics have the name 'PEAR': give the id of one of them, b, c\."):
        find_topic(topics, names, "PEAR")
    with pytest.raises(TextcatError, match=r"no topic 'paer'\. Did you mean '[pP]ear'\? `textcat topics MODEL`"):
        find_topic(topics, names, "paer")


def test_of_a_uri_its_end_and_of_a_name_a_word_is_enough_for_a_hint():
    topics, names = (
        ["http://x/c/wheat", "http://x/c/gold", "http://x/c#tea"],
        {"http://x/c/gold": "Precious metal gold"},
    )
    for wanted, meant in {
        "wheet": topics[0],
        "gold": "Precious metal gold",
        "tae": topics[2],
        "Wheat": topics[0],
    }.items():
        with pytest.raises(TextcatError, match=f"Did you mean '{meant}'"):
            find_topic(topics, names, wanted)
    with pytest.raises(TextcatError, match=r"no topic 'zzzz'\. `textcat topics"):
        find_topic(topics, names, "zzzz")


def test_a_topic_is_shown_with_its_name_if_that_is_another_text():
    assert [topic_label(topic, {"p1": "Wheat", "tea": "tea"}) for topic in ("p1", "tea", "p2")] == [
        "Wheat (p1)",
        "tea",
        "p2",
    ]


def test_names_of_a_vocabulary_stay_with_the_model_and_with_what_it_learns(run, model):
    tagger = textcat.load(model)
    assert (tagger.topic_names, tagger.names_language) == (NAMES, "de")
    assert textcat.load(textcat.save(tagger, "copy")).topic_names == NAMES
    Path("more.jsonl").write_text(json.dumps({"id": "new", "text": "wheat rises", "topics": ["http://x/p1"]}) + "\n")
    assert run("learn", model, "more.jsonl").code == 0, run.err
    learnt = textcat.load(model)
    assert (learnt.topic_names, learnt.names_language) == (NAMES, "de")


def bytes_of(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def entries_of(folder):
    return json.loads((Path(folder) / "manifest.json").read_bytes())


def test_names_that_are_learnt_later_give_the_model_that_training_with_them_gives(run, model):
    train = ("train", "train.jsonl", "--recipe", "paum", "--set", "topics.description_copies=1", "--updatable")
    assert run(*train, "--out", "late").code == 0, run.err
    assert run(*train, "--vocabulary", "names.tsv", "--out", "early").code == 0, run.err
    assert not textcat.load("late").topic_names
    ran = run("learn", "late", "--vocabulary", "names.tsv")
    assert "Names: 2 of 3 topics, 2 of them new or changed." in ran.out
    early, late = bytes_of("early"), bytes_of("late")
    assert {name for name in early if early[name] != late[name]} == {"manifest.json"}
    differing = {name for name, value in entries_of("early").items() if value != entries_of("late")[name]}
    assert differing == {"origin", "sum"}  # the corpus was opened without names
    Path("more.jsonl").write_text(json.dumps({"id": "new", "text": "wheat rises", "topics": ["http://x/p1"]}) + "\n")
    for folder in ("early", "late"):
        assert run("learn", folder, "more.jsonl").code == 0, run.err
    assert textcat.load("late").topic_names == NAMES
    early, late = bytes_of("early"), bytes_of("late")
    assert {name for name in early if early[name] != late[name]} == {"manifest.json"}
    assert run("learn", "late", "--undo").code == 0


def test_names_replace_those_of_their_topics_and_no_others(run, model):
    Path("other.tsv").write_text("http://x/p1\tVehnä\np3\tKahvi\n", encoding="utf-8")
    result = textcat.learn(model, vocabulary="other.tsv", vocabulary_language="fi")
    tagger = textcat.load(model)
    assert tagger.topic_names == {"http://x/p1": "Vehnä", "http://x/p2": "Gold", "p3": "Kahvi"}
    assert tagger.names_language == ""  # they are of two
    assert result.named == ("http://x/p1", "p3")
    assert result.added == result.corrected == result.removed == ()
    assert textcat.learn(model, vocabulary="other.tsv").named == ()


def test_a_topic_that_is_new_gets_its_name_with_its_documents(run, model):
    records = [{"id": f"tea{i}", "text": f"tea leaves {i}", "topics": ["http://x/p9"]} for i in range(3)]
    records += [{"id": f"none{i}", "text": f"wheat leaves {i}", "topics": []} for i in range(3)]
    Path("tea.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    ran = run("learn", model, "tea.jsonl", "--vocabulary", "names.tsv", "--as", "json")
    assert json.loads(ran.out)["named"] == ["http://x/p9"]
    assert textcat.load(model).topic_names == {**NAMES, "http://x/p9": "Tee"}


def test_a_model_that_is_not_updatable_gets_names_and_stays_the_same_otherwise(run, model):
    assert run("train", "train.jsonl", "--recipe", "paum", "--out", "plain").code == 0, run.err
    before, entries = bytes_of("plain"), entries_of("plain")
    ran = run("learn", "plain", "--vocabulary", "names.tsv", "--vocabulary-language", "de")
    assert "Names: 2 of 3 topics (de), 2 of them new or changed." in ran.out
    assert "updatable" not in ran.err
    after = bytes_of("plain")
    assert {name for name in before if before[name] != after[name]} == {"manifest.json"}
    changed = {name for name, value in entries_of("plain").items() if value != entries.get(name)}
    assert changed == {"topic_names", "names_language", "sum"}
    assert json.loads(run("tag", "plain", stdin=b"wheat corn").out)["topics"][0]["name"] == "Weizen"
    assert [row.facts["name"] for row in textcat.load("plain").evaluation.topics] == ["Weizen", "Gold", ""]
    assert run("learn", "plain", "--vocabulary", "names.tsv", "--out", "named").code == 0
    assert run("learn", "plain", "--undo").code == 0, run.err
    assert bytes_of("plain") == before
    assert textcat.load("named").topic_names == NAMES
    assert "not updatable" in run.refuses("learn", "plain", "train.jsonl", "--vocabulary", "names.tsv")


def test_names_in_skos_are_read_in_the_language_of_the_models_names(run, model):
    pytest.importorskip("rdflib", reason="rdflib is not installed")
    skos = "@prefix s: <http://www.w3.org/2004/02/skos/core#> .\n"
    labels = ", ".join(f'"{name}"@{lang}' for lang, name in (("de", "Weizenkorn"), ("en", "Wheat"), ("sv", "Vete")))
    Path("names.ttl").write_text(f"{skos}<http://x/p1> a s:Concept ; s:prefLabel {labels} .\n")
    for language, name in (("", "Weizenkorn"), ("sv", "Vete")):
        options = ("--vocabulary-language", language) if language else ()
        assert run("learn", model, "--vocabulary", "names.ttl", *options).code == 0, run.err
        assert textcat.load(model).topic_names["http://x/p1"] == name


def test_names_that_cannot_be_learnt_are_told(run, model):
    before = bytes_of(model)
    Path("strange.tsv").write_text("http://y/1\tNix\n")
    assert "none of the corpus' topics" in run.refuses("learn", model, "--vocabulary", "strange.tsv")
    assert "cannot be read" in run.refuses("learn", model, "--vocabulary", "absent.tsv")
    assert "give both" in run.misuses("learn", model, "--vocabulary-language", "de")
    assert "names of topics" in run.refuses("learn", model)
    assert bytes_of(model) == before


def test_explanations_and_terms_take_the_name_or_the_id(run, model):
    tagger = textcat.load(model)
    by_id, by_name = (tagger.explain("wheat exports", topic) for topic in ("http://x/p1", "weizen"))
    assert by_id == by_name
    assert (by_id.topic, by_id.name) == ("http://x/p1", "Weizen")
    assert by_id.as_dict()["name"] == "Weizen"
    assert "name" not in tagger.explain("coffee", "p3").as_dict()
    assert "Weizen (http://x/p1): score" in by_id._repr_html_()
    assert tagger.terms("Gold", 3) == tagger.terms("http://x/p2", 3)
    assert "Weizen" in tagger._repr_html_()
    with pytest.raises(TextcatError, match=r"no topic 'Weitzen'\. Did you mean 'Weizen'"):
        tagger.terms("Weitzen")


def test_commands_show_the_name_next_to_the_id(run, model):
    printed = run("explain", model, "--topic", "Weizen", stdin=b"wheat exports").out
    assert printed.startswith("Weizen (http://x/p1) in ")
    assert "Did you mean 'Gold'?" in run.refuses("explain", model, "--topic", "Golt", stdin=b"wheat exports")
    assert run("explain", model, "--html", "page.html", stdin=b"wheat exports").code == 0
    assert "<h2>Weizen (http://x/p1)</h2>" in Path("page.html").read_text()
    rows = json.loads(run("topics", model, "--as", "json").out)
    assert {row["topic"]: row.get("name") for row in rows} == {**NAMES, "p3": None}
    table = run("topics", model).out
    assert "name" in table.splitlines()[0]
    assert "Weizen" in table
    terms = run("show", model, "--topic", "Weizen").out
    assert terms.startswith("Weizen (http://x/p1)")
    assert terms.splitlines()[-1].split() == run("show", model, "--topic", "http://x/p1").out.splitlines()[-1].split()
    assert "3, of which 2 have a name (de)" in run("show", model).out


def test_tags_have_names_in_every_format(run, model):
    tagged = run("tag", model, "--stdin", "--top", "1", stdin=b"wheat exports\ncoffee beans\n")
    first, second = (json.loads(line)["topics"][0] for line in tagged.out.splitlines())
    assert list(first) == ["topic", "name", "score", "probability"]
    assert (first["topic"], first["name"]) == ("http://x/p1", "Weizen")
    assert (second["topic"], "name" in second) == ("p3", False)
    head, row, _ = run("tag", model, "--stdin", "--top", "1", "--to", "csv", stdin=b"wheat\ncoffee\n").out.splitlines()
    assert dict(zip(head.split(","), row.replace('"', "").split(","), strict=True))["name"] == "Weizen"
    only = run("tag", model, "--stdin", "--topic", "Gold", "--all-topics", stdin=b"gold mine\n").out
    assert [tag["topic"] for tag in json.loads(only)["topics"]] == ["http://x/p2"]
    assert "Did you mean 'Gold'?" in run.refuses("tag", model, "--stdin", "--topic", "Golt", stdin=b"gold\n")


@pytest.mark.parametrize("names", [["a"], "abc", [1, 2, 3], ["\ud800", None, None], {"a": "b"}])
def test_damaged_names_are_told_of(model, names):
    rewrite(model, topic_names=names)
    with pytest.raises(ModelError, match="is damaged"):
        textcat.load(model)


def test_a_model_without_names_loads(model):
    manifest = json.loads((model / "manifest.json").read_text())
    assert manifest.pop("topic_names") == ["Weizen", "Gold", None]
    assert manifest.pop("names_language") == "de"
    (model / "manifest.json").write_text(json.dumps({**manifest}))
    rewrite(model)
    tagger = textcat.load(model)
    assert (tagger.topic_names, tagger.names_language) == ({}, "")


def test_an_evaluation_has_the_names_in_memory_and_after_loading(tmp_path):
    records = [
        {"text": word, "topics": [word], "split": split} for word in ("gold", "wheat") for split in ("train", "test")
    ]
    corpus = textcat.Corpus.from_records(records * 3)
    tagger = dataclasses.replace(textcat.train(corpus, "paum"), topic_names={"wheat": "Wheat and flour"})
    tagger = dataclasses.replace(tagger, evaluation=textcat.evaluate(tagger, corpus))
    textcat.save(tagger, tmp_path / "model")
    loaded = textcat.load(tmp_path / "model")
    for evaluation in (tagger.evaluation, loaded.evaluation):
        assert [row.facts["name"] for row in evaluation.topics] == ["", "Wheat and flour"]
        assert ["name" in row for row in topic_rows(evaluation)] == [True, True]
    assert loaded.evaluation == tagger.evaluation
    textcat.save(loaded, tmp_path / "again")
    assert (tmp_path / "again" / "manifest.json").read_bytes() == (tmp_path / "model" / "manifest.json").read_bytes()


# ---- URIs say nothing ----


@every(
    "name, words",
    [
        ("http://www.yso.fi/onto/yso/p1", ""),
        ("<https://d-nb.info/gnd/4>", ""),
        ("urn:nbn:de:4", ""),
        ("medtop:20000317", ""),
        ("rec.sport.hockey", "rec sport hockey"),
        ("trade: wheat", "trade wheat"),
        ("sports:football", "sports football"),
        ("c++", "c"),
        ("हिन्दी_साहित्य", "हिन्दी साहित्य"),
        ("Cafe\u0301s", "Cafés"),
        ("शि\u200dक्षा/கல்வி", "शिक्षा கல்வி"),
        ("Côte d’Ivoire — ½", "Côte d Ivoire ½"),
    ],
)
def test_a_uri_has_no_words(name, words):
    assert name_in_words(name) == words
    assert Corpus.from_documents("c", [Document("1", {"body": "x"}, (name,))]).described()[0].zones["title"] == words


def test_no_topic_is_found_by_the_words_of_its_uri(tmp_path):
    uris = [f"http://www.yso.fi/onto/yso/p{i}" for i in range(3)]
    words = ["wheat corn", "gold mine", "coffee beans"]
    documents = [Document(f"{i}", {"body": f"{words[i % 3]} {i}"}, (uris[i % 3],)) for i in range(30)]
    corpus = Corpus.from_documents("c", documents, names={uris[0]: ("wheat",), uris[1]: (uris[1],)})
    recipe = textcat.read_recipe("paum").with_settings(["topics.description_copies=3"])
    tagger = textcat.train(corpus, recipe)
    assert not {"yso", "onto", "fi", "http", "www"} & set(map(str, tagger.features.get_feature_names_out()))
    assert tagger.scores(["YSO onto http www fi"]).tolist() == tagger.scores([""]).tolist()


def test_a_taught_topic_gets_no_evidence_from_the_uri_that_it_is_called():
    pool = Pool.from_documents([Document("1", {"body": "onto yso onto yso"}), Document("2", {"body": "gold mine"})])
    session = Session.create(None, pool)
    session.add_topic("http://www.yso.fi/onto/yso/p1")
    assert session.view.scores("http://www.yso.fi/onto/yso/p1").tolist() == [0, 0]
