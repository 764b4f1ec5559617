"""The lecture notes: the toy table by hand, learning counted one document after another, bounds that hold."""

import numpy as np
import pytest
import scipy.sparse as sp

from textcat.margin.problems import Problem
from textcat.margin.rules import PDM
from textcat.margin.solve import solve
from textcat.papers import datasets, notes
from textcat.papers.experiments import Settings
from textcat.papers.paum import CorpusVectors

SETTINGS = Settings(n_jobs=1)


def by_label(rows):
    return {row.label: {name: figure.ours for name, figure in row.figures.items()} for row in rows}


# --- the toy table ---


def test_the_given_classifier_has_the_scores_that_the_notes_add_up():
    rows = by_label(notes.printed_figure_rows(SETTINGS))
    assert rows["given (w, b), D1"]["f(x)"] == 2 * 1 + 3 * 2 - 1 * 0 - 3 * 0 - 1 * 2 - 1 * 0 + 0 * 2 + 1 == 7
    assert rows["given (w, b), D2"]["f(x)"] == 2 * 0 + 3 * 0 - 1 * 0 - 3 * 3 - 1 * 0 - 1 * 1 + 0 * 1 + 1 == -9
    assert rows["given (w, b), all"]["margin"] == 5 / 5, "D4 has f(x) = -5, and ‖w‖ = 5"


def test_both_classifiers_have_all_four_documents_right():
    for row in notes.printed_figure_rows(SETTINGS) + notes.learnt_rows(SETTINGS):
        if "y" in row.figures:
            assert row.figures["y"].ours == row.figures["y"].published


def test_the_perceptron_learns_the_toy_table_as_by_hand_and_within_its_bound():
    rows = notes.learnt_rows(SETTINGS)
    # D1 is no better than 0 and gives w = D1, b = 14; D2 is then above 0 and is taken away; all are right.
    found = by_label(rows)
    w = notes.COUNTS[0] - notes.COUNTS[1]
    assert [found[f"perceptron, D{k}"]["f(x)"] for k in (1, 2, 3, 4)] == (notes.COUNTS @ w).tolist()
    assert [found[f"perceptron, D{k}"]["α"] for k in (1, 2, 3, 4)] == [1, 1, 0, 0]
    assert found["perceptron, all"]["mistakes"] == 2
    assert found["perceptron, all"]["bound"] == pytest.approx(4 * 14 / 1**2)
    assert "w = (1, 2, 0, -3, 2, -1, 1), b = 0" in rows[-1].note


# --- learning a topic ---


@pytest.fixture(scope="module")
def made_up():
    """Vectors of unit length, of which one topic out of two is nearly separable."""
    random = np.random.default_rng(4)
    parts = []
    for n_rows in (300, 80):
        X = random.random((n_rows, 20)) * (random.random((n_rows, 20)) < 0.3) + 0.01
        labels = sp.csc_matrix(np.column_stack([np.zeros(n_rows), X[:, 0] + X[:, 1] > 0.4]))
        parts.append((sp.csr_matrix(X / np.linalg.norm(X, axis=1, keepdims=True), dtype=np.float32), labels))
    (train, train_labels), (test, test_labels) = parts
    return CorpusVectors(("other", "acq"), train, test, train_labels, test_labels)


@pytest.fixture(scope="module")
def draws(made_up):
    return [notes.DrawnDocuments.of(made_up, "acq", seed, n_each=50) for seed in range(3)]


def perceptron(draw, n_presented):
    """Return (w, b) and the mistakes after so many presentations, one document after the other."""
    X, w, b, mistakes = draw.X.toarray(), np.zeros(20), 0.0, 0
    for k in range(n_presented):
        x, y = X[k % len(X)], draw.y[k % len(X)]
        if y * (x @ w + b) <= 0:
            w, b, mistakes = w + y * x, b + y * draw.R**2, mistakes + 1
    return w, b, mistakes


def test_a_draw_has_as_many_documents_with_the_topic_as_without_each_once(made_up, draws):
    for draw in draws:
        assert (np.sum(draw.y > 0), np.sum(draw.y < 0)) == (50, 50)
        assert len(np.unique(draw.X.toarray(), axis=0)) == 100
        assert draw.X_test.shape == (80, 20)
    assert np.any(draws[0].y != draws[1].y)
    assert np.array_equal(draws[0].y, notes.DrawnDocuments.of(made_up, "acq", 0, n_each=50).y)


def test_mistakes_while_learning_are_those_of_one_document_after_another(draws):
    for draw in draws:
        n_seen = [1, 2, 10, 55, 100]
        assert [solution.n_updates for solution in draw.solutions_after(n_seen, 1)] == [
            perceptron(draw, n)[2] for n in n_seen
        ]
        for n_epochs, solution in zip((1, 2, 5), draw.solutions_of_epochs((1, 2, 5), 1), strict=True):
            w, b, mistakes = perceptron(draw, 100 * n_epochs)
            assert solution.n_updates == mistakes
            np.testing.assert_allclose(np.append(solution.weights, solution.bias), np.append(w, b), atol=1e-9)


def test_errors_count_the_documents_on_the_wrong_side(draws):
    draw = draws[0]
    (((training, test),),) = notes.error_percentages([draw], [draw.solutions_of_epochs([1], 1)])
    w, b, _ = perceptron(draw, 100)
    assert training == pytest.approx(np.sum((draw.X @ w + b > 0) != (draw.y > 0)))
    assert test == pytest.approx(100 / 80 * np.sum((draw.X_test @ w + b > 0) != (draw.y_test > 0)))
    assert notes.error_percentage(draw.X, draw.y, np.zeros(20), 0.0) == 50, "f(x) = 0 counts as -1"


