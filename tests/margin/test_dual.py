"""On a kernel the learners make the updates of their naive twins, and of the primal form where the kernel is linear."""

import os
import pickle
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from cases import every
from hypothesis import given
from hypothesis import strategies as st
from naive_dual import Coefficients

from textcat.margin.kernels import BLOCK_ROWS, Expansion, KernelError, KernelRows, one_blas_thread, solve_dual_block
from textcat.margin.problems import Problem, SolveControl
from textcat.margin.rules import ALMA, CRAMMA, MICRA, PA, PAM, PAUM, PDM, ROMMA, RULES, LMargitron, TMargitron
from textcat.margin.solve import solve

TWINS = {
    PA: naive.pa, PAM: naive.pam, PAUM: naive.paum, TMargitron: naive.t_margitron, LMargitron: naive.l_margitron,
    MICRA: naive.micra, CRAMMA: naive.cramma, ALMA: naive.alma, ROMMA: naive.romma, PDM: naive.pdm,
}  # fmt: skip
FAMILY = [
    PA(), PA(0.3), PAM(1), PAM(0.5, 0.3), PAUM(-1, 5), PAUM(1, 20, 2), TMargitron(0.5, 0.4), LMargitron(0.5, 0.6),
    MICRA(2, 0.1, 0.3, 0.8), CRAMMA(0.1, 0.1, 0.3), ALMA(0.7), ROMMA(0.4), PDM(0.6),
]  # fmt: skip
# On whole numbers every sum of these is exact, in whatever order it is made.
EXACT = [PA(), PAM(1), PAM(7), PAUM(-1, 5), PAUM(1, 50), TMargitron(0.5, 2), LMargitron(0.5, 3), PDM(0.5)]


def test_these_tests_know_every_member_of_the_family():
    assert set(TWINS) == set(RULES.values()) == {type(rule) for rule in FAMILY}


def solve_dual(X, problems, kernel="linear", kernel_params=None, *, order=None, margins=False, cache_mb=1000, n_jobs=1):
    """Train on a kernel, the problems dealt to n_jobs threads; solutions in the order of the problems."""
    rows = X if isinstance(X, KernelRows) else KernelRows(X, kernel, kernel_params, cache_mb=cache_mb, n_jobs=n_jobs)
    dealt = [list(enumerate(problems))[job::n_jobs] for job in range(n_jobs)]
    with one_blas_thread(), ThreadPoolExecutor(n_jobs) as pool:
        parts = list(
            pool.map(
                lambda part: solve_dual_block(rows, part, order=order, margins=margins, control=SolveControl(None)),
                dealt,
            )
        )
    solutions = dict(pair for part in parts for pair in part)
    return [solutions[number] for number in range(len(problems))]


def bits(solutions):
    """Everything that came of the problems, to the bit."""
    return [
        (
            s.bias.tobytes(), s.support.tobytes(), s.alpha.tobytes(), s.held_out.tobytes(), s.n_updates, s.n_epochs,
            s.converged, s.stopped, s.directional_margin, s.margin, s.certificate,
        )
        for s in solutions
    ]  # fmt: skip


def dense_alpha(solution, n_rows):
    alpha = np.zeros(n_rows, solution.alpha.dtype)
    alpha[solution.support] = solution.alpha
    return alpha


def gaussian(X, gamma=0.3):
    return np.exp(-gamma * ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2))


def some_rows(n_rows=150, n_features=4, seed=0, dtype=np.float64):
    """Rows drawn from a normal distribution: ties with a threshold, which rounding would decide, do not happen."""
    return np.random.default_rng(seed).normal(size=(n_rows, n_features)).astype(dtype)


def some_problems(n_rows=150, mini_epochs=0, seed=1):
    rng = np.random.default_rng(seed)
    return [
        Problem.from_labels(
            rng.choice([1, -1, 0], n_rows, p=[0.3, 0.6, 0.1]), rule, lambda_=[1.0, 0.5][k % 2],
            rho=[1.0, 0.0, 2.5][k % 3], max_epochs=[1000, 3, 17][k % 3], mini_epochs=mini_epochs,
        )
        for k, rule in enumerate(FAMILY)
    ]  # fmt: skip


# --- the naive twins ---


