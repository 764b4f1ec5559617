"""Count the terms of many documents in pieces, and make document vectors of one piece after the other.

A piece is a batch of documents with their counts, made by a worker. It is saved, so that an interrupted build of a pool
can be resumed. Each piece has its own numbering of terms, so that it depends only on the batch.
"""

import io
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from textcat.base.disk import open_regular
from textcat.base.progress import Advance
from textcat.corpus.documents import Document
from textcat.duplicates.groups import Assigned, Groups, first_positions, sketch_texts
from textcat.features.columns import NamedColumns, TermColumns
from textcat.features.counts import StoredCounts, smallest_type
from textcat.features.rows import Rows, document_frequencies, text_lengths
from textcat.features.tfidf import TfIdf
from textcat.features.tokens import NO_IDS
from textcat.features.zones import SHARED_SPACE, TextParts, ZoneTexts
from textcat.recipes.recipe import Recipe


class Piece(NamedTuple):
    """A batch of documents as stored while a pool is built: the counts of their terms, sketches and ids."""

    counted: StoredCounts
    df: NDArray[Any]  # number of documents of the batch that have each term
    sketches: NDArray[Any]  # of each document, to find near-duplicates
    lines: NDArray[Any]  # number of bytes of each document's line
    id_bytes: NDArray[np.uint8]  # the documents' ids in UTF-8, one after the other
    id_sizes: NDArray[Any]  # number of bytes of each id

    def __len__(self) -> int:
        return len(self.counted)

    def text_lengths(self) -> NDArray[np.int64]:
        """Return the length of each text, as a number of terms."""
        return text_lengths(self.counted.counts.ends, self.counted.counts.counts)


_TERMS, _ZONES = "terms", "zones"  # lists in JSON
_MANY_TOKENS = {"alphanumeric": True, "remove_stop_words": True}
_MANY_FEATURES = {"zone_terms": False, "ngrams": 1, "chars": 0}


def for_many(recipe: Recipe) -> Recipe:
    """Return a copy of a recipe for many documents, in which only words of at least two documents are terms.

    It has no n-grams, stop words or punctuation, and no separate terms for zones (parts such as the title).
    """
    least = max(2, recipe.features.min_df)
    return recipe.with_values({"tokens": _MANY_TOKENS, "features": {**_MANY_FEATURES, "min_df": least}})


def can_use_pieces(features: TfIdf) -> bool:
    """Return whether a pool's document vectors can be made from pieces (batches of documents' term counts).

    They can if the features have no terms of single zones and no n-grams of characters.
    """
    return features.zone_terms in (False, []) and not features.chars


def piece_of(features: TfIdf, zones: Sequence[dict[str, str]], ids: Sequence[bytes], lines: Sequence[int]) -> bytes:
    """Count the terms of a batch of documents, and return the batch as a `Piece`, encoded as the bytes of a file.

    `lines` has the number of bytes of each document's line.
    """
    features.take_tokens()
    texts = ZoneTexts((Document("", zones_of_document) for zones_of_document in zones), features.zones, False)
    counts = features.tokens_.count_terms(texts)
    parts = texts.parts()
    counted = StoredCounts.of_batch(parts, counts)
    terms, counts = counted.counts.terms, counted.counts
    columns = np.arange(len(terms), dtype=np.int32)[None], np.zeros((1, 0), np.int32)
    arrays: dict[str, Any] = counted.arrays() | {
        "df": document_frequencies(*parts.arguments(counts), *columns, len(terms)),
        "lines": np.array(lines, np.int64),
        "id_bytes": np.frombuffer(b"".join(ids), np.uint8),
        "id_sizes": np.array([len(id) for id in ids], np.int64),
        _ZONES: np.frombuffer(json.dumps(counted.zones).encode(), np.uint8),
        _TERMS: np.frombuffer(json.dumps(terms).encode(), np.uint8),
    }
    file = io.BytesIO()
    arrays = {name: smallest_type(array) for name, array in arrays.items()}
    np.savez(file, sketches=sketch_texts(zones), **arrays)
    return file.getvalue()


def read_piece(path: Path, *, with_terms: bool) -> Piece:
    """Read a `Piece`, a batch of documents' term counts, from a file.

    If `with_terms` is False, the terms are not read, and are all "". Raise ValueError if the file is damaged.
    """
    try:
        with open_regular(path) as file, np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files if with_terms or name != _TERMS}
        facts = {name: arrays[name] for name in Piece._fields[1:]}
        terms = json.loads(arrays[_TERMS].tobytes()) if with_terms else [""] * len(facts["df"])
        zones = json.loads(arrays[_ZONES].tobytes())
        counted = StoredCounts.from_arrays(zones, terms, arrays)
    except Exception as error:  # zipfile, zlib and numpy raise a dozen types of exceptions
        raise ValueError(f"{path}: {error!r}") from error
    return Piece(counted, **facts)


