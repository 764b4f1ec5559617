"""Turn a language code into a tokenizer that gives the tokens of `spacy.blank(lang)`, sooner; English plurals, too."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from copy import copy
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from textcat.errors import TextcatError
from textcat.features._token_cache import SpanCutter, Splitter, WordTable
from textcat.features.affixes import _affix_tables, _AffixTables
from textcat.features.tables import SEPARATOR, LanguageTables, _read_tables

if TYPE_CHECKING:
    from spacy.language import Language as SpacyLanguage

_SPANS_PER_DOC = 50_000
_MAX_LEXEMES = 500_000  # the tables of so many take some 30 MB
_PACKAGES = {"vi": "pyvi"}  # spaCy has names for what the other languages need: spacy[ja], spacy[ko], spacy[th]
_LONE_SURROGATES = re.compile("[\ud800-\udfff]")
_SHORTEST_PLURAL = 4  # letters; "gas", "was" and "yes" are no plurals


class UnknownLanguageError(TextcatError, ValueError):
    """spaCy has no such language."""


class MissingPackageError(TextcatError, ImportError):
    """The language's tokenizer needs a package that is not installed."""


class _Boundary(NamedTuple):
    """A place between two tokens of a special case: all before it, the token before it, and the same after it."""

    left: str
    last: str
    right: str
    first: str


class _Attributes(NamedTuple):
    """What spaCy says of a token."""

    lower: Callable[[str], str]
    is_alpha: Callable[[str], Any]
    is_space: Callable[[str], Any]
    is_stop: Callable[[str], Any]
    stop_words: Collection[str] | None  # in lower case; None if the others are not the usual functions


def _usual_attributes(stop_words: Collection[str]) -> _Attributes:
    # What does no more than a method of strings costs several times as much in spaCy.
    return _Attributes(str.lower, str.isalpha, str.isspace, lambda token: token.lower() in stop_words, stop_words)


def _read_attributes(get: dict[int, Callable[[str], Any]]) -> _Attributes:
    """Return attributes for spaCy's functions, by the numbers of the attributes."""
    from spacy.attrs import IS_ALPHA, IS_SPACE, IS_STOP, LOWER
    from spacy.lang import lex_attrs

    is_stop: Any = get[IS_STOP]
    others = get[LOWER], get[IS_ALPHA], get[IS_SPACE]
    usual = isinstance(is_stop, partial) and is_stop.func is lex_attrs.is_stop and set(is_stop.keywords) == {"stops"}
    if usual and others == (lex_attrs.lower, lex_attrs.is_alpha, lex_attrs.is_space):
        return _usual_attributes(is_stop.keywords["stops"])
    return _Attributes(*others, is_stop, None)


