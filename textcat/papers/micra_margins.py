"""The MICRA paper's tables 5 to 8: red-MICRA against LIBSVM, the margins reached and the seconds it takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from textcat.margin.problems import Problem, Solution
from textcat.margin.rules import MICRA
from textcat.margin.solve import solve
from textcat.papers import datasets
from textcat.papers.baselines import libsvm_margin
from textcat.papers.datasets import Dataset
from textcat.papers.experiment import Experiment, Figure, Row, Settings, Task
from textcat.papers.micra_updates import UNTIL_DONE, squared_radius
from textcat.papers.published import published

EPSILON, ZETA = 0.05, 0.9
MEMORY = 400  # MB of kernel rows that LIBSVM may keep, m in the paper
ACCURACY = 1e-3
SLOW = 10_000  # rows, above which LIBSVM takes minutes
_SLOW_NOTE = "LIBSVM takes minutes on so many rows; --slow-baselines runs it."
SUBSETS = {"adult": 32561, "web": 49749}  # rows of the whole sets


@dataclass(frozen=True)
class Case:
    """A row of the tables: a data set, the parameters of red-MICRA, and what the paper prints.

    Parameters
    ----------
    label, data : str
    delta, rho : float
        Sizes of the private and of the augmented coordinate.
    eta : float
    mini_epochs : int
        N in the paper.
    beta : float
        In multiples of R.
    svm, margin : float
        Published geometric margins of the support vector machine and of red-MICRA, in the table's unit.
    """

    label: str
    data: str
    delta: float
    rho: float
    eta: float
    mini_epochs: int
    beta: float
    svm: float
    margin: float

    @property
    def digits(self) -> int:
        """Decimals of the published margins."""
        return 3 if self.margin >= 10 else 4


def train(data: Dataset, case: Case) -> tuple[Solution, float]:
    """Train red-MICRA, three times where that takes less than a second.

    Returns
    -------
    solution : Solution
    seconds : float
        The least, measuring of the margin included.
    """
    lambda_ = case.delta**2
    beta = case.beta * np.sqrt(squared_radius(data.X, case.rho, lambda_))
    rule = MICRA(case.eta, beta, EPSILON, ZETA)
    settings = {"rho": case.rho, "lambda_": lambda_, "mini_epochs": case.mini_epochs, "max_epochs": UNTIL_DONE}
    problem = Problem.from_labels(data.y, rule, **settings)
    seconds: list[float] = []
    while not seconds or (len(seconds) < 3 and seconds[0] < 1):
        started = time.perf_counter()
        (solution,) = solve(data.X, [problem], margins=True)
        seconds.append(time.perf_counter() - started)
    return solution, min(seconds)


def margin_row(data: Dataset, case: Case, *, slow_baselines: bool) -> Row:
    """Set the margins of red-MICRA and LIBSVM beside the published ones, and tell their times.

    LIBSVM runs on more than 10,000 rows only where slow baselines are asked for.
    """
    solution, seconds = train(data, case)
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


def large_row(data: Dataset, case: Case) -> Row:
    """Set the margin of red-MICRA beside the published one; SVMlight is not at hand."""
    solution, seconds = train(data, case)
    figures = {
        "SVMlight 10³γ'": Figure(None, case.svm, case.digits),
        "red-MICRA 10³γ'": Figure(1e3 * solution.margin, case.margin, case.digits),
    }
    return Row(case.label, figures, seconds)


def cases(table: int) -> list[Case]:
    """Return the rows of a table as the paper prints them."""
    printed = published()["micra"][f"table{table}"]
    if table == 5:
        return [
            Case(name, name.lower(), delta, rho, eta, n, 1e-5 * beta, svm, margin)
            for name, (delta, svm, rho, eta, n, beta, margin) in printed.items()
        ]
    if table == 8:
        return [
            Case(f"{size} rows", "covertype", 10, 2, eta, n, 1e-5 * beta, svm, margin)
            for size, svm, eta, n, beta, margin in printed["rows"]
        ]
    name, rho = {6: ("adult", 0.0), 7: ("web", 0.25)}[table]
    return [
        Case(
            f"{size} rows",
            name if size == SUBSETS[name] else f"{name}-{size}",
            1,
            rho,
            eta,
            n,
            1e-2 * beta,
            svm,
            margin,
        )
        for size, svm, eta, n, beta, margin in printed["rows"]
    ]


# --- the experiments -------------------------------------------------------------------------------------------------


def _row(case: Case, settings: Settings) -> list[Row]:
    return [margin_row(datasets.load(case.data), case, slow_baselines=settings.slow_baselines)]


def _large(case: Case, settings: Settings) -> list[Row]:
    return [large_row(datasets.load(case.data), case)]


def _table(number: int, title: str, minutes: float, text: str, run: Callable = _row) -> Experiment:
    rows = cases(number)
    tasks = tuple(Task(case.label, partial(run, case)) for case in rows)
    title = f"MICRA paper, Table {number}: {title}"
    return Experiment(f"micra-table-{number}", title, tuple(case.data for case in rows), minutes, tasks, text)


_COMPARED = f"""red-MICRA is MICRA with ε = {EPSILON}, ζ = {ZETA} and an active set, with the η, β/R, N and ρ that the
paper prints. γ' is the geometric margin, private coordinates included. The paper asks that red-MICRA's be above 99 % of
the one that LIBSVM reaches with accuracy {ACCURACY:g}, C = 10⁵ and {MEMORY} MB for kernel rows, which is how LIBSVM
(scikit-learn's SVC) runs here. Times are those of one core, without reading; red-MICRA's below a second are the best
of three. The paper's times are those of a LIBSVM of its day on a 1.8 GHz Pentium M"""

TABLE_5 = _table(
    5,
    "red-MICRA against LIBSVM on seven sets of UCI",
    0.2,
    f"""{_COMPARED}.

Sets are coded as the paper says, rows in the order of their files. It tells neither that order nor which values the
125 columns of mushroom stand for; here, all that the set's description gives. The margin that is reached hangs on the
last digits of the parameters, too: on tic-tac-toe, values of β that round to the printed one end anywhere between
10.186 and 10.199, and the printed one at the lower end of that, just short of 99 %. The paper's time of sonar is that
of the dual form; here it is trained on rows as all others are.""",
)
TABLE_6 = _table(
    6,
    "red-MICRA against LIBSVM on Platt's subsets of Adult, Δ = 1, ρ = 0",
    0.2,
    f"""{_COMPARED}: on the whole set, 3902 s for LIBSVM and 75.0 s for red-MICRA, a factor of 52.

On the whole set the printed β ends with 98.9996 % of LIBSVM's margin; 0.4923 · 10⁻² R, which rounds to it, ends with
99.012 %.""",
)
TABLE_7 = _table(
    7,
    "red-MICRA against LIBSVM on Platt's subsets of Web, Δ = 1, ρ = 0.25",
    0.1,
    f"""{_COMPARED}: on the whole set, 725 s for LIBSVM and 18.3 s for red-MICRA, a factor of 40.""",
)
TABLE_8 = _table(
    8,
    "red-MICRA on Covertype, the first class against all others, Δ = 10, ρ = 2",
    10,
    f"""red-MICRA is MICRA with ε = {EPSILON}, ζ = {ZETA} and an active set; attributes are multiplied by .001. The
paper compares with SVMlight of accuracy .01, which took 47,988 s where red-MICRA took 4728 s. It is not run
here.""",
    _large,
)
EXPERIMENTS = (TABLE_5, TABLE_6, TABLE_7, TABLE_8)
