"""A corpus and a recipe → a tagger, and an evaluation: on test documents, or on those of training, held out."""

from __future__ import annotations

import os
import re
import tempfile
import warnings
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from textcat.documents import Corpus, Document, topic_counts
from textcat.errors import TextcatError
from textcat.evaluation.at_k import MANY_TOPICS
from textcat.evaluation.bands import choose_bands
from textcat.evaluation.evaluation import MeasuredOn
from textcat.evaluation.thresholds import Calibration, choose_thresholds
from textcat.features._rows import release_memory
from textcat.features.store import check_target
from textcat.margin.problems import Solution, in_rows, side_by_side
from textcat.margin.solve import solve
from textcat.model.kept import kept_examples, title_of, what_to_keep
from textcat.model.known import Known, without_texts
from textcat.model.measure import has_many_topics, measure_scores, measure_test_documents, score_rows
from textcat.model.tagger import Tagger, csr_weights
from textcat.progress import Advance, Stages
from textcat.recipe import Recipe, default_recipe
from textcat.training.examples import CountedCorpus, Examples
from textcat.training.selection import assign_folds, held_out_scores

_N_FOLDS = 5
# So many documents are held out as a sample at most, and one of so many.
_N_HELD_OUT, _ONE_OF = 5_000, 10
# Weights of many topics are kept without their zeros if that takes this share of the memory at most: see
# docs/learners.md.
_SMALL_SHARE = 0.25
_N_NAMED = 5  # topics that a sentence names
_N_KEPT = 20_000  # training documents that a model keeps without being asked to
# Languages written without spaces, by their scripts; where there is kana, Chinese characters are Japanese.
_UNSPACED = {
    "ja": re.compile("[\u3040-\u30ff\u3400-\u9fff]{5,}"),
    "th": re.compile("[\u0e00-\u0e7f]{5,}"),
    "zh": re.compile("[\u3400-\u9fff]{5,}"),
}
_KANA = re.compile("[\u3040-\u30ff]")
_NAME_IT = "Name their language, as with --lang {code} (in a recipe: lang = {code!r} in [tokens])"
SCRIPT_SAMPLE = 500  # documents by which the script of a corpus is found


def train(
    corpus: Corpus,
    recipe: Recipe | None = None,
    *,
    n_jobs: int | None = None,
    store: str | os.PathLike[str] | None = None,
    keep: str | None = None,
    stages: Stages | None = None,
) -> Tagger:
    """Train a tagger on the training documents of a corpus.

    Parameters
    ----------
    corpus : Corpus
    recipe : Recipe, optional
        By default that of the command line: `short` for texts of less than 300 characters on average, `subjects` from
        1,000 topics on, otherwise `best`.
    n_jobs : int, optional
        Blocks of topics trained at the same time; None: 1, -1: one per core. The result is the same to the bit.
    store : path, optional
        Folder to keep rows in, instead of in memory. The result is the same to the bit.
    keep : {"none", "documents", "texts", "counts", "documents,counts", "texts,counts"}, optional
        What the tagger keeps of the training documents that its weights are sums of, to explain topics by:
        "documents", their ids, titles and rows; "texts", their texts, too. The default is "documents" for up to 20,000
        training documents, if there is neither a shortlist nor a store, and otherwise "none"; with a shortlist neither
        can be kept. "counts" also keeps the counts of the terms of all documents, which `textcat.learn` needs.
    stages : Stages, optional
        Times the work, and draws its progress.

    Returns
    -------
    Tagger

    Raises
    ------
    TextcatError
        If the corpus has no topic, or the recipe cannot be followed.
    """
    if recipe is None:
        recipe, _ = default_recipe().for_corpus(corpus)
    return train_and_measure(corpus, recipe, n_jobs=n_jobs, store=store, keep=keep, stages=stages)[0]


