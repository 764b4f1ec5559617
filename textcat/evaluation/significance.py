"""Bootstrap intervals of measures, and comparisons of models per topic and per band (set of topics), with p-values.

`n_resamples` is the number of bootstrap resamples of the documents, by default 1,000.
"""

import math
import string
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from textcat.base.errors import TextcatError
from textcat.base.markup import html_table
from textcat.base.settings import check_whole_number
from textcat.evaluation.evaluation import TITLES, Evaluation

OF_TOPICS = {"macro_average_precision": "average_precision", "macro_f1": "f1"}
# Sign flips of the test over topics: they are cheap; the smallest possible p-value is 1/10001.
_N_FLIPS = 10_000
# Relative tolerance when a sum of flipped differences is compared with the original sum, against rounding errors.
_ROUNDING = 1e-12
# Maximum size of the table of draws in memory: 64 MB of int32.
NUMBERS_AT_ONCE = 1 << 24


class ResampledMeasures(NamedTuple):
    """The values of measures on resamples of the documents; a value is nan if no topic has a positive."""

    bands: dict[str, NDArray[np.float64]]
    """By name of the measure, shape (n_rows, n_resamples), with the rows of `Evaluation.rows`."""
    topics: dict[str, NDArray[np.float64]] | None
    """The average precision and F1 of each topic, shape (n_topics, n_resamples); None if topics are not measured."""


def resampled_measures(evaluation: Evaluation, n_resamples: int = 1000, seed: int = 0) -> ResampledMeasures:
    """Measure an evaluation on bootstrap resamples of its documents, each of the same size, drawn with replacement.

    The draws depend only on the seed and the number of documents, so values of two models can be subtracted.
    """
    check_whole_number(n_resamples, 1, "The number of resamples")
    if evaluation.sample is None:
        raise TextcatError(
            "Only the figures of this evaluation were kept, and resampling needs the scores: "
            "measure on a corpus that has test documents."
        )
    draws = bootstrap_draws(evaluation.test_documents, n_resamples, seed)
    values, of_topics = evaluation.sample.resampled(draws)
    return ResampledMeasures({name: values[:, k] for k, name in enumerate(evaluation.sample.measures)}, of_topics)


def centred_interval(measured: float, values: ArrayLike, level: float = 0.95) -> tuple[float, float]:
    """Return the percentile interval of resampled values, shifted so that their mean is the measured value.

    Topics with few positives rank better in resamples than in the sample, because documents ranked above a positive may
    be absent; plain percentiles would often exclude the measured value. Values that are nan are left out; if all values
    are nan, both bounds are nan.
    """
    defined = np.asarray(values)[~np.isnan(values)]
    if not defined.size:
        return math.nan, math.nan
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2]) - defined.mean() + measured
    return float(low), float(high)


def add_intervals(evaluation: Evaluation, *, n_resamples: int, seed: int = 0) -> Evaluation:
    """Return a copy of an evaluation with bootstrap intervals for the measures in its `sample.measures`, by band.

    Raise TextcatError if the evaluation has neither scores nor each document's measures: see `Evaluation.sample`.
    """
    samples = resampled_measures(evaluation, n_resamples, seed).bands
    rows = [
        replace(row, intervals={name: interval_of_resamples(row[name], values[k]) for name, values in samples.items()})
        for k, row in enumerate(evaluation.rows)
    ]
    first = len(rows) - len(evaluation.bands)
    return replace(evaluation, overall=rows[0] if first else None, bands=tuple(rows[first:]))


def interval_of_resamples(measured: float | None, values: NDArray[np.float64]) -> tuple[float, float] | None:
    """Return the interval of a measure with values in [0, 1]; None if the measure is undefined, or all `values` are."""
    if measured is None or np.isnan(values).all():  # no resample has a document to measure
        return None
    low, high = centred_interval(measured, values)
    return max(low, 0.0), min(high, 1.0)


