"""What passes through the tagging of an archive: batches of input, the records they hold, and what cannot be read."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

#: Where a batch begins or ends: a few whole numbers whose meaning only the reading side knows. A list of them, as JSON
#: gives it back, serves as well.
Checkpoint: TypeAlias = tuple[int, ...]


class InputSettings(NamedTuple):
    """How inputs are read. The same inputs and settings give the same batches.

    Parameters
    ----------
    format : str
        A name in `textcat.reading.formats.FORMATS`, for every input; ``""`` tells it by name, then by content.
    text_field, id_field : str
        The fields of JSON Lines, CSV, TSV and Parquet that hold the text and the id.
    encoding : str
        ``""`` is the format's own: UTF-8; for Reuters SGML latin-1; for RCV1 what the file declares.
    lines : bool
        A text file holds one document a line.
    max_bytes : int
        The longest record, in bytes as it stands uncompressed in its source; a longer one is rejected.
    block_bytes : int
        About how much of the input a batch holds.
    """

    format: str = ""
    text_field: str = "text"
    id_field: str = "id"
    encoding: str = ""
    lines: bool = False
    max_bytes: int = 16 << 20
    block_bytes: int = 1 << 20


class Record(NamedTuple):
    """One document to tag.

    Parameters
    ----------
    id : str
        What the record calls itself; a text file's is its source, and any other record without one has
        ``source:position``. Not necessarily unique.
    source : str
        The input's path or URL, behind it the path inside a folder or archive: ``a.zip/b/c.xml``.
    position : int
        Where in its source, from 1: the line it starts on, the row, or the number of the document.
    zones : dict of str to str
        Its texts; at least one, which may be empty.
    """

    id: str
    source: str
    position: int
    zones: dict[str, str]


class Rejection(NamedTuple):
    """Something of the input that could not be read.

    Parameters
    ----------
    source : str
    position : int
        As in `Record`; 0 where all of the source, or the rest of it, is meant.
    reason : str
        One sentence.
    offset, length : int
        The bytes meant, in the uncompressed source; -1 where unknown, or without end.
    """

    source: str
    position: int
    reason: str
    offset: int = -1
    length: int = -1


class Block(NamedTuple):
    """Whole records of one source and one format, as they stand in it.

    Parameters
    ----------
    source : str
    format : str
    data : bytes
    position : int
        That of the first line, row or document in `data`.
    offset : int
        Of `data` in the uncompressed source; -1 where it has none.
    header : bytes
        What stands at the head of the source and is needed to read the records: the names of the columns.
    """

    source: str
    format: str
    data: bytes
    position: int = 1
    offset: int = 0
    header: bytes = b""


class Batch(NamedTuple):
    """A stretch of the inputs, cut between records: part of a file, or many small files.

    Reading from `end` gives exactly the batches that follow this one when nothing disturbs the reading.

    Parameters
    ----------
    blocks : tuple of Block or Rejection
        In the order of the inputs. The Rejections are of what could not even be cut into blocks.
    start, end : Checkpoint
        Where it begins, and what follows begins.
    read : int
        How many bytes of the inputs, as they are stored, are consumed up to its end; all of them are the sum of the
        sources' sizes.
    """

    blocks: tuple[Block | Rejection, ...]
    start: Checkpoint
    end: Checkpoint
    read: int

    @property
    def source(self) -> str:
        """The source that the batch ends in."""
        return self.blocks[-1].source

    @property
    def size(self) -> int:
        """How many bytes it holds, uncompressed."""
        return sum(len(block.data) for block in self.blocks if isinstance(block, Block))
