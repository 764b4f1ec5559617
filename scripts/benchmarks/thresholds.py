"""Thresholds: the cost of out-of-fold scores, and the quality of thresholds chosen by them."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from harness import Row, Work
from training import others, recipes_for, reuters

from textcat.base.folds import assign_folds
from textcat.corpus.documents import Corpus
from textcat.evaluation.thresholds import choose_thresholds
from textcat.margin.probabilities import out_of_fold_scores
from textcat.recipes.recipe import read_recipe
from textcat.training.examples import CountedCorpus
from textcat.training.thresholds import held_out_scores

JUDGED, SEED, BINS = 4, 0, 20


def measure(work: Work) -> list[Row]:
    """Compare the scores by which thresholds may be chosen; each once, as times are those of the processor."""
    return [row for corpus in (reuters(work), *others(work)) for row in _rows(corpus, recipes_for(corpus)[0])]


def _rows(corpus: Corpus, name: str) -> list[dict[str, Any]]:
    recipe = read_recipe(name)
    counts, n = CountedCorpus(corpus, recipe), len(corpus.train)
    drawn = np.random.default_rng(SEED).permutation(n)
    judged, trained = np.sort(drawn[: n // JUDGED]), np.sort(drawn[n // JUDGED :])
    features = counts.fit(recipe.make_features(), trained)
    examples, labels = counts.examples(features, trained), counts.labels[trained].tocsc()
    new, truth = counts.held_out_rows(features, judged), counts.labels[judged].toarray() > 0
    learner, fold_of = recipe.make_learner(n_jobs=1), assign_folds(labels, 5, seed=0)
    start = time.process_time()
    learner.fit(examples.rows, examples.labels, left_out=examples.left_out)
    training = time.process_time() - start
    ways = {
        "as shipped": lambda: held_out_scores(examples, learner, fold_of),
        "five full folds": lambda: out_of_fold_scores(
            learner,
            examples.rows,
            learner.topic_problems(examples.rows, examples.labels, examples.left_out),
            fold_of,
            n_jobs=1,
            seed=learner.random_state,
        ),
        "no folds": lambda: learner.decision_function(examples.rows[: len(trained)]),
    }
    scores, rows = learner.decision_function(new), []
    for way, score in ways.items():
        start = time.process_time()
        thresholds, calibration = choose_thresholds("probability", score(), labels, recipe.tags.probability)
        spent = time.process_time() - start
        figures = _figures(scores > thresholds, calibration.probabilities(scores), truth)
        rows.append(
            {
                "corpus": corpus.name,
                "recipe": name,
                "scores": way,
                **figures,
                "time / training": f"{spent / training:.2f}",
            }
        )
    return rows


def _figures(decisions: np.ndarray, probabilities: np.ndarray, truth: np.ndarray) -> dict[str, str]:
    hits, n_positives = (decisions & truth).sum(axis=0), truth.sum(axis=0)
    known, n = n_positives > 0, n_positives.sum()
    f1 = 2 * hits / np.maximum(decisions.sum(axis=0) + n_positives, 1)
    place = np.minimum((probabilities * BINS).astype(int), BINS - 1)
    error = sum(abs(probabilities[place == k].sum() - truth[place == k].sum()) for k in range(BINS)) / n
    likely = np.clip(np.where(truth, probabilities, 1 - probabilities), 1e-12, 1)
    return {
        "micro F1": f"{2 * hits.sum() / (decisions.sum() + n):.3f}",
        "macro F1": f"{f1[known].mean():.3f}",
        "calibration error": f"{error:.3f}",
        "log loss": f"{-np.log(likely).sum() / n:.3f}",
    }
