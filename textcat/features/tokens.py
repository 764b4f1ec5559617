"""Turn texts into term counts: spaCy's tokens, remembered for every chunk between white space."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from textcat.features.language import mended
from textcat.features.reader import Known, Reader, Settings

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


class Tokens:
    """Tokenize with spaCy, and count the tokens that are terms.

    The tokens are those of `spacy.blank(lang)`, one by one. White space is never a term. The tokens of every distinct
    chunk of text are kept in a memo, which is not pickled and has no influence on the results. Methods may be called
    from several threads. It has the parameters of an estimator of scikit-learn, but does not import that.

    Parameters
    ----------
    lang : str, default="en"
        A language code that `spacy.blank` takes.
    lowercase : bool, default=True
        The term is the token in lower case (spaCy's `lower_`).
    alphabetic : bool, default=True
        Leave out tokens that are not made of letters alone (spaCy's `is_alpha`).
    alphanumeric : bool, default=False
        Leave out tokens without a letter or a digit, such as punctuation; `alphabetic` leaves out more.
    remove_stop_words : bool, default=True
        Leave out spaCy's stop words of the language (spaCy's `is_stop`).
    fold_plurals : bool, default=False
        Take plurals for their singulars, see `plurals.singular`. It knows English endings in lower case only, and
        changes nothing in other languages.
    memo_bytes : int, default=268435456
        About how much memory the memo may take. When a batch of texts has filled it, the chunks that did not come again
        are forgotten.

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
        alphanumeric: bool = False,
        remove_stop_words: bool = True,
        fold_plurals: bool = False,
        memo_bytes: int = 256 * 2**20,
    ) -> None:
        self.lang = lang
        self.lowercase = lowercase
        self.alphabetic = alphabetic
        self.alphanumeric = alphanumeric
        self.remove_stop_words = remove_stop_words
        self.fold_plurals = fold_plurals
        self.memo_bytes = memo_bytes

    def prepare(self) -> Tokens:
        """Load the language now instead of at the first text, which takes about a second."""
        self._reader()
        return self

    def tokenize(self, text: str) -> list[str]:
        """List all tokens of a text, white space included: `[token.text for token in nlp(text)]`."""
        reader = self._reader()
        with reader.lock:
            (tokens,) = [reader.memo.tokens(0) for _ in reader.batches([text])]
        return [mended(token) for token in tokens]

    def count(self, texts: Iterable[str]) -> np.ndarray:
        """Count the tokens of every text, white space included: an array of shape (n_texts,), int64."""
        reader = self._reader()
        with reader.lock:
            totals = [reader.memo.n_tokens() for _ in reader.batches(texts)]
        return np.concatenate([np.zeros(0, np.int64), *totals])

    def count_terms(
        self, texts: Iterable[str], *, ngrams: int = 1, chars: int = 0, known: Known | None = None
    ) -> TermCounts:
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
        known : Known, optional
            Count terms and n-grams by their places in there; all others count as the last ones, and so take no memory,
            however many there are. Not together with `chars`.
        """
        reader = self._reader()
        with reader.lock:
            reader.know(known)
            parts = [reader.count(ngrams, chars) for _ in reader.batches(texts)]
            return TermCounts(
                *_joined(parts),
                reader.terms,
                known.ngrams if known else reader.memo.parts_of_ngrams if ngrams > 1 else np.zeros((0, 2), np.int32),
                np.array(list(reader.places_of_chars), np.int32),
            )

    def _reader(self) -> Reader:
        settings = Settings(**self.get_params())
        with _CREATING:
            reader = self.__dict__.get("_memory")
            if reader is None or reader.settings != settings:
                reader = self._memory = Reader(settings)
            return reader

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Give the parameters by name, as scikit-learn asks for them."""
        return {name: getattr(self, name) for name in _PARAMETERS}

    def set_params(self, **parameters: Any) -> Tokens:
        """Change parameters, as scikit-learn does it."""
        for name, value in parameters.items():
            if name not in _PARAMETERS:
                raise ValueError(f"Tokens has no parameter {name!r}; it has {', '.join(_PARAMETERS)}.")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        changed = [f"{name}={value!r}" for name, value in self.get_params().items() if value != _PARAMETERS[name]]
        return f"Tokens({', '.join(changed)})"

    def __getstate__(self) -> dict[str, Any]:
        return self.get_params()


_PARAMETERS = {name: each.default for name, each in inspect.signature(Tokens).parameters.items()}


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
