"""Rows are arranged, left out and mapped for lanes, and no arrangement changes a bit of what they give."""

import errno
import mmap
import os

import naive
import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from cases import every
from hypothesis import given
from hypothesis import strategies as st
from solved_problems import bits, rows_with_dimensions, some_problems, some_rows

from textcat.base.errors import TextcatError
from textcat.features.store import write_rows
from textcat.margin.primal import (
    N_FOLDS,
    N_LANES,
    Block,
    allocator,
    arrange_rows,
    dots,
    leave_out_folds,
    read_rows,
    remap_rows,
)
from textcat.margin.solve import solve


@every("budget", [1, 7, 10**6])
@every("level", [0, 1, 2])
def test_a_solution_does_not_depend_on_the_instruction_set_or_on_where_the_run_pauses(alone, level, budget):
    X, problems, expected = alone
    block = Block(arrange_rows(read_rows(X)), level=level)
    for lane, problem in enumerate(problems[:N_LANES]):
        block.load(
            lane, problem.rule, problem.rho, problem.lambda_, *problem.limits, problem.positives, problem.left_out
        )
    at_work = min(len(problems), N_LANES)
    while at_work:
        finished = block.run(budget)
        at_work -= finished.bit_count()
        for lane in range(N_LANES):
            if finished >> lane & 1:
                weights = np.empty(X.shape[1], X.dtype)
                bias, support, alpha, n_updates, n_epochs, _ = block.unload(lane, weights)
                found = weights.tobytes(), bias.tobytes(), support.tobytes(), alpha.tobytes()
                assert found == expected[lane][:4]
                assert (n_updates, n_epochs) == expected[lane][5:7]


