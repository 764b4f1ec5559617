"""Recipes with a shortlist → trials: each is trained on a part of the training documents, and judged by others."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from textcat.documents import Corpus
from textcat.errors import TextcatError
from textcat.evaluation.ranking import _bands
from textcat.evaluation.top import KS, TopEvaluation, evaluate_top
from textcat.features.tokens import Tokens
from textcat.progress import Advance
from textcat.recipe import Recipe
from textcat.training.examples import _CountedCorpus
from textcat.training.selection import _SPARSITY, Trial, _nanmean
from textcat.training.train import _hold_out, _Part, _train_without

_MEASURES = (("ndcg", 10), ("precision", 1), ("recall", 10), ("psp", 5))
_MOST_TRAINED = 100_000  # documents: a study trains once for each recipe


def _measure_held_out(
    corpus: Corpus,
    recipes: Iterable[Recipe],
    *,
    seed: int = 0,
    n_jobs: int | None = None,
    advance: Advance = lambda count: None,
) -> Iterator[Trial]:
    """Measure recipes with a shortlist on a sample of the training documents, trained on others.

    The seed draws both: a tenth to measure on, 5,000 at most, and of the others 100,000 at most, so that neither time
    nor memory grow further with the corpus. No text of another document is looked at. Topics that have all their
    documents elsewhere count, and are found by their descriptions or not at all. The first topics of each document
    are measured, however few there are.
    """
    sample, part = _sample(corpus, seed)
    if not sample.labels([sample.train[i] for i in part.held_out]).nnz:
        raise TextcatError(
            f"None of the {len(part.held_out):,} training documents of corpus {corpus.name} that are held out has a "
            "topic: draw others with --seed, or give it more documents that have one."
        )
    tokens: dict[str, Tokens] = {}  # their cache serves all recipes that make terms in the same way
    counts: _CountedCorpus | None = None
    for recipe in recipes:
        if counts is None or not counts.serves(recipe):
            key = json.dumps(recipe.tokens, sort_keys=True)
            tokens[key] = tokens.get(key) or recipe.make_tokens()
            counts = _CountedCorpus(sample, recipe, tokens[key])
        yield _trial(counts, recipe, part, n_jobs, advance)


def _sample(corpus: Corpus, seed: int) -> tuple[Corpus, _Part]:
    """Return a corpus of the documents to train and to measure on, and where they are in it."""
    part = _hold_out(corpus, seed, _MOST_TRAINED)
    chosen = np.sort(np.concatenate(part))
    sample = replace(corpus, train=[corpus.train[i] for i in chosen.tolist()], test=[], unused=[])
    return sample, _Part(*(np.searchsorted(chosen, positions) for positions in part))


def _trial(counts: _CountedCorpus, recipe: Recipe, part: _Part, n_jobs: int | None, advance: Advance) -> Trial:
    tagger, rows = _train_without(counts, recipe, part, n_jobs=n_jobs, advance=advance)
    top = (tagger._first(scores, max(KS)) for scores in tagger._row_scores(rows))
    known = tagger.topics, tagger.train_sizes, tagger.train_documents
    measured = evaluate_top(top, counts.labels[part.held_out], *known)
    support = np.asarray(tagger.facts["support"], float)
    bands = _bands(tagger.topics, tagger.train_sizes, [row.band for row in measured.bands])
    sparsity = {band.name: _nanmean(support[list(band.topics)]) for band in bands}
    on = f"{len(part.held_out):,} training documents held out, trained on {len(part.trained):,} others"
    return Trial(recipe, {**_figures(measured), _SPARSITY: sparsity}, on)


def _figures(measured: TopEvaluation) -> dict[str, dict[str, float]]:
    """Return measures by name, such as ``ndcg@10``, of each band; nan where no document has its topics."""
    # numpy makes nan of None
    of_bands = {(name, k): np.array([getattr(row, name)[k] for row in measured.bands], float) for name, k in _MEASURES}
    names = [row.band for row in measured.bands]
    return {f"{name}@{k}": dict(zip(names, values.tolist(), strict=True)) for (name, k), values in of_bands.items()}
