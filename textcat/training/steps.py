"""The steps of training a tagger by a recipe, and of its evaluation on test or on held-out training documents."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from textcat.base.errors import TextcatError
from textcat.base.folds import assign_folds, first_of_groups, groups_of, labels_of_groups
from textcat.base.progress import Advance, Stages
from textcat.corpus.documents import Corpus
from textcat.evaluation.bands import MANY_TOPICS, choose_bands
from textcat.evaluation.evaluation import Evaluation, MeasuredOn
from textcat.features.rows import Rows, release_memory
from textcat.features.tfidf import TfIdf
from textcat.features.vector_files import named_vectors
from textcat.features.vectors import ColumnVectors, WordVectors
from textcat.margin.learners import MarginClassifier
from textcat.margin.problems import Solution, in_rows, side_by_side
from textcat.model.csr import csr_weights
from textcat.model.decisions import Decisions
from textcat.model.dense import Dense
from textcat.model.facts import TrainingFacts
from textcat.model.measure import (
    evaluate_tagger,
    expected_topics,
    has_many_topics,
    measure_scores,
    measure_test_documents,
    score_rows,
)
from textcat.model.scorer import Scorer
from textcat.model.sparse import Sparse
from textcat.model.support import kept_texts, support_documents, without_texts
from textcat.model.tagger import Tagger
from textcat.model.training_counts import TrainingCounts
from textcat.recipes.recipe import FEW_DOCUMENTS, Recipe
from textcat.training.aging import measure_aging
from textcat.training.checks import OPTIONS, TrainingOptions, check_training, warn_of_corpus
from textcat.training.cross_validation import (
    HoldOut,
    cross_validated_scores,
    folder_beside,
    hold_out_sample,
    labels_out_of_fold,
    score_units,
)
from textcat.training.examples import CountedCorpus, Examples
from textcat.training.few_choices import choose_for_few
from textcat.training.forecast import forecast_growth
from textcat.training.row_choice import choose_rows
from textcat.training.thresholds import decisions_by_scores, held_out_scores, promise_scores

_N_FOLDS = 5
# Weights of many topics are sparse if they then take at most this share of the memory: see docs/reference/learners.md.
SPARSE_SHARE = 0.25


def train_and_evaluate(
    corpus: Corpus,
    recipe: Recipe,
    options: TrainingOptions = OPTIONS,
    *,
    bands: str | Iterable[str] | None = None,
    stages: Stages | None = None,
    keep_texts: bool = True,
    counted: CountedCorpus | None = None,
) -> Tagger:
    """Train a tagger, and evaluate it on test documents; if none has a topic, on training documents.

    Training documents are scored out of fold, by rankers that were not trained on the document. The documents of all
    folds are ranked together. A topic with a single document is measured only if descriptions are examples, as
    otherwise there is nothing left to learn the topic from. F1 is measured at the tagger's thresholds; if these were
    chosen by cross-validation on the same documents, F1 is slightly optimistic. A recipe with a shortlist is measured
    on a held-out sample instead, by a first tagger that is trained without this sample.

    Without `keep_texts`, the zones of the documents are emptied once their terms are counted, to save memory. `counted`
    has the term counts of this corpus, if they exist already; training clears them. `bands` names the sets of topics to
    average over, as for `textcat.evaluate`.
    """
    choose_bands(corpus.topics, [0] * len(corpus.topics), bands)  # check the bands now, before training
    n_folds = 0 if corpus.labels(corpus.test).nnz else _N_FOLDS
    stages = stages or Stages()
    if not n_folds:
        _ = corpus.twins  # read now, because texts may be gone later
    trained = train_and_score(
        corpus,
        recipe,
        options,
        n_folds=n_folds,
        bands=bands,
        stages=stages,
        keep_texts=keep_texts,
        counted=counted,
    )
    if (counts := trained.tagger.training_counts) is not None:
        spec = None if bands is None else [bands] if isinstance(bands, str) else [*bands]
        counts = replace(counts, bands=spec, is_measured=True)
    evaluation = evaluation_of(trained, corpus, recipe, bands, stages)
    return replace(trained.tagger, training_counts=counts, evaluation=evaluation)


def evaluation_of(
    trained: Trained,
    corpus: Corpus,
    recipe: Recipe,
    bands: str | Iterable[str] | None,
    stages: Stages,
) -> Evaluation:
    """Return the evaluation of a tagger: on a held-out sample, by cross-validation, or on the test documents.

    The test documents are used only if `trained` has no held-out results.
    """
    tagger = trained.tagger
    if trained.sample_evaluation is not None:
        return trained.sample_evaluation
    if trained.scores_out_of_fold is not None:
        relevant = labels_out_of_fold(corpus.labels(corpus.train), recipe, corpus.groups)
        return measure_out_of_fold(tagger, corpus, trained.scores_out_of_fold, relevant, bands)
    if trained.test_rows is None:
        return evaluate_tagger(tagger, corpus, bands=bands, stages=stages)
    with stages.stage("evaluate", len(corpus.test) if has_many_topics(tagger) else None) as advance:
        scores = score_rows(tagger, trained.test_rows, advance)
        has_terms = Rows.of(trained.test_rows).has_terms
        return measure_test_documents(tagger, expected_topics(tagger, corpus), scores, has_terms, bands=bands)


def measure_out_of_fold(
    tagger: Tagger, corpus: Corpus, scores: np.ndarray, relevant: sparse.csc_matrix, bands: str | Iterable[str] | None
) -> Evaluation:
    """Measure a tagger by the out-of-fold scores of training documents.

    Of documents that repeat each other, the first counts, with the topics of all.
    """
    unjudged, groups = corpus.unjudged(corpus.train), corpus.groups
    on: dict[str, Any] = {"measured_on": MeasuredOn.CROSS_VALIDATION}
    on["unjudged"] = None if unjudged is None else first_of_groups(unjudged, groups)
    of_groups = first_of_groups(scores, groups), labels_of_groups(relevant, groups)
    return measure_scores(tagger, *of_groups, bands=bands, **on)


class Trained(NamedTuple):
    """A tagger, with what its evaluation needs: out-of-fold scores, a sample's evaluation, or test documents' vectors.

    At most one of the three is set; the others are None.
    """

    tagger: Tagger
    scores_out_of_fold: np.ndarray | None  # of training documents, out of fold
    sample_evaluation: Evaluation | None  # with a shortlist: of a first tagger that was trained without the sample
    test_rows: sparse.csr_matrix | None  # rows of the test documents, if these were counted


def train_and_score(
    corpus: Corpus,
    recipe: Recipe,
    options: TrainingOptions,
    *,
    n_folds: int = 0,
    bands: str | Iterable[str] | None = None,
    stages: Stages | None,
    keep_texts: bool = True,
    counted: CountedCorpus | None = None,
) -> Trained:
    """Train a tagger; return it with the test documents' vectors or, if `n_folds` is not 0, held-out results.

    The held-out results are scores by cross-validation or, with a shortlist, the evaluation on a held-out sample. They
    are computed before the tagger is trained, so that document vectors of both are not in memory at the same time.
    """
    keep = check_training(corpus, recipe, options)
    # Read now, because texts may be gone later, and before the warnings, which find repeats by the same sketches.
    sketches = corpus.sketches if options.updatable else None
    warn_of_corpus(corpus, recipe)
    texts = None if keep == "none" else kept_texts(corpus.train, keep)
    kept = without_texts(corpus, keep) if options.updatable else None
    release_memory()
    training = _Training(corpus, recipe, replace(options, keep_support=keep), stages or Stages())
    counted = training.counted(counted, keep_texts=keep_texts)
    training, counted, choices = training.with_choices(counted)
    training_counts = None
    if kept is not None and sketches is not None and counted.document_counts is not None:
        training_counts = TrainingCounts(kept, counted.document_counts, sketches, keep)
    release_memory()
    scores, evaluation = None, None
    if n_folds and recipe.topics.shortlist:
        evaluation = training.sample_evaluation(counted, bands)
    elif n_folds:
        scores = training.scores_out_of_fold(counted, n_folds)
    deciding = None  # approximated while the tagger is trained
    if training.cross_validates:
        n = recipe.tags.folds
        deciding = scores if n == n_folds else training.scores_out_of_fold(counted, n)
    tagger, test_rows = training.tagger(counted, texts, deciding, with_test_rows=not n_folds)
    tagger = replace(tagger, training_counts=training_counts, facts=replace(tagger.facts, choices=choices))
    return Trained(tagger, scores, evaluation, test_rows)


@dataclass(frozen=True)
class _Training:
    """The steps of training a tagger on a corpus."""

    corpus: Corpus
    recipe: Recipe
    options: TrainingOptions
    stages: Stages

    def counted(self, counted: CountedCorpus | None, *, keep_texts: bool) -> CountedCorpus:
        """Return the given term counts of the corpus if they fit the recipe; otherwise count the terms.

        Without `keep_texts`, the texts of counted documents are deleted from the corpus. Raise TextcatError if the
        recipe has a shortlist, but some documents are not judged for all topics.
        """
        corpus, recipe, updatable = self.corpus, self.recipe, self.options.updatable
        if counted is None or not counted.serves(recipe) or (updatable and counted.document_counts is None):
            with self.stages.stage("tokens to rows", len(corpus.train)) as advance:
                counted = CountedCorpus(corpus, recipe, None, advance, keep_texts=keep_texts, updatable=updatable)
        elif not keep_texts:
            for document in (*corpus.train, *corpus.test):
                document.zones.clear()
        if recipe.topics.shortlist and counted.unjudged is not None:
            raise TextcatError(
                f"Recipe {recipe.name} has a shortlist, which takes each document for one that was judged for all "
                "topics, and some documents have topics that they were not judged for: take another recipe."
            )
        return counted

    def with_choices(self, counted: CountedCorpus) -> tuple[_Training, CountedCorpus, dict[str, Any]]:
        """Choose settings by the corpus, and measure its growth and aging, as far as the recipe asks for that.

        Return the training with the chosen recipe, the counts with the n-grams of characters that were chosen, and the
        entries of `TrainingFacts.choices`.
        """
        recipe, topics, choices = self.recipe, self.recipe.topics, dict[str, Any]()
        if topics.chooses_chars:
            with self.stages.stage("choose rows"):
                choice = choose_rows(counted, recipe)
            recipe, choices["rows"] = choice.recipe, choice.facts()
        elif topics.chooses_for_few:
            with self.stages.stage("choose settings"):
                recipe, counted, choices = choose_for_few(counted, recipe, self.options.n_jobs)
        if topics.forecasts:
            with self.stages.stage("forecast"):
                forecast = forecast_growth(counted, recipe, self.options.n_jobs)
            choices |= {} if forecast is None else {"forecast": forecast.facts()}
        if topics.measures_aging:
            with self.stages.stage("aging"):
                aging = measure_aging(counted, recipe, self.options.n_jobs)
            choices |= {} if aging is None else {"aging": aging}
        return replace(self, recipe=recipe), counted, choices

    def sample_evaluation(self, counted: CountedCorpus, bands: str | Iterable[str] | None) -> Evaluation:
        """Train a tagger on all training documents but a sample, and return its evaluation on the sample.

        For recipes with a shortlist, which score only the topics nearest to a document.
        """
        sample = hold_out_sample(self.corpus, seed=0)
        with self.stages.stage("held-out sample", len(self.corpus.topics)) as advance:
            n_jobs, rows_dir = self.options.n_jobs, self.options.rows_dir
            tagger, rows = train_without(
                counted, self.recipe, sample, n_jobs=n_jobs, rows_dir=rows_dir, advance=advance
            )
            scores, relevant = score_rows(tagger, rows), counted.labels[sample.held_out]
            return measure_scores(tagger, scores, relevant, bands=bands, measured_on=MeasuredOn.SAMPLE)

    @property
    def n_deciding_folds(self) -> int:
        """The number of folds by whose held-out scores thresholds and probabilities are fitted; 0: there are none."""
        tags, groups = self.recipe.tags, self.corpus.groups
        n_folds = min(tags.folds, len(first_of_groups(groups, groups)))
        return 0 if tags.strategy == "zero" or len(groups) < tags.folds or n_folds < 2 else n_folds

    @property
    def cross_validates(self) -> bool:
        """Whether thresholds and probabilities are fitted to out-of-fold scores, not to approximations of these."""
        recipe = self.recipe
        if not recipe.tags.cross_validate or recipe.topics.shortlist:
            return False
        # A new topic may be judged for its own documents only: their out-of-fold scores hardly differ.
        return self.n_deciding_folds > 0 and self.corpus.unjudged(self.corpus.train) is None

    def scores_out_of_fold(self, counted: CountedCorpus, n_folds: int) -> np.ndarray:
        """Return the out-of-fold scores of training documents: shape (n_documents, n_topics)."""
        n_jobs, rows_dir = self.options.n_jobs, self.options.rows_dir
        with self.stages.stage("cross-validate", n_folds * len(self.corpus.topics)) as advance:
            return cross_validated_scores(
                counted, self.recipe, n_folds, n_jobs=n_jobs, rows_dir=rows_dir, advance=advance
            )

    def tagger(
        self,
        counted: CountedCorpus,
        texts: list[dict[str, str]] | None,
        out_of_fold: np.ndarray | None,
        *,
        with_test_rows: bool,
    ) -> tuple[Tagger, sparse.csr_matrix | None]:
        """Train the tagger, and clear `counted`; return the tagger and the test documents' vectors.

        Thresholds and probabilities are fitted to the scores `out_of_fold`; None: to approximations of these.

        `texts` has what the tagger keeps of each training document; None: it keeps no support documents.
        The vectors are None unless `with_test_rows` is set and the test documents were counted.
        """
        corpus, recipe, n_documents = self.corpus, self.recipe, len(self.corpus.train)
        rows_dir, n_jobs = self.options.rows_dir, self.options.n_jobs
        features, labels = recipe.make_features(), counted.labels
        if counted.tokens is not None:
            features.set_params(tokens=counted.tokens)
        n_rows = n_documents + recipe.topics.description_copies * len(corpus.topics)
        with self.stages.stage("tokens to rows", None if rows_dir is None else n_rows) as advance:
            counted.fit(features)
            left_out = not recipe.topics.shortlist
            examples = counted.examples(features, rows_dir=rows_dir, left_out=left_out, advance=advance)
            described = counted.descriptions(features) if recipe.topics.shortlist else None
            vectors = counted.column_vectors(features)
            test_rows = counted.test_rows(features) if with_test_rows else None
            _check_terms(counted, examples, recipe, n_documents)
            counted.clear()
        release_memory()
        # Named by checksum, so that a later update of the model uses the same vectors.
        words = _vectors_of_names(recipe) if recipe.topics.shortlist else counted.vectors
        pinned = {} if words is None else {"topics": {"vectors": words.name}}
        facts = TrainingFacts(
            np.asarray(labels.sum(axis=0)).ravel().astype(int),
            n_documents,
            recipe=recipe.complete().with_values(pinned),
            corpus=corpus.name,
            origin=corpus.origin,
            train_dates=corpus.train_dates,
        )
        names = {topic: names[0] for topic, names in corpus.names.items()}
        tagger_of = partial(
            Tagger,
            features,
            topics=corpus.topics,
            topic_names=names,
            names_language=corpus.names_language,
            broader=corpus.broader,
        )
        if described is not None:
            with self.stages.stage("train topics", len(corpus.topics)) as advance:
                options = recipe, corpus.groups, n_jobs, advance
                scorer, decisions, trained = _train_with_shortlist(examples, described, features, *options)
            return tagger_of(scorer, decisions, facts=replace(facts, **trained)), test_rows
        learner = self._fitted(examples)
        decisions = self._decisions(examples, learner, labels, features, out_of_fold)
        n_features, units = examples.rows.shape[1], score_units(learner.solutions_, learner.intercept_.dtype)
        support = None
        if texts is not None:
            descriptions = corpus.described() * recipe.topics.description_copies
            ids = [document.id for document in (*corpus.train, *descriptions)]
            texts = [*texts, *(document.zones for document in descriptions)]
            parts = examples.rows, learner.solutions_, units, ids, texts, vectors
            support = support_documents(*parts, with_texts=self.options.keep_support == "texts")
        del examples
        release_memory()
        scorer = _scorer(learner.solutions_, n_features, units, learner.intercept_ / units, vectors)
        facts = replace(facts, per_topic=learner.facts(), converged=learner.converged_)
        return tagger_of(scorer, decisions, facts=facts, support=support), test_rows

    def _fitted(self, examples: Examples) -> MarginClassifier:
        """Train the recipe's learner; raise TextcatError if weights overflow."""
        recipe, topics = self.recipe, self.corpus.topics
        learner = recipe.make_learner(n_jobs=self.options.n_jobs)
        with self.stages.stage("train topics", len(topics)) as advance:
            learner.fit_packed(examples.rows, examples.labels, progress=advance, left_out=examples.left_out)
        solved = zip(topics, learner.solutions_, strict=True)
        if broken := [topic for topic, solution in solved if not np.isfinite(solution.weights.values).all()]:
            raise TextcatError(
                f"Recipe {recipe.name} cannot be followed: the weights of {', '.join(broken)} overflowed; "
                "lower eta or the margins."
            )
        return learner

    def _decisions(
        self,
        examples: Examples,
        learner: MarginClassifier,
        labels: sparse.csc_matrix,
        features: TfIdf,
        scores: np.ndarray | None,
    ) -> Decisions:
        """Return thresholds, calibration curves and promises of topics, by out-of-fold scores.

        If `scores` is None, they are approximated. Of training documents that repeat each other, the first counts,
        with the topics of all, because the others are no further evidence.

        If the recipe has the strategy "zero", or there are too few documents, thresholds are 0, without curves.
        """
        n_topics, n_folds, groups = len(self.corpus.topics), self.n_deciding_folds, self.corpus.groups
        if not n_folds:
            return Decisions(np.zeros(n_topics, np.float32), strategy=self.recipe.tags.strategy)
        release_memory()
        with self.stages.stage("thresholds", n_folds * n_topics) as advance:
            fold_of, promised = assign_folds(labels, n_folds, 0, groups), None
            if self.recipe.promise.is_asked:
                promised = promise_scores(examples, learner, fold_of, features, groups=groups, progress=advance)
            if scores is None and promised is not None and len(fold_of) >= FEW_DOCUMENTS:
                scores, promised = promised, None  # for both; with fewer documents, they are too low for probabilities
            if scores is None:
                scores = held_out_scores(examples, learner, fold_of, groups=groups, progress=advance)
            both = [scores] if promised is None else [scores, promised]
            if any(np.isinf(held_out).any() or np.isnan(held_out).all(axis=0).any() for held_out in both):
                raise TextcatError(
                    f"Recipe {self.recipe.name} cannot be followed: scores of training documents overflowed; choose "
                    "less extreme parameters of the learner."
                )
            of_groups = first_of_groups(scores, groups), labels_of_groups(labels, groups)
            promised = None if promised is None else first_of_groups(promised, groups)
            return decisions_by_scores(self.recipe, self.corpus.topics, *of_groups, promised)


