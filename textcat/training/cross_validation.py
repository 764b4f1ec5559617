"""Cross-validate on training documents: compute held-out scores of a recipe, and measure recipes by such scores."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from textcat.base.calibration import Calibration
from textcat.base.errors import TextcatError
from textcat.base.folds import assign_folds, first_of_groups, labels_of_groups, members_of
from textcat.base.progress import Advance, Stages
from textcat.corpus.documents import Corpus
from textcat.evaluation.bands import DEFAULT_BANDS, Band, choose_bands
from textcat.evaluation.metrics import average_precisions
from textcat.features.rows import release_memory
from textcat.features.tokens import Tokens
from textcat.margin.probabilities import ProblemRows, make_problems, rows_without
from textcat.margin.problems import NO_ROWS, Solution, rows_by_column
from textcat.margin.solve import nothing, solve
from textcat.model.facts import UNKNOWN
from textcat.recipes.recipe import Recipe
from textcat.training.examples import CountedCorpus, Examples, examples_without

if TYPE_CHECKING:
    from textcat.model.tagger import Tagger

# A held-out sample is one document of ten, at most 5,000.
MOST_HELD_OUT, ONE_OF = 5_000, 10

# The rarest topics have too few positives for cross-validation: their averages are mostly noise. They are simulated
# instead: topics of at least _MIN_COMMON positives are trained with only as many positives as the _N_RARE smallest
# topics have, and tested on all held-out positives.
RARE, EXPECTED, POOLED = "RARE", "EXPECTED", "POOLED"
MAP, MEAN_SUPPORT = "macro_average_precision", "mean_support"
_MIN_COMMON = 15
_N_RARE = 30

# Choices and forecasts for few documents split them several times, but process at most this number of terms for each
# setting: the different terms of each document, added up over documents and splits. Texts of less than some 5,000
# characters do not reach it.
MOST_TERMS = 2_000_000

_BATCH = 12  # settings trained in one call of the solver: enough to fill the SIMD lanes, few enough to show progress


class HoldOut(NamedTuple):
    """Positions of documents to train on, and of held-out documents, each in ascending order."""

    trained: np.ndarray
    held_out: np.ndarray


def hold_out_sample(corpus: Corpus, seed: int, most: int | None = None) -> HoldOut:
    """Split the training documents of a corpus at random into documents to hold out and documents to train on.

    Raise TextcatError if there are too few training documents.

    `most` is the largest number of documents to train on; None: all that are not held out.
    """
    firsts = np.unique(corpus.groups)
    n_held_out = min(MOST_HELD_OUT, len(firsts) // ONE_OF)
    if not n_held_out:
        raise TextcatError(
            f"Corpus {corpus.name} has {len(firsts)} different training documents, too few to hold one of {ONE_OF} "
            "out, by which a recipe with a shortlist is measured: give it more of them, or take a recipe without a "
            "shortlist."
        )
    drawn = np.random.default_rng(seed).permutation(firsts)
    stop = None if most is None else n_held_out + most
    return HoldOut(members_of(drawn[n_held_out:stop], corpus.groups), np.sort(drawn[:n_held_out]))


@contextmanager
def folder_beside(rows_dir: str | os.PathLike[str] | None) -> Iterator[Path | None]:
    """Yield a path for document vectors on disk, in a temporary folder next to `rows_dir`; None if that is None."""
    if rows_dir is None:
        yield None
        return
    with tempfile.TemporaryDirectory(dir=Path(rows_dir).parent) as folder:
        yield Path(folder, "rows")


def score_units(solutions: Sequence[Solution], dtype: np.dtype) -> np.ndarray:
    """Return for each topic the number to divide its scores by, so that scores of several trainings are comparable."""
    return np.array([solution.unit for solution in solutions], dtype)


def labels_out_of_fold(labels: sp.csc_matrix, recipe: Recipe, groups: np.ndarray) -> sp.csc_matrix:
    """Return labels without those of topics with a single document, which cross-validation cannot test.

    While this document is held out, no document is left to learn the topic from; documents of a group count as one. If
    the recipe trains on descriptions, the topic can be learnt from its description, and the labels are returned
    unchanged.
    """
    sizes = np.asarray(labels_of_groups(labels, groups).sum(axis=0)).ravel()
    is_learnt = sizes >= (1 if recipe.topics.description_copies else 2)
    return labels @ sp.diags_array(is_learnt, dtype=labels.dtype)


def cross_validated(
    tagger: Tagger, corpus: Corpus, n_folds: int, *, n_jobs: int | None, stages: Stages
) -> tuple[np.ndarray, Calibration, sp.csc_matrix] | None:
    """Cross-validate a tagger's recipe on its training documents.

    Return the out-of-fold scores of the documents, the calibration curves fitted to these scores, and the labels that
    the scores are compared with. Of documents that repeat each other, curves are fitted to the first one, with the
    topics of all.

    Return None if the tagger has no recipe, if the recipe scores only a document's nearest topics (a shortlist), or if
    there is only one document.
    """
    recipe = replace(tagger.facts.recipe, name="report").of_model()
    if tagger.facts.recipe == UNKNOWN or recipe.topics.shortlist or len(corpus.train) < 2:
        return None
    with stages.stage("cross-validate", n_folds * len(corpus.topics)) as advance:
        counted = CountedCorpus(corpus, recipe)
        scores = cross_validated_scores(counted, recipe, n_folds, n_jobs=n_jobs, advance=advance)
        labels = labels_out_of_fold(counted.labels, recipe, corpus.groups)
        of_groups = judged_scores(corpus, scores), labels_of_groups(labels, corpus.groups)
        return scores, Calibration.fit_scores(*of_groups), labels


def judged_scores(corpus: Corpus, scores: np.ndarray) -> np.ndarray:
    """Return the scores of training documents, of each group of repeats the first, with nan where it was not judged."""
    if (unjudged := corpus.unjudged(corpus.train)) is not None:
        scores = np.where(unjudged.toarray() > 0, scores.dtype.type(np.nan), scores)
    return np.asarray(first_of_groups(scores, corpus.groups))


def cross_validated_scores(
    counts: CountedCorpus,
    recipe: Recipe,
    n_folds: int,
    *,
    n_jobs: int | None,
    rows_dir: str | os.PathLike[str] | None = None,
    advance: Advance,
) -> np.ndarray:
    """Return the out-of-fold score of each training document for each topic.

    There are at most as many folds as documents, or groups of documents that repeat each other. Document vectors are
    kept in memory or, if `rows_dir` is given, in a temporary folder next to it.
    """
    labels, groups = counts.labels, counts.corpus.groups
    fold_of = assign_folds(labels, min(n_folds, len(np.unique(groups))), 0, groups)
    scores = np.zeros(labels.shape, np.float32)
    for number in range(fold_of.max() + 1):
        split = HoldOut(np.flatnonzero(fold_of != number), np.flatnonzero(fold_of == number))
        if len(split.trained):
            scores[split.held_out] = scores_of_split(counts, recipe, split, n_jobs, rows_dir, advance)
    return scores


def affordable_splits(n_terms: np.ndarray, most: int) -> int:
    """Return how many splits into training and held-out documents to use: at least 1, and at most `most`.

    Their number times the number of terms of all documents is at most `MOST_TERMS`, unless it is 1. `n_terms` is the
    number of different terms of each document.
    """
    return max(min(most, MOST_TERMS // max(int(n_terms.sum()), 1)), 1)


def scores_of_split(
    counts: CountedCorpus,
    recipe: Recipe,
    split: HoldOut,
    n_jobs: int | None = None,
    rows_dir: str | os.PathLike[str] | None = None,
    advance: Advance = lambda n: None,
) -> np.ndarray:
    """Return the scores of held-out documents for each topic, by rankers trained on the other documents of a split.

    All scores are 0 if no term of the documents to train on gets a column.
    """
    features = counts.fit(recipe.make_features(), split.trained)
    with folder_beside(rows_dir) as folder:
        rows, positives, left_out = counts.examples(features, split.trained, rows_dir=folder)
        if not rows.shape[1]:
            return np.zeros((len(split.held_out), counts.labels.shape[1]), np.float32)
        new = counts.held_out_rows(features, split.held_out)
        del features  # rows and scores of only one fold are in memory at a time
        learner = recipe.make_learner(n_jobs=n_jobs)
        problems = learner.topic_problems(rows, positives, left_out)
        seed = learner.random_state
        solutions = solve(rows, problems, n_jobs=n_jobs, seed=seed, progress=advance, keep=new.dot, overwrite_X=True)
    sums = np.column_stack([solution.weights + solution.bias for solution in solutions])
    del rows, new
    release_memory()
    return np.asarray(sums / score_units(solutions, sums.dtype))


def is_first_right(labels: sp.csr_matrix, documents: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return whether each document has the topic with its highest score: shape (n_documents,), bool.

    `scores` has the shape (n_documents, n_topics); `documents` are their row numbers in `labels`.
    """
    return np.asarray(labels[documents, scores.argmax(axis=1)]).ravel() > 0


