"""Pipes, such as standard input, → the same pipes, but of a run that goes on they must give what they gave before."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from textcat.errors import TextcatError
from textcat.reading.records import Batch, Checkpoint
from textcat.reading.sources import Source
from textcat.reading.streams import Stream


class PipeState(NamedTuple):
    """What a pipe has given.

    Parameters
    ----------
    n_bytes : int
    sha256 : str
    """

    n_bytes: int
    sha256: str


class Pipes:
    """The pipes among sources: what is read of them is noted, and compared with what was read before.

    Parameters
    ----------
    sources : sequence of Source
    before : mapping of str to PipeState
        What the run had read of each, by its name, when it was broken off.
    """

    def __init__(self, sources: Sequence[Source], before: Mapping[str, PipeState]):
        self._ears = {
            source.name: _Listened(source, before.get(source.name)) for source in sources if source.kind == "pipe"
        }
        self._at: dict[Checkpoint, dict[str, PipeState]] = {}
        #: The same, the pipes among them listened to.
        self.sources = [
            source._replace(open=self._ears[source.name].open) if source.name in self._ears else source
            for source in sources
        ]

    def noted(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Yield batches of the sources, and keep what had been read when each of them was cut."""
        for batch in batches:
            if self._ears:
                self._at[batch.end] = {name: ear.heard for name, ear in self._ears.items() if ear.heard.n_bytes}
            yield batch

    def at(self, end: Checkpoint) -> dict[str, PipeState]:
        """Return what had been read when the batch with this end was cut; it is asked for once."""
        return self._at.pop(end, {})


class _Listened:
    """One pipe."""

    def __init__(self, source: Source, before: PipeState | None):
        self._source, self._before = source, before
        self._n, self._sha256 = 0, hashlib.sha256()

    @property
    def heard(self) -> PipeState:
        """What has been read."""
        return PipeState(self._n, self._sha256.hexdigest())

    def open(self) -> Stream:
        """Give the pipe's stream."""
        inner = self._source.open()
        return Stream(lambda n: self._hear(inner.read(n)), lambda: self._n, inner.prompt, inner.close)

    def _hear(self, data: bytes) -> bytes:
        left = 0 if self._before is None else self._before.n_bytes - self._n
        if self._before is None or left <= 0:
            self._add(data)
            return data
        self._add(data[:left])
        if not data or (left <= len(data) and self.heard != self._before):
            raise TextcatError(
                f"{self._source.name} does not give what it gave when the run began: give the same again, or start "
                "anew with --restart."
            )
        self._add(data[left:])
        return data

    def _add(self, data: bytes) -> None:
        self._sha256.update(data)
        self._n += len(data)
