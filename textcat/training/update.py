"""Update a model with documents to add, correct or remove; the result equals training from scratch."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from textcat.base.disk import resolved
from textcat.base.errors import TextcatError
from textcat.base.folders import MANIFEST
from textcat.base.frames import Frame, is_missing, is_table
from textcat.base.progress import Stages
from textcat.corpus.cards import Card
from textcat.corpus.catalogue import column_settings, corpus_of, open_corpus, settings_like
from textcat.corpus.corrections import Corrections, archive_place, checksum_of_text, with_text_in_id
from textcat.corpus.documents import Corpus, Document
from textcat.corpus.vocabulary import Vocabulary
from textcat.model import storage
from textcat.model.history import HISTORY, History, LearningStep, active_steps, check_undoable, removed_numbers
from textcat.model.manifest import COUNTS, MODEL, Manifest, read_manifest
from textcat.model.previous import link_files, lock_model, remove_leftovers_of_model, restore_previous
from textcat.model.training_counts import labels_of
from textcat.reading import as_documents, named_in_training
from textcat.training.change import all_names, change_corpus
from textcat.training.replay import (
    TEXT,
    answers_entry,
    answers_in,
    documents_learnt,
    labels_entry,
    learnt_corrections,
    replayed,
    same_texts,
    texts_in_folders,
    vocabulary_entry,
)
from textcat.training.updatable import UpdatableModel, UpdateResult, newly_named, stored_labels, write_and_log

log = logging.getLogger(__name__)


def learn(
    model: str | os.PathLike[str],
    documents: Any = (),
    remove: str | Iterable[str] = (),
    *,
    corrections: str | os.PathLike[str] | None = None,
    text: str | Sequence[str] | None = None,
    topics: str | Sequence[str] = "topics",
    topics_separator: str = "",
    out: str | os.PathLike[str] | None = None,
    new_topics_negative: bool = False,
    vocabulary: str | os.PathLike[str] | None = None,
    vocabulary_language: str | None = None,
    n_jobs: int | None = None,
    stages: Stages | None = None,
) -> UpdateResult:
    """Add, correct or remove documents of a model.

    The result is, to the bit, that of training from scratch with the model's settings: what `train` chose for few
    documents stays, however many there are now.

    Training uses the earlier documents, then the new ones, in the order of their addition. A document with the id of an
    earlier document replaces it; without a text, it replaces only the topics. If it was judged for some topics only,
    its labels for the others stay. Documents whose `split` is "test" are added to the test documents. The new model has
    the topics of the old one that still have a training document, and the topics of the new documents. For a new topic,
    the earlier documents are neither positive nor negative examples, as nobody has judged them for it.

    If there is nothing new, the model stays as it is, and what `undo_learn` restores, too; `UpdateResult.number` is
    None.

    `vocabulary` adds or replaces names of topics, which all later updates keep. A model that was not trained with
    ``updatable=True`` can only get names, with the broader topics of the vocabulary; nothing else in it changes.

    Parameters
    ----------
    model : path
        Folder of a model that was trained with ``updatable=True``.
    documents : Corpus, DataFrame, iterable of Document or dict, str or Path
        As for `train`, or a list of Document. A dict must have an id, and a table a column or an index of ids.
    remove : str or iterable of str
        The ids of documents to remove. Nothing of these documents is left in the folder, so the update
        cannot be undone.
    corrections : path, optional
        A folder of corrections. Corrections that were not learnt before are learnt; answers that were retracted are
        unlearnt. A document of the model keeps its labels for topics that were not judged; any other document is added,
        labelled for the judged topics only. Not allowed together with `documents`, `remove` or `vocabulary`.
    text, topics, topics_separator : str or sequence of str, the same, str
        The columns of a table, or the fields of a dict or a file, as for `train`. The default of `text` for tables and
        dicts are the fields that training used. If none of the three is given, a file is read with the settings of
        training.
    out : path, optional
        Where to write the new model; if there is nothing new, it is a copy of the old one. By default, it replaces the
        old model, which `undo_learn` can restore.
    new_topics_negative : bool, default=False
        True: use the earlier documents as negative examples of new topics. False: leave them out for new topics.
    vocabulary : path, optional
        File with names of topics: see `Vocabulary.read`. Topics that it does not name keep their names.
    vocabulary_language : str, optional
        Language of these names; by default the language of the model's names, or else of its texts.
    n_jobs, stages
        As for `train`.

    Returns
    -------
    UpdateResult

    Raises
    ------
    TextcatError
        If the folder is not an updatable model, is damaged or is being changed; if an id is unknown or given twice; if
        no training document is left; or if the vocabulary cannot be read, or names none of the topics.
    """
    folder = resolved(model)
    target = folder if out is None else resolved(out)
    options: dict[str, Any] = {"new_topics_negative": new_topics_negative}
    with lock_model(folder):
        remove_leftovers_of_model(folder)
        remove_leftovers_of_model(target)
        if corrections is not None:
            if not _are_none(documents) or not _are_none(remove) or vocabulary is not None:
                raise TextcatError(
                    "Corrections in a folder are learnt alone: give documents, removals and names in another step."
                )
            return _learn_corrections(UpdatableModel.read(folder, target, stages, n_jobs), corrections, **options)
        manifest = read_manifest(folder)
        columns = {"text": text, "topics": topics, "topics_separator": topics_separator}
        new = [d for d in _checked_documents(documents, manifest.origin, **columns) if d.split != "unused"]
        gone = [remove] if isinstance(remove, str) else [*map(str, remove)]  # ids of records may be numbers
        names = None if vocabulary is None else Vocabulary.read(vocabulary, vocabulary_language, manifest.language)
        if not (new or gone or names):
            raise TextcatError("There is nothing to learn: give documents, ids to remove, or names of topics.")
        if names and not (new or gone or COUNTS in manifest.files):
            return _give_names(folder, target, manifest, names, stages or Stages())
        opened = UpdatableModel.read(folder, target, stages, n_jobs)
        in_model = {document.id for document in opened.documents}
        if empty := [d.id for d in new if d.id not in in_model and not any(d.zones.values())]:
            log.warning(
                "%s of the documents to learn, such as %r, have no text and are not in the model, so they are added as "
                "empty documents: if an id is misspelt, remove that document, and learn it with the right id.",
                *(len(empty), empty[0]),
            )
        changed = opened.without_stored_texts(new)
        same = same_texts(active_steps(opened.history.steps), new, changed)
        step = opened.history.next_step(
            "learn",
            documents={document.id: labels_entry(document, same.get(document.id, "")) for document in changed},
            vocabulary=None if names is None else vocabulary_entry(names),
            **options,
        )
        return _learn(opened, step, new, gone, names)


def undo_learn(model: str | os.PathLike[str]) -> Path:
    """Restore a model as it was before the last `learn`, byte for byte; only one step can be undone in this way.

    `undo_step` undoes any step, by training again.

    Parameters
    ----------
    model : path
        The model's folder.

    Returns
    -------
    Path
        The same folder.

    Raises
    ------
    TextcatError
        If there is no earlier model: no `learn` since the model was trained or restored, or one that removed documents.
    """
    folder = resolved(model)
    with lock_model(folder):
        history = History.read(folder, read_manifest(folder).sha256, partial(stored_labels, folder))
        restore_previous(folder, history.note_restored if history else None)
    return folder


def undo_step(
    model: str | os.PathLike[str], step: int, *, n_jobs: int | None = None, stages: Stages | None = None
) -> UpdateResult:
    """Undo a step in which a model has learnt: the result is, to the bit, the model that the other steps give.

    Documents that the step added are removed, and those that it corrected get the labels that they have without it. A
    correction by a later step stays; `UpdateResult.kept` names these documents. Undoing is itself a step, and can be
    undone.

    Parameters
    ----------
    model : path
        The model's folder.
    step : int
        The number of the step in `learning_history`.
    n_jobs, stages
        As for `train`.

    Returns
    -------
    UpdateResult

    Raises
    ------
    TextcatError
        If the step removed documents, is undone already, or is older than the training of the model; or if a text is
        needed that is neither in the model nor in a folder of corrections.
    """
    folder = resolved(model)
    with lock_model(folder):
        remove_leftovers_of_model(folder)
        opened = UpdatableModel.read(folder, folder, stages, n_jobs)
        check_undoable(opened.history.steps, step)
        return _replay(opened, opened.history.next_step("undo", undoes=step))


def _are_none(inputs: Any) -> bool:
    """Return whether an argument of `learn` is not given: the default, or an empty list or text."""
    return isinstance(inputs, str | list | tuple) and not inputs


def _learn(
    opened: UpdatableModel,
    step: LearningStep,
    new: Sequence[Document],
    gone: Sequence[str] = (),
    names: Vocabulary | None = None,
) -> UpdateResult:
    """Change a model's corpus, retrain the model, and add the step to its history; return the result."""
    change, corpus = change_corpus(
        opened.corpus, new, gone, names, new_topics_negative=step.new_topics_negative, place=str(opened.folder)
    )
    added, corrected, removed = map(list, change.ids())
    step = replace(step, added=added, corrected=corrected, removed=removed)
    tagger, is_logged = opened.retrain(step, corpus, change.counted, change.order())
    return opened.result(tagger, step if is_logged else None)


