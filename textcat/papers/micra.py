"""The MICRA paper: updates that margins need (tables 1 to 4), and red-MICRA against LIBSVM (tables 5 to 8).

P. Tsampouka, J. Shawe-Taylor, Approximate maximum margin algorithms with rules controlled by the number of mistakes,
ICML 2007.
"""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp

from textcat.margin.problems import Problem, Solution
from textcat.margin.rules import ALMA, MICRA, PAM, ROMMA, Rule
from textcat.margin.solve import solve
from textcat.papers import datasets
from textcat.papers.datasets import _Dataset
from textcat.papers.experiments import Experiment, Figure, Row, Settings, Task, described, published

HARD = 1e5  # C so large that the margin is hard
_LARGE = 5000  # rows that LIBSVM trains on in a moment

Answer = TypeVar("Answer")

# --- tables 1 to 4: updates for margins ------------------------------------------------------------------------------

SUPERSCRIPT = {2: "²", 3: "³"}
UNTIL_DONE = 2**31 - 1  # epochs; the longest run takes 25 million

# 10³β/R of Table 2's rows by ε and ζ, which the paper does not give: found from its γ'_d and its updates.
BETA = {
    (0.005, 0.99): 2.306,
    (0.05, 0.9): 4.42,
    (0.1, 0.8): 9.30,
    (0.15, 0.7): 20.0,
    (0.2, 0.6): 43.9,
    (0.2, 0.5): 44.3,
    (0.5, 0.5): 5900,
}
TARGET = 8.19  # 10³γ'_d that Table 2's runs are to reach


class _Setting(NamedTuple):
    """What the runs of a table share."""

    data: str
    rho: float
    lambda_: float
    power: int  # the paper prints 10**power times γ'_d, and of that 5 - power decimals
    eta: float  # the next three are MICRA's
    epsilon: float
    zeta: float
    note: str = ""  # of rows that have {more} updates in the paper


class _Run(NamedTuple):
    """A learner with its parameters, and what the paper prints of it: γ'_d times a power of ten, and updates."""

    label: str
    rule: Rule
    margin: float
    updates: float

    def count(self, solution: Solution) -> int:
        """Return the updates as the paper counts them: without the first row, from which MICRA starts."""
        return solution.n_updates - isinstance(self.rule, MICRA)


def _squared_radius(X: sp.csr_array, rho: float, lambda_: float) -> float:
    """Return R², the largest squared length of a row with its augmented and private coordinates."""
    return float(X.multiply(X).sum(axis=1).max() + rho**2 + lambda_)


def _runs_of(setting: _Setting, printed: Mapping[str, Any], R2: float) -> list[_Run]:
    """Return the runs of table 1, 3 or 4 from what the paper prints: parameter, margin, updates."""
    R = np.sqrt(R2)
    learners: dict[str, tuple[str, Callable[[float], Rule]]] = {
        "perceptron": ("perceptron, b/(ηR²)", lambda value: PAM(value * R2)),
        "agg_romma": ("agg-ROMMA, δ", ROMMA),
        "micra": ("MICRA, 10³β/R", lambda value: MICRA(setting.eta, 1e-3 * value * R, setting.epsilon, setting.zeta)),
    }
    runs = []
    for learner, (label, rule) in learners.items():
        runs += [_Run(f"{label} = {value:g}", rule(value), *reached) for value, *reached in printed[learner]]
    return runs


def _solutions_of(
    data: _Dataset, runs: Sequence[_Run], n_jobs: int, rho: float = 1.0, lambda_: float = 0.0
) -> list[Solution]:
    """Train the runs, those of most updates first: one that is started last would be waited for."""
    longest_first = sorted(range(len(runs)), key=lambda k: -runs[k].updates)
    problems = [
        Problem.from_labels(data.y, runs[k].rule, rho=rho, lambda_=lambda_, max_epochs=UNTIL_DONE)
        for k in longest_first
    ]
    # So few runs, of such different lengths, are done sooner one after another than in lanes side by side.
    solutions = solve(data.X, problems, n_jobs=n_jobs, margins=True, lanes=1)
    solution_of = dict(zip(longest_first, solutions, strict=True))
    return [solution_of[k] for k in range(len(runs))]


