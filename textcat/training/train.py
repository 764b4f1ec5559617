"""Train a tagger on a corpus or a table by a recipe."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import Any

from textcat.base.progress import Stages
from textcat.corpus.catalogue import corpus_of
from textcat.corpus.documents import Corpus
from textcat.model.tagger import Tagger
from textcat.recipes.recipe import Recipe, default_recipe, read_recipe
from textcat.training.checks import TrainingOptions, are_single
from textcat.training.plan import check_memory
from textcat.training.steps import train_and_score

_log = logging.getLogger(__name__)


def train(
    corpus: Any,
    recipe: Recipe | str | os.PathLike[str] | None = None,
    *,
    text: str | Sequence[str] | None = None,
    topics: str | Sequence[str] = "topics",
    topics_separator: str = "",
    single: bool = False,
    n_jobs: int | None = None,
    rows_dir: str | os.PathLike[str] | None = None,
    keep_support: str | None = None,
    updatable: bool = False,
    stages: Stages | None = None,
) -> Tagger:
    """Train a tagger on the training documents of a corpus, or on the rows of a table.

    Parameters
    ----------
    corpus : Corpus, DataFrame, iterable of dict, str or Path
        The documents: a corpus, a table of pandas or polars, records, or the name or the path of a corpus.
    recipe : Recipe, str or path, optional
        A recipe, its name or its path. The default depends on the corpus: `many-topics` for 1,000 topics or more,
        `short-texts` for texts of less than 300 characters on average, otherwise `default`; with fewer than 5,000
        training documents, `few-short-texts` in place of `short-texts` and `few-documents` in place of `default`.
    text : str or sequence of str, optional
        The columns of a table, or the fields of records, that hold the text, in order; no others are read as text. If
        several are given, "title" becomes the title zone, and the others are joined to the body. By default, the text
        is in "text", or else in "body", with an optional "title".
    topics : str or sequence of str
        The column that holds each document's topic or list of topics; or several columns, one per topic, that hold 1
        where a document has the topic and 0 elsewhere.
    topics_separator : str
        The separator of topics in one string, such as ";"; ``""``: the string is one topic.
    single : bool, default=False
        True: each document gets exactly one topic, as with the setting ``tags.strategy=single``. False: the recipe
        decides.
    n_jobs : int, optional
        Blocks of topics trained at the same time; None: 1, -1: one per core. The result is the same to the bit.
    rows_dir : path, optional
        Folder to keep document vectors (rows) in, instead of in memory. The result is the same to the bit.
    keep_support : {"none", "ids", "texts"}, optional
        What the tagger keeps of support documents (the training documents that its weights are sums of) for
        explanations: "ids", their ids, titles and rows; "texts", also their texts. The default is "ids" for up to
        20,000 training documents without a shortlist and `rows_dir`, otherwise "none". A shortlist needs "none".
    updatable : bool, default=False
        Keep the counts of the terms of all documents, which `textcat.learn` needs.
    stages : Stages, optional
        Object that times the work and draws progress bars.

    Returns
    -------
    Tagger

    Raises
    ------
    TextcatError
        If the corpus has no topic, a column is missing, a row lacks its text or its topics, the recipe cannot be
        followed, or training would not fit into memory.
    """
    corpus = corpus_of(corpus, text=text, topics=topics, topics_separator=topics_separator)
    chosen = recipe_for(corpus, recipe, single=single)
    options = TrainingOptions(n_jobs, rows_dir, keep_support, updatable)
    check_memory(corpus, chosen, options)
    return train_and_score(corpus, chosen, options, stages=stages).tagger


def recipe_for(corpus: Corpus, recipe: Recipe | str | os.PathLike[str] | None, *, single: bool) -> Recipe:
    """Return the recipe to train with on a corpus, as for `train`; log a hint if `single` would suit the corpus."""
    if not isinstance(recipe, Recipe):
        recipe = default_recipe() if recipe is None else read_recipe(recipe)
    chosen, _ = (recipe.with_settings("tags.strategy=single") if single else recipe).for_corpus(corpus)
    if are_single(corpus) and chosen.tags.strategy != "single":
        _log.warning("Every training document has exactly one topic: with single=True, so has every tagged one.")
    return chosen
