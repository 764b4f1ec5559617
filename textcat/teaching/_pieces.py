"""Documents → pieces with counted terms; pieces → rows, with only one piece in memory at a time.

A piece is a worker's result for a batch, and the checkpoint of a pool of many documents. It numbers its terms itself,
so that it depends only on the batch.
"""

import io
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from textcat.documents import Document
from textcat.features.columns import TermColumns
from textcat.features.rows import Rows, document_frequencies, text_lengths
from textcat.features.tfidf import TfIdf
from textcat.features.tokens import NO_IDS, NO_NGRAMS, TermCounts
from textcat.features.zones import SHARED_SPACE, TextParts, ZoneTexts
from textcat.progress import Advance
from textcat.recipe import Recipe
from textcat.teaching._duplicates import distinct_terms


class Piece(NamedTuple):
    """The counted terms of some documents."""

    names: NDArray[np.uint8]  # of the terms, a line each
    df: NDArray[Any]  # how many of the documents have each term
    ends: NDArray[Any]  # of the texts in the next two
    ids: NDArray[Any]  # of terms
    counts: NDArray[Any]
    zones: NDArray[Any]  # of the texts, by their positions in the next one
    zone_names: NDArray[np.uint8]  # a list in JSON
    texts: NDArray[Any]  # how many each document has
    sizes: NDArray[Any]  # how many distinct terms each document has
    lines: NDArray[Any]  # the bytes of each document's line
    id_bytes: NDArray[np.uint8]  # of the documents' ids, one after the other
    id_sizes: NDArray[Any]

    def __len__(self) -> int:
        return len(self.texts)


_MANY_TOKENS = {"alphanumeric": True, "remove_stop_words": True}
_MANY_FEATURES = {"zone_terms": False, "ngrams": 1, "chars": 0}


def for_many(recipe: Recipe) -> Recipe:
    """Return a recipe without n-grams, stop words, signs, terms of single documents and terms of single zones."""
    least = max(2, recipe.features.get("min_df", 1))
    features = {**recipe.features, **_MANY_FEATURES, "min_df": least}
    return replace(recipe, tokens={**recipe.tokens, **_MANY_TOKENS}, features=features)


def may_be_pieces(features: TfIdf) -> bool:
    """Return whether rows can be made piece by piece: each column is a named term, the same for all zones."""
    return features.zone_terms in (False, []) and not features.chars and features.hash_bits is None


def piece_of(features: TfIdf, zones: Sequence[dict[str, str]], ids: Sequence[bytes], lines: Sequence[int]) -> bytes:
    """Return the piece of documents, as a file of arrays; b"" if a term contains a line end, as in some languages."""
    features.take_tokens()
    texts = ZoneTexts((Document("", each) for each in zones), features.zones, False)
    counts = features.tokens_.count_terms(texts)
    parts, used = texts.parts(), np.zeros(len(counts.terms), np.bool_)
    used[counts.ids] = True
    own = (np.cumsum(used, dtype=np.int32) - 1)[counts.ids]
    names = [counts.terms[i] for i in np.flatnonzero(used).tolist()]
    joined = "\n".join(names).encode("utf-8", "surrogatepass")
    if joined.count(b"\n") != max(len(names) - 1, 0):
        return b""
    columns = np.arange(len(names), dtype=np.int32)[None], np.zeros((1, 0), np.int32)
    df = document_frequencies(parts.ends, counts.ends, own, parts.sources, parts.spaces, *columns, len(names))
    zone_names = list(dict.fromkeys(parts.zones))
    number = dict(zip(zone_names, count(), strict=False))
    piece = Piece(
        np.frombuffer(joined, np.uint8),
        df,
        counts.ends,
        own,
        counts.counts,
        np.array([number[zone] for zone in parts.zones], np.int64),
        np.frombuffer(json.dumps(zone_names).encode(), np.uint8),
        np.diff(parts.ends, prepend=0),
        distinct_terms(parts.ends, counts.ends, own, parts.sources, len(names)),
        np.array(lines, np.int64),
        np.frombuffer(b"".join(ids), np.uint8),
        np.array([len(id) for id in ids], np.int64),
    )
    file = io.BytesIO()
    arrays: dict[str, Any] = {name: _narrow(array) for name, array in piece._asdict().items()}
    np.savez(file, **arrays)
    return file.getvalue()


def _narrow(array: NDArray[Any]) -> NDArray[Any]:
    """Return non-negative integers in the smallest type that holds them."""
    return array.astype(np.min_scalar_type(int(array.max(initial=0))), copy=False)


