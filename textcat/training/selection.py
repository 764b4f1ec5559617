"""Cross-validation on training documents: which features, learner and margins rank best."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby, product
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from textcat.documents import Corpus
from textcat.errors import TextcatError
from textcat.evaluation.ranking import Band, average_precisions, bands
from textcat.features.tokens import Tokens
from textcat.margin.learners import MarginClassifier
from textcat.margin.problems import NO_ROWS, Problem, Solution
from textcat.margin.rules import Rule
from textcat.margin.solve import solve
from textcat.recipe import Recipe
from textcat.training.examples import Examples, with_described

# What the study of margins compares: every fixed pair, and every adapted one.
TAU_NEG = (-1.0, -0.5, -0.1, 0.5, 1.0)
TAU_POS = (1.0, 5.0, 10.0, 20.0, 50.0, 100.0)
KAPPA = (-50.0, -20.0, -10.0, -5.0, 5.0)
SCALE = (50.0, 100.0, 200.0, 400.0)
ADAPTED_TAU_NEG = (-1.0, -0.5, -0.1)

# The rarest topics have too few positives to be cross-validated: their averages are mostly noise. They are simulated:
# topics of at least _COMMON positives are trained with as few as the smallest _N_RARE topics have, and tested on all
# held-out ones.
RARE = "RARE"
_COMMON = 15
_N_RARE = 30

EXPECTED = "EXPECTED"
POOLED = "POOLED"

# Settings trained in one call of the solver: enough to keep the lanes full, few enough to show progress.
_TOGETHER = 12


@dataclass(frozen=True)
class Trial:
    """The cross-validated quality of one setting.

    Attributes
    ----------
    recipe : Recipe
        The setting.
    macro_average_precision : dict of str to float
        Per band: the average over topics, then over folds. A topic counts in the folds where it has positives on both
        sides. "RARE" is the average over common topics trained with as few positives as the rarest topics have,
        "EXPECTED" that over all topics with RARE in the place of the thirty smallest ones, and "POOLED" that over all
        topics of two documents or more, each ranked once over the documents of all folds.
    average_sparsity : dict of str to float
        Per band: the mean number of support documents.
    """

    recipe: Recipe
    macro_average_precision: dict[str, float]
    average_sparsity: dict[str, float]


def margin_settings(recipe: Recipe) -> list[Recipe]:
    """Return the recipe with each of the margins that the study of margins compares.

    Raises
    ------
    TextcatError
        If the recipe's learner is not PAUM.
    """
    name = recipe.learner.get("name", "paum")
    if name != "paum":
        raise TextcatError(f"Recipe {recipe.name} trains {name}; only paum has margins to compare.")
    fixed = [{"tau_neg": tau_neg, "tau_pos": tau_pos} for tau_neg, tau_pos in product(TAU_NEG, TAU_POS)]
    adapted = [
        {"tau_neg": tau_neg, "tau_pos": "prevalence", "kappa": kappa, "scale": scale}
        for tau_neg, kappa, scale in product(ADAPTED_TAU_NEG, KAPPA, SCALE)
    ]
    return [recipe.changed(**margins) for margins in fixed + adapted]


def is_the_papers(recipe: Recipe) -> bool:
    """Tell whether a recipe has the margins that Li et al. (2002) chose, the yardstick of the study of margins."""
    learner = recipe.learner
    return learner.get("name", "paum") == "paum" and (learner.get("tau_neg"), learner.get("tau_pos")) == (1.0, 50.0)


def folds(labels: sp.csc_matrix, n_folds: int, seed: int) -> np.ndarray:
    """Split documents into folds so that the positives of rare topics are spread over as many folds as they can be.

    Parameters
    ----------
    labels : sparse of shape (n_documents, n_topics), 0/1
    n_folds : int
    seed : int

    Returns
    -------
    ndarray of shape (n_documents,), int
        The fold of each document, 0 to ``n_folds - 1``; sizes differ by one at most.
    """
    n_documents = labels.shape[0]
    if n_folds > n_documents:
        raise TextcatError(f"{n_documents} training documents cannot be split into {n_folds} folds; ask for fewer.")
    sizes = np.asarray(labels.sum(axis=0)).ravel()
    # A document counts by its rarest topic; those without a topic come last. Ties keep their random order.
    rarest = np.full(n_documents, np.inf)
    entries = labels.tocoo()
    np.minimum.at(rarest, entries.row, sizes[entries.col] + entries.col / (labels.shape[1] + 1))
    shuffled = np.random.default_rng(seed).permutation(n_documents)
    dealt = shuffled[np.argsort(rarest[shuffled], kind="stable")]
    fold = np.empty(n_documents, int)
    fold[dealt] = np.arange(n_documents) % n_folds
    return fold


def out_of_fold_scores(
    rows: sp.csr_matrix,
    labels: sp.csc_matrix,
    learner: MarginClassifier,
    *,
    left_out: sp.csc_matrix | None = None,
    n_documents: int | None = None,
    n_folds: int = 5,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> np.ndarray:
    """Score every training document by rankers that were not trained on it: what thresholds are chosen from.

    All folds are problems over the same rows. Vocabulary and document frequencies are those of all of them, which moves
    scores too little to matter for a threshold.

    Parameters
    ----------
    rows : csr_matrix of shape (n_rows, n_features)
        Of unit length.
    labels : sparse of shape (n_rows, n_topics), 0/1
    learner : MarginClassifier
        Its parameters; it is not fitted.
    left_out : sparse of shape (n_rows, n_topics), 0/1, optional
        As for the learner's `fit`.
    n_documents : int, optional
        The rows after the first so many are trained on in every fold, and not scored.
    n_folds, seed
        As for `folds`.
    progress : callable, optional
        Called with 1 whenever a topic of a fold has been trained.

    Returns
    -------
    ndarray of shape (n_documents, n_topics), dtype of the rows
    """
    n = rows.shape[0] if n_documents is None else n_documents
    of = folds(labels[:n], n_folds, seed)
    held_out = [np.flatnonzero(of == fold).astype(np.int32) for fold in range(n_folds)]
    positives = _rows_of(labels)
    never = _rows_of(left_out) if left_out is not None else [np.empty(0, np.int32)] * len(positives)
    problems = []
    for documents in held_out:
        without = [np.union1d(documents, rows_).astype(np.int32) for rows_ in never]
        trained = [np.setdiff1d(some, out, assume_unique=True) for some, out in zip(positives, without, strict=True)]
        prevalence = [len(some) / max(1, rows.shape[0] - len(out)) for some, out in zip(trained, without, strict=True)]
        for some, out, rule in zip(trained, without, learner.rules_for(np.array(prevalence)), strict=True):
            problems.append(_problem(learner, rule, some, out))
    order, n_jobs = learner.random_state, learner.n_jobs
    solutions = solve(rows, problems, n_jobs=n_jobs, seed=order, keep_weights=False, progress=progress)
    scores = np.empty((n, len(positives)), rows.dtype)
    for k, (problem, solution) in enumerate(zip(problems, solutions, strict=True)):
        documents = held_out[k // len(positives)]
        of_documents = solution.held_out[np.searchsorted(problem.left_out, documents)]
        scores[documents, k % len(positives)] = of_documents / rows.dtype.type(solution.unit)
    return scores


def _rows_of(indicator: sp.csc_matrix) -> list[np.ndarray]:
    columns = sp.csc_matrix(indicator)
    return [np.sort(rows).astype(np.int32) for rows in np.split(columns.indices, columns.indptr[1:-1])]


def _problem(learner: MarginClassifier, rule: Rule, positives: np.ndarray, left_out: np.ndarray) -> Problem:
    return Problem(
        positives,
        rule,
        left_out=left_out,
        lambda_=learner.lambda_,
        rho=1.0 if learner.rho == "R" else float(learner.rho),  # rows have unit length
        max_epochs=learner.max_epochs,
        mini_epochs=learner.mini_epochs,
    )


def cross_validate(
    corpus: Corpus,
    recipes: Iterable[Recipe],
    *,
    n_folds: int = 5,
    n_repeats: int = 1,
    seed: int = 0,
    n_jobs: int | None = None,
    advance: Callable[[int], None] = lambda count: None,
) -> Iterator[Trial]:
    """Measure recipes by k-fold cross-validation on the training documents of a corpus.

    Vocabulary and document frequencies are those of the documents trained on: with those of all, a term that one of
    them shares with a held-out document would not be as rare as it is when new documents come. Within a fold, every
    (topic, setting) is a problem over the same rows, with the held-out ones left out. Recipes that follow each other
    and have the same features share their rows.

    Parameters
    ----------
    corpus : Corpus
        Only its training documents are looked at.
    recipes : iterable of Recipe
    n_folds : int
    n_repeats : int
        Repeat with as many other splits into folds: a split alone says little about topics of a few documents.
    seed : int
        Of the first split; the next ones take the numbers after it.
    n_jobs : int, optional
    advance : callable
        Called with the number of recipes whenever some have been measured on one more fold.

    Yields
    ------
    Trial
        In the order of the recipes.

    Raises
    ------
    TextcatError
        If no topic has two training documents, there are fewer documents than folds, or a recipe cannot be followed.
    """
    labels = corpus.labels(corpus.train)
    if not np.any(labels.sum(axis=0) > 1):
        raise TextcatError(f"No topic of corpus {corpus.name} has two training documents: there is nothing to compare.")
    all_folds = list(splits(labels, n_folds, n_repeats, seed))
    held_out = [fold.held_out for fold in all_folds]
    tokens: dict[str, Tokens] = {}  # their memo serves all recipes that make terms in the same way
    for _, alike in groupby(recipes, key=_rows_of_recipe):
        together = list(alike)
        first = together[0]
        key = json.dumps(first.tokens, sort_keys=True)
        tokens[key] = tokens.get(key) or first.make_tokens()
        examples = list(examples_without(held_out, corpus, first, tokens[key]))
        for start in range(0, len(together), _TOGETHER):
            measured = _Measured(corpus, labels, together[start : start + _TOGETHER])
            with ThreadPoolExecutor(1) as beside:  # a fold is measured while the next one is trained on
                at_work = []
                for fold, learnt_from in zip(all_folds, examples, strict=True):
                    solved = measured.train(fold, learnt_from, n_jobs)
                    at_work.append(beside.submit(measured.take, fold, solved))
                    advance(len(measured.recipes))
            for each in at_work:
                each.result()
            yield from measured.trials()


def _rows_of_recipe(recipe: Recipe) -> str:
    return json.dumps([recipe.tokens, recipe.features, recipe.topics], sort_keys=True)


def examples_without(
    held_out: Iterable[np.ndarray], corpus: Corpus, recipe: Recipe, tokens: Tokens | None = None
) -> Iterator[Examples]:
    """Yield what a recipe learns from where documents are held out, for each of several choices of such documents.

    The rows are those of all documents, but their terms are weighed by those that are not held out.

    Parameters
    ----------
    held_out : iterable of ndarray of int
        Training documents, by their places.
    corpus : Corpus
    recipe : Recipe
    tokens : Tokens, optional
        Of the recipe's settings; what another recipe has used remembers its texts.
    """
    labels, copies, n = corpus.labels(corpus.train), recipe.descriptions, len(corpus.train)
    features = recipe.make_features().set_params(tokens=tokens or recipe.make_tokens())
    counted = features.count([*corpus.train, *(corpus.described() if copies else [])])
    for documents in held_out:
        trained = np.setdiff1d(np.arange(n), documents)
        # As in `documents_to_count`: descriptions are counted where they are all that is known of their topics.
        unknown = np.flatnonzero(labels[trained].sum(axis=0).A1 == 0) if copies else NO_ROWS
        rows = features.fit_counted(counted, np.append(trained, n + unknown)).rows_of(counted)
        yield with_described(rows[:n], labels, rows[n:], copies)


def splits(labels: sp.csc_matrix, n_folds: int, n_repeats: int, seed: int) -> Iterator[Fold]:
    """Yield the folds of as many splits, whose seeds follow each other."""
    for repeat in range(seed, seed + n_repeats):
        of = folds(labels, n_folds, repeat)
        random = np.random.default_rng(repeat)
        for f in range(n_folds):
            yield Fold(labels, np.flatnonzero(of == f).astype(np.int32), random)


class _Measured:
    """A few recipes of the same features, measured fold by fold."""

    def __init__(self, corpus: Corpus, labels: sp.csc_matrix, recipes: Sequence[Recipe]):
        self.recipes = recipes
        self._corpus = corpus
        self._labels = labels
        self._learners = [recipe.make_learner() for recipe in recipes]
        self._figures: list[list[dict[str, float]]] = [[] for _ in recipes]
        self._sparsity: list[list[dict[str, float]]] = [[] for _ in recipes]
        self._pools: list[_Pool] = [_Pool(labels) for _ in recipes]

    def train(self, fold: Fold, examples: Examples, n_jobs: int | None) -> list[list[Solution]]:
        """Train every recipe on a fold's other documents."""
        problems = [list(fold.problems(learner, examples)) for learner in self._learners]
        solved: list[list[Solution]] = [[] for _ in problems]
        by_seed: dict[int | None, list[int]] = {}
        for k, learner in enumerate(self._learners):
            by_seed.setdefault(learner.random_state, []).append(k)
        for seed, places in by_seed.items():
            at_once = [problem for k in places for problem in problems[k]]
            solutions = iter(solve(examples.rows, at_once, n_jobs=n_jobs, seed=seed, keep_weights=False))
            for k in places:
                solved[k] = [next(solutions) for _ in problems[k]]
        return solved

    def take(self, fold: Fold, solved: Sequence[Sequence[Solution]]) -> None:
        """Take the figures of every recipe on a fold's own documents."""
        wanted = bands(self._corpus.topics, fold.sizes)
        for k, solutions in enumerate(solved):
            self._figures[k].append(fold.quality(solutions, wanted))
            self._sparsity[k].append(fold.sparsity(solutions, wanted))
            self._pools[k].add(fold, solutions)

    def trials(self) -> Iterator[Trial]:
        """Yield the averages over the folds of every recipe."""
        for recipe, figures, sparsity, pool in zip(
            self.recipes, self._figures, self._sparsity, self._pools, strict=True
        ):
            yield Trial(recipe, {**_mean(figures), POOLED: pool.average_precision()}, _mean(sparsity))