def _update_rows(data: _Dataset, setting: _Setting, printed: Mapping[str, Any], n_jobs: int) -> list[Row]:
    """Return margins and updates as tables 1, 3 and 4 print them beside ours."""
    runs = _runs_of(setting, printed, _squared_radius(data.X, setting.rho, setting.lambda_))
    rows = []
    for run, solution in zip(runs, _solutions_of(data, runs, n_jobs, setting.rho, setting.lambda_), strict=True):
        updates = Figure(run.count(solution), run.updates)
        margin = Figure(10**setting.power * solution.directional_margin, run.margin, 5 - setting.power)
        more = run.updates - run.count(solution)
        note = setting.note.format(more=f"{more:+g}") if more else ""
        rows.append(Row(run.label, {f"10{SUPERSCRIPT[setting.power]}γ'_d": margin, "updates": updates}, note=note))
    return rows


def _target_rows(data: _Dataset, printed: Mapping[str, Any], n_jobs: int) -> list[Row]:
    """Return the millions of updates of Table 2 beside ours."""
    R = np.sqrt(_squared_radius(data.X, 1, 0))
    alpha = printed["alma2"]["alpha"]
    runs = []
    for epsilon, zeta, eta, updates in printed["micra"]:
        beta = BETA[epsilon, zeta]
        label = f"MICRA, ε = {epsilon:g}, ζ = {zeta:g}, η = {eta:g}, 10³β/R = {beta:g}"
        runs.append(_Run(label, MICRA(eta, 1e-3 * beta * R, epsilon, zeta), TARGET, updates))
    runs.append(_Run(f"ALMA₂, α = {alpha:g}", ALMA(alpha), TARGET, printed["alma2"]["updates"]))
    rows = []
    for run, solution in zip(runs, _solutions_of(data, runs, n_jobs), strict=True):
        digits = 2 if isinstance(run.rule, MICRA) else 1
        figures = {
            "10³γ'_d": Figure(1e3 * solution.directional_margin, run.margin, 2),
            "updates/10⁶": Figure(run.count(solution) / 1e6, run.updates, digits),
        }
        rows.append(Row(run.label, figures))
    return rows


_ROUNDING = (
    "The paper counts {more} updates: rounding, and with it the order of summation, decides single ones of so many."
)
_WHOLE = "The paper counts {more} updates, though the sums are of whole numbers, and nothing is rounded."

SETTINGS = {
    1: _Setting("sonar", rho=1, lambda_=0, power=3, eta=50, epsilon=0.05, zeta=0.9, note=_ROUNDING),
    3: _Setting("wbc-11", rho=30, lambda_=0, power=2, eta=2.3, epsilon=0.1, zeta=0.8, note=_ROUNDING),
    4: _Setting("wbc", rho=10, lambda_=1, power=2, eta=20, epsilon=0.05, zeta=0.9, note=_WHOLE),
}


def _updates_table(number: int) -> Experiment:
    setting, printed = SETTINGS[number], published()["micra"][f"table{number}"]
    run = Task("updates", lambda settings: _update_rows(datasets.load(setting.data), setting, printed, settings.n_jobs))
    return described(f"micra-table-{number}", (setting.data,), run)


def _target(settings: Settings) -> list[Row]:
    return _target_rows(datasets.load("sonar"), published()["micra"]["table2"], settings.n_jobs)


# --- tables 5 to 8: red-MICRA against LIBSVM ------------------------------------------------------------------------

EPSILON, ZETA = 0.05, 0.9
MEMORY = 400  # MB of kernel rows that LIBSVM may keep, m in the paper
ACCURACY = 1e-3
SLOW = 10_000  # rows, above which LIBSVM takes minutes
_SLOW_NOTE = "LIBSVM takes minutes on so many rows; --slow-baselines runs it."
WHOLE = {"adult": 32561, "web": 49749, "covertype": 581012}  # rows of the whole sets


