"""Experiments from the lecture notes of Joachims (CS678, 2003) and Shalizi (36-350, 2009).

They are a toy table, a topic learnt document by document, and bounds on mistakes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from textcat.margin.problems import Problem, Solution
from textcat.margin.rules import PA
from textcat.margin.solve import solve
from textcat.papers import datasets
from textcat.papers.experiments import Figure, Row, Settings, Task, draw_axes, read_experiment
from textcat.papers.micra import Plane, largest_squared_length, libsvm_plane
from textcat.papers.paum import CorpusVectors, corpus_vectors

# Words: nuclear, atom, salt, pepper, water, heat, and.
COUNTS = np.array([[1, 2, 0, 0, 2, 0, 2], [0, 0, 0, 3, 0, 1, 1], [0, 2, 1, 0, 0, 0, 3], [0, 0, 1, 1, 1, 1, 1]])
IS_PHYSICS = np.array([1, -1, 1, -1])
GIVEN_W, GIVEN_B = np.array([2, 3, -1, -3, -1, -1, 0]), 1
GAMMA = float(np.min(IS_PHYSICS * (COUNTS @ GIVEN_W + GIVEN_B)) / np.linalg.norm(GIVEN_W))  # its margin


def printed_figure_rows(settings: Settings) -> list[Row]:
    """Classify the notes' four example documents by the weights and bias that the notes give.

    Return a row per document, and a row for the margin.
    """
    rows = _classified("given (w, b)", COUNTS @ GIVEN_W + GIVEN_B)
    return [*rows, Row("given (w, b), all", {"margin": Figure(GAMMA, digits=2)})]


def learnt_rows(settings: Settings) -> list[Row]:
    """Train the perceptron on the notes' four example documents, and classify them.

    Return a row per document, in which α is the number of mistakes on it, and a row for the margin and the mistakes.
    """
    X = sp.csr_array(COUNTS, dtype=np.float64)
    R = np.sqrt(largest_squared_length(X))
    (solution,) = solve(X, [Problem.from_labels(IS_PHYSICS, PA(), rho=R)], margins=True)
    assert solution.weights is not None
    alpha = np.zeros(len(IS_PHYSICS))
    alpha[solution.support] = np.abs(solution.alpha)
    whole = {
        "margin": Figure(solution.margin, digits=2),
        "mistakes": Figure(solution.n_updates),
        "bound": Figure(float((2 * R / GAMMA) ** 2), digits=1),
    }
    w = ", ".join(f"{weight:g}" for weight in solution.weights)
    note = f"w = ({w}), b = {solution.bias:g}, after {solution.n_epochs} epochs. γ is the given (w, b)'s margin."
    rows = _classified("perceptron", X @ solution.weights + solution.bias, alpha)
    return [*rows, Row("perceptron, all", whole, note=note)]


def _classified(classifier: str, scores: np.ndarray, alpha: np.ndarray | None = None) -> list[Row]:
    rows = []
    for k, (score, y) in enumerate(zip(scores.tolist(), IS_PHYSICS.tolist(), strict=True)):
        figures = {"y": Figure(1 if score > 0 else -1, y), "f(x)": Figure(float(score))}
        rows.append(Row(f"{classifier}, D{k + 1}", figures if alpha is None else figures | {"α": Figure(alpha[k])}))
    return rows


TOPIC = "acq"
N_EACH = 1000  # training documents with and without the topic
N_DRAWS = 10
AFTER = (100, 200, 500, 1000, 2000)  # documents
EPOCHS = (1, 2, 3, 5, 10, 20)
STRIDE = 20  # documents between two points of the picture


class DrawnDocuments(NamedTuple):
    """Hold randomly drawn training documents, in random order, and all test documents; labels are +1 and -1.

    A document's label is +1 if it has the topic for which they were drawn.
    """

    X: sp.csr_array
    y: np.ndarray
    X_test: sp.csr_array
    y_test: np.ndarray
    R: float  # the length of the longest training document, 1 except for rounding

    @classmethod
    def of(cls, vectors: CorpusVectors, topic: str, seed: int, n_each: int = N_EACH) -> "DrawnDocuments":
        """Draw `n_each` training documents with the topic, and as many without it."""
        column = vectors.topics.index(topic)
        y, y_test = (
            np.where(labels[:, [column]].toarray().ravel() > 0, 1, -1)
            for labels in (vectors.train_labels, vectors.test_labels)
        )
        random = np.random.default_rng(seed)
        sides = [random.choice(np.flatnonzero(y == side), n_each, replace=False) for side in (1, -1)]
        chosen = random.permutation(np.concatenate(sides))
        train, test = (sp.csr_array(rows, dtype=np.float64) for rows in (vectors.train, vectors.test))
        return cls(train[chosen], y[chosen], test, y_test, np.sqrt(largest_squared_length(train[chosen])))

    def solutions_after(self, n_documents: Iterable[int], n_jobs: int) -> list[Solution]:
        """Train the perceptron for one epoch on the first n documents, for each n."""
        later = (np.arange(n, len(self.y), dtype=np.int32) for n in n_documents)
        positives = np.flatnonzero(self.y > 0).astype(np.int32)
        problems = [Problem(positives, PA(), left_out=rest, rho=self.R, max_epochs=1) for rest in later]
        return solve(self.X, problems, n_jobs=n_jobs)

    def solutions_of_epochs(self, n_epochs: Iterable[int], n_jobs: int) -> list[Solution]:
        """Train the perceptron on all documents for each number of epochs, or until it makes no mistake."""
        problems = [Problem.from_labels(self.y, PA(), rho=self.R, max_epochs=n) for n in n_epochs]
        return solve(self.X, problems, n_jobs=n_jobs)


def error_percentage(X: sp.csr_array, y: np.ndarray, w: np.ndarray | None, b: float) -> float:
    """Return the percentage of rows that (w, b) misclassifies; f(x) = 0 counts as -1, as in the notes."""
    return 100 * float(np.mean(np.where(X @ w + b > 0, 1, -1) != y))


def _mistakes(solutions: Sequence[Sequence[Solution]]) -> np.ndarray:
    """Return each solution's number of updates, which are mistakes of the perceptron: shape (n_draws, n_solutions)."""
    return np.array([[solution.n_updates for solution in solutions_of_draw] for solutions_of_draw in solutions])


