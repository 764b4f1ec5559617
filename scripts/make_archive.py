#!/usr/bin/env python
"""Write archives of invented articles, of any size, as JSON Lines: for tests and benchmarks of what is long.

    scripts/make_archive.py ARCHIVE.jsonl --documents 1000000
    scripts/make_archive.py archive.jsonl.zst --documents 20000 --words 150 --topics 90 --seed 7
    scripts/make_archive.py - --documents 10 | less
    scripts/make_archive.py test.jsonl --documents 1000 --start 1000000   # those that follow the first million
    scripts/make_archive.py rows --rows --documents 800000 --topics 103   # tf-idf rows alone, to train on

A name that ends in .gz or .zst is written compressed. Every line has the fields id, title, text and topics, as in
{"id": "a000000017", "title": "MORE RATES IN DENOVA", "text": "The…", "topics": ["t001", "t014"]}.

Document i depends on the seed, the number of words and of topics, and on i alone: a longer archive begins with the
shorter one, and pieces written with --start follow each other as though they had been written at once. The memory it
takes is the same for any length. From Python, `articles(n)` yields the same lines in blocks of bytes, and `Language`
and `drawn` give the numbers of the words that they are made of.

With --rows the tf-idf rows of the documents are written, as `textcat.open_rows` reads them, and beside their folder
topics.npz, which documents have which topics (`scipy.sparse.load_npz`): see make_rows.py. Only this needs textcat.

How like the real thing it is: word frequencies fall as 1/r and, after the first 8,000 words, as r^-1.77 without an end
(Gerlach and Altmann, Physical Review X 3, 2013), so that new words keep coming: some 64,000 different ones in the
first million. The 115 most frequent ones are English function words, some 40 % of all; the others are made up of
syllables, some with an accent, and some are numbers. The most frequent topic has about 30 % of the documents, topic k
has k^-1.3 of that, and 18 % of the documents have none. A topic shows in words of its own, which other documents use,
too, though less; one document in ten mentions a topic that it is not filed under, one label in 30 was forgotten.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, NamedTuple

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
KEPT = 1 << 16  # words that are kept as strings; the rarer ones are spelt when they come
_SYLLABLES = [onset + vowel for onset in "bdfghklmnprstvwz" for vowel in "aeiou"] + ["sha", "che", "tri", "plo", "ste"]
_PAIRS = [first + second for second in _SYLLABLES for first in _SYLLABLES]
_CODAS = ["n", "r", "s", "l", "t", "d", "m", "nd", "st", "ng", "lk"]
_PLAIN, _COMMA, _STOP = 0, 1, 2
_ENDINGS = (b" ", b", ", b". ")

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


class Speller:
    """Words by rank as bytes: plain, before a comma or at the end of a sentence; in small letters or capitalised."""

    def __init__(self) -> None:
        words = [spell(rank) for rank in range(KEPT)]
        self._forms = np.array(_forms(words), object)

    def write(self, ranks: np.ndarray, forms: np.ndarray) -> list[bytes]:
        """Spell words, each in its form: its ending, plus 3 where it is capitalised."""
        known = ranks < KEPT
        found = self._forms[np.where(known, forms * KEPT + ranks, 0)]
        found = found.tolist()
        rare = np.flatnonzero(~known)
        for place, rank, form in zip(rare.tolist(), ranks[rare].tolist(), forms[rare].tolist(), strict=True):
            word = spell(rank)
            found[place] = (word.capitalize() if form > _STOP else word).encode() + _ENDINGS[form % 3]
        return found


def _forms(words: list[str]) -> list[bytes]:
    small = [word.encode() for word in words]
    capital = [word.capitalize().encode() for word in words]
    return [word + ending for letters in (small, capital) for ending in _ENDINGS for word in letters]


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
        found = sorted({one, other}) if n == 2 else [one] if n else []
        labels.append(found[1:] if is_forgotten else found)
    return labels


def topic_name(k: int) -> str:
    """Return the name of topic k, from 0: the most frequent one is t001."""
    return f"t{k + 1:03d}"


def lines(speller: Speller, block: Drawn, n_topics: int = TOPICS) -> list[bytes]:
    """Write the documents of a block as JSON Lines."""
    n = len(block.ranks)
    chance = (block.random & np.uint64(31)).astype(np.int64)
    forms = np.where(chance < 2, _STOP, np.where(chance < 4, _COMMA, _PLAIN))
    starts = block.ends - np.diff(block.ends, prepend=0)
    bodies = starts + block.titles
    # Titles have neither points nor commas; a document ends with a point.
    in_title = np.zeros(n + 1, np.int64)
    in_title[starts] += 1
    in_title[bodies] -= 1
    forms[np.cumsum(in_title[:n]) > 0] = _PLAIN
    forms[block.ends - 1] = _STOP
    capital = np.zeros(n, bool)
    capital[1:] = forms[:-1] == _STOP
    capital[bodies] = True
    words = speller.write(block.ranks, forms + 3 * capital)
    names = [topic_name(k).encode() for k in range(n_topics)]
    join = b"".join
    return [
        b'{"id": "a%09d", "title": "%s", "text": "%s", "topics": [%s]}\n'
        % (
            block.first + i,
            join(words[start:body])[:-1].decode().upper().encode(),
            join(words[body:end])[:-1],
            b", ".join([b'"%s"' % names[k] for k in topics]),
        )
        for i, (start, body, end, topics) in enumerate(
            zip(starts.tolist(), bodies.tolist(), block.ends.tolist(), block.topics, strict=True)
        )
    ]


def articles(n: int, *, words: int = WORDS, topics: int = TOPICS, seed: int = SEED, start: int = 0) -> Iterator[bytes]:
    """Yield the lines of n documents, from document `start` on, in blocks of up to 1024 lines."""
    language, speller = Language(topics), Speller()
    for block in range(start // BLOCK, -(-(start + n) // BLOCK)):
        found = lines(speller, drawn(language, block, words, seed), topics)
        first = block * BLOCK
        yield b"".join(found[max(0, start - first) : start + n - first])


@contextlib.contextmanager
def opened(name: str) -> Iterator[BinaryIO]:
    """Open a file for writing, compressed as its name says; - is standard output."""
    with contextlib.ExitStack() as stack:
        file = sys.stdout.buffer if name == "-" else stack.enter_context(open(name, "wb"))
        if name.endswith(".gz"):  # neither name nor time in its header: the same bytes each time
            file = stack.enter_context(gzip.GzipFile("", "wb", 4, file, mtime=0))
        elif name.endswith(".zst"):
            import zstandard

            file = stack.enter_context(zstandard.ZstdCompressor(3).stream_writer(file, closefd=False))
        yield file


def write_rows(folder: str, n: int, **archive: int) -> None:
    """Write the rows of n documents to a folder, and their topics to a file beside it."""
    import make_rows
    from scipy import sparse

    import textcat

    chosen = make_rows.Archive(**archive)
    columns = make_rows.learn(chosen, n)
    textcat.write_rows(folder, make_rows.rows(chosen, columns, n))
    sparse.save_npz(Path(folder).parent / "topics.npz", make_rows.labels(chosen, n))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("output", help="file to write: .jsonl, .jsonl.gz, .jsonl.zst; - for standard output")
    parser.add_argument("--documents", "-n", type=int, default=10000, help="how many (default: %(default)s)")
    parser.add_argument("--words", type=int, default=WORDS, help="of a document, on average (default: %(default)s)")
    parser.add_argument("--topics", type=int, default=TOPICS, help="how many there are (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=SEED, help="another archive for another number")
    parser.add_argument("--start", type=int, default=0, help="number of the first document (default: %(default)s)")
    parser.add_argument("--rows", action="store_true", help="write rows to train on to a folder, not texts")
    asked = parser.parse_args()
    if asked.rows:
        if asked.start:
            parser.error("--rows are those of the first documents: leave --start out")
        write_rows(asked.output, asked.documents, words=asked.words, topics=asked.topics, seed=asked.seed)
        return
    with opened(asked.output) as file:
        for block in articles(
            asked.documents, words=asked.words, topics=asked.topics, seed=asked.seed, start=asked.start
        ):
            file.write(block)


if __name__ == "__main__":
    main()
