"""Turn texts into term counts: spaCy's tokens, cached for every span of text between white space."""

from __future__ import annotations

import gc
import os
import re
import threading
from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, compress, count, filterfalse, islice, repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from textcat.base.normal_forms import normalised
from textcat.base.parameters import Parameters
from textcat.features._token_cache import (
    ANYTHING,
    LETTERS,
    LETTERS_OR_DIGITS,
    TokenCache,
    WordTable,
    crossing_text,
    ngrams_of_runs,
    number_tokens,
    without_stand_ins,
)
from textcat.features.language import open_language, replace_surrogates, singular
from textcat.features.scripts import (
    NGRAMS,
    SPACY,
    are_letters,
    are_unspaced,
    has_stand_in,
    is_unspaced,
    language_of_words,
    places_in_run,
)
from textcat.features.settings import NFC, TokenSettings, check_tokens
from textcat.features.tables import LanguageTables

OTHER = " "  # value that stands for no term: white space is never a term
BATCH_CHARACTERS = 1_000_000  # small, so that little is left to count when the last text of a stream arrives
BATCH_TEXTS = 20_000
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")  # characters according to str.isalnum
_KEPT = 0.25  # share of `memo_bytes`: a larger token cache is dropped after texts are counted
_BYTES_PER_STRING = 200  # rough memory of a term in Python's dicts and lists
_MOST_PIECES, _LONGEST_PIECE = 20_000, 100  # pieces of text that are cached: how many, and characters
#: Maximum number of n-grams of terms, and of the character n-grams of distinct terms, counted in a text: those of some
#: 30,000 to 100,000 words. A text may have a new one at every character, and each would become a column.
MOST_NGRAMS = 100_000
_CREATING = threading.Lock()
_WITHOUT_COLLECTION: set[int] = set()  # threads that have switched the garbage collector off
NO_IDS = np.zeros(0, np.int32)
NO_NGRAMS = np.zeros((0, 2), np.int32)


class TermCounts(NamedTuple):
    """How often each term occurs in each text, as a sparse matrix with one row per text.

    A term's id is its position in `terms`; an n-gram's id is `~position` in `ngrams`. Both lists only grow while texts
    are counted, so that ids in earlier counts stay valid.
    """

    ends: np.ndarray  # end of each text's entries in the next two arrays: shape (n_texts,), int64
    ids: np.ndarray  # the term or n-gram of each entry, at most once per text: shape (n_entries,), int32
    counts: np.ndarray  # number of occurrences in the text, at least 1: shape (n_entries,), int32
    terms: list[str]  # all terms; a character n-gram is written "~abc~"
    ngrams: np.ndarray  # the ids of each n-gram's beginning and of its last term: shape (n_ngrams, 2), int32
    chars: np.ndarray  # the positions of the character n-grams: shape (n_chars,), int32


class KnownTerms(NamedTuple):
    """The terms and n-grams to count, by id.

    Any term that is not among `terms` is counted as the last one, and any n-gram that is not among `ngrams` likewise.
    """

    terms: list[str]  # the last one is OTHER
    ngrams: np.ndarray  # as in `TermCounts`; each n-gram's beginning is a listed term or n-gram: (n_ngrams, 2), int32
    columns: tuple[np.ndarray, np.ndarray] | None = None  # of terms and of n-grams, if known: int32, -1: no column


class Located(NamedTuple):
    """A term, the token that it comes from, and the token's start and end in a text."""

    term: str
    start: int  # the position of its first character in the text
    end: int  # the position after its last character
    token: str  # the token as written in the text


class TermPlaces(NamedTuple):
    """The tokens of a text that are terms, with their positions, as arrays; `Located` is one such token."""

    tokens: list[str]  # distinct
    terms: list[str]  # the term of each of these
    ids: np.ndarray  # for each occurrence, a position in both lists: shape (n_places,), int64
    starts: np.ndarray  # in the text, in characters: shape (n_places,), int64
    ends: np.ndarray


