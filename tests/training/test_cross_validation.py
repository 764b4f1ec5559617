"""Folds spread rare topics; a trial is what training and scoring fold by fold gives."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from margin_recipes import PLAIN, with_margins

import textcat
from textcat.errors import TextcatError
from textcat.evaluation.metrics import average_precisions
from textcat.training.cross_validation import (
    EXPECTED,
    POOLED,
    RARE,
    HeldOutFold,
    assign_folds,
    measure_by_folds,
    out_of_fold_scores,
)
from textcat.training.examples import Examples


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


def test_another_seed_gives_other_folds(corpus):
    labels = corpus.labels(corpus.train)
    assert not np.array_equal(assign_folds(labels, 5, 0), assign_folds(labels, 5, 1))


def test_more_folds_than_documents_are_told_of():
    with pytest.raises(TextcatError, match=r"2 training documents cannot be split into 3 folds; ask for fewer\."):
        assign_folds(sp.csc_matrix(np.ones((2, 1))), 3, 0)


@pytest.mark.parametrize(
    "recipe",
    [
        with_margins(1, 20.0),
        with_margins(-0.5, "prevalence", kappa=-10.0, scale=100.0),
        PLAIN.changed("micra", eta=3.0, mini_epochs=2),
    ],
)
def test_a_trial_is_what_training_and_scoring_fold_by_fold_gives(corpus, recipe):
    (trial,) = measure_by_folds(corpus, [recipe], n_folds=3, seed=5)
    labels = corpus.labels(corpus.train).tocsr()
    fold = assign_folds(labels.tocsc(), 3, 5)
    qualities, support, pooled = [], [], np.empty(labels.shape, np.float32)
    for held_out in range(3):
        train = labels[fold != held_out]
        features = recipe.make_features().fit([corpus.train[i] for i in np.flatnonzero(fold != held_out)])
        rows = features.transform(corpus.train)
        ranker = recipe.make_learner().fit(rows[fold != held_out], train)
        scores = ranker.decision_function(rows[fold == held_out])
        support += ranker.n_support_.tolist()
        pooled[fold == held_out] = scores / [solution.unit for solution in ranker.solutions_]
        quality = average_precisions(labels[fold == held_out], scores)
        quality[np.asarray(train.sum(axis=0)).ravel() == 0] = np.nan
        qualities.append(np.nanmean(quality))
    assert trial.recipe == recipe
    assert trial.measures["macro_average_precision"]["ALL"] == pytest.approx(np.mean(qualities), abs=1e-9)
    assert trial.measures["average_sparsity"]["ALL"] == pytest.approx(np.mean(support))
    of_two = np.asarray(labels.sum(axis=0)).ravel() >= 2
    expected = np.nanmean(average_precisions(labels, pooled)[of_two])
    assert trial.measures["macro_average_precision"][POOLED] == pytest.approx(expected)


def test_the_expected_average_has_simulated_topics_in_the_place_of_the_smallest():
    whole = textcat.open_corpus("newswire")
    (trial,) = measure_by_folds(whole, [PLAIN], n_folds=2)
    figures = trial.measures["macro_average_precision"]
    n = len(whole.topics)
    common = (n * figures[EXPECTED] - 30 * figures[RARE]) / (n - 30)
    assert figures["LAST30"] < common <= 1
    assert figures["ALL"] < common


def test_on_rows_of_unit_length_a_bias_of_size_r_is_one_of_size_1(corpus):
    recipes = [with_margins(1, 5.0, rho=rho) for rho in (1.0, "R")]
    one, r = measure_by_folds(corpus, recipes, n_folds=2)
    assert one.measures["macro_average_precision"] == r.measures["macro_average_precision"]


def test_the_number_of_jobs_and_of_recipes_in_a_study_change_no_trial(corpus):
    recipes = [with_margins(tau_neg, tau_pos) for tau_neg in (-0.5, 1) for tau_pos in (1.0, 5.0, 10.0, 20.0)]
    recipes += [with_margins(1, 5.0, seed=3)]
    trials = list(measure_by_folds(corpus, recipes, n_folds=2, n_jobs=2))
    assert [trial.recipe for trial in trials] == recipes
    for trial in trials:
        assert [trial] == list(measure_by_folds(corpus, [trial.recipe], n_folds=2, n_jobs=1))


def test_repeats_are_averaged_over_splits_of_following_seeds(corpus):
    def map_all(**options):
        (trial,) = measure_by_folds(corpus, [with_margins(1, 5.0)], n_folds=2, **options)
        return trial.measures["macro_average_precision"]["ALL"]

    assert map_all(seed=3, n_repeats=2) == pytest.approx((map_all(seed=3) + map_all(seed=4)) / 2)


def test_the_study_needs_a_topic_with_two_documents():
    documents = [textcat.Document(name, {"body": name}, (name,)) for name in ("rain", "snow")]
    with pytest.raises(TextcatError, match=r"No topic of corpus sparse has two training documents"):
        list(measure_by_folds(textcat.Corpus.from_documents("sparse", documents), [PLAIN], n_folds=2))


def test_simulated_rare_topics_learn_from_as_few_positives_as_rare_ones_and_are_tested_on_whole_folds():
    corpus = textcat.open_corpus("newswire")
    labels = corpus.labels(corpus.train)
    held_out = np.flatnonzero(assign_folds(labels, 5, 0) == 0).astype(np.int32)
    fold = HeldOutFold(labels, held_out, np.random.default_rng(0))
    assert fold.rare_topics
    for rare in fold.rare_topics:
        assert set(held_out) <= set(rare.left_out)
        assert len(rare.positives) in np.sort(fold.sizes)[:30]
        assert not set(rare.positives) & set(rare.left_out)
        all_positives = set(fold.positives[rare.topic])
        assert all_positives <= {*rare.positives, *rare.left_out}
        assert set(rare.left_out) <= {*held_out, *all_positives}
    (trial,) = measure_by_folds(corpus, [with_margins(1, 5.0)], n_folds=2)
    assert 0 < trial.measures["macro_average_precision"][RARE] < trial.measures["macro_average_precision"]["TOP10"]


def test_out_of_fold_scores_are_those_of_learners_that_have_not_seen_the_document(corpus):
    labels = corpus.labels(corpus.train).tocsc()
    rows = PLAIN.make_features().fit_transform(corpus.train)
    learner = PLAIN.make_learner()
    of = assign_folds(labels, 3, 1)
    scores = out_of_fold_scores(Examples(rows, labels), learner, of)
    for fold in range(3):
        trained = learner.fit(rows[of != fold], labels.tocsr()[of != fold])
        np.testing.assert_allclose(scores[of == fold], trained.decision_function(rows[of == fold]), atol=1e-5)


def test_scoring_out_of_fold_leaves_the_facts_of_a_fitted_learner_as_they_were(corpus):
    labels = corpus.labels(corpus.train).tocsc()
    rows = PLAIN.make_features().fit_transform(corpus.train)
    learner = PLAIN.changed(tau_pos="prevalence", kappa=-20.0, scale=100.0).make_learner().fit(rows, labels)
    before = learner.facts()
    out_of_fold_scores(Examples(rows, labels), learner, assign_folds(labels, 3, 1))
    assert learner.facts() == before


def test_rows_after_the_documents_are_trained_on_in_every_fold_but_left_out_where_it_is_said(corpus):
    labels = corpus.labels(corpus.train).tocsc()
    rows = PLAIN.make_features().fit_transform(corpus.train)
    learner, n = PLAIN.make_learner(), len(corpus.train) - 10
    left_out = np.zeros(labels.shape, np.int8)
    left_out[n:, 1:] = 1
    fold_of = assign_folds(labels[:n], 3, 0)
    scores = out_of_fold_scores(Examples(rows, labels, sp.csc_matrix(left_out)), learner, fold_of)
    assert scores.shape == (n, labels.shape[1])
    alone = out_of_fold_scores(Examples(rows[:n], labels[:n]), learner, fold_of)
    np.testing.assert_allclose(scores[:, 1:], alone[:, 1:], atol=1e-4)
    of = np.append(fold_of, [-1] * 10)
    trained = learner.fit(rows[of != 0], labels.tocsr()[of != 0][:, :2])
    expected = trained.decision_function(rows[:n][of[:n] == 0])[:, 0]
    np.testing.assert_allclose(scores[of[:n] == 0, 0], expected, atol=1e-5)
