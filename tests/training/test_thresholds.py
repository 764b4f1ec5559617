"""Thresholds come from rankers that were not trained on what they score, for less than training each topic anew."""

import numpy as np
import pytest
import scipy.sparse as sp

import textcat
from textcat.base.folds import assign_folds
from textcat.margin.primal import N_FOLDS
from textcat.margin.probabilities import out_of_fold_scores
from textcat.training import thresholds
from textcat.training.examples import Examples
from textcat.training.thresholds import held_out_scores


@pytest.fixture(scope="module")
def newswire():
    corpus = textcat.open_corpus("newswire")
    labels = corpus.labels(corpus.train).tocsc()
    return textcat.Recipe("plain").make_features().fit_transform(corpus.train), labels


@pytest.mark.parametrize(
    "learner", [textcat.PAUM(1.0, 20.0, lambda_=0), textcat.PA(lambda_=0.5), textcat.Romma(lambda_=0.5)], ids=repr
)
def test_with_all_rows_and_all_folds_they_are_those_of_training_each_topic_without_each_fold(
    newswire, learner, monkeypatch
):
    rows, labels = newswire
    monkeypatch.setattr(thresholds, "LEAST_NEGATIVES", labels.shape[0])
    monkeypatch.setattr(thresholds, "ENOUGH_POSITIVES", labels.shape[0])
    fold_of = assign_folds(labels, 3, 0)
    examples = Examples(rows, labels)
    scores = held_out_scores(examples, learner.fit(rows, labels), fold_of)
    anew = out_of_fold_scores(learner, rows, learner.topic_problems(rows, labels), fold_of)
    np.testing.assert_allclose(scores, anew, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("learner", [textcat.PAUM(1.0, 20.0, lambda_=0.5), textcat.PAM(10.0, lambda_=1.0)], ids=repr)
def test_a_ranker_led_to_its_minimum_without_a_fold_scores_as_one_that_is_trained_without_it(newswire, learner):
    rows, labels = newswire
    fold_of, examples = assign_folds(labels, 5, 0), Examples(rows, labels)
    expected = out_of_fold_scores(learner.fit(rows, labels), rows, learner.topic_problems(rows, labels), fold_of)
    scores, of_training = held_out_scores(examples, learner, fold_of), learner.decision_function(rows)
    positive = labels.toarray() > 0
    for which, part in ((positive, 1 / 8), (~positive, 1)):  # negatives far from the margin hardly change
        off, of_training_off = (np.abs(expected - those)[which].mean() for those in (scores, of_training))
        assert off < part * of_training_off
    assert np.corrcoef(scores[positive], expected[positive])[0, 1] > 0.99


def test_more_folds_than_lanes_are_taken_in_turns(newswire):
    rows, labels = newswire
    learner = textcat.PAUM(1.0, 20.0, lambda_=0.5).fit(rows, labels)
    fold_of = assign_folds(labels, N_FOLDS + 3, 0)
    scores = held_out_scores(Examples(rows, labels), learner, fold_of)
    assert np.isfinite(scores).all()
    np.testing.assert_array_equal(
        held_out_scores(Examples(rows, labels), learner, N_FOLDS + 2 - fold_of), scores
    )  # whatever number a fold has


def test_rows_that_never_cause_an_update_change_nothing(newswire, monkeypatch):
    """A ranker trained on its support and its positives alone is the whole ranker."""
    rows, labels = newswire[0].astype(np.float64), newswire[1]
    learner = textcat.PAUM(1.0, 20.0, lambda_=0.5).fit(rows, labels)
    monkeypatch.setattr(thresholds, "SHARE_OF_SUPPORT", 0)
    monkeypatch.setattr(thresholds, "SHARE_OF_DOCUMENTS", 0)
    monkeypatch.setattr(thresholds, "LEAST_NEGATIVES", 0)
    topics = thresholds.TopicProblems(
        Examples(rows, labels), learner, np.full(labels.shape[0], 9)
    )  # no document in fold 0
    scores = learner.decision_function(rows)
    for topic in range(labels.shape[1]):
        kept = topics.deciding(topic, scores[:, topic])
        solutions = topics.without_folds(topic, scores[:, topic])
        assert len(kept) < labels.shape[0]
        np.testing.assert_array_equal(kept[solutions[0].support], learner.solutions_[topic].support)
        np.testing.assert_allclose(solutions[0].weights, learner.coef_[topic], atol=1e-12)


def test_a_topic_of_many_positives_is_judged_by_some_folds_and_a_rare_one_by_all(newswire, monkeypatch):
    rows, labels = newswire
    monkeypatch.setattr(thresholds, "ENOUGH_POSITIVES", 10)
    learner = textcat.PAUM(lambda_=0).fit(rows, labels)
    fold_of = assign_folds(labels, 5, 0)
    scores = held_out_scores(Examples(rows, labels), learner, fold_of)
    for column, n_positives in zip(scores.T, labels.sum(axis=0).A1, strict=True):
        n_judging = min(5, -(-50 // n_positives))
        assert set(fold_of[~np.isnan(column)]) == set(range(int(n_judging)))


@pytest.mark.parametrize("lambda_", [0.1, 0.0])
def test_they_are_the_same_to_the_bit_with_many_jobs_and_rows_on_disk(newswire, tmp_path, lambda_):
    rows, labels = newswire
    fold_of = assign_folds(labels, 3, 0)
    learner = textcat.PAUM(lambda_=lambda_, n_jobs=1).fit(rows, labels)
    alone = held_out_scores(Examples(rows, labels), learner, fold_of)
    stored = textcat.write_rows(tmp_path / "rows", [sp.csr_matrix(rows)])
    finished = []
    many = textcat.PAUM(lambda_=lambda_, n_jobs=3).fit(rows, labels)
    scores = held_out_scores(Examples(stored, labels), many, fold_of, progress=finished.append)
    np.testing.assert_array_equal(scores, alone)
    assert finished == [3] * labels.shape[1]


@pytest.mark.parametrize("lambda_", [0.5, 0.0])
def test_rows_after_the_documents_are_examples_in_every_fold_but_left_out_where_it_is_said(newswire, lambda_):
    rows, labels = newswire
    n = labels.shape[0] - 10
    left_out = sp.csc_matrix(
        (np.arange(labels.shape[0]) >= n).astype(np.int8)[:, np.newaxis] * np.ones(labels.shape[1], np.int8)
    )
    fold_of = assign_folds(labels[:n], 3, 0)
    whole, part = (textcat.PAUM(1.0, 20.0, lambda_=lambda_) for _ in range(2))
    scores = held_out_scores(Examples(rows, labels, left_out), whole.fit(rows, labels, left_out=left_out), fold_of)
    alone = held_out_scores(Examples(rows[:n], labels[:n]), part.fit(rows[:n], labels[:n]), fold_of)
    assert scores.shape == (n, labels.shape[1])
    np.testing.assert_allclose(scores, alone, atol=1e-4)
