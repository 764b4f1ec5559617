"""Change the documents of a model's corpus: add, correct and remove documents, and give names to topics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from textcat.base.errors import TextcatError, did_you_mean
from textcat.corpus.documents import Corpus, Document, topic_counts
from textcat.corpus.vocabulary import Vocabulary


class Change(NamedTuple):
    """The changes of one update of a model's documents.

    `old` has the model's `n_train` training documents, then its test documents. The documents that are `gone` or
    `corrected` are given by their positions in `old`. A correction that judges some topics only (its `labelled_for` is
    not None) leaves the labels for the others as they were.
    """

    gone: tuple[int, ...]
    corrected: dict[int, Document]
    added: tuple[tuple[Document, ...], tuple[Document, ...]]  # added to the training part and to the test part
    old: Sequence[Document]
    n_train: int

    @classmethod
    def of(cls, corpus: Corpus, new: Sequence[Document], remove: Sequence[str]) -> Change:
        """Return the change that adds or corrects the documents `new`, and removes those with the ids `remove`.

        Raise TextcatError if the change is not possible.
        """
        old = [*corpus.train, *corpus.test]
        position_of = {document.id: i for i, document in enumerate(old)}
        new = [document for document in new if document.split != "unused"]
        ids = [document.id for document in new]
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
        gone = tuple(position_of[id_] for id_ in dict.fromkeys(remove))
        return cls(gone, corrected, (train, test), old, n_train)

    @property
    def counted(self) -> list[Document]:
        """New and corrected documents whose terms must be counted: all except corrections without a text."""
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

    def order(self) -> np.ndarray:
        """Return for each document of the new corpus the number by which its term counts are found.

        This number is the document's position in `old` or, if it is in `counted`, its position there plus `len(old)`.
        """
        position_of = {document.id: len(self.old) + i for i, document in enumerate(self.counted)}
        order = [
            position_of.get(id_, i)
            for stay, added in zip(self._staying(), self.added, strict=True)
            for id_, i in (*((self.old[i].id, i) for i in stay), *((document.id, -1) for document in added))
        ]
        return np.array(order, np.int64)

    def corpus(self, before: Corpus, *, new_topics_negative: bool) -> Corpus:
        """Return the corpus after the change.

        A document has its text only if the corpus `before` has the text, or the document is new or corrected by a text.
        """
        former = {*before.topics, *(name for d in self.old for name in (*d.topics, *(d.labelled_for or ())))}
        learnt = [*self.added[0], *(d for i, d in self.corrected.items() if i < self.n_train)]
        brought = {topic for document in learnt for topic in document.topics}
        relabelled = partial(_relabelled, former, brought - former, new_topics_negative)

        def current(i: int) -> Document:
            old, new = self.old[i], self.corrected.get(i)
            if new is None:
                return relabelled(old)
            if new.labelled_for is not None:
                new = _with_labels_for_others(new, relabelled(old))
            return replace(new, zones=new.zones if any(new.zones.values()) else old.zones)

        staying = [
            [replace(d, split="") if d.split else d for d in (*map(current, stay), *added)]
            for stay, added in zip(self._staying(), self.added, strict=True)
        ]
        # Topics of which all documents were removed must be forgotten, as if no document had been judged for them.
        left = {topic for part in staying for document in part for topic in document.topics}
        forgotten = {topic for i in self.gone for topic in self.old[i].topics} - left
        train, test = ([_without_judged(document, forgotten) for document in part] for part in staying)
        if not train:
            raise TextcatError("No training document would be left: remove fewer documents, or add others.")
        has, had = topic_counts(train), topic_counts(before.train)
        described = {*before.descriptions, *before.names} if before.topic_rule == "described" else set()
        stay = {topic for topic in before.topics if has[topic] or not had[topic] or topic in described}
        topics = stay | brought
        about = {topic: text for topic, text in before.descriptions.items() if topic in topics}
        names = {topic: called for topic, called in before.names.items() if topic in topics}
        return replace(before, train=train, test=test, topics=tuple(sorted(topics)), descriptions=about, names=names)


def _relabelled(former: set[str], new: set[str], are_negative: bool, document: Document) -> Document:
    """Return a document of the former corpus, with new topics taken into account in its field `labelled_for`.

    `labelled_for` names the topics that the document was judged for; None: all. It was judged for topics in `former`
    only. If `are_negative` is set, it counts as a negative example of the topics `new`; otherwise, it is left out for
    these.
    """
    if not new or (document.labelled_for is None) == are_negative:
        return document
    return replace(document, labelled_for=(*(document.labelled_for or ()), *sorted(new if are_negative else former)))


def _with_labels_for_others(new: Document, old: Document) -> Document:
    """Return the document `new` with the labels of `old` for the topics that `new` was not judged for."""
    judged = {*(new.labelled_for or ()), *new.topics}
    kept = [topic for topic in old.topics if topic not in judged]
    labelled_for = None if old.labelled_for is None else (*old.labelled_for, *(new.labelled_for or ()))
    return replace(new, topics=(*kept, *new.topics), labelled_for=labelled_for)


def _without_judged(document: Document, topics: set[str]) -> Document:
    """Return a document without the given topics in `labelled_for`, the topics that it was judged for."""
    if document.labelled_for is None or topics.isdisjoint(document.labelled_for):
        return document
    return replace(document, labelled_for=tuple(topic for topic in document.labelled_for if topic not in topics))


def all_names(
    names: Mapping[str, tuple[str, ...]], language: str, topics: Iterable[str], vocabulary: Vocabulary
) -> tuple[dict[str, tuple[str, ...]], str]:
    """Return the names of topics, updated by a vocabulary, and the language of the names; "" if it is not one.

    `names` are the former names, in `language`; the vocabulary's names for a topic replace them.
    """
    read = vocabulary.of(topics)
    is_one = language == vocabulary.language or names.keys() <= read.keys()
    return {**names, **read}, vocabulary.language if is_one else ""


def _with_current_topics(corpus: Corpus, vocabulary: Vocabulary, place: str, *, warn: bool) -> Corpus:
    """Return a corpus in which topics that a vocabulary marks as deprecated are replaced or removed.

    Topics that an earlier vocabulary marked as deprecated remain deprecated, unless `vocabulary` names them. `place` is
    the model's folder, which warnings name.
    """
    earlier = {topic: others for topic, others in corpus.replacements.items() if topic not in vocabulary.names}
    combined = Vocabulary({}, place, replacements={**earlier, **vocabulary.replacements})
    topics = tuple(sorted(combined.replaced(corpus.topics)))
    train, test = (combined.current(part, warn=warn) for part in (corpus.train, corpus.test))
    return replace(corpus, train=train, test=test, topics=topics, replacements=combined.replacements)


def _with_names(corpus: Corpus, vocabulary: Vocabulary) -> Corpus:
    if corpus.topic_rule == "described":  # in this case, each concept of the vocabulary is a topic
        described = vocabulary.names.keys() | vocabulary.descriptions.keys()
        topics = tuple(sorted({*corpus.topics, *described}))
        corpus = replace(corpus, topics=topics)
    names, language = all_names(corpus.names, corpus.names_language, corpus.topics, vocabulary)
    # A vocabulary without descriptions keeps the descriptions that the corpus has.
    about = {**corpus.descriptions, **vocabulary.descriptions_of(corpus.topics)}
    broader = vocabulary.broader_after(corpus.topics, corpus.broader)
    return replace(corpus, names=names, names_language=language, descriptions=about, broader=broader)


def change_corpus(
    corpus: Corpus,
    new: Sequence[Document],
    remove: Sequence[str],
    vocabulary: Vocabulary | None,
    *,
    new_topics_negative: bool,
    place: str = "",
    warn: bool = True,
) -> tuple[Change, Corpus]:
    """Return the change by which `textcat learn` updates a model's corpus, and the corpus after the change.

    The documents `new` are added, or replace those with the same id; `remove` has ids. If a document was judged for
    some topics only, the labels that it had for the others stay. `place` is the model's folder, which warnings name;
    with `warn` False, there are none. Raise TextcatError if the change is impossible.
    """
    former = corpus if vocabulary is None else _with_current_topics(corpus, vocabulary, place, warn=warn)
    new = Vocabulary({}, place, replacements=former.replacements).current(new, warn=warn)
    change = Change.of(former, new, remove)
    changed = change.corpus(former, new_topics_negative=new_topics_negative)
    return change, changed if vocabulary is None else _with_names(changed, vocabulary)
