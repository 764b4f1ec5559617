"""Turn encoded rows into the bytes of a file of JSON Lines, CSV or Parquet, compressed or not."""

import io
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any, BinaryIO

from textcat.base.errors import TextcatError, install_hint


class PlainFile:
    """Build a file that consists of a header, `head`, and encoded rows; its name ends in `suffix`.

    The methods return bytes, which the caller writes.
    """

    def __init__(self, suffix: str, head: bytes = b""):
        self.suffix, self._head = suffix, head

    def begin(self) -> bytes:
        """Return the bytes at the start of a file."""
        return self._head

    def add(self, rows: bytes) -> bytes:
        """Add rows, and return the bytes that can be written now."""
        return rows

    def flush(self) -> bytes:
        """Return the bytes of added rows that `add` has not returned yet."""
        return b""

    end = flush

    def pieces(self, file: BinaryIO, sizes: Iterable[int]) -> Iterator[bytes]:
        """Yield the rows of a file that this object has built, in the pieces in which they were added.

        `sizes` has the size of each piece in bytes when it was added, or in Parquet, the number of its rows.
        """
        file.seek(len(self._head))
        return map(file.read, sizes)


class ZstandardFile(PlainFile):
    """Build a file compressed by Zstandard, as a single frame, because many readers stop after the first frame."""

    def __init__(self, suffix: str, head: bytes = b""):
        super().__init__(suffix, head)
        self._library = _library("zstandard", "write .zst files", "zst")

    def begin(self) -> bytes:
        """Begin a compressed frame with the header; return the compressed bytes that are ready, possibly none."""
        self._frame = self._library.ZstdCompressor(write_checksum=True).compressobj()
        return self._frame.compress(self._head)

    def add(self, rows: bytes) -> bytes:
        """Add rows to the frame, and return the compressed bytes that are ready, possibly none."""
        return self._frame.compress(rows)

    def flush(self) -> bytes:
        """Return the compressed bytes of added rows that `add` has not returned yet."""
        return self._frame.flush(self._library.COMPRESSOBJ_FLUSH_BLOCK)

    def end(self) -> bytes:
        """Return the remaining bytes of the compressed frame, which end the file."""
        return self._frame.flush()

    def pieces(self, file: BinaryIO, sizes: Iterable[int]) -> Iterator[bytes]:
        """Yield the rows of a file as `PlainFile.pieces` does."""
        unpacked = self._library.ZstdDecompressor().stream_reader(file)
        unpacked.read(len(self._head))
        return map(unpacked.read, sizes)


class ParquetFile(PlainFile):
    """Build a Parquet file of one row group. All rows are held in memory, as Arrow streams, until the file ends.

    `schema` returns the Arrow schema of the rows.
    """

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

        # As one batch, because pages of a file depend on batch boundaries, which differ when runs are merged.
        table = self._library.Table.from_batches(self._batches, self._schema()).combine_chunks()
        file = io.BytesIO()
        pq.write_table(table, file, compression="zstd", row_group_size=max(len(table), 1))
        return file.getvalue()

    def pieces(self, file: BinaryIO, sizes: Iterable[int]) -> Iterator[bytes]:
        """Yield the rows of a file as `PlainFile.pieces` does; `sizes` are numbers of rows."""
        import pyarrow.parquet as pq

        table, begin = pq.read_table(file), 0
        for n in sizes:
            sink = io.BytesIO()
            with self._library.ipc.new_stream(sink, table.schema) as stream:
                stream.write_table(table.slice(begin, n))
            yield sink.getvalue()
            begin += n


def _library(name: str, purpose: str, extra: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise TextcatError(f"To {purpose}, {name} is needed: run `{install_hint(extra)}`.") from None
