"""How far a topic is: counts, the gain curve, the pace, and what the rules of stopping are told."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate, pairwise
from statistics import median
from typing import NamedTuple

import numpy as np

from textcat.teaching.judgements import TopicState
from textcat.teaching.stopping import Estimate, History

_PAUSE = 600.0  # seconds without an answer after which somebody has not been thinking, but has been away
_PACED = 20  # answers that the pace is taken of


class Progress(NamedTuple):
    """How far a topic is."""

    topic: str
    n_documents: int  # of the pool,
    n_groups: int  # of which so many are to be judged, as near-duplicates are judged together
    yes: int  # groups judged,
    no: int
    skipped: int  # by everybody who was asked
    found: int  # documents of the topic, near-duplicates among them
    at_random: int  # answers to questions drawn at random
    disagreements: int  # not settled yet
    persons: list[str]
    model: int  # the number of the changes that the ranking takes account of
    curve: list[int]  # documents found after each answer
    pace: float | None  # answers a minute, by the median of the last pauses
    estimate: Estimate | None  # of recall, by the rule asked for


def progress_of(
    state: TopicState, n_documents: int, n_groups: int, size_of: Callable[[int], int], estimate: Estimate | None
) -> Progress:
    """Return how far a topic is.

    Parameters
    ----------
    state : TopicState
    n_documents, n_groups : int
        Of the pool.
    size_of : function of int
        Returns how many documents are nearly the same as that at a position, itself included.
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
    """Return the answers on a topic as rules of stopping take them: one for each group of near-duplicates.

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
    # If the ranking had stayed the same, a document of rank r would have been asked for as the r-th from then on.
    ranks = np.array([each.rank or n_groups for each, _ in order], np.int64)
    asked_since = (~at_random)[::-1].cumsum()[::-1] - ~at_random
    return History(
        np.array([label for _, label in order], bool),
        at_random,
        n_groups,
        reached=asked_since >= ranks,
    )


def _pace(times: list[float]) -> float | None:
    """Return the answers a minute, by the median of the last pauses between answers that are no breaks."""
    pauses = [after - before for before, after in pairwise(times)]
    pauses = [pause for pause in pauses if 0 < pause < _PAUSE][-_PACED:]
    return 60 / median(pauses) if pauses else None
