"""The MICRA paper: updates that margins need (tables 1 to 4), and red-MICRA against LIBSVM (tables 5 to 8).

P. Tsampouka, J. Shawe-Taylor, Approximate maximum margin algorithms with rules controlled by the number of mistakes,
ICML 2007.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from textcat.margin.problems import Problem, Solution
from textcat.margin.rules import ALMA, MICRA, PAM, ROMMA, Rule
from textcat.margin.solve import solve
from textcat.papers import datasets
from textcat.papers.datasets import Dataset
from textcat.papers.experiments import (
    FACTS,
    PUBLISHED,
    Experiment,
    Figure,
    Row,
    Settings,
    Task,
    read_experiment,
    time_call,
)

HARD = 1e5  # C so large that the margin is hard
UNTIL_DONE = 2**31 - 1  # epochs; the longest run takes 25 million
SLOW_NOTE = "LIBSVM takes minutes on so many rows; --slow-baselines runs it."
LARGE = 5000  # with more rows, LIBSVM trains in its own process, which Ctrl-C can end
_PRINTED = PUBLISHED["micra"]

SUPERSCRIPT = {2: "²", 3: "³"}
TARGET = 8.19  # 10³γ'_d that Table 2's runs are to reach


class Setting(NamedTuple):
    """The data, parameters and units that all runs of a table share."""

    data: str
    rho: float
    lambda_: float
    power: int  # the paper prints 10**power times γ'_d, with 5 - power decimals
    eta: float = 0  # the next three are MICRA's
    epsilon: float = 0
    zeta: float = 0
    note: str = ""  # for rows whose number of updates differs in the paper, by {more}
    updates: str = "updates"  # title of the column of updates
    unit: float = 1  # the paper prints updates divided by this


class PrintedRun(NamedTuple):
    """A rule with its parameters, and the paper's figures for it: γ'_d times a power of ten, and updates."""

    label: str
    rule: Rule
    margin: float
    updates: float
    digits: int = 0  # decimals of the updates

    def count(self, solution: Solution) -> int:
        """Return the number of updates as the paper counts: MICRA's start from the first row is not an update."""
        return solution.n_updates - isinstance(self.rule, MICRA)


SETTINGS = {number: Setting(**FACTS[f"micra-table-{number}"]["setting"]) for number in (1, 2, 3, 4)}


def largest_squared_length(X: sp.csr_array, rho: float = 0.0, lambda_: float = 0.0) -> float:
    """Return R², the largest squared length of a row, with rho² and lambda_ added for two further coordinates."""
    return float(X.multiply(X).sum(axis=1).max() + rho**2 + lambda_)


def printed_runs(setting: Setting, printed: Mapping[str, Any], R2: float) -> list[PrintedRun]:
    """Return the runs of table 1, 3 or 4, given the printed parameters, margins and updates.

    R2 is R², the largest squared length of a row: see `largest_squared_length`.
    """
    R = np.sqrt(R2)
    learners: dict[str, tuple[str, Callable[[float], Rule]]] = {
        "perceptron": ("perceptron, b/(ηR²)", lambda value: PAM(value * R2)),
        "agg_romma": ("agg-ROMMA, δ", ROMMA),
        "micra": ("MICRA, 10³β/R", lambda value: MICRA(setting.eta, 1e-3 * value * R, setting.epsilon, setting.zeta)),
    }
    return [
        PrintedRun(f"{label} = {value:g}", rule(value), *reached)
        for learner, (label, rule) in learners.items()
        for value, *reached in printed[learner]
    ]


def _target_runs(setting: Setting, printed: Mapping[str, Any], R2: float) -> list[PrintedRun]:
    """Return the runs of Table 2, given the printed parameters and updates.

    The parameters were chosen so that all runs reach the same margin, `TARGET`. R2 is R², the largest squared length of
    a row: see `largest_squared_length`.
    """
    runs, alpha = [], printed["alma2"]["alpha"]
    for (epsilon, zeta, eta, updates), beta in zip(printed["micra"], printed["beta"], strict=True):
        label = f"MICRA, ε = {epsilon:g}, ζ = {zeta:g}, η = {eta:g}, 10³β/R = {beta:g}"
        runs.append(PrintedRun(label, MICRA(eta, 1e-3 * beta * np.sqrt(R2), epsilon, zeta), TARGET, updates, 2))
    return [*runs, PrintedRun(f"ALMA₂, α = {alpha:g}", ALMA(alpha), TARGET, printed["alma2"]["updates"], 1)]


