"""What is fuzzed: where to start, which words to try, and what must be true of any bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import NamedTuple


class Target(NamedTuple):
    """One thing that reads.

    Parameters
    ----------
    check : callable
        Takes any bytes; raises what is not allowed to come out.
    seeds : callable
        Returns small valid inputs.
    words : iterable of bytes
        What the format is made of, for mutations.
    mutate : callable, optional
        Changes an input by its structure: takes it, a function that changes bytes, and a source of randomness.
    memory_mb : int
        The most that the whole process may need, the libraries in it.
    seconds : int
        The most that one input may take, a thousand times what nearly all need: the machine may do other things, too.
    """

    check: Callable[[bytes], None]
    seeds: Callable[[], Iterable[bytes]]
    words: Iterable[bytes] = ()
    mutate: Callable[[bytes, Callable[[bytes], bytes], Random], bytes] | None = None
    memory_mb: int = 1024
    seconds: int = 10


def split_words(words: str) -> tuple[bytes, ...]:
    """Return the words that stand between broken bars; each character is a byte."""
    return tuple(word.encode("latin-1") for word in words.split("¦"))
