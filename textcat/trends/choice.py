"""Choose the estimator, by simulated samples of held-out documents or by a sample that people have judged."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from textcat.trends.bins import N_BINS, WIDTH
from textcat.trends.estimators import ESTIMATORS
from textcat.trends.held_out import HeldOut
from textcat.trends.sample import Judged, log_evidence

_SAMPLES, _DOCUMENTS = 24, 2000
_LARGEST = 5.0  # largest factor by which a sample changes a topic's prevalence; every other sample does not
_DRIFT = 0.3  # deviation of a constant that is added to the log odds of a sample, as texts change
# Minimum number of a topic's documents, in a sample and among those held out, for the topic's error to count.
_FEWEST = 5
# Adjusted counts would be judged by the documents that they are adjusted by.
_CANDIDATES = {name: estimate for name, estimate in ESTIMATORS.items() if name != "adjusted"}


class Choice(NamedTuple):
    """The name of the chosen estimator, and the value by which each estimator was compared (error or likelihood)."""

    name: str
    figures: dict[str, float]


def choose_estimator(held_out: HeldOut, seed: int = 0) -> Choice:
    """Choose the estimator with the smallest mean relative error of prevalences on simulated samples.

    For each topic, a sample has 2,000 documents, drawn from the held-out documents with the topic and from those
    without it. In every other sample, the topic's prevalence is changed by a random factor between 1/5 and 5, evenly on
    a logarithmic scale. Only topics with at least 5 documents, held out and in the sample, count; if there are none,
    `summed` is chosen. The adjusted count is not compared, as it would be judged by the documents that it is adjusted
    by.
    """
    chance, errors = np.random.default_rng(seed), {name: list[NDArray[np.float64]]() for name in _CANDIDATES}
    is_known = held_out.positives.sum(axis=1) >= _FEWEST
    for number in range(_SAMPLES):
        counts, prevalence = _sample(held_out, chance, _LARGEST if number % 2 else 1.0)
        judged = (prevalence * _DOCUMENTS >= _FEWEST) & is_known
        for name, estimate in _CANDIDATES.items():
            difference = np.abs(estimate(counts, held_out) - prevalence)[judged]
            errors[name].append(difference / prevalence[judged])
    means = {name: float(np.concatenate(lists).mean()) for name, lists in errors.items() if sum(map(len, lists))}
    return Choice(min(means, key=means.__getitem__) if means else "summed", means)


def choose_by_sample(counts: NDArray[Any], judged: Judged, held_out: HeldOut) -> Choice:
    """Choose the estimator whose estimates make the labels of a judged sample most likely, by log likelihood.

    Parameters are as for `textcat.trends.sample.log_evidence`.
    """
    evidence = {
        name: log_evidence(counts, judged, held_out, estimate(counts, held_out))
        for name, estimate in ESTIMATORS.items()
    }
    return Choice(max(evidence, key=evidence.__getitem__), evidence)


def _sample(
    held_out: HeldOut, chance: np.random.Generator, largest: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the number of a simulated sample's documents by topic and bin, and the prevalence of each topic in it."""
    n_topics = len(held_out.below)
    factor = np.exp(np.log(largest) * chance.uniform(-1, 1, n_topics))
    wanted = np.minimum(held_out.prior * factor, 0.9) * (held_out.positives.sum(axis=1) > 0)
    n_positives = chance.binomial(_DOCUMENTS, wanted)
    counts = np.zeros((n_topics, N_BINS))
    drift = _DRIFT * chance.standard_normal(n_topics)
    for of_class, n in ((held_out.positives, n_positives), (held_out.negatives, _DOCUMENTS - n_positives)):
        total = of_class.sum(axis=1, keepdims=True)
        shares = np.where(total > 0, of_class / np.maximum(total, 1), 1 / N_BINS)
        counts += chance.multinomial(n, _moved(shares, drift))
    return counts, n_positives / _DOCUMENTS


def _moved(shares: NDArray[np.float64], drift: NDArray[np.float64]) -> NDArray[np.float64]:
    """Add a constant to the log odds of each topic's documents: a share of each bin moves to the next bin.

    The first bin is too wide to tell which of its documents leave it: it loses none.
    """
    part, is_up = np.minimum(np.abs(drift) / WIDTH, 1)[:, None], drift[:, None] > 0
    moved = shares.copy()
    moved[:, 1:-1] = np.where(is_up, shares[:, [1, *range(1, N_BINS - 2)]], shares[:, 2:])
    moved[:, :1] += np.where(is_up, 0, shares[:, 1:2])
    moved[:, -1:] += np.where(is_up, shares[:, -2:-1], 0)
    together = (1 - part) * shares + part * moved
    return np.asarray(together / together.sum(axis=1, keepdims=True))
