"""Training after every answer: the kernel and its naive twin, scikit-learn, order and threads."""

from dataclasses import replace

import naive_ranking as naive
import numpy as np
import pytest
import scipy.sparse as sp
from cases import every
from hypothesis import given
from hypothesis import strategies as st
from sklearn.svm import LinearSVC

from textcat.base.errors import TextcatError
from textcat.recipes.recipe import RankerSettings
from textcat.teaching.ranker import Examples, Ranker, Weights, add_up, rows_times, solve


def rows_like_text(n, n_columns=300, density=0.06, seed=0):
    rows = sp.random(n, n_columns, density, "csr", np.float32, np.random.default_rng(seed))
    rows.data /= np.repeat(np.maximum(np.sqrt(rows.multiply(rows).sum(1).A1), 1e-9), np.diff(rows.indptr)).astype("f4")
    return rows


def weighted(labels, ratio, presumed=0):
    """The weights of ELAS u4, and of presumed negatives behind the judged rows."""
    labels = np.asarray(labels)
    c = np.where(labels > 0, 1, (labels > 0).sum() / (ratio * (labels < 0).sum()))
    return c * len(c) / c.sum()


def judged(n_rows, n, seed=0):
    generator = np.random.default_rng(seed)
    positions = generator.permutation(n_rows)[:n]
    return positions, np.where(generator.random(n) < 0.3, 1, -1).astype(np.int8)


def same(a, b):
    columns = np.argsort(a.columns), np.argsort(b.columns)
    assert (a.columns[columns[0]] == b.columns[columns[1]]).all()
    assert a.values[columns[0]].tobytes() == b.values[columns[1]].tobytes()
    assert (a.bias, a.background) == (b.bias, b.background)


@every("bias", [0.0, 1.0, 0.5])
def test_the_weights_are_to_the_bit_what_the_naive_twin_finds(bias):
    rows = rows_like_text(60)
    positions, labels = judged(60, 40)
    given = RankerSettings(bias=bias, tol=1e-3)
    weights = Ranker(rows, settings=given, seed=7).train(positions, labels)
    order = np.argsort(positions)
    all_rows, w = naive.entries(rows), [0.0] * 300
    costs = (given.C * 0.4**given.growth * weighted(labels[order], given.ratio)).tolist()  # of 40 examples
    b, _, epochs, _ = naive.solve(
        [all_rows[i] for i in positions[order]], labels[order].tolist(), costs, w, 0.0, bias, 1e-3, 1000, 7
    )
    assert epochs == weights.n_epochs > 3
    assert weights.bias == b * bias
    assert weights.dense(300).tobytes() == np.array(w, np.float32).tobytes()


@pytest.mark.parametrize("C", [0.11, 3.0])
def test_the_solution_is_that_of_scikit_learn(C):
    rows = rows_like_text(400)
    positions, labels = judged(400, 250)
    weights = Ranker(rows, settings=RankerSettings(C=C, growth=0, ratio=9.8, tol=1e-6)).train(positions, labels)
    theirs = LinearSVC(C=C, tol=1e-9, max_iter=100_000, random_state=0)
    theirs.fit(rows[positions].astype(float), labels, sample_weight=weighted(labels, 9.8))
    np.testing.assert_allclose(weights.dense(300), theirs.coef_[0], atol=1e-4)
    assert weights.bias == pytest.approx(theirs.intercept_[0], abs=1e-4)
    assert (weights.values != 0).any()


@given(st.integers(0, 25), st.randoms(use_true_random=False), st.sampled_from([0, 5, 100]))
def test_neither_order_nor_history_matters(n, random, presumed):
    rows = rows_like_text(30)
    positions, labels = judged(30, n)
    examples = Examples(rows_like_text(4, seed=1), np.array([1, 1, -1, 1], np.int8), np.array([1, 1, 0.5, 2.0]))
    given = RankerSettings(presumed=presumed)
    ranker = Ranker(rows, settings=given)
    weights = ranker.train(positions, labels, examples)
    order, of_examples = list(range(n)), list(range(4))
    random.shuffle(order)
    random.shuffle(of_examples)
    ranker.scores(ranker.train(positions[:3], labels[:3]))
    shuffled = Examples(examples.rows[of_examples], examples.labels[of_examples], examples.weights[of_examples])
    same(weights, ranker.train(positions[order], labels[order], shuffled))
    same(weights, Ranker(rows, settings=given).train(positions, labels, examples))


