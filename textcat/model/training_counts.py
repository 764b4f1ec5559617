"""The training counts of an updatable model: the term counts of its documents, and the options of its training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from textcat.base.records import entries_of, read_record
from textcat.base.surrogates import surrogate_bytes
from textcat.corpus.documents import Corpus, Document

if TYPE_CHECKING:
    import numpy as np

    from textcat.features.counts import StoredCounts
    from textcat.model.manifest import Manifest
    from textcat.recipes.recipe import Recipe

SKETCHES = "sketches"  # the name of an array
_OF_TERMS = ("tokens", "features")  # the sections of a recipe that affect counts


@dataclass(frozen=True, kw_only=True)
class _Labels:
    """The labels of a corpus' documents, and the names of its topics.

    `topics_of` and `labelled_for` give topics by their positions in `topics`; the dicts have topics as keys.
    """

    topic_rule: str
    descriptions: dict[str, str]
    names: dict[str, list[str]]
    names_language: str
    broader: dict[str, list[str]] = field(default_factory=dict)
    replacements: dict[str, list[str]] = field(default_factory=dict)
    n_train: int
    ids: list[str]  # training documents, followed by test documents, as in the next entries
    topics: list[str]
    topics_of: list[list[int]]
    labelled_for: list[list[int]]  # the distinct sets of topics that documents were labelled for
    labelled_for_of: list[int | None]  # position in `labelled_for`; None: the document was labelled for all topics
    dates: list[str] = field(default_factory=list)  # empty if no document has one

    @staticmethod
    def fields_of(corpus: Corpus) -> dict[str, Any]:
        documents = [*corpus.train, *corpus.test]
        topics = sorted({topic for document in documents for topic in _names_in(document)})
        index_of = dict(zip(topics, range(len(topics)), strict=True))
        labelled_for = [_places(index_of, _labelled_for(document)) for document in documents]
        sets = sorted({judged for judged in labelled_for if judged is not None})
        set_of = {judged: i for i, judged in enumerate(sets)}
        dates = [document.date for document in documents]
        return {
            "topic_rule": corpus.topic_rule,
            "descriptions": dict(sorted(corpus.descriptions.items())),
            "names": {topic: [*names] for topic, names in sorted(corpus.names.items())},
            "names_language": corpus.names_language,
            "broader": {topic: [*others] for topic, others in corpus.broader.items()},
            "replacements": {topic: [*others] for topic, others in corpus.replacements.items()},
            "n_train": len(corpus.train),
            "ids": [document.id for document in documents],
            "topics": topics,
            "topics_of": [[index_of[topic] for topic in sorted(document.topics)] for document in documents],
            "labelled_for": [*map(list, sets)],
            "labelled_for_of": [None if judged is None else set_of[judged] for judged in labelled_for],
            "dates": dates if any(dates) else [],
        }

    def corpus(self, name: str, topics: tuple[str, ...], zones_of: Sequence[Mapping[str, str]]) -> Corpus:
        """Return the corpus, given its name, its topics, and the zones of its documents."""
        names, n_train = self.topics, self.n_train
        labelled_for = [tuple(names[i] for i in judged) for judged in self.labelled_for]
        documents = [
            Document(
                id_,
                dict(zones),
                tuple(names[i] for i in topics_of),
                date,
                labelled_for=None if k is None else labelled_for[k],
            )
            for id_, zones, topics_of, date, k in zip(
                self.ids,
                zones_of,
                self.topics_of,
                self.dates or [""] * len(self.ids),
                self.labelled_for_of,
                strict=True,
            )
        ]
        return Corpus(
            name,
            documents[:n_train],
            documents[n_train:],
            topics,
            descriptions=self.descriptions,
            names={topic: tuple(names_of_topic) for topic, names_of_topic in self.names.items()},
            names_language=self.names_language,
            broader={topic: tuple(others) for topic, others in self.broader.items()},
            replacements={topic: tuple(others) for topic, others in self.replacements.items()},
            topic_rule=self.topic_rule,
        )


@dataclass(frozen=True, kw_only=True)
class _Entries(_Labels):
    """The entries of the JSON file of a model's training counts."""

    terms_of: dict[str, dict[str, Any]]  # the sections of the recipe that the counts were made with
    keep_support: str
    bands: list[str] | None
    is_measured: bool
    zones_of: list[dict[str, str]] | None  # of the training documents
    zones: list[str]
    terms: list[str]