class Pieces:
    """The pieces of an archive in a folder, by the positions of their first documents.

    A missing piece raises OSError, a damaged one zipfile.BadZipFile or ValueError.
    """

    def __init__(self, folder: Path, n_documents: int):
        self._paths = sorted(folder.glob("*.npz")) if folder.is_dir() else []
        self.n_documents = n_documents
        self._columns: list[NDArray[np.int32]] = []  # of the terms of each piece

    def __iter__(self) -> Iterator[Piece]:
        position = 0
        for path in self._paths:
            if path.stem != name_of(position):
                raise FileNotFoundError(path)
            piece = _read(path)
            position += len(piece)
            yield piece
        if position != self.n_documents:
            raise FileNotFoundError(name_of(position))

    def __len__(self) -> int:
        return len(self._paths)

    def fit(self, features: TfIdf, advance: Advance = lambda n: None) -> "_Facts":
        """Fit features to all documents, as `TfIdf.fit` does, and return the other facts in the pieces."""
        number: defaultdict[str, int] = defaultdict(count().__next__)
        df = np.zeros(1 << 16, np.int64)
        numbers: list[NDArray[np.int32]] = []
        lengths: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])  # of each zone: terms, texts
        facts: list[tuple[NDArray[Any], ...]] = []
        for piece in self:
            names = piece.names.tobytes().decode("utf-8", "surrogatepass").split("\n") if len(piece.df) else []
            numbers.append(np.fromiter(map(number.__getitem__, names), np.int32, len(names)))
            if len(number) > len(df):
                df = np.concatenate([df, np.zeros(max(len(df), len(number) - len(df)), np.int64)])
            df[numbers[-1]] += piece.df
            facts.append((piece.sizes.astype(np.int32), piece.lines, piece.id_sizes, piece.id_bytes))
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
        self._columns = [column[each] for each in numbers]
        vocabulary = {terms[i]: k for k, i in enumerate(kept.tolist())}
        idf = features.idf_of(df[kept], self.n_documents)
        averages = {zone: n / n_texts for zone, (n, n_texts) in lengths.items()}
        features.set_fitted(vocabulary, idf, self.n_documents, averages)
        return _Facts(*(np.concatenate(arrays) for arrays in zip(*facts, strict=True)))

    def rows(self, features: TfIdf, k: int) -> Rows:
        """Return the rows of a piece, by its number, with features that were fitted to all pieces; thread-safe."""
        piece, columns = _read(self._paths[k]), self._columns[k]
        terms = [""] * len(columns)
        of_terms = TermColumns(terms, features.vocabulary_, keys={SHARED_SPACE: (columns, NO_IDS)})
        parts, counts = _parts(piece, features), _counts(piece, terms)
        return features.rows_of_counts(parts, counts, text_lengths(counts.ends, counts.counts), of_terms)


class _Facts(NamedTuple):
    """Facts about documents that their rows do not have."""

    sizes: NDArray[np.int32]
    lines: NDArray[Any]
    id_sizes: NDArray[Any]
    id_bytes: NDArray[np.uint8]


def name_of(position: int) -> str:
    """Return the name of the piece of the documents from a position on, without its ending."""
    return f"{position:012}"


def _read(path: Path) -> Piece:
    with np.load(path, allow_pickle=False) as arrays:
        return Piece(*(arrays[name] for name in Piece._fields))


def _counts(piece: Piece, terms: list[str]) -> TermCounts:
    arrays = piece.ends.astype(np.int64), piece.ids.astype(np.int32), piece.counts.astype(np.int32)
    return TermCounts(*arrays, terms, NO_NGRAMS, NO_IDS)


def _parts(piece: Piece, features: TfIdf) -> TextParts:
    names, n_texts = json.loads(piece.zone_names.tobytes()), len(piece.ends)
    weight = np.array([1.0 if features.zones is None else features.zones[name] for name in names], np.float64)
    zones = [names[i] for i in piece.zones.tolist()] if features.weighting == "bm25" else []
    sources, spaces = np.arange(n_texts, dtype=np.int32), np.zeros(n_texts, np.int32)
    weights = weight[piece.zones] if n_texts else np.zeros(0)
    return TextParts(zones, sources, spaces, weights, [SHARED_SPACE], np.cumsum(piece.texts, dtype=np.int64))


def _add_lengths(lengths: defaultdict[str, list[int]], piece: Piece) -> None:
    of_text = text_lengths(piece.ends.astype(np.int64), piece.counts.astype(np.int32))
    for k, zone in enumerate(json.loads(piece.zone_names.tobytes())):
        chosen = of_text[piece.zones == k]
        lengths[zone][0] += int(chosen.sum())
        lengths[zone][1] += len(chosen)
