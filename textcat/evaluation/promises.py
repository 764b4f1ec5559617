"""Promise a precision and a recall per topic, by thresholds tested on labelled documents with out-of-fold scores.

A *promise* of a precision is a threshold above which, with a given confidence, at least this share of the documents has
the topic; a promise of a recall is a threshold that at least this share of the topic's documents exceed. Both assume
that later documents come from the same distribution as the sample. `Y` and `scores` are as in
`textcat.evaluation.thresholds`.

**Precision.** A topic's thresholds are tested from high to low until the first one that fails, each by an exact
binomial test of "the precision is lower than promised" (fixed-sequence testing: Angelopoulos et al., "Learn then Test",
2021; the test is the bound of Clopper and Pearson). Only the start of the sequence depends on the topic: the first
threshold is exceeded by the number of documents for which the topic's calibration curve predicts the clearest success.
With many topics, some pass their first test by chance. So topics are selected by the procedure of Benjamini and
Hochberg (1995), and the R selected topics, out of m, are tested at the level (1 - confidence) · R / m (Benjamini and
Yekutieli, 2005). Hence the expected share of broken promises, among those made, is at most 1 - confidence.

Topics with too few documents for promises of their own can share one promise: the same test is applied to their
(document, topic) pairs, ranked by probability, and gives one probability threshold for all of them.

**Recall.** The threshold is an order statistic of the scores of the topic's documents: the highest one for which the
same binomial test accepts the promised recall.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from textcat.base.calibration import Calibration, positives_of, topic_samples
from textcat.base.sigmoid import expit
from textcat.evaluation.thresholds import threshold_at_rank

_ROUNDING = 1e-9  # tolerance for the rounding of a sum of shares
TOGETHER = "small topics together"  # stands for the topics with a shared promise
ALL_TOPICS = "all topics"  # stands for the topics of a promise about documents


class Status(str, Enum):
    """The status of a tag: automatic (given without a person) or for review by a person. Outputs show the values."""

    AUTOMATIC = "automatic"
    REVIEW = "review"

    __str__ = str.__str__


class Promise(NamedTuple):
    """The promises of a topic, and the numbers of training documents that support them.

    Attributes
    ----------
    topic : str
    precision : float or None
        At least this share of the tags above `threshold` is right; None: no precision is promised.
    recall : float or None
        At least this share of the documents of the topic is above `review_threshold`; None: no recall is promised.
    confidence : float
        The confidence of both promises.
    threshold, review_threshold : float
        Tags with scores above `threshold` are automatic; other tags above `review_threshold` are for review. Without a
        promise of precision, `threshold` is inf.
    documents, correct : int
        The number of training documents with out-of-fold scores above `threshold`, and how many of them have the topic;
        if `together`, summed over all topics that share the promise.
    together : bool
        Whether the promise of precision is shared by several topics with too few documents.
    """

    topic: str
    precision: float | None
    recall: float | None
    confidence: float
    threshold: float
    review_threshold: float
    documents: int
    correct: int
    together: bool


@dataclass(frozen=True, eq=False)
class Promises:
    """The promises of all topics, as arrays of shape (n_topics,), float64.

    Parameters
    ----------
    precision, recall : ndarray
        The promised shares; nan: no promise.
    confidence : ndarray
    threshold, review_threshold : ndarray
        As in `Promise`; a review threshold is never higher than the threshold.
    documents, correct : ndarray
        As in `Promise`.
    together : ndarray
        1 where several topics share the promise, otherwise 0.
    """

    precision: NDArray[np.float64]
    recall: NDArray[np.float64]
    confidence: NDArray[np.float64]
    threshold: NDArray[np.float64]
    review_threshold: NDArray[np.float64]
    documents: NDArray[np.float64]
    correct: NDArray[np.float64]
    together: NDArray[np.float64]

    def as_table(self) -> NDArray[np.float64]:
        """Return all arrays as the rows of one, which `from_table` reads."""
        return np.stack([getattr(self, field.name) for field in fields(self)])

    @classmethod
    def from_table(cls, table: NDArray[np.float64], n_topics: int) -> "Promises":
        """Return the promises of `n_topics` topics from the rows of a table; raise ValueError if it is invalid."""
        if table.shape != (len(fields(cls)), n_topics):
            raise ValueError("these are no promises")
        promises = cls(*table)
        counts, shares = table[5:], table[:3]
        if (
            np.isnan(table[2:]).any()
            or not ((shares > 0) & (shares < 1) | np.isnan(shares)).all()
            or not (np.isfinite(counts) & (counts >= 0)).all()
            or (promises.review_threshold > promises.threshold).any()
        ):
            raise ValueError("these are no promises")
        return promises

    @property
    def has_precision(self) -> NDArray[np.bool_]:
        """Which topics have a promise of precision."""
        return ~np.isnan(self.precision)

    @property
    def has_recall(self) -> NDArray[np.bool_]:
        """Which topics have a promise of recall."""
        return ~np.isnan(self.recall)

    def of_topics(self, columns: NDArray[Any]) -> "Promises":
        """Return the promises of the topics in some columns."""
        return Promises(*self.as_table()[:, columns])

    def by_topic(self, topics: Sequence[str]) -> dict[str, Promise]:
        """Return the promise of each topic."""
        promises = {}
        for topic, row in zip(topics, self.as_table().T.tolist(), strict=True):
            precision, recall, confidence, threshold, review_threshold, *counts = row
            promised = (None if math.isnan(precision) else precision), (None if math.isnan(recall) else recall)
            documents, correct, together = map(int, counts)
            numbers = confidence, threshold, review_threshold, documents, correct, bool(together)
            promises[topic] = Promise(topic, *promised, *numbers)
        return promises

    def statuses(self, scores: NDArray[Any], columns: NDArray[Any], *, all_given: bool = False) -> list[Status | None]:
        """Return the status of each tag, given its score and the column of its topic.

        The status is None below both thresholds; if `all_given`, tags are given whatever their scores, and it is
        REVIEW.
        """
        automatic, review = scores > self.threshold[columns], scores > self.review_threshold[columns]
        return [
            Status.AUTOMATIC if is_automatic else Status.REVIEW if is_for_review or all_given else None
            for is_automatic, is_for_review in zip(automatic.tolist(), review.tolist(), strict=True)
        ]


class Verdict(str, Enum):
    """The result of checking a promise on labelled documents; outputs show the values."""

    KEPT = "kept"  # the measured share is at least as high as promised
    BY_CHANCE = "below, by chance"  # it is lower, but not significantly
    BROKEN = "broken"  # it is significantly lower: the upper bound of its 95 % interval is lower, too
    NOT_TESTED = "not tested"  # no document is above the threshold or, for recall, has the topic

    __str__ = str.__str__


@dataclass(frozen=True)
class CheckedPromise:
    """The result of checking a promise on labelled documents.

    Parameters
    ----------
    topic : str
        `TOGETHER` for the topics that share a promise, `ALL_TOPICS` for a sample recall.
    measure : {"precision", "recall", "sample recall"}
        The sample recall is 1 minus the mean share of their topics that documents miss.
    promised : float
    documents : int
        The documents with an automatic tag of the topic; for a recall, the documents that have the topic; for a sample
        recall, the documents that have a topic.
    right : int
        Those of them that have the topic; for a recall, those above the review threshold; for a sample recall, those
        that miss no topic.
    share : float or None
        `right` divided by `documents`; for a sample recall, the mean recall of the documents. None without documents.
    interval : tuple of two floats
        The 95 % interval of Clopper and Pearson. For a sample recall, it is that of the sum of the documents' recalls:
        wider than necessary, as a document can miss a part of its topics.
    verdict : Verdict
    """

    topic: str
    measure: str
    promised: float
    documents: int
    right: int
    share: float | None
    interval: tuple[float, float]
    verdict: Verdict

    @classmethod
    def of(cls, topic: str, measure: str, promised: float, documents: int, right: float) -> "CheckedPromise":
        """Return a checked promise, with the verdict from `right` of `documents`."""
        share = right / documents if documents else None
        low, high = clopper_pearson(right, documents).tolist()
        verdict = (
            Verdict.NOT_TESTED
            if share is None
            else Verdict.KEPT
            if share >= promised
            else Verdict.BY_CHANCE
            if high >= promised
            else Verdict.BROKEN
        )
        return cls(topic, measure, promised, documents, int(right), share, (low, high), verdict)

    @classmethod
    def of_recalls(cls, promised: float, recalls: NDArray[np.float64]) -> "CheckedPromise":
        """Return the checked promise of a sample recall, given the recall of each document that has a topic."""
        checked = cls.of(ALL_TOPICS, "sample recall", promised, len(recalls), float(recalls.sum()))
        return replace(checked, right=int((recalls == 1).sum()))

    @classmethod
    def from_dict(cls, entries: Mapping[str, Any]) -> "CheckedPromise":
        """Rebuild a checked promise from its fields as JSON values."""
        low, high = entries["interval"]
        return cls(**{**entries, "interval": (low, high), "verdict": Verdict(entries["verdict"])})


def check_promises(
    promises: Promises,
    topics: Sequence[str],
    scores: NDArray[Any],
    relevant: Any,
    given: NDArray[np.bool_],
    missed: float = 0.0,
) -> tuple[CheckedPromise, ...]:
    """Check promises on labelled documents: of precision for each topic, then of recall, then of missed topics.

    Parameters
    ----------
    promises : Promises
    topics : sequence of str
    scores : ndarray of shape (n_documents, n_topics)
    relevant : sparse matrix of the same shape, 1 where a document has a topic
    given : ndarray of the same shape, bool
        Whether each document gets each topic, automatically or for review.
    missed : float
        The share of its topics that a document was promised to miss at most, on average; 0: no such promise.
    """
    positives = positives_of(relevant, scores.shape).toarray()
    automatic = given & (scores > promises.threshold)
    n_automatic, n_right = automatic.sum(axis=0), (automatic & positives).sum(axis=0)
    n_positives, n_found = positives.sum(axis=0), (given & positives).sum(axis=0)
    together, checked = promises.together > 0, []
    for j in np.flatnonzero(promises.has_precision & ~together).tolist():
        counts = int(n_automatic[j]), int(n_right[j])
        checked.append(CheckedPromise.of(topics[j], "precision", float(promises.precision[j]), *counts))
    if together.any():
        counts = int(n_automatic[together].sum()), int(n_right[together].sum())
        promised = float(promises.precision[together][0])
        checked.append(CheckedPromise.of(TOGETHER, "precision", promised, *counts))
    for j in np.flatnonzero(promises.has_recall).tolist():
        counts = int(n_positives[j]), int(n_found[j])
        checked.append(CheckedPromise.of(topics[j], "recall", float(promises.recall[j]), *counts))
    if missed:
        has_topic = positives.any(axis=1)
        recalls = (positives & given).sum(axis=1)[has_topic] / positives.sum(axis=1)[has_topic]
        checked.append(CheckedPromise.of_recalls(round(1 - missed, 12), recalls))
    return tuple(checked)


def automatic_tags(promises: Iterable[CheckedPromise]) -> tuple[int, int]:
    """Return the number of automatic tags of all topics together, and how many of these are right."""
    of_tags = [promise for promise in promises if promise.measure == "precision"]
    return sum(promise.documents for promise in of_tags), sum(promise.right for promise in of_tags)


def fewest_documents(share: float, confidence: float) -> int:
    """Return the minimum number of documents of a topic for a promise, if all of them are right."""
    return math.ceil(math.log(1 - confidence) / math.log(share))


def nearest_to_a_promise(shares: NDArray[np.float64], sizes: NDArray[Any], confidence: float) -> tuple[int, int]:
    """Return the position of the topic that comes nearest to a promise by its size, and the minimum size for one.

    Parameters
    ----------
    shares : ndarray of shape (n_topics,)
        The share to promise for each topic; nan: none. At least one is a number.
    sizes : ndarray of shape (n_topics,)
        The number of documents of each topic.
    confidence : float
    """
    wanted = np.flatnonzero(~np.isnan(shares)).tolist()
    fewest = {j: fewest_documents(float(shares[j]), confidence) for j in wanted}
    nearest = max(wanted, key=lambda j: sizes[j] / fewest[j])
    return nearest, fewest[nearest]


def binomial_p_value(correct: ArrayLike, documents: ArrayLike, share: ArrayLike) -> NDArray[np.float64]:
    """Return the probability of at least `correct` correct documents, if each is correct with probability `share`.

    The probability is at most a level if and only if the lower bound of Clopper and Pearson, at the confidence
    1 - level, is at least `share`. Arrays are broadcast against each other.
    """
    from scipy.special import betainc

    k, n = np.asarray(correct, np.float64), np.asarray(documents, np.float64)
    # P(X >= k) is the regularised incomplete beta function, and 1 for k = 0.
    return np.where(k > 0, betainc(np.maximum(k, 1), n - k + 1, share), 1.0)


def clopper_pearson(correct: ArrayLike, documents: ArrayLike, level: float = 0.95) -> NDArray[np.float64]:
    """Return confidence intervals of a probability of success, by the exact method of Clopper and Pearson (1934).

    Parameters
    ----------
    correct, documents : array-like
        Successes, and trials; 0 trials have the interval from 0 to 1. Effective numbers need not be whole.
    level : float in (0, 1), default=.95
        Confidence that an interval contains the probability.

    Returns
    -------
    bounds : ndarray of shape (2, ...), float64
        Lower and upper bounds.
    """
    from scipy.special import betaincinv

    k, n = np.asarray(correct, np.float64), np.asarray(documents, np.float64)
    beyond = (1 - level) / 2
    low = np.where(k > 0, betaincinv(np.where(k > 0, k, 1), n - k + 1, beyond), 0.0)
    high = np.where(k < n, betaincinv(k + 1, np.where(k < n, n - k, 1), 1 - beyond), 1.0)
    return np.stack([low, high])


class _Sequence(NamedTuple):
    """The tests of a topic's precision, each on the n documents with the highest scores, for ascending n."""

    documents: NDArray[np.int64]  # number of documents in each test, ascending
    correct: NDArray[np.int64]  # how many of them have the topic
    highest: NDArray[Any]  # scores of all these documents and of the next one, ascending
    first_p: float  # p-value of the first test; 1 if no number of documents is enough for a promise

    @classmethod
    def of(
        cls, scores: NDArray[Any], is_positive: NDArray[np.bool_], p: NDArray[np.float64], share: float, level: float
    ) -> "_Sequence":
        """Return the tests of a topic, given the scores, labels and probabilities of the documents in its sample."""
        # More documents are not tested: precision would be below the promise even if all positives were among them.
        most = int(is_positive.sum() / share)
        order = np.argsort(-scores, kind="stable")[: most + 1]
        ranked, correct = scores[order], np.cumsum(is_positive[order], dtype=np.int64)
        n: NDArray[Any] = np.arange(1, len(order) + 1)
        # A threshold must lie between two different scores.
        may_end = np.append(ranked[:-1] > ranked[1:], len(order) == len(scores)) & (share**n <= level)
        if not may_end.any():
            return cls(n[:0], correct[:0], ranked[::-1], 1.0)
        n, correct, expected = n[may_end], correct[may_end], np.cumsum(p[order])[may_end]
        first = int(np.argmax((expected - n * share) / np.sqrt(n)))
        n, correct = n[first:], correct[first:]
        return cls(n, correct, ranked[::-1], float(binomial_p_value(correct[0], n[0], share)))

    def last_success(self, share: float, level: float) -> int:
        """Return the number of the last test before the first that fails; -1 if the first one fails."""
        fails = binomial_p_value(self.correct, self.documents, share) > level
        return int(np.argmax(np.append(fails, True))) - 1


