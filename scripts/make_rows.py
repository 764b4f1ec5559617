"""The tf-idf rows of the archives of make_archive.py, without their text; `make_archive.py --rows` writes them.

They are those of words that are neither function words nor in one document alone, each 1 + log tf times log(N / df), of
unit length. Columns are in an order that says nothing of frequency, as an alphabetical one does.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np
from invented import BLOCK, FUNCTION_WORDS, SEED, TOPICS, WORDS, Drawn, Language, drawn
from scipy import sparse

_TOGETHER = 64  # blocks whose words are counted together


class Archive(NamedTuple):
    """Which archive it is."""

    words: int = WORDS
    topics: int = TOPICS
    seed: int = SEED

    def blocks(self, n: int, start: int = 0) -> Iterator[Drawn]:
        """Yield n documents from `start` on, which must be a multiple of 1024, in blocks of so many."""
        language = Language(self.topics)
        for first in range(start, start + n, BLOCK):
            yield _first_of(drawn(language, first // BLOCK, self.words, self.seed), start + n - first)


class Columns(NamedTuple):
    """The words that rows are made of: ascending ranks, and of each its column and its idf."""

    ranks: np.ndarray
    columns: np.ndarray
    idf: np.ndarray


def fit_columns(archive: Archive, n: int) -> Columns:
    """Return the words that more than one of the first n documents has."""
    ranks, df = np.zeros(0, np.int64), np.zeros(0, np.int64)
    blocks = archive.blocks(n)
    while together := list(islice(blocks, _TOGETHER)):
        new_ranks, counts = np.unique(np.concatenate([_counted(block)[1] for block in together]), return_counts=True)
        ranks, places = np.unique(np.concatenate([ranks, new_ranks]), return_inverse=True)
        df = np.bincount(places, np.concatenate([df, counts]), len(ranks)).astype(np.int64)
    ranks, df = ranks[df > 1], df[df > 1]
    columns = np.random.default_rng(archive.seed).permutation(len(ranks)).astype(np.int32)
    return Columns(ranks, columns, np.log(n / df))


def rows(archive: Archive, columns: Columns, n: int, start: int = 0) -> Iterator[sparse.csr_matrix]:
    """Yield the rows of n documents from `start` on, a multiple of 1024, in blocks of so many."""
    for block in archive.blocks(n, start):
        document, ranks, counts = _counted(block)
        places = np.minimum(np.searchsorted(columns.ranks, ranks), len(columns.ranks) - 1)
        known = columns.ranks[places] == ranks
        document, places, counts = document[known], places[known], counts[known]
        values = (1 + np.log(counts)) * columns.idf[places]
        values /= np.sqrt(np.bincount(document, values**2))[document]
        shape = len(block.ends), len(columns.ranks)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(document, minlength=shape[0]))])
        matrix = sparse.csr_matrix((values.astype(np.float32), columns.columns[places], indptr), shape=shape)
        matrix.sort_indices()
        yield matrix


def labels(archive: Archive, n: int, start: int = 0) -> sparse.csr_matrix:
    """Return which of n documents from `start` on, a multiple of 1024, have which topics: 0/1, int8."""
    topics = [topics for block in archive.blocks(n, start) for topics in block.topics]
    indptr = np.concatenate([[0], np.cumsum([len(of_one) for of_one in topics])])
    indices = np.array([k for of_one in topics for k in of_one], np.int32)
    return sparse.csr_matrix((np.ones(len(indices), np.int8), indices, indptr), shape=(n, archive.topics))


def _first_of(block: Drawn, n: int) -> Drawn:
    ends = block.ends[:n]
    return block._replace(ranks=block.ranks[: ends[-1]], ends=ends, titles=block.titles[:n], topics=block.topics[:n])


def _counted(block: Drawn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the document, the rank and the count of every word that a document has, function words apart."""
    document = np.repeat(np.arange(len(block.ends)), np.diff(block.ends, prepend=0))
    kept = block.ranks >= len(FUNCTION_WORDS)
    keys, counts = np.unique(document[kept] << 48 | block.ranks[kept], return_counts=True)
    return keys >> 48, keys & ((1 << 48) - 1), counts
