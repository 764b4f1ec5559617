"""Measures are the papers', scikit-learn's and trec_eval's; what is not defined stays out of every mean."""

import math

import ir_measures
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics import (
    average_precision_score,
    coverage_error,
    f1_score,
    label_ranking_average_precision_score,
    ndcg_score,
    precision_recall_curve,
    precision_score,
    recall_score,
    top_k_accuracy_score,
)

from textcat.evaluation import metrics
from textcat.evaluation.metrics import (
    average_precisions,
    document_decisions,
    document_rankings,
    macro_average,
    topic_decisions,
    topic_rankings,
)

FLOATS = st.floats(-1e6, 1e6, width=32)
LABELS_AND_DISTINCT_SCORES = st.lists(st.tuples(st.booleans(), FLOATS), min_size=1, unique_by=lambda pair: pair[1])
LABELS_AND_TIED_SCORES = st.lists(st.tuples(st.booleans(), st.sampled_from([-1.5, 0.0, 0.1, 2.0])), min_size=1)


def columns(pairs):
    return np.array([label for label, _ in pairs]), np.array([score for _, score in pairs], dtype=np.float32)


def average_precision(relevant, scores):
    return average_precisions(np.reshape(relevant, (-1, 1)), np.reshape(scores, (-1, 1)))[0]


def naive_average_precision(relevant, scores):
    """Li et al. (2002), section 3.2, word for word, with each θ just below the score of the positive."""
    precisions = []
    for i in range(len(scores)):
        if relevant[i]:
            theta = np.nextafter(scores[i], np.float32(-np.inf))
            retrieved = [j for j in range(len(scores)) if scores[j] > theta]
            precisions.append(sum(relevant[j] for j in retrieved) / len(retrieved))
    return sum(precisions) / len(precisions) if precisions else math.nan


@st.composite
def matrices(draw):
    n_documents, n_topics = draw(st.integers(1, 12)), draw(st.integers(1, 5))
    labels = draw(st.lists(st.booleans(), min_size=n_documents * n_topics, max_size=n_documents * n_topics))
    scores = draw(st.lists(FLOATS, min_size=n_documents * n_topics, max_size=n_documents * n_topics))
    shape = (n_documents, n_topics)
    return np.reshape(labels, shape), np.reshape(np.array(scores, dtype=np.float32), shape)


@given(st.one_of(LABELS_AND_DISTINCT_SCORES, LABELS_AND_TIED_SCORES))
def test_average_precision_is_the_papers_definition_read_with_theta_just_below_each_positive(pairs):
    relevant, scores = columns(pairs)
    assert average_precision(relevant, scores) == pytest.approx(naive_average_precision(relevant, scores), nan_ok=True)


@given(st.one_of(LABELS_AND_DISTINCT_SCORES, LABELS_AND_TIED_SCORES))
def test_average_precision_is_that_of_scikit_learn_with_and_without_ties(pairs):
    relevant, scores = columns(pairs)
    if relevant.any():
        assert average_precision(relevant, scores) == pytest.approx(average_precision_score(relevant, scores))


@given(LABELS_AND_DISTINCT_SCORES)
def test_average_precision_is_that_of_trec_eval_on_distinct_scores(pairs):
    relevant, scores = columns(pairs)
    qrels = [ir_measures.Qrel("topic", str(place), int(label)) for place, label in enumerate(relevant)]
    run = [ir_measures.ScoredDoc("topic", str(place), float(score)) for place, score in enumerate(scores)]
    theirs = ir_measures.pytrec_eval.calc_aggregate([ir_measures.AP], qrels, run)[ir_measures.AP]
    if relevant.any():
        assert average_precision(relevant, scores) == pytest.approx(theirs)


@given(LABELS_AND_TIED_SCORES, st.randoms())
def test_the_order_of_the_documents_does_not_matter(pairs, random):
    shuffled = random.sample(pairs, len(pairs))
    assert average_precision(*columns(pairs)) == pytest.approx(average_precision(*columns(shuffled)), nan_ok=True)


def test_tied_documents_are_retrieved_together():
    assert average_precision([1, 0], [0.5, 0.5]) == 1 / 2
    assert average_precision([1, 0, 0, 1], [2.0, 1.0, 1.0, 1.0]) == (1 + 2 / 4) / 2


def test_scores_that_differ_only_in_float64_are_tied_in_float32():
    scores = np.array([1.0, 1.0 + 1e-12])
    assert average_precision([0, 1], scores) == 1
    assert average_precision([0, 1], scores.astype(np.float32)) == 1 / 2


def test_a_perfect_ranking_has_average_precision_one_and_the_worst_of_one_positive_one_over_n():
    assert average_precision([1, 1, 0, 0], [4, 3, 2, 1]) == 1
    assert average_precision([0, 0, 0, 1], [4, 3, 2, 1]) == 1 / 4


def test_a_topic_without_a_positive_has_no_average_precision():
    assert math.isnan(average_precision([0, 0], [1.0, 2.0]))
    assert math.isnan(average_precision([], []))


