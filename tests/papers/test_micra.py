"""The MICRA paper's experiments: their parts on small data, and the figures of its tables where the data is at hand."""

import numpy as np
import pytest
import scipy.sparse as sp

from textcat.margin.problems import Problem
from textcat.margin.rules import ALMA, MICRA, PAM, ROMMA
from textcat.margin.solve import solve
from textcat.papers import datasets, micra
from textcat.papers.datasets import Dataset, MissingData
from textcat.papers.experiments import PUBLISHED, Figure, Settings
from textcat.papers.micra import PrintedRun, RedMicraSetting, Setting

PRINTED = PUBLISHED["micra"]
SHORT = 720_000  # updates, about half a second


def load(name):
    if sentence := datasets.missing(name):
        pytest.skip(f"data: {sentence}")
    return datasets.load(name)


@pytest.fixture(scope="module")
def clouds():
    """Two clouds of 20 rows each that a plane separates."""
    random = np.random.default_rng(0)
    y = np.repeat([1, -1], 20)
    return Dataset("clouds", sp.csr_array(random.normal(size=(40, 3)) + 3 * y[:, None]), y.astype(np.int8))


@pytest.fixture
def case():
    return RedMicraSetting(
        "clouds", "clouds", delta=1, rho=0.5, eta=5, mini_epochs=5, beta=0.05, svm=200.0, margin=190.0
    )


# --- tables 1 to 4 ---------------------------------------------------------------------------------------------------


def test_the_radius_counts_augmented_and_private_coordinates():
    assert micra.largest_squared_length(sp.csr_array([[3.0, 4.0], [1.0, 0.0]]), rho=2, lambda_=0.5) == 29.5


def test_runs_are_the_papers_rules_in_the_order_of_the_table():
    setting = Setting("sonar", rho=1, lambda_=0, power=3, eta=50, epsilon=0.05, zeta=0.9)
    runs = micra.printed_runs(setting, PRINTED["table1"], R2=4.0)
    assert len(runs) == 12
    assert runs[0] == PrintedRun("perceptron, b/(ηR²) = 3.9", PAM(3.9 * 4), 7.27, 820261)
    assert runs[4] == PrintedRun("agg-ROMMA, δ = 0.2", ROMMA(0.2), 7.28, 778412)
    assert runs[11] == PrintedRun("MICRA, 10³β/R = 4.95", MICRA(50, 4.95e-3 * 2, 0.05, 0.9), 8.37, 11610899)


def test_each_run_keeps_its_own_solution_whatever_the_order_of_training(clouds):
    runs = [PrintedRun("", PAM(1), 0, 5), PrintedRun("", ROMMA(0.1), 0, 7), PrintedRun("", MICRA(1, 0.1), 0, 6)]
    found = micra.solutions_of(clouds, runs, n_jobs=2, rho=2, lambda_=0.5)
    for run, solution in zip(runs, found, strict=True):
        (alone,) = solve(clouds.X, [Problem.from_labels(clouds.y, run.rule, rho=2, lambda_=0.5)], margins=True)
        assert (solution.n_updates, solution.directional_margin) == (alone.n_updates, alone.directional_margin)


def test_the_row_that_starts_micra_is_not_counted(clouds):
    for rule, fewer in ((MICRA(1, 5), 1), (PAM(1), 0), (ALMA(0.5), 0)):
        run = PrintedRun("", rule, 0, 0)
        (solution,) = micra.solutions_of(clouds, [run], n_jobs=1)
        assert run.count(solution) == solution.n_updates - fewer > 0


def test_only_rows_that_are_not_the_papers_have_a_note(clouds):
    setting = Setting("clouds", rho=1, lambda_=0, power=2, eta=1, epsilon=0.05, zeta=0.9, note="Why not.")
    (solution,) = solve(clouds.X, [Problem.from_labels(clouds.y, ROMMA(0.1))], margins=True)
    updates, margin = solution.n_updates, solution.directional_margin
    printed = {"perceptron": [], "agg_romma": [[0.1, 0, updates], [0.1, 0, updates + 1]], "micra": []}
    rows = micra.update_rows(clouds, setting, printed, n_jobs=1)
    assert [row.note for row in rows] == ["", "Why not."]
    assert rows[1].figures["updates"] == Figure(updates, updates + 1)
    assert rows[0].figures["10²γ'_d"] == Figure(100 * margin, 0, 3)


@pytest.mark.parametrize("table", [1, 3, 4])
def test_short_runs_make_the_papers_updates_and_reach_its_margins(table):
    setting = micra.SETTINGS[table]
    data = load(setting.data)
    short = {learner: [row for row in rows if row[-1] < SHORT] for learner, rows in PRINTED[f"table{table}"].items()}
    rows = micra.update_rows(data, setting, short, n_jobs=2)
    assert len(rows) == sum(map(len, short.values())) > 1
    for row in rows:
        perceptron_on_wbc = table == 4 and row.label.startswith("perceptron")
        assert row.figures["updates"].published - row.figures["updates"].ours == (1 if perceptron_on_wbc else 0)
        margin = row.figures[f"10{micra.SUPERSCRIPT[setting.power]}γ'_d"]
        assert f"{margin.ours:.{margin.digits}f}" == f"{margin.published:.{margin.digits}f}"


