"""Thousands of topics: shortlists by centroids, rankers trained on what they are listed for."""

import json

import naive_shortlist as naive
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import textcat
from textcat.errors import TextcatError
from textcat.evaluation.evaluation import MeasuredOn
from textcat.features.rows import Rows
from textcat.margin.learners import PAUM, Micra
from textcat.margin.primal import subset
from textcat.model import MODEL, ModelError
from textcat.model.shortlist import NOT_LISTED, Shortlist, nearest, products_at, rows_by_topic
from textcat.tagging.job import restrict_topics
from textcat.training.cross_validation import hold_out_sample
from textcat.training.shortlist import columns_in_rows, train_shortlist
from textcat.training.train import train_and_evaluate


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
    scores = Shortlist(centroids, k).scores(Rows.of(rows), weights, bias)
    assert scores.tolist() == naive.scores_at(lines(rows), weights, bias, listed, NOT_LISTED).tolist()


@given(seed=st.integers(0, 2**32 - 1), n_topics=st.integers(1, 9))
def test_rows_by_topic_are_those_of_the_naive_twin(seed, n_topics):
    random = np.random.default_rng(seed)
    lists = [np.sort(random.choice(n_topics, random.integers(0, n_topics + 1), replace=False)) for _ in range(7)]
    listed = np.array([[*topics, *[-1] * (n_topics - len(topics))] for topics in lists], np.int32)
    own = [np.flatnonzero(random.random(9) < 0.4) for _ in range(n_topics)]  # 9 rows: two of them are not listed at all
    starts = np.cumsum([0] + [len(rows) for rows in own])
    begins, ends, rows = rows_by_topic(listed, n_topics, starts, np.concatenate(own).astype(np.int32))
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
def many_topics():
    """Rows, labels and names of 120 topics, each with a word of its own beside those of others."""
    random = np.random.default_rng(0)
    n, n_topics = 3000, 120
    labels = np.zeros((n + n_topics, n_topics), np.int8)
    rows = np.zeros((n + n_topics, 300), np.float32)
    for i in range(n):
        topics = random.choice(n_topics, random.integers(1, 4), replace=False)
        labels[i, topics] = 1
        rows[i, topics] = random.random(len(topics)) < 0.8
        rows[i, random.integers(0, n_topics)] += 0.5
        rows[i, n_topics + random.integers(0, 180, 6)] += 0.5
    names = np.zeros((n_topics, 300), np.float32)
    np.fill_diagonal(names, 1)
    rows[n:], labels[n:] = names, np.eye(n_topics)
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    return sp.csr_matrix(rows), sp.csc_matrix(labels), sp.csr_matrix(names), n


def train(many_topics, **options):
    rows, labels, names, n = many_topics
    learner = PAUM(tau_neg=1.0, tau_pos=10.0, mini_epochs=5)
    return train_shortlist(rows, labels, names, learner, **{"size": 30, "n_documents": n, **options})


def test_documents_get_their_topics(many_topics):
    rows, labels, _, n = many_topics
    trained = train(many_topics)
    scores = trained.shortlist.scores(Rows.of(rows[:n]), trained.weights, trained.bias)
    right = labels[:n].toarray()[np.arange(n), scores.argmax(axis=1)]
    assert right.mean() > 0.9
    assert ((scores == NOT_LISTED).sum(axis=1) >= 90).all()
    assert trained.evidence["ranker"] > 0
    assert trained.evidence["name"] != 0


def test_any_number_of_jobs_gives_the_same_bits(many_topics):
    one, three = train(many_topics, n_jobs=1), train(many_topics, n_jobs=3)
    for name in ("indptr", "indices", "data"):
        assert (getattr(one.weights, name) == getattr(three.weights, name)).all()
    assert (one.bias == three.bias).all()
    assert (one.evidence, one.facts) == (three.evidence, three.facts)


def test_probabilities_are_as_often_right_as_they_say(many_topics):
    rows, labels, _, n = many_topics
    trained = train(many_topics)
    listed = trained.shortlist.topics(Rows.of(rows[:n]))
    scores = trained.shortlist.scores(Rows.of(rows[:n]), trained.weights, trained.bias)
    chosen = np.repeat(np.arange(n), listed.shape[1]), listed.ravel()
    probabilities, right = trained.calibration.probabilities(scores)[chosen], labels[:n].toarray()[chosen]
    assert probabilities.mean() == pytest.approx(right.mean(), rel=0.1)


def test_learners_of_free_length_are_measured_in_their_units(many_topics):
    rows, labels, names, n = many_topics
    learner = Micra(mini_epochs=5)
    trained = train_shortlist(rows, labels, names, learner, size=30, n_documents=n)
    scores = trained.shortlist.scores(Rows.of(rows[:n]), trained.weights, trained.bias)
    assert labels[:n].toarray()[np.arange(n), scores.argmax(axis=1)].mean() > 0.9


def test_progress_counts_every_topic_once(many_topics):
    counted = []
    train(many_topics, progress=counted.append)
    assert sum(counted) == 120


def test_columns_columns_in_rows_make_the_matrix():
    columns = [(np.array([0, 2]), np.array([1.0, 2.0])), (np.array([], int), np.array([])), (np.array([2]), [3.0])]
    assert columns_in_rows(columns, 3).toarray().tolist() == [[1, 0, 0], [0, 0, 0], [2, 0, 3]]


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
    assert loaded.shortlist.size == 8


