"""Forecast the gain from more training documents, by a learning curve measured on parts of the training documents.

Rankers are trained on nested parts of the training documents, and measured on held-out ones. The forecast for twice as
many documents extrapolates, so it is the mean of two curves fitted to the measured accuracies p: a line in log odds,
which rises too far if p is high, and a power law of errors, ``1 - p = b · n^(-c)``, which rises too little if p is low.
Both are straight lines over log n.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from textcat.base.folds import members_of
from textcat.recipes.recipe import Recipe
from textcat.training.cross_validation import HoldOut, affordable_splits, is_first_right, scores_of_split
from textcat.training.examples import CountedCorpus

_FOLDS = 5
_SHARES = np.array([0.1, 0.2, 0.3, 0.4, 0.57, 1 - 1 / _FOLDS])  # shares of the training documents to train on
_GROWTH = np.array([1, 1.25, 1.5, 1.75, 2])  # sizes to forecast, as multiples of the number of training documents
_FEWEST = 50  # minimum number of documents with a topic; below it, there is no forecast
_SCORED = 1_000  # target number of held-out documents: small corpora are split several times,
MOST_SPLITS = 15  # up to this number of splits
_RESAMPLES = 200
_NORMAL = 1.645  # half-width of the 90 % band, in standard errors
# factor on the bootstrap's standard error, and a further standard error in log odds: see `extrapolated`
_WIDER, _FURTHER_ERROR = 1.5, 0.2


class Forecast(NamedTuple):
    """A learning curve: the share of documents with a topic for which the topic with the highest score is right."""

    documents: int  # number of training documents of the model
    held_out: int  # number of scored documents, counted once for each time a document was held out
    measured: list[list[float]]  # (number of training documents, accuracy)
    forecast: list[list[float]]  # (number of training documents, accuracy, lower and upper end of its 90 % band)

    def facts(self) -> dict[str, Any]:
        """Return the forecast as models store it."""
        return {"measure": "top_1_accuracy", **self._asdict()}


def forecast_growth(counted: CountedCorpus, recipe: Recipe, n_jobs: int | None = None) -> Forecast | None:
    """Forecast accuracy for up to twice as many training documents.

    Parameters
    ----------
    counted : CountedCorpus
    recipe : Recipe
        The recipe to train by, without a shortlist.
    n_jobs : int, optional

    Returns
    -------
    Forecast or None
        None if there are fewer than 50 documents with a topic, or fewer than 2 topics. Documents that repeat each other
        count as one, and are in one part.
    """
    labels = counted.labels.tocsr()
    documents = np.intersect1d(np.flatnonzero(np.diff(labels.indptr)), counted.corpus.groups)
    if len(documents) < _FEWEST or labels.shape[1] < 2:
        return None
    right, n_scored = _rightness(counted, recipe, documents, n_jobs)
    (n_documents, _), ahead = labels.shape, extrapolated(right, _SHARES, _GROWTH)
    measured = _points(_SHARES * n_documents, right.mean(axis=1, keepdims=True))
    return Forecast(n_documents, n_scored, measured, _points(_GROWTH * n_documents, ahead.T))


def _points(sizes: np.ndarray, figures: np.ndarray) -> list[list[float]]:
    return [[round(size), *row] for size, row in zip(sizes.tolist(), figures.tolist(), strict=True)]


def _rightness(
    counted: CountedCorpus, recipe: Recipe, documents: np.ndarray, n_jobs: int | None
) -> tuple[np.ndarray, int]:
    """Measure how often each document's highest score is for one of its topics, for each share of training data.

    Return an array of shape (n_shares, n_documents), with values from 0 to 1, and the number of documents scored in all
    splits. A topic without a document among those trained on is treated as unknown even if it has a description, as a
    topic of new documents may be.
    """
    labels, groups = counted.labels.tocsr(), counted.corpus.groups
    n_right, n_scored = np.zeros((len(_SHARES), labels.shape[0])), np.zeros(labels.shape[0], int)
    for trained, held_out in _splits(documents, np.unique(groups), counted.n_terms()):
        n_scored[held_out] += 1
        for row, share in zip(n_right, _SHARES / _SHARES[-1], strict=True):
            part = members_of(trained[: max(round(share * len(trained)), 1)], groups)
            scores = scores_of_split(counted, recipe, HoldOut(part, held_out), n_jobs)
            scores[:, labels[part].sum(axis=0).A1 == 0] = -np.inf
            row[held_out] += is_first_right(labels, held_out, scores)
    is_scored = n_scored > 0
    return n_right[:, is_scored] / n_scored[is_scored], int(n_scored.sum())


def _splits(documents: np.ndarray, firsts: np.ndarray, n_terms: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield splits into documents to train on, in random order, and held-out documents: positions of both.

    `firsts` are the documents of which none repeats another, and `documents` those of them that are held out in turn.
    Folds are not stratified, because a new document may have a topic that few or no training documents have.
    Of long texts, there are fewer splits; `n_terms` is the number of different terms of each document.
    """
    random = np.random.default_rng(0)
    n_splits = affordable_splits(n_terms, min(-(-_SCORED * _FOLDS // len(documents)), MOST_SPLITS))
    for number in range(n_splits):
        if number % _FOLDS == 0:
            folds = np.array_split(random.permutation(documents), _FOLDS)
        held_out = np.sort(folds[number % _FOLDS])
        yield random.permutation(np.setdiff1d(firsts, held_out)), held_out


def extrapolated(right: np.ndarray, shares: np.ndarray, growth: np.ndarray) -> np.ndarray:
    """Extrapolate a learning curve.

    Parameters
    ----------
    right : ndarray of shape (n_shares, n_documents)
        How often the highest score of each held-out document is for one of its topics, from 0 to 1, after training on
        each share of the training documents.
    shares : ndarray of shape (n_shares,)
    growth : ndarray of shape (n_growth,)
        Numbers of training documents to forecast, as multiples of those that there are.

    Returns
    -------
    ndarray of shape (3, n_growth)
        The forecast accuracy, and the lower and upper end of its 90 % interval. The interval combines the bootstrap
        error over held-out documents, times a factor, and a constant error of the curves; both were fitted to corpora:
        see docs/background/recipe-study.md.
    """
    n_documents = right.shape[1]
    # Of documents that are all right, any sample is: two more, one of them wrong, show that others may be wrong.
    drawn = np.column_stack([right, np.ones(len(right)), np.zeros(len(right))])
    shares_drawn = np.full(drawn.shape[1], 1 / drawn.shape[1])
    counts = np.random.default_rng(0).multinomial(n_documents, shares_drawn, _RESAMPLES)
    resampled = np.column_stack([right.mean(axis=1), drawn @ counts.T / n_documents])
    least = 0.5 / n_documents  # clip, so that log odds are finite
    forecast = _log_odds(np.clip(_curves(np.clip(resampled, least, 1 - least), shares, growth), least, 1 - least))
    error = _NORMAL * np.hypot(_WIDER * forecast[:, 1:].std(axis=1), _FURTHER_ERROR)
    return _share(forecast[:, 0] + error * np.array([[0], [-1], [1]]))


def _curves(measured: np.ndarray, shares: np.ndarray, growth: np.ndarray) -> np.ndarray:
    """Extrapolate learning curves from accuracies at `shares` to those at `growth` (both: rows); no curve falls."""
    x = np.log(shares)
    at, x = (np.log(growth) - x.mean())[:, np.newaxis], x - x.mean()

    def line(y: np.ndarray) -> np.ndarray:
        return y.mean(axis=0) + at * np.maximum(x @ y / (x @ x), 0)

    return (_share(line(_log_odds(measured))) + 1 - np.exp(-line(-np.log(1 - measured)))) / 2


def _log_odds(share: np.ndarray) -> np.ndarray:
    return np.log(share / (1 - share))


def _share(log_odds: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-log_odds))
