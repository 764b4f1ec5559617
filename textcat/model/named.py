"""Count how often texts name topics: a long text that speaks of a topic often says so in the topic's own words."""

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from textcat.features.tokens import Tokens

_QUALIFIER = re.compile(r"\([^()]*\)")  # of a name: "bass (fish)"
# Of a word with an ending, all but the last two characters are compared, and at least four. A longer word may follow
# by at most so many characters: else it is a compound with the word.
_ENDING, _LEAST_BEGINNING, _MOST_ADDED = 2, 4, 5


_Key: TypeAlias = tuple[str, int]  # the beginning and the length of a word; the length is -1 if it has no ending


class _Node:
    """Stand for the first words of some names."""

    __slots__ = ("following", "topics")

    def __init__(self) -> None:
        self.following: dict[_Key, _Node] = {}  # by the next word
        self.topics: list[int] = []  # whose names end here


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
        self._names = _Node()
        self._keys: set[_Key] = set()
        located = tokens.locate_tokens([_QUALIFIER.sub(" ", name) for name in names])
        for topic, tokens_of_name in enumerate(located):
            node = self._names
            for token in tokens_of_name:
                key = self._key(token.term)
                self._keys.add(key)
                node = node.following.setdefault(key, _Node())
            if tokens_of_name:
                node.topics.append(topic)

    def counts(self, texts: Iterable[str]) -> np.ndarray:
        """Return how often the texts name each topic, all texts together: shape (n_topics,), int64.

        From each term on, the text is compared only with the names whose words so far are the same as its terms, and
        once with names of the same words: the work does not grow with the number of names that begin alike.
        """
        times: dict[_Node, int] = {}
        keys_of: dict[str, tuple[_Key, ...]] = {}
        for tokens_of_text in self._tokens.locate_tokens(texts):
            keys = []
            for token in tokens_of_text:
                if (found := keys_of.get(token.term)) is None:
                    found = keys_of[token.term] = self._keys_of_term(token.term)
                keys.append(found)
            for start in range(len(keys)):
                nodes, stop = [self._names], start
                while nodes and stop < len(keys):
                    nodes = [node.following[key] for key in keys[stop] for node in nodes if key in node.following]
                    stop += 1
                    for node in nodes:
                        if node.topics:
                            times[node] = times.get(node, 0) + 1
        counts = np.zeros(self._n_topics, np.int64)
        for node, n in times.items():
            counts[node.topics] = n
        return counts

    def _key(self, word: str) -> _Key:
        """Return what words of names have in common that are the same as the same terms."""
        if not self._by_beginnings or len(word) < _LEAST_BEGINNING:
            return word, -1
        return word[: max(_LEAST_BEGINNING, len(word) - _ENDING)], len(word)

    def _keys_of_term(self, term: str) -> tuple[_Key, ...]:
        """Return the keys of the words of names that are the same as a term, which are few for a term of any length."""
        keys = [(term, -1)]
        if self._by_beginnings and len(term) >= _LEAST_BEGINNING:
            for length in range(max(_LEAST_BEGINNING, len(term) - _MOST_ADDED), len(term) + _ENDING + 1):
                n = max(_LEAST_BEGINNING, length - _ENDING)
                keys.append((term[:n], length))
        return tuple(key for key in keys if key in self._keys)
