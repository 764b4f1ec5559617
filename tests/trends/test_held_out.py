"""Counts of held-out documents by bins of log odds."""

import numpy as np
import pytest
from manifests import rewrite
from scipy import sparse

import textcat
from textcat.base.calibration import Calibration
from textcat.base.disk import sha256_of_file
from textcat.base.sigmoid import expit
from textcat.model import ModelError
from textcat.model.manifest import read_manifest
from textcat.trends.bins import FLOOR, MIDDLES, N_BINS, WIDTH, bins_of
from textcat.trends.held_out import HeldOut

SAME = Calibration(np.ones(1), np.zeros(1))


def test_each_bin_begins_with_its_lower_edge():
    edges = FLOOR + WIDTH * np.arange(N_BINS - 1)
    assert bins_of(edges).tolist() == [*range(1, N_BINS)]
    assert bins_of(edges - 1e-9).tolist() == [*range(N_BINS - 1)]
    assert bins_of(np.array([-np.inf, np.inf])).tolist() == [0, N_BINS - 1]
    assert np.array_equal(bins_of(np.log(MIDDLES) - np.log1p(-MIDDLES)), np.arange(1, N_BINS))


def test_documents_are_counted_with_their_topics_and_those_out_of_the_sample_are_not():
    scores = np.array([[-9.0], [-7.0], [0.1], [0.2], [99.0], [np.nan]])
    labels = sparse.csc_matrix([[0], [1], [0], [1], [1], [1]])
    held_out = HeldOut.fit(scores, labels, SAME)
    even = bins_of(np.array([0.1]))[0]
    assert np.flatnonzero(held_out.positives[0]).tolist() == [0, even, N_BINS - 1]
    assert np.flatnonzero(held_out.negatives[0]).tolist() == [0, even]
    assert held_out.documents == 5
    assert held_out.prior == 3.5 / 6
    assert held_out.below == pytest.approx(expit(np.array([-9.0, -7.0])).mean())


def test_likelihood_ratios_are_posterior_odds_by_prior_odds():
    held_out = HeldOut.fit(np.array([[-5.0], [1.1], [2.2]]), [[0], [1], [0]], SAME)
    p, prior = held_out.probabilities[0], held_out.prior[0]
    by_bayes = held_out.likelihood_ratios[0] * prior / (1 - prior)
    assert by_bayes == pytest.approx(p / (1 - p))


def test_the_number_above_a_threshold_is_that_of_documents_if_it_is_the_edge_of_a_bin():
    log_odds = np.random.default_rng(0).normal(0, 3, size=(500, 1))
    held_out = HeldOut.fit(log_odds, np.eye(500, 1), SAME)
    for edge in FLOOR + WIDTH * np.arange(N_BINS - 2):
        assert held_out.above(np.array([edge])) == (log_odds >= edge).sum()
    assert held_out.above(np.array([-np.inf])) == 500
    assert held_out.above(np.array([np.inf])) == 0
    between = held_out.above(np.array([0.1]))
    assert held_out.above(np.array([0.5])) < between < held_out.above(np.array([0.0]))


def test_the_number_above_a_threshold_in_a_bin_without_a_width_is_known_only_if_the_bin_is_empty():
    held_out = HeldOut.fit(np.array([[-9.0, 0.0], [0.0, 9.0]]), np.eye(2), Calibration(np.ones(2), np.zeros(2)))
    for cut, expected in ((-5.0, [np.nan, 2]), (9.5, [0, np.nan])):
        assert np.array_equal(held_out.above(np.full(2, cut)), expected, equal_nan=True)


def test_a_table_gives_the_counts_back_and_no_other_array_does():
    held_out = HeldOut.fit(np.random.default_rng(0).normal(size=(50, 2)), np.eye(50, 2), Calibration(*np.ones((2, 2))))
    table = held_out.as_table()
    assert np.array_equal(HeldOut.from_table(table, 2).as_table(), table)
    for damaged in (table[:1], table[:, :-1], -table, table * np.nan, np.where(table < 1, 1, table)):
        with pytest.raises(ValueError, match="no counts of held-out documents"):
            HeldOut.from_table(damaged, 2)


def test_training_counts_each_document_once_for_each_topic(newswire, promising_model):
    tagger = textcat.load(promising_model)
    held_out = tagger.decisions.held_out
    assert (held_out.documents == len(newswire.train)).all()
    assert np.array_equal(held_out.positives.sum(axis=1), tagger.facts.train_sizes)
    # The curves are fitted to these documents: their probabilities add up to about the number of documents.
    expected = ((held_out.positives + held_out.negatives) * held_out.probabilities).sum(axis=1)
    large = tagger.facts.train_sizes >= 20
    assert expected[large] == pytest.approx(tagger.facts.train_sizes[large], rel=0.15)


def test_a_model_keeps_the_counts_and_one_with_others_is_damaged(promising_model, tmp_path):
    tagger = textcat.load(promising_model)
    folder = textcat.save(tagger, tmp_path / "model")
    table = np.load(folder / "held_out.npy")
    assert np.array_equal(table, tagger.decisions.held_out.as_table())
    np.save(folder / "held_out.npy", table[:, :-1])
    files = read_manifest(folder).files
    rewrite(folder, files={**files, "held_out.npy": sha256_of_file(folder / "held_out.npy")})
    with pytest.raises(ModelError, match="is damaged"):
        textcat.load(folder)


def test_a_tagger_of_some_topics_keeps_their_counts(promising_model):
    from textcat.model.restrict import restrict_topics

    tagger = textcat.load(promising_model)
    restricted = restrict_topics(tagger, tagger.topics[3:5])
    assert np.array_equal(restricted.decisions.held_out.positives, tagger.decisions.held_out.positives[3:5])