# --- recipes, measured by cross-validation ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Trial:
    """The quality of a recipe: `measures` has a value for each measure and each band (set of topics).

    The keys of `measures` are names of measures; the keys of the inner dicts are names of bands, such as "TOP10".
    Cross-validation measures "macro_average_precision", averaged over topics, then over folds. A topic counts in a fold
    if it has positives among the held-out documents and among the others. There are three additional bands:

    - "RARE": common topics, trained with only as many positives as the rarest topics have.
    - "EXPECTED": all topics, with the value of RARE in place of the values of the thirty smallest topics.
    - "POOLED": all topics of two documents or more, each ranked once over the documents of all folds.

    On a held-out sample, the measures are "ndcg@10" and others of `evaluate_at_k`. Both methods also measure
    "mean_support", the mean number of support documents.
    """

    recipe: Recipe
    measures: dict[str, dict[str, float]]
    measured_on: str = ""  # the hold-out design; empty for cross-validation

    @property
    def judged_by(self) -> tuple[str, str]:
        """The measure to maximise, and the band that it is averaged over, such as ("ndcg@10", "ALL")."""
        return (MAP, EXPECTED) if MAP in self.measures else ("ndcg@10", "ALL")

    @property
    def goal(self) -> float:
        """The value to maximise: that of the measure and band in `judged_by`."""
        measure, band = self.judged_by
        return self.measures[measure][band]

    def as_dict(self) -> dict[str, Any]:
        """Return the trial as JSON values."""
        held_out = {"measured_on": self.measured_on} if self.measured_on else {}
        return {"recipe": {"name": self.recipe.name, **self.recipe.as_dict()}, **self.measures, **held_out}

    @classmethod
    def from_dict(cls, recipe: Recipe, figures: Mapping[str, Any]) -> Trial:
        """Return a trial of `recipe` with the measures that `as_dict` stored; the recipe that it stored is ignored."""
        measures = {name: value for name, value in figures.items() if isinstance(value, dict) and name != "recipe"}
        return cls(recipe, measures, figures.get("measured_on", ""))


