"""Update a model with documents to add, correct or remove: the result is the model that training from scratch gives."""

from __future__ import annotations

import logging
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from textcat.base.disk import expanded, installed_version
from textcat.base.errors import TextcatError, did_you_mean
from textcat.base.folders import MANIFEST
from textcat.base.frames import Frame, is_missing, is_table
from textcat.base.progress import Stages
from textcat.corpus.cards import Card
from textcat.corpus.catalogue import column_settings, corpus_of, open_corpus, settings_like
from textcat.corpus.documents import Corpus, Document, topic_counts
from textcat.corpus.vocabulary import Vocabulary
from textcat.evaluation.evaluation import Evaluation
from textcat.features.counts import StoredCounts
from textcat.model import storage
from textcat.model.manifest import COUNTS, MODEL, Manifest, read_manifest
from textcat.model.previous import alone_with, link_files, remove_leftovers_of_model, replace_model, restore_previous
from textcat.model.tagger import Tagger
from textcat.reading import as_documents, named_in_training
from textcat.reading.labels import folded_name
from textcat.training.examples import CountedCorpus
from textcat.training.train import train_and_evaluate, train_and_score

if TYPE_CHECKING:
    from textcat.features.tfidf import TfIdf

log = logging.getLogger(__name__)


class UpdateResult(NamedTuple):
    """An updated model, and what has changed.

    Attributes
    ----------
    tagger, folder : Tagger, Path
        The new model, and the folder it was written to.
    added, corrected, removed : tuple of str
        The ids of the documents that were added, corrected and removed.
    sizes_before : dict of str to int
        How many training documents each topic had before.
    before : Evaluation or None
        The evaluation of the previous model; the evaluation of the new model is `tagger.evaluation`.
    named : tuple of str
        The topics that have a new or another preferred name.
    """

    tagger: Tagger
    folder: Path
    added: tuple[str, ...]
    corrected: tuple[str, ...]
    removed: tuple[str, ...]
    sizes_before: dict[str, int]
    before: Evaluation | None
    named: tuple[str, ...] = ()

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per topic of either model: training documents, average precision and F1 before and after."""
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


def learn(
    model: str | os.PathLike[str],
    documents: Any = (),
    remove: str | Iterable[str] = (),
    *,
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
    """Add documents to a model or remove some: the result is, to the bit, the model that training from scratch gives.

    Training uses the known documents, then the new ones, in the order of their addition. A document with a known id is
    a correction, and replaces that document; without a text, it corrects only the topics. Documents whose `split` is
    "test" are added to the test documents. The new model has the topics of the old one that still have a training
    document, and the topics of the new documents. For a new topic, the earlier documents are neither positive nor
    negative examples, as nobody has judged them for it.

    Names of topics are added or replaced, too, and kept by all later updates. A model that was not trained with
    ``updatable=True`` can only be given names, which change nothing else in the model.

    Parameters
    ----------
    model : path
        Folder of a model that was trained with ``updatable=True``.
    documents : Corpus, DataFrame, iterable of Document or dict, str or Path
        As for `train`, or a list of Document. A dict must have an id, and a table a column or an index of ids.
    remove : str or iterable of str
        The ids of documents to remove. Nothing of these documents is left in the folder, so the update
        cannot be undone.
    text, topics, topics_separator : str or sequence of str, the same, str
        The columns of a table, or the fields of a dict or a file, as for `train`. The default of `text` for tables and
        dicts is the fields that training named. If none of the three is given, a file is read as those of training
        were, by the fields, format and other settings that were named then.
    out : path, optional
        Where to write the new model. By default, it replaces the old model, which `undo_learn` can restore.
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
    folder, stages = expanded(model).resolve(), stages or Stages()
    target = folder if out is None else expanded(out).resolve()
    with alone_with(folder):
        remove_leftovers_of_model(folder)
        remove_leftovers_of_model(target)
        manifest = read_manifest(folder)
        columns = {"text": text, "topics": topics, "topics_separator": topics_separator}
        new = _checked_documents(documents, manifest.origin, **columns)
        gone = [remove] if isinstance(remove, str) else [*remove]
        names = None if vocabulary is None else _read_vocabulary(vocabulary, vocabulary_language, manifest)
        if names and not (new or gone or COUNTS in manifest.files):
            with stages.stage("save"):
                return _give_names(folder, target, manifest, names)
        with stages.stage("read"):
            stored, manifest, before = storage.load_training_counts(folder)
            former = _with_current_topics(stored.corpus, names, str(folder))
            new = Vocabulary({}, str(folder), replacements=former.replacements).current(new)
        storage.check_target(target)
        change = _Change.of(former, new, gone, is_named=names is not None)
        recipe = replace(manifest.recipe, name=folder.name).of_model()
        _warn_of_other_tokens(folder, manifest)
        with stages.stage("tokens to rows", len(change.counted)):
            features = recipe.make_features()
            corpus = change.corpus(former, new_topics_negative=new_topics_negative)
            corpus = corpus if names is None else _with_names(corpus, names)
            counts = change.counts(stored.counts, features)
            counted = CountedCorpus.of_document_counts(corpus, recipe, counts, features)
        _warn_of_new_topics(corpus, set(corpus.topics) - {*former.topics})
        options: dict[str, Any] = {"n_jobs": n_jobs, "stages": stages, "counted": counted, "updatable": True}
        options["keep_support"] = stored.keep_support
        if stored.is_measured:
            tagger = train_and_evaluate(corpus, recipe, bands=stored.bands, **options)
        else:
            tagger = train_and_score(corpus, recipe, **options).tagger
        with stages.stage("save"):
            _write(partial(storage.write_model, tagger), folder, target, manifest.sha256, undoable=not change.gone)
    return UpdateResult(tagger, target, *change.ids(), manifest.sizes, before, _renamed(manifest, tagger.topic_names))


