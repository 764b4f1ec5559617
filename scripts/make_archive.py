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
takes is the same for any length. From Python, `articles(n)` yields the same lines in blocks of bytes; `Language` and
`drawn` of invented.py give the numbers of the words that they are made of.

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
from pathlib import Path
from typing import BinaryIO

import numpy as np
from invented import BLOCK, SEED, TOPICS, WORDS, Drawn, Language, drawn, spell

KEPT = 1 << 16  # words that are kept as strings; the rarer ones are spelt when they come
_PLAIN, _COMMA, _STOP = 0, 1, 2
_ENDINGS = (b" ", b", ", b". ")


class Speller:
    """Words by rank as bytes: plain, before a comma or at the end of a sentence; in small letters or capitalised."""

    def __init__(self) -> None:
        words = [spell(rank) for rank in range(KEPT)]
        self._forms = np.array(_forms(words), object)

    def write(self, ranks: np.ndarray, forms: np.ndarray) -> list[bytes]:
        """Spell words, each in its form: its ending, plus 3 where it is capitalised."""
        known = ranks < KEPT
        words = self._forms[np.where(known, forms * KEPT + ranks, 0)].tolist()
        rare = np.flatnonzero(~known)
        for place, rank, form in zip(rare.tolist(), ranks[rare].tolist(), forms[rare].tolist(), strict=True):
            word = spell(rank)
            words[place] = (word.capitalize() if form > _STOP else word).encode() + _ENDINGS[form % 3]
        return words


def _forms(words: list[str]) -> list[bytes]:
    small = [word.encode() for word in words]
    capital = [word.capitalize().encode() for word in words]
    return [word + ending for letters in (small, capital) for ending in _ENDINGS for word in letters]


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
        documents = lines(speller, drawn(language, block, words, seed), topics)
        first = block * BLOCK
        yield b"".join(documents[max(0, start - first) : start + n - first])


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

    kind = make_rows.Archive(**archive)
    columns = make_rows.fit_columns(kind, n)
    textcat.write_rows(folder, make_rows.rows(kind, columns, n))
    sparse.save_npz(Path(folder).parent / "topics.npz", make_rows.labels(kind, n))


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
