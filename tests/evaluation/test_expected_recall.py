"""The recall that is expected of a document's tags tells documents whose tags are complete from others."""

import numpy as np
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


def test_few_topics_and_documents_without_all_scores_are_no_obstacle():
    scores, p, given, Y = drawn(3, 200, 2)
    p[:50, 0] = np.nan
    fitted = ExpectedRecall.fit(scores, p, given, Y)
    inside = ExpectedRecall.fit(scores[50:], p[50:], given[50:], Y[50:])
    np.testing.assert_array_equal(fitted.weights, inside.weights)
