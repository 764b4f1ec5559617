"""Each rule's formula is the paper's, and rules are values."""

import copy
import math
import pickle
import re

import pytest
from cases import every
from hypothesis import assume, given
from hypothesis import strategies as st

from textcat.margin.rules import ALMA, CRAMMA, MICRA, PA, PAM, PAUM, PDM, ROMMA, RULES, LMargitron, Rule, TMargitron

MEMBERS = [
    PA(), PA(eta=0.5), PAM(2), PAM(2, eta=3), PAUM(-1, 50), PAUM(1, 50, 0.25), TMargitron(0.1, 2), LMargitron(0.1, 2),
    MICRA(50, 0.1), MICRA(50, 0.1, 0.2, 0), CRAMMA(0.1, 2), ALMA(0.1), ALMA(0.1, 10, 1), ROMMA(0.1), ROMMA(1), PDM(0.1),
]  # fmt: skip
MARGINS = st.floats(-100, 100)


@every("rule", MEMBERS)
def test_a_rule_comes_back_from_its_parameters_its_repr_a_copy_and_a_pickle(rule):
    assert type(rule)(**rule.parameters) == rule
    assert eval(repr(rule)) == rule
    assert copy.deepcopy(rule) == rule
    assert pickle.loads(pickle.dumps(rule)) == rule
    assert hash(pickle.loads(pickle.dumps(rule))) == hash(rule)


def test_rules_with_other_parameters_or_of_another_kind_are_not_equal():
    assert len(set(MEMBERS)) == len(MEMBERS)
    assert PA() != PAM(0)
    assert PA() != "PA(eta=1)"


@every("rule", MEMBERS)
def test_every_member_documents_its_formula_parameters_and_source(rule):
    text = type(rule).__doc__
    assert re.search(r"[Uu]pdate ``[aw] ← ", text)
    assert re.search(r"where\s+``m(/R)? ≤ ", text)
    assert "Source: " in text
    for parameter in rule.PARAMETERS:
        assert re.search(rf"^    (\w+, )*{parameter.name}(, \w+)* : float", text, flags=re.MULTILINE)
        assert getattr(rule, parameter.name) == rule.parameters[parameter.name]


def test_the_table_of_rules_has_every_member():
    assert sorted(RULES) == sorted({type(rule).__name__ for rule in MEMBERS})
    assert all(issubclass(rule, Rule) for rule in RULES.values())


@given(MARGINS, MARGINS, st.floats(0.01, 10), st.floats(0, 100), st.integers(0, 100))
def test_paum_asks_tau_pos_of_positives_and_tau_neg_of_negatives_and_steps_by_eta(tau_neg, tau_pos, eta, N, t):
    rule = PAUM(tau_neg, tau_pos, eta)
    assert rule.threshold(+1, N, t) == tau_pos
    assert rule.threshold(-1, N, t) == tau_neg
    assert rule.step(tau_neg, 1.0, N, t) == (1, eta)


@given(MARGINS, st.floats(0.01, 10))
def test_pam_is_paum_with_one_margin_and_pa_is_pam_with_none(tau, eta):
    for y in (+1, -1):
        assert PAM(tau, eta).threshold(y) == PAUM(tau, tau, eta).threshold(y) == tau
        assert PA(eta).threshold(y) == PAM(0, eta).threshold(y) == 0
    assert PAM(tau, eta).step(0, 1) == PA(eta).step(0, 1) == (1, eta)


T, N_SQUARED = st.integers(1, 10**6), st.floats(0.01, 1e6)


@given(st.floats(0.01, 1.99), st.floats(0.01, 100), N_SQUARED, T)
def test_the_margitrons_ask_for_powers_of_the_updates_or_the_length_and_step_by_1(epsilon, b, N, t):
    assert TMargitron(epsilon, b).threshold(+1, N, t) == pytest.approx(b * t ** (1 - epsilon))
    assert LMargitron(epsilon, b).threshold(-1, N, t) == pytest.approx(b * math.sqrt(N) ** (1 - epsilon))
    for rule in (TMargitron(epsilon, b), LMargitron(epsilon, b)):
        assert rule.threshold(+1) == 0
        assert rule.step(0.0, 1.0, N, t) == (1, 1)


@given(st.floats(0.01, 100), st.floats(0.01, 10), st.floats(0.01, 1), st.floats(0, 1), N_SQUARED, T, st.floats(0.1, 10))
def test_micra_and_cramma_ask_and_step_in_fractions_of_the_length(eta, beta, epsilon, zeta, N, t, R):
    micra, cramma = MICRA(eta, beta, epsilon, zeta), CRAMMA(eta, beta, epsilon)
    assert micra.threshold(+1) == cramma.threshold(-1) == math.inf
    assert micra.step(0.0, 1.0) == cramma.step(0.0, 1.0) == (1, 1)
    asked = math.sqrt(N) * beta * t**-epsilon
    assert micra.threshold(+1, N, t, R) == cramma.threshold(-1, N, t, R) == pytest.approx(asked)
    assert micra.step(0.0, 1.0, N, t, R) == (1, pytest.approx(math.sqrt(N) * eta / R * t**-zeta))
    assert cramma.step(0.0, 1.0, N, t, R) == (1, pytest.approx(math.sqrt(N) * eta / R))


