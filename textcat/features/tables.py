"""What spaCy's tokenizer of a language holds, as one plain value: read from spaCy, or from a model's file."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from importlib.metadata import version
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from textcat.features._token_cache import DEPTH
from textcat.features.affixes import ABSENT, ANY_CHARACTER, _Alternative, _Alternatives

if TYPE_CHECKING:
    from spacy.language import Language as SpacyLanguage

    from textcat.features.affixes import _AffixTables

SEPARATOR = "\n"


class LanguageTables(NamedTuple):
    """What answers most spans of text as the tokenizer of `spacy.blank(lang)` does, without importing spaCy."""

    lang: str
    spacy: str  # the version of which the tokenizer is
    alternatives: tuple[_Alternatives, _Alternatives, _Alternatives]  # of prefixes, suffixes and infixes
    whole: bool  # whether something may keep a span whole that has affixes (spaCy's `token_match`)
    joinable: bool  # whether spans have the same tokens as lines of one text
    cuts: Mapping[str, tuple[str, ...]]  # the special cases as the tokenizer's own matcher has them: cut by affixes
    url: tuple[int, ...] | None  # sets of characters of each of which a URL that stays whole has one; None: none stays
    recut: tuple[str, ...]  # the special cases that spaCy's table has with other tokens than these
    tokens: Mapping[str, tuple[str, ...]]  # the tokens that each special case has as a text of its own
    stop_words: Collection[str] | None  # in lower case; None if the language has its own ways, and no file of tables

    def as_json(self) -> str:
        """Return the tables as `from_json` reads them."""
        sets: dict[int, int] = {}  # of characters, numbered
        numbered = lambda masks: [sets.setdefault(mask, len(sets)) for mask in masks]  # noqa: E731
        alternatives = [
            None if part is None else [[numbered(each.before + each.ahead), each.width] for each in part]
            for part in self.alternatives
        ]
        url = None if self.url is None else numbered(self.url)
        changed = {"alternatives": alternatives, "url": url, "stop_words": sorted(self.stop_words or ())}
        entries = {**self._asdict(), **changed}
        return json.dumps({**entries, "sets": [f"{mask:x}" for mask in sets]})

    @classmethod
    def from_json(cls, content: str | bytes) -> LanguageTables:
        """Read tables; what is not as `as_json` writes it raises KeyError, TypeError or ValueError."""
        entries = json.loads(content)
        sets = dict(enumerate(int(mask, 16) for mask in entries.pop("sets")))
        if not all(0 <= mask <= ANY_CHARACTER for mask in sets.values()):
            raise ValueError("no sets of characters")
        prefixes, suffixes, infixes = entries.pop("alternatives")
        url = entries.pop("url")
        tables = cls(
            alternatives=(
                _alternatives(prefixes, sets, back=False),
                _alternatives(suffixes, sets, back=True),
                _alternatives(infixes, sets, back=False),
            ),
            url=None if url is None else tuple(sets[number] for number in url),
            cuts={rule: tuple(cut) for rule, cut in entries.pop("cuts").items()},
            tokens={rule: tuple(tokens) for rule, tokens in entries.pop("tokens").items()},
            recut=tuple(entries.pop("recut")),
            stop_words=frozenset(entries.pop("stop_words")),
            **entries,
        )
        texts = [tables.lang, tables.spacy, *tables.recut, *(tables.stop_words or ()), *tables.tokens]
        texts += chain(*tables.cuts.values(), *tables.tokens.values())
        bools = [tables.whole, tables.joinable]
        known = set(tables.recut) <= set(tables.cuts)
        if not known or not all(isinstance(text, str) and text for text in texts) or {*map(type, bools)} != {bool}:
            raise ValueError("no tables of a tokenizer")
        return tables


def _read_tables(
    lang: str, nlp: SpacyLanguage, affixes: _AffixTables, stop_words: Collection[str] | None
) -> LanguageTables:
    """Read the tables of a spaCy tokenizer that splits at white space, and has these affixes."""
    from spacy.attrs import ORTH, intify_attrs

    rules = nlp.tokenizer.rules
    bare = affixes.rebuild(nlp.tokenizer, nlp.vocab, rules={})
    cuts = {rule: tuple(token.text for token in bare(rule)) for rule in rules}
    results = {rule: tuple(intify_attrs(part)[ORTH] for part in parts) for rule, parts in rules.items()}
    alone = [token.text for token in nlp.tokenizer(SEPARATOR)] == [SEPARATOR]
    return LanguageTables(
        lang,
        version("spacy"),
        affixes.alternatives,
        whole=affixes.token_match is not None,
        joinable=alone and not any(SEPARATOR in cut for cut in cuts.values() if len(cut) > 1),
        cuts=cuts,
        url=affixes.url,
        recut=tuple(rule for rule in rules if cuts[rule] != results[rule]),
        tokens={rule: tuple(token.text for token in nlp.tokenizer(rule)) for rule in rules},
        stop_words=stop_words,
    )


def _alternatives(entries: Any, sets: Mapping[int, int], *, back: bool) -> _Alternatives:
    """Return the alternatives of one affix, which look back from their point or ahead."""
    if entries is None:
        return None
    alternatives = []
    for numbers, width in entries:
        masks = tuple(sets[number] for number in numbers)
        each = _Alternative(masks[:DEPTH], masks[DEPTH:], width)
        near = each.before if back else each.ahead
        # An affix is made of characters that are there: compiled code relies on it.
        exact = 0 < width <= DEPTH and not any(mask & ABSENT for mask in near[:width])
        if type(width) is not int or not (exact or width == -1):
            raise ValueError("no width of an affix")
        if len(masks) != 2 * DEPTH:
            raise ValueError("no sets of characters around an affix")
        alternatives.append(each)
    return alternatives