class Pieces:
    """The pieces in a folder: batches of documents, each document with the counts of its terms.

    Together, the pieces have all documents of an archive, in order. Reading a piece raises OSError if its file is
    missing, and ValueError if it is damaged.
    """

    def __init__(self, folder: Path, n_documents: int):
        self._paths = sorted(folder.glob("*.npz")) if folder.is_dir() else []
        self.n_documents = n_documents
        self._columns: list[NDArray[np.int32]] = []  # for each piece, the columns of its terms
        self._named = NamedColumns([])

    def __iter__(self) -> Iterator[Piece]:
        position = 0
        for path in self._paths:
            if path.stem != name_of(position):
                raise FileNotFoundError(path)
            piece = read_piece(path, with_terms=True)
            position += len(piece)
            yield piece
        if position != self.n_documents:
            raise FileNotFoundError(name_of(position))

    def __len__(self) -> int:
        return len(self._paths)

    def fit(self, features: TfIdf, groups: Groups, advance: Advance = lambda n: None) -> "_Facts":
        """Fit features to the documents of all pieces, as `TfIdf.fit` does; return the documents' ids and groups.

        The groups are those of near-duplicates, to which `groups` assigns the documents. `advance` is called with the
        number of documents of each piece.
        """
        number: defaultdict[str, int] = defaultdict(count().__next__)
        df = np.zeros(1 << 16, np.int64)
        numbers: list[NDArray[np.int32]] = []
        lengths: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])  # for each zone: terms, texts
        facts, assigned = list[tuple[NDArray[Any], ...]](), list[Assigned]()
        for piece in self:
            names = piece.counted.counts.terms
            numbers.append(np.fromiter(map(number.__getitem__, names), np.int32, len(names)))
            if len(number) > len(df):
                df = np.concatenate([df, np.zeros(max(len(df), len(number) - len(df)), np.int64)])
            df[numbers[-1]] += piece.df
            facts.append((piece.lines, piece.id_sizes, piece.id_bytes))
            assigned.append(groups.add(piece.sketches))
            if features.weighting == "bm25":
                _add_lengths(lengths, piece)
            advance(len(piece))
        df, terms = df[: len(number)], list(number)
        number.clear()
        common = np.flatnonzero(df >= features.min_df).tolist()
        common.sort(key=terms.__getitem__)
        kept = np.array(common, np.int64)
        if features.max_features is not None:
            kept = kept[np.sort(np.argsort(-df[kept], kind="stable")[: features.max_features])]
        column = np.full(len(terms), -1, np.int32)
        column[kept] = np.arange(len(kept))
        self._columns = [column[number] for number in numbers]
        self._named = NamedColumns([terms[i] for i in kept.tolist()])
        idf = features.idf_of(df[kept], self.n_documents)
        averages = {zone: n / n_texts for zone, (n, n_texts) in lengths.items()}
        features.set_fitted(self._named, idf, self.n_documents, averages)
        return _Facts(first_positions(assigned), *(np.concatenate(arrays) for arrays in zip(*facts, strict=True)))

    def rows(self, features: TfIdf, k: int) -> Rows:
        """Return the feature vectors of the documents in piece number k, by features that `fit` has fitted.

        Several threads may call this at the same time.
        """
        piece, columns = read_piece(self._paths[k], with_terms=False), self._columns[k]
        counts = piece.counted.counts
        of_terms = TermColumns(counts.terms, self._named, keys={SHARED_SPACE: (columns, NO_IDS)})
        return features.rows_of_counts(_parts(piece.counted, features), counts, piece.text_lengths(), of_terms)


class _Facts(NamedTuple):
    """Arrays about all documents of a pool: their near-duplicates, their ids, and the sizes of their lines on disk."""

    firsts: NDArray[np.int64]  # the position of the first near-duplicate of each document
    lines: NDArray[Any]
    id_sizes: NDArray[Any]
    id_bytes: NDArray[np.uint8]


def name_of(position: int) -> str:
    """Return the file name, without extension, of the piece whose first document is at a position."""
    return f"{position:012}"


def _parts(counted: StoredCounts, features: TfIdf) -> TextParts:
    names, n_texts = counted.zones, len(counted.zone_of)
    weight = np.array([1.0 if features.zones is None else features.zones[name] for name in names], np.float64)
    zones = [names[i] for i in counted.zone_of.tolist()] if features.weighting == "bm25" else []
    sources, spaces = np.arange(n_texts, dtype=np.int32), np.zeros(n_texts, np.int32)
    weights = weight[counted.zone_of] if n_texts else np.zeros(0)
    return TextParts(zones, sources, spaces, weights, [SHARED_SPACE], np.cumsum(counted.n_texts, dtype=np.int64))


def _add_lengths(lengths: defaultdict[str, list[int]], piece: Piece) -> None:
    of_text = piece.text_lengths()
    for k, zone in enumerate(piece.counted.zones):
        chosen = of_text[piece.counted.zone_of == k]
        lengths[zone][0] += int(chosen.sum())
        lengths[zone][1] += len(chosen)
