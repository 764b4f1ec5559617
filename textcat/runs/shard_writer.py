"""Write the shards (numbered output files) and rejections of a run, and record them in its journal.

A shard is synced to disk and gets its final name before the journal records it as done.
"""

import hashlib
import zlib
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import BinaryIO, NamedTuple

from textcat.base import disk
from textcat.base.disk import UNFINISHED
from textcat.reading import Batch, PipeState
from textcat.runs.news_versions import VERSIONS
from textcat.runs.output import PlainFile
from textcat.runs.progress import RunState
from textcat.runs.records import REJECTED, Finished, PartBatch, Shard
from textcat.runs.results import BatchResult, Counts, encode_rejection
from textcat.runs.settling import RemoveRows, settle

COUNTED, SCORE_BINS = "_counted-{:05}.jsonl", "_bins-{:05}.bin"  # names of a shard's files
HELD_OUT = "_held-out-{}.json"  # name of the file with the counts of a model's held-out documents


class EncodedBatch(NamedTuple):
    """The bytes that a batch adds to the files of a run, and the record of the batch."""

    record: PartBatch
    rows: Sequence[bytes]  # encoded
    rejected: bytes
    counted: bytes
    score_bins: bytes
    versions: bytes
    pipes: Mapping[str, PipeState] = {}


def _encoded(batch: Batch, result: BatchResult) -> EncodedBatch:
    due: dict[str, float] = {}
    needs: dict[str, list[str]] = {}
    for rejection in result.rejections:
        if rejection.needs:
            _add_needs(needs, rejection.source, [rejection.needs])
        if rejection.due is not None:
            due[rejection.source] = min(rejection.due, due.get(rejection.source, rejection.due))
    rejected = b"".join(map(encode_rejection, result.rejections))
    record = PartBatch(
        number=batch.number,
        start=tuple(batch.start),
        end=tuple(batch.end),
        read=batch.read,
        rows=[*map(len, result.rows)],
        counts=result.counts.as_dict(),
        rejected=len(rejected),
        counted=len(result.counted),
        score_bins=len(result.score_bins),
        versions=len(result.versions),
        sums=dict(batch.sums),
        due=due,
        needs=needs,
    )
    return EncodedBatch(record, result.rows, rejected, result.counted, result.score_bins, result.versions, batch.pipes)


def _add_needs(needs: dict[str, list[str]], source: str, modules: Iterable[str]) -> None:
    needs[source] = sorted({*needs.get(source, ()), *modules})


class WrittenRun(NamedTuple):
    """The result of `write_shards`: the number of shards, and the change of counts by removed rows."""

    shards: int  # number of output files, including those of earlier runs
    removed: Counts  # change of the counts by removed rows (replaced by newer files or newer versions of news)
    is_whole: bool = True  # False: files must be read again, because older versions of news in them count again


def counted_topics_path(shard: Path) -> Path:
    """Return the path of the file with the topics, of each row of a shard, that the run's summary counts."""
    return shard.with_name(COUNTED.format(_number(shard)))


def score_bins_path(shard: Path) -> Path:
    """Return the path of the file with the bins of the scores of a shard's documents."""
    return shard.with_name(SCORE_BINS.format(_number(shard)))


def _number(shard: Path) -> int:
    return int(shard.name.partition("-")[2].partition(".")[0])


def held_out_path(folder: Path, model: str) -> Path:
    """Return the path of the file with the counts of a model's held-out documents, given the model's id."""
    return folder / HELD_OUT.format(model)


def write_shards(
    folder: Path,
    state: RunState,
    form: PlainFile,
    results: Generator[tuple[Batch, BatchResult]],
    remove: RemoveRows | None = None,
    **limits: int,
) -> WrittenRun:
    """Write the results of all batches to the folder of a run, finish the run, and describe the output.

    With `remove`, rows are removed if their file was read again, or their news has a newer version. `limits` are the
    arguments `max_records` and `max_bytes` of `ShardWriter`.
    """
    counts, is_whole = Counts(), True
    with closing(ShardWriter(folder, state, form, **limits)) as shards, closing(results):
        for batch, result in results:
            shards.add(batch, result)
        shards.end()
        if remove is not None:
            with raise_write_errors(folder):
                counts, is_whole = settle(shards.log, remove)
        shards.finish()
    return WrittenRun(shards.number, counts, is_whole)


def raise_write_errors(folder: Path) -> AbstractContextManager[None]:
    """Convert errors of writing to the folder of a run into TextcatErrors with a remedy, in a ``with`` block."""
    return disk.raise_write_errors(folder, "fix that, and the same command resumes the run")