@given(
    st.integers(0, 2**32 - 1), st.sampled_from(FAMILY), st.sampled_from([0.0, 1.0]), st.sampled_from([0.0, 1.0, 2.5]),
    st.sampled_from([1, 2, 5, 30]), st.sampled_from([0, 1, 4]), st.sampled_from([0.0, 0.2]), st.booleans(),
)  # fmt: skip
def test_an_expansion_makes_the_updates_of_the_naive_twin(
    seed, rule, lambda_, rho, max_epochs, mini_epochs, tol, shuffled
):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rng.integers(1, 14), 3))
    kernel = gaussian(X)  # of full rank: any labels are separable
    labels = rng.choice([-1, 1, 0], len(X))
    limits = {"max_epochs": max_epochs, "mini_epochs": mini_epochs, "tol": tol}
    problem = Problem.from_labels(labels, rule, lambda_=lambda_, rho=rho, **limits)
    order = rng.permutation(len(X)) if shuffled else None
    a = Coefficients(kernel.tolist(), rho, lambda_)
    sequence = range(len(X)) if order is None else order.tolist()
    step = TWINS[type(rule)](**rule.parameters)
    epochs, converged = naive.train(a, labels.tolist(), sequence, max_epochs, step, mini_epochs, tol)
    (solution,) = solve_dual(kernel, [problem], "precomputed", order=order, margins=True)
    assert (solution.n_updates, solution.n_epochs, solution.converged) == (a.t, epochs, converged)
    np.testing.assert_allclose(dense_alpha(solution, len(X)), a.alpha, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(solution.bias, a.bias, rtol=1e-6, atol=1e-9)
    assert np.all(solution.alpha != 0)
    assert solution.weights is None
    if a.t:
        found = solution.directional_margin, solution.margin, solution.certificate
        np.testing.assert_allclose(found, naive.margins(a, labels.tolist()), rtol=1e-6, atol=1e-9)
    else:
        assert np.isnan(solution.directional_margin)
        assert np.isnan(solution.margin)
        assert np.isnan(solution.certificate)


# --- primal = dual ---


@given(
    st.integers(0, 2**32 - 1), st.sampled_from(EXACT), st.sampled_from([0.0, 1.0]), st.sampled_from([0.0, 1.0, 3.0]),
    st.sampled_from([0, 3]), st.sampled_from([np.float32, np.float64]), st.booleans(),
)  # fmt: skip
def test_on_whole_numbers_primal_and_dual_are_the_same_to_the_bit(
    seed, rule, lambda_, rho, mini_epochs, dtype, shuffled
):
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (rng.integers(1, 100), rng.integers(1, 12))).astype(dtype)
    labels = rng.choice([-1, 1, 0], len(X))
    problem = Problem.from_labels(labels, rule, lambda_=lambda_, rho=rho, max_epochs=20, mini_epochs=mini_epochs)
    order = np.random.default_rng(5).permutation(len(X)) if shuffled else None
    (primal,) = solve(sp.csr_array(X), [problem], seed=5 if shuffled else None, margins=True)
    (dual,) = solve_dual(X, [problem], order=order, margins=True)
    assert bits([replace_margins(dual)]) == bits([replace_margins(primal)])
    found, expected = (
        (solution.directional_margin, solution.margin, solution.certificate) for solution in (dual, primal)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def replace_margins(solution):
    return replace(solution, directional_margin=None, margin=None, certificate=None)


@every("rule", FAMILY)
@every("lambda_", [0.0, 1.0])
@every("mini_epochs", [0, 5])
def test_primal_and_dual_make_the_same_updates(rule, lambda_, mini_epochs):
    X = some_rows(100, 100)  # as many features as rows: separable, whatever the labels
    rng = np.random.default_rng(2)
    problems = [
        Problem.from_labels(
            rng.choice([-1, 1, 0], 100, p=[0.6, 0.3, 0.1]), rule, lambda_=lambda_, rho=rho, mini_epochs=mini_epochs,
            max_epochs=40,
        )
        for rho in (0.0, 1.0)
    ]  # fmt: skip
    primal = solve(sp.csr_array(X), problems, margins=True)
    for one, other in zip(solve_dual(X, problems, margins=True), primal, strict=True):
        assert (one.n_updates, one.n_epochs, one.stopped) == (other.n_updates, other.n_epochs, other.stopped)
        assert one.n_updates > 10
        assert one.support.tolist() == other.support.tolist()
        for name in ("alpha", "bias", "held_out", "directional_margin", "margin", "certificate"):
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-7, atol=1e-9, err_msg=name)


