"""Compute the progress of a topic: counts, gain curve, answers per minute, and the history for stopping rules.

All numbers of documents count a group of near-duplicates as one document.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from statistics import median
from typing import NamedTuple

import numpy as np

from textcat.teaching.query import Reason
from textcat.teaching.stopping import History
from textcat.teaching.view import View

_PAUSE = 600.0  # seconds between answers above which the pause is a break, not thinking time
_PACED = 20  # number of last pauses from which the pace is computed


class Counts(NamedTuple):
    """The numbers of documents with the answers yes, no and skip."""

    yes: int
    no: int
    skip: int


class Progress(NamedTuple):
    """The progress of teaching a topic: counts, the gain curve and the answers per minute."""

    topic: str
    n_documents: int  # documents of the pool
    yes: int  # documents with this label, i.e. relevant documents found
    no: int
    skipped: int  # documents that were skipped, and have no label
    at_random: int  # documents whose first answer, yes or no, was to a question drawn at random
    disagreements: int  # disagreements not adjudicated yet
    persons: list[str]
    model: int  # number of changes to the topic so far; the next ranking includes all of them
    curve: list[int]  # relevant documents found after each answer; one answer counts for each document
    pace: float | None  # answers per minute, by the median time between the last answers

    @property
    def counts(self) -> Counts:
        """The number of documents with each answer."""
        return Counts(self.yes, self.no, self.skipped)

    @property
    def open(self) -> int:
        """The number of documents without a label; skipped documents are among them."""
        return self.n_documents - self.yes - self.no

    def points(self, most: int) -> list[tuple[int, int]]:
        """Return the gain curve as pairs: a number of answers, and how many relevant documents these answers found.

        The first pair is (0, 0); up to `most` evenly spaced points of the curve follow.
        """
        n = len(self.curve)
        places = sorted({round(k * (n - 1) / (most - 1)) for k in range(most)}) if n else []
        return [(0, 0), *((position + 1, self.curve[position]) for position in places)]


def history(view: View, topic: str) -> History:
    """Return the answers on a topic in the form that stopping rules take.

    There is one answer for each group of near-duplicates that has a label.

    Parameters
    ----------
    view : View
    topic : str

    Returns
    -------
    History
    """
    with view.unchanged():
        order, n = view.topic(topic).in_order(), len(view.groups)
    at_random = np.array([judgement.why == Reason.AT_RANDOM for judgement, _ in order], bool)
    return History(np.array([label for _, label in order], bool), at_random, n)


def progress_of(view: View, topic: str) -> Progress:
    """Return the progress of a topic: counts, the gain curve and the answers per minute.

    The gain curve has the number of documents of the topic that are found after each answer.

    Parameters
    ----------
    view : View
    topic : str

    Returns
    -------
    Progress
    """
    with view.unchanged():
        state, order = view.topic(topic), view.topic(topic).in_order()
        yes = sum(state.labels.values())
        return Progress(
            topic,
            len(view.groups),
            yes,
            len(order) - yes,
            sum(bool(state.standing(group)) and group not in state.labels for group in state.answers),
            sum(judgement.why == Reason.AT_RANDOM for judgement, _ in order),
            sum(map(state.is_disagreement, state.answers)),
            state.persons(),
            state.n_changes,
            list(accumulate(int(label) for _, label in order)),
            _pace([judgement.at for judgement in state.judgements()]),
        )


def _pace(times: list[float]) -> float | None:
    """Return the number of answers per minute, from the median time between the last answers; breaks are left out."""
    pauses = [after - before for before, after in pairwise(times)]
    pauses = [pause for pause in pauses if 0 < pause < _PAUSE][-_PACED:]
    return 60 / median(pauses) if pauses else None
