"""Build and read the index of a pool: vocabulary, ids, positions of texts, near-duplicates, document vectors."""

import json
import logging
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from textcat.base.disk import sha256_of_file
from textcat.base.errors import TextcatError
from textcat.base.folders import FolderFormat, OpenFolder
from textcat.base.progress import Advance, Stages, advance_over
from textcat.corpus.documents import Document
from textcat.duplicates.groups import AT_ONCE, NEAR, Assigned, Groups, first_positions, sketch_texts
from textcat.features.rows import Rows
from textcat.features.store import open_rows, write_rows
from textcat.features.tfidf import TfIdf
from textcat.features.zones import Documents, Zoned, zones_of_document
from textcat.recipes.recipe import Recipe
from textcat.teaching.pool.duplicates import same_works
from textcat.teaching.pool.identity import Identity, identity_of
from textcat.teaching.pool.pieces import Pieces, for_many
from textcat.teaching.pool.texts import PIECES, Archive, Shard

#: In a larger pool, rows have words only, because all other features would take ten times the memory and time.
ALL_UP_TO = 30_000
ROWS, INDEX = "rows", "index"
_ARRAYS = ("idf", "ends", "id_ends", "groups")
_TYPES = [np.dtype(name) for name in ("float32", "float64", "int32", "int64")]
_TERMS, _IDS = "terms.json", "ids.txt"
_ROWS_PER_BLOCK = 16384
_THREADS = 2  # number of threads that compute rows while earlier rows are written

log = logging.getLogger(__name__)


class PoolError(TextcatError, ValueError):
    """Raised if a folder is not a pool or is damaged, or if no pool can be made of the documents."""


@dataclass(frozen=True, kw_only=True)
class PoolManifest:
    """The entries of the manifest of a pool's index."""

    format: int = 0
    recipe: Recipe
    documents: int
    rejected: int
    average_lengths: dict[str, float]
    rows: str  # checksum of the rows' folder
    shards: list[Shard]
    files: dict[str, str]  # checksums of the files
    sum: str = ""  # checksum of the manifest's file, which identifies the pool


FORMAT = FolderFormat(
    name="pool",
    content="the pool",
    negation="not a pool",
    error=PoolError,
    manifest=PoolManifest,
    version=7,
    files=frozenset({_TERMS, _IDS, *(f"{name}.npy" for name in _ARRAYS)}),
    checksum="sum",
    origin="`textcat teach ARCHIVE` makes one.",
    remedy="remove its folder, and give `textcat teach` the archive again",
)


class Index(NamedTuple):
    """The contents of a pool's index."""

    manifest: PoolManifest
    features: TfIdf
    rows: csr_matrix
    ids: "Strings"
    groups: NDArray[np.int32]
    ends: NDArray[np.int64]  # the end of each document's line, in bytes from the start of the first shard


class _PoolFeatures(TfIdf):
    """tf-idf features that skip the preparation of `transform`, which takes about a second.

    The preparation pays only if many texts are transformed.
    """

    def known_terms(self) -> None:
        return None


