"""A document, and a corpus of them: train and test part, topics, labels, statistics."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from textcat.errors import TextcatError

if TYPE_CHECKING:
    from scipy import sparse

TOPIC_RULES = ("both", "train", "described")
PARTS = ("train", "test", "unused")

_SEPARATORS = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class Document:
    """Keep one text with what is known about it.

    Parameters
    ----------
    id : str
        Unique in its corpus.
    zones : dict of str to str
        The parts of the text in the order title, dateline, body; a reader leaves out zones its format does not have.
    topics : tuple of str
        Names of the topics the document belongs to, each once; often none.
    date : str
        As the source writes it, ``""`` if it has none.
    split : str
        ``"train"``, ``"test"``, ``"unused"``, or ``""`` where the source makes no parts.
    """

    id: str
    zones: dict[str, str]
    topics: tuple[str, ...] = ()
    date: str = ""
    split: str = ""


@dataclass(frozen=True)
class Statistics:
    """Hold the counts that describe a corpus.

    Parameters
    ----------
    documents, without_topic : dict of str to int
        Per part (``"train"``, ``"test"``, ``"unused"``): its documents, and those of them that carry no topic at all.
    topics : tuple of str
        Sorted by name, as in the corpus; the arrays below are in this order.
    train_positives, test_positives : ndarray of shape (n_topics,), int64
        Documents of the part that belong to the topic.
    prevalence : ndarray of shape (n_topics,), float64
        Fraction of the training documents that belong to the topic, in [0, 1].
    """

    documents: dict[str, int]
    without_topic: dict[str, int]
    topics: tuple[str, ...]
    train_positives: np.ndarray
    test_positives: np.ndarray
    prevalence: np.ndarray


@dataclass(frozen=True)
class Corpus:
    """Hold the parts of a named corpus and the topics it is about.

    Parameters
    ----------
    name : str
    train, test : list of Document
        `test` is empty where the source has no test part.
    topics : tuple of str
        Sorted by name; the columns of `labels`.
    unused : list of Document
        Documents the split rule leaves out of both parts.
    descriptions : dict of str to str
        What topics are about, in words, for those of `topics` that the source describes.
    """

    name: str
    train: list[Document]
    test: list[Document]
    topics: tuple[str, ...]
    unused: list[Document] = field(default_factory=list)
    descriptions: dict[str, str] = field(default_factory=dict)

    @classmethod
    def from_documents(
        cls,
        name: str,
        documents: Iterable[Document],
        topics: str = "both",
        descriptions: Mapping[str, str] | None = None,
    ) -> Corpus:
        """Sort documents into parts and choose the topics.

        Parameters
        ----------
        name : str
        documents : iterable of Document
            A split of ``""`` counts as ``"train"``.
        topics : {"both", "train", "described"}
            Which topics count: those with a document in both parts (as in the 90 topics of Reuters-21578's ModApte
            split), all those with a training document, or those with a training document or a description. Without a
            test part, ``"both"`` is ``"train"``.
        descriptions : mapping of str to str, optional
            What topics are about, in words.

        Raises
        ------
        TextcatError
            If `topics` is none of these, or no document is for training.
        """
        if topics not in TOPIC_RULES:
            raise TextcatError(
                f"The topics of a corpus are chosen by 'both', 'train' or 'described', not by {topics!r}."
            )
        described = dict(descriptions or {})
        parts: dict[str, list[Document]] = {part: [] for part in PARTS}
        for document in documents:
            parts[document.split or "train"].append(document)
        if not parts["train"]:
            raise TextcatError(f"Corpus {name} has no training document: check its files and its split rule.")
        chosen = set(topic_counts(parts["train"]))
        if topics == "both" and parts["test"]:
            chosen &= set(topic_counts(parts["test"]))
        elif topics == "described":
            chosen |= set(described)
        kept = {topic: described[topic] for topic in sorted(chosen & set(described))}
        return cls(name, parts["train"], parts["test"], tuple(sorted(chosen)), parts["unused"], kept)

    def described(self) -> list[Document]:
        """Return a document per topic, in the order of `topics`, that says what the topic is about.

        Its text, the same in title and body, is the topic's name, and its description if it has one.
        """
        documents = []
        for topic in self.topics:
            # As words: the tokenizer would take rec.sport.hockey for the address of a site.
            text = f"{_SEPARATORS.sub(' ', topic)} {self.descriptions.get(topic, '')}".strip()
            documents.append(Document(f"description of {topic}", {"title": text, "body": text}, (topic,)))
        return documents

    def labels(self, documents: Sequence[Document]) -> sparse.csc_matrix:
        """Return which documents belong to which topics of this corpus.

        Parameters
        ----------
        documents : sequence of Document
            Topics that are not in the corpus are passed over.

        Returns
        -------
        csc_matrix of shape (n_documents, n_topics), int8
            1 where the document belongs to the topic; a column per topic in the order of `topics`.
        """
        from scipy import sparse  # here, so that a process which only reads documents stays small

        column = {topic: j for j, topic in enumerate(self.topics)}
        rows = [sorted(column[topic] for topic in document.topics if topic in column) for document in documents]
        indices = np.array([j for row in rows for j in row], dtype=np.int32)
        indptr = np.array([0, *accumulate(map(len, rows))], dtype=np.int32)
        data = np.ones(len(indices), dtype=np.int8)
        return sparse.csr_matrix((data, indices, indptr), shape=(len(rows), len(self.topics))).tocsc()

    def statistics(self) -> Statistics:
        """Count documents, topics and positives per part."""
        parts = {"train": self.train, "test": self.test, "unused": self.unused}
        train, test = topic_counts(self.train), topic_counts(self.test)
        train_positives = np.array([train[topic] for topic in self.topics], dtype=np.int64)
        return Statistics(
            documents={part: len(documents) for part, documents in parts.items()},
            without_topic={part: sum(not d.topics for d in documents) for part, documents in parts.items()},
            topics=self.topics,
            train_positives=train_positives,
            test_positives=np.array([test[topic] for topic in self.topics], dtype=np.int64),
            prevalence=train_positives / len(self.train),
        )


def topic_counts(documents: Iterable[Document]) -> Counter[str]:
    """Count the documents of each topic."""
    return Counter(topic for document in documents for topic in document.topics)
