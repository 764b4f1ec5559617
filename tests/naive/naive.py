"""The learners as their papers write them: one row after another, in plain Python, nothing shared and nothing clever.

Every learner can be laid beside its paper. It is a function of its parameters that returns `step(a, i, y)`: look at row
i of label y, change the vector a where the row fails, and say whether it failed. `train` presents the rows. What is
compiled must make the same updates in the same order.
"""

from dataclasses import dataclass, field
from math import inf, sqrt

import numpy as np


@dataclass
class Vector:
    """The weight vector a, with its augmented coordinate (size rho) and its private coordinates (size √lambda_).

    The private coordinate of row i has the weight √λ·alpha[i]; inside f(x) that is λ·alpha[i].
    """

    rows: list  # of lists of (feature, value), in the order of the features
    n_features: int
    rho: float = 1.0
    lambda_: float = 0.0
    updates: list = field(default_factory=list)  # (row, shrink, grow) of every update, in order

    def __post_init__(self):
        self.w = [0.0] * self.n_features
        self.w_b = 0.0
        self.alpha = [0.0] * len(self.rows)
        self.N = 0.0  # the squared length, carried along from update to update
        self.R = 0.0  # the length of the longest row trained on, see `train`

    @property
    def t(self):
        """The number of updates so far."""
        return len(self.updates)

    @property
    def bias(self):
        return self.rho * self.w_b

    def f(self, i):
        total = 0.0
        for feature, value in self.rows[i]:
            total += value * self.w[feature]
        total += self.rho * self.w_b
        total += self.lambda_ * self.alpha[i]
        return total

    def squared_length_of_row(self, i):
        return sum(value * value for _, value in self.rows[i]) + self.rho**2 + self.lambda_

    def squared_length(self):
        return sum(w * w for w in self.w) + self.w_b**2 + self.lambda_ * sum(alpha * alpha for alpha in self.alpha)

    def update(self, i, y, shrink, grow):
        """a ← shrink·a + grow·y·x"""
        m, q = y * self.f(i), self.squared_length_of_row(i)
        self.N = shrink * shrink * self.N + grow * (2 * shrink * m + grow * q)
        self._shrink(shrink)
        for feature, value in self.rows[i]:
            self.w[feature] += grow * y * value
        self.w_b += grow * y * self.rho
        self.alpha[i] += grow * y
        self.updates.append((i, shrink, grow))

    def into_the_unit_ball(self):
        """a ← a / max(1, ‖a‖)"""
        self._shrink(1 / max(1, sqrt(self.squared_length())))
        self.N = self.squared_length()

    def _shrink(self, shrink):
        self.w = [shrink * w for w in self.w]
        self.w_b = shrink * self.w_b
        self.alpha = [shrink * alpha for alpha in self.alpha]


def train(a, labels, order, max_epochs, step, mini_epochs=0, tol=0):
    """Present the rows, epoch after epoch, until none fails. Returns the number of epochs, and whether it converged.

    With mini_epochs, the active set ("red-" in the papers): the rows that failed in an epoch are presented again before
    the next one, cyclically, until none of them fails, at most so many times (Tsampouka and Shawe-Taylor 2007).
    With tol, it ends with an epoch whose updates are at most that fraction of all so far, and its active set.
    """
    shown = [i for i in order if labels[i] != 0]
    a.R = sqrt(max((a.squared_length_of_row(i) for i in shown), default=0))
    for epoch in range(1, max_epochs + 1):
        failed = [i for i in shown if step(a, i, labels[i])]
        ending = len(failed) <= tol * a.t
        if not failed or epoch == max_epochs:
            return epoch, ending
        for _ in range(mini_epochs):
            if not [i for i in failed if step(a, i, labels[i])]:
                break
        if ending:
            return epoch, True
    raise AssertionError("max_epochs must be at least 1")


def pa(eta=1.0):
    """The perceptron algorithm (Rosenblatt; Novikoff 1962)."""

    def step(a, i, y):
        failed = y * a.f(i) <= 0
        if failed:
            a.update(i, y, 1, eta)
        return failed

    return step


def pam(tau, eta=1.0):
    """The perceptron algorithm with margins (Krauth and Mézard 1987)."""

    def step(a, i, y):
        failed = y * a.f(i) <= tau
        if failed:
            a.update(i, y, 1, eta)
        return failed

    return step


def paum(tau_neg, tau_pos, eta=1.0):
    """The perceptron algorithm with uneven margins (Li et al. 2002, Algorithm 1)."""

    def step(a, i, y):
        tau = tau_pos if y > 0 else tau_neg
        failed = y * a.f(i) <= tau
        if failed:
            a.update(i, y, 1, eta)
        return failed

    return step


def t_margitron(epsilon, b):
    """The t-margitron (Panagiotakopoulos and Tsampouka 2008, equation 3): the threshold grows with the updates."""

    def step(a, i, y):
        threshold = b * a.t ** (1 - epsilon) if a.t > 0 else 0
        failed = y * a.f(i) <= threshold
        if failed:
            a.update(i, y, 1, 1)
        return failed

    return step


