"""The training counts of an updatable model: the term counts of its documents, and the options of its training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from textcat.base.surrogates import surrogate_bytes
from textcat.corpus.documents import Corpus, Document

if TYPE_CHECKING:
    import numpy as np

    from textcat.features.counts import StoredCounts
    from textcat.model.manifest import Manifest
    from textcat.recipes.recipe import Recipe

_OF_TERMS = ("tokens", "features")  # the sections of a recipe that counts depend on


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
        return {
            "terms_of": {name: recipe.settings(name) for name in _OF_TERMS},
            "keep_support": self.keep_support,
            "bands": None if self.bands is None else [*self.bands],
            "is_measured": self.is_measured,
            "topic_rule": corpus.topic_rule,
            "descriptions": dict(sorted(corpus.descriptions.items())),
            "names": {topic: [*names] for topic, names in sorted(corpus.names.items())},
            "names_language": corpus.names_language,
            **({"replacements": corpus.replacements} if corpus.replacements else {}),
            "n_train": len(corpus.train),
            "ids": [document.id for document in documents],
            "topics": topics,
            "topics_of": [_places(index_of, sorted(document.topics)) for document in documents],
            "labelled_for": sets,
            "labelled_for_of": [None if judged is None else set_of[judged] for judged in labelled_for],
            "zones_of": None if self.keep_support == "none" else [document.zones for document in corpus.train],
            **({"dates": dates} if any(dates := [document.date for document in documents]) else {}),
            "zones": self.counts.zones,
            "terms": self.counts.counts.terms,
        }

    @classmethod
    def from_entries(
        cls, entries: Mapping[str, Any], arrays: dict[str, np.ndarray], manifest: Manifest
    ) -> TrainingCounts:
        """Return the training counts read from a model's files; raise KeyError, TypeError or ValueError if damaged."""
        from textcat.features.counts import StoredCounts  # here, so that tagging need not import it

        if any(entries["terms_of"][name] != manifest.recipe.settings(name) for name in _OF_TERMS):
            raise ValueError("its documents were counted for another recipe")
        counts = StoredCounts.from_arrays(entries["zones"], entries["terms"], arrays)
        names, sets, ids, n_train = (entries[name] for name in ("topics", "labelled_for", "ids", "n_train"))
        dates = entries.get("dates", [""] * len(ids))
        surrogate_bytes("".join([*ids, *names, *dates, *counts.zones, *counts.counts.terms]))
        labelled_for = [tuple(names[i] for i in judged) for judged in sets]
        n_test = len(ids) - n_train
        zones_of = [*(entries["zones_of"] or [{}] * n_train), *([{}] * n_test)]
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
                ids, zones_of, entries["topics_of"], dates, entries["labelled_for_of"], strict=True
            )
        ]
        corpus = Corpus(
            manifest.corpus,
            documents[:n_train],
            documents[n_train:],
            tuple(manifest.topics),
            descriptions=dict(entries["descriptions"]),
            names={topic: tuple(names_of_topic) for topic, names_of_topic in entries["names"].items()},
            names_language=entries.get("names_language", ""),
            replacements={topic: tuple(others) for topic, others in entries.get("replacements", {}).items()},
            origin=manifest.origin,
            topic_rule=entries["topic_rule"],
        )
        return cls(corpus, counts, entries["keep_support"], entries["bands"], entries["is_measured"])


def _labelled_for(document: Document) -> list[str] | None:
    return None if document.labelled_for is None else sorted({*document.labelled_for, *document.topics})


def _names_in(document: Document) -> Sequence[str]:
    return (*document.topics, *(document.labelled_for or ()))


def _places(index_of: Mapping[str, int], names: Sequence[str] | None) -> Any:
    return None if names is None else tuple(index_of[name] for name in names)
