"""Choose the document that is asked next: by its score, by how uncertain it is, or at random."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textcat.errors import TextcatError

#: The strategies, each with the share of its questions that go to the document of which the ranker is least certain.
STRATEGIES = {"highest": 0.0, "mixture": 0.2, "uncertain": 1.0}


def _read_strategy(strategy: str) -> tuple[float, float]:
    """Return the share of uncertain documents and that of documents at random, of "mixture:0.05" and the like.

    Raises
    ------
    TextcatError
        If it is no name of a strategy, optionally with ":" and a share from 0 to 1.
    """
    name, colon, share = strategy.partition(":")
    try:
        at_random = float(share) if colon else 0.0
    except ValueError:
        at_random = -1.0
    if name not in STRATEGIES or not 0 <= at_random <= 1:
        raise TextcatError(
            f'No strategy {strategy!r}: it is one of {", ".join(STRATEGIES)}; ":0.05" behind it asks 5 % at random.'
        )
    return STRATEGIES[name], at_random


def choose(
    scores: NDArray[np.float32], is_open: NDArray[np.bool_], n_answers: int, strategy: str, rng_key: tuple[Any, ...]
) -> tuple[int, str] | None:
    """Return the position of the document to ask for next, and why it is that one; None if none is open.

    Parameters
    ----------
    scores : ndarray of shape (n_documents,), float32
        Larger = more relevant; 0 = as likely as not.
    is_open : ndarray of shape (n_documents,), bool
        Which documents may be asked for.
    n_answers : int
        What has been drawn changes with it.
    strategy : str
        "highest": the document with the highest score, of equals the first. "uncertain": that with the score closest
        to 0. "mixture": one question in five, drawn at random, is "uncertain", the others "highest". A share behind a
        colon, as in "highest:0.05", is of questions "at random": any open document, each as likely.
    rng_key : tuple of int or str
        What is drawn is a function of this and of the number of answers: a seed and the name of the topic.

    Returns
    -------
    (int, str) or None
        The reason is "highest score", "uncertain" or "at random".
    """
    uncertain, at_random = _read_strategy(strategy)
    if uncertain in (0, 1) and not at_random:
        return _extreme(scores, is_open, uncertain == 1)
    digest = blake2b("\0".join(map(str, (*rng_key, n_answers))).encode(), digest_size=24).digest()
    first, second, third = (int.from_bytes(digest[i : i + 8], "little") for i in (0, 8, 16))
    if first / 2**64 < at_random:
        positions = np.flatnonzero(is_open)
        return (int(positions[second % len(positions)]), "at random") if len(positions) else None
    return _extreme(scores, is_open, third / 2**64 < uncertain)


def _extreme(scores: NDArray[np.float32], is_open: NDArray[np.bool_], uncertain: bool) -> tuple[int, str] | None:
    values = -np.abs(scores) if uncertain else scores
    position = int(np.argmax(np.where(is_open, values, -np.inf))) if len(scores) else 0
    if not len(scores) or not is_open.any():
        return None
    if not is_open[position]:  # those that are open have -inf, too
        position = int(np.argmax(is_open))
    return position, "uncertain" if uncertain else "highest score"
