"""Read the tables of a language's spaCy tokenizer from spaCy, a model's file or the user's cache."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import cache
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from textcat.base.disk import installed_spacy, installed_version, user_cache, write_atomically
from textcat.base.errors import TextcatError
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
    Regexes,
    read_affixes,
    read_url,
    regex_function,
    tokenizer_regexes,
)

_FORMAT = 1  # of what is kept in the cache: another number is another file
_ALL_BITS = ASCII | OTHER | ABSENT
_DAMAGES = (AttributeError, KeyError, TypeError, ValueError)


class LanguageTables(NamedTuple):
    """Hold the rules of spaCy's tokenizer of a language, by which texts get its tokens without importing spaCy."""

    lang: str  # the code of the language, such as "en"
    spacy: str  # the version of spaCy whose tokenizer they describe
    alternatives: Affixes  # of the regexes of prefixes, suffixes and infixes
    url: tuple[int, ...]  # sets of characters: a URL that stays whole has a character of each set
    regexes: Regexes  # of the tokenizer's callables; they are run where the alternatives cannot tell
    tokens: Mapping[str, tuple[str, ...]]  # the tokens of each special case, by its text
    cuts: Mapping[str, tuple[str, ...]]  # special cases that are searched for among tokens: as affixes cut their texts
    stop_words: Collection[str] | None  # in lower case; None if the language finds them in another way

    def as_json(self) -> str:
        """Return the tables as a text of JSON, which `from_json` reads."""
        sets: dict[int, int] = {}  # of characters, numbered
        numbered = lambda masks: [sets.setdefault(mask, len(sets)) for mask in masks]  # noqa: E731
        alternatives = [
            None
            if part is None
            else [[numbered(alternative.before + alternative.ahead), alternative.width] for alternative in part]
            for part in self.alternatives
        ]
        changed = {"alternatives": alternatives, "url": numbered(self.url), "stop_words": sorted(self.stop_words or ())}
        entries = {**self._asdict(), **changed}
        return json.dumps({**entries, "sets": [f"{mask & _ALL_BITS:x}" for mask in sets]})

    @classmethod
    def from_json(cls, content: str | bytes) -> LanguageTables:
        """Read tables that `as_json` has written.

        Raise AttributeError, KeyError, TypeError or ValueError for any other content.
        """
        entries = json.loads(content)
        sets = dict(enumerate(int(mask, 16) for mask in entries.pop("sets")))
        if not all(0 <= mask <= _ALL_BITS for mask in sets.values()):
            raise ValueError("no sets of characters")
        sets = {number: ANY_CHARACTER if mask == _ALL_BITS else mask for number, mask in sets.items()}
        prefixes, suffixes, infixes = entries.pop("alternatives")
        tables = cls(
            alternatives=(
                _alternatives(prefixes, sets),
                _alternatives(suffixes, sets, back=True),
                _alternatives(infixes, sets),
            ),
            url=tuple(sets[number] for number in entries.pop("url")),
            regexes={name: (text, flags) for name, (text, flags) in entries.pop("regexes").items()},
            cuts={rule: tuple(cut) for rule, cut in entries.pop("cuts").items()},
            tokens={rule: tuple(tokens) for rule, tokens in entries.pop("tokens").items()},
            stop_words=frozenset(entries.pop("stop_words")),
            **entries,
        )
        texts = [tables.lang, tables.spacy, *(word for word in tables.stop_words or () if word != ""), *tables.tokens]
        texts += chain(*tables.cuts.values(), *tables.tokens.values())
        has_all_tokens = set(tables.cuts) <= set(tables.tokens) and all(tables.cuts.values())
        if not has_all_tokens or not all(isinstance(text, str) and text for text in texts):
            raise ValueError("no tables of a tokenizer")
        needed = [name for name, part in zip(TOKENIZER_METHODS, tables.alternatives, strict=False) if part != []]
        if not set(needed) <= set(tables.regexes) <= set(TOKENIZER_METHODS):
            raise ValueError("no regexes of a tokenizer")
        for name in tables.regexes:
            regex_function(tables.regexes, name)
        return tables


@cache
def kept_tables(lang: str) -> LanguageTables | None:
    """Return the cached tables of a language for the installed spaCy; None if they are missing or damaged."""
    with suppress(OSError, TextcatError, *_DAMAGES):
        digest, content = _cache_file(lang).read_bytes().split(b"\n", 1)
        if digest == sha256(content).hexdigest().encode():
            return LanguageTables.from_json(content)
    return None


def keep_tables(tables: LanguageTables) -> None:
    """Write the tables of a language to the user's cache, if possible: reading them from spaCy takes half a second."""
    content = tables.as_json()
    with suppress(OSError, TextcatError):
        write_atomically(_cache_file(tables.lang), f"{sha256(content.encode()).hexdigest()}\n{content}")


def _cache_file(lang: str) -> Path:
    if not lang.isidentifier():
        raise FileNotFoundError(lang)  # no code of a language, which might name a file elsewhere
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
    # Those without an affix, which are never cut, are no part of spaCy's own matcher.
    finders = tokenizer.find_prefix, tokenizer.find_suffix, tokenizer.find_infix
    every = not tokenizer.faster_heuristics
    matched = [rule for rule in tokenizer.rules if every or " " in rule or any(find(rule) for find in finders)]
    return LanguageTables(
        lang,
        installed_version("spacy"),
        read_affixes(regexes),
        read_url(regexes),
        regexes,
        tokens={rule: tuple(intify_attrs(part)[ORTH] for part in parts) for rule, parts in tokenizer.rules.items()},
        cuts={rule: tuple(token.text for token in bare(rule)) for rule in matched},
        stop_words=stop_words,
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
        # An affix is made of characters that are there: compiled code relies on it.
        exact = 0 < width <= DEPTH and not any(mask & ABSENT for mask in near[:width])
        if type(width) is not int or not (exact or width == -1):
            raise ValueError("no width of an affix")
        if len(masks) != 2 * DEPTH:
            raise ValueError("no sets of characters around an affix")
        alternatives.append(alternative)
    return alternatives
