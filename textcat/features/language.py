"""Tokenize as `spacy.blank(lang)` does, but faster; turn English plurals into singulars."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection
from functools import cache, partial, reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from textcat.base.errors import TextcatError
from textcat.base.normal_forms import normalised
from textcat.features._token_cache import AffixTable as AffixTable
from textcat.features._token_cache import SpanCutter, WordTable
from textcat.features.affixes import TOKENIZER_METHODS, read_exact_affixes, regex_function
from textcat.features.tables import LanguageTables, cache_tables, read_cached_tables, read_tables

if TYPE_CHECKING:
    from spacy.language import Language as SpacyLanguage

MAX_LEXEMES = 500_000  # the tables of so many lexemes take some 30 MB
_PACKAGES = {"vi": "pyvi"}  # spaCy defines extras for other languages: spacy[ja], spacy[ko], spacy[th]
# spaCy's time grows with the square of a span's length: longer spans are cut by a simple rule.
LONGEST_SPAN = 300  # in characters; the longest span in Reuters-21578, 20 Newsgroups and a million titles has 243
PATIENCE = 20_000  # characters tested by regexes before better tables are built, which takes some 50 ms
_RUNS = re.compile(r"\w+|\W+")
_ONLY_LATIN = re.compile("[\0-\xab\xae-\u017e‘’]*")
_LONE_SURROGATES = re.compile("[\ud800-\udfff]")
_SHORTEST_PLURAL = 4  # minimum letters of a plural; "gas", "was" and "yes" are not plurals


class UnknownLanguageError(TextcatError, ValueError):
    """Raised for a language that spaCy does not have."""


class MissingPackageError(TextcatError, ImportError):
    """Raised for a language whose tokenizer needs a package that is not installed."""


class _Attributes(NamedTuple):
    """Functions that return the attributes of a token, given its text, as spaCy does."""

    lower: Callable[[str], str]
    is_space: Callable[[str], Any]
    is_stop: Callable[[str], Any]
    stop_words: Collection[str] | None  # in lower case; None if the language does not use spaCy's default function

    def in_normal_form(self) -> _Attributes:
        """Return the attributes for texts in normal form, with stop words in this form, too."""
        if self.stop_words is None:
            return self
        if _ONLY_LATIN.fullmatch("".join(self.stop_words)):  # in normal form, which spares its tables some ms
            return self
        return _usual_attributes(frozenset(map(normalised, self.stop_words)))


def _usual_attributes(stop_words: Collection[str]) -> _Attributes:
    # Where spaCy's function equals a string method, use that: it is several times as fast.
    return _Attributes(str.lower, str.isspace, lambda token: token.lower() in stop_words, stop_words)


def _read_attributes(get: dict[int, Callable[[str], Any]]) -> _Attributes:
    """Read the attributes of a language; `get` maps spaCy's attribute numbers to functions."""
    from spacy.attrs import IS_SPACE, IS_STOP, LOWER
    from spacy.lang import lex_attrs

    is_stop: Any = get[IS_STOP]
    getters = get[LOWER], get[IS_SPACE]
    usual = isinstance(is_stop, partial) and is_stop.func is lex_attrs.is_stop and set(is_stop.keywords) == {"stops"}
    if usual and getters == (lex_attrs.lower, lex_attrs.is_space):
        return _usual_attributes(is_stop.keywords["stops"])
    return _Attributes(*getters, is_stop, None)


