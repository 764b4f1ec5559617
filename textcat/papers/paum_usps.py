"""The PAUM paper's Table 1: errors on USPS's digits after one epoch, three, and convergence, with a Gaussian kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from textcat.margin.problems import Problem
from textcat.margin.rules import ALMA, PA, PAM, Rule
from textcat.margin.solve import solve
from textcat.papers import datasets
from textcat.papers.datasets import _Dataset
from textcat.papers.experiments import Figure, Row, Settings, Task, _described, published, timed
from textcat.papers.micra import HARD

SIGMA = 3.5
N_ORDERS = 10
EPOCHS = {"1 epoch": 1, "3 epochs": 3, "convergence": 1000}
_PRINTED: Mapping[str, Sequence[float]] = published()["paum"]["table1"]

# ALMA(α) as Gentile (2001) writes it, with the B of his experiments: PA's test would be α = 1.
RULES: dict[str, Rule] = {
    "PA": PA(),
    "PAM(0.2)": PAM(0.2),
    "PAM(0.4)": PAM(0.4),
    "ALMA(0.9)": ALMA(0.9, B=1 / 0.9),
    "ALMA(0.95)": ALMA(0.95, B=1 / 0.95),
}


class _Kernels(NamedTuple):
    """Training and test images by their kernel with the training images, (n_images, n_train), and their digits."""

    train: np.ndarray
    test: np.ndarray
    digits: np.ndarray
    test_digits: np.ndarray

    @classmethod
    def of(cls, dataset: _Dataset) -> _Kernels:
        """Compute ``exp(-|x - x'|²/(2σ)²)``."""
        from sklearn.metrics.pairwise import rbf_kernel

        assert dataset.X_test is not None
        assert dataset.y_test is not None
        train, test = (X.toarray().astype(np.float32) for X in (dataset.X, dataset.X_test))
        gamma = 1 / (2 * SIGMA) ** 2
        return cls(rbf_kernel(train, gamma=gamma), rbf_kernel(test, train, gamma=gamma), dataset.y, dataset.y_test)

    def error(self, outputs: np.ndarray) -> float:
        """Return the percentage of test images of which another digit's output is the largest."""
        return 100 * float(np.mean(np.unique(self.digits)[outputs.argmax(axis=1)] != self.test_digits))


@cache
def kernels() -> _Kernels:
    """Return the kernels of USPS, computed once."""
    return _Kernels.of(datasets.load("usps"))


def _train(kernels: _Kernels, rule: Rule, max_epochs: int, seed: int, n_jobs: int) -> tuple[float, float]:
    """Train a perceptron per digit against all others, without bias or λ.

    Returns the error on the test images in percent, and the epochs until convergence or the last, a mean over digits.
    """
    problems = [
        Problem(np.flatnonzero(kernels.digits == digit).astype(np.int32), rule, rho=0.0, max_epochs=max_epochs)
        for digit in np.unique(kernels.digits)
    ]
    solutions = solve(kernels.train, problems, n_jobs=n_jobs, seed=seed, kernel="precomputed")
    alpha = np.zeros((len(kernels.digits), len(solutions)), kernels.train.dtype)
    for digit, solution in enumerate(solutions):
        alpha[solution.support, digit] = solution.alpha
    return kernels.error(kernels.test @ alpha), float(np.mean([solution.n_epochs for solution in solutions]))


def _perceptron_row(
    kernels: _Kernels, name: str, printed: Sequence[float], n_jobs: int, n_orders: int = N_ORDERS
) -> Row:
    """Train one of the perceptrons in random orders, up to every stage that the paper prints."""
    stages, seeds = list(EPOCHS.items())[: len(printed)], range(n_orders)
    runs, seconds = timed(
        lambda: np.array([[_train(kernels, RULES[name], n, seed, n_jobs) for seed in seeds] for _, n in stages])
    )
    errors, epochs = runs[:, :, 0], runs[:, :, 1]
    means = zip(stages, errors.mean(axis=1).tolist(), printed, strict=True)
    figures = {f"{stage} %": Figure(error, expected, 2) for (stage, _), error, expected in means}
    if len(stages) == len(EPOCHS):
        figures["epochs"] = Figure(float(epochs[-1].mean()))
    spread = ", ".join(f"{deviation:.2f}" for deviation in errors.std(axis=1))
    return Row(name, figures, seconds, f"{name}: the standard deviation over orders is {spread}.")


def _svm_row(kernels: _Kernels, printed: Sequence[float]) -> Row:
    """Train LIBSVM's machine of maximal margin for each digit."""
    from sklearn.svm import SVC

    def outputs() -> list[np.ndarray]:
        train, test = kernels.train.astype(np.float64), kernels.test.astype(np.float64)
        machine = SVC(C=HARD, kernel="precomputed")
        return [machine.fit(train, kernels.digits == d).decision_function(test) for d in np.unique(kernels.digits)]

    scores, seconds = timed(outputs)
    figures = {"convergence %": Figure(kernels.error(np.column_stack(scores)), printed[-1], 2)}
    return Row("SVM", figures, seconds, "The paper takes its figure from Platt et al. (2000). Here: LIBSVM, C = 10⁵.")


def _perceptron(name: str, settings: Settings) -> list[Row]:
    return [_perceptron_row(kernels(), name, _PRINTED[name], settings.n_jobs)]


def _svm(settings: Settings) -> list[Row]:
    return [_svm_row(kernels(), _PRINTED["SVM"])]


_TASKS = [*(Task(name, partial(_perceptron, name)) for name in RULES), Task("SVM", _svm)]
EXPERIMENTS = (_described("paum-table-1", ("usps",), *_TASKS),)
