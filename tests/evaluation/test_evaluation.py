"""An evaluation says what was measured, and leaves out what has no positive."""

import json
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from cases import every
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics import (
    accuracy_score,
    confusion_matrix,
    f1_score,
    label_ranking_average_precision_score,
    precision_score,
    recall_score,
)

from textcat.base.errors import TextcatError
from textcat.evaluation.at_k import evaluate_at_k
from textcat.evaluation.evaluation import Evaluation, evaluate_scores, single_topic_thresholds

LABELS = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 0], [0, 1, 0]])
SCORES = np.array([[2.0, -1.0, 1.0], [1.0, 3.0, -1.0], [-1.0, 2.0, -1.0], [-2.0, -2.0, -1.0]])
FACTS = {"support": [10, 20, 60], "stopped": ["converged", "converged", "epochs"], "tau_pos": [1.5, math.nan, 2.0]}


def small_evaluation(**changes):
    options = {"spec": ["ALL", "TOP1", "LAST1"], "facts": FACTS} | changes
    return evaluate_scores(SCORES, sparse.csr_matrix(LABELS), ["big", "mid", "none"], [8, 4, 2], 16, **options)


def test_an_evaluation_has_a_row_per_topic_in_column_order():
    big, mid, none = small_evaluation().topics
    assert (big.topic, big.train_positives, big.test_positives, big.prevalence) == ("big", 8, 2, 0.5)
    assert (big.average_precision, big.precision, big.recall, big.f1) == (1, 1, 1, 1)
    assert mid.average_precision == (1 + 2 / 4) / 2
    assert (mid.precision, mid.recall, mid.f1) == (1 / 2, 1 / 2, 1 / 2)
    assert mid.facts == {"support": 20, "stopped": "converged", "tau_pos": None}
    assert (none.test_positives, none.average_precision, none.precision, none.recall, none.f1) == (0, *[None] * 4)


def test_which_documents_get_which_topics_is_decided_once_for_all_topics():
    scored = small_evaluation().scored
    assert scored.given is scored.given
    assert np.array_equal(scored.given, scored.scores > scored.threshold)


def test_an_evaluation_averages_over_bands_without_the_topics_that_have_no_positive():
    everything, largest, smallest = small_evaluation().bands
    assert (everything.topics, everything.left_out) == (2, 1)
    assert everything["macro_average_precision"] == (1 + 0.75) / 2
    assert everything["mean_support"] == 30
    assert everything["macro_f1"] == (1 + 0.5) / 2
    assert everything["micro_f1"] == 2 * 3 / (5 + 4), "what 'none' retrieves is wrongly retrieved"
    assert (largest.band, largest["macro_average_precision"], largest["mean_support"]) == ("TOP1", 1, 10)
    assert (smallest.topics, smallest.left_out, smallest["mean_support"]) == (0, 1, 60)
    assert smallest["macro_average_precision"] is smallest["macro_f1"] is smallest["micro_f1"] is None


def test_a_band_has_its_measures_by_name():
    band = small_evaluation().bands[0]
    assert "micro_f1" in band
    assert "micro_f2" not in band
    assert {name: band[name] for name in band} == band.measures


def test_an_evaluation_without_facts_knows_no_mean_support():
    evaluation = small_evaluation(facts=None)
    assert [row.facts for row in evaluation.topics] == [{}, {}, {}]
    assert [row["mean_support"] for row in evaluation.bands] == [None, None, None]


def test_an_evaluation_takes_thresholds_per_topic():
    big, mid, _ = small_evaluation(threshold=[1.5, -1.5, 0.0]).topics
    assert (big.threshold, big.recall) == (1.5, 1 / 2)
    assert (mid.threshold, mid.precision) == (-1.5, 1 / 3)


def test_facts_that_do_not_fit_the_topics_are_refused_by_name():
    with pytest.raises(ValueError, match="3 topics need as many values of 'epochs', not 2"):
        small_evaluation(facts={"epochs": [1, 2]})


def test_an_evaluation_measures_every_band_as_scikit_learn_measures_its_columns():
    random = np.random.default_rng(0)
    labels, scores = random.random((60, 8)) < 0.3, random.normal(size=(60, 8)).astype(np.float32)
    thresholds = random.normal(size=8)
    evaluation = evaluate_scores(
        scores, labels, list("abcdefgh"), range(8), 100, spec=["ALL", "TOP3"], threshold=thresholds
    )
    for band, columns in zip(evaluation.bands, (range(8), (7, 6, 5)), strict=True):
        Y, given_ = labels[:, columns], (scores > thresholds)[:, columns]
        for name, theirs in (("precision", precision_score), ("recall", recall_score), ("f1", f1_score)):
            for average in ("macro", "micro"):
                expected = theirs(Y, given_, average=average, zero_division=0)
                assert band[f"{average}_{name}"] == pytest.approx(expected)
        for name, theirs in (("precision", precision_score), ("recall", recall_score), ("f1", f1_score)):
            expected = theirs(Y, given_, average="samples", zero_division=np.nan)
            assert band[f"sample_{name}"] == pytest.approx(expected)
        has_topic = Y.any(axis=1)
        expected = label_ranking_average_precision_score(Y[has_topic], scores[has_topic][:, columns])
        assert band["label_ranking_average_precision"] == pytest.approx(expected)
        assert 1 <= band["coverage_error"] <= len(columns)
        rows = [row for row in evaluation.topics if ord(row.topic) - ord("a") in columns]
        for measure in ("r_precision", "precision_at_10", "ndcg"):
            expected = np.mean([getattr(row, measure) for row in rows])
            assert band[f"macro_{measure}"] == pytest.approx(expected)


