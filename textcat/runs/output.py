"""Encoded rows → the bytes of a file of JSON Lines, CSV or Parquet, compressed or not."""

import io
from collections.abc import Callable
from importlib import import_module
from typing import Any

from textcat.errors import TextcatError, install_hint


class PlainFile:
    """A file of a header and encoded rows, whose name ends in `suffix`; methods return bytes to write."""

    def __init__(self, suffix: str, head: bytes = b""):
        self.suffix, self._head = suffix, head

    def begin(self) -> bytes:
        """Return the start of a file."""
        return self._head

    def add(self, rows: bytes) -> bytes:
        """Add rows, and return the bytes that can be written now."""
        return rows

    def flush(self) -> bytes:
        """Return the bytes of added rows that `add` has not returned yet."""
        return b""

    end = flush


class ZstandardFile(PlainFile):
    """A plain file as a single Zstandard frame, because many readers stop at the end of the first frame."""

    def __init__(self, suffix: str, head: bytes = b""):
        super().__init__(suffix, head)
        self._library = _library("zstandard", "write .zst files", "zst")

    def begin(self) -> bytes:
        """Return the start of the frame."""
        self._frame = self._library.ZstdCompressor(write_checksum=True).compressobj()
        return self._frame.compress(self._head)

    def add(self, rows: bytes) -> bytes:
        """Add rows, and return the compressed bytes that are ready."""
        return self._frame.compress(rows)

    def flush(self) -> bytes:
        """Return the compressed bytes of added rows that `add` has not returned yet."""
        return self._frame.flush(self._library.COMPRESSOBJ_FLUSH_BLOCK)

    def end(self) -> bytes:
        """Return the rest of the frame."""
        return self._frame.flush()


class ParquetFile(PlainFile):
    """A Parquet file of one row group; its rows are held in memory until the file ends."""

    def __init__(self, suffix: str, schema: Callable[[], Any]):
        super().__init__(suffix)
        self._library, self._schema = _library("pyarrow", "write Parquet", "parquet"), schema

    def begin(self) -> bytes:
        """Return no bytes, because the file is written at its end."""
        self._batches: list[Any] = []
        return b""

    def add(self, rows: bytes) -> bytes:
        """Hold rows until the file ends, and return no bytes."""
        self._batches += self._library.ipc.open_stream(rows)
        return b""

    def end(self) -> bytes:
        """Return the whole file."""
        import pyarrow.parquet as pq

        table = self._library.Table.from_batches(self._batches, self._schema())
        file = io.BytesIO()
        pq.write_table(table, file, compression="zstd", row_group_size=max(len(table), 1))
        return file.getvalue()


def _library(name: str, purpose: str, extra: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise TextcatError(f"To {purpose}, {name} is needed: run `{install_hint(extra)}`.") from None
