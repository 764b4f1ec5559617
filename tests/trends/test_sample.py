"""Prevalences from scores and a judged random sample: the posterior by its definition, and what a sample must do."""

import math

import numpy as np
import pytest
from cases import every
from scipy import integrate

from textcat.base.sigmoid import expit
from textcat.trends.bins import N_BINS
from textcat.trends.estimators import shifted, summed
from textcat.trends.held_out import HeldOut
from textcat.trends.sample import Judged, log_evidence, sampled_prevalences


def held_out_of(n_topics=1, n=1000, prior=0.1):
    positives, negatives = np.zeros((2, n_topics, N_BINS))
    positives[:, 12], negatives[:, 0] = n * prior, n * (1 - prior)
    return HeldOut(positives, negatives, np.full(n_topics, 0.003))


def drawn(chance, n, offsets, held_out):
    """Counts of n documents of each period, and the bin and label of each, by the model with some offsets."""
    bins = np.minimum(chance.geometric(0.25, (len(offsets), n)) - 1, N_BINS - 1)
    p = held_out.probabilities[0]
    odds = (p / (1 - p))[bins] * np.exp(np.asarray(offsets))[:, None]
    labels = chance.random(bins.shape) < odds / (1 + odds)
    counts = np.stack([np.bincount(each, minlength=N_BINS) for each in bins])[:, None]
    return counts, bins, labels


def sample_of(bins, labels, n):
    """The first n documents of each period as judged ones."""
    having, lacking = (
        np.stack([np.bincount(b[:n][y[:n] == has], minlength=N_BINS) for b, y in zip(bins, labels, strict=True)])
        for has in (True, False)
    )
    return Judged(having[:, None], lacking[:, None])


def naive_posterior_mean(counts, judged, held_out, estimate):
    """The geometric mean of the prevalence of a single period, with both constants integrated numerically."""
    p = held_out.probabilities[0]
    log_odds, rest = np.log(p / (1 - p)), counts[0, 0] - judged.having[0, 0] - judged.lacking[0, 0]
    low, high = -16.0, 16.0
    for _ in range(60):
        middle = (low + high) / 2
        mean = (counts[0, 0] * expit(log_odds + middle)).sum() / counts.sum()
        low, high = (middle, high) if mean < estimate else (low, middle)

    def prior(a):  # as stats.t(3, scale=0.3).pdf, which checks its arguments each time
        return 2 / (math.pi * math.sqrt(3) * 0.3 * (1 + (a / 0.3) ** 2 / 3) ** 2)

    def weight(offset):
        of_bins = np.clip(expit(log_odds + low + offset), 1e-9, 1 - 1e-9)
        likelihood = (judged.having[0, 0] * np.log(of_bins) + judged.lacking[0, 0] * np.log1p(-of_bins)).sum()
        # The offset of one period is the sum of two independent constants.
        together = integrate.quad(lambda a: prior(a) * prior(offset - a), -4, 4, points=[0, offset], limit=100)[0]
        return math.exp(likelihood) * together

    def log_prevalence(offset):
        of_bins = expit(log_odds + low + offset)
        return math.log((judged.having.sum() + (rest * of_bins).sum()) / counts.sum())

    grid = np.linspace(-3.9, 3.9, 79)
    weights = np.array([weight(offset) for offset in grid])
    return math.exp((weights * [log_prevalence(offset) for offset in grid]).sum() / weights.sum())


def test_the_estimate_is_that_of_numerical_integration():
    held_out = held_out_of()
    counts, bins, labels = drawn(np.random.default_rng(2), 2000, [0.8], held_out)
    judged, estimate = sample_of(bins, labels, 60), summed(counts, held_out)
    found = sampled_prevalences(counts, judged, held_out, estimate, np.zeros(1, int))[0, 0, 0]
    assert found == pytest.approx(naive_posterior_mean(counts, judged, held_out, estimate[0, 0]), rel=2e-3)
    assert found > 1.1 * estimate[0, 0]


def test_a_period_that_is_judged_whole_is_known():
    held_out = held_out_of()
    counts, bins, labels = drawn(np.random.default_rng(0), 300, [0, 1.5], held_out)
    judged = sample_of(bins, labels, 300)
    found = sampled_prevalences(counts, judged, held_out, summed(counts, held_out), np.zeros(1, int))
    assert found[:, :, 0] == pytest.approx(np.tile(labels.mean(axis=1), (3, 1)))


def test_without_judged_documents_the_estimate_stays():
    held_out = held_out_of()
    counts, bins, labels = drawn(np.random.default_rng(0), 3000, [0, 0.5], held_out)
    estimates = summed(counts, held_out)
    found = sampled_prevalences(counts, sample_of(bins, labels, 0), held_out, estimates, np.zeros(1, int))
    assert found[0] == pytest.approx(estimates, rel=0.05)
    assert (found[1] < 0.7 * estimates).all()
    assert (found[2] > 1.3 * estimates).all()