def warn_if_unsegmented(documents: Sequence[Document], recipe: Recipe, remedy: str = _NAME_IT) -> None:
    """Warn of a language that is written without spaces where the recipe's language takes whole sentences for words."""
    if (lang := recipe.tokens.get("lang", "en")) in _UNSPACED:
        return
    texts = [text for document in documents for text in document.zones.values()]
    n_characters = sum(len(part) for text in texts for part in text.split())
    runs = {code: [run for text in texts for run in script.findall(text)] for code, script in _UNSPACED.items()}
    if any(map(_KANA.search, runs["ja"])):
        runs["zh"] = []
    share, code = max((sum(map(len, runs[code])) / max(n_characters, 1), code) for code in ("zh", "th", "ja"))
    if share > 0.2:
        warnings.warn(
            f"{share:.0%} of the characters of the documents stand in runs without spaces, as Chinese, Japanese and "
            f"Thai are written; with the language {lang!r} each run is one term. {remedy.format(code=code)}.",
            stacklevel=3,
        )


def train_and_evaluate(
    corpus: Corpus,
    recipe: Recipe,
    *,
    bands: str | Iterable[str] | None = None,
    n_jobs: int | None = None,
    store: str | os.PathLike[str] | None = None,
    keep: str | None = None,
    stages: Stages | None = None,
    keep_texts: bool = True,
    counted: CountedCorpus | None = None,
) -> Tagger:
    """Train a tagger, and measure it on test documents, or if none has a topic of the tagger, on those of training.

    That is by cross-validation, or for a recipe with a shortlist on a sample that a first tagger is trained without.

    In cross-validation each training document is scored by rankers that were not trained on it, and those of all folds
    are ranked together. A topic of one document counts only if descriptions are examples: else nothing is left to learn
    it from. The thresholds that F1 is measured at are the tagger's, trained on the corpus by the recipe; if they were
    chosen by cross-validation, that was on the same documents, and a fresh document is decided on a little worse.

    Without `keep_texts`, the zones of the documents are emptied once their terms are counted, so that the texts of a
    large corpus, which nothing reads any more, take no memory. What was `counted` is the corpus' own, and is cleared.
    """
    choose_bands(corpus.topics, [0] * len(corpus.topics), bands)  # one that cannot be understood is refused now
    n_folds = 0 if corpus.labels(corpus.test).nnz else _N_FOLDS
    stages = stages or Stages()
    options: dict[str, Any] = {"n_jobs": n_jobs, "store": store, "stages": stages, "counted": counted, "bands": bands}
    tagger, measured = train_and_measure(corpus, recipe, n_folds=n_folds, keep=keep, keep_texts=keep_texts, **options)
    if tagger.known is not None:
        spec = None if bands is None else [bands] if isinstance(bands, str) else [*bands]
        tagger.known = replace(tagger.known, bands=spec, is_measured=True)
    if measured is None:
        tagger.evaluation = tagger.evaluate(corpus, bands=bands, stages=stages)
    elif not n_folds:
        with stages.stage("evaluate", len(corpus.test) if has_many_topics(tagger) else None) as advance:
            scores = score_rows(tagger, measured, advance)
            tagger.evaluation = measure_test_documents(tagger, corpus, scores, bands=bands)
    elif recipe.shortlist:
        tagger.evaluation = measured
    else:
        relevant = _learnt_out_of_fold(corpus.labels(corpus.train), recipe)
        on: dict[str, Any] = {"measured_on": MeasuredOn.CROSS_VALIDATION, "unjudged": corpus.unjudged(corpus.train)}
        tagger.evaluation = measure_scores(tagger, measured, relevant, bands=bands, **on)
    return tagger