@given(matrices())
def test_every_column_gets_its_own_average_precision_from_dense_and_sparse_labels(matrix):
    labels, scores = matrix
    expected = [average_precision(labels[:, topic], scores[:, topic]) for topic in range(labels.shape[1])]
    for form in (labels, labels.astype(int), sparse.csr_matrix(labels), sparse.csc_array(labels.astype(np.float32))):
        np.testing.assert_array_equal(average_precisions(form, scores), expected)


def test_stored_zeros_of_sparse_labels_are_not_positives():
    labels = sparse.csr_array((np.array([1, 0]), np.array([0, 0]), np.array([0, 1, 2])), shape=(2, 1))
    np.testing.assert_array_equal(average_precisions(labels, [[2.0], [1.0]]), [1.0])
    assert labels.nnz == 2, "the caller's matrix is left alone"


@pytest.mark.parametrize("measure", [average_precisions, topic_decisions])
def test_labels_and_scores_of_different_shapes_are_refused(measure):
    with pytest.raises(ValueError, match=r"shape \(2, 3\) cannot be compared with labels of shape \(3, 2\)"):
        measure(np.zeros((3, 2)), np.zeros((2, 3)))


def test_a_score_that_is_nan_is_refused():
    with pytest.raises(ValueError, match="1 scores are nan"):
        average_precision([1, 0], [np.nan, 1.0])


@given(st.one_of(LABELS_AND_DISTINCT_SCORES, LABELS_AND_TIED_SCORES))
def test_average_precision_is_the_area_under_the_steps_of_the_precision_recall_curve(pairs):
    relevant, scores = columns(pairs)
    if relevant.any():
        precision, recall, _ = precision_recall_curve(relevant, scores)
        area = np.sum(precision[:-1] * -np.diff(recall))
        assert area == pytest.approx(average_precision(relevant, scores))


@given(matrices(), FLOATS)
def test_precision_recall_and_f1_at_a_threshold_are_those_of_scikit_learn(matrix, threshold):
    labels, scores = matrix
    predicted = scores > threshold
    ours, has_positive = topic_decisions(labels, scores, threshold), labels.any(axis=0)
    for values, theirs in ((ours.precision, precision_score), (ours.recall, recall_score), (ours.f1, f1_score)):
        expected = theirs(labels, predicted, average=None, zero_division=0) if labels.shape[1] > 1 else None
        if expected is not None:
            np.testing.assert_allclose(values[has_positive], expected[has_positive])
        assert np.isnan(values[~has_positive]).all()


@given(matrices())
def test_pooled_decisions_give_the_micro_averages_of_scikit_learn(matrix):
    labels, scores = matrix
    pooled = topic_decisions(sparse.csr_matrix(labels), scores).pooled()
    if labels.any():
        expected = f1_score(labels.ravel(), (scores > 0).ravel(), zero_division=0)
        assert pooled.f1.tolist() == [pytest.approx(expected)]
    else:
        assert np.isnan(pooled.f1).all()


def test_a_score_equal_to_the_threshold_is_not_retrieved():
    assert topic_decisions([[1], [1]], [[0.0], [1.0]]).retrieved.tolist() == [1]


def test_each_topic_can_have_its_own_threshold():
    assert topic_decisions(np.ones((2, 2)), [[1.0, 1.0], [2.0, 2.0]], threshold=[0.0, 1.5]).retrieved.tolist() == [2, 1]


def test_a_macro_average_leaves_out_undefined_topics_and_counts_them():
    assert macro_average([0.5, math.nan, 1.0]) == (0.75, 2, 1)
    assert macro_average([0.5, math.nan, 1.0], members=[0, 1]) == (0.5, 1, 1)


def test_a_macro_average_without_a_defined_topic_is_none():
    assert macro_average([math.nan]) == (None, 0, 1)
    assert macro_average([0.5], members=[]) == (None, 0, 0)


# --- rankings of topics ----------------------------------------------------------------------------------------------


@st.composite
def tied_matrices(draw):
    labels, scores = draw(matrices())
    return labels, np.round(scores / 1e6, 1)


def one_column(pairs):
    relevant, scores = columns(pairs)
    return relevant[:, np.newaxis], scores[:, np.newaxis]


@given(LABELS_AND_DISTINCT_SCORES, st.integers(1, 12))
def test_topic_rankings_are_measured_as_trec_eval_does_on_distinct_scores(pairs, k):
    labels, scores = one_column(pairs)
    if not labels.any():
        return
    qrels = [ir_measures.Qrel("topic", str(place), int(label)) for place, label in enumerate(labels[:, 0])]
    run = [ir_measures.ScoredDoc("topic", str(place), float(score)) for place, score in enumerate(scores[:, 0])]
    wanted = [ir_measures.AP, ir_measures.Rprec, ir_measures.P @ k, ir_measures.nDCG]
    theirs = ir_measures.pytrec_eval.calc_aggregate(wanted, qrels, run)
    ours = topic_rankings(labels, scores, k)
    assert [float(values[0]) for values in ours] == pytest.approx([theirs[measure] for measure in wanted])


