"""The learners are scikit-learn classifiers, and their topics are the solver's solutions."""

import math
import pickle
import re
import warnings
from contextlib import suppress
from unittest import SkipTest

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from cases import every
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.utils.estimator_checks import check_classifiers_train, check_estimator, estimator_checks_generator

from textcat.margin import rules
from textcat.margin.learners import (
    LEARNERS,
    PA,
    PAM,
    PAUM,
    Alma,
    Cramma,
    DynamicMargin,
    LMargitron,
    Micra,
    Romma,
    TMargitron,
    prevalence_tau,
)
from textcat.margin.problems import Problem
from textcat.margin.solve import solve

CLASSES = list(LEARNERS.values())
pytestmark = pytest.mark.filterwarnings("ignore:.* does not inherit from `sklearn.base.BaseEstimator`")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "estimator",
    [
        PAM(tau=5, eta=0.5, rho="R"),
        PAUM(),
        PAUM(-1, 1, lambda_=0, rho=0, max_epochs=5),
        PAUM(0, 1, rho="R", random_state=0, n_jobs=2, warm_start=True),
        PAM(kernel="rbf"),
        Alma(kernel="linear", mini_epochs=3),
        # What the checks ask for is common to all learners; below, each of them is fitted and ranks.
        *(
            pytest.param(estimator, marks=pytest.mark.where_long("some learners are checked by scikit-learn"))
            for estimator in (
                *(cls() for cls in LEARNERS.values() if cls not in (PAM, PAUM)),
                *(cls(kernel="linear", mini_epochs=3) for cls in (PA, Romma, Micra)),
            )
        ),
    ],
    ids=repr,
)
def test_scikit_learns_own_checks_pass(estimator):
    # One is skipped if it is of what the estimator does not offer, such as probabilities.
    checks = check_estimator(estimator, on_skip=None, on_fail=None)
    assert [(check["check_name"], check["exception"]) for check in checks if check["status"] == "failed"] == []
    assert sum(check["status"] == "passed" for check in checks) > 40


@pytest.mark.parametrize("estimator", [PAUM(1, 50, probability=True), Romma(kernel="rbf", probability=True)])
def test_scikit_learns_own_checks_pass_with_probabilities(estimator):
    for one, check in estimator_checks_generator(estimator):
        # As for SVC, the class of the highest score need not have the highest probability, which one check asks for.
        if check.func is not check_classifiers_train:
            with suppress(SkipTest), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                check(one)


@every("cls", CLASSES)
def test_metadata_is_requested_as_from_an_estimator_of_scikit_learn(cls):
    theirs = type(cls.__name__, (BaseEstimator,), {"fit": cls.fit, "score": cls.score})()
    ours = cls()
    with sklearn.config_context(enable_metadata_routing=True):
        assert repr(ours.get_metadata_routing()) == repr(theirs.get_metadata_routing())
        for estimator in (ours, theirs):
            estimator.set_fit_request(left_out=True).set_score_request(sample_weight="weights")
        assert repr(ours.get_metadata_routing()) == repr(theirs.get_metadata_routing())
        for copy in (clone(ours), pickle.loads(pickle.dumps(ours))):
            assert repr(copy.get_metadata_routing()) == repr(theirs.get_metadata_routing())
        with pytest.raises(TypeError, match="'weight'"):
            ours.set_score_request(weight=True)
    with pytest.raises(RuntimeError, match="not enabled"):
        ours.set_score_request(sample_weight=True)


