"""Retrain a model on changed documents, from stored term counts; write it, and log the step in its history."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from textcat.base.disk import installed_version
from textcat.base.errors import TextcatError
from textcat.base.progress import Stages
from textcat.corpus.documents import Corpus, Document
from textcat.duplicates.groups import sketch_texts
from textcat.evaluation.evaluation import Evaluation
from textcat.features.counts import StoredCounts
from textcat.model import storage
from textcat.model.history import History, LearningStep, main_figures
from textcat.model.manifest import COUNTS, MODEL, Manifest, read_manifest
from textcat.model.previous import check_rules, link_files, replace_model
from textcat.model.tagger import Tagger
from textcat.model.training_counts import TrainingCounts, labels_of
from textcat.reading.labels import folded_name
from textcat.training.checks import TrainingOptions
from textcat.training.examples import CountedCorpus
from textcat.training.steps import train_and_evaluate, train_and_score

if TYPE_CHECKING:
    from textcat.features.tfidf import TfIdf
    from textcat.recipes.recipe import Recipe

log = logging.getLogger(__name__)


class UpdateResult(NamedTuple):
    """An updated model, and the changes.

    Attributes
    ----------
    tagger, folder : Tagger, Path
        The new model, and the folder it was written to.
    added, corrected, removed : tuple of str
        The ids of the documents that were added, corrected and removed; a removal may be part of undoing a step.
    sizes_before : dict of str to int
        How many training documents each topic had before.
    before : Evaluation or None
        The evaluation of the previous model; the evaluation of the new model is `tagger.evaluation`.
    named : tuple of str
        The topics that got a preferred name, or a different one.
    number : int or None
        The number of the step in `learning_history`; None if there was nothing new to learn.
    kept : tuple of str
        The ids of documents that were also labelled by a step after the undone one.
    """

    tagger: Tagger
    folder: Path
    added: tuple[str, ...]
    corrected: tuple[str, ...]
    removed: tuple[str, ...]
    sizes_before: dict[str, int]
    before: Evaluation | None
    named: tuple[str, ...] = ()
    number: int | None = None
    kept: tuple[str, ...] = ()

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per topic of either model: training documents, average precision and F1 before and after."""
        after = self.tagger.evaluation
        sizes = dict(zip(self.tagger.topics, self.tagger.facts.train_sizes.tolist(), strict=True))
        rows_of = [
            {row.topic: row for row in evaluation.topics} if evaluation else {} for evaluation in (self.before, after)
        ]
        rows: list[dict[str, Any]] = []
        for topic in sorted({*sizes, *self.sizes_before}):
            row = {"topic": topic, "before": self.sizes_before.get(topic, 0), "after": sizes.get(topic, 0)}
            for name, measure in (("ap", "average_precision"), ("f1", "f1")):
                for when, row_of in zip(("before", "after"), rows_of, strict=True):
                    row[f"{name}_{when}"] = getattr(row_of[topic], measure) if topic in row_of else None
            rows.append(row)
        return rows