def test_nothing_judged_gives_zero_or_the_prior():
    rows = rows_like_text(20)
    ranker = Ranker(rows)
    assert not ranker.scores(ranker.train([], [])).any()
    prior = Weights(np.array([3, 250], np.int32), np.array([1, -2], np.float32), 0.25)
    same(ranker.train([], [], prior=prior), prior)
    expected = rows.toarray() @ prior.dense(300) + 0.25
    np.testing.assert_allclose(Ranker(rows, settings=RankerSettings(length=0)).scores(prior), expected, atol=1e-6)


def test_with_a_prior_the_weights_are_its_own_and_what_is_learnt_beside_it():
    rows = rows_like_text(50)
    positions, labels = judged(50, 30)
    prior = Ranker(rows, seed=1).train(*judged(50, 20, seed=5))
    given = RankerSettings(C=0.11, growth=0, ratio=9.8, tol=1e-8)
    weights = Ranker(rows, settings=given).train(positions, labels, prior=prior)

    def objective(w, b, w0, b0):
        c = 0.11 * weighted(labels, 9.8)
        losses = np.maximum(0, 1 - labels * (rows[positions] @ w + b)) ** 2
        return ((w - w0) @ (w - w0) + (b - b0) ** 2) / 2 + c @ losses

    at = [weights.dense(300).astype(float), weights.bias, prior.dense(300).astype(float), prior.bias]
    least, generator = objective(*at), np.random.default_rng(0)
    assert least < objective(at[2], at[3], at[2], at[3])
    for _ in range(20):
        moved = at[0] + 0.01 * generator.standard_normal(300), at[1] + 0.01 * generator.standard_normal()
        assert objective(*moved, at[2], at[3]) > least


def test_presumed_negatives_are_unjudged_rows_that_weigh_what_is_asked():
    rows = rows_like_text(80)
    positions, labels = judged(80, 20)
    given = RankerSettings(C=0.11, growth=0, ratio=9.8, presumed=30, presumed_weight=0.5, tol=1e-7)
    ranker = Ranker(rows, settings=given, seed=2)
    drawn = ranker.presumed(np.sort(positions))
    assert len(set(drawn.tolist())) == 30
    assert not set(drawn.tolist()) & set(positions.tolist())
    assert set(ranker.presumed(np.sort(positions[:19])).tolist()) != set(drawn.tolist())
    y = np.concatenate([labels, np.full(30, -1)])
    c = np.where(y > 0, 1, np.r_[np.ones(20), np.full(30, 0.5)])
    c[y < 0] *= (y > 0).sum() / (9.8 * c[y < 0].sum())
    c *= (20 + 15) / c.sum()
    theirs = LinearSVC(C=0.11, tol=1e-9, max_iter=100_000, random_state=0)
    theirs.fit(rows[np.concatenate([positions, drawn])].astype(float), y, sample_weight=c)
    np.testing.assert_allclose(ranker.train(positions, labels).dense(300), theirs.coef_[0], atol=1e-4)
    few = Ranker(rows, settings=RankerSettings(presumed=1000))
    assert few.presumed(np.arange(10)).tolist() == list(range(10, 80))


def test_an_example_counts_as_a_document_of_its_weight():
    rows = rows_like_text(40)
    positions, labels = judged(40, 20)
    given = RankerSettings(tol=1e-10, anchor=0, background=0, described_bias=1)
    in_pool = Ranker(rows, settings=given).train(positions, labels)
    examples = Examples(rows[positions[15:]], labels[15:], np.ones(5))
    outside = Ranker(rows, settings=given).train(positions[:15], labels[:15], examples)
    np.testing.assert_allclose(in_pool.dense(300), outside.dense(300), atol=1e-6)


