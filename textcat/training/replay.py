"""Replay the history of a model: compute the labels of its documents after some of its steps, without their texts.

A checksum stands for a document's text: the zone `TEXT` has the checksum of the last text that a step brought. A
document that got no text from any step has no such zone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from textcat.corpus.corrections import FILE, Corrections, checksum_of_text
from textcat.corpus.documents import Corpus, Document
from textcat.corpus.vocabulary import Vocabulary
from textcat.model.history import LearningStep
from textcat.model.training_counts import corpus_of_labels
from textcat.training.change import change_corpus

TEXT = "text"
_LISTS = ("names", "broader", "replacements")  # keys of a vocabulary


def replayed(steps: Sequence[LearningStep]) -> Corpus:
    """Return the corpus after some steps of a model's history.

    The first step must record the labels of the whole corpus; the others are applied to it in order. An answer that was
    retracted or changed according to a later step is ignored. Raise TextcatError if a step depends on one that is left
    out.
    """
    found, *others = steps
    assert found.labels is not None
    corpus, standing_of = corpus_of_labels(found.labels), _lasting_answers(steps)
    for step in others:
        if step.action == "undo":
            continue
        known = {document.id: document for part in (corpus.train, corpus.test) for document in part}
        new = [*documents_learnt(step, known, standing_of.get(step.number, {}))]
        gone = [id_ for id_ in step.removed if id_ in known]
        names = None if step.vocabulary is None else _vocabulary_of(step.vocabulary)
        _, changed = change_corpus(corpus, new, gone, names, new_topics_negative=step.new_topics_negative, warn=False)
        parts = (changed.train, changed.test)
        train, test = ([d if d is known.get(d.id) else _as_stored(d) for d in part] for part in parts)
        corpus = replace(changed, train=train, test=test)
    return corpus


def learnt_corrections(steps: Iterable[LearningStep]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the latest entry of each document learnt from corrections, by their folder and the document's id.

    The entries are those of `answers_entry`.
    """
    learnt: dict[str, dict[str, dict[str, Any]]] = {}
    for step in steps:
        if step.corrections:
            learnt.setdefault(step.corrections, {}).update(step.documents)
    return learnt


def same_texts(
    steps: Iterable[LearningStep], documents: Iterable[Document], changed: Iterable[Document]
) -> dict[str, str]:
    """Return by id the checksums of those texts that documents bring again, as active steps have recorded them.

    `changed` are the same documents without such texts. A step records them as well: if the step that brought a text
    first is undone, the document has it from the other one.
    """
    recorded = {id_: said["text"] for step in steps for id_, said in step.documents.items() if "text" in said}
    both = zip(documents, changed, strict=True)
    again = [d.id for d, without in both if any(d.zones.values()) and not any(without.zones.values())]
    return {id_: recorded[id_] for id_ in again if id_ in recorded}


def labels_entry(document: Document, same_text: str) -> dict[str, Any]:
    """Return a learnt document's entry in the history: its labels, and a checksum instead of its text.

    `same_text` is the checksum of a text that is left out of the document: see `same_texts`.
    """
    judged = document.labelled_for
    said = {
        "topics": [*document.topics],
        "labelled_for": None if judged is None else [*judged],
        "split": document.split,
        "date": document.date,
        "text": checksum_of_text(document) or same_text,
    }
    return {name: value for name, value in said.items() if name == "topics" or value not in (None, "")}


def answers_entry(
    document: Document, answers: Mapping[str, bool], numbers: Iterable[int], same_text: str
) -> dict[str, Any]:
    """Return the entry in the history of a document learnt from the corrections with some numbers.

    `same_text` is as for `labels_entry`.
    """
    text = checksum_of_text(document) or same_text
    said = {"answers": {**answers}, "numbers": [*numbers], "date": document.date, "text": text}
    return {name: value for name, value in said.items() if value != ""}


