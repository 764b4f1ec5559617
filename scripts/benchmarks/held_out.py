"""(f) Thresholds: the cost of out-of-fold scores, and the quality of thresholds chosen by them."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import other_corpora
import whole_way
from pages import Conditions, Page

from textcat.base.stratified import assign_folds
from textcat.corpus.documents import Corpus
from textcat.evaluation.thresholds import choose_thresholds
from textcat.margin.probabilities import out_of_fold_scores
from textcat.recipes.recipe import read_recipe
from textcat.training.examples import CountedCorpus
from textcat.training.thresholds import held_out_scores

JUDGED, SEED, BINS = 4, 0, 20


def measured(corpus: Corpus, rounds: int) -> list[Page]:
    """Return the page of thresholds; rounds are not needed, as times are those of the processor."""
    conditions = Conditions("as named")
    with tempfile.TemporaryDirectory() as name:
        corpora = [corpus, *other_corpora.open_others(Path(name), quick=corpus.name == "newswire")]
        rows = [row for each in corpora for recipe in whole_way.recipes_for(each) for row in _rows(each, recipe)]
    text = f"""The table compares ways to get the scores by which thresholds and probabilities are chosen. It uses
training documents only: 1/{JUDGED} of them, drawn with seed {SEED}, is held out for measuring. Rankers, thresholds
and probabilities come from the other documents. Thresholds and probabilities are fitted to one of three kinds of
scores:

- "as shipped": thresholds are fitted to the out-of-fold scores that `textcat train` computes;
- "five full folds": they are fitted to scores by topics that are trained again without each fold;
- "no folds": they are fitted to the scores of the documents that the ranker was trained on.

Calibration error is |sum of probabilities - number of positives|, summed over {BINS} bins
of equal width, and divided by the number of positives; log loss is divided by the number of positives, too. Time is
processor time with one job, as a fraction of the time of training all topics; it includes the choice of thresholds
and of the curves that turn scores into probabilities."""
    return [Page("thresholds", "Thresholds and probabilities", conditions.head(), text, rows)]


def _rows(corpus: Corpus, name: str) -> list[dict[str, Any]]:
    recipe = read_recipe(name)
    counts, n = CountedCorpus(corpus, recipe), len(corpus.train)
    drawn = np.random.default_rng(SEED).permutation(n)
    judged, trained = np.sort(drawn[: n // JUDGED]), np.sort(drawn[n // JUDGED :])
    features = counts.fit(recipe.make_features(), trained)
    examples, labels = counts.examples(features, trained), counts.labels[trained].tocsc()
    new, truth = counts.rows_of_counts(features, judged), counts.labels[judged].toarray() > 0
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
        thresholds, calibration = choose_thresholds("probability", score(), labels, recipe.make_tags().probability)
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
