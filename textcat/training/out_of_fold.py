"""Cross-validate a recipe on documents: each is scored by rankers that were trained without it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from textcat.base.errors import TextcatError
from textcat.base.frames import Frame
from textcat.base.progress import Stages
from textcat.base.settings import check_whole_number
from textcat.corpus.catalogue import corpus_of
from textcat.corpus.documents import Corpus
from textcat.evaluation.bands import choose_bands
from textcat.evaluation.evaluation import Evaluation
from textcat.evaluation.significance import add_intervals
from textcat.recipes.recipe import Recipe
from textcat.training.checks import TrainingOptions
from textcat.training.steps import evaluation_of, train_and_score
from textcat.training.train import recipe_for


class CrossValidation(NamedTuple):
    """The measures of a cross-validation, and the out-of-fold scores that they were computed from."""

    evaluation: Evaluation
    #: Out-of-fold scores: one row per document, one column per topic.
    scores: Any

    def __repr__(self) -> str:
        return f"<CrossValidation: {self.evaluation!r}>"

    def _repr_html_(self) -> str:
        return self.evaluation._repr_html_()


def cross_validate(
    corpus: Any,
    recipe: Recipe | str | os.PathLike[str] | None = None,
    folds: int = 5,
    *,
    text: str | Sequence[str] | None = None,
    topics: str | Sequence[str] = "topics",
    topics_separator: str = "",
    single: bool = False,
    bands: str | Iterable[str] | None = None,
    bootstrap: int = 0,
    n_jobs: int | None = None,
    stages: Stages | None = None,
) -> CrossValidation:
    """Cross-validate a recipe on training documents: each is scored by rankers that were trained without its fold.

    The folds are stratified: the documents of each topic are spread over as many folds as possible; the same documents
    give the same folds. The documents of all folds are ranked together. Vocabulary and document frequencies, too, are
    computed without the document's fold. If at least a fifth of the documents repeat earlier ones, those that repeat
    each other are in one fold, and only the first is measured. A topic with a single document is measured only if
    descriptions are examples. F1 is measured at the thresholds chosen by training on all documents; if they were chosen
    by cross-validation on the same documents, F1 is slightly optimistic. With five folds, the measures are those that
    `textcat train` prints for documents without a test part.

    Parameters
    ----------
    corpus, recipe, text, topics, topics_separator, single
        As for `textcat.train`. Test documents of a corpus are not used.
    folds : int >= 2, default=5
        Parts of the training documents, at most one for each document.
    bands : str or iterable of str, optional
        As `spec` in `textcat.evaluate_scores`.
    bootstrap : int, default=0
        Resamples of the documents for 95 % intervals, such as 1000; 0: no intervals.
    n_jobs, stages
        As for `textcat.train`.

    Returns
    -------
    CrossValidation
        With the attributes `evaluation` and `scores`. If the documents were a table, `scores` is a table of the same
        library, with the same index in pandas. Otherwise it is a DataFrame indexed by document ids or, without pandas,
        an ndarray of shape (n_documents, n_topics).

    Raises
    ------
    TextcatError
        As for `textcat.train`; or if there are more folds than documents, or the recipe has a shortlist, which is
        measured on test documents.
    """
    check_whole_number(folds, 2, "The number of folds")
    check_whole_number(bootstrap, 0, "The number of resamples")
    opened = corpus_of(corpus, text=text, topics=topics, topics_separator=topics_separator)
    opened = replace(opened, test=[], unused=[])
    recipe, n_documents = recipe_for(opened, recipe, single=single), len(np.unique(opened.groups))
    if folds > n_documents:
        raise TextcatError(
            f"{n_documents:,} different documents cannot be divided into {folds:,} folds: give at most as many."
        )
    if recipe.topics.shortlist:
        raise TextcatError(
            f"Recipe {recipe.name} has a shortlist, and is not cross-validated: measure it on test documents, which "
            "Corpus.split sets aside, or name another recipe."
        )
    choose_bands(opened.topics, [0] * len(opened.topics), bands)  # check the bands now, before training
    stages = stages or Stages()
    options = TrainingOptions(n_jobs, keep_support="none")
    trained = train_and_score(opened, recipe, options, n_folds=folds, stages=stages)
    evaluation = evaluation_of(trained, opened, recipe, bands, stages)
    if bootstrap:
        with stages.stage("intervals"):
            evaluation = add_intervals(evaluation, n_resamples=bootstrap)
    assert trained.scores_out_of_fold is not None
    return CrossValidation(evaluation, _table(corpus, opened, trained.scores_out_of_fold))


def _table(source: Any, corpus: Corpus, scores: np.ndarray) -> Any:
    """Return out-of-fold scores as a table of the source's library or of pandas; without pandas, as an array."""
    if (frame := Frame.of(source)) is not None:
        parts = (part for (part,) in frame.rows(["split"])) if "split" in frame.columns else ()
        left_out = {row for row, part in enumerate(parts) if part in ("test", "unused")}
        return frame.answer(scores, corpus.topics, [row for row in range(len(frame.data)) if row not in left_out])
    try:
        import pandas
    except ImportError:
        return scores
    return pandas.DataFrame(scores, index=[document.id for document in corpus.train], columns=[*corpus.topics])