def train_and_measure(
    corpus: Corpus,
    recipe: Recipe,
    *,
    n_folds: int = 0,
    bands: str | Iterable[str] | None = None,
    n_jobs: int | None,
    store: str | os.PathLike[str] | None,
    stages: Stages | None,
    keep: str | None = None,
    keep_texts: bool = True,
    counted: CountedCorpus | None = None,
) -> tuple[Tagger, Any]:
    """Train a tagger, and return it with what it is measured by, if there is something.

    That is the scores of its documents by cross-validation, if folds are asked for, or with a shortlist the evaluation
    of a sample; or else the rows of test documents, if they were counted. Folds and sample come first: then neither
    what documents were counted to nor the rows of a fold lie beside the tagger's own.
    """
    if not corpus.topics:
        if in_training := topic_counts(corpus.train):
            raise TextcatError(
                f"No topic of corpus {corpus.name} has documents in both parts (in training, for example, "
                f"{min(in_training)!r}): look at how it is split, or take all topics of the training part."
            )
        raise TextcatError(f"Corpus {corpus.name} has no topic with a training document, so there is nothing to learn.")
    if store is not None:
        check_target(store)
    keep, learns_on = _kept(corpus, recipe, keep, store)
    # Now, as there may be no texts later on.
    named, without = _named(corpus, recipe, keep), without_texts(corpus, keep) if learns_on else None
    warn_if_unsegmented(corpus.sample_train(SCRIPT_SAMPLE), recipe)
    stages = stages or Stages()
    release_memory()
    features, learner, tags = recipe.make_features(), recipe.make_learner(n_jobs=n_jobs), recipe.make_tags()
    try:
        if counted is None or not counted.serves(recipe) or (learns_on and counted.kept is None):
            with stages.stage("tokens to rows", len(corpus.train)) as advance:
                options: dict[str, Any] = {"keep_texts": keep_texts, "keep": learns_on}
                counted = CountedCorpus(corpus, recipe, advance=advance, **options)
        elif not keep_texts:
            for document in (*corpus.train, *corpus.test):
                document.zones.clear()
        if recipe.shortlist and counted.unjudged is not None:
            raise TextcatError(
                f"Recipe {recipe.name} has a shortlist, which takes each document for one that was judged for all "
                "topics, and some documents have topics that they were not judged for: take another recipe."
            )
        if counted.tokens is not None:
            features.set_params(tokens=counted.tokens)
        known = None if without is None or counted.kept is None else Known(without, counted.kept, keep)
        measured: Any = None
        release_memory()
        if n_folds and recipe.shortlist:
            part = hold_out_sample(corpus, seed=0)
            with stages.stage("held-out sample", len(corpus.topics)) as advance:
                first, new = train_without(counted, recipe, part, n_jobs=n_jobs, store=store, advance=advance)
                relevant = counted.labels[part.held_out]
                scores = score_rows(first, new)
                measured = measure_scores(first, scores, relevant, bands=bands, measured_on=MeasuredOn.SAMPLE)
                del first, new, scores
        elif n_folds:
            with stages.stage("cross-validate", n_folds * len(corpus.topics)) as advance:
                measured = _out_of_fold_scores(counted, recipe, n_folds, n_jobs=n_jobs, store=store, advance=advance)
        n_rows = len(corpus.train) + recipe.descriptions * len(corpus.topics)
        with stages.stage("tokens to rows", None if store is None else n_rows) as advance:
            shortlisted = recipe.shortlist > 0
            counted.fit(features)
            examples = counted.examples(features, store=store, left_out=not shortlisted, advance=advance)
            labels, described = counted.labels, counted.descriptions(features) if shortlisted else None
            if not n_folds:
                measured = counted.test_rows(features)
            counted.clear()
        _check_terms(examples, recipe, len(corpus.train))
        release_memory()
        of_corpus: dict[str, Any] = {
            "topics": corpus.topics,
            "train_sizes": np.asarray(labels.sum(axis=0)).ravel().astype(int),
            "train_documents": len(corpus.train),
            "recipe": recipe.as_dict(),
            "corpus": corpus.name,
            "origin": corpus.origin,
            "known": known,
        }
        if described is not None:
            with stages.stage("train topics", len(corpus.topics)) as advance:
                parts = _train_listed(examples, described, recipe, len(corpus.train), n_jobs, advance)
            return Tagger(features=features, **parts, **of_corpus), measured
        with stages.stage("train topics", len(corpus.topics)) as advance:
            learner.fit(examples.rows, examples.labels, progress=advance, left_out=examples.left_out, pack=True)
    except (TypeError, ValueError) as error:
        if isinstance(error, TextcatError):
            raise
        raise TextcatError(f"Recipe {recipe.name} cannot be followed: {error}") from error
    solved = zip(corpus.topics, learner.solutions_, strict=True)
    if broken := [topic for topic, solution in solved if not np.isfinite(solution.weights.values).all()]:
        raise TextcatError(
            f"Recipe {recipe.name} cannot be followed: the weights of {', '.join(broken)} overflowed; "
            "lower eta or the margins."
        )
    thresholds, calibration = np.zeros(len(corpus.topics), np.float32), None
    if tags.strategy != "zero" and len(corpus.train) >= tags.folds:
        release_memory()
        with stages.stage("thresholds", tags.folds * len(corpus.topics)) as advance:
            fold_of = assign_folds(labels, tags.folds, seed=0)
            scores = held_out_scores(examples, learner, fold_of, progress=advance)
            thresholds, calibration = choose_thresholds(tags.strategy, scores, labels, tags.probability)
            del scores
    n_features = examples.rows.shape[1]
    units = _units(learner.solutions_, learner.intercept_.dtype)
    kept = kept_examples(examples.rows, learner.solutions_, units, named) if named else None
    del examples, named
    release_memory()
    weights = _weights(learner.solutions_, n_features, units)
    tagger = Tagger(
        features=features,
        weights=weights,
        bias=learner.intercept_ / units,
        thresholds=thresholds,
        calibration=calibration,
        facts=learner.facts(),
        kept=kept,
        **of_corpus,
    )
    return tagger, measured


