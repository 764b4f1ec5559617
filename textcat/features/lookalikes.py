"""Find terms similar to the words of a text, in spelling (inflected forms, compounds and their parts) or meaning."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from textcat.features.tokens import char_ngrams
from textcat.features.vectors import ColumnVectors

_LENGTHS = range(4, 5)  # of n-grams of characters; a word is padded with a blank at either end
# Terms with a lower cosine are too dissimilar, and more terms per word enlarge models without improving rankings.
_LEAST_COSINE, _MOST = 0.3, 30
# Of the cosines .4 and .5, and of 15, 30 and 100 terms, these find the most topics by their names: see
# docs/background/many-topics.md.
_LEAST_COSINE_OF_VECTORS = 0.4
BLOCK = 500  # maximum number of words, or rows, whose similarities to all terms are in memory


class LookAlikes:
    """Turn document vectors into unit vectors of the terms that are spelled similarly to the documents' words.

    If columns include n-grams of characters, only these columns of a vector are kept, because words that are spelled
    similarly share them. Otherwise, a word is replaced by the words that share n-grams of characters with it, each
    weighted by the cosine of the two words' n-grams. The columns stay the same.

    Parameters
    ----------
    terms : sequence of str
        The names of the columns.

    Attributes
    ----------
    ngrams : ndarray of int
        The columns that are n-grams of characters.
    """

    def __init__(self, terms: Sequence[str]):
        self._n_terms = len(terms)
        self._is_phrase = np.array([" " in term and not _is_char_ngram(term) for term in terms], bool)
        self.ngrams = np.array([j for j, term in enumerate(terms) if _is_char_ngram(term)], np.int64)
        self._words = np.array([j for j, term in enumerate(terms) if _is_word(term)], np.int64)
        self._ngrams_of_words = _ngram_rows([terms[j] for j in self._words]) if not len(self.ngrams) else None

    def rows(self, rows: sp.csr_array) -> sp.csr_array:
        """Return, for each document vector (row), the unit vector of terms spelled similarly to its words.

        The vectors have the same columns; that of a document without a word is empty.
        """
        if self._ngrams_of_words is None:
            return _unit_rows(_columns_only(rows, self.ngrams))
        words = np.intersect1d(np.unique(rows.indices), self._words)
        alike = self._alike(np.searchsorted(self._words, words), self._ngrams_of_words)
        in_columns = sp.csr_array((alike.data, self._words[alike.indices], alike.indptr), (len(words), self._n_terms))
        return _unit_rows(sp.csr_array(rows)[:, words] @ in_columns)

    def lengths(self, rows: sp.csr_array) -> np.ndarray:
        """Return the number of words and n-grams of characters in each document vector, without n-grams of words."""
        counted = np.append(0, np.cumsum(~self._is_phrase[rows.indices]))
        return counted[rows.indptr[1:]] - counted[rows.indptr[:-1]]

    def _alike(self, words: np.ndarray, ngrams: sp.csr_array) -> sp.csr_array:
        """Return the cosines of some words with the words that are spelled most similarly: shape (n_some, n_words).

        `words` has the positions of the words among all words, and `ngrams` the result of `_ngram_rows` for all words.
        """
        transposed = ngrams.T.tocsr()
        blocks = [
            _largest(sp.csr_array(ngrams[words[start : start + BLOCK]] @ transposed), _LEAST_COSINE)
            for start in range(0, len(words), BLOCK)
        ]
        empty = sp.csr_array((0, len(self._words)), dtype=np.float32)
        return sp.csr_array(sp.vstack([empty, *blocks], format="csr"))


def terms_of_like_meaning(rows: sp.csr_array, vectors: ColumnVectors) -> sp.csr_array:
    """Return, for each document vector (row), a unit vector of the at most 30 terms that are most similar in meaning.

    A term is weighted by the cosine of its word vector and of the weighted sum of those of the document's words;
    cosines below .4 do not count. If no word of a document has a word vector, the result is an empty row.
    """
    in_order, n_columns = sp.csr_matrix(rows, dtype=np.float32), rows.shape[1]
    in_order.sort_indices()
    of_rows, of_terms = _unit(vectors.dimensions(in_order)), _unit(vectors.values.astype(np.float32))
    blocks = [
        _largest(sp.csr_array(_at_least(of_rows[start : start + BLOCK] @ of_terms.T)), _LEAST_COSINE_OF_VECTORS)
        for start in range(0, len(of_rows), BLOCK)
    ]
    nearest = sp.csr_array(sp.vstack([sp.csr_array((0, len(of_terms)), dtype=np.float32), *blocks], format="csr"))
    return _unit_rows(
        sp.csr_array((nearest.data, vectors.columns[nearest.indices], nearest.indptr), (len(of_rows), n_columns))
    )


def _at_least(cosines: np.ndarray) -> np.ndarray:
    return np.where(cosines >= _LEAST_COSINE_OF_VECTORS, cosines, np.float32(0))


def _unit(vectors: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths == 0, 1, lengths).astype(np.float32)


def _is_char_ngram(term: str) -> bool:
    return len(term) > 2 and term[0] == term[-1] == "~"


def _is_word(term: str) -> bool:
    return len(term) > 2 and " " not in term and not _is_char_ngram(term)


def _ngram_rows(words: Sequence[str]) -> sp.csr_array:
    """Return a matrix with a row of unit length for each word: its n-grams of characters, weighted by their idf."""
    column_of: dict[str, int] = {}
    columns = [{column_of.setdefault(ngram, len(column_of)) for ngram in char_ngrams(word, _LENGTHS)} for word in words]
    indices = np.array([column for of_word in columns for column in sorted(of_word)], np.int32)
    indptr = np.cumsum([0, *map(len, columns)])
    idf = 1 + np.log((1 + len(words)) / (1 + np.bincount(indices, minlength=len(column_of))))
    return _unit_rows(sp.csr_array((idf[indices].astype(np.float32), indices, indptr), (len(words), len(column_of))))


def _largest(cosines: sp.csr_array, least: float) -> sp.csr_array:
    """Keep only the 30 largest entries of each row, without those below `least`; of equal ones, keep the first."""
    rows = np.repeat(np.arange(cosines.shape[0]), np.diff(cosines.indptr))
    is_large = cosines.data >= least
    rows, columns, data = rows[is_large], cosines.indices[is_large], cosines.data[is_large]
    order = np.lexsort((columns, -data, rows))
    rows, columns, data = rows[order], columns[order], data[order]
    is_kept = np.arange(len(rows)) - np.searchsorted(rows, rows) < _MOST
    return sp.csr_array((data[is_kept], (rows[is_kept], columns[is_kept])), cosines.shape)


def _columns_only(rows: sp.csr_array, columns: np.ndarray) -> sp.csr_array:
    chosen = sp.csr_array(rows, copy=True)
    chosen.data[~np.isin(chosen.indices, columns)] = 0
    chosen.eliminate_zeros()
    return chosen


def _unit_rows(rows: sp.csr_array) -> sp.csr_array:
    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    lengths[lengths == 0] = 1
    scaled = sp.csr_array(rows, dtype=np.float32, copy=True)
    scaled.data /= np.repeat(lengths, np.diff(scaled.indptr)).astype(np.float32)
    scaled.sort_indices()
    return scaled
