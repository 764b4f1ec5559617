"""Tests of stratified samples."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from textcat.stratified import stratified_sample


def counts_of(units, drawn):
    return Counter(name for position in drawn for topics in units[position] for name in topics)


@pytest.mark.parametrize("seed", range(6))
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