class Tokens(Parameters, TokenSettings):
    """Tokenize texts as spaCy does, and count the tokens that are terms.

    Texts are read in a normal form: those that look the same have the same terms (`normal_form`). The tokens are
    those of `spacy.blank(lang)`. White space is never a term. By default, there is an exception: runs of characters of
    scripts without spaces between words, such as Chinese, are not tokenized by spaCy. The tokens of a run are its
    characters, and its terms are its n-grams of 1, 2 and 3 characters; the texts before and after a run are tokenized
    separately. If at least a quarter of a text's characters (without white space) are Han characters or kana, n-grams
    of 1, 2 and 3 characters outside of runs, or across their edges, are also terms: with digits, punctuation, Latin
    letters and white space.

    The tokens of each distinct span of text between white space are kept in a token cache, which is not pickled and
    does not change the results. Methods may be called from several threads. The class has scikit-learn's `get_params`
    and `set_params`, without importing scikit-learn.

    Parameters
    ----------
    lang : str, default="en"
        A language code that `spacy.blank` takes.
    lowercase : bool, default=True
        The term is the token in lower case (spaCy's `lower_`).
    alphabetic : bool, default=True
        Leave out tokens that do not consist of letters, with marks on them, such as the vowels of Hindi.
    alphanumeric : bool, default=False
        Leave out tokens without a letter or a digit, such as punctuation; `alphabetic` leaves out more.
    remove_stop_words : bool, default=True
        Leave out spaCy's stop words of the language (spaCy's `is_stop`).
    singularize : bool, default=False
        Replace English plurals in lower case by their singulars, see `textcat.features.language.singular`.
    segmenter : str, default="ngrams"
        Which text is cut into n-grams of 1, 2 and 3 characters, whatever the language. "ngrams": runs of Han, kana,
        Thai, Lao, Khmer and Myanmar letters, and in Chinese and Japanese texts other characters, too. "runs": only
        these runs. "spacy": none; spaCy's tokenizer of the language reads all of it.
    normal_form : str, default="nfc"
        With "nfc", texts are read in Unicode's normal form C ("é" is one character, however it is written), without
        invisible characters, and with plain letters in place of ligatures and other shapes; with "none", as they are.
    memo_bytes : int, default=268435456
        Approximate maximum bytes of the token cache; above it, spans that occurred only once are dropped.

    Raises
    ------
    textcat.base.errors.TextcatError
        At the first text, if spaCy has no such language or it needs a package that is not installed.
    """

    def prepare(self) -> Tokens:
        """Load the language now instead of at the first text; loading takes about a second."""
        self.term_counter()
        return self

    @property
    def language_of_words(self) -> str:
        """The spaCy language of words: `lang`, or "xx" if texts of this language are cut into n-grams of characters."""
        return language_of_words(self.lang, self.segmenter)

    @property
    def divides_runs(self) -> bool:
        """Whether text in scripts without spaces, such as Chinese and Thai, is divided into n-grams of characters."""
        return self.term_counter().divides_runs

    def tables(self) -> LanguageTables | None:
        """Return the tables that tokenize texts without spaCy; None for a language without tables, such as Chinese."""
        return self.term_counter().tables

    def use_tables(self, tables: LanguageTables) -> None:
        """Tokenize by the given tables, without importing spaCy; they must be of the installed version of spaCy."""
        self._tables = tables

    def as_read(self, text: str) -> str:
        """Normalise a text as `tokenize` does: to `normal_form`, with U+FFFD for characters used internally."""
        return _normalise([text], self.normal_form, self.segmenter)[0]

    def tokenize(self, text: str) -> list[str]:
        """Return all tokens of a text, also white space: `[token.text for token in nlp(as_read(text))]` in spaCy."""
        counter = self.term_counter()
        with counter.lock:
            tokens = [token for _ in counter.batches([text]) for token in counter.cache.tokens(0)]
        return [replace_surrogates(token) for token in tokens]

    def count(self, texts: Iterable[str]) -> np.ndarray:
        """Return the number of tokens of every text, white space included: an array of shape (n_texts,), int64."""
        counter = self.term_counter()
        with counter.lock:
            totals = [counter.cache.n_tokens() for _ in counter.batches(texts)]
        return np.concatenate([np.zeros(0, np.int64), *totals])

    def count_terms(
        self,
        texts: Iterable[str],
        *,
        ngrams: int = 1,
        char_lengths: range = range(0),
        known_terms: KnownTerms | None = None,
    ) -> TermCounts:
        """Count the terms of every text.

        Parameters
        ----------
        texts : iterable of str
        ngrams : {1, 2, 3}
            Also count n-grams of up to this many consecutive terms; tokens that are no terms may lie between them.
        char_lengths : range
            Also count the n-grams of these numbers of characters in each term, in lower case with a space at either
            end: `range(2, 5)` for 2 to 4 characters.
        known_terms : KnownTerms, optional
            Count these terms and n-grams by their ids; any other term or n-gram is counted as the last one of them. It
            cannot be combined with `char_lengths`.

        Returns
        -------
        TermCounts
        """
        counter = self.term_counter()
        with counter.lock:
            counter.use(known_terms)
            parts = [counter.count(ngrams, char_lengths) for _ in counter.batches(texts)]
            all_ngrams = known_terms.ngrams if known_terms else counter.cache.ngrams if ngrams > 1 else NO_NGRAMS
            terms, chars_of = counter.terms, np.array(list(counter.char_ids.values()), np.int32)
            if known_terms is None and counter.cache.nbytes > self.memo_bytes * _KEPT:
                counter.clear()  # freed first, so that it is not in memory together with the matrix made from it
            return TermCounts(*_joined(parts), terms, all_ngrams, chars_of)

    def locate_tokens(self, texts: Iterable[str]) -> list[list[Located]]:
        """Return, for each text, the tokens that are terms, in order, with their positions in the normalised text."""
        counter, texts = self.term_counter(), [*map(self.as_read, texts)]
        located: list[list[Located]] = []
        with counter.lock, no_garbage_collection():
            for _, batch in zip(counter.batches(texts), _batched(texts), strict=True):
                located += [counter.located(i, text) for i, text in enumerate(batch)]
        return located

    def place_terms(self, texts: Iterable[str]) -> list[TermPlaces]:
        """Return the results of `locate_tokens` as arrays, for long texts, followed by n-grams that contain stand-ins.

        A stand-in takes the place of a character such as a space in an n-gram of Chinese or Japanese text: see
        `textcat.features.scripts.STAND_IN`.
        """
        counter, texts = self.term_counter(), [*map(self.as_read, texts)]
        with counter.lock:
            loaded = zip(counter.batches(texts), _batched(texts), strict=True)
            return [counter.places(i, text) for _, batch in loaded for i, text in enumerate(batch)]

    def locate_alone(self, pieces: Collection[str]) -> list[list[Located]]:
        """Return, for each piece of text, what `locate_tokens` returns, followed by n-grams that contain stand-ins.

        A stand-in takes the place of a character such as a space in an n-gram of Chinese or Japanese text: see
        `textcat.features.scripts.STAND_IN`. The results for short pieces are cached, as they recur.
        """
        kept = self.term_counter().pieces
        if len(kept) > _MOST_PIECES:
            kept.clear()
        located = {piece: kept.get(piece) for piece in pieces}
        new = [piece for piece, tokens in located.items() if tokens is None]
        counter = self.term_counter()
        for piece, of_piece in zip(new, self.locate_tokens(new), strict=True):
            located[piece] = of_piece = [*of_piece, *counter.crossing(self.as_read(piece))]
            if len(piece) <= _LONGEST_PIECE:
                kept[piece] = of_piece
        return [located[piece] or [] for piece in pieces]

    def term_counter(self) -> _TermCounter:
        """Return the term counter for the current settings; it is created at the first use."""
        parameters = self.get_params(deep=False)
        with _CREATING:
            counter = self.__dict__.get("counter")
            if counter is None or vars(counter.settings) != parameters or not counter.is_usable_here():
                settings = TokenSettings(**parameters)
                check_tokens(settings)
                tables = self.__dict__.get("_tables")
                fitting = tables if tables is not None and tables.lang == self.language_of_words else None
                counter = self.counter = _TermCounter(settings, fitting)
            return counter

    def __getstate__(self) -> dict[str, Any]:
        return self.get_params()


