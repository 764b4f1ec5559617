"""Evaluation by cross-validation, for a corpus without a test part."""

from dataclasses import replace

import numpy as np
import pytest

import textcat
from textcat.documents import Corpus, Document
from textcat.evaluation.ranking import average_precisions
from textcat.recipe import Recipe
from textcat.training.selection import folds
from textcat.training.train import cross_evaluate

PLAIN = Recipe("plain")
DESCRIBED = Recipe("described", topics={"descriptions": 1})


@pytest.fixture(scope="module")
def corpus():
    whole = textcat.open_corpus("newswire")
    return Corpus.from_documents("untested", whole.train[:300])


@pytest.mark.parametrize("recipe", [PLAIN, DESCRIBED], ids=lambda recipe: recipe.name)
def test_every_document_is_scored_by_a_tagger_trained_on_the_other_folds(corpus, recipe):
    labels = corpus.labels(corpus.train)
    of, scores = folds(labels, 3, 0), np.empty(labels.shape)
    for fold in range(3):
        part = replace(corpus, train=[d for d, f in zip(corpus.train, of, strict=True) if f != fold])
        held_out = [d for d, f in zip(corpus.train, of, strict=True) if f == fold]
        scores[of == fold] = textcat.Tagger.fit(part, recipe).scores(held_out)
    tagger = textcat.Tagger.fit(corpus, recipe)
    evaluation = cross_evaluate(tagger, corpus, recipe, n_folds=3)
    expected = average_precisions(labels, scores)
    sizes = np.asarray(labels.sum(axis=0)).ravel()
    assert evaluation.test_documents == len(corpus.train)
    for topic, size, quality in zip(evaluation.topics, sizes, expected, strict=True):
        if size == 1 and recipe is PLAIN:
            assert topic.average_precision is None
        else:
            assert topic.average_precision == pytest.approx(quality, abs=1e-6)


def test_one_job_and_many_give_the_same(corpus):
    tagger = textcat.Tagger.fit(corpus, PLAIN)
    assert cross_evaluate(tagger, corpus, PLAIN, n_jobs=1) == cross_evaluate(tagger, corpus, PLAIN, n_jobs=3)


def test_bands_are_those_asked_for(corpus):
    tagger = textcat.Tagger.fit(corpus, PLAIN)
    assert [band.band for band in cross_evaluate(tagger, corpus, PLAIN, bands=["TOP5"]).bands] == ["TOP5"]


@pytest.mark.parametrize("texts", [["rain"], ["rain", "rain"], ["rain", "sun", ""]])
def test_few_documents_are_measured_as_far_as_they_can_be(texts):
    documents = [Document(str(k), {"body": text}, (f"about {text}",)) for k, text in enumerate(texts)]
    few = Corpus.from_documents("few", [*documents, Document("other", {"body": "wind"})])
    for recipe in (PLAIN, DESCRIBED):
        tagger = textcat.Tagger.fit(few, recipe)
        assert cross_evaluate(tagger, few, recipe).test_documents == len(few.train)
    alone = Corpus.from_documents("alone", [Document("1", {"body": "rain sun"}, ("weather",))])
    tagger = textcat.Tagger.fit(few, PLAIN)
    tagger = replace(tagger, topics=alone.topics, train_sizes=np.ones(1, int), thresholds=np.zeros(1), facts={})
    assert cross_evaluate(tagger, alone, PLAIN).topics[0].average_precision is None