@given(LABELS_AND_TIED_SCORES)
def test_ndcg_is_that_of_scikit_learn_with_ties(pairs):
    labels, scores = one_column(pairs)
    if len(labels) > 1 and labels.any():
        expected = ndcg_score(labels.T, scores.T)
        assert topic_rankings(labels, scores).ndcg[0] == pytest.approx(expected)


@given(st.lists(st.tuples(st.booleans(), st.sampled_from([0.0, 1.0, 2.0])), min_size=1, max_size=8), st.data())
def test_with_ties_measures_of_ranks_are_means_over_all_orders_of_equal_scores(pairs, data):
    labels, scores = one_column(pairs)
    k = data.draw(st.integers(1, len(labels)))
    ours, n_positives = topic_rankings(labels, scores, k), int(labels.sum())
    if not n_positives:
        assert np.isnan(np.concatenate(ours)).all()
        return

    def expected_hits(depth):
        total, left = 0.0, depth
        for value in np.unique(scores)[::-1]:
            group = labels[scores == value]
            taken = min(left, len(group))
            total, left = total + taken * group.mean(), left - taken
        return total

    assert ours.precision_at_k[0] == pytest.approx(expected_hits(k) / k)
    assert ours.r_precision[0] == pytest.approx(expected_hits(n_positives) / n_positives)


@given(tied_matrices())
def test_every_topic_is_measured_by_itself(matrix):
    labels, scores = matrix
    together = topic_rankings(sparse.csr_matrix(labels), scores, 3)
    np.testing.assert_array_equal(together.average_precision, average_precisions(labels, scores))
    for topic in range(labels.shape[1]):
        alone = topic_rankings(labels[:, [topic]], scores[:, [topic]], 3)
        np.testing.assert_array_equal([values[topic] for values in together], [values[0] for values in alone])


# --- documents -------------------------------------------------------------------------------------------------------


@given(st.one_of(matrices(), tied_matrices()))
def test_rankings_of_documents_are_measured_as_scikit_learn_does_with_and_without_ties(matrix):
    labels, scores = matrix
    ours, has_topic = document_rankings(labels, scores), labels.any(axis=1)
    assert all(np.isnan(values[~has_topic]).all() for values in ours)
    if has_topic.any() and labels.shape[1] > 1:
        labels, scores = labels[has_topic], scores[has_topic]
        expected = label_ranking_average_precision_score(labels, scores)
        assert ours.average_precision[has_topic].mean() == pytest.approx(expected)
        assert ours.coverage[has_topic].mean() == pytest.approx(coverage_error(labels, scores))


@given(st.lists(st.integers(0, 3), min_size=4, max_size=10), st.randoms())
def test_the_topic_ranked_first_is_right_as_often_as_top_k_accuracy_says(truth, random):
    scores = np.reshape(random.sample(range(1000), 4 * len(truth)), (len(truth), 4)).astype(float)
    labels = np.eye(4, dtype=int)[truth]
    expected = top_k_accuracy_score(truth, scores, k=1, labels=range(4))
    assert document_rankings(labels, scores).first.mean() == pytest.approx(expected)


def test_the_first_of_several_topics_with_the_highest_score_is_right_in_part():
    assert document_rankings([[1, 0, 0]], [[1.0, 1.0, 0.0]]).first.tolist() == [1 / 2]


@given(tied_matrices())
def test_documents_are_measured_alike_in_blocks_of_any_size(matrix):
    whole, before = document_rankings(*matrix), metrics.COMPARISONS_AT_ONCE
    try:
        metrics.COMPARISONS_AT_ONCE = 1
        for values, expected in zip(document_rankings(*matrix), whole, strict=True):
            np.testing.assert_array_equal(values, expected)
    finally:
        metrics.COMPARISONS_AT_ONCE = before


def test_no_document_gives_no_values():
    nothing = np.empty((0, 3))
    for measured in (document_rankings(nothing, nothing), document_decisions(nothing, nothing)):
        assert [values.shape for values in measured] == [(0,)] * 3


@given(matrices(), FLOATS)
def test_means_over_documents_are_the_sample_averages_of_scikit_learn(matrix, threshold):
    labels, scores = matrix
    if labels.shape[1] == 1:
        return
    given_, ours = scores > threshold, document_decisions(sparse.csc_matrix(labels), scores, threshold)
    theirs = (precision_score, recall_score, f1_score)
    for values, score in zip(ours, theirs, strict=True):
        expected = score(labels, given_, average="samples", zero_division=np.nan)
        assert macro_average(values).mean == (None if np.isnan(expected) else pytest.approx(expected))


def test_documents_without_a_topic_and_a_tag_count_for_no_mean():
    measured = document_decisions([[0, 0], [0, 0], [1, 0]], [[-1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    expected = {"precision": [np.nan, 0, np.nan], "recall": [np.nan, np.nan, 0], "f1": [np.nan, 0, 0]}
    for name, values in measured._asdict().items():
        np.testing.assert_array_equal(values, expected[name])
