"""Promise a precision for each class of any scikit-learn classifier, by thresholds on its out-of-fold scores."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import check_cv, cross_val_predict
from sklearn.utils import column_or_1d, get_tags, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from textcat.base.label_lists import accuracy, different_labels, indicator_of_lists, plain_labels, sparse_indicator
from textcat.base.parameters import is_whole
from textcat.evaluation.promises import nearest_to_a_promise, promise_precision
from textcat.evaluation.splitters import MultilabelStratifiedKFold


def _if_estimator_has(method: str) -> Callable[[PrecisionThresholds], bool]:
    """Return the condition under which a method is delegated to the estimator."""
    return lambda model: hasattr(getattr(model, "estimator_", model.estimator), method)


class PrecisionThresholds(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Find for each class the lowest threshold above which a classifier's precision can be promised.

    Out-of-fold scores show the precision of each class above a threshold, and exact binomial tests decide which
    precision can be promised. A class with too few samples, or too low a precision, gets no promise. On later samples
    from the same distribution, the expected share of broken promises is at most 1 - `confidence`: see
    `textcat.evaluation.promises`. Finally, the estimator is fitted to all samples.

    If samples may have several classes, `predict` returns those with a score above their threshold. If samples have one
    class each, `predict` returns the class with the highest score, and `predict_automatic`, which has a column for each
    class, is True for that class if the score is above the threshold: `.any(axis=1)` selects these samples.

    Parameters
    ----------
    estimator : classifier with `predict_proba` or `decision_function`
        If it has both, probabilities are used: with one class per sample, they rank certainty better.
    precision : float or array-like of shape (n_classes,), default=0.9
        The precision to promise, of each class; in (0, 1).
    confidence : float, default=0.9
        The share of promises that should hold, in (0, 1).
    cv : int, splitter of scikit-learn or iterable of splits, default=5
        Folds for out-of-fold scores, each sample in one of them. int: the number of folds of `StratifiedKFold` or, for
        several classes per sample, `MultilabelStratifiedKFold`. Similar samples, such as duplicates, should be in one
        fold: use `MultilabelStratifiedGroupKFold`.
    n_jobs : int, optional
        Number of folds to fit at the same time, as in scikit-learn.

    Attributes
    ----------
    estimator_ : classifier
        The estimator, fitted to all samples.
    classes_ : ndarray of shape (n_classes,)
        The classes; column numbers if `y` was an indicator matrix.
    thresholds_ : ndarray of shape (n_classes,)
        inf where no precision can be promised.
    n_above_, n_correct_ : ndarray of shape (n_classes,), int
        How many samples of `fit` have an out-of-fold score above the threshold, and how many of these have the class.
    multilabel_ : bool
        Whether a sample may have several classes.
    n_features_in_, feature_names_in_
        As of `estimator_`, if it has them.
    """

    def __init__(
        self,
        estimator: Any,
        precision: float | ArrayLike = 0.9,
        confidence: float = 0.9,
        cv: Any = 5,
        n_jobs: int | None = None,
    ):
        self.estimator, self.precision, self.confidence = estimator, precision, confidence
        self.cv, self.n_jobs = cv, n_jobs

    def fit(self, X: Any, y: Any, groups: Any = None) -> PrecisionThresholds:
        """Find the thresholds, and fit the estimator to all samples; warn if no class has a promise.

        Parameters
        ----------
        X : array-like, sparse matrix or other rows of shape (n_samples, ...)
            Passed to the estimator.
        y : array-like of shape (n_samples,), or array-like or sparse of shape (n_samples, n_classes), 0 or 1
            Instead of an indicator, also a list, tuple or set of classes for each sample; the estimator is fitted to
            their indicator.
        groups : array-like of shape (n_samples,), optional
            The group of each sample, for a `cv` that keeps groups together.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter or `y` is out of range, a label is missing, or the estimator does not return one score per
            class.
        """
        X, y, groups = indexable(X, y, groups)
        y, labels, self.classes_, self._fitted_to_lists = _read_classes(y)
        self.multilabel_ = y.ndim == 2 or len(self.classes_) == 1
        precision = self._checked_precision()
        cv = MultilabelStratifiedKFold(self.cv) if y.ndim == 2 and is_whole(2)(self.cv) else self.cv
        splits = [*check_cv(cv, y, classifier=True).split(X, y, groups)]
        method = _score_method(self.estimator)
        responses = cross_val_predict(self.estimator, X, y, cv=splits, n_jobs=self.n_jobs, method=method)
        scores = self._assignable_scores(self._class_scores(responses))
        self.thresholds_, self.n_above_, self.n_correct_ = promise_precision(scores, labels, precision, self.confidence)
        if np.isinf(self.thresholds_).all():
            warnings.warn(_no_promise(precision, self.confidence, labels), stacklevel=2)
        self.estimator_ = clone(self.estimator).fit(X, y)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of the highest score of each sample, shape (n_samples,).

        If `y` was an indicator matrix or had lists of classes, return an indicator of shape (n_samples, n_classes),
        int: 1 where `predict_automatic` is True.
        """
        check_is_fitted(self)
        if self.multilabel_:
            return self.predict_automatic(X).astype(int)
        return self.classes_[self._scores(X).argmax(axis=1)]

    def predict_automatic(self, X: Any) -> NDArray[np.bool_]:
        """Return which classes may be assigned to each sample without a person, because their precision is promised.

        These are the classes whose score is above the threshold and, if samples have one class each, is the highest.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), bool
        """
        check_is_fitted(self)
        return self._assignable_scores(self._scores(X)) > self.thresholds_  # nan is never above

    @available_if(_if_estimator_has("decision_function"))
    def decision_function(self, X: Any) -> Any:
        """Return the result of the estimator's `decision_function`."""
        check_is_fitted(self)
        return self.estimator_.decision_function(X)

    @available_if(_if_estimator_has("predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """Return the result of the estimator's `predict_proba`."""
        check_is_fitted(self)
        return self.estimator_.predict_proba(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of `predict`: the fraction of samples of which the class, or every class, is right.

        Parameters
        ----------
        X, y
            As for `fit`.
        sample_weight : array-like of shape (n_samples,), optional
            How much each sample counts.

        Returns
        -------
        float
        """
        return accuracy(y, self.predict(X), self.classes_, sample_weight, lists=self._fitted_to_lists)

    def __sklearn_tags__(self) -> Any:
        tags, of_estimator = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.input_tags = of_estimator.input_tags
        if of_estimator.classifier_tags is not None:
            tags.classifier_tags = of_estimator.classifier_tags
        return tags

    def _checked_precision(self) -> NDArray[np.float64]:
        """Return the precision to promise for each class; raise ValueError if it or the confidence is out of range."""
        if not (isinstance(self.confidence, Real) and 0 < self.confidence < 1):
            raise ValueError(f"confidence={self.confidence!r} must be between 0 and 1")
        precision = np.full((), np.nan)
        with suppress(TypeError, ValueError):  # of anything but numbers
            precision = np.asarray(self.precision, np.float64)
        if not ((precision > 0) & (precision < 1)).all():
            raise ValueError(f"precision={self.precision!r} must be between 0 and 1")
        if precision.shape not in ((), self.classes_.shape):
            raise ValueError(
                f"precision has the shape {precision.shape}, for {len(self.classes_)} classes; give one number, or one "
                "for each class"
            )
        return np.broadcast_to(precision, self.classes_.shape)

    def _scores(self, X: Any) -> NDArray[Any]:
        return self._class_scores(getattr(self.estimator_, _score_method(self.estimator_))(X))

    def _class_scores(self, responses: Any) -> NDArray[Any]:
        """Return scores of shape (n_samples, n_classes) from what an estimator returns."""
        # some multilabel estimators return, for each class, the probabilities of 0 and of 1
        if isinstance(responses, list):
            responses = np.column_stack([of_class[:, -1] for of_class in responses])
        scores = np.asarray(responses)
        if len(self.classes_) == 1:  # the estimator is fitted to 0 and 1
            return scores[:, None] if scores.ndim == 1 else scores[:, -1:]
        if scores.ndim == 1:
            scores = np.column_stack([-scores, scores])
        if scores.shape[1] != len(self.classes_):
            raise ValueError(
                f"The estimator has {scores.shape[1]} scores of each sample, for {len(self.classes_)} classes; "
                "give one with a score for each class, such as SVC(decision_function_shape='ovr')"
            )
        return scores

    def _assignable_scores(self, scores: NDArray[Any]) -> NDArray[Any]:
        """Return scores; if samples have one class each, with nan in place of all but each sample's highest score."""
        if self.multilabel_:
            return scores
        is_highest = np.arange(scores.shape[1]) == scores.argmax(axis=1)[:, None]
        return np.where(is_highest, scores, np.nan)


def _score_method(estimator: Any) -> str:
    """Return the method by which an estimator scores samples; raise ValueError if it has none."""
    for method in ("predict_proba", "decision_function"):
        if hasattr(estimator, method):
            return method
    raise ValueError(
        f"{type(estimator).__name__} has neither predict_proba nor decision_function; give a classifier with scores"
    )


def _read_classes(y: Any) -> tuple[NDArray[Any], sp.csc_array, NDArray[Any], bool]:
    """Return y as an array, as a sparse indicator of shape (n_samples, n_classes), the classes, and if y has lists.

    The array is an indicator, too, if samples may have several classes. Of a single class, it has one dimension, as
    scikit-learn has no indicators of one column.
    """
    if y is None:
        raise ValueError("PrecisionThresholds requires y to be passed, but the target y is None")
    y = plain_labels(y)
    if (of_lists := indicator_of_lists(y)) is not None:
        indicator, classes = of_lists[0].toarray(), of_lists[1]
        return _target(indicator), sp.csc_array(indicator), classes, True
    y = y if sp.issparse(y) else np.asarray(y)
    if y.ndim == 2 and (sp.issparse(y) or y.shape[1] != 1):
        labels = sparse_indicator(y)
        return _target(y.toarray() if sp.issparse(y) else y), labels, np.arange(y.shape[1]), False
    y = column_or_1d(y, warn=True)
    classes, codes = different_labels(y)
    check_classification_targets(y)
    if len(classes) < 2:
        raise ValueError(f"y has less than two classes: {classes.tolist()}; training needs more than one class")
    return y, sp.csc_array(codes[:, None] == np.arange(len(classes))), classes, False


def _target(indicator: NDArray[Any]) -> NDArray[Any]:
    return indicator.ravel() if indicator.shape[1] == 1 else indicator


def _no_promise(precision: NDArray[np.float64], confidence: float, labels: sp.csc_array) -> str:
    """Return why no class gets a promise: all classes are too small, or the estimator is not precise enough."""
    sizes = np.asarray(labels.sum(axis=0), np.int64)
    nearest, least = nearest_to_a_promise(precision, sizes, confidence)
    size = int(sizes[nearest])
    reason = (
        f"a class has enough samples, {size:,}, but too many of those with the highest scores are wrong"
        if size >= least
        else f"it takes at least {least:,} samples of a class, all of them right, and the largest class has {size:,}"
    )
    return (
        f"No promise of a precision of {precision[nearest]:g} can be kept with a confidence of {confidence:g} "
        f"({reason}): give a lower precision or confidence, more samples, or an estimator that is right more often"
    )
