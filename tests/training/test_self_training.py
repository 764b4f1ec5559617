"""Unlabelled documents are trained on where that is better on held-out labelled documents."""

from dataclasses import replace

import numpy as np
import pytest
from cases import every

import textcat
from textcat.base.errors import TextcatError
from textcat.base.folds import assign_folds
from textcat.corpus.documents import Corpus, Document
from textcat.evaluation.evaluation import MeasuredOn
from textcat.recipes.recipe import default_recipe
from textcat.training.names import surest
from textcat.training.self_training import LabelledAndUnlabelled, train_with_unlabelled

SETTINGS = ["topics.forecast=false", "topics.vectors=none", "features.chars=0", "learner.tau_pos=50"]
RECIPE = default_recipe().with_settings(SETTINGS)
# Of each topic 80, of which a text has four, so that labelled texts seldom share one.
WORDS = np.array(["".join(letters) for letters in np.random.default_rng(9).choice([*"bcdfghjklmnpqrstvwz"], (160, 7))])


def text(rng, topic):
    return " ".join(rng.choice(WORDS[topic::2], 4))


def documents(n, seed, topics=("grain", "music")):
    rng = np.random.default_rng(seed)
    return [Document(f"{seed}-{i}", {"body": text(rng, i % 2)}, (topics[i % 2],)) for i in range(n)]


WITH_ONE_LABELLED = Corpus.from_documents(
    "one", [replace(each, topics=("grain", "music") if i == 0 else ()) for i, each in enumerate(documents(12, 0))]
)


@pytest.fixture(scope="module")
def labelled():
    return Corpus.from_documents("labelled", documents(24, 0))


@pytest.fixture(scope="module")
def unlabelled():
    return [replace(document, topics=()) for document in documents(600, 1)]


@pytest.fixture(scope="module")
def recipe(labelled):
    return RECIPE.for_corpus(labelled)[0]


@pytest.fixture(scope="module")
def tagger(labelled, unlabelled, recipe):
    return train_with_unlabelled(labelled, unlabelled, recipe)


def accuracy(tagger, tested):
    first = np.asarray(tagger.scores(tested)).argmax(axis=1)
    return np.mean([tagger.topics[j] in document.topics for j, document in zip(first, tested, strict=True)])


def test_unlabelled_documents_are_used_where_they_help(tagger, labelled, recipe):
    choice, tested = tagger.facts.choices["unlabelled"], documents(300, 2)
    assert choice["chosen"] == "used"
    assert choice["precision@1"]["with them"] > choice["precision@1"]["without"]
    assert accuracy(tagger, tested) > accuracy(textcat.train(labelled, recipe), tested) + 0.05


def test_the_figures_are_those_of_taggers_trained_without_the_held_out_documents(tagger, labelled, unlabelled, recipe):
    as_chosen = recipe.with_settings(["tags.strategy=zero"])
    right = {"without": [], "with them": []}
    for repeat in range(3):
        fold_of = assign_folds(labelled.labels(labelled.train), 5, repeat)
        for fold in range(5):
            held_out, rest = (
                [d for d, of in zip(labelled.train, fold_of, strict=True) if (of == fold) == is_held_out]
                for is_held_out in (True, False)
            )
            first = textcat.train(replace(labelled, train=rest), as_chosen)
            scores = np.asarray(first.scores(unlabelled))
            taken = surest(scores - scores.mean(axis=0), 0.25)
            added = [replace(unlabelled[i], topics=(first.topics[j],)) for i, j in np.argwhere(taken)]
            second = textcat.train(replace(labelled, train=[*rest, *added]), as_chosen)
            for name, trained in (("without", first), ("with them", second)):
                right[name].append(accuracy(trained, held_out) * len(held_out))
    assert tagger.facts.choices["unlabelled"]["precision@1"] == pytest.approx(
        {k: sum(v) / 72 for k, v in right.items()}
    )


def test_only_labelled_documents_are_counted_and_measured_on(tagger, labelled):
    assert tagger.facts.train_documents == len(labelled.train)
    assert tagger.facts.train_sizes.tolist() == [12, 12]
    assert tagger.evaluation.measured_on is MeasuredOn.CROSS_VALIDATION
    assert tagger.evaluation.test_documents == len(labelled.train)
    assert tagger.decisions.strategy == "probability"
    assert tagger.facts.recipe.tags.strategy == "probability"


def test_test_documents_are_measured_on_if_there_are_any(labelled, unlabelled, recipe):
    corpus = replace(labelled, test=documents(50, 3))
    tagger = train_with_unlabelled(corpus, unlabelled, recipe)
    assert tagger.evaluation.measured_on is MeasuredOn.TEST
    assert tagger.evaluation == textcat.evaluate(tagger, corpus)


def test_unlabelled_documents_of_other_topics_are_left_out(labelled, recipe):
    rng = np.random.default_rng(4)
    other = [" ".join(rng.choice([*WORDS[:2], "other", "words", "of", "texts"], 4)) for _ in range(300)]
    tagger = train_with_unlabelled(labelled, other, recipe)
    choice, alone = tagger.facts.choices["unlabelled"], textcat.train(labelled, recipe)
    if choice["chosen"] == "not used":
        np.testing.assert_array_equal(tagger.scorer.weights, alone.scorer.weights)
    assert (choice["chosen"] == "used") == (choice["precision@1"]["with them"] > choice["precision@1"]["without"])


@pytest.mark.parametrize("copies", [0, 1])
def test_a_topic_without_a_document_is_learnt_from_its_name_as_elsewhere(labelled, recipe, copies):
    rare = Document("rare", {"body": "tin and tin ores"}, ("tin",))
    corpus = Corpus.from_documents("with a rare topic", [*labelled.train, rare])
    recipe = recipe.with_settings([f"topics.description_copies={copies}"])
    counted = LabelledAndUnlabelled.of(corpus, [], recipe, None)
    (scores,) = counted.scores(np.arange(24), np.array([24]), counted.labels)
    tin = corpus.topics.index("tin")
    assert bool(scores.argmax() == tin) is bool(copies)
    assert copies or scores[tin] == scores.min()


def test_the_result_does_not_depend_on_jobs(tagger, labelled, unlabelled, recipe):
    by_two = train_with_unlabelled(labelled, unlabelled, recipe, n_jobs=2)
    np.testing.assert_array_equal(by_two.scorer.weights, tagger.scorer.weights)
    np.testing.assert_array_equal(by_two.decisions.thresholds, tagger.decisions.thresholds)


@every(
    "corpus, texts, sentence",
    [
        (Corpus.from_documents("few", documents(8, 0)), [WORDS[0]], "8 documents with a topic are too few"),
        (WITH_ONE_LABELLED, [WORDS[0]], "1 documents with a topic are too few"),
        (Corpus.from_documents("one", documents(20, 0, ("a", "a"))), [WORDS[0]], "Corpus one has one topic"),
        (Corpus.from_documents("enough", documents(20, 0)), [], "There is no unlabelled document"),
        (Corpus.from_documents("enough", documents(20, 0)), "absent.jsonl", "absent.jsonl"),
    ],
)
def test_what_cannot_help_is_refused(corpus, texts, sentence):
    with pytest.raises(TextcatError, match=sentence):
        train_with_unlabelled(corpus, texts, RECIPE)
