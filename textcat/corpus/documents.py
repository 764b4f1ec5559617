"""The corpus: documents in a training and a test part, their topics and labels, and statistics."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import chain, islice
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from textcat.base.errors import TextcatError
from textcat.base.folds import stratified_sample
from textcat.base.frames import is_boolean, is_table, named_columns
from textcat.base.markup import html_table
from textcat.base.settings import check_whole_number
from textcat.base.words import with_spaces
from textcat.reading.dates import date_range
from textcat.reading.document import PARTS, Document
from textcat.reading.in_memory import as_documents, origin_of_columns
from textcat.reading.labels import unlabelled_because

if TYPE_CHECKING:
    from scipy import sparse

__all__ = ["Corpus", "Document", "largest_topics_table", "shortened_text", "topic_counts"]

TOPIC_RULES = ("both", "train", "described")
TABLE, RECORDS = "table", "records"  # default names of corpora made in memory

_TOPICS_SHOWN = 20
# Of 20 Newsgroups, 13 % of the training documents repeat an earlier one at least in part, and of Reuters-21578, 9 %.
_SHARE_OF_REPEATS, _FEWEST_REPEATS = 0.2, 5
_FEWEST_DIFFERENT = 20  # documents, below which folds without repeats would lack whole topics
# a URI of any scheme, or a prefixed code such as medtop:20000317
_URI = re.compile(r"<?(?:[a-z][a-z0-9+.-]*://|urn:|info:|doi:)\S+|<?[a-z][\w.-]*:[\w./-]*\d[\w./-]*>?", re.IGNORECASE)


def name_in_words(name: str) -> str:
    """Return a topic's name with spaces for separators; "" if it is a URI, whose words do not describe the topic.

    Otherwise, the tokenizer would treat rec.sport.hockey as a web address.
    """
    return "" if _URI.fullmatch(name.strip()) else with_spaces(name)


@dataclass(frozen=True)
class _Statistics:
    """Counts that describe a corpus; each array has one entry per topic, in the order of `topics`."""

    documents: dict[str, int]  # the number of documents of each part: "train", "test", "unused"
    without_topic: dict[str, int]  # the number of documents of each part that have no topic
    topics: tuple[str, ...]
    train_positives: np.ndarray  # the number of training documents of each topic
    test_positives: np.ndarray  # the number of test documents of each topic
    prevalence: np.ndarray  # the fraction of the training documents that have the topic, in [0, 1]


@dataclass(frozen=True)
class Corpus:
    """A named corpus: documents in a training and a test part, and topics.

    Make one by `from_documents`, `from_records`, `from_frame` or `textcat.open_corpus`.

    Parameters
    ----------
    name : str
    train, test : list of Document
        `test` is empty if the source has no test part.
    topics : tuple of str
        The topics, sorted by name; they are the columns of the matrix that `labels` returns.
    unused : list of Document
        The documents that are in neither part.
    descriptions : dict of str to str
        For each topic that the source describes: its description in words.
    names : dict of str to tuple of str
        For each topic that a vocabulary names: its preferred name, followed by synonyms.
    names_language : str
        The language of the names; "" if unknown.
    broader : dict of str to tuple of str
        For each topic with broader ones in the vocabulary: the nearest of these that are topics of the corpus.
    replacements : dict of str to tuple of str
        For each topic that is deprecated in the vocabulary: the topics that replace it, also in documents.
    origin : dict
        The arguments (JSON values) with which `open_corpus` opens the corpus again. For a corpus made in memory, it has
        only the names of the text columns, if they were given.
    topic_rule : str
        The rule by which the topics were chosen: the value of the argument `topics` of `from_documents`.
    unlabelled : str
        Why no document has a topic, as the end of a sentence (where topics were looked for); "" if any has.
    """

    name: str
    train: list[Document]
    test: list[Document]
    topics: tuple[str, ...]
    unused: list[Document] = field(default_factory=list)
    descriptions: dict[str, str] = field(default_factory=dict)
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    names_language: str = ""
    broader: dict[str, tuple[str, ...]] = field(default_factory=dict)
    replacements: dict[str, tuple[str, ...]] = field(default_factory=dict)
    origin: dict[str, Any] = field(default_factory=dict, compare=False)
    topic_rule: str = field(default="train", compare=False)
    unlabelled: str = field(default="", compare=False)

    def __repr__(self) -> str:
        return f"Corpus({self.name!r}: {self._sizes()})"

    def _repr_html_(self) -> str:
        counts = topic_counts(self.train)
        largest = sorted(self.topics, key=lambda topic: (-counts[topic], topic))
        rows = [(topic, counts[topic]) for topic in largest]
        return largest_topics_table(f"{self.name}: {self._sizes()}", ("topic", "training documents"), rows, len(rows))

    def _sizes(self) -> str:
        parts = {"training": self.train, "test": self.test, "unused": self.unused}
        sizes = [f"{len(documents):,} {part}" for part, documents in parts.items() if documents]
        topics = "1 topic" if len(self.topics) == 1 else f"{len(self.topics):,} topics"
        return f"{', '.join(sizes)} documents, {topics}"

    @classmethod
    def from_documents(
        cls,
        name: str,
        documents: Iterable[Document],
        topics: str = "train",
        descriptions: Mapping[str, str] | None = None,
        names: Mapping[str, tuple[str, ...]] | None = None,
    ) -> "Corpus":
        """Return a corpus of documents: a document's `split` decides its part, and `topics` chooses the topics.

        Parameters
        ----------
        name : str
        documents : iterable of Document
            A split of ``""`` is treated as ``"train"``.
        topics : {"train", "both", "described"}
            Which topics to keep. "train": topics with a training document; "both": topics with a document in both
            parts, as the 90 topics of Reuters-21578's ModApte split; "described": topics with a training document, a
            description or a name. Without a test part, "both" has the effect of "train".
        descriptions : mapping of str to str, optional
            For each topic: a description in words.
        names : mapping of str to tuple of str, optional
            For topics: the topic's preferred name, followed by synonyms.

        Returns
        -------
        Corpus

        Raises
        ------
        TextcatError
            If `topics` or the split of a document has an unknown value, a document has anything but a text as its id, a
            dict as its zones and different texts as its topics, or no document is for training.
        """
        if topics not in TOPIC_RULES:
            raise TextcatError(
                f"There is no rule {topics!r} for the topics of a corpus: choose 'both', 'train' or 'described'."
            )
        described, named = dict(descriptions or {}), dict(names or {})
        parts: dict[str, list[Document]] = {part: [] for part in PARTS}
        for document in documents:
            _check(document)
            if (part := document.split or "train") not in parts:
                choices = ", ".join(PARTS)
                raise TextcatError(f"Document {document.id} has the split {part!r}: it must be one of {choices}.")
            parts[part].append(document)
        if not parts["train"]:
            raise TextcatError(f"Corpus {name} has no training document: check its files and its split rule.")
        chosen = set(topic_counts(parts["train"]))
        if topics == "both" and parts["test"]:
            chosen &= set(topic_counts(parts["test"]))
        elif topics == "described":
            chosen |= {*described, *named}
        about = {topic: described[topic] for topic in sorted(chosen & described.keys())}
        names_of = {topic: named[topic] for topic in sorted(chosen & named.keys())}
        in_parts = parts["train"], parts["test"], tuple(sorted(chosen)), parts["unused"]
        return cls(name, *in_parts, about, names_of, topic_rule=topics)

    @classmethod
    def from_records(
        cls,
        records: Iterable[Mapping[str, Any]],
        *,
        name: str = RECORDS,
        text: str | Sequence[str] | None = None,
        id: str = "id",
        topics: str | Sequence[str] = "topics",
        topics_separator: str = "",
        split: str = "split",
        topic_rule: str = "train",
        descriptions: Mapping[str, str] | None = None,
    ) -> "Corpus":
        """Return a corpus of records in memory: dicts with the same fields as the objects of a JSON Lines file.

        Parameters
        ----------
        records : iterable of dict
            Each has its text in the fields that `text` names.
        name : str
            Name of the corpus.
        text : str or sequence of str, optional
            The fields that hold the text, in order. If several are given, "title" becomes the title zone, and the
            others are joined to the body. By default, the text is in ``text``, or else ``body``, with a ``title``; or
            in ``zones``, a dict of texts by zone.
        id, topics, split : str
            The names of the fields with the id, the topics and the part; ``""``: no such field. A record without an id
            gets its number as id, counted from 1. Topics are a list of names, or one name; a whole number is a name,
            too. A record without topics, or with None, counts as having none, with a warning if others have them. If
            several fields are given as `topics`, each is a topic, with 1 for records that have it and 0 for
            others, and the records were judged for these topics only. The part is "train", "test" or "unused". A record
            may also have a field ``labelled_for``: see `Document`.
        topics_separator : str
            The separator of topics in one string, such as ";"; ``""``: the string is one topic.
        topic_rule, descriptions
            The arguments `topics` and `descriptions` of `from_documents`.

        Returns
        -------
        Corpus

        Raises
        ------
        TextcatError
            If a record lacks a field that was named, a field is of another type, two records have the same id, or no
            record is for training; or if no record has the field "topics", but any has one with a usual name for it,
            such as "label".
        """
        names: dict[str, None] = {}
        documents = as_documents(records, text, id, topics, topics_separator, split, names_of_fields=names)
        corpus = cls.from_documents(name, documents, topic_rule, descriptions)
        if isinstance(topics, str) and topics and not any(document.topics for document in documents):
            corpus = replace(corpus, unlabelled=unlabelled_because([topics], names))
        return replace(corpus, origin=origin_of_columns(named_columns(text))) if text is not None else corpus

    @classmethod
    def from_frame(cls, frame: Any, **fields: Any) -> "Corpus":
        """Return a corpus of the rows of a table.

        Parameters
        ----------
        frame : DataFrame
            A table of pandas or polars, with a row per document.
        **fields
            The arguments of `from_records`: ``text="abstract"``, ``topics="labels"`` and so on name the columns.
            `topics` may also name several columns, one per topic, that hold 1 where a document has the topic and 0
            elsewhere. Without a column `id`, the id of a row is its value in the index, as text; a value that several
            rows have is followed by the row's number. A table of polars has no index: an id is a row number, from 0.

        Returns
        -------
        Corpus

        Raises
        ------
        TextcatError
            If `frame` is not a table or has no rows, a column is missing, or a row has no text, or no value as topics.
        """
        if not is_table(frame):
            raise TextcatError(
                f"A {type(frame).__name__} is not a table: give a DataFrame, or use Corpus.from_records."
            )
        return cls.from_records(frame, **{"name": TABLE, **fields})

    def split(self, test_size: float, *, seed: int = 0, keep_groups: bool = False) -> "Corpus":
        """Return a corpus whose test part is a stratified sample of the training documents of this one.

        Each topic is as frequent in the test part as in the training part, as far as whole documents allow: see
        `textcat.base.folds`. Every document is equally likely to be drawn, so measures on the test part are unbiased
        estimates of those on new documents. A topic whose training documents are all drawn cannot be learnt, and is
        left out of the topics of the result, unless `topic_rule` is "described" and the topic has a description or
        names. If `topic_rule` is "both", topics without a document in the test part are left out, too.

        Parameters
        ----------
        test_size : float or int
            The size of the test part: a fraction of the training documents, between 0 and 1, or a number of documents.
        seed : int
            The same seed gives the same parts.
        keep_groups : bool, default=False
            Keep documents that repeat each other in the same part (see `textcat.duplicates`), so that no test document
            has a twin in training. Groups are then drawn as a whole: if no document repeats another, the parts are the
            same as otherwise, and if a group is larger than the test part, it is never drawn.

        Returns
        -------
        Corpus

        Raises
        ------
        TextcatError
            If the corpus has a test part already, `test_size` or `seed` is out of range, no group fits into the test
            part, or the parts share no topic.
        """
        if self.test:
            raise TextcatError(
                f"Corpus {self.name} has a test part of {len(self.test):,} documents already: leave out test_size."
            )
        check_whole_number(seed, 0, "The seed of a test part")
        is_number = isinstance(test_size, Real) and not is_boolean(test_size)
        n_test = max(round(test_size * len(self.train)), 1) if is_number and 0 < test_size < 1 else test_size
        if not is_number or not 0 < n_test < len(self.train) or n_test != int(n_test):
            raise TextcatError(
                f"A test part of {test_size!s:.60} documents cannot be made of {len(self.train):,}: "
                "give a fraction between 0 and 1, or a smaller number."
            )
        members = self._groups() if keep_groups else [[position] for position in range(len(self.train))]
        units = [[self.train[position].topics for position in unit] for unit in members]
        drawn = stratified_sample(units, int(n_test), seed)
        if not drawn:
            raise TextcatError(
                f"No group of duplicates in corpus {self.name} fits into a test part of {int(n_test):,} documents: "
                "draw more, or leave groups apart."
            )
        in_test = {position for unit in drawn for position in members[unit]}
        train, test = ([d for i, d in enumerate(self.train) if (i in in_test) == of_test] for of_test in (False, True))
        counts, n_before, n_tested = topic_counts(train), topic_counts(self.train), topic_counts(test)
        described = {*self.descriptions, *self.names} if self.topic_rule == "described" else set()
        kept = [topic for topic in self.topics if counts[topic] or not n_before[topic] or topic in described]
        if not any(n_tested[topic] for topic in kept):
            raise TextcatError(
                f"None of the {len(test):,} documents drawn from corpus {self.name} as its test part has a topic of a "
                "training document: draw others by another seed (--test-seed), or draw more."
            )
        if self.topic_rule == "both":
            kept = [topic for topic in kept if n_tested[topic]]
        origin = {**self.origin, "test_size": test_size, "seed": seed} if self.origin else {}
        if origin and keep_groups:
            origin["keep_groups"] = True
        return replace(self, train=train, test=test, topics=tuple(kept), origin=origin)

    def _groups(self) -> list[list[int]]:
        """Return the positions of the training documents of each group of duplicates."""
        # imported here, so that corpora that are not split need no kernels
        from textcat.duplicates.groups import find_groups

        members = defaultdict[int, list[int]](list)
        for position, group in enumerate(find_groups(document.zones for document in self.train).tolist()):
            members[group].append(position)
        return list(members.values())

    @cached_property
    def twins(self) -> np.ndarray:
        """Whether each test document has a twin in training: shape (n_test,), bool.

        Twins are in the same group of duplicates: see `textcat.duplicates`. Documents without a text have no twins.
        """
        n_train = len(self.train)
        if not n_train or not self.test:
            return np.zeros(len(self.test), bool)
        return self._first_of_group[n_train:] < n_train

    @cached_property
    def n_repeats(self) -> int:
        """The number of training documents that repeat an earlier one."""
        n_train = len(self.train)
        return int((self._first_of_group[:n_train] != np.arange(n_train)).sum())

    @property
    def has_many_repeats(self) -> bool:
        """Whether so many training documents repeat an earlier one that held-out documents are often known."""
        return self.n_repeats >= max(_FEWEST_REPEATS, _SHARE_OF_REPEATS * len(self.train))

    @property
    def groups_repeats(self) -> bool:
        """Whether folds keep training documents that repeat each other together: many do, and at least 20 differ."""
        return self.has_many_repeats and len(self.train) - self.n_repeats >= _FEWEST_DIFFERENT

    @property
    def groups(self) -> np.ndarray:
        """The groups of training documents that folds keep together: for each document, the first one of its group.

        These are the documents that repeat each other if `groups_repeats`; otherwise, each document is alone in its
        group. A group counts as one document when held out: its first one is measured, with the topics of all.
        """
        n_train = len(self.train)
        return self._first_of_group[:n_train] if self.groups_repeats else np.arange(n_train)

    @cached_property
    def sketches(self) -> np.ndarray:
        """Sketches of the texts of training documents, and then of test documents, by which repeats are found."""
        from textcat.duplicates.groups import SKETCH, sketches_in_blocks

        blocks = sketches_in_blocks(document.zones for document in chain(self.train, self.test))
        return np.concatenate([np.zeros(0, SKETCH), *blocks])

    def with_sketches(self, sketches: np.ndarray) -> "Corpus":
        """Return a copy whose repeats are found by sketches of its texts, because the texts themselves are gone."""
        copied = replace(self)
        copied.__dict__["sketches"] = sketches
        return copied

    @cached_property
    def _first_of_group(self) -> np.ndarray:
        """The first document of the group of duplicates of each training document, and then of each test document."""
        from textcat.duplicates.groups import find_groups, groups_of_sketches

        if "sketches" in self.__dict__:  # computed before, or given because the texts are gone
            return groups_of_sketches([self.sketches])
        return find_groups(document.zones for document in chain(self.train, self.test))

    @cached_property
    def train_dates(self) -> tuple[str, str] | None:
        """The earliest and the latest date of a training document; None if no date can be parsed."""
        return date_range(document.date for document in self.train)

    def described(self) -> list[Document]:
        """Return a document for each of `topics`, made of the topic's names and description.

        Title and body are the same text: the topic's names in the vocabulary (if it has none, the topic itself as
        words, unless it is a URI), followed by its description.
        """
        called = [
            ". ".join(filter(name_in_words, self.names.get(topic, ()))) or name_in_words(topic) for topic in self.topics
        ]
        about = (self.descriptions.get(topic, "") for topic in self.topics)
        texts = [f"{name} {text}".strip() for name, text in zip(called, about, strict=True)]
        return [
            Document(f"description of {topic}", {"title": text, "body": text}, (topic,))
            for topic, text in zip(self.topics, texts, strict=True)
        ]

    def sample_train(self, n: int) -> list[Document]:
        """Return every k-th training document: at least n and fewer than 2n; if there are at most n, all of them."""
        return self.train[:: max(1, len(self.train) // n)]

    def labels(self, documents: Sequence[Document]) -> "sparse.csc_matrix":
        """Return a csc_matrix of int8 and shape (n_documents, n_topics): 1 where a document has a topic, else 0.

        If a document has a topic that is not one of the corpus's `topics`, that topic is ignored.
        """
        column = {topic: j for j, topic in enumerate(self.topics)}
        rows = [sorted(column[topic] for topic in document.topics if topic in column) for document in documents]
        return _indicator(np.fromiter(chain.from_iterable(rows), np.int32), rows, len(column))

    def unjudged(self, documents: Sequence[Document]) -> "sparse.csc_matrix | None":
        """Return a matrix like the one that `labels` returns: 1 where a document was not judged for a topic.

        The document's label for that topic is then unknown. Return None if every document was judged for all topics.
        """
        if all(document.labelled_for is None for document in documents):
            return None
        column = {topic: j for j, topic in enumerate(self.topics)}
        columns = np.arange(len(column), dtype=np.int32)

        @cache  # many documents were judged for the same topics
        def columns_besides(judged: tuple[str, ...]) -> np.ndarray:
            return np.setdiff1d(columns, [column[topic] for topic in judged if topic in column])

        judged = ((*self.topics,) if d.labelled_for is None else (*d.labelled_for, *d.topics) for d in documents)
        rows = list(map(columns_besides, judged))
        matrix = _indicator(np.concatenate([columns[:0], *rows]), rows, len(column))
        return matrix if matrix.nnz else None

    def statistics(self) -> _Statistics:
        """Count the documents of each part, those without a topic, and the documents of each topic."""
        parts = {part: getattr(self, part) for part in PARTS}
        sizes = {part: len(documents) for part, documents in parts.items()}
        without_topic = {part: sum(not d.topics for d in documents) for part, documents in parts.items()}
        counts = [topic_counts(part) for part in (self.train, self.test)]
        train, test = np.array([[count[topic] for topic in self.topics] for count in counts], dtype=np.int64)
        return _Statistics(sizes, without_topic, self.topics, train, test, train / max(len(self.train), 1))


def _indicator(indices: np.ndarray, rows: Sequence[Any], n_columns: int) -> "sparse.csc_matrix":
    """Return a csc_matrix of int8 that has a 1 in the given columns of each row, and 0 elsewhere.

    `rows` lists the columns of each row; `indices` has the same columns, row after row, in one array.
    """
    from scipy import sparse  # imported here, so that a process that only reads documents stays small

    indptr = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    data = np.ones(len(indices), dtype=np.int8)
    return sparse.csr_matrix((data, indices, indptr), shape=(len(rows), n_columns)).tocsc()


def topic_counts(documents: Iterable[Document]) -> Counter[str]:
    """Return the number of documents that have each topic."""
    return Counter(topic for document in documents for topic in document.topics)


def shortened_text(text: str, most: int) -> str:
    """Return a text on one line, cut to at most `most` characters; a text that was cut ends with "…"."""
    words, rest = " ".join(text[: 4 * most].split()), text[4 * most :]
    is_whole = len(words) <= most and (not rest or rest.isspace())
    return words if is_whole else f"{words[: most - 1]}…"


def largest_topics_table(caption: str, head: Sequence[str], rows: Iterable[Sequence[Any]], n_rows: int) -> str:
    """Return an HTML table of the first 20 rows, one per topic, and below it the number of topics that are not shown.

    `head` has the titles of the columns, `rows` the cells of each row, and `n_rows` is the number of all rows.
    """
    n_hidden = max(n_rows - _TOPICS_SHOWN, 0)
    below = f"<p>and {n_hidden:,} smaller topics</p>" if n_hidden else ""
    return html_table(head, islice(rows, _TOPICS_SHOWN), caption=caption) + below


def _check(document: Document) -> None:
    """Raise TextcatError if the id, zones or topics of a document are of a wrong type, or a topic is there twice."""
    id_, zones, topics = document.id, document.zones, document.topics
    if not isinstance(id_, str):
        raise TextcatError(f"A document has the id {id_!r:.60}: give a text.")
    if not isinstance(zones, dict | Mapping):
        raise TextcatError(f"Document {id_} has the zones {zones!r:.60}: give a dict of texts by zone.")
    if not (isinstance(topics, tuple | list) and all(isinstance(topic, str) for topic in topics)):
        raise TextcatError(f"Document {id_} has the topics {topics!r:.60}: give a tuple of names, such as ('grain',).")
    if len(topics) > 1 and len({*topics}) < len(topics):
        twice = next(topic for topic in topics if topics.count(topic) > 1)
        raise TextcatError(f"Document {id_} has the topic {twice!r} more than once: give each once.")
