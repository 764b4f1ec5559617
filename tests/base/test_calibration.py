"""A probability rises with the score, and comes true as often as it says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, special
from scipy.optimize import minimize
from sklearn.calibration import _SigmoidCalibration

from textcat.base.calibration import Calibration, expit, fit_curve, logit


def random_sample(n_documents=400, n_topics=6, seed=0):
    """Topics of falling prevalence, whose documents score higher."""
    random = np.random.default_rng(seed)
    labels = random.random((n_documents, n_topics)) < 0.5 ** np.arange(1, n_topics + 1)
    return (random.normal(size=labels.shape) + 2 * labels).astype(np.float32), labels


def naive_calibration(scores, labels, shrinkage):
    """The same as `Calibration.fit_scores`, written down plainly, with a general solver."""
    n, n_topics = scores.shape
    z = (scores - scores.mean(axis=0)) / scores.std(axis=0)

    def curve(parts):
        def loss(ab):
            return sum(
                weight * np.sum(np.logaddexp(0, f) - target * f)
                for topic, target, offset, weight in parts
                for f in [ab[0] * topic + ab[1] + offset]
            )

        return minimize(loss, [1.0, -1.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12}).x

    topics = []
    for t in range(n_topics):
        n_pos = labels[:, t].sum()
        targets = np.where(labels[:, t], (n_pos + 1) / (n_pos + 2), 1 / (n - n_pos + 2))
        prior = (n_pos + 0.5) / (n + 1)
        topics.append((z[:, t], targets, np.log(prior / (1 - prior)), shrinkage / (n_pos + shrinkage)))
    shared = curve(topics)
    probabilities = []
    for topic, targets, offset, weight in topics:
        own = curve([(topic, targets, 0, 1)])
        a, b = (1 - weight) * own + weight * np.array([shared[0], shared[1] + offset])
        probabilities.append(1 / (1 + np.exp(-(a * topic + b))))
    return np.column_stack(probabilities)


@pytest.mark.parametrize("shrinkage", [3, 50])
def test_calibration_is_that_of_its_naive_twin(shrinkage):
    scores, labels = random_sample(n_documents=100)
    fitted = Calibration.fit_scores(scores, sparse.csc_array(labels), shrinkage)
    np.testing.assert_allclose(
        fitted.probabilities(scores), naive_calibration(scores.astype(float), labels, shrinkage), rtol=1e-4, atol=1e-6
    )


def test_without_shrinkage_every_topic_has_platts_own_curve():
    scores, labels = random_sample()
    fitted = Calibration.fit_scores(scores, labels, shrinkage=0)
    for t in range(labels.shape[1]):
        theirs = _SigmoidCalibration().fit(scores[:, t].astype(float), labels[:, t])
        assert (fitted.a[t], fitted.b[t]) == pytest.approx((-theirs.a_, -theirs.b_), rel=1e-3)


@given(st.integers(0, 1000), st.floats(-3, 3), st.floats(-3, 3))
def test_a_curve_is_fitted_where_the_loss_is_level_whatever_the_start(seed, a, b):
    random = np.random.default_rng(seed)
    z, target, offset, weight = random.normal(size=30), random.random(30), random.normal(size=30), random.random(30)
    fitted = fit_curve(z, target, offset, weight, (a, b))
    assert fitted == pytest.approx(fit_curve(z, target, offset, weight), abs=1e-9)
    error = weight * (expit(fitted[0] * z + fitted[1] + offset) - target)
    assert abs(error.sum()) < 1e-9
    assert abs(error @ z) < 1e-9 if fitted[0] > 0 else fitted[0] == 0 and error @ z > -1e-9


@given(st.integers(0, 1000), st.floats(0, 100))
def test_a_probability_never_falls_where_the_score_rises(seed, shrinkage):
    random = np.random.default_rng(seed)
    scores, labels = random.normal(size=(20, 3)), random.random((20, 3)) < 0.2
    fitted = Calibration.fit_scores(scores, labels, shrinkage)
    assert (fitted.a >= 0).all()
    assert np.isfinite(fitted.b).all()


def test_scores_that_rank_backwards_give_the_prior_at_every_score():
    scores = np.arange(20.0)[:, np.newaxis]
    fitted = Calibration.fit_scores(scores, scores < 10, shrinkage=0)
    assert fitted.a == [0]
    np.testing.assert_allclose(fitted.probabilities(scores), 0.5)


def test_scores_that_separate_all_positives_give_no_certainty():
    scores = np.arange(20.0)[:, np.newaxis]
    probabilities = Calibration.fit_scores(scores, scores >= 10).probabilities(scores)
    assert 0 < probabilities.min() < 0.1
    assert 0.9 < probabilities.max() < 1


def test_a_topic_without_a_positive_has_the_shared_curve_at_its_prior():
    scores, labels = random_sample()
    none = np.zeros((len(labels), 1), bool)
    fitted = Calibration.fit_scores(np.hstack([scores, scores[:, :1]]), np.hstack([labels, none]))
    mean = fitted.probabilities(np.hstack([scores, scores[:, :1]]))[:, -1].mean()
    assert 0 < mean < 5 / len(labels)
    assert fitted.a[-1] > 0


def test_topics_whose_scores_are_all_equal_get_their_prior():
    labels = np.arange(10)[:, np.newaxis] < 3
    fitted = Calibration.fit_scores(np.ones((10, 1)), labels, shrinkage=0)
    np.testing.assert_allclose(fitted.probabilities([[1.0]]), (3 * 4 / 5 + 7 / 9) / 10)


def test_probabilities_come_true_as_often_as_they_say():
    scores, labels = random_sample(20_000, 4)
    unseen, came_true = random_sample(20_000, 4, seed=1)
    probabilities = Calibration.fit_scores(scores, labels).probabilities(unseen)
    for low in np.arange(0.1, 0.9, 0.2):
        inside = (probabilities >= low) & (probabilities < low + 0.2)
        assert came_true[inside].mean() == pytest.approx(probabilities[inside].mean(), abs=0.03)


def test_calibration_needs_a_document():
    with pytest.raises(ValueError, match="without a document"):
        Calibration.fit_scores(np.empty((0, 2)), np.empty((0, 2)))


def test_the_logistic_function_is_that_of_scipy_to_the_bit():
    rng = np.random.default_rng(0)
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e308, -1e308, 5e-324, 36.7, 709.8, -709.8, -745, -746, 0.5, -0.5]
    x = np.concatenate([edges, rng.normal(0, 10, 500_000), rng.uniform(-750, 750, 500_000)])
    np.testing.assert_array_equal(expit(x), special.expit(x), strict=True)
    np.testing.assert_array_equal(expit(x.reshape(5, -1).T), special.expit(x.reshape(5, -1).T), strict=True)
    assert expit(np.float64(0)) == 0.5


def test_the_inverse_of_the_logistic_function_is_that_of_scipy():
    p = np.concatenate([[0.0, 0.25, 0.3, 0.5, 0.65, 1.0], np.random.default_rng(0).random(10_000)])
    np.testing.assert_allclose([*map(logit, p)], special.logit(p), rtol=1e-15, atol=1e-15)
