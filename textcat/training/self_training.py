"""Train on labelled and unlabelled documents by self-training (Yarowsky 1995), if this improves held-out accuracy.

A first tagger is trained on the labelled documents. Each topic then gets at most the same number of unlabelled
documents as pseudo-labelled examples: those in which it leads the other topics by most. A second tagger is trained on
both kinds of documents. Cross-validation on the labelled documents decides which tagger is better, and gives the
thresholds of the second one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csc_matrix, vstack

from textcat.base.errors import TextcatError
from textcat.base.folds import assign_folds, labels_of_groups
from textcat.base.progress import Stages
from textcat.corpus.documents import Corpus, Document
from textcat.model.measure import evaluate_tagger, score_rows
from textcat.model.tagger import Tagger
from textcat.reading import named_in_training
from textcat.recipes.recipe import Recipe
from textcat.training.checks import TrainingOptions
from textcat.training.cross_validation import HoldOut, is_first_right, judged_scores, scores_of_split
from textcat.training.examples import CountedCorpus
from textcat.training.names import surest, unlabelled_documents
from textcat.training.steps import measure_out_of_fold, train_and_evaluate, train_and_score, train_without
from textcat.training.thresholds import decisions_by_scores

# maximum number of pseudo-labelled documents per topic, as a share of an even division of the unlabelled documents
_SHARE = 0.25
_FOLDS = 5
# target number of scored documents: for small corpora, folds are drawn again, at most this many times
_SCORED, _MOST_REPEATS = 300, 3
_FEWEST = 10  # minimum number of labelled documents


def train_with_unlabelled(
    corpus: Corpus,
    unlabelled: Any,
    recipe: Recipe,
    *,
    bands: str | Iterable[str] | None = None,
    n_jobs: int | None = None,
    keep_support: str | None = None,
    stages: Stages | None = None,
) -> Tagger:
    """Train a tagger on the labelled documents of a corpus and, if that is better, on unlabelled documents as well.

    Parameters
    ----------
    corpus : Corpus
    unlabelled : Corpus, str or Path, DataFrame, or iterable of str, Document or dict
        As for `train_by_names`. Texts are read from the columns or fields that were named for the corpus, if any.
    recipe : Recipe
        The result of `Recipe.for_corpus`.
    bands : str or iterable of str, optional
        The sets of topics to average over, as `spec` in `textcat.evaluate_scores`.
    n_jobs, keep_support, stages
        As for `train`.

    Returns
    -------
    Tagger
        Evaluated on the labelled test documents or, if there are none, by cross-validation.
        ``facts.choices["unlabelled"]`` has the measures that decided whether unlabelled documents were used.

    Raises
    ------
    TextcatError
        As for `train` and `train_by_names`; or if fewer than ten documents have a topic, or the corpus has only one
        topic.
    """
    stages = stages or Stages()
    if (n := sum(bool(corpus.train[first].topics) for first in np.unique(corpus.groups).tolist())) < _FEWEST:
        raise TextcatError(
            f"{n} documents with a topic are too few to see if unlabelled ones help: label {_FEWEST}, or train by "
            "names alone, with a file of names in place of the corpus."
        )
    if len(corpus.topics) < 2:
        raise TextcatError(
            f"Corpus {corpus.name} has one topic, and unlabelled documents are taken for the topic that leads: leave "
            "them out, or label a second topic."
        )
    # Read now, so that an unreadable input is reported before training.
    documents = unlabelled_documents(unlabelled, trained_on=named_in_training(corpus.origin))
    options = TrainingOptions(n_jobs, keep_support=keep_support)
    plain = train_and_evaluate(corpus, recipe, options, bands=bands, stages=stages)
    chosen = replace(plain.facts.recipe, name=recipe.name)
    with stages.stage("held-out folds"):
        counted = LabelledAndUnlabelled.of(corpus, documents, chosen, n_jobs)
        held_out = _HeldOut.of(counted, corpus.groups)
    facts = {
        "chosen": "used" if held_out.with_unlabelled > held_out.without else "not used",
        "precision@1": {"with them": held_out.with_unlabelled, "without": held_out.without},
        "documents": len(documents),
    }
    choices = {**plain.facts.choices, "unlabelled": facts}
    if facts["chosen"] == "not used":
        return replace(plain, facts=replace(plain.facts, choices=choices))
    trained = np.arange(len(corpus.train))
    scores = counted.scores(trained, counted.unlabelled, counted.labels)
    both = _with_pseudo_labels(corpus, documents, counted.taken(scores, trained))
    as_chosen = chosen.with_values({"topics": {"forecast": False}, "tags": {"strategy": "zero"}})
    scored = train_and_score(both, as_chosen, options, stages=stages)
    labels, scores = corpus.labels(corpus.train), held_out.scores
    of_groups = judged_scores(corpus, scores), labels_of_groups(labels, corpus.groups)
    decisions = decisions_by_scores(chosen, corpus.topics, *of_groups)
    labelled: dict[str, Any] = {"train_sizes": plain.facts.train_sizes, "train_documents": plain.facts.train_documents}
    facts_of_both = replace(scored.tagger.facts, recipe=plain.facts.recipe, choices=choices, **labelled)
    tagger = replace(scored.tagger, decisions=decisions, facts=facts_of_both)
    if corpus.labels(corpus.test).nnz:
        evaluation = evaluate_tagger(tagger, corpus, bands=bands, stages=stages)
    else:
        evaluation = measure_out_of_fold(tagger, corpus, scores, labels, bands)
    return replace(tagger, evaluation=evaluation)


class LabelledAndUnlabelled(NamedTuple):
    """Counts of labelled, then of unlabelled documents; any of them can be trained on or scored."""

    counts: CountedCorpus
    labels: csc_matrix  # rows of unlabelled documents are empty
    n_labelled: int
    recipe: Recipe
    n_jobs: int | None

    @classmethod
    def of(
        cls, corpus: Corpus, unlabelled: Sequence[Document], recipe: Recipe, n_jobs: int | None
    ) -> LabelledAndUnlabelled:
        """Count the training documents of a corpus, and unlabelled documents."""
        counts = CountedCorpus(replace(corpus, train=[*corpus.train, *unlabelled], test=[]), recipe)
        return cls(counts, counts.labels, len(corpus.train), recipe, n_jobs)

    @property
    def unlabelled(self) -> np.ndarray:
        """Positions of the unlabelled documents."""
        return np.arange(self.n_labelled, self.labels.shape[0])

    def scores(self, trained: np.ndarray, scored: np.ndarray, labels: csc_matrix) -> np.ndarray:
        """Train rankers on some documents, and return their scores of others, shape (n_scored, n_topics).

        A topic that is not learnt, as it has neither a document among those trained on nor a description, gets each
        document's lowest score.
        """
        self.counts.labels, split = labels, HoldOut(trained, scored)
        if self.recipe.topics.shortlist:
            scores = np.asarray(score_rows(*train_without(self.counts, self.recipe, split, n_jobs=self.n_jobs)))
        else:
            scores = scores_of_split(self.counts, self.recipe, split, self.n_jobs)
        if not self.recipe.topics.description_copies:
            is_learnt = labels[trained].sum(axis=0).A1 > 0
            scores[:, ~is_learnt] = scores[:, is_learnt].min(axis=1, keepdims=True)
        return scores

    def taken(self, scores: np.ndarray, trained: np.ndarray) -> csc_matrix:
        """Return labels of all documents, with pseudo-labels: each topic gets the unlabelled ones where it leads most.

        `scores` are those of the unlabelled documents, by rankers trained on the documents `trained`. A topic without a
        document in `trained` gets none; if only one topic has documents there, it gets none either.
        """
        is_learnt = self.labels[trained].sum(axis=0).A1 > 0
        taken = surest(np.where(is_learnt, scores - scores.mean(axis=0), -np.inf), _SHARE)
        if is_learnt.sum() < 2:
            taken[:] = False
        return vstack([self.labels[: self.n_labelled], csc_matrix(taken, dtype=self.labels.dtype)], format="csc")


class _HeldOut(NamedTuple):
    """Held-out scores of labelled documents, and accuracies with and without unlabelled documents."""

    scores: np.ndarray  # by rankers trained on both kinds of documents: shape (n_documents, n_topics)
    with_unlabelled: float  # accuracy of the topic with the highest score: by these rankers,
    without: float  # and by rankers trained on labelled documents only

    @classmethod
    def of(cls, counted: LabelledAndUnlabelled, groups: np.ndarray) -> _HeldOut:
        n_labelled = counted.n_labelled
        labels = counted.labels[:n_labelled]
        has_topic = np.intersect1d(np.flatnonzero(labels.sum(axis=1)), groups)
        right, of_first_folds = np.zeros((2, 0)), np.zeros(0)
        for repeat in range(min(-(-_SCORED // n_labelled), _MOST_REPEATS)):
            scores = np.zeros((2, *labels.shape), np.float32)
            fold_of = assign_folds(labels, _FOLDS, repeat, groups)
            for fold in range(_FOLDS):
                rest, held_out = np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)
                both = counted.scores(rest, np.append(held_out, counted.unlabelled), counted.labels)
                scores[0][held_out], of_unlabelled = np.split(both, [len(held_out)])
                taken = counted.taken(of_unlabelled, rest)
                trained = np.append(rest, np.setdiff1d(taken.nonzero()[0], np.arange(n_labelled)))
                scores[1][held_out] = counted.scores(trained, held_out, taken)
            of_first_folds = scores[1] if repeat == 0 else of_first_folds
            right = np.hstack([right, [is_first_right(labels.tocsr(), has_topic, of[has_topic]) for of in scores]])
        without, with_unlabelled = right.mean(axis=1)
        return cls(of_first_folds, float(with_unlabelled), float(without))


def _with_pseudo_labels(corpus: Corpus, unlabelled: Sequence[Document], taken: csc_matrix) -> Corpus:
    """Return a corpus with pseudo-labelled documents added; `taken` has the labels of all documents."""
    documents, topics = taken[len(corpus.train) :].nonzero()
    labelled = [
        replace(unlabelled[i], id=f"unlabelled {unlabelled[i].id}", topics=(corpus.topics[topic],))
        for i, topic in zip(documents.tolist(), topics.tolist(), strict=True)
    ]
    return replace(corpus, train=[*corpus.train, *labelled])
