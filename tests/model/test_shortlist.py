"""Thousands of topics: shortlists by centroids, rankers trained on what they are listed for."""

import json

import naive_shortlist as naive
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from manifests import rewrite

import textcat
from textcat.base.errors import TextcatError
from textcat.features.rows import Rows
from textcat.margin.primal import subset
from textcat.model import ModelError
from textcat.model.listed import Listed
from textcat.model.restrict import restrict_topics
from textcat.model.shortlist import Shortlist, nearest, products_at, rows_by_topic


def matrix(random, n_rows, n_columns, density=0.4, values=(-1, -0.5, 0.25, 0.5, 1)):
    dense = random.choice(values, (n_rows, n_columns)) * (random.random((n_rows, n_columns)) < density)
    return sp.csr_array(dense.astype(np.float32))


def lines(rows):
    return [rows[[i]] for i in range(rows.shape[0])]


@given(seed=st.integers(0, 2**32 - 1), n_topics=st.integers(1, 60), k=st.integers(1, 70), many=st.booleans())
def test_compiled_lists_and_products_are_those_of_the_naive_twin(seed, n_topics, k, many):
    random = np.random.default_rng(seed)
    values = (-1, 0.5, 1) if many else tuple(random.normal(size=9))  # few values: many equal products
    rows, centroids = matrix(random, 6, 8), matrix(random, 8, n_topics, values=values)
    listed = nearest(*Rows.of(rows), *Rows.of(centroids), n_topics, k)
    assert listed.tolist() == naive.nearest(lines(rows), centroids, k).tolist()
    products = products_at(*Rows.of(rows), *Rows.of(centroids), n_topics, listed)
    assert products.tolist() == np.array(naive.products_at(lines(rows), centroids, listed)).tolist()
    bias = random.normal(size=n_topics).astype(np.float32)
    weights = matrix(random, 8, n_topics)
    scores = Listed(weights, bias, Shortlist(centroids, k)).scores(Rows.of(rows))
    assert scores.tolist() == naive.scores_at(lines(rows), weights, bias, listed, Listed.unlisted_score).tolist()


@given(seed=st.integers(0, 2**32 - 1), n_topics=st.integers(1, 9))
def test_rows_by_topic_are_those_of_the_naive_twin(seed, n_topics):
    random = np.random.default_rng(seed)
    lists = [np.sort(random.choice(n_topics, random.integers(0, n_topics + 1), replace=False)) for _ in range(7)]
    listed = np.array([[*topics, *[-1] * (n_topics - len(topics))] for topics in lists], np.int32)
    own = [np.flatnonzero(random.random(9) < 0.4) for _ in range(n_topics)]  # 9 rows: two of them are not listed at all
    starts = np.cumsum([0] + [len(rows) for rows in own])
    for numbers in (listed, listed.astype(np.uint16)):
        begins, ends, rows = rows_by_topic(numbers, n_topics, starts, np.concatenate(own).astype(np.int32))
        found = [rows[begin:end].tolist() for begin, end in zip(begins[:-1], ends, strict=True)]
        assert found == naive.rows_by_topic(listed.tolist(), [rows.tolist() for rows in own])


@given(seed=st.integers(0, 2**32 - 1))
def test_a_subset_has_the_rows_and_the_columns_that_they_have(seed):
    random = np.random.default_rng(seed)
    rows = matrix(random, 9, 12, density=0.2)
    chosen = np.flatnonzero(random.random(9) < 0.5).astype(np.int32)
    position = np.full(12, -1, np.int32)
    indptr, indices, data, columns = subset(*Rows.of(rows), chosen, position)
    assert (position == -1).all()
    assert columns.tolist() == np.unique(rows[chosen].indices).tolist()
    part = sp.csr_array((data, indices, indptr), shape=(len(chosen), len(columns)))
    assert (part.toarray() == rows[chosen].toarray()[:, columns]).all()


@pytest.fixture(scope="module")
def tagger():
    recipe = textcat.read_recipe("many-topics").with_settings(["topics.shortlist=8"])
    return textcat.train(textcat.open_corpus("newswire"), recipe)


def test_a_model_that_was_saved_tags_as_in_memory(tagger, tmp_path):
    loaded = textcat.load(textcat.save(tagger, tmp_path / "model"))
    texts = [document.zones["body"] for document in textcat.open_corpus("newswire").test[:50]]
    assert loaded.tag(texts) == tagger.tag(texts)
    assert loaded.tag(texts, top=5) == tagger.tag(texts, top=5)
    assert (loaded.scores(texts) == tagger.scores(texts)).all()
    assert loaded.scorer.shortlist.size == 8


