"""The rows of a kernel matrix are scikit-learn's, to the same bits whoever asks for them first."""

import inspect
import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from cases import every
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics.pairwise import KERNEL_PARAMS, PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels
from threadpoolctl import threadpool_info, threadpool_limits

from textcat.base.errors import TextcatError
from textcat.margin.kernels import (
    BLOCK_ROWS,
    KernelError,
    KernelRows,
    check_kernel,
    kernel_between,
    kernel_scores,
    one_blas_thread,
)

DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def some_rows(n_rows=150, n_features=5, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).random((n_rows, n_features)).astype(dtype)


def whole(rows):
    return np.concatenate([rows.block(b) for b in range(rows.n_blocks)])


def cosine(X, Y, power=1):
    lengths = np.sqrt((X**2).sum(axis=1))[:, None], np.sqrt((Y**2).sum(axis=1))
    return (X @ Y.T / lengths[0] / lengths[1]) ** power


# --- the values ---


@DTYPES
@every("kernel", sorted(PAIRWISE_KERNEL_FUNCTIONS))
def test_a_kernel_by_name_is_that_of_scikit_learn(kernel, dtype):
    X = some_rows(dtype=dtype)
    rows = KernelRows(X, kernel)
    expected = pairwise_kernels(X, metric=kernel)
    tolerance = 1e-4 if dtype == np.float32 else 1e-10
    assert whole(rows).dtype == rows.dtype == dtype
    np.testing.assert_allclose(whole(rows), expected, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(rows.diagonal, expected.diagonal(), rtol=tolerance, atol=tolerance)
    assert rows.diagonal.dtype == np.float64


@DTYPES
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "sigmoid", "cosine", "laplacian"])
def test_sparse_rows_give_the_kernel_of_dense_rows(kernel, dtype):
    X = some_rows(dtype=dtype) * (some_rows(seed=1) < 0.5)
    X = X.astype(dtype)
    tolerance = 1e-4 if dtype == np.float32 else 1e-10
    for sparse in (sp.csr_array(X), sp.csc_matrix(X)):
        np.testing.assert_allclose(
            whole(KernelRows(sparse, kernel)), whole(KernelRows(X, kernel)), rtol=tolerance, atol=tolerance
        )


@every("kernel", sorted({*PAIRWISE_KERNEL_FUNCTIONS} - {"additive_chi2", "chi2"}))
@every("form", [sp.csr_matrix, sp.csr_array])
def test_an_entry_in_two_parts_counts_as_their_sum(kernel, form):
    X = some_rows(20)
    whole_entries = form(X)
    parts = form(
        (whole_entries.data.repeat(2) / 2, whole_entries.indices.repeat(2), 2 * whole_entries.indptr),
        whole_entries.shape,
    )
    alpha, bias = np.ones((1, 20)), np.zeros(1)
    np.testing.assert_allclose(whole(KernelRows(parts, kernel)), whole(KernelRows(whole_entries, kernel)))
    np.testing.assert_allclose(
        kernel_scores(parts, parts, alpha, bias, kernel), kernel_scores(X, X, alpha, bias, kernel)
    )
    assert parts.nnz == 2 * whole_entries.nnz  # the caller's matrix is as it was


def test_parameters_and_functions_are_handed_on():
    X = some_rows()
    expected = pairwise_kernels(X, metric="poly", degree=2, gamma=0.5, coef0=3)
    params = {"degree": 2, "gamma": 0.5, "coef0": 3}
    np.testing.assert_allclose(whole(KernelRows(X, "poly", params)), expected)
    np.testing.assert_allclose(whole(KernelRows(X, cosine, {"power": 3})), cosine(X, X, 3))
    np.testing.assert_allclose(whole(KernelRows(X, RBF(0.5))), RBF(0.5)(X))


def test_a_precomputed_kernel_is_taken_as_it_stands_and_not_copied():
    matrix = pairwise_kernels(some_rows(), metric="rbf")
    rows = KernelRows(matrix, "precomputed", cache_mb=0)
    assert whole(rows).tobytes() == matrix.tobytes()
    assert np.shares_memory(rows.block(1), matrix)
    assert rows.diagonal.tobytes() == matrix.diagonal().tobytes()
    assert rows.capacity == rows.n_blocks == 3


@every("dtype", [np.int64, np.float16, bool])
def test_other_number_types_become_float64(dtype):
    assert KernelRows((some_rows() * 9).astype(dtype)).dtype == np.float64
    assert KernelRows(sp.csr_array((some_rows() * 9).astype(np.int64))).dtype == np.float64
    assert KernelRows([[1, 2], [3, 4]]).diagonal.tolist() == [5, 25]


# --- the bits ---