def bootstrap_draws(n_documents: int, n_resamples: int, seed: int) -> Iterator[NDArray[np.int32]]:
    """Yield arrays of shape (n_documents, n_in_block) that say how often each document is in each resample."""
    random = np.random.default_rng(seed)
    per_block = max(NUMBERS_AT_ONCE // max(n_documents, 1), 1)
    for start in range(0, n_resamples, per_block):
        drawn = np.empty((n_documents, min(per_block, n_resamples - start)), np.int32)
        for resample in drawn.T:
            places = random.integers(0, max(n_documents, 1), n_documents)
            resample[:] = np.bincount(places, minlength=n_documents)
        yield drawn


@dataclass(frozen=True)
class Difference:
    """The difference of a model's measure from that of the first model, with two p-values."""

    difference: float
    interval: tuple[float, float]  # 95 % bootstrap interval over documents
    p_documents: float
    """The p-value over documents: see `paired_bootstrap`."""
    p_topics: float | None
    """The p-value over topics: see `sign_flip_test`; None for a measure that is not a mean over topics."""


@dataclass(frozen=True)
class MeasureComparison:
    """A measure of each model on one band of topics (such as TOP10); values and differences may be None.

    They are None if no topic of the band has a positive.
    """

    band: str
    measure: str
    values: tuple[float | None, ...]  # one per model
    differences: tuple[Difference | None, ...]  # differences from the first model, one per other model


@dataclass(frozen=True)
class TopicComparison:
    """The average precision of one topic, which has a positive, by each model."""

    topic: str
    train_positives: int
    test_positives: int
    average_precision: tuple[float, ...]
    differences: tuple[float, ...]  # differences from the first model, one per other model
    p_values: tuple[float, ...]
    """For each other model: the p-value by `bootstrap_t_test`, with Holm's correction over all topics."""


@dataclass(frozen=True)
class GateResult:
    """The result of a condition: the measured value, its interval, and whether the newer model fails."""

    gate: str
    measured: float
    interval: tuple[float, float]
    level: float  # of the interval: .9 for a single condition, whose ends are one-sided 95 % bounds
    limit: float
    of_difference: bool
    failed: bool


@dataclass(frozen=True)
class Comparison:
    """A comparison of models: by measures on bands of topics (such as ALL, TOP10), and topic by topic.

    Topics are in ascending order of their p-values, then in descending order of their differences.
    """

    test_documents: int
    n_resamples: int
    seed: int
    measures: tuple[MeasureComparison, ...]
    topics: tuple[TopicComparison, ...]
    gates: tuple[GateResult, ...] = ()
    """Results of the conditions given to `textcat.compare`."""

    def __repr__(self) -> str:
        n_models = len(self.measures[0].values) if self.measures else 0
        return f"<Comparison of {n_models} models on {self.test_documents:,} documents>"

    def _repr_html_(self) -> str:
        """Return a table of the main measures; models are named by letters, and differences are from A."""
        rows = [row for row in self.measures if TITLES[row.measure].is_main]
        models = string.ascii_uppercase[: max((len(row.values) for row in rows), default=0)]
        head = ["", "band", *models]
        for model in models[1:]:
            head += [f"{model} - A", "95 %", "p"]
        cells = []
        for row in rows:
            shown = [TITLES[row.measure].column, row.band, *row.values]
            for other in row.differences:
                if other is None:
                    shown += [None] * 3
                else:
                    low, high = other.interval
                    shown += [f"{other.difference:+.3f}", f"{low:+.3f} to {high:+.3f}", f"{other.p_documents:.4f}"]
            cells.append(shown)
        return html_table(head, cells, caption=repr(self))

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison as a dict for JSON."""
        return asdict(self)


def compare_evaluations(evaluations: Sequence[Evaluation], *, n_resamples: int = 1000, seed: int = 0) -> Comparison:
    """Compare the first of several models with each of the others, on the same documents and topics.

    Differences are paired, document by document. The p-values of bands are not corrected for the number of comparisons;
    the p-values of topics are. The models' scores may have different scales. Single topics are compared only if the
    evaluations have measures of each topic.

    Parameters
    ----------
    evaluations : sequence of Evaluation
        Two or more, of the same documents in the same order, with their scores.
    n_resamples : int, default=1000
        Bootstrap resamples of the documents.
    seed : int, default=0

    Returns
    -------
    Comparison

    Raises
    ------
    TextcatError
        If the evaluations differ in their numbers of documents, topics, bands or k, or one of them has no scores.
    """
    first = evaluations[0]
    if any(_compared_properties(other) != _compared_properties(first) for other in evaluations[1:]):
        raise TextcatError(
            "Models can only be compared on the same documents, topics and bands, and at the same k: "
            "measure them on one corpus."
        )
    samples = [resampled_measures(evaluation, n_resamples, seed) for evaluation in evaluations]
    measures = tuple(
        _compare_measure(evaluations, [sample.bands for sample in samples], band, name, seed)
        for band in range(len(first.bands))
        for name in samples[0].bands
    )
    of_topics = [sample.topics["average_precision"] for sample in samples if sample.topics is not None]
    return Comparison(first.test_documents, n_resamples, seed, measures, _compare_topics(evaluations, of_topics))


def _compared_properties(evaluation: Evaluation) -> Any:
    """Return what must be equal in compared evaluations: numbers of documents and topics, topics, bands and k."""
    topics, bands = ([row.topic for row in evaluation.topics], [row.band for row in evaluation.bands])
    counts = [(row.documents, row.pairs) for row in evaluation.bands]
    return evaluation.test_documents, evaluation.n_topics, topics, evaluation.ks, bands, counts


def paired_bootstrap(measured: float, differences: ArrayLike) -> float:
    """Return the p-value of the difference of two models, given the differences on resamples of the documents.

    `measured` is the difference on the documents themselves. The p-value is the fraction of resamples whose difference
    δ is at least as far from the mean of all differences as the measured difference is from 0, two-sided: ``p = (1 +
    |{δ: |δ - mean| ≥ |measured|}|) / (1 + n)`` (Noreen's shift method). Under the hypothesis that the models are
    equally good, differences vary around 0 as they vary around their mean. Differences that are nan are left out.
    """
    defined = np.asarray(differences)[~np.isnan(differences)]
    mean = defined.mean() if defined.size else 0.0
    return _p_value(np.abs(defined - mean), abs(measured), rounding=_ROUNDING * np.abs(defined).max(initial=0.0))


def bootstrap_t_test(measured: float, differences: ArrayLike, n_positives: int) -> float:
    """Return the p-value of a difference in the average precision of one topic, by a t-test, two-sided.

    Its standard error is the standard deviation of the differences on resamples of the documents, and its degrees of
    freedom are the number of the topic's positives less 1: ``p = 2·P(T ≥ |measured| / s)``. Unlike that of
    `paired_bootstrap`, this p-value can be far below 1 / n_resamples, as a correction for many topics requires. A topic
    with one positive has the p-value 1. Differences that are nan are left out.
    """
    from scipy.special import stdtr

    defined = np.asarray(differences)[~np.isnan(differences)]
    spread = float(defined.std(ddof=1)) if len(defined) > 1 else 0.0
    if n_positives < 2 or measured == 0 or spread == 0:
        return 1.0
    return float(2 * stdtr(n_positives - 1, -abs(measured) / spread))


def sign_flip_test(differences: ArrayLike, seed: int = 0) -> float:
    """Return the p-value of the topics' differences between two models, by random sign flips.

    The p-value is the share of flips after which the mean difference is at least as far from 0 as before: if two models
    are equally good, either may rank a topic better by chance. This is the paired randomisation test of information
    retrieval (Smucker, Allan & Carterette, "A comparison of statistical significance tests for information retrieval
    evaluation", 2007), two-sided, with 10,000 flips. Differences that are nan are left out.
    """
    defined = np.asarray(differences, np.float64)[~np.isnan(differences)]
    heads = np.random.default_rng(seed).integers(0, 2, (_N_FLIPS, defined.size), dtype=np.int8)
    # Σ±d = 2·Σ_{heads} d - Σd
    sums = 2 * np.where(heads, defined, 0.0).sum(axis=1) - defined.sum()
    return _p_value(np.abs(sums), abs(float(defined.sum())), rounding=_ROUNDING * np.abs(defined).sum())


def mcnemar(only_first: ArrayLike, only_other: ArrayLike) -> NDArray[np.float64]:
    """Return the exact two-sided p-value of McNemar's test, elementwise.

    `only_first`, b, counts the documents that only the first of two models decides correctly, and `only_other`, c,
    those that only the other model does. If the models are equally good, either is equally likely to be the correct
    one: ``p = min(1, 2·P(X ≤ min(b, c)))``, X being binomial with b + c throws of a coin (McNemar, "Note on the
    sampling error of the difference between correlated proportions or percentages", 1947; exact as in Edwards, 1948).
    """
    from scipy.special import bdtr

    b, c = np.asarray(only_first, np.float64), np.asarray(only_other, np.int64)
    return np.asarray(np.minimum(1.0, 2 * bdtr(np.minimum(b, c), (b + c).astype(np.int64), 0.5)))


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Return p-values corrected for multiple tests by Holm's method.

    Let p_i be the i-th smallest of n p-values. The k-th smallest becomes the maximum of ``(n - i + 1)·p_i`` over i = 1
    to k, but at most 1 (Holm, "A simple sequentially rejective multiple test procedure", 1979).
    """
    p = np.asarray(p_values, np.float64)
    order = np.argsort(p, kind="stable")
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1)
    return corrected


def _p_value(extremes: NDArray[np.float64], measured: float, rounding: float) -> float:
    return (1 + int(np.count_nonzero(extremes >= measured - rounding))) / (1 + len(extremes))


def _compare_measure(
    evaluations: Sequence[Evaluation], samples: Sequence[dict[str, Any]], band: int, name: str, seed: int
) -> MeasureComparison:
    values = [evaluation.bands[band][name] for evaluation in evaluations]
    # evaluations with many topics have a row for all topics before those of the bands
    row = band - len(evaluations[0].bands)
    differences: list[Difference | None] = []
    for value, sample, evaluation in zip(values[1:], samples[1:], evaluations[1:], strict=True):
        if value is None or values[0] is None:
            differences.append(None)
            continue
        measured, resamples = value - values[0], sample[name][row] - samples[0][name][row]
        p_documents, p_topics = paired_bootstrap(measured, resamples), None
        if name in OF_TOPICS:
            p_topics = sign_flip_test(
                _topic_values(evaluation, band, name) - _topic_values(evaluations[0], band, name), seed
            )
        differences.append(Difference(measured, centred_interval(measured, resamples), p_documents, p_topics))
    return MeasureComparison(evaluations[0].bands[band].band, name, tuple(values), tuple(differences))


def _topic_values(evaluation: Evaluation, band: int, name: str) -> NDArray[np.float64]:
    """Return the measure `name` of each topic of a band; nan for a topic without a positive.

    `band` is the position of the band among the evaluation's bands.
    """
    assert evaluation.scored is not None
    rows = [evaluation.topics[topic] for topic in evaluation.scored.bands[band].topics]
    return np.array([getattr(row, OF_TOPICS[name]) for row in rows], dtype=np.float64)


def _compare_topics(
    evaluations: Sequence[Evaluation], samples: Sequence[NDArray[np.float64]]
) -> tuple[TopicComparison, ...]:
    """Compare single topics; `samples` has the average precision of each topic in each resample, for each model."""
    rows = []
    columns = [k for k, row in enumerate(evaluations[0].topics) if row.average_precision is not None]
    if not columns:
        return ()
    topics = [evaluations[0].topics[column] for column in columns]
    values = np.array(
        [[evaluation.topics[column].average_precision for column in columns] for evaluation in evaluations]
    )
    differences = values[1:] - values[0]
    positives = [topic.test_positives for topic in topics]
    p_values = [
        holm([bootstrap_t_test(*of_topic) for of_topic in zip(of_model, of_resamples, positives, strict=True)])
        for of_model, of_resamples in zip(
            differences, (sample[columns] - samples[0][columns] for sample in samples[1:]), strict=True
        )
    ]
    for topic, *columns_of_topic in zip(topics, values.T, differences.T, np.transpose(p_values), strict=True):
        numbers = (tuple(column.tolist()) for column in columns_of_topic)
        rows.append(TopicComparison(topic.topic, topic.train_positives, topic.test_positives, *numbers))
    return tuple(sorted(rows, key=lambda row: (min(row.p_values), -max(map(abs, row.differences)), row.topic)))
