"""What the papers prove holds: hypothesis draws separable rows whose margin is known, and every bound is kept."""

from dataclasses import dataclass
from math import inf, isfinite, log, sqrt

import numpy as np
import pytest
import scipy.sparse as sp
from cases import every
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import brentq, nnls

from textcat.margin.problems import Problem
from textcat.margin.rules import ALMA, CRAMMA, MICRA, PA, PAM, PAUM, PDM, ROMMA, LMargitron, TMargitron
from textcat.margin.solve import solve

ROUNDING = 1e-9  # relative; all is float64

EPSILONS = st.sampled_from([0.1, 0.3, 0.5, 0.8, 1.0, 1.5])
ABOUT = st.sampled_from([1, 10, 100, 3000])  # about so many updates are to be made
FRACTIONS = st.sampled_from([0.5, 0.2, 0.05])
MINI_EPOCHS = st.sampled_from([0, 0, 3])  # the active set is only another order of presentation


@dataclass
class Sample:
    """Rows that the unit vector u and the bias separate with a margin of gamma at least."""

    X: np.ndarray
    y: np.ndarray
    u: np.ndarray
    bias: float
    gamma: float

    @property
    def longest(self):
        return np.linalg.norm(self.X, axis=1).max()


@dataclass
class Space:
    """The augmented and extended space of a sample: its rows times their labels, R, the largest directional margin."""

    sample: Sample
    rho: float
    lambda_: float

    def __post_init__(self):
        n = len(self.sample.X)
        self.rows = self.sample.y[:, None] * np.hstack([self.sample.X, np.full((n, 1), self.rho)])
        self.rows = np.hstack([self.rows, sqrt(self.lambda_) * np.eye(n)])
        self.R = np.linalg.norm(self.rows, axis=1).max()
        self.gamma_d = largest_directional_margin(self.rows)

    def solve(self, rule, mini_epochs=0, max_epochs=10**8):
        sample = self.sample
        problem = Problem.from_labels(
            sample.y, rule, rho=self.rho, lambda_=self.lambda_, mini_epochs=mini_epochs, max_epochs=max_epochs
        )
        (solution,) = solve(sp.csr_array(sample.X), [problem], margins=True)
        assert solution.converged or max_epochs < 10**8
        return solution

    def fraction(self, solution):
        return solution.directional_margin / self.gamma_d


def largest_directional_margin(rows):
    """Return max over unit vectors u of min_i ⟨u, rows_i⟩: the distance of the origin from the rows' convex hull.

    With nonnegative least squares: ‖Σ alpha_i rows_i‖² + R²(Σ alpha_i - 1)² is least where the first sum, divided by
    Σ alpha_i, is the point of the hull closest to the origin.
    """
    R = np.linalg.norm(rows, axis=1).max()
    alpha, _ = nnls(np.vstack([rows.T, np.full(len(rows), R)]), np.append(np.zeros(rows.shape[1]), R))
    a = alpha @ rows
    upper = np.linalg.norm(a) / alpha.sum()
    reached = (rows @ a).min() / np.linalg.norm(a)
    assert reached == pytest.approx(upper, rel=1e-9), "the margin that a reaches, and the bound that alpha proves"
    return upper


@st.composite
def samples(draw, with_bias=True):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_rows, n_features = draw(st.integers(2, 25)), draw(st.integers(1, 4))
    gamma = draw(st.floats(0.1, 0.5))
    u = rng.normal(size=n_features)
    u /= np.linalg.norm(u)
    bias = rng.uniform(-0.5, 0.5) if with_bias else 0.0
    X = rng.normal(size=(n_rows, n_features))
    scores = X @ u + bias
    y = np.where(scores >= 0, 1, -1)
    X += (y * np.maximum(0, gamma - np.abs(scores)))[:, None] * u  # pushed away from the plane
    return Sample(X, y, u, bias, gamma)


@st.composite
def spaces(draw):
    """A sample in the space in which it is separable through the origin: augmented, extended, both or neither."""
    rho, lambda_ = draw(st.sampled_from([(0.0, 0.0), (1.0, 0.0), (2.0, 0.0), (1.0, 0.5), (0.0, 1.0)]))
    return Space(draw(samples(with_bias=rho > 0)), rho, lambda_)


# --- the sample itself ---


