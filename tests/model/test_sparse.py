"""Weights without their zeros give what dense ones give, to the bit: scores, the highest topics, tags, explanations."""

import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import naive_features
import numpy as np
import pytest
from cases import every
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import textcat
from textcat.margin.problems import PackedWeights, Solution, StopReason, in_rows, side_by_side
from textcat.model import csr, selection
from textcat.model import tagger as module
from textcat.model.compare import shared_topics
from textcat.model.csr import are_rows
from textcat.model.csr import parts_of as parts_of_matrix
from textcat.model.decisions import Decisions
from textcat.model.dense import Dense, product
from textcat.model.restrict import restrict_topics
from textcat.model.scorer import highest
from textcat.model.selection import n_at_once
from textcat.model.sparse import Sparse, sparse_product
from textcat.model.sparse import sparse_top as top
from textcat.reading import Record
from textcat.runs.results import BatchResult, Counts
from textcat.tagging import job
from textcat.tagging.output import OutputSettings
from textcat.training import steps

ODD = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3e38, -3e38)


def numbers(odd):
    plain = st.floats(-2, 2, width=32) | st.integers(-2, 2).map(float)
    return plain | st.sampled_from(ODD) if odd else plain


@st.composite
def problems(draw, odd=True):
    """Rows, weights and a bias; of the weights about half are 0, of either sign."""
    n_rows, n_features, n_topics = draw(st.tuples(st.integers(0, 4), st.integers(1, 5), st.integers(1, 9)))
    array = lambda n: np.array(draw(st.lists(numbers(odd), min_size=n, max_size=n)), np.float32)  # noqa: E731
    X = sparse.csr_matrix(array(n_rows * n_features).reshape(n_rows, n_features))
    W = array(n_features * n_topics).reshape(n_features, n_topics)
    W[np.array(draw(st.lists(st.booleans(), min_size=W.size, max_size=W.size)), bool).reshape(W.shape)] = 0
    return (X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data), W, array(n_topics)


def parts_of(W):
    """Returns CSR arrays; a zero is kept by its bits, as training keeps it, or where it is in the first row."""
    stored = W.view(np.int32) != 0
    stored[:1] = True
    rows, columns = np.nonzero(stored)
    starts = np.searchsorted(rows, np.arange(len(W) + 1)).astype(np.int64)
    return starts, columns.astype(np.int32), W[rows, columns]


def bits(array):
    """Returns the bits of numbers, all nan alike."""
    return np.where(np.isnan(array), np.float32(np.nan), array).view(np.int32)


@given(problems())
def test_numbers_of_topics_of_two_bytes_give_the_same_to_the_bit(problem):
    rows, W, b = problem
    starts, topics, values = parts_of(W)
    few = topics.astype(np.uint16)
    assert are_rows(starts, few, W.shape[1]) == are_rows(starts, topics, W.shape[1])
    found = bits(sparse_product(*rows, starts, few, values, b))
    np.testing.assert_array_equal(found, bits(sparse_product(*rows, starts, topics, values, b)))
    for one, other in zip(top(*rows, starts, few, values, b, 1), top(*rows, starts, topics, values, b, 1), strict=True):
        np.testing.assert_array_equal(bits(one.astype(np.float32)), bits(other.astype(np.float32)))


@given(problems())
def test_the_sparse_product_is_the_dense_one_to_the_bit(problem):
    rows, W, b = problem
    found = sparse_product(*rows, *parts_of(W), b)
    np.testing.assert_array_equal(bits(found), bits(product(*rows, W, b)), strict=True)


@given(problems(odd=False))
def test_the_sparse_product_is_that_of_plain_python(problem):
    rows, W, b = problem
    X = sparse.csr_matrix(rows[::-1], shape=(len(rows[0]) - 1, len(W)))
    expected = naive_features.sparse_product(X, *parts_of(W), b)
    np.testing.assert_array_equal(bits(sparse_product(*rows, *parts_of(W), b)), bits(expected))


