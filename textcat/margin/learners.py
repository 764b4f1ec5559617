"""The learners as scikit-learn classifiers: binary, multi-class and multi-label, dense or sparse rows."""

from __future__ import annotations

import inspect
import textwrap
import warnings
from collections.abc import Callable, Iterator
from functools import partial
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
from textcat.margin.kernels import KernelRows, check_kernel, scores
from textcat.margin.primal import is_on_disk
from textcat.margin.problems import NONE, Problem, Solution
from textcat.margin.room import room_beside
from textcat.margin.solve import solve

_BLOCK_ROWS = 4096

_FINITE = Interval(Real, -np.inf, np.inf, closed="neither")
_NOT_NEGATIVE = Interval(Real, 0, np.inf, closed="left")

# Parameters by name: kinds, default, what scikit-learn is to check, meaning.
_Parameters = dict[str, tuple[Any, Any, list, str]]

# What every learner takes beside its rule's own parameters.
_SHARED: _Parameters = {
    "lambda_": (
        float, 1.0, [_NOT_NEGATIVE],
        "λ = Δ² of the λ trick: a private coordinate √λ for every row, so that any training sample is separable.",
    ),
    "rho": (
        float | str, 1.0, [_NOT_NEGATIVE, StrOptions({"R"})],
        'Size of the constant coordinate behind the bias; 0: no bias; "R": the length of the longest row.',
    ),
    "max_epochs": (
        int, 1000, [Interval(Integral, 1, None, closed="left")],
        "Give up on a topic after that many passes; `converged_` then says so, and a ConvergenceWarning is given.",
    ),
    "mini_epochs": (
        int, 0, [Interval(Integral, 0, None, closed="left")],
        'The active set ("red-" in the papers): after every epoch the rows that failed in it are presented again, at '
        "most that many times.",
    ),
    "kernel": (
        str | Callable | None, None, [str, callable, None],
        "Train in the dual form: a name of scikit-learn's `pairwise_kernels`, a function that returns the matrix from "
        '``(X, Y)``, or "precomputed". None: linear, with weights.',
    ),
    "kernel_params": (dict | None, None, [dict, None], "Parameters of the kernel by name, such as gamma."),
    "cache_mb": (
        float, 1000.0, [Interval(Real, 0, np.inf, closed="left")],
        "Megabytes of memory that rows of the kernel matrix may take.",
    ),
    "seed": (
        int | None, None, [Interval(Integral, 0, None, closed="left"), None],
        "Present the rows in a random order drawn with this seed; None: as they come.",
    ),
    "n_jobs": (
        int | None, None, [Integral, None],
        "How many blocks of topics are trained at the same time. The result is the same to the bit.",
    ),
    "warm_start": (
        bool, False, ["boolean"],
        "Start from the solution of the previous call of `fit`, where it was given as many rows, topics and features "
        "in the same number type: train on after `max_epochs`, or with other parameters, on the same rows.",
    ),
}  # fmt: skip

