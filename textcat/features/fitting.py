"""Choose the terms of counted documents that get columns, and compute the weights of tf-idf and BM25."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from textcat.features._rows import character_keys, character_width, document_frequencies, keep_ngrams, pick
from textcat.features.columns import NamedColumns, TermColumns, feature_names, ngram_names
from textcat.features.tokens import TermCounts
from textcat.features.zones import SHARED_SPACE, TextParts

_COMPARED = 4  # names are compared by this many 64-bit numbers before Python compares strings


class CountedDocuments(NamedTuple):
    """The term counts of documents: features can be fitted to them, and compute document vectors (rows) from them."""

    parts: TextParts
    counts: TermCounts  # without rare n-grams
    lengths: np.ndarray  # number of terms and n-grams of each text, including rare ones: shape (n_texts,), int64


class FittedColumns(NamedTuple):
    """Columns after fitting: names, document frequencies, and a look-up by term ids."""

    named: NamedColumns
    df: np.ndarray  # number of documents with each column; 0 if below the limit: shape (n_columns,)
    columns: TermColumns


class Frequencies(NamedTuple):
    """Limits on document frequencies: only terms within the limits get a column."""

    min_df: int  # minimum for terms and character n-grams
    ngram_min_df: int  # minimum for n-grams of terms
    max_char_df: int  # maximum for character n-grams


def named_columns(
    parts: TextParts,
    counts: TermCounts,
    allowed: Frequencies,
    max_features: int | None,
    described: TextParts | None = None,
    kept: np.ndarray | None = None,
) -> FittedColumns:
    """Choose columns: one for each term and n-gram that neither too few nor too many documents have.

    Terms of `described`, the texts of topics' descriptions, and shared terms with the ids `kept` are chosen however
    rare they are, with a document frequency of at least 1. Of the chosen columns, at most `max_features` are kept,
    those that the most documents have; None: all. Documents are first counted by the ids of terms, so that the many
    rare terms need no name. `parts` and `counts` are the documents that `FeatureSteps.count_all` counted, and `allowed`
    has the limits.
    """
    common = _common(parts, counts, allowed, described)
    if kept is not None and SHARED_SPACE in parts.names:
        common[parts.names.index(SHARED_SPACE), kept] = True
    names = [name for space, ids in zip(parts.names, common, strict=True) for name in _names(space, ids, counts)]
    # Terms with the same name share a column: "a b" may be a term and an n-gram.
    terms, positions = alphabetical(names)
    columns = np.full(common.shape, -1, np.int32)
    columns[common] = positions
    df = _frequencies(parts, counts, columns, len(terms))
    if described is not None or kept is not None:
        df = np.maximum(df, 1)
    if max_features is not None:
        kept = np.sort(np.argsort(-df, kind="stable")[:max_features])
        moved = np.full(len(terms) + 1, -1, np.int32)  # its last entry keeps -1 at -1
        moved[kept] = np.arange(len(kept))
        columns, df, terms = moved[columns], df[kept], [terms[i] for i in kept.tolist()]
    named = NamedColumns(terms)
    n_terms = common.shape[1] - len(counts.ngrams)
    keys = {space: (row[:n_terms], row[n_terms:]) for space, row in zip(parts.names, columns, strict=True)}
    return FittedColumns(named, df, TermColumns(counts.terms, named, keys=keys))


def without_rare_ngrams(parts: TextParts, counts: TermCounts, ngram_min_df: int) -> TermCounts:
    """Return counts without the n-grams that fewer than `ngram_min_df` documents have.

    The arrays of the given counts are overwritten.
    """
    n_terms, (left, right) = len(counts.terms), counts.ngrams.T
    any_chars = len(parts.ends)
    kept = np.array(_common(parts, counts, Frequencies(1, ngram_min_df, any_chars))[:, n_terms:].any(axis=0))
    kept[~left[kept & (left < 0)]] = True  # the beginning of a longer n-gram, needed for its name
    new = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)
    left, right = left[kept], right[kept]
    longer = left < 0
    left[longer] = ~new[~left[longer]]
    n = keep_ngrams(counts.ends, counts.ids, counts.counts, new)
    ids, occurrences = counts.ids[:n].copy(), counts.counts[:n].copy()
    # A separate list, because the tokenizer's list has n-grams with other ids.
    terms = list(counts.terms)
    return TermCounts(counts.ends, ids, occurrences, terms, np.column_stack([left, right]), counts.chars)


def inverse_frequencies(df: np.ndarray, n_documents: int, kind: str) -> np.ndarray:
    """Return the idf for each document frequency in `df`; 0 where the frequency is 0.

    `kind` is the parameter `idf` of `TfIdf`, which has the formulas.
    """
    distinct, positions = np.unique(df, return_inverse=True)
    return np.array([_inverse_frequency(n, n_documents, kind) for n in distinct.tolist()], np.float64)[positions]


def average_lengths(parts: TextParts, lengths: np.ndarray) -> dict[str, float]:
    """Return the average length of the texts of each zone."""
    texts = np.flatnonzero(np.bincount(parts.sources))
    number_of: dict[str, int] = {}
    numbered = [number_of.setdefault(parts.zones[text], len(number_of)) for text in texts.tolist()]
    zones = np.array(numbered, np.int64)
    averages = np.bincount(zones, lengths[texts]) / np.bincount(zones)
    return dict(zip(number_of, averages.tolist(), strict=True))


def half_saturation(
    parts: TextParts, lengths: np.ndarray, averages: Mapping[str, float], k1: float, b: float
) -> np.ndarray:
    """Return, for each part, the count at which the BM25 weight of a term is half of its limit: shape (n_parts,).

    A part is a text of a zone, together with the space (zone's own or shared) to which its terms belong. `lengths` are
    the lengths of the texts, and `averages` the average length by zone.
    """
    average = np.array([averages.get(zone, 0.0) for zone in parts.zones], np.float64)
    # A zone without terms in training documents gets no length correction.
    relative = np.divide(lengths, average, out=np.ones(len(lengths)), where=average > 0)
    return (k1 * (1 - b + b * relative))[parts.sources]


def term_weights(counts: TermCounts, char_weight: float | None) -> np.ndarray:
    """Return the weight of each term: `char_weight` for n-grams of characters, 1 for other terms. Shape (n_terms,).

    If `char_weight` is None, there are no n-grams of characters, and the array is empty.
    """
    if char_weight is None:
        return np.zeros(0)
    weights = np.ones(len(counts.terms))
    weights[counts.chars] = char_weight
    return weights


def _inverse_frequency(df: int, m: int, kind: str) -> float:
    if df == 0 or kind == "none":
        return float(df > 0)
    return 1 + math.log((1 + m) / (1 + df)) if kind == "smooth" else math.log(m / df)


def _common(
    parts: TextParts, counts: TermCounts, allowed: Frequencies, described: TextParts | None = None
) -> np.ndarray:
    """Return a bool array with a column per term, followed by a column per n-gram, and a row per name in `parts.names`.

    A row is for the terms of the zone with this name or, if the name is "", for the terms that all zones share. The
    array is True where the number of documents that have the row's term or n-gram is within the limits `allowed`. The
    array is also True for all terms of `described`, the texts of topics' descriptions, except for n-grams of characters
    that too many documents have.
    """
    n_terms = len(counts.terms)
    shape = (len(parts.names), n_terms + len(counts.ngrams))
    columns = np.arange(shape[0] * shape[1], dtype=np.int32).reshape(shape)
    df = _frequencies(parts, counts, columns, columns.size).reshape(shape)
    common = np.hstack([df[:, :n_terms] >= allowed.min_df, df[:, n_terms:] >= allowed.ngram_min_df])
    if described is not None:
        common[:, :n_terms] |= _frequencies(described, counts, columns, columns.size).reshape(shape)[:, :n_terms] > 0
    common[:, counts.chars] &= df[:, counts.chars] <= allowed.max_char_df
    return common


def alphabetical(names: list[str]) -> tuple[list[str], np.ndarray]:
    """Return the sorted distinct names, and the position of each name among them: shape (n_names,), int64.

    Names are compared by a few characters at once, as numbers, which is several times as fast as by `sorted`.
    """
    if not names:
        return [], np.zeros(0, np.int64)
    width = character_width(names)
    keys = character_keys(names, np.arange(len(names)), 0, width)
    order = np.argsort(keys)
    same = np.diff(keys[order], prepend=~keys[order[:1]]) == 0  # the same as the previous name, as far as compared
    for start in range(8 // width, _COMPARED * (8 // width), 8 // width):
        tied = np.flatnonzero(same | np.append(same[1:], False))
        members, group = order[tied], np.cumsum(~same[tied])
        keys = character_keys(names, members, start, width)
        by = np.lexsort((keys, group))
        order[tied] = members[by]
        same[tied] &= np.diff(keys[by], prepend=~keys[by[:1]]) == 0
    tied = np.flatnonzero(same | np.append(same[1:], False))
    order[tied] = sorted(order[tied].tolist(), key=names.__getitem__)
    listed = pick(names, order)
    for i in np.flatnonzero(same).tolist():
        same[i] = listed[i] == listed[i - 1]
    positions = np.empty(len(names), np.int64)
    positions[order] = np.cumsum(~same) - 1
    return (pick(listed, np.flatnonzero(~same)) if same.any() else listed), positions


def _names(space: str, selected: np.ndarray, counts: TermCounts) -> list[str]:
    """Return the column names of the selected terms, followed by those of the selected n-grams.

    `selected` is a bool array over terms, then n-grams. `space` is as for `feature_names`.
    """
    n_terms = len(selected) - len(counts.ngrams)
    terms = pick(counts.terms, np.flatnonzero(selected[:n_terms]))
    return list(feature_names(space, terms + ngram_names(counts, np.flatnonzero(selected[n_terms:]))))


def _frequencies(parts: TextParts, counts: TermCounts, columns: np.ndarray, n_columns: int) -> np.ndarray:
    """Return the number of documents that have each column.

    `columns` has a row per name in `parts.names` (a zone with terms of its own, or "" for shared terms): the columns of
    all terms, followed by those of all n-grams; -1: no column.
    """
    n_terms = columns.shape[1] - len(counts.ngrams)
    terms, ngrams = np.ascontiguousarray(columns[:, :n_terms]), np.ascontiguousarray(columns[:, n_terms:])
    return document_frequencies(*parts.arguments(counts), terms, ngrams, n_columns)