def test_long_rows_of_many_topics_have_the_same_bits_too():
    rng = np.random.default_rng(0)
    X = sparse.random_array((20, 300), density=0.2, format="csr", dtype=np.float32, rng=rng)
    W = (rng.normal(size=(300, 1003)) * (rng.random((300, 1003)) < rng.random(300)[:, None])).astype(np.float32)
    rows, b = (X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data), W[0].copy()
    scores = product(*rows, W, b)
    np.testing.assert_array_equal(bits(sparse_product(*rows, *parts_of(W), b)), bits(scores))
    for k in (1, 5, 64, 1003):
        columns, values = top(*rows, *parts_of(W), b, k)
        np.testing.assert_array_equal(columns, np.argsort(-scores, axis=1, kind="stable")[:, :k])
        np.testing.assert_array_equal(bits(values), bits(np.take_along_axis(scores, columns.astype(int), axis=1)))


@given(problems(), st.integers(1, 9))
def test_the_highest_topics_are_the_first_of_all_in_order_ties_and_nan_included(problem, k):
    rows, W, b = problem
    scores, k = product(*rows, W, b), min(k, len(b))
    columns, values = top(*rows, *parts_of(W), b, k)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(columns, order)
    np.testing.assert_array_equal(columns, naive_features.highest(scores, k))
    np.testing.assert_array_equal(bits(values), bits(np.take_along_axis(scores, order, axis=1)))
    for found, expected in zip(highest(scores, k), (columns, values), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_threads_may_multiply_at_the_same_time():
    rng = np.random.default_rng(1)
    W = (rng.normal(size=(50, 400)) * (rng.random((50, 400)) < 0.1)).astype(np.float32)
    blocks = [sparse.random_array((200, 50), density=0.2, format="csr", dtype=np.float32, rng=rng) for _ in range(8)]
    calls = [(X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data, *parts_of(W), W[1].copy()) for X in blocks]
    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(lambda call: (*top(*call, 7), sparse_product(*call)), calls))
    for found, call in zip(together, calls, strict=True):
        for one, alone in zip(found, (*top(*call, 7), sparse_product(*call)), strict=True):
            np.testing.assert_array_equal(one, alone)


@given(problems())
def test_packed_solutions_side_by_side_are_the_rows_of_the_dense_array(problem):
    _, W, _ = problem
    empty = np.empty(0, np.int32)
    solutions = [
        Solution(PackedWeights.of(w.copy()), 0.0, empty, empty, 0, 0, StopReason.CONVERGED, "", empty) for w in W.T
    ]
    starts, topics, values = in_rows(solutions, len(W))
    assert are_rows(starts, topics, W.shape[1])
    stored = np.repeat(np.arange(len(W)), np.diff(starts)), topics
    rebuilt, given = np.zeros_like(W), np.zeros(W.shape, bool)
    rebuilt[stored], given[stored] = values, True
    np.testing.assert_array_equal(bits(rebuilt), bits(W))
    np.testing.assert_array_equal(bits(rebuilt), bits(side_by_side(solutions, len(W))))
    other = W.view(np.int32) != 0
    np.testing.assert_array_equal(given, other | (2 * other.sum(axis=1) > W.shape[1])[:, None])


@every(
    "starts, topics",
    [
        ([], []),
        ([0, 1], []),
        ([0], [1]),
        ([1, 1], [0]),
        ([0, 2, 1, 2], [0, 1]),
        ([0, 3, 2], [0, 1]),
        ([0, -1, 2], [0, 1]),
    ]
    + [([0, 2], pair) for pair in ([1, 0], [0, 0], [-1, 0], [0, 3])],
)
def test_what_are_no_rows_is_told(starts, topics):
    assert not are_rows(np.array(starts, np.int64), np.array(topics, np.int32), 3)


# --- the tagger ------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module", params=["paum", "single", "float64"])
def dense(corpus, request):
    recipe = textcat.read_recipe("paum")
    if request.param == "single":
        recipe = replace(recipe, tags={"strategy": "single"})
    if request.param == "float64":
        recipe = replace(recipe, features={"dtype": "float64"})
    return textcat.train(corpus, recipe)


@pytest.fixture(scope="module")
def thin(dense):
    return replace(dense, scorer=Sparse(sparse.csr_array(dense.scorer.weights), dense.scorer.bias))


