"""Documents, corpora, labels and counts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from textcat.documents import Corpus, Document, topic_counts
from textcat.errors import TextcatError


def document(topics, split="train"):
    return Document("1", {"title": "", "body": "text"}, tuple(topics), split=split)


topic_sets = st.lists(st.sampled_from("abcde"), unique=True, max_size=4)
parts = st.lists(st.builds(document, topic_sets, st.sampled_from(["train", "test", "unused", ""])), max_size=12).filter(
    lambda documents: any(d.split in ("train", "") for d in documents)
)


@given(parts)
def test_every_document_is_in_one_part(documents):
    corpus = Corpus.from_documents("c", documents)
    assert len(corpus.train) + len(corpus.test) + len(corpus.unused) == len(documents)
    assert all(d.split in ("train", "") for d in corpus.train)


@given(parts)
def test_labels_say_what_the_documents_say(documents):
    corpus = Corpus.from_documents("c", documents, topics="train")
    labels = corpus.labels(documents)
    assert labels.dtype == np.int8
    assert labels.shape == (len(documents), len(corpus.topics))
    for i, row in enumerate(labels.toarray()):
        assert {corpus.topics[j] for j in np.flatnonzero(row)} == set(documents[i].topics) & set(corpus.topics)


@given(parts)
def test_statistics_are_the_column_sums_of_the_labels(documents):
    corpus = Corpus.from_documents("c", documents, topics="train")
    statistics = corpus.statistics()
    assert statistics.topics == corpus.topics
    np.testing.assert_array_equal(statistics.train_positives, corpus.labels(corpus.train).toarray().sum(axis=0))
    np.testing.assert_array_equal(statistics.test_positives, corpus.labels(corpus.test).toarray().sum(axis=0))
    np.testing.assert_allclose(statistics.prevalence * len(corpus.train), statistics.train_positives)
    assert statistics.documents["unused"] == len(corpus.unused)
    assert statistics.without_topic["train"] == sum(d.topics == () for d in corpus.train)


def test_topics_of_the_rule_both_have_positives_in_both_parts():
    documents = [document("ab"), document("bc"), document("bd", "test")]
    assert Corpus.from_documents("c", documents, "both").topics == ("b",)
    assert Corpus.from_documents("c", documents, "train").topics == ("a", "b", "c")


def test_without_a_test_part_all_topics_in_training_count():
    assert Corpus.from_documents("c", [document("b", ""), document("a", "")], "both").topics == ("a", "b")


def test_no_documents_give_labels_with_a_column_per_topic():
    assert Corpus.from_documents("c", [document("ab")]).labels([]).shape == (0, 2)


def test_an_unknown_rule_and_an_empty_training_part_are_told():
    with pytest.raises(TextcatError, match="'both', 'train' or 'described', not by 'all'"):
        Corpus.from_documents("c", [document("a")], "all")
    with pytest.raises(TextcatError, match="Corpus c has no training document"):
        Corpus.from_documents("c", [document("a", "test")])


def test_topic_counts_count_documents():
    assert topic_counts([document("ab"), document("b")]) == {"a": 1, "b": 2}
