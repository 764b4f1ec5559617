"""The words of invented articles in numbers, which scripts/make_archive.py spells and scripts/make_rows.py counts."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

SEED = 2002
WORDS, TOPICS = 150, 90
BLOCK = 1024  # documents that are drawn together, from a random number generator of their own

_ENGLISH = """
the of to and in a for that is on said it by with from as at was be its has would an not which will are have he this but
were had or they also been their one he more about we than some other there after when could all i into if over no out
up his who last only most she can now such may them first two so new any before should because these between under while
many made each did our what against since through then year years per time where them very do both those during still
you three how her well even must just much around off own since being next
"""
FUNCTION_WORDS = list(dict.fromkeys(_ENGLISH.split()))

# p(r) is proportional to 1/(r + SHIFT) up to rank BEND, and from there on falls as (r / BEND)^-STEEP.
SHIFT, BEND, STEEP = 0.5, 8000, 1.77
TABLE_BITS = 20
_SYLLABLES = [onset + vowel for onset in "bdfghklmnprstvwz" for vowel in "aeiou"] + ["sha", "che", "tri", "plo", "ste"]
_PAIRS = [first + second for second in _SYLLABLES for first in _SYLLABLES]
_CODAS = ["n", "r", "s", "l", "t", "d", "m", "nd", "st", "ng", "lk"]

# How topics show: their words by frequency, and how much of a document they make up, in 4096ths.
OWN_WORDS = 64
LEAST_STRENGTH, MOST_STRENGTH, MENTION_STRENGTH = 120, 900, 120
DECAY = 1.3
NO_TOPIC, TWO_TOPICS, MENTION, FORGOTTEN = 0.18, 0.16, 0.1, 1 / 30


class Drawn(NamedTuple):
    """A block of documents in numbers: the words one after the other, by rank from 0; and who has which topic."""

    first: int  # number of the first document
    ranks: np.ndarray  # int64
    ends: np.ndarray  # of each document, in words; the first `title` of its words are the title
    titles: np.ndarray  # words of each title
    topics: list[list[int]]
    random: np.ndarray  # one uint32 a word, for what does not matter to a reader of words


class Language:
    """Words by rank, and topics by number.

    Parameters
    ----------
    topics : int
        How many there are.
    """

    def __init__(self, topics: int = TOPICS) -> None:
        r = np.arange(1, BEND + 1)
        mass = 1 / (r + SHIFT)
        tail = mass[-1] * BEND / (STEEP - 1)  # the integral of the rest
        bounds = np.cumsum(mass) / (mass.sum() + tail)
        places = (np.arange(1 << TABLE_BITS) + 0.5) / (1 << TABLE_BITS)
        self.table = np.searchsorted(bounds, places).astype(np.int32)  # BEND: beyond the bend
        self.n_topics = topics
        weights = np.arange(1, topics + 1) ** -DECAY
        self.topic_bounds = np.cumsum(weights) / weights.sum()
        self.topic_words = self._own_words()
        shares = np.cumsum(1 / np.arange(2, OWN_WORDS + 2))
        self.own_table = np.searchsorted(shares / shares[-1], (np.arange(1024) + 0.5) / 1024).astype(np.int64)

    def _own_words(self) -> np.ndarray:
        """Choose the words of each topic among those of medium frequency."""
        random = _raw(0x70F1C, 0, self.n_topics * OWN_WORDS) / 2.0**64
        low, high = np.log(300), np.log(40000)
        return np.exp(low + (high - low) * random).astype(np.int64).reshape(self.n_topics, OWN_WORDS)

    def draw(self, bits: np.ndarray) -> np.ndarray:
        """Turn random numbers (uint64) into ranks of words."""
        ranks = self.table[(bits & np.uint64((1 << TABLE_BITS) - 1)).astype(np.int64)].astype(np.int64)
        rare = np.flatnonzero(ranks == BEND)
        u = (((bits[rare] >> np.uint64(TABLE_BITS)) & np.uint64(0xFFFFFFFF)).astype(np.float64) + 0.5) / 2**32
        ranks[rare] = (BEND * u ** (-1 / (STEEP - 1))).astype(np.int64)
        return ranks


@lru_cache(1 << 17)  # a rare word that has come once will come again
def spell(rank: int) -> str:
    """Return the word of a rank, which no other rank has."""
    if rank < len(FUNCTION_WORDS):
        return FUNCTION_WORDS[rank]
    rank -= len(FUNCTION_WORDS)
    if rank % 41 == 17:
        return str(rank // 41 + 1) if rank % 2 else f"{rank // 410 + 1}.{rank // 41 % 10}"
    # Mixed up within the words of as many syllables, so that neighbours do not look alike.
    n, start, several = len(_SYLLABLES), 0, len(_SYLLABLES) ** 2 * len(_CODAS)
    syllables = 2
    while rank >= start + several:
        start, several, syllables = start + several, several * n, syllables + 1
    rank = (rank - start) * 7_368_787 % several
    rank, coda = divmod(rank, len(_CODAS))
    word = ""
    for _ in range(syllables // 2):
        rank, pair = divmod(rank, n * n)
        word += _PAIRS[pair]
    word += (_SYLLABLES[rank] if syllables % 2 else "") + _CODAS[coda]
    if word in FUNCTION_WORDS:
        return word + "o"
    return word.replace("e", "é", 1) if rank % 61 == 1 else word


def _raw(seed: int, block: int, n: int) -> np.ndarray:
    """Draw n numbers of 64 bits. A generator's raw numbers are what numpy promises never to change."""
    return np.random.PCG64(np.random.SeedSequence((seed, block))).random_raw(n)


