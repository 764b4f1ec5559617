"""The progress of a topic: counts, the gain curve, the pace, and the history for stopping rules.

All numbers of documents count a group of near-duplicates as one document.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from textcat.teaching.advice import Band, KnownBand, about_band, advice, last_band
from textcat.teaching.judgements import TopicState
from textcat.teaching.query import Reason
from textcat.teaching.stopping import Estimate, History

if TYPE_CHECKING:
    from textcat.teaching.session import Session

_PAUSE = 600.0  # seconds between answers that count as a break, not as thinking
_PACED = 20  # the number of last pauses from which the pace is computed


class Counts(NamedTuple):
    """The numbers of documents with the answers yes, no and skip."""

    yes: int
    no: int
    skip: int


class Progress(NamedTuple):
    """The progress of teaching a topic: counts, the gain curve, the pace, the estimate of recall, and advice."""

    topic: str
    n_documents: int  # of the pool
    yes: int  # documents with this label: those of the topic that are found
    no: int
    skipped: int  # documents that were skipped, and have no label
    at_random: int  # answers to questions drawn at random
    disagreements: int  # not adjudicated yet
    persons: list[str]
    model: int  # the number of changes to the topic so far; the next ranking includes all of them
    curve: list[int]  # documents found after each answer
    pace: float | None  # answers a minute, by the median time between the last answers
    estimate: Estimate | None  # of recall, by the rule asked for
    band: Band | None = None  # the latest estimate that is informative
    advice: str = ""  # a sentence that tells when to stop
    about_band: str = ""  # a sentence that tells why there is no new band, and what helps; "" if there is one

    @property
    def counts(self) -> Counts:
        """The number of documents with each answer."""
        return Counts(self.yes, self.no, self.skipped)

    @property
    def open(self) -> int:
        """The number of documents without an answer."""
        return self.n_documents - self.yes - self.no

    def points(self, most: int) -> list[tuple[int, int]]:
        """Return the gain curve as pairs: a number of answers, and the number of relevant documents found by then.

        The first pair is (0, 0); up to `most` evenly spaced points of the curve follow.
        """
        n = len(self.curve)
        places = sorted({round(k * (n - 1) / (most - 1)) for k in range(most)}) if n else []
        return [(0, 0), *((position + 1, self.curve[position]) for position in places)]


def history(session: Session, topic: str) -> History:
    """Return the answers on a topic in the form that stopping rules take.

    There is one answer for each group of near-duplicates that has a label.
    """
    with session.lock:
        order = session.topic_state(topic).in_order()
    n = len(session.groups)
    at_random = np.array([judgement.why == Reason.AT_RANDOM for judgement, _ in order], bool)
    ranks = np.array([judgement.rank or n for judgement, _ in order], np.int64)
    return History.of(np.array([label for _, label in order], bool), at_random, ranks, n)


def estimate(
    session: Session, topic: str, rule: str = "", target: float | None = None, confidence: float | None = None
) -> Estimate:
    """Estimate the recall of a topic; by default with the rule, target and confidence of the session's `Stopper`.

    Parameters
    ----------
    session : Session
    topic : str
    rule : str, optional
        One of `textcat.teaching.stopping.RULES`.
    target, confidence : float, optional
        The recall to reach, and the confidence that it is reached.

    Returns
    -------
    Estimate
    """
    stopper = session.stopper.changed(rule, target, confidence)
    with session.lock:
        key = topic, session.topic_state(topic).n_changes, stopper
        if key in session.estimates:
            return session.estimates[key]
        answers = history(session, topic)
    made = stopper.estimate(answers)  # which may take long, while others answer
    with session.lock:
        session.estimates = {name: kept for name, kept in session.estimates.items() if name[:2] == key[:2]}
        session.estimates[key] = made
    return made


def progress(
    session: Session,
    topic: str,
    rule: str | None = "",
    target: float | None = None,
    confidence: float | None = None,
) -> Progress:
    """Return the progress of a topic: counts, the gain curve, the pace, and an estimate of recall.

    The gain curve has the number of documents of the topic that are found after each answer.

    Parameters
    ----------
    session : Session
    topic : str
    rule, target, confidence
        As for `estimate`; if `rule` is None, recall is not estimated.

    Returns
    -------
    Progress
    """
    estimated = None if rule is None else estimate(session, topic, rule, target, confidence)
    with session.lock:
        state = _progress_of(session.topic_state(topic), len(session.groups), estimated)
        answers = history(session, topic)
    if rule is None or estimated is None:
        return state
    stopper = session.stopper.changed(rule, target, confidence)
    band = last_band(stopper, answers, estimated, session.bands.get((topic, stopper)))
    session.bands[topic, stopper] = KnownBand(answers.answers, band)
    return state._replace(band=band, advice=advice(stopper, answers, estimated), about_band=about_band(band, answers))


def _progress_of(state: TopicState, n_documents: int, estimated: Estimate | None) -> Progress:
    order = state.in_order()
    curve = list(accumulate(int(label) for _, label in order))
    yes = sum(state.labels.values())
    return Progress(
        state.name,
        n_documents,
        yes,
        len(order) - yes,
        sum(bool(state.standing(group)) and group not in state.labels for group in state.answers),
        sum(judgement.why == Reason.AT_RANDOM for judgement, _ in order),
        sum(map(state.is_disagreement, state.answers)),
        state.persons(),
        state.n_changes,
        curve,
        _pace([judgement.at for judgement in state.judgements()]),
        estimated,
    )


def _pace(times: list[float]) -> float | None:
    """Return the number of answers per minute, from the median time between the last answers; breaks are left out."""
    pauses = [after - before for before, after in pairwise(times)]
    pauses = [pause for pause in pauses if 0 < pause < _PAUSE][-_PACED:]
    return 60 / median(pauses) if pauses else None
