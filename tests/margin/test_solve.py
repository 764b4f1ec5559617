"""The compiled lanes make the updates of the naive loops, and nothing but the problem decides about its solution."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import joblib
import naive
import numpy as np
import pytest
import scipy.sparse as sp
from cases import every
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from joblib.parallel import SequentialBackend, ThreadingBackend, get_active_backend
from solved_problems import bits, rows_with_dimensions, some_problems, some_rows

from textcat.margin.primal import N_LANES, Block
from textcat.margin.problems import Problem, Solution
from textcat.margin.rules import ALMA, CRAMMA, MICRA, PA, PAM, PAUM, PDM, ROMMA, LMargitron, TMargitron
from textcat.margin.solve import nothing, solve

NAIVE = {
    PA: naive.pa, PAM: naive.pam, PAUM: naive.paum, TMargitron: naive.t_margitron, LMargitron: naive.l_margitron,
    MICRA: naive.micra, CRAMMA: naive.cramma, ALMA: naive.alma, ROMMA: naive.romma, PDM: naive.pdm,
}  # fmt: skip
ETAS = st.sampled_from([1.0, 0.3, 7.0])
EPSILONS = st.sampled_from([0.3, 0.5, 1.0, 1.5])
MARGINS = st.sampled_from([-1.0, -0.5, 0.0, 0.1, 1.0, 5.0])


PERCEPTRONS = st.one_of(
    st.builds(PA, ETAS), st.builds(PAM, MARGINS, ETAS), st.builds(PAUM, tau_neg=MARGINS, tau_pos=MARGINS, eta=ETAS)
)
SIZES = st.sampled_from([0.5, 3.0])


UNSCALED = st.one_of(
    PERCEPTRONS,
    st.builds(TMargitron, EPSILONS, SIZES),
    st.builds(LMargitron, EPSILONS, SIZES),
    st.builds(MICRA, SIZES, SIZES, EPSILONS, st.sampled_from([0.5, 0.9])),
    st.builds(CRAMMA, st.sampled_from([0.01, 0.1]), SIZES, EPSILONS),
    st.builds(PDM, st.sampled_from([0.2, 0.5, 1.0])),
)


# Zeros make the rows sparse, and some of them empty; the others are short and long binary fractions.
VALUES = st.sampled_from([0.0, 0.0, 0.0, 1.0, -1.0, 0.5, 0.1, -0.3, 2.7])


@st.composite
def rows_and_labels(draw, dtype=np.float64):
    shape = draw(st.tuples(st.integers(1, 12), st.integers(1, 6)))
    X = sp.csr_array(draw(arrays(dtype, shape, elements=VALUES)))
    return X, draw(arrays(np.int8, shape[0], elements=st.sampled_from([-1, 1, 1, -1, 0])))


def naive_solution(X, labels, problem, order=None):
    """Run the naive twin of a problem; returns the vector it ends with, the number of epochs, whether it converged."""
    rows = [list(zip(X[[i]].indices.tolist(), X[[i]].data.tolist(), strict=True)) for i in range(X.shape[0])]
    a = naive.Vector(rows, X.shape[1], problem.rho, problem.lambda_)
    order = range(X.shape[0]) if order is None else order
    rule = problem.rule
    step = NAIVE[type(rule)](**rule.parameters)
    return a, *naive.train(a, labels.tolist(), order, *problem.limits[:1], step, *problem.limits[1:])


def dense_alpha(solution, n_rows):
    alpha = np.zeros(n_rows, solution.alpha.dtype)
    alpha[solution.support] = solution.alpha
    return alpha


# --- the naive twins ---
@given(
    rows_and_labels(),
    UNSCALED,
    st.sampled_from([0.0, 0.5, 1.0]),
    st.sampled_from([0.0, 1.0, 2.5]),
    st.sampled_from([1, 2, 5, 40]),
    st.sampled_from([0, 0, 1, 4]),
    st.sampled_from([0.0, 0.0, 0.1, 0.5]),
    st.sampled_from([None, 0, 1, 2]),
)
def test_a_lane_makes_the_updates_of_the_naive_loop_to_the_bit(drawn, rule, lambda_, rho, max_epochs, minis, tol, seed):
    X, labels = drawn
    limits = {"max_epochs": max_epochs, "mini_epochs": minis, "tol": tol}
    problem = Problem.from_labels(labels, rule, lambda_=lambda_, rho=rho, **limits)
    order = None if seed is None else np.random.default_rng(seed).permutation(X.shape[0])
    a, epochs, converged = naive_solution(X, labels, problem, order)
    (solution,) = solve(X, [problem], seed=seed)
    unit = np.abs(a.alpha).max() / np.abs(solution.alpha).max() if len(solution.alpha) else 1
    if isinstance(rule, MICRA | CRAMMA):
        assert np.log2(unit) % 20 == 0, "only the direction counts, so long vectors are divided by 2²⁰, which is exact"
    else:
        assert unit == 1
    assert (unit * solution.weights).tolist() == a.w
    assert unit * solution.bias == a.bias
    assert (unit * dense_alpha(solution, X.shape[0])).tolist() == a.alpha
    assert np.all(solution.alpha != 0)
    assert solution.n_updates == len(a.updates)
    assert (solution.n_epochs, solution.converged) == (epochs, converged)


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([ROMMA(0.5), ROMMA(0.1), ALMA(0.45), ALMA(0.15), ALMA(0.9, 1 / 0.9)]),
    st.sampled_from([0.0, 1.0]),
    st.sampled_from([1, 5, 40]),
    st.sampled_from([0, 3]),
)
def test_a_rule_that_shrinks_makes_the_updates_of_its_naive_loop(seed, rule, lambda_, max_epochs, mini_epochs):
    # Drawn from a normal distribution: ties with the threshold, which rounding would decide, do not happen. (Nor does a
    # unit vector along the longest row, as ALMA makes it, meet a threshold of 1 with these parameters.)
    rng = np.random.default_rng(seed)
    X = sp.csr_array(rng.normal(size=(rng.integers(1, 12), rng.integers(1, 6))))
    labels = rng.choice([-1, 1, 0], X.shape[0])
    problem = Problem.from_labels(
        labels, rule, lambda_=lambda_, rho=0.3, max_epochs=max_epochs, mini_epochs=mini_epochs
    )
    a, epochs, converged = naive_solution(X, labels, problem)
    assume(a.squared_length() < 1e6)  # rows that cannot be separated: every difference of rounding grows without bound
    (solution,) = solve(X, [problem])
    assert (solution.n_updates, solution.n_epochs, solution.converged) == (len(a.updates), epochs, converged)
    np.testing.assert_allclose(solution.weights, a.w, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(solution.bias, a.bias, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(dense_alpha(solution, X.shape[0]), a.alpha, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_scale_of_a_lane_is_taken_into_its_weights_before_it_vanishes(dtype):
    # Every row is half as long as the one before, and at such an angle to it that ROMMA shrinks the weights to a sixth.
    steps = 0.5 ** np.arange(30)
    X = sp.csr_array(np.diag(steps) * np.sqrt(0.75) + np.diag(steps[1:] * 0.5, k=-1))
    labels = np.ones(30, int)
    problem = Problem.from_labels(labels, ROMMA(0.1), rho=0.0, max_epochs=3)
    a, *_ = naive_solution(X, labels, problem)
    scales = np.cumprod([shrink for _, shrink, _ in a.updates[1:]])
    assert 0 < scales[28] < 1e-18, "the lane's scale, allowed down to 1e-9, had to be renormalised more than once"
    (solution,) = solve(X.astype(dtype), [problem])
    assert solution.n_updates == len(a.updates)
    tolerance = 100 * np.finfo(dtype).eps
    for found, expected in [(solution.weights, a.w), (dense_alpha(solution, 30), a.alpha)]:
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())


@every("seed", range(5))
@every("rows", [some_rows, rows_with_dimensions])
def test_float32_stays_close_to_float64_for_a_few_epochs(seed, rows):
    X, problems = rows(seed=seed, dtype=np.float64), [replace(problem, max_epochs=3) for problem in some_problems()]
    for single, double in zip(solve(X.astype(np.float32), problems), solve(X, problems), strict=True):
        assert single.weights.dtype == single.alpha.dtype == single.bias.dtype == np.float32
        assert single.n_updates == double.n_updates
        np.testing.assert_allclose(single.weights, double.weights, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(single.bias, double.bias, rtol=1e-4, atol=1e-4)


@given(rows_and_labels(), PERCEPTRONS)
def test_the_weights_are_the_rows_weighted_by_alpha(drawn, rule):
    X, labels = drawn
    (solution,) = solve(X, [Problem.from_labels(labels, rule, lambda_=1.0, rho=2.0, max_epochs=20)])
    alpha = dense_alpha(solution, X.shape[0])
    np.testing.assert_allclose(solution.weights, alpha @ X.toarray(), rtol=1e-9, atol=1e-9)
    assert solution.bias == pytest.approx(2.0**2 * alpha.sum())


@given(st.integers(0, 2**32 - 1), st.integers(64, 100), st.sampled_from([0.0, 1.0]), st.sampled_from([0, 2]))
def test_dense_features_make_the_updates_of_the_naive_loop(seed, n_dimensions, lambda_, mini_epochs):
    # Whole numbers: float32 rounds none of the sums, in whatever order they are taken.
    X = rows_with_dimensions(seed=seed, n_dimensions=n_dimensions)
    X.data = np.clip(np.round(X.data * 2), -3, 3)
    X.eliminate_zeros()
    labels = np.random.default_rng(seed).choice([1, -1, 0], X.shape[0])
    limits = {"max_epochs": 20, "mini_epochs": mini_epochs}
    problem = Problem.from_labels(labels, PAUM(1.0, 5.0), lambda_=lambda_, rho=2.0, **limits)
    a, epochs, converged = naive_solution(X, labels, problem)
    (solution,) = solve(X, [problem])
    assert solution.weights.tolist() == a.w
    assert solution.bias == a.bias
    assert dense_alpha(solution, X.shape[0]).tolist() == a.alpha
    assert (solution.n_updates, solution.n_epochs, solution.converged) == (len(a.updates), epochs, converged)


# --- nothing but the problem decides ---
@every("lanes", range(1, N_LANES + 1))
def test_a_solution_does_not_depend_on_how_many_lanes_run_side_by_side(alone, lanes):
    X, problems, expected = alone
    assert bits(solve(X, problems, lanes=lanes)) == expected


@pytest.mark.parametrize(
    ("backend", "n_jobs"),
    [("threading", 1), ("threading", 2), ("threading", -1), ("loky", 2), ("multiprocessing", -1)],
)
def test_a_solution_does_not_depend_on_the_backend_and_the_number_of_jobs(alone, backend, n_jobs):
    X, problems, expected = alone
    # So small: processes get read-only memory maps. With other settings, others would be started.
    with joblib.parallel_config(backend=backend, max_nbytes=100, n_jobs=n_jobs):
        assert bits(solve(X, problems)) == expected
        out = np.empty((len(problems), X.shape[1]), X.dtype)
        assert bits(solve(X, problems, n_jobs=n_jobs, out=out)) == expected
        assert [row.tobytes() for row in out] == [solution[0] for solution in expected]


@given(st.lists(st.integers(0, 39), max_size=60), st.integers(1, N_LANES), st.integers(1, 3))
def test_a_solution_does_not_depend_on_the_problems_beside_it(alone, chosen, lanes, n_jobs):
    X, problems, expected = alone
    solutions = solve(X, [problems[k] for k in chosen], lanes=lanes, n_jobs=n_jobs)
    assert bits(solutions) == [expected[k] for k in chosen]


def test_hundreds_of_problems_are_dealt_into_small_blocks_and_come_back_in_order():
    X = some_rows()
    problems = some_problems(n_problems=300)
    assert bits(solve(X, problems, n_jobs=2)) == bits(solve(X, problems, n_jobs=1, lanes=7))


@every("rule", [PA(), PAUM(-1, 5), ROMMA(0.1)])
def test_leaving_rows_out_is_training_without_them(rule):
    X = some_rows()
    labels = np.random.default_rng(0).choice([1, -1, 0], X.shape[0])
    kept = np.flatnonzero(labels)
    settings = {"lambda_": 0.5, "max_epochs": 50}
    (with_all,) = solve(X, [Problem.from_labels(labels, rule, **settings)])
    (without,) = solve(X[kept], [Problem.from_labels(labels[kept], rule, **settings)])
    assert with_all.weights.tobytes() == without.weights.tobytes()
    assert with_all.bias == without.bias
    assert with_all.support.tolist() == kept[without.support].tolist()


def test_a_seed_changes_the_order_and_the_same_seed_gives_the_same_bits():
    X, problems = some_rows(), some_problems()
    assert bits(solve(X, problems, seed=3)) == bits(solve(X, problems, seed=3, n_jobs=2, lanes=5))
    assert bits(solve(X, problems, seed=3)) != bits(solve(X, problems, seed=4))


def test_entries_out_of_order_or_given_twice_count_as_their_sum_in_order():
    X = sp.csr_array(([1.0, 2.0, 3.0, 4.0], [2, 0, 2, 1], [0, 3, 4]), shape=(2, 3))
    tidy = sp.csr_array(X.toarray())
    problems = [Problem(np.array([0], np.int32), PAM(1))]
    assert bits(solve(X, problems)) == bits(solve(tidy, problems))
    assert X.indices.tolist() == [2, 0, 2, 1], "the caller's rows are left as they are"


def test_read_only_rows_and_labels_are_enough():
    X, problems = some_rows(), some_problems()
    expected = bits(solve(X, problems))
    for array in (X.data, X.indices, X.indptr):
        array.flags.writeable = False
    for problem in problems:
        problem.positives.flags.writeable = False
    assert bits(solve(X, problems)) == expected


# --- what is asked for besides ---
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_held_out_rows_get_the_scores_that_new_documents_would_get(dtype):
    X, problems = some_rows(dtype=dtype), some_problems()
    for problem, solution in zip(problems, solve(X, problems), strict=True):
        expected = X[problem.left_out] @ solution.weights + solution.bias
        scale = np.abs(solution.weights).max() + abs(solution.bias)
        np.testing.assert_allclose(solution.held_out, expected, rtol=1e-5, atol=1e-5 * scale)


@every("backend", ["threading", "loky"])
def test_without_the_weights_everything_else_is_kept(alone, backend):
    X, problems, expected = alone
    with joblib.parallel_config(backend=backend, max_nbytes=100):
        solutions = solve(X, problems, n_jobs=2, keep=nothing)
    assert all(solution.weights is None for solution in solutions)
    assert [solution[1:] for solution in bits(solutions)] == [solution[1:] for solution in expected]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_weights_are_written_where_the_caller_says(n_jobs):
    X, problems = some_rows(), some_problems()
    out = np.full((len(problems), X.shape[1]), np.nan)
    solutions = solve(X, problems, out=out, n_jobs=n_jobs)
    assert all(np.shares_memory(solution.weights, out) for solution in solutions)
    assert out.tobytes() == solve_weights(X, problems).tobytes()


def solve_weights(X, problems):
    return np.array([solution.weights for solution in solve(X, problems)])


@every("backend, n_jobs", [("threading", 1), ("threading", 2), ("loky", 1), ("loky", 2)])
def test_progress_counts_every_problem_once(backend, n_jobs):
    X, problems = some_rows(), some_problems()
    counted = []
    with joblib.parallel_config(backend=backend, max_nbytes=100):
        solve(X, problems, n_jobs=n_jobs, progress=counted.append)
    assert sum(counted) == len(problems)


def test_an_error_in_the_progress_callback_reaches_the_caller():
    def fail(n):
        raise RuntimeError("the bar is closed")

    with pytest.raises(RuntimeError, match="the bar is closed"):
        solve(some_rows(), some_problems(), n_jobs=2, progress=fail)


@every("name, shares", [("threading", True), ("loky", False), ("sequential", True)])
def test_joblib_tells_which_backend_is_chosen_and_whether_it_shares_memory(name, shares):
    with joblib.parallel_config(backend=name, n_jobs=2):
        backend, n_jobs = get_active_backend(prefer="threads")
    assert (getattr(backend, "supports_sharedmem", False), n_jobs) == (shares, 2)
    assert isinstance(backend, ThreadingBackend | SequentialBackend) == shares
    assert backend.effective_n_jobs(2) == (1 if name == "sequential" else 2)
    assert isinstance(get_active_backend(prefer="threads")[0], ThreadingBackend)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_numbers_beyond_the_number_type_are_reported_and_never_called_converged():
    for size, eta, dtype in (3e38, 1e30, np.float32), (1e30, 1, np.float32), (1e200, 1, np.float64):
        X = sp.csr_array(np.array([[size, 1.0], [size, -1.0]], dtype))
        (solution,) = solve(X, [Problem(np.array([0, 1], np.int32), PAUM(0, 1, eta=eta))])
        assert not solution.converged
        assert solution.stopped.startswith(f"overflowed {np.dtype(dtype)} in epoch ")


# --- warm start ---
@given(rows_and_labels(), PERCEPTRONS, st.sampled_from([0.0, 1.0]), st.sampled_from([0.0, 1.0, 2.0]), st.integers(1, 5))
def test_training_in_two_parts_makes_the_decisions_of_training_in_one(drawn, rule, lambda_, rho, pause):
    X, labels = drawn
    problem = Problem.from_labels(labels, rule, lambda_=lambda_, rho=rho, max_epochs=30)
    (whole,) = solve(X, [problem])
    (first,) = solve(X, [replace(problem, max_epochs=pause)])
    assume(not first.converged)
    (second,) = solve(X, [replace(problem, max_epochs=30 - pause, start=first)])
    assert second.n_updates == whole.n_updates
    assert first.n_epochs + second.n_epochs == whole.n_epochs
    assert second.weights.tobytes() == whole.weights.tobytes()
    assert second.bias == whole.bias
    assert second.support.tolist() == whole.support.tolist()
    assert second.alpha.tobytes() == whole.alpha.tobytes()


@every("dtype", [np.float32, np.float64])
@every("rule", [PA(), PAM(1, 0.5), PAUM(-1, 5), ROMMA(0.1)])
def test_a_converged_solution_makes_no_update_when_started_again(rule, dtype):
    X = some_rows(dtype=dtype)
    problem = Problem(np.arange(12, dtype=np.int32), rule, lambda_=1.0)
    (first,) = solve(X, [problem])
    assert first.converged
    assert first.n_updates > 0
    (second,) = solve(X, [replace(problem, start=first)])
    assert (second.n_updates, second.n_epochs) == (first.n_updates, 1)
    assert second.weights.tobytes() == first.weights.tobytes()
    assert second.bias == first.bias
    assert second.alpha.tobytes() == first.alpha.tobytes()


# --- odd shapes ---
@every("dtype", [np.float32, np.float64])
@every("shape", [(0, 0), (0, 5), (5, 0), (5, 5)])
def test_no_rows_no_features_and_empty_rows_are_problems_like_others(shape, dtype):
    X = sp.csr_array(shape, dtype=dtype)
    problem = Problem(np.arange(min(2, shape[0]), dtype=np.int32), PA(), lambda_=1.0)
    for solution in solve(X, [problem] * 20, n_jobs=2):
        assert solution.converged
        assert solution.weights.tolist() == [0] * shape[1]
        assert len(solution.support) == (5 if shape[0] else 0)


def test_a_row_without_coordinates_cannot_get_a_margin_and_is_given_up_after_the_last_epoch():
    X = sp.csr_array((3, 4))
    for rule in (PA(), ROMMA(0.1)):
        (solution,) = solve(X, [Problem(np.array([1], np.int32), rule, rho=0.0, max_epochs=7)])
        assert not solution.converged
        assert solution.n_updates == 3 * 7
        assert solution.weights.tolist() == [0] * 4


def test_no_problems_have_no_solutions():
    assert solve(some_rows(), []) == []


def test_problems_with_all_or_no_rows_left_out_or_positive_are_problems_like_others():
    X = some_rows()
    everything, nothing = np.arange(60, dtype=np.int32), np.empty(0, np.int32)
    left_out, positive, negative = solve(
        X, [Problem(positives, PA(), left_out=zeros, lambda_=1.0) for positives, zeros in
            [(everything, everything), (everything, nothing), (nothing, nothing)]],
    )  # fmt: skip
    assert (left_out.n_updates, left_out.n_epochs) == (0, 1)
    assert np.all(left_out.held_out == 0)
    assert np.all(X[positive.support] @ positive.weights + positive.bias + positive.alpha > 0)
    assert np.all(X[negative.support] @ negative.weights + negative.bias + negative.alpha < 0)


def test_every_second_element_of_an_array_is_an_array_like_others():
    X, rows = some_rows(), np.arange(60, dtype=np.int32)
    strided, copied = rows[::2], rows[::2].copy()
    assert bits(solve(X, [Problem(strided, PA())])) == bits(solve(X, [Problem(copied, PA())]))


@pytest.mark.parametrize("lanes", [0, N_LANES + 1])
def test_lanes_that_a_block_does_not_have_are_refused(lanes):
    with pytest.raises(ValueError, match=f"lanes must be from 1 to 16, got {lanes}"):
        solve(some_rows(), [], lanes=lanes)


@every("out", [np.empty((2, 40)), np.empty((1, 40), np.float32), np.empty((1, 80))[:, ::2]])
def test_an_out_that_does_not_fit_is_refused(out):
    with pytest.raises(ValueError, match="out must be C-contiguous float64 of shape"):
        solve(some_rows(), [Problem(np.array([1], np.int32), PA())], out=out)


def test_public_things_are_documented():
    for thing in (Block, Block.load, Block.run, Block.score, Block.unload, Block.warm, Problem, Solution, solve):
        assert thing.__doc__


# --- Ctrl-C ---
ENDLESS = """
from textcat.lean_imports import keep_imports_lean
keep_imports_lean()  # as the command does: it saves a second
import joblib, numpy as np, scipy.sparse as sp
from contextlib import suppress
from textcat.margin.rules import PA
from textcat.margin.problems import Problem
from textcat.margin.solve import solve