# --- nothing but the problem decides ---


@pytest.fixture(scope="module", params=[np.float32, np.float64], ids=["float32", "float64"])
def whole(request):
    """Rows, problems, and their solutions on a matrix that is kept whole."""
    X = some_rows(dtype=request.param)
    problems = [replace(problem, max_epochs=min(problem.max_epochs, 5)) for problem in some_problems(mini_epochs=2)]
    return X, problems, bits(solve_dual(X, problems, "rbf", margins=True))


@pytest.mark.parametrize(("cache_mb", "n_jobs"), [(0, 2), (0.17, 1), (0.17, 2), (1000, 2)])
def test_any_memory_and_any_number_of_jobs_give_the_same_bits(whole, cache_mb, n_jobs):
    X, problems, expected = whole
    assert bits(solve_dual(X, problems, "rbf", margins=True, cache_mb=cache_mb, n_jobs=n_jobs)) == expected


def test_a_problem_does_not_depend_on_those_before_it(whole):
    X, problems, expected = whole
    assert bits(reversed(solve_dual(X, problems[::-1], "rbf", margins=True))) == expected


def test_kernel_rows_that_went_to_another_process_give_the_same_bits(whole):
    X, problems, expected = whole
    rows = KernelRows(X, "rbf", n_jobs=2)
    rows.block(0)
    copy = pickle.loads(pickle.dumps(rows))
    assert copy.cache_mb == rows.cache_mb / 2
    assert bits(solve_dual(copy, problems, margins=True)) == expected


def test_a_solution_has_the_number_type_of_the_rows(whole):
    X, problems, _ = whole
    for solution in solve_dual(X, problems[:2], "rbf"):
        assert solution.alpha.dtype == solution.bias.dtype == solution.held_out.dtype == X.dtype
        assert solution.support.dtype == np.int32


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_rows_and_a_precomputed_kernel_give_what_dense_rows_give(dtype):
    X = np.random.default_rng(0).integers(-2, 3, (100, 3)).astype(dtype)  # every inner product is exact
    problems = some_problems(100)
    expected = bits(solve_dual(X, problems, margins=True))
    assert bits(solve_dual(sp.csr_array(X), problems, margins=True)) == expected
    assert bits(solve_dual(sp.csc_matrix(X), problems, margins=True)) == expected
    assert bits(solve_dual(X @ X.T, problems, "precomputed", margins=True)) == expected
    assert bits(solve_dual(np.asfortranarray(X), problems, lambda A, B: A @ B.T, margins=True)) == expected


def test_float32_makes_the_updates_of_float64_for_a_few_epochs():
    X = some_rows()
    problems = [replace(problem, max_epochs=3) for problem in some_problems()]
    pairs = zip(solve_dual(X.astype(np.float32), problems, "rbf"), solve_dual(X, problems, "rbf"), strict=True)
    for single, double in pairs:
        assert single.n_updates == double.n_updates
        np.testing.assert_allclose(dense_alpha(single, 150), dense_alpha(double, 150), rtol=1e-3, atol=1e-4)


# --- what a solution says ---


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_held_out_scores_are_those_of_the_expansion(dtype):
    X = some_rows(dtype=dtype)
    kernel = gaussian(X.astype(np.float64))
    tolerance = 1e-4 if dtype == np.float32 else 1e-9
    for problem, solution in zip(some_problems(), solve_dual(X, some_problems(), "rbf", {"gamma": 0.3}), strict=True):
        expected = kernel[np.ix_(problem.left_out, solution.support)] @ solution.alpha + solution.bias
        np.testing.assert_allclose(solution.held_out, expected, rtol=tolerance, atol=tolerance)
        assert solution.bias == pytest.approx(problem.rho**2 * solution.alpha.sum(), rel=tolerance)
        assert not np.isin(problem.left_out, solution.support).any()


