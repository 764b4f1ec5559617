"""Stopping rules: from the answers so far, estimate the recall of a topic, and how many more answers are needed.

There are two kinds of rules. ``quantile`` and ``sample`` have *a guarantee that needs no model*: they hold for any
ranker and topic, because they use documents drawn at random. The others need fewer answers, because they assume how
finds (relevant documents found) become rarer: ``hypergeometric`` (as if the last answers were a random sample),
``poisson`` (at a rate that falls as a power of the number of answers), ``chao`` (from how many rankers agree on a
find), and ``learned``, the default, whose constants are learnt from simulated reviews. ``knee`` and ``budget`` only
tell when to stop.

docs/background/teaching-stopping.md tells how often each rule reached its recall in simulations, and how many answers
it took.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, bdtrc, betainc, gammaincc, ndtr

from textcat.base.errors import TextcatError
from textcat.teaching._ranking import hypergeometric_tail

DEFAULT_RULE = "learned"


class History(NamedTuple):
    """The answers on a topic, in their order, and further data that the rules use.

    Only the rule "quantile" uses `reached`, and only the rule "chao" uses `captures`; without its field, a rule gives
    no estimate.
    """

    answers: Any  # bool, in the order asked: does the document belong to the topic?
    at_random: Any  # bool, for each answer: was the document drawn at random from all that were open then?
    n_documents: int  # of the pool, including those that were answered
    # For "quantile": bool, for each answer: would the ranking have reached the document by now? It counts only for
    # documents that were drawn at random.
    reached: Any = None
    # For "chao": int, for each answer: how many of several independent rankers would have asked about it by now?
    captures: Any = None

    @classmethod
    def of(cls, answers: Any, at_random: Any, ranks: Any, n_documents: int) -> "History":
        """Return the history of answers; `reached` is computed from the rank of each document when it was asked about.

        Parameters
        ----------
        answers, at_random : ndarray of shape (n_answers,), bool
            For each answer, in order: whether the document is relevant, and whether it was drawn at random.
        ranks : ndarray of shape (n_answers,), int
            The document's rank among the documents without an answer then, counted from 1.
        n_documents : int

        Returns
        -------
        History
        """
        by_score = ~at_random
        # With an unchanged ranking, a document of rank r would have been asked about as the r-th from then on.
        asked_since = by_score[::-1].cumsum()[::-1] - by_score
        return cls(answers, at_random, n_documents, asked_since >= ranks)

    def first(self, n: int) -> "History":
        """Return the history of the first n answers."""
        further = (None if values is None else values[:n] for values in (self.reached, self.captures))
        return History(self.answers[:n], self.at_random[:n], self.n_documents, *further)


class Estimate(NamedTuple):
    """The estimated recall of a topic, with a lower and an upper bound in [0, 1].

    With the required confidence, recall is at least `low`.
    """

    rule: str
    recall: float
    low: float  # nan, like the other figures, if the rule only tells when to stop
    high: float
    relevant: float  # estimated number of documents of the topic in the whole pool, found ones included
    more: int | None  # answers until one can stop if none of them is "yes": 0 = now; None = the rule cannot tell


class Course(NamedTuple):
    """The finds (relevant documents found) in a history of answers, in the form that all stopping rules take."""

    t: NDArray[np.floating[Any]]  # the numbers of answers, from 1, at which something was found
    n: int  # number of answers
    N: int  # number of documents
    sums: tuple[float, float]  # over the finds: Σ t^8, with t in units of `unit`; and Σ log t
    unit: float  # the number of answers when the sums were computed: a later "no" changes only n
    # Of the questions drawn at random: the number of answers, of "yes" answers, of "yes" answers that the ranking would
    # have reached (-1: unknown); and the number of documents that were open before the first such question.
    drawn: tuple[int, int, int, int] | None = None
    captures: tuple[int, int] | None = None  # number of finds that exactly one, and exactly two rankers would have made

    @property
    def r(self) -> int:
        """The number of finds (relevant documents found)."""
        return len(self.t)


@dataclass(frozen=True)
class Stopper:
    """A stopping rule, the recall to reach, and the confidence that it is reached.

    Parameters
    ----------
    rule : str
        One of `RULES`.
    target : float
        The recall, in (0, 1).
    confidence : float
        In [0.5, 1).

    Raises
    ------
    TextcatError
        If there is no such rule, or a number is out of its range.
    """

    rule: str = DEFAULT_RULE
    target: float = 0.95
    confidence: float = 0.95

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise TextcatError(f"No stopping rule {self.rule!r}: choose one of {', '.join(RULES)}.")
        if not 0 < self.target < 1:
            raise TextcatError(f"A stopping rule cannot have a recall of {self.target}: give a number between 0 and 1.")
        if not 0.5 <= self.confidence < 1:
            raise TextcatError(
                f"A stopping rule cannot have confidence {self.confidence}: give at least 0.5 and less than 1."
            )

    def changed(self, rule: str = "", target: float | None = None, confidence: float | None = None) -> "Stopper":
        """Return a copy of this stopper with another rule, recall or confidence.

        Parameters
        ----------
        rule : str
        target, confidence : float, optional
            As for the class; "" and None leave a value unchanged.

        Returns
        -------
        Stopper
        """
        target = self.target if target is None else target
        return Stopper(rule or self.rule, target, self.confidence if confidence is None else confidence)

    def estimate(self, history: History) -> Estimate:
        """Estimate the recall so far, and how many more answers are needed.

        ``low = r / (r + M(confidence))`` and ``high = r / (r + M(1 - confidence))``, where r is the number of relevant
        documents found, and M(q) is the upper bound of the number of missing documents at confidence q.
        """
        course = course_of_history(history)
        n_more = self._more(course)
        if self.rule in _STOPS:
            return Estimate(self.rule, math.nan, math.nan, math.nan, math.nan, n_more)
        missing, least, most = _bounds(course, self.rule, self.confidence)
        low, recall, high = (course.r / (course.r + m) if course.r + m else 1.0 for m in (most, missing, least))
        return Estimate(self.rule, recall, low, high, course.r + missing, n_more)

    def may_stop(self, history: History) -> bool:
        """Return whether the target recall is reached with the required confidence."""
        return self._is_enough(course_of_history(history))

    def _is_enough(self, course: Course) -> bool:
        allowed = course.r / self.target - course.r  # how many may be missing
        if course.N - course.n <= allowed + _ROUNDING:
            return True  # even if all documents left belonged to the topic
        if self.rule in _STOPS:
            return _STOPS[self.rule](course)
        return bool(course.r and SURE[self.rule](course)(allowed) >= self.confidence)

    def _more(self, course: Course) -> int | None:
        """Return how many answers "no" it takes until one can stop; None if the rule cannot tell.

        Bisection finds the number, because an answer "no" never makes a rule less sure.
        """
        if self._is_enough(course):
            return 0
        if self.rule in DRAWN:
            return None
        return _smallest(lambda k: self._is_enough(course._replace(n=course.n + k)), course.N - course.n)


def course_of_history(history: History) -> Course:
    """Return the finds (relevant documents found) of a history of answers.

    Raise TextcatError if there are more answers than documents.
    """
    answers = np.asarray(history.answers, bool)
    n, N = len(answers), int(history.n_documents)
    if not n <= N:
        raise TextcatError(f"There are {n:,} answers for {N:,} documents: give at most one answer per document.")
    drawn, captures, at_random = None, None, np.asarray(history.at_random, bool)
    if at_random.any():
        relevant = int(np.count_nonzero(answers & at_random))
        reached = None if history.reached is None else answers & at_random & np.asarray(history.reached, bool)
        n_reached = -1 if reached is None else int(np.count_nonzero(reached))
        drawn = (int(np.count_nonzero(at_random)), relevant, n_reached, N - int(np.argmax(at_random)))
    if history.captures is not None:
        times = np.asarray(history.captures)[answers]
        captures = (int(np.count_nonzero(times == 1)), int(np.count_nonzero(times == 2)))
    t = np.flatnonzero(answers) + 1.0
    sums = float(((t / max(n, 1)) ** FADE).sum()), float(np.log(t).sum())
    return Course(t, n, N, sums, max(n, 1), drawn, captures)


def _bounds(course: Course, rule: str, confidence: float) -> tuple[float, int, int]:
    """Return a rule's estimate of the number of missing documents, and its lower and upper bound at `confidence`."""
    left = course.N - course.n
    sure = SURE[rule](course) if left and course.r else probability_of_none
    if sure is probability_of_none:
        return float(left), 0, left
    sureness = (1 - confidence, 0.5, confidence)
    least, middle, most = (_smallest(lambda m, p=p: sure(m) >= p, left) for p in sureness)  # type: ignore[misc]
    mean = _MEAN[rule](course) if rule in _MEAN else middle
    return float(min(max(mean, least), most)), least, most