def train(backend, n_jobs):
    rng = np.random.default_rng(0)
    X = sp.random(2000, 500, 0.05, format="csr", random_state=0)
    labels = rng.choice([-1, 1], (40, 2000))
    with joblib.parallel_config(backend=backend, n_jobs=n_jobs):
        solve(X, [Problem.from_labels(row, PA(), max_epochs=1) for row in labels])  # the workers are up now
        print("started", flush=True)
        solve(X, [Problem.from_labels(row, PA(), max_epochs=10**9) for row in labels])

for n_jobs in (1, 2):
    with suppress(KeyboardInterrupt):
        train("threading", n_jobs)
train("loky", 2)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="system: Windows has no SIGINT for a single child")
def test_ctrl_c_ends_training_at_once_in_any_number_of_threads_or_processes():
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
            time.sleep(0.05)  # into the endless solve
            os.killpg(child.pid, signal.SIGINT)  # as the terminal does: to every process of the group
        _, errors = child.communicate(timeout=300)
        assert "KeyboardInterrupt" in errors
        assert child.returncode == -signal.SIGINT
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_are_the_rows_times_alpha_whether_features_are_common_or_rare(dtype):
    random = np.random.default_rng(3)
    common = sp.random_array((60, 8), density=0.5, rng=random)
    rare = sp.csc_array((np.ones(60), np.arange(60), np.arange(0, 61, 2)), shape=(60, 30))  # two rows have each
    X = sp.csr_array(sp.hstack([common, rare, rare[::-1]])).astype(dtype)
    held_out = np.arange(50, 60, dtype=np.int32)
    problem = Problem(np.arange(0, 60, 3, dtype=np.int32), PAUM(-0.5, 5.0), left_out=held_out, lambda_=0.5)
    [solution] = solve(X, [problem])
    assert solution.converged
    np.testing.assert_allclose(solution.weights, X[solution.support].T @ solution.alpha, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(solution.held_out, X[held_out] @ solution.weights + solution.bias, rtol=1e-4, atol=1e-4)
