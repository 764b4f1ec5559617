"""Counts of an archive's tags, and those of training → the topics whose rates differ more than chance lets them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from textcat.tagging.counts import Counts

RATIO = 3.0  # thresholds that suit F1 let more or fewer documents pass than have the topic, but seldom so many
P = 0.001  # of one such topic or more, if all rates were those of training


class Drift(NamedTuple):
    """A topic that an archive has much more or less often than training.

    Parameters
    ----------
    topic : str
    rate : float
        Fraction of the archive's documents above the topic's threshold, in [0, 1].
    prevalence : float
        Fraction of the training documents that have it, in [0, 1].
    g : float
        How far that is from chance, see `log_likelihood_ratio`.
    """

    topic: str
    rate: float
    prevalence: float
    g: float


def drifts(counts: Counts, train_sizes: Mapping[str, int], train_documents: int) -> list[Drift]:
    """Return the topics whose rate is more than three times their prevalence, or less than a third, beyond chance.

    Chance is that the archive's documents and those of training are drawn from the same ones: p < .001, divided by the
    number of topics.

    Parameters
    ----------
    counts : Counts
        Of the archive.
    train_sizes : mapping of str to int
        Training documents of each topic.
    train_documents : int

    Returns
    -------
    list of Drift
        The farthest from chance first.
    """
    found = []
    for topic, size in train_sizes.items():
        rate, prevalence = counts.topics[topic] / max(counts.tagged, 1), size / train_documents
        g = log_likelihood_ratio(counts.topics[topic], counts.tagged, size, train_documents)
        if max(rate, prevalence) > RATIO * min(rate, prevalence) and _p(g) < P / len(train_sizes):
            found.append(Drift(topic, rate, prevalence, g))
    return sorted(found, key=lambda drift: -drift.g)


def log_likelihood_ratio(k: int, n: int, other_k: int, other_n: int) -> float:
    """Return G² = 2·Σ observed·ln(observed / expected) over the table of two samples, with and without a feature.

    Where both are drawn from the same population, it has a χ² distribution with one degree of freedom, and other than
    Pearson's statistic also where a feature is rare.

    Source: T. Dunning, Accurate methods for the statistics of surprise and coincidence, Computational Linguistics 19
    (1993).

    Parameters
    ----------
    k, other_k : int
        Documents that have the feature,
    n, other_n : int
        of so many.
    """
    if not n or not other_n:
        return 0.0
    with_it = (k + other_k) / (n + other_n)
    table = [
        (k, n * with_it),
        (n - k, n * (1 - with_it)),
        (other_k, other_n * with_it),
        (other_n - other_k, other_n * (1 - with_it)),
    ]
    return 2 * sum(observed * math.log(observed / expected) for observed, expected in table if observed)


def _p(g: float) -> float:
    """Return how likely a χ² of one degree of freedom is at least so large."""
    return math.erfc(math.sqrt(max(g, 0.0) / 2))
