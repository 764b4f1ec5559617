"""Cross-validation on training documents: scores for thresholds; which features, learner and margins rank best."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import chain, groupby, islice, product
from operator import lt
from threading import local
from typing import Any, NamedTuple

import joblib
import numpy as np
import scipy.sparse as sp

from textcat.documents import Corpus
from textcat.errors import TextcatError
from textcat.evaluation.bands import DEFAULT_BANDS, Band, choose_bands
from textcat.evaluation.metrics import average_precisions
from textcat.features._rows import release_memory
from textcat.features.tokens import Tokens
from textcat.margin._folds import N_FOLDS, leave_out_folds
from textcat.margin._primal import dots
from textcat.margin.learners import MarginClassifier
from textcat.margin.problems import NO_ROWS, Problem, Solution, rows_by_column
from textcat.margin.rules import PAM, PAUM, Rule
from textcat.margin.solve import nothing, solve
from textcat.progress import Advance
from textcat.recipe import Recipe
from textcat.training.examples import Examples, examples_without

# What the study of margins compares: every fixed pair, and every adapted one.
_FIXED = product((-1.0, -0.5, -0.1, 0.5, 1.0), (1.0, 5.0, 10.0, 20.0, 50.0, 100.0))
_ADAPTED = product((-1.0, -0.5, -0.1), ("prevalence",), (-50.0, -20.0, -10.0, -5.0, 5.0), (50.0, 100.0, 200.0, 400.0))
_MARGINS: list[dict[str, Any]] = [
    dict(zip(("tau_neg", "tau_pos", "kappa", "scale"), values, strict=False)) for values in (*_FIXED, *_ADAPTED)
]

# The rarest topics have too few positives to be cross-validated: their averages are mostly noise. They are simulated:
# topics of at least _MIN_COMMON positives are trained with as few as the smallest _N_RARE topics have, and tested on
# all held-out ones.
RARE, EXPECTED, POOLED = "RARE", "EXPECTED", "POOLED"
_MAP, SPARSITY_MEASURE = "macro_average_precision", "average_sparsity"
_MIN_COMMON = 15
_N_RARE = 30

# Of `held_out_scores`, chosen on training documents of Reuters-21578, 20 Newsgroups and library titles.
# Negatives beside those of the support: a part of its rows and one of the documents, but so many at least.
_OF_SUPPORT, _OF_DOCUMENTS, _LEAST = 0.5, 1 / 32, 250
_ENOUGH = 100  # held-out positives from which a topic's threshold is chosen, where it has so many
_NEAR_MINIMUM = 0.25, 1 / 64, 100  # the same negatives, where a solution is changed and not made anew
_PASSES, _OWN = 2, 0.4

_BATCH = 12  # settings trained in one call of the solver: enough to keep the lanes full, few enough to show progress


@dataclass(frozen=True)
class Trial:
    """The quality of a recipe: measures by name, each a figure per band.

    By cross-validation that is "macro_average_precision": averages over topics, then over folds. A topic counts in the
    folds where it has positives on both sides. "RARE" is the average over common topics trained with as few positives
    as the rarest topics have, "EXPECTED" that over all topics with RARE in the place of the thirty smallest ones, and
    "POOLED" that over all topics of two documents or more, each ranked once over the documents of all folds. On
    documents that were held out it is "ndcg@10" and others of `evaluate_at_k`. "average_sparsity", the number of
    support documents, is always among them.
    """

    recipe: Recipe
    measures: dict[str, dict[str, float]]
    measured_on: str = ""  # if not by cross-validation: which documents were held out

    @property
    def judged_by(self) -> tuple[str, str]:
        """The measure that is to be large, and its band."""
        return (_MAP, EXPECTED) if _MAP in self.measures else ("ndcg@10", "ALL")

    @property
    def goal(self) -> float:
        """The figure that is to be large."""
        measure, band = self.judged_by
        return self.measures[measure][band]

    def as_dict(self) -> dict[str, Any]:
        """Return the trial as JSON has it."""
        on = {"measured_on": self.measured_on} if self.measured_on else {}
        return {"recipe": asdict(self.recipe), **self.measures, **on}

    @classmethod
    def from_dict(cls, recipe: Recipe, figures: Mapping[str, Any]) -> Trial:
        """Return the trial that `as_dict` made these figures of, with a recipe in the place of its own."""
        measures = {name: of for name, of in figures.items() if isinstance(of, dict) and name != "recipe"}
        return cls(recipe, measures, figures.get("measured_on", ""))


def margin_settings(recipe: Recipe) -> list[Recipe]:
    """Return the recipe with each of the margins that the study of margins compares; its learner must be PAUM."""
    name = recipe.learner.get("name", "paum")
    if name != "paum":
        raise TextcatError(f"Recipe {recipe.name} trains {name}; only paum has margins to compare.")
    return [recipe.changed(**margins) for margins in _MARGINS]


def _is_the_papers(recipe: Recipe) -> bool:
    """Check whether a recipe has the margins that Li et al. (2002) chose, the yardstick of the study of margins."""
    learner = recipe.learner
    return learner.get("name", "paum") == "paum" and (learner.get("tau_neg"), learner.get("tau_pos")) == (1.0, 50.0)


def assign_folds(labels: sp.csc_matrix, n_folds: int, seed: int) -> np.ndarray:
    """Return each document's fold, so that the positives of rare topics are spread over as many as they can be.

    The sizes of folds differ by one at most.
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
    examples: Examples, learner: MarginClassifier, fold_of: np.ndarray, *, progress: Advance | None = None
) -> np.ndarray:
    """Score every document by rankers that were not trained on it: what thresholds and settings are chosen from.

    All folds are problems over the same rows, in one call of the solver. Vocabulary and document frequencies are those
    of all documents, which moves scores too little to matter for a threshold. Rows after those of documents are trained
    on in every fold, and not scored. The scores are in units of the solutions. The learner is not fitted.
    """
    n_documents, n_topics = len(fold_of), examples.labels.shape[1]
    labels = examples.labels[:n_documents]
    parts = [HeldOutFold(labels, np.flatnonzero(fold_of == number)) for number in range(fold_of.max() + 1)]
    problems = [problem for part in parts for problem in part.problems(learner, examples)]
    n_jobs, seed = learner.n_jobs, learner.random_state
    solutions = iter(solve(examples.rows, problems, n_jobs=n_jobs, seed=seed, keep=nothing, progress=progress))
    scores = np.empty((n_documents, n_topics), examples.rows.dtype)
    for part in parts:
        scores[part.held_out] = part.scores([next(solutions) for _ in range(n_topics)])
    return scores


