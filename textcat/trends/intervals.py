"""Intervals of prevalences at 95 %, by bootstrap: of the held-out documents, and of the documents of a period."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from textcat.trends.bins import N_BINS
from textcat.trends.estimators import most_likely
from textcat.trends.held_out import HeldOut

_DRAWS, _LEVEL = 200, 0.95
_STEPS = 20  # of halving: to 3e-5 of the log odds
_PSEUDO = 10.0  # documents with the topic, and others, that lie in the bins as the curves say
# Texts change, so that the log odds of a later period are off by some constant, and those of rankers that were trained
# without a fold by more, the fewer documents there are. Chosen on Reuters-21578 and newswire.
_DRIFT, _DRIFT_OF_FEW = 0.09, 150.0  # variances: the second one is divided by the number of documents
# Where both are many, a prevalence is still off by some factor: the deviation of its log odds. Chosen on Reuters-21578,
# newswire and 20 Newsgroups.
_OF_PREVALENCE = 0.1
_TINY = 1e-9
_SLACK = 1.0, 0.5  # documents by which an interval is wider at its lower and upper end


def intervals(
    counts: NDArray[Any], held_out: HeldOut, estimates: NDArray[Any], seeds: NDArray[Any]
) -> NDArray[np.float64]:
    """Return intervals that contain the prevalence of a topic in a period, in 95 % of cases.

    Each draw takes likelihood ratios of bins from a Dirichlet distribution over the held-out documents of the topic,
    and another over the others, each with some documents that lie in the bins as the curves say; shifts the log odds by
    a normal constant; draws the number of documents in each bin from a Poisson distribution; and shifts the log odds of
    what is most likely then by another normal constant. The interval holds the middle 95 % of these, and the estimate,
    and is wider by a document.

    Parameters
    ----------
    counts : ndarray of shape (n_periods, n_topics, n_bins)
    held_out : HeldOut
    estimates : ndarray of shape (n_periods, n_topics)
    seeds : ndarray of shape (n_topics,), int
        A topic's seed, on which its draws depend alone.

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
    """Return drawn prevalences of a topic: shape (n_draws, n_periods)."""
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
    """Return drawn shares of the bins: shape (n_draws, n_bins)."""
    shape = observed + _PSEUDO * expected / max(expected.sum(), _TINY) + 0.01 / N_BINS
    drawn = chance.standard_gamma(shape, (_DRAWS, N_BINS)) + _TINY
    return np.asarray(drawn / drawn.sum(axis=1, keepdims=True))
