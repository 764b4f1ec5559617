"""Train thousands of topics, each on the documents whose shortlist has the topic.

A document's shortlist is the list of the topics whose centroids are nearest to its feature vector. A topic's score
combines three kinds of evidence: its ranker's score, and the similarities of the document to its centroid and to its
name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from textcat.base.calibration import Calibration
from textcat.base.errors import TextcatError
from textcat.base.folds import members_of
from textcat.base.progress import Advance
from textcat.evaluation.at_k import PROPENSITY, inverse_propensities
from textcat.features.lookalikes import LookAlikes, terms_of_like_meaning
from textcat.features.rows import Rows
from textcat.features.scripts import are_letters
from textcat.features.vectors import FEWEST_KNOWN, ColumnVectors, WordVectors
from textcat.margin.kernels import one_blas_thread
from textcat.margin.learners import MarginClassifier
from textcat.margin.primal import subset
from textcat.margin.problems import PackedWeights, Problem
from textcat.margin.rules import Rule
from textcat.margin.solve import Workers, opened, solve
from textcat.model.csr import FEW_TOPICS, csr_weights
from textcat.model.listed import Listed
from textcat.model.shortlist import Shortlist, products_of_listed, rows_by_topic

# A topic's sum of rows is divided by its length to this power. With 1, frequent topics are listed too seldom; with 0,
# few other topics are listed.
_POWER = 0.8
# Entries of a centroid below this share of its largest entry are dropped: a fifth of the entries, for 22,000 topics of
# titles with n-grams of characters. Shortlists then have slightly more frequent topics; after ranking, no measure
# changes by more than .001.
_LEAST_SHARE = 0.02
# Smaller weights, in log odds, are dropped: with n-grams of characters, this leaves a third of those above 0.2, and no
# measure changes by more than .001.
_LEAST_WEIGHT = 0.3
# A positive weighs as much as the inverse propensity of its topic, to this power. With 1.25, the first ten topics have
# a fortieth more of the topics of 6 to 20 documents than with 1, for .0015 of nDCG@10; 1.5 costs three times as much.
INVERSE_PROPENSITY = 1.25
# The evidence is weighed on one held-out document of ten, at most 20,000, for 2,500 topics, which are trained again.
# If these are fewer than 1,000, others are held out in turn until there are 1,000, or all have been held out.
_HELD_OUT, _ONE_OF, LEAST_HELD_OUT = 20_000, 10, 1_000
_SAMPLE = 2_500
# The evidence of names alone is weighed by hiding the documents of this many topics, at most one of eight.
_HIDDEN, _HIDDEN_ONE_OF = 1_000, 8
FEWEST = 50  # minimum number of correctly listed topics for weighing; with fewer, only the rankers' scores are used
# A topic without documents is listed by the words of its name and, with this weight, by terms of similar spelling or
# meaning. Rows with n-grams of characters already match similar spellings. Chosen on 120,000 training titles in
# English: with a weight of 0, recall@10 of hidden topics is lower by .014; with 1, it is the same.
_ALIKE = 0.5
# A task of a thread or cluster worker lists topics for this many documents, or trains this many topics of this many
# rows on average, so that less than some 4 MB are sent in either direction.
_DOCUMENTS, _TOPICS, _ROWS = 5_000, 16, 1_000_000


class TrainedTopics(NamedTuple):
    """Trained topics: the scorer, the curves from its scores to probabilities, and facts about the training."""

    scorer: Listed  # its weights are in log odds: see `_Evidence`
    calibration: Calibration
    facts: dict[str, list[Any]]  # for each topic: epochs, updates, support, stopped
    converged: np.ndarray  # shape (n_topics,), bool
    evidence: dict[str, float]  # the fields of `_Evidence`


class _Evidence(NamedTuple):
    """Coefficients of the kinds of evidence for a topic on a document's shortlist (the topics nearest to it).

    The kinds are the similarity to the topic's centroid, the score of its ranker, and the similarity to its name.

    A coefficient whose name ends in "by_size" is multiplied by log(1 + size), where size is the topic's number of
    training documents. The score is the log odds of a regression in which each positive is weighed by a power of the
    inverse propensity of its topic (see `textcat.evaluation.at_k`), to make up for topics that indexers have forgotten.
    """

    similarity: float  # to the centroid
    similarity_by_size: float
    ranker: float  # the score by the topic's ranker
    ranker_by_size: float
    name: float  # similarity to the topic's name
    name_by_size: float
    size: float
    constant: float
    # Coefficients of the unweighted log odds, which give probabilities: of the score, of log(1 + size), and an
    # intercept.
    odds_of_score: float
    odds_by_size: float
    odds: float


_RANKER_ALONE = [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]  # the coefficients up to `constant`, if there is no evidence


class _NameEvidence(NamedTuple):
    """Coefficients of the score of a topic that has a name, but no training document.

    They apply to topics on a document's shortlist (the topics with the nearest centroids).
    """

    name: float  # of the similarity to the name
    alike: float  # of the similarity to terms spelt like the name's words,
    meant: float  # and to terms of similar meaning
    length: float  # of log(1 + words and n-grams of characters of the name), as one match among many says less
    constant: float
    # Coefficients of the unweighted log odds, which give probabilities: of the score, and an intercept.
    odds_of_score: float
    odds: float


def train_shortlist(
    rows: Any,
    labels: sp.csc_matrix,
    names: sp.csr_matrix,
    learner: MarginClassifier,
    *,
    size: int,
    groups: np.ndarray,
    terms: Sequence[str] | None = None,
    vectors: WordVectors | None = None,
    n_jobs: int | None = None,
    seed: int = 0,
    progress: Advance = lambda n: None,
) -> TrainedTopics:
    """Train each topic on its positives and, as negatives, on the other documents whose shortlist has the topic.

    A document's shortlist is the list of its nearest topics; it is scored for these only.

    The score of a topic's ranker, the similarity to its centroid and the similarity to its name are three kinds of
    evidence. Their coefficients are found by logistic regression on held-out documents: for the score, the positives of
    rare topics have larger weights; for the probability, all positives have the same weight.

    Parameters
    ----------
    rows : csr_matrix, or rows on disk, of shape (n_rows, n_features), float32
        Rows of documents, followed by rows of descriptions, which are positives of their own topics only.
    labels : csc_matrix of shape (n_rows, n_topics)
    names : csr_matrix of shape (n_topics, n_features)
        Rows of the topics' names.
    learner : MarginClassifier
        Has the rule and settings of each topic's ranker; it is not fitted.
    size : int
        Number of topics to list for a document.
    groups : ndarray of shape (n_documents,), int
        The first document of each document's group, as in `textcat.base.folds`: groups are held out together.
    terms : sequence of str, optional
        The names of the features. If given, a topic without documents is also found by terms spelt like the words of
        its name: see `LookAlikes`.
    vectors : WordVectors, optional
        If given, such a topic is also found by terms of similar meaning, unless most words of names have no vector.
    n_jobs, seed : int, optional
        The result is the same to the bit for any number of jobs, in threads or on the Dask cluster that is joblib's
        backend.
    progress : callable
        Called with 1 for each topic that has been trained.
    """
    sizes = np.diff(sp.csc_array(labels)[: len(groups)].indptr)
    with one_blas_thread():
        topic_names = _Names(names, sizes, None if (sizes > 0).all() else terms, vectors)
        topics = _ListedTopics(rows, labels, topic_names, learner, size, groups, Workers(n_jobs))
        evidence = weigh_evidence(topics, seed)
        of_names = weigh_names(topics, seed) if (sizes == 0).any() else None
    rankers = _combined_rankers(topics, evidence, of_names, progress)
    shortlist = Shortlist(topic_names.listing(topics.centroids), topics.size)
    log_sizes, n_features = np.log1p(topics.sizes), rows.shape[1]
    del topics, topic_names  # free memory: the next step needs as much again
    odds_of_score = np.full(len(log_sizes), max(evidence.odds_of_score, 0.0))
    odds = evidence.odds_by_size * log_sizes + evidence.odds
    if of_names is not None:
        odds_of_score[log_sizes == 0], odds[log_sizes == 0] = max(of_names.odds_of_score, 0.0), of_names.odds
    return TrainedTopics(
        Listed(columns_in_rows(rankers.columns, n_features), rankers.bias, shortlist),
        Calibration(odds_of_score, odds),
        rankers.facts,
        rankers.converged,
        evidence._asdict() | ({} if of_names is None else {f"{k}_alone": v for k, v in of_names._asdict().items()}),
    )


class _CombinedRankers(NamedTuple):
    """The final ranker of each topic, whose weights are a weighted sum of three vectors.

    The vectors are the weights of the topic's trained ranker, its centroid, and the feature vector of its name. For a
    topic without documents, terms of similar spelling or meaning are added.
    """

    columns: list[tuple[np.ndarray, np.ndarray]]  # for each topic: features, weights
    bias: np.ndarray
    facts: dict[str, list[Any]]
    converged: np.ndarray


def _combined_rankers(
    topics: _ListedTopics, evidence: _Evidence, of_names: _NameEvidence | None, progress: Advance
) -> _CombinedRankers:
    """Train all topics, and combine each topic's ranker, centroid and name by the given coefficients.

    `evidence` has the coefficients of topics with documents, `of_names` those of topics without; if `of_names` is None,
    `evidence` is used for all topics. `progress` is called with 1 for each topic.
    """
    n_features, n_topics = topics.centroids.shape
    log_sizes, names = np.log1p(topics.sizes), topics.names
    of_centroid, of_ranker, of_name = (
        (plain + by_size * log_sizes).astype(np.float32)
        for plain, by_size in (evidence[:2], evidence[2:4], evidence[4:6])
    )
    constants = evidence.size * log_sizes + evidence.constant
    if of_names is not None:
        known_by_name = log_sizes == 0
        of_centroid[known_by_name] = of_ranker[known_by_name] = 0
        of_name[known_by_name] = of_names.name
        constants[known_by_name] = of_names.length * names.log_lengths[known_by_name] + of_names.constant
    parts = [(topics.centroids.tocsc(), of_centroid), (names.by_topic, of_name)]
    if of_names is not None:
        for matrix, factor in zip(names.alike, (of_names.alike, of_names.meant), strict=False):
            parts.append((matrix, np.full(n_topics, factor, np.float32)))
    bias, converged = np.empty(n_topics, np.float32), np.zeros(n_topics, bool)
    columns: list[tuple[np.ndarray, np.ndarray]] = []
    facts: dict[str, list[Any]] = {name: [] for name in ("epochs", "updates", "support", "stopped")}
    combined = np.zeros(n_features, np.float32)
    for topic, ranker in enumerate(topics.train(range(n_topics))):
        factor = of_ranker[topic] / np.float32(ranker.unit)
        combined[ranker.features] = factor * ranker.weights
        used = [ranker.features]
        for matrix, factors in parts:
            entries = slice(matrix.indptr[topic], matrix.indptr[topic + 1])
            combined[matrix.indices[entries]] += factors[topic] * matrix.data[entries]
            used.append(matrix.indices[entries])
        features = np.unique(np.concatenate(used)).astype(np.int32)
        weights = combined[features]
        combined[features] = 0
        is_large = np.abs(weights) >= _LEAST_WEIGHT
        columns.append((features[is_large], weights[is_large]))
        bias[topic] = factor * ranker.bias + constants[topic]
        converged[topic] = ranker.converged
        for name, fact in zip(facts, ranker.facts, strict=True):
            facts[name].append(fact)
        progress(1)
    return _CombinedRankers(columns, bias, facts, converged)


def columns_in_rows(columns: list[tuple[np.ndarray, np.ndarray]], n_features: int) -> sp.csr_array:
    """Return a matrix in CSR form, given its columns: a tuple (distinct row numbers, values) for each column.

    The list is emptied, so that the memory of each column is free as soon as the column is in the matrix.
    """
    sizes = np.zeros(n_features + 1, np.int64)
    for features, _ in columns:
        sizes[features + 1] += 1
    indptr = np.cumsum(sizes)
    free, n_columns = indptr[:-1].copy(), len(columns)  # for each row: the position of its next entry
    indices, data = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float32)
    columns.reverse()
    for column in range(n_columns):
        features, values = columns.pop()
        places = free[features]
        indices[places], data[places] = column, values
        free[features] += 1
    return csr_weights(indptr, indices, data, n_columns)


def topic_centroids(rows: sp.csr_matrix, labels: sp.csc_matrix) -> sp.csr_array:
    """Return the centroids of the topics as columns: shape (n_features, n_topics).

    A centroid is the sum of the vectors of the topic's documents, divided by a power of the sum's length; its smallest
    entries are dropped.
    """
    sums = sp.csc_array(rows.T @ labels.astype(np.float32))
    sums.sort_indices()
    # Memory is at its peak here: no second array is made to append the 0, and factors are repeated as float32.
    squares = np.zeros(len(sums.data) + 1)
    np.square(sums.data, out=squares[:-1], dtype=np.float64)
    lengths = np.where(np.diff(sums.indptr) > 0, np.sqrt(np.add.reduceat(squares, sums.indptr[:-1])), 1)
    del squares
    sums.data *= np.repeat((lengths**-_POWER).astype(np.float32), np.diff(sums.indptr))
    largest = np.maximum.reduceat(np.append(sums.data, 0), sums.indptr[:-1]) if sums.shape[1] else sums.data
    sums.data[sums.data < _LEAST_SHARE * np.repeat(largest, np.diff(sums.indptr))] = 0
    sums.eliminate_zeros()
    return sums.tocsr()


class _Ranker(NamedTuple):
    """The trained ranker of a topic: its weights, bias, unit of scores, and facts about the training."""

    features: np.ndarray  # int32
    weights: np.ndarray  # weights of these features; all others are 0
    bias: float
    unit: float
    facts: tuple[int, int, int, str]  # epochs, updates, support, stopped
    converged: bool


class _Names:
    """Feature vectors of topics' names and, for topics without documents, of terms similar to the words of names.

    `alike` has a matrix of terms of similar spelling and, with vectors, one of terms of similar meaning; the columns of
    topics with documents are empty. `alike` is empty if `terms` is None: then every topic has documents, or the
    features have no names.
    """

    def __init__(
        self, rows: sp.csr_matrix, sizes: np.ndarray, terms: Sequence[str] | None, vectors: WordVectors | None
    ):
        self.by_topic = sp.csc_array(rows.T, dtype=np.float32)  # shape (n_features, n_topics)
        self._look_alikes = None if terms is None else LookAlikes(terms)
        self.log_lengths = np.zeros(rows.shape[0])
        if self._look_alikes is not None:
            self.log_lengths = np.log1p(self._look_alikes.lengths(rows))
        self._vectors = None if terms is None or vectors is None else _vectors_of_terms(terms, vectors, rows)
        self.alike = self.alike_of(np.flatnonzero(sizes == 0))

    def alike_of(self, topics: np.ndarray) -> list[sp.csc_array]:
        """Return the matrices of `alike` (terms similar to names) for some topics: shape (n_features, n_topics)."""
        names = sp.csr_array(self.by_topic[:, topics].T)
        alike = [] if self._look_alikes is None else [self._look_alikes.rows(names)]
        if self._vectors is not None:
            alike.append(terms_of_like_meaning(names, self._vectors))
        return [self._in_columns(rows, topics) for rows in alike]

    def _in_columns(self, rows: sp.csr_array, topics: np.ndarray) -> sp.csc_array:
        columns = topics.astype(np.int32)[np.repeat(np.arange(len(topics)), np.diff(rows.indptr))]
        return sp.csc_array((rows.data, (rows.indices, columns)), shape=self.by_topic.shape)

    def listing(self, centroids: sp.csr_array, hidden: Sequence[sp.csc_array] = ()) -> sp.csr_array:
        """Return each topic's vector for shortlists: its centroid or, without documents, terms like its name.

        `hidden` has the matrices of topics whose documents are hidden, so that they are treated as topics without
        documents.
        """
        first = 1 if self._look_alikes is not None and len(self._look_alikes.ngrams) else 0
        added = [*self.alike[first:], *hidden[first:]]
        return sp.csr_array(centroids + np.float32(_ALIKE) * sum(added)) if added else centroids


def _vectors_of_terms(terms: Sequence[str], vectors: WordVectors, names: sp.csr_matrix) -> ColumnVectors | None:
    """Return the word vectors of terms; None if most words of the topics' names have no vector."""
    column_of = dict(zip(terms, range(len(terms)), strict=True))
    found = vectors.of_columns(np.array([column_of.get(word, -1) for word in vectors.words]), 1)
    is_word = np.array([are_letters(term) for term in terms], bool)[names.indices]
    is_known = np.isin(names.indices, found.columns)
    return found if (is_known & is_word).sum() >= FEWEST_KNOWN * is_word.sum() > 0 else None


