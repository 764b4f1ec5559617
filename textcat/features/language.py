"""Turn a language code into a tokenizer that gives the tokens of `spacy.blank(lang)`, sooner."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from textcat.errors import TextcatError
from textcat.features._token_cache import Words
from textcat.features.affixes import Affixes, guarded

if TYPE_CHECKING:
    from spacy.language import Language as Nlp
    from spacy.tokens import Doc

JOINER = "\n"
CHUNKS_PER_DOC = 50_000
MOST_LEXEMES = 500_000  # the tables of so many take some 30 MB
EXTRAS = {"vi": "pyvi"}  # spaCy has names for what the other languages need: spacy[ja], spacy[ko], spacy[th]
LONE_SURROGATES = re.compile("[\ud800-\udfff]")


class UnknownLanguageError(TextcatError, ValueError):
    """spaCy has no such language."""


class MissingPackageError(TextcatError, ImportError):
    """The language's tokenizer needs a package that is not installed."""


class Gap(NamedTuple):
    """A place between two tokens of a special case: all before it, the token before it, and the same behind it."""

    left: str
    last: str
    right: str
    first: str


class Language:
    """A blank spaCy language, asked for tokens only.

    Parameters
    ----------
    lang : str
        A code that `spacy.blank` takes, such as "en".

    Raises
    ------
    UnknownLanguageError, MissingPackageError
    """

    def __init__(self, lang: str) -> None:
        from spacy.tokenizer import Tokenizer

        self._lang = lang
        self._nlp = _tokenizing(lang)
        self.attributes: dict[int, Callable[[str], Any]] = self._nlp.vocab.lex_attr_getters
        self.by_chunk = type(self._nlp.tokenizer) is Tokenizer
        if self.by_chunk:
            self._guard()

    def _guard(self) -> None:
        from spacy.attrs import ORTH, intify_attrs

        # Each new lexeme would be put through some twenty attributes of which three are ever asked for.
        self._nlp.vocab.lex_attr_getters = {}
        rules = self._nlp.tokenizer.rules
        # The special cases as the tokenizer's own matcher has them: cut by affixes alone.
        self._affixes = Affixes.of(self._nlp.tokenizer)
        bare = guarded(self._nlp.tokenizer, self._affixes, self._nlp.vocab, rules={})
        cuts = [[token.text for token in bare(rule)] for rule in rules]
        self._specials = {*rules, *map("".join, cuts)}
        # Where a span begins or ends with one of these, the matcher may have seen other tokens than came out.
        results = [[intify_attrs(part)[ORTH] for part in parts] for parts in rules.values()]
        self._recut = tuple(rule for rule, cut, result in zip(rules, cuts, results, strict=True) if cut != result)
        self.reach = max(map(len, cuts), default=0)
        self._gaps: dict[tuple[str, str], set[Gap]] = defaultdict(set)
        for cut in cuts:
            for i in range(1, len(cut)):
                gap = Gap("".join(cut[:i]), cut[i - 1], "".join(cut[i:]), cut[i])
                self._gaps[gap.last[-1], gap.first[0]].add(gap)
        self._nlp.tokenizer = guarded(self._nlp.tokenizer, self._affixes, self._nlp.vocab)
        alone = [token.text for token in self._nlp.tokenizer(JOINER)] == [JOINER]
        self._joinable = alone and not any(JOINER in cut for cut in cuts if len(cut) > 1)

    def renew(self) -> None:
        """Let spaCy forget the strings it has seen, if they are many: its tables grow with them, memory zone or not."""
        if len(self._nlp.vocab) < MOST_LEXEMES:
            return
        if self.by_chunk:
            vocab = type(self._nlp.vocab)()
            self._nlp.tokenizer, self._nlp.vocab = guarded(self._nlp.tokenizer, self._affixes, vocab), vocab
        else:
            self._nlp = _tokenizing(self._lang)

    def clashes(self) -> np.ndarray:
        """List between which characters, the last two of a span and the first two of the next, a gap may be.

        Returns
        -------
        ndarray of shape (n, 4), uint32
            0 stands for any character before the last one or after the first one.
        """
        if not self.by_chunk:
            return np.zeros((0, 4), np.uint32)
        gaps = [gap for group in self._gaps.values() for gap in group]
        edges = sorted({("\0" + gap.left)[-2:] + (gap.right + "\0")[:2] for gap in gaps})
        return np.array([list(map(ord, each)) for each in edges], np.uint32).reshape(-1, 4)

    def gaps(self, left: str, last: str, right: str, first: str) -> list[Gap]:
        """List the gaps of special cases that may lie between two spans.

        spaCy looks for special cases in whole texts and blind to white space. A match across a gap changes nothing
        itself, but keeps shorter matches on either side from being made, so that such spans do not have the tokens they
        have by themselves.

        Parameters
        ----------
        left, right : str
            The two spans.
        last, first : str
            The last token of the left one and the first of the right one, as far as each span by itself goes.
        """
        return [
            gap
            for gap in self._gaps.get((left[-1], right[0]), ())
            if _overlap(left, gap.left)
            and _overlap(right[::-1], gap.right[::-1])
            and (last == gap.last or (left.endswith(gap.last) and left.endswith(self._recut)))
            and (first == gap.first or (right.startswith(gap.first) and right.startswith(self._recut)))
        ]

    def bridged(self, gaps: list[Gap], left: str, right: str) -> bool:
        """Tell whether a special case may stand across one of these gaps, given the spans joined on either side."""
        return any(left.endswith(gap.left) and right.startswith(gap.right) for gap in gaps)

    def cut_spans(self, spans: list[str]) -> tuple[list[str], np.ndarray]:
        """Tokenize each span by itself.

        Returns
        -------
        tokens : list of str
            Those of the first span, of the second, and so on.
        lengths : ndarray of shape (n_spans,), int32
        """
        tokens, lengths = self._affixes.cut(spans, self._specials)
        others = np.flatnonzero(lengths == 0)
        if not len(others):
            return tokens, lengths
        places = np.cumsum(lengths)[others].tolist()
        all_tokens: list[str] = []
        start = 0
        for i, place, cut in zip(others.tolist(), places, self._cut(spans[i] for i in others.tolist()), strict=True):
            all_tokens += tokens[start:place]
            all_tokens += cut
            lengths[i], start = len(cut), place
        return all_tokens + tokens[start:], lengths

    def words(self, numbers: dict[str, int], other: int, kind: int) -> Words | None:
        """Give what cuts plain chunks without being asked about each; for the parameters see `Words`."""
        return self._affixes.words(numbers, other, kind, self._specials) if self.by_chunk else None

    def cut_text(self, text: str) -> list[str]:
        """Tokenize one text as a whole."""
        with self._nlp.memory_zone():
            return self._strings(self._nlp.make_doc(mended(text)))

    def _cut(self, spans: Iterable[str]) -> Iterator[list[str]]:
        batch: list[str] = []
        for span in map(mended, spans):
            if span.isspace() or not self._joinable:
                yield from self._cut_joined(batch)
                batch = []
                yield self.cut_text(span)
                continue
            batch.append(span)
            if len(batch) == CHUNKS_PER_DOC:
                yield from self._cut_joined(batch)
                batch = []
        yield from self._cut_joined(batch)

    def _cut_joined(self, spans: list[str]) -> Iterator[list[str]]:
        """Tokenize many spans as the lines of one text."""
        if not spans:
            return
        with self._nlp.memory_zone():
            strings = self._strings(self._nlp.make_doc(JOINER.join(spans)))
        start = 0
        for _ in range(len(spans) - 1):
            stop = strings.index(JOINER, start)
            yield strings[start:stop]
            start = stop + 1
        yield strings[start:]

    def _strings(self, doc: Doc) -> list[str]:
        orths, places = np.unique(doc.to_array("ORTH"), return_inverse=True)
        store = self._nlp.vocab.strings
        strings = [store[orth] for orth in orths.tolist()]
        return [strings[place] for place in places.tolist()]


def _tokenizing(lang: str) -> Nlp:
    nlp = blank(lang)
    nlp.max_length = 2**30 - 1  # of a tokenizer only; the default guards the models of a pipeline
    return nlp


def blank(lang: str) -> Nlp:
    """Give `spacy.blank(lang)`, or say in a sentence why not."""
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
        package = EXTRAS.get(lang, f"spacy[{lang}]")
        raise MissingPackageError(
            f"spaCy's tokenizer for language {lang!r} needs a package that is not installed: pip install '{package}'."
        ) from error


def _overlap(text: str, end: str) -> bool:
    """Tell whether a text, or a longer one of which it is the end, may end in this way."""
    return text.endswith(end) or end.endswith(text)


def mended(text: str) -> str:
    """Replace lone surrogates, which spaCy cannot store, by U+FFFD."""
    return text if text.isascii() else LONE_SURROGATES.sub("\ufffd", text)