def test_table_2_has_a_beta_for_every_row_and_meets_the_papers_updates():
    data, printed = load("sonar"), PRINTED["table2"]
    assert len(printed["beta"]) == len(printed["micra"])
    first = {"micra": printed["micra"][:1], "beta": printed["beta"][:1], "alma2": {"alpha": 0.9, "updates": 0}}
    rows = micra.update_rows(data, micra.SETTINGS[2], first, n_jobs=2)
    assert rows[0].figures["10³γ'_d"].ours == pytest.approx(8.19, abs=0.005)
    assert rows[0].figures["updates/10⁶"].ours == pytest.approx(1.53, abs=0.005)
    assert rows[1].label == "ALMA₂, α = 0.9"


# --- tables 5 to 8 ---------------------------------------------------------------------------------------------------


def test_margins_are_geometric_ones_of_the_extended_space(clouds, case):
    row = micra.margin_row(clouds, case, slow_baselines=False)
    R = np.sqrt((clouds.X.toarray() ** 2).sum(axis=1).max() + 0.5**2 + 1)
    problem = Problem.from_labels(clouds.y, MICRA(5, 0.05 * R, 0.05, 0.9), rho=0.5, lambda_=1, mini_epochs=5)
    (solution,) = solve(clouds.X, [problem], margins=True)
    assert row.figures["red-MICRA 10²γ'"] == Figure(100 * solution.margin, 190.0, 3)
    assert row.figures["LIBSVM 10²γ'"].ours >= 0.999 * row.figures["red-MICRA 10²γ'"].ours
    assert row.figures["% of LIBSVM's"].published == 95
    assert row.figures["times as fast"].ours == pytest.approx(
        row.figures["LIBSVM s"].ours / row.figures["red-MICRA s"].ours
    )


@pytest.mark.parametrize("slow_baselines", [False, True])
def test_libsvm_runs_on_many_rows_only_where_it_is_asked_for(clouds, case, monkeypatch, slow_baselines):
    calls = []
    monkeypatch.setattr(micra, "SLOW", 39)
    monkeypatch.setattr(micra, "libsvm_margin", lambda *setting: calls.append(setting[2:]) or (2.0, 3.0))
    row = micra.margin_row(clouds, case, slow_baselines=slow_baselines)
    assert calls == ([(1, 1e-3, 400)] if slow_baselines else [])
    assert row.figures["LIBSVM 10²γ'"] == Figure(200.0 if slow_baselines else None, 200.0, 3)
    assert row.figures["LIBSVM s"].ours == (3.0 if slow_baselines else None)
    assert ("--slow-baselines" in row.note) is not slow_baselines


def test_cases_are_the_papers_rows_on_data_sets_that_exist():
    found = {table: micra.red_micra_settings(table) for table in (5, 6, 7, 8)}
    assert [len(rows) for rows in found.values()] == [7, 6, 5, 1]
    assert {case.data for rows in found.values() for case in rows} <= set(datasets.DATASET_SOURCES)
    assert found[6][-1] == RedMicraSetting("32561 rows", "adult", 1, 0, 105, 600, 0.492e-2, 0.8526, 0.8441)
    assert found[8][0].beta == pytest.approx(336e-5)


@pytest.mark.parametrize("table", [6, 7, 8])
def test_an_absent_data_set_is_missing_data(monkeypatch, tmp_path, table):
    monkeypatch.setattr(datasets, "folders", lambda: [tmp_path])
    for task in micra.EXPERIMENTS[table - 1].tasks:
        with pytest.raises(MissingData):
            task.run(Settings())


def test_the_large_set_is_run_without_a_machine(clouds, case):
    row = micra.large_row(clouds, case)
    assert row.figures["SVMlight 10³γ'"] == Figure(None, 200.0, 3)
    assert row.figures["red-MICRA 10³γ'"].ours > 0
    assert row.seconds > 0


SMALL = [*micra.red_micra_settings(5)[1:6], micra.red_micra_settings(6)[0], micra.red_micra_settings(7)[0]]


@pytest.mark.parametrize("case", SMALL, ids=[case.data for case in SMALL])
def test_margins_are_the_papers(case):
    row = micra.margin_row(load(case.data), case, slow_baselines=False)
    libsvm, ours = row.figures["LIBSVM 10²γ'"], row.figures["red-MICRA 10²γ'"]
    assert libsvm.ours == pytest.approx(libsvm.published, rel=5e-4)
    assert ours.ours == pytest.approx(ours.published, rel=2e-3)


def test_every_table_is_an_experiment():
    assert [experiment.name for experiment in micra.EXPERIMENTS] == [f"micra-table-{number}" for number in range(1, 9)]


def test_libsvm_finds_the_margin_of_two_points():
    rows, labels = sp.csr_array(np.array([[1.0, 0.0], [4.0, 4.0]])), np.array([-1, 1])
    margin, seconds = micra.libsvm_margin(rows, labels)
    assert margin == pytest.approx(2.5)
    assert seconds > 0
    # The private coordinates stand at right angles to all others: the points move apart by Δ√2.
    assert micra.libsvm_margin(rows, labels, delta=3.0)[0] == pytest.approx(np.sqrt(25 + 18) / 2)


def test_a_large_svm_is_trained_apart_with_the_same_answer(monkeypatch):
    rows, labels = sp.csr_array(np.array([[1.0, 0.0], [4.0, 4.0], [0.0, 1.0]])), np.array([-1, 1, -1])
    here = micra.libsvm_margin(rows, labels, 1.0)[0]
    monkeypatch.setattr(micra, "LARGE", 2)
    assert micra.libsvm_margin(rows, labels, 1.0)[0] == here
