"""Stopping rules that the study of stopping tried, and that textcat does not have: each tells whether to stop."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc, ndtr
from scipy.stats import hypergeom

STRETCHES = 16  # of last answers, which the rule "hypergeometric" looks at
_ROUNDING = 1e-9  # 19/0.95 - 19 is to be 1


class Finds(NamedTuple):
    """The finds (relevant documents found) of a run so far."""

    t: NDArray[np.floating[Any]]  # the numbers of answers, from 1, at which something was found
    n: int  # number of answers
    N: int  # number of documents
    captures: tuple[int, int] | None = None  # number of finds that exactly one, and exactly two rankers would have made

    @property
    def r(self) -> int:
        """The number of finds."""
        return len(self.t)


def may_stop(rule: str, finds: Finds, target: float, confidence: float) -> bool:
    """Return whether a rule says that the target recall is reached, with the required confidence if it has one."""
    allowed = finds.r / target - finds.r  # how many may be missing
    if finds.N - finds.n <= allowed + _ROUNDING:
        return True  # even if all documents left belonged to the topic
    return bool(finds.r) and RULES[rule](finds, math.floor(allowed + _ROUNDING)) >= confidence


def hypergeometric(finds: Finds, m: int) -> float:
    """Return the confidence 1 - p that at most m documents are missing.

    p is the smallest p-value, over several s, of the hypothesis that more than m documents are missing; it treats the
    last s answers as a random sample. ``p = min_s P(X <= k)``, where k of the s answers are "yes", and X is the number
    of relevant documents among s draws without replacement from the documents that were open before these answers,
    m + 1 + k of which are relevant (hypergeometric). Source: Callaghan & Müller-Hansen, Statistical stopping criteria
    for automated screening in systematic reviews, Systematic Reviews 9, 2020; ``calculate_h0`` of their package
    buscarpy computes p.
    """
    r, n, N = finds.r, finds.n, finds.N
    # Of all stretches of last answers with the same number of finds, the longest counts: it begins after a find.
    starts = np.concatenate([[0.0], finds.t[finds.t < n]])
    k, s, open_then = r - np.arange(len(starts), dtype=float), n - starts, N - starts
    if len(s) > STRETCHES:  # only the most promising, by the normal approximation, at 95 % recall
        share = np.minimum((k + r / 19) / open_then, 1)
        z = (k - s * share) / np.sqrt(np.maximum(s * share * (1 - share) * (open_then - s) / open_then, 1e-12))
        best = np.argpartition(z, STRETCHES)[:STRETCHES]
        s, k, open_then = s[best], k[best], open_then[best]
    if (k + m + 1 > open_then).any():
        return 1.0
    p = float(hypergeom.cdf(k, open_then, k + m + 1, s).min())
    return 1 - round(p, 12)  # if p is exactly at the limit, the result must not depend on the last bit


def poisson(finds: Finds, m: int) -> float:
    """Return the confidence that at most m documents are missing, whose number is Poisson around `expected_missing`."""
    return float(gammaincc(m + 1, expected_missing(finds)))


def expected_missing(finds: Finds) -> float:
    """Return the expected number of missing documents if, at answer x, finds come at the rate ``λ(x) = A x^-b``.

    On the scale ``u = log x``, the finds up to answer n have a density proportional to ``e^(cu)`` between the first and
    the last answer, where ``c = 1 - b``. The mean of u over the finds gives c (maximum likelihood), and the rate from n
    to N gives the number of missing documents. Sneyd & Stevenson, Stopping criteria for technology assisted reviews
    based on counting processes, SIGIR 2021, fit the same rate to batches by least squares.
    """
    u0, u1, u2 = (math.log(x + 0.5) for x in (0, finds.n, finds.N))
    c = _tilt((float(np.log(finds.t).mean()) - u0) / (u1 - u0)) / (u1 - u0)
    grown = (u2 - u1) / (u1 - u0) if abs(c) < 1e-9 else math.expm1(c * (u2 - u1)) / -math.expm1(-c * (u1 - u0))
    return finds.r * grown


def _tilt(mean: float) -> float:
    """Return the k, within ±50, for which the density proportional to ``e^(kx)`` on [0, 1] has the given mean."""
    low, high = -50.0, 50.0
    for _ in range(50):
        k = (low + high) / 2
        has = 0.5 + k / 12 if abs(k) < 1e-4 else 1 / -math.expm1(-k) - 1 / k
        low, high = (k, high) if has < mean else (low, k)
    return (low + high) / 2


def chao(finds: Finds, m: int) -> float:
    """Return the confidence, by Chao's estimator, that at most m documents are missing; 0 without captures.

    Of several independent rankers, exactly one would have made f1 of the finds, and exactly two would have made f2; an
    f1 below 2 counts as 2, for otherwise nothing would be missing after a first find that all rankers agree on. The
    number of missing documents is log-normal around ``f1 (f1 - 1) / (2 (f2 + 1))``, a lower bound, with Chao's
    variance. Chao, Estimating the population size for capture-recapture data with unequal catchability, Biometrics 43,
    1987; Bron et al., Using Chao's estimator as a stopping criterion for technology-assisted review, 2024.
    """
    if finds.captures is None or not m:
        return 0.0
    f1, f2 = max(finds.captures[0], 2), finds.captures[1]
    missing = f1 * (f1 - 1) / (2 * (f2 + 1))
    variance = missing + f1 * (2 * f1 - 1) ** 2 / (4 * (f2 + 1) ** 2) + f1**2 * f2 * (f1 - 1) ** 2 / (4 * (f2 + 1) ** 4)
    return float(ndtr(math.log(m / missing) / math.sqrt(math.log1p(variance / missing**2))))


def knee(finds: Finds, m: int) -> float:
    """Return 1 (stop) if the `steepness` of the gain curve is at least ``156 - min(r, 150)`` for r finds, else 0.

    Source: Cormack & Grossman, Engineering quality and reliability in technology-assisted review, SIGIR 2016, section
    5.
    """
    return float(steepness(finds) >= 156 - min(finds.r, 150))


def budget(finds: Finds, m: int) -> float:
    """Return 1 (stop) after 3/4 of the pool, or after 10 N / r answers if the `steepness` is at least 6; else 0.

    Source: Cormack & Grossman, 2016, section 6.
    """
    return float(
        finds.n >= 0.75 * finds.N or (finds.r * finds.n >= 10 * finds.N and steepness(finds) >= 6),
    )


def steepness(finds: Finds) -> float:
    """Return the slope of the gain curve before its knee, divided by the slope after the knee.

    The gain curve has the number of finds after each answer. The knee is the find farthest above the straight line from
    the curve's start to its end. To avoid a slope of 0, one is added to the number of finds after the knee.
    """
    t, r, n = finds.t, finds.r, finds.n
    knee_at = int(np.argmax(np.arange(1, r + 1) - t * (r / n)))
    at, n_found = t[knee_at], knee_at + 1
    return float(n_found / at * (n - at) / (r - n_found + 1)) if n > at else 0.0


#: By name: the confidence that at most m documents are missing, or 1 and 0 where a rule only tells when to stop.
RULES: dict[str, Callable[[Finds, int], float]] = {
    "budget": budget,
    "chao": chao,
    "hypergeometric": hypergeometric,
    "knee": knee,
    "poisson": poisson,
}
