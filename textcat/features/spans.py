"""Find the positions, in a document's texts, of the terms in its vector (row)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from textcat.base.normal_forms import origins
from textcat.features.columns import feature_names
from textcat.features.scripts import are_unspaced, shown
from textcat.features.tfidf import TfIdf
from textcat.features.tokens import (
    MOST_NGRAMS,
    Located,
    TermPlaces,
    Tokens,
    char_ngrams,
    char_places,
    n_char_ngrams,
    n_words_with_ngrams,
    no_garbage_collection,
    padded_places,
)
from textcat.features.zones import SHARED_SPACE, Zoned, plan_texts, zones_of_document


class Span(NamedTuple):
    """The position of some characters in the text of a zone."""

    zone: str  # the name of the zone; "body" if the document is a string
    start: int  # the position of the first character
    end: int  # the position after the last character


class Place(NamedTuple):
    """A column's name, and the spans of a document's text that give the document's row a value there."""

    name: str  # the term or n-gram
    spans: tuple[Span, ...]  # in the order of the texts


class _Occurrences(NamedTuple):
    """The places in a text of those terms and n-grams whose columns are looked for.

    Terms and n-grams of terms come in the order of the text, followed by n-grams of characters in this order.
    """

    columns: np.ndarray  # shape (n_occurrences,), int64
    starts: np.ndarray
    ends: np.ndarray


_NOTHING = (np.zeros(0, np.int64),) * 5


def places(features: TfIdf, document: str | Zoned, wanted: Iterable[int]) -> dict[int, Place]:
    """Find the terms of a document in its texts: return the place of each term, by the column of the term.

    Tokens are found in the normal form of a text (see `Tokens`); spans refer to the text as given. A span covers whole
    tokens or, for an n-gram of characters, only these characters. The text of a span, tokenized alone, must also give
    the column; if it does not, the span is widened up to white space, and if this does not suffice, to the whole text.

    Parameters
    ----------
    features : TfIdf
        Fitted features.
    document : str or document with `zones`
    wanted : iterable of int
        The columns to look for; those that the document's row does not have are left out of the result.
    """
    texts = zones_of_document(document, 0)
    as_read = features.tokens_.as_read
    column_of = _ColumnOf(features, wanted)
    spans_of: dict[int, dict[Span, None]] = {}
    with no_garbage_collection():
        for zone, spaces, placed in _terms_in_zones(features, texts):
            as_given = _GivenPlaces(features.tokens_, texts[zone])
            for space in spaces:
                occurrences = _occurrences_of(features, column_of, placed, space)
                if not len(occurrences.columns):
                    continue
                starts, ends = _widened(features, column_of, as_read(texts[zone]), space, occurrences)
                starts, ends = as_given.of(starts, ends)
                for column, span in _spans_by_column(zone, occurrences.columns, starts, ends):
                    spans_of.setdefault(column, {}).update(span)
    names = features.listed_names()
    return {column: Place(shown(names[column]), tuple(spans)) for column, spans in spans_of.items()}


def word_places(
    features: TfIdf, document: str | Zoned, words: Collection[tuple[str, str]]
) -> dict[tuple[str, str], tuple[Span, ...]]:
    """Find words in a document's texts, also words without a column; return the spans of each.

    A word is a pair: the prefix of the zone that it is a term of, such as "title:", or "" for all zones, and the term.
    """
    texts = zones_of_document(document, 0)
    spans_of: dict[tuple[str, str], list[Span]] = {word: [] for word in words}
    for zone, spaces, placed in _terms_in_zones(features, texts) if words else ():
        as_given = _GivenPlaces(features.tokens_, texts[zone])
        for prefix in (f"{space}:" if space else "" for space in spaces):
            named = [i for i, term in enumerate(placed.terms) if (prefix, term) in spans_of]
            at = np.flatnonzero(np.isin(placed.ids, named))
            starts, ends = as_given.of(placed.starts[at], placed.ends[at])
            for i, start, end in zip(placed.ids[at].tolist(), starts.tolist(), ends.tolist(), strict=True):
                spans_of[prefix, placed.terms[i]].append(Span(zone, start, end))
    return {word: tuple(spans) for word, spans in spans_of.items()}


