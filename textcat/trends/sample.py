"""Estimate the prevalence of topics from scores and a random sample of documents whose topics people have judged.

The scores of all documents determine a prevalence up to a systematic error. The sample shows this error: a constant
that is added to the log odds of a topic. The constants of different periods are similar, so the samples of all periods
improve the estimate of each.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from textcat.base.sigmoid import expit
from textcat.trends.estimators import ESTIMATORS, log_odds
from textcat.trends.held_out import HeldOut

#: Minimum number of judged documents in all periods together; fewer are ignored.
LEAST_DOCUMENTS = 30
# Constants that may be added to log odds: dense at 0, and as large as a sample needs that contradicts the scores.
_OFFSETS = np.sinh(np.linspace(-3.3, 3.3, 161))
_WIDTHS = np.gradient(_OFFSETS)
# Scales of Student's t distribution with 3 degrees of freedom: of the constant that all periods share, and of the
# distance of a period's own constant from it. Chosen on Reuters-21578, newswire and 20 Newsgroups.
_COMMON, _OF_PERIOD = 0.3, 0.3
# Standard deviation of a further error of the log odds of documents that nobody has judged: errors differ by bin.
_OF_OTHERS = 0.4
_DRAWS, _LEVEL = 400, 0.95
_SLACK = 1.0  # documents that are added to an interval at each end
_WIDEST, _STEPS = 16.0, 40  # log odds, and halvings
_TINY = 1e-9


class Judged(NamedTuple):
    """Numbers of judged documents by period, topic and bin of log odds, with the topic and without it."""

    having: NDArray[np.int64]  # (n_periods, n_topics, n_bins)
    lacking: NDArray[np.int64]

    @property
    def documents(self) -> NDArray[np.int64]:
        """The number of judged documents of each period: shape (n_periods,)."""
        return np.asarray((self.having + self.lacking)[:, :1].sum(axis=(1, 2)))

    def of_topics(self, columns: NDArray[Any]) -> "Judged":
        """Return the counts of some topics; `columns` has their column numbers."""
        return Judged(self.having[:, columns], self.lacking[:, columns])


def sampled_prevalences(
    counts: NDArray[Any], judged: Judged, held_out: HeldOut, estimates: NDArray[Any], seeds: NDArray[Any]
) -> NDArray[np.float64]:
    """Return prevalences with 95 % intervals, from the scores of all documents and the labels of the judged ones.

    The log odds that a document of period i in bin b has the topic are ``log(p_b / (1 - p_b)) + s_i + a + e_i``. Here,
    p_b is the probability of bin b, and s_i a constant such that the mean probability of the period's documents equals
    the estimate from scores alone. The error a is the same in all periods, e_i differs; both have Student's t
    distribution as prior. Their posterior, given the labels, is computed on a grid. Judged documents count as they are;
    the labels of all other documents are drawn.

    Parameters
    ----------
    counts : ndarray of shape (n_periods, n_topics, n_bins)
        All documents, judged or not.
    judged : Judged
    held_out : HeldOut
    estimates : ndarray of shape (n_periods, n_topics)
        Prevalences, estimated from scores alone.
    seeds : ndarray of shape (n_topics,), int
        The random seed of each topic, so that a topic's interval does not depend on other topics.

    Returns
    -------
    prevalences : ndarray of shape (3, n_periods, n_topics), float64
        Estimates, and the lower and upper ends of intervals.
    """
    found = np.empty((3, *estimates.shape))
    for topic, seed in enumerate(seeds.tolist()):
        p = _shifted_probabilities(counts[:, topic], held_out.probabilities[topic], estimates[:, topic])
        sample = judged.having[:, topic], judged.lacking[:, topic]
        found[..., topic] = _topic_prevalences(counts[:, topic], *sample, p, np.random.default_rng(seed))
    return found


def likeliest_estimator(counts: NDArray[Any], judged: Judged, held_out: HeldOut) -> str:
    """Return the name of the estimator whose estimates make the labels of a judged sample most likely.

    Parameters are as for `log_evidence`.
    """
    return max(ESTIMATORS, key=lambda name: log_evidence(counts, judged, held_out, ESTIMATORS[name](counts, held_out)))


def log_evidence(counts: NDArray[Any], judged: Judged, held_out: HeldOut, estimates: NDArray[Any]) -> float:
    """Return the log likelihood of the labels of judged documents, given their bins and estimates from scores alone.

    Parameters are as for `sampled_prevalences`. The constants a and e_i are integrated out, and topics are added up as
    if they were independent.
    """
    total = 0.0
    for topic in range(estimates.shape[1]):
        p = _shifted_probabilities(counts[:, topic], held_out.probabilities[topic], estimates[:, topic])
        likelihood = _offset_likelihood(judged.having[:, topic], judged.lacking[:, topic], p)
        together = np.log(_PRIOR) + _common_likelihood(likelihood).sum(axis=0)
        total += float(np.logaddexp.reduce(together))
    return total


def _shifted_probabilities(
    counts: NDArray[Any], p: NDArray[np.float64], estimates: NDArray[Any]
) -> NDArray[np.float64]:
    """Return a topic's probability for each period, offset of log odds and bin: shape (n_periods, n_offsets, n_bins).

    At the offset 0, the mean probability of a period's documents is its estimate.
    """
    of_bins = log_odds(p)
    of_periods = of_bins + _shifts_to_estimates(counts, of_bins, estimates)[:, None]
    return np.clip(expit(of_periods[:, None, :] + _OFFSETS[:, None]), _TINY, 1 - _TINY)


def _shifts_to_estimates(counts: NDArray[Any], of_bins: NDArray[Any], estimates: NDArray[Any]) -> NDArray[np.float64]:
    """Return what to add to each period's log odds so that its mean probability is its estimate: shape (n_periods,)."""
    documents = counts.sum(axis=-1)
    low = np.full(len(counts), -_WIDEST)
    high = -low
    for _ in range(_STEPS):
        middle = (low + high) / 2
        is_less = (counts * expit(of_bins + middle[:, None])).sum(axis=-1) < estimates * documents
        low, high = np.where(is_less, middle, low), np.where(is_less, high, middle)
    return (low + high) / 2