def train_without(
    counts: CountedCorpus,
    recipe: Recipe,
    sample: HoldOut,
    *,
    n_jobs: int | None,
    rows_dir: str | os.PathLike[str] | None = None,
    advance: Advance = lambda n: None,
) -> tuple[Tagger, sparse.csr_matrix]:
    """Train a tagger with a shortlist (it scores only a document's nearest topics) without the held-out documents.

    Return the tagger, and the vectors of the held-out documents.

    `sample` has the positions of the held-out documents. The vectors of the others are kept in memory or, if `rows_dir`
    is given, in a temporary folder next to it.
    """
    features, n_documents = counts.fit(recipe.make_features(), sample.trained), len(sample.trained)
    with folder_beside(rows_dir) as folder:
        examples = counts.examples(features, sample.trained, rows_dir=folder, left_out=False)
        _check_terms(counts, examples, recipe, n_documents)
        described = counts.descriptions(features)
        options = recipe, groups_of(sample.trained, counts.corpus.groups), n_jobs, advance
        scorer, decisions, trained = _train_with_shortlist(examples, described, features, *options)
        del examples
        release_memory()
    sizes = counts.labels[sample.trained].sum(axis=0).A1.astype(int)
    facts = TrainingFacts(sizes, n_documents, recipe=recipe.complete(), **trained)
    tagger = Tagger(features, scorer, decisions, topics=counts.corpus.topics, facts=facts)
    return tagger, counts.held_out_rows(features, sample.held_out)


