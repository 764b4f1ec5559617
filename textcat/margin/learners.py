"""Classifiers for scikit-learn, one per margin rule, and PAUM's margins from a topic's prevalence.

They are binary, multi-class and multi-label, for dense or sparse rows.
"""

import inspect
import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MethodType
from typing import Any, ClassVar, TypeVar

import numpy as np
import scipy.sparse as sp

from textcat.base.label_lists import accuracy, different_labels, indicator_of_lists, plain_labels, sparse_indicator
from textcat.base.parameters import Parameters, is_whole
from textcat.base.sigmoid import expit
from textcat.margin import rules
from textcat.margin.kernels import KernelRows, check_kernel, kernel_scores
from textcat.margin.primal import allocator, is_on_disk
from textcat.margin.probabilities import class_probabilities, fit_calibration
from textcat.margin.problems import NO_ROWS, PackedWeights, Problem, Solution, rows_by_column
from textcat.margin.solve import solve

_Self = TypeVar("_Self", bound="MarginClassifier")

_PER_PREVALENCE = 200
_LETTERS = "Here x is a row, y its label +1 or -1, and m = y·f(x) its functional margin: see `textcat.rules`."

# Valid values of each parameter that all learners share: an interval of numbers, or other values with words for them.
_NUMBERS = (
    rules.Parameter("lambda_", low=0, closed="left"),
    rules.Parameter("rho", low=0, closed="left"),
    rules.Parameter("tol", low=0, high=1, closed="left"),
    rules.Parameter("cache_mb", low=0, closed="left"),
)
# The arguments of methods that scikit-learn's metadata routing can pass on.
_ROUTED = ("fit", "progress"), ("fit", "left_out"), ("score", "sample_weight")
_CHECKS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "max_epochs": (is_whole(1), "a whole number, at least 1"),
    "mini_epochs": (is_whole(0), "a whole number, at least 0"),
    "kernel": (lambda x: x is None or isinstance(x, str) or callable(x), "a text, a function, or None"),
    "kernel_params": (lambda x: x is None or isinstance(x, dict), "a dict or None"),
    "random_state": (is_whole(0, optional=True), "a whole number, at least 0, or None"),
    "n_jobs": (is_whole(-math.inf, optional=True), "a whole number or None"),
    "probability": (lambda x: isinstance(x, bool | np.bool_), "True or False"),
    "warm_start": (lambda x: isinstance(x, bool | np.bool_), "True or False"),
}


def prevalence_tau(prevalence: np.ndarray | float, kappa: float, scale: float) -> np.ndarray:
    """Return the margin required of a topic's positive rows, given their fraction c of all rows (`prevalence`).

    Formula: ``τ₊ = S·(1 + exp(-κ·c))⁻¹``, where κ is `kappa` and S is `scale` (Li et al., "The Perceptron Algorithm
    with Uneven Margins", ICML 2002, section 4). κ = 0 gives ``S/2`` to every topic; κ < 0 gives common topics a smaller
    margin, hence fewer support rows.
    """
    return scale * expit(kappa * np.asarray(prevalence, float))


def _prevalence_rho(prevalence: np.ndarray | float) -> np.ndarray:
    """Return ρ, the size of the constant coordinate, given the fraction c of rows that are positive (`prevalence`).

    Formula: ``ρ = (1 + 200 c)^(-1/2)``: 1 for the rarest topics, .3 where one row in twenty is positive. A common
    topic has so many updates that with ρ = 1 its bias would depend on their order (docs/background/recipe-study.md).
    """
    return 1 / np.sqrt(1 + _PER_PREVALENCE * np.asarray(prevalence, float))