def held_out_scores(
    examples: Examples, learner: MarginClassifier, fold_of: np.ndarray, *, progress: Advance | None = None
) -> np.ndarray:
    """Score documents by rankers that were not trained on them, as many as thresholds need, for a part of the cost.

    Training each topic again without every fold, as `out_of_fold_scores` does, costs several times the training
    itself. Where training comes near to a minimum, as that of PAUM with λ > 0 does, the whole ranker is led to the
    minimum without a fold by a few passes over the rows that decide: see `textcat.margin._folds`.

    All others are trained again, and two things are spared. A row that never causes an update can be left out without
    changing a ranker: a topic's rankers without a fold are trained on the rows alone that may cause one, which are the
    support of the whole ranker, the topic's positives, and the negatives that score highest. And a topic of many
    positives is judged by as many folds as hold enough of them: its scores are nan in the others. The learner must be
    fitted, without a kernel.
    """
    topics, n_folds = TopicProblems(examples, learner, fold_of), fold_of.max() + 1
    scores = np.full((len(fold_of), examples.labels.shape[1]), np.nan, topics.rows.dtype, order="F")
    with ThreadPoolExecutor(joblib.effective_n_jobs(learner.n_jobs)) as pool:
        tasks = [pool.submit(topics.score, topic, column) for topic, column in enumerate(scores.T)]
        try:
            for task in tasks:
                task.result()
                release_memory()
                if progress:
                    progress(n_folds)
        except BaseException:
            pool.shutdown(cancel_futures=True)  # the others would otherwise be trained before anyone hears of it
            raise
    return scores