def drawn(language: Language, block: int, words: int = WORDS, seed: int = SEED) -> Drawn:
    """Draw the documents of a block, 1024 of them.

    Parameters
    ----------
    language : Language
    block : int
        Its number: it begins with document 1024 · block.
    words : int
        Of a document, on average.
    seed : int
    """
    u = _raw(seed, 2 * block, 10 * BLOCK).reshape(10, BLOCK) / 2.0**64
    lengths = np.maximum(8, (words * (0.2 - 0.4 * np.log((1 - u[0]) * (1 - u[1]))))).astype(np.int64)
    titles = 4 + (u[2] * 4).astype(np.int64)
    about = np.searchsorted(language.topic_bounds, u[3:6])  # first topic, second, one that is mentioned
    n_topics = np.where(u[6] < NO_TOPIC, 0, np.where(u[6] > 1 - TWO_TOPICS, 2, 1))
    strength = np.where(n_topics > 0, LEAST_STRENGTH + (MOST_STRENGTH - LEAST_STRENGTH) * u[7] ** 2, 0)
    mention = np.where(u[8] < MENTION, MENTION_STRENGTH, 0)
    ends = np.cumsum(lengths)
    bits = _raw(seed, 2 * block + 1, int(ends[-1]))
    ranks = language.draw(bits)
    _make_topical(language, ranks, bits, lengths, about, n_topics, strength.astype(np.int64), mention)
    topics = _labels(about, n_topics, u[9] < FORGOTTEN)
    return Drawn(block * BLOCK, ranks, ends, np.minimum(titles, lengths // 2), topics, (bits >> np.uint64(20)))


def _make_topical(
    language: Language,
    ranks: np.ndarray,
    bits: np.ndarray,
    lengths: np.ndarray,
    about: np.ndarray,
    n_topics: np.ndarray,
    strength: np.ndarray,
    mention: np.ndarray,
) -> None:
    """Put words of the documents' topics, and of those they mention, in the place of others."""
    chance = (bits >> np.uint64(52)).astype(np.int64)  # of 4096
    limits = np.repeat(strength, lengths), np.repeat(strength + mention, lengths)
    places = np.flatnonzero(chance < limits[1])
    document = np.repeat(np.arange(len(lengths)), lengths)[places]
    second = (bits[places] >> np.uint64(51) & np.uint64(1)).astype(bool) & (n_topics[document] == 2)
    kind = np.where(chance[places] >= limits[0][places], 2, second.astype(np.int64))
    own = language.own_table[(bits[places] & np.uint64(1023)).astype(np.int64)]
    ranks[places] = language.topic_words[about[kind, document], own]


def _labels(about: np.ndarray, n_topics: np.ndarray, forgotten: np.ndarray) -> list[list[int]]:
    first, second = about[0].tolist(), about[1].tolist()
    labels = []
    for one, other, n, is_forgotten in zip(first, second, n_topics.tolist(), forgotten.tolist(), strict=True):
        topics = sorted({one, other}) if n == 2 else [one] if n else []
        labels.append(topics[1:] if is_forgotten else topics)
    return labels
