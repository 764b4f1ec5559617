"""Texts → the index of a pool: rows, vocabulary, ids, positions of the texts, groups of near-duplicates."""

import json
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
import orjson
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from textcat.documents import Document
from textcat.errors import TextcatError
from textcat.features.rows import Rows
from textcat.features.store import StoreError, open_rows, write_rows
from textcat.features.tfidf import TfIdf
from textcat.features.zones import Documents
from textcat.folders import FolderFormat, sha256_of_file
from textcat.former_names import todays_recipe
from textcat.progress import Advance, Stages, advance_over
from textcat.recipe import Recipe
from textcat.teaching.pool._duplicates import distinct_terms
from textcat.teaching.pool.duplicates import near_duplicates
from textcat.teaching.pool.pieces import Pieces, for_many
from textcat.teaching.pool.texts import PIECES, Archive, Shard

#: In a pool with more documents the rows have words only: all other features would take ten times the memory and time.
ALL_UP_TO = 30_000
ROWS, INDEX = "rows", "index"
_ARRAYS = ("idf", "ends", "id_ends", "groups")
_TERMS, _IDS = "terms.json", "ids.txt"
_ROWS_PER_BLOCK = 16384
_THREADS = 2  # that compute rows while earlier ones are written

log = logging.getLogger(__name__)


class PoolError(TextcatError, ValueError):
    """A folder that is not a pool, or is damaged; or documents that no pool can be made of."""


FORMAT = FolderFormat(
    name="pool",
    content="the pool",
    negation="not a pool",
    error=PoolError,
    version=1,
    files=frozenset({_TERMS, _IDS, *(f"{name}.npy" for name in _ARRAYS)}),
    checksum="sum",
    origin="`textcat teach ARCHIVE` makes one.",
    remedy="remove its folder, and give `textcat teach` the archive again",
)


class Index(NamedTuple):
    """The contents of a pool's index."""

    recipe: Recipe
    features: TfIdf
    rows: csr_matrix
    ids: "Strings"
    groups: NDArray[np.int32]
    ends: NDArray[np.int64]  # of the documents' lines in the shards, one behind the other
    shards: list[Shard]
    n_rejected: int
    sum: str


class _PoolFeatures(TfIdf):
    """Features that transform few short texts: they skip a preparation of a second, which only many texts repay."""

    def known_terms(self) -> None:
        return None


class Strings(Sequence[str]):
    """Strings in a memory-mapped file, one after the other."""

    def __init__(self, data: NDArray[np.uint8], ends: NDArray[np.int64]):
        self._data, self._ends = data, ends

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return [self[k] for k in range(*i.indices(len(self)))]
        k = range(len(self))[i]
        start = self._ends[k - 1] if k else 0
        return self._data[start : self._ends[k]].tobytes().decode()

    def __iter__(self) -> Iterator[str]:
        data, start = self._data.tobytes(), 0
        for end in self._ends.tolist():
            yield data[start:end].decode()
            start = end

    def index(self, value: str, start: int = 0, stop: int | None = None) -> int:
        """Return the position of the first string that equals a value; raise ValueError if none does.

        Strings of the same length are compared byte by byte, from the last, as ids differ most in their last bytes.
        """
        data, ends, wanted = np.asarray(self._data), np.asarray(self._ends), value.encode("utf-8", "surrogatepass")
        positions = np.flatnonzero(np.diff(ends, prepend=0) == len(wanted))
        for k in range(1, len(wanted) + 1):
            positions = positions[data[ends[positions] - k] == wanted[-k]]
        if not len(positions):
            raise ValueError(f"{value!r} is not in the list")
        return int(positions[0])


def recipe_for(recipe: Recipe, n_documents: int) -> Recipe:
    """Return the recipe for a number of documents; for many, its terms are single words of two documents or more."""
    return recipe if n_documents <= ALL_UP_TO else for_many(recipe)


def rows_and_groups(documents: Documents, recipe: Recipe) -> tuple[TfIdf, csr_matrix, NDArray[np.int32]]:
    """Fit features to documents in memory, and return them with the documents' rows and groups of near-duplicates."""
    features = recipe.make_features()
    counted = features.count(documents)
    rows = features.fit_counted(counted).rows_of(counted)
    parts, counts, _ = counted
    sizes = distinct_terms(parts.ends, counts.ends, counts.ids, parts.sources, len(counts.terms))
    return features, rows, _groups(features, rows, sizes)


