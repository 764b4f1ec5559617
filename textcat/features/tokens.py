"""Turn texts into term counts: spaCy's tokens, remembered for every chunk between white space."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Iterable, Iterator
from itertools import count, filterfalse
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from textcat.features._chunks import Memo
from textcat.features.language import Gap, Language

BATCH_CHARACTERS = 16_000_000
BATCH_TEXTS = 20_000
BYTES_PER_STRING = 200  # roughly what a token takes in Python's dictionaries and lists

_CREATING = threading.Lock()


class TermCounts(NamedTuple):
    """How often each term occurs in each text: the rows of a sparse matrix, one after the other.

    Attributes
    ----------
    ends : ndarray of shape (n_texts,), int64
        Where the entries of each text end in `ids` and `counts`.
    ids : ndarray of shape (n_entries,), int32
        A term's place in `terms`, or `~place` in `ngrams`; each at most once in a text.
    counts : ndarray of shape (n_entries,), int32
        At least 1.
    terms : list of str
        A character n-gram stands here as "~abc~". May only grow, so that the ids of earlier counts with the same list
        stay true.
    ngrams : ndarray of shape (n_ngrams, 2), int32
        The last term of each n-gram of terms, and before it the term, or `~place` of the n-gram, that goes before. May
        only grow as long as `terms` is the same list.
    chars : ndarray of shape (n_chars,), int32
        The places of the character n-grams.
    """

    ends: np.ndarray
    ids: np.ndarray
    counts: np.ndarray
    terms: list[str]
    ngrams: np.ndarray
    chars: np.ndarray


class Tokens(BaseEstimator):
    """Tokenize with spaCy, and count the tokens that are terms.

    The tokens are those of `spacy.blank(lang)`, one by one. White space is never a term. The tokens of every distinct
    chunk of text are kept in a memo, which is not pickled and has no influence on the results. Methods may be called
    from several threads.

    Parameters
    ----------
    lang : str, default="en"
        A language code that `spacy.blank` takes.
    lowercase : bool, default=True
        The term is the token in lower case (spaCy's `lower_`).
    alphabetic : bool, default=True
        Leave out tokens that are not made of letters alone (spaCy's `is_alpha`).
    remove_stop_words : bool, default=True
        Leave out spaCy's stop words of the language (spaCy's `is_stop`).
    memo_bytes : int, default=268435456
        About how much memory the memo may take. It is emptied when a batch of texts has filled it.

    Raises
    ------
    textcat.errors.TextcatError
        At the first text, if spaCy has no such language or it needs a package that is not installed.
    """

    def __init__(
        self,
        lang: str = "en",
        *,
        lowercase: bool = True,
        alphabetic: bool = True,
        remove_stop_words: bool = True,
        memo_bytes: int = 256 * 2**20,
    ) -> None:
        self.lang = lang
        self.lowercase = lowercase
        self.alphabetic = alphabetic
        self.remove_stop_words = remove_stop_words
        self.memo_bytes = memo_bytes

    def prepare(self) -> Tokens:
        """Load the language now instead of at the first text, which takes about a second."""
        self._reader()
        return self

    def tokenize(self, text: str) -> list[str]:
        """List all tokens of a text, white space included: `[token.text for token in nlp(text)]`."""
        reader = self._reader()
        with reader.lock:
            (tokens,) = [[reader.strings[i] for i in reader.memo.tokens(0)] for _ in reader.batches([text])]
        return tokens

    def count(self, texts: Iterable[str]) -> np.ndarray:
        """Count the tokens of every text, white space included: an array of shape (n_texts,), int64."""
        reader = self._reader()
        with reader.lock:
            totals = [reader.memo.n_tokens() for _ in reader.batches(texts)]
        return np.concatenate([np.zeros(0, np.int64), *totals])

    def count_terms(self, texts: Iterable[str], *, ngrams: int = 1, chars: int = 0) -> TermCounts:
        """Count the terms of every text.

        Parameters
        ----------
        texts : iterable of str
        ngrams : {1, 2, 3}, default=1
            Also count the n-grams of two to so many terms that follow each other, whatever lies between them that is
            no term.
        chars : int, default=0
            Also count the n-grams of so many characters in each term, put in lower case with a space at either end. A
            term that is shorter than that is its own n-gram.
        """
        reader = self._reader()
        with reader.lock:
            parts = [reader.count(ngrams, chars) for _ in reader.batches(texts)]
            return TermCounts(
                *_joined(parts),
                reader.terms,
                reader.memo.parts_of_ngrams if ngrams > 1 else np.zeros((0, 2), np.int32),
                np.array(list(reader.places_of_chars), np.int32),
            )

    def _reader(self) -> _Reader:
        settings = _Settings(self.lang, self.lowercase, self.alphabetic, self.remove_stop_words, self.memo_bytes)
        with _CREATING:
            reader = self.__dict__.get("_memory")
            if reader is None or reader.settings != settings:
                reader = self._memory = _Reader(settings)
            return reader

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_memory", None)
        return state


class _Settings(NamedTuple):
    lang: str
    lowercase: bool
    alphabetic: bool
    remove_stop_words: bool
    memo_bytes: int


class _Reader:
    """The language, the memo, and the ids of all tokens and terms met."""

    def __init__(self, settings: _Settings) -> None:
        from spacy.attrs import IS_ALPHA, IS_SPACE, IS_STOP, LOWER

        self.settings = settings
        self.lock = threading.Lock()
        self._language = Language(settings.lang)
        self._clashes = self._language.clashes()
        get = self._language.attributes
        self._term = get[LOWER] if settings.lowercase else str
        self._required = [get[IS_ALPHA]] if settings.alphabetic else []
        self._excluded = [get[IS_SPACE]] + ([get[IS_STOP]] if settings.remove_stop_words else [])
        self.forget(-1)

    def forget(self, above: int) -> None:
        """Start with an empty memo and new ids if all of it takes more than so many bytes."""
        if above < 0 or self._nbytes() > above:
            self.memo = Memo(self._clashes)
            self._open: dict[tuple[int, int], list[Gap]] = {}
            self.strings: list[str] = []
            self.terms: list[str] = []
            self._ids: dict[str, int] = {}
            self._term_ids: dict[str, int] = {}
            self._term_of: list[int] = []
            self._chars: dict[str, int] = {}  # places among the terms
            self._spelt: dict[int, tuple[array[int], array[int]]] = {}

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

    def _nbytes(self) -> int:
        return self.memo.nbytes + BYTES_PER_STRING * (len(self.strings) + len(self.terms))

    def batches(self, texts: Iterable[str]) -> Iterator[None]:
        """Take the texts in hand batch by batch, with the tokens of all their spans learnt."""
        self.forget(self.settings.memo_bytes)
        try:
            for batch in _batched(texts):
                if self.memo.span_bytes > self.settings.memo_bytes:
                    self.memo.forget_spans()
                    self._open = {}
                self._take(batch)
                yield
        finally:
            self.memo.put_down()

    def _take(self, batch: list[str]) -> None:
        try:
            self._learn(batch)
        except BaseException:
            # A memo that stopped before it learnt the tokens of new spans would ask for them at every text.
            self.forget(-1)
            raise

    def _learn(self, batch: list[str]) -> None:
        if not self._language.by_chunk:
            self.memo.read([""] * len(batch))
            for i, text in enumerate(batch):
                self._replace(i, text)
            return
        self.memo.read(batch)
        unknown = self.memo.unknown()
        if unknown:
            tokens, lengths = self._language.cut_spans(unknown)
            self.memo.learn(*self._numbered(tokens), lengths)
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
        return self._language.gaps(before, self.strings[last], behind, self.strings[first])

    def _replace(self, i: int, text: str) -> None:
        self.memo.replace(i, *self._numbered(self._language.cut_text(text)))

    def _numbered(self, tokens: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Give the ids of tokens and of their terms (-1: none)."""
        known, term_of = self._ids, self._term_of
        self._meet([token for token in dict.fromkeys(tokens) if token not in known])
        ids = [known[token] for token in tokens]
        return np.array(ids, np.int32), np.array([term_of[i] for i in ids], np.int32)

    def _meet(self, tokens: list[str]) -> None:
        """Give ids to new tokens, and to the terms they stand for."""
        self._ids.update(zip(tokens, count(len(self.strings)), strict=False))
        self.strings += tokens
        kept: Iterable[str] = tokens
        for holds in self._required:
            kept = filter(holds, kept)
        for holds in self._excluded:
            kept = filterfalse(holds, kept)
        kept = list(kept)
        self._term_of += [-1] * len(tokens)
        for token, term in zip(kept, map(self._term, kept), strict=True):
            place = self._term_ids.setdefault(term, len(self.terms))
            if place == len(self.terms):
                self.terms.append(term)
            self._term_of[self._ids[token]] = place


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


def _joined(parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if len(parts) == 1:
        return parts[0]
    starts = np.cumsum([0] + [len(ids) for _, ids, _ in parts])
    ends = [part[0] + start for part, start in zip(parts, starts[:-1], strict=True)]
    none = np.zeros(0, np.int32)
    return (
        np.concatenate([np.zeros(0, np.int64), *ends]),
        np.concatenate([none, *(ids for _, ids, _ in parts)]),
        np.concatenate([none, *(counts for _, _, counts in parts)]),
    )