def test_with_metadata_routing_pipelines_are_searched_and_weights_reach_the_score():
    X, y = rows(), indicator()[:, -1]
    weights = np.random.default_rng(2).random(len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(MaxAbsScaler(), PAUM())
        search = GridSearchCV(pipeline, {"paum__tau_pos": [1, 10]}, error_score="raise").fit(X, y)
        assert 0 < search.score(X, y) == search.best_estimator_[-1].score(search.best_estimator_[0].transform(X), y)
        learner = PAUM().set_score_request(sample_weight=True).fit(X[:60], y[:60])
        scores = cross_val_score(learner, X, y, cv=[(range(60), range(60, 80))], params={"sample_weight": weights})
    assert scores.tolist() == [learner.score(X[60:], y[60:], weights[60:])] != [learner.score(X[60:], y[60:])]


def rows(n_rows=80, n_features=30, dtype=np.float64):
    rng = np.random.default_rng(0)
    return sp.csr_array(rng.normal(size=(n_rows, n_features)) * (rng.random((n_rows, n_features)) < 0.2), dtype=dtype)


def indicator(n_rows=80, n_topics=20):
    return (np.random.default_rng(1).random((n_rows, n_topics)) < np.linspace(0.02, 0.5, n_topics)).astype(int)


def facts_of(learner):
    return [
        np.nan_to_num(getattr(learner, name)).tolist()  # a topic without a weight has no margin
        for name in ("coef_", "intercept_", "n_epochs_", "n_updates_", "n_support_", "converged_", "margin_")
    ]


# --- labels in, topics out ---


@every("cls", CLASSES)
def test_a_topic_is_the_solution_of_its_column(cls):
    X, Y = rows(), indicator()
    learner = cls(lambda_=0.5, rho=2.0).fit(X, Y)
    chosen = learner.rules_for(Y.mean(axis=0))
    solutions = solve(
        X, [Problem.from_labels(2 * y - 1, rule, lambda_=0.5, rho=2.0) for y, rule in zip(Y.T, chosen, strict=True)]
    )
    assert learner.coef_.tolist() == [s.weights.tolist() for s in solutions]
    assert learner.intercept_.tolist() == [s.bias for s in solutions]
    assert learner.n_epochs_.tolist() == [s.n_epochs for s in solutions]
    assert learner.n_updates_.tolist() == [s.n_updates for s in solutions]
    assert learner.n_support_.tolist() == [len(s.support) for s in solutions]
    assert learner.converged_.tolist() == [s.converged for s in solutions]
    assert learner.stopped_ == [s.stopped for s in solutions]
    assert learner.n_iter_ == max(s.n_epochs for s in solutions)
    assert learner.prevalence_.tolist() == Y.mean(axis=0).tolist()


@every("form", [sp.csr_matrix, sp.csc_array, sp.coo_array, sp.lil_matrix, np.asarray, np.ndarray.tolist])
@every("dtype", [bool, int, float])
def test_an_indicator_may_be_dense_or_sparse_and_of_any_number_type(form, dtype):
    X, Y = rows(), indicator()
    expected = PAUM().fit(X, Y)
    learner = PAUM().fit(X, form(Y.astype(dtype)))
    assert facts_of(learner) == facts_of(expected)
    assert learner.classes_.tolist() == list(range(20))
    assert learner.predict(X).tolist() == (expected.decision_function(X) > 0).astype(int).tolist()


def test_explicit_zeros_of_an_indicator_are_zeros_and_stay_where_they_are():
    X, Y = rows(), indicator()
    explicit = sp.csc_array(Y + 1)
    explicit.data -= 1
    before = [explicit.data.copy(), explicit.indices.copy(), explicit.indptr.copy()]
    assert facts_of(PAUM().fit(X, explicit)) == facts_of(PAUM().fit(X, Y))
    for now, then in zip((explicit.data, explicit.indices, explicit.indptr), before, strict=True):
        assert now.tolist() == then.tolist()


@every("kind", [list, tuple, set, np.array])
@every("container", [list, tuple, lambda lists: pd.Series(lists)])
def test_lists_of_labels_make_one_ranker_a_label(kind, container):
    X, Y = rows(), indicator()
    names = np.array([f"topic {k:02}" for k in range(20)])
    learner = PAUM().fit(X, container([kind(list(names[row])) for row in Y == 1]))
    expected = PAUM().fit(X, Y)
    assert facts_of(learner) == facts_of(expected)
    assert learner.classes_.tolist() == names.tolist()
    assert learner.predict(X).tolist() == expected.predict(X).tolist()


@every("kind", [list, tuple, set])
@every("container", [list, pd.Series])
@pytest.mark.parametrize("name", ["topic {}".format, int])
def test_labels_are_scored_as_they_were_fitted(kind, container, name):
    X, Y = rows(), indicator(n_topics=3)
    lists = container([kind(name(topic) for topic in np.flatnonzero(row)) for row in Y])
    weights = np.random.default_rng(2).random(len(Y))
    learner, of_indicator = PAUM().fit(X, lists), PAUM().fit(X, Y)
    assert learner.score(X[:60], lists[:60], weights[:60]) == of_indicator.score(X[:60], Y[:60], weights[:60])
    assert learner.score(X, Y) == learner.score(X, sp.csr_array(Y)) == of_indicator.score(X, Y) > 0
    # Alone, lists of numbers of one length would be taken for the rows of an array.
    assert learner.score(X[:1], [kind(learner.classes_[learner.predict(X[:1])[0] > 0])]) == 1
    assert learner.score(X[:1], [kind([*lists[0], name(7)])]) == 0  # a label that was not in training
    search = GridSearchCV(PAUM(), {"tau_pos": [1, 10]}, cv=KFold(3), error_score="raise")
    assert search.fit(X, lists).best_score_ == search.fit(X, Y).best_score_
    for labels in (["topic 1"] * 80, lists[:79]):
        with pytest.raises(ValueError, match=r"mix|inconsistent"):
            learner.score(X, labels)


def test_lists_of_numbers_are_labels_unless_they_are_an_indicator():
    assert PAUM().fit(rows(3), [[7, 9], [], [9]]).classes_.tolist() == [7, 9]
    assert PAUM().fit(rows(3), [[1, 0], [0, 0], [0, 1]]).classes_.tolist() == [0, 1]


def test_two_classes_make_one_ranker_for_the_second():
    X, y = rows(), np.where(indicator()[:, 10], "wheat", "corn")
    learner = PAUM(1, 5).fit(X, y)
    assert learner.classes_.tolist() == ["corn", "wheat"]
    assert learner.coef_.shape == (1, 30)
    assert learner.intercept_.shape == (1,)
    assert learner.decision_function(X).shape == (80,)
    assert learner.predict(X).tolist() == ["wheat" if f > 0 else "corn" for f in learner.decision_function(X)]
    assert learner.coef_.tolist() == PAUM(1, 5).fit(X, indicator()[:, [10, 11]]).coef_[:1].tolist()


def test_more_classes_make_one_ranker_each_and_the_highest_score_wins():
    X, y = rows(), np.random.default_rng(2).choice(["corn", "oat", "rye", "wheat"], 80)
    learner = PAUM(1, 5).fit(X, y)
    assert learner.coef_.shape == (4, 30)
    assert learner.decision_function(X).shape == (80, 4)
    assert learner.predict(X).tolist() == learner.classes_[learner.decision_function(X).argmax(axis=1)].tolist()
    assert facts_of(learner) == facts_of(PAUM(1, 5).fit(X, y[:, None] == learner.classes_))


def test_a_column_of_labels_is_read_as_labels_with_a_warning():
    X, y = rows(), indicator()[:, 10]
    with pytest.warns(DataConversionWarning):
        learner = PAUM().fit(X, y[:, None])
    assert facts_of(learner) == facts_of(PAUM().fit(X, y))


def test_a_sparse_indicator_of_one_topic_gives_a_column():
    X, y = rows(), indicator()[:, [10]]
    learner = PAUM().fit(X, sp.csc_array(y))
    assert learner.decision_function(X).shape == learner.predict(X).shape == (80, 1)


def test_a_topic_without_positives_or_of_all_documents_is_trained_like_others():
    learner = PAUM().fit(rows(), np.column_stack([np.zeros(80), np.ones(80), indicator()[:, 3]]))
    assert learner.converged_.all()
    assert learner.prevalence_.tolist()[:2] == [0, 1]


@every(
    "Y, said",
    [
        (np.ones(80), r"y has only one class, 1\.0;"),
        (np.ones(80, int), "y has only one class, 1;"),
        (np.array(["corn"] * 80), "y has only one class, 'corn';"),
        (np.where(indicator()[:, 0], np.nan, 1), "Input y contains NaN"),
        (indicator() * 2, "an indicator Y must hold only 0 and 1"),
        (np.where(indicator(), np.nan, 0), "an indicator Y must hold only 0 and 1"),
        (indicator(n_rows=79), "X has 80 rows and Y has 79; they must be as many"),
        (sp.csc_array(indicator(n_rows=79)), "X has 80 rows and Y has 79"),
        (np.ones(79), "X has 80 rows and Y has 79"),
        (sp.csc_array((80, 0)), "Y has no column"),
        (np.zeros((80, 0)), "Y has no column"),
        ([[]] * 80, "y has only empty lists"),
        ([set()] * 80, "y has only empty lists"),
        (np.linspace(0, 1, 80), "Unknown label type: continuous"),
        (None, "requires y to be passed"),
    ],
)
def test_labels_that_make_no_problem_are_refused(Y, said):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=said):
            PAUM().fit(rows(), Y)


