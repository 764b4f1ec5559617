"""Rankers trained on the documents that shortlists hold, measured on documents that others were trained without."""

import numpy as np
import pytest
import scipy.sparse as sp

import textcat
from textcat.base.errors import TextcatError
from textcat.evaluation.evaluation import MeasuredOn
from textcat.features.rows import Rows
from textcat.features.vectors import WordVectors
from textcat.margin.learners import PAUM, Micra
from textcat.model.listed import Listed
from textcat.training.checks import TrainingOptions
from textcat.training.cross_validation import hold_out_sample
from textcat.training.shortlist import columns_in_rows, train_shortlist
from textcat.training.steps import train_and_evaluate


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
    return train_shortlist(rows, labels, names, learner, **{"size": 30, "groups": np.arange(n), **options})


@pytest.fixture(scope="module")
def trained(many_topics):
    return train(many_topics, n_jobs=1)


def test_documents_get_their_topics(many_topics, trained):
    rows, labels, _, n = many_topics
    scores = trained.scorer.scores(Rows.of(rows[:n]))
    right = labels[:n].toarray()[np.arange(n), scores.argmax(axis=1)]
    assert right.mean() > 0.9
    assert ((scores == Listed.unlisted_score).sum(axis=1) >= 90).all()
    # Here each topic has a word of its own, which its centroid knows as well as its ranker.
    assert trained.evidence["similarity"] + trained.evidence["similarity_by_size"] * np.log(76) > 0
    assert trained.evidence["name"] != 0


@pytest.fixture(scope="module")
def known_by_name(many_topics):
    """The same, where the first ten topics have no document, only a name."""
    rows, labels, names, n = many_topics
    kept = labels.tolil()
    kept[:n, :10] = 0
    return rows, sp.csc_matrix(kept), names, n


@pytest.fixture(scope="module")
def by_name(known_by_name):
    return train(known_by_name)


def test_topics_without_documents_are_scored_by_what_names_say_of_other_topics(
    known_by_name, by_name, many_topics, trained
):
    rows, _, names, n = known_by_name
    of_name, constant = by_name.evidence["name_alone"], by_name.evidence["constant_alone"]
    assert of_name > 0
    scores = by_name.scorer.scores(Rows.of(rows[:n]))[:, :10]
    is_listed = scores != Listed.unlisted_score
    expected = of_name * (rows[:n] @ names.T.tocsc()[:, :10]).toarray() + constant
    # Weights below the least one are left out.
    assert scores[is_listed] == pytest.approx(expected[is_listed], abs=0.31)
    documented = many_topics[1][:n, :10].toarray()
    assert np.mean(scores[(documented > 0) & is_listed]) > np.mean(scores[(documented == 0) & is_listed])
    assert "name_alone" not in trained.evidence


def test_probabilities_of_topics_without_documents_rise_with_scores(by_name):
    slopes = by_name.calibration.probabilities(np.full((2, 120), [[-1.0], [1.0]]))
    assert (slopes[1, :10] >= slopes[0, :10]).all()
    assert np.isfinite(by_name.scorer.bias).all()


@pytest.fixture(scope="module")
def inflected():
    """Topics whose documents have an inflected form of the word that names them; the first ten have a name alone."""
    random = np.random.default_rng(1)
    n, n_topics = 3000, 120
    words = ["".join(random.choice(list("abcdefghijklmnopqrstuvwxyz"), 8)) for _ in range(n_topics)]
    terms = [*words, *(f"{word}er" for word in words), *(f"filler{i}" for i in range(60))]
    labels, rows = np.zeros((n + n_topics, n_topics), np.int8), np.zeros((n + n_topics, len(terms)), np.float32)
    for i in range(n):
        topics = random.choice(n_topics, random.integers(1, 4), replace=False)
        labels[i, topics] = 1
        rows[i, n_topics + topics] = 1
        rows[i, n_topics + random.integers(0, n_topics)] += 0.5
        rows[i, 2 * n_topics + random.integers(0, 60, 4)] = 0.5
    names = np.eye(n_topics, len(terms), dtype=np.float32)
    rows[n:], labels[n:] = names, np.eye(n_topics)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    documented = labels[:n, :10].copy()
    labels[:n, :10] = 0
    return (sp.csr_matrix(rows), sp.csc_matrix(labels), sp.csr_matrix(names), n), terms, documented