@dataclass(frozen=True, eq=False)
class TrainingCounts:
    """The data that `textcat.learn` needs to update a model: its documents, the counts of their terms, and its options.

    Training documents in `corpus` have only the zones that `keep_support` keeps: none for "none", the title for "ids",
    and all zones for "texts".
    """

    corpus: Corpus
    counts: StoredCounts  # of the training documents, followed by the test documents
    sketches: np.ndarray  # of the same documents' texts, to find those that repeat each other
    keep_support: str  # one of `KEEP_SUPPORT`
    bands: Sequence[str] | None = None  # the bands to measure; None: the default
    is_measured: bool = False  # whether the model was measured after training

    def entries(self, recipe: Recipe) -> dict[str, Any]:
        """Return the entries of the JSON file of a model's training counts; counts and sketches are arrays."""
        entries = _Entries(
            **_Labels.fields_of(self.corpus),
            terms_of={name: recipe.settings(name) for name in _OF_TERMS},
            keep_support=self.keep_support,
            bands=None if self.bands is None else [*self.bands],
            is_measured=self.is_measured,
            zones_of=None if self.keep_support == "none" else [document.zones for document in self.corpus.train],
            zones=self.counts.zones,
            terms=self.counts.counts.terms,
        )
        return entries_of(entries)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays to write to a file, by name."""
        return {**self.counts.arrays(), SKETCHES: self.sketches}

    @classmethod
    def from_entries(
        cls, entries: Mapping[str, Any], arrays: dict[str, np.ndarray], manifest: Manifest
    ) -> TrainingCounts:
        """Return the training counts read from a model's files; raise one of `MISFITS` (exceptions) if damaged."""
        from textcat.duplicates.groups import SKETCH  # imported here, so that tagging need not import them
        from textcat.features.counts import StoredCounts

        kept = read_record(_Entries, entries, "in the training counts")
        if any(kept.terms_of[name] != manifest.recipe.settings(name) for name in _OF_TERMS):
            raise ValueError("its documents were counted for another recipe")
        counts = StoredCounts.from_arrays(kept.zones, kept.terms, arrays)
        ids, n_train = kept.ids, kept.n_train
        surrogate_bytes("".join([*ids, *kept.topics, *kept.dates, *counts.zones, *counts.counts.terms]))
        sketches = arrays[SKETCHES]
        if not len(ids) == len(counts) == len(sketches) or sketches.dtype != SKETCH or len(set(ids)) != len(ids):
            raise ValueError("its lists of documents do not fit together")
        zones_of = [*(kept.zones_of or [{}] * n_train), *([{}] * (len(ids) - n_train))]
        corpus = replace(kept.corpus(manifest.corpus, tuple(manifest.topics), zones_of), origin=manifest.origin)
        return cls(corpus, counts, sketches, kept.keep_support, kept.bands, kept.is_measured)


def labels_of(corpus: Corpus) -> dict[str, Any]:
    """Return the labels of a corpus' documents, and its topics, as JSON values without texts."""
    return {"topics": [*corpus.topics], "labels": entries_of(_Labels(**_Labels.fields_of(corpus)))}


def corpus_of_labels(values: Mapping[str, Any]) -> Corpus:
    """Return a corpus, without texts and name, from `labels_of`; raise an exception in `MISFITS` if it is damaged."""
    labels = read_record(_Labels, values["labels"], "in the labels")
    return labels.corpus("", tuple(values["topics"]), [{}] * len(labels.ids))


def _labelled_for(document: Document) -> list[str] | None:
    return None if document.labelled_for is None else sorted({*document.labelled_for, *document.topics})


def _names_in(document: Document) -> Sequence[str]:
    return (*document.topics, *(document.labelled_for or ()))


def _places(index_of: Mapping[str, int], names: Sequence[str] | None) -> Any:
    return None if names is None else tuple(index_of[name] for name in names)