@given(samples(), st.sampled_from([0.5, 1.0, 3.0]))
def test_the_margin_of_a_sample_is_at_least_what_it_was_made_with(sample, rho):
    assert (sample.y * (sample.X @ sample.u + sample.bias)).min() >= sample.gamma * (1 - ROUNDING)
    known = sample.gamma / sqrt(1 + (sample.bias / rho) ** 2)  # the unit vector of the augmented space
    assert Space(sample, rho, 0.0).gamma_d >= known * (1 - ROUNDING)


@every(
    "rows, gamma_d",
    [([[3, 4]], 5), ([[1, 0], [0, 1]], sqrt(0.5)), ([[2, 1], [2, -3], [5, 0]], 2), (np.eye(7), 1 / sqrt(7))],
)
def test_the_largest_directional_margin_is_found_where_it_is_known(rows, gamma_d):
    assert largest_directional_margin(np.array(rows, float)) == pytest.approx(gamma_d, rel=1e-12)


# --- the perceptron: Novikoff, and Theorem 2.1 of Li et al. 2002 ---


@given(samples(with_bias=False), MINI_EPOCHS)
def test_the_perceptron_without_bias_keeps_the_bound_of_novikoff_on_its_mistakes(sample, mini_epochs):
    solution = Space(sample, 0.0, 0.0).solve(PA(), mini_epochs)
    assert solution.n_updates <= (sample.longest / sample.gamma) ** 2 * (1 + ROUNDING)


@given(samples(), st.floats(-2, 2), st.floats(0, 20), st.sampled_from([0.1, 1, 5]), MINI_EPOCHS)
def test_paum_keeps_the_bound_of_theorem_2_1_on_the_number_of_updates(sample, tau_neg, tau_pos, eta, mini_epochs):
    R, gamma = sample.longest, sample.gamma
    assume(abs(sample.bias) <= R)
    solution = Space(sample, R, 0.0).solve(PAUM(tau_neg, tau_pos, eta), mini_epochs)
    bound = 4 * ((R / gamma) ** 2 + max(tau_neg, tau_pos) / (eta * gamma**2))
    assert solution.n_updates <= bound * (1 + ROUNDING)


@given(samples(), st.floats(0.1, 20), st.floats(0.1, 20), st.sampled_from([0.1, 1, 5]), MINI_EPOCHS)
def test_paum_reaches_the_margins_of_theorem_2_1_on_either_side(sample, tau_neg, tau_pos, eta, mini_epochs):
    X, y, R = sample.X, sample.y, sample.longest
    assume(np.any(y > 0) and np.any(y < 0))
    psi = (eta * R**2 + tau_pos) / (eta * R**2 + tau_neg)
    scores = X @ sample.u
    least, greatest = scores[y > 0].min(), scores[y < 0].max()
    bias = -(least + psi * greatest) / (1 + psi)  # where the margins of the two sides are as 1 to ψ
    assume(abs(bias) <= R)
    gamma_neg, gamma_pos = -(greatest + bias), least + bias
    assert gamma_pos == pytest.approx(psi * gamma_neg)
    solution = Space(sample, R, 0.0).solve(PAUM(tau_neg, tau_pos, eta), mini_epochs)
    reached = (X @ solution.weights + solution.bias) / np.linalg.norm(solution.weights)
    assert reached[y > 0].min() > gamma_pos * tau_pos / (sqrt(8) * (eta * R**2 + tau_pos)) * (1 - ROUNDING)
    assert -reached[y < 0].max() > gamma_neg * tau_neg / (sqrt(8) * (eta * R**2 + tau_neg)) * (1 - ROUNDING)


@given(spaces(), st.floats(0.01, 100), st.sampled_from([0.1, 1, 5]), MINI_EPOCHS)
def test_pam_reaches_the_fraction_of_krauth_and_mezard_and_keeps_its_bound(space, tau, eta, mini_epochs):
    solution = space.solve(PAM(tau, eta), mini_epochs)
    assert space.fraction(solution) >= tau / (2 * tau + eta * space.R**2) * (1 - ROUNDING)
    assert solution.n_updates <= (space.R**2 + 2 * tau / eta) / space.gamma_d**2 * (1 + ROUNDING)


# --- the margitron: Panagiotakopoulos and Tsampouka 2008 ---