# --- scores ---


@every("form", [sp.csr_array, sp.csr_matrix, sp.csc_matrix, lambda X: X.toarray()])
@every("dtype", [np.float32, np.float64])
def test_scores_are_the_weighted_sums_and_rows_may_be_dense_or_sparse(form, dtype):
    X, Y = rows(dtype=dtype), indicator()
    learner = PAUM().fit(form(X), Y)
    assert learner.coef_.dtype == learner.intercept_.dtype == dtype
    assert learner.coef_.tolist() == PAUM().fit(X, Y).coef_.tolist()
    scores = learner.decision_function(form(X))
    assert scores.dtype == dtype
    np.testing.assert_allclose(scores, X.toarray() @ learner.coef_.T + learner.intercept_, rtol=1e-4, atol=1e-4)


def test_integers_are_trained_as_float64():
    X = np.random.default_rng(0).integers(0, 3, (80, 30))
    assert PAUM().fit(X, indicator()).coef_.dtype == np.float64


def test_every_training_document_gets_its_margin_when_the_private_coordinates_count():
    X, Y = rows(), indicator()
    learner = PAUM(1, 5).fit(X, Y)
    for k, solution in enumerate(learner.solutions_):
        private = np.zeros(80)
        private[solution.support] = solution.alpha
        margins = np.where(Y[:, k], 1, -1) * (learner.decision_function(X)[:, k] + private)
        assert np.all(margins > np.where(Y[:, k], 5, 1) - 1e-9)