class _Language:
    """Tokenize texts of a language, such as "en", as `spacy.blank` does.

    If the language has tables, texts are tokenized by the tables, without spaCy. A language has no tables if its
    tokenizer is not spaCy's class `Tokenizer` (Chinese, Japanese), or is not made of regexes: then spaCy tokenizes
    whole texts.
    """

    def __init__(self, lang: str, tables: LanguageTables | None, attributes: _Attributes) -> None:
        self._lang, self.tables, self.attributes = lang, tables, attributes
        self.nlp: Any = None  # None until a text needs spaCy, in a language without tables
        self.splits_at_space = tables is not None
        if tables is not None:
            self._take(tables)

    def _take(self, tables: LanguageTables) -> None:
        asked = [regex_function(tables.regexes, name) for name in TOKENIZER_METHODS]
        if asked[0] is not None and tables.affixes[0] is not None:
            # Each alternative of a prefix begins with ^, so later positions need not be searched.
            asked[0] = asked[0].__self__.match  # type: ignore[attr-defined]
        cuts = tables.cuts.values()
        specials = {*tables.tokens, *map("".join, cuts)}
        exact = partial(read_exact_affixes, tables.regexes)
        self._cutter = SpanCutter(asked, tables.affixes, tables.url_sets, tables.tokens, specials, exact, PATIENCE)
        self._specials = dict(tables.tokens)
        self._cut_tokens: dict[str, Any] = {}  # special cases, in the form that `SpanCutter.cut_text` takes
        # pairs of neighbouring tokens in a special case
        self._meetings: dict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
        for cut in cuts:
            reduce(lambda node, token: node.setdefault(token, {}), cut, self._cut_tokens)[""] = True
            for left, right in pairwise(cut):
                self._meetings[left[-1], right[0]].add((left, right))
        # If a span begins or ends with one of these, the matcher may have seen other tokens than the output.
        self._recut = tuple(rule for rule, cut in tables.cuts.items() if tables.tokens[rule] != cut)

    def special_edges(self) -> np.ndarray:
        """Return the characters around boundaries of spans that a special case of the tokenizer may cross.

        The array is that of `LanguageTables.special_edges`, or empty if the language has no tables.
        """
        return np.zeros((0, 4), np.uint32) if self.tables is None else self.tables.special_edges

    def may_meet(self, left: str, last: str, right: str, first: str) -> bool:
        """Return whether a special case of the tokenizer may lie across two neighbouring spans, `left` and `right`.

        A span is a piece of text between white space. `last` is the last token of the left span, and `first` the first
        token of the right one. spaCy looks for special cases in whole texts and ignores white space. A match across the
        boundary changes no token itself, but it prevents shorter matches on either side. The tokens of the two spans
        together may then differ from the tokens of each span alone.
        """
        return any(
            (last == one or (left.endswith(one) and left.endswith(self._recut)))
            and (first == other or (right.startswith(other) and right.startswith(self._recut)))
            for one, other in self._meetings.get((left[-1], right[0]), ())
        )

    def cut_spans(self, spans: list[str]) -> tuple[list[str], np.ndarray]:
        """Tokenize each span (a text between white space) alone; return all tokens, and how many each span has."""
        return self._cutter.cut(
            spans, LONGEST_SPAN, _RUNS.findall, replace_surrogates, self._cut_tokens, self._specials
        )

    def word_table(
        self, ids: dict[str, int], stops: Collection[str], plurals: bool, other: int, kind: int
    ) -> WordTable | None:
        """Return a table that finds the terms of simple words in ASCII without the tokenizer.

        For the parameters see `WordTable`. None is returned if the language does not split texts at every space.
        """
        if not self.splits_at_space:
            return None
        return WordTable(ids, stops, plurals, other, kind, self._cutter)

    def cut_text(self, text: str) -> list[str]:
        """Return the tokens of one text, which is tokenized as a whole."""
        text = replace_surrogates(text)
        if not self.splits_at_space:
            return self._by_spacy(text)
        return self._cutter.cut_text(text, LONGEST_SPAN, _RUNS.findall, self._cut_tokens, self._specials)

    def trim(self) -> None:
        """Drop spaCy's string tables if they are large; they grow with every new string, even in a memory zone."""
        if self.nlp is not None and len(self.nlp.vocab) >= MAX_LEXEMES:
            self.nlp = None

    def _by_spacy(self, text: str) -> list[str]:
        if self.nlp is None:
            self.nlp = _blank_tokenizer(self._lang)
        nlp = self.nlp
        with nlp.memory_zone():
            orths, positions = np.unique(nlp.make_doc(text).to_array("ORTH"), return_inverse=True)
            strings = [nlp.vocab.strings[orth] for orth in orths.tolist()]
        return [strings[position] for position in positions.tolist()]


