"""Choose vectors, n-grams of characters, margins and λ by a short cross-validation, for corpora of few documents.

The recipe's own values are kept unless others are significantly better, since measures on few documents are noisy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from textcat.base.folds import assign_folds
from textcat.features.vectors import FEWEST_KNOWN
from textcat.recipes.recipe import Recipe
from textcat.training.cross_validation import MOST_TERMS, HoldOut, affordable_splits, is_first_right, scores_of_split
from textcat.training.examples import CountedCorpus
from textcat.training.row_choice import WORDS

OWN, EVEN = "the recipe's own", "more even"
CHARACTERS = "words and n-grams of 3 characters"
# The recipe's margins are larger for rare topics, because a topic may be rare in a small sample by chance. If topics
# are rare among new documents, too, more even margins are better: they make scores of frequent and rare topics
# comparable.
_EVEN: dict[str, float] = {"kappa": -5.0, "scale": 60.0}  # candidates for PAUM's margins
# Of 3 or 4 characters, and weights of .5 or .7, these are the best: docs/background/recipe-study.md.
_CHARACTERS: dict[str, Any] = {"chars": 3, "char_weight": 0.5}
_LAMBDA = 2.0  # candidate for λ: a larger λ is better if labels are wrong, a smaller one if they are right
_WEIGHTS = (1.0, 0.0, 0.5, 2.0)  # candidates for the weight of vectors, relative to the recipe's weight
_FOLDS = 5
_MOST = 2_000  # maximum number of documents, drawn at random
_FEWEST = 20  # minimum number of documents with a topic; below it, the recipe is kept
_SCORED = 1_000  # target number of held-out documents: small corpora are split several times, large ones once,
MOST_FOLDS = 25  # up to this number of splits
_SIGNIFICANT = 1.64  # standard errors: a one-sided test at 5 %


class Chosen(NamedTuple):
    """A recipe with the chosen values, and the choices as models store them, by setting."""

    recipe: Recipe
    choices: dict[str, Any]


def choose_for_few(counted: CountedCorpus, recipe: Recipe, n_jobs: int | None = None) -> Chosen:
    """Choose vectors, n-grams of characters, margins and λ by the accuracy of the first topic on held-out documents.

    The accuracy is the share of documents that have the topic of their highest score. Other values than the recipe's
    are chosen only if significantly more documents are right, by a paired comparison. Without vectors, as in languages
    other than English, rows get n-grams of characters unless words alone are significantly better. Small corpora are
    split into folds several times. Afterwards, `counted` has the settings and the n-grams of the chosen recipe.

    Parameters
    ----------
    counted : CountedCorpus
    recipe : Recipe
    n_jobs : int, optional

    Returns
    -------
    Chosen
    """
    topics, choices = recipe.topics, dict[str, Any]()
    splits = list(_splits(counted.labels, counted.n_terms()))
    recipe = recipe.with_values({"topics": dict.fromkeys(("choose_chars", "choose_margins", "choose_vectors"), False)})
    comparison = _Comparison(counted, splits, n_jobs, [])
    if topics.chooses_vectors:
        known = counted.share_of_known_words()
        weights = [topics.vector_weight * factor for factor in _WEIGHTS] if known >= FEWEST_KNOWN else [0.0]
        with_weight = {f"{w:g}": recipe.with_values({"topics": _vectors(recipe, w)}) for w in weights}
        recipe, facts = comparison.best(with_weight)
        choices["vectors"] = {**facts, "known_words": known, "vectors": topics.vectors}
    if topics.choose_chars and not recipe.features.chars and not recipe.topics.uses_vectors:
        with_chars = recipe.with_values({"features": _CHARACTERS})
        recipe, choices["rows"] = comparison.best({CHARACTERS: with_chars, WORDS: recipe})
        if recipe.features.chars:
            counted.add_char_ngrams(recipe)
    if topics.chooses_margins:
        recipe, choices["margins"] = comparison.best({OWN: recipe, EVEN: recipe.with_values({"learner": _EVEN})})
        values = dict.fromkeys((recipe.complete().learner["lambda_"], _LAMBDA))
        with_lambda = {f"{value:g}": recipe.with_values({"learner": {"lambda_": value}}) for value in values}
        recipe, choices["lambda_"] = comparison.best(with_lambda)
    counted.serves(recipe)
    return Chosen(recipe, choices)


def _vectors(recipe: Recipe, weight: float) -> dict[str, Any]:
    return {"vectors": recipe.topics.vectors if weight else "none", "vector_weight": weight}


class _Comparison(NamedTuple):
    """Compare recipes on the same held-out documents."""

    counted: CountedCorpus
    splits: Sequence[HoldOut]
    n_jobs: int | None
    compared: list[tuple[Recipe, np.ndarray]]  # recipes, with the mean accuracy of each document's first topic

    def best(self, recipes: Mapping[str, Recipe]) -> tuple[Recipe, dict[str, Any]]:
        """Return the first recipe, or the one with the largest significant lead over it; and the choice to store.

        The dict has the name of the chosen recipe, the accuracy of each recipe (the share of held-out documents whose
        topic with the highest score is right), and the number of documents scored.
        """
        first, *_ = recipes
        if len(recipes) == 1 or not self.splits:
            return recipes[first], {"chosen": first, "precision@1": {}, "held_out": 0}
        right = {name: self._right(recipe) for name, recipe in recipes.items()}
        chosen = max(right, key=lambda name: _lead(right[name], right[first]))  # the first of equally good recipes
        precision = {name: float(np.nanmean(shares)) for name, shares in right.items()}
        n_scored = sum(len(split.held_out) for split in self.splits)
        return recipes[chosen], {"chosen": chosen, "precision@1": precision, "held_out": n_scored}

    def _right(self, recipe: Recipe) -> np.ndarray:
        """Return how often each document's first topic is right when held out, from 0 to 1; nan: never held out."""
        for other, right in self.compared:
            if other == recipe:
                return right
        counted = self.counted if self.counted.serves(recipe) else self.counted.with_char_ngrams(recipe)
        labels = counted.labels.tocsr()
        n_right, n_scored = np.zeros(labels.shape[0]), np.zeros(labels.shape[0])
        for split in self.splits:
            scores = scores_of_split(counted, recipe, split, self.n_jobs)
            n_right[split.held_out] += is_first_right(labels, split.held_out, scores)
            n_scored[split.held_out] += 1
        right = np.divide(n_right, n_scored, out=np.full_like(n_right, np.nan), where=n_scored > 0)
        self.compared.append((recipe, right))
        return right