def _kept(corpus: Corpus, recipe: Recipe, keep: str | None, store: str | os.PathLike[str] | None) -> tuple[str, bool]:
    """Return what is kept of training documents to explain by, and whether counts are kept to learn on by."""
    keep, learns_on = what_to_keep(keep)
    if keep is None:  # what would make a model much larger is kept only for those who ask for it
        few = len(corpus.train) <= _N_KEPT
        keep = "documents" if few and store is None and not recipe.shortlist else "none"
    if recipe.shortlist and keep != "none":
        raise TextcatError(
            f"Recipe {recipe.name} has a shortlist, whose topics are trained on documents of their own: "
            f"no training documents can be kept with it, so keep 'none', not {keep!r}."
        )
    return keep, learns_on


def _named(corpus: Corpus, recipe: Recipe, keep: str) -> list[tuple[str, str, dict[str, str] | None]]:
    """Return the id and title of each example, and its texts if these are to be kept; nothing if nothing is."""
    if keep == "none":
        return []
    examples = [*corpus.train, *(corpus.described() * recipe.descriptions if recipe.descriptions else ())]
    texts = keep == "texts"
    return [(each.id, title_of(each, texts), dict(each.zones) if texts else None) for each in examples]


class HoldOut(NamedTuple):
    """Documents to train on, and others that are held out: their positions, ascending."""

    trained: np.ndarray
    held_out: np.ndarray


