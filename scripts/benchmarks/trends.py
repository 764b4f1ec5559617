"""Trends: how far prevalences by period are off, and how often their intervals contain the true one.

They are estimated from scores alone, and with a random sample of the documents of each period that people have judged.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from harness import Row, Work
from promises import titles_of_the_largest
from training import reuters

from textcat.base.folds import assign_folds
from textcat.corpus.catalogue import open_corpus
from textcat.corpus.documents import Corpus
from textcat.reading.dates import day_of
from textcat.recipes.recipe import default_recipe
from textcat.training.examples import CountedCorpus
from textcat.training.thresholds import decisions_by_scores, held_out_scores
from textcat.trends.bins import N_BINS, bins_of
from textcat.trends.estimators import ESTIMATORS
from textcat.trends.held_out import HeldOut
from textcat.trends.intervals import intervals
from textcat.trends.sample import Judged, likeliest_estimator, sampled_prevalences

DOCUMENTS, LEAST_DOCUMENTS = 2000, 100  # of a simulated period, and of a month that counts
LEAST_OF_TOPIC = 5  # documents in a period: the relative error of fewer says little
LEAST_HELD_OUT = 3  # positives of a topic
SHIFTS = 1000  # pairs of a topic and a period, at least
AUDIT, NORMAL = 300, 1.96  # documents of a random sample, and half the width of an interval in deviations
DRAWS = 5  # of samples of the same months
_ROUNDING = 1e-9


class Later(NamedTuple):
    """What a tagger trained on the earlier half of the documents says of the later half."""

    held_out: HeldOut
    tagged: np.ndarray  # of each later document and topic
    bins: np.ndarray
    labels: np.ndarray
    months: np.ndarray


class Periods(NamedTuple):
    """Documents of periods by topic and bin, tags by topic, the true prevalences of topics, and a judged sample."""

    counts: np.ndarray  # (n_periods, n_topics, n_bins)
    tagged: np.ndarray  # shares: (n_periods, n_topics)
    true: np.ndarray
    topics: np.ndarray  # bool: those that count
    judged: Judged


def measure(work: Work) -> list[Row]:
    """Train on the earlier half of dated documents, and estimate prevalences of the months of the later one."""
    return [row for facts in _facts(work) for row in facts["rows"]]


def with_judged(work: Work) -> list[Row]:
    """Estimate the same prevalences with a random sample of each month whose topics are known."""
    return [row for facts in _facts(work) for row in facts["judged"]]


def _facts(work: Work) -> list[Mapping[str, Any]]:
    corpora = [reuters(work), open_corpus("newswire", download=False)]
    if not work.quick:
        corpora.append(_dated_by_part(open_corpus("20newsgroups", download=False)))
        corpora += [_dated_at_random(language) for language in ("en", "sv")]
    return [work.kept(f"trends, {corpus.name}", partial(_measured, corpus, work)) for corpus in corpora]


def _dated_at_random(language: str) -> Corpus:
    """Return titles with dates: half of them of one day, and the others, which are like them, of later months."""
    documents = titles_of_the_largest(language)
    random.Random(0).shuffle(documents)
    half, a_month = len(documents) // 2, DOCUMENTS
    dated = [
        replace(document, date="2000-01-01" if n < half else f"2001-{1 + (n - half) // a_month:02}-01")
        for n, document in enumerate(documents)
    ]
    return Corpus.from_documents(f"yso-finna-{language}", dated)


def _dated_by_part(corpus: Corpus) -> Corpus:
    """Return a corpus whose test documents are later than its training documents, with dates that say so."""
    train = [replace(document, date="2000-01-01", split="") for document in corpus.train]
    return replace(corpus, train=train, test=[replace(one, date="2001-01-01", split="") for one in corpus.test])


def _measured(corpus: Corpus, work: Work) -> dict[str, Any]:
    later = _later(corpus)
    natural = [_natural(later, seed) for seed in range(1 if work.quick else DRAWS)]
    kinds = {"natural": natural, "simulated": [_simulated(later, 50 if work.quick else SHIFTS)]}
    return {
        "rows": [_row(corpus.name, shift, drawn[0], later.held_out) for shift, drawn in kinds.items()],
        "judged": [_judged_row(corpus.name, shift, drawn, later.held_out) for shift, drawn in kinds.items()],
    }


def _later(corpus: Corpus) -> Later:
    dated = [(day, document) for document in (*corpus.train, *corpus.test) if (day := day_of(document.date))]
    dated.sort(key=lambda pair: pair[0])
    days, documents = zip(*dated, strict=True)
    corpus = replace(Corpus.from_documents(corpus.name, documents), train=[*documents], test=[], unused=[])
    recipe, _ = default_recipe().for_corpus(corpus)
    # A day is not divided, as its documents may lie in the order of their topics.
    counts, half = CountedCorpus(corpus, recipe), bisect_right(days, days[len(days) // 2])
    earlier, rest = np.arange(half), np.arange(half, len(documents))
    features = counts.fit(recipe.make_features(), earlier)
    examples, labels = counts.examples(features, earlier), counts.labels[earlier].tocsc()
    learner = recipe.make_learner(n_jobs=1)
    learner.fit(examples.rows, examples.labels, left_out=examples.left_out)
    scores = held_out_scores(examples, learner, assign_folds(labels, recipe.tags.folds, seed=0))
    decisions = decisions_by_scores(recipe, corpus.topics, scores, labels)
    curves, later = decisions.curves(), learner.decision_function(counts.held_out_rows(features, rest))
    held_out = HeldOut.fit(scores, labels, curves)
    bins = bins_of(later * curves.a + curves.b)
    months = np.array([day[:7] for day in days[half:]])
    return Later(held_out, decisions.decide(later), bins, counts.labels[rest].toarray() > 0, months)


def _counted(bins: np.ndarray) -> np.ndarray:
    return np.stack([np.bincount(column, minlength=N_BINS) for column in bins.T])


def _judged_of(bins: np.ndarray, labels: np.ndarray) -> list[np.ndarray]:
    """Return the judged documents of a period that have each topic, and those that lack it, by bin."""
    return [
        np.stack([np.bincount(b[y == has], minlength=N_BINS) for b, y in zip(bins.T, labels.T, strict=True)])
        for has in (True, False)
    ]


def _natural(later: Later, seed: int) -> Periods:
    """Count the documents of each later month; `seed` is that of the judged sample."""
    chance = np.random.default_rng(seed)
    months = [month for month in np.unique(later.months) if (later.months == month).sum() >= LEAST_DOCUMENTS]
    of_months = [later.months == month for month in months]
    counts = np.stack([_counted(later.bins[rows]) for rows in of_months])
    tagged, true = (
        np.stack([of_all[rows].mean(axis=0) for rows in of_months]) for of_all in (later.tagged, later.labels)
    )
    samples = [chance.choice(np.flatnonzero(rows), min(AUDIT, rows.sum()), replace=False) for rows in of_months]
    judged = [_judged_of(later.bins[rows], later.labels[rows]) for rows in samples]
    topics = later.held_out.positives.sum(axis=1) >= LEAST_HELD_OUT
    return Periods(counts, tagged, true, topics, Judged(*map(np.stack, zip(*judged, strict=True))))


def _simulated(later: Later, least: int) -> Periods:
    """Draw later documents of each topic, and others, so that the prevalence differs by a factor of 2 to 5."""
    chance, positives = np.random.default_rng(0), later.labels.sum(axis=0)
    topics = (later.held_out.positives.sum(axis=1) >= LEAST_HELD_OUT) & (positives >= LEAST_OF_TOPIC)
    n_periods = -(-least // int(topics.sum()))
    counts = np.zeros((n_periods, len(topics), N_BINS), int)
    counts[:, :, 0] = DOCUMENTS
    tagged, true = np.zeros((2, n_periods, len(topics)))
    judged = Judged(*np.zeros((2, *counts.shape), int))
    for period, topic in np.ndindex(true.shape):
        if topics[topic]:
            factor = np.exp(chance.choice([-1, 1]) * chance.uniform(*np.log([2, 5])))
            wanted = min(0.9, factor * positives[topic] / len(later.labels))
            n = chance.binomial(DOCUMENTS, wanted)
            of_classes = (np.flatnonzero(later.labels[:, topic] == has) for has in (True, False))
            drawn = np.concatenate(
                [chance.choice(rows, k) for rows, k in zip(of_classes, (n, DOCUMENTS - n), strict=True)]
            )
            counts[period, topic] = np.bincount(later.bins[drawn, topic], minlength=N_BINS)
            tagged[period, topic], true[period, topic] = later.tagged[drawn, topic].mean(), n / DOCUMENTS
            sample, column = chance.choice(drawn, AUDIT, replace=False), slice(topic, topic + 1)
            of_classes = _judged_of(later.bins[sample, column], later.labels[sample, column])
            judged.having[period, column], judged.lacking[period, column] = of_classes
    return Periods(counts, tagged, true, topics, judged)


def _row(corpus: str, shift: str, periods: Periods, held_out: HeldOut) -> Row:
    counts, tagged, true, topics, _ = periods
    documents = counts[:, :1].sum(axis=-1)
    estimates = {"tags": tagged} | {name: estimate(counts, held_out) for name, estimate in ESTIMATORS.items()}
    estimates["prior"] = np.broadcast_to(held_out.prior, true.shape)
    judged = (true * documents >= LEAST_OF_TOPIC) & topics
    errors = {name: (np.abs(values - true)[judged] / true[judged]).mean() for name, values in estimates.items()}
    low, high = intervals(counts, held_out, estimates["adaptive"], np.arange(true.shape[1]))
    inside = ((low <= true) & (true <= high))[:, topics]
    rare = true[:, topics] < 0.003
    of_sample = 2 * NORMAL * np.sqrt(np.maximum(true, 1 / AUDIT) / AUDIT)
    return {
        "corpus": corpus,
        "shift": shift,
        **{name: f"{error:.3f}" for name, error in errors.items()},
        "adaptive / summed": f"{errors['adaptive'] / errors['summed']:.2f}",
        "topics and periods": f"{inside.size:,}",
        "intervals that contain the truth": f"{inside.mean():.3f}",
        "the same, below .3 %": f"{inside[rare].mean():.3f}" if rare.any() else "",
        "median width / that of 300 documents": f"{np.median(((high - low) / of_sample)[:, topics]):.2f}",
    }


def _judged_row(corpus: str, shift: str, drawn: Sequence[Periods], held_out: HeldOut) -> Row:
    errors: dict[str, list[float]] = {}
    inside, rare, widths = [], [], []
    for counts, _, true, topics, judged in drawn:
        documents, n = counts[:, :1].sum(axis=-1), np.maximum((judged.having + judged.lacking).sum(axis=-1), 1)
        name, seeds = likeliest_estimator(counts, judged, held_out), np.arange(true.shape[1])
        alone = judged.having.sum(axis=-1) / n
        summed = ESTIMATORS["summed"](counts, held_out)
        by_scores = ((judged.having + judged.lacking) * held_out.probabilities).sum(axis=-1) / n
        together, low, high = sampled_prevalences(counts, judged, held_out, ESTIMATORS[name](counts, held_out), seeds)
        counted = (true * documents >= LEAST_OF_TOPIC) & topics
        estimates = {"summed": summed, "sample alone": alone, "prediction-powered": summed + alone - by_scores}
        for title, values in (estimates | {"with the sample": together}).items():
            errors.setdefault(title, []).append((np.abs(values - true)[counted] / true[counted]).mean())
        inside.append(((low <= true + _ROUNDING) & (true <= high + _ROUNDING))[:, topics])
        rare.append(true[:, topics] < 0.003)
        widths.append(((high - low) / (2 * NORMAL * np.sqrt(np.maximum(true, 1 / AUDIT) / AUDIT)))[:, topics])
    means = {title: np.mean(values) for title, values in errors.items()}
    contained = np.array(inside)
    return {
        "corpus": corpus,
        "shift": shift,
        **{title: f"{error:.3f}" for title, error in means.items()},
        "with the sample / summed": f"{means['with the sample'] / means['summed']:.2f}",
        "intervals that contain the truth": f"{contained.mean():.3f}",
        "the same, below .3 %": f"{contained[np.array(rare)].mean():.3f}" if np.any(rare) else "",
        "median width / that of the sample alone": f"{np.median(widths):.2f}",
    }
