"""The first topics of documents are measured as the formulas say, in blocks of any size, overall and by band."""

import json
import math
import tracemalloc

import naive_top
import numpy as np
import pytest
from cases import every
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics import f1_score, ndcg_score

from textcat.base.errors import TextcatError
from textcat.evaluation import at_k, significance
from textcat.evaluation.at_k import evaluate_at_k
from textcat.evaluation.evaluation import Evaluation
from textcat.evaluation.significance import add_intervals, compare_evaluations, resampled_measures

MEASURES = ("precision", "recall", "pair_recall", "ndcg", "f1", "psp")


@st.composite
def rankings(draw, n_topics=None, n_documents=None, full=False):
    """Rankings as lists, the relevant topics as sets, the unknown ones, and sizes in training."""
    n_topics = n_topics or draw(st.integers(1, 16))  # more than 10 ranks take: what draws them takes most of the time
    topics, documents = range(n_topics), draw(st.integers(1, 8)) if n_documents is None else n_documents
    ranked = [draw(st.permutations(topics)) for _ in range(documents)]
    if not full:
        ranked = [ranking[: draw(st.integers(0, n_topics))] for ranking in ranked]
    relevant = [draw(st.sets(st.sampled_from(topics), max_size=15)) for _ in range(documents)]
    unknown = draw(st.lists(st.integers(0, 3), min_size=documents, max_size=documents))
    sizes = draw(st.lists(st.integers(0, 150), min_size=n_topics, max_size=n_topics))
    return ranked, relevant, unknown, sizes


def as_array(ranked, n_ranks):
    return np.array([[*ranking[:n_ranks], *[-1] * (n_ranks - len(ranking))] for ranking in ranked]).reshape(-1, n_ranks)


def as_matrix(relevant, n_topics):
    matrix = np.zeros((len(relevant), n_topics), np.int8)
    for row, topics in zip(matrix, relevant, strict=True):
        row[list(topics)] = 1
    return sparse.csc_matrix(matrix)


def names(n_topics):
    return [f"t{number:03}" for number in range(n_topics)]


def measured(ranked, relevant, unknown, sizes, train_documents=1000, **options):
    known = names(len(sizes)), sizes, train_documents
    top = as_array(ranked, max(options.get("ks", [10])))
    return evaluate_at_k(top, as_matrix(relevant, len(sizes)), *known, n_unknown=unknown, **options)


@given(rankings())
def test_every_measure_of_every_band_is_its_formula_document_by_document(case):
    ranked, relevant, unknown, sizes = case
    evaluation = measured(*case)
    weights = [naive_top.inverse_propensity(size, 1000) for size in sizes]
    ends = {"0-0": (0, 0), "1-5": (1, 5), "6-20": (6, 20), "21-100": (21, 100), "101-": (101, math.inf)}
    assert [row.band for row in evaluation.bands] == ["ALL", *(band for band in ends if band != "0-0" or 0 in sizes)]
    assert evaluation.overall == evaluation.bands[0]
    for row in evaluation.bands:
        low, high = ends.get(row.band, (0, math.inf))
        topics = {topic for topic, size in enumerate(sizes) if low <= size <= high}
        not_known = unknown if row.band == "ALL" else [0] * len(unknown)
        assert row.topics == len(topics & set().union(*relevant))
        assert row.topics + row.left_out == len(topics)
        assert row.pairs == sum(len(right & topics) + n for right, n in zip(relevant, not_known, strict=True))
        for k in evaluation.ks:
            expected = naive_top.measures(ranked, relevant, not_known, topics, k, weights)
            for measure, value in expected.items():
                assert row[f"{measure}@{k}"] == (value if value is None else pytest.approx(value, rel=1e-12))
    assert evaluation.without_topic == sum(not right and not n for right, n in zip(relevant, unknown, strict=True))
    assert evaluation.unknown == sum(unknown)


@given(rankings(), st.data())
def test_figures_are_the_same_to_the_bit_in_blocks_of_any_size(case, data):
    ranked, relevant, unknown, sizes = case
    whole = measured(*case)
    cuts = data.draw(st.lists(st.integers(0, len(ranked))).map(sorted))
    blocks = (block for block in np.split(as_array(ranked, 10), cuts))
    in_blocks = evaluate_at_k(
        blocks, as_matrix(relevant, len(sizes)), names(len(sizes)), sizes, 1000, n_unknown=unknown
    )
    assert in_blocks == whole
    np.testing.assert_array_equal(in_blocks.values.values, whole.values.values)