class _Language:
    """A blank spaCy language, by a code such as "en", that tokenizes, and nothing more.

    Given its tables, it imports spaCy only for the first span that these cannot answer.
    """

    def __init__(self, lang: str, tables: LanguageTables | None = None) -> None:
        self._lang = lang
        self._nlp: Any = None  # None until spaCy is needed
        self._affixes: Any = None
        self.tables = tables or self._read()
        # Tokenizers of another kind (Chinese, Japanese) do not work on spans between white space.
        self.splits_at_space = self.tables is not None
        if self.tables is not None:
            self._take(self.tables)

    def _read(self) -> LanguageTables | None:
        from spacy.tokenizer import Tokenizer

        self._nlp = _blank_tokenizer(self._lang)
        self.attributes = attributes = _read_attributes(self._nlp.vocab.lex_attr_getters)
        if type(self._nlp.tokenizer) is not Tokenizer:
            return None
        # Each new lexeme would be put through some twenty attributes of which three are ever asked for.
        self._nlp.vocab.lex_attr_getters = {}
        self._affixes = _AffixTables.of(self._nlp.tokenizer)
        # A language of another package may change while spaCy does not: its tables are not kept in a file.
        own = type(self._nlp).__module__.startswith("spacy.lang.")
        return _read_tables(self._lang, self._nlp, self._affixes, attributes.stop_words if own else None)

    def _take(self, tables: LanguageTables) -> None:
        if self._nlp is None:
            self.attributes = _usual_attributes(tables.stop_words or ())
        cuts = tables.cuts.values()
        specials = {*tables.cuts, *map("".join, cuts)}
        self._cutter = SpanCutter(*_affix_tables((None, None, None), tables.alternatives), tables.whole, specials)
        recut = {tables.cuts[rule] for rule in tables.recut}
        self._splitter = Splitter(self._cutter, tables.tokens, recut, tables.url)
        self.longest_special = max(map(len, cuts), default=0)  # in tokens
        self._boundaries: dict[tuple[str, str], set[_Boundary]] = defaultdict(set)
        for cut in cuts:
            for i in range(1, len(cut)):
                boundary = _Boundary("".join(cut[:i]), cut[i - 1], "".join(cut[i:]), cut[i])
                self._boundaries[boundary.last[-1], boundary.first[0]].add(boundary)
        # Where a span begins or ends with one of these, the matcher may have seen other tokens than came out.
        self._recut, self._joinable = tables.recut, tables.joinable

    def _opened(self) -> SpacyLanguage:
        if self._nlp is None:
            read = _read_language(self._lang)
            self._nlp, self._affixes = read._nlp, read._affixes
            self.renew()
        return self._nlp

    def trim(self) -> None:
        """Drop spaCy's tables of strings if they are large: they grow with every new one, memory zone or not."""
        if self._nlp is not None and len(self._nlp.vocab) >= _MAX_LEXEMES:
            self.renew()

    def renew(self) -> None:
        """Start with tables of strings of its own, which are nearly empty."""
        if self.splits_at_space:
            vocab = type(self._nlp.vocab)()
            tokenizer = self._affixes.rebuild(self._nlp.tokenizer, vocab)
            self._nlp = copy(self._nlp)
            self._nlp.tokenizer, self._nlp.vocab = tokenizer, vocab
        else:
            self._nlp = _blank_tokenizer(self._lang)

    def special_edges(self) -> np.ndarray:
        """Return between which characters, the last two of a span and the first two of the next, a special case may be.

        They have shape (n, 4), uint32; 0 stands for any character before the last one or after the first one.
        """
        if not self.splits_at_space:
            return np.zeros((0, 4), np.uint32)
        boundaries = [boundary for group in self._boundaries.values() for boundary in group]
        edges = sorted({("\0" + each.left)[-2:] + (each.right + "\0")[:2] for each in boundaries})
        return np.array([list(map(ord, each)) for each in edges], np.uint32).reshape(-1, 4)

    def boundaries(self, left: str, last: str, right: str, first: str) -> list[_Boundary]:
        """Return the boundaries of special cases that may lie between two spans.

        spaCy looks for special cases in whole texts and ignores white space. A match across a boundary changes nothing
        itself, but keeps shorter matches on either side from being made, so that such spans do not have the tokens they
        have by themselves: `last` is the last one that the left span has, and `first` the first one of the right span.
        """
        return [
            each
            for each in self._boundaries.get((left[-1], right[0]), ())
            if _may_end(left, each.left)
            and _may_end(right[::-1], each.right[::-1])
            and (last == each.last or (left.endswith(each.last) and left.endswith(self._recut)))
            and (first == each.first or (right.startswith(each.first) and right.startswith(self._recut)))
        ]

    def cut_spans(self, spans: list[str]) -> tuple[list[str], np.ndarray]:
        """Return the tokens that each span has by itself, one span after the other, and how many each has."""
        tokens, lengths = self._cutter.cut(spans)
        others = np.flatnonzero(lengths == 0)
        if not len(others):
            return tokens, lengths
        positions = np.cumsum(lengths)[others].tolist()
        answers = [self._splitter.split(spans[i]) for i in others.tolist()]
        by_spacy = self._cut(spans[i] for i, answer in zip(others.tolist(), answers, strict=True) if answer is None)
        merged: list[str] = []
        start = 0
        for i, stop, answer in zip(others.tolist(), positions, answers, strict=True):
            cut = next(by_spacy) if answer is None else answer
            merged += tokens[start:stop]
            merged += cut
            lengths[i], start = len(cut), stop
        return merged + tokens[start:], lengths

    def word_table(self, ids: dict[str, int], other: int, kind: int) -> WordTable | None:
        """Return what cuts plain spans without the language being asked; for the parameters see `WordTable`."""
        if not self.splits_at_space:
            return None
        return WordTable(ids, other, kind, self._cutter)

    def cut_text(self, text: str) -> list[str]:
        """Tokenize one text as a whole."""
        return self._tokens(replace_surrogates(text))

    def _tokens(self, text: str) -> list[str]:
        nlp = self._opened()
        with nlp.memory_zone():
            orths, positions = np.unique(nlp.make_doc(text).to_array("ORTH"), return_inverse=True)
            strings = [nlp.vocab.strings[orth] for orth in orths.tolist()]
        return [strings[position] for position in positions.tolist()]

    def _cut(self, spans: Iterable[str]) -> Iterator[list[str]]:
        batch: list[str] = []
        for span in map(replace_surrogates, spans):
            alone = span.isspace() or not self._joinable
            if alone or len(batch) == _SPANS_PER_DOC:
                yield from self._cut_joined(batch)
                batch = []
            if alone:
                yield self.cut_text(span)
            else:
                batch.append(span)
        yield from self._cut_joined(batch)

    def _cut_joined(self, spans: list[str]) -> Iterator[list[str]]:
        """Tokenize many spans as the lines of one text."""
        if not spans:
            return
        tokens = self._tokens(SEPARATOR.join(spans))
        start = 0
        for _ in range(len(spans) - 1):
            stop = tokens.index(SEPARATOR, start)
            yield tokens[start:stop]
            start = stop + 1
        yield tokens[start:]