def _groups(features: TfIdf, rows: csr_matrix, sizes: NDArray[np.int32]) -> NDArray[np.int32]:
    names = features.listed_names()
    # All columns except n-grams of terms, which have a space inside (n-grams of characters may have one at either end),
    # and except a zone's own columns of terms that also have a shared column.
    prefixes = features.zone_prefixes()
    bare = (name.partition(":")[2] if features.zone_terms is True else name for name in names)
    counted = np.fromiter((" " not in name.strip("~ ") and not name.startswith(prefixes) for name in bare), np.bool_)
    return near_duplicates(rows, sizes, counted, int((counted & (features.idf_ == 0)).sum()))


class _Made(NamedTuple):
    """Everything that is made from the texts of a pool, except its rows."""

    features: TfIdf
    groups: NDArray[np.int32]
    lines: NDArray[Any]  # how many bytes each document's line has
    id_sizes: NDArray[Any]
    id_bytes: bytes


def write_index(archive: Archive, recipe: Recipe, stages: Stages) -> None:
    """Write the rows of an archive's texts, and then the rest of the index; each is written atomically."""
    folder, made = archive.folder, None
    recipe_before, recipe = recipe, recipe_for(recipe, archive.n_documents)
    if recipe != recipe_before:
        n = f"{archive.n_documents:,} documents, more than {ALL_UP_TO:,}"
        log.warning("The archive has %s, so rows have only words that at least two of them contain.", n)
    if recipe == for_many(recipe) and (folder / PIECES).is_dir():
        try:
            made = _from_pieces(archive, recipe, stages)
        except (OSError, ValueError, BadZipFile) as error:
            if isinstance(error, TextcatError):
                raise
            log.warning("Terms are counted again, because their saved counts are damaged (%s)", error)
    features, groups, lines, id_sizes, id_bytes = made or from_texts(archive, recipe, stages)
    arrays: dict[str, NDArray[Any]] = {
        "idf": features.idf_,
        "ends": np.cumsum(lines, dtype=np.int64),
        "id_ends": np.cumsum(id_sizes, dtype=np.int64),
        "groups": groups,
    }
    terms = None if features.vocabulary_ is None else list(features.vocabulary_)  # None where columns are hashes
    with FORMAT.replacing(folder / INDEX) as sibling:
        for name, array in arrays.items():
            np.save(sibling / f"{name}.npy", array, allow_pickle=False)
        (sibling / _IDS).write_bytes(id_bytes)
        (sibling / _TERMS).write_text(json.dumps(terms), encoding="utf-8")
        entries = {
            "recipe": {"name": recipe.name, **recipe.stored()},
            "documents": archive.n_documents,
            "rejected": archive.n_rejected,
            "average_lengths": features.average_lengths_,
            "rows": open_rows(folder / ROWS, verify=False).checksum,
            "shards": [list(shard) for shard in archive.shards],
            "files": {path.name: sha256_of_file(path) for path in sorted(sibling.iterdir())},
        }
        FORMAT.write_manifest(sibling, entries)


def from_texts(archive: Archive, recipe: Recipe, stages: Stages) -> _Made:
    """Count all texts in memory, and write their rows."""
    lines: list[int] = []
    ids: list[bytes] = []

    def documents() -> Iterator[Document]:
        for line in archive.lines():
            fields = orjson.loads(line)
            lines.append(len(line))
            ids.append(fields["id"].encode())
            yield Document("", fields["zones"])

    with stages.stage("weigh terms", archive.n_documents) as advance:
        features, rows, groups = rows_and_groups(advance_over(documents(), advance), recipe)
        n = rows.shape[0]
        blocks = (rows[start : start + _ROWS_PER_BLOCK] for start in range(0, max(n, 1), _ROWS_PER_BLOCK))
        write_rows(archive.folder / ROWS, blocks)
    return _Made(features, groups, np.array(lines), np.array([len(id) for id in ids]), b"".join(ids))