class _Pool:
    """The scores that documents get while they are held out."""

    def __init__(self, labels: sp.csc_matrix):
        self._labels = labels
        self._scores = np.zeros(labels.shape, np.float32)
        self._n_seen = 0
        self._found: list[float] = []

    def add(self, fold: Fold, solutions: Sequence[Solution]) -> None:
        self._scores[fold.held_out] = fold.scores(solutions)
        self._n_seen += len(fold.held_out)
        if self._n_seen % self._labels.shape[0] == 0:  # a split is complete
            quality = average_precisions(self._labels, self._scores)
            quality[fold.sizes < 2] = np.nan  # never in training and held out at once
            self._found.append(float(np.nanmean(quality)))

    def average_precision(self) -> float:
        return float(np.mean(self._found))


class Thinned(NamedTuple):
    """A common topic with most of its positives left out of training, beside the held-out documents."""

    topic: int
    positives: np.ndarray
    left_out: np.ndarray


class Fold:
    """Held-out documents: from settings to problems without them, from the solutions to figures on them.

    Parameters
    ----------
    labels : sparse of shape (n_documents, n_topics), 0/1
    held_out : ndarray of int32
    random : numpy.random.Generator
        Draws the positives that thinned topics keep.
    """

    def __init__(self, labels: sp.csc_matrix, held_out: np.ndarray, random: np.random.Generator):
        self.held_out = held_out
        self.labels = labels.tocsr()
        self.positives = _rows_of(labels)
        self.sizes = np.array([len(rows) for rows in self.positives])
        self.trained = self.sizes - self.labels[held_out].sum(axis=0).A1  # positives left to train on, per topic
        self.thinned = list(self._thin(random))
        self._held_out_labels = self.labels[held_out]
        self._thinned_labels = self._held_out_labels[:, [thinned.topic for thinned in self.thinned]]

    def _thin(self, random: np.random.Generator) -> Iterable[Thinned]:
        rare = np.sort(self.sizes)[:_N_RARE]
        for topic in np.flatnonzero(self.sizes >= _COMMON).tolist():
            trained = random.permutation(np.setdiff1d(self.positives[topic], self.held_out))
            n_kept = int(random.choice(rare))
            if n_kept < len(trained) < self.sizes[topic]:
                left_out = np.union1d(self.held_out, trained[n_kept:]).astype(np.int32)
                yield Thinned(topic, np.sort(trained[:n_kept]), left_out)

    def problems(self, learner: MarginClassifier, examples: Examples) -> Iterator[Problem]:
        """Yield a learner's problem for each topic, then for each thinned topic.

        The rows after those of the documents are never held out, and their topics' examples where the topic is thinned,
        too.
        """
        n_documents, n_rows = self.labels.shape[0], examples.rows.shape[0]
        further = [rows[rows >= n_documents] for rows in _rows_of(examples.labels)]
        never = [np.empty(0, np.int32)] * len(further) if examples.left_out is None else _rows_of(examples.left_out)
        wanted = [
            (k, positives, self.held_out, n)
            for k, (positives, n) in enumerate(zip(self.positives, self.trained, strict=True))
        ]
        wanted += [
            (thinned.topic, thinned.positives, thinned.left_out, len(thinned.positives)) for thinned in self.thinned
        ]
        parts = [
            (np.append(positives, further[k]), np.append(left_out, never[k]), int(n_trained) + len(further[k]))
            for k, positives, left_out, n_trained in wanted
        ]
        prevalence = np.array([n_trained / (n_rows - len(left_out)) for _, left_out, n_trained in parts])
        for (positives, left_out, _), rule in zip(parts, learner.rules_for(prevalence), strict=True):
            yield _problem(learner, rule, positives, left_out)

    def scores(self, solutions: Sequence[Solution]) -> np.ndarray:
        """Return the scores of the held-out documents for every topic, shape (n_held_out, n_topics)."""
        n = len(self.held_out)  # after them, what else was left out
        return np.column_stack([solution.held_out[:n] / solution.unit for solution in solutions[: len(self.positives)]])

    def quality(self, solutions: Sequence[Solution], wanted: Sequence[Band]) -> dict[str, float]:
        """Return the macro-averaged precision over each band; nan for one without a topic to average over."""
        thinned = solutions[len(self.positives) :]
        found = average_precisions(self._held_out_labels, self.scores(solutions))
        found[self.trained == 0] = np.nan  # nothing to learn from: no fault of the setting
        figures = {band.name: _figure(found[list(band.topics)]) for band in wanted}
        figures[RARE] = _figure(self._thinned_quality(thinned))
        figures[EXPECTED] = self._expected(found, figures)
        return figures

    def _expected(self, found: np.ndarray, figures: dict[str, float]) -> float:
        if len(found) <= _N_RARE or not np.isfinite(figures[RARE]):
            return figures["ALL"]
        common = _figure(found[np.argsort(-self.sizes, kind="stable")[:-_N_RARE]])
        return ((len(found) - _N_RARE) * common + _N_RARE * figures[RARE]) / len(found)

    def sparsity(self, solutions: Sequence[Solution], wanted: Sequence[Band]) -> dict[str, float]:
        """Return the mean number of support documents over each band."""
        support = np.array([len(solution.support) for solution in solutions])
        return {band.name: float(support[list(band.topics)].mean()) for band in wanted}

    def _thinned_quality(self, solutions: Sequence[Solution]) -> np.ndarray:
        scores = np.zeros((len(self.held_out), len(solutions)), np.float32)
        for k, (thinned, solution) in enumerate(zip(self.thinned, solutions, strict=True)):
            scores[:, k] = solution.held_out[np.searchsorted(thinned.left_out, self.held_out)]
        return average_precisions(self._thinned_labels, scores)


