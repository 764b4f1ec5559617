"""Query strategies: choose the document to ask about next by its score, by its uncertainty, or at random."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textcat.errors import TextcatError

#: The strategies, each with the share of its questions that are about the document whose score is most uncertain.
STRATEGIES = {"highest": 0.0, "mixture": 0.2, "uncertain": 1.0}


def _read_strategy(strategy: str) -> tuple[float, float]:
    """Return the shares of uncertain and of random questions of a strategy such as "mixture:0.05".

    Raises
    ------
    TextcatError
        If it is not the name of a strategy, optionally with ":" and a share from 0 to 1.
    """
    name, colon, share = strategy.partition(":")
    try:
        at_random = float(share) if colon else 0.0
    except ValueError:
        at_random = -1.0
    if name not in STRATEGIES or not 0 <= at_random <= 1:
        raise TextcatError(
            f'No strategy {strategy!r}: choose one of {", ".join(STRATEGIES)}; append ":0.05" to ask 5 % at random.'
        )
    return STRATEGIES[name], at_random


def choose(
    scores: NDArray[np.float32], is_open: NDArray[np.bool_], n_answers: int, strategy: str, rng_key: tuple[Any, ...]
) -> tuple[int, str] | None:
    """Return the position of the document to ask about next, and why it was chosen; None if none is open.

    Parameters
    ----------
    scores : ndarray of shape (n_documents,), float32
        Larger = more relevant; 0 = on the decision boundary.
    is_open : ndarray of shape (n_documents,), bool
        Which documents may be asked about.
    n_answers : int
        The number of answers so far; random choices depend on it.
    strategy : str
        "highest": the document with the highest score, the first of several equal ones. "uncertain": the one with the
        score closest to 0. "mixture": a random fifth of the questions are "uncertain", the others "highest". A share
        after a colon, as in "highest:0.05", is that of questions "at random": about any open document, all equally
        likely.
    rng_key : tuple of int or str
        Random choices are a function of this (a seed, the name of the topic) and of the number of answers.

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