def test_documents_are_measured_some_at_a_time(monkeypatch):
    random = np.random.default_rng(0)
    top = np.argsort(random.random((50, 20)))[:, :10]
    relevant, known = random.random((50, 20)) < 0.2, (names(20), random.integers(0, 200, 20), 500)
    whole = evaluate_at_k(top, relevant, *known)
    monkeypatch.setattr(at_k, "DOCUMENTS_AT_ONCE", 7)
    assert evaluate_at_k(top, relevant, *known) == whole


def test_counts_are_not_rounded():
    top = np.tile(np.arange(3), (100_000, 1))
    row = evaluate_at_k(top, np.ones((100_000, 3)), names(3), [1, 2, 3], 10, ks=[3], spec=["ALL", "2-3"])
    assert (row.overall["precision@3"], row.bands[1]["precision@3"], row.bands[1]["pair_recall@3"]) == (1, 2 / 3, 1)


def test_thousands_of_topics_take_no_dense_matrix():
    random, n_documents, n_topics = np.random.default_rng(0), 10_000, 25_000
    pairs = np.repeat(np.arange(n_documents), 3), random.integers(0, n_topics, 3 * n_documents)
    relevant = sparse.csr_array((np.ones(3 * n_documents, np.int8), pairs), shape=(n_documents, n_topics))
    blocks = (np.arange(first, first + 5_000)[:, np.newaxis] + np.arange(10) for first in (0, 5_000))
    tracemalloc.start()
    evaluate_at_k(blocks, relevant, names(n_topics), random.integers(0, 200, n_topics), 100_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < n_documents * n_topics / 4, "a dense matrix has so many cells"


@given(rankings(n_topics=12, full=True))
def test_ndcg_and_f1_are_those_of_scikit_learn(case):
    ranked, relevant, _, sizes = case
    evaluation = measured(ranked, relevant, None, sizes).overall
    truth, scores = as_matrix(relevant, 12).toarray(), np.zeros((len(ranked), 12))
    for row, ranking in zip(scores, ranked, strict=True):
        row[ranking] = np.arange(12, 0, -1)
    labelled = truth.any(axis=1)
    if not labelled.any():
        assert evaluation["ndcg@5"] is evaluation["f1@5"] is None
        return
    truth, scores = truth[labelled], scores[labelled]
    for k in (1, 3, 5, 10):
        assert evaluation[f"ndcg@{k}"] == pytest.approx(ndcg_score(truth, scores, k=k), rel=1e-12)
        first = scores > 12 - k
        expected = f1_score(truth, first, average="samples", zero_division=0)
        assert evaluation[f"f1@{k}"] == pytest.approx(expected, rel=1e-12)


@given(rankings())
def test_measures_are_those_of_trec_eval(case):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    ranked, relevant, _, sizes = case
    overall = measured(ranked, relevant, None, sizes).overall
    qrels = {str(n): {str(topic): 1 for topic in right} for n, right in enumerate(relevant) if right}
    run = {
        str(n): {str(topic): float(len(ranking) - rank) for rank, topic in enumerate(ranking)}
        for n, ranking in enumerate(ranked)
        if ranking and relevant[n]
    }
    results = pytrec_eval.RelevanceEvaluator(qrels, {"P_1,3,5,10", "recall_1,3,5,10", "ndcg_cut_1,3,5,10"}).evaluate(
        run
    )
    for title, measure in {"P": "precision", "recall": "recall", "ndcg_cut": "ndcg"}.items():
        for k in (1, 3, 5, 10):
            total = sum(of_document[f"{title}_{k}"] for of_document in results.values())  # 0 where there is no ranking
            assert overall[f"{measure}@{k}"] == (pytest.approx(total / len(qrels), rel=1e-9) if qrels else None)


def test_a_perfect_ranking_has_one_everywhere_but_where_k_is_more_than_there_is():
    relevant = [{0, 3}, {1}, {0, 1, 2}]
    ranked = [[3, 0], [1], [2, 1, 0]]
    row = measured(ranked, relevant, None, [1, 2, 3, 4], ks=[1, 3]).overall
    assert (row["precision@1"], row["precision@3"]) == (1, (2 + 1 + 3) / 9)
    assert (row["recall@1"], row["recall@3"]) == ((1 / 2 + 1 + 1 / 3) / 3, 1)
    assert (row["ndcg@1"], row["ndcg@3"]) == (1, 1)
    assert (row["f1@3"], row["pair_recall@1"], row["pair_recall@3"]) == (1, 3 / 6, 1)
    assert row["psp@3"] == pytest.approx(1)


def test_propensities_worked_by_hand():
    # N = e³ would give ln N - 1 = 2; with A = 1, B = 1: C = 2·2 = 4, and 1/p = 1 + 4 / (N_l + 1).
    weights = at_k.inverse_propensities(np.array([0, 1, 3]), math.exp(3), 1.0, 1.0)
    np.testing.assert_allclose(weights, [5, 3, 2], rtol=1e-15)
    # The defaults, of 100 documents: C = (4.60517 - 1)·2.5^0.55 = 5.96733; 1 + C·(1 + 1.5)^-0.55 = 4.60517.
    [weight] = at_k.inverse_propensities(np.array([1]), 100, 0.55, 1.5)
    assert weight == pytest.approx(math.log(100), rel=1e-12)
    assert at_k.inverse_propensities(np.array([0, 2]), 2, 0.55, 1.5).tolist() == [1, 1], "C is not negative"


def test_propensity_scored_precision_worked_by_hand():
    # Weights 5, 3, 2 as above. The first document has topics 0 and 2, and gets 2 and 1: 2 of the possible 5 + 2.
    # The second has 1 and gets it second: 3 of 3. At 1: (2 + 0) / (5 + 3); at 2: (2 + 3) / (7 + 3).
    top = np.array([[2, 1], [0, 1]])
    relevant = np.array([[1, 0, 1], [0, 1, 0]])
    known = names(3), [0, 1, 3], math.exp(3)
    evaluation = evaluate_at_k(top, relevant, *known, ks=[1, 2], propensity=(1, 1), spec=["ALL", "0-0", "3-"])
    assert [evaluation.overall[f"psp@{k}"] for k in (1, 2)] == [pytest.approx(2 / 8), pytest.approx(5 / 10)]
    nothing, largest = evaluation.bands[1:]
    assert (nothing["psp@2"], largest["psp@2"]) == (0, 1)
    assert (nothing.documents, largest.documents) == (1, 1)


def test_topics_that_no_column_stands_for_are_never_found():
    row = measured([[0, 1], [1]], [{0}, set()], [1, 2], [3, 4], ks=[1, 2]).overall
    assert (row.documents, row.pairs) == (2, 4)
    assert row["recall@2"] == (1 / 2 + 0) / 2
    assert row["pair_recall@2"] == 1 / 4
    assert row["ndcg@2"] == pytest.approx(1 / (1 + 1 / math.log2(3)) / 2)
    assert row["f1@2"] == (2 / (2 + 2)) / 2
    assert row["psp@2"] == pytest.approx(1), "a topic without a column has no weight"


def test_without_a_relevant_topic_nothing_is_measured():
    evaluation = measured([[0], [1]], [set(), set()], None, [3, 4])
    assert (evaluation.without_topic, evaluation.overall.documents) == (2, 0)
    assert {evaluation.overall[f"{measure}@5"] for measure in MEASURES} == {None}
    assert repr(evaluation) == "<Evaluation of 2 topics on 2 test documents>"


@every(
    "top, message",
    [
        ([[0, 3]], "numbers 0 to 2, not 0 to 3"),
        ([[0, -2]], "numbers 0 to 2, not -2 to 0"),
        ([[1, 1]], "twice"),
        ([[1]], r"integers of shape \(n_documents, 2 or more\), .* not int64 of shape \(1, 1\)"),
        ([[0.0, 1.0]], "not float64"),
        ([[0, 1], [0, 1]], "known of 1 documents, and there are rankings of more"),
        (np.zeros((0, 2), int), "known of 1 documents, and there are rankings of 0 only"),
    ],
)
def test_rankings_that_cannot_be_are_refused(top, message):
    with pytest.raises(ValueError, match=message):
        evaluate_at_k(np.array(top), np.array([[1, 0, 0]]), names(3), [1, 2, 3], 10, ks=[1, 2])


def test_what_does_not_fit_the_topics_is_refused():
    top, known = np.array([[0, 1]]), (names(2), [1, 2], 10)
    with pytest.raises(ValueError, match=r"relevance has the shape \(1, 3\) and n_unknown \(1,\)"):
        evaluate_at_k(top, np.ones((1, 3)), *known, ks=[2])
    with pytest.raises(ValueError, match=r"n_unknown \(2,\)"):
        evaluate_at_k(top, np.ones((1, 2)), *known, ks=[2], n_unknown=[0, 1])
    with pytest.raises(ValueError, match="cannot be measured at"):
        evaluate_at_k(top, np.ones((1, 2)), *known, ks=[0])
    with pytest.raises(TextcatError, match="No band 'FEW'"):
        evaluate_at_k(top, np.ones((1, 2)), *known, ks=[2], spec="FEW")


def example(seed=0, n_documents=300, n_topics=40, skill=0.0):
    """A ranking that is the better, the more skill; the same documents whatever its skill."""
    random = np.random.default_rng(7)
    relevant, sizes = random.random((n_documents, n_topics)) < 0.06, np.resize([0, 3, 10, 50, 120], n_topics)
    scores = np.random.default_rng(seed).random((n_documents, n_topics)) + skill * relevant
    top = np.argsort(-scores, axis=1)[:, :10]
    return evaluate_at_k(top, relevant, names(n_topics), sizes, 2000)


def test_intervals_hold_what_was_measured_and_are_those_of_documents_drawn():
    evaluation = add_intervals(example(seed=3, skill=0.3), n_resamples=400)
    assert list(evaluation.overall.intervals) == ["precision@1", "precision@3", "precision@5", "ndcg@10"]
    for row in (evaluation.overall, *evaluation.bands):
        for name, (low, high) in row.intervals.items():
            assert 0 <= low <= row[name] <= high <= 1
    # The mean of n documents varies by its standard error.
    values = evaluation.values.values[0, 0]
    low, high = evaluation.overall.intervals["precision@1"]
    error = np.nanstd(values) / math.sqrt(evaluation.overall.documents)
    assert high - low == pytest.approx(2 * 1.96 * error, rel=0.2)
    assert add_intervals(example(seed=3, skill=0.3), n_resamples=400) == evaluation
    assert add_intervals(example(seed=3, skill=0.3), n_resamples=400, seed=4) != evaluation


def test_a_resample_is_measured_as_the_documents_drawn(monkeypatch):
    evaluation = example(n_documents=30)
    drawn = np.random.default_rng(0).integers(0, 3, (30, 5)).astype(np.int32)
    monkeypatch.setattr(significance, "bootstrap_draws", lambda *_: iter([drawn[:, :2], drawn[:, 2:]]))
    resampled = np.stack(list(resampled_measures(evaluation, 5, 0).bands.values()), axis=1)
    for j in range(5):
        repeated = np.repeat(evaluation.values.values, drawn[:, j], axis=2)
        np.testing.assert_allclose(resampled[:, :, j], np.nanmean(repeated, axis=2), rtol=1e-12)


def test_a_better_ranking_is_told_from_chance():
    compared = compare_evaluations([example(1), example(2), example(3, skill=1.0)], n_resamples=300)
    assert [(row.band, row.measure) for row in compared.measures[:4]] == [
        ("ALL", name) for name in ("precision@1", "precision@3", "precision@5", "ndcg@10")
    ]
    for row in compared.measures[:4]:
        same, better = row.differences
        assert better.difference == pytest.approx(row.values[2] - row.values[0])
        assert better.interval[0] > 0
        assert better.p_documents < 0.01 < same.p_documents
        assert better.p_topics is None
    assert compared.topics == ()
    itself = compare_evaluations([example(1), example(1)], n_resamples=100).measures[0].differences[0]
    assert (itself.difference, itself.interval, itself.p_documents) == (0, (0, 0), 1)


def test_rankings_of_other_documents_or_without_their_values_cannot_be_compared():
    with pytest.raises(TextcatError, match="on the same documents, topics and bands"):
        compare_evaluations([example(), example(n_documents=200)])
    read = Evaluation.from_dict(example().as_dict())
    with pytest.raises(TextcatError, match="Only the figures of this evaluation were kept"):
        compare_evaluations([read, read])


@given(rankings())
def test_an_evaluation_is_the_same_after_it_was_json(case):
    evaluation = add_intervals(measured(*case), n_resamples=2)
    assert Evaluation.from_dict(json.loads(json.dumps(evaluation.as_dict()))) == evaluation


def test_an_evaluation_is_a_line_a_table_and_a_frame():
    pytest.importorskip("pandas")
    evaluation = add_intervals(example(skill=0.3), n_resamples=100)
    assert repr(evaluation).startswith("<Evaluation of 40 topics on 300 test documents, P@1 0.")
    assert '<th scope="col">nDCG@10</th>' in evaluation._repr_html_()
    assert '<th scope="row">21-100</th>' in evaluation._repr_html_()
    frame = evaluation.to_frame()
    assert frame.loc["6-20", "psp@5"] == evaluation.bands[-3]["psp@5"]
    assert frame.loc["ALL", "ndcg@10_low"] == evaluation.overall.intervals["ndcg@10"][0]
