"""The PAUM paper's choice of margins: the cross-validated grid, and the two ideas of its last section."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from textcat.evaluation.ranking import average_precisions
from textcat.margin.learners import prevalence_tau
from textcat.margin.problems import Problem
from textcat.margin.rules import PAUM
from textcat.margin.solve import solve
from textcat.papers.experiment import Experiment, Figure, Row, Settings, Task
from textcat.papers.paum_vectors import Vectors, support_sizes, vectors
from textcat.papers.published import published
from textcat.training.selection import folds

Pair = tuple[float, float]  # τ₋, τ₊

N_FOLDS = 10
COMMON = 40  # positives that a topic must have to be cross-validated
N_SHOWN = 10

# τ₊ = S/(1 + exp(-κ·c)): with κ = 0 all topics would have τ₊ = 50, as in PAUM(1,50).
TAU_NEG = -0.5
SCALE = 100.0
KAPPA = (-50.0, -10.0, 10.0, 50.0)


def grid(printed: Mapping[str, Any]) -> list[Pair]:
    """Return the paper's pairs of margins."""
    return list(product(printed["tau_neg"], printed["tau_pos"]))


def name_of(pair: Pair) -> str:
    """Name a pair as the paper does: PAUM(1,50)."""
    return f"PAUM({pair[0]:g},{pair[1]:g})"


# --- cross-validation on the training documents ----------------------------------------------------------------------


def cross_validate(
    vectors: Vectors, pairs: Sequence[Pair], n_folds: int, topics: np.ndarray, n_jobs: int
) -> np.ndarray:
    """Train every pair on every topic without every fold: one call of the solver for all.

    Vectors are those of the whole training sample, so that all problems share their rows.

    Returns
    -------
    ndarray of shape (n_pairs, n_topics)
        Average precision on the held-out documents, averaged over folds.
    """
    of = folds(vectors.train_labels, n_folds, seed=0)
    held_out = [np.flatnonzero(of == fold).astype(np.int32) for fold in range(n_folds)]
    problems = [
        Problem(vectors.positives[topic], PAUM(*pair), left_out=rows, lambda_=1.0)
        for pair in pairs
        for rows in held_out
        for topic in topics
    ]
    solutions = iter(solve(vectors.train, problems, n_jobs=n_jobs, keep_weights=False))
    labels = [vectors.train_labels[rows][:, topics] for rows in held_out]
    quality = np.empty((len(pairs), n_folds, len(topics)))
    for pair, fold in np.ndindex(quality.shape[:2]):
        scores = np.column_stack([next(solutions).held_out for _ in topics])
        quality[pair, fold] = average_precisions(labels[fold], scores)
    return np.nanmean(quality, axis=1)


def grid_rows(vectors: Vectors, printed: Mapping[str, Any], n_jobs: int, least: int = COMMON) -> list[Row]:
    """Rank the pairs of the grid by cross-validation on the topics with so many positives at least."""
    pairs, topics = grid(printed), np.flatnonzero(vectors.sizes >= least).tolist()
    started = time.perf_counter()
    quality = cross_validate(vectors, pairs, N_FOLDS, topics, n_jobs)
    seconds = time.perf_counter() - started
    n_trained = {"trained": Figure(len(pairs) * N_FOLDS * len(topics))}
    best_first = np.argsort(-quality.mean(axis=1), kind="stable")
    chosen = pairs.index(tuple(printed["chosen"]))
    shown = [*best_first[:N_SHOWN], *([chosen] if chosen not in best_first[:N_SHOWN] else [])]
    rows = [Row(f"{len(pairs)} pairs × {N_FOLDS} folds × {len(topics)} topics", n_trained, seconds)]
    for k in shown:
        behind = quality[best_first[0]] - quality[k]
        figures = {
            "place": Figure(1 + int(np.flatnonzero(best_first == k)[0])),
            "MAP": Figure(quality[k].mean(), digits=4),
            "behind the first": Figure(behind.mean(), digits=4),
            "its standard error": Figure(behind.std(ddof=1) / np.sqrt(len(topics)), digits=4),
        }
        rows.append(Row(name_of(pairs[k]), figures, note="The paper chooses this pair." if k == chosen else ""))
    return rows


def _grid(settings: Settings) -> list[Row]:
    return grid_rows(vectors("reuters21578"), published()["paum"]["grid"], settings.n_jobs)


# --- the last section's ideas ----------------------------------------------------------------------------------------


def prevalence_rows(vectors: Vectors, n_jobs: int) -> list[Row]:
    """Adapt τ₊ to the fraction of positives of each topic."""
    prevalence = vectors.sizes / vectors.train.shape[0]
    rows = []
    for kappa in KAPPA:
        rules = [PAUM(TAU_NEG, tau_pos) for tau_pos in prevalence_tau(prevalence, kappa, SCALE)]
        rows.append(_row(f"τ₋ = {TAU_NEG:g}, τ₊ from prevalence, κ = {kappa:g}", vectors, rules, n_jobs))
    return rows