def _topic_prevalences(
    counts: NDArray[Any],
    having: NDArray[Any],
    lacking: NDArray[Any],
    p: NDArray[np.float64],
    chance: np.random.Generator,
) -> NDArray[np.float64]:
    """Return a topic's estimated prevalence in each period, with the bounds of an interval: shape (3, n_periods).

    `counts` (all documents), `having` and `lacking` (judged documents with and without the topic) have the shape
    (n_periods, n_bins), and `p` is the result of `_shifted_probabilities`.
    """
    documents, known, rest = counts.sum(axis=-1), having.sum(axis=-1), counts - having - lacking
    posterior = _posterior(_offset_likelihood(having, lacking, p))
    prevalences = (known[:, None] + (rest[:, None] * p).sum(axis=-1)) / documents[:, None]
    estimates = np.exp((posterior * np.log(np.maximum(prevalences, _TINY))).sum(axis=-1))
    at = (posterior.cumsum(axis=-1)[:, None] < chance.random((len(counts), _DRAWS, 1))).sum(axis=-1)
    drawn_p = np.take_along_axis(p, np.minimum(at, len(_OFFSETS) - 1)[..., None], axis=1)
    odds = drawn_p / (1 - drawn_p) * np.exp(_OF_OTHERS * chance.standard_normal((_DRAWS, 1)))
    drawn_p = odds / (1 + odds)
    drawn = known[:, None] + chance.binomial(rest[:, None], drawn_p).sum(axis=-1)
    low, high = np.quantile(drawn, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2], axis=1)
    most = documents - lacking.sum(axis=-1)
    low, high = np.maximum(low - _SLACK, known) / documents, np.minimum(high + _SLACK, most) / documents
    return np.stack([estimates, np.minimum(low, estimates), np.maximum(high, estimates)])


def _offset_likelihood(having: NDArray[Any], lacking: NDArray[Any], p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log likelihood of each offset in each period, given judged documents: shape (n_periods, n_offsets)."""
    return np.asarray((having[:, None] * np.log(p) + lacking[:, None] * np.log1p(-p)).sum(axis=-1))


def _common_likelihood(likelihood: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log likelihood of each offset shared by all periods, given each period's labels alone.

    A further offset of each period is integrated out. The shape is (n_periods, n_offsets), as of `likelihood`, the
    result of `_offset_likelihood`.
    """
    most = likelihood.max(axis=1, keepdims=True)
    return np.asarray(most + np.log(np.maximum(np.exp(likelihood - most) @ _GIVEN_COMMON.T, np.finfo(float).tiny)))


def _posterior(likelihood: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return for each period the posterior probabilities of the offsets of its log odds: shape (n_periods, n_offsets).

    `likelihood`, of the same shape, has the log likelihood of each offset, given the labels of the period. The labels
    of all other periods determine how probable each shared offset is, over which the posterior is averaged.
    """
    common_likelihood = _common_likelihood(likelihood)
    others = np.log(_PRIOR) + common_likelihood.sum(axis=0) - common_likelihood
    common = np.exp(others - others.max(axis=1, keepdims=True))
    posterior = (common @ _GIVEN_COMMON) * np.exp(likelihood - likelihood.max(axis=1, keepdims=True))
    return np.asarray(posterior / posterior.sum(axis=1, keepdims=True))


def _density(distance: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """Return probabilities of offsets by Student's t distribution with 3 degrees of freedom, along the last axis."""
    density = (1 + (distance / scale) ** 2 / 3) ** -2 * _WIDTHS
    return np.asarray(density / density.sum(axis=-1, keepdims=True))


_PRIOR = _density(_OFFSETS, _COMMON)
_GIVEN_COMMON = _density(_OFFSETS[:, None] - _OFFSETS, _OF_PERIOD)  # a row for each constant of all periods