class _Case(NamedTuple):
    """A row of the tables: a data set, the parameters of red-MICRA, and what the paper prints."""

    label: str
    data: str
    delta: float  # size of the private coordinate
    rho: float  # size of the augmented coordinate
    eta: float
    mini_epochs: int  # N in the paper
    beta: float  # in multiples of R
    svm: float  # published geometric margin of the support vector machine, in the table's unit
    margin: float  # that of red-MICRA

    @property
    def digits(self) -> int:
        """Decimals of the published margins."""
        return 3 if self.margin >= 10 else 4


def _train(data: _Dataset, case: _Case) -> tuple[Solution, float]:
    """Train red-MICRA, and return the seconds it takes; of three runs the least where one takes less than a second."""
    lambda_ = case.delta**2
    rule = MICRA(case.eta, case.beta * np.sqrt(_squared_radius(data.X, case.rho, lambda_)), EPSILON, ZETA)
    settings = {"rho": case.rho, "lambda_": lambda_, "mini_epochs": case.mini_epochs, "max_epochs": UNTIL_DONE}
    problem = Problem.from_labels(data.y, rule, **settings)
    seconds: list[float] = []
    while not seconds or (len(seconds) < 3 and seconds[0] < 1):
        started = time.perf_counter()
        (solution,) = solve(data.X, [problem], margins=True)
        seconds.append(time.perf_counter() - started)
    return solution, min(seconds)


def _margin_row(data: _Dataset, case: _Case, *, slow_baselines: bool) -> Row:
    """Return the margins of red-MICRA and LIBSVM, where that runs, beside the published ones, and their times."""
    solution, seconds = _train(data, case)
    ours = 100 * solution.margin
    svm, svm_seconds, note = None, None, _SLOW_NOTE
    if len(data.y) <= SLOW or slow_baselines:
        margin, svm_seconds = libsvm_margin(data.X, data.y, case.delta, ACCURACY, MEMORY)
        svm, note = 100 * margin, ""
    figures = {
        "LIBSVM 10²γ'": Figure(svm, case.svm, case.digits),
        "red-MICRA 10²γ'": Figure(ours, case.margin, case.digits),
        "% of LIBSVM's": Figure(100 * ours / svm if svm else None, 100 * case.margin / case.svm, 2),
        "LIBSVM s": Figure(svm_seconds, digits=3),
        "red-MICRA s": Figure(seconds, digits=3),
        "times as fast": Figure(svm_seconds / seconds if svm_seconds else None, digits=2),
    }
    return Row(case.label, figures, note=note)


def _large_row(data: _Dataset, case: _Case) -> Row:
    """Return the margin of red-MICRA beside the published one; SVMlight is not at hand."""
    solution, seconds = _train(data, case)
    figures = {
        "SVMlight 10³γ'": Figure(None, case.svm, case.digits),
        "red-MICRA 10³γ'": Figure(1e3 * solution.margin, case.margin, case.digits),
    }
    return Row(case.label, figures, seconds)


def cases(table: int) -> list[_Case]:
    """Return the rows of a table as the paper prints them."""
    printed = published()["micra"][f"table{table}"]
    if table == 5:
        return [
            _Case(name, name.lower(), delta, rho, eta, n, 1e-5 * beta, svm, margin)
            for name, (delta, svm, rho, eta, n, beta, margin) in printed.items()
        ]
    name, delta, rho, unit = {6: ("adult", 1, 0.0, 1e-2), 7: ("web", 1, 0.25, 1e-2), 8: ("covertype", 10, 2, 1e-5)}[
        table
    ]
    return [
        _Case(
            f"{size} rows", f"{name}-{size}" if size < WHOLE[name] else name, delta, rho, eta, n, unit * beta, *margins
        )
        for size, svm, eta, n, beta, margin in printed["rows"]
        for margins in [(svm, margin)]
    ]


