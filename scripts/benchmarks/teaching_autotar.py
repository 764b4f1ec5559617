"""Rebuild AutoTAR, and teach topics from their descriptions alone by it and by textcat: a part of the page on teaching.

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
from textcat.corpus.catalogue import open_corpus
from textcat.corpus.documents import Corpus
from textcat.recipes.recipe import Recipe
from textcat.teaching.descriptions import Descriptions
from textcat.teaching.pool import Pool
from textcat.teaching.ranker import Examples
from textcat.teaching.simulate import Setting, SimulatedTopic, experiment

OURS = "textcat"
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


def needed(corpus: Corpus, recipe: Recipe, seeds: int, jobs: int, kept: Path | None) -> dict[str, NDArray[np.float64]]:
    """Return how many answers reach 95 % recall, of each topic: textcat's, and by C the means of AutoTAR's seeds."""
    ours = experiment(cases(corpus, recipe), [Setting(OURS, start="description")], range(1), n_jobs=jobs, kept=kept)
    answers = {OURS: np.array([one.figures["answers95"] for one in ours])}
    rows, descriptions = texts_and_descriptions(corpus, corpus.topics)
    results = KeptResults(kept and kept.with_stem("autotar"))
    tasks = {
        f"{C} {topic} {seed}": (C, position, seed)
        for C in CS
        for position, topic in enumerate(corpus.topics)
        for seed in range(seeds)
    }
    missing = {key: task for key, task in tasks.items() if key not in results}
    labels = [labels_of(corpus, topic) for topic in corpus.topics]
    counts = joblib.Parallel(jobs, return_as="generator")(
        joblib.delayed(autotar)(rows, descriptions[position], labels[position], seed, C)
        for C, position, seed in missing.values()
    )
    for key, count in zip(missing, counts, strict=True):
        results[key] = {"answers": count}
    for C in CS:
        of_topics = [[results[f"{C} {topic} {seed}"]["answers"] for seed in range(seeds)] for topic in corpus.topics]
        answers[f"AutoTAR, C = {C:g}"] = np.mean(of_topics, axis=1)
    return answers


def measured(recipe: Recipe, seeds: int, jobs: int, kept: Path | None, corpus: str) -> tuple[str, list[dict[str, Any]]]:
    """Measure, and return the text and the rows of the page."""
    opened = open_corpus(corpus)
    answers = needed(opened, recipe, seeds, jobs, kept)
    mine, rows = answers.pop(OURS), []
    for name, its in answers.items():
        ratios, low, high = mine / its, *np.quantile(mine / its, [0.25, 0.75])
        rows.append(
            {
                "compared with": name,
                "its answers, median": f"{np.median(its):.0f}",
                "ours, median": f"{np.median(mine):.0f}",
                "ratio, median": f"{np.median(ratios):.2f}",
                "quartiles": f"{low:.2f} to {high:.2f}",
                "ratio of medians": f"{np.median(mine) / np.median(its):.2f}",
                "fewer answers": f"{int((mine < its).sum())} of {len(mine)}",
            }
        )
    n = len(opened.train) + len(opened.test)
    text = f"""The table shows how many answers reach 95 % recall, for {len(mine)} topics in the {n:,} documents of
{opened.name}, training and test part
together, by textcat and by AutoTAR. Each topic starts from its name and description, such as
"{in_words(opened, opened.topics[0])}". AutoTAR is rebuilt with scikit-learn after Cormack and Grossman (2015): logistic
regression on tf-idf of words, with the description as a relevant document, 100 presumed negatives per round, and
batches that grow by a tenth. Figures are means of {seeds} seeds."""
    return text, rows
