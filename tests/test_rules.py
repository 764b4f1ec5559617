"""Each rule's formula is the paper's, and rules are values."""

import copy
import math
import pickle

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from textcat.margin.rules import PA, PAM, PAUM, ROMMA, Rule

MEMBERS = [PA(), PA(eta=0.5), PAM(2), PAM(2, eta=3), PAUM(-1, 50), PAUM(1, 50, 0.25), ROMMA(0.1), ROMMA(1)]
MARGINS = st.floats(-100, 100)


@pytest.mark.parametrize("rule", MEMBERS, ids=repr)
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


@pytest.mark.parametrize("rule", MEMBERS, ids=repr)
def test_every_member_documents_its_formula_parameters_and_source(rule):
    text = type(rule).__doc__
    assert "``m ≤" in text
    assert "shrink" in text or isinstance(rule, PAM)
    assert "Source: " in text
    for name in rule.parameters:
        assert name in text
        assert getattr(type(rule), name).__doc__


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


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: PA(0), "eta must be finite and greater than 0, got 0"),
        (lambda: PAM(1, -2), "eta must be finite and greater than 0, got -2"),
        (lambda: PAUM(1, 2, math.nan), "eta must be finite and greater than 0, got nan"),
        (lambda: PAUM(1, math.inf), "margins must be finite, got tau_neg=1 and tau_pos=inf"),
        (lambda: PAM(math.nan), "margins must be finite"),
        (lambda: ROMMA(0), "delta must be greater than 0 and at most 1, got 0"),
        (lambda: ROMMA(1.5), "delta must be greater than 0 and at most 1, got 1.5"),
    ],
)
def test_parameters_out_of_range_are_refused_with_their_value(make, said):
    with pytest.raises(ValueError, match=said):
        make()


def test_the_family_itself_is_not_a_member():
    with pytest.raises(TypeError, match="use one of its members"):
        Rule()


def test_a_rule_made_past_its_constructor_never_updates_instead_of_crashing():
    rule = PAUM.__new__(PAUM)
    assert rule.threshold(+1) == -math.inf
    assert rule.step(0, 1) == (1, 0)