@given(spaces(), EPSILONS, ABOUT, MINI_EPOCHS)
def test_the_t_margitron_keeps_its_bounds(space, epsilon, about, mini_epochs):
    R, gamma_d = space.R, space.gamma_d
    b = gamma_d**2 * about**epsilon
    solution = space.solve(TMargitron(epsilon, b), mini_epochs)
    t = solution.n_updates
    assert t <= most_updates(lambda t: longest_t_margitron(t, epsilon, b, R) - gamma_d * t) * (1 + ROUNDING)
    asymptotic = 1 - epsilon / 2
    after = asymptotic / (1 + asymptotic * R**2 / b * t ** (epsilon - 1))
    assert space.fraction(solution) >= after * (1 - ROUNDING)
    if epsilon <= 1:  # Before running: t ≥ (b/(R·γ_d))^(1/ε), as ‖a‖ ≤ R·t, and γ_d ≤ R.
        assert t >= (b / (R * gamma_d)) ** (1 / epsilon) * (1 - ROUNDING)
        before = asymptotic / (1 + asymptotic * (R**2 / b) ** (1 / epsilon))
        assert before <= after * (1 + ROUNDING)


def longest_t_margitron(t, epsilon, b, R):
    """Return how long the weight vector of the t-margitron is at most after t updates: R²·t + 2b·Σ k^(1-ε)."""
    return sqrt(R**2 * t + b * t ** (2 - epsilon) / (1 - epsilon / 2))


def most_updates(excess):
    """Return the largest t with ``excess(t) ≥ 0``, for a function that is negative from there on."""
    low, high = 1.0, 2.0
    while excess(high) >= 0:
        low, high = high, 2 * high
    return brentq(excess, low, high, rtol=1e-13) if excess(low) > 0 else low


# The guarantees are asymptotic in b: the smaller ε, the smaller b may be.
LARGE = pytest.mark.parametrize(("epsilon", "b_by_R"), [(0.3, 3), (0.5, 10), (1.0, 100), (1.5, 10_000)])


@pytest.fixture(scope="module")
def three_rows():
    rows = np.array([[2.0, 1.0], [2.0, -3.0], [5.0, 0.0]])
    return Space(Sample(rows, np.ones(3, int), np.array([1.0, 0.0]), 0.0, 2.0), 0.0, 0.0)


@LARGE
def test_the_fraction_proven_for_the_t_margitron_tends_to_what_the_paper_says(three_rows, epsilon, b_by_R):
    b = b_by_R * three_rows.R**2
    solution = three_rows.solve(TMargitron(epsilon, b))
    asymptotic = 1 - epsilon / 2
    proven = asymptotic / (1 + asymptotic * three_rows.R**2 / b * solution.n_updates ** (epsilon - 1))
    assert three_rows.fraction(solution) >= proven
    assert 0.9 * asymptotic < proven < asymptotic


@given(spaces(), EPSILONS, ABOUT, MINI_EPOCHS)
def test_the_l_margitron_keeps_its_bounds(space, epsilon, about, mini_epochs):
    R, gamma_d = space.R, space.gamma_d
    b = gamma_d ** (1 + epsilon) * about**epsilon
    solution = space.solve(LMargitron(epsilon, b), mini_epochs)
    t_b = most_updates(lambda t: longest_l_margitron(t, epsilon, b, R, gamma_d) - gamma_d * t)
    assert solution.n_updates <= t_b * (1 + ROUNDING)
    # All margins are above b/‖a‖^ε, and ‖a‖ is at most what it is after t_b updates, γ_d·t_b.
    assert space.fraction(solution) >= b * (gamma_d * t_b) ** -epsilon / gamma_d * (1 - ROUNDING)


def longest_l_margitron(t, epsilon, b, R, gamma_d):
    """Return how long the weight vector of the ℓ-margitron is at most after t updates (equation 23, theorem 3.5)."""
    if epsilon > 1:  # b·‖a‖^(1-ε) ≤ b·(γ_d·t)^(1-ε): the bound of a t-margitron
        return longest_t_margitron(t, epsilon, b * gamma_d ** (1 - epsilon), R)
    powers = 1 + (max(t - 1, 1) ** epsilon - 1) / epsilon  # at least Σ k^(ε-1) over k from 1 to t - 1
    rest = b * max(t - 1, 0) + R**2 / 2 * gamma_d ** (epsilon - 1) * powers
    return (R ** (1 + epsilon) + (1 + epsilon) * rest) ** (1 / (1 + epsilon))


@LARGE
def test_the_fraction_proven_for_the_l_margitron_tends_to_what_the_paper_says(three_rows, epsilon, b_by_R):
    R, gamma_d = three_rows.R, three_rows.gamma_d
    b = b_by_R * R ** (1 + epsilon)
    t_b = most_updates(lambda t: longest_l_margitron(t, epsilon, b, R, gamma_d) - gamma_d * t)
    proven = b * (gamma_d * t_b) ** -epsilon / gamma_d
    assert three_rows.fraction(three_rows.solve(LMargitron(epsilon, b))) >= proven
    asymptotic = 1 / (1 + epsilon) if epsilon <= 1 else 1 - epsilon / 2
    assert 0.9 * asymptotic < proven < asymptotic


