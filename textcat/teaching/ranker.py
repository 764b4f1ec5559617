"""Train a linear ranker on the judged documents of a pool, from scratch after every answer, and score all documents."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from itertools import pairwise
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, hstack

from textcat.base.errors import TextcatError
from textcat.recipes.recipe import RankerSettings
from textcat.teaching._ranking import add_up, gather, rows_times, solve

# minimum number of entries for a thread: with fewer, starting it takes longer than its work
ENTRIES_OF_A_THREAD = 1_000_000


class Examples(NamedTuple):
    """Training examples that are not documents of the pool, such as a topic's description and keywords."""

    rows: csr_matrix  # rows with the columns of the pool
    labels: NDArray[np.int8]  # +1, -1
    weights: NDArray[np.float64]  # 1: the example has the weight of a judged document


class Weights(NamedTuple):
    """The weights of a ranker: ``score(x) = f x·w + bias``, where w has `values` at `columns` and is 0 elsewhere.

    f is the document's entry in `Ranker.factors`: 1 if `RankerSettings.length` is 0. If the attribute `background` is
    not 0, ``score(x) = f (x - m)·(w - background·m) + bias``. In this formula, `background` is that attribute, a number
    that training finds; m is the mean document vector of the pool times another number, the recipe's setting
    `RankerSettings.background`. See `Ranker.whole`.
    """

    columns: NDArray[np.int32]  # distinct, in no particular order
    values: NDArray[np.float32]
    bias: float
    n_epochs: int = 0
    background: float = 0.0

    def dense(self, n_columns: int) -> NDArray[np.float32]:
        """Return the first n_columns entries of w as a dense array; the background is not subtracted."""
        w = np.zeros(n_columns, np.float32)
        is_first = self.columns < n_columns
        w[self.columns[is_first]] = self.values[is_first]
        return w


_DEFAULT = RankerSettings()
#: The settings with embeddings, chosen on systematic reviews: errors cost more.
WITH_EMBEDDINGS = RankerSettings(C=0.25, growth=0.3, embeddings=1.0)


class _Background(NamedTuple):
    """The mean document vector of a pool, multiplied by `RankerSettings.background`."""

    row: NDArray[np.float32]
    products: NDArray[np.float32]  # dot products of `row` and each row of the pool
    square: float  # dot product of `row` and itself


