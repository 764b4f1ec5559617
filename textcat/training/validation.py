"""A corpus without a test part → an evaluation by cross-validation: each document is scored by what others taught."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from textcat.evaluation.ranking import DEFAULT_BANDS, Evaluation, evaluate
from textcat.progress import Advance, Stages
from textcat.training.examples import learn
from textcat.training.selection import folds

if TYPE_CHECKING:
    from textcat.documents import Corpus
    from textcat.model.tagger import Tagger
    from textcat.recipe import Recipe

N_FOLDS = 5


def cross_evaluate(
    tagger: Tagger,
    corpus: Corpus,
    recipe: Recipe,
    *,
    bands: str | Iterable[str] | None = None,
    n_folds: int = N_FOLDS,
    seed: int = 0,
    n_jobs: int | None = None,
    store: str | os.PathLike[str] | None = None,
    stages: Stages | None = None,
) -> Evaluation:
    """Measure how well a recipe ranks a corpus' training documents, by rankers that were not trained on them.

    The documents of all folds are ranked together. A topic of one document counts only if descriptions are learnt from:
    without it there is nothing to learn the topic from.

    Parameters
    ----------
    tagger : Tagger
        Trained on the corpus by the recipe. Its thresholds are those that F1 is measured at; if they were chosen by
        cross-validation, that was on the same documents, and a fresh document is decided on a little worse.
    corpus : Corpus
        Only its training documents are looked at.
    recipe : Recipe
    bands, stages
        As in `Tagger.evaluate`.
    n_folds : int
        At most one per document.
    seed : int
        Of the split into folds.
    n_jobs : int, optional
        The result is the same to the bit.
    store : path, optional
        Keep rows beside this folder for the time being, in place of memory.

    Raises
    ------
    TextcatError
        If a band cannot be understood.
    """
    labels = corpus.labels(corpus.train)
    of = folds(labels, min(n_folds, len(corpus.train)), seed)
    scores = np.zeros(labels.shape, np.float32)
    with (stages or Stages()).stage("cross-validate", n_folds * len(corpus.topics)) as advance:
        for fold in range(of.max() + 1):
            with _beside(store) as place:
                scores[of == fold] = _held_out_scores(corpus, recipe, labels, of == fold, n_jobs, place, advance)
    known = np.asarray(labels.sum(axis=0)).ravel() >= (1 if recipe.descriptions else 2)
    return evaluate(
        scores,
        labels @ sparse.diags_array(known, dtype=labels.dtype),
        tagger.topics,
        tagger.train_sizes,
        tagger.train_documents,
        spec=bands or DEFAULT_BANDS,
        threshold=tagger.thresholds,
        facts=tagger.facts,
    )


@contextmanager
def _beside(store: str | os.PathLike[str] | None) -> Iterator[Path | None]:
    """Give a folder for rows, which is removed with them; None where they are to be in memory."""
    if store is None:
        yield None
        return
    with tempfile.TemporaryDirectory(dir=Path(store).parent) as folder:
        yield Path(folder, "rows")


def _held_out_scores(
    corpus: Corpus,
    recipe: Recipe,
    labels: sparse.csc_matrix,
    held_out: np.ndarray,
    n_jobs: int | None,
    store: Path | None,
    advance: Advance,
) -> np.ndarray:
    """Train on the other documents, features and all, and score the held-out ones."""
    trained = [document for document, out in zip(corpus.train, held_out, strict=True) if not out]
    tested = [document for document, out in zip(corpus.train, held_out, strict=True) if out]
    features, learner = recipe.make_features(), recipe.make_learner(n_jobs=n_jobs)
    examples = (
        learn(corpus, trained, features, labels[~held_out], recipe.descriptions, store=store) if trained else None
    )
    if examples is None or not examples.rows.shape[1]:
        return np.zeros((len(tested), labels.shape[1]), np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # whoever trained the tagger has been told
        learner.fit(examples.rows, examples.labels, progress=advance, left_out=examples.left_out)
    return np.asarray(learner.decision_function(features.transform(tested)))
