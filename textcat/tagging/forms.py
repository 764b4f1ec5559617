"""Blocks of rows → files of JSON Lines, CSV or Parquet, compressed or not."""

from __future__ import annotations

import io
from importlib.metadata import version
from typing import Any

from textcat.errors import TextcatError, install_hint
from textcat.tagging.output import COLUMNS, ENCODERS, OutputSettings, schema

COMPRESSIONS = ("", "zst")


def check(settings: OutputSettings) -> None:
    """Refuse what cannot be written, before any work is done.

    Raises
    ------
    TextcatError
        If there is no such format, the settings do not go together, or a library is not installed.
    """
    if settings.to not in ENCODERS:
        raise TextcatError(f"Tags are not written as {settings.to!r}: choose one of {', '.join(ENCODERS)}.")
    if settings.compress not in COMPRESSIONS:
        raise TextcatError(f"Tags are not compressed as {settings.compress!r}: choose zst.")
    if settings.to == "parquet" and settings.compress:
        raise TextcatError("Parquet is compressed in itself: leave out --compress.")
    if settings.top is not None and (settings.top < 1 or settings.everything):
        raise TextcatError("Ask for 1 topic or more, or for the scores of all, not both.")
    if settings.explain and settings.to != "jsonl":
        raise TextcatError("Terms that explain are written as jsonl only.")
    form(settings)


def libraries(settings: OutputSettings) -> dict[str, str]:
    """Return the versions of the libraries that the bytes depend on."""
    names = ["pyarrow"] if settings.to == "parquet" else ["zstandard"] if settings.compress else []
    return {name: version(name) for name in names}


class Plain:
    """A file that is its rows, one encoded block after the other; `head` stands before them."""

    def __init__(self, head: bytes = b""):
        self._head = head

    def begin(self) -> bytes:
        """Return what a file begins with."""
        return self._head

    def add(self, block: bytes) -> bytes:
        """Take rows, and return what can be written by now."""
        return block

    def flush(self) -> bytes:
        """Return what has been held back, so that a reader finds all rows added so far."""
        return b""

    def end(self) -> bytes:
        """Return what a file ends with."""
        return b""


class Zstandard(Plain):
    """Another form's file, as one Zstandard frame: many readers stop at the end of the first."""

    def __init__(self, inner: Plain):
        self._inner = inner
        self._library = _library("zstandard", "write .zst files", "zst")

    def begin(self) -> bytes:
        """Begin a frame."""
        self._frame = self._library.ZstdCompressor(write_checksum=True).compressobj()
        return self._frame.compress(self._inner.begin())

    def add(self, block: bytes) -> bytes:
        """Compress rows; most of them are held back until there are enough of them."""
        return self._frame.compress(self._inner.add(block))

    def flush(self) -> bytes:
        """End a block of the frame."""
        return self._frame.flush(self._library.COMPRESSOBJ_FLUSH_BLOCK)

    def end(self) -> bytes:
        """End the frame."""
        return self._frame.compress(self._inner.end()) + self._frame.flush()


class Parquet(Plain):
    """A Parquet file of one row group; its rows are held until it ends, as only then it can be read."""

    def __init__(self) -> None:
        super().__init__()
        _library("pyarrow", "write Parquet", "parquet")

    def begin(self) -> bytes:
        """Begin without rows."""
        self._batches: list[Any] = []
        return b""

    def add(self, block: bytes) -> bytes:
        """Hold rows."""
        import pyarrow as pa

        self._batches += pa.ipc.open_stream(block)
        return b""

    def end(self) -> bytes:
        """Make the file."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.Table.from_batches(self._batches, schema())
        file = io.BytesIO()
        pq.write_table(table, file, compression="zstd", row_group_size=max(len(table), 1))
        return file.getvalue()


def form(settings: OutputSettings) -> Plain:
    """Return what makes files of encoded blocks.

    Raises
    ------
    TextcatError
        If a library for it is not installed.
    """
    if settings.to == "parquet":
        return Parquet()
    plain = Plain((",".join(COLUMNS) + "\n").encode() if settings.to == "csv" else b"")
    return Zstandard(plain) if settings.compress else plain


def _library(name: str, purpose: str, extra: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        raise TextcatError(f"To {purpose}, {name} is needed: run `{install_hint(extra)}`.") from None