def _check_terms(counts: CountedCorpus, examples: Examples, recipe: Recipe, n_documents: int) -> None:
    if not examples.rows.shape[1]:
        if not counts.n_terms().any():
            raise TextcatError(
                f"None of the {n_documents} training documents has a word: their texts are empty, or in other zones "
                f"than recipe {recipe.name} reads; give the texts, or name the fields or columns that hold them."
            )
        raise TextcatError(
            f"Recipe {recipe.name} leaves no term of the {n_documents} training documents: "
            "look at its zones, min_df and language."
        )


def _train_with_shortlist(
    examples: Examples,
    described: sparse.csr_matrix,
    features: TfIdf,
    recipe: Recipe,
    groups: np.ndarray,
    n_jobs: int | None,
    advance: Advance,
) -> tuple[Scorer, Decisions, dict[str, Any]]:
    """Train each topic on the documents whose shortlist has it; return scorer, decisions, and facts about topics.

    A shortlist has the topics whose centroids are nearest to a document. `described` has the vectors of the topics'
    descriptions. The first examples are documents, whose groups are `groups`; the others are descriptions.
    """
    from textcat.training.related import relate_topics
    from textcat.training.shortlist import train_shortlist

    options: dict[str, Any] = {"size": recipe.topics.shortlist, "groups": groups, "n_jobs": n_jobs}
    learner, tags, arrays = recipe.make_learner(), recipe.tags, (examples.rows, examples.labels, described)
    known = {"terms": features.listed_names(), "vectors": _vectors_of_names(recipe)}
    trained = train_shortlist(*arrays, learner, **(options | known), progress=advance)
    if best := recipe.topics.related:
        release_memory()
        trained = relate_topics(trained, *arrays, learner, best=best, **options)
    probability = tags.probability if tags.strategy == "probability" else 0.5
    thresholds = trained.calibration.threshold(probability).astype(np.float32)
    decisions = Decisions(thresholds, trained.calibration, tags.strategy)
    return trained.scorer, decisions, {"per_topic": trained.facts, "converged": trained.converged}