_read_language = lru_cache(_Language)


def open_language(lang: str, tables: LanguageTables | None = None) -> _Language:
    """Return a language with tables of strings of its own; the rest, which never changes, is read once a process.

    Parameters
    ----------
    lang : str
        A language code that `spacy.blank` takes.
    tables : LanguageTables, optional
        Those of the installed spaCy, which then is imported only for what they cannot answer.

    Returns
    -------
    _Language
    """
    if tables is not None:
        return _Language(lang, tables)
    language = copy(_read_language(lang))
    language._nlp = None  # its own is made when it is needed
    return language


def _blank_tokenizer(lang: str) -> SpacyLanguage:
    nlp = blank(lang)
    nlp.max_length = 2**30 - 1  # of a tokenizer only; the default guards the models of a pipeline
    return nlp


def blank(lang: str) -> SpacyLanguage:
    """Return `spacy.blank(lang)`, or raise UnknownLanguageError or MissingPackageError."""
    from spacy.util import get_lang_class

    try:
        language = get_lang_class(lang)
    except ImportError as error:
        raise UnknownLanguageError(
            f"spaCy has no language {lang!r}: give a code of https://spacy.io/usage/models#languages, such as 'en'."
        ) from error
    try:
        return language()
    except ImportError as error:
        package = _PACKAGES.get(lang, f"spacy[{lang}]")
        raise MissingPackageError(
            f"spaCy's tokenizer for language {lang!r} needs a package that is not installed: pip install '{package}'."
        ) from error


def _may_end(text: str, end: str) -> bool:
    """Return whether a text, or a longer one of which it is the end, may end in this way."""
    return text.endswith(end) or end.endswith(text)


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which spaCy cannot store, by U+FFFD."""
    return text if text.isascii() else _LONE_SURROGATES.sub("\ufffd", text)


def singular(word: str) -> str:
    """Return the singular of an English plural in lower case, or what the rules take for it.

    The first of these endings that fits is changed: "ies" to "y" but not after "a" or "e", "es" to "e" but not after
    "a", "e" or "o", "s" to nothing but not after "s" or "u". Words of less than four letters are left as they are.

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


def words_with_singular(term: str) -> list[str]:
    """Return the words that `singular` turns into a term."""
    if term[-1:] not in "suey" and len(term) >= _SHORTEST_PLURAL:  # sooner, for as most are
        return [term, f"{term}s"]
    candidates = (term, f"{term}s", f"{term[:-1]}ies") if term.endswith("y") else (term, f"{term}s")
    return [word for word in candidates if singular(word) == term]
