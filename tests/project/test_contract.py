"""The contract of every learner, over every way to train it.

Each test runs over all learners, sparse and dense rows, float32 and float64, the primal and the dual form, with and
without private coordinates, with and without the active set: not over all their combinations, but, for every learner,
over each combination of two.
"""

from dataclasses import dataclass
from functools import cache
from itertools import combinations, product

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from cases import every

from textcat.margin.learners import LEARNERS
from textcat.margin.problems import Problem
from textcat.margin.rules import ALMA, CRAMMA, MICRA, PA, PAM, PAUM, PDM, ROMMA, RULES, LMargitron, TMargitron
from textcat.margin.solve import solve

# By the learner's name: its rule, and its naive twin.
TABLE = {
    "pa": (PA(0.5), naive.pa),
    "pam": (PAM(1.0, 0.5), naive.pam),
    "paum": (PAUM(-0.5, 3.0), naive.paum),
    "t-margitron": (TMargitron(0.5, 0.7), naive.t_margitron),
    "l-margitron": (LMargitron(0.5, 0.7), naive.l_margitron),
    "micra": (MICRA(1.0, 0.5, 0.1, 0.8), naive.micra),
    "cramma": (CRAMMA(0.1, 0.2, 0.5), naive.cramma),
    "alma": (ALMA(0.75), naive.alma),
    "romma": (ROMMA(0.3), naive.romma),
    "pdm": (PDM(0.4), naive.pdm),
}
LAYOUTS, DTYPES, FORMS = ("sparse", "dense"), (np.float32, np.float64), ("primal", "dual")
LAMBDAS, MINI_EPOCHS = (0.0, 1.0), (0, 3)
RHO, MAX_EPOCHS, N_ROWS, N_FEATURES = 0.8, 12, 24, 6
TOLERANCE = {np.float32: 5e-4, np.float64: 1e-8}


@dataclass(frozen=True)
class Task:
    """What is trained, whatever the number type and the form."""

    learner: str
    layout: str
    lambda_: float
    mini_epochs: int


@dataclass(frozen=True)
class Case:
    """A task, and how it is trained."""

    task: Task
    dtype: type
    form: str

    def __str__(self):
        task = self.task
        return f"{task.learner}-{task.layout}-{self.dtype.__name__}-{self.form}-{task.lambda_:g}-{task.mini_epochs}"


FACTORS = (LAYOUTS, LAMBDAS, MINI_EPOCHS, DTYPES, FORMS)


def pairs_of(choice):
    """The combinations of two in a choice of a level of each factor: places of the factors, and their levels."""
    return {((a, choice[a]), (b, choice[b])) for a, b in combinations(range(len(choice)), 2)}


def covering_choices(turn):
    """Choose levels of the factors, always those with the most pairs that are not covered, until every pair is."""
    choices = [*product(*FACTORS)]
    choices = choices[turn % len(choices) :] + choices[: turn % len(choices)]  # other ones for every learner
    chosen, uncovered = [], set().union(*map(pairs_of, choices))
    while uncovered:
        chosen.append(max(choices, key=lambda choice: len(pairs_of(choice) & uncovered)))
        uncovered -= pairs_of(chosen[-1])
    return chosen


CASES = [
    Case(Task(learner, *choice[:3]), *choice[3:])
    for turn, learner in enumerate(TABLE)
    for choice in covering_choices(turn)
]
TASKS = [*dict.fromkeys(case.task for case in CASES)]
every_case = every("case", CASES)


def test_the_cases_have_every_pair_of_levels_for_every_learner():
    every_pair = set().union(*map(pairs_of, product(*FACTORS)))
    assert len(every_pair) == 40
    for learner in LEARNERS:
        tasks = [(case.task, case) for case in CASES if case.task.learner == learner]
        choices = [(task.layout, task.lambda_, task.mini_epochs, case.dtype, case.form) for task, case in tasks]
        assert set().union(*map(pairs_of, choices)) == every_pair
    assert len(set(CASES)) == len(CASES)


def test_the_table_has_every_rule_and_every_learner():
    assert {type(rule) for rule, _ in TABLE.values()} == set(RULES.values())
    assert set(TABLE) == set(LEARNERS)


# --- the rows, and labels for which rounding decides nothing ---


@cache
def rows(layout):
    """Return rows that float32 holds exactly, as a dense array: half of the entries are zero, or none."""
    random = np.random.default_rng(LAYOUTS.index(layout))
    X = random.normal(size=(N_ROWS, N_FEATURES))
    if layout == "sparse":
        X *= random.random(X.shape) < 0.5
    return X.astype(np.float32).astype(np.float64)


def run_naive(X, labels, task):
    """Run the naive twin of a task; returns its vector, the number of epochs, and whether it converged."""
    rule, twin = TABLE[task.learner]
    listed = [[(feature, float(value)) for feature, value in enumerate(row) if value] for row in X]
    a = naive.Vector(listed, N_FEATURES, RHO, task.lambda_)
    step = twin(**rule.parameters)
    return a, *naive.train(a, labels.tolist(), range(len(X)), MAX_EPOCHS, step, task.mini_epochs)


@cache
def labels_of(task):
    """Draw labels, two rows left out, with which the twin makes the same updates where its rows are disturbed a bit."""
    X = rows(task.layout)
    for seed in range(100):
        random = np.random.default_rng(seed)
        labels = np.sign(X @ random.normal(size=N_FEATURES) + 0.1).astype(int)
        labels[random.choice(N_ROWS, 2, replace=False)] = 0
        disturbed = [X * (1 + 1e-4 * random.normal(size=X.shape)) for _ in range(2)]
        first, *others = ([row for row, *_ in run_naive(Z, labels, task)[0].updates] for Z in (X, *disturbed))
        if len(set(labels)) == 3 and len(first) >= 8 and all(first == other for other in others):
            return labels
    raise AssertionError(f"no labels for {task}")


