"""Divide the inputs of a run into equal shares, which several processes or machines can read at the same time.

Consecutive files are grouped into stretches, which depend on the inputs alone, and each stretch is divided into batches
separately. If a stretch lies within one share, all its batches belong to that share. If a stretch, such as a large
file, spans several shares, its batches are distributed among them. The batches are therefore the same for any number of
shares.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from textcat.base.errors import TextcatError
from textcat.reading.cutting import Place
from textcat.reading.records import BatchNumber, Checkpoint
from textcat.reading.sources import Source

_OF_FILE = 256  # bytes added to the size of each file, because empty files take time, too
_STRETCHES = 64  # minimum number of stretches, if there are enough files and enough bytes
_LONGEST = 8 << 20  # bytes of files after which a new stretch begins
_GOLDEN = 11400714819323198485  # 2**64 divided by the golden ratio: its multiples modulo 2**64 are evenly spread
_AFTER_ALL = 1 << 62  # a number larger than any file's in a folder
# Each share lists all inputs and reads at least one whole stretch, and merging opens files of all shares at once.
_MOST_SHARES = 10_000


class Share(NamedTuple):
    """One of several equal shares of the inputs, numbered from 1."""

    number: int = 1
    n: int = 1

    def __str__(self) -> str:
        return f"{self.number}/{self.n}"

    @classmethod
    def parse(cls, text: str) -> "Share":
        """Parse a share such as ``"2/3"``; raise a TextcatError for other texts."""
        number, _, n = text.partition("/")
        is_short = len(text) <= 100  # longer numbers may not be converted
        if not (is_short and number.isdecimal() and n.isdecimal() and 1 <= int(number) <= int(n)):
            raise TextcatError(f"There is no part {text[:100]!r}: give its number and that of all parts, such as 2/3.")
        if int(n) > _MOST_SHARES:
            raise TextcatError(f"There are at most {_MOST_SHARES:,} parts, not {n}: give fewer, such as 1/100.")
        return cls(int(number), int(n))


class _Stretch(NamedTuple):
    source: int  # number of the source with its first file
    entry: int  # number of this file in the source, if that is a folder; otherwise 0
    base: int  # bytes of earlier files in the folder
    begin: int  # bytes of all earlier files, each with `_OF_FILE` added


class Stretches:
    """The stretches of some sources: consecutive files whose batches contain no documents of other files.

    `block_bytes` is the size of a batch, as in `InputSettings`: shorter stretches would only give more batches.
    """

    def __init__(self, sources: Sequence[Source], block_bytes: int):
        files = [(number, *file) for number, source in enumerate(sources) for file in _files(source)]
        self._total = sum(size + _OF_FILE for *_, size in files) or _OF_FILE
        width, begin = max(min(self._total // _STRETCHES, _LONGEST), block_bytes), 0
        self._stretches = [] if files else [_Stretch(0, 0, 0, 0)]
        for number, entry, base, size in files:
            if not self._stretches or begin // width > self._stretches[-1].begin // width:
                self._stretches.append(_Stretch(number, entry, base, begin))
            begin += size + _OF_FILE
        self._starts = [stretch[:2] for stretch in self._stretches]
        ends = [stretch.begin for stretch in self._stretches[1:]]
        self._bounds = [*pairwise([self._stretches[0].begin, *ends, self._total])]
        self._is_folder = [source.kind == "folder" for source in sources]

    def of(self, source: int, after: Place | None) -> int:
        """Return the number of the stretch (group of files) to which the bytes before a place of a source belong.

        Parameters
        ----------
        source : int
            The number of the source.
        after : Place or None
            The place behind a block of the source's records; None: its end.
        """
        entry = _AFTER_ALL if after is None else _entry_before(after)
        return max(bisect_right(self._starts, (source, entry)) - 1, 0)

    def start(self, number: int) -> Checkpoint:
        """Return the checkpoint at which a stretch (some consecutive files) begins."""
        source, entry, base, _ = self._stretches[number]
        is_within = source < len(self._is_folder) and self._is_folder[source]
        return (Place(base=base, path=(entry,)) if is_within else Place()).checkpoint(source)

    def range_of(self, share: Share) -> range:
        """Return the numbers of the stretches (groups of files) that lie in a share, wholly or in part."""
        first, last = (share.number - 1) * self._total, share.number * self._total
        inside = [i for i, (begin, end) in enumerate(self._bounds) if begin * share.n < last and end * share.n > first]
        return range(inside[0], inside[-1] + 1)

    def owner(self, number: BatchNumber, n: int) -> int:
        """Return the number, from 1 to `n`, of the share to which a batch belongs."""
        begin, end = self._bounds[number.stretch]
        spread = (number.batch * _GOLDEN + (1 << 63)) % (1 << 64)
        return n * ((begin << 64) + (end - begin) * spread) // (self._total << 64) + 1


def _files(source: Source) -> Iterator[tuple[int, int, int]]:
    """Yield each file of a source: its number, the bytes of the files before it in the folder, and its own."""
    if source.kind != "folder" or source.states is None:
        yield 0, 0, source.size or 0
        return
    base = 0
    numbers = range(len(source.states)) if source.numbers is None else source.numbers
    for number, state in zip(numbers, source.states, strict=True):
        size = max(state.size, 0)
        yield number, base, size
        base += size


def _entry_before(after: Place) -> int:
    """Return the number of the file in a folder to which the bytes before a place belong; 0 if it is in no folder."""
    if not after.path:
        return 0
    is_start = len(after.path) == 1 and not (after.offset or after.position)
    return after.path[0] - is_start