def _figure(found: np.ndarray) -> float:
    return float(np.nanmean(found)) if np.isfinite(found).any() else float("nan")


def _mean(figures: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Average figures over folds, each over those that have it."""
    known = {band: [figure[band] for figure in figures if np.isfinite(figure[band])] for band in figures[0]}
    return {band: float(np.mean(values)) if values else float("nan") for band, values in known.items()}


def best(trials: Sequence[Trial], tolerance: float = 0.0005) -> Trial:
    """Return the sparsest of the trials that rank as well as the yardstick, over ALL, TOP10, RARE and EXPECTED.

    The yardstick is the paper's PAUM(1, 50) where it is among the trials, else the trial of the highest EXPECTED. As
    well: with a MAP that is lower by no more than three decimals show. LAST30 has no say: it changes far more between
    splits than between settings.
    """
    paper = next((trial for trial in trials if is_the_papers(trial.recipe)), None)
    reference = paper or max(trials, key=lambda trial: trial.macro_average_precision[EXPECTED])
    names = ("ALL", "TOP10", RARE) if paper else (EXPECTED,)

    def as_good(trial: Trial) -> bool:
        # A band that no topic is in is nan, and no reason against a setting.
        figures, wanted = trial.macro_average_precision, reference.macro_average_precision
        return not any(figures[band] < wanted[band] - tolerance for band in names)

    return min(filter(as_good, trials), key=lambda trial: trial.average_sparsity["ALL"])