class _ListedTopics:
    """The training problem of each topic: its positives, and its negatives.

    The negatives are the other documents whose shortlist (the topics with the nearest centroids) has the topic.
    """

    def __init__(
        self,
        rows: Any,
        labels: sp.csc_matrix,
        names: _Names,
        learner: MarginClassifier,
        size: int,
        groups: np.ndarray,
        workers: Workers,
    ):
        self.groups, n_documents = groups, len(groups)
        self.matrix, self.labels, self.names = rows_in_memory(rows), sp.csc_array(labels), names
        self.labels.sort_indices()
        self.size, self.n_documents, self._workers = min(size, labels.shape[1]), n_documents, workers
        self._shared = workers.share(self.matrix if rows.dtype != np.float32 else rows)
        self.sizes = np.diff(self.labels[:n_documents].indptr)
        self.centroids = topic_centroids(self.matrix, self.labels)
        # In uint16, the -1 of an unfilled place becomes 65,535, which is no topic's number, as there are fewer topics.
        numbers = np.uint16 if labels.shape[1] < FEW_TOPICS else np.int32
        listed = self.listed(names.listing(self.centroids), np.arange(n_documents), numbers)
        labelled = self.labels.indptr.astype(np.int64), self.labels.indices.astype(np.int32)
        self._starts, self._ends, self._listed_for = rows_by_topic(listed, labels.shape[1], *labelled)
        prevalence, self._seed = self.sizes / n_documents, learner.random_state
        self._rules, self._settings = learner.rules_for(prevalence), learner.settings_for(self.matrix, prevalence)

    def hold_out_more(self, held_out: np.ndarray, random: np.random.Generator) -> list[np.ndarray]:
        """Return parts of about the same size as `held_out`, to hold out in turn; none if it is large enough."""
        if len(held_out) >= LEAST_HELD_OUT:
            return []
        others = random.permutation(np.setdiff1d(self.groups, held_out))
        size = max(len(held_out), 1)
        n_parts = min(-(-(LEAST_HELD_OUT - len(held_out)) // size), -(-len(others) // size))
        return [np.sort(part) for part in np.array_split(others[: n_parts * size], n_parts)] if n_parts > 0 else []

    def hold_out(self, random: np.random.Generator) -> np.ndarray:
        """Return the positions of documents to hold out, drawn at random, of which none repeats another."""
        firsts = np.unique(self.groups)
        return np.sort(random.choice(firsts, min(_HELD_OUT, len(firsts) // _ONE_OF), replace=False))

    def listed(self, centroids: sp.csr_array, documents: np.ndarray, dtype: Any = np.int32) -> np.ndarray:
        """Return the shortlists (nearest topics) of the documents at some positions: shape (n_documents, size)."""
        listed = np.empty((len(documents), self.size), dtype)
        blocks = [documents[start : start + _DOCUMENTS] for start in range(0, len(documents), _DOCUMENTS)]
        shared = self._shared, self._workers.share(centroids)
        done = self._workers.in_order(partial(shortlists_of_block, self.size), blocks, *shared)
        for start, block in zip(range(0, len(documents), _DOCUMENTS), done, strict=True):
            listed[start : start + _DOCUMENTS] = block
        return listed

    def train(self, topics: Sequence[int], is_held_out: np.ndarray | None = None) -> Iterator[_Ranker]:
        """Train the ranker of each topic in `topics`; yield them in this order.

        Examples for which the mask `is_held_out` is True are left out of training; None: none is left out.
        """

        def problem(topic: int) -> _Listed:
            positives = self.labels.indices[slice(*self.labels.indptr[topic : topic + 2])].astype(np.int32)
            negatives = self._listed_for[self._starts[topic] : self._ends[topic]]
            if is_held_out is not None:
                positives, negatives = (rows[~is_held_out[rows]] for rows in (positives, negatives))
            return positives, negatives, self._rules[topic], self._settings[topic]

        most = _ROWS * len(self._rules) // max(1, len(self._listed_for))
        size = max(1, min(_TOPICS, most, len(topics) // (2 * self._workers.jobs)))
        blocks = (list(map(problem, topics[start : start + size])) for start in range(0, len(topics), size))
        task = partial(train_block, self._seed)
        for block in self._workers.in_order(task, blocks, self._shared):
            yield from block


# A topic's positives, negatives, rule, and the other settings of its problem.
_Listed = tuple[np.ndarray, np.ndarray, Rule, dict[str, Any]]


def are_labels(labels: sp.csr_matrix, documents: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Return for each of some pairs (document, topic) whether the document has the topic: shape (n_pairs,), bool.

    `documents` has the row of each pair in `labels`, and `column` the pair's column.
    """
    n_topics = labels.shape[1]
    keys = np.repeat(np.arange(labels.shape[0]), np.diff(labels.indptr)) * n_topics + labels.indices
    return np.isin(documents * n_topics + column, keys)


def rows_in_memory(rows: Any) -> sp.csr_matrix:
    """Return a matrix of feature vectors, in memory or on disk, as a csr_matrix of float32."""
    return (rows if sp.issparse(rows) else rows[:]).astype(np.float32, copy=False)


def shortlists_of_block(size: int, documents: np.ndarray, sent: Any, centroids: Any) -> np.ndarray:
    """Return for each document the `size` topics with the nearest centroids: shape (n_documents, size).

    `documents` are row numbers; `sent` is the handle of the rows from `Workers.share`.
    """
    return Shortlist(centroids, size).topics(Rows.of(rows_in_memory(opened(sent))[documents]))


def train_block(seed: int | None, block: Sequence[_Listed], sent: Any) -> list[_Ranker]:
    """Train a block of topics, each on its positives and negatives, and on the features that these have.

    `sent` is the handle of the rows from `Workers.share`.
    """
    rows = opened(sent)
    arrays, position = Rows.of(rows), np.full(rows.shape[1], -1, np.int32)
    rankers = []
    for positives, negatives, rule, settings in block:
        chosen = np.sort(np.concatenate([positives, negatives]))
        indptr, indices, data, features = subset(*arrays, chosen, position)
        X = sp.csr_array((data, indices, indptr), shape=(len(chosen), len(features)))
        problem = Problem(np.searchsorted(chosen, positives).astype(np.int32), rule, **settings)
        solution = solve(X, [problem], n_jobs=1, seed=seed, keep=PackedWeights.of, overwrite_X=True)[0]
        weights = solution.weights
        if not np.isfinite(weights.values).all():
            raise TextcatError("The weights of a topic overflowed: lower eta or the margins.")
        facts = solution.n_epochs, solution.n_updates, len(solution.support), solution.stopped
        of_ranker = weights.values, solution.bias, solution.unit, facts, solution.converged
        rankers.append(_Ranker(features[weights.features], *of_ranker))
    return rankers


def weigh_evidence(topics: _ListedTopics, seed: int) -> _Evidence:
    """Return the coefficients of the three kinds of evidence, fitted on held-out documents for a sample of topics.

    The kinds are a ranker's score, the similarity to the centroid, and the similarity to the name. If the shortlists of
    held-out documents have too few of the documents' sampled topics, only the ranker's score counts.
    """
    random = np.random.default_rng(seed)
    n_topics, held_out = topics.labels.shape[1], topics.hold_out(random)
    sample = np.sort(random.choice(n_topics, min(_SAMPLE, n_topics), replace=False))
    parts = [_held_out_evidence(topics, sample, part) for part in (held_out, *topics.hold_out_more(held_out, random))]
    kinds, size, target = (np.concatenate(of_parts) for of_parts in zip(*parts, strict=True))
    n_listed = int(target.sum())
    if FEWEST <= n_listed < len(target):
        missing = inverse_propensities(np.expm1(size), topics.n_documents, *PROPENSITY)
        weights = logistic_regression(kinds, target, np.where(target, missing**INVERSE_PROPENSITY, 1.0))
    else:
        weights = _RANKER_ALONE
    scores = kinds @ weights[:-1] + weights[-1]
    if 0 < n_listed < len(target):
        odds = logistic_regression(np.column_stack([scores, size]), target)
    else:
        share = (n_listed + 0.5) / (len(target) + n_topics)
        odds = [0.0, 0.0, float(np.log(share / (1 - share)))]
    return _Evidence(*weights, *odds)


def _held_out_evidence(
    topics: _ListedTopics, sample: np.ndarray, held_out: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the evidence for the sampled topics on shortlists of held-out documents, trained without these documents.

    Three arrays have an entry for each such topic of each shortlist: the kinds of evidence, as in `_Evidence`, shape
    (n_entries, 7); log(1 + size) of the topic; and whether the document has it.
    """
    n_topics = topics.labels.shape[1]
    is_held_out = np.zeros(topics.matrix.shape[0], bool)
    is_held_out[members_of(held_out, topics.groups)] = True
    labels = sp.csc_array(sp.diags_array((~is_held_out).astype(np.int8), dtype=None) @ topics.labels)
    labels.eliminate_zeros()
    centroids = topic_centroids(topics.matrix, labels)
    listed = topics.listed(topics.names.listing(centroids), held_out)
    is_sampled = np.zeros(n_topics + 1, bool)
    is_sampled[sample] = True
    listed[~is_sampled[listed]] = -1
    rows = Rows.of(topics.matrix[held_out])
    bias, columns = np.zeros(n_topics, np.float32), [(np.empty(0, np.int32), np.empty(0, np.float32))] * n_topics
    for topic, ranker in zip(sample.tolist(), topics.train(sample.tolist(), is_held_out), strict=True):
        columns[topic] = ranker.features, ranker.weights / np.float32(ranker.unit)
        bias[topic] = ranker.bias / ranker.unit
    documents, places = np.nonzero(listed >= 0)
    column = listed[documents, places]
    matrices = (centroids, columns_in_rows(columns, topics.matrix.shape[1]), topics.names.by_topic.tocsr())
    similarity, score, name = (
        products_of_listed(rows, matrix, listed)[documents, places].astype(float) for matrix in matrices
    )
    score += bias[column]
    target = are_labels(topics.labels.tocsr()[held_out], documents, column)
    size = np.log1p(np.diff(labels[: topics.n_documents].indptr))[column]
    return np.column_stack([similarity, similarity * size, score, score * size, name, name * size, size]), size, target


def weigh_names(topics: _ListedTopics, seed: int) -> _NameEvidence | None:
    """Return the coefficients of the score of topics without documents.

    To fit the coefficients, the documents of some other topics are hidden, so that these topics have only their names.

    Return None if the shortlists of held-out documents have too few of the documents' hidden topics.
    """
    random, names = np.random.default_rng(seed), topics.names
    held_out = topics.hold_out(random)
    candidates = np.flatnonzero((topics.sizes > 0) & (np.diff(names.by_topic.indptr) > 0))
    hidden = np.sort(random.choice(candidates, min(_HIDDEN, len(candidates) // _HIDDEN_ONE_OF), replace=False))
    is_hidden = np.zeros(len(topics.sizes) + 1, bool)
    is_hidden[hidden] = True
    shown = topics.labels.tocoo()
    is_shown = ~is_hidden[shown.col] | (shown.row >= topics.n_documents)
    entries = shown.data[is_shown], (shown.row[is_shown], shown.col[is_shown])
    centroids = topic_centroids(topics.matrix, sp.csc_array(entries, shape=shown.shape))
    alike = names.alike_of(hidden)
    listed = topics.listed(names.listing(centroids, alike), held_out)
    listed[~is_hidden[listed]] = -1
    documents, places = np.nonzero(listed >= 0)
    column = listed[documents, places]
    target = are_labels(topics.labels.tocsr()[held_out], documents, column)
    if not FEWEST <= target.sum() < len(target):
        return None
    rows = Rows.of(topics.matrix[held_out])
    similarities = [
        products_of_listed(rows, matrix.tocsr(), listed)[documents, places] for matrix in (names.by_topic, *alike)
    ]
    lengths = [names.log_lengths[column]] if alike else []
    kinds = np.column_stack([*similarities, *lengths]).astype(float)
    missing = inverse_propensities(topics.sizes[column], topics.n_documents, *PROPENSITY)
    counted = logistic_regression(kinds, target, np.where(target, missing**INVERSE_PROPENSITY, 1.0))
    scores = kinds @ counted[:-1] + counted[-1]
    of_alike, of_meant = (*counted[1 : len(similarities)], 0.0, 0.0)[:2]
    of_length = counted[-2] if alike else 0.0
    odds_of_score, odds = logistic_regression(scores[:, None], target)
    return _NameEvidence(counted[0], of_alike, of_meant, of_length, counted[-1], odds_of_score, odds)


def logistic_regression(X: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None) -> list[float]:
    """Return the coefficients of a logistic regression, followed by the constant.

    The columns of X are scaled for the regression, but the coefficients are those of the unscaled columns.
    """
    from sklearn.linear_model import LogisticRegression  # imported here, because most training does not need it

    scale = np.sqrt(np.square(X).mean(axis=0))
    scale[scale == 0] = 1
    model = LogisticRegression(solver="newton-cholesky", tol=1e-6).fit(X / scale, y, sample_weight=weights)
    return [*(model.coef_[0] / scale).tolist(), float(model.intercept_[0])]
