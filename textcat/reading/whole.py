"""Read all records of inputs in order, without batches and checkpoints."""

from collections.abc import Iterator, Sequence

from textcat.reading.batches import read_batches
from textcat.reading.discovery import find_sources
from textcat.reading.formats import batch_records
from textcat.reading.input_settings import InputSettings
from textcat.reading.records import Record, Rejection


def read_records(inputs: Sequence[str], settings: InputSettings) -> Iterator[Record | Rejection]:
    """Yield the records of files, folders, patterns and URLs, and a Rejection for each part that is not a record."""
    for batch in read_batches(find_sources(inputs, settings), settings):
        yield from batch_records(batch, settings)
