"""Models and documents with topics → how the models differ, on the topics that all of them have."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from textcat.base.errors import TextcatError
from textcat.base.progress import Stages
from textcat.evaluation.significance import Comparison, compare_evaluations
from textcat.model import storage
from textcat.model.evaluate import corpus_to_measure, with_test_documents
from textcat.model.measure import evaluate_tagger
from textcat.model.restrict import restrict_topics
from textcat.model.tagger import Tagger

_log = logging.getLogger(__name__)


def compare(
    models: Sequence[Tagger | str | Path],
    corpus: Any,
    *,
    text: str | Sequence[str] | None = None,
    topics: str | Sequence[str] = "topics",
    topics_separator: str = "",
    bands: str | Iterable[str] | None = None,
    n_resamples: int = 1000,
    seed: int = 0,
    stages: Stages | None = None,
) -> Comparison:
    """Compare the first of several models with each of the others on documents whose topics are known.

    All models are measured on the same documents, and on the topics that all of them have.

    Parameters
    ----------
    models : sequence of Tagger, str or Path
        Two or more taggers, or folders of taggers.
    corpus, text, topics, topics_separator, bands, stages
        As for `textcat.evaluate`; the documents are chosen as for the first model.
    n_resamples, seed : int, int
        As for `compare_evaluations`.

    Returns
    -------
    Comparison

    Raises
    ------
    TextcatError
        As for `textcat.evaluate`; or if fewer than two models are given, they share no topic, or the corpus has no test
        documents.
    """
    if isinstance(models, str | Path | Tagger) or len(models) < 2:
        raise TextcatError("One model cannot be compared: give a list of two or more.")
    taggers = shared_topics(models)
    columns: dict[str, Any] = {"text": text, "topics": topics, "topics_separator": topics_separator}
    documents = corpus_to_measure(taggers[0], corpus, **columns)
    evaluations = [
        evaluate_tagger(tagger, with_test_documents(tagger, documents), bands=bands, stages=stages)
        for tagger in taggers
    ]
    return compare_evaluations(evaluations, n_resamples=n_resamples, seed=seed)


def shared_topics(models: Sequence[Tagger | str | Path]) -> list[Tagger]:
    """Load models, and return taggers of the topics that all of them have; log a warning if topics are left out.

    The taggers have equal sizes of topics, those of the first, so that they have the same bands. Raise TextcatError if
    no topic is shared.
    """
    names = [str(model) if isinstance(model, str | Path) else f"model {k}" for k, model in enumerate(models, start=1)]
    taggers = [storage.load(model) if isinstance(model, str | Path) else model for model in models]
    first, *others = taggers
    shared = tuple(topic for topic in first.topics if all(topic in tagger.topics for tagger in others))
    if not shared:
        raise TextcatError(
            f"{names[0]} and the other models share no topic: compare models of one corpus, or add --table."
        )
    left_out = [len(tagger.topics) - len(shared) for tagger in taggers]
    if any(left_out):
        counts = ", ".join(f"{n:,} of {name}" for n, name in zip(left_out, names, strict=True) if n)
        _log.warning("compared on the %s topics that all models have; left out: %s", f"{len(shared):,}", counts)
        taggers = [restrict_topics(tagger, shared) for tagger in taggers]
    sizes = taggers[0].facts.train_sizes
    return [replace(tagger, facts=replace(tagger.facts, train_sizes=sizes)) for tagger in taggers]
