"""Forecast how much more training documents would help: a learning curve, measured on parts of those that there are.

Rankers are trained on nested parts of the training documents, and measured on held-out ones. Twice as many documents
are further away than any part, so two curves are drawn through the measured accuracies p, and the forecast is their
mean: a line in log-odds, which rises too far if p is high, and a power law of errors, ``1 - p = b · n^(-c)``, which
rises too little if p is low. Both are straight lines over log n.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from textcat.recipes.recipe import Recipe
from textcat.training.cross_validation import HoldOut, is_first_right, scores_of_split
from textcat.training.examples import CountedCorpus

_FOLDS = 5
_SHARES = np.array([0.1, 0.2, 0.3, 0.4, 0.57, 1 - 1 / _FOLDS])  # of the training documents, to train on
_GROWTH = np.array([1, 1.25, 1.5, 1.75, 2])  # training documents of the forecast, as multiples of those there are
_FEWEST = 50  # documents with a topic: with fewer, nothing is forecast
_SCORED = 1_000  # held-out documents: of few documents, more splits are made,
MOST_SPLITS = 15  # but at most so many
_RESAMPLES = 200
_NORMAL = 1.645  # standard errors on either side of a forecast, for a band of 90 %
_WIDER, _FURTHER_ERROR = 1.5, 0.2  # times the error by resampling, and in log-odds: see `extrapolated`


class Forecast(NamedTuple):
    """Hold a learning curve: how often the topic with the highest score is right, of documents with a topic."""

    documents: int  # training documents of the model
    held_out: int  # documents that were scored, each as often as it was held out
    measured: list[list[float]]  # number of training documents, and the accuracy
    forecast: list[list[float]]  # number of training documents, the accuracy, and both ends of its 90 % band

    def facts(self) -> dict[str, Any]:
        """Return the forecast as models store it."""
        return {"measure": "top_1_accuracy", **self._asdict()}


def forecast_growth(counted: CountedCorpus, recipe: Recipe, n_jobs: int | None = None) -> Forecast | None:
    """Forecast the quality with up to twice as many training documents.

    Parameters
    ----------
    counted : CountedCorpus
    recipe : Recipe
        The recipe to train by, without a shortlist.
    n_jobs : int, optional

    Returns
    -------
    Forecast or None
        None if there are fewer than 50 documents with a topic, or fewer than 2 topics.
    """
    labels = counted.labels.tocsr()
    documents = np.flatnonzero(np.diff(labels.indptr))
    if len(documents) < _FEWEST or labels.shape[1] < 2:
        return None
    right, n_scored = _right(counted, recipe, documents, n_jobs)
    (n_documents, _), ahead = labels.shape, extrapolated(right, _SHARES, _GROWTH)
    measured = _points(_SHARES * n_documents, right.mean(axis=1, keepdims=True))
    return Forecast(n_documents, n_scored, measured, _points(_GROWTH * n_documents, ahead.T))


def _points(sizes: np.ndarray, figures: np.ndarray) -> list[list[float]]:
    return [[round(size), *row] for size, row in zip(sizes.tolist(), figures.tolist(), strict=True)]


def _right(counted: CountedCorpus, recipe: Recipe, documents: np.ndarray, n_jobs: int | None) -> tuple[np.ndarray, int]:
    """Return how often the topic with a document's highest score is right, from 0 to 1, by the share trained on.

    The array has a column for each document that was held out. Return also how many documents were scored. A topic that
    no document trained on has counts as unknown, even if it has a description: so it is for topics of new documents.
    """
    labels = counted.labels.tocsr()
    n_right, n_scored = np.zeros((len(_SHARES), labels.shape[0])), np.zeros(labels.shape[0], int)
    for trained, held_out in _splits(documents, labels.shape[0]):
        n_scored[held_out] += 1
        for row, share in zip(n_right, _SHARES / _SHARES[-1], strict=True):
            part = np.sort(trained[: max(round(share * len(trained)), 1)])
            scores = scores_of_split(counted, recipe, HoldOut(part, held_out), n_jobs)
            scores[:, labels[part].sum(axis=0).A1 == 0] = -np.inf
            row[held_out] += is_first_right(labels, held_out, scores)
    is_scored = n_scored > 0
    return n_right[:, is_scored] / n_scored[is_scored], int(n_scored.sum())


def _splits(documents: np.ndarray, n_documents: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield documents to train on, in random order, and documents to hold out, those with a topic.

    Folds are not stratified: a new document, too, may have a topic that few training documents have, or none.
    """
    random = np.random.default_rng(0)
    n_splits = min(-(-_SCORED * _FOLDS // len(documents)), MOST_SPLITS)
    for number in range(n_splits):
        if number % _FOLDS == 0:
            folds = np.array_split(random.permutation(documents), _FOLDS)
        held_out = np.sort(folds[number % _FOLDS])
        yield random.permutation(np.setdiff1d(np.arange(n_documents), held_out)), held_out


def extrapolated(right: np.ndarray, shares: np.ndarray, growth: np.ndarray) -> np.ndarray:
    """Extrapolate a learning curve.

    Parameters
    ----------
    right : ndarray of shape (n_shares, n_documents)
        How often each held-out document is right, from 0 to 1, by the share of the training documents trained on.
    shares : ndarray of shape (n_shares,)
    growth : ndarray of shape (n_growth,)
        Numbers of training documents to forecast, as multiples of those that there are.

    Returns
    -------
    ndarray of shape (3, n_growth)
        The forecast share of right documents, and the lower and the upper end of its 90 % band. Its error is that by
        resampling the held-out documents, which were also trained on, and a further one of the curves and of other
        documents; both were adapted to corpora: see docs/background/recipe-study.md.
    """
    n_documents = right.shape[1]
    counts = np.random.default_rng(0).multinomial(n_documents, np.full(n_documents, 1 / n_documents), _RESAMPLES)
    resampled = right @ np.vstack([np.ones(n_documents), counts]).T / n_documents
    least = 0.5 / n_documents  # log-odds are finite
    forecast = _log_odds(np.clip(_curves(np.clip(resampled, least, 1 - least), shares, growth), least, 1 - least))
    error = _NORMAL * np.hypot(_WIDER * forecast[:, 1:].std(axis=1), _FURTHER_ERROR)
    return _share(forecast[:, 0] + error * np.array([[0], [-1], [1]]))


def _curves(measured: np.ndarray, shares: np.ndarray, growth: np.ndarray) -> np.ndarray:
    """Continue each column of `measured`, a row per share; return a row per growth. No curve falls."""
    x = np.log(shares)
    at, x = (np.log(growth) - x.mean())[:, np.newaxis], x - x.mean()

    def line(y: np.ndarray) -> np.ndarray:
        return y.mean(axis=0) + at * np.maximum(x @ y / (x @ x), 0)

    return (_share(line(_log_odds(measured))) + 1 - np.exp(-line(-np.log(1 - measured)))) / 2


def _log_odds(share: np.ndarray) -> np.ndarray:
    return np.log(share / (1 - share))


def _share(log_odds: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-log_odds))
