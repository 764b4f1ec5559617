"""One module per format: how its files are cut between records, and how the records of what was cut are read.

``records(block, settings)`` yields the records of a block, and a Rejection for each that cannot be read; it runs
anywhere. What cuts runs where the inputs are read, and must be cheap: a cutter tells where whole records end. It is
made anew for every file, as it may keep what it is in the middle of.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Protocol

from textcat.reading.formats import delimited, jsonl, lines, mbox, parquet, rcv1, reuters, text
from textcat.reading.records import Batch, InputSettings, Record, Rejection

FORMATS: dict[str, ModuleType] = {
    "jsonl": jsonl,
    "csv": delimited,
    "tsv": delimited,
    "parquet": parquet,
    "reuters": reuters,
    "rcv1": rcv1,
    "text": text,
    "lines": lines,
    "mbox": mbox,
}
#: The formats of which a file is one document.
WHOLE = frozenset({"rcv1", "text"})


class Cutter(Protocol):
    """What tells where records end; see `textcat.reading.formats.lines.LineCutter`."""

    def cut(self, data: bytes) -> int: ...  # noqa: D102
    def count(self, data: bytes) -> int: ...  # noqa: D102
    def skip(self, data: bytes) -> tuple[int, bool]: ...  # noqa: D102


def cutter(form: str, header: bytes, settings: InputSettings) -> Cutter:
    """Make the cutter of a file in a format of many records.

    Raises
    ------
    FaultError
        If the header is not as it must be.
    """
    if form in delimited.SEPARATORS:
        return delimited.RowCutter(header, form, settings)
    if form == "reuters":
        return reuters.StoryCutter()
    return mbox.MessageCutter() if form == "mbox" else lines.LineCutter()


def records(batch: Batch, settings: InputSettings) -> Iterator[Record | Rejection]:
    """Yield what a batch holds, in the order of the input: every record, and a Rejection for all that is none."""
    for block in batch.blocks:
        if isinstance(block, Rejection):
            yield block
        else:
            yield from FORMATS[block.format].records(block, settings)