@cache
def expected(task):
    """Run the naive twin; returns its vector, the number of epochs, and whether it converged."""
    return run_naive(rows(task.layout), labels_of(task), task)


# --- training ---


def as_given(layout, dtype, form, kept=slice(None)):
    """Return the rows as they are given to `solve`: an array where a kernel is to be computed of dense ones."""
    X = rows(layout)[kept].astype(dtype)
    return X if (layout, form) == ("dense", "dual") else sp.csr_array(X)


def problem_of(task):
    rule, _ = TABLE[task.learner]
    settings = {"lambda_": task.lambda_, "rho": RHO, "max_epochs": MAX_EPOCHS, "mini_epochs": task.mini_epochs}
    return Problem.from_labels(labels_of(task), rule, **settings)


def train(tasks, dtype, form, **settings):
    kernel = {"kernel": "linear"} if form == "dual" else {}
    X = as_given(tasks[0].layout, dtype, form)
    return solve(X, [problem_of(task) for task in tasks], margins=True, **kernel, **settings)


@cache
def together(layout, dtype, form, n_jobs):
    """Train all tasks over the same rows at once; returns what came of each."""
    tasks = [task for task in TASKS if task.layout == layout]
    return dict(zip(tasks, train(tasks, dtype, form, n_jobs=n_jobs), strict=True))


def solution_of(case):
    return together(case.task.layout, case.dtype, case.form, 1)[case.task]


def bits(solution):
    """Everything that came of a problem, to the bit."""
    return (
        None if solution.weights is None else solution.weights.tobytes(), solution.bias.tobytes(),
        solution.support.tobytes(), solution.alpha.tobytes(), solution.held_out.tobytes(), solution.n_updates,
        solution.n_epochs, solution.converged, solution.stopped, solution.directional_margin, solution.margin,
        solution.certificate,
    )  # fmt: skip


# --- the contract ---


@every_case
def test_the_updates_are_those_of_the_naive_twin(case):
    solution, (a, n_epochs, converged) = solution_of(case), expected(case.task)
    assert (solution.n_updates, solution.n_epochs, solution.converged) == (a.t, n_epochs, converged)
    assert solution.support.tolist() == [row for row, alpha in enumerate(a.alpha) if alpha != 0]
    close = {"rtol": TOLERANCE[case.dtype], "atol": TOLERANCE[case.dtype] * np.abs(a.alpha).max()}
    np.testing.assert_allclose(solution.alpha, [alpha for alpha in a.alpha if alpha != 0], **close)
    np.testing.assert_allclose(solution.bias, a.bias, **close)
    if case.form == "primal":
        assert solution.weights.dtype == case.dtype
        np.testing.assert_allclose(solution.weights, a.w, **close)
    else:
        assert solution.weights is None


@every_case
def test_left_out_rows_get_the_scores_that_new_ones_would_get(case):
    solution, (a, *_) = solution_of(case), expected(case.task)
    scores = (rows(case.task.layout) @ a.w + a.bias)[labels_of(case.task) == 0]
    np.testing.assert_allclose(solution.held_out, scores, rtol=TOLERANCE[case.dtype], atol=10 * TOLERANCE[case.dtype])


@every_case
def test_the_margins_and_the_certificate_are_those_computed_by_hand(case):
    solution, (a, *_) = solution_of(case), expected(case.task)
    by_hand = naive.margins(a, labels_of(case.task).tolist())
    found = solution.directional_margin, solution.margin, solution.certificate
    np.testing.assert_allclose(found, by_hand, rtol=TOLERANCE[case.dtype], atol=2 * TOLERANCE[case.dtype])


@every_case
def test_the_bits_are_those_of_the_problem_alone_with_one_job_or_two(case):
    (alone,) = train([case.task], case.dtype, case.form, lanes=1, n_jobs=1)
    assert bits(alone) == bits(solution_of(case))
    assert bits(alone) == bits(together(case.task.layout, case.dtype, case.form, 2)[case.task])


@every_case
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_estimator_learns_and_predicts_what_the_naive_twin_does(case):
    task, labels = case.task, labels_of(case.task)
    kept = labels != 0
    X = rows(task.layout)[kept].astype(case.dtype)
    X = sp.csr_array(X) if task.layout == "sparse" else X
    a, *_ = run_naive(rows(task.layout)[kept], labels[kept], task)
    rule, _ = TABLE[task.learner]
    learner = LEARNERS[task.learner](
        **rule.parameters, lambda_=task.lambda_, rho=RHO, max_epochs=MAX_EPOCHS, mini_epochs=task.mini_epochs,
        kernel="linear" if case.form == "dual" else None,
    ).fit(X, labels[kept])  # fmt: skip
    assert learner.n_updates_.tolist() == [a.t]
    scores = rows(task.layout)[kept] @ a.w + a.bias
    close = {"rtol": TOLERANCE[case.dtype], "atol": TOLERANCE[case.dtype] * np.abs(a.alpha).max() * 10}
    np.testing.assert_allclose(learner.decision_function(X), scores, **close)
    decided = np.abs(scores) > 10 * close["atol"]
    assert learner.predict(X)[decided].tolist() == np.sign(scores[decided]).tolist()
