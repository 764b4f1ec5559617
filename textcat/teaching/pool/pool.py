"""Build, open and read a pool: an archive's documents as feature vectors (rows), with ids, texts and near-duplicates.

The folder has the texts in shards of JSON Lines, ``part-00000.jsonl`` and so on, which other programs can read;
``_rejected.jsonl`` with the records that could not be read; a journal, from which an interrupted build resumes; and two
folders that are written last, each atomically: ``rows`` with the feature vectors, which are memory-mapped, and
``index`` with the vocabulary, ids, positions of the texts, groups of near-duplicates and a manifest. If the pool was
embedded, ``index`` also has ``embeddings.npz``.
"""

import logging
import os
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from textcat.base.disk import expanded, open_regular, read_arrays
from textcat.base.errors import TextcatError
from textcat.base.progress import Stages
from textcat.corpus.documents import Corpus, Document
from textcat.features.tfidf import TfIdf
from textcat.features.zones import Documents, checked_documents, zones_of_document
from textcat.reading import InputSettings
from textcat.recipes.recipe import Recipe, read_recipe
from textcat.runs.records import REJECTED
from textcat.teaching.pool.embeddings import N_TEXT, N_TITLE, embeddings_of
from textcat.teaching.pool.identity import identity_of
from textcat.teaching.pool.index import (
    ALL_UP_TO,
    INDEX,
    PoolError,
    read_index,
    recipe_for,
    rows_and_groups,
    write_index,
)
from textcat.teaching.pool.texts import PIECES, Shard, read_archive
from textcat.training.checks import SCRIPT_SAMPLE, warn_if_unsegmented

log = logging.getLogger(__name__)

_INPUT = InputSettings()
_EMBEDDINGS = "embeddings.npz"  # a zip file, because it has checksums