def test_an_infinite_threshold_is_none_in_a_row():
    big, mid, _ = small_evaluation(threshold=[np.inf, 0.0, 0.0]).topics
    assert (big.threshold, big.recall, mid.threshold) == (None, 0, 0)


def test_with_one_topic_a_document_an_evaluation_counts_accuracy_and_confusions_as_scikit_learn_does():
    random = np.random.default_rng(0)
    own, scores = random.integers(0, 3, 50), random.normal(size=(50, 3))
    labels, got = np.eye(3, dtype=int)[own], scores.argmax(axis=1)
    evaluation = evaluate_scores(scores, labels, list("abc"), [1, 2, 3], 9, threshold=single_topic_thresholds(scores))
    assert evaluation.accuracy == pytest.approx(accuracy_score(own, got))
    assert evaluation.to_frame("confusion").to_numpy().tolist() == confusion_matrix(own, got).tolist()
    assert [row.f1 for row in evaluation.topics] == pytest.approx(f1_score(own, got, average=None))
    assert [row.threshold for row in evaluation.topics] == [None] * 3
    assert [n for *_, n in evaluation.confusion] == sorted((n for *_, n in evaluation.confusion), reverse=True)
    assert Evaluation.from_dict(json.loads(json.dumps(evaluation.as_dict()))) == evaluation


def test_a_document_of_several_topics_that_got_one_of_them_has_confused_nothing():
    scores = np.array([[3.0, 2, 1], [1, 2, 3], [3, 2, 1]])
    labels = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 0]])
    evaluation = evaluate_scores(scores, labels, list("abc"), [1, 1, 1], 3, threshold=single_topic_thresholds(scores))
    assert evaluation.accuracy == 1 / 2
    assert evaluation.confusion == (("a", "a", 1), ("a", "c", 1), ("b", "c", 1))


def test_without_a_labelled_document_there_is_no_accuracy():
    scores = np.array([[1.0, 2.0]])
    evaluation = evaluate_scores(
        scores, np.zeros((1, 2)), ["a", "b"], [1, 1], 2, threshold=single_topic_thresholds(scores)
    )
    assert (evaluation.accuracy, evaluation.confusion) == (None, ())


@given(st.lists(st.lists(st.integers(-2, 2), min_size=3, max_size=3), min_size=1, max_size=9))
def test_thresholds_of_one_topic_let_the_first_of_the_highest_scores_pass(scores):
    passed = np.array(scores) > single_topic_thresholds(scores)
    assert [row.tolist().index(True) for row in passed] == [row.index(max(row)) for row in scores]
    assert passed.sum(axis=1).tolist() == [1] * len(scores)


def with_a_zero_stored(Y):
    stored = sparse.csc_array(np.ones_like(Y))
    stored.data[:] = Y.T.ravel()
    return stored


@every(
    "form",
    [
        with_a_zero_stored,
        sparse.lil_array,
        lambda Y: Y * 2 - 1,
        lambda Y: np.where(Y, 1, np.nan),
        lambda Y: Y.astype(object),
        lambda Y: pd.DataFrame(Y, columns=["a", "b"], dtype="boolean"),
    ],
)
def test_only_positive_labels_are_relevant_to_whatever_reads_an_evaluation(form):
    Y, scores = np.array([[1, 0], [0, 1], [1, 0]]), np.array([[2.0, 1], [1, 2], [3, 0]])
    relevant = evaluate_scores(scores, form(Y), ["a", "b"], [2, 1], 3).scored.relevant
    assert relevant.nnz == 3
    assert relevant.toarray().tolist() == Y.tolist()


@every("swapped, Y", [(["b", "a"], ["a", "b"]), (["a", "b"], ["b", "a"]), (["b", "a"], ["b", "a"])])
@every("library", [pd.DataFrame, lambda values, columns: pl.DataFrame(values, schema=columns)])
def test_tables_of_topics_in_another_order_are_refused(swapped, Y, library):
    scores, relevant = np.array([[2.0, 1], [1, 2]]), np.eye(2)
    tables = library(scores, columns=swapped), library(relevant, columns=Y)
    with pytest.raises(ValueError, match="Column 0 of a table is 'b', but topic 0 is 'a'"):
        evaluate_scores(*tables, ["a", "b"], [1, 1], 2)
    if Y[0] == "b":
        with pytest.raises(ValueError, match="Column 0 of a table is 'b', but topic 0 is 'a'"):
            evaluate_at_k(np.array([[0, 1], [1, 0]]), tables[1], ["a", "b"], [1, 1], 2, ks=[1])


def test_an_evaluation_is_a_line_a_table_and_frames():
    evaluation = small_evaluation()
    assert repr(evaluation) == "<Evaluation of 3 topics on 4 test documents, MAP 0.875, macro F1 0.750>"
    topics = evaluation.to_frame()
    assert topics.index.tolist() == ["big", "mid", "none"]
    assert (topics.loc["mid", "average_precision"], topics.loc["mid", "support"]) == (0.75, 20)
    assert evaluation.to_frame("bands").loc["TOP1", "macro_average_precision"] == 1
    with pytest.raises(TextcatError, match="no rows of 'confusion': ask for 'topics' or 'bands'"):
        evaluation.to_frame("confusion")
    assert '<th scope="row">TOP1</th><td>1.000</td>' in evaluation._repr_html_()
