"""The learners as their papers write them: one row after another, in plain Python, nothing shared and nothing clever.

Every loop can be laid beside the paper. The compiled kernel must make the same updates in the same order.
"""

from dataclasses import dataclass, field


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
        self.w = [shrink * w for w in self.w]
        self.w_b = shrink * self.w_b
        self.alpha = [shrink * alpha for alpha in self.alpha]
        for feature, value in self.rows[i]:
            self.w[feature] += grow * y * value
        self.w_b += grow * y * self.rho
        self.alpha[i] += grow * y
        self.updates.append((i, shrink, grow))


def pa(a, labels, order, max_epochs, eta=1.0):
    """The perceptron algorithm (Rosenblatt; Novikoff 1962). Returns the number of epochs."""
    for epoch in range(1, max_epochs + 1):
        mistakes = 0
        for i in order:
            y = labels[i]
            if y != 0 and y * a.f(i) <= 0:
                a.update(i, y, 1, eta)
                mistakes += 1
        if mistakes == 0:
            return epoch
    return max_epochs


def pam(a, labels, order, max_epochs, tau, eta=1.0):
    """The perceptron algorithm with margins (Krauth and Mézard 1987). Returns the number of epochs."""
    for epoch in range(1, max_epochs + 1):
        mistakes = 0
        for i in order:
            y = labels[i]
            if y != 0 and y * a.f(i) <= tau:
                a.update(i, y, 1, eta)
                mistakes += 1
        if mistakes == 0:
            return epoch
    return max_epochs


def paum(a, labels, order, max_epochs, tau_neg, tau_pos, eta=1.0):
    """The perceptron algorithm with uneven margins (Li et al. 2002, Algorithm 1). Returns the number of epochs."""
    for epoch in range(1, max_epochs + 1):
        mistakes = 0
        for i in order:
            y = labels[i]
            tau = tau_pos if y > 0 else tau_neg
            if y != 0 and y * a.f(i) <= tau:
                a.update(i, y, 1, eta)
                mistakes += 1
        if mistakes == 0:
            return epoch
    return max_epochs


def romma(a, labels, order, max_epochs, delta):
    """The aggressive relaxed online maximum margin algorithm (Li and Long 2002). Returns the number of epochs."""
    started = False
    for epoch in range(1, max_epochs + 1):
        mistakes = 0
        for i in order:
            y = labels[i]
            if y == 0:
                continue
            m = y * a.f(i)
            q = a.squared_length_of_row(i)
            N = a.squared_length()
            if not started:
                a.update(i, y, 0, 1 / q)
                started = True
            elif m > 1 - delta:
                continue
            elif m >= q * N:
                a.update(i, y, 0, 1 / q)
            else:
                a.update(i, y, (q * N - m) / (q * N - m**2), N * (1 - m) / (q * N - m**2))
            mistakes += 1
        if mistakes == 0:
            return epoch
    return max_epochs