def solutions_of(
    data: Dataset, runs: Sequence[PrintedRun], n_jobs: int, rho: float = 1.0, lambda_: float = 0.0
) -> list[Solution]:
    """Train all runs, and return their solutions in the order of the runs.

    Runs with the most printed updates start first, to even out the work.
    """
    longest_first = sorted(runs, key=lambda run: -run.updates)
    problems = [
        Problem.from_labels(data.y, run.rule, rho=rho, lambda_=lambda_, max_epochs=UNTIL_DONE) for run in longest_first
    ]
    # Few runs of very different lengths take less time one after another than in lanes side by side.
    solutions = solve(data.X, problems, n_jobs=n_jobs, margins=True, lanes=1)
    return [solutions[longest_first.index(run)] for run in runs]


def update_rows(data: Dataset, setting: Setting, printed: Mapping[str, Any], n_jobs: int) -> list[Row]:
    """Return the rows of one of tables 1 to 4: our margins and updates next to the printed ones."""
    runs_of = _target_runs if "alma2" in printed else printed_runs
    runs = runs_of(setting, printed, largest_squared_length(data.X, setting.rho, setting.lambda_))
    rows = []
    for run, solution in zip(runs, solutions_of(data, runs, n_jobs, setting.rho, setting.lambda_), strict=True):
        count = run.count(solution)
        difference = run.updates - count
        margin = 10**setting.power * solution.directional_margin
        figures = {
            f"10{SUPERSCRIPT[setting.power]}γ'_d": Figure(margin, run.margin, 5 - setting.power),
            setting.updates: Figure(count / setting.unit if setting.unit > 1 else count, run.updates, run.digits),
        }
        rows.append(Row(run.label, figures, note=setting.note.format(more=f"{difference:+g}") if difference else ""))
    return rows


def _updates_table(number: int) -> Experiment:
    setting, printed = SETTINGS[number], _PRINTED[f"table{number}"]
    run = Task("updates", lambda settings: update_rows(datasets.load(setting.data), setting, printed, settings.n_jobs))
    return read_experiment(f"micra-table-{number}", [setting.data], run)


EPSILON, ZETA = 0.05, 0.9
MEMORY = 400  # MB of kernel rows that LIBSVM may keep, m in the paper
ACCURACY = 1e-3
SLOW = 10_000  # with more rows, LIBSVM takes minutes


class RedMicraSetting(NamedTuple):
    """A row of tables 5 to 8: a data set, the parameters of red-MICRA, and the figures that the paper prints."""

    label: str
    data: str
    delta: float  # size of the private coordinate
    rho: float  # size of the augmented coordinate
    eta: float
    mini_epochs: int  # N in the paper
    beta: float  # in multiples of R
    svm: float  # published geometric margin of the support vector machine, in the table's unit
    margin: float  # published geometric margin of red-MICRA, in the same unit


def decimals(margin: float) -> int:
    """Return the number of decimals with which the papers print a margin."""
    return 3 if margin >= 10 else 4


def train_once(data: Dataset, rule: Rule, rho: float, lambda_: float, mini_epochs: int) -> tuple[Solution, float]:
    """Train on rows in the order of the file; return the solution, and the seconds of training.

    After each epoch, the rows that caused updates (the active set) are presented at most `mini_epochs` times again.
    """
    problem = Problem.from_labels(
        data.y, rule, rho=rho, lambda_=lambda_, mini_epochs=mini_epochs, max_epochs=UNTIL_DONE
    )
    (solution,), seconds = time_call(lambda: solve(data.X, [problem], margins=True, n_jobs=1))
    return solution, seconds


def _train(data: Dataset, setting: RedMicraSetting) -> tuple[Solution, float]:
    """Train red-MICRA; return the solution, and the seconds of training.

    If training takes less than 1 s, the seconds are the least of three runs.
    """
    lambda_ = setting.delta**2
    rule = MICRA(
        setting.eta, setting.beta * np.sqrt(largest_squared_length(data.X, setting.rho, lambda_)), EPSILON, ZETA
    )
    run = partial(train_once, data, rule, setting.rho, lambda_, setting.mini_epochs)
    solution, seconds = run()
    return solution, seconds if seconds >= 1 else min(seconds, run()[1], run()[1])


