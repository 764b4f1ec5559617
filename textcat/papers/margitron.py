"""The margitron paper's tables 1, 3 and 4: margins reached, proven fractions of the largest margin, and two stages."""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from textcat.margin.problems import Solution
from textcat.margin.rules import PAM, LMargitron, Rule, TMargitron
from textcat.papers import datasets
from textcat.papers.datasets import Dataset
from textcat.papers.experiments import FACTS, PUBLISHED, Experiment, Figure, Row, Settings, Task, read_experiment
from textcat.papers.micra import SLOW_NOTE, decimals, largest_squared_length, libsvm_margin, train_once

FIRST_B = 5  # b/R² of Table 4's first stage
SECOND_EPSILON = 0.1  # ε of Table 4's second stage
STAGES_MINI_EPOCHS = 50  # of both stages of Table 4, on every data set
SCALE = 1.099  # c in `second_stage_b`


class MargitronSetting(NamedTuple):
    """A data set of the paper, and the parameters of its runs; the pages of results say how these were found."""

    label: str
    data: str
    delta: float  # size of the private coordinate
    rho: float  # size of the augmented coordinate
    mini_epochs: int  # N of tables 1 and 3
    t_epsilon: float
    t_b: float  # in multiples of R²
    l_epsilon: float
    l_b: float  # in multiples of R^(1+ε)
    note: str = ""  # for readers, on the parameters

    def squared_radius(self, data: Dataset) -> float:
        """Return R², the largest squared length of a row with two further coordinates.

        These are ρ, the constant coordinate of the bias, and δ, a coordinate that each row has for itself alone.
        """
        return largest_squared_length(data.X, self.rho, self.delta**2)

    def rules(self, R2: float) -> tuple[TMargitron, LMargitron]:
        """Return the rules of tables 1 and 3, the t-margitron and the ℓ-margitron, given R²."""
        l_b = self.l_b * R2 ** ((1 + self.l_epsilon) / 2)
        return TMargitron(self.t_epsilon, self.t_b * R2), LMargitron(self.l_epsilon, l_b)


SETTINGS = [MargitronSetting(*setting) for setting in FACTS["margitron"]["settings"]]


def t_estimate(rule: TMargitron, n_updates: int, R2: float) -> float:
    """Return a lower bound on the fraction of the largest directional margin that a run of the t-margitron reached.

    It is ``(1 - ε/2) / (1 + (1 - ε/2)(R²/b)·t^-(1-ε))``, equation 9, where t is the number of updates. It does not
    depend on the margin that was reached.
    """
    limit = 1 - rule.epsilon / 2
    return float(limit / (1 + limit * R2 / rule.b * n_updates ** -(1 - rule.epsilon)))


def l_estimate(rule: LMargitron, n_updates: int, R2: float, margin: float) -> float:
    """Return a lower bound like `t_estimate` for the ℓ-margitron with ε ≤ 1 that reached the directional margin γ'_d.

    An update takes ``‖a‖^(1+ε)`` to at most ``‖a‖^(1+ε) + (1+ε)(b + R²/2·‖a‖^-(1-ε))``. As ``‖a‖ ≤ Rn`` after n
    updates, and ``‖a‖ ≥ γ_d·k ≥ γ'_d·k`` after every k updates, ``‖a‖^(1+ε)`` after the last update is at most

    ``(1+ε)·b·t·D`` with ``D = 1 - n/t + (Rn)^(1+ε)/((1+ε)·b·t) + R²/(2b·γ'_d^(1-ε))·S/t`` and
    ``S = (t^ε - n^ε)/ε + n^-(1-ε)``, which is at least the sum of ``k^-(1-ε)`` from n to t-1.

    So ``γ'_d/γ_d ≥ b·t/‖a‖^(1+ε) ≥ 1/((1+ε)·D)`` for every n; the n with the largest bound is used (equation 21).
    """
    epsilon, b = rule.epsilon, rule.b
    n = np.unique(np.geomspace(1, n_updates, 2000).round())
    S = (n_updates**epsilon - n**epsilon) / epsilon + n ** -(1 - epsilon)
    start = (np.sqrt(R2) * n) ** (1 + epsilon) / ((1 + epsilon) * b) - n
    D = 1 + (start + R2 / (2 * b * margin ** (1 - epsilon)) * S) / n_updates
    return float(1 / ((1 + epsilon) * D.min()))


