"""The papers' data sets: files that the user has → rows and labels, as the papers use them."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from textcat.corpus import catalogue
from textcat.documents import Corpus
from textcat.errors import TextcatError

_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
_LYRL = "https://jmlr.csail.mit.edu/papers/volume5/lewis04a"
_PACKINGS: dict[str, Callable[..., Any]] = {"": open, ".bz2": bz2.open, ".gz": gzip.open}

# Platt's subsets: how many rows, and how many of them positive where the file could be looked at.
_ADULT = {1605: 395, 2265: None, 3185: None, 4781: None, 6414: None, 11220: None, 16100: None, 22696: 5506, 32561: 7841}
_WEB = {2477: 72, 3470: None, 4912: None, 7366: None, 9888: None, 17188: None, 24692: None, 49749: 1479}

_WITHOUT_11 = (2, 4, 191, 217, 227, 245, 252, 286, 307, 420, 475)  # counted from 1 (Tsampouka & Shawe-Taylor 2007)

# The values that agaricus-lepiota.names gives for each of the 22 attributes, '?' left out: 125 in all. Some occur in no
# row; their columns are empty.
_MUSHROOM = [
    *["bcxfks", "fgys", "nbcgrpuewy", "tf", "alcyfmnps", "adfn", "cwd", "bn", "knbhgropuewy", "et", "bcuezr", "fyks"],
    *["fyks", "nbcgopewy", "nbcgopewy", "pu", "nowy", "not", "ceflnpsz", "knbhrouwy", "acnsvy", "glmpuwd"],
]


class MissingData(TextcatError):  # noqa: N818 - it is data that is missing
    """A file of a data set that is in none of the folders where it may be."""


@dataclass(frozen=True, eq=False)
class _Dataset:
    """Rows with labels."""

    name: str
    X: sp.csr_array  # float64, rows in the order of the file; no zero is stored, and indices have 32 bits
    y: np.ndarray  # int8, +1 or -1; for USPS the digit
    X_test: sp.csr_array | None = None  # of the test part, where the data set has one
    y_test: np.ndarray | None = None


Rows = tuple[Any, np.ndarray]  # rows as dense or sparse array, labels


@dataclass(frozen=True)
class _Source:
    """What a data set is made of, and what it must come out as."""

    files: tuple[str, ...]
    url: str
    read: Callable[..., Rows]  # takes the files' bytes
    shape: tuple[int, int]
    positives: int | None


def names() -> list[str]:
    """Return the names that `load` knows, in the order of the papers."""
    return [*_SOURCES, "usps"]


def load(name: str) -> _Dataset:
    """Read a data set.

    It is looked for in the folder that the environment variable ``TEXTCAT_DATASETS`` names, then in the user's cache;
    in either its files may lie in a folder ``uci``, ``libsvm``, ``usps``, ``covertype`` or ``rcv1`` or directly, plain
    or packed (``.bz2``, ``.gz``).

    Parameters
    ----------
    name : str
        One of `names`. ``adult`` and ``web`` are the whole sets, ``adult-1605`` one of Platt's subsets.

    Raises
    ------
    MissingData
        If a file is in neither folder.
    TextcatError
        If there is no such data set, or a file is not what it should be.
    """
    if name == "usps":
        return _load_usps()
    source = _source(name)
    paths = [_path(name, file, source.url) for file in source.files]
    try:
        X, y = source.read(*map(_unpacked, paths))
    except (ValueError, KeyError, IndexError, EOFError, OSError) as error:
        raise TextcatError(
            f"{paths[0]} is damaged or no file of {name} ({error}): get it anew from {source.url}"
        ) from (error)
    dataset = _Dataset(name, _rows(X), y.astype(np.int8))
    _check(dataset, paths[0], source.shape, source.positives)
    return dataset


def corpus(name: str) -> Corpus:
    """Open a corpus, such as ``reuters21578``, without fetching it.

    Raises
    ------
    MissingData
        If it is not on disk.
    """
    if catalogue.locate(catalogue.card(name)) is None:
        raise MissingData(_missing_corpus(name))
    return catalogue.open_corpus(name, download=False)


def missing(name: str) -> str | None:
    """Return in a sentence what is missing of a data set or corpus, and where it may be put; None if all is there."""
    if name not in names() and name in catalogue.cards():
        return None if catalogue.locate(catalogue.card(name)) else _missing_corpus(name)
    try:
        if name == "usps":
            _usps_paths()
        else:
            for file in _source(name).files:
                _path(name, file, _source(name).url)
    except MissingData as error:
        return str(error)
    return None


def folders() -> list[Path]:
    """Return the folders in which data sets are looked for, in order; they need not exist."""
    named = os.environ.get("TEXTCAT_DATASETS")
    cache = catalogue.cache_folder().with_name("datasets")
    return [Path(named).expanduser(), cache] if named else [cache]


# --- finding ---------------------------------------------------------------------------------------------------------


def _source(name: str) -> _Source:
    if name not in _SOURCES:
        raise TextcatError(f"There is no data set {name!r}; there are {', '.join(names())}.")
    return _SOURCES[name]


def _find(file: str) -> Path | None:
    places = (folder / place for folder in folders() for place in (file, Path(file).name))
    packed = (place.with_name(place.name + packing) for place in places for packing in _PACKINGS)
    return next((path for path in packed if path.is_file()), None)


def _path(name: str, file: str, url: str) -> Path:
    path = _find(file)
    if path is None:
        raise MissingData(_missing_file(name, Path(file).name, url))
    return path


def _missing_file(name: str, file: str, url: str) -> str:
    return (
        f"The data set {name} needs the file {file}: put it, from {url}, into the folder that the variable "
        f"TEXTCAT_DATASETS names or into {_at_home(folders()[-1])}."
    )


def _missing_corpus(name: str) -> str:
    card = catalogue.card(name)
    how = f"`textcat corpora fetch {name}` downloads it. Or put" if card.urls else f"{card.obtain} Put"
    return (
        f"The corpus {name} is not here. {how} {card.files[0]} into the folder that the variable TEXTCAT_CORPORA names "
        f"or into {_at_home(catalogue.cache_folder())}."
    )


def _at_home(folder: Path) -> str:
    """Write ``~`` for the user's home: pages that others read say where to put what is missing."""
    return f"~/{folder.relative_to(Path.home()).as_posix()}" if folder.is_relative_to(Path.home()) else str(folder)