@pytest.mark.parametrize("kernel", [None, "linear"])
def test_a_left_out_document_is_as_good_as_not_there(kernel):
    X, Y = rows(), indicator()
    mask = np.random.default_rng(2).random(Y.shape) < 0.3
    learner = PAUM(kernel=kernel).fit(X, Y, left_out=sp.csr_array(mask))
    for k in range(Y.shape[1]):
        used = ~mask[:, k]
        alone = PAUM(kernel=kernel).fit(X[used], Y[used][:, [k, 0]])
        assert learner.decision_function(X)[:, k] == pytest.approx(
            alone.decision_function(X)[:, 0], rel=1e-12, abs=1e-12
        )
        assert learner.prevalence_[k] == Y[used, k].mean()
        assert not mask[learner.support_[k], k].any()


@every(
    "form", [lambda mask: pd.DataFrame(mask, dtype="boolean"), lambda mask: mask.astype(np.float16), sp.lil_array, list]
)
def test_left_out_documents_may_come_in_any_form_of_an_indicator(form):
    X, Y = rows(), indicator()
    mask = np.random.default_rng(2).random(Y.shape) < 0.3
    assert facts_of(PAUM().fit(X, Y, left_out=form(mask))) == facts_of(PAUM().fit(X, Y, left_out=mask))


@pytest.mark.parametrize("left_out", [np.zeros((80, 19)), np.zeros((79, 20)), np.zeros(80), [0] * 80])
def test_left_out_documents_come_in_the_shape_of_an_indicator(left_out):
    with pytest.raises(ValueError, match=r"left_out must be of the shape of an indicator Y, here \(80, 20\)"):
        PAUM().fit(rows(), indicator(), left_out=left_out)
    with pytest.raises(ValueError, match="left_out must consist of 0 and 1"):
        PAUM().fit(rows(), indicator(), left_out=np.full((80, 20), np.nan))
    with pytest.raises(ValueError, match="left_out must be of the shape of an indicator Y"):
        PAUM().fit(rows(), indicator()[:, 5], left_out=np.zeros((80, 1)))