@pytest.mark.parametrize("narrow", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_that_may_be_written_over_are_trained_on_in_place(narrow, dtype, monkeypatch):
    X, problems = some_rows(n_features=200, dtype=dtype), some_problems()  # many features are lone
    expected = bits(solve(X, problems))
    if not narrow:
        monkeypatch.setattr("textcat.margin.primal.NARROW_COLUMNS", 0)
    csr = read_rows(X.copy())
    arranged = arrange_rows(csr, in_place=True).arrays
    assert np.shares_memory(arranged["data"], csr.data)
    assert narrow or np.shares_memory(arranged["wide"], csr.indices)
    assert bits(solve(X.copy(), problems, overwrite_X=True)) == expected


def test_features_that_nearly_all_rows_have_lie_dense_if_there_are_many(monkeypatch):
    X = rows_with_dimensions()
    arrays = arrange_rows(read_rows(X)).arrays
    assert arrays["dense_feature"].tolist() == [*range(40, 40 + 64)]  # as many as make whole vectors, of 70
    np.testing.assert_array_equal(arrays["dense"].reshape(60, -1), X.toarray()[:, 40 : 40 + 64])
    assert not arrays["dense"].ctypes.data % 64
    for other in (X[:, : 40 + 63], X.astype(np.float64), some_rows(dtype=np.float32)):
        assert "dense" not in arrange_rows(read_rows(other)).arrays


def test_dense_features_are_trained_on_in_place_and_from_disk_too(tmp_path, monkeypatch):
    X, problems = rows_with_dimensions(), some_problems()
    expected = bits(solve(X, problems))
    assert bits(solve(X.copy(), problems, overwrite_X=True)) == expected
    monkeypatch.setattr("textcat.margin.primal.LARGE_BYTES", 0)
    assert bits(solve(write_rows(tmp_path / "rows", [X]), problems)) == expected


def broken(indices=(0, 1, 2), indptr=(0, 2, 3)):
    X = sp.csr_array((2, 3))
    X.data, X.indices, X.indptr = np.ones(3), np.array(indices, np.int32), np.array(indptr, np.int32)
    return X


@every(
    "X, said",
    [
        (some_rows().astype(np.int64), "X must be a sparse CSR matrix of float32 or float64, got csr of int64"),
        (some_rows().tocsc(), "got csc of float64"),
        (some_rows().toarray(), "got ndarray"),
        (sp.csr_array((1, 2**31)), "at most 2\\*\\*31 - 1 rows and features"),
        (broken(indices=(0, 1, 3)), "indices"),
        (broken(indices=(0, -1, 2)), "indices"),
        (broken(indptr=(0, 5, 3)), "indptr"),
    ],
)
def test_rows_that_the_kernel_could_not_read_are_refused(X, said):
    with pytest.raises(ValueError, match=said):
        solve(X, [])


# --- large arrays ---
def test_large_arrays_beside_rows_lie_in_files_without_a_name(tmp_path):
    array = allocator(str(tmp_path))((1000, 300), np.float32)
    assert isinstance(array, np.memmap)
    assert not array.any()
    array[:] = 1
    assert array.sum() == 300_000
    assert os.listdir(tmp_path) == []


def test_small_arrays_and_those_of_rows_in_memory_lie_in_memory(tmp_path):
    assert not isinstance(allocator(str(tmp_path))(1000, np.float32), np.memmap)
    assert not isinstance(allocator(None)(10**6, np.float32), np.memmap)


def test_a_folder_that_cannot_be_written_to_is_passed_over(tmp_path):
    assert isinstance(allocator(str(tmp_path / "absent"))(10**6, np.float32), np.memmap)


def test_a_disk_without_enough_room_is_told_beforehand(tmp_path, monkeypatch):
    def full(descriptor, start, size):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(TextcatError, match=r"Cannot make a file of 4 MB in .* \(No space left on device\)"):
        allocator(str(tmp_path))(10**6, np.float32)


def test_numpy_maps_files_with_an_object_that_takes_advice(tmp_path):
    array = np.memmap(tmp_path / "array", np.float32, "w+", shape=1000)
    assert isinstance(array._mmap, mmap.mmap)
    assert np.shares_memory(array, np.frombuffer(array._mmap, np.float32))


@pytest.mark.parametrize("release", ["6.18.44-fc", "5.17.1", "23.6.0", "unknown"])
def test_advice_that_the_system_may_not_take_changes_nothing(tmp_path, monkeypatch, X, release):
    monkeypatch.setattr("platform.release", lambda: release)
    monkeypatch.setattr("textcat.margin.primal.LARGE_BYTES", 0)
    rows = write_rows(tmp_path / "rows", [X])
    again = remap_rows(rows.data)
    assert again is not rows.data
    assert again.tolist() == X.data.tolist()
    assert remap_rows(X.data) is X.data
    array = allocator(str(tmp_path))(70_000, np.float32)
    array[:] = 1
    assert array.sum() == 70_000


def _compiled(X, fold, group, label, threshold, alpha, score, order, lambda_, rho, n_passes, own, dtype=np.float64):
    """Return what the compiled function gives for rows of a dense matrix, and check that it leaves zeros behind."""
    rows = sp.csr_matrix(X, dtype=dtype)
    work = np.zeros((X.shape[1], N_FOLDS + 1), dtype)
    arrays = rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data
    parts = [np.asarray(part, dtype) for part in (label, threshold, alpha, score)]
    settings = np.asarray(order, np.int64), lambda_, rho, n_passes, own, work
    of_rows = (np.asarray(numbers, np.int64) for numbers in (np.arange(len(X)), fold, group))
    result = leave_out_folds(*arrays, *of_rows, *parts, *settings)
    assert not work.any()
    return result


def _invented(seed, n=12):
    """Return rows, and a solution over them: labels, thresholds, alpha, scores, λ and ρ."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6)) * (rng.random((n, 6)) < 0.6)
    label, threshold = rng.choice([-1.0, 1.0], n), rng.uniform(0.5, 3, n)
    alpha, lambda_, rho = rng.integers(0, 4, n).astype(float), rng.uniform(0.1, 2), rng.choice([0.0, 1.0, 0.5])
    return X, label, threshold, alpha, (X @ X.T + rho**2) @ (alpha * label), lambda_, rho


@given(
    st.integers(0, 2**32), st.integers(1, 3), st.sampled_from([0, 0.4, 1]), st.sampled_from([np.float32, np.float64])
)
def test_leaving_out_folds_does_what_two_plain_trainings_a_fold_do(seed, n_passes, own, dtype):
    X, label, threshold, alpha, score, lambda_, rho = _invented(seed)
    rng = np.random.default_rng(seed + 1)
    fold, order = rng.integers(-1, N_FOLDS, len(X)), rng.permutation(len(X))
    group = rng.integers(0, len(X), len(X))
    arguments = X, fold, group, label, threshold, alpha, score, order, lambda_, rho, n_passes, own
    for compiled, plain in zip(_compiled(*arguments, dtype=dtype), naive.without_folds(*arguments), strict=True):
        assert compiled.dtype == dtype
        exact = dtype == np.float64
        np.testing.assert_allclose(compiled, plain, rtol=1e-9 if exact else 1e-2, atol=1e-9 if exact else 1e-2)


def test_from_the_minimum_many_passes_lead_to_the_minimum_without_the_fold():
    """The minimum is that of non-negative least squares, which scipy solves by active sets."""

    def minimum(chosen):
        M = (X @ X.T + rho**2) * np.outer(label, label) + lambda_ * np.eye(len(X))
        root = np.linalg.cholesky(M[np.ix_(chosen, chosen)]).T
        alpha = np.zeros(len(X))
        alpha[chosen] = scipy.optimize.nnls(root, np.linalg.solve(root.T, threshold[chosen]))[0]
        return alpha

    for seed in range(5):
        X, label, threshold, _, _, lambda_, rho = _invented(seed, n=20)
        everything, fold = np.arange(20), np.arange(20) % 8 - 1
        alpha = minimum(everything)
        K = X @ X.T + rho**2
        parts = fold, everything, label, threshold, alpha, K @ (alpha * label), everything
        added, _ = _compiled(X, *parts, lambda_, rho, 3000, 1.0)
        for number in range(N_FOLDS):
            expected = K @ ((minimum(np.flatnonzero(fold != number)) - alpha) * label)
            np.testing.assert_allclose(added[fold == number], expected[fold == number], atol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_of_some_rows_are_those_of_a_plain_loop(dtype):
    rng = np.random.default_rng(0)
    X, w = sp.random_array((50, 30), density=0.2, format="csr", dtype=dtype, rng=rng), rng.normal(size=30).astype(dtype)
    expected = []
    for i in (chosen := [7, 0, 49, 7]):
        expected.append(dtype(0))
        for p in range(X.indptr[i], X.indptr[i + 1]):
            expected[-1] += X.data[p] * w[X.indices[p]]
    products = dots(X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data, chosen, w)
    assert products.dtype == dtype
    np.testing.assert_array_equal(products, np.array(expected, dtype))
    assert not dots(X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data, [], w).size
