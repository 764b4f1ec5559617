"""Divide sources into batches of about a megabyte; reading can resume after each of them."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain
from typing import NamedTuple

from textcat.base.errors import TextcatError
from textcat.reading.cutting import Place
from textcat.reading.input_settings import InputSettings
from textcat.reading.records import START_OVER, Batch, BatchNumber, Block, Checkpoint, PipeState, Rejection
from textcat.reading.shares import Share, Stretches
from textcat.reading.source_reader import SourceReader
from textcat.reading.sources import Source
from textcat.reading.streams import ByteStream

_OF_ONE = 256  # bytes added to a block's size, so that a batch of empty files ends, too


def read_batches(
    sources: Sequence[Source],
    settings: InputSettings,
    start: Iterable[int] | None = None,
    pipes: Mapping[str, PipeState] | None = None,
    start_over: str = START_OVER,
    share: Share | None = None,
    last: BatchNumber | None = None,
) -> Iterator[Batch]:
    """Read sources; yield batches of about a megabyte of consecutive records, and Rejections of unreadable parts.

    A batch holds blocks of undecoded records, which `batch_records` parses, and the Rejections between them. At most a
    few blocks and the longest record are in memory. A record from a pipe is returned as soon as it is complete.

    `start` is the checkpoint to begin at: the end of an earlier batch of the same sources and settings. `pipes` has,
    for each pipe by name, the number and checksum of the bytes that an interrupted run has read; if a pipe now sends
    other bytes, a TextcatError is raised, with the clause `start_over` on how to begin again. If `pipes` is None (no
    run is resumed), nothing is compared, and batches have no checksums of files.

    With a `share`, batches are numbered, and only those of the share are yielded; the division into batches is the same
    for any number of shares. If reading begins at `start`, `last` is the number of the batch that ends there.
    """
    observed = [
        _Pipe(source, pipes.get(source.name), start_over)
        for source in sources
        if source.kind == "pipe" and pipes is not None
    ]
    opening = {pipe.name: pipe.open for pipe in observed}
    sources = [source._replace(open=opening.get(source.name, source.open)) for source in sources]
    sums = dict[str, str]()
    taken = None if pipes is None else sums
    if share is None:
        begin: Checkpoint = tuple(start or Place().checkpoint(0))
        for batch in _BatchBuilder(begin, settings, sums, observed).batches(_steps(sources, settings, begin, taken)):
            yield batch._replace(number=BatchNumber())
        return
    stretches = Stretches(sources, settings.block_bytes)
    numbers = stretches.range_of(share)
    begin = tuple(start or stretches.start(numbers[0]))
    cutting = _BatchBuilder(begin, settings, sums, observed, last)
    for batch in cutting.batches(_steps(sources, settings, begin, taken, stretches), numbers[-1]):
        if stretches.owner(batch.number, share.n) == share.number:
            yield batch


def check_pipes(sources: Iterable[Source], pipes: Mapping[str, PipeState], start_over: str = START_OVER) -> None:
    """Read pipes to their ends; raise TextcatError if one sends other bytes than a finished run has read.

    `pipes` has the number and checksum of the bytes that the run has read, for each pipe by name.
    """
    for source in sources:
        if source.kind == "pipe":
            pipe = _Pipe(source, pipes.get(source.name), start_over)
            with closing(pipe.open()) as stream:
                while stream.read(1 << 20):
                    pass
            pipe.check_end()


class _Step(NamedTuple):
    """A block or a Rejection, with the checkpoint after it, the bytes read so far, and the number of its stretch."""

    item: Block | Rejection
    end: Checkpoint
    read: int
    stretch: int


class _BatchBuilder:
    """Gather blocks and Rejections (as `_Step`) into batches; a batch ends with its stretch, a group of files.

    Batches are numbered from 0 in each stretch (some consecutive files): see `textcat.reading.shares`.
    """

    def __init__(
        self,
        begin: Checkpoint,
        settings: InputSettings,
        sums: dict[str, str],
        observed: Sequence["_Pipe"],
        last: BatchNumber | None = None,
    ):
        self._begin, self._settings, self._sums, self._observed = begin, settings, sums, observed
        self._number = BatchNumber(-1) if last is None else BatchNumber(last.stretch, last.batch + 1)
        self._steps: list[_Step] = []
        self._size = 0

    def batches(self, steps: Iterator[_Step | None], last: int | None = None) -> Iterator[Batch]:
        """Yield batches, up to the end of the stretch number `last`; a None among the steps ends a batch."""
        for step in chain(steps, [None]):
            if self._steps and (step is None or step.stretch != self._number.stretch):
                yield self._finish_batch()
            if step is None:
                continue
            if last is not None and step.stretch > last:
                return
            if step.stretch != self._number.stretch:
                self._number = BatchNumber(step.stretch)
            self._steps.append(step)
            self._size += _OF_ONE + (len(step.item.data) if isinstance(step.item, Block) else 0)
            if self._size >= self._settings.block_bytes:
                yield self._finish_batch()

    def _finish_batch(self) -> Batch:
        """Return the batch of the steps gathered so far, and begin the next batch."""
        states = {pipe.name: pipe.state for pipe in self._observed if pipe.state.n_bytes}
        *_, (_, end, read, _) = self._steps
        blocks = tuple(step.item for step in self._steps)
        batch = Batch(blocks, self._begin, end, read, states, dict(self._sums), self._number)
        self._begin, self._steps, self._size = end, [], 0
        self._number = self._number._replace(batch=self._number.batch + 1)
        self._sums.clear()
        return batch


def _steps(
    sources: Sequence[Source],
    settings: InputSettings,
    start: Checkpoint,
    sums: dict[str, str] | None,
    stretches: Stretches | None = None,
) -> Iterator[_Step | None]:
    """Yield the blocks of records of sources, and a Rejection for each part that cannot be read.

    Each is yielded with the checkpoint after it, from which reading can resume, and the number of bytes read so far.

    Yield None where a batch must end. The checksum of each file that was read from start to end is added to `sums`; if
    that is None, no checksums are computed. Without `stretches`, all files are one stretch.
    """
    before = sum(source.size or 0 for source in sources[: start[0]])
    position = Place(start[1], start[2], start[3], start[4:])
    for number, source in enumerate(sources[start[0] :], start[0]):
        if source.kind == "pipe":
            yield None
        for item, after, read in SourceReader(source, settings, sums=sums).steps(position):
            stretch = 0 if stretches is None else stretches.of(number, after)
            if after:
                yield _Step(item, after.checkpoint(number), before + read, stretch)
            else:
                n = read if source.size is None else source.size
                yield _Step(item, Place().checkpoint(number + 1), before + n, stretch)
            if source.kind == "pipe":
                yield None
        before, position = before + (source.size or 0), Place()


class _Pipe:
    """Read one pipe, and check by a checksum that it gives the same bytes as to an interrupted run."""

    def __init__(self, source: Source, before: PipeState | None, start_over: str):
        self.name, self._open, self._before = source.name, source.open, before or PipeState(0, "")
        self._n, self._sha256, self._start_over = 0, hashlib.sha256(), start_over

    @property
    def state(self) -> PipeState:
        return PipeState(self._n, self._sha256.hexdigest())

    def open(self) -> ByteStream:
        inner = self._open()
        return ByteStream(lambda n: self._checked(inner.read(n)), lambda: self._n, inner.prompt, inner.close)

    def _checked(self, data: bytes) -> bytes:
        left = max(self._before.n_bytes - self._n, 0)
        self._add(data[:left])
        if left and (not data or (left <= len(data) and self.state != self._before)):
            raise self._error()
        self._add(data[left:])
        return data

    def check_end(self) -> None:
        """Raise TextcatError if the pipe has sent more bytes than the earlier run has read."""
        if self._n > self._before.n_bytes:
            raise self._error()

    def _error(self) -> TextcatError:
        return TextcatError(
            f"{self.name} does not give the same bytes as when the run began: give the same input, or "
            f"{self._start_over}."
        )

    def _add(self, data: bytes) -> None:
        self._sha256.update(data)
        self._n += len(data)
