"""Write the texts of an archive or a corpus to shards in a folder, resumably: the first step of building a pool."""

import hashlib
import logging
import os
import pickle
import shutil
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from textcat import __version__
from textcat.base import disk
from textcat.base.disk import installed_version
from textcat.base.progress import Bar, Stages
from textcat.base.surrogates import escape_undecodable
from textcat.corpus.documents import Corpus, Document
from textcat.features.tfidf import TfIdf
from textcat.reading import (
    ALL_FIELDS,
    Batch,
    InputSettings,
    Record,
    Rejection,
    Source,
    batch_records,
    check_pipes,
    find_sources,
    read_batches,
)
from textcat.recipes.recipe import Recipe
from textcat.runs.folder import open_folder
from textcat.runs.inputs import check_output_apart, facts_of_reading, total_size
from textcat.runs.output import PlainFile
from textcat.runs.progress import RunState
from textcat.runs.records import Log
from textcat.runs.results import BatchResult, Counts, process_name
from textcat.runs.shard_writer import write_shards
from textcat.runs.tally import RunTally
from textcat.runs.workers import WorkerPool, open_workers, ordered_map
from textcat.teaching.pool.pieces import can_use_pieces, for_many, name_of, piece_of

log = logging.getLogger(__name__)

#: The default size of a batch: in larger batches, terms are looked up less often.
_BLOCK_BYTES = 4 << 20
_DOCUMENTS_PER_BATCH = 4096  # of a corpus
# Pieces are saved only for inputs of at least this many bytes: the terms of smaller inputs are quickly counted again,
# in memory.
PIECES_FROM = 32 << 20
PIECES = "_pieces"
_NOT_FURTHER = {"id", "labelled_for", "split", "topics", "zones"}  # record fields that a document stores elsewhere
DERIVED = ("index", "rows")  # folders that are derived from the shards; they are removed in this order


@dataclass(frozen=True)
class Shard:
    """One of the files with the texts of a pool: one line of JSON per document."""

    name: str
    n_bytes: int
    sha256: str


@dataclass
class Archive:
    """The texts of an archive, written to a folder as numbered files of JSON Lines (`shards`)."""

    folder: Path
    shards: list[Shard]
    n_documents: int
    n_rejected: int

    def lines(self) -> Iterator[bytes]:
        """Yield the line of each document."""
        for shard in self.shards:
            with open(self.folder / shard.name, "rb") as file:
                yield from file


@dataclass
class _ReadBatch(BatchResult):
    """The lines of a batch of documents, the rejected records, and the piece: the counts of these documents' terms.

    The piece is b"" if no pieces are kept.
    """

    piece: bytes = b""


class _Reading(NamedTuple):
    """The inputs of a pool, files or a corpus, with the settings for reading them, and the pool's features."""

    facts: dict[str, Any]  # the `facts` that `open_folder` takes
    inputs: list[dict[str, Any]]  # the `inputs` that `open_folder` takes
    sources: Sequence[Source]  # empty for a corpus
    corpus: Corpus | None
    settings: InputSettings
    features: TfIdf | None  # the features that count pieces; None if no pieces are kept

    @property
    def n_bytes(self) -> int | None:
        """The stored size of all inputs; None if it is not known."""
        return total_size(self.sources)


