"""Write document vectors (rows) to arrays on disk, and train rankers without reading all of them into memory."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import scipy  # its parts load at their first use
from numpy.lib import format as npy

from textcat.base.disk import resolved, sha256_of_file
from textcat.base.errors import TextcatError
from textcat.base.folders import FolderFormat

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_TYPES = {"data": (np.float32, np.float64), "indices": (np.int32,), "indptr": (np.int64,)}
PARTS = tuple(_TYPES)
ROWS_PER_BLOCK = 4096


class StoreError(TextcatError, ValueError):
    """Raised for a folder that is not a store of rows or is damaged, or for rows that cannot be written to one."""


@dataclass(frozen=True, kw_only=True)
class RowsManifest:
    """The entries of the manifest in a folder of document vectors (rows)."""

    format: int = 0
    shape: list[int]  # (n_rows, n_features)
    sums: dict[str, str]  # the sha256 of each array's values, by the array's name
    sum: str = ""  # checksum of the manifest's file: it identifies the rows


ROWS = FolderFormat(
    name="store of rows",
    content="rows",
    negation="no store of rows",
    error=StoreError,
    manifest=RowsManifest,
    version=3,
    files=frozenset(f"{part}.npy" for part in PARTS),
    checksum="sum",
    origin="Write one with `write_rows`.",
    remedy="write the rows again",
)
check_target = ROWS.check_target


class StoredRows:
    """Document vectors (rows) on disk: the arrays of a sparse CSR matrix, memory-mapped.

    `write_rows` and `open_rows` return such an object. `solve`, and the `fit` of learners without a kernel, accept it
    in place of a matrix. It is pickled as the path of its folder; the process that unpickles it must be able to read
    this folder.

    Parameters
    ----------
    folder : Path
    manifest : RowsManifest
    arrays : dict of str to ndarray
        The arrays `data`, `indices` and `indptr`.

    Attributes
    ----------
    data, indices, indptr : ndarray of float32 or float64, int32 and int64
        The arrays of a CSR matrix; `indices` ascend within each row.
    """

    def __init__(self, folder: Path, manifest: RowsManifest, arrays: dict[str, np.ndarray]):
        self.folder = folder
        n_rows, n_features = manifest.shape
        self.shape, self.checksum = (n_rows, n_features), manifest.sum
        self.data, self.indices, self.indptr = (arrays[part] for part in PARTS)
        self.dtype = self.data.dtype

    @property
    def nnz(self) -> int:
        """The number of entries."""
        return len(self.data)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<{self.shape[0]} rows of {self.shape[1]} features and {self.nnz} entries in {self.folder}>"

    def __getitem__(self, rows: slice) -> csr_matrix:
        """Return consecutive rows as a matrix, whose entries stay on disk."""
        start, stop, step = rows.indices(len(self))
        if step != 1:
            raise IndexError(f"rows on disk are taken one after the other, not every {step}th")
        first, last = self.indptr[start], self.indptr[max(start, stop)]
        arrays = self.data[first:last], self.indices[first:last], self.indptr[start : max(start, stop) + 1] - first
        return scipy.sparse.csr_matrix(arrays, shape=(len(arrays[2]) - 1, self.shape[1]), copy=False)

    def blocks(self, n_rows: int = ROWS_PER_BLOCK) -> Iterator[csr_matrix]:
        """Yield all rows in order, as matrices of `n_rows` rows; the last one may have fewer."""
        for start in range(0, len(self), n_rows):
            yield self[start : start + n_rows]

    def __reduce__(self) -> tuple:
        return _reopened, (str(resolved(self.folder)), self.checksum)


def write_rows(folder: str | os.PathLike[str], blocks: Iterable[csr_matrix]) -> StoredRows:
    """Write rows to a folder, block by block, so that no more than one block is in memory.

    Parameters
    ----------
    folder : path
        If it is a store of rows already, it is replaced after all rows are written. If it holds other files, an error
        is raised.
    blocks : iterable of CSR matrices
        All blocks have the same number of features and the same number type, float32 or float64.

    Returns
    -------
    StoredRows

    Raises
    ------
    StoreError
        If there is no block, one does not fit the others or is not finite, or the folder cannot be written or replaced.
    """
    folder = resolved(folder)
    with ROWS.replacing(folder) as sibling:
        _write(sibling, blocks)
    return open_rows(folder, verify=False)


def open_rows(folder: str | os.PathLike[str], *, verify: bool = True) -> StoredRows:
    """Open rows that `write_rows` has written.

    Parameters
    ----------
    folder : path
    verify : bool, default=True
        True: read everything once, to verify checksums and the columns of all rows. False: check only the offsets of
        rows.

    Returns
    -------
    StoredRows

    Raises
    ------
    StoreError
        If the folder is no store of rows, or a file is missing or not as it was written.
    """
    with ROWS.open(folder) as store, store.raise_read_errors():
        store.check(dict.fromkeys(ROWS.files, ""), unread=ROWS.files)
        arrays: dict[str, Any] = {part: store.array(part, _TYPES[part]) for part in PARTS}
        rows = StoredRows(store.path, store.manifest, arrays)
        _check_offsets(rows)
        for part, array in arrays.items() if verify else ():
            file = store.files[f"{part}.npy"]
            file.seek(array.offset)
            if sha256_of_file(file) != store.manifest.sums.get(part):
                raise store.damaged(f"{part}.npy is not as it was written")
    if verify:
        _check_columns(rows)
    return rows


def _check_offsets(rows: StoredRows) -> None:
    """Raise ValueError if rows do not begin and end within the arrays, one after the other."""
    n_rows, n_features = rows.shape
    ends, n_entries = rows.indptr, rows.nnz
    fits = ends.shape == (n_rows + 1,) and rows.indices.shape == rows.data.shape == (n_entries,)
    if not fits or not 0 <= n_features < 2**31 or (ends[0], ends[-1]) != (0, n_entries) or (np.diff(ends) < 0).any():
        raise ValueError(f"they are no {n_rows} rows of {n_features} features")


def _check_columns(rows: StoredRows) -> None:
    """Raise StoreError if the columns of a row do not ascend, or if a column is out of range."""
    try:
        for block in rows.blocks():
            block.check_format(full_check=True)
            if not block.has_canonical_format:
                raise ValueError("the columns of a row do not ascend")
    except ValueError as error:
        raise ROWS.damaged(rows.folder, str(error)) from error


def _reopened(folder: str, expected: str) -> StoredRows:
    """Open rows that another process has pickled, given their folder and checksum (`expected`).

    StoreError is raised if the rows cannot be opened, or have another checksum.
    """
    try:
        rows = open_rows(folder, verify=False)
    except StoreError as error:
        raise StoreError(
            f"{platform.node()} cannot open the rows in {folder} ({str(error).rstrip('.')}): "
            "every machine must see them there."
        ) from error
    if rows.checksum != expected:
        raise StoreError(f"The rows in {folder} are not those that were there before: begin anew.")
    return rows


class _ArrayWriter:
    """Write an array to a ``.npy`` file, a part of the array at a time."""

    def __init__(self, file: BinaryIO, dtype: Any):
        self.dtype, self.length = np.dtype(dtype), 0
        self._file, self._digest = file, hashlib.sha256()
        self._write_header()

    def _write_header(self) -> None:
        # numpy leaves room for any length in an array's header
        header = {"descr": npy.dtype_to_descr(self.dtype), "fortran_order": False, "shape": (self.length,)}
        npy.write_array_header_1_0(self._file, header)

    def append(self, array: np.ndarray) -> None:
        data = array.astype(self.dtype, copy=False).tobytes()
        self._file.write(data)
        self._digest.update(data)
        self.length += len(array)

    def finish(self) -> str:
        """Write the length into the header, and return the sha256 of the values."""
        self._file.seek(0)
        self._write_header()
        self._file.flush()
        return self._digest.hexdigest()


def _write(folder: Path, blocks: Iterable[csr_matrix]) -> None:
    parts: dict[str, _ArrayWriter] = {}
    n_features = -1
    with ExitStack() as files:
        for number, block in enumerate(blocks):
            rows = _checked(number, block)
            if not parts:
                kinds = {"data": rows.dtype, "indices": np.int32, "indptr": np.int64}
                for name in PARTS:
                    parts[name] = _ArrayWriter(files.enter_context(open(folder / f"{name}.npy", "xb")), kinds[name])
                parts["indptr"].append(np.zeros(1))
                n_features = rows.shape[1]
            dtype = parts["data"].dtype
            if (rows.shape[1], rows.dtype) != (n_features, dtype):
                raise StoreError(
                    f"Block {number} of rows has {rows.shape[1]} features in {rows.dtype}, and those before it "
                    f"{n_features} in {dtype}: all must be alike."
                )
            parts["indptr"].append(rows.indptr[1:].astype(np.int64) + parts["data"].length)
            parts["data"].append(rows.data)
            parts["indices"].append(rows.indices)
        if not parts:
            raise StoreError("There is no block of rows to write: give at least one, even one without a row.")
        shape = [parts["indptr"].length - 1, n_features]
        sums = {name: part.finish() for name, part in parts.items()}
        ROWS.write_manifest(folder, RowsManifest(shape=shape, sums=sums))


def _checked(number: int, block: Any) -> csr_matrix:
    if not scipy.sparse.issparse(block) or block.format != "csr" or block.dtype not in (np.float32, np.float64):
        kind = f"{block.format} of {block.dtype}" if scipy.sparse.issparse(block) else type(block).__name__
        raise StoreError(f"Block {number} of rows is {kind}: give CSR matrices of float32 or float64.")
    block.check_format(full_check=True)
    if not block.has_canonical_format:
        block = block.copy()
        block.sum_duplicates()
    if not np.isfinite(block.data).all():
        raise StoreError(f"Block {number} of rows has a value that is not finite: give finite numbers only.")
    return block
