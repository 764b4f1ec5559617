"""Find the smallest set of words whose removal takes a tag from a document.

A removed word is replaced by an unknown word, which has no column; n-grams with the removed word disappear, and the
document's vector is normalised again. Let ``x(W)`` be the vector without the words W, before normalisation. The
document loses the tag if ``F(W) = w·x(W) - c·|x(W)| ≤ 0``, with ``c = threshold - bias``.

The length is ``|x(W)| = sqrt(Q - q)``, where Q is the squared length of the whole vector, and q is the part of Q that
the removal of W takes away. As a function of q, the length is concave: below its tangents and above its chord. This
gives a lower bound of F that is linear in the largest loss that each word can cause. The bound shows that no set of
certain sizes can take the tag, and excludes most sets of the other sizes.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate, chain, islice
from typing import Any, NamedTuple

import numpy as np

from textcat.features.char_ngrams import words_with_ngrams
from textcat.features.rows import Rows
from textcat.features.scripts import is_unspaced, shown
from textcat.features.tfidf import TfIdf
from textcat.features.tokens import OTHER, TermCounts
from textcat.features.zones import TextParts
from textcat.model.decisions import Decisions
from textcat.model.scorer import Scorer

# a function that returns F for sets, given as an array of shape (n_sets, n_words)
_Excess = Callable[[np.ndarray], np.ndarray]
_MOST_SETS, _AT_ONCE = 500, 50  # maximum number of sets to try, and how many of them at once
_ROUNDINGS = 1e-6, 1e-5, 1e-4  # safety margin below the threshold, because the tagger's float32 scores are rounded


class Without(NamedTuple):
    """Words whose removal takes a tag from a document; `least`: no smaller set of words does so."""

    words: list[str]  # strongest first; [] if the tag stays as long as the document has a known word
    least: bool  # True: no smaller set exists. False: each word is needed, but a smaller set may exist


class _Remainders:
    """Compute a document's vector after the removal of some of its words."""

    def __init__(self, features: TfIdf, parts: TextParts, counts: TermCounts, lengths: np.ndarray):
        self._features, self._parts, self._counts, self._lengths = features, parts, counts, lengths
        self._find_words()
        self._find_cells()

    def _find_words(self) -> None:
        """List the document's words, and count the occurrences of each term that disappear if a word is removed.

        The counts are stored with shape (n_words, n_entries), where an entry is a term or n-gram of one text of the
        document.
        """
        counts, words = self._counts, dict[str, int]()
        text_of = np.repeat(np.arange(len(counts.ends)), np.diff(counts.ends, prepend=0)).tolist()
        ids, occurrences, is_chars = counts.ids.tolist(), counts.counts.tolist(), set(counts.chars.tolist())
        members = [() if id_ in is_chars else self.members(id_) for id_ in ids]
        for member in chain.from_iterable(members):
            words.setdefault(member, len(words))
        taken = np.zeros((len(words), len(ids)))
        entry_of: dict[tuple[int, str], int] = {}
        for i, id_ in enumerate(ids):
            if id_ in is_chars:
                entry_of[text_of[i], counts.terms[id_]] = i
            for member in members[i]:
                taken[words[member], i] = occurrences[i]
        for text, end in enumerate(counts.ends.tolist() if is_chars else ()):
            start = int(counts.ends[text - 1]) if text else 0
            for i, term, ngrams in words_with_ngrams(counts.terms, counts.ids[start:end], counts.chars, self._features):
                for chars in ngrams:
                    taken[words[term], entry_of[text, f"~{chars}~"]] += occurrences[start + i]
        self.words, self._taken = list(words), taken

    def members(self, id_: int) -> tuple[str, ...]:
        """Return the words in a term, which is a word or an n-gram.

        In a script without spaces, each character counts as a word: an n-gram of such characters disappears if any of
        them is removed.
        """
        members: list[int] = []
        while id_ < 0:
            id_, right = self._counts.ngrams[~id_].tolist()
            members.append(right)
        terms = [term for member in (*members, id_) if (term := self._counts.terms[member]) != OTHER]
        return tuple(dict.fromkeys(terms[0])) if terms and self._is_in_run(terms[0]) else tuple(terms)

    def _is_in_run(self, term: str) -> bool:
        return self._features.tokens_.divides_runs and is_unspaced(term)

    def _find_cells(self) -> None:
        """List the summands of the entries of the document's vector, sorted by column.

        A summand is the count of one term in one part of the document, such as its title, times the term's weight.
        """
        features, parts, counts = self._features, self._parts, self._counts
        terms, ngrams = features.columns_of(parts, counts)
        weights, halves, ngram_weight, term_weights = features.occurrence_weights(parts, counts, self._lengths)
        entries, columns, factors, half = [], [], [], []
        for p, (text, space) in enumerate(zip(parts.sources.tolist(), parts.spaces.tolist(), strict=True)):
            of_text = np.arange(counts.ends[text - 1] if text else 0, counts.ends[text])
            ids = counts.ids[of_text]
            is_ngram = ids < 0
            column, factor = np.empty(len(ids), np.int32), np.full(len(ids), weights[p])
            column[~is_ngram], column[is_ngram] = terms[space, ids[~is_ngram]], ngrams[space, ~ids[is_ngram]]
            factor[is_ngram] *= ngram_weight
            if len(term_weights):
                factor[~is_ngram] *= term_weights[ids[~is_ngram]]
            has_column = column >= 0
            entries.append(of_text[has_column])
            columns.append(column[has_column])
            factors.append(factor[has_column] * features.idf_[column[has_column]])
            half.append(np.full(has_column.sum(), halves[p] if len(halves) else 0.0))
        column = np.concatenate([np.zeros(0, np.int32), *columns])
        order = np.argsort(column, kind="stable")
        order = order[np.concatenate([np.zeros(0), *factors])[order] != 0]
        self.columns, self._starts = np.unique(column[order], return_index=True)
        self._entries, self._factors, self._halves = (
            np.concatenate([np.zeros(0), *arrays])[order] for arrays in (entries, factors, half)
        )
        self._entries = self._entries.astype(np.intp)

    def values(self, without: np.ndarray) -> np.ndarray:
        """Return x(W), the vector before normalisation without the words W, for each set W: shape (n_sets, n_columns).

        `without` has the shape (n_sets, n_words) and is 1 where a set has a word. The columns are those in which the
        vector of the whole document is not 0.
        """
        if not len(self.columns):
            return np.zeros((len(without), 0))
        left = np.maximum(self._counts.counts - without @ self._taken, 0)[:, self._entries]
        if self._features.sublinear_tf:
            left = np.where(left > 0, 1 + np.log(np.maximum(left, 1)), 0)
        elif self._features.weighting == "bm25":
            left = np.divide(left, left + self._halves, out=np.zeros_like(left), where=left > 0)
        return np.add.reduceat(left * self._factors, self._starts, axis=1)

    def row(self, without: np.ndarray) -> Rows:
        """Return the document's normalised vector after the removal of a set of words.

        The set is given as an array of shape (n_words,) that is 1 where the set has the word.
        """
        left = np.maximum(self._counts.counts - without @ self._taken, 0).astype(np.int32)
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(left > 0)])[self._counts.ends]
        counts = self._counts._replace(ends=ends, ids=self._counts.ids[left > 0], counts=left[left > 0])
        return self._features.rows_of_counts(self._parts, counts, self._lengths)

    def takes(self, gains: np.ndarray) -> np.ndarray:
        """Return an upper bound of what the removal of each word can take from the score: shape (n_words,).

        `gains` has the contribution of each column to the score. The removal of several words takes at most the sum of
        their bounds.
        """
        if not len(self.columns):
            return np.zeros(len(self.words))
        taken, counts = self._taken[:, self._entries], self._counts.counts[self._entries]
        n_touched = np.add.reduceat((taken > 0).astype(int), self._starts, axis=1)
        n_whole = np.add.reduceat((taken >= counts).astype(int), self._starts, axis=1)
        touched, n_cells = n_touched > 0, np.diff(self._starts, append=len(self._entries))
        # If a word removes only a part of a column, the contribution of that column may change by anything from nothing
        # to all.
        whole = (~touched | (n_whole == n_cells)).all(axis=0)
        gains = np.where(whole, gains, np.maximum(gains, 0))
        # The words of a column share one loss (a negative gain), which occurs once, whichever of them is removed.
        shares = np.where(gains > 0, gains, gains / np.maximum(touched.sum(axis=0), 1))
        return np.asarray(touched @ shares)