@DTYPES
def test_a_block_has_the_same_bits_whatever_the_memory_the_order_and_the_threads(dtype):
    X = some_rows(1000, 300, dtype)
    rows = KernelRows(X, "rbf")
    expected = whole(rows).tobytes()
    assert whole(KernelRows(X, "rbf", cache_mb=0)).tobytes() == expected
    assert whole(pickle.loads(pickle.dumps(rows))).tobytes() == expected
    backwards = KernelRows(X, "rbf")
    for b in reversed(range(rows.n_blocks)):
        backwards.block(b)
    assert whole(backwards).tobytes() == expected
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert whole(KernelRows(X, "rbf")).tobytes() == expected
    with threadpool_limits(2):
        assert whole(KernelRows(X, "rbf")).tobytes() == expected


def test_blas_computes_a_block_with_one_thread_and_has_the_others_back_afterwards():
    def limits():
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    inside = []

    def watched(X, Y):
        inside.extend(limits())
        return X @ Y.T

    with threadpool_limits(2):
        before = limits()
        assert 2 in before
        rows = KernelRows(some_rows(2000), watched)
        assert set(inside) == {1}
        with one_blas_thread(), ThreadPoolExecutor(3) as pool:
            list(pool.map(rows.block, range(rows.n_blocks)))
        assert set(inside) == {1}
        assert limits() == before


# --- the memory ---


def test_a_matrix_that_fits_is_computed_once_for_all_threads():
    computed = []

    def watched(X, Y):
        if len(Y) > BLOCK_ROWS:
            computed.append(X[0, 0])
        return X @ Y.T

    X = some_rows(700)
    rows = KernelRows(X, watched, cache_mb=1000, n_jobs=4)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda _: whole(rows), range(4)))
    finally:
        sys.setswitchinterval(interval)
    assert sorted(computed) == sorted(X[::BLOCK_ROWS, 0])
    for matrix in found:
        np.testing.assert_allclose(matrix, X @ X.T)


def test_a_thread_that_would_wait_for_another_computes_a_later_block_meanwhile():
    at_work, go_on = threading.Event(), threading.Event()
    computed = []

    def watched(X, Y):
        if len(Y) > BLOCK_ROWS:
            computed.append(int(X[0, 0]))
            if X[0, 0] == 0:
                at_work.set()
                go_on.wait(300)
            else:
                go_on.set()
        return np.zeros((len(X), len(Y)))

    X = np.arange(300.0)[:, None]
    rows = KernelRows(X, watched)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(rows.block, 0)
        assert at_work.wait(300)
        second = pool.submit(rows.block, 0)
        assert first.result(300) is second.result(300)
    assert computed == [0, BLOCK_ROWS]


def test_a_block_is_computed_again_where_another_thread_has_failed():
    failing, go_on = threading.Event(), threading.Event()

    def fails_once(X, Y):
        if len(Y) > BLOCK_ROWS and not failing.is_set():
            failing.set()
            go_on.wait(300)
            raise MemoryError
        go_on.set()
        return X @ Y.T

    rows = KernelRows(some_rows(), fails_once)
    go_on.clear()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(rows.block, 0)
        assert failing.wait(300)
        second = pool.submit(rows.block, 0)
        assert second.result(300).shape == (BLOCK_ROWS, 150)
        with pytest.raises(MemoryError):
            first.result(300)


@every(
    "blocks_in_cache, n_jobs, fits, capacity",
    [(0, 1, False, 1), (2.5, 1, False, 2), (2.5, 2, False, 1), (3, 1, True, 3), (3, 4, True, 3), (99, 1, True, 3)],
)
def test_the_memory_allowed_is_that_of_all_threads_together(blocks_in_cache, n_jobs, fits, capacity):
    megabytes_of_a_block = BLOCK_ROWS * 150 * 4 / 1e6
    rows = KernelRows(some_rows(dtype=np.float32), cache_mb=blocks_in_cache * megabytes_of_a_block, n_jobs=n_jobs)
    assert (rows.fits, rows.capacity) == (fits, capacity)
    assert (rows.block(0) is rows.block(0)) == fits


# --- what is wrong with a kernel ---


