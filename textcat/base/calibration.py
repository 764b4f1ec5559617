"""Turn scores into probabilities: one logistic curve per topic, fitted to out-of-fold scores and labels."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from textcat.base.errors import TextcatError
from textcat.base.sigmoid import expit, fit_curve, logit

# width of cells; merging scores of a cell into their mean changes the loss by less than 1e-5
_MANY_NEGATIVES, _CELLS_PER_DEVIATION = 2000, 256


def positives_of(Y: Any, shape: tuple[int, ...]) -> Any:
    """Return labels of the shape (n_documents, n_topics) as a CSC matrix of bool.

    Raise ValueError if they do not have the shape of the scores, `shape`.
    """
    from scipy import sparse  # imported here, because tagging, which fits nothing, does not need it

    positives = sparse.csc_array((Y if sparse.issparse(Y) else np.asarray(Y)) > 0)
    if shape != positives.shape:
        raise ValueError(f"Scores of shape {shape} cannot be compared with labels of shape {positives.shape}.")
    return positives


def topic_samples(scores: ArrayLike, Y: Any) -> Iterator[tuple[NDArray[Any], NDArray[np.bool_]]]:
    """Yield for each topic the scores of its sample, and a bool array: which of these documents are positive.

    A topic's sample is the documents whose score for the topic is not nan.
    """
    values = np.asarray(scores)
    positives = positives_of(Y, values.shape)
    for topic, column in enumerate(values.T):
        is_positive, in_sample = np.zeros(len(column), bool), ~np.isnan(column)
        is_positive[positives.indices[positives.indptr[topic] : positives.indptr[topic + 1]]] = True
        yield column[in_sample], is_positive[in_sample]


def check_probability(probability: float) -> None:
    """Raise TextcatError if a value is not a number from 0 to 1."""
    if not isinstance(probability, Real) or not 0 <= probability <= 1:
        raise TextcatError(f"{probability!r} is not a probability: give one from 0 to 1.")


@dataclass(frozen=True, eq=False)
class Calibration:
    """One curve per topic from scores to probabilities: ``P(topic | score) = 1 / (1 + exp(-(a·score + b)))``.

    `a` and `b` are of shape (n_topics,). `a` is not negative: a higher score never has a lower probability.
    """

    a: NDArray[np.float64]
    b: NDArray[np.float64]

    def __repr__(self) -> str:
        return f"Calibration({len(self.a):,} topics)"

    def probabilities(self, scores: ArrayLike) -> NDArray[np.float64]:
        """Turn scores of shape (n_documents, n_topics) into probabilities in [0, 1], float64."""
        return expit(np.asarray(scores, np.float64) * self.a + self.b)

    def of_topics(self, topics: NDArray[Any]) -> "Calibration":
        """Return the curves of some topics; `topics` has their column numbers."""
        return Calibration(self.a[topics], self.b[topics])

    def threshold(self, probability: float) -> NDArray[np.float64]:
        """Return for each topic the score that has a given probability.

        If a topic's curve is flat, return -inf if the curve is above the probability, and inf otherwise. Raise
        TextcatError if `probability` is not a number from 0 to 1.
        """
        check_probability(probability)
        wanted = logit(probability) - self.b
        flat = np.where(wanted < 0, -np.inf, np.inf)
        return np.divide(wanted, self.a, out=flat, where=self.a > 0)

    @classmethod
    def fit_scores(cls, scores: ArrayLike, Y: Any, shrinkage: float = 10.0) -> "Calibration":
        """Fit Platt's sigmoids, and shrink the curves of rare topics towards a curve that all topics share.

        A topic's own curve, ``logit P = a·score + b``, is fitted to the targets ``(n_pos + 1) / (n_pos + 2)`` for
        positives and ``1 / (n_neg + 2)`` for negatives (Platt 1999). The shared curve,
        ``logit P = A·z + B + logit(prior)``, is fitted to all topics together, over scores z with mean 0 and deviation
        1 in each topic; ``prior = (n_pos + 1/2) / (n + 1)``, since the same z means less for a rarer topic. A topic
        takes the share ``n_pos / (n_pos + shrinkage)`` of a and b from its own curve, and the rest from the shared
        curve; this rest is also the topic's weight in the fit of the shared curve. (Isotonic curves per topic had a
        sixth more log loss on held-out halves of Reuters-21578's training documents.)

        Parameters
        ----------
        scores : array-like of shape (n_documents, n_topics)
            Scores of documents that the rankers were not trained on; nan: the topic's curve is fitted without the
            document.
        Y : array-like or sparse of shape (n_documents, n_topics), bool or 0/1
        shrinkage : float, default=10
            The number of positives at which a topic's own curve and the shared one have equal weights.

        Returns
        -------
        Calibration

        Raises
        ------
        ValueError
            If there is no document, or the shapes of `scores` and `Y` differ.
        """
        samples = [_standardise(*sample) for sample in topic_samples(scores, Y)]
        if not any(len(sample.curve[0]) for sample in samples):
            raise ValueError("Probabilities cannot be learnt without a document.")
        n_positives, prior, mean, deviation = np.array([sample.facts for sample in samples]).T
        own_part = n_positives / np.maximum(n_positives + shrinkage, 1)
        together = [np.concatenate(arrays) for arrays in zip(*(sample.curve for sample in samples), strict=True)]
        together[-1] *= np.repeat(1 - own_part, [len(sample.curve[0]) for sample in samples])
        shared = (0.0, 0.0)
        for step in (16, 1):  # a fit to a sixteenth of them is a good start for the fit to all
            shared = fit_curve(*(array[::step].copy() for array in together), shared)
        curves = np.array([fit_curve(*sample.curve, shared) for sample in samples])
        a = own_part * curves[:, 0] + (1 - own_part) * shared[0]
        b = own_part * curves[:, 1] + (1 - own_part) * shared[1] + prior
        return cls(a / deviation, b - a * mean / deviation)

    @classmethod
    def fit_together(cls, scores: ArrayLike, Y: Any) -> "Calibration":
        """Fit one curve to the scores of all topics together.

        Parameters
        ----------
        scores : array-like of shape (n_documents, n_topics)
            Scores of documents that the rankers were not trained on; nan: the document does not count for the topic.
        Y : array-like or sparse of shape (n_documents, n_topics), bool or 0/1

        Returns
        -------
        Calibration
            With the same curve for each topic.

        Raises
        ------
        ValueError
            As for `fit_scores`.
        """
        values = np.asarray(scores)
        positives = positives_of(Y, values.shape).toarray()
        curve = cls.fit_scores(values.reshape(-1, 1), positives.reshape(-1, 1))
        return cls(*(np.repeat(value, values.shape[1]) for value in (curve.a, curve.b)))


class _Standardised(NamedTuple):
    """A topic's scores, standardised to mean 0 and deviation 1; an entry may be the mean of several scores."""

    # scores, Platt's labels, logit of the prior, number of documents that each score stands for
    curve: tuple[NDArray[np.float64], ...]
    facts: tuple[float, float, float, float]  # number of positives, logit of the prior, mean, deviation


