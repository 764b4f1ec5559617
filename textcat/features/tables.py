"""Read the tables of a language's spaCy tokenizer: from spaCy, from a model's file, or from the user's cache."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from textcat.base.disk import installed_spacy, installed_version, user_cache, write_atomically
from textcat.base.errors import TextcatError
from textcat.base.records import MISFITS, entries_of, read_record
from textcat.features.affixes import (
    ABSENT,
    ANY_CHARACTER,
    ASCII,
    DEPTH,
    OTHER,
    TOKENIZER_METHODS,
    Affixes,
    Alternative,
    Alternatives,
    read_affixes,
    read_url,
    regex_function,
    tokenizer_regexes,
)

_FORMAT = 1  # version of cached tables, part of the file name
_ALL_BITS = ASCII | OTHER | ABSENT


@dataclass(frozen=True)
class LanguageTables:
    """The rules of a language's spaCy tokenizer, as tables that tokenize texts without importing spaCy.

    The fields are the entries of a file. Sets of characters are in `sets`; `alternatives` and `url` number them.
    """

    lang: str  # the code of the language, such as "en"
    spacy: str  # the version of spaCy whose tokenizer they describe
    # for each of prefixes, suffixes and infixes: the sets around each alternative's point, and its width
    alternatives: list[list[Any] | None]
    url: list[int]  # a URL that stays whole has a character of each set
    regexes: dict[str, list[Any]]  # regexes of the tokenizer's callables, run where the alternatives cannot decide
    tokens: dict[str, list[str]]  # the tokens of each special case, by its text
    cuts: dict[str, list[str]]  # special cases that are searched for among tokens, divided by the affix rules
    stop_words: list[str] | None  # in lower case; None if the language determines them otherwise
    sets: list[str]  # bit masks, in hexadecimal digits

    @classmethod
    @lru_cache(maxsize=8)
    def from_json(cls, content: str | bytes) -> LanguageTables:
        """Read the tables of a tokenizer from JSON; raise one of the exceptions `MISFITS` if they are not valid.

        Equal contents give the same object, which models of one language share.
        """
        tables = read_record(cls, json.loads(content), "in the tables of a tokenizer")
        texts = [tables.lang, tables.spacy, *tables.tokens, *chain(*tables.cuts.values(), *tables.tokens.values())]
        has_all_tokens = set(tables.cuts) <= set(tables.tokens) and all(tables.cuts.values())
        has_all_sets = set(tables.url) <= tables._masks.keys()
        if not has_all_sets or not has_all_tokens or not all(texts) or tables.stop_words is None:
            raise ValueError("no tables of a tokenizer")
        needed = [name for name, part in zip(TOKENIZER_METHODS, tables.affixes, strict=False) if part != []]
        if not set(needed) <= set(tables.regexes) <= set(TOKENIZER_METHODS):
            raise ValueError("no regexes of a tokenizer")
        for name in tables.regexes:
            regex_function(tables.regexes, name)
        return tables

    @cached_property
    def json(self) -> str:
        """The tables as a text of JSON, which `from_json` reads."""
        return json.dumps(entries_of(self))

    @cached_property
    def affixes(self) -> Affixes:
        """The alternatives of the regexes of prefixes, suffixes and infixes."""
        prefixes, suffixes, infixes = self.alternatives
        sets = self._masks
        return _alternatives(prefixes, sets), _alternatives(suffixes, sets, back=True), _alternatives(infixes, sets)

    @cached_property
    def special_edges(self) -> np.ndarray:
        """The characters around those boundaries of two spans that a special case of the tokenizer may cross.

        A span is a piece of text between white space. The array is uint32, of shape (n, 4); each row has the last two
        characters of a span and the first two of the next span. A 0 in the first or last place stands for any
        character.
        """
        halves = {("".join(cut[:i]), "".join(cut[i:])) for cut in self.cuts.values() for i in range(1, len(cut))}
        edges = sorted({("\0" + left)[-2:] + (right + "\0")[:2] for left, right in halves})
        return np.array([list(map(ord, edge)) for edge in edges], np.uint32).reshape(-1, 4)

    @property
    def url_sets(self) -> list[int]:
        """The sets of characters of which a URL that stays whole has one each, as bit masks."""
        return [self._masks[number] for number in self.url]

    @cached_property
    def _masks(self) -> dict[int, int]:
        masks = [int(digits, 16) for digits in self.sets]
        if not all(0 <= mask <= _ALL_BITS for mask in masks):
            raise ValueError("no sets of characters")
        return {number: ANY_CHARACTER if mask == _ALL_BITS else mask for number, mask in enumerate(masks)}


@cache
def read_cached_tables(lang: str) -> LanguageTables | None:
    """Return the cached tables of a language for the installed spaCy; None if they are missing or damaged."""
    with suppress(OSError, *MISFITS):
        digest, content = _cache_file(lang).read_bytes().split(b"\n", 1)
        if digest == sha256(content).hexdigest().encode():
            return LanguageTables.from_json(content)
    return None


def cache_tables(tables: LanguageTables) -> None:
    """Write the tables of a language to the user's cache, if possible: reading them from spaCy takes half a second."""
    content = tables.json
    with suppress(OSError, TextcatError):
        write_atomically(_cache_file(tables.lang), f"{sha256(content.encode()).hexdigest()}\n{content}")


