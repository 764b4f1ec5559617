"""Conditions of `textcat compare --fail-if`: how often equally good models fail by them, and how often worse ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from harness import Row, Work
from joblib import Parallel, delayed
from numpy.typing import NDArray
from training import reuters

from textcat.corpus.documents import Corpus
from textcat.evaluation.evaluation import Evaluation, evaluate_scores
from textcat.evaluation.gates import LEVEL, macro_interval
from textcat.evaluation.significance import OF_TOPICS, centred_interval, resampled_measures
from textcat.model.measure import evaluate_tagger
from textcat.recipes.recipe import read_recipe
from textcat.training.train import train

PAIRS, PAIRS_OF_WORSE, PAIRS_QUICK = 1000, 200, 10  # of equal models, and of models of which one is worse
MODELS, LOSS, RESAMPLES = 6, 0.02, 400
NINE_TENTHS, FEWER = 0.9, 0.7  # of the training documents
MEASURES = ("macro_average_precision", "macro_f1")
LIMITS = (0.0, -0.005)


class Model(NamedTuple):
    """What a model says of the test documents."""

    scores: NDArray[np.float64]  # (n_documents, n_topics)
    cut: NDArray[np.float64]  # the same shape: a document gets a topic if its score is larger


class Test(NamedTuple):
    """The test documents that all models are measured on."""

    relevant: NDArray[np.int8]  # (n_documents, n_topics)
    sizes: NDArray[np.int64]

    def evaluation(self, model: Model, drawn: NDArray[np.int64] | slice = slice(None)) -> Evaluation:
        """Measure a model on the documents that are drawn."""
        names = [str(k) for k in range(len(self.sizes))]
        of_model = {"threshold": model.cut[drawn], "spec": "ALL"}
        return evaluate_scores(model.scores[drawn], self.relevant[drawn], names, self.sizes, 1, **of_model)


def measure(work: Work) -> list[Row]:
    """Draw the test documents of Reuters-21578 anew for each pair of models, and decide the conditions."""
    corpus, random = reuters(work), np.random.default_rng(0)
    test, first = _model(corpus, corpus.train)
    n = len(corpus.train)

    def trained(share: float) -> Model:
        chosen = np.sort(random.choice(n, int(share * n), replace=False)).tolist()
        return _model(corpus, [corpus.train[k] for k in chosen])[1]

    equal, fewer = [trained(NINE_TENTHS) for _ in range(MODELS)], [trained(FEWER) for _ in range(MODELS)]
    noisy = _with_loss(test, first, random.normal(size=first.scores.shape) * first.scores.std(axis=0))
    kinds = {
        "equal: each document's scores by either model": lambda seed: _swapped(equal, seed),
        f"MAP lower by {LOSS}: noise on the scores": lambda seed: (first, noisy),
        f"trained on {FEWER:.0%} instead of {NINE_TENTHS:.0%} of the documents": lambda seed: (
            equal[seed % MODELS],
            fewer[seed // MODELS % MODELS],
        ),
    }
    rows: list[Row] = []
    for number, (kind, pair) in enumerate(kinds.items()):
        seeds = range(PAIRS_QUICK if work.quick else PAIRS_OF_WORSE if number else PAIRS)
        jobs = (delayed(_decided)(test, *pair(seed), seed) for seed in seeds)
        found = np.array(list(Parallel(n_jobs=work.jobs)(jobs)))  # (n_pairs, n_measures, 1 + n_bounds)
        rows += _rows(kind, found)
    return rows


def _model(corpus: Corpus, documents: object) -> tuple[Test, Model]:
    tagger = train(replace(corpus, train=documents), read_recipe("default"))
    scored = evaluate_tagger(tagger, corpus).scored
    assert scored is not None
    columns = [tagger.topics.index(topic) for topic in corpus.topics if topic in tagger.topics]
    sizes = tagger.facts.train_sizes[columns]
    relevant = scored.relevant.toarray()[:, columns].astype(np.int8)
    scores = np.asarray(scored.scores, np.float64)[:, columns]
    return Test(relevant, sizes), Model(scores, np.broadcast_to(scored.threshold, scored.scores.shape)[:, columns])


def _swapped(models: list[Model], seed: int) -> tuple[Model, Model]:
    """Return two models of the same expected quality: each document's scores are those of either of two models."""
    random = np.random.default_rng((1, seed))
    one, other = (models[k] for k in random.choice(len(models), 2, replace=False))
    is_one = random.random((len(one.scores), 1)) < 0.5
    return tuple(  # type: ignore[return-value]
        Model(*(np.where(chosen, *arrays) for arrays in zip(one, other, strict=True))) for chosen in (is_one, ~is_one)
    )


def _with_loss(test: Test, model: Model, noise: NDArray[np.float64]) -> Model:
    """Return a model with so much noise that its MAP on all test documents is lower by LOSS."""
    best = test.evaluation(model).bands[0][MEASURES[0]] or 0.0
    low, high = 0.0, 4.0
    for _ in range(20):
        middle = (low + high) / 2
        worse = Model(model.scores + middle * noise, model.cut)
        loss = best - (test.evaluation(worse).bands[0][MEASURES[0]] or 0.0)
        low, high = (low, middle) if loss > LOSS else (middle, high)
    return worse


def _decided(test: Test, old: Model, new: Model, seed: int) -> list[list[float]]:
    """Return, for each measure, the difference on documents drawn anew, and upper bounds of it by two methods."""
    drawn = np.random.default_rng((2, seed)).integers(0, len(old.scores), len(old.scores))
    evaluations = [test.evaluation(model, drawn) for model in (old, new)]
    samples = [resampled_measures(evaluation, RESAMPLES, seed).bands for evaluation in evaluations]
    return [list(_bounds(measure, evaluations, [sample[measure][0] for sample in samples])) for measure in MEASURES]


def _bounds(measure: str, evaluations: list[Evaluation], resamples: list[NDArray[np.float64]]) -> Iterator[float]:
    values = np.array(
        [[getattr(row, OF_TOPICS[measure]) for row in evaluation.topics] for evaluation in evaluations], np.float64
    )
    of_topics, resampled = values[1] - values[0], resamples[1] - resamples[0]
    positives = [row.test_positives for row in evaluations[0].topics]
    difference = float(np.nanmean(of_topics))
    yield difference
    n_means = 2 if measure == "macro_f1" else 1
    yield macro_interval(difference, resampled, of_topics, positives, n_means=n_means)[1]
    yield centred_interval(difference, resampled, LEVEL)[1]


def _rows(kind: str, found: NDArray[np.float64]) -> Iterator[Row]:
    names = ("as shipped", "bootstrap alone")
    for number, title in enumerate(("MAP", "macro F1")):
        differences, *bounds = found[:, number].T
        for name, bound in zip(names, bounds, strict=True):
            yield {
                "new model": kind,
                "pairs": len(found),
                "measure": title,
                "mean difference": f"{differences.mean():+.4f}",
                "sd": f"{differences.std(ddof=1):.4f}",
                "bound": name,
                **{f"fails by < {limit:g}": f"{(bound < limit).mean():.1%}" for limit in LIMITS},
            }