def l_margitron(epsilon, b):
    """The ℓ-margitron (Panagiotakopoulos and Tsampouka 2008, equation 4): the threshold grows with ‖a‖."""

    def step(a, i, y):
        N = max(a.N, 0)  # rounding may leave it just below
        threshold = b * N ** ((1 - epsilon) / 2) if N > 0 or epsilon <= 1 else inf
        if a.t == 0:
            threshold = 0
        failed = y * a.f(i) <= threshold
        if failed:
            a.update(i, y, 1, 1)
        return failed

    return step


def micra(eta, beta, epsilon, zeta):
    """The mistake-controlled rule algorithm (Tsampouka and Shawe-Taylor 2007, Algorithm 1)."""

    def step(a, i, y):
        if a.N <= 0:  # a = 0, or what rounding leaves of it
            a.update(i, y, 1, 1)
            return True
        eta_t = sqrt(a.N) * (eta / a.R) * a.t**-zeta
        beta_t = sqrt(a.N) * beta * a.t**-epsilon
        failed = y * a.f(i) <= beta_t
        if failed:
            a.update(i, y, 1, eta_t)
        return failed

    return step


def cramma(eta, beta, epsilon):
    """The constant rate approximate maximum margin algorithm (Tsampouka and Shawe-Taylor 2006)."""

    def step(a, i, y):
        if a.N <= 0:  # a = 0, or what rounding leaves of it
            a.update(i, y, 1, 1)
            return True
        failed = y * a.f(i) <= sqrt(a.N) * beta * a.t**-epsilon
        if failed:
            a.update(i, y, 1, sqrt(a.N) * (eta / a.R))
        return failed

    return step


def alma(alpha, B, C):
    """The approximate large margin algorithm for p = 2 (Gentile 2001), on rows x/R: the longest has length 1."""

    def step(a, i, y):
        k = a.t + 1
        gamma_k = B / sqrt(k)
        eta_k = C / sqrt(k)
        failed = y * a.f(i) / a.R <= (1 - alpha) * gamma_k
        if failed:
            a.update(i, y, 1, eta_k / a.R)
            a.into_the_unit_ball()
        return failed

    return step


def romma(delta):
    """The aggressive relaxed online maximum margin algorithm (Li and Long 2002)."""

    def step(a, i, y):
        m = y * a.f(i)
        q = a.squared_length_of_row(i)
        N = a.squared_length()
        if a.t == 0:
            a.update(i, y, 0, 1 / q)
        elif m > 1 - delta:
            return False
        elif m >= q * N:
            a.update(i, y, 0, 1 / q)
        else:
            a.update(i, y, (q * N - m) / (q * N - m**2), N * (1 - m) / (q * N - m**2))
        return True

    return step


def pdm(epsilon):
    """The perceptron with dynamic margin (Panagiotakopoulos and Tsampouka 2011)."""

    def step(a, i, y):
        failed = a.t == 0 or y * a.f(i) <= (1 - epsilon) * a.N / a.t
        if failed:
            a.update(i, y, 1, 1)
        return failed

    return step


def without_folds(X, fold, group, label, threshold, alpha, score, order, lambda_, rho, n_passes, own):
    """What leaving out its fold adds to each row's score, and what each fold adds to the bias: two trainings a fold."""

    def trained(left_out):
        a = np.where(fold == left_out, 0, alpha)
        for _ in range(n_passes):
            for i in order:
                if fold[i] != left_out:
                    f = score[i] + np.sum((a - alpha) * label * (X @ X[i] + rho**2))
                    a[i] = max(
                        0, a[i] + (threshold[i] - label[i] * f - lambda_ * a[i]) / (X[i] @ X[i] + rho**2 + lambda_)
                    )
        return a

    whole, added, of_folds = trained(None), np.zeros(len(X)), np.zeros(7)
    for number in range(7):
        changed = (trained(number) - whole) * label
        of_folds[number] = rho**2 * changed.sum()
        for i in np.flatnonzero(fold == number):
            overshoot = np.sum(((alpha - whole) * label)[group == group[i]]) * (X[i] @ X[i] + rho**2)
            added[i] = changed @ (X @ X[i]) + of_folds[number] - own * overshoot
    return added, of_folds


def margins(a, labels):
    """Return the directional margin, the geometric one, and the fraction of the largest directional margin it proves.

    min m/‖a‖ and min m/‖w‖ over the rows trained on, w being a without its augmented coordinate; and since
    ⟨u, a⟩ ≥ γ_d·Σ|alpha_i| for the unit vector u of the largest directional margin γ_d, γ_d ≤ ‖a‖/Σ|alpha_i|.
    """
    smallest = min(y * a.f(i) for i, y in enumerate(labels) if y != 0)
    length = sqrt(a.squared_length())
    length_without_bias = sqrt(a.squared_length() - a.w_b**2)
    largest = length / sum(abs(alpha) for alpha in a.alpha)
    return smallest / length, smallest / length_without_bias, smallest / length / largest
