"""Estimate the prevalence of topics from the number of documents in each bin of log odds.

`counts` has the shape (..., n_topics, n_bins); results have the shape (..., n_topics).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textcat.base.sigmoid import expit
from textcat.trends.bins import FLOOR, WIDTH
from textcat.trends.held_out import HeldOut

Prevalences = NDArray[np.float64]
_EVEN = 1 + int(-FLOOR / WIDTH)  # the first bin whose documents more likely have the topic than not
_PSEUDO = 30.0  # documents at the prior that EM adds to those of a period
# Of `adaptive`, chosen on Reuters-21578 and newswire: the weight of `shifted` after a large shift, and the squared
# shifts of log odds at which it has half of it, of the median topic and of a topic by itself (the part above the last).
_WEIGHT, _HALF, _HALF_ALONE, _LEAST_ALONE = 0.85, 0.01, 0.3, 1.0
_FEWEST, _FEWEST_EXPECTED = 5, 1  # documents of a topic, held out and expected in a period, for the median to count it
_TINY = 1e-9
_WIDEST, _STEPS = 16.0, 44  # log odds of a prevalence, and halvings of their interval


def summed(counts: NDArray[Any], held_out: HeldOut) -> Prevalences:
    """Return the mean probability: Σ counts · P(topic | bin) / Σ counts."""
    return np.asarray((counts * held_out.probabilities).sum(axis=-1) / counts.sum(axis=-1))


def adjusted(counts: NDArray[Any], held_out: HeldOut) -> Prevalences:
    """Return the adjusted count (Forman 2008): (share - fpr) / (tpr - fpr), clipped to [0, 1].

    `share` is the fraction of the documents that more likely have the topic than not; tpr and fpr are this fraction
    among held-out documents with and without the topic. Where tpr is not above fpr, the topic's prior is returned.
    """
    share = counts[..., _EVEN:].sum(axis=-1) / counts.sum(axis=-1)
    tpr, fpr = (
        of_class[:, _EVEN:].sum(axis=1) / np.maximum(of_class.sum(axis=1), 1)
        for of_class in (held_out.positives, held_out.negatives)
    )
    is_known = tpr > fpr
    return np.where(is_known, np.clip((share - fpr) / np.where(is_known, tpr - fpr, 1), 0, 1), held_out.prior)


def shifted(counts: NDArray[Any], held_out: HeldOut, pseudo: float = _PSEUDO) -> Prevalences:
    """Return the result of EM for a shifted prior (Saerens et al. 2002), with `pseudo` documents at the prior added."""
    return most_likely(counts, held_out.likelihood_ratios, held_out.prior, pseudo)


def most_likely(
    counts: NDArray[Any], ratios: NDArray[Any], prior: NDArray[Any], pseudo: float, steps: int = _STEPS
) -> Prevalences:
    """Return the prevalences p that make the documents most likely, with `pseudo` documents at the prior added.

    They are the fixed point of EM, p = (Σ counts · p·r / (1 - p + p·r) + pseudo · prior) / (Σ counts + pseudo), for the
    likelihood ratios r. The likelihood has one maximum, so that halving an interval of log odds finds it in fewer steps
    than EM.
    """
    odds = ratios - 1
    low = np.full(np.broadcast_shapes(counts.shape, odds.shape)[:-1], -_WIDEST, np.result_type(odds))
    high = -low
    for _ in range(steps):
        middle = (low + high) / 2
        p = expit(middle).astype(middle.dtype, copy=False)
        slope = np.einsum("...b,...b", counts, odds / (1 + p[..., None] * odds))
        slope += pseudo * (prior / p - (1 - prior) / (1 - p))
        low, high = np.where(slope > 0, middle, low), np.where(slope > 0, high, middle)
    return np.asarray(expit((low + high) / 2))


def adaptive(counts: NDArray[Any], held_out: HeldOut) -> Prevalences:
    """Return the result of `summed` or, for periods whose prevalences have shifted, a mean of it and that of `shifted`.

    Without a shift, `summed` errs little, but `shifted` errs if texts change in other ways than in prevalence. After a
    large shift, `summed` is wrong by a multiple, but `shifted` is not. So in a mean of their log odds, the weight of
    `shifted` grows with the shift: how far `summed` is from its value for held-out documents, beyond the error of
    counting documents. A topic's weight is the larger of two: that of the median of all topics' shifts, and that of its
    own shift, which counts only if it is large.
    """
    sums, likely = log_odds(summed(counts, held_out)), log_odds(shifted(counts, held_out))
    together = np.maximum(held_out.positives + held_out.negatives, _TINY)
    documents = counts.sum(axis=-1)
    expected = documents * held_out.prior
    noise = 1 / expected + 1 / (held_out.positives.sum(axis=-1) + 0.5)
    shift = np.maximum((sums - log_odds(summed(together, held_out))) ** 2 - noise, 0)
    counted = (expected >= _FEWEST_EXPECTED) & (held_out.positives.sum(axis=-1) >= _FEWEST)
    # A further topic without a shift makes the median of a few topics more careful.
    with_another = np.concatenate([np.where(counted, shift, np.nan), np.zeros_like(shift[..., :1])], axis=-1)
    of_all, alone = np.nanmedian(with_another, axis=-1, keepdims=True), np.maximum(shift - _LEAST_ALONE, 0)
    weight = _WEIGHT * np.maximum(of_all / (of_all + _HALF), alone / (alone + _HALF_ALONE))
    weight *= documents / (documents + _PSEUDO)  # in a period of few documents, those added would decide
    return np.asarray(expit((1 - weight) * sums + weight * likely))


def log_odds(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log odds of probabilities, kept finite at 0 and 1."""
    within = np.clip(p, _TINY, 1 - _TINY)
    return np.asarray(np.log(within) - np.log1p(-within))


#: The estimators by their names, the simplest first.
ESTIMATORS: dict[str, Callable[[NDArray[Any], HeldOut], Prevalences]] = {
    "summed": summed,
    "adjusted": adjusted,
    "em": shifted,
    "adaptive": adaptive,
}
