"""Compare models on labelled documents, for the topics that all of them have."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from textcat.base.errors import TextcatError
from textcat.base.progress import Stages
from textcat.evaluation import at_k
from textcat.evaluation.bands import choose_bands, default_bands
from textcat.evaluation.evaluation import TITLES, ScoredDocuments
from textcat.evaluation.gates import AP, PRECISION, Gate, check_gates, parse_gate
from textcat.evaluation.significance import Comparison, compare_evaluations
from textcat.model import storage
from textcat.model.evaluate import corpus_to_measure, with_test_documents
from textcat.model.measure import evaluate_tagger, has_many_topics
from textcat.model.restrict import restrict_topics
from textcat.model.tagger import Tagger
from textcat.model.topic_names import find_topic

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
    fail_if: str | Iterable[str] = (),
    strict: bool = False,
    stages: Stages | None = None,
) -> Comparison:
    """Compare the first of several models with each of the others on labelled documents.

    All models are measured on the same documents, and on the topics that they share.

    Parameters
    ----------
    models : sequence of Tagger, str or Path
        Two or more taggers, or folders of taggers.
    corpus, text, topics, topics_separator, bands, stages
        As for `textcat.evaluate`; the documents are chosen as for the first model.
    n_resamples, seed : int, int
        As for `compare_evaluations`.
    fail_if : str or iterable of str
        Conditions under which the second of two models fails, such as ``"MAP < -.005"``, ``"macro F1 of TOP10 < -.01"``
        or ``"AP of wheat < -.05"``; `Comparison.gates` has the results. A limit with a sign, or 0, applies to the
        difference from the first model; a limit without a sign to the second model's own value. Bands that conditions
        name are measured, too.
    strict : bool, default=False
        False: the model fails if a condition is significantly true (one-sided 95 % bound). True: it fails unless the
        condition is significantly false.

    Returns
    -------
    Comparison

    Raises
    ------
    TextcatError
        As for `textcat.evaluate`; or if fewer than two models are given, they share no topic, or the corpus has no test
        documents; if a condition cannot be understood or decided, or there are conditions on more than two models.
    """
    if isinstance(models, str | Path | Tagger) or len(models) < 2:
        raise TextcatError("Fewer than two models cannot be compared: give a list of two or more.")
    if fail_if and len(models) != 2:
        raise TextcatError(f"Conditions are of two models, an old and a new one, not of {len(models)}: give two.")
    taggers = shared_topics(models)
    gates, bands = read_gates(taggers[0], fail_if, bands)
    if any(gate.measure == PRECISION for gate in gates) and taggers[1].decisions.promises is None:
        raise TextcatError("The new model promises no precision of automatic tags: train it with `--promise`.")
    documents = corpus_to_measure(taggers[0], corpus, text=text, topics=topics, topics_separator=topics_separator)
    evaluations = [
        evaluate_tagger(tagger, with_test_documents(tagger, documents), bands=bands, stages=stages)
        for tagger in taggers
    ]
    compared = compare_evaluations(evaluations, n_resamples=n_resamples, seed=seed)
    if not gates:
        return compared
    old, new = evaluations
    results = check_gates(gates, old, new, n_resamples=n_resamples, seed=seed, strict=strict)
    return replace(compared, gates=results)


def read_gates(
    tagger: Tagger, fail_if: str | Iterable[str], bands: str | Iterable[str] | None = None
) -> tuple[list[Gate], str | Iterable[str] | None]:
    """Parse conditions on a tagger's measures; return them, and `bands` with the bands (sets of topics) they name.

    Topics are replaced by their ids, and bands by the names that tables show. Raise TextcatError if a condition cannot
    be parsed, or names a measure that is not computed for this tagger.
    """
    gates = [_of_tagger(parse_gate(text), tagger) for text in ([fail_if] if isinstance(fail_if, str) else fail_if)]
    if not gates:
        return [], bands
    topics, sizes = tagger.topics, tagger.facts.train_sizes
    if bands is None:
        bands = at_k.default_bands(sizes) if has_many_topics(tagger) else default_bands(len(topics)) or "ALL"
    spec = [bands] if isinstance(bands, str) else [*bands]
    names = [band.name for band in choose_bands(topics, sizes, spec)]
    for number, gate in enumerate(gates):
        if gate.measure in (AP, PRECISION) or gate.of in names:
            continue
        band = choose_bands(topics, sizes, gate.of)[0].name
        gates[number] = replace(gate, of=band)
        if band not in names:
            names.append(band)
            spec.append(gate.of)
    return gates, spec


def _of_tagger(gate: Gate, tagger: Tagger) -> Gate:
    """Return a condition with the id of its topic; raise TextcatError if its measure is not computed for the tagger."""
    if gate.measure == PRECISION:
        return gate
    measures = at_k.RESAMPLED if has_many_topics(tagger) else (AP, *ScoredDocuments.measures)
    if gate.measure not in measures:
        names = ", ".join("AP of a topic" if name == AP else TITLES[name].column for name in measures)
        raise TextcatError(
            f"The condition {gate.text!r} cannot be decided with {len(tagger.topics):,} topics: give one of {names}."
        )
    if gate.measure == AP:
        return replace(gate, of=find_topic(tagger.topics, tagger.topic_names, gate.of))
    if gate.of in tagger.topics:
        raise TextcatError(
            f"The condition {gate.text!r} names a topic, and its measure is of a band of topics such as ALL or TOP10: "
            f"write 'AP of {gate.of}'."
        )
    return gate


def shared_topics(models: Sequence[Tagger | str | Path]) -> list[Tagger]:
    """Load models, and return taggers restricted to the topics they share; log a warning if topics are left out.

    All taggers get the topic sizes of the first, so that they have the same bands. Raise TextcatError if no topic is
    shared.
    """
    names = [str(model) if isinstance(model, str | Path) else f"model {k}" for k, model in enumerate(models, start=1)]
    taggers = [storage.load(model, with_rules=False) if isinstance(model, str | Path) else model for model in models]
    first, *others = taggers
    of_all = {*first.topics}.intersection(*(tagger.topics for tagger in others))
    shared = tuple(topic for topic in first.topics if topic in of_all)
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