def without(
    features: TfIdf,
    scorer: Scorer,
    decisions: Decisions,
    counted: tuple[Any, ...],
    column: int,
    from_related: float = 0.0,
) -> Without:
    """Find the smallest set of words whose removal takes a tag, the topic in `column`, from a document.

    The document is given as `TfIdf.counted_texts` returns it. If each document has one topic, the document gets another
    topic instead. If only the topics on the document's shortlist are scored, two things are assumed: the topic stays on
    the list, and related topics go on adding `from_related` to its score. In fact, removing fewer words might take the
    topic off the list, or related topics from the document, so `least` is never True for a set of two words or more.
    """
    left = _Remainders(features, *counted)
    answer = Without([], least=True)
    for rounding in _ROUNDINGS:
        answer = Without([], least=True)
        for weights, c in _rivals(scorer, decisions, left, column, from_related):
            words, least = _least_words(left, weights, c - rounding, len(answer.words) - 1 if answer.words else None)
            answer = Without(words or answer.words, answer.least and least)
        chosen = np.array([word in answer.words for word in left.words], np.float64)
        row = left.row(chosen)
        if not answer.words or not decisions.decide(scorer.scores(row), row.has_terms)[0, column]:
            break
    answer = answer._replace(words=[*dict.fromkeys(map(shown, answer.words))])
    scores_all = scorer.unlisted_score == -np.inf  # otherwise, fewer words may take the topic off the shortlist
    return answer._replace(least=answer.least and (scores_all or len(answer.words) < 2))


