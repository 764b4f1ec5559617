"""The progress of a topic: counts, the gain curve, the pace, and the history for stopping rules."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate, pairwise
from statistics import median
from typing import NamedTuple

import numpy as np

from textcat.teaching.judgements import TopicState
from textcat.teaching.stopping import Estimate, History

_PAUSE = 600.0  # seconds between answers that count as a break, not as thinking
_PACED = 20  # last answers from which the pace is computed


class Progress(NamedTuple):
    """The progress of a topic."""

    topic: str
    n_documents: int  # of the pool
    n_groups: int  # groups of near-duplicates, each judged as one document
    yes: int  # groups with this label
    no: int
    skipped: int  # groups without an answer but skips
    found: int  # documents of the topic, including near-duplicates
    at_random: int  # answers to questions drawn at random
    disagreements: int  # not adjudicated yet
    persons: list[str]
    model: int  # the number of changes that the ranking includes
    curve: list[int]  # documents found after each answer
    pace: float | None  # answers a minute, by the median time between the last answers
    estimate: Estimate | None  # of recall, by the rule asked for


def progress_of(
    state: TopicState, n_documents: int, n_groups: int, size_of: Callable[[int], int], estimate: Estimate | None
) -> Progress:
    """Return the progress of a topic.

    Parameters
    ----------
    state : TopicState
    n_documents, n_groups : int
        Of the pool.
    size_of : function of int
        Returns the size of the group of near-duplicates of the document at a position.
    estimate : Estimate or None

    Returns
    -------
    Progress
    """
    order = state.in_order()
    curve = list(accumulate(size_of(each.position) if label else 0 for each, label in order))
    yes = sum(state.labels.values())
    return Progress(
        state.name,
        n_documents,
        n_groups,
        yes,
        len(order) - yes,
        sum(bool(state.standing(group)) and group not in state.labels for group in state.answers),
        curve[-1] if curve else 0,
        sum(each.why == "at random" for each, _ in order),
        sum(map(state.is_disagreement, state.answers)),
        state.persons(),
        state.n_changes,
        curve,
        _pace([each.at for each in state.judgements()]),
        estimate,
    )


def history_of(state: TopicState, n_groups: int) -> History:
    """Return the answers on a topic for stopping rules: one for each group of near-duplicates.

    Parameters
    ----------
    state : TopicState
    n_groups : int
        Of the pool.

    Returns
    -------
    History
    """
    order = state.in_order()
    at_random = np.array([each.why == "at random" for each, _ in order], bool)
    # With an unchanged ranking, a document of rank r would have been asked about as the r-th from then on.
    ranks = np.array([each.rank or n_groups for each, _ in order], np.int64)
    asked_since = (~at_random)[::-1].cumsum()[::-1] - ~at_random
    return History(
        np.array([label for _, label in order], bool),
        at_random,
        n_groups,
        reached=asked_since >= ranks,
    )


def _pace(times: list[float]) -> float | None:
    """Return the answers a minute, by the median time between the last answers, without breaks."""
    pauses = [after - before for before, after in pairwise(times)]
    pauses = [pause for pause in pauses if 0 < pause < _PAUSE][-_PACED:]
    return 60 / median(pauses) if pauses else None