@pytest.fixture(scope="module")
def alike(inflected):
    return train(inflected[0], terms=inflected[1], n_jobs=1)


def are_found(trained, rows, documented):
    """Whether each of the first topics has higher scores for its documents than for others."""
    scores = trained.scorer.scores(Rows.of(rows[: len(documented)]))[:, :10]
    return [np.median(scores[of == 1, j]) - np.median(scores[of == 0, j]) > 5 for j, of in enumerate(documented.T)]


def test_topics_without_documents_are_found_by_words_that_look_like_their_names(inflected, alike):
    corpus, _, documented = inflected
    assert are_found(train(corpus), corpus[0], documented) == [False] * 10
    assert are_found(alike, corpus[0], documented) == [True] * 10
    assert alike.evidence["alike_alone"] > 0


def test_topics_without_documents_are_found_by_words_of_like_meaning(inflected):
    corpus, terms, documented = inflected
    n_topics, random = corpus[1].shape[1], np.random.default_rng(2)
    synonyms = ["".join(random.choice(list("abcdefghijklmnopqrstuvwxyz"), 8)) for _ in range(n_topics)]
    terms = [*terms[:n_topics], *synonyms, *terms[2 * n_topics :]]
    values = np.tile(100 * np.eye(n_topics, dtype=np.int8), (2, 1))
    vectors = WordVectors(terms[: 2 * n_topics], values, 0.01, "of this test")
    without, trained = train(corpus, terms=terms), train(corpus, terms=terms, vectors=vectors)
    assert are_found(without, corpus[0], documented) == [False] * 10
    assert are_found(trained, corpus[0], documented) == [True] * 10
    assert trained.evidence["meant_alone"] > 0
    of_others = WordVectors([f"other {word}" for word in vectors.words], values, 0.01, "of another language")
    same = train(corpus, terms=terms, vectors=of_others)
    assert (same.scorer.weights != without.scorer.weights).nnz == 0


def test_without_topics_that_have_a_name_alone_terms_change_nothing(many_topics, trained):
    with_terms = train(many_topics, terms=[f"term{j}" for j in range(300)])
    for one, other in (
        (trained.scorer.weights, with_terms.scorer.weights),
        (trained.scorer.shortlist.centroids, with_terms.scorer.shortlist.centroids),
    ):
        assert (one.indptr == other.indptr).all()
        assert (one.indices == other.indices).all()
        assert (one.data == other.data).all()
    assert (trained.scorer.bias == with_terms.scorer.bias).all()
    assert trained.evidence == with_terms.evidence


def test_look_alikes_are_the_same_for_any_number_of_jobs(inflected, alike):
    one, three = alike, train(inflected[0], terms=inflected[1], n_jobs=3)
    assert (one.scorer.weights != three.scorer.weights).nnz == 0
    assert (one.scorer.shortlist.centroids != three.scorer.shortlist.centroids).nnz == 0
    assert one.evidence == three.evidence


def test_any_number_of_jobs_gives_the_same_bits(many_topics, trained):
    one, three = trained, train(many_topics, n_jobs=3)
    for name in ("indptr", "indices", "data"):
        assert (getattr(one.scorer.weights, name) == getattr(three.scorer.weights, name)).all()
    assert (one.scorer.bias == three.scorer.bias).all()
    assert (one.evidence, one.facts) == (three.evidence, three.facts)


def test_probabilities_are_as_often_right_as_they_say(many_topics, trained):
    rows, labels, _, n = many_topics
    listed = trained.scorer.shortlist.topics(Rows.of(rows[:n]))
    scores = trained.scorer.scores(Rows.of(rows[:n]))
    chosen = np.repeat(np.arange(n), listed.shape[1]), listed.ravel()
    probabilities, right = trained.calibration.probabilities(scores)[chosen], labels[:n].toarray()[chosen]
    assert probabilities.mean() == pytest.approx(right.mean(), rel=0.1)