def _case_row(case: _Case, settings: Settings) -> list[Row]:
    data = datasets.load(case.data)
    if case.data == "covertype":
        return [_large_row(data, case)]
    return [_margin_row(data, case, slow_baselines=settings.slow_baselines)]


def _margins_table(number: int) -> Experiment:
    tasks = [Task(case.label, partial(_case_row, case)) for case in cases(number)]
    return described(f"micra-table-{number}", tuple(case.data for case in cases(number)), *tasks)


EXPERIMENTS = (
    _updates_table(1),
    described("micra-table-2", ("sonar",), Task("updates", _target)),
    _updates_table(3),
    _updates_table(4),
    *(_margins_table(number) for number in (5, 6, 7, 8)),
)


# --- LIBSVM, which the MICRA and the margitron paper compare with -----------------------------------------------------


def libsvm_margin(
    X: sp.csr_array, y: np.ndarray, delta: float = 0.0, tol: float = 1e-3, cache_mb: float = 2000
) -> tuple[float, float]:
    """Train LIBSVM with a linear kernel and C = 1e5, and measure its margin.

    Parameters
    ----------
    X : csr_array of shape (n_rows, n_features), float64
    y : ndarray of shape (n_rows,)
        +1 or -1.
    delta : float >= 0
        Every row is extended by a private coordinate of this size, Δ.
    tol : float
        LIBSVM's accuracy, ε in the paper.
    cache_mb : float
        Memory for kernel rows.

    Returns
    -------
    margin : float
        Geometric, ``min y f(x)/‖w‖``, in the extended space.
    seconds : float
        What the training took.
    """
    setting = (_extended(X, delta), y, tol, cache_mb)
    return _train_libsvm(*setting) if X.shape[0] <= _LARGE else apart(_train_libsvm, *setting)


def _train_libsvm(rows: sp.csr_array, y: np.ndarray, tol: float, cache_mb: float) -> tuple[float, float]:
    from sklearn.svm import SVC

    machine = SVC(kernel="linear", C=HARD, tol=tol, cache_size=cache_mb)
    started = time.perf_counter()
    machine.fit(rows, y)
    seconds = time.perf_counter() - started
    weights = machine.coef_.toarray().ravel()
    return float(np.min(y * (rows @ weights + machine.intercept_[0])) / np.linalg.norm(weights)), seconds


def apart(function: Callable[..., Answer], *arguments: Any) -> Answer:
    """Call a function in a process of its own, which Ctrl-C ends at once: a library that trains looks at no signal.

    Parameters
    ----------
    function : callable
        Of a module.
    *arguments
        Picklable, as what the function returns.

    Returns
    -------
    object
        What the function returns.
    """
    # A new process that starts from nothing (spawn) knows nothing of our threads and locks; and no pool, whose locks a
    # worker that is ended may take with it.
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send_result, args=(sender, function, arguments), daemon=True)
    process.start()
    sender.close()  # the process has its own: when that ends, so does the pipe
    try:
        succeeded, result = receiver.recv()
    except EOFError:
        raise RuntimeError(f"The process that was to call {function.__name__} ended before it.") from None
    finally:
        process.kill()
        process.join()
    if not succeeded:
        raise result
    return result


def _send_result(sender: Any, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        sender.send((True, function(*arguments)))
    except Exception as error:
        sender.send((False, error))


def _extended(X: sp.csr_array, delta: float) -> sp.csr_array:
    """Return the rows with a private coordinate of size `delta` each, for solvers that know no λ."""
    if delta == 0:
        return X
    rows = np.arange(X.shape[0] + 1, dtype=np.int32)  # scikit-learn takes no 64-bit indices
    private = sp.csr_array((np.full(X.shape[0], delta), rows[:-1], rows))
    return sp.csr_array(sp.hstack([X, private], format="csr"))