class Strings(Sequence[str]):
    """A sequence of strings, stored one after the other in a memory-mapped file."""

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
        """Return the position of the first string that equals a value; raise ValueError if there is no such string.

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
    """Return the recipe by which to build a pool of n documents.

    For more than 30,000 documents, this is a copy with fewer kinds of terms (see `for_many`).
    """
    return recipe if n_documents <= ALL_UP_TO else for_many(recipe)


def rows_and_groups(
    documents: Documents, recipe: Recipe, identities: Sequence[Identity | None]
) -> tuple[TfIdf, csr_matrix, NDArray[np.int32]]:
    """Fit features to documents in memory; return the features, the documents' vectors, and near-duplicate groups.

    `identities` has, for each document, the facts that identify its work (DOI, title and so on), or None. Reading
    `documents` may append to it; it is used only after the last document is read.
    """
    features, assigned = recipe.make_features(), list[Assigned]()
    remaining = iter(documents)
    with closing(Groups(NEAR)) as groups:

        def grouped() -> Iterator[str | Zoned]:
            while part := list(islice(remaining, AT_ONCE)):
                assigned.append(groups.add(sketch_texts(map(zones_of_document, part, count()))))
                yield from part

        counted = features.count(grouped())
    rows = features.fit_counted(counted).rows_of(counted)
    return features, rows, _works(features, rows, first_positions(assigned), identities)


def _works(
    features: TfIdf, rows: csr_matrix, firsts: NDArray[np.int64], identities: Sequence[Identity | None]
) -> NDArray[np.int32]:
    """Return groups of records of the same work, starting from groups of texts with nearly the same words."""
    if not any(identities):
        return firsts.astype(np.int32)
    # All columns except n-grams of terms, and except a zone's own copies of terms that also have a shared column.
    counted = single_terms(features.listed_names(), features.zone_prefixes(), of_zones=features.zone_terms is True)

    def are_similar(i: int, j: int) -> bool:
        """Return whether the documents at positions i and j share at least half of the terms that either has."""
        terms_i, terms_j = (rows.indices[rows.indptr[k] : rows.indptr[k + 1]] for k in (i, j))
        terms_i, terms_j = terms_i[counted[terms_i]], terms_j[counted[terms_j]]
        return 2 * len(np.intersect1d(terms_i, terms_j)) >= len(np.union1d(terms_i, terms_j))

    return same_works(firsts, identities, are_similar)


def single_terms(names: Sequence[str], prefixes: tuple[str, ...], *, of_zones: bool) -> NDArray[np.bool_]:
    """Return a mask of the names of columns that are no n-grams of terms and begin with none of the prefixes.

    An n-gram of terms has a space inside, and an n-gram of characters may have one at either end. If `of_zones`, each
    name begins with a zone and a colon, which are left out first.
    """
    of_terms = (name.partition(":")[2] for name in names) if of_zones else names
    singles = (" " not in name.strip("~ ") and not name.startswith(prefixes) for name in of_terms)
    return np.fromiter(singles, np.bool_, len(names))


class _IndexContents(NamedTuple):
    """The contents of a pool's index, computed from its texts; the document vectors are stored apart."""

    features: TfIdf
    groups: NDArray[np.int32]
    lines: NDArray[Any]  # number of bytes of each document's line
    id_sizes: NDArray[Any]
    id_bytes: bytes


def write_index(archive: Archive, recipe: Recipe, stages: Stages) -> None:
    """Compute and write the vectors of an archive's documents, then the index; each folder is written atomically."""
    folder, made = archive.folder, None
    recipe_before, recipe = recipe, recipe_for(recipe, archive.n_documents)
    if recipe != recipe_before:
        n = f"{archive.n_documents:,} documents, more than {ALL_UP_TO:,}"
        log.warning("The archive has %s, so rows have only words that at least two of them contain.", n)
    if recipe == for_many(recipe) and (folder / PIECES).is_dir():
        try:
            made = _from_pieces(archive, recipe, stages)
        except (OSError, ValueError) as error:
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
    with FORMAT.replacing(folder / INDEX) as sibling:
        for name, array in arrays.items():
            np.save(sibling / f"{name}.npy", array, allow_pickle=False)
        (sibling / _IDS).write_bytes(id_bytes)
        (sibling / _TERMS).write_bytes(_as_json(features.listed_names()))
        manifest = PoolManifest(
            recipe=replace(recipe.complete(), name=recipe.name),
            documents=archive.n_documents,
            rejected=archive.n_rejected,
            average_lengths=features.average_lengths_,
            rows=open_rows(folder / ROWS, verify=False).checksum,
            shards=archive.shards,
            files={path.name: sha256_of_file(path) for path in sorted(sibling.iterdir())},
        )
        FORMAT.write_manifest(sibling, manifest)


def _as_json(terms: list[str]) -> bytes:
    """Return terms as JSON: by orjson, which is several times as fast, unless a term has a lone surrogate."""
    try:
        return orjson.dumps(terms)
    except TypeError:
        return json.dumps(terms).encode()


def from_texts(archive: Archive, recipe: Recipe, stages: Stages) -> _IndexContents:
    """Count the terms of an archive's texts, write their feature vectors, and return the contents of the index.

    The counts of all texts are held in memory, unlike the texts. `stages` shows the progress.
    """
    lines: list[int] = []
    ids: list[bytes] = []
    identities: list[Identity | None] = []

    def documents() -> Iterator[Document]:
        for line in archive.lines():
            fields = orjson.loads(line)
            lines.append(len(line))
            ids.append(fields["id"].encode())
            identities.append(identity_of(fields["zones"], fields.get("fields")))
            yield Document("", fields["zones"])

    with stages.stage("weigh terms", archive.n_documents) as advance:
        features, rows, groups = rows_and_groups(advance_over(documents(), advance), recipe, identities)
        n = rows.shape[0]
        blocks = (rows[start : start + _ROWS_PER_BLOCK] for start in range(0, max(n, 1), _ROWS_PER_BLOCK))
        write_rows(archive.folder / ROWS, blocks)
    return _IndexContents(features, groups, np.array(lines), np.array([len(id) for id in ids]), b"".join(ids))