def _smallest(holds: Callable[[int], bool], most: int) -> int:
    """Return the smallest number from 0 to `most` for which `holds` is true; if it is true for none, return `most`.

    If `holds` is true for a number, it must be true for all larger numbers. The search doubles its steps, and then
    bisects, because the number is mostly small.
    """
    low, high = -1, 0
    while high < most and not holds(high):
        low, high = high, 2 * high + 1
    high = min(high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


# ---- The confidence that at most m documents are missing: one function for each rule, in [0, 1], never falling with m.

_Sure = Callable[[float], float]
_ROUNDING = 1e-9  # 19/0.95 - 19 is to be 1


def _whole(m: float) -> int:
    return math.floor(m + _ROUNDING)


def probability_of_none(m: float) -> float:
    """Return 0 for every m: a rule without data is never sure that at most m documents are missing."""
    return 0.0


FADE = 8
CONSTANTS = (511.0, 2.25, 0.1)  # C, p, φ: learnt by scripts/benchmarks/teaching_stopping.py from simulated runs


def fit_missing(course: Course) -> tuple[float, float]:
    """Return the shape a of the negative binomial distribution of the number of missing documents, and θ = mean / a.

    ``a = φ E`` and ``θ = C (100 E / n)^p (N - n + 0.5)/N`` with ``E = 1 + Σ (t_i/n)^8``, where t_i is the number of
    answers at find i, n the number of all answers, N the number of documents, and (C, p, φ) are CONSTANTS. The longer
    ago a find was, the less it counts: 0.43 if a tenth of the answers came after it. An answer "no" lowers both a and
    θ, so it never makes the rule less sure.
    """
    n, N, (c, p, spread) = course.n, course.N, CONSTANTS
    recent = 1 + course.sums[0] * (course.unit / n) ** FADE
    return spread * recent, c * (100 * recent / n) ** p * (N - n + 0.5) / N


def sure_missing(course: Course) -> _Sure:
    """Return a function of m: the confidence, by the rule "learned", that at most m documents are missing."""
    a, odds = fit_missing(course)
    return lambda m: float(betainc(a, _whole(m) + 1, 1 / (1 + odds)))


def expected_missing(course: Course) -> float:
    """Return the expected number of missing documents if, at answer x, finds come at the rate ``λ(x) = A x^-b``.

    On the scale ``u = log x``, the finds up to answer n have a density proportional to ``e^(cu)`` between the first and
    the last answer, where ``c = 1 - b``. The mean of u over the finds gives c (maximum likelihood), and the rate from n
    to N gives the number of missing documents. Sneyd & Stevenson, Stopping criteria for technology assisted reviews
    based on counting processes, SIGIR 2021, fit the same rate to batches by least squares.
    """
    u0, u1, u2 = (math.log(x + 0.5) for x in (0, course.n, course.N))
    c = _tilt((course.sums[1] / course.r - u0) / (u1 - u0)) / (u1 - u0)
    grown = (u2 - u1) / (u1 - u0) if abs(c) < 1e-9 else math.expm1(c * (u2 - u1)) / -math.expm1(-c * (u1 - u0))
    return course.r * grown


def _tilt(mean: float) -> float:
    """Return the k, within ±50, for which the density proportional to ``e^(kx)`` on [0, 1] has the given mean."""
    low, high = -50.0, 50.0
    for _ in range(50):
        k = (low + high) / 2
        has = 0.5 + k / 12 if abs(k) < 1e-4 else 1 / -math.expm1(-k) - 1 / k
        low, high = (k, high) if has < mean else (low, k)
    return (low + high) / 2


def _sure_poisson(course: Course) -> _Sure:
    mean = expected_missing(course)
    return lambda m: float(gammaincc(_whole(m) + 1, mean))


def _sure_hypergeometric(course: Course) -> _Sure:
    """Return a function of m: the confidence 1 - p that at most m documents are missing.

    p is the smallest p-value, over several s, of the hypothesis that more than m documents are missing; it treats the
    last s answers as a random sample. ``p = min_s P(X <= k)``, where k of the s answers are "yes", and X is the number
    of relevant documents among s draws without replacement from the documents that were open before these answers,
    m + 1 + k of which are relevant (hypergeometric). Source: Callaghan & Müller-Hansen, Statistical stopping criteria
    for automated screening in systematic reviews, Systematic Reviews 9, 2020; ``calculate_h0`` of their package
    buscarpy computes p. The ranker asks about likely documents first. To treat its questions as random draws therefore
    makes the rule stop later, while the choice of the best among several s makes it stop earlier.
    """
    r, n, N = course.r, course.n, course.N
    # Of all stretches of last answers with the same number of finds, the longest counts: it begins after a find.
    starts = np.concatenate([[0.0], course.t[course.t < n]])
    k, s, open_then = r - np.arange(len(starts), dtype=float), n - starts, N - starts
    if len(s) > STRETCHES:  # only the most promising, by the normal approximation, at 95 % recall
        share = np.minimum((k + r / 19) / open_then, 1)
        z = (k - s * share) / np.sqrt(np.maximum(s * share * (1 - share) * (open_then - s) / open_then, 1e-12))
        best = np.argpartition(z, STRETCHES)[:STRETCHES]
        s, k, open_then = s[best], k[best], open_then[best]

    stretches = list(zip(k.tolist(), open_then.tolist(), s.tolist(), strict=True))

    def sure(m: float) -> float:
        least_missing = _whole(m) + 1
        if any(k + least_missing > open_then for k, open_then, _ in stretches):
            return 1.0
        p = min(hypergeometric_tail(k, open_then, k + least_missing, s) for k, open_then, s in stretches)
        return 1 - round(p, 12)  # if p is exactly at the limit, the result must not depend on the last bit

    return sure


STRETCHES = 16


def _sure_sample(course: Course) -> _Sure:
    """Return a function of m: the confidence that at most m documents are missing, ``1 - P(Bin(s, (m + 1)/N') <= k)``.

    s questions were drawn at random, k of their answers are "yes", and N' documents were open before the first of these
    questions. As long as more than m relevant documents are open, each random question has at least the chance
    (m + 1)/N' of a "yes", whatever the ranker asks in between: the rule assumes nothing else.
    """
    if course.drawn is None:
        return probability_of_none
    s, k, _, open_then = course.drawn
    return lambda m: float(bdtrc(k, s, min(1.0, (_whole(m) + 1) / open_then)))


def _sure_quantile(course: Course) -> _Sure:
    """Return a function of m: the confidence in a recall of at least ``r / (r + m)``, ``P(Bin(s, recall) < j)``.

    The questions drawn at random found s relevant documents, and the ranking alone would have reached j of these by
    now. r is the number of relevant documents found. This is the quantile binomial confidence bound of Lewis, Yang &
    Frieder, Certifying one-phase technology-assisted reviews, CIKM 2021, section 4. It is valid if the ranker is not
    trained on the answers to the random questions.
    """
    if course.drawn is None or course.drawn[2] < 1:
        return probability_of_none
    _, s, j, _ = course.drawn
    return lambda m: float(bdtr(j - 1, s, course.r / (course.r + m)))


def _sure_chao(course: Course) -> _Sure:
    """Return a function of m: the confidence, by Chao's estimator, that at most m documents are missing.

    Of several independent rankers, exactly one would have made f1 of the finds, and exactly two would have made f2 of
    the finds (`History.captures`); an f1 below 2 counts as 2. The number
    of missing documents is log-normal around ``f1 (f1 - 1) / (2 (f2 + 1))``, a lower bound, with Chao's variance. Chao,
    Estimating the population size for capture-recapture data with unequal catchability, Biometrics 43, 1987; Bron et
    al., Using Chao's estimator as a stopping criterion for technology-assisted review, 2024.
    """
    if course.captures is None:
        return probability_of_none
    # For f1 of 0 or 1 the formula says that nothing is missing, such as after a first find that all rankers agree on.
    f1, f2 = max(course.captures[0], 2), course.captures[1]
    missing = f1 * (f1 - 1) / (2 * (f2 + 1))
    variance = missing + f1 * (2 * f1 - 1) ** 2 / (4 * (f2 + 1) ** 2) + f1**2 * f2 * (f1 - 1) ** 2 / (4 * (f2 + 1) ** 4)
    spread = math.sqrt(math.log1p(variance / missing**2))
    return lambda m: float(ndtr(math.log(_whole(m) / missing) / spread)) if _whole(m) else 0.0


def _chao(course: Course) -> float:
    f1, f2 = course.captures or (0, 0)
    return f1 * (f1 - 1) / (2 * (f2 + 1))


# ---- Rules that only tell whether to stop.


def _knee(course: Course) -> bool:
    """Return True (stop) if the `steepness` of the gain curve is at least ``156 - min(r, 150)``.

    r is the number of relevant documents found.

    Source: Cormack & Grossman, Engineering quality and reliability in technology-assisted review, SIGIR 2016, section
    5.
    """
    return steepness(course) >= 156 - min(course.r, 150)


def steepness(course: Course) -> float:
    """Return the slope of the gain curve before its knee, divided by the slope after the knee.

    The gain curve has the number of finds (relevant documents found) after each answer; without a find, return 0. The
    knee is the find farthest above the straight line from the curve's start to its end. To avoid a slope of 0, one is
    added to the number of finds after the knee.
    """
    t, r, n = course.t, course.r, course.n
    if not r:
        return 0.0
    finds = np.arange(1, r + 1)
    knee = int(np.argmax(finds - t * (r / n)))
    at, n_found = t[knee], knee + 1
    return float(n_found / at * (n - at) / (r - n_found + 1)) if n > at else 0.0


def _budget(course: Course) -> bool:
    """Return True (stop) after three quarters of the pool, or after 10 N / r answers if the gain curve has a knee.

    N is the number of documents, and r the number of relevant documents found. The curve has a knee if its `steepness`
    is at least 6. Source: Cormack & Grossman, 2016, section 6.
    """
    return course.n >= 0.75 * course.N or (course.r * course.n >= 10 * course.N and steepness(course) >= 6)


SURE: dict[str, Callable[[Course], _Sure]] = {
    "chao": _sure_chao,
    "hypergeometric": _sure_hypergeometric,
    "learned": sure_missing,
    "poisson": _sure_poisson,
    "quantile": _sure_quantile,
    "sample": _sure_sample,
}
_MEAN: dict[str, Callable[[Course], float]] = {
    "chao": _chao,
    "learned": lambda course: math.prod(fit_missing(course)),
    "poisson": expected_missing,
}
_STOPS: dict[str, Callable[[Course], bool]] = {"budget": _budget, "knee": _knee}
SEVERAL_RANKERS = {"chao"}  # rules that need the finds of several rankers: `History.captures`
DRAWN = {"chao", "quantile", "sample"}  # rules whose data an answer "no" does not change

#: The names of the rules.
RULES = tuple(sorted([*SURE, *_STOPS]))