def measure_by_folds(
    corpus: Corpus,
    recipes: Iterable[Recipe],
    *,
    n_folds: int = 5,
    n_repeats: int = 1,
    seed: int = 0,
    n_jobs: int | None = None,
    advance: Advance = lambda count: None,
) -> Iterator[Trial]:
    """Measure recipes by k-fold cross-validation on the training documents of a corpus.

    Features are fitted without the held-out documents. In each fold, a ranker is trained for every pair of a topic and
    a recipe, without the held-out documents. Consecutive recipes with the same features share document vectors. Each
    repeat splits the documents with the next seed, because a single split is noisy for topics of few documents.
    """
    labels = corpus.labels(corpus.train)
    if not np.any(labels.sum(axis=0) > 1):
        raise TextcatError(
            f"No topic of corpus {corpus.name} has two training documents to compare by: give it more documents."
        )
    folds = list(repeated_splits(labels, n_folds, n_repeats, seed, corpus.groups))
    tokens: dict[str, Tokens] = {}  # one cache serves all recipes with the same tokenization
    for _, alike in groupby(recipes, key=feature_key):
        same_features = list(alike)
        first = same_features[0]
        key = json.dumps(first.settings("tokens"), sort_keys=True)
        tokens[key] = tokens.get(key) or first.make_tokens()
        examples = list(examples_without([fold.held_out for fold in folds], corpus, first, tokens[key]))
        for start in range(0, len(same_features), _BATCH):
            candidates = [_Candidate(recipe, labels) for recipe in same_features[start : start + _BATCH]]
            with ThreadPoolExecutor(1) as executor:  # measure one fold while the next one is trained
                tasks = []
                for fold, examples_of_fold in zip(folds, examples, strict=True):
                    bands = choose_bands(corpus.topics, fold.sizes, DEFAULT_BANDS)
                    for candidate, solutions in _train(candidates, fold, examples_of_fold, n_jobs):
                        tasks.append(executor.submit(candidate.measure, fold, solutions, bands))
                    advance(len(candidates))
            for task in tasks:
                task.result()
            yield from (candidate.trial() for candidate in candidates)