class TopicProblems:
    """The problems of a fitted learner, each to be trained again without some folds."""

    def __init__(self, examples: Examples, learner: MarginClassifier, fold_of: np.ndarray):
        rows = examples.rows
        self.rows: sp.csr_matrix = rows if sp.issparse(rows) else rows[:]  # of rows on disk, whose entries stay there
        self._arrays = self.rows.indptr.astype(np.int64), self.rows.indices, self.rows.data
        n_rows, n_topics = examples.labels.shape
        self._n_documents = len(fold_of)
        self._fold_of = np.append(fold_of, np.full(n_rows - len(fold_of), -1))  # -1: in no fold
        self._documents = [np.flatnonzero(fold_of == fold) for fold in range(fold_of.max() + 1)]
        self._positives = rows_by_column(examples.labels)
        self._left_out = [NO_ROWS] * n_topics if examples.left_out is None else rows_by_column(examples.left_out)
        self._solutions = learner.solutions_
        self._rules = learner.rules_for(learner.prevalence_)
        self._settings = learner._settings(self.rows, learner.prevalence_)
        self._seed = learner.random_state
        self._work = local()

    def score(self, topic: int, scores: np.ndarray) -> None:
        """Write the scores of documents by a topic's rankers without the fold of each, for some of the folds."""
        left_out, solution = self._left_out[topic], self._solutions[topic]
        sums = dots(*self._arrays, np.arange(self.rows.shape[0]), np.asarray(solution.weights))
        of_whole = sums + sums.dtype.type(solution.bias)  # of all rows
        if _is_near_minimum(self._rules[topic], self._settings[topic]["lambda_"]):
            scores[:] = of_whole[: len(scores)] + self._changes(topic, of_whole)
        else:
            for without, documents in zip(self.without_folds(topic, of_whole), self._documents, strict=False):
                sums = dots(*self._arrays, documents, without.weights)
                scores[documents] = (sums + sums.dtype.type(without.bias)) / sums.dtype.type(without.unit)
        scores[left_out[left_out < len(scores)]] = np.nan  # who was not judged is in no sample

    def _changes(self, topic: int, scores: np.ndarray) -> np.ndarray:
        """Return what leaving out its fold changes in the score of each document, given those of all rows."""
        kept, solution, rule = self.deciding(topic, scores, _NEAR_MINIMUM), self._solutions[topic], self._rules[topic]
        dtype, n_rows = scores.dtype, len(scores)
        alpha, label = np.zeros(n_rows, dtype), np.full(n_rows, -1, dtype)
        alpha[solution.support] = np.abs(solution.alpha)
        label[self._positives[topic]] = 1
        threshold = np.where(label[kept] > 0, rule.threshold(1), rule.threshold(-1)).astype(dtype)
        order = np.random.default_rng(0).permutation(len(kept))  # documents may be sorted by topic
        if not hasattr(self._work, "lanes"):
            self._work.lanes = np.zeros((self.rows.shape[1], N_FOLDS + 1), dtype)
        fold_of, changes = self._fold_of, np.zeros(self._n_documents, dtype)
        for first in range(0, len(self._documents), N_FOLDS):
            lane = fold_of - first
            lane[(lane < 0) | (lane >= N_FOLDS)] = -1  # as rows in no fold are, whose number is -1
            parts = kept, lane[kept], label[kept], threshold, alpha[kept], scores[kept], order
            limits = self._settings[topic]["lambda_"], self._settings[topic]["rho"], _PASSES, _OWN
            of_rows, of_folds = leave_out_folds(*self._arrays, *parts, *limits, self._work.lanes)
            here = np.flatnonzero(lane[: self._n_documents] >= 0)
            changes[here] = of_folds[lane[here]]
            is_here = lane[kept] >= 0
            changes[kept[is_here]] = of_rows[is_here]
        return changes

    def without_folds(self, topic: int, scores: np.ndarray) -> list[Solution]:
        """Return the solutions of a topic without each of its first folds, given the scores by the whole ranker."""
        positives, kept = self._positives[topic], self.deciding(topic, scores)
        is_positive = np.zeros(self.rows.shape[0], bool)
        is_positive[positives] = True
        fold, is_positive = self._fold_of[kept], is_positive[kept]
        n_judging = int(np.clip(-(-len(self._documents) * _ENOUGH // max(len(positives), 1)), 1, len(self._documents)))
        problems = [
            Problem(
                np.flatnonzero(is_positive & (fold != judging)).astype(np.int32),
                self._rules[topic],
                np.flatnonzero(fold == judging).astype(np.int32),
                **self._settings[topic],
            )
            for judging in range(n_judging)
        ]
        return solve(self.rows[kept], problems, n_jobs=1, seed=self._seed, overwrite_X=True)

    def deciding(self, topic: int, scores: np.ndarray, near: tuple[float, float, int] | None = None) -> np.ndarray:
        """Return the rows that may cause an update, ascending, given the scores of all."""
        of_support, of_documents, least = near or (_OF_SUPPORT, _OF_DOCUMENTS, _LEAST)
        support, positives = self._solutions[topic].support, self._positives[topic]
        decides = np.zeros(self.rows.shape[0], bool)
        decides[support] = True
        decides[positives] = True
        decides[self._left_out[topic]] = True  # for now: they are none of the rest
        rest = np.flatnonzero(~decides[: self._n_documents])
        n_near = min(int(of_support * len(support) + max(of_documents * self._n_documents, least)), len(rest))
        if n_near:
            decides[rest[np.argpartition(-scores[rest], n_near - 1)[:n_near]]] = True
        decides[self._left_out[topic]] = False
        return np.flatnonzero(decides)


def _is_near_minimum(rule: Rule, lambda_: float) -> bool:
    """Check whether a rule's training ends near to the minimum that `textcat.margin._folds` leads to.

    Without λ it ends far from it, and without a margin the minimum is zero.
    """
    return lambda_ > 0 and isinstance(rule, (PAM, PAUM)) and rule.threshold(1) + rule.threshold(-1) > 0


def cross_validate(
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

    Vocabulary and document frequencies are those of the documents trained on: with those of all, a term that one of
    them shares with a held-out document would not be as rare as it is when new documents come. Within a fold, every
    (topic, setting) is a problem over the same rows, with the held-out ones left out. Recipes that follow each other
    and have the same features share their rows. The splits into folds are drawn by the seed and those after it: one
    split alone says little about topics of a few documents.
    """
    labels = corpus.labels(corpus.train)
    if not np.any(labels.sum(axis=0) > 1):
        raise TextcatError(f"No topic of corpus {corpus.name} has two training documents: there is nothing to compare.")
    parts = list(repeated_splits(labels, n_folds, n_repeats, seed))
    tokens: dict[str, Tokens] = {}  # their cache serves all recipes that make terms in the same way
    for _, alike in groupby(recipes, key=feature_key):
        same_features = list(alike)
        first = same_features[0]
        key = json.dumps(first.tokens, sort_keys=True)
        tokens[key] = tokens.get(key) or first.make_tokens()
        examples = list(examples_without([part.held_out for part in parts], corpus, first, tokens[key]))
        for start in range(0, len(same_features), _BATCH):
            tries = [_Try(recipe, labels) for recipe in same_features[start : start + _BATCH]]
            with ThreadPoolExecutor(1) as executor:  # a fold is measured while the next one is trained on
                tasks = []
                for part, of_part in zip(parts, examples, strict=True):
                    chosen = choose_bands(corpus.topics, part.sizes, DEFAULT_BANDS)
                    for each, solved in _train(tries, part, of_part, n_jobs):
                        tasks.append(executor.submit(each.measure, part, solved, chosen))
                    advance(len(tries))
            for task in tasks:
                task.result()
            yield from (each.trial() for each in tries)


def feature_key(recipe: Recipe) -> str:
    """Return a text that is the same for recipes with the same rows."""
    return json.dumps([recipe.tokens, recipe.features, recipe.topics], sort_keys=True)


def repeated_splits(labels: sp.csc_matrix, n_folds: int, n_repeats: int, seed: int) -> Iterator[HeldOutFold]:
    """Yield the folds of several splits, with simulated rare topics."""
    for split_seed in range(seed, seed + n_repeats):
        fold_of, random = assign_folds(labels, n_folds, split_seed), np.random.default_rng(split_seed)
        for number in range(n_folds):
            yield HeldOutFold(labels, np.flatnonzero(fold_of == number), random)


def _train(
    tries: Iterable[_Try], fold: HeldOutFold, examples: Examples, n_jobs: int | None
) -> Iterator[tuple[_Try, list[Solution]]]:
    """Yield each try's solutions on a fold's other documents, by one call of the solver for each seed."""
    same_seed: dict[int | None, list[_Try]] = {}
    for each in tries:
        same_seed.setdefault(each.learner.random_state, []).append(each)
    for seed, together in same_seed.items():
        problems = [list(fold.problems(each.learner, examples)) for each in together]
        solved = iter(solve(examples.rows, list(chain(*problems)), n_jobs=n_jobs, seed=seed, keep=nothing))
        yield from ((each, list(islice(solved, len(own)))) for each, own in zip(together, problems, strict=True))


class _Try:
    """A recipe, measured fold by fold."""

    def __init__(self, recipe: Recipe, labels: sp.csc_matrix):
        self.learner = recipe.make_learner()
        self._recipe, self._labels, self._scores = recipe, labels, np.zeros(labels.shape, np.float32)
        self._quality: list[dict[str, float]] = []
        self._sparsity: list[dict[str, float]] = []
        self._n_scored, self._pooled = 0, list[float]()

    def measure(self, fold: HeldOutFold, solutions: Sequence[Solution], chosen: Sequence[Band]) -> None:
        """Measure the recipe on a fold's own documents."""
        self._quality.append(fold.quality(solutions, chosen))
        support = np.array([len(solution.support) for solution in solutions])
        self._sparsity.append({band.name: float(support[list(band.topics)].mean()) for band in chosen})
        self._scores[fold.held_out] = fold.scores(solutions)
        self._n_scored += len(fold.held_out)
        if self._n_scored % len(self._scores) == 0:  # a split is complete
            precisions = average_precisions(self._labels, self._scores)
            precisions[fold.sizes < 2] = np.nan  # never in training and held out at once
            self._pooled.append(float(np.nanmean(precisions)))

    def trial(self) -> Trial:
        """Return the averages over the folds."""
        quality = {**_average(self._quality), POOLED: float(np.mean(self._pooled))}
        return Trial(self._recipe, {_MAP: quality, SPARSITY_MEASURE: _average(self._sparsity)})


class _RareTopic(NamedTuple):
    """A common topic that is made rare: most of its positives are left out, beside the held-out documents."""

    topic: int
    positives: np.ndarray
    left_out: np.ndarray


class HeldOutFold:
    """Held-out documents: from settings to problems without them, from the solutions to figures on them.

    The labels are those of all documents, held out are positions. Without a random generator, which draws the positives
    that simulated rare topics keep, no topic is simulated.
    """

    def __init__(self, labels: sp.csc_matrix, held_out: np.ndarray, random: np.random.Generator | None = None):
        self.held_out = held_out.astype(np.int32)
        self.labels = labels.tocsr()
        self.positives = rows_by_column(labels)
        self.sizes = np.array([len(rows) for rows in self.positives])
        self._held_out_labels = self.labels[held_out]
        self.trained = self.sizes - np.asarray(self._held_out_labels.sum(axis=0)).ravel()  # positives, per topic
        self.rare_topics = [] if random is None else list(self._simulate(random))
        self._rare_labels = self._held_out_labels[:, [rare.topic for rare in self.rare_topics]]

    def _simulate(self, random: np.random.Generator) -> Iterable[_RareTopic]:
        rare = np.sort(self.sizes)[:_N_RARE]
        for topic in np.flatnonzero(self.sizes >= _MIN_COMMON).tolist():
            trained = random.permutation(np.setdiff1d(self.positives[topic], self.held_out))
            n_kept = int(random.choice(rare))
            if n_kept < len(trained) < self.sizes[topic]:
                left_out = np.union1d(self.held_out, trained[n_kept:]).astype(np.int32)
                yield _RareTopic(topic, np.sort(trained[:n_kept]), left_out)

    def problems(self, learner: MarginClassifier, examples: Examples) -> Iterator[Problem]:
        """Yield a learner's problem for each topic, then for each simulated one.

        Rows after those of documents are never held out, and are examples of simulated topics, too.
        """
        n_documents, n_rows = self.labels.shape[0], examples.rows.shape[0]
        never = [NO_ROWS] * len(self.sizes) if examples.left_out is None else rows_by_column(examples.left_out)
        labelled = zip(rows_by_column(examples.labels), never, strict=True)
        further = [np.setdiff1d(rows[rows >= n_documents], out) for rows, out in labelled]
        topics = [(k, rows, self.held_out, self.trained[k]) for k, rows in enumerate(self.positives)]
        topics += [(rare.topic, rare.positives, rare.left_out, len(rare.positives)) for rare in self.rare_topics]
        parts = [
            (np.append(positives, further[k]), np.append(left_out, never[k]), int(n_trained) + len(further[k]))
            for k, positives, left_out, n_trained in topics
        ]
        prevalence = np.array([n_trained / max(1, n_rows - len(left_out)) for _, left_out, n_trained in parts])
        set_to = learner.rules_for(prevalence), learner._settings(examples.rows, prevalence)
        for (positives, left_out, _), rule, settings in zip(parts, *set_to, strict=True):
            yield Problem(positives, rule, left_out, **settings)

    def scores(self, solutions: Sequence[Solution]) -> np.ndarray:
        """Return the scores of the held-out documents for every topic, shape (n_held_out, n_topics)."""
        n = len(self.held_out)  # after them, what else was left out
        return np.column_stack([solution.held_out[:n] / solution.unit for solution in solutions[: len(self.positives)]])

    def quality(self, solutions: Sequence[Solution], chosen: Sequence[Band]) -> dict[str, float]:
        """Return the macro-averaged precision over each band, RARE and EXPECTED; nan where a band has no topic."""
        precisions = average_precisions(self._held_out_labels, self.scores(solutions))
        precisions[self.trained == 0] = np.nan  # nothing to learn from: no fault of the setting
        figures = {band.name: nanmean(precisions[list(band.topics)]) for band in chosen}
        scores = np.zeros(self._rare_labels.shape, np.float32)
        for k, (rare, solution) in enumerate(zip(self.rare_topics, solutions[len(self.positives) :], strict=True)):
            scores[:, k] = solution.held_out[np.searchsorted(rare.left_out, self.held_out)]
        figures[RARE] = nanmean(average_precisions(self._rare_labels, scores))
        figures[EXPECTED] = figures["ALL"]
        n = len(precisions)
        if n > _N_RARE and np.isfinite(figures[RARE]):
            common = nanmean(precisions[np.argsort(-self.sizes, kind="stable")[:-_N_RARE]])
            figures[EXPECTED] = ((n - _N_RARE) * common + _N_RARE * figures[RARE]) / n
        return figures


def nanmean(values: np.ndarray) -> float:
    return float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")


def _average(figures: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Average figures over folds, each over those that have it."""
    known = {band: [figure[band] for figure in figures if np.isfinite(figure[band])] for band in figures[0]}
    return {band: float(np.mean(values)) if values else float("nan") for band, values in known.items()}


def best_trial(trials: Sequence[Trial], tolerance: float = 0.0005) -> Trial:
    """Return the sparsest of the trials that rank as well as the yardstick.

    The yardstick is the paper's PAUM(1, 50) where it was cross-validated, over ALL, TOP10 and RARE; else the trial of
    the highest goal; the measure that trials are judged by may be lower by the tolerance. LAST30 is not compared: it
    changes far more between splits than between settings.
    """
    paper = next((trial for trial in trials if is_yardstick(trial)), None)
    reference = paper or max(trials, key=lambda trial: trial.goal)
    measure, band = reference.judged_by
    names = ("ALL", "TOP10", RARE) if paper else (band,)
    yardstick = [reference.measures[measure][band] - tolerance for band in names]
    figures = [[trial.measures[measure][band] for band in names] for trial in trials]
    # A band that no topic is in is nan, and no reason against a setting.
    as_good = [trial for trial, of in zip(trials, figures, strict=True) if not any(map(lt, of, yardstick))]
    return min(as_good, key=lambda trial: trial.measures[SPARSITY_MEASURE]["ALL"])


def is_yardstick(trial: Trial) -> bool:
    return _MAP in trial.measures and _is_the_papers(trial.recipe)