def test_samples_of_other_periods_count():
    held_out = held_out_of()
    counts, bins, labels = drawn(np.random.default_rng(3), 4000, [1.0] * 6, held_out)
    judged, estimates, seeds = sample_of(bins, labels, 200), summed(counts, held_out), np.zeros(1, int)
    for part in judged:
        part[0] = 0  # none of the first period
    alone = Judged(*(np.where(np.arange(6)[:, None, None] > 0, 0, part) for part in judged))
    wrong, right = (
        abs(sampled_prevalences(counts, sample, held_out, estimates, seeds)[0, 0, 0] - labels[0].mean())
        for sample in (alone, judged)
    )
    assert right < 0.35 * wrong


def test_a_topic_is_estimated_alike_alone_and_among_others():
    held_out, chance = held_out_of(3), np.random.default_rng(1)
    parts = [drawn(chance, 500, [0.3, -0.4], held_out_of()) for _ in range(3)]
    counts = np.concatenate([part[0] for part in parts], axis=1)
    samples = [sample_of(*part[1:], 80) for part in parts]
    judged = Judged(*(np.concatenate(arrays, axis=1) for arrays in zip(*samples, strict=True)))
    estimates, seeds = summed(counts, held_out), np.arange(3)
    together = sampled_prevalences(counts, judged, held_out, estimates, seeds)
    for topic in range(3):
        column = np.array([topic])
        one = counts[:, column], judged.of_topics(column), held_out.of_topics(column), estimates[:, column]
        assert np.array_equal(sampled_prevalences(*one, seeds[column])[..., 0], together[..., topic])


def test_intervals_hold_the_truth_and_a_sample_makes_them_narrower():
    held_out, chance, inside, widths = held_out_of(), np.random.default_rng(5), [], []
    for _ in range(60):
        counts, bins, labels = drawn(chance, 1500, chance.standard_t(3, 3) * 0.3 + chance.standard_t(3) * 0.3, held_out)
        truth, estimates = labels.mean(axis=1), summed(counts, held_out)
        for n in (0, 150):
            _, low, high = sampled_prevalences(
                counts, sample_of(bins, labels, n), held_out, estimates, np.zeros(1, int)
            )
            inside.append((low[:, 0] <= truth) & (truth <= high[:, 0]))
            widths.append((high - low).mean())
    assert np.mean(inside) > 0.93
    assert np.mean(widths[1::2]) < 0.6 * np.mean(widths[::2])


def test_a_sample_is_most_likely_under_the_estimator_that_is_right():
    held_out = held_out_of()
    chance = np.random.default_rng(4)
    for prevalence, best in ((0.1, summed), (0.5, shifted)):
        positives = chance.random((2, 4000)) < prevalence
        ratios = held_out.likelihood_ratios[0]
        lacking = np.append(0.7 * 0.5 ** np.arange(N_BINS - 1), 0) + 1e-4  # any density, and that of positives by Bayes
        having = lacking * ratios
        bins = np.where(
            positives,
            chance.choice(N_BINS, positives.shape, p=having / having.sum()),
            chance.choice(N_BINS, positives.shape, p=lacking / lacking.sum()),
        )
        counts = np.stack([np.bincount(each, minlength=N_BINS) for each in bins])[:, None]
        judged = sample_of(bins, positives, 300)
        evidence = {f: log_evidence(counts, judged, held_out, f(counts, held_out)) for f in (summed, shifted)}
        errors = {f: np.abs(f(counts, held_out) - prevalence).mean() for f in (summed, shifted)}
        assert max(evidence, key=evidence.get) is min(errors, key=errors.get)
        assert best in evidence


@every("share", [0.3, 0.6, 1.0])
def test_a_sample_that_contradicts_the_scores_is_believed(share):
    """Documents without evidence have the topic, which scores alone deny."""
    held_out, chance = held_out_of(prior=0.05), np.random.default_rng(3)
    labels = chance.random((3, 100)) < share
    counts = np.zeros((3, 1, N_BINS), np.int64)
    counts[:, 0, 0] = 400
    having, lacking = np.zeros((2, 3, 1, N_BINS), np.int64)
    having[:, 0, 0], lacking[:, 0, 0] = labels.sum(axis=1), (~labels).sum(axis=1)
    estimates = summed(counts, held_out)
    assert estimates.max() < 0.01
    found, low, high = sampled_prevalences(counts, Judged(having, lacking), held_out, estimates, np.zeros(1, int))
    assert (low <= share).all()
    assert (high >= share).all()
    assert found == pytest.approx(labels.mean(axis=1)[:, None], abs=0.06)