@every(
    "X, kernel, params, said",
    [
        (some_rows(), "rfb", {}, r"No kernel 'rfb'; give a function of \(X, Y\), or one of: additive_chi2, .*\."),
        (some_rows(), "rbf", {"gama": 1}, r"Kernel 'rbf' has no parameter 'gama'; known: gamma\."),
        (some_rows(), "linear", {"gamma": 1}, r"Kernel 'linear' has no parameter 'gamma'; known: none\."),
        (some_rows(), "rbf", {"gamma": -1}, r"Kernel 'rbf' cannot be computed: .*gamma.*"),
        (-some_rows(), "chi2", {}, r"Kernel 'chi2' cannot be computed: X contains negative values\."),
        (sp.csr_array(some_rows()), "chi2", {}, r"Kernel 'chi2' cannot be computed: "),
        (some_rows(), "precomputed", {}, r"A precomputed kernel must be a square array .* of shape \(150, 5\)\."),
        (sp.eye_array(9), "precomputed", {}, r"A precomputed kernel must be a square array .* sparse\."),
        (np.diag([1.0, 1, -2]), "precomputed", {}, r"Kernel 'precomputed' of row 2 with itself is -2; it must be at"),
        (np.diag([1.0, np.nan]), "precomputed", {}, r"Kernel 'precomputed' of row 1 with itself is nan; it must be a"),
        (some_rows(), lambda X, Y: -(X @ Y.T), {}, r"The kernel of row 0 with itself is -.*; it must be at least 0"),
        (some_rows(), lambda x, y: 1.0, {}, r"The kernel returned an array of shape \(\) for 64 and 64 rows"),
        (some_rows(), lambda X, Y: (X @ Y.T)[1:], {}, r"of shape \(63, 64\) .*; it must be of shape \(64, 64\)\."),
    ],
)  # fmt: skip
def test_what_is_no_kernel_is_refused_in_one_sentence(X, kernel, params, said):
    with pytest.raises(KernelError, match=said) as error:
        KernelRows(X, kernel, params)
    assert isinstance(error.value, TextcatError)
    assert isinstance(error.value, ValueError)


def test_a_value_that_is_not_finite_is_told_by_its_rows():
    matrix = np.eye(150)
    matrix[130, 7] = np.inf
    rows = KernelRows(matrix, "precomputed")
    rows.block(0)
    with pytest.raises(KernelError, match="Kernel 'precomputed' of the rows 130 and 7 is inf; it must be a finite"):
        rows.block(2)


@DTYPES
def test_a_length_below_zero_by_rounding_alone_counts_as_zero(dtype):
    matrix = np.diag([1.0, -1e-17]).astype(dtype)
    assert KernelRows(matrix, "precomputed").diagonal.tolist() == [1, 0]


def test_an_error_inside_a_function_is_its_own():
    def broken(X, Y):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        KernelRows(some_rows(), broken)


def test_no_rows_have_no_blocks():
    rows = KernelRows(np.empty((0, 3)), "rbf")
    assert (rows.n_rows, rows.n_blocks, rows.diagonal.shape) == (0, 0, (0,))


# --- scores ---


@DTYPES
def test_scores_are_sums_over_the_support_rows(dtype, monkeypatch):
    monkeypatch.setattr("textcat.margin.kernels.SCORED_AT_ONCE", 100)  # several portions
    X, new = some_rows(20, dtype=dtype), some_rows(33, dtype=dtype, seed=1)
    alpha = np.random.default_rng(2).normal(size=(3, 20)).astype(dtype)
    bias = np.array([0.5, 0, -1], dtype)
    kernel = pairwise_kernels(new, X, metric="rbf", gamma=0.5)
    expected = kernel @ alpha.T + bias
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    found = kernel_scores(new, X, alpha, bias, "rbf", {"gamma": 0.5})
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    sparse = kernel_scores(sp.csr_array(new), sp.csr_array(X), alpha, bias, "rbf", {"gamma": 0.5})
    np.testing.assert_allclose(sparse, expected, rtol=tolerance, atol=tolerance)
    chosen = np.array([2, 5, 11])
    found = kernel_scores(kernel, chosen, alpha[:, chosen], bias, "precomputed")
    np.testing.assert_allclose(found, kernel[:, chosen] @ alpha[:, chosen].T + bias, rtol=tolerance, atol=tolerance)


def test_without_support_a_score_is_the_bias():
    found = kernel_scores(some_rows(4), some_rows(0), np.empty((2, 0)), np.array([0.0, 3.0]), "rbf")
    assert found.tolist() == [[0, 3]] * 4


def test_public_things_are_documented():
    for thing in (KernelRows, KernelRows.block, KernelError, check_kernel, kernel_between, kernel_scores):
        assert thing.__doc__


@every("name", PAIRWISE_KERNEL_FUNCTIONS)
def test_scikit_learns_tables_of_kernels_are_those_of_its_documented_door(name):
    X = np.abs(some_rows(5))
    assert name in pairwise_kernels.__doc__
    assert set(KERNEL_PARAMS[name]) <= set(inspect.signature(PAIRWISE_KERNEL_FUNCTIONS[name]).parameters)
    np.testing.assert_array_equal(PAIRWISE_KERNEL_FUNCTIONS[name](X, X), pairwise_kernels(X, metric=name))