def test_there_are_no_probabilities_unless_they_are_asked_for():
    X, y = rows(), indicator()[:, 10]
    learner = PAUM(1, 5)
    assert not hasattr(learner, "predict_proba")
    assert hasattr(PAUM(1, 5, probability=True), "predict_proba")
    with pytest.raises(AttributeError) as refused:
        learner.predict_proba(X)
    assert "PAUM has scores, which are no probabilities: for these train PAUM(probability=True)" in str(
        refused.value.__cause__ or refused.value
    )
    probabilities = CalibratedClassifierCV(learner, cv=3).fit(X, y).predict_proba(X)
    assert probabilities.shape == (80, 2)
    assert roc_auc_score(y, probabilities[:, 1]) > 0.8


# --- parameters ---


@given(st.floats(0, 1), st.floats(-100, 100), st.floats(0, 1000))
def test_the_margin_from_prevalence_is_the_papers_formula(c, kappa, scale):
    assert prevalence_tau(c, kappa, scale) == pytest.approx(scale * (1 + math.exp(-kappa * c)) ** -1)


def test_the_margin_from_prevalence_is_defined_for_arrays_and_steep_kappas():
    assert prevalence_tau([0.0, 0.5], 0, 100).tolist() == [50, 50]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert prevalence_tau([0.0, 1.0], -1e6, 100).tolist() == [50, 0]


def test_common_topics_get_a_smaller_margin_than_rare_ones_by_default():
    learner = PAUM().fit(rows(), indicator())
    assert learner.tau_pos_.tolist() == prevalence_tau(indicator().mean(axis=0), -20, 100).tolist()
    assert np.all(learner.tau_pos_[learner.prevalence_.argsort()] == np.sort(learner.tau_pos_)[::-1])


def test_a_bias_from_prevalence_is_of_the_size_that_each_topic_would_be_given_alone():
    X, Y = rows(), indicator()
    learner = PAUM(1, 50, rho="prevalence").fit(X, Y)
    for k, c in enumerate(learner.prevalence_):
        alone = PAUM(1, 50, rho=1 / math.sqrt(1 + 200 * c)).fit(X, Y[:, k])
        assert learner.coef_[k].tolist() == alone.coef_[0].tolist()
        assert learner.intercept_[k] == alone.intercept_[0]


@every(
    "name, learner, rule",
    [
        ("pa", PA(eta=0.5), rules.PA(0.5)),
        ("pam", PAM(tau=3, eta=0.5), rules.PAM(3, 0.5)),
        ("paum", PAUM(-1, 7, eta=0.5), rules.PAUM(-1, 7, 0.5)),
        ("t-margitron", TMargitron(0.1, 2), rules.TMargitron(0.1, 2)),
        ("l-margitron", LMargitron(0.1, 2), rules.LMargitron(0.1, 2)),
        ("micra", Micra(50, 0.1, 0.05, 0.9), rules.MICRA(50, 0.1, 0.05, 0.9)),
        ("cramma", Cramma(0.1, 0.2, 0.3), rules.CRAMMA(0.1, 0.2, 0.3)),
        ("alma", Alma(0.2), rules.ALMA(0.2)),
        ("alma", Alma(0.2, B=5, C=1), rules.ALMA(0.2, 5, 1)),
        ("romma", Romma(delta=0.3), rules.ROMMA(0.3)),
        ("pdm", DynamicMargin(epsilon=0.3), rules.PDM(0.3)),
    ],
)
def test_each_learner_trains_by_the_rule_of_its_name(name, learner, rule):
    X, Y = rows(), indicator()
    assert LEARNERS[name] is type(learner)
    assert learner.rules_for(Y.mean(axis=0)) == [rule] * 20
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        learner.set_params(max_epochs=30).fit(X, Y)
    problems = [Problem(np.flatnonzero(topic).astype(np.int32), rule, lambda_=1.0, max_epochs=30) for topic in Y.T]
    assert learner.coef_.tolist() == [solution.weights.tolist() for solution in solve(X, problems)]


