"""Equal models do not differ, clearly different ones do, and the tests err as often as they say."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student_t

from textcat.evaluation.evaluation import evaluate_scores
from textcat.evaluation.metrics import RankingSteps
from textcat.evaluation.significance import (
    bootstrap_draws,
    bootstrap_t_test,
    compare_evaluations,
    holm,
    paired_bootstrap,
    sign_flip_test,
)

TOPICS = list("abcdefgh")
SIZES = range(8)


def labels_and_scores(*qualities, seed=0, n_documents=100):
    """Labels, and the scores of a model per quality: the larger it is, the higher do positives score."""
    random = np.random.default_rng(seed)
    labels = random.random((n_documents, len(TOPICS))) < 0.2
    return labels, [random.normal(size=labels.shape) + quality * labels for quality in qualities]


def compared(*qualities, seed=0, **options):
    labels, scores = labels_and_scores(*qualities, seed=seed)
    return compare_evaluations([evaluated(of_model, labels) for of_model in scores], **options)


def evaluated(scores, labels, **options):
    return evaluate_scores(scores, labels, TOPICS, SIZES, 100, **{"spec": ["ALL", "TOP3"], **options})


def test_values_are_those_of_the_evaluations_and_differences_theirs():
    labels, scores = labels_and_scores(1, 2, 3)
    thresholds = [0.0, 0.5, np.linspace(0, 1, 8)]
    evaluations = [evaluated(of, labels, threshold=cut) for of, cut in zip(scores, thresholds, strict=True)]
    found = compare_evaluations(evaluations, n_resamples=100)
    assert [(row.band, row.measure) for row in found.measures] == list(
        itertools.product(["ALL", "TOP3"], ["macro_average_precision", "macro_f1", "micro_f1"])
    )
    for model, (values, threshold) in enumerate(zip(scores, thresholds, strict=True)):
        rows = evaluate_scores(values, labels, TOPICS, SIZES, 100, spec=["ALL", "TOP3"], threshold=threshold)
        of_band = {row.band: row for row in rows.bands}
        of_topic = {row.topic: row for row in rows.topics}
        assert all(row.values[model] == of_band[row.band][row.measure] for row in found.measures)
        assert all(row.average_precision[model] == of_topic[row.topic].average_precision for row in found.topics)
    for row in found.measures:
        assert [of.difference for of in row.differences] == [value - row.values[0] for value in row.values[1:]]
        assert all(of.interval[0] <= of.difference <= of.interval[1] for of in row.differences)
        assert all((of.p_topics is None) == (row.measure == "micro_f1") for of in row.differences)


def test_topics_with_the_smallest_corrected_p_come_first_then_those_that_differ_most():
    labels, scores = labels_and_scores(1, 1, 4)
    topics = compare_evaluations([evaluated(of_model, labels) for of_model in scores], n_resamples=1).topics
    assert [row.topic for row in topics] != TOPICS
    order = [(min(row.p_values), -max(map(abs, row.differences))) for row in topics]
    assert order == sorted(order)


def test_a_topic_is_compared_by_a_test_of_its_average_precision():
    labels, scores = labels_and_scores(1, 1, 4)
    evaluations = [evaluated(of_model, labels) for of_model in scores]
    topics = {row.topic: row for row in compare_evaluations(evaluations, n_resamples=200).topics}
    draws = np.concatenate(list(bootstrap_draws(len(labels), 200, 0)), axis=1)
    p_values = []
    for column, topic in enumerate(TOPICS):
        rankings = [RankingSteps.of(of_model[:, column], np.flatnonzero(labels[:, column])) for of_model in scores]
        resampled = rankings[2].average_precision(draws) - rankings[0].average_precision(draws)
        row = topics[topic]
        statistic = row.differences[1] / resampled.std(ddof=1)
        p_values.append(2 * student_t.sf(abs(statistic), labels[:, column].sum() - 1))
    assert [topics[topic].p_values[1] for topic in TOPICS] == pytest.approx(holm(p_values).tolist())


def test_the_t_test_of_one_topic_seldom_tells_equally_good_models_apart():
    random, p_values = np.random.default_rng(0), []
    for n_positives in [3, 10, 40] * 25:
        labels = np.arange(200) < n_positives
        signal = random.normal(size=200) + 2 * labels
        models = [(signal + random.normal(size=200)).reshape(-1, 1) for _ in range(2)]
        evaluations = [evaluate_scores(of_model, labels.reshape(-1, 1), ["a"], [9], 99) for of_model in models]
        [topic] = compare_evaluations(evaluations, n_resamples=1).topics
        p_values.append(topic.p_values[0])
    assert np.mean(np.array(p_values) < 0.05) < 0.08


def test_a_topic_of_one_positive_differs_by_chance_only():
    assert bootstrap_t_test(0.5, [0.4, 0.5, 0.6], 1) == 1
    assert bootstrap_t_test(0.5, [0.4, 0.5, 0.6, np.nan], 30) < 0.001
    assert bootstrap_t_test(0.0, [0.0, 0.0], 30) == 1


def test_a_model_does_not_differ_from_itself():
    labels, [scores] = labels_and_scores(1)
    for row in compare_evaluations([evaluated(scores, labels)] * 2, n_resamples=100).measures:
        [same] = row.differences
        assert (same.difference, same.interval, same.p_documents) == (0, (0, 0), 1)
        assert same.p_topics in (1, None)


def test_a_better_model_is_told_from_a_worse_one_by_both_tests():
    [row, *_] = compared(0.5, 3).measures
    [better] = row.differences
    assert better.interval[0] > 0
    assert better.p_documents < 0.01
    assert better.p_topics < 0.05


def test_a_band_without_a_positive_is_compared_by_nothing():
    labels, scores = labels_and_scores(1, 2)
    labels[:, 7] = False
    found = compare_evaluations([evaluated(of_model, labels, spec="TOP1") for of_model in scores], n_resamples=10)
    assert all((row.values, row.differences) == ((None, None), (None,)) for row in found.measures)
    assert "h" not in [row.topic for row in found.topics]


def test_the_same_seed_gives_the_same_comparison():
    assert compared(1, 2, n_resamples=50) == compared(1, 2, n_resamples=50)
    assert compared(1, 2, n_resamples=50) != compared(1, 2, n_resamples=50, seed=1)


@given(st.lists(st.sampled_from([-0.3, -0.1, 0.0, 0.1, 0.2]), min_size=1, max_size=8))
def test_the_sign_flip_test_estimates_the_share_of_all_signs(differences):
    sums = [abs(np.dot(signs, differences)) for signs in itertools.product([-1, 1], repeat=len(differences))]
    exact = np.mean([total >= abs(sum(differences)) - 1e-9 for total in sums])
    assert sign_flip_test(differences) == pytest.approx(exact, abs=0.03)
    assert sign_flip_test([*differences, np.nan]) == sign_flip_test(differences)


def test_the_paired_bootstrap_counts_deviations_from_the_mean():
    assert paired_bootstrap(2.0, [0.0, 1.0, 2.0, 5.0]) == (1 + 2) / 5
    assert paired_bootstrap(-2.0, [0.0, 1.0, 2.0, 5.0]) == (1 + 2) / 5
    assert paired_bootstrap(3.5, [0.0, 1.0, 2.0, 5.0, np.nan]) == 1 / 5


def test_equally_good_models_are_seldom_told_apart():
    p_values = np.array(
        [
            (of.p_documents, of.p_topics)
            for seed in range(25)
            for of in compared(1, 1, seed=seed, n_resamples=200).measures[0].differences
        ]
    )
    assert ((p_values < 0.1).mean(axis=0) < 0.2).all()