class Pool:
    """The documents of an archive, to be ranked and shown; `build_pool`, `open_pool` and `from_documents` make a pool.

    All parameters except `texts` are also attributes.

    Parameters
    ----------
    recipe : Recipe
        The recipe that was used: for more than 30,000 documents, its terms are single words only.
    features : TfIdf
        Fitted on the pool: `pool.features.transform([description])` gives the vectors of other texts.
    rows : csr_matrix of shape (n_documents, n_terms), float32
        The documents' feature vectors; of a pool on disk, their arrays are memory-mapped.
    ids : sequence of str
        The documents' own ids, not necessarily unique.
    groups : ndarray of shape (n_documents,), int32
        For each document, the position of the first document of its group of near-duplicates: see `same_works`.
    texts : sequence of dict
        The ``zones`` of each document, and maybe ``source``, ``position``, ``topics``, ``fields`` and ``date``.
    folder : Path or None
        None for a pool in memory.
    n_rejected : int
        The number of records of the archive that could not be read.
    sum : str
        A checksum that identifies the pool; "" for a pool in memory.
    """

    def __init__(
        self,
        recipe: Recipe,
        features: TfIdf,
        rows: csr_matrix,
        ids: Sequence[str],
        groups: NDArray[np.int32],
        texts: Sequence[dict[str, Any]],
        *,
        folder: Path | None = None,
        n_rejected: int = 0,
        sum: str = "",
    ):
        self.recipe, self.features, self.rows, self.ids, self.groups = recipe, features, rows, ids, groups
        self.folder, self.n_rejected, self.sum = folder, n_rejected, sum
        self._texts = texts
        self._embeddings: NDArray[np.float32] | None = None

    @classmethod
    def from_documents(
        cls,
        documents: Documents | Corpus,
        ids: Sequence[str] | None = None,
        recipe: str | Path | Recipe = "active-learning",
    ) -> "Pool":
        """Return a new pool in memory.

        Parameters
        ----------
        documents : Corpus, or iterable of str or of documents with `zones`
            From a corpus, both the training and the test documents are taken.
        ids : sequence of str, optional
            By default the documents' own ids; a document without an id gets its number, counted from 1.
        recipe : str, Path or Recipe

        Returns
        -------
        Pool

        Raises
        ------
        TextcatError
            If there is no document, `documents` are a table or a single text, the numbers of ids and documents differ,
            or there is no such recipe.
        """
        recipe = recipe if isinstance(recipe, Recipe) else read_recipe(recipe)
        records = (
            [*documents.train, *documents.test] if isinstance(documents, Corpus) else [*checked_documents(documents)]
        )
        if not records:
            raise PoolError("There is no document for the pool: give at least one.")
        if ids is None:
            ids = [getattr(document, "id", None) or str(i) for i, document in enumerate(records, 1)]
        if len(ids) != len(records):
            raise PoolError(f"There are {len(ids)} ids for {len(records)} documents: give one for each.")
        recipe = recipe_for(recipe, len(records))
        fields = [getattr(document, "fields", None) for document in records]
        zones = [zones_of_document(document, i) for i, document in enumerate(records)]
        identities = [*map(identity_of, zones, fields)]
        features, rows, groups = rows_and_groups(records, recipe, identities)
        texts = [
            {
                "zones": zones[i],
                "topics": getattr(document, "topics", ()),
                "fields": fields[i],
                "date": getattr(document, "date", ""),
            }
            for i, document in enumerate(records)
        ]
        return cls(recipe, features, rows, list(ids), groups, texts)

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    def __repr__(self) -> str:
        location = "in memory" if self.folder is None else f"in {self.folder}"
        return f"<Pool of {len(self):,} documents and {self.rows.shape[1]:,} terms {location}>"

    def document(self, i: int) -> dict[str, str]:
        """Return the texts of document i by zone, such as ``{"title": …, "body": …}``."""
        zones: dict[str, str] = self._texts[i]["zones"]
        return dict(zones)

    def rows_of(self, texts: Iterable[str]) -> csr_matrix:
        """Return a feature vector for each text, read as title and body of a document: shape (n_texts, n_terms)."""
        return self.features.transform([Document("", {"title": text, "body": text}) for text in texts])

    def checked(self, position: int) -> int:
        """Return a position unchanged; raise TextcatError if the pool has no document there."""
        if not 0 <= position < len(self):
            raise TextcatError(f"No document {position}: choose one of the session's {len(self):,}, counted from 0.")
        return int(position)

    def date(self, i: int) -> str:
        """Return the date of a document, in ISO 8601; "" if it has none."""
        return str(self._texts[i].get("date") or "")

    def fields(self, i: int) -> dict[str, Any]:
        """Return the further fields of a document's record, such as authors and year; {} if it has none."""
        return dict(self._texts[i].get("fields") or {})

    def embeddings(self) -> NDArray[np.float32]:
        """Return the documents' embeddings, which `embeddings_of` computes; a pool on disk keeps a copy in its folder.

        Raises
        ------
        TextcatError
            If the package tokenizers is missing, the model cannot be downloaded, or there are too many documents.
        """
        if self._embeddings is None:
            if len(self) > ALL_UP_TO:
                raise PoolError(
                    f"Embeddings are available for up to {ALL_UP_TO:,} documents, and the pool has {len(self):,}: "
                    "leave out --embeddings, or set the ranker's `embeddings` to 0."
                )
            self._embeddings = self._kept_embeddings()
        if self._embeddings is None:
            self._embeddings = embeddings_of(fields["zones"] for fields in self._texts)
            if self.folder:
                kept = self.folder / INDEX / _EMBEDDINGS
                with suppress(OSError):  # the folder is not writable
                    np.savez(sibling := kept.with_name(f"new-{_EMBEDDINGS}"), self._embeddings)
                    sibling.replace(kept)
        return self._embeddings

    def _kept_embeddings(self) -> NDArray[np.float32] | None:
        """Return the embeddings saved in the pool's folder; None if there are none, or they are incomplete."""
        if not self.folder:
            return None
        with suppress(OSError, ValueError), open_regular(self.folder / INDEX / _EMBEDDINGS) as file:
            kept = read_arrays(file).get("arr_0", np.empty(0))
            return kept if kept.shape == (len(self), N_TITLE + N_TEXT) and kept.dtype == np.float32 else None
        return None

    def place_of(self, i: int) -> tuple[str, int]:
        """Return the source (such as a file) that a document was read from, and the document's position in the source.

        Both are as in the output of `textcat tag`; ("", 0) for a pool in memory.
        """
        fields = self._texts[i]
        return fields.get("source", ""), fields.get("position", 0)

    def position_of(self, id: str) -> int:
        """Return the position of the first document with an id; raise PoolError if no document has it."""
        try:
            return self.ids.index(id)
        except ValueError:
            raise PoolError(f"The pool has no document {id!r}: search for its words.") from None

    def positions_of(self, ids: Iterable[str]) -> dict[str, int]:
        """Return the position of the first document with each id; ids that no document has are left out."""
        wanted, positions = set(ids), dict[str, int]()
        for position, id in enumerate(self.ids):  # one pass over the ids of all documents, which are not kept in memory
            if id in wanted:
                positions.setdefault(id, position)
        return positions

    @property
    def labels(self) -> list[tuple[str, ...]] | None:
        """The topics of each document, for simulations only; None if no document has one."""
        labels = [tuple(fields.get("topics", ())) for fields in self._texts]
        return labels if any(labels) else None


