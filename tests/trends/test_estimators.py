"""Estimators of prevalences on bins, and their intervals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from textcat.base.calibration import Calibration
from textcat.trends.bins import N_BINS, bins_of
from textcat.trends.estimators import ESTIMATORS, adaptive, adjusted, shifted, summed
from textcat.trends.held_out import HeldOut
from textcat.trends.intervals import intervals

SAME = Calibration(np.ones(1), np.zeros(1))
COUNTS = st.lists(st.integers(0, 1000), min_size=N_BINS, max_size=N_BINS).filter(any)


def held_out_of(n_positives=100, n_negatives=900, below=0.003):
    """Counts with a prior of (n_positives + 1/2) / (n + 1), whatever lies in the bins."""
    positives, negatives = np.zeros((2, 1, N_BINS))
    positives[0, 12], negatives[0, 0] = n_positives, n_negatives
    return HeldOut(positives, negatives, np.array([below]))


def counts_of(documents):
    counts = np.zeros((1, N_BINS))
    for number, n in documents.items():
        counts[0, number] = n
    return counts


def em(counts, held_out, pseudo, steps=20_000):
    """Saerens et al. (2002), equation 2.9: a posterior of each document, then their mean."""
    prior, posteriors = held_out.prior[0], held_out.probabilities[0]
    p = prior
    for _ in range(steps):
        with_topic = p / prior * posteriors
        without = (1 - p) / (1 - prior) * (1 - posteriors)
        expected = (counts[0] * with_topic / (with_topic + without)).sum()
        p = (expected + pseudo * prior) / (counts.sum() + pseudo)
    return p


@settings(max_examples=20, deadline=None)
@given(COUNTS, st.sampled_from([1.0, 30.0]))
def test_halving_an_interval_ends_where_em_ends(counts, pseudo):
    counts, held_out = np.array([counts], float), held_out_of()
    assert shifted(counts, held_out, pseudo)[0] == pytest.approx(em(counts, held_out, pseudo, 3000), rel=1e-3, abs=1e-5)


def test_em_gives_the_prevalence_that_quapy_gives():
    """QuaPy 0.2.3, `EMQ.EM([1 - prior, prior], posteriors, epsilon=1e-15)`, with the same posteriors."""
    counts = counts_of({0: 700, 4: 80, 8: 40, 12: 90, 20: 90})
    assert shifted(counts, held_out_of(), pseudo=0)[0] == pytest.approx(0.22337754, abs=1e-8)
    assert shifted(counts_of({0: 9000, 1: 500, 7: 3, 14: 2}), held_out_of(), pseudo=0)[0] < 1e-6


@given(COUNTS)
def test_the_sum_of_probabilities_is_that_of_the_documents(counts):
    held_out = held_out_of()
    documents = np.repeat(held_out.probabilities[0], counts)
    assert summed(np.array([counts]), held_out)[0] == pytest.approx(documents.mean())


@given(COUNTS)
def test_the_adaptive_estimate_lies_between_the_sum_and_em(counts):
    counts, held_out = np.array([counts]), held_out_of()
    both = sorted([summed(counts, held_out)[0], shifted(counts, held_out)[0]])
    assert both[0] - 1e-9 <= adaptive(counts, held_out)[0] <= both[1] + 1e-9


def test_adjusted_counts_find_any_prevalence_if_the_documents_of_a_class_stay_alike():
    positives, negatives = np.zeros((2, 1, N_BINS))
    positives[0, [3, 12]], negatives[0, [3, 12]] = (25, 75), (980, 20)
    held_out = HeldOut(positives, negatives, np.array([0.01]))
    for prevalence in (0, 0.1, 0.5, 1):
        counts = prevalence * positives / 100 + (1 - prevalence) * negatives / 1000
        assert adjusted(counts, held_out)[0] == pytest.approx(prevalence)


def test_a_topic_that_scores_say_nothing_of_keeps_its_prior():
    held_out = HeldOut(np.eye(1, N_BINS) * 3, np.eye(1, N_BINS) * 97, np.array([3.5 / 101]))
    counts = np.eye(1, N_BINS) * 5000
    for estimate in ESTIMATORS.values():
        assert estimate(counts, held_out)[0] == pytest.approx(held_out.prior[0], rel=1e-6)


def drawn(chance, prevalence, n):
    """Log odds of documents, calibrated at a prevalence of 1 %, and whether they have the topic."""
    is_positive = chance.random(n) < prevalence
    # Two normal distributions of the same deviation d, d² apart around the prior's log odds: calibrated by Bayes' rule.
    centre, deviation = np.log(0.01 / 0.99), 3.0
    return chance.normal(centre + np.where(is_positive, 1, -1) * deviation**2 / 2, deviation), is_positive


@pytest.mark.parametrize(("prevalence", "factor"), [(0.01, 0.3), (0.01, 4.0)])
def test_em_is_nearer_to_the_truth_than_the_sum_after_a_shift(prevalence, factor):
    chance = np.random.default_rng(0)
    scores, labels = drawn(chance, prevalence, 20_000)
    held_out = HeldOut.fit(scores[:, None], labels[:, None], SAME)
    scores, labels = drawn(chance, prevalence * factor, 20_000)
    counts = np.bincount(bins_of(scores), minlength=N_BINS)[None, :]
    error = {name: abs(estimate(counts, held_out)[0] - labels.mean()) for name, estimate in ESTIMATORS.items()}
    assert error["em"] < error["adaptive"] < error["summed"]
    assert error["adaptive"] < 0.5 * error["summed"]


def test_intervals_contain_the_prevalence_of_rare_topics_after_shifts():
    chance, inside = np.random.default_rng(1), []
    for seed in range(80):
        scores, labels = drawn(chance, 0.001 if seed % 2 else 0.01, 5000)
        held_out = HeldOut.fit(scores[:, None], labels[:, None], SAME)
        scores, labels = drawn(chance, (0.001 if seed % 2 else 0.01) * 5 ** chance.uniform(-1, 1), 2000)
        counts = np.bincount(bins_of(scores), minlength=N_BINS)[None, None, :]
        estimate = adaptive(counts, held_out)
        low, high = intervals(counts, held_out, estimate, np.array([seed]))[:, 0, 0]
        assert 0 <= low <= estimate[0, 0] <= high <= 1
        inside.append(low <= labels.mean() <= high)
    assert np.mean(inside) >= 0.94


def test_an_interval_depends_on_its_topic_and_period_alone():
    held_out = HeldOut(*np.random.default_rng(0).integers(1, 50, (2, 3, N_BINS)).astype(float), np.full(3, 0.001))
    counts = np.random.default_rng(1).integers(0, 99, (4, 3, N_BINS))
    bounds = intervals(counts, held_out, adaptive(counts, held_out), np.arange(3))
    some = held_out.of_topics(np.array([2]))
    of_one = intervals(counts[:, 2:], some, adaptive(counts[:, 2:], some), np.array([2]))
    assert np.array_equal(of_one[:, :, 0], bounds[:, :, 2])


def several(chance, factors, n=20_000, prevalence=0.01):
    """Held-out counts of a topic for each factor, and the counts and prevalences of a period that it multiplies."""
    scores, labels = zip(*(drawn(chance, prevalence, n) for _ in factors), strict=True)
    curves = Calibration(np.ones(len(factors)), np.zeros(len(factors)))
    held_out = HeldOut.fit(np.stack(scores, axis=1), np.stack(labels, axis=1), curves)
    scores, labels = zip(*(drawn(chance, prevalence * factor, n) for factor in factors), strict=True)
    return held_out, np.stack([np.bincount(bins_of(s), minlength=N_BINS) for s in scores]), np.mean(labels, axis=1)


def test_the_adaptive_estimate_is_the_sum_if_no_topic_has_shifted():
    held_out, counts, _ = several(np.random.default_rng(0), [1] * 9)
    assert adaptive(counts, held_out) == pytest.approx(summed(counts, held_out), rel=1e-9)


def test_the_adaptive_estimate_follows_a_shift_of_all_topics():
    held_out, counts, true = several(np.random.default_rng(0), [3, 1 / 3] * 5)
    error = {name: (abs(estimate(counts, held_out) - true) / true).mean() for name, estimate in ESTIMATORS.items()}
    assert error["adaptive"] < 0.6 * error["summed"]


def test_the_adaptive_estimate_follows_a_topic_that_shifts_alone():
    held_out, counts, true = several(np.random.default_rng(0), [8] + [1] * 8)
    adapted, sums = adaptive(counts, held_out), summed(counts, held_out)
    assert abs(adapted[0] - true[0]) < 0.5 * abs(sums[0] - true[0])
    assert adapted[1:] == pytest.approx(sums[1:], rel=1e-9)


def test_the_adaptive_estimate_of_a_single_document_is_nearly_its_probability():
    counts, held_out = counts_of({16: 1}), held_out_of()
    assert adaptive(counts, held_out)[0] == pytest.approx(summed(counts, held_out)[0], abs=0.05)
