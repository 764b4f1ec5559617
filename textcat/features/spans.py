"""Find where in a document's texts the terms of its row stand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from textcat.features.tokens import Located, _char_ngrams, _padded_places
from textcat.features.vectorizer import Vectorizer
from textcat.features.zones import _SHARED, Zoned, _names_of, _plan, _zones

_Key = tuple[str, ...]  # the terms that an n-gram consists of, or one


class Span(NamedTuple):
    """A piece of a zone's text, in characters."""

    zone: str  # "body" of a document that is a string
    start: int
    end: int


class Place(NamedTuple):
    """Where a column of a row comes from."""

    name: str  # the term or n-gram; with columns by hash those that the document has of it
    spans: tuple[Span, ...]  # in the order of the texts


class _Found(NamedTuple):
    column: int
    name: str
    start: int
    end: int
    words: tuple[int, ...]  # its terms, by their positions in the text


def places(features: Vectorizer, document: str | Zoned, wanted: Iterable[int]) -> dict[int, Place]:
    """Return where columns of a document's row come from, by column: of those wanted that the document has.

    The text of every span, counted by itself, gives the column, too. So a span is that of the tokens, or, for an n-gram
    of characters, of these; but where a piece would be cut into other tokens than it is in the text, the span is made
    wider: as far as white space, or to the whole text.

    Parameters
    ----------
    features : Vectorizer
        A fitted one.
    document : str or document with `zones`
    wanted : iterable of int

    Returns
    -------
    dict of int to Place
    """
    texts, wanted = _zones(document, 0), set(wanted)
    zones, parts = _spaces_of(features, tuple(texts))
    found: list[tuple[str, str, _Found]] = []
    for zone, located in zip(zones, features.tokens_._located([texts[zone] for zone in zones]), strict=True):
        for space in parts[zone]:
            found += [(zone, space, each) for each in _found(features, located, space) if each.column in wanted]
    spans = _standing(features, texts, found)
    names: dict[int, dict[str, None]] = {}
    spans_of: dict[int, dict[Span, None]] = {}
    for (_, _, each), span in zip(found, spans, strict=True):
        names.setdefault(each.column, {})[each.name] = None
        spans_of.setdefault(each.column, {})[span] = None
    return {column: Place(" | ".join(names[column]), tuple(spans_of[column])) for column in names}


def _spaces_of(features: Vectorizer, names: tuple[str, ...]) -> tuple[tuple[str, ...], dict[str, list[str]]]:
    """Return the zones that are read, of those of a document, and the spaces that the terms of each belong to."""
    spaces: dict[str, int] = {} if features.apart is True else {_SHARED: 0}
    plan = _plan(names, features.zones, features.apart, spaces)
    of_zone: dict[str, list[str]] = {zone: [] for zone in plan.zones}
    for offset, space in zip(plan.offsets, plan.spaces, strict=True):
        of_zone[plan.zones[offset]].append(list(spaces)[space])
    return plan.zones, of_zone


def _found(features: Vectorizer, located: Sequence[Located], space: str) -> Iterator[_Found]:
    """Yield the terms and n-grams of a text that have a column, given where its terms stand."""
    column_of = (
        _columns_by_name(features.vocabulary_) if features.vocabulary_ is not None else _columns_by_hash(features)
    )
    known: dict[_Key, tuple[int, str]] = {}

    def look_up(key: _Key) -> tuple[int, str]:
        if key not in known:
            named = _names_of(space, key[:1])[0], *key[1:]
            known[key] = column_of(space, key), " ".join(named)
        return known[key]

    for i, (term, start, end, _) in enumerate(located):
        column, name = look_up((term,))
        if column >= 0:
            yield _Found(column, name, start, end, (i,))
        for n in range(2, min(features.ngrams, len(located) - i) + 1):
            column, name = look_up(tuple([each.term for each in located[i : i + n]]))
            if column >= 0:
                yield _Found(column, name, start, located[i + n - 1].end, tuple(range(i, i + n)))
    for i, each in enumerate(located if features.chars else ()):
        around = _padded_places(each)
        for k, chars in enumerate(_char_ngrams(each.term, features.chars)):
            column, name = look_up((f"~{chars}~",))
            if column >= 0:
                covered = around[k : k + len(chars)]
                yield _Found(column, name, each.start + covered[0][0], each.start + covered[-1][1], (i,))


def _columns_by_name(vocabulary: Mapping[str, int]) -> Callable[[str, _Key], int]:
    get = vocabulary.get
    return lambda space, key: get(f"{space}:{' '.join(key)}" if space else " ".join(key), -1)


def _columns_by_hash(features: Vectorizer) -> Callable[[str, _Key], int]:
    from sklearn.utils import murmurhash3_32

    from textcat.features.zones import _hashes_of

    def hash_of(space: str, key: _Key) -> int:
        last = int(_hashes_of(_names_of(space, key[-1:]))[0])
        if len(key) == 1:
            return last
        mixed = (31 * hash_of(space, key[:-1]) + last + 2**31) % 2**32 - 2**31
        return int(murmurhash3_32(mixed))

    mask = 2 ** (features.hash_bits or 0) - 1
    return lambda space, key: hash_of(space, key) & mask


def _standing(features: Vectorizer, texts: Mapping[str, str], found: list[tuple[str, str, _Found]]) -> list[Span]:
    """Return a span for each thing found whose text gives its column by itself: the narrowest that is tried."""
    spans = [Span(zone, each.start, each.end) for zone, _, each in found]
    for widen in (_to_white_space, lambda text, start, end: (0, len(text))):
        pieces = dict.fromkeys(texts[zone][start:end] for zone, start, end in spans)
        located = dict(zip(pieces, features.tokens_._located(pieces), strict=True))
        columns: dict[tuple[str, str], set[int]] = {}
        failed = False
        for k, ((zone, space, each), span) in enumerate(zip(found, spans, strict=True)):
            piece = texts[zone][span.start : span.end]
            if (piece, space) not in columns:
                columns[piece, space] = {one.column for one in _found(features, located[piece], space)}
            if each.column not in columns[piece, space]:
                spans[k], failed = Span(zone, *widen(texts[zone], span.start, span.end)), True
        if not failed:
            break
    return spans


def _to_white_space(text: str, start: int, end: int) -> tuple[int, int]:
    while start > 0 and not text[start - 1].isspace():
        start -= 1
    while end < len(text) and not text[end].isspace():
        end += 1
    return start, end