@dataclass(frozen=True)
class UpdatableModel:
    """An updatable model during an update; its folder is locked.

    Parameters
    ----------
    folder, target : Path
        The model's folder, and the folder to write the new model to.
    """

    folder: Path
    target: Path
    manifest: Manifest
    stored: TrainingCounts
    evaluation: Evaluation | None
    history: History
    stages: Stages
    n_jobs: int | None

    @classmethod
    def read(cls, folder: Path, target: Path, stages: Stages | None, n_jobs: int | None) -> UpdatableModel:
        """Read the model in a folder and its history; raise TextcatError if it is damaged or not updatable."""
        stages = stages or Stages()
        with stages.stage("read"):
            stored, manifest, evaluation = storage.load_training_counts(folder)
            history = History(folder, manifest.sha256, lambda: labels_of(stored.corpus))
        return cls(folder, target, manifest, stored, evaluation, history, stages, n_jobs)

    @property
    def corpus(self) -> Corpus:
        """The documents; they have texts only where explanations need them."""
        return self.stored.corpus

    @property
    def documents(self) -> Sequence[Document]:
        """The training documents, followed by the test documents."""
        return [*self.corpus.train, *self.corpus.test]

    def without_stored_texts(self, documents: Sequence[Document], *, in_zones: bool = True) -> list[Document]:
        """Return documents; a text that equals the one that the model has of the same document is removed.

        With `in_zones` False, two texts are the same if they have the same words, in any zones and any order.
        """
        position_of = {document.id: i for i, document in enumerate(self.documents)}
        known = [d for d in documents if d.id in position_of and any(d.zones.values())]
        positions = np.array([position_of[document.id] for document in known], np.int64)
        same: set[str] = set()
        if known:
            counted = _counts_of(known, self._features())
            are_same = self.stored.counts.select(positions).same_as(counted, in_zones=in_zones)
            for document, i, is_same in zip(known, positions.tolist(), are_same.tolist(), strict=True):
                zones = self.documents[i].zones if in_zones else {}
                if is_same and all(document.zones.get(name, "") == text for name, text in zones.items()):
                    same.add(document.id)
        return [replace(document, zones={}) if document.id in same else document for document in documents]

    def with_texts(
        self, before: Mapping[str, Document], then: Corpus, texts: Mapping[str, Document]
    ) -> tuple[Corpus, list[Document], np.ndarray]:
        """Return a corpus with its texts, the documents to count, and the positions of each document's counts.

        The corpus `then`, and the model's documents, `before`, have checksums in place of texts; `texts` has documents
        with other texts, by their checksums. The positions refer to the counts in the model, followed by those of the
        documents to count. Raise TextcatError if a text is missing.
        """
        documents = self.documents
        position_of = {document.id: i for i, document in enumerate(documents)}
        counted: list[Document] = []
        order: list[int] = []

        def with_text(document: Document) -> Document:
            id_ = document.id
            if id_ in position_of and before[id_].zones == document.zones:
                order.append(position_of[id_])
                return replace(document, zones=documents[order[-1]].zones)
            text = next((texts[checksum] for checksum in document.zones.values() if checksum in texts), None)
            if text is None:
                raise TextcatError(
                    f"The text of document {id_!r} as it was then is not kept, in the model or in a folder of "
                    "corrections: learn the document again, with its text and topics."
                )
            order.append(len(documents) + len(counted))
            counted.append(replace(document, zones=text.zones))
            return counted[-1]

        train, test = ([*map(with_text, part)] for part in (then.train, then.test))
        corpus = replace(then, name=self.corpus.name, origin=self.corpus.origin, train=train, test=test)
        return corpus, counted, np.array(order, np.int64)

    def retrain(
        self, step: LearningStep, corpus: Corpus, counted: Sequence[Document], order: np.ndarray
    ) -> tuple[Tagger, bool]:
        """Train on a corpus, write the model, and log the step; return the tagger, and whether the step was logged.

        `order` has the position of each document's counts: among the counts in the model, followed by those of the
        documents `counted`, which are counted here.
        """
        storage.check_target(self.target)
        _warn_of_other_tokens(self.folder, self.manifest)
        stages, stored = self.stages, self.stored
        with stages.stage("tokens to rows", len(counted)):
            features = self._features()
            counts = stored.counts.extended(_counts_of(counted, features)) if counted else stored.counts
            sketches = np.append(stored.sketches, sketch_texts(document.zones for document in counted))
            corpus = corpus.with_sketches(sketches[order])
            examples = CountedCorpus.of_document_counts(corpus, self._recipe(), counts.select(order), features)
        _warn_of_new_topics(corpus, set(corpus.topics) - {*self.corpus.topics})
        recipe, options = self._recipe(), TrainingOptions(self.n_jobs, None, stored.keep_support, updatable=True)
        if stored.is_measured:
            bands = stored.bands
            tagger = train_and_evaluate(corpus, recipe, options, bands=bands, stages=stages, counted=examples)
        else:
            tagger = train_and_score(corpus, recipe, options, stages=stages, counted=examples).tagger
        step = replace(step, figures=main_figures(tagger.evaluation), figures_before=main_figures(self.evaluation))
        with stages.stage("save"):
            write = partial(storage.write_model, tagger)
            is_logged = write_and_log(write, self.folder, self.target, self.history, step, labels_of(corpus))
        return tagger, is_logged

    def unchanged(self) -> UpdateResult:
        """Return the result of an update with nothing new, after copying the model to the target, if it is another."""
        if self.target != self.folder:
            with self.stages.stage("save"), MODEL.replacing(self.target) as sibling:
                check_rules(self.target, self.manifest)
                link_files(self.folder, sibling)
            self.history.write_elsewhere(self.target)
        return self.result(storage.load(self.target, prepare=False), None)

    def result(self, tagger: Tagger, step: LearningStep | None, kept: tuple[str, ...] = ()) -> UpdateResult:
        """Return the result of an update; without a step, nothing was changed."""
        if step is None:
            return UpdateResult(tagger, self.target, (), (), (), self.manifest.sizes, self.evaluation)
        ids = tuple(step.added), tuple(step.corrected), (*step.removed, *step.unlearnt)
        named = newly_named(self.manifest, tagger.topic_names)
        return UpdateResult(tagger, self.target, *ids, self.manifest.sizes, self.evaluation, named, step.number, kept)

    def _recipe(self) -> Recipe:
        return replace(self.manifest.recipe, name=self.folder.name).of_model()

    def _features(self) -> TfIdf:
        return self._recipe().make_features()


