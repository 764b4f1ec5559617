"""A promise for any classifier of scikit-learn is made from its out-of-fold scores, and kept as often as was said."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import check_estimator

import textcat
from textcat import MultilabelStratifiedGroupKFold, MultilabelStratifiedKFold, PrecisionThresholds
from textcat.base.sigmoid import expit
from textcat.evaluation.promises import promise_precision

LINEAR = OneVsRestClassifier(LogisticRegression(solver="newton-cholesky"))  # the fastest for few columns


def world(seed, n, *, single=False, n_classes=6):
    """Return rows, labels, and a function from rows to the probabilities by which the labels are drawn."""
    generator = np.random.default_rng(seed)
    weights = generator.normal(size=(8, n_classes)) * generator.uniform(0.5, 1.5, n_classes)
    biases = generator.uniform(-3, -1, n_classes)

    def probabilities(X):
        z = X @ weights + biases
        odds = np.exp(z)
        return odds / odds.sum(axis=1, keepdims=True) if single else expit(z)

    X = generator.normal(size=(n, 8))
    p = probabilities(X)
    if single:
        return X, (p.cumsum(axis=1) > generator.random((n, 1))).argmax(axis=1), probabilities
    return X, (generator.random(p.shape) < p).astype(int), probabilities


@pytest.mark.parametrize(
    "estimator",
    [
        # As the next one, but with probabilities, which the last one has, too.
        pytest.param(
            PrecisionThresholds(LogisticRegression()),
            marks=pytest.mark.where_long("some learners are checked by scikit-learn"),
        ),
        PrecisionThresholds(make_pipeline(MaxAbsScaler(), LinearSVC()), cv=2),
        PrecisionThresholds(KNeighborsClassifier(), cv=2),  # also with several classes per sample
    ],
    ids=lambda model: type(model.estimator).__name__,
)
@pytest.mark.filterwarnings("ignore:No promise", "ignore:invalid value encountered in cast")
def test_scikit_learns_own_checks_pass(estimator):
    checks = check_estimator(estimator, on_skip=None, on_fail=None)
    assert [(check["check_name"], check["exception"]) for check in checks if check["status"] == "failed"] == []
    assert sum(check["status"] == "passed" for check in checks) > 40


def test_thresholds_are_those_of_scores_of_estimators_trained_without_the_fold():
    X, Y, _ = world(0, 600)
    model = PrecisionThresholds(LINEAR, cv=4).fit(X, Y)
    scores = np.empty(Y.shape)
    for train, test in MultilabelStratifiedKFold(4).split(X, Y):
        for j in range(Y.shape[1]):
            scores[test, j] = clone(LINEAR.estimator).fit(X[train], Y[train, j]).predict_proba(X[test])[:, 1]
    thresholds, above, correct = promise_precision(scores, Y, 0.9, 0.9)
    assert np.isfinite(thresholds).any()
    np.testing.assert_allclose(model.thresholds_, thresholds)
    assert model.n_above_.tolist() == above.tolist() == (scores > thresholds).sum(axis=0).tolist()
    assert model.n_correct_.tolist() == correct.tolist() == ((scores > thresholds) & (Y > 0)).sum(axis=0).tolist()
    new = world(1, 300)[0]
    given = LINEAR.fit(X, Y).predict_proba(new) > thresholds
    assert model.predict_automatic(new).tolist() == given.tolist()
    assert model.predict(new).tolist() == given.astype(int).tolist()


@pytest.mark.parametrize("n_classes", [2, 4])
def test_of_one_class_per_sample_only_the_class_of_the_highest_score_is_given(n_classes):
    X, y, _ = world(0, 800, single=True, n_classes=n_classes)
    names = np.array(["wheat", "gold", "ship", "oil"])[:n_classes]
    y = np.sort(names)[y]
    model = PrecisionThresholds(LogisticRegression(), precision=0.8).fit(X, y)
    scores = np.full((len(y), n_classes), np.nan)
    for train, test in StratifiedKFold(5).split(X, y):
        of_fold = LogisticRegression().fit(X[train], y[train]).predict_proba(X[test])
        for i, row in zip(test, of_fold, strict=True):
            scores[i, np.argmax(row)] = max(row)
    thresholds, above, correct = promise_precision(scores, y[:, None] == np.unique(y), 0.8, 0.9)
    np.testing.assert_allclose(model.thresholds_, thresholds)
    assert (model.n_above_.tolist(), model.n_correct_.tolist()) == (above.tolist(), correct.tolist())
    assert model.classes_.tolist() == sorted(names)
    new = world(3, 300, single=True, n_classes=n_classes)[0]
    predicted, given = model.predict(new), model.predict_automatic(new)
    assert predicted.tolist() == LogisticRegression().fit(X, y).predict(new).tolist()
    assert 0 < given.sum() < len(new)
    for label, row in zip(predicted, given, strict=True):
        assert model.classes_[row].tolist() in ([], [label])


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.filterwarnings("ignore:No promise")
def test_as_many_promises_are_kept_as_was_said(single):
    kept = []
    for seed in range(20):
        X, y, probabilities = world(seed, 800, single=single)
        model = PrecisionThresholds(RidgeClassifier(), precision=0.8, confidence=0.9, cv=3).fit(X, y)
        new = np.random.default_rng(1000 + seed).normal(size=(5000, 8))
        given, p = model.predict_automatic(new), probabilities(new)
        kept += [p[given[:, j], j].mean() >= 0.8 for j in np.flatnonzero(given.any(axis=0))]
    assert len(kept) > 30
    assert np.mean(kept) >= 0.9


@pytest.mark.filterwarnings("ignore:Label not 1 is present")
@pytest.mark.parametrize(
    "estimator",
    [
        LINEAR,
        KNeighborsClassifier(),
        RandomForestClassifier(5, random_state=0),
        textcat.PAUM(tau_pos=1),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_rows_and_labels_may_be_sparse_and_scores_of_any_form(estimator):
    X, Y = make_multilabel_classification(400, n_classes=4, random_state=0)
    Y[:, 1] = 0  # a class that no sample has
    dense = PrecisionThresholds(estimator, 0.7, 0.8).fit(X, Y)
    sparse = PrecisionThresholds(clone(estimator), 0.7, 0.8).fit(sp.csr_array(X), sp.csr_array(Y))
    assert np.isfinite(dense.thresholds_).any()
    assert np.isinf(dense.thresholds_[1])
    np.testing.assert_allclose(sparse.thresholds_, dense.thresholds_, rtol=1e-4)
    given = dense.predict(X)
    assert given.shape == Y.shape
    assert not given[:, np.isinf(dense.thresholds_)].any()
    assert given.any()


def test_scores_of_two_classes_that_are_no_probabilities_count_for_both():
    X, y, _ = world(0, 800, single=True, n_classes=2)
    model = PrecisionThresholds(LinearSVC(), 0.8).fit(X, y)
    assert np.isfinite(model.thresholds_).all()
    scores = model.decision_function(X)
    assert model.predict(X).tolist() == model.estimator_.predict(X).tolist()
    low, high = model.thresholds_
    given = np.column_stack([(scores <= 0) & (-scores > low), (scores > 0) & (scores > high)])
    assert model.predict_automatic(X).tolist() == given.tolist()


def test_each_class_may_have_a_precision_of_its_own():
    X, Y, _ = world(0, 800)
    model = PrecisionThresholds(LINEAR, precision=[0.7, 0.95, 0.7, 0.7, 0.7, 0.7]).fit(X, Y)
    promised = np.isfinite(model.thresholds_)
    share = model.n_correct_[promised] / model.n_above_[promised]
    assert (share >= np.array([0.7, 0.95, 0.7, 0.7, 0.7, 0.7])[promised]).all()


def test_pipelines_and_searches_take_it():
    texts = [f"{word} {'wheat' if i % 3 else 'gold'}" for i, word in enumerate(["price", "export", "mine"] * 40)]
    y = np.array(["grain" if "wheat" in text else "metal" for text in texts])
    pipeline = make_pipeline(textcat.TfIdf(), PrecisionThresholds(LinearSVC(), cv=3))
    assert pipeline.fit(texts, y).predict(["wheat"]).tolist() == ["grain"]
    assert pipeline[-1].predict_automatic(pipeline[:-1].transform(["wheat"])).tolist() == [[True, False]]
    of_texts = PrecisionThresholds(make_pipeline(textcat.TfIdf(), LinearSVC()), precision=0.8)
    grid = {"precision": [0.7, 0.8], "estimator__linearsvc__C": [0.1, 1]}
    search = GridSearchCV(of_texts, grid, cv=3).fit(texts, y)
    assert search.best_score_ == 1
    assert clone(search.best_estimator_).get_params()["precision"] == search.best_params_["precision"]


def test_samples_of_a_group_are_in_one_fold():
    X, Y, _ = world(0, 300)
    X, Y, groups = np.repeat(X, 2, axis=0), np.repeat(Y, 2, axis=0), np.arange(600) // 2
    cv = MultilabelStratifiedGroupKFold(3)
    model = PrecisionThresholds(LINEAR, 0.7, cv=cv).fit(X, Y, groups=groups)
    splits = [*cv.split(X, Y, groups)]
    assert model.thresholds_.tolist() == PrecisionThresholds(LINEAR, 0.7, cv=splits).fit(X, Y).thresholds_.tolist()


def test_without_any_promise_a_sentence_says_what_it_takes():
    X, Y, _ = world(0, 40)
    with pytest.warns(
        UserWarning, match=r"at least 22 samples.*and the largest class has \d+\): give a lower precision"
    ):
        model = PrecisionThresholds(LINEAR, cv=2).fit(X, Y)
    assert not model.predict(X).any()


def test_without_any_promise_a_sentence_says_if_classes_are_large_enough():
    X = np.random.default_rng(0).normal(size=(300, 3))
    with pytest.warns(UserWarning, match=r"a class has enough samples, 100, but .* wrong\): give a lower precision"):
        PrecisionThresholds(LINEAR, cv=2).fit(X, np.arange(300) % 3)


def test_what_cannot_be_fitted_is_said():
    X, y, _ = world(0, 90, single=True, n_classes=3)
    for model, labels, sentence in (
        (PrecisionThresholds(LogisticRegression(), precision=90), y, r"precision=90 must be between 0 and 1"),
        (PrecisionThresholds(LogisticRegression(), confidence=1.0), y, r"confidence=1.0 must be between 0 and 1"),
        (PrecisionThresholds(LogisticRegression(), precision=[0.9, 0.8]), y, "give one number, or one for each class"),
        (PrecisionThresholds(SVC(decision_function_shape="ovo")), np.arange(90) % 4, "ovr"),
        (PrecisionThresholds(MaxAbsScaler()), y, "has neither"),
        (PrecisionThresholds(LogisticRegression()), np.zeros(90), "more than one class"),
    ):
        with pytest.raises(ValueError, match=sentence):
            model.fit(X, labels)


def as_lists(Y, kind):
    return [kind(f"class {column}" for column in np.flatnonzero(row)) for row in Y]


@pytest.mark.parametrize(("estimator", "kind"), [(LINEAR, list), (textcat.PAUM(), tuple), (textcat.PAUM(), set)])
def test_lists_of_classes_have_the_thresholds_of_their_indicator(kind, estimator):
    X, Y, _ = world(3, 300)
    of_indicator = PrecisionThresholds(estimator, precision=0.6).fit(X, Y)
    of_lists = PrecisionThresholds(estimator, precision=0.6).fit(X, as_lists(Y, kind))
    assert of_lists.classes_.tolist() == [f"class {column}" for column in range(6)]
    assert np.array_equal(of_lists.thresholds_, of_indicator.thresholds_)
    assert np.array_equal(of_lists.predict(X), of_indicator.predict(X))
    assert of_lists.score(X, as_lists(Y, kind)) == of_lists.score(X, Y) == of_indicator.score(X, Y) > 0


@pytest.mark.parametrize("estimator", [LINEAR, textcat.PAUM(), LogisticRegression()])
def test_a_single_class_has_the_threshold_of_the_answer_yes(estimator):
    X, Y, _ = world(3, 300)
    is_in = Y[:, 0]
    of_answers = PrecisionThresholds(estimator, precision=0.6).fit(X, is_in)
    lists = as_lists(Y[:, :1], list)
    for labels in (lists, sp.csr_array(is_in[:, None])):
        model = PrecisionThresholds(estimator, precision=0.6).fit(X, labels)
        assert len(model.classes_) == 1
        assert (model.n_above_, model.n_correct_) >= (of_answers.n_above_[1:], of_answers.n_correct_[1:]) > (0, 0)
        predicted = model.predict(X)
        assert np.array_equal(predicted, model.predict_automatic(X))
        assert predicted.shape == (300, 1)
        assert model.score(X, labels) == np.mean(predicted[:, 0] == is_in)


def test_labels_may_be_a_column_of_lists_of_polars():
    polars = pytest.importorskip("polars", reason="polars is not installed")
    X, Y, _ = world(3, 300)
    lists = as_lists(Y, list)
    for model in (textcat.PAUM(), PrecisionThresholds(textcat.PAUM(), precision=0.6)):
        of_column = model.fit(X, polars.Series(lists))
        assert of_column.score(X, polars.Series(lists)) == of_column.score(X, lists)
        assert np.array_equal(of_column.predict(X), model.fit(X, lists).predict(X))


def test_of_samples_of_one_class_any_column_says_whether_it_is_automatic():
    X, y, _ = world(4, 400, single=True)
    model = PrecisionThresholds(LINEAR, precision=0.6).fit(X, y)
    automatic = model.predict_automatic(X)
    assert 0 < automatic.any(axis=1).sum() < len(X)
    rows, columns = np.nonzero(automatic)
    assert np.array_equal(model.classes_[columns], model.predict(X)[rows])
    assert len(rows) == automatic.any(axis=1).sum()
