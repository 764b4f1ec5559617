"""Add character n-grams to the counts of terms; they are computed from the terms, without the texts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from textcat.features.fitting import CountedDocuments
from textcat.features.scripts import is_unspaced
from textcat.features.tokens import MOST_NGRAMS, TermCounts, char_ngrams, n_char_ngrams, n_words_with_ngrams

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from textcat.features.tfidf import TfIdf


def add_char_ngrams(counted: CountedDocuments, lengths: range, *, divides_runs: bool) -> CountedDocuments:
    """Add the counts of the n-grams of characters of the documents' terms; return all counts.

    The result is as if the n-grams had been counted with the terms, which must have been counted without them.
    `divides_runs` is the attribute of the `Tokens` that counted them. If it is True, terms in scripts without spaces
    between words are n-grams already, and get none.
    """
    counts = with_char_ngrams(counted.counts, lengths, divides_runs=divides_runs)
    added = _sums_by_text(counts) - _sums_by_text(counted.counts)
    return counted._replace(counts=counts, lengths=counted.lengths + added)


def with_char_ngrams(counts: TermCounts, lengths: range, *, divides_runs: bool) -> TermCounts:
    """Return the counts of terms, followed in each text by the counts of the n-grams of characters of its terms.

    `divides_runs` is the attribute of the `Tokens` that counted the terms. If it is True, terms in scripts without
    spaces between words are n-grams already, and get none.
    """
    ngrams_of_terms, n_of_terms, names = _ngrams_of_terms(counts.terms, lengths, divides_runs)
    sizes = np.diff(counts.ends, prepend=0)
    added = _first_words(_words(counts), n_of_terms) @ ngrams_of_terms
    added_sizes = np.diff(added.indptr)
    ends = np.cumsum(sizes + added_sizes)
    is_added = np.ones(int(ends[-1]) if len(ends) else 0, bool)
    # Existing entries of a text come first.
    starts = ends - sizes - added_sizes
    first = np.cumsum(sizes) - sizes
    is_added[np.arange(len(counts.ids)) + np.repeat(starts - first, sizes)] = False
    ids, occurrences = np.empty(len(is_added), np.int32), np.empty(len(is_added), np.int32)
    ids[~is_added], occurrences[~is_added] = counts.ids, counts.counts
    ids[is_added], occurrences[is_added] = added.indices + np.int32(len(counts.terms)), added.data
    chars = np.arange(len(counts.terms), len(counts.terms) + len(names), dtype=np.int32)
    return TermCounts(ends, ids, occurrences, [*counts.terms, *names], counts.ngrams, chars)


def words_with_ngrams(
    terms: list[str], ids: np.ndarray, char_ids: np.ndarray, features: TfIdf
) -> Iterator[tuple[int, str, list[str]]]:
    """Yield the words of a text whose n-grams of characters are counted, and these n-grams.

    `ids` has the text's entries of `TermCounts.ids`; the first of each three values is a word's position there.
    `char_ids` has the ids of all n-grams of characters, in ascending order.
    """
    lengths, divides_runs = features.char_lengths, features.tokens_.divides_runs
    place = np.minimum(np.searchsorted(char_ids, ids), len(char_ids) - 1)
    is_word = (ids >= 0) & (char_ids[place] != ids) if len(char_ids) else ids >= 0
    words = [(i, terms[ids[i]]) for i in np.flatnonzero(is_word).tolist()]
    words = [(i, term) for i, term in words if not (divides_runs and is_unspaced(term))]
    for i, term in words[: n_words_with_ngrams([n_char_ngrams(term, lengths) for _, term in words])]:
        yield i, term, char_ngrams(term, lengths)


def _first_words(words: csr_array, n_of_terms: np.ndarray) -> csr_array:
    """Leave out the words of each text from the first one on with which it would have too many n-grams of characters.

    `n_of_terms` has the number of n-grams of each term.
    """
    n_so_far = np.append(0, np.cumsum(n_of_terms[words.indices]))
    before = np.repeat(n_so_far[words.indptr[:-1]], np.diff(words.indptr))
    is_kept = n_so_far[1:] - before <= MOST_NGRAMS
    if is_kept.all():
        return words
    ends = np.append(0, np.cumsum(is_kept))[words.indptr]
    return type(words)((words.data[is_kept], words.indices[is_kept], ends), shape=words.shape)


def _ngrams_of_terms(terms: list[str], lengths: range, divides_runs: bool) -> tuple[csr_array, np.ndarray, list[str]]:
    """Return how often each term has each n-gram of characters, shape (n_terms, n_ngrams), their numbers and names.

    The first number is that of the n-grams of each term. Terms with too many for a text are left out.
    """
    from scipy.sparse import csr_array

    position_of: defaultdict[str, int] = defaultdict(count().__next__)
    columns: list[int] = []
    ends = [0]
    n_of_terms = np.zeros(len(terms), np.int64)
    for i, term in enumerate(terms):
        if not (divides_runs and is_unspaced(term)):
            n_of_terms[i] = n_char_ngrams(term, lengths)
            if n_of_terms[i] <= MOST_NGRAMS:
                columns += map(position_of.__getitem__, char_ngrams(term, lengths))
        ends.append(len(columns))
    shape = (len(terms), len(position_of))
    matrix = csr_array((np.ones(len(columns), np.int32), np.array(columns, np.int32), np.array(ends)), shape=shape)
    matrix.sum_duplicates()
    return matrix, n_of_terms, [f"~{ngram}~" for ngram in position_of]


def _words(counts: TermCounts) -> csr_array:
    """Return the counts of terms alone, without n-grams of terms: shape (n_texts, n_terms), int32."""
    from scipy.sparse import csr_array

    is_term = counts.ids >= 0
    ends = np.append(0, np.cumsum(is_term))[np.append(0, counts.ends)]
    arrays = counts.counts[is_term], counts.ids[is_term], ends
    return csr_array(arrays, shape=(len(counts.ends), len(counts.terms)))


def _sums_by_text(counts: TermCounts) -> np.ndarray:
    """Return the sum of the counts of each text: shape (n_texts,), int64."""
    sums = np.append(0, np.cumsum(counts.counts, dtype=np.int64))
    return sums[counts.ends] - sums[np.append(0, counts.ends[:-1])]