@contextmanager
def read_archive(
    inputs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | Corpus,
    folder: Path,
    recipe: Recipe,
    settings: InputSettings,
    *,
    jobs: int = -1,
    restart: bool = False,
    stages: Stages,
    **limits: int,
) -> Iterator[Archive]:
    """Write the texts of an archive to a folder, or resume from the last checkpoint; yield the written archive.

    `limits` are passed to `ShardWriter`.
    """
    reading = _reading_of(inputs, recipe, settings)
    check_output_apart(reading.sources, folder)
    start_over = f"remove {folder}"
    with ExitStack() as locked:
        # Start workers first: if this process is killed, they would keep whatever they inherited by the fork, such as
        # the lock.
        with open_workers(jobs, reading.n_bytes) as workers:
            state = locked.enter_context(
                open_folder(folder, reading.facts, reading.inputs, restart=restart, start_over=start_over)
            )
            for name in DERIVED if not state.finished else ():
                shutil.rmtree(folder / name, ignore_errors=True)
            for stray in folder.glob(f".*{disk.UNFINISHED}"):  # left by a run that was killed
                shutil.rmtree(stray, ignore_errors=True)
            _remove_pieces(folder / PIECES, state.counts.tagged)
            if state.finished:
                check_pipes(reading.sources, state.pipes, start_over)
            else:
                with stages.stage("read") as bar:
                    results = _read_with_pieces(folder / PIECES, reading, state, workers, bar, start_over)
                    write_shards(folder, state, PlainFile(".jsonl"), results, None, **limits)
        assert state.log is not None
        yield _archive_in(folder, state.log)


def _read_with_pieces(
    pieces: Path, reading: _Reading, state: RunState, workers: WorkerPool, bar: Bar, start_over: str
) -> Generator[tuple[Batch, _ReadBatch]]:
    """Read the remaining batches of documents, and yield each with its lines.

    A batch is yielded after its piece (the counts of its terms) is written to the folder `pieces`.
    """
    bar.show(completed=state.counts.records)
    tally = RunTally(state._replace(sources=reading.sources), reading.n_bytes)
    results = _read(reading, state, workers, start_over)
    followed = tally.followed(results, after=lambda _, read: bar(read.counts.records))
    with closing(followed):
        for batch, read in followed:
            if read.piece:  # written before the journal records the batch
                _write_piece(pieces, tally.counts.tagged, read.piece)
            yield batch, read
    tally.warn_of_changes(reading.settings, start_over)


def _archive_in(folder: Path, log: Log) -> Archive:
    shards = [Shard(shard.name, shard.n_bytes, shard.sha256) for shard in log.generation.shards if shard.name]
    return Archive(folder, shards, log.counts.tagged, log.counts.rejected)


def _write_piece(folder: Path, position: int, piece: bytes) -> None:
    """Write a piece (the counts of a batch of documents, the first at `position`) without syncing it to disk.

    If a power failure damages the file, its checksums show this, and all terms are counted again.
    """
    folder.mkdir(exist_ok=True)
    path = folder / f"{name_of(position)}.npz"
    path.with_suffix(disk.UNFINISHED).write_bytes(piece)
    disk.rename(path.with_suffix(disk.UNFINISHED), path)


def _remove_pieces(folder: Path, position: int) -> None:
    """Remove unfinished files, and the pieces (counts of batches) whose first document is at `position` or later.

    The journal does not have these batches yet, so they are read again.
    """
    for path in folder.glob("*") if folder.is_dir() else ():
        if path.suffix != ".npz" or path.stem >= name_of(position):
            disk.remove(path)


def _reading_of(
    inputs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | Corpus, recipe: Recipe, settings: InputSettings
) -> _Reading:
    terms = repr({name: getattr(recipe, name) for name in ("tokens", "features")})
    facts = {"textcat": __version__, "spacy": installed_version("spacy"), "recipe": f"{recipe.name} ({terms})"}
    if isinstance(inputs, Corpus):
        digest = hashlib.sha256()
        for document in _documents_in(inputs):
            digest.update(repr((document.id, document.zones, document.topics)).encode("utf-8", "backslashreplace"))
        state = {"name": inputs.name, "size": len(inputs.train) + len(inputs.test), "state": digest.hexdigest()}
        return _Reading(facts, [state], (), inputs, settings, None)
    if settings.is_default("fields"):
        # persons who judge want to see these fields, and exports include them
        settings = settings._replace(fields=ALL_FIELDS)
    if settings.is_default("block_bytes"):
        settings = settings._replace(block_bytes=_BLOCK_BYTES)
    sources = find_sources(inputs, settings)
    fingerprints = [source.fingerprint() for source in sources]
    facts |= facts_of_reading(sources, settings)
    reading = _Reading(facts, fingerprints, sources, None, settings, None)
    if reading.n_bytes is not None and reading.n_bytes < PIECES_FROM:
        return reading
    features = TfIdf(**for_many(recipe).feature_settings())
    return reading._replace(features=features if can_use_pieces(features) else None)