# --- MICRA and CRAMMA: Tsampouka and Shawe-Taylor 2007, Theorem 1 ---


def micra_bounds(eta, beta, epsilon, zeta, R, gamma_d):
    """Return the most updates t_b and the least fraction f_b of theorem 1: equations 11 to 13."""
    t_0 = (beta / gamma_d) ** (1 / epsilon)
    rate = eta * t_0**-zeta

    def integral(tau, theta):  # ∫ m^-theta dm from 1 to 1 + τ
        return log(1 + tau) if theta == 1 else ((1 + tau) ** (1 - theta) - 1) / (1 - theta)

    def g(tau):
        return (
            integral(tau, zeta) - integral(tau, zeta + epsilon)
            - R / (2 * gamma_d) * (rate * integral(tau, 2 * zeta) + rate**2 * integral(tau, 3 * zeta))
            - rate * integral(tau, 2 * zeta + epsilon)
        )  # fmt: skip

    omega = gamma_d / R * rate * (2 + rate) + rate**2 / 2 * (1 + rate)
    left = (1 + omega) / (rate * t_0 * gamma_d / R)
    high = 1.0
    while g(high) < left:
        high *= 2
        if not isfinite(high):
            return inf, 0.0
    tau_b = brentq(lambda tau: g(tau) - left, 0, high, xtol=1e-12, rtol=1e-13)
    return t_0 * (1 + tau_b), (1 + tau_b + 1 / t_0) ** -epsilon


@given(
    spaces(), st.sampled_from([0.1, 0.5, 2, 10]), st.floats(0.5, 3), st.sampled_from([0.1, 0.2, 0.5]),
    st.sampled_from([0.5, 0.7, 0.9, 1.0]), MINI_EPOCHS,
)  # fmt: skip
def test_micra_keeps_the_bounds_of_theorem_1(space, eta, asked, epsilon, zeta, mini_epochs):
    beta = asked * space.gamma_d
    t_b, f_b = micra_bounds(eta, beta, epsilon, zeta, space.R, space.gamma_d)
    assume(t_b < 1e7)
    solution = space.solve(MICRA(eta, beta, epsilon, zeta), mini_epochs)
    assert solution.n_updates <= t_b + 1  # an update is made at t_b at the latest
    assert space.fraction(solution) >= f_b * (1 - ROUNDING)


def test_micra_comes_to_the_largest_margin_with_beta():
    rng = np.random.default_rng(3)
    u = np.array([0.6, 0.8])
    X = rng.normal(size=(20, 2))
    y = np.where(X @ u > 0, 1, -1)
    space = Space(Sample(X + 0.5 * y[:, None] * u, y, u, 0.0, 0.5), 0.0, 0.0)
    proven = []
    for asked in (5, 20, 100, 1000):
        t_b, f_b = micra_bounds(1.0, asked * space.gamma_d, 0.5, 0.5, space.R, space.gamma_d)
        solution = space.solve(MICRA(1.0, asked * space.gamma_d, 0.5, 0.5))
        assert solution.n_updates <= t_b + 1
        assert space.fraction(solution) >= f_b
        proven.append(f_b)
    assert proven == sorted(proven)
    assert proven[-1] > 0.9


@given(spaces(), st.floats(0.1, 0.9), st.floats(0.5, 3), st.sampled_from([0.3, 0.5, 1.0]), MINI_EPOCHS)
def test_cramma_keeps_the_bounds_where_its_rate_is_small_enough(space, part, asked, epsilon, mini_epochs):
    # Without ζ the sum of theorem 1 grows without bound only where η(1 + η)/2 < γ_d/R.
    eta = part * (sqrt(1 + 8 * space.gamma_d / space.R) - 1) / 2
    beta = asked * space.gamma_d
    t_b, f_b = micra_bounds(eta, beta, epsilon, 0.0, space.R, space.gamma_d)
    solution = space.solve(CRAMMA(eta, beta, epsilon), mini_epochs)
    assert solution.n_updates <= t_b + 1
    assert space.fraction(solution) >= f_b * (1 - ROUNDING)


# --- ALMA, ROMMA, the dynamic margin ---


