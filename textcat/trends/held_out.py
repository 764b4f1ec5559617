"""Count held-out training documents by bin of log odds, with and without each topic."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textcat.base.calibration import Calibration, topic_samples
from textcat.base.sigmoid import expit
from textcat.trends.bins import FLOOR, MIDDLES, N_BINS, WIDTH, bins_of

_LEAST = 1e-6  # probability of a document in the first bin


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Numbers of held-out documents by topic and bin of log odds, with the topic and without it.

    Parameters
    ----------
    positives, negatives : ndarray of shape (n_topics, n_bins), float64
        Numbers of documents.
    below : ndarray of shape (n_topics,), float64
        The mean probability of the documents in the first bin.
    """

    positives: NDArray[np.float64]
    negatives: NDArray[np.float64]
    below: NDArray[np.float64]

    @classmethod
    def fit(cls, scores: Any, Y: Any, curves: Calibration) -> "HeldOut":
        """Count held-out documents.

        Parameters
        ----------
        scores : ndarray of shape (n_documents, n_topics)
            Scores by rankers that were not trained on the document; nan where a document is not in a topic's sample.
        Y : array-like or sparse of the same shape, bool or 0/1
        curves : Calibration
            The curves from scores to probabilities.
        """
        n_topics = len(curves.a)
        counts, below = np.zeros((2, n_topics, N_BINS)), np.full(n_topics, _LEAST)
        for topic, (column, is_positive) in enumerate(topic_samples(scores, Y)):
            log_odds = column.astype(np.float64) * curves.a[topic] + curves.b[topic]
            bins = bins_of(log_odds)
            for row, chosen in enumerate((is_positive, ~is_positive)):
                counts[row, topic] = np.bincount(bins[chosen], minlength=N_BINS)
            if (lowest := bins == 0).any():
                below[topic] = max(float(expit(log_odds[lowest]).mean()), _LEAST)
        return cls(counts[0], counts[1], below)

    @property
    def documents(self) -> NDArray[np.float64]:
        """The number of documents in the sample of each topic: shape (n_topics,)."""
        return self.positives.sum(axis=1) + self.negatives.sum(axis=1)

    def above(self, log_odds: NDArray[Any]) -> NDArray[np.float64]:
        """Estimate how many held-out documents are above a value of the log odds, given one value per topic.

        Documents are assumed to be spread evenly in a bin. The estimate is nan for a value in the first or the last
        bin, which have no width, unless the bin is empty or the value infinite.

        Parameters
        ----------
        log_odds : ndarray of shape (n_topics,)

        Returns
        -------
        n : ndarray of shape (n_topics,), float64
        """
        counts, bins, topics = self.positives + self.negatives, bins_of(log_odds), np.arange(len(log_odds))
        in_bin, in_higher_bins = counts[topics, bins], (counts * (np.arange(N_BINS) > bins[:, None])).sum(axis=1)
        share_above = bins - (log_odds - FLOOR) / WIDTH
        share_above[(bins == 0) | (bins == N_BINS - 1)] = np.nan
        share_above[np.isinf(log_odds)] = log_odds[np.isinf(log_odds)] < 0
        return in_higher_bins + np.where(in_bin > 0, in_bin * share_above, 0.0)

    @property
    def prior(self) -> NDArray[np.float64]:
        """The prevalence of each topic in its sample, kept off 0 and 1: (n_pos + 1/2) / (n + 1)."""
        return (self.positives.sum(axis=1) + 0.5) / (self.documents + 1)

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """The probability that a document in a bin has the topic, if the prevalence is `prior`: (n_topics, n_bins)."""
        higher = np.broadcast_to(MIDDLES, (len(self.below), N_BINS - 1))
        return np.concatenate([self.below[:, None], higher], axis=1)

    @property
    def likelihood_ratios(self) -> NDArray[np.float64]:
        """The ratio P(bin | topic) / P(bin | no topic): shape (n_topics, n_bins).

        By Bayes' rule it is the odds of `probabilities`, divided by the odds of `prior`.
        """
        p, prior = self.probabilities, self.prior[:, None]
        return p / (1 - p) * ((1 - prior) / prior)

    def of_topics(self, columns: NDArray[Any]) -> "HeldOut":
        """Return the counts of some topics; `columns` has their column numbers."""
        return HeldOut(self.positives[columns], self.negatives[columns], self.below[columns])

    def as_table(self) -> NDArray[np.float32]:
        """Return all numbers as an array of shape (n_topics, 2 · n_bins + 1), to store."""
        return np.concatenate([self.positives, self.negatives, self.below[:, None]], axis=1).astype(np.float32)

    @classmethod
    def from_table(cls, table: NDArray[Any], n_topics: int) -> "HeldOut":
        """Return the counts that `as_table` stored in an array; raise ValueError if it cannot be such an array."""
        values = np.asarray(table, np.float64)
        if values.shape != (n_topics, 2 * N_BINS + 1) or not (values >= 0).all() or not (values[:, -1] < 1).all():
            raise ValueError("no counts of held-out documents are such an array")
        below = np.maximum(values[:, -1], _LEAST)
        return cls(values[:, :N_BINS], values[:, N_BINS:-1], below)