class Ranker:
    """A linear support vector machine with squared hinge loss over the documents of a pool.

    It minimises ``(|w - w₀|² + v²)/2 + C Σ c_i max(0, 1 - y_i (w·x_i + v·bias))²`` over w and v, where the sum is over
    the judged documents, the examples, and random documents presumed negative. C (which grows with their number n, by
    the factor ``(n/100)^growth``), bias, ratio and background are those of `RankerSettings`; the ranker's bias is
    v·bias. y_i is 1 or -1, and c_i is the weight of example i (1 for a judged document). The weights are rescaled so
    that the weights of negatives sum to 1/ratio of those of positives; their total is unchanged. w₀ is 0 unless there
    is a prior, or an anchor (see `RankerSettings`). x_i is the feature vector of example i or, if there are further
    examples, this vector minus ``background · mean vector of the pool``; then `RankerSettings.described_bias` takes the
    place of bias.

    Without embeddings, `rows` (the feature vectors of the pool's documents) is not copied, and may be memory-mapped. If
    `RankerSettings.embeddings` is not 0, embeddings are appended to it as columns. The seed determines the order in
    which training presents documents, and the draw of those presumed negative. Scores are the same to the bit for any
    number of threads.
    """

    def __init__(
        self,
        rows: csr_matrix,
        *,
        embeddings: NDArray[np.float32] | None = None,
        settings: RankerSettings = _DEFAULT,
        seed: int = 0,
        n_threads: int | None = None,
    ) -> None:
        # the number of entries measures the length of a text
        self._n_terms, entries = rows.shape[1], np.diff(rows.indptr)
        if settings.embeddings:
            if embeddings is None:
                raise TextcatError(
                    "The ranker was given no embeddings: give them, or set `embeddings` to 0 in its settings."
                )
            rows = hstack([rows, csr_matrix(embeddings * np.float32(np.sqrt(settings.embeddings)))], "csr", np.float32)
        self._settings, self._seed, self._shape = settings, seed, rows.shape
        self._row_arrays = _arrays(rows)
        self.n_parts = max(1, min(n_threads or effective_n_jobs(-1), len(rows.data) // ENTRIES_OF_A_THREAD))
        self._threads = ThreadPoolExecutor(self.n_parts - 1) if self.n_parts > 1 else None
        # lock of the two arrays below, which every call fills and clears: topics wait for each other
        self._lock = Lock()
        self._number_of = np.full(self._shape[1], -1, np.int32)
        self._w = np.zeros(self._shape[1], np.float32)
        mean = max(1, entries.mean() if len(entries) else 1)
        short = settings.length * mean
        # the factor of x·w in the score of each document
        self.factors = np.sqrt((mean + short) / mean * entries / np.maximum(entries + short, 1)).astype(np.float32)

    def train(
        self,
        positions: ArrayLike,
        labels: ArrayLike,
        examples: Examples | None = None,
        prior: Weights | None = None,
    ) -> Weights:
        """Train on judged documents and further examples, and return the weights.

        `positions` and `labels` have an entry for each judged document; a label above 0 or True means relevant. w and
        the bias are regularised towards `prior`, such as the weights of a model's topic; without a prior, towards 0.
        The result is the same to the bit for any order of the documents. TextcatError is raised if one is given twice.
        """
        positions, labels = np.asarray(positions, np.int64).reshape(-1), np.asarray(labels).reshape(-1) > 0
        order = np.argsort(positions)
        positions, labels = positions[order], labels[order]
        if (twice := np.flatnonzero(positions[1:] == positions[:-1])).size:
            raise TextcatError(f"Row {positions[twice[0]]} is judged twice: give each row one label.")
        presumed = self.presumed(positions)
        blocks = [(self._row_arrays, np.concatenate([positions, presumed]))]
        y = [np.where(labels, 1, -1), np.full(len(presumed), -1)]
        n_judged = len(positions) + len(presumed)
        c = [np.ones(len(positions)), np.full(len(presumed), self._settings.presumed_weight)]
        means = [np.zeros(n_judged)]
        if examples is not None and len(examples.labels):
            arrays, ranks = _arrays(examples.rows), _sorted_by_content(examples)
            blocks.append((arrays, ranks))
            y.append(np.sign(np.asarray(examples.labels)[ranks]))
            c.append(np.asarray(examples.weights, float)[ranks])
            means = [
                self._background.products[blocks[0][1]],
                (examples.rows @ self._background.row[: examples.rows.shape[1]])[ranks],
            ]
        parts = (np.concatenate(y).astype(np.int8), np.concatenate(c), np.concatenate(means).astype(float))
        return self._solved(blocks, *parts, n_judged, prior)

    def scores(self, weights: Weights) -> NDArray[np.float32]:
        """Return the score of every document: shape (n_documents,). Larger = more relevant; 0 = on the boundary."""
        scores = self._times(weights.columns, weights.values)
        if weights.background:
            scores -= np.float32(weights.background) * self._background.products
            scores -= np.float32(self._along(weights))
        scores *= self.factors
        scores += np.float32(weights.bias)
        return scores

    def whole(self, weights: Weights, factor: float = 1) -> tuple[NDArray[np.float32], float]:
        """Return weights w of the terms and a bias such that ``x·w + bias`` is the score of a document vector x.

        The background (the multiplied mean vector of the pool, see `Weights`) is included in w and the bias, so that it
        need not be subtracted from x. w is multiplied by `factor`, the document's entry in `factors`. Embeddings are
        left out.
        """
        w = weights.dense(self._n_terms)
        if not weights.background:
            return np.float32(factor) * w, weights.bias
        w -= np.float32(weights.background) * self._background.row[: self._n_terms]
        return np.float32(factor) * w, weights.bias - factor * self._along(weights)

    @cached_property
    def _background(self) -> _Background:
        sums = np.zeros(self._shape[1])
        add_up(*self._row_arrays[1:], sums)
        row = (sums * (self._settings.background / max(1, self._shape[0]))).astype(np.float32)
        columns = np.flatnonzero(row).astype(np.int32)
        return _Background(row, self._times(columns, row[columns]), _dot(row, row))

    def _along(self, weights: Weights) -> float:
        """Return m·(w - background·m), where m is `_Background.row`, and w and background are in `weights`."""
        product = _dot(self._background.row[weights.columns], weights.values)
        return product - weights.background * self._background.square

    def _times(self, columns: NDArray[np.int32], values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the dot products of all document vectors and w (`values` at `columns`): shape (n_documents,)."""
        scores = np.empty(self._shape[0], np.float32)
        ends = self._row_arrays[0]
        shares = ends[0] + (ends[-1] - ends[0]) * np.arange(1, self.n_parts) / self.n_parts
        bounds = [0, *np.searchsorted(ends, shares).tolist(), len(scores)]
        with self._lock:
            self._w[columns] = values
            try:
                arguments = [(*self._row_arrays, first, last, self._w, 0.0, scores) for first, last in pairwise(bounds)]
                futures: list[Future[None]] = []
                if self._threads:
                    futures = [self._threads.submit(rows_times, *part) for part in arguments[1:]]
                rows_times(*arguments[0])
                for future in futures:
                    future.result()
            finally:
                self._w[columns] = 0
        return scores

    def presumed(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Draw unjudged documents at random, to be trained on as presumed negatives; return their positions.

        `positions` are those of the judged documents, in ascending order.
        """
        n = min(self._settings.presumed, self._shape[0] - len(positions))
        if n <= 0:
            return np.empty(0, np.int64)
        generator = np.random.default_rng([self._seed, len(positions)])
        ranks = np.sort(generator.choice(self._shape[0] - len(positions), n, replace=False, shuffle=False))
        # The unjudged row of rank r comes after all judged rows that have at most r unjudged rows before them.
        before = positions - np.arange(len(positions))
        return ranks + np.searchsorted(before, ranks, side="right")

    def _solved(
        self,
        blocks: list[Any],
        y: NDArray[np.int8],
        c: NDArray[np.float64],
        means: NDArray[np.float64],
        n_judged: int,
        prior: Weights | None,
    ) -> Weights:
        costs = self._settings.C * (len(y) / 100) ** self._settings.growth * _balanced(y, c, self._settings.ratio)
        columns, ends, numbers, values = self._gather_rows(blocks, len(y), prior)
        w = np.zeros(len(columns))
        bias, along, times, square = 0.0, 0.0, 0.0, 0.0
        constant = self._settings.described_bias if n_judged < len(y) else self._settings.bias
        if prior:
            w[: len(prior.columns)] = prior.values
            bias = prior.bias
        if n_judged < len(y):
            square = self._background.square
            if prior:  # their own scores are computed from whole rows
                along = _dot(self._background.row[prior.columns], prior.values)
                bias += along
            if self._settings.anchor:
                first = ends[n_judged - 1] if n_judged else 0
                sides = self._settings.anchor * y[n_judged:] * c[n_judged:]
                side_of_entries = np.repeat(sides, np.diff(ends[n_judged:], prepend=first))
                np.add.at(w, numbers[first:], side_of_entries * values[first:])
                along, times = along + float(sides @ means[n_judged:]), float(sides.sum())
        bias, _, n_epochs, times = solve(
            ends,
            numbers,
            values,
            y,
            costs,
            w,
            bias / constant if constant else 0.0,
            constant,
            self._settings.tol,
            self._settings.max_epochs,
            self._seed,
            means,
            square,
            along,
            times,
        )
        return Weights(columns.copy(), w.astype(np.float32), bias * constant, n_epochs, times if square else 0.0)

    def _gather_rows(self, blocks: list[Any], n: int, prior: Weights | None) -> tuple[NDArray[Any], ...]:
        """Collect the n vectors to train on, with only the columns in which one of them or the prior has an entry.

        A block is a tuple (arrays of a CSR matrix, row numbers). Four arrays are returned: the columns; where each
        vector ends; and for each entry, the index of its column among these columns, and its value.
        """
        sizes = [int((ends[rows + 1] - ends[rows]).sum()) for (ends, _, _), rows in blocks]
        n_columns = n_prior = len(prior.columns) if prior else 0
        n_rows, n_entries = 0, sum(sizes)
        ends, numbers = np.empty(n, np.int64), np.empty(n_entries, np.int32)
        values, columns = np.empty(n_entries, np.float32), np.empty(min(n_entries + n_prior, self._shape[1]), np.int32)
        with self._lock:
            if prior:
                columns[:n_prior] = prior.columns
                self._number_of[prior.columns] = np.arange(n_prior, dtype=np.int32)
            for arrays, rows in blocks:
                n_columns = gather(*arrays, rows, self._number_of, columns, n_columns, ends, numbers, values, n_rows)
                n_rows += len(rows)
            columns = columns[:n_columns]
            self._number_of[columns] = -1
        return columns, ends, numbers, values


def _balanced(y: NDArray[np.int8], c: NDArray[np.float64], ratio: float) -> NDArray[np.float64]:
    """Rescale weights c of examples: the negatives' sum is 1/ratio of the positives' sum; the total is unchanged."""
    of_positives, of_negatives = float(c[y > 0].sum()), float(c[y < 0].sum())
    if not of_positives or not of_negatives:
        return c
    balanced = np.where(y > 0, c, c * (of_positives / (ratio * of_negatives)))
    return balanced * ((of_positives + of_negatives) / balanced.sum())


def _dot(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    return float(a.astype(float) @ b.astype(float))


def _arrays(rows: csr_matrix) -> tuple[Any, Any, Any]:
    """Return indptr, indices (int32) and data (float32) of a CSR matrix, copied only if the type differs."""
    return rows.indptr, rows.indices.astype(np.int32, copy=False), rows.data.astype(np.float32, copy=False)


def _sorted_by_content(examples: Examples) -> NDArray[np.int64]:
    """Return the indices of the examples, sorted by content, so that their order has no effect."""
    ends, indices, data = _arrays(examples.rows)
    keys = [
        (int(label), float(weight), indices[first:last].tobytes(), data[first:last].tobytes())
        for label, weight, first, last in zip(examples.labels, examples.weights, ends[:-1], ends[1:], strict=True)
    ]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), np.int64)
