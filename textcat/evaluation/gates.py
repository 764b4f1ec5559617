"""Parse and check conditions (gates) such as ``MAP < -.005``, under which a new model must not replace an old one.

The new model fails if a condition is significantly true: the upper end of the measure's interval is below the limit. If
`strict`, it fails unless the condition is significantly false: it fails if the lower end is below the limit.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from textcat.base.errors import TextcatError, did_you_mean
from textcat.evaluation.at_k import RESAMPLED
from textcat.evaluation.evaluation import TITLES, Evaluation, ScoredDocuments
from textcat.evaluation.promises import automatic_tags, clopper_pearson
from textcat.evaluation.significance import (
    OF_TOPICS,
    GateResult,
    ResampledMeasures,
    centred_interval,
    resampled_measures,
)

LEVEL = 0.9  # level of intervals of one condition: 5 % lie below and 5 % above, so either end is a one-sided 95 % bound
_N_MEANS = {"macro_f1": 2}  # number of means over positives that a measure depends on, if not 1
AP = "average_precision"
AUTOMATIC = "automatic"  # the object of the measure "precision": the automatic tags of a model that makes promises
PRECISION = "precision"
_MEASURES = {"AP": AP, "precision": PRECISION} | {
    TITLES[name].column: name for name in (*ScoredDocuments.measures, *RESAMPLED)
}
_CONDITION = re.compile(r"\s*(\S.*?)(?:\s+of\s+(\S.*?))?\s*<\s*([+\u2212-]?)(\d+\.?\d*|\.\d+)\s*", re.DOTALL | re.ASCII)


@dataclass(frozen=True)
class Gate:
    """A condition under which the newer of two models fails."""

    text: str  # as written by the user
    measure: str  # a key of `TITLES`, or AP
    of: str  # the topic if the measure is AP; AUTOMATIC if it is PRECISION; otherwise the band of topics
    limit: float
    of_difference: bool  # True: the limit applies to the difference NEW - OLD; False: to the value of NEW


def parse_gate(text: str) -> Gate:
    """Parse a condition: ``MEASURE < LIMIT`` for all topics, ``MEASURE of BAND < LIMIT``, or ``AP of TOPIC < LIMIT``.

    ``precision of automatic < LIMIT`` applies to the automatic tags of a model that makes promises.

    A limit with a sign, or 0, applies to the difference NEW - OLD; a limit without a sign to the value of NEW. Hyphens
    and case in names of measures are ignored. Raise TextcatError if the text is not a condition.
    """
    if not (parts := _CONDITION.fullmatch(text)):
        raise TextcatError(
            f"{text!r} is no condition: write MEASURE < LIMIT, such as 'MAP < -.005' for a loss of MAP, "
            "'macro F1 of TOP10 < -.01', 'AP of wheat < -.05', or 'MAP < .7' for a value."
        )
    name, of, sign, limit = parts.groups()
    named = {_folded(known): measure for known, measure in _MEASURES.items()}
    if not (measure := named.get(_folded(name))):
        hint = did_you_mean(name, _MEASURES) or f" Conditions are of {', '.join(_MEASURES)}."
        raise TextcatError(f"No measure {name!r} for the condition {text!r}.{hint}")
    if measure == PRECISION and (of != AUTOMATIC or sign):
        raise TextcatError(f"The condition {text!r} is not of a value: write 'precision of automatic < .9'.")
    if measure == AP and not of:
        raise TextcatError(f"The condition {text!r} names no topic: write 'AP of TOPIC', or 'MAP' of all topics.")
    if float(limit) > 1:
        raise TextcatError(f"The condition {text!r} says nothing, as measures end at 1: give a limit from -1 to 1.")
    signed = float(limit) if sign in ("", "+") else -float(limit)
    return Gate(text.strip(), measure, of or "ALL", signed, bool(sign) or signed == 0)


def _folded(name: str) -> str:
    return re.sub(r"[\s_-]+", " ", name).casefold()


def check_gates(
    gates: Sequence[Gate], old: Evaluation, new: Evaluation, *, n_resamples: int, seed: int, strict: bool
) -> tuple[GateResult, ...]:
    """Check conditions against two models' evaluations on the same documents, topics and bands.

    `n_resamples` and `seed` are as for `compare_evaluations`. Raise TextcatError if the measure of a condition is not
    defined because no test document has the topic, or gets an automatic tag.

    Of equally good models, 5 % may fail; several conditions share these 5 % (Bonferroni's correction). With `strict`,
    each condition has the full level, because the new model passes only if it passes every condition.
    """
    level = LEVEL if strict else 1 - (1 - LEVEL) / max(len(gates), 1)
    samples = [resampled_measures(evaluation, n_resamples, seed) for evaluation in (old, new)]
    return tuple(_check(gate, (old, new), samples, level, strict=strict) for gate in gates)


def _check(
    gate: Gate, evaluations: Sequence[Evaluation], samples: Sequence[ResampledMeasures], level: float, *, strict: bool
) -> GateResult:
    if gate.measure == PRECISION:
        return _check_automatic(gate, evaluations[1], level, strict=strict)
    before, measured = (_measured(gate, *of_model) for of_model in zip(evaluations, samples, strict=True))
    if gate.of_difference:
        of_topics = measured.of_topics - before.of_topics
        measured = _Measured(measured.value - before.value, measured.resamples - before.resamples, of_topics)
    positives = _positives(gate, evaluations[0])
    if gate.measure == AP:
        low, high = t_interval(measured.value, measured.resamples, positives[0], level)
    elif gate.measure in OF_TOPICS:
        low, high = macro_interval(*measured, positives, level, n_means=_N_MEANS.get(gate.measure, 1))
    else:
        low, high = centred_interval(measured.value, measured.resamples, level)
    interval = max(low, -1.0 if gate.of_difference else 0.0), min(high, 1.0)
    return _result(gate, measured.value, interval, level, strict=strict)


def _result(gate: Gate, measured: float, interval: tuple[float, float], level: float, *, strict: bool) -> GateResult:
    failed = interval[0 if strict else 1] < gate.limit
    return GateResult(gate.text, measured, interval, level, gate.limit, gate.of_difference, failed)


def _check_automatic(gate: Gate, evaluation: Evaluation, level: float, *, strict: bool) -> GateResult:
    """Check a condition on the precision of all automatic tags together, by the interval of Clopper and Pearson."""
    n, right = automatic_tags(evaluation.promises)
    if not n:
        raise TextcatError(
            f"The condition {gate.text!r} cannot be decided, as the new model gives no test document a tag "
            "automatically: train it with `--promise precision=.9`, or leave the condition out."
        )
    low, high = clopper_pearson(right, n, level).tolist()
    return _result(gate, right / n, (low, high), level, strict=strict)


class _Measured(NamedTuple):
    """The measure of a condition: its value, its value on each resample, and its value for each topic averaged."""

    value: float
    resamples: NDArray[np.float64]
    of_topics: NDArray[np.float64]


def _measured(gate: Gate, evaluation: Evaluation, sample: ResampledMeasures) -> _Measured:
    rows = [evaluation.topics[column] for column in _columns(gate, evaluation)]
    of_topics = np.array([getattr(row, OF_TOPICS.get(gate.measure, AP)) for row in rows], np.float64)
    value: float | None
    if gate.measure == AP:
        assert sample.topics is not None
        value, resamples = rows[0].average_precision, sample.topics[AP][_columns(gate, evaluation)[0]]
    else:
        band = [row.band for row in evaluation.bands].index(gate.of)
        # Evaluations with many topics have a row for all topics before those of the bands.
        resamples = sample.bands[gate.measure][band - len(evaluation.bands)]
        value = evaluation.bands[band][gate.measure]
    if value is None:
        topics = "the topic" if gate.measure == AP else "a topic of the band"
        raise TextcatError(
            f"The condition {gate.text!r} cannot be decided, as no test document has {topics}: leave it out."
        )
    return _Measured(value, resamples, of_topics)


def _columns(gate: Gate, evaluation: Evaluation) -> list[int]:
    """Return the columns of a condition's topics; [] for a band if no scores were kept, as with many topics."""
    if gate.measure == AP:
        return [[row.topic for row in evaluation.topics].index(gate.of)]
    bands = evaluation.scored.bands if evaluation.scored is not None else ()
    return [column for band in bands if band.name == gate.of for column in band.topics]


def _positives(gate: Gate, evaluation: Evaluation) -> list[int]:
    return [evaluation.topics[column].test_positives for column in _columns(gate, evaluation)]


def t_interval(measured: float, values: ArrayLike, n_positives: int, level: float = LEVEL) -> tuple[float, float]:
    """Return the interval of one topic's average precision, or of its difference, consistent with `bootstrap_t_test`.

    Its ends are ``measured ± t·s``: s is the standard deviation of the `values` on resamples of the documents, and t
    the quantile of Student's distribution whose degrees of freedom are the number of the topic's positives less 1. With
    one positive, they are infinite, because the variance is unknown.
    """
    from scipy.special import stdtrit

    if n_positives < 2:
        return -math.inf, math.inf
    reach = float(stdtrit(n_positives - 1, (1 + level) / 2) * np.nanstd(np.asarray(values, np.float64), ddof=1))
    return measured - reach, measured + reach


def macro_interval(
    measured: float,
    values: ArrayLike,
    of_topics: ArrayLike,
    n_positives: ArrayLike,
    level: float = LEVEL,
    *,
    n_means: int = 1,
) -> tuple[float, float]:
    """Return the interval of a mean over topics, or of its difference, widened for topics with few test positives.

    The bootstrap underestimates the variance of a mean of n positives by a share of 1/n: a topic's only positive is the
    same in all resamples that have it. If a measure depends on one such mean, ``q = 1/n`` is lost; if on two, as F1 on
    precision and recall, ``q = 1 - (1 - 1/n)²``. This share of the squared distance of each topic from the mean of the
    topics is added to the variance. With the value x_t of each of T topics that have a positive, their mean m, and the
    variance v of the `values` on resamples of the documents, the ends are ``measured ± z·s``, where
    ``s² = v + Σ_t q_t (x_t - m)² / T²``, and z is a quantile of the normal distribution.
    """
    from scipy.special import ndtri

    x, n = np.asarray(of_topics, np.float64), np.asarray(n_positives)
    x, n = x[n > 0], n[n > 0]
    lost = ((1 - (1 - 1 / n) ** n_means) * (x - x.mean()) ** 2).sum() / len(x) ** 2
    variance = np.nanvar(np.asarray(values, np.float64), ddof=1) + lost
    reach = float(ndtri((1 + level) / 2) * math.sqrt(variance))
    return measured - reach, measured + reach