def _cache_file(lang: str) -> Path:
    if not lang.isidentifier():
        raise FileNotFoundError(lang)  # not the code of a language; it might name a file elsewhere
    name = f"{lang}-{installed_spacy()}-{_FORMAT}.json"
    return user_cache() / "languages" / name


def read_tables(lang: str, tokenizer: Any, stop_words: Collection[str] | None) -> LanguageTables | None:
    """Return tables of a spaCy tokenizer's rules and of the stop words, by which texts are tokenized without spaCy.

    Return None if the tokenizer is not exactly of spaCy's class `Tokenizer`, or if its rules are not regexes.
    `stop_words` are stored in the tables as they are.
    """
    from spacy.attrs import ORTH, intify_attrs
    from spacy.tokenizer import Tokenizer

    if type(tokenizer) is not Tokenizer or (regexes := tokenizer_regexes(tokenizer)) is None:
        return None
    asked = {name: getattr(tokenizer, name) for name in TOKENIZER_METHODS}
    bare = Tokenizer(tokenizer.vocab, rules={}, **asked)
    # Special cases without an affix are never divided, so spaCy's matcher does not include them.
    finders = tokenizer.find_prefix, tokenizer.find_suffix, tokenizer.find_infix
    every = not tokenizer.faster_heuristics
    matched = [rule for rule in tokenizer.rules if every or " " in rule or any(find(rule) for find in finders)]
    affixes, sets = read_affixes(regexes), dict[int, int]()  # number the sets by their masks

    def numbered(masks: Iterable[int]) -> list[int]:
        return [sets.setdefault(mask, len(sets)) for mask in masks]

    return LanguageTables(
        lang,
        installed_version("spacy"),
        [part if part is None else [[numbered(a.before + a.ahead), a.width] for a in part] for part in affixes],
        numbered(read_url(regexes)),
        {name: [*regex] for name, regex in regexes.items()},
        tokens={rule: [intify_attrs(part)[ORTH] for part in parts] for rule, parts in tokenizer.rules.items()},
        cuts={rule: [token.text for token in bare(rule)] for rule in matched},
        stop_words=None if stop_words is None else sorted(stop_words),
        sets=[f"{mask & _ALL_BITS:x}" for mask in sets],
    )


def _alternatives(entries: Any, sets: Mapping[int, int], *, back: bool = False) -> Alternatives:
    """Return the alternatives of an affix regex, given their entries in JSON and the sets of characters by number.

    An affix is a prefix, suffix or infix. `back` is True for suffixes, which lie before the point where they are
    sought. ValueError is raised for invalid entries.
    """
    if entries is None:
        return None
    alternatives = []
    for numbers, width in entries:
        masks = tuple(sets[number] for number in numbers)
        alternative = Alternative(masks[:DEPTH], masks[DEPTH:], width)
        near = alternative.before if back else alternative.ahead
        # An affix is not empty: compiled code relies on it.
        exact = 0 < width <= DEPTH and not any(mask & ABSENT for mask in near[:width])
        if type(width) is not int or not (exact or width == -1):
            raise ValueError("no width of an affix")
        if len(masks) != 2 * DEPTH:
            raise ValueError("no sets of characters around an affix")
        alternatives.append(alternative)
    return alternatives
