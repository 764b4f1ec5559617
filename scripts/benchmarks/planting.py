"""Plant reprints of four kinds among articles."""

from __future__ import annotations

import random
from collections.abc import Callable

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def exact(text: str, random_: random.Random, words: list[str]) -> str:
    """Return the text, in other lines and capitals."""
    return text.upper().replace(". ", ".\n")


def cut(text: str, random_: random.Random, words: list[str]) -> str:
    """Return three fifths of the text, in one piece."""
    parts = text.split()
    n = round(0.6 * len(parts))
    start = random_.randrange(len(parts) - n + 1)
    return " ".join(parts[start : start + n])


def reworded(text: str, random_: random.Random, words: list[str]) -> str:
    """Return the text with a fifth of its words replaced by words of other texts."""
    return " ".join(random_.choice(words) if random_.random() < 0.2 else word for word in text.split())


def misread(text: str, random_: random.Random, words: list[str]) -> str:
    """Return the text with one in twenty characters, spaces included, replaced, left out or followed by another."""
    characters = list(text)
    for i, character in enumerate(characters):
        if random_.random() < 0.05:
            letter = random_.choice(LETTERS)
            characters[i] = random_.choice((letter, "", character + letter))
    return "".join(characters)


KINDS: dict[str, tuple[Callable[[str, random.Random, list[str]], str], float]] = {
    "exact": (exact, 0.99),
    "cut to 60 %": (cut, 0.95),
    "a fifth of the words replaced": (reworded, 0.9),
    "5 % of the characters misread": (misread, 0.8),
}


def planted(texts: list[str], seed: int = 0, every: int = 25) -> list[tuple[str, int, str]]:
    """Return texts and reprints of some: each with the position of its original in `texts`, and its kind or "".

    One text in `every` is reprinted, by the kinds in turn; a reprint stands at a random place after its original.
    """
    random_ = random.Random(seed)
    words = [word for text in texts[:2000] for word in text.split()]
    entries = [(float(i), text, i, "") for i, text in enumerate(texts)]
    for number, i in enumerate(range(0, len(texts), every)):
        kind = [*KINDS][number % len(KINDS)]
        changed = KINDS[kind][0](texts[i], random_, words)
        entries.append((random_.uniform(i + 0.5, len(texts)), changed, i, kind))
    return [entry[1:] for entry in sorted(entries, key=lambda entry: entry[0])]
