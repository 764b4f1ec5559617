"""Rebuild AutoTAR, and teach topics from their descriptions alone by it and by textcat.

G. V. Cormack, M. R. Grossman, Autonomy and reliability of continuous active learning for technology-assisted review,
arXiv:1504.06868 (2015): the description is a relevant document; 100 documents drawn anew for every round are presumed
negative; the B highest scores are asked for, first 1, and after each round ceil(B/10) more.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from textcat.base.journal import KeptResults
from textcat.corpus.documents import Corpus
from textcat.recipes.recipe import Recipe
from textcat.teaching.descriptions import Descriptions
from textcat.teaching.pool import Pool
from textcat.teaching.ranker import Examples
from textcat.teaching.simulate import Setting, SimulatedTopic, experiment

PRESUMED, RECALL = 100, 0.95
CS = (1.0, 10.0)  # scikit-learn's default, and what is better here


def autotar(rows: Any, description: Any, labels: Any, seed: int, C: float, recall: float = RECALL) -> int:
    """Return how many answers AutoTAR needs to reach a recall."""
    generator, is_open, judged = np.random.default_rng(seed), np.ones(len(labels), bool), np.empty(0, int)
    left, batch = int(np.ceil(recall * labels.sum() - 1e-9)), 1
    while True:
        presumed = generator.choice(np.flatnonzero(is_open), min(PRESUMED, int(is_open.sum())), replace=False)
        X = sp.vstack([description, rows[judged], rows[presumed]])
        y = np.r_[True, labels[judged], np.zeros(len(presumed), bool)]
        scores = rows @ LogisticRegression(C=C, solver="liblinear", max_iter=1000).fit(X, y).coef_[0]
        asked = np.argsort(np.where(is_open, -scores, np.inf), kind="stable")[: min(batch, int(is_open.sum()))]
        found = np.cumsum(labels[asked])
        if found[-1] >= left:
            return len(judged) + int(np.argmax(found >= left)) + 1
        left -= int(found[-1])
        judged, is_open[asked] = np.r_[judged, asked], False
        batch += -(-batch // 10)


def texts_and_descriptions(corpus: Corpus, topics: Sequence[str]) -> tuple[Any, Any]:
    """Return AutoTAR's rows, of words of two characters and more that begin with a letter, and the descriptions'."""
    texts = ["\n".join(one.zones.values()) for one in (*corpus.train, *corpus.test)]
    vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=2, token_pattern=r"(?u)\b[a-z][a-z0-9]+\b")
    return vectorizer.fit_transform(texts), vectorizer.transform([in_words(corpus, topic) for topic in topics])


def in_words(corpus: Corpus, topic: str) -> str:
    """Return a topic's name and description."""
    return f"{topic} {corpus.descriptions.get(topic, '')}".replace("-", " ").replace("/", " ")


def cases(corpus: Corpus, recipe: Recipe) -> list[SimulatedTopic]:
    """Return the topics over textcat's rows, with their descriptions."""
    pool = Pool.from_documents(corpus, recipe=recipe)
    rows = Descriptions(pool.features).rows([in_words(corpus, topic) for topic in corpus.topics])
    return [
        SimulatedTopic(
            corpus.name, topic, pool.rows, labels_of(corpus, topic), Examples(row, np.ones(1, np.int8), np.ones(1))
        )
        for topic, row in zip(corpus.topics, rows, strict=True)
    ]


def labels_of(corpus: Corpus, topic: str) -> NDArray[np.bool_]:
    """Return which documents have a topic."""
    return np.array([topic in one.topics for one in (*corpus.train, *corpus.test)])


def ours_needed(corpus: Corpus, recipe: Recipe, jobs: int, kept: Path | None = None) -> NDArray[np.float64]:
    """Return how many answers reach 95 % recall of each topic by textcat."""
    results = experiment(cases(corpus, recipe), [Setting("textcat", start="description")], [0], n_jobs=jobs, kept=kept)
    return np.array([one.figures["answers95"] for one in results])


def needed(corpus: Corpus, seeds: int, jobs: int, kept: Path | None = None) -> dict[str, NDArray[np.float64]]:
    """Return how many answers reach 95 % recall of each topic by AutoTAR: the means over seeds, by C."""
    rows, descriptions = texts_and_descriptions(corpus, corpus.topics)
    labels, results = [labels_of(corpus, topic) for topic in corpus.topics], KeptResults(kept)
    tasks = {
        f"{C} {topic} {seed}": (rows, descriptions[position], labels[position], seed, C)
        for C in CS
        for position, topic in enumerate(corpus.topics)
        for seed in range(seeds)
        if f"{C} {topic} {seed}" not in results
    }
    counts = joblib.Parallel(jobs, return_as="generator")(joblib.delayed(autotar)(*task) for task in tasks.values())
    for key, count in zip(tasks, counts, strict=True):
        results[key] = {"answers": count}

    def mean(C: float, topic: str) -> float:
        return float(np.mean([results[f"{C} {topic} {seed}"]["answers"] for seed in range(seeds)]))

    return {f"AutoTAR, C = {C:g}": np.array([mean(C, topic) for topic in corpus.topics]) for C in CS}