def test_the_rows_are_means_over_the_draws(draws, monkeypatch):
    monkeypatch.setattr(notes, "AFTER", (10, 40, 100))
    rows = by_label(notes.document_rows(draws, 1))
    assert list(rows) == ["after 10 documents", "after 40 documents", "after 100 documents"]
    mistakes = {n: np.mean([perceptron(draw, n)[2] for draw in draws]) for n in (10, 40, 100)}
    assert rows["after 40 documents"]["mistakes"] == pytest.approx(mistakes[40])
    assert rows["after 40 documents"]["% so far"] == pytest.approx(100 * mistakes[40] / 40)
    assert rows["after 100 documents"]["% since"] == pytest.approx(100 * (mistakes[100] - mistakes[40]) / 60)
    epochs = by_label(notes.epoch_rows(draws, 1))
    assert epochs["after 1 epoch"]["mistakes"] == pytest.approx(mistakes[100])
    assert epochs["after 1 epoch"]["% test"] == rows["after 100 documents"]["% test"]


@pytest.mark.parametrize("draw_picture", [notes.draw_learning, notes.draw_epochs])
def test_a_picture_is_the_same_to_the_byte_from_run_to_run(draw_picture, draws, tmp_path):
    pytest.importorskip("matplotlib")
    for name in ("first.svg", "second.svg"):
        draw_picture(tmp_path / name, draws, 1)
    first, second = ((tmp_path / name).read_bytes() for name in ("first.svg", "second.svg"))
    assert first == second
    assert b"<svg" in first
    assert b"documents" in first


def test_acq_of_reuters_is_learnt_as_the_page_says(reuters_archive):
    (task, _) = notes.EXPERIMENTS[1].tasks
    rows = by_label(task.run(SETTINGS))
    so_far = [rows[f"after {n} documents"]["% so far"] for n in notes.AFTER]
    assert so_far == sorted(so_far, reverse=True), "the error falls while learning"
    assert so_far[0] > 25
    assert so_far[-1] == pytest.approx(13.6, abs=0.5)


# --- the bounds on mistakes ---


def test_the_plane_of_maximal_margin_is_halfway_between_two_rows():
    X, y = sp.csr_array([[1.0, 1.0], [4.0, 5.0], [9.0, 5.0]]), np.array([-1, 1, 1])
    plane = notes.libsvm_plane(X, y)
    np.testing.assert_allclose(plane.weights / np.linalg.norm(plane.weights), [0.6, 0.8], rtol=1e-5)
    assert plane.margin == pytest.approx(2.5, rel=1e-5)
    assert plane.margin <= plane.proven <= 2.5 * (1 + 1e-9) + 1e-9


def test_mirrored_rows_have_their_best_plane_through_the_origin_of_the_augmented_space():
    random = np.random.default_rng(0)
    X = random.normal(size=(30, 3)) + 0.5
    y = np.where(X @ [1, -2, 1] > 0.3, 1, -1)
    rows, labels = notes.mirrored(sp.csr_array(X), y, 2.0)
    assert rows.shape == (60, 4)
    plane = notes.libsvm_plane(rows, labels)
    assert abs(plane.bias) < 1e-4
    # Our own certificate agrees.
    problem = Problem.from_labels(y, PDM(0.01), rho=2.0, max_epochs=10**7)
    (solution,) = solve(sp.csr_array(X), [problem], margins=True)
    assert solution.converged
    assert solution.directional_margin <= plane.proven * (1 + 1e-9)
    assert plane.margin <= solution.directional_margin / solution.certificate * (1 + 1e-9)


@pytest.fixture(params=notes.SEPARABLE)
def separable(request):
    if (sentence := datasets.missing(request.param)) is not None:
        pytest.skip(f"data: {sentence}")
    return request.param


def test_the_perceptron_keeps_both_bounds_on_real_data(separable):
    data = datasets.load(separable)
    with_bias, through_origin = notes.EXPERIMENTS[2].tasks[list(notes.SEPARABLE).index(separable)].run(SETTINGS)
    for row in (with_bias, through_origin):
        figures = {name: figure.ours for name, figure in row.figures.items()}
        assert 0 < figures["mistakes"] <= figures["bound"]
        assert 0.998 * figures["at most"] <= figures["margin"] <= figures["at most"]
        assert figures["% of bound"] == pytest.approx(100 * figures["mistakes"] / figures["bound"])
        assert row.note == "", "the perceptron has converged"
    plane = notes.libsvm_plane(data.X, data.y)
    R = np.sqrt(notes.largest_squared_length(data.X))
    assert abs(plane.bias) <= R * np.linalg.norm(plane.weights), "the condition of the bound"
    for name in ("R", "margin"):
        figure = through_origin.figures[name]
        if figure.published is not None:
            assert figure.ours == pytest.approx(figure.published, rel=0.005)


def test_our_own_solution_proves_the_largest_margin_of_mushroom_that_the_machine_finds():
    if (sentence := datasets.missing("mushroom")) is not None:
        pytest.skip(f"data: {sentence}")
    data = datasets.load("mushroom")
    (solution,) = solve(data.X, [Problem.from_labels(data.y, PDM(0.02), rho=0.0, max_epochs=10**6)], margins=True)
    plane = notes.libsvm_plane(*notes.mirrored(data.X, data.y, 0.0))
    assert 0.98 * plane.margin <= solution.directional_margin <= plane.proven
    assert plane.margin <= solution.directional_margin / solution.certificate


def test_missing_data_is_named_and_not_a_crash(monkeypatch, tmp_path):
    monkeypatch.setenv("TEXTCAT_DATASETS", str(tmp_path))
    monkeypatch.setattr(datasets, "folders", lambda: [tmp_path])
    with pytest.raises(datasets.MissingData, match="sonar"):
        notes.mistake_bound_rows("sonar", SETTINGS)