def _rivals(
    scorer: Scorer, decisions: Decisions, left: _Remainders, column: int, from_related: float
) -> Iterator[tuple[np.ndarray, float]]:
    """Yield pairs (w, c) that define ``F(W) = w·x(W) - c·|x(W)|``, where x(W) is the vector without the words W.

    The document loses the tag if ``F(W) ≤ 0`` for any of the pairs. There is one pair or, if each document gets exactly
    one topic, one pair per other topic, made of the differences between the two topics. The weights w are for the
    columns of `left`.
    """

    def weights_of(j: int) -> np.ndarray:
        return scorer.weights_of(j, left.columns).astype(np.float64)

    bias = scorer.bias.astype(np.float64)
    if not decisions.single:
        yield weights_of(column), float(decisions.thresholds[column]) - float(bias[column]) - from_related
        return
    curves = decisions.calibration
    a, b = (np.ones(len(bias)), 0 * bias) if curves is None else (curves.a, curves.b)
    for other in range(len(bias)):
        if other != column:
            weights = a[column] * weights_of(column) - a[other] * weights_of(other)
            yield weights, float(a[other] * bias[other] + b[other] - a[column] * bias[column] - b[column])


def _least_words(left: _Remainders, weights: np.ndarray, c: float, most: int | None) -> Without:
    """Return the smallest set W of words whose removal takes the tag: ``F(W) = w·x(W) - c·|x(W)| ≤ 0``.

    x(W) is the document's vector without the words, and `weights` is w. Return no words if the set has more than `most`
    words; None: no limit.
    """
    n = len(left.words)
    if not n or most == 0 or c == -np.inf:  # every document with a known word is above a threshold of -inf
        return Without([], least=True)
    excess = partial(_excess, left, weights, c)
    order = np.argsort(excess(np.eye(n)), kind="stable")
    prefixes = np.zeros((n, n))
    for i, word in enumerate(order):
        prefixes[i:, word] = 1
    falls = excess(prefixes) <= 0
    chosen = _without_needless(excess, prefixes[np.argmax(falls)] if falls.any() else np.zeros(n))
    size = int(chosen.sum()) if falls.any() else n + 1
    takes, need = _bound(left, weights, c, left.values(np.zeros((1, n)))[0], left.values(chosen[None])[0])
    smaller, least = _search_smaller(excess, takes, need, size if most is None else min(size, most + 1))
    if smaller is not None:
        chosen, size = smaller, int(smaller.sum())
    if most is not None and size > most:
        return Without([], least)
    return Without([left.words[i] for i in order.tolist() if chosen[i]], least)


