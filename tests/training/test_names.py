"""Topics that are only named are ranked by words, by vectors of words, and by what unlabelled documents add."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from cases import every

import textcat
from textcat.base.errors import TextcatError
from textcat.corpus.documents import Corpus, Document
from textcat.training import names as by_names
from textcat.training.names import names_corpus, train_by_names

GRAIN = "farmers harvested barley and corn", "the barley crop of farmers", "corn prices fell for farmers"
MUSIC = "an orchestra played for violin", "the violin and the cello sang", "trumpets and an orchestra"
TEXTS = [f"{text}, item {number}" for number in range(8) for text in (*GRAIN, *MUSIC)]
NAMES = {"grain": "Grain and wheat", "music": ""}


@pytest.fixture(scope="module")
def tagger():
    return train_by_names(NAMES, TEXTS)


def test_documents_need_no_word_of_a_name(tagger):
    scores = tagger.scores(["barley harvested by farmers", "a cello and trumpets"])
    assert scores.argmax(axis=1).tolist() == [0, 1]
    assert tagger.facts.train_sizes.sum() > 0
    assert tagger.evaluation is None


def test_topics_are_given_to_as_many_documents_as_they_are_the_best_topic_of(tagger):
    scores = tagger.scores(TEXTS)
    n_best = np.bincount(scores.argmax(axis=1), minlength=2)
    np.testing.assert_array_equal((scores > tagger.decisions.thresholds).sum(axis=0), n_best)
    assert n_best.tolist() == [24, 24]


def test_a_score_is_a_sum_over_words(tagger):
    explained = tagger.explain("wheat and a violin", "grain")
    contributions = [reason.contribution for reason in explained.reasons]
    assert explained.score == pytest.approx(sum(contributions) + explained.rest + explained.bias, abs=1e-5)


def test_the_result_depends_neither_on_jobs_nor_on_labels_nor_on_the_form_of_the_input(tagger, tmp_path):
    (tmp_path / "names.toml").write_text('grain = "Grain and wheat"\nmusic = ""\n', encoding="utf-8")
    labelled = [Document(str(i), {"body": text}, ("wrong",)) for i, text in enumerate(TEXTS)]
    with (tmp_path / "texts.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps({"text": text}) + "\n" for text in TEXTS)
    same = [
        train_by_names(NAMES, Corpus("labelled", labelled[:20], labelled[20:], ("wrong",)), n_jobs=2),
        train_by_names(tmp_path / "names.toml", tmp_path / "texts.jsonl"),
        train_by_names(NAMES, [{"text": text} for text in TEXTS]),
    ]
    for other in same:
        np.testing.assert_array_equal(other.scorer.weights, tagger.scorer.weights)


def test_texts_are_read_from_the_columns_that_are_named_and_only_from_these(tagger, tmp_path):
    records = [{"abstract": text, "body": "violin orchestra", "title": "violin"} for text in TEXTS]
    (tmp_path / "texts.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    for source in (records, str(tmp_path / "texts.jsonl")):
        named = train_by_names(NAMES, source, text="abstract")
        np.testing.assert_array_equal(named.scorer.weights, tagger.scorer.weights)
        np.testing.assert_array_equal(named.scores(records), tagger.scores(TEXTS))  # it remembers them
    with pytest.raises(TextcatError, match="has its texts already"):
        train_by_names(NAMES, Corpus("corpus", [Document("1", {"body": "corn"})], [], ()), text="abstract")


def test_more_topics_than_memory_holds_are_refused(monkeypatch):
    monkeypatch.setattr(by_names, "available_memory", lambda: 1_000_000)
    with pytest.raises(
        TextcatError, match=r"2 topics by [\d,]+ terms would take [\d,]+ MB of memory, .*: name fewer topics"
    ):
        train_by_names(NAMES, TEXTS)


def test_a_saved_tagger_gives_the_same_scores(tagger, tmp_path):
    textcat.save(tagger, tmp_path / "model")
    np.testing.assert_array_equal(textcat.load(tmp_path / "model").scores(TEXTS), tagger.scores(TEXTS))


def test_a_single_topic_ranks_by_its_name():
    tagger = train_by_names({"grain": ""}, TEXTS)
    scores = tagger.scores(["grain", "wheat and corn", "a violin"])[:, 0]
    assert scores[0] > scores[1] > scores[2]


@pytest.mark.parametrize("unknown", [["Zqxv"], ["abcxyz", "Zqxv"]])
def test_a_topic_nothing_is_known_of_is_told_gets_no_example_and_is_ranked_last(tagger, unknown):
    with pytest.warns(UserWarning, match=rf"{re.escape(repr(min(unknown)))}.* no example") as told:
        named = train_by_names({**NAMES, **dict.fromkeys(unknown, "")}, TEXTS)
    assert len(told) == 1
    known = [named.topics.index(topic) for topic in tagger.topics]
    others = np.setdiff1d(np.arange(len(named.topics)), known)
    np.testing.assert_allclose(named.scores(TEXTS)[:, known], tagger.scores(TEXTS), atol=0.01)
    assert not named.facts.train_sizes[others].any()
    scores = named.scores([*TEXTS, "neither of them", "farmers", "a violin"])
    assert (scores[:, others].max(axis=1) < scores[:, known].min(axis=1)).all()
    assert [[tag.topic for tag in tags] for tags in named.tag([f"of {name}" for name in unknown], top=1)] == [
        [name] for name in unknown
    ]


def test_texts_of_unknown_words_are_ranked_without_vectors():
    texts = ["zyx wvu", "zyx tsr", "qpo nml", "qpo kji"] * 5
    tagger = train_by_names({"zyx": "", "qpo": ""}, texts)
    assert not tagger.facts.choices["names"]["vectors"]
    assert tagger.scores(["wvu tsr", "nml"]).argmax(axis=1).tolist() == [1, 0]  # topics are sorted


def test_of_many_documents_some_are_drawn_evenly(monkeypatch):
    monkeypatch.setattr(by_names, "MOST", 10)
    drawn = names_corpus(NAMES, [f"text {number}" for number in range(1000)]).train
    numbers = [int(document.zones["body"].split()[1]) for document in drawn]
    assert len(numbers) == 10
    assert numbers[0] == 0
    assert np.ptp(np.diff(numbers)) <= 128  # a step of the thinning


def test_what_cannot_be_read_is_told_and_left_out(tmp_path, caplog):
    path = tmp_path / "texts.jsonl"
    path.write_text("\n".join([*(json.dumps({"text": text}) for text in TEXTS), "{damaged"]) + "\n", encoding="utf-8")
    assert len(names_corpus(NAMES, path).train) == len(TEXTS)
    assert "Left out, as unreadable: 1 document" in caplog.text
    assert "texts.jsonl" in caplog.text


@every(
    "names, texts, sentence",
    [
        ({}, TEXTS, "No topic is named"),
        (NAMES, [], "There is no unlabelled document"),
        ({"xyzzy": "", "plugh": ""}, TEXTS, "No document has a word of a topic's name"),
        ({f"topic {number}": "" for number in range(1000)}, TEXTS, "its shortlist is made of labelled documents"),
        ("absent.toml", TEXTS, "There is no file absent.toml of topics"),
    ],
)
def test_what_cannot_be_trained_on_is_refused(names, texts, sentence):
    with pytest.raises(TextcatError, match=sentence):
        train_by_names(names, texts)


def test_names_alone_find_the_topics_of_the_shipped_news():
    corpus = textcat.open_corpus("newswire")
    tagger = train_by_names(dict.fromkeys(corpus.topics, ""), corpus.train)
    assert textcat.evaluate(tagger, corpus).bands[0].measures["macro_average_precision"] > 0.5


@pytest.mark.parametrize(("changes", "char_min"), [([], 0), (["features.char_min=3"], 3)])
def test_short_ngrams_of_characters_are_left_out_unless_the_user_asks_for_them(changes, char_min):
    recipe = textcat.read_recipe("few-short-texts").with_settings(changes)
    tagger = train_by_names(NAMES, TEXTS, recipe)
    assert tagger.facts.recipe.features.char_min == char_min
    own = train_by_names(NAMES, TEXTS, replace(recipe, name="own"))
    assert own.facts.recipe.features.char_min == recipe.features.char_min


def test_a_topic_nothing_is_known_of_is_ranked_last_without_vectors_too():
    recipe = textcat.read_recipe("few-documents").with_settings("topics.vectors=none")
    with pytest.warns(UserWarning, match="'Zqxv'.* no example"):
        named = train_by_names({"grain": "wheat and corn", "Zqxv": ""}, TEXTS, recipe)
    scores = named.scores(TEXTS)
    assert (scores[:, named.topics.index("Zqxv")] < scores[:, named.topics.index("grain")]).all()
