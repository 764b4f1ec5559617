"""The dual form as a student would write it: coefficients alone, every sum made anew, nothing kept between two rows.

`Coefficients` stands in for `naive.Vector`, so that every learner of `naive` runs on a kernel.
"""

from dataclasses import dataclass, field
from math import sqrt


@dataclass
class Coefficients:
    """The vector a = Σ_j alpha_j x_j in the space of a kernel, with augmented and private coordinates."""

    kernel: list  # of lists
    rho: float = 1.0
    lambda_: float = 0.0
    updates: list = field(default_factory=list)  # (row, shrink, grow) of every update, in order

    def __post_init__(self):
        self.alpha = [0.0] * len(self.kernel)
        self.R = 0.0  # the length of the longest row trained on, see `naive.train`

    @property
    def t(self):
        return len(self.updates)

    @property
    def w_b(self):
        return self.rho * sum(self.alpha)

    @property
    def bias(self):
        return self.rho * self.w_b

    @property
    def N(self):
        return self.squared_length()

    def inner_product(self, i, j):
        """⟨x_i, x_j⟩ with the augmented coordinate, and the private one where i = j."""
        return self.kernel[i][j] + self.rho**2 + (self.lambda_ if i == j else 0)

    def f(self, i):
        return sum(alpha * self.inner_product(j, i) for j, alpha in enumerate(self.alpha) if alpha)

    def squared_length_of_row(self, i):
        return self.inner_product(i, i)

    def squared_length(self):
        return sum(alpha * self.f(i) for i, alpha in enumerate(self.alpha) if alpha)

    def update(self, i, y, shrink, grow):
        """a ← shrink·a + grow·y·x"""
        self._shrink(shrink)
        self.alpha[i] += grow * y
        self.updates.append((i, shrink, grow))

    def into_the_unit_ball(self):
        """a ← a / max(1, ‖a‖)"""
        self._shrink(1 / max(1, sqrt(self.squared_length())))

    def _shrink(self, shrink):
        self.alpha = [shrink * alpha for alpha in self.alpha]
