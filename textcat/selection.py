"""Cross-validation on training documents: which margins τ₋ and τ₊, fixed or adapted to prevalence, rank best."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from textcat.corpus.documents import Corpus
from textcat.errors import TextcatError
from textcat.margin.learners import PAUM, prevalence_tau
from textcat.margin.problems import Problem, Solution
from textcat.margin.rules import PAUM as Rule  # noqa: N811  (the rule behind the learner of that name)
from textcat.margin.solve import solve
from textcat.progress import Stages
from textcat.ranking import Band, average_precision, average_precisions, bands, macro_average
from textcat.recipe import Recipe

# What the study compares: every fixed pair, and every adapted one.
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

# Settings trained in one call of the solver: enough to keep the lanes full, few enough to show progress.
_TOGETHER = 6


@dataclass(frozen=True)
class Margins:
    """One setting of the margins: τ₋ with a fixed τ₊, or with κ and S for τ₊ = S·(1 + exp(-κ·c))⁻¹."""

    tau_neg: float
    tau_pos: float | None = None
    kappa: float | None = None
    scale: float | None = None

    def tau_pos_of(self, prevalence: np.ndarray) -> np.ndarray:
        """Return τ₊ for topics of given prevalence."""
        if self.tau_pos is not None:
            return np.full(len(prevalence), self.tau_pos)
        assert self.kappa is not None
        assert self.scale is not None
        return prevalence_tau(prevalence, self.kappa, self.scale)


# The setting that Li et al. (2002) chose, the yardstick of the study.
PAPER = Margins(1.0, tau_pos=50.0)


@dataclass(frozen=True)
class Trial:
    """The cross-validated quality of one setting.

    Attributes
    ----------
    margins : Margins
    macro_average_precision : dict of str to float
        Per band: the average over topics, then over folds. A topic counts in the folds where it has positives on both
        sides. "RARE" is the average over common topics trained with as few positives as the rarest topics have.
    average_sparsity : dict of str to float
        Per band: the mean number of support documents.
    """

    margins: Margins
    macro_average_precision: dict[str, float]
    average_sparsity: dict[str, float]


def default_grid() -> list[Margins]:
    """Return the settings the study compares."""
    fixed = [Margins(tau_neg, tau_pos=tau_pos) for tau_neg, tau_pos in product(TAU_NEG, TAU_POS)]
    adapted = [
        Margins(tau_neg, kappa=kappa, scale=scale) for tau_neg, kappa, scale in product(ADAPTED_TAU_NEG, KAPPA, SCALE)
    ]
    return fixed + adapted


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


def study_margins(
    corpus: Corpus,
    recipe: Recipe,
    *,
    grid: Sequence[Margins] | None = None,
    n_folds: int = 5,
    n_repeats: int = 1,
    seed: int = 0,
    n_jobs: int | None = None,
    stages: Stages | None = None,
) -> list[Trial]:
    """Compare margins by k-fold cross-validation on the training documents of a corpus.

    Vocabulary and document frequencies are those of the documents trained on: with those of all, a term that one of
    them shares with a held-out document would not be as rare as it is when new documents come. Within a fold, every
    (topic, setting) is a problem over the same rows, with the held-out ones left out.

    Parameters
    ----------
    corpus : Corpus
        Only its training documents are looked at.
    recipe : Recipe
        Features, and the learner's parameters other than the margins.
    grid : sequence of Margins, optional
    n_folds : int
    n_repeats : int
        Repeat with as many other splits into folds: a split alone says little about topics of a few documents.
    seed : int
        Of the first split; the next ones take the numbers after it.
    n_jobs : int, optional
    stages : Stages, optional

    Returns
    -------
    list of Trial
        The best MAP over all topics first.
    """
    stages, grid = stages or Stages(), default_grid() if grid is None else grid
    learner = recipe.make_learner()
    if not isinstance(learner, PAUM):
        raise TextcatError(f"Recipe {recipe.name} trains {type(learner).__name__}; only PAUM has margins to compare.")
    labels = corpus.labels(corpus.train)
    if not np.any(labels.sum(axis=0) > 1):
        raise TextcatError(f"No topic of corpus {corpus.name} has two training documents: there is nothing to compare.")
    features = recipe.make_features()
    trials: list[list[Trial]] = [[] for _ in grid]
    with stages.stage("cross-validate", len(grid) * n_folds * n_repeats) as advance:
        for fold in _all_folds(labels, n_folds, n_repeats, seed):
            trained = np.setdiff1d(np.arange(len(corpus.train)), fold.held_out)
            rows = features.fit([corpus.train[i] for i in trained.tolist()]).transform(corpus.train)
            wanted = bands(corpus.topics, fold.sizes)
            for start in range(0, len(grid), _TOGETHER):
                together = grid[start : start + _TOGETHER]
                problems = [problem for margins in together for problem in fold.problems(margins, learner)]
                solutions = solve(rows, problems, n_jobs=n_jobs, seed=learner.seed, keep_weights=False)
                per_setting = len(solutions) // len(together)
                for k, margins in enumerate(together):
                    part = solutions[k * per_setting : (k + 1) * per_setting]
                    trials[start + k].append(fold.trial(margins, part, wanted))
                advance(len(together))
    return sorted(map(_averaged, trials), key=lambda trial: -trial.macro_average_precision["ALL"])


def _all_folds(labels: sp.csc_matrix, n_folds: int, n_repeats: int, seed: int) -> Iterable[Fold]:
    for repeat in range(seed, seed + n_repeats):
        of = folds(labels, n_folds, repeat)
        random = np.random.default_rng(repeat)
        for f in range(n_folds):
            yield Fold(labels, np.flatnonzero(of == f).astype(np.int32), random)


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
        columns = labels.tocsc()
        self.positives = [np.sort(rows).astype(np.int32) for rows in np.split(columns.indices, columns.indptr[1:-1])]
        self.sizes = np.array([len(rows) for rows in self.positives])
        self.trained = self.sizes - self.labels[held_out].sum(axis=0).A1  # positives left to train on, per topic
        self.thinned = list(self._thin(random))

    def _thin(self, random: np.random.Generator) -> Iterable[Thinned]:
        rare = np.sort(self.sizes)[:_N_RARE]
        for topic in np.flatnonzero(self.sizes >= _COMMON).tolist():
            trained = random.permutation(np.setdiff1d(self.positives[topic], self.held_out))
            n_kept = int(random.choice(rare))
            if n_kept < len(trained) < self.sizes[topic]:
                left_out = np.union1d(self.held_out, trained[n_kept:]).astype(np.int32)
                yield Thinned(topic, np.sort(trained[:n_kept]), left_out)

    def problems(self, margins: Margins, learner: Any) -> Iterable[Problem]:
        """Yield a problem per topic, then one per thinned topic."""
        parts = [
            (positives, self.held_out, int(n_trained))
            for positives, n_trained in zip(self.positives, self.trained, strict=True)
        ]
        parts += [(thinned.positives, thinned.left_out, len(thinned.positives)) for thinned in self.thinned]
        prevalence = np.array([n_trained / (self.labels.shape[0] - len(left_out)) for _, left_out, n_trained in parts])
        for (positives, left_out, _), tau_pos in zip(parts, margins.tau_pos_of(prevalence).tolist(), strict=True):
            yield Problem(
                positives,
                Rule(margins.tau_neg, tau_pos, learner.eta),
                left_out=left_out,
                lambda_=learner.lambda_,
                rho=1.0 if learner.rho == "R" else learner.rho,  # rows have unit length
                max_epochs=learner.max_epochs,
            )

    def trial(self, margins: Margins, solutions: Sequence[Solution], wanted: Sequence[Band]) -> Trial:
        """Average over topics; a band without a topic to average over is nan."""
        whole, thinned = solutions[: len(self.positives)], solutions[len(self.positives) :]
        scores = np.column_stack([solution.held_out for solution in whole])
        quality = average_precisions(self.labels[self.held_out], scores)
        quality[self.trained == 0] = np.nan  # nothing to learn from: no fault of the setting
        support = np.array([len(solution.support) for solution in whole])
        figures = {band.name: macro_average(quality, band.topics).mean for band in wanted}
        simulated = [self._thinned_quality(*pair) for pair in zip(self.thinned, thinned, strict=True)]
        figures[RARE] = macro_average(simulated).mean
        return Trial(
            margins,
            {name: float("nan") if figure is None else figure for name, figure in figures.items()},
            {band.name: float(support[list(band.topics)].mean()) for band in wanted},
        )

    def _thinned_quality(self, thinned: Thinned, solution: Solution) -> float:
        scores = solution.held_out[np.searchsorted(thinned.left_out, self.held_out)]
        return average_precision(self.labels[self.held_out, thinned.topic].toarray().ravel(), scores)


def _averaged(trials: Sequence[Trial]) -> Trial:
    """Average the trials of one setting over folds, each band over those that have it."""

    def mean(figures: Sequence[dict[str, float]]) -> dict[str, float]:
        known = {band: [figure[band] for figure in figures if np.isfinite(figure[band])] for band in figures[0]}
        return {band: float(np.mean(values)) if values else float("nan") for band, values in known.items()}

    return Trial(
        trials[0].margins,
        mean([trial.macro_average_precision for trial in trials]),
        mean([trial.average_sparsity for trial in trials]),
    )


def best(trials: Sequence[Trial], tolerance: float = 0.0005) -> Trial:
    """Return the sparsest of the trials that rank as well as the paper's PAUM(1, 50), over ALL, TOP10 and RARE.

    As well: with a MAP that is lower by no more than three decimals show. If that setting is not among the trials, the
    one of highest MAP over ALL takes its place. LAST30 has no say: it changes far more between splits than between
    settings.
    """
    paper = next((trial for trial in trials if trial.margins == PAPER), None)
    reference = paper or max(trials, key=lambda trial: trial.macro_average_precision["ALL"])

    def as_good(trial: Trial) -> bool:
        # A band that no topic is in is nan, and no reason against a setting.
        figures, wanted = trial.macro_average_precision, reference.macro_average_precision
        return not any(figures[band] < wanted[band] - tolerance for band in ("ALL", "TOP10", RARE))

    return min(filter(as_good, trials), key=lambda trial: trial.average_sparsity["ALL"])