def _learn_corrections(
    opened: UpdatableModel, place: str | os.PathLike[str], *, new_topics_negative: bool
) -> UpdateResult:
    """Learn the new corrections of a folder, and unlearn answers that were retracted."""
    corrections = Corrections(place, must_exist=True)
    folder, steps = str(resolved(corrections.folder)), opened.history.steps
    learnt = learnt_corrections(active_steps(steps)).get(folder, {})
    made_of = corrections.by_document()
    numbers, document_of = dict[str, list[int]](), dict[str, Document]()
    for document, named in _with_distinct_ids(opened, corrections.documents(), learnt):
        numbers[named.id] = [correction.number for correction in made_of[document.id]]
        document_of[named.id] = named
    answers = {id_: answers_in(document) for id_, document in document_of.items()}
    removed = removed_numbers(steps, folder)
    known = {document.id for document in opened.documents}
    _check_complete(corrections, {id_: said for id_, said in learnt.items() if id_ in known})
    same = {id_ for id_, said in learnt.items() if answers.get(id_) == said["answers"]}
    # ignore topics that were removed since
    same |= {id_ for id_, said in learnt.items() if numbers.get(id_) == said.get("numbers")}
    new = [id_ for id_ in answers if id_ not in same]
    new = [id_ for id_ in new if id_ in known or not removed.issuperset(numbers[id_])]
    if without := [id_ for id_ in new if id_ not in known and not any(document_of[id_].zones.values())]:
        log.warning(
            "%s corrected documents, such as %r, have no text in %s and are not in the model: learn them with a text.",
            *(len(without), without[0], folder),
        )
    new = [id_ for id_ in new if id_ not in {*without}]
    taken_back = [id_ for id_, said in learnt.items() if said["answers"] and id_ in known and id_ not in answers]
    if not (new or taken_back):
        return opened.unchanged()
    judged = [document_of[id_] for id_ in new]
    documents = opened.without_stored_texts(judged, in_zones=False)
    same_text = same_texts(active_steps(steps), judged, documents)
    said = {d.id: answers_entry(d, answers[d.id], numbers[d.id], same_text.get(d.id, "")) for d in documents}
    step = opened.history.next_step(
        "learn",
        corrections=folder,
        documents={**said, **{id_: {"answers": {}} for id_ in taken_back}},
        new_topics_negative=new_topics_negative,
    )
    text_of = {checksum_of_text(document): document for document in documents}
    if any(
        not learnt[id_]["answers"].items() <= entries["answers"].items()
        for id_, entries in step.documents.items()
        if id_ in learnt
    ):
        return _replay(opened, step, text_of)  # an answer was retracted: unlearn it
    standing = {id_: entries["answers"] for id_, entries in step.documents.items()}
    learnt_now = documents_learnt(step, {document.id: document for document in opened.documents}, standing)
    zones_of = {checksum: document.zones for checksum, document in text_of.items()}
    return _learn(opened, step, [replace(d, zones=zones_of.get(d.zones.get(TEXT, ""), {})) for d in learnt_now])


