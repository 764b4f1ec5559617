"""Deprecated topics of a vocabulary: their documents count for what replaces them, and they are never learnt."""

import json
import logging

import pytest

import textcat
from textcat import Document
from textcat.corpus.catalogue import open_corpus
from textcat.corpus.vocabulary import Vocabulary

pytest.importorskip("rdflib", reason="rdflib is not installed")

HEAD = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix dct: <http://purl.org/dc/terms/> .
@prefix t: <http://e.org/> .
t:tin a skos:Concept ; skos:prefLabel "tin"@en, "tina"@fi .
t:gold a skos:Concept ; skos:prefLabel "gold"@en .
"""
OLD = """t:old a skos:Concept ; skos:prefLabel "white metal"@en ; owl:deprecated true ; dct:isReplacedBy t:tin .
"""


def id_of(name):
    return f"http://e.org/{name}"


def vocabulary(folder, text, name="v.ttl"):
    path = folder / name
    path.write_text(HEAD + text, encoding="utf-8")
    return path


def corpus_of(folder, *topics, **options):
    records = [{"id": str(i), "text": f"text {i}", "topics": list(of_one)} for i, of_one in enumerate(topics)]
    path = folder / "news.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return open_corpus(path, **options)


def replacements(folder, text):
    read = Vocabulary.read(vocabulary(folder, text)).replacements
    return {
        topic.removeprefix("http://e.org/"): [one.removeprefix("http://e.org/") for one in others]
        for topic, others in read.items()
    }


def test_documents_of_a_deprecated_topic_count_for_its_replacement_and_it_is_told(tmp_path, caplog):
    path = vocabulary(tmp_path, OLD + "t:lost a skos:Concept ; owl:deprecated true .\n")
    with caplog.at_level(logging.WARNING):
        corpus = corpus_of(
            tmp_path, [id_of("old")], [id_of("gold"), id_of("lost")], [id_of("tin"), id_of("old")], vocabulary=path
        )
    assert corpus.topics == (id_of("gold"), id_of("tin"))
    assert [document.topics for document in corpus.train] == [(id_of("tin"),), (id_of("gold"),), (id_of("tin"),)]
    replaced, left_out = (record.getMessage() for record in caplog.records)
    assert "1 deprecated topic of the documents replaced" in replaced
    assert f"{id_of('old')} by {id_of('tin')}" in replaced
    assert "left out" in left_out
    assert id_of("lost") in left_out


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("t:a dct:isReplacedBy t:b . t:b dct:isReplacedBy t:tin . t:b owl:deprecated true .", ["tin"]),
        ("t:a dct:isReplacedBy t:tin, t:gold .", ["gold", "tin"]),
        ("t:a dct:isReplacedBy t:b, t:gold . t:b dct:isReplacedBy t:gold, t:tin .", ["gold", "tin"]),
        ("t:a dct:isReplacedBy t:b . t:b dct:isReplacedBy t:a .", []),
        ("t:a dct:isReplacedBy t:b . t:b dct:isReplacedBy t:a, t:tin .", ["tin"]),
        ("t:a dct:isReplacedBy t:a . t:a owl:deprecated true .", []),
        ("t:a owl:deprecated 1 ; dct:isReplacedBy t:unknown .", []),
        ('t:a skos:historyNote "Deprecated in 2015, use http://e.org/tin."@en .', ["tin"]),
        ('t:a skos:changeNote "deprecated" .', []),
    ],
)
def test_chains_cycles_and_several_replacements_are_followed(tmp_path, text, expected):
    found = replacements(tmp_path, f"t:a a skos:Concept . t:b a skos:Concept . {text}\n")
    assert found["a"] == expected


@pytest.mark.parametrize(
    "text",
    [
        't:a a skos:Concept ; skos:prefLabel "a"@en ; owl:deprecated false .',
        't:a a skos:Concept ; skos:prefLabel "a"@en ; skos:historyNote "Was once not deprecated."@en .',
        't:a a skos:Concept ; skos:prefLabel "a"@en ; skos:scopeNote "Deprecated uses are elsewhere."@en .',
    ],
)
def test_a_topic_that_is_not_deprecated_stays(tmp_path, text):
    assert replacements(tmp_path, text + "\n") == {}
    assert id_of("a") in Vocabulary.read(tmp_path / "v.ttl").names


def test_topics_that_are_labels_are_replaced_by_labels_unless_another_topic_has_the_label(tmp_path):
    path = vocabulary(tmp_path, OLD + 't:o2 a skos:Concept ; skos:prefLabel "gold"@en ; dct:isReplacedBy t:tin .\n')
    corpus = corpus_of(tmp_path, ["white metal"], ["gold"], vocabulary=path)
    assert corpus.topics == ("gold", "tin")


def test_what_documents_were_judged_for_is_replaced_too():
    read = Vocabulary({"b": ("b",)}, replacements={"a": ("b",), "c": ()})
    document = Document("1", {"body": "x"}, ("a", "d"), labelled_for=("a", "c", "d"))
    (current,) = read.current([document])
    assert (current.topics, current.labelled_for) == (("b", "d"), ("b", "d"))


@pytest.fixture
def news(tmp_path):
    def documents(topic, word, first=0):
        return [
            {"id": f"{topic}{i}", "text": f"{word} {word}s number {i} rose", "topics": [id_of(topic)]}
            for i in range(first, first + 6)
        ]

    def written(name, *parts):
        path = tmp_path / name
        path.write_text("".join(json.dumps(record) + "\n" for part in parts for record in part))
        return path

    before = written("before.jsonl", documents("old", "metal"), documents("gold", "ounce"))
    return before, written("more.jsonl", documents("old", "alloy", 6)), vocabulary(tmp_path, OLD)


@pytest.mark.parametrize("is_named_before", [False, True])
def test_learning_with_a_vocabulary_replaces_as_training_anew_does(tmp_path, news, is_named_before):
    before, more, names = news
    recipe = textcat.read_recipe("paum").with_settings(["topics.description_copies=1"])
    corpus = open_corpus(before, vocabulary=names if is_named_before else None)
    textcat.save(textcat.train(corpus, recipe, updatable=True), tmp_path / "model")
    learnt = textcat.learn(tmp_path / "model", open_corpus(more).train, vocabulary=names).tagger
    together = tmp_path / "both.jsonl"
    together.write_text(before.read_text() + more.read_text())
    anew = textcat.train(open_corpus(together, vocabulary=names), recipe)
    assert learnt.topics == anew.topics == (id_of("gold"), id_of("tin"))
    assert learnt.topic_names == anew.topic_names
    assert learnt.facts.train_sizes.tolist() == [6, 12]
    assert (learnt.scorer.weights == anew.scorer.weights).all()


def test_later_documents_of_a_deprecated_topic_count_for_its_replacement_without_the_vocabulary(tmp_path, news):
    before, more, names = news
    corpus = open_corpus(before, vocabulary=names)
    textcat.save(textcat.train(corpus, textcat.read_recipe("paum"), updatable=True), tmp_path / "model")
    for _ in range(2):  # the model keeps the replacements
        learnt = textcat.learn(tmp_path / "model", open_corpus(more).train).tagger
        assert dict(zip(learnt.topics, learnt.facts.train_sizes.tolist(), strict=True)) == {
            id_of("gold"): 6,
            id_of("tin"): 12,
        }
    current = HEAD + OLD.replace("owl:deprecated true ; dct:isReplacedBy t:tin", 'skos:altLabel "old"@en')
    names.write_text(current)
    learnt = textcat.learn(tmp_path / "model", open_corpus(more).train, vocabulary=names).tagger
    assert id_of("old") in learnt.topics


def test_learning_finds_new_concepts_of_a_vocabulary_as_training_anew_does(tmp_path, news):
    _, _, names = news
    (tmp_path / "cards").mkdir()
    card = tmp_path / "cards" / "metals.toml"
    card.write_text('reader = "jsonl"\nfiles = ["before.jsonl"]\ntopics = "described"\nvocabulary = "v.ttl"\n')
    recipe = textcat.read_recipe("paum").with_settings(["topics.description_copies=2"])
    textcat.save(textcat.train(open_corpus(card, corpus_dir=tmp_path), recipe, updatable=True), tmp_path / "model")
    names.write_text(
        HEAD + OLD + 't:zinc a skos:Concept ; skos:prefLabel "zinc"@en ; skos:definition "A metal."@en .\n'
    )
    learnt = textcat.learn(tmp_path / "model", vocabulary=names).tagger
    anew = textcat.train(open_corpus(card, corpus_dir=tmp_path), recipe)
    assert learnt.topics == anew.topics == (id_of("gold"), id_of("tin"), id_of("zinc"))
    assert learnt.topic_names == anew.topic_names
    assert (learnt.scorer.weights == anew.scorer.weights).all()
    assert [tag.topic for tag in learnt.tag(["zinc"], top=1)[0]] == [id_of("zinc")]
