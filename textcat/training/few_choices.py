"""Choose word vectors, margins, λ and character n-grams by a short cross-validation, for few documents.

The recipe's own values are kept unless others are significantly better, since measures on few documents are noisy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from textcat.base.folds import assign_folds, members_of
from textcat.evaluation.metrics import average_precisions
from textcat.features.vectors import FEWEST_KNOWN
from textcat.margin.learners import PAUM, prevalence_tau
from textcat.recipes.recipe import Recipe
from textcat.training.cross_validation import MOST_TERMS, HoldOut, affordable_splits, is_first_right, scores_of_split
from textcat.training.examples import CountedCorpus
from textcat.training.row_choice import WORDS

OWN, EQUAL, EVEN, UNEVEN = "the recipe's own", "equal ones", "more even", "less even, with λ = 2"
CHARACTERS = "words and n-grams of 2 to 4 characters"
PRECISION_AT_1, AVERAGE_PRECISION = "precision@1", "average_precision"  # the measures that choices are made by
# The recipe's margins are larger for rare topics, because a topic may be rare in a small sample by chance. If topics
# are rare among new documents, too, more even margins are better: they make scores of frequent and rare topics
# comparable.
_EVEN: dict[str, float] = {"kappa": -5.0, "scale": 60.0}  # candidates for PAUM's margins
# Candidates for a single topic, whose scores need not be comparable to those of others: if it is rare, its few positive
# documents count for more, and no margin is enforced at any price.
_UNEVEN: dict[str, float] = {"tau_neg": 10.0, "tau_pos": 300.0, "lambda_": 2.0}
# Of several lengths and weights, these are the best: docs/background/recipe-study.md.
_CHARACTERS: dict[str, Any] = {"chars": 4, "char_min": 2}
_LAMBDA = 2.0  # candidate for λ: a larger λ is better if labels are wrong, a smaller one if they are right
_WEIGHTS = (1.0, 0.0, 0.5, 2.0)  # candidates for the weight of vectors, relative to the recipe's weight
_FOLDS = 5
_MOST = 2_000  # maximum number of documents, drawn at random
_FEWEST = 20  # minimum number of documents to compare by; below it, the recipe is kept
_SCORED = 1_000  # target number of held-out documents: small corpora are split several times, large ones once,
MOST_FOLDS = 25  # up to this number of splits
_SIGNIFICANT = 1.64  # standard errors: a one-sided test at 5 %


class Chosen(NamedTuple):
    """A recipe with the chosen settings, the term counts for it, and the facts about each choice that models store."""

    recipe: Recipe
    counted: CountedCorpus
    choices: dict[str, Any]


def choose_for_few(counted: CountedCorpus, recipe: Recipe, n_jobs: int | None = None) -> Chosen:
    """Choose word vectors, margins, λ and character n-grams by the accuracy of rankings on held-out documents.

    The accuracy is the share of documents that have the topic of their highest score. Other values than the recipe's
    are chosen only if significantly more documents are right, by a paired comparison. But vectors are left out if fewer
    than half of the words have one; and n-grams of characters are used unless words alone are significantly better:
    they come last, as the other choices take less time without them, and are hardly ever others with them.
    Small corpora are split into folds several times.

    If there is a single topic, every document's highest score is for it. Then only margins and λ are compared, with
    n-grams of characters, by the topic's average precision on held-out documents; a common topic begins with equal
    margins.
    """
    topics, choices = recipe.topics, dict[str, Any]()
    is_single = len(counted.corpus.topics) == 1
    recipe = recipe.with_values({"topics": dict.fromkeys(("choose_chars", "choose_margins", "choose_vectors"), False)})
    measure = AVERAGE_PRECISION if is_single else PRECISION_AT_1
    comparison = _Comparison([counted], list(_splits(counted)), n_jobs, measure, [])
    if topics.chooses_vectors:
        known = counted.share_of_known_words()
        factors = _WEIGHTS[:1] if is_single else _WEIGHTS
        weights = [topics.vector_weight * factor for factor in factors] if known >= FEWEST_KNOWN else [0.0]
        with_weight = {f"{w:g}": recipe.with_values({"topics": _vectors(recipe, w)}) for w in weights}
        recipe, facts = comparison.best(with_weight)
        choices["vectors"] = {**facts, "known_words": known, "vectors": topics.vectors}
    chooses_chars = topics.choose_chars and not recipe.features.chars
    if chooses_chars and is_single:
        recipe, choices["rows"] = comparison.best({CHARACTERS: comparison.with_char_ngrams(recipe)})
    if topics.chooses_margins and is_single:
        name, recipe = _margins_of_single(counted, recipe)
        candidates = {name: recipe, UNEVEN: recipe.with_values({"learner": _UNEVEN})}
        recipe, choices["margins"] = comparison.best(candidates)
    elif topics.chooses_margins:
        recipe, choices["margins"] = comparison.best({OWN: recipe, EVEN: recipe.with_values({"learner": _EVEN})})
        values = dict.fromkeys((recipe.complete().learner["lambda_"], _LAMBDA))
        with_lambda = {f"{value:g}": recipe.with_values({"learner": {"lambda_": value}}) for value in values}
        recipe, choices["lambda_"] = comparison.best(with_lambda)
    if chooses_chars and not is_single:
        candidates = {CHARACTERS: comparison.with_char_ngrams(recipe), WORDS: recipe}
        recipe, choices["rows"] = comparison.best(candidates)
    return Chosen(recipe, comparison.counted_for(recipe), choices)


def char_weight(recipe: Recipe) -> float:
    """Return the weight of n-grams of characters: a smaller one beside vectors, which know rare words, too."""
    return 0.35 if recipe.topics.uses_vectors else 0.5


def _margins_of_single(counted: CountedCorpus, recipe: Recipe) -> tuple[str, Recipe]:
    """Return a recipe with equal margins for a single topic that is so common that its margin would be the smaller one.

    Smaller margins for common topics make their scores comparable with those of rare ones, of which there are none.
    Also return the name of the margins.
    """
    learner = recipe.make_learner()
    prevalence = len(counted.labels.indices) / max(len(_compared_documents(counted)), 1)
    if not isinstance(learner, PAUM) or learner.tau_pos != "prevalence":
        return OWN, recipe
    if prevalence_tau(prevalence, learner.kappa, learner.scale) >= learner.tau_neg:
        return OWN, recipe
    return EQUAL, recipe.with_values({"learner": {"tau_pos": learner.tau_neg}})


def _vectors(recipe: Recipe, weight: float) -> dict[str, Any]:
    return {"vectors": recipe.topics.vectors if weight else "none", "vector_weight": weight}


class _Comparison(NamedTuple):
    """Compare recipes on the same held-out documents."""

    counted: list[CountedCorpus]  # the same documents, with different terms
    splits: Sequence[HoldOut]
    n_jobs: int | None
    measure: str
    compared: list[tuple[Recipe, np.ndarray]]  # recipes, with what `_figures` returned

    def best(self, recipes: Mapping[str, Recipe]) -> tuple[Recipe, dict[str, Any]]:
        """Return the best recipe, and facts about the choice; the first recipe if no other is significantly better.

        The facts are the name of the chosen recipe, the measure of each recipe, and the number of documents scored.
        With several topics, the measure is the share of held-out documents whose topic with the highest score is right;
        with a single topic, it is its average precision, averaged over the splits.
        """
        first, *_ = recipes
        if len(recipes) == 1 or not self.splits:
            return recipes[first], {"chosen": first, self.measure: {}, "held_out": 0}
        figures = {name: self._figures(recipe) for name, recipe in recipes.items()}
        leads = {name: _lead(of_recipe, figures[first]) for name, of_recipe in figures.items()}
        chosen = max(leads, key=leads.__getitem__)  # the first of equally good recipes
        means = {name: float(np.nanmean(of_recipe)) for name, of_recipe in figures.items()}
        n_scored = sum(len(split.held_out) for split in self.splits)
        return recipes[chosen], {"chosen": chosen, self.measure: means, "held_out": n_scored}

    def with_char_ngrams(self, recipe: Recipe) -> Recipe:
        """Return a recipe with n-grams of characters, after counting those of its documents."""
        with_chars = recipe.with_values({"features": {**_CHARACTERS, "char_weight": char_weight(recipe)}})
        self.counted.append(self.counted[0].with_char_ngrams(with_chars))
        return with_chars

    def counted_for(self, recipe: Recipe) -> CountedCorpus:
        """Return the term counts that serve a recipe."""
        return next(counted for counted in self.counted if counted.serves(recipe))

    def _figures(self, recipe: Recipe) -> np.ndarray:
        """Measure a recipe: return the accuracy of each document or, of a single topic, its precision in each split."""
        for other, figures in self.compared:
            if other == recipe:
                return figures
        counted = self.counted_for(recipe)
        scores = (scores_of_split(counted, recipe, split, self.n_jobs) for split in self.splits)
        measured = _precisions if self.measure == AVERAGE_PRECISION else _rightness
        self.compared.append((recipe, measured(counted.labels.tocsr(), self.splits, scores)))
        return self.compared[-1][1]


def _rightness(labels: sp.csr_matrix, splits: Sequence[HoldOut], scores: Iterable[np.ndarray]) -> np.ndarray:
    """Return for each document how often its highest score is for one of its topics: 0 to 1; nan: never held out."""
    n_right, n_scored = np.zeros(labels.shape[0]), np.zeros(labels.shape[0])
    for split, of_split in zip(splits, scores, strict=True):
        n_right[split.held_out] += is_first_right(labels, split.held_out, of_split)
        n_scored[split.held_out] += 1
    return np.divide(n_right, n_scored, out=np.full_like(n_right, np.nan), where=n_scored > 0)


def _precisions(labels: sp.csr_matrix, splits: Sequence[HoldOut], scores: Iterable[np.ndarray]) -> np.ndarray:
    """Return the average precision of a single topic in each split; nan: no held-out document has it."""
    both = zip(splits, scores, strict=True)
    return np.concatenate([average_precisions(labels[split.held_out], of_split) for split, of_split in both])


def _splits(counted: CountedCorpus) -> Iterator[HoldOut]:
    """Yield splits of documents into documents to train on and held-out documents.

    The documents are those with a topic or, if there is a single topic, those that were judged for it. Of documents
    that repeat each other, only the first is held out; the others are trained on with it, or not used. There is no
    split of fewer than `_FEWEST` documents, or if fewer than two of them have a topic. Otherwise, there are as many
    splits as it takes to hold out `_SCORED` documents in total, but at most `MOST_FOLDS`; if need be, the documents are
    divided into folds several times. Long texts get fewer splits, and very long ones fewer documents, to keep to about
    `MOST_TERMS` terms.
    """
    labels, groups = counted.labels, counted.corpus.groups
    n_terms = np.bincount(groups, counted.n_terms(), len(groups))  # of a group, at the position of its first document
    documents = np.random.default_rng(0).permutation(np.intersect1d(_compared_documents(counted), groups))[:_MOST]
    affordable = np.searchsorted(np.cumsum(n_terms[documents]), MOST_TERMS, side="right")
    documents = np.sort(documents[: max(affordable, _FEWEST)])
    if len(documents) < _FEWEST or labels[documents].nnz < 2:
        return
    n_folds = affordable_splits(n_terms[documents], min(-(-_SCORED * _FOLDS // len(documents)), MOST_FOLDS))
    for number in range(n_folds):
        fold_of = assign_folds(labels[documents], _FOLDS, seed=number // _FOLDS)
        is_held_out = fold_of == number % _FOLDS
        yield HoldOut(members_of(documents[~is_held_out], groups), documents[is_held_out])


def _compared_documents(counted: CountedCorpus) -> np.ndarray:
    n_documents, n_topics = counted.labels.shape
    if n_topics > 1:
        return np.flatnonzero(np.diff(counted.labels.tocsr().indptr))
    return np.setdiff1d(np.arange(n_documents), [] if counted.unjudged is None else counted.unjudged.indices)


def _lead(figures: np.ndarray, of_first: np.ndarray) -> float:
    """Return by how much a recipe's mean measure is above that of the first one; 0 if that may be chance."""
    differences = figures - of_first
    differences = differences[np.isfinite(differences)]
    if len(differences) < 2:
        return 0.0
    lead, error = float(differences.mean()), float(differences.std(ddof=1) / np.sqrt(len(differences)))
    return lead if lead > _SIGNIFICANT * error else 0.0