def _from_pieces(archive: Archive, recipe: Recipe, stages: Stages) -> _IndexContents:
    """Compute document vectors from pieces (batches of term counts), two at a time in parallel, and write them.

    Return the contents of the index.
    """
    pieces, features = Pieces(archive.folder / PIECES, archive.n_documents), recipe.make_features()
    with stages.stage("weigh terms", 2 * archive.n_documents) as advance:
        with closing(Groups(NEAR)) as groups:
            facts = pieces.fit(features, groups, advance)
        with ThreadPoolExecutor(_THREADS) as threads:
            blocks = _computed_ahead(threads, lambda k: pieces.rows(features, k), len(pieces))
            stored = write_rows(archive.folder / ROWS, map(features.matrix, _advancing(blocks, advance)))
    with stages.stage("near-duplicates"):
        works = _works(features, stored[:], facts.firsts, [*map(_identity_in, archive.lines())])
    return _IndexContents(features, works, facts.lines, facts.id_sizes, facts.id_bytes.tobytes())


def _identity_in(line: bytes) -> Identity | None:
    if b'"fields":' not in line:
        return None
    fields = orjson.loads(line)
    return identity_of(fields["zones"], fields.get("fields"))


def _computed_ahead(threads: ThreadPoolExecutor, function: Callable[[int], Rows], n: int) -> Iterator[Rows]:
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
    """Memory-map the index of a pool; raise PoolError if a file is missing or damaged.

    If `verify`, the checksums of all files are compared; otherwise only those of the files that opening reads anyway.
    """
    if not (folder / INDEX).is_dir():
        raise PoolError(f"{folder} is not a pool, or is unfinished: give `textcat teach` the archive again.")
    with FORMAT.open(folder, inside=INDEX) as pool, pool.raise_read_errors():
        return _read_index(pool, verify=verify)


def _check_shards(folder: Path, shards: Sequence[Shard], *, verify: bool) -> None:
    """Raise PoolError if a shard (a file of texts) is missing or has another size than recorded.

    If `verify`, also raise it if a shard has another checksum.
    """
    for shard in shards:
        path = folder / shard.name
        if not path.is_file() or path.stat().st_size != shard.n_bytes:
            raise FORMAT.damaged(folder, f"{shard.name} is missing or not as it was written")
    if verify:
        with ThreadPoolExecutor(_THREADS) as threads:
            sums = threads.map(sha256_of_file, [folder / shard.name for shard in shards])
            for shard, checksum in zip(shards, sums, strict=True):
                if checksum != shard.sha256:
                    raise FORMAT.damaged(folder, f"{shard.name} is not as it was written")


def _check_arrays(arrays: Mapping[str, NDArray[Any]], n: int, n_id_bytes: int, n_text_bytes: int) -> None:
    """Raise ValueError if arrays do not have an entry per document, or point outside the ids, texts or documents."""
    for name, end in (("ends", n_text_bytes), ("id_ends", n_id_bytes)):
        ends = arrays[name]
        if ends.shape != (n,) or ends[-1] != end or (np.diff(ends, prepend=0) < 0).any():
            raise ValueError(f"{name}.npy does not end at {end:,}")
    groups, positions = arrays["groups"], np.arange(n)
    if groups.shape != (n,) or (groups < 0).any() or (groups > positions).any() or (groups[groups] != groups).any():
        raise ValueError("groups.npy has other documents")


def _read_index(pool: OpenFolder[PoolManifest], *, verify: bool) -> Index:
    folder, manifest, ids = pool.folder, pool.manifest, pool.files[_IDS]
    # Parsed files are always verified; memory-mapped files, like texts and rows, only on request.
    unread = () if verify else frozenset(manifest.files) - {_TERMS}
    pool.check(manifest.files, unread=unread)
    # As plain arrays, because single entries of numpy memory maps are slow to access.
    arrays = {name: np.asarray(pool.array(name, _TYPES)) for name in _ARRAYS}
    data = np.zeros(0, np.uint8)
    if os.fstat(ids.fileno()).st_size:
        data = np.asarray(np.memmap(ids, np.uint8, "r"))
    _check_shards(folder, manifest.shards, verify=verify)
    stored = open_rows(folder / ROWS, verify=verify)
    n, terms, settings = manifest.documents, pool.json(_TERMS), manifest.recipe.feature_settings()
    _check_arrays(arrays, n, len(data), sum(shard.n_bytes for shard in manifest.shards))
    if stored.checksum != manifest.rows or stored.shape != (n, len(arrays["idf"])):
        raise pool.damaged("its files do not fit together")
    features = _PoolFeatures.restore(terms, arrays["idf"], n, manifest.average_lengths, **settings)
    return Index(manifest, features, stored[:], Strings(data, arrays["id_ends"]), arrays["groups"], arrays["ends"])