def undo_learn(model: str | os.PathLike[str]) -> Path:
    """Restore a model as it was before the last `learn`, byte for byte; only one step can be undone.

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
    folder = expanded(model).resolve()
    with alone_with(folder):
        restore_previous(folder)
    return folder


def _read_vocabulary(path: str | os.PathLike[str], language: str | None, manifest: Manifest) -> Vocabulary:
    """Read names of topics in `language` or, by default, in the language of the model's names or else of its texts.

    A TSV file has names in one language only, and does not name it.
    """
    has_one_language = ".tsv" in Path(path).suffixes  # which it does not say
    return Vocabulary.read(Path(path), language or (None if has_one_language else manifest.language))


def _all_names(
    names: Mapping[str, tuple[str, ...]], language: str, topics: Iterable[str], vocabulary: Vocabulary
) -> tuple[dict[str, tuple[str, ...]], str]:
    """Return the names of topics, updated by a vocabulary, and their language; "" if the languages differ.

    `names` are the names so far, in `language`; a topic that the vocabulary names gets the names there instead.
    """
    read = vocabulary.of(topics)
    is_one = language == vocabulary.language or names.keys() <= read.keys()
    return {**names, **read}, vocabulary.language if is_one else ""


def _with_current_topics(corpus: Corpus, vocabulary: Vocabulary | None, place: str) -> Corpus:
    """Return a corpus whose topics that a vocabulary says are deprecated are replaced or left out.

    Topics that an earlier vocabulary called deprecated stay so, unless `vocabulary` names them. Warnings name `place`.
    """
    if vocabulary is None:
        return corpus
    earlier = {topic: others for topic, others in corpus.replacements.items() if topic not in vocabulary.names}
    combined = Vocabulary({}, place, replacements={**earlier, **vocabulary.replacements})
    topics = tuple(sorted(combined.replaced(corpus.topics)))
    train, test = combined.current(corpus.train), combined.current(corpus.test)
    return replace(corpus, train=train, test=test, topics=topics, replacements=combined.replacements)


def _with_names(corpus: Corpus, vocabulary: Vocabulary) -> Corpus:
    if corpus.topic_rule == "described":  # then each concept of the vocabulary is a topic
        described = vocabulary.names.keys() | vocabulary.descriptions.keys()
        topics = tuple(sorted({*corpus.topics, *described}))
        corpus = replace(corpus, topics=topics)
    names, language = _all_names(corpus.names, corpus.names_language, corpus.topics, vocabulary)
    # A vocabulary without descriptions leaves those that the corpus has.
    about = {**corpus.descriptions, **vocabulary.descriptions_of(corpus.topics)}
    broader = vocabulary.broader_of(corpus.topics) or corpus.broader
    return replace(corpus, names=names, names_language=language, descriptions=about, broader=broader)


def _renamed(manifest: Manifest, names: Mapping[str, str]) -> tuple[str, ...]:
    """Return the topics whose preferred name in `names` is new, or differs from the name in the model's manifest."""
    before = manifest.names
    return tuple(topic for topic, name in names.items() if before.get(topic) != name)


def _give_names(folder: Path, target: Path, manifest: Manifest, vocabulary: Vocabulary) -> UpdateResult:
    """Change the names of topics in a model that is not updatable; all else stays as it is, byte for byte."""
    before = {topic: (name,) for topic, name in manifest.names.items()}
    names, language = _all_names(before, manifest.names_language or "", manifest.topics, vocabulary)
    preferred = {topic: called[0] for topic, called in names.items()}
    storage.check_target(target)

    def write(sibling: Path) -> None:
        link_files(folder, sibling, but=MANIFEST)
        topic_names = [*map(preferred.get, manifest.topics)]
        broader = storage.broader_columns(manifest.topics, vocabulary.broader_of(manifest.topics)) or manifest.broader
        named = replace(manifest, topic_names=topic_names, names_language=language, broader=broader)
        MODEL.write_manifest(sibling, named)

    _write(write, folder, target, manifest.sha256, undoable=True)
    tagger = storage.load(target)
    return UpdateResult(tagger, target, (), (), (), manifest.sizes, tagger.evaluation, _renamed(manifest, preferred))


