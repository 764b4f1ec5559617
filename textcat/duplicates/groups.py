"""Compute sketches of texts, and assign each text to the group of an earlier text that it repeats."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice
from typing import NamedTuple

import numpy as np

from textcat.base import disk
from textcat.base.normal_forms import normalised
from textcat.duplicates._sketches import COUNTERS, ENTRIES, SAMPLED, SKETCH_BYTES, assign, enter, sketch

#: A text's sketch: the hash of all its words in order, their number, bins (two per byte), and hashes of sampled words.
SKETCH = np.dtype([("fingerprint", "<u8"), ("words", "<u2"), ("bins", "u1", SKETCH_BYTES), ("sample", "<u4", SAMPLED)])
SKETCH_FORMAT = 2  # version 1: bins of bytes, and numbers divided at points and commas
AT_ONCE = 1 << 10  # number of texts in memory at a time
COPY = 1.0  # the similarity of a text to another with the same words
#: The minimum similarity in pools of `teach`: with .8, different studies reported in the same form would be grouped.
#: `textcat duplicates` uses the lower limits LEAST and LEAST_SHARED in _sketches.pyx.
NEAR = 0.85
_STEP = 1 << 13  # number of texts by which arrays grow
_ROOM = 3 << 19  # initial capacity of large arrays, in texts
FIRST_BITS = 16  # size of the first table


def sketch_texts(texts: Iterable[Mapping[str, str]]) -> np.ndarray:
    """Return the sketches of texts that are given by zone: shape (n_texts,), dtype `SKETCH`.

    Case, punctuation, white space and the Unicode normal form of letters are ignored.
    """
    whole = (normalised(" ".join(zones.values())) for zones in texts)  # the kernel lowers ASCII letters only
    joined = [text.encode() if text.isascii() else text.lower().encode("utf-8", "surrogatepass") for text in whole]
    n = len(joined)
    fingerprints, words = np.zeros(n, np.uint64), np.zeros(n, np.uint16)
    bins, sample = np.zeros((n, SKETCH_BYTES), np.uint8), np.zeros((n, SAMPLED), np.uint32)
    sketch(joined, fingerprints, words, bins, sample)
    sketches = np.zeros(n, SKETCH)
    for name, values in zip(SKETCH.names or (), (fingerprints, words, bins, sample), strict=True):
        sketches[name] = values
    return sketches


class Assigned(NamedTuple):
    """For each text given to `Groups.add`: its group, whether it is kept, and how similar it is to the text it repeats.

    Texts that are kept are numbered from 0, over all calls. Texts without words, and texts with the same words as an
    earlier one, are not kept.
    """

    groups: np.ndarray  # int32: the number of the first text of the text's group; -1: it has no words
    # float64: similarity to the repeated text, 1 if all words are the same; NaN: it repeats none
    similarities: np.ndarray
    kept: np.ndarray  # bool: whether a text is kept, and has the next number


class Groups:
    """Assign texts to groups of near-duplicates, one after the other; a text is never moved to another group.

    A text repeats another one only if their similarity, an estimate of the Jaccard coefficient of their pairs of words,
    is at least `least`: 0 also finds texts that are cut or reworded, `NEAR` only those with nearly the same words.

    A text takes 66 bytes of memory, plus its share of hash tables that double in size, and 152 bytes on disk.
    """

    def __init__(self, least: float = 0.0) -> None:
        self._least = least
        self.n = 0  # number of texts that are kept
        self._bits = FIRST_BITS
        self._head = np.zeros(1 << FIRST_BITS, np.uint32)
        self._counts = np.zeros(COUNTERS, np.uint16)
        self._fingerprints, self._words = np.zeros(0, np.uint32), np.zeros(0, np.uint16)
        self._group_of = np.zeros(0, np.uint32)
        # Memory is allocated on first write; blocks of this size are not copied when they grow.
        self._bins, self._after = np.empty((_ROOM, SKETCH_BYTES), np.uint8), np.empty(_ROOM * ENTRIES, np.uint32)
        self._posted = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
        self._samples = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115

    def add(self, sketches: np.ndarray) -> Assigned:
        """Assign texts, given their sketches (see `sketch_texts`), to groups of near-duplicates, in their order.

        Several calls give the same groups as one call with all texts.
        """
        n = len(sketches)
        groups, similarities = np.empty(n, np.int32), np.empty(n)
        begin = 0
        while begin < n:
            room = (2 << self._bits) // ENTRIES - self.n  # number of texts until the table is doubled
            if room:
                part = slice(begin, min(begin + room, n))
                self._assign(sketches[part], groups[part], similarities[part])
                begin = part.stop
            else:
                self._double()
        kept = (similarities <= COPY) & (groups >= 0)
        return Assigned(groups, np.where(similarities < 0, np.nan, np.minimum(similarities, COPY)), kept)

    def close(self) -> None:
        """Close the temporary files."""
        self._posted.close()
        self._samples.close()

    def _assign(self, sketches: np.ndarray, groups: np.ndarray, similarities: np.ndarray) -> None:
        self._reserve(self.n + len(sketches))
        posted, rows = np.zeros((len(sketches), ENTRIES), np.uint32), np.zeros(len(sketches), np.uint32)
        fingerprints, words, bins, sample = (np.ascontiguousarray(sketches[name]) for name in SKETCH.names or ())
        known = self._fingerprints, self._words, self._bins, self._group_of
        tables = self._head, self._bits, self._after, self._counts
        file, results = self._samples.fileno(), (groups, similarities, posted, rows)
        n_kept = assign(fingerprints, words, bins, sample, *known, *tables, file, self.n, self._least, *results)
        disk.write_all(self._posted, posted[:n_kept].tobytes())
        disk.write_all(self._samples, sample[rows[:n_kept]].tobytes())
        self.n += n_kept

    def _reserve(self, n: int) -> None:
        """Enlarge the arrays, if necessary, so that they have room for n texts."""
        if n <= len(self._words):
            return
        room = -(-n // _STEP) * _STEP
        # Reallocated in place: old and new arrays are not in memory at the same time.
        for array in (self._fingerprints, self._words, self._group_of):
            array.resize(room, refcheck=False)
        if room > len(self._bins):
            self._bins.resize((room, SKETCH_BYTES), refcheck=False)
            self._after.resize(room * ENTRIES, refcheck=False)

    def _double(self) -> None:
        """Double the size of the hash table, and enter all kept texts into it again."""
        self._bits += 1
        self._head = np.zeros(0, np.uint32)  # freed before the new table is allocated
        self._head = np.zeros(1 << self._bits, np.uint32)
        self._posted.seek(0)
        for first in range(0, self.n, _STEP):
            rows = min(_STEP, self.n - first)
            data = self._posted.read(rows * ENTRIES * 4)
            enter(np.frombuffer(data, np.uint32).reshape(rows, ENTRIES), first, self._head, self._bits, self._after)


def find_groups(texts: Iterable[Mapping[str, str]]) -> np.ndarray:
    """Return for each text the position of the first text of its group: shape (n_texts,), int64.

    A text that repeats no other, and is repeated by none, is a group of its own.
    """
    return groups_of_sketches(sketches_in_blocks(texts))


def sketches_in_blocks(texts: Iterable[Mapping[str, str]]) -> Iterator[np.ndarray]:
    """Yield the sketches of texts, of some texts at a time, as `sketch_texts` returns them."""
    texts = iter(texts)
    while block := list(islice(texts, AT_ONCE)):
        yield sketch_texts(block)


def groups_of_sketches(blocks: Iterable[np.ndarray]) -> np.ndarray:
    """Return what `find_groups` returns, given the texts' sketches in any number of blocks."""
    with closing(Groups()) as groups:
        return first_positions([groups.add(block) for block in blocks])


def first_positions(parts: Sequence[Assigned]) -> np.ndarray:
    """Return for each text the position of the first text of its group: shape (n_texts,), int64.

    `parts` are the results of `Groups.add`, in order. A text without words is a group of its own.
    """
    if not parts:
        return np.zeros(0, np.int64)
    numbers, _, kept = map(np.concatenate, zip(*parts, strict=True))
    positions, has_group = np.arange(len(kept)), numbers >= 0
    positions[has_group] = np.flatnonzero(kept)[numbers[has_group]]
    return positions