def training_rows(vectors: Vectors, printed: Mapping[str, Any], n_jobs: int) -> list[Row]:
    """Choose margins by their average precision on the very documents that were trained on."""
    # Of equals, argmax takes the first; so the largest margins come first here, or the sparsest solutions below.
    pairs = sorted(grid(printed), key=lambda pair: (pair[1], pair[0]), reverse=True)
    started = time.perf_counter()
    quality, sparsity = map(np.array, zip(*_trained_on(vectors, pairs, n_jobs), strict=True))
    took = f"Training and ranking with {len(pairs)} pairs took {time.perf_counter() - started:.1f} s."
    for_all = pairs[int(quality.mean(axis=1).argmax())]
    equals = quality == quality.max(axis=0)
    per_topic = {
        "the largest margins": equals.argmax(axis=0),
        "the sparsest ranker": np.where(equals, sparsity, np.inf).argmin(axis=0),
    }
    ties = int(np.sum(equals.sum(axis=0) > 1))
    note = f"On {ties} of {len(vectors.topics)} topics several pairs are equally good."
    rows = [_row(f"by training MAP, one pair for all: {name_of(for_all)}", vectors, PAUM(*for_all), n_jobs, took)]
    for words, chosen in per_topic.items():
        rules = [PAUM(*pairs[k]) for k in chosen]
        rows.append(_row(f"by training AP, a pair per topic, of equals {words}", vectors, rules, n_jobs, note))
    return rows


def _trained_on(vectors: Vectors, pairs: Sequence[Pair], n_jobs: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield each topic's average precision on the training documents, and its sparsity, of one pair after the other."""
    for pair in pairs:
        solutions = vectors.solve(PAUM(*pair), n_jobs)
        quality = average_precisions(vectors.train_labels, vectors.scores(vectors.train, solutions))
        yield quality, support_sizes(solutions)


def _row(
    label: str,
    vectors: Vectors,
    rules: PAUM | Sequence[PAUM],
    n_jobs: int,
    note: str = "",
    printed: Mapping[str, Any] | None = None,
) -> Row:
    started = time.perf_counter()
    solutions = vectors.solve(rules, n_jobs)
    seconds = time.perf_counter() - started
    return Row(label, vectors.figures(vectors.quality(solutions), support_sizes(solutions), printed), seconds, note)


def _fixed(settings: Settings) -> list[Row]:
    printed = published()["paum"]["table2"]["PAUM(1,50)"]
    return [_row("PAUM(1,50)", vectors("reuters21578"), PAUM(1, 50), settings.n_jobs, printed=printed)]


def _prevalence(settings: Settings) -> list[Row]:
    return prevalence_rows(vectors("reuters21578"), settings.n_jobs)


def _training(settings: Settings) -> list[Row]:
    return training_rows(vectors("reuters21578"), published()["paum"]["grid"], settings.n_jobs)


# --- the experiments -------------------------------------------------------------------------------------------------

GRID = Experiment(
    "paum-grid",
    "PAUM paper, choice of margins: 7 × 10 pairs by 10-fold cross-validation on Reuters-21578",
    ("reuters21578",),
    0.3,
    (Task("grid", _grid),),
    f"""Vectors as for Table 2. All τ₋ and τ₊ of the paper's footnote 3, on the topics with at least {COMMON} positive
training documents. Folds spread the positives of each topic evenly; all pairs see the same ones. *MAP* is the average
precision on the held-out documents, averaged over folds and topics; the standard error is that of the mean difference
over topics. The time is that of all trainings, and of their evaluation. The largest τ₊ is the best, as the paper
suspects; τ₋ hardly matters beside it.""",
)
ADAPTATION = Experiment(
    "paum-adaptation",
    "PAUM paper, section 4: τ₊ adapted to prevalence, and margins chosen on the training documents themselves",
    ("reuters21578",),
    0.3,
    (Task("PAUM(1,50)", _fixed), Task("prevalence", _prevalence), Task("training MAP", _training)),
    f"""Vectors as for Table 2; figures are those on the test documents. The paper proposes both and prints none.

*From prevalence*: τ₊ = {SCALE:g}/(1 + exp(-κ·c)), c being the fraction of positives. κ > 0 asks a larger margin of the
common topics, κ < 0 of the rare ones. *By training MAP*: each of the 70 pairs is trained, and the one that ranks the
training documents best is taken.""",
)
EXPERIMENTS = (GRID, ADAPTATION)
