"""One-against-rest LinearSVC and ridge regression on a recipe's own rows, tuned as the recipe was → who ranks better.

Each rival's parameter is chosen by the cross-validation on the training documents that `textcat tune` does: the same
folds, rows (with the descriptions of topics as examples) and simulated rare topics, the highest EXPECTED. Then all of
them rank the test documents, and the recipe is compared with each rival, with the tests of `textcat compare`.

    python scripts/rivals.py [--recipe default] [--corpus reuters21578] [--folds 5] [--seed 0] [--jobs -1]

prints two tables in Markdown.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import joblib
import numpy as np
from sklearn.linear_model import Ridge
from sklearn.svm import LinearSVC

from textcat.corpus.catalogue import open_corpus
from textcat.corpus.documents import Corpus
from textcat.evaluation.bands import choose_bands
from textcat.evaluation.evaluation import evaluate_scores
from textcat.evaluation.export import markdown_table
from textcat.evaluation.significance import compare_evaluations
from textcat.margin.problems import NO_ROWS, Problem, Solution, StopReason
from textcat.recipes.recipe import Recipe, read_recipe
from textcat.training.cross_validation import EXPECTED, RARE, HeldOutFold, measure_by_folds, repeated_splits
from textcat.training.examples import CountedCorpus, Examples, examples_without

BANDS = ("ALL", "TOP10", "LAST30")


class Rival(NamedTuple):
    """A learner of scikit-learn, and the values of its parameter that are tried."""

    make: Callable[[float], Any]
    parameter: str
    values: Sequence[float]


RIVALS = {
    "LinearSVC": Rival(lambda c: LinearSVC(C=c), "C", (0.1, 0.3, 1, 3, 10)),
    "LinearSVC, balanced": Rival(lambda c: LinearSVC(C=c, class_weight="balanced"), "C", (0.01, 0.1, 1)),
    "ridge": Rival(lambda alpha: Ridge(alpha, solver="sparse_cg"), "alpha", (0.1, 0.3, 1, 3, 10)),
}


def main() -> None:
    """Tune the rivals, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default="default")
    parser.add_argument("--corpus", default="reuters21578")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=-1)
    asked = parser.parse_args()
    corpus, recipe = open_corpus(asked.corpus), read_recipe(asked.recipe)
    best_value_of: dict[str, tuple[float, float]] = {}
    rows = [
        {"learner": f"the recipe {recipe.name}", "parameter": "", **_told(trial.macro_average_precision)}
        for trial in measure_by_folds(corpus, [recipe], n_folds=asked.folds, seed=asked.seed, n_jobs=asked.jobs)
    ]
    for name, value, figures in tried(corpus, recipe, asked):
        parameter = f"{RIVALS[name].parameter} = {value:g}"
        print(f"{name}, {parameter}: {figures[EXPECTED]:.4f}", file=sys.stderr, flush=True)
        rows.append({"learner": name, "parameter": parameter, **_told(figures)})
        if name not in best_value_of or figures[EXPECTED] > best_value_of[name][1]:
            best_value_of[name] = value, figures[EXPECTED]
    print(markdown_table(rows), flush=True)
    print_comparison(corpus, recipe, {name: value for name, (value, _) in best_value_of.items()}, asked.jobs)


def _told(figures: Mapping[str, float]) -> dict[str, str]:
    return {key: f"{figures[key]:.4f}" for key in FIGURES}


FIGURES = (*BANDS, RARE, EXPECTED)


def tried(corpus: Corpus, recipe: Recipe, asked: Any) -> Iterator[tuple[str, float, dict[str, float]]]:
    """Yield each rival with each value, and its figures by cross-validation."""
    folds = list(repeated_splits(corpus.labels(corpus.train), asked.folds, 1, asked.seed))
    examples = list(examples_without([fold.held_out for fold in folds], corpus, recipe))
    for name, rival in RIVALS.items():
        for value in rival.values:
            figures = [
                figures_on(fold, learnt_from, corpus, recipe, rival, value, asked.jobs)
                for fold, learnt_from in zip(folds, examples, strict=True)
            ]
            means = {key: float(np.nanmean([by_name[key] for by_name in figures])) for key in FIGURES}
            yield name, value, means


