"""The recall that is expected of a document's tags tells documents whose tags are complete from others."""

import numpy as np
from cases import every
from sklearn.linear_model import Ridge

from textcat.evaluation.expected_recall import N_WEIGHTS, ExpectedRecall, features_of


def drawn(seed, n=1500, n_topics=8):
    """Scores, probabilities that are true, the tags above one half, and labels."""
    rng = np.random.default_rng(seed)
    p = rng.beta(0.3, 1.2, (n, n_topics))
    return np.log(p + 1e-3), p, p > 0.5, rng.random(p.shape) < p


def test_the_regression_is_that_of_scikit_learn():
    scores, p, given, Y = drawn(0)
    fitted, has_topic = ExpectedRecall.fit(scores, p, given, Y), Y.any(axis=1)
    X = features_of(scores, p, given)
    mean, deviation = X[has_topic].mean(axis=0), X[has_topic].std(axis=0)
    recall = (given & Y)[has_topic].sum(axis=1) / Y[has_topic].sum(axis=1)
    theirs = Ridge(1.0).fit((X[has_topic] - mean) / deviation, recall)
    expected = theirs.predict((X - mean) / deviation).clip(0, 1)
    np.testing.assert_allclose(fitted.of(scores, p, given), expected, atol=1e-9)
    assert fitted.weights.shape == (N_WEIGHTS,)


def test_documents_of_high_expected_recall_have_a_high_recall():
    fitted = ExpectedRecall.fit(*drawn(1))
    scores, p, given, Y = drawn(2)
    has_topic = Y.any(axis=1)
    recall = (given & Y)[has_topic].sum(axis=1) / Y[has_topic].sum(axis=1)
    order = np.argsort(-fitted.of(scores, p, given)[has_topic])
    half = len(order) // 2
    assert recall[order[:half]].mean() > recall.mean() + 0.1
    assert abs(fitted.of(scores, p, given)[has_topic].mean() - recall.mean()) < 0.03


def test_few_topics_are_no_obstacle():
    scores, p, given, Y = drawn(3, 200, 2)
    has_topic = Y.any(axis=1)
    recall = (given & Y)[has_topic].sum(axis=1) / Y[has_topic].sum(axis=1)
    expected = ExpectedRecall.fit(scores, p, given, Y).of(scores, p, given)[has_topic]
    assert abs(expected.mean() - recall.mean()) < 0.01


def only_labelled(is_labelled, scores, p, given, Y):
    """The same documents, each labelled for some topics."""
    return np.where(is_labelled, scores, np.nan), np.where(is_labelled, p, np.nan), given & is_labelled, Y & is_labelled


def test_documents_count_with_the_topics_that_they_were_labelled_for():
    """A single document that was labelled for all topics decides no more than the others."""
    sample = drawn(4, 800, 16)
    is_labelled = np.ones(sample[0].shape, bool)
    is_labelled[1:, 15] = False
    fitted = ExpectedRecall.fit(*only_labelled(is_labelled, *sample))
    scores, p, given, Y = drawn(5, 800, 16)
    has_topic = Y.any(axis=1)
    recall = (given & Y)[has_topic].sum(axis=1) / Y[has_topic].sum(axis=1)
    expected = fitted.of(scores, p, given)[has_topic]
    assert abs(expected.mean() - recall.mean()) < 0.03
    assert np.abs(expected - ExpectedRecall.fit(*sample).of(scores, p, given)[has_topic]).mean() < 0.03


def test_a_document_whose_topic_has_no_score_is_left_out():
    scores, p, given, Y = drawn(6, 300, 8)
    has_topic = Y[:, 0]
    scores[has_topic, 0], p[has_topic, 0] = np.nan, np.nan
    fitted = ExpectedRecall.fit(scores, p, given, Y)
    others = ExpectedRecall.fit(scores[~has_topic], p[~has_topic], given[~has_topic], Y[~has_topic])
    np.testing.assert_array_equal(fitted.weights, others.weights)


@every("n_documents, n_labelled", [(49, 8), (500, 4), (500, 1), (0, 8)])
def test_without_enough_documents_the_probabilities_alone_tell_the_recall(n_documents, n_labelled):
    """Too few are 49, or those that were labelled for half of the topics or fewer."""
    sample = [part[drawn(7, 600)[3].any(axis=1)][:n_documents] for part in drawn(7, 600)]
    is_labelled = np.zeros(sample[0].shape, bool)
    is_labelled[:, :n_labelled] = True
    fitted = ExpectedRecall.fit(*only_labelled(is_labelled, *sample))
    scores, p, given, _ = drawn(8)
    np.testing.assert_allclose(fitted.of(scores, p, given), (p * given).sum(axis=1) / p.sum(axis=1))