@given(spaces(), FRACTIONS, MINI_EPOCHS)
def test_alma_reaches_its_fraction_and_keeps_the_bound_of_theorem_3(space, alpha, mini_epochs):
    solution = space.solve(ALMA(alpha), mini_epochs)
    assert space.fraction(solution) >= (1 - alpha) * (1 - ROUNDING)
    gamma = space.gamma_d / space.R  # of rows of length 1 at most
    assert solution.n_updates <= 2 / gamma**2 * (2 / alpha - 1) ** 2 + 8 / alpha - 4


@given(spaces(), FRACTIONS, MINI_EPOCHS)
def test_romma_reaches_its_fraction_and_keeps_its_bound(space, delta, mini_epochs):
    solution = space.solve(ROMMA(delta), mini_epochs)
    assert space.fraction(solution) >= (1 - delta) * (1 - ROUNDING)
    # ‖a‖² starts at 1/R² at least, every further update adds (δ/R)² at least, and it is never above 1/γ_d².
    assert solution.n_updates <= (1 + ((space.R / space.gamma_d) ** 2 - 1) / delta**2) * (1 + ROUNDING)


@given(spaces(), st.sampled_from([0.7, 0.5, 0.3]), MINI_EPOCHS)
def test_the_dynamic_margin_reaches_its_fraction_and_keeps_its_bound(space, epsilon, mini_epochs):
    solution = space.solve(PDM(epsilon), mini_epochs)
    assert space.fraction(solution) >= (1 - epsilon) * (1 - ROUNDING)
    # (γ_d·t)² ≤ ‖a‖², and an update at m ≤ (1-ε)·‖a‖²/t makes ‖a‖² at most ‖a‖²·(1 + 2(1-ε)/t) + R².
    longest2 = space.R**2
    for t in range(1, solution.n_updates):
        longest2 = longest2 * (1 + 2 * (1 - epsilon) / t) + space.R**2
    assert (space.gamma_d * solution.n_updates) ** 2 <= longest2 * (1 + ROUNDING)


@given(spaces(), st.sampled_from([0.1, 0.03, 0.01]))
def test_the_dynamic_margin_comes_as_close_to_the_largest_as_is_asked(space, epsilon):
    assert 1 - epsilon <= space.fraction(space.solve(PDM(epsilon))) * (1 + ROUNDING) <= 1 + 2 * ROUNDING


# --- the certificate ---

RULES = st.sampled_from([
    PA(), PA(0.3), PAM(1), PAM(5, 0.2), PAUM(-1, 5), PAUM(1, 50), TMargitron(0.5, 1), LMargitron(0.5, 1),
    MICRA(2, 0.2, 0.05, 0.9), CRAMMA(0.05, 0.2, 0.5), ALMA(0.3), ROMMA(0.1), PDM(0.2),
])  # fmt: skip


@given(spaces(), RULES, MINI_EPOCHS, st.sampled_from([1, 2, 5, 1000]))
def test_the_certificate_is_a_lower_bound_on_the_fraction_of_the_largest_margin(space, rule, mini_epochs, max_epochs):
    solution = space.solve(rule, mini_epochs, max_epochs)
    assume(solution.n_updates > 0)
    fraction = space.fraction(solution)
    assert fraction <= 1 + ROUNDING
    assert solution.certificate <= 1 + ROUNDING
    if fraction > 0:
        assert 0 < solution.certificate <= fraction * (1 + ROUNDING)


@given(spaces(), RULES, st.sampled_from([1, 2, 1000]))
def test_the_margins_are_those_of_the_vector_in_the_space_it_was_trained_in(space, rule, max_epochs):
    solution = space.solve(rule, max_epochs=max_epochs)
    alpha = np.zeros(len(space.rows))
    alpha[solution.support] = solution.alpha
    a = alpha @ (space.sample.y[:, None] * space.rows)
    assume(np.linalg.norm(a) > 1e-6)
    least = (space.rows @ a).min()
    augmented = space.sample.X.shape[1]
    without_bias = np.delete(a, augmented)
    close = {"rel": 1e-7, "abs": 1e-9}
    assert solution.directional_margin == pytest.approx(least / np.linalg.norm(a), **close)
    if np.linalg.norm(without_bias) > 1e-6:
        assert solution.margin == pytest.approx(least / np.linalg.norm(without_bias), **close)
    assert solution.certificate == pytest.approx(least * np.abs(alpha).sum() / (a @ a), **close)


@given(spaces())
def test_close_to_the_largest_margin_the_certificate_of_the_dynamic_margin_is_close_to_1(space):
    assert space.solve(PDM(0.01)).certificate >= 0.99 * (1 - ROUNDING)
