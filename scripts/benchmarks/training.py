"""(a) The same vectors → a ranker per topic."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import peers
import texts
from measuring import ROUNDS, Task, Timing, interleaved, keep_fastest
from pages import Conditions, Page
from scipy import sparse
from sklearn.linear_model import Perceptron, SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from textcat.corpus.documents import Corpus
from textcat.evaluation.metrics import average_precisions
from textcat.margin import rules
from textcat.margin.problems import Problem
from textcat.margin.solve import N_LANES, solve
from textcat.recipes.recipe import Recipe, read_recipe

JOBS = 2
OURS, ONE_JOB, ONE_LANE = f"textcat, {JOBS} jobs", "textcat, 1 job", "textcat, 1 job, 1 lane"
BACKENDS = ("loky", "threading")
# LinearSVC works in float64: what it gets is converted beforehand, not topic by topic.
ONE_VS_REST: dict[str, tuple[Callable[[], Any], type]] = {
    "LinearSVC": (LinearSVC, np.float64),
    "Perceptron": (Perceptron, np.float32),
    "SGDClassifier": (SGDClassifier, np.float32),
}
MODULES = {"fastText": "fasttext", "omikuji": "omikuji", "Vowpal Wabbit": "vowpalwabbit"}
PASSES = (1, 10)


@dataclass(frozen=True)
class Vectors:
    """Rows and labels of both parts of a corpus."""

    corpus: Corpus
    X: sparse.csr_matrix
    Y: Any
    X_test: sparse.csr_matrix
    Y_test: Any

    @classmethod
    def of(cls, corpus: Corpus, recipe: Recipe) -> Vectors:
        """Make them by a recipe."""
        features = recipe.make_features()
        return cls(
            corpus,
            features.fit_transform(corpus.train),
            corpus.labels(corpus.train).tocsr(),
            features.transform(corpus.test),
            corpus.labels(corpus.test),
        )


def measured(corpus: Corpus, rounds: int) -> list[Page]:
    """Return the page of training."""
    recipe, conditions = read_recipe("paum-2002"), Conditions("paum-2002")
    vectors = Vectors.of(corpus, recipe)
    with tempfile.TemporaryDirectory() as folder:
        contenders = {**_ours(vectors, recipe), **_one_vs_rest(vectors), **_others(vectors, Path(folder))}
        timings = interleaved({name: task for name, (task, _) in contenders.items()}, rounds)
        for name in ONE_VS_REST:
            keep_fastest(timings, [_one_vs_rest_name(name, backend) for backend in BACKENDS])
        quality = {
            name: float(np.nanmean(average_precisions(vectors.Y_test, contenders[name][1](timing.result))))
            for name, timing in timings.items()
        }
    text = f"""All {len(corpus.topics)} topics on {vectors.X.shape[0]} rows of {vectors.X.shape[1]} features, those of
recipe
paum-2002. textcat trains PAUM({recipe.learner["tau_neg"]:g}, {recipe.learner["tau_pos"]:g}) until every topic has an
epoch without an update. scikit-learn's estimators have their defaults, in `OneVsRestClassifier(n_jobs={JOBS})` under
the faster of joblib's backends {" and ".join(BACKENDS)}. fastText (ova, 25 epochs, learning rate 0.5) and omikuji
(Parabel) have {peers.THREADS} threads, Vowpal Wabbit (multilabel_oaa, logistic) has one; their times include reading
their input file. fastText makes its own vectors out of the same terms. MAP: mean over the topics of the average
precision on the test documents.

