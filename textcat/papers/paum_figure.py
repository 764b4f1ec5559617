"""The PAUM paper's Figure 2.1: a slice through version space, on which solutions stand, as rows and a picture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from textcat.errors import TextcatError
from textcat.margin.problems import Problem
from textcat.margin.rules import PA, PAM, PAUM, Rule
from textcat.margin.solve import solve
from textcat.papers import pictures
from textcat.papers.baselines import HARD
from textcat.papers.experiment import Experiment, Figure, Row, Settings, Task
from textcat.papers.paum_vectors import Vectors, gram, vectors

TOPIC = "earn"

# By the names that the picture gives them: τ, or τ₋ and τ₊.
RULES: dict[str, Rule] = {
    "0": PA(),
    "0.1": PAM(0.1),
    "0.5": PAM(0.5),
    "1": PAM(1),
    "5": PAM(5),
    "(0,1)": PAUM(0, 1),
    "(-1,1)": PAUM(-1, 1),
    "(1,50)": PAUM(1, 50),
}
SPANNING = "SVM", "0", "0.5"


@dataclass(frozen=True, eq=False)
class Plane:
    """The plane through three unit vectors; the first is its origin, the second lies on its horizontal axis.

    Parameters
    ----------
    origin : ndarray of shape (n_dimensions,)
    axes : ndarray of shape (n_dimensions, 2)
        Orthonormal.
    """

    origin: np.ndarray
    axes: np.ndarray

    @classmethod
    def through(cls, origin: np.ndarray, second: np.ndarray, third: np.ndarray) -> Plane:
        """Lay the plane through three points."""
        axes, signs = np.linalg.qr(np.column_stack([second - origin, third - origin]))
        return cls(origin, axes * np.sign(np.diag(signs)))

    def place(self, point: np.ndarray) -> np.ndarray:
        """Return the coordinates of a point's projection, shape (2,)."""
        return (point - self.origin) @ self.axes

    def lines(self, rows: sp.csr_array, y: np.ndarray) -> np.ndarray:
        """Return where rows are on the boundary: (c, a, b) of ``c + a·u + b·v = 0``, positive where they are right."""
        return y[:, None] * (rows @ np.column_stack([self.origin, self.axes]))


def solutions(rows: sp.csr_array, positives: np.ndarray) -> dict[str, np.ndarray]:
    """Return weight vectors of length 1, bias last: the machine's of maximal margin, and each rule's with λ = 0."""
    problems = [Problem(positives, rule) for rule in RULES.values()]
    found = {"SVM": maximal_margin(rows, labels_of(rows, positives))}
    for name, solution in zip(RULES, solve(rows, problems), strict=True):
        assert solution.weights is not None
        found[name] = np.append(solution.weights, solution.bias)
    # A negative τ₋ may be content with no update at all.
    return {name: vector / (np.linalg.norm(vector) or 1) for name, vector in found.items()}


def labels_of(rows: sp.csr_array, positives: np.ndarray) -> np.ndarray:
    """Return +1 for the positives and -1 for all other rows."""
    y = np.full(rows.shape[0], -1)
    y[positives] = 1
    return y


def maximal_margin(rows: sp.csr_array, y: np.ndarray) -> np.ndarray:
    """Return LIBSVM's weights for C = 1e5, with the bias behind them."""
    from sklearn.svm import SVC

    machine = SVC(C=HARD, kernel="precomputed").fit(gram(rows), y)
    return np.append(machine.dual_coef_[0] @ rows[machine.support_], machine.intercept_)


def augmented(rows: sp.csr_array) -> sp.csr_array:
    """Append a coordinate of 1 to every row."""
    return sp.csr_array(sp.hstack([rows, np.ones((rows.shape[0], 1))], format="csr"))


def solution_rows(found: Mapping[str, np.ndarray], plane: Plane, rows: sp.csr_array, y: np.ndarray) -> list[Row]:
    """Tell of every solution where it stands on the slice, its margin, and how far from the machine's it is."""
    table = []
    for name, vector in found.items():
        outputs = y * (rows @ vector)
        place = plane.place(vector)
        figures = {
            "u": Figure(float(place[0]), digits=3),
            "v": Figure(float(place[1]), digits=3),
            "angle to SVM [°]": Figure(float(np.degrees(np.arccos(np.clip(vector @ found["SVM"], -1, 1)))), digits=1),
            "10³ margin": Figure(1e3 * float(outputs.min()), digits=2),
            "training errors": Figure(int(np.sum(outputs <= 0))),
        }
        table.append(Row(name, figures))
    return table


