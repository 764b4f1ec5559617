"""Turn batches of texts into counts of numbered terms: ask the language for the tokens of what is new to the memo."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import count, filterfalse, repeat
from typing import Any, NamedTuple

import numpy as np

from textcat.features._token_cache import ANYTHING, LETTERS, LETTERS_OR_DIGITS, Memo, Words
from textcat.features.language import Gap, Language
from textcat.features.plurals import singular, words_of

BATCH_CHARACTERS = 4_000_000
BATCH_TEXTS = 20_000
BYTES_PER_STRING = 200  # roughly what a term takes in Python's dictionaries and lists
OTHER = " "  # as a term: white space never is one


class Known(NamedTuple):
    """The terms and n-grams that count, by the numbers they are to have.

    Attributes
    ----------
    terms : list of str
        The last one, OTHER, stands for all terms that are not known.
    ngrams : ndarray of shape (n_ngrams, 2), int32
        As in `TermCounts`. What goes before an n-gram's last term has to be among them, too. The last one stands for
        all n-grams that are not known.
    """

    terms: list[str]
    ngrams: np.ndarray


class Settings(NamedTuple):
    """What the numbers of a reader depend on; see `Tokens`."""

    lang: str
    lowercase: bool
    alphabetic: bool
    alphanumeric: bool
    remove_stop_words: bool
    fold_plurals: bool
    memo_bytes: int


class Reader:
    """The language, the memo, and the numbers of all terms met.

    Parameters
    ----------
    settings : Settings
    """

    def __init__(self, settings: Settings) -> None:
        from spacy.attrs import IS_ALPHA, IS_SPACE, IS_STOP, LOWER
        from spacy.lang import lex_attrs

        # What does no more than a method of strings costs several times as much.
        same: dict[Any, Callable[[str], Any]] = {
            lex_attrs.is_alpha: str.isalpha,
            lex_attrs.is_space: str.isspace,
            lex_attrs.lower: str.lower,
        }
        self.settings = settings
        self.lock = threading.Lock()
        self._language = Language(settings.lang)
        self._clashes = self._language.clashes()
        get = {name: same.get(function, function) for name, function in self._language.attributes.items()}
        self._term = get[LOWER] if settings.lowercase else str
        if settings.fold_plurals and settings.lang == "en":
            self._term = _then(self._term, singular)
        self._required = [get[IS_ALPHA]] if settings.alphabetic else []
        self._required += [_has_letter_or_digit] if settings.alphanumeric else []
        self._excluded = [get[IS_SPACE]] + ([get[IS_STOP]] if settings.remove_stop_words else [])
        usual = (get[LOWER], get[IS_SPACE], get[IS_ALPHA]) == (str.lower, str.isspace, str.isalpha)
        self._stops = _stop_words(self._excluded[1:]) if usual and settings.lowercase else None
        self._known: Known | None = None
        self._words: Words | None = None
        self.forget()

    def forget(self) -> None:
        """Start with an empty memo and new numbers."""
        self.memo = Memo(self._clashes)
        self._open: dict[tuple[int, int], list[Gap]] = {}
        self._chars: dict[str, int] = {}  # places among the terms
        self._spelt: dict[int, tuple[array[int], array[int]]] = {}
        self.terms: list[str] = []
        self._places: dict[str, int] = {}
        if self._known:
            self._close(self._known)

    def know(self, known: Known | None) -> None:
        """Give terms the numbers they are known by, or by None, as they are met. What was learnt by None serves on."""
        if known is self._known:
            return
        was_open, self._known, self._words = self._known is None, known, None
        if known is None or not was_open:
            self.forget()
        else:
            self._close(known)

    def _close(self, known: Known) -> None:
        before, self.terms = self.terms, known.terms
        self._places = dict(zip(known.terms, count()))
        if self._stops is not None:
            self._words = self._plain_words(self._stops, len(known.terms) - 1)
        self.memo.know(known.ngrams, np.fromiter(self._places_of(before), np.int32, len(before)))

    def _plain_words(self, stops: Collection[str], other: int) -> Words | None:
        """Give what cuts plain chunks, and numbers their terms, without asking the language."""
        settings, numbers = self.settings, self._places
        if settings.fold_plurals and settings.lang == "en":
            numbers = {word: place for term, place in self._places.items() for word in words_of(term)}
        kind = LETTERS if settings.alphabetic else LETTERS_OR_DIGITS if settings.alphanumeric else ANYTHING
        return self._language.words(numbers | dict.fromkeys(stops, -1), other, kind)

    def count(self, ngrams: int, chars: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Count the batch; for parameters see `Tokens.count_terms`, for the result `Memo.count`."""
        ends, spelt = self._spell(chars) if chars else (array("q"), array("i"))
        return self.memo.count(len(self.terms), ngrams, np.array(ends, np.int64), np.array(spelt, np.int32))

    @property
    def places_of_chars(self) -> Iterable[int]:
        """The character n-grams among the terms."""
        return self._chars.values()

    def _spell(self, n: int) -> tuple[array[int], array[int]]:
        """Give the places of the character n-grams of every term, and where those of each term end."""
        ends, spelt = self._spelt.setdefault(n, (array("q"), array("i")))
        inner = set(self.places_of_chars)
        for place in range(len(ends), len(self.terms)):
            if place not in inner:
                spelt.extend(map(self._place_of_chars, _char_ngrams(self.terms[place], n)))
            ends.append(len(spelt))
        ends.extend([len(spelt)] * (len(self.terms) - len(ends)))  # character n-grams are not spelt themselves
        return ends, spelt

    def _place_of_chars(self, chars: str) -> int:
        place = self._chars.setdefault(chars, len(self.terms))
        if place == len(self.terms):
            self.terms.append(f"~{chars}~")
        return place

    def batches(self, texts: Iterable[str]) -> Iterator[None]:
        """Take the texts in hand batch by batch, with the tokens of all their spans learnt."""
        if self._known is None and self.memo.nbytes + BYTES_PER_STRING * len(self.terms) > self.settings.memo_bytes:
            self.forget()
        try:
            for batch in _batched(texts):
                self._make_room()
                self._take(batch)
                yield
        finally:
            self.memo.put_down()

    def _make_room(self) -> None:
        """Forget the spans that did not come again, if all of them take too much; let spaCy forget, too."""
        self._language.renew()
        limit = self.settings.memo_bytes
        if self.memo.span_bytes + BYTES_PER_STRING * len(self._open) <= limit:
            return
        self._open = {}
        self.memo.thin()
        if 2 * self.memo.span_bytes > limit:
            self.memo.forget_spans()

    def _take(self, batch: list[str]) -> None:
        try:
            self._learn(batch)
        except BaseException:
            # A memo that stopped before it learnt the tokens of new spans would ask for them at every text.
            self.forget()
            raise

    def _learn(self, batch: list[str]) -> None:
        if not self._language.by_chunk:
            self.memo.read([""] * len(batch))
            for i, text in enumerate(batch):
                self._replace(i, text)
            return
        self.memo.read(batch)
        if self._words is not None:
            self.memo.learn_plain(self._words)
        tokens, lengths = self._language.cut_spans(self.memo.unknown())
        self.memo.learn(tokens, self._terms_of(tokens), lengths)
        for i in self._bridged_texts():
            self._replace(i, batch[i])

    def _bridged_texts(self) -> Iterable[int]:
        """Find the texts of the batch in which neighbouring spans do not have the tokens they have by themselves."""
        found = {}
        for text, place, left, right in self.memo.suspected():
            open_ = self._open.get((left, right))
            if open_ is None:
                open_ = self._open[left, right] = self._gaps_between(left, right)
            if open_ and self._language.bridged(open_, *self.memo.around(text, place, self._language.reach)):
                found[text] = True
        return found

    def _gaps_between(self, left: int, right: int) -> list[Gap]:
        before, _, last = self.memo.span(left)
        behind, first, _ = self.memo.span(right)
        return self._language.gaps(before, last, behind, first)

    def _replace(self, i: int, text: str) -> None:
        tokens = self._language.cut_text(text)
        self.memo.replace(i, tokens, self._terms_of(tokens))

    def _terms_of(self, tokens: list[str]) -> dict[str, int]:
        """Give the numbers of the terms that tokens are; -1: none."""
        places = dict.fromkeys(tokens, -1)
        kept: Iterable[str] = places
        for holds in self._required:
            kept = filter(holds, kept)
        for holds in self._excluded:
            kept = filterfalse(holds, kept)
        found = list(kept)
        places.update(zip(found, self._places_of([self._term(token) for token in found]), strict=True))
        return places

    def _places_of(self, terms: list[str]) -> Iterator[int]:
        """Give the numbers of terms, new ones to new terms unless only those known count."""
        if self._known is None:
            new = [term for term in dict.fromkeys(terms) if term not in self._places]
            self._places.update(zip(new, count(len(self.terms)), strict=False))
            self.terms += new
        return map(self._places.get, terms, repeat(len(self.terms) - 1))  # all are there if any may be


def _then(first: Callable[[str], str], second: Callable[[str], str]) -> Callable[[str], str]:
    return lambda token: second(first(token))


def _has_letter_or_digit(token: str) -> bool:
    return any(map(str.isalnum, token))


def _stop_words(excluded: Sequence[Callable[[str], Any]]) -> Collection[str] | None:
    """Give the words in lower case that are left out; None if not spaCy's usual function says which."""
    from spacy.lang.lex_attrs import is_stop as usual

    if not excluded:
        return ()
    (is_stop,) = excluded
    if not isinstance(is_stop, partial) or is_stop.func is not usual or set(is_stop.keywords) != {"stops"}:
        return None
    stops: Collection[str] = is_stop.keywords["stops"]
    return stops


def _char_ngrams(term: str, n: int) -> list[str]:
    padded = f" {term.lower()} "
    return [padded[i : i + n] for i in range(max(len(padded) - n, 0) + 1)]


def _batched(texts: Iterable[str]) -> Iterator[list[str]]:
    """Cut a stream of texts into lists of a bounded number of characters, or of one longer text."""
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and (size + len(text) > BATCH_CHARACTERS or len(batch) == BATCH_TEXTS):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch
