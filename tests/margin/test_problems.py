"""Problems say what does not fit, solutions why they ended, and packed weights are the weights."""

from dataclasses import replace

import joblib
import numpy as np
import pytest
from cases import every
from solved_problems import some_rows

from textcat.margin import learners
from textcat.margin.problems import PackedWeights, Problem
from textcat.margin.rules import PA, PAM, PAUM
from textcat.margin.solve import nothing, solve


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_what_is_kept_of_the_weights_is_what_a_function_makes_of_them(alone, backend):
    X, problems, _ = alone
    with joblib.parallel_config(backend=backend, max_nbytes=100):
        packed = solve(X, problems, n_jobs=2, keep=PackedWeights.of, margins=True)
        scored = solve(X, problems, n_jobs=2, keep=X[:5].dot)
    whole = solve(X, problems, margins=True)
    assert [np.asarray(solution.weights).tobytes() for solution in packed] == [s.weights.tobytes() for s in whole]
    assert [solution.margin for solution in packed] == [solution.margin for solution in whole]
    assert [solution.weights.tolist() for solution in scored] == [(X[:5] @ s.weights).tolist() for s in whole]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_packed_weights_are_the_weights_to_the_bit(dtype):
    weights = np.array([0, -0.0, 1e-30, np.nan, -np.inf, 0, 3], dtype)
    packed = PackedWeights.of(weights)
    assert (packed.shape, packed.dtype, packed.features.tolist()) == ((7,), dtype, [1, 2, 3, 4, 6])
    assert np.asarray(packed).tobytes() == weights.tobytes()


class MyRule(PAUM):
    def __init__(self):
        """Keep the family's own from checking."""


@every("rule", [learners.PAUM(1, 5), MyRule(), PAUM, "paum", None])
def test_what_is_not_a_rule_is_refused(rule):
    with pytest.raises(TypeError, match=r"rule must be a rule of textcat.margin.rules, such as rules.PAUM\(.* got a "):
        Problem(np.array([0], np.int32), rule)


def test_a_problem_and_a_solution_are_printed_in_a_line():
    problem = Problem(np.arange(9, dtype=np.int32), PAUM(-1, 5), left_out=np.arange(10, 13, dtype=np.int32))
    limits = "lambda_=0, rho=1, max_epochs=1000"
    assert repr(problem) == f"Problem(PAUM(tau_neg=-1.0, tau_pos=5.0, eta=1.0), 9 positives, 3 left out, {limits})"
    (solution,) = solve(some_rows(), [problem])
    assert repr(solution).startswith(f"Solution({solution.n_updates} updates, {len(solution.support)} support rows; ")
    assert repr(solution).endswith(f"; {solution.stopped})")


def test_a_problem_that_ran_out_of_epochs_says_so_in_words():
    X, problems = some_rows(), [Problem(np.array([0], np.int32), PAM(5), max_epochs=n) for n in (2, 10**6)]
    short, whole = solve(X, [replace(problem, lambda_=1.0) for problem in problems])
    assert not short.converged
    assert short.stopped.startswith("did not converge: ")
    assert short.stopped.endswith(" updates in epoch 2, the last one allowed")
    assert whole.converged
    assert whole.stopped == f"converged: no update in epoch {whole.n_epochs}"


def test_a_start_from_other_rows_features_or_number_type_is_refused():
    X = some_rows()
    problem = Problem(np.arange(12, dtype=np.int32), PAM(1), lambda_=1.0)
    (start,) = solve(X, [problem])
    (bare,) = solve(X, [problem], keep=nothing)
    message = "the start of problem 1 must be a solution with weights, in "
    for rows, wrong in [
        (X[:5], start), (X[:, :30], start), (X.astype(np.float32), start), (X, bare),
        (X, replace(start, alpha=start.alpha[1:])),
    ]:  # fmt: skip
        fresh = Problem(np.arange(3, dtype=np.int32), PAM(1))
        with pytest.raises(ValueError, match=message):
            solve(rows, [fresh, replace(fresh, start=wrong)])


@every(
    "changes, said",
    [
        ({"positives": np.array([60], np.int32)}, "positives of problem 0 must be int32 row numbers from 0 to 59"),
        ({"positives": np.array([-1], np.int32)}, "positives of problem 0"),
        ({"positives": np.array([[1]], np.int32)}, "positives of problem 0"),
        ({"left_out": np.array([1])}, "left_out of problem 0 must be int32"),
        ({"lambda_": -1.0}, "lambda_=-1"),
        ({"lambda_": np.nan}, "lambda_=nan"),
        ({"rho": np.inf}, "rho=inf"),
        ({"max_epochs": 0}, "max_epochs=0"),
        ({"tol": -0.1}, "tol=-0.1"),
        ({"tol": 1.0}, "tol=1"),
    ],
)
def test_a_problem_that_does_not_fit_is_refused_with_its_number(changes, said):
    problem = Problem(np.array([1], np.int32), PA())
    with pytest.raises(ValueError, match=said):
        solve(some_rows(), [replace(problem, **changes)])