def upper_bound(tau: float, n_updates: int, R2: float) -> float:
    """Return an upper bound on the directional margin of rows on which PAM(τ) made `n_updates` updates.

    It follows from ``γ_d·t ≤ ‖a‖`` and ``‖a‖² ≤ (R² + 2τ)t``.
    """
    return float(np.sqrt((R2 + 2 * tau) / n_updates))


def second_stage_b(bound: float, R2: float) -> float:
    """Return b of Table 4's second stage: ``b = c·R^(2ε)·γ_d^(1-ε)``, where c is `SCALE` and ε is `SECOND_EPSILON`.

    `R2` is R², and `bound` is the first stage's upper bound on the directional margin; it takes the place of γ_d.
    """
    return float(SCALE * R2**SECOND_EPSILON * bound ** (1 - SECOND_EPSILON))


class _Run(NamedTuple):
    """A run: a rule, its solution, the seconds that training and measuring margins took, and R²."""

    rule: Rule
    solution: Solution
    seconds: float
    R2: float

    @property
    def estimate(self) -> float:
        """The paper's after-run estimate of the fraction of γ_d that was reached."""
        if isinstance(self.rule, TMargitron):
            return t_estimate(self.rule, self.solution.n_updates, self.R2)
        assert isinstance(self.rule, LMargitron), "only the margitrons have an estimate"
        return l_estimate(self.rule, self.solution.n_updates, self.R2, self.solution.directional_margin)


load = cache(datasets.load)


def train_run(data: Dataset, setting: MargitronSetting, rule: Rule, mini_epochs: int) -> _Run:
    """Train a rule on a data set as for the paper's tables, and return the run.

    After each epoch, the rows that caused updates (the active set) are presented at most `mini_epochs` times again.
    """
    return _Run(rule, *train_once(data, rule, setting.rho, setting.delta**2, mini_epochs), setting.squared_radius(data))


@cache
def margitrons(setting: MargitronSetting) -> tuple[_Run, _Run]:
    """Train by the t-margitron and the ℓ-margitron on a data set, and return both runs.

    The runs are cached, so that tables 1 and 3 share them.
    """
    data = load(setting.data)
    of_t, of_l = (
        train_run(data, setting, rule, setting.mini_epochs) for rule in setting.rules(setting.squared_radius(data))
    )
    return of_t, of_l


def comparison_row(setting: MargitronSetting, printed: Sequence[float], *, slow_baselines: bool) -> Row:
    """Return a data set's row of Table 1, with geometric margins and times of both margitrons and of LIBSVM.

    `printed` has the directional margins of Table 3, because Table 1 is lost; they equal the geometric ones if there is
    no bias. LIBSVM is only run if `slow_baselines` is True.
    """
    of_t, of_l = margitrons(setting)
    data, notes = load(setting.data), [setting.note, "" if slow_baselines else SLOW_NOTE]
    svm, svm_seconds = libsvm_margin(data.X, data.y, setting.delta) if slow_baselines else (None, None)
    digits = decimals(printed[0])
    figures = {"LIBSVM 10³γ'": Figure(svm and 1e3 * svm, digits=digits), "LIBSVM s": Figure(svm_seconds, digits=1)}
    for name, run, directional in (("t-margitron", of_t, printed[0]), ("ℓ-margitron", of_l, printed[3])):
        # Table 1 itself is lost; but without a bias the geometric margin is the directional one.
        published = directional if setting.rho == 0 else None
        figures[f"{name} 10³γ'"] = Figure(1e3 * run.solution.margin, published, digits)
        figures[f"{name} s"] = Figure(run.seconds, digits=1)
    return Row(setting.label, figures, note=" ".join(filter(None, notes)))


