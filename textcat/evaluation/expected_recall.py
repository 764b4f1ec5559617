"""Estimate the recall of a document's tags, that is, the share of its topics that they include, from its scores.

The estimate is a ridge regression, fitted on held-out documents. Its features are the number of tags, the five highest
scores and probabilities, and the recall expected from the probabilities alone: the sum over the tags, divided by the
sum over all topics. Toepfer and Seifert ("Fusion architectures for automatic subject indexing under concept drift",
2020) estimate recall from a document's length, its scores and its number of tags; docs/benchmarks/promises.md compares
the two.

Documents that are labelled for some topics only count with these topics: their recall, and their features. Below half
of the topics, features would differ too much from those of later documents. With fewer than 50 documents, the
regression is no better than the recall expected from the probabilities alone, and the estimate is this recall.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_HIGHEST = 5  # number of scores, and of probabilities, used of each document
N_WEIGHTS = 2 * _HIGHEST + 6
_PENALTY = 1.0  # penalty of the ridge regression, on features of standard deviation 1
_FEWEST = 50  # documents for a regression
_SHARE = 3  # position of the recall that is expected from the probabilities alone, among the features


@dataclass(frozen=True, eq=False)
class ExpectedRecall:
    """A fitted regression; its method `of` returns expected recalls.

    Parameters
    ----------
    weights : ndarray of shape (n_features + 1,), float64
        The weight of each feature, and the intercept.
    """

    weights: NDArray[np.float64]

    def of(self, scores: NDArray[Any], probabilities: NDArray[Any], given: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the expected recall of the tags of documents, in [0, 1]: shape (n_documents,).

        Parameters
        ----------
        scores, probabilities : ndarray of shape (n_documents, n_topics)
        given : ndarray of the same shape, bool
            The tags of each document.
        """
        return np.clip(features_of(scores, probabilities, given) @ self.weights[:-1] + self.weights[-1], 0, 1)

    @classmethod
    def fit(
        cls, scores: NDArray[Any], probabilities: NDArray[Any], given: NDArray[np.bool_], Y: Any
    ) -> "ExpectedRecall":
        """Fit the regression to held-out documents, each with the topics that it was labelled for.

        Documents without a topic, and those that were not labelled for more than half of the topics, are left out. With
        fewer than 50 others, the estimate is the recall expected from the probabilities alone.

        Parameters
        ----------
        scores, probabilities, given
            As for `of`; nan, and False, where a document was not labelled for a topic.
        Y : ndarray of the same shape, bool
            Whether each document has each topic.
        """
        is_unlabelled = np.isnan(probabilities)
        counts = (is_unlabelled.mean(axis=1) < 0.5) & Y.any(axis=1) & ~(is_unlabelled & Y).any(axis=1)
        if counts.sum() < _FEWEST:
            return cls(np.eye(N_WEIGHTS)[_SHARE])
        X = features_of(scores[counts], probabilities[counts], given[counts])
        recall = (given & Y)[counts].sum(axis=1) / Y[counts].sum(axis=1)
        mean, deviation = X.mean(axis=0), X.std(axis=0)
        deviation[deviation == 0] = 1
        Z = (X - mean) / deviation
        slopes = np.linalg.solve(Z.T @ Z + _PENALTY * np.eye(Z.shape[1]), Z.T @ (recall - recall.mean())) / deviation
        return cls(np.append(slopes, recall.mean() - mean @ slopes))


def features_of(scores: NDArray[Any], probabilities: NDArray[Any], given: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the features of documents: shape (n_documents, n_features). Parameters as for `ExpectedRecall.fit`."""
    p = np.nan_to_num(np.asarray(probabilities, np.float64))
    n_tags = given.sum(axis=1)
    found, missed = (p * given).sum(axis=1), (p * ~given).sum(axis=1)
    shares = found / np.maximum(found + missed, 1e-9), found / np.maximum(found + missed, 1)
    return np.column_stack([n_tags, n_tags > 0, np.log1p(missed), *shares, _highest(p), _highest(scores)])


def _highest(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return the five highest values of each document, the highest first; 0 where there are fewer, or nan."""
    highest, kept = np.zeros((len(values), _HIGHEST)), min(_HIGHEST, values.shape[1])
    highest[:, :kept] = -np.sort(-values, axis=1)[:, :kept]
    return np.where(np.isnan(highest), 0, highest)
