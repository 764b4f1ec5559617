"""Count how often texts name topics: a long text that speaks of a topic often says so in the topic's own words."""

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from textcat.features.tokens import Tokens

_QUALIFIER = re.compile(r"\([^()]*\)")  # of a name: "bass (fish)"
# Of a word with an ending, all but the last two characters are compared, and at least four. A longer word may follow
# by at most so many characters: else it is a compound with the word.
_ENDING, _LEAST_BEGINNING, _MOST_ADDED = 2, 4, 5


class NamesInTexts:
    """Find the names of topics in texts, as runs of terms.

    Parameters
    ----------
    tokens : Tokens
        Divides names and texts into terms.
    names : sequence of str
        A name for each topic. What a name has in parentheses is left out.
    by_beginnings : bool
        Whether words with different endings are taken for the same word, if their beginnings are equal. Otherwise, the
        terms must be equal.
    """

    def __init__(self, tokens: "Tokens", names: Sequence[str], *, by_beginnings: bool):
        self._tokens, self._by_beginnings, self._n_topics = tokens, by_beginnings, len(names)
        self._names_of: dict[str, list[tuple[list[str], int]]] = {}  # by the beginning of the name's first word
        located = tokens.locate_tokens([_QUALIFIER.sub(" ", name) for name in names])
        for topic, tokens_of_name in enumerate(located):
            if words := [token.term for token in tokens_of_name]:
                self._names_of.setdefault(self._beginning(words[0]), []).append((words, topic))

    def counts(self, texts: Iterable[str]) -> np.ndarray:
        """Return how often the texts name each topic, all texts together: shape (n_topics,), int64."""
        counts = np.zeros(self._n_topics, np.int64)
        for tokens_of_text in self._tokens.locate_tokens(texts):
            terms = [token.term for token in tokens_of_text]
            for start, term in enumerate(terms):
                for beginning in self._beginnings(term):
                    for words, topic in self._names_of.get(beginning, ()):
                        counts[topic] += self._are_at(words, terms, start)
        return counts

    def _are_at(self, words: list[str], terms: list[str], start: int) -> bool:
        followed = terms[start : start + len(words)]
        return len(followed) == len(words) and all(map(self._is_same, words, followed))

    def _is_same(self, word: str, term: str) -> bool:
        if not self._by_beginnings or len(word) < _LEAST_BEGINNING:
            return word == term
        return len(term) <= len(word) + _MOST_ADDED and term.startswith(self._beginning(word))

    def _beginning(self, word: str) -> str:
        return word[: max(_LEAST_BEGINNING, len(word) - _ENDING)] if self._by_beginnings else word

    def _beginnings(self, term: str) -> list[str]:
        """Return all that `_beginning` may return for a word that is the same as a term."""
        if not self._by_beginnings or len(term) < _LEAST_BEGINNING:
            return [term]
        return [term[:n] for n in range(_LEAST_BEGINNING, len(term) + 1)]