def test_sparse_weights_give_what_dense_ones_give(corpus, dense, thin, monkeypatch):
    documents = [*corpus.test[:60], "", "qqqq"]
    scores, has_terms = dense.scored(documents)
    np.testing.assert_array_equal(thin.scores(documents), scores, strict=True)
    np.testing.assert_array_equal(thin.scored(documents).has_terms, has_terms)
    assert thin.scores([]).shape == dense.scores([]).shape
    np.testing.assert_array_equal(thin.predict_proba(documents), dense.predict_proba(documents), strict=True)
    np.testing.assert_array_equal(thin.decisions.decide(scores), dense.decisions.decide(scores))
    assert thin.tag(documents) == dense.tag(documents) == dense.select(scores, has_terms=has_terms)
    assert repr(thin) == repr(dense)
    for topic in dense.topics[::5]:
        assert thin.terms(topic, 30) == dense.terms(topic, 30)
        for document in documents[::20]:
            assert thin.explain(document, topic) == dense.explain(document, topic)
    assert thin._repr_html_() == dense._repr_html_()
    for k in (1, 3, 10_000):
        expected = [tags[:k] for tags in dense.select(scores, all_topics=True, has_terms=has_terms)]
        for tagger in (dense, thin):
            assert tagger.tag(documents, top=k) == tagger.select(scores, top=k, has_terms=has_terms) == expected
    monkeypatch.setattr(selection, "SCORE_BYTES", 8 * len(dense.topics) * 7)  # seven documents at a time, or fourteen
    assert list(thin.tag_stream(documents, top=2)) == dense.select(scores, top=2, has_terms=has_terms)
    assert list(thin.tag_stream(documents)) == dense.select(scores, has_terms=has_terms)


def test_a_number_of_highest_topics_that_makes_no_sense_is_told_of(thin):
    with pytest.raises(textcat.TextcatError, match=r"The 0 highest topics cannot be given: ask for 1 or more\."):
        thin.tag_stream(["wheat"], top=0)


def test_a_saved_and_loaded_tagger_with_sparse_weights_is_the_one_in_memory(corpus, dense, thin, tmp_path):
    folder = textcat.save(thin, tmp_path / "model")
    assert not (folder / "weights.npy").exists()
    for again in (textcat.load(folder), module.Tagger(**vars(textcat.load(folder)))):
        assert isinstance(again.scorer.weights, sparse.csr_array)
        assert (again.scorer.weights.indptr.dtype, again.scorer.weights.indices.dtype) == (np.int64, np.uint16)
        assert all(isinstance(part, np.memmap) for part in parts_of_matrix(again.scorer.weights))
        np.testing.assert_array_equal(again.scores(corpus.test), dense.scores(corpus.test), strict=True)
        assert again.tag(corpus.test, top=4) == dense.tag(corpus.test, top=4)
    textcat.save(textcat.load(folder), tmp_path / "copy")
    for path in folder.glob("*.npy"):
        assert path.read_bytes() == (tmp_path / "copy" / path.name).read_bytes()
    textcat.save(dense, folder)  # takes its place
    assert not list(folder.glob("weights_*"))


def test_many_topics_and_older_models_have_numbers_of_four_bytes(corpus, dense, thin, tmp_path, monkeypatch):
    monkeypatch.setattr(csr, "FEW_TOPICS", 0)
    again = textcat.load(textcat.save(thin, tmp_path / "model"))
    assert again.scorer.weights.indices.dtype == np.int32
    np.testing.assert_array_equal(again.scores(corpus.test), dense.scores(corpus.test), strict=True)


def test_weights_of_any_sparse_form_are_taken(dense):
    twice = sparse.coo_array((np.ones(4, np.float32), ([0, 0, 1, 1], [3, 1, 2, 2])), shape=dense.scorer.weights.shape)
    for form in (twice, twice.tocsr(), twice.tocsc(), sparse.csr_matrix(twice)):
        scorer = Sparse(form, dense.scorer.bias)
        np.testing.assert_array_equal(scorer.weights.indices, [1, 3, 2])
        np.testing.assert_array_equal(scorer.weights.data, [1, 1, 2])


def test_an_archive_is_tagged_the_same_and_topics_can_be_left_out(dense, thin):
    chosen = dense.topics[1:9:3]
    restricted = [restrict_topics(tagger, chosen) for tagger in (dense, thin)]
    texts = ["wheat harvest and grain exports", "gold and silver"]
    np.testing.assert_array_equal(*(tagger.scores(texts) for tagger in restricted), strict=True)
    assert restricted[0].tag(texts) == restricted[1].tag(texts)
    assert restrict_topics(thin, chosen).topics == chosen
    records = [Record(text, {"body": text}, source="a.jsonl", position=line) for line, text in enumerate(texts)]
    tagged = [BatchResult([], [], Counts(), "") for _ in range(2)]
    for tagger, batch in zip((dense, thin), tagged, strict=True):
        job.tag_records(tagger, job.Job("", "", output=OutputSettings(top=3)), [], batch)
        job.tag_records(tagger, job.Job("", "", output=OutputSettings(top=3)), records, batch)
    assert tagged[0] == tagged[1]


