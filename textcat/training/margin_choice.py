"""Choose by a short cross-validation the margins for few documents: those of the recipe, or more even ones.

The recipe's own margins are larger for rare topics, as in a small sample a topic may be rare by chance. If topics are
rare among new documents, too, more even margins are better: scores of frequent and of rare topics then compare.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from textcat.base.folds import assign_folds
from textcat.margin.learners import MarginClassifier
from textcat.recipes.recipe import Recipe
from textcat.training.cross_validation import HoldOut, scores_of_split
from textcat.training.examples import CountedCorpus

OWN = "the recipe's own"
_MARGINS: dict[str, dict[str, float]] = {OWN: {}, "more even": {"kappa": -5.0, "scale": 60.0}}  # of PAUM
_FOLDS = 5
_MOST = 2_000  # documents that are looked at, drawn at random
_FEWEST = 20  # documents with a topic: with fewer, the recipe's own margins are taken
_SCORED = 1_000  # held-out documents: of few documents, more splits are made, and of many only one,
_MOST_FOLDS = 50  # but at most so many
_SIGNIFICANT = 1.64  # standard errors: one-sided, at 5 %


class MarginChoice(NamedTuple):
    """Hold the chosen margins, and the figures that led to the choice."""

    recipe: Recipe  # with the chosen margins
    chosen: str  # a key of `_MARGINS`
    precision: dict[str, float]  # share of held-out documents that have the topic with their highest score, by margins
    held_out: int  # documents that were scored, each as often as it was held out

    def facts(self) -> dict[str, Any]:
        """Return the choice as models store it."""
        return {"chosen": self.chosen, "precision@1": self.precision, "held_out": self.held_out}


def choose_margins(counted: CountedCorpus, recipe: Recipe, n_jobs: int | None = None) -> MarginChoice:
    """Choose the margins by which the topic with the highest score is right for the most held-out training documents.

    Other margins than the recipe's own are chosen only if they are right for significantly more documents, by a paired
    comparison. Training documents are split into folds several times if they are few.

    Parameters
    ----------
    counted : CountedCorpus
    recipe : Recipe
        The recipe to change, whose learner is PAUM.
    n_jobs : int, optional

    Returns
    -------
    MarginChoice
    """
    recipe = recipe.with_values({"topics": {"choose_margins": False}})
    candidates = {name: recipe.with_values({"learner": margins}) for name, margins in _MARGINS.items()}
    splits = list(_splits(counted.labels))
    if not splits:
        return MarginChoice(recipe, OWN, {}, 0)
    learners = [candidate.make_learner(n_jobs=n_jobs) for candidate in candidates.values()]
    right = dict(zip(candidates, _right(counted, recipe, learners, splits), strict=True))
    chosen = max(right, key=lambda name: _lead(right[name], right[OWN]))  # of equal ones the first, which is the own
    precision = {name: float(np.nanmean(shares)) for name, shares in right.items()}
    return MarginChoice(candidates[chosen], chosen, precision, sum(len(split.held_out) for split in splits))


def _splits(labels: sp.csc_matrix) -> Iterator[HoldOut]:
    """Yield splits of the documents that have a topic: all folds of some assignments, or one fold if it is large."""
    documents = np.flatnonzero(np.diff(labels.tocsr().indptr))
    if len(documents) < _FEWEST:
        return
    documents = np.sort(np.random.default_rng(0).permutation(documents)[:_MOST])
    n_folds = min(-(-_SCORED * _FOLDS // len(documents)), _MOST_FOLDS)
    for number in range(n_folds):
        fold_of = assign_folds(labels[documents], _FOLDS, seed=number // _FOLDS)
        is_held_out = fold_of == number % _FOLDS
        yield HoldOut(documents[~is_held_out], documents[is_held_out])


def _right(
    counted: CountedCorpus, recipe: Recipe, learners: Sequence[MarginClassifier], splits: Sequence[HoldOut]
) -> np.ndarray:
    """Return how often the topic with a document's highest score is right, from 0 to 1: a row per learner.

    It is nan if the document is never held out.
    """
    labels = counted.labels.tocsr()
    n_right, n_scored = np.zeros((len(learners), labels.shape[0])), np.zeros(labels.shape[0])
    for split in splits:
        for row, scores in zip(n_right, scores_of_split(counted, recipe, learners, split), strict=True):
            row[split.held_out] += np.asarray(labels[split.held_out, scores.argmax(axis=1)]).ravel() > 0
        n_scored[split.held_out] += 1
    return np.divide(n_right, n_scored, out=np.full_like(n_right, np.nan), where=n_scored > 0)


def _lead(right: np.ndarray, by_own: np.ndarray) -> float:
    """Return by how much more often a candidate is right than the recipe's own margins; 0 if that may be chance."""
    differences = right - by_own
    differences = differences[np.isfinite(differences)]
    lead, error = float(differences.mean()), float(differences.std(ddof=1) / np.sqrt(len(differences)))
    return lead if lead > _SIGNIFICANT * error else 0.0