class _GivenPlaces:
    """Map positions in the normalised text, as `tokens` reads it, to positions in the original text.

    They differ if the original text is not in normal form.
    """

    def __init__(self, tokens: Tokens, text: str):
        self._origins: tuple[np.ndarray, np.ndarray] | None = None
        if tokens.as_read(text) != text:
            first, behind = origins(text)
            self._origins = np.append(first, len(text)), behind

    def of(self, starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return starts and ends in the original text, given starts and ends in the normalised text."""
        if self._origins is None:
            return starts, ends
        first, behind = self._origins
        return first[starts], np.where(ends > starts, behind[ends - 1], first[starts])


def _spans_by_column(
    zone: str, columns: np.ndarray, starts: np.ndarray, ends: np.ndarray
) -> Iterator[tuple[int, dict[Span, None]]]:
    """Yield each column with its spans (places in the text of the zone), in the order of the text."""
    order = np.argsort(columns, kind="stable")
    of_columns, firsts = np.unique(columns[order], return_index=True)
    fields = list(zip(repeat(zone), starts[order].tolist(), ends[order].tolist(), strict=False))
    edges = [*firsts.tolist(), len(fields)]
    for column, first, behind in zip(of_columns.tolist(), edges, edges[1:], strict=False):
        yield column, dict.fromkeys(map(partial(tuple.__new__, Span), fields[first:behind]))


def _terms_in_zones(features: TfIdf, texts: Mapping[str, str]) -> Iterator[tuple[str, list[str], TermPlaces]]:
    """Yield the name of each zone that is read, the values of `space` for its terms, and the places of its terms.

    A zone is a named part of a document. Its terms are looked for among those of the zone alone (`space` is its name),
    among those that all zones share (`space` is ""), or both.
    """
    numbers: dict[str, int] = {} if features.zone_terms is True else {SHARED_SPACE: 0}
    plan = plan_texts(tuple(texts), features.zones, features.zone_terms, numbers)
    spaces = list(numbers)
    of_zone: list[list[str]] = [[] for _ in plan.zones]
    for offset, number in zip(plan.offsets, plan.spaces, strict=True):
        of_zone[offset].append(spaces[number])
    placed = features.tokens_.place_terms([texts[zone] for zone in plan.zones])
    return zip(plan.zones, of_zone, placed, strict=True)


class _ColumnOf:
    """A function that returns the column of a term or n-gram, by name; -1 if the column is not looked for."""

    def __init__(self, features: TfIdf, wanted: Iterable[int]):
        names = features.listed_names()
        self._by_name = {names[column]: column for column in wanted}
        # the beginnings of the names of n-grams
        self._firsts = {name[: space.start()] for name in self._by_name for space in re.finditer(" ", name)}

    def may_begin(self, name: str) -> bool:
        """Return whether an n-gram whose first term has this name may have a column that is looked for.

        If a zone has terms of its own, their names begin with it: "title:word".
        """
        return name in self._firsts

    def of_terms(self, space: str, terms: Sequence[str]) -> np.ndarray:
        """Return the column of each term, or -1: shape (n_terms,), int64.

        `space` is the name of a zone with terms of its own, or "" for terms that all zones share.
        """
        column_of, names = self._by_name.get, feature_names(space, terms)
        return np.array([column_of(name, -1) for name in names], np.int64)

    def beginnings(self, prefix: str, terms: Sequence[str]) -> np.ndarray:
        """Return the positions of terms with which n-grams may begin whose columns are looked for.

        `prefix` comes before the names of terms of a zone, such as "title:"; it is "" for shared terms.
        """
        return np.array([i for i, term in enumerate(terms) if prefix + term in self._firsts], np.int64)

    def __call__(self, space: str, *terms: str) -> int:
        name = " ".join(terms) if len(terms) > 1 else terms[0]
        return self._by_name.get(f"{space}:{name}" if space else name, -1)


def _occurrences_of(features: TfIdf, column_of: _ColumnOf, placed: TermPlaces, space: str) -> _Occurrences:
    """Return where a text has the terms and n-grams that have a column in `column_of`: columns, starts and ends.

    `space` is the name of the text's zone if its own terms are looked for; "" for terms that all zones share.
    """
    prefix = f"{space}:" if space else ""
    is_in_run = _are_in_runs(features, placed.terms)
    parts = [_words(column_of, placed, space)]
    parts += [_ngrams(column_of, placed, is_in_run, space, prefix, n) for n in range(2, features.ngrams + 1)]
    if features.chars:
        parts.append(_chars(column_of, placed, is_in_run, space, features.char_lengths))
    # Words and n-grams of words in the order of their starts, then character n-grams.
    columns, starts, ends, places_, ranks = (
        np.concatenate([np.array(part[k], np.int64) for part in parts]) for k in range(5)
    )
    behind = np.repeat([k == features.ngrams for k in range(len(parts))], [len(part[0]) for part in parts])
    order = np.lexsort((ranks, places_, behind))
    return _Occurrences(columns[order], starts[order], ends[order])


def _words(column_of: _ColumnOf, placed: TermPlaces, space: str) -> tuple[Any, ...]:
    """Return the occurrences in a text of those terms whose columns are looked for: arrays, an entry per occurrence.

    The arrays are columns, starts, ends, the position of the term among the text's terms, and a rank, here 0. The last
    two give the order of words and n-grams.
    `space` is the name of a zone with terms of its own; it is "" for terms that all zones share.
    """
    column = column_of.of_terms(space, placed.terms)
    at = np.flatnonzero(column[placed.ids] >= 0)
    ids = placed.ids[at]
    return column[ids], placed.starts[at], placed.ends[at], at, np.zeros(len(at), np.int64)


def _ngrams(
    column_of: _ColumnOf, placed: TermPlaces, is_in_run: np.ndarray, space: str, prefix: str, n: int
) -> tuple[Any, ...]:
    """Return the same arrays as `_words`, for n-grams of n terms; each distinct n-gram is looked up once.

    The rank of an n-gram of n terms is n - 1. `is_in_run` tells which terms are n-grams of characters of a script
    without spaces between words; these are never part of an n-gram of terms.
    """
    may_begin = np.zeros(len(placed.terms), bool)
    may_begin[column_of.beginnings(prefix, placed.terms)] = True
    first = np.arange(max(min(len(placed.ids) - n, MOST_NGRAMS - n + 1) + 1, 0))
    first = first[may_begin[placed.ids[first]]]
    in_run = is_in_run[placed.ids]
    for k in range(n):  # n-grams of words never contain a term of a script without spaces
        first = first[~in_run[first + k]]
    if not len(first):
        return _NOTHING
    group, examples = placed.ids[first], np.zeros(0, np.int64)
    for k in range(1, n):
        keys = group * max(len(placed.terms), 1) + placed.ids[first + k]
        _, examples, group = np.unique(keys, return_index=True, return_inverse=True)
    terms = [[placed.terms[i] for i in placed.ids[k : k + n].tolist()] for k in first[examples].tolist()]
    column = np.array([column_of(space, *of_ngram) for of_ngram in terms], np.int64)
    chosen = np.flatnonzero(column[group] >= 0)
    at, ids = first[chosen], group[chosen]
    return column[ids], placed.starts[at], placed.ends[at + n - 1], at, np.full(len(at), n - 1)


def _chars(
    column_of: _ColumnOf, placed: TermPlaces, is_in_run: np.ndarray, space: str, lengths: range
) -> tuple[Any, ...]:
    """Return the same arrays as `_words`, for n-grams of characters.

    The rank of an n-gram of characters is its position among those of the term. `is_in_run` tells which terms are
    themselves n-grams of characters, of a script without spaces between words; these have no n-grams.
    """
    sizes = np.array([n_char_ngrams(term, lengths) for term in placed.terms], np.int64)
    sizes[is_in_run] = 0
    distinct, first = np.unique(placed.ids, return_index=True)
    in_order = distinct[np.argsort(first)]
    near = in_order[: n_words_with_ngrams(sizes[in_order])]
    words = np.flatnonzero(np.isin(placed.ids, near) & ~is_in_run[placed.ids])
    order = words[np.argsort(placed.ids[words], kind="stable")]
    ids, firsts = np.unique(placed.ids[order], return_index=True)
    rows: list[tuple[int, int, int, int, int]] = []  # one for each distinct term
    for id_ in ids.tolist():
        token, term = placed.tokens[id_], placed.terms[id_]
        around = padded_places(Located(term, 0, len(token), token))
        padded = f" {term.lower()} "
        for k, (start, end) in enumerate(char_places(len(padded), lengths)):
            column = column_of(space, f"~{padded[start:end]}~")
            if column >= 0:
                rows.append((id_, column, around[start][0], around[end - 1][1], k))
    at_of = dict(zip(ids.tolist(), np.split(order, firsts[1:]), strict=False))
    at = np.concatenate([np.zeros(0, np.int64), *(at_of[id_] for id_, *_ in rows)])
    which = np.repeat(np.arange(len(rows)), [len(at_of[id_]) for id_, *_ in rows])
    _, column, starts, ends, ranks = np.array(rows, np.int64).reshape(-1, 5)[which].T
    return column, placed.starts[at] + starts, placed.starts[at] + ends, at, ranks


def _columns_alone(features: TfIdf, column_of: _ColumnOf, located: Sequence[Located], space: str) -> Iterator[int]:
    """Yield the columns of the terms and n-grams of a piece of text, given the piece's tokens that are terms.

    `space` is the name of a zone with terms of its own, or "" for terms that all zones share.
    """
    terms, prefix = [token.term for token in located], f"{space}:" if space else ""
    is_in_run = _are_in_runs(features, terms).tolist()
    for i, term in enumerate(terms):
        yield column_of(space, term)
        if features.ngrams > 1 and column_of.may_begin(prefix + term):
            for n in range(2, min(features.ngrams, len(terms) - i) + 1):
                if not any(is_in_run[i : i + n]):
                    yield column_of(space, *terms[i : i + n])
        if features.chars and not is_in_run[i]:
            yield from (column_of(space, f"~{chars}~") for chars in char_ngrams(term, features.char_lengths))


def _are_in_runs(features: TfIdf, terms: Sequence[str]) -> np.ndarray:
    """Return a bool array: whether each term is an n-gram of characters of a script without spaces between words.

    Such terms are never part of other n-grams.
    """
    if not features.tokens_.divides_runs:
        return np.zeros(len(terms), bool)
    return np.array(are_unspaced(terms), bool)


def _widened(
    features: TfIdf, column_of: _ColumnOf, text: str, space: str, found: _Occurrences
) -> tuple[np.ndarray, np.ndarray]:
    """Return the starts and ends of occurrences, widened until the text between them, taken alone, has the column.

    A span that does not have the column is widened up to white space first, then to the whole text.
    """
    starts, ends = found.starts.copy(), found.ends.copy()
    unsure = np.arange(len(starts))
    for widen in (_to_white_space, _to_whole):
        edges, which = np.unique(starts[unsure] * (len(text) + 1) + ends[unsure], return_inverse=True)
        number_of: dict[str, int] = {}
        pieces = (text[edge // (len(text) + 1) : edge % (len(text) + 1)] for edge in edges.tolist())
        numbers = np.array([number_of.setdefault(piece, len(number_of)) for piece in pieces], np.int64)
        located = features.tokens_.locate_alone(number_of)
        columns = [set(_columns_alone(features, column_of, tokens, space)) for tokens in located]
        n_columns = int(found.columns.max(initial=0)) + 1
        pairs, which = np.unique(numbers[which] * n_columns + found.columns[unsure], return_inverse=True)
        stands = np.array([pair % n_columns in columns[pair // n_columns] for pair in pairs.tolist()], bool)
        unsure = unsure[~stands[which]]
        if not len(unsure):
            break
        starts[unsure], ends[unsure] = widen(text, starts[unsure], ends[unsure])
    return starts, ends


def _to_white_space(text: str, starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    white = np.array([-1, *(match.start() for match in re.finditer(r"\s", text)), len(text)])
    return white[np.searchsorted(white, starts) - 1] + 1, white[np.searchsorted(white, ends)]


def _to_whole(text: str, starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros_like(starts), np.full_like(ends, len(text))
