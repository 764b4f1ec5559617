"""Stopping rules: from the answers so far, estimate the recall of a topic, and how many more answers are needed.

There are two rules. ``learned``, the default, models how finds (relevant documents found) become rarer; its constants
were fitted to simulated reviews. ``sample`` has *a guarantee that needs no model*: it holds for any ranker and topic,
because it uses documents drawn at random, but it needs more answers.

docs/background/teaching-stopping.md tells how often each rule reached its recall in simulations, how many answers it
took, and which other rules were tried.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import bdtrc, betainc

from textcat.base.errors import TextcatError

DEFAULT_RULE = "learned"


class History(NamedTuple):
    """The answers on a topic, in their order, and which of them were on documents drawn at random."""

    answers: Any  # bool, in the order asked: does the document belong to the topic?
    at_random: Any  # bool, for each answer: was the document drawn at random from all that were open then?
    n_documents: int  # number of documents in the pool, including answered ones

    def first(self, n: int) -> "History":
        """Return the history of the first n answers."""
        return History(self.answers[:n], self.at_random[:n], self.n_documents)


class Estimate(NamedTuple):
    """The estimated recall of a topic, with a lower and an upper bound in [0, 1].

    With the required confidence, recall is at least `low`.
    """

    rule: str
    recall: float
    low: float
    high: float
    relevant: float  # estimated number of documents of the topic in the whole pool, including found ones
    more: int | None  # further answers "no" until one can stop; 0: now; None: the rule cannot tell


class Course(NamedTuple):
    """Summary of a history of answers for stopping rules: counts, and how recent the answers "yes" are."""

    r: int  # number of finds
    n: int  # number of answers
    N: int  # number of documents
    recent: float  # sum over the finds: Σ (t / unit)^FADE, where t is the number of the answer, counted from 1
    unit: float  # the number of answers when the sum was computed; a later "no" changes only n
    # Random questions: the number of answers, and of "yes" answers; and the number of documents that were open before
    # the first random question. None: there were none.
    drawn: tuple[int, int, int] | None = None


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

    def changed(self, target: float | None = None, confidence: float | None = None) -> "Stopper":
        """Return a copy of this stopper with another recall or confidence, if given.

        Parameters
        ----------
        target, confidence : float, optional
            As for the class.

        Returns
        -------
        Stopper
        """
        target = self.target if target is None else target
        return Stopper(self.rule, target, self.confidence if confidence is None else confidence)

    def estimate(self, history: History) -> Estimate:
        """Estimate the recall so far, and how many more answers are needed.

        ``low = r / (r + M(confidence))`` and ``high = r / (r + M(1 - confidence))``, where r is the number of relevant
        documents found, and M(q) is the upper bound of the number of missing documents at confidence q.
        """
        course = course_of_history(history)
        n_more = self._answers_to_stop(course)
        missing, least, most = _bounds(course, self.rule, self.confidence)
        low, recall, high = (course.r / (course.r + m) if course.r + m else 1.0 for m in (most, missing, least))
        return Estimate(self.rule, recall, low, high, course.r + missing, n_more)

    def may_stop(self, history: History) -> bool:
        """Return whether the target recall is reached with the required confidence."""
        return self._is_enough(course_of_history(history))

    def _is_enough(self, course: Course) -> bool:
        allowed = course.r / self.target - course.r  # number of documents that may be missing
        if course.N - course.n <= allowed + _ROUNDING:
            return True  # even if all open documents belonged to the topic
        return bool(course.r and SURE[self.rule](course)(allowed) >= self.confidence)

    def _answers_to_stop(self, course: Course) -> int | None:
        """Return after how many more answers, all "no", a person can stop; None if the rule cannot tell.

        Bisection finds the number, because an answer "no" never makes a rule less sure.
        """
        if self._is_enough(course):
            return 0
        if self.rule == DRAWN:
            return None
        return _smallest(lambda k: self._is_enough(course._replace(n=course.n + k)), course.N - course.n)


def course_of_history(history: History) -> Course:
    """Summarise a history of answers for stopping rules: how many relevant documents were found, and how recently.

    Raise TextcatError if there are more answers than documents.
    """
    answers, at_random = np.asarray(history.answers, bool), np.asarray(history.at_random, bool)
    n, N = len(answers), int(history.n_documents)
    if not n <= N:
        raise TextcatError(f"There are {n:,} answers for {N:,} documents: give at most one answer per document.")
    drawn = None
    if at_random.any():
        n_relevant = int(np.count_nonzero(answers & at_random))
        drawn = int(np.count_nonzero(at_random)), n_relevant, N - int(np.argmax(at_random))
    t = np.flatnonzero(answers) + 1.0
    return Course(len(t), n, N, float(((t / max(n, 1)) ** FADE).sum()), max(n, 1), drawn)


def _bounds(course: Course, rule: str, confidence: float) -> tuple[float, int, int]:
    """Estimate the number of missing documents by a stopping rule; return its lower and upper bound, too.

    The bounds hold at `confidence`.
    """
    left = course.N - course.n
    sure = SURE[rule](course) if left and course.r else probability_of_none
    if sure is probability_of_none:
        return float(left), 0, left
    sureness = (1 - confidence, 0.5, confidence)
    least, middle, most = (_smallest(lambda m, p=p: sure(m) >= p, left) for p in sureness)  # type: ignore[misc]
    mean = math.prod(fit_missing(course)) if rule == DEFAULT_RULE else middle
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
_ROUNDING = 1e-9  # tolerance: 19/0.95 - 19 must be 1


def _whole(m: float) -> int:
    return math.floor(m + _ROUNDING)


def probability_of_none(m: float) -> float:
    """Return 0 for every m: a rule without data is never sure that at most m documents are missing."""
    return 0.0


FADE = 8
CONSTANTS = (511.0, 2.25, 0.1)  # C, p, φ: fitted by scripts/benchmarks/teaching_stopping.py to simulated runs


def fit_missing(course: Course) -> tuple[float, float]:
    """Return the shape a of the negative binomial distribution of the number of missing documents, and θ = mean / a.

    ``a = φ E`` and ``θ = C (100 E / n)^p (N - n + 0.5)/N`` with ``E = 1 + Σ (t_i/n)^8``, where t_i is the number of
    answers at find i, n the number of all answers, N the number of documents, and (C, p, φ) are CONSTANTS. The longer
    ago a find was, the smaller its weight: 0.43 if a tenth of the answers came after it. An answer "no" lowers both a
    and θ, so it never makes the rule less sure.
    """
    n, N, (c, p, spread) = course.n, course.N, CONSTANTS
    recent = 1 + course.recent * (course.unit / n) ** FADE
    return spread * recent, c * (100 * recent / n) ** p * (N - n + 0.5) / N


def sure_missing(course: Course) -> _Sure:
    """Return a function of m: how sure the rule "learned" is that at most m relevant documents are missing."""
    a, odds = fit_missing(course)
    return lambda m: float(betainc(a, _whole(m) + 1, 1 / (1 + odds)))


def _sure_sample(course: Course) -> _Sure:
    """Return a function of m: the confidence that at most m documents are missing, ``1 - P(Bin(s, (m + 1)/N') <= k)``.

    s questions were drawn at random, k of their answers are "yes", and N' documents were open before the first of these
    questions. As long as more than m relevant documents are open, each random question has at least the chance
    (m + 1)/N' of a "yes", whatever the ranker asks in between: the rule assumes nothing else.
    """
    if course.drawn is None:
        return probability_of_none
    s, k, open_then = course.drawn
    return lambda m: float(bdtrc(k, s, min(1.0, (_whole(m) + 1) / open_then)))


SURE: dict[str, Callable[[Course], _Sure]] = {"learned": sure_missing, "sample": _sure_sample}
DRAWN = "sample"  # the rule whose data do not change with an answer "no"

#: The names of the rules.
RULES = tuple(SURE)
