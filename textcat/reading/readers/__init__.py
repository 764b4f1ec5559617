"""One module per format, each turning the bytes of one file into Documents.

A reader has two functions: ``wanted(name, **options) -> bool`` tells by its name whether a file holds documents that
are to be read, and ``parse(member, **options)`` yields the Documents of one file.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType

from textcat.documents import Document
from textcat.reading.members import members
from textcat.reading.readers import folders, jsonl, rcv1, reuters

READERS: dict[str, ModuleType] = {"folders": folders, "jsonl": jsonl, "rcv1": rcv1, "reuters": reuters}


def read(reader: str, *paths: str | Path, **options: str) -> Iterator[Document]:
    """Yield the documents of files, folders or archives, one file at a time in memory.

    Parameters
    ----------
    reader : {"folders", "jsonl", "rcv1", "reuters"}
    *paths : str or Path
    **options
        Those of the reader's ``wanted`` and ``parse``.
    """
    for path in paths:
        for member in members(Path(path), partial(READERS[reader].wanted, **options)):
            yield from READERS[reader].parse(member, **options)