def _unpacked(path: Path) -> bytes:
    with _PACKINGS.get(path.suffix, open)(path, "rb") as file:
        return file.read()


def _rows(X: Any) -> sp.csr_array:
    rows = sp.csr_array(X, dtype=np.float64)
    rows.eliminate_zeros()
    rows.sort_indices()
    rows.indices, rows.indptr = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
    return rows


def _check(dataset: _Dataset, path: Path, shape: tuple[int, int], positives: int | None) -> None:
    (n_rows, n_features), n_positives = dataset.X.shape, int(np.sum(dataset.y > 0))
    if (n_rows, n_features) != shape or positives not in (None, n_positives):
        raise TextcatError(
            f"{path} is not the papers' {dataset.name}: it has {n_rows} rows of {n_features} features, "
            f"{n_positives} of them positive, and should have {shape[0]} of {shape[1]}"
            f"{'' if positives is None else f', {positives} of them positive'}."
        )


# --- reading ---------------------------------------------------------------------------------------------------------


def _fields(data: bytes, between: str | None = ",") -> list[list[str]]:
    return [line.split(between) for line in data.decode("ascii").splitlines() if line.strip()]


def _signs(labels: Iterable[str], positive: str, negative: str) -> np.ndarray:
    return np.array([{positive: 1, negative: -1}[label] for label in labels])


def _coded(rows: Iterable[Sequence[str]], codes: str) -> np.ndarray:
    """Turn the first of the codes into 1, the second into -1, the third into 0."""
    value = dict(zip(codes, (1, -1, 0), strict=True))
    return np.array([[value[cell] for cell in row] for row in rows])


