"""What is probably not meant is told before training."""

import warnings
from dataclasses import replace

import pytest
from cases import every

import textcat
from textcat import Corpus, Document, TextcatError
from textcat.training.checks import TrainingOptions, are_single, check_training, warn_of_corpus

PAUM = textcat.read_recipe("paum")
POTS = ["tin", "pot"] * 3


def warn_of_topics(topics):
    warn_of_corpus(Corpus("c", [], [], tuple(topics)), PAUM)


@every("topics", [["a;b", "b;c", "a;c"], ["x,y", "x, z", "y,z", "x"], ["a|b", "b|a"]])
def test_topics_that_look_like_lists_are_told_with_the_option(topics):
    with pytest.warns(UserWarning, match="--topics-separator"):
        warn_of_topics(topics)


@every(
    "topics",
    [["corn", "wheat"], ["a;b"], ["Art, Modern", "Art, Roman", "Law, Greek"], ["a;b", *map(str, range(20))], []],
)
def test_names_with_signs_in_them_are_not(topics):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_topics(topics)


def test_training_tells_it():
    records = [{"text": ["corn", "wheat", "gold"][i % 3], "topics": ["a;b", "b;c", "a;c"][i % 3]} for i in range(9)]
    with pytest.warns(UserWarning, match="3 of 3 topics have a ';', as 'a;b' has"):
        textcat.train(records, "paum")


@every("name", ["nan", "None", "N/A", "<NA>"])
def test_a_topic_called_like_a_missing_value_is_told(name):
    records = [{"text": "tin", "topics": ["tin"]}, {"text": "gold", "topics": [name]}] * 3
    with pytest.warns(
        UserWarning, match=rf"A topic is called {name!r}, as programs write a .* these 3 documents empty"
    ):
        textcat.train(textcat.Corpus.from_records(records), "paum")


def test_a_topic_on_all_documents_is_told():
    records = [{"text": "tin ore", "topics": ["tin"]}, {"text": "tin pot", "topics": ["tin", "pot"]}] * 3
    with pytest.warns(
        UserWarning, match=r"The topic 'tin' is on all 6 training documents, so there is nothing to learn"
    ):
        textcat.train(textcat.Corpus.from_records(records), "paum")


def test_several_topics_on_all_documents_are_told():
    records = [{"text": "tin ore", "topics": ["tin", "ore"]}, {"text": "x", "topics": ["tin", "ore", "pot"]}] * 3
    with pytest.warns(UserWarning, match=r"2 topics, such as 'ore', are on all 6 .* nothing to learn about them"):
        textcat.train(textcat.Corpus.from_records(records), "paum")


@every(
    "labelled_for, everywhere, unknown",
    [
        (("anna",), ["2 topics, such as 'pot', are"], ["'anna', a topic that no"]),
        (("tim", "Ann"), ["2 topics, such as 'pot', are"], ["2 topics, such as 'Ann', that no"]),
        (("tun", "pot"), ["The topic 'tin' is"], ["'tun', a topic that no document has. Did you mean 'tin'?"]),
        ((), ["2 topics, such as 'pot', are"], []),
        (("tin",), ["The topic 'pot' is"], []),
        (("pot", "tin"), [], []),
        (("pot", "tin", "tun"), [], []),
        (None, [], []),
    ],
)
def test_topics_without_a_negative_example_and_names_that_are_no_topics_are_told(labelled_for, everywhere, unknown):
    train = [Document(str(i), {"body": topic}, (topic,), labelled_for=labelled_for) for i, topic in enumerate(POTS)]
    corpus = Corpus("c", train, [], ("pot", "tin"))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        warn_of_corpus(corpus, PAUM)
    sentences = [str(each.message) for each in told]
    for expected, sign in ((everywhere, "nothing to learn"), (unknown, "'labelled_for' has")):
        found = [sentence for sentence in sentences if sign in sentence]
        assert len(found) == len(expected)
        assert all(part in sentence for part, sentence in zip(expected, found, strict=True))
    assert are_single(corpus) is (not everywhere)