{ROUNDS.format(rounds)}"""
    rows, notes = _training_rows(timings, quality), _scaling(timings)
    return [Page("train-vectors", "Training on the same vectors", conditions.head(), text, rows, notes)]


def _training_rows(timings: Mapping[str, Timing], quality: Mapping[str, float]) -> list[dict[str, Any]]:
    ours = timings[OURS]
    rows = [
        {"what": name, "seconds": timing, "times ours": timing.ratio(ours), "MAP": f"{quality[name]:.3f}"}
        for name, timing in sorted(timings.items(), key=lambda item: item[1].median)
    ]
    missing = [name for name, module in MODULES.items() if not peers.installed(module)]
    rows += [{"what": name, "seconds": "not installable here", "times ours": None, "MAP": None} for name in missing]
    return rows


def _scaling(timings: Mapping[str, Timing]) -> str:
    one = timings[ONE_JOB]
    return (
        f"1 job takes {one.ratio(timings[OURS])} times as long as {JOBS}; one lane takes "
        f"{timings[ONE_LANE].ratio(one)} times as long as {N_LANES}.\nOne lane is the same compiled loop with "
        f"{N_LANES - 1} of its {N_LANES} lanes empty, not a loop written for one topic."
    )


# --- who takes part: name → what to time, and how its result scores the test documents --------------------------------

Contenders = dict[str, tuple[Task, Callable[[Any], np.ndarray]]]


def _ours(vectors: Vectors, recipe: Recipe) -> Contenders:
    def scored(learner: Any) -> np.ndarray:
        return learner.decision_function(vectors.X_test)

    def scored_solutions(solutions: Any) -> np.ndarray:
        weights = np.array([solution.weights for solution in solutions])
        return vectors.X_test @ weights.T + np.array([solution.bias for solution in solutions], np.float32)

    def fitted(n_jobs: int) -> Task:
        return Task(lambda _: recipe.make_learner(n_jobs=n_jobs).fit(vectors.X, vectors.Y))

    problems = _problems(vectors, recipe)
    return {
        OURS: (fitted(JOBS), scored),
        ONE_JOB: (fitted(1), scored),
        ONE_LANE: (Task(lambda _: solve(vectors.X, problems, lanes=1)), scored_solutions),
    }


def _problems(vectors: Vectors, recipe: Recipe) -> list[Problem]:
    """Make the problems that the recipe's learner makes."""
    learner: Any = recipe.make_learner()
    rule = rules.PAUM(learner.tau_neg, learner.tau_pos, learner.eta)
    columns = vectors.Y.tocsc()
    return [
        Problem(
            np.sort(rows).astype(np.int32),
            rule,
            lambda_=learner.lambda_,
            rho=learner.rho,
            max_epochs=learner.max_epochs,
        )
        for rows in np.split(columns.indices, columns.indptr[1:-1])
    ]


def _one_vs_rest_name(name: str, backend: str) -> str:
    return f"scikit-learn {name}, {JOBS} jobs ({backend})"


def _one_vs_rest(vectors: Vectors) -> Contenders:
    def contender(make: Callable[[], Any], dtype: type, backend: str) -> tuple[Task, Callable[[Any], np.ndarray]]:
        X, X_test = vectors.X.astype(dtype), vectors.X_test.astype(dtype)

        def fit(_: Any) -> Any:
            with joblib.parallel_config(backend=backend):
                return OneVsRestClassifier(make(), n_jobs=JOBS).fit(X, vectors.Y)

        return Task(fit), lambda learner: learner.decision_function(X_test)

    return {
        _one_vs_rest_name(name, backend): contender(make, dtype, backend)
        for name, (make, dtype) in ONE_VS_REST.items()
        for backend in BACKENDS
    }


def _others(vectors: Vectors, folder: Path) -> Contenders:
    makers = {"fastText": _fasttext, "omikuji": _omikuji, "Vowpal Wabbit": _vowpal_wabbit}
    contenders: Contenders = {}
    for name, module in MODULES.items():
        if peers.installed(module):
            contenders |= makers[name](vectors, folder)
    return contenders


def _fasttext(vectors: Vectors, folder: Path) -> Contenders:
    corpus, path = vectors.corpus, folder / "fasttext.txt"
    train, test = (texts.token_lines(texts.plain(part), terms_only=True) for part in (corpus.train, corpus.test))
    peers.write_fasttext(path, train, corpus.train, corpus.topics)
    task = Task(lambda _: peers.train_fasttext(path))
    return {"fastText": (task, lambda model: peers.fasttext_scores(model, test, corpus.topics))}


def _omikuji(vectors: Vectors, folder: Path) -> Contenders:
    path = folder / "omikuji.txt"
    peers.write_omikuji(path, vectors.X, vectors.Y)
    task = Task(lambda _: peers.train_omikuji(path))
    return {"omikuji": (task, lambda model: peers.omikuji_scores(model, vectors.X_test, vectors.Y.shape[1]))}


def _vowpal_wabbit(vectors: Vectors, folder: Path) -> Contenders:
    path, test = folder / "vw.txt", folder / "vw-test.txt"
    peers.write_vowpal_wabbit(path, vectors.X, vectors.Y)
    peers.write_vowpal_wabbit(test, vectors.X_test, vectors.Y_test)

    def task(passes: int) -> Task:
        return Task(lambda _: peers.train_vowpal_wabbit(path, vectors.Y.shape[1], passes))

    def scored(model: Any) -> np.ndarray:
        return peers.vowpal_wabbit_scores(model, test)

    return {f"Vowpal Wabbit, passes: {passes}": (task(passes), scored) for passes in PASSES}