def open_language(lang: str, tables: LanguageTables | None = None) -> _Language:
    """Return a new tokenizer of a language, by the given tables, or else by those in the user's cache.

    spaCy is imported only if there are no such tables.
    """
    if tables := tables or read_cached_tables(lang):
        return _Language(lang, tables, _usual_attributes(frozenset(tables.stop_words or ())))
    return _Language(lang, *read_language(lang))


@cache
def stop_word_test(lang: str) -> Callable[[str], Any]:
    """Return a function that tells whether a word is one of spaCy's stop words.

    The word must be in normal form (see `Tokens`); whether its letters are capital or small makes no difference.
    """
    return open_language(lang).attributes.in_normal_form().is_stop


@cache
def read_language(lang: str) -> tuple[LanguageTables | None, _Attributes]:
    """Read a language from the installed spaCy; return its tables (None if it has none) and its attributes."""
    nlp = _blank_tokenizer(lang)
    attributes = _read_attributes(nlp.vocab.lex_attr_getters)
    # Other packages may change their language without a change of spaCy's version, so these tables are not cached in a
    # file.
    is_spacys = type(nlp).__module__.startswith("spacy.lang.")
    tables = read_tables(lang, nlp.tokenizer, attributes.stop_words if is_spacys else None)
    if tables is not None and tables.stop_words is not None:
        cache_tables(tables)
    return tables, attributes


def _blank_tokenizer(lang: str) -> SpacyLanguage:
    nlp = blank(lang)
    nlp.max_length = 2**30 - 1  # a tokenizer needs no limit; the default protects the models of a pipeline
    return nlp


def blank(lang: str) -> SpacyLanguage:
    """Return `spacy.blank(lang)`; raise UnknownLanguageError or MissingPackageError if that is impossible."""
    try:
        from spacy.util import get_lang_class
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("spacy"):
            raise
        raise MissingPackageError(
            "spaCy is not installed; without it, models of languages that have tables can tag, but not be trained: "
            "pip install spacy."
        ) from error
    try:
        language = get_lang_class(lang)
    except ImportError as error:
        raise UnknownLanguageError(
            f"spaCy has no language {lang!r}: give a code of https://spacy.io/usage/models#languages, such as 'en', or "
            "'xx', the rules for all languages."
        ) from error
    try:
        return language()
    except ImportError as error:
        package = _PACKAGES.get(lang, f"spacy[{lang}]")
        raise MissingPackageError(
            f"spaCy's tokenizer for language {lang!r} needs a package that is not installed: pip install '{package}'."
        ) from error


def replace_surrogates(text: str) -> str:
    """Return a text with lone surrogates, which spaCy cannot store, replaced by U+FFFD."""
    return text if text.isascii() else _LONE_SURROGATES.sub("\ufffd", text)


def singular(word: str) -> str:
    """Return the singular of an English plural in lower case, formed by the rules below.

    Only the first of these rules that applies is used: "ies" becomes "y", but not after "a" or "e"; "es" becomes "e",
    but not after "a", "e" or "o"; "s" is removed, but not after "s" or "u". Words of less than four letters stay as
    they are.

    Some results are no words ("series" gives "sery"), but two words of different meaning rarely become one. Source: the
    S stemmer of D. Harman, How effective is suffixing?, Journal of the American Society for Information Science 42
    (1991).
    """
    if len(word) < _SHORTEST_PLURAL or not word.endswith("s"):
        return word
    if word.endswith("ies") and word[-4] not in "ae":
        return word[:-3] + "y"
    if word.endswith("es") and word[-3] not in "aeo":
        return word[:-1]
    return word if word[-2] in "su" else word[:-1]