def test_topics_that_look_the_same_but_for_case_are_told():
    same = [["grain", "Grain"], ["caf\u00e9", "cafe\u0301"], ["STRASSE", "straße"], ["\u212b", "\u00c5", "x"]]
    for topics in (*same, ["wood", "wood\u200b"]):
        with pytest.warns(UserWarning, match=r"2 of \d topics differ from others in case, Unicode form or invisible"):
            warn_of_topics(topics)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_topics(["grain", "grains", "c1", "c2"])


def test_topics_that_say_no_are_told():
    for topics in (["yes", "no"], ["0", "1"], ["True", "False"], ["spam", "not spam"], ["Spam", "non-spam"], ["no"]):
        with pytest.warns(UserWarning, match="says that documents do not have a topic"):
            warn_of_topics(topics)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for topics in (["0", "1", "2"], ["da", "no", "sv"], ["positive", "negative"], ["spam", "notes"], ["yes"], []):
            warn_of_topics(topics)


def test_an_updatable_model_takes_no_two_documents_of_one_id():
    twice = [Document("same", {"body": "corn"}, ("a",)), Document("same", {"body": "rye"})]
    for train, test in ((twice, []), (twice[:1], twice[1:])):
        corpus = Corpus("c", train, test, ("a",))
        with pytest.raises(TextcatError, match="two documents of the id 'same'"):
            check_training(corpus, PAUM, TrainingOptions(updatable=True))
        assert check_training(corpus, PAUM) == "ids"


@pytest.mark.parametrize("changes", [{"topics": ("grain\ud800",)}, {"id": "0\ud800"}])
def test_names_that_cannot_be_saved_are_refused_before_training(changes):
    train = [Document(str(i), {"body": topic}, (topic,)) for i, topic in enumerate(POTS)]
    corpus = Corpus.from_documents("c", [replace(train[0], **changes), *train[1:]])
    with pytest.raises(TextcatError, match=r"\\ud800 has half of a surrogate pair"):
        textcat.train(corpus, "paum")


@pytest.mark.parametrize("keep_support", ["none", "ids", "texts"])
@pytest.mark.parametrize("updatable", [True, False])
def test_records_with_lone_surrogates_are_trained_on_and_saved(tmp_path, keep_support, updatable):
    records = [
        {"id": f"{topic} \ud800", "text": "\udfff tin", "title": "\ud800", "topics": f"{topic}\ud800"} for topic in "ab"
    ]
    tagger = textcat.train(records, "paum", keep_support=keep_support, updatable=updatable)
    loaded = textcat.load(textcat.save(tagger, tmp_path / "model"))
    assert loaded.topics == ("a\ufffd", "b\ufffd")
    if keep_support != "none":
        assert {*loaded.support.ids} <= {"a \ufffd", "b \ufffd"}


@every("n_repeats, warns", [(4, False), (14, False), (15, True), (30, True)])
def test_documents_that_repeat_others_are_told(n_repeats, warns):
    words = [" ".join(f"word{i * 20 + j}" for j in range(20)) for i in range(60)]
    train = [Document(f"d{i}", {"body": text}, ("a",) if i % 2 else ("b",)) for i, text in enumerate(words)]
    train += [Document(f"again {i}", train[i].zones, train[i].topics) for i in range(n_repeats)]
    corpus = Corpus("c", train, [], ("a", "b"))
    assert corpus.n_repeats == n_repeats
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        warn_of_corpus(corpus, PAUM)
    assert any("repeat earlier ones" in str(each.message) for each in told) is warns


@every("recipe", [None, "paum"])
@every("text", ["", " ", "\n"])
def test_documents_without_a_word_are_told_as_such(text, recipe):
    records = [{"text": text, "topics": [topic]} for topic in POTS]
    with pytest.raises(TextcatError, match="None of the 6 training documents has a word"):
        textcat.train(records, recipe)
