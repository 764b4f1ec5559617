"""One module per format, each turning the bytes of one file into Documents.

A reader has two functions: ``wanted(name) -> bool`` tells by its name whether a file holds documents, and
``parse(member, **options)`` yields the Documents of one file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from textcat.corpus.documents import Document
from textcat.corpus.members import members
from textcat.corpus.readers import folders, reuters

READERS: dict[str, ModuleType] = {"folders": folders, "reuters": reuters}


def read(reader: str, *paths: str | Path, **options: str) -> Iterator[Document]:
    """Yield the documents of files, folders or archives, one file at a time in memory.

    Parameters
    ----------
    reader : {"folders", "reuters"}
    *paths : str or Path
    **options
        Those of the reader's ``parse``.
    """
    for path in paths:
        for member in members(Path(path), READERS[reader].wanted):
            yield from READERS[reader].parse(member, **options)
