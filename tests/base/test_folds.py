"""Samples and folds in which every topic is as frequent as among all documents."""

from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp
from cases import every
from hypothesis import given
from hypothesis import strategies as st

from textcat.base.errors import TextcatError
from textcat.base.folds import assign_folds, stratified_sample


def counts_of(units, drawn):
    return Counter(name for position in drawn for topics in units[position] for name in topics)


@every("seed", range(6))
def test_topics_of_the_same_size_get_the_same_number_of_documents(seed):
    units = [[(("grain", "metal", "money", "ship")[i % 4],)] for i in range(100)]
    assert set(counts_of(units, stratified_sample(units, 20, seed)).values()) == {5}


@given(st.lists(st.integers(1, 30), min_size=1, max_size=12), st.floats(0.05, 0.95), st.integers(0, 5))
def test_of_documents_with_one_topic_each_topic_gets_its_share_rounded_up_or_down(sizes, share, seed):
    units = [[(str(topic),)] for topic, size in enumerate(sizes) for _ in range(size)]
    n = max(round(share * len(units)), 1)
    drawn = stratified_sample(units, n, seed)
    assert len(drawn) == n
    counts = counts_of(units, drawn)
    for topic, size in enumerate(sizes):
        assert abs(counts[str(topic)] - n * size / len(units)) < 1 + 1e-6


def test_documents_of_several_topics_are_drawn_so_that_every_topic_has_its_share():
    generator = np.random.default_rng(3)
    shares = 1 / np.arange(2, 32)
    units = [[tuple(str(j) for j in np.flatnonzero(generator.random(30) < shares))] for _ in range(2000)]
    sizes, expected = counts_of(units, range(2000)), 0.25
    for seed in range(3):
        drawn = stratified_sample(units, 500, seed)
        counts = counts_of(units, drawn)
        assert len(drawn) == 500
        assert all(abs(counts[name] - expected * size) <= 3 for name, size in sizes.items())


def test_documents_without_a_topic_have_their_share_too():
    units = [[("a",)] if i % 4 == 0 else [()] for i in range(80)]
    for seed in range(4):
        drawn = stratified_sample(units, 20, seed)
        assert counts_of(units, drawn) == {"a": 5}
        assert len(drawn) == 20


def test_topics_of_one_document_are_drawn_as_often_as_others():
    units = [[(f"t{i}",)] for i in range(40)] + [[("all",)] for _ in range(160)]
    n = [sum(position < 40 for position in stratified_sample(units, 50, seed)) for seed in range(30)]
    assert set(n) == {10}


def test_units_are_drawn_as_a_whole_and_those_that_are_too_large_are_not():
    units = [[("a",), ("a",)], [("b",)] * 9, *[[("a",)] for _ in range(6)], *[[("b",)] for _ in range(6)]]
    for seed in range(8):
        drawn = stratified_sample(units, 6, seed)
        assert 1 not in drawn
        assert sum(len(units[position]) for position in drawn) == 6
    assert stratified_sample([[("a",)] * 4], 2, 0) == set()


def test_the_same_seed_gives_the_same_sample():
    units = [[(str(i % 7), str(i % 3))] for i in range(100)]
    assert stratified_sample(units, 30, 4) == stratified_sample(units, 30, 4) != stratified_sample(units, 30, 5)


# --- folds ------------------------------------------------------------------------------------------------------------


@st.composite
def labels_of_documents(draw, max_topics=1):
    """Labels of at least five documents, each with up to `max_topics` of six topics."""
    topics = draw(st.lists(st.sets(st.integers(0, 5), max_size=max_topics), min_size=5, max_size=60))
    dense = np.zeros((len(topics), 6), np.int8)
    for row, columns in enumerate(topics):
        dense[row, list(columns)] = 1
    return sp.csc_matrix(dense)


@given(labels_of_documents(max_topics=4), st.integers(2, 5), st.integers(0, 3))
def test_folds_are_of_equal_size_and_the_same_for_the_same_seed(labels, n_folds, seed):
    fold = assign_folds(labels, n_folds, seed)
    sizes = np.bincount(fold, minlength=n_folds)
    assert sizes.sum() == labels.shape[0]
    assert sizes.max() - sizes.min() <= 1
    np.testing.assert_array_equal(fold, assign_folds(labels, n_folds, seed))


@given(labels_of_documents(), st.integers(2, 5), st.integers(0, 3))
def test_the_positives_of_each_topic_are_spread_evenly_over_the_folds(labels, n_folds, seed):
    fold = assign_folds(labels, n_folds, seed)
    for topic in range(labels.shape[1]):
        per_fold = np.bincount(fold[labels[:, topic].indices], minlength=n_folds)
        assert per_fold.max() - per_fold.min() <= 1


def test_the_rarest_topic_is_spread_first_where_documents_have_several():
    dense = np.zeros((100, 2), np.int8)
    dense[:50, 0] = 1
    dense[45:50, 1] = 1  # all documents of the rare topic have the large one, too
    for seed in range(10):
        fold = assign_folds(sp.csc_matrix(dense), 5, seed)
        assert sorted(fold[45:50]) == [0, 1, 2, 3, 4]


def test_another_seed_gives_other_folds():
    labels = sp.csc_matrix(np.ones((60, 1), np.int8))
    assert not np.array_equal(assign_folds(labels, 5, 0), assign_folds(labels, 5, 1))


def test_of_topics_of_one_size_the_first_counts_as_the_rarest():
    dense = np.zeros((20, 2), np.int8)
    dense[:10] = dense[10, 0] = dense[11, 1] = 1  # ten documents have both topics
    fold = assign_folds(sp.csc_array(dense), 11, 0)
    assert sorted(fold[:11].tolist()) == list(range(11))


@every("n_documents, n_folds", [(2, 3), (0, 1), (5, 6)])
def test_more_folds_than_documents_are_refused(n_documents, n_folds):
    message = f"{n_documents} different training documents cannot be split into {n_folds} folds"
    with pytest.raises(TextcatError, match=message):
        assign_folds(sp.csc_matrix((n_documents, 1)), n_folds, 0)