def test_thousands_of_topics_to_keep_are_not_looked_up_in_their_list(thin):
    class Listed(tuple):
        def __contains__(self, topic):
            raise AssertionError("each of the model's topics is compared with each of those to keep")

    chosen = Listed(thin.topics[1:9:3])
    assert restrict_topics(thin, chosen).topics == (*chosen,)
    several = [replace(tagger, topics=Listed(tagger.topics)) for tagger in (thin, thin)]
    assert [tagger.topics for tagger in shared_topics(several)] == [thin.topics, thin.topics]


def test_the_memory_of_tagging_does_not_grow_with_documents_times_topics(dense):
    n_topics = 20_000
    many = replace(
        dense,
        scorer=Sparse(
            sparse.csr_array((len(dense.features.idf_), n_topics), dtype=dense.scorer.weights.dtype),
            np.zeros(n_topics, dense.scorer.bias.dtype),
        ),
        decisions=Decisions(np.ones(n_topics, np.float32)),
        topics=tuple(map(str, range(n_topics))),
    )
    assert n_at_once(many.scorer) == selection.SCORE_BYTES // (many.scorer.bias.itemsize * n_topics) <= 209
    assert n_at_once(dense.scorer) == 4096
    texts = [f"wheat {i}" for i in range(1000)]
    many.tag(texts[:1])
    for how, least in (({}, 0), ({"top": 3}, 3)):
        tracemalloc.start()
        assert [len(tags) for tags in many.tag(texts, **how)] == [least] * len(texts)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 4 * selection.SCORE_BYTES < 4 * len(texts) * n_topics


@pytest.mark.parametrize("rule", ["paum", "micra"])
def test_training_keeps_weights_without_zeros_where_topics_are_many(corpus, rule, monkeypatch, tmp_path):
    """And then gives the tagger that it gives with dense ones; the rule "micra" has units other than 1."""
    recipe = textcat.read_recipe("paum").changed(rule)
    dense = textcat.train(corpus, recipe)
    assert isinstance(dense.scorer, Dense)
    monkeypatch.setattr(steps, "MANY_TOPICS", 50)
    monkeypatch.setattr(steps, "SPARSE_SHARE", 10)
    monkeypatch.setattr(steps, "side_by_side", None)  # the dense array is never made
    thin = textcat.train(corpus, recipe)
    assert isinstance(thin.scorer, Sparse)
    whole = np.diff(thin.scorer.weights.indptr) == len(corpus.topics)
    assert 0 < whole.sum() < len(whole)
    np.testing.assert_array_equal(bits(thin.scorer.weights.toarray()), bits(dense.scorer.weights))
    np.testing.assert_array_equal(bits(thin.scores(corpus.test)), bits(dense.scores(corpus.test)))
    assert thin.tag(corpus.test) == dense.tag(corpus.test)
    assert textcat.evaluate(thin, corpus) == textcat.evaluate(dense, corpus)
    assert textcat.load(textcat.save(thin, tmp_path / "model")).tag(corpus.test) == dense.tag(corpus.test)


@every("n_topics, n_entries, kept", [(999, 0, False), (1000, 0, True), (1000, 24_000, True), (1000, 26_000, False)])
def test_weights_are_kept_sparse_by_the_number_of_topics_and_the_share_of_memory(n_topics, n_entries, kept):
    """Of 200 features; the zeros of 1,000 topics may be left out up to an eighth of all weights, less their starts."""
    empty = np.empty(0, np.int32)
    one = [PackedWeights((200,), np.arange(n, dtype=np.int32), np.ones(n, np.float32)) for n in (n_entries // 1000, 0)]
    packed = [one[0]] * 1000 if n_entries else [one[1]] * n_topics
    solutions = [Solution(weights, 0.0, empty, empty, 0, 0, StopReason.CONVERGED, "", empty) for weights in packed]
    assert steps.are_sparse(solutions, 200) == kept
