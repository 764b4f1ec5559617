"""Advise a person when to stop: a sentence, and the latest informative estimate of recall."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from textcat.teaching.progress import history
from textcat.teaching.stopping import Estimate, History, Stopper
from textcat.teaching.view import View

_PREFIXES = 500  # maximum number of last answers to leave out in the search for an earlier informative estimate
_STOPPER = Stopper()


class Band(NamedTuple):
    """An estimate of recall with its bounds, and the number of answers it is based on."""

    estimate: Estimate
    n_answers: int


class CachedBand(NamedTuple):
    """The cached result of `last_band`, with the answers it was computed from."""

    history: History
    band: Band | None

    def is_of(self, history: History) -> bool:
        """Return whether the cached result was computed from the first answers of `history`, over as many documents."""
        first = history.first(len(self.history.answers))
        return history.n_documents == self.history.n_documents and all(
            map(np.array_equal, first[:2], self.history[:2])  # answers, and which were drawn at random
        )


class Advice(NamedTuple):
    """An estimate of recall, and sentences of advice when to stop."""

    estimate: Estimate
    band: Band | None  # the latest informative estimate
    advice: str  # whether the person can stop or, if not, what is needed
    about_band: str  # why there is no new band, and what helps; "" if there is one


class Advisor:
    """Estimate the recall of a session's topics, and advise when to stop.

    Parameters
    ----------
    view : View
    stopper : Stopper, optional
        The stopping rule, the recall to reach, and the confidence.
    """

    def __init__(self, view: View, stopper: Stopper = _STOPPER):
        self._view, self._stopper = view, stopper
        self._bands: dict[str, tuple[Stopper, CachedBand]] = {}  # the latest band of each topic

    def advise(self, topic: str, target: float | None = None, confidence: float | None = None) -> Advice:
        """Return advice on a topic.

        Parameters
        ----------
        topic : str
        target, confidence : float, optional
            The recall to reach, and the confidence that it is reached; by default those of the stopper.

        Returns
        -------
        Advice
        """
        stopper = self._stopper.changed(target=target, confidence=confidence)
        answers = history(self._view, topic)
        estimate = stopper.estimate(answers)
        asked_before, cached = self._bands.get(topic, (None, None))
        band = last_band(stopper, answers, estimate, cached if asked_before == stopper else None)
        self._bands[topic] = stopper, CachedBand(answers, band)
        return Advice(estimate, band, when_to_stop(stopper, answers, estimate), about_band(band, answers))


def last_band(stopper: Stopper, history: History, estimate: Estimate, cached: CachedBand | None = None) -> Band | None:
    """Return the latest informative estimate of recall, as a `Band`; None if no recent estimate is informative.

    An estimate is informative if relevant documents were found, and either it says that at most half of all documents
    are relevant, or more than a quarter of all were found relevant. `estimate` is based on all answers in `history`; if
    it is not informative, `stopper` estimates from fewer and fewer of the first answers. `cached` is the result of an
    earlier call, whose estimates are not computed again.
    """
    n = len(history.answers)
    if _is_informative(estimate, history):
        return Band(estimate, n)
    if cached is not None and not cached.is_of(history):
        cached = None
    n_cached = 0 if cached is None else len(cached.history.answers)
    for k in range(n - 1, max(n - _PREFIXES, n_cached), -1):
        earlier = history.first(k)
        made = stopper.estimate(earlier)
        if _is_informative(made, earlier):
            return Band(made, k)
    return None if cached is None else cached.band


def _is_informative(estimate: Estimate, history: History) -> bool:
    """Return whether an estimate is informative: relevant documents were found, and the estimated total is small.

    The total is the estimated number of relevant documents. It is small if it is at most half of all documents, or if
    more than a quarter of all documents are found to be relevant.
    """
    n_found = int(sum(history.answers))
    is_narrow = 2 * estimate.relevant <= history.n_documents or 4 * n_found > history.n_documents
    return n_found > 0 and is_narrow


def when_to_stop(stopper: Stopper, history: History, estimate: Estimate) -> str:
    """Return a sentence: whether a person can stop; if not, after how many more answers "no", or what to do first."""
    aim = f"{_percent(stopper.target)} found, with {_percent(stopper.confidence)} confidence"
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
    n_random = int(sum(history.at_random))
    return (
        f"The rule {stopper.rule} needs more than {n_random:,} answers on documents drawn at random: give the topic a "
        "larger share of them (--random-share)."
    )


def about_band(band: Band | None, history: History) -> str:
    """Return a sentence on why the latest estimate is not informative, and what helps.

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
