"""Folds spread rare topics; a trial is what training and scoring fold by fold gives."""

import numpy as np
import pytest
from margin_recipes import PLAIN, with_margins

import textcat
from textcat.base.errors import TextcatError
from textcat.base.folds import assign_folds
from textcat.evaluation.metrics import average_precisions
from textcat.training.cross_validation import (
    EXPECTED,
    POOLED,
    RARE,
    HeldOutFold,
    measure_by_folds,
)


@pytest.fixture(scope="module")
def corpus():
    whole = textcat.open_corpus("newswire")
    return textcat.Corpus.from_documents("part", whole.train[:200])


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
    assert trial.measures["mean_support"]["ALL"] == pytest.approx(np.mean(support))
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
        assert len(rare.positives) in np.sort(fold.sizes)[:30]
        assert not set(rare.positives) & set(rare.left_out)
        all_positives = set(fold.positives[rare.topic])
        assert all_positives <= {*rare.positives, *rare.left_out, *held_out}
        assert set(rare.left_out) <= all_positives
    (trial,) = measure_by_folds(corpus, [with_margins(1, 5.0)], n_folds=2)
    assert 0 < trial.measures["macro_average_precision"][RARE] < trial.measures["macro_average_precision"]["TOP10"]