def test_the_anchor_is_a_prior_made_of_the_examples():
    rows, (positions, labels) = rows_like_text(40), judged(40, 20)
    examples = examples_of_two()
    given = RankerSettings(tol=1e-8, anchor=0.8, background=0)
    w0 = (0.8 * (examples.rows[0] - 0.5 * examples.rows[1])).toarray()[0].astype(np.float32)
    prior = Weights(np.flatnonzero(w0).astype(np.int32), w0[w0 != 0], 0.0)
    for n in (0, 20):
        expected = Ranker(rows, settings=replace(given, anchor=0))
        expected = expected.train(positions[:n], labels[:n], examples, prior).dense(300)
        weights = Ranker(rows, settings=given).train(positions[:n], labels[:n], examples)
        np.testing.assert_allclose(weights.dense(300), expected, atol=1e-6)


def examples_of_two():
    return Examples(rows_like_text(2, seed=1), np.array([1, -1], np.int8), np.array([1, 0.5]))


def test_with_examples_the_mean_row_is_taken_from_every_row():
    rows, (positions, labels) = rows_like_text(40), judged(40, 20)
    examples, dense = examples_of_two(), rows.toarray()
    prior = Ranker(rows, seed=1).train(*judged(40, 15, seed=5))
    given = RankerSettings(tol=1e-9, background=0.7, length=0)
    mean = 0.7 * dense.mean(0)
    less = Examples(sp.csr_matrix(examples.rows.toarray() - mean), examples.labels, examples.weights)
    plain = Ranker(sp.csr_matrix(dense - mean), settings=replace(given, background=0))
    ranker = Ranker(rows, settings=given)
    for n in (0, 20):
        for own, before in [(None, None), (prior, prior._replace(bias=prior.bias + mean @ prior.dense(300)))]:
            expected = plain.scores(plain.train(positions[:n], labels[:n], less, before))
            weights = ranker.train(positions[:n], labels[:n], examples, own)
            np.testing.assert_allclose(ranker.scores(weights), expected, atol=1e-5)
            w, bias = ranker.whole(weights)
            np.testing.assert_allclose(rows @ w + bias, expected, atol=1e-5)
    assert weights.background
    assert not ranker.train(positions, labels).background, "without examples rows are whole"


def test_what_every_document_has_does_not_count_for_a_described_topic():
    rows = np.zeros((30, 4), np.float32)
    rows[:, 0] = 1  # a word of all documents
    rows[:6, 1] = rows[20:, 2] = 1
    rows[28], rows[29] = [2, 0, 0, 0.3], [0.8, 0, 0, 0.3]  # that say nothing of the topic, at length or not
    word = Examples(sp.csr_matrix(np.eye(4, dtype=np.float32)[1:2]), np.ones(1, np.int8), np.ones(1))
    judged = np.arange(4), np.ones(4, np.int8)
    gap = []
    for background in (0.0, 1.0):
        ranker = Ranker(sp.csr_matrix(rows), settings=RankerSettings(background=background, anchor=0, length=0))
        scores = ranker.scores(ranker.train(*judged, word))
        assert scores[4:6].min() > scores[6:].max()
        gap.append((scores[28] - scores[29]) / (scores[4] - scores[6]))
    assert gap[0] > 0.5
    assert gap[1] < 0.2


