"""Scores of documents by rankers that were not trained on them, for less than training each topic without each fold."""

import numpy as np
import pytest
import scipy.sparse as sp

import textcat
from textcat.margin._primal import dots
from textcat.training import selection
from textcat.training.examples import Examples
from textcat.training.selection import _folds, _held_out_scores, _out_of_fold_scores


@pytest.fixture(scope="module")
def newswire():
    corpus = textcat.open_corpus("newswire")
    labels = corpus.labels(corpus.train).tocsc()
    return textcat.Recipe("plain").make_features().fit_transform(corpus.train), labels


@pytest.mark.parametrize(
    "learner", [textcat.PAUM(1.0, 20.0, lambda_=0.5), textcat.PA(lambda_=0.5), textcat.Romma(lambda_=0.5)], ids=repr
)
def test_with_all_rows_and_all_folds_they_are_those_of_training_each_topic_without_each_fold(
    newswire, learner, monkeypatch
):
    rows, labels = newswire
    monkeypatch.setattr(selection, "_LEAST", labels.shape[0])
    monkeypatch.setattr(selection, "_ENOUGH", labels.shape[0])
    fold_of = _folds(labels, 3, 0)
    examples = Examples(rows, labels)
    scores = _held_out_scores(examples, learner.fit(rows, labels), fold_of)
    np.testing.assert_allclose(scores, _out_of_fold_scores(examples, learner, fold_of), rtol=1e-4, atol=1e-4)


def test_rows_that_never_cause_an_update_change_nothing(newswire, monkeypatch):
    """A ranker trained on its support and its positives alone is the whole ranker."""
    rows, labels = newswire[0].astype(np.float64), newswire[1]
    learner = textcat.PAUM(1.0, 20.0, lambda_=0.5).fit(rows, labels)
    monkeypatch.setattr(selection, "_OF_SUPPORT", 0)
    monkeypatch.setattr(selection, "_OF_DOCUMENTS", 0)
    monkeypatch.setattr(selection, "_LEAST", 0)
    topics = selection._Topics(Examples(rows, labels), learner, np.full(labels.shape[0], 9))  # no document in fold 0
    scores = learner.decision_function(rows)
    for topic in range(labels.shape[1]):
        kept = topics._deciding(topic, scores[:, topic])
        solutions = topics.without_folds(topic, scores[:, topic])
        assert len(kept) < labels.shape[0]
        np.testing.assert_array_equal(kept[solutions[0].support], learner.solutions_[topic].support)
        np.testing.assert_allclose(solutions[0].weights, learner.coef_[topic], atol=1e-12)


def test_a_topic_of_many_positives_is_judged_by_some_folds_and_a_rare_one_by_all(newswire, monkeypatch):
    rows, labels = newswire
    monkeypatch.setattr(selection, "_ENOUGH", 10)
    learner = textcat.PAUM().fit(rows, labels)
    fold_of = _folds(labels, 5, 0)
    scores = _held_out_scores(Examples(rows, labels), learner, fold_of)
    for column, n_positives in zip(scores.T, labels.sum(axis=0).A1, strict=True):
        n_judging = min(5, -(-50 // n_positives))
        assert set(fold_of[~np.isnan(column)]) == set(range(int(n_judging)))


def test_they_are_the_same_to_the_bit_with_many_jobs_and_rows_on_disk(newswire, tmp_path):
    rows, labels = newswire
    fold_of = _folds(labels, 3, 0)
    learner = textcat.PAUM(lambda_=0.1, n_jobs=1).fit(rows, labels)
    alone = _held_out_scores(Examples(rows, labels), learner, fold_of)
    stored = textcat.write_rows(tmp_path / "rows", [sp.csr_matrix(rows)])
    finished = []
    many = textcat.PAUM(lambda_=0.1, n_jobs=3).fit(rows, labels)
    scores = _held_out_scores(Examples(stored, labels), many, fold_of, progress=finished.append)
    np.testing.assert_array_equal(scores, alone)
    assert finished == [3] * labels.shape[1]


def test_rows_after_the_documents_are_examples_in_every_fold_but_left_out_where_it_is_said(newswire):
    rows, labels = newswire
    n = labels.shape[0] - 10
    left_out = sp.csc_matrix(
        (np.arange(labels.shape[0]) >= n).astype(np.int8)[:, np.newaxis] * np.ones(labels.shape[1], np.int8)
    )
    fold_of = _folds(labels[:n], 3, 0)
    whole = textcat.PAUM().fit(rows, labels, left_out=left_out)
    scores = _held_out_scores(Examples(rows, labels, left_out), whole, fold_of)
    alone = _held_out_scores(Examples(rows[:n], labels[:n]), textcat.PAUM().fit(rows[:n], labels[:n]), fold_of)
    assert scores.shape == (n, labels.shape[1])
    np.testing.assert_allclose(scores, alone, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_of_some_rows_are_those_of_a_plain_loop(dtype):
    rng = np.random.default_rng(0)
    X, w = sp.random_array((50, 30), density=0.2, format="csr", dtype=dtype, rng=rng), rng.normal(size=30).astype(dtype)
    expected = []
    for i in (chosen := [7, 0, 49, 7]):
        expected.append(dtype(0))
        for p in range(X.indptr[i], X.indptr[i + 1]):
            expected[-1] += X.data[p] * w[X.indices[p]]
    products = dots(X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data, chosen, w)
    assert products.dtype == dtype
    np.testing.assert_array_equal(products, np.array(expected, dtype))
    assert not dots(X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data, [], w).size