def _excess(left: _Remainders, weights: np.ndarray, c: float, sets: np.ndarray) -> np.ndarray:
    """Return ``F(W) = w·x(W) - c·|x(W)|`` for each set W of words: shape (n_sets,); `weights` is w.

    x(W) is the document's vector without the words. `sets` has the shape (n_sets, n_words) and is 1 where a set has a
    word.
    """
    rows = left.values(sets)
    length = np.sqrt((rows * rows).sum(axis=1))
    # The score of an empty row is the bias.
    return np.where(length > 0, rows @ weights - c * length, -c)


def _without_needless(excess: _Excess, chosen: np.ndarray) -> np.ndarray:
    """Drop words that are not needed, one by one, from a set whose removal takes the tag; return the smaller set.

    A set is an array of 0 and 1 with an entry per word. `excess` returns a number for each set; the removal of the set
    takes the tag if this number is at most 0.
    """
    while (words := np.flatnonzero(chosen)).size > 1:
        subsets = np.tile(chosen, (len(words), 1))
        subsets[np.arange(len(words)), words] = 0
        excesses = excess(subsets)
        if excesses.min() > 0:
            break
        chosen = subsets[np.argmin(excesses)]
    return chosen


def _search_smaller(excess: _Excess, takes: np.ndarray, need: float, size: int) -> tuple[np.ndarray | None, bool]:
    """Search for the smallest set of fewer than `size` words whose removal takes the tag.

    Return the set (None if there is none, or none was found), and whether the search was complete. `excess` returns a
    number for each set; the set takes the tag if this number is at most 0. `takes` and `need` are the results of
    `_bound`.
    """
    ranked = np.argsort(-takes, kind="stable")
    sums = [0.0, *accumulate(takes[ranked].tolist())]
    n_tried = 0
    for k in range(1, size):
        candidates = _sets(takes[ranked].tolist(), sums, 0, k, need)
        while block := list(islice(candidates, _AT_ONCE)):
            if n_tried >= _MOST_SETS:
                return None, False
            n_tried += len(block)
            sets = np.zeros((len(block), len(takes)))
            sets[np.arange(len(block))[:, None], ranked[np.array(block)]] = 1
            excesses = excess(sets)
            if excesses.min() <= 0:
                return sets[np.argmin(excesses)], True
    return None, True


def _bound(
    left: _Remainders, weights: np.ndarray, c: float, whole: np.ndarray, rest: np.ndarray
) -> tuple[np.ndarray, float]:
    """Return upper bounds of each word's loss of score, and the total loss that takes the tag.

    A set of words whose bounds add up to less than the total cannot take the tag. `weights` and `c` define F, as in
    `_least_words`. `whole` is the vector with all words, and `rest` the one without the set of words found so far.
    """
    a, q = whole * weights, whole * whole
    Q = q.sum()
    if c <= 0:
        slope = -c / np.sqrt(Q)
        return left.takes(np.maximum(a, 0) + slope * q), float(a.sum() - c * np.sqrt(Q)) - 1e-9
    at = max(float((rest * rest).sum()), 1e-3 * Q)  # the tangent at the row without the set
    slope = c / (2 * np.sqrt(at))
    return left.takes(a - slope * q), float(a.sum() - c * np.sqrt(at) - slope * (Q - at)) - 1e-9


def _sets(takes: list[float], sums: list[float], start: int, k: int, need: float) -> Iterator[tuple[int, ...]]:
    """Yield each set of k positions, from `start` on, at which the values of `takes` add up to at least `need`.

    `takes` is in descending order; `sums` has its cumulative sums, starting with 0, by which branches of the search
    that cannot reach `need` are cut.
    """
    for i in range(start, len(takes) - k + 1):
        if sums[i + k] - sums[i] < need:
            return
        if k == 1:
            yield (i,)
        else:
            yield from ((i, *rest) for rest in _sets(takes, sums, i + 1, k - 1, need - takes[i]))