def build_pool(
    inputs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | Corpus,
    folder: str | os.PathLike[str],
    *,
    recipe: str | Path | Recipe = "active-learning",
    settings: InputSettings = _INPUT,
    jobs: int = -1,
    restart: bool = False,
    progress: Stages | None = None,
) -> Pool:
    """Build a pool of an archive in a folder, or open it if it was built before; an interrupted build resumes.

    Records that cannot be read are listed in ``_rejected.jsonl`` in the folder, with the reasons.

    Parameters
    ----------
    inputs : path, iterable of paths, or Corpus
        Files, folders, patterns such as ``*.jsonl``, and URLs, as for `tag_archive`; or a corpus, whose training and
        test documents are used.
    folder : path
        Created if missing.
    recipe : str, Path or Recipe
        How documents become feature vectors; its learner is not used.
    settings : InputSettings
        How inputs are read.
    jobs : int, default=-1
        Number of processes that read the inputs; -1: one per core.
    restart : bool, default=False
        Build the pool from scratch, even if the folder has one.
    progress : Stages, optional
        Measures the time of each stage, and shows progress bars.

    Returns
    -------
    Pool

    Raises
    ------
    TextcatError
        If there is no such input or recipe, no document can be read, or the folder has another pool or other files, is
        inside an input, or cannot be written to.
    """
    recipe = recipe if isinstance(recipe, Recipe) else read_recipe(recipe)
    folder, stages = expanded(folder), progress or Stages()
    with read_archive(inputs, folder, recipe, settings, jobs=jobs, restart=restart, stages=stages) as archive:
        rejected = f"{archive.n_rejected:,} records could not be read: {folder / REJECTED} lists them"
        if not archive.n_documents:
            why = rejected if archive.n_rejected else "the inputs are empty"
            raise PoolError(f"There is no document for the pool; {why}. Give inputs that can be read.")
        if new := not (folder / INDEX).is_dir():
            write_index(archive, recipe, stages)
        shutil.rmtree(folder / PIECES, ignore_errors=True)  # including files that a killed run has left
    if archive.n_rejected:
        log.warning("%s", rejected)
    pool = open_pool(folder, verify=not new)
    if new:
        sample = [Document("", pool.document(i)) for i in range(0, len(pool), max(1, len(pool) // SCRIPT_SAMPLE))]
        warn_if_unsegmented(sample, recipe)
    return pool


def open_pool(folder: str | os.PathLike[str], *, verify: bool = True) -> Pool:
    """Open a pool made by `build_pool`; raise PoolError if the folder is not a pool, or a file is missing or damaged.

    If `verify`, all files are read once and compared with their checksums; otherwise, this is done only for files that
    are read whole anyway, and sizes and offsets are checked.
    """
    folder = expanded(folder)
    index = read_index(folder, verify=verify)
    manifest, parts = index.manifest, (index.features, index.rows, index.ids, index.groups)
    texts = _StoredTexts(folder, manifest.shards, index.ends)
    return Pool(manifest.recipe, *parts, texts, folder=folder, n_rejected=manifest.rejected, sum=manifest.sum)


class _StoredTexts(Sequence[dict[str, Any]]):
    """The records of a pool's documents on disk; each access reads one line of a shard (a file of texts)."""

    def __init__(self, folder: Path, shards: Sequence[Shard], ends: NDArray[np.int64]):
        self._folder, self._shards, self._ends = folder, shards, ends
        self._shard_ends = np.cumsum([shard.n_bytes for shard in shards])

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, i: Any) -> Any:
        k = range(len(self))[i]
        start, end = int(self._ends[k - 1]) if k else 0, int(self._ends[k])
        number = int(np.searchsorted(self._shard_ends, start, side="right"))
        shard = self._shards[number]
        try:
            with open_regular(self._folder / shard.name) as file:
                file.seek(start - int(self._shard_ends[number]) + shard.n_bytes)
                fields = orjson.loads(file.read(end - start))
                return {**fields, "zones": dict(fields["zones"])}
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise PoolError(
                f"{self._folder / shard.name} is missing or damaged ({error}): restore it from a backup."
            ) from error
