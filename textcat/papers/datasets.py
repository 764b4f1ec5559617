"""Read the papers' data sets: files that the user has → rows and labels, as the papers use them."""

import bz2
import gzip
import io
import os
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from textcat.base.disk import expanded
from textcat.base.errors import TextcatError
from textcat.base.settings import read_toml
from textcat.corpus import fetch
from textcat.corpus.cards import card, is_shipped
from textcat.corpus.catalogue import open_corpus

if TYPE_CHECKING:
    from textcat.corpus.documents import Corpus

_PACKINGS: dict[str, Callable[..., Any]] = {"": open, ".bz2": bz2.open, ".gz": gzip.open}
_USPS_PACKED = "usps/usps.npz"  # train_x, train_y, test_x, test_y; pixels in [0, 1]


class MissingData(TextcatError):  # noqa: N818 - it is data that is missing
    """Raised if a file of a data set is in none of the folders where it may be."""


class Dataset(NamedTuple):
    """A data set: rows with labels and, if there is one, a test part."""

    name: str
    X: Any  # csr_array of float64, rows in the order of the file; no zero is stored, and indices have 32 bits
    y: np.ndarray  # int8, +1 or -1; for USPS the digit
    X_test: Any = None  # rows of the test part; None if there is no test part
    y_test: Any = None  # labels of the test part


Rows = tuple[Any, np.ndarray]  # rows as dense or sparse array, labels


# The files and the expected shape of each data set, in the order of the papers. The entry `read` names the function
# that reads it, such as `_read_table`: given the files' bytes, it returns rows and labels, and those of a test part.
DATASET_SOURCES: dict[str, dict[str, Any]] = read_toml(Path(__file__).with_name("datasets.toml"), "table")


def load(name: str) -> Dataset:
    """Read a data set by its name; ``adult`` and ``web`` are the whole sets, ``adult-1605`` is one of Platt's subsets.

    The files are looked for in the folder that the environment variable ``TEXTCAT_DATASETS`` names, then in the user's
    cache, directly or in a subfolder ``uci``, ``libsvm``, ``usps``, ``covertype`` or ``rcv1``, plain or packed
    (``.bz2``, ``.gz``). Raise MissingData if a file is not found, and TextcatError if a file is damaged or is not the
    papers'.
    """
    paths, source = _paths(name), DATASET_SOURCES[name]
    try:
        X, y, *test = globals()[f"_read_{source['read']}"](*map(_unpacked, paths), **source.get("options", {}))
        n_positives, shape = int(np.sum(y > 0)), [X.shape[0] + (len(test[1]) if test else 0), X.shape[1]]
    except (ValueError, KeyError, IndexError, EOFError, OSError) as error:
        sentence = f"{paths[0]} is damaged or no file of {name} ({error}): get it anew from {source['url']}"
        raise TextcatError(sentence) from error
    (n_rows, n_features), positives = source["shape"], source.get("positives")
    if shape != [n_rows, n_features] or positives not in (None, n_positives):
        of_them = "" if positives is None else f", {positives} of them positive"
        raise TextcatError(
            f"{paths[0]} is not the papers' {name}: it has {shape[0]} rows of {shape[1]} features, "
            f"{n_positives} of them positive, and should have {n_rows} of {n_features}{of_them}: "
            f"get it again from {source['url']}."
        )
    parts = [_sparse(part) if part.ndim == 2 else part.astype(np.int8) for part in (X, y, *test)]
    return Dataset(name, *parts)


def corpus(name: str) -> "Corpus":
    """Open a corpus, such as ``reuters21578``, without fetching it; raise MissingData if it is not on disk."""
    if sentence := missing(name):
        raise MissingData(sentence)
    return open_corpus(name, download=False)


def missing(name: str) -> str | None:
    """Return a sentence that says which file of a data set or corpus is missing, and where to put it; else None."""
    if not is_shipped(name):
        try:
            _paths(name)
        except MissingData as error:
            return str(error)
        return None
    described = card(name)
    if fetch.locate_corpus(described) is not None:
        return None
    remedy = f"`textcat corpora fetch {name}` downloads it. Or put" if described.urls else f"{described.obtain} Put"
    return f"The corpus {name} is not here. {remedy} {described.files[0]} into {_places('TEXTCAT_CORPORA', 'corpora')}."


def folders() -> list[Path]:
    """Return the folders in which data sets are looked for, in order; they need not exist."""
    named = os.environ.get("TEXTCAT_DATASETS")
    caches = [cache.with_name("datasets") for cache in fetch.cache_folders()]
    return [expanded(named), *caches] if named else caches


def _find(file: str) -> Path | None:
    places = (folder / name for folder in folders() for name in (file, Path(file).name))
    packed = (path.with_name(path.name + packing) for path in places for packing in _PACKINGS)
    return next((path for path in packed if path.is_file()), None)


def _paths(name: str) -> list[Path]:
    if name not in DATASET_SOURCES:
        raise TextcatError(
            f"There is no data set {name!r}; there are {', '.join(DATASET_SOURCES)}: choose one of these."
        )
    source, paths = DATASET_SOURCES[name], []
    for file in source["files"]:
        if name == "usps" and (packed := _find(_USPS_PACKED)):
            return [packed]
        path = _find(file)
        if path is None:
            raise MissingData(
                f"The data set {name} needs the file {Path(file).name}: put it, from {source['url']}, into "
                f"{_places('TEXTCAT_DATASETS', 'datasets')}."
            )
        paths.append(path)
    return paths


