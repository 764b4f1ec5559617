"""The learners as scikit-learn classifiers: binary, multi-class and multi-label, dense or sparse rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, column_or_1d
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from textcat.margin import rules
from textcat.margin.problems import Problem, Solution
from textcat.margin.solve import solve

_FINITE = Interval(Real, -np.inf, np.inf, closed="neither")
_NOT_NEGATIVE = Interval(Real, 0, np.inf, closed="left")
_POSITIVE = Interval(Real, 0, np.inf, closed="neither")


def prevalence_tau(prevalence: np.ndarray | float, kappa: float, scale: float) -> np.ndarray:
    """Return the margin asked of positive rows of a topic, adapted to how common the topic is.

    Formula: ``τ₊ = S·(1 + exp(-κ·c))⁻¹``, ``c`` being the fraction of positives. κ = 0 gives ``S/2`` to every topic;
    κ < 0 gives common topics a smaller margin, hence fewer support rows, than rare ones.

    Parameters
    ----------
    prevalence : array-like of float in [0, 1]
        Fraction ``c`` of positive rows of each topic.
    kappa : float
        How fast the margin changes with prevalence, κ.
    scale : float
        The margin that a large ``κ·c`` tends to, S; a topic of prevalence 0 gets ``S/2``.

    Returns
    -------
    ndarray of float64

    Notes
    -----
    Source: Li et al., "The Perceptron Algorithm with Uneven Margins", ICML 2002, section 4.
    """
    return scale * expit(kappa * np.asarray(prevalence, float))


class MarginClassifier(ClassifierMixin, BaseEstimator):
    """What the learners share: from labels to problems, from solutions to scores. Use one of its subclasses."""

    _parameter_constraints: ClassVar[dict] = {
        "eta": [_POSITIVE],
        "lambda_": [_NOT_NEGATIVE],
        "rho": [_NOT_NEGATIVE, StrOptions({"R"})],
        "max_epochs": [Interval(Integral, 1, None, closed="left")],
        "seed": [Interval(Integral, 0, None, closed="left"), None],
        "n_jobs": [Integral, None],
        "warm_start": ["boolean"],
    }

    def __init__(
        self,
        *,
        eta: float = 1.0,
        lambda_: float = 1.0,
        rho: float | str = 1.0,
        max_epochs: int = 1000,
        seed: int | None = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
    ):
        self.eta = eta
        self.lambda_ = lambda_
        self.rho = rho
        self.max_epochs = max_epochs
        self.seed = seed
        self.n_jobs = n_jobs
        self.warm_start = warm_start

    def _rules(self, prevalence: np.ndarray) -> list[rules.PAUM]:
        """Return the rule of each topic, given the fraction of its positives."""
        raise NotImplementedError

    def fit(self, X: Any, Y: Any, progress: Callable[[int], None] | None = None) -> MarginClassifier:
        """Train one ranker per topic.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_features)
            float32 is trained in float32, everything else in float64.
        Y : array-like of shape (n_documents,), or 0/1 indicator array or sparse matrix of shape (n_documents, n_topics)
            Two classes make one ranker, for the second in sorted order; more make one ranker a class; an indicator
            makes one a column.
        progress : callable, optional
            Called with 1 whenever a topic has been trained.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If X is not finite, Y does not fit X, or there is only one class.
        """
        self._validate_params()
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], order="C")
        rows = X if sp.issparse(X) else sp.csr_array(X)
        positives = self._read_labels(Y, rows.shape[0])
        prevalence = np.array([len(topic) for topic in positives]) / rows.shape[0]
        rho = float(np.sqrt(_longest_squared(rows))) if self.rho == "R" else float(self.rho)
        chosen = self._rules(prevalence)
        shape = rows.shape[0], len(positives), rows.shape[1]
        again = self.warm_start and getattr(self, "_fitted_to", None) == (*shape, rows.dtype)
        starts = self.solutions_ if again else [None] * len(positives)
        problems = [
            Problem(topic, rule, lambda_=self.lambda_, rho=rho, max_epochs=self.max_epochs, start=start)
            for topic, rule, start in zip(positives, chosen, starts, strict=True)
        ]
        coef = np.empty(shape[1:], rows.dtype)
        solutions = solve(rows, problems, n_jobs=self.n_jobs, seed=self.seed, progress=progress, out=coef)
        self.prevalence_ = prevalence
        self.tau_pos_ = np.array([rule.tau_pos for rule in chosen])
        self._fitted_to = (*shape, rows.dtype)
        self._keep(solutions, coef)
        return self

    def _read_labels(self, Y: Any, n_rows: int) -> list[np.ndarray]:
        """Return the positive rows of each topic, and set `classes_`."""
        if Y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None")
        labels = Y if sp.issparse(Y) else np.asarray(Y)
        self.multilabel_ = sp.issparse(Y) or (labels.ndim == 2 and labels.shape[1] > 1)
        if self.multilabel_:
            indicator = sp.csc_array(labels, copy=True)  # eliminate_zeros works in place
            _check_length(indicator.shape[0], n_rows)
            if not indicator.shape[1]:
                raise ValueError("Y has no column; an indicator Y needs one for each topic")
            if indicator.nnz and not np.isin(indicator.data, (0, 1)).all():
                raise ValueError("Unknown label type: an indicator Y must hold only 0 and 1")
            indicator.eliminate_zeros()
            self.classes_ = np.arange(indicator.shape[1])
            return [np.sort(rows).astype(np.int32) for rows in np.split(indicator.indices, indicator.indptr[1:-1])]
        y = column_or_1d(labels, warn=True)
        _check_length(len(y), n_rows)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y has only one class, {self.classes_[0]!r}; training needs at least two")
        wanted = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        return [np.flatnonzero(codes == code).astype(np.int32) for code in wanted]

    def _keep(self, solutions: list[Solution], coef: np.ndarray) -> None:
        self.solutions_ = solutions
        self.coef_ = coef
        self.intercept_ = np.array([solution.bias for solution in solutions], coef.dtype)
        self.n_epochs_ = np.array([solution.n_epochs for solution in solutions])
        self.n_updates_ = np.array([solution.n_updates for solution in solutions])
        self.n_support_ = np.array([len(solution.support) for solution in solutions])
        self.converged_ = np.array([solution.converged for solution in solutions])
        self.stopped_ = [solution.stopped for solution in solutions]
        self.n_iter_ = int(self.n_epochs_.max(initial=1))
        late = int(np.sum(~self.converged_))
        if late:
            warnings.warn(
                f"{late} of {len(solutions)} topics did not converge in {self.max_epochs} epochs; "
                "raise max_epochs, or lambda_ if the rows are not separable",
                ConvergenceWarning,
                stacklevel=3,
            )

    def facts(self) -> dict[str, list]:
        """Return what training found for each topic, by name: margin, epochs, updates, support, why it stopped."""
        return {
            "tau_pos": self.tau_pos_.tolist(),
            "epochs": self.n_epochs_.tolist(),
            "updates": self.n_updates_.tolist(),
            "support": self.n_support_.tolist(),
            "stopped": list(self.stopped_),
        }

    def decision_function(self, X: Any) -> np.ndarray:
        """Score documents for every topic.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_features)

        Returns
        -------
        scores : ndarray of shape (n_documents, n_topics), or (n_documents,) with two classes
            Signed, unscaled; larger = more relevant. Not a probability.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        scores = X @ np.ascontiguousarray(self.coef_.T) + self.intercept_
        return scores if self.multilabel_ or len(self.classes_) > 2 else scores[:, 0]

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each document, or with an indicator Y a 0/1 array of the topics that score above 0."""
        scores = self.decision_function(X)
        if self.multilabel_:
            return (scores > 0).astype(int)
        if scores.ndim == 1:
            return self.classes_[(scores > 0).astype(int)]
        return self.classes_[scores.argmax(axis=1)]

    def __sklearn_is_fitted__(self) -> bool:
        # The trailing underscore of `lambda_` would else pass for a fitted attribute.
        return hasattr(self, "coef_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags


class PA(MarginClassifier):
    """The perceptron algorithm, one ranker per topic: update ``w ← w + η·y·x`` where ``y·f(x) ≤ 0``.

    Parameters
    ----------
    eta, lambda_, rho, max_epochs, seed, n_jobs, warm_start
        As in `PAUM`. η scales the scores and changes nothing else.

    Attributes
    ----------
    coef_, intercept_, classes_ and the facts per topic
        As in `PAUM`.

    Notes
    -----
    Source: Rosenblatt 1958; Novikoff, "On convergence proofs on perceptrons", 1962.
    """

    def _rules(self, prevalence: np.ndarray) -> list[rules.PAUM]:
        return [rules.PA(self.eta)] * len(prevalence)


class PAM(MarginClassifier):
    """The perceptron algorithm with margins, one ranker per topic: update ``w ← w + η·y·x`` where ``y·f(x) ≤ τ``.

    Parameters
    ----------
    tau : float
        Margin asked of every document.
    eta, lambda_, rho, max_epochs, seed, n_jobs, warm_start
        As in `PAUM`.

    Attributes
    ----------
    coef_, intercept_, classes_ and the facts per topic
        As in `PAUM`.

    Notes
    -----
    Source: Krauth and Mézard, "Learning algorithms with optimal stability in neural networks", J. Phys. A 20, 1987.
    """

    _parameter_constraints: ClassVar[dict] = {**MarginClassifier._parameter_constraints, "tau": [_FINITE]}

    def __init__(
        self,
        tau: float = 1.0,
        *,
        eta: float = 1.0,
        lambda_: float = 1.0,
        rho: float | str = 1.0,
        max_epochs: int = 1000,
        seed: int | None = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
    ):
        super().__init__(
            eta=eta, lambda_=lambda_, rho=rho, max_epochs=max_epochs, seed=seed, n_jobs=n_jobs, warm_start=warm_start
        )
        self.tau = tau

    def _rules(self, prevalence: np.ndarray) -> list[rules.PAUM]:
        return [rules.PAM(self.tau, self.eta)] * len(prevalence)


class PAUM(MarginClassifier):
    """The perceptron algorithm with uneven margins, one ranker per topic.

    Update ``w ← w + η·y·x`` where ``y·f(x) ≤ τ_y``, epoch after epoch, until no row fails. The margin τ₊ asked of
    positives is a number, or adapted to each topic's prevalence ``c``: ``τ₊ = S·(1 + exp(-κ·c))⁻¹``.

    Parameters
    ----------
    tau_neg : float
        Margin asked of negative documents; a small negative number lets some of them score slightly above 0.
    tau_pos : float or "prevalence"
        Margin asked of positive documents.
    kappa, scale : float
        κ and S of the formula, for ``tau_pos="prevalence"``; not used otherwise.
    eta : float > 0
        Learning rate η.
    lambda_ : float >= 0
        The λ trick: a private coordinate √λ for every document, so that any training sample is separable.
    rho : float >= 0 or "R"
        Size of the constant coordinate behind the bias; "R" is the length of the longest row, as in the
        paper's Algorithm 1.
    max_epochs : int
        Give up on a topic after that many passes; `converged_` then says so, and a ConvergenceWarning is given.
    seed : int, optional
        Present the documents in a random order drawn with this seed; None: as they come.
    n_jobs : int, optional
        How many blocks of topics are trained at the same time. The result is the same to the bit.
    warm_start : bool
        Start from the solution of the previous call of `fit`, where it was given as many documents, topics and
        features in the same number type: train on after `max_epochs`, or with other margins, on the same documents.

    Attributes
    ----------
    coef_ : ndarray of shape (n_topics, n_features)
    intercept_ : ndarray of shape (n_topics,)
    classes_ : ndarray of shape (n_classes,)
    n_iter_ : int
        The largest number of epochs.
    n_epochs_, n_updates_, n_support_, converged_, tau_pos_, prevalence_ : ndarray of shape (n_topics,)
        Per topic: epochs, updates, documents with a non-zero coefficient ("sparsity"), whether it converged, its τ₊,
        and the fraction of positives.
    stopped_ : list of str
        Why training ended, in words.
    solutions_ : list of textcat.margin.solve.Solution

    Notes
    -----
    Source: Li, Zaragoza, Herbrich, Shawe-Taylor and Kandola, "The Perceptron Algorithm with Uneven Margins", ICML 2002.
    """

    _parameter_constraints: ClassVar[dict] = {
        **MarginClassifier._parameter_constraints,
        "tau_neg": [_FINITE],
        "tau_pos": [_FINITE, StrOptions({"prevalence"})],
        "kappa": [_FINITE],
        "scale": [_FINITE],
    }

    def __init__(
        self,
        tau_neg: float = -0.5,
        tau_pos: float | str = "prevalence",
        *,
        kappa: float = -10.0,
        scale: float = 100.0,
        eta: float = 1.0,
        lambda_: float = 1.0,
        rho: float | str = 1.0,
        max_epochs: int = 1000,
        seed: int | None = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
    ):
        super().__init__(
            eta=eta, lambda_=lambda_, rho=rho, max_epochs=max_epochs, seed=seed, n_jobs=n_jobs, warm_start=warm_start
        )
        self.tau_neg = tau_neg
        self.tau_pos = tau_pos
        self.kappa = kappa
        self.scale = scale

    def _rules(self, prevalence: np.ndarray) -> list[rules.PAUM]:
        if self.tau_pos == "prevalence":
            margins = prevalence_tau(prevalence, self.kappa, self.scale)
        else:
            margins = np.full(len(prevalence), float(self.tau_pos))
        return [rules.PAUM(self.tau_neg, tau_pos, self.eta) for tau_pos in margins]


def _check_length(n_labels: int, n_rows: int) -> None:
    if n_labels != n_rows:
        raise ValueError(f"X has {n_rows} rows and Y has {n_labels}; they must be as many")


def _longest_squared(rows: sp.csr_array) -> float:
    return float(rows.multiply(rows).sum(axis=1).max()) if rows.shape[0] else 0.0


# The learners by the names that recipes and the command line use.
LEARNERS: dict[str, type[MarginClassifier]] = {"pa": PA, "pam": PAM, "paum": PAUM}