def test_every_rule_has_a_learner():
    assert sorted(learner.rule.__name__ for learner in CLASSES) == sorted(rules.RULES)


# --- margins and support ---


@every("cls", CLASSES)
def test_the_margins_are_those_of_the_rows_in_the_space_that_was_trained_in(cls):
    X, Y = rows(), indicator()
    learner = cls(lambda_=0.5, rho=2.0).fit(X, Y)
    for k, solution in enumerate(learner.solutions_):
        alpha = np.zeros(80)
        alpha[learner.support_[k]] = solution.alpha
        labels = np.where(Y[:, k], 1, -1)
        least = np.min(labels * (learner.decision_function(X)[:, k] + 0.5 * alpha))
        inner = learner.coef_[k] @ learner.coef_[k] + 0.5 * alpha @ alpha
        assert learner.margin_[k] == pytest.approx(least / np.sqrt(inner))
        length = np.sqrt(inner + (learner.intercept_[k] / 2.0) ** 2)
        assert learner.directional_margin_[k] == pytest.approx(least / length)
        assert learner.certificate_[k] == pytest.approx(least / length * np.abs(alpha).sum() / length)
        assert learner.certificate_[k] <= 1 + 1e-12


# --- kernels ---


@every("cls", CLASSES)
@every("dtype", [np.float32, np.float64])
def test_a_linear_kernel_ranks_as_the_weights_do(cls, dtype):
    X, Y = rows(dtype=dtype), indicator()
    primal, dual = cls(mini_epochs=2).fit(X, Y), cls(mini_epochs=2, kernel="linear").fit(X, Y)
    assert not hasattr(dual, "coef_")
    rtol = 1e-9 if dtype == np.float64 else 0.05  # in float32 a single decision may fall the other way
    np.testing.assert_allclose(dual.n_updates_, primal.n_updates_, rtol=0 if dtype == np.float64 else 0.2)
    np.testing.assert_allclose(dual.directional_margin_, primal.directional_margin_, rtol=rtol)
    if dtype == np.float64:
        np.testing.assert_allclose(dual.decision_function(X), primal.decision_function(X), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("form", [lambda X: X, lambda X: X.toarray()], ids=["sparse", "dense"])
def test_kernels_by_name_as_a_function_and_computed_before_make_one_ranker(form):
    X, Y = form(rows()), indicator()
    new = form(rows()[:30])
    named = PAM(kernel="rbf", kernel_params={"gamma": 0.5}).fit(X, Y)
    by_function = PAM(kernel=lambda A, B: rbf_kernel(A, B, gamma=0.5)).fit(X, Y)
    before = PAM(kernel="precomputed").fit(rbf_kernel(X, gamma=0.5), Y)
    expected = named.decision_function(new)
    np.testing.assert_allclose(by_function.decision_function(new), expected, rtol=1e-9)
    np.testing.assert_allclose(before.decision_function(rbf_kernel(new, X, gamma=0.5)), expected, rtol=1e-9)
    assert before.__sklearn_tags__().input_tags.pairwise
    # every training row is on its side: a Gaussian kernel and the λ trick can separate anything
    private = np.array([np.bincount(s.support, s.alpha, 80) for s in named.solutions_]).T
    assert np.all((named.decision_function(X) + private > 0) == Y)


def test_a_kernel_that_does_not_exist_is_refused_by_name():
    with pytest.raises(ValueError, match="No kernel 'rfb'"):
        PAM(kernel="rfb").fit(rows(), indicator())


def test_rho_R_of_a_kernel_is_the_length_of_the_longest_row_in_its_space():
    X, Y = rows(), indicator()
    assert (
        PAM(rho="R", kernel="rbf").fit(X, Y).intercept_.tolist()
        == PAM(rho=1.0, kernel="rbf").fit(X, Y).intercept_.tolist()
    )


def test_rho_R_is_the_length_of_the_longest_row():
    X, Y = rows(), indicator()
    longest = float(np.sqrt(X.multiply(X).sum(axis=1).max()))
    assert facts_of(PAUM(rho="R").fit(X, Y)) == facts_of(PAUM(rho=longest).fit(X, Y))


@every(
    "parameters",
    [
        {"tau_neg": "a"}, {"tau_neg": np.inf}, {"tau_pos": "often"}, {"tau_pos": np.nan}, {"kappa": None},
        {"scale": "S"}, {"eta": 0}, {"eta": -1.0}, {"eta": np.inf}, {"lambda_": -0.1}, {"rho": -1}, {"rho": "r"},
        {"max_epochs": 0}, {"max_epochs": 1.5}, {"random_state": -1}, {"n_jobs": 1.5}, {"warm_start": "yes"},
    ],
)  # fmt: skip
def test_a_parameter_out_of_range_is_refused_by_name(parameters):
    (name,) = parameters
    with pytest.raises(ValueError, match=f"The '{name}' parameter of PAUM must be"):
        PAUM(**parameters).fit(rows(), indicator())


def test_pam_refuses_a_margin_that_is_not_a_number():
    with pytest.raises(ValueError, match="The 'tau' parameter of PAM must be"):
        PAM(np.nan).fit(rows(), indicator())


def test_parameters_are_got_set_and_cloned():
    learner = PAUM(1, 50, kappa=-5, random_state=3)
    assert clone(learner).get_params() == learner.get_params()
    assert learner.set_params(tau_pos="prevalence").get_params()["tau_pos"] == "prevalence"
    assert PAM(3).get_params()["tau"] == 3
    assert "PAUM" in learner._repr_html_()


# --- facts, warnings, repeatability ---


def test_the_warning_says_how_many_topics_did_not_converge_and_they_say_so_themselves():
    X, Y = rows(), indicator()
    with pytest.warns(
        ConvergenceWarning, match=r"\d+ of 20 topics did not converge in 3 epochs; raise max_epochs"
    ) as w:
        learner = PAUM(1, 5, max_epochs=3).fit(X, Y)
    late = int(str(w[0].message).split()[0])
    assert 0 < late == np.sum(~learner.converged_)
    assert sum(stopped.startswith("did not converge: ") for stopped in learner.stopped_) == late
    assert w[0].filename == __file__, "the warning points at the call of fit"


def test_the_facts_are_plain_lists_with_one_entry_a_topic():
    for cls in CLASSES:
        facts = cls().fit(rows(), indicator()).facts()
        adapted = ["tau_pos"] if cls is PAUM else []
        margins = ["certificate", "directional_margin", "margin"]
        assert sorted(facts) == sorted([*margins, "epochs", "stopped", "support", *adapted, "updates"])
        assert all(type(values) is list and len(values) == 20 for values in facts.values())
        assert all(value is None or type(value) in (int, float, str) for values in facts.values() for value in values)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_two_jobs_give_the_bits_of_one(dtype):
    X, Y = rows(dtype=dtype), indicator()
    assert facts_of(PAUM(n_jobs=2).fit(X, Y)) == facts_of(PAUM(n_jobs=1).fit(X, Y))


def test_the_same_seed_gives_the_same_bits_and_another_seed_others():
    X, Y = rows(), indicator()
    assert facts_of(PAUM(random_state=1).fit(X, Y)) == facts_of(PAUM(random_state=1).fit(X, Y))
    assert facts_of(PAUM(random_state=1).fit(X, Y)) != facts_of(PAUM(random_state=2).fit(X, Y))


def test_progress_is_told_of_every_topic():
    counted = []
    PAUM(n_jobs=2).fit(rows(), indicator(), progress=counted.append)
    assert sum(counted) == 20


def test_a_pickled_learner_scores_as_before():
    X = rows()
    learner = PAUM().fit(X, indicator())
    assert pickle.loads(pickle.dumps(learner)).decision_function(X).tolist() == learner.decision_function(X).tolist()


def test_the_callers_rows_stay_as_they_are():
    X = rows()[:, ::-1]  # columns out of order
    before = [X.data.copy(), X.indices.copy(), X.indptr.copy()]
    learner = PAUM().fit(X, indicator())
    for now, then in zip((X.data, X.indices, X.indptr), before, strict=True):
        assert now.tolist() == then.tolist()
    assert facts_of(learner) == facts_of(PAUM().fit(X.toarray(), indicator()))


# --- warm start ---


def test_a_warm_start_goes_on_where_the_last_call_ended():
    X, Y = rows(), indicator()
    learner = PAUM(1, 5, max_epochs=3, warm_start=True)
    with pytest.warns(ConvergenceWarning):
        learner.fit(X, Y)
    learner.set_params(max_epochs=1000).fit(X, Y)
    whole = PAUM(1, 5).fit(X, Y)
    assert learner.n_updates_.tolist() == whole.n_updates_.tolist()
    assert learner.coef_.tolist() == whole.coef_.tolist()
    learner.fit(X, Y)
    assert learner.n_updates_.tolist() == whole.n_updates_.tolist()
    assert learner.n_epochs_.tolist() == [1] * 20
    assert learner.coef_.tolist() == whole.coef_.tolist()


@every(
    "X, Y",
    [
        (rows(n_rows=50), indicator(n_rows=50)),
        (rows(n_features=20), indicator()),
        (rows(dtype=np.float32), indicator()),
        (rows(), indicator(n_topics=5)),
    ],
)
def test_a_warm_start_on_data_of_another_shape_starts_from_zero(X, Y):
    learner = PAUM(warm_start=True).fit(rows(), indicator())
    assert facts_of(learner.fit(X, Y)) == facts_of(PAUM().fit(X, Y))


def test_without_warm_start_every_call_starts_from_zero():
    learner = PAUM().fit(rows(), indicator())
    again = PAUM().fit(rows(), indicator())
    assert facts_of(learner.fit(rows(), indicator())) == facts_of(again)


# --- in company ---

TEXTS = ["wheat and corn harvest", "corn prices fall", "crude oil barrel", "oil tanker and crude", "wheat exports"] * 8
TOPICS = ["grain", "grain", "oil", "oil", "grain"] * 8


def test_a_pipeline_from_text_to_topics_learns_and_cross_validates():
    pipeline = make_pipeline(TfidfVectorizer(), PAM())
    assert pipeline.fit(TEXTS, TOPICS).predict(["a barrel of crude", "corn and wheat"]).tolist() == ["oil", "grain"]
    assert cross_val_score(pipeline, TEXTS, TOPICS, cv=4).tolist() == [1, 1, 1, 1]


def test_a_grid_search_chooses_the_margin():
    X, y = rows(), np.sign(rows() @ np.arange(-15, 15))
    search = GridSearchCV(PAUM(max_epochs=5), {"tau_pos": [0.1, 1, 50, "prevalence"]}, cv=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        search.fit(X, y)
    assert search.best_params_["tau_pos"] in [0.1, 1, 50, "prevalence"]
    assert search.best_score_ > 0.7


@every("thing", [*CLASSES, PAUM.fit, PAUM.predict, PAUM.decision_function, PAUM.facts, prevalence_tau])
def test_public_things_are_documented_with_their_sources(thing):
    assert thing.__doc__
    if thing in CLASSES:
        assert "Source: " in thing.__doc__
        for name in thing().get_params():
            assert len(re.findall(rf"^ *{name} : ", thing.__doc__, flags=re.MULTILINE)) == 1


@every("kernel", [None, "linear"])
@every("learner", [Micra(max_epochs=20), Romma(), Alma(), PAUM()])
def test_the_unit_of_scores_is_the_length_of_the_weights_where_the_rule_leaves_it_free(learner, kernel):
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 5))
    y = X[:, 0] + 0.1 * random.normal(size=40) > 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        [solution] = clone(learner).set_params(kernel=kernel, lambda_=0.5, rho=2.0).fit(X, y).solutions_
    a = np.concatenate([solution.alpha @ X[solution.support], [solution.bias / 2], 0.5**0.5 * solution.alpha])
    assert solution.unit == pytest.approx(1 if isinstance(learner, PAUM) else np.linalg.norm(a))