_ATTRIBUTES = """
Attributes
----------
coef_ : ndarray of shape (n_topics, n_features)
    Without a kernel only.
dual_coef_ : ndarray of shape (n_topics, n_support)
    With a kernel only: the coefficients of `support_vectors_`, the rows that any topic's ranker is made of.
intercept_ : ndarray of shape (n_topics,)
classes_ : ndarray of shape (n_classes,)
n_iter_ : int
    The largest number of epochs.
n_epochs_, n_updates_, n_support_, converged_, prevalence_ : ndarray of shape (n_topics,)
    Per topic: epochs, updates, rows with a non-zero coefficient ("sparsity"), whether it converged, and the fraction of
    positives.
support_ : list of ndarray of int32
    Per topic: the rows with a non-zero coefficient.
directional_margin_, margin_, certificate_ : ndarray of shape (n_topics,)
    Per topic: the margin reached in the space that was trained in, with the bias as a coordinate and without; and the
    proven fraction of the largest possible directional margin (see `textcat.margin.problems.Solution`).
stopped_ : list of str
    Why training ended, in words.
solutions_ : list of textcat.margin.problems.Solution
"""


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

    _rule: ClassVar[type[rules.Rule]]
    _parameter_constraints: ClassVar[dict]

    def __init__(self, **settings: Any):  # each learner's own says what it takes, see `_learner`
        raise TypeError(f"MarginClassifier is what the learners share; use one of them: {', '.join(LEARNERS)}")

    def rules_for(self, prevalence: np.ndarray) -> list[rules.Rule]:
        """Return the rule of each topic, given the fraction of its positives."""
        given = {parameter.name: getattr(self, parameter.name) for parameter in self._rule.PARAMETERS}
        return [self._rule(**{name: value for name, value in given.items() if value is not None})] * len(prevalence)

    def fit(
        self, X: Any, Y: Any, progress: Callable[[int], None] | None = None, left_out: Any = None
    ) -> MarginClassifier:
        """Train one ranker per topic.

        Parameters
        ----------
        X : array-like, sparse matrix or rows on disk of shape (n_documents, n_features)
            float32 is trained in float32, everything else in float64. With ``kernel="precomputed"`` the kernel matrix,
            of shape (n_documents, n_documents). Rows on disk are what `textcat.open_rows` gives; `coef_` is then mapped
            from a file, too.
        Y : array-like of shape (n_documents,), or 0/1 indicator array or sparse matrix of shape (n_documents, n_topics)
            Two classes make one ranker, for the second in sorted order; more make one ranker a class; an indicator
            makes one a column.
        progress : callable, optional
            Called with 1 whenever a topic has been trained.
        left_out : 0/1 array or sparse matrix of shape (n_documents, n_topics), optional
            With an indicator Y: 1 where a document is neither positive nor negative, whatever Y says of it.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If X is not finite, Y does not fit X, left_out does not fit Y, there is only one class, or the kernel is
            none.
        """
        self._validate_params()
        if self.kernel is not None:
            check_kernel(self.kernel, self.kernel_params)
        X = self._read_rows(X)
        positives = self._read_labels(Y, X.shape[0])
        not_used = self._read_left_out(left_out, (X.shape[0], len(positives)))
        positives = [
            np.setdiff1d(topic, out) if len(out) else topic for topic, out in zip(positives, not_used, strict=True)
        ]
        n_used = X.shape[0] - np.array([len(out) for out in not_used])
        prevalence = np.array([len(topic) for topic in positives]) / np.maximum(n_used, 1)
        shape = X.shape[0], len(positives), X.shape[1]
        again = self.warm_start and getattr(self, "_fitted_to", None) == (*shape, X.dtype, self.kernel)
        starts = self.solutions_ if again else [None] * len(positives)
        settings = {"lambda_": self.lambda_, "rho": self._rho(X), "max_epochs": self.max_epochs}
        problems = [
            Problem(topic, rule, left_out=out, mini_epochs=self.mini_epochs, start=start, **settings)
            for topic, out, rule, start in zip(positives, not_used, self.rules_for(prevalence), starts, strict=True)
        ]
        train = partial(solve, problems=problems, margins=True, n_jobs=self.n_jobs, seed=self.seed, progress=progress)
        if self.kernel is None:
            self.coef_ = room_beside(getattr(X, "folder", None))(shape[1:], X.dtype)
            solutions = train(sp.csr_array(X) if isinstance(X, np.ndarray) else X, out=self.coef_)
        else:
            solutions = train(X, kernel=self.kernel, kernel_params=self.kernel_params, cache_mb=self.cache_mb)
            self._keep_support(X, solutions)
        self.prevalence_ = prevalence
        self._fitted_to = (*shape, X.dtype, self.kernel)
        self._keep(solutions, X.dtype)
        return self

    def _read_rows(self, X: Any) -> Any:
        if not is_on_disk(X):
            return validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], order="C")
        if self.kernel is not None:
            raise ValueError("rows on disk are for learners without a kernel: give a matrix, or kernel=None")
        self.n_features_in_ = X.shape[1]
        return X

    def _rho(self, X: Any) -> float:
        if self.rho != "R":
            return float(self.rho)
        if self.kernel is not None:
            rows = KernelRows(X, self.kernel, self.kernel_params)
            return float(np.sqrt(rows.diagonal.max()))
        blocks = map(sp.csr_array, _blocks(X) if is_on_disk(X) else [X])
        return float(np.sqrt(max(rows.multiply(rows).sum(axis=1).max() for rows in blocks)))

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
            return _rows_by_column(indicator)
        y = column_or_1d(labels, warn=True)
        _check_length(len(y), n_rows)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y has only one class, {self.classes_[0]!r}; training needs at least two")
        wanted = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        return [np.flatnonzero(codes == code).astype(np.int32) for code in wanted]

    def _read_left_out(self, left_out: Any, shape: tuple[int, int]) -> list[np.ndarray]:
        """Return the rows that each topic leaves out."""
        if left_out is None:
            return [NONE] * shape[1]
        mask = sp.csc_array(left_out, copy=True)
        if not self.multilabel_ or mask.shape != shape:
            raise ValueError(f"left_out must be of the shape of an indicator Y, here {shape}, got {mask.shape}")
        mask.eliminate_zeros()
        return _rows_by_column(mask)

    def _keep_support(self, X: Any, solutions: list[Solution]) -> None:
        """Keep the rows that any ranker is made of; of a precomputed kernel their numbers."""
        used = np.unique(np.concatenate([solution.support for solution in solutions]))
        self.support_vectors_ = used if self.kernel == "precomputed" else X[used]
        self.dual_coef_ = np.zeros((len(solutions), len(used)), X.dtype)
        for row, solution in zip(self.dual_coef_, solutions, strict=True):
            row[np.searchsorted(used, solution.support)] = solution.alpha

    def _keep(self, solutions: list[Solution], dtype: np.dtype) -> None:
        self.solutions_ = solutions
        self.intercept_ = np.array([solution.bias for solution in solutions], dtype)
        self.support_ = [solution.support for solution in solutions]
        self.directional_margin_ = np.array([solution.directional_margin for solution in solutions])
        self.margin_ = np.array([solution.margin for solution in solutions])
        self.certificate_ = np.array([solution.certificate for solution in solutions])
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
        """Return what training found for each topic, by name: epochs, updates, support, margins, why it stopped."""
        margins = {name: getattr(self, f"{name}_").tolist() for name in ("directional_margin", "margin", "certificate")}
        return {
            **{name: [None if np.isnan(value) else value for value in values] for name, values in margins.items()},
            "epochs": self.n_epochs_.tolist(),
            "updates": self.n_updates_.tolist(),
            "support": self.n_support_.tolist(),
            "stopped": list(self.stopped_),
        }

    def decision_function(self, X: Any) -> np.ndarray:
        """Score documents for every topic.

        Parameters
        ----------
        X : array-like, sparse matrix or rows on disk of shape (n_documents, n_features)

        Returns
        -------
        scores : ndarray of shape (n_documents, n_topics), or (n_documents,) with two classes
            Signed, unscaled; larger = more relevant. Not a probability.
        """
        check_is_fitted(self)
        if not is_on_disk(X):
            X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        if self.kernel is None:
            weights = np.ascontiguousarray(self.coef_.T)
            found = np.concatenate([rows @ weights for rows in _blocks(X)]) if is_on_disk(X) else X @ weights
            found = found + self.intercept_
        else:
            expansion = self.support_vectors_, self.dual_coef_, self.intercept_
            found = scores(X, *expansion, kernel=self.kernel, kernel_params=self.kernel_params)
        return found if self.multilabel_ or len(self.classes_) > 2 else found[:, 0]

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
        return hasattr(self, "intercept_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.classifier_tags.multi_label = True
        return tags


def _constructor(parameters: dict[str, tuple[Any, Any]], n_positional: int) -> Callable[..., None]:
    """Make an ``__init__`` that sets the parameters, given by name with their kinds and defaults, as attributes."""

    def set_parameters(self: Any, *args: Any, **settings: Any) -> None:
        bound = signature.bind(self, *args, **settings)
        bound.apply_defaults()
        for name in parameters:
            setattr(self, name, bound.arguments[name])

    signature = inspect.Signature(
        [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
        + [
            inspect.Parameter(
                name,
                inspect.Parameter.POSITIONAL_OR_KEYWORD if place < n_positional else inspect.Parameter.KEYWORD_ONLY,
                default=default,
                annotation=kind,
            )
            for place, (name, (kind, default)) in enumerate(parameters.items())
        ]
    )
    set_parameters.__signature__ = signature  # type: ignore[attr-defined]
    set_parameters.__annotations__ = {name: kind for name, (kind, _) in parameters.items()}
    return set_parameters


def _learner(
    name: str, rule: type[rules.Rule], more: _Parameters | None = None, base: type = MarginClassifier, **defaults: float
) -> type[MarginClassifier]:
    """Make the classifier of a rule: with the rule's parameters and these defaults, more of its own, and the shared."""
    own: _Parameters = {parameter.name: _of_rule(parameter, defaults) for parameter in rule.PARAMETERS}
    everything = {**own, **(more or {}), **_SHARED}
    body = {
        "__doc__": _describe(rule, {**(more or {}), **_SHARED}),
        "__init__": _constructor({key: (kind, default) for key, (kind, default, _, _) in everything.items()}, len(own)),
        "__module__": __name__,
        "_parameter_constraints": {key: checks for key, (_, _, checks, _) in everything.items()},
        "_rule": rule,
    }
    return type(name, (base,), body)


def _of_rule(parameter: rules.Parameter, defaults: dict[str, float]) -> tuple[Any, Any, list, str]:
    """Return a rule's parameter as a classifier's; where the rule computes its default, None stands for it."""
    interval = Interval(Real, parameter.low, parameter.high, closed=parameter.closed)
    default = defaults.get(parameter.name, parameter.default)
    if callable(default):
        return float | None, None, [interval, None], ""
    return float, default, [interval], ""


def _describe(rule: type[rules.Rule], more: _Parameters) -> str:
    """Write the docstring of a rule's classifier: the rule's own, with the further parameters and the attributes."""
    text, _, notes = inspect.cleandoc(rule.__doc__ or "").partition("\nNotes\n-----\n")
    wrap = partial(textwrap.fill, width=116, initial_indent="    ", subsequent_indent="    ")
    further = "\n".join(f"{name}\n{wrap(meaning)}" for name, (_, _, _, meaning) in more.items())
    return f"{text.rstrip()}\n{further}\n{_ATTRIBUTES}\nNotes\n-----\n{notes}\n"


class _AdaptedMargin(MarginClassifier):
    """What is PAUM's alone: τ₊ may be adapted to each topic's prevalence."""

    def rules_for(self, prevalence: np.ndarray) -> list[rules.Rule]:
        if self.tau_pos == "prevalence":
            self.tau_pos_ = prevalence_tau(prevalence, self.kappa, self.scale)
        else:
            self.tau_pos_ = np.full(len(prevalence), float(self.tau_pos))
        return [rules.PAUM(self.tau_neg, tau_pos, self.eta) for tau_pos in self.tau_pos_]

    def facts(self) -> dict[str, list]:
        """Return what training found for each topic, by name: τ₊, and what every learner tells."""
        return {"tau_pos": self.tau_pos_.tolist(), **super().facts()}


_ADAPTED: _Parameters = {
    "tau_pos": (
        float | str, "prevalence", [_FINITE, StrOptions({"prevalence"})],
        "Margin asked of positive rows; \"prevalence\": τ₊ = S·(1 + exp(-κ·c))⁻¹, with c the topic's fraction of "
        "positives. The margins are in `tau_pos_`.",
    ),
    "kappa": (float, -20.0, [_FINITE], "κ of the formula. The defaults come from the study in docs/tau-study.md."),
    "scale": (float, 100.0, [_FINITE], "S of the formula."),
}  # fmt: skip

PA = _learner("PA", rules.PA)
PAM = _learner("PAM", rules.PAM, tau=1.0)
PAUM = _learner("PAUM", rules.PAUM, _ADAPTED, _AdaptedMargin, tau_neg=-0.5)
TMargitron = _learner("TMargitron", rules.TMargitron, epsilon=0.5, b=1.0)
LMargitron = _learner("LMargitron", rules.LMargitron, epsilon=0.5, b=3.0)
Micra = _learner("Micra", rules.MICRA, eta=1.0, beta=5.0, epsilon=0.5, zeta=0.5)
Cramma = _learner("Cramma", rules.CRAMMA, eta=0.03, beta=1.0)
Alma = _learner("Alma", rules.ALMA, alpha=0.5)
Romma = _learner("Romma", rules.ROMMA, delta=0.2)
DynamicMargin = _learner("DynamicMargin", rules.PDM, epsilon=0.1)


def _rows_by_column(indicator: sp.csc_array) -> list[np.ndarray]:
    return [np.sort(rows).astype(np.int32) for rows in np.split(indicator.indices, indicator.indptr[1:-1])]


def _blocks(X: Any) -> Iterator[Any]:
    """Yield rows on disk as matrices of a few."""
    for start in range(0, X.shape[0], _BLOCK_ROWS):
        yield X[start : start + _BLOCK_ROWS]


def _check_length(n_labels: int, n_rows: int) -> None:
    if n_labels != n_rows:
        raise ValueError(f"X has {n_rows} rows and Y has {n_labels}; they must be as many")


# The learners by the names that recipes and the command line use.
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