def test_left_out_rows_are_as_though_they_were_not_there():
    X, labels = some_rows(60), np.where(np.arange(60) % 7 < 3, 1, -1)
    left_out = np.arange(60) % 5 == 0
    for rule in FAMILY:
        problem = Problem.from_labels(np.where(left_out, 0, labels), rule, max_epochs=50)
        alone = Problem.from_labels(labels[~left_out], rule, max_epochs=50)
        (one,), (other,) = solve_dual(X, [problem], "rbf"), solve_dual(X[~left_out], [alone], "rbf")
        assert (one.n_updates, one.n_epochs) == (other.n_updates, other.n_epochs)
        np.testing.assert_allclose(one.alpha, other.alpha, rtol=1e-9)


def test_a_solution_says_why_training_ended():
    X, labels = some_rows(), np.where(np.arange(150) % 3, -1, 1)
    short, whole = solve_dual(
        X, [Problem.from_labels(labels, PAM(1), lambda_=1.0, max_epochs=n) for n in (2, 1000)], "rbf"
    )
    assert not short.converged
    assert short.stopped.startswith("did not converge: ")
    assert short.stopped.endswith(" updates in epoch 2, the last one allowed")
    assert whole.converged
    assert whole.stopped == f"converged: no update in epoch {whole.n_epochs}"


def test_numbers_too_large_are_an_overflow_and_no_convergence():
    X = np.full((4, 2), 1e18, np.float32)
    (solution,) = solve_dual(X, [Problem.from_labels(np.array([1, -1, 1, -1]), PA(1e30), max_epochs=5)])
    assert not solution.converged
    assert solution.stopped.startswith("overflowed float32 in epoch ")


def test_no_row_at_all_is_converged_without_an_update():
    (solution,) = solve_dual(some_rows(3), [Problem.from_labels(np.zeros(3), PA())], "rbf", margins=True)
    assert (solution.n_updates, solution.n_epochs, solution.converged) == (0, 1, True)
    assert np.isnan(solution.directional_margin)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_scale_is_taken_into_the_coefficients_before_it_vanishes(dtype):
    # Every row is half as long as the one before, and at such an angle to it that ROMMA shrinks the weights to a sixth.
    steps = 0.5 ** np.arange(30)
    X = np.diag(steps) * np.sqrt(0.75) + np.diag(steps[1:] * 0.5, k=-1)
    problem = Problem.from_labels(np.ones(30), ROMMA(0.1), rho=0.0, max_epochs=3)
    a = Coefficients((X @ X.T).tolist(), 0.0, 0.0)
    naive.train(a, [1] * 30, range(30), 3, naive.romma(0.1))
    scales = np.cumprod([shrink for _, shrink, _ in a.updates[1:]])
    assert 0 < scales[28] < 1e-18, "the scale, allowed down to 1e-9, had to be renormalised more than once"
    (solution,) = solve_dual(X.astype(dtype), [problem])
    assert solution.n_updates == a.t
    tolerance = 1000 * np.finfo(dtype).eps
    np.testing.assert_allclose(
        dense_alpha(solution, 30), a.alpha, rtol=tolerance, atol=tolerance * np.abs(a.alpha).max()
    )


# --- a warm start ---