# --- the picture -----------------------------------------------------------------------------------------------------


def corners(lines: np.ndarray) -> np.ndarray:
    """Return the corners of the region on the right side of all lines, shape (n, 2); the origin must be inside."""
    from scipy.spatial import HalfspaceIntersection

    far = 2.0  # unit vectors differ by no more, so a region that is open ends there
    frame = np.array([[far, 1, 0], [far, -1, 0], [far, 0, 1], [far, 0, -1]])
    return HalfspaceIntersection(-np.roll(np.vstack([lines, frame]), -1, axis=1), np.zeros(2)).intersections


def draw(path: Path, places: Mapping[str, np.ndarray], lines: np.ndarray, y: np.ndarray) -> None:
    """Draw the slice: the lines that cross the frame, solid for negative documents, dotted for positive ones."""
    inside = corners(lines)
    shown = np.vstack([inside, *places.values()])
    low, high = shown.min(axis=0) - 0.03, shown.max(axis=0) + 0.03
    size = high - low
    axes = pictures.axes(7, float(np.clip(7 * size[1] / size[0], 3, 10)))
    for (c, a, b), label in zip(lines, y, strict=True):
        if crosses(c, a, b, low, high):
            bounding = np.any(np.abs(c + inside @ (a, b)) <= 1e-9 * np.hypot(a, b))
            axes.axline(
                (-c * a / (a * a + b * b), -c * b / (a * a + b * b)),
                slope=-a / b if b else np.inf,
                color="black" if bounding else "silver",
                linestyle="-" if label < 0 else ":",
                linewidth=1.0 if bounding else 0.4,
            )
    for name, (u, v) in places.items():
        axes.plot(u, v, "o", color="firebrick", markersize=4)
        axes.annotate(name, (u, v), (4, 4), textcoords="offset points", color="firebrick")
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal", xticks=[], yticks=[])
    pictures.save(axes, path)


def crosses(c: float, a: float, b: float, low: np.ndarray, high: np.ndarray) -> bool:
    """Tell whether a line has frame corners on both sides."""
    sides = [c + a * u + b * v for u in (low[0], high[0]) for v in (low[1], high[1])]
    return min(sides) < 0 < max(sides)


# --- the experiment --------------------------------------------------------------------------------------------------


def figure_rows(vectors: Vectors, topic: str, picture: Path | None) -> list[Row]:
    """Train on a topic, draw the slice if asked to, and tell where the solutions stand.

    Raises
    ------
    TextcatError
        If the topic is inseparable, so that there is no version space.
    """
    positives = vectors.positives[vectors.topics.index(topic)]
    rows = vectors.train.astype(np.float64)
    y, found, whole = labels_of(rows, positives), solutions(rows, positives), augmented(rows)
    if (y * (whole @ found["SVM"])).min() <= 0:
        raise TextcatError(f"The topic {topic!r} is inseparable, so it has no version space; choose another one.")
    plane = Plane.through(*(found[name] for name in SPANNING))
    if picture is not None:
        draw(picture, {name: plane.place(vector) for name, vector in found.items()}, plane.lines(whole, y), y)
    return solution_rows(found, plane, whole, y)


def _figure(settings: Settings) -> list[Row]:
    picture = settings.pictures / "paum-figure-2.1.svg" if settings.pictures else None
    return figure_rows(vectors("reuters21578"), TOPIC, picture)


FIGURE_2_1 = Experiment(
    "paum-figure-2.1",
    "PAUM paper, Figure 2.1: a slice through version space for the topic 'earn' of Reuters-21578",
    ("reuters21578",),
    0.2,
    (Task(TOPIC, _figure),),
    """Vectors as for Table 2, λ = 0, ρ = 1. Every training document is a hyperplane in the space of weight vectors;
version space is the region on the right side of all of them. The plane goes through the solutions of the SVM (LIBSVM,
C = 10⁵), of PA ("0") and of PAM(0.5), all divided by their length, bias included. The other solutions are projected
onto it: PAM(τ) as τ, PAUM as (τ₋,τ₊). Lines are the training documents that cross the frame, solid for negative
ones, dotted for positive ones; those that bound version space are black.

The *margin* is the directional one, min y·f(x)/‖(w, b)‖. As in the paper, PA stands at the boundary, and the larger τ,
the closer a solution comes to the SVM's. PAUM(-1,1) lies outside of version space, if not its
projection: a negative τ₋ allows errors.""",
)
EXPERIMENTS = (FIGURE_2_1,)