def test_contributions_and_bias_add_up_to_the_score_of_a_listed_topic(tagger):
    text = textcat.open_corpus("newswire").test[0].zones["body"]
    best = tagger.tag([text], top=1)[0][0]
    reasons = tagger.explain(text, best.topic, n=10_000)
    bias = tagger.scorer.bias[tagger.topics.index(best.topic)] + sum(topic.contribution for topic in reasons.related)
    assert sum(reason.contribution for reason in reasons) + bias == pytest.approx(best.score, abs=1e-4)
    of_topic = tagger.decisions.calibration.of_topics([tagger.topics.index(best.topic)])
    assert best.probability == pytest.approx(of_topic.probabilities([best.score])[0])


def test_a_topic_that_is_not_listed_is_not_explained(tagger):
    text = textcat.open_corpus("newswire").test[0].zones["body"]
    scores = tagger.scores([text])[0]
    unlisted = tagger.topics[int(np.flatnonzero(scores <= Listed.unlisted_score)[0])]
    with pytest.raises(TextcatError, match="is none of those that the model lists for the document"):
        tagger.explain(text, unlisted)
    for explained in tagger.explain_all(text):
        assert explained.documents == []  # none can be kept
        assert explained.without
        assert not explained.least or len(explained.without) == 1


def test_the_first_topics_are_those_of_the_highest_scores(tagger):
    texts = [document.zones["body"] for document in textcat.open_corpus("newswire").test[:60]] + ["", "wheat"]
    scores = tagger.scores(texts)
    for n in (1, 5, 8, 50):
        expected = [
            [
                (tagger.topics[j], row[j])
                for j in np.argsort(-row, kind="stable")[: min(n, 8)]
                if row[j] > Listed.unlisted_score
            ]
            for row in scores
        ]
        found = [[(tag.topic, tag.score) for tag in tags] for tags in tagger.tag(texts, top=n)]
        assert found == expected
        assert tagger.select(scores, top=n) == tagger.tag(texts, top=n)


def test_a_tagger_of_some_topics_scores_them_as_the_whole_one_does(tagger):
    texts = [document.zones["body"] for document in textcat.open_corpus("newswire").test[:20]]
    columns = [3, 5, 11]
    some = restrict_topics(tagger, tuple(tagger.topics[j] for j in columns))
    assert (some.scores(texts) == tagger.scores(texts)[:, columns]).all()


def test_rows_of_float64_are_scored_too():
    corpus = textcat.open_corpus("newswire")
    recipe = textcat.read_recipe("many-topics").with_settings(["topics.shortlist=8", 'features.dtype="float64"'])
    texts = [document.zones["body"] for document in corpus.test[:20]]
    of_double = textcat.train(corpus, recipe).scores(texts)
    assert np.isfinite(of_double).all()
    assert (of_double > Listed.unlisted_score).any(axis=1).tolist() == [bool(text) for text in texts]


def test_strategies_that_need_all_scores_are_refused():
    with pytest.raises(TextcatError, match="cannot be 'scut', which needs scores of all documents"):
        textcat.read_recipe("many-topics").with_settings(["tags.strategy=scut"])


def test_topics_without_documents_are_found_by_their_names():
    records = [{"text": f"alpha beta word{i % 7} common", "topics": [f"t{i % 5}"]} for i in range(60)]
    descriptions = {"ghost town": "", "ghost ship": "", "town hall": ""}  # a word must be in two of them
    corpus = textcat.Corpus.from_records(records, topic_rule="described", descriptions=descriptions)
    recipe = textcat.read_recipe("many-topics").with_settings(["topics.shortlist=3"])
    assert textcat.train(corpus, recipe).tag(["a ghost town"], top=1)[0][0].topic == "ghost town"


@pytest.mark.parametrize("size", [0, -1, 51, True, 8.0, None])
def test_shortlists_of_an_impossible_length_are_damage(tagger, tmp_path, size):
    folder = textcat.save(tagger, tmp_path / "model")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["scorer"]["size"] = size
    rewrite(folder, **manifest)
    with pytest.raises(ModelError, match="damaged"):
        textcat.load(folder)


def test_a_shortlist_longer_than_the_topics_lists_all_that_share_a_term():
    rows = Rows.of(sp.csr_array(np.array([[1, 0], [0, 0]], np.float32)))
    shortlist = Shortlist(sp.csr_array(np.array([[0.5, 0, 1], [1, 1, 0]], np.float32)), 9)
    assert shortlist.topics(rows).tolist() == [[0, 2, *[-1] * 7], [-1] * 9]
