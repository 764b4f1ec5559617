"""Probabilities of the learners: Platt's curves on scores of rows that were not trained on."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from cases import every
from scipy.special import expit
from sklearn.base import clone
from sklearn.calibration import _SigmoidCalibration
from sklearn.datasets import make_classification, make_multilabel_classification
from sklearn.ensemble import StackingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score

from textcat.base.calibration import Calibration
from textcat.base.folds import assign_folds
from textcat.evaluation.thresholds import choose_thresholds
from textcat.margin.learners import PA, PAUM, Alma, Romma
from textcat.margin.probabilities import class_probabilities, out_of_fold_scores

pytestmark = pytest.mark.filterwarnings(f"ignore::{ConvergenceWarning.__module__}.{ConvergenceWarning.__name__}")
LEARNERS = [PAUM(1, 5), PA(max_epochs=20), Alma(max_epochs=20), Romma(kernel="rbf")]


def two_classes(n=200):
    return make_classification(n, 20, n_informative=8, flip_y=0.1, random_state=0)


@pytest.mark.parametrize("learner", LEARNERS)
def test_the_curves_are_platts_on_the_scores_of_rankers_trained_without_each_fold(learner):
    X, y = two_classes()
    fitted = clone(learner).set_params(probability=True, n_jobs=2).fit(X, y)
    fold_of, scores = assign_folds(sp.csc_array(y[:, np.newaxis]), 5, 0), np.empty(len(y))
    for fold in range(5):
        part = clone(learner).fit(X[fold_of != fold], y[fold_of != fold])
        scores[fold_of == fold] = part.decision_function(X[fold_of == fold]) / part.solutions_[0].unit
    curve = _SigmoidCalibration().fit(scores, y)
    new = fitted.decision_function(X) / fitted.solutions_[0].unit
    expected = expit(-(curve.a_ * new + curve.b_))
    probabilities = fitted.predict_proba(X)
    np.testing.assert_allclose(probabilities[:, 1], expected, atol=2e-3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)


@every("learner", LEARNERS)
def test_probabilities_change_neither_scores_nor_predictions(learner):
    X, y = two_classes()
    plain, fitted = clone(learner).fit(X, y), clone(learner).set_params(probability=True).fit(X, y)
    np.testing.assert_array_equal(plain.decision_function(X), fitted.decision_function(X))
    np.testing.assert_array_equal(plain.predict(X), fitted.predict(X))
    again = clone(fitted).fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))


def test_each_topic_of_an_indicator_has_a_probability_of_its_own_and_classes_share_one():
    X, Y = make_multilabel_classification(150, 20, n_classes=4, random_state=0)
    learner = PAUM(1, 5, probability=True)
    of_topics = learner.fit(sp.csr_array(X), sp.csc_array(Y)).predict_proba(X)
    assert of_topics.shape == (150, 4)
    assert not np.allclose(of_topics.sum(axis=1), 1)
    alone = clone(learner).fit(X, sp.csc_array(Y[:, [2]])).predict_proba(X)
    assert alone.shape == (150, 1)
    of_classes = learner.fit(X, Y[:, 0] + 2 * Y[:, 1]).predict_proba(X)
    assert of_classes.shape == (150, 4)
    np.testing.assert_allclose(of_classes.sum(axis=1), 1)


def test_a_row_that_a_topic_leaves_out_is_not_in_its_sample():
    X, Y = make_multilabel_classification(100, 10, n_classes=2, random_state=0)
    left_out = np.zeros((100, 2), int)
    left_out[70:, 1] = 1
    learner = PAUM(1, 5, probability=True)
    problems = learner.topic_problems(X, sp.csc_array(Y), left_out)
    judged = np.where(left_out > 0, 0, Y)
    scores = out_of_fold_scores(learner, sp.csr_array(X), problems, assign_folds(sp.csc_array(judged), 5, 0))
    assert np.isnan(scores).tolist() == (left_out > 0).tolist()
    learner.fit(X, sp.csc_array(Y), left_out=left_out)
    curves = Calibration.fit_scores(scores, Y)
    np.testing.assert_array_equal([learner.calibration_.a, learner.calibration_.b], [curves.a, curves.b])


def test_out_of_fold_scores_are_those_of_learners_that_have_not_seen_the_row():
    X, Y = make_multilabel_classification(120, 10, n_classes=3, random_state=0)
    X, labels, learner = sp.csr_array(X), sp.csc_array(Y), PAUM(1, 5)
    fold_of = assign_folds(labels, 3, 1)
    scores = out_of_fold_scores(learner, X, learner.topic_problems(X, labels), fold_of)
    for fold in range(3):
        trained = clone(learner).fit(X[fold_of != fold], labels[fold_of != fold])
        np.testing.assert_allclose(scores[fold_of == fold], trained.decision_function(X[fold_of == fold]))


def test_rows_after_those_of_folds_are_trained_on_in_every_fold_but_left_out_where_it_is_said():
    X, Y = make_multilabel_classification(120, 10, n_classes=3, random_state=0)
    X, labels, learner, n = sp.csr_array(X), sp.csc_array(Y), PAUM(1, 5), 110
    left_out = np.zeros(Y.shape, np.int8)
    left_out[n:, 1:] = 1
    fold_of = assign_folds(labels[:n], 3, 0)
    scores = out_of_fold_scores(learner, X, learner.topic_problems(X, labels, left_out), fold_of)
    assert scores.shape == (n, 3)
    assert np.isfinite(scores).all()
    alone = out_of_fold_scores(learner, X[:n], learner.topic_problems(X[:n], labels[:n]), fold_of)
    np.testing.assert_allclose(scores[:, 1:], alone[:, 1:])
    trained_on = np.append(fold_of != 0, [True] * 10)
    trained = clone(learner).fit(X[trained_on], labels[trained_on])
    np.testing.assert_allclose(scores[fold_of == 0, 0], trained.decision_function(X[:n][fold_of == 0])[:, 0])


def test_scoring_out_of_fold_leaves_the_facts_of_a_fitted_learner_as_they_were():
    X, y = two_classes(60)
    learner = PAUM(tau_pos="prevalence", kappa=-20.0, scale=100.0).fit(X, y)
    before, problems = learner.facts(), learner.topic_problems(X, y)
    out_of_fold_scores(learner, sp.csr_array(X), problems, np.arange(60) % 3)
    assert learner.facts() == before


def test_a_learner_and_a_recipe_turn_the_same_scores_into_the_same_probabilities():
    """Rare topics take most of their curve from what all topics share, with learners, too."""
    X, Y = make_multilabel_classification(200, 20, n_classes=5, random_state=1)
    Y[5:, 4] = 0
    labels, learner = sp.csc_array(Y), PAUM(1, 5, probability=True)
    fitted = learner.fit(X, labels)
    scores = out_of_fold_scores(learner, sp.csr_array(X), learner.topic_problems(X, labels), assign_folds(labels, 5, 0))
    curves = choose_thresholds("zero", scores, labels)[1]
    np.testing.assert_array_equal(fitted.predict_proba(X), curves.probabilities(fitted.decision_function(X)))


def test_rows_without_any_probability_have_even_ones():
    far_below = class_probabilities(np.full((1, 3), -1e4), Calibration(np.ones(3), np.zeros(3)), multilabel=False)
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