def error_percentages(draws: Sequence[DrawnDocuments], solutions: Sequence[Sequence[Solution | Plane]]) -> np.ndarray:
    """Return the errors of each draw's solutions on training and test documents, shape (n_draws, n_solutions, 2)."""
    return np.array(
        [
            [
                [error_percentage(X, y, f.weights, f.bias) for X, y in ((draw.X, draw.y), (draw.X_test, draw.y_test))]
                for f in solutions_of_draw
            ]
            for draw, solutions_of_draw in zip(draws, solutions, strict=True)
        ]
    )


def document_rows(draws: Sequence[DrawnDocuments], n_jobs: int) -> list[Row]:
    """Return a row per number of documents seen: the errors while learning and on test documents (means over draws)."""
    solutions = [draw.solutions_after(AFTER, n_jobs) for draw in draws]
    mistakes = _mistakes(solutions)
    figures = {
        "mistakes": mistakes,
        "% so far": 100 * mistakes / AFTER,
        "% since": 100 * np.diff(mistakes, axis=1, prepend=0) / np.diff(AFTER, prepend=0),
        "% test": error_percentages(draws, solutions)[:, :, 1],
    }
    return [Row(f"after {n} documents", _means(figures, k)) for k, n in enumerate(AFTER)]


def epoch_rows(draws: Sequence[DrawnDocuments], n_jobs: int) -> list[Row]:
    """Return a row per number of epochs: the mistakes made, and the errors of the solution (means over draws)."""
    solutions = [draw.solutions_of_epochs(EPOCHS, n_jobs) for draw in draws]
    errors = error_percentages(draws, solutions)
    figures = {"mistakes": _mistakes(solutions), "% training": errors[:, :, 0], "% test": errors[:, :, 1]}
    table = []
    for k, n in enumerate(EPOCHS):
        n_converged = sum(solutions_of_draw[k].converged for solutions_of_draw in solutions)
        note = f"{n_converged} of {len(draws)} draws have converged." if n_converged else ""
        table.append(Row(f"after {n} epoch{'s' if n > 1 else ''}", _means(figures, k), note=note))
    return table


def _epoch_and_machine_rows(draws: Sequence[DrawnDocuments], n_jobs: int) -> list[Row]:
    """Return the rows of `epoch_rows`, and a row with the errors of LIBSVM with a hard margin; means over draws."""
    errors = error_percentages(draws, [[libsvm_plane(draw.X, draw.y, tol=1e-3)] for draw in draws])
    machine = Row("SVM, hard margin", _means({"% training": errors[:, :, 0], "% test": errors[:, :, 1]}, 0))
    return [*epoch_rows(draws, n_jobs), machine]


def _means(figures: Mapping[str, np.ndarray], k: int) -> dict[str, Figure]:
    return {name: Figure(float(np.mean(values[:, k])), digits=1) for name, values in figures.items()}


def draw_learning(path: Path, draws: Sequence[DrawnDocuments], n_jobs: int) -> None:
    """Draw the percentage of mistakes while learning, against the number of documents seen.

    Grey lines count all documents so far, one line per draw, and a black line is their mean. A red line is the mean for
    the last 100 documents.
    """
    n_seen = np.arange(STRIDE, len(draws[0].y) + 1, STRIDE)
    mistakes = _mistakes([draw.solutions_after(n_seen, n_jobs) for draw in draws])
    so_far = 100 * mistakes / n_seen
    lag = 100 // STRIDE
    lately = mistakes[:, lag:] - mistakes[:, :-lag]  # of 100 documents: percent
    with draw_axes(path) as axes:
        axes.plot(n_seen, so_far.T, color="silver", linewidth=0.5)
        axes.plot(n_seen, so_far.mean(axis=0), color="black", label="of all documents so far")
        axes.plot(n_seen[lag:], lately.mean(axis=0), color="firebrick", label="of the last 100 documents")
        axes.set(xlabel="documents seen", ylabel="mistakes while learning [%]", ylim=(0, 50))
        axes.legend()


