"""What rows consist of is chosen by held-out training documents, and is the same as if it had been asked for."""

import dataclasses

import numpy as np
import pytest

import textcat
from textcat.corpus.documents import Corpus, Document
from textcat.recipes.recipe import read_recipe
from textcat.training.examples import CountedCorpus
from textcat.training.row_choice import CHARACTERS, WORDS, choose_rows

ENDINGS = ["", "n", "arna", "ssa", "lle", "ista", "ksi", "tta", "inen", "oiden", "eille", "mme"]


def corpus_of(with_endings: bool, n_topics: int = 60, n: int = 900) -> Corpus:
    """Topics have a stem each, which documents have with an ending of its own, or as it is."""
    random = np.random.default_rng(0)
    stems = ["".join(random.choice(list("bdfgklmnprstvaeiou"), 8)) for _ in range(n_topics)]
    words = ["".join(random.choice(list("bcdfghklmnprstvaeiou"), 7)) for _ in range(200)]
    documents = []
    for i in range(n):
        topic = int(random.integers(n_topics))
        ending = "".join(random.choice(ENDINGS, 3)) if with_endings else ""
        text = " ".join([*random.choice(words, 3), stems[topic] + ending])
        documents.append(Document(str(i), {"body": text}, (stems[topic],)))
    return Corpus.from_documents("made", documents, "train")


@pytest.fixture(scope="module")
def recipe():
    return read_recipe("many-topics").with_settings(["topics.shortlist=20", "topics.description_copies=0"])


@pytest.mark.parametrize(("with_endings", "expected"), [(True, CHARACTERS), (False, WORDS)])
def test_ngrams_of_characters_are_chosen_for_words_with_many_endings(recipe, with_endings, expected):
    counted = CountedCorpus(corpus_of(with_endings), recipe)
    choice = choose_rows(counted, recipe)
    assert choice.chosen == expected
    assert (choice.ndcg[CHARACTERS] >= 1.1 * choice.ndcg[WORDS]) == (expected == CHARACTERS)
    assert choice.recipe.features.chars == (4 if expected == CHARACTERS else 0)
    assert not choice.recipe.topics.chooses_chars


def test_a_chosen_tagger_is_the_one_that_the_same_settings_give(recipe, tmp_path):
    corpus = corpus_of(with_endings=True)
    chosen = textcat.train(corpus, recipe)
    settings = ["features.chars=4", "features.char_weight=0.7", "features.char_max_df=0.01"]
    asked_for = textcat.train(corpus, recipe.with_settings(settings))
    assert chosen.facts.choices["rows"]["chosen"] == CHARACTERS
    assert not asked_for.facts.choices
    assert chosen.facts.recipe == asked_for.facts.recipe
    texts = [document.zones["body"] for document in corpus.train[:50]]
    np.testing.assert_array_equal(chosen.scores(texts), asked_for.scores(texts))
    textcat.save(chosen, tmp_path / "model")
    loaded = textcat.load(tmp_path / "model")
    assert loaded.facts.choices == chosen.facts.choices
    np.testing.assert_array_equal(loaded.scores(texts), chosen.scores(texts))


def test_an_updatable_tagger_keeps_the_counts_of_what_was_chosen(recipe, tmp_path):
    corpus = corpus_of(with_endings=True)
    textcat.save(textcat.train(corpus, recipe, updatable=True), tmp_path / "model")
    new = dataclasses.replace(corpus.train[0], id="new", zones=dict(corpus.train[0].zones))
    learnt = textcat.learn(tmp_path / "model", [new]).tagger
    again = Corpus.from_documents("made", [*corpus.train, new], "train")
    settings = ["features.chars=4", "features.char_weight=0.7", "features.char_max_df=0.01"]
    texts = [document.zones["body"] for document in corpus.train[:50]]
    expected = textcat.train(again, recipe.with_settings(settings)).scores(texts)
    np.testing.assert_array_equal(learnt.scores(texts), expected)


def test_setting_characters_turns_the_choice_off():
    recipe = read_recipe("many-topics")
    assert recipe.topics.chooses_chars
    assert not recipe.with_settings(["features.chars=0"]).topics.chooses_chars
    assert recipe.with_settings(["learner.tau_pos=10"]).topics.chooses_chars


def test_few_documents_are_taken_by_their_words(recipe):
    counted = CountedCorpus(corpus_of(with_endings=True, n_topics=5, n=100), recipe)
    choice = choose_rows(counted, recipe)
    assert (choice.chosen, choice.ndcg) == (WORDS, {})
