"""Rows → numbered shards, each synced and named before the journal says that it is done; rejections → one file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from textcat.reading.pipes import PipeState
from textcat.reading.records import Checkpoint
from textcat.tagging import durable, journal
from textcat.tagging.counts import Counts
from textcat.tagging.forms import Plain

JOURNAL = "journal.jsonl"
REJECTED = "rejected.jsonl"


class Rule(NamedTuple):
    """When a shard is closed: after the batch that brings it to so much. The input alone has a say, not the clock.

    Parameters
    ----------
    records : int
    block_bytes : int
        Of rows, before they are compressed.
    """

    records: int = 16_384
    block_bytes: int = 64 << 20


class Done(NamedTuple):
    """How far a run has come, as its journal says.

    Parameters
    ----------
    counts : Counts
    shards : int
        Their number; the next one gets it for its name.
    checkpoint : Checkpoint, optional
        Where the input is to be read from; None is its beginning.
    read : int
        Bytes of the inputs up to there.
    rejected_bytes : int
        Length of the file of rejections.
    finished : bool
    pipes : dict of str to PipeState
        What had been read of each pipe among the inputs.
    """

    counts: Counts
    shards: int = 0
    checkpoint: Checkpoint | None = None
    read: int = 0
    rejected_bytes: int = 0
    finished: bool = False
    pipes: Mapping[str, PipeState] = {}


class Shards:
    """The files that a run writes, from where it was.

    Once a method has raised, it is of no further use; what the journal says stays true.

    Parameters
    ----------
    folder : Path
        Holds a journal that ends with a whole line, and no file that it does not tell of.
    done : Done
        What the journal says.
    form : Plain
        What makes a file of rows.
    suffix : str
        Of the shards' names.
    rule : Rule

    Attributes
    ----------
    number : int
        How many shards are done.
    """

    def __init__(self, folder: Path, done: Done, form: Plain, suffix: str, rule: Rule):
        self._folder, self._form, self._suffix, self._rule = folder, form, suffix, rule
        self.number = done.shards
        with durable.told(folder):
            self._journal = durable.reopen(folder / JOURNAL)
        self._rejected = _Growing(folder / REJECTED, done.rejected_bytes)
        self._reached: dict[str, Any] = {}
        self._begin()

    def add(
        self,
        blocks: Iterable[bytes],
        rejected: bytes,
        counts: Counts,
        checkpoint: Checkpoint,
        read: int,
        pipes: Mapping[str, PipeState] | None = None,
    ) -> None:
        """Write what became of a batch.

        Parameters
        ----------
        blocks : iterable of bytes
            Rows.
        rejected : bytes
            Lines of rejections.
        counts : Counts
            Of the batch.
        checkpoint : Checkpoint
            Where the batch ends.
        read : int
            Bytes of the inputs up to there.
        pipes : mapping of str to PipeState, optional
            What had been read of pipes.

        Raises
        ------
        TextcatError
            If the disk is full, or fails in another way.
        """
        with durable.told(self._folder):
            for block in blocks:
                self._write(block)
            self._rejected.write(rejected)
            self._counts.add(counts)
            self._reached = {"cursor": checkpoint, "read": read, "pipes": pipes or {}}
            if self._counts.records >= self._rule.records or self._block_bytes >= self._rule.block_bytes:
                self._end()

    def finish(self) -> None:
        """End the last shard, and say that all is done; errors as in `add`."""
        with durable.told(self._folder):
            if self._reached:
                self._end()
            journal.append(self._journal, {"finished": True})

    def close(self) -> None:
        """Close the files as they are."""
        for file in (self._journal, self._rejected, self._shard):
            file.close()

    def _begin(self) -> None:
        self._shard = _Growing(self._folder / f"part-{self.number:05}{self._suffix}{durable.UNFINISHED}")
        self._counts, self._block_bytes = Counts(), 0
        self._reached = {}

    def _write(self, block: bytes) -> None:
        if not self._block_bytes:
            self._shard.write(self._form.begin())
        self._shard.write(self._form.add(block))
        self._block_bytes += len(block)

    def _end(self) -> None:
        """End the shard; where all was rejected, there is none, but the journal has its line."""
        entry: dict[str, Any] = {"shard": ""}
        if self._block_bytes:
            self._shard.write(self._form.end())
            entry = {"shard": self._shard.name_it(), "bytes": self._shard.length, "sha256": self._shard.digest}
            self.number += 1
        self._rejected.sync()
        durable.sync_folder(self._folder)
        counts = {"rejected_bytes": self._rejected.length, "counts": self._counts.as_dict()}
        journal.append(self._journal, {**entry, **self._reached, **counts})
        self._begin()


class _Growing:
    """A file that is made when there is something to write."""

    def __init__(self, path: Path, length: int = 0):
        self.length = length
        self._path = path
        self._file: BinaryIO | None = None
        self._sha256 = hashlib.sha256()

    @property
    def digest(self) -> str:
        """Of what has been written."""
        return self._sha256.hexdigest()

    def write(self, data: bytes) -> None:
        """Write at the end."""
        if not data:
            return
        if self._file is None:
            self._file = durable.reopen(self._path) if self.length else durable.create(self._path)
        durable.write(self._file, data)
        self._sha256.update(data)
        self.length += len(data)

    def sync(self) -> None:
        """Wait until all of it outlasts a loss of power."""
        if self._file is not None:
            durable.sync(self._file)

    def name_it(self) -> str:
        """Sync and close the file, take away what says that it is not finished, and return its name."""
        self.sync()
        self.close()
        name = self._path.name.removesuffix(durable.UNFINISHED)
        durable.rename(self._path, self._path.with_name(name))
        return name

    def close(self) -> None:
        """Close the file as it is."""
        if self._file is not None:
            self._file.close()