@pytest.mark.usefixtures("all_splits")
@pytest.mark.parametrize("n", [12, 60, 300])
def test_probabilities_of_few_documents_add_up_to_about_the_number_of_topics(n):
    news = textcat.open_corpus("newswire")
    recipe = textcat.read_recipe("many-topics").with_settings("topics.shortlist=10")
    tagger = textcat.train(textcat.Corpus.from_documents("few", news.train[:n]), recipe)
    n_topics = sum(topic in tagger.topics for document in news.test for topic in document.topics)
    expected = tagger.predict_proba(news.test).sum()
    assert 0.3 * n_topics < expected < 1.4 * n_topics


def test_learners_of_free_length_are_measured_in_their_units(many_topics):
    rows, labels, names, n = many_topics
    learner = Micra(mini_epochs=5)
    trained = train_shortlist(rows, labels, names, learner, size=30, groups=np.arange(n))
    scores = trained.scorer.scores(Rows.of(rows[:n]))
    assert labels[:n].toarray()[np.arange(n), scores.argmax(axis=1)].mean() > 0.9


def test_progress_counts_every_topic_once(many_topics):
    counted = []
    train(many_topics, progress=counted.append)
    assert sum(counted) == 120


def test_columns_columns_in_rows_make_the_matrix():
    columns = [(np.array([0, 2]), np.array([1.0, 2.0])), (np.array([], int), np.array([])), (np.array([2]), [3.0])]
    assert columns_in_rows(columns, 3).toarray().tolist() == [[1, 0, 0], [0, 0, 0], [2, 0, 3]]


@pytest.fixture(scope="module")
def tagger(untested):
    recipe = textcat.read_recipe("many-topics").with_settings(["topics.shortlist=8"])
    return textcat.train(untested, recipe)


@pytest.fixture(scope="module")
def untested():
    corpus = textcat.open_corpus("newswire")
    return textcat.Corpus.from_documents("alone", corpus.train[:300])


MANY_TOPICS = textcat.read_recipe("many-topics").with_settings(["topics.shortlist=8"])


def test_without_test_documents_a_model_is_measured_on_a_sample_that_a_first_one_was_trained_without(
    untested, tagger, tmp_path
):
    trained = train_and_evaluate(untested, MANY_TOPICS, TrainingOptions(3, tmp_path / "rows"), bands="ALL")
    assert (trained.scorer.weights != tagger.scorer.weights).nnz == 0  # on all documents
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
    assert textcat.evaluate(textcat.load(textcat.save(trained, tmp_path / "model")), untested).bands == measured.bands


def test_with_many_topics_the_sample_is_measured_by_its_first_topics(untested, monkeypatch):
    monkeypatch.setattr("textcat.model.measure.MANY_TOPICS", 30)
    monkeypatch.setattr("textcat.model.measure.CELLS_AT_ONCE", 500)  # blocks of 10 documents
    measured = train_and_evaluate(untested, MANY_TOPICS).evaluation
    assert (measured.test_documents, measured.overall.topics) == (30, 18)
    assert measured.overall["ndcg@10"] > 0.85


@pytest.mark.filterwarnings("ignore:overflow")
def test_weights_that_overflow_are_told_in_a_sentence(untested):
    with pytest.raises(TextcatError, match="The weights of a topic overflowed: lower eta or the margins"):
        textcat.train(untested, MANY_TOPICS.changed(eta=1e39))


def test_too_few_documents_to_hold_some_out_are_told_in_a_sentence(untested):
    few = textcat.Corpus("few", untested.train[:9], [], untested.topics)
    with pytest.raises(TextcatError, match="few has 9 different training documents, too few to hold one of 10 out"):
        train_and_evaluate(few, MANY_TOPICS)
