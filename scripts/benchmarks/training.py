"""Training: whole processes beside scikit-learn's pipelines, training alone on the same rows, and texts to rows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import sklearn_pipeline
import titles
from harness import Cost, Row, Task, Timing, Work, cost, interleaved, python
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from textcat.corpus.catalogue import open_corpus
from textcat.corpus.documents import Corpus
from textcat.evaluation.evaluation import Evaluation
from textcat.evaluation.metrics import average_precisions
from textcat.features.tfidf import TfIdf
from textcat.features.tokens import Tokens
from textcat.model import storage
from textcat.recipes.recipe import default_recipe, read_recipe
from textcat.training.examples import CountedCorpus

RECIPES = ("default", "paum")
PEER = "LinearSVC(C=1), one-vs-rest"
N_TITLES, N_TITLES_QUICK = 100_000, 2_000


def reuters(work: Work) -> Corpus:
    """Open Reuters-21578; for a quick look newswire."""
    return open_corpus("newswire") if work.quick else open_corpus("reuters21578", download=False)


def others(work: Work) -> Iterator[Corpus]:
    """Open 20 Newsgroups, and a sample of the titles of yso-finna-en."""
    if not work.quick:
        yield open_corpus("20newsgroups", download=False)
    path = work.path(f"{titles.NAME}.jsonl")
    if not path.exists():
        titles.write(titles.sample(*titles.read_all(), N_TITLES_QUICK if work.quick else N_TITLES), path)
    yield open_corpus(path)


def recipes_for(corpus: Corpus) -> list[str]:
    """Name the recipe that `textcat train` takes for a corpus where none is named, and the two of every table."""
    return list(dict.fromkeys([default_recipe().for_corpus(corpus)[0].name, *RECIPES]))


# --- whole processes -------------------------------------------------------------------------------------------------


def whole_processes(work: Work) -> list[Row]:
    """Train on Reuters-21578 from the raw archive to an evaluated, saved model, beside scikit-learn's pipelines."""
    corpus = reuters(work)
    commands = {_named(recipe): _train(work, corpus, recipe) for recipe in RECIPES}
    once: set[str] = set()
    for backend in ("loky", "threading"):
        name = f"scikit-learn, SGDClassifier ({backend})"
        commands[name] = python("sklearn_pipeline", corpus.name, work.path(name), backend)
    for learner in sklearn_pipeline.LEARNERS:
        name = f"scikit-learn, rows as default's, {learner}, calibrated"
        commands[name] = python("sklearn_pipeline", corpus.name, work.path(name), "loky", learner)
        once.add(name)
    timings = _processes(commands, work.rounds, once)
    rows = []
    for name, timing in timings.items():
        quality = _evaluation(Path(work.path(name)))
        ratios = {f"time of {recipe} / this": timings[_named(recipe)].ratio(timing) for recipe in RECIPES}
        bands = {band.band: f"{band['macro_average_precision']:.3f}" for band in quality.bands}
        rows.append({"what": name, "seconds": timing, **ratios, **_memory(timing), **bands, **_f1(quality)})
    return rows


def whole_processes_of_others(work: Work) -> list[Row]:
    """Train on other corpora by the recipe that they get by default, and by those of every table."""
    rows = []
    for corpus in others(work):
        timings = _processes({_named(r): _train(work, corpus, r) for r in recipes_for(corpus)}, work.rounds)
        for name, timing in timings.items():
            quality = _evaluation(work.path(name))
            ratio, average = timing.ratio(timings[_named("paum")]), quality.bands[0]["macro_average_precision"]
            row = {"corpus": corpus.name, "what": name, "seconds": timing, "times paum's": ratio, **_memory(timing)}
            rows.append(row | {"MAP": f"{average:.3f}", **_f1(quality)})
    return rows


def _named(recipe: str) -> str:
    return f"textcat train, recipe {recipe}"