class ShardWriter:
    """Write the shards (numbered output files), the rejections and the journal of a run.

    After an error, the writer cannot be used again.

    A shard ends after the batch with which it reaches `max_records` records, or `max_bytes` bytes before compression.
    Where shards end therefore depends only on the input, not on time. `number` is the number of finished shards. The
    journal of a part records each batch, so that the run can be merged with others.
    """

    def __init__(
        self, folder: Path, state: RunState, form: PlainFile, max_records: int = 16384, max_bytes: int = 1 << 26
    ):
        self._folder, self._format, self._is_part = folder, form, state.is_part
        self._max_records, self._max_bytes = max_records, max_bytes
        assert state.log is not None
        self.number, self.log = state.shards, state.log
        self._rejected = _SummedFile(folder / REJECTED, self.log.rejections)
        self._versions = _SummedFile(folder / VERSIONS.format(self.log.generation.number), self.log.generation.versions)
        self._last: EncodedBatch | None = None  # the last batch of the shard
        self._begin()

    def add(self, batch: Batch, result: BatchResult) -> None:
        """Write the results of a batch; raise a TextcatError if they cannot be written."""
        self.add_encoded(_encoded(batch, result))

    def add_encoded(self, batch: EncodedBatch) -> None:
        """Write the encoded output of a batch; raise a TextcatError if it cannot be written."""
        record = batch.record
        with raise_write_errors(self._folder):
            if batch.rows and not self._n_bytes:
                self._shard.write(self._format.begin())
            for rows in batch.rows:
                self._shard.write(self._format.add(rows))
            self._n_bytes += sum(record.rows)
            self._counted.write(batch.counted)
            self._score_bins.write(batch.score_bins)
            self._rejected.write(batch.rejected)
            self._versions.write(batch.versions)
            self._counts.add(Counts.from_dict(record.counts), by_month=True)
            self._sums |= record.sums
            for source, due in record.due.items():
                self._due[source] = min(due, self._due.get(source, due))
            for source, modules in record.needs.items():
                _add_needs(self._needs, source, modules)
            if self._is_part:
                self._batches.append(record)
            self._last = batch
            if self._counts.records >= self._max_records or self._n_bytes >= self._max_bytes:
                self._end(batch)

    def end(self) -> None:
        """End the last shard."""
        with raise_write_errors(self._folder):
            if self._last is not None:
                self._end(self._last)

    def finish(self) -> None:
        """End the last shard, and record in the journal that the run is finished."""
        self.end()
        with raise_write_errors(self._folder):
            self.log.append(Finished())

    def close(self) -> None:
        """Close all files; a shard that is not finished keeps its temporary name."""
        for file in (self._rejected, self._versions, self._shard, self._counted, self._score_bins):
            file.close()

    def _begin(self) -> None:
        self._shard = _AppendedFile(self._folder / f"part-{self.number:05}{self._format.suffix}{UNFINISHED}")
        self._counted, self._score_bins = (
            _AppendedFile(self._folder / f"{name.format(self.number)}{UNFINISHED}") for name in (COUNTED, SCORE_BINS)
        )
        self._counts, self._n_bytes, self._batches = Counts(), 0, list[PartBatch]()
        self._sums, self._due, self._needs = dict[str, str](), dict[str, float](), dict[str, list[str]]()
        self._last = None

    def _end(self, last: EncodedBatch) -> None:
        """Close the shard's file after its `last` batch, and record the shard in the journal.

        There is no file if all records were rejected.
        """
        name, n_bytes, sha256 = "", 0, ""
        if self._n_bytes:
            self._shard.write(self._format.end())
            name, n_bytes, sha256 = self._shard.finish(), self._shard.length, self._shard.sha256.hexdigest()
            for file in (self._counted, self._score_bins):
                if file.length:
                    file.finish()
            self.number += 1
        self._rejected.sync()
        self._versions.sync()
        disk.sync_folder(self._folder)
        self.log.append(
            Shard(
                name,
                n_bytes,
                sha256,
                last.record.end,
                last.record.read,
                self._rejected.state,
                self._counts.as_dict(),
                dict(last.pipes),
                self._sums,
                self._due,
                self._versions.state if self._versions.length else None,
                self._batches,
                self._needs,
            )
        )
        self._begin()


class _AppendedFile:
    """Append bytes to a file.

    `length` is the present size of the file in bytes; if it is 0, the first write creates the file.
    """

    def __init__(self, path: Path, length: int = 0):
        self.length, self.sha256 = length, hashlib.sha256()  # checksum of the written bytes
        self._path = path
        self._file: BinaryIO | None = None

    def write(self, data: bytes) -> None:
        if data:
            if self._file is None:
                self._file = disk.reopen(self._path) if self.length else disk.create(self._path)
            disk.write_all(self._file, data)
            self.sha256.update(data)
            self.length += len(data)

    def sync(self) -> None:
        if self._file is not None:
            disk.sync(self._file)

    def finish(self) -> str:
        """Sync and close the file, remove the ending ``.part`` from its name, and return the new name."""
        self.sync()
        self.close()
        name = self._path.name.removesuffix(UNFINISHED)
        disk.rename(self._path, self._path.with_name(name))
        return name

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class _SummedFile(_AppendedFile):
    """Append bytes to a file that may exist; `state` is its length in bytes and its CRC-32."""

    def __init__(self, path: Path, state: tuple[int, int]):
        super().__init__(path, state[0])
        self.state = state

    def write(self, data: bytes) -> None:
        super().write(data)
        self.state = self.length, zlib.crc32(data, self.state[1])
