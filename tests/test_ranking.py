"""Average precision is the paper's, scikit-learn's and trec_eval's; undefined topics stay out of every mean."""

import math

import ir_measures
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics import average_precision_score, f1_score, precision_score, recall_score

from textcat.errors import TextcatError
from textcat.ranking import (
    Band,
    average_precision,
    average_precisions,
    bands,
    decisions,
    evaluate,
    macro_average,
    precision_recall_curve,
)

FLOATS = st.floats(-1e6, 1e6, width=32)
LABELS_AND_DISTINCT_SCORES = st.lists(st.tuples(st.booleans(), FLOATS), min_size=1, unique_by=lambda pair: pair[1])
LABELS_AND_TIED_SCORES = st.lists(st.tuples(st.booleans(), st.sampled_from([-1.5, 0.0, 0.1, 2.0])), min_size=1)


def columns(pairs):
    return np.array([label for label, _ in pairs]), np.array([score for _, score in pairs], dtype=np.float32)


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


@pytest.mark.parametrize("measure", [average_precisions, decisions])
def test_labels_and_scores_of_different_shapes_are_refused(measure):
    with pytest.raises(ValueError, match=r"shape \(2, 3\) cannot be compared with labels of shape \(3, 2\)"):
        measure(np.zeros((3, 2)), np.zeros((2, 3)))


def test_one_topic_takes_one_column():
    with pytest.raises(ValueError, match="one-dimensional"):
        average_precision([[1, 0]], [[1.0, 2.0]])


def test_a_score_that_is_nan_is_refused():
    with pytest.raises(ValueError, match="1 scores are nan"):
        average_precision([1, 0], [np.nan, 1.0])


@given(st.one_of(LABELS_AND_DISTINCT_SCORES, LABELS_AND_TIED_SCORES))
def test_average_precision_is_the_area_under_the_steps_of_the_precision_recall_curve(pairs):
    relevant, scores = columns(pairs)
    precision, recall, thresholds = precision_recall_curve(relevant, scores)
    assert (np.diff(thresholds) < 0).all()
    if relevant.any():
        assert recall[-1] == 1
        area = np.sum(precision * np.diff(recall, prepend=0))
        assert area == pytest.approx(average_precision(relevant, scores))
    else:
        assert np.isnan(recall).all()


def test_a_point_of_the_curve_retrieves_the_scores_from_its_own_up():
    precision, recall, scores = precision_recall_curve([1, 0, 1, 0], [3.0, 2.0, 2.0, 1.0])
    assert scores.tolist() == [3.0, 2.0, 1.0]
    assert precision.tolist() == [1, 2 / 3, 2 / 4]
    assert recall.tolist() == [1 / 2, 1, 1]


@given(matrices(), FLOATS)
def test_precision_recall_and_f1_at_a_threshold_are_those_of_scikit_learn(matrix, threshold):
    labels, scores = matrix
    predicted = scores > threshold
    ours, has_positive = decisions(labels, scores, threshold), labels.any(axis=0)
    for values, theirs in ((ours.precision, precision_score), (ours.recall, recall_score), (ours.f1, f1_score)):
        expected = theirs(labels, predicted, average=None, zero_division=0) if labels.shape[1] > 1 else None
        if expected is not None:
            np.testing.assert_allclose(values[has_positive], expected[has_positive])
        assert np.isnan(values[~has_positive]).all()


@given(matrices())
def test_pooled_decisions_give_the_micro_averages_of_scikit_learn(matrix):
    labels, scores = matrix
    pooled = decisions(sparse.csr_matrix(labels), scores).pooled()
    if labels.any():
        expected = f1_score(labels.ravel(), (scores > 0).ravel(), zero_division=0)
        assert pooled.f1.tolist() == [pytest.approx(expected)]
    else:
        assert np.isnan(pooled.f1).all()


def test_a_score_equal_to_the_threshold_is_not_retrieved():
    assert decisions([[1], [1]], [[0.0], [1.0]]).retrieved.tolist() == [1]


def test_each_topic_can_have_its_own_threshold():
    assert decisions(np.ones((2, 2)), [[1.0, 1.0], [2.0, 2.0]], threshold=[0.0, 1.5]).retrieved.tolist() == [2, 1]


def test_a_macro_average_leaves_out_undefined_topics_and_counts_them():
    assert macro_average([0.5, math.nan, 1.0]) == (0.75, 2, 1)
    assert macro_average([0.5, math.nan, 1.0], members=[0, 1]) == (0.5, 1, 1)


def test_a_macro_average_without_a_defined_topic_is_none():
    assert macro_average([math.nan]) == (None, 0, 1)
    assert macro_average([0.5], members=[]) == (None, 0, 0)


TOPICS = ["acq", "corn", "earn", "rye", "tea"]
SIZES = [50, 9, 90, 1, 9]


def members(*spec, topics=TOPICS, sizes=SIZES):
    return {band.name: [topics[place] for place in band.topics] for band in bands(topics, sizes, spec)}


def test_bands_follow_training_size_and_break_ties_by_name():
    assert members("ALL", "TOP3", "LAST3") == {
        "ALL": ["earn", "acq", "corn", "tea", "rye"],
        "TOP3": ["earn", "acq", "corn"],
        "LAST3": ["corn", "tea", "rye"],
    }