def hold_out_sample(corpus: Corpus, seed: int, most: int | None = None) -> HoldOut:
    """Draw the training documents that are held out, and those to train on: the others, or so many of them at most."""
    n = len(corpus.train)
    n_held_out = min(_N_HELD_OUT, n // _ONE_OF)
    if not n_held_out:
        raise TextcatError(
            f"Corpus {corpus.name} has {n} training documents, too few to hold one of {_ONE_OF} out, by which a recipe "
            "with a shortlist is measured: give it more of them, or take a recipe without a shortlist."
        )
    drawn = np.random.default_rng(seed).permutation(n)
    stop = None if most is None else n_held_out + most
    return HoldOut(np.sort(drawn[n_held_out:stop]), np.sort(drawn[:n_held_out]))


def train_without(
    counts: CountedCorpus,
    recipe: Recipe,
    part: HoldOut,
    *,
    n_jobs: int | None,
    store: str | os.PathLike[str] | None = None,
    advance: Advance = lambda n: None,
) -> tuple[Tagger, sparse.csr_matrix]:
    """Train a tagger with a shortlist on a part of the documents; return it, and its rows of those held out.

    Rows are kept beside the folder `store`, until they are not needed any more, or in memory.
    """
    features, n_documents = counts.fit(recipe.make_features(), part.trained), len(part.trained)
    with nullcontext() if store is None else tempfile.TemporaryDirectory(dir=Path(store).parent) as folder:
        examples = counts.examples(features, part.trained, store=folder and Path(folder, "rows"), left_out=False)
        _check_terms(examples, recipe, n_documents)
        parts = _train_listed(examples, counts.descriptions(features), recipe, n_documents, n_jobs, advance)
        del examples
        release_memory()
    tagger = Tagger(
        features=features,
        **parts,
        topics=counts.corpus.topics,
        train_sizes=counts.labels[part.trained].sum(axis=0).A1.astype(int),
        train_documents=n_documents,
        recipe=recipe.as_dict(),
    )
    return tagger, counts.rows_of_counts(features, part.held_out)


def _check_terms(examples: Examples, recipe: Recipe, n_documents: int) -> None:
    if not examples.rows.shape[1]:
        raise TextcatError(
            f"Recipe {recipe.name} leaves no term of the {n_documents} training documents: "
            "look at its zones, min_df and language."
        )


def _train_listed(
    examples: Examples,
    described: sparse.csr_matrix,
    recipe: Recipe,
    n_documents: int,
    n_jobs: int | None,
    advance: Advance,
) -> dict[str, Any]:
    """Train topics on the documents that they are listed for; return what a tagger is made of."""
    from textcat.training.shortlist import train_shortlist

    options: dict[str, Any] = {
        "size": recipe.shortlist,
        "n_documents": n_documents,
        "n_jobs": n_jobs,
        "progress": advance,
    }
    trained = train_shortlist(examples.rows, examples.labels, described, recipe.make_learner(), **options)
    tags, calibration = recipe.make_tags(), trained.calibration
    probability = tags.probability if tags.strategy == "probability" else 0.5
    return {
        "weights": trained.weights,
        "bias": trained.bias,
        "thresholds": calibration.threshold(probability).astype(np.float32),
        "calibration": calibration,
        "facts": trained.facts,
        "shortlist": trained.shortlist,
    }


def _weights(solutions: Sequence[Solution], n_features: int, units: np.ndarray) -> Any:
    """Return packed weights, divided by the units of their scores, in the form that a tagger of so many topics has."""
    scaled = (units != 1).any()
    if not are_sparse(solutions, n_features):
        weights = side_by_side(solutions, n_features)
        if scaled:
            weights /= units
        return weights
    indptr, indices, data = in_rows(solutions, n_features)
    if scaled:
        data /= units[indices]
    return csr_weights(indptr, indices, data, len(solutions))


def are_sparse(solutions: Sequence[Solution], n_features: int) -> bool:
    """Return whether weights are kept without their zeros: where there are many topics, and that is far smaller."""
    n_entries = sum(len(solution.weights.values) for solution in solutions)
    itemsize = solutions[0].weights.dtype.itemsize
    n_bytes = n_entries * (itemsize + 4) + 8 * n_features
    return len(solutions) >= MANY_TOPICS and n_bytes <= _SMALL_SHARE * n_features * len(solutions) * itemsize


def unevaluated_topics(corpus: Corpus) -> str:
    """Return a sentence on the topics of the training part that no test document has; empty if there are none."""
    in_training, tested = topic_counts(corpus.train), topic_counts(corpus.test)
    topics = sorted(set(in_training) - set(tested))
    if not topics or not corpus.test:
        return ""
    named = ", ".join(topics[:_N_NAMED]) + (f" and {len(topics) - _N_NAMED} more" if len(topics) > _N_NAMED else "")
    trained = "trained but not" if set(topics) <= set(corpus.topics) else "neither trained nor"
    topic, have, are = ("topic", "has", "is") if len(topics) == 1 else ("topics", "have", "are")
    return (
        f"{len(topics)} {topic} of the training part {have} no test document, and {are} {trained} evaluated: {named}."
    )


def _units(solutions: Sequence[Solution], dtype: np.dtype) -> np.ndarray:
    """Return what the scores of each topic are divided by, so that those of folds and of the model share a scale."""
    return np.array([solution.unit for solution in solutions], dtype)


def _learnt_out_of_fold(labels: sparse.csc_matrix, recipe: Recipe) -> sparse.csc_matrix:
    """Return labels without those of topics that cross-validation has nothing to learn from: of a single document."""
    known = np.asarray(labels.sum(axis=0)).ravel() >= (1 if recipe.descriptions else 2)
    return labels @ sparse.diags_array(known, dtype=labels.dtype)


def cross_validated(
    tagger: Tagger, corpus: Corpus, n_folds: int, *, n_jobs: int | None, stages: Stages
) -> tuple[np.ndarray, Calibration, sparse.csc_matrix] | None:
    """Score the documents that a tagger was trained on by rankers of its recipe that were not; also curves and labels.

    None if the recipe is not known or has a shortlist, or there is but one document.
    """
    recipe = Recipe("report", **tagger.recipe) if tagger.recipe else None
    if recipe is None or recipe.shortlist or len(corpus.train) < 2:
        return None
    with stages.stage("cross-validate", n_folds * len(corpus.topics)) as advance:
        counted = CountedCorpus(corpus, recipe)
        scores = _out_of_fold_scores(counted, recipe, n_folds, n_jobs=n_jobs, advance=advance)
        labels = _learnt_out_of_fold(counted.labels, recipe)
        return scores, Calibration.fit_scores(scores, labels), labels


def _out_of_fold_scores(
    counts: CountedCorpus,
    recipe: Recipe,
    n_folds: int,
    *,
    n_jobs: int | None,
    store: str | os.PathLike[str] | None = None,
    advance: Advance = lambda n: None,
) -> np.ndarray:
    """Score every training document by a recipe's rankers that were not trained on it, as the tagger would score it.

    There are at most as many folds as documents; rows are kept beside the folder `store`, until they are not needed any
    more, or in memory. Of a topic's weights nothing is kept but the scores by them.
    """
    labels = counts.labels
    fold_of = assign_folds(labels, min(n_folds, labels.shape[0]), seed=0)
    scores = np.zeros(labels.shape, np.float32)
    for number in range(fold_of.max() + 1):
        trained, held_out = np.flatnonzero(fold_of != number), np.flatnonzero(fold_of == number)
        if not len(trained):
            continue
        features = counts.fit(recipe.make_features(), trained)
        with nullcontext() if store is None else tempfile.TemporaryDirectory(dir=Path(store).parent) as folder:
            rows, positives, left_out = counts.examples(features, trained, store=folder and Path(folder, "rows"))
            if not rows.shape[1]:
                continue
            new = counts.rows_of_counts(features, held_out)
            del features  # one fold's at a time in memory, as are rows
            learner = recipe.make_learner(n_jobs=n_jobs)
            problems = learner.topic_problems(rows, positives, left_out)
            running: dict[str, Any] = {"n_jobs": n_jobs, "seed": learner.random_state, "progress": advance}
            solutions = solve(rows, problems, keep=new.dot, overwrite_X=True, **running)
            sums = np.column_stack([solution.weights + solution.bias for solution in solutions])
            scores[held_out] = sums / _units(solutions, sums.dtype)
            del rows, new, solutions, sums
            release_memory()
    return scores
