"""Promises: how many are kept on held-out documents, and what share of the tags is automatic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import few_labels
import numpy as np
import titles
from harness import Row, Work
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from training import reuters

from textcat.base.errors import TextcatError
from textcat.base.folds import assign_folds
from textcat.corpus.catalogue import open_corpus
from textcat.corpus.documents import Corpus, Document
from textcat.evaluation.expected_recall import ExpectedRecall
from textcat.evaluation.thresholds import choose_thresholds
from textcat.recipes.recipe import Recipe, default_recipe
from textcat.training.examples import CountedCorpus
from textcat.training.thresholds import decisions_by_scores, promise_scores

HELD_OUT = 2  # one document of so many is held out
PRECISIONS, CONFIDENCE = (0.8, 0.9), 0.9
LARGEST_SUBJECTS = 100


class Split(NamedTuple):
    """Out-of-fold scores of documents, scores of held-out ones by the final ranker, labels and lengths of both."""

    scores: np.ndarray
    labels: Any
    new_scores: np.ndarray
    new_labels: np.ndarray
    lengths: np.ndarray  # distinct terms
    new_lengths: np.ndarray


def measure(work: Work) -> list[Row]:
    """Train on half of the documents, promise, and look at the other half; again and again."""
    rows = []
    for corpus in corpora(work):
        facts = work.kept(f"promises, {corpus.name} {work.rounds}", partial(_resplit, corpus, work))
        rows += [_row(corpus, precision, np.array(facts[str(precision)])) for precision in PRECISIONS]
    return rows


def corpora(work: Work) -> Iterator[Corpus]:
    """Yield corpora, all of whose documents are training documents."""
    for corpus in (reuters(work), *(() if work.quick else [open_corpus("20newsgroups", download=False)])):
        yield Corpus.from_documents(corpus.name, [*corpus.train, *corpus.test])
    for language in () if work.quick else ("en", "sv"):
        yield Corpus.from_documents(f"yso-finna-{language}", titles_of_the_largest(language))


def titles_of_the_largest(language: str) -> list[Document]:
    """Return the titles of a library that have one of the 100 largest subjects or more."""
    source = titles.located(f"yso-finna-{language}")
    if source is None:
        raise TextcatError(
            f"The titles of yso-finna-{language} are not here: `textcat corpora` says where to put them."
        )
    read = [(title, subjects.split()) for title, subjects in titles.read(source)]
    largest = few_labels.largest((subjects for _, subjects in read), LARGEST_SUBJECTS)
    documents = (
        Document(str(number), {"body": title}, tuple(largest.intersection(subjects)))
        for number, (title, subjects) in enumerate(read)
    )
    return [document for document in documents if document.topics]


def _resplit(corpus: Corpus, work: Work) -> dict[str, Any]:
    """Return for each precision the counts of all topics of all resplits: see `_counts`."""
    recipe, _ = default_recipe().for_corpus(corpus)
    counts = CountedCorpus(corpus, recipe)
    splits = [_counts_of(counts, recipe, seed) for seed in range(work.rounds)]
    return {str(precision): [row for split in splits for row in split[precision]] for precision in PRECISIONS}


def _counts_of(counts: CountedCorpus, recipe: Recipe, seed: int) -> dict[float, list[tuple[int, ...]]]:
    halves = split(counts, recipe, seed)
    return {precision: _counts(halves, recipe, precision, counts.corpus.topics) for precision in PRECISIONS}


def split(counts: CountedCorpus, recipe: Recipe, seed: int) -> Split:
    """Divide documents into two halves: train rankers on one, and score both."""
    n = len(counts.corpus.train)
    drawn = np.random.default_rng(seed).permutation(n)
    judged, trained = np.sort(drawn[: n // HELD_OUT]), np.sort(drawn[n // HELD_OUT :])
    features = counts.fit(recipe.make_features(), trained)
    examples, labels = counts.examples(features, trained), counts.labels[trained].tocsc()
    learner = recipe.make_learner(n_jobs=1)
    learner.fit(examples.rows, examples.labels, left_out=examples.left_out)
    scores = promise_scores(examples, learner, assign_folds(labels, recipe.tags.folds, seed=0), features)
    new_rows = counts.held_out_rows(features, judged)
    new, new_labels = learner.decision_function(new_rows), counts.labels[judged].toarray() > 0
    lengths = np.diff(examples.rows.indptr)[: len(trained)]
    return Split(scores, labels, new, new_labels, lengths, np.diff(new_rows.indptr))


def _counts(split: Split, recipe: Recipe, precision: float, topics: Any) -> list[tuple[int, ...]]:
    """Return for each topic whether its precision is promised, its automatic tags, the right ones, and an oracle's.

    The oracle knows the lowest threshold with the precision on the held-out documents. The last number is that of the
    held-out documents with the topic.
    """
    asked = replace(recipe.promise, precision=precision, confidence=CONFIDENCE)
    try:
        promises = decisions_by_scores(replace(recipe, promise=asked), topics, split.scores, split.labels).promises
        thresholds = promises.threshold
    except TextcatError:  # nothing can be promised
        thresholds = np.full(len(topics), np.inf)
    automatic = split.new_scores > thresholds
    order = np.argsort(-split.new_scores, axis=0)
    right = np.cumsum(np.take_along_axis(split.new_labels, order, 0), axis=0)
    enough = right >= precision * np.arange(1, len(order) + 1)[:, None]
    oracle = np.where(enough, right, 0).max(axis=0)
    columns = (
        np.isfinite(thresholds),
        automatic.sum(axis=0),
        (automatic & split.new_labels).sum(axis=0),
        oracle,
        split.new_labels.sum(axis=0),
    )
    return [tuple(map(int, row)) for row in zip(*columns, strict=True)]


def _row(corpus: Corpus, precision: float, counts: np.ndarray) -> Row:
    promised = counts[(counts[:, 0] > 0) & (counts[:, 1] > 0)]
    _, given, right, oracle, _ = promised.T
    kept = right >= precision * given - 1e-9
    return {
        "corpus": corpus.name,
        "precision / confidence": f"{precision:g} / {CONFIDENCE:g}",
        "topics with a promise": f"{(counts[:, 0] > 0).mean():.3f}",
        "promises kept": f"{kept.mean():.3f}" if len(kept) else "",
        "precision of automatic tags": f"{right.sum() / given.sum():.3f}" if len(kept) else "",
        "true tags / oracle's": f"{right.sum() / oracle.sum():.3f}" if len(kept) else "",
        "true tags / all": f"{counts[:, 2].sum() / counts[:, 4].sum():.3f}",
    }


# --- expected recall -------------------------------------------------------------------------------------------------


def expected_recall(work: Work) -> list[Row]:
    """Compare what is expected of the recall of documents with a regression on length, highest scores and tags."""
    return [_recall_row(corpus, work) for corpus in corpora(work)]


def _recall_row(corpus: Corpus, work: Work) -> Row:
    recipe, _ = default_recipe().for_corpus(corpus)
    counts = CountedCorpus(corpus, recipe)
    areas = [_areas(split(counts, recipe, seed), recipe) for seed in range(work.rounds)]
    means = np.mean([list(of_split.values()) for of_split in areas], axis=0)
    return {"corpus": corpus.name} | {name: f"{mean:.4f}" for name, mean in zip(areas[0], means, strict=True)}


def _areas(split: Split, recipe: Recipe) -> dict[str, float]:
    """Return the area under the curve of risk and coverage, by each way to order documents.

    The risk is 1 - recall, on average over the documents that are expected to have the highest recall.
    """
    labels = split.labels.toarray() > 0
    thresholds, curves = choose_thresholds(recipe.tags.strategy, split.scores, labels, recipe.tags.probability)
    given, new_given = split.scores > thresholds, split.new_scores > thresholds
    fitted = ExpectedRecall.fit(split.scores, curves.probabilities(split.scores), given, labels)
    known, judged = labels.any(axis=1), split.new_labels.any(axis=1)
    X, new_X = (
        _of_qualle(lengths, scores, tags)
        for lengths, scores, tags in (
            (split.lengths, split.scores, given),
            (split.new_lengths, split.new_scores, new_given),
        )
    )
    ridge = make_pipeline(StandardScaler(), Ridge()).fit(X[known], _recall(labels, given)[known])
    recall = _recall(split.new_labels, new_given)[judged]
    expected = {
        "perfect": recall,
        "textcat": fitted.of(split.new_scores, curves.probabilities(split.new_scores), new_given)[judged],
        "ridge regression": ridge.predict(new_X)[judged],
        "at random": np.random.default_rng(0).random(len(recall)),
    }
    return {name: _area(values, recall) for name, values in expected.items()}


def _of_qualle(lengths: np.ndarray, scores: np.ndarray, given: np.ndarray) -> np.ndarray:
    return np.column_stack([np.log1p(lengths), -np.sort(-scores, axis=1)[:, :5], given.sum(axis=1)])


def _recall(labels: np.ndarray, given: np.ndarray) -> np.ndarray:
    return np.asarray((labels & given).sum(axis=1) / np.maximum(labels.sum(axis=1), 1))


def _area(expected: np.ndarray, recall: np.ndarray) -> float:
    risk = 1 - recall[np.argsort(-expected, kind="stable")]
    return float((np.cumsum(risk) / np.arange(1, len(risk) + 1)).mean())