def feature_key(recipe: Recipe) -> str:
    """Return a string that is equal for recipes that turn a document into the same feature vector."""
    return json.dumps([recipe.settings(section) for section in ("tokens", "features", "topics")], sort_keys=True)


def repeated_splits(
    labels: sp.csc_matrix, n_folds: int, n_repeats: int, seed: int, groups: np.ndarray | None
) -> Iterator[HeldOutFold]:
    """Yield the folds of several splits of the documents; each also trains common topics as if they were rare.

    `groups` are those of `assign_folds`.
    """
    for split_seed in range(seed, seed + n_repeats):
        fold_of, random = assign_folds(labels, n_folds, split_seed, groups), np.random.default_rng(split_seed)
        for number in range(n_folds):
            yield HeldOutFold(labels, np.flatnonzero(fold_of == number), random)


def _train(
    candidates: Iterable[_Candidate], fold: HeldOutFold, examples: Examples, n_jobs: int | None
) -> Iterator[tuple[_Candidate, list[Solution]]]:
    """Train each candidate (a recipe to measure) without a fold's documents; yield it with the solution of each topic.

    Candidates whose learners have the same seed are trained together, so the order of the candidates may change.
    """
    by_seed: dict[int | None, list[_Candidate]] = {}
    for candidate in candidates:
        by_seed.setdefault(candidate.learner.random_state, []).append(candidate)
    rows = fold.rows(examples)
    for seed, same_seed in by_seed.items():
        problems = [make_problems(candidate.learner, examples.rows, rows) for candidate in same_seed]
        solutions = iter(solve(examples.rows, list(chain(*problems)), n_jobs=n_jobs, seed=seed, keep=nothing))
        for candidate, of_candidate in zip(same_seed, problems, strict=True):
            yield candidate, list(islice(solutions, len(of_candidate)))


class _Candidate:
    """A recipe that is being measured, fold by fold."""

    def __init__(self, recipe: Recipe, labels: sp.csc_matrix):
        self.learner = recipe.make_learner()
        self._recipe, self._labels, self._scores = recipe, labels, np.zeros(labels.shape, np.float32)
        self._quality: list[dict[str, float]] = []
        self._support: list[dict[str, float]] = []
        self._n_scored, self._pooled = 0, list[float]()

    def measure(self, fold: HeldOutFold, solutions: Sequence[Solution], chosen: Sequence[Band]) -> None:
        """Measure the recipe on the documents of a fold, and record the measures.

        They are averaged over the bands `chosen`.
        """
        self._quality.append(fold.quality(solutions, chosen))
        support = np.array([len(solution.support) for solution in solutions])
        self._support.append({band.name: float(support[list(band.topics)].mean()) for band in chosen})
        self._scores[fold.held_out] = fold.scores(solutions)
        self._n_scored += len(fold.held_out)
        if self._n_scored % len(self._scores) == 0:  # all folds of a split are done
            precisions = average_precisions(self._labels, self._scores)
            precisions[fold.sizes < 2] = np.nan  # descriptions are only trained on, never held out
            self._pooled.append(float(np.nanmean(precisions)))

    def trial(self) -> Trial:
        """Return the recipe's measures, averaged over the folds."""
        quality = {**_average(self._quality), POOLED: float(np.mean(self._pooled))}
        return Trial(self._recipe, {MAP: quality, MEAN_SUPPORT: _average(self._support)})


class _RareTopic(NamedTuple):
    """A common topic that is trained as if it were rare: most of its positives are left out of training."""

    topic: int
    positives: np.ndarray
    left_out: np.ndarray