def promise_precision(
    scores: ArrayLike, Y: Any, precision: ArrayLike, confidence: float, calibration: Calibration | None = None
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Return for each topic the lowest threshold at which its precision can be promised.

    Parameters
    ----------
    scores, Y
        Out-of-fold scores and labels of documents; a document whose score is nan is not in the topic's sample.
    precision : array-like of shape (n_topics,), or float in (0, 1)
        The precision to promise for each topic; nan: none.
    confidence : float in (0, 1)
        The share of promises that should hold.
    calibration : Calibration, optional
        The curves from scores to probabilities; by default, curves fitted to the scores and labels.

    Returns
    -------
    thresholds : ndarray of shape (n_topics,), float64
        inf where no precision can be promised.
    documents, correct : ndarray of shape (n_topics,), int64
        The documents above each threshold, and how many of these have the topic.
    """
    values, level = np.asarray(scores), 1 - confidence
    n_topics = values.shape[1]
    shares = np.broadcast_to(np.asarray(precision, np.float64), n_topics)
    curves = Calibration.fit_scores(values, Y) if calibration is None else calibration
    sequences: dict[int, _Sequence] = {}
    for j, (column, is_positive) in enumerate(topic_samples(values, Y)):
        if np.isnan(shares[j]):
            continue
        if shares[j] ** is_positive.sum() <= level:  # with fewer positives, no promise is possible
            p = curves.of_topics(np.array([j])).probabilities(column[:, None])[:, 0]
            sequences[j] = _Sequence.of(column, is_positive, p, float(shares[j]), level)
    thresholds, counts = np.full(n_topics, np.inf), np.zeros((2, n_topics), np.int64)
    p_values = np.sort([sequence.first_p for sequence in sequences.values()])
    may_be = np.flatnonzero(p_values <= level * np.arange(1, len(p_values) + 1) / max(len(p_values), 1))
    if len(may_be):
        level *= (may_be[-1] + 1) / len(p_values)
        for j, sequence in sequences.items():
            if sequence.first_p <= level and (last := sequence.last_success(float(shares[j]), level)) >= 0:
                counts[:, j] = sequence.documents[last], sequence.correct[last]
                thresholds[j] = threshold_at_rank(sequence.highest, int(counts[0, j]))
    return thresholds, counts[0], counts[1]


def promise_together(
    scores: ArrayLike, Y: Any, precision: float, confidence: float, calibration: Calibration
) -> tuple[NDArray[np.float64], int, int]:
    """Return for each of several topics the threshold above which their tags together have the precision.

    Parameters
    ----------
    scores, Y, calibration
        As for `promise_precision`, of these topics only.
    precision, confidence : float

    Returns
    -------
    thresholds : ndarray of shape (n_topics,), float64
        The scores that correspond to the same probability; inf if the precision cannot be promised.
    documents, correct : int
        How many tags of the sample are above the thresholds, and how many of these are right.
    """
    p = calibration.probabilities(scores)
    pairs, labels = p.reshape(-1, 1), positives_of(Y, p.shape).toarray().reshape(-1, 1)
    as_they_are = Calibration(np.ones(1), np.zeros(1))
    with np.errstate(divide="ignore"):
        log_odds = np.log(pairs) - np.log1p(-pairs)
    (cut,), (documents,), (correct,) = promise_precision(log_odds, labels, precision, confidence, as_they_are)
    probability = float(expit(np.array([cut]))[0])
    return calibration.threshold(probability), int(documents), int(correct)


def limit_missed(probabilities: ArrayLike, Y: Any, share: float) -> float:
    """Return the highest probability threshold at which documents miss, on average, at most a share of their topics.

    This is conformal risk control (Angelopoulos et al. 2022): the mean share of their topics that later documents miss
    is expected to be at most `share`. Raise ValueError if there are too few documents for that.

    Parameters
    ----------
    probabilities : array-like of shape (n_documents, n_topics)
        Probabilities of held-out documents; nan where a document was not labelled for a topic. Documents without a
        topic, or with one whose probability is nan, are left out.
    Y
        Labels of the same shape.
    share : float in (0, 1)
    """
    p = np.asarray(probabilities)
    positives = positives_of(Y, p.shape).toarray()
    positives &= ~(np.isnan(p) & positives).any(axis=1, keepdims=True)
    n_topics = positives.sum(axis=1)
    rows, columns = np.nonzero(positives)
    order = np.argsort(p[rows, columns], kind="stable")
    missed, n = p[rows, columns][order], int((n_topics > 0).sum())
    if share * (n + 1) < 1:
        raise ValueError(f"{n:,} documents with topics are too few to limit what is missed to {share:g}")
    # The losses, plus the largest possible loss of one future document: all of its topics.
    total = np.cumsum(1 / n_topics[rows[order]]) + 1
    may_miss = int(np.searchsorted(total, share * (n + 1) + _ROUNDING, "right"))
    # The first probability that must not be missed has to be above the threshold, and so must all that are equal to it.
    return float(np.nextafter(missed[may_miss], 0)) if may_miss < len(missed) else 1.0


def promise_recall(scores: ArrayLike, Y: Any, recall: ArrayLike, confidence: float) -> NDArray[np.float64]:
    """Return for each topic the highest threshold at which its recall can be promised; -inf where it cannot be.

    Parameters
    ----------
    scores, Y, confidence
        As for `promise_precision`; each promise holds with the confidence.
    recall : array-like of shape (n_topics,), or float in (0, 1)
        The recall to promise for each topic; nan: none.
    """
    values = np.asarray(scores)
    shares = np.broadcast_to(np.asarray(recall, np.float64), values.shape[1])
    thresholds = np.full(len(shares), -np.inf)
    for j, (column, is_positive) in enumerate(topic_samples(values, Y)):
        if np.isnan(shares[j]):
            continue
        n = int(is_positive.sum())
        suffices = binomial_p_value(np.arange(n + 1), n, shares[j]) <= 1 - confidence
        if suffices.any():
            k = int(np.argmax(suffices))  # minimum number of positives above the threshold
            least, ranked = np.partition(column[is_positive], n - k)[n - k], np.sort(column)
            thresholds[j] = threshold_at_rank(ranked, len(ranked) - int(np.searchsorted(ranked, least)))
    return thresholds
