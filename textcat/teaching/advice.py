"""Advise a person when to stop: a sentence, and the latest estimate of recall that is informative."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from textcat.teaching.stopping import DRAWN, SEVERAL_RANKERS, Estimate, History, Stopper

_PREFIXES = 500  # the largest number of answers that are left out to find an earlier informative estimate


class Band(NamedTuple):
    """An estimate of recall with its bounds, and the number of answers that the estimate is based on."""

    estimate: Estimate
    n_answers: int


class KnownBand(NamedTuple):
    """The result of an earlier call of `last_band` (`band`), and the answers that this call had (`answers`)."""

    answers: Any
    band: Band | None


def last_band(stopper: Stopper, history: History, estimate: Estimate, known: KnownBand | None = None) -> Band | None:
    """Return the latest informative estimate of recall; None if no recent estimate is informative.

    This is `estimate`, which is based on all answers in `history`, or an estimate by `stopper` from the first n of
    these answers. `known` is the result of an earlier call, whose estimates are then not computed again.
    """
    n, n_known, answers = len(history.answers), 0, np.asarray(history.answers, bool)
    if known is not None and np.array_equal(answers[: len(known.answers)], known.answers):
        n_known = len(known.answers)
    if _tells_something(estimate, history):
        return Band(estimate, n)
    if math.isnan(estimate.recall):  # the rule only tells when to stop
        return None
    for k in range(n - 1, max(n - _PREFIXES, n_known), -1):
        earlier = history.first(k)
        made = stopper.estimate(earlier)
        if _tells_something(made, earlier):
            return Band(made, k)
    return known.band if known is not None and n_known else None


def _tells_something(estimate: Estimate, history: History) -> bool:
    """Return whether an estimate is informative: something is found, all figures are finite, and the total is small.

    The total is the estimated number of relevant documents. It is small if it is at most half of all documents, or if
    more than a quarter of all documents are found to be relevant.
    """
    figures = estimate.recall, estimate.low, estimate.high, estimate.relevant
    n_found = int(sum(history.answers))
    is_narrow = 2 * estimate.relevant <= history.n_documents or 4 * n_found > history.n_documents
    return n_found > 0 and all(map(math.isfinite, figures)) and is_narrow


def advice(stopper: Stopper, history: History, estimate: Estimate) -> str:
    """Return a sentence that tells whether a person can stop or, if not, after how many further answers "no"."""
    aim = f"{_percent(stopper.target)} found, with {_percent(stopper.confidence)} confidence"
    if math.isnan(estimate.recall):
        aim = f"so says the rule {stopper.rule}"
    n_random = int(sum(history.at_random))
    if estimate.more == 0:
        return f"You can stop: {aim}."
    if not any(history.answers):
        return (
            "Nothing is found yet, so nothing can be estimated: search for a document that belongs to the topic, or go "
            "on answering."
        )
    if estimate.more is not None:
        answers = "answer is" if estimate.more == 1 else f"{estimate.more:,} answers are all"
        return f"If the next {answers} no, you can stop: {aim}."
    if stopper.rule in SEVERAL_RANKERS:
        return f"The rule {stopper.rule} needs the finds of several rankers, which a session has not: use another."
    if stopper.rule in DRAWN:
        return (
            f"The rule {stopper.rule} needs more than {n_random:,} answers on documents drawn at random: give the "
            "topic a larger share of them (--random)."
        )
    return "How many answers are needed is not known: go on answering."


def about_band(band: Band | None, history: History) -> str:
    """Return a sentence that tells why the latest estimate is not informative, and what helps.

    `band` is the latest informative estimate; None: there is none. Return "" if it is based on all answers, or if no
    relevant document is found yet.
    """
    n = len(history.answers)
    if (band is not None and band.n_answers == n) or not any(history.answers):
        return ""
    remedy = "An estimate comes when finds become rarer: go on answering."
    if band is None:
        return f"The total cannot be estimated yet, as almost any number is possible. {remedy}"
    return f"The band is that of {band.n_answers:,} answers; finds since then make almost any number possible. {remedy}"


def _percent(share: float) -> str:
    return f"{100 * share:.6g} %"