def _standardise(scores: NDArray[Any], is_positive: NDArray[np.bool_]) -> _Standardised:
    """Shift and scale scores to mean 0 and deviation 1; if there are many negatives, merge their nearly equal scores.

    Merged scores are replaced by their mean, with the number of merged scores as its weight.
    """
    scores = scores.astype(np.float64)
    n, n_positives = len(scores), int(is_positive.sum())
    mean, deviation = (scores.mean(), scores.std() or 1.0) if n else (0.0, 1.0)
    z = (scores - mean) / deviation
    negatives, weight = z[~is_positive], np.ones(n - n_positives)
    if len(negatives) > _MANY_NEGATIVES:
        lowest = negatives.min()
        cell = ((negatives - lowest) * _CELLS_PER_DEVIATION).astype(np.int64)
        count, total = np.bincount(cell), np.bincount(cell, weights=negatives)
        weight = count[count > 0].astype(np.float64)
        negatives = total[count > 0] / weight
    right, wrong = (n_positives + 1) / (n_positives + 2), 1 / (n - n_positives + 2)
    z = np.concatenate([z[is_positive], negatives])
    target = np.repeat([right, wrong], [n_positives, len(negatives)])
    prior = math.log((n_positives + 0.5) / (n - n_positives + 0.5))
    curve = z, target, np.full(len(z), prior), np.concatenate([np.ones(n_positives), weight])
    return _Standardised(curve, (n_positives, prior, mean, deviation))