def _read_sonar(mines: bytes, rocks: bytes) -> Rows:
    parts = [_marked(mines), _marked(rocks)]
    return np.vstack(parts), np.repeat([1, -1], list(map(len, parts)))


def _marked(text: bytes) -> np.ndarray:
    """Return the rows of the "aspect-angle dependent" training half, which are marked with a star."""
    rows = re.findall(rb"^\*C[MR]\d+:\s*\{([^}]*)\}", text, re.MULTILINE)
    return np.array([list(map(float, row.split())) for row in rows])


def _read_wbc(data: bytes) -> Rows:
    rows = [row for row in _fields(data) if "?" not in row]
    return np.array([row[1:-1] for row in rows], float), _signs((row[-1] for row in rows), "4", "2")


def _read_wbc_11(data: bytes) -> Rows:
    X, y = _read_wbc(data)
    kept = np.delete(np.arange(len(y)), np.array(_WITHOUT_11) - 1)
    return X[kept], y[kept]


def _read_ionosphere(data: bytes) -> Rows:
    rows = _fields(data)
    return np.array([row[:-1] for row in rows], float), _signs((row[-1] for row in rows), "g", "b")


def _read_votes(data: bytes) -> Rows:
    rows = _fields(data)
    return _coded((row[1:] for row in rows), "yn?"), _signs((row[0] for row in rows), "democrat", "republican")


def _read_tic_tac_toe(data: bytes) -> Rows:
    rows = _fields(data)
    return _coded((row[:-1] for row in rows), "xob"), _signs((row[-1] for row in rows), "positive", "negative")


def _read_german(data: bytes) -> Rows:
    rows = _fields(data, None)
    return np.array([row[:-1] for row in rows], float), _signs((row[-1] for row in rows), "1", "2")


def _read_mushroom(data: bytes) -> Rows:
    rows = [row for row in _fields(data) if "?" not in row]
    first = np.cumsum([0, *map(len, _MUSHROOM)])
    columns = [[first[k] + values.index(row[k + 1]) for k, values in enumerate(_MUSHROOM)] for row in rows]
    X = np.zeros((len(rows), first[-1]))
    np.put_along_axis(X, np.array(columns), 1.0, axis=1)
    return X, _signs((row[0] for row in rows), "e", "p")


def _read_libsvm(data: bytes, n_features: int) -> Rows:
    from sklearn.datasets import load_svmlight_file

    return load_svmlight_file(io.BytesIO(data), n_features=n_features, dtype=np.float64, zero_based=False)


def _read_covertype(data: bytes) -> Rows:
    table = np.loadtxt(io.BytesIO(data), delimiter=",", dtype=np.float64)
    return table[:, :-1] * 0.001, np.where(table[:, -1] == 1, 1, -1)


def _read_lyrl(vectors: bytes, qrels: bytes, topic: str) -> Rows:
    """Read vectors and topics as Lewis et al. (2004) give them: "did  fid:weight …" and "topic did 1"."""
    ids, _, lines = zip(
        *(line.partition(" ") for line in vectors.decode("ascii").splitlines() if line.strip()), strict=True
    )
    X, _ = _read_libsvm("".join(f"0 {line}\n" for line in lines).encode("ascii"), 47236)
    relevant = {row[1] for row in _fields(qrels, None) if row[0] == topic}
    return X, np.array([1 if name in relevant else -1 for name in ids])


# --- USPS: two parts, ten classes ------------------------------------------------------------------------------------

_USPS_SHAPES = ((7291, 256), (2007, 256))


def _usps_paths() -> list[Path]:
    packed = _find("usps/usps.npz")
    if packed is not None:
        return [packed]
    return [_path("usps", f"usps/{file}", f"{_LIBSVM}/multiclass.html#usps") for file in ("usps", "usps.t")]