def _vectors_of_names(recipe: Recipe) -> WordVectors | None:
    """Return the word vectors that a recipe with a shortlist uses to find similar words; None if it uses none."""
    return None if recipe.topics.vectors == "none" else named_vectors(recipe.topics.vectors)


def _scorer(
    solutions: Sequence[Solution], n_features: int, units: np.ndarray, bias: np.ndarray, vectors: ColumnVectors | None
) -> Scorer:
    """Return a scorer with the weights of the solutions, each divided by the unit of its scores.

    With many topics, weights are kept without their zeros if that saves memory. `units` has one number per solution.
    With `vectors`, the last of the `n_features` columns are dimensions of word vectors; their weights are converted to
    weights of words.
    """
    if vectors is not None or not are_sparse(solutions, n_features):
        weights = side_by_side(solutions, n_features)
        if (units != 1).any():
            weights /= units
        return Dense(weights if vectors is None else vectors.in_words(weights), bias)
    indptr, indices, data = in_rows(solutions, n_features)
    if (units != 1).any():
        data /= units[indices]
    return Sparse(csr_weights(indptr, indices, data, len(solutions)), bias)


def are_sparse(solutions: Sequence[Solution], n_features: int) -> bool:
    """Return whether to keep the weights of the solutions as a sparse array.

    They are sparse if there are at least `MANY_TOPICS` topics and this saves much memory.
    """
    n_entries = sum(len(solution.weights.values) for solution in solutions)
    itemsize = solutions[0].weights.dtype.itemsize
    n_bytes = n_entries * (itemsize + 4) + 8 * n_features
    return len(solutions) >= MANY_TOPICS and n_bytes <= SPARSE_SHARE * n_features * len(solutions) * itemsize