def draw_epochs(path: Path, draws: Sequence[DrawnDocuments], n_jobs: int) -> None:
    """Plot the training error and the test error after each of ten epochs, and save the picture at `path`.

    The errors are means over `draws`, random samples of documents.
    """
    epochs = range(1, 11)
    errors = error_percentages(draws, [draw.solutions_of_epochs(epochs, n_jobs) for draw in draws]).mean(axis=0)
    with draw_axes(path) as axes:
        axes.plot(epochs, errors[:, 0], "o-", color="black", label="training documents")
        axes.plot(epochs, errors[:, 1], "s-", color="firebrick", label="test documents")
        axes.set(xlabel="epochs", ylabel="misclassified [%]", ylim=(0, None), xticks=list(epochs))
        axes.legend()


def _rows_and_picture(
    rows: Callable[..., list[Row]], draw: Callable[..., None], picture: str, settings: Settings
) -> list[Row]:
    draws = [DrawnDocuments.of(corpus_vectors("reuters21578"), TOPIC, seed) for seed in range(N_DRAWS)]
    if settings.pictures:
        draw(settings.pictures / picture, draws, settings.n_jobs)
    return rows(draws, settings.n_jobs)


def mirrored(X: sp.csr_array, y: np.ndarray, rho: float) -> tuple[sp.csr_array, np.ndarray]:
    """Return the rows, with a constant coordinate ρ appended, then their negatives; and the labels of all these rows.

    A negative row has the opposite label. The plane of largest margin between the classes contains the origin.
    """
    augmented = sp.csr_array(sp.hstack([X, np.full((X.shape[0], 1), rho)], format="csr"))
    return sp.csr_array(sp.vstack([augmented, -augmented], format="csr")), np.concatenate([y, -y])


# The MICRA paper's ρ (the constant coordinate for the bias), R and largest directional margin; None: not given.
SEPARABLE = {"sonar": (1, 3.8121, 0.00841), "wbc-11": (30, 1716**0.5, 0.0243), "mushroom": (0, None, None)}


def mistake_bound_rows(name: str, settings: Settings) -> list[Row]:
    """Compare the perceptron's mistakes on the data set `name` with their upper bounds; return two rows.

    R is the length of the longest feature vector; ρ is a constant coordinate that is appended to each vector, and whose
    weight gives the bias. In the first row that is returned, ρ = R, and the bound is 4(R/γ)², where γ is the largest
    margin. In the second row, ρ is that of `SEPARABLE`, 0 for no bias; the bound is (R/δ)², where R is the length with
    ρ, and δ the largest margin of a plane through the origin.
    """
    data, (rho, *printed) = datasets.load(name), SEPARABLE[name]
    label = f"augmented by ρ = {rho:g}" if rho else "no bias"
    rows = []
    for kind, X, y, factor, (printed_R, printed_margin) in (
        ("with bias", data.X, data.y, 4, (None, None)),
        (label, *mirrored(data.X, data.y, rho), 1, printed),
    ):
        R, plane = np.sqrt(largest_squared_length(X)), libsvm_plane(X, y)
        problem = Problem.from_labels(data.y, PA(), rho=R if kind == "with bias" else rho, max_epochs=10**6)
        (solution,) = solve(data.X, [problem])
        bound, digits = factor * (R / plane.margin) ** 2, 5 if plane.margin < 0.01 else 4
        figures = {
            "R": Figure(R, printed_R, 4),
            "margin": Figure(plane.margin, printed_margin, digits),
            "at most": Figure(plane.proven, digits=digits),
            "mistakes": Figure(solution.n_updates),
            "bound": Figure(bound),
            "% of bound": Figure(100 * solution.n_updates / bound, digits=1),
        }
        note = "" if solution.converged else f"The perceptron {solution.stopped}."
        rows.append(Row(f"{name}, {kind}", figures, note=note))
    return rows


EXPERIMENTS = (
    read_experiment("notes-toy", (), Task("given (w, b)", printed_figure_rows), Task("perceptron", learnt_rows)),
    read_experiment(
        "notes-acq",
        ("reuters21578",),
        Task("documents", partial(_rows_and_picture, document_rows, draw_learning, "notes-acq-documents.svg")),
        Task("epochs", partial(_rows_and_picture, _epoch_and_machine_rows, draw_epochs, "notes-acq-epochs.svg")),
    ),
    read_experiment(
        "notes-bounds", tuple(SEPARABLE), *(Task(name, partial(mistake_bound_rows, name)) for name in SEPARABLE)
    ),
)