class HeldOutFold:
    """A fold of held-out documents: select the examples to train on without it, and measure rankers on it.

    `held_out` has the positions of the fold's documents, and `labels` has the labels of all documents. If a random
    generator is given, common topics are also trained as if they were rare, with positives that it draws.
    """

    def __init__(self, labels: sp.csc_matrix, held_out: np.ndarray, random: np.random.Generator | None = None):
        self.held_out = held_out.astype(np.int32)
        self.labels = labels.tocsr()
        self.positives = rows_by_column(labels)
        self.sizes = np.array([len(rows) for rows in self.positives])
        self._held_out_labels = self.labels[held_out]
        # number of positives of each topic among the documents to train on
        self.trained = self.sizes - np.asarray(self._held_out_labels.sum(axis=0)).ravel()
        self.rare_topics = [] if random is None else list(self._simulate(random))
        self._rare_labels = self._held_out_labels[:, [rare.topic for rare in self.rare_topics]]

    def _simulate(self, random: np.random.Generator) -> Iterable[_RareTopic]:
        rare = np.sort(self.sizes)[:_N_RARE]
        for topic in np.flatnonzero(self.sizes >= _MIN_COMMON).tolist():
            trained = random.permutation(np.setdiff1d(self.positives[topic], self.held_out))
            n_kept = int(random.choice(rare))
            if n_kept < len(trained) < self.sizes[topic]:
                yield _RareTopic(topic, np.sort(trained[:n_kept]), trained[n_kept:])

    def rows(self, examples: Examples) -> list[ProblemRows]:
        """Return for each topic, then each simulated rare topic, its positive examples and those not to train on.

        Both are row numbers of `examples`. Descriptions are never held out, and are examples of simulated topics, too.
        """
        n_documents = self.labels.shape[0]
        never = [NO_ROWS] * len(self.sizes) if examples.left_out is None else rows_by_column(examples.left_out)
        labelled = zip(rows_by_column(examples.labels), never, strict=True)
        further = [np.setdiff1d(rows[rows >= n_documents], out) for rows, out in labelled]
        topics = [*((k, rows, NO_ROWS) for k, rows in enumerate(self.positives)), *self.rare_topics]
        rows = ((np.append(positives, further[k]), np.append(left_out, never[k])) for k, positives, left_out in topics)
        return rows_without(rows, self.held_out)

    def scores(self, solutions: Sequence[Solution]) -> np.ndarray:
        """Return the scores of the held-out documents for every topic, shape (n_held_out, n_topics)."""
        n = len(self.held_out)  # the other left-out rows come after the documents
        return np.column_stack([solution.held_out[:n] / solution.unit for solution in solutions[: len(self.positives)]])

    def quality(self, solutions: Sequence[Solution], chosen: Sequence[Band]) -> dict[str, float]:
        """Return the mean average precision of each band of topics, by its name; nan if a band has no topic.

        The bands are those in `chosen`, plus RARE and EXPECTED (see `Trial`).
        """
        precisions = average_precisions(self._held_out_labels, self.scores(solutions))
        precisions[self.trained == 0] = np.nan  # no positive to learn from: this says nothing about the recipe
        figures = {band.name: nanmean(precisions[list(band.topics)]) for band in chosen}
        scores = np.zeros(self._rare_labels.shape, np.float32)
        for k, solution in enumerate(solutions[len(self.positives) :]):
            scores[:, k] = solution.held_out[: len(self.held_out)]
        figures[RARE] = nanmean(average_precisions(self._rare_labels, scores))
        figures[EXPECTED] = figures["ALL"]
        n = len(precisions)
        if n > _N_RARE and np.isfinite(figures[RARE]):
            common = nanmean(precisions[np.argsort(-self.sizes, kind="stable")[:-_N_RARE]])
            figures[EXPECTED] = ((n - _N_RARE) * common + _N_RARE * figures[RARE]) / n
        return figures


def nanmean(values: np.ndarray) -> float:
    """Return the mean of the values, ignoring nan; nan if no value is finite."""
    return float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")


def _average(figures: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Average the value of each band over the folds in which it is finite; nan if there is no such fold.

    `figures` has a dict for each fold: a value for each band.
    """
    finite = {band: [figure[band] for figure in figures if np.isfinite(figure[band])] for band in figures[0]}
    return {band: float(np.mean(values)) if values else float("nan") for band, values in finite.items()}
