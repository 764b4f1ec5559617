"""The figures of each topic are those of a naive count, and the worst documents are those that nDCG@10 says are."""

from dataclasses import replace

import numpy as np
import pytest

import textcat
from textcat.base.progress import Stages
from textcat.model.measure import relevant_topics
from textcat.report.rankings import RANKS, rank_documents, topic_rows, worst_documents


@pytest.fixture(scope="module")
def corpus():
    return textcat.open_corpus("newswire")


@pytest.fixture(scope="module", params=["paum", "many-topics"])
def tagger(request, corpus):
    recipe = textcat.read_recipe(request.param)
    return textcat.train(corpus, recipe.with_settings(["topics.shortlist=8"]) if recipe.topics.shortlist else recipe)


def test_each_topic_is_counted_as_found_given_and_right(corpus, tagger, monkeypatch):
    monkeypatch.setattr("textcat.model.measure.CELLS_AT_ONCE", 100 * len(tagger.topics))
    rankings = rank_documents(tagger, corpus, Stages())
    scores, labels = tagger.scores(corpus.test), relevant_topics(tagger, corpus).toarray() > 0
    given = tagger.decisions.decide(scores)
    tags = tagger.select(scores, top=RANKS)
    found = [
        sum(topic in document.topics and topic in [tag.topic for tag in of_document] for document, of_document in pairs)
        for topic, pairs in ((topic, list(zip(corpus.test, tags, strict=True))) for topic in tagger.topics)
    ]
    assert rankings.found.tolist() == found
    assert rankings.given.tolist() == given.sum(axis=0).tolist()
    assert rankings.right.tolist() == (given & labels).sum(axis=0).tolist()
    assert [[tagger.topics[j] for j in top if j >= 0] for top in rankings.top] == [[t.topic for t in of] for of in tags]


def test_rows_have_the_largest_topic_first_and_the_figures_of_the_evaluation(corpus, tagger):
    rankings = rank_documents(tagger, corpus, Stages())
    rows = topic_rows(tagger, rankings, tagger.topics)
    assert [row[1] for row in rows] == sorted(tagger.facts.train_sizes.tolist(), reverse=True)
    row_of = {row[0]: row for row in rows}
    for expected in textcat.evaluate(tagger, corpus).topics:
        _, train, n, found, given, precision, recall, f1 = row_of[expected.topic]
        assert (train, n) == (expected.train_positives, expected.test_positives)
        assert found is None or 0 <= recall <= 1 >= found
        if given:
            assert precision == pytest.approx(expected.precision, abs=0.0006)
        assert recall == pytest.approx(expected.recall, abs=0.0006)
        assert f1 == pytest.approx(expected.f1, abs=0.0006)


def test_what_was_not_measured_has_no_figure(tagger):
    rows = topic_rows(tagger, None, tagger.topics)
    assert all(row[2:] == [None] * 6 for row in rows)
    assert {row[0] for row in rows} == set(tagger.topics)


def test_the_worst_documents_have_the_lowest_ndcg_and_then_the_most_topics(corpus, tagger, monkeypatch):
    strange = replace(corpus.test[0], id="strange", topics=("nowhere",))
    half = replace(corpus.test[1], id="half", topics=("nowhere", *corpus.test[1].topics))
    corpus = replace(corpus, test=[strange, half, *corpus.test[2:]])
    monkeypatch.setattr("textcat.model.measure.MANY_TOPICS", len(tagger.topics))
    evaluation = textcat.evaluate(tagger, corpus)
    worst = worst_documents(tagger, rank_documents(tagger, corpus, Stages()), evaluation, 400, 3)
    known = set(tagger.topics)
    expected = [document.id for document in corpus.test if known.intersection(document.topics)]
    assert sorted(one.document.id for one in worst) == sorted(expected)
    keys = [(one.ndcg, -len(known.intersection(one.document.topics))) for one in worst]
    assert keys == sorted(keys)
    assert np.mean([one.ndcg for one in worst]) == pytest.approx(evaluation.overall["ndcg@10"] * 350 / 349, rel=0.01)
    for one in worst:
        assert len(one.first) <= 3
        assert [topic.rank for topic in one.first] == [1, 2, 3][: len(one.first)]
        assert all(topic.is_wanted == (topic.topic in one.document.topics) for topic in one.first)
        assert one.ndcg > 0 or all(topic.rank is None for topic in one.wanted)
    of_half = next(one for one in worst if one.document.id == "half")
    assert {topic.topic for topic in of_half.wanted if not topic.is_known} == {"nowhere"}