@pytest.mark.parametrize("rule", [MICRA(3, 0.1, 0.05, 0.5), CRAMMA(3, 0.1)])
def test_a_vector_that_grows_out_of_range_is_scaled_by_a_power_of_two_which_changes_no_bit(rule):
    N, m, q, t = 2.0**42, 5.0, 2.0, 9.0
    shrink, grow = rule.step(m, q, N, t)
    assert shrink == 2.0**-20
    assert rule.step(m * shrink, q, N * shrink**2, t) == (1, grow)


@given(
    st.floats(0.01, 1), st.floats(0, 1), st.integers(0, 10**6), st.floats(0.1, 10), st.floats(-1, 1), st.floats(0.01, 1)
)
def test_alma_steps_on_scaled_rows_and_stays_in_the_unit_ball(alpha, N, t, R, cosine, share):
    q = share * R**2
    m = cosine * math.sqrt(N * q)
    rule = ALMA(alpha)
    assert rule.threshold(+1, N, t, R) == pytest.approx(R * (1 - alpha) * math.sqrt(8) / alpha / math.sqrt(t + 1))
    shrink, grow = rule.step(m, q, N, t, R)
    assert grow / shrink == pytest.approx(math.sqrt(2) / math.sqrt(t + 1) / R)
    length2 = shrink**2 * N + grow * (2 * shrink * m + grow * q)
    assert length2 <= 1 + 1e-9
    assert shrink == 1 or length2 == pytest.approx(1)


def test_alma_without_any_coordinate_leaves_the_vector_as_it_is():
    assert ALMA(0.1).step(0.0, 0.0, R=0.0) == (1, 0)


@given(st.floats(0.01, 1), N_SQUARED, T)
def test_pdm_asks_for_a_fraction_of_the_bound_that_the_run_gives(epsilon, N, t):
    rule = PDM(epsilon)
    assert rule.threshold(+1) == math.inf
    assert rule.threshold(-1, N, t) == pytest.approx((1 - epsilon) * N / t)
    assert rule.step(0.0, 1.0, N, t) == (1, 1)


@given(st.floats(0.01, 1), st.floats(0.001, 100))
def test_romma_starts_on_any_row_with_the_shortest_vector_of_margin_1(delta, q):
    rule = ROMMA(delta)
    assert rule.threshold(+1) == rule.threshold(-1) == math.inf
    shrink, grow = rule.step(0, q)
    assert (shrink, grow) == (0, 1 / q)
    assert grow * q == pytest.approx(1)


@given(st.floats(0.01, 1), st.floats(0.01, 100), st.floats(0.01, 100), st.floats(-0.99, 0.99))
def test_romma_steps_to_the_shortest_vector_with_margin_1_on_the_row_and_beyond_the_old_one(delta, q, N, cosine):
    m = cosine * math.sqrt(q * N)
    assume(m <= 1 - delta)
    rule = ROMMA(delta)
    assert rule.threshold(+1, N) == rule.threshold(-1, N) == 1 - delta
    shrink, grow = rule.step(m, q, N)
    assert shrink * m + grow * q == pytest.approx(1)  # y⟨v, x⟩ with v = shrink·w + grow·y·x
    assert shrink >= 0  # the multipliers of the two conditions are never negative: the vector is the shortest one
    assert grow > 0
    beyond = shrink * N + grow * m  # ⟨v, w⟩
    assert beyond == pytest.approx(N) if shrink > 0 else beyond >= N * (1 - 1e-9)
    if m < q * N:
        assert shrink == pytest.approx((q * N - m) / (q * N - m**2))
        assert grow == pytest.approx(N * (1 - m) / (q * N - m**2))


def test_romma_leaves_the_vector_as_it_is_on_a_row_without_coordinates():
    assert ROMMA(0.1).step(0, 0, 1) == (1, 0)


@every(
    "make, said",
    [
        (lambda: PA(0), "eta must be finite and greater than 0, got 0"),
        (lambda: PAM(1, -2), "eta must be finite and greater than 0, got -2"),
        (lambda: PAUM(1, 2, math.nan), "eta must be finite and greater than 0, got nan"),
        (lambda: PAUM(1, math.inf), "tau_pos must be finite, got inf"),
        (lambda: PAM(math.nan), "tau must be finite, got nan"),
        (lambda: ROMMA(0), "delta must be greater than 0 and at most 1, got 0"),
        (lambda: ROMMA(1.5), "delta must be greater than 0 and at most 1, got 1.5"),
        (lambda: TMargitron(2, 1), "epsilon must be greater than 0 and less than 2, got 2"),
        (lambda: MICRA(50, 0.1, zeta=-1), "zeta must be finite and at least 0, got -1"),
        (lambda: ALMA(0.1, B=0), "B must be finite and greater than 0, got 0"),
    ],
)
def test_parameters_out_of_range_are_refused_with_their_value(make, said):
    with pytest.raises(ValueError, match=said):
        make()


def test_the_family_itself_is_not_a_member():
    with pytest.raises(TypeError, match="use one of its members"):
        Rule()


def test_a_rule_in_python_that_lacks_a_method_is_refused():
    class Mine(PAUM):
        def threshold(self, y, N=0.0, t=0.0, R=1.0):
            return 2.0

    with pytest.raises(TypeError, match="Mine is a rule in Python, so it must define both threshold and step"):
        Mine(1, 50)


def test_a_rule_made_past_its_constructor_never_updates_instead_of_crashing():
    rule = PAUM.__new__(PAUM)
    assert rule.threshold(+1) == -math.inf
    assert rule.step(0, 1) == (1, 0)