class _CharNgrams:
    """List the ids of the n-grams of characters of terms.

    `sizes` has the number of n-grams of each term, and `starts` the position in `ids` from which they are listed; -1:
    they are not listed yet.
    """

    def __init__(self) -> None:
        self.sizes, self.starts, self.ids = array("i"), array("q"), array("i")

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return np.array(self.sizes, np.int32), np.array(self.starts, np.int64), np.array(self.ids, np.int32)


class _TermCounter:
    """Hold the language, the token cache and the ids of all terms so far, for one choice of `Tokens`' parameters."""

    def __init__(self, settings: TokenSettings, tables: LanguageTables | None) -> None:
        self.settings = settings
        self.lock, self._process = threading.Lock(), os.getpid()
        self.language = open_language(language_of_words(settings.lang, settings.segmenter), tables)
        # Leave tokenizers of whole texts, such as the Korean one, everything that they may treat differently.
        self.divides_runs = settings.segmenter != SPACY and self.language.splits_at_space
        self._crosses = settings.segmenter == NGRAMS and self.divides_runs
        self._edges = self.language.special_edges()
        self.tables = self.language.tables
        in_nfc = settings.normal_form == NFC
        get = self.language.attributes.in_normal_form() if in_nfc else self.language.attributes
        self._singular = settings.singularize and settings.lang == "en"
        self.lower = get.lower if settings.lowercase else str
        self.required: list[Callable[[str], Any]] = [are_letters] if settings.alphabetic else []
        self.required += [_LETTER_OR_DIGIT.search] if settings.alphanumeric else []
        self.excluded = [get.is_space] + ([get.is_stop] if settings.remove_stop_words else [])
        usual = get.stop_words is not None and settings.lowercase
        self.stops = (get.stop_words if settings.remove_stop_words else ()) if usual else None
        alphabetic, alphanumeric = settings.alphabetic, settings.alphanumeric
        self._kind = LETTERS if alphabetic else LETTERS_OR_DIGITS if alphanumeric else ANYTHING
        self._simple = None if self.stops is None else (self.stops, self._kind, self._singular)
        self._known_terms: KnownTerms | None = None
        self.words: WordTable | None = None
        self._term_of: dict[str, str | None] = {}  # the term of each token
        self.pieces: dict[str, list[Located]] = {}
        self.clear()

    def is_usable_here(self) -> bool:
        """Return whether this process can take the counter's lock; always True in the process that created the counter.

        After a fork, it is False if a thread of the parent held the lock at that moment: the thread does not exist in
        the child, so the lock is never released there. The caller must hold `_CREATING`.
        """
        if self._process != os.getpid():
            if not self.lock.acquire(blocking=False):
                return False
            self.lock.release()
            self._process = os.getpid()
        return True

    def clear(self) -> None:
        """Empty the token cache and number terms from 0 again."""
        self.cache = TokenCache(self._edges, self.divides_runs, self._crosses, self.settings.lowercase)
        self._meet: dict[tuple[int, int], bool] = {}  # indexed by spans
        self.char_ids: defaultdict[str, int] = defaultdict()
        self._char_ngrams: dict[range, _CharNgrams] = {}
        self.terms: list[str] = []
        self.ids: dict[str, int] = {}
        if self._known_terms:
            self._restrict(self._known_terms)

    def use(self, known_terms: KnownTerms | None) -> None:
        """Count only the known terms from now on, by their ids; None: count all terms, and number new ones."""
        if known_terms is self._known_terms:
            return
        was_open, self._known_terms, self.words = self._known_terms is None, known_terms, None
        if known_terms is None or not was_open:
            self.clear()
        else:
            self._restrict(known_terms)

    def _restrict(self, known_terms: KnownTerms) -> None:
        before, self.terms = self.terms, known_terms.terms
        self.ids = dict(zip(known_terms.terms, count()))
        if self.stops is not None:
            other = len(known_terms.terms) - 1
            self.words = self.language.word_table(self.ids, self.stops, bool(self._singular), other, self._kind)
        self.cache.restrict(known_terms.ngrams, np.fromiter(self._known_ids(before), np.int32, len(before)))
        if self.divides_runs:
            self.cache.restrict_runs(known_terms.terms)

    def count(self, ngrams: int, char_lengths: range) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Count the terms of the loaded texts: n-grams of up to `ngrams` terms, and of characters.

        Return three arrays: where the entries of each text end, the ids of their terms, and how often each occurs.
        """
        try:
            char_ngrams_of = self._char_ngrams_of_terms(char_lengths) if char_lengths else _CharNgrams()
        except BaseException:
            self.clear()  # some n-grams may have got a number, but no name
            raise
        return self.cache.count(len(self.terms), ngrams, MOST_NGRAMS, *char_ngrams_of.arrays())

    def _char_ngrams_of_terms(self, lengths: range) -> _CharNgrams:
        """Return the n-grams of characters of terms, listed at least for the loaded texts' terms that are counted.

        The n-grams of other terms may not be listed yet.
        """
        listed = self._char_ngrams.setdefault(lengths, _CharNgrams())
        first = len(listed.sizes)
        new = self.terms[first:]
        sizes = np.fromiter((n_char_ngrams(term, lengths) for term in new), np.int64, len(new))
        if self.divides_runs:  # a term of a script without spaces is itself a character n-gram
            sizes[[k for k, term in enumerate(new) if not term.isascii() and is_unspaced(term)]] = 0
        sizes[[id_ - first for id_ in self.char_ids.values() if id_ >= first]] = 0  # they have no n-grams
        listed.sizes.frombytes(sizes.astype(np.int32).tobytes())
        listed.starts.extend([-1] * len(new))
        within = self.cache.terms_within(np.frombuffer(listed.sizes, np.int32), MOST_NGRAMS)
        n_known, self.char_ids.default_factory = len(self.char_ids), count(len(self.terms)).__next__
        for id_ in np.flatnonzero(within & (np.array(listed.starts) < 0) & (np.array(listed.sizes) > 0)).tolist():
            listed.starts[id_] = len(listed.ids)
            listed.ids.extend(map(self.char_ids.__getitem__, char_ngrams(self.terms[id_], lengths)))
        names = [f"~{chars}~" for chars in islice(self.char_ids, n_known, None)]
        self.terms += names
        listed.sizes.extend([0] * len(names))
        listed.starts.extend([-1] * len(names))
        return listed

    def batches(self, texts: Iterable[str]) -> Iterator[None]:
        """Load texts into the token cache, batch by batch; yield when the cache has the tokens of a batch."""
        memory = self.cache.nbytes + _BYTES_PER_STRING * len(self.terms)
        if self._known_terms is None and memory > self.settings.memo_bytes:
            self.clear()
        try:
            for batch in _batched(texts):
                self._evict()
                try:
                    with no_garbage_collection():
                        self._tokenize(_normalise(batch, self.settings.normal_form, self.settings.segmenter))
                except BaseException:
                    # A cache that stopped before it had the tokens of new spans would request them at every text.
                    self.clear()
                    raise
                yield
        finally:
            self.cache.release()

    def _evict(self) -> None:
        """Trim spaCy's tables of strings; if the token cache is too large, drop spans that occurred only once."""
        self.language.trim()
        limit = self.settings.memo_bytes
        if self.cache.span_bytes + _BYTES_PER_STRING * len(self._meet) <= limit:
            return
        self._meet = {}
        self.cache.evict()
        if 2 * self.cache.span_bytes > limit:
            self.cache.evict(keep_reused=False)

    def _tokenize(self, batch: list[str]) -> None:
        if not self.language.splits_at_space:
            self.cache.load(["x"] * len(batch))  # a span for every text
            self.cache.store(["x"], np.full(1, -1, np.int32), np.ones(1, np.int32))
            for i, text in enumerate(batch):
                tokens = self.language.cut_text(text)
                self.cache.override(i, 1, tokens, self._term_ids(tokens))
            return
        self.cache.load(batch)
        if self.divides_runs:
            self.cache.store_runs(self.terms, self.ids)
        if self.words is not None:
            self.cache.store_plain(self.words)
        tokens, lengths = self.language.cut_spans(self.cache.unknown())
        self.cache.store(tokens, self._term_ids(tokens), lengths)
        runs = self.cache.special_groups(self._meet, self._may_meet)
        if len(runs):
            self.cache.override_groups(runs, batch, self._cut_groups)

    def _may_meet(self, left: int, right: int) -> bool:
        """Return whether a special case of the tokenizer may lie across two spans, given by numbers in the cache."""
        (before, _, last), (behind, first, _) = map(self.cache.span, (left, right))
        return self.language.may_meet(before, last, behind, first)

    def _cut_groups(self, texts: list[str]) -> tuple[list[list[str]], np.ndarray]:
        """Tokenize each text as a whole; return its tokens, and the ids of the terms of all tokens.

        Each text is a group of neighbouring spans (pieces between white space). No special case of the tokenizer lies
        across an end of a group, so the group's text has the same tokens alone as in the whole text.
        """
        tokens = [self.language.cut_text(text) for text in texts]
        return tokens, self._term_ids(list(chain.from_iterable(tokens)))

    def _term_ids(self, tokens: list[str]) -> np.ndarray:
        """Return the id of the term of each token; -1 if the token is no term."""
        other = -1 if self._known_terms is None else len(self.terms) - 1
        return number_tokens(tokens, self.ids, self.terms, other, self._words_and_terms, self._simple)

    def _words_and_terms(self, tokens: list[str]) -> tuple[list[str], list[str]]:
        """Return the tokens that count as terms, and the term of each."""
        words = self._words(tokens)
        return words, self._terms_of_words(words)

    def _words(self, tokens: Iterable[str]) -> list[str]:
        """Return the tokens that count as terms."""
        words = tokens
        for holds in self.required:
            words = filter(holds, words)
        for holds in self.excluded:
            words = filterfalse(holds, words)
        return list(words)

    def _terms_of_words(self, words: list[str]) -> list[str]:
        """Return the term of each of some tokens, all of which count as terms."""
        terms = list(map(self.lower, words))
        if self._singular:  # only what ends in "s" may be a plural
            return [singular(term) if term.endswith("s") else term for term in terms]
        return terms

    def _term_of_each(self, tokens: Sequence[str]) -> dict[str, str | None]:
        """Return a dict, cached for the next texts, that has each token's term, or None for a token that is no term."""
        if len(self._term_of) > _MOST_PIECES:
            self._term_of = {}
        terms = self._term_of
        if new := dict.fromkeys(token for token in tokens if token not in terms):
            terms.update(new)
            terms.update(zip(*self._words_and_terms(list(new)), strict=True))
        return terms

    def located(self, i: int, text: str) -> list[Located]:
        """Return the tokens that are terms in the `i`-th loaded text, which is `text`, with their positions."""
        tokens, whole = self.cache.tokens(i, whole_runs=True), replace_surrogates(text)
        if whole != text:
            tokens, text = [replace_surrogates(token) for token in tokens], whole
        terms = self._term_of_each(tokens)
        located: list[Located] = []
        end, new_tuple, has_at = 0, tuple.__new__, text.startswith
        # A tokenizer of whole texts may omit characters.
        leaves_nothing_out = self.language.splits_at_space
        for token in tokens:
            # A single space after a word is not a token.
            start = end + 1 if end and has_at(" ", end) else end
            if not (leaves_nothing_out or has_at(token, start)):
                start = text.find(token, end)
            if start >= 0:
                end = start + len(token)
                if self.divides_runs and is_unspaced(token):
                    located += _located_in_run(token, start)
                elif (term := terms[token]) is not None:
                    located.append(new_tuple(Located, (term, start, end, token)))
        return located

    def places(self, i: int, text: str) -> TermPlaces:
        """Return the terms of the `i`-th loaded text, which is `text`, with their positions, as arrays."""
        whole = replace_surrogates(text)
        if self.language.splits_at_space:
            tokens, ids, starts = self.cache.token_places(i, whole)
        else:
            tokens, ids, starts = _found_in_order(self.cache.tokens(i), whole)
        if whole != text:
            tokens, text = [replace_surrogates(token) for token in tokens], whole
        starts = starts.astype(np.int64)
        ends = starts + np.array([len(token) for token in tokens], np.int64)[ids]
        in_run = np.zeros(len(tokens), bool)
        if self.divides_runs:
            in_run[:] = are_unspaced(tokens)
        term_of = [*map(self._term_of_each(tokens).__getitem__, tokens)]
        is_term = np.array([term is not None for term in term_of], bool) & ~in_run
        chosen = np.flatnonzero(is_term[ids])
        places = (np.cumsum(is_term) - 1)[ids[chosen]], starts[chosen], ends[chosen]
        terms = [term for term in compress(term_of, is_term.tolist()) if term is not None]
        words = TermPlaces([*compress(tokens, is_term.tolist())], terms, *places)
        of_runs = np.flatnonzero(in_run[ids])
        if not len(of_runs):
            return words
        placed = _with_runs(words, text, np.column_stack([starts[of_runs], ends[of_runs]]))
        crossing = crossing_text(text, self.settings.lowercase) if self._crosses else ""
        return _with_crossings(placed, text, crossing) if crossing else placed

    def crossing(self, text: str) -> list[Located]:
        """Return the n-grams of a text that contain stand-ins, with their positions: see `place_terms`."""
        crossing = crossing_text(text, self.settings.lowercase) if self._crosses else ""
        ngrams = (ngram for ngram in _located_in_run(crossing, 0) if has_stand_in(ngram.term))
        return [ngram._replace(token=text[ngram.start : ngram.end]) for ngram in ngrams]

    def _known_ids(self, terms: list[str]) -> Iterator[int]:
        """Yield the ids of terms when only known terms count; an unknown term gets the id of the last known one."""
        return map(self.ids.get, terms, repeat(len(self.terms) - 1))