class _Change(NamedTuple):
    """Changes of a model's documents.

    `old` has the model's `n_train` training documents, then its test documents. The documents that are `gone` or
    `corrected` are given by their positions in `old`.
    """

    gone: tuple[int, ...]
    corrected: dict[int, Document]
    added: tuple[tuple[Document, ...], tuple[Document, ...]]  # to the training and the test part
    old: Sequence[Document]
    n_train: int

    @classmethod
    def of(cls, corpus: Corpus, new: Sequence[Document], remove: Sequence[str], *, is_named: bool) -> _Change:
        """Return the change that adds or corrects the documents `new`, and removes those with the ids `remove`.

        Raise TextcatError if the change is not possible, or if there is nothing to change: `new` and `remove` are
        empty, and `is_named` (whether topics get names, too) is False.
        """
        old = [*corpus.train, *corpus.test]
        position_of = {document.id: i for i, document in enumerate(old)}
        new = [document for document in new if document.split != "unused"]
        ids = [document.id for document in new]
        if not (new or remove or is_named):
            raise TextcatError("There is nothing to learn: give documents, ids to remove, or names of topics.")
        for id_ in remove:
            if id_ not in position_of:
                hint = did_you_mean(id_, position_of)
                raise TextcatError(f"The model has no document {id_!r}, so it cannot be removed.{hint}")
        if twice := [id_ for id_, n in Counter([*ids, *dict.fromkeys(remove)]).items() if n > 1]:
            what = "both to be learnt and removed" if twice[0] in remove else "given twice"
            raise TextcatError(f"Document {twice[0]!r} is {what}: give each document once.")
        n_train = len(corpus.train)
        corrected = {position_of[document.id]: document for document in new if document.id in position_of}
        for position, document in corrected.items():
            part = "train" if position < n_train else "test"
            if document.split not in ("", part):
                raise TextcatError(
                    f"Document {document.id!r} is in the {part} part of the model, and cannot be moved to the "
                    f"{document.split} part: remove it, then learn it again."
                )
        added = [document for document in new if document.id not in position_of]
        train, test = (tuple(d for d in added if (d.split == "test") == is_test) for is_test in (False, True))
        return cls(tuple(position_of[id_] for id_ in dict.fromkeys(remove)), corrected, (train, test), old, n_train)

    @property
    def counted(self) -> list[Document]:
        """New and corrected documents whose terms are to be counted: all but corrections without a text."""
        return [*(d for d in self.corrected.values() if any(d.zones.values())), *self.added[0], *self.added[1]]

    def ids(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """Return three tuples: the ids of added, of corrected and of removed documents."""
        of_added = (document.id for part in self.added for document in part)
        corrected = (document.id for document in self.corrected.values())
        return tuple(of_added), tuple(corrected), tuple(self.old[i].id for i in self.gone)

    def _staying(self) -> tuple[list[int], list[int]]:
        """Return the positions of the training documents that stay, and of the test documents that stay."""
        stay = np.setdiff1d(np.arange(len(self.old)), np.array(self.gone, int)).tolist()
        return [i for i in stay if i < self.n_train], [i for i in stay if i >= self.n_train]

    def counts(self, counts: StoredCounts, features: TfIdf) -> StoredCounts:
        """Return the counts of all documents after the change; `counts` are those before the change."""
        if new := self.counted:
            counts = counts.extended(StoredCounts.of_documents(*features.count_all(new), np.arange(len(new))))
        position_of = {document.id: len(self.old) + i for i, document in enumerate(new)}
        order = [
            position_of.get(id_, i)
            for stay, added in zip(self._staying(), self.added, strict=True)
            for id_, i in (*((self.old[i].id, i) for i in stay), *((document.id, -1) for document in added))
        ]
        return counts.select(np.array(order, np.int64))

    def corpus(self, before: Corpus, *, new_topics_negative: bool) -> Corpus:
        """Return the corpus after the change.

        A document has its text only if the corpus `before` has the text, or the document is new or corrected by a text.
        """
        former = {*before.topics, *(name for d in self.old for name in (*d.topics, *(d.labelled_for or ())))}
        learnt = [*self.added[0], *(d for i, d in self.corrected.items() if i < self.n_train)]
        brought = {topic for document in learnt for topic in document.topics}
        relabelled = partial(_labelled, former, brought - former, new_topics_negative)

        def current(i: int) -> Document:
            old, new = self.old[i], self.corrected.get(i)
            if new is None:
                return relabelled(old)
            return replace(new, zones=new.zones if any(new.zones.values()) else old.zones)

        staying = [
            [replace(d, split="") if d.split else d for d in (*map(current, stay), *added)]
            for stay, added in zip(self._staying(), self.added, strict=True)
        ]
        # Topics that only removed documents had must be forgotten, as if no document had been judged for them.
        left = {topic for part in staying for document in part for topic in document.topics}
        forgotten = {topic for i in self.gone for topic in self.old[i].topics} - left
        train, test = ([_without(document, forgotten) for document in part] for part in staying)
        if not train:
            raise TextcatError("No training document would be left: remove fewer documents, or add others.")
        has, had = topic_counts(train), topic_counts(before.train)
        described = {*before.descriptions, *before.names} if before.topic_rule == "described" else set()
        stay = {topic for topic in before.topics if has[topic] or not had[topic] or topic in described}
        topics = tuple(sorted(stay | brought))
        about = {topic: text for topic, text in before.descriptions.items() if topic in topics}
        names = {topic: called for topic, called in before.names.items() if topic in topics}
        changed = {"train": train, "test": test, "topics": topics, "descriptions": about, "names": names}
        return replace(before, **changed)  # type: ignore[arg-type]


def _labelled(former: set[str], new: set[str], are_negative: bool, document: Document) -> Document:
    """Return a document from before the update, with its field `labelled_for` set as the new topics require.

    `labelled_for` names the topics that the document was judged for. A document from before the update was judged for
    the `former` topics only. If `are_negative` is set, it counts as judged for the topics `new`, too, and is a negative
    example of these topics.
    """
    if not new or (document.labelled_for is None) == are_negative:
        return document
    return replace(document, labelled_for=(*(document.labelled_for or ()), *sorted(new if are_negative else former)))


def _without(document: Document, topics: set[str]) -> Document:
    """Return a document whose `labelled_for` lacks the given topics."""
    if document.labelled_for is None or topics.isdisjoint(document.labelled_for):
        return document
    return replace(document, labelled_for=tuple(topic for topic in document.labelled_for if topic not in topics))


def _checked_documents(documents: Any, origin: Mapping[str, Any], **columns: Any) -> Sequence[Document]:
    """Return the documents of what `learn` takes; raise TextcatError for anything else, or if an id is missing.

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
    for called, id_ in _called_with_ids(documents):
        if is_missing(id_):
            raise TextcatError(f"{called} has no id: give each its own, to tell it from others.")
    return as_documents(documents, trained_on=named_in_training(origin), **columns)


def documents_to_learn(corpus: Corpus) -> list[Document]:
    """Return the documents of a corpus, those of its test part with the split "test"."""
    return [*corpus.train, *(replace(document, split="test") for document in corpus.test)]


def _called_with_ids(records: Any) -> Iterable[tuple[str, Any]]:
    """Return an iterable of what messages call each record or row of a table, and of its id.

    Raise TextcatError if the rows of a table have neither a column of ids nor an index of names.
    """
    if not is_table(records):
        numbered = enumerate(records, start=1)
        return ((f"Record {number}", record.get("id")) for number, record in numbered if isinstance(record, Mapping))
    frame = Frame.of(records) or Frame(records)
    if frame.is_column:
        return ()  # which `as_documents` refuses
    if "id" in frame.columns:
        ids = (id_ for (id_,) in frame.rows(["id"]))
        return zip(map("Row {}".format, frame.row_names), ids, strict=True)
    if frame.is_numbered:
        raise TextcatError(
            "The table has no ids, as its index only numbers its rows: give it a column 'id', or an index of ids."
        )
    return ()


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
        if not near and not re.search(r"\d", topic):  # c21 is no misspelling of c22
            near = get_close_matches(topic, names, n=1, cutoff=0.8)
        if near:
            log.warning(
                "The new topic %r is spelt almost like the known topic %r: if it is misspelt, learn its documents "
                "again with the right name.",
                *(topic, near[0]),
            )


def _write(write: Callable[[Path], None], folder: Path, target: Path, expected: str, *, undoable: bool) -> None:
    """Write a changed model to another folder, or in place of the model it was made from, atomically.

    `write` is called with an empty folder, and writes the model's files to it. `expected` is the checksum that the
    model in `folder` must still have. If `undoable`, the replaced model is kept, so that the update can be undone.
    """
    if target == folder:
        replace_model(folder, write, expected, keep=undoable)
        return
    with MODEL.replacing(target) as sibling:
        write(sibling)
