"""Train on unlabelled documents, too, by self-training (Yarowsky 1995), where this is better on held-out documents.

A first tagger is trained on the labelled documents. Each topic then takes those unlabelled documents of which it is the
best one by the largest lead, as many for each topic, and a second tagger is trained on both kinds of documents. Whether
it is better, its thresholds, and its figures come from labelled documents that neither tagger was trained on.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from textcat.base.errors import TextcatError
from textcat.base.folds import assign_folds
from textcat.base.progress import Stages
from textcat.corpus.documents import Corpus, Document
from textcat.evaluation.evaluation import MeasuredOn
from textcat.evaluation.thresholds import choose_thresholds
from textcat.model.decisions import Decisions
from textcat.model.measure import evaluate_tagger, measure_scores
from textcat.model.tagger import Tagger
from textcat.reading import named_in_training
from textcat.recipes.recipe import Recipe
from textcat.training.cross_validation import is_first_right
from textcat.training.names import surest, unlabelled_documents
from textcat.training.train import train_and_evaluate, train_and_score

_SHARE = 0.25  # of an even share of the unlabelled documents, which a topic takes at most
_FOLDS = 5
_SCORED, _MOST_REPEATS = 300, 3  # documents to score: of fewer, the folds are drawn again, but at most so often
_FEWEST = 10  # labelled documents


def train_with_unlabelled(
    corpus: Corpus,
    unlabelled: Any,
    recipe: Recipe,
    *,
    n_jobs: int | None = None,
    stages: Stages | None = None,
    **options: Any,
) -> Tagger:
    """Train a tagger on the labelled training documents of a corpus and, if that is better, on unlabelled ones.

    Parameters
    ----------
    corpus : Corpus
    unlabelled : Corpus, str or Path, DataFrame, or iterable of str, Document or dict
        As for `train_by_names`. Texts are in the columns or fields that were named for the corpus, if any were.
    recipe : Recipe
        As `Recipe.for_corpus` returns it.
    n_jobs : int, optional
        Blocks of topics trained at the same time; None: 1, -1: one per core. The result is the same to the bit.
    stages : Stages, optional
        Object that times the work and draws progress bars.
    **options
        Further ones of `train_and_evaluate`.

    Returns
    -------
    Tagger
        Measured on the test documents or, if there are none, by cross-validation, on labelled documents.
        ``facts.choices["unlabelled"]`` says by which figures unlabelled documents were used or not.

    Raises
    ------
    TextcatError
        As for `train` and `train_by_names`; or if there are fewer than ten labelled documents.
    """
    stages = stages or Stages()
    if len(corpus.train) < _FEWEST:
        raise TextcatError(
            f"{len(corpus.train)} labelled documents are too few to see if unlabelled ones help: label {_FEWEST}, or "
            "train by names alone, with a file of names in place of the corpus."
        )
    if len(corpus.topics) < 2:
        raise TextcatError(
            f"Corpus {corpus.name} has one topic, and unlabelled documents are taken for the topic that leads: leave "
            "them out, or label a second topic."
        )
    # Now, as an input that cannot be read is told before training.
    documents = unlabelled_documents(unlabelled, trained_on=named_in_training(corpus.origin))
    options |= {"n_jobs": n_jobs, "stages": stages}
    plain = train_and_evaluate(corpus, recipe, **options)
    chosen = replace(plain.facts.recipe, name=recipe.name)
    with stages.stage("held-out folds"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the corpus: the first training has told
        held_out = _HeldOut.of(corpus, documents, chosen, n_jobs)
    facts = {
        "chosen": "used" if held_out.with_unlabelled > held_out.without else "not used",
        "precision@1": {"with them": held_out.with_unlabelled, "without": held_out.without},
        "documents": len(documents),
    }
    choices = {**plain.facts.choices, "unlabelled": facts}
    if facts["chosen"] == "not used":
        return replace(plain, facts=replace(plain.facts, choices=choices))
    both = _both(corpus, plain, documents)
    scored = train_and_score(both, _as_chosen(chosen), **{k: v for k, v in options.items() if k != "bands"})
    labels, scores, tags = corpus.labels(corpus.train), held_out.scores, chosen.tags
    decisions = Decisions(*choose_thresholds(tags.strategy, scores, labels, tags.probability), tags.strategy)
    labelled: dict[str, Any] = {"train_sizes": plain.facts.train_sizes, "train_documents": plain.facts.train_documents}
    facts_of_both = replace(scored.tagger.facts, recipe=plain.facts.recipe, choices=choices, **labelled)
    tagger = replace(scored.tagger, decisions=decisions, facts=facts_of_both)
    if corpus.labels(corpus.test).nnz:
        evaluation = evaluate_tagger(tagger, corpus, bands=options.get("bands"), stages=stages)
    else:
        on: dict[str, Any] = {"measured_on": MeasuredOn.CROSS_VALIDATION, "unjudged": corpus.unjudged(corpus.train)}
        evaluation = measure_scores(tagger, scores, labels, bands=options.get("bands"), **on)
    return replace(tagger, evaluation=evaluation)


class _HeldOut(NamedTuple):
    """What taggers say of labelled documents that they were not trained on."""

    scores: np.ndarray  # of taggers trained on both kinds of documents: shape (n_documents, n_topics)
    with_unlabelled: float  # how often the topic of the highest score is right: by these taggers,
    without: float  # and by those trained on labelled documents only

    @classmethod
    def of(cls, corpus: Corpus, unlabelled: Sequence[Document], recipe: Recipe, n_jobs: int | None) -> _HeldOut:
        labels = corpus.labels(corpus.train)
        n_repeats = min(-(-_SCORED // len(corpus.train)), _MOST_REPEATS)
        right = np.zeros((2, 0))
        first_scores = np.zeros(labels.shape, np.float32)
        for repeat in range(n_repeats):
            scores = np.zeros((2, *labels.shape), np.float32)
            for held_out, rest in _rest_of_folds(corpus, repeat):
                documents = [corpus.train[i] for i in held_out]
                for number, tagger in enumerate(_taggers(rest, unlabelled, recipe, n_jobs)):
                    of_fold = np.asarray(tagger.scores(documents))
                    scores[number][held_out] = of_fold.min(axis=1, keepdims=True)  # topics that the fold cannot learn
                    scores[number][np.ix_(held_out, np.searchsorted(corpus.topics, tagger.topics))] = of_fold
            first_scores = scores[1] if repeat == 0 else first_scores
            has_topic = np.flatnonzero(labels.sum(axis=1))
            right = np.hstack([right, [is_first_right(labels.tocsr(), has_topic, of[has_topic]) for of in scores]])
        without, with_unlabelled = right.mean(axis=1)
        return cls(first_scores, float(with_unlabelled), float(without))


def _rest_of_folds(corpus: Corpus, seed: int) -> Iterator[tuple[np.ndarray, Corpus]]:
    """Yield the positions of held-out documents, and a corpus of the other labelled documents."""
    fold_of = assign_folds(corpus.labels(corpus.train), _FOLDS, seed)
    for fold in range(_FOLDS):
        rest = [document for document, of in zip(corpus.train, fold_of, strict=True) if of != fold]
        topics = tuple(sorted({topic for document in rest for topic in document.topics}.intersection(corpus.topics)))
        yield np.flatnonzero(fold_of == fold), replace(corpus, train=rest, test=[], topics=topics)


def _taggers(corpus: Corpus, unlabelled: Sequence[Document], recipe: Recipe, n_jobs: int | None) -> Iterator[Tagger]:
    """Yield a tagger trained on labelled documents, and one trained on unlabelled documents, too."""
    options: dict[str, Any] = {"n_jobs": n_jobs, "keep_support": "none"}
    yield (first := train_and_score(corpus, _as_chosen(recipe), **options).tagger)
    yield train_and_score(_both(corpus, first, unlabelled), _as_chosen(recipe), **options).tagger


def _as_chosen(recipe: Recipe) -> Recipe:
    """Return a recipe that chooses nothing more, and no thresholds."""
    return recipe.with_values({"topics": {"forecast": False}, "tags": {"strategy": "zero"}})


def _both(corpus: Corpus, tagger: Tagger, unlabelled: Sequence[Document]) -> Corpus:
    """Return a corpus of the labelled documents, and of the unlabelled ones that the topics of a tagger take."""
    if len(tagger.topics) < 2:
        return corpus
    scores = np.asarray(tagger.scores(unlabelled))
    taken = surest(scores - scores.mean(axis=0), _SHARE)
    labelled = [
        replace(unlabelled[i], id=f"unlabelled {unlabelled[i].id}", topics=(tagger.topics[taken[i].argmax()],))
        for i in np.flatnonzero(taken.any(axis=1)).tolist()
    ]
    return replace(corpus, train=[*corpus.train, *labelled])