def _from_pieces(archive: Archive, recipe: Recipe, stages: Stages) -> _Made:
    """Compute rows from pieces, several at a time, in parallel."""
    pieces, features = Pieces(archive.folder / PIECES, archive.n_documents), recipe.make_features()
    with stages.stage("weigh terms", 2 * archive.n_documents) as advance:
        facts = pieces.fit(features, advance)
        with ThreadPoolExecutor(_THREADS) as threads:
            blocks = _ahead(threads, lambda k: pieces.rows(features, k), len(pieces))
            stored = write_rows(archive.folder / ROWS, map(features.matrix, _advancing(blocks, advance)))
    with stages.stage("near-duplicates"):
        groups = _groups(features, stored[:], facts.sizes)
    return _Made(features, groups, facts.lines, facts.id_sizes, facts.id_bytes.tobytes())


def _ahead(threads: ThreadPoolExecutor, function: Callable[[int], Rows], n: int) -> Iterator[Rows]:
    """Yield the results of a function for 0 to n - 1, in this order, while threads compute the next results."""
    futures: deque[Future[Rows]] = deque()
    for k in range(n):
        futures.append(threads.submit(function, k))
        if len(futures) > _THREADS:
            yield futures.popleft().result()
    while futures:
        yield futures.popleft().result()


def _advancing(blocks: Iterable[Rows], advance: Advance) -> Iterator[Rows]:
    for block in blocks:
        yield block
        advance(len(block.indptr) - 1)


def read_index(folder: Path, *, verify: bool) -> Index:
    """Memory-map the index of a pool; raise PoolError if a file is missing or has changed."""
    if not (folder / INDEX).is_dir():
        raise PoolError(f"{folder} is not a pool, or is unfinished: give `textcat teach` the archive again.")
    with FORMAT.open(folder / INDEX) as (manifest, opened):
        try:
            return _read_index(folder, manifest, opened, verify=verify)
        except StoreError as error:
            raise _damaged(folder, str(error).rstrip(".")) from error
        except OSError as error:
            raise PoolError(f"Cannot read the pool {folder} ({error.strerror or error}): check the disk.") from error
        except PoolError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, TextcatError) as error:
            raise _damaged(folder, f"it cannot be read ({error})") from error


def _damaged(folder: Path, what: str) -> PoolError:
    return PoolError(f"The pool {folder} is damaged, {what}: {FORMAT.remedy}.")


def _read_index(folder: Path, manifest: dict[str, Any], opened: Mapping[str, Any], *, verify: bool) -> Index:
    for name, expected in manifest["files"].items():
        if name not in opened:
            raise _damaged(folder, f"{name} is missing")
        # Parsed files are always verified; memory-mapped ones, like texts and rows, only if asked for.
        if (verify or name == _TERMS) and sha256_of_file(opened[name]) != expected:
            raise _damaged(folder, f"{name} is not as it was written")
        opened[name].seek(0)
    # As plain arrays, because access to single entries of numpy's memory maps is slow.
    arrays = {name: np.asarray(np.load(folder / INDEX / f"{name}.npy", "r", allow_pickle=False)) for name in _ARRAYS}
    data = np.zeros(0, np.uint8)
    if arrays["id_ends"][-1]:
        data = np.asarray(np.memmap(folder / INDEX / _IDS, np.uint8, "r"))
    recipe, terms = Recipe(**todays_recipe(manifest["recipe"])), json.loads(opened[_TERMS].read())
    shards = [Shard(*shard) for shard in manifest["shards"]]
    for shard in shards:
        path = folder / shard.name
        if not path.is_file() or path.stat().st_size != shard.n_bytes:
            raise _damaged(folder, f"{shard.name} is missing or not as it was written")
        if verify and sha256_of_file(path) != shard.sha256:
            raise _damaged(folder, f"{shard.name} is not as it was written")
    stored = open_rows(folder / ROWS, verify=verify)
    n, lengths = manifest["documents"], {len(arrays[name]) for name in _ARRAYS[1:]}
    if stored.checksum != manifest["rows"] or lengths != {n} or len(stored) != n:
        raise _damaged(folder, "its files do not fit together")
    features = _PoolFeatures.restore(terms, arrays["idf"], n, manifest["average_lengths"], **recipe.feature_settings())
    facts = (arrays["groups"], arrays["ends"], shards, manifest["rejected"], manifest["sum"])
    return Index(recipe, features, stored[:], Strings(data, arrays["id_ends"]), *facts)