def _places(variable: str, cached: str) -> str:
    """Return the places for a file in words: the folder that a variable names, and one beside the cached corpora."""
    caches = [_at_home(cache.with_name(cached)) for cache in fetch.cache_folders()]
    return " or into ".join([f"the folder that the variable {variable} names", *caches])


def _at_home(folder: Path) -> str:
    """Return a path with ``~`` in place of the user's home, so that pages for others do not show the home."""
    with suppress(RuntimeError, ValueError):  # there is no home, or the folder is elsewhere
        return f"~/{folder.relative_to(Path.home()).as_posix()}"
    return str(folder)


def _unpacked(path: Path) -> bytes:
    with _PACKINGS.get(path.suffix, open)(path, "rb") as file:
        return file.read()


def _sparse(X: Any) -> sp.csr_array:
    rows = sp.csr_array(X, dtype=np.float64)
    rows.eliminate_zeros()
    rows.sort_indices()
    rows.indices, rows.indptr = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
    return rows


def _fields(data: bytes, between: str = ",") -> list[list[str]]:
    """Return the fields of each line that is not blank, separated by `between`; "" means any white space."""
    return [line.split(between or None) for line in data.decode("ascii").splitlines() if line.strip()]


def _signs(labels: Iterable[str], positive: str, negative: str) -> np.ndarray:
    return np.array([{positive: 1, negative: -1}[label] for label in labels])


def _read_table(
    data: bytes, label: int, signs: tuple[str, str], between: str = ",", coded: dict[str, int] | None = None
) -> Rows:
    """Read a table with a row per line; `label` is the position of the field that holds the label.

    `signs` are the label of positive and of negative rows. Other fields are numbers, and a line with a "?" is left out.
    If `coded` is given, the fields are codes, and `coded` has a number for each code.
    """
    rows = [row for row in _fields(data, between) if coded or "?" not in row]
    y = _signs([row.pop(label) for row in rows], *signs)
    return np.array([[coded[cell] if coded else float(cell) for cell in row] for row in rows]), y


def _read_sonar(mines: bytes, rocks: bytes) -> Rows:
    """Read the "aspect-angle dependent" training half of the sonar data, whose rows are marked with a star."""
    marked = [re.findall(rb"^\*C[MR]\d+:\s*\{([^}]*)\}", text, re.MULTILINE) for text in (mines, rocks)]
    X = [list(map(float, row.split())) for rows in marked for row in rows]
    return np.array(X), np.repeat([1, -1], list(map(len, marked)))


def _read_wbc(data: bytes, left_out: Iterable[int] = ()) -> Rows:
    X, y = _read_table(data, -1, ("4", "2"))
    kept = np.delete(np.arange(len(y)), [row - 1 for row in left_out])
    return X[kept, 1:], y[kept]


def _read_mushroom(data: bytes, values: Sequence[str]) -> Rows:
    from sklearn.preprocessing import OneHotEncoder

    rows = [row for row in _fields(data) if "?" not in row]
    X = OneHotEncoder(categories=list(map(list, values))).fit_transform([row[1:] for row in rows])
    return X, _signs((row[0] for row in rows), "e", "p")


def _read_libsvm(data: bytes, n_features: int) -> Rows:
    from sklearn.datasets import load_svmlight_file

    return load_svmlight_file(io.BytesIO(data), n_features=n_features, dtype=np.float64, zero_based=False)


def _read_covertype(data: bytes) -> Rows:
    table = np.loadtxt(io.BytesIO(data), delimiter=",", dtype=np.float64)
    return table[:, :-1] * 0.001, np.where(table[:, -1] == 1, 1, -1)


def _read_lyrl(vectors: bytes, qrels: bytes, topic: str) -> Rows:
    """Read vectors and topics in the format of Lewis et al. (2004); rows that have the topic are labelled +1.

    A line of `vectors` is "did  fid:weight …", and a line of `qrels` is "topic did 1".
    """
    rows = (line.partition(" ") for line in vectors.decode("ascii").splitlines() if line.strip())
    ids, _, lines = zip(*rows, strict=True)
    X, _ = _read_libsvm("".join(f"0 {line}\n" for line in lines).encode("ascii"), 47236)
    relevant = {row[1] for row in _fields(qrels, "") if row[0] == topic}
    return X, np.array([1 if name in relevant else -1 for name in ids])


def _read_usps(*files: bytes) -> tuple[Any, ...]:
    """Read the training and the test part of USPS from libsvm's two files or from one ``.npz`` file.

    Pixels are in [-1, 1], and labels are the digits.
    """
    if len(files) == 2:
        parts = [_read_libsvm(file, 256) for file in files]
        return tuple(array for X, y in parts for array in (X, y - 1))  # their labels are the digits + 1
    with np.load(io.BytesIO(files[0])) as arrays:
        x, y, x_test, y_test = (arrays[name] for name in ("train_x", "train_y", "test_x", "test_y"))
    return 2.0 * x.astype(np.float64) - 1, y, 2.0 * x_test.astype(np.float64) - 1, y_test