def margin_row(data: Dataset, setting: RedMicraSetting, *, slow_baselines: bool) -> Row:
    """Return a row with the margin and the time of red-MICRA and of LIBSVM.

    If LIBSVM would take minutes, it is only run if `slow_baselines` is True.
    """
    solution, seconds = _train(data, setting)
    ours, digits = 100 * solution.margin, decimals(setting.margin)
    svm, svm_seconds, note = None, None, SLOW_NOTE
    if len(data.y) <= SLOW or slow_baselines:
        margin, svm_seconds = libsvm_margin(data.X, data.y, setting.delta, ACCURACY, MEMORY)
        svm, note = 100 * margin, ""
    figures = {
        "LIBSVM 10²γ'": Figure(svm, setting.svm, digits),
        "red-MICRA 10²γ'": Figure(ours, setting.margin, digits),
        "% of LIBSVM's": Figure(100 * ours / svm if svm else None, 100 * setting.margin / setting.svm, 2),
        "LIBSVM s": Figure(svm_seconds, digits=3),
        "red-MICRA s": Figure(seconds, digits=3),
        "times as fast": Figure(svm_seconds / seconds if svm_seconds else None, digits=2),
    }
    return Row(setting.label, figures, note=note)


def large_row(data: Dataset, setting: RedMicraSetting) -> Row:
    """Return a row with the margin of red-MICRA, and the published margin of SVMlight, which we do not run."""
    solution, seconds = _train(data, setting)
    digits = decimals(setting.margin)
    figures = {
        "SVMlight 10³γ'": Figure(None, setting.svm, digits),
        "red-MICRA 10³γ'": Figure(1e3 * solution.margin, setting.margin, digits),
    }
    return Row(setting.label, figures, seconds)


def red_micra_settings(table: int) -> list[RedMicraSetting]:
    """Return the settings of the rows of one of tables 5 to 8."""
    printed = _PRINTED[f"table{table}"]
    return [
        row._replace(beta=printed["unit"] * row.beta) for row in itertools.starmap(RedMicraSetting, printed["rows"])
    ]


def _rows_of_setting(setting: RedMicraSetting, settings: Settings) -> list[Row]:
    data = datasets.load(setting.data)
    large = setting.data == "covertype"
    return [large_row(data, setting) if large else margin_row(data, setting, slow_baselines=settings.slow_baselines)]


def _margins_table(number: int) -> Experiment:
    tasks = [Task(setting.label, partial(_rows_of_setting, setting)) for setting in red_micra_settings(number)]
    return read_experiment(f"micra-table-{number}", [setting.data for setting in red_micra_settings(number)], *tasks)


EXPERIMENTS = (*map(_updates_table, (1, 2, 3, 4)), *map(_margins_table, (5, 6, 7, 8)))


class Plane(NamedTuple):
    """The plane of LIBSVM, its margin ``min y f(x)/‖w‖``, and a proven upper bound on the margin of any plane."""

    weights: np.ndarray
    bias: float
    margin: float
    proven: float


def libsvm_plane(X: sp.csr_array, y: np.ndarray, tol: float = 1e-5, C: float = 1e10, cache_mb: float = 500) -> Plane:
    """Train LIBSVM, and return its plane; C = 1e10 leaves no slack to rows that can be separated.

    LIBSVM's coefficients give an upper bound on the margin: twice the largest margin is the distance between the
    classes' convex hulls, so no margin is above ``‖Σ alpha_i x_i‖ / Σ|alpha_i|`` if ``Σ alpha_i = 0``. (A solution's
    certificate is its margin divided by the same bound, for planes through the origin.)
    """
    from sklearn.svm import SVC

    # SVC takes no 64-bit indices.
    rows = sp.csr_array((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)
    machine = SVC(kernel="linear", C=C, tol=tol, cache_size=cache_mb).fit(rows, y)
    w, b = machine.coef_.toarray().ravel(), float(machine.intercept_[0])
    length = float(np.linalg.norm(w))
    return Plane(w, b, float(np.min(y * (X @ w + b))) / length, length / float(np.abs(machine.dual_coef_).sum()))


def libsvm_margin(
    X: sp.csr_array, y: np.ndarray, delta: float = 0.0, tol: float = 1e-3, cache_mb: float = 2000
) -> tuple[float, float]:
    """Train LIBSVM with C = 1e5; return the geometric margin, and the seconds of training.

    Each row gets a private coordinate Δ (`delta`), which makes any rows separable; 0: none.
    """
    if delta:
        X = sp.csr_array(sp.hstack([X, delta * sp.identity(X.shape[0], format="csr")], format="csr"))
    call = (libsvm_plane, X, y, tol, HARD, cache_mb)
    plane, seconds = time_call(*call) if X.shape[0] <= LARGE else in_own_process(time_call, *call)
    return plane.margin, seconds


def in_own_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in its own process, which Ctrl-C ends at once; LIBSVM ignores signals while it trains."""
    from joblib import Parallel, delayed

    return Parallel(n_jobs=2, backend="loky")([delayed(function)(*arguments)])[0]  # with n_jobs=1 it would be this one
