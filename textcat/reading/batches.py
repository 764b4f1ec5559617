"""Cut sources into batches of about a megabyte; reading can resume after each of them."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from textcat.base.errors import TextcatError
from textcat.reading.cutting import Place
from textcat.reading.input_settings import InputSettings
from textcat.reading.records import START_OVER, Batch, Block, Checkpoint, PipeState, Rejection
from textcat.reading.source_reader import SourceReader
from textcat.reading.sources import Source
from textcat.reading.streams import ByteStream

_OF_ONE = 256  # bytes that a block counts for besides its data, as a batch of empty files must end, too


def read_batches(
    sources: Sequence[Source],
    settings: InputSettings,
    start: Iterable[int] | None = None,
    pipes: Mapping[str, PipeState] | None = None,
    start_over: str = START_OVER,
) -> Iterator[Batch]:
    """Read sources; yield batches of about a megabyte of consecutive records, and Rejections of what cannot be read.

    A batch holds blocks of undecoded records, which `batch_records` parses, and the Rejections between them. At most a
    few blocks and the longest record are in memory. A record from a pipe is returned as soon as it is complete.

    `start` is where reading begins: the end of an earlier batch of the same sources and settings. `pipes` has, for each
    pipe by name, the number and checksum of the bytes that an interrupted run has read; if a pipe sends other bytes
    now, a TextcatError is raised, in which the clause `start_over` says how to begin again. If `pipes` is None, as no
    run is to be resumed, nothing is compared, and batches have no checksums of files.
    """
    observed = [
        _Pipe(source, pipes.get(source.name), start_over)
        for source in sources
        if source.kind == "pipe" and pipes is not None
    ]
    opening = {pipe.name: pipe.open for pipe in observed}
    sources = [source._replace(open=opening.get(source.name, source.open)) for source in sources]

    begin: Checkpoint = tuple(start or Place().checkpoint(0))
    blocks: list[Block | Rejection] = []
    size, end, read, sums = 0, begin, 0, dict[str, str]()
    for step in chain(_steps(sources, settings, begin, None if pipes is None else sums), [None]):
        if step is not None:
            item, end, read = step
            blocks.append(item)
            size += _OF_ONE + (len(item.data) if isinstance(item, Block) else 0)
        if blocks and (step is None or size >= settings.block_bytes):
            states = {pipe.name: pipe.state for pipe in observed if pipe.state.n_bytes}
            yield Batch(tuple(blocks), begin, end, read, states, dict(sums))
            begin, blocks, size = end, [], 0
            sums.clear()


def _steps(
    sources: Sequence[Source], settings: InputSettings, start: Checkpoint, sums: dict[str, str] | None
) -> Iterator[tuple[Block | Rejection, Checkpoint, int] | None]:
    """Yield the blocks of records of sources, and a Rejection for each part that cannot be read.

    Each is yielded with the checkpoint after it, from which reading can resume, and the number of bytes read so far.

    Yield None where a batch must end. The checksum of each file that has been read from its start to its end is put
    into `sums`; if that is None, no checksum is taken.
    """
    before = sum(source.size or 0 for source in sources[: start[0]])
    position = Place(start[1], start[2], start[3], start[4:])
    for number, source in enumerate(sources[start[0] :], start[0]):
        if source.kind == "pipe":
            yield None
        for item, after, read in SourceReader(source, settings, sums=sums).steps(position):
            if after:
                yield item, after.checkpoint(number), before + read
            else:
                yield item, Place().checkpoint(number + 1), before + (read if source.size is None else source.size)
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
            raise TextcatError(
                f"{self.name} does not give the same bytes as when the run began: give the same input, or "
                f"{self._start_over}."
            )
        self._add(data[left:])
        return data

    def _add(self, data: bytes) -> None:
        self._sha256.update(data)
        self._n += len(data)