def _describe(learner: "type[MarginClassifier]") -> str:
    """Return a learner's docstring with the formula, parameters and source of its rule, and the shared parameters.

    If the learner and its rule both describe a parameter, the learner's description is used.
    """
    of_learner, of_rule, of_all = (inspect.getdoc(thing) or "" for thing in (learner, learner.rule, MarginClassifier))
    summary, _, details = of_learner.partition("\n\n")
    text, _, notes = of_rule.partition("\nNotes\n-----\n")
    text = text.replace("\n\nParameters", f"\n\n{_LETTERS}\n\nParameters")
    for name in re.findall(r"^(\w+) : ", details, re.MULTILINE):
        text = re.sub(rf"^{name} : .*\n(    .*\n)+", "", text, flags=re.MULTILINE)
    parts = [text.partition("\n\n")[2].rstrip(), details, of_all.partition("----------\n")[2]]
    sources = ["Notes", "-----", notes, ""] if notes else []
    return "\n".join([summary, "", *filter(None, parts), "", *sources])


def _read_labels(y: Any, n_rows: int, estimator: str) -> tuple[list[np.ndarray], np.ndarray, bool, bool]:
    """Return the numbers of each topic's positive rows, the classes, and two facts about y.

    These are whether a row of y may have several topics, and whether y has lists of labels. `estimator` is the name of
    the class for the message of the ValueError if y is None.
    """
    if y is None:
        raise ValueError(f"This {estimator} estimator requires y to be passed, but the target y is None")
    names, y = None, plain_labels(y)
    if (of_lists := indicator_of_lists(y)) is not None:
        y, names = of_lists
    labels = y if sp.issparse(y) else np.asarray(y)
    if sp.issparse(y) or (labels.ndim == 2 and labels.shape[1] != 1):
        _check_length(labels, n_rows)
        labels = sparse_indicator(labels)
        classes = np.arange(labels.shape[1]) if names is None else names
        return rows_by_column(labels), classes, True, names is not None
    return *_read_classes(labels, n_rows), False, False