def _train(work: Work, corpus: Corpus, recipe: str) -> list[object]:
    source = work.path(corpus.name) if corpus.name.endswith(".jsonl") else corpus.name
    return ["textcat", "train", source, "--recipe", recipe, "--force", "--out", work.path(_named(recipe))]


def _processes(
    commands: Mapping[str, Sequence[object]], rounds: int, once: set[str] = frozenset()
) -> Mapping[str, Timing]:
    def task(name: str) -> Task:
        return Task(lambda _: cost(commands[name]), once=name in once)

    return interleaved({name: task(name) for name in commands}, rounds)


def _evaluation(folder: Path) -> Evaluation:
    path = folder / "evaluation.json"
    return Evaluation.from_dict(json.loads(path.read_text())) if path.exists() else storage.load(folder).evaluation


def _memory(timing: Timing) -> dict[str, str]:
    costs: list[Cost] = timing.results
    return {"peak memory, added up": f"{max(one.rss_bytes for one in costs) / 1e6:.0f} MB"}


def _f1(evaluation: Evaluation) -> dict[str, str]:
    of_all = evaluation.bands[0]
    return {"micro F1": f"{of_all['micro_f1']:.3f}", "macro F1": f"{of_all['macro_f1']:.3f}"}


# --- training alone --------------------------------------------------------------------------------------------------


def alone(work: Work) -> list[Row]:
    """Train all topics on the rows of the default recipe of each corpus by textcat and by LinearSVC."""
    return [row for corpus in (reuters(work), *others(work)) for row in alone_on(corpus, work)]


def alone_on(corpus: Corpus, work: Work) -> list[Row]:
    """Train all topics of a corpus."""
    name = recipes_for(corpus)[0]
    # Without vectors, whose dimensions would be further columns.
    recipe, ours = read_recipe(name).with_settings("topics.vectors=none"), f"textcat, recipe {name}"
    counted = CountedCorpus(corpus, recipe)
    features = counted.fit(recipe.make_features())
    X, Y, left_out = counted.examples(features)
    X_test, Y_test, X64 = features.transform(corpus.test), corpus.labels(corpus.test), X.astype(np.float64)

    def peer(_: Any) -> Any:
        with joblib.parallel_config(backend="threading"):
            return OneVsRestClassifier(LinearSVC(C=1), n_jobs=work.jobs).fit(X64, Y)

    timings = interleaved(
        {ours: Task(lambda _: recipe.make_learner(n_jobs=work.jobs).fit(X, Y, left_out=left_out)), PEER: Task(peer)},
        work.rounds,
    )
    return [
        {
            "corpus": corpus.name,
            "rows × features": f"{X.shape[0]} × {X.shape[1]}",
            "what": name,
            "seconds": timing,
            "times LinearSVC's": timing.ratio(timings[PEER]),
            "MAP": f"{np.nanmean(average_precisions(Y_test, timing.results[-1].decision_function(X_test))):.3f}",
        }
        for name, timing in timings.items()
    ]


# --- texts to rows ---------------------------------------------------------------------------------------------------


def rows_of_texts(work: Work) -> list[Row]:
    """Make rows of all texts of Reuters-21578, in one process and one thread."""
    corpus, peer = reuters(work), "scikit-learn TfidfVectorizer"
    texts = sklearn_pipeline.joined([*corpus.train, *corpus.test])
    tasks = {
        "textcat TfIdf": Task(lambda tfidf: tfidf.fit_transform(texts), lambda: TfIdf(Tokens().prepare())),
        peer: Task(lambda vectorizer: vectorizer.fit_transform(texts), TfidfVectorizer),
    }
    timings = interleaved(tasks, work.rounds)
    return [
        {
            "what": name,
            "seconds": timing,
            "times TfidfVectorizer's": timing.ratio(timings[peer]),
            "features": timing.results[-1].shape[1],
        }
        for name, timing in timings.items()
    ]
