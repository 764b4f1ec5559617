"""Choose the documents that a person can be asked about: all, or only documents that nobody else has judged."""

import zlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from textcat.teaching.judgements import TopicState
from textcat.teaching.pool.duplicates import Groups


class Assignment:
    """Decide which documents each person can be asked about; of near-duplicates, only the first one.

    `overlap` is the share of documents that every person is asked about; every other document needs only one answer.
    """

    def __init__(self, seed: int, overlap: float):
        self._seed, self._overlap = seed, overlap

    def open_to(
        self, groups: Groups, state: TopicState, person: str, shown_to_others: Iterable[int]
    ) -> NDArray[np.bool_]:
        """Return a mask that is True for the documents that a person can be asked about: shape (n_documents,).

        `shown_to_others` has the positions of the documents that other persons are being asked about.
        """
        is_open = groups.is_first.copy()
        is_open[list(state.judged_by(person))] = False
        if self._overlap < 1:
            is_open[[group for group in state.labels if not self._is_for_all(group)]] = False
            is_free = is_open.copy()
            is_free[[position for position in shown_to_others if not self._is_for_all(position)]] = False
            # Documents shown to others but not answered yet are excluded, unless nothing else is open.
            is_open = is_free if is_free.any() else is_open
        return is_open

    def _is_for_all(self, group: int) -> bool:
        """Return whether every person is asked about a group of near-duplicates.

        This depends only on the seed and the group.
        """
        return zlib.crc32(b"%d %d" % (self._seed, group)) < self._overlap * 2**32


def unjudged(groups: Groups, state: TopicState) -> NDArray[np.bool_]:
    """Return a mask that is True for the documents without a label: shape (n_documents,).

    Of each group of near-duplicates, only the first document can be True.
    """
    is_open = groups.is_first.copy()
    is_open[list(state.labels)] = False
    return is_open