def _read_classes(y: np.ndarray, n_rows: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the numbers of the positive rows of each ranker, and the classes; y has one class for each row."""
    from sklearn.utils import assert_all_finite, column_or_1d
    from sklearn.utils.multiclass import check_classification_targets

    labels = column_or_1d(y, warn=True)
    _check_length(labels, n_rows)
    assert_all_finite(labels, input_name="y")
    classes, codes = different_labels(labels)
    check_classification_targets(labels)
    if len(classes) < 2:
        raise ValueError(f"y has only one class, {classes.tolist()[0]!r}; training needs at least two")
    wanted = [1] if len(classes) == 2 else range(len(classes))
    return [np.flatnonzero(codes == code).astype(np.int32) for code in wanted], classes


def _check_length(labels: Any, n_rows: int) -> None:
    if labels.shape[0] != n_rows:
        raise ValueError(f"X has {n_rows} rows and Y has {labels.shape[0]}; they must be as many")


def _read_left_out(left_out: Any, shape: tuple[int, int], *, multilabel: bool) -> list[np.ndarray]:
    """Return, for each topic, the numbers of the rows that are neither positive nor negative examples of it.

    `left_out` is as for `MarginClassifier.fit`, and `shape` is (n_rows, n_topics).
    """
    if left_out is None:
        return [NO_ROWS] * shape[1]
    mask = plain_labels(left_out, "left_out")
    if not multilabel or np.shape(mask) != shape:
        raise ValueError(f"left_out must be of the shape of an indicator Y, here {shape}, got {np.shape(mask)}")
    try:
        return rows_by_column(sparse_indicator(mask if sp.issparse(mask) else np.asarray(mask)))
    except ValueError as error:
        raise ValueError("left_out must consist of 0 and 1, as an indicator Y does") from error


def _warn_of_late(n_late: int, n_topics: int, max_epochs: int) -> None:
    """Warn the caller of `fit`, or of `fit_packed`, that some topics did not converge."""
    from sklearn.exceptions import ConvergenceWarning

    warnings.warn(
        f"{n_late} of {n_topics} topics did not converge in {max_epochs} epochs; "
        "raise max_epochs, or lambda_ if the rows are not separable",
        ConvergenceWarning,
        stacklevel=4,
    )


class _IfProbability:
    """Make a method that a learner has only if `probability` is set, as scikit-learn's tools expect."""

    def __init__(self, method: Callable[..., np.ndarray]):
        self._method, self.__doc__ = method, method.__doc__

    def __get__(self, learner: "MarginClassifier | None", cls: "type[MarginClassifier]") -> Callable[..., np.ndarray]:
        if learner is None:
            return self._method
        if not learner.probability:
            name = cls.__name__
            raise AttributeError(
                f"{name} has scores, which are no probabilities: for these train {name}(probability=True)"
            )
        return MethodType(self._method, learner)


@dataclass(eq=False, repr=False, kw_only=True)
class MarginClassifier(Parameters):
    """Train one linear or kernel classifier per topic, whose scores rank the documents: the base class of all learners.

    A rule says on which rows a perceptron is updated, and by how much (see `textcat.rules`). To train with a rule of
    your own, write a dataclass with a field for each parameter of the rule::

        @dataclass(eq=False, repr=False)
        class MyLearner(MarginClassifier):
            rule = MyRule
            tau: float = 1.0

    A learner is a scikit-learn classifier. To save time, it imports scikit-learn only where scikit-learn itself, or a
    caller of `fit` and `predict`, needs it.

    Parameters
    ----------
    lambda_ : float >= 0
        Softness of the margin. Each document gets a coordinate of its own, with the value √λ, which makes any training
        set separable (the "λ trick"; some papers write Δ for √λ). 0: no such coordinate, a hard margin.
    rho : float >= 0, "R" or "prevalence"
        Size of the constant coordinate whose weight is the bias; 0: no bias; "R": the largest Euclidean norm of a row
        of X, also of one that is left out; "prevalence": ρ = (1 + 200·c)^(-1/2) for a topic that a fraction c of the
        documents have.
    max_epochs : int >= 1
        Largest number of passes over the documents. If some topics have not converged by then, a ConvergenceWarning
        says how many.
    mini_epochs : int >= 0
        After each pass, present again, at most this many times, the documents that caused an update in the pass (the
        "active set"). With it, the MICRA paper writes "red-" before the name of a learner.
    tol : float in [0, 1)
        Stop training a topic after the first pass whose updates are at most this fraction of all its updates so far; 0:
        after the first pass without an update. In a large corpus most passes are for the last few documents, which
        change no ranking.
    kernel : str or callable, optional
        Train in the dual form: a name of scikit-learn's `pairwise_kernels`, a function of ``(X, Y)`` that returns the
        matrix of shape (n_X, n_Y), or "precomputed". None: linear, with weights.
    kernel_params : dict, optional
        Parameters of the kernel by name, such as gamma.
    cache_mb : float >= 0
        Megabytes of memory that rows of the kernel matrix may take.
    random_state : int >= 0, optional
        Seed that shuffles the documents once, for all passes; None: keep the order of X.
    n_jobs : int, optional
        Number of blocks of topics trained at the same time; None: 1, -1: one per core. The result is the same to the
        bit.
    probability : bool
        Also learn probabilities, for `predict_proba`: `Calibration.fit_scores` fits a curve for each topic to scores of
        rows that were not trained on, by rankers of five folds. `fit` then takes several times as long; scores and
        predictions stay the same.
    warm_start : bool
        Start `fit` from the solution of its previous call, if shapes and dtype are the same. Use this to continue after
        `max_epochs`, or to train with other parameters, on the same rows.

    Attributes
    ----------
    coef_ : ndarray of shape (n_topics, n_features)
        The weights; missing with a kernel. With two classes there is one topic.
    dual_coef_ : ndarray of shape (n_topics, n_support)
        With a kernel, the coefficients of `support_vectors_`, the rows of X that have a non-zero coefficient for any
        topic; with "precomputed", `support_vectors_` has the numbers of these rows.
    intercept_, classes_ : ndarray of shape (n_topics,), (n_classes,)
        The biases; and the classes, in sorted order, or the numbers of columns if y was an indicator.
    calibration_ : Calibration
        With `probability`, each topic's curve from scores to probabilities.
    n_epochs_, n_updates_, n_support_, converged_, prevalence_ : ndarray of shape (n_topics,)
        For each topic: epochs (`n_iter_` is the largest number), updates, rows with a non-zero coefficient
        ("sparsity"; `support_` has their numbers), whether training converged (`stopped_` says why it ended), and the
        fraction of positives.
    directional_margin_, margin_, certificate_ : ndarray of shape (n_topics,)
        The margin reached, if the bias counts as a coordinate, and if it does not; and a proven lower bound on the
        directional margin, as a fraction of the largest possible one (see `Solution`).
    solutions_ : list of Solution
        The solution of each topic.
    """

    lambda_: float = 1.0
    rho: float | str = 1.0
    max_epochs: int = 1000
    mini_epochs: int = 0
    tol: float = 0.0
    kernel: str | Callable[..., np.ndarray] | None = None
    kernel_params: dict[str, Any] | None = None
    cache_mb: float = 1000.0
    random_state: int | None = None
    n_jobs: int | None = None
    probability: bool = False
    warm_start: bool = False

    rule: ClassVar[type[rules.Rule]]
    _numbers: ClassVar[tuple[rules.Parameter, ...]] = ()  # parameters that neither the rule nor all learners have
    _words: ClassVar[Mapping[str, tuple[str, ...]]] = {"rho": ("R", "prevalence")}  # values that may replace a number

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if {"rule", "__doc__"} <= vars(cls).keys():
            cls.__doc__ = _describe(cls)

    def __post_init__(self) -> None:
        if type(self) is MarginClassifier:
            raise TypeError(f"MarginClassifier is the base of the learners; use one of them: {', '.join(LEARNERS)}")

    def check_parameters(self, names: Mapping[str, str] | None = None) -> None:
        """Raise ValueError if a parameter has a value that is not allowed.

        `names` maps parameters to the names that error messages show instead.
        """
        checks = {parameter.name: self._check_of(parameter) for parameter in self._all_numbers()} | _CHECKS
        for name, (fits, what) in checks.items():
            if not fits(value := getattr(self, name)):
                shown = (names or {}).get(name, name)
                raise ValueError(f"The {shown!r} parameter of {type(self).__name__} must be {what}, got {value!r}.")
        if self.n_jobs == 0:
            raise ValueError("The number of jobs cannot be 0: give 1 or more, or -1 for one per core.")

    def _all_numbers(self) -> tuple[rules.Parameter, ...]:
        return *self.rule.PARAMETERS, *self._numbers, *_NUMBERS

    def _check_of(self, parameter: rules.Parameter) -> tuple[Callable[[Any], bool], str]:
        """Return a function that checks a value of one of the rule's parameters, and the allowed values in words."""
        others = *self._words.get(parameter.name, ()), *([None] if callable(parameter.default) else [])
        what = ", or ".join([f"a number that is {parameter.range_in_words}", *map(repr, others)])
        return lambda x: parameter.allows(x) or (isinstance(x, str | None) and x in others), what

    def rules_for(self, prevalence: np.ndarray) -> list[rules.Rule]:
        """Return each topic's rule, given the fraction of rows that are positive for the topic."""
        settings = {parameter.name: getattr(self, parameter.name) for parameter in self.rule.PARAMETERS}
        return [self.rule(**{key: value for key, value in settings.items() if value is not None})] * len(prevalence)

    def fit(self: _Self, X: Any, y: Any, progress: Callable[[int], None] | None = None, left_out: Any = None) -> _Self:
        """Train one ranker per topic.

        Parameters
        ----------
        X : array-like, sparse matrix or rows on disk of shape (n_documents, n_features)
            float32 is trained in float32, everything else in float64. With ``kernel="precomputed"``, the kernel matrix.
            Rows on disk are what `textcat.open_rows` returns; `coef_` is then mapped from a file, too.
        y : array-like of shape (n_documents,), or 0/1 indicator array or sparse matrix of shape (n_documents, n_topics)
            With two classes, one ranker is trained, for the second in sorted order; with more, one per class; with an
            indicator, one per column. y may also have a list of labels for each document: then one ranker is trained
            per label, and `classes_` has the labels.
        progress : callable, optional
            Called with 1 whenever a topic has been trained.
        left_out : 0/1 array or sparse matrix of shape (n_documents, n_topics), optional
            With an indicator y: 1 where a document is neither a positive nor a negative example, whatever y says.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter is out of range, X is not finite, y or left_out does not fit, a label is missing, or there is
            only one class.
        """
        self.check_parameters()
        if self.kernel is not None:
            check_kernel(self.kernel, self.kernel_params)
        X = self._read_rows(X)
        problems, linear = self.topic_problems(X, y, left_out), self.kernel is None
        weights = allocator(getattr(X, "folder", None))((len(problems), X.shape[1]), X.dtype) if linear else None
        rows = sp.csr_array(X) if linear and isinstance(X, np.ndarray) else X
        solutions = self._solve(rows, problems, progress, out=weights)
        if self.probability:
            self.calibration_ = fit_calibration(self, rows, problems, solutions, **self._solver_options())
        if weights is not None:
            self.coef_ = weights
        else:  # keep the rows in any ranker's expansion; for a precomputed kernel, their numbers
            used = np.unique(np.concatenate([solution.support for solution in solutions]))
            self.support_vectors_ = used if self.kernel == "precomputed" else X[used]
            self.dual_coef_ = np.zeros((len(solutions), len(used)), X.dtype)
            for row, solution in zip(self.dual_coef_, solutions, strict=True):
                row[np.searchsorted(used, solution.support)] = solution.alpha
        return self

    def fit_packed(
        self: _Self, X: Any, labels: Any, progress: Callable[[int], None] | None = None, left_out: Any = None
    ) -> _Self:
        """Train as `fit` does, without a kernel, but keep sparse weights in `solutions_`, and make no `coef_`.

        `coef_` would be several times as large with many features; `predict` and `decision_function` need it.

        Parameters
        ----------
        X : CSR matrix of finite numbers, or rows on disk, of shape (n_documents, n_features)
        labels : sparse indicator matrix of shape (n_documents, n_topics)
        progress, left_out
            As for `fit`.

        Returns
        -------
        self
        """
        self.check_parameters()
        self._solve(X, self.topic_problems(X, labels, left_out), progress, keep=PackedWeights.of)
        return self

    def _solver_options(self) -> dict[str, Any]:
        dual = {name: getattr(self, name) for name in ("kernel", "kernel_params", "cache_mb")}
        return dual | {"n_jobs": self.n_jobs, "seed": self.random_state}

    def _solve(
        self, X: Any, problems: Sequence[Problem], progress: Callable[[int], None] | None, **options: Any
    ) -> list[Solution]:
        """Train the topics, and set the attributes that describe the training; `options` are those of `solve`."""
        self.solutions_ = solve(X, problems, **self._solver_options(), progress=progress, margins=True, **options)
        self._fitted_to = *X.shape, X.dtype, len(problems), self.kernel
        self.intercept_ = np.array([solution.bias for solution in self.solutions_], X.dtype)
        for name in ("directional_margin", "margin", "certificate", "n_updates"):
            setattr(self, f"{name}_", np.array([getattr(solution, name) for solution in self.solutions_]))
        self.n_epochs_ = np.array([solution.n_epochs for solution in self.solutions_])
        self.converged_ = np.array([solution.converged for solution in self.solutions_])
        self.support_ = [solution.support for solution in self.solutions_]
        self.n_support_ = np.array([len(support) for support in self.support_])
        self.stopped_ = [solution.stopped for solution in self.solutions_]
        self.n_iter_ = int(self.n_epochs_.max(initial=1))
        if n_late := int(np.sum(~self.converged_)):
            _warn_of_late(n_late, len(problems), self.max_epochs)
        return self.solutions_

    def topic_problems(self, X: Any, y: Any, left_out: Any = None) -> list[Problem]:
        """Return the training problem of each topic: its labels, rule and limits.

        Parameters
        ----------
        X : sparse CSR matrix, array or rows on disk of shape (n_documents, n_features)
            As for `textcat.solve`.
        y, left_out
            As for `fit`.

        Returns
        -------
        list of Problem
        """
        positives, self.classes_, self.multilabel_, self._fitted_to_lists = _read_labels(
            y, X.shape[0], type(self).__name__
        )
        not_used = _read_left_out(left_out, (X.shape[0], len(positives)), multilabel=self.multilabel_)
        both = zip(positives, not_used, strict=True)
        positives = [np.setdiff1d(rows, out, assume_unique=True) if len(out) else rows for rows, out in both]
        n_used = X.shape[0] - np.array([len(out) for out in not_used])
        self.prevalence_ = np.array([len(rows) for rows in positives]) / np.maximum(n_used, 1)
        starts_again = self.warm_start and getattr(self, "_fitted_to", None) == (
            *X.shape,
            X.dtype,
            len(positives),
            self.kernel,
        )
        starts = self.solutions_ if starts_again else [None] * len(positives)
        self._rules, settings = self.rules_for(self.prevalence_), self.settings_for(X, self.prevalence_)
        labelled = zip(positives, self._rules, not_used, starts, settings, strict=True)
        return [Problem(rows, rule, out, start=start, **of_topic) for rows, rule, out, start, of_topic in labelled]

    def _read_rows(self, X: Any) -> Any:
        from sklearn.utils.validation import validate_data

        if not is_on_disk(X):
            return validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], order="C")
        if self.kernel is not None:
            raise ValueError("rows on disk are for learners without a kernel: give a matrix, or kernel=None")
        self.n_features_in_ = X.shape[1]
        return X

    def settings_for(self, X: Any, prevalence: np.ndarray) -> list[dict[str, Any]]:
        """Return the settings of each topic's problem, except the rule.

        Parameters
        ----------
        X : sparse matrix, array or rows on disk of shape (n_documents, n_features)
        prevalence : ndarray of shape (n_topics,)
            The fraction of positive documents.

        Returns
        -------
        list of dict
            Keyword arguments of `Problem`.
        """
        shared = {name: getattr(self, name) for name in ("lambda_", "max_epochs", "mini_epochs", "tol")}
        if self.rho == "prevalence":
            return [{**shared, "rho": float(rho)} for rho in _prevalence_rho(prevalence)]
        return [{**shared, "rho": self._rho(X)}] * len(prevalence)

    def _rho(self, X: Any) -> float:
        if self.rho != "R":
            return float(self.rho)
        if self.kernel is not None:
            rows = KernelRows(X, self.kernel, self.kernel_params)
            return float(np.sqrt(rows.diagonal.max()))
        blocks = map(sp.csr_array, X.blocks() if is_on_disk(X) else [X])
        return float(np.sqrt(max(rows.multiply(rows).sum(axis=1).max() for rows in blocks)))

    def facts(self) -> dict[str, list]:
        """Return facts about the training of each topic: for the name of each fact, a list with a value per topic.

        The facts are the margins (None if there are none), the numbers of epochs, updates and support rows, and
        ``stopped``, the reason why training ended.
        """
        margins = {name: getattr(self, f"{name}_").tolist() for name in ("directional_margin", "margin", "certificate")}
        margins = {name: [None if np.isnan(value) else value for value in values] for name, values in margins.items()}
        counts = {name: getattr(self, f"n_{name}_").tolist() for name in ("epochs", "updates", "support")}
        return {**margins, **counts, "stopped": list(self.stopped_)}

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores of documents: shape (n_documents, n_topics), or (n_documents,) with two classes.

        X is as for `fit`. Scores are signed and unscaled; larger = more relevant. They are not probabilities: see
        `predict_proba`.
        """
        from sklearn.utils.validation import check_is_fitted, validate_data

        check_is_fitted(self)
        if not is_on_disk(X):
            X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        if self.kernel is None:
            weights = np.ascontiguousarray(self.coef_.T)
            sums = np.concatenate([rows @ weights for rows in X.blocks()]) if is_on_disk(X) else X @ weights
            sums = sums + self.intercept_
        else:
            expansion = self.support_vectors_, self.dual_coef_, self.intercept_
            sums = kernel_scores(X, *expansion, kernel=self.kernel, kernel_params=self.kernel_params)
        return sums if self.multilabel_ or len(self.classes_) > 2 else sums[:, 0]

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each document.

        If y was an indicator or had lists of labels, return an array of shape (n_documents, n_topics) instead: 1 where
        the score is above 0, and 0 elsewhere.
        """
        scores = self.decision_function(X)
        if self.multilabel_:
            return (scores > 0).astype(int)
        if scores.ndim == 1:
            return self.classes_[(scores > 0).astype(int)]
        return self.classes_[scores.argmax(axis=1)]

    @_IfProbability
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class: shape (n_documents, n_classes).

        This method exists only if `probability` is set. X is as for `fit`. If y was an indicator or had lists of
        labels, the probabilities of a document are independent of each other; otherwise they add up to 1. The class of
        the highest score need not have the highest probability.
        """
        scores = self.decision_function(X)
        return class_probabilities(scores, self.calibration_, multilabel=self.multilabel_)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of `predict`: the fraction of documents of which the class, or every topic, is right.

        Parameters
        ----------
        X, y
            As for `fit`.
        sample_weight : array-like of shape (n_documents,), optional
            How much each document counts.

        Returns
        -------
        float
        """
        return accuracy(y, self.predict(X), self.classes_, sample_weight, lists=self._fitted_to_lists)

    def get_metadata_routing(self) -> Any:
        """Return the MetadataRequest that scikit-learn's metadata routing reads.

        It says which arguments of `fit` and `score` tools such as GridSearchCV pass on, and under which names.
        """
        from sklearn.utils.metadata_routing import MetadataRequest

        if not hasattr(self, "_metadata_request"):
            self._metadata_request = MetadataRequest(owner=type(self).__name__)
            for method, argument in _ROUTED:
                getattr(self._metadata_request, method).add_request(param=argument, alias=None)
        return self._metadata_request

    def set_fit_request(self: _Self, **requests: bool | str | None) -> _Self:
        """Set whether scikit-learn's metadata routing passes `progress` and `left_out` on to `fit`; return the object.

        For each argument, give True (pass it on), False (ignore it), None (refuse it), or the name that it has in calls
        of the tools of scikit-learn.

        Raises
        ------
        RuntimeError
            If scikit-learn's metadata routing is not enabled.
        """
        return self._set_request("fit", requests)

    def set_score_request(self: _Self, **requests: bool | str | None) -> _Self:
        """Set whether scikit-learn's metadata routing passes `sample_weight` on to `score`; see `set_fit_request`."""
        return self._set_request("score", requests)

    def _set_request(self: _Self, method: str, requests: Mapping[str, bool | str | None]) -> _Self:
        from sklearn import get_config

        if not get_config()["enable_metadata_routing"]:
            raise RuntimeError(
                "Metadata routing is not enabled: call sklearn.set_config(enable_metadata_routing=True) first."
            )
        for argument, alias in requests.items():
            if (method, argument) not in _ROUTED:
                raise TypeError(
                    f"`{method}` of {type(self).__name__} has no argument {argument!r} that can be requested."
                )
            getattr(self.get_metadata_routing(), method).add_request(param=argument, alias=alias)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        # Otherwise scikit-learn would take `lambda_`, with its trailing underscore, for a fitted attribute.
        return hasattr(self, "intercept_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        rows = InputTags(sparse=self.kernel != "precomputed", pairwise=self.kernel == "precomputed")
        topics = ClassifierTags(multi_label=True)
        return Tags("classifier", TargetTags(required=True), classifier_tags=topics, input_tags=rows)


@dataclass(eq=False, repr=False)
class PA(MarginClassifier):
    """Classifier by the rule `rules.PA`, the perceptron (not passive-aggressive): update on misclassified rows."""

    rule = rules.PA
    eta: float = 1.0


@dataclass(eq=False, repr=False)
class PAM(MarginClassifier):
    """Classifier by the rule `rules.PAM`, the perceptron with margins: update if a row's margin is at most τ."""

    rule = rules.PAM
    tau: float = 1.0
    eta: float = 1.0


@dataclass(eq=False, repr=False)
class PAUM(MarginClassifier):
    """Classifier by the rule `rules.PAUM`: one margin for positive rows, adapted to the topic, one for negative rows.

    tau_pos : float or "prevalence"
        Required margin of documents with the topic. "prevalence": a margin for each topic, computed from the fraction c
        of the documents that have it: τ₊ = S·(1 + exp(-κ·c))⁻¹. `tau_pos_` has the margins.
    kappa : float
        With "prevalence", κ: below 0, common topics get smaller margins than rare ones: see
        docs/background/tau-study.md.
    scale : float
        With "prevalence", S: twice the margin of a topic whose c is close to 0.
    """

    rule = rules.PAUM
    _numbers: ClassVar = (rules.Parameter("kappa"), rules.Parameter("scale"))
    _words: ClassVar = {**MarginClassifier._words, "tau_pos": ("prevalence",)}
    tau_neg: float = -0.5
    tau_pos: float | str = "prevalence"
    eta: float = 1.0
    kappa: float = field(default=-20.0, kw_only=True)
    scale: float = field(default=100.0, kw_only=True)

    def rules_for(self, prevalence: np.ndarray) -> list[rules.Rule]:
        """Return each topic's rule, given the fraction of rows that are positive for the topic."""
        if self.tau_pos != "prevalence":
            return super().rules_for(prevalence)
        margins = prevalence_tau(prevalence, self.kappa, self.scale)
        return [rules.PAUM(self.tau_neg, tau_pos, self.eta) for tau_pos in margins]

    @property
    def tau_pos_(self) -> np.ndarray:
        """The required margin of each topic's positive rows, shape (n_topics,)."""
        return np.array([rule.parameters["tau_pos"] for rule in self._rules])

    def facts(self) -> dict[str, list]:
        """Return lists with a value per topic: the margin τ₊ (`tau_pos`), and the facts that all learners have."""
        return {"tau_pos": self.tau_pos_.tolist(), **super().facts()}


@dataclass(eq=False, repr=False)
class TMargitron(MarginClassifier):
    """Classifier by the rule `rules.TMargitron`: the required margin is b times a power of the number of updates."""

    rule = rules.TMargitron
    epsilon: float = 0.5
    b: float = 1.0


@dataclass(eq=False, repr=False)
class LMargitron(MarginClassifier):
    """Classifier by the rule `rules.LMargitron`: the required margin is b times a power of the weights' length."""

    rule = rules.LMargitron
    epsilon: float = 0.5
    b: float = 3.0


@dataclass(eq=False, repr=False)
class Micra(MarginClassifier):
    """Classifier by the rule `rules.MICRA`: steps and margins are shrinking fractions of the weights' length."""

    rule = rules.MICRA
    eta: float = 1.0
    beta: float = 5.0
    epsilon: float = 0.5
    zeta: float = 0.5


@dataclass(eq=False, repr=False)
class Cramma(MarginClassifier):
    """Classifier by the rule `rules.CRAMMA`: MICRA with steps that are a constant fraction of the weights' length."""

    rule = rules.CRAMMA
    eta: float = 0.01
    beta: float = 3.0
    epsilon: float = 0.5


@dataclass(eq=False, repr=False)
class Alma(MarginClassifier):
    """Classifier by the rule `rules.ALMA`: steps and margins of update k are scaled by 1/√k, in the unit ball."""

    rule = rules.ALMA
    alpha: float = 0.5
    B: float | None = None
    C: float = math.sqrt(2)


@dataclass(eq=False, repr=False)
class Romma(MarginClassifier):
    """Classifier by the rule `rules.ROMMA`: an update gives the row that caused it the margin 1."""

    rule = rules.ROMMA
    delta: float = 0.2


@dataclass(eq=False, repr=False)
class DynamicMargin(MarginClassifier):
    """Classifier by the rule `rules.PDM`: the required margin is a fraction of an upper bound of the largest margin."""

    rule = rules.PDM
    epsilon: float = 0.1


# The learners, by the names used in recipes and on the command line.
LEARNERS: dict[str, type[MarginClassifier]] = {
    "pa": PA,
    "pam": PAM,
    "paum": PAUM,
    "t-margitron": TMargitron,
    "l-margitron": LMargitron,
    "micra": Micra,
    "cramma": Cramma,
    "alma": Alma,
    "romma": Romma,
    "pdm": DynamicMargin,
}