def test_a_solution_beside_a_mean_row_is_to_the_bit_what_the_naive_twin_finds():
    rows = rows_like_text(25)
    generator = np.random.default_rng(2)
    mean, w0 = rows.mean(0).A1.astype(float), generator.standard_normal(300) * 0.1
    means, square, along, times = rows @ mean, float(mean @ mean), float(mean @ w0) - 0.2 * float(mean @ mean), 0.2
    labels, costs = judged(25, 25)[1], generator.random(25) + 0.1
    w, theirs = w0.copy(), w0.tolist()
    more = 0.3, 0.5, 1e-6, 100, 7
    b, alphas, epochs, t = solve(
        rows.indptr[1:].astype(np.int64), rows.indices, rows.data, labels, costs, w, *more, means, square, along, times
    )
    expected = naive.solve(
        naive.entries(rows), labels.tolist(), costs.tolist(), theirs, *more, means.tolist(), square, along, times
    )
    assert (b, alphas.tolist(), epochs, t) == expected
    assert w.tolist() == theirs
    np.testing.assert_allclose(t - times, alphas @ labels)


def test_entries_add_up_by_column():
    rows, sums = rows_like_text(30), np.zeros(300)
    add_up(rows.indices, rows.data, sums)
    assert sums.tolist() == np.bincount(rows.indices, rows.data.astype(float), 300).tolist()


@pytest.mark.parametrize("place", [np.int32, np.int64])
def test_scores_are_to_the_bit_what_the_naive_twin_adds_up(place):
    rows = rows_like_text(40, density=0.1)
    w = np.random.default_rng(3).standard_normal(300).astype(np.float32)
    expected = np.array([naive.score(row, w, 0.3) for row in naive.entries(rows)], np.float32)
    for plain in (True, False):
        scores = np.zeros(40, np.float32)
        rows_times(rows.indptr.astype(place), rows.indices, rows.data, 0, 40, w, 0.3, scores, plain)
        assert scores.tobytes() == expected.tobytes()


def test_scores_are_the_same_for_any_number_of_threads(monkeypatch):
    monkeypatch.setattr("textcat.teaching.ranker.ENTRIES_OF_A_THREAD", 100)
    rows = sp.vstack([rows_like_text(200), sp.csr_matrix((7, 300), dtype=np.float32)]).tocsr()
    weights = Ranker(rows).train(*judged(200, 50))
    rankers = [Ranker(rows, n_threads=n) for n in (1, 2, 5)]
    assert [ranker.n_parts for ranker in rankers] == [1, 2, 5]
    one, *more = (ranker.scores(weights).tobytes() for ranker in rankers)
    assert {*more} == {one}
    entries = np.diff(rows.indptr)
    shares = entries / entries.mean()
    expected = np.sqrt(1.1 * shares / (shares + 0.1)) * (rows @ weights.dense(300)) + weights.bias
    np.testing.assert_allclose(np.frombuffer(one, "f4"), expected, atol=1e-6)


def test_rows_may_be_mapped_read_only_and_have_wide_indices(tmp_path):
    rows = rows_like_text(50)
    for name in ("data", "indices", "indptr"):
        np.save(tmp_path / f"{name}.npy", getattr(rows, name))
    mapped = sp.csr_matrix(rows.shape, dtype=np.float32)
    mapped.data, mapped.indices, mapped.indptr = (
        np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("data", "indices", "indptr")
    )
    wide = rows.copy()
    wide.indices, wide.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    positions, labels = judged(50, 20)
    expected = Ranker(rows).train(positions, labels)
    for other in (mapped, wide):
        same(Ranker(other).train(positions, labels), expected)
        assert Ranker(other).scores(expected).tobytes() == Ranker(rows).scores(expected).tobytes()


def test_empty_rows_and_an_empty_pool():
    empty = Ranker(sp.csr_matrix((3, 5), dtype=np.float32))
    weights = empty.train([0, 2], [1, -1])
    assert weights.columns.size == 0
    assert len(set(empty.scores(weights).tolist())) == 1
    assert Ranker(sp.csr_matrix((0, 5), dtype=np.float32)).scores(weights).shape == (0,)


def test_a_row_that_is_judged_twice_is_an_error():
    with pytest.raises(TextcatError, match="Row 4 is judged twice: give each row one label"):
        Ranker(rows_like_text(10)).train([4, 2, 4], [1, -1, -1])
