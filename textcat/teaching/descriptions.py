"""Convert a topic's description, query or name to a feature vector like those of a pool's documents.

A rare word also adds related terms.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack

from textcat.base.words import with_spaces
from textcat.corpus.documents import Document

_SHORTEST = 3  # minimum letters of a word to expand, and of the parts of a compound
_MOST = 5  # maximum number of longer terms that are added for a word
_COMMON = 0.01  # document frequency above which a word, such as "the", is not expanded
_WEIGHT = 0.5  # weight of all terms added for a word together, relative to the word


class Descriptions:
    """Turn descriptions, queries and names of topics into feature vectors like those of a pool's documents.

    A description has few words, and people write some of these differently from the documents: "alum" for aluminium,
    "sunseed" for sun seed. So a word that occurs in at most 1 % of the documents is expanded: the vector also gets up
    to five longer words that begin with the word, the most frequent ones. If no document has the word, the vector also
    gets the two words of which it is composed.
    """

    def __init__(self, features: Any) -> None:
        self._features = features
        self._terms: list[str] | None = None
        self._kept: dict[str, csr_matrix] = {}

    def rows(self, texts: Sequence[str]) -> csr_matrix:
        """Return a feature vector of length 1 (L2 norm) for each text: shape (n_texts, n_terms), float32.

        The vector of a text without known terms is 0.
        """
        for text in set(texts) - self._kept.keys():
            self._kept[text] = self._row(text)
        none = csr_matrix((0, len(self._features.idf_)), dtype=np.float32)
        return vstack([none, *(self._kept[text] for text in texts)], "csr", np.float32)

    def _row(self, text: str) -> csr_matrix:
        row = self._features.transform([Document("", {"title": text, "body": text})])
        if not self._features.vocabulary_:
            return row
        idf, expansion = self._features.idf_, np.zeros(row.shape[1])
        words = re.split(r"[\d\s]+", with_spaces(self._features.tokens_.as_read(text).lower()))
        for word in sorted({word for word in words if word[:1].isalnum()}):
            columns_of_word = self.words(self._features.transform([word]).indices)
            if len(columns := self._related(word, columns_of_word)):
                expansion[columns] += (_WEIGHT if len(columns_of_word) else 1) * idf[columns] / np.sqrt(len(columns))
        if not expansion.any():
            return row
        # The row before normalisation to length 1.
        expansion[row.indices] += row.data * np.sqrt((idf[row.indices] ** 2).sum())
        return csr_matrix((expansion / np.linalg.norm(expansion))[np.newaxis], dtype=np.float32)

    def words(self, columns: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the given columns without the columns of character n-grams."""
        names = self._features.listed_names()
        return np.array([j for j in columns.tolist() if "~" not in names[j]], np.int32)

    def _idf_of_common(self) -> float:
        """Return the idf of a word in 1 % of the documents: only words with this idf or a larger one are expanded."""
        n, smooth = self._features.n_documents_, self._features.idf == "smooth"
        return float(1 + np.log((1 + n) / (1 + _COMMON * n)) if smooth else -np.log(_COMMON))

    def _related(self, word: str, word_columns: NDArray[np.int32]) -> list[int]:
        """Return the columns of terms that are added to a description as expansions of one of its words.

        They are longer words that begin with the word, and parts of a compound. `word_columns` are the columns of the
        word itself (one for each zone that has terms of its own), and are not returned.
        """
        vocabulary, idf = self._features.vocabulary_, self._features.idf_
        if len(word) < _SHORTEST or (len(word_columns) and idf[word_columns].min() < self._idf_of_common()):
            return []
        if self._terms is None:
            # Words shared by all zones, in alphabetical order.
            prefixes = self._features.zone_prefixes()
            self._terms = [
                term for term in vocabulary if " " not in term and "~" not in term and not term.startswith(prefixes)
            ]
        first, last = (bisect_left(self._terms, end) for end in (word, word + chr(0x10FFFF)))
        longer = {vocabulary[term] for term in self._terms[first:last]}.difference(word_columns.tolist())
        columns = sorted(longer, key=lambda column: (idf[column], column))[:_MOST]
        if not len(word_columns):
            for i in range(_SHORTEST, len(word) - _SHORTEST + 1):
                parts = word[:i], word[i:]
                if all(part in vocabulary for part in parts):
                    columns += [vocabulary[term] for term in (*parts, " ".join(parts)) if term in vocabulary]
        return sorted(set(columns))
