"""Read documents of many formats from files, folders, archives, URLs and pipes: for training and for tagging.

`find` takes the inputs, `read_batches` cuts them for tagging, and `formats.records` reads what a batch holds;
`read_documents` reads all of them with their labels, for training.
"""

from textcat.reading.batches import DamagedError, read_batches, read_documents
from textcat.reading.records import InputSettings, LabelSettings, Record, Rejection
from textcat.reading.sources import find

__all__ = [
    "DamagedError",
    "InputSettings",
    "LabelSettings",
    "Record",
    "Rejection",
    "find",
    "read_batches",
    "read_documents",
]