def _normalise(texts: list[str], normal_form: str, segmenter: str) -> list[str]:
    """Return texts in a normal form; unless spaCy segments them, U+FFFD replaces characters reserved as stand-ins."""
    texts = [*map(normalised, texts)] if normal_form == NFC else texts
    return texts if segmenter == SPACY else [*map(without_stand_ins, texts)]


def _found_in_order(tokens: list[str], text: str) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return the distinct tokens and, for each token, its index among them and its start in the text.

    The tokenizer may have left out parts of the text.
    """
    number_of: dict[str, int] = {}
    ids, starts, end = array("i"), array("i"), 0
    for token in tokens:
        start = end + 1 if end and text.startswith(" ", end) else end
        if not text.startswith(token, start):
            start = text.find(token, end)
        if start >= 0:
            ids.append(number_of.setdefault(token, len(number_of)))
            starts.append(start)
            end = start + len(token)
    return list(number_of), np.array(ids, np.int32), np.array(starts, np.int32)


def _with_runs(words: TermPlaces, text: str, runs: np.ndarray) -> TermPlaces:
    """Return the places of words and of the n-grams of runs, given where the runs start and end in the text.

    A run is a sequence of characters of a script without spaces between words.
    """
    examples, keys, *of_runs = ngrams_of_runs(text, runs)
    order = np.argsort(keys)
    names = [text[start:end] for start, end in zip(*examples[order].T.tolist(), strict=True)]
    of_runs[0] = len(words.terms) + np.argsort(order)[of_runs[0]]
    ids, starts, ends = (np.concatenate(both) for both in zip(words[2:], of_runs, strict=True))
    order = np.argsort(starts, kind="stable")
    return TermPlaces(words.tokens + names, words.terms + names, ids[order], starts[order], ends[order])


def _with_crossings(placed: TermPlaces, text: str, crossing: str) -> TermPlaces:
    """Return places of terms, followed by those of n-grams that contain stand-ins: see `Tokens.place_terms`.

    `crossing` is the text with stand-ins; "": there are no such n-grams.
    """
    examples, _, ids, starts, ends = ngrams_of_runs(crossing, np.array([[0, len(crossing)]]))
    names = [crossing[start:end] for start, end in examples.tolist()]
    chosen = np.flatnonzero(np.array([*map(has_stand_in, names)])[ids])
    added = len(placed.terms) + ids[chosen], starts[chosen], ends[chosen]
    tokens = [text[start:end] for start, end in examples.tolist()]
    joined = (np.concatenate(both) for both in zip(placed[2:], added, strict=True))
    return TermPlaces(placed.tokens + tokens, placed.terms + names, *joined)


def _located_in_run(run: str, start: int) -> list[Located]:
    """Return the n-grams of `run`, characters of a script without spaces; it begins at `start` in its text."""
    places = [(run[first:stop], start + first, start + stop) for first, stop in places_in_run(len(run))]
    return [Located(term, first, stop, term) for term, first, stop in places]


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Switch the garbage collector off for a ``with`` block.

    It would check all tokens and their places again and again, although none of them is garbage.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    _WITHOUT_COLLECTION.add(threading.get_ident())
    try:
        yield
    finally:
        _WITHOUT_COLLECTION.discard(threading.get_ident())
        gc.enable()


def _reset_after_fork() -> None:
    """In a forked process, undo what the parent's threads had begun: renew a lock, switch garbage collection on."""
    global _CREATING
    _CREATING = threading.Lock()
    if _WITHOUT_COLLECTION:
        _WITHOUT_COLLECTION.clear()
        gc.enable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