def test_contributions_and_bias_add_up_to_the_score_of_a_listed_topic(tagger):
    text = textcat.open_corpus("newswire").test[0].zones["body"]
    best = tagger.tag([text], top=1)[0][0]
    reasons = tagger.explain(text, best.topic, n=10_000)
    bias = tagger.bias[tagger.topics.index(best.topic)]
    assert sum(reason.contribution for reason in reasons) + bias == pytest.approx(best.score, abs=1e-4)
    of_topic = tagger.calibration.of_topics([tagger.topics.index(best.topic)])
    assert best.probability == pytest.approx(of_topic.probabilities([best.score])[0])


def test_a_topic_that_is_not_listed_is_not_explained(tagger):
    text = textcat.open_corpus("newswire").test[0].zones["body"]
    scores = tagger.scores([text])[0]
    unlisted = tagger.topics[int(np.flatnonzero(scores <= NOT_LISTED)[0])]
    with pytest.raises(TextcatError, match="is none of the 8 that the model lists for the document"):
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
            [(tagger.topics[j], row[j]) for j in np.argsort(-row, kind="stable")[: min(n, 8)] if row[j] > NOT_LISTED]
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


@pytest.fixture(scope="module")
def untested():
    corpus = textcat.open_corpus("newswire")
    return textcat.Corpus("alone", corpus.train, [], corpus.topics)


MANY_TOPICS = textcat.read_recipe("many-topics").with_settings(["topics.shortlist=8"])


def test_without_test_documents_a_model_is_measured_on_a_sample_that_a_first_one_was_trained_without(
    untested, tagger, tmp_path
):
    trained = train_and_evaluate(untested, MANY_TOPICS, bands="ALL", n_jobs=3, rows_dir=tmp_path / "rows")
    assert (trained.weights != tagger.weights).nnz == 0  # on all documents
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]
    part = hold_out_sample(untested, seed=0)
    assert len(part.held_out) == len(untested.train) // 10
    assert sorted([*part.trained, *part.held_out]) == list(range(len(untested.train)))
    train, test = ([untested.train[i] for i in positions] for positions in part)
    first = train_and_evaluate(textcat.Corpus("first", train, test, untested.topics), MANY_TOPICS, bands="ALL")
    measured = trained.evaluation
    assert measured.measured_on is MeasuredOn.SAMPLE
    assert (measured.scored.scores == first.evaluation.scored.scores).all()
    assert measured.bands == first.evaluation.bands
    assert textcat.load(textcat.save(trained, tmp_path / "model")).evaluate(untested).bands == measured.bands


def test_with_many_topics_the_sample_is_measured_by_its_first_topics(untested, monkeypatch):
    monkeypatch.setattr("textcat.model.measure.MANY_TOPICS", 50)
    monkeypatch.setattr("textcat.model.measure.CELLS_AT_ONCE", 500)  # blocks of 10 documents
    measured = train_and_evaluate(untested, MANY_TOPICS).evaluation
    assert (measured.test_documents, measured.overall.topics) == (72, 33)
    assert measured.overall["ndcg@10"] > 0.9


@pytest.mark.filterwarnings("ignore:overflow")
def test_weights_that_overflow_are_told_in_a_sentence(untested):
    with pytest.raises(TextcatError, match="The weights of a topic overflowed: lower eta or the margins"):
        textcat.train(untested, MANY_TOPICS.changed(eta=1e39))


def test_too_few_documents_to_hold_some_out_are_told_in_a_sentence(untested):
    few = textcat.Corpus("few", untested.train[:9], [], untested.topics)
    with pytest.raises(TextcatError, match="few has 9 training documents, too few to hold one of 10 out"):
        train_and_evaluate(few, MANY_TOPICS)


def test_rows_of_float64_are_scored_too():
    corpus = textcat.open_corpus("newswire")
    recipe = textcat.read_recipe("many-topics").with_settings(["topics.shortlist=8", 'features.dtype="float64"'])
    texts = [document.zones["body"] for document in corpus.test[:20]]
    of_double = textcat.train(corpus, recipe).scores(texts)
    assert np.isfinite(of_double).all()
    assert (of_double > NOT_LISTED).any(axis=1).tolist() == [bool(text) for text in texts]


def test_strategies_that_need_all_scores_are_refused():
    with pytest.raises(TextcatError, match="cannot be 'scut', which needs scores of all documents"):
        textcat.read_recipe("many-topics").with_settings(["tags.strategy=scut"])


def test_topics_without_documents_are_found_by_their_names():
    records = [{"text": f"alpha beta word{i % 7} common", "topics": [f"t{i % 5}"]} for i in range(60)]
    descriptions = {"ghost town": "", "ghost ship": "", "town hall": ""}  # a word must be in two of them
    corpus = textcat.Corpus.from_records(records, topic_rule="described", descriptions=descriptions)
    recipe = textcat.read_recipe("many-topics").with_settings(["topics.shortlist=3"])
    assert textcat.train(corpus, recipe).tag(["a ghost town"], top=1)[0][0].topic == "ghost town"


def test_a_recipe_without_a_shortlist_is_not_read_with_centroids(tagger, tmp_path):
    folder = textcat.save(tagger, tmp_path / "model")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["recipe"]["topics"]["shortlist"] = 0
    MODEL.write_manifest(folder, {key: value for key, value in manifest.items() if key not in ("format", "sha256")})
    with pytest.raises(ModelError, match="do not fit together"):
        textcat.load(folder)


def test_a_shortlist_longer_than_the_topics_lists_all_that_share_a_term():
    rows = Rows.of(sp.csr_array(np.array([[1, 0], [0, 0]], np.float32)))
    shortlist = Shortlist(sp.csr_array(np.array([[0.5, 0, 1], [1, 1, 0]], np.float32)), 9)
    assert shortlist.topics(rows).tolist() == [[0, 2, *[-1] * 7], [-1] * 9]
