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
    with pytest.raises(TextcatError, match="'all'"):
        Corpus.from_documents("c", [document("a")], "all")
    with pytest.raises(TextcatError, match="Corpus c has no training document"):
        Corpus.from_documents("c", [document("a", "test")])
    with pytest.raises(TextcatError, match="has the split 'dev': it must be one of train, test, unused"):
        Corpus.from_documents("c", [document("a"), document("a", "dev")])


def test_topic_counts_count_documents():
    assert topic_counts([document("ab"), document("b")]) == {"a": 1, "b": 2}


# --- parts made of one -----------------------------------------------------------------------------------------------


@given(st.lists(topic_sets, min_size=4, max_size=60), st.sampled_from([0.1, 0.25, 0.5]), st.integers(0, 3))
def test_a_split_keeps_every_topic_in_training_and_puts_no_document_in_both_parts(topics, fraction, seed):
    corpus = Corpus.from_documents("c", [document(names) for names in topics])
    try:
        parted = corpus.split(fraction, seed=seed)
    except TextcatError as error:
        assert "no two documents of a topic" in str(error)  # noqa: PT017
        return
    assert len(parted.train) + len(parted.test) == len(topics)
    assert parted.topics == corpus.topics
    assert topic_counts(parted.train).keys() == set(corpus.topics)
    again = corpus.split(fraction, seed=seed)
    assert (again.train, again.test) == (parted.train, parted.test)


@given(st.lists(st.integers(0, 12), min_size=4, max_size=80), st.sampled_from([0.1, 0.25, 0.5]))
def test_a_topic_of_two_documents_or_more_is_on_both_sides_of_a_split_in_its_share(topics, fraction):
    documents = [Document(str(i), {"body": ""}, (str(topic),) if topic else ()) for i, topic in enumerate(topics)]
    sizes = topic_counts(documents)
    if max(sizes.values(), default=0) < 2:
        return
    parted = Corpus.from_documents("c", documents).split(fraction)
    in_test = topic_counts(parted.test)
    for topic, size in sizes.items():
        assert in_test[topic] == (0 if size == 1 else min(max(round(size * fraction), 1), size - 1))
    without_topic = topics.count(0)
    assert sum(not d.topics for d in parted.test) == round(without_topic * fraction)


def test_the_parts_of_a_split_are_of_the_size_asked_for_and_hang_on_the_seed():
    topics = [("a",) if i % 2 else ("a", "b") for i in range(200)]
    documents = [Document(str(i), {"body": ""}, names) for i, names in enumerate(topics)]
    corpus = Corpus.from_documents("c", documents)
    for size in (0.2, 40):
        parted = corpus.split(size, seed=1)
        assert len(parted.test) == 40
        assert sum("b" in d.topics for d in parted.test) == 20
        assert [int(d.id) for d in parted.train] == sorted(int(d.id) for d in parted.train)
    assert corpus.split(0.2, seed=2).test != corpus.split(0.2, seed=1).test


def test_documents_of_several_topics_leave_no_topic_of_two_on_one_side():
    documents = [document(names) for names in (("a", "c"), ("a", "d"), ("b", "c"), ("b", "d"), ())]
    parted = Corpus.from_documents("c", documents).split(0.1)
    assert topic_counts(parted.train) == topic_counts(parted.test) == {"a": 1, "b": 1, "c": 1, "d": 1}


@pytest.mark.parametrize("size", [0, 1.5, -1, 4, 10, float("nan")])
def test_a_test_part_that_cannot_be_made_is_refused(size):
    corpus = Corpus.from_documents("c", [document("a")] * 4)
    with pytest.raises(TextcatError, match="give a fraction between 0 and 1, or a smaller number"):
        corpus.split(size)
    with pytest.raises(TextcatError, match="has a test part of 1 documents already"):
        Corpus.from_documents("c", [document("a"), document("a", "test")]).split(0.5)


# --- what is shown ---------------------------------------------------------------------------------------------------


def test_a_corpus_and_a_document_are_printed_in_one_line():
    documents = [Document(str(i), {"title": "Wheat\n", "body": "so " * 1000}, ("wheat",)) for i in range(1200)]
    corpus = Corpus.from_documents("own", [*documents, document("b", "test")])
    assert repr(corpus) == "Corpus('own': 1,200 training, 1 test documents, 1 topic)"
    assert repr(documents[0]).startswith("Document('0', 'Wheat so so so")
    assert len(repr(documents[0])) < 120


def test_a_corpus_is_shown_as_a_table_whose_names_are_escaped():
    documents = [document((f"<b>{i}", *([] if i % 2 else ["even"]))) for i in range(30)]
    shown = Corpus.from_documents("<own>", documents)._repr_html_()
    assert "&lt;own&gt;" in shown
    assert "<own>" not in shown
    assert "<b>0" not in shown
    assert shown.index("even") < shown.index("&lt;b&gt;0")
    assert "and 11 smaller topics" in shown
