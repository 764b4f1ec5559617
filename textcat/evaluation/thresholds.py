"""Choose a threshold for each topic from out-of-fold scores of documents and their labels.

A document gets a topic if ``score > threshold``; most thresholds lie halfway between the lowest score that is to pass
and the next lower one. Scores must be like those of new documents, so give out-of-fold scores. The strategies have the
names of Yang ("A study on thresholding strategies for text categorization", SIGIR 2001). By "scut", "scut-fbr" and
"pcut", a topic without a positive in the sample gets the threshold +inf. Thresholds have the type of the scores. `Y`
and `scores` are as in `textcat.evaluation.metrics`, except that a document whose score for a topic is nan is not in the
topic's sample.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from textcat.base.calibration import Calibration, topic_samples
from textcat.evaluation.metrics import PositivePlaces

_FEW_PER_TOPIC = 10  # documents: with fewer, a topic's own mean and deviation of scores say little
STRATEGIES = ("zero", "probability", "scut", "scut-fbr", "pcut", "expected-f1", "single")


def s_cut(scores: ArrayLike, Y: Any, fbr: float = 0.0) -> NDArray[Any]:
    """Return for each topic the threshold that maximises F1; the highest one if there are several.

    If even the largest F1 is low, its threshold is unreliable, and many documents may be above it. So if this F1 is
    below `fbr`, in (0, 1], the threshold is the highest score of the sample instead (SCutFBR.1).
    """
    dtype, thresholds = np.asarray(scores).dtype, []
    for column, is_positive in topic_samples(scores, Y):
        # Cuts just below positives are enough: lowering a cut without reaching another positive only adds errors.
        places = PositivePlaces.of(column[is_positive], column)
        f1 = 2 * places.hits / (places.retrieved + len(places.hits))
        if not len(f1):
            thresholds.append(np.inf)
        elif f1.max() < fbr:
            thresholds.append(column.max())
        else:
            best = np.flatnonzero(f1 == f1.max())[-1]
            thresholds.append(threshold_at_rank(np.sort(column), int(places.retrieved[best])))
    return np.array(thresholds, dtype if dtype.kind == "f" else np.float64)


def p_cut(scores: ArrayLike, Y: Any) -> NDArray[Any]:
    """Return for each topic the threshold above which there are as many documents of the sample as have the topic.

    If that would separate documents with equal scores, the threshold excludes all of them.
    """
    thresholds = [
        threshold_at_rank(np.sort(column), int(is_positive.sum())) for column, is_positive in topic_samples(scores, Y)
    ]
    return np.array(thresholds, np.asarray(scores).dtype)


def expected_f1_cut(scores: ArrayLike, probabilities: ArrayLike) -> NDArray[Any]:
    """Return for each topic the threshold that maximises the expected F1 on the given documents.

    If there are several such thresholds, the highest is returned. The expected F1 is twice the sum of the probabilities
    of the documents that pass, divided by the number of these documents plus the sum of all probabilities:
    ``2·Σ_{passed} p / (n_passed + Σ p)``. The largest expected F1 is reached if exactly those documents pass whose
    probability p is more than half of this largest value (Lewis, "Evaluating and optimizing autonomous text
    classification systems", 1995). Probabilities must not decrease with scores; if all probabilities are 0, the
    threshold is +inf. No labels are needed, so the documents may be those to tag.
    """
    values = np.asarray(scores)
    thresholds = []
    for column, p in zip(values.T, np.asarray(probabilities, np.float64).T, strict=True):
        order = np.argsort(column, kind="stable")[: np.count_nonzero(~np.isnan(column))]  # nan is sorted last
        ranked, passed = column[order], np.arange(1, len(order) + 1)
        expected = np.cumsum(p[order][::-1])
        f1 = 2 * expected / (passed + (expected[-1] if len(expected) else 0))
        f1[:-1][ranked[::-1][:-1] == ranked[::-1][1:]] = 0  # no threshold lies between equal scores
        thresholds.append(threshold_at_rank(ranked, int(np.argmax(f1)) + 1) if f1.any() else np.inf)
    return np.array(thresholds, values.dtype if values.dtype.kind == "f" else np.float64)


def threshold_at_rank(ranked: NDArray[Any], k: int) -> Any:
    """Return the threshold that the k highest scores exceed, except those that are equal to the score at rank k + 1.

    `ranked` has all scores, in ascending order. If k is 0, the threshold is inf.
    """
    if k <= 0:
        return np.inf
    lowest = ranked[-min(k, len(ranked))]
    if k >= len(ranked):
        return np.nextafter(lowest, -np.inf)
    next_lower = ranked[-k - 1]
    middle = next_lower + (lowest - next_lower) / 2
    # Neighbouring floats have no midpoint, and the largest ones no finite difference.
    return middle if middle < lowest else next_lower


def choose_thresholds(
    strategy: str, scores: ArrayLike, Y: Any, probability: float = 0.25
) -> tuple[NDArray[Any], Calibration]:
    """Return thresholds per topic by a strategy, and the curves that turn scores into probabilities.

    "zero" and "single": 0 for every topic. "probability": the score with the given calibrated probability. "scut": the
    threshold of largest F1. "scut-fbr": as "scut", but the highest score if the largest F1 is below 0.1. "pcut": the
    threshold that reproduces the topic's prevalence in the sample. "expected-f1": the threshold of largest expected F1.

    If there are fewer than ten documents per topic, "single" fits one curve to the scores of all topics together:
    the topic with the highest probability, which a document gets, is then the one with the highest score.
    """
    values = np.asarray(scores)
    are_few = strategy == "single" and len(values) < _FEW_PER_TOPIC * values.shape[1]
    calibration = (Calibration.fit_together if are_few else Calibration.fit_scores)(values, Y)
    match strategy:
        case "zero" | "single":
            return np.zeros(values.shape[1], values.dtype), calibration
        case "probability":
            return calibration.threshold(probability).astype(values.dtype), calibration
        case "scut":
            return s_cut(scores, Y), calibration
        case "scut-fbr":
            return s_cut(scores, Y, fbr=0.1), calibration
        case "pcut":
            return p_cut(scores, Y), calibration
        case "expected-f1":
            return expected_f1_cut(scores, calibration.probabilities(scores)), calibration
    raise ValueError(f"No strategy {strategy!r}; known: {', '.join(STRATEGIES)}")
