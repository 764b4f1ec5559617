"""A corpus → the vectors of the PAUM paper; what rankers reach on them → the columns of its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from textcat.documents import Corpus
from textcat.evaluation.ranking import Band, average_precisions, bands, macro_average
from textcat.margin.problems import Problem, Solution
from textcat.margin.rules import Rule
from textcat.margin.solve import solve
from textcat.papers import datasets
from textcat.papers.experiment import Figure
from textcat.recipe import read_recipe

# The paper's numbers of terms. Which ones it leaves out it does not say; here, those in the fewest training documents.
N_TERMS = {"reuters21578": 20_000, "rcv1": 120_000}

_GRAM_ROWS = 512


@dataclass(frozen=True, eq=False)
class Vectors:
    """Documents as the paper's vectors: tf·log(m/df), of unit length.

    Parameters
    ----------
    topics : tuple of str
    train, test : csr_matrix of shape (n_documents, n_terms), float32
    train_labels, test_labels : csc_matrix of shape (n_documents, n_topics), 0/1
    """

    topics: tuple[str, ...]
    train: sp.csr_matrix
    test: sp.csr_matrix
    train_labels: sp.csc_matrix
    test_labels: sp.csc_matrix

    @classmethod
    def of(cls, corpus: Corpus, n_terms: int) -> Vectors:
        """Make the vectors of a corpus, of the terms that most training documents have."""
        recipe = read_recipe("paum-2002")
        features = replace(recipe, features={**recipe.features, "max_features": n_terms}).make_features()
        train, test = features.fit_transform(corpus.train), features.transform(corpus.test)
        return cls(corpus.topics, train, test, corpus.labels(corpus.train), corpus.labels(corpus.test))

    @cached_property
    def positives(self) -> list[np.ndarray]:
        """The training documents of each topic, int32."""
        labels = self.train_labels
        return [np.sort(rows).astype(np.int32) for rows in np.split(labels.indices, labels.indptr[1:-1])]

    @cached_property
    def sizes(self) -> np.ndarray:
        """How many training documents each topic has."""
        return np.diff(self.train_labels.indptr)

    @cached_property
    def bands(self) -> list[Band]:
        """ALL, TOP10 and LAST30."""
        return bands(self.topics, self.sizes)

    def solve(
        self, rules: Rule | Sequence[Rule], n_jobs: int, lambda_: float = 1.0, max_epochs: int = 1000
    ) -> list[Solution]:
        """Train a ranker per topic, all by one rule or each by its own; ρ = 1 is the paper's R of such vectors."""
        rule_of = [rules] * len(self.topics) if isinstance(rules, Rule) else rules
        problems = [
            Problem(positives, rule, lambda_=lambda_, max_epochs=max_epochs)
            for positives, rule in zip(self.positives, rule_of, strict=True)
        ]
        return solve(self.train, problems, n_jobs=n_jobs)

    def scores(self, rows: sp.csr_matrix, solutions: Sequence[Solution]) -> np.ndarray:
        """Score documents by each solution: an array of shape (n_documents, n_solutions)."""
        weights = np.array([solution.weights for solution in solutions]).T.copy()
        return rows @ weights + np.array([solution.bias for solution in solutions], weights.dtype)

    def quality(self, solutions: Sequence[Solution]) -> np.ndarray:
        """Return the average precision of each topic on the test documents; nan for a topic that none of them has."""
        return average_precisions(self.test_labels, self.scores(self.test, solutions))

    def figures(
        self, quality: ArrayLike, sparsity: ArrayLike, published: Mapping[str, Any] | None = None
    ) -> dict[str, Figure]:
        """Average over the topics of each band, beside what the paper prints.

        Parameters
        ----------
        quality : array-like of shape (n_topics,)
            Average precisions.
        sparsity : array-like of shape (n_topics,)
            Numbers of support documents.
        published : mapping, optional
            ``map`` and ``sparsity``, a number per band each.
        """
        return {
            f"{name} {band.name}": Figure(
                macro_average(values, band.topics).mean, published[name.lower()][k] if published else None, digits
            )
            for name, values, digits in (("MAP", quality, 3), ("sparsity", sparsity, 0))
            for k, band in enumerate(self.bands)
        }


@lru_cache(maxsize=1)
def vectors(name: str) -> Vectors:
    """Return the vectors of a corpus of the paper; those of the last one asked for are kept.

    Raises
    ------
    MissingData
        If the corpus is not on disk.
    """
    return Vectors.of(datasets.corpus(name), N_TERMS[name])


def support_sizes(solutions: Sequence[Solution]) -> np.ndarray:
    """Return the number of support documents of each solution, which the paper calls sparsity."""
    return np.array([len(solution.support) for solution in solutions])


def gram(rows: sp.csr_matrix) -> np.ndarray:
    """Return the inner products of all pairs of rows; by blocks, for one sparse product would take twice the memory."""
    products = np.empty((rows.shape[0], rows.shape[0]))
    for start in range(0, rows.shape[0], _GRAM_ROWS):
        block = slice(start, start + _GRAM_ROWS)
        products[:, block] = rows @ np.ascontiguousarray(rows[block].toarray().T)
    return products