def figures_on(
    fold: HeldOutFold, examples: Examples, corpus: Corpus, recipe: Recipe, rival: Rival, value: float, jobs: int
) -> dict[str, float]:
    """Measure a rival on a fold: it gets the very problems that the recipe's learner gets."""
    problems = fold.problems(recipe.make_learner(), examples)
    solved = joblib.Parallel(jobs, require="sharedmem")(
        joblib.delayed(solution)(rival.make(value), examples.rows, problem) for problem in problems
    )
    return fold.quality(solved, choose_bands(corpus.topics, fold.sizes, BANDS))


def solution(estimator: Any, rows: Any, problem: Problem) -> Solution:
    """Train on the rows that a problem does not leave out, and score those that it does."""
    scores = rankers_scores(estimator, rows, problem.positives, problem.left_out, rows[problem.left_out])
    return Solution(None, 0.0, NO_ROWS, np.empty(0), 0, 0, StopReason.CONVERGED, "", scores)


def rankers_scores(estimator: Any, rows: Any, positives: np.ndarray, left_out: np.ndarray, new: Any) -> np.ndarray:
    """Train a ranker of scikit-learn, and score new rows."""
    labels = np.full(rows.shape[0], -1)
    labels[positives] = 1
    used = np.setdiff1d(np.arange(rows.shape[0]), left_out)
    if not len(np.intersect1d(positives, used)):
        return np.zeros(new.shape[0])  # nothing to learn from, which scikit-learn refuses
    estimator.fit(rows[used], labels[used])
    score = getattr(estimator, "decision_function", estimator.predict)
    return score(new)


def print_comparison(corpus: Corpus, recipe: Recipe, best_value_of: dict[str, float], jobs: int) -> None:
    """Rank the test documents by all of them, and print how far the recipe is ahead of each rival."""
    counts = CountedCorpus(corpus, recipe)
    features, labels = counts.fit(recipe.make_features()), counts.labels
    examples = counts.examples(features)
    new = features.transform(corpus.test)
    learner = recipe.make_learner(n_jobs=jobs).fit(examples.rows, examples.labels, left_out=examples.left_out)
    scores = {recipe.name: learner.decision_function(new)}
    for name, value in best_value_of.items():
        per_topic = joblib.Parallel(jobs, require="sharedmem")(
            joblib.delayed(rankers_scores)(RIVALS[name].make(value), examples.rows, *of_topic(examples, k), new)
            for k in range(len(corpus.topics))
        )
        scores[f"{name}, {RIVALS[name].parameter} = {value:g}"] = np.column_stack(per_topic)
    sizes = np.asarray(labels.sum(axis=0)).ravel()
    relevant, known = corpus.labels(corpus.test), (corpus.topics, sizes, len(corpus.train))
    comparison = compare_evaluations(
        [evaluate_scores(of_model, relevant, *known, spec=BANDS) for of_model in scores.values()]
    )
    rows = []
    for measure in comparison.measures:
        if measure.measure == "macro_average_precision":
            for rival, value, difference in zip(list(scores)[1:], measure.values[1:], measure.differences, strict=True):
                low, high = difference.interval
                row = {"band": measure.band, "rival": rival, recipe.name: f"{measure.values[0]:.4f}"}
                row["the rival"] = f"{value:.4f}"
                row["ahead by"] = f"{-difference.difference:+.4f} (95 %: {-high:+.4f} to {-low:+.4f})"
                row["p over documents"] = f"{difference.p_documents:.4f}"
                row["p over topics"] = f"{difference.p_topics:.4f}"
                rows.append(row)
    print(markdown_table(rows), end="")


def of_topic(examples: Examples, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the positives of a topic, and what it leaves out."""
    left_out = NO_ROWS if examples.left_out is None else examples.left_out[:, [k]].nonzero()[0]
    return examples.labels[:, [k]].nonzero()[0], left_out


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