def _check_complete(corrections: Corrections, learnt: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise TextcatError if a folder lacks corrections that were learnt from it: otherwise, they would be unlearnt.

    Retracted corrections are still in their folder, so it has been emptied, replaced, or restored from an older copy.
    """
    ids = corrections.ids()
    for id_, said in learnt.items():
        for number in said.get("numbers", ()):
            if number not in ids or not id_.startswith(ids[number]):
                raise TextcatError(
                    f"{corrections.folder} does not have correction {number} any more, about {id_!r}, which the model "
                    "has learnt from it: restore the folder, or give new corrections in a folder of another name. "
                    "`textcat learn MODEL --undo-step N` unlearns what a step has learnt."
                )


def _with_distinct_ids(
    opened: UpdatableModel, documents: Iterable[Document], learnt: Collection[str]
) -> Iterator[tuple[Document, Document]]:
    """Yield pairs: a corrected document, and the same document with the id by which the model learns it.

    Several collections may have the same ids, such as numbers from 1. So a document of an archive that has the id of a
    document in the model, but other words, is another document, and gets another id. `learnt` are the ids by which
    documents were learnt before.
    """
    documents = [*documents]
    new = [d for d in documents if archive_place(d) is not None and not {d.id, with_text_in_id(d).id} & {*learnt}]
    in_model = {document.id for document in opened.documents}
    others = {d.id for d in opened.without_stored_texts(new, in_zones=False) if d.id in in_model and d.zones}
    if others:
        log.warning(
            "%s corrected documents, such as %r, have the ids of training documents, and other texts: they are added "
            "with checksums in their ids.",
            *(len(others), min(others)),
        )
    for document in documents:
        is_other = document.id in others or with_text_in_id(document).id in learnt
        yield document, with_text_in_id(document) if is_other else document


def _replay(opened: UpdatableModel, step: LearningStep, texts: Mapping[str, Document] | None = None) -> UpdateResult:
    """Retrain a model on the corpus that its history, with an added step, leads to; return the result.

    `texts` are documents with new texts, by the checksums of these texts.
    """
    active, then_active = active_steps(opened.history.steps), active_steps([*opened.history.steps, step])
    now, then = replayed(active), replayed(then_active)
    if labels_of(now) != labels_of(opened.corpus):
        raise TextcatError(f"The history {opened.folder}{HISTORY} is not that of this model: move it away.")
    before, after = ({d.id: d for d in (*corpus.train, *corpus.test)} for corpus in (now, then))
    toggled = {s.number: s for s in (*active, *then_active) if (s in active) != (s in then_active)}
    concerned = dict.fromkeys(id_ for s in toggled.values() for id_ in s.documents)
    later = {id_ for s in then_active if s.number > min(toggled) and s.number not in toggled for id_ in s.documents}
    step = replace(
        step,
        added=[id_ for id_ in after if id_ not in before],
        corrected=[id_ for id_ in concerned if id_ in before and id_ in after and before[id_] != after[id_]],
        unlearnt=[id_ for id_ in before if id_ not in after],
    )
    kept = tuple(id_ for id_ in concerned if id_ in later and id_ in after)
    wanted = {d.zones[TEXT] for d in after.values() if TEXT in d.zones} - {*(texts or ())}
    wanted -= {d.zones[TEXT] for d in before.values() if TEXT in d.zones}
    found = {**(texts or {}), **texts_in_folders(then_active, wanted)}
    corpus, counted, order = opened.with_texts(before, then, found)
    tagger, _ = opened.retrain(step, corpus, counted, order)
    return opened.result(tagger, step, kept)


def _give_names(folder: Path, target: Path, manifest: Manifest, vocabulary: Vocabulary, stages: Stages) -> UpdateResult:
    """Change topics' names and broader topics in a model that is not updatable; all else stays, byte for byte."""
    before = {topic: (name,) for topic, name in manifest.names.items()}
    names, language = all_names(before, manifest.names_language or "", manifest.topics, vocabulary)
    preferred = {topic: called[0] for topic, called in names.items()}
    storage.check_target(target)

    def write(sibling: Path) -> None:
        link_files(folder, sibling, but=MANIFEST)
        topic_names = [*map(preferred.get, manifest.topics)]
        after = vocabulary.broader_after(manifest.topics, manifest.broader_topics)
        broader = storage.broader_columns(manifest.topics, after)
        named = replace(manifest, topic_names=topic_names, names_language=language, broader=broader)
        MODEL.write_manifest(sibling, named)

    history = History(folder, manifest.sha256, lambda: None)
    step = history.next_step("learn", vocabulary=vocabulary_entry(vocabulary))
    with stages.stage("save"):
        is_logged = write_and_log(write, folder, target, history, step, None)
    tagger = storage.load(target)
    return UpdateResult(
        tagger,
        target,
        (),
        (),
        (),
        manifest.sizes,
        tagger.evaluation,
        newly_named(manifest, preferred),
        step.number if is_logged else None,
    )


def _checked_documents(documents: Any, origin: Mapping[str, Any], **columns: Any) -> Sequence[Document]:
    """Return the argument `documents` of `learn` as a list; raise TextcatError if it is wrong, or lacks an id.

    `origin` is the `Corpus.origin` of the training corpus, and `columns` are arguments of `as_documents`.
    """
    if isinstance(documents, str | Path):
        settings = column_settings(**columns) or settings_like(origin, documents)
        return documents_to_learn(open_corpus(documents, settings=settings))
    if isinstance(documents, Corpus | Card):
        return documents_to_learn(corpus_of(documents, **columns))
    if isinstance(documents, Mapping) or hasattr(documents, "zones"):
        raise TextcatError(
            f"A {type(documents).__name__} is not a list of documents: give a list of documents or records, each with "
            "an id."
        )
    if not is_table(documents):
        documents = [*documents]
        if not any(isinstance(record, Mapping) for record in documents):
            if wrong := [record for record in documents if not isinstance(record, Document)]:
                raise TextcatError(
                    f"{wrong[0]!r:.60} is not a document: give a Document, or a dict with an id and a text."
                )
            return documents
    for called, id_ in _names_and_ids(documents):
        if is_missing(id_):
            raise TextcatError(f"{called} has no id: give each its own, to tell it from others.")
    return as_documents(documents, trained_on=named_in_training(origin), **columns)


def documents_to_learn(corpus: Corpus) -> list[Document]:
    """Return the documents of a corpus; those of its test part get the split "test"."""
    return [*corpus.train, *(replace(document, split="test") for document in corpus.test)]


def _names_and_ids(records: Any) -> Iterable[tuple[str, Any]]:
    """Yield pairs of a name for messages and an id: of each dict, or each row of a table with a column "id".

    Yield nothing for other inputs, such as a table whose index has the ids. Raise TextcatError if a table has no column
    "id", and its index only numbers the rows.
    """
    if not is_table(records):
        numbered = enumerate(records, start=1)
        return ((f"Record {number}", record.get("id")) for number, record in numbered if isinstance(record, Mapping))
    frame = Frame.of(records) or Frame(records)
    if frame.is_column:
        return ()  # `as_documents` will refuse these
    if "id" in frame.columns:
        ids = (id_ for (id_,) in frame.rows(["id"]))
        return zip(map("Row {}".format, frame.row_names), ids, strict=True)
    if frame.is_numbered:
        raise TextcatError(
            "The table has no ids, as its index only numbers its rows: give it a column 'id', or an index of ids."
        )
    return ()
