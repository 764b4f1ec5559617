"""Scores of several models for the same documents → how they differ per band and topic, with p-values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from textcat.evaluation.ranking import DEFAULT_BANDS, Band, Evaluation, bands, evaluate
from textcat.evaluation.resampling import MEASURES, interval, resampled

# Sign flips for the test over topics: they cost little, and the smallest p-value they can give is 1/10001.
_N_FLIPS = 10_000

# Rounding must not decide whether a sum of flipped differences is as large as the sum itself: how much may be missing.
_ROUNDING = 1e-12

_OF_TOPICS = {"macro_average_precision": "average_precision", "macro_f1": "f1"}


@dataclass(frozen=True)
class Difference:
    """By how much a model is better than the first one, and whether that may be chance."""

    difference: float
    interval: tuple[float, float]
    """95 % bootstrap interval over documents."""
    p_documents: float
    """Would other documents show it? See `paired_bootstrap`."""
    p_topics: float | None
    """Would other topics show it? See `sign_flip_test`; None for a micro-average, which is no mean over topics."""


@dataclass(frozen=True)
class MeasureComparison:
    """A measure of one band; values are None if none of its topics has a positive, differences then, too."""

    band: str
    measure: str
    values: tuple[float | None, ...]
    """A value per model."""
    differences: tuple[Difference | None, ...]
    """To the first model, one per other model."""


@dataclass(frozen=True)
class TopicComparison:
    """A topic that has a positive: its average precision by each model."""

    topic: str
    train_positives: int
    test_positives: int
    average_precision: tuple[float, ...]
    differences: tuple[float, ...]
    """To the first model, one per other model."""


@dataclass(frozen=True)
class Comparison:
    """Models side by side: measures band by band, and topics, those of the largest difference first."""

    test_documents: int
    n_resamples: int
    seed: int
    measures: tuple[MeasureComparison, ...]
    topics: tuple[TopicComparison, ...]


def compare(
    scores: Sequence[ArrayLike],
    Y: Any,
    topics: Sequence[str],
    train_sizes: ArrayLike,
    train_documents: int,
    *,
    spec: str | Sequence[str] = DEFAULT_BANDS,
    thresholds: Sequence[ArrayLike] | None = None,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Comparison:
    """Compare the first of several models with each of the others, on the same documents and topics.

    The p-values are not corrected for the number of comparisons.

    Parameters
    ----------
    scores : sequence of array-like of shape (n_documents, n_topics)
        One per model; models may have scales of their own.
    Y : array-like or scipy sparse of shape (n_documents, n_topics), bool or 0/1
    topics, train_sizes, train_documents, spec
        As in `textcat.evaluation.ranking.evaluate`.
    thresholds : sequence of (float or array-like of shape (n_topics,)), optional
        One per model, by default 0 for each.
    n_resamples : int, default 1000
        Bootstrap resamples of the documents.
    seed : int, default 0

    Returns
    -------
    Comparison
    """
    given = [0.0] * len(scores) if thresholds is None else list(thresholds)
    chosen = bands(topics, train_sizes, spec)
    evaluations, samples = [], []
    for values, threshold in zip(scores, given, strict=True):
        evaluations.append(evaluate(values, Y, topics, train_sizes, train_documents, spec=spec, threshold=threshold))
        samples.append(resampled(values, Y, chosen, threshold=threshold, n_resamples=n_resamples, seed=seed))
    return Comparison(
        test_documents=evaluations[0].test_documents,
        n_resamples=n_resamples,
        seed=seed,
        measures=tuple(
            _measure(band, place, name, evaluations, [sample[name][place] for sample in samples], seed)
            for place, band in enumerate(chosen)
            for name in MEASURES
        ),
        topics=_topics(evaluations),
    )


def paired_bootstrap(measured: float, differences: ArrayLike) -> float:
    """Return how often resampled differences are as far from their mean as the measured one is from 0.

    Two-sided, ``p = (1 + |{δ: |δ - mean| ≥ |measured|}|) / (1 + n)`` (Noreen's shift method): under the hypothesis that
    the models are equally good, differences vary around 0 as they vary around their mean.

    Parameters
    ----------
    measured : float
        The difference on the documents themselves.
    differences : array-like of shape (n_resamples,)
        Of two models on the same resamples; those that are nan are left out.
    """
    known = np.asarray(differences)[~np.isnan(differences)]
    mean = known.mean() if known.size else 0.0
    return _p_value(np.abs(known - mean), abs(measured), rounding=_ROUNDING * np.abs(known).max(initial=0.0))


def sign_flip_test(differences: ArrayLike, seed: int = 0) -> float:
    """Return how often the mean of differences is as far from 0 if their signs are thrown by a coin.

    The paired randomisation test of information retrieval (Smucker, Allan & Carterette, "A comparison of statistical
    significance tests for information retrieval evaluation", 2007), two-sided, with 10,000 throws: which of two equally
    good models ranks a topic better is chance.

    Parameters
    ----------
    differences : array-like of shape (n_topics,)
        Those that are nan are left out.
    seed : int, default 0
    """
    known = np.asarray(differences, np.float64)[~np.isnan(differences)]
    heads = np.random.default_rng(seed).integers(0, 2, (_N_FLIPS, known.size), dtype=np.int8)
    # Σ±d = 2·Σ_{heads} d - Σd
    sums = 2 * np.where(heads, known, 0.0).sum(axis=1) - known.sum()
    return _p_value(np.abs(sums), abs(float(known.sum())), rounding=_ROUNDING * np.abs(known).sum())


def _p_value(extremes: NDArray[np.float64], measured: float, rounding: float) -> float:
    return (1 + int(np.count_nonzero(extremes >= measured - rounding))) / (1 + len(extremes))


def _measure(
    band: Band,
    place: int,
    name: str,
    evaluations: Sequence[Evaluation],
    samples: Sequence[NDArray[np.float64]],
    seed: int,
) -> MeasureComparison:
    values = [getattr(evaluation.bands[place], name) for evaluation in evaluations]
    per_topic = [_of_topics(evaluation, band, name) for evaluation in evaluations]
    differences = [
        None
        if value is None
        else Difference(
            difference=value - values[0],
            interval=interval(value - values[0], sample - samples[0]),
            p_documents=paired_bootstrap(value - values[0], sample - samples[0]),
            p_topics=sign_flip_test(of_topics - per_topic[0], seed) if name in _OF_TOPICS else None,
        )
        for value, sample, of_topics in zip(values[1:], samples[1:], per_topic[1:], strict=True)
    ]
    return MeasureComparison(band.name, name, tuple(values), tuple(differences))


def _of_topics(evaluation: Evaluation, band: Band, name: str) -> NDArray[np.float64]:
    """Return the values that a macro-average is the mean of; nan for a topic without a positive."""
    rows = [evaluation.topics[topic] for topic in band.topics]
    return np.array([getattr(row, _OF_TOPICS.get(name, "f1")) for row in rows], dtype=np.float64)


def _topics(evaluations: Sequence[Evaluation]) -> tuple[TopicComparison, ...]:
    rows = []
    for of_models in zip(*(evaluation.topics for evaluation in evaluations), strict=True):
        row, values = of_models[0], [of_model.average_precision for of_model in of_models]
        known = tuple(value for value in values if value is not None)
        if known:
            differences = tuple(value - known[0] for value in known[1:])
            rows.append(TopicComparison(row.topic, row.train_positives, row.test_positives, known, differences))
    return tuple(sorted(rows, key=lambda row: (-max(map(abs, row.differences), default=0.0), row.topic)))