def _load_usps() -> _Dataset:
    """Read USPS from ``usps.npz`` (train_x, train_y, test_x, test_y; pixels in [0, 1]), or from libsvm's two files."""
    paths = _usps_paths()
    try:
        (X, y), (X_test, y_test) = _usps_parts(paths)
    except (ValueError, KeyError, EOFError, OSError) as error:
        raise TextcatError(f"{paths[0]} is damaged or no file of USPS ({error}).") from error
    dataset = _Dataset("usps", _rows(X), y.astype(np.int8), _rows(X_test), y_test.astype(np.int8))
    if (X.shape, X_test.shape) != _USPS_SHAPES or sorted(set(dataset.y)) != list(range(10)):
        raise TextcatError(
            f"{paths[0]} is not the papers' USPS: it has {X.shape[0]} and {X_test.shape[0]} rows of {X.shape[1]} "
            "pixels, and should have 7291 and 2007 of 256, labelled 0 to 9."
        )
    return dataset


def _usps_parts(paths: Sequence[Path]) -> list[Rows]:
    if len(paths) == 2:
        parts = [_read_libsvm(_unpacked(path), 256) for path in paths]
        return [(X, y - 1) for X, y in parts]  # their labels are the digits + 1, their pixels in [-1, 1]
    with np.load(paths[0]) as arrays:
        return [(2.0 * arrays[f"{part}_x"].astype(np.float64) - 1, arrays[f"{part}_y"]) for part in ("train", "test")]


# --- what there is ---------------------------------------------------------------------------------------------------


def _uci(folder: str, files: str, read: Callable[..., Rows], shape: tuple[int, int], positives: int) -> _Source:
    return _Source(tuple(f"uci/{file}" for file in files.split()), f"{_UCI}/{folder}", read, shape, positives)


def _platt(name: str, letter: str, n_features: int, sizes: dict[int, int | None]) -> dict[str, _Source]:
    def read(data: bytes) -> Rows:
        return _read_libsvm(data, n_features)

    sources = {}
    for number, (size, positives) in enumerate(sizes.items(), start=1):
        file = f"{letter}{number}a"
        source = _Source((f"libsvm/{file}",), f"{_LIBSVM}/binary.html#{file}", read, (size, n_features), positives)
        sources[name if number == len(sizes) else f"{name}-{size}"] = source
    return sources


def _lyrl(topic: str) -> _Source:
    def read(vectors: bytes, qrels: bytes) -> Rows:
        return _read_lyrl(vectors, qrels, topic)

    files = ("rcv1/lyrl2004_vectors_test_pt0.dat", "rcv1/rcv1-v2.topics.qrels")
    return _Source(files, f"{_LYRL}/lyrl2004_rcv1v2_README.htm", read, (199328, 47236), None)


_SOURCES = {
    "sonar": _uci("undocumented/connectionist-bench/sonar/", "sonar.mines sonar.rocks", _read_sonar, (104, 60), 49),
    "wbc": _uci("breast-cancer-wisconsin/", "breast-cancer-wisconsin.data", _read_wbc, (683, 9), 239),
    "wbc-11": _uci("breast-cancer-wisconsin/", "breast-cancer-wisconsin.data", _read_wbc_11, (672, 9), 237),
    "ionosphere": _uci("ionosphere/", "ionosphere.data", _read_ionosphere, (351, 34), 225),
    "votes": _uci("voting-records/", "house-votes-84.data", _read_votes, (435, 16), 267),
    "tic-tac-toe": _uci("tic-tac-toe/", "tic-tac-toe.data", _read_tic_tac_toe, (958, 9), 626),
    "german": _uci("statlog/german/", "german.data-numeric", _read_german, (1000, 24), 700),
    "mushroom": _uci("mushroom/", "agaricus-lepiota.data", _read_mushroom, (5644, 125), 3488),
    **_platt("adult", "a", 123, _ADULT),
    **_platt("web", "w", 300, _WEB),
    "covertype": _Source(
        ("covertype/covtype.data",), f"{_UCI}/covtype/covtype.data.gz", _read_covertype, (581012, 54), 211840
    ),
    "rcv1-c11": _lyrl("C11"),
    "rcv1-ccat": _lyrl("CCAT"),
}
