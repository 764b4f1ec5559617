"""Training counts come back from their file as they were, keep no more of texts than was asked for, and tell damage."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from cases import every
from hypothesis import given
from hypothesis import strategies as st

from textcat.base.records import MISFITS
from textcat.corpus.documents import Corpus, Document
from textcat.features.counts import StoredCounts
from textcat.model.support import without_texts
from textcat.model.training_counts import TrainingCounts
from textcat.recipes.recipe import Recipe

TOPICS = ("corn", "rye", "wheat")
RECIPE = Recipe("plain")
FEATURES = RECIPE.make_features()
MANIFEST = SimpleNamespace(corpus="fields", topics=TOPICS, recipe=RECIPE.complete(), origin={"file": "a.csv"})

topics = st.lists(st.sampled_from(TOPICS), unique=True).map(lambda names: tuple(sorted(names)))
texts = st.lists(st.sampled_from(["corn", "rye", "wheat", "harvest", "prices"]), max_size=6).map(" ".join)


@st.composite
def documents(draw, prefix):
    n = draw(st.integers(1, 4))
    return [
        Document(f"{prefix}{i}", {"title": draw(texts), "body": draw(texts)}, draw(topics), labelled_for=labelled_for)
        for i, labelled_for in enumerate(draw(st.lists(st.none() | st.just(TOPICS), min_size=n, max_size=n)))
    ]


def training_counts(train, test, keep_support="none", bands=None):
    everything = [*train, *test]
    counts = StoredCounts.of_documents(*FEATURES.count_all(everything), np.arange(len(everything)))
    corpus = Corpus(
        "fields",
        train,
        test,
        TOPICS,
        descriptions={"rye": "A grain"},
        names={"rye": ("Rye",)},
        origin={"file": "a.csv"},
    )
    kept = without_texts(corpus, keep_support)
    return TrainingCounts(kept, counts, corpus.sketches, keep_support, bands, is_measured=bool(test))


def entries_and_arrays(n=2):
    kept = training_counts([Document(f"{i}", {"body": "corn"}, ("corn",)) for i in range(n)], [])
    return json.loads(json.dumps(kept.entries(MANIFEST.recipe))), kept.arrays()


@given(documents("a"), documents("b"), st.sampled_from(["none", "ids", "texts"]), st.sampled_from([None, ["ALL"]]))
def test_what_was_written_as_json_and_arrays_is_read_as_it_was(train, test, keep_support, bands):
    kept = training_counts(train, test, keep_support, bands)
    entries = json.loads(json.dumps(kept.entries(MANIFEST.recipe)))
    read = TrainingCounts.from_entries(entries, kept.arrays(), MANIFEST)
    assert read.corpus == kept.corpus
    assert (read.keep_support, read.bands, read.is_measured) == (keep_support, bands, True)
    assert read.entries(MANIFEST.recipe) == kept.entries(MANIFEST.recipe)
    for name, array in kept.counts.arrays().items():
        np.testing.assert_array_equal(read.counts.arrays()[name], array)


@given(documents("a"), documents("b"))
def test_no_more_of_a_text_is_left_than_explanations_keep(train, test):
    corpus = Corpus("fields", train, test, TOPICS, unused=[Document("c", {"body": "rye"})])
    zones = {keep: [each.zones for each in without_texts(corpus, keep).train] for keep in ("none", "ids", "texts")}
    assert zones["none"] == [{}] * len(train)
    assert zones["ids"] == [{"title": document.zones["title"]} for document in train]
    assert zones["texts"] == [document.zones for document in train]
    shortened = without_texts(corpus, "texts")
    assert all(document.zones == {} for document in shortened.test)
    assert shortened.unused == []
    assert [document.topics for document in shortened.test] == [document.topics for document in test]


@every(
    "change",
    [
        {"ids": ["0"]},
        {"ids": ["0", "0"]},
        {"topics_of": [[0]]},
        {"topics_of": [[0], [7]]},
        {"zones_of": [{}]},
        {"terms": []},
        {"ids": [0, 1]},
        {"names": {"rye": "Rye"}},
        {"terms_of": {"tokens": {"singularize": True}, "features": {}}},
    ],
)
def test_entries_that_do_not_fit_together_are_refused(change):
    entries, arrays = entries_and_arrays()
    assert TrainingCounts.from_entries(entries, arrays, MANIFEST).corpus.topics == TOPICS
    with pytest.raises(MISFITS):
        TrainingCounts.from_entries(entries | change, arrays, MANIFEST)


def test_labels_for_some_topics_name_those_that_a_document_has_too():
    document = Document("0", {"body": "corn"}, ("corn",), labelled_for=("rye",))
    kept = training_counts([document], [])
    read = TrainingCounts.from_entries(kept.entries(MANIFEST.recipe), kept.arrays(), MANIFEST)
    assert read.corpus.train == [replace(document, zones={}, labelled_for=("corn", "rye"))]