def answers_in(document: Document) -> dict[str, bool]:
    """Return the answers that a document of `Corrections.documents` stands for, by topic: True for yes."""
    return {topic: topic in document.topics for topic in document.labelled_for or ()}


def texts_in_folders(steps: Iterable[LearningStep], wanted: set[str]) -> dict[str, Document]:
    """Return the documents in the steps' folders of corrections whose text has a checksum in `wanted`, keyed by it."""
    folders = dict.fromkeys(step.corrections for step in steps if step.corrections)
    there = [folder for folder in folders if wanted and Path(folder, FILE).is_file()]
    documents = (correction.document for folder in there for correction in Corrections(folder))
    return {checksum: document for document in documents if (checksum := checksum_of_text(document)) in wanted}


def _lasting_answers(steps: Sequence[LearningStep]) -> dict[int, dict[str, dict[str, bool] | None]]:
    """Return, by step and document id, the answers that no later step found retracted or changed.

    None: according to a later step, all answers on the document were retracted.
    """
    lasting: dict[tuple[str, str], dict[str, bool] | None] = {}
    standing_of: dict[int, dict[str, dict[str, bool] | None]] = {}
    for step in reversed(steps):
        of_corrections = ((id_, said["answers"]) for id_, said in step.documents.items() if "answers" in said)
        for id_, said in of_corrections:
            of_document, answers = (step.corrections, id_), said or None
            if answers and of_document in lasting:
                later = lasting[of_document]
                answers = later and {
                    topic: belongs for topic, belongs in answers.items() if later.get(topic) is belongs
                }
            lasting[of_document] = standing_of.setdefault(step.number, {})[id_] = answers
    return standing_of


def documents_learnt(
    step: LearningStep, known: Mapping[str, Document], standing: Mapping[str, Mapping[str, bool] | None]
) -> Iterable[Document]:
    """Yield the documents that a step learns; `known` has those before it, and `standing` the lasting answers.

    Each has the checksum in place of its text. Documents learnt from corrections are labelled for the topics of their
    answers only, which may be none.
    """
    for id_, said in step.documents.items():
        zones = {TEXT: said["text"]} if "text" in said else {}
        if id_ not in known and not zones and id_ not in step.added:
            continue  # the step corrected topics of a document that no longer exists
        if "answers" not in said:
            judged = said.get("labelled_for")
            labels = tuple(said["topics"]), said.get("date", ""), said.get("split", "")
            yield Document(id_, zones, *labels, labelled_for=None if judged is None else tuple(judged))
            continue
        answers = standing[id_]
        if id_ in known:
            yield _corrected(known[id_], answers or {}, zones)
        elif answers is not None:
            yield _corrected(Document(id_, {}, (), said.get("date", "")), answers, zones)


def _corrected(document: Document, answers: Mapping[str, bool], zones: dict[str, str]) -> Document:
    kept = [topic for topic in document.topics if answers.get(topic, True)]
    topics = dict.fromkeys([*kept, *(topic for topic, belongs in answers.items() if belongs)])
    return replace(document, zones=zones, topics=tuple(topics), labelled_for=tuple(answers))


def _as_stored(document: Document) -> Document:
    """Return a document with its topics sorted, and added to those that it was judged for, as models store them."""
    judged = document.labelled_for
    judged = None if judged is None else tuple(sorted({*judged, *document.topics}))
    return replace(document, topics=tuple(sorted(document.topics)), labelled_for=judged)


def _vocabulary_of(entries: Mapping[str, Any]) -> Vocabulary:
    lists = {name: {topic: tuple(others) for topic, others in entries[name].items()} for name in _LISTS}
    return Vocabulary(**{**entries, **lists})


def vocabulary_entry(vocabulary: Vocabulary) -> dict[str, Any]:
    """Return a vocabulary as JSON values, for the history of a model."""
    lists = {name: {topic: [*others] for topic, others in getattr(vocabulary, name).items()} for name in _LISTS}
    return {name: getattr(vocabulary, name) for name in ("place", "language", "descriptions")} | lists
