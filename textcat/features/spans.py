"""Find the places in a document's texts of the terms in the document's row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from textcat.features.columns import feature_names, space_hashes
from textcat.features.tfidf import TfIdf
from textcat.features.tokens import Located, char_ngrams, padded_places
from textcat.features.zones import SHARED_SPACE, Zoned, plan_texts, zones_of_document


class Span(NamedTuple):
    """Hold the place of some characters in the text of a zone."""

    zone: str  # the name of the zone; "body" if the document is a string
    start: int  # the position of the first character
    end: int  # the position after the last character


class Place(NamedTuple):
    """Hold the spans of text from which a column of a row has its value."""

    name: str  # the term or n-gram; of a column by hash, all terms of the document that have this column
    spans: tuple[Span, ...]  # in the order of the texts


class _Occurrence(NamedTuple):
    column: int
    name: str
    start: int
    end: int
    words: tuple[str, ...]  # the terms of the words that it consists of, or that it is a part of


def places(features: TfIdf, document: str | Zoned, wanted: Iterable[int]) -> dict[int, Place]:
    """Return, by column, the places in a document's texts of the wanted columns that the document's row has.

    A span covers tokens or, for an n-gram of characters, these characters. The text of a span, tokenized alone, also
    has the column: where it would not, the span is widened up to white space, or else to the whole text.

    Parameters
    ----------
    features : TfIdf
        Fitted features.
    document : str or document with `zones`
    wanted : iterable of int
        The columns to look for; those that the document's row does not have are left out of the result.

    Returns
    -------
    dict of int to Place
    """
    texts = zones_of_document(document, 0)
    column_of = _ColumnOf(features, wanted)
    occurrences = [
        (zone, space, occurrence)
        for zone, spaces, located in _located(features, texts)
        for space in spaces
        for occurrence in _occurrences(features, column_of, located, space)
    ]
    spans = _standing(features, column_of, texts, occurrences)
    names: dict[int, dict[str, None]] = {}
    spans_of: dict[int, dict[Span, None]] = {}
    for (_, _, occurrence), span in zip(occurrences, spans, strict=True):
        names.setdefault(occurrence.column, {})[occurrence.name] = None
        spans_of.setdefault(occurrence.column, {})[span] = None
    return {column: Place(" | ".join(names[column]), tuple(spans_of[column])) for column in names}


def _located(features: TfIdf, texts: Mapping[str, str]) -> Iterator[tuple[str, list[str], list[Located]]]:
    """Yield, for each zone that is read, its name, the spaces to which its terms belong, and its terms' places."""
    numbers: dict[str, int] = {} if features.zone_terms is True else {SHARED_SPACE: 0}
    plan = plan_texts(tuple(texts), features.zones, features.zone_terms, numbers)
    spaces = list(numbers)
    of_zone: list[list[str]] = [[] for _ in plan.zones]
    for offset, number in zip(plan.offsets, plan.spaces, strict=True):
        of_zone[offset].append(spaces[number])
    located = features.tokens_.locate_tokens([texts[zone] for zone in plan.zones])
    return zip(plan.zones, of_zone, located, strict=True)


class _ColumnOf:
    """Find the column of a term or n-gram, by name or by hash; -1 if it has none or its column is not wanted."""

    def __init__(self, features: TfIdf, wanted: Iterable[int]):
        self._mask = 2 ** (features.hash_bits or 0) - 1
        self._wanted = set(wanted)
        self._by_name: dict[str, int] | None = None
        self._firsts: set[str] = set()  # what the names of n-grams may begin with
        if features.vocabulary_ is not None:
            names = features.listed_names()
            self._by_name = {names[column]: column for column in self._wanted}
            for name in self._by_name:
                for i, character in enumerate(name):
                    if character == " ":
                        self._firsts.add(name[:i])
        self._hashes: dict[str, int] = {}

    def may_begin(self, name: str) -> bool:
        """Return whether an n-gram that begins with the term `name` may have a column."""
        return self._by_name is None or name in self._firsts

    def __call__(self, space: str, *terms: str) -> int:
        if self._by_name is not None:
            name = " ".join(terms) if len(terms) > 1 else terms[0]
            return self._by_name.get(f"{space}:{name}" if space else name, -1)
        column = self._hash_of(space, terms) & self._mask
        return column if column in self._wanted else -1

    def _hash_of(self, space: str, terms: tuple[str, ...]) -> int:
        from sklearn.utils import murmurhash3_32

        (name,) = feature_names(space, terms[-1:])
        if name not in self._hashes:
            self._hashes[name] = int(space_hashes([name])[0])
        if len(terms) == 1:
            return self._hashes[name]
        mixed = 31 * self._hash_of(space, terms[:-1]) + self._hashes[name]
        return int(murmurhash3_32((mixed + 2**31) % 2**32 - 2**31))


def _occurrences(
    features: TfIdf, column_of: _ColumnOf, located: Sequence[Located], space: str
) -> Iterator[_Occurrence]:
    """Yield the terms and n-grams of a text that have a column in a space, given the terms and their places."""
    n_terms, prefix = len(located), f"{space}:" if space else ""
    for i, (term, start, end, _) in enumerate(located):
        column = column_of(space, term)
        if column >= 0:
            yield _Occurrence(column, prefix + term, start, end, (term,))
        if features.ngrams > 1 and column_of.may_begin(prefix + term):
            for n in range(2, min(features.ngrams, n_terms - i) + 1):
                terms = tuple([token.term for token in located[i : i + n]])
                column = column_of(space, *terms)
                if column >= 0:
                    yield _Occurrence(column, prefix + " ".join(terms), start, located[i + n - 1].end, terms)
    for token in located if features.chars else ():
        around = padded_places(token)
        for k, chars in enumerate(char_ngrams(token.term, features.chars)):
            column = column_of(space, f"~{chars}~")
            if column >= 0:
                covered = around[k : k + len(chars)]
                start, end = token.start + covered[0][0], token.start + covered[-1][1]
                yield _Occurrence(column, f"{prefix}~{chars}~", start, end, (token.term,))


def _standing(
    features: TfIdf,
    column_of: _ColumnOf,
    texts: Mapping[str, str],
    occurrences: list[tuple[str, str, _Occurrence]],
) -> list[Span]:
    """Return a span for each occurrence, widened until its text alone gives the occurrence's column."""
    spans = [Span(zone, occurrence.start, occurrence.end) for zone, _, occurrence in occurrences]
    unsure = list(range(len(occurrences)))
    for widen in (_to_white_space, lambda text, start, end: (0, len(text))):
        piece_of = {k: texts[spans[k].zone][spans[k].start : spans[k].end] for k in unsure}
        pieces = dict.fromkeys(piece_of.values())
        located = dict(zip(pieces, features.tokens_.locate_alone(pieces), strict=True))
        columns: dict[tuple[str, str], set[int]] = {}
        failed = []
        for k in unsure:
            (_, space, occurrence), piece, (zone, start, end) = occurrences[k], piece_of[k], spans[k]
            if (piece, space) not in columns:
                alone = _occurrences(features, column_of, located[piece], space)
                columns[piece, space] = {one.column for one in alone}
            if occurrence.column not in columns[piece, space]:
                spans[k] = Span(zone, *widen(texts[zone], start, end))
                failed.append(k)
        if not (unsure := failed):
            break
    return spans


def _to_white_space(text: str, start: int, end: int) -> tuple[int, int]:
    while start > 0 and not text[start - 1].isspace():
        start -= 1
    while end < len(text) and not text[end].isspace():
        end += 1
    return start, end
