"""Query strategies: choose the next document to ask about, by score, by uncertainty, or at random."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textcat.base.errors import TextcatError

#: The strategies, each with the share of its questions about the document with the most uncertain score.
STRATEGIES = {"highest": 0.0, "mixture": 0.2, "uncertain": 1.0}


class Reason(str, Enum):
    """The reasons why a document is asked about; journals, exports and pages show the values."""

    HIGHEST = "highest score"
    UNCERTAIN = "uncertain"
    AT_RANDOM = "at random"
    TAKEN_BACK = "taken back"  # its answer was retracted
    NOT_ASKED = ""  # it was an example, or was answered in a list, in search results or to adjudicate

    __str__ = str.__str__


@dataclass(frozen=True)
class QueryStrategy:
    """A strategy for choosing the document to ask about next.

    "highest" chooses the document with the highest score (of equal scores, the first); "uncertain" chooses the document
    whose score is closest to 0; "mixture" chooses like "uncertain" for a random fifth of the questions, and like
    "highest" for the others. For `random_share` of the questions, a document that can still be asked about is drawn
    at random; some estimates of recall need such questions. TextcatError is raised for another name, or a share outside
    [0, 1].
    """

    name: str = "highest"
    random_share: float = 0.0

    def __post_init__(self) -> None:
        if self.name not in STRATEGIES:
            raise TextcatError(f"No strategy {self.name!r}: choose one of {', '.join(STRATEGIES)}.")
        if not 0 <= self.random_share <= 1:
            raise TextcatError(f"The share of questions at random cannot be {self.random_share}: give 0 to 1.")

    @classmethod
    def parse(cls, text: str) -> QueryStrategy:
        """Parse the name of a strategy, optionally with a share of random questions, such as "mixture:0.05"."""
        name, colon, share = text.partition(":")
        try:
            return cls(name, float(share) if colon else 0.0)
        except (ValueError, TextcatError):
            raise TextcatError(
                f'No strategy {text!r}: choose one of {", ".join(STRATEGIES)}; append ":0.05" to ask 5 % at random.'
            ) from None

    @property
    def about(self) -> dict[str, Any]:
        """The name and the share of random questions, as entries of a journal's line."""
        return {"strategy": self.name, "random_share": self.random_share}

    def changed(self, name: str | None = None, random_share: float | None = None) -> QueryStrategy:
        """Return a copy of this strategy with another name or share of random questions, if given."""
        return QueryStrategy(name or self.name, self.random_share if random_share is None else random_share)

    def choose(
        self, scores: NDArray[np.float32], is_open: NDArray[np.bool_], n_answers: int, key: tuple[Any, ...]
    ) -> tuple[int, Reason] | None:
        """Return the position of the document to ask about next, and why it was chosen; None if no document is open.

        `is_open` is the mask of the open documents, those that can be asked about. Documents with larger scores are
        more relevant, and 0 is the decision boundary. Random choices depend only on the key (such as a seed and the
        name of the topic) and on the number of answers so far.
        """
        uncertain = STRATEGIES[self.name]
        if uncertain in (0, 1) and not self.random_share:
            return _extreme(scores, is_open, uncertain == 1)
        digest = blake2b("\0".join(map(str, (*key, n_answers))).encode(), digest_size=24).digest()
        first, second, third = (int.from_bytes(digest[i : i + 8], "little") for i in (0, 8, 16))
        if first / 2**64 < self.random_share:
            positions = np.flatnonzero(is_open)
            return (int(positions[second % len(positions)]), Reason.AT_RANDOM) if len(positions) else None
        return _extreme(scores, is_open, third / 2**64 < uncertain)


def most_uncertain(
    scores: Sequence[NDArray[np.float32]], is_open: Sequence[NDArray[np.bool_]]
) -> tuple[int, int] | None:
    """Return the document that several topics together are most uncertain about; None if none can be asked about.

    The uncertainty of a document is the sum of ``1 / (1 + |score|)`` over the topics for which it is open, that is, can
    be asked about: a topic adds 1 if the score is on the boundary, and less the further away from it. Of equal
    documents, the first is returned.

    Parameters
    ----------
    scores : sequence of ndarray of shape (n_documents,), float32
        One array for each topic, of at least one.
    is_open : sequence of ndarray of shape (n_documents,), bool
        For each topic the mask of the documents that can be asked about.

    Returns
    -------
    tuple of int, or None
        The position of the document, and the number, from 0, of the topic whose score is closest to 0, among the topics
        for which the document is open.
    """
    uncertainty = np.zeros(len(is_open[0]))
    for scores_of_topic, mask in zip(scores, is_open, strict=True):
        uncertainty[mask] += 1 / (1 + np.abs(scores_of_topic[mask].astype(float)))
    if not uncertainty.any():
        return None
    position = int(np.argmax(uncertainty))
    open_topics = [number for number, mask in enumerate(is_open) if mask[position]]
    return position, min(open_topics, key=lambda number: abs(scores[number][position]))


def _extreme(scores: NDArray[np.float32], is_open: NDArray[np.bool_], uncertain: bool) -> tuple[int, Reason] | None:
    if not is_open.any():
        return None
    values = -np.abs(scores) if uncertain else scores
    position = int(np.argmax(np.where(is_open, values, -np.inf)))
    if not is_open[position]:  # open documents may have -inf, too
        position = int(np.argmax(is_open))
    return position, Reason.UNCERTAIN if uncertain else Reason.HIGHEST
