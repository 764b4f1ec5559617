"""Compute 95 % intervals of prevalences by drawing held-out documents and documents of the period again.

If people have judged a random sample of documents, `sample.py` computes the intervals instead.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from textcat.trends.bins import N_BINS
from textcat.trends.estimators import most_likely
from textcat.trends.held_out import HeldOut

_DRAWS, _LEVEL = 200, 0.95
_STEPS = 20  # of halving: to 3e-5 of the log odds
_PSEUDO = 10.0  # documents with the topic, and without it, that are distributed as the calibration curves predict
# Texts change over time, which adds an error to the log odds of a later period. Few training documents add another one,
# as rankers that were trained without a fold differ more. Chosen on Reuters-21578 and newswire.
_DRIFT, _DRIFT_OF_FEW = 0.09, 150.0  # variances: the second one is divided by the number of documents
# Standard deviation of a further error of a prevalence's log odds, which remains with many documents. Chosen on
# Reuters-21578, newswire and 20 Newsgroups.
_OF_PREVALENCE = 0.1
_TINY = 1e-9
_SLACK = 1.0, 0.5  # documents that are added to an interval at its lower and upper end


def intervals(
    counts: NDArray[Any], held_out: HeldOut, estimates: NDArray[Any], seeds: NDArray[Any]
) -> NDArray[np.float64]:
    """Return intervals that contain the prevalence of a topic in a period with a confidence of 95 %.

    Each of 200 draws takes the distribution over bins of documents with the topic, and that of other documents, from
    Dirichlet distributions whose parameters are the numbers of held-out documents (with a few documents added that are
    distributed as the calibration curves predict). It adds a normally distributed constant to the log odds, draws the
    number of documents in each bin from a Poisson distribution, computes the most likely prevalence, and adds another
    normally distributed constant to its log odds. The interval contains the middle 95 % of the draws and the estimate,
    and is widened by a document at its lower end, and by half a document at its upper end.

    Parameters
    ----------
    counts : ndarray of shape (n_periods, n_topics, n_bins)
    held_out : HeldOut
    estimates : ndarray of shape (n_periods, n_topics)
    seeds : ndarray of shape (n_topics,), int
        The random seed of each topic, so that a topic's interval does not depend on other topics.

    Returns
    -------
    bounds : ndarray of shape (2, n_periods, n_topics), float64
    """
    bounds = np.empty((2, *estimates.shape))
    for topic, seed in enumerate(seeds.tolist()):
        of_topic = held_out.of_topics(np.array([topic]))
        drawn = _draws(counts[:, topic], of_topic, np.random.default_rng(seed))
        bounds[:, :, topic] = np.quantile(drawn, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2], axis=0)
    documents = counts[:, :1].sum(axis=-1)
    low = np.minimum(bounds[0] - _SLACK[0] / documents, estimates)
    high = np.maximum(bounds[1] + _SLACK[1] / documents, estimates)
    return np.clip(np.stack([low, high]), 0, 1)


def _draws(counts: NDArray[Any], held_out: HeldOut, chance: np.random.Generator) -> NDArray[np.float64]:
    """Draw prevalences of a topic in each period, as `intervals` describes: shape (n_draws, n_periods)."""
    together, p = held_out.positives[0] + held_out.negatives[0], held_out.probabilities[0]
    having = _densities(held_out.positives[0], together * p, chance)
    lacking = _densities(held_out.negatives[0], together * (1 - p), chance)
    deviation = np.sqrt(_DRIFT + _DRIFT_OF_FEW / max(together.sum(), 1))
    drift = np.exp(deviation * chance.standard_normal((_DRAWS, 1)))
    # In single precision: the steps of halving are larger than its errors.
    drawn = chance.poisson(counts, (_DRAWS, *counts.shape)).astype(np.float32)
    ratios = (having / lacking * drift)[:, None, :].astype(np.float32)
    likely = most_likely(drawn, ratios, held_out.prior[0], 0.0, _STEPS)
    factor = np.exp(_OF_PREVALENCE * chance.standard_normal((_DRAWS, 1)))
    return likely * factor / (1 - likely + likely * factor)


def _densities(observed: NDArray[Any], expected: NDArray[Any], chance: np.random.Generator) -> NDArray[np.float64]:
    """Return shares of the bins, drawn from a Dirichlet distribution: shape (n_draws, n_bins)."""
    shape = observed + _PSEUDO * expected / max(expected.sum(), _TINY) + 0.01 / N_BINS
    drawn = chance.standard_gamma(shape, (_DRAWS, N_BINS)) + _TINY
    return np.asarray(drawn / drawn.sum(axis=1, keepdims=True))
