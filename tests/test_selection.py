"""Folds spread rare topics; a trial is what training and scoring fold by fold gives."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import textcat
from textcat.errors import TextcatError
from textcat.margin.learners import PAUM
from textcat.ranking import average_precisions
from textcat.selection import RARE, Fold, Margins, Trial, best, default_grid, folds, study_margins


@pytest.fixture(scope="module")
def corpus():
    whole = textcat.open_corpus("newswire")
    return textcat.Corpus.from_documents("part", whole.train[:200])


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
    fold = folds(labels, n_folds, seed)
    sizes = np.bincount(fold, minlength=n_folds)
    assert sizes.sum() == labels.shape[0]
    assert sizes.max() - sizes.min() <= 1
    np.testing.assert_array_equal(fold, folds(labels, n_folds, seed))


@given(labels_of_documents(), st.integers(2, 5), st.integers(0, 3))
def test_the_positives_of_each_topic_are_spread_evenly_over_the_folds(labels, n_folds, seed):
    fold = folds(labels, n_folds, seed)
    for topic in range(labels.shape[1]):
        per_fold = np.bincount(fold[labels[:, topic].indices], minlength=n_folds)
        assert per_fold.max() - per_fold.min() <= 1


def test_the_rarest_topic_is_spread_first_where_documents_have_several():
    dense = np.zeros((100, 2), np.int8)
    dense[:50, 0] = 1
    dense[45:50, 1] = 1  # all documents of the rare topic have the large one, too
    for seed in range(10):
        fold = folds(sp.csc_matrix(dense), 5, seed)
        assert sorted(fold[45:50]) == [0, 1, 2, 3, 4]


def test_another_seed_gives_other_folds(corpus):
    labels = corpus.labels(corpus.train)
    assert not np.array_equal(folds(labels, 5, 0), folds(labels, 5, 1))


def test_more_folds_than_documents_are_told_of():
    with pytest.raises(TextcatError, match=r"2 training documents cannot be split into 3 folds; ask for fewer\."):
        folds(sp.csc_matrix(np.ones((2, 1))), 3, 0)


@given(st.floats(0, 1), st.floats(-50, 50), st.floats(0.1, 200))
def test_an_adapted_margin_follows_the_formula(prevalence, kappa, scale):
    margin = Margins(-0.5, kappa=kappa, scale=scale).tau_pos_of(np.array([prevalence]))[0]
    assert margin == pytest.approx(scale / (1 + math.exp(-kappa * prevalence)), rel=1e-9)


def test_a_fixed_margin_is_the_same_for_every_prevalence():
    np.testing.assert_array_equal(Margins(1.0, tau_pos=50.0).tau_pos_of(np.array([0.0, 0.1, 1.0])), [50, 50, 50])


@pytest.mark.parametrize("margins", [Margins(1.0, tau_pos=20.0), Margins(-0.5, kappa=-10.0, scale=100.0)])
def test_a_trial_is_what_training_and_scoring_fold_by_fold_gives(corpus, margins):
    recipe = textcat.Recipe("plain")
    (trial,) = study_margins(corpus, recipe, grid=[margins], n_folds=3, seed=5)
    labels = corpus.labels(corpus.train).tocsr()
    fold = folds(labels.tocsc(), 3, 5)
    qualities, support = [], []
    for held_out in range(3):
        train = labels[fold != held_out]
        features = recipe.make_features().fit([corpus.train[i] for i in np.flatnonzero(fold != held_out)])
        rows = features.transform(corpus.train)
        taus = margins.tau_pos_of(np.asarray(train.mean(axis=0)).ravel())
        scores = np.empty((sum(fold == held_out), labels.shape[1]))
        for topic, tau_pos in enumerate(taus):
            ranker = PAUM(margins.tau_neg, float(tau_pos))
            ranker.fit(rows[fold != held_out], train[:, [topic]])
            scores[:, topic] = ranker.decision_function(rows[fold == held_out])[:, 0]
            support.append(ranker.n_support_[0])
        quality = average_precisions(labels[fold == held_out], scores)
        quality[np.asarray(train.sum(axis=0)).ravel() == 0] = np.nan
        qualities.append(np.nanmean(quality))
    assert trial.macro_average_precision["ALL"] == pytest.approx(np.mean(qualities), abs=1e-9)
    assert trial.average_sparsity["ALL"] == pytest.approx(np.mean(support))


def test_on_rows_of_unit_length_a_bias_of_size_r_is_one_of_size_1(corpus):
    recipes = (textcat.Recipe("plain", learner={"rho": rho}) for rho in (1.0, "R"))
    one, r = (study_margins(corpus, recipe, grid=[Margins(1.0, tau_pos=5.0)], n_folds=2) for recipe in recipes)
    assert one == r


def test_the_number_of_jobs_and_of_settings_in_a_study_change_no_trial(corpus):
    grid = [Margins(tau_neg, tau_pos=tau_pos) for tau_neg in (-0.5, 1.0) for tau_pos in (1.0, 5.0, 10.0, 20.0)]
    recipe = textcat.Recipe("plain")
    trials = study_margins(corpus, recipe, grid=grid, n_folds=2, n_jobs=2)
    quality = [trial.macro_average_precision["ALL"] for trial in trials]
    assert quality == sorted(quality, reverse=True)
    for trial in trials:
        assert [trial] == study_margins(corpus, recipe, grid=[trial.margins], n_folds=2, n_jobs=1)


def test_repeats_are_averaged_over_splits_of_following_seeds(corpus):
    def map_all(**options):
        (trial,) = study_margins(corpus, textcat.Recipe("plain"), grid=[Margins(1, tau_pos=5)], n_folds=2, **options)
        return trial.macro_average_precision["ALL"]

    assert map_all(seed=3, n_repeats=2) == pytest.approx((map_all(seed=3) + map_all(seed=4)) / 2)


def test_the_study_needs_a_topic_with_two_documents():
    documents = [textcat.Document(name, {"body": name}, (name,)) for name in ("rain", "snow")]
    with pytest.raises(TextcatError, match=r"No topic of corpus sparse has two training documents"):
        study_margins(textcat.Corpus.from_documents("sparse", documents), textcat.Recipe("plain"), n_folds=2)


def test_only_paum_has_margins_to_compare(corpus):
    with pytest.raises(TextcatError, match=r"Recipe old trains PA; only PAUM has margins to compare\."):
        study_margins(corpus, textcat.Recipe("old", learner={"name": "pa"}))


def test_the_grid_has_fixed_and_adapted_margins_each_once():
    grid = default_grid()
    assert len(set(grid)) == len(grid)
    assert {margins.tau_pos is None for margins in grid} == {True, False}
    assert all((margins.kappa is None) != (margins.tau_pos is None) for margins in grid)


def test_the_best_is_the_sparsest_of_the_good_ones():
    def trial(name, quality, sparsity):
        bands = {"ALL": quality, "TOP10": quality, RARE: float("nan")}
        return Trial(Margins(name), bands, {"ALL": sparsity, "TOP10": sparsity})

    trials = [trial(1, 0.7500, 900), trial(2, 0.7495, 400), trial(3, 0.7480, 100)]
    assert best(trials, tolerance=0.001).margins.tau_neg == 2
    assert best(trials, tolerance=0).margins.tau_neg == 1
    assert best(trials, tolerance=0.01).margins.tau_neg == 3


def test_thinned_topics_learn_from_as_few_positives_as_rare_ones_and_are_tested_on_whole_folds():
    corpus = textcat.open_corpus("newswire")
    labels = corpus.labels(corpus.train)
    held_out = np.flatnonzero(folds(labels, 5, 0) == 0).astype(np.int32)
    fold = Fold(labels, held_out, np.random.default_rng(0))
    assert fold.thinned
    for thinned in fold.thinned:
        assert set(held_out) <= set(thinned.left_out)
        assert len(thinned.positives) in np.sort(fold.sizes)[:30]
        assert not set(thinned.positives) & set(thinned.left_out)
        all_positives = set(fold.positives[thinned.topic])
        assert all_positives <= {*thinned.positives, *thinned.left_out}
        assert set(thinned.left_out) <= {*held_out, *all_positives}
    (trial,) = study_margins(corpus, textcat.Recipe("plain"), grid=[Margins(1.0, tau_pos=5.0)], n_folds=2)
    assert 0 < trial.macro_average_precision[RARE] < trial.macro_average_precision["TOP10"]
