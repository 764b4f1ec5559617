"""The training counts of an updatable model: the term counts of its documents, and the options of its training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from textcat.base.records import entries_of, read_record
from textcat.base.surrogates import surrogate_bytes
from textcat.corpus.documents import Corpus, Document

if TYPE_CHECKING:
    import numpy as np

    from textcat.features.counts import StoredCounts
    from textcat.model.manifest import Manifest
    from textcat.recipes.recipe import Recipe

_OF_TERMS = ("tokens", "features")  # the sections of a recipe that counts depend on


@dataclass(frozen=True, kw_only=True)
class _Entries:
    """Hold the entries of the JSON file of a model's training counts; topics are positions in `topics`."""

    terms_of: dict[str, dict[str, Any]]  # the sections of the recipe that the counts were made by
    keep_support: str
    bands: list[str] | None
    is_measured: bool
    topic_rule: str
    descriptions: dict[str, str]
    names: dict[str, list[str]]
    names_language: str
    broader: dict[str, list[str]] = field(default_factory=dict)
    replacements: dict[str, list[str]] = field(default_factory=dict)
    n_train: int
    ids: list[str]  # of the training documents, followed by the test documents, like the next entries
    topics: list[str]
    topics_of: list[list[int]]
    labelled_for: list[list[int]]  # each set of topics that documents were labelled for
    labelled_for_of: list[int | None]  # the position of this set; None: the document was labelled for all topics
    zones_of: list[dict[str, str]] | None  # of the training documents
    dates: list[str] = field(default_factory=list)  # empty if no document has one
    zones: list[str]
    terms: list[str]


@dataclass(frozen=True, eq=False)
class TrainingCounts:
    """Hold what `textcat.learn` needs to update a model: its documents, the counts of their terms, and its options.

    Training documents in `corpus` have only the zones that `keep_support` keeps: none for "none", the title for "ids",
    and all zones for "texts".
    """

    corpus: Corpus
    counts: StoredCounts  # of the training documents, followed by the test documents
    keep_support: str  # one of `KEEP_SUPPORT`
    bands: Sequence[str] | None = None  # the bands to measure; None: the default
    is_measured: bool = False  # whether the model was measured after training

    def entries(self, recipe: Recipe) -> dict[str, Any]:
        """Return the entries of the JSON file of a model's training counts; the counts themselves are in arrays."""
        corpus = self.corpus
        documents = [*corpus.train, *corpus.test]
        topics = sorted({topic for document in documents for topic in _names_in(document)})
        index_of = dict(zip(topics, range(len(topics)), strict=True))
        labelled_for = [_places(index_of, _labelled_for(document)) for document in documents]
        sets = sorted({judged for judged in labelled_for if judged is not None})
        set_of = {judged: i for i, judged in enumerate(sets)}
        dates = [document.date for document in documents]
        entries = _Entries(
            terms_of={name: recipe.settings(name) for name in _OF_TERMS},
            keep_support=self.keep_support,
            bands=None if self.bands is None else [*self.bands],
            is_measured=self.is_measured,
            topic_rule=corpus.topic_rule,
            descriptions=dict(sorted(corpus.descriptions.items())),
            names={topic: [*names] for topic, names in sorted(corpus.names.items())},
            names_language=corpus.names_language,
            broader={topic: [*others] for topic, others in corpus.broader.items()},
            replacements={topic: [*others] for topic, others in corpus.replacements.items()},
            n_train=len(corpus.train),
            ids=[document.id for document in documents],
            topics=topics,
            topics_of=[[index_of[topic] for topic in sorted(document.topics)] for document in documents],
            labelled_for=[*map(list, sets)],
            labelled_for_of=[None if judged is None else set_of[judged] for judged in labelled_for],
            zones_of=None if self.keep_support == "none" else [document.zones for document in corpus.train],
            dates=dates if any(dates) else [],
            zones=self.counts.zones,
            terms=self.counts.counts.terms,
        )
        return entries_of(entries)

    @classmethod
    def from_entries(
        cls, entries: Mapping[str, Any], arrays: dict[str, np.ndarray], manifest: Manifest
    ) -> TrainingCounts:
        """Return the training counts read from a model's files; raise one of `MISFITS` if they are damaged."""
        from textcat.features.counts import StoredCounts  # here, so that tagging need not import it

        kept = read_record(_Entries, entries, "in the training counts")
        if any(kept.terms_of[name] != manifest.recipe.settings(name) for name in _OF_TERMS):
            raise ValueError("its documents were counted for another recipe")
        counts = StoredCounts.from_arrays(kept.zones, kept.terms, arrays)
        names, ids, n_train = kept.topics, kept.ids, kept.n_train
        dates = kept.dates or [""] * len(ids)
        surrogate_bytes("".join([*ids, *names, *dates, *counts.zones, *counts.counts.terms]))
        labelled_for = [tuple(names[i] for i in judged) for judged in kept.labelled_for]
        zones_of = [*(kept.zones_of or [{}] * n_train), *([{}] * (len(ids) - n_train))]
        if len(ids) != len(counts) or len(set(ids)) != len(ids):
            raise ValueError("its lists of documents do not fit together")
        documents = [
            Document(
                id_,
                dict(zones),
                tuple(names[i] for i in topics),
                date,
                labelled_for=None if k is None else labelled_for[k],
            )
            for id_, zones, topics, date, k in zip(
                ids, zones_of, kept.topics_of, dates, kept.labelled_for_of, strict=True
            )
        ]
        corpus = Corpus(
            manifest.corpus,
            documents[:n_train],
            documents[n_train:],
            tuple(manifest.topics),
            descriptions=kept.descriptions,
            names={topic: tuple(names_of_topic) for topic, names_of_topic in kept.names.items()},
            names_language=kept.names_language,
            broader={topic: tuple(others) for topic, others in kept.broader.items()},
            replacements={topic: tuple(others) for topic, others in kept.replacements.items()},
            origin=manifest.origin,
            topic_rule=kept.topic_rule,
        )
        return cls(corpus, counts, kept.keep_support, kept.bands, kept.is_measured)


def _labelled_for(document: Document) -> list[str] | None:
    return None if document.labelled_for is None else sorted({*document.labelled_for, *document.topics})


def _names_in(document: Document) -> Sequence[str]:
    return (*document.topics, *(document.labelled_for or ()))


def _places(index_of: Mapping[str, int], names: Sequence[str] | None) -> Any:
    return None if names is None else tuple(index_of[name] for name in names)
