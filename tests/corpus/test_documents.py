"""Documents, corpora, labels and counts."""

from dataclasses import replace

import numpy as np
import pytest
from cases import every
from hypothesis import given
from hypothesis import strategies as st

from textcat.base.errors import TextcatError
from textcat.corpus.documents import Corpus, Document, shortened_text, topic_counts


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


@every(
    "fields, said",
    [
        ({"topics": "grain"}, r"Document 7 has the topics 'grain': give a tuple of names, such as \('grain',\)"),
        ({"topics": None}, "Document 7 has the topics None"),
        ({"topics": (1, 2)}, r"Document 7 has the topics \(1, 2\)"),
        ({"topics": ("corn", "grain", "corn")}, "Document 7 has the topic 'corn' more than once"),
        ({"zones": "Wheat rose."}, "Document 7 has the zones 'Wheat rose.': give a dict of texts by zone"),
        ({"id": 7}, "A document has the id 7: give a text"),
    ],
)
def test_a_document_has_texts_as_id_zones_and_topics(fields, said):
    documents = [Document("1", {"body": "Gold fell."}, ("gold",)), Document("7", {"body": "Wheat rose."}, ("corn",))]
    assert Corpus.from_documents("small", documents).topics == ("corn", "gold")
    with pytest.raises(TextcatError, match=said):
        Corpus.from_documents("small", [documents[0], replace(documents[1], **fields)])


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


@given(st.lists(topic_sets, min_size=4, max_size=60), st.sampled_from([0.1, 0.25, 3]), st.integers(0, 3))
def test_a_split_has_the_size_asked_for_and_puts_no_document_in_both_parts(topics, size, seed):
    documents = [Document(str(i), {"body": ""}, tuple(names)) for i, names in enumerate(topics)]
    corpus = Corpus.from_documents("c", documents)
    n_test = size if size >= 1 else max(round(size * len(topics)), 1)
    try:
        parted = corpus.split(size, seed=seed)
    except TextcatError as error:
        assert "draw others by another seed" in str(error)  # noqa: PT017
        return
    assert len(parted.test) == n_test
    assert sorted(parted.train + parted.test, key=documents.index) == documents
    assert parted.train == sorted(parted.train, key=documents.index)
    assert set(parted.topics) == topic_counts(parted.train).keys()
    again = corpus.split(size, seed=seed)
    assert (again.train, again.test, again.topics) == (parted.train, parted.test, parted.topics)


def test_a_split_draws_every_document_equally_often_however_rare_its_topics_are():
    topics = [("rare",), ("rare",), *[("frequent",)] * 18]
    corpus = Corpus.from_documents("c", [Document(str(i), {"body": ""}, names) for i, names in enumerate(topics)])
    drawn = topic_counts(d for seed in range(400) for d in corpus.split(5, seed=seed).test)
    assert drawn["rare"] + drawn["frequent"] == 2000
    assert 150 < drawn["rare"] < 250  # 200 are expected, with a deviation of 12


def test_the_parts_of_a_split_hang_on_the_seed_and_only_described_topics_stay_without_a_training_document():
    documents = [Document(str(i), {"body": ""}, ("all", f"t{i}")) for i in range(40)]
    corpus = Corpus.from_documents("c", documents)
    parted = corpus.split(0.25, seed=1)
    assert corpus.split(10, seed=1).test == parted.test != corpus.split(10, seed=2).test
    assert parted.topics == tuple(sorted(topic_counts(parted.train)))
    about = {d.topics[1]: "what it is" for d in documents}
    assert Corpus.from_documents("c", documents, "described", about).split(10, seed=1).topics == corpus.topics
    assert Corpus.from_documents("c", documents, "both").split(10).topics == ("all",)


@every("size", [0, 1.5, -1, 4, 10, float("nan"), None, "0.5", True, [1], 1j])
def test_a_test_part_that_cannot_be_made_is_refused(size):
    corpus = Corpus.from_documents("c", [document("a")] * 4)
    with pytest.raises(TextcatError, match="give a fraction between 0 and 1, or a smaller number"):
        corpus.split(size)
    with pytest.raises(TextcatError, match="has a test part of 1 documents already"):
        Corpus.from_documents("c", [document("a"), document("a", "test")]).split(0.5)


@every("seed", [None, -1, 0.5, "1"])
def test_a_seed_that_gives_no_part_again_is_refused(seed):
    with pytest.raises(TextcatError, match="give a whole number, 0 or more"):
        Corpus.from_documents("c", [document("a")] * 4).split(2, seed=seed)


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


def _duplicated(n=60):
    """Return a corpus in which every third document is duplicated once."""
    records = [
        {"text": f"Wheat of farm {i} " + " ".join(f"w{i}x{j}" for j in range(40)), "topics": [f"t{i % 2}"]}
        for i in range(n)
    ]
    return Corpus.from_records(records + records[::3])


def test_a_split_that_keeps_groups_has_no_twins_and_the_size_asked_for():
    corpus = _duplicated()
    assert corpus.split(0.25).twins.any()
    for seed in range(5):
        parts = corpus.split(0.25, seed=seed, keep_groups=True)
        assert not parts.twins.any()
        assert len(parts.test) == 20
        assert len(parts.train) + len(parts.test) == 80


def test_without_duplicates_a_split_is_the_same_whether_it_keeps_groups_or_not():
    corpus = replace(_duplicated(), train=_duplicated().train[:60])
    assert corpus.split(0.25, seed=3, keep_groups=True) == corpus.split(0.25, seed=3)


def test_a_split_is_refused_if_no_group_fits():
    corpus = Corpus.from_records([{"text": "the same words", "topics": ["a"]}] * 4)
    with pytest.raises(TextcatError, match="No group"):
        corpus.split(2, keep_groups=True)


def test_twins_are_the_test_documents_that_repeat_a_training_document():
    corpus = _duplicated()
    parts = replace(corpus, train=corpus.train[:60], test=corpus.train[58:])
    assert parts.twins.tolist() == [True, True] + [True] * 20
    assert not replace(parts, train=[]).twins.any()


@every(
    "text, shown",
    [
        ("gold  fell", "gold fell"),
        ("gold fell again", "gold fell…"),
        ("gold" + " " * 1000, "gold"),
        ("gold" + " " * 1000 + "fell", "gold…"),
        ("", ""),
    ],
)
def test_a_text_that_is_cut_ends_with_an_ellipsis(text, shown):
    assert shortened_text(text, 10) == shown