def fraction_rows(setting: MargitronSetting, printed: Sequence[float]) -> list[Row]:
    """Return a data set's rows of Table 3: directional margins, and the proven fractions of the largest margin."""
    of_t, of_l = margitrons(setting)
    t_label = f"t-margitron, ε = {setting.t_epsilon:g}, b = {setting.t_b:g}·R²"
    l_label = f"ℓ-margitron, ε = {setting.l_epsilon:g}, b = {setting.l_b:g}·R^(1+ε)"
    rows = []
    for run, label, our_limit, (margin, estimate, limit), note in (
        (of_t, t_label, 1 - setting.t_epsilon / 2, printed[:3], setting.note),
        (of_l, l_label, 1 / (1 + setting.l_epsilon), printed[3:6], ""),
    ):
        figures = {
            "10³γ'_d": Figure(1e3 * run.solution.directional_margin, margin, decimals(margin)),
            "estimate": Figure(run.estimate, estimate, 4),
            "its limit": Figure(our_limit, limit, 4),
            "certificate": Figure(run.solution.certificate, digits=4),
            "updates": Figure(run.solution.n_updates),
        }
        rows.append(Row(f"{setting.label}, {label}", figures, run.seconds, note))
    return rows


def stage_rows(data: Dataset, setting: MargitronSetting, printed: Sequence[float]) -> list[Row]:
    """Return a data set's rows of Table 4, an experiment of two stages.

    The first stage is the perceptron with margin. Its upper bound of the margin determines b of the second stage, the
    ℓ-margitron, which is run with the printed b, and with the b from our own first stage.
    """
    lower, upper, printed_b, margin, estimate, geometric = printed
    R2 = setting.squared_radius(data)
    unit = R2 ** ((1 + SECOND_EPSILON) / 2) / 1e5
    first = train_run(data, setting, PAM(FIRST_B * R2), STAGES_MINI_EPOCHS)
    bound = upper_bound(FIRST_B * R2, first.solution.n_updates, R2)
    b = second_stage_b(bound, R2)
    figures = {
        "first 10³γ'_d": Figure(1e3 * first.solution.directional_margin, lower, decimals(lower)),
        "10³γ_d at most": Figure(1e3 * bound, upper, decimals(upper)),
        "10⁵b/R^(1+ε)": Figure(b / unit, printed_b),
    }
    rows = [Row(f"{setting.label}, ε = 1", figures, first.seconds, setting.note)]
    for which, second_b in (("the printed b", printed_b * unit), ("our b", b)):
        run = train_run(data, setting, LMargitron(SECOND_EPSILON, second_b), STAGES_MINI_EPOCHS)
        figures = {
            "second 10³γ'_d": Figure(1e3 * run.solution.directional_margin, margin, decimals(margin)),
            "estimate": Figure(run.estimate, estimate, 3),
            "second 10³γ'": Figure(1e3 * run.solution.margin, geometric, decimals(geometric)),
            "certificate": Figure(run.solution.certificate, digits=3),
        }
        rows.append(Row(f"{setting.label}, ε = {SECOND_EPSILON:g}, {which}", figures, run.seconds))
    return rows


def _table(number: int, rows: Callable[[MargitronSetting, Any, Settings], list[Row]]) -> Experiment:
    printed = PUBLISHED["margitron"]["table4" if number == 4 else "table3"]
    tasks = [Task(setting.label, partial(rows, setting, printed[setting.label])) for setting in SETTINGS]
    return read_experiment(f"margitron-table-{number}", [setting.data for setting in SETTINGS], *tasks)


EXPERIMENTS = (
    _table(
        1, lambda setting, printed, settings: [comparison_row(setting, printed, slow_baselines=settings.slow_baselines)]
    ),
    _table(3, lambda setting, printed, settings: fraction_rows(setting, printed)),
    _table(4, lambda setting, printed, settings: stage_rows(load(setting.data), setting, printed)),
)