def _read(
    reading: _Reading, state: RunState, workers: WorkerPool, start_over: str
) -> Generator[tuple[Batch, _ReadBatch]]:
    """Read the batches of documents after the last checkpoint, and yield each batch with the lines of its documents."""
    if reading.corpus is not None:
        documents = _documents_in(reading.corpus)
        for start in range(state.checkpoint[0] if state.checkpoint else 0, len(documents), _DOCUMENTS_PER_BATCH):
            batch = documents[start : start + _DOCUMENTS_PER_BATCH]
            records = [
                Record(
                    document.id,
                    document.zones,
                    document.topics,
                    document.date,
                    fields=document.fields,
                    source=reading.corpus.name,
                    position=start + i,
                )
                for i, document in enumerate(batch, 1)
            ]
            stop = start + len(batch)
            yield Batch((), (start,), (stop,), stop), _lines_of(None, records)
        return
    batches = read_batches(reading.sources, reading.settings, state.checkpoint, state.pipes, start_over)
    yield from ordered_map(partial(_read_batch, reading.features, reading.settings), batches, workers, start_over)


def _read_batch(features: TfIdf | None, settings: InputSettings, batch: Batch) -> _ReadBatch:
    return _lines_of(_unpickled(pickle.dumps(features)), list(batch_records(batch, settings)))


@lru_cache(maxsize=1)
def _unpickled(features: bytes) -> TfIdf | None:
    """Unpickle features; the same bytes give the same object again, whose token cache is already filled.

    Return None if None was pickled: then no pieces (counts of batches) are kept.
    """
    return pickle.loads(features)


def _lines_of(features: TfIdf | None, items: Sequence[Record | Rejection]) -> _ReadBatch:
    rejections = [item for item in items if isinstance(item, Rejection)]
    records = [item for item in items if isinstance(item, Record)]
    lines = [*map(_line, records)]
    counts = Counts(len(items), len(records))
    counts.add_rejections(rejections)
    counts.inputs.update(record.source for record in records)  # counts by file; the run adds them up by input
    piece = b""
    if features is not None and records:
        ids = [escape_undecodable(record.id).encode() for record in records]
        piece = piece_of(features, [record.zones for record in records], ids, [*map(len, lines)])
    return _ReadBatch([b"".join(lines)] if lines else [], rejections, counts, process_name(), piece=piece)


def _line(record: Record) -> bytes:
    """Return a document as a line of JSON that `textcat train` and `textcat tag` can read."""
    fields = {"id": record.id, "source": record.source, "position": record.position, "zones": record.zones}
    if record.topics:
        fields["topics"] = record.topics
    if record.date:
        fields["date"] = record.date
    if further := {name: value for name, value in (record.fields or {}).items() if name not in _NOT_FURTHER}:
        fields["fields"] = further
    try:
        return orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:  # a file's name that is not UTF-8, or a lone surrogate in a text
        return orjson.dumps(_encodable(fields), option=orjson.OPT_APPEND_NEWLINE)


def _encodable(value: Any) -> Any:
    """Convert a JSON value for orjson: escape what UTF-8 cannot encode, and turn integers beyond 64 bits into texts."""
    if isinstance(value, Mapping):
        return {escape_undecodable(str(name)): _encodable(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(entry) for entry in value]
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return str(value)
    return escape_undecodable(value) if isinstance(value, str) else value


def _documents_in(corpus: Corpus) -> list[Document]:
    return [*corpus.train, *corpus.test]