def _splits(labels: sp.csc_matrix, n_terms: np.ndarray) -> Iterator[HoldOut]:
    """Yield splits of the documents with a topic into documents to train on and held-out documents.

    If fewer than `_FEWEST` documents have a topic, there is no split. Otherwise, there are as many splits as it takes
    to hold out `_SCORED` documents in total, but at most `MOST_FOLDS`; if need be, the documents are divided into folds
    several times. Of long texts, there are fewer splits, and in the end fewer documents, for `MOST_TERMS`; `n_terms` is
    the number of different terms of each document.
    """
    documents = np.flatnonzero(np.diff(labels.tocsr().indptr))
    if len(documents) < _FEWEST:
        return
    documents = np.random.default_rng(0).permutation(documents)[:_MOST]
    affordable = np.searchsorted(np.cumsum(n_terms[documents]), MOST_TERMS, side="right")
    documents = np.sort(documents[: max(affordable, _FEWEST)])
    n_folds = affordable_splits(n_terms[documents], min(-(-_SCORED * _FOLDS // len(documents)), MOST_FOLDS))
    for number in range(n_folds):
        fold_of = assign_folds(labels[documents], _FOLDS, seed=number // _FOLDS)
        is_held_out = fold_of == number % _FOLDS
        yield HoldOut(documents[~is_held_out], documents[is_held_out])


def _lead(right: np.ndarray, by_first: np.ndarray) -> float:
    """Return how much more accurate a recipe is than the first one; 0 if the difference may be chance."""
    differences = right - by_first
    differences = differences[np.isfinite(differences)]
    lead, error = float(differences.mean()), float(differences.std(ddof=1) / np.sqrt(len(differences)))
    return lead if lead > _SIGNIFICANT * error else 0.0