@every("rule", FAMILY)
@every("cache_mb", [0, 1000])
def test_a_start_goes_on_as_though_training_had_not_ended(rule, cache_mb):
    X, labels = some_rows(), np.where(np.arange(150) % 3, -1, 1)
    problem = Problem.from_labels(labels, rule, lambda_=0.5, rho=2.0, max_epochs=4)
    (half,) = solve_dual(X, [replace(problem, max_epochs=2)], "rbf", cache_mb=cache_mb)
    (whole,) = solve_dual(X, [problem], "rbf", cache_mb=cache_mb)
    (went_on,) = solve_dual(X, [replace(problem, max_epochs=2, start=half)], "rbf", cache_mb=cache_mb)
    assert went_on.n_updates == whole.n_updates
    assert went_on.stopped.replace("epoch 2", "epoch 4") == whole.stopped or went_on.converged
    np.testing.assert_allclose(dense_alpha(went_on, 150), dense_alpha(whole, 150), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(went_on.bias, whole.bias, rtol=1e-6, atol=1e-9)


def test_a_start_that_has_converged_needs_one_epoch_and_no_update():
    X, labels = some_rows(), np.where(np.arange(150) % 3, -1, 1)
    problem = Problem.from_labels(labels, PAM(1), lambda_=1.0)
    (found,) = solve_dual(X, [problem], "rbf")
    (again,) = solve_dual(X, [replace(problem, start=found)], "rbf")
    assert (again.n_epochs, again.n_updates, again.converged) == (1, found.n_updates, True)
    assert again.alpha.tobytes() == found.alpha.tobytes()


# --- memory, errors, Ctrl-C ---


def test_no_more_blocks_are_held_than_there_is_memory_for(monkeypatch):
    X = some_rows(5 * BLOCK_ROWS)
    held = []
    hold = solve_dual_block.__globals__["Expansion"].hold

    class Watched(Expansion):
        def hold(self, b, block):
            hold(self, b, block)
            held.append(self.n_held)

    monkeypatch.setitem(solve_dual_block.__globals__, "Expansion", Watched)
    megabytes_of_a_block = BLOCK_ROWS * len(X) * 8 / 1e6
    labels = np.where(np.arange(len(X)) % 3, -1, 1)
    solve_dual(X, [Problem.from_labels(labels, PAM(1), lambda_=1.0)], "rbf", cache_mb=2.5 * megabytes_of_a_block)
    assert max(held) == 2
    assert len(held) > 5, "blocks had to be fetched again"


def test_a_kernel_that_is_not_finite_is_told_by_its_rows():
    X = some_rows()
    X[70, 0] = 1e200
    with pytest.raises(
        KernelError, match=r"Kernel 'linear' of row 70 with itself is inf; it must be a finite number\."
    ):
        solve_dual(X, some_problems())
    kernel = gaussian(some_rows())
    kernel[0, 80] = kernel[80, 0] = np.nan
    with pytest.raises(KernelError, match=r"Kernel 'precomputed' of the rows 0 and 80 is nan; it must be a finite"):
        solve_dual(kernel, some_problems(), "precomputed")


def test_control_counts_finished_problems_and_stops():
    X, problems = some_rows(), some_problems()
    finished = []
    control = SolveControl(finished.append)
    assert len(
        solve_dual_block(KernelRows(X, "rbf"), enumerate(problems), order=None, margins=False, control=control)
    ) == len(problems)
    assert finished == [1] * len(problems)
    control.stop.set()
    assert solve_dual_block(KernelRows(X, "rbf"), enumerate(problems), order=None, margins=False, control=control) == []


def test_public_things_are_documented():
    for thing in (
        Expansion,
        Expansion.load,
        Expansion.warm,
        Expansion.run,
        Expansion.hold,
        Expansion.drop,
        solve_dual_block,
    ):
        assert thing.__doc__


ENDLESS = """
from textcat.lean_imports import keep_imports_lean
keep_imports_lean()  # as the command does: it saves a second
import numpy as np
from contextlib import suppress
from textcat.margin.kernels import KernelRows, solve_dual_block
from textcat.margin.problems import SolveControl, Problem
from textcat.margin.rules import PA

def train(cache_mb, mini_epochs):
    rng = np.random.default_rng(0)
    rows = KernelRows(rng.normal(size=(1500, 5)), "linear", cache_mb=cache_mb)
    labels = rng.choice([-1, 1], 1500)
    print("started", flush=True)
    problem = Problem.from_labels(labels, PA(), max_epochs=10**9, mini_epochs=mini_epochs)
    solve_dual_block(rows, [(0, problem)], order=None, margins=False, control=SolveControl(None))

for case in ((1000.0, 0), (1000.0, 10**9)):
    with suppress(KeyboardInterrupt):
        train(*case)
train(5.0, 0)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="system: Windows has no SIGINT for a single child")
def test_ctrl_c_ends_training_at_once_with_and_without_mini_epochs_and_where_little_is_cached():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    child = subprocess.Popen(
        [sys.executable, "-c", ENDLESS],
        env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        # A shell that runs the tests in the background has Ctrl-C ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    try:
        for _ in range(3):
            assert child.stdout.readline() == "started\n"
            time.sleep(0.05)  # into the endless training
            os.killpg(child.pid, signal.SIGINT)
        _, errors = child.communicate(timeout=300)
        assert "KeyboardInterrupt" in errors
        assert child.returncode == -signal.SIGINT
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