def _joined(parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if len(parts) == 1:
        return parts[0]
    starts = np.cumsum([0] + [len(ids) for _, ids, _ in parts])
    ends = [part[0] + start for part, start in zip(parts, starts[:-1], strict=True)]
    joined = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.int32)
    for start, stop in zip(starts[-2::-1], starts[:0:-1], strict=True):  # from the last, as each gives its memory back
        _, *arrays = parts.pop()
        for whole, values in zip(joined, arrays, strict=True):
            whole[start:stop] = values
    return np.concatenate([np.zeros(0, np.int64), *ends]), *joined


def char_ngrams(term: str, lengths: range) -> list[str]:
    """Return the n-grams of characters of a term, in lower case and with a space added at either end.

    A term shorter than all `lengths` is itself an n-gram.
    """
    padded = f" {term.lower()} "
    n_characters = len(padded)
    return [
        padded[start : start + n]
        for n in _possible(n_characters, lengths)
        for start in range(max(n_characters - n, 0) + 1)
    ]


def char_places(n_characters: int, lengths: range) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each n-gram of some characters, in the order of `char_ngrams`."""
    for n in _possible(n_characters, lengths):
        for start in range(max(n_characters - n, 0) + 1):
            yield start, min(start + n, n_characters)


def n_char_ngrams(term: str, lengths: range) -> int:
    """Return how many n-grams of characters `char_ngrams` returns for a term."""
    n_characters = len(term.lower()) + 2
    return sum(max(n_characters - n, 0) + 1 for n in _possible(n_characters, lengths))


def n_words_with_ngrams(sizes: ArrayLike) -> int:
    """Return how many words of a text, from the first on, have at most `MOST_NGRAMS` n-grams of characters together.

    `sizes` has the number of n-grams of each distinct word, in the order of the text.
    """
    return int(np.searchsorted(np.cumsum(sizes), MOST_NGRAMS, side="right"))


def _possible(n_characters: int, lengths: range) -> range:
    """Return the lengths without those above the number of characters; or else the shortest length."""
    return range(lengths[0], max(min(lengths[-1], n_characters), lengths[0]) + 1)


def padded_places(located: Located) -> list[tuple[int, int]]:
    """Return, for each character of a term with a space added at either end, its start and end in the term's token.

    For the two spaces, these are empty spans at the token's ends. If the term is a singular, the characters of its
    changed ending have the start and the end of the token's ending.
    """
    token, term = located.token, located.term.lower()
    of_lower = [(i, i + 1) for i, character in enumerate(token) for _ in character.lower()]
    pairs = zip(token.lower(), term, strict=False)
    n_equal = next((i for i, (one, other) in enumerate(pairs) if one != other), min(len(of_lower), len(term)))
    places = of_lower[: min(n_equal, len(term) - 1)]
    start = of_lower[len(places)][0] if len(places) < len(of_lower) else len(token)
    return [(0, 0), *places, *[(start, len(token))] * (len(term) - len(places)), (len(token), len(token))]


def _batched(texts: Iterable[str]) -> Iterator[list[str]]:
    """Divide texts into lists of at most `BATCH_CHARACTERS` characters and `BATCH_TEXTS` texts.

    A text with more characters is a list of its own.
    """
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