@given(st.permutations(TOPICS))
def test_the_order_of_the_columns_does_not_change_a_band(topics):
    sizes = [SIZES[TOPICS.index(topic)] for topic in topics]
    assert members("TOP3", "LAST2", "9-50", topics=topics, sizes=sizes) == members("TOP3", "LAST2", "9-50")


def test_a_corpus_with_fewer_topics_fills_a_band_as_far_as_it_goes():
    assert members("TOP10", "LAST30") == {name: ["earn", "acq", "corn", "tea", "rye"] for name in ("TOP10", "LAST30")}


def test_a_band_can_be_a_range_of_training_sizes_with_both_ends_in_it():
    assert members("9-50", "10-", "2-8") == {"9-50": ["acq", "corn", "tea"], "10-": ["earn", "acq"], "2-8": []}


def test_a_band_can_list_its_topics():
    assert members("drinks = tea, tea", "grain=rye,corn") == {"drinks": ["tea"], "grain": ["rye", "corn"]}


def test_one_band_may_be_given_as_a_string_in_any_case():
    assert bands(TOPICS, SIZES, "top1") == [Band("TOP1", (2,))]


@pytest.mark.parametrize("spec", ["", "TOP", "TOP0", "FIRST10", "50-10", "-5", "LAST-3", "١-٢"])
def test_a_band_that_cannot_be_understood_is_refused_with_the_forms_there_are(spec):
    with pytest.raises(TextcatError, match=rf"^No band '{spec}': a band is ALL, TOPn or LASTn .* name=topic,topic\.$"):
        bands(TOPICS, SIZES, spec)


@pytest.mark.parametrize("spec", ["grain=", "=rye", "grain=,"])
def test_a_listed_band_needs_a_name_and_topics(spec):
    with pytest.raises(TextcatError, match="lacks its name or its topics"):
        bands(TOPICS, SIZES, spec)


def test_an_unknown_topic_of_a_band_is_named_with_the_nearest_known_one():
    with pytest.raises(TextcatError, match=r"^No topic 'earns' for the band 'mine'\. Did you mean 'earn'\?$"):
        bands(TOPICS, SIZES, "mine=earns")
    with pytest.raises(TextcatError, match=r"^No topic 'zzz' for the band 'mine'\. Known topics: acq, corn, earn"):
        bands(TOPICS, SIZES, "mine=zzz")


def test_every_topic_needs_a_training_size():
    with pytest.raises(ValueError, match="5 topics need as many training sizes, not 1"):
        bands(TOPICS, [1])


LABELS = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 0], [0, 1, 0]])
SCORES = np.array([[2.0, -1.0, 1.0], [1.0, 3.0, -1.0], [-1.0, 2.0, -1.0], [-2.0, -2.0, -1.0]])
FACTS = {"support": [10, 20, 60], "stopped": ["converged", "converged", "epochs"], "tau_pos": [1.5, math.nan, 2.0]}


def small_evaluation(**changes):
    options = {"spec": ["ALL", "TOP1", "LAST1"], "facts": FACTS} | changes
    return evaluate(SCORES, sparse.csr_matrix(LABELS), ["big", "mid", "none"], [8, 4, 2], 16, **options)


def test_an_evaluation_has_a_row_per_topic_in_column_order():
    big, mid, none = small_evaluation().topics
    assert (big.topic, big.train_positives, big.test_positives, big.prevalence) == ("big", 8, 2, 0.5)
    assert (big.average_precision, big.precision, big.recall, big.f1) == (1, 1, 1, 1)
    assert mid.average_precision == (1 + 2 / 4) / 2
    assert (mid.precision, mid.recall, mid.f1) == (1 / 2, 1 / 2, 1 / 2)
    assert mid.facts == {"support": 20, "stopped": "converged", "tau_pos": None}
    assert (none.test_positives, none.average_precision, none.precision, none.recall, none.f1) == (0, *[None] * 4)


def test_an_evaluation_averages_over_bands_without_the_topics_that_have_no_positive():
    everything, largest, smallest = small_evaluation().bands
    assert (everything.topics, everything.left_out) == (2, 1)
    assert everything.macro_average_precision == (1 + 0.75) / 2
    assert everything.average_sparsity == 30
    assert everything.macro_f1 == (1 + 0.5) / 2
    assert everything.micro_f1 == 2 * 3 / (5 + 4), "what 'none' retrieves is wrongly retrieved"
    assert (largest.band, largest.macro_average_precision, largest.average_sparsity) == ("TOP1", 1, 10)
    assert (smallest.topics, smallest.left_out, smallest.average_sparsity) == (0, 1, 60)
    assert smallest.macro_average_precision is smallest.macro_f1 is smallest.micro_f1 is None


def test_an_evaluation_without_facts_knows_no_sparsity():
    evaluation = small_evaluation(facts=None)
    assert [row.facts for row in evaluation.topics] == [{}, {}, {}]
    assert [row.average_sparsity for row in evaluation.bands] == [None, None, None]


def test_an_evaluation_takes_thresholds_per_topic():
    big, mid, _ = small_evaluation(threshold=[1.5, -1.5, 0.0]).topics
    assert (big.threshold, big.recall) == (1.5, 1 / 2)
    assert (mid.threshold, mid.precision) == (-1.5, 1 / 3)


def test_facts_that_do_not_fit_the_topics_are_refused_by_name():
    with pytest.raises(ValueError, match="3 topics need as many values of 'epochs', not 2"):
        small_evaluation(facts={"epochs": [1, 2]})
