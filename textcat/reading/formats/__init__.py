"""One module per format: how its files are cut between records, and how the records of what was cut are read.

What reads the records of a block runs anywhere. What cuts runs where the inputs are read, and must be cheap: a cutter
returns where whole records end. It is made anew for every file, as it may keep what it is in the middle of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from textcat.reading.formats import delimited, jsonl, mbox, parquet, rcv1, reuters, text
from textcat.reading.records import Batch, Block, InputSettings, Record, Rejection

#: What reads the records of a block, by the name of its format.
FORMATS: dict[str, Callable[[Block, InputSettings], Iterator[Record | Rejection]]] = {
    "jsonl": jsonl.read_lines,
    "csv": delimited.records,
    "tsv": delimited.records,
    "parquet": parquet.records,
    "reuters": reuters.records,
    "rcv1": rcv1.records,
    "text": text.read_text,
    "lines": text.read_lines,
    "mbox": mbox.records,
    "json": jsonl.read_array,
}
#: The formats of which a file is one document.
WHOLE = frozenset({"rcv1", "text"})


class _Cutter(Protocol):
    """What returns where records end; see `textcat.reading.formats.text._LineCutter`."""

    def cut(self, data: bytes) -> int: ...
    def count(self, data: bytes) -> int: ...
    def skip(self, data: bytes) -> tuple[int, bool]: ...


def cutter(form: str, header: bytes, settings: InputSettings) -> _Cutter:
    """Return the cutter of a file in a format of many records.

    Parameters
    ----------
    form : str
    header : bytes
        The first row of CSV and TSV.
    settings : InputSettings

    Returns
    -------
    _Cutter

    Raises
    ------
    UnreadableError
        If the header is not as it must be.
    """
    if form in delimited.SEPARATORS:
        return delimited._RowCutter(header, form, settings)
    if form == "reuters":
        return reuters._StoryCutter()
    if form == "json":
        return jsonl._ObjectCutter()
    return mbox._MessageCutter() if form == "mbox" else text._LineCutter()


def records(batch: Batch, settings: InputSettings) -> Iterator[Record | Rejection]:
    """Yield what a batch holds, in the order of the input: every record, and a Rejection for all that is none.

    Parameters
    ----------
    batch : Batch
    settings : InputSettings
        By which it was read.

    Yields
    ------
    Record or Rejection
    """
    for block in batch.blocks:
        if isinstance(block, Rejection):
            yield block
        else:
            yield from block_records(block, settings)


def block_records(block: Block, settings: InputSettings) -> Iterator[Record | Rejection]:
    """Yield what a block holds.

    Parameters
    ----------
    block : Block
        Whole records of one file.
    settings : InputSettings
        How the inputs are read.

    Returns
    -------
    iterator of Record or Rejection
    """
    if block.decoded:
        settings = settings._replace(encoding="utf-8")
    return FORMATS[block.format](block, settings)