def stored_labels(folder: Path) -> dict[str, Any] | None:
    """Return the labels of the documents of the model in a folder; None if the model is not updatable."""
    if COUNTS not in read_manifest(folder).files:
        return None
    return labels_of(storage.load_training_counts(folder)[0].corpus)


def write_and_log(
    write: Callable[[Path], None],
    folder: Path,
    target: Path,
    history: History,
    step: LearningStep,
    labels: dict[str, Any] | None,
) -> bool:
    """Write a changed model atomically to another folder, or over the model it was made from, and log the step.

    `write` is called with an empty folder, and writes the model's files to it. `labels` are the labels of its
    documents. The replaced model is kept, so that the step can be undone, unless documents were removed. A step that
    leaves the model as it was is not logged, and the model before it is not kept; return whether it was logged.
    """
    # The history says which corrections were learnt, and which steps were undone, even if that changes nothing.
    is_optional = step.action == "learn" and not step.corrections
    if target == folder:

        def note(model: str) -> None:
            history.note(replace(step, model=model))

        keep = not step.removed
        if not replace_model(folder, write, step.replaced, keep=keep, note=note, skips_same=is_optional):
            return False
        history.finish(labels)
        return True
    with MODEL.replacing(target) as sibling:
        write(sibling)
        check_rules(target, manifest := read_manifest(sibling))
        model = manifest.sha256
    if is_optional and model == step.replaced:
        history.write_elsewhere(target)
        return False
    history.write_elsewhere(target, replace(step, model=model), labels)
    return True


def newly_named(manifest: Manifest, names: Mapping[str, str]) -> tuple[str, ...]:
    """Return the topics whose preferred name in `names` differs from the model's manifest, or is not in it."""
    before = manifest.names
    return tuple(topic for topic, name in names.items() if before.get(topic) != name)


def _counts_of(documents: Sequence[Document], features: TfIdf) -> StoredCounts:
    return StoredCounts.of_documents(*features.count_all(documents), np.arange(len(documents)))


def _warn_of_other_tokens(folder: Path, manifest: Manifest) -> None:
    of_model = manifest.versions.get("spacy")
    if of_model != (here := installed_version("spacy")):
        log.warning(
            "The terms of the model %s were counted by spaCy %s, and those of new documents by %s, which may split "
            "some words differently: train the model again to have all terms by one version.",
            *(folder, of_model, here),
        )


def _warn_of_new_topics(corpus: Corpus, new: set[str]) -> None:
    _warn_of_topics_without_negatives(corpus, new)
    _warn_of_similar_topics(new, set(corpus.topics) - new)


def _warn_of_topics_without_negatives(corpus: Corpus, topics: set[str]) -> None:
    for topic in sorted(topics):
        without = (document for document in corpus.train if topic not in document.topics)
        if not any(document.labelled_for is None or topic in document.labelled_for for document in without):
            log.warning(
                "The new topic %r has no negative examples, so it is learnt from its own documents alone: "
                "give documents without it, or use all earlier ones as negatives (--new-topics-negative).",
                topic,
            )


def _warn_of_similar_topics(new: set[str], former: set[str]) -> None:
    from difflib import get_close_matches

    names, alike = sorted(former), {folded_name(topic): [topic] for topic in former}
    for topic in sorted(new):
        near = alike.get(folded_name(topic), [])
        # do not suggest c21 for c22: short codes are not misspellings of each other
        if not near and not re.search(r"\d", topic):
            near = get_close_matches(topic, names, n=1, cutoff=0.8)
        if near:
            log.warning(
                "The new topic %r is spelt almost like the known topic %r: if it is misspelt, learn its documents "
                "again with the right name.",
                *(topic, near[0]),
            )
