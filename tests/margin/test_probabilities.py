"""Probabilities of the learners: Platt's curves on scores of rows that were not trained on."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn.base import clone
from sklearn.calibration import _SigmoidCalibration
from sklearn.datasets import make_classification, make_multilabel_classification
from sklearn.ensemble import StackingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score

from textcat.margin.learners import PA, PAUM, Alma, Romma
from textcat.margin.probabilities import assign_folds, class_probabilities, out_of_fold_scores, platt_curve

pytestmark = pytest.mark.filterwarnings(f"ignore::{ConvergenceWarning.__module__}.{ConvergenceWarning.__name__}")
LEARNERS = [PAUM(1, 5), PA(max_epochs=20), Alma(max_epochs=20), Romma(kernel="rbf")]


def two_classes(n=200):
    return make_classification(n, 20, n_informative=8, flip_y=0.1, random_state=0)


@pytest.mark.parametrize("learner", LEARNERS)
def test_the_curves_are_platts_on_the_scores_of_rankers_trained_without_each_fold(learner):
    X, y = two_classes()
    fitted = clone(learner).set_params(probability=True, n_jobs=2).fit(X, y)
    fold_of, scores = assign_folds([np.flatnonzero(y)], len(y)), np.empty(len(y))
    for fold in range(5):
        part = clone(learner).fit(X[fold_of != fold], y[fold_of != fold])
        scores[fold_of == fold] = part.decision_function(X[fold_of == fold]) / part.solutions_[0].unit
    curve = _SigmoidCalibration().fit(scores, y)
    new = fitted.decision_function(X) / fitted.solutions_[0].unit
    expected = expit(-(curve.a_ * new + curve.b_))
    probabilities = fitted.predict_proba(X)
    np.testing.assert_allclose(probabilities[:, 1], expected, atol=2e-3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)


@pytest.mark.parametrize("learner", LEARNERS)
def test_probabilities_change_neither_scores_nor_predictions(learner):
    X, y = two_classes()
    plain, fitted = clone(learner).fit(X, y), clone(learner).set_params(probability=True).fit(X, y)
    np.testing.assert_array_equal(plain.decision_function(X), fitted.decision_function(X))
    np.testing.assert_array_equal(plain.predict(X), fitted.predict(X))
    again = clone(fitted).fit(X, y)
    np.testing.assert_array_equal(again.platt_, fitted.platt_)


def test_each_topic_of_an_indicator_has_a_probability_of_its_own_and_classes_share_one():
    X, Y = make_multilabel_classification(150, 20, n_classes=4, random_state=0)
    learner = PAUM(1, 5, probability=True)
    of_topics = learner.fit(sp.csr_array(X), sp.csc_array(Y)).predict_proba(X)
    assert of_topics.shape == (150, 4)
    assert not np.allclose(of_topics.sum(axis=1), 1)
    alone = clone(learner).fit(X, sp.csc_array(Y[:, [2]])).platt_
    assert alone.shape == (1, 2)
    of_classes = learner.fit(X, Y[:, 0] + 2 * Y[:, 1]).predict_proba(X)
    assert of_classes.shape == (150, 4)
    np.testing.assert_allclose(of_classes.sum(axis=1), 1)


def test_a_row_that_a_topic_leaves_out_is_not_in_its_sample():
    X, Y = make_multilabel_classification(100, 10, n_classes=2, random_state=0)
    left_out = np.zeros((100, 2), int)
    left_out[70:, 1] = 1
    learner = PAUM(1, 5, probability=True)
    problems = learner.topic_problems(X, sp.csc_array(Y), left_out)
    scores = out_of_fold_scores(learner, sp.csr_array(X), problems)
    assert np.isnan(scores).tolist() == (left_out > 0).tolist()
    learner.fit(X, sp.csc_array(Y), left_out=left_out)
    a, b = platt_curve(scores[:70, 1], Y[:70, 1] > 0)
    np.testing.assert_allclose(learner.platt_[1], (a, b))


def test_positives_of_a_topic_come_into_as_many_folds_as_possible():
    positives = [np.arange(40), np.array([3, 17, 22, 30, 39]), np.array([5, 50])]
    fold_of = assign_folds(positives, 53)
    assert sorted(np.bincount(fold_of).tolist()) == [10, 10, 11, 11, 11]
    assert {*fold_of[positives[1]].tolist()} == {0, 1, 2, 3, 4}
    assert len({*fold_of[positives[2]].tolist()}) == 2
    np.testing.assert_array_equal(fold_of, assign_folds(positives, 53))


def test_a_higher_score_never_has_a_lower_probability():
    scores = np.arange(20.0)
    a, b = platt_curve(scores, scores < 10)
    assert (a, expit(b)) == (0, pytest.approx(0.5))
    a, b = platt_curve(np.ones(20), scores < 5)  # of labels 6/7 and 1/17
    assert (a, expit(b)) == (0, pytest.approx((5 * 6 / 7 + 15 / 17) / 20))
    a, b = platt_curve(1000 + scores, scores > 9)
    assert a > 0
    assert expit(a * 1009.5 + b) == pytest.approx(0.5)


def test_rows_without_any_probability_have_even_ones():
    far_below = class_probabilities(np.full((1, 3), -1e4), np.array([[1.0, 0]] * 3), multilabel=False)
    np.testing.assert_allclose(far_below, 1 / 3)


def test_a_single_row_cannot_be_scored_without_itself():
    with pytest.raises(ValueError, match=r"probability=True needs 2 rows or more, .* X has 1"):
        PAUM(probability=True).fit([[1.0, 2.0]], sp.csc_array([[1, 0]]))


def test_probabilities_are_better_than_the_share_of_a_class():
    X, y = two_classes(400)
    fitted = PAUM(1, 5, probability=True).fit(X[:200], y[:200])
    probabilities = fitted.predict_proba(X[200:])[:, 1]
    assert log_loss(y[200:], probabilities) < 0.9 * log_loss(y[200:], np.full(200, y[:200].mean()))
    assert roc_auc_score(y[200:], probabilities) == roc_auc_score(y[200:], fitted.decision_function(X[200:]))


def test_scikit_learns_scorers_searches_and_stacks_take_them():
    X, y = make_classification(150, 20, n_informative=8, n_classes=3, random_state=0)
    learner = PAUM(1, 5, max_epochs=20, probability=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.mean(cross_val_score(learner, X, y, scoring="roc_auc_ovr", cv=3)) > 0.6
        search = GridSearchCV(learner, {"tau_pos": [1, 20]}, scoring="neg_log_loss", cv=3).fit(X, y)
        assert search.best_estimator_.predict_proba(X).shape == (150, 3)
        stack = StackingClassifier(
            [("paum", learner), ("pa", PA(max_epochs=20, probability=True))], LogisticRegression()
        )
        assert stack.fit(X, y).transform(X).shape == (150, 6)
        Y = np.column_stack([y == 0, y == 1]).astype(int)
        assert np.mean(cross_val_score(learner, X, Y, scoring="roc_auc", cv=3)) > 0.6
